//! Providers that answer badly, and requests that pass them byte for byte: what a client is told, what a call is charged,
//! and that nothing stays held.

use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::state::gateway::{Routing, UpstreamKey};
use svc_core::state::people::{KeyScope, Role};
use svc_core::store::{Row as _, Store as _};
use svc_core::testing::people;
use svc_core::value::Span;
use svc_tests::client::chunked;
use svc_tests::desk::{CHAT, Desk, MESSAGES, chat, header_of, streamed};
use svc_tests::receiver::Names;
use svc_tests::site::Fault;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Answers that are none, and what is said of each.
const NO_ANSWERS: &[(&str, &str)] = &[
    ("body-html", "another content type"),
    ("body-html--type-json", "cannot be read"),
    ("type-html", "another content type"),
    ("type-text", "another content type"),
    ("type-none", "another content type"),
    ("type-stream", "another content type"),
    ("body-empty", "is empty"),
    ("body-garbage", "cannot be read"),
    ("body-other", ""),
    ("gzip", "is packed"),
    ("drop", "closed before the answer was whole"),
    ("cut-1", "closed before the answer was whole"),
    ("status-301", "is a redirect"),
    ("status-500--body-html--type-html", ""),
];

/// What is no answer is a 502 that names what was tried and says what was wrong, in the client's shape; nothing of what the
/// provider sent goes on, and nothing stays reserved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_answer_is_told_and_holds_nothing() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1_000_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    for (knobs, said) in NO_ANSWERS {
        desk.mock.turn(knobs).unwrap();
        for provider in ["chat", "messages"] {
            for path in [CHAT, MESSAGES] {
                let model = format!("{provider}/large-1");
                let got = desk.send(path, &[], chat(&model).to_string().as_bytes()).await;
                let place = format!("{knobs} {provider} {path}: {}", got.text());
                assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{place}");
                let json = got.json();
                assert_eq!(json["type"] == "error", path == MESSAGES, "{place}");
                let tried = &json["error"]["attemptedModels"];
                assert_eq!(tried.as_array().unwrap().len(), 1, "{place}");
                let (name, at) = (&tried[0]["model"], &tried[0]["provider"]);
                assert_eq!((name, at), (&json!("large-1"), &json!(provider)), "{place}");
                let error = tried[0]["error"].as_str().unwrap();
                assert!(error.contains(said), "{place}");
                assert!(!got.text().contains('<'), "{place}");
            }
        }
    }
    let at = desk.budget_at(&budget).await;
    assert_eq!((&at["reservedMicros"], &at["reservations"]), (&json!(0), &json!([])), "{at}");
    let calls = desk.read("calls?limit=100").await;
    let ends: Vec<&Value> = calls["data"].as_array().unwrap().iter().map(|it| &it["end"]).collect();
    assert!(ends.len() == NO_ANSWERS.len() * 4 && ends.iter().all(|it| *it == "failed"), "{ends:?}");
    desk.mock.turn("").unwrap();
    desk.chat("chat/large-1").await.ok();
    desk.site.audit();
}

/// The same of streams of which nothing was passed on yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_never_begins_is_a_502() {
    let mut desk = Desk::new().await;
    let knobs =
        ["body-html", "type-html", "type-json", "body-empty", "gzip", "drop", "cut-0", "short-0", "half-0", "error-0"];
    for knob in knobs {
        desk.mock.turn(knob).unwrap();
        for (provider, path) in [("chat", CHAT), ("messages", CHAT), ("chat", MESSAGES), ("messages", MESSAGES)] {
            let got = desk.send(path, &[], streamed(&format!("{provider}/large-1")).to_string().as_bytes()).await;
            let place = format!("{knob} {provider} {path}: {}", got.text());
            assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{place}");
            assert_eq!(got.header("content-type"), Some("application/json"), "{place}");
        }
    }
}

