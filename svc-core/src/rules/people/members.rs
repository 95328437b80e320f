//! Members: invited, given a role and teams, removed.
//!
//! **Invariant:** who is an owner stands in the workspace's own row, which every change among owners reads and writes: two
//! that race meet there, and none can leave a workspace without an owner. An invited owner stands there from the first
//! sign-in on.

use std::sync::Arc;

use super::accounts::{account_for, join, principal_for};
use super::applications::end_with;
use super::by::{By, entitled};
use super::links::{give_link, void_link};
use super::owners::{self, Asked};
use super::sessions::{Ended, end_others};
use super::teams::{change_teams, fits};
use crate::refusal::Refusal;
use crate::rules::edge::integrations::note_forsaken;
use crate::rules::gate::freeze::touch;
use crate::state::edge::{IntegrationKind, Job, News, Work};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Approval, OwnerChange};
use crate::state::people::{
    Account, LINK_LIFE, Member, MemberState, Principal, Reach, Right, Role, SignInLink, Workspace,
};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::digest::Digest;
use crate::value::id::{AccountId, PrincipalId, TeamId, WorkspaceId};
use crate::value::text::{Email, Label};

/// What comes of a change of a member.
#[derive(Clone, Debug)]
pub enum MemberDone {
    /// The member as it stands now.
    Done {
        /// The member.
        principal: Arc<Principal>,
        /// Whether the token that came along signs in by link.
        linked: bool,
    },
    /// A second owner is asked.
    Asked(Arc<Approval>),
}

/// Invites somebody, or invites anew whom was invited and has not come yet, or was removed.
#[derive(Clone, Debug)]
pub struct InviteMember {
    /// Where to.
    pub workspace: WorkspaceId,
    /// Who invites.
    pub by: By,
    /// Where they are reached.
    pub email: Email,
    /// What people call them.
    pub name: Option<Label>,
    /// What they may do.
    pub role: Role,
    /// The teams they are in. Where absent, whoever is invited again stays in theirs, and anybody else is in none.
    pub teams: Option<Vec<TeamId>>,
    /// The digest of a token for a sign-in link, used only where it hands over no other workspace: the account has never
    /// signed in and is a member of this one alone.
    pub token: Digest,
    /// The token itself, sealed for [`News::purpose`], where the invitation is mailed: then it is good for whoever has never signed
    /// in, as nobody reads it but them.
    pub mailed: Option<Box<str>>,
}

/// Invites somebody.
///
/// # Errors
/// Those of [`entitled`], `forbidden` where the role is an owner's and the caller is none, `not_allowed` where they are a
/// member who has signed in, `second_owner_required` where the caller has asked for an owner already, `invalid_request` naming every team that is none.
pub fn invite_member(scope: &mut Scope<'_>, asked: &InviteMember) -> Result<MemberDone, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMembers)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let principal = principal_for(scope, asked.workspace, &asked.email, asked.name.as_ref())?;
    let before = principal.membership();
    if before.is_some_and(|it| it.state == MemberState::Active) {
        return Err(Refusal::member_already().into());
    }
    if asked.role == Role::Owner || before.is_some_and(|it| it.role == Role::Owner) {
        owners::may(scope, &asked.by, asked.workspace)?;
    }
    let same = before.is_some_and(|it| it.role == asked.role);
    fits(scope, asked.workspace, asked.teams.as_deref().unwrap_or_default(), "teamIds")?;
    let named =
        Principal { name: asked.name.clone().or_else(|| principal.name.clone()), ..Principal::clone(&principal) };
    if !same && owners::needs_second(&workspace, &asked.by, before.map(|it| it.role), Some(asked.role)) {
        let change = match before.map(|it| it.role) {
            None => OwnerChange::Invite,
            Some(Role::Owner) => OwnerChange::Become(asked.role),
            Some(_) => OwnerChange::Make,
        };
        let teams = asked.teams.as_deref();
        let asks = Asked { workspace: asked.workspace, by: &asked.by, principal: &named, change, teams };
        if let Some(approval) = owners::second(scope, &asks)? {
            return Ok(MemberDone::Asked(approval));
        }
    }
    let (role, by, actor) = (asked.role, asked.by.principal(), asked.by.actor());
    let joined = enter(scope, &named, &Entry { role, teams: asked.teams.as_deref(), by, actor: &actor })?;
    let account = joined.membership().ok_or_else(Refusal::internal)?.account;
    let linked = match &asked.mailed {
        Some(sealed) => {
            let link = MailedLink { token: asked.token, sealed: sealed.clone() };
            mail_invitation(scope, &joined, &link)?
        }
        None => link(scope, (account, asked.workspace), asked.token, false)?,
    };
    Ok(MemberDone::Done { principal: joined, linked })
}

