//! Schemas that a model is to be kept to, past what providers of the messages shape take.

use super::*;

/// A tool of the chat shape that is to be kept to this schema.
fn tool(name: usize, schema: &str) -> String {
    format!(r#"{{"type":"function","function":{{"name":"f{name}","strict":true,"parameters":{schema}}}}}"#)
}

/// A request with these tools and this schema of the answer.
fn asking(tools: &[String], form: Option<&str>) -> String {
    let form = form.map(|it| {
        format!(
            r#","response_format":{{"type":"json_schema","json_schema":{{"name":"a","strict":true,"schema":{it}}}}}"#
        )
    });
    let tools = if tools.is_empty() { String::new() } else { format!(r#","tools":[{}]"#, tools.join(",")) };
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}]{tools}{}}}"#, form.unwrap_or_default())
}

/// Which of the tools that go out are strict, and what is told of the others.
fn strict(body: &str) -> (Vec<bool>, Vec<String>) {
    let out = sent(CHAT, body, target(MESSAGES, "claude"));
    let tools = out.get("tools").and_then(Json::as_list).unwrap();
    let strict = tools.iter().map(|it| it.get("strict").and_then(Json::as_bool) == Some(true)).collect();
    (strict, read(CHAT, body).changed(target(MESSAGES, "claude")))
}

/// A closed object with so many members, of which the first ones are of this type and all but the last ones are required.
fn object(members: usize, (unions, kind): (usize, &str), optional: usize) -> String {
    let named = |at: usize| {
        let own = if at < unions { kind } else { r#"{"type":"string"}"# };
        format!(r#""p{at}":{own}"#)
    };
    let required: Vec<_> = (0..members - optional).map(|it| format!("\"p{it}\"")).collect();
    let members: Vec<_> = (0..members).map(named).collect();
    format!(
        r#"{{"type":"object","properties":{{{}}},"required":[{}],"additionalProperties":false}}"#,
        members.join(","),
        required.join(",")
    )
}

const EITHER: &str = r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#;
const LISTED: &str = r#"{"type":["string","null"]}"#;
const PLAIN: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;
const TREE: &str = r##"{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"required":["n"],"additionalProperties":false,"$defs":{"N":{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/N"}}},"required":["c"],"additionalProperties":false}}}"##;

/// Up to the limits of a request models are kept to all schemas of tools, past them to none; what goes out loosely is as its client
/// wrote it, and that is told.
#[test]
fn tools_are_strict_within_the_limits_of_a_request() {
    let line =
        |loose: usize| vec![format!("tools sent without `strict`, as claude is kept to no such schemas: {loose}")];
    let many = |schema: &str, count: usize| (0..count).map(|it| tool(it, schema)).collect::<Vec<_>>();
    for (tools, is_strict) in [
        (many(PLAIN, 20), true),
        (many(PLAIN, 21), false),
        (many(&object(24, (16, EITHER), 0), 1), true),
        (many(&object(24, (17, EITHER), 0), 1), false),
        (many(&object(8, (8, LISTED), 0), 2), true),
        (many(&object(9, (9, LISTED), 0), 2), false),
        (many(&object(30, (0, ""), 24), 1), true),
        (many(&object(30, (0, ""), 25), 1), false),
        (many(&object(6, (0, ""), 6), 5), false),
    ] {
        let count = tools.len();
        let lines = if is_strict { Vec::new() } else { line(count) };
        assert_eq!(strict(&asking(&tools, None)), (vec![is_strict; count], lines), "{tools:?}");
    }
    // The schema of the answer counts with them.
    let form = object(10, (10, EITHER), 0);
    for (unions, is_strict) in [(6, true), (7, false)] {
        let tools = [tool(0, &object(10, (unions, EITHER), 0))];
        assert_eq!(strict(&asking(&tools, Some(&form))).0, [is_strict], "{unions}");
    }
    let loose = sent(CHAT, &asking(&[tool(0, TREE)], None), target(MESSAGES, "claude"));
    let schema = loose.get("tools").and_then(|it| it.as_list()?.first()?.get("input_schema"));
    assert_eq!(schema, Some(&json(TREE)));
    let mixed = [tool(0, TREE), tool(1, PLAIN)];
    assert_eq!(strict(&asking(&mixed, None)), (vec![false, true], line(1)));
}

/// An answer of a form that no model can be kept to is another model's.
#[test]
fn a_form_past_the_limits_has_no_place() {
    let chain = |links: usize| {
        let link = |at: usize| format!(r##""d{at}":{{"type":"array","items":{{"$ref":"#/$defs/d{}"}}}}"##, at + 1);
        let links: Vec<_> = (0..links).map(link).collect();
        format!(
            r##"{{"type":"object","properties":{{}},"items":{{"$ref":"#/$defs/d0"}},"$defs":{{{}}}}}"##,
            links.join(",")
        )
    };
    let fan = |references: usize| {
        let names = || 0..references;
        let leaves: Vec<_> = names().map(|it| format!(r##"{{"$ref":"#/$defs/d{it}"}}"##)).collect();
        let twice = [leaves.join(","), leaves.join(",")].join(",");
        let defined: Vec<_> = names().map(|it| format!(r#""d{it}":{{"type":"string"}}"#)).collect();
        format!(r#"{{"type":"object","properties":{{}},"allOf":[{twice}],"$defs":{{{}}}}}"#, defined.join(","))
    };
    for (form, is_kept) in [
        (fan(128), true),
        (fan(129), false),
        (fan(50_000), false),
        (PLAIN.to_owned(), true),
        (object(16, (16, EITHER), 0), true),
        (object(17, (17, EITHER), 0), false),
        (object(25, (0, ""), 25), false),
        (TREE.to_owned(), false),
        (r##"{"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]}"##.to_owned(), false),
        (r##"{"type":"object","properties":{"n":{"type":"object","properties":{"m":{"$ref":"#/properties/n"}},"required":["m"]}},"required":["n"]}"##.to_owned(), false),
        (r##"{"type":"object","properties":{"n":{"$ref":"#/$defs/a~1b"},"m":{"$ref":"#/$defs/a~1b"},"o":{"$ref":"#/nowhere"}},"required":["n","m","o"],"$defs":{"a/b":{"type":"string"}}}"##.to_owned(), true),
        (chain(40), true),
        (chain(20_000), false),
    ] {
        let body = asking(&[], Some(&form));
        if is_kept {
            assert!(read(CHAT, &body).to_upstream(target(MESSAGES, "claude")).is_ok(), "{form:.200}");
        } else {
            assert_eq!(lost(CHAT, &body, MESSAGES), ["response_format"], "{form:.200}");
        }
        assert!(read(CHAT, &body).to_upstream(target(CHAT, "m")).is_ok(), "{form}");
    }
}
