//! Values that schemas admit: the arguments of a call, and an answer in JSON.
//!
//! What of JSON Schema is kept to: `type`, `const`, `enum`, `properties`, `required`, `items`, `prefixItems`, references within
//! the schema, `allOf`, the first of `anyOf` and `oneOf` that can be satisfied, the bounds of numbers, texts, lists and objects,
//! and patterns that are plain words. What is not stands in `docs/mock-upstream.md`.
//!
//! **Invariant:** whatever the schema, making a value comes to an end soon, and the same schema has the same value.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value, json};

/// Schemas that are read for one value, those included of which nothing comes.
const READ_MAX: u32 = 5_000;
/// How many of them lie within each other.
const DEPTH_MAX: usize = 64;
/// How often one reference leads into itself: once, so that what has one of its own kind within may have it.
const TURNS_MAX: usize = 2;
/// Items of a list, members of an object beside those that are named, letters of a text: where more are asked for, so many are made.
const SIZE_MAX: usize = 1_000;

/// A value that a schema admits, of these words; `null` where it admits none, or none without end.
pub(super) fn example(schema: &Value, seed: u64, word: fn(u64) -> &'static str) -> Value {
    let schemas = Schemas { root: schema, left: Cell::new(READ_MAX), word };
    schemas.value(schema, seed, &Way::default()).unwrap_or_default()
}

struct Schemas<'a> {
    root: &'a Value,
    left: Cell<u32>,
    word: fn(u64) -> &'static str,
}

/// How a schema was come to.
#[derive(Clone, Default)]
struct Way {
    references: Vec<String>,
    depth: usize,
}

impl Way {
    /// One schema further within; nothing where that is too far.
    fn into(&self) -> Option<Self> {
        (self.depth < DEPTH_MAX).then(|| Self { depth: self.depth + 1, ..self.clone() })
    }

    /// Along a reference; nothing where it has led here too often.
    fn along(&self, reference: &str) -> Option<Self> {
        let turns = self.references.iter().filter(|it| *it == reference).count();
        let mut way = self.into().filter(|_| turns < TURNS_MAX)?;
        way.references.push(reference.to_owned());
        Some(way)
    }
}

