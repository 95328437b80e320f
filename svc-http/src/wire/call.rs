//! A model call as it is told (CONTRACT part 2, "Model calls").

use super::put;
use serde_json::{Map, Value, json};
use svc_core::rules::gateway::admit::Admitted;
use svc_core::state::gateway::{Attempt, Call, CallState, Usage};
use svc_core::value::text::{ModelName, UpstreamName};

/// The call as JSON text.
#[must_use]
pub fn write(call: &Call) -> String {
    item(call).to_string()
}

/// The call.
#[must_use]
pub fn item(call: &Call) -> Value {
    let payer = &call.payer;
    let target = call.target.as_ref();
    let mut item = json!({
        "id": call.id.to_string(),
        "taskId": call.task.as_str(),
        "session": call.session.as_str(),
        "keyId": payer.key.to_string(),
        "principalId": payer.principal.to_string(),
        "teamId": payer.team.map(|it| it.to_string()),
        "taskClass": payer.class.as_ref().map(|it| it.as_str()),
        "requestedModel": call.requested,
        "model": target.map(|it| it.model.as_str()),
        "provider": target.map(|it| it.provider.as_str()),
        "jurisdiction": target.map(|it| &*it.jurisdiction),
        "mode": call.mode.as_str(),
        "objective": call.objective.as_str(),
        "stream": call.stream,
        "attempts": call.attempts.iter().map(attempt).chain(last_try(call)).collect::<Vec<_>>(),
        "usage": usage(&call.usage),
        "costMicros": call.cost.get(),
        "unpriced": call.unpriced,
        "reservedMicros": call.reserved.get(),
        "budgets": call.budgets.iter().map(|it| it.id.to_string()).collect::<Vec<_>>(),
        "dataLoss": call.data_loss.counts().map(|(kind, count)| (kind.to_string(), json!(count))).collect::<Map<_, _>>(),
        "startedAt": call.started_at.to_string(),
        "createdAt": call.started_at.to_string(),
        "createdBy": payer.key.to_string(),
    });
    if let Some(agent) = payer.agent {
        put(&mut item, "agentId", json!(agent.to_string()));
    }
    if call.budgets.iter().any(|it| it.past_stop) {
        put(&mut item, "pastStop", json!(true));
    }
    if call.oversight {
        put(&mut item, "humanOversight", json!("acknowledged"));
    }
    let (end, first, duration, overhead) = match &call.state {
        CallState::Running { .. } => (None, None, None, None),
        CallState::Ended { end, first_token_ms, duration_ms, overhead_ms, last: _ } => {
            (Some(end.as_str()), *first_token_ms, Some(*duration_ms), Some(*overhead_ms))
        }
    };
    put(&mut item, "firstTokenMs", json!(first));
    put(&mut item, "durationMs", json!(duration));
    put(&mut item, "overheadMs", json!(overhead));
    put(&mut item, "end", json!(end));
    item
}

/// The try that a call ended with.
fn last_try(call: &Call) -> Option<Value> {
    let CallState::Ended { last, .. } = &call.state else { return None };
    let (last, target) = (last.as_ref()?, call.target.as_ref()?);
    Some(tried(&target.provider, &target.model, last.status, last.ms))
}

fn tried(provider: &UpstreamName, model: &ModelName, status: Option<u16>, ms: u64) -> Value {
    json!({ "model": format!("{provider}/{model}"), "status": status, "ms": ms })
}

fn attempt(attempt: &Attempt) -> Value {
    let mut item = tried(&attempt.provider, &attempt.model, attempt.status, attempt.ms);
    if let Some(error) = &attempt.error {
        put(&mut item, "error", json!(error));
    }
    if attempt.is_charged() {
        put(&mut item, "costMicros", json!(attempt.cost.get()));
        put(&mut item, "usage", usage(&attempt.usage));
    }
    if attempt.unpriced {
        put(&mut item, "unpriced", json!(true));
    }
    item
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "cachedInput": usage.cached_input,
        "cacheWrite": usage.cache_write,
        "cacheWriteLong": usage.cache_write_long,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "estimated": usage.estimated,
    })
}

/// What a dry run answers: the preview of its route with where the call would go, and where each budget stands. Where the call
/// has no price, no sum of it is told.
#[must_use]
pub fn dry(admitted: &Admitted, preview: Value) -> String {
    let (call, mut out) = (&admitted.call, preview);
    let sum = (!call.unpriced).then(|| call.reserved.get());
    let budgets = admitted.notes.budgets.iter().map(|it| {
        let mut budget = json!({
            "scope": it.scope.header(call.workspace),
            "spentMicros": it.spent.get(),
            "reservedMicros": it.reserved.get(),
            "step": it.step.map(|it| it.as_str()),
        });
        if let Some(sum) = sum {
            put(&mut budget, "thisCallMicros", json!(sum));
        }
        budget
    });
    put(&mut out, "budgets", budgets.collect());
    put(&mut out, "ok", json!(true));
    put(&mut out, "taskClass", json!(call.payer.class.as_ref().map(|it| it.as_str())));
    // In shadow a call goes where it says, whatever policy would have chosen.
    if let Some(target) = &call.target {
        put(&mut out, "model", json!(target.model.as_str()));
        put(&mut out, "provider", json!(target.provider.as_str()));
        put(&mut out, "jurisdiction", json!(&*target.jurisdiction));
    }
    match (sum, out.as_object_mut()) {
        (Some(sum), _) => put(&mut out, "estimatedCostMicros", json!(sum)),
        (None, Some(members)) => drop(members.remove("estimatedCostMicros")),
        (None, None) => {}
    }
    out.to_string()
}
