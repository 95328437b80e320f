//! The MCP server over a real socket: both eras, its tools, and everything that is wrong with a message.

use serde_json::{Value, json};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::state::gateway::{CellAt, Payer};
use svc_core::state::people::{KeyScope, Role, Settings};
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::id::{KeyId, PrincipalId};
use svc_core::value::text::Note;
use svc_tests::client::{Client, Got, bearer};
use svc_tests::oauth::{HOST, connect, public, refresh, tokens};
use svc_tests::requests::{OFFICE, payment, with};
use svc_tests::site::Site;

const MODERN: &str = "2026-07-28";
const META: [&str; 2] = ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"];

/// Sends a message as it is.
async fn send(client: &mut Client, key: &str, body: &str, more: &[(&str, &str)]) -> Got {
    let credential = bearer(key);
    let mut headers =
        vec![("host", HOST), ("content-type", "application/json"), ("authorization", credential.as_str())];
    headers.extend_from_slice(more);
    client.ask("POST", "/mcp", &headers, body.as_bytes()).await
}

/// A request of the era with handshake.
async fn legacy(client: &mut Client, key: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let got = send(client, key, &body.to_string(), &[("mcp-protocol-version", "2025-11-25")]).await;
    let answer = got.ok();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
    answer
}

/// A request of the stateless era.
async fn modern(client: &mut Client, key: &str, method: &str, params: Value, change: &[(&str, &str)]) -> Got {
    let mut params = params;
    params["_meta"] = json!({ META[0]: MODERN, META[1]: {} });
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params }).to_string();
    let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
    if method == "tools/call" {
        headers.push(("mcp-name", name.as_str()));
    }
    for (header, value) in change {
        headers.retain(|(known, _)| known != header);
        if !value.is_empty() {
            headers.push((header, value));
        }
    }
    send(client, key, &body, &headers).await
}

/// Calls a tool; its result.
async fn call(client: &mut Client, key: &str, tool: &str, arguments: Value) -> Value {
    let answer = legacy(client, key, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    answer["result"].clone()
}

/// What a tool gives, which has to agree with its own schema and its text.
async fn given(client: &mut Client, key: &str, tool: &str, arguments: Value) -> Value {
    let result = call(client, key, tool, arguments).await;
    assert_eq!(result["isError"], false, "{result}");
    let structured = &result["structuredContent"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, *structured);
    let listed = legacy(client, key, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let schema = &tools.iter().find(|it| it["name"] == tool).unwrap()["outputSchema"];
    let validator = jsonschema::validator_for(schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(structured).map(|it| it.to_string()).collect();
    assert!(faults.is_empty(), "{tool}: {faults:?} {structured}");
    structured.clone()
}

/// The code of a JSON-RPC error and the HTTP status it came with.
fn code(got: &Got) -> (u16, i64) {
    (got.status, got.json()["error"]["code"].as_i64().unwrap_or_default())
}

/// The era with handshake: `initialize` in every version, `ping`, the list, notifications.
#[tokio::test]
async fn the_era_with_handshake_is_spoken() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    for (asked, spoken) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let params =
            json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let got = send(&mut client, &agent.key, &body.to_string(), &[]).await;
        let result = got.ok()["result"].clone();
        assert_eq!(result["protocolVersion"], spoken);
        assert!(result["capabilities"]["tools"].is_object() && result["serverInfo"]["name"] == "svc");
        assert_eq!(got.header("mcp-session-id"), None);
    }
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let got = send(&mut client, &agent.key, &note, &[("mcp-protocol-version", "2025-11-25")]).await;
    assert_eq!((got.status, got.body.len()), (202, 0));
    assert_eq!(legacy(&mut client, &agent.key, "ping", json!({})).await["result"], json!({}));
    let first = legacy(&mut client, &agent.key, "tools/list", json!({})).await["result"].clone();
    assert_eq!(first, legacy(&mut client, &agent.key, "tools/list", json!({})).await["result"]);
    let names: Vec<&str> = first["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "authorize_action",
            "settle_action",
            "check_action_status",
            "explain_decision",
            "spend_summary",
            "find_waste",
            "unwatched_keys"
        ]
    );
    assert!(first.get("nextCursor").is_none() && first.get("resultType").is_none());
    for tool in first["tools"].as_array().unwrap() {
        assert_eq!((&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]), (&json!("object"), &json!("object")));
        assert!(jsonschema::validator_for(&tool["inputSchema"]).is_ok(), "{tool}");
    }
}

