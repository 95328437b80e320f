//! What may change of an agent: its name, and for those who manage agents its tier, sponsor and kill owner. Its id and
//! workspace never do, and its principal only where they left: then whoever becomes its sponsor takes their place.

use std::sync::Arc;

use super::by::{By, entitled, reaches};
use super::leave::heir;
use super::register_agent::unfit;
use crate::refusal::Refusal;
use crate::rules::gate::freeze::own_agent;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Agent, Tier};
use crate::state::people::{Right, Roster};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{AgentId, PrincipalId, WorkspaceId};
use crate::value::text::Label;

/// Changes an agent. What is `None` stays as it is.
#[derive(Clone, Debug)]
pub struct ChangeAgent {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who.
    pub by: By,
    /// Which agent.
    pub agent: AgentId,
    /// What people call it from now on.
    pub name: Option<Label>,
    /// How much it is trusted from now on.
    pub tier: Option<Tier>,
    /// Who answers for it from now on; the inner `None` is nobody.
    pub sponsor: Option<Option<PrincipalId>>,
    /// Who may freeze it from now on; the inner `None` is nobody.
    pub kill_owner: Option<Option<PrincipalId>>,
}

/// Changes an agent; a name is a record of its own, with the old and the new one.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where the workspace has no such agent; `invalid_request` where it has no such
/// principal, or the sponsor would decide nothing.
pub fn change_agent(scope: &mut Scope<'_>, asked: &ChangeAgent) -> Result<Arc<Agent>, Halt> {
    let reach = entitled(scope, &asked.by, asked.workspace, Right::RunAgents)?;
    if asked.tier.is_some() || asked.sponsor.is_some() || asked.kill_owner.is_some() {
        entitled(scope, &asked.by, asked.workspace, Right::ManageAgents)?;
    }
    scope.want(&[Agent::key(asked.agent), Roster::key(asked.workspace)])?;
    let before = own_agent(scope, asked.workspace, asked.agent)?;
    reaches(&asked.by, reach, &before)?;
    // Who is there already may stay, also where they were removed: what was read can be sent back.
    let sponsor = asked.sponsor.flatten().filter(|it| Some(*it) != before.sponsor);
    let kill_owner = asked.kill_owner.flatten().filter(|it| Some(*it) != before.kill_owner);
    let faults = unfit(scope, asked.workspace, "", sponsor, kill_owner)?;
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let after = Agent {
        name: asked.name.clone().unwrap_or_else(|| before.name.clone()),
        tier: asked.tier.unwrap_or(before.tier),
        sponsor: asked.sponsor.unwrap_or(before.sponsor),
        kill_owner: asked.kill_owner.unwrap_or(before.kill_owner),
        principal: heir(scope, &before, asked.sponsor.flatten())?.unwrap_or(before.principal),
        ..Agent::clone(&before)
    };
    if after == *before {
        return Ok(before);
    }
    record(scope, &asked.by.actor(), &before, &after);
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    scope.put(Roster { epoch: roster.epoch.saturating_add(1), ..Roster::clone(&roster) });
    scope.put(after.clone());
    Ok(Arc::new(after))
}

/// Records what `after` has otherwise than `before`.
pub(super) fn record(scope: &mut Scope<'_>, actor: &Actor, before: &Agent, after: &Agent) {
    let agent = before.id.to_string();
    if before.name != after.name {
        let data = Object::new().text("agentId", &agent).finish();
        let fact = Fact { kind: "agent.renamed", actor: actor.clone(), subject: Subject::Agent(before.id), data };
        scope.append_with(before.workspace, fact, &[("old", before.name.as_str()), ("new", after.name.as_str())]);
    }
    let (old, new) = (trust(before, after), trust(after, before));
    if old != new {
        let data = Object::new().text("agentId", &agent).raw("new", &new).raw("old", &old).finish();
        let fact = Fact { kind: "agent.changed", actor: actor.clone(), subject: Subject::Agent(before.id), data };
        scope.append(before.workspace, fact);
    }
}

/// The members of `it` that `other` has otherwise, as canonical JSON; nobody is `null`.
fn trust(it: &Agent, other: &Agent) -> String {
    let mut object = Object::new();
    let principal = |id: Option<PrincipalId>| id.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
    let (sponsor, kill_owner) = (principal(it.sponsor), principal(it.kill_owner));
    if it.kill_owner != other.kill_owner {
        object = object.raw("killOwner", &kill_owner);
    }
    if it.principal != other.principal {
        object = object.text("principalId", &it.principal.to_string());
    }
    if it.sponsor != other.sponsor {
        object = object.raw("sponsor", &sponsor);
    }
    if it.tier != other.tier {
        object = object.text("tier", it.tier.as_str());
    }
    object.finish()
}