impl Schemas<'_> {
    /// Nothing where the schema admits nothing, as far as is looked.
    fn value(&self, schema: &Value, seed: u64, way: &Way) -> Option<Value> {
        let mut way = way.into()?;
        let mut met = Vec::new();
        let schema = self.flat(schema, &way, &mut met)?;
        way.references.append(&mut met);
        for several in ["anyOf", "oneOf"] {
            if let Some(Value::Array(any)) = schema.get(several) {
                let mut rest = schema.clone().into_owned();
                rest.remove(several);
                let rest = Value::Object(rest);
                return any.iter().find_map(|one| self.value(&both(rest.clone(), one.clone()), seed, &way));
            }
        }
        if let Some(value) = schema.get("const") {
            return Some(value.clone());
        }
        if let Some(Value::Array(any)) = schema.get("enum") {
            return any.first().cloned();
        }
        match kind_of(&schema)? {
            "string" => Some(Value::from(self.text(&schema, seed))),
            "integer" => Some(Value::from(integer(&schema, seed))),
            "number" => Some(number(&schema, seed)),
            "boolean" => Some(Value::Bool(seed.is_multiple_of(2))),
            "array" => self.list(&schema, seed, &way),
            "null" => Some(Value::Null),
            _ => self.object(&schema, seed, &way),
        }
    }

    /// A schema, with what it refers to and all that holds beside it, in one. The references that it took are added to `met`, each
    /// once.
    fn flat<'s>(&'s self, schema: &'s Value, way: &Way, met: &mut Vec<String>) -> Option<Cow<'s, Map<String, Value>>> {
        self.left.set(self.left.get().checked_sub(1)?);
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return None,
            _ => return Some(Cow::Owned(Map::new())),
        };
        if !schema.contains_key("$ref") && !schema.contains_key("allOf") {
            return Some(Cow::Borrowed(schema));
        }
        let mut flat = schema.clone();
        if let Some(Value::String(to)) = flat.remove("$ref") {
            let way = way.along(&to)?;
            // What lies elsewhere nobody looks up: it asks for nothing here.
            if let Some(found) = to.strip_prefix('#').and_then(|it| self.root.pointer(it)) {
                flat = merged(flat, &*self.flat(found, &way, met)?)?;
            }
            if !met.contains(&to) {
                met.push(to);
            }
        }
        if let Some(Value::Array(all)) = flat.remove("allOf") {
            let way = way.into()?;
            for one in &all {
                flat = merged(flat, &*self.flat(one, &way, met)?)?;
            }
        }
        Some(Cow::Owned(flat))
    }

    fn list(&self, schema: &Map<String, Value>, seed: u64, way: &Way) -> Option<Value> {
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema.get("items");
        let least = size(schema, "minItems").unwrap_or(0).min(SIZE_MAX);
        let most = size(schema, "maxItems").unwrap_or(SIZE_MAX);
        let wanted = least.max(first.len().max(usize::from(rest.is_some())).min(most));
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let (any, mut items) = (Value::Bool(true), Vec::new());
        // Where all are to differ some are made in vain.
        for at in 0..wanted.saturating_mul(if unique { 4 } else { 1 }) {
            if items.len() >= wanted {
                break;
            }
            let item = first.get(items.len()).or(rest).unwrap_or(&any);
            match self.value(item, seed.wrapping_add(at as u64), way) {
                Some(item) if unique && items.contains(&item) => {}
                Some(item) => items.push(item),
                None if items.len() >= least => break,
                None => return None,
            }
        }
        Some(Value::Array(items))
    }

    fn object(&self, schema: &Map<String, Value>, seed: u64, way: &Way) -> Option<Value> {
        let named = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut missing: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        let (least, most) = (size(schema, "minProperties"), size(schema, "maxProperties"));
        let mut members = Map::new();
        for (n, (name, it)) in named.into_iter().flatten().enumerate() {
            let is_required = missing.remove(name.as_str());
            // Room is kept for those that must be there.
            if !is_required && most.is_some_and(|it| members.len() + missing.len() >= it) {
                continue;
            }
            match self.value(it, seed.wrapping_add(n as u64), way) {
                Some(value) => drop(members.insert(name.clone(), value)),
                None if is_required => return None,
                None => {}
            }
        }
        let text = json!({ "type": "string" });
        let further = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => return Some(Value::Object(members)),
            Some(further @ Value::Object(_)) => further,
            _ => &text,
        };
        let wanted = least.unwrap_or(0).min(SIZE_MAX).max(members.len() + missing.len());
        let made =
            (1..).map(|it| format!("member{it}")).filter(|it| !named.is_some_and(|named| named.contains_key(it)));
        for name in missing.into_iter().map(str::to_owned).chain(made) {
            if members.len() >= wanted {
                break;
            }
            let value = self.value(further, seed.wrapping_add(members.len() as u64), way)?;
            members.insert(name, value);
        }
        Some(Value::Object(members))
    }

    fn text(&self, schema: &Map<String, Value>, seed: u64) -> String {
        let least = size(schema, "minLength").unwrap_or(0).min(SIZE_MAX);
        let most = size(schema, "maxLength").unwrap_or(usize::MAX);
        let usual = (self.word)(seed).trim_matches('"');
        if let Some(Plain { text, begins, ends }) = schema.get("pattern").and_then(|it| plain(it.as_str()?)) {
            let missing = least.saturating_sub(text.chars().count());
            let more: String =
                if begins && ends { String::new() } else { usual.chars().cycle().take(missing).collect() };
            return if ends { more + &text } else { text + &more };
        }
        let length = usual.chars().count().max(least).min(most);
        usual.chars().cycle().take(length).collect()
    }
}

