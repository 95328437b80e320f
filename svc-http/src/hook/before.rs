//! Before a tool runs: the gate is asked, and its decision becomes the client's answer.

use super::action::Action;
use super::event::Event;
use super::exchange::{get, post};
use super::memory::Memory;
use super::place::Place;
use super::verdict::{Decision, Verdict};
use super::{Deadline, Refused, answer, transcript};

/// The client's own answer about a call.
///
/// Where a person was asked about the very same call already, they are not asked again: once they have said yes, the call that
/// is made again is the one that they allowed, and one call alone.
///
/// # Errors
/// [`Refused`] where there is no decision.
pub(crate) fn ask(event: &Event, place: &Place, deadline: Deadline) -> Result<String, Refused> {
    if place.is_unasked(event.server.as_deref(), &event.tool) {
        return Ok(answer::unasked(event.client));
    }
    let action = Action::of(event, &transcript::told(event, deadline))?;
    let memory = Memory::of(place.state.as_deref(), event, &action.input_digest);
    let waited = waited(event, place, &action, &memory, deadline)?;
    let decision = match waited {
        Some(decision) => decision,
        None => authorize(event, place, &action, deadline)?,
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
    Decision::read(reply.good()?, event, &action.input_digest)
}

/// What became of the action about the very same call that a person was asked to decide: still waiting, allowed and not yet
/// used, or denied, which is told once. Anything else is asked anew.
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
        memory.take_waiting();
        return Ok(None);
    }
    let decision = Decision::read(reply.good()?, event, &action.input_digest);
    let decision = decision.ok().filter(|it| it.id == id);
    match decision.as_ref().map(|it| &it.verdict) {
        Some(Verdict::Ask { .. }) => Ok(decision),
        // Of many that come at once one has what was allowed.
        Some(Verdict::Allow) if memory.take_waiting() => Ok(decision),
        Some(Verdict::Allow) => Ok(None),
        Some(Verdict::Deny { .. }) if memory.take_waiting() => Ok(decision),
        Some(Verdict::Deny { .. } | Verdict::Past) | None => {
            memory.take_waiting();
            Ok(None)
        }
    }
}
