//! How the MCP servers behind this one may name their sessions and the pages of their lists.

use serde_json::json;
use svc_core::value::Span;
use svc_tests::tool_desk::{ToolDesk as Desk, calling, text};
use svc_tests::tool_server::{Part, Reply, Speaks, tool};

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

/// The name of a session may be as long as one that holds what its server knows of it. Of one that cannot be sent back it is said so,
/// and nothing is asked without it.
#[tokio::test]
async fn a_session_may_have_a_long_name() {
    let mut desk = Desk::new(Speaks::Legacy { sessions: true }).await;
    desk.server.name_sessions(&"s".repeat(8_000));
    desk.server(json!({})).await;
    assert_eq!(text(&desk.call("read_one", json!({})).await), "done");
    assert_eq!(desk.actions().await[0]["status"], "completed");
    for name in ["s".repeat(9_000), "of one".to_owned()] {
        desk.server.name_sessions(&name);
        desk.site.shift(Span::minutes(2));
        let _ = desk.server.heard();
        let told = text(&desk.call("read_one", json!({})).await);
        assert!(
            told.contains("its session has a name that is not of visible ASCII characters, or longer than 8 KiB"),
            "{told}"
        );
        assert!(desk.server.calls().is_empty(), "{told}");
    }
}

/// A server of the era with handshakes may close the connection to whoever asks it for what it does not know, or refuse them: it is
/// met by a handshake all the same. One that refuses that too is told of by what it did first.
#[tokio::test]
async fn who_knows_no_discovery_is_met_all_the_same() {
    for reply in [Reply::Closed, Reply::Status(401), Reply::Status(403)] {
        let mut desk = Desk::new(Speaks::Legacy { sessions: true }).await;
        desk.server.reply_to_discovery(reply.clone());
        let made = desk.server(json!({})).await;
        assert_eq!((&made["state"], &made["held"]), (&json!("ok"), &json!([])), "{reply:?}: {made}");
        assert_eq!(text(&desk.call("read_one", json!({})).await), "done", "{reply:?}");
    }
    let mut desk = Desk::new(Speaks::Html).await;
    desk.server.reply_to_discovery(Reply::Status(403));
    let made = desk.server(json!({})).await;
    assert_eq!(made["state"], "unreachable");
    assert_eq!(made["trouble"], "it does not take the credential that it is shown", "{made}");
    let told = text(&desk.call("read_one", json!({})).await);
    assert!(told.contains("it does not take the credential that it is shown"), "{told}");
}

/// The lines of a stream may end in one carriage return each, its last too (the event streams of HTML).
#[tokio::test]
async fn lines_may_end_in_carriage_returns() {
    let mut desk = Desk::new(Speaks::Modern).await;
    desk.server(json!({})).await;
    let told = json!({ "jsonrpc": "2.0", "id": "p", "result": { "content": [{ "type": "text", "text": "done" }] } });
    desk.server.reply_in_parts([Part::Ended(format!(": begun\r\rdata: {told}\r\r"))]);
    assert_eq!(text(&desk.call("read_one", json!({})).await), "done");
}

/// A call that is denied as things stand begins no session with its server, whatever session it names, and is on record all the same.
/// One that a person may approve has its server met before they are asked.
#[tokio::test]
async fn a_denied_call_begins_no_session() {
    const PAYS: &str = r#"{"name":"Pays","actions":["payment"],"limits":{"currency":"EUR","perAction":50000}}"#;
    let mut desk = Desk::with(Speaks::Legacy { sessions: true }, PAYS).await;
    desk.server(json!({})).await;
    assert_eq!(desk.listed().await, ["read_one", "write_one"]);
    desk.api("PUT", "settings", Some(&json!({ "outsideMandate": "deny" }))).await.ok();
    let _ = desk.server.heard();
    let call = calling("read_one", json!({}));
    for session in ["s1", "s2"] {
        let got = desk.send(&call, &[("x-svc-client-session", session)]).await.ok();
        assert!(text(&got["result"]).starts_with("denied"), "{got}");
    }
    assert!(desk.server.heard().is_empty());
    let statuses: Vec<_> = desk.actions().await.iter().map(|it| it["status"].clone()).collect();
    assert_eq!(statuses, ["denied", "denied"]);
    desk.api("PUT", "settings", Some(&json!({ "outsideMandate": "ask" }))).await.ok();
    let got = desk.send(&call, &[("x-svc-client-session", "s1")]).await.ok();
    assert!(text(&got["result"]).starts_with("approval_required"), "{got}");
    let heard = desk.server.heard();
    let heard: Vec<_> = heard.iter().map(|it| it.method()).collect();
    assert_eq!(heard, ["initialize", "notifications/initialized"]);
}
