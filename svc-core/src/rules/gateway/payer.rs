//! Who pays for a call: the key that it came with, whether that is in force, and whether its agent is stopped.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::gate::hold::held_by;
use crate::rules::gate::{gives, holds};
use crate::rules::people::keys::{self, EndedAbove};
use crate::state::evidence::Actor;
use crate::state::gate::Agent;
use crate::state::gateway::{Payer, Task};
use crate::state::people::{Binding, Credential, KeyScope, Principal, Workspace};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::digest::CredentialId;
use crate::value::id::{AgentId, HoldId, PrincipalId};
use crate::value::text::ClassId;

/// A workspace key as it was shown: what it stands for never changes; whether it is in force is looked up in each commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    /// Its row.
    pub row: CredentialId,
    /// What it stands for.
    pub binding: Arc<Binding>,
}

impl CallKey {
    /// The agent whose key it is.
    #[must_use]
    pub fn agent(&self) -> Option<AgentId> {
        match self.binding.scope {
            KeyScope::Agent(agent) => Some(agent),
            KeyScope::Admin | KeyScope::Inference => None,
        }
    }

    /// Who the ledger names.
    #[must_use]
    pub fn actor(&self) -> Actor {
        self.agent().map_or(Actor::Key(self.binding.key), Actor::Agent)
    }

    /// Who pays for work of this class, where `principal` is whose work it is ([`principal_of`]).
    #[must_use]
    pub fn payer(&self, principal: PrincipalId, class: Option<ClassId>) -> Payer {
        let team = self.binding.team;
        Payer { key: self.binding.counts_as(), agent: self.agent(), principal, team, class }
    }

    /// Whether `task` may be carried on by whoever has this key, where `principal` is whose work it does: a principal's own
    /// task, one that its own agent began before it passed on to somebody else, and any with an admin key.
    #[must_use]
    pub fn carries_on(&self, principal: PrincipalId, task: &Task) -> bool {
        let began = self.agent().is_some_and(|it| task.agent == Some(it));
        task.principal == principal || began || self.binding.scope == KeyScope::Admin
    }

    /// The rows that say whether it is in force.
    pub(super) fn keys(&self) -> Vec<Key> {
        let own = self.agent().map_or_else(|| Credential::key(self.row), Agent::key);
        vec![own, Workspace::key(self.binding.workspace)]
    }
}

/// That a key is in force.
///
/// # Errors
/// `invalid_api_key` where it is not. The key of a removed agent is, until it ends by itself or is revoked: what it may not do
/// is told as `agent_stopped`.
pub fn in_force(scope: &mut Scope<'_>, caller: &CallKey) -> Result<Option<Arc<Agent>>, Halt> {
    let Some(id) = caller.agent() else {
        let row = scope.get::<Credential>(caller.row)?.ok_or_else(Refusal::invalid_api_key)?;
        return if keys::is_in_force(scope, &row)? { Ok(None) } else { Err(Refusal::invalid_api_key().into()) };
    };
    let agent = scope.get::<Agent>(id)?.filter(|it| it.workspace == caller.binding.workspace);
    let agent = agent.ok_or_else(Refusal::invalid_api_key)?;
    if holds(scope, &agent, caller.binding.key)? { Ok(Some(agent)) } else { Err(Refusal::invalid_api_key().into()) }
}

/// Whether a key was taken from whoever has it: revoked, its connection ended, or void since somebody left or may make none any more. What
/// was begun with it ends then. What only came to its time, or was renewed by its connection, was not taken: what was begun goes on.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn was_taken(scope: &mut Scope<'_>, caller: &CallKey) -> Result<bool, Halt> {
    let row = scope.get::<Credential>(caller.row)?;
    let Some(id) = caller.agent() else {
        let Some(row) = row else { return Ok(true) };
        let is_void = row.revoked_at.is_some() || keys::is_void(scope, &row)?;
        return Ok(is_void || keys::ended_above(scope, &row)? == Some(EndedAbove::Revoked));
    };
    let Some(agent) = scope.get::<Agent>(id)? else { return Ok(true) };
    let (key, via) = (caller.binding.key, caller.binding.connection);
    let held = match via {
        Some(_) => agent.keys.iter().find(|it| it.connection() == via),
        None => agent.keys.iter().find(|it| it.id == key),
    };
    match held {
        Some(held) => Ok(!gives(scope, &agent, held)?),
        // One whose time was up is let go of by its agent, and its row goes on to say whether it was revoked.
        None => Ok(via.is_some() || row.is_none_or(|it| it.revoked_at.is_some())),
    }
}

