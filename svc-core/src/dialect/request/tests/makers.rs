//! What makers' newer models refuse, and how a request goes to them all the same.

use super::*;
use crate::value::canonical::canonical;

const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"f"}}]"#;
const OWN_TOOLS: &str = r#""tools":[{"name":"f","input_schema":{"type":"object"}}]"#;

fn maker(model: &str) -> Target<'_> {
    Target { host: Host::Maker, ..target(CHAT, model) }
}

/// A request with these members.
fn asking(members: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":9,{members},"messages":[{{"role":"user","content":"x"}}]}}"#)
}

/// The text of a member of what goes out.
fn told(dialect: Dialect, members: &str, to: Target<'_>, member: &str) -> Option<String> {
    sent(dialect, &asking(members), to).get(member).map(canonical)
}

/// What is wrong with a request for this model.
fn unfit(dialect: Dialect, members: &str, to: Target<'_>) -> Vec<String> {
    let refusal = read(dialect, &asking(members)).to_upstream(to).unwrap_err();
    refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("-").to_owned()).collect()
}

/// The maker's models take tools beside no thinking alone from one number on: whatever was asked, none is wished for, and that is
/// told. Others, other hosts, and requests without tools are asked as their client asks.
#[test]
fn tools_go_out_without_thinking_where_they_have_to() {
    let none = Some("\"none\"".to_owned());
    for model in [
        "gpt-5.4",
        "gpt-5.4-mini",
        "openai/gpt-5.5",
        "gpt-5.6-2026-10-01",
        "ft:gpt-6-luna:us::x",
        "prod-gpt-54",
        "gpt-6.1-sol",
    ] {
        for effort in
            ["", r#""reasoning_effort":"high","#, r#""reasoning_effort":null,"#, r#""reasoning_effort":"none","#]
        {
            let members = format!("{effort}{TOOLS}");
            assert_eq!(told(CHAT, &members, maker(model), "reasoning_effort"), none, "{model} {effort}");
            let lines = read(CHAT, &asking(&members)).changed(maker(model));
            assert_eq!(lines.len(), usize::from(!effort.contains("none")), "{model} {effort} {lines:?}");
        }
        let thinking = format!(r#"{OWN_TOOLS},"thinking":{{"type":"enabled","budget_tokens":1024}}"#);
        assert_eq!(told(MESSAGES, &thinking, maker(model), "reasoning_effort"), none, "{model}");
        for free in [r#""reasoning_effort":"high""#, r#""reasoning_effort":"high","tools":[]"#] {
            assert_eq!(told(CHAT, free, maker(model), "reasoning_effort"), Some("\"high\"".to_owned()), "{model}");
        }
    }
    let asked = format!(r#""reasoning_effort":"high",{TOOLS}"#);
    for model in [
        "gpt-5",
        "gpt-5-mini",
        "gpt-5.2",
        "gpt-5-2025-08-07",
        "gpt-4.1",
        "gpt-41",
        "gpt-oss-120b",
        "gpt-2025-prod",
        "gpt-70b",
        "prod-1",
        "o3",
        "mygpt",
    ] {
        assert_eq!(told(CHAT, &asked, maker(model), "reasoning_effort"), Some("\"high\"".to_owned()), "{model}");
    }
    for host in [Host::Other, Host::Mistral] {
        let other = Target { host, ..target(CHAT, "openai/gpt-5.6") };
        assert_eq!(told(CHAT, &asked, other, "reasoning_effort"), Some("\"high\"".to_owned()), "{host:?}");
    }
}

/// The one that cannot but think takes no tools, in either shape, so that another model is asked.
#[test]
fn what_always_thinks_takes_no_tools() {
    for model in ["gpt-6-astra", "gpt-6-astra-2026-11-01"] {
        assert_eq!(unfit(CHAT, TOOLS, maker(model)), ["tools"]);
        assert_eq!(unfit(MESSAGES, OWN_TOOLS, maker(model)), ["tools"]);
        assert_eq!(
            told(CHAT, r#""reasoning_effort":"low""#, maker(model), "reasoning_effort"),
            Some("\"low\"".to_owned())
        );
    }
    let other = target(CHAT, "openai/gpt-6-astra");
    assert!(told(CHAT, TOOLS, other, "tools").is_some());
}

/// Whoever wishes for no thinking gets none of a model that can do without.
#[test]
fn no_thinking_is_told_to_who_can_do_without() {
    let off = r#""thinking":{"type":"disabled"}"#;
    for (model, effort) in [
        ("gpt-5.1", Some("\"none\"")),
        ("gpt-5.6", Some("\"none\"")),
        ("gpt-5", None),
        ("gpt-6-astra", None),
        ("o3", None),
    ] {
        assert_eq!(told(MESSAGES, off, maker(model), "reasoning_effort").as_deref(), effort, "{model}");
    }
    assert_eq!(told(MESSAGES, off, target(CHAT, "gpt-5.1"), "reasoning_effort"), None);
}

/// Models that draw by chances of their own are sent none but by a client that names them in their shape; that others were left out
/// is told, and a wish for an end at some text is not left out but goes to no such model.
#[test]
fn chances_are_left_out_where_they_are_refused() {
    let routed = |it: Target<'static>| Target { is_its_own: false, ..it };
    let chances = r#""temperature":0,"top_p":0.5"#;
    let claude = |model| routed(target(MESSAGES, model));
    for model in
        ["claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5", "anthropic.claude-opus-5-5-v1:0", "claude-haiku-5-5"]
    {
        for (dialect, members) in [(CHAT, chances.to_owned()), (MESSAGES, format!(r#"{chances},"top_k":4"#))] {
            for member in ["temperature", "top_p", "top_k"] {
                assert_eq!(told(dialect, &members, claude(model), member), None, "{model}");
            }
            let lines = read(dialect, &asking(&members)).changed(claude(model));
            assert!(lines.len() == 1 && lines[0].contains("temperature, top_p"), "{lines:?}");
        }
        assert!(read(CHAT, &asking(r#""temperature":1.0"#)).changed(claude(model)).is_empty());
        assert!(told(CHAT, r#""temperature":1.7"#, claude(model), "model").is_some(), "it is left out, however high");
    }
    let gpt = |model| routed(maker(model));
    for model in
        ["gpt-6-sol", "gpt-6.1-sol", "gpt-5", "gpt-5-mini", "o4-mini", "ft:o4-mini-2025-04-16:us::x", "openai/o3"]
    {
        for dialect in [CHAT, MESSAGES] {
            assert_eq!(told(dialect, chances, gpt(model), "temperature"), None, "{model}");
            assert_eq!(told(dialect, chances, gpt(model), "top_p"), None, "{model}");
        }
        if model.starts_with("gpt-5") {
            assert!(told(CHAT, r#""stop":["x"]"#, gpt(model), "stop").is_some());
            continue;
        }
        assert_eq!(unfit(CHAT, r#""stop":["x"]"#, gpt(model)), ["stop"]);
        assert_eq!(unfit(MESSAGES, r#""stop_sequences":["x"]"#, gpt(model)), ["stop_sequences"]);
        assert!(told(CHAT, r#""stop":[]"#, gpt(model), "stop").is_some());
        assert!(told(CHAT, r#""stop":["x"]"#, maker(model), "stop").is_some(), "its client named it");
    }
    let kept = Some("0".to_owned());
    for of_before in [
        "claude-opus-4-6",
        "claude-opus-4-5-20251101",
        "claude-opus-4-20250514",
        "claude-sonnet-4-6",
        "claude-3-7-sonnet",
        "mine",
    ] {
        for dialect in [CHAT, MESSAGES] {
            assert_eq!(told(dialect, chances, claude(of_before), "temperature"), kept, "{of_before}");
        }
    }
    for of_before in
        ["gpt-4o", "gpt-5.2", "gpt-4.1-mini", "prod-1", "o365-mail", "o3x", "gpt-2025-prod", "ft:gpt-4o:us::o3"]
    {
        assert_eq!(told(CHAT, chances, gpt(of_before), "temperature"), kept, "{of_before}");
        assert!(told(CHAT, r#""stop":["x"]"#, gpt(of_before), "stop").is_some(), "{of_before}");
    }
    assert_eq!(
        told(MESSAGES, chances, target(MESSAGES, "claude-sonnet-5"), "temperature"),
        kept,
        "its client named it"
    );
    assert_eq!(told(CHAT, chances, maker("gpt-6-sol"), "temperature"), kept, "its client named it");
    assert_eq!(told(CHAT, chances, routed(target(CHAT, "openai/gpt-6-sol")), "temperature"), kept, "others translate");
}

/// A chance that is left out stands in the way of no thinking.
#[test]
fn thinking_goes_on_where_chances_are_left_out() {
    let members = r#""temperature":0.2,"reasoning_effort":"high""#;
    let routed = |model| Target { is_its_own: false, ..target(MESSAGES, model) };
    assert!(told(CHAT, members, routed("claude-sonnet-5"), "thinking").is_some());
    assert_eq!(told(CHAT, members, routed("claude-opus-4-6"), "thinking"), None);
}

/// Members go out with the comma beside them wherever they stand.
#[test]
fn what_is_left_out_leaves_a_whole() {
    let out = Target { is_its_own: false, ..maker("gpt-6-sol") };
    let messages = r#""messages":[{"role":"user","content":"x"}]"#;
    for (body, rest) in [
        (
            format!(r#"{{"temperature":0,"top_p":0,"model":"m",{messages}}}"#),
            format!(r#"{{"model":"gpt-6-sol",{messages}}}"#),
        ),
        (
            format!(r#"{{"model":"m",{messages}, "temperature":0 , "top_p":0}}"#),
            format!(r#"{{"model":"gpt-6-sol",{messages}}}"#),
        ),
        (
            format!(r#"{{"top_p":0,"model":"m","temperature":0,{messages},"n":1}}"#),
            format!(r#"{{"model":"gpt-6-sol",{messages},"n":1}}"#),
        ),
    ] {
        let told = read(CHAT, &body).to_upstream(out).unwrap();
        assert_eq!(String::from_utf8(told).unwrap(), rest);
    }
    let all = r#"{"max_tokens":null,"temperature":0,"stream":true,"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"top_p":1,"max_completion_tokens":7}"#;
    let told = Json::parse(&read(CHAT, all).to_upstream(out).unwrap()).unwrap();
    let expected = r#"{"stream_options":{"include_usage":true},"reasoning_effort":"none","stream":true,"model":"gpt-6-sol","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"max_completion_tokens":7}"#;
    assert_eq!(canonical(&told), canonical(&json(expected)));
}

/// Mistral refuses members that it does not know: what svc adds for others stays away, and a seed has its name there.
#[test]
fn mistral_is_sent_what_it_knows() {
    let mistral = Target { host: Host::Mistral, ..target(CHAT, "mistral-large-4") };
    let of_chat = r#""stream":true,"stream_options":{"include_usage":true},"user":"u","seed":7"#;
    let of_messages = r#""stream":true,"metadata":{"user_id":"u"},"seed":7"#;
    for (dialect, members) in [(CHAT, of_chat), (CHAT, r#""stream":true,"user":"u","seed":7"#), (MESSAGES, of_messages)]
    {
        let sent = sent(dialect, &asking(members), mistral);
        for unknown in ["stream_options", "user", "seed"] {
            assert_eq!(sent.get(unknown), None, "{members}");
        }
        assert_eq!(
            (sent.get("random_seed").map(canonical).as_deref(), sent.get("stream").is_some()),
            (Some("7"), true)
        );
    }
    let both = sent(CHAT, &asking(r#""seed":7,"random_seed":8"#), mistral);
    assert_eq!((both.get("seed").is_some(), both.get("random_seed").map(canonical).as_deref()), (true, Some("8")));
    assert_eq!(told(CHAT, of_chat, target(CHAT, "m"), "user").as_deref(), Some("\"u\""));
}

/// Hints and labels that Mistral's and Google's own addresses refuse are left out where policy chose them, and that is told of those
/// that say something. A client that names such a model says what it likes, and others are sent all of it.
#[test]
fn hints_are_left_out_where_they_are_unknown() {
    let hints = r#""store":true,"metadata":{"a":"b"},"prompt_cache_key":"k","prompt_cache_retention":"24h","safety_identifier":"s","verbosity":"low","frequency_penalty":0.5,"service_tier":"default""#;
    let all = [
        "store",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "verbosity",
        "frequency_penalty",
        "service_tier",
    ];
    let heard = |host, is_its_own| {
        let to = Target { host, is_its_own, ..target(CHAT, "m") };
        let sent = sent(CHAT, &asking(hints), to);
        let kept: Vec<_> = all.into_iter().filter(|it| sent.get(it).is_some()).collect();
        (kept, read(CHAT, &asking(hints)).changed(to))
    };
    let line = |left_out: &str| vec![format!("left out, as m refuses it: {left_out}")];
    let of_mistral = line("store, safety_identifier, prompt_cache_retention, verbosity");
    assert_eq!(heard(Host::Mistral, false), (vec!["metadata", "prompt_cache_key", "frequency_penalty"], of_mistral));
    let (kept, lines) = heard(Host::Google, false);
    assert_eq!((kept, lines.len()), (vec![], 1));
    assert!(lines[0].contains("metadata") && lines[0].ends_with("frequency_penalty"), "{lines:?}");
    for (host, is_its_own) in [(Host::Mistral, true), (Host::Google, true), (Host::Other, false), (Host::Maker, false)]
    {
        assert_eq!(heard(host, is_its_own), (all.to_vec(), vec![]), "{host:?}");
    }
    let nothing = r#""store":false,"frequency_penalty":0,"service_tier":"priority""#;
    let google = Target { host: Host::Google, is_its_own: false, ..target(CHAT, "m") };
    assert!(read(CHAT, &asking(nothing)).changed(google).is_empty());
    let service = told(CHAT, nothing, google, "service_tier");
    assert_eq!(service.as_deref(), Some("\"priority\""), "a service with a price of its own is not left out");
    let meant_for_chat = r#""prompt_cache_key":"k","verbosity":"low","frequency_penalty":0.5"#;
    for member in ["prompt_cache_key", "verbosity", "frequency_penalty"] {
        assert_eq!(told(MESSAGES, meant_for_chat, google, member), None, "{member}");
    }
}

/// Mistral knows names of tools alone.
#[test]
fn names_of_speakers_are_left_out_where_they_are_unknown() {
    let body = r#"{"model":"x","messages":[{"name":"ann","role":"user","content":"a"},{"role":"assistant","name":"bob","content":null,"tool_calls":[{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","name":"f","tool_call_id":"a1B2c3D4e","content":"r"}]}"#;
    let names = |host, is_its_own| {
        let to = Target { host, is_its_own, ..target(CHAT, "m") };
        let sent = sent(CHAT, body, to);
        let messages = sent.get("messages").and_then(Json::as_list).unwrap();
        let names: Vec<_> = messages.iter().filter_map(|it| it.get("name")?.as_str().map(str::to_owned)).collect();
        (names.join(","), read(CHAT, body).changed(to))
    };
    let line = vec!["left out, as m refuses it: name".to_owned()];
    assert_eq!(names(Host::Mistral, false), ("f".to_owned(), line));
    for (host, is_its_own) in [(Host::Mistral, true), (Host::Google, false), (Host::Other, false)] {
        assert_eq!(names(host, is_its_own), ("ann,bob,f".to_owned(), vec![]), "{host:?}");
    }
}

/// A wish for much or little thinking goes to the maker's models in a word that they know, and goes with one for few words to none
/// that refuses it, where policy chose the model; both are told.
#[test]
fn efforts_are_told_as_they_are_known() {
    let routed = |model| Target { is_its_own: false, ..maker(model) };
    for (model, said, known) in [
        ("gpt-5.1", "minimal", "none"),
        ("gpt-5-mini", "none", "minimal"),
        ("gpt-5", "minimal", "minimal"),
        ("o3", "none", "low"),
        ("o4-mini", "minimal", "low"),
        ("o3", "high", "high"),
        ("gpt-6-astra", "none", "low"),
        ("gpt-5.2", "none", "none"),
        ("gpt-5.1", "xhigh", "high"),
        ("gpt-5.2", "xhigh", "xhigh"),
        ("gpt-5.2", "max", "xhigh"),
        ("gpt-5.6", "max", "max"),
        ("o3", "max", "high"),
        ("prod-1", "minimal", "minimal"),
    ] {
        let members = format!(r#""reasoning_effort":"{said}""#);
        let effort = |to| told(CHAT, &members, to, "reasoning_effort").unwrap();
        assert_eq!(effort(routed(model)), format!("\"{known}\""), "{model} {said}");
        assert_eq!(effort(maker(model)), format!("\"{said}\""), "its client named it: {model}");
        let lines = read(CHAT, &asking(&members)).changed(routed(model));
        let line = (said != known).then(|| format!("{model} knows no such reasoning_effort: it was told {known}"));
        assert_eq!(lines, Vec::from_iter(line));
    }
    let plain = |model| Target { reasoning: false, ..routed(model) };
    for (effort, verbosity, is_missed) in [("minimal", "low", true), ("none", "medium", false)] {
        let members = format!(r#""reasoning_effort":"{effort}","verbosity":"{verbosity}""#);
        for member in ["reasoning_effort", "verbosity"] {
            assert_eq!(told(CHAT, &members, plain("gpt-4o"), member), None);
            assert!(told(CHAT, &members, Target { host: Host::Other, ..plain("gpt-4o") }, member).is_some());
            assert!(told(CHAT, &members, Target { is_its_own: true, ..plain("gpt-4o") }, member).is_some());
        }
        let lines = read(CHAT, &asking(&members)).changed(plain("gpt-4o"));
        let line = is_missed.then(|| "left out, as gpt-4o refuses it: reasoning_effort, verbosity".to_owned());
        assert_eq!(lines, Vec::from_iter(line));
    }
    for dialect in [CHAT, MESSAGES] {
        for (model, is_kept) in [("o3", false), ("gpt-4.1", false), ("gpt-5-mini", true), ("prod-1", true)] {
            let kept = told(dialect, r#""verbosity":"low""#, routed(model), "verbosity");
            assert_eq!(kept.is_some(), is_kept, "{model}");
        }
    }
}

/// Models that draw by chances of their own are sent no penalties, and what asks for the odds of tokens, or sets them, goes to others.
#[test]
fn odds_are_asked_of_who_tells_them() {
    let routed = |model| Target { is_its_own: false, ..maker(model) };
    let penalties = r#""frequency_penalty":0.5,"presence_penalty":0"#;
    let nothing = r#""logprobs":false,"top_logprobs":null,"logit_bias":{}"#;
    for model in ["o3", "gpt-5", "gpt-6-sol"] {
        for member in ["frequency_penalty", "presence_penalty"] {
            assert_eq!(told(CHAT, penalties, routed(model), member), None, "{model}");
            assert_eq!(told(MESSAGES, penalties, routed(model), member), None, "{model}");
            assert!(told(CHAT, penalties, maker(model), member).is_some(), "its client named it");
        }
        let lines = read(CHAT, &asking(penalties)).changed(routed(model));
        assert_eq!(lines, [format!("left out, as {model} refuses it: frequency_penalty")]);
        for member in ["logprobs", "top_logprobs", "logit_bias"] {
            assert_eq!(told(CHAT, nothing, routed(model), member), None, "{model}");
        }
        assert!(read(CHAT, &asking(nothing)).changed(routed(model)).is_empty());
        assert_eq!(unfit(CHAT, r#""logprobs":true,"top_logprobs":2"#, routed(model)), ["logprobs"]);
        for dialect in [CHAT, MESSAGES] {
            assert_eq!(unfit(dialect, r#""logit_bias":{"7":-100}"#, routed(model)), ["logit_bias"]);
        }
        assert!(told(CHAT, r#""logprobs":true"#, maker(model), "logprobs").is_some(), "its client named it");
    }
    let mistral = Target { host: Host::Mistral, ..routed("mistral-large-4") };
    assert_eq!(unfit(CHAT, r#""logprobs":true"#, mistral), ["logprobs"]);
    assert!(told(CHAT, penalties, mistral, "frequency_penalty").is_some());
    for other in [routed("gpt-4o"), routed("gpt-5.2"), Target { host: Host::Other, ..routed("openai/o3") }] {
        assert!(told(CHAT, r#""logprobs":true"#, other, "logprobs").is_some());
        assert!(told(CHAT, penalties, other, "frequency_penalty").is_some());
    }
}

/// Claude models of before those that draw by their own chances take a temperature or `top_p`, not both: the latter is left out, and
/// that is told; what says no more than saying nothing is the one to go.
#[test]
fn claude_models_are_told_one_chance() {
    let claude = |model| Target { is_its_own: false, ..target(MESSAGES, model) };
    for model in ["claude-opus-4-1", "claude-haiku-4-5", "claude-sonnet-4.6"] {
        for dialect in [CHAT, MESSAGES] {
            for (members, temperature, top_p, lines) in [
                (r#""temperature":0.2,"top_p":0.9"#, Some("0.2"), None, 1),
                (r#""top_p":0.9,"temperature":0.2"#, Some("0.2"), None, 1),
                (r#""temperature":1,"top_p":0.9"#, None, Some("0.9"), 0),
                (r#""temperature":0.2"#, Some("0.2"), None, 0),
                (r#""temperature":null,"top_p":0.9"#, Some("null"), Some("0.9"), 0),
            ] {
                let told = |name| told(dialect, members, claude(model), name);
                let temperature = temperature.filter(|it| dialect == MESSAGES || *it != "null");
                let told = (told("temperature"), told("top_p"));
                assert_eq!((told.0.as_deref(), told.1.as_deref()), (temperature, top_p), "{model} {members}");
                let changed = read(dialect, &asking(members)).changed(claude(model));
                assert_eq!(changed.len(), lines, "{changed:?}");
                assert!(
                    changed.iter().all(|it| *it == format!("left out, as {model} refuses it: top_p")),
                    "{changed:?}"
                );
            }
        }
        let both = r#""temperature":0.2,"top_p":0.9"#;
        assert!(told(MESSAGES, both, target(MESSAGES, model), "top_p").is_some(), "its client named it");
    }
    let both = r#""temperature":0.2,"top_p":0.9"#;
    assert!(told(CHAT, both, claude("glm-5"), "top_p").is_some(), "others take both");
}

/// Where a wish for thinking is not passed on to a Claude model, what stands in its way is told.
#[test]
fn a_wish_for_thinking_that_is_not_met_is_told() {
    let claude = |model| Target { is_its_own: false, ..target(MESSAGES, model) };
    let lines = |members: &str, to: Target<'_>| {
        read(CHAT, &asking(members).replace(r#""max_tokens":9"#, r#""max_tokens":9000"#)).changed(to)
    };
    let forced = format!(r#""reasoning_effort":"low","tool_choice":"required",{TOOLS}"#);
    for (members, why) in [
        (r#""reasoning_effort":"high","temperature":0.2"#, "does not think beside a temperature"),
        (&*forced, "does not think beside a call"),
    ] {
        let told = lines(members, claude("claude-sonnet-4-5"));
        assert!(told.len() == 1 && told[0].contains(why) && told[0].ends_with(": reasoning_effort"), "{told:?}");
    }
    let effort = r#""reasoning_effort":"high""#;
    let unthinking = Target { reasoning: false, ..claude("claude-sonnet-4-5") };
    assert_eq!(lines(effort, unthinking), ["left out, as claude-sonnet-4-5 does not think: reasoning_effort"]);
    let told = read(CHAT, &asking(effort)).changed(claude("claude-sonnet-4-5"));
    assert_eq!(
        told,
        ["left out, as claude-sonnet-4-5 has no room to think within 9 tokens of output: reasoning_effort"]
    );
    for model in ["claude-sonnet-4-5", "claude-opus-4-8"] {
        assert_eq!(lines(effort, claude(model)).len(), 0, "{model}");
        assert!(lines(r#""reasoning_effort":"none","tool_choice":"auto""#, claude(model)).is_empty(), "{model}");
    }
    // A client that says itself how the model is to think has nothing left out.
    let own = r#""reasoning_effort":"high","temperature":0.2,"thinking":{"type":"disabled"}"#;
    assert_eq!(lines(own, claude("claude-sonnet-4-5")).len(), 0);
}

/// An effort beside thinking that is switched off is of the answer alone: a model that cannot do without thinking is told the least.
#[test]
fn an_effort_without_thinking_is_told_as_the_least() {
    let off = r#""thinking":{"type":"disabled"},"output_config":{"effort":"high"}"#;
    for (to, effort) in [
        (maker("gpt-5.1"), "none"),
        (maker("gpt-5-mini"), "minimal"),
        (maker("o3"), "low"),
        (target(CHAT, "openai/gpt-5"), "low"),
    ] {
        assert_eq!(told(MESSAGES, off, to, "reasoning_effort"), Some(format!("\"{effort}\"")), "{}", to.model);
    }
    let on = r#""output_config":{"effort":"high"}"#;
    assert_eq!(told(MESSAGES, on, maker("o3"), "reasoning_effort"), Some("\"high\"".to_owned()));
}

/// Mistral's word for a call that has to be made is taken for what it says, wherever the call goes; and it is beside no thinking.
#[test]
fn a_forced_call_is_known_in_mistrals_word() {
    let any = format!(r#""tool_choice":"any","reasoning_effort":"high",{TOOLS}"#);
    let claude = Target { is_its_own: false, ..target(MESSAGES, "claude-opus-4-8") };
    assert_eq!(told(CHAT, &any, claude, "tool_choice"), Some(r#"{"type":"any"}"#.to_owned()));
    assert_eq!(told(CHAT, &any, claude, "thinking"), None);
    let other = Target { is_its_own: false, ..target(CHAT, "ours") };
    assert_eq!(told(CHAT, &any, other, "tool_choice"), Some("\"required\"".to_owned()));
    let mistral = Target { host: Host::Mistral, ..other };
    for to in [mistral, target(CHAT, "ours")] {
        assert_eq!(told(CHAT, &any, to, "tool_choice"), Some("\"any\"".to_owned()));
    }
}

/// Who speaks in a role has no place in the messages shape, and that it is left out is told.
#[test]
fn a_name_that_claude_is_not_told_is_missed() {
    let of = |role: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"{role}","name":"ana","content":"x"}},{{"role":"user","content":"y"}}]}}"#
        )
    };
    let claude = Target { is_its_own: false, ..target(MESSAGES, "claude-opus-4-8") };
    for role in ["user", "assistant", "system"] {
        let told = read(CHAT, &of(role)).changed(claude);
        assert_eq!(told, ["left out, as claude-opus-4-8 refuses it: name"], "{role}");
    }
    assert!(read(CHAT, &of("user")).changed(target(CHAT, "ours")).is_empty());
    // The name beside a result is that of the function, which its call has.
    let result = r#"{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","name":"f","content":"y"}]}"#;
    assert_eq!(read(CHAT, result).changed(claude).len(), 0);
}
