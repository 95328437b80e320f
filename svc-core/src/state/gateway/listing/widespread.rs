//! The widespread shape: ids to objects with `input_cost_per_token` and the like, in US dollars a token.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::decimal::scaled;
use super::{LISTED_MAX, Listed, Listing, Reading};
use crate::refusal::FieldError;
use crate::state::gateway::{Capability, Figures, Percent, PriceTier, Prices, ServicePrices, TokenPrices};
use crate::value::MicroUsd;
use crate::value::text::ModelName;

/// Dollars a token are so many micros a million tokens, as a power of ten; and dollars are so many micros.
const A_MILLION_TOKENS: i32 = 12;
const ONCE: i32 = 6;
/// A part of a price is so many hundredths.
const HUNDREDTHS: i32 = 2;
/// What it says of a model, unread.
type Members = BTreeMap<String, Box<RawValue>>;
/// Prices of one tier of service and one length, by the place of their kind in [`KINDS`].
type Line = [Option<MicroUsd>; 6];
/// Kinds of tokens: input, from a cache, to one, to one for an hour, output, thinking.
const KINDS: [(&str, usize); 6] = [
    ("input_cost_per_token", 0),
    ("cache_read_input_token_cost", 1),
    ("cache_creation_input_token_cost_above_1hr", 3),
    ("cache_creation_input_token_cost", 2),
    ("output_cost_per_token", 4),
    ("output_cost_per_reasoning_token", 5),
];

/// Reads such a file. Models that do not chat, or whose price it does not have, are left out.
pub(super) fn read(text: &str) -> Result<Reading, Vec<FieldError>> {
    let shape = || vec![FieldError::whole("the file must map the ids of models to objects, or have a list `models`")];
    let models: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).map_err(|_| shape())?;
    let mut faults = Vec::new();
    let mut reading = Reading { listing: Listing::default(), skipped: Vec::new() };
    if models.len() > LISTED_MAX {
        return Err(vec![FieldError::whole(format!("the file must have at most {LISTED_MAX} models"))]);
    }
    for (id, raw) in &models {
        let Ok(members) = serde_json::from_str::<Members>(raw.get()) else {
            faults.push(FieldError::new(id.as_str(), "must be an object"));
            continue;
        };
        match model(id, &members, &mut faults) {
            Ok(listed) => drop(reading.listing.models.insert(id.as_str().into(), listed)),
            Err(why) => reading.skipped.push((id.as_str().into(), why)),
        }
    }
    if faults.is_empty() && reading.listing.models.is_empty() {
        return Err(shape());
    }
    if faults.is_empty() { Ok(reading) } else { Err(faults) }
}

/// One model, or why it is left out.
fn model(id: &str, members: &Members, faults: &mut Vec<FieldError>) -> Result<Listed, &'static str> {
    if id == "sample_spec" {
        return Err("is no model");
    }
    if word(members, "mode").is_some_and(|it| it != "chat") {
        return Err("does not chat");
    }
    if ModelName::parse(id).is_err() {
        return Err("has a name that is none");
    }
    let mut lines: BTreeMap<(Option<&str>, u64), Line> = BTreeMap::new();
    for (name, raw) in members {
        let Some((service, above, kind)) = price_of(name) else { continue };
        let price = number(id, name, raw, A_MILLION_TOKENS, faults);
        if let (Some(price), Some(slot)) = (price, lines.entry((service, above)).or_default().get_mut(kind)) {
            *slot = Some(price);
        }
    }
    let plain = lines.get(&(None, 0)).copied().unwrap_or_default();
    let base = tokens(&plain, &[]).ok_or("has no price by the token")?;
    if base.input == MicroUsd::ZERO && base.output == MicroUsd::ZERO {
        return Err("costs nothing there: set its price yourself");
    }
    let mut prices = Prices { tokens: base, tiers: tiers(&lines, None, &plain), ..Prices::default() };
    for service in ["flex", "priority"] {
        let Some(line) = lines.get(&(Some(service), 0)) else { continue };
        if let Some(tokens) = tokens(line, &[]) {
            let tiers = tiers(&lines, Some(service), line);
            prices.service_tiers.insert(service.into(), ServicePrices { tokens, tiers });
        }
    }
    fees(id, members, &mut prices, faults);
    parts(members, &mut prices);
    faults.extend(prices.faults().into_iter().map(|it| it.within(id)));
    let window = ["max_input_tokens", "max_tokens"].iter().find_map(|it| count(members, it));
    Ok(Listed {
        context_window: window,
        max_output: ["max_output_tokens", "max_tokens"].iter().find_map(|it| count(members, it)),
        capabilities: Some(capabilities(members)),
        prices: Some(prices),
        ..Listed::default()
    })
}

/// What a member's name says it is the price of: the tier of service, the input above which it holds, and the kind.
fn price_of(name: &str) -> Option<(Option<&str>, u64, usize)> {
    let (rest, kind) = KINDS.iter().find_map(|(prefix, kind)| Some((name.strip_prefix(prefix)?, *kind)))?;
    let (rest, service) = match rest.rsplit_once('_') {
        Some((before, "flex")) => (before, Some("flex")),
        Some((before, "priority")) => (before, Some("priority")),
        _ => (rest, None),
    };
    if rest.is_empty() {
        return Some((service, 0, kind));
    }
    let thousands: u64 = rest.strip_prefix("_above_")?.strip_suffix("k_tokens")?.parse().ok()?;
    Some((service, thousands.checked_mul(1_000)?, kind))
}

