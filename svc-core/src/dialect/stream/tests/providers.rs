//! What providers do each in their own way.

use super::*;
use crate::dialect::{Answer, Body, Target};
use crate::state::gateway::Host;
use crate::value::Id as _;
use crate::value::id::CallId;

/// Calls that all have the number 0 are told apart by their ids, as some providers send them: whole or in pieces.
#[test]
fn calls_that_share_a_number_are_told_apart() {
    let call = |id: &str, name: &str, arguments: &str| {
        let delta = format!(
            r#"{{"tool_calls":[{{"index":0,{id}"type":"function","function":{{{name}"arguments":{arguments}}}}}]}}"#
        );
        chat_chunk(&delta, "null")
    };
    let stream = [
        call("\"id\":\"c0\",", "\"name\":\"a\",", r#""{\"x\":1}""#),
        call("\"id\":\"c1\",", "\"name\":\"b\",", r#""{\"y\"""#),
        call("", "", r#"":2}""#),
        call("\"id\":\"c2\",", "\"name\":\"a\",", r#""{""#),
        // Another id without a name is no other call: some providers give each piece one.
        call("\"id\":\"other\",", "", r#""}""#),
        chat_chunk("{}", "\"tool_calls\""),
        DONE.to_owned(),
    ]
    .concat();
    let (out, ending, _) = run(CHAT, MESSAGES, false, stream.as_bytes(), 13);
    assert_eq!(ending, Ending::Clean);
    let heard = hear(MESSAGES, &out);
    let calls: Vec<_> = heard.calls.iter().map(|(id, name, arguments)| (&**id, &**name, &**arguments)).collect();
    assert_eq!(calls, [("c0", "a", r#"{"x":1}"#), ("c1", "b", r#"{"y":2}"#), ("c2", "a", "{}")]);
}

/// A call's id counts also where it comes before the function, and one that has none is named after the call that is answered.
/// An id alone is no call.
#[test]
fn each_call_has_an_id_of_its_own() {
    let piece = |call: &str| chat_chunk(&format!("{{\"tool_calls\":[{{{call}}}]}}"), "null");
    let text = [
        piece(r#""index":0,"id":"real","type":"function""#),
        piece(r#""index":0,"function":{"name":"a","arguments":"{}"}"#),
        piece(r#""index":1,"function":{"name":"b","arguments":"{}"}"#),
        piece(r#""index":2,"id":"alone","type":"function""#),
        chat_chunk("{}", "\"tool_calls\""),
        DONE.to_owned(),
    ]
    .concat();
    let ids = |call: u128| {
        let options = StreamOptions { call: CallId::from_bits(call), ..StreamOptions::default() };
        let (mut stream, mut out) = (Stream::new(CHAT, MESSAGES, options), Vec::new());
        stream.push(text.as_bytes(), &mut out).unwrap();
        assert_eq!(stream.end(&mut out), Ending::Clean);
        let heard = hear(MESSAGES, std::str::from_utf8(&out).unwrap());
        heard.calls.into_iter().map(|(id, ..)| id).collect::<Vec<_>>()
    };
    assert_eq!(ids(1), ["real".to_owned(), format!("{}_1", CallId::from_bits(1))]);
    assert_ne!(ids(1).last(), ids(2).last());
}

/// A surrogate pair that a provider cut between its halves goes on as it came, and a client that puts the pieces together has it
/// whole, in either shape.
#[test]
fn half_a_surrogate_pair_breaks_no_stream() {
    let delta = |text: &str| {
        let members = format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#);
        messages_event("content_block_delta", &members)
    };
    let messages = [
        messages_event("message_start", r#","message":{"id":"m","model":"m-1"}"#),
        messages_event("content_block_start", r#","index":0,"content_block":{"type":"text","text":""}"#),
        delta(r"hi \ud83d"),
        delta(r"\ude00 you"),
        messages_event("content_block_stop", r#","index":0"#),
        messages_event("message_delta", r#","delta":{"stop_reason":"end_turn"}"#),
        messages_event("message_stop", ""),
    ]
    .concat();
    let halves = [chat_chunk(r#"{"content":"hi \ud83d"}"#, "null"), chat_chunk(r#"{"content":"\ude00 you"}"#, "null")];
    let end = |reason: &str| chat_chunk("{}", reason) + DONE;
    for (upstream, text) in [(CHAT, halves.concat() + &end("\"stop\"")), (MESSAGES, messages)] {
        for client in [CHAT, MESSAGES] {
            let (out, ending, stream) = run(upstream, client, false, text.as_bytes(), 30);
            assert_eq!((ending, stream.received().begun), (Ending::Clean, true), "{out}");
            assert!(upstream != client || out == text, "{out}");
            assert!(out.contains(r#""hi \ud83d""#) && out.contains(r#""\ude00 you""#), "{out}");
        }
    }
    // Behind a call that is open its pieces wait, and are one.
    let call = |arguments: &str| {
        let function = format!(r#"{{"name":"f","arguments":"{arguments}"}}"#);
        chat_chunk(&format!(r#"{{"tool_calls":[{{"index":0,"id":"c","function":{function}}}]}}"#), "null")
    };
    let late = [call("{"), halves.concat(), call("}"), end("\"tool_calls\"")].concat();
    let (out, ..) = run(CHAT, MESSAGES, false, late.as_bytes(), 30);
    assert_eq!(hear(MESSAGES, &out).text, "hi 😀 you");
}

/// A call's arguments that a provider cut between the halves of a surrogate pair are put together again before they go on: half a
/// pair is no text that every client can keep. Where the other half never comes they are cut off rather than altered: an agent acts
/// on them.
#[test]
fn arguments_are_put_together_where_a_sign_was_cut() {
    let call = |number: u32, arguments: &str| {
        let function = format!(r#"{{"name":"f","arguments":"{arguments}"}}"#);
        let call = format!(r#"{{"index":{number},"id":"c{number}","function":{function}}}"#);
        chat_chunk(&format!(r#"{{"tool_calls":[{call}]}}"#), "null")
    };
    let end = chat_chunk("{}", "\"tool_calls\"") + DONE;
    for (pieces, meant) in [
        (&[r"a\ud83d", r"\ude00b"][..], Some("a😀b")),
        (&[r"\uD83D", "", r"\uDE00\ud83d", r"\ude01"], Some("😀😁")),
        (&[r"\ud83d\ude00"], Some("😀")),
        (&[r"\\ud83d"], Some(r"\ud83d")),
        (&["\u{fffd}"], Some("\u{fffd}")),
        (&[r"\ufffd"], Some("\u{fffd}")),
        (&[r"\ud83d"], None),
        (&[r"\ud83d", "x"], None),
        (&[r"\ud83d", r"\ud83d", r"\ude00"], None),
        (&[r"\ude00"], None),
        (&[r"\ud83dx"], None),
    ] {
        let middle: String = pieces.iter().map(|it| call(0, it) + &call(1, "")).collect();
        let text = [call(0, r#"{\"p\":\""#), call(1, "{}"), middle, call(0, r#"\"}"#), end.clone()].concat();
        let (out, ending, _) = run(CHAT, MESSAGES, false, text.as_bytes(), 30);
        assert_eq!(ending == Ending::Clean, meant.is_some(), "{pieces:?}: {out}");
        let calls = hear(MESSAGES, &out).calls.into_iter().map(|it| it.2).collect::<Vec<_>>();
        if let Some(meant) = meant {
            assert_eq!(calls, [format!(r#"{{"p":"{meant}"}}"#), "{}".to_owned()]);
        }
    }
    // The last piece that comes.
    let text = call(0, r#"{\"p\":\"\ud83d"#) + &chat_chunk("{}", "\"tool_calls\"");
    for text in [text.clone() + DONE, text] {
        let (out, ending, _) = run(CHAT, MESSAGES, false, text.as_bytes(), 30);
        assert!(ending == Ending::Cut && hear(MESSAGES, &out).failed, "{out}");
    }
}

/// Thinking goes with its signature as it was signed, wherever a provider cut it.
#[test]
fn thinking_is_kept_as_it_was_signed() {
    let delta = |kind: &str, text: &str| {
        let delta = format!(r#"{{"type":"{kind}_delta","{kind}":"{text}"}}"#);
        messages_event("content_block_delta", &format!(r#","index":0,"delta":{delta}"#))
    };
    let begun = r#","index":0,"content_block":{"type":"thinking","thinking":"\"so\" \ud83d","signature":""}"#;
    let stream = [
        messages_event("message_start", r#","message":{"id":"m","model":"m-1"}"#),
        messages_event("content_block_start", begun),
        delta("thinking", r"\ude00 or \ud83d"),
        delta("thinking", r"\ude01\n"),
        delta("signature", "AA"),
        delta("signature", r"\u003d="),
        messages_event("content_block_stop", r#","index":0"#),
        messages_event("message_delta", r#","delta":{"stop_reason":"end_turn"}"#),
        messages_event("message_stop", ""),
    ]
    .concat();
    let (out, ending, _) = run(MESSAGES, CHAT, false, stream.as_bytes(), 30);
    assert_eq!(ending, Ending::Clean);
    let told = out.lines().find(|it| it.contains("thinking_blocks")).and_then(|it| it.strip_prefix("data: ")).unwrap();
    let json = Json::parse(told.as_bytes()).unwrap();
    let block = at(&json, "choices.0.delta.thinking_blocks.0").unwrap();
    assert_eq!((&*text(block, "thinking"), &*text(block, "signature")), ("\"so\" 😀 or 😁\n", "AA=="));
}

/// A last event without its blank line is one all the same: the last word, or the usage. Half of one is none.
#[test]
fn a_last_event_needs_no_blank_line() {
    let usage_last = chat_text().replace(DONE, "");
    for (upstream, text) in [(CHAT, &chat_text()), (CHAT, &usage_last), (MESSAGES, &messages_all())] {
        let short = text.trim_end().to_owned();
        for (client, line) in [(CHAT, "\n"), (MESSAGES, "\n"), (CHAT, "\r\n"), (MESSAGES, "\r")] {
            for short in [short.clone(), short.clone() + "\n"] {
                let short = short.replace('\n', line);
                let (out, ending, stream) = run(upstream, client, false, short.as_bytes(), 31);
                assert!(ending == Ending::Clean && stream.received().usage.is_some(), "{client:?} {line:?} {out}");
                let events = out.replace("\r\n", "\n").replace('\r', "\n");
                assert!(events.ends_with("\n\n") && (upstream != client || out.starts_with(short.trim_end())), "{out}");
                assert!((upstream, client) == (MESSAGES, MESSAGES) || hear(client, &events).ended, "{out}");
            }
        }
    }
    for half in ["da", "data: [DO", "data: {\"choices\":[],\"usage\":{\"prompt", "event: message"] {
        for client in [CHAT, MESSAGES] {
            let (out, ending, _) = run(CHAT, client, false, (usage_last.clone() + half).as_bytes(), 31);
            assert_eq!((ending, hear(client, &out).failed), (Ending::Cut, true), "{half} {out}");
            assert!(!out.contains(&format!("{half}\n")), "{half} {out}");
        }
    }
}

/// One side of a usage that a provider tells is kept for the estimate, whichever it is.
#[test]
fn one_side_of_a_usage_is_kept() {
    let sides = |stream: &Stream| {
        let received = stream.received();
        assert_eq!(received.usage, None);
        received.reported.map(|it| (it.all_input(), it.output, it.reasoning))
    };
    let blind = messages_all()
        .replace(r#"{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}"#, r#"{"input_tokens":0}"#)
        .replace(r#"{"output_tokens":15}"#, r#"{"output_tokens":500}"#);
    for client in [CHAT, MESSAGES] {
        assert_eq!(sides(&run(MESSAGES, client, false, blind.as_bytes(), 50).2), Some((0, 500, 0)));
        for (told, kept) in [
            (r#"{"completion_tokens":500}"#, (0, 500, 0)),
            (
                r#"{"prompt_tokens":0,"completion_tokens":500,"completion_tokens_details":{"reasoning_tokens":490}}"#,
                (0, 10, 490),
            ),
            (r#"{"prompt_tokens":30}"#, (30, 0, 0)),
        ] {
            let frame = format!("data: {{\"choices\":[],\"usage\":{told}}}\n\n");
            let text = chat_text().replace(CHAT_USAGE, &frame);
            assert_eq!(sides(&run(CHAT, client, false, text.as_bytes(), 50).2), Some(kept), "{told}");
        }
    }
}

/// Of a stream of several answers that lacks its last word each has to have come, and to have told why it stopped.
#[test]
fn a_stream_is_whole_with_the_last_of_its_answers() {
    let chunk = |number: u32, finish: &str| {
        chat_chunk(r#"{"content":"a"}"#, finish).replace("\"index\":0", &format!("\"index\":{number}"))
    };
    for (asked, chunks, whole) in [
        (1, vec![chunk(0, "\"stop\"")], true),
        (1, vec![chunk(0, "\"\"")], false),
        (2, vec![chunk(0, "\"stop\"")], false),
        (2, vec![chunk(0, "null"), chunk(1, "null"), chunk(0, "\"stop\"")], false),
        (1, vec![chunk(0, "null"), chunk(1, "null"), chunk(0, "\"stop\"")], false),
        (2, vec![chunk(0, "null"), chunk(1, "\"stop\""), chunk(0, "\"length\"")], true),
    ] {
        let mut stream = Stream::new(CHAT, CHAT, StreamOptions { answers: asked, ..StreamOptions::default() });
        let mut out = Vec::new();
        stream.push(chunks.concat().as_bytes(), &mut out).unwrap();
        assert_eq!(stream.end(&mut out) == Ending::Clean, whole, "{asked} {chunks:?}");
        assert_eq!(hear(CHAT, std::str::from_utf8(&out).unwrap()).failed, !whole);
    }
    let many: String = (0..=128).map(|it| chunk(it, "null")).collect();
    let mut stream = Stream::new(CHAT, CHAT, StreamOptions::default());
    assert!(stream.push(many.as_bytes(), &mut Vec::new()).is_err(), "no more than can be asked for");
}

/// What a provider sends to keep a connection open is no piece of its answer; whatever it makes is.
#[test]
fn what_keeps_a_connection_open_is_no_piece() {
    let ping = messages_event("ping", "");
    let empty = chat_chunk(r#"{"role":"assistant","content":"","tool_calls":[]}"#, "null");
    let call = chat_chunk(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#, "null");
    let signed = r#","index":0,"delta":{"type":"signature_delta","signature":"AAAA"}"#;
    let running = r#","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#;
    let start = |kind: &str| {
        messages_event("content_block_start", &format!(r#","index":0,"content_block":{{"type":"{kind}"}}"#))
            + &messages_event("content_block_stop", r#","index":0"#)
            + &ping
    };
    for (upstream, text, pieces) in [
        (MESSAGES, &*ping, 0),
        // Thinking that is not shown, a tool that the provider runs, arguments held back until they are whole: a ping is all
        // that tells of them.
        (MESSAGES, &*start("thinking"), 3),
        (MESSAGES, &*start("server_tool_use"), 3),
        (MESSAGES, &*start("tool_use"), 3),
        (MESSAGES, &*start("text"), 2),
        (MESSAGES, ": ping\n\n", 0),
        (MESSAGES, &*messages_event("content_block_delta", signed), 1),
        (MESSAGES, &*messages_event("content_block_start", running), 1),
        (CHAT, ": PROCESSING\n\n", 0),
        (CHAT, &*empty, 0),
        (CHAT, CHAT_USAGE, 0),
        (CHAT, &*call, 1),
        (CHAT, &*chat_chunk(r#"{"reasoning":"a"}"#, "\"stop\""), 2),
    ] {
        let mut stream = Stream::new(upstream, CHAT, StreamOptions::default());
        stream.push(text.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(stream.pieces(), pieces, "{text}");
    }
}

/// What a provider sends to keep a connection open keeps the client's open too, in the client's own way, once the answer has begun:
/// nothing before that, when another provider may yet be asked, nothing for blank lines, and nothing behind the end.
#[test]
fn what_keeps_a_connection_open_goes_on() {
    let first = chat_chunk(r#"{"role":"assistant","content":"a"}"#, "null");
    let last = chat_chunk("{}", "\"stop\"");
    let text = format!(": WORKING\n\n\n\n{first}: WORKING\n: on it\n\n{last}{DONE}: late\n\n");
    let (out, ending, _) = run(CHAT, MESSAGES, false, text.as_bytes(), 7);
    let events: Vec<&str> = out.split_terminator("\n\n").map(|it| it.lines().next().unwrap()).collect();
    let pings: Vec<_> = events.iter().enumerate().filter(|(_, it)| **it == "event: ping").map(|(at, _)| at).collect();
    assert_eq!((events[0], pings, ending), ("event: message_start", vec![3], Ending::Clean), "{out}");
    assert!(out.contains("event: ping\ndata: {\"type\":\"ping\"}\n\n") && !out.contains(": keep-alive"), "{out}");
    assert!(out.ends_with("\"message_stop\"}\n\n"), "{out}");

    // One ping comes before the answer has begun, one and a comment after it.
    let (start, stop) = ("event: content_block_start", "event: content_block_stop");
    let text = messages_all().replacen(start, &format!("event: ping\ndata: {{\"type\":\"ping\"}}\n\n{start}"), 1);
    let text = text.replacen(stop, &format!(": a comment\n\n{stop}"), 1);
    let (out, ..) = run(MESSAGES, CHAT, false, text.as_bytes(), 7);
    assert_eq!((text.matches("event: ping").count(), out.matches(": keep-alive\n\n").count()), (2, 2), "{out}");
}

/// What tools of the provider's brought in is heard of as it goes by.
#[test]
fn tools_that_the_provider_ran_are_heard_of() {
    let start = |block: &str| {
        let members = format!(r#","index":0,"content_block":{block}"#);
        messages_event("content_block_start", &members) + &messages_event("content_block_stop", r#","index":0"#)
    };
    let stream = [
        messages_event("message_start", r#","message":{"usage":{"input_tokens":5,"output_tokens":1}}"#),
        start(r#"{"type":"mcp_tool_use","id":"s2","name":"read","server_name":"mail","input":{}}"#),
        start(r#"{"type":"mcp_tool_result","tool_use_id":"s2","content":[]}"#),
        start(r#"{"type":"web_fetch_tool_result","tool_use_id":"s0","content":{}}"#),
        start(r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#),
        start(r#"{"type":"tool_search_tool_result","tool_use_id":"s3","content":{}}"#),
        messages_event("message_stop", ""),
    ]
    .concat();
    let (.., stream) = run(MESSAGES, MESSAGES, false, stream.as_bytes(), 70);
    let received = stream.received();
    assert_eq!(received.brought.iter().map(|it| &**it).collect::<Vec<_>>(), ["mcp__mail__read", "web_fetch"]);
    let uses = [("mcp".into(), 1), ("web_search".into(), 1)];
    assert_eq!(received.server_tools.into_iter().collect::<Vec<_>>(), uses);
    let cited = chat_chunk(r#"{"content":"a","annotations":[{"type":"url_citation","url_citation":{}}]}"#, "\"stop\"");
    let found = "data: {\"choices\":[],\"citations\":[\"https://x.example\"]}\n\n";
    let (.., stream) = run(CHAT, CHAT, false, [&cited, found, DONE].concat().as_bytes(), 70);
    let received = stream.received();
    assert_eq!(received.server_tools.into_iter().collect::<Vec<_>>(), [("web_search".into(), 1)]);
    assert!(received.brought.contains("web_search"));
}

/// An answer whose end never came is no clean one, though its provider says its last word: a call that was cut, one answer of
/// two, blocks that are never closed.
#[test]
fn a_last_word_before_the_end_is_a_cut() {
    let call = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"amount\": 1"}}]}"#;
    let second = chat_chunk(r#"{"content":"b"}"#, "null").replace("\"index\":0", "\"index\":1");
    let chat = [
        chat_chunk(call, "null") + DONE,
        chat_chunk(r#"{"content":"a"}"#, "\"stop\"") + &second + DONE,
        CHAT_USAGE.to_owned() + DONE,
    ];
    let whole = messages_all();
    let end = whole.find("event: message_delta").unwrap();
    let open = whole[..end].rfind("event: content_block_stop").unwrap();
    let messages = [end, open].map(|it| whole[..it].to_owned() + &messages_event("message_stop", ""));
    let all = chat.iter().map(|it| (CHAT, it)).chain(messages.iter().map(|it| (MESSAGES, it)));
    for (upstream, text) in all {
        for client in [CHAT, MESSAGES] {
            let (out, ending, _) = run(upstream, client, false, text.as_bytes(), 21);
            let heard = hear(client, &out);
            assert_eq!((ending, heard.ended, heard.failed), (Ending::Cut, false, true), "{out}");
            assert!(heard.finish.is_none() || text.contains("\"stop\""), "no reason is invented: {out}");
        }
    }
}

/// An end that tells no output beside text is not believed for what the start told: the caller estimates, from the input that
/// was told. Beside nothing it is.
#[test]
fn an_end_without_output_beside_text_is_not_the_whole() {
    let whole = messages_all();
    for usage in [r#"{"output_tokens":0}"#, r#"{"output_tokens":null}"#, "{}", "null"] {
        let told = whole.replace(r#""usage":{"output_tokens":15}"#, &format!("\"usage\":{usage}"));
        for client in [CHAT, MESSAGES] {
            let (_, ending, stream) = run(MESSAGES, client, false, told.as_bytes(), 60);
            let received = stream.received();
            assert_eq!((ending, received.usage), (Ending::Clean, None), "{usage}");
            assert_eq!(received.reported.map(|it| (it.all_input(), it.all_output())), Some((30, 0)));
            assert!(received.tokens > 1);
        }
        let start = &told[..told.find("event: content_block_start").unwrap()];
        let silent = start.to_owned() + &told[told.find("event: message_delta").unwrap()..];
        let (.., stream) = run(MESSAGES, MESSAGES, false, silent.as_bytes(), 60);
        assert_eq!(stream.received().usage.is_some(), usage != "null", "{usage}");
    }
}

/// A client of the chat shape gets what the provider knows its model's thinking by, once and before the end: thinking that is not
/// signed is none of it.
#[test]
fn thinking_comes_with_its_signature() {
    let block = |number: u32, block: &str| {
        let members = format!(r#","index":{number},"content_block":{block}"#);
        messages_event("content_block_start", &members)
            + &messages_event("content_block_stop", &format!(r#","index":{number}"#))
    };
    let redacted = block(7, r#"{"type":"redacted_thinking","data":"ZZ"}"#);
    let unsigned = block(8, r#"{"type":"thinking","thinking":"loose","signature":""}"#);
    let at = messages_all().find("event: message_delta").unwrap();
    let mut text = messages_all();
    text.insert_str(at, &(redacted + &unsigned));
    let (out, ending, _) = run(MESSAGES, CHAT, false, text.as_bytes(), 19);
    assert_eq!(ending, Ending::Clean);
    hear(CHAT, &out);
    let told: Vec<_> = out.lines().filter(|it| it.contains("thinking_blocks")).collect();
    let [told] = told[..] else { panic!("once: {out}") };
    let json = Json::parse(told.strip_prefix("data: ").unwrap().as_bytes()).unwrap();
    let expected =
        r#"[{"type":"thinking","thinking":"hmm","signature":"AAAA"},{"type":"redacted_thinking","data":"ZZ"}]"#;
    assert_eq!(super::at(&json, "choices.0.delta.thinking_blocks"), Some(&Json::parse(expected.as_bytes()).unwrap()));
    let (plain, ..) = run(CHAT, MESSAGES, false, chat_text().as_bytes(), 50);
    assert!(!run(MESSAGES, CHAT, false, plain.as_bytes(), 50).0.contains("thinking_blocks"));
}

/// Thinking of a model of the chat shape ends with a mark of its own, without which clients do not keep it.
#[test]
fn thinking_of_the_chat_shape_is_marked() {
    let think = |text: &str| chat_chunk(&format!(r#"{{"reasoning_content":"{text}"}}"#), "null");
    let say = |text: &str| chat_chunk(&format!(r#"{{"content":"{text}"}}"#), "null");
    let end = chat_chunk("{}", "\"stop\"") + DONE;
    let reason = |text: &str| chat_chunk(&format!(r#"{{"reasoning":"{text}"}}"#), "null");
    let part = |text: &str| {
        let part = format!(r#"{{"type":"thinking","thinking":[{{"type":"text","text":"{text}"}}]}}"#);
        chat_chunk(&format!(r#"{{"content":[{part}]}}"#), "null")
    };
    let (own, other) = ("svc_unsigned", "svc_unsigned:other");
    for (text, expected) in [
        ([think("h"), think("m"), say("so"), end.clone()].concat(), vec![own]),
        ([think("h"), say("so"), think("m"), end.clone()].concat(), vec![own; 2]),
        ([reason("h"), reason("m"), say("so"), end.clone()].concat(), vec![other]),
        ([part("h"), part("m"), think("x"), end.clone()].concat(), vec![other, own]),
        ([say("so"), end].concat(), vec![]),
    ] {
        let (out, ..) = run(CHAT, MESSAGES, false, text.as_bytes(), 30);
        hear(MESSAGES, &out);
        let marks: Vec<_> = out.split("\"signature_delta\",\"signature\":\"").skip(1).collect();
        let ended: Vec<_> = marks
            .iter()
            .filter_map(|it| it.split_once("\"}}\n\nevent: content_block_stop\n").map(|(mark, _)| mark))
            .collect();
        assert_eq!((ended, marks.len()), (expected.clone(), expected.len()), "{out}");
        assert!(!run(MESSAGES, CHAT, false, out.as_bytes(), 50).0.contains("thinking_blocks"));
    }
    let mut stream = Stream::new(CHAT, MESSAGES, StreamOptions::default()).of_provider("two");
    let mut out = Vec::new();
    stream.push([think("h"), chat_chunk("{}", "\"stop\""), DONE.to_owned()].concat().as_bytes(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(r#""signature_delta","signature":"svc_unsigned@two""#), "{out}");
}

/// A call is told in the letters that the messages shape has for its id, and by the name that the client gave the tool.
#[test]
fn calls_are_told_as_the_client_may_send_them_back() {
    let long = format!("mcp__server__{}", "x".repeat(90));
    let body = format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}}],"tools":[{{"name":"{long}","input_schema":{{}}}}]}}"#
    );
    let body = Body::read(MESSAGES, body.as_bytes()).unwrap();
    let sent = body
        .to_upstream(Target {
            dialect: CHAT,
            model: "m",
            max_output: 9,
            reasoning: false,
            provider: "one",
            is_strict: false,
            host: Host::Other,
            is_elsewhere: false,
            is_its_own: true,
            bound: None,
        })
        .unwrap();
    let short = text(&Json::parse(&sent).unwrap(), "tools.0.function.name");
    assert_eq!(short.len(), 64);
    let call = |number: u32, name: &str| {
        let function = format!(r#"{{"name":"{name}","arguments":"{{}}"}}"#);
        let call = format!(r#"{{"index":{number},"id":"functions.f:{number}","function":{function}}}"#);
        chat_chunk(&format!(r#"{{"tool_calls":[{call}]}}"#), "null")
    };
    let answer = [call(0, &short), call(1, "other"), chat_chunk("{}", "\"tool_calls\""), DONE.to_owned()].concat();
    let stream = Stream::new(CHAT, MESSAGES, StreamOptions::default());
    let (mut stream, mut out) = (stream.naming(body.names(CHAT)), Vec::new());
    stream.push(answer.as_bytes(), &mut out).unwrap();
    assert_eq!(stream.end(&mut out), Ending::Clean);
    let heard = hear(MESSAGES, std::str::from_utf8(&out).unwrap());
    let names: Vec<_> = heard.calls.iter().map(|(_, name, _)| &**name).collect();
    assert_eq!(names, [&*long, "other"]);
    let ids: std::collections::BTreeSet<_> = heard.calls.iter().map(|(id, ..)| id).collect();
    assert!(ids.len() == 2 && ids.iter().flat_map(|it| it.bytes()).all(|it| it.is_ascii_alphanumeric() || it == b'_'));
}

/// What a whole answer of the chat shape gives a client of the messages shape.
fn whole(message: &str, finish: &str) -> Json {
    let text = format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"{finish}"}}]}}"#);
    let answer = Answer::read(CHAT, text.as_bytes()).unwrap();
    Json::parse(&answer.to_client(MESSAGES, 7, CallId::from_bits(7))).unwrap()
}

/// Arguments that come as the object itself, encoded twice, or as nothing in other words, are one object to a client of the messages
/// shape, whole and streamed, and what comes behind them is heard.
#[test]
fn arguments_are_one_object_however_they_come() {
    let quoted = |text: &str| format!("{text:?}");
    let rome = r#"{"city":"Rome"}"#;
    let twice = quoted(&quoted(rome));
    for (sent, pieces, input) in [
        (rome, vec![rome.to_owned()], rome),
        (&*quoted(rome), vec![quoted(r#"{"city":"#), quoted(r#""Rome"}"#)], rome),
        (&*twice, vec![quoted(r#""{\"city\":"#), quoted(r#"\"Rome\"}""#)], rome),
        (r#""[]""#, vec![r#""[""#.to_owned(), r#""]""#.to_owned()], "{}"),
        (r#"" null ""#, vec![r#"" nu""#.to_owned(), r#""ll""#.to_owned()], "{}"),
        ("null", vec!["null".to_owned()], "{}"),
        (r#""[1]""#, vec![r#""[1]""#.to_owned()], r#"{"arguments":"[1]"}"#),
        (r#""[1""#, vec![r#""[1""#.to_owned()], r#"{"arguments":"[1"}"#),
    ] {
        let function = format!(r#"{{"id":"t1","type":"function","function":{{"name":"get","arguments":{sent}}}}}"#);
        let found = whole(&format!(r#"{{"tool_calls":[{function}]}}"#), "stop");
        let expected = Json::parse(input.as_bytes()).unwrap();
        assert_eq!(at(&found, "content.0.input"), Some(&expected), "{sent}");
        assert_eq!(text(&found, "stop_reason"), "tool_use", "{sent}");
        let mut stream = chat_chunk(r#"{"tool_calls":[{"index":0,"id":"t1","function":{"name":"get"}}]}"#, "null");
        for piece in pieces {
            let delta = format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":{piece}}}}}]}}"#);
            stream.push_str(&chat_chunk(&delta, "null"));
        }
        stream.push_str(&chat_chunk(r#"{"content":"after"}"#, "\"stop\""));
        stream.push_str(DONE);
        let (out, ending, _) = run(CHAT, MESSAGES, false, stream.as_bytes(), 17);
        let heard = hear(MESSAGES, &out);
        assert_eq!(
            (ending, &*heard.text, heard.finish.as_deref()),
            (Ending::Clean, "after", Some("tool_use")),
            "{sent}"
        );
        let [(id, name, arguments)] = &heard.calls[..] else { panic!("{out}") };
        assert_eq!((&**id, &**name, Json::parse(arguments.as_bytes()).unwrap()), ("t1", "get", expected), "{sent}");
    }
    let (out, _, stream) = run(
        CHAT,
        CHAT,
        false,
        chat_chunk(r#"{"tool_calls":[{"index":0,"function":{"name":"get","arguments":{"a":1}}}]}"#, "null").as_bytes(),
        99,
    );
    assert!(out.contains(r#""arguments":{"a":1}"#) && stream.received().text_bytes >= 7, "they count as what they are");
    let back = r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":1}}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}"#;
    let sent = Body::read(CHAT, back.as_bytes())
        .unwrap()
        .to_upstream(Target {
            dialect: MESSAGES,
            model: "m",
            max_output: 9,
            reasoning: false,
            provider: "p",
            is_strict: false,
            host: Host::Other,
            is_elsewhere: false,
            is_its_own: true,
            bound: None,
        })
        .unwrap();
    assert!(String::from_utf8(sent).unwrap().contains(r#""input":{"a":1}"#), "and come back so");
}

/// A call of the older form is a call, and a provider that says it is done where it waits for tools waits for tools.
#[test]
fn calls_are_told_whatever_their_end_says() {
    let found = whole(r#"{"content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}}"#, "function_call");
    assert_eq!((text(&found, "content.0.name"), int(&found, "content.0.input.a")), ("f".to_owned(), Some(1)));
    let answer = r#"{"content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"end_turn"}"#;
    let answer = Answer::read(MESSAGES, answer.as_bytes()).unwrap().to_client(CHAT, 7, CallId::from_bits(7));
    assert_eq!(text(&Json::parse(&answer).unwrap(), "choices.0.finish_reason"), "tool_calls");
    let stream = [
        messages_event("message_start", r#","message":{"id":"m","model":"m","usage":{"input_tokens":1}}"#),
        messages_event(
            "content_block_start",
            r#","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}"#,
        ),
        messages_event("content_block_stop", r#","index":0"#),
        messages_event("message_delta", r#","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}"#),
        messages_event("message_stop", ""),
    ]
    .concat();
    let (out, ending, _) = run(MESSAGES, CHAT, false, stream.as_bytes(), 31);
    assert_eq!((ending, hear(CHAT, &out).finish.as_deref()), (Ending::Clean, Some("tool_calls")));
}
