//! Agents, mandates, keys and service tokens as their lists and items show them. Nothing here decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::by::{By, entitled, member, reaches};
use super::keys::{self, EndedAbove};
use super::mandates::{Held, first_version, is_held};
use crate::refusal::Refusal;
use crate::rules::gate::hold::{as_frozen, held_by};
use crate::rules::gate::holds;
use crate::rules::gate::velocity::{self, Used};
use crate::state::gate::{ActionPattern, Activity, Agent, Grant, Mandate, Standing};
use crate::state::people::{Credential, KeyScope, Principal, Reach, Right, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::currency::Currency;
use crate::value::digest::CredentialId;
use crate::value::id::{AgentId, MandateId, MandateVersionId, PrincipalId, WorkspaceId};
use crate::value::period::Period;
use crate::value::text::Email;
use crate::value::words::words;

/// An agent with what its record shows of other rows.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// The agent.
    pub agent: Arc<Agent>,
    /// Where its principal is reached.
    pub email: Option<Email>,
    /// Its mandates that no person revoked; those of a removed agent ended with it.
    pub mandates: Vec<Held>,
    /// Whether all of it may be shown. Of an agent that is theirs by nothing else, its kill owner is shown which it is and how it
    /// stands: the rest is neither read nor told.
    pub whole: bool,
}

/// What an agent did lately.
#[derive(Clone, Debug)]
pub struct Lately {
    /// Its line of tool calls.
    pub tool: Used,
    /// Its line of all other actions.
    pub other: Used,
    /// How many of its approvals wait.
    pub waiting: u32,
    /// When it last asked, as far as its lines tell.
    pub seen_at: Option<Timestamp>,
    /// The first instant of the running month, in the workspace's zone.
    pub month: Timestamp,
}

/// How far `by` reads agents. A person whose role reads none is let in all the same: they may be the kill owner of some.
///
/// # Errors
/// Those of [`entitled`]; `forbidden` for a person alone who acts by another system's button.
pub fn reading(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId) -> Result<Reach, Halt> {
    let By::Person(person) = by else { return entitled(scope, by, workspace, Right::ReadAgents) };
    entitled(scope, by, workspace, Right::Everyone)?;
    Ok(member(scope, person)?.1.reach(Right::ReadAgents))
}

/// Those of the agents that `by` may read, or stop as their kill owner, in the order asked for; `None` in the place of every other
/// one.
///
/// # Errors
/// Those of [`reading`].
pub fn agents(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    ids: &[AgentId],
) -> Result<Vec<Option<AgentView>>, Halt> {
    let reach = reading(scope, by, workspace)?;
    scope.want(&ids.iter().map(|it| Agent::key(*it)).collect::<Vec<_>>())?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let agent = scope.get::<Agent>(*id)?.filter(|it| it.workspace == workspace);
        let seen = agent.map(|it| (reaches(by, reach, &it).is_ok(), it));
        found.push(seen.filter(|(whole, it)| *whole || stops_as_kill_owner(by, it)));
    }
    let mut keys = vec![Workspace::key(workspace)];
    for (_, agent) in found.iter().flatten().filter(|(whole, _)| *whole) {
        keys.push(Principal::key(agent.principal));
        keys.extend(agent.mandates.iter().map(|it| Mandate::key(version(it))));
    }
    scope.want(&keys)?;
    let mut shown =
        |(whole, agent)| if whole { view(scope, agent) } else { Ok(AgentView::brief(as_frozen(scope, agent)?)) };
    found.into_iter().map(|it| it.map(&mut shown).transpose()).collect()
}

/// One agent that `by` may read, or stop as its kill owner.
///
/// # Errors
/// Those of [`reading`], and `not_found`.
pub fn seen(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: AgentId) -> Result<AgentView, Halt> {
    let found = agents(scope, by, workspace, &[id])?.pop().flatten();
    found.ok_or_else(|| Refusal::not_found().into())
}

/// One agent that `by` may read whole.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn agent(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: AgentId) -> Result<AgentView, Halt> {
    entitled(scope, by, workspace, Right::ReadAgents)?;
    let found = seen(scope, by, workspace, id)?;
    if found.whole { Ok(found) } else { Err(Refusal::not_found().into()) }
}

/// Whether `by` may stop an agent whatever their role.
#[must_use]
pub fn stops_as_kill_owner(by: &By, agent: &Agent) -> bool {
    by.principal().is_some_and(|it| agent.kill_owner == Some(it))
}

