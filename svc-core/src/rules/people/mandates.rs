//! Mandates: granted from a template or whole, changed by new versions, paused, revoked. A version is immutable; sums belong
//! to the mandate, whatever its version.

use std::sync::Arc;

use super::by::{By, entitled};
use super::recount::Recount;
use super::settings::differing;
use super::templates::own_template;
use crate::refusal::{FieldError, Refusal};
use crate::rules::gate::freeze::own_agent;
use crate::rules::gateway::routing::as_json;
use crate::state::evidence::{Fact, Subject};
use crate::state::gate::{AGENT_MANDATES_MAX, Agent, Grant, Mandate, MandateState, Template, Terms, TermsChange};
use crate::state::people::{Allowance, Plans, Right, Roster, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::{Object, canonical};
use crate::value::id::{AgentId, MandateId, MandateVersionId, WorkspaceId};
use crate::value::json::Json;
use crate::value::text::Label;

/// What a new mandate says.
#[derive(Clone, Debug)]
pub enum Content {
    /// What the template with this name says.
    Template(Box<str>),
    /// This.
    Whole(Box<Terms>),
}

/// What a new mandate says, once its template was looked up.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Meant {
    pub(in crate::rules) terms: Terms,
    pub(in crate::rules) template: Option<Label>,
}

/// Grants a mandate to an agent.
#[derive(Clone, Debug)]
pub struct GrantMandate {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who grants it.
    pub by: By,
    /// To which agent.
    pub agent: AgentId,
    /// What it says.
    pub content: Content,
    /// Whether it is meant that it lets the agent go anywhere beside a narrower one.
    pub confirm_broaden: bool,
    /// What plans allow.
    pub plans: Plans,
}

impl GrantMandate {
    /// A mandate that the program grants.
    #[must_use]
    pub fn new(workspace: WorkspaceId, agent: AgentId, content: Content) -> Self {
        Self { workspace, by: By::Program, agent, content, confirm_broaden: false, plans: Plans::default() }
    }
}

/// Grants a mandate.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where the workspace has no such agent, `invalid_mandate` naming every fault,
/// `unknown_template`, `plan_limit_reached`, `confirm_broaden` naming the narrower mandate. Where the agent has [`AGENT_MANDATES_MAX`] in
/// force that is such a fault too.
pub fn grant_mandate(scope: &mut Scope<'_>, asked: &GrantMandate) -> Result<Arc<Mandate>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMandates)?;
    scope.want(&[Agent::key(asked.agent), Workspace::key(asked.workspace), Roster::key(asked.workspace)])?;
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    no_canary(&agent)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    let meant = read(scope, &workspace, &asked.content)?;
    let mut faults = meant.terms.faults(scope.now());
    if agent.mandates_held(scope.now()) >= AGENT_MANDATES_MAX {
        faults.push(full("revoke one that is not used"));
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_mandate(faults).into());
    }
    let mandates = roster.mandates.saturating_add(1);
    let allowed = asked.plans.of(workspace.plan).mandates;
    if !Allowance::admits(allowed, mandates) {
        return Err(Refusal::plan_agents("mandates", allowed).into());
    }
    if !asked.confirm_broaden {
        narrower(scope, &agent, &meant.terms, None)?;
    }
    let (granted, mandate) = grant(scope, agent.id, workspace.id, &asked.by, meant);
    let mut agent = Agent::clone(&agent);
    agent.mandates.push(granted);
    agent.mandates.sort_by_key(|it| it.id);
    scope.put(agent);
    scope.put(Roster { epoch: roster.epoch.saturating_add(1), mandates, ..Roster::clone(&roster) });
    Ok(mandate)
}

/// An agent has as many mandates as it may.
pub(super) fn full(clause: &str) -> FieldError {
    FieldError::whole(format!("an agent has at most {AGENT_MANDATES_MAX} mandates in force: {clause}"))
}

/// A drill's canary keeps the mandates that it was made with, in which nothing is left.
fn no_canary(agent: &Agent) -> Result<(), Refusal> {
    if agent.canary.is_some() {
        return Err(Refusal::not_allowed("it is the canary of a drill"));
    }
    Ok(())
}

