//! The password: set by whoever is signed in, who knows the one before.

use super::by::own_session;
use super::links::void_link;
use super::second_factor::record;
use super::sessions::{Ended, end_others};
use crate::refusal::Refusal;
use crate::state::people::{Account, Password, Proof, Session};
use crate::turn::{Halt, Scope};
use crate::value::digest::SessionDigest;

/// Sets the password of whoever is signed in, and ends their other sessions.
#[derive(Clone, Debug)]
pub struct ChangePassword {
    /// Their session.
    pub by: SessionDigest,
    /// The hash that the present password was compared with, and agreed.
    pub checked: Option<Box<str>>,
    /// The new one's hash in PHC form.
    pub hash: Box<str>,
}

/// Whether a session has to show the present password before it sets another. One that was made by a one-time link after the
/// password was set need not: that is how a forgotten one is replaced.
fn needs_current(account: &Account, session: &Session) -> bool {
    let is_recovery = |set_at| session.proof == Proof::Link && session.created_at > set_at;
    account.password.as_ref().is_some_and(|it| !is_recovery(it.set_at))
}

/// Sets a password.
///
/// # Errors
/// `unauthenticated` where the session is not in force, `invalid_request` on `current` where that is not the present password.
pub fn change_password(scope: &mut Scope<'_>, asked: &ChangePassword) -> Result<(), Halt> {
    let own = own_session(scope, asked.by)?;
    if own.must_enroll() {
        return Err(Refusal::must_enroll().into());
    }
    own.owns_account()?;
    let mut account = Account::clone(&own.account);
    let agrees = account.password.as_ref().is_some_and(|it| asked.checked.as_ref() == Some(&it.hash));
    if needs_current(&account, &own.row) && !agrees {
        return Err(wrong_password().into());
    }
    account.password = Some(Password { hash: asked.hash.clone(), set_at: scope.now() });
    void_link(scope, &mut account)?;
    end_others(scope, &mut account, Some(&own.row), Ended::Changed)?;
    record(scope, &account, "member.password_changed")?;
    scope.put(account);
    Ok(())
}

/// What is said of a present password that is wrong or missing.
#[must_use]
pub fn wrong_password() -> Refusal {
    Refusal::invalid_field("current", "is not the present password")
}
