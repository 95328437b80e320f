//! What the router would choose, and why (CONTRACT part 2, "Route preview").

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::state::gateway::route::{Candidate, Choice, Relaxation};
use svc_core::state::gateway::{Demand, Objective, OutputBound};
use svc_core::value::json::Json;

use super::super::{Fields, parse_or_empty, text, truth};
use super::{CAPABILITIES_MAX, capability, constraints, objective, within};

/// Tokens that a call is taken to send, and to get, where nothing is said; a model that answers with fewer gives as many as it can.
const TOKENS: u64 = 1_000;
/// Tokens that may be said.
const TOKENS_MAX: i64 = 100_000_000;

/// What is asked.
#[derive(Debug)]
pub struct Asked {
    /// The class, in the caller's word.
    pub class: Option<String>,
    /// What to favour.
    pub objective: Option<Objective>,
    /// The model that a call would name.
    pub model: Option<String>,
    /// Tokens that would go in.
    pub input_tokens: u64,
    /// Whether a person's oversight is acknowledged.
    pub oversight: bool,
    /// What the call would need.
    pub demand: Demand,
}

/// Reads what is asked; `header` is what `x-svc-human-oversight` says.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8], header: Option<&[u8]>) -> Result<Asked, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let class = fields.optional("taskClass", |it| text(it).map(str::to_owned));
    let objective = fields.optional("objective", objective);
    let model = fields.optional("model", |it| text(it).map(str::to_owned));
    let needs = fields.texts("needs", (0, CAPABILITIES_MAX), capability).unwrap_or_default();
    let tokens = |it: &Json| within(it, 0, TOKENS_MAX);
    let input_tokens = fields.optional("inputTokens", tokens).unwrap_or(TOKENS);
    let output = fields.optional("maxOutput", |it| within(it, 1, TOKENS_MAX));
    let stream = fields.optional("stream", truth).unwrap_or_default();
    let said = fields.optional("humanOversight", truth).unwrap_or_default();
    let acknowledged = match header {
        None => false,
        Some(b"acknowledged") => true,
        Some(_) => {
            let why = svc_core::refusal::FieldError::new("x-svc-human-oversight", "must be `acknowledged`");
            fields.note(why);
            false
        }
    };
    let demand = Demand {
        stream,
        needs: needs.into_iter().collect(),
        ..Demand::plain(
            model.as_deref().unwrap_or_default(),
            input_tokens,
            OutputBound { tokens: output, likely: Some(TOKENS) },
        )
    };
    let oversight = said || acknowledged;
    fields.finish(Some(Asked { class, objective, model, input_tokens, oversight, demand }))
}

/// What the router says. `class` is the class that was looked at.
#[must_use]
pub fn write(choice: &Choice<'_>, class: Option<&str>) -> Value {
    let candidates: Vec<Value> = choice.ranked.iter().chain(&choice.rejected).map(candidate).collect();
    let mut out = json!({
        "ok": !choice.ranked.is_empty(),
        "taskClass": class,
        "objective": choice.objective.as_str(),
        "why": choice.why(),
        "candidates": candidates,
    });
    let mut put = |name: &str, value: Value| {
        if let Some(members) = out.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    };
    if let Some(best) = choice.best() {
        put("model", json!(best.model.name));
        put("provider", json!(best.upstream.name));
        put("jurisdiction", json!(best.model.jurisdiction));
        if let Some(cost) = best.cost {
            put("estimatedCostMicros", json!(cost));
        }
    } else {
        put("bindingConstraint", json!(choice.binding.map(|it| it.as_str())));
        put("relaxations", choice.relaxations.iter().map(relaxation).collect());
    }
    out
}

fn candidate(it: &Candidate<'_>) -> Value {
    json!({
        "model": it.model.name,
        "provider": it.upstream.name,
        "qualifies": it.qualifies(),
        "score": it.score,
        "cost": it.cost,
        "quality": it.quality,
        "latencyMs": it.latency_ms,
        "rejectedBy": constraints(it.broken.constraints()),
    })
}

/// One change and the models that it admits.
#[must_use]
pub fn relaxation(it: &Relaxation<'_>) -> Value {
    json!({
        "constraint": it.constraint.as_str(),
        "change": it.change.to_string(),
        "admits": it.admits.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
