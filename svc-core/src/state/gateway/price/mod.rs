//! What models cost: whole micros per million tokens, by kind, and fees.
//!
//! **Invariant:** nothing is free because nobody said what it costs: what has no price is [`Unpriced`].

mod bound;
mod cost;
mod faults;
mod percent;
mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::bound::{
    Received, charged_input, estimate, estimate_of_whole, input_bound, likely_input, output_bound, output_room,
    tokens_of, worst_case,
};
pub use self::cost::{Fees, Unpriced};
pub use self::percent::Percent;
use crate::value::MicroUsd;

/// Micros per million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenPrices {
    /// Input.
    pub input: MicroUsd,
    /// Input from a cache; without it as input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<MicroUsd>,
    /// Input written to a cache for five minutes; without it as input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<MicroUsd>,
    /// Input written to a cache for an hour; without it as for five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<MicroUsd>,
    /// Output.
    pub output: MicroUsd,
    /// Output spent on thinking; without it as output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<MicroUsd>,
}

/// Prices of a call whose whole input passes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriceTier {
    /// Above so many tokens of input of every kind.
    pub above_input_tokens: u64,
    /// The prices of the whole call then.
    pub prices: TokenPrices,
}

/// Prices of calls that ask for another tier of service than the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServicePrices {
    /// By kind of token.
    pub tokens: TokenPrices,
    /// By length of the input, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// A model's prices (CONTRACT part 2, "Prices").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// By kind of token.
    pub tokens: TokenPrices,
    /// Micros an image that goes in, beside its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_image: Option<MicroUsd>,
    /// Micros a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_request: Option<MicroUsd>,
    /// Micros a second of audio that goes in, beside its tokens; without it a call with audio is unpriced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_audio_second: Option<MicroUsd>,
    /// Micros per million tokens of output where the answer is spoken; without it such a call is unpriced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_output: Option<MicroUsd>,
    /// Micros per million tokens of output where the answer has pictures; without it such a call is unpriced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_output: Option<MicroUsd>,
    /// Micros a use of each tool that the provider runs itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Box<str>, MicroUsd>,
    /// By length of the input, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
    /// By tier of service, in the provider's words: `flex`, `priority`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service_tiers: BTreeMap<Box<str>, ServicePrices>,
    /// What the prices of tokens are there, where a call is run where it asks to be, in the provider's words: `us`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inference_geos: BTreeMap<Box<str>, Percent>,
    /// Whether the provider writes its cache without being asked, so that any call may meet the price of that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub caches_unasked: bool,
}

impl TokenPrices {
    /// Micros per million tokens read from a cache.
    #[must_use]
    pub fn cached_input(&self) -> MicroUsd {
        self.cached_input.unwrap_or(self.input)
    }

    /// Micros per million tokens written to a cache for five minutes.
    #[must_use]
    pub fn cache_write(&self) -> MicroUsd {
        self.cache_write.unwrap_or(self.input)
    }

    /// Micros per million tokens written to a cache for an hour.
    #[must_use]
    pub fn cache_write_long(&self) -> MicroUsd {
        self.cache_write_long.unwrap_or_else(|| self.cache_write())
    }

    /// Micros per million tokens of thinking.
    #[must_use]
    pub fn reasoning(&self) -> MicroUsd {
        self.reasoning.unwrap_or(self.output)
    }

    /// This part of every one of them, rounded up.
    #[must_use]
    pub fn part(&self, part: Percent) -> Self {
        Self {
            input: part.of(self.input),
            cached_input: self.cached_input.map(|it| part.of(it)),
            cache_write: self.cache_write.map(|it| part.of(it)),
            cache_write_long: self.cache_write_long.map(|it| part.of(it)),
            output: part.of(self.output),
            reasoning: self.reasoning.map(|it| part.of(it)),
        }
    }
}

/// Whether this is a word by which providers call the tier of service that the plain prices are for.
pub(crate) fn is_default_service(tier: &str) -> bool {
    matches!(tier, "default" | "on_demand" | "standard" | "standard_only")
}

/// Whether this is a word by which providers say that they run a call wherever they have room, for which the plain prices are.
fn is_anywhere(geo: &str) -> bool {
    matches!(geo, "global" | "not_available")
}

#[cfg(test)]
mod tests;
