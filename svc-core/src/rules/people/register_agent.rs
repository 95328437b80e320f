//! An agent with its mandates and its first key, all or nothing; and the end of one.

use std::sync::Arc;

use super::accounts::principal_for;
use super::by::{By, entitled};
use super::keys::{CreateKey, NewKey, is_new, keep};
use super::mandates::{Content, Meant, full, grant, read};
use super::named::{self, Named};
use crate::refusal::{FieldError, Refusal};
use crate::rules::connect::end::end_all;
use crate::rules::gate::freeze::recorded;
use crate::rules::gateway::routing::unbind;
use crate::state::connect::EndedBy;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{AGENT_MANDATES_MAX, Activity, Agent, HeldKey, Standing, Tier};
use crate::state::gateway::BoundKeys;
use crate::state::people::{Allowance, Binding, Credential, KeyScope, Plans, Right, Roster, Workspace};
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
    /// Who makes it.
    pub by: By,
    /// What people call it.
    pub name: Label,
    /// Who it acts for.
    pub principal: ActsFor,
    /// How much it is trusted.
    pub tier: Tier,
    /// Who answers for it where its principal has no sign-in.
    pub sponsor: Option<PrincipalId>,
    /// Who may freeze it and is told of freezes.
    pub kill_owner: Option<PrincipalId>,
    /// Its mandates.
    pub mandates: Vec<Content>,
    /// Its first key.
    pub key: NewKey,
    /// What plans allow.
    pub plans: Plans,
}

impl RegisterAgent {
    /// An agent of the program's own: of the tier `standard`, for the workspace's first owner, without mandates.
    #[must_use]
    pub fn new(workspace: WorkspaceId, name: Label, key: NewKey) -> Self {
        Self {
            workspace,
            by: By::Program,
            name,
            principal: ActsFor::Owner,
            tier: Tier::Standard,
            sponsor: None,
            kill_owner: None,
            mandates: Vec::new(),
            key,
            plans: Plans::default(),
        }
    }
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

/// Makes an agent, its mandates and its first key. Its mandates are not compared with each other: a new one is confirmed
/// beside one that is active already (`confirm_broaden`, an answer of the routes of mandates alone), and of a blueprint whoever
/// wrote it sees them all.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where there is no such workspace; `invalid_request` where it has no such principal, or its
/// key is none or in use; for
/// a token `template_only`; `unknown_template` and `invalid_mandate` where a mandate is none; `plan_limit_reached`.
pub fn register_agent(scope: &mut Scope<'_>, asked: &RegisterAgent) -> Result<Registered, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageAgents)?;
    scope.want(&[Workspace::key(asked.workspace), Roster::key(asked.workspace)])?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    is_new(scope, &asked.key)?;
    if matches!(asked.by, By::Token(_)) {
        templates_alone(asked)?;
    }
    known(scope, asked)?;
    let meant = mandates(scope, &workspace, &asked.mandates)?;
    let (agents, granted) = (roster.agents.saturating_add(1), u32::try_from(meant.len()).unwrap_or(u32::MAX));
    let mandates = roster.mandates.saturating_add(granted);
    let allowed = asked.plans.of(workspace.plan);
    if !Allowance::admits(allowed.agents, agents) {
        return Err(Refusal::plan_agents("agents", allowed.agents).into());
    }
    if granted > 0 && !Allowance::admits(allowed.mandates, mandates) {
        return Err(Refusal::plan_agents("mandates", allowed.mandates).into());
    }
    let principal = principal(scope, &workspace, &asked.principal)?;
    scope.put(Roster { epoch: roster.epoch.saturating_add(1), agents, mandates, ..Roster::clone(&roster) });
    Ok(made(scope, asked, principal, meant))
}

/// Writes the agent, its mandates, its key and their records.
pub(in crate::rules) fn made(
    scope: &mut Scope<'_>,
    asked: &RegisterAgent,
    principal: PrincipalId,
    meant: Vec<Meant>,
) -> Registered {
    let id: AgentId = scope.fresh();
    let credential = Credential::id_of(&asked.key.digest);
    let binding = Binding {
        key: scope.fresh(),
        workspace: asked.workspace,
        scope: KeyScope::Agent(id),
        principal,
        team: None,
        task_class: None,
        profile: None,
        task_class_open: false,
        connection: None,
    };
    // The key that an agent comes with is its own and stays as the agent does, whoever registered it leaves.
    let made_by = None;
    let mut agent = Agent {
        id,
        workspace: asked.workspace,
        principal,
        name: asked.name.clone(),
        tier: asked.tier,
        sponsor: asked.sponsor,
        kill_owner: asked.kill_owner,
        standing: Standing::Active,
        epoch: 0,
        stops: Vec::new(),
        mandates: Vec::new(),
        keys: vec![HeldKey { id: binding.key, credential, via: None, made_by, expires_at: None }],
        created_by: asked.by.maker(),
        created_at: scope.now(),
        following: None,
        canary: None,
    };
    record_agent(scope, &agent, "agent.created", asked.by.actor());
    for meant in meant {
        let (granted, _) = grant(scope, id, asked.workspace, &asked.by, meant);
        agent.mandates.push(granted);
    }
    agent.mandates.sort_by_key(|it| it.id);
    let key = CreateKey::new(asked.workspace, asked.by.clone(), binding.scope, asked.key.clone());
    keep(scope, &key, binding.clone(), credential, Vec::new());
    scope.put(Activity::none(id));
    scope.put(agent.clone());
    Registered { agent: Arc::new(agent), binding }
}

/// Records that an agent comes or goes, with who answers for it and how much it is trusted.
pub(in crate::rules) fn record_agent(scope: &mut Scope<'_>, agent: &Agent, kind: &'static str, actor: Actor) {
    let data = Object::new().text("agentId", &agent.id.to_string()).int("epoch", agent.epoch.into());
    let mut data = data.text("principalId", &agent.principal.to_string()).text("tier", agent.tier.as_str());
    for (name, id) in [("killOwner", agent.kill_owner), ("sponsor", agent.sponsor)] {
        if let Some(id) = id {
            data = data.text(name, &id.to_string());
        }
    }
    let fact = Fact { kind, actor, subject: Subject::Agent(agent.id), data: data.finish() };
    scope.append_with(agent.workspace, fact, &[("name", agent.name.as_str())]);
}

/// A machine registers from templates, and trusts and entrusts nobody.
fn templates_alone(asked: &RegisterAgent) -> Result<(), Refusal> {
    if asked.tier != Tier::Standard || asked.sponsor.is_some() || asked.kill_owner.is_some() {
        return Err(Refusal::forbidden("a token sets no tier, sponsor or kill owner"));
    }
    if asked.mandates.iter().any(|it| !matches!(it, Content::Template(_))) {
        return Err(Refusal::template_only());
    }
    Ok(())
}

/// That whoever it acts for, its sponsor and its kill owner can be what they are named to be.
fn known(scope: &mut Scope<'_>, asked: &RegisterAgent) -> Result<(), Halt> {
    let acts_for = match &asked.principal {
        ActsFor::Owner => None,
        ActsFor::Principal(id) => Some(("principalId".to_owned(), Named::Principal(*id))),
        ActsFor::Email(email) => Some(("principalEmail".to_owned(), Named::ActsFor(email.clone()))),
    };
    let mut faults = named::faults(scope, asked.workspace, acts_for.as_slice())?;
    faults.extend(unfit(scope, asked.workspace, "", asked.sponsor, asked.kill_owner)?);
    if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid_request(faults).into()) }
}

