//! What a call cost: one division, rounded up, and its fees.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Percent, PriceTier, Prices, TokenPrices, is_anywhere, is_default_service};
use crate::state::gateway::{Demand, Dialect, Service, Usage};
use crate::value::MicroUsd;

/// So many tokens a price is for.
const PER: u128 = 1_000_000;

/// What a call is charged for beside its tokens, and which prices hold for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fees {
    /// Images that went in.
    pub images: u32,
    /// Seconds of audio that went in.
    pub audio_seconds: u32,
    /// Whether the answer was spoken.
    pub spoken: bool,
    /// Whether the answer had pictures.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// Attempts that were sent and that their provider has not refused.
    pub requests: u32,
    /// Uses of each tool that the provider ran itself, by the name under which it is priced.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Box<str>, u64>,
    /// The tier of service that answered; none, `default` and `standard` stand for the plain prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Box<str>>,
    /// Where it was run; none, `global` and `not_available` stand for the plain prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference_geo: Option<Box<str>>,
}

impl Fees {
    /// What one attempt of a request brings as soon as it is sent to a provider of this shape: what goes in, the fee of the
    /// request, and the tier of service and the place that it asks for, where it does not leave these to the provider. Which tools
    /// the provider used is not known then.
    #[must_use]
    pub fn sent(demand: &Demand, at: Dialect) -> Self {
        let tier = || demand.service_tier.as_deref().filter(|it| *it != "auto");
        Self {
            images: demand.images,
            audio_seconds: demand.audio_seconds,
            spoken: demand.spoken,
            drawn: demand.drawn,
            requests: 1,
            tools: BTreeMap::new(),
            service_tier: demand.speed_at(at).or_else(tier).map(Into::into),
            inference_geo: demand.geo_at(at).map(Into::into),
        }
    }

    /// The same once it has answered: what its provider says of how it has served counts before what was asked. One that tells
    /// nothing of its speed has been as fast as it was asked to be, and pictures count also where nobody asked for them.
    #[must_use]
    pub fn served(demand: &Demand, at: Dialect, told: &Service, tools: BTreeMap<Box<str>, u64>) -> Self {
        let sent = Self::sent(demand, at);
        let speed = told.speed.as_deref().or_else(|| demand.speed_at(at)).filter(|it| !is_default_service(it));
        // Asked for was a speed, which it says it has not had.
        let asked = sent.service_tier.filter(|it| Some(&**it) != demand.speed_at(at));
        Self {
            service_tier: speed.map(Into::into).or_else(|| told.tier.clone()).or(asked),
            inference_geo: told.geo.clone().or(sent.inference_geo),
            drawn: sent.drawn || told.drew,
            tools,
            ..sent
        }
    }
}

/// Why there is no price for a call: it is refused or marked, never free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpriced {
    /// The model has no prices at all.
    Model,
    /// A tool that the provider runs itself.
    ServerTool(Box<str>),
    /// A tier of service.
    ServiceTier(Box<str>),
    /// A place to be run at.
    InferenceGeo(Box<str>),
    /// Audio that goes in.
    AudioInput,
    /// Audio that comes out.
    AudioOutput,
    /// Pictures that come out.
    ImageOutput,
}

/// For people: what a price has to be set for.
impl fmt::Display for Unpriced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => out.write_str("the model"),
            Self::ServerTool(name) => write!(out, "the provider's tool `{name}`"),
            Self::ServiceTier(name) => write!(out, "the service tier `{name}`"),
            Self::InferenceGeo(name) => write!(out, "the inference geography `{name}`"),
            Self::AudioInput => out.write_str("audio input"),
            Self::AudioOutput => out.write_str("audio output"),
            Self::ImageOutput => out.write_str("image output"),
        }
    }
}

impl Prices {
    /// What a call cost that used so much: the ceiling of the sum of tokens × price over a million, and its fees. The
    /// tier is that of all its input. What cannot be counted is the largest amount there is.
    ///
    /// # Errors
    /// [`Unpriced`] for a tool that was used, a tier of service, a place or a modality without a price.
    pub fn cost(&self, usage: &Usage, fees: &Fees) -> Result<MicroUsd, Unpriced> {
        let (cost, missing) = self.known_cost(usage, fees);
        missing.map_or(Ok(cost), Err)
    }

