//! Stopping an agent. One written row voids everything made under the agent's epoch, in its own commit; approvals that
//! waited are then ended one by one, and readers go by the epoch meanwhile.

use std::sync::Arc;

use super::record::ActionRecord;
use super::{payee, posting};
use crate::refusal::Refusal;
use crate::rules::edge::notify;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{
    Action, Activity, Agent, Approval, ApprovalState, Code, DecidedBy, Effect, Frozen, FrozenBy, Reason, Standing,
    State, Status, Verb,
};
use crate::state::people::{Roster, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{ActionId, AgentId, ApprovalId, PrincipalId, WorkspaceId};
use crate::value::text::Note;

/// Stops one agent.
#[derive(Clone, Debug)]
pub struct FreezeAgent {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which agent.
    pub agent: AgentId,
    /// Which person stops it; absent where a rule of the embedding program does.
    pub by: Option<PrincipalId>,
    /// Why.
    pub reason: Note,
}

/// Stops one agent; stopping a stopped one changes nothing.
///
/// # Errors
/// `not_found` where the workspace has no such agent, or it was removed.
pub fn freeze_agent(scope: &mut Scope<'_>, asked: &FreezeAgent) -> Result<Arc<Agent>, Halt> {
    scope.want(&[Agent::key(asked.agent), Roster::key(asked.workspace)])?;
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    if !agent.is_active() {
        return Ok(agent);
    }
    let by = asked.by.map_or(FrozenBy::Policy, FrozenBy::Person);
    let actor = asked.by.map_or(Actor::Policy, Actor::Person);
    let frozen = Frozen { at: scope.now(), by, reason: asked.reason.clone(), incident: None };
    freeze(scope, &agent, frozen, actor)
}

/// An agent of this workspace that was not removed.
///
/// # Errors
/// `not_found`.
pub fn own_agent(scope: &mut Scope<'_>, workspace: WorkspaceId, id: AgentId) -> Result<Arc<Agent>, Halt> {
    let found = scope.get::<Agent>(id)?.filter(|it| it.workspace == workspace);
    let found = found.filter(|it| !matches!(it.standing, Standing::Removed { .. }));
    found.ok_or_else(|| Refusal::not_found().into())
}

/// Stops an active agent, records it, and tells whoever selects agents that their standing has changed.
pub(super) fn freeze(scope: &mut Scope<'_>, agent: &Agent, frozen: Frozen, actor: Actor) -> Result<Arc<Agent>, Halt> {
    if !agent.is_active() {
        return Ok(Arc::new(agent.clone()));
    }
    let roster = scope.get::<Roster>(agent.workspace)?.ok_or_else(Refusal::internal)?;
    scope.put(Roster { epoch: roster.epoch.saturating_add(1), ..Roster::clone(&roster) });
    let reason = frozen.reason.clone();
    let stopped = agent.clone().freeze(frozen);
    let data = Object::new().text("agentId", &agent.id.to_string()).int("epoch", stopped.epoch.into()).finish();
    let fact = Fact { kind: "agent.frozen", actor, subject: Subject::Agent(agent.id), data };
    scope.append_with(agent.workspace, fact, &[("reason", reason.as_str())]);
    scope.put(stopped.clone());
    Ok(Arc::new(stopped))
}

/// Ends one approval of an agent that was stopped after it was asked: deny, by the freeze.
///
/// # Errors
/// [`Halt::Load`] alone; what no longer waits is left as it is.
pub fn end_approval(scope: &mut Scope<'_>, id: ApprovalId) -> Result<(), Halt> {
    let Some(approval) = scope.get::<Approval>(id)?.filter(|it| it.is_waiting()) else { return Ok(()) };
    let Some(asked) = approval.asked_action() else { return Ok(()) };
    scope.want(&[Agent::key(asked.agent), Activity::key(asked.agent), Action::key(asked.action)])?;
    let agent = scope.get::<Agent>(asked.agent)?.ok_or_else(Refusal::internal)?;
    if agent.epoch == asked.epoch && agent.is_active() {
        return Ok(());
    }
    let at = agent.stopped_since(asked.epoch).unwrap_or_else(|| scope.now());
    let ended = Approval::clone(&approval).ended(ApprovalState::Denied { at, by: None, note: None });
    let reason = Reason::new(Code::AgentFrozen, Effect::Deny);
    let state = State::Denied { at, by: DecidedBy::Freeze };
    end_waiting(scope, &agent, ended, End::by_itself(asked.action, state, reason, "action.denied"))
}

/// How a wait ends without a person's yes.
pub(super) struct End<'a> {
    pub(super) action: ActionId,
    pub(super) state: State,
    pub(super) reasons: Vec<Reason>,
    pub(super) kind: &'static str,
    pub(super) actor: Actor,
    pub(super) note: Option<&'a Note>,
    pub(super) more: Vec<(&'static str, String)>,
}

impl End<'_> {
    /// An end that no person brings about.
    pub(super) fn by_itself(action: ActionId, state: State, reason: Reason, kind: &'static str) -> Self {
        let actor = if matches!(state, State::Expired { .. }) { Actor::Timer } else { Actor::Policy };
        Self { action, state, reasons: vec![reason], kind, actor, note: None, more: Vec::new() }
    }
}

