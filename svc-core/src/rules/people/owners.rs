//! Owners: made and removed by owners, with a second one's word where there are two or more.

use std::sync::Arc;

use super::by::{By, entitled};
use super::members::{Entry, MailedLink, enter, mail_invitation, own_member, remove, set_role, set_teams};
use super::teams::fits;
use crate::refusal::Refusal;
use crate::rules::edge::tell;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Approval, ApprovalState, ApprovalSubject, AskedOwner, OwnerChange};
use crate::state::people::{Member, MemberState, Principal, Right, Role, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::Span;
use crate::value::canonical::Object;
use crate::value::id::{ApprovalId, PrincipalId, TeamId, WorkspaceId};

/// How long a second owner has to agree.
const SECOND_OWNER: Span = Span::hours(24);

/// A change among owners that somebody asks for.
pub(super) struct Asked<'a> {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who asks.
    pub by: &'a By,
    /// Whose standing changes.
    pub principal: &'a Principal,
    /// How.
    pub change: OwnerChange,
    /// The teams that they are to be in; absent where they stay in theirs.
    pub teams: Option<&'a [TeamId]>,
}

/// That somebody may make and remove owners.
pub(in crate::rules) fn may(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId) -> Result<(), Halt> {
    entitled(scope, by, workspace, Right::ManageOwners).map(drop)
}

/// Whether a change from one role to another takes a second owner's word. The operator's own takes nobody's.
pub(super) fn needs_second(workspace: &Workspace, by: &By, was: Option<Role>, becomes: Option<Role>) -> bool {
    let concerns = was == Some(Role::Owner) || becomes == Some(Role::Owner);
    concerns && by.principal().is_some() && workspace.owners.len() > 1
}

/// The question to a second owner, where there is one: new, or the one that waits already.
pub(super) fn second(scope: &mut Scope<'_>, asked: &Asked<'_>) -> Result<Option<Arc<Approval>>, Halt> {
    may(scope, asked.by, asked.workspace)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    let Some(person) = asked.by.principal().filter(|_| workspace.owners.len() > 1) else { return Ok(None) };
    let now = scope.now();
    let (member, before) = (asked.principal.membership(), asked.principal.owner_invite);
    let known = member.map_or(before, |it| it.owner_change);
    if let Some(id) = known
        && let Some(waiting) = scope.get::<Approval>(id)?.filter(|it| it.is_waiting() && now < it.expires_at)
        && let ApprovalSubject::Owner(first) = &waiting.subject
        && first.change == asked.change
        // Nobody can agree to the question of somebody who is an owner no more: it counts as none.
        && is_owner_still(scope, &waiting, first.by)?
    {
        if first.by == person {
            return Err(Refusal::second_owner_required(asked.workspace, id).into());
        }
        // Other teams are another question; whoever is invited can be put into them once they are here.
        if asked.change == OwnerChange::Invite || first.teams.as_deref() == asked.teams {
            return Ok(Some(waiting));
        }
    }
    // Whoever asks for something else of the same person asks for the first no more; another owner's question stays.
    end_asked(scope, known, &asked.by.actor(), Some(person))?;
    let subject = AskedOwner {
        principal: asked.principal.id,
        change: asked.change,
        teams: asked.teams.map(<[TeamId]>::to_vec),
        by: person,
        applications: Vec::new(),
    };
    let approval = Approval {
        id: scope.fresh(),
        workspace: asked.workspace,
        subject: ApprovalSubject::Owner(subject),
        created_at: now,
        expires_at: now.plus(SECOND_OWNER),
        needed: 1,
        approvals: Vec::new(),
        state: ApprovalState::Waiting,
        posted: Vec::new(),
    };
    let data = Object::new().text("change", asked.change.as_str()).text("kind", approval.kind().as_str());
    let data = data.text("principalId", &asked.principal.id.to_string()).finish();
    let subject = Subject::Approval(approval.id);
    scope.append(asked.workspace, Fact { kind: "approval.asked", actor: asked.by.actor(), subject, data });
    scope.put(match member {
        Some(member) => {
            let member = Member { owner_change: Some(approval.id), ..member.clone() };
            Principal { member: Some(member), ..asked.principal.clone() }
        }
        None => Principal { owner_invite: Some(approval.id), ..asked.principal.clone() },
    });
    tell::asked(scope, &workspace, &approval);
    scope.put(approval.clone());
    Ok(Some(Arc::new(approval)))
}

