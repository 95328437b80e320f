//! On whose behalf an administrative command runs, and whether they may. It is looked up in the command's own commit, so a
//! session, token, key or role that ended a moment ago decides nothing.

use core::net::IpAddr;
use std::sync::Arc;

use super::{keys, tokens};
use crate::refusal::{Kind, Refusal};
use crate::state::edge::{Integration, IntegrationSlot, LinkedMember};
use crate::state::evidence::Actor;
use crate::state::gate::Agent;
use crate::state::people::{
    Account, Credential, KeyScope, Maker, Member, MemberState, Principal, Proof, Reach, Right, Role, ServiceToken,
    Session, TokenScope, Workspace,
};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::{CredentialId, Digest, SessionDigest};
use crate::value::id::{AccountId, KeyId, PrincipalId, SessionId, TokenId, WorkspaceId};
use crate::value::text::Label;

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The program that runs the gate, or its operator's shell: may do all.
    Program,
    /// A signed-in person.
    Person(Person),
    /// A machine with a service token.
    Token(TokenCaller),
    /// A workspace key with admin scope.
    Key(KeyCaller),
}

/// A signed-in person in one workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Who they are in it.
    pub principal: PrincipalId,
    /// Who signed in.
    pub account: AccountId,
    /// What vouches for them.
    pub seat: Seat,
}

/// What vouches for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// A session, by its row.
    Session(SessionDigest),
    /// An integration that has linked somebody of another system to them: it vouches for a word on an approval, and for nothing
    /// else that a person does.
    Link(IntegrationSlot),
}

/// A service token and where it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenCaller {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The token.
    pub token: TokenId,
    /// Its row.
    pub row: CredentialId,
    /// What people call it.
    pub name: Label,
    /// The address it came from.
    pub address: IpAddr,
}

/// A workspace key that is no agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCaller {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The key.
    pub key: KeyId,
    /// Its row.
    pub row: CredentialId,
    /// Whose traffic it counts for.
    pub principal: PrincipalId,
}

/// A session in force, whatever the workspace.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The session's row.
    pub row: Arc<Session>,
    /// Who signed in.
    pub account: Arc<Account>,
}

impl Person {
    /// The row of what vouches for them.
    #[must_use]
    pub fn voucher(&self) -> Key {
        match self.seat {
            Seat::Session(session) => Session::key(session),
            Seat::Link(slot) => Integration::key(slot),
        }
    }

    /// The session that they act in, where they do in one.
    #[must_use]
    pub const fn session(&self) -> Option<SessionDigest> {
        match self.seat {
            Seat::Session(session) => Some(session),
            Seat::Link(_) => None,
        }
    }
}

impl SignedIn {
    /// The session's id.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.row.session
    }

    /// Whether it may do nothing but set up the second factor. One that is older than the rule goes on: no workspace that asks for a factor
    /// takes it, and the page that has one set up has a password set as well.
    #[must_use]
    pub fn must_enroll(&self) -> bool {
        self.row.must_enroll && self.account.second_factor.is_none()
    }

    /// That it may change how the account signs in, which is good in every workspace of it.
    ///
    /// # Errors
    /// `forbidden` of a session that one workspace's identity provider vouches for.
    pub fn owns_account(&self) -> Result<(), Refusal> {
        match self.row.proof {
            Proof::Password | Proof::Link => Ok(()),
            Proof::Sso(_) => {
                Err(Refusal::forbidden("this session is good in one workspace, the account in others too"))
            }
        }
    }

    /// Whether it may see and end another session of the account: one that a workspace's provider has begun sees those of that
    /// provider alone.
    #[must_use]
    pub fn sees(&self, other: &Session) -> bool {
        self.owns_account().is_ok() || other.proof == self.row.proof
    }

    /// When it ends if it is not used.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.row.expires_at()
    }
}

impl By {
    /// Who the ledger names.
    #[must_use]
    pub fn actor(&self) -> Actor {
        match self {
            Self::Program => Actor::Policy,
            Self::Person(person) => Actor::Person(person.principal),
            Self::Token(token) => Actor::Token { id: token.token, name: token.name.clone() },
            Self::Key(key) => Actor::Key(key.key),
        }
    }

