//! Mandates: granted from a template or whole, and revoked. A version is immutable.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::gate::freeze::own_agent;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Agent, Grant, Mandate, Template, Terms};
use crate::state::people::{Roster, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{AgentId, MandateId, MandateVersionId, WorkspaceId};
use crate::value::text::Label;

/// What a new mandate says.
#[derive(Clone, Debug)]
pub enum Content {
    /// What the template with this name says, in the workspace's currency.
    Template(Box<str>),
    /// This.
    Whole(Box<Terms>),
}

/// Grants a mandate to an agent.
#[derive(Clone, Debug)]
pub struct GrantMandate {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// To which agent.
    pub agent: AgentId,
    /// What it says.
    pub content: Content,
}

/// Grants a mandate.
///
/// # Errors
/// `not_found` where the workspace has no such agent, `invalid_mandate` naming every fault, `unknown_template`.
pub fn grant_mandate(scope: &mut Scope<'_>, asked: &GrantMandate) -> Result<Arc<Mandate>, Halt> {
    scope.want(&[Agent::key(asked.agent), Workspace::key(asked.workspace), Roster::key(asked.workspace)])?;
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let grant = grant_new(scope, agent.id, &workspace, &asked.content)?;
    let version = MandateVersionId { mandate: grant.id, version: grant.version };
    let mut agent = Agent::clone(&agent);
    agent.mandates.push(grant);
    agent.mandates.sort_by_key(|it| it.id);
    scope.put(agent);
    touch(scope, asked.workspace)?;
    scope.get::<Mandate>(version)?.ok_or_else(|| Refusal::internal().into())
}

/// Writes the first version of a new mandate and its record.
pub(super) fn grant_new(
    scope: &mut Scope<'_>,
    agent: AgentId,
    workspace: &Workspace,
    content: &Content,
) -> Result<Grant, Halt> {
    let (terms, template) = match content {
        Content::Whole(terms) => (Terms::clone(terms), None),
        Content::Template(name) => {
            let template = Template::find(name).ok_or_else(|| Refusal::unknown_template(name))?;
            let terms = template.terms(workspace.settings.currency).map_err(|_| Refusal::internal())?;
            (terms, Some(Label::parse(template.name).map_err(|_| Refusal::internal())?))
        }
    };
    let faults = terms.faults(scope.now());
    if !faults.is_empty() {
        return Err(Refusal::invalid_mandate(faults).into());
    }
    let id = MandateVersionId { mandate: scope.fresh(), version: 1 };
    let mut data = Object::new().text("agentId", &agent.to_string()).int("mandateVersion", 1);
    if let Some(template) = &template {
        data = data.text("template", template.as_str());
    }
    let subject = Subject::Mandate(id.mandate);
    scope.append(workspace.id, Fact { kind: "mandate.created", actor: Actor::Policy, subject, data: data.finish() });
    let expires_at = terms.expires_at;
    scope.put(Mandate { id, agent, template, terms, created_by: None, created_at: scope.now() });
    Ok(Grant { id: id.mandate, version: 1, paused: false, expires_at })
}

/// Ends a mandate for good.
#[derive(Clone, Debug)]
pub struct RevokeMandate {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Of which agent.
    pub agent: AgentId,
    /// Which mandate.
    pub mandate: MandateId,
}

/// Ends a mandate.
///
/// # Errors
/// `not_found` where the agent has no such mandate in force.
pub fn revoke_mandate(scope: &mut Scope<'_>, asked: &RevokeMandate) -> Result<MandateId, Halt> {
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    let mut agent = Agent::clone(&agent);
    let before = agent.mandates.len();
    agent.mandates.retain(|it| it.id != asked.mandate);
    if agent.mandates.len() == before {
        return Err(Refusal::not_found().into());
    }
    let data = Object::new().text("agentId", &agent.id.to_string()).finish();
    let subject = Subject::Mandate(asked.mandate);
    scope.append(asked.workspace, Fact { kind: "mandate.revoked", actor: Actor::Policy, subject, data });
    scope.put(agent);
    touch(scope, asked.workspace)?;
    Ok(asked.mandate)
}

/// Notes that something changed which a selector of agents can see.
fn touch(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<(), Halt> {
    let roster = scope.get::<Roster>(workspace)?.ok_or_else(Refusal::internal)?;
    scope.put(Roster { epoch: roster.epoch.saturating_add(1), ..Roster::clone(&roster) });
    Ok(())
}