/// Looks up what is meant.
pub(super) fn read(scope: &mut Scope<'_>, workspace: &Workspace, content: &Content) -> Result<Meant, Halt> {
    let name = match content {
        Content::Whole(terms) => return Ok(Meant { terms: Terms::clone(terms).without_repeats(), template: None }),
        Content::Template(name) => name,
    };
    let label = Label::parse(name).map_err(|_| Refusal::unknown_template(name))?;
    let terms = match Template::find(name) {
        Some(template) => template.terms(workspace.settings.currency).map_err(|_| Refusal::internal())?,
        None => {
            let own = own_template(scope, workspace.id, &label)?;
            // One whose time is up names nothing that could be granted.
            let now = scope.now();
            let own = own.filter(|it| it.terms.expires_at.is_none_or(|end| now < end));
            own.ok_or_else(|| Refusal::unknown_template(name))?.terms.clone()
        }
    };
    Ok(Meant { terms, template: Some(label) })
}

/// Writes the first version of a new mandate and its record.
pub(super) fn grant(
    scope: &mut Scope<'_>,
    agent: AgentId,
    workspace: WorkspaceId,
    by: &By,
    meant: Meant,
) -> (Grant, Arc<Mandate>) {
    let Meant { terms, template } = meant;
    let id = MandateVersionId { mandate: scope.fresh(), version: 1 };
    let mut data = Object::new().text("agentId", &agent.to_string()).int("mandateVersion", 1);
    // Terms are always to be written as JSON; were they not, the mandate would still be what it is.
    data = data.raw("new", &told(&terms).map_or_else(|_| "{}".to_owned(), |it| canonical(&Json::Object(it))));
    if let Some(template) = &template {
        data = data.text("template", template.as_str());
    }
    let fact =
        Fact { kind: "mandate.created", actor: by.actor(), subject: Subject::Mandate(id.mandate), data: data.finish() };
    scope.append_with(workspace, fact, &[("new.name", terms.name.as_str())]);
    let expires_at = terms.expires_at;
    let mandate = Mandate::new(id, agent, template, terms, (by.maker(), scope.now()));
    scope.put(mandate.clone());
    (Grant { id: id.mandate, version: 1, paused: false, expires_at }, Arc::new(mandate))
}

/// Terms as the ledger tells them: as the interface does, without the name, which enters a record as a commitment.
pub(super) fn told(terms: &Terms) -> Result<Vec<(String, Json)>, Halt> {
    let Json::Object(mut members) = as_json(terms)? else { return Err(Refusal::internal().into()) };
    members.retain(|(member, _)| member != "name" && member != "expiresAt");
    members.extend(terms.expires_at.map(|it| ("expiresAt".to_owned(), Json::Text(it.to_string()))));
    Ok(members)
}

/// That `terms` let the agent go nowhere where another active mandate of it holds it to some merchants.
fn narrower(scope: &mut Scope<'_>, agent: &Agent, terms: &Terms, but: Option<MandateId>) -> Result<(), Halt> {
    let others: Vec<_> = agent.mandates_in_force(scope.now()).filter(|it| Some(it.mandate) != but).collect();
    scope.want(&others.iter().map(|it| Mandate::key(*it)).collect::<Vec<_>>())?;
    for other in others {
        let other = scope.get::<Mandate>(other)?.ok_or_else(Refusal::internal)?;
        if terms.broadens(other.terms()) {
            return Err(Refusal::confirm_broaden(other.id.mandate).into());
        }
    }
    Ok(())
}

/// Changes a mandate.
#[derive(Clone, Debug)]
pub struct ChangeMandate {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who changes it.
    pub by: By,
    /// Of which agent.
    pub agent: AgentId,
    /// Which mandate.
    pub mandate: MandateId,
    /// What it says from now on.
    pub change: TermsChange,
    /// Whether it is paused from now on.
    pub paused: Option<bool>,
    /// Whether it is meant that it lets the agent go anywhere.
    pub confirm_broaden: bool,
    /// What the mandate's own actions add up to, where a period changes.
    pub counted: Option<Recount>,
}

/// A mandate as it stands: what it says and how its agent holds it.
#[derive(Clone, Debug)]
pub struct Held {
    /// The version in force, or the last one that was.
    pub mandate: Arc<Mandate>,
    /// How the agent holds it; `None` once it was revoked.
    pub grant: Option<Grant>,
}

