//! The signed-in person (CONTRACT part 2, "People, keys, tokens").

use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::rules::people::by::{InWorkspace, SignedIn};
use svc_core::state::people::Proof;

/// The person's data.
///
/// # Errors
/// None that a test does not rule out.
pub fn write(signed_in: &SignedIn, workspaces: &[InWorkspace]) -> Result<Vec<u8>, Refusal> {
    let account = &signed_in.account;
    let proof = match signed_in.row.proof {
        Proof::Password => "password".to_owned(),
        Proof::Link => "link".to_owned(),
        Proof::Sso(workspace) => format!("sso:{workspace}"),
    };
    let list: Vec<_> = workspaces
        .iter()
        .map(|it| {
            json!({
                "id": it.workspace.id,
                "name": it.workspace.name,
                "role": it.role.as_str(),
                "principalId": it.principal.id,
                "plan": "self-hosted",
            })
        })
        .collect();
    let me = json!({
        "id": account.id,
        "principalId": workspaces.first().map(|it| it.principal.id),
        "name": account.name,
        "email": account.email.as_str(),
        "twoFactor": account.second_factor.is_some(),
        "session": { "id": signed_in.session(), "expiresAt": signed_in.expires_at().to_string(), "proof": proof },
        "workspaces": list,
    });
    serde_json::to_vec(&me).map_err(|_| Refusal::internal())
}
