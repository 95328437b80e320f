//! What a person who is asked about a call of another server's tool sees of it, and what their yes is good for.

use serde_json::{Value, json};
use svc_core::value::Span;
use svc_tests::client::{Got, bearer, request};
use svc_tests::oauth::HOST;
use svc_tests::tool_desk::{ToolDesk as Desk, calling, text};
use svc_tests::tool_server::{Reply, Speaks, ToolServer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const ASKING: &str =
    r#"{"name":"Ask","actions":["mcp.call"],"limits":{"count":{"max":1,"period":"day"},"onLimit":"ask"}}"#;

/// A desk whose agent's calls ask from now on.
async fn desk() -> (Desk, String) {
    desk_of(Speaks::Modern).await
}

async fn desk_of(speaks: Speaks) -> (Desk, String) {
    let mut desk = Desk::with(speaks, ASKING).await;
    let id = desk.server(json!({})).await["id"].as_str().unwrap().to_owned();
    assert_eq!(text(&desk.call("read_one", json!({ "id": "0" })).await), "done");
    (desk, id)
}

/// The id of the action that a call was answered with.
fn action(result: &Value) -> String {
    text(result).lines().find_map(|it| it.strip_prefix("action: ")).unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// Approves what this action waits for.
async fn approve(desk: &mut Desk, action: &str) -> Got {
    let waiting = desk.api("GET", "approvals?state=waiting", None).await.ok()["data"].clone();
    let mine = waiting.as_array().unwrap().iter().find(|it| it["subject"]["actionId"] == action).unwrap().clone();
    desk.api("POST", &format!("approvals/{}/approve", mine["id"].as_str().unwrap()), Some(&json!({}))).await
}

/// Whoever decides reads what the tool would be given; where the gate keeps none of it, how it begins. The agent is not told again
/// what it sent.
#[tokio::test]
async fn whoever_decides_sees_the_arguments() {
    let (mut desk, _) = desk().await;
    let arguments = json!({ "amount": 13_371_337, "to": "<b>DE89 3704</b>" });
    let asked = action(&desk.call("read_one", arguments.clone()).await);
    let seen = desk.api("GET", &format!("actions/{asked}"), None).await.ok();
    assert_eq!(seen["tool"], json!({ "name": "read_one", "server": "crm", "input": arguments }));
    let listed = desk.actions().await;
    assert!(listed.iter().all(|it| it["tool"].get("input").is_none()), "{listed:?}");
    let key = desk.agent.key.clone();
    let own = desk.client.get(&format!("/v1/actions/{asked}"), &key).await.ok();
    assert_eq!(own["tool"], json!({ "name": "read_one", "server": "crm" }));

    for (long, head) in [
        (json!({ "first": "DE89 3704", "rest": "x".repeat(70_000) }), r#"{"first":"DE89 3704","rest":"xxx"#),
        (json!({ "amount": 9_007_199_254_740_993_u64 }), r#"{"amount":9007199254740993}"#),
    ] {
        let asked = action(&desk.call("read_one", long).await);
        let seen = desk.api("GET", &format!("actions/{asked}"), None).await.ok();
        assert!(seen["summary"].as_str().unwrap().contains(&format!("begin: {head}")), "{seen}");
    }
}

/// A deny list that came after the approval holds: the gate asks it again before it does what was approved.
#[tokio::test]
async fn no_approval_passes_a_deny_list_that_came_after_it() {
    let (mut desk, _) = desk().await;
    let arguments = json!({ "id": "1" });
    let asked = action(&desk.call("read_one", arguments.clone()).await);
    approve(&mut desk, &asked).await.ok();
    let deny = json!({ "name": "No", "actions": ["mcp.call"], "tools": { "deny": ["crm/read_one"] } });
    let path = format!("agents/{}/mandates", desk.agent.id);
    let made = desk.api("POST", &path, Some(&deny)).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let _ = desk.server.heard();
    let refused = desk.call("read_one", arguments).await;
    assert!(text(&refused).contains("on a deny list"), "{refused}");
    assert!(desk.server.calls().is_empty());
    let seen = desk.api("GET", &format!("actions/{asked}"), None).await.ok();
    assert!(seen.get("consumedAt").is_none(), "what was not done is not used up: {seen}");
}

/// A no is told with the note of the person who said it, on one line, and the call is not made.
#[tokio::test]
async fn a_no_to_a_call_is_told_with_its_note() {
    let (mut desk, _) = desk().await;
    let asked = desk.call("read_one", json!({ "id": "1" })).await;
    let approval = asked["_meta"]["svc/decision"]["approval"]["id"].as_str().unwrap().to_owned();
    let no = json!({ "note": "use the copy,\n  fix: not the original" });
    desk.api("POST", &format!("approvals/{approval}/deny"), Some(&no)).await.ok();
    let _ = desk.server.heard();
    let refused = desk.call("read_one", json!({ "id": "1" })).await;
    let told = text(&refused);
    let said = "a person said no; their note: use the copy, fix: not the original\naction: act_";
    assert!(told.starts_with("denied: ") && told.contains(said), "{told}");
    assert!(desk.server.calls().is_empty());
}

/// A call that used up an approval is svc's to report: its agent is not told to make it once more, whatever became of it.
#[tokio::test]
async fn a_call_that_svc_makes_is_not_told_to_be_done() {
    let (mut desk, _) = desk().await;
    let asked = action(&desk.call("read_one", json!({ "id": "1" })).await);
    approve(&mut desk, &asked).await.ok();
    desk.server.reply(Reply::Closed);
    assert_eq!(desk.call("read_one", json!({ "id": "1" })).await["isError"], true);
    let (credential, arguments) = (bearer(&desk.agent.key), json!({ "actionId": asked }));
    let body = calling("explain_decision", arguments).to_string();
    let headers = [("host", HOST), ("authorization", &*credential)];
    let told = desk.client.ask("POST", "/mcp", &headers, body.as_bytes()).await.ok();
    let told = &told["result"]["structuredContent"];
    assert_eq!(told["decision"], "allow", "{told}");
    assert!(told["nextStep"].as_str().unwrap().starts_with("Do not do it yourself: svc makes this call"), "{told}");
}

/// What was approved of a server is not sent to another address that has its name by now.
#[tokio::test]
async fn an_approval_is_for_the_server_that_was_asked_about() {
    let (mut desk, id) = desk().await;
    let arguments = json!({ "id": "1" });
    let asked = action(&desk.call("read_one", arguments.clone()).await);
    approve(&mut desk, &asked).await.ok();
    desk.site.shift(Span::millis(1));
    let other = ToolServer::start(Speaks::Modern).await;
    desk.api("PATCH", &format!("mcp-servers/{id}"), Some(&json!({ "url": other.url() }))).await.ok();
    let waits = desk.send(&calling("read_one", arguments.clone()), &[]).await.ok()["result"].clone();
    assert!(text(&waits).contains("approval_required"), "{waits}");
    assert!(other.calls().is_empty());
    let anew = action(&waits);
    assert_ne!(anew, asked);
    approve(&mut desk, &anew).await.ok();
    assert_eq!(text(&desk.call("read_one", arguments).await), "done");
    assert_eq!(other.calls().len(), 1);
}

/// A call that cannot be sent, as its server is gone, uses up no approval: the same call goes on once the server is back, and once.
#[tokio::test]
async fn an_approval_outlasts_a_server_that_is_away() {
    for speaks in [Speaks::Modern, Speaks::Legacy { sessions: true }, Speaks::Legacy { sessions: false }] {
        let (mut desk, _) = desk_of(speaks).await;
        let arguments = json!({ "id": "1" });
        let asked = action(&desk.call("read_one", arguments.clone()).await);
        approve(&mut desk, &asked).await.ok();
        desk.server.leave().await;
        let _ = desk.server.heard();
        for _ in 0..2 {
            let refused = desk.call("read_one", arguments.clone()).await;
            assert!(text(&refused).contains("gave no answer: no connection"), "{speaks:?} {refused}");
        }
        let seen = desk.api("GET", &format!("actions/{asked}"), None).await.ok();
        assert!(seen.get("consumedAt").is_none() && seen["status"] == "allowed", "{speaks:?} {seen}");
        desk.server.come_back().await;
        assert_eq!(text(&desk.call("read_one", arguments.clone()).await), "done", "{speaks:?}");
        let seen = desk.api("GET", &format!("actions/{asked}"), None).await.ok();
        assert!(seen["consumedAt"].is_string(), "{speaks:?} {seen}");
        let waits = desk.call("read_one", arguments).await;
        assert!(text(&waits).contains("approval_required"), "{speaks:?} {waits}");
        assert_eq!(desk.server.calls().len(), 1, "{speaks:?}");
    }
}

/// Nor does a call for which there is no place at its server.
#[tokio::test]
async fn an_approval_outlasts_a_server_that_is_busy() {
    let mut desk = Desk::new(Speaks::Modern).await;
    desk.agent = desk.site.agent(&[
        r#"{"name":"Ask","actions":["mcp.call"],"tools":{"allow":["crm/read_one"]},"limits":{"count":{"max":1,"period":"day"},"onLimit":"ask"}}"#,
        r#"{"name":"Free","actions":["mcp.call"],"tools":{"allow":["crm/write_one"]}}"#,
    ]);
    desk.server(json!({})).await;
    let arguments = json!({ "id": "1" });
    assert_eq!(text(&desk.call("read_one", json!({ "id": "0" })).await), "done");
    let asked = action(&desk.call("read_one", arguments.clone()).await);
    approve(&mut desk, &asked).await.ok();
    desk.server.reply(Reply::Stalled(vec![]));
    let (credential, before) = (bearer(&desk.agent.key), desk.server.count());
    let headers = [("host", HOST), ("authorization", &*credential), ("accept", "text/event-stream")];
    let mut sockets = Vec::new();
    for number in 0..64 {
        let mut socket = TcpStream::connect(desk.site.address).await.unwrap();
        let body = calling("write_one", json!({ "id": number.to_string() })).to_string();
        socket.write_all(&request("POST", "/mcp/proxy/crm", &headers, body.as_bytes())).await.unwrap();
        sockets.push(socket);
    }
    desk.server.until_heard(before + 64).await;
    let refused = desk.call("read_one", arguments.clone()).await;
    assert!(text(&refused).contains("gave no answer: too many of this agent's calls"), "{refused}");
    drop(sockets);
    desk.server.until_all_cut(64).await;
    desk.server.reply(Reply::Text("done".to_owned()));
    assert_eq!(text(&desk.call("read_one", arguments).await), "done");
    let seen = desk.api("GET", &format!("actions/{asked}"), None).await.ok();
    assert!(seen["consumedAt"].is_string(), "{seen}");
}
