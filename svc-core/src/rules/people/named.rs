//! What a body names by ids: each has to be of the body's workspace, and one that is not is a fault of its field (CONTRACT part 1, "Order
//! of refusals"). The rules ask for it in their own commit, and whoever reads a body that is malformed anyway asks here, so that its
//! sender hears of everything that is wrong at once.

use crate::refusal::FieldError;
use crate::rules::gateway::routing;
use crate::state::people::{Principal, Team};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::id::{PrincipalId, ProfileId, TeamId, WorkspaceId};
use crate::value::text::ClassId;

/// What an id in a body is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Anybody of the workspace who was not removed.
    Principal(PrincipalId),
    /// Somebody who decides what agents ask, and so may answer for one.
    Sponsor(PrincipalId),
    /// A member.
    Member(PrincipalId),
    /// A team.
    Team(TeamId),
    /// A class of tasks.
    TaskClass(ClassId),
    /// A policy profile.
    Profile(ProfileId),
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
        Named::Principal(id) => principal(scope, workspace, *id)?,
        Named::Sponsor(id) => match principal(scope, workspace, *id)? {
            None => {
                let decides = scope.get::<Principal>(*id)?.is_some_and(|it| it.decides_own());
                (!decides).then_some("names nobody who decides what agents ask: an owner, an admin or a member does")
            }
            clause => clause,
        },
        Named::Member(id) => {
            let found = scope.get::<Principal>(*id)?.filter(|it| it.workspace == workspace && it.signs_in());
            found.is_none().then_some("names no member of this workspace")
        }
        Named::Team(id) => {
            let found = scope.get::<Team>(*id)?.filter(|it| it.workspace == workspace);
            found.is_none().then_some("names no team of this workspace")
        }
        Named::TaskClass(id) => {
            let known = routing::routing_of(scope, workspace)?.class(id).is_some();
            (!known).then_some("names no task class of this workspace")
        }
        Named::Profile(id) => {
            let known = routing::routing_of(scope, workspace)?.profile(*id).is_some();
            (!known).then_some("names no policy profile of this workspace")
        }
    };
    Ok(clause.map(|it| FieldError::new(field, it)))
}

/// Every fault of what a body names, in the order of `named`.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn faults(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    named: &[(String, Named)],
) -> Result<Vec<FieldError>, Halt> {
    let row = |it: &Named| match it {
        Named::Principal(id) | Named::Sponsor(id) | Named::Member(id) => Some(Principal::key(*id)),
        Named::Team(id) => Some(Team::key(*id)),
        Named::TaskClass(_) | Named::Profile(_) => None,
    };
    scope.want(&named.iter().filter_map(|(_, it)| row(it)).collect::<Vec<_>>())?;
    let mut faults = Vec::new();
    for (field, it) in named {
        faults.extend(fault(scope, workspace, field, it)?);
    }
    Ok(faults)
}

/// What a name of a member who was removed is told.
pub(super) const WAS_REMOVED: &str = "names a member who was removed";

/// Nobody would answer for what is a removed member's again.
fn principal(scope: &mut Scope<'_>, workspace: WorkspaceId, id: PrincipalId) -> Result<Option<&'static str>, Halt> {
    Ok(match scope.get::<Principal>(id)?.filter(|it| it.workspace == workspace) {
        Some(found) if found.was_removed() => Some(WAS_REMOVED),
        Some(_) => None,
        None => Some("names no principal of this workspace"),
    })
}
