//! The MCP SDK for Rust as a client of the real program: its transport in both eras with a key, and its OAuth, from discovery and
//! registration to a token that is refreshed while it is in use and a used one that ends the connection.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::auth::{CredentialStore as _, InMemoryCredentialStore};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{
    AuthClient, AuthorizationManager, AuthorizationRequest, AuthorizationSession, StreamableHttpClientTransport,
};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};
use svc_tests::client::Client;
use svc_tests::oauth::{form, hidden};
use svc_tests::program::Program;
use tempfile::TempDir;

type Running = RunningService<RoleClient, ()>;

const REDIRECT: &str = "http://127.0.0.1:51648/callback";

/// A running `svc dev` and what it said of itself.
struct Site {
    _data: TempDir,
    program: Program,
    dev: Value,
}

impl Site {
    async fn start() -> Self {
        let data = TempDir::new().unwrap();
        let (program, dev) = Program::dev(data.path()).await;
        Self { _data: data, program, dev }
    }

    fn said(&self, name: &str) -> &str {
        self.dev[name].as_str().unwrap()
    }

    fn mcp(&self) -> StreamableHttpClientTransportConfig {
        StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", self.said("baseUrl")))
    }

    /// Signs in and says yes on the page that asks; where the browser is sent then.
    async fn allow(&self, url: &str) -> String {
        let mut browser = Client::connect(self.program.address).await;
        let host = self.program.address.to_string();
        let token = self.said("signInLink").split_once("token=").unwrap().1;
        let headers = [("host", host.as_str()), ("x-svc-csrf", "1"), ("content-type", "application/json")];
        let body = json!({ "token": token }).to_string();
        let signed_in = browser.ask("POST", "/api/sign-in/link", &headers, body.as_bytes()).await;
        let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let path = url.strip_prefix(self.said("baseUrl")).unwrap();
        let page = browser.ask("GET", path, &[("host", &host), ("cookie", &cookie)], b"").await;
        let request = hidden(&page.text(), "request");
        let said = form(&[("request", &request), ("agentId", self.said("agentId")), ("choice", "allow")]);
        let headers = [
            ("host", host.as_str()),
            ("cookie", &cookie),
            ("origin", self.said("baseUrl")),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let answer = browser.ask("POST", "/oauth/authorize", &headers, said.as_bytes()).await;
        answer.header("location").expect("it leads back").to_owned()
    }
}

/// Both ways to begin, and the revision that is spoken then.
fn eras() -> [(ClientLifecycleMode, ProtocolVersion); 2] {
    let newest = ProtocolVersion::V_2026_07_28;
    let stateless = ClientLifecycleMode::Discover { preferred_versions: vec![newest.clone()] };
    [(ClientLifecycleMode::Initialize, ProtocolVersion::V_2025_11_25), (stateless, newest)]
}

async fn call(client: &Running, tool: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await
}

/// Uses the gate with nothing but the server's tools.
async fn use_tools(client: &Running) {
    let listed = client.list_all_tools().await.unwrap();
    for tool in ["authorize_action", "settle_action", "check_action_status", "explain_decision", "spend_summary"] {
        assert!(listed.iter().any(|it| it.name == tool), "{tool}");
    }
    let input = json!({ "name": "look_up", "input": { "word": "gate" } });
    let action = json!({ "type": "tool.call", "summary": "Look a word up", "tool": input });
    let asked = call(client, "authorize_action", action).await.unwrap();
    assert_ne!(asked.is_error, Some(true), "{asked:?}");
    let id = asked.structured_content.unwrap()["id"].clone();
    let again = call(client, "check_action_status", json!({ "actionId": id })).await.unwrap();
    assert_eq!(again.structured_content.unwrap()["id"], id);
    let wrong = call(client, "check_action_status", json!({ "actionId": "act_nothing" })).await.unwrap();
    assert_eq!(wrong.is_error, Some(true));
}

#[tokio::test]
async fn both_eras_are_spoken_with_a_key() {
    let site = Site::start().await;
    for (mode, revision) in eras() {
        let transport = StreamableHttpClientTransport::from_config(site.mcp().auth_header(site.said("agentKey")));
        let client = ().serve_with_lifecycle(transport, mode).await.unwrap();
        assert_eq!(client.peer_info().unwrap().protocol_version, revision);
        use_tools(&client).await;
        client.cancel().await.unwrap();
    }
    site.program.stop().await;
}

#[tokio::test]
async fn a_connection_is_refreshed_in_use_and_ends_with_a_used_token() {
    let site = Site::start().await;
    let store = InMemoryCredentialStore::new();
    let mut manager = AuthorizationManager::new(format!("{}/mcp", site.said("baseUrl"))).await.unwrap();
    manager.set_credential_store(store.clone());
    manager.set_metadata(manager.resolve_metadata().await.unwrap().metadata);
    let request = AuthorizationRequest::new(REDIRECT).with_client_name("Check");
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error).unwrap();
    let back = site.allow(session.get_authorization_url()).await;
    session.handle_callback_url(&back).await.unwrap();
    let transport = StreamableHttpClientTransport::with_client(
        AuthClient::new(reqwest::Client::new(), session.auth_manager),
        site.mcp(),
    );
    let (mode, _) = eras()[1].clone();
    let client = ().serve_with_lifecycle(transport, mode).await.unwrap();
    use_tools(&client).await;

    // As far as the client knows its hour is over: it goes on by itself.
    let mut kept = store.load().await.unwrap().unwrap();
    kept.token_received_at = Some(0);
    store.save(kept.clone()).await.unwrap();
    use_tools(&client).await;
    let (first, client_id) = (json!(kept.token_response), kept.client_id);
    let second = json!(store.load().await.unwrap().unwrap().token_response);
    assert!(first["access_token"].as_str().unwrap().starts_with("aat_"));
    assert!(first["access_token"] != second["access_token"] && first["refresh_token"] != second["refresh_token"]);

    let used = first["refresh_token"].as_str().unwrap();
    let members = form(&[("grant_type", "refresh_token"), ("refresh_token", used), ("client_id", &client_id)]);
    let host = site.program.address.to_string();
    let headers = [("host", host.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let reuse = Client::connect(site.program.address).await;
    let reuse = { reuse }.ask("POST", "/oauth/token", &headers, members.as_bytes()).await;
    assert_eq!((reuse.status, reuse.json()["error"].as_str()), (400, Some("invalid_grant")));
    let after = call(&client, "spend_summary", json!({})).await;
    assert!(format!("{after:?}").contains("AuthRequired"), "the whole connection has ended: {after:?}");
    client.cancel().await.unwrap();
    site.program.stop().await;
}
