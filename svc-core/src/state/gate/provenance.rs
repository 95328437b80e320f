//! Where the content that an agent acts on came from: what it declares, what was seen, and what follows.
//!
//! **Invariant:** the effective class is never above anything declared or observed: a claim only ever narrows.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::request::Account;
use crate::value::text::{Detail, Source};
use crate::value::words::words;

/// How far content from a source is trusted, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Anybody could have written it.
    Public,
    /// Somebody outside wrote it.
    ThirdParty,
    /// The agent, or the workspace's own files and databases.
    FirstParty,
    /// The person at the keyboard.
    User,
    /// Whoever runs the agent.
    Operator,
}

/// One entry of an action's `provenance`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Declared {
    /// The source.
    pub source: Source,
    /// More about it, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
}

/// How the account that an agent gives compares with what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Something was seen that is of a lower class than all that was declared.
    Understated,
    /// Nothing was declared.
    Undeclared,
    /// Nothing was seen to compare with.
    Unobserved,
    /// What was declared is of a lower class than all that was seen.
    Overstated,
    /// Both are of one lowest class.
    Consistent,
}

/// Where an action came from, as said and as seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What the agent said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<Declared>,
    /// What entered its context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<Source>,
    /// The least trusted of all.
    pub effective: Class,
    /// How the two compare.
    pub verdict: Verdict,
    /// Whose account was compared: the action is judged by it again.
    #[serde(default, skip_serializing_if = "Account::is_agents")]
    pub account: Account,
}

impl Default for Origin {
    /// Nothing was said and nothing seen.
    fn default() -> Self {
        let (effective, verdict) = (effective(&[], &[]), verdict(&[], &[]));
        Self { declared: Vec::new(), observed: Vec::new(), effective, verdict, account: Account::Agent }
    }
}

impl Origin {
    pub(super) fn is_unsaid(&self) -> bool {
        *self == Self::default()
    }
}

/// What an agent that declares nothing is taken to have declared: `agent`.
const UNDECLARED: Class = Class::FirstParty;

impl Class {
    /// Whether it calls for a person before a sink: `third_party` and `public`.
    #[must_use]
    pub const fn is_untrusted(self) -> bool {
        match self {
            Self::Public | Self::ThirdParty => true,
            Self::FirstParty | Self::User | Self::Operator => false,
        }
    }

