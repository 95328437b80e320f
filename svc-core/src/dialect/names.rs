//! Ids of calls and names of tools: told in the letters and at the length that the other shape admits, and told back as they were.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::doc::Value;
use crate::state::gateway::Host;
use crate::value::digest::Digest;

/// Characters of the longest name of a tool that every provider of the chat shape takes; the messages shape has twice as many.
const TOOL_CHARS: usize = 64;
/// Characters of a digest that stand at the end of a shortened name.
const DIGEST_CHARS: usize = 16;
/// Characters of an id at Mistral.
const SHORT_CHARS: usize = 9;
/// Characters of the longest id of a call that the maker of the chat shape takes. Others give longer ones.
const MAKER_CHARS: usize = 40;
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
pub(super) struct CallIds {
    uses: BTreeMap<String, Uses>,
    /// What calls were told as.
    told: BTreeSet<String>,
    /// How many turns have begun.
    turns: usize,
}

/// The calls of one id.
#[derive(Debug, Default)]
struct Uses {
    /// What they were told as, in their order.
    told: Vec<String>,
    /// How many of them belong to turns that are over, or have their results.
    answered: usize,
    /// The turn that this is so in.
    turn: usize,
    /// The number that was tried last.
    number: u32,
}

impl CallIds {
    /// A turn with calls begins: results behind it are of no calls before it.
    pub(super) fn turn(&mut self) {
        self.turns = self.turns.saturating_add(1);
    }

    /// Of a call with this id.
    pub(super) fn call(&mut self, id: &str) -> String {
        let turns = self.turns;
        let uses = self.uses.entry(id.to_owned()).or_default();
        uses.begin(turns);
        let told = loop {
            uses.number = uses.number.saturating_add(1);
            let told = numbered(id, uses.number);
            // Another id may read as this one with its number does.
            if self.told.insert(told.clone()) || uses.number == u32::MAX {
                break told;
            }
        };
        uses.told.push(told.clone());
        told
    }

    /// Of the result of a call with this id: of the turn's calls with it the first that has none, else the last.
    pub(super) fn result(&mut self, id: &str) -> String {
        let turns = self.turns;
        let uses = self.uses.entry(id.to_owned()).or_default();
        uses.begin(turns);
        uses.answered = uses.answered.saturating_add(1).min(uses.told.len());
        let told = uses.answered.checked_sub(1).and_then(|it| uses.told.get(it));
        told.cloned().unwrap_or_else(|| numbered(id, 1))
    }
}

impl Uses {
    /// What was called in turns before this one is answered or never will be.
    fn begin(&mut self, turn: usize) {
        if self.turn != turn {
            (self.turn, self.answered) = (turn, self.told.len());
        }
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

/// The id of a call as a provider of the chat shape takes it at this host. One that it would refuse, as another gave it, is told by
/// its digest: the same wherever it stands, so that a result finds its call.
pub(super) fn taken(id: &str, host: Host) -> Cow<'_, str> {
    match host {
        Host::Mistral => short(id),
        Host::Maker if id.chars().nth(MAKER_CHARS).is_some() => {
            Cow::Owned(format!("call_{:032x}", Digest::of(id).bits()))
        }
        Host::Maker | Host::Google | Host::Mixed | Host::Other => Cow::Borrowed(id),
    }
}

/// The id of a call as Mistral takes it: nine letters and digits. Another is told by its digest.
fn short(id: &str) -> Cow<'_, str> {
    if id.len() == SHORT_CHARS && id.bytes().all(|it| it.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let digest = format!("{:032x}", Digest::of(id).bits());
    Cow::Owned(digest.get(..SHORT_CHARS).unwrap_or_default().to_owned())
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

/// What a client of the messages shape goes by in its conversation, where a provider of the chat shape answers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientNames {
    /// Tools whose names are too long for the chat shape, by the short ones that the provider is told: the client is told the long
    /// ones again.
    long: BTreeMap<Box<str>, Box<str>>,
    /// Ids that calls have. Clients tell results apart by them alone, and the messages shape refuses one that comes twice; some
    /// providers give the same ones in every answer, or in one.
    calls: BTreeSet<Box<str>>,
    /// The texts at which an answer is to stop.
    stops: BTreeSet<Box<str>>,
    /// All tools, as the provider is told of them.
    tools: BTreeSet<Box<str>>,
}

/// None of the names.
impl fmt::Debug for ClientNames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientNames").field("long", &self.long.len()).field("calls", &self.calls.len()).finish()
    }
}

