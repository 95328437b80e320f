//! What goes to a provider keeps to what such providers admit, and what they answered may be sent back.

use super::*;
use crate::dialect::Answer;
use crate::state::gateway::{Host, Model, Upstream};
use crate::value::Id as _;
use crate::value::canonical::canonical;
use crate::value::id::CallId;

/// The messages that go to a provider of this shape.
fn messages(dialect: Dialect, messages: &str, to: Dialect) -> Json {
    let body = format!(r#"{{"model":"m","max_tokens":9,"messages":{messages}}}"#);
    sent(dialect, &body, target(to, "m")).get("messages").unwrap().clone()
}

/// Messages of one side that follow one another are one: all calls in one message, and all results right behind it.
#[test]
fn turns_that_follow_one_another_are_one() {
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#);
    let called = |ids: &[&str]| {
        let of =
            |id: &&str| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#);
        ids.iter().map(of).collect::<Vec<_>>().join(",")
    };
    let result = |id: &str| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"r-{id}"}}"#);
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let turn = |role: &str, blocks: &[String]| format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","));
    let tool = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"r-{id}"}}"#);
    let asked = r#"{"role":"user","content":"go"}"#.to_owned();
    let assistant = |content: &str, ids: &[&str]| {
        format!(r#"{{"role":"assistant","content":{content},"tool_calls":[{}]}}"#, called(ids))
    };
    for (turns, expected) in [
        (
            vec![
                asked.clone(),
                turn("assistant", &[call("a"), call("b")]),
                turn("user", &[result("a"), text("look")]),
                turn("user", &[result("b")]),
            ],
            vec![asked.clone(), assistant("null", &["a", "b"]), tool("a"), tool("b"), turn("user", &[text("look")])],
        ),
        (
            vec![
                asked.clone(),
                turn("assistant", &[text("one"), call("a")]),
                turn("assistant", &[text("two"), call("b")]),
                turn("user", &[result("a"), result("b")]),
            ],
            vec![asked.clone(), assistant(r#""one\ntwo""#, &["a", "b"]), tool("a"), tool("b")],
        ),
        (
            vec![asked.clone(), r#"{"role":"user","content":""}"#.to_owned(), turn("user", &[text("on")])],
            vec![turn("user", &[text("go"), text("on")])],
        ),
        (
            vec![r#"{"role":"system","content":"s"}"#.to_owned(), r#"{"role":"system","content":"t"}"#.to_owned()],
            vec![r#"{"role":"system","content":"s"}"#.to_owned(), r#"{"role":"system","content":"t"}"#.to_owned()],
        ),
    ] {
        let turns = format!("[{}]", turns.join(","));
        assert_eq!(messages(MESSAGES, &turns, CHAT), json(&format!("[{}]", expected.join(","))), "{turns}");
    }
    let unknown = r#"[{"role":"user","content":"x"},{"role":"user","content":[{"type":"new"}]}]"#;
    let body = format!(r#"{{"model":"m","max_tokens":9,"messages":{unknown}}}"#);
    assert_eq!(lost(MESSAGES, &body, CHAT), ["messages.1.content.0"]);
    let nothing = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[]}]}"#;
    assert_eq!(lost(MESSAGES, nothing, CHAT), ["messages"]);
}

/// What a provider of the chat shape always refuses it is not sent: names of users and tools that are too long, and objects that
/// do not say what they have.
#[test]
fn a_messages_request_keeps_to_what_the_chat_shape_admits() {
    let long = format!("mcp__plugin_development__{}", "x".repeat(82));
    let body = |user: &str, name: &str| {
        format!(
            r#"{{"model":"m","max_tokens":9,"metadata":{{"user_id":"{user}"}},"tool_choice":{{"type":"tool","name":"{name}"}},
            "tools":[{{"name":"{name}","input_schema":{{"type":"object","additionalProperties":false}}}},{{"name":"g","input_schema":{{"type":"object","properties":{{"a":{{}}}}}}}}],
            "messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"{name}","input":{{}}}}]}},
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"r"}}]}}]}}"#
        )
    };
    let members = |user: &str, name: &str| {
        let sent = sent(MESSAGES, &body(user, name), target(CHAT, "gpt-x"));
        let list = |name: &str| sent.get(name).unwrap().as_list().unwrap().to_vec();
        let name = |it: &Json| it.get("function").unwrap().get("name").unwrap().as_str().unwrap().to_owned();
        let tools = list("tools");
        let names = [
            name(&tools[0]),
            name(sent.get("tool_choice").unwrap()),
            name(&list("messages")[1].get("tool_calls").unwrap().as_list().unwrap()[0]),
        ];
        let schemas: Vec<_> =
            tools.iter().map(|it| it.get("function").unwrap().get("parameters").unwrap().clone()).collect();
        (sent.get("user").unwrap().as_str().unwrap().to_owned(), names, schemas)
    };
    let (user, names, schemas) = members("user_1", "f");
    assert_eq!((&*user, names), ("user_1", ["f"; 3].map(str::to_owned)));
    assert_eq!(
        schemas,
        [
            json(r#"{"type":"object","additionalProperties":false,"properties":{}}"#),
            json(r#"{"type":"object","properties":{"a":{}}}"#)
        ]
    );
    // As a coding client tells its device, account and session.
    let device = |id: char| {
        let id = id.to_string().repeat(64);
        format!(r#"{{\"device_id\":\"{id}\",\"account_uuid\":\"\",\"session_id\":\"0b9c\"}}"#)
    };
    let (user, names, _) = members(&device('1'), &long);
    assert!(user.len() <= 64 && user == members(&device('1'), "f").0 && user != members(&device('2'), "f").0);
    let [tool, wished, called] = names;
    assert!(tool.len() == 64 && tool.starts_with("mcp__plugin_development__x"), "{tool}");
    assert_eq!((&wished, &called), (&tool, &tool));

    // An answer that calls it calls it by the client's name.
    let names = read(MESSAGES, &body("u", &long)).names(CHAT);
    let answer = format!(
        r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"c","function":{{"name":"{tool}","arguments":""}}}},{{"id":"d","function":{{"name":"g","arguments":""}}}}]}}}}]}}"#
    );
    let answer = Answer::read(CHAT, answer.as_bytes()).unwrap().naming(names);
    let out = Json::parse(&answer.to_client(MESSAGES, 7, CallId::from_bits(1))).unwrap();
    let called = out.get("content").unwrap().as_list().unwrap();
    let called: Vec<_> = called.iter().map(|it| it.get("name").unwrap().as_str().unwrap()).collect();
    assert_eq!(called, [&*long, "g"]);
}

