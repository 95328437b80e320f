//! What kind of action an agent asks about, and patterns over kinds.
//!
//! **Invariant:** what a kind needs and counts as follows from its name alone.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::value::Invalid;
use crate::value::nearest::nearest;

/// Parts that a dotted kind may have.
const PARTS_MAX: usize = 5;
/// Bytes of the longest custom kind.
const KIND_MAX: usize = 128;
/// What makes any word a dotted kind.
const CUSTOM: &str = "custom.";

/// The kind of an action: one of the built-in ones, or a dotted one of the caller's own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionKind(Name);

/// Which actions a mandate is for: one kind, or every kind that begins with a prefix.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionPattern {
    /// This kind alone.
    Exact(ActionKind),
    /// `crm.*`: every kind that begins with `crm.`, however many parts follow. Held with its dot.
    Under(Prefix),
}

/// What stands before the star of an [`ActionPattern`], with its dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(Arc<str>);

/// A word that is no kind of action, and what was probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// Why it was refused: one clause for people.
    pub message: Invalid,
    /// A kind that would be accepted.
    pub did_you_mean: String,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    BuiltIn(&'static str),
    Custom(Arc<str>),
}

macro_rules! built_in {
    ($($(#[$doc:meta])* $name:ident $text:literal;)*) => {
        impl ActionKind {
            $($(#[$doc])* pub const $name: Self = Self(Name::BuiltIn($text));)*
        }
        /// Every built-in kind, as it is written.
        const BUILT_IN: &[&str] = &[$($text),*];
    };
}

built_in! {
    /// Paying a merchant.
    PAYMENT "payment";
    /// Paying back.
    REFUND "refund";
    /// Sending money to a receiver.
    TRANSFER "transfer";
    /// Putting software into service.
    DEPLOY "deploy";
    /// Calling a tool of the agent's own client.
    TOOL_CALL "tool.call";
    /// Calling a tool of an MCP server.
    MCP_CALL "mcp.call";
    /// Giving data to somebody.
    DATA_SHARE "data.share";
    /// Sending a message.
    MESSAGE_SEND "message.send";
    /// Running code.
    CODE_EXECUTE "code.execute";
    /// Writing a file.
    FILE_WRITE "file.write";
    /// Deleting a record.
    RECORD_DELETE "record.delete";
    /// Giving somebody access.
    ACCESS_GRANT "access.grant";
    /// Changing infrastructure.
    INFRA_CHANGE "infra.change";
}

impl ActionKind {
    /// Reads a built-in kind, or a custom one of two to five parts of `[a-z][a-z0-9_]*` joined by dots, at most 128
    /// characters together.
    ///
    /// # Errors
    /// [`UnknownKind`] for anything else, with the nearest built-in kind or, where none is near, a dotted one to use.
    pub fn parse(text: &str) -> Result<Self, UnknownKind> {
        if let Some(known) = BUILT_IN.iter().find(|it| **it == text) {
            return Ok(Self(Name::BuiltIn(known)));
        }
        let parts = text.split('.').count();
        if (2..=PARTS_MAX).contains(&parts) && text.len() <= KIND_MAX && text.split('.').all(is_part) {
            return Ok(Self(Name::Custom(text.into())));
        }
        Err(UnknownKind::of(text))
    }

    /// Every built-in kind.
    pub fn built_in() -> impl Iterator<Item = Self> {
        BUILT_IN.iter().map(|it| Self(Name::BuiltIn(it)))
    }

    /// The kind as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Name::BuiltIn(text) => text,
            Name::Custom(text) => text,
        }
    }

    /// Whether money moves by definition: `payment`, `refund`, `transfer`. An action of any kind with a payment is one
    /// too.
    #[must_use]
    pub fn is_payment_type(&self) -> bool {
        matches!(self.0, Name::BuiltIn("payment" | "refund" | "transfer"))
    }

    /// Whether the body must have `payment`.
    #[must_use]
    pub fn needs_payment(&self) -> bool {
        self.is_payment_type()
    }

    /// Whether the body must have `tool.name`.
    #[must_use]
    pub fn needs_tool_name(&self) -> bool {
        matches!(self.0, Name::BuiltIn("tool.call" | "mcp.call"))
    }

    /// Whether the body must have `data`.
    #[must_use]
    pub fn needs_data(&self) -> bool {
        matches!(self.0, Name::BuiltIn("data.share"))
    }

    /// Whether it counts on the velocity line of tools: everything below `tool.` and `mcp.`.
    #[must_use]
    pub fn is_tool(&self) -> bool {
        self.as_str().starts_with("tool.") || self.as_str().starts_with("mcp.")
    }

    /// Whether harm leaves the agent's hands with it, so that untrusted content in the context must ask a person first.
    /// Every action with a payment is a sink whatever its kind, and so is a tool that the tool table marks.
    #[must_use]
    pub fn is_sink(&self) -> bool {
        match &self.0 {
            Name::BuiltIn(text) => !matches!(*text, "tool.call" | "mcp.call" | "file.write"),
            Name::Custom(_) => false,
        }
    }
}

impl ActionPattern {
    /// Reads a kind, or a prefix of one to four parts followed by `.*`.
    ///
    /// # Errors
    /// [`Invalid`] for what is neither, `*` alone among it.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let Some(parts) = text.strip_suffix(".*") else {
            return match ActionKind::parse(text) {
                Ok(kind) => Ok(Self::Exact(kind)),
                Err(_) if text.contains('*') => Err(Invalid::new(
                    "must be an action type or a prefix such as `crm.*`; no other use of `*` is known",
                )),
                Err(unknown) => Err(unknown.into()),
            };
        };
        if text.len() > KIND_MAX || parts.split('.').count() >= PARTS_MAX || !parts.split('.').all(is_part) {
            return Err(Invalid::new("must be an action type or a prefix such as `crm.*`"));
        }
        Ok(Self::Under(Prefix(format!("{parts}.").into())))
    }

    /// Whether it speaks of this kind.
    #[must_use]
    pub fn covers(&self, kind: &ActionKind) -> bool {
        match self {
            Self::Exact(it) => it == kind,
            Self::Under(prefix) => kind.as_str().starts_with(&*prefix.0),
        }
    }

    /// Whether it speaks of a kind that cannot be without a payment.
    #[must_use]
    pub fn covers_payment(&self) -> bool {
        [ActionKind::PAYMENT, ActionKind::REFUND, ActionKind::TRANSFER].iter().any(|kind| self.covers(kind))
    }

    /// Whether it speaks of every kind that `other` does.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (pattern, Self::Exact(kind)) => pattern.covers(kind),
            (Self::Under(own), Self::Under(other)) => other.0.starts_with(&*own.0),
            (Self::Exact(_), Self::Under(_)) => false,
        }
    }

    /// Whether there is a kind that both speak of.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(kind), pattern) | (pattern, Self::Exact(kind)) => pattern.covers(kind),
            (Self::Under(a), Self::Under(b)) => a.0.starts_with(&*b.0) || b.0.starts_with(&*a.0),
        }
    }
}

