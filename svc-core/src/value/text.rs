//! Bounded texts: what people and agents write, cut to what a row, a page and a reader can bear.
//!
//! **Invariant:** lengths are counted in Unicode scalar values, after trimming, and no text holds a control character
//! but the tab and newline of a [`Note`].

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use super::Invalid;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $read:expr, $rule:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Reads the text.
            ///
            /// # Errors
            #[doc = concat!("[`Invalid`]: it ", $rule, ".")]
            pub fn parse(text: &str) -> Result<Self, Invalid> {
                let read: fn(&str) -> Option<Arc<str>> = $read;
                read(text).map(Self).ok_or(Invalid::new($rule))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str { &self.0 }
        }
        plumbing!($name);
    )*};
}

/// What every text type has: showing, reading, and storage as a plain string that is checked again when read back, by its own reader of
/// stored ones where the other goes by a list that moves.
macro_rules! plumbing {
    ($name:ident) => {
        $crate::value::text::plumbing!($name, $name::parse);
    };
    ($name:ident, $stored:path) => {
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(self.as_str())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), out)
            }
        }
        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::parse(text)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                crate::value::stored::read(from, $stored)
            }
        }
    };
}
pub(crate) use plumbing;

texts! {
    /// A name or a label: 1 to 100 characters without control characters, trimmed.
    Label = |text| trimmed(text, 1, 100), "must be 1 to 100 characters without control characters";
    /// One sentence that says what an agent is about to do: 1 to 500 characters without control characters, trimmed.
    Summary = |text| trimmed(text, 1, 500), "must be 1 to 500 characters without control characters";
    /// A reason or a note: 1 to 500 characters without control characters other than tab and newline, trimmed.
    Note = note, "must be 1 to 500 characters without control characters other than tab and newline";
    /// A URL's text, of which only the length is known to be good: 1 to 2,048 characters without control characters, trimmed.
    UrlText = |text| trimmed(text, 1, 2_048), "must be 1 to 2048 characters without control characters";
    /// An agent's session id: 1 to 128 of visible ASCII, as sent.
    SessionId = session, "must be 1 to 128 visible ASCII characters without space";
    /// A task's id: `tsk_` and 1 to 64 of `[A-Za-z0-9_-]`, as sent.
    TaskId = task, "must be tsk_ and 1 to 64 of A-Z, a-z, 0-9, _ and -";
    /// A task class's id: dotted, 1 to 64 of `[a-z0-9_.-]`, no part empty.
    ClassId = class, "must be 1 to 64 of a-z, 0-9, _, - and ., without an empty part between dots";
    /// A model's id as its provider has it: 1 to 200 of visible ASCII.
    ModelName = |text| graphic(text, 200), "must be 1 to 200 visible ASCII characters without space";
    /// An upstream's name: 1 to 40 of `[a-z0-9-]`.
    UpstreamName = upstream, "must be 1 to 40 of a-z, 0-9 and -";
    /// An MCP server's name: 1 to 40 of `[a-z0-9-]`.
    ServerName = upstream, "must be 1 to 40 of a-z, 0-9 and -";
    /// An idempotency key: 1 to 128 characters, as sent.
    IdempotencyKey = |text| exact(text, 1, 128), "must be 1 to 128 characters without control characters";
    /// Where content came from, in the word of whoever declares it: 1 to 64 characters, as sent.
    Source = |text| exact(text, 1, 64), "must be 1 to 64 characters without control characters";
    /// More about a source, at most 500 characters, maybe none.
    Detail = |text| trimmed(text, 0, 500), "must be at most 500 characters without control characters";
}

/// An e-mail address, kept as sent. Two are one address that differ in case alone, or in how the name of their host is written.
#[derive(Clone)]
pub struct Email {
    sent: Arc<str>,
    folded: Arc<str>,
}

impl UrlText {
    /// Scheme, host and port, as they are written: what is before the path.
    #[must_use]
    pub fn origin(&self) -> &str {
        let text = self.as_str();
        let scheme = text.find("://").map_or(0, |at| at.saturating_add(3));
        let rest = text.get(scheme..).unwrap_or_default();
        let host = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        text.get(..scheme.saturating_add(host)).unwrap_or(text)
    }
}

/// An address as it is compared. Of the part before the `@` the letters of ASCII alone are made lower: some others have such a letter as
/// their lower case (U+212A becomes `k`), and would be somebody else. A host is looked up by its A-labels, whatever was typed.
fn folded(user: &str, host: &str) -> String {
    format!("{}@{}", user.to_ascii_lowercase(), host_of(host))
}

