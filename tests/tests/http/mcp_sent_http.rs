//! What goes on of a call to a server behind this one, and when: what was looked at, as long as it may.

use serde_json::{Value, json};
use svc_tests::client::{Client, Got, PATIENCE, bearer, request};
use svc_tests::oauth::HOST;
use svc_tests::tool_desk::{ToolDesk as Desk, calling, message, text};
use svc_tests::tool_server::{Reply, Speaks};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const ASKING: &str =
    r#"{"name":"Ask","actions":["mcp.call"],"limits":{"count":{"max":1,"period":"day"},"onLimit":"ask"}}"#;
const LEGACY: Speaks = Speaks::Legacy { sessions: true };
/// Messages by whose answers a server has seen that a client has gone.
const A_WHILE: usize = 300;

/// A desk whose agent's calls ask from now on, and the path of its server.
async fn asking(speaks: Speaks) -> (Desk, String) {
    let mut desk = Desk::with(speaks, ASKING).await;
    let path = format!("mcp-servers/{}", desk.server(json!({})).await["id"].as_str().unwrap());
    assert_eq!(text(&desk.call("read_one", json!({ "id": "0" })).await), "done");
    (desk, path)
}

/// Has this call approved, to which the agent was told to come again.
async fn approved(desk: &mut Desk, arguments: &Value) -> String {
    let asked = desk.call("read_one", arguments.clone()).await;
    let action = text(&asked).lines().find_map(|it| it.strip_prefix("action: ")).unwrap().to_owned();
    let waiting = desk.api("GET", "approvals?state=waiting", None).await.ok()["data"].clone();
    let mine = waiting.as_array().unwrap().iter().find(|it| it["subject"]["actionId"] == action).unwrap().clone();
    let path = format!("approvals/{}/approve", mine["id"].as_str().unwrap());
    desk.api("POST", &path, Some(&json!({}))).await.ok();
    action
}

/// Has the server be met anew by whoever calls it next.
async fn met_anew(desk: &mut Desk, path: &str) {
    for enabled in [false, true] {
        desk.api("PATCH", path, Some(&json!({ "enabled": enabled }))).await.ok();
    }
    assert_eq!(desk.listed().await.len(), 2);
    let _ = desk.server.heard();
}

/// Sends a call whose arguments are these to the byte.
async fn send(desk: &mut Desk, arguments: &str) -> Got {
    let credential = bearer(&desk.agent.key);
    let headers = [("host", HOST), ("authorization", &*credential), ("accept", "application/json")];
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"read_one","arguments":{arguments}}}}}"#
    );
    desk.client.ask("POST", "/mcp/proxy/crm", &headers, body.as_bytes()).await
}

/// Makes a call beside what else is done.
fn begun(desk: &Desk, arguments: &Value) -> JoinHandle<Got> {
    let (address, credential) = (desk.site.address, bearer(&desk.agent.key));
    let body = calling("read_one", arguments.clone()).to_string();
    tokio::spawn(async move {
        let headers = [("host", HOST), ("authorization", &*credential)];
        Client::connect(address).await.ask("POST", "/mcp/proxy/crm", &headers, body.as_bytes()).await
    })
}

/// Lets a while go by.
async fn a_while(desk: &mut Desk) {
    for _ in 0..A_WHILE {
        desk.send(&message("ping", json!({})), &[]).await.ok();
    }
}

