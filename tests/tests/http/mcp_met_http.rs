//! How the MCP servers behind this one may name the pages of their lists.

use serde_json::json;
use svc_tests::tool_desk::{ToolDesk as Desk, text};
use svc_tests::tool_server::{Reply, Speaks, tool};

/// A list has come to its end where the next page is named by nothing, as some servers say it, or is the page that was asked for.
#[tokio::test]
async fn a_list_ends_where_it_leads_nowhere() {
    for (cursor, asked) in [("", 1), ("same", 2)] {
        let mut desk = Desk::new(Speaks::Legacy { sessions: false }).await;
        let page = json!({ "tools": [tool("read_one", "Reads one.")], "nextCursor": cursor });
        desk.server.reply_to_lists(Some(Reply::Result(page)));
        let made = desk.server(json!({})).await;
        assert_eq!((&made["state"], &made["held"]), (&json!("ok"), &json!([])), "{cursor}: {made}");
        let heard = desk.server.heard();
        assert_eq!(heard.iter().filter(|it| it.method() == "tools/list").count(), asked, "{cursor}");
        assert_eq!(desk.listed().await, ["read_one"], "{cursor}");
        assert_eq!(text(&desk.call("read_one", json!({})).await), "done", "{cursor}");
    }
}