/// A host as the DNS has it: lower case, A-labels (UTS 46, as browsers read an address), no dot at the end. What is no such name is made
/// lower case as it is.
fn host_of(text: &str) -> Cow<'_, str> {
    let is_label = |label: &str| label.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("xn--"));
    let name = if text.is_ascii() && !text.split('.').any(is_label) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        let found = Uts46::new().to_ascii(text.as_bytes(), AsciiDenyList::URL, Hyphens::Allow, DnsLength::Ignore);
        found.unwrap_or_else(|_| Cow::Owned(text.to_lowercase()))
    };
    match name.strip_suffix('.').filter(|it| !it.is_empty()) {
        Some(front) => Cow::Owned(front.to_owned()),
        None => name,
    }
}

impl Email {
    /// Reads an address. Whether mail reaches it, only mail can tell.
    ///
    /// # Errors
    /// [`Invalid`] where it has not exactly one `@` with something on both sides, holds a space or a control character,
    /// or is longer than 254 characters.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let sent = trimmed(text, 3, 254)
            .filter(|it| !it.contains(char::is_whitespace))
            .filter(|it| {
                it.split_once('@')
                    .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'))
            })
            .ok_or_else(|| Invalid::new("must be an e-mail address of at most 254 characters"))?;
        let (user, host) = sent.split_once('@').unwrap_or((&sent, ""));
        let folded = folded(user, host);
        let folded = if *folded == *sent { Arc::clone(&sent) } else { folded.into() };
        Ok(Self { sent, folded })
    }

    /// The address as sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.sent
    }

    /// The address in lower case, its host with A-labels: what is compared, and what it is kept by.
    #[must_use]
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// What the address may be kept by: as it stands in lower case, as rows had it before hosts were folded and as they have a host in
    /// letters that UTS 46 did not know yet; [as it is folded](Self::folded); and with its host in letters. Nearly always that is one.
    #[must_use]
    pub fn kept_by(&self) -> Vec<Cow<'_, str>> {
        let (user, host) = self.folded.split_once('@').unwrap_or((&self.folded, ""));
        let (_, sent) = self.sent.split_once('@').unwrap_or((&self.sent, ""));
        let lower = sent.to_lowercase();
        let mut all = vec![Cow::Borrowed(&*self.folded)];
        if lower != host {
            all.insert(0, Cow::Owned(format!("{user}@{lower}")));
        }
        let (letters, _) = Uts46::new().to_unicode(host.as_bytes(), AsciiDenyList::URL, Hyphens::Allow);
        if letters != host && letters != lower {
            all.push(Cow::Owned(format!("{user}@{letters}")));
        }
        all
    }
}

plumbing!(Email);

impl PartialEq for Email {
    fn eq(&self, other: &Self) -> bool {
        self.folded == other.folded
    }
}

impl Eq for Email {}

impl PartialOrd for Email {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Email {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.folded.cmp(&other.folded)
    }
}

impl Hash for Email {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.folded.hash(state);
    }
}

/// Whether a text is a segment of a path that a client of URLs takes for the place it is at, or for the one above, also where it is
/// percent-encoded (URL Standard, 4.4): what has such a name is found by none.
#[must_use]
pub fn is_dots(text: &str) -> bool {
    matches!(text, "." | "..")
}

/// What whoever wants such a name is told.
pub const NO_DOTS: &str = "must be neither `.` nor `..`: no path would lead there";

/// The text without the white space around it, if so many characters are left and none controls.
fn trimmed(text: &str, min: usize, max: usize) -> Option<Arc<str>> {
    exact(text.trim(), min, max)
}

/// The text as it is, if it has so many characters and none controls.
fn exact(text: &str, min: usize, max: usize) -> Option<Arc<str>> {
    (within(text, min, max) && !text.contains(char::is_control)).then(|| text.into())
}

/// Lines may end as they do on any system; they are kept with a newline alone.
fn note(text: &str) -> Option<Arc<str>> {
    let text = text.trim();
    let joined = if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { Cow::Borrowed(text) };
    let clean = !joined.contains(|it: char| it.is_control() && it != '\t' && it != '\n');
    (clean && within(&joined, 1, 500)).then(|| joined.as_ref().into())
}

fn session(text: &str) -> Option<Arc<str>> {
    graphic(text, 128)
}

