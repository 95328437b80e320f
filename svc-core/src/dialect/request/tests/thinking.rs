//! How much to think, told to models that are told so in different ways, and what of it stays in a conversation.

use super::super::super::{Answer, Ending, Stream, StreamOptions};
use super::*;
use crate::value::Id as _;
use crate::value::canonical::canonical;
use crate::value::id::CallId;

/// A model that its client has not named.
fn routed(model: &str) -> Target<'_> {
    Target { is_its_own: false, ..target(MESSAGES, model) }
}

/// A request with these members.
fn asking(members: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":32000,{members},"messages":[{{"role":"user","content":"x"}}]}}"#)
}

/// What goes out of the members that tell of thinking.
fn told(members: &str, to: Target<'_>) -> String {
    let out = sent(MESSAGES, &asking(members), to);
    let names = ["thinking", "output_config", "context_management"];
    let members = names.iter().filter_map(|name| Some(format!("{name}:{}", canonical(out.get(name)?))));
    members.collect::<Vec<_>>().join(" ")
}

fn lines(members: &str, to: Target<'_>) -> Vec<String> {
    read(MESSAGES, &asking(members)).changed(to)
}

const ADAPTIVE: &str = r#""thinking":{"type":"adaptive"}"#;

/// What a coding client says to a newer model is told to an older one as a budget, without the effort that it does not know; to one
/// that decides itself a budget is told as an effort. What is left out is told, as is the rest.
#[test]
fn thinking_is_told_in_the_way_of_the_model() {
    let budget = |tokens: u32| format!(r#"thinking:{{"budget_tokens":{tokens},"type":"enabled"}}"#);
    for (effort, tokens) in [("low", 2_048), ("medium", 8_192), ("high", 16_000), ("max", 16_000), ("xhigh", 16_000)] {
        let members = format!(r#"{ADAPTIVE},"output_config":{{"effort":"{effort}"}}"#);
        for model in ["claude-haiku-4-5", "anthropic/claude-haiku-4.5", "claude-sonnet-4-20250514", "claude-3-7-sonnet"]
        {
            assert_eq!(told(&members, routed(model)), budget(tokens), "{model} {effort}");
            let expected = [
                format!("left out, as {model} refuses it: output_config.effort"),
                format!("{model} thinks by a budget alone: it was told one"),
            ];
            assert_eq!(lines(&members, routed(model)), expected);
        }
        let high = if ["max", "xhigh"].contains(&effort) { "high" } else { effort };
        let told = told(&members, routed("claude-opus-4-5-20251101"));
        assert_eq!(told, format!(r#"{} output_config:{{"effort":"{high}"}}"#, budget(tokens)), "{effort}");
    }
    assert_eq!(told(ADAPTIVE, routed("claude-haiku-4-5")), budget(16_000));
    // At most half of the bound is thought, as the answer has to find room in it too.
    for (bound, tokens) in
        [(64_000, Some(16_384)), (4_096, Some(2_048)), (2_048, Some(1_024)), (2_047, None), (1_024, None)]
    {
        let bounded = asking(ADAPTIVE).replace("32000", &bound.to_string());
        let thinking = sent(MESSAGES, &bounded, routed("claude-haiku-4-5"));
        let told = thinking.get("thinking").and_then(|it| it.get("budget_tokens")).and_then(Json::as_int);
        assert_eq!(told, tokens, "{bound}");
    }
    let form = r#""output_config":{"effort":"high","format":{"type":"json_schema","schema":{}}}"#;
    let kept = r#"output_config:{"format":{"schema":{},"type":"json_schema"}}"#;
    assert_eq!(told(form, routed("claude-haiku-4-5")), kept);

    let enabled = |tokens: u32| format!(r#""thinking":{{"type":"enabled","budget_tokens":{tokens}}}"#);
    for (tokens, effort) in [(1_024, "low"), (4_096, "low"), (8_000, "medium"), (16_000, "high"), (31_999, "high")] {
        for model in ["claude-opus-4-7", "claude-sonnet-5", "claude-fable-5-1"] {
            let wanted = format!(r#"thinking:{{"type":"adaptive"}} output_config:{{"effort":"{effort}"}}"#);
            assert_eq!(told(&enabled(tokens), routed(model)), wanted, "{model}");
            let line = format!("{model} decides itself how much to think: it was told an effort of {effort}");
            assert_eq!(lines(&enabled(tokens), routed(model)), [line]);
        }
        let wanted = format!(r#"thinking:{{"budget_tokens":{tokens},"type":"enabled"}}"#);
        for model in ["claude-opus-4-6", "claude-sonnet-4.6", "claude-haiku-4-5", "glm-5", "kimi-k3"] {
            assert_eq!(told(&enabled(tokens), routed(model)), wanted, "{model}");
            assert_eq!(lines(&enabled(tokens), routed(model)).len(), 0, "{model}");
        }
    }
    let both = format!(r#"{},"output_config":{{"effort":"low"}}"#, enabled(16_000));
    let wanted = r#"thinking:{"type":"adaptive"} output_config:{"effort":"low"}"#;
    assert_eq!(told(&both, routed("claude-opus-4-7")), wanted, "what its client says of effort holds");
    let null = format!(r#"{},"output_config":{{"effort":null,"format":null}}"#, enabled(2_000));
    let wanted = r#"thinking:{"type":"adaptive"} output_config:{"effort":"low","format":null}"#;
    assert_eq!(told(&null, routed("claude-opus-4-7")), wanted);
    let shown = r#""thinking":{"budget_tokens":2000,"display":"summarized","type":"enabled"}"#;
    let wanted = r#"thinking:{"display":"summarized","type":"adaptive"} output_config:{"effort":"low"}"#;
    assert_eq!(told(shown, routed("claude-opus-4-7")), wanted);
}

/// Models that take either way are told what their client says, but for an effort that they do not know; and to the very model that a
/// client names all goes as it is.
#[test]
fn thinking_stays_as_it_came_where_it_is_taken() {
    for effort in ["low", "max", "xhigh"] {
        let members = format!(r#"{ADAPTIVE},"output_config":{{"effort":"{effort}"}}"#);
        let same = format!(r#"thinking:{{"type":"adaptive"}} output_config:{{"effort":"{effort}"}}"#);
        let high = same.replace("xhigh", "high");
        for (model, wanted) in
            [("claude-opus-4-6", &high), ("claude-opus-4-8", &same), ("claude-fable-5", &same), ("glm-5", &same)]
        {
            assert_eq!(told(&members, routed(model)), *wanted, "{model}");
            assert_eq!(lines(&members, routed(model)).len(), usize::from(*wanted != same), "{model}");
        }
        for model in ["claude-haiku-4-5", "claude-opus-4-6", "claude-opus-4-7"] {
            assert_eq!(told(&members, target(MESSAGES, model)), same, "{model}");
            assert_eq!(lines(&members, target(MESSAGES, model)).len(), 0, "{model}");
        }
    }
    let off = r#""thinking":{"type":"disabled"}"#;
    for (model, wanted) in [
        ("claude-haiku-4-5", r#"thinking:{"type":"disabled"}"#),
        ("claude-sonnet-5", r#"thinking:{"type":"disabled"}"#),
        ("claude-fable-5", ""),
        ("claude-opus-5.5", ""),
    ] {
        assert_eq!(told(off, routed(model)), wanted, "{model}");
    }
}

/// A model that does not think is told nothing of it, nor to leave out of its context what it has thought.
#[test]
fn who_does_not_think_is_told_nothing_of_it() {
    const CLEAR: &str = r#"{"type":"clear_thinking_20251015","keep":"all"}"#;
    const OTHER: &str = r#"{"type":"clear_tool_uses_20250919"}"#;
    for model in ["claude-3-5-haiku", "claude-haiku-4-5", "glm-flash"] {
        let plain = Target { reasoning: false, ..routed(model) };
        for thinking in [ADAPTIVE, r#""thinking":{"type":"enabled","budget_tokens":2000}"#] {
            for (edits, kept) in [
                (format!(r#"{{"edits":[{CLEAR}]}}"#), String::new()),
                (format!(r#"{{"edits":[{CLEAR},{OTHER}]}}"#), format!(r#"context_management:{{"edits":[{OTHER}]}}"#)),
                (format!(r#"{{"edits":[{CLEAR}],"x":1}}"#), r#"context_management:{"x":1}"#.to_owned()),
                (format!(r#"{{"edits":[{OTHER}]}}"#), format!(r#"context_management:{{"edits":[{OTHER}]}}"#)),
            ] {
                for members in [
                    format!(r#"{thinking},"output_config":{{"effort":"low"}},"context_management":{edits}"#),
                    format!(r#""context_management":{edits},"output_config":{{"effort":"low"}},{thinking}"#),
                ] {
                    assert_eq!(told(&members, plain), kept, "{model} {members}");
                    let line = format!("left out, as {model} refuses it: thinking, output_config.effort");
                    assert_eq!(lines(&members, plain), [line]);
                }
            }
        }
    }
    // Beside a call that has to be made nobody thinks, and a turn that began without thinking goes on without.
    let forced = format!(r#"{ADAPTIVE},"tools":[{{"name":"f","input_schema":{{}}}}],"tool_choice":{{"type":"any"}}"#);
    assert_eq!(told(&forced, routed("claude-haiku-4-5")), "");
    let turn = asking(ADAPTIVE).replace(
        r#"{"role":"user","content":"x"}"#,
        r#"{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"1"}]}"#,
    );
    let off = sent(MESSAGES, &turn, routed("claude-haiku-4-5"));
    assert_eq!(off.get("thinking"), Some(&json(r#"{"type":"disabled"}"#)));
}

/// A chat client that says it in the messages shape's words is understood alike.
#[test]
fn a_chat_clients_own_words_for_thinking_are_told_alike() {
    let to = |thinking: &str, model: &str| {
        let out = sent(CHAT, &asking(&format!(r#""thinking":{thinking}"#)), routed(model));
        ["thinking", "output_config"].map(|it| out.get(it).map(canonical))
    };
    let enabled = r#"{"budget_tokens":2000,"type":"enabled"}"#;
    let adaptive = r#"{"type":"adaptive"}"#;
    let own = |it: &str| Some(it.to_owned());
    assert_eq!(to(enabled, "claude-haiku-4-5"), [own(enabled), None]);
    assert_eq!(to(enabled, "claude-opus-4-7"), [own(adaptive), own(r#"{"effort":"low"}"#)]);
    let budget = r#"{"budget_tokens":16000,"type":"enabled"}"#;
    assert_eq!(to(adaptive, "claude-haiku-4-5"), [own(budget), None]);
    assert_eq!(to(adaptive, "claude-opus-4-7"), [own(adaptive), None]);
}

/// Newer models go on with nothing that an assistant is made to have begun: another is asked, in either shape. What the provider's own
/// tools have interrupted is gone on with, and older models go on with anything.
#[test]
fn what_was_begun_goes_to_no_model_that_refuses_it() {
    let ending =
        |with: &str| format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}},{with}]}}"#);
    let begun =
        [r#"{"role":"assistant","content":"{"}"#, r#"{"role":"assistant","content":[{"type":"text","text":"{"}]}"#];
    for with in begun {
        let body = ending(with);
        for dialect in [MESSAGES, CHAT] {
            for model in ["claude-opus-4-6", "claude-sonnet-4.6", "claude-opus-4-7", "claude-sonnet-5"] {
                let refusal = read(dialect, &body).to_upstream(routed(model)).unwrap_err();
                assert_eq!(refusal.errors().first().and_then(|it| it.field.as_deref()), Some("messages"), "{model}");
            }
            for model in ["claude-haiku-4-5", "claude-3-5-sonnet", "glm-5"] {
                assert!(read(dialect, &body).to_upstream(routed(model)).is_ok(), "{model}");
            }
        }
        assert!(read(MESSAGES, &body).to_upstream(target(MESSAGES, "claude-opus-4-7")).is_ok(), "named by its client");
    }
    let paused = ending(
        r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"text","text":"y"}]}"#,
    );
    assert!(read(MESSAGES, &paused).to_upstream(routed("claude-opus-4-7")).is_ok());
    let answered = ending(r#"{"role":"assistant","content":"y"},{"role":"user","content":"z"}"#);
    for dialect in [MESSAGES, CHAT] {
        assert!(read(dialect, &answered).to_upstream(routed("claude-opus-4-7")).is_ok());
    }
}

/// An answer of the messages shape whose thinking is signed, whole and as a stream in which the signature comes in pieces.
const WHOLE: &str = r#"{"id":"m","type":"message","role":"assistant","model":"glm-5","content":[{"type":"thinking","thinking":"hm","signature":"own \u0041"},{"type":"text","text":"so"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}"#;
const STREAMED: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"glm-5","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"own"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":" A"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"on","signature":"next"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// What a provider has signed that is not the shape's maker is marked as its own in whatever form its client hears it; bytes of others
/// go on as they came.
#[test]
fn what_a_provider_signs_in_its_own_way_is_marked() {
    let whole = |client, provider| {
        let answer = Answer::read(MESSAGES, WHOLE.as_bytes()).unwrap().signed_by(provider);
        String::from_utf8(answer.to_client(client, 7, CallId::from_bits(1))).unwrap()
    };
    assert_eq!(whole(MESSAGES, None), WHOLE);
    assert_eq!(whole(MESSAGES, Some("one")), WHOLE.replace("own ", "svc_unsigned_of@one:own "));
    let block = |mark: &str| format!(r#"[{{"type":"thinking","thinking":"hm","signature":"{mark}own \u0041"}}]"#);
    for (provider, mark) in [(None, ""), (Some("one"), "svc_unsigned_of@one:")] {
        let chat = Json::parse(whole(CHAT, provider).as_bytes()).unwrap();
        let message = chat.get("choices").and_then(|it| it.as_list()?.first()?.get("message")).unwrap();
        assert_eq!(message.get("thinking_blocks"), Some(&json(&block(mark))));
    }
    let streamed = |client, provider| {
        let mut stream = Stream::new(MESSAGES, client, StreamOptions::default()).signed_by(provider);
        let mut out = Vec::new();
        stream.push(STREAMED.as_bytes(), &mut out).unwrap();
        assert_eq!(stream.end(&mut out), Ending::Clean);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(streamed(MESSAGES, None), STREAMED);
    let marked = STREAMED.replace(r#""own""#, r#""svc_unsigned_of@one:own""#);
    assert_eq!(streamed(MESSAGES, Some("one")), marked.replace(r#""next""#, r#""svc_unsigned_of@one:next""#));
    for (provider, mark) in [(None, ""), (Some("one"), "svc_unsigned_of@one:")] {
        let heard = streamed(CHAT, provider);
        for signature in ["own A", "next"] {
            assert!(heard.contains(&format!(r#""signature":"{mark}{signature}""#)), "{heard}");
        }
    }
}

/// It goes back to the provider that signed it as this one signed it, and to no other; a turn that lacks it then goes on without a
/// budget of thinking. What has no signature goes to no maker's model that its client did not name.
#[test]
fn what_a_provider_has_signed_goes_back_to_it_alone() {
    let thought = |signature: &str| format!(r#"{{"type":"thinking","thinking":"hm","signature":"{signature}"}}"#);
    const CALL: &str = r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#;
    let body = |signature: &str| {
        format!(
            r#"{{"model":"m","max_tokens":9000,"thinking":{{"type":"enabled","budget_tokens":2000}},"messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":[{},{CALL}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"1"}}]}}]}}"#,
            thought(signature)
        )
    };
    let chat = |signature: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":null,"thinking_blocks":[{}],"tool_calls":[{{"id":"t","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"t","content":"1"}}]}}"#,
            thought(signature)
        )
    };
    let mark = "svc_unsigned_of@one:";
    let own = format!("{mark}a:\\u0022b");
    for (signature, to, kept, thinks) in [
        (own.as_str(), routed("glm-5"), Some(r#"a:\u0022b"#), true),
        (&own, target(MESSAGES, "glm-5"), Some(r#"a:\u0022b"#), true),
        (&own, Target { provider: "two", ..routed("glm-5") }, None, false),
        (&own, Target { provider: "two", ..routed("claude-haiku-4-5") }, None, false),
        (&own, Target { provider: "two", ..target(MESSAGES, "claude-haiku-4-5") }, None, false),
        ("c", routed("claude-haiku-4-5"), Some("c"), true),
        ("c", routed("glm-5"), Some("c"), true),
        ("", routed("glm-5"), Some(""), true),
        ("", routed("claude-haiku-4-5"), None, false),
        ("", Target { is_elsewhere: true, ..target(MESSAGES, "claude-haiku-4-5") }, None, false),
        ("", target(MESSAGES, "claude-haiku-4-5"), Some(""), true),
    ] {
        let kept = kept.map(|it| format!("{},", thought(it))).unwrap_or_default();
        let wanted = json(&format!(r#"{{"role":"assistant","content":[{kept}{CALL}]}}"#));
        let out = sent(MESSAGES, &body(signature), to);
        let turn = |out: &Json| out.get("messages").and_then(|it| it.as_list()?.get(1).cloned());
        assert_eq!(turn(&out), Some(wanted.clone()), "{signature} {to:?}");
        let is_on = out.get("thinking").and_then(|it| it.get("type")?.as_str()) == Some("enabled");
        assert_eq!(is_on, thinks, "{signature} {to:?}");
        if !to.is_its_own {
            assert_eq!(turn(&sent(CHAT, &chat(signature), to)), Some(wanted), "{signature} {to:?}");
        }
        // No provider of the chat shape has signed it.
        let to_chat = sent(CHAT, &chat(signature), target(CHAT, "m"));
        assert_eq!(canonical(&to_chat).contains("thinking_blocks"), !signature.contains(mark), "{signature}");
        assert!(!canonical(&sent(MESSAGES, &body(&own), target(CHAT, "m"))).contains("hm"), "{signature}");
    }
}
