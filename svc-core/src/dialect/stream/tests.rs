//! Streams of both shapes, as providers send them and as they might.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod errors;
mod odd_calls;
mod providers;
mod usages;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{Ending, Finish, Stream, StreamOptions};
use crate::state::gateway::Dialect;
use crate::value::json::Json;

const CHAT: Dialect = Dialect::Chat;
const MESSAGES: Dialect = Dialect::Messages;

/// What is written for bytes that come in pieces of so many.
fn run(upstream: Dialect, client: Dialect, strip_usage: bool, text: &[u8], piece: usize) -> (String, Ending, Stream) {
    let mut stream = Stream::new(
        upstream,
        client,
        StreamOptions { strip_usage, created_s: 7, answers: 1, ..StreamOptions::default() },
    );
    let mut out = Vec::new();
    for chunk in text.chunks(piece.max(1)) {
        if stream.push(chunk, &mut out).is_err() {
            stream.cut(&mut out, "upstream_failure", "broken");
        }
    }
    let ending = stream.end(&mut out);
    (String::from_utf8(out).unwrap(), ending, stream)
}

/// A whole answer as a client of either shape puts it together; panics where the grammar is broken.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    text: String,
    thinking: String,
    /// Name and arguments, by place.
    calls: Vec<(String, String, String)>,
    finish: Option<String>,
    usage: Option<(i64, i64)>,
    ended: bool,
    failed: bool,
}

fn text(json: &Json, path: &str) -> String {
    at(json, path).and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn at<'a>(json: &'a Json, path: &str) -> Option<&'a Json> {
    path.split('.').try_fold(json, |it, name| match name.parse::<usize>() {
        Ok(index) => it.as_list()?.get(index),
        Err(_) => it.get(name),
    })
}

fn int(json: &Json, path: &str) -> Option<i64> {
    at(json, path).and_then(Json::as_int)
}

/// What a stream of the messages shape may say next.
#[derive(Debug, Default)]
struct Grammar {
    open: BTreeMap<i64, String>,
    blocks: i64,
    started: bool,
    stopped: bool,
}

impl Grammar {
    fn event(&mut self, heard: &mut Heard, event: &str, json: &Json, out: &str) {
        let kind = text(json, "type");
        assert!(event.starts_with(&format!("event: {kind}\n")), "{event}");
        assert_eq!(kind == "message_start", !self.started, "one start, before all else: {out}");
        self.started = true;
        let index = int(json, "index");
        match &*kind {
            "content_block_start" => {
                assert!(!self.stopped && self.open.is_empty(), "one block at a time: {out}");
                assert_eq!(index, Some(self.blocks), "indexes ascend: {out}");
                self.blocks += 1;
                let block = text(json, "content_block.type");
                if block == "tool_use" {
                    let id = text(json, "content_block.id");
                    assert!(!id.is_empty());
                    heard.calls.push((id, text(json, "content_block.name"), String::new()));
                }
                self.open.insert(index.unwrap(), block);
            }
            "content_block_delta" => {
                let block = self.open.get(&index.unwrap()).unwrap_or_else(|| panic!("no such block is open: {out}"));
                match &*text(json, "delta.type") {
                    "text_delta" if block == "text" => heard.text.push_str(&text(json, "delta.text")),
                    "thinking_delta" if block == "thinking" => heard.thinking.push_str(&text(json, "delta.thinking")),
                    "input_json_delta" if block == "tool_use" => {
                        heard.calls.last_mut().unwrap().2.push_str(&text(json, "delta.partial_json"));
                    }
                    "signature_delta" if block == "thinking" => {}
                    other => panic!("{other} in a block of {block}: {out}"),
                }
            }
            "content_block_stop" => assert!(self.open.remove(&index.unwrap()).is_some(), "closed once: {out}"),
            "message_delta" => {
                assert!(self.open.is_empty() && !self.stopped);
                self.stopped = true;
                heard.finish = Some(text(json, "delta.stop_reason"));
                heard.usage =
                    Some((int(json, "usage.input_tokens").unwrap(), int(json, "usage.output_tokens").unwrap()));
            }
            "message_stop" => {
                assert!(self.stopped);
                heard.ended = true;
            }
            "message_start" | "ping" => {}
            other => panic!("{other}"),
        }
    }
}

