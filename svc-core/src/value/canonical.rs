//! The one writing of a JSON value that is hashed, compared and signed: RFC 8785 (JCS).
//!
//! **Invariant:** equal values have equal texts, whoever wrote them and in whatever order.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::ops::Range;

use super::json::{Json, Number};

/// The RFC 8785 form: members sorted by the UTF-16 code units of their names, numbers as ECMAScript writes them, no space.
#[must_use]
pub fn canonical(json: &Json) -> String {
    let mut out = String::with_capacity(256);
    write_value(&mut out, json);
    out
}

/// The RFC 8785 form of `json` without one of its own members; members of that name further inside stay.
#[must_use]
pub fn canonical_without(json: &Json, top_level_member: &str) -> String {
    let mut out = String::with_capacity(256);
    match json {
        Json::Object(members) => write_object(&mut out, members.iter().filter(|(name, _)| name != top_level_member)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => write_value(&mut out, json),
    }
    out
}

/// Builds the RFC 8785 form of an object straight from values, without a [`Json`] between.
///
/// Members may be given in any order; each name once.
#[derive(Clone, Debug, Default)]
pub struct Object<'name> {
    members: Vec<(&'name str, Range<usize>)>,
    values: String,
}

impl<'name> Object<'name> {
    /// An object without members.
    #[must_use]
    pub fn new() -> Self {
        Self { members: Vec::with_capacity(12), values: String::with_capacity(256) }
    }

    /// With a text.
    #[must_use]
    pub fn text(self, name: &'name str, value: &str) -> Self {
        self.member(name, |out| write_text(out, value))
    }

    /// With an integer.
    #[must_use]
    pub fn int(self, name: &'name str, value: i64) -> Self {
        self.member(name, |out| write_int(out, value))
    }

    /// With a truth value.
    #[must_use]
    pub fn bool(self, name: &'name str, value: bool) -> Self {
        self.member(name, |out| out.push_str(if value { "true" } else { "false" }))
    }

    /// With a value that is in canonical form already, such as a finished [`Object`].
    #[must_use]
    pub fn raw(self, name: &'name str, canonical: &str) -> Self {
        self.member(name, |out| out.push_str(canonical))
    }

    /// With a parsed value.
    #[must_use]
    pub fn json(self, name: &'name str, value: &Json) -> Self {
        self.member(name, |out| write_value(out, value))
    }

    /// The object's canonical text.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.members.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
        debug_assert!(
            !self.members.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a == b)),
            "a name was given twice"
        );
        let names: usize = self.members.iter().map(|(name, _)| name.len() + 4).sum();
        let mut out = String::with_capacity(self.values.len() + names + 2);
        out.push('{');
        for (place, (name, range)) in self.members.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            write_text(&mut out, name);
            out.push(':');
            out.push_str(self.values.get(range.clone()).unwrap_or_default());
        }
        out.push('}');
        out
    }

    fn member(mut self, name: &'name str, write: impl FnOnce(&mut String)) -> Self {
        let from = self.values.len();
        write(&mut self.values);
        self.members.push((name, from..self.values.len()));
        self
    }
}

fn write_value(out: &mut String, json: &Json) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => write_number(out, *number),
        Json::Text(text) => write_text(out, text),
        Json::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Json::Object(members) => write_object(out, members.iter()),
    }
}

fn write_object<'a>(out: &mut String, members: impl Iterator<Item = &'a (String, Json)>) {
    let mut sorted: Vec<&(String, Json)> = members.collect();
    sorted.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
    out.push('{');
    for (place, (name, value)) in sorted.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_text(out, name);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

/// The order of names (RFC 8785, 3.2.3). Bytes of UTF-8 order differently only above U+FFFF.
fn by_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// A number as ECMAScript writes the double that it is (RFC 8785, 3.2.2.3).
fn write_number(out: &mut String, number: Number) {
    match number {
        Number::Int(value) if number.is_safe() => write_int(out, value),
        Number::Int(value) => write_double(out, int_to_double(value)),
        Number::Big(value) => write_double(out, big_to_double(value)),
        Number::Float(value) => write_double(out, value.get()),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "RFC 8785 numbers are doubles: an integer beyond them is the nearest one"
)]
const fn int_to_double(value: i64) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "RFC 8785 numbers are doubles: an integer beyond them is the nearest one"
)]
const fn big_to_double(value: u64) -> f64 {
    value as f64
}

fn write_double(out: &mut String, value: f64) {
    out.push_str(ryu_js::Buffer::new().format_finite(value));
}

fn write_int(out: &mut String, value: i64) {
    // Writing into a string cannot fail.
    let _ = write!(out, "{value}");
}

/// A string with the shortest escapes (RFC 8785, 3.2.2.2); text that needs none is copied in runs.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut tail = tail.chars();
        match tail.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(control) => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            None => {}
        }
        rest = tail.as_str();
    }
    out.push_str(rest);
    out.push('"');
}
