//! `svc key`: what it understands, and of that `create`, one more key, shown once, and `rotate`, another signing key, never shown.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{self, CreateKey};
use svc_core::rules::people::signing_key::Leaked;
use svc_core::state::gate::receipt::PublicKey;
use svc_core::state::people::{Binding, KeyScope, Purpose};
use svc_core::value::id::{AgentId, KeyId, PrincipalId, WorkspaceId};
use svc_core::value::text::Label;
use svc_http::config::Config;
use svc_http::secrets::{KEY_PREFIX, NewSecret, draw};
use svc_store::{Gate, StoreError};

use super::output::{Problem, named_data, note, print_made, visible};
use super::store::{Missing, Use, open};
use super::{key_list, reseal, setup};

/// What is done about keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key and print it, this once
    Create(NewKey),
    /// List the keys of agents, models and administrators, the newest first, ended ones too; no key's text is shown
    List(Listing),
    /// Revoke a key for good: nothing is asked or called with it any more, also at a running server
    Revoke(Revoking),
    /// Have the next signing key follow the one in force, 24 hours after it is published
    Rotate(Rotation),
    /// Put another master key in the place of the one in force, and seal every secret anew under it; needs the server stopped, and
    /// every program that has the gate open
    ///
    /// Everything that the database has sealed is sealed under the new key, in one commit. Keys of agents, receipts and
    /// people's passwords are not sealed, and stay as they are. Whatever breaks it off, the same command ends it.
    Reseal(Resealing),
}

/// How all that is sealed is to be sealed anew.
#[derive(Args, Debug)]
pub(crate) struct Resealing {
    /// File with the next key, where the settings give the one in force (`masterKey`, `SVC_MASTER_KEY`): 32 bytes in base64url or
    /// hexadecimal. Else it is made in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) next: Option<PathBuf>,
    /// Every server on the database in PostgreSQL is stopped
    #[arg(long)]
    pub(crate) servers_stopped: bool,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(crate) json: bool,
}

/// A signing key that is to be followed by another.
#[derive(Args, Debug)]
pub(crate) struct Rotation {
    /// What the key signs
    #[arg(long = "use", value_enum, value_name = "USE")]
    pub(crate) purpose: Signs,
    /// The key in force is in other hands: it is replaced at once, and all that it signed is refused
    ///
    /// What lies where it lay goes with it: a key that waits for its turn, and one of receipts that may still be good.
    #[arg(long)]
    pub(crate) compromised: bool,
    /// With `--compromised`: so are all before it, whose turn is long over, as where the master key got out
    #[arg(long, requires = "compromised")]
    pub(crate) all: bool,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a signing key signs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Signs {
    /// Receipts
    Receipt,
    /// Checkpoints of ledgers
    Checkpoint,
    /// Scorecards
    Scorecard,
}

/// A key to be made.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true))]
pub(crate) struct NewKey {
    /// The agent whose own key it is
    #[arg(long, value_name = "AGT", group = "what", value_parser = AgentId::parse)]
    pub(crate) agent: Option<AgentId>,
    /// What a key that is no agent's may do
    #[arg(long, value_enum, group = "what")]
    pub(crate) scope: Option<Scope>,
    /// Who its traffic counts for [default: the agent's principal, else the workspace's owner]
    #[arg(long, value_name = "PRP", value_parser = PrincipalId::parse, conflicts_with = "agent")]
    pub(crate) principal: Option<PrincipalId>,
    /// What people call it
    #[arg(long, value_name = "L", value_parser = Label::parse)]
    pub(crate) label: Option<Label>,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a key that is no agent's may do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Scope {
    /// Model traffic and outcomes
    Inference,
    /// The same, and administration of keys and budgets
    Admin,
}

/// Whose keys are listed.
#[derive(Args, Debug)]
pub(crate) struct Listing {
    /// The workspace whose keys they are [default: the one that was made first]
    #[arg(long, value_name = "WSP", value_parser = WorkspaceId::parse)]
    pub(crate) workspace: Option<WorkspaceId>,
    /// Print one JSON object a line, for each key
    #[arg(long)]
    pub(crate) json: bool,
}

/// A key that is to be revoked.
#[derive(Args, Debug)]
pub(crate) struct Revoking {
    /// The key, by the id that `svc key list` shows
    #[arg(value_name = "KEY", value_parser = KeyId::parse)]
    pub(crate) key: KeyId,
    /// The workspace whose key it is [default: the one that was made first]
    #[arg(long, value_name = "WSP", value_parser = WorkspaceId::parse)]
    pub(crate) workspace: Option<WorkspaceId>,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do where a rotation could not be told.
const ROTATED: &str = "The next key is in place all the same: the key set at `/.well-known/jwks.json` has it.";

/// Does what was asked of keys.
///
/// # Errors
/// [`Problem`] as the command that was named.
pub(crate) fn run(config: &Config, wish: &KeyCommand) -> Result<ExitCode, Problem> {
    match wish {
        KeyCommand::Create(wish) => create(config, wish),
        KeyCommand::List(wish) => key_list::list(config, wish),
        KeyCommand::Revoke(wish) => key_list::revoke(config, wish),
        KeyCommand::Rotate(wish) => rotate(config, wish),
        KeyCommand::Reseal(wish) => reseal::run(config, wish),
    }
}

/// Makes the key that was asked for and prints it.
///
/// # Errors
/// [`Problem`] where there is no workspace, or it has no such agent or principal.
fn create(config: &Config, wish: &NewKey) -> Result<ExitCode, Problem> {
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
    let id = made.binding.key;
    let lost = format!("Nobody saw {id}: revoke it (`svc key revoke {id}{}`), and make another.", named_data(config));
    if wish.json {
        print_made(&format!("{}\n", as_json(&key, &made.binding, wish)), &lost)?;
    } else {
        print_made(&format!("{}\n", key.text.expose()), &lost)?;
        note(&format!("{id} is shown this once: keep it now. Only its digest is stored.\n"));
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
fn rotate(config: &Config, wish: &Rotation) -> Result<ExitCode, Problem> {
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
    let agent = if let KeyScope::Agent(agent) = binding.scope { Some(agent) } else { None };
    let mut shown = json!({
        "id": binding.key,
        "prefix": keys::NewKey::of(key.text.expose()).prefix,
        "scope": binding.scope.as_str(),
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
