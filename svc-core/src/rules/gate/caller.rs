//! Who asks: an agent by one of its keys. The binding of a key never changes, so it comes with the command; whether the
//! key is in force stands in the agent's row and is checked in every commit.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::people::by::owns;
use crate::state::gate::{Agent, HeldKey};
use crate::state::people::{Binding, KeyScope, Member, Principal, Reach, Right};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::id::{AgentId, KeyId, WorkspaceId};

/// An agent and the key it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The agent.
    pub agent: AgentId,
    /// The key.
    pub key: KeyId,
}

impl Caller {
    /// The caller that a binding stands for.
    ///
    /// # Errors
    /// `agent_key_required` where the key is not an agent's.
    pub fn of(binding: &Binding) -> Result<Self, Refusal> {
        match binding.scope {
            KeyScope::Agent(agent) => Ok(Self { workspace: binding.workspace, agent, key: binding.key }),
            KeyScope::Admin | KeyScope::Inference => Err(Refusal::agent_key_required()),
        }
    }
}

/// The agent that `caller` is.
///
/// # Errors
/// `invalid_api_key` where the key is not in force, `agent_not_found` where the agent was removed.
pub fn caller_agent(scope: &mut Scope<'_>, caller: &Caller) -> Result<Arc<Agent>, Halt> {
    let agent = scope.get::<Agent>(caller.agent)?.ok_or_else(Refusal::invalid_api_key)?;
    if agent.workspace != caller.workspace || !holds(scope, &agent, caller.key)? {
        return Err(Refusal::invalid_api_key().into());
    }
    // A key that ended by itself is told that, whatever became of its agent.
    if agent.is_removed() {
        return Err(Refusal::agent_not_found(caller.agent).into());
    }
    Ok(agent)
}

/// Whether `key` is in force as one of `agent`'s. An access token ends where whoever connected it may connect the agent no more, and a
/// further key where whoever made it may make it none: they know its text. The one that an agent came with stays as the agent does.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn holds(scope: &mut Scope<'_>, agent: &Agent, key: KeyId) -> Result<bool, Halt> {
    let Some(held) = agent.held_key(key, scope.now()) else { return Ok(false) };
    gives(scope, agent, held)
}

/// Whether whoever a key of `agent` came by may still give it one, whatever its own time.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn gives(scope: &mut Scope<'_>, agent: &Agent, held: &HeldKey) -> Result<bool, Halt> {
    match (&held.via, held.made_by) {
        (Some(via), _) => {
            let person = scope.get::<Principal>(via.person)?;
            Ok(person.is_some_and(|it| still_connects(&it, agent, via.since)))
        }
        (None, Some((person, since))) => {
            let person = scope.get::<Principal>(person)?;
            Ok(person.is_some_and(|it| still_gives_keys(&it, agent, since)))
        }
        (None, None) => Ok(true),
    }
}

/// Whether what a person connected to an agent at `since` may still act as it: they are its principal, or an owner or admin who has been
/// one ever since, and have not left meanwhile.
pub(in crate::rules) fn still_connects(person: &Principal, agent: &Agent, since: Timestamp) -> bool {
    !person.has_ended_since(since) && (agent.principal == person.id || has_every_agent(person, since))
}

/// Whether a person may make keys for an agent, as at `since`: it is theirs, and their role makes keys for such, or it makes them for any
/// and always has.
fn still_gives_keys(person: &Principal, agent: &Agent, since: Timestamp) -> bool {
    let own = |it: &Member| owns(person.id, agent) && it.role.reach(Right::AgentKeys) != Reach::No;
    !person.has_ended_since(since) && (person.membership().is_some_and(own) || has_every_agent(person, since))
}

fn has_every_agent(person: &Principal, since: Timestamp) -> bool {
    let has = |it: &Member| it.role.reach(Right::AgentKeys) == Reach::All && !it.was_demoted_since(since);
    person.membership().is_some_and(has)
}
