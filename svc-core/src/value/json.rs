//! JSON as it came in: read once, strictly, with members in the order in which they were sent.
//!
//! **Invariant:** two readers of a [`Json`] cannot disagree about it: no name stands twice, no text is half a
//! character, and a number that they could take for another [says so](Number::is_out_of_range).

use std::fmt;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

pub use super::malformed::Malformed;
pub use super::number::{Finite, Number, SAFE_INTEGER_MAX, has_exact_numbers};
use super::number::{literals, within_doubles};

/// How many lists and objects may lie in one another (CONTRACT part 1, "JSON").
pub const DEPTH_MAX: usize = 64;
/// Up to so many members, comparing every pair is cheaper than sorting.
const PAIRWISE_MAX: usize = 12;
/// So many characters of a caller's own text stand in a message.
const QUOTED_MAX: usize = 64;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object: its members in the order sent, every name once.
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Reads one JSON text.
    ///
    /// # Errors
    /// [`Malformed`] for anything that RFC 8259 does not allow, and for invalid UTF-8, a byte order mark, a member name
    /// that stands twice in one object (compared after unescaping), more than [`DEPTH_MAX`] levels, half a surrogate
    /// pair, and anything behind the value.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes)
            .map_err(|fault| Malformed::new(format!("is not UTF-8 from byte {} on", fault.valid_up_to())))?;
        if text.trim_ascii().is_empty() {
            return Err(Malformed::new("is empty"));
        }
        let mut json = read(text).or_else(|why| within_doubles(text).map_or(Err(why), |it| read(&it)))?;
        if json.has(&|it| it.may_be_literal()) {
            mark(&mut json, text, &mut literals(text));
        }
        Ok(json)
    }

    /// The member of this name, where this is an object that has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.iter().find(|(it, _)| it == name).map(|(_, value)| value)
    }

    /// The text, where this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The truth value, where this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Null | Self::Number(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The integer, where this was written as one (`1.0` and `1e3` were not) and is within ±[`SAFE_INTEGER_MAX`].
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Number(Number::Int(value)) if value.unsigned_abs() <= SAFE_INTEGER_MAX.unsigned_abs() => Some(*value),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The items, where this is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Object(_) => None,
        }
    }

    /// The members in the order sent, where this is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether a number anywhere in it is beyond ±[`SAFE_INTEGER_MAX`], where doubles leave integers out.
    ///
    /// How the number was written does not matter: beyond that bound `10000000000000000` and `1e16` are the same
    /// integer, and one that readers round differently.
    #[must_use]
    pub fn has_unsafe_number(&self) -> bool {
        self.has(&|it| !it.is_safe())
    }

    /// Whether an integer anywhere in it is beyond ±[`SAFE_INTEGER_MAX`], or any number beyond all doubles. What was written with a
    /// fraction or an exponent is no integer (CONTRACT part 1, "Integers").
    #[must_use]
    pub fn has_out_of_range(&self) -> bool {
        self.has(&|it| it.is_out_of_range())
    }

    /// Whether a number anywhere in it is one of these.
    fn has(&self, one: &impl Fn(Number) -> bool) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Text(_) => false,
            Self::Number(number) => one(*number),
            Self::List(items) => items.iter().any(|it| it.has(one)),
            Self::Object(members) => members.iter().any(|(_, value)| value.has(one)),
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Number(Number::Int(value)) => to.serialize_i64(*value),
            Self::Number(Number::Big(value)) => to.serialize_u64(*value),
            Self::Number(Number::Float(value) | Number::Huge(value)) => to.serialize_f64(value.get()),
            Self::Text(text) => to.serialize_str(text),
            Self::List(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Object(members) => {
                let mut object = to.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    object.serialize_entry(name, value)?;
                }
                object.end()
            }
        }
    }
}

impl<'de> serde::Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Level(DEPTH_MAX).deserialize(from)
    }
}

/// Reads one value in which so many levels of lists and objects may still open.
#[derive(Clone, Copy)]
struct Level(usize);