    /// Who a row names as its maker; `None` for the program.
    #[must_use]
    pub fn maker(&self) -> Option<Maker> {
        match self {
            Self::Program => None,
            Self::Person(person) => Some(Maker::Person(person.principal)),
            Self::Token(token) => Some(Maker::Token { id: token.token, name: token.name.clone() }),
            Self::Key(key) => Some(Maker::Key(key.key)),
        }
    }

    /// The person, where it is one.
    #[must_use]
    pub const fn principal(&self) -> Option<PrincipalId> {
        match self {
            Self::Person(person) => Some(person.principal),
            Self::Program | Self::Token(_) | Self::Key(_) => None,
        }
    }
}

/// Whether `by` may do this in `workspace`, and how far.
///
/// # Errors
/// `unauthenticated` where a session has ended, `invalid_token` and `token_expired` for a token, `invalid_api_key` for a key
/// that is not in force; `forbidden` and `missing_scope` where the right is another's; `not_found` for another workspace.
pub fn entitled(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, right: Right) -> Result<Reach, Halt> {
    match by {
        By::Program => Ok(Reach::All),
        By::Person(person) => {
            let role = member(scope, person)?.1;
            in_workspace(person.workspace, workspace)?;
            if matches!(person.seat, Seat::Link(_)) && !matches!(right, Right::DecideApprovals | Right::ReadApprovals) {
                return Err(
                    Refusal::forbidden("a button of another system decides what waits, and nothing else").into()
                );
            }
            match role.reach(right) {
                Reach::No => Err(Refusal::forbidden(denied(role)).into()),
                reach => Ok(reach),
            }
        }
        By::Token(token) => {
            let row = scope.get::<ServiceToken>(token.row)?.ok_or_else(Refusal::invalid_token)?;
            token_in_force(scope, &row, token.address)?;
            in_workspace(row.workspace, workspace)?;
            match right.token_scope() {
                Some(needed) if row.scopes.contains(&needed) => Ok(Reach::All),
                needed => Err(lacking(needed).into()),
            }
        }
        By::Key(key) => {
            let row = scope.get::<Credential>(key.row)?.ok_or_else(Refusal::invalid_api_key)?;
            if !keys::is_in_force(scope, &row)? {
                return Err(Refusal::invalid_api_key().into());
            }
            in_workspace(row.binding.workspace, workspace)?;
            match row.binding.scope {
                KeyScope::Admin if right.of_admin_key() => Ok(Reach::All),
                KeyScope::Admin => Err(Refusal::missing_scope().into()),
                KeyScope::Agent(_) | KeyScope::Inference => Err(Refusal::missing_admin_scope().into()),
            }
        }
    }
}

/// The member that a person is, and their role now.
///
/// # Errors
/// `unauthenticated` where the session has ended, or the link; `not_found` where they are no member of that workspace, `forbidden`
/// where the session is not good there.
pub fn member(scope: &mut Scope<'_>, person: &Person) -> Result<(Arc<Principal>, Role), Halt> {
    scope.want(&[
        person.voucher(),
        Account::key(person.account),
        Principal::key(person.principal),
        Workspace::key(person.workspace),
    ])?;
    match person.seat {
        Seat::Session(session) => in_session(scope, person, session),
        Seat::Link(slot) => by_link(scope, person, slot),
    }
}

fn in_session(scope: &mut Scope<'_>, person: &Person, session: SessionDigest) -> Result<(Arc<Principal>, Role), Halt> {
    let session = scope.get::<Session>(session)?.ok_or_else(Refusal::session_over)?;
    let signed_in = session_in_force(scope, &session)?;
    let is_theirs = signed_in.account.principal_in(person.workspace) == Some(person.principal);
    let principal =
        scope.get::<Principal>(person.principal)?.filter(|it| is_theirs && it.workspace == person.workspace);
    let principal = principal.ok_or_else(Refusal::not_found)?;
    let account = signed_in.account.id;
    let role = principal.membership().filter(|it| it.account == account && it.state == MemberState::Active);
    let membership = role.ok_or_else(Refusal::not_found)?;
    if membership.was_signed_out_since(session.created_at) {
        return Err(Refusal::session_over().into());
    }
    let role = membership.role;
    let workspace = scope.get::<Workspace>(person.workspace)?.ok_or_else(Refusal::internal)?;
    good_in(&signed_in, &workspace)?;
    Ok((principal, role))
}

