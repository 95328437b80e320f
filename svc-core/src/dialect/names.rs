//! Ids of calls and names of tools: told in the letters and at the length that the other shape admits, and told back as they were.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::doc::Value;
use crate::value::digest::Digest;

/// Characters of the longest name of a tool that every provider of the chat shape takes; the messages shape has twice as many.
const TOOL_CHARS: usize = 64;
/// Characters of a digest that stand at the end of a shortened name.
const DIGEST_CHARS: usize = 16;
/// What an id begins with that is packed into the letters of the messages shape.
const PACKED: &str = "call_b64_";

/// The id of a call in the letters that the messages shape has for one; one with others is packed into them, so that the provider
/// that gave it can be given it again.
pub(super) fn packed(id: &str) -> Cow<'_, str> {
    let is_admitted = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-');
    if !id.is_empty() && id.bytes().all(is_admitted) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(format!("{PACKED}{}", URL_SAFE_NO_PAD.encode(id)))
    }
}

/// The ids of a conversation's calls, told so that each stands for one call. Some providers give calls no ids, or the same ones in
/// every turn; the messages shape refuses a conversation in which one comes twice.
#[derive(Debug, Default)]
pub(super) struct CallIds(BTreeMap<String, Uses>);

/// The calls of one id.
#[derive(Debug, Default)]
struct Uses {
    /// How many there were.
    count: u32,
    /// How many of them belong to turns that are over, or have their results.
    answered: u32,
}

impl CallIds {
    /// A turn with calls begins: results behind it are of no calls before it.
    pub(super) fn turn(&mut self) {
        self.0.values_mut().for_each(|it| it.answered = it.count);
    }

    /// Of a call with this id.
    pub(super) fn call(&mut self, id: &str) -> String {
        let uses = self.0.entry(id.to_owned()).or_default();
        uses.count = uses.count.saturating_add(1);
        numbered(id, uses.count)
    }

    /// Of the result of a call with this id: of the turn's calls with it the first that has none, else the last.
    pub(super) fn result(&mut self, id: &str) -> String {
        let uses = self.0.entry(id.to_owned()).or_default();
        uses.answered = uses.answered.saturating_add(1).min(uses.count);
        numbered(id, uses.answered)
    }
}

/// The id of the call that has this one as so many have: the first is told as it is, unless it says nothing. A space stands in no
/// id that is told as it is.
fn numbered(id: &str, number: u32) -> String {
    let number = number.max(1);
    if number == 1 && !id.is_empty() { packed(id).into_owned() } else { packed(&format!("{id} {number}")).into_owned() }
}

/// The id that was [`packed`] into this one, or this one.
pub(super) fn unpacked(id: &str) -> Cow<'_, str> {
    let bytes = id.strip_prefix(PACKED).and_then(|it| URL_SAFE_NO_PAD.decode(it).ok());
    match bytes.and_then(|it| String::from_utf8(it).ok()) {
        Some(own) if packed(&own) == id => Cow::Owned(own),
        Some(_) | None => Cow::Borrowed(id),
    }
}

/// A tool's name as a provider of the chat shape is told it: a long one by its beginning and its digest.
pub(super) fn shortened(name: &str) -> Cow<'_, str> {
    if name.chars().nth(TOOL_CHARS).is_none() {
        return Cow::Borrowed(name);
    }
    let begin: String = name.chars().take(TOOL_CHARS - DIGEST_CHARS - 1).collect();
    let digest = format!("{:032x}", Digest::of(name).bits());
    Cow::Owned(format!("{begin}_{}", digest.get(..DIGEST_CHARS).unwrap_or_default()))
}

/// The tools of a request of the messages shape whose names are too long for the chat shape: an answer that calls one by its short
/// name is told to the client by the long one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongNames(BTreeMap<Box<str>, Box<str>>);

impl LongNames {
    /// Those among these tools.
    pub(super) fn of(tools: Option<Value<'_>>) -> Self {
        let names = tools.into_iter().flat_map(|it| it.items()).filter_map(|it| it.text_of("name"));
        let long = names.filter_map(|name| match shortened(&name) {
            Cow::Owned(short) => Some((short.into(), name.into())),
            Cow::Borrowed(_) => None,
        });
        Self(long.collect())
    }

    /// The name that the client gave the tool that is called by this one.
    pub(super) fn of_client<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, |it| it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An id is packed where it must be and comes back as it was; what only looks packed stays.
    #[test]
    fn a_packed_id_comes_back() {
        for id in ["functions.f:0", "call|1.x", "é", "", "a=b/c+d"] {
            let other = packed(id);
            assert_ne!(other, id);
            assert!(other.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)), "{other}");
            assert_eq!((unpacked(&other), packed(&other)), (id.into(), other.clone()));
        }
        for id in ["toolu_1", "call_b64_!", "call_b64_Zg", "call_b64_ZnVuY3Rpb25zLmY6MA="] {
            assert_eq!(unpacked(id), id);
        }
    }

    /// A name is cut where it is too long, to one of its own.
    #[test]
    fn a_long_name_is_shortened() {
        let long = |end: &str| format!("mcp__server__{}{end}", "x".repeat(64));
        let (one, other) = (long("a"), long("b"));
        for name in [one.as_str(), &other, &"é".repeat(65)] {
            let short = shortened(name);
            assert_eq!((short.chars().count(), shortened(&short)), (64, short.clone()));
            assert!(name.chars().zip(short.chars()).take(40).all(|(a, b)| a == b));
        }
        assert_ne!(shortened(&one), shortened(&other));
        assert_eq!(shortened(&"é".repeat(64)), "é".repeat(64));
    }
}
