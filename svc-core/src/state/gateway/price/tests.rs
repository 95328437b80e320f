//! Costs beside a calculation of their own, at the lines of tiers and at the ends of the numbers; bounds above costs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]

mod provider;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::state::gateway::{
    CacheWrites, Demand, Dialect, Figures, Model, OutputBound, Quality, Retention, Service, Usage,
};
use crate::value::id::UpstreamId;
use crate::value::json::Json;
use crate::value::text::ModelName;
use crate::value::{Id, Timestamp};

/// A price list as the test has it: input, cached, write, long write, output, reasoning.
type List = [Option<u64>; 6];

/// At a provider of the request's own shape.
fn worst_case(model: &Model, demand: &Demand) -> Result<MicroUsd, Unpriced> {
    super::worst_case(model, demand.dialect, demand)
}

fn micros(value: u64) -> MicroUsd {
    MicroUsd::new(value)
}

fn prices_of(list: List) -> TokenPrices {
    let price = |place: usize| list[place].map(MicroUsd::new);
    TokenPrices {
        input: price(0).unwrap(),
        cached_input: price(1),
        cache_write: price(2),
        cache_write_long: price(3),
        output: price(4).unwrap(),
        reasoning: price(5),
    }
}

fn plain(input: u64, output: u64) -> Prices {
    Prices {
        tokens: TokenPrices { input: micros(input), output: micros(output), ..TokenPrices::default() },
        ..Prices::default()
    }
}

fn model(prices: Prices) -> Model {
    Model {
        name: ModelName::parse("m").unwrap(),
        upstream: UpstreamId::from_bits(7),
        aliases: BTreeSet::new(),
        jurisdiction: "unknown".into(),
        context_window: 128_000,
        max_output: 8_192,
        capabilities: BTreeSet::new(),
        retention: Retention::Days(None),
        quality: Quality { general: 50, by_class: BTreeMap::new() },
        prices: Some(prices),
        figures: Figures { image: 1_000, page: 2_000, audio_second: 32 },
        enabled: true,
        created_by: None,
        created_at: Timestamp::from_millis(0),
    }
}

fn demand() -> Demand {
    Demand::plain("m", 1_000, OutputBound { tokens: Some(100), likely: None })
}

/// What a call costs, reckoned here from lists: thousand-million-fold micros in one sum, and a remainder that rounds up.
fn reckoned(list: List, tiers: &[(u64, List)], used: [u64; 6], fees: &[(u64, u64)]) -> u64 {
    let all: u64 = used[..4].iter().sum();
    let mut holds = list;
    for (line, list) in tiers {
        if *line < all {
            holds = *list;
        }
    }
    let fallback = [None, Some(0), Some(0), Some(2), None, Some(4)];
    let price = |mut place: usize| loop {
        match (holds[place], fallback[place]) {
            (Some(price), _) => return u128::from(price),
            (None, Some(next)) => place = next,
            (None, None) => panic!("a price is missing"),
        }
    };
    let millionths: u128 = (0..6).map(|place| u128::from(used[place]) * price(place)).sum();
    let whole = millionths / 1_000_000 + u128::from(!millionths.is_multiple_of(1_000_000));
    let fees: u128 = fees.iter().map(|(count, price)| u128::from(*count) * u128::from(*price)).sum();
    u64::try_from(whole + fees).unwrap()
}

/// Numbers that can be had again (SplitMix64).
struct Dice(u64);

impl Dice {
    const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, below: u64) -> usize {
        usize::try_from(self.bits() % below).unwrap_or(0)
    }

    fn chance(&mut self, per_mille: u64) -> bool {
        self.bits() % 1_000 < per_mille
    }
}

fn any_list(dice: &mut Dice) -> List {
    let mut list = [None; 6];
    for (place, price) in list.iter_mut().enumerate() {
        if place == 0 || place == 4 || dice.chance(500) {
            *price = Some(dice.bits() % [10, 1_000, 3_000_000, 200_000_000][dice.below(4)]);
        }
    }
    list
}

