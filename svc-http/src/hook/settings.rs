//! A client's own file of settings: where it lies, what of it is ours, and how ours is put in and taken out while every other
//! byte stays.

mod disabled;
mod edit;
mod json;
mod ours;

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::edit::{Indent, append, remove, was_there};
use self::json::{Comments, Node, parse};
use self::ours::Ours;
use super::client::Client;
use super::place::home;
use super::{Refused, plain};

/// Bytes of a file of settings.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How long a client waits for the hook, in seconds: longer than the hook ever takes.
const CLIENT_WAITS_S: u64 = 60;
/// What the shell is told that runs the command before a tool. A hook that was ended or is not there any more ends with a code of its
/// own, for which clients let the tool run; 2 they take for a refusal, two of them only with words to it, and shells say none of some
/// signals. Written with words alone that every shell has, as Codex runs commands with the user's own.
const OR_REFUSE: &str = "|| /bin/sh -c 'echo svc has not allowed this call, so it does not run >&2; exit 2'";
/// Characters of a path in the environment that are shown of it.
const PATH_SHOWN_MAX: usize = 200;
/// Links that are followed, one to the next.
const LINKS_MAX: usize = 40;

/// A client's settings as they are.
#[derive(Debug)]
pub(crate) struct Settings {
    client: Client,
    /// Where they lie.
    pub(crate) path: PathBuf,
    /// Their text; empty where there is no file.
    pub(crate) text: String,
}

/// How much of the hook stands in a client's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// All of it, as it would be put there now.
    Whole,
    /// Some of it, or another version's.
    Partly,
    /// Nothing.
    Not,
}

/// One event of a client, and what stands there.
struct Wanted {
    event: &'static str,
    entry: Value,
}

impl Settings {
    /// Reads a client's settings.
    ///
    /// # Errors
    /// [`Refused`] where they cannot be read.
    pub(crate) fn read(client: Client) -> Result<Self, Refused> {
        let path = path_of(client)?;
        let text = text_of(&path)?.unwrap_or_default();
        Ok(Self { client, path, text })
    }

    /// Whether the client has been set up on this machine at all.
    ///
    /// # Errors
    /// [`Refused`] where nobody can say where its settings lie.
    pub(crate) fn has_home(client: Client) -> Result<bool, Refused> {
        path_of(client).map(|it| it.parent().is_some_and(Path::is_dir))
    }

    /// How much of the hook stands there, where it would be run by `command`.
    ///
    /// # Errors
    /// [`Refused`] where the settings are not JSON, or not of the shape that the client reads.
    pub(crate) fn installed(&self, command: &str) -> Result<Installed, Refused> {
        let root = self.parsed(&self.text)?;
        let (wanted, ours) = (wanted(self.client, command), Ours::of(self.client, &root));
        let count = |it: &Wanted| entries(&root, it.event).iter().filter(|at| ours.has(at)).count();
        let stands = |it: &Wanted| count(it) == 1 && entries(&root, it.event).iter().any(|at| at.value() == it.entry);
        Ok(match (wanted.iter().map(count).sum::<usize>(), wanted.iter().all(stands)) {
            (_, true) => Installed::Whole,
            (0, false) => Installed::Not,
            (_, false) => Installed::Partly,
        })
    }

    /// The settings by which the client, started in this directory, runs no hook, or not this one, as a clause; `None` where nothing is
    /// said against it.
    ///
    /// # Errors
    /// As [`installed`](Self::installed), and where settings of the user's own beside these cannot be read.
    pub(crate) fn disabled(&self, started: &Path) -> Result<Option<String>, Refused> {
        disabled::disabled(self.client, &self.parsed(&self.text)?, &self.path, started)
    }

    /// The text with the hook in it, and everything else as it is.
    ///
    /// # Errors
    /// As [`installed`](Self::installed).
    pub(crate) fn with(&self, command: &str) -> Result<String, Refused> {
        if self.installed(command)? == Installed::Whole {
            return Ok(self.text.clone());
        }
        let mut text = self.without()?;
        if text.trim().is_empty() {
            text = match self.client {
                Client::Cursor => "{\n  \"version\": 1\n}\n".to_owned(),
                Client::ClaudeCode | Client::Codex | Client::Gemini => "{}\n".to_owned(),
            };
        }
        for Wanted { event, entry } in wanted(self.client, command) {
            text = self.added(&text, event, &entry)?;
        }
        Ok(text)
    }