/// Does what a second owner has agreed to, where the first is still an owner. Whoever is invited by it is mailed, where the shell has
/// drawn a link for them.
///
/// # Errors
/// `not_allowed` where the first is an owner no more or was shut out since, the member is gone, or nobody would be left.
pub fn change_asked(
    scope: &mut Scope<'_>,
    approval: &Approval,
    asked: &AskedOwner,
    (second, mailed): (PrincipalId, Option<&MailedLink>),
) -> Result<(), Halt> {
    let workspace = approval.workspace;
    if !is_owner_still(scope, approval, asked.by)? {
        let why = "who asked for it is an owner no more, or was shut out since: ask for it anew";
        return Err(Refusal::not_allowed(why).into());
    }
    if asked.change == OwnerChange::Invite {
        let joined = invite_asked(scope, workspace, asked, second)?;
        return mail(scope, &joined, mailed);
    }
    let mut principal = Principal::clone(&*own_member(scope, workspace, asked.principal)?);
    // Both have made them what they are: who asked, and who agrees.
    if let Some(member) = &mut principal.member {
        member.raise(asked.principal, asked.by, scope.now());
    }
    let Some(member) = principal.membership() else {
        return Err(Refusal::not_allowed("they are a member no more").into());
    };
    let is_invited = member.state == MemberState::Invited;
    let is_owner = member.role == Role::Owner;
    if is_owner == (asked.change == OwnerChange::Make) {
        return Err(Refusal::not_allowed("their role has changed since").into());
    }
    let actor = Actor::Person(second);
    match asked.change {
        OwnerChange::Invite => Err(Refusal::internal().into()),
        OwnerChange::Make => {
            let made = set_role(scope, &principal, Role::Owner, &actor)?;
            let made = into_teams(scope, &made, asked, &actor)?;
            // Whoever has not come yet is invited anew, as what they are now.
            if is_invited { mail(scope, &made, mailed) } else { Ok(()) }
        }
        OwnerChange::Become(role) => {
            let changed = set_role(scope, &principal, role, &actor)?;
            into_teams(scope, &changed, asked, &actor).map(drop)
        }
        OwnerChange::Remove => remove(scope, &principal, &actor).map(drop),
    }
}

fn mail(scope: &mut Scope<'_>, joined: &Principal, by: Option<&MailedLink>) -> Result<(), Halt> {
    match by {
        Some(by) => mail_invitation(scope, joined, by).map(drop),
        None => Ok(()),
    }
}

/// Whether somebody who asked is an owner now, and has been since, without having been shut out.
fn is_owner_still(scope: &mut Scope<'_>, asked: &Approval, by: PrincipalId) -> Result<bool, Halt> {
    let principal = scope.get::<Principal>(by)?.filter(|it| it.workspace == asked.workspace);
    Ok(principal.is_some_and(|it| it.is_owner_since(asked.created_at)))
}

/// Invites somebody as an owner, in the word of the owner who asked for it.
fn invite_asked(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    asked: &AskedOwner,
    second: PrincipalId,
) -> Result<Arc<Principal>, Halt> {
    let principal = scope.get::<Principal>(asked.principal)?.filter(|it| it.workspace == workspace);
    let principal = principal.ok_or_else(Refusal::internal)?;
    if principal.membership().is_some() {
        return Err(Refusal::not_allowed("they have become a member since").into());
    }
    if principal.is_forgotten() {
        return Err(Refusal::not_allowed("what was known of them was erased").into());
    }
    let teams = with_room(scope, workspace, asked.teams.as_deref().unwrap_or_default(), &[])?;
    let actor = Actor::Person(second);
    enter(scope, &principal, &Entry { role: Role::Owner, teams: Some(&teams), by: Some(asked.by), actor: &actor })
}

