//! The stand-in of both model APIs: what it says, and how it breaks.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::net::TcpListener;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

/// What came back on a connection that asked once.
struct Got {
    status: u16,
    head: String,
    body: Vec<u8>,
    /// Whether the body came to its end.
    whole: bool,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The data of each event.
    fn events(&self) -> Vec<Value> {
        let data = |it: &str| Some(it.lines().find_map(|it| it.strip_prefix("data: "))?.to_owned());
        let read = |it: String| if it == "[DONE]" { json!("[DONE]") } else { serde_json::from_str(&it).unwrap() };
        self.text().split_terminator("\n\n").filter_map(data).map(read).collect()
    }
}

fn start() -> Mock {
    Mock::remembering(TcpListener::bind("127.0.0.1:0").unwrap(), 16).unwrap()
}

async fn ask(mock: &Mock, path: &str, headers: &str, body: &str) -> Got {
    let mut stream = TcpStream::connect(mock.address()).await.unwrap();
    let length = body.len();
    let version = if path.starts_with("/v1/messages") { "anthropic-version: 2023-06-01\r\n" } else { "" };
    let method = if body.is_empty() { "GET" } else { "POST" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: mock\r\nauthorization: Bearer key\r\n{version}{headers}connection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    read(&all)
}

fn read(all: &[u8]) -> Got {
    let end = all.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut rest = &all[end..];
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).map(|it| it.parse::<usize>().unwrap());
    if let Some(length) = length {
        return Got { status, head, body: rest.to_vec(), whole: rest.len() == length };
    }
    let mut body = Vec::new();
    let mut whole = false;
    while let Some(line) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            whole = true;
            break;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 4 + size..];
    }
    Got { status, head, body, whole }
}

fn chat(model: &str, more: Value) -> String {
    merged(json!({ "model": model, "messages": [{ "role": "user", "content": "Hello there" }] }), more)
}

fn messages(model: &str, more: Value) -> String {
    let first =
        json!({ "model": model, "max_tokens": 100, "messages": [{ "role": "user", "content": "Hello there" }] });
    merged(first, more)
}

fn merged(mut body: Value, more: Value) -> String {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// A question has one answer: whole or streamed, in both APIs, and each time it is asked.
#[tokio::test]
async fn one_question_has_one_answer() {
    let mock = start();
    let whole = ask(&mock, CHAT, "", &chat("m", json!({}))).await.json();
    assert_eq!(whole, ask(&mock, CHAT, "", &chat("m", json!({}))).await.json());
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(text.split(' ').count() >= 8, "{text}");
    let streamed = ask(&mock, CHAT, "", &chat("m", json!({ "stream": true }))).await.events();
    let pieces = streamed.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    assert_eq!(pieces.collect::<String>(), text);
    let said = ask(&mock, MESSAGES, "", &messages("m", json!({}))).await.json();
    assert_eq!(said["content"][0]["text"].as_str(), Some(text.as_str()));
    let streamed = ask(&mock, MESSAGES, "", &messages("m", json!({ "stream": true }))).await.events();
    let pieces = streamed.iter().filter_map(|it| it["delta"]["text"].as_str());
    assert_eq!(pieces.collect::<String>(), text);
    let other = ask(&mock, CHAT, "", &chat("another", json!({}))).await.json();
    assert_ne!(other["choices"][0]["message"]["content"].as_str(), Some(text.as_str()));
}

/// A chat stream begins with the role, ends with a reason and `[DONE]`, and counts only where that was asked for.
#[tokio::test]
async fn a_chat_stream_keeps_the_grammar() {
    let mock = start();
    let plain = ask(&mock, CHAT, "", &chat("m--words-2", json!({ "stream": true }))).await;
    assert!(plain.whole && plain.head.contains("content-type: text/event-stream"), "{}", plain.head);
    let events = plain.events();
    assert_eq!(events.len(), 5);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], json!("assistant"));
    assert_eq!(events[3]["choices"][0]["finish_reason"], json!("stop"));
    assert_eq!(events[4], json!("[DONE]"));
    assert!(events.iter().all(|it| it.get("usage").is_none()));
    let counted = json!({ "stream": true, "stream_options": { "include_usage": true }, "n": 2 });
    let events = ask(&mock, CHAT, "", &chat("m--words-2", counted)).await.events();
    assert_eq!(events.iter().filter(|it| it["choices"][0]["index"] == json!(1)).count(), 4, "the second choice");
    let last = &events[events.len() - 2];
    assert_eq!((&last["choices"], &last["usage"]["completion_tokens"]), (&json!([]), &json!(4)));
    assert_eq!(events[0]["usage"], Value::Null);
}

