//! What some providers ask for beside the shape that they speak.

use super::*;
use crate::dialect::{Answer, Ending, Stream, StreamOptions};
use crate::state::gateway::Host;
use crate::value::Id as _;
use crate::value::canonical::canonical;
use crate::value::id::CallId;

/// What Google's models sign a call with, as it comes.
const SIGNED: &str = r#"{"google":{"thought_signature":"c2ln"}}"#;
const CALLS: &str = r#"[{"index":0,"id":"c0","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":"f","arguments":"{}"}},{"index":1,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]"#;

fn google(provider: &str) -> Target<'_> {
    Target { host: Host::Google, provider, ..target(CHAT, "gemini-3") }
}

/// A conversation of the messages shape that goes on behind these blocks of the model's.
fn going_on(blocks: &str) -> String {
    let result = |id: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}"#);
    let results = [result("c0"), result("c1")].join(",");
    format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":{blocks}}},{{"role":"user","content":[{results}]}}]}}"#
    )
}

/// What a client of the messages shape was told, streamed and whole: its blocks.
fn answered() -> [String; 2] {
    let text = format!(r#"{{"choices":[{{"message":{{"tool_calls":{CALLS}}},"finish_reason":"tool_calls"}}]}}"#);
    let answer = Answer::read(CHAT, text.as_bytes()).unwrap().of_provider("one");
    let answer = json(std::str::from_utf8(&answer.to_client(MESSAGES, 7, CallId::from_bits(7))).unwrap());
    let whole = canonical(answer.get("content").unwrap());

    let mut stream = Stream::new(CHAT, MESSAGES, StreamOptions::default()).of_provider("one");
    let chunk = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":{CALLS}}},\"finish_reason\":\"tool_calls\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let mut out = Vec::new();
    stream.push(chunk.as_bytes(), &mut out).unwrap();
    assert_eq!(stream.end(&mut out), Ending::Clean);
    let out = String::from_utf8(out).unwrap();
    let events = out.lines().filter_map(|it| it.strip_prefix("data: ")).map(json);
    let blocks: Vec<_> = events.filter_map(|it| it.get("content_block").map(canonical)).collect();
    [whole, format!("[{}]", blocks.join(","))]
}

/// What Google's models sign calls with goes back to them, and to nobody else, through a client that has no place for it.
#[test]
fn signed_calls_go_back_as_they_were_signed() {
    let [whole, streamed] = answered();
    assert_eq!(whole, streamed);
    let kinds: Vec<_> = json(&whole).as_list().unwrap().iter().map(|it| it.get("type").unwrap().clone()).collect();
    assert_eq!(kinds, ["redacted_thinking", "tool_use", "tool_use"].map(|it| json(&format!("\"{it}\""))));
    let beside = |sent: &Json| -> Vec<Option<String>> {
        let said = sent.get("messages").and_then(Json::as_list).and_then(|it| it.get(1)).unwrap();
        let calls = said.get("tool_calls").and_then(Json::as_list).unwrap();
        calls.iter().map(|it| it.get("extra_content").map(canonical)).collect()
    };
    let asked = going_on(&whole);
    assert_eq!(beside(&sent(MESSAGES, &asked, google("one"))), [Some(SIGNED.to_owned()), None]);
    assert_eq!(beside(&sent(MESSAGES, &asked, target(CHAT, "m"))), [Some(SIGNED.to_owned()), None]);
    let skipped = r#"{"google":{"thought_signature":"skip_thought_signature_validator"}}"#;
    assert_eq!(beside(&sent(MESSAGES, &asked, google("other"))), [Some(skipped.to_owned()), None]);
    let other = Target { provider: "other", ..target(CHAT, "m") };
    assert_eq!(beside(&sent(MESSAGES, &asked, other)), [None, None]);
    let maker = canonical(&sent(MESSAGES, &asked, target(MESSAGES, "claude-x")));
    assert!(!maker.contains("redacted_thinking") && maker.contains("tool_use"), "{maker}");
    // A turn of another's has nothing that was signed.
    let plain = r#"[{"type":"redacted_thinking","data":"theirs"},{"type":"tool_use","id":"c0","name":"f","input":{}},{"type":"tool_use","id":"c1","name":"f","input":{}}]"#;
    assert_eq!(beside(&sent(MESSAGES, &going_on(plain), google("one"))), [Some(skipped.to_owned()), None]);
    let kept = canonical(&sent(MESSAGES, &going_on(plain), target(MESSAGES, "claude-x")));
    assert!(kept.contains("theirs"), "what others sealed goes on: {kept}");
    // What a client makes up makes no request that is none.
    for made_up in [
        "svc_unsigned_call@",
        "svc_unsigned_call@b25l.YzA.e30x",
        "svc_unsigned_call@b25l.YzA.W10",
        "svc_unsigned_call@b25l.!.e30",
    ] {
        let blocks = plain.replace("theirs", made_up);
        assert_eq!(
            beside(&sent(MESSAGES, &going_on(&blocks), google("one"))),
            [Some(skipped.to_owned()), None],
            "{made_up}"
        );
    }
}

/// The ids of a request's calls, then of their results.
fn ids(sent: &Json) -> Vec<String> {
    let messages = sent.get("messages").and_then(Json::as_list).unwrap();
    let calls = messages.iter().filter_map(|it| it.get("tool_calls")?.as_list()).flatten().map(|it| it.get("id"));
    let results = messages.iter().map(|it| it.get("tool_call_id"));
    calls.chain(results).flatten().map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Mistral takes ids of nine letters and digits: others are told by nine of their digest, a call and its result alike.
#[test]
fn ids_are_told_as_mistral_takes_them() {
    let mistral = Target { host: Host::Mistral, is_elsewhere: true, ..target(CHAT, "m") };
    let call = |id: &str| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let result = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"x"}}"#);
    let body = format!(
        r#"{{"model":"x","messages":[{{"role":"assistant","reasoning":"hm","tool_calls":[{},{}]}},{},{}]}}"#,
        call("call_abc"),
        call("a1B2c3D4e"),
        result("call_abc"),
        result("a1B2c3D4e")
    );
    let told = sent(CHAT, &body, mistral);
    let [one, own, again, own_again] = &ids(&told)[..] else { panic!("{told:?}") };
    assert_eq!((one, own, own_again), (again, &"a1B2c3D4e".to_owned(), &"a1B2c3D4e".to_owned()));
    assert!(one.len() == 9 && one.bytes().all(|it| it.is_ascii_alphanumeric()), "{one}");
    assert!(!canonical(&told).contains("hm"), "all else is done as well");
    assert_eq!(told.get("model").and_then(Json::as_str), Some("m"));
    assert!(canonical(&sent(CHAT, &body, target(CHAT, "m"))).contains("call_abc"));
    let blocks =
        r#"[{"type":"tool_use","id":"c0","name":"f","input":{}},{"type":"tool_use","id":"c1","name":"f","input":{}}]"#;
    let told = ids(&sent(MESSAGES, &going_on(blocks), mistral));
    assert!(
        told.len() == 4 && told[0] == told[2] && told[1] == told[3] && told.iter().all(|it| it.len() == 9),
        "{told:?}"
    );
}