/// The stateless era: discovery, the list, a call; its headers say what the body says.
#[tokio::test]
async fn the_stateless_era_is_spoken() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    let key = agent.key.as_str();
    let found = modern(&mut client, key, "server/discover", json!({}), &[]).await.ok();
    assert_eq!(found["id"], "a");
    let result = &found["result"];
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("private")));
    assert!(result["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)), "{result}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "svc");
    let listed = modern(&mut client, key, "tools/list", json!({}), &[]).await.ok()["result"].clone();
    for (name, default) in [("spend_summary", "day"), ("find_waste", "month")] {
        let tool = listed["tools"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(tool["inputSchema"]["properties"]["window"]["default"], default, "{name}");
    }
    assert!(listed["ttlMs"].as_i64().unwrap() >= 0 && listed["tools"].as_array().unwrap().len() == 7);
    let params = json!({ "name": "spend_summary" });
    let called = modern(&mut client, key, "tools/call", params.clone(), &[]).await.ok()["result"].clone();
    assert_eq!((&called["isError"], &called["resultType"]), (&json!(false), &json!("complete")));
    let encoded = [("mcp-name", "=?base64?c3BlbmRfc3VtbWFyeQ==?=")];
    assert_eq!(modern(&mut client, key, "tools/call", params.clone(), &encoded).await.status, 200);
    for change in [
        ("mcp-protocol-version", ""),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-method", ""),
        ("mcp-method", "tools/list"),
        ("mcp-name", ""),
        ("mcp-name", "find_waste"),
    ] {
        let got = modern(&mut client, key, "tools/call", params.clone(), &[change]).await;
        assert_eq!(code(&got), (400, -32_020), "{change:?}");
    }
    // Of what is not answered the headers say what the body says as well.
    let params = json!({ "_meta": { META[0]: MODERN, META[1]: {} }, "name": "find_waste" });
    for (method, header, name, expected) in [
        ("notifications/cancelled", "notifications/cancelled", "", 202),
        ("notifications/cancelled", "notifications/other", "", 400),
        ("notifications/cancelled", "", "", 400),
        ("tools/call", "tools/call", "find_waste", 202),
        ("tools/call", "tools/call", "spend_summary", 400),
        ("tools/call", "tools/call", "", 400),
    ] {
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", header), ("mcp-name", name)];
        let headers: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let got = send(&mut client, key, &note, &headers).await;
        assert_eq!(got.status, expected, "{method} {header} {name}");
        assert!(expected == 202 || code(&got) == (400, -32_020), "{method} {header} {name}");
    }
    for method in ["initialize", "initialize/x", "ping", "resources/list", "logging/setLevel"] {
        assert_eq!(code(&modern(&mut client, key, method, json!({}), &[]).await), (404, -32_601), "{method}");
    }
    for meta in [json!({ META[0]: MODERN }), json!({ META[1]: {} }), json!({ META[0]: 1, META[1]: {} })] {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string();
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
        assert_eq!(code(&send(&mut client, key, &body, &headers).await), (400, -32_602), "{meta}");
    }
    let meta = json!({ META[0]: "2030-01-01", META[1]: {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string();
    let headers = [("mcp-protocol-version", "2030-01-01"), ("mcp-method", "tools/list")];
    let got = send(&mut client, key, &body, &headers).await;
    assert_eq!(code(&got), (400, -32_022));
    let data = got.json()["error"]["data"].clone();
    assert!(data["requested"] == "2030-01-01" && data["supported"].as_array().unwrap().len() == 4, "{data}");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(code(&send(&mut client, key, &body, &[("mcp-protocol-version", "1999-01-01")]).await), (400, -32_022));
}

/// What is no message is a fault with its code; ids come back as they were sent.
#[tokio::test]
async fn what_is_no_message_is_a_fault() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    let key = agent.key.as_str();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let within = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"find_waste","arguments":{{"x":{deep}}}}}}}"#
    );
    for (body, status, expected) in [
        ("", 400, -32_700),
        ("{", 400, -32_700),
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}"#, 400, -32_700),
        (deep.as_str(), 400, -32_700),
        (within.as_str(), 400, -32_700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32_600),
        ("[]", 400, -32_600),
        ("1", 400, -32_600),
        (r#"{"id":1,"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, 400, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, 200, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, 200, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#, 200, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_tool"}}"#, 200, -32_602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_waste","arguments":[]}}"#,
            200,
            -32_602,
        ),
    ] {
        let got = send(&mut client, key, body, &[]).await;
        assert_eq!(code(&got), (status, expected), "{body:.80}");
        let (error, data) = (got.json()["error"].clone(), got.json()["error"]["data"].clone());
        assert!(data["fix"].is_string() && data["docs"].is_string() && data["type"].is_string(), "{body:.80}: {data}");
        for member in ["type", "requestId", "fix", "docs"] {
            assert!(status == 200 || error[member] == data[member], "{body:.80}: {error}");
        }
    }
    let long = "x".repeat(10_000);
    for id in
        [json!("a \"b\""), json!(""), json!("null"), json!(long), json!(0), json!(-1), json!(9_007_199_254_740_993_i64)]
    {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
        assert_eq!(send(&mut client, key, &body, &[]).await.ok()["id"], id);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "nothing" }).to_string();
        assert_eq!(send(&mut client, key, &body, &[]).await.json()["id"], id);
    }
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} }).to_string();
    assert_eq!(send(&mut client, key, &answer, &[]).await.status, 202);
    let large = vec![b' '; (1 << 20) + 1];
    let got = client.ask("POST", "/mcp", &[("host", HOST), ("authorization", &bearer(key))], &large).await;
    assert_eq!(code(&got), (413, -32_600));
}