/// A messages stream has its blocks one after the other, each begun and ended, and counts at its beginning and its end.
#[tokio::test]
async fn a_messages_stream_keeps_the_grammar() {
    let mock = start();
    let tools =
        json!([{ "name": "look", "input_schema": { "type": "object", "properties": { "at": { "type": "string" } } } }]);
    let more =
        json!({ "stream": true, "tools": tools, "tool_choice": { "type": "any" }, "thinking": { "type": "adaptive" } });
    let events = ask(&mock, MESSAGES, "", &messages("m--words-2--thinking-1--cached-7", more)).await.events();
    let kinds: Vec<&str> = events.iter().map(|it| it["type"].as_str().unwrap()).collect();
    let (start, delta, stop) = ("content_block_start", "content_block_delta", "content_block_stop");
    let calls = kinds.len() - 16;
    let mut wanted = vec!["message_start", "ping", start, delta, delta, stop, start, delta, delta, stop, start];
    wanted.extend(vec![delta; calls + 2]);
    wanted.extend([stop, "message_delta", "message_stop"]);
    assert_eq!(kinds, wanted);
    assert_eq!(events[0]["message"]["usage"]["cache_read_input_tokens"], json!(7));
    let arguments: String = events.iter().filter_map(|it| it["delta"]["partial_json"].as_str()).collect();
    assert!(serde_json::from_str::<Value>(&arguments).unwrap()["at"].is_string(), "{arguments}");
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], json!("tool_use"));
    assert!(end["usage"]["output_tokens"].as_u64().unwrap() > 3);
}

/// Tools are called where the last words ask, two where they ask for two at once, and none once the result is there.
#[tokio::test]
async fn tools_are_called_where_somebody_asks() {
    let mock = start();
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "parameters": {} } });
    let said = |words: &str| json!([{ "role": "user", "content": words }]);
    let of = |messages: Value, more: Value| {
        let first = json!({ "model": "m", "messages": messages, "tools": [tool("one"), tool("two")] });
        merged(first, more)
    };
    let calls = |got: &Got| -> Vec<String> {
        let calls = got.json()["choices"][0]["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
        calls.iter().map(|it| it["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    for (messages, more, wanted) in [
        (said("Hello"), json!({}), vec![]),
        (said("Use a tool"), json!({}), vec!["one"]),
        (said("Use tools in parallel"), json!({}), vec!["one", "two"]),
        (said("Use tools in parallel"), json!({ "parallel_tool_calls": false }), vec!["one"]),
        (said("Use a tool"), json!({ "tool_choice": "none" }), vec![]),
        (said("Hello"), json!({ "tool_choice": "required" }), vec!["one"]),
        (said("Hello"), json!({ "tool_choice": { "type": "function", "function": { "name": "two" } } }), vec!["two"]),
    ] {
        let got = ask(&mock, CHAT, "", &of(messages, more)).await;
        assert_eq!(calls(&got), wanted, "{}", got.text());
    }
    let asked = ask(&mock, CHAT, "", &of(said("Use a tool"), json!({}))).await.json();
    let message = asked["choices"][0]["message"].clone();
    let result = json!({ "role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "42" });
    let user = json!({ "role": "user", "content": "Use a tool" });
    let done = ask(&mock, CHAT, "", &of(json!([user, message, result]), json!({}))).await;
    assert_eq!(calls(&done), Vec::<String>::new());
    let stray = ask(&mock, CHAT, "", &of(json!([user, result]), json!({}))).await;
    assert_eq!((stray.status, stray.json()["error"]["type"].clone()), (400, json!("invalid_request_error")));
}

/// Every kind of token can be set, and is counted where its API counts it.
#[tokio::test]
async fn counts_are_those_that_were_set() {
    let mock = start();
    let model = "m--input-100--cached-20--cache-write-5--cache-write-long-6--output-40--reasoning-8";
    let usage = ask(&mock, CHAT, "", &chat(model, json!({}))).await.json()["usage"].clone();
    assert_eq!(usage["prompt_tokens"], json!(131));
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], json!(20));
    assert_eq!((&usage["completion_tokens"], &usage["total_tokens"]), (&json!(48), &json!(179)));
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], json!(8));
    let usage = ask(&mock, MESSAGES, "", &messages(model, json!({}))).await.json()["usage"].clone();
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(100), &json!(48)));
    assert_eq!((&usage["cache_read_input_tokens"], &usage["cache_creation_input_tokens"]), (&json!(20), &json!(11)));
    assert_eq!(usage["cache_creation"]["ephemeral_1h_input_tokens"], json!(6));
    let zero = ask(&mock, CHAT, "x-mock-usage: zero\r\n", &chat("m", json!({}))).await.json();
    assert_eq!(zero["usage"]["total_tokens"], json!(0));
    let missing = ask(&mock, CHAT, "x-mock-usage: missing\r\n", &chat("m", json!({}))).await.json();
    assert!(missing.get("usage").is_none() && missing["choices"][0]["message"]["content"].is_string());
    let marked = json!({ "system": [{ "type": "text", "text": "Long", "cache_control": { "type": "ephemeral", "ttl": "1h" } }] });
    let usage = ask(&mock, MESSAGES, "", &messages("m", marked)).await.json()["usage"].clone();
    assert_ne!(usage["cache_creation"]["ephemeral_1h_input_tokens"], json!(0));
    let count = ask(&mock, "/v1/messages/count_tokens", "", &messages("m", json!({}))).await.json();
    assert_eq!(count, json!({ "input_tokens": 3 }));
}

