//! Signing in by a workspace's own identity provider (CONTRACT part 5, "Accounts").
//!
//! **Invariant:** no token comes in here. The shell has verified whom the provider vouches for; the commit sees that it is still the
//! workspace's provider, and decides whose account that is.
//!
//! **Invariant:** nobody becomes a member by it, and an account that exists already is linked by its own proof alone: whoever runs
//! a provider gets into no account that is not theirs to give.

use std::sync::Arc;

use super::accounts::principal_with;
use super::by::{SignedIn, own_session};
use super::sessions::{Begun, Started, begin};
use super::sign_in::proven;
use crate::refusal::Refusal;
use crate::state::edge::{Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, OidcConfig, Received};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::{Account, Member, PendingSignIn, Principal, Proof, SsoLink, Workspace};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::digest::{Digest, PendingSignInId, ReceivedId, SessionDigest, SsoLinkId};
use crate::value::domain::Domain;
use crate::value::id::{IntegrationId, WorkspaceId};
use crate::value::text::Email;
use crate::value::{Span, Timestamp};

/// How old the note of a provider's last sign-in may become before it is written again: its row is shared by everybody who signs in.
const NOTED_SLACK: Span = Span::hours(1);
/// How long it is remembered that a sign-in came back: longer than anybody is waited for, on any server's clock.
const SENT_KEPT: Span = Span::hours(1);

/// Begins a session for whom an identity provider vouches.
#[derive(Clone, Debug)]
pub struct SignInBySso {
    /// Who vouches for whom.
    pub vouched: Vouched,
    /// What the person has shown of their own.
    pub own: Option<OwnProof>,
    /// The digest of the cookie that the session gets.
    pub cookie: Digest,
}

/// What a provider has said of a person, in a token that the shell has verified.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// The workspace whose provider it is.
    pub workspace: WorkspaceId,
    /// The integration that named it: another that has taken its place since is another provider.
    pub integration: IntegrationId,
    /// The issuer that it had then.
    pub issuer: Box<str>,
    /// What the issuer called this server then.
    pub client_id: Box<str>,
    /// The row of the issuer's name of the person.
    pub subject: SsoLinkId,
    /// Their address, where the issuer has verified that it is theirs.
    pub email: Option<Email>,
    /// The domain of that address, where the shell has found of late that it is this workspace's.
    pub domain: Option<Domain>,
    /// What the shell has found wrong just now where that domain was to say so, in a clause.
    pub unproven: Option<Box<str>>,
    /// When the issuer said so.
    pub issued_at: Timestamp,
    /// The row that says that this sign-in has come back: each signs in once.
    pub sent: ReceivedId,
}

/// What somebody has shown of their own, beside what their provider says.
#[derive(Clone, Copy, Debug)]
pub enum OwnProof {
    /// A session in the same browser.
    Session(SessionDigest),
    /// The token of a sign-in that led to single sign-on alone.
    SignIn(Digest),
}

/// What a sign-in by a provider has come to.
#[derive(Clone, Debug)]
pub enum SsoStep {
    /// There is a session.
    Started(Started),
    /// What the provider said it said before it had them signed out: it is to say so anew.
    SignedOut,
    /// The account exists already: it is linked once its holder has shown a proof of its own.
    Unlinked,
    /// The domain of the address does not say whose it is: nobody is signed in, and the provider's integration says why.
    Unproven,
}

/// Begins a session that is good in the provider's workspace alone.
///
/// # Errors
/// `unauthenticated`, in one text, where the provider is not the workspace's any more, where it vouches for nobody who is a member,
/// where the address is none that links, or where this sign-in has led to a session before. Where the shell has found its domain unproven
/// that is an answer: it is noted.
pub fn sign_in_by_sso(scope: &mut Scope<'_>, asked: &SignInBySso) -> Result<SsoStep, Halt> {
    let vouched = &asked.vouched;
    let used = in_force(scope, vouched)?;
    if scope.get::<Received>(vouched.sent)?.is_some() {
        return Err(wrong());
    }
    let linked = linked(scope, vouched.workspace, vouched.subject)?;
    let is_linked = linked.is_some();
    let (principal, member) = match linked {
        Some(found) => found,
        None if note_unproven(scope, vouched, &used)? => return Ok(SsoStep::Unproven),
        None => by_address(scope, vouched)?,
    };
    // What was said before they were signed out everywhere brings nobody back in.
    if member.was_signed_out_after(vouched.issued_at) {
        return Ok(SsoStep::SignedOut);
    }
    let account = scope.get::<Account>(member.account)?.ok_or_else(Refusal::internal)?;
    if account.principal_in(vouched.workspace) != Some(principal.id) {
        return Err(wrong());
    }
    if !is_linked {
        let is_new = is_new(&account);
        if !is_new && !is_proven(scope, asked.own, &account)? {
            return Ok(SsoStep::Unlinked);
        }
        link(scope, vouched, &principal, &member, if is_new { "email" } else { "own_proof" })?;
    }
    note(scope, &used, !is_linked);
    let until = scope.now().plus(SENT_KEPT);
    scope.put(Received { id: vouched.sent, workspace: vouched.workspace, until, answer: None });
    match begin(scope, Account::clone(&account), Proof::Sso(vouched.workspace), asked.cookie)? {
        Begun::Started(started) => Ok(SsoStep::Started(started)),
        // A session of the provider is good in its workspace, of which the account is a member.
        Begun::SsoAlone => Err(Refusal::internal().into()),
    }
}