/// The member whom an integration of their workspace vouches for. A link that was made before its member was signed out or left is
/// over, as a session would be.
fn by_link(scope: &mut Scope<'_>, person: &Person, slot: IntegrationSlot) -> Result<(Arc<Principal>, Role), Halt> {
    let integration = scope.get::<Integration>(slot)?.filter(|it| it.enabled && slot.workspace == person.workspace);
    let integration = integration.ok_or_else(Refusal::unauthenticated)?;
    let account = scope.get::<Account>(person.account)?.ok_or_else(Refusal::unauthenticated)?;
    let is_theirs = account.principal_in(person.workspace) == Some(person.principal);
    let principal =
        scope.get::<Principal>(person.principal)?.filter(|it| is_theirs && it.workspace == person.workspace);
    let principal = principal.ok_or_else(Refusal::not_found)?;
    let active = |it: &&Member| it.account == account.id && it.state == MemberState::Active;
    let role = principal.membership().filter(active).map(|it| it.role).ok_or_else(Refusal::not_found)?;
    let is_linked = |it: &LinkedMember| it.principal == principal.id && it.holds(&principal);
    if !integration.config.members().iter().any(is_linked) {
        return Err(Refusal::unauthenticated().into());
    }
    let workspace = scope.get::<Workspace>(person.workspace)?.ok_or_else(Refusal::internal)?;
    if workspace.settings.sign_in.require_two_factor && account.second_factor.is_none() {
        return Err(Refusal::must_enroll().into());
    }
    Ok((principal, role))
}

/// A workspace that somebody is a member of, and who they are there.
#[derive(Clone, Debug)]
pub struct InWorkspace {
    /// The workspace.
    pub workspace: Arc<Workspace>,
    /// Who they are in it.
    pub principal: Arc<Principal>,
    /// What they may do there.
    pub role: Role,
}

/// The workspaces that an account is a member of, whether invited or active, oldest membership first.
///
/// # Errors
/// `internal` where a row that another names is not there.
pub fn workspaces_of(scope: &mut Scope<'_>, account: &Account) -> Result<Vec<InWorkspace>, Halt> {
    let keys = account.memberships.iter().flat_map(|it| [Principal::key(it.principal), Workspace::key(it.workspace)]);
    scope.want(&keys.collect::<Vec<_>>())?;
    let mut found = Vec::with_capacity(account.memberships.len());
    for at in &account.memberships {
        let principal = scope.get::<Principal>(at.principal)?.ok_or_else(Refusal::internal)?;
        let workspace = scope.get::<Workspace>(at.workspace)?.ok_or_else(Refusal::internal)?;
        let theirs = principal.membership().filter(|it| it.account == account.id);
        if let Some(role) = theirs.map(|it| it.role) {
            found.push(InWorkspace { workspace, principal, role });
        }
    }
    Ok(found)
}

/// That a session's proof counts in a workspace, as it is set now.
fn good_in(signed_in: &SignedIn, workspace: &Workspace) -> Result<(), Refusal> {
    let rules = &workspace.settings.sign_in;
    let lacks_factor = rules.require_two_factor && signed_in.account.second_factor.is_none();
    match signed_in.row.proof {
        Proof::Sso(of) if of != workspace.id => Err(Refusal::forbidden("this session was made for another workspace")),
        // The identity provider asks for its own second factor.
        Proof::Sso(_) => Ok(()),
        Proof::Password | Proof::Link if signed_in.must_enroll() || lacks_factor => Err(Refusal::must_enroll()),
        Proof::Password | Proof::Link if rules.require_sso => Err(Refusal::needs_sso()),
        Proof::Password | Proof::Link => Ok(()),
    }
}

