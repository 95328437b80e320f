//! The one writing of a JSON value that is hashed, compared and signed: RFC 8785 (JCS).
//!
//! **Invariant:** equal values have equal texts, whoever wrote them and in whatever order.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::ops::Range;

use super::json::{Json, Number, SAFE_INTEGER_MAX};

/// The RFC 8785 form: members sorted by the UTF-16 code units of their names, numbers as ECMAScript writes them, no
/// space.
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

/// The RFC 8785 form of a text.
#[must_use]
pub fn text(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    write_text(&mut out, value);
    out
}

/// Builds the RFC 8785 form of an object straight from values, without a [`Json`] between.
///
/// Members may be given in any order; each name once. Where they come in their order, nothing is moved any more.
#[derive(Clone, Debug, Default)]
pub struct Object<'name> {
    /// Each member's name, and where it stands in `text`.
    members: Vec<(&'name str, Range<usize>)>,
    /// The members as they came, each behind a comma or the opening brace.
    text: String,
    /// Whether one came out of order.
    unsorted: bool,
}

impl<'name> Object<'name> {
    /// An object without members.
    #[must_use]
    pub fn new() -> Self {
        Self::with_room(512)
    }

    /// The same with room for so many bytes of text, which grows where they are not enough.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self { members: Vec::with_capacity(16), text: String::with_capacity(bytes), unsorted: false }
    }

    /// With a text.
    #[must_use]
    pub fn text(self, name: &'name str, value: &str) -> Self {
        self.member(name, |out| write_text(out, value))
    }

    /// With a text that needs no escape, such as an id, an instant or a digest: written where it stands.
    #[must_use]
    pub fn plain(self, name: &'name str, value: impl fmt::Display) -> Self {
        self.member(name, |out| {
            let from = out.len();
            let _ = write!(out, "\"{value}\"");
            debug_assert!(
                out.bytes().skip(from + 1).filter(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')).count() == 1,
                "a text needs an escape"
            );
        })
    }

    /// With an integer. One beyond ±[`SAFE_INTEGER_MAX`] is written as that bound: as it stands, no reader would get the same
    /// text from it again.
    #[must_use]
    pub fn int(self, name: &'name str, value: i64) -> Self {
        self.member(name, |out| write_int(out, value.clamp(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX)))
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
        if self.members.is_empty() {
            return "{}".to_owned();
        }
        if !self.unsorted {
            self.text.push('}');
            return self.text;
        }
        self.members.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
        debug_assert!(
            !self.members.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a == b)),
            "a name was given twice"
        );
        let mut out = String::with_capacity(self.text.len() + 1);
        for (place, (_, range)) in self.members.iter().enumerate() {
            out.push(if place == 0 { '{' } else { ',' });
            out.push_str(self.text.get(range.clone()).unwrap_or_default());
        }
        out.push('}');
        out
    }

    fn member(mut self, name: &'name str, write: impl FnOnce(&mut String)) -> Self {
        let last = self.members.last().map(|(last, _)| *last);
        self.unsorted |= last.is_some_and(|last| by_utf16(last, name) != Ordering::Less);
        self.text.push(if last.is_none() { '{' } else { ',' });
        let from = self.text.len();
        write_text(&mut self.text, name);
        self.text.push(':');
        write(&mut self.text);
        self.members.push((name, from..self.text.len()));
        self
    }
}

/// A canonical object with one more member, or with one replaced. `path` is dotted: every part before the last names an
/// object, made where there is none. Names are those of svc's own records: without a dot and without an escape.
#[must_use]
pub fn with_member(object: &str, path: &str, canonical: &str) -> String {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let members = members(object);
    let inner = members.iter().find(|(it, _)| *it == name).map_or("{}", |(_, value)| value);
    let value = match rest {
        Some(rest) => with_member(inner, rest, canonical),
        None => canonical.to_owned(),
    };
    let others = members.iter().filter(|(it, _)| *it != name);
    others.fold(Object::new(), |object, (name, value)| object.raw(name, value)).raw(name, &value).finish()
}