impl UnknownKind {
    fn of(text: &str) -> Self {
        let did_you_mean = suggestion(text);
        let rule = if text.contains('.') {
            "must be 2 to 5 parts of lower-case letters, digits and `_`, each beginning with a letter, joined by dots: at most 128 characters together"
        } else {
            "must be a built-in action type or a dotted one of your own"
        };
        Self { message: Invalid::new(rule), did_you_mean }
    }
}

/// What would be accepted in place of the text: of a dotted one the same in legal letters, of a word the nearest
/// built-in kind or the word with `custom.` before it.
fn suggestion(text: &str) -> String {
    let parts: Vec<String> = text.split('.').take(PARTS_MAX).map(part_like).filter(|it| !it.is_empty()).collect();
    let dotted = parts.join(".");
    if parts.len() > 1 && dotted.len() <= KIND_MAX {
        return dotted;
    }
    if let Some(kind) = nearest(text, BUILT_IN.iter().copied()) {
        return kind.to_owned();
    }
    match parts.first() {
        Some(word) if word.len() <= KIND_MAX - CUSTOM.len() => format!("{CUSTOM}{word}"),
        _ => "custom.action".to_owned(),
    }
}

/// The text with what a part cannot hold taken out, or made `_`.
fn part_like(text: &str) -> String {
    let lower = text.trim().chars().take(KIND_MAX).map(|it| it.to_ascii_lowercase());
    let legal: String = lower.map(|it| if it.is_ascii_lowercase() || it.is_ascii_digit() { it } else { '_' }).collect();
    legal.trim_start_matches(|it: char| !it.is_ascii_lowercase()).trim_end_matches('_').to_owned()
}

fn is_part(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
}

impl From<UnknownKind> for Invalid {
    fn from(unknown: UnknownKind) -> Self {
        Self::new(format!("{}; did you mean `{}`?", unknown.message, unknown.did_you_mean))
    }
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(out)
    }
}

