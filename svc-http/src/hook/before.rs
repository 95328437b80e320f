//! Before a tool runs: the gate is asked, and its decision becomes the client's answer.

use serde_json::json;
use svc_core::value::Id as _;
use svc_core::value::id::ActionId;
use svc_core::value::json::Json;

use super::action::{Action, Key};
use super::event::Event;
use super::exchange::{get, post};
use super::memory::Memory;
use super::place::Place;
use super::verdict::{Decision, Verdict};
use super::{Deadline, Refused, answer, transcript};

/// Questions by one id of the client's that are looked at until one of its own is found for a call.
const TURNS_MAX: u32 = 8;

/// The client's own answer about a call.
///
/// Where a person was asked about the very same call already, they are not asked again: once they have said yes, the
/// call that is made again is the one that they allowed, and one call alone: it uses up the receipt of their yes, which
/// the gate refuses where that is used up or expired, or the agent was stopped since.
///
/// Hooks that speak of one call at once meet in one action, by the client's id of it. Models that number their calls anew
/// in each answer give one id to many: what came of another call, or of the same one made before, is no answer to this one.
///
/// # Errors
/// [`Refused`] where there is no decision.
pub(crate) fn ask(event: &Event, place: &Place, deadline: Deadline) -> Result<String, Refused> {
    if place.is_unasked(event) {
        return Ok(answer::unasked(event.client));
    }
    let told = transcript::told(event, deadline);
    let action = Action::of(event, &told);
    let memory = Memory::of(place.state.as_deref(), event, &action.input_digest);
    let waited = waited(event, place, &action, &memory, deadline)?;
    let (decision, turn) = match waited {
        Some(decision) => (decision, memory.turn()),
        None => {
            let (decision, turn) = asked(event, place, &action, &memory, deadline)?;
            // A call that is made again by the same id is answered with what a person has said to it meanwhile.
            let may = decision.approved.is_none() || use_up(&decision, place, deadline)?;
            (if may { decision } else { Decision { verdict: Verdict::Past, ..decision } }, turn)
        }
    };
    let (allowed, waits) = match decision.verdict {
        Verdict::Allow => (true, false),
        Verdict::Ask { .. } => (false, true),
        Verdict::Deny { .. } | Verdict::Past => (false, false),
    };
    if decision.verdict != Verdict::Past {
        memory.note(decision.id, allowed, waits, turn);
    }
    answer::of(event, &decision.verdict)
}

/// Whether the gate answers to the key, which is an agent's: what cannot be there is looked for, so that nothing is made.
///
/// # Errors
/// [`Refused`] where it is not reached, or the key is not one that may ask.
pub(crate) fn look(place: &Place, deadline: Deadline) -> Result<(), Refused> {
    let reply = get(place, &format!("/v1/actions/{}", ActionId::from_bits(0)), deadline)?;
    if reply.status == 404 && reply.error() == Some("not_found") { Ok(()) } else { reply.good().map(drop) }
}

/// Asks the gate about the call: what is under way by the client's id of it, else a new question. An answer stands for as long as
/// another hook may speak of the same call: later the gate may see it otherwise. A person's yes is no such answer, as the gate is
/// asked about that when it is used up.
fn asked(
    event: &Event,
    place: &Place,
    action: &Action<'_>,
    memory: &Memory,
    deadline: Deadline,
) -> Result<(Decision, u32), Refused> {
    let from = memory.turn();
    for turn in from..from.saturating_add(TURNS_MAX) {
        let Some(decision) = authorize(event, place, action, Key::Turn(turn), deadline)? else { continue };
        let is_over = match decision.verdict {
            Verdict::Past => true,
            Verdict::Deny { .. } => memory.is_of_before(),
            Verdict::Allow => decision.approved.is_none() && memory.is_of_before(),
            Verdict::Ask { .. } => false,
        };
        if !(decision.replayed && is_over) {
            return Ok((decision, turn));
        }
    }
    // So many that are over and forgotten: the gate need not know this one again.
    let decision = authorize(event, place, action, Key::Fresh, deadline)?;
    decision
        .map(|it| (it, from.saturating_add(TURNS_MAX)))
        .ok_or_else(|| Refused::new("the gate takes no new question"))
}

/// Asks the gate about the call under a key; `None` where that stands for another question.
pub(crate) fn authorize(
    event: &Event,
    place: &Place,
    action: &Action<'_>,
    by: Key,
    deadline: Deadline,
) -> Result<Option<Decision>, Refused> {
    let reply = post(place, "/v1/actions/authorize", &action.body(by)?, deadline)?;
    if reply.error() == Some("idempotency_conflict") && by != Key::Fresh {
        return Ok(None);
    }
    let decision = Decision::read(reply.good()?, event, &action.input_digest)?;
    Ok(Some(Decision { replayed: reply.replayed, ..decision }))
}

/// What became of the action about the very same call that a person was asked to decide: still waiting, allowed and
/// used up by this call, or denied, which is told once. Anything else is asked anew.
fn waited(
    event: &Event,
    place: &Place,
    action: &Action<'_>,
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