/// A stream that breaks after something was passed on ends with an error event of the client's own API, never as if it were
/// whole, and is charged an estimate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_ends_with_an_error_event() {
    let mut desk = Desk::new().await;
    for knob in ["cut-4", "half-4", "short-4", "error-4"] {
        desk.mock.turn(&format!("words-20--{knob}")).unwrap();
        for provider in ["chat", "messages"] {
            for path in [CHAT, MESSAGES] {
                let heard = desk.stream(path, &[], &streamed(&format!("{provider}/large-1"))).await;
                let place = format!("{knob} {provider} {path}: {heard}");
                assert!(heard.starts_with("HTTP/1.1 200"), "{place}");
                assert!(!heard.contains("[DONE]") && !heard.contains("message_stop"), "{place}");
                let error = if path == CHAT { "data: {\"error\":" } else { "event: error\ndata: {\"type\":\"error\"" };
                assert_eq!(heard.matches(error).count(), 1, "{place}");
                let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
                assert_eq!(
                    (&call["end"], &call["usage"]["estimated"]),
                    (&json!("cut"), &json!(true)),
                    "{place} {call}"
                );
                let cost = call["costMicros"].as_u64().unwrap();
                assert!(cost > 0 && cost <= call["reservedMicros"].as_u64().unwrap(), "{place} {call}");
            }
        }
    }
}

/// Half a million lines before the first event, a word of a mebibyte in one frame, and twenty thousand frames come through as
/// they are; a million lines that make no event are longer than anything that is read, and no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_streams_come_through_within_bounds() {
    let mut desk = Desk::new().await;
    let mut body = streamed("chat/large-1");
    body.as_object_mut().unwrap().remove("max_tokens");
    for (knobs, least) in
        [("lines-500000--words-3", 7_000_000), ("wide-1000000--words-3", 1_000_000), ("words-20000", 2_000_000)]
    {
        desk.mock.turn(knobs).unwrap();
        let heard = desk.stream(CHAT, &[], &body).await;
        assert!(heard.contains("data: [DONE]") && heard.len() > least, "{knobs}: {} bytes", heard.len());
        let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
        assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("done"), &json!(false)), "{knobs} {call}");
    }
    desk.mock.turn("lines-1000000--words-3").unwrap();
    for path in [CHAT, MESSAGES] {
        let got = desk
            .send(path, &[], body.to_string().replace("\"stream\"", "\"max_tokens\":9,\"stream\"").as_bytes())
            .await;
        assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{}", got.text());
    }
}

/// 33 MiB are too much on each route of model traffic, whether the length is told or not; 20 MiB are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_thirty_three_mebibytes_is_too_large() {
    let mut desk = Desk::new().await;
    let mut body = chat("chat/large-1");
    let text = |mebibytes: usize| "a ".repeat(mebibytes << 19);
    body["messages"][0]["content"] = json!(text(33));
    let bytes = body.to_string().into_bytes();
    let before = desk.mock.counts().requests;
    for path in [CHAT, MESSAGES, "/anthropic/v1/messages/count_tokens"] {
        for told in [true, false] {
            let mut client = desk.site.client().await;
            let key = format!("Bearer {}", desk.key);
            let mut headers = vec![("authorization", key.as_str()), ("expect", "100-continue")];
            if !told {
                headers.push(("transfer-encoding", "chunked"));
            }
            let sent = svc_tests::client::request("POST", path, &headers, if told { &bytes } else { b"" });
            if told {
                // Whoever says how much it is, is told before they send it.
                let head = sent.len() - bytes.len();
                client.send(&sent[..head]).await;
            } else {
                client.try_send(&[&sent[..], &chunked(&bytes, 1 << 16)].concat()).await;
            }
            let mut got = client.hear(false).await.unwrap();
            if got.status == 100 {
                got = client.hear(false).await.unwrap();
            }
            assert_eq!((got.status, got.kind().as_str()), (413, "body_too_large"), "{path} {told}");
            assert_eq!(got.json()["type"] == "error", path != CHAT, "{path}");
        }
    }
    assert_eq!(desk.mock.counts().requests, before, "nothing was sent");
    body["messages"][0]["content"] = json!(text(20));
    let got = desk.chat_with(&[], &body).await;
    got.ok();
}