impl AgentView {
    /// What its kill owner is shown.
    const fn brief(agent: Arc<Agent>) -> Self {
        Self { agent, email: None, mandates: Vec::new(), whole: false }
    }
}

/// An agent's record, for whoever has been given the agent already.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that is always there is not.
pub fn view(scope: &mut Scope<'_>, agent: Arc<Agent>) -> Result<AgentView, Halt> {
    let agent = as_frozen(scope, agent)?;
    let mut mandates = Vec::with_capacity(agent.mandates.len());
    for grant in &agent.mandates {
        if let Some(mandate) = scope.get::<Mandate>(version(grant))? {
            // They ended with an agent that was removed.
            let grant = is_held(&agent, grant.id).then(|| grant.clone());
            mandates.push(Held { mandate, grant });
        }
    }
    let email = scope.get::<Principal>(agent.principal)?.map(|it| it.email.clone());
    Ok(AgentView { agent, email, mandates, whole: true })
}

/// What an agent did lately.
///
/// # Errors
/// `internal` where a row that is always there is not.
pub fn lately(scope: &mut Scope<'_>, agent: &Agent) -> Result<Lately, Halt> {
    scope.want(&[Activity::key(agent.id), Workspace::key(agent.workspace)])?;
    let activity = scope.get::<Activity>(agent.id)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(agent.workspace)?.ok_or_else(Refusal::internal)?;
    let tool = velocity::used(scope, &activity, true, &workspace.settings)?;
    let other = velocity::used(scope, &activity, false, &workspace.settings)?;
    let seen_at = newest(&activity);
    let month = workspace.settings.term(Period::Month, scope.now()).from;
    Ok(Lately { tool, other, waiting: activity.waiting(agent.epoch), seen_at, month })
}

/// An agent as it stands, and since when a hold stops it, where one does: what says how its actions read.
///
/// # Errors
/// `internal` where a row that is always there is not.
pub fn stops(scope: &mut Scope<'_>, id: AgentId) -> Result<(Arc<Agent>, Option<Timestamp>), Halt> {
    let agent = scope.get::<Agent>(id)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(agent.workspace)?.ok_or_else(Refusal::internal)?;
    let held = held_by(scope, &workspace, id)?;
    Ok((agent, held.map(|it| it.at)))
}

/// When an agent last asked, as far as its lines tell.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn asked_at(scope: &mut Scope<'_>, agent: AgentId) -> Result<Option<Timestamp>, Halt> {
    Ok(scope.get::<Activity>(agent)?.and_then(|it| newest(&it)))
}

fn newest(activity: &Activity) -> Option<Timestamp> {
    let newest = [activity.tools.recent.last(), activity.others.recent.last(), activity.denials.last()];
    newest.into_iter().flatten().max().copied()
}

/// What an agent's mandates in force leave it by their limits a period, by currency: each as much as its own running period
/// has left, together as much as could be spent now. Nothing is told of a currency in which one has no such limit.
///
/// # Errors
/// `internal` where a row that is always there is not.
pub fn left(scope: &mut Scope<'_>, agent: &Agent) -> Result<BTreeMap<Currency, Option<i64>>, Halt> {
    let now = scope.now();
    let versions: Vec<MandateVersionId> = agent.mandates_in_force(now).collect();
    let mut keys: Vec<_> = versions.iter().map(|it| Mandate::key(*it)).collect();
    keys.extend([Activity::key(agent.id), Workspace::key(agent.workspace)]);
    scope.want(&keys)?;
    let activity = scope.get::<Activity>(agent.id)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(agent.workspace)?.ok_or_else(Refusal::internal)?;
    let mut left = BTreeMap::<Currency, Option<i64>>::new();
    for version in versions {
        let mandate = scope.get::<Mandate>(version)?.ok_or_else(Refusal::internal)?;
        let pays = mandate.actions.iter().any(ActionPattern::covers_payment);
        let Some(currency) = mandate.limits().currency.filter(|_| pays) else { continue };
        let own = mandate.limits().per_period.as_ref().map(|per| {
            let used = activity.tally(version.mandate, per.period, now, &workspace.settings).used();
            per.amount.saturating_sub(used).max(0)
        });
        let sum = left.entry(currency).or_insert(Some(0));
        *sum = sum.zip(own).map(|(sum, own)| sum.saturating_add(own));
    }
    Ok(left)
}