/// Ends a wait: approval, action, what it reserved, how many wait, and the record, in one commit.
pub(super) fn end_waiting(scope: &mut Scope<'_>, agent: &Agent, ended: Approval, end: End<'_>) -> Result<(), Halt> {
    let stored = scope.get::<Activity>(agent.id)?.ok_or_else(Refusal::internal)?;
    let action = scope.get::<Action>(end.action)?.ok_or_else(Refusal::internal)?;
    let mut activity = Activity::clone(&stored);
    activity.waiting = activity.waiting.saturating_sub(1);
    if let Some(held) = &action.reservation {
        posting::release(&mut activity, held);
    }
    if let Some(slot) = action.payee {
        payee::void(scope, slot)?;
    }
    let mut action = Action::clone(&action);
    action.reservation = None;
    action.reasons.extend(end.reasons);
    action.state = end.state;
    let status = if matches!(action.state, State::Expired { .. }) { Status::Expired } else { Status::Denied };
    let (kind, actor) = (end.kind, end.actor);
    let fact = ActionRecord { kind, actor, action: &action, agent, verb: Verb::Deny, status }.fact(&end.more);
    let note = end.note.map(|it| ("note", it.as_str()));
    action.evidence = scope.append_with(agent.workspace, fact, note.as_slice());
    notify::decided(scope, &action)?;
    scope.put(activity);
    scope.put(ended);
    scope.put(action);
    Ok(())
}

/// Records that a stop has voided an allowed action: what readers know by the agent's epoch already.
///
/// # Errors
/// [`Halt::Load`] alone; what is not revoked, or recorded already, is left as it is.
pub fn record_revoked(scope: &mut Scope<'_>, id: ActionId) -> Result<(), Halt> {
    let Some(action) = scope.get::<Action>(id)? else { return Ok(()) };
    scope.want(&[Agent::key(action.agent), Workspace::key(action.workspace)])?;
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    let status = action.status(&agent, workspace.hold.is_some(), scope.now());
    let mut revoked = Action::clone(&action);
    match &mut revoked.state {
        State::Allowed(allowed) if status == Status::Revoked && allowed.revoked.is_none() => {
            allowed.revoked = Some(agent.stopped_since(action.epoch).unwrap_or_else(|| scope.now()));
        }
        State::Allowed(_) | State::Denied { .. } | State::Expired { .. } | State::Pending { .. } => return Ok(()),
    }
    let record = ActionRecord {
        kind: "action.revoked",
        actor: Actor::Policy,
        action: &revoked,
        agent: &agent,
        verb: Verb::Deny,
        status,
    };
    revoked.evidence = scope.append(agent.workspace, record.fact(&[]));
    scope.put(revoked);
    Ok(())
}

/// Notes that no approval of an older epoch waits any more.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn followed(scope: &mut Scope<'_>, id: AgentId) -> Result<(), Halt> {
    if let Some(agent) = scope.get::<Agent>(id)?.filter(|it| it.following.is_some()) {
        scope.put(Agent { following: None, ..Agent::clone(&agent) });
    }
    Ok(())
}