    /// The text without anything of the hook.
    ///
    /// # Errors
    /// As [`installed`](Self::installed).
    pub(crate) fn without(&self) -> Result<String, Refused> {
        let mut text = self.text.clone();
        let ours = Ours::of(self.client, &self.parsed(&text)?);
        while let Some(shorter) = self.one_less(&text, &ours)? {
            text = shorter;
        }
        Ok(text)
    }

    /// Writes the settings: whole, in the place of those that were there, or not at all. A link stays one.
    ///
    /// # Errors
    /// [`Refused`] where they cannot be written, or have changed since they were read.
    pub(crate) fn write(&self, text: &str) -> Result<(), Refused> {
        let failed = |error: io::Error| Refused(format!("{} cannot be written: {error}", self.path.display()));
        if Self::read(self.client)?.text != self.text {
            return Err(Refused(format!("{} has changed meanwhile; nothing was written", self.path.display())));
        }
        let target = target_of(&self.path).map_err(failed)?;
        let folder = target.parent().ok_or_else(|| Refused::new("the settings have no directory"))?;
        fs::create_dir_all(folder).map_err(failed)?;
        let beside = folder.join(format!(".svc-hook-{}", std::process::id()));
        let written = fs::File::create_new(&beside).and_then(|mut file| {
            if let Ok(about) = fs::metadata(&target) {
                file.set_permissions(about.permissions())?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &target)
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            failed(error)
        })
    }

    fn parsed(&self, text: &str) -> Result<Node, Refused> {
        let comments = match self.client {
            Client::Gemini => Comments::Allowed,
            Client::ClaudeCode | Client::Codex | Client::Cursor => Comments::Refused,
        };
        let shown = self.path.display();
        let text = if text.trim().is_empty() { "{}" } else { text };
        let root = parse(text, comments).map_err(|why| Refused(format!("{shown} {why}; nothing was changed")))?;
        let wrong =
            |what: &str| Refused(format!("{what} in {shown} is not what the client reads; nothing was changed"));
        if !root.is_object() {
            return Err(wrong("the whole"));
        }
        let Some(hooks) = root.member("hooks") else { return Ok(root) };
        if !hooks.is_object() {
            return Err(wrong("`hooks`"));
        }
        for Wanted { event, .. } in wanted(self.client, "") {
            if hooks.member(event).is_some_and(|it| !it.is_list()) {
                return Err(wrong(&format!("`hooks.{event}`")));
            }
        }
        Ok(root)
    }

    /// The text with one entry more, in containers that are made where they are not there.
    fn added(&self, text: &str, event: &str, entry: &Value) -> Result<String, Refused> {
        let root = self.parsed(text)?;
        let indent = Indent::of(text, &root);
        Ok(match root.member("hooks") {
            None => append(text, &root, Some("hooks"), &json!({ event: [entry] }), indent, 1),
            Some(hooks) => match hooks.member(event) {
                None => append(text, hooks, Some(event), &json!([entry]), indent, 2),
                Some(list) => append(text, list, None, entry, indent, 3),
            },
        })
    }

    /// The text with one thing of ours less; `None` where there is nothing of ours.
    fn one_less(&self, text: &str, ours: &Ours) -> Result<Option<String>, Refused> {
        let root = self.parsed(text)?;
        let Some(hooks) = root.member("hooks") else { return Ok(None) };
        for Wanted { event, .. } in wanted(self.client, "") {
            let Some(list) = hooks.member(event) else { continue };
            let Some(at) = list.items().iter().position(|it| ours.has(it)) else { continue };
            let inner = list.items().get(at).and_then(|it| it.member("hooks"));
            if let Some(inner) = inner.filter(|it| it.items().len() > 1)
                && let Some(own) = inner.items().iter().position(|it| ours.has_command(it))
            {
                return Ok(Some(remove(text, inner, own)));
            }
            // What we made empty goes with it.
            let place = |node: &Node, name: &str| node.members().iter().position(|it| it.key == name);
            let last = list.items().len() == 1 && !was_there(text, list);
            return Ok(match (last, last && hooks.members().len() == 1 && !was_there(text, hooks)) {
                (_, true) => place(&root, "hooks").map(|it| remove(text, &root, it)),
                (true, false) => place(hooks, event).map(|it| remove(text, hooks, it)),
                (false, _) => Some(remove(text, list, at)),
            });
        }
        Ok(None)
    }
}

