//! What a body names by ids, and by the names of what a workspace has: each has to be of the body's workspace, and one that is not is a
//! fault of its field (CONTRACT part 1, "Order of refusals"). The rules ask for it in their own commit, and whoever reads a body that is
//! malformed anyway asks here, so that its sender hears of everything that is wrong at once.
//!
//! Told by the rules alone, once a body could be read, is what is in the way of something that is there or would be: a list that is full, a
//! role or a tier that somebody has already; of names that are given once each says [`super::taken`]. Nor is it looked for here what is
//! refused as a type of its own:
//! `unknown_template` of agents and mandates, `unknown_task_class` and an unknown model where calls are routed.

use crate::refusal::{FieldError, Kind, Refusal};
use crate::rules::gate::freeze::found_agent;
use crate::rules::gateway::routing::routing_of;
use crate::state::gate::{Agent, Mandate, WorkspaceTemplate};
use crate::state::gateway::{Budget, Routing};
use crate::state::people::{EmailUse, Principal, Target, Team, Workspace};
use crate::store::{Key, Row as _};
use crate::turn::{Halt, Scope};
use crate::value::id::{AgentId, MandateVersionId, PrincipalId, ProfileId, TeamId, UpstreamId, WorkspaceId};
use crate::value::text::{ClassId, Email, Label};

use super::accounts::principal_with;
use super::by::Person;
use super::mandates::{Content, read};
use super::taken::{self, NewName};
use super::wished::hidden;

/// What an id, or a name, in a body is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The address of whomever an agent acts for: of anybody but a member who was removed.
    ActsFor(Email),
    /// An agent that was not removed.
    Agent(AgentId),
    /// A member whose role decides approvals.
    Decider(PrincipalId),
    /// A member.
    Member(PrincipalId),
    /// A name in a list of models, by which it means one at least.
    Model(Box<str>),
    /// Anybody of the workspace who was not removed.
    Principal(PrincipalId),
    /// What something is to be called, where nothing else of its kind bears the name.
    New(NewName),
    /// A policy profile.
    Profile(ProfileId),
    /// A provider, by its name.
    Provider(Box<str>),
    /// Somebody who decides what agents ask, and so may answer for one.
    Sponsor(PrincipalId),
    /// What an application is about, as far as whoever applies may read it.
    Target(Person, Target),
    /// A class of tasks.
    TaskClass(ClassId),
    /// A team.
    Team(TeamId),
    /// A template of mandates.
    Template(Box<str>),
    /// A provider, by its id.
    Upstream(UpstreamId),
}

/// The fault of `field`, where `named` is none of the workspace.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there that every workspace has.
pub(in crate::rules) fn fault(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    field: &str,
    named: &Named,
) -> Result<Option<FieldError>, Halt> {
    let clause = match named {
        Named::ActsFor(email) => acted_for(scope, workspace, email)?,
        Named::Agent(id) => {
            let found = found_agent(scope, workspace, *id)?;
            found.is_none().then_some("names no agent of this workspace")
        }
        Named::Decider(id) => {
            let found = scope.get::<Principal>(*id)?.filter(|it| it.workspace == workspace && it.decides_own());
            found.is_none().then_some("names no member of the workspace whose role decides approvals")
        }
        Named::Member(id) => {
            let found = scope.get::<Principal>(*id)?.filter(|it| it.workspace == workspace && it.signs_in());
            found.is_none().then_some("names no member of this workspace")
        }
        Named::New(name) => taken::taken(scope, workspace, name)?,
        Named::Principal(id) => principal(scope, workspace, *id)?,
        Named::Sponsor(id) => match principal(scope, workspace, *id)? {
            None => {
                let decides = scope.get::<Principal>(*id)?.is_some_and(|it| it.decides_own());
                (!decides).then_some("names nobody who decides what agents ask: an owner, an admin or a member does")
            }
            clause => clause,
        },
        Named::Target(person, target) => hidden(scope, person, *target)?,
        Named::Team(id) => {
            let found = scope.get::<Team>(*id)?.filter(|it| it.workspace == workspace);
            found.is_none().then_some("names no team of this workspace")
        }
        Named::Template(name) => template(scope, workspace, name)?,
        Named::Model(_) | Named::Profile(_) | Named::Provider(_) | Named::TaskClass(_) | Named::Upstream(_) => {
            unrouted(&*routing_of(scope, workspace)?, named)
        }
    };
    Ok(clause.map(|it| FieldError::new(field, it)))
}