/// The type that a schema asks for, by name or by what it says; nothing where it asks for none that is left.
fn kind_of(schema: &Map<String, Value>) -> Option<&str> {
    const TOLD_BY: [(&str, &[&str]); 4] = [
        ("object", &["properties", "required", "additionalProperties", "minProperties"]),
        ("array", &["items", "prefixItems", "minItems"]),
        ("string", &["minLength", "maxLength", "pattern"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => kinds.first()?.as_str(),
        _ => {
            let told = TOLD_BY.iter().find(|(_, members)| members.iter().any(|it| schema.contains_key(*it)));
            Some(told.map_or("object", |(kind, _)| kind))
        }
    }
}

/// What satisfies both; nothing where they have no type, or no value that they list, in common.
fn merged(mut one: Map<String, Value>, other: &Map<String, Value>) -> Option<Map<String, Value>> {
    for (name, theirs) in other {
        let Some(own) = one.get_mut(name) else {
            one.insert(name.clone(), theirs.clone());
            continue;
        };
        match (&**name, &mut *own, theirs) {
            ("properties", Value::Object(own), Value::Object(theirs)) => {
                for (name, it) in theirs {
                    let known = own.remove(name);
                    own.insert(name.clone(), known.map_or_else(|| it.clone(), |known| both(known, it.clone())));
                }
            }
            ("items" | "additionalProperties", ..) => *own = both(own.take(), theirs.clone()),
            // One of ours holds, and beside it one of theirs.
            ("anyOf" | "oneOf", Value::Array(all), _) => {
                let one_of_theirs = Value::from(Map::from_iter([(name.clone(), theirs.clone())]));
                all.iter_mut().for_each(|it| *it = both(it.take(), one_of_theirs.clone()));
            }
            ("required", Value::Array(own), Value::Array(theirs)) => own.extend(theirs.iter().cloned()),
            ("enum", Value::Array(own), Value::Array(theirs)) => {
                own.retain(|it| theirs.contains(it));
                own.first()?;
            }
            ("type", ..) => *own = common_type(own, theirs)?,
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", ..) => {
                *own = narrower(own, theirs, true);
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", ..) => {
                *own = narrower(own, theirs, false);
            }
            _ => {}
        }
    }
    Some(one)
}

/// The schema of what satisfies both.
fn both(one: Value, other: Value) -> Value {
    json!({ "allOf": [one, other] })
}

/// The types of which both speak: a whole number is a number.
fn common_type(one: &Value, other: &Value) -> Option<Value> {
    let kinds = |it: &Value| match it {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let (ours, theirs) = (kinds(one), kinds(other));
    let whole = |it: &Value| it == "integer";
    let both = ours.iter().filter_map(|it| match it.as_str() {
        _ if theirs.contains(it) => Some(it.clone()),
        Some("number") => theirs.iter().find(|it| whole(it)).cloned(),
        Some("integer") => theirs.iter().any(|it| it == "number").then(|| it.clone()),
        _ => None,
    });
    let both: Vec<Value> = both.collect();
    (!both.is_empty()).then_some(Value::Array(both))
}

/// The narrower of two bounds.
fn narrower(one: &Value, other: &Value, is_least: bool) -> Value {
    let is_further = |(one, other): (f64, f64)| if is_least { other > one } else { other < one };
    let other_holds = one.as_f64().zip(other.as_f64()).is_none_or(is_further);
    if other_holds { other.clone() } else { one.clone() }
}

fn size(schema: &Map<String, Value>, name: &str) -> Option<usize> {
    schema.get(name)?.as_u64().and_then(|it| usize::try_from(it).ok())
}

/// A bound of numbers.
#[derive(Clone, Copy)]
struct Bound {
    at: f64,
    /// Whether the number itself is out of it.
    is_open: bool,
}

/// The bounds below and above. In older schemas `exclusiveMinimum` says of `minimum` that it is one.
fn bounds(schema: &Map<String, Value>) -> [Option<Bound>; 2] {
    [("minimum", "exclusiveMinimum", 1.0), ("maximum", "exclusiveMaximum", -1.0)].map(|(closed, open, sign)| {
        let is_open = schema.get(open) == Some(&Value::Bool(true));
        let closed = schema.get(closed).and_then(Value::as_f64).map(|at| Bound { at, is_open });
        let open = schema.get(open).and_then(Value::as_f64).map(|at| Bound { at, is_open: true });
        match (closed, open) {
            (Some(closed), Some(open)) => Some(if closed.at * sign > open.at * sign { closed } else { open }),
            (closed, open) => closed.or(open),
        }
    })
}

fn step_of(schema: &Map<String, Value>) -> Option<f64> {
    schema.get("multipleOf").and_then(Value::as_f64).filter(|it| *it > 0.0)
}

fn integer(schema: &Map<String, Value>, seed: u64) -> i64 {
    let step = step_of(schema).map_or(1, |it| (it.ceil() as i64).max(1));
    let [low, high] = bounds(schema);
    let low = low.map(|it| (if it.is_open { it.at.floor() + 1.0 } else { it.at.ceil() }) as i64);
    let high = high.map(|it| (if it.is_open { it.at.ceil() - 1.0 } else { it.at.floor() }) as i64);
    // Counted in steps, from the first that fits.
    let low = low.map(|it| it.div_euclid(step) + i64::from(it.rem_euclid(step) > 0));
    let high = high.map(|it| it.div_euclid(step));
    let some = i64::try_from(seed % 100).unwrap_or(0);
    let steps = match (low, high) {
        (Some(low), Some(high)) if low <= high => {
            low.saturating_add(some % high.saturating_sub(low).saturating_add(1).max(1))
        }
        (Some(low), Some(_)) => low,
        (Some(low), None) => low.saturating_add(some),
        (None, Some(high)) => high.saturating_sub(some),
        (None, None) => some,
    };
    steps.saturating_mul(step)
}

/// A whole number where one fits.
fn number(schema: &Map<String, Value>, seed: u64) -> Value {
    let within = |it: f64| {
        let [low, high] = bounds(schema);
        low.is_none_or(|low| it > low.at || (it == low.at && !low.is_open))
            && high.is_none_or(|high| it < high.at || (it == high.at && !high.is_open))
    };
    let step = step_of(schema);
    let whole = integer(schema, seed);
    if within(whole as f64) && step.is_none_or(|it| (whole as f64 / it).fract() == 0.0) {
        return Value::from(whole);
    }
    let [low, high] = bounds(schema).map(|it| it.map(|it| it.at));
    let between = match (step, low, high) {
        (Some(step), Some(low), _) => {
            let first = (low / step).ceil() * step;
            if within(first) { first } else { first + step }
        }
        (Some(step), None, Some(high)) => {
            let last = (high / step).floor() * step;
            if within(last) { last } else { last - step }
        }
        (_, Some(low), Some(high)) => f64::midpoint(low, high),
        (_, low, high) => low.or(high).unwrap_or(0.0),
    };
    Number::from_f64(between).map_or(Value::Null, Value::Number)
}

/// A pattern that is a word.
struct Plain {
    text: String,
    /// Whether a text has to begin, and to end, with it.
    begins: bool,
    ends: bool,
}

/// The word that a pattern is, where it is one.
fn plain(pattern: &str) -> Option<Plain> {
    let (begins, word) = pattern.strip_prefix('^').map_or((false, pattern), |it| (true, it));
    let is_end = word.ends_with('$') && !word.ends_with("\\$");
    let word = if is_end { word.strip_suffix('$')? } else { word };
    let (mut text, mut letters) = (String::new(), word.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().filter(|it| !it.is_alphanumeric())?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => return None,
            plain => text.push(plain),
        }
    }
    Some(Plain { text, begins, ends: is_end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(schema: &Value, seed: u64) -> Value {
        example(schema, seed, |seed| if seed.is_multiple_of(2) { "größer" } else { "\"quotes\"" })
    }

    /// Schemas that refer to others and join them.
    fn composed() -> Vec<Value> {
        let count = json!({ "type": "integer", "minimum": 1, "exclusiveMaximum": 4 });
        let item = json!({
            "type": "object", "required": ["sku", "count"],
            "properties": { "sku": { "pattern": "^AB\\-1$" }, "count": count },
        });
        let order = json!({
            "type": "object", "required": ["items"], "additionalProperties": false,
            "properties": { "items": { "type": "array", "items": { "$ref": "#/$defs/item" }, "minItems": 3 } },
        });
        let all = json!({ "type": "array", "items": { "$ref": "#" } });
        let tree = json!({
            "type": "object", "required": ["name", "all"],
            "properties": { "name": { "type": "string" }, "next": { "$ref": "#" }, "all": all },
        });
        let name = json!({ "type": "string", "minLength": 1 });
        let named = json!({ "type": "object", "properties": { "name": name }, "required": ["name"] });
        let owned = json!({
            "required": ["owner"],
            "properties": { "name": { "maxLength": 3 }, "owner": { "$ref": "#/$defs/named" } },
        });
        let ours = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
        let theirs = json!({ "anyOf": [{ "type": "boolean" }, { "type": "integer", "minimum": 200 }] });
        vec![
            json!({ "$ref": "#/$defs/order", "$defs": { "item": item, "order": order } }),
            json!({
                "definitions": { "a/b": item },
                "properties": { "x": { "$ref": "#/definitions/a~1b" } }, "required": ["x"],
            }),
            tree,
            json!({ "anyOf": [{ "$ref": "#" }, { "type": "integer", "minimum": 7 }] }),
            json!({
                "$defs": { "named": named },
                "allOf": [{ "$ref": "#/$defs/named" }, { "$ref": "#/$defs/named" }, owned],
            }),
            json!({ "allOf": [{ "type": ["integer", "string"], "minimum": 3 }, { "type": "number", "maximum": 4 }] }),
            json!({ "allOf": [{ "enum": ["a", "b", "c"] }, { "enum": ["c", "b"] }] }),
            json!({ "allOf": [ours, theirs] }),
            json!({ "type": "object", "properties": { "a": { "minimum": 1 } }, "oneOf": [{ "required": ["a"] }] }),
        ]
    }

    /// Schemas that bound by themselves.
    fn bounded() -> Vec<Value> {
        let (pair, further) = (json!([{ "type": "string" }, { "type": "boolean" }]), json!({ "type": "integer" }));
        vec![
            json!({ "type": "integer", "minimum": 120 }),
            json!({ "type": "integer", "maximum": -7 }),
            json!({ "type": "integer", "exclusiveMinimum": -1.5, "exclusiveMaximum": 0 }),
            json!({ "type": "integer", "minimum": 101, "multipleOf": 25 }),
            json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
            json!({ "type": "number", "minimum": 0.25, "maximum": 0.25 }),
            json!({ "type": "number", "minimum": 0.3, "multipleOf": 0.5, "maximum": 0.9 }),
            json!({ "type": "string", "minLength": 40, "maxLength": 41 }),
            json!({ "type": "string", "maxLength": 2 }),
            json!({ "type": "string", "maxLength": 0 }),
            json!({ "pattern": "^EUR$" }),
            json!({ "type": "string", "pattern": "EUR", "minLength": 9 }),
            json!({ "type": "string", "pattern": "EUR$", "minLength": 9 }),
            json!({ "type": "array", "minItems": 3 }),
            json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 }),
            json!({ "type": "array", "prefixItems": pair, "items": { "type": "null" }, "minItems": 4 }),
            json!({ "type": "array", "items": { "type": "integer" }, "minItems": 9, "uniqueItems": true }),
            json!({ "type": "object", "minProperties": 3 }),
            json!({ "minProperties": 2, "additionalProperties": further, "properties": { "member1": { "type": "string" } } }),
            json!({ "type": "object", "properties": { "a": {}, "b": {}, "c": {} }, "required": ["c"], "maxProperties": 2 }),
            json!({ "type": "object", "required": ["told", "of"] }),
            json!({ "type": "object", "properties": { "a": false, "b": true, "c": { "const": [1] } } }),
            json!({ "type": ["null", "string"] }),
            json!({}),
            json!(true),
        ]
    }

    /// What is made of a schema satisfies it, as somebody else's validator says.
    #[test]
    fn what_is_made_satisfies_its_schema() {
        for schema in composed().into_iter().chain(bounded()) {
            let validator = jsonschema::validator_for(&schema).unwrap();
            for seed in 0..50 {
                let value = made(&schema, seed);
                assert!(validator.is_valid(&value), "{schema} by {value}");
                assert_eq!(value, made(&schema, seed));
            }
        }
    }

    /// Schemas without end, or with more than anybody reads, come to an end soon; what can be left out is.
    #[test]
    fn every_schema_comes_to_an_end() {
        let endless = json!({ "type": "object", "properties": { "self": { "$ref": "#" } }, "required": ["self"] });
        for schema in [endless, json!({ "$ref": "#" }), json!({ "allOf": [{ "$ref": "#" }] }), json!(false)] {
            assert_eq!(made(&schema, 1), Value::Null, "{schema}");
        }
        let mut defs = Map::new();
        for at in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            let twice = json!({ "allOf": [next, next], "properties": { "a": next, "b": next } });
            defs.insert(format!("d{at}"), twice);
        }
        let wide = json!({ "$ref": "#/$defs/d0", "$defs": defs });
        assert!(made(&wide, 1).to_string().len() < 1 << 20);
        let deep = (0..500).fold(json!({ "type": "string" }), |inner, _| json!({ "allOf": [inner] }));
        assert_eq!(made(&deep, 1), Value::Null);
        let huge = json!({ "type": "array", "minItems": 1_000_000_000, "items": { "type": "null" } });
        assert_eq!(made(&huge, 1).as_array().unwrap().len(), SIZE_MAX);
    }

    /// A pattern that is more than a word is none that is kept to, and no fault.
    #[test]
    fn a_pattern_is_a_word_or_nothing() {
        for pattern in ["^[a-z]+$", "a|b", "\\d", "a$b", "a\\", "(a)"] {
            assert!(plain(pattern).is_none(), "{pattern}");
            assert!(made(&json!({ "pattern": pattern }), 1).is_string());
        }
        let told = |it: &str| plain(it).map(|it| (it.text, it.begins, it.ends));
        assert_eq!(told("^a\\.b\\$"), Some(("a.b$".to_owned(), true, false)));
        assert_eq!(told(""), Some((String::new(), false, false)));
    }
}