/// A thousand calls with prices, tiers, usage and fees by chance cost what a calculation of its own says, to the micro.
#[test]
fn a_thousand_calls_cost_what_another_calculation_says() {
    let mut dice = Dice::new(20_261_121);
    for round in 0..1_000 {
        let list = any_list(&mut dice);
        let mut lines: Vec<u64> = (0..dice.below(4)).map(|_| 1 + dice.bits() % 400_000).collect();
        lines.sort_unstable();
        lines.dedup();
        let tiers: Vec<(u64, List)> = lines.into_iter().map(|line| (line, any_list(&mut dice))).collect();
        let mut used = [0; 6];
        for tokens in &mut used {
            *tokens = if dice.chance(700) { dice.bits() % 150_000 } else { 0 };
        }
        let (image, request, search) = (dice.bits() % 9_000, dice.bits() % 50, dice.bits() % 20_000);
        let (images, requests, searches) = (dice.below(9) as u32, dice.below(3) as u32, dice.bits() % 7);
        let prices = Prices {
            tokens: prices_of(list),
            per_image: Some(micros(image)),
            per_request: Some(micros(request)),
            tools: BTreeMap::from([("web_search".into(), micros(search))]),
            tiers: tiers
                .iter()
                .map(|(line, list)| PriceTier { above_input_tokens: *line, prices: prices_of(*list) })
                .collect(),
            ..Prices::default()
        };
        assert_eq!(prices.faults(), [], "round {round}");
        let usage = Usage {
            input: used[0],
            cached_input: used[1],
            cache_write: used[2],
            cache_write_long: used[3],
            output: used[4],
            reasoning: used[5],
            estimated: false,
        };
        let tools = BTreeMap::from([("web_search".into(), searches)]);
        let fees = Fees { images, requests, tools, ..Fees::default() };
        let charged = [(u64::from(images), image), (u64::from(requests), request), (searches, search)];
        let expected = reckoned(list, &tiers, used, &charged);
        assert_eq!(prices.cost(&usage, &fees).unwrap().get(), expected, "round {round}: {prices:?} {usage:?}");
    }
}

/// All kinds are added up before the one division, which rounds up: six parts of a micro are one micro, not six.
#[test]
fn a_call_is_rounded_up_once() {
    let prices = plain(100_000, 100_000);
    let each = |n| Usage {
        input: n,
        cached_input: n,
        cache_write: n,
        cache_write_long: n,
        output: n,
        reasoning: n,
        estimated: false,
    };
    assert_eq!(prices.cost(&each(0), &Fees::default()).unwrap(), MicroUsd::ZERO);
    assert_eq!(prices.cost(&each(1), &Fees::default()).unwrap(), micros(1));
    assert_eq!(prices.cost(&each(2), &Fees::default()).unwrap(), micros(2));
}

/// A tier begins above its line, goes by input of every kind, and holds for the whole call.
#[test]
fn a_tier_begins_above_its_line() {
    let tier = PriceTier { above_input_tokens: 200_000, prices: plain(2_000_000, 4_000_000).tokens };
    let prices = Prices { tiers: vec![tier], ..plain(1_000_000, 2_000_000) };
    let cost = |input, cached_input, output| {
        let usage = Usage { input, cached_input, output, ..Usage::default() };
        prices.cost(&usage, &Fees::default()).unwrap().get()
    };
    assert_eq!(cost(200_000, 0, 10), 200_020);
    assert_eq!(cost(100_000, 100_001, 10), 400_042);
    assert_eq!(cost(0, 0, 1_000_000), 2_000_000);
}