impl Level {
    fn inner<E: de::Error>(self) -> Result<Self, E> {
        self.0
            .checked_sub(1)
            .map(Self)
            .ok_or_else(|| E::custom(format_args!("is nested deeper than {DEPTH_MAX} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(Number::Int(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(i64::try_from(value).map_or(Number::Big(value), Number::Int)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Json, E> {
        let finite = Finite::new(value).ok_or_else(|| E::custom("holds a number out of range"))?;
        Ok(Json::Number(Number::Float(finite)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let inner = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let inner = self.inner()?;
        let mut members: Vec<(String, Json)> = Vec::new();
        while let Some(name) = object.next_key::<String>()? {
            members.push((name, object.next_value_seed(inner)?));
        }
        match repeated(&members) {
            Some(name) => Err(de::Error::custom(format_args!("holds the member name `{}` twice", Quoted(name)))),
            None => Ok(Json::Object(members)),
        }
    }
}

/// Reads one text.
fn read(text: &str) -> Result<Json, Malformed> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let json = Level(DEPTH_MAX).deserialize(&mut reader).map_err(Malformed::from_reader)?;
    reader.end().map_err(Malformed::from_reader)?;
    Ok(json)
}

/// Looks at how each number was written.
fn mark(json: &mut Json, text: &str, literals: &mut impl Iterator<Item = Range<usize>>) {
    match json {
        Json::Null | Json::Bool(_) | Json::Text(_) => {}
        Json::Number(number) => {
            if let Some(literal) = literals.next().and_then(|it| text.get(it)) {
                *number = number.as_written(literal);
            }
        }
        Json::List(items) => items.iter_mut().for_each(|it| mark(it, text, literals)),
        Json::Object(members) => members.iter_mut().for_each(|(_, it)| mark(it, text, literals)),
    }
}

/// A name that stands twice. Sorting, not hashing: no choice of names makes it slow, and it needs no random seed.
pub(crate) fn repeated(members: &[(String, Json)]) -> Option<&str> {
    if members.len() <= PAIRWISE_MAX {
        let mut rest = members;
        while let [(name, _), tail @ ..] = rest {
            if tail.iter().any(|(it, _)| it == name) {
                return Some(name);
            }
            rest = tail;
        }
        return None;
    }
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(*a),
        _ => None,
    })
}

/// A caller's text, cut to what a message can bear, with what does not show written as escapes.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_MAX) {
            Some((cut, _)) => write!(out, "{}…", self.0.get(..cut).unwrap_or_default().escape_debug()),
            None => write!(out, "{}", self.0.escape_debug()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::super::canonical::canonical;
    use super::*;

    fn read(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    /// Any value that can come off the wire.
    pub(in crate::value) fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            any::<i64>().prop_map(|it| Json::Number(Number::Int(it))),
            (i64::MAX.unsigned_abs() + 1..=u64::MAX).prop_map(|it| Json::Number(Number::Big(it))),
            any::<f64>().prop_filter_map("finite", |it| Finite::new(it).map(|it| Json::Number(Number::Float(it)))),
            any::<String>().prop_map(Json::Text),
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::List),
                prop::collection::btree_map(any::<String>(), inner, 0..20)
                    .prop_map(|it| Json::Object(it.into_iter().collect())),
            ]
        })
    }

    /// Members stay in the order sent, escapes are undone, and helpers find what is there and nothing else.
    #[test]
    fn values_are_read_as_sent() {
        let json = read(r#" {"b":[1,"\u20ac\ud83d\ude02\/",null,true],"a":{"":-0.5}} "#);
        let names: Vec<&str> = json.as_object().unwrap().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let items = json.get("b").and_then(Json::as_list).unwrap();
        assert_eq!(items.iter().filter_map(Json::as_int).collect::<Vec<_>>(), [1]);
        assert_eq!(items.iter().filter_map(Json::as_str).collect::<Vec<_>>(), ["€😂/"]);
        assert_eq!(items.iter().filter_map(Json::as_bool).collect::<Vec<_>>(), [true]);
        assert_eq!(items.iter().filter(|it| it.is_null()).count(), 1);
        assert_eq!(
            json.get("a").and_then(|it| it.get("")),
            Some(&Json::Number(Number::Float(Finite::new(-0.5).unwrap())))
        );
        assert_eq!(json.get("c"), None);
        assert_eq!(items.first().unwrap().get("b"), None);
    }

    /// Everything that two readers could take differently, and everything that is not JSON, is refused.
    #[test]
    fn what_is_not_one_json_value_is_refused() {
        for bad in [
            "",
            " ",
            "{",
            "[",
            "nul",
            "{\"a\"}",
            "{a:1}",
            "{'a':1}",
            "[1,]",
            "{\"a\":1,}",
            "[1]x",
            "{} {}",
            "01",
            "+1",
            ".5",
            "1.",
            "1e",
            "0x10",
            "NaN",
            "Infinity",
            "-",
            "01e400",
            "1e400.5",
            "--1e400",
            "[1e400,]",
            "{\"a\":1e400,\"a\":1}",
            "\"\n\"",
            "\"\0\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\u{feff}{}",
            "/**/{}",
            "{\"a\":1,\"a\":1}",
            "{\"a\":1,\"\\u0061\":2}",
            "[{\"a\":{\"b\":1,\"b\":1}}]",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800x\"",
            "\"\\ud83d\\ud83d\"",
            "{\"\\ud800\":1}",
        ] {
            assert!(Json::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for bad in [
            &b"\"\xff\""[..],
            b"\"\xed\xa0\x80\"",
            b"{\"\xc3\":1}",
            b"\"\xc0\x80\"",
            b"\xef\xbb\xbf{}",
            b"\xff\xfe{\0}\0",
        ] {
            assert!(Json::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// The reason names what is wrong, with the caller's own text cut to a length that a message can bear.
    #[test]
    fn the_reason_is_told() {
        let reason = |text: &str| Json::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(reason("{\"amount\":1,\"amount\":2}").contains("holds the member name `amount` twice"));
        assert!(reason(&"[".repeat(100)).contains("is nested deeper than 64 levels"));
        assert!(reason("{").starts_with("is not JSON: EOF"));
        assert_eq!((reason(""), reason(" \n")), ("is empty".to_owned(), "is empty".to_owned()));
        assert!(reason("{\"a\\nb\":1,\"a\\nb\":2}").contains(r"`a\nb`"));
        let long = "n".repeat(10_000);
        assert!(reason(&format!("{{\"{long}\":1,\"{long}\":2}}")).len() < 200);
    }

    /// A name that stands twice is found among few members and among many, at either end.
    #[test]
    fn a_repeated_name_is_found_among_many() {
        for count in [2, 12, 13, 14, 500] {
            let members: Vec<String> = (0..count).map(|it| format!("\"n{it}\":{it}")).collect();
            let good = format!("{{{}}}", members.join(","));
            assert_eq!(read(&good).as_object().unwrap().len(), count);
            for twice in [0, count - 1] {
                assert!(
                    Json::parse(format!("{{{},\"n{twice}\":0}}", members.join(",")).as_bytes()).is_err(),
                    "{twice} of {count}"
                );
            }
        }
    }

    /// Sixty-four levels are read, one more is not, and ten thousand harm nobody; objects count like lists.
    #[test]
    fn depth_is_bounded() {
        let lists = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for nest in [lists, objects] {
            assert!(Json::parse(nest(64).as_bytes()).is_ok());
            assert!(Json::parse(nest(65).as_bytes()).is_err());
            assert!(Json::parse(nest(10_000).as_bytes()).is_err());
        }
    }

    /// Only what was written as an integer is one, and only where every reader gets it right.
    #[test]
    fn integers_are_what_was_written_as_integers() {
        for (text, int) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9007199254740991", Some(SAFE_INTEGER_MAX)),
            ("-9007199254740991", Some(-SAFE_INTEGER_MAX)),
            ("9007199254740992", None),
            ("-9007199254740992", None),
            ("9223372036854775808", None),
            ("-9223372036854775808", None),
            ("18446744073709551616", None),
            ("1.0", None),
            ("1.5", None),
            ("1e3", None),
            ("\"100\"", None),
            ("true", None),
            ("null", None),
        ] {
            assert_eq!(read(text).as_int(), int, "{text}");
        }
    }

    /// An unsafe number is found however deep it lies and however it was written.
    #[test]
    fn unsafe_numbers_are_found_anywhere() {
        for text in
            ["9007199254740992", "-9007199254740992", "18446744073709551615", "1e16", "-1e300", "100000000000000000000"]
        {
            assert!(read(text).has_unsafe_number(), "{text}");
            assert!(read(&format!("{{\"a\":[0,{{\"b\":{text}}}]}}")).has_unsafe_number(), "{text}");
        }
        for text in
            ["9007199254740991", "-9007199254740991", "0.1", "1e15", "5e-324", "\"9007199254740992\"", "null", "[true]"]
        {
            assert!(!read(text).has_unsafe_number(), "{text}");
        }
    }

    /// What was written with a fraction or an exponent is no integer; one of digits is, however long it is and whatever stands beside
    /// it.
    #[test]
    fn unsafe_integers_are_those_written_as_integers() {
        let long = "9".repeat(300);
        for text in
            ["9007199254740992", "-18446744073709551616", "18446744073709551615", "100000000000000000000", &long]
        {
            assert!(read(text).has_out_of_range(), "{text}");
            let beside = format!(r#"{{"1\"2":[1e30,"3\\",{{"b":-2.5E+21}}],"c":[{text}],"d":1e99}}"#);
            let json = read(&beside);
            assert!(json.get("c").unwrap().has_out_of_range(), "{beside}");
            assert!(!json.get("d").unwrap().has_out_of_range() && !json.as_object().unwrap()[0].1.has_out_of_range());
        }
        for text in ["1e16", "-1e300", "9007199254740993.0", "1E30", "[1e20,333333333.33333329]"] {
            assert!(!read(text).has_out_of_range(), "{text}");
        }
        assert_eq!(canonical(&read("100000000000000000000")), canonical(&read("1e20")));
    }

    /// The integer `-0` is 0, wherever it stands and whatever else is said; one with a fraction or an exponent is no integer.
    #[test]
    fn zero_below_zero_is_zero() {
        for text in ["-0", "[-0]", r#"{"a":[1,-0],"b":"-0"}"#, "[-0,9223372036854775808]", "[99999999999999999999,-0]"]
        {
            let json = read(text);
            let zero = |it: &Number| matches!(it, Number::Int(0));
            assert!(json.has(&|it| zero(&it)), "{text}: {json:?}");
            assert!(!json.has(&|it| matches!(it, Number::Float(_))), "{text}: {json:?}");
        }
        assert_eq!(read("-0").as_int(), Some(0));
        assert_eq!(read("[-0,9223372036854775808]").as_list().unwrap()[0].as_int(), Some(0));
        for text in ["-0.0", "-0e0", "-0E1"] {
            assert_eq!(read(text).as_int(), None, "{text}");
            assert!(!read(&format!("[{text},1e400]")).as_list().unwrap()[0].has_out_of_range(), "{text}");
        }
    }

    /// A number beyond all doubles is JSON, however it is written, and says that no reader gets it right; it is written as the double
    /// that is nearest to it, and nothing beside it is touched.
    #[test]
    fn numbers_beyond_all_doubles_are_told() {
        let (digits, largest) = ("9".repeat(400), "1.7976931348623157e+308");
        for text in ["1e400", "1E+400", "0.1e00401", "12345e99999999999999999999", &digits, &format!("{digits}.5")] {
            for (sign, text) in [("", text.to_owned()), ("-", format!("-{text}"))] {
                let json = read(&text);
                assert!(json.has_out_of_range() && json.has_unsafe_number() && json.as_int().is_none(), "{text}");
                assert_eq!(canonical(&json), format!("{sign}{largest}"), "{text}");
                let beside =
                    read(&format!(r#"{{"é":"1e400 \\\" 1e400","a":[1e300,{text},-2.5,9007199254740993],"b":0}}"#));
                let items = beside.get("a").and_then(Json::as_list).unwrap();
                let told: Vec<bool> = items.iter().map(Json::has_out_of_range).collect();
                assert_eq!(told, [false, true, false, true], "{text}");
                assert_eq!(canonical(&items[0]), "1e+300");
                assert_eq!(beside.get("é").and_then(Json::as_str), Some("1e400 \\\" 1e400"));
                assert_eq!(beside.get("b").and_then(Json::as_int), Some(0));
            }
        }
        for text in ["1e-400", "1.7976931348623157e308", "0e400"] {
            assert!(!read(text).has_out_of_range(), "{text}");
        }
    }

    proptest! {
        /// Any value survives its text, in storage too, where it is checked again.
        #[test]
        fn a_value_survives_its_text(json in any_json()) {
            let text = serde_json::to_string(&json).unwrap();
            prop_assert_eq!(&Json::parse(text.as_bytes()).unwrap(), &json);
            prop_assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), json);
        }

        /// No bytes make the reader panic; what it takes, a lenient reader takes too.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if Json::parse(&bytes).is_ok() {
                prop_assert!(serde_json::from_slice::<de::IgnoredAny>(&bytes).is_ok());
            }
        }

        /// The same for texts made of the pieces that JSON is made of.
        #[test]
        fn any_pieces_are_read_or_refused(text in r#"([\[\]{}:,"\\]|\\u[dD][89cC]00|"a"|null|-?[0-9.eE+]{1,6}| ){0,24}"#) {
            if Json::parse(text.as_bytes()).is_ok() {
                prop_assert!(serde_json::from_str::<de::IgnoredAny>(&text).is_ok());
            }
        }
    }
}