/// What a model of the chat shape answered a client of the messages shape is sent back in the letters that this shape has, without
/// what no provider of it has signed; who answered it is given its own again.
#[test]
fn an_answer_of_one_shape_goes_on_at_a_provider_of_the_other() {
    let answer = r#"{"choices":[{"message":{"role":"assistant","content":"so","reasoning_content":"hm","tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let answer = Answer::read(CHAT, answer.as_bytes()).unwrap();
    let answer = Json::parse(&answer.to_client(MESSAGES, 7, CallId::from_bits(1))).unwrap();
    let content = answer.get("content").unwrap();
    let id = content.as_list().unwrap()[2].get("id").unwrap().as_str().unwrap();
    assert!(id.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)), "{id}");
    let mark = content.as_list().unwrap()[0].get("signature").unwrap().as_str().unwrap();
    let thought = format!(r#"{{"type":"thinking","thinking":"only","signature":"{mark}"}}"#);
    let body = format!(
        r#"{{"model":"m","max_tokens":9000,"thinking":{{"type":"enabled","budget_tokens":2000}},"messages":[{{"role":"user","content":"x"}},
        {{"role":"assistant","content":[{thought}]}}, {{"role":"user","content":"y"}},
        {{"role":"assistant", "new": 1.0,"content":{}}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}]}}]}}"#,
        canonical(content),
    );
    let there = sent(MESSAGES, &body, target(MESSAGES, "m"));
    let expected = format!(
        r#"[{{"role":"user","content":"x"}},{{"role":"user","content":"y"}},
        {{"role":"assistant","new": 1.0,"content":[{{"type":"text","text":"so"}},{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}]}},
        {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}]}}]"#
    );
    assert_eq!(canonical(there.get("messages").unwrap()), canonical(&json(&expected)));
    assert_eq!(there.get("thinking"), Some(&json(r#"{"type":"disabled"}"#)));
    let back = sent(MESSAGES, &body, target(CHAT, "m"));
    let expected = r#"[{"role":"user","content":"x"},{"role":"assistant","content":"","reasoning_content":"only"},{"role":"user","content":"y"},
        {"role":"assistant","content":"so","reasoning_content":"hm","tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"functions.f:0","content":"r"}]"#;
    assert_eq!(back.get("messages"), Some(&json(expected)));
    // Nor does another gateway's answer tell it to a client of the chat shape as what a provider knows again.
    let answer = Answer::read(MESSAGES, canonical(&answer).as_bytes()).unwrap();
    let answer = String::from_utf8(answer.to_client(CHAT, 7, CallId::from_bits(1))).unwrap();
    assert!(answer.contains("\"reasoning_content\":\"hm\"") && !answer.contains("thinking_blocks"), "{answer}");
    // A provider's own, signed or not, goes back to it as it came.
    let own = body.replace(mark, "");
    assert_eq!(read(MESSAGES, &own).to_upstream(target(MESSAGES, "m")).unwrap(), own.as_bytes());
}

/// Thinking goes back as `reasoning_content` to whoever told it so; providers that tell it in another form refuse that member. Towards
/// the messages shape it is left out whatever its form.
#[test]
fn thinking_goes_back_in_the_form_it_came_in() {
    let part = r#"{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}"#;
    for (message, expected) in [
        (r#""content":"so","reasoning_content":"hm""#.to_owned(), r#""content":"so","reasoning_content":"hm""#),
        (
            r#""content":"so","reasoning_content":"hm","reasoning":"hm""#.to_owned(),
            r#""content":"so","reasoning_content":"hm""#,
        ),
        (r#""content":"so","reasoning":"hm""#.to_owned(), r#""content":"so""#),
        (format!(r#""content":[{part},{{"type":"text","text":"so"}}]"#), r#""content":"so""#),
    ] {
        let answer = format!(r#"{{"choices":[{{"message":{{"role":"assistant",{message}}}}}]}}"#);
        let answer = Answer::read(CHAT, answer.as_bytes()).unwrap().to_client(MESSAGES, 7, CallId::from_bits(1));
        let content = canonical(Json::parse(&answer).unwrap().get("content").unwrap());
        assert!(content.contains("\"thinking\":\"hm\""), "{content}");
        let turns = format!(r#"[{{"role":"user","content":"x"}},{{"role":"assistant","content":{content}}}]"#);
        let back = format!(r#"[{{"role":"user","content":"x"}},{{"role":"assistant",{expected}}}]"#);
        assert_eq!(canonical(&messages(MESSAGES, &turns, CHAT)), canonical(&json(&back)), "{message}");
        let there = r#"[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"so"}]}]"#;
        assert_eq!(canonical(&messages(MESSAGES, &turns, MESSAGES)), canonical(&json(there)), "{message}");
        let chat = Answer::read(MESSAGES, &answer).unwrap().to_client(CHAT, 7, CallId::from_bits(1));
        assert!(!String::from_utf8(chat).unwrap().contains("thinking_blocks"), "{message}");
    }
}

/// What a model of the chat shape has thought goes back to the provider that told it, and to no other: also where that one is asked
/// because the first has failed. What was marked before marks named providers goes to any.
#[test]
fn thinking_goes_back_to_the_provider_it_came_from() {
    const OWN: &str = r#""role":"assistant","content":"so","reasoning_content":"hm""#;
    const BARE: &str = r#""role":"assistant","content":"so""#;
    let answer = format!(r#"{{"choices":[{{"message":{{{OWN}}}}}]}}"#);
    for (from, to, expected) in [("one", "one", OWN), ("two", "one", BARE), ("", "one", OWN), ("other", "one", BARE)] {
        let answer = Answer::read(CHAT, answer.as_bytes()).unwrap().of_provider(from);
        let answer = answer.to_client(MESSAGES, 7, CallId::from_bits(1));
        let content = canonical(Json::parse(&answer).unwrap().get("content").unwrap());
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":{content}}}]}}"#
        );
        let sent = sent(MESSAGES, &body, Target { provider: to, ..target(CHAT, "m") });
        let back = &sent.get("messages").unwrap().as_list().unwrap()[1];
        assert_eq!(canonical(back), canonical(&json(&format!("{{{expected}}}"))), "from `{from}`");
    }
    let told = r#","reasoning":"hm","reasoning_details":[{"type":"reasoning.text"}]"#;
    let body = |message: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"x","reasoning":1}}, {{{message},"new": 1.0}} ,{{"role":"user","content":"y"}}]}}"#
        )
    };
    let asked = body(&format!("{OWN}{told}"));
    let out = |is_elsewhere: bool| {
        let target = Target { is_elsewhere, ..target(CHAT, "m") };
        String::from_utf8(read(CHAT, &asked).to_upstream(target).unwrap()).unwrap()
    };
    assert_eq!((out(false), out(true)), (asked.clone(), body(BARE)));
}

/// Nothing but what another provider's model has thought is nothing to answer: it is refused here, and not sent empty.
#[test]
fn thinking_alone_is_no_conversation() {
    let thought = |mark: &str| format!(r#"[{{"type":"thinking","thinking":"hm","signature":"{mark}"}}]"#);
    for (mark, first, is_refused) in
        [("svc_unsigned", "", true), ("svc_unsigned@two", "", true), ("s", "", false), ("svc_unsigned", "x", false)]
    {
        let first = if first.is_empty() { String::new() } else { format!(r#"{{"role":"user","content":"{first}"}},"#) };
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{first}{{"role":"assistant","content":{0}}},{{"role":"assistant","content":{0}}}]}}"#,
            thought(mark)
        );
        if is_refused {
            assert_eq!(lost(MESSAGES, &body, MESSAGES), ["messages"], "{mark}");
        } else {
            read(MESSAGES, &body).to_upstream(target(MESSAGES, "m")).unwrap();
        }
    }
}

/// A provider of this shape at this address, and a model of this name.
fn at(dialect: &str, url: &str, model: &str) -> (Upstream, Model) {
    let id = "ups_01K6FN0001000000000000000A";
    let upstream = format!(
        r#"{{"id":"{id}","name":"one","dialect":"{dialect}","base_url":"{url}","enabled":true,"key_hint":"","created_at":0}}"#
    );
    let row = format!(
        r#"{{"name":"{model}","upstream":"{id}","jurisdiction":"us","context_window":9,"max_output":9,"capabilities":[],
        "retention":"none","quality":{{"general":50}},"enabled":true,"created_at":0}}"#
    );
    (serde_json::from_str(&upstream).unwrap(), serde_json::from_str(&row).unwrap())
}

