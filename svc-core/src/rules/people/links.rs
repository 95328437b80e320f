//! One-time links: made for an account, used up by the sign-in that they prove, void once a newer one is made.

use super::accounts::find_account;
use super::by::By;
use crate::refusal::Refusal;
use crate::state::evidence::{Fact, Subject};
use crate::state::people::{Account, SignInLink};
use crate::turn::{Halt, Scope};
use crate::value::Span;
use crate::value::canonical::Object;
use crate::value::digest::{Digest, SignInLinkId};
use crate::value::id::AccountId;
use crate::value::text::Email;

/// Makes a one-time link for the account with an e-mail address. Only the operator may: a link signs in to every workspace
/// of the account.
#[derive(Clone, Debug)]
pub struct MakeLink {
    /// Whose.
    pub email: Email,
    /// The digest of its token.
    pub token: Digest,
    /// How long it lives; absent where it lives until it is used.
    pub life: Option<Span>,
}

/// Makes a one-time link.
///
/// # Errors
/// `not_found` where nobody signs in with that address, or nobody does any longer: they are a member of no workspace.
pub fn make_link(scope: &mut Scope<'_>, asked: &MakeLink) -> Result<AccountId, Halt> {
    let account = find_account(scope, &asked.email)?.filter(|it| !it.memberships.is_empty());
    let account = account.ok_or_else(Refusal::not_found)?;
    let mut account = Account::clone(&account);
    give_link(scope, &mut account, asked.token, asked.life)?;
    let actor = By::Program.actor();
    for at in &account.memberships {
        let data = Object::new().text("principalId", &at.principal.to_string()).finish();
        let subject = Subject::Principal(at.principal);
        scope.append(at.workspace, Fact { kind: "member.link_made", actor: actor.clone(), subject, data });
    }
    let id = account.id;
    scope.put(account);
    Ok(id)
}

/// Puts a link in force in place of the one before. The account is the caller's to put.
pub(super) fn give_link(
    scope: &mut Scope<'_>,
    account: &mut Account,
    token: Digest,
    life: Option<Span>,
) -> Result<(), Halt> {
    let id = SignInLink::id_of(&token);
    if scope.get::<SignInLink>(id)?.is_some() {
        return Err(Refusal::internal().into());
    }
    void_link(scope, account)?;
    let now = scope.now();
    let expires_at = life.map(|it| now.plus(it));
    scope.put(SignInLink { id, digest: token, account: account.id, created_at: now, expires_at });
    account.link = Some(id);
    Ok(())
}

/// Takes the link in force away. The account is the caller's to put.
pub(super) fn void_link(scope: &mut Scope<'_>, account: &mut Account) -> Result<(), Halt> {
    if let Some(before) = account.link.take() {
        scope.get::<SignInLink>(before)?;
        scope.delete::<SignInLink>(before);
    }
    Ok(())
}

/// Lets go of a link whose time is up.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn expire_link(scope: &mut Scope<'_>, id: SignInLinkId) -> Result<(), Halt> {
    let now = scope.now();
    let is_due = |it: &std::sync::Arc<SignInLink>| it.expires_at.is_some_and(|end| now >= end);
    let Some(link) = scope.get::<SignInLink>(id)?.filter(is_due) else { return Ok(()) };
    if let Some(account) = scope.get::<Account>(link.account)?.filter(|it| it.link == Some(id)) {
        scope.put(Account { link: None, ..Account::clone(&account) });
    }
    scope.delete::<SignInLink>(id);
    Ok(())
}