/// Numbers at the end of 64 bits are counted in 128, and what is beyond any amount is the largest, never a small one.
#[test]
fn the_largest_numbers_do_not_wrap() {
    let huge = Usage { input: u64::MAX, output: u64::MAX, reasoning: u64::MAX, ..Usage::default() };
    let fees = Fees::default();
    assert_eq!(plain(0, 0).cost(&huge, &fees).unwrap(), MicroUsd::ZERO);
    assert_eq!(plain(1, 0).cost(&huge, &fees).unwrap().get(), u64::MAX / 1_000_000 + 1);
    assert_eq!(plain(u64::MAX, u64::MAX).cost(&huge, &fees).unwrap(), MicroUsd::MAX);
    // A price that is beyond what can be counted is not taken for the largest that can be.
    let one = Usage { input: 1, ..Usage::default() };
    assert_eq!(plain(u64::MAX, 1).cost(&one, &fees).unwrap(), MicroUsd::MAX);
    assert_eq!(plain(u64::MAX, 1).cost(&Usage::default(), &fees).unwrap(), MicroUsd::ZERO);
    assert_eq!(worst_case(&model(plain(1, u64::MAX)), &demand()).unwrap(), MicroUsd::MAX);
    let tools = BTreeMap::from([("x".into(), u64::MAX)]);
    let priced = Prices { tools: BTreeMap::from([("x".into(), MicroUsd::MAX)]), ..plain(1, 1) };
    assert_eq!(priced.cost(&Usage::default(), &Fees { tools, ..fees }).unwrap(), MicroUsd::MAX);
    let asked = Demand { text_bytes: u64::MAX, images: u32::MAX, answers: u32::MAX, ..demand() };
    let asked = Demand { output: OutputBound { tokens: Some(u64::MAX), likely: None }, ..asked };
    assert_eq!(worst_case(&model(plain(u64::MAX, u64::MAX)), &asked).unwrap(), MicroUsd::MAX);
}

/// A tool, a tier of service or a modality without a price makes a call unpriced, also before it is made; a price of
/// nothing is a price.
#[test]
fn what_has_no_price_is_never_free() {
    let prices = plain(1_000_000, 1_000_000);
    let tool: Box<str> = "web_search".into();
    let used = Fees { tools: BTreeMap::from([(tool.clone(), 1)]), ..Fees::default() };
    let cost = |prices: &Prices, fees: &Fees| prices.cost(&Usage::default(), fees);
    assert_eq!(cost(&prices, &used), Err(Unpriced::ServerTool(tool.clone())));
    let enabled = Demand { server_tools: BTreeMap::from([(tool.clone(), Some(3))]), ..demand() };
    assert_eq!(worst_case(&model(prices.clone()), &enabled), Err(Unpriced::ServerTool(tool.clone())));
    let free = Prices { tools: BTreeMap::from([(tool.clone(), MicroUsd::ZERO)]), ..prices.clone() };
    assert_eq!(cost(&free, &used), Ok(MicroUsd::ZERO));
    let fee = Prices { tools: BTreeMap::from([(tool, micros(10_000))]), ..prices.clone() };
    assert_eq!(worst_case(&model(fee), &enabled), Ok(micros(128_000 + 100 + 3 * 10_000)));

    let flex = Fees { service_tier: Some("flex".into()), ..Fees::default() };
    assert_eq!(cost(&prices, &flex), Err(Unpriced::ServiceTier("flex".into())));
    let asked = Demand { service_tier: Some("flex".into()), ..demand() };
    assert_eq!(worst_case(&model(prices.clone()), &asked), Err(Unpriced::ServiceTier("flex".into())));
    for tier in ["default", "on_demand", "standard", "standard_only"] {
        assert_eq!(cost(&prices, &Fees { service_tier: Some(tier.into()), ..Fees::default() }), Ok(MicroUsd::ZERO));
    }

    let there = Demand { inference_geo: Some("us".into()), ..demand() };
    let ran = |geo: &str| Fees { inference_geo: Some(geo.into()), ..Fees::default() };
    assert_eq!(cost(&prices, &ran("us")), Err(Unpriced::InferenceGeo("us".into())));
    assert_eq!(worst_case(&model(prices.clone()), &there), Err(Unpriced::InferenceGeo("us".into())));
    for anywhere in ["global", "not_available"] {
        assert_eq!(cost(&prices, &ran(anywhere)), Ok(MicroUsd::ZERO));
    }

    assert_eq!(cost(&prices, &Fees { audio_seconds: 1, ..Fees::default() }), Err(Unpriced::AudioInput));
    assert_eq!(cost(&prices, &Fees { spoken: true, ..Fees::default() }), Err(Unpriced::AudioOutput));
    let heard = Demand { audio_seconds: 2, ..demand() };
    assert_eq!(worst_case(&model(prices.clone()), &heard), Err(Unpriced::AudioInput));
    let spoken = Demand { spoken: true, ..demand() };
    assert_eq!(worst_case(&model(prices.clone()), &spoken), Err(Unpriced::AudioOutput));
    assert_eq!(cost(&prices, &Fees { drawn: true, ..Fees::default() }), Err(Unpriced::ImageOutput));
    let drawn = Demand { drawn: true, ..demand() };
    assert_eq!(worst_case(&model(prices.clone()), &drawn), Err(Unpriced::ImageOutput));
    let priced = model(Prices { image_output: Some(micros(30_000_000)), ..prices.clone() });
    let plain = worst_case(&priced, &demand()).unwrap().get();
    let output = output_bound(&priced, &demand());
    let of_text = output * prices.tokens.output.max(prices.tokens.reasoning()).get() / 1_000_000;
    assert_eq!(worst_case(&priced, &drawn).unwrap().get(), plain - of_text + output * 30);
    let without = Model { prices: None, ..model(prices) };
    assert_eq!(worst_case(&without, &demand()), Err(Unpriced::Model));
}