/// Models of the maker that refuses thinking in the midst of a turn are known by their names, or by where they are: a deployment has
/// any name. Those of others, also under a name of its own, are not.
#[test]
fn strict_models_are_known_by_name_or_place() {
    for (model, url, is_strict) in [
        ("claude-x", "https://gateway.example.com", true),
        ("prod-1", "https://api.anthropic.com", true),
        ("prod-1", "https://Res.Services.AI.Azure.com/anthropic", true),
        ("prod-1", "https://bedrock-mantle.us-east-1.api.aws:443/anthropic", true),
        ("prod-1", "https://api.deepseek.com/anthropic", false),
        ("prod-1", "https://notanthropic.com", false),
        ("prod-1", "https://gateway.example.com/api.anthropic.com", false),
    ] {
        let (mut upstream, row) = at("messages", url, model);
        assert_eq!(Target::of(&upstream, &row).is_strict, is_strict, "{model} at {url}");
        upstream.dialect = CHAT;
        let target = Target::of(&upstream, &row);
        assert_eq!((target.is_strict, target.host), (model == "claude-x", Host::Other));
    }
    // Where models of many makers are, a name tells whose it is.
    let foundry = "https://Res.Services.AI.Azure.com/openai/v1";
    for (model, host) in [
        ("gpt-4o", Host::Maker),
        ("gpt-5-mini", Host::Maker),
        ("o3", Host::Maker),
        ("gpt-oss-120b", Host::Other),
        ("DeepSeek-V4", Host::Other),
        ("prod-1", Host::Other),
    ] {
        let (upstream, row) = at("chat", foundry, model);
        assert_eq!(Target::of(&upstream, &row).host, host, "{model}");
    }
    let (upstream, row) = at("chat", "https://openai.services.ai.azure.com/models", "gpt-4o");
    assert_eq!(Target::of(&upstream, &row).host, Host::Other, "another API");
    for (url, name) in [
        ("https://eu.api.openai.com/v1", "max_completion_tokens"),
        ("https://res.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://res.cognitiveservices.azure.com/openai/v1", "max_completion_tokens"),
        ("https://api.mistral.ai/v1", "max_tokens"),
    ] {
        let (upstream, row) = at("chat", url, "prod-1");
        let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
        assert_eq!(sent(MESSAGES, body, Target::of(&upstream, &row)).get(name), Some(&json("9")), "{url}");
    }
}