/// Every fault of what a body names, in the order of `named`.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there that every workspace has.
pub fn faults(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    named: &[(String, Named)],
) -> Result<Vec<FieldError>, Halt> {
    scope.want(&named.iter().flat_map(|(_, it)| rows(workspace, it)).collect::<Vec<_>>())?;
    let mut faults = Vec::new();
    for (field, it) in named {
        faults.extend(fault(scope, workspace, field, it)?);
    }
    Ok(faults)
}

/// The rows that say whether there is such a thing, as far as they are known beforehand.
fn rows(workspace: WorkspaceId, named: &Named) -> Vec<Key> {
    match named {
        Named::ActsFor(email) => EmailUse::all_of_principal(workspace, email).into_iter().map(EmailUse::key).collect(),
        Named::Agent(id) | Named::Target(_, Target::Agent(id)) => vec![Agent::key(*id)],
        Named::Decider(id)
        | Named::Member(id)
        | Named::Principal(id)
        | Named::Sponsor(id)
        | Named::Target(_, Target::Member(id)) => vec![Principal::key(*id)],
        Named::Model(_) | Named::Profile(_) | Named::Provider(_) | Named::TaskClass(_) | Named::Upstream(_) => {
            vec![Routing::key(workspace)]
        }
        Named::New(name) => taken::rows(workspace, name),
        Named::Target(_, Target::Budget(id)) => vec![Budget::key(*id)],
        Named::Target(_, Target::Mandate(id)) => vec![Mandate::key(MandateVersionId { mandate: *id, version: 1 })],
        Named::Team(id) => vec![Team::key(*id)],
        Named::Template(name) => {
            let ids = Label::parse(name).map(|it| WorkspaceTemplate::ids_of(workspace, &it)).unwrap_or_default();
            ids.into_iter().map(WorkspaceTemplate::key).collect()
        }
    }
}

/// What is told of a name that nothing has of what a workspace routes by.
fn unrouted(routing: &Routing, named: &Named) -> Option<&'static str> {
    let (is_known, clause) = match named {
        Named::Model(name) => (routing.meant(name).is_some(), "names no model of this workspace"),
        Named::Profile(id) => (routing.profile(*id).is_some(), "names no policy profile of this workspace"),
        Named::Provider(name) => {
            let is_known = routing.upstreams.iter().any(|it| it.name.as_str() == &**name);
            (is_known, "names no provider of this workspace")
        }
        Named::TaskClass(id) => (routing.class(id).is_some(), "names no task class of this workspace"),
        Named::Upstream(id) => (routing.upstream(*id).is_some(), "names no upstream of this workspace"),
        Named::ActsFor(_)
        | Named::Agent(_)
        | Named::Decider(_)
        | Named::Member(_)
        | Named::New(_)
        | Named::Principal(_)
        | Named::Sponsor(_)
        | Named::Target(..)
        | Named::Team(_)
        | Named::Template(_) => return None,
    };
    (!is_known).then_some(clause)
}

/// What a name of a member who was removed is told.
const WAS_REMOVED: &str = "names a member who was removed";

/// Nobody would answer for what is a removed member's again.
fn principal(scope: &mut Scope<'_>, workspace: WorkspaceId, id: PrincipalId) -> Result<Option<&'static str>, Halt> {
    Ok(match scope.get::<Principal>(id)?.filter(|it| it.workspace == workspace) {
        Some(found) if found.was_removed() => Some(WAS_REMOVED),
        Some(_) => None,
        None => Some("names no principal of this workspace"),
    })
}

/// Who is not here yet comes with their agent.
fn acted_for(scope: &mut Scope<'_>, workspace: WorkspaceId, email: &Email) -> Result<Option<&'static str>, Halt> {
    match principal_with(scope, workspace, email)? {
        Some(id) => principal(scope, workspace, id),
        None => Ok(None),
    }
}

fn template(scope: &mut Scope<'_>, workspace: WorkspaceId, name: &str) -> Result<Option<&'static str>, Halt> {
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    match read(scope, &workspace, &Content::Template(name.into())) {
        Ok(_) => Ok(None),
        Err(Halt::Refuse(refusal)) if refusal.kind() == Kind::UnknownTemplate => Ok(Some("names no template")),
        Err(halt) => Err(halt),
    }
}
