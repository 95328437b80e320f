//! What goes out with a call and what it brings in: sensitive data in every text of both shapes, the sources that tools bring
//! into a context, and what a preview says without calling anybody.

use serde_json::{Value, json};
use svc_core::state::people::{KeyScope, TokenScope};
use svc_core::value::Span;
use svc_tests::client::{PATIENCE, bearer};
use svc_tests::desk::{CHAT, Desk, MESSAGES, chat, streamed};
use svc_tests::requests::CRM;
use svc_tests::site::Fault;
use svc_tests::source;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// What is looked for of it is a group with the space before it: four digits alone stand in an identifier now and then.
const CARD: &str = "4242 4242 4242 4242";

/// Bodies of the chat shape, each with `text` at another place where it goes out.
fn chats(text: &str) -> Vec<(&'static str, Value)> {
    let of = |messages: Value| json!({ "model": "m", "max_tokens": 9, "messages": messages });
    let user = |content: Value| json!({ "role": "user", "content": content });
    let call = |arguments: &str| {
        json!({ "role": "assistant", "content": null,
            "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": arguments } }] })
    };
    let result = |content: &str| json!({ "role": "tool", "tool_call_id": "c1", "content": content });
    let halves = text.split_at(text.len() / 2);
    let parts = json!([{ "type": "text", "text": halves.0 }, { "type": "text", "text": halves.1 }]);
    vec![
        ("two parts together", of(json!([user(parts)]))),
        ("user", of(json!([user(json!(text))]))),
        ("a part", of(json!([user(json!([{ "type": "text", "text": text }]))]))),
        ("system", of(json!([{ "role": "system", "content": text }, user(json!("x"))]))),
        ("developer", of(json!([{ "role": "developer", "content": text }, user(json!("x"))]))),
        ("assistant", of(json!([user(json!("x")), { "role": "assistant", "content": text }, user(json!("x"))]))),
        ("arguments", of(json!([user(json!("x")), call(&json!({ "a": [text] }).to_string()), result("y")]))),
        ("a result", of(json!([user(json!("x")), call("{}"), result(text)]))),
    ]
}

/// The same of the messages shape.
fn messages(text: &str) -> Vec<(&'static str, Value)> {
    let of = |messages: Value| json!({ "model": "m", "max_tokens": 9, "messages": messages });
    let user = |content: Value| json!({ "role": "user", "content": content });
    let call = |input: Value| json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "c1", "name": "f", "input": input }] });
    let result = |content: Value| user(json!([{ "type": "tool_result", "tool_use_id": "c1", "content": content }]));
    let mut system = of(json!([user(json!("x"))]));
    system["system"] = json!([{ "type": "text", "text": text }]);
    let mut plain = of(json!([user(json!("x"))]));
    plain["system"] = json!(text);
    vec![
        ("user", of(json!([user(json!(text))]))),
        ("a part", of(json!([user(json!([{ "type": "text", "text": text }]))]))),
        ("system", system),
        ("plain system", plain),
        ("input", of(json!([user(json!("x")), call(json!({ "a": { "b": text } })), result(json!("y"))]))),
        ("a result", of(json!([user(json!("x")), call(json!({})), result(json!(text))]))),
        (
            "a result's part",
            of(json!([user(json!("x")), call(json!({})), result(json!([{ "type": "text", "text": text }]))])),
        ),
    ]
}

