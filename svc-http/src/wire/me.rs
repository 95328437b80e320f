//! The signed-in person (CONTRACT part 2, "People, keys, tokens").

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::people::by::{InWorkspace, SignedIn};
use svc_core::state::people::{Proof, Session};
use svc_core::value::id::SessionId;

/// The person's data.
///
/// # Errors
/// None that a test does not rule out.
pub fn write(signed_in: &SignedIn, workspaces: &[InWorkspace]) -> Result<Vec<u8>, Refusal> {
    let account = &signed_in.account;
    let own = workspaces.first().map(|it| &it.principal);
    let list: Vec<_> = workspaces.iter().map(workspace).collect();
    let mut me = json!({
        "id": account.id,
        "principalId": own.map(|it| it.id),
        "name": account.name.as_ref().or_else(|| own.and_then(|it| it.name.as_ref())),
        "email": account.email.as_str(),
        "twoFactor": account.second_factor.is_some(),
        "session": { "id": signed_in.session(), "expiresAt": signed_in.expires_at().to_string(), "proof": proof(signed_in.row.proof) },
        "workspaces": list,
    });
    if let Some(factor) = &account.second_factor {
        super::put(&mut me, "recoveryCodesLeft", json!(factor.recovery.len()));
    }
    serde_json::to_vec(&me).map_err(|_| Refusal::internal())
}

/// A workspace as its member sees it.
#[must_use]
pub fn workspace(it: &InWorkspace) -> Value {
    let sign_in = &it.workspace.settings.sign_in;
    json!({
        "id": it.workspace.id,
        "name": it.workspace.name,
        "role": it.role.as_str(),
        "principalId": it.principal.id,
        "plan": it.workspace.plan.as_str(),
        "signIn": {
            "requireTwoFactor": sign_in.require_two_factor,
            "requireSso": sign_in.require_sso,
            "ssoDomains": sign_in.sso_domains.iter().map(ToString::to_string).collect::<Vec<_>>(),
        },
    })
}

/// A session of the signed-in person.
#[must_use]
pub fn session(row: &Session, own: SessionId) -> Value {
    json!({
        "id": row.session,
        "createdAt": row.created_at.to_string(),
        "createdBy": row.account,
        "lastSeenAt": row.seen_at.to_string(),
        "expiresAt": row.expires_at().to_string(),
        "proof": proof(row.proof),
        "current": row.session == own,
    })
}

fn proof(proof: Proof) -> String {
    match proof {
        Proof::Password => "password".to_owned(),
        Proof::Link => "link".to_owned(),
        Proof::Sso(workspace) => format!("sso:{workspace}"),
    }
}