/// A client that sends the whole of its body before it listens hears why it was refused, on a connection that goes on: of a byte more
/// than each route of model traffic takes, and of a key that is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_sends_a_byte_too_many_hears_of_it() {
    let desk = Desk::new().await;
    let body = vec![b' '; (32 << 20) + 1];
    let mut client = desk.site.client().await;
    for (path, key, told) in [
        (CHAT, desk.key.as_str(), (413, "body_too_large")),
        (MESSAGES, &desk.key, (413, "body_too_large")),
        ("/anthropic/v1/messages/count_tokens", &desk.key, (413, "body_too_large")),
        (CHAT, "ask_of_nobody", (401, "invalid_api_key")),
    ] {
        let bearer = format!("Bearer {key}");
        client.send(&svc_tests::client::request("POST", path, &[("authorization", &bearer)], &body)).await;
        let got = client.hear(false).await.unwrap();
        assert_eq!((got.status, got.kind().as_str()), told, "{path}");
        assert_eq!(got.header("connection"), None, "{path}");
    }
}

/// The request of a coding agent, with all that is new to this server in it, goes to a provider of its own shape byte for
/// byte; the key is the provider's, the client's goes nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coding_agents_request_passes_byte_for_byte() {
    let mut desk = Desk::new().await;
    let upstream = desk.upstreams["messages"].clone();
    desk.model(&upstream, "claude-coder-9", 90, 3, 15).await;
    let tools: Vec<Value> = (0..24)
        .map(|number| {
            json!({ "name": format!("Tool{number}"), "description": "reads and writes files ".repeat(80),
                "input_schema": { "type": "object", "properties": { "path": { "type": "string" } } } })
        })
        .collect();
    let body = json!({
        "model": "claude-coder-9", "max_tokens": 1_000, "stream": true, "tools": tools,
        "system": [{ "type": "text", "text": "You are a coder. ", "cache_control": { "type": "ephemeral" } }],
        "context_management": { "edits": [{ "type": "clear_tool_uses_20250919" }] }, "speed": "fast",
        "metadata": { "user_id": "user_1_account__session_2" }, "thinking": { "type": "enabled", "budget_tokens": 512 },
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "größer 🙂 <b>\u{2028}" },
            { "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } }] }],
    });
    // Written as a client of another language would: other spaces, escapes and order than this server's own.
    let bytes = serde_json::to_string_pretty(&body).unwrap().replace("größer", "gr\\u00f6\\u00dfer");
    assert!(bytes.len() > 50_000, "{}", bytes.len());
    let betas = ["a-1", "b-2", "c-3", "d-4", "e-5", "f-6", "g-7,h-8"];
    let mut headers = vec![("anthropic-version", "2023-06-01"), ("x-claude-code-session-id", "coding-1")];
    headers.extend(betas.iter().map(|it| ("anthropic-beta", *it)));
    headers.push(("connection", "close"));
    let got = {
        let mut socket = tokio::net::TcpStream::connect(desk.site.address).await.unwrap();
        headers.push(("x-api-key", &desk.key));
        let request =
            svc_tests::client::request("POST", "/anthropic/v1/messages?beta=true", &headers, bytes.as_bytes());
        tokio::io::AsyncWriteExt::write_all(&mut socket, &request).await.unwrap();
        let mut heard = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut heard).await.unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    };
    assert!(got.contains("event: message_stop"), "{got}");
    let heard = desk.mock.heard().pop().unwrap();
    assert_eq!(heard.path, "/v1/messages?beta=true");
    assert_eq!(String::from_utf8_lossy(&heard.body), bytes);
    let sent: Vec<&str> = heard.headers.get_all("anthropic-beta").iter().map(|it| it.to_str().unwrap()).collect();
    assert_eq!(sent, betas);
    assert_eq!(heard.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(heard.header("x-api-key"), Some("sk-planted-abcd"));
    assert!(!format!("{:?}", heard.headers).contains(&desk.key));
    let call = desk.call(&header_of(&got, "x-svc-call-id").unwrap()).await;
    assert_eq!((&call["session"], &call["end"]), (&json!("coding-1"), &json!("done")), "{call}");
    assert_eq!(header_of(&got, "x-svc-session"), None, "the coding client brought its own");
}

