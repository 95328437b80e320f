//! What a call may cost at most, before it is sent; and what is charged where nobody told what it used.

use super::cost::Sum;
use super::{Fees, PriceTier, TokenPrices, Unpriced, is_default_service};
use crate::state::gateway::{Demand, Dialect, Model, Prices, Usage};
use crate::value::MicroUsd;

/// So many bytes of text a token has, roughly: what an estimate goes by. A bound goes by one.
const BYTES_A_TOKEN: u64 = 4;

/// What came back of a call before it ended without its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// What the provider told of its use until then: each side counts where it is told, its output as far as it is more than
    /// below.
    pub reported: Option<Usage>,
    /// Tokens received, all answers together.
    pub tokens: u64,
    /// Milliseconds since the call was sent.
    pub elapsed_ms: u64,
    /// Tokens a second that the model was measured at; none as long as it was not.
    pub tokens_per_second: u64,
}

/// The most tokens that can go in: a token is at least a byte of text, and pictures, pages and seconds have their
/// figures (CONTRACT part 2, "Worst case"). Of pages a model takes in at most what it takes in at all.
#[must_use]
pub fn input_bound(model: &Model, demand: &Demand) -> u64 {
    let pages = counted(demand.pages, model.figures.page).min(model.context_window);
    beside_pages(model, demand).saturating_add(pages)
}

/// The most tokens that can go in with what the provider puts in itself. What its tools bring in is not in the request, and nothing but
/// the model's context bounds it; where it sums up the conversation, all of that goes in once more. A provider that goes over the
/// context several times may still count more: nobody here can tell how often it will.
fn whole_input_bound(model: &Model, at: Dialect, demand: &Demand) -> u64 {
    let sent = input_bound(model, demand);
    let once = if demand.server_tools.is_empty() { sent } else { sent.max(model.context_window) };
    if demand.sums_up_at(at) { once.saturating_mul(2) } else { once }
}

/// How many tokens are likely to go in: a quarter of the bound, by the pages that documents are likely to have. Nothing is charged by
/// it, as a document says of itself what its writer likes.
#[must_use]
pub fn likely_input(model: &Model, demand: &Demand) -> u64 {
    tokens_of(beside_pages(model, demand).saturating_add(counted(demand.pages_likely, model.figures.page)))
}

/// The most tokens that one answer can have, thinking included: what the request sets, else the model's own limit, or what is
/// likely where nothing is sent.
#[must_use]
pub fn output_bound(model: &Model, demand: &Demand) -> u64 {
    let own = demand.output.likely.map_or(model.max_output, |it| it.min(model.max_output));
    demand.output.tokens.unwrap_or(own)
}

/// The most tokens that one answer can have of which the request does not say how long it may be: the model's own limit, as far as
/// what goes in is likely to leave room for it.
#[must_use]
pub fn output_room(model: &Model, demand: &Demand) -> u64 {
    model.max_output.min(model.context_window.saturating_sub(likely_input(model, demand))).max(1)
}

/// What an attempt may cost at most (CONTRACT part 2, "Worst case"): the input bound, with what the provider puts in itself, at the
/// dearest price that the request can meet, the output bound of every answer, and of a summary beside them, with what was foretold of
/// it, at the dearer of output and thinking, and the fees. `at` is the shape of the model's provider.
///
/// # Errors
/// [`Unpriced`] for a model, a tool of the provider's, a tier of service, a place or a modality without a price.
pub fn worst_case(model: &Model, at: Dialect, demand: &Demand) -> Result<MicroUsd, Unpriced> {
    let prices = model.prices.as_ref().ok_or(Unpriced::Model)?;
    let bound = whole_input_bound(model, at, demand);
    let mut dearest = Dearest::default();
    for (tokens, tiers) in services(prices, [demand.service_tier.as_deref(), demand.speed_at(at)])? {
        dearest.meet(prices, demand, tokens)?;
        for tier in tiers.iter().filter(|it| bound > it.above_input_tokens) {
            dearest.meet(prices, demand, &tier.prices)?;
        }
    }
    let predicted = if demand.dialect == at { demand.predicted_bytes } else { 0 };
    let output = output_bound(model, demand).saturating_add(predicted);
    let texts = demand.answers.max(1).saturating_add(demand.sums_up_at(at).into());
    let output = u128::from(output).saturating_mul(u128::from(texts));
    let mut sum =
        Sum::of_tokens(&[(u128::from(bound), dearest.input), (output, dearest.output)], prices.geo(demand.geo_at(at))?);
    prices.charge(&fees(demand, at), &mut sum)?;
    Ok(sum.micros())
}

