//! The record that a refusal by policy leaves: at most one a minute for a key and a type.

use super::admit::Admission;
use super::payer::CallKey;
use crate::refusal::Refusal;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gateway::RefusalNote;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::digest::RefusalKey;
use crate::value::id::EvidenceId;

/// The refusal with its record: a new one, or the one that stands for this minute, in which it is counted.
pub(super) fn with_record(scope: &mut Scope<'_>, caller: &CallKey, refusal: Refusal) -> Result<Refusal, Halt> {
    let (workspace, key, now) = (caller.binding.workspace, caller.binding.key, scope.now());
    let id = RefusalNote::id_of(key, refusal.type_());
    let before = scope.get::<RefusalNote>(id)?;
    if let Some(note) = before.as_deref().filter(|it| it.stands(now)) {
        let repeats = note.repeats.saturating_add(1);
        scope.put(RefusalNote { repeats, ..note.clone() });
        return Ok(refusal.with_evidence(note.evidence));
    }
    if let Some(note) = before.as_deref().filter(|it| it.repeats > 0) {
        tell_repeats(scope, note);
    }
    let subject = caller.agent().map_or(Subject::Key(key), Subject::Agent);
    let mut data = Object::new().text("type", refusal.type_()).int("status", refusal.status().into());
    data = data.text("keyId", &key.to_string()).text("message", refusal.message());
    if let Some(hold) = refusal.hold() {
        data = data.text("hold", hold);
    }
    let fact = Fact { kind: "refusal", actor: caller.actor(), subject, data: data.finish() };
    let evidence = scope.append(workspace, fact);
    scope.put(RefusalNote { id, workspace, key, kind: refusal.type_().into(), evidence, at: now, repeats: 0 });
    Ok(refusal.with_evidence(evidence))
}

/// Records that whoever is stopped was refused where no call was to be admitted.
#[derive(Clone, Debug)]
pub struct RefuseStopped {
    /// Who was refused.
    pub caller: CallKey,
    /// What they are told: whoever was started again meanwhile was refused all the same.
    pub told: Refusal,
}

/// The refusal with its record, as one of a model call.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn refuse_stopped(scope: &mut Scope<'_>, asked: &RefuseStopped) -> Result<Admission, Halt> {
    with_record(scope, &asked.caller, asked.told.clone()).map(Admission::Refused)
}

/// Tells how many refusals a record stood for, once it stands for no more.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn end_note(scope: &mut Scope<'_>, id: RefusalKey) -> Result<(), Halt> {
    let now = scope.now();
    let ended = scope.get::<RefusalNote>(id)?.filter(|it| it.repeats > 0 && !it.stands(now));
    if let Some(note) = ended {
        tell_repeats(scope, &note);
        scope.put(RefusalNote { repeats: 0, ..RefusalNote::clone(&note) });
    }
    Ok(())
}

fn tell_repeats(scope: &mut Scope<'_>, note: &RefusalNote) -> EvidenceId {
    let data = Object::new()
        .text("type", &note.kind)
        .text("keyId", &note.key.to_string())
        .text("of", &note.evidence.to_string())
        .int("repeats", note.repeats.into());
    let subject = Subject::Key(note.key);
    scope.append(note.workspace, Fact { kind: "refusal", actor: Actor::Timer, subject, data: data.finish() })
}
