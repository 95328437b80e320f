//! The models of a workspace in the list shapes of the two APIs.

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::state::gateway::{Dialect, Model, Routing, Upstream};

use super::super::page::Query;
use super::model::write_prices;

/// Models of one part of the messages API's list, at most.
const PART_MAX: usize = 1_000;
/// Models of one part where nothing is said.
const PART: usize = 20;

/// The models that calls may go to, the oldest first, each under its own name and then under its aliases at its provider, as
/// `provider/name`: no two of a provider share one.
fn usable(routing: &Routing) -> impl Iterator<Item = (String, &Model, &Upstream)> {
    let models = routing.models.iter().filter(|it| it.enabled);
    let models =
        models.filter_map(|it| routing.upstream(it.upstream).filter(|it| it.enabled).map(|upstream| (it, upstream)));
    models.flat_map(|(model, upstream)| {
        let names = std::iter::once(&model.name).chain(&model.aliases);
        names.map(move |name| (format!("{}/{name}", upstream.name), model, upstream))
    })
}

/// All of them, in the chat-completions API's list shape.
#[must_use]
pub fn chat(routing: &Routing) -> Value {
    let data = usable(routing).map(|(id, model, upstream)| {
        json!({
            "id": id,
            "object": "model",
            "created": model.created_at.as_seconds(),
            "owned_by": upstream.name,
            "svc": own(model, upstream),
        })
    });
    json!({ "object": "list", "data": data.collect::<Vec<_>>() })
}

/// One part of them, in the messages API's list shape.
///
/// # Errors
/// `invalid_request` naming every parameter that is wrong.
pub fn messages(routing: &Routing, uri: &http::Uri) -> Result<Value, Refusal> {
    let mut query = Query::of(uri);
    let limit = query.take("limit", |text| match text.parse::<usize>() {
        Ok(limit) if (1..=PART_MAX).contains(&limit) && !text.starts_with('+') => Ok(limit),
        _ => Err(format!("must be a whole number between 1 and {PART_MAX}")),
    });
    let all: Vec<(String, Value)> = usable(routing)
        .map(|(id, model, upstream)| {
            let item = json!({
                "type": "model",
                "id": id,
                "display_name": id.split_once('/').map_or(&*id, |(_, name)| name),
                "created_at": model.created_at.to_string(),
                "svc": own(model, upstream),
            });
            (id, item)
        })
        .collect();
    let place = |text: &str| {
        let found = all.iter().position(|(id, _)| id == text);
        found.ok_or_else(|| "names no model of this list".to_owned())
    };
    let after = query.take("after_id", place);
    let before = query.take("before_id", place);
    query.finish()?;
    let limit = limit.unwrap_or(PART);
    let end = before.unwrap_or(all.len());
    let start = match (after, before) {
        (Some(after), _) => after.saturating_add(1).min(end),
        (None, Some(_)) => end.saturating_sub(limit),
        (None, None) => 0,
    };
    let part: Vec<&(String, Value)> = all.iter().take(end).skip(start).take(limit).collect();
    let more = if after.is_none() && before.is_some() { start > 0 } else { start.saturating_add(part.len()) < end };
    Ok(json!({
        "data": part.iter().map(|(_, item)| item).collect::<Vec<_>>(),
        "has_more": more,
        "first_id": part.first().map(|(id, _)| id),
        "last_id": part.last().map(|(id, _)| id),
    }))
}

/// What is told of a model beyond the public shapes. Either shape reaches every model; its own comes first.
fn own(model: &Model, upstream: &Upstream) -> Value {
    let shapes = match upstream.dialect {
        Dialect::Chat => [Dialect::Chat, Dialect::Messages],
        Dialect::Messages => [Dialect::Messages, Dialect::Chat],
    };
    json!({
        "shapes": shapes.map(Dialect::as_str),
        "jurisdiction": model.jurisdiction,
        "contextWindow": model.context_window,
        "maxOutput": model.max_output,
        "prices": model.prices.as_ref().map(write_prices),
        "capabilities": model.capabilities,
    })
}