/// Puts a member into the teams that were asked for with their role, if any were.
fn into_teams(
    scope: &mut Scope<'_>,
    principal: &Arc<Principal>,
    asked: &AskedOwner,
    actor: &Actor,
) -> Result<Arc<Principal>, Halt> {
    let Some(teams) = &asked.teams else { return Ok(Arc::clone(principal)) };
    let own = principal.membership().map(|it| it.teams.clone()).unwrap_or_default();
    let teams = with_room(scope, principal.workspace, teams, &own)?;
    set_teams(scope, principal, &teams, actor)
}

/// Those of `teams` that there are and that have room, or that somebody is in already: a team that was removed or filled
/// meanwhile holds nothing up.
fn with_room(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    teams: &[TeamId],
    own: &[TeamId],
) -> Result<Vec<TeamId>, Halt> {
    let mut found = Vec::with_capacity(teams.len());
    for team in teams {
        match fits(scope, workspace, &[*team], "teamIds") {
            Ok(()) => found.push(*team),
            Err(Halt::Refuse(_)) if own.contains(team) => found.push(*team),
            Err(Halt::Refuse(_)) => {}
            Err(halt) => return Err(halt),
        }
    }
    Ok(found)
}

/// Ends the question whether somebody who is no member is invited as an owner, if one waits, and gives their row as it stands
/// then. It reads as denied by nobody's word.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn end_invite(
    scope: &mut Scope<'_>,
    principal: &Principal,
    actor: &Actor,
) -> Result<Principal, Halt> {
    if principal.owner_invite.is_none() {
        return Ok(principal.clone());
    }
    end_asked(scope, principal.owner_invite, actor, None)?;
    let principal = Principal { owner_invite: None, ..principal.clone() };
    scope.put(principal.clone());
    Ok(principal)
}

/// Ends a question about somebody's standing that waits still, where it is by this owner, if one is named. One that an application
/// waits for stays: it is decided there. It reads as denied by nobody's word.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn end_asked(
    scope: &mut Scope<'_>,
    question: Option<ApprovalId>,
    actor: &Actor,
    by: Option<PrincipalId>,
) -> Result<(), Halt> {
    let Some(id) = question else { return Ok(()) };
    let now = scope.now();
    let Some(waiting) = scope.get::<Approval>(id)?.filter(|it| it.is_waiting() && now < it.expires_at) else {
        return Ok(());
    };
    let is_meant = |of: &AskedOwner| of.applications.is_empty() && by.is_none_or(|it| it == of.by);
    if matches!(&waiting.subject, ApprovalSubject::Owner(of) if is_meant(of)) {
        let data = Object::new().text("kind", waiting.kind().as_str()).finish();
        let subject = Subject::Approval(id);
        scope.append(waiting.workspace, Fact { kind: "approval.denied", actor: actor.clone(), subject, data });
        scope.put(Approval::clone(&waiting).ended(ApprovalState::Denied { at: now, by: None, note: None }));
    }
    Ok(())
}

/// Keeps the workspace's list of owners: somebody stands in it from now on, or no more. The row is read and written by every
/// change among owners, so that two of them never both see the other's owner.
pub(super) fn keep(scope: &mut Scope<'_>, principal: &Principal, is_owner: bool) -> Result<(), Halt> {
    let row = scope.get::<Workspace>(principal.workspace)?.ok_or_else(Refusal::internal)?;
    if row.owners.contains(&principal.id) == is_owner {
        return Ok(());
    }
    let mut row = Workspace::clone(&row);
    row.owners.retain(|it| *it != principal.id);
    if is_owner {
        row.owners.push(principal.id);
    }
    let Some(first) = row.owners.first() else {
        return Err(Refusal::last_owner().into());
    };
    row.owner = *first;
    scope.put(row);
    Ok(())
}
