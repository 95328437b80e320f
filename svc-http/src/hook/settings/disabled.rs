//! What a client's own settings say against running any hook.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::json::{Kind, Node};
use super::{BYTES_MAX, is_hook};
use crate::hook::Refused;
use crate::hook::client::Client;

/// What Gemini CLI's settings call the hook, as `install` writes it.
pub(super) const NAME: &str = "svc";
/// Gemini CLI's sections with what is said of hooks as a whole, today's and the one of before.
const SECTIONS: [&str; 2] = ["hooksConfig", "hooks"];
/// Codex' names for its hooks as a feature, the one that counts first.
const FEATURES: [&str; 2] = ["hooks", "codex_hooks"];

/// The setting by which the client runs no hook, or not this one; `None` where there is none. `root` are the settings at `path`.
///
/// # Errors
/// [`Refused`] where settings that lie beside them cannot be read.
pub(super) fn disabled(client: Client, root: &Node, path: &Path) -> Result<Option<String>, Refused> {
    let shown = path.display();
    Ok(match client {
        Client::ClaudeCode => {
            is(root.member("disableAllHooks"), true).then(|| format!("`disableAllHooks` in {shown} is `true`"))
        }
        Client::Codex => codex(&path.with_file_name("config.toml"))?,
        Client::Cursor => None,
        Client::Gemini => SECTIONS.iter().find_map(|name| {
            let section = root.member(name)?;
            if is(section.member("enabled"), false) {
                return Some(format!("`{name}.enabled` in {shown} is `false`"));
            }
            let named = section.member("disabled")?.items().iter().any(means_the_hook);
            named.then(|| format!("`{name}.disabled` in {shown} names the hook"))
        }),
    })
}

fn is(value: Option<&Node>, wanted: bool) -> bool {
    value.is_some_and(|it| matches!(it.kind, Kind::Other(Value::Bool(said)) if said == wanted))
}

/// Whether an item of a list of hooks that are not run is this one, by its name or by its command.
fn means_the_hook(item: &Node) -> bool {
    matches!(&item.kind, Kind::Text(text) if text == NAME || is_hook(text))
}

fn codex(path: &Path) -> Result<Option<String>, Refused> {
    let shown = path.display();
    let text = match fs::metadata(path) {
        Ok(about) if about.len() > BYTES_MAX => {
            return Err(Refused(format!("{shown} has more than {BYTES_MAX} bytes")));
        }
        Ok(_) => fs::read_to_string(path).map_err(|error| Refused(format!("{shown} cannot be read: {error}")))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Refused(format!("{shown} cannot be read: {error}"))),
    };
    let table: toml::Table = text.parse().map_err(|_| Refused(format!("{shown} is not TOML")))?;
    let features = table.get("features").and_then(toml::Value::as_table);
    let said = FEATURES.iter().find_map(|name| Some((name, features?.get(*name)?.as_bool()?)));
    Ok(said.filter(|it| !it.1).map(|(name, _)| format!("`features.{name}` in {shown} is `false`")))
}
