//! Streams of providers that mean no good: whatever they send, what is kept of it is bounded.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use svc_core::dialect::{Broken, CALLS_MAX, Ending, HELD_MAX, NAME_MAX, SERVER_TOOLS_MAX, Stream, StreamOptions};
use svc_core::state::gateway::Dialect;

const CHAT: Dialect = Dialect::Chat;
const MESSAGES: Dialect = Dialect::Messages;

fn stream(upstream: Dialect, client: Dialect) -> Stream {
    Stream::new(upstream, client, StreamOptions::default())
}

/// One event of a stream of the chat shape, whose delta has this member.
fn delta(member: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{{member}}}}}]}}\n\n")
}

/// A piece of a call's arguments.
fn arguments(call: usize, piece: &str) -> String {
    let function = format!("{{\"name\":\"f\",\"arguments\":\"{piece}\"}}");
    delta(&format!("\"tool_calls\":[{{\"index\":{call},\"id\":\"c{call}\",\"function\":{function}}}]"))
}

/// The start of a block of a message.
fn block(index: usize, block: &str) -> String {
    format!("data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{{block}}}}}\n\n")
}

/// How many of these events are taken until the stream is broken off as too much, `most` at most; what is written is thrown away.
fn taken(stream: &mut Stream, most: usize, event: impl Fn(usize) -> String) -> usize {
    let mut out = Vec::new();
    for number in 0..most {
        out.clear();
        if let Err(broken) = stream.push(event(number).as_bytes(), &mut out) {
            assert_eq!(broken, Broken::TooMuch);
            stream.cut(&mut out, "upstream_failure", "broken");
            assert!(String::from_utf8(out).unwrap().contains("upstream_failure"), "the client hears of it");
            assert_eq!(stream.end(&mut Vec::new()), Ending::Cut);
            return number;
        }
    }
    most
}

/// What waits behind a call whose arguments never end is held up to a bound: text, thinking, arguments of other calls, and the
/// calls themselves.
#[test]
fn what_waits_for_its_turn_is_bounded() {
    let piece = "x".repeat(64 * 1024);
    let most = 2 * HELD_MAX / piece.len();
    let waiting: [&dyn Fn(usize) -> String; 4] = [
        &|_| delta(&format!("\"content\":\"{piece}\"")),
        &|number| delta(&format!("\"{}\":\"{piece}\"", if number % 2 == 0 { "content" } else { "reasoning" })),
        &|_| arguments(1, &piece),
        &|number| arguments(1 + number % 3, &piece),
    ];
    for (number, event) in waiting.into_iter().enumerate() {
        let mut stream = stream(CHAT, MESSAGES);
        stream.push(arguments(0, "{").as_bytes(), &mut Vec::new()).unwrap();
        let taken = taken(&mut stream, most, event);
        assert!((most / 4..=HELD_MAX / piece.len()).contains(&taken), "{number}: {taken}");
    }
    // Pieces of a byte are as many as their places are counted for.
    let mut short = stream(CHAT, MESSAGES);
    short.push(arguments(0, "{").as_bytes(), &mut Vec::new()).unwrap();
    let word = |number| if number % 2 == 0 { "content" } else { "reasoning" };
    assert!(taken(&mut short, HELD_MAX / 16, |number| delta(&format!("\"{}\":\"x\"", word(number)))) < HELD_MAX / 32);
    let mut calls = stream(CHAT, MESSAGES);
    assert_eq!(taken(&mut calls, 2 * CALLS_MAX, |number| arguments(number, "{")), CALLS_MAX);
    // All in one event.
    let many: Vec<String> = (0..4 * CALLS_MAX).map(|it| format!("{{\"index\":{it},\"function\":{{}}}}")).collect();
    let event = delta(&format!("\"tool_calls\":[{}]", many.join(",")));
    assert_eq!(stream(CHAT, MESSAGES).push(event.as_bytes(), &mut Vec::new()), Err(Broken::TooMuch));
}

/// Calls of a message that begin and never end are held up to a bound, in number and with the arguments that they begin with.
#[test]
fn calls_that_never_end_are_bounded() {
    let call = |index, input: &str| block(index, &format!("\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"f\",{input}"));
    let mut calls = stream(MESSAGES, CHAT);
    assert_eq!(taken(&mut calls, 2 * CALLS_MAX, |number| call(number, "\"input\":{}")), CALLS_MAX);
    let long = format!("\"input\":{{\"a\":\"{}\"}}", "x".repeat(HELD_MAX / 4));
    let mut inputs = stream(MESSAGES, CHAT);
    assert_eq!(taken(&mut inputs, 8, |number| call(number, &long)), 3);
}