/// What says no more than saying nothing is left out, as models that refuse it refuse it also then.
#[test]
fn what_goes_without_saying_is_not_said() {
    for (members, said) in [
        (r#""temperature":1,"top_p":1.0"#, &[][..]),
        (r#""temperature":0.7,"top_p":1"#, &["temperature"]),
        (r#""temperature":1.0,"top_p":0.9"#, &["top_p"]),
    ] {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}}],{members}}}"#);
        let sent = sent(CHAT, &body, target(MESSAGES, "m"));
        let heard: Vec<_> = ["temperature", "top_p"].into_iter().filter(|it| sent.get(it).is_some()).collect();
        assert_eq!(heard, said, "{members}");
    }
}

/// A turn of calls that began without the model's own thinking goes on without, step by step; what clears thinking from the context
/// goes with it. One that began with its own goes on as it came, as does any of a model that is not known to refuse it.
#[test]
fn a_turn_without_thinking_goes_on_without() {
    const BUDGET: &str = r#""thinking":{"type":"enabled","budget_tokens":2000}"#;
    const OFF: &str = r#""thinking":{"type":"disabled"}"#;
    let marked = r#"{"type":"thinking","thinking":"hm","signature":"svc_unsigned"},"#;
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"s"},"#;
    let hidden = r#"{"type":"redacted_thinking","data":"d"},"#;
    let step = |thought: &str, id: &str| {
        format!(
            r#",{{"role":"assistant","content":[{thought}{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}]}},
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"r"}},{{"type":"text","text":"on"}}]}}"#
        )
    };
    let next = r#",{"role":"assistant","content":"done"},{"role":"user","content":"next"}"#;
    let body = |wishes: &str, model: &str, steps: &[String]| {
        let steps = steps.concat();
        format!(
            r#"{{"model":"{model}","max_tokens":9000,"messages":[{{"role":"user","content":"x"}}{steps}],{wishes}}}"#
        )
    };
    let out = |body: &str, model: &str| {
        String::from_utf8(read(MESSAGES, body).to_upstream(target(MESSAGES, model)).unwrap()).unwrap()
    };
    for (model, steps, is_off) in [
        ("claude-x", vec![step(marked, "a")], true),
        ("claude-x", vec![step(marked, "a"), step("", "b")], true),
        ("claude-x", vec![step("", "a")], true),
        ("claude-x", vec![step(signed, "0"), next.to_owned(), step("", "a")], true),
        ("other", vec![step(marked, "a"), step("", "b")], true),
        ("other", vec![step("", "a")], false),
        ("claude-x", vec![], false),
        ("claude-x", vec![step(signed, "a")], false),
        ("claude-x", vec![step(hidden, "a"), step("", "b")], false),
        ("claude-x", vec![step(signed, "a"), step(marked, "b")], false),
        ("claude-x", vec![step(marked, "a"), next.to_owned()], false),
        ("claude-x", vec![step("", "a"), next.to_owned()], false),
    ] {
        let expected = body(if is_off { OFF } else { BUDGET }, model, &steps).replace(marked, "");
        assert_eq!(json(&out(&body(BUDGET, model, &steps), model)), json(&expected), "{model} {steps:?}");
        if !is_off && !steps.concat().contains(marked) {
            assert_eq!(out(&body(BUDGET, model, &steps), model), expected);
        }
    }

    let clear = r#"{"type":"clear_thinking_20251015","keep":"all"}"#;
    let other = r#"{"type":"clear_tool_uses_20250919"}"#;
    let edits = |edits: &str| format!(r#""context_management":{{"edits":[{edits}]}}"#);
    let all = edits(clear);
    let both = edits(&format!("{other},{clear}"));
    let more = r#""context_management":{"new":1,"edits":[CLEAR]}"#.replace("CLEAR", clear);
    for (wishes, expected) in [
        (format!("{all},{BUDGET}"), OFF.to_owned()),
        (format!("{BUDGET}, {all}"), OFF.to_owned()),
        (format!("{BUDGET}, {all} ,\"top_k\":1"), format!("{OFF}, \"top_k\":1")),
        (format!("{both},{BUDGET}"), format!("{},{OFF}", edits(other))),
        (format!("{more},{BUDGET}"), format!("\"context_management\":{{\"new\":1}},{OFF}")),
        (format!("{},{BUDGET}", edits(other)), format!("{},{OFF}", edits(other))),
        (all.clone(), all.clone()),
    ] {
        let steps = [step("", "a")];
        assert_eq!(out(&body(&wishes, "claude-x", &steps), "claude-x"), body(&expected, "claude-x", &steps));
    }
    let kept = body(&format!("{all},{BUDGET}"), "claude-x", &[step(signed, "a")]);
    assert_eq!(out(&kept, "claude-x"), kept);
}

