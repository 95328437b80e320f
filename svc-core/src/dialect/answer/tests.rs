//! Whole answers of both shapes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use super::super::{Answer, Body, Finish, Stream, StreamOptions, Unreadable};
use crate::state::gateway::{Dialect, Service};
use crate::value::Id as _;
use crate::value::id::CallId;
use crate::value::json::Json;

const CHAT: Dialect = Dialect::Chat;
const MESSAGES: Dialect = Dialect::Messages;

const CHAT_ANSWER: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hé \"you\"","reasoning_content":"hmm","refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.50}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}},{"id":"c3","type":"function","function":{"name":"h","arguments":"{oops"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":30,"completion_tokens":12,"total_tokens":42,"prompt_tokens_details":{"cached_tokens":10}},"service_tier":"flex","system_fingerprint":"fp"}"#;
const MESSAGES_ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[{"type":"thinking","thinking":"hmm","signature":"AAAA"},{"type":"text","text":"Hé "},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","text":"you"},{"type":"tool_use","id":"t1","name":"f","input":{"a": 1.50}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":20,"cache_creation_input_tokens":3,"cache_read_input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2},"output_tokens":12,"service_tier":"priority","server_tool_use":{"web_search_requests":2}}}"#;

/// The call that is answered.
fn asked() -> CallId {
    CallId::from_bits(77)
}

fn json(bytes: &[u8]) -> Json {
    Json::parse(bytes).unwrap_or_else(|it| panic!("{it}: {}", String::from_utf8_lossy(bytes)))
}

/// In the client's own shape an answer is the provider's, byte for byte; its usage, reason and model are told.
#[test]
fn an_answer_in_ones_own_shape_is_not_touched() {
    for (dialect, text) in [(CHAT, CHAT_ANSWER), (MESSAGES, MESSAGES_ANSWER)] {
        let padded = format!(" {text}\n");
        let answer = Answer::read(dialect, padded.as_bytes()).unwrap();
        assert_eq!(answer.to_client(dialect, 7, asked()), padded.as_bytes());
        assert_eq!((answer.model(), answer.finish()), (Some("m-1"), Some(Finish::ToolCalls)));
        assert!(!format!("{answer:?}").contains("you"));
    }
    let answer = Answer::read(MESSAGES, MESSAGES_ANSWER.as_bytes()).unwrap();
    let usage = answer.usage().unwrap();
    assert_eq!(
        (usage.input, usage.cached_input, usage.cache_write, usage.cache_write_long, usage.output),
        (20, 10, 1, 2, 12)
    );
    assert_eq!(answer.server_tools().iter().map(|(it, uses)| (&**it, *uses)).collect::<Vec<_>>(), [("web_search", 2)]);
    assert_eq!((answer.service().tier.as_deref(), answer.text_bytes()), (Some("priority"), 3 + 4 + 3 + 11));
    let answer = Answer::read(CHAT, CHAT_ANSWER.as_bytes()).unwrap();
    assert_eq!((answer.usage().unwrap().input, answer.service().tier.as_deref()), (20, Some("flex")));
}

/// A chat answer in the messages shape: thinking, text, calls with their arguments as written, usage, reason.
#[test]
fn a_chat_answer_reads_as_a_message() {
    let out = Answer::read(CHAT, CHAT_ANSWER.as_bytes()).unwrap().to_client(MESSAGES, 7, asked());
    let expected = r#"{"id":"chatcmpl-1","type":"message","role":"assistant","model":"m-1","content":[{"type":"thinking","thinking":"hmm","signature":"svc_unsigned"},{"type":"text","text":"Hé \"you\""},{"type":"tool_use","id":"c1","name":"f","input":{"a": 1.50}},{"type":"tool_use","id":"c2","name":"g","input":{}},{"type":"tool_use","id":"c3","name":"h","input":{"arguments":"{oops"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":10,"output_tokens":12}}"#;
    assert_eq!(json(&out), json(expected.as_bytes()));
    for (message, reason, stop) in [
        (r#""content":null,"refusal":"no""#, "stop", "refusal"),
        (r#""content":"x""#, "length", "max_tokens"),
        (r#""content":"x""#, "content_filter", "refusal"),
        (
            r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"x"}]"#,
            "stop",
            "end_turn",
        ),
        (
            r#""content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]"#,
            "stop",
            "tool_use",
        ),
    ] {
        let text = format!(r#"{{"choices":[{{"message":{{{message}}},"finish_reason":"{reason}"}}]}}"#);
        let answer = Answer::read(CHAT, text.as_bytes()).unwrap();
        let out = json(&answer.to_client(MESSAGES, 7, asked()));
        assert_eq!(out.get("stop_reason").and_then(Json::as_str), Some(stop), "{message}");
        assert_eq!(answer.usage(), None);
        assert!(out.get("content").and_then(Json::as_list).is_some_and(|it| !it.is_empty()));
    }
}

/// Calls without an id of their own are named after the call that is answered: those of no other answer have the same.
#[test]
fn calls_without_an_id_get_one_of_their_own() {
    let call = |id: &str| format!(r#"{{{id}"type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let calls = [call(""), call(r#""id":"","#), call(r#""id":"real","#)].join(",");
    let text = format!(r#"{{"choices":[{{"message":{{"content":null,"tool_calls":[{calls}]}}}}]}}"#);
    let answer = Answer::read(CHAT, text.as_bytes()).unwrap();
    let ids = |call: CallId| {
        let out = json(&answer.to_client(MESSAGES, 7, call));
        let blocks = out.get("content").and_then(Json::as_list).unwrap().to_vec();
        blocks.iter().map(|it| it.get("id").and_then(Json::as_str).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (first, next) = (ids(asked()), ids(CallId::from_bits(78)));
    assert_eq!(first, [format!("{}_0", asked()), format!("{}_1", asked()), "real".to_owned()]);
    assert!(first[..2].iter().all(|it| !next.contains(it)), "{first:?} {next:?}");
}

/// Half a surrogate pair breaks no answer: it goes on as it came, and in the other shape U+FFFD stands for it.
#[test]
fn half_a_surrogate_pair_breaks_no_answer() {
    let text =
        r#"{"choices":[{"message":{"content":"a\\ \ud83d\ude00 \ud83d \ude00\n\u00e9"},"finish_reason":"stop"}]}"#;
    let answer = Answer::read(CHAT, text.as_bytes()).unwrap();
    assert_eq!(answer.to_client(CHAT, 7, asked()), text.as_bytes());
    let meant = "a\\ 😀 \u{fffd} \u{fffd}\né";
    let out = json(&answer.to_client(MESSAGES, 7, asked()));
    let block = out.get("content").and_then(Json::as_list).and_then(|it| it.first()?.get("text")?.as_str()).unwrap();
    assert_eq!((block, answer.text_bytes()), (meant, u64::try_from(meant.len()).unwrap()));
}

/// A message in the chat shape; the model's own thinking comes along, to be sent back.
#[test]
fn a_message_reads_as_a_chat_answer() {
    let out = Answer::read(MESSAGES, MESSAGES_ANSWER.as_bytes()).unwrap().to_client(CHAT, 7, asked());
    let expected = r#"{"id":"msg_1","object":"chat.completion","created":7,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hé you","refusal":null,"reasoning_content":"hmm","thinking_blocks":[{"type":"thinking","thinking":"hmm","signature":"AAAA"}],"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.50}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":33,"completion_tokens":12,"total_tokens":45,"prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":0}}}"#;
    assert_eq!(json(&out), json(expected.as_bytes()));
    let back = Answer::read(CHAT, &out).unwrap();
    let usage = back.usage().unwrap();
    assert_eq!((usage.input, usage.cached_input, usage.cache_write, usage.output), (20, 10, 3, 12));
}

/// A page, half a body, another shape, and an error with status 200 are told apart.
#[test]
fn what_is_no_answer_is_said() {
    for (text, why) in [
        ("<html>", Unreadable::NotJson),
        ("{\"choices\":[", Unreadable::NotJson),
        ("", Unreadable::NotJson),
        ("[]", Unreadable::NotAnswer(None)),
        ("{}", Unreadable::NotAnswer(None)),
        ("{\"content\":[]}", Unreadable::NotAnswer(None)),
    ] {
        assert_eq!(Answer::read(CHAT, text.as_bytes()).unwrap_err(), why, "{text}");
    }
    assert_eq!(Answer::read(MESSAGES, b"{\"choices\":[]}").unwrap_err(), Unreadable::NotAnswer(None));
    // Whatever else it lacks, what it says of its use holds.
    for (dialect, text) in [
        (CHAT, r#"{"id":"x","usage":{"prompt_tokens":30,"completion_tokens":9}}"#),
        (CHAT, r#"{"choices":null,"usage":{"prompt_tokens":30,"completion_tokens":9}}"#),
        (MESSAGES, r#"{"type":"message","usage":{"input_tokens":30,"output_tokens":9}}"#),
    ] {
        let used = Answer::read(dialect, text.as_bytes()).unwrap_err().reported();
        assert_eq!(used.map(|it| (it.input, it.output)), Some((30, 9)), "{text}");
    }
    let failed = Answer::read(CHAT, br#"{"error":{"message":"out of credit","code":402}}"#).unwrap_err();
    assert_eq!(failed.to_string(), "it answered with an error: out of credit");
}

/// What tools of the provider's brought in is told of a whole answer, by the names of the calls and the kinds of results.
#[test]
fn tools_that_the_provider_ran_are_told() {
    let messages = r#"{"content":[{"type":"mcp_tool_use","id":"s2","name":"read","server_name":"mail","input":{}},
        {"type":"mcp_tool_result","tool_use_id":"s2","content":[]},{"type":"web_fetch_tool_result","tool_use_id":"s0","content":{}},
        {"type":"tool_search_tool_result","tool_use_id":"s3","content":{}}]}"#;
    let answer = Answer::read(Dialect::Messages, messages.as_bytes()).unwrap();
    assert_eq!(answer.brought().iter().map(|it| &**it).collect::<Vec<_>>(), ["mcp__mail__read", "web_fetch"]);
    assert_eq!(answer.server_tools().get("mcp"), Some(&1), "what a server is asked is priced under one name");
    let chat = |members: &str| {
        let text =
            format!(r#"{{"choices":[{{"index":0,"message":{{"content":"a"{members}}}}}],"search_results":[{{}}]}}"#);
        Answer::read(Dialect::Chat, text.as_bytes()).unwrap()
    };
    assert!(chat("").brought().contains("web_search") && chat("").server_tools().is_empty());
    assert!(chat(r#","annotations":[{"type":"file"}]"#).server_tools().is_empty());
    assert!(chat(r#","annotations":[{"type":"url_citation"}]"#).server_tools().contains_key("web_search"));
    let zhipu = r#"{"choices":[{"message":{"content":"a"}}],"web_search":[{"link":"https://x.example"}]}"#;
    assert!(Answer::read(CHAT, zhipu.as_bytes()).unwrap().brought().contains("web_search"));
}

/// Searches are counted in whichever of the ways that providers of the chat shape tell them, in an answer and in a stream, the most
/// that is told; counts of what is no tool are none.
#[test]
fn searches_of_the_chat_shape_are_counted() {
    for (told, uses) in [
        (r#""num_search_queries":3"#, &[("web_search", 3)][..]),
        (r#""server_tool_use":{"web_search_requests":5}"#, &[("web_search", 5)]),
        (r#""server_tool_use_details":{"web_search_requests":2,"tool_calls_executed":4}"#, &[("web_search", 2)]),
        (
            r#""server_tool_use":{"web_search_requests":1,"web_fetch_requests":2},"num_search_queries":4"#,
            &[("web_fetch", 2), ("web_search", 4)],
        ),
        (r#""server_tool_use":{"web_search_requests":0},"server_tool_use_details":null"#, &[]),
        (r#""server_tool_use":7"#, &[]),
    ] {
        let usage = format!(r#""usage":{{"prompt_tokens":1,"completion_tokens":1,{told}}}"#);
        let answer = format!(r#"{{"choices":[{{"message":{{"content":"a"}}}}],{usage}}}"#);
        let answer = Answer::read(CHAT, answer.as_bytes()).unwrap();
        let counted = |it: &std::collections::BTreeMap<Box<str>, u64>| {
            it.iter().map(|(name, uses)| (name.to_string(), *uses)).collect::<Vec<_>>()
        };
        let uses: Vec<_> = uses.iter().map(|(name, uses)| ((*name).to_owned(), *uses)).collect();
        assert_eq!(counted(answer.server_tools()), uses, "{told}");
        let mut stream = Stream::new(CHAT, CHAT, StreamOptions::default());
        let chunk = format!("data: {{\"choices\":[],{usage}}}\n\n");
        stream.push(chunk.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(counted(&stream.received().server_tools), uses, "{told}");
    }
}

/// An error that says nothing beside an answer is none, at the root and on a choice; without an answer it is one.
#[test]
fn an_error_that_says_nothing_is_none_beside_an_answer() {
    for error in ["{}", "\"\"", "[]", "false", "null"] {
        let whole = format!(
            r#"{{"choices":[{{"message":{{"content":"a"}},"error":{error},"finish_reason":"stop"}}],"error":{error}}}"#
        );
        Answer::read(CHAT, whole.as_bytes()).unwrap();
        let whole = format!(r#"{{"content":[{{"type":"text","text":"a"}}],"error":{error}}}"#);
        Answer::read(MESSAGES, whole.as_bytes()).unwrap();
        let chunk = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"stop\"}}],\"error\":{error}}}\n\ndata: [DONE]\n\n"
        );
        let mut stream = Stream::new(CHAT, CHAT, StreamOptions::default());
        stream.push(chunk.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(stream.end(&mut Vec::new()), crate::dialect::Ending::Clean, "{error}");
    }
    for error in ["{}", "\"\"", "{\"code\":1}", "true"] {
        let alone = format!(r#"{{"error":{error}}}"#);
        assert!(matches!(Answer::read(CHAT, alone.as_bytes()).unwrap_err(), Unreadable::Failed(..)), "{error}");
    }
    let beside = br#"{"choices":[{"message":{"content":"a"}}],"error":{"message":"no"}}"#;
    assert!(matches!(Answer::read(CHAT, beside).unwrap_err(), Unreadable::Failed(..)));
}

/// How a provider says that it has served is heard, in an answer and in a stream: its tier, its speed, and where it ran.
#[test]
fn how_it_was_served_is_heard() {
    let usage = r#"{"input_tokens":1,"output_tokens":1,"service_tier":"standard","speed":"fast","inference_geo":"US"}"#;
    let word = |it: &str| Some(it.into());
    let expected = Service { tier: word("standard"), speed: word("fast"), geo: word("us"), drew: false };
    let answer = format!(r#"{{"content":[{{"type":"text","text":"x"}}],"usage":{usage}}}"#);
    assert_eq!(Answer::read(MESSAGES, answer.as_bytes()).unwrap().service(), &expected);
    for (start, delta) in [(usage, "{}"), ("{}", usage)] {
        let events = format!(
            "data: {{\"type\":\"message_start\",\"message\":{{\"usage\":{start}}}}}\n\n\
             data: {{\"type\":\"message_delta\",\"usage\":{delta}}}\n\n"
        );
        let mut stream = Stream::new(MESSAGES, MESSAGES, StreamOptions::default());
        stream.push(events.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(stream.received().service, expected, "{events}");
    }
}

/// An answer that the provider kept back is a refusal, be there a message in it or not; a call that is none is a failure of its.
#[test]
fn what_was_kept_back_is_a_refusal() {
    for choice in [
        r#"{"index":0,"finish_reason":"content_filter: RECITATION"}"#,
        r#"{"index":0,"message":{"role":"assistant"},"finish_reason":"content_filter: PROHIBITED_CONTENT"}"#,
        r#"{"index":0,"message":{"content":""},"finish_reason":"sensitive"}"#,
    ] {
        let text = format!(r#"{{"choices":[{choice}]}}"#);
        let answer = Answer::read(CHAT, text.as_bytes()).unwrap();
        let out = json(&answer.to_client(MESSAGES, 7, asked()));
        assert_eq!(out.get("stop_reason").and_then(Json::as_str), Some("refusal"), "{choice}");
        let mut stream = Stream::new(CHAT, MESSAGES, StreamOptions::default());
        let mut told = Vec::new();
        stream.push(format!("data: {text}\n\ndata: [DONE]\n\n").as_bytes(), &mut told).unwrap();
        assert!(String::from_utf8(told).unwrap().contains(r#""stop_reason":"refusal""#), "{choice}");
    }
    let called =
        r#"{"choices":[{"message":{"content":""},"finish_reason":"function_call_filter: MALFORMED_FUNCTION_CALL"}]}"#;
    assert!(matches!(Answer::read(CHAT, called.as_bytes()), Err(Unreadable::Failed(..))));
}

/// What the messages shape has no place for is told as text: what was spoken as it was, and of a picture that there was one.
#[test]
fn sound_and_pictures_are_told_as_text() {
    let said = r#"{"content":null,"audio":{"id":"a","data":"UklGRg==","transcript":"Hé \"you\""},"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}"#;
    let whole = format!(r#"{{"choices":[{{"message":{said},"finish_reason":"stop"}}]}}"#);
    let out = json(&Answer::read(CHAT, whole.as_bytes()).unwrap().to_client(MESSAGES, 7, asked()));
    let blocks = out.get("content").and_then(Json::as_list).unwrap();
    let texts: Vec<_> = blocks.iter().filter_map(|it| it.get("text")?.as_str()).collect();
    assert_eq!(texts, ["Hé \"you\"", super::PICTURE]);
    let mut stream = Stream::new(CHAT, MESSAGES, StreamOptions::default());
    let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{said}}}]}}"#);
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let mut told = Vec::new();
    stream.push(format!("data: {chunk}\n\n").as_bytes(), &mut told).unwrap();
    assert!(stream.has_begun());
    stream.push(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes(), &mut told).unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains(r#""text":"Hé \"you\"""#) && told.contains(super::PICTURE), "{told}");
    assert!(told.contains(r#""stop_reason":"end_turn""#) && !told.contains("base64"), "{told}");
}

/// Thinking that only its provider reads is the beginning of an answer, though no token of it is shown.
#[test]
fn thinking_that_is_not_shown_begins_an_answer() {
    for (delta, has_begun) in [
        (r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"AA"}]}"#, true),
        (r#"{"reasoning_details":[]}"#, false),
        (r#"{"role":"assistant","provider_specific_fields":{}}"#, false),
    ] {
        let mut stream = Stream::new(CHAT, CHAT, StreamOptions::default());
        let chunk = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        stream.push(chunk.as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!((stream.has_begun(), stream.has_token()), (has_begun, false), "{delta}");
    }
}

/// Pictures that came are heard of, whole and streamed, whoever asked for them; what is none is not.
#[test]
fn pictures_that_came_are_heard_of() {
    let picture = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#;
    for (message, drew) in [
        (format!(r#"{{"content":"","images":[{picture}]}}"#), true),
        (format!(r#"{{"content":[{{"type":"text","text":"x"}},{picture}]}}"#), true),
        (r#"{"content":"x","images":[]}"#.to_owned(), false),
        (r#"{"content":[{"type":"text","text":"x"}]}"#.to_owned(), false),
    ] {
        let whole = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
        assert_eq!(Answer::read(CHAT, whole.as_bytes()).unwrap().service().drew, drew, "{message}");
        for client in [CHAT, MESSAGES] {
            let text = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{message}}}]}}\n\n");
            let (mut stream, mut out) = (Stream::new(CHAT, client, StreamOptions::default()), Vec::new());
            stream.push(text.as_bytes(), &mut out).unwrap();
            assert_eq!(stream.received().service.drew, drew, "{message}");
        }
    }
}

/// The text at which a model stopped is told as the messages shape tells it, whole and streamed: where it is one of those that it
/// was to stop at, and neither the number of a token nor a provider's own word for why.
#[test]
fn the_text_at_which_it_stopped_is_told() {
    let asked_for =
        r#"{"model":"m","max_tokens":9,"stop_sequences":["\n\n","END"],"messages":[{"role":"user","content":"x"}]}"#;
    let names = Body::read(MESSAGES, asked_for.as_bytes()).unwrap().names(CHAT);
    for (told, reason, expected) in [
        (r#""finish_reason":"stop","stop_reason":"END""#, "stop_sequence", Some("END")),
        (r#""finish_reason":"stop","matched_stop":"\n\n""#, "stop_sequence", Some("\n\n")),
        (r#""finish_reason":"stop","stop_reason":151645"#, "end_turn", None),
        (r#""finish_reason":"stop","stop_reason":null"#, "end_turn", None),
        (r#""finish_reason":"stop","stop_reason":"end_turn""#, "end_turn", None),
        (r#""finish_reason":"stop","matched_stop":"</s>""#, "end_turn", None),
        (r#""finish_reason":"length","stop_reason":"END""#, "max_tokens", None),
    ] {
        let whole = format!(r#"{{"choices":[{{"message":{{"content":"x"}},{told}}}]}}"#);
        let answer = Answer::read(CHAT, whole.as_bytes()).unwrap().naming(names.clone());
        let answer = json(&answer.to_client(MESSAGES, 7, asked()));
        let said = |it: &Json| (it.get("stop_reason").cloned(), it.get("stop_sequence").cloned());
        let expected =
            (Some(Json::Text(reason.to_owned())), Some(expected.map_or(Json::Null, |it| Json::Text(it.to_owned()))));
        assert_eq!(said(&answer), expected, "{told}");
        let delta = r#"data: {"choices":[{"index":0,"delta":{"content":"x"}}]}"#;
        let streamed =
            format!("{delta}\n\ndata: {{\"choices\":[{{\"index\":0,\"delta\":{{}},{told}}}]}}\n\ndata: [DONE]\n\n");
        let (mut out, options) = (Vec::new(), StreamOptions::default());
        let mut stream = Stream::new(CHAT, MESSAGES, options).naming(names.clone());
        stream.push(streamed.as_bytes(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let last = out.lines().filter_map(|it| it.strip_prefix("data: ")).map(|it| json(it.as_bytes()));
        let mut last = last.filter_map(|it| it.get("delta").filter(|it| it.get("stop_reason").is_some()).map(said));
        assert_eq!(last.next_back(), Some(expected), "{told}");
    }
}

/// Where a provider tells no usage, or none that can be believed, a client of the other shape is told what the call is charged; one of
/// its own shape gets what it sent.
#[test]
fn an_estimate_is_told_in_the_other_shape() {
    let text = "a".repeat(40);
    let chat = |usage: &str| format!(r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]{usage}}}"#);
    let message = |usage: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]{usage}}}"#);
    for (upstream, client, whole, [input, output]) in [
        (CHAT, MESSAGES, chat(""), [77, 10]),
        (CHAT, MESSAGES, chat(r#","usage":null"#), [77, 10]),
        (CHAT, MESSAGES, chat(r#","usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#), [77, 10]),
        (CHAT, MESSAGES, chat(r#","usage":{"prompt_tokens":30,"completion_tokens":0}"#), [30, 10]),
        (CHAT, MESSAGES, chat(r#","usage":{"completion_tokens":12}"#), [77, 12]),
        (CHAT, MESSAGES, chat(r#","usage":{"prompt_tokens":30,"completion_tokens":5}"#), [30, 5]),
        (MESSAGES, CHAT, message(""), [77, 10]),
        (MESSAGES, CHAT, message(r#","usage":{"input_tokens":0,"output_tokens":0}"#), [77, 10]),
        (MESSAGES, CHAT, message(r#","usage":{"input_tokens":30,"output_tokens":0}"#), [30, 10]),
        (MESSAGES, CHAT, message(r#","usage":{"input_tokens":30,"output_tokens":5}"#), [30, 5]),
    ] {
        let answer = Answer::read(upstream, whole.as_bytes()).unwrap().charging(77);
        assert_eq!(answer.to_client(upstream, 7, asked()), whole.as_bytes());
        let told = json(&answer.to_client(client, 7, asked()));
        let count = |name: &str| told.get("usage").and_then(|it| it.get(name)).and_then(Json::as_int);
        let names =
            if client == CHAT { ["prompt_tokens", "completion_tokens"] } else { ["input_tokens", "output_tokens"] };
        assert_eq!(names.map(count), [Some(input), Some(output)], "{whole}");
    }
}