/// Tools that a provider says it ran are counted up to a number of kinds, whichever shape the client has.
#[test]
fn tools_of_the_provider_are_bounded() {
    let ran =
        |name: &str| block(0, &format!("\"type\":\"server_tool_use\",\"id\":\"i\",\"name\":\"{name}\",\"input\":{{}}"));
    let told = |number: usize| {
        let uses = format!("{{\"server_tool_use\":{{\"t{number}_requests\":1}}}}");
        format!("data: {{\"type\":\"message_delta\",\"delta\":{{}},\"usage\":{uses}}}\n\n")
    };
    for client in [CHAT, MESSAGES] {
        let most = 2 * SERVER_TOOLS_MAX;
        let events: [&dyn Fn(usize) -> String; 2] = [&|number| ran(&format!("t{number}")), &told];
        for event in events {
            let mut tools = stream(MESSAGES, client);
            assert_eq!(taken(&mut tools, most, event), SERVER_TOOLS_MAX);
            assert_eq!(tools.received().server_tools.len(), SERVER_TOOLS_MAX + 1);
        }
        let mut same = stream(MESSAGES, client);
        assert_eq!(taken(&mut same, most, |_| ran("web_search")), most, "one tool may run often");
        let mut long = stream(MESSAGES, client);
        assert_eq!(taken(&mut long, 2, |_| ran(&"x".repeat(NAME_MAX + 1))), 0);
    }
}

/// A name that each chunk would repeat is left out where it is long: what is written is in proportion to what came.
#[test]
fn no_long_name_is_repeated() {
    let name = "x".repeat(1 << 20);
    let start =
        format!("data: {{\"type\":\"message_start\",\"message\":{{\"id\":\"{name}\",\"model\":\"{name}\"}}}}\n\n");
    let text =
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n";
    let (mut answer, mut out) = (stream(MESSAGES, CHAT), Vec::new());
    answer.push(start.as_bytes(), &mut out).unwrap();
    answer.push(text.repeat(100).as_bytes(), &mut out).unwrap();
    assert!(out.len() < 100_000, "{}", out.len());
    assert_eq!(answer.received().model, None);
    let first =
        format!("data: {{\"id\":\"{name}\",\"model\":\"{name}\",\"choices\":[{{\"index\":0,\"delta\":{{}}}}]}}\n\n");
    let (mut answer, mut out) = (stream(CHAT, MESSAGES), Vec::new());
    answer.push(first.as_bytes(), &mut out).unwrap();
    assert!(out.len() < 10_000 && answer.received().model.is_none(), "{}", out.len());
}

/// What comes in its turn is not held, however much it is: a long answer with many calls after each other is whole.
#[test]
fn what_comes_in_its_turn_is_not_held() {
    let piece = "x".repeat(64 * 1024);
    let (mut answer, mut written) = (stream(CHAT, MESSAGES), 0);
    let mut push = |text: String| {
        let mut out = Vec::new();
        answer.push(text.as_bytes(), &mut out).unwrap();
        written += out.len();
    };
    for call in 0..128 {
        push(arguments(call, "{\\\"a\\\":\\\""));
        push(arguments(call, &piece));
        // Waits for the call to be whole.
        push(delta("\"content\":\"then\""));
        push(arguments(call, "\\\"}"));
    }
    for _ in 0..2 * HELD_MAX / piece.len() {
        push(delta(&format!("\"content\":\"{piece}\"")));
    }
    push("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n".to_owned());
    push("data: [DONE]\n\n".to_owned());
    assert!(written > 3 * HELD_MAX, "{written}");
    assert_eq!(answer.end(&mut Vec::new()), Ending::Clean);
}

/// A block of thinking, whole.
fn thought(index: usize, text: &str) -> String {
    let part =
        |delta: &str| format!("data: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{{delta}}}}}\n\n");
    let start = block(index, "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"");
    let piece = part(&format!("\"type\":\"thinking_delta\",\"thinking\":\"{text}\""));
    let text = if text.is_empty() { String::new() } else { piece };
    start + &text + &part(&format!("\"type\":\"signature_delta\",\"signature\":\"s{index}\""))
}

/// However much a model thinks, and in however many blocks, its stream ends whole: what has no room is told as text alone.
#[test]
fn thinking_breaks_no_stream() {
    let long = "x".repeat(HELD_MAX / 4);
    // Blocks without a text take room too.
    let many = HELD_MAX / 256;
    let cases: [(usize, &str, usize); 4] = [(300, "x", 300), (5, &long, 3), (many, "", many / 2), (0, "", 0)];
    for (blocks, text, kept) in cases {
        let (mut answer, mut out) = (stream(MESSAGES, CHAT), Vec::new());
        let thoughts: Vec<String> = (0..blocks).map(|index| thought(index, text)).collect();
        for thoughts in thoughts.chunks(1_000) {
            answer.push(thoughts.concat().as_bytes(), &mut out).unwrap();
        }
        // A block that the provider alone reads, where there is no room for it either.
        answer.push(block(blocks, "\"type\":\"redacted_thinking\",\"data\":\"r\"").as_bytes(), &mut out).unwrap();
        let end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                   data: {\"type\":\"message_stop\"}\n\n";
        answer.push(end.as_bytes(), &mut out).unwrap();
        assert_eq!(answer.end(&mut out), Ending::Clean, "{blocks}");
        let told = String::from_utf8(out).unwrap();
        assert!(told.ends_with("data: [DONE]\n\n"), "{blocks}");
        assert_eq!(told.matches("\"reasoning_content\":\"x").count(), if text.is_empty() { 0 } else { blocks });
        let signed = told.matches("\"signature\":\"s").count();
        assert!(signed <= kept && signed * 10 >= kept * 9, "{blocks}: {signed}");
        let whole = format!("\"thinking\":\"{text}\",\"signature\"");
        assert_eq!(told.matches(&whole).count(), signed, "{blocks}: each is whole");
    }
}