/// Reads a stream as the client of its shape does, holding it to the grammar.
fn hear(dialect: Dialect, out: &str) -> Heard {
    let mut heard = Heard::default();
    let mut grammar = Grammar::default();
    for event in out.split("\n\n").filter(|it| !it.trim().is_empty()) {
        assert!(!heard.ended && !heard.failed, "something follows the last event: {out}");
        let data = event.lines().find_map(|it| it.strip_prefix("data: ")).unwrap_or_default();
        if data.is_empty() {
            continue;
        }
        if data == "[DONE]" {
            assert_eq!(dialect, CHAT);
            heard.ended = true;
            continue;
        }
        let json = Json::parse(data.as_bytes()).unwrap_or_else(|it| panic!("{it}: {data}"));
        if at(&json, "error").is_some() {
            heard.failed = true;
            continue;
        }
        match dialect {
            CHAT => hear_chat(&mut heard, &json),
            MESSAGES => grammar.event(&mut heard, event, &json, out),
        }
    }
    for (_, _, arguments) in &mut heard.calls {
        if arguments.is_empty() {
            arguments.push_str("{}");
        }
    }
    heard
}

fn hear_chat(heard: &mut Heard, json: &Json) {
    assert_eq!(text(json, "object"), "chat.completion.chunk");
    assert!(at(json, "created").is_some() && at(json, "id").is_some() && at(json, "model").is_some());
    if let Some(prompt) = int(json, "usage.prompt_tokens") {
        assert!(heard.usage.is_none(), "the usage is told once");
        heard.usage = Some((prompt, int(json, "usage.completion_tokens").unwrap()));
    }
    let Some(choice) = at(json, "choices.0").filter(|it| int(it, "index") == Some(0)) else { return };
    assert!(heard.finish.is_none(), "nothing follows the reason");
    heard.text.push_str(&text(choice, "delta.content"));
    heard.thinking.push_str(&text(choice, "delta.reasoning_content"));
    for call in at(choice, "delta.tool_calls").and_then(Json::as_list).unwrap_or_default() {
        let index = usize::try_from(int(call, "index").unwrap()).unwrap();
        if at(call, "id").is_some() {
            assert_eq!(index, heard.calls.len(), "calls begin in order");
            heard.calls.push((text(call, "id"), text(call, "function.name"), String::new()));
        }
        heard.calls.get_mut(index).unwrap().2.push_str(&text(call, "function.arguments"));
    }
    heard.finish = at(choice, "finish_reason").and_then(Json::as_str).map(str::to_owned);
}

fn chat_chunk(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
    )
}

const CHAT_USAGE: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":12,\"total_tokens\":42,\"prompt_tokens_details\":{\"cached_tokens\":10},\"completion_tokens_details\":{\"reasoning_tokens\":4}}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn chat_text() -> String {
    [
        &chat_chunk(r#"{"role":"assistant","content":"","refusal":null}"#, "null"),
        &chat_chunk(r#"{"content":"Hé"}"#, "null"),
        &chat_chunk(r#"{"content":"llo \"you\"\n"}"#, "null"),
        &chat_chunk("{}", "\"stop\""),
        CHAT_USAGE,
        DONE,
    ]
    .concat()
}

fn messages_event(kind: &str, members: &str) -> String {
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{members}}}\n\n")
}

