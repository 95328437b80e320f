//! Sessions: begun by a proof that was good, noted while they are used, ended by a person, a change or time.
//!
//! A session names the account's epoch and stands in the account's list, so one written row ends them all.

use super::by::{InWorkspace, SignedIn, own_session, workspaces_of};
use super::owners;
use crate::refusal::Refusal;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::{Account, Member, MemberState, Principal, Proof, Role, SESSIONS_MAX, Session, Workspace};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::Span;
use crate::value::canonical::Object;
use crate::value::digest::{Digest, SessionDigest};
use crate::value::id::{AccountId, PrincipalId, SessionId, WorkspaceId};

/// How old the note of a session's last use may become before it is written again.
pub const SEEN_SLACK: Span = Span::minutes(5);

/// A session that was begun.
#[derive(Clone, Debug)]
pub struct Started {
    /// The session.
    pub session: SessionId,
    /// Whose.
    pub account: AccountId,
    /// What the person does next.
    pub next: Next,
}

/// What a person who has signed in does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Whatever they came for.
    Done,
    /// Sets up a second factor: the session may do nothing else.
    EnrollTotp,
    /// Sets a password, if they like.
    SetPassword,
}

/// What a first proof that was good leads to.
#[derive(Clone, Debug)]
pub(super) enum Begun {
    Started(Started),
    /// Every workspace of the account takes its own single sign-on alone.
    SsoAlone,
}

/// Begins a session of `account` under the cookie with this digest. The account's row is put.
pub(super) fn begin(scope: &mut Scope<'_>, mut account: Account, proof: Proof, cookie: Digest) -> Result<Begun, Halt> {
    let id = Session::id_of(&cookie);
    if scope.get::<Session>(id)?.is_some() {
        return Err(Refusal::internal().into());
    }
    let all = workspaces_of(scope, &account)?;
    let (good, refused): (Vec<InWorkspace>, Vec<InWorkspace>) =
        all.into_iter().partition(|it| counts(proof, &it.workspace));
    if good.is_empty() && !refused.is_empty() {
        return Ok(Begun::SsoAlone);
    }
    let now = scope.now();
    let session: SessionId = scope.fresh();
    // One workspace that asks for a second factor takes no other workspace from a person: there the member waits outside.
    let needs = |it: &InWorkspace| it.workspace.settings.sign_in.require_two_factor;
    let must_enroll = !matches!(proof, Proof::Sso(_)) && account.second_factor.is_none();
    let must_enroll = must_enroll && !good.is_empty() && good.iter().all(needs);
    for place in &good {
        admit(scope, place)?;
        let principal = place.principal.id;
        let data = Object::new().text("principalId", &principal.to_string()).text("proof", word(proof)).finish();
        let actor = Actor::Person(principal);
        let fact = Fact { kind: "session.started", actor, subject: Subject::Session(session), data };
        scope.append(place.workspace.id, fact);
    }
    make_room(scope, &mut account, proof)?;
    account.sessions.push(id);
    account.signed_in_at = account.signed_in_at.or(Some(now));
    scope.put(Session {
        id,
        digest: cookie,
        session,
        account: account.id,
        epoch: account.epoch,
        proof,
        must_enroll,
        created_at: now,
        seen_at: now,
        ended_at: None,
    });
    let next = match proof {
        _ if must_enroll => Next::EnrollTotp,
        Proof::Link if account.password.is_none() => Next::SetPassword,
        Proof::Link | Proof::Password | Proof::Sso(_) => Next::Done,
    };
    let started = Started { session, account: account.id, next };
    scope.put(account);
    Ok(Begun::Started(started))
}

/// Ends the oldest session that was made as the new one is, where there are [`SESSIONS_MAX`] of these. Whoever runs a workspace's
/// provider could otherwise end those of the account's own sign-in, and of another workspace's provider, by making many.
fn make_room(scope: &mut Scope<'_>, account: &mut Account, proof: Proof) -> Result<(), Halt> {
    if account.sessions.len() < SESSIONS_MAX {
        return Ok(());
    }
    scope.want(&account.sessions.iter().map(|it| Session::key(*it)).collect::<Vec<_>>())?;
    let mut alike = Vec::with_capacity(SESSIONS_MAX);
    for id in &account.sessions {
        let row = scope.get::<Session>(*id)?;
        alike.extend(row.filter(|it| it.proof.provider() == proof.provider()).map(|it| it.id));
    }
    let over = alike.len().saturating_add(1).saturating_sub(SESSIONS_MAX);
    for oldest in alike.into_iter().take(over) {
        account.sessions.retain(|it| *it != oldest);
        end_row(scope, account, oldest, Ended::Displaced)?;
    }
    Ok(())
}

/// Makes an invited member an active one: they have shown that they are who was invited.
fn admit(scope: &mut Scope<'_>, place: &InWorkspace) -> Result<(), Halt> {
    let Some(member) = place.principal.membership().filter(|it| it.state == MemberState::Invited) else {
        return Ok(());
    };
    if member.role == Role::Owner {
        owners::keep(scope, &place.principal, true)?;
    }
    let active = Member { state: MemberState::Active, ..member.clone() };
    scope.put(Principal { member: Some(active), ..Principal::clone(&place.principal) });
    let id = place.principal.id;
    let data = Object::new().text("principalId", &id.to_string()).text("state", "active").finish();
    let fact = Fact { kind: "member.joined", actor: Actor::Person(id), subject: Subject::Principal(id), data };
    scope.append(place.workspace.id, fact);
    Ok(())
}