/// The members of a canonical object, as written: names between their quotes, values whole.
fn members(object: &str) -> Vec<(&str, &str)> {
    let (mut out, mut from, mut colon) = (Vec::new(), 1, None);
    let (mut depth, mut text, mut escaped) = (0_usize, false, false);
    for (at, byte) in object.bytes().enumerate() {
        if text {
            (text, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            continue;
        }
        let ends = depth == 1 && matches!(byte, b',' | b'}');
        match byte {
            b'"' => text = true,
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 1 => colon = colon.or(Some(at)),
            _ => {}
        }
        if ends && let Some(middle) = colon.take() {
            let name = object.get(from..middle).and_then(|it| it.strip_prefix('"')?.strip_suffix('"'));
            out.extend(name.zip(object.get(middle.saturating_add(1)..at)));
            from = at.saturating_add(1);
        }
    }
    out
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
        Number::Float(value) | Number::Huge(value) => write_double(out, value.get()),
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
pub(crate) fn write_text(out: &mut String, text: &str) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::super::json::Finite;
    use super::super::json::tests::any_json;
    use super::*;

    fn form(text: &str) -> String {
        canonical(&Json::parse(text.as_bytes()).unwrap())
    }

    fn vectors(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    fn text_of<'a>(json: &'a Json, name: &str) -> &'a str {
        json.get(name).and_then(Json::as_str).unwrap()
    }

    /// The published examples of RFC 8785 come out byte for byte, and names in the order that it prints.
    #[test]
    fn the_examples_of_rfc_8785_come_out() {
        let file = vectors(include_str!("../../testdata/rfc8785_jcs.json"));
        let mut seen = 0;
        for case in file.get("cases").and_then(Json::as_list).unwrap() {
            let out = form(text_of(case, "inputText"));
            if let Some(expected) = case.get("canonical").and_then(Json::as_str) {
                assert_eq!(out, expected, "{}", text_of(case, "name"));
                seen += 1;
            }
            if let Some(order) = case.get("expectedKeyOrder").and_then(Json::as_list) {
                let Json::Object(members) = Json::parse(out.as_bytes()).unwrap() else { panic!("no object") };
                let names: Vec<String> = members.into_iter().map(|(name, _)| name).collect();
                let order: Vec<String> = order
                    .iter()
                    .map(|it| {
                        Json::parse(format!("\"{}\"", it.as_str().unwrap()).as_bytes())
                            .unwrap()
                            .as_str()
                            .unwrap()
                            .to_owned()
                    })
                    .collect();
                assert_eq!(names, order);
                seen += 1;
            }
        }
        assert_eq!(seen, 2);
    }

    /// Every vector of another project's cross-language suite comes out byte for byte.
    #[test]
    fn the_vectors_of_a_cross_language_suite_come_out() {
        let file = vectors(include_str!("../../testdata/obsigna_canonicalization.json"));
        let cases = file.get("canonicalization_vectors").and_then(Json::as_list).unwrap();
        for case in cases {
            assert_eq!(canonical(case.get("input").unwrap()), text_of(case, "canonical"), "{}", text_of(case, "name"));
        }
        assert_eq!(cases.len(), 32);
    }

    /// The doubles of RFC 8785, appendix B, are written as it writes them.
    #[test]
    fn doubles_are_written_as_in_appendix_b() {
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let value = Finite::new(f64::from_bits(bits)).unwrap();
            assert_eq!(canonical(&Json::Number(Number::Float(value))), text, "{bits:016x}");
        }
    }

    /// Integers beyond a double's reach are written as the double nearest to them, whatever they were held as.
    #[test]
    fn large_integers_are_written_as_doubles() {
        for (sent, text) in [
            ("9007199254740993", "9007199254740992"),
            ("9223372036854775807", "9223372036854776000"),
            ("-9223372036854775808", "-9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("-0", "0"),
            ("1E2", "100"),
        ] {
            assert_eq!(form(sent), text);
        }
    }

    /// Only the object's own member is left out, not one of the same name further inside.
    #[test]
    fn one_member_can_be_left_out() {
        let json = vectors(r#"{"b":{"key":1},"key":"k","a":[{"key":2}]}"#);
        assert_eq!(canonical_without(&json, "key"), r#"{"a":[{"key":2}],"b":{"key":1}}"#);
        assert_eq!(canonical_without(&json, "none"), canonical(&json));
        assert_eq!(canonical_without(&vectors("[1]"), "key"), "[1]");
    }

    /// The builder writes what the parsed object would be written as.
    #[test]
    fn an_object_can_be_built_without_parsing() {
        let inner = Object::new().int("minor", -5).finish();
        let built = Object::new()
            .text("type", "payment")
            .text("summary", "a \"quote\"\n\u{1}€")
            .raw("payment", &inner)
            .int("at", SAFE)
            .bool("late", false)
            .json("details", &vectors(r#"{"z":1,"a":2.50}"#))
            .text("\u{1f389}", "x")
            .text("\u{e000}", "y")
            .finish();
        assert_eq!(
            built,
            concat!(
                r#"{"at":9007199254740991,"details":{"a":2.5,"z":1},"late":false,"payment":{"minor":-5},"#,
                r#""summary":"a \"quote\"\n\u0001€","type":"payment",""#,
                "\u{1f389}\":\"x\",\"\u{e000}\":\"y\"}"
            )
        );
        assert_eq!(form(&built), built);
        assert_eq!(Object::new().finish(), "{}");
    }

    /// What the builder writes is its own canonical form whatever integer it was given.
    #[test]
    fn an_integer_beyond_the_bound_is_the_bound() {
        for (value, text) in [(SAFE + 2, SAFE), (i64::MAX, SAFE), (-SAFE - 2, -SAFE), (i64::MIN, -SAFE)] {
            let built = Object::new().int("at", value).finish();
            assert_eq!(built, format!(r#"{{"at":{text}}}"#));
            assert_eq!(form(&built), built);
        }
    }

    /// A member finds its place whatever the others hold, and replaces one of its name.
    #[test]
    fn a_member_can_be_put_into_a_finished_object() {
        let object = r#"{"a":{"b":[1,{"c":"}\","}],"k":"x:y"},"t":"\\","z":null}"#;
        assert_eq!(with_member("{}", "m", "1"), r#"{"m":1}"#);
        assert_eq!(
            with_member(object, "m", "[1,2]"),
            r#"{"a":{"b":[1,{"c":"}\","}],"k":"x:y"},"m":[1,2],"t":"\\","z":null}"#
        );
        assert_eq!(with_member(object, "a", "0"), r#"{"a":0,"t":"\\","z":null}"#);
        assert_eq!(with_member(r#"{"a":{"b":1}}"#, "a.c", "2"), r#"{"a":{"b":1,"c":2}}"#);
        assert_eq!(with_member("{}", "a.b", "2"), r#"{"a":{"b":2}}"#);
    }
    const SAFE: i64 = SAFE_INTEGER_MAX;

    proptest! {
        /// The canonical form is JSON, is its own canonical form, and does not depend on the order of members.
        #[test]
        fn the_form_is_one(json in any_json()) {
            let text = canonical(&json);
            let again = Json::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(&canonical(&again), &text);
            prop_assert_eq!(canonical(&reversed(json)), text);
        }
    }

    fn reversed(json: Json) -> Json {
        match json {
            Json::Object(members) => {
                Json::Object(members.into_iter().rev().map(|(name, value)| (name, reversed(value))).collect())
            }
            Json::List(items) => Json::List(items.into_iter().map(reversed).collect()),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => json,
        }
    }
}
