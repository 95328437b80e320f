//! The shape of the shipped table: a date, and models with the members that they have on the wire.

use std::collections::BTreeSet;

use super::{LISTED_MAX, Listed, Listing};
use crate::refusal::FieldError;
use crate::state::gateway::{Capability, Figures, Prices, Quality, Retention};
use crate::value::SAFE_MAX;
use crate::value::json::Json;
use crate::value::text::{ClassId, ModelName};

/// Members of a table.
pub(super) const TABLE: [&str; 3] = ["date", "note", "models"];
/// Members of a model.
const MEMBERS: [&str; 11] = [
    "id",
    "aliases",
    "jurisdiction",
    "contextWindow",
    "maxOutput",
    "capabilities",
    "retention",
    "retentionDays",
    "quality",
    "figures",
    "prices",
];

/// Reads a table.
pub(super) fn read(json: &Json) -> Result<Listing, Vec<FieldError>> {
    let mut faults = Vec::new();
    only(json, "", &TABLE, &mut faults);
    let mut listing = Listing { date: text(json, "", "date", &mut faults), ..Listing::default() };
    let models = json.get("models").and_then(Json::as_list).unwrap_or_default();
    if models.len() > LISTED_MAX {
        faults.push(FieldError::new("models", format!("must have at most {LISTED_MAX} entries")));
        return Err(faults);
    }
    for (place, json) in models.iter().enumerate() {
        let path = format!("models.{place}.");
        let Some(id) = text(json, &path, "id", &mut faults).filter(|it| ModelName::parse(it).is_ok()) else {
            faults
                .push(FieldError::new(format!("{path}id"), "must be 1 to 200 visible ASCII characters without space"));
            continue;
        };
        let listed = model(json, &path, &mut faults);
        if listing.models.insert(id, listed).is_some() {
            faults.push(FieldError::new(format!("{path}id"), "is that of another model"));
        }
    }
    if faults.is_empty() { Ok(listing) } else { Err(faults) }
}

fn model(json: &Json, path: &str, faults: &mut Vec<FieldError>) -> Listed {
    only(json, path, &MEMBERS, faults);
    let prices = json.get("prices").filter(|it| !it.is_null());
    Listed {
        aliases: words(json, path, "aliases", faults).unwrap_or_default().into_iter().collect(),
        jurisdiction: text(json, path, "jurisdiction", faults),
        context_window: tokens(json, path, "contextWindow", faults),
        max_output: tokens(json, path, "maxOutput", faults),
        capabilities: capabilities(json, path, faults),
        retention: retention(json, path, faults),
        quality: quality(json, path, faults),
        figures: figures(json, path, faults),
        prices: prices.and_then(|it| Prices::read(it, &format!("{path}prices"), faults)),
    }
}

fn only(json: &Json, path: &str, known: &[&str], faults: &mut Vec<FieldError>) {
    let Some(members) = json.as_object() else {
        let field = path.trim_end_matches('.');
        faults.push(FieldError::new(field, "must be an object"));
        return;
    };
    for (name, _) in members.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        faults.push(FieldError::new(format!("{path}{name}"), "is not known here"));
    }
}

fn raw<'a>(json: &'a Json, member: &str) -> Option<&'a Json> {
    json.get(member).filter(|it| !it.is_null())
}

fn text(json: &Json, path: &str, member: &str, faults: &mut Vec<FieldError>) -> Option<Box<str>> {
    let read = raw(json, member)?.as_str().filter(|it| (1..=200).contains(&it.len()));
    if read.is_none() {
        faults.push(FieldError::new(format!("{path}{member}"), "must be a text of 1 to 200 characters"));
    }
    read.map(Into::into)
}

fn words(json: &Json, path: &str, member: &str, faults: &mut Vec<FieldError>) -> Option<Vec<Box<str>>> {
    let list = raw(json, member)?.as_list();
    let read: Option<Vec<Box<str>>> = list.and_then(|it| it.iter().map(|it| it.as_str().map(Into::into)).collect());
    if read.is_none() {
        faults.push(FieldError::new(format!("{path}{member}"), "must be a list of texts"));
    }
    read
}

fn tokens(json: &Json, path: &str, member: &str, faults: &mut Vec<FieldError>) -> Option<u64> {
    let read = raw(json, member)?.as_int().filter(|it| (1..=SAFE_MAX).contains(it));
    if read.is_none() {
        faults.push(FieldError::new(format!("{path}{member}"), "must be a whole number above zero"));
    }
    read.and_then(|it| u64::try_from(it).ok())
}

fn capabilities(json: &Json, path: &str, faults: &mut Vec<FieldError>) -> Option<BTreeSet<Capability>> {
    let read = words(json, path, "capabilities", faults)?;
    let known: Option<BTreeSet<Capability>> = read.iter().map(|it| capability(it)).collect();
    if known.is_none() {
        let clause = "must hold `tools`, `vision`, `streaming`, `json`, `reasoning` and `audio` alone";
        faults.push(FieldError::new(format!("{path}capabilities"), clause));
    }
    known
}

fn capability(word: &str) -> Option<Capability> {
    match word {
        "tools" => Some(Capability::Tools),
        "vision" => Some(Capability::Vision),
        "streaming" => Some(Capability::Streaming),
        "json" => Some(Capability::Json),
        "reasoning" => Some(Capability::Reasoning),
        "audio" => Some(Capability::Audio),
        _ => None,
    }
}

fn retention(json: &Json, path: &str, faults: &mut Vec<FieldError>) -> Option<Retention> {
    let days = tokens(json, path, "retentionDays", faults);
    match text(json, path, "retention", faults)?.as_ref() {
        "none" if days.is_none() => Some(Retention::None),
        "days" => Some(Retention::Days(days.and_then(|it| u32::try_from(it).ok()))),
        _ => {
            faults.push(FieldError::new(format!("{path}retention"), "must be `none` or `days`"));
            None
        }
    }
}

fn quality(json: &Json, path: &str, faults: &mut Vec<FieldError>) -> Option<Quality> {
    let value = raw(json, "quality")?;
    let grade = |it: &Json| it.as_int().and_then(|it| u8::try_from(it).ok()).filter(|it| *it <= 100);
    let read = match (grade(value), value.as_object()) {
        (Some(general), _) => Some(Quality { general, by_class: Default::default() }),
        (None, Some(members)) => {
            let general = value.get("general").and_then(grade);
            let others = members.iter().filter(|(name, _)| name != "general");
            let by_class = others.map(|(name, it)| Some((ClassId::parse(name).ok()?, grade(it)?))).collect();
            general.zip(by_class).map(|(general, by_class)| Quality { general, by_class })
        }
        (None, None) => None,
    };
    if read.is_none() {
        let clause = "must be a whole number from 0 to 100, or an object of `general` and classes with such numbers";
        faults.push(FieldError::new(format!("{path}quality"), clause));
    }
    read
}

fn figures(json: &Json, path: &str, faults: &mut Vec<FieldError>) -> Option<Figures> {
    let value = raw(json, "figures")?;
    let inner = format!("{path}figures.");
    only(value, &inner, &["image", "page", "audioSecond"], faults);
    let mut figure = |member: &str, otherwise: u32| {
        let read = tokens(value, &inner, member, faults).map(|it| u32::try_from(it).unwrap_or(u32::MAX));
        read.unwrap_or(otherwise)
    };
    let known = Figures::default();
    Some(Figures {
        image: figure("image", known.image),
        page: figure("page", known.page),
        audio_second: figure("audioSecond", known.audio_second),
    })
}
