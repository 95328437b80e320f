//! Signing in: a first proof, the second factor where there is one, and a session.
//!
//! **Invariant:** no password, code or token comes in here. The shell has compared a password with the hash that it names,
//! and a code with the secret that it names; the commit sees that both are still the account's.

use std::sync::Arc;

use super::accounts::find_account;
use super::links::void_link;
use super::second_factor::{FactorShown, accept};
use super::sessions::{Begun, Started, begin};
use crate::refusal::Refusal;
use crate::state::people::{Account, PENDING_LIFE, PendingSignIn, Proof, SignInLink};
use crate::turn::{Halt, Scope};
use crate::value::digest::{Digest, PendingSignInId};
use crate::value::id::AccountId;
use crate::value::text::Email;

/// Begins a session by a first proof.
#[derive(Clone, Debug)]
pub struct StartSession {
    /// The proof.
    pub shown: Shown,
    /// The digest of the cookie that the session gets.
    pub cookie: Digest,
    /// The digest of the token that the sign-in gets where it waits for the second factor, or leads to single sign-on alone.
    pub pending: Digest,
}

/// A first proof.
#[derive(Clone, Debug)]
pub enum Shown {
    /// A password that agrees with this hash.
    Password {
        /// Whose.
        account: AccountId,
        /// The hash it was compared with, in PHC form.
        hash: Box<str>,
    },
    /// A one-time link's token.
    Link(Digest),
}

/// Where a sign-in stands.
#[derive(Clone, Debug)]
pub enum SignInStep {
    /// There is a session.
    Started(Started),
    /// The second factor is waited for.
    Totp,
    /// Only single sign-on leads anywhere.
    Sso(AccountId),
    /// What was shown is wrong.
    Wrong,
}

/// Begins a session, or a wait for the second factor.
///
/// # Errors
/// `unauthenticated` where the proof is none, or is none any more.
pub fn start_session(scope: &mut Scope<'_>, asked: &StartSession) -> Result<SignInStep, Halt> {
    let (account, proof) = match &asked.shown {
        Shown::Password { account, hash } => {
            let account = scope.get::<Account>(*account)?;
            let account = account.filter(|it| it.password.as_ref().is_some_and(|it| it.hash == *hash));
            (Account::clone(&*account.ok_or_else(Refusal::unauthenticated)?), Proof::Password)
        }
        Shown::Link(token) => (use_link(scope, token)?, Proof::Link),
    };
    if account.second_factor.is_some() {
        return wait(scope, account, proof, asked.pending);
    }
    finish(scope, account, proof, (asked.cookie, asked.pending))
}

/// Begins the session. Whatever led here is used up, even where it leads to single sign-on alone: then the token proves for a
/// while whose the account is.
fn finish(
    scope: &mut Scope<'_>,
    account: Account,
    proof: Proof,
    (cookie, token): (Digest, Digest),
) -> Result<SignInStep, Halt> {
    match begin(scope, account.clone(), proof, cookie)? {
        Begun::Started(started) => Ok(SignInStep::Started(started)),
        Begun::SsoAlone => {
            let id = account.id;
            keep(scope, account, proof, token, true)?;
            Ok(SignInStep::Sso(id))
        }
    }
}

/// The account that a link signs in, with the link used up.
fn use_link(scope: &mut Scope<'_>, token: &Digest) -> Result<Account, Halt> {
    let id = SignInLink::id_of(token);
    let now = scope.now();
    let link = scope.get::<SignInLink>(id)?.filter(|it| it.digest == *token);
    let link = link.filter(|it| it.expires_at.is_none_or(|end| now < end)).ok_or_else(Refusal::unauthenticated)?;
    let account = scope.get::<Account>(link.account)?.filter(|it| it.link == Some(id));
    let mut account = Account::clone(&*account.ok_or_else(Refusal::unauthenticated)?);
    void_link(scope, &mut account)?;
    Ok(account)
}

