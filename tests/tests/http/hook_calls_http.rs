//! What a call is to the hook of coding clients, against a real server: whose tool it is.

use serde_json::{Value, json};
use svc_tests::requests::text;

use super::hook_http::Desk;

/// A tool of an MCP server that is called as one of Cursor's own is not that one to the gate, whichever hook speaks of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_tool_is_not_taken_for_the_clients_own() {
    let mut desk = Desk::new().await;
    let said = |event: &str, tool: &str, input: Value| {
        json!({
            "conversation_id": "s-1", "cursor_version": "3.1.0", "hook_event_name": event, "tool_name": tool,
            "tool_input": input, "tool_use_id": format!("{event} {tool}"),
        })
    };
    let own = desk.hook_of("cursor", &said("preToolUse", "Read", json!({ "path": "a" }))).await;
    assert_eq!(own.out, "{\"permission\":\"allow\"}\n");
    let of_server = said("beforeMCPExecution", "Read", json!("{\"path\":\"a\"}"));
    let asked = desk.hook_of("cursor", &of_server).await;
    assert!(asked.code == 0 && asked.out.contains(r#""permission":"ask""#), "{asked:?}");
    let first = desk.newest().await;
    assert_eq!(text(&first["tool"]["name"]), "MCP:Read");
    let mut other = said("preToolUse", "MCP:Read", json!({ "path": "a" }));
    other["tool_use_id"] = of_server["tool_use_id"].clone();
    let again = desk.hook_of("cursor", &other).await;
    assert!(again.code == 0 && again.out.contains(r#""permission":"deny""#), "{again:?}");
    assert_eq!(desk.newest().await["id"], first["id"], "both hooks meet in one action");
    desk.site.audit();
}
