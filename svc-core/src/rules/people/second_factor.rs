//! The second factor: a time-based one-time password (RFC 6238), and recovery codes that stand in for it once each.
//!
//! **Invariant:** a time step is accepted once. The shell computes which step a code belongs to from the sealed secret; the
//! commit sees that the secret is still the account's and the step above the last one accepted.

use super::accounts::find_account;
use super::by::{By, own_session, workspaces_of};
use super::sessions::{Ended, end_others};
use super::single_sign_on::shown_beside;
use crate::refusal::Refusal;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::{Account, PendingSignIn, SecondFactor};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::digest::{Digest, SessionDigest};
use crate::value::id::{AccountId, PrincipalId};
use crate::value::text::Email;

/// A second factor that was shown.
#[derive(Clone, Debug)]
pub enum FactorShown {
    /// A code.
    Code {
        /// The sealed secret it was compared with.
        sealed: Box<str>,
        /// The time step it belongs to; absent where it belongs to none that counts now.
        step: Option<u64>,
    },
    /// A recovery code.
    Recovery(Digest),
}

/// Takes a second factor in, and notes that it is used. Whether it was right.
#[must_use]
pub(super) fn accept(account: &mut Account, shown: &FactorShown) -> bool {
    let Some(factor) = &mut account.second_factor else { return false };
    match shown {
        FactorShown::Code { sealed, step: Some(step) } if *sealed == factor.sealed && *step > factor.last_step => {
            factor.last_step = *step;
            true
        }
        FactorShown::Code { .. } => false,
        FactorShown::Recovery(digest) => {
            let before = factor.recovery.len();
            factor.recovery.retain(|it| it != digest);
            factor.recovery.len() < before
        }
    }
}

/// Has whoever is signed in show their second factor once more, for what takes more than a session.
///
/// # Errors
/// `forbidden` naming `code` where none was shown or the account has none, `invalid_request` on `code` where it is wrong.
pub fn show_again(scope: &mut Scope<'_>, account: AccountId, shown: Option<&FactorShown>) -> Result<(), Halt> {
    let stored = scope.get::<Account>(account)?.ok_or_else(Refusal::internal)?;
    let has_factor = stored.second_factor.is_some();
    let shown = shown.filter(|_| has_factor).ok_or_else(|| Refusal::second_factor_asked(has_factor))?;
    let mut account = Account::clone(&stored);
    if !accept(&mut account, shown) {
        return Err(wrong_code().into());
    }
    scope.put(account);
    Ok(())
}

/// Changes the second factor of whoever is signed in.
#[derive(Clone, Debug)]
pub struct ChangeSecondFactor {
    /// Their session.
    pub by: SessionDigest,
    /// The digest of the token of a sign-in that was proven where only single sign-on gives a session, for whom a provider has signed in.
    pub own: Option<Digest>,
    /// How.
    pub change: FactorChange,
}

/// What becomes of a second factor.
#[derive(Clone, Debug)]
pub enum FactorChange {
    /// A new secret waits to be confirmed.
    Begin {
        /// The secret, sealed.
        sealed: Box<str>,
    },
    /// The waiting secret is confirmed by a code.
    Confirm {
        /// The sealed secret that the code was compared with.
        sealed: Box<str>,
        /// The time step that the code belongs to; absent where it belongs to none that counts now.
        step: Option<u64>,
        /// Digests of the recovery codes.
        recovery: Vec<Digest>,
    },
    /// It is taken away.
    Remove(FactorShown),
}

/// Changes the second factor. Setting one up ends every other session: what was signed in without it has shown none.
///
/// # Errors
/// `unauthenticated` where the session is not in force; `forbidden` where a provider vouches for it and the account's own proof is not
/// shown beside; `invalid_request` on `code` where that is wrong; `not_allowed` where
/// there is a factor already, or none to confirm or remove.
pub fn change_second_factor(scope: &mut Scope<'_>, asked: &ChangeSecondFactor) -> Result<(), Halt> {
    let own = own_session(scope, asked.by)?;
    let used = shown_beside(scope, &own, asked.own.as_ref())?;
    let mut account = Account::clone(&own.account);
    let kind = match &asked.change {
        FactorChange::Begin { sealed } => {
            no_factor_yet(&account)?;
            account.enrolling = Some(sealed.clone());
            scope.put(account);
            return Ok(());
        }
        FactorChange::Confirm { sealed, step, recovery } => {
            no_factor_yet(&account)?;
            let waiting =
                account.enrolling.take().ok_or_else(|| Refusal::not_allowed("nothing waits to be confirmed"))?;
            let step = step.filter(|_| waiting == *sealed).ok_or_else(wrong_code)?;
            account.second_factor = Some(SecondFactor { sealed: waiting, last_step: step, recovery: recovery.clone() });
            end_others(scope, &mut account, Some(&own.row), Ended::Changed)?;
            "member.two_factor_added"
        }
        FactorChange::Remove(shown) => {
            if account.second_factor.is_none() {
                return Err(Refusal::not_allowed("there is no second factor").into());
            }
            if !accept(&mut account, shown) {
                return Err(wrong_code().into());
            }
            account.second_factor = None;
            "member.two_factor_removed"
        }
    };
    // What begins is confirmed by the same proof, which is then used up.
    if let Some(proof) = used {
        scope.delete::<PendingSignIn>(proof);
    }
    record(scope, &account, kind)?;
    scope.put(account);
    Ok(())
}

/// Takes the second factor of an account away where its device and its recovery codes are lost. Only the operator may, as it is
/// good in every workspace of the account.
#[derive(Clone, Debug)]
pub struct DropSecondFactor {
    /// Whose.
    pub email: Email,
}

/// Takes a second factor away, with its recovery codes and one that waits to be confirmed, and ends the account's sessions.
/// An account that has none stays as it is.
///
/// # Errors
/// `not_found` where nobody signs in with that address.
pub fn drop_second_factor(scope: &mut Scope<'_>, asked: &DropSecondFactor) -> Result<(), Halt> {
    let account = find_account(scope, &asked.email)?.filter(|it| !it.memberships.is_empty());
    let account = account.ok_or_else(Refusal::not_found)?;
    if account.second_factor.is_none() && account.enrolling.is_none() {
        return Ok(());
    }
    let mut account = Account::clone(&account);
    account.enrolling = None;
    if account.second_factor.take().is_some() {
        record_by(scope, &account, "member.two_factor_removed", |_| By::Program.actor())?;
    }
    end_others(scope, &mut account, None, Ended::ChangedByOperator)?;
    scope.put(account);
    Ok(())
}

/// Records a change of how an account signs in, by its holder, in every workspace of it.
pub(super) fn record(scope: &mut Scope<'_>, account: &Account, kind: &'static str) -> Result<(), Halt> {
    record_by(scope, account, kind, Actor::Person)
}

fn record_by(
    scope: &mut Scope<'_>,
    account: &Account,
    kind: &'static str,
    actor: impl Fn(PrincipalId) -> Actor,
) -> Result<(), Halt> {
    for place in workspaces_of(scope, account)? {
        let id = place.principal.id;
        let data = Object::new().text("principalId", &id.to_string()).finish();
        let fact = Fact { kind, actor: actor(id), subject: Subject::Principal(id), data };
        scope.append(place.workspace.id, fact);
    }
    Ok(())
}

fn no_factor_yet(account: &Account) -> Result<(), Refusal> {
    match account.second_factor {
        Some(_) => Err(Refusal::not_allowed("there is a second factor already")),
        None => Ok(()),
    }
}

fn wrong_code() -> Refusal {
    Refusal::invalid_field("code", "is not the code of this moment, or was used before")
}
