//! An agent with its mandates and its first key, all or nothing; and the end of one.

use std::sync::Arc;

use super::accounts::principal_for;
use super::keys::{CreateKey, NewKey, keep};
use super::mandates::{Content, grant_new};
use crate::refusal::Refusal;
use crate::rules::gate::freeze::{own_agent, recorded};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Activity, Agent, AgentKey, Standing, Tier};
use crate::state::people::{Binding, Credential, KeyScope, Principal, Roster, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{AgentId, PrincipalId, WorkspaceId};
use crate::value::text::{Email, Label};

/// Makes an agent.
#[derive(Clone, Debug)]
pub struct RegisterAgent {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// What people call it.
    pub name: Label,
    /// Who it acts for.
    pub principal: ActsFor,
    /// How much it is trusted.
    pub tier: Tier,
    /// Its mandates.
    pub mandates: Vec<Content>,
    /// Its first key.
    pub key: NewKey,
}

/// Who an agent acts for.
#[derive(Clone, Debug)]
pub enum ActsFor {
    /// The workspace's first owner.
    Owner,
    /// This principal of the workspace.
    Principal(PrincipalId),
    /// Whoever has this address in the workspace, or somebody new without a sign-in.
    Email(Email),
}

/// An agent that was made.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The agent.
    pub agent: Arc<Agent>,
    /// Its first key's binding.
    pub binding: Binding,
}

/// Makes an agent, its mandates and its first key.
///
/// # Errors
/// `not_found` where there is no such workspace, `invalid_request` where it has no such principal, `invalid_mandate` and
/// `unknown_template` where a mandate is none.
pub fn register_agent(scope: &mut Scope<'_>, asked: &RegisterAgent) -> Result<Registered, Halt> {
    scope.want(&[Workspace::key(asked.workspace), Roster::key(asked.workspace)])?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    let credential = Credential::id_of(&asked.key.digest);
    if scope.get::<Credential>(credential)?.is_some() {
        return Err(Refusal::internal().into());
    }
    let now = scope.now();
    let principal = principal(scope, &workspace, &asked.principal)?;
    let id: AgentId = scope.fresh();
    let binding =
        Binding { key: scope.fresh(), workspace: workspace.id, scope: KeyScope::Agent(id), principal, team: None };
    let mut agent = Agent {
        id,
        workspace: workspace.id,
        principal,
        name: asked.name.clone(),
        tier: asked.tier,
        sponsor: None,
        kill_owner: None,
        standing: Standing::Active,
        epoch: 0,
        stops: Vec::new(),
        mandates: Vec::new(),
        keys: vec![AgentKey { id: binding.key, credential, expires_at: None }],
        created_at: now,
        following: None,
    };
    let data = Object::new().text("agentId", &id.to_string()).int("epoch", 0).finish();
    let fact = Fact { kind: "agent.created", actor: Actor::Policy, subject: Subject::Agent(id), data };
    scope.append_with(workspace.id, fact, &[("name", asked.name.as_str())]);
    for content in &asked.mandates {
        let grant = grant_new(scope, id, &workspace, content)?;
        agent.mandates.push(grant);
    }
    agent.mandates.sort_by_key(|it| it.id);
    let key = CreateKey {
        workspace: workspace.id,
        scope: binding.scope,
        principal: Some(principal),
        label: None,
        expires_at: None,
        key: asked.key.clone(),
    };
    keep(scope, &key, &binding, credential);
    scope.put(Activity::none(id));
    scope.put(Roster {
        epoch: roster.epoch.saturating_add(1),
        agents: roster.agents.saturating_add(1),
        ..Roster::clone(&roster)
    });
    scope.put(agent.clone());
    Ok(Registered { agent: Arc::new(agent), binding })
}

fn principal(scope: &mut Scope<'_>, workspace: &Workspace, asked: &ActsFor) -> Result<PrincipalId, Halt> {
    match asked {
        ActsFor::Owner => Ok(workspace.owner),
        ActsFor::Principal(id) => {
            let known = scope.get::<Principal>(*id)?.filter(|it| it.workspace == workspace.id);
            let known =
                known.ok_or_else(|| Refusal::invalid_field("principalId", "names no principal of this workspace"))?;
            Ok(known.id)
        }
        ActsFor::Email(email) => Ok(principal_for(scope, workspace.id, email, None)?.id),
    }
}

/// Removes an agent for good.
#[derive(Clone, Debug)]
pub struct RemoveAgent {
    /// From which workspace.
    pub workspace: WorkspaceId,
    /// Which agent.
    pub agent: AgentId,
}

/// Removes an agent: its keys stay known, and every one of them is told that the agent is gone.
///
/// # Errors
/// `not_found` where the workspace has no such agent.
pub fn remove_agent(scope: &mut Scope<'_>, asked: &RemoveAgent) -> Result<Arc<Agent>, Halt> {
    scope.want(&[Agent::key(asked.agent), Roster::key(asked.workspace)])?;
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    let removed = recorded(scope, &agent).remove(scope.now());
    let data = Object::new().text("agentId", &agent.id.to_string()).int("epoch", removed.epoch.into()).finish();
    let fact = Fact { kind: "agent.removed", actor: Actor::Policy, subject: Subject::Agent(agent.id), data };
    scope.append(asked.workspace, fact);
    scope.put(Roster {
        epoch: roster.epoch.saturating_add(1),
        agents: roster.agents.saturating_sub(1),
        ..Roster::clone(&roster)
    });
    scope.put(removed.clone());
    Ok(Arc::new(removed))
}