/// The worst case is the contract's: bytes and figures at the dearest input price that the request can meet, every
/// answer at the dearer of output and thinking, and the fees.
#[test]
fn the_worst_case_is_what_the_contract_says() {
    let tokens = TokenPrices {
        input: micros(3_000_000),
        cached_input: Some(micros(300_000)),
        cache_write: Some(micros(3_750_000)),
        cache_write_long: Some(micros(6_000_000)),
        output: micros(15_000_000),
        reasoning: Some(micros(20_000_000)),
    };
    let dear = TokenPrices { input: micros(9_000_000), output: micros(30_000_000), ..TokenPrices::default() };
    let prices = Prices {
        tokens,
        per_image: Some(micros(11)),
        per_request: Some(micros(7)),
        tiers: vec![PriceTier { above_input_tokens: 5_000, prices: dear }],
        service_tiers: BTreeMap::from([("priority".into(), ServicePrices { tokens: dear, tiers: Vec::new() })]),
        ..Prices::default()
    };
    let model = model(prices);
    let worst = |demand: &Demand| worst_case(&model, demand).unwrap().get();
    assert_eq!(worst(&demand()), 1_000 * 3 + 100 * 20 + 7);
    let short = CacheWrites { short: true, long: false };
    assert_eq!(worst(&Demand { cache: short, ..demand() }), 3_750 + 2_000 + 7);
    let long = CacheWrites { short: false, long: true };
    assert_eq!(worst(&Demand { cache: long, ..demand() }), 6_000 + 2_000 + 7);
    assert_eq!(worst(&Demand { answers: 3, ..demand() }), 3_000 + 6_000 + 7);
    let pictures = Demand { images: 2, pages: 1, ..demand() };
    assert_eq!(input_bound(&model, &pictures), 5_000);
    assert_eq!(worst(&pictures), 15_000 + 2_000 + 7 + 22);
    let above = Demand { text_bytes: 1_001, ..pictures };
    assert_eq!(worst(&above), 45_009 + 3_000 + 7 + 22);
    for tier in ["priority", "auto"] {
        assert_eq!(worst(&Demand { service_tier: Some(tier.into()), ..demand() }), 9_000 + 3_000 + 7);
    }
    let foretold = Demand { predicted_bytes: 50, answers: 2, ..demand() };
    assert_eq!(worst(&foretold), 3_000 + 2 * 150 * 20 + 7);
    let other = if foretold.dialect == Dialect::Chat { Dialect::Messages } else { Dialect::Chat };
    assert_eq!(super::worst_case(&model, other, &foretold), Ok(micros(3_000 + 2 * 100 * 20 + 7)));
    let open = Demand { output: OutputBound::default(), ..demand() };
    assert_eq!(output_bound(&model, &open), 8_192);
    assert_eq!(worst(&open), 3_000 + 8_192 * 20 + 7);
}