/// Every text that goes out is looked at, in both shapes, at providers of both kinds, whole and streamed: blocked, redacted or
/// flagged as the workspace has set, alike in both modes; nothing is looked for by default, and nothing found is quoted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_that_goes_out_is_looked_at() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.read("settings").await["dataLoss"], json!("off"));
    let text = format!("pay with {CARD} please");
    let bodies = || {
        let of =
            |path: &'static str, all: Vec<(&'static str, Value)>| all.into_iter().map(move |it| (path, it.0, it.1));
        of(CHAT, chats(&text)).chain(of(MESSAGES, messages(&text))).collect::<Vec<_>>()
    };
    for setting in ["off", "flag", "redact", "block"] {
        desk.api("PUT", "settings", Some(&json!({ "dataLoss": setting }))).await.ok();
        for (path, name, mut body) in bodies() {
            for (provider, stream) in [("chat", false), ("messages", true)] {
                body["model"] = json!(format!("{provider}/large-1"));
                body["stream"] = json!(stream);
                let place = format!("{setting} {path} {name} {provider} {stream}");
                desk.mock.forget();
                if setting == "block" {
                    let got = desk.send(path, &[], body.to_string().as_bytes()).await;
                    assert_eq!((got.status, got.kind().as_str()), (400, "sensitive_data_blocked"), "{place}");
                    assert!(got.text().contains("1 payment_card") && !got.text().contains(" 4242"), "{place}");
                    assert!(desk.mock.heard().is_empty(), "{place}");
                    continue;
                }
                let heard = desk.stream(path, &[], &body).await;
                assert!(heard.starts_with("HTTP/1.1 200"), "{place}: {heard}");
                let id = svc_tests::desk::header_of(&heard, "x-svc-call-id").unwrap();
                let found = if setting == "off" { json!({}) } else { json!({ "payment_card": 1 }) };
                assert_eq!(desk.call(&id).await["dataLoss"], found, "{place}");
                let sent = String::from_utf8_lossy(&desk.mock.heard().last().unwrap().body).into_owned();
                assert_eq!(sent.contains(" 4242"), setting != "redact", "{place}: {sent}");
                let advised = svc_tests::desk::header_of(&heard, "x-svc-advisory");
                assert_eq!(advised.is_some_and(|it| it.contains("1 payment_card")), setting != "off", "{place}");
            }
        }
    }
    desk.enforce().await;
    let got = desk.chat_with(&[], &chats(&text)[0].1).await;
    assert_eq!(got.kind(), "sensitive_data_blocked", "in both modes");
    let body = chats(&text)[0].1.to_string();
    let got = desk.send("/anthropic/v1/messages/count_tokens", &[], body.as_bytes()).await;
    assert_eq!(got.kind(), "sensitive_data_blocked", "what is counted goes out too");
}

/// What stands beside a body is no way out: of a query and of headers what is the API's own goes on, and no text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_goes_out_beside_a_body() {
    let mut desk = Desk::new().await;
    for (path, body, provider) in
        [(CHAT, chats("hi")[0].1.clone(), "chat"), (MESSAGES, messages("hi")[0].1.clone(), "messages")]
    {
        let mut body = body;
        body["model"] = json!(format!("{provider}/large-1"));
        let path = format!("{path}?note=card+4111-1111-1111-1111&beta=true&api-version=4111111111111111");
        let headers = [("anthropic-beta", "a-1,b-2"), ("anthropic-beta", "my card 4111-1111-1111-1111")];
        desk.mock.forget();
        let got = desk.send(&path, &headers, body.to_string().as_bytes()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let heard = desk.mock.heard().pop().unwrap();
        assert!(heard.path.ends_with("?beta=true"), "{}", heard.path);
        let sent: Vec<_> = heard.headers.get_all("anthropic-beta").iter().collect();
        assert_eq!(sent, ["a-1,b-2"], "{provider}");
    }
}

/// A call that shows the result of a tool.
fn with_result(tool: &str) -> Value {
    json!({ "model": "chat/large-1", "max_tokens": 10, "messages": [
        { "role": "user", "content": "go on" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": tool, "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "c1", "content": format!("what {tool} brought in") },
    ] })
}

fn act(session: Option<&str>, tool: &str) -> Value {
    let mut action = json!({ "type": "tool.call", "summary": "Use a tool", "tool": { "name": tool },
        "provenance": [{ "source": "user" }] });
    if let Some(session) = session {
        action["session"] = json!({ "id": session });
    }
    action
}

