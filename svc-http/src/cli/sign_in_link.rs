//! `svc sign-in-link`: a one-time link for somebody who cannot sign in otherwise.

use std::process::ExitCode;

use serde_json::json;
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::people::accounts::find_account;
use svc_core::rules::people::by::{By, workspaces_of};
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::second_factor::DropSecondFactor;
use svc_core::rules::people::settings::{ChangeSettings, SettingsChange};
use svc_core::state::people::{LINK_LIFE, Role};
use svc_core::value::text::Email;
use svc_http::config::Config;
use svc_http::secrets::{LINK_PREFIX, draw, sign_in_link};
use svc_store::Gate;

use super::output::{Problem, note, print, print_json, visible};
use super::reached;
use super::store::{Missing, Use, open};

/// What else stands in somebody's way, and is taken out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Also {
    /// That workspaces which they own take single sign-on alone.
    pub(crate) lift_sso: bool,
    /// Their second factor.
    pub(crate) drop_second_factor: bool,
}

/// Makes the link and prints it.
///
/// # Errors
/// [`Problem`] where nobody signs in with that address.
pub(crate) fn run(config: &Config, email: &Email, json: bool, also: Also) -> Result<ExitCode, Problem> {
    visible()?;
    let base_url = reached::base_url(config);
    let gate = open(config, &base_url, Missing::Refuse, Use::Command)?;
    let token = draw(LINK_PREFIX)?;
    let made = gate.execute(MakeLink { email: email.clone(), token: token.digest, life: Some(LINK_LIFE) });
    made.map_err(|failure| match &failure {
        Failure::Refused(refusal) if refusal.kind() == Kind::NotFound => Problem::new(
            format!("nobody signs in with `{email}`"),
            "Check the address, or have an owner invite that person.",
        ),
        _ => failure.into(),
    })?;
    if also.lift_sso {
        lift(&gate, email)?;
    }
    if also.drop_second_factor {
        drop_factor(&gate, email)?;
    }
    let link = sign_in_link(base_url.as_str(), token.text.expose());
    if json {
        print_json(&json!({ "signInLink": link }))?;
    } else {
        print(&format!("{link}\n"))?;
        note("It signs in once, within the hour; links that were made before are void.\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes back that workspaces which somebody owns take single sign-on alone: their provider may be lost, and with it every way in.
fn lift(gate: &Gate, email: &Email) -> Result<(), Problem> {
    let places = gate.read(|scope| match find_account(scope, email)? {
        Some(account) => workspaces_of(scope, &account),
        None => Ok(Vec::new()),
    })?;
    let locked = places.iter().filter(|it| it.role == Role::Owner && it.workspace.settings.sign_in.require_sso);
    for place in locked {
        let change = SettingsChange { require_sso: Some(false), ..SettingsChange::default() };
        let workspace = place.workspace.id;
        gate.execute(ChangeSettings { workspace, by: By::Program, change })?;
        note(&format!("{workspace} takes passwords and links again.\n"));
    }
    Ok(())
}

/// Takes a second factor away whose device and recovery codes are lost.
fn drop_factor(gate: &Gate, email: &Email) -> Result<(), Problem> {
    let account = gate.read(|scope| find_account(scope, email))?;
    let had_one = account.is_some_and(|it| it.second_factor.is_some());
    gate.execute(DropSecondFactor { email: email.clone() })?;
    note(if had_one {
        "The second factor and its recovery codes are void, and every session of before has ended.\n"
    } else {
        "There was no second factor.\n"
    });
    Ok(())
}