/// A mandate as it stands; of a revoked one the first version, in whose place a list of versions has the last.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn mandate(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: MandateId) -> Result<Held, Halt> {
    let reach = entitled(scope, by, workspace, Right::ReadAgents)?;
    let (first, agent) = first_version(scope, workspace, id)?;
    reaches(by, reach, &agent)?;
    let grant = agent.mandates.iter().find(|it| it.id == id && is_held(&agent, id)).cloned();
    let mandate = match &grant {
        Some(grant) => scope.get::<Mandate>(version(grant))?.ok_or_else(Refusal::internal)?,
        None => first,
    };
    Ok(Held { mandate, grant })
}

const fn version(grant: &Grant) -> MandateVersionId {
    MandateVersionId { mandate: grant.id, version: grant.version }
}

/// A key and where it stands.
#[derive(Clone, Debug)]
pub struct KeyView {
    /// Its row.
    pub row: Arc<Credential>,
    /// Whose work it does: of an agent's key whoever the agent acts for at present, which may be another than the key was
    /// made for.
    pub principal: PrincipalId,
    /// Whether it is good, or how it ended.
    pub state: KeyState,
}

/// Where a key or a service token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is good.
    Active,
    /// It was ended, or ended with something else.
    Revoked,
    /// Its time is up.
    Expired,
}

words! { KeyState;
    Active "active";
    Revoked "revoked";
    Expired "expired";
}

impl KeyView {
    /// A key that was made just now.
    #[must_use]
    pub fn of_new(row: Arc<Credential>) -> Self {
        Self { principal: row.binding.principal, row, state: KeyState::Active }
    }
}

/// Those of the keys that `by` may read, in the order asked for; with `agent` that agent's alone, else all others too.
///
/// # Errors
/// Those of [`entitled`].
pub fn keys(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    ids: &[CredentialId],
    agent: Option<AgentId>,
) -> Result<Vec<Option<KeyView>>, Halt> {
    let own = match agent {
        Some(id) => {
            let reach = entitled(scope, by, workspace, Right::AgentKeys)?;
            let agent =
                scope.get::<Agent>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
            reaches(by, reach, &agent)?;
            reach
        }
        None => entitled(scope, by, workspace, Right::ManageKeys)?,
    };
    debug_assert!(own != Reach::No, "nobody comes here without the right");
    scope.want(&ids.iter().map(|it| Credential::key(*it)).collect::<Vec<_>>())?;
    want_agents(scope, ids)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let row = scope.get::<Credential>(*id)?.filter(|it| it.binding.workspace == workspace);
        let row = row.filter(|it| agent.is_none_or(|agent| it.binding.scope == KeyScope::Agent(agent)));
        found.push(match row {
            Some(row) => Some(key(scope, row)?),
            None => None,
        });
    }
    Ok(found)
}

/// Asks for the agents whose keys these are in one round.
fn want_agents(scope: &mut Scope<'_>, ids: &[CredentialId]) -> Result<(), Halt> {
    let mut agents = Vec::new();
    for id in ids {
        if let Some(KeyScope::Agent(agent)) = scope.get::<Credential>(*id)?.map(|it| it.binding.scope) {
            agents.push(Agent::key(agent));
        }
    }
    scope.want(&agents)
}

/// Where a key stands.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn key(scope: &mut Scope<'_>, row: Arc<Credential>) -> Result<KeyView, Halt> {
    let agent = if let KeyScope::Agent(id) = row.binding.scope { scope.get::<Agent>(id)? } else { None };
    // Keys of a removed agent ended with it.
    let removed = agent.as_ref().is_some_and(|it| matches!(it.standing, Standing::Removed { .. }));
    let void = match &agent {
        None => keys::is_void(scope, &row)?,
        Some(agent) => row.is_live(scope.now()) && !holds(scope, agent, row.binding.key)?,
    };
    let state = match keys::ended_above(scope, &row)? {
        _ if removed || void || row.revoked_at.is_some() => KeyState::Revoked,
        Some(EndedAbove::Revoked) => KeyState::Revoked,
        None if row.is_live(scope.now()) => KeyState::Active,
        Some(EndedAbove::Expired) | None => KeyState::Expired,
    };
    let principal = agent.map_or(row.binding.principal, |it| it.principal);
    Ok(KeyView { row, principal, state })
}
