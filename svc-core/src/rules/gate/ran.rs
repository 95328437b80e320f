//! A tool ran although its action was not allowed: the person at the keyboard let it, or nobody did. It is noted,
//! recorded, and told to whoever may decide what the agent asks; it makes no allow of it.

use std::sync::Arc;

use super::caller::Caller;
use super::expire::expire;
use super::freeze::{End, EndApproval, end_approval, end_waiting};
use super::record::ActionRecord;
use crate::refusal::Refusal;
use crate::rules::edge::tell;
use crate::rules::read::{View, own_action, view};
use crate::state::evidence::Actor;
use crate::state::gate::{Action, Activity, Agent, Approval, ApprovalState, Code, Effect, Reason, State, Status};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::ActionId;

/// Says that what an action is about was done.
#[derive(Clone, Copy, Debug)]
pub struct ReportRun {
    /// Who says so.
    pub caller: Caller,
    /// Which action.
    pub action: ActionId,
    /// Whether it had run before the gate was asked, so that an allow came too late for it.
    pub unasked: bool,
}

/// Notes a run of what was not allowed. Of what is allowed or settled nothing is noted, unless it is one that was allowed only
/// after it had run; and of one action one run. Where the
/// person at the keyboard was the one to ask, they have answered: nobody is waited for any more.
///
/// # Errors
/// `not_found` where the action is not the caller's, and those of the caller.
pub fn report_run(scope: &mut Scope<'_>, said: &ReportRun) -> Result<View, Halt> {
    let caller = &said.caller;
    scope.want(&[Agent::key(caller.agent), Workspace::key(caller.workspace), Activity::key(caller.agent)])?;
    let before = view_of(scope, said)?;
    let permitted = match before.status() {
        Status::Allowed => !said.unasked,
        Status::Lapsed | Status::Completed | Status::Failed | Status::Cancelled => true,
        Status::Pending | Status::Denied | Status::Expired | Status::Revoked => false,
    };
    if permitted || before.action.signals.contains(&Code::UnapprovedRun) {
        return Ok(before);
    }
    if before.status() != Status::Pending
        && let (State::Pending { .. }, Some(approval)) = (&before.action.state, before.action.approval)
    {
        // A stop or time has ended the wait: the ledger has that before it has the run.
        expire(scope, approval)?;
        end_approval(scope, &EndApproval(approval))?;
    }
    if before.status() == Status::Pending && before.client_may_ask {
        let id = before.action.approval.ok_or_else(Refusal::internal)?;
        let approval = scope.get::<Approval>(id)?.ok_or_else(Refusal::internal)?;
        let at = scope.now();
        let ended = Approval::clone(&approval).ended(ApprovalState::Expired { at });
        let reason = Reason::new(Code::ApprovalExpired, Effect::Deny);
        let end = End::by_itself(said.action, State::Expired { at }, reason, "action.expired");
        end_waiting(scope, &before.agent, ended, end)?;
    }
    let stored = scope.get::<Action>(said.action)?.ok_or_else(Refusal::internal)?;
    let mut action = Action::clone(&stored);
    action.signals.push(Code::UnapprovedRun);
    let status = action.status(&before.agent, before.hold.map(|it| it.at), scope.now());
    let (kind, actor, verb) = ("action.unapproved_run", Actor::Agent(caller.agent), action.verb(status));
    let record = ActionRecord { kind, actor, action: &action, agent: &before.agent, verb, status };
    action.evidence = scope.append(caller.workspace, record.fact(&[]));
    let workspace = scope.get::<Workspace>(caller.workspace)?.ok_or_else(Refusal::internal)?;
    tell::ran(scope, &workspace, &action)?;
    scope.put(action.clone());
    view(scope, Arc::new(action))
}

fn view_of(scope: &mut Scope<'_>, said: &ReportRun) -> Result<View, Halt> {
    let action = own_action(scope, &said.caller, said.action)?;
    view(scope, action)
}