/// A header of a provider that carries a credential, by its name or by the form of its value, is sealed and shown as its key is;
/// what is shown of it, sent back, leaves it as it is, but to another host nothing stored goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_carries_a_credential_is_kept_as_a_key() {
    let mut desk = Desk::new().await;
    let path = format!("upstreams/{}", desk.upstreams["chat"]);
    let sent = json!({ "X-Extra-Auth": "Bearer planted-hdr-ET99", "api-key": "planted-hdr-4321",
        "x-tier": "Basic planted-hdr-ZA==", "x-goog-api-key": "abc", "x-region": "eu" });
    let shown = json!({ "x-extra-auth": "…ET99", "api-key": "…4321", "x-tier": "…ZA==", "x-goog-api-key": "…",
        "x-region": "eu" });
    let told = desk.api("PATCH", &path, Some(&json!({ "headers": sent }))).await.ok();
    assert_eq!(told["headers"], shown);
    assert_eq!(said(&mut desk).await, said_by(&sent));
    let analyst = desk.site.member(Role::Analyst);
    let list = format!("/api/w/{}/upstreams", desk.site.workspace());
    let listed = analyst.ask(&mut desk.client, "GET", &list, None).await.ok();
    let key = desk.site.key(KeyScope::Admin);
    let to_machines = desk.client.get("/v1/admin/upstreams", &key).await.ok();
    for list in [&listed, &to_machines] {
        assert!(list["data"].as_array().unwrap().iter().any(|it| it["headers"] == shown), "{list}");
    }
    let ledger: String = desk.site.ledger().iter().map(|it| format!("{}\n", it.data)).collect();
    assert!(!format!("{told}{listed}{to_machines}{ledger}").contains("planted-hdr"));
    let rows = rows(&desk);
    assert!(!rows.contains("planted-hdr") && rows.contains("x-region"), "{rows}");

    let mut back = shown.clone();
    back["x-tier"] = json!("gold");
    let told = desk.api("PATCH", &path, Some(&json!({ "headers": back }))).await.ok();
    assert_eq!(told["headers"], back, "a value that carries none is shown");
    let mut left = sent.clone();
    left["x-tier"] = json!("gold");
    assert_eq!(said(&mut desk).await, said_by(&left));

    let elsewhere = "https://models.example.com/v1";
    for (body, fields) in [
        (json!({ "headers": { "api-key": "…9999", "x-other": "…4321" } }), vec!["headers.api-key", "headers.x-other"]),
        (
            json!({ "baseUrl": elsewhere, "apiKey": "k", "headers": { "api-key": "…4321", "x-token": "t" } }),
            vec!["headers.api-key"],
        ),
        (
            json!({ "baseUrl": elsewhere, "apiKey": "k" }),
            vec!["headers.api-key", "headers.x-extra-auth", "headers.x-goog-api-key"],
        ),
    ] {
        let got = desk.api("PATCH", &path, Some(&body)).await;
        assert_eq!((got.status, got.kind(), got.fields()), (400, "invalid_upstream".into(), own(&fields)), "{body}");
    }
    let body =
        json!({ "name": "new", "kind": "chat", "baseUrl": elsewhere, "apiKey": "k", "headers": { "a": "…4321" } });
    let got = desk.post("upstreams", body).await;
    assert_eq!((got.status, got.fields()), (400, own(&["headers.a"])));
    assert_eq!(said(&mut desk).await, said_by(&left), "nothing of that was done");
    assert_eq!(desk.api("PATCH", &path, Some(&json!({ "headers": null }))).await.ok()["headers"], json!({}));
    assert_eq!(said(&mut desk).await, json!({}));
    desk.site.audit();
}

