//! A schema that a model is to be kept to, as providers of the messages shape take it: they refuse an object that is open, and every
//! constraint that they cannot keep a model to. Those are told to the model in the description instead, as their own SDKs do it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::doc::{Form, Value};
use super::super::write::Out;
use super::Target;
use crate::state::gateway::Dialect;

/// Formats of texts that are kept to.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// What says nothing of an answer.
const UNSAID: [&str; 4] = ["$schema", "$id", "$comment", "additionalProperties"];

/// So many tools of one request a model is kept to at most.
const STRICT_MAX: usize = 20;
/// So many members that may be left out there are at most in all schemas of one request that a model is kept to.
const OPTIONAL_MAX: usize = 24;
/// So many places there are at most in them where one of several types may stand.
const UNIONS_MAX: usize = 16;
/// A schema whose references lead through more values than these is taken for one that holds itself.
const DEPTH_MAX: usize = 512;
/// And so is one with more references than these: to find what one is to, all that stands beside that may have to be looked through.
const REFERENCES_MAX: usize = 128;

/// What schemas ask of who keeps a model to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    optional: usize,
    unions: usize,
}

impl Load {
    /// That of one schema.
    fn of(schema: Value<'_>) -> Self {
        let mut load = Self::default();
        load.add(schema);
        load
    }

    fn add(&mut self, schema: Value<'_>) {
        let any = || schema.given("anyOf").or_else(|| schema.given("oneOf"));
        let is_union = any().is_some() || schema.given("type").is_some_and(|it| it.form() == Form::List);
        self.unions += usize::from(is_union);
        let required: BTreeSet<Cow<'_, str>> =
            schema.get("required").into_iter().flat_map(|it| it.items()).filter_map(|it| it.text()).collect();
        for (name, inner) in schema.get("properties").into_iter().flat_map(|it| it.members()) {
            self.optional += usize::from(!required.contains(&name.text().unwrap_or_default()));
            self.add(inner);
        }
        for named in ["$defs", "definitions"] {
            schema.get(named).into_iter().flat_map(|it| it.members()).for_each(|(_, inner)| self.add(inner));
        }
        schema.get("items").into_iter().for_each(|inner| self.add(inner));
        any().into_iter().chain(schema.given("allOf")).flat_map(|it| it.items()).for_each(|inner| self.add(inner));
    }

    const fn is_too_much(self) -> bool {
        self.optional > OPTIONAL_MAX || self.unions > UNIONS_MAX
    }
}

/// Whether models can be kept to a schema, by itself.
pub(super) fn is_kept_to(schema: Value<'_>) -> bool {
    !Load::of(schema).is_too_much() && !holds_itself(schema)
}

/// Whether a schema holds itself, or a piece of it does.
fn holds_itself(schema: Value<'_>) -> bool {
    let mut way = Way { root: schema, above: Vec::new(), seen: BTreeSet::new(), found: BTreeMap::new() };
    way.leads_back(schema)
}

/// A way through a schema, along its references.
struct Way<'a> {
    root: Value<'a>,
    /// Values that the present one is reached through.
    above: Vec<(usize, usize)>,
    /// Values that have been looked at.
    seen: BTreeSet<(usize, usize)>,
    /// What references are to.
    found: BTreeMap<String, Option<Value<'a>>>,
}

impl<'a> Way<'a> {
    /// Whether a value is one of those that it is reached through, or leads to such a one. Each is looked at once, and each reference
    /// is followed once.
    fn leads_back(&mut self, value: Value<'a>) -> bool {
        let place = value.span();
        if self.above.contains(&place) || self.above.len() > DEPTH_MAX {
            return true;
        }
        if !self.seen.insert(place) {
            return false;
        }
        let referred = match value.text_of("$ref") {
            Some(it) if !self.found.contains_key(&*it) && self.found.len() >= REFERENCES_MAX => return true,
            Some(it) => *self.found.entry(it.into_owned()).or_insert_with_key(|it| at(self.root, it)),
            None => None,
        };
        self.above.push(place);
        let inner = value.members().map(|(_, it)| it).chain(value.items()).chain(referred);
        let leads_back = inner.into_iter().any(|it| self.leads_back(it));
        self.above.pop();
        leads_back
    }
}

/// The piece of a schema that a reference within it is to.
fn at<'a>(root: Value<'a>, reference: &str) -> Option<Value<'a>> {
    let steps = reference.strip_prefix('#')?.split('/').skip(1);
    steps.map(|it| it.replace("~1", "/").replace("~0", "~")).try_fold(root, |it, step| match it.form() {
        Form::List => it.items().nth(step.parse().ok()?),
        _ => it.get(&step),
    })
}

/// A function that a model is to be kept to.
fn is_strict(function: Value<'_>) -> bool {
    function.get("strict").and_then(|it| it.bool()) == Some(true)
}

/// Which tools of a request of the chat shape a model is kept to: those that ask for it, without such as hold themselves, and none
/// where all together are more than providers of the messages shape take.
pub(super) fn strict_tools(root: Value<'_>) -> BTreeSet<usize> {
    let tools = root.get("tools").into_iter().flat_map(|it| it.items()).enumerate();
    let functions = tools.filter_map(|(at, tool)| Some((at, tool.given("function").filter(|it| is_strict(*it))?)));
    let mut load = Load::default();
    form(root).into_iter().for_each(|it| load.add(it));
    let mut strict = BTreeSet::new();
    for (at, function) in functions {
        let parameters = function.given("parameters");
        if parameters.is_some_and(holds_itself) {
            continue;
        }
        parameters.into_iter().for_each(|it| load.add(it));
        strict.insert(at);
    }
    if strict.len() > STRICT_MAX || load.is_too_much() { BTreeSet::new() } else { strict }
}

/// The schema that an answer of the chat shape is to have.
fn form(root: Value<'_>) -> Option<Value<'_>> {
    root.given("response_format")?.get("json_schema")?.given("schema")
}

/// What is told otherwise of the tools of a request, in lines for people.
pub(super) fn changed(dialect: Dialect, root: Value<'_>, target: Target<'_>) -> Option<String> {
    if (dialect, target.dialect) != (Dialect::Chat, Dialect::Messages) {
        return None;
    }
    let tools = root.get("tools").into_iter().flat_map(|it| it.items());
    let asked = tools.filter(|it| it.given("function").is_some_and(is_strict)).count();
    let loose = asked.saturating_sub(strict_tools(root).len());
    (loose > 0).then(|| format!("tools sent without `strict`, as {} is kept to no such schemas: {loose}", target.model))
}

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