/// Changes a mandate: what it says makes the next version.
///
/// # Errors
/// `not_ready` where its actions have to be counted for a changed period and were not, or have moved since: count what
/// [`super::recount::plan`] names and ask again, as `Gate::change_mandate` does. Those of [`entitled`]; `not_found` where the agent never had such a mandate, `not_allowed` where it was revoked or has
/// expired, from which there is no way back; `invalid_mandate` naming every fault; `confirm_broaden` naming the narrower mandate.
pub fn change_mandate(scope: &mut Scope<'_>, asked: &ChangeMandate) -> Result<Held, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMandates)?;
    scope.want(&[Agent::key(asked.agent), Roster::key(asked.workspace), Workspace::key(asked.workspace)])?;
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    no_canary(&agent)?;
    let (old, held) = held(scope, &agent, asked.mandate)?;
    if held.expires_at.is_some_and(|end| end <= scope.now()) {
        return Err(Refusal::not_allowed("the mandate has expired: grant a new one").into());
    }
    let terms = asked.change.onto(old.terms());
    let paused = asked.paused.unwrap_or(held.paused);
    let changes = terms != *old.terms();
    if !changes && paused == held.paused {
        return Ok(Held { mandate: old, grant: Some(held) });
    }
    let mut faults = if changes { terms.faults(scope.now()) } else { Vec::new() };
    faults.extend(terms.faults_after(old.terms()));
    if !faults.is_empty() {
        return Err(Refusal::invalid_mandate(faults).into());
    }
    if !asked.confirm_broaden {
        if terms.merchants_allowed().is_none() && old.merchants_allowed().is_some() {
            return Err(Refusal::confirm_broaden(asked.mandate).into());
        }
        // One that is resumed stands beside what was granted, narrowed or resumed while it was paused. Of one that is in force
        // only what it did not cover before goes further than was meant.
        let resumes = held.paused && !paused;
        let wider = if resumes { terms.clone() } else { terms.gained(old.terms()) };
        narrower(scope, &agent, &wider, Some(asked.mandate))?;
    }
    if !super::recount::settle(scope, &old, &terms, asked.counted.as_ref())? {
        return Err(Refusal::not_ready().into());
    }
    let version = if changes { old.id.version.saturating_add(1) } else { old.id.version };
    record(scope, asked, version, (old.terms(), held.paused), (&terms, paused))?;
    let mandate = if changes { next_version(scope, &old, terms, &asked.by)? } else { old };
    let grant = Grant { id: asked.mandate, version: mandate.id.version, paused, expires_at: mandate.expires_at };
    let mut agent = Agent::clone(&agent);
    agent.mandates.iter_mut().filter(|it| it.id == grant.id).for_each(|it| it.clone_from(&grant));
    scope.put(agent);
    touch(scope, asked.workspace, 0)?;
    Ok(Held { mandate, grant: Some(grant) })
}

fn next_version(scope: &mut Scope<'_>, old: &Mandate, terms: Terms, by: &By) -> Result<Arc<Mandate>, Halt> {
    let id = MandateVersionId { version: old.id.version.saturating_add(1), ..old.id };
    if scope.get::<Mandate>(id)?.is_some() {
        return Err(Refusal::internal().into());
    }
    let mandate = Mandate::new(id, old.agent, old.template.clone(), terms, (by.maker(), scope.now()));
    scope.put(mandate.clone());
    Ok(Arc::new(mandate))
}

/// Records a change, with the members that it changed as they were and as they are: what the mandate says, and whether it is
/// paused.
fn record(
    scope: &mut Scope<'_>,
    asked: &ChangeMandate,
    version: u32,
    before: (&Terms, bool),
    after: (&Terms, bool),
) -> Result<(), Halt> {
    let side = |(terms, paused): (&Terms, bool)| {
        let mut members = told(terms)?;
        members.push(("state".to_owned(), Json::Text(MandateState::set(paused).as_str().to_owned())));
        Ok::<_, Halt>(Json::Object(members))
    };
    let (old, new) = differing(&side(before)?, &side(after)?);
    let data = Object::new().text("agentId", &asked.agent.to_string());
    let data = data.int("mandateVersion", version.into()).raw("new", &new).raw("old", &old).finish();
    let (before, after) = (before.0.name.as_str(), after.0.name.as_str());
    let names = [("new.name", after), ("old.name", before)];
    let texts: &[_] = if before == after { &[] } else { &names };
    let fact =
        Fact { kind: "mandate.changed", actor: asked.by.actor(), subject: Subject::Mandate(asked.mandate), data };
    scope.append_with(asked.workspace, fact, texts);
    Ok(())
}

