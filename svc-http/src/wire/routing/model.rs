//! Models and their prices.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::gateway::models::{NewModel, QUALITY, Set};
use svc_core::state::gateway::{
    Figures, Model, Percent, PriceTier, Prices, Quality, Retention, ServicePrices, TokenPrices, Upstream,
};
use svc_core::value::id::UpstreamId;
use svc_core::value::json::Json;
use svc_core::value::text::{ClassId, ModelName};
use svc_core::value::{Invalid, MicroUsd, SAFE_MAX};

use super::super::named::Names;
use super::super::{Fields, parse, parse_or_empty, text, truth};
use super::{CAPABILITIES_MAX, capability, law, put, put_texts, within};

/// Further names of one model.
const ALIASES_MAX: usize = 50;
/// Tokens that a window may have.
const TOKENS_MAX: i64 = 100_000_000;
/// Days that something may be kept.
const DAYS_MAX: i64 = 36_500;
/// Classes that a quality may be given for.
const CLASSES_MAX: usize = 500;
/// Entries of lists within prices.
const PRICES_MAX: usize = 64;

const SETTABLE: [&str; 11] = [
    "aliases",
    "jurisdiction",
    "contextWindow",
    "maxOutput",
    "capabilities",
    "retention",
    "retentionDays",
    "quality",
    "prices",
    "figures",
    "enabled",
];

/// What a wish for a model names.
pub const IDS: &[(&str, Names)] = &[
    ("upstreamId", Names::Upstream),
    ("id", Names::NewModel),
    ("aliases", Names::NewAliases),
    ("quality.{}", Names::CalledByClass),
];
/// What a change of a model names.
pub const CHANGED_IDS: &[(&str, Names)] = &[("quality.{}", Names::CalledByClass)];

/// Reads a wish for a model. `known` is what the catalogue knows of a model of a name.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_new(body: &[u8]) -> Result<NewModel, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["id", "upstreamId"].into_iter().chain(SETTABLE).collect::<Vec<_>>());
    let name = fields.required("id", |it| ModelName::parse(text(it)?));
    let upstream = fields.required("upstreamId", |it| UpstreamId::parse(text(it)?));
    let set = settings(&mut fields);
    let new = name.zip(upstream).map(|(name, upstream)| NewModel { upstream, name, known: Vec::new(), set });
    fields.finish(new)
}

/// Reads what changes of a model; `null` returns a member to what it is without the catalogue.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_change(body: &[u8]) -> Result<Vec<Set>, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&SETTABLE);
    let set = settings(&mut fields);
    fields.finish(Some(set))
}

fn settings(fields: &mut Fields<'_>) -> Vec<Set> {
    use svc_core::rules::gateway::models::{CONTEXT_WINDOW, MAX_OUTPUT};
    use svc_core::state::gateway::Capability;
    let mut set = Vec::new();
    let tokens = |it: &Json| within(it, 1, TOKENS_MAX);
    put_texts(fields, ("aliases", 0, ALIASES_MAX), &mut set, ModelName::parse, |it| {
        Set::Aliases(it.unwrap_or_default())
    });
    put(fields, "jurisdiction", &mut set, |it| law(text(it)?), Set::Jurisdiction);
    put(fields, "contextWindow", &mut set, tokens, |it| Set::ContextWindow(it.unwrap_or(CONTEXT_WINDOW)));
    put(fields, "maxOutput", &mut set, tokens, |it| Set::MaxOutput(it.unwrap_or(MAX_OUTPUT)));
    let usual = || [Capability::Tools, Capability::Streaming].into();
    put_texts(fields, ("capabilities", 0, CAPABILITIES_MAX), &mut set, capability, |it| {
        Set::Capabilities(it.unwrap_or_else(usual))
    });
    retention(fields, &mut set);
    set.extend(quality(fields).map(Set::Quality));
    if fields.is_null("prices") {
        set.push(Set::Prices(None));
    } else if let Some(prices) = fields.nested("prices", prices) {
        set.push(Set::Prices(Some(Box::new(prices))));
    }
    if fields.is_null("figures") {
        set.push(Set::Figures(Figures::default()));
    } else {
        set.extend(fields.nested("figures", figures).map(Set::Figures));
    }
    put(fields, "enabled", &mut set, truth, |it| Set::Enabled(it.unwrap_or(true)));
    set
}

/// `retention` and `retentionDays` together; days without the word mean days.
fn retention(fields: &mut Fields<'_>, set: &mut Vec<Set>) {
    let sent = fields.raw("retention").is_some() || fields.is_null("retention");
    let word = fields.optional("retention", |it| match text(it)? {
        "none" => Ok(true),
        "days" => Ok(false),
        _ => Err(Invalid::new("must be `none` or `days`")),
    });
    let days = fields.optional("retentionDays", |it| {
        u32::try_from(within(it, 1, DAYS_MAX)?).map_err(|_| Invalid::new("must be a number of days"))
    });
    match (word, days) {
        (Some(true), Some(_)) => fields.fault("retentionDays", Invalid::new("must not be sent where nothing is kept")),
        (Some(true), None) => set.push(Set::Retention(Retention::None)),
        (_, Some(days)) => set.push(Set::Retention(Retention::Days(Some(days)))),
        (_, None) if sent || fields.is_null("retentionDays") => set.push(Set::Retention(Retention::Days(None))),
        (_, None) => {}
    }
}