/// Where a call is run is priced as a part of all prices of tokens and of no fee, in one division with them; what the provider says
/// of it counts before what was asked, and in the other shape nothing is asked.
#[test]
fn a_place_to_run_at_is_a_part_of_the_prices() {
    let prices = Prices {
        per_request: Some(micros(7)),
        service_tiers: BTreeMap::from([(
            "fast".into(),
            ServicePrices { tokens: plain(6_000_000, 30_000_000).tokens, tiers: Vec::new() },
        )]),
        inference_geos: BTreeMap::from([("us".into(), Percent::new(110).unwrap())]),
        ..plain(3_000_000, 15_000_000)
    };
    let row = model(prices.clone());
    let there = Demand { inference_geo: Some("us".into()), ..demand() };
    assert_eq!(worst_case(&row, &there), Ok(micros((3_000 + 1_500) * 11 / 10 + 7)));
    let other = if there.dialect == Dialect::Chat { Dialect::Messages } else { Dialect::Chat };
    assert_eq!(super::worst_case(&row, other, &there), Ok(micros(4_507)));
    let fast = Demand { speed: Some("fast".into()), ..there.clone() };
    assert_eq!(worst_case(&row, &fast), Ok(micros((6_000 + 3_000) * 11 / 10 + 7)));
    assert_eq!(super::worst_case(&row, other, &fast), Ok(micros(4_507)));

    let usage = Usage { input: 1, output: 1, ..Usage::default() };
    let word = |it: &str| (!it.is_empty()).then(|| it.into());
    let told = |tier: &str, speed: &str, geo: &str| Service {
        tier: word(tier),
        speed: word(speed),
        geo: word(geo),
        drew: false,
    };
    for (asked, at, service, micros_) in [
        (&there, there.dialect, told("", "", ""), 20),
        (&there, there.dialect, told("standard", "", "global"), 18),
        (&demand(), there.dialect, told("", "", "us"), 20),
        (&there, other, told("", "", ""), 18),
        (&fast, there.dialect, told("standard", "", "us"), 40),
        (&fast, there.dialect, told("standard", "fast", "global"), 36),
        (&fast, there.dialect, told("standard", "standard", "us"), 20),
        (&fast, there.dialect, told("", "standard", "us"), 20),
        (&fast, other, told("", "", ""), 18),
    ] {
        let fees = Fees { requests: 0, ..Fees::served(asked, at, &service, BTreeMap::new()) };
        assert_eq!(prices.cost(&usage, &fees), Ok(micros(micros_)), "{at:?} {service:?}");
    }
    for (whole, part, of) in
        [(0, 1, 0), (1, 1, 1), (10, 110, 11), (11, 110, 13), (u64::MAX, 1_000, u64::MAX), (u64::MAX, 1, u64::MAX)]
    {
        assert_eq!(Percent::new(part).unwrap().of(micros(whole)), micros(of));
    }
    assert!(Percent::new(0).is_err() && Percent::new(1_001).is_err());
}

/// Pictures that came cost what pictures do, also where nobody asked for them; without a price for them that is told.
#[test]
fn pictures_that_nobody_asked_for_have_their_price() {
    let (plain, usage) = (plain(3_000_000, 15_000_000), Usage { output: 1_000, ..Usage::default() });
    let cost = |prices: &Prices, drew: bool| {
        let told = Service { drew, ..Service::default() };
        prices.cost(&usage, &Fees { requests: 0, ..Fees::served(&demand(), Dialect::Chat, &told, BTreeMap::new()) })
    };
    let priced = Prices { image_output: Some(micros(30_000_000)), ..plain.clone() };
    assert_eq!((cost(&plain, false), cost(&priced, false)), (Ok(micros(15_000)), Ok(micros(15_000))));
    assert_eq!((cost(&plain, true), cost(&priced, true)), (Err(Unpriced::ImageOutput), Ok(micros(30_000))));
}