/// A fault is the one that was asked for, by header, by the model's name, or for all requests.
#[tokio::test]
async fn faults_are_those_that_were_asked_for() {
    let mock = start();
    let stream = json!({ "stream": true });
    let busy = ask(&mock, CHAT, "x-mock-status: 429\r\nx-mock-retry-after: 7\r\n", &chat("m", json!({}))).await;
    assert!(busy.status == 429 && busy.head.contains("retry-after: 7") && busy.json()["error"]["message"].is_string());
    let busy = ask(&mock, MESSAGES, "", &messages("m--status-529", stream.clone())).await;
    assert_eq!((busy.status, busy.json()["error"]["type"].clone()), (529, json!("overloaded_error")));
    let cut = ask(&mock, CHAT, "", &chat("m--cut-3", stream.clone())).await;
    assert_eq!((cut.whole, cut.events().len()), (false, 3));
    let half = ask(&mock, CHAT, "", &chat("m--half-1", stream.clone())).await;
    assert!(
        !half.whole && half.text().matches("data: ").count() == 2 && !half.text().ends_with('\n'),
        "{}",
        half.text()
    );
    let short = ask(&mock, MESSAGES, "", &messages("m--short-2", stream.clone())).await;
    assert_eq!((short.whole, short.events().len()), (true, 2));
    let error = ask(&mock, MESSAGES, "", &messages("m--error-4", stream.clone())).await;
    assert_eq!((error.whole, error.events().last().unwrap()["type"].clone()), (true, json!("error")));
    let cut = ask(&mock, CHAT, "", &chat("m--cut-0", json!({}))).await;
    assert!(!cut.whole && cut.body.starts_with(b"{"));
    let page = ask(&mock, CHAT, "", &chat("m--body-html", json!({}))).await;
    assert!(page.status == 200 && page.head.contains("content-type: text/html") && page.text().contains("<title>"));
    assert!(ask(&mock, CHAT, "", &chat("m--body-empty", stream.clone())).await.body.is_empty());
    assert!(
        ask(&mock, CHAT, "", &chat("m--type-text", stream.clone())).await.head.contains("content-type: text/plain")
    );
    mock.turn("status-500").unwrap();
    assert_eq!(ask(&mock, CHAT, "", &chat("m", json!({}))).await.status, 500);
    assert_eq!(ask(&mock, CHAT, "", &chat("m--status-404", json!({}))).await.status, 404);
    mock.turn("").unwrap();
    assert_eq!(mock.turn("nonsense-1"), Err(UnknownKnob("nonsense-1".to_owned())));
    assert_eq!(ask(&mock, CHAT, "x-mock-nonsense: 1\r\n", &chat("m", json!({}))).await.status, 400);
    let told = ask(&mock, CHAT, "x-mock-words: many\r\n", &chat("m", json!({}))).await;
    assert!(told.status == 400 && told.text().contains("`x-mock-words: many`"), "{}", told.text());
    assert_eq!(mock.until(|it| it.open == 0).await.running, 0);
}