/// A link that is mailed to whoever is invited, as the shell has drawn it.
#[derive(Clone, Debug)]
pub struct MailedLink {
    /// The digest of its token.
    pub token: Digest,
    /// The token itself, sealed for [`News::purpose`].
    pub sealed: Box<str>,
}

/// Has somebody mailed that they are invited, with a link where they have never signed in; whether there is one.
pub(super) fn mail_invitation(scope: &mut Scope<'_>, joined: &Principal, by: &MailedLink) -> Result<bool, Halt> {
    let account = joined.membership().ok_or_else(Refusal::internal)?.account;
    let linked = link(scope, (account, joined.workspace), by.token, true)?;
    let news = News::Invited {
        principal: joined.id,
        link: linked.then(|| SignInLink::id_of(&by.token)),
        token: linked.then(|| by.sealed.clone()),
    };
    let work = Work::Message { news, over: IntegrationKind::Mail, to: Some(joined.id) };
    let job = Job::without_url(scope.fresh(), joined.workspace, work, scope.now());
    scope.put(job);
    Ok(linked)
}

/// How somebody comes to be invited.
pub(super) struct Entry<'a> {
    /// What they may do.
    pub role: Role,
    /// The teams they are in; absent where they stay in theirs.
    pub teams: Option<&'a [TeamId]>,
    /// Who invites them; absent for the program.
    pub by: Option<PrincipalId>,
    /// Whose word brings it about.
    pub actor: &'a Actor,
}

/// Makes somebody an invited member.
pub(super) fn enter(scope: &mut Scope<'_>, principal: &Principal, entry: &Entry<'_>) -> Result<Arc<Principal>, Halt> {
    let account = account_for(scope, &principal.email)?;
    let account = if entry.role == Role::Owner { without_link(scope, &account)? } else { account };
    let before = principal.membership();
    let now = scope.now();
    let is_owner_now = entry.role == Role::Owner && before.is_none_or(|it| it.role != Role::Owner);
    let owner_before = principal.member.as_ref().and_then(|it| it.owner_at);
    let mut member = Member {
        invited_by: entry.by,
        ended_at: principal.member.as_ref().and_then(|it| it.ended_at),
        teams: before.map(|it| it.teams.clone()).unwrap_or_default(),
        raised: principal.member.as_ref().map(|it| it.raised.clone()).unwrap_or_default(),
        demoted_at: principal.member.as_ref().and_then(|it| it.demoted_at),
        // Sessions that a signal or the end of the membership has ended do not come back with it.
        signed_out_at: principal.member.as_ref().and_then(|it| it.signed_out_at.max(it.ended_at)),
        shut_out_at: principal.member.as_ref().and_then(|it| it.shut_out_at),
        owner_at: if is_owner_now { Some(now) } else { owner_before },
        // The provider still means the same person.
        sso: principal.member.as_ref().filter(|it| it.account == account.id).and_then(|it| it.sso),
        ..Member::new(entry.role, MemberState::Invited, account.id)
    };
    // An owner comes in by the word of two.
    for by in entry.by.into_iter().chain(person(entry.actor)) {
        member.raise(principal.id, by, now);
    }
    let lowered = principal.decides_own() && entry.role.reach(Right::DecideApprovals) == Reach::No;
    // Agents of which they were to be the sponsor are to say that they are not.
    let following = if lowered { Some(principal.followed_anew(now)) } else { principal.following };
    let named = Principal { owner_invite: None, following, ..principal.clone() };
    let joined = join(scope, &account, &named, member);
    let joined = match entry.teams {
        Some(teams) => change_teams(scope, &joined, teams)?,
        None => joined,
    };
    let data = told(&joined).finish();
    let (actor, subject) = (entry.actor.clone(), Subject::Principal(joined.id));
    let fact = Fact { kind: "member.invited", actor, subject, data };
    scope.append_with(joined.workspace, fact, &[("email", principal.email.as_str())]);
    touch(scope, joined.workspace)?;
    Ok(joined)
}

/// Puts the link in force where whoever holds it gets into this workspace alone, as somebody who has never been here. A link
/// that another workspace handed out before is void from now on.
fn link(
    scope: &mut Scope<'_>,
    (account, workspace): (AccountId, WorkspaceId),
    token: Digest,
    is_mailed: bool,
) -> Result<bool, Halt> {
    let account = scope.get::<Account>(account)?.ok_or_else(Refusal::internal)?;
    let mut account = Account::clone(&account);
    if account.signed_in_at.is_some() {
        return Ok(false);
    }
    let alone = account.memberships.iter().all(|it| it.workspace == workspace);
    let linked = alone || is_mailed;
    if linked {
        give_link(scope, &mut account, token, Some(LINK_LIFE))?;
    } else {
        void_link(scope, &mut account)?;
    }
    scope.put(account);
    Ok(linked)
}

