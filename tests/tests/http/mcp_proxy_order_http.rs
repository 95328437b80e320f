//! In which order what is wrong with a message to a server behind this one is told, and what is told of the server's name.

use serde_json::json;
use svc_core::state::people::KeyScope;
use svc_core::testing::world::BASE_URL;
use svc_tests::oauth::HOST;
use svc_tests::tool_desk::ToolDesk as Desk;
use svc_tests::tool_server::Speaks;

/// What a message is comes before whom it is for: one that is broken is told so whatever server it names, and of one for a server
/// that is not there nothing is taken.
#[tokio::test]
async fn a_message_is_read_before_its_server_is_looked_for() {
    let mut desk = Desk::new(Speaks::Modern).await;
    let key = format!("Bearer {}", desk.agent.key);
    let headers = [("host", HOST), ("authorization", &*key)];
    for (body, status, code) in [
        ("{", 400, -32_700),
        ("[]", 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 404, 404),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 404, 404),
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#, 404, 404),
    ] {
        let got = desk.client.ask("POST", "/mcp/proxy/nowhere", &headers, body.as_bytes()).await;
        assert_eq!((got.status, &got.json()["error"]["code"]), (status, &json!(code)), "{body}");
    }
    let key = format!("Bearer {}", desk.site.key(KeyScope::Inference));
    let got = desk.client.ask("POST", "/mcp/proxy/nowhere", &[("host", HOST), ("authorization", &*key)], b"{").await;
    assert_eq!(got.status, 403, "who asks comes first");
}

/// A key that has ended is told so whatever it sends, also where it was known a moment ago.
#[tokio::test]
async fn a_key_that_was_revoked_is_told_so_first() {
    let mut desk = Desk::new(Speaks::Modern).await;
    let key = desk.agent.key.clone();
    let bearer = format!("Bearer {key}");
    let headers = [("host", HOST), ("authorization", &*bearer)];
    for (body, revoked) in
        [("{", false), ("{", true), ("[]", true), (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true)]
    {
        if revoked {
            desk.site.revoke(&key);
        }
        let got = desk.client.ask("POST", "/mcp/proxy/crm", &headers, body.as_bytes()).await;
        assert_eq!(got.status, if revoked { 401 } else { 400 }, "{body}");
    }
}

/// A challenge names the server that was asked for where that can be a name, and else the place of all: nothing that was sent gets
/// out of the quotes.
#[tokio::test]
async fn a_challenge_quotes_names_alone() {
    let mut desk = Desk::new(Speaks::Modern).await;
    let long = "x".repeat(41);
    for (name, place) in
        [("crm", "/mcp/proxy/crm"), ("a\",b=\"", "/mcp"), ("a\\", "/mcp"), ("CRM!", "/mcp"), (&*long, "/mcp")]
    {
        let got = desk.client.ask("POST", &format!("/mcp/proxy/{name}"), &[("host", HOST)], b"{}").await;
        let metadata = format!("{BASE_URL}/.well-known/oauth-protected-resource{place}");
        let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"svc:agent\"");
        assert_eq!((got.status, got.header("www-authenticate")), (401, Some(&*challenge)), "{name}");
    }
}