impl ClientNames {
    /// Those of a request of the messages shape.
    pub(super) fn of(root: Value<'_>) -> Self {
        let names = || root.get("tools").into_iter().flat_map(|it| it.items()).filter_map(|it| it.text_of("name"));
        let long = names().filter_map(|name| match shortened(&name) {
            Cow::Owned(short) => Some((short.into(), name.into())),
            Cow::Borrowed(_) => None,
        });
        let stops = root.get("stop_sequences").into_iter().flat_map(|it| it.items()).filter_map(|it| it.text());
        let messages = root.get("messages").into_iter().flat_map(|it| it.items());
        let blocks = messages.filter_map(|it| it.get("content")).flat_map(|it| it.items());
        let calls = blocks.filter(|it| it.has("type", "tool_use")).filter_map(|it| it.text_of("id"));
        Self {
            long: long.collect(),
            calls: calls.map(Into::into).collect(),
            stops: stops.map(Into::into).collect(),
            tools: names().map(|it| shortened(&it).into()).collect(),
        }
    }

    /// The text at which this choice says that it stopped, in the words of vLLM or of SGLang: of those that it was to stop at. They
    /// tell the number of a token in its place, and others tell why they stopped.
    pub(super) fn stopped_at(&self, choice: Value<'_>) -> Option<&str> {
        let told = ["stop_reason", "matched_stop"].into_iter().filter_map(|it| choice.text_of(it));
        told.filter_map(|it| self.stops.get(&*it)).next().map(|it| &**it)
    }

    /// Whether a tool's name as far as it has come is the beginning of one and no whole one: some providers tell it in pieces.
    pub(super) fn begins_tool(&self, name: &str) -> bool {
        let mut from = self.tools.range::<str, _>((Bound::Included(name), Bound::Unbounded));
        from.next().is_some_and(|it| **it != *name && it.starts_with(name))
    }

    /// The name of a call that has come so far, with what is told of it next: a piece of a tool's name, or the whole of it so far. What is
    /// told again, and what makes none, is nothing.
    pub(super) fn with_piece(&self, name: &str, piece: &str) -> String {
        let both = format!("{name}{piece}");
        let is_known = |it: &str| self.tools.contains(it) || self.begins_tool(it);
        match [both.as_str(), piece].into_iter().find(|it| is_known(it) && it.starts_with(name)) {
            Some(known) if self.begins_tool(name) => known.to_owned(),
            Some(_) | None => name.to_owned(),
        }
    }

    /// The name that the client gave the tool that is called by this one.
    pub(super) fn of_client<'a>(&'a self, name: &'a str) -> &'a str {
        self.long.get(name).map_or(name, |it| it)
    }

    /// What the client is told of a call of this id: another one where the provider gives none, or one that another call has. The
    /// next call is told another than this.
    pub(super) fn of_call(&mut self, id: &str, other: impl FnOnce() -> String) -> String {
        let own = (!id.is_empty()).then(|| packed(id)).filter(|it| !self.calls.contains(&**it));
        let told = own.map_or_else(|| packed(&other()).into_owned(), Cow::into_owned);
        self.calls.insert(told.as_str().into());
        told
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

    /// Results belong to calls of their own turn, one after the other, and no two calls are told the same.
    #[test]
    fn each_call_is_told_as_no_other() {
        let mut ids = CallIds::default();
        let (a, b) = (packed("a 2").into_owned(), packed("a 2 2").into_owned());
        ids.turn();
        assert_eq!([ids.call("a"), ids.call("a"), ids.call("a 2")], ["a".to_owned(), a.clone(), b.clone()]);
        assert_eq!([ids.result("a 2"), ids.result("a"), ids.result("a"), ids.result("a")], [&*b, "a", &*a, &*a]);
        ids.turn();
        ids.turn();
        let next = ids.call("a");
        assert!(next != a && next != "a" && next != b);
        assert_eq!((ids.result("a"), ids.result("a")), (next.clone(), next));
        assert_eq!((ids.result("unknown"), ids.result("")), ("unknown".to_owned(), packed(" 1").into_owned()));
        let mut others = CallIds::default();
        others.turn();
        let told = [others.call("a 2"), others.call("a"), others.call("a")];
        assert_eq!(told, [packed("a 2"), "a".into(), packed("a 3")], "an id that reads as another with its number");
        assert_eq!([others.result("a"), others.result("a"), others.result("a 2")], ["a", &*told[2], &*told[0]]);
    }

    /// A long id is told by its digest to who refuses it, and to nobody else: others may have put into it what they read again.
    #[test]
    fn a_long_id_is_told_by_its_digest() {
        let (most, one, other) = ("é".repeat(40), "a".repeat(41), format!("{}b", "a".repeat(40)));
        assert_eq!(taken(&most, Host::Maker), most);
        let told = taken(&one, Host::Maker);
        assert!(told.len() <= 40 && told != taken(&other, Host::Maker), "{told}");
        assert_eq!(taken(&told, Host::Maker), told);
        for host in [Host::Google, Host::Other] {
            assert_eq!(taken(&one, host), one);
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