/// The version in force of a mandate that the agent holds.
///
/// # Errors
/// `not_found` where it never did, `not_allowed` where the mandate was revoked.
pub(super) fn held(scope: &mut Scope<'_>, agent: &Agent, id: MandateId) -> Result<(Arc<Mandate>, Grant), Halt> {
    let found = agent.mandates.iter().find(|it| it.id == id).cloned();
    let Some(grant) = found else { return Err(gone(scope, agent, id)?.into()) };
    let version = MandateVersionId { mandate: id, version: grant.version };
    let mandate = scope.get::<Mandate>(version)?.ok_or_else(Refusal::internal)?;
    Ok((mandate, grant))
}

/// What is said of a mandate that the agent does not hold: whether it ever did.
fn gone(scope: &mut Scope<'_>, agent: &Agent, id: MandateId) -> Result<Refusal, Halt> {
    let revoked = || Refusal::not_allowed("the mandate was revoked: grant a new one");
    Ok(if was_held(scope, agent, id)? { revoked() } else { Refusal::not_found() })
}

/// Whether the agent ever had such a mandate.
fn was_held(scope: &mut Scope<'_>, agent: &Agent, id: MandateId) -> Result<bool, Halt> {
    let first = scope.get::<Mandate>(MandateVersionId { mandate: id, version: 1 })?;
    Ok(first.is_some_and(|it| it.agent == agent.id))
}

/// Ends a mandate for good.
#[derive(Clone, Debug)]
pub struct RevokeMandate {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who ends it.
    pub by: By,
    /// Of which agent.
    pub agent: AgentId,
    /// Which mandate.
    pub mandate: MandateId,
}

/// Ends a mandate; ending an ended one changes nothing.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where the agent never had such a mandate.
pub fn revoke_mandate(scope: &mut Scope<'_>, asked: &RevokeMandate) -> Result<MandateId, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMandates)?;
    let agent = scope.get::<Agent>(asked.agent)?.filter(|it| it.workspace == asked.workspace);
    let agent = agent.ok_or_else(Refusal::not_found)?;
    if !is_held(&agent, asked.mandate) {
        let was_held = was_held(scope, &agent, asked.mandate)?;
        return if was_held { Ok(asked.mandate) } else { Err(Refusal::not_found().into()) };
    }
    no_canary(&agent)?;
    let mut agent = Agent::clone(&agent);
    agent.mandates.retain(|it| it.id != asked.mandate);
    let data = Object::new().text("agentId", &agent.id.to_string()).finish();
    let subject = Subject::Mandate(asked.mandate);
    scope.append(asked.workspace, Fact { kind: "mandate.revoked", actor: asked.by.actor(), subject, data });
    scope.put(agent);
    touch(scope, asked.workspace, 1)?;
    Ok(asked.mandate)
}

/// Notes that something changed which a selector of agents can see, and that so many mandates ended.
fn touch(scope: &mut Scope<'_>, workspace: WorkspaceId, ended: u32) -> Result<(), Halt> {
    let roster = scope.get::<Roster>(workspace)?.ok_or_else(Refusal::internal)?;
    scope.put(Roster {
        epoch: roster.epoch.saturating_add(1),
        mandates: roster.mandates.saturating_sub(ended),
        ..Roster::clone(&roster)
    });
    Ok(())
}

/// The first version of a mandate of the workspace, and its agent: what leads to all else of it.
///
/// # Errors
/// `not_found` where the workspace has no such mandate.
pub fn first_version(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    id: MandateId,
) -> Result<(Arc<Mandate>, Arc<Agent>), Halt> {
    let first = MandateVersionId { mandate: id, version: 1 };
    let mandate = scope.get::<Mandate>(first)?.ok_or_else(Refusal::not_found)?;
    let agent = scope.get::<Agent>(mandate.agent)?.filter(|it| it.workspace == workspace);
    let agent = agent.ok_or_else(Refusal::not_found)?;
    Ok((mandate, agent))
}

/// Whether the agent holds it still: a removed agent's mandates ended with it.
#[must_use]
pub fn is_held(agent: &Agent, id: MandateId) -> bool {
    !agent.is_removed() && agent.mandates.iter().any(|it| it.id == id)
}