/// The rows of keys and of people on which it hangs whether a key was taken ([`was_taken`]), beside its workspace's and its agent's.
/// They stay the same for as long as its agent's row does.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn hangs_on(scope: &mut Scope<'_>, caller: &CallKey) -> Result<Vec<Key>, Halt> {
    let people = |it: &Credential| [Some(it.binding.principal), it.administers_for()].into_iter().flatten();
    let mut all = vec![Credential::key(caller.row)];
    if let Some(id) = caller.agent() {
        let agent = scope.get::<Agent>(id)?;
        let held = agent.iter().flat_map(|it| &it.keys);
        let by = held.flat_map(|it| [it.via.as_ref().map(|via| via.person), it.made_by.map(|(person, _)| person)]);
        all.extend(by.flatten().map(Principal::key));
    } else if let Some(row) = scope.get::<Credential>(caller.row)? {
        let above: Vec<Key> = row.made_under.iter().map(|it| Credential::key(*it)).collect();
        scope.want(&above)?;
        for above in &row.made_under {
            all.extend(scope.get::<Credential>(*above)?.iter().flat_map(|it| people(it)).map(Principal::key));
        }
        all.extend(above);
        all.extend(people(&row).map(Principal::key));
    }
    Ok(all)
}

/// That a key may tell and read what became of its calls: it is in force, and its agent was not removed. A frozen agent's may.
///
/// # Errors
/// As [`in_force`], and `agent_stopped` where its agent was removed.
pub fn may_report(scope: &mut Scope<'_>, caller: &CallKey) -> Result<(), Halt> {
    match in_force(scope, caller)?.filter(|it| it.is_removed()) {
        Some(removed) => Err(Refusal::agent_stopped(removed.id, None::<HoldId>).into()),
        None => Ok(()),
    }
}

/// That a key may call models: it is in force, and neither its agent nor every agent is stopped.
///
/// # Errors
/// As [`in_force`], and `agent_stopped`.
pub fn may_call(scope: &mut Scope<'_>, caller: &CallKey) -> Result<(), Halt> {
    let workspace = scope.get::<Workspace>(caller.binding.workspace)?.ok_or_else(Refusal::invalid_api_key)?;
    stopped(scope, caller, &workspace)?.map_or(Ok(()), |refusal| Err(refusal.into()))
}

/// Whose work a key does: an agent's is whoever the agent acts for at present, which the binding of a key that was made
/// before the agent passed on does not tell; any other key's is as it was bound.
///
/// # Errors
/// `invalid_api_key` where the agent is not there.
pub fn principal_of(scope: &mut Scope<'_>, caller: &CallKey) -> Result<PrincipalId, Halt> {
    let Some(id) = caller.agent() else { return Ok(caller.binding.principal) };
    Ok(scope.get::<Agent>(id)?.ok_or_else(Refusal::invalid_api_key)?.principal)
}

/// What is told where the key's agent is stopped, or every agent is and the key is bound to none.
///
/// # Errors
/// As [`in_force`].
pub fn stopped(scope: &mut Scope<'_>, caller: &CallKey, workspace: &Workspace) -> Result<Option<Refusal>, Halt> {
    match in_force(scope, caller)? {
        Some(agent) => {
            let held = held_by(scope, workspace, agent.id)?;
            let stopped = held.is_some() || !agent.is_active();
            Ok(stopped.then(|| Refusal::agent_stopped(agent.id, held.map(|it| it.id))))
        }
        None => Ok(workspace.all_held().map(|hold| Refusal::all_stopped(Some(hold.id)))),
    }
}
