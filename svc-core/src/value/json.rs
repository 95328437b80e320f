//! JSON as it came in: read once, strictly, with members in the order in which they were sent.
//!
//! **Invariant:** two readers of a [`Json`] cannot disagree about it: no name stands twice, no text is half a character,
//! no number is one that a double cannot hold at all.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// How many lists and objects may lie in one another (CONTRACT part 1, "JSON").
pub const DEPTH_MAX: usize = 64;
/// The largest magnitude that an integer on the wire may have: 2^53 − 1, the last that every JSON reader gets right.
pub const SAFE_INTEGER_MAX: i64 = (1 << 53) - 1;
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

/// A JSON number, in the narrowest form that keeps it as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// An integer literal that fits.
    Int(i64),
    /// An integer literal above `i64::MAX`.
    Big(u64),
    /// A literal with a fraction or an exponent, or an integer beyond both of the others.
    Float(Finite),
}

/// A double that is neither infinite nor NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finite(f64);

/// Why bytes are not JSON: one clause for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl Json {
    /// Reads one JSON text.
    ///
    /// # Errors
    /// [`Malformed`] for anything that RFC 8259 does not allow, and for invalid UTF-8, a byte order mark, a member name
    /// that stands twice in one object (compared after unescaping), more than [`DEPTH_MAX`] levels, half a surrogate
    /// pair, a number outside the range of a double, and anything behind the value.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes)
            .map_err(|fault| Malformed(format!("is not UTF-8 from byte {} on", fault.valid_up_to())))?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let json = Level(DEPTH_MAX).deserialize(&mut reader).map_err(Malformed::from_reader)?;
        reader.end().map_err(Malformed::from_reader)?;
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
    /// How the number was written does not matter: beyond that bound `10000000000000000` and `1e16` are the same integer,
    /// and one that readers round differently.
    #[must_use]
    pub fn has_unsafe_number(&self) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Text(_) => false,
            Self::Number(number) => !number.is_safe(),
            Self::List(items) => items.iter().any(Self::has_unsafe_number),
            Self::Object(members) => members.iter().any(|(_, value)| value.has_unsafe_number()),
        }
    }
}

impl Number {
    /// Whether it lies within ±[`SAFE_INTEGER_MAX`].
    #[must_use]
    pub fn is_safe(self) -> bool {
        const BOUND: f64 = 9_007_199_254_740_991.0;
        match self {
            Self::Int(value) => value.unsigned_abs() <= SAFE_INTEGER_MAX.unsigned_abs(),
            Self::Big(_) => false,
            Self::Float(value) => value.0.abs() <= BOUND,
        }
    }
}

impl Finite {
    /// The double, unless it is infinite or NaN.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The double.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A finite double equals itself.
impl Eq for Finite {}

impl Malformed {
    fn from_reader(fault: serde_json::Error) -> Self {
        Self(fault.to_string())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Number(Number::Int(value)) => to.serialize_i64(*value),
            Self::Number(Number::Big(value)) => to.serialize_u64(*value),
            Self::Number(Number::Float(value)) => to.serialize_f64(value.0),
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

/// A name that stands twice. Sorting, not hashing: no choice of names makes it slow, and it needs no random seed.
fn repeated(members: &[(String, Json)]) -> Option<&str> {
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

/// A caller's text, cut to what a message can bear.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_MAX) {
            Some((cut, _)) => write!(out, "{}…", self.0.get(..cut).unwrap_or_default()),
            None => out.write_str(self.0),
        }
    }
}
