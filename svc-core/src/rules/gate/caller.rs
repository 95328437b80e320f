//! Who asks: an agent by one of its keys. The binding of a key never changes, so it comes with the command; whether the
//! key is in force stands in the agent's row and is checked in every commit.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::gate::Agent;
use crate::state::people::{Binding, KeyScope, Principal};
use crate::turn::{Halt, Scope};
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

/// Whether `key` is in force as one of `agent`'s. An access token ends with the membership of whoever connected it, and a
/// further key with that of whoever made it: who left knows its text. The one that an agent came with stays as the agent does.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn holds(scope: &mut Scope<'_>, agent: &Agent, key: KeyId) -> Result<bool, Halt> {
    let Some(held) = agent.held_key(key, scope.now()) else { return Ok(false) };
    let through = held.via.as_ref().map(|it| (it.person, it.since));
    let Some((person, since)) = through.or(held.made_by) else { return Ok(true) };
    let person = scope.get::<Principal>(person)?;
    Ok(person.is_some_and(|it| !it.has_ended_since(since)))
}
