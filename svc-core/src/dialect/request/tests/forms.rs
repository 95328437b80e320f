//! Which requests have a form in the other shape: what is told before a model is chosen is what sending comes to.

use super::*;

/// What deciding is told of a request's form is what it is refused with where it is to be sent, whatever stands in it.
#[test]
fn what_is_told_of_a_form_is_what_sending_comes_to() {
    let long = "a\\n".repeat(2_000);
    let said = format!(r#""messages":[{{"role":"user","content":"{long}"}}]"#);
    let blocks = |block: &str| format!(r#""messages":[{{"role":"user","content":[{block}]}}]"#);
    let with = |member: &str| format!("{said},{member}");
    let picture = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}"#;
    let kept = r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#;
    let address = r#"{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}"#;
    let drawn = r#"{"type":"image_url","image_url":{"url":"data:image/bmp;base64,QUJD"}}"#;
    for (shape, members, has_form) in [
        (CHAT, said.clone(), true),
        (MESSAGES, said.clone(), true),
        (CHAT, blocks(r#"{"type":"text","text":"\u0020\n x"}"#), true),
        (CHAT, blocks(r#"{"type":"text","text":"\u0020\n "}"#), false),
        (CHAT, blocks(address), true),
        (CHAT, blocks(drawn), false),
        (CHAT, r#""messages":[{"role":"system","content":"x"}]"#.to_owned(), false),
        (CHAT, with(r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto""#), true),
        (CHAT, with(r#""tools":[{"type":"custom","custom":{"name":"f"}}]"#), false),
        (CHAT, with(r#""logit_bias":{"1":1}"#), false),
        (CHAT, with(r#""logit_bias":{},"n":1"#), true),
        (CHAT, with(r#""n":2"#), false),
        (CHAT, with(r#""top_k":5,"thinking":{"type":"adaptive"}"#), true),
        (CHAT, with(r#""web_search_options":{}"#), false),
        (MESSAGES, blocks(picture), true),
        (MESSAGES, blocks(kept), false),
        (MESSAGES, blocks(r#"{"type":"new"}"#), false),
        (MESSAGES, r#""messages":[{"role":"user","content":[]}]"#.to_owned(), false),
        (MESSAGES, with(r#""tools":[{"name":"f","input_schema":{"type":"object"}}]"#), true),
        (MESSAGES, with(r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#), false),
        (MESSAGES, with(r#""top_k":5"#), false),
        (MESSAGES, with(r#""logit_bias":{"1":1},"seed":1"#), true),
    ] {
        let other = if shape == CHAT { MESSAGES } else { CHAT };
        let body = read(shape, &format!(r#"{{"model":"m","max_tokens":9,{members}}}"#));
        let demand = body.demand();
        assert_eq!(body.to_upstream(target(other, "m")).is_ok(), has_form, "{members}");
        assert_eq!((demand.has_form_in(other), demand.has_form_in(shape)), (has_form, true), "{members}");
    }
}

/// What single models refuse is known of a request before it is sent to one, whatever the model: those that are told to take it are sent
/// it, and no others.
#[test]
fn what_single_models_refuse_is_what_sending_comes_to() {
    let said = r#""messages":[{"role":"user","content":"x"}]"#;
    let with = |members: &str| format!("{said},{members}");
    let begun = r#""messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]"#;
    let between = |block: &str| {
        format!(
            r#""messages":[{{"role":"user","content":"x"}},{{"role":"system","content":[{block}]}},{{"role":"user","content":"z"}}]"#
        )
    };
    let stops = |name: &str, count: usize| with(&format!(r#""{name}":[{}]"#, vec![r#""x""#; count].join(",")));
    let (chat, maker, messages) = ([Host::Other, Host::Mistral], [Host::Maker], [Host::Maker, Host::Other]);
    let models = [
        (CHAT, &chat[..], &["m", "o3", "gpt-5"][..]),
        (CHAT, &maker, &["gpt-4.1", "o1", "o3", "gpt-5", "gpt-5.6", "gpt-6-astra"]),
        (MESSAGES, &messages, &["m", "claude-3-5-haiku", "claude-opus-4-6", "claude-opus-4-7", "claude-sonnet-5"]),
    ];
    let mut refused = std::collections::BTreeSet::new();
    for (shape, members) in [
        (CHAT, with(r#""temperature":1.5"#)),
        (CHAT, with(r#""temperature":1.0,"top_p":0.5"#)),
        (CHAT, stops("stop", 1)),
        (CHAT, stops("stop", 0)),
        (CHAT, with(r#""stop":"x""#)),
        (CHAT, with(r#""logit_bias":{"1":1}"#)),
        (CHAT, with(r#""logprobs":true"#)),
        (CHAT, with(r#""logprobs":false,"logit_bias":{}"#)),
        (CHAT, with(r#""tools":[{"type":"function","function":{"name":"f"}}]"#)),
        (CHAT, begun.to_owned()),
        (MESSAGES, stops("stop_sequences", 1)),
        (MESSAGES, stops("stop_sequences", 5)),
        (MESSAGES, with(r#""logit_bias":{"1":1}"#)),
        (MESSAGES, with(r#""tools":[{"name":"f","input_schema":{"type":"object"}}]"#)),
        (MESSAGES, begun.to_owned()),
        (MESSAGES, between(r#"{"type":"text","text":"y"}"#)),
        (MESSAGES, between(r#"{"type":"new"}"#)),
    ] {
        let body = read(shape, &format!(r#"{{"model":"m","max_tokens":9,{members}}}"#));
        let demand = body.demand();
        for (dialect, hosts, names) in models {
            for (host, model, is_its_own) in
                hosts.iter().flat_map(|host| names.iter().flat_map(|it| [(*host, *it, false), (*host, *it, true)]))
            {
                let to = Target { host, is_its_own: is_its_own && dialect == shape, ..target(dialect, model) };
                let is_sent = body.to_upstream(to).is_ok();
                let is_told = demand.has_form_in(dialect) && to.takes(&demand);
                assert_eq!(is_told, is_sent, "{to:?} {members}");
                refused.extend(demand.particulars.iter().copied().filter(|it| to.refuses(*it)));
            }
        }
    }
    assert_eq!(refused.len(), 7, "each is refused by some: {refused:?}");
}
