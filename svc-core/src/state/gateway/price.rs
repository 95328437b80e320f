//! What models cost: whole micros per million tokens, by kind, and fees.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// A model's prices (CONTRACT part 2, "Prices").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// By kind of token.
    pub tokens: TokenPrices,
    /// Micros an image that goes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_image: Option<MicroUsd>,
    /// Micros a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_request: Option<MicroUsd>,
    /// Micros a use of each tool that the provider runs itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Box<str>, MicroUsd>,
    /// By length of the input, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}