impl std::error::Error for UnknownKind {}

impl fmt::Display for ActionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Display for ActionPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(kind) => kind.fmt(out),
            Self::Under(prefix) => write!(out, "{}*", prefix.0),
        }
    }
}

macro_rules! stored_as_text {
    ($($name:ident by $error:ty;)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, out) }
        }
        impl FromStr for $name {
            type Err = $error;
            fn from_str(text: &str) -> Result<Self, $error> { Self::parse(text) }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> { to.collect_str(self) }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                crate::value::stored::read(from, Self::parse)
            }
        }
    )*};
}
stored_as_text! { ActionKind by UnknownKind; ActionPattern by Invalid; }

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::*;

    fn kind(text: &str) -> ActionKind {
        ActionKind::parse(text).unwrap()
    }

    fn pattern(text: &str) -> ActionPattern {
        ActionPattern::parse(text).unwrap()
    }

    /// What each kind needs and counts as, for every built-in kind and for custom ones that resemble them.
    #[test]
    fn a_name_says_what_a_kind_needs_and_counts_as() {
        // payment, tool name, data, tool line, sink
        let (yes, no) = (true, false);
        let table = [
            ("payment", [yes, no, no, no, yes]),
            ("refund", [yes, no, no, no, yes]),
            ("transfer", [yes, no, no, no, yes]),
            ("deploy", [no, no, no, no, yes]),
            ("tool.call", [no, yes, no, yes, no]),
            ("mcp.call", [no, yes, no, yes, no]),
            ("data.share", [no, no, yes, no, yes]),
            ("message.send", [no, no, no, no, yes]),
            ("code.execute", [no, no, no, no, yes]),
            ("file.write", [no, no, no, no, no]),
            ("record.delete", [no, no, no, no, yes]),
            ("access.grant", [no, no, no, no, yes]),
            ("infra.change", [no, no, no, no, yes]),
            ("tool.search", [no, no, no, yes, no]),
            ("mcp.call.crm", [no, no, no, yes, no]),
            ("tools.call", [no, no, no, no, no]),
            ("payment.recurring", [no, no, no, no, no]),
            ("data.share.internal", [no, no, no, no, no]),
            ("crm.update", [no, no, no, no, no]),
        ];
        for (text, facts) in table {
            let it = kind(text);
            assert_eq!(
                [it.needs_payment(), it.needs_tool_name(), it.needs_data(), it.is_tool(), it.is_sink()],
                facts,
                "{text}"
            );
            assert_eq!(it.is_payment_type(), it.needs_payment(), "{text}");
        }
        assert!(BUILT_IN.iter().all(|built| table.iter().any(|(text, _)| text == built)));
        assert_eq!(kind("payment"), ActionKind::PAYMENT);
    }

    /// A custom kind is two to five parts that begin with a letter.
    #[test]
    fn custom_kinds_are_dotted() {
        for good in ["crm.update", "a.b", "a.b.c.d.e", "a1_.b_2"] {
            assert_eq!(kind(good).as_str(), good);
        }
        for bad in [
            "",
            ".",
            "a",
            "a.b.c.d.e.f",
            "a.",
            ".a",
            "a..b",
            "a.1b",
            "a._b",
            "A.b",
            "a.b-c",
            "a.b c",
            " a.b",
            "a.b\n",
            "a.é",
            "а.b",
            "*",
            "a.*",
            "payment ",
            "Payment",
            "PAYMENT",
            &format!("a.{}", "b".repeat(127)),
        ] {
            assert!(ActionKind::parse(bad).is_err(), "{bad:?}");
        }
        assert!(ActionKind::parse(&format!("a.{}", "b".repeat(126))).is_ok());
    }

    /// A word that is no kind is answered with the nearest one, or with a dotted form of itself.
    #[test]
    fn an_unknown_word_is_answered_with_what_was_meant() {
        for (text, meant) in [
            ("pay", "payment"),
            ("paymnt", "payment"),
            ("Payment", "payment"),
            ("refnd", "refund"),
            ("tool", "tool.call"),
            ("zzz", "custom.zzz"),
            ("crm", "custom.crm"),
            ("invoice", "custom.invoice"),
            ("Book-Flight!", "custom.book_flight"),
            ("", "custom.action"),
            ("😀", "custom.action"),
            ("Tool.Call", "tool.call"),
            ("CRM.Update-All", "crm.update_all"),
            ("a.b.c.d.e.f", "a.b.c.d.e"),
            ("crm.", "custom.crm"),
            (&"x".repeat(1 << 20), "custom.action"),
        ] {
            assert_eq!(ActionKind::parse(text).unwrap_err().did_you_mean, meant, "{}", text.get(..20).unwrap_or(text));
        }
    }

    /// A pattern includes itself, and a prefix what lies below it.
    #[test]
    fn patterns_include_what_lies_below_them() {
        for (wide, narrow, both) in [
            ("payment", "payment", true),
            ("crm.*", "crm.*", true),
            ("crm.*", "crm.read", false),
            ("crm.*", "crm.read.*", false),
        ] {
            assert!(pattern(wide).includes(&pattern(narrow)), "{wide} {narrow}");
            assert_eq!(pattern(narrow).includes(&pattern(wide)), both, "{narrow} {wide}");
        }
        assert!(
            !pattern("crm.*").includes(&pattern("crmx.*")) && !pattern("crm.read").includes(&pattern("crm.read.*"))
        );
    }

    /// A prefix covers everything below it at any depth, and nothing that only begins with the same letters.
    #[test]
    fn patterns_cover_what_they_say() {
        for (text, covered, not) in [
            ("payment", &["payment"][..], &["refund", "payment.recurring"][..]),
            ("crm.read", &["crm.read"], &["crm.read.all", "crm.reads"]),
            ("crm.*", &["crm.read", "crm.read.all", "crm.a.b.c.d"], &["crmx.read", "payment", "acrm.read"]),
            ("crm.read.*", &["crm.read.all"], &["crm.read", "crm.reader.all"]),
            ("tool.*", &["tool.call", "tool.search"], &["tools.call"]),
        ] {
            assert!(covered.iter().all(|it| pattern(text).covers(&kind(it))), "{text}");
            assert!(!not.iter().any(|it| pattern(text).covers(&kind(it))), "{text}");
            assert_eq!(pattern(text).to_string(), text);
        }
        for bad in [
            "",
            "*",
            ".*",
            "*.*",
            "crm*",
            "crm.*.read",
            "*.read",
            "Crm.*",
            "crm..*",
            "pay",
            "a.b.c.d.e.*",
            " crm.*",
            "crm.* ",
        ] {
            assert!(ActionPattern::parse(bad).is_err(), "{bad:?}");
        }
        assert!(ActionPattern::parse("pay").unwrap_err().to_string().contains("`payment`"));
    }

    /// Two patterns overlap where some kind is covered by both.
    #[test]
    fn patterns_overlap_where_both_cover() {
        for (a, b, overlap) in [
            ("payment", "payment", true),
            ("payment", "refund", false),
            ("crm.*", "crm.read", true),
            ("crm.*", "crm.read.*", true),
            ("crm.*", "crmx.*", false),
            ("crm.read.*", "crm.write.*", false),
            ("crm.read", "crm.read.*", false),
        ] {
            assert_eq!(
                (pattern(a).overlaps(&pattern(b)), pattern(b).overlaps(&pattern(a))),
                (overlap, overlap),
                "{a} {b}"
            );
        }
    }

    /// Storage keeps the text and takes nothing that the wire would not.
    #[test]
    fn stored_kinds_are_checked() {
        assert_eq!(serde_json::to_string(&[kind("payment"), kind("crm.read")]).unwrap(), r#"["payment","crm.read"]"#);
        assert_eq!(serde_json::from_str::<ActionKind>("\"payment\"").unwrap(), ActionKind::PAYMENT);
        assert!(serde_json::from_str::<ActionKind>("\"pay\"").is_err());
        assert_eq!(serde_json::from_str::<ActionPattern>("\"crm.*\"").unwrap(), pattern("crm.*"));
        assert!(serde_json::from_str::<ActionPattern>("\"*\"").is_err());
    }

    proptest! {
        /// No text makes the readers panic; what is read is read as itself, and what is suggested would be accepted.
        #[test]
        fn any_text_is_read_or_answered(text in "\\PC{0,20}|[a-zA-Z._* -]{0,20}|([a-z_1]{0,60}\\.){0,6}") {
            match ActionKind::parse(&text) {
                Ok(read) => prop_assert_eq!(read.as_str(), &text),
                Err(unknown) => {
                    let meant = unknown.did_you_mean;
                    prop_assert!(ActionKind::parse(&meant).is_ok(), "{}", meant);
                }
            }
            if let Ok(read) = ActionPattern::parse(&text) {
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }
}