/// Every member of a message is of its kind, or the message is none.
#[tokio::test]
async fn members_of_another_kind_are_a_fault() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    for (body, expected) in [
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":false,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":["2.0"],"id":1,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":null,"id":1,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":["ping"]}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":1}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":false}"#, -32_602),
    ] {
        let got = send(&mut client, &agent.key, body, &[]).await;
        assert_eq!(code(&got), (400, expected), "{body}");
        assert!(got.json()["error"]["data"]["fix"].is_string(), "{body}");
    }
}

/// Who may speak: agents, from anywhere but a page of another origin; everybody else learns where the way in is.
#[tokio::test]
async fn agents_alone_are_answered() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let got = client.ask("POST", "/mcp", &[("host", HOST)], body.as_bytes()).await;
    let way = format!(
        "Bearer resource_metadata=\"{BASE_URL}/.well-known/oauth-protected-resource/mcp\", scope=\"svc:agent\""
    );
    assert_eq!((got.status, got.header("www-authenticate")), (401, Some(way.as_str())));
    let got = send(&mut client, "aat_unknown", &body, &[]).await;
    assert_eq!(got.header("www-authenticate"), Some(format!("{way}, error=\"invalid_token\"").as_str()));
    assert_eq!(got.json()["error"]["data"]["type"], "invalid_api_key");
    let inference = site.key(KeyScope::Inference);
    for key in [&inference, &site.key(KeyScope::Admin)] {
        let got = send(&mut client, key, &body, &[]).await;
        assert_eq!((got.status, got.kind()), (403, "agent_key_required".to_owned()));
        assert_eq!(got.header("www-authenticate"), Some(format!("{way}, error=\"insufficient_scope\"").as_str()));
    }
    let path = format!("/mcp?access_token={}", agent.key);
    assert_eq!(client.ask("POST", &path, &[("host", HOST)], body.as_bytes()).await.status, 401);
    for origin in ["https://evil.example", "null", "http://gate.example.com"] {
        let got = send(&mut client, &agent.key, &body, &[("origin", origin)]).await;
        assert_eq!((got.status, got.json()["error"]["data"]["type"].clone()), (403, json!("forbidden")), "{origin}");
    }
    assert_eq!(send(&mut client, &agent.key, &body, &[("origin", BASE_URL)]).await.status, 200);
    let headers = [("host", "evil.example"), ("authorization", &bearer(&agent.key))];
    assert_eq!(client.ask("POST", "/mcp", &headers, body.as_bytes()).await.status, 403);
    for method in ["GET", "DELETE", "OPTIONS"] {
        let got = client.ask(method, "/mcp", &[("host", HOST)], b"").await;
        assert_eq!((got.status, got.header("allow")), (405, Some("POST")), "{method}");
    }
    site.revoke(&agent.key);
    assert_eq!(send(&mut client, &agent.key, &body, &[]).await.status, 401);
}

