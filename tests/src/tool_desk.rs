//! A site with a stand-in of an MCP server behind it, an owner and an agent in front of it: where tests of proxied tools begin.

use std::time::Duration;

use serde_json::{Value, json};
use svc_core::rules::edge::integrations::NewSecret;
use svc_core::rules::edge::mcp_servers::{Edit, EditMcpServers, NewCredential, Set};
use svc_core::rules::edge::mcp_tools::{AcceptTools, NoteTools, Over};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::state::edge::McpSecret;
use svc_core::state::people::Role;
use svc_core::value::digest::Digest;
use svc_core::value::id::McpServerId;
use svc_core::value::text::Note;
use svc_http::upstream::Allowed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Client, Got, PATIENCE, bearer, request};
use crate::oauth::HOST;
use crate::people::Person;
use crate::site::{Agent, Plan, Site};
use crate::tool_server::{Speaks, ToolServer};

/// Calls of tools are allowed, and payments by a person's word.
pub const TOOLS: &str =
    r#"{"name":"Tools","actions":["mcp.call","payment"],"limits":{"currency":"EUR","perAction":50000}}"#;

/// A site with a stand-in of an MCP server behind it, an owner and an agent in front of it.
#[derive(Debug)]
pub struct ToolDesk {
    /// The site.
    pub site: Site,
    /// The stand-in.
    pub server: ToolServer,
    /// A connection.
    pub client: Client,
    /// An owner.
    pub owner: Person,
    /// An agent.
    pub agent: Agent,
}

impl ToolDesk {
    /// A desk whose server speaks like this, and whose agent may call tools and pay.
    pub async fn new(speaks: Speaks) -> Self {
        Self::with(speaks, TOOLS).await
    }

    /// The same with another mandate.
    pub async fn with(speaks: Speaks, mandate: &str) -> Self {
        Self::over(speaks, mandate, |_| {}).await
    }

    /// The same at a site that differs from the usual one.
    pub async fn over(speaks: Speaks, mandate: &str, change: impl FnOnce(&mut Plan)) -> Self {
        let site = Site::with(|plan| {
            plan.config.outbound.allow = Allowed::loopback();
            plan.config.timeouts.drain = Duration::from_secs(1);
            change(plan);
        })
        .await;
        let server = ToolServer::start(speaks).await;
        let (client, owner, agent) = (site.client().await, site.member(Role::Owner), site.agent(&[mandate]));
        Self { site, server, client, owner, agent }
    }

    /// Asks a console route of the workspace as its owner.
    pub async fn api(&mut self, method: &str, path: &str, body: Option<&Value>) -> Got {
        let path = format!("/api/w/{}/{path}", self.site.workspace());
        self.owner.ask(&mut self.client, method, &path, body).await
    }

    /// Makes the server `crm`, with these further members.
    pub async fn server(&mut self, more: Value) -> Value {
        let mut body = json!({ "name": "crm", "url": self.server.url() });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.api("POST", "mcp-servers", Some(&body)).await.made()
    }

    /// Sends a message as the agent.
    pub async fn send(&mut self, body: &Value, more: &[(&str, &str)]) -> Got {
        let key = self.agent.key.clone();
        self.send_as(&key, body, more).await
    }

    /// Sends a message with another key.
    pub async fn send_as(&mut self, key: &str, body: &Value, more: &[(&str, &str)]) -> Got {
        self.send_to("crm", key, body, more).await
    }

    /// Sends a message for another server.
    pub async fn send_to(&mut self, server: &str, key: &str, body: &Value, more: &[(&str, &str)]) -> Got {
        let credential = bearer(key);
        let mut headers = vec![("host", HOST), ("authorization", credential.as_str())];
        headers.push(("accept", "application/json, text/event-stream"));
        headers.extend_from_slice(more);
        let path = format!("/mcp/proxy/{server}");
        self.client.ask("POST", &path, &headers, body.to_string().as_bytes()).await
    }

