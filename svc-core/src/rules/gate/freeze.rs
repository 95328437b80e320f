//! Stopping an agent. One written row voids everything made under the agent's epoch, in its own commit; approvals that
//! waited are then ended one by one, and readers go by the epoch meanwhile.

use std::sync::Arc;

use super::hold::held_by;
use super::posting::Comes;
use super::record::ActionRecord;
use super::{ceiling, payee, posting};
use crate::refusal::Refusal;
use crate::rules::connect::end::end_all;
use crate::rules::edge::{notify, tell};
use crate::rules::people::by::{By, entitled, member, reaches};
use crate::state::connect::EndedBy;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{
    Action, Activity, Agent, Approval, ApprovalState, Code, DecidedBy, Effect, Frozen, FrozenBy, Reason, Standing,
    State, Status, Verb,
};
use crate::state::people::{Right, Roster, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{ActionId, AgentId, ApprovalId, WorkspaceId};
use crate::value::text::Note;

/// Stops one agent.
#[derive(Clone, Debug)]
pub struct FreezeAgent {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which agent.
    pub agent: AgentId,
    /// Who stops it.
    pub by: By,
    /// Why.
    pub reason: Note,
}

/// What comes of stopping one agent.
#[derive(Clone, Debug)]
pub enum Stopped {
    /// It is stopped, now or since before.
    Agent(Arc<Agent>),
    /// The token has frozen as many as it may in an hour: nothing is frozen, and a person is asked.
    Asked(Arc<Approval>),
}

/// Stops one agent; stopping a stopped one leaves it as it is.
///
/// # Errors
/// `not_found` where the workspace has no such agent, it was removed, or is not the caller's to stop; those of [`entitled`].
pub fn freeze_agent(scope: &mut Scope<'_>, asked: &FreezeAgent) -> Result<Stopped, Halt> {
    scope.want(&[Agent::key(asked.agent), Roster::key(asked.workspace), Workspace::key(asked.workspace)])?;
    let agent = agent_to_stop(scope, asked)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    if agent.is_active() && !ceiling::admits(scope, &asked.by, &workspace, 1)? {
        let members = [agent.id];
        let asking = ceiling::Asking { members: &members, all: false, reason: &asked.reason };
        return ceiling::ask(scope, &asked.by, &workspace, &asking).map(Stopped::Asked);
    }
    let frozen = Frozen::new(scope.now(), frozen_by(&asked.by), asked.reason.clone());
    freeze(scope, &agent, frozen, asked.by.actor()).map(Stopped::Agent)
}

/// The agent, where the caller may stop it: also its kill owner may, whatever their role.
fn agent_to_stop(scope: &mut Scope<'_>, asked: &FreezeAgent) -> Result<Arc<Agent>, Halt> {
    let agent = own_agent(scope, asked.workspace, asked.agent);
    if let (By::Person(person), Ok(agent)) = (&asked.by, &agent)
        && agent.kill_owner == Some(person.principal)
    {
        member(scope, person)?;
        return Ok(Arc::clone(agent));
    }
    let right = if matches!(asked.by, By::Token(_)) { Right::FreezeFleet } else { Right::RunAgents };
    let reach = entitled(scope, &asked.by, asked.workspace, right)?;
    let agent = agent?;
    reaches(&asked.by, reach, &agent)?;
    Ok(agent)
}

/// Who an agent's row says has frozen it.
pub(super) fn frozen_by(by: &By) -> FrozenBy {
    match by {
        By::Person(person) => FrozenBy::Person(person.principal),
        By::Token(token) => FrozenBy::Token { id: token.token, name: token.name.clone() },
        By::Program | By::Key(_) => FrozenBy::Policy,
    }
}

/// An agent of this workspace that was not removed.
///
/// # Errors
/// `not_found`.
pub fn own_agent(scope: &mut Scope<'_>, workspace: WorkspaceId, id: AgentId) -> Result<Arc<Agent>, Halt> {
    found_agent(scope, workspace, id)?.ok_or_else(|| Refusal::not_found().into())
}

/// The same, or none where it is no agent of this workspace or was removed.
pub(in crate::rules) fn found_agent(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    id: AgentId,
) -> Result<Option<Arc<Agent>>, Halt> {
    let found = scope.get::<Agent>(id)?.filter(|it| it.workspace == workspace);
    Ok(found.filter(|it| !it.is_removed()))
}

/// Stops an active agent, records it, and tells whoever selects agents that their standing has changed. One that is stopped
/// stays as it is, but for an incident, and for what the end of a hold would otherwise undo.
pub(super) fn freeze(scope: &mut Scope<'_>, agent: &Agent, frozen: Frozen, actor: Actor) -> Result<Arc<Agent>, Halt> {
    match &agent.standing {
        Standing::Removed { .. } => return Ok(Arc::new(agent.clone())),
        Standing::Frozen(standing) => {
            let repeated = standing.repeated(&frozen);
            if repeated == *standing {
                return Ok(Arc::new(agent.clone()));
            }
            if repeated.again != standing.again {
                let data = Object::new().text("agentId", &agent.id.to_string()).int("epoch", agent.epoch.into());
                let data = data.raw("new", "{\"frozenAgain\":true}").raw("old", "{\"frozenAgain\":false}").finish();
                let fact = Fact { kind: "agent.changed", actor, subject: Subject::Agent(agent.id), data };
                scope.append_with(agent.workspace, fact, &[("reason", frozen.reason.as_str())]);
            }
            let marked = Agent { standing: Standing::Frozen(repeated), ..agent.clone() };
            scope.put(marked.clone());
            return Ok(Arc::new(marked));
        }
        Standing::Active => {}
    }
    touch(scope, agent.workspace)?;
    end_all(scope, agent, EndedBy::Frozen, &actor)?;
    let stopped = agent.clone().freeze(frozen);
    record_stop(scope, &stopped, actor);
    scope.put(stopped.clone());
    Ok(Arc::new(stopped))
}

/// Notes that something changed which a selector of agents can see.
pub(crate) fn touch(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<(), Halt> {
    let roster = scope.get::<Roster>(workspace)?.ok_or_else(Refusal::internal)?;
    scope.put(Roster { epoch: roster.epoch.saturating_add(1), ..Roster::clone(&roster) });
    Ok(())
}

/// Writes the ledger's record of one agent's stop.
fn record_stop(scope: &mut Scope<'_>, stopped: &Agent, actor: Actor) {
    let Some(frozen) = stopped.frozen() else { return };
    let mut data = Object::new().text("agentId", &stopped.id.to_string()).int("epoch", stopped.epoch.into());
    if let Some(hold) = frozen.hold {
        data = data.text("hold", &hold.to_string());
    }
    let fact = Fact { kind: "agent.frozen", actor, subject: Subject::Agent(stopped.id), data: data.finish() };
    scope.append_with(stopped.workspace, fact, &[("reason", frozen.reason.as_str())]);
}

/// The agent with the record of its stop written, where that was still to be done: one of a fleet has it a moment later, or
/// before anything else becomes of it.
pub fn recorded(scope: &mut Scope<'_>, agent: &Agent) -> Agent {
    let mut agent = agent.clone();
    if let Standing::Frozen(frozen) = &mut agent.standing
        && frozen.unrecorded
    {
        frozen.unrecorded = false;
        let actor = actor_of(&frozen.by);
        record_stop(scope, &agent, actor);
    }
    agent
}

/// Who has frozen an agent, as the ledger names them.
pub(super) fn actor_of(by: &FrozenBy) -> Actor {
    match by {
        FrozenBy::Person(id) => Actor::Person(*id),
        FrozenBy::Policy => Actor::Policy,
        FrozenBy::Drill(id) => Actor::Drill(*id),
        FrozenBy::Integration(id) => Actor::Integration(*id),
        FrozenBy::Token { id, name } => Actor::Token { id: *id, name: name.clone() },
    }
}

/// Ends one approval of an agent that was stopped after it was asked.
#[derive(Clone, Copy, Debug)]
pub struct EndApproval(pub ApprovalId);

/// Ends one approval of an agent that was stopped after it was asked: deny, by the freeze.
///
/// # Errors
/// [`Halt::Load`] alone; what no longer waits is left as it is.
pub fn end_approval(scope: &mut Scope<'_>, ended: &EndApproval) -> Result<(), Halt> {
    let Some(approval) = scope.get::<Approval>(ended.0)?.filter(|it| it.is_waiting()) else { return Ok(()) };
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
    let action = scope.get::<Action>(end.action)?.ok_or_else(Refusal::internal)?;
    give_back(scope, &action)?;
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
    tell::ended(scope, agent, &ended)?;
    scope.put(ended);
    scope.put(action);
    Ok(())
}

/// Gives back what an action that waits holds: its place among those that wait, what it reserved, its part of the payee's sum.
pub(super) fn give_back(scope: &mut Scope<'_>, action: &Action) -> Result<(), Halt> {
    let stored = scope.get::<Activity>(action.agent)?.ok_or_else(Refusal::internal)?;
    let mut activity = Activity::clone(&stored);
    activity.end_wait(action.epoch);
    if let Some(held) = action.held() {
        posting::release(&mut activity, held);
    }
    let asked = action.payment.as_ref().map_or(0, |it| it.amount);
    posting::recount(&mut activity, action, Comes { from: asked, to: None });
    if let Some(slot) = action.payee {
        payee::void(scope, slot)?;
    }
    scope.put(activity);
    Ok(())
}

/// Records that a stop has voided an allowed action.
#[derive(Clone, Copy, Debug)]
pub struct RecordRevoked(pub ActionId);

/// Records that a stop has voided an allowed action: what readers know by the agent's epoch already.
///
/// # Errors
/// [`Halt::Load`] alone; what is not revoked, or recorded already, is left as it is.
pub fn record_revoked(scope: &mut Scope<'_>, revoked: &RecordRevoked) -> Result<(), Halt> {
    let Some(action) = scope.get::<Action>(revoked.0)? else { return Ok(()) };
    scope.want(&[Agent::key(action.agent), Workspace::key(action.workspace)])?;
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    let held = held_by(scope, &workspace, agent.id)?.map(|it| it.at);
    let status = action.status(&agent, held, scope.now());
    let mut revoked = Action::clone(&action);
    match &mut revoked.state {
        State::Allowed(allowed) if status == Status::Revoked && allowed.revoked.is_none() => {
            allowed.revoked = Some(agent.stopped_since(action.epoch).or(held).unwrap_or_else(|| scope.now()));
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
    // It neither repeats nor adds up any more, unless it is settled as done after all.
    if let Some(slot) = revoked.payee {
        payee::void(scope, slot)?;
    }
    scope.put(revoked);
    Ok(())
}

/// Ends the follow-up of a stop: what waited is ended, what was allowed is recorded as revoked.
#[derive(Clone, Copy, Debug)]
pub struct FollowStop {
    /// Of which agent.
    pub agent: AgentId,
    /// The epoch that the stop began, as it was when its effects were looked for.
    pub epoch: u32,
}

/// Notes that nothing of an older epoch waits any more, and writes the stop's record where the fleet's stood for it. An agent
/// that was stopped again meanwhile is followed anew.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn follow_stop(scope: &mut Scope<'_>, done: &FollowStop) -> Result<(), Halt> {
    let due = |it: &Arc<Agent>| it.following.is_some() && it.epoch == done.epoch;
    if let Some(agent) = scope.get::<Agent>(done.agent)?.filter(due) {
        let agent = recorded(scope, &agent);
        scope.put(Agent { following: None, ..agent });
    }
    Ok(())
}