/// An agent with nothing but MCP asks, is told, does, and reports; what another agent does it does not see.
#[tokio::test]
async fn an_agent_uses_the_gate_by_mcp_alone() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let id = public(&mut client).await;
    let key = connect(&mut client, &owner, &id, &agent.id.to_string()).await.access;
    let asked = given(&mut client, &key, "authorize_action", payment(100)).await;
    assert_eq!((&asked["decision"], &asked["status"]), (&json!("allow"), &json!("allowed")));
    assert_eq!(asked["agentId"], agent.id.to_string());
    assert!(asked["receipt"].is_string());
    let action = json!({ "actionId": asked["id"] });
    let read = given(&mut client, &key, "check_action_status", action.clone()).await;
    assert_eq!(read["id"], asked["id"]);
    let why = given(&mut client, &key, "explain_decision", action.clone()).await;
    assert_eq!((&why["decision"], &why["rule"]), (&json!("allow"), &asked["mandateId"]));
    let mut outcome = action.clone();
    (outcome["status"], outcome["amount"]) = (json!("completed"), json!(90));
    let settled = given(&mut client, &key, "settle_action", outcome.clone()).await;
    assert_eq!(settled["status"], "completed");
    let again = call(&mut client, &key, "settle_action", outcome).await;
    assert_eq!(again["isError"], true);
    let text = again["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("already_settled") && text.contains("\nfix: ") && text.contains("\ndocs: https://"),
        "{text}"
    );
    let large = given(&mut client, &key, "authorize_action", payment(10_000_000)).await;
    assert_ne!(large["decision"], "allow");
    let early = json!({ "actionId": large["id"], "status": "completed", "amount": 1 });
    let refused = call(&mut client, &key, "settle_action", early).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not_allowed") && text.contains("\nreason: "), "a model reads nothing else: {text}");
    let why = given(&mut client, &key, "explain_decision", json!({ "actionId": large["id"] })).await;
    assert!(!why["why"].as_array().unwrap().is_empty() && why["nextStep"].is_string(), "{why}");
    assert_eq!(why["wouldBeAllowed"]["changed"], "payment.amount", "{why}");
    let spent = given(&mut client, &key, "spend_summary", json!({ "window": "month" })).await;
    assert_eq!(spent["model"]["calls"], 0);
    assert!(spent["payments"].as_array().unwrap().iter().any(|it| it["settled"] == 90), "{spent}");
    let stranger = site.agent(&[OFFICE]);
    for tool in ["check_action_status", "explain_decision"] {
        let refused = call(&mut client, &stranger.key, tool, action.clone()).await;
        assert_eq!(refused["isError"], true);
        assert!(refused["content"][0]["text"].as_str().unwrap().starts_with("not_found"), "{refused}");
    }
    let theirs = given(&mut client, &stranger.key, "spend_summary", json!({ "window": "month" })).await;
    assert!(theirs["payments"].as_array().unwrap().iter().all(|it| it["settled"] == 0), "{theirs}");
}

