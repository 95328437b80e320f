//! `svc key create`: one more key, shown once; `svc key rotate`: another signing key, never shown.

use std::process::ExitCode;

use serde_json::{Value, json};
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{self, CreateKey};
use svc_core::rules::people::signing_key::Leaked;
use svc_core::state::gate::receipt::PublicKey;
use svc_core::state::people::{Binding, KeyScope, Purpose};
use svc_http::config::Config;
use svc_http::secrets::{KEY_PREFIX, NewSecret, draw};
use svc_store::{Gate, StoreError};

use super::output::{Problem, note, print_made, visible};
use super::store::{Missing, Use, open};
use super::{NewKey, Rotation, Scope, Signs, setup};

/// What to do where a rotation could not be told.
const ROTATED: &str = "The next key is in place all the same: the key set at `/.well-known/jwks.json` has it.";

/// Makes the key that was asked for and prints it.
///
/// # Errors
/// [`Problem`] where there is no workspace, or it has no such agent or principal.
pub(crate) fn create(config: &Config, wish: &NewKey) -> Result<ExitCode, Problem> {
    visible()?;
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let workspace = setup::made(config, &gate)?;
    let key = draw(KEY_PREFIX)?;
    let scope = match (wish.agent, wish.scope) {
        (Some(agent), _) => KeyScope::Agent(agent),
        (None, Some(Scope::Admin)) => KeyScope::Admin,
        (None, Some(Scope::Inference) | None) => KeyScope::Inference,
    };
    let made = gate.execute(CreateKey {
        principal: wish.principal,
        label: wish.label.clone(),
        ..CreateKey::new(workspace.id, By::Program, scope, keys::NewKey::of(key.text.expose()))
    });
    let made = made.map_err(|failure| not_made(failure, wish))?;
    let lost =
        format!("Nobody saw {}: revoke it (`DELETE /api/w/{{wid}}/keys/{{key}}`), and make another.", made.binding.key);
    if wish.json {
        print_made(&format!("{}\n", as_json(&key, &made.binding, wish)), &lost)?;
    } else {
        print_made(&format!("{}\n", key.text.expose()), &lost)?;
        note(&format!("{} is shown this once: keep it now. Only its digest is stored.\n", made.binding.key));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a key was not made, in the words of the command line.
fn not_made(failure: Failure<StoreError>, wish: &NewKey) -> Problem {
    let Failure::Refused(refusal) = &failure else { return failure.into() };
    let is_principal = refusal.errors().iter().any(|it| it.field.as_deref() == Some("principalId"));
    match (wish.agent, wish.principal) {
        (Some(agent), _) if refusal.kind() == Kind::NotFound => Problem::new(
            format!("this workspace has no agent {agent}"),
            "Check the id: `svc init` prints the first agent's.",
        ),
        (None, Some(principal)) if is_principal => Problem::new(
            format!("`--principal {principal}` names no principal of this workspace"),
            "Check the id, or leave it out: the key then counts for the workspace's owner.",
        ),
        _ => failure.into(),
    }
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
    let leaked = match (wish.compromised, wish.all) {
        (_, true) => Leaked::All,
        (true, false) => Leaked::Current,
        (false, false) => Leaked::None,
    };
    let row = match gate.rotate_key(purpose, leaked) {
        Err(Failure::Refused(refusal)) if refusal.kind() == Kind::NotAllowed => {
            return Err(waiting(&gate, purpose)?.unwrap_or_else(|| refusal.into()));
        }
        rotated => rotated?,
    };
    let key = PublicKey::of(&row).map_err(|_| Problem::plain("the new key is not usable"))?;
    if wish.json {
        let told = json!({
            "use": purpose.as_str(),
            "kid": key.kid(),
            "generation": row.id.generation,
            "notBefore": row.not_before.to_string(),
            "compromised": leaked != Leaked::None,
        });
        print_made(&format!("{told}\n"), ROTATED)?;
    } else {
        print_made(&format!("{}\n", key.kid()), ROTATED)?;
        let before = match leaked {
            Leaked::None => "the one before it stays published",
            Leaked::Current => "the one before it is published no longer, and all that it signed is refused",
            Leaked::All => "none before it is published any longer, and all that they signed is refused",
        };
        note(&format!("It signs from {} on; {before}.\n", row.not_before));
    }
    Ok(ExitCode::SUCCESS)
}

/// That a key of this use waits for its turn already, where one does.
fn waiting(gate: &Gate, purpose: Purpose) -> Result<Option<Problem>, Problem> {
    let now = gate.now();
    let next = gate
        .signing_keys()?
        .into_iter()
        .find(|it| it.id.purpose == purpose && it.not_before > now && it.compromised_at.is_none());
    Ok(next.map(|it| {
        Problem::new(
            format!("a {} key waits for its turn already: it signs from {} on", purpose.as_str(), it.not_before),
            "Wait until then; where the key in force is in other hands, `--compromised` replaces it at once.",
        )
    }))
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
        "prefix": keys::NewKey::of(key.text.expose()).prefix,
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