/// Prices of every kind.
fn any_prices(dice: &mut Dice) -> Prices {
    let tiers = |dice: &mut Dice| {
        let mut lines: Vec<u64> = (0..dice.below(3)).map(|_| 1 + dice.bits() % 20_000).collect();
        lines.sort_unstable();
        lines.dedup();
        let mut tier = |line| PriceTier { above_input_tokens: line, prices: prices_of(any_list(dice)) };
        lines.into_iter().map(&mut tier).collect::<Vec<_>>()
    };
    let flex = ServicePrices { tokens: prices_of(any_list(dice)), tiers: tiers(dice) };
    Prices {
        tokens: prices_of(any_list(dice)),
        per_image: Some(micros(dice.bits() % 500)),
        per_request: Some(micros(dice.bits() % 500)),
        per_audio_second: Some(micros(dice.bits() % 500)),
        audio_output: Some(micros(dice.bits() % 90_000_000)),
        image_output: Some(micros(dice.bits() % 90_000_000)),
        tools: BTreeMap::from([("search".into(), micros(dice.bits() % 10_000))]),
        tiers: tiers(dice),
        service_tiers: BTreeMap::from([("flex".into(), flex)]),
        inference_geos: BTreeMap::from([("us".into(), Percent::new(1 + dice.bits() % 300).unwrap())]),
        caches_unasked: dice.chance(300),
    }
}

/// Whatever a call uses within its bounds, it costs at most its worst case.
#[test]
fn no_call_within_its_bounds_costs_more_than_its_worst_case() {
    let mut dice = Dice::new(7);
    for round in 0..2_000 {
        let prices = any_prices(&mut dice);
        let geo = [None, Some("global"), Some("us")][dice.below(3)];
        let tier = [None, Some("flex"), Some("auto"), Some("default")][dice.below(4)];
        let at = [Dialect::Chat, Dialect::Messages][dice.below(2)];
        let asked = Demand {
            dialect: at,
            text_bytes: dice.bits() % 30_000,
            images: dice.below(3) as u32,
            pages: dice.below(3) as u32,
            audio_seconds: dice.below(60) as u32,
            output: OutputBound { tokens: Some(dice.bits() % 5_000), likely: None },
            answers: 1 + dice.below(3) as u32,
            cache: CacheWrites { short: dice.chance(500), long: dice.chance(500) },
            spoken: dice.chance(300),
            drawn: dice.chance(300),
            server_tools: BTreeMap::from([("search".into(), dice.chance(700).then(|| dice.below(5) as u32))]),
            sums_up: dice.chance(300),
            service_tier: tier.map(Into::into),
            inference_geo: geo.map(Into::into),
            ..demand()
        };
        let model = model(prices.clone());
        let passes = 1 + u64::from(asked.sums_up);
        let mut left = input_bound(&model, &asked).max(model.context_window) * passes;
        let mut some = |allowed: bool| {
            let part = if allowed && left > 0 { dice.bits() % (left + 1) } else { 0 };
            left -= part;
            part
        };
        let mut usage = Usage {
            cached_input: some(true),
            cache_write: some(asked.cache.short || prices.caches_unasked),
            cache_write_long: some(asked.cache.long),
            ..Usage::default()
        };
        usage.input = some(true);
        let output = output_bound(&model, &asked) * (u64::from(asked.answers) + u64::from(asked.sums_up));
        usage.reasoning = dice.bits() % (output + 1);
        usage.output = output - usage.reasoning;
        let uses = asked.server_tools["search"].unwrap_or(if at == Dialect::Messages { 10 } else { 1 });
        let fees = Fees {
            images: asked.images,
            audio_seconds: asked.audio_seconds,
            spoken: asked.spoken,
            drawn: asked.drawn,
            requests: 1,
            tools: BTreeMap::from([("search".into(), u64::from(uses))]),
            service_tier: tier.filter(|it| *it != "auto").filter(|_| dice.chance(700)).map(Into::into),
            inference_geo: geo.map(Into::into),
        };
        let worst = super::worst_case(&model, at, &asked).unwrap();
        let cost = prices.cost(&usage, &fees).unwrap();
        assert!(cost <= worst, "round {round}: {cost} > {worst}: {asked:?} {usage:?} {prices:?}");
    }
}

