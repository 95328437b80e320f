//! Bounded texts: what people and agents write, cut to what a row, a page and a reader can bear.
//!
//! **Invariant:** lengths are counted in Unicode scalar values, after trimming, and no text holds a control character but
//! the tab and newline of a [`Note`].

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

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

/// What every text type has: showing, reading, and storage as a plain string that is checked again when read back.
macro_rules! plumbing {
    ($name:ident) => {
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
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use plumbing;

texts! {
    /// A name or a label.
    Label = |text| trimmed(text, 1, 100), "must be 1 to 100 characters without control characters";
    /// One sentence that says what an agent is about to do.
    Summary = |text| trimmed(text, 1, 500), "must be 1 to 500 characters without control characters";
    /// A reason or a note; may hold tabs and newlines.
    Note = note, "must be 1 to 500 characters without control characters other than tab and newline";
    /// A URL's text, of which only the length is known to be good.
    UrlText = |text| trimmed(text, 1, 2_048), "must be 1 to 2048 characters without control characters";
    /// An agent's session id: 1 to 128 of visible ASCII, as sent.
    SessionId = session, "must be 1 to 128 visible ASCII characters without space";
    /// An idempotency key: 1 to 128 characters, as sent.
    IdempotencyKey = |text| exact(text, 1, 128), "must be 1 to 128 characters without control characters";
    /// Where content came from, in the word of whoever declares it: 1 to 64 characters, as sent.
    Source = |text| exact(text, 1, 64), "must be 1 to 64 characters without control characters";
    /// More about a source, at most 500 characters, maybe none.
    Detail = |text| trimmed(text, 0, 500), "must be at most 500 characters without control characters";
}

/// An e-mail address, kept as sent. Two that differ in case alone are one address.
#[derive(Clone)]
pub struct Email {
    sent: Arc<str>,
    folded: Arc<str>,
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
        let lower = sent.to_lowercase();
        let folded = if *lower == *sent { Arc::clone(&sent) } else { lower.into() };
        Ok(Self { sent, folded })
    }

    /// The address as sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.sent
    }

    /// The address in lower case: what is compared and looked up.
    #[must_use]
    pub fn folded(&self) -> &str {
        &self.folded
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
    let joined =
        if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { std::borrow::Cow::Borrowed(text) };
    let clean = !joined.contains(|it: char| it.is_control() && it != '\t' && it != '\n');
    (clean && within(&joined, 1, 500)).then(|| joined.as_ref().into())
}

fn session(text: &str) -> Option<Arc<str>> {
    ((1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| text.into())
}

/// Whether the text has `min` to `max` characters; looks at no more of it than it must.
fn within(text: &str, min: usize, max: usize) -> bool {
    text.len() <= max.saturating_mul(4) && (min..=max).contains(&text.chars().count())
}
