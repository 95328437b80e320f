//! `svc key create`: one more key, shown once; `svc key rotate`: another signing key, never shown.

use std::process::ExitCode;

use serde_json::{Value, json};
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::CreateKey;
use svc_core::state::gate::receipt::PublicKey;
use svc_core::state::people::{Binding, KeyScope, Purpose};
use svc_http::config::Config;

use super::output::{Problem, note, print, print_json};
use super::secret::{self, NewSecret};
use super::store::{Missing, Use, open};
use super::{NewKey, Rotation, Scope, Signs, setup};

/// Makes the key that was asked for and prints it.
///
/// # Errors
/// [`Problem`] where there is no workspace, or it has no such agent or principal.
pub(crate) fn create(config: &Config, wish: &NewKey) -> Result<ExitCode, Problem> {
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let workspace = setup::workspace(&gate)?
        .ok_or_else(|| Problem::new("there is no workspace yet", "Make one with `svc init`."))?;
    let key = secret::new_key()?;
    let scope = match (wish.agent, wish.scope) {
        (Some(agent), _) => KeyScope::Agent(agent),
        (None, Some(Scope::Admin)) => KeyScope::Admin,
        (None, Some(Scope::Inference) | None) => KeyScope::Inference,
    };
    let made = gate.execute(CreateKey {
        principal: wish.principal,
        label: wish.label.clone(),
        ..CreateKey::new(workspace.id, By::Program, scope, key.stored.clone())
    });
    let made = made.map_err(|failure| match (&failure, wish.agent) {
        (Failure::Refused(refusal), Some(agent)) if refusal.kind() == Kind::NotFound => Problem::new(
            format!("this workspace has no agent {agent}"),
            "Check the id: `svc init` prints the first agent's.",
        ),
        _ => failure.into(),
    })?;
    if wish.json {
        print_json(&as_json(&key, &made.binding, wish))?;
    } else {
        print(&format!("{}\n", key.text.expose()))?;
        note(&format!("{} is shown this once: keep it now. Only its digest is stored.\n", made.binding.key));
    }
    Ok(ExitCode::SUCCESS)
}

/// Has another signing key follow and prints when. A running server takes it in by itself.
///
/// # Errors
/// [`Problem`] where a key waits for its turn already, or there is no database.
pub(crate) fn rotate(config: &Config, wish: &Rotation) -> Result<ExitCode, Problem> {
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let purpose = match wish.purpose {
        Signs::Receipt => Purpose::Receipt,
        Signs::Checkpoint => Purpose::Checkpoint,
        Signs::Scorecard => Purpose::Scorecard,
    };
    let row = gate.rotate_key(purpose, wish.compromised)?;
    let key = PublicKey::of(&row).map_err(|_| Problem::plain("the new key is not usable"))?;
    if wish.json {
        print_json(&json!({
            "use": purpose.as_str(),
            "kid": key.kid(),
            "generation": row.id.generation,
            "notBefore": row.not_before.to_string(),
            "compromised": wish.compromised,
        }))?;
    } else {
        print(&format!("{}\n", key.kid()))?;
        note(&format!("It signs from {} on; the one before it stays published.\n", row.not_before));
    }
    Ok(ExitCode::SUCCESS)
}

/// As the interface answers where it issues a key.
fn as_json(key: &NewSecret, binding: &Binding, wish: &NewKey) -> Value {
    let (scope, agent) = match binding.scope {
        KeyScope::Agent(agent) => ("agent", Some(agent)),
        KeyScope::Admin => ("admin", None),
        KeyScope::Inference => ("inference", None),
    };
    let mut shown = json!({
        "id": binding.key,
        "prefix": key.stored.prefix,
        "scope": scope,
        "principalId": binding.principal,
        "teamId": binding.team,
        "taskClassId": null,
    });
    if let Some(members) = shown.as_object_mut() {
        members.extend(agent.map(|it| ("agentId".to_owned(), json!(it))));
        members.extend(wish.label.as_ref().map(|it| ("label".to_owned(), json!(it.as_str()))));
    }
    json!({ "key": key.text.expose(), "binding": shown })
}