/// A provider of which this server cannot read its key is none whose address may not be called: the call is refused as not ready, and
/// goes on once the key can be read. One whose key it cannot open is told so, and not to be repeated; nothing of it is held against the
/// provider.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_cannot_be_read_is_no_wrong_address() {
    let mut desk = Desk::new().await;
    for path in [CHAT, MESSAGES] {
        desk.site.fault.set(Fault::Keys);
        let got = desk.send(path, &[], chat("chat/small-1").to_string().as_bytes()).await;
        assert_eq!((got.status, got.kind().as_str()), (503, "not_ready"), "{}", got.text());
        assert!(got.header("retry-after").is_some(), "{got:?}");
        desk.site.fault.set(Fault::None);
        let got = desk.send(path, &[], chat("chat/small-1").to_string().as_bytes()).await;
        assert_eq!(got.status, 200, "{}", got.text());
    }
    let mut store = desk.site.memory();
    let key = UpstreamKey::key(desk.upstreams["chat"].parse().unwrap());
    let found = store.load(&[key]).unwrap().remove(0).record.unwrap();
    let lost = UpstreamKey { sealed: "lost".into(), ..UpstreamKey::clone(UpstreamKey::peel(&found).unwrap()) };
    people::write(&mut store, vec![UpstreamKey::wrap(lost.into())]);
    let got = desk.send(CHAT, &[], chat("chat/small-1").to_string().as_bytes()).await;
    assert_eq!((got.status, got.header("x-should-retry")), (502, Some("false")), "{}", got.text());
    assert!(got.text().contains("this server cannot open the provider's key"), "{}", got.text());
    let shown = desk.read(&format!("upstreams/{}", desk.upstreams["chat"])).await;
    assert_eq!(shown["lastError"], Value::Null, "{shown}");
    desk.site.audit();
}

/// What an earlier release stored in clear is sent and is shown as a credential, and is sealed by the next change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_from_before_is_sealed_by_the_next_change() {
    let mut desk = Desk::new().await;
    let path = format!("upstreams/{}", desk.upstreams["chat"]);
    let mut store = desk.site.memory();
    let key = Routing::key(desk.site.workspace());
    let found = store.load(&[key]).unwrap().remove(0).record.unwrap();
    let mut routing = Routing::clone(Routing::peel(&found).unwrap());
    let sent = json!({ "x-extra-auth": "Bearer planted-hdr-ET99", "x-region": "eu" });
    let shown = json!({ "x-extra-auth": "…ET99", "x-region": "eu" });
    for upstream in routing.upstreams.iter_mut().filter(|it| it.name.as_str() == "chat") {
        upstream.headers = serde_json::from_value(sent.clone()).unwrap();
    }
    people::write(&mut store, vec![Routing::wrap(routing.into())]);
    assert_eq!(desk.read(&path).await["headers"], shown);
    assert_eq!(said(&mut desk).await, said_by(&sent));
    assert!(rows(&desk).contains("planted-hdr"));
    for body in [json!({ "region": "eu-west-1" }), json!({ "headers": shown })] {
        assert_eq!(desk.api("PATCH", &path, Some(&body)).await.ok()["headers"], shown);
        assert!(!rows(&desk).contains("planted-hdr"), "{body}");
        assert_eq!(said(&mut desk).await, said_by(&sent));
    }
    let changed = desk.site.ledger().iter().filter(|it| &*it.kind == "upstream.changed").count();
    assert_eq!(changed, 1, "a credential that is kept in another way has not changed");
    desk.site.audit();
}

