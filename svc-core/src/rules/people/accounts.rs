//! Accounts and the principals they are: one account for an address, one principal for an address in each workspace.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::people::{Account, EmailUse, Member, Membership, Principal};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::id::{PrincipalId, WorkspaceId};
use crate::value::text::{Email, Label};

/// The account that signs in with `email`, where there is one.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn find_account(scope: &mut Scope<'_>, email: &Email) -> Result<Option<Arc<Account>>, Halt> {
    let rows = EmailUse::all_of_account(email);
    scope.want(&rows.iter().map(|it| EmailUse::key(*it)).collect::<Vec<_>>())?;
    for row in rows {
        if let Some(id) = scope.get::<EmailUse>(row)?.and_then(|it| it.account) {
            return scope.get::<Account>(id)?.map(Some).ok_or_else(|| Refusal::internal().into());
        }
    }
    Ok(None)
}

/// Which principal of `workspace` has `email`, where one does.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn principal_with(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    email: &Email,
) -> Result<Option<PrincipalId>, Halt> {
    let rows = EmailUse::all_of_principal(workspace, email);
    scope.want(&rows.iter().map(|it| EmailUse::key(*it)).collect::<Vec<_>>())?;
    for row in rows {
        if let Some(id) = scope.get::<EmailUse>(row)?.and_then(|it| it.principal) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The account that signs in with `email`, made if there is none. It is staged, not yet linked to any principal.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn account_for(scope: &mut Scope<'_>, email: &Email) -> Result<Arc<Account>, Halt> {
    if let Some(account) = find_account(scope, email)? {
        return Ok(account);
    }
    let use_id = EmailUse::of_account(email);
    let account = Account::new(scope.fresh(), email.clone(), scope.now());
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
    if let Some(id) = principal_with(scope, workspace, email)? {
        return scope.get::<Principal>(id)?.ok_or_else(|| Refusal::internal().into());
    }
    let id = scope.fresh();
    let principal = Principal { name: name.cloned(), ..Principal::new(id, workspace, email.clone(), scope.now()) };
    let use_id = EmailUse::of_principal(workspace, email);
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