/// Every fault of a settlement is told at once, with the outcomes that an action has and no task's.
#[tokio::test]
async fn a_settlement_is_told_every_fault_at_once() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    for (arguments, word, named) in [
        (json!({}), "invalid_status", "status, actionId"),
        (json!({ "status": "accepted", "actionId": 7 }), "invalid_status", "status, actionId"),
        (json!({ "status": "completed", "amount": -1 }), "invalid_amount", "amount, actionId"),
        (json!({ "status": "completed", "n": 9_007_199_254_740_993_u64 }), "invalid_request", "n, actionId"),
        (json!({ "status": "completed" }), "invalid_request", "actionId"),
    ] {
        let refused = call(&mut client, &agent.key, "settle_action", arguments).await;
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{word}: ")) && text.contains("`actionId` "), "{text}");
        assert!(text.contains(&format!("\nerrors: {named}\n")) && !text.contains("task"), "{text}");
    }
}

/// What remains is what mandates leave now, each by its own period, whatever the window; what was settled or holds money is that
/// of the payments themselves. A currency in which one has no limit by period has none, and one without a mandate has nothing.
#[tokio::test]
async fn what_remains_is_what_mandates_leave() {
    const DAILY: &str = r#"{"name":"Daily","actions":["payment"],"limits":{"currency":"EUR","perAction":40000,
        "perPeriod":{"amount":60000,"period":"day"}},"merchants":{"allow":["shop.example.com"]},"duplicates":"record"}"#;
    const FREE: &str = r#"{"name":"Free","actions":["payment"],"limits":{"currency":"USD","perAction":500}}"#;
    const TOOLS: &str = r#"{"name":"Tools","actions":["tool.call"],"limits":{"count":{"max":9,"period":"day"}}}"#;
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE, DAILY, FREE, TOOLS]));
    let mut spent = async |window: &str| {
        let answer = given(&mut client, &agent.key, "spend_summary", json!({ "window": window })).await;
        let row = |currency: &str| {
            let found = answer["payments"].as_array().unwrap().iter().find(|it| it["currency"] == currency);
            found.map(|it| [&it["settled"], &it["reserved"], &it["remaining"]].map(Value::as_i64))
        };
        (row("EUR"), row("USD"))
    };
    let nothing = [Some(0), Some(0), None];
    assert_eq!(spent("month").await, (Some([Some(0), Some(0), Some(560_000)]), Some(nothing)));
    let (mut other, mut paid) = (site.client().await, Vec::new());
    for amount in [10_000, 5_000, 2_000] {
        paid.push(other.authorize(&agent.key, &payment(amount)).await.ok());
    }
    for (action, body) in
        [(&paid[0], json!({ "status": "completed", "amount": 9_000 })), (&paid[1], json!({ "status": "failed" }))]
    {
        other.settle(&agent.key, action["id"].as_str().unwrap(), &body).await.ok();
    }
    for window in ["day", "week", "month"] {
        let (euro, dollar) = spent(window).await;
        assert_eq!(euro, Some([Some(9_000), Some(2_000), Some(549_000)]), "{window}");
        assert_eq!(dollar, Some(nothing));
    }
    site.advance(Span::hours(24));
    // All of it went through the daily limit, which is whole again the next day.
    assert_eq!(spent("day").await.0, Some([Some(0), Some(0), Some(560_000)]));
    let owner = site.member(Role::Owner);
    let agents = format!("/api/w/{}/agents/{}/mandates", site.workspace(), agent.id);
    let held = owner.ask(&mut other, "GET", &agents, None).await.ok()["data"].clone();
    for mandate in held.as_array().unwrap() {
        let path = format!("/api/w/{}/mandates/{}", site.workspace(), mandate["id"].as_str().unwrap());
        assert_eq!(owner.ask(&mut other, "DELETE", &path, None).await.status, 204);
    }
    let (euro, dollar) = spent("month").await;
    assert_eq!((euro.unwrap()[2], dollar), (Some(0), None));
}

