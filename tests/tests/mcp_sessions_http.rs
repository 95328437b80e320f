//! Sessions of agents, and sessions with the MCP servers behind this one: what is compared with what, what ends, and
//! what waits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

use serde_json::json;
use svc_core::value::Span;
use svc_tests::tool_desk::{ToolDesk as Desk, calling};
use svc_tests::tool_server::Speaks;

/// A call that names no session is compared with all that the agent has seen, also once such calls have brought
/// something in themselves: what was read in a session by name is not forgotten by naming none.
#[tokio::test]
async fn a_call_without_a_session_is_compared_with_all_that_was_seen() {
    let mut desk = Desk::new(Speaks::Modern).await;
    desk.server(json!({})).await;
    let table = json!([
        { "tool": "mcp__crm__read*", "source": "web", "sink": false },
        { "tool": "mcp__crm__write*", "source": "mcp", "sink": false },
    ]);
    desk.api("PUT", "routing", Some(&json!({ "toolTable": table }))).await.ok();
    desk.call("write_one", json!({})).await;
    desk.send(&calling("read_one", json!({})), &[("x-svc-client-session", "s1")]).await.ok();
    desk.site.shift(Span::millis(1));
    desk.call("write_one", json!({})).await;
    let provenance = desk.actions().await[0]["provenance"].clone();
    assert_eq!(provenance["observed"], json!(["mcp", "web"]), "{provenance}");
    assert_eq!(provenance["effective"], "public", "{provenance}");
    desk.site.shift(Span::millis(1));
    desk.send(&calling("write_one", json!({})), &[("x-svc-client-session", "s2")]).await.ok();
    desk.site.shift(Span::millis(1));
    desk.send(&calling("write_one", json!({})), &[("x-svc-client-session", "s2")]).await.ok();
    let provenance = desk.actions().await[0]["provenance"].clone();
    assert_eq!(provenance["observed"], json!(["mcp"]), "a session of its own has its own set: {provenance}");
}