/// What is wrong with whom an agent is to have as sponsor and kill owner, under the path `before`: who agents act for may be anybody,
/// and who stops one need not decide anything, but a sponsor answers for it and so has to be able to.
pub(super) fn unfit(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    before: &str,
    sponsor: Option<PrincipalId>,
    kill_owner: Option<PrincipalId>,
) -> Result<Vec<FieldError>, Halt> {
    let named = [
        sponsor.map(|it| (format!("{before}sponsor"), Named::Sponsor(it))),
        kill_owner.map(|it| (format!("{before}killOwner"), Named::Principal(it))),
    ];
    named::faults(scope, workspace, &named.into_iter().flatten().collect::<Vec<_>>())
}

/// What the mandates say: first every name of a template, then every fault of every mandate.
fn mandates(scope: &mut Scope<'_>, workspace: &Workspace, contents: &[Content]) -> Result<Vec<Meant>, Halt> {
    let mut meant = Vec::with_capacity(contents.len());
    for content in contents {
        meant.push(read(scope, workspace, content)?);
    }
    let mut faults = Vec::new();
    if meant.len() > AGENT_MANDATES_MAX {
        faults.push(full("name fewer"));
    }
    for (place, it) in meant.iter().enumerate() {
        let found = it.terms.faults(scope.now()).into_iter();
        faults.extend(found.map(|fault| fault.within(&format!("mandates.{place}"))));
    }
    if faults.is_empty() { Ok(meant) } else { Err(Refusal::invalid_mandate(faults).into()) }
}

/// Whom it acts for, once it is known that they can be that.
fn principal(scope: &mut Scope<'_>, workspace: &Workspace, asked: &ActsFor) -> Result<PrincipalId, Halt> {
    match asked {
        ActsFor::Owner => Ok(workspace.owner),
        ActsFor::Principal(id) => Ok(*id),
        ActsFor::Email(email) => Ok(principal_for(scope, workspace.id, email, None)?.id),
    }
}

/// Removes an agent for good.
#[derive(Clone, Debug)]
pub struct RemoveAgent {
    /// From which workspace.
    pub workspace: WorkspaceId,
    /// Who removes it.
    pub by: By,
    /// Which agent.
    pub agent: AgentId,
}

/// Removes an agent: its keys stay known, and every one of them is told that the agent is gone. What they were bound to they keep
/// no longer. Removing a removed one changes nothing.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where the workspace never had such an agent.
pub fn remove_agent(scope: &mut Scope<'_>, asked: &RemoveAgent) -> Result<Arc<Agent>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageAgents)?;
    if matches!(asked.by, By::Token(_)) {
        // A token's scope registers agents; it ends none.
        return Err(Refusal::missing_scope().into());
    }
    scope.want(&[Agent::key(asked.agent), BoundKeys::key(asked.workspace), Roster::key(asked.workspace)])?;
    let agent = scope.get::<Agent>(asked.agent)?.filter(|it| it.workspace == asked.workspace);
    let agent = agent.ok_or_else(Refusal::not_found)?;
    if agent.is_removed() {
        return Ok(agent);
    }
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    unbind(scope, asked.workspace, |key| agent.keys.iter().any(|it| it.id == key))?;
    end_all(scope, &agent, EndedBy::Removed, &asked.by.actor())?;
    let removed = recorded(scope, &agent).remove(scope.now());
    record_agent(scope, &removed, "agent.removed", asked.by.actor());
    let mandates = u32::try_from(agent.mandates.len()).unwrap_or(u32::MAX);
    let (places, mandates) = if agent.canary.is_some() { (0, 0) } else { (1, mandates) };
    scope.put(Roster {
        epoch: roster.epoch.saturating_add(1),
        agents: roster.agents.saturating_sub(places),
        mandates: roster.mandates.saturating_sub(mandates),
        ..Roster::clone(&roster)
    });
    scope.put(removed.clone());
    Ok(Arc::new(removed))
}