    /// Who wrote what counts as this, for whoever reads the interface.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Public => "anybody could have written it",
            Self::ThirdParty => "somebody outside wrote it",
            Self::FirstParty => "the agent itself, or the workspace's own files and databases",
            Self::User => "the person at the keyboard",
            Self::Operator => "whoever runs the agent",
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::ThirdParty => "third_party",
            Self::FirstParty => "first_party",
            Self::User => "user",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

words! {
    /// In the order in which they are looked for.
    Verdict;
    Understated "understated";
    Undeclared "undeclared";
    Unobserved "unobserved";
    Overstated "overstated";
    Consistent "consistent";
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Every source that has a class of its own, most trusted first (CONTRACT part 2, "Provenance"). Any other word is `public`.
pub const SOURCES: [(Class, &[&str]); 5] = [
    (Class::Operator, &["operator", "system"]),
    (Class::User, &["user"]),
    (Class::FirstParty, &["agent", "file", "memory", "database"]),
    (Class::ThirdParty, &["tool", "tool_result", "mcp", "email", "message", "document", "api"]),
    (Class::Public, &["web", "search", "unknown"]),
];

/// The class of a source by its word. A word that [`SOURCES`] does not have, in other letters even, could be anything and is
/// `public`.
#[must_use]
pub fn class_of(source: &str) -> Class {
    SOURCES.into_iter().find(|(_, words)| words.contains(&source)).map_or(Class::Public, |(class, _)| class)
}

/// The lowest class among everything declared and observed.
#[must_use]
pub fn effective(declared: &[Declared], observed: &[Source]) -> Class {
    let declared = lowest_declared(declared);
    lowest(observed).map_or(declared, |seen| seen.min(declared))
}

/// How declared and observed compare: the first verdict that holds, in the order of the type.
///
/// An agent that declares nothing has declared itself, so worse content seen is understated there too.
#[must_use]
pub fn verdict(declared: &[Declared], observed: &[Source]) -> Verdict {
    let said = lowest_declared(declared);
    match lowest(observed) {
        Some(seen) if seen < said => Verdict::Understated,
        _ if declared.is_empty() => Verdict::Undeclared,
        None => Verdict::Unobserved,
        Some(seen) if said < seen => Verdict::Overstated,
        Some(_) => Verdict::Consistent,
    }
}

fn lowest_declared(declared: &[Declared]) -> Class {
    declared.iter().map(|it| class_of(it.source.as_str())).min().unwrap_or(UNDECLARED)
}

fn lowest(observed: &[Source]) -> Option<Class> {
    observed.iter().map(|it| class_of(it.as_str())).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::*;

    const WORDS: [&str; 19] = [
        "operator",
        "system",
        "user",
        "agent",
        "file",
        "memory",
        "database",
        "tool",
        "tool_result",
        "mcp",
        "email",
        "message",
        "document",
        "api",
        "web",
        "search",
        "unknown",
        "Operator",
        "operator ",
    ];

    fn seen(words: &[&str]) -> Vec<Source> {
        words.iter().map(|it| Source::parse(it).unwrap()).collect()
    }

    fn said(words: &[&str]) -> Vec<Declared> {
        seen(words).into_iter().map(|source| Declared { source, detail: None }).collect()
    }

    /// Each named source has its class, most trusted first; every other word is public, also one in other letters.
    #[test]
    fn sources_have_their_class() {
        let classes = [
            (2, Class::Operator),
            (1, Class::User),
            (4, Class::FirstParty),
            (7, Class::ThirdParty),
            (5, Class::Public),
        ];
        let expected = classes.into_iter().flat_map(|(count, class)| std::iter::repeat_n(class, count));
        assert!(WORDS.into_iter().map(class_of).eq(expected));
        assert!(
            Class::Operator > Class::User
                && Class::User > Class::FirstParty
                && Class::FirstParty > Class::ThirdParty
                && Class::ThirdParty > Class::Public
        );
        let untrusted = [Class::Operator, Class::User, Class::FirstParty, Class::ThirdParty, Class::Public]
            .map(Class::is_untrusted);
        assert_eq!(untrusted, [false, false, false, true, true]);
    }

    /// What is declared and what is seen give one class and one verdict, the worst of both and the first that holds.
    #[test]
    fn accounts_are_compared_with_what_was_seen() {
        for (declared, observed, class, expected) in [
            (&["user"][..], &[][..], Class::User, Verdict::Unobserved),
            (&["operator"], &[], Class::Operator, Verdict::Unobserved),
            (&["user", "web"], &[], Class::Public, Verdict::Unobserved),
            (&[], &[], Class::FirstParty, Verdict::Undeclared),
            (&[], &["user"], Class::FirstParty, Verdict::Undeclared),
            (&[], &["file"], Class::FirstParty, Verdict::Undeclared),
            (&[], &["web"], Class::Public, Verdict::Understated),
            (&["user"], &["user"], Class::User, Verdict::Consistent),
            (&["operator"], &["tool"], Class::ThirdParty, Verdict::Understated),
            (&["user"], &["user", "email"], Class::ThirdParty, Verdict::Understated),
            (&["user", "email"], &["mcp", "user"], Class::ThirdParty, Verdict::Consistent),
            (&["email"], &["web"], Class::Public, Verdict::Understated),
            (&["web"], &["email"], Class::Public, Verdict::Overstated),
            (&["some_word"], &["user"], Class::Public, Verdict::Overstated),
        ] {
            let (declared, observed) = (said(declared), seen(observed));
            assert_eq!(
                (effective(&declared, &observed), verdict(&declared, &observed)),
                (class, expected),
                "{declared:?} {observed:?}"
            );
        }
    }

    /// Words on the wire and in storage are the contract's.
    #[test]
    fn classes_and_verdicts_are_their_words() {
        assert_eq!(
            serde_json::to_string(&[Class::ThirdParty, Class::FirstParty]).unwrap(),
            r#"["third_party","first_party"]"#
        );
        assert_eq!(Class::ThirdParty.to_string(), "third_party");
        for verdict in
            [Verdict::Understated, Verdict::Undeclared, Verdict::Unobserved, Verdict::Overstated, Verdict::Consistent]
        {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{verdict}\""));
        }
        let declared: Declared = serde_json::from_str(r#"{"source":"user"}"#).unwrap();
        assert_eq!(serde_json::to_string(&declared).unwrap(), r#"{"source":"user"}"#);
    }

    proptest! {
        /// Declaring or seeing more never raises the class.
        #[test]
        fn more_content_never_raises_the_class(
            declared in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 1..5),
            observed in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..5),
            more in prop::sample::select(WORDS.to_vec()),
        ) {
            let base = effective(&said(&declared), &seen(&observed));
            let after = [declared.clone(), vec![more]].concat();
            prop_assert!(effective(&said(&after), &seen(&observed)) <= base);
            prop_assert!(effective(&said(&declared), &seen(&[observed.clone(), vec![more]].concat())) <= base);
            let none: Class = effective(&[], &seen(&observed));
            prop_assert!(none <= class_of("agent"));
        }
    }
}