fn wrong() -> Halt {
    Refusal::wrong_sign_in().into()
}

/// A workspace's identity provider.
#[derive(Clone, Debug)]
pub struct Provider {
    /// What names it.
    pub integration: Arc<Integration>,
    /// Its issuer.
    pub issuer: Box<str>,
    /// What the issuer calls this server.
    pub client_id: Box<str>,
}

/// The provider of a workspace, where there is one that is used and configured.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn provider(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<Option<Provider>, Halt> {
    let slot = IntegrationSlot { workspace, kind: IntegrationKind::Oidc };
    let Some(integration) = scope.get::<Integration>(slot)?.filter(|it| it.enabled) else { return Ok(None) };
    let IntegrationConfig::Oidc(OidcConfig { issuer: Some(issuer), client_id: Some(client_id) }) = &integration.config
    else {
        return Ok(None);
    };
    let (issuer, client_id) = (issuer.clone(), client_id.clone());
    Ok(Some(Provider { integration, issuer, client_id }))
}

/// The integration, where it is the one that named the provider, and names it still.
fn in_force(scope: &mut Scope<'_>, vouched: &Vouched) -> Result<Arc<Integration>, Halt> {
    let slot = IntegrationSlot { workspace: vouched.workspace, kind: IntegrationKind::Oidc };
    scope.want(&[Workspace::key(vouched.workspace), Integration::key(slot), SsoLink::key(vouched.subject)])?;
    let found = provider(scope, vouched.workspace)?.ok_or_else(wrong)?;
    let is_named = found.issuer == vouched.issuer && found.client_id == vouched.client_id;
    if is_named && found.integration.id == vouched.integration { Ok(found.integration) } else { Err(wrong()) }
}

/// Whom a provider's name of a person is linked to: a member who names that link.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn linked(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    subject: SsoLinkId,
) -> Result<Option<(Arc<Principal>, Member)>, Halt> {
    let link = scope.get::<SsoLink>(subject)?.filter(|it| it.workspace == workspace);
    let Some(link) = link else { return Ok(None) };
    let account = scope.get::<Account>(link.account)?;
    let Some(id) = account.and_then(|it| it.principal_in(workspace)) else { return Ok(None) };
    let principal = scope.get::<Principal>(id)?.ok_or_else(Refusal::internal)?;
    let member = principal.membership().filter(|it| it.account == link.account && it.sso == Some(link.id)).cloned();
    Ok(member.map(|member| (principal, member)))
}

/// The member with the address that the provider has verified, where its domain is the workspace's.
fn by_address(scope: &mut Scope<'_>, vouched: &Vouched) -> Result<(Arc<Principal>, Member), Halt> {
    let email = vouched.email.as_ref().ok_or_else(wrong)?;
    let domain = admitted(scope, vouched.workspace, email)?.filter(|it| vouched.domain.as_ref() == Some(it));
    domain.ok_or_else(wrong)?;
    let id = principal_with(scope, vouched.workspace, email)?.ok_or_else(wrong)?;
    let principal = scope.get::<Principal>(id)?.ok_or_else(Refusal::internal)?;
    let member = principal.membership().cloned().ok_or_else(wrong)?;
    Ok((principal, member))
}

/// The domain of an address, where the workspace's settings name it: no other host of it, and none below.
fn admitted(scope: &mut Scope<'_>, workspace: WorkspaceId, email: &Email) -> Result<Option<Domain>, Halt> {
    let domain = email.folded().rsplit_once('@').and_then(|(_, host)| Domain::parse(host).ok());
    let row = scope.get::<Workspace>(workspace)?.ok_or_else(wrong)?;
    Ok(domain.filter(|it| row.settings.sign_in.sso_domains.contains(it)))
}

/// The domain that is to be looked at before a sign-in: none where the person is linked already, or where their address is of no
/// domain that the workspace names.
///
/// # Errors
/// [`Halt::Load`], or `unauthenticated` where there is no such workspace.
pub fn domain_to_prove(scope: &mut Scope<'_>, vouched: &Vouched) -> Result<Option<Domain>, Halt> {
    if linked(scope, vouched.workspace, vouched.subject)?.is_some() {
        return Ok(None);
    }
    match &vouched.email {
        Some(email) => admitted(scope, vouched.workspace, email),
        None => Ok(None),
    }
}