/// Whether a key is used, rows tell too: a server that has just started takes none for idle that models were called with or whose
/// agent has asked, and a key beyond a page of a thousand is looked at like any other.
#[tokio::test]
async fn keys_in_use_are_not_told_as_idle() {
    let site = Site::start().await;
    let (mut client, owner, agent) = (site.client().await, site.member(Role::Owner), site.agent(&[OFFICE]));
    let path = |rest: &str| format!("/api/w/{}/{rest}", site.workspace());
    let body = json!({ "scope": { "kind": "workspace" }, "amount": 1_000_000, "period": "day", "ladder": [] });
    owner.ask(&mut client, "POST", &path("budgets"), Some(&body)).await.made();
    let shown = owner.ask(&mut client, "GET", &path(&format!("agents/{}", agent.id)), None).await.ok();
    let principal = PrincipalId::parse(shown["principalId"].as_str().unwrap()).unwrap();
    assert_ne!(principal, owner.principal);
    for number in 0..1_001 {
        let new = NewKey::of(&format!("ask_{number:043}"));
        let new = CreateKey::new(site.workspace(), By::Program, KeyScope::Inference, new);
        site.gate.execute(CreateKey { principal: Some(owner.principal), ..new }).unwrap();
    }
    let [idle, used] = [site.key(KeyScope::Inference), site.key(KeyScope::Inference)];
    let second = site.key(KeyScope::Agent(agent.id));
    let of = |told: &Value, key: &str| {
        let found = told["keys"].as_array().unwrap().iter().find(|it| key.starts_with(it["prefix"].as_str().unwrap()));
        found.map(|it| (it["id"].as_str().unwrap().to_owned(), it["reason"].as_str().unwrap().to_owned()))
    };
    let told = given(&mut client, &agent.key, "unwatched_keys", json!({})).await;
    assert_eq!(told["keys"].as_array().unwrap().len(), 4, "{told}");
    let key = KeyId::parse(&of(&told, &used).unwrap().0).unwrap();
    site.advance(Span::hours(31 * 24));
    client.authorize(&agent.key, &payment(100)).await.ok();
    let payer = Payer { key, agent: None, principal, team: None, class: None };
    let zone = Settings::default().timezone;
    site.plant(CellAt::new(site.workspace(), site.now(), &zone, &payer, Some("chat/large-1")).empty());
    let fresh = site.node(Span::seconds(0)).await;
    let told = given(&mut fresh.client().await, &agent.key, "unwatched_keys", json!({})).await;
    for (key, reason) in [(&idle, "unused"), (&used, "no_expiry"), (&second, "no_expiry"), (&agent.key, "no_expiry")] {
        assert_eq!(of(&told, key).unwrap().1, reason, "{told}");
    }
}

/// Waste and unwatched keys are told of the agent and the person it acts for.
#[tokio::test]
async fn waste_and_unwatched_keys_are_told() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    let waste = given(&mut client, &agent.key, "find_waste", json!({})).await;
    assert_eq!(waste["rows"].as_array().unwrap().len(), 5);
    site.key(KeyScope::Inference);
    let keys = given(&mut client, &agent.key, "unwatched_keys", json!({})).await["keys"].clone();
    assert!(keys.as_array().unwrap().len() >= 2, "{keys}");
    assert!(keys.as_array().unwrap().iter().all(|it| it["reason"] == "no_budget"), "{keys}");
    for (tool, arguments) in [
        ("find_waste", json!({ "window": "year" })),
        ("spend_summary", json!({ "window": 1 })),
        ("check_action_status", json!({})),
        ("settle_action", json!({ "status": "completed" })),
        ("authorize_action", json!({ "type": "payment" })),
        ("authorize_action", with(payment(1), "payment.amount", json!(100.0))),
        ("authorize_action", with(payment(1), "payment.amount", json!("100"))),
    ] {
        let refused = call(&mut client, &agent.key, tool, arguments).await;
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(refused["isError"] == true && text.starts_with("invalid_request: "), "{tool}: {text}");
        assert!(text.contains("`errors`") && text.contains("\nerrors: "), "a fix speaks of what is shown: {text}");
    }
    let meant = with(payment(0), "type", json!("pay"));
    let refused = call(&mut client, &agent.key, "authorize_action", meant).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\nerrors: type, payment.amount\n") && text.contains("\ndidYouMean: payment\n"), "{text}");
}

