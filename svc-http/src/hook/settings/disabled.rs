//! What settings say against running any hook: the user's own, and those of the project that a client is started in.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json::{Comments, Kind, Node, parse};
use super::ours::is_hook;
use super::text_of;
use crate::hook::Refused;
use crate::hook::client::Client;

/// What Gemini CLI's settings call the hook, as `install` writes it.
pub(super) const NAME: &str = "svc";
/// Gemini CLI's sections with what is said of hooks as a whole, today's and the one of before.
const SECTIONS: [&str; 2] = ["hooksConfig", "hooks"];
/// Codex' names for its hooks as a feature, the one that counts first.
const FEATURES: [&str; 2] = ["hooks", "codex_hooks"];
/// What lies in the directory that a repository begins in.
const REPOSITORY: &str = ".git";

/// The settings by which the client, started in this directory, runs no hook, or not this one; `None` where there are none. `root`
/// are the user's own settings at `path`.
///
/// # Errors
/// [`Refused`] where settings of the user's own that lie beside them cannot be read. Of a project's that cannot be, nobody can say what
/// the client makes of them: that counts as said against the hook.
pub(super) fn disabled(client: Client, root: &Node, path: &Path, started: &Path) -> Result<Option<String>, Refused> {
    let own = match client {
        Client::Codex => path.with_file_name("config.toml"),
        Client::ClaudeCode | Client::Cursor | Client::Gemini => path.to_owned(),
    };
    let of_user = match client {
        Client::Codex => codex(&own)?,
        Client::ClaudeCode | Client::Cursor | Client::Gemini => said(client, root),
    };
    let mut all: Vec<String> = of_user.into_iter().map(|it| told(&it, &own.display().to_string())).collect();
    let is_own = |it: &Path| fs::canonicalize(it).ok() == fs::canonicalize(&own).ok();
    for file in of_project(client, started).into_iter().filter(|it| !is_own(it)) {
        let shown = format!("{}, which is the project's,", file.display());
        let looked = match client {
            Client::Codex => codex(&file),
            Client::ClaudeCode | Client::Cursor | Client::Gemini => json(&file).map(|it| said(client, &it)),
        };
        match looked {
            Ok(found) => all.extend(found.map(|it| told(&it, &shown))),
            Err(Refused(why)) => all.push(format!("{why}, and may say so")),
        }
    }
    Ok((!all.is_empty()).then(|| all.join("; ")))
}

/// What is set, and to what.
struct Said {
    name: String,
    what: &'static str,
}

fn told(Said { name, what }: &Said, place: &str) -> String {
    format!("`{name}` in {place} {what}")
}

/// The files of a project that say whether hooks are run, of one that a client is started in: those in this directory and in each above
/// it up to the repository's, as clients differ in which of them they read.
fn of_project(client: Client, started: &Path) -> Vec<PathBuf> {
    let names: &[&str] = match client {
        Client::ClaudeCode => &[".claude/settings.json", ".claude/settings.local.json"],
        Client::Codex => &[".codex/config.toml"],
        Client::Cursor => &[],
        Client::Gemini => &[".gemini/settings.json"],
    };
    let above: Vec<&Path> = started.ancestors().collect();
    let last = above.iter().position(|it| it.join(REPOSITORY).exists()).unwrap_or(0);
    above.iter().take(last + 1).flat_map(|folder| names.iter().map(|it| folder.join(it))).collect()
}

/// The settings in a project's file, an empty object where there is none. What a client may take for JSON is taken for it here.
fn json(path: &Path) -> Result<Node, Refused> {
    let text = text_of(path)?.unwrap_or_default();
    let text = if text.trim().is_empty() { "{}" } else { text.trim_start_matches('\u{feff}') };
    parse(text, Comments::Allowed).map_err(|why| Refused(format!("{} {why}", path.display())))
}

fn said(client: Client, root: &Node) -> Option<Said> {
    match client {
        Client::ClaudeCode => {
            let name = "disableAllHooks";
            is(root.member(name), true).then(|| Said { name: name.to_owned(), what: "is `true`" })
        }
        Client::Codex | Client::Cursor => None,
        Client::Gemini => SECTIONS.iter().find_map(|name| {
            let section = root.member(name)?;
            if is(section.member("enabled"), false) {
                return Some(Said { name: format!("{name}.enabled"), what: "is `false`" });
            }
            let named = section.member("disabled")?.items().iter().any(means_the_hook);
            named.then(|| Said { name: format!("{name}.disabled"), what: "names the hook" })
        }),
    }
}

fn is(value: Option<&Node>, wanted: bool) -> bool {
    value.is_some_and(|it| matches!(it.kind, Kind::Other(Value::Bool(said)) if said == wanted))
}

/// Whether an item of a list of hooks that are not run is this one, by its name or by its command.
fn means_the_hook(item: &Node) -> bool {
    matches!(&item.kind, Kind::Text(text) if text == NAME || is_hook(text))
}

fn codex(path: &Path) -> Result<Option<Said>, Refused> {
    let Some(text) = text_of(path)? else { return Ok(None) };
    let table: toml::Table = text.parse().map_err(|_| Refused(format!("{} is not TOML", path.display())))?;
    let features = table.get("features").and_then(toml::Value::as_table);
    let said = FEATURES.iter().find_map(|name| Some((name, features?.get(*name)?.as_bool()?)));
    Ok(said.filter(|it| !it.1).map(|(name, _)| Said { name: format!("features.{name}"), what: "is `false`" }))
}