/// What was seen stays seen: for the session however long it lasts, for the agent through its window, by whatever of its keys;
/// what another agent's session brings in is none of it, and a key without an agent feeds a session without owning it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_seen_stays_with_session_and_agent() {
    let mut desk = Desk::new().await;
    let unbound = desk.key.clone();
    let (agent, other) = (desk.site.agent(&[CRM]), desk.site.agent(&[CRM]));
    desk.key.clone_from(&unbound);
    desk.chat_with(&[("x-svc-client-session", "shared")], &with_result("web_search")).await.ok();
    // The unbound key fed the session; whoever acts in it is compared with what it brought in.
    let decided = desk.client.authorize(&agent.key, &act(Some("shared"), "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!(["web"]), "{decided}");
    assert_eq!(decided["provenance"]["verdict"], json!("understated"), "{decided}");
    let clean = desk.client.authorize(&other.key, &act(None, "x")).await.ok();
    assert_eq!(clean["provenance"]["observed"], json!([]), "it owns nothing: {clean}");

    desk.key.clone_from(&other.key);
    desk.chat_with(&[("x-svc-client-session", "own")], &with_result("read_mail")).await.ok();
    desk.chat_with(&[("x-svc-client-session", "own")], &chat("chat/large-1")).await.ok();
    let decided = desk.client.authorize(&other.key, &act(Some("own"), "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!(["email"]), "a later call takes nothing back: {decided}");
    let decided = desk.client.authorize(&agent.key, &act(None, "x")).await.ok();
    assert!(!decided["provenance"]["observed"].to_string().contains("email"), "another's: {decided}");
    desk.site.shift(Span::minutes(50));
    let decided = desk.client.authorize(&other.key, &act(None, "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!(["email"]), "{decided}");
    desk.site.shift(Span::minutes(20));
    let decided = desk.client.authorize(&other.key, &act(None, "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!([]), "the window is over: {decided}");
    let decided = desk.client.authorize(&other.key, &act(Some("own"), "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!(["email"]), "the session keeps it: {decided}");
    for row in desk.site.memory().dump() {
        assert!(!format!("{row:?}").contains("brought in"), "content is nowhere kept");
    }
}

/// Who names no session in model calls has its key's id for one: another agent that sends this id as its own puts nothing there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_name_for_no_session_takes_nothing_of_others() {
    let mut desk = Desk::new().await;
    let (agent, other) = (desk.site.agent(&[CRM]), desk.site.agent(&[CRM]));
    let stand_in = agent.caller.key.to_string();
    desk.key.clone_from(&other.key);
    desk.chat_with(&[("x-svc-client-session", &stand_in)], &with_result("web_search")).await.ok();
    let decided = desk.client.authorize(&agent.key, &act(Some(&stand_in), "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!([]), "{decided}");
    let decided = desk.client.authorize(&other.key, &act(None, "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!(["web"]), "it counts for the agent that read it: {decided}");
    desk.key.clone_from(&agent.key);
    desk.chat_with(&[("x-svc-client-session", &stand_in)], &with_result("read_mail")).await.ok();
    let decided = desk.client.authorize(&agent.key, &act(Some(&stand_in), "x")).await.ok();
    assert_eq!(decided["provenance"]["observed"], json!(["email"]), "{decided}");
}

/// A provider that searches the web itself: its stream tells what it found once `found` was called, and then nothing more.
async fn searching(found: impl Fn() + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let event = |it: Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap());
    let block = |index: u8, block: Value| {
        event(json!({ "type": "content_block_start", "index": index, "content_block": block }))
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let message =
        json!({ "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage });
    let start = event(json!({ "type": "message_start", "message": message }))
        + &block(0, json!({ "type": "text", "text": "Look" }))
        + &event(json!({ "type": "content_block_stop", "index": 0 }));
    let result =
        block(1, json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [{ "title": "planted" }] }));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut heard = [0; 65_536];
            // What is asked makes no difference, and is short.
            if socket.read(&mut heard).await.is_ok_and(|it| it > 0) {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                let _ = socket.write_all(format!("{head}{start}").as_bytes()).await;
                found();
                let _ = socket.write_all(result.as_bytes()).await;
                while socket.read(&mut heard).await.is_ok_and(|it| it > 0) {}
            }
        }
    });
    url
}

/// The same as one JSON: found when it is sent.
async fn found_at_once(found: impl Fn() + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let content = json!([{ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} },
        { "type": "web_search_tool_result", "tool_use_id": "s", "content": [{ "title": "planted" }] }]);
    let body = json!({ "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "end_turn", "usage": { "input_tokens": 1, "output_tokens": 1 } })
    .to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut heard = [0; 65_536];
            if socket.read(&mut heard).await.is_ok_and(|it| it > 0) {
                found();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
                while socket.read(&mut heard).await.is_ok_and(|it| it > 0) {}
            }
        }
    });
    url
}

/// What a tool of the provider's brings in counts before the agent hears of it, while the answer still comes; where it cannot be
/// noted, the agent does not hear of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stream_brings_in_is_noted_before_it_is_heard() {
    for fault in [Fault::None, Fault::Unavailable] {
        let mut desk = Desk::new().await;
        let switch = desk.site.fault.clone();
        let url = searching(move || switch.set(fault)).await;
        let upstream = desk.upstream("search", "messages", &url).await;
        desk.model(&upstream, "m-1", 50, 1, 1).await;
        let agent = desk.site.agent(&[CRM]);
        desk.key.clone_from(&agent.key);
        let mut socket = desk.begin(MESSAGES, &[("x-svc-client-session", "s-1")], &streamed("search/m-1")).await;
        let (mut heard, mut piece) = (String::new(), [0; 4_096]);
        while !heard.contains("planted") {
            let read = timeout(PATIENCE, socket.read(&mut piece)).await.unwrap().unwrap();
            if read == 0 {
                break;
            }
            heard.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        desk.site.fault.set(Fault::None);
        if heard.contains("planted") {
            let decided = desk.client.authorize(&agent.key, &act(Some("s-1"), "x")).await.ok();
            assert_eq!(decided["provenance"]["observed"], json!(["web"]), "{decided}");
        } else {
            assert!(heard.contains("event: error") && heard.contains("could not be noted"), "{heard}");
        }
        assert_eq!(heard.contains("planted"), matches!(fault, Fault::None), "{heard}");
    }
}

/// So it is with an answer in one piece: what its provider's tools brought in is noted with its end, and where nothing can be kept
/// the agent hears nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_whole_answer_brings_in_is_noted_before_it_is_heard() {
    for fault in [Fault::None, Fault::Unavailable] {
        let mut desk = Desk::new().await;
        let switch = desk.site.fault.clone();
        let url = found_at_once(move || switch.set(fault)).await;
        let upstream = desk.upstream("search", "messages", &url).await;
        desk.model(&upstream, "m-1", 50, 1, 1).await;
        let agent = desk.site.agent(&[CRM]);
        desk.key.clone_from(&agent.key);
        let asked = json!({ "model": "search/m-1", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }] });
        let got = desk.send(MESSAGES, &[("x-svc-client-session", "s-1")], asked.to_string().as_bytes()).await;
        desk.site.fault.set(Fault::None);
        if matches!(fault, Fault::None) {
            assert!(got.text().contains("planted"), "{}", got.text());
            let decided = desk.client.authorize(&agent.key, &act(Some("s-1"), "x")).await.ok();
            assert_eq!(decided["provenance"]["observed"], json!(["web"]), "{decided}");
        } else {
            assert!(got.status == 500 && !got.text().contains("planted"), "{}", got.text());
        }
    }
}

/// A tool that the workspace's table marks is a sink: after untrusted content its call is refused, another's is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marked_tool_is_a_sink() {
    let mut desk = Desk::new().await;
    let table = json!([{ "tool": "wire_*", "source": "api", "sink": true }, { "tool": "page*", "source": "web" }]);
    desk.routing(json!({ "toolTable": table })).await;
    let agent = desk.site.agent(&[CRM]);
    let honest = |tool: &str| {
        let mut action = act(Some("s-1"), tool);
        action["provenance"] = json!([{ "source": "user" }, { "source": "web" }]);
        action
    };
    desk.key.clone_from(&agent.key);
    desk.chat_with(&[("x-svc-client-session", "s-1")], &with_result("page_reader")).await.ok();
    let marked = desk.client.authorize(&agent.key, &honest("Wire-Money")).await.ok();
    let other = desk.client.authorize(&agent.key, &honest("spell_check")).await.ok();
    assert_ne!(marked["decision"], json!("allow"), "{marked}");
    assert_eq!(other["decision"], json!("allow"), "{other}");
}

/// The documents say what is not followed: content that was written to a file and read again is the file's.
#[test]
fn the_documents_say_what_is_not_followed() {
    let text = source::file("ARCHITECTURE.md").expect("ARCHITECTURE.md");
    assert!(text.contains("written to a file and read again") && text.contains("not followed"));
}

/// A preview takes a class and an objective, says which model and why, and calls none; without a model it is a 409 that says
/// what binds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_calls_nobody() {
    let mut desk = Desk::new().await;
    desk.post("task-classes", json!({ "id": "support.reply" })).await.made();
    desk.post("task-classes", json!({ "id": "strict", "minQuality": 100 })).await.made();
    let budget = desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let key = desk.key.clone();
    for objective in ["balanced", "cost", "quality", "latency", "sovereign"] {
        let body = json!({ "taskClass": "support.reply", "objective": objective });
        let told = desk.client.post("/v1/route/preview", &key, &body).await.ok();
        assert_eq!((&told["ok"], &told["objective"]), (&json!(true), &json!(objective)), "{told}");
        assert!(!told["why"].as_array().unwrap().is_empty() && told["model"].is_string(), "{told}");
        let best = if objective == "cost" { "small-1" } else { told["model"].as_str().unwrap() };
        assert_eq!(told["model"], json!(best), "{told}");
    }
    let got = desk.client.post("/v1/route/preview", &key, &json!({ "taskClass": "strict" })).await;
    let told = got.json();
    assert_eq!(
        (got.status, &told["ok"], &told["bindingConstraint"]),
        (409, &json!(false), &json!("quality")),
        "{told}"
    );
    assert_eq!(told["error"]["type"], json!("policy_conflict"));
    let got = desk.client.post("/v1/route/preview", &key, &json!({ "taskClass": "none", "objective": "best" })).await;
    assert_eq!(got.status, 400);
    assert_eq!(desk.mock.counts().requests, 0, "nobody was called");
    assert_eq!(desk.read("calls").await["data"], json!([]));
    assert_eq!(desk.budget_at(&budget).await["spentMicros"], json!(0));
}

/// A preview decides as a call of the same key would: `auto` leaves the choice to policy, a key's class is its own, and an
/// agent's budget speaks for its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_decides_as_the_call_would() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    desk.post("task-classes", json!({ "id": "other" })).await.made();
    let agent = desk.site.agent(&[]);
    let over = json!({ "kind": "agent", "id": agent.id.to_string() });
    desk.budget_over(over, 1_000_000, json!([{ "at": 0, "step": "downgrade" }])).await;
    let asked = json!({ "model": "auto", "objective": "quality" });
    let (own, key) = (desk.key.clone(), agent.key.clone());
    for (key, model) in [(&own, "large-1"), (&key, "small-1")] {
        let told = desk.client.post("/v1/route/preview", key, &asked).await.ok();
        desk.key.clone_from(key);
        let call = desk.chat_with(&[("x-svc-objective", "quality")], &chat("auto")).await;
        let routed = call.header("x-svc-routed-to").unwrap().to_owned();
        assert!(told["model"] == json!(model) && routed.ends_with(model), "{told} {routed}");
    }
    let (bound, _) = desk.key_with(json!({ "taskClassId": "support.reply" })).await;
    let got = desk.client.post("/v1/route/preview", &bound, &json!({ "taskClass": "other" })).await;
    assert_eq!((got.status, got.kind().as_str()), (403, "forbidden"), "{}", got.text());
}

/// A machine's freeze stops an agent at the gate and at models at once, what waits for it too; an admin key does what a console
/// member with its rights may, and no other key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machines_freeze_reaches_models() {
    let mut desk = Desk::new().await;
    let agent = desk.site.agent(&[CRM]);
    desk.key.clone_from(&agent.key);
    desk.chat("chat/large-1").await.ok();
    let token = desk.site.token(&[TokenScope::AgentsFreeze]);
    let path = format!("/v1/admin/agents/{}/freeze", agent.id);
    let headers = [("authorization", &*bearer(&token))];
    desk.client.ask("POST", &path, &headers, json!({ "reason": "odd" }).to_string().as_bytes()).await.ok();
    let before = desk.mock.counts().requests;
    for path in [CHAT, MESSAGES] {
        let got = desk.send(path, &[], chat("chat/large-1").to_string().as_bytes()).await;
        assert_eq!((got.status, got.kind().as_str()), (403, "agent_stopped"), "{}", got.text());
    }
    assert_eq!(desk.mock.counts().requests, before);
    let decided = desk.client.authorize(&agent.key, &act(None, "x")).await.ok();
    assert_eq!(decided["decision"], json!("deny"), "{decided}");
    let (admin, inference) = (desk.site.key(KeyScope::Admin), desk.site.key(KeyScope::Inference));
    let reads = [
        "/v1/admin/budgets",
        "/v1/admin/reports/spend",
        "/v1/admin/reports/yield",
        "/v1/admin/reports/waste",
        "/v1/admin/upstreams",
    ];
    for path in reads {
        desk.client.get(path, &admin).await.ok();
        let got = desk.client.get(path, &inference).await;
        assert_eq!((got.status, got.kind().as_str()), (403, "missing_scope"), "{path}");
    }
}