/// The account of somebody who becomes an owner, without the link of whoever has never signed in: it was handed to whoever invited
/// them as something less, an admin perhaps, who would come in as an owner by it. They are invited once more, by an owner.
fn without_link(scope: &mut Scope<'_>, account: &Arc<Account>) -> Result<Arc<Account>, Halt> {
    if account.signed_in_at.is_some() || account.link.is_none() {
        return Ok(Arc::clone(account));
    }
    let mut account = Account::clone(account);
    void_link(scope, &mut account)?;
    scope.put(account.clone());
    Ok(Arc::new(account))
}

/// Changes a member's role or teams.
#[derive(Clone, Debug)]
pub struct ChangeMember {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who changes it.
    pub by: By,
    /// Whose.
    pub principal: PrincipalId,
    /// The new role; absent where it stays.
    pub role: Option<Role>,
    /// The teams they are in from now on; absent where they stay.
    pub teams: Option<Vec<TeamId>>,
}

/// Changes a member's role or teams. Where a second owner has to agree, nothing changes yet, and the teams change with the role.
///
/// # Errors
/// Those of [`entitled`], `not_found`, `forbidden` where an owner is concerned and the caller is none, `second_owner_required`
/// for the last owner and where the caller has asked already, `invalid_request` naming every team that is none.
pub fn change_member(scope: &mut Scope<'_>, asked: &ChangeMember) -> Result<MemberDone, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMembers)?;
    let principal = own_member(scope, asked.workspace, asked.principal)?;
    let was = principal.membership().ok_or_else(Refusal::not_found)?.role;
    if let Some(teams) = &asked.teams {
        fits(scope, asked.workspace, teams, "teamIds")?;
    }
    let role = asked.role.filter(|it| *it != was);
    if let Some(role) = role.filter(|it| was == Role::Owner || *it == Role::Owner) {
        let change = if role == Role::Owner { OwnerChange::Make } else { OwnerChange::Become(role) };
        let teams = asked.teams.as_deref();
        let asks = Asked { workspace: asked.workspace, by: &asked.by, principal: &principal, change, teams };
        if let Some(approval) = owners::second(scope, &asks)? {
            return Ok(MemberDone::Asked(approval));
        }
    }
    let principal = match role {
        Some(role) => set_role(scope, &principal, role, &asked.by.actor())?,
        None => principal,
    };
    let principal = match &asked.teams {
        Some(teams) => set_teams(scope, &principal, teams, &asked.by.actor())?,
        None => principal,
    };
    Ok(MemberDone::Done { principal, linked: false })
}

/// The person whose word it is, where it is one's.
const fn person(actor: &Actor) -> Option<PrincipalId> {
    if let Actor::Person(by) = actor { Some(*by) } else { None }
}

/// Gives a member another role.
pub(super) fn set_role(
    scope: &mut Scope<'_>,
    principal: &Principal,
    role: Role,
    actor: &Actor,
) -> Result<Arc<Principal>, Halt> {
    let member = principal.membership().ok_or_else(Refusal::not_found)?;
    let active = member.state == MemberState::Active;
    owners::keep(scope, principal, active && role == Role::Owner)?;
    if role == Role::Owner {
        let account = scope.get::<Account>(member.account)?.ok_or_else(Refusal::internal)?;
        without_link(scope, &account)?;
    }
    let mut changed = Member { owner_change: None, ..member.clone() }.in_role(role, scope.now());
    if let Some(by) = person(actor) {
        changed.raise(principal.id, by, scope.now());
    }
    let side = |it: Role| Object::new().text("role", it.as_str()).finish();
    let (old, new) = (side(member.role), side(role));
    let mut principal = Principal { member: Some(changed), ..principal.clone() };
    let differs = |right| member.role.reach(right) != role.reach(right);
    if differs(Right::AgentKeys) || differs(Right::DecideApprovals) {
        // Keys and connections that they might make then may be void, and agents without their sponsor; their rows are to say so.
        principal.following = Some(principal.followed_anew(scope.now()));
    }
    scope.put(principal.clone());
    record(scope, &principal, actor.clone(), &old, &new);
    Ok(Arc::new(principal))
}

/// Puts a member into these teams alone.
pub(super) fn set_teams(
    scope: &mut Scope<'_>,
    principal: &Principal,
    teams: &[TeamId],
    actor: &Actor,
) -> Result<Arc<Principal>, Halt> {
    let before = principal.membership().map(|it| it.teams.clone()).unwrap_or_default();
    let changed = change_teams(scope, principal, teams)?;
    let now = changed.membership().map(|it| it.teams.clone()).unwrap_or_default();
    if before != now {
        let side = |it: &[TeamId]| Object::new().raw("teamIds", &list(it)).finish();
        record(scope, &changed, actor.clone(), &side(&before), &side(&now));
        touch(scope, changed.workspace)?;
    }
    Ok(changed)
}

