//! What a usage is worth that pieces of the answer follow.

use super::*;
use crate::dialect::Received;
use crate::state::gateway::Usage;

fn of(usage: Option<Usage>) -> Option<(u64, u64)> {
    usage.map(|it| (it.all_input(), it.all_output()))
}

/// What was received of a stream, to its end or not, in each shape of the client's.
fn received(upstream: Dialect, answers: u32, text: &str) -> Vec<Received> {
    let options = StreamOptions { answers, ..StreamOptions::default() };
    let heard = |client| {
        let (mut stream, mut out) = (Stream::new(upstream, client, options), Vec::new());
        stream.push(text.as_bytes(), &mut out).unwrap();
        stream.end(&mut out);
        stream.received()
    };
    [CHAT, MESSAGES].into_iter().filter(|client| answers == 1 || *client == CHAT).map(heard).collect()
}

/// A usage after which more of the answer has come is none of the whole: the estimate goes by it and by what came.
#[test]
fn a_usage_that_text_follows_is_not_the_whole() {
    let words = |index: u32| {
        chat_chunk(r#"{"content":"word "}"#, "null").replace("\"index\":0", &format!("\"index\":{index}")).repeat(60)
    };
    let stop = chat_chunk("{}", "\"stop\"");
    let early = CHAT_USAGE.replace("12,\"total_tokens\":42", "5,\"total_tokens\":35");
    for text in [[&early, &*words(0)].concat(), [&early, &*words(0), &stop, DONE].concat()] {
        for it in received(CHAT, 1, &text) {
            assert_eq!((it.usage, of(it.reported), it.tokens), (None, Some((30, 5)), 75));
        }
    }
    for it in received(CHAT, 1, &[&words(0), &stop, CHAT_USAGE, &stop, DONE].concat()) {
        assert_eq!(of(it.usage), Some((30, 12)), "an end is no piece of it");
    }

    // The first of two answers has ended; what is told with the second counts on.
    let told = |text: &str, usage: &str| text.replacen("\"usage\":null", &format!("\"usage\":{usage}"), 1);
    let first = told(&stop, r#"{"prompt_tokens":30,"completion_tokens":5}"#);
    for it in received(CHAT, 2, &[&first, &*words(1)].concat()) {
        assert_eq!((it.usage, of(it.reported), it.tokens), (None, Some((30, 5)), 75));
    }
    let second = told(&words(1), r#"{"prompt_tokens":30,"completion_tokens":9}"#);
    for it in received(CHAT, 2, &[&first, &*second].concat()) {
        assert_eq!((it.usage, of(it.reported)), (None, Some((30, 9))));
    }
}

/// In the messages shape what is told before it is said why the answer stops counts as it goes, and so does what text follows.
#[test]
fn a_usage_without_a_reason_to_stop_is_not_the_whole() {
    let start = messages_event("message_start", r#","message":{"usage":{"input_tokens":30,"output_tokens":1}}"#);
    let block = messages_event("content_block_start", r#","index":0,"content_block":{"type":"text","text":""}"#);
    let word = messages_event("content_block_delta", r#","index":0,"delta":{"type":"text_delta","text":"word "}"#);
    let closed = messages_event("content_block_stop", r#","index":0"#);
    let told = |reason: &str, output: u64| {
        let members = format!(r#","delta":{{"stop_reason":{reason}}},"usage":{{"output_tokens":{output}}}"#);
        messages_event("message_delta", &members)
    };
    let stop = messages_event("message_stop", "");
    let begun = [&*start, &block, &word].concat();
    let words = word.repeat(50);
    for (text, kept) in [
        ([&begun, &*told("null", 2), &words].concat(), 2),
        ([&begun, &*told("\"end_turn\"", 2), &words, &closed, &stop].concat(), 2),
        ([&begun, &words, &closed, &*told("null", 70)].concat(), 70),
    ] {
        for it in received(MESSAGES, 1, &text) {
            assert_eq!((it.usage, of(it.reported), it.tokens), (None, Some((30, kept)), 64));
        }
    }
    let whole = [&begun, &*told("null", 2), &words, &closed, &told("\"end_turn\"", 70), &stop].concat();
    for it in received(MESSAGES, 1, &whole) {
        assert_eq!(of(it.usage), Some((30, 70)));
    }
}

/// What a stream of a chat model says at its beginning of what went in is an estimate, as its provider tells it at the end alone; there
/// stands the provider's own figure.
#[test]
fn a_beginning_says_about_how_much_went_in() {
    let text = [
        &chat_chunk(r#"{"role":"assistant","content":"a"}"#, "null"),
        &*chat_chunk("{}", "\"stop\""),
        CHAT_USAGE,
        DONE,
    ]
    .concat();
    let mut stream = Stream::new(CHAT, MESSAGES, StreamOptions { answers: 1, input: 77, ..StreamOptions::default() });
    let mut out = Vec::new();
    stream.push(text.as_bytes(), &mut out).unwrap();
    assert_eq!(stream.end(&mut out), Ending::Clean);
    let out = String::from_utf8(out).unwrap();
    let counted: Vec<&str> = out.split("\"input_tokens\":").skip(1).map(|it| it.split(',').next().unwrap()).collect();
    assert_eq!(counted, ["77", "20"], "{out}");
}

/// Where a provider tells no usage, or none that can be believed, a client of the other shape is told what the call is charged, if it
/// asked at all where its shape lets it; one of its own shape gets what it sent.
#[test]
fn an_estimate_is_told_in_the_other_shape() {
    let told = |upstream, client, strip_usage, text: &str| {
        let options =
            StreamOptions { strip_usage, answers: 1, input: 70, charged_input: 77, ..StreamOptions::default() };
        let (mut stream, mut out) = (Stream::new(upstream, client, options), Vec::new());
        stream.push(text.as_bytes(), &mut out).unwrap();
        assert_eq!(stream.end(&mut out), Ending::Clean, "{text}");
        String::from_utf8(out).unwrap()
    };
    let words = chat_chunk(r#"{"content":"word "}"#, "null").repeat(60);
    let frame = |usage: &str| format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n");
    for (usage, expected) in [
        (String::new(), (77, 75)),
        (frame("null"), (77, 75)),
        (frame(r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#), (77, 75)),
        (frame(r#"{"prompt_tokens":30,"completion_tokens":0}"#), (30, 75)),
        (frame(r#"{"completion_tokens":500}"#), (77, 500)),
        (frame(r#"{"prompt_tokens":30,"completion_tokens":12}"#), (30, 12)),
    ] {
        let text = [&*words, &chat_chunk("{}", "\"stop\""), &usage, DONE].concat();
        assert_eq!(hear(MESSAGES, &told(CHAT, MESSAGES, true, &text)).usage, Some(expected), "{usage}");
        assert_eq!(told(CHAT, CHAT, false, &text), text);
        let unended = text.replace(DONE, "");
        assert_eq!(hear(MESSAGES, &told(CHAT, MESSAGES, true, &unended)).usage, Some(expected), "{usage}");
    }
    let start = messages_event("message_start", r#","message":{"id":"m","model":"m-1"}"#);
    let block = messages_event("content_block_start", r#","index":0,"content_block":{"type":"text","text":""}"#);
    let word = messages_event("content_block_delta", r#","index":0,"delta":{"type":"text_delta","text":"word "}"#);
    let closed = messages_event("content_block_stop", r#","index":0"#);
    for (usage, expected) in [
        ("", (77, 75)),
        (r#","usage":{"input_tokens":0,"output_tokens":0}"#, (77, 75)),
        (r#","usage":{"input_tokens":30}"#, (30, 75)),
        (r#","usage":{"output_tokens":500}"#, (77, 500)),
        (r#","usage":{"input_tokens":30,"output_tokens":12}"#, (30, 12)),
    ] {
        let end = messages_event("message_delta", &format!(r#","delta":{{"stop_reason":"end_turn"}}{usage}"#));
        let stop = messages_event("message_stop", "");
        let text = [&*start, &block, &word.repeat(60), &closed, &end, &stop].concat();
        assert_eq!(hear(CHAT, &told(MESSAGES, CHAT, false, &text)).usage, Some(expected), "{usage}");
        assert_eq!(hear(CHAT, &told(MESSAGES, CHAT, true, &text)).usage, None, "{usage}");
        assert_eq!(told(MESSAGES, MESSAGES, false, &text), text);
    }
}

/// What begins a stream of the chat shape is the role alone: a client takes a content that is there for a text, and an answer of calls
/// has none.
#[test]
fn an_answer_of_calls_alone_has_no_content() {
    let start = messages_event("message_start", r#","message":{"id":"m","model":"m-1"}"#);
    let block = |it: &str| messages_event("content_block_start", &format!(r#","index":0,"content_block":{it}"#));
    let end = [
        messages_event("content_block_stop", r#","index":0"#),
        messages_event("message_delta", r#","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}"#),
        messages_event("message_stop", ""),
    ]
    .concat();
    let called = [&*start, &block(r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#), &end].concat();
    let (out, ending, _) = run(MESSAGES, CHAT, true, called.as_bytes(), 4_096);
    assert_eq!(
        (ending, out.matches("\"role\":\"assistant\"").count(), out.contains("content")),
        (Ending::Clean, 1, false),
        "{out}"
    );
    let said = [&*start, &block(r#"{"type":"text","text":"hi"}"#), &end].concat();
    let (out, _, _) = run(MESSAGES, CHAT, true, said.as_bytes(), 4_096);
    assert_eq!(out.matches("\"content\":\"hi\"").count(), 1, "{out}");
}