/// The maker of the chat shape takes ids of 40 characters: a longer one, which another provider gave, is told by its digest in a
/// conversation of either shape, a call and its result alike. Who gave it gets it back.
#[test]
fn a_long_id_is_told_as_it_is_taken() {
    let long = format!("call_{}", "x".repeat(60));
    let body = format!(
        r#"{{"model":"x","max_completion_tokens":9,"messages":[{{"role":"assistant","tool_calls":[{{"id":"{long}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"{long}","content":"x"}}]}}"#
    );
    let blocks = format!(r#"[{{"type":"tool_use","id":"{long}","name":"f","input":{{}}}}]"#);
    let answered = format!(
        r#"{{"model":"x","max_tokens":9,"messages":[{{"role":"assistant","content":{blocks}}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{long}","content":"x"}}]}}]}}"#
    );
    for (dialect, body) in [(CHAT, &body), (MESSAGES, &answered)] {
        let told = |host| {
            let told = sent(dialect, body, Target { host, ..target(CHAT, "m") });
            assert_eq!(told.get("model").and_then(Json::as_str), Some("m"));
            assert!(told.get("max_completion_tokens").is_some() || host != Host::Maker, "all else is done as well");
            ids(&told)
        };
        let maker = told(Host::Maker);
        assert!(maker.len() == 2 && maker[0] == maker[1] && maker[0].len() <= 40, "{maker:?}");
        assert_eq!(told(Host::Other), [&*long, &*long]);
    }
}

/// Hosts are known by their addresses.
#[test]
fn hosts_are_known_by_where_they_are() {
    for (url, host) in [
        ("https://generativelanguage.googleapis.com/v1beta/openai", Host::Google),
        ("https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi", Host::Google),
        ("https://api.mistral.ai/v1", Host::Mistral),
        ("https://api.openai.com/v1", Host::Maker),
        ("https://notmistral.ai/v1", Host::Other),
        ("https://gateway.example.com/api.mistral.ai", Host::Other),
    ] {
        let text = format!(
            r#"{{"id":"ups_01K6FN0001000000000000000A","name":"one","dialect":"chat","base_url":"{url}","enabled":true,"key_hint":"","created_at":0}}"#
        );
        let upstream: crate::state::gateway::Upstream = serde_json::from_str(&text).unwrap();
        assert_eq!(upstream.host(), host, "{url}");
    }
}

/// The word for whoever made a program that the shape's maker alone knows is told as all know it, where policy chose the provider.
#[test]
fn a_developer_speaks_as_the_system_where_no_developer_is_known() {
    let body = r#"{"model":"x","messages":[{"content":"a","role":"developer"},{"role":"system","content":"developer"},{"role":"user","content":"b","name":"developer"}]}"#;
    let roles = |host, is_its_own| {
        let told = sent(CHAT, body, Target { host, is_its_own, ..target(CHAT, "m") });
        let messages = told.get("messages").and_then(Json::as_list).unwrap().to_vec();
        assert_eq!(messages[1], json(r#"{"role":"system","content":"developer"}"#), "a text is no role");
        messages[0].get("role").and_then(Json::as_str).unwrap().to_owned()
    };
    for host in [Host::Other, Host::Mistral, Host::Google] {
        assert_eq!(roles(host, false), "system", "{host:?}");
        assert_eq!(roles(host, true), "developer", "its client named it: {host:?}");
    }
    assert_eq!(roles(Host::Maker, false), "developer");
}

/// What this message goes out as.
fn goes_as(message: &str, to: Target<'_>) -> Json {
    let body = format!(r#"{{"model":"x","messages":[{{"role":"user","content":"a"}},{message}]}}"#);
    sent(CHAT, &body, to).get("messages").and_then(Json::as_list).unwrap()[1].clone()
}

/// What an answer left in a transcript beside its text goes to nobody who refuses it: thinking, blocks of it, and members that say
/// nothing. A model that thinks is given thinking again, as some refuse to go on without, and a client that names a model is
/// understood to mean it.
#[test]
fn what_an_answer_left_behind_goes_to_nobody_who_refuses_it() {
    const SAID: &str = r#""role":"assistant","content":"so""#;
    const THOUGHT: &str = r#""reasoning_content":"hm""#;
    const BLOCKS: &str = r#""thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"s"}]"#;
    const NOTHING: &str = r#""refusal":null"#;
    let answer = format!("{{{NOTHING},{SAID},{THOUGHT},{BLOCKS},\"audio\":null}}");
    let whole = |members: &[&str]| json(&format!("{{{}}}", members.join(",")));
    let to = |host, is_its_own| Target { host, is_its_own, ..target(CHAT, "m") };
    for host in [Host::Mistral, Host::Google] {
        for is_its_own in [true, false] {
            assert_eq!(goes_as(&answer, to(host, is_its_own)), whole(&[SAID]), "{host:?}");
        }
    }
    assert_eq!(goes_as(&answer, to(Host::Maker, false)), whole(&[SAID]));
    assert_eq!(goes_as(&answer, to(Host::Maker, true)), whole(&[NOTHING, SAID, "\"audio\":null"]));
    assert_eq!(goes_as(&answer, to(Host::Other, true)), json(&answer), "its client named it");
    let routed = to(Host::Other, false);
    assert_eq!(goes_as(&answer, routed), whole(&[SAID, THOUGHT]));
    assert_eq!(goes_as(&answer, Target { reasoning: false, ..routed }), whole(&[SAID]));
    let deepseek = Target { reasoning: false, model: "DeepSeek-V4", ..routed };
    assert_eq!(goes_as(&answer, deepseek), whole(&[SAID, THOUGHT]));
    assert_eq!(goes_as(&answer, Target { is_strict: true, ..routed }), whole(&[SAID, THOUGHT, BLOCKS]));
    let calls = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    for host in [Host::Mistral, Host::Maker, Host::Other] {
        assert_eq!(goes_as(calls, to(host, false)), json(calls), "no text is said so: {host:?}");
    }
}

/// Where a provider knows nothing of an answer but its text and its calls, a refusal is its text, and what stands beside is left out.
#[test]
fn an_answer_goes_out_as_it_is_known() {
    let mistral = |is_its_own| Target { host: Host::Mistral, is_its_own, ..target(CHAT, "m") };
    for (message, told) in [
        (
            r#"{"role":"assistant","refusal":"no","content":null,"annotations":[]}"#,
            r#"{"role":"assistant","content":"no"}"#,
        ),
        (r#"{"content":"","role":"assistant","refusal":"no"}"#, r#"{"role":"assistant","content":"no"}"#),
        (
            r#"{"role":"assistant","content":"so","refusal":"no","audio":{"id":"a"}}"#,
            r#"{"role":"assistant","content":"so"}"#,
        ),
        (
            r#"{"role":"assistant","content":"so","tool_calls":[{"id":"a1B2c3D4e","extra_content":{"google":{}},"type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
            r#"{"role":"assistant","content":"so","tool_calls":[{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        ),
    ] {
        for is_its_own in [true, false] {
            assert_eq!(goes_as(message, mistral(is_its_own)), json(told), "{message}");
        }
        let other = goes_as(message, target(CHAT, "m"));
        assert_eq!(other, json(message), "{message}");
    }
}