/// An answer without a content, or with calls without ids, may be sent back as it came.
#[test]
fn what_a_model_answered_may_be_sent_back() {
    for content in ["[]", r#"[{"type":"thinking","thinking":"hm","signature":"s"}]"#] {
        let answer = format!(r#"{{"content":{content},"stop_reason":"end_turn"}}"#);
        let answer = Answer::read(MESSAGES, answer.as_bytes()).unwrap();
        let answer = Json::parse(&answer.to_client(CHAT, 7, CallId::from_bits(1))).unwrap();
        let message = answer.get("choices").unwrap().as_list().unwrap()[0].get("message").unwrap();
        assert_eq!(message.get("content"), Some(&json("\"\"")), "{content}");
    }
    for message in [
        r#"{"role":"assistant"}"#,
        r#"{"role":"assistant","content":null,"reasoning_content":"hm"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"","content":"r"}"#,
    ] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"x"}},{message},{{"role":"user","content":"y"}}]}}"#
        );
        assert_eq!(read(CHAT, &body).to_upstream(target(CHAT, "m")).unwrap(), body.as_bytes());
        read(CHAT, &body).to_upstream(target(MESSAGES, "m")).unwrap();
    }
}

/// Calls without ids are told apart towards a provider of the messages shape, and each result says whose it is.
#[test]
fn calls_without_ids_are_numbered() {
    let call = |id: &str| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let called = |ids: &[&str]| {
        let calls: Vec<_> = ids.iter().map(|it| call(it)).collect();
        format!(r#"{{"role":"assistant","tool_calls":[{}]}}"#, calls.join(","))
    };
    let result = |id: &str, text: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#);
    let turns = [
        r#"{"role":"user","content":"x"}"#.to_owned(),
        called(&["", "c", ""]),
        result("", "one"),
        result("c", "two"),
        result("", "three"),
        called(&[""]),
        result("", "four"),
    ];
    let sent = messages(CHAT, &format!("[{}]", turns.join(",")), MESSAGES);
    let ids = |at: usize, member: &str| -> Vec<String> {
        let blocks = sent.as_list().unwrap()[at].get("content").unwrap().as_list().unwrap();
        blocks.iter().map(|it| it.get(member).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let (first, second) = (ids(1, "id"), ids(3, "id"));
    assert_eq!((ids(2, "tool_use_id"), ids(4, "tool_use_id")), (first.clone(), second.clone()));
    assert_eq!(first[1], "c");
    let all: Vec<_> = first.iter().chain(&second).collect();
    assert!(
        all.iter().flat_map(|it| it.bytes()).all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)),
        "{all:?}"
    );
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{all:?}");
}

/// Calls of one id, as some providers give them in every turn or twice in one, are told apart likewise: a result is of its own turn's
/// call, also where an earlier one has none; two results of one call stay that.
#[test]
fn calls_of_one_id_are_told_apart() {
    let called = |ids: &[&str]| {
        let call = |id: &&str| serde_json::json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
        serde_json::json!({ "role": "assistant", "tool_calls": ids.iter().map(call).collect::<Vec<_>>() })
    };
    let result = |id: &str| serde_json::json!({ "role": "tool", "tool_call_id": id, "content": "r" });
    let user = || serde_json::json!({ "role": "user", "content": "x" });
    let turns = serde_json::json!([
        user(),
        called(&["call_0"]),
        result("call_0"),
        called(&["call_0", "call_1"]),
        user(),
        called(&["call_0", "call_0"]),
        result("call_0"),
        result("call_0"),
        called(&["own"]),
        result("own"),
        result("own"),
    ]);
    let sent = messages(CHAT, &turns.to_string(), MESSAGES);
    let ids = |at: usize, member: &str| -> Vec<String> {
        let blocks = sent.as_list().unwrap()[at].get("content").unwrap().as_list().unwrap();
        blocks.iter().filter_map(|it| Some(it.get(member)?.as_str().unwrap().to_owned())).collect()
    };
    let calls = [ids(1, "id"), ids(3, "id"), ids(5, "id"), ids(7, "id")];
    assert_eq!((calls[0][0].as_str(), calls[1][1].as_str(), calls[3][0].as_str()), ("call_0", "call_1", "own"));
    let apart: std::collections::BTreeSet<_> = calls.iter().flatten().collect();
    assert_eq!(apart.len(), 6, "{calls:?}");
    assert_eq!((ids(2, "tool_use_id"), ids(6, "tool_use_id")), (calls[0].clone(), calls[2].clone()));
    assert_eq!(ids(8, "tool_use_id"), ["own", "own"]);
}

/// Texts of white space alone are none in the messages shape, and arguments that broke off are kept as a text.
#[test]
fn what_says_nothing_is_no_text() {
    let chat = r#"[{"role":"system","content":" "},{"role":"user","content":[{"type":"text","text":"\t"},{"type":"text","text":" x"}]},
        {"role":"assistant","content":"\n\n","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]},
        {"role":"tool","tool_call_id":"c","content":"\n"},{"role":"user","content":" "}]"#;
    let expected = r#"[{"role":"user","content":[{"type":"text","text":" x"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"arguments":"{\"a\":"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[]}]}]"#;
    assert_eq!(messages(CHAT, chat, MESSAGES), json(expected));
    let body = format!(r#"{{"model":"m","messages":{chat}}}"#);
    assert_eq!(sent(CHAT, &body, target(MESSAGES, "m")).get("system"), None);
}

/// A file is a document of one of the two kinds that the messages shape knows, or is refused by its name.
#[test]
fn files_are_pdfs_or_texts() {
    let part = |file: &str| format!(r#"[{{"role":"user","content":[{{"type":"file","file":{{{file}}}}}]}}]"#);
    for (file, source) in [
        (
            r#""filename":"a.PDF","file_data":"JVBERi0=""#,
            r#"{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}"#,
        ),
        (r#""filename":"a.txt","file_data":"aMOp""#, r#"{"type":"text","media_type":"text/plain","data":"hé"}"#),
        (
            r#""filename":"a","file_data":"data:text/markdown;charset=utf-8;base64,aMOp""#,
            r#"{"type":"text","media_type":"text/plain","data":"hé"}"#,
        ),
        (r#""filename":"a.pdf","file_data":"https://x.example/a""#, r#"{"type":"url","url":"https://x.example/a"}"#),
    ] {
        let sent = messages(CHAT, &part(file), MESSAGES);
        let block = &sent.as_list().unwrap()[0].get("content").unwrap().as_list().unwrap()[0];
        assert_eq!(
            (block.get("type"), block.get("source")),
            (Some(&json("\"document\"")), Some(&json(source))),
            "{file}"
        );
    }
    for file in [
        r#""file_data":"JVBERi0=""#,
        r#""filename":"a.docx","file_data":"UEsDBA==""#,
        r#""filename":"a.pdf","file_data":"data:image/png;base64,QUJD""#,
        r#""filename":"a.txt","file_data":"/w==""#,
        r#""filename":"a.txt","file_data":"no base64""#,
    ] {
        let body = format!(r#"{{"model":"m","messages":{}}}"#, part(file));
        assert_eq!(lost(CHAT, &body, MESSAGES), ["messages.0.content.0.file.file_data"], "{file}");
    }
}

/// What a maker of a shape is known to refuse is a fault before it is sent, so that another provider may answer; what it refuses for
/// its word alone is told in its own.
#[test]
fn what_makers_refuse_is_not_sent() {
    let image = |kind: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:{kind};base64,QUJD"}}}}]}}]}}"#
        )
    };
    for (kind, told) in [("image/jpg", "image/jpeg"), ("IMAGE/PNG", "image/png"), ("image/webp", "image/webp")] {
        let sent = canonical(&sent(CHAT, &image(kind), target(MESSAGES, "m")));
        assert!(sent.contains(&format!(r#""media_type":"{told}""#)), "{sent}");
    }
    assert_eq!(lost(CHAT, &image("image/tiff"), MESSAGES), ["messages.0.content.0.image_url"]);

    let stops = |count: usize| {
        let texts: Vec<_> = (0..count).map(|it| format!("\"s{it}\"")).collect();
        let stops = texts.join(",");
        format!(
            r#"{{"model":"m","max_tokens":9,"stop_sequences":[{stops}],"messages":[{{"role":"user","content":"x"}}]}}"#
        )
    };
    let makers = Target { host: Host::Maker, ..target(CHAT, "m") };
    assert!(read(MESSAGES, &stops(4)).to_upstream(makers).is_ok());
    assert!(read(MESSAGES, &stops(5)).to_upstream(target(CHAT, "m")).is_ok());
    let refusal = read(MESSAGES, &stops(5)).to_upstream(makers).unwrap_err();
    assert_eq!(refusal.errors().first().and_then(|it| it.field.as_deref()), Some("stop_sequences"));

    let choice = r#""tool_choice":{"type":"auto","disable_parallel_tool_use":true}"#;
    let tools = r#""tools":[{"name":"f","input_schema":{"type":"object"}}],"#;
    for (tools, is_told) in [("", false), (r#""tools":[],"#, false), (tools, true)] {
        let body =
            format!(r#"{{"model":"m","max_tokens":9,{tools}{choice},"messages":[{{"role":"user","content":"x"}}]}}"#);
        let sent = sent(MESSAGES, &body, target(CHAT, "m"));
        let told = (sent.get("tool_choice").is_some(), sent.get("parallel_tool_calls").is_some());
        assert_eq!(told, (is_told, is_told), "{tools}");
    }

    let thought = r#"[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"yes"}]},{"role":"user","content":"on"}]"#;
    let told = messages(CHAT, thought, MESSAGES);
    let said = told.as_list().and_then(|it| it.get(1)).and_then(|it| it.get("content"));
    assert_eq!(said, Some(&json(r#"[{"type":"text","text":"yes"}]"#)));
}