fn own(fields: &[&str]) -> Vec<String> {
    fields.iter().map(|it| (*it).to_owned()).collect()
}

/// The headers of `HEADERS` that the provider `chat` hears in a call.
async fn said(desk: &mut Desk) -> Value {
    desk.chat("chat/small-1").await.ok();
    let heard = desk.mock.heard().pop().unwrap();
    let headers = HEADERS.iter().filter_map(|it| Some(((*it).to_owned(), json!(heard.header(it)?))));
    Value::Object(headers.collect())
}

/// How a provider hears these.
fn said_by(headers: &Value) -> Value {
    let headers = headers.as_object().unwrap().iter();
    Value::Object(headers.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect())
}

const HEADERS: &[&str] = &["x-extra-auth", "api-key", "x-tier", "x-goog-api-key", "x-region"];

/// What is stored of the workspace's providers.
fn rows(desk: &Desk) -> String {
    let ids = desk.upstreams.values().map(|it| UpstreamKey::key(it.parse().unwrap()));
    let keys: Vec<_> = ids.chain([Routing::key(desk.site.workspace())]).collect();
    let found = desk.site.memory().load(&keys).unwrap();
    found.into_iter().map(|it| String::from_utf8(it.record.unwrap().encode().unwrap().body).unwrap()).collect()
}

/// A provider of the chat shape that answers each request with this status, type and body.
async fn answering(status: u16, kind: &'static str, body: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let head = format!("HTTP/1.1 {status} Told\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            // What is asked makes no difference, and is short.
            if socket.read(&mut [0; 65_536]).await.is_ok_and(|it| it > 0) {
                let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
            }
        }
    });
    url
}

/// A provider says that the request is at fault: by its status, in the place of an answer, or before a stream's first token. The
/// client hears its words, its code and the field that it blames, and nobody else is asked; the model has not failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_at_fault_is_told_so_however_its_provider_does() {
    const JSON: &str = "application/json";
    let error = json!({ "error": { "message": "too long for sk-planted-abcd", "type": "invalid_request_error",
        "param": "messages", "code": "context_length_exceeded" } });
    let event = format!("data: {error}\n\n");
    for (status, kind, body, is_stream) in [
        (400, JSON, error.to_string(), false),
        (400, JSON, error.to_string(), true),
        (200, JSON, error.to_string(), false),
        (200, JSON, error.to_string(), true),
        (200, "text/event-stream", event, true),
    ] {
        let mut desk = Desk::bare(|_| {}).await;
        let url = answering(status, kind, body).await;
        let id = desk.upstream("hand", "chat", &url).await;
        desk.model(&id, "best-1", 99, 3, 15).await;
        let url = desk.mock.chat_url();
        let id = desk.upstream("other", "chat", &url).await;
        desk.model(&id, "best-2", 50, 3, 15).await;
        desk.enforce().await;
        for path in [CHAT, MESSAGES] {
            let asked = if is_stream { streamed("auto") } else { chat("auto") };
            let quality = [("x-svc-objective", "quality")];
            let got = desk.send(path, &quality, asked.to_string().as_bytes()).await;
            let place = format!("{status} {kind} {is_stream} {path}: {}", got.text());
            assert_eq!((got.status, got.kind().as_str()), (400, "upstream_rejected"), "{place}");
            let error = got.json()["error"].clone();
            let (code, param) = (&error["code"], &error["param"]);
            assert_eq!((code, param), (&json!("context_length_exceeded"), &json!("messages")), "{place}");
            assert!(error["message"].as_str().unwrap().contains("too long for"), "{place}");
            assert!(!got.text().contains("planted"), "{place}");
            let call = desk.call_of(&got).await;
            assert_eq!((&call["end"], &call["costMicros"]), (&json!("refused"), &json!(0)), "{place} {call}");
        }
        assert_eq!(desk.mock.counts().requests, 0, "nobody else was asked");
        let hand =
            desk.read("upstreams").await["data"].as_array().unwrap().iter().find(|it| it["name"] == "hand").cloned();
        assert_eq!(hand.map(|it| it["health"].clone()), Some(json!("ok")));
    }
}

