//! Calls as no shape has them, and some providers send them all the same.

use super::*;
use crate::dialect::{Answer, Body, Broken, ClientNames, Unreadable};
use crate::value::Id as _;
use crate::value::id::CallId;

/// A chunk with these calls.
fn chunk(calls: &str) -> String {
    chat_chunk(&format!(r#"{{"tool_calls":[{calls}]}}"#), "null")
}

/// One call, or a piece of one: what stands before its function, its name, and its arguments as they are written.
fn call(head: &str, name: &str, arguments: &str) -> String {
    let name = if name.is_empty() { String::new() } else { format!(r#""name":"{name}","#) };
    format!(r#"{{{head}"type":"function","function":{{{name}"arguments":{arguments:?}}}}}"#)
}

fn end() -> String {
    [chat_chunk("{}", "\"tool_calls\""), DONE.to_owned()].concat()
}

/// Names and arguments of the calls that a client of the messages shape hears.
fn calls(stream: &str) -> Vec<(String, Json)> {
    let (out, ending, _) = run(CHAT, MESSAGES, false, stream.as_bytes(), 19);
    assert_eq!(ending, Ending::Clean, "{out}");
    let told = hear(MESSAGES, &out).calls;
    told.into_iter().map(|(_, name, input)| (name, Json::parse(input.as_bytes()).unwrap())).collect()
}

fn expected(calls: &[(&str, &str)]) -> Vec<(String, Json)> {
    calls.iter().map(|(name, input)| ((*name).to_owned(), Json::parse(input.as_bytes()).unwrap())).collect()
}

/// Some providers begin with the arguments of a call without any, and send the real ones after them.
#[test]
fn arguments_that_follow_empty_ones_count() {
    let msft = r#"{"stock":"MSFT"}"#;
    let first = |arguments: &str| chunk(&call(r#""index":0,"id":"c0","#, "get", arguments));
    let next = |arguments: &str| chunk(&call(r#""index":0,"#, "", arguments));
    for empty in ["{}", " { } ", "null", "[]", "\"\""] {
        let whole = [first(empty), next(msft), end()].concat();
        assert_eq!(calls(&whole), expected(&[("get", msft)]), "{empty}");
        let pieces = [first(empty), next(r#"{"stock""#), next(r#":"MSFT"}"#), next("\n"), end()].concat();
        assert_eq!(calls(&pieces), expected(&[("get", msft)]), "{empty}");
        let alone = [first(empty), end()].concat();
        assert_eq!(calls(&alone), expected(&[("get", "{}")]), "{empty}");
    }
    let piecewise = [first("{"), next("}"), next(msft), end()].concat();
    assert_eq!(calls(&piecewise), expected(&[("get", msft)]));
    let named_again = [first("{}"), chunk(&call(r#""index":0,"#, "get", msft)), end()].concat();
    assert_eq!(calls(&named_again), expected(&[("get", msft)]));
    let waiting = [
        first(msft),
        chunk(&call(r#""index":1,"id":"c1","#, "set", "{}")),
        chunk(&call(r#""index":1,"#, "", msft)),
        end(),
    ];
    assert_eq!(calls(&waiting.concat()), expected(&[("get", msft), ("set", msft)]));
}

/// Arguments that come when the call was told as whole are not left out in silence: the agent would run the tool without them, or by
/// others.
#[test]
fn arguments_that_come_too_late_break_the_stream() {
    let first = |arguments: &str| chunk(&call(r#""index":0,"id":"c0","#, "get", arguments));
    let late = |arguments: &str| chunk(&call(r#""index":0,"#, "", arguments));
    let text = chat_chunk(r#"{"content":"and"}"#, "null");
    let other = chunk(&call(r#""index":1,"id":"c1","#, "set", "{}"));
    let (one, msft) = (r#"{"a":1}"#, r#"{"stock":"MSFT"}"#);
    for (before, between) in [("{}", &text), ("{}", &other), (one, &String::new()), (one, &text)] {
        for pieces in [&[msft][..], &[r#"{"sto"#, r#"ck":1}"#]] {
            let late: String = pieces.iter().map(|it| late(it)).collect();
            let stream = [first(before), between.clone(), late, end()].concat();
            let (mut it, mut out) = (Stream::new(CHAT, MESSAGES, StreamOptions::default()), Vec::new());
            assert_eq!(it.push(stream.as_bytes(), &mut out), Err(Broken::NotEvents), "{stream}");
            assert!(!String::from_utf8(out).unwrap().contains("message_stop"));
        }
    }
}

/// What providers' own parsers leave behind whole arguments is no more than noise: an empty object, the same again, a mark of theirs.
#[test]
fn noise_behind_arguments_is_not_heard() {
    let one = r#"{"a":{"b":"}"}}"#;
    let first = |arguments: &str| chunk(&call(r#""index":0,"id":"c0","#, "get", arguments));
    let next = |arguments: &str| chunk(&call(r#""index":0,"#, "", arguments));
    let text = chat_chunk(r#"{"content":"and"}"#, "null");
    for noise in [
        &["{}"][..],
        &["{", "}"],
        &[one],
        &[r#"{"a":{"#, r#""b":"}"}}"#],
        &["\n"],
        &["</tool_call>"],
        &["\"\""],
        &["}"],
    ] {
        for between in ["", &text] {
            let noise: String = noise.iter().map(|it| next(it)).collect();
            let stream = [&first(one), between, &noise, &end()].concat();
            assert_eq!(calls(&stream), expected(&[("get", one)]), "{stream}");
        }
    }
    for noise in ["\"\"", "null", " ", "{}"] {
        for between in ["", &text] {
            let stream = [&first(""), &next("{}"), between, &next(noise), &end()].concat();
            assert_eq!(calls(&stream), expected(&[("get", "{}")]), "{stream}");
        }
    }
    // A name that is told again beside what says nothing, or the same, begins no other call.
    for noise in ["\n", "{}", one] {
        let again = chunk(&call(r#""index":0,"#, "get", noise));
        assert_eq!(calls(&[first(one), again, end()].concat()), expected(&[("get", one)]), "{noise:?}");
    }
    let old = r#"{"name":"get","arguments":"{\"a\":1}"}"#;
    let listed = call(r#""id":"c0","#, "get", r#"{"a":1}"#);
    let both = chat_chunk(&format!(r#"{{"tool_calls":[{listed}],"function_call":{old}}}"#), "\"tool_calls\"");
    assert_eq!(calls(&[both, DONE.to_owned()].concat()), expected(&[("get", r#"{"a":1}"#)]), "one call in two forms");
}

/// Arguments that are a text with quotes or lists in it are that text, in however many pieces.
#[test]
fn a_text_is_told_to_its_end() {
    let first = |arguments: &str| chunk(&call(r#""index":0,"id":"c0","#, "run", arguments));
    let next = |arguments: &str| chunk(&call(r#""index":0,"#, "", arguments));
    for pieces in [["print(", "\"hi\"", ")"], ["[1]", " ", "[2]"], ["\"a\"", " ", "\"b\""], ["12", "34", "[]"]] {
        let stream = [first(pieces[0]), next(pieces[1]), next(pieces[2]), end()].concat();
        let text = Json::parse(format!("{{\"arguments\":{:?}}}", pieces.concat()).as_bytes()).unwrap();
        assert_eq!(calls(&stream), [("run".to_owned(), text)], "{pieces:?}");
    }
}

/// Calls that have neither an id nor a number of their own are told apart where each comes whole.
#[test]
fn calls_without_anything_of_their_own_are_told_apart() {
    let (one, two) = (r#"{"a":1}"#, r#"{"a":2}"#);
    for head in [r#""index":0,"id":"","#, r#""index":0,"#, "", r#""id":null,"#] {
        let (first, second) = (call(head, "get", one), call(head, "get", two));
        let apart = [chunk(&first), chunk(&second), end()].concat();
        let together = [chunk(&format!("{first},{second}")), end()].concat();
        for stream in [apart, together] {
            assert_eq!(calls(&stream), expected(&[("get", one), ("get", two)]), "{stream}");
        }
        let (bare, other) = (call(head, "get", "{}"), call(head, "set", "{}"));
        let stream = [chunk(&bare), chunk(&other), end()].concat();
        assert_eq!(calls(&stream), expected(&[("get", "{}"), ("set", "{}")]), "{stream}");
        let same = call(r#""index":0,"id":"call_0","#, "set", two);
        let stream = [chunk(&call(r#""index":0,"id":"call_0","#, "get", one)), chunk(&same), end()].concat();
        assert_eq!(calls(&stream), expected(&[("get", one), ("set", two)]), "one id for all");
        let pieces = [chunk(&call(head, "get", r#"{"a""#)), chunk(&call(head, "get", ":1}")), end()].concat();
        assert_eq!(calls(&pieces), expected(&[("get", one)]), "a name that is told again begins nothing");
    }
}

/// A client tells results apart by the ids of their calls alone: one that has come before, in the conversation or in this answer, is
/// told as another.
#[test]
fn no_id_of_a_call_comes_twice() {
    let asked = r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[
        {"type":"tool_use","id":"call_0","name":"f","input":{}},{"type":"tool_use","id":"call_b64_YSBi","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","content":"x"},{"type":"tool_result","tool_use_id":"call_b64_YSBi","content":"x"}]}]}"#;
    let body = Body::read(MESSAGES, asked.as_bytes()).unwrap();
    assert_eq!(body.names(MESSAGES), ClientNames::default());
    let answered = CallId::from_bits(7);
    let given = ["call_0", "a b", "call_9", "call_9", "call_1"];
    let told = ["_0", "_1", "call_9", "_3", "call_1"]
        .map(|it| if it.starts_with('_') { format!("{answered}{it}") } else { it.to_owned() });
    let of = |(at, id): (usize, &&str)| call(&format!(r#""index":{at},"id":"{id}","#), "f", "{}");
    let all: Vec<_> = given.iter().enumerate().map(of).collect();
    let options = StreamOptions { call: answered, ..StreamOptions::default() };
    let (mut stream, mut out) = (Stream::new(CHAT, MESSAGES, options).naming(body.names(CHAT)), Vec::new());
    stream.push([chunk(&all.join(",")), end()].concat().as_bytes(), &mut out).unwrap();
    assert_eq!(stream.end(&mut out), Ending::Clean);
    let heard = hear(MESSAGES, std::str::from_utf8(&out).unwrap());
    assert!(heard.calls.iter().map(|(id, ..)| id).eq(&told), "{:?}", heard.calls);
    let answer =
        format!(r#"{{"choices":[{{"message":{{"tool_calls":[{}]}},"finish_reason":"tool_calls"}}]}}"#, all.join(","));
    let answer = Answer::read(CHAT, answer.as_bytes()).unwrap().naming(body.names(CHAT));
    let answer = Json::parse(&answer.to_client(MESSAGES, 7, answered)).unwrap();
    for (at, id) in told.iter().enumerate() {
        assert_eq!(text(&answer, &format!("content.{at}.id")), *id);
    }
}

/// A name that comes in pieces is one, and the tool's; one that is told again, whole or so far, is no piece.
#[test]
fn a_name_in_pieces_is_the_tools() {
    let tools =
        ["edit_existing_file", "edit_new_file", "read"].map(|it| format!(r#"{{"name":"{it}","input_schema":{{}}}}"#));
    let asked = format!(
        r#"{{"model":"m","max_tokens":9,"tools":[{}],"messages":[{{"role":"user","content":"x"}}]}}"#,
        tools.join(",")
    );
    let body = Body::read(MESSAGES, asked.as_bytes()).unwrap();
    for (pieces, expected) in [
        (&["edit_ex", "isting_file"][..], "edit_existing_file"),
        (&["ed", "it_", "", "new_file", "edit_new_file"], "edit_new_file"),
        (&["edit_ex", "edit_existing", "edit_existing_file"], "edit_existing_file"),
        (&["edit_ex", "edit_ex", "isting_file"], "edit_existing_file"),
        (&["read", "read"], "read"),
        (&["read", "er"], "read"),
        (&["other", "other"], "other"),
        (&["edit_ex"], "edit_ex"),
    ] {
        for head in [r#""index":0,"id":"c","#, r#""index":0,"#] {
            let named: String = pieces.iter().map(|it| chunk(&call(head, it, ""))).collect();
            let last = pieces.last().unwrap_or(&"");
            let stream = [named, chunk(&call(head, last, "{\"a\"")), chunk(&call(head, "", ":1}")), end()].concat();
            let options = StreamOptions::default();
            let (mut read, mut out) = (Stream::new(CHAT, MESSAGES, options).naming(body.names(CHAT)), Vec::new());
            read.push(stream.as_bytes(), &mut out).unwrap();
            assert_eq!(read.end(&mut out), Ending::Clean);
            let heard = hear(MESSAGES, std::str::from_utf8(&out).unwrap()).calls;
            let heard: Vec<_> = heard.iter().map(|(_, name, input)| (&**name, &**input)).collect();
            assert_eq!(heard, [(expected, "{\"a\":1}")], "{pieces:?}");
        }
    }
}

/// A stream of one event that is a whole answer is one; where the answer grows from event to event the last one counts, and beside
/// what is added it counts nothing.
#[test]
fn a_whole_answer_may_be_a_stream() {
    let event = |text: &str, delta: &str, finish: &str| {
        let message =
            format!(r#"{{"role":"assistant","content":"{text}","tool_calls":[{}]}}"#, call(r#""id":"c","#, "f", "{}"));
        format!("data: {{\"choices\":[{{\"index\":0,\"message\":{message},{delta}\"finish_reason\":{finish}}}]}}\n\n")
    };
    for (stream, said) in [
        ([event("hello", "", "\"tool_calls\""), DONE.to_owned()].concat(), "hello"),
        ([event("he", "", "null"), event("hello", "", "\"tool_calls\""), DONE.to_owned()].concat(), "hello"),
        (
            [
                event("he", r#""delta":{"content":"he"},"#, "null"),
                event("hello", r#""delta":{"content":"llo"},"#, "null"),
                event("hello", "", "\"tool_calls\""),
                DONE.to_owned(),
            ]
            .concat(),
            "hello",
        ),
    ] {
        let (out, ending, it) = run(CHAT, MESSAGES, false, stream.as_bytes(), 23);
        let heard = hear(MESSAGES, &out);
        assert_eq!((ending, &*heard.text), (Ending::Clean, said), "{out}");
        let deltas = stream.contains("delta");
        assert_eq!(heard.calls.len(), usize::from(!deltas), "{out}");
        assert_eq!(it.received().text_bytes, if deltas { 5 } else { 7 }, "{stream}");
        let (_, ending, same) = run(CHAT, CHAT, false, stream.as_bytes(), 23);
        assert_eq!((ending, same.received().text_bytes), (Ending::Clean, it.received().text_bytes));
    }
}

/// What a model has thought may be told in an empty member beside a full one, or in two that say the same, of which one counts.
#[test]
fn thinking_is_told_once() {
    for (said, thought) in [
        (r#""reasoning_content":"","reasoning":"hm""#, "hm"),
        (r#""reasoning_content":"hm","reasoning":"hm""#, "hm"),
        (r#""reasoning_content":null,"reasoning":"hm""#, "hm"),
        (r#""reasoning":"hm""#, "hm"),
    ] {
        let stream = [
            chat_chunk(&format!("{{{said}}}"), "null"),
            chat_chunk(r#"{"content":"yes"}"#, "\"stop\""),
            DONE.to_owned(),
        ];
        let (out, ending, it) = run(CHAT, MESSAGES, false, stream.concat().as_bytes(), 29);
        assert_eq!((ending, hear(MESSAGES, &out).thinking), (Ending::Clean, thought.to_owned()), "{said}");
        assert_eq!(it.received().text_bytes, 5, "{said}");
        let answer = format!(r#"{{"choices":[{{"message":{{{said},"content":"yes"}},"finish_reason":"stop"}}]}}"#);
        let answer = Answer::read(CHAT, answer.as_bytes()).unwrap();
        assert_eq!(answer.text_bytes(), 5, "{said}");
        let told = Json::parse(&answer.to_client(MESSAGES, 7, CallId::from_bits(7))).unwrap();
        assert_eq!(text(&told, "content.0.thinking"), thought, "{said}");
    }
}

/// An answer without an answer in it is none: another provider may have one.
#[test]
fn no_choice_is_no_answer() {
    let answer = br#"{"id":"x","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}"#;
    let Unreadable::NoChoice(Some(usage)) = Answer::read(CHAT, answer).unwrap_err() else { panic!("an answer") };
    assert_eq!((usage.input, usage.output), (9, 0), "what it says it used counts");
}

/// Nothing of an answer or a request stands in what these types say of themselves.
#[test]
fn no_text_is_in_debug_output() {
    let asked = r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"hushed","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"hushed","content":"x"}]}]}"#;
    let names = Body::read(MESSAGES, asked.as_bytes()).unwrap().names(CHAT);
    let said = [
        chunk(&call(r#""index":0,"id":"c0","#, "get", r#"{"a":"hushed""#)),
        chat_chunk(r#"{"content":"hushed"}"#, "null"),
        "data: {\"hushed".to_owned(),
    ];
    let (mut stream, mut out) =
        (Stream::new(CHAT, MESSAGES, StreamOptions::default()).naming(names.clone()), Vec::new());
    stream.push(said.concat().as_bytes(), &mut out).unwrap();
    let mut events = crate::dialect::sse::Events::default();
    events.push(said.concat().as_bytes());
    for told in [format!("{stream:?}"), format!("{names:?}"), format!("{events:?}")] {
        // Bytes are texts too.
        assert!(!told.contains("hushed") && !told.contains("104, 117"), "{told}");
    }
}

/// Gateways that give all blocks one number, or none, merge no calls and lose no thinking.
#[test]
fn blocks_of_one_number_are_told_apart() {
    let call = |id: &str, input: &str| {
        format!(r#","content_block":{{"type":"tool_use","id":"{id}","name":"f-{id}","input":{input}}}"#)
    };
    let thought = |text: &str| {
        messages_event(
            "content_block_start",
            &format!(r#","content_block":{{"type":"thinking","thinking":"{text}","signature":"s-{text}"}}"#),
        )
    };
    let json = |part: &str| {
        let delta = format!(
            r#","delta":{{"type":"input_json_delta","partial_json":{}}}"#,
            super::super::super::write::quoted(part)
        );
        messages_event("content_block_delta", &delta)
    };
    let (start, stop) =
        (|it: &str| messages_event("content_block_start", it), messages_event("content_block_stop", ""));
    let stream = [
        messages_event(
            "message_start",
            r#","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[]}"#,
        ),
        thought("one"),
        stop.clone(),
        thought("two"),
        stop.clone(),
        start(&call("a", "{}")),
        json("{\"x\":1}"),
        stop.clone(),
        // This one does not even end.
        start(&call("b", r#"{"y":2}"#)),
        start(&call("c", "{}")),
        json("{\"z\":3}"),
        stop,
        messages_event("message_delta", r#","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}"#),
        messages_event("message_stop", ""),
    ]
    .concat();
    let (out, ending, _) = run(MESSAGES, CHAT, false, stream.as_bytes(), 31);
    let heard = hear(CHAT, &out);
    let calls: Vec<_> = heard.calls.iter().map(|(_, name, arguments)| (&**name, &**arguments)).collect();
    assert_eq!(calls, [("f-a", "{\"x\":1}"), ("f-b", "{\"y\":2}"), ("f-c", "{\"z\":3}")], "{out}");
    assert_eq!(ending, Ending::Clean);
    assert!(out.contains("s-one") && out.contains("s-two"), "{out}");
}

/// A failure that a provider tells on a choice is one: no answer, and no clean end of a stream for either shape.
#[test]
fn a_failure_on_a_choice_is_no_end() {
    for (end, kind) in [
        (r#""error","error":{"code":"overloaded","message":"no room"}"#, "overloaded"),
        (r#""insufficient_system_resource""#, "insufficient_system_resource"),
    ] {
        let text = format!(
            r#"{{"choices":[{{"index":0,"message":{{"content":"half"}},"finish_reason":{end}}}],"usage":{{"prompt_tokens":9,"completion_tokens":2}}}}"#
        );
        let Err(Unreadable::Failed(error, Some(used))) = Answer::read(CHAT, text.as_bytes()) else { panic!("{text}") };
        assert_eq!((used.input, used.output), (9, 2), "what it says it used counts");
        assert_eq!(error.kind.as_deref(), Some(kind));
        for client in [CHAT, MESSAGES] {
            let stream = [chat_chunk(r#"{"content":"half"}"#, "null"), chat_chunk("{}", end), DONE.to_owned()].concat();
            let (out, ending, _) = run(CHAT, client, false, stream.as_bytes(), 23);
            let heard = hear(client, &out);
            assert!(matches!(ending, Ending::Failed(_)) && heard.failed && !heard.ended, "{out}");
            // What the event itself says of the use counts, also where nothing came before it.
            let event = format!("data: {text}\n\n");
            let (_, _, stream) = run(CHAT, client, false, event.as_bytes(), 23);
            let told = stream.received().reported;
            assert_eq!(told.map(|it| (it.input, it.output)), Some((9, 2)), "{text}");
        }
    }
}