    /// The tools that an agent sees, by name.
    pub async fn listed(&mut self) -> Vec<String> {
        let got = self.send(&message("tools/list", json!({})), &[]).await.ok();
        let tools = got["result"]["tools"].as_array().unwrap_or_else(|| panic!("{got}")).clone();
        tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool; the result.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let got = self.send(&calling(name, arguments), &[]).await.ok();
        assert_eq!((&got["jsonrpc"], &got["id"]), (&json!("2.0"), &json!(7)), "{got}");
        got["result"].clone()
    }

    /// Sends a message on a connection of its own and reads until the server closes it.
    pub async fn stream(&self, body: &Value) -> String {
        let mut heard = String::new();
        timeout(PATIENCE, self.begin(&self.agent.key, body).await.read_to_string(&mut heard)).await.unwrap().unwrap();
        heard
    }

    /// Sends one message by this key, to be answered by a stream, on a connection of its own, which the server closes after it.
    pub async fn begin(&self, key: &str, body: &Value) -> TcpStream {
        let credential = bearer(key);
        let headers =
            [("host", HOST), ("authorization", &*credential), ("accept", "text/event-stream"), ("connection", "close")];
        let mut socket = TcpStream::connect(self.site.address).await.unwrap();
        socket.write_all(&request("POST", "/mcp/proxy/crm", &headers, body.to_string().as_bytes())).await.unwrap();
        socket
    }

    /// The agent's actions, the newest first.
    pub async fn actions(&mut self) -> Vec<Value> {
        self.site.gate.tick().unwrap();
        self.api("GET", "actions", None).await.ok()["data"].as_array().unwrap().clone()
    }

    /// Has the server of this id shown another token from now on, without its being asked for its tools.
    pub fn show(&self, id: &str, secret: &str) {
        let (workspace, server) = (self.site.workspace(), id.parse::<McpServerId>().unwrap());
        let sealed = self.site.gate.seal(&McpSecret::purpose(workspace), secret.as_bytes()).unwrap();
        let shown = NewCredential::Bearer(NewSecret { sealed: sealed.into(), hint: "last".into() });
        let edit = Edit::Change(server, vec![Set::Credential(shown)]);
        self.site.gate.execute(EditMcpServers { by: By::Program, workspace, edit, looked: None }).unwrap();
    }

    /// Notes that the server of this id tells of this tool alone, and accepts it.
    pub fn know(&self, id: &str, name: &str, definition: &Value) {
        let (workspace, server) = (self.site.workspace(), id.parse::<McpServerId>().unwrap());
        let (tools, hash) = (vec![name.into()], self.note(id, name, definition));
        self.site.gate.execute(AcceptTools { by: By::Program, workspace, server, tools, hash }).unwrap();
    }

    /// Notes that the server of this id tells of this tool alone, as another server of this service would; the hash of what is known
    /// then.
    pub fn note(&self, id: &str, name: &str, definition: &Value) -> Digest {
        let (workspace, server) = (self.site.workspace(), id.parse::<McpServerId>().unwrap());
        let (found, over) = (Some([(name.into(), definition.to_string().into())].into()), Over::Whatever);
        let noted = self.site.gate.execute(NoteTools { workspace, server, found, over, accepted_by: None }).unwrap();
        noted.tools.unwrap().hash()
    }

    /// Has the agent run again.
    pub fn unfreeze(&self) {
        let (workspace, agent, reason) = (self.site.workspace(), self.agent.id, Note::parse("test").unwrap());
        self.site.gate.restart(&RestartAgent { workspace, agent, by: By::Program, reason, admin: None }).unwrap();
    }

    /// Freezes the agent.
    pub fn freeze(&self) {
        let (workspace, agent, reason) = (self.site.workspace(), self.agent.id, Note::parse("test").unwrap());
        self.site.gate.execute(FreezeAgent { workspace, agent, by: By::Program, reason }).unwrap();
    }
}

/// A message of the era with handshake.
#[must_use]
pub fn message(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// A call of a tool, whose progress is to be told by `p`.
#[must_use]
pub fn calling(name: &str, arguments: Value) -> Value {
    message("tools/call", json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": "p" } }))
}

/// What a server tells of the progress of such a call, with this text.
#[must_use]
pub fn told_on_the_way(text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "p", "progress": 1, "message": text } })
}

/// The text of a result.
///
/// # Panics
/// Where it has none.
#[must_use]
pub fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}