/// The person that a session is in `workspace`.
///
/// # Errors
/// As [`member`].
pub fn person_in(scope: &mut Scope<'_>, signed_in: &SignedIn, workspace: WorkspaceId) -> Result<(Person, Role), Halt> {
    let principal = signed_in.account.principal_in(workspace).ok_or_else(Refusal::not_found)?;
    let person = Person { workspace, principal, account: signed_in.account.id, seat: Seat::Session(signed_in.row.id) };
    let (_, role) = member(scope, &person)?;
    Ok((person, role))
}

/// The session that a cookie with this digest stands for.
///
/// # Errors
/// `unauthenticated` where there is none in force.
pub fn signed_in(scope: &mut Scope<'_>, digest: &Digest) -> Result<SignedIn, Halt> {
    let found = scope.get::<Session>(Session::id_of(digest))?.filter(|it| it.digest == *digest);
    let session = found.ok_or_else(Refusal::session_over)?;
    session_in_force(scope, &session)
}

/// A session in force by its row, whatever the workspace.
///
/// # Errors
/// `unauthenticated` where there is none.
pub fn own_session(scope: &mut Scope<'_>, id: SessionDigest) -> Result<SignedIn, Halt> {
    let session = scope.get::<Session>(id)?.ok_or_else(Refusal::session_over)?;
    session_in_force(scope, &session)
}

fn session_in_force(scope: &mut Scope<'_>, session: &Arc<Session>) -> Result<SignedIn, Halt> {
    if !session.is_live(scope.now()) {
        return Err(Refusal::session_over().into());
    }
    let account = scope.get::<Account>(session.account)?.filter(|it| it.epoch == session.epoch);
    let account = account.ok_or_else(Refusal::session_over)?;
    Ok(SignedIn { row: Arc::clone(session), account })
}

/// The token with this digest, shown from `address`.
///
/// # Errors
/// `invalid_token` where there is none in force for that address, `token_expired` where its time is up.
pub fn check_token(scope: &mut Scope<'_>, digest: &Digest, address: IpAddr) -> Result<Arc<ServiceToken>, Halt> {
    let found = scope.get::<ServiceToken>(ServiceToken::id_of(digest))?.filter(|it| it.digest == *digest);
    let token = found.ok_or_else(Refusal::invalid_token)?;
    token_in_force(scope, &token, address)?;
    Ok(token)
}

fn token_in_force(scope: &mut Scope<'_>, token: &ServiceToken, address: IpAddr) -> Result<(), Halt> {
    if token.revoked_at.is_some() || !token.admits(address) || tokens::is_void(scope, token)? {
        return Err(Refusal::invalid_token().into());
    }
    if scope.now() >= token.expires_at {
        return Err(Refusal::token_expired().into());
    }
    Ok(())
}

/// Whether a person is an agent's principal or sponsor.
#[must_use]
pub fn owns(principal: PrincipalId, agent: &Agent) -> bool {
    agent.principal == principal || agent.sponsor == Some(principal)
}

/// That a right that reaches to one's own agents reaches to this one.
///
/// # Errors
/// `not_found` where it does not: what one may not read is not there.
pub fn reaches(by: &By, reach: Reach, agent: &Agent) -> Result<(), Refusal> {
    match reach {
        Reach::All => Ok(()),
        Reach::Own if by.principal().is_some_and(|it| owns(it, agent)) => Ok(()),
        Reach::Own | Reach::No => Err(Refusal::not_found()),
    }
}

/// A refusal about an item: whoever may not read such items learns no more than that it is not there.
pub(in crate::rules) fn unseen(halt: Halt) -> Halt {
    match halt {
        Halt::Refuse(refusal) if refusal.kind() == Kind::Forbidden => Refusal::not_found().into(),
        other => other,
    }
}

fn in_workspace(own: WorkspaceId, asked: WorkspaceId) -> Result<(), Refusal> {
    if own == asked { Ok(()) } else { Err(Refusal::not_found()) }
}

fn denied(role: Role) -> String {
    format!("a workspace's {} may not do that", role.as_str())
}

fn lacking(needed: Option<TokenScope>) -> Refusal {
    match needed {
        Some(needed) => Refusal::missing_scope_named(needed.as_str()),
        None => Refusal::missing_scope(),
    }
}
