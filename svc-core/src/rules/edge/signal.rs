//! What an identity provider tells of a person: their sessions end in this workspace, and where they are shut out their agents
//! stop.
//!
//! **Invariant:** nothing changes but in the workspace that was told (CONTRACT part 5, "Accounts").

use super::receive::{Done, UNKNOWN_SUBJECT};
use crate::refusal::Refusal;
use crate::rules::gate::fleet::{Heard, freeze_heard};
use crate::rules::people::accounts::principal_with;
use crate::rules::people::single_sign_on::linked;
use crate::state::people::{Member, Principal, SsoLink, Workspace};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::digest::SsoLinkId;
use crate::value::id::{IntegrationId, PrincipalId, WorkspaceId};
use crate::value::text::{Email, Note};

/// What is told of a person.
#[derive(Clone, Debug)]
pub struct Told {
    /// How they are named.
    pub named: Named,
    /// Who was named so when this was asked; `None` where nobody in this workspace was.
    pub principal: Option<PrincipalId>,
    /// Their agents as they were found, and why they stop; `None` where only their sessions end.
    pub stop: Option<(Heard, Note)>,
}

/// How a provider names a person.
#[derive(Clone, Debug)]
pub enum Named {
    /// By their address.
    Address(Email),
    /// By an issuer's name of them, by which it signs them in: the rows of that, the likeliest first. The same provider may write its own
    /// name in one way where it signs in and in another where it tells.
    Subject([SsoLinkId; 2]),
}

/// The principal of this workspace that is named so.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn whose(scope: &mut Scope<'_>, workspace: WorkspaceId, named: &Named) -> Result<Option<PrincipalId>, Halt> {
    match named {
        Named::Address(email) => principal_with(scope, workspace, email),
        Named::Subject(ids) => {
            scope.want(&ids.map(SsoLink::key))?;
            for id in ids {
                if let Some((principal, _)) = linked(scope, workspace, *id)? {
                    return Ok(Some(principal.id));
                }
            }
            Ok(None)
        }
    }
}

/// Does what was told.
///
/// # Errors
/// `not_ready` where the person or their agents have changed since they were looked for: they are to be looked for again; or where
/// too many holds stand.
pub(super) fn signal(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    told: &Told,
    by: IntegrationId,
) -> Result<Done, Halt> {
    if whose(scope, workspace, &told.named)? != told.principal {
        return Err(Refusal::not_ready().into());
    }
    let Some(id) = told.principal else { return Ok(Done::of(UNKNOWN_SUBJECT, None)) };
    scope.want(&[Principal::key(id), Workspace::key(workspace)])?;
    let principal = scope.get::<Principal>(id)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    if let Some(member) = &principal.member {
        let now = scope.now();
        let mut put = Principal::clone(&principal);
        let mut member = Member { signed_out_at: Some(now), ..member.clone() };
        if told.stop.is_some() {
            // Whoever took the account over can have made themselves other ways in: what they made ends, as where they had left.
            (member.shut_out_at, put.following) = (Some(now), Some(principal.followed_anew(now)));
        }
        scope.put(Principal { member: Some(member), ..put });
    }
    let Some((heard, reason)) = &told.stop else {
        return Ok(Done { principal: Some(id), ..Done::of("sessions_ended", None) });
    };
    if heard.agents.is_empty() {
        return Ok(Done { principal: Some(id), ..Done::of("sessions_ended", None) });
    }
    freeze_heard(scope, &workspace, heard, by, reason)?.ok_or_else(Refusal::not_ready)?;
    Ok(Done { principal: Some(id), ..Done::of("agents_frozen", None) })
}