/// Without final usage a quarter of the input bound is charged, or the provider's own figure; and of the output what
/// was received, or what the model makes in the time, within the call's bound, if that is more.
#[test]
fn a_call_without_final_usage_is_charged_the_contracts_estimate() {
    let model = model(plain(1, 1));
    let bare = estimate(&model, &demand(), &Received { tokens: 12, ..Received::default() });
    assert_eq!(bare, Usage { input: 250, output: 12, estimated: true, ..Usage::default() });
    let slow = Received { tokens: 12, elapsed_ms: 1_501, tokens_per_second: 40, ..Received::default() };
    assert_eq!(estimate(&model, &demand(), &slow).output, 61);
    let told = Usage { input: 5, cached_input: 800, cache_write: 9, output: 1, reasoning: 3, ..Usage::default() };
    let began = Received { reported: Some(told), tokens: 12, ..Received::default() };
    let charged = estimate(&model, &demand(), &began);
    assert_eq!(charged, Usage { output: 9, estimated: true, ..told });
    let blind = Usage { output: 10, reasoning: 490, ..Usage::default() };
    let half = Received { reported: Some(blind), tokens: 2, ..Received::default() };
    assert_eq!(estimate(&model, &demand(), &half), Usage { input: 250, estimated: true, ..blind });
    let silent = Received { reported: Some(Usage::default()), ..Received::default() };
    assert_eq!(estimate(&model, &demand(), &silent).input, 250);
    let endless = Received { elapsed_ms: u64::MAX, tokens_per_second: u64::MAX, ..Received::default() };
    assert_eq!(estimate(&model, &demand(), &endless).output, 100, "no more than the call may have");
    let three = Demand { answers: 3, ..demand() };
    assert_eq!(estimate(&model, &three, &endless).output, 300);
    let passed = Received { tokens: 120, ..endless };
    assert_eq!(estimate(&model, &demand(), &passed).output, 120, "what came came");
}

/// A document is bounded by the most pages that it can have, of which no model takes in more than it takes in at all. Whether it finds
/// room goes by the pages that it is likely to have; what is charged without final usage does not, as it may lie about them, and is
/// no more than the model takes in.
#[test]
fn a_document_has_a_bound_and_an_estimate() {
    let model = model(plain(1, 1));
    let few = Demand { pages: 60, pages_likely: 3, ..demand() };
    assert_eq!((input_bound(&model, &few), likely_input(&model, &few)), (121_000, 250 + 1_500));
    let many = Demand { pages: 600, ..few.clone() };
    assert_eq!((input_bound(&model, &many), likely_input(&model, &many)), (129_000, 250 + 1_500));
    let charged = |demand: &Demand| estimate(&model, demand, &Received::default()).input;
    assert_eq!((charged(&few), charged(&many)), (121_000 / 4, 129_000 / 4));
    assert_eq!(charged(&Demand { pages_likely: 600, ..many }), 129_000 / 4, "whatever it says");
    assert_eq!(charged(&Demand { images: 1_000, text_bytes: 9_000_000, ..demand() }), 128_000);
}