/// Where a client keeps the settings of its user.
fn path_of(client: Client) -> Result<PathBuf, Refused> {
    let (moved, beneath, folder, file) = match client {
        Client::ClaudeCode => ("CLAUDE_CONFIG_DIR", "", ".claude", "settings.json"),
        Client::Codex => ("CODEX_HOME", "", ".codex", "hooks.json"),
        Client::Cursor => ("", "", ".cursor", "hooks.json"),
        // The one that names a home, and not the directory in it.
        Client::Gemini => ("GEMINI_CLI_HOME", ".gemini", ".gemini", "settings.json"),
    };
    let named = std::env::var_os(moved).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(named) = named.as_ref().filter(|it| !it.is_absolute()) {
        let (client, shown) = (client.name(), plain(&named.display().to_string(), PATH_SHOWN_MAX));
        return Err(Refused(format!(
            "`{moved}` must be an absolute path, and is `{shown}`: {client} would read other settings in each directory that it is \
             started in"
        )));
    }
    let folder = named.map(|it| it.join(beneath)).or_else(|| home().map(|it| it.join(folder)));
    folder.map(|it| it.join(file)).ok_or_else(|| Refused::new("there is no home directory; set `HOME`"))
}

/// The text of a file of settings, `None` where there is none.
fn text_of(path: &Path) -> Result<Option<String>, Refused> {
    let shown = path.display();
    let unreadable = |error: io::Error| Refused(format!("{shown} cannot be read: {error}"));
    match fs::metadata(path) {
        // To read anything else may never end.
        Ok(about) if !about.is_file() => Err(Refused(format!("{shown} is no file"))),
        Ok(about) if about.len() > BYTES_MAX => Err(Refused(format!("{shown} has more than {BYTES_MAX} bytes"))),
        Ok(_) => fs::read_to_string(path).map(Some).map_err(unreadable),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

/// The file that a path means, also where it is a link to one that is not there yet.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&at) {
            Ok(next) => at = at.parent().unwrap_or(&at).join(next),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => return Ok(at),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there are too many links"))
}

fn wanted(client: Client, command: &str) -> Vec<Wanted> {
    wanted_by(client, command, &format!("{command} {OR_REFUSE}"))
}

/// The same where the shell is told `before` of the command before a tool.
fn wanted_by(client: Client, command: &str, before: &str) -> Vec<Wanted> {
    let in_group = |hook: Value, matcher: bool| match matcher {
        true => json!({ "matcher": "*", "hooks": [hook] }),
        false => json!({ "hooks": [hook] }),
    };
    let hook = |command: &str| json!({ "type": "command", "command": command, "timeout": CLIENT_WAITS_S });
    let entry = |event, entry| Wanted { event, entry };
    match client {
        Client::ClaudeCode => {
            let mut blocks = hook(before);
            if let Some(members) = blocks.as_object_mut() {
                members.insert("onFailure".to_owned(), json!("block"));
            }
            vec![
                entry("PreToolUse", in_group(blocks, true)),
                entry("PostToolUse", in_group(hook(command), true)),
                entry("PostToolUseFailure", in_group(hook(command), true)),
            ]
        }
        Client::Codex => vec![
            entry("PreToolUse", in_group(hook(before), false)),
            entry("PostToolUse", in_group(hook(command), false)),
        ],
        // It is told to take every failure for a refusal, and nobody says that it runs commands with a shell.
        Client::Cursor => {
            let plain = json!({ "command": command, "timeout": CLIENT_WAITS_S });
            let closed = json!({ "command": command, "timeout": CLIENT_WAITS_S, "failClosed": true });
            vec![entry("preToolUse", closed), entry("postToolUse", plain.clone()), entry("postToolUseFailure", plain)]
        }
        Client::Gemini => {
            let hook = |command: &str| json!({ "name": disabled::NAME, "type": "command", "command": command, "timeout": CLIENT_WAITS_S * 1_000 });
            vec![entry("BeforeTool", in_group(hook(before), false)), entry("AfterTool", in_group(hook(command), false))]
        }
    }
}

fn entries<'a>(root: &'a Node, event: &str) -> &'a [Node] {
    root.member("hooks").and_then(|it| it.member(event)).map(Node::items).unwrap_or_default()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