/// Whether a proof counts in a workspace, as it is set now.
fn counts(proof: Proof, workspace: &Workspace) -> bool {
    match proof {
        Proof::Password | Proof::Link => !workspace.settings.sign_in.require_sso,
        Proof::Sso(of) => of == workspace.id,
    }
}

fn word(proof: Proof) -> &'static str {
    match proof {
        Proof::Password => "password",
        Proof::Link => "link",
        Proof::Sso(_) => "sso",
    }
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Its person ended it.
    Person,
    /// The password was changed, or a second factor was set up.
    Changed,
    /// The operator took the second factor away.
    ChangedByOperator,
    /// A newer session took its place.
    Displaced,
    /// Its account's last membership ended, by this person's hand or the operator's.
    Removed(Option<PrincipalId>),
    /// Its time was up.
    Expired,
}

impl Ended {
    const fn word(self) -> &'static str {
        match self {
            Self::Person => "sign_out",
            Self::Changed | Self::ChangedByOperator => "credential_changed",
            Self::Displaced => "displaced",
            Self::Removed(_) => "member_removed",
            Self::Expired => "expired",
        }
    }
}

/// Marks a session as ended and records it where it was good. Its account's list is the caller's to write.
pub(super) fn end_row(scope: &mut Scope<'_>, account: &Account, id: SessionDigest, why: Ended) -> Result<(), Halt> {
    let Some(session) = scope.get::<Session>(id)?.filter(|it| it.ended_at.is_none()) else { return Ok(()) };
    for place in workspaces_of(scope, account)? {
        if counts(session.proof, &place.workspace) {
            record_end(scope, place.workspace.id, place.principal.id, session.session, why);
        }
    }
    scope.put(Session { ended_at: Some(scope.now()), ..Session::clone(&session) });
    Ok(())
}

/// Records a session's end in one workspace.
pub(super) fn record_end(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    principal: PrincipalId,
    session: SessionId,
    why: Ended,
) {
    let actor = match why {
        Ended::Person | Ended::Changed | Ended::Displaced => Actor::Person(principal),
        Ended::ChangedByOperator => Actor::Policy,
        Ended::Removed(by) => by.map_or(Actor::Policy, Actor::Person),
        Ended::Expired => Actor::Timer,
    };
    let data = Object::new().text("principalId", &principal.to_string()).text("why", why.word()).finish();
    scope.append(workspace, Fact { kind: "session.ended", actor, subject: Subject::Session(session), data });
}

/// Ends every session of an account but `kept`, which goes on under the next epoch. The account is the caller's to put.
pub(super) fn end_others(
    scope: &mut Scope<'_>,
    account: &mut Account,
    kept: Option<&Session>,
    why: Ended,
) -> Result<(), Halt> {
    let all = std::mem::take(&mut account.sessions);
    scope.want(&all.iter().map(|it| Session::key(*it)).collect::<Vec<_>>())?;
    for id in all {
        if kept.is_none_or(|it| it.id != id) {
            end_row(scope, account, id, why)?;
        }
    }
    account.epoch = account.epoch.saturating_add(1);
    if let Some(kept) = kept {
        account.sessions.push(kept.id);
        scope.put(Session { epoch: account.epoch, ..kept.clone() });
    }
    Ok(())
}

/// Ends one session of an account.
#[derive(Clone, Copy, Debug)]
pub struct EndSession {
    /// The session of whoever asks.
    pub by: SessionDigest,
    /// The session to end: the same, or another of that account.
    pub ended: SessionDigest,
}

/// Ends a session.
///
/// # Errors
/// `unauthenticated` where the asking session is not in force, `not_found` where the account has no such session.
pub fn end_session(scope: &mut Scope<'_>, asked: &EndSession) -> Result<(), Halt> {
    let own = own_session(scope, asked.by)?;
    let account = own.account.id;
    let ended = scope.get::<Session>(asked.ended)?.filter(|it| it.account == account && it.is_live(scope.now()));
    ended.filter(|it| it.epoch == own.account.epoch && own.sees(it)).ok_or_else(Refusal::not_found)?;
    end_row(scope, &own.account, asked.ended, Ended::Person)?;
    let mut account = Account::clone(&own.account);
    account.sessions.retain(|it| *it != asked.ended);
    scope.put(account);
    Ok(())
}

/// Notes that a session is used.
#[derive(Clone, Copy, Debug)]
pub struct TouchSession(pub SessionDigest);

/// Notes that a session is used, unless that was noted within [`SEEN_SLACK`].
///
/// # Errors
/// `unauthenticated` where it is not in force.
pub fn touch_session(scope: &mut Scope<'_>, asked: &TouchSession) -> Result<(), Halt> {
    let own: SignedIn = own_session(scope, asked.0)?;
    let now = scope.now();
    if now.since(own.row.seen_at) >= SEEN_SLACK {
        scope.put(Session { seen_at: now, ..Session::clone(&own.row) });
    }
    Ok(())
}

/// Records the end of a session whose time is up, and lets go of the row of one that ended long ago.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn expire_session(scope: &mut Scope<'_>, id: SessionDigest) -> Result<(), Halt> {
    let now = scope.now();
    let Some(session) = scope.get::<Session>(id)?.filter(|it| now >= it.wake_at()) else { return Ok(()) };
    if session.ended_at.is_none()
        && let Some(account) = scope.get::<Account>(session.account)?
    {
        end_row(scope, &account, id, Ended::Expired)?;
        let mut account = Account::clone(&account);
        account.sessions.retain(|it| *it != id);
        scope.put(account);
    }
    let ended = scope.get::<Session>(id)?.is_none_or(|it| it.ended_at.is_none() || now >= it.wake_at());
    if ended {
        scope.delete::<Session>(id);
    }
    Ok(())
}