/// Whether nobody has used an account yet, so that it is the inviting workspace's to give.
fn is_new(account: &Account) -> bool {
    let is_bare = account.password.is_none() && account.second_factor.is_none() && account.signed_in_at.is_none();
    is_bare && account.memberships.len() == 1
}

/// Whether the account's own proof was shown. A session of any workspace's provider is none: it is not the account's.
fn is_proven(scope: &mut Scope<'_>, own: Option<OwnProof>, account: &Account) -> Result<bool, Halt> {
    match own {
        None => Ok(false),
        Some(OwnProof::Session(id)) => {
            let session = unless_refused(own_session(scope, id))?;
            let is_own = |it: &SignedIn| it.owns_account().is_ok() && !it.must_enroll();
            Ok(session.is_some_and(|it| it.account.id == account.id && is_own(&it)))
        }
        Some(OwnProof::SignIn(token)) => {
            let Some((row, _)) = unless_refused(proven(scope, &token))? else { return Ok(false) };
            if row.account == account.id {
                scope.delete::<PendingSignIn>(row.id);
            }
            Ok(row.account == account.id)
        }
    }
}

/// That whoever is signed in may change how the account signs in: by their session, or, where a provider vouches for that, by the
/// account's own proof beside it, of which it gives the row. Where only single sign-on gives a session there is no other way, and the
/// provider's word alone is none.
///
/// # Errors
/// `forbidden` where neither is so.
pub fn shown_beside(
    scope: &mut Scope<'_>,
    own: &SignedIn,
    token: Option<&Digest>,
) -> Result<Option<PendingSignInId>, Halt> {
    let Err(refusal) = own.owns_account() else { return Ok(None) };
    let shown = match token {
        Some(token) => unless_refused(proven(scope, token))?,
        None => None,
    };
    let row = shown.map(|(row, _)| row).filter(|it| it.account == own.account.id);
    row.map(|it| Some(it.id)).ok_or_else(|| refusal.into())
}

fn unless_refused<T>(found: Result<T, Halt>) -> Result<Option<T>, Halt> {
    match found {
        Ok(it) => Ok(Some(it)),
        Err(Halt::Refuse(_)) => Ok(None),
        Err(Halt::Load) => Err(Halt::Load),
    }
}

/// Links a member in the place of whom the provider vouched for before.
fn link(
    scope: &mut Scope<'_>,
    vouched: &Vouched,
    principal: &Principal,
    member: &Member,
    by: &'static str,
) -> Result<(), Halt> {
    if let Some(before) = member.sso.filter(|it| *it != vouched.subject)
        && scope.get::<SsoLink>(before)?.is_some_and(|it| it.account == member.account)
    {
        scope.delete::<SsoLink>(before);
    }
    let (workspace, account) = (vouched.workspace, member.account);
    scope.put(SsoLink { id: vouched.subject, workspace, account, created_at: scope.now() });
    let member = Member { sso: Some(vouched.subject), ..member.clone() };
    scope.put(Principal { member: Some(member), ..principal.clone() });
    let id = principal.id;
    let data = Object::new().text("by", by).text("integrationId", &vouched.integration.to_string());
    let data = data.text("principalId", &id.to_string()).finish();
    scope.append(
        workspace,
        Fact { kind: "member.linked", actor: Actor::Person(id), subject: Subject::Principal(id), data },
    );
    Ok(())
}

/// Notes that the provider has signed somebody in, unless that was noted of late; where their domain was shown, nothing is wrong any more.
fn note(scope: &mut Scope<'_>, used: &Integration, proven: bool) {
    let now = scope.now();
    let last_error = used.last_error.clone().filter(|_| !proven);
    if last_error != used.last_error || used.last_event_at.is_none_or(|at| now.since(at) >= NOTED_SLACK) {
        scope.put(Integration { last_event_at: Some(now), last_error, ..used.clone() });
    }
}

/// Notes on the integration what is wrong with a domain, where something is: its people read that they are nobody here, and whoever runs
/// the workspace would hear of nothing. Whether there was anything to note.
fn note_unproven(scope: &mut Scope<'_>, vouched: &Vouched, used: &Integration) -> Result<bool, Halt> {
    let (Some(why), Some(email)) = (&vouched.unproven, &vouched.email) else { return Ok(false) };
    let Some(domain) = admitted(scope, vouched.workspace, email)? else { return Ok(false) };
    let error = format!("`{domain}` does not say that it is this workspace's: {why}").into_boxed_str();
    if used.last_error.as_ref() != Some(&error) {
        scope.put(Integration { last_error: Some(error), ..used.clone() });
    }
    Ok(true)
}
