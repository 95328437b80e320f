//! Data loss: what in a text should not leave, found by kind and checked, never quoted (CONTRACT part 2, "Model
//! calls").
//!
//! A finding is more than a pattern: a card number passes Luhn and lies in a range that is issued, an IBAN has its
//! country's length and remainder, national numbers have their check digits, keys have their maker's prefix or the
//! entropy of one, and the header of a JWT is read.
//!
//! **Invariant:** a text is read in time proportional to its length, whatever stands in it.
//! **Invariant:** nothing here keeps, shows or returns a found text; what leaves are counts, and texts without it.

mod card;
mod contact;
mod few;
mod iban;
mod key;
mod national;
mod parts;
mod scan;
mod text;
mod told;
mod width;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::parts::{redact_parts, scan_parts};
use self::scan::Scan;
use self::text::Text;
use self::width::Narrow;
use crate::value::words::words;

/// What a text may give away. The variants stand in the order of their words: it is that of rows and of what people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A key, token or password: a known prefix, or a secret's name before what looks drawn by chance.
    ApiKey,
    /// An e-mail address.
    Email,
    /// An international bank account number: its country's length, remainder 1 of 97.
    Iban,
    /// A JSON web token whose header is one.
    Jwt,
    /// The number of a person with a state, with its check where the state has one.
    NationalId,
    /// The number of a payment card: an issued range, its length, Luhn.
    PaymentCard,
    /// A telephone number: international, or written as one.
    Phone,
    /// A private key in PEM.
    PrivateKey,
}

words! { Kind;
    ApiKey "api_key";
    Email "email";
    Iban "iban";
    Jwt "jwt";
    NationalId "national_id";
    PaymentCard "payment_card";
    Phone "phone";
    PrivateKey "private_key";
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// How many of each kind were found; a kind that was not found has no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Findings(BTreeMap<Kind, u32>);

impl Findings {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of one kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u32 {
        self.0.get(&kind).copied().unwrap_or_default()
    }

    /// Kinds and how many of each, in the order of [`Kind::ALL`].
    pub fn counts(&self) -> impl Iterator<Item = (Kind, u32)> + '_ {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }

    /// Takes in what another text of the same call held.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in other.counts() {
            let sum = self.0.entry(kind).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// For people: `1 email, 2 payment_card`; empty where nothing was found.
    #[must_use]
    pub fn describe(&self) -> String {
        let parts: Vec<String> = self.counts().map(|(kind, count)| format!("{count} {kind}")).collect();
        parts.join(", ")
    }

    fn note(&mut self, kind: Kind) {
        let sum = self.0.entry(kind).or_default();
        *sum = sum.saturating_add(1);
    }
}

/// Where something was found: bytes of the text, from one character's beginning to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What stands in a text, by kind.
#[must_use]
pub fn scan(text: &str) -> Findings {
    let mut findings = Findings::default();
    spans(text).iter().for_each(|span| findings.note(span.kind));
    findings
}

/// Whether a name such as that of a parameter says that its value is a secret.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    key::names_secret(name)
}

/// What was found, from left to right, and where.
fn spans(text: &str) -> Vec<Span> {
    let found = |text: &str| Scan::new(&Text::new(text)).collect::<Vec<_>>();
    match Narrow::of(text) {
        None => found(text),
        Some(narrow) => found(&narrow.text).into_iter().map(|it| narrow.place(it)).collect(),
    }
}

/// The text with `[redacted:kind]` in place of everything found, and what that was; none where nothing was found.
#[must_use]
pub fn redact(text: &str) -> Option<(String, Findings)> {
    let found = spans(text);
    let mut findings = Findings::default();
    found.iter().for_each(|span| findings.note(span.kind));
    Some((without(text, &found)?, findings))
}

/// A text with the kinds of what was found, which stand in its order, in its place; none where nothing was.
fn without(text: &str, found: &[Span]) -> Option<String> {
    let mut out = String::new();
    let mut kept = 0;
    for span in found {
        out.push_str(text.get(kept..span.start)?);
        out.push_str("[redacted:");
        out.push_str(span.kind.as_str());
        out.push(']');
        kept = span.end;
    }
    out.push_str(text.get(kept..)?);
    (!found.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests;