/// Prices that are none name every fault with its path.
#[test]
fn prices_that_are_none_name_every_fault() {
    let tier = |line| PriceTier { above_input_tokens: line, prices: plain(1, 1).tokens };
    let tokens = plain(1, 1).tokens;
    let bad = Prices {
        tools: BTreeMap::from([("a b".into(), MicroUsd::ZERO), ("x".into(), MicroUsd::MAX)]),
        tiers: vec![tier(0), tier(10), tier(10)],
        service_tiers: BTreeMap::from([("flex".into(), ServicePrices { tokens, tiers: vec![tier(0)] })]),
        ..Prices::default()
    };
    let fields: Vec<String> = bad.faults().iter().map(|it| it.field.as_deref().unwrap().to_owned()).collect();
    assert_eq!(
        fields,
        ["tools", "tiers.0.aboveInputTokens", "tiers.2.aboveInputTokens", "serviceTiers.flex.tiers.0.aboveInputTokens",]
    );
}

/// Prices are read from JSON as they are written there, and everything that is wrong with them is named by its path.
#[test]
fn prices_are_read_and_every_fault_is_named() {
    let read = |text: &str| {
        let mut faults = Vec::new();
        let prices = Prices::read(&Json::parse(text.as_bytes()).unwrap(), "prices", &mut faults);
        (prices, faults.iter().map(|it| it.message.clone().into_owned()).collect::<Vec<_>>())
    };
    let (prices, faults) = read(
        r#"{"input":3000000,"cachedInput":300000,"cacheWrite":3750000,"cacheWriteLong":6000000,"output":15000000,
            "reasoning":null,"perRequest":1,"tools":{"web_search":10000},"cachesUnasked":true,
            "tiers":[{"aboveInputTokens":200000,"prices":{"input":6000000,"output":22500000}}],
            "serviceTiers":{"flex":{"input":1,"output":2}},"inferenceGeos":{"us":110}}"#,
    );
    assert_eq!(faults, <[String; 0]>::default());
    let prices = prices.unwrap();
    let list = [Some(3_000_000), Some(300_000), Some(3_750_000), Some(6_000_000), Some(15_000_000), None];
    assert_eq!((prices.tokens, prices.per_request, prices.caches_unasked), (prices_of(list), Some(micros(1)), true));
    assert_eq!(prices.tiers[0].prices.output, micros(22_500_000));
    assert_eq!(prices.service_tiers["flex"].tokens.output, micros(2));
    assert_eq!(prices.tools["web_search"], micros(10_000));
    assert_eq!(prices.inference_geos["us"].get(), 110);

    let (none, faults) = read(
        r#"{"input":-1,"cachedInput":0.5,"perImage":"1","perToken":1,"tools":{"x":1e3},"cachesUnasked":1,
            "tiers":[{"aboveInputTokens":5,"prices":{"input":1}},{"prices":{"input":1,"output":2,"perImage":3}}],
            "serviceTiers":[],"inferenceGeos":{"us":1.1,"eu":0}}"#,
    );
    assert!(none.is_none());
    for (place, path) in [
        "prices.perToken",
        "prices.input",
        "prices.cachedInput",
        "prices.output",
        "prices.perImage",
        "prices.tools.x",
        "prices.tiers.0.prices.output",
        "prices.tiers.1.prices.perImage",
        "prices.tiers.1.aboveInputTokens",
        "prices.serviceTiers",
        "prices.inferenceGeos.us",
        "prices.inferenceGeos.eu",
        "prices.cachesUnasked",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(faults.get(place).is_some_and(|it| it.starts_with(&format!("`{path}` "))), "{place}: {faults:?}");
    }
    assert_eq!(faults.len(), 13, "{faults:?}");
    let (none, faults) = read(
        r#"{"input":1,"output":1,"tiers":[{"aboveInputTokens":5,"prices":{"input":1,"output":1}},
            {"aboveInputTokens":5,"prices":{"input":1,"output":1}}]}"#,
    );
    assert!(none.is_none());
    assert_eq!(faults, ["`prices.tiers.1.aboveInputTokens` must be above the tier before it"]);
}
