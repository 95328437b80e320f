//! After a tool ran: what was allowed is settled, and what ran without being allowed is reported. After one that the client did not
//! let run: what was allowed is settled as cancelled.

use serde_json::json;
use svc_core::value::id::ActionId;
use svc_core::value::json::Json;

use super::action::{Action, Key};
use super::before::authorize;
use super::event::Event;
use super::exchange::post;
use super::memory::Memory;
use super::place::Place;
use super::verdict::{Decision, Verdict};
use super::{Deadline, Refused, complain, transcript};

/// Tells the gate what came of a call. One that the gate was not asked about is asked about now, so that it knows of
/// it; so is one that is not what was asked about by the client's id of it, such as a call whose input somebody changed
/// after the answer. An allow that comes after the run allows nothing, so it is reported all the same.
///
/// # Errors
/// [`Refused`] where the gate could not be told.
pub(crate) fn tell(event: &Event, place: &Place, failed: bool, deadline: Deadline) -> Result<(), Refused> {
    if place.is_unasked(event) {
        return Ok(());
    }
    let memory = memory(event, place);
    let told = match memory.take() {
        Some(asked) if memory.is_about(&asked) => {
            let told = match asked.allowed {
                true => settle(asked.action, place, outcome(failed), deadline),
                false => report(asked.action, event, place, failed, false, deadline),
            };
            memory.forget_waiting(&asked);
            told
        }
        // By the same id something else was asked about: that has not run, and what has is one that nobody asked about.
        Some(asked) => {
            let other = match asked.allowed {
                true => settle(asked.action, place, "cancelled", deadline),
                false => Ok(()),
            };
            let context = transcript::told(event, deadline);
            let by = |key| authorize(event, place, &Action::of(event, &context), key, deadline);
            let decision = by(Key::Instead).and_then(|it| it.map_or_else(|| by(Key::Fresh), |it| Ok(Some(it))));
            decision.and_then(|it| unasked(it, event, place, failed, deadline)).and(other)
        }
        None => newest(event, place, &memory, deadline).and_then(|it| unasked(it, event, place, failed, deadline)),
    };
    memory.tidy();
    told
}

/// Tells the gate that a call was not done after all. One that was not allowed stays as it is: whoever was asked about it may still
/// say yes, and the call may be made again.
///
/// # Errors
/// As [`tell`].
pub(crate) fn withheld(event: &Event, place: &Place, deadline: Deadline) -> Result<(), Refused> {
    if place.is_unasked(event) {
        return Ok(());
    }
    memory(event, place).take_allowed().map_or(Ok(()), |it| settle(it.action, place, "cancelled", deadline))
}

fn memory(event: &Event, place: &Place) -> Memory {
    Memory::of(place.state.as_deref(), event, &Action::of(event, &[]).input_digest)
}

/// What the gate says of a call that has run and of which nothing is remembered. Where the client's id of it stands for another
/// question, nobody has asked about this one, as that would be remembered; where nothing can be remembered nobody can tell.
fn newest(event: &Event, place: &Place, memory: &Memory, deadline: Deadline) -> Result<Option<Decision>, Refused> {
    let told = transcript::told(event, deadline);
    let action = Action::of(event, &told);
    let by = |key| authorize(event, place, &action, key, deadline);
    match by(Key::Turn(0))? {
        // Another hook that tells of this run as well meets in the one question.
        None if memory.is_kept() => by(Key::Turn(1))?.map_or_else(|| by(Key::Fresh), |it| Ok(Some(it))),
        decision => Ok(decision),
    }
}

/// Tells what came of a call that the gate was asked about only now, so that it knows of it.
fn unasked(
    decision: Option<Decision>,
    event: &Event,
    place: &Place,
    failed: bool,
    deadline: Deadline,
) -> Result<(), Refused> {
    let Some(decision) = decision else {
        return Err(Refused::new("its id stands for another call, and nothing can be remembered of this one"));
    };
    // Where nothing can be remembered it was asked about all the same: the gate remembers the client's id of it, and of a call
    // without one nobody can tell.
    let may_be_asked = decision.replayed || (event.call.is_none() && place.state.is_none());
    match decision.verdict {
        // What was used up by this very call is over for others; what came of it is told all the same.
        Verdict::Allow | Verdict::Past if may_be_asked => settle(decision.id, place, outcome(failed), deadline),
        Verdict::Allow | Verdict::Past | Verdict::Ask { .. } | Verdict::Deny { .. } => {
            report(decision.id, event, place, failed, !may_be_asked, deadline)
        }
    }
}

const fn outcome(failed: bool) -> &'static str {
    if failed { "failed" } else { "completed" }
}

fn settle(id: ActionId, place: &Place, status: &str, deadline: Deadline) -> Result<(), Refused> {
    let body = json!({ "status": status }).to_string();
    let reply = post(place, &format!("/v1/actions/{id}/settle"), &body, deadline)?;
    match reply.error() {
        Some("already_settled") => Ok(()),
        _ => reply.good().map(drop),
    }
}

/// Reports a run of what was not allowed, or of what was `unasked` when it ran; where it is allowed by now it is settled.
fn report(
    id: ActionId,
    event: &Event,
    place: &Place,
    failed: bool,
    unasked: bool,
    deadline: Deadline,
) -> Result<(), Refused> {
    let body = if unasked { json!({ "unasked": true }) } else { json!({}) };
    let reply = post(place, &format!("/v1/actions/{id}/ran"), &body.to_string(), deadline)?;
    let answer = reply.good()?;
    let is = |name: &str, word: &str| answer.get(name).and_then(Json::as_str) == Some(word);
    let is_allowed = is("decision", "allow") && is("status", "allowed");
    if unasked && is_allowed {
        complain(&format!("svc notes that `{}` ran before the gate was asked about it, as {id}", event.tool));
    } else if !is_allowed {
        complain(&format!("svc notes that `{}` ran although {id} was not allowed by the gate", event.tool));
    }
    if is_allowed { settle(id, place, outcome(failed), deadline) } else { Ok(()) }
}