/// What was looked at goes on, and nothing that stood between: no space, and no digits that a reader of doubles passes over.
#[tokio::test]
async fn what_was_approved_is_what_goes_on() {
    let (mut desk, _) = asking(Speaks::Modern).await;
    approved(&mut desk, &json!({ "id": "a b", "n": 0, "m": 1.5 })).await;
    let _ = desk.server.heard();
    for other in [
        r#"{"id":"a b","n":1e-400,"m":1.5}"#.to_owned(),
        format!(r#"{{"id":"a b","n":0,"m":1.5{}1}}"#, "0".repeat(1_000)),
    ] {
        let waits = send(&mut desk, &other).await.ok()["result"].clone();
        assert!(text(&waits).contains("approval_required"), "{waits}");
    }
    assert!(desk.server.calls().is_empty());
    let spaced = format!(r#"{{ "n" : 0.0,{}"m":15e-1, "id":"a \u0062" }}"#, " \n".repeat(50_000));
    assert_eq!(text(&send(&mut desk, &spaced).await.ok()["result"]), "done");
    let calls = desk.server.calls();
    assert!(calls[0].text.contains(r#""arguments":{"id":"a b","m":1.5,"n":0}"#) && calls[0].text.len() < 1_000);

    // What readers may take for different numbers goes on to the byte.
    let written = r#"{ "n": 0.1000000000000000055511151231257827, "id": "1" }"#;
    let asked = send(&mut desk, written).await.ok()["result"].clone();
    let action = text(&asked).lines().find_map(|it| it.strip_prefix("action: ")).unwrap().to_owned();
    let seen = desk.api("GET", &format!("actions/{action}"), None).await.ok();
    assert_eq!(seen["tool"]["inputBytes"], written.len(), "{seen}");
    let shown = r#"begin: {"n":0.1000000000000000055511151231257827,"id":"1"}"#;
    assert!(seen["summary"].as_str().unwrap().contains(shown), "{seen}");
    desk.site.audit();
}

/// Space between what arguments say does not take the place of it in what whoever decides is shown.
#[tokio::test]
async fn space_hides_no_arguments() {
    let (mut desk, _) = asking(Speaks::Modern).await;
    let spaced = format!(r#"{{"n":1e30,{}"cmd":"rm \" -rf"}}"#, " ".repeat(300));
    let asked = send(&mut desk, &spaced).await.ok()["result"].clone();
    let action = text(&asked).lines().find_map(|it| it.strip_prefix("action: ")).unwrap().to_owned();
    let seen = desk.api("GET", &format!("actions/{action}"), None).await.ok();
    assert!(seen["summary"].as_str().unwrap().ends_with(r#"begin: {"n":1e30,"cmd":"rm \" -rf"}"#), "{seen}");
}

/// By what a client is told of progress is a text of its own that nobody looks at: it goes no further, and it has a bound.
#[tokio::test]
async fn a_clients_token_of_progress_goes_no_further() {
    let mut desk = Desk::new(Speaks::Modern).await;
    desk.server(json!({})).await;
    for token in [json!("planted".repeat(36)), json!(77_777_777)] {
        let params = json!({ "name": "read_one", "arguments": {}, "_meta": { "progressToken": token } });
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": "p", "progress": 1 } });
        desk.server.reply(Reply::Stream(vec![note], "done".to_owned()));
        let told = desk.stream(&message("tools/call", params)).await;
        assert!(told.contains(&format!("\"progressToken\":{token}")), "{told}");
        let calls = desk.server.calls();
        assert!(!calls[0].text.contains("planted") && !calls[0].text.contains("7777"), "{}", calls[0].text);
        assert!(calls[0].body["params"]["_meta"]["progressToken"].is_u64());
    }
    let params = json!({ "name": "read_one", "_meta": { "progressToken": "x".repeat(257) } });
    let got = desk.send(&message("tools/call", params), &[]).await.ok();
    assert_eq!(got["error"]["code"], -32_602, "{got}");
    assert!(desk.server.calls().is_empty());
}

/// What changes while a server is being met counts, of calls that are allowed at once and of those that a person approved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_while_a_server_is_met_counts() {
    for is_approved in [false, true] {
        for change in ["off", "denied", "gone", "credential", "stopped", "mandate"] {
            let mut desk = Desk::with(LEGACY, ASKING).await;
            let id = desk.server(json!({})).await["id"].as_str().unwrap().to_owned();
            let (path, arguments) = (format!("mcp-servers/{id}"), json!({ "id": "1" }));
            if is_approved {
                desk.call("read_one", json!({ "id": "0" })).await;
                approved(&mut desk, &arguments).await;
                met_anew(&mut desk, &path).await;
            }
            let count = desk.server.count();
            desk.server.hold(Some("initialize"));
            let _ = desk.server.heard();
            let call = begun(&desk, &arguments);
            desk.server.until_heard(count + 1).await;
            match change {
                "off" => drop(desk.api("PATCH", &path, Some(&json!({ "enabled": false }))).await.ok()),
                "denied" => drop(desk.api("PATCH", &path, Some(&json!({ "tools": { "deny": ["*"] } }))).await.ok()),
                "gone" => assert_eq!(desk.api("DELETE", &path, None).await.status, 204),
                "credential" => desk.show(&id, "another-secret"),
                "stopped" => desk.freeze(),
                _ => {
                    let agent = format!("agents/{}", desk.agent.id);
                    let mandates = desk.api("GET", &agent, None).await.ok()["mandates"].clone();
                    let mandate = mandates[0]["id"].as_str().unwrap().to_owned();
                    assert_eq!(desk.api("DELETE", &format!("mandates/{mandate}"), None).await.status, 204);
                }
            }
            desk.server.hold(None);
            let got = call.await.unwrap();
            match change {
                "stopped" => assert_eq!(got.status, 403, "{}", got.text()),
                "off" | "gone" => assert_eq!(got.status, 404, "{}", got.text()),
                _ => assert_eq!(got.ok()["result"]["isError"], true, "{change}"),
            }
            assert!(desk.server.calls().is_empty(), "{change} {is_approved}");
        }
    }
}

/// A call that is called off, or whose client goes, while its server is being met has not run: nothing is used up for it, and nothing
/// counts as done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_called_off_before_it_is_sent_has_not_run() {
    for is_said in [true, false] {
        let (mut desk, path) = asking(LEGACY).await;
        let arguments = json!({ "id": "1" });
        let action = approved(&mut desk, &arguments).await;
        met_anew(&mut desk, &path).await;
        let (actions, count) = (desk.actions().await.len(), desk.server.count());
        desk.server.hold(Some("initialize"));
        if is_said {
            let call = begun(&desk, &arguments);
            desk.server.until_heard(count + 1).await;
            let off = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
            assert_eq!(desk.send(&off, &[]).await.status, 202);
            let told = text(&timeout(PATIENCE, call).await.unwrap().unwrap().ok()["result"]);
            assert!(told.contains("the tool has not run: its client has called it off"), "{told}");
        } else {
            let credential = bearer(&desk.agent.key);
            let headers = [("host", HOST), ("authorization", &*credential)];
            let body = calling("read_one", arguments.clone()).to_string();
            let mut socket = TcpStream::connect(desk.site.address).await.unwrap();
            socket.write_all(&request("POST", "/mcp/proxy/crm", &headers, body.as_bytes())).await.unwrap();
            desk.server.until_heard(count + 1).await;
            drop(socket);
            a_while(&mut desk).await;
        }
        desk.server.hold(None);
        a_while(&mut desk).await;
        assert!(desk.server.calls().is_empty(), "{is_said}");
        let seen = desk.api("GET", &format!("actions/{action}"), None).await.ok();
        assert!(seen.get("consumedAt").is_none(), "{is_said} {seen}");
        assert_eq!(desk.actions().await.len(), actions, "{is_said}");
        assert_eq!(text(&desk.call("read_one", arguments).await), "done", "{is_said}");
        desk.site.audit();
    }
}

/// What a person approved is done though the same call would be denied if it were asked anew, and its server met for it; another call
/// that is denied has it met for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_approved_is_met_for_whatever_is_asked_anew() {
    let (mut desk, path) = asking(LEGACY).await;
    let arguments = json!({ "id": "1" });
    let action = approved(&mut desk, &arguments).await;
    let of_agent = format!("agents/{}/mandates", desk.agent.id);
    let mandates = desk.api("GET", &of_agent, None).await.ok();
    let mandate = format!("mandates/{}", mandates["data"][0]["id"].as_str().unwrap());
    desk.api("PATCH", &mandate, Some(&json!({ "limits": { "onLimit": "deny" } }))).await.ok();
    met_anew(&mut desk, &path).await;
    assert!(text(&desk.call("read_one", json!({ "id": "2" })).await).starts_with("denied"));
    assert!(desk.server.heard().is_empty(), "nobody meets it in vain");
    assert_eq!(text(&desk.call("read_one", arguments).await), "done");
    let seen = desk.api("GET", &format!("actions/{action}"), None).await.ok();
    assert!(seen["consumedAt"].is_string(), "{seen}");
    desk.site.audit();
}

/// What became of a call that a person approved the gate tells, which made it, and its agent does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_does_not_settle_what_the_gate_does() {
    let (mut desk, _) = asking(LEGACY).await;
    let arguments = json!({ "id": "1" });
    let action = approved(&mut desk, &arguments).await;
    desk.server.hold(Some("tools/call"));
    let (count, call) = (desk.server.count(), begun(&desk, &arguments));
    desk.server.until_heard(count + 1).await;
    let key = desk.agent.key.clone();
    let refused = desk.client.settle(&key, &action, &json!({ "status": "cancelled" })).await;
    assert_eq!((refused.status, &refused.json()["error"]["type"]), (409, &json!("not_allowed")), "{}", refused.text());
    desk.server.hold(None);
    assert_eq!(text(&call.await.unwrap().ok()["result"]), "done");
    let seen = desk.api("GET", &format!("actions/{action}"), None).await.ok();
    assert_eq!((&seen["status"], &seen["outcome"]["status"]), (&json!("completed"), &json!("completed")), "{seen}");
    desk.site.audit();
}

/// A tool may answer with an object alone, as servers do that read the protocol so; a client finds it beside an empty list.
#[tokio::test]
async fn an_object_alone_is_a_result() {
    let mut desk = Desk::new(Speaks::Modern).await;
    desk.server(json!({})).await;
    for content in [json!({}), json!({ "content": null })] {
        let mut result = json!({ "structuredContent": { "a": 1 }, "resultType": null });
        result.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
        desk.server.reply(Reply::Result(result));
        let told = desk.call("read_one", json!({})).await;
        assert_eq!((&told["content"], &told["structuredContent"]), (&json!([]), &json!({ "a": 1 })), "{told}");
        let whole = modern(&mut desk).await;
        assert_eq!(whole.matches("resultType").count(), 1, "{whole}");
        assert!(whole.contains(r#""resultType":"complete""#), "{whole}");
        assert_eq!(desk.actions().await[0]["status"], "completed");
    }
    desk.server.reply(Reply::Result(json!({ "structuredContent": [1] })));
    assert!(text(&desk.call("read_one", json!({})).await).contains("its result is none of a tool"));
}

/// Calls the tool as a client without handshake; the answer's text.
async fn modern(desk: &mut Desk) -> String {
    const META: [&str; 2] = ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"];
    let mut params = json!({ "name": "read_one", "arguments": {} });
    params["_meta"] = json!({ META[0]: "2026-07-28", META[1]: {} });
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "read_one")];
    let got = desk.send(&message("tools/call", params), &headers).await;
    assert_eq!(got.status, 200);
    got.text().to_owned()
}

/// Clients of both eras are told the decision as the interface has it, beside what is told of this server.
#[tokio::test]
async fn a_refusal_holds_the_decision_in_both_eras() {
    let (mut desk, _) = asking(Speaks::Modern).await;
    let told = desk.call("read_one", json!({})).await;
    assert_eq!(told["_meta"]["svc/decision"]["decision"], "approval_required", "{told}");
    let told: Value = serde_json::from_str(&modern(&mut desk).await).unwrap();
    let meta = &told["result"]["_meta"];
    assert_eq!(meta["svc/decision"]["decision"], "approval_required", "{told}");
    assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "svc", "{told}");
}
