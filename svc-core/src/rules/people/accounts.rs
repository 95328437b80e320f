//! Accounts and the principals they are: one account for an address, one principal for an address in each workspace.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::people::{Account, EmailUse, Member, Membership, Principal};
use crate::turn::{Halt, Scope};
use crate::value::id::WorkspaceId;
use crate::value::text::{Email, Label};

/// The account that signs in with `email`, made if there is none. It is staged, not yet linked to any principal.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn account_for(scope: &mut Scope<'_>, email: &Email) -> Result<Arc<Account>, Halt> {
    let use_id = EmailUse::of_account(email);
    if let Some(id) = scope.get::<EmailUse>(use_id)?.and_then(|it| it.account) {
        return scope.get::<Account>(id)?.ok_or_else(|| Refusal::internal().into());
    }
    let account = Account {
        id: scope.fresh(),
        email: email.clone(),
        name: None,
        password: None,
        second_factor: None,
        memberships: Vec::new(),
        epoch: 0,
        created_at: scope.now(),
        signed_in_at: None,
    };
    scope.put(EmailUse { id: use_id, account: Some(account.id), principal: None });
    scope.put(account.clone());
    Ok(Arc::new(account))
}

/// The principal of `workspace` with `email`, made without a sign-in if there is none.
///
/// # Errors
/// As [`account_for`].
pub fn principal_for(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    email: &Email,
    name: Option<&Label>,
) -> Result<Arc<Principal>, Halt> {
    let use_id = EmailUse::of_principal(workspace, email);
    if let Some(id) = scope.get::<EmailUse>(use_id)?.and_then(|it| it.principal) {
        return scope.get::<Principal>(id)?.ok_or_else(|| Refusal::internal().into());
    }
    let principal = Principal {
        id: scope.fresh(),
        workspace,
        email: email.clone(),
        name: name.cloned(),
        member: None,
        created_at: scope.now(),
    };
    scope.put(EmailUse { id: use_id, account: None, principal: Some(principal.id) });
    scope.put(principal.clone());
    Ok(Arc::new(principal))
}

/// Gives a principal its sign-in by `account`.
pub fn join(scope: &mut Scope<'_>, account: &Account, principal: &Principal, member: Member) -> Arc<Principal> {
    let joined = Principal { member: Some(member), ..principal.clone() };
    let mut account = account.clone();
    account.memberships.retain(|it| it.workspace != principal.workspace);
    account.memberships.push(Membership { workspace: principal.workspace, principal: principal.id });
    scope.put(account);
    scope.put(joined.clone());
    Arc::new(joined)
}
