//! What follows somebody's leaving, and of it what follows a role that gives no keys: teams that they answered for have no owner, keys that count for them end, as do further keys
//! that they made for agents, whose text they know, and admin keys that they made, whomever these count for. Agents stay, with the
//! keys that they came with, and pass to their sponsors; one without a sponsor who is a member waits for an owner, who names one. Of whom
//! they were sponsor or kill owner they are so no more, and would not be again where they are invited anew; whoever comes into a role in
//! which they decide nothing is sponsor of none, and stays kill owner, which is nobody's for their role.
//! Where an agent came with a key that who left may have noted, whoever it passes to makes it a new one and revokes that.

use super::{agents, keys};
use crate::refusal::Refusal;
use crate::rules::gate::freeze::touch;
use crate::rules::gate::holds;
use crate::state::evidence::Actor;
use crate::state::gate::Agent;
use crate::state::people::{Credential, KeyScope, Principal};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::CredentialId;
use crate::value::id::{AgentId, PrincipalId};

/// Takes somebody who left out of an agent: it passes to its sponsor where it acted for them, and they are its sponsor and kill owner no more.
#[derive(Clone, Copy, Debug)]
pub struct PassAgent {
    /// Which agent.
    pub agent: AgentId,
    /// Who left.
    pub left: PrincipalId,
}

/// Passes an agent on, where whoever it acts for is a member no more and its sponsor may answer for it, and lets go of a sponsor and a
/// kill owner who left, also where they have been invited again by then, and of a sponsor who decides nothing any more: what they were
/// trusted with they are given anew or not at all.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn pass_agent(scope: &mut Scope<'_>, asked: &PassAgent) -> Result<(), Halt> {
    let agent = scope.get::<Agent>(asked.agent)?;
    let Some(agent) = agent.filter(|it| !it.is_removed()) else { return Ok(()) };
    let who = scope.get::<Principal>(asked.left)?;
    let left = who.as_ref().is_some_and(|it| it.is_followed_for_leaving());
    let answers = !left && who.is_some_and(|it| it.decides_own());
    let stays = |id: &PrincipalId| !left || *id != asked.left;
    let still_answers = |id: &PrincipalId| answers || *id != asked.left;
    let heir = if agent.principal == asked.left { heir(scope, &agent, agent.sponsor)? } else { None };
    let after = Agent {
        principal: heir.unwrap_or(agent.principal),
        sponsor: agent.sponsor.filter(still_answers),
        kill_owner: agent.kill_owner.filter(stays),
        ..Agent::clone(&agent)
    };
    if after == *agent {
        return Ok(());
    }
    agents::record(scope, &Actor::Policy, &agent, &after);
    touch(scope, agent.workspace)?;
    scope.put(after);
    Ok(())
}

/// Who an agent acts for from now on, where whoever it acts for has left and `sponsor` may answer for it.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn heir(
    scope: &mut Scope<'_>,
    agent: &Agent,
    sponsor: Option<PrincipalId>,
) -> Result<Option<PrincipalId>, Halt> {
    let Some(sponsor) = sponsor.filter(|it| *it != agent.principal) else { return Ok(None) };
    if !scope.get::<Principal>(agent.principal)?.is_some_and(|it| it.was_removed()) {
        return Ok(None);
    }
    let answers = scope.get::<Principal>(sponsor)?.is_some_and(|it| it.decides_own());
    Ok(answers.then_some(sponsor))
}

/// Ends a key that counts for somebody who left, or that they made to administer, or for an agent beside the one it came with.
#[derive(Clone, Copy, Debug)]
pub struct EndKey {
    /// The key's row.
    pub credential: CredentialId,
    /// Who left.
    pub left: PrincipalId,
}

/// Ends a key that became void when its principal left, or came into a role that gives none, so that its own row says so. A further key
/// of an agent ends with whoever made it, whomever the agent acts for: they know its text.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn end_key(scope: &mut Scope<'_>, asked: &EndKey) -> Result<(), Halt> {
    let found = scope.get::<Credential>(asked.credential)?.filter(|it| it.ends_with(asked.left));
    let Some(credential) = found.filter(|it| it.revoked_at.is_none()) else { return Ok(()) };
    let left = scope.get::<Principal>(asked.left)?.ok_or_else(Refusal::internal)?;
    let mut is_void = left.has_ended_since(credential.created_at);
    if let KeyScope::Agent(agent) = credential.binding.scope
        && let Some(agent) = scope.get::<Agent>(agent)?
    {
        // The one that the agent came with is nobody's but its own.
        if agent.keys.iter().any(|it| it.id == credential.binding.key && it.made_by.is_none()) {
            return Ok(());
        }
        is_void |= credential.is_live(scope.now()) && !holds(scope, &agent, credential.binding.key)?;
    } else {
        is_void |= keys::is_void(scope, &credential)?;
    }
    if is_void {
        if let KeyScope::Agent(agent) = credential.binding.scope {
            keys::drop_from(scope, agent, credential.binding.key)?;
        }
        keys::free(scope, &credential)?;
        keys::record(scope, &credential, "key.revoked", Actor::Policy);
        scope.put(Credential { revoked_at: Some(scope.now()), ..Credential::clone(&credential) });
    }
    Ok(())
}

/// Ends what follows somebody's leaving.
#[derive(Clone, Copy, Debug)]
pub struct FollowLeave {
    /// Who left.
    pub left: PrincipalId,
    /// When, as it was when agents and keys were looked for.
    pub since: Timestamp,
}

/// Notes that agents and keys of somebody who left are done with. Who left again meanwhile is followed anew.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn follow_leave(scope: &mut Scope<'_>, done: &FollowLeave) -> Result<(), Halt> {
    if let Some(left) = scope.get::<Principal>(done.left)?.filter(|it| it.following == Some(done.since)) {
        scope.put(Principal { following: None, ..Principal::clone(&left) });
    }
    Ok(())
}
