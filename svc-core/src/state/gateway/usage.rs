//! What a call used, in one normal form: kinds of tokens that do not overlap, whatever a provider counts within what.

use serde::{Deserialize, Serialize};

/// Tokens by kind; no token is counted under two (CONTRACT part 2, "Usage").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Usage {
    /// Input that no cache knew or kept.
    pub input: u64,
    /// Input read from a cache.
    pub cached_input: u64,
    /// Input written to a cache for five minutes.
    pub cache_write: u64,
    /// Input written to a cache for an hour.
    pub cache_write_long: u64,
    /// Output that the caller sees: texts and tool calls.
    pub output: u64,
    /// Output spent on thinking.
    pub reasoning: u64,
    /// Whether any of it is an estimate, because the provider told nothing or nothing believable.
    pub estimated: bool,
}

/// How a provider says that it has served a call, as far as prices go by it; in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The tier of service.
    pub tier: Option<Box<str>>,
    /// How fast.
    pub speed: Option<Box<str>>,
    /// Where its model ran.
    pub geo: Option<Box<str>>,
    /// Whether its answer has pictures, be it that nobody asked for any.
    pub drew: bool,
}

impl Usage {
    /// Whether nothing was used: what a row leaves out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All that went in: what a price's tier goes by.
    #[must_use]
    pub const fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cached_input)
            .saturating_add(self.cache_write)
            .saturating_add(self.cache_write_long)
    }

    /// All that came out.
    #[must_use]
    pub const fn all_output(&self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }

    /// Both together, kind by kind; an estimate stays one.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached_input: self.cached_input.saturating_add(other.cached_input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_long: self.cache_write_long.saturating_add(other.cache_write_long),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            estimated: self.estimated || other.estimated,
        }
    }

    /// This without the other, kind by kind and none below zero; a sum of which an estimate is taken stays one.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cached_input: self.cached_input.saturating_sub(other.cached_input),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            cache_write_long: self.cache_write_long.saturating_sub(other.cache_write_long),
            output: self.output.saturating_sub(other.output),
            reasoning: self.reasoning.saturating_sub(other.reasoning),
            estimated: self.estimated,
        }
    }
}