/// What is charged for where a call ended without its final usage (CONTRACT part 2, "No final usage"): the provider's
/// own figure of the input, else [`charged_input`]; and as output the tokens received, or what the model makes in the time since it
/// was sent, at most all that the call's answers may have, if that is more. Whoever posts its cost takes at most the reservation.
#[must_use]
pub fn estimate(model: &Model, demand: &Demand, received: &Received) -> Usage {
    let made = u128::from(received.elapsed_ms).saturating_mul(u128::from(received.tokens_per_second)).div_ceil(1_000);
    let most = output_bound(model, demand).saturating_mul(u64::from(demand.answers.max(1)));
    let made = u64::try_from(made).unwrap_or(u64::MAX).min(most);
    estimate_of_whole(charged_input(model, demand), received.reported, received.tokens.max(made))
}

/// How many tokens are charged as what went in where the provider does not tell: a quarter of the bound, of which a model takes in no
/// more than it takes in at all.
#[must_use]
pub fn charged_input(model: &Model, demand: &Demand) -> u64 {
    tokens_of(input_bound(model, demand)).min(model.context_window)
}

/// The [`estimate`] for an answer that came to its end, of which nothing was made beside the `tokens` that came: what its client may be
/// told without a clock. `input` is [`charged_input`].
#[must_use]
pub fn estimate_of_whole(input: u64, reported: Option<Usage>, tokens: u64) -> Usage {
    let guess = Usage { input, ..Usage::default() };
    let input = reported.filter(|it| it.all_input() > 0).unwrap_or(guess);
    let told = reported.unwrap_or_default();
    let output = tokens.max(told.all_output());
    Usage { output: output.saturating_sub(told.reasoning), reasoning: told.reasoning, estimated: true, ..input }
}

/// About how many tokens so many bytes of text are, for estimates alone.
#[must_use]
pub const fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_A_TOKEN)
}

/// The bound of all that goes in but pages.
fn beside_pages(model: &Model, demand: &Demand) -> u64 {
    demand
        .text_bytes
        .saturating_add(counted(demand.images, model.figures.image))
        .saturating_add(counted(demand.audio_seconds, model.figures.audio_second))
}

fn counted(count: u32, each: u32) -> u64 {
    u64::from(count).saturating_mul(u64::from(each))
}

/// The fees that a request may bring: one attempt, and each tool that the provider may run, as often as the request says. Where it does
/// not, that is once a round of those in which a provider of the messages shape runs them, of which it makes so many and then asks
/// to be called again, and else once.
fn fees(demand: &Demand, at: Dialect) -> Fees {
    const ROUNDS_MAX: u32 = 10;
    let untold = if at == Dialect::Messages { ROUNDS_MAX } else { 1 };
    let uses = |most: &Option<u32>| u64::from(most.unwrap_or(untold));
    Fees {
        tools: demand.server_tools.iter().map(|(name, most)| (name.clone(), uses(most))).collect(),
        service_tier: None,
        ..Fees::sent(demand, at)
    }
}

/// The tiers of service that may answer: those that were asked for, by tier and by speed, and the default, to which a provider
/// may fall back; all of them where the provider may choose.
fn services<'a>(
    prices: &'a Prices,
    asked: [Option<&str>; 2],
) -> Result<Vec<(&'a TokenPrices, &'a [PriceTier])>, Unpriced> {
    let mut out = vec![prices.service(None)?];
    for asked in asked.into_iter().flatten() {
        match asked {
            "auto" => out.extend(prices.service_tiers.values().map(|it| (&it.tokens, it.tiers.as_slice()))),
            name if is_default_service(name) => {}
            name => out.push(prices.service(Some(name))?),
        }
    }
    Ok(out)
}

/// The dearest prices met so far.
#[derive(Default)]
struct Dearest {
    input: MicroUsd,
    output: MicroUsd,
}

impl Dearest {
    /// Takes in prices that may hold. Whether a provider reads from a cache is its own affair, so that price counts
    /// always; what it writes the request asks for, but where the provider needs no asking.
    fn meet(&mut self, prices: &Prices, demand: &Demand, tokens: &TokenPrices) -> Result<(), Unpriced> {
        let short = (demand.cache.short || prices.caches_unasked).then(|| tokens.cache_write());
        let long = demand.cache.long.then(|| tokens.cache_write_long());
        let input = [Some(tokens.input), Some(tokens.cached_input()), short, long].into_iter().flatten();
        self.input = input.fold(self.input, MicroUsd::max);
        self.output = self.output.max(prices.output(tokens, demand.spoken, demand.drawn)?).max(tokens.reasoning());
        Ok(())
    }
}
