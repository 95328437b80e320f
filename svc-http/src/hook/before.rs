//! Before a tool runs: the gate is asked, and its decision becomes the client's answer.

use serde_json::json;
use svc_core::value::id::ActionId;
use svc_core::value::json::Json;

use super::action::Action;
use super::event::Event;
use super::exchange::{get, post};
use super::memory::Memory;
use super::place::Place;
use super::verdict::{Decision, Verdict};
use super::{Deadline, Refused, answer, transcript};

/// The client's own answer about a call.
///
/// Where a person was asked about the very same call already, they are not asked again: once they have said yes, the
/// call that is made again is the one that they allowed, and one call alone: it uses up the receipt of their yes, which
/// the gate refuses where that is used up or expired, or the agent was stopped since.
///
/// # Errors
/// [`Refused`] where there is no decision.
pub(crate) fn ask(event: &Event, place: &Place, deadline: Deadline) -> Result<String, Refused> {
    if place.is_unasked(event) {
        return Ok(answer::unasked(event.client));
    }
    let action = Action::of(event, &transcript::told(event, deadline))?;
    let memory = Memory::of(place.state.as_deref(), event, &action.input_digest);
    let waited = waited(event, place, &action, &memory, deadline)?;
    let decision = match waited {
        Some(decision) => decision,
        None => {
            let decision = authorize(event, place, &action, deadline)?;
            // A call that is made again by the same id is answered with what a person has said to it meanwhile.
            let may = decision.approved.is_none() || use_up(&decision, place, deadline)?;
            if may { decision } else { Decision { verdict: Verdict::Past, ..decision } }
        }
    };
    let (allowed, waits) = match decision.verdict {
        Verdict::Allow => (true, false),
        Verdict::Ask { .. } => (false, true),
        Verdict::Deny { .. } | Verdict::Past => (false, false),
    };
    if decision.verdict != Verdict::Past {
        memory.note(decision.id, allowed, waits);
    }
    answer::of(event, &decision.verdict)
}

/// Asks the gate about the call.
pub(crate) fn authorize(
    event: &Event,
    place: &Place,
    action: &Action,
    deadline: Deadline,
) -> Result<Decision, Refused> {
    let reply = post(place, "/v1/actions/authorize", &action.body, deadline)?;
    let decision = Decision::read(reply.good()?, event, &action.input_digest)?;
    Ok(Decision { replayed: reply.replayed, ..decision })
}

/// What became of the action about the very same call that a person was asked to decide: still waiting, allowed and
/// used up by this call, or denied, which is told once. Anything else is asked anew.
fn waited(
    event: &Event,
    place: &Place,
    action: &Action,
    memory: &Memory,
    deadline: Deadline,
) -> Result<Option<Decision>, Refused> {
    let Some(id) = memory.waiting() else { return Ok(None) };
    let reply = get(place, &format!("/v1/actions/{id}"), deadline)?;
    if reply.status == 404 {
        // Another agent's, or another gate's.
        memory.take_waiting(id);
        return Ok(None);
    }
    let decision = Decision::read(reply.good()?, event, &action.input_digest);
    let Some(decision) = decision.ok().filter(|it| it.id == id) else {
        memory.take_waiting(id);
        return Ok(None);
    };
    let stands = match decision.verdict {
        Verdict::Ask { .. } => return Ok(Some(decision)),
        // Of many that come at once the gate lets one have what was allowed. Where it gives no answer nothing is
        // forgotten.
        Verdict::Allow => use_up(&decision, place, deadline)?,
        Verdict::Deny { .. } => memory.take_waiting(id),
        Verdict::Past => false,
    };
    memory.take_waiting(id);
    Ok(Some(decision).filter(|_| stands))
}

/// Uses up the receipt of what a person allowed, in one step at the gate: `false` where it is used up or expired
/// already, or the agent was stopped. An allow without a receipt to use up lets nothing carry on.
fn use_up(decision: &Decision, place: &Place, deadline: Deadline) -> Result<bool, Refused> {
    let Some(receipt) = &decision.approved else { return Ok(false) };
    let body = json!({ "receipt": receipt, "type": "tool.call" }).to_string();
    let reply = post(place, "/v1/verify", &body, deadline)?;
    let verdict = reply.good()?;
    let action = verdict.get("actionId").and_then(Json::as_str).and_then(|it| ActionId::parse(it).ok());
    Ok(verdict.get("valid").and_then(Json::as_bool) == Some(true) && action == Some(decision.id))
}