/// `quality`: a number for all classes, or a number for each of some; `null` is the default.
fn quality(fields: &mut Fields<'_>) -> Option<Quality> {
    let general = |general| Quality { general, by_class: BTreeMap::new() };
    let why = || Invalid::new("must be a whole number from 0 to 100");
    let one = |it: &Json| within(it, 0, 100).ok().and_then(|it| u8::try_from(it).ok()).ok_or_else(why);
    match fields.raw("quality") {
        None => fields.is_null("quality").then(|| general(QUALITY)),
        Some(Json::Object(members)) if members.len() > CLASSES_MAX => {
            fields.fault("quality", Invalid::new(format!("must have at most {CLASSES_MAX} members")));
            None
        }
        Some(Json::Object(_)) => fields.nested("quality", |it| {
            let mut by_class = BTreeMap::new();
            for name in it.names() {
                let number = it.required(name, one);
                match ClassId::parse(name) {
                    Ok(class) => by_class.extend(number.map(|it| (class, it))),
                    Err(_) => it.fault(name, Invalid::new("must name a task class")),
                }
            }
            Some(Quality { general: QUALITY, by_class })
        }),
        Some(_) => {
            let why = "must be a whole number from 0 to 100, or an object of them by task class";
            fields.optional("quality", |it| one(it).map_err(|_| Invalid::new(why))).map(general)
        }
    }
}

fn micros(value: &Json) -> Result<MicroUsd, Invalid> {
    within(value, 0, SAFE_MAX).map(MicroUsd::new)
}

fn tokens(fields: &mut Fields<'_>) -> Option<TokenPrices> {
    let input = fields.required("input", micros);
    let output = fields.required("output", micros);
    let mut price = |name| fields.optional(name, micros);
    let (cached_input, cache_write) = (price("cachedInput"), price("cacheWrite"));
    let (cache_write_long, reasoning) = (price("cacheWriteLong"), price("reasoning"));
    Some(TokenPrices { input: input?, cached_input, cache_write, cache_write_long, output: output?, reasoning })
}

fn tiers(fields: &mut Fields<'_>) -> Vec<PriceTier> {
    let read = |tier: &mut Fields<'_>| {
        tier.only(&["aboveInputTokens", "prices"]);
        let above = tier.required("aboveInputTokens", |it| within(it, 1, SAFE_MAX));
        let prices = match tier.raw("prices") {
            Some(_) => tier.nested("prices", |it| {
                it.only(&TokenPrices::MEMBERS);
                tokens(it)
            }),
            None => tier.required::<TokenPrices>("prices", |_| Err(Invalid::new("is required"))),
        };
        Some(PriceTier { above_input_tokens: above?, prices: prices? })
    };
    fields.each("tiers", PRICES_MAX, read).unwrap_or_default()
}

/// Prices, flat: the kinds of tokens beside the fees.
fn prices(fields: &mut Fields<'_>) -> Option<Prices> {
    fields.only(&[&TokenPrices::MEMBERS[..], &Prices::FEES].concat());
    let tokens = tokens(fields);
    let mut fee = |name| fields.optional(name, micros);
    let (per_image, per_request) = (fee("perImage"), fee("perRequest"));
    let (per_audio_second, audio_output) = (fee("perAudioSecond"), fee("audioOutput"));
    let image_output = fee("imageOutput");
    let tools = fields.nested("tools", |inner| Some(each_named(inner, |inner, name| inner.required(name, micros))));
    let tiers = tiers(fields);
    let caches_unasked = fields.optional("cachesUnasked", truth);
    let services =
        fields.nested("serviceTiers", |inner| Some(each_named(inner, |inner, name| inner.nested(name, service))));
    let geos =
        fields.nested("inferenceGeos", |inner| Some(each_named(inner, |inner, name| inner.required(name, percent))));
    let prices = Prices {
        tokens: tokens?,
        per_image,
        per_request,
        per_audio_second,
        audio_output,
        image_output,
        tools: tools.unwrap_or_default(),
        tiers,
        caches_unasked: caches_unasked.unwrap_or_default(),
        service_tiers: services.unwrap_or_default(),
        inference_geos: geos.unwrap_or_default(),
    };
    fields.note_beside(prices.faults());
    Some(prices)
}

fn percent(json: &Json) -> Result<Percent, Invalid> {
    Percent::new(within(json, 1, i64::try_from(Percent::MAX).unwrap_or(i64::MAX))?)
}

fn service(fields: &mut Fields<'_>) -> Option<ServicePrices> {
    fields.only(&[&TokenPrices::MEMBERS[..], &["tiers"]].concat());
    let tokens = tokens(fields);
    let tiers = tiers(fields);
    Some(ServicePrices { tokens: tokens?, tiers })
}