/// Removes a member, who may be the one who asks.
#[derive(Clone, Debug)]
pub struct RemoveMember {
    /// From which workspace.
    pub workspace: WorkspaceId,
    /// Who removes them.
    pub by: By,
    /// Whom.
    pub principal: PrincipalId,
}

/// Removes a member: they are nobody here from this commit on, in no session, keys that count for them are void, and what they
/// asked for is asked no more. Agents that act for them stay and pass to their sponsors ([`super::leave`]); without one they wait
/// for an owner.
///
/// # Errors
/// Those of [`entitled`], `not_found`, `forbidden` where an owner is concerned and the caller is none, `second_owner_required`
/// for the last owner and where the caller has asked already.
pub fn remove_member(scope: &mut Scope<'_>, asked: &RemoveMember) -> Result<MemberDone, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMembers)?;
    let principal = own_member(scope, asked.workspace, asked.principal)?;
    if principal.membership().is_none() {
        return Ok(MemberDone::Done { principal, linked: false });
    }
    if principal.membership().is_some_and(|it| it.role == Role::Owner) {
        let change = OwnerChange::Remove;
        let asks = Asked { workspace: asked.workspace, by: &asked.by, principal: &principal, change, teams: None };
        if let Some(approval) = owners::second(scope, &asks)? {
            return Ok(MemberDone::Asked(approval));
        }
    }
    let principal = remove(scope, &principal, &asked.by.actor())?;
    Ok(MemberDone::Done { principal, linked: false })
}

/// Ends a membership.
pub(super) fn remove(scope: &mut Scope<'_>, principal: &Principal, actor: &Actor) -> Result<Arc<Principal>, Halt> {
    owners::keep(scope, principal, false)?;
    let account = principal.membership().ok_or_else(Refusal::not_found)?.account;
    let account = scope.get::<Account>(account)?.ok_or_else(Refusal::internal)?;
    let mut account = Account::clone(&account);
    if account.memberships.iter().all(|it| it.workspace == principal.workspace) {
        let by = if let Actor::Person(by) = actor { Some(*by) } else { None };
        end_others(scope, &mut account, None, Ended::Removed(by))?;
        void_link(scope, &mut account)?;
    }
    account.memberships.retain(|it| it.workspace != principal.workspace);
    scope.put(account);
    let principal = change_teams(scope, principal, &[])?;
    let member = principal.membership().ok_or_else(Refusal::internal)?;
    owners::end_asked(scope, member.owner_change, actor, None)?;
    let ended =
        Member { state: MemberState::Disabled, ended_at: Some(scope.now()), owner_change: None, ..member.clone() };
    let following = Some(scope.now());
    let principal = Principal { member: Some(ended), following, ..end_with(scope, &principal, actor)? };
    scope.put(principal.clone());
    note_forsaken(scope, principal.workspace)?;
    let data = told(&principal).finish();
    let fact = Fact { kind: "member.removed", actor: actor.clone(), subject: Subject::Principal(principal.id), data };
    scope.append(principal.workspace, fact);
    touch(scope, principal.workspace)?;
    Ok(Arc::new(principal))
}

/// Somebody who is a member of the workspace, or was.
///
/// # Errors
/// `not_found`.
pub fn own_member(scope: &mut Scope<'_>, workspace: WorkspaceId, id: PrincipalId) -> Result<Arc<Principal>, Halt> {
    let found = scope.get::<Principal>(id)?.filter(|it| it.workspace == workspace && it.member.is_some());
    found.ok_or_else(|| Refusal::not_found().into())
}

/// A member as `by` may read it.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn read_member(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    id: PrincipalId,
) -> Result<Arc<Principal>, Halt> {
    entitled(scope, by, workspace, Right::ReadMembers)?;
    own_member(scope, workspace, id)
}

fn told(principal: &Principal) -> Object<'static> {
    let data = Object::new().text("principalId", &principal.id.to_string());
    let Some(member) = &principal.member else { return data };
    data.text("role", member.role.as_str()).text("state", member.state.as_str()).raw("teamIds", &list(&member.teams))
}

fn record(scope: &mut Scope<'_>, principal: &Principal, actor: Actor, old: &str, new: &str) {
    let data = Object::new().text("principalId", &principal.id.to_string()).raw("old", old).raw("new", new).finish();
    let fact = Fact { kind: "member.changed", actor, subject: Subject::Principal(principal.id), data };
    scope.append(principal.workspace, fact);
}

fn list(teams: &[TeamId]) -> String {
    let teams: Vec<String> = teams.iter().map(|it| format!("\"{it}\"")).collect();
    format!("[{}]", teams.join(","))
}
