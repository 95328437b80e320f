//! `svc key list`: which keys there are, a page of rows at a time; `svc key revoke`: ends one of them.
//!
//! **Invariant:** no text of a key is shown: there is none to be had.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::RevokeKey;
use svc_core::rules::people::show::{self, KeyView};
use svc_core::state::people::{KeyScope, Workspace};
use svc_core::store::{Found, Key, Range};
use svc_core::value::Id as _;
use svc_core::value::digest::CredentialId;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_http::config::Config;
use svc_http::wire::key;
use svc_store::Gate;

use super::key::{Listing, Revoking};
use super::output::{Problem, named_data, note, print, print_json, writable};
use super::setup;
use super::store::{Missing, Use, open};

/// Keys that are read and printed together: however many there are, no more are held.
const PAGE: usize = 500;

/// Prints every key of the workspace, the newest first.
///
/// # Errors
/// [`Problem`] where there is no such workspace, rows cannot be read or nothing can be written.
pub(crate) fn list(config: &Config, wish: &Listing) -> Result<ExitCode, Problem> {
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let workspace = meant(config, &gate, wish.workspace)?.id;
    if !wish.json {
        print(&line(["ID", "PREFIX", "SCOPE", "STATE", "CREATED", "EXPIRES", "AGENT", "LABEL"]))?;
    }
    let mut range = Range { newest_first: true, ..Range::all(Index::KeysOf, workspace.bits(), PAGE) };
    loop {
        let found = gate.scan(&range)?;
        let ids: Vec<CredentialId> = found.iter().filter_map(row_of).collect();
        let views = gate.read(|scope| show::keys(scope, &By::Program, workspace, &ids, None))?;
        let shown = views.iter().flatten().map(|it| if wish.json { format!("{}\n", as_json(it)) } else { as_text(it) });
        print(&shown.collect::<String>())?;
        if !range.turn_page(&found) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Ends a key for good; one that has ended stays as it is.
///
/// # Errors
/// [`Problem`] where the workspace has no such key, or the store takes no change.
pub(crate) fn revoke(config: &Config, wish: &Revoking) -> Result<ExitCode, Problem> {
    writable()?;
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let workspace = meant(config, &gate, wish.workspace)?.id;
    let order = wish.key.bits();
    let one = Range { from: order, until: order.saturating_add(1), ..Range::all(Index::KeysOf, workspace.bits(), 1) };
    let Some(credential) = gate.scan(&one)?.first().and_then(row_of) else {
        let advice = format!("Look for it with `svc key list{}`; `--workspace` names another one.", named_data(config));
        return Err(Problem::new(format!("workspace {workspace} has no key {}", wish.key), advice));
    };
    let view = || -> Result<KeyView, Problem> {
        let views = gate.read(|scope| show::keys(scope, &By::Program, workspace, &[credential], None))?;
        views.into_iter().flatten().next().ok_or_else(|| Refusal::not_found().into())
    };
    let was_revoked = view()?.row.revoked_at.is_some();
    gate.execute(RevokeKey { workspace, by: By::Program, credential })?;
    if wish.json {
        print_json(&as_json(&view()?))?;
    } else if was_revoked {
        note(&format!("{} was revoked before.\n", wish.key));
    } else {
        note(&format!("{} is revoked: a running server takes it no more.\n", wish.key));
    }
    Ok(ExitCode::SUCCESS)
}

/// The workspace that was named, else the one that was made first.
fn meant(config: &Config, gate: &Gate, named: Option<WorkspaceId>) -> Result<Arc<Workspace>, Problem> {
    let Some(id) = named else { return setup::made(config, gate) };
    let found = gate.read(|scope| scope.get::<Workspace>(id))?;
    found.ok_or_else(|| Problem::new(format!("there is no workspace {id}"), "Check the id, or leave it out."))
}

fn row_of(found: &Found) -> Option<CredentialId> {
    if let Key::Credential(id) = found.row.key { Some(id) } else { None }
}

/// As the interface lists it, but for when a server has seen it last: that is in no database.
fn as_json(view: &KeyView) -> Value {
    let mut shown = key::write(view, None);
    if let Some(members) = shown.as_object_mut() {
        members.remove("lastUsedAt");
    }
    shown
}

fn as_text(view: &KeyView) -> String {
    let row = &view.row;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let agent = if let KeyScope::Agent(id) = row.binding.scope { Some(id.to_string()) } else { None };
    line([
        &row.binding.key.to_string(),
        &row.prefix,
        row.binding.scope.as_str(),
        view.state.as_str(),
        &row.created_at.to_string(),
        &or_none(row.expires_at.map(|it| it.to_string())),
        &or_none(agent),
        &or_none(row.label.as_ref().map(|it| it.as_str().to_owned())),
    ])
}

/// One line of the list: what has a length of its own stands below what it is, and the label is last.
fn line([id, prefix, scope, state, created, expires, agent, label]: [&str; 8]) -> String {
    format!("{id:<30}  {prefix:<12}  {scope:<9}  {state:<7}  {created:<24}  {expires:<24}  {agent:<30}  {label}\n")
}