fn graphic(text: &str, max: usize) -> Option<Arc<str>> {
    ((1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| text.into())
}

impl TaskId {
    /// How every task's id begins.
    pub const PREFIX: &'static str = "tsk_";
}

fn task(text: &str) -> Option<Arc<str>> {
    let rest = text.strip_prefix(TaskId::PREFIX)?;
    let good = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    ((1..=64).contains(&rest.len()) && good).then(|| text.into())
}

fn class(text: &str) -> Option<Arc<str>> {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-')
    };
    (text.len() <= 64 && text.split('.').all(part)).then(|| text.into())
}

fn upstream(text: &str) -> Option<Arc<str>> {
    let good = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    ((1..=40).contains(&text.len()) && good).then(|| text.into())
}

/// Whether the text has `min` to `max` characters; looks at no more of it than it must.
fn within(text: &str, min: usize, max: usize) -> bool {
    text.len() <= max.saturating_mul(4) && (min..=max).contains(&text.chars().count())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    /// Checks a type at both ends of its length, counted in characters of four bytes.
    fn bounds<T: Debug>(parse: fn(&str) -> Result<T, Invalid>, max: usize, letter: &str) {
        assert!(parse(&letter.repeat(max)).is_ok(), "{max}");
        assert!(parse(&letter.repeat(max + 1)).is_err(), "{max}");
        assert!(parse(&letter.repeat(1 << 20)).is_err());
        assert!(parse(letter).is_ok());
        for control in ["\0", "\u{1}", "\u{8}", "\u{b}", "\u{1b}", "\u{1f}", "\u{7f}", "\u{80}", "\u{9f}", "\r"] {
            assert!(parse(&format!("a{control}b")).is_err(), "{control:?}");
        }
    }

    /// Every type takes as many characters as the contract says, whatever their bytes, and no control character.
    #[test]
    fn lengths_are_counted_in_characters() {
        bounds(Label::parse, 100, "😀");
        bounds(Summary::parse, 500, "😀");
        bounds(Note::parse, 500, "😀");
        bounds(UrlText::parse, 2_048, "😀");
        bounds(SessionId::parse, 128, "s");
        bounds(IdempotencyKey::parse, 128, "😀");
        bounds(Source::parse, 64, "😀");
        bounds(Detail::parse, 500, "😀");
    }

    /// Texts for people lose the white space around them before they are counted; opaque ones are kept as sent.
    #[test]
    fn texts_are_trimmed_and_keys_are_not() {
        assert_eq!(Summary::parse("\u{3000} Renew\u{a0} \n").unwrap().as_str(), "Renew");
        assert_eq!(Label::parse(&format!(" {} ", "x".repeat(100))).unwrap().as_str().len(), 100);
        assert_eq!(Detail::parse("  ").unwrap().as_str(), "");
        for blank in ["", " ", "\u{a0}\t\n"] {
            assert!(
                Summary::parse(blank).is_err()
                    && Label::parse(blank).is_err()
                    && Note::parse(blank).is_err()
                    && UrlText::parse(blank).is_err()
            );
        }
        assert_eq!(IdempotencyKey::parse(" k ").unwrap().as_str(), " k ");
        assert_eq!(Source::parse(" user").unwrap().as_str(), " user");
        assert!(IdempotencyKey::parse("").is_err() && Source::parse("").is_err() && SessionId::parse("").is_err());
    }

    /// A note may hold tabs and newlines, other texts not; every system's line ends are the same.
    #[test]
    fn notes_may_have_lines() {
        assert_eq!(Note::parse("one\n\ttwo\r\nthree\r\n").unwrap().as_str(), "one\n\ttwo\nthree");
        assert!(Note::parse("one\rtwo").is_err());
        for text in ["one\ntwo", "one\ttwo"] {
            assert!(Summary::parse(text).is_err() && Label::parse(text).is_err() && Detail::parse(text).is_err());
        }
    }

    /// Session ids are visible ASCII alone.
    #[test]
    fn session_ids_are_visible_ascii() {
        let all: String = ('!'..='~').collect();
        assert_eq!(SessionId::parse(&all).unwrap().as_str(), all);
        for bad in ["a b", " a", "é", "a\u{7f}", "a\n", "😀"] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// An address has one `@` with something on both sides and no space, and case does not tell two apart.
    #[test]
    fn addresses_are_one_whatever_their_case() {
        let (sent, other) =
            (Email::parse(" Ann.Lee@Example.COM ").unwrap(), Email::parse("ann.lee@example.com").unwrap());
        assert_eq!((sent.as_str(), sent.folded()), ("Ann.Lee@Example.COM", "ann.lee@example.com"));
        assert_eq!(sent, other);
        assert_ne!(Email::parse("mar\u{212a}@example.com").unwrap(), Email::parse("mark@example.com").unwrap());
        assert_eq!(sent.cmp(&other), std::cmp::Ordering::Equal);
        assert_eq!(std::collections::BTreeSet::from([sent.clone(), other]).len(), 1);
        assert_eq!(serde_json::to_string(&sent).unwrap(), "\"Ann.Lee@Example.COM\"");
        assert!(Email::parse(&format!("{}@b", "a".repeat(252))).is_ok());
        for bad in [
            "",
            "ann",
            "@",
            "ann@",
            "@example.com",
            "a@b@c",
            "a b@c",
            "a@b c",
            "a\u{a0}b@c",
            "a@b\0",
            &format!("{}@b", "a".repeat(253)),
        ] {
            assert!(Email::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// A host has one name: with its letters or with A-labels, in either form of an accent, with or without the dot at its end. What is
    /// shown is what was sent, and other letters are other people.
    #[test]
    fn addresses_are_one_however_their_host_is_written() {
        let plain = Email::parse("zoe@xn--caf-dma.example").unwrap();
        assert_eq!((plain.folded(), plain.as_str()), ("zoe@xn--caf-dma.example", "zoe@xn--caf-dma.example"));
        for sent in [
            "zoe@caf\u{e9}.example",
            "Zoe@CAFE\u{301}.example",
            "zoe@XN--caf-dma.Example.",
            "zoe@caf\u{e9}\u{3002}example",
        ] {
            let read = Email::parse(sent).unwrap();
            assert_eq!((&read, read.folded(), read.as_str()), (&plain, plain.folded(), sent));
        }
        assert_eq!(Email::parse("ann@example.com.").unwrap().folded(), "ann@example.com");
        for (sent, folded) in [
            ("zoe@cafe.example", "zoe@cafe.example"),
            ("zo\u{eb}@example.com", "zo\u{eb}@example.com"),
            // What is no name of a host is compared as it stands.
            ("a@[192.0.2.1]", "a@[192.0.2.1]"),
            ("a@XN--\u{df}", "a@xn--\u{df}"),
            ("a@B_c", "a@b_c"),
            ("a@.", "a@."),
            ("a@x\u{ff20}b.example", "a@x\u{ff20}b.example"),
        ] {
            let read = Email::parse(sent).unwrap();
            assert_eq!(read.folded(), folded, "{sent}");
            assert_ne!(read, plain);
        }
    }

    /// What an address may be kept by: one text where its host is plain; else what rows of before have, too.
    #[test]
    fn an_address_is_kept_by_every_writing() {
        for (sent, kept) in [
            ("Ann@Example.com", &["ann@example.com"][..]),
            ("zoe@caf\u{e9}.example", &["zoe@caf\u{e9}.example", "zoe@xn--caf-dma.example"]),
            ("zoe@xn--caf-dma.example", &["zoe@xn--caf-dma.example", "zoe@caf\u{e9}.example"]),
            (
                "zoe@cafe\u{301}.example",
                &["zoe@cafe\u{301}.example", "zoe@xn--caf-dma.example", "zoe@caf\u{e9}.example"],
            ),
            ("ann@example.com.", &["ann@example.com.", "ann@example.com"]),
        ] {
            assert_eq!(Email::parse(sent).unwrap().kept_by(), kept, "{sent}");
        }
    }

    /// Storage keeps a plain string and takes nothing that the wire would not.
    #[test]
    fn stored_texts_are_checked() {
        let summary = Summary::parse("Renew the \"tool\"").unwrap();
        let stored = serde_json::to_string(&summary).unwrap();
        assert_eq!(stored, r#""Renew the \"tool\"""#);
        assert_eq!(serde_json::from_str::<Summary>(&stored).unwrap(), summary);
        assert!(serde_json::from_str::<Summary>("\"\"").is_err());
        assert!(serde_json::from_str::<Email>("\"nobody\"").is_err());
        assert!(serde_json::from_str::<SessionId>("\"a b\"").is_err());
    }

    proptest! {
        /// No text makes a reader panic, and what was read is read as itself.
        #[test]
        fn reading_twice_is_reading_once(text in any::<String>().boxed().prop_union("[ \\t\\r\\na@.é]{0,12}".boxed())) {
            macro_rules! once { ($($name:ident)*) => {$(
                if let Ok(read) = $name::parse(&text) {
                    let again = $name::parse(read.as_str()).unwrap();
                    prop_assert_eq!(again.as_str(), read.as_str());
                }
            )*} }
            once!(Label Summary Note UrlText SessionId IdempotencyKey Source Detail Email);
        }
    }
}
