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
    // A model that draws by chances of its own is not told of them, whatever they are.
    let hot = read(CHAT, &format!(r#"{{"model":"m","temperature":1.5,{said}}}"#));
    assert!(hot.demand().has_form_in(MESSAGES) && hot.to_upstream(target(MESSAGES, "m")).is_err());
    let own = Target { is_its_own: false, ..target(MESSAGES, "claude-opus-4-7") };
    assert!(hot.to_upstream(own).is_ok());
}
