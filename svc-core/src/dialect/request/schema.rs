//! A schema that a model is to be kept to, as providers of the messages shape take it: they refuse an object that is open, and every
//! constraint that they cannot keep a model to. Those are told to the model in the description instead, as their own SDKs do it.

use super::super::doc::{Form, Value};
use super::super::write::Out;

/// Formats of texts that are kept to.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// What says nothing of an answer.
const UNSAID: [&str; 4] = ["$schema", "$id", "$comment", "additionalProperties"];

/// Writes a schema with nothing in it that would be refused.
pub(super) fn write(out: &mut Out, schema: Value<'_>) {
    if schema.form() != Form::Object {
        return out.raw(schema.raw());
    }
    let is_object = is_of(schema, "object") || schema.given("properties").is_some();
    let is_reference = schema.given("$ref").is_some();
    let mut told = Vec::new();
    out.object(|out| {
        for (name, value) in schema.members() {
            let name = name.text().unwrap_or_default();
            match &*name {
                "$defs" | "definitions" | "properties" if value.form() == Form::Object => {
                    out.name(&name).object(|out| {
                        for (name, value) in value.members() {
                            write(out.name(&name.text().unwrap_or_default()), value);
                        }
                    });
                }
                "$ref" => out.name(&name).raw(value.raw()),
                // Beside a reference nothing else may stand.
                _ if is_reference => {}
                "anyOf" | "allOf" => all(out.name(&name), value),
                "oneOf" if schema.given("anyOf").is_none() => all(out.name("anyOf"), value),
                "items" if value.form() == Form::Object => write(out.name(&name), value),
                "type" | "title" | "enum" | "const" | "default" | "required" => out.name(&name).raw(value.raw()),
                "format" if FORMATS.iter().any(|it| value.is(it)) => out.name(&name).raw(value.raw()),
                "minItems" if matches!(value.integer(), Some(0 | 1)) => out.name(&name).raw(value.raw()),
                "description" => {}
                it if UNSAID.contains(&it) => {}
                _ => told.push(format!("{name}: {}", value.raw())),
            }
        }
        if is_reference {
            return;
        }
        if is_object {
            out.name("additionalProperties").bool(false);
        }
        describe(out, schema.text_of("description").as_deref().unwrap_or_default(), &told);
    });
}

fn all(out: &mut Out, schemas: Value<'_>) {
    out.list(|out| schemas.items().for_each(|it| write(out, it)));
}

/// The description, with what the schema says and cannot keep the model to.
fn describe(out: &mut Out, said: &str, told: &[String]) {
    let told = if told.is_empty() { String::new() } else { format!("{{{}}}", told.join(", ")) };
    let between = if said.is_empty() || told.is_empty() { "" } else { "\n\n" };
    let whole = format!("{said}{between}{told}");
    if !whole.is_empty() {
        out.name("description").text(&whole);
    }
}

/// Whether a schema is of this type, or of it among others.
fn is_of(schema: Value<'_>, kind: &str) -> bool {
    schema.get("type").is_some_and(|it| it.is(kind) || it.items().any(|it| it.is(kind)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::super::doc::Tape;
    use super::*;

    fn written(schema: &str) -> String {
        let tape = Tape::of(schema).unwrap();
        let mut out = Out::default();
        write(&mut out, tape.root(schema));
        String::from_utf8(out.into_bytes()).unwrap()
    }

    /// What providers refuse is told in the description, objects are closed however deep they lie, and all else stays as it was.
    #[test]
    fn a_schema_holds_nothing_that_is_refused() {
        for (schema, expected) in [
            (
                r#"{"$schema":"x","type":"object","properties":{"age":{"type":"integer","minimum":0,"maximum":150,"description":"In years."},"minimum":{"type":"string","minLength":2,"pattern":"^a"}},"required":["age"]}"#,
                r#"{"type":"object","properties":{"age":{"type":"integer","description":"In years.\n\n{minimum: 0, maximum: 150}"},"minimum":{"type":"string","description":"{minLength: 2, pattern: \"^a\"}"}},"required":["age"],"additionalProperties":false}"#,
            ),
            (
                r#"{"type":["object","null"],"additionalProperties":{"type":"string"}}"#,
                r#"{"type":["object","null"],"additionalProperties":false}"#,
            ),
            (
                r#"{"type":"array","minItems":1,"maxItems":3,"items":{"properties":{}}}"#,
                r#"{"type":"array","minItems":1,"items":{"properties":{},"additionalProperties":false},"description":"{maxItems: 3}"}"#,
            ),
            (r#"{"type":"array","minItems":2}"#, r#"{"type":"array","description":"{minItems: 2}"}"#),
            (
                r#"{"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"credit-card"}]}"#,
                r#"{"anyOf":[{"type":"string","format":"date"},{"type":"string","description":"{format: \"credit-card\"}"}]}"#,
            ),
            (
                r##"{"$ref":"#/$defs/a","description":"b","$defs":{"a":{"type":"object","properties":{"b":{"$ref":"#/$defs/a"}}}}}"##,
                r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"b":{"$ref":"#/$defs/a"}},"additionalProperties":false}}}"##,
            ),
            (
                r#"{"enum":[1.50,"a"],"title":"t","default":1,"allOf":[true]}"#,
                r#"{"enum":[1.50,"a"],"title":"t","default":1,"allOf":[true]}"#,
            ),
            ("true", "true"),
        ] {
            assert_eq!(written(schema), expected, "{schema}");
        }
    }
}
