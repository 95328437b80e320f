//! Nobody decided in time: the wait ends as `expired`, which is never a person's no.

use super::freeze::{End, EndApproval, end_approval, end_waiting};
use super::hold::held_by;
use crate::refusal::Refusal;
use crate::rules::edge::tell::take_back;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Action, Activity, Agent, Approval, ApprovalState, Code, Effect, Reason, State};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::ApprovalId;

/// Ends a wait whose time is up. Of one that has ended, however it did, what asks for it elsewhere is told.
///
/// # Errors
/// [`Halt::Load`] alone; what no longer waits, or not yet so long, is left as it is.
pub fn expire(scope: &mut Scope<'_>, id: ApprovalId) -> Result<(), Halt> {
    let now = scope.now();
    let Some(approval) = scope.get::<Approval>(id)? else { return Ok(()) };
    if !approval.is_waiting() {
        return take_back(scope, &approval);
    }
    if now < approval.expires_at {
        return Ok(());
    }
    let at = approval.expires_at;
    let ended = Approval::clone(&approval).ended(ApprovalState::Expired { at });
    let Some(asked) = approval.asked_action() else {
        let data = Object::new().text("kind", approval.kind().as_str()).finish();
        let subject = Subject::Approval(id);
        scope.append(approval.workspace, Fact { kind: "approval.expired", actor: Actor::Timer, subject, data });
        scope.put(ended);
        return Ok(());
    };
    let workspace = Workspace::key(approval.workspace);
    scope.want(&[Agent::key(asked.agent), Activity::key(asked.agent), Action::key(asked.action), workspace])?;
    let workspace = scope.get::<Workspace>(approval.workspace)?.ok_or_else(Refusal::internal)?;
    // A hold is a freeze that the agent's own row does not tell yet. Once it does, the freeze ends the wait.
    if held_by(scope, &workspace, asked.agent)?.is_some_and(|held| held.at < at) {
        return Ok(());
    }
    let agent = scope.get::<Agent>(asked.agent)?.ok_or_else(Refusal::internal)?;
    if agent.stopped_since(asked.epoch).is_some_and(|at| at < approval.expires_at) {
        return end_approval(scope, &EndApproval(id));
    }
    let reason = Reason::new(Code::ApprovalExpired, Effect::Deny);
    let end = End::by_itself(asked.action, State::Expired { at }, reason, "action.expired");
    end_waiting(scope, &agent, ended, end)
}