/// What stalls stays open until whoever asked hangs up, which is counted.
#[tokio::test]
async fn a_stall_lasts_until_somebody_hangs_up() {
    let mock = start();
    let mut stream = TcpStream::connect(mock.address()).await.unwrap();
    let body = chat("m--stall-2", json!({ "stream": true }));
    let head = format!("POST {CHAT} HTTP/1.1\r\nauthorization: Bearer key\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    while String::from_utf8_lossy(&heard).matches("data: ").count() < 2 {
        stream.read_buf(&mut heard).await.unwrap();
    }
    assert_eq!(mock.counts().running, 1);
    drop(stream);
    assert_eq!(mock.until(|it| it.running == 0).await.hung_up, 1);
    let drop = TcpStream::connect(mock.address()).await.unwrap();
    let mut stream = drop;
    let body = chat("m--drop", json!({}));
    let head = format!("POST {CHAT} HTTP/1.1\r\nauthorization: Bearer key\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or(0), 0, "not a byte");
}

/// A long stream is made while it is sent, and a packed one is what gzip reads.
#[tokio::test]
async fn long_and_packed_streams() {
    let mock = start();
    let long = ask(&mock, CHAT, "", &chat("m--words-20000--lines-100000", json!({ "stream": true }))).await;
    assert!(long.whole && long.text().matches("data: ").count() == 20_003);
    assert_eq!(long.text().matches(": nothing yet\n").count(), 100_000);
    let wide = ask(&mock, CHAT, "", &chat("m--wide-70000--gzip", json!({}))).await;
    assert!(wide.head.contains("content-encoding: gzip") && wide.whole);
    let python = "import gzip,sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
    let mut child = std::process::Command::new("python3");
    let child = child.args(["-c", python]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    io::Write::write_all(&mut child.stdin.take().unwrap(), &wide.body).unwrap();
    let plain: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert!(plain["choices"][0]["message"]["content"].as_str().unwrap().starts_with(&"a".repeat(70_000)));
}

/// What came is remembered as it came; the list of models has the shape of whoever asks.
#[tokio::test]
async fn what_came_is_remembered() {
    let mock = start();
    let body = messages("m", json!({ "unknown": [1] }));
    ask(&mock, "/v1/messages?beta=true", "anthropic-beta: one,two\r\n", &body).await;
    let heard = mock.heard();
    assert_eq!((heard.len(), heard[0].path.as_str()), (1, "/v1/messages?beta=true"));
    assert_eq!(heard[0].header("anthropic-beta"), Some("one,two"));
    assert_eq!(heard[0].body, body.as_bytes());
    let list = ask(&mock, "/v1/models", "", "").await.json();
    assert_eq!((&list["object"], &list["data"][0]["object"]), (&json!("list"), &json!("model")));
    let list = ask(&mock, "/v1/models", "anthropic-version: 2023-06-01\r\n", "").await.json();
    assert_eq!((&list["has_more"], &list["data"][0]["type"]), (&json!(false), &json!("model")));
    assert_eq!(ask(&mock, CHAT, "", "{").await.status, 400);
    assert_eq!(ask(&mock, CHAT, "", &json!({ "model": "m", "messages": [] }).to_string()).await.status, 400);
}

/// A system text between turns is taken where its beta is asked for, and else refused in the API's own words; a text has no citations
/// where it cites nothing.
#[tokio::test]
async fn system_texts_within_are_taken_by_their_beta() {
    let mock = start();
    let within = json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "system", "content": "b" }] });
    let body = messages("m", within);
    let refused = ask(&mock, MESSAGES, "", &body).await;
    let told = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(refused.status == 400 && told.ends_with("not \"system\" as an input message role."), "{told}");
    let taken = ask(&mock, MESSAGES, "anthropic-beta: a,mid-conversation-system-2026-04-07\r\n", &body).await;
    assert!(taken.status == 200 && !taken.text().contains("citations"), "{}", taken.text());
    let streamed = ask(&mock, MESSAGES, "", &messages("m", json!({ "stream": true }))).await;
    assert!(streamed.status == 200 && !streamed.text().contains("citations"), "{}", streamed.text());
}

/// The page has the table of knobs. `UPDATE_EXPECTED=1` writes it.
#[test]
fn the_documentation_has_the_table_of_knobs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/mock-upstream.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once("<!-- knobs -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- /knobs -->").unwrap();
    let wanted = format!("{head}<!-- knobs -->\n{}<!-- /knobs -->{tail}", markdown_table());
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    assert_eq!(page, wanted);
}