/// The members of an object whose names are the sender's.
fn each_named<'a, T>(
    fields: &mut Fields<'a>,
    mut read: impl FnMut(&mut Fields<'a>, &str) -> Option<T>,
) -> BTreeMap<Box<str>, T> {
    let names: Vec<String> = fields.names().take(PRICES_MAX + 1).map(str::to_owned).collect();
    names.into_iter().filter_map(|name| read(fields, &name).map(|it| (name.into(), it))).collect()
}

fn figures(fields: &mut Fields<'_>) -> Option<Figures> {
    fields.only(&["image", "page", "audioSecond"]);
    let default = Figures::default();
    let mut figure = |name, else_| {
        let read = |it: &Json| {
            u32::try_from(within(it, 0, 10_000_000)?).map_err(|_| Invalid::new("must be a number of tokens"))
        };
        fields.optional(name, read).unwrap_or(else_)
    };
    Some(Figures {
        image: figure("image", default.image),
        page: figure("page", default.page),
        audio_second: figure("audioSecond", default.audio_second),
    })
}

/// A model as it stands.
#[must_use]
pub fn write(model: &Model, upstream: &Upstream) -> Value {
    let days = if let Retention::Days(days) = model.retention { days } else { None };
    let quality =
        if model.quality.by_class.is_empty() { json!(model.quality.general) } else { json!(model.quality.by_class) };
    let figures = &model.figures;
    json!({
        "id": model.name,
        "upstreamId": model.upstream,
        "provider": upstream.name,
        "aliases": model.aliases,
        "jurisdiction": model.jurisdiction,
        "contextWindow": model.context_window,
        "maxOutput": model.max_output,
        "capabilities": model.capabilities,
        "retention": model.retention.as_str(),
        "retentionDays": days,
        "quality": quality,
        "prices": model.prices.as_ref().map(write_prices),
        "figures": { "image": figures.image, "page": figures.page, "audioSecond": figures.audio_second },
        "enabled": model.enabled,
        "createdAt": model.created_at.to_string(),
        "createdBy": model.created_by.as_ref().map(ToString::to_string),
    })
}

/// Prices, flat, with the members that are set.
#[must_use]
pub fn write_prices(prices: &Prices) -> Value {
    let mut out = write_tokens(&prices.tokens);
    let fees = [
        ("perImage", prices.per_image),
        ("perRequest", prices.per_request),
        ("perAudioSecond", prices.per_audio_second),
        ("audioOutput", prices.audio_output),
        ("imageOutput", prices.image_output),
    ];
    out.extend(fees.into_iter().filter_map(|(name, fee)| fee.map(|fee| (name.to_owned(), json!(fee)))));
    if !prices.tools.is_empty() {
        out.insert("tools".to_owned(), json!(prices.tools));
    }
    write_tiers(&prices.tiers, &mut out);
    if !prices.service_tiers.is_empty() {
        let services = prices.service_tiers.iter().map(|(name, it)| {
            let mut service = write_tokens(&it.tokens);
            write_tiers(&it.tiers, &mut service);
            (name.to_string(), Value::Object(service))
        });
        out.insert("serviceTiers".to_owned(), Value::Object(services.collect()));
    }
    if !prices.inference_geos.is_empty() {
        out.insert("inferenceGeos".to_owned(), json!(prices.inference_geos));
    }
    if prices.caches_unasked {
        out.insert("cachesUnasked".to_owned(), json!(true));
    }
    Value::Object(out)
}

fn write_tokens(prices: &TokenPrices) -> Map<String, Value> {
    let all = [
        ("input", Some(prices.input)),
        ("cachedInput", prices.cached_input),
        ("cacheWrite", prices.cache_write),
        ("cacheWriteLong", prices.cache_write_long),
        ("output", Some(prices.output)),
        ("reasoning", prices.reasoning),
    ];
    all.into_iter().filter_map(|(name, price)| price.map(|it| (name.to_owned(), json!(it)))).collect()
}

fn write_tiers(tiers: &[PriceTier], out: &mut Map<String, Value>) {
    if !tiers.is_empty() {
        let tiers = tiers.iter().map(|it| {
            json!({ "aboveInputTokens": it.above_input_tokens, "prices": Value::Object(write_tokens(&it.prices)) })
        });
        out.insert("tiers".to_owned(), tiers.collect());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Every wrong alias is named by its place, and every wrong quality by its class.
    #[test]
    fn items_of_a_model_are_named_by_their_places() {
        let fields = |body: &str| {
            let refusal = read_change(body.as_bytes()).unwrap_err();
            refusal.errors().iter().map(|it| it.field.as_deref().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let body = r#"{"aliases":["ok","",2],"quality":{"a.b":101,"c.d":50,"no class":1,"e.f":"x"}}"#;
        assert_eq!(fields(body), ["aliases.1", "aliases.2", "quality.a.b", "quality.no class", "quality.e.f"]);
        assert_eq!(fields(r#"{"quality":-1}"#), ["quality"]);
        for sound in [r#"{"quality":100}"#, r#"{"quality":{"a.b":0}}"#, r#"{"quality":null}"#, r#"{"aliases":[]}"#] {
            assert_eq!(read_change(sound.as_bytes()).unwrap().len(), 1, "{sound}");
        }
    }
}