fn messages_all() -> String {
    [
        messages_event("message_start", r#","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}"#),
        messages_event("content_block_start", r#","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}"#),
        messages_event("ping", ""),
        messages_event("content_block_delta", r#","index":0,"delta":{"type":"thinking_delta","thinking":"hmm"}"#),
        messages_event("content_block_delta", r#","index":0,"delta":{"type":"signature_delta","signature":"AAAA"}"#),
        messages_event("content_block_stop", r#","index":0"#),
        messages_event("content_block_start", r#","index":1,"content_block":{"type":"text","text":""}"#),
        messages_event("content_block_delta", r#","index":1,"delta":{"type":"text_delta","text":"Looking"}"#),
        messages_event("content_block_stop", r#","index":1"#),
        messages_event("content_block_start", r#","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}"#),
        messages_event("content_block_delta", r#","index":2,"delta":{"type":"input_json_delta","partial_json":""}"#),
        messages_event("content_block_delta", r#","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}"#),
        messages_event("content_block_delta", r#","index":2,"delta":{"type":"input_json_delta","partial_json":"\"Köln\"}"}"#),
        messages_event("content_block_stop", r#","index":2"#),
        messages_event("content_block_start", r#","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}"#),
        messages_event("content_block_stop", r#","index":3"#),
        messages_event("message_delta", r#","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}"#),
        messages_event("message_stop", ""),
    ]
    .concat()
}

/// In the client's own shape every byte goes on as it came, wherever the bytes were cut.
#[test]
fn one_shape_goes_on_byte_for_byte() {
    for (dialect, text) in [(CHAT, chat_text()), (MESSAGES, messages_all()), (CHAT, chat_text().replace('\n', "\r\n"))]
    {
        for piece in [1, 2, 3, 7, 64, 100_000] {
            let (out, ending, stream) = run(dialect, dialect, false, text.as_bytes(), piece);
            assert_eq!((&out, ending), (&text, Ending::Clean));
            let received = stream.received();
            let usage = received.usage.unwrap();
            let kinds = (usage.input, usage.cached_input, usage.output, usage.reasoning);
            assert_eq!(kinds, if dialect == CHAT { (20, 10, 8, 4) } else { (25, 5, 15, 0) });
            assert_eq!(received.model.as_deref(), Some("m-1"));
            assert!(received.begun && received.tokens > 0 && received.text_bytes > 0);
        }
    }
}

/// A usage that nobody asked for is metered and left out.
#[test]
fn a_usage_not_asked_for_is_metered_and_left_out() {
    let (out, _, stream) = run(CHAT, CHAT, true, chat_text().as_bytes(), 5);
    assert_eq!(out, chat_text().replace(CHAT_USAGE, ""));
    assert!(stream.received().usage.is_some());
    // Some providers tell it beside the last choice.
    let beside = chat_text().replace(CHAT_USAGE, "").replace(
        "\"finish_reason\":\"stop\"}],\"usage\":null",
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}",
    );
    let (out, ending, stream) = run(CHAT, CHAT, true, beside.as_bytes(), 9);
    assert_eq!(out, chat_text().replace(CHAT_USAGE, ""));
    assert_eq!((ending, stream.received().usage.unwrap().output), (Ending::Clean, 2));
    let (out, ..) = run(MESSAGES, CHAT, true, messages_all().as_bytes(), 9);
    assert!(!out.contains("prompt_tokens"), "{out}");
}

/// A zero usage beside text is none: the caller estimates.
#[test]
fn a_zero_usage_beside_text_is_none() {
    let zero = chat_text()
        .replace("\"prompt_tokens\":30,\"completion_tokens\":12", "\"prompt_tokens\":0,\"completion_tokens\":0");
    let (_, _, stream) = run(CHAT, CHAT, false, zero.as_bytes(), 50);
    assert_eq!(stream.received().usage, None);
    let (_, _, stream) = run(CHAT, CHAT, false, chat_text().replace(CHAT_USAGE, "").as_bytes(), 50);
    assert_eq!((stream.received().usage, stream.received().finish), (None, Some(Finish::Stop)));
}

/// What is told before an answer stops is not what it came to: the caller estimates, from what was told of the input and of
/// the output so far.
#[test]
fn a_usage_before_the_end_is_not_the_whole() {
    let whole = messages_all();
    let cut = whole.find("event: message_delta").unwrap();
    let (_, _, stream) = run(MESSAGES, CHAT, false, &whole.as_bytes()[..cut], 50);
    let received = stream.received();
    assert_eq!(received.usage, None, "a start is no end");
    assert!(received.reported.is_some_and(|it| it.all_input() > 0 && it.all_output() == 0) && received.tokens > 0);
    let counted = chat_text().replace("\"usage\":null", "\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":7}");
    let cut = counted.find("\"stop\"").unwrap();
    let cut = counted[..cut].rfind("data:").unwrap();
    let (_, _, stream) = run(CHAT, MESSAGES, false, &counted.as_bytes()[..cut], 50);
    let received = stream.received();
    assert_eq!(received.usage, None);
    assert_eq!(received.reported.map(|it| (it.all_input(), it.all_output())), Some((30, 7)));
    let (_, _, stream) = run(CHAT, MESSAGES, false, counted.as_bytes(), 50);
    assert_eq!(stream.received().usage.map(|it| it.all_output()), Some(12));
}

/// A stream that stops without its last event never looks like a clean end, in either shape.
#[test]
fn a_stream_that_breaks_off_ends_in_an_error() {
    for (upstream, whole) in [(CHAT, chat_text()), (MESSAGES, messages_all())] {
        for client in [CHAT, MESSAGES] {
            let last = whole.trim_end().rfind("\n\n").unwrap();
            for cut in 0..last {
                let (out, ending, _) = run(upstream, client, false, &whole.as_bytes()[..cut], 40);
                let heard = hear(client, &out);
                // A chat stream that said why it stopped is whole without its last word.
                let whole = upstream == CHAT && ending == Ending::Clean;
                assert_eq!((heard.ended, heard.failed), (whole, !whole), "{upstream:?} {client:?} {cut} {out}");
                assert!(!whole || heard.finish.is_some());
            }
        }
    }
    let mut stream = Stream::new(CHAT, MESSAGES, StreamOptions::default());
    let mut out = Vec::new();
    stream.push(chat_text().as_bytes().get(..400).unwrap(), &mut out).unwrap();
    stream.cut(&mut out, "agent_stopped", "the agent was stopped");
    stream.push(chat_text().as_bytes(), &mut out).unwrap();
    stream.cut(&mut out, "agent_stopped", "again");
    assert_eq!(stream.end(&mut out), Ending::Cut);
    let out = String::from_utf8(out).unwrap();
    assert!(out.ends_with(
        "data: {\"type\":\"error\",\"error\":{\"type\":\"agent_stopped\",\"message\":\"the agent was stopped\"}}\n\n"
    ));
    let mut instead = Vec::new();
    stream.write_error(&mut instead, "agent_stopped", "the agent was stopped");
    assert!(out.ends_with(&String::from_utf8(instead).unwrap()), "said also where it has ended");
}

/// What is no stream of answers is told apart; an error within one is told in the client's shape, without keys.
#[test]
fn what_is_no_answer_is_not_passed_on() {
    for text in ["data: <html>\n\n", "data: [1]\n\n", "<html>\n<body>\n"] {
        for client in [CHAT, MESSAGES] {
            let (out, ending, _) = run(CHAT, client, false, text.as_bytes(), 3);
            assert_eq!(ending, Ending::Cut);
            assert!(hear(client, &out).failed && !out.contains("html>"), "{out}");
        }
    }
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"key sk-abcdefghijkl is busy\"}}\n\n";
    for client in [CHAT, MESSAGES] {
        let (out, ending, _) = run(
            MESSAGES,
            client,
            false,
            [&messages_all()[..300], error].concat().replace("}}event", "}}\n\nevent").as_bytes(),
            30,
        );
        assert!(!out.contains("sk-abc"), "{out}");
        let _ = ending;
        let (out, ending, _) = run(MESSAGES, client, false, error.as_bytes(), 30);
        assert!(matches!(ending, Ending::Failed(it) if &*it.message == "key [left out] is busy"));
        assert!(out.contains("overloaded_error") && hear(client, &out).failed);
    }
}

/// Thinking, text, two calls, the usage and the reason arrive in the chat shape.
#[test]
fn a_messages_stream_reads_as_a_chat_stream() {
    let (out, ending, _) = run(MESSAGES, CHAT, false, messages_all().as_bytes(), 11);
    assert_eq!(ending, Ending::Clean);
    let heard = hear(CHAT, &out);
    let call = |id: &str, name: &str, arguments: &str| (id.to_owned(), name.to_owned(), arguments.to_owned());
    let calls = vec![call("toolu_1", "get_weather", "{\"city\":\"Köln\"}"), call("toolu_2", "now", "{}")];
    let expected = Heard {
        text: "Looking".into(),
        thinking: "hmm".into(),
        calls,
        finish: Some("tool_calls".into()),
        usage: Some((30, 15)),
        ended: true,
        failed: false,
    };
    assert_eq!(heard, expected);
}

/// The first piece a call, calls that take turns, text between them, a name that comes late, a missing id or number, a
/// reason that is wrong: the messages shape's grammar holds and nothing is lost.
#[test]
fn tool_calls_in_any_order_read_as_blocks() {
    let call = |index: &str, id: &str, name: &str, arguments: &str| {
        chat_chunk(
            &format!(
                r#"{{"tool_calls":[{{{index}{id}"type":"function","function":{{{name}"arguments":{arguments}}}}}]}}"#
            ),
            "null",
        )
    };
    let one = [
        call("\"index\":0,", "\"id\":\"c0\",", "\"name\":\"a\",", r#""""#),
        call("\"index\":1,", "\"id\":\"c1\",", "\"name\":\"b\",", r#""{\"y\"""#),
        call("\"index\":0,", "", "", r#""{\"x\":{\"q\":\"}\\\"\"}""#),
        chat_chunk(r#"{"content":"between"}"#, "null"),
        call("\"index\":1,", "", "", r#"":2}""#),
        call("\"index\":0,", "", "", r#"",\"z\":1}""#),
        call("", "\"id\":\"c2\",", "\"name\":\"c\",", r#""{}""#),
        call("\"index\":3,", "\"id\":\"c3\",", "", r#""{\"late\"""#),
        call("\"index\":3,", "", "\"name\":\"d\",", r#"":true}""#),
        call("\"index\":4,", "", "\"name\":\"e\",", r#""""#),
        chat_chunk("{}", "\"stop\""),
        CHAT_USAGE.to_owned(),
        DONE.to_owned(),
    ]
    .concat();
    for piece in [1, 17, 100_000] {
        let (out, ending, _) = run(CHAT, MESSAGES, false, one.as_bytes(), piece);
        assert_eq!(ending, Ending::Clean);
        let heard = hear(MESSAGES, &out);
        let calls: Vec<_> = heard.calls.iter().map(|(id, name, arguments)| (&**id, &**name, &**arguments)).collect();
        assert_eq!(
            calls,
            [
                ("c0", "a", r#"{"x":{"q":"}\""},"z":1}"#),
                ("c1", "b", r#"{"y":2}"#),
                ("c2", "c", "{}"),
                ("c3", "d", r#"{"late":true}"#),
                ("cal_00000000000000000000000000_4", "e", "{}"),
            ]
        );
        assert_eq!((&*heard.text, heard.finish.as_deref(), heard.usage), ("between", Some("tool_use"), Some((20, 12))));
    }
}

/// A refusal, a bound, more than one answer, a usage alone.
#[test]
fn odd_chat_streams_read_as_messages() {
    for (middle, finish, text) in [
        (chat_chunk(r#"{"refusal":"no"}"#, "null") + &chat_chunk("{}", "\"stop\""), "refusal", "no"),
        (chat_chunk(r#"{"content":"cut o"}"#, "\"length\""), "max_tokens", "cut o"),
        (chat_chunk("{}", "\"content_filter\""), "refusal", ""),
        (
            chat_chunk(r#"{"content":"a"}"#, "\"stop\"")
                + &chat_chunk(r#"{"content":"b"}"#, "\"stop\"").replace("\"index\":0", "\"index\":1"),
            "end_turn",
            "a",
        ),
    ] {
        let stream = [&middle, CHAT_USAGE, DONE].concat();
        let (out, ending, _) = run(CHAT, MESSAGES, false, stream.as_bytes(), 33);
        let heard = hear(MESSAGES, &out);
        assert_eq!((ending, heard.finish.as_deref(), &*heard.text), (Ending::Clean, Some(finish), text));
    }
}

/// One thing that a provider of the chat shape may send.
#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Thinking(String),
    /// The next piece of the call of this number.
    Call(usize),
}

/// How a provider tells its calls apart.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// Each has a number.
    Numbered,
    /// All have the same number, and each piece an id.
    ByIds,
}

fn steps() -> impl Strategy<Value = (Vec<Step>, Vec<String>, Told)> {
    let step = prop_oneof![
        "[a-z\"\\\\é\n{}]{0,6}".prop_map(Step::Text),
        "[a-z\"{}]{0,4}".prop_map(Step::Thinking),
        (0..3_usize).prop_map(Step::Call),
    ];
    let value = "[a-z\"\\\\{}\\[\\]é]{0,8}";
    let arguments = prop::collection::vec(value, 3).prop_map(|it| {
        it.into_iter().map(|it| format!("{{\"k\":{{\"v\":{}}}}}", serde_json::to_string(&it).unwrap())).collect()
    });
    let told = prop_oneof![Just(Told::Numbered), Just(Told::ByIds)];
    (prop::collection::vec(step, 0..24), arguments, told)
}

/// The stream that these steps make; a call's arguments come in pieces of four characters.
fn written(steps: &[Step], arguments: &[String], told: Told) -> String {
    let quoted = |it: &str| serde_json::to_string(it).unwrap();
    let mut pieces: Vec<Vec<String>> = arguments
        .iter()
        .map(|it| it.chars().collect::<Vec<_>>().chunks(4).rev().map(|it| it.iter().collect()).collect())
        .collect();
    let mut numbers: Vec<usize> = Vec::new();
    let mut out = String::new();
    let mut piece = |out: &mut String, call: usize| {
        let Some(next) = pieces[call].pop() else { return };
        let known = numbers.iter().position(|it| *it == call);
        let index = known.unwrap_or_else(|| {
            numbers.push(call);
            numbers.len() - 1
        });
        let (index, identified) = match told {
            Told::Numbered => (index, known.is_none()),
            Told::ByIds => (0, true),
        };
        let head = if identified { format!("\"id\":\"c{call}\",\"type\":\"function\",") } else { String::new() };
        let name = if known.is_none() { format!("\"name\":\"f{call}\",") } else { String::new() };
        let text = quoted(&next);
        *out += &chat_chunk(
            &format!(r#"{{"tool_calls":[{{"index":{index},{head}"function":{{{name}"arguments":{text}}}}}]}}"#),
            "null",
        );
    };
    let mut called = Vec::new();
    for step in steps {
        match step {
            Step::Text(it) => out += &chat_chunk(&format!("{{\"content\":{}}}", quoted(it)), "null"),
            Step::Thinking(it) => out += &chat_chunk(&format!("{{\"reasoning_content\":{}}}", quoted(it)), "null"),
            Step::Call(it) => {
                called.push(*it);
                piece(&mut out, *it);
            }
        }
    }
    for call in called {
        for _ in 0..64 {
            piece(&mut out, call);
        }
    }
    out + &chat_chunk("{}", "\"stop\"") + CHAT_USAGE + DONE
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a chat stream brings, in whatever order and cut wherever: the grammar of the messages shape holds, the
    /// same comes out for every cut, and nothing of texts and calls is lost, there or on the way back.
    #[test]
    fn streams_keep_texts_and_calls_through_both_shapes((steps, arguments, told) in steps(), piece in 1_usize..400) {
        let sent = written(&steps, &arguments, told);
        let (there, ending, stream) = run(CHAT, MESSAGES, false, sent.as_bytes(), piece);
        prop_assert_eq!(ending, Ending::Clean);
        prop_assert_eq!(&run(CHAT, MESSAGES, false, sent.as_bytes(), usize::MAX).0, &there);
        prop_assert_eq!(&run(CHAT, CHAT, false, sent.as_bytes(), piece).0, &sent);
        // What was sent as numbers tell it: a client goes by these alone.
        let mut first = hear(CHAT, &written(&steps, &arguments, Told::Numbered));
        let mut second = hear(MESSAGES, &there);
        let (back, ending, again) = run(MESSAGES, CHAT, false, there.as_bytes(), piece);
        prop_assert_eq!(ending, Ending::Clean);
        let mut third = hear(CHAT, &back);
        prop_assert_eq!(&run(MESSAGES, MESSAGES, false, there.as_bytes(), piece).0, &there);
        prop_assert_eq!(first.usage, Some((30, 12)));
        prop_assert_eq!(second.usage, Some((20, 12)));
        prop_assert_eq!(stream.received().text_bytes, again.received().text_bytes);
        for it in [&mut first, &mut second, &mut third] {
            (it.finish, it.usage) = (None, None);
        }
        prop_assert_eq!(&first, &second);
        prop_assert_eq!(&first, &third);
    }

    /// No bytes at all make it panic or end twice.
    #[test]
    fn any_bytes_are_borne(lines in prop::collection::vec("(data: |event: |:)?[\\[\\]{}\",:a-z0-9]{0,20}(\n|\r\n|\n\n)", 0..12), piece in 1_usize..30) {
        for (upstream, client) in [(CHAT, CHAT), (CHAT, MESSAGES), (MESSAGES, CHAT), (MESSAGES, MESSAGES)] {
            let bytes = lines.concat();
            let (one, ending, _) = run(upstream, client, true, bytes.as_bytes(), piece);
            let (two, same, _) = run(upstream, client, true, bytes.as_bytes(), usize::MAX);
            prop_assert_eq!((one, ending), (two, same));
        }
    }
}