/// The prices of a line; what it does not say is as in those before it.
fn tokens(line: &Line, before: &[&Line]) -> Option<TokenPrices> {
    let price = |kind: usize| {
        let lines = std::iter::once(&line).chain(before);
        lines.filter_map(|line| line.get(kind).copied().flatten()).next()
    };
    Some(TokenPrices {
        input: price(0)?,
        cached_input: price(1),
        cache_write: price(2),
        cache_write_long: price(3),
        output: price(4)?,
        reasoning: price(5),
    })
}

/// The prices by length of one tier of service, ascending.
fn tiers(lines: &BTreeMap<(Option<&str>, u64), Line>, service: Option<&str>, plain: &Line) -> Vec<PriceTier> {
    let longer = lines.iter().filter(|((of, above), _)| *of == service && *above > 0);
    let tier = |((_, above), line): (&(Option<&str>, u64), &Line)| {
        Some(PriceTier { above_input_tokens: *above, prices: tokens(line, &[plain])? })
    };
    longer.filter_map(tier).collect()
}

/// Fees, and the prices of what is not text.
fn fees(id: &str, members: &Members, prices: &mut Prices, faults: &mut Vec<FieldError>) {
    let mut read = |name: &str, power: i32| number(id, name, members.get(name)?, power, faults);
    prices.per_image = read("input_cost_per_image", ONCE);
    prices.per_request = read("input_cost_per_request", ONCE);
    prices.audio_output = read("output_cost_per_audio_token", A_MILLION_TOKENS);
    prices.image_output = read("output_cost_per_image_token", A_MILLION_TOKENS);
    if let Some(audio) = read("input_cost_per_audio_token", A_MILLION_TOKENS) {
        let tokens = u64::from(Figures::default().audio_second);
        let beside = audio.less(prices.tokens.input).get().saturating_mul(tokens).div_ceil(1_000_000);
        prices.per_audio_second = Some(MicroUsd::new(beside));
    }
    if let Some(session) = read("code_interpreter_cost_per_session", ONCE) {
        prices.tools.insert("code_interpreter".into(), session);
    }
    if let Some(raw) = members.get("search_context_cost_per_query") {
        let sizes: Members = serde_json::from_str(raw.get()).unwrap_or_default();
        let dearest = sizes.iter().filter_map(|(name, raw)| number(id, name, raw, ONCE, faults)).max();
        if let Some(dearest) = dearest {
            prices.tools.insert("web_search".into(), dearest);
        }
    }
}

/// What part of its prices tokens cost at a place, named by two letters, and where the provider is to be fast. Other things stand
/// there too, so that what is no such part says nothing: a call that needs it is unpriced.
fn parts(members: &Members, prices: &mut Prices) {
    let Some(raw) = members.get("provider_specific_entry") else { return };
    let parts: Members = serde_json::from_str(raw.get()).unwrap_or_default();
    for (name, raw) in &parts {
        let Some(part) = scaled(raw.get(), HUNDREDTHS).ok().and_then(|it| Percent::new(it).ok()) else { continue };
        if name.len() == 2 && name.bytes().all(|it| it.is_ascii_lowercase()) {
            prices.inference_geos.insert(name.as_str().into(), part);
        } else if name == "fast" {
            let tiers = prices.tiers.iter().map(|it| PriceTier { prices: it.prices.part(part), ..*it }).collect();
            let fast = ServicePrices { tokens: prices.tokens.part(part), tiers };
            prices.service_tiers.insert(name.as_str().into(), fast);
        }
    }
}

/// A price, from the text of its number.
fn number(id: &str, name: &str, raw: &RawValue, power: i32, faults: &mut Vec<FieldError>) -> Option<MicroUsd> {
    let text = raw.get();
    if text == "null" {
        return None;
    }
    let text = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
    match scaled(text, power) {
        Ok(micros) => Some(MicroUsd::new(micros)),
        Err(why) => {
            faults.push(FieldError::new(format!("{id}.{name}"), why));
            None
        }
    }
}

fn word(members: &Members, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// A count of tokens; some files write texts or fractions there, which say nothing.
fn count(members: &Members, name: &str) -> Option<u64> {
    let text = members.get(name)?.get();
    scaled(text, 0).ok().filter(|it| *it > 0)
}

fn capabilities(members: &Members) -> BTreeSet<Capability> {
    let is = |name: &str| members.get(name).is_some_and(|it| it.get() == "true");
    let named = [
        ("supports_function_calling", Capability::Tools),
        ("supports_vision", Capability::Vision),
        ("supports_response_schema", Capability::Json),
        ("supports_reasoning", Capability::Reasoning),
        ("supports_audio_input", Capability::Audio),
        ("supports_audio_output", Capability::Audio),
    ];
    let mut out: BTreeSet<Capability> = named.into_iter().filter(|(name, _)| is(name)).map(|(_, it)| it).collect();
    if members.get("supports_native_streaming").is_none_or(|it| it.get() != "false") {
        out.insert(Capability::Streaming);
    }
    out
}
