//! Service tokens: made by an owner, shown once, in force 90 days at most and as long as who made it is an owner, revoked for good.

use std::sync::Arc;

use ipnet::IpNet;

use super::by::{By, entitled};
use super::taken;
use crate::refusal::{FieldError, Refusal};
use crate::state::evidence::{Fact, Subject};
use crate::state::people::{
    Member, Principal, Reach, Right, ServiceToken, TOKEN_DAYS_MAX, TokenName, TokenScope, TokenUse, Workspace,
};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::digest::{CredentialId, Digest};
use crate::value::id::{TokenId, WorkspaceId};
use crate::value::text::Label;
use crate::value::{Span, Timestamp};

/// How many address ranges one token may be pinned to.
const RANGES_MAX: usize = 100;

/// Makes a service token.
#[derive(Clone, Debug)]
pub struct CreateToken {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who makes it.
    pub by: By,
    /// What people call it; no other token in force has this name.
    pub name: Label,
    /// What it may do.
    pub scopes: Vec<TokenScope>,
    /// In how many days it ends: 1 to 90.
    pub days: u16,
    /// The address ranges it is pinned to; none is anywhere.
    pub ip_allow: Vec<IpNet>,
    /// SHA-256 of its whole text, which never gets here: `ims_` and 32 random bytes in base64url. The server looks for no other.
    pub digest: Digest,
}

/// Makes a service token.
///
/// # Errors
/// Those of [`entitled`], and `invalid_request` with every fault: no scope, days out of bounds, a range with host bits, a name
/// that another token in force has.
pub fn create_token(scope: &mut Scope<'_>, asked: &CreateToken) -> Result<Arc<ServiceToken>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageTokens)?;
    scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let now = scope.now();
    let mut faults = faults(asked);
    if is_taken(scope, asked.workspace, &asked.name, now)? {
        faults.push(FieldError::new("name", taken::TOKEN));
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let id = ServiceToken::id_of(&asked.digest);
    if scope.get::<ServiceToken>(id)?.is_some() {
        return Err(Refusal::internal().into());
    }
    let mut scopes = asked.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    let token = ServiceToken {
        id,
        digest: asked.digest,
        token: scope.fresh(),
        workspace: asked.workspace,
        name: asked.name.clone(),
        scopes,
        ip_allow: asked.ip_allow.clone(),
        created_by: asked.by.principal(),
        created_at: now,
        expires_at: now.plus(Span::hours(24 * i64::from(asked.days))),
        revoked_at: None,
    };
    let words: Vec<String> = token.scopes.iter().map(|it| format!("\"{}\"", it.as_str())).collect();
    let ranges: Vec<String> = token.ip_allow.iter().map(|it| format!("\"{it}\"")).collect();
    let data = Object::new()
        .text("expiresAt", &token.expires_at.to_string())
        .raw("ipAllow", &format!("[{}]", ranges.join(",")))
        .text("name", token.name.as_str())
        .raw("scopes", &format!("[{}]", words.join(",")))
        .finish();
    let fact = Fact { kind: "token.created", actor: asked.by.actor(), subject: Subject::Token(token.token), data };
    scope.append(asked.workspace, fact);
    scope.put(TokenName { id: TokenName::id_of(asked.workspace, &asked.name), token: id });
    scope.put(TokenUse::none(token.token, asked.workspace));
    scope.put(token.clone());
    Ok(Arc::new(token))
}

/// Whether a token in force has this name, or one that looks like it.
pub(super) fn is_taken(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    name: &Label,
    now: Timestamp,
) -> Result<bool, Halt> {
    let mut is_taken = false;
    // Each is looked at, as the row of the new token's name must have been.
    for id in TokenName::ids_of(workspace, name) {
        let Some(named) = scope.get::<TokenName>(id)? else { continue };
        let live = scope.get::<ServiceToken>(named.token)?.filter(|it| it.is_live(now));
        if let Some(token) = live {
            is_taken |= !is_void(scope, &token)?;
        }
    }
    Ok(is_taken)
}

/// Whether the owner who made a token is one no more, or was none at some time since: they know its text. One that the operator made
/// is nobody's, and stays.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn is_void(scope: &mut Scope<'_>, token: &ServiceToken) -> Result<bool, Halt> {
    let Some(maker) = token.created_by else { return Ok(false) };
    let made = token.created_at;
    let gives = |it: &Member| {
        it.role.reach(Right::ManageTokens) == Reach::All && it.owner_at.is_none_or(|became| became <= made)
    };
    let maker = scope.get::<Principal>(maker)?;
    Ok(!maker.is_some_and(|it| !it.has_ended_since(made) && it.membership().is_some_and(gives)))
}

fn faults(asked: &CreateToken) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if asked.scopes.is_empty() {
        faults.push(FieldError::new("scopes", "must name at least one scope"));
    }
    if !(1..=TOKEN_DAYS_MAX).contains(&asked.days) {
        faults.push(FieldError::new("expiresInDays", format!("must be between 1 and {TOKEN_DAYS_MAX}")));
    }
    if asked.ip_allow.len() > RANGES_MAX {
        faults.push(FieldError::new("ipAllow", format!("must hold at most {RANGES_MAX} ranges")));
    }
    for (place, range) in asked.ip_allow.iter().enumerate() {
        if range.trunc() != *range {
            faults.push(FieldError::new(
                format!("ipAllow.{place}"),
                format!("has host bits set: `{}` has none", range.trunc()),
            ));
        }
    }
    faults
}

/// Ends a service token for good.
#[derive(Clone, Debug)]
pub struct RevokeToken {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who ends it.
    pub by: By,
    /// Its row.
    pub token: CredentialId,
}

/// Ends a service token; ending an ended one changes nothing.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where the workspace has no such token.
pub fn revoke_token(scope: &mut Scope<'_>, asked: &RevokeToken) -> Result<TokenId, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageTokens)?;
    let found = scope.get::<ServiceToken>(asked.token)?.filter(|it| it.workspace == asked.workspace);
    let token = found.ok_or_else(Refusal::not_found)?;
    if token.revoked_at.is_none() {
        let data = Object::new().text("name", token.name.as_str()).finish();
        let fact = Fact { kind: "token.revoked", actor: asked.by.actor(), subject: Subject::Token(token.token), data };
        scope.append(asked.workspace, fact);
        scope.put(ServiceToken { revoked_at: Some(scope.now()), ..ServiceToken::clone(&token) });
    }
    Ok(token.token)
}