/// What the list says of a request to act is what the gate takes and refuses.
#[tokio::test]
async fn a_request_to_act_is_as_it_is_described() {
    let site = Site::start().await;
    let (mut client, agent) = (site.client().await, site.agent(&[OFFICE]));
    let listed = legacy(&mut client, &agent.key, "tools/list", json!({})).await;
    let schema = &listed["result"]["tools"][0]["inputSchema"];
    let validator = jsonschema::validator_for(schema).unwrap();
    let call = json!({ "type": "tool.call", "summary": "Look", "tool": { "name": "look" } });
    for (asked, is_taken) in [
        (payment(1), true),
        (payment(0), false),
        (with(call.clone(), "tool.inputDigest", json!(format!("sha256:{}", "0a".repeat(32)))), true),
        (with(call.clone(), "tool.inputDigest", json!("0a")), false),
        (with(call.clone(), "tool.inputBytes", json!(0)), true),
        (with(call, "tool.inputBytes", json!(-1)), false),
    ] {
        let got = client.authorize(&agent.key, &asked).await;
        assert_eq!((got.status == 200, validator.is_valid(&asked)), (is_taken, is_taken), "{asked}");
    }
    let name = schema["properties"]["tool"]["properties"]["name"]["description"].as_str().unwrap();
    assert!(name.contains("tool.call") && name.contains("mcp.call"), "{name}");
}

/// A stopped agent's key is told by the gate that it is stopped; its access tokens have ended.
#[tokio::test]
async fn a_stopped_agent_is_stopped_here_too() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let id = public(&mut client).await;
    let access = connect(&mut client, &owner, &id, &agent.id.to_string()).await.access;
    let reason = Note::parse("a test stops it").unwrap();
    let workspace = site.workspace();
    site.gate.execute(FreezeAgent { workspace, agent: agent.id, by: By::Program, reason }).unwrap();
    let denied = given(&mut client, &agent.key, "authorize_action", payment(100)).await;
    assert_eq!(denied["decision"], "deny");
    assert!(denied["signals"].as_array().unwrap().contains(&json!("agent_frozen")), "{denied}");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(send(&mut client, &access, &body, &[]).await.status, 401);
}

/// Keys and access tokens of a removed agent are told that it is stopped, whether this server has seen them before or not;
/// the gate's own routes say that it is gone, and a token that was renewed before is no token any more.
#[tokio::test]
async fn a_removed_agent_is_told_that_it_is_stopped() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let id = public(&mut client).await;
    let old = connect(&mut client, &owner, &id, &agent.id.to_string()).await;
    let renewed = tokens(&refresh(&mut client, &id, &old.refresh).await);
    let (seen, unseen) = (agent.key.clone(), site.key(KeyScope::Agent(agent.id)));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for key in [&seen, &renewed.access] {
        assert_eq!(send(&mut client, key, &body, &[]).await.status, 200);
    }
    let path = format!("/api/w/{}/agents/{}", site.workspace(), agent.id);
    assert_eq!(owner.ask(&mut client, "DELETE", &path, None).await.status, 204);
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "authorize_action", "arguments": payment(1) },
    });
    for key in [&seen, &unseen, &renewed.access] {
        for body in [&body, &message.to_string(), "{", ""] {
            let got = send(&mut client, key, body, &[]).await;
            assert_eq!(code(&got).0, 403, "{body}");
            let data = got.json()["error"]["data"].clone();
            assert_eq!((&data["type"], &data["agentId"]), (&json!("agent_stopped"), &json!(agent.id.to_string())));
            assert!(data["fix"].is_string() && data["docs"].is_string(), "{data}");
            assert!(data["evidenceRecord"].as_str().unwrap().starts_with("evd_"), "{data}");
        }
        assert_eq!(client.authorize(key, &payment(1)).await.kind(), "agent_not_found");
    }
    assert_eq!(send(&mut client, &old.access, &body, &[]).await.status, 401);
    assert_eq!(refresh(&mut client, &id, &renewed.refresh).await.status, 400);
}
