//! Where the content that an agent acts on came from: what it declares, what was seen, and what follows.
//!
//! **Invariant:** the effective class is never above anything declared or observed: a claim only ever narrows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::text::{Detail, Source};

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

impl Verdict {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Understated => "understated",
            Self::Undeclared => "undeclared",
            Self::Unobserved => "unobserved",
            Self::Overstated => "overstated",
            Self::Consistent => "consistent",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The class of a source by its word (CONTRACT part 2, "Provenance"). A word that is not named there, in other letters
/// even, could be anything and is `public`.
#[must_use]
pub fn class_of(source: &str) -> Class {
    match source {
        "operator" | "system" => Class::Operator,
        "user" => Class::User,
        "agent" | "file" | "memory" | "database" => Class::FirstParty,
        "tool" | "tool_result" | "mcp" | "email" | "message" | "document" | "api" => Class::ThirdParty,
        _ => Class::Public,
    }
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
