//! A person starts an agent again. What was allowed or asked before its stop stays void: its epoch is another one.

use std::sync::Arc;

use super::freeze::{own_agent, recorded, touch};
use super::hold::held_by;
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled, reaches};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Agent, Frozen};
use crate::state::people::{Principal, Right, Roster, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{AgentId, HoldId, PrincipalId, WorkspaceId};
use crate::value::text::Note;

/// Starts a frozen agent again. Over `svc_store::Gate` use `gate.restart`, which ends what the stop ends and looks for `admin`.
#[derive(Clone, Debug)]
pub struct RestartAgent {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which agent.
    pub agent: AgentId,
    /// Who starts it: a person or the embedding program; no token and no key may.
    pub by: By,
    /// Why.
    pub reason: Note,
    /// Somebody who was found to be an admin of the workspace besides the caller, if anybody was: what a sole owner may not
    /// do for themselves, that person is to do. Whether they still are one is checked here. Whoever runs the command by itself looks
    /// for them: none named is taken for none there.
    pub admin: Option<PrincipalId>,
}

/// Starts an agent again; starting an active one changes nothing.
///
/// # Errors
/// `missing_scope` for a machine, `not_found`, `not_allowed` for a drill's canary and with `hold` while a hold stops the agent,
/// `separation_of_duties` where its own principal restarts it after an incident, or what stood still when they were shut out where they
/// sign in, and another owner or admin exists, `not_ready` while something that its stop ends is still to be ended: it would fill the limits of an agent that runs.
pub fn restart_agent(scope: &mut Scope<'_>, asked: &RestartAgent) -> Result<Arc<Agent>, Halt> {
    scope.want(&[Agent::key(asked.agent), Roster::key(asked.workspace), Workspace::key(asked.workspace)])?;
    let reach = entitled(scope, &asked.by, asked.workspace, Right::RunAgents)?;
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    reaches(&asked.by, reach, &agent)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    if let Some(held) = held_by(scope, &workspace, agent.id)? {
        return Err(Refusal::not_allowed_under(held.id, "a hold stops it").into());
    }
    let Some(frozen) = agent.frozen() else { return Ok(agent) };
    if agent.canary.is_some() {
        return Err(Refusal::not_allowed("it is the canary of a drill").into());
    }
    let own = asked.by.principal().is_some_and(|it| it == agent.principal);
    if own
        && let Some(why) = not_its_principals(scope, &agent, frozen)?
        && has_other(scope, &workspace, asked)?
    {
        return Err(Refusal::duties_now(why).into());
    }
    if agent.is_ending(scope.now()) {
        return Err(Refusal::not_ready().into());
    }
    touch(scope, asked.workspace)?;
    Ok(restart(scope, &agent, asked.by.actor(), None, &[("reason", asked.reason.as_str())]))
}

/// Why it is not its principal's to restart an agent, where it is not. Whoever an identity provider has shut out may sign in still, by
/// a password, and would undo the one thing that stops their agents.
fn not_its_principals(scope: &mut Scope<'_>, agent: &Agent, frozen: &Frozen) -> Result<Option<&'static str>, Halt> {
    if frozen.incident.is_some() {
        return Ok(Some("an incident froze this agent, and its principal is not to restart it"));
    }
    let principal = scope.get::<Principal>(agent.principal)?;
    let shut_out = principal.and_then(|it| it.member.as_ref().and_then(|it| it.shut_out_at));
    let why = "its principal was shut out where they sign in, and is not to restart what that stopped";
    Ok(shut_out.is_some_and(|at| frozen.at <= at).then_some(why))
}

/// Whether the workspace has an owner or admin besides the caller who could do it: one who is only invited cannot yet.
fn has_other(scope: &mut Scope<'_>, workspace: &Workspace, asked: &RestartAgent) -> Result<bool, Halt> {
    let own = asked.by.principal();
    if workspace.owners.iter().any(|it| Some(*it) != own) {
        return Ok(true);
    }
    let Some(admin) = asked.admin.filter(|it| Some(*it) != own) else { return Ok(false) };
    let admin = scope.get::<Principal>(admin)?.filter(|it| it.workspace == workspace.id);
    Ok(admin.as_ref().is_some_and(|it| it.administers()))
}

/// Starts a frozen agent again and records it, once its stop has been followed; `hold` is the one whose end does it.
pub(super) fn restart(
    scope: &mut Scope<'_>,
    agent: &Agent,
    actor: Actor,
    hold: Option<HoldId>,
    texts: &[(&str, &str)],
) -> Arc<Agent> {
    let restarted = recorded(scope, agent).restart();
    let mut data = Object::new().text("agentId", &agent.id.to_string()).int("epoch", restarted.epoch.into());
    if let Some(hold) = hold {
        data = data.text("hold", &hold.to_string());
    }
    let fact = Fact { kind: "agent.restarted", actor, subject: Subject::Agent(agent.id), data: data.finish() };
    scope.append_with(agent.workspace, fact, texts);
    scope.put(restarted.clone());
    Arc::new(restarted)
}