    /// The same of all that has a price, and the first thing that has none, if any: that is told and never taken for free.
    /// Tokens of a tier of service or at a place without a price count at the plain prices, speech and pictures without one as text.
    #[must_use]
    pub fn known_cost(&self, usage: &Usage, fees: &Fees) -> (MicroUsd, Option<Unpriced>) {
        let mut missing = None;
        let (tokens, tiers) = self.service(fees.service_tier.as_deref()).unwrap_or_else(|why| {
            missing = Some(why);
            (&self.tokens, &self.tiers)
        });
        let prices = at(tokens, tiers, usage.all_input());
        let output = self.output(prices, fees.spoken, fees.drawn).unwrap_or_else(|why| {
            missing.get_or_insert(why);
            prices.output
        });
        let percent = self.geo(fees.inference_geo.as_deref()).unwrap_or_else(|why| {
            missing.get_or_insert(why);
            Percent::WHOLE
        });
        let lines = [
            (usage.input, prices.input),
            (usage.cached_input, prices.cached_input()),
            (usage.cache_write, prices.cache_write()),
            (usage.cache_write_long, prices.cache_write_long()),
            (usage.output, output),
            (usage.reasoning, prices.reasoning()),
        ];
        let mut sum = Sum::of_tokens(&lines.map(|(tokens, price)| (u128::from(tokens), price)), percent);
        let charged = self.charge(fees, &mut sum);
        (sum.micros(), missing.or_else(|| charged.err()))
    }

    /// Adds the fees, every one that has a price.
    ///
    /// # Errors
    /// The first thing without one.
    pub(super) fn charge(&self, fees: &Fees, sum: &mut Sum) -> Result<(), Unpriced> {
        let mut missing = None;
        sum.add(u64::from(fees.images), self.per_image.unwrap_or_default());
        sum.add(u64::from(fees.requests), self.per_request.unwrap_or_default());
        if fees.audio_seconds > 0 {
            match self.per_audio_second {
                Some(price) => sum.add(u64::from(fees.audio_seconds), price),
                None => missing = Some(Unpriced::AudioInput),
            }
        }
        for (name, uses) in fees.tools.iter().filter(|(_, uses)| **uses > 0) {
            match self.tools.get(name) {
                Some(price) => sum.add(*uses, *price),
                None => missing = missing.or_else(|| Some(Unpriced::ServerTool(name.clone()))),
            }
        }
        missing.map_or(Ok(()), Err)
    }

    /// The prices of a tier of service, and those by length.
    pub(super) fn service(&self, tier: Option<&str>) -> Result<(&TokenPrices, &[PriceTier]), Unpriced> {
        match tier.filter(|it| !is_default_service(it)) {
            None => Ok((&self.tokens, &self.tiers)),
            Some(name) => match self.service_tiers.get(name) {
                Some(prices) => Ok((&prices.tokens, &prices.tiers)),
                None => Err(Unpriced::ServiceTier(name.into())),
            },
        }
    }

    /// What part of the prices of tokens a call costs that is run there.
    pub(super) fn geo(&self, geo: Option<&str>) -> Result<Percent, Unpriced> {
        match geo.filter(|it| !is_anywhere(it)) {
            None => Ok(Percent::WHOLE),
            Some(name) => self.inference_geos.get(name).copied().ok_or_else(|| Unpriced::InferenceGeo(name.into())),
        }
    }

    /// The price of output. Usage does not part speech or pictures from their text, so all of it counts as spoken where it was, and as
    /// pictures where there were some.
    pub(super) fn output(&self, prices: &TokenPrices, spoken: bool, drawn: bool) -> Result<MicroUsd, Unpriced> {
        let mut price = prices.output;
        if spoken {
            price = price.max(self.audio_output.ok_or(Unpriced::AudioOutput)?);
        }
        if drawn {
            price = price.max(self.image_output.ok_or(Unpriced::ImageOutput)?);
        }
        Ok(price)
    }
}

/// The prices that hold for a call with so much input.
fn at<'a>(tokens: &'a TokenPrices, tiers: &'a [PriceTier], all_input: u64) -> &'a TokenPrices {
    let passed = tiers.iter().rev().find(|tier| all_input > tier.above_input_tokens);
    passed.map_or(tokens, |tier| &tier.prices)
}

/// A sum of micros in 128 bits; none once it could not be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum(Option<u128>);

impl Sum {
    /// Tokens at this part of their prices: added up first, then divided once, rounded up.
    pub(super) fn of_tokens(lines: &[(u128, MicroUsd)], percent: Percent) -> Self {
        let sum = lines.iter().try_fold(0_u128, |sum, (tokens, price)| sum.checked_add(times(*tokens, *price)?));
        let sum = sum.and_then(|it| it.checked_mul(u128::from(percent.get())));
        Self(sum.map(|it| it.div_ceil(PER * u128::from(Percent::WHOLE.get()))))
    }

    /// Adds so many of one price.
    fn add(&mut self, count: u64, price: MicroUsd) {
        self.0 = self.0.and_then(|sum| sum.checked_add(times(u128::from(count), price)?));
    }

    /// The sum; one that cannot be counted is the largest amount.
    pub(super) fn micros(self) -> MicroUsd {
        self.0.and_then(|sum| u64::try_from(sum).ok()).map_or(MicroUsd::MAX, MicroUsd::new)
    }
}

/// So many at a price. The largest amount stands for every price beyond it, so what is used at that cannot be counted: taken for what it
/// says, it would be less than the price that was given.
fn times(count: u128, price: MicroUsd) -> Option<u128> {
    if price == MicroUsd::MAX && count > 0 { None } else { count.checked_mul(u128::from(price.get())) }
}