fn wait(scope: &mut Scope<'_>, account: Account, proof: Proof, token: Digest) -> Result<SignInStep, Halt> {
    keep(scope, account, proof, token, false)?;
    Ok(SignInStep::Totp)
}

/// Keeps a sign-in under its token.
fn keep(scope: &mut Scope<'_>, account: Account, proof: Proof, token: Digest, proven: bool) -> Result<(), Halt> {
    let id = PendingSignIn::id_of(&token);
    if scope.get::<PendingSignIn>(id)?.is_some() {
        return Err(Refusal::internal().into());
    }
    let expires_at = scope.now().plus(PENDING_LIFE);
    let (of, epoch) = (account.id, account.epoch);
    scope.put(PendingSignIn { id, digest: token, account: of, epoch, proof, tries: 0, proven, expires_at });
    // The link is used up with its row; the account no longer names it.
    scope.put(account);
    Ok(())
}

/// The sign-in that waits under a token, and its account.
///
/// # Errors
/// `unauthenticated` where none does.
pub fn pending(scope: &mut Scope<'_>, token: &Digest) -> Result<(Arc<PendingSignIn>, Arc<Account>), Halt> {
    kept(scope, token, false)
}

/// The sign-in that was proven under a token where only single sign-on gives a session, and its account.
///
/// # Errors
/// `unauthenticated` where none was.
pub(super) fn proven(scope: &mut Scope<'_>, token: &Digest) -> Result<(Arc<PendingSignIn>, Arc<Account>), Halt> {
    kept(scope, token, true)
}

fn kept(scope: &mut Scope<'_>, token: &Digest, proven: bool) -> Result<(Arc<PendingSignIn>, Arc<Account>), Halt> {
    let now = scope.now();
    let found = scope.get::<PendingSignIn>(PendingSignIn::id_of(token))?;
    let found = found.filter(|it| it.digest == *token && it.proven == proven && it.is_live(now));
    let found = found.ok_or_else(Refusal::unauthenticated)?;
    let account = scope.get::<Account>(found.account)?.filter(|it| it.epoch == found.epoch);
    Ok((found, account.ok_or_else(Refusal::unauthenticated)?))
}

/// Ends a wait for the second factor.
#[derive(Clone, Debug)]
pub struct FinishSignIn {
    /// The digest of the waiting sign-in's token.
    pub pending: Digest,
    /// The second factor.
    pub shown: FactorShown,
    /// The digest of the cookie that the session gets.
    pub cookie: Digest,
}

/// Begins a session where the second factor is right, and counts the try where it is wrong.
///
/// # Errors
/// `unauthenticated` where nothing waits under that token.
pub fn finish_sign_in(scope: &mut Scope<'_>, asked: &FinishSignIn) -> Result<SignInStep, Halt> {
    let (waiting, account) = pending(scope, &asked.pending)?;
    let mut account = Account::clone(&account);
    if !accept(&mut account, &asked.shown) {
        scope.put(PendingSignIn { tries: waiting.tries.saturating_add(1), ..PendingSignIn::clone(&waiting) });
        return Ok(SignInStep::Wrong);
    }
    scope.delete::<PendingSignIn>(waiting.id);
    finish(scope, account, waiting.proof, (asked.cookie, asked.pending))
}

/// Lets go of a sign-in that waited too long.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn expire_pending(scope: &mut Scope<'_>, id: PendingSignInId) -> Result<(), Halt> {
    let now = scope.now();
    if scope.get::<PendingSignIn>(id)?.is_some_and(|it| now >= it.expires_at) {
        scope.delete::<PendingSignIn>(id);
    }
    Ok(())
}

/// What the shell compares a password with: the account of an address and its hash, where it has one.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn password_of(scope: &mut Scope<'_>, email: &Email) -> Result<Option<(AccountId, Box<str>)>, Halt> {
    let account = find_account(scope, email)?;
    Ok(account.and_then(|it| it.password.as_ref().map(|password| (it.id, password.hash.clone()))))
}