/// Where every provider is one whose address may not be called, clients are told not to repeat the call; where another one failed, it
/// may answer the next time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_may_not_be_called_is_not_tried_again() {
    let names = Names::new();
    names.set("inside.example", &[&["10.0.0.5"]]);
    let known = Arc::clone(&names);
    let mut desk = Desk::bare(|plan| plan.names = Some(known)).await;
    let id = desk.upstream("inside", "chat", "https://inside.example/v1").await;
    desk.model(&id, "m-1", 90, 3, 15).await;
    desk.enforce().await;
    for (path, body) in [(CHAT, chat("auto")), (CHAT, streamed("auto")), (MESSAGES, chat("auto"))] {
        let got = desk.send(path, &[], body.to_string().as_bytes()).await;
        assert_eq!((got.status, got.header("x-should-retry")), (502, Some("false")), "{}", got.text());
        assert!(got.text().contains("the host's address may not be called"), "{}", got.text());
    }
    // Beside one that refuses its key that is still no matter of keys alone.
    let url = desk.mock.chat_url();
    let id = desk.upstream("broken", "chat", &url).await;
    desk.model(&id, "m-2--status-401", 50, 2, 10).await;
    let got = desk.send(CHAT, &[], chat("auto").to_string().as_bytes()).await;
    let is_denied = got.text().contains("refused its key or account");
    assert_eq!((got.status, got.header("x-should-retry"), is_denied), (502, Some("false"), false), "{}", got.text());
    desk.model(&id, "m-3--status-500", 40, 2, 10).await;
    let got = desk.send(CHAT, &[], chat("auto").to_string().as_bytes()).await;
    assert_eq!((got.status, got.header("x-should-retry")), (502, None), "{}", got.text());
}

/// A provider that says when it is to be asked again is left alone until then by every call that another can serve, and for five minutes
/// at most; then one call tries it. Where nobody else can serve, it is asked all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_names_a_time_is_left_alone_until_then() {
    for (knobs, rest_s) in [("status-429--retry-after-60", 60), ("status-503--retry-after-86400", 300)] {
        let mut desk = Desk::bare(|_| {}).await;
        let (chat_url, messages_url) = (desk.mock.chat_url(), desk.mock.messages_url());
        let busy = desk.upstream("chat", "chat", &chat_url).await;
        desk.model(&busy, &format!("busy-1--{knobs}"), 90, 3, 15).await;
        let id = desk.upstream("messages", "messages", &messages_url).await;
        desk.model(&id, "good-1", 50, 2, 10).await;
        desk.enforce().await;
        let best = [("x-svc-objective", "quality")];
        for (path, later_s, tried) in
            [(CHAT, 0, 2), (MESSAGES, 0, 1), (CHAT, rest_s - 1, 1), (MESSAGES, 1, 2), (CHAT, 0, 1)]
        {
            desk.site.advance(Span::seconds(later_s));
            let got = desk.send(path, &best, chat("auto").to_string().as_bytes()).await;
            assert_eq!(got.status, 200, "{}", got.text());
            let attempts = desk.call_of(&got).await["attempts"].clone();
            assert_eq!(attempts.as_array().map(Vec::len), Some(tried), "{knobs} {later_s}: {attempts}");
        }
        assert_eq!(desk.read(&format!("upstreams/{busy}")).await["health"], json!("open"));
        desk.api("PATCH", "models/messages/good-1", Some(&json!({ "enabled": false }))).await.ok();
        let before = desk.mock.counts().requests;
        let got = desk.send(CHAT, &best, chat("auto").to_string().as_bytes()).await;
        assert_eq!(got.status, if rest_s == 60 { 429 } else { 502 }, "{}", got.text());
        assert_eq!(desk.mock.counts().requests, before + 1);
    }
}
