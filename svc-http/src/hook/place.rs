//! Where the gate is, whose key is shown there, and what need not be asked: from the environment and the user's own files.
//!
//! **Invariant:** nothing is read from the project's directory. Where environment and file both name an address or a key,
//! they agree, so that a project that sets variables cannot send the user's calls elsewhere.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use svc_core::rules::people::keys::KEY_BYTES_MAX;
use svc_core::value::glob::ToolGlob;
use svc_core::value::secret::Secret;
use svc_http::config::BaseUrl;

use super::event::{Event, Origin};
use super::{Refused, plain};

/// The environment's names.
const URL_NAME: &str = "SVC_URL";
const KEY_NAME: &str = "SVC_AGENT_KEY";
/// The user's own file, in their directory of settings.
pub(crate) const FILE_NAME: &str = "hook.toml";
/// What may stand in it.
const MEMBERS: [&str; 3] = ["url", "agentKey", "caFile"];
/// What need not be asked, beside it.
pub(crate) const UNASKED_NAME: &str = "hook-unasked.txt";
/// Bytes of such a file.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Where to ask, and how.
#[derive(Debug)]
pub(crate) struct Place {
    /// The gate.
    pub(crate) url: BaseUrl,
    /// The agent's key.
    pub(crate) key: Secret<String>,
    /// Root certificates that are trusted beside the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Where calls are remembered until they are over.
    pub(crate) state: Option<PathBuf>,
    unasked: Vec<ToolGlob>,
}

/// What the user's own file says.
#[derive(Debug, Default)]
struct Own {
    url: Option<String>,
    key: Option<Secret<String>>,
    ca_file: Option<PathBuf>,
}

impl Place {
    /// Finds it. `config` is the user's own file where it was named on the command line; then it has to be there.
    ///
    /// # Errors
    /// [`Refused`] where address or key are missing, are in doubt, or lie where others can read or write them.
    pub(crate) fn find(config: Option<&Path>, projects: &[PathBuf]) -> Result<Self, Refused> {
        let path = own_file(config)?;
        let own = match &path {
            Some(path) => Own::read(path, config.is_some(), projects)?,
            None => Own::default(),
        };
        let unasked = path.as_deref().map(|it| it.with_file_name(UNASKED_NAME));
        let unasked = unasked.map(|it| read_unasked(&it, projects)).transpose()?.unwrap_or_default();
        let shown = path.as_deref().unwrap_or_else(|| Path::new(FILE_NAME)).display();
        let url = agreed(URL_NAME, variable(URL_NAME)?, own.url, &shown)?;
        let url = BaseUrl::parse(&url).map_err(|must| Refused(format!("`{URL_NAME}` {must}")))?;
        let own_key = own.key.map(|it| it.expose().clone());
        let key = agreed(KEY_NAME, variable(KEY_NAME)?, own_key, &shown)?;
        if key.len() > KEY_BYTES_MAX || !key.bytes().all(|it| it.is_ascii_graphic()) {
            return Err(Refused(format!("`{KEY_NAME}` is no key")));
        }
        Ok(Self { url, key: Secret::new(key), ca_file: own.ca_file, state: state(), unasked })
    }

    /// Whether the user has said that calls of this tool need not be asked.
    pub(crate) fn is_unasked(&self, event: &Event) -> bool {
        covered(&self.unasked, &event.origin, &event.tool)
    }
}

/// Whether a tool is meant by a pattern: one of an MCP server by `server/tool` or by its whole name `mcp__server__tool`
/// alone, so that no server's tool passes for one of the client's own by its name, nor for another server's. One of a server that
/// the client does not name is meant by none.
fn covered(globs: &[ToolGlob], origin: &Origin, tool: &str) -> bool {
    match origin {
        Origin::Name => globs.iter().any(|it| it.covers(None, tool)),
        Origin::Server(server) => {
            // A client that shows the whole name may do so in a form of its own.
            let own = [format!("mcp__{server}__"), format!("mcp_{server}_")];
            let bare = own.iter().find_map(|it| tool.strip_prefix(it.as_str()));
            let whole = format!("mcp__{server}__{}", bare.unwrap_or(tool));
            globs.iter().any(|it| {
                let is_shown = bare.is_some() && it.covers(None, tool);
                it.covers(Some(server), bare.unwrap_or(tool)) || it.covers(None, &whole) || is_shown
            })
        }
        Origin::SomeServer => false,
    }
}

impl Own {
    fn read(path: &Path, must: bool, projects: &[PathBuf]) -> Result<Self, Refused> {
        let Some(text) = read_own(path, 0o077, projects)? else {
            let shown = path.display();
            return if must { Err(Refused(format!("{shown} is not there"))) } else { Ok(Self::default()) };
        };
        let shown = path.display();
        let table: toml::Table = text
            .parse()
            .map_err(|_| Refused(format!("{shown} is not TOML; it is not shown because it holds a key")))?;
        let mut own = Self::default();
        // What else stands in it is told first: a file of the server's settings has tables, which are no mistake there.
        if let Some(name) = table.keys().find(|it| !MEMBERS.contains(&it.as_str())) {
            let name = plain(name, 64);
            return Err(Refused(format!(
                "`{name}` in {shown} is no setting of the hook: it has `url`, `agentKey`, `caFile`"
            )));
        }
        for (name, value) in table {
            let value =
                value.as_str().ok_or_else(|| Refused(format!("`{name}` in {shown} must be a text")))?.to_owned();
            match name.as_str() {
                "url" => own.url = Some(value),
                "agentKey" => own.key = Some(Secret::new(value)),
                _ => own.ca_file = Some(absolute(value, &name, path)?),
            }
        }
        Ok(own)
    }
}

/// The user's own file: the one that was named, else the one in their directory of settings.
pub(crate) fn own_file(named: Option<&Path>) -> Result<Option<PathBuf>, Refused> {
    match named {
        Some(path) if path.is_absolute() => Ok(Some(path.to_owned())),
        Some(_) => Err(Refused::new("`--config` must be an absolute path: the hook runs in the project's directory")),
        None => Ok(directory("XDG_CONFIG_HOME", ".config").map(|it| it.join("svc").join(FILE_NAME))),
    }
}

/// Looks whether a file is one of the hook's, before a client is told to run it with this one.
///
/// # Errors
/// [`Refused`] where it is not there, is no such file or lies open to others.
pub(crate) fn check(path: &Path) -> Result<(), Refused> {
    Own::read(path, true, &[]).map(drop)
}

/// Where calls are remembered.
fn state() -> Option<PathBuf> {
    directory("XDG_STATE_HOME", ".local/state").map(|it| it.join("svc").join("hook"))
}

fn directory(name: &str, in_home: &str) -> Option<PathBuf> {
    let set = env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    set.or_else(|| home().map(|it| it.join(in_home)))
}

/// The user's home.
pub(crate) fn home() -> Option<PathBuf> {
    env::home_dir().filter(|it| it.is_absolute())
}

fn variable(name: &str) -> Result<Option<String>, Refused> {
    let Some(value) = env::var_os(name).filter(|it| !it.is_empty()) else { return Ok(None) };
    value.into_string().map(Some).map_err(|_| Refused(format!("`{name}` is no text")))
}

/// The one value that environment and file give.
fn agreed(
    name: &str,
    set: Option<String>,
    own: Option<String>,
    file: &impl std::fmt::Display,
) -> Result<String, Refused> {
    match (set, own) {
        (Some(set), Some(own)) if set.trim_end_matches('/') != own.trim_end_matches('/') => {
            Err(Refused(format!("`{name}` in the environment is not what {file} says; take one of them away")))
        }
        (Some(value), _) | (None, Some(value)) => Ok(value),
        (None, None) => Err(Refused(format!("`{name}` is neither in the environment nor in {file}"))),
    }
}

fn absolute(path: String, name: &str, beside: &Path) -> Result<PathBuf, Refused> {
    let path = PathBuf::from(path);
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Refused(format!("`{name}` in {} must be an absolute path", beside.display())))
}

/// Patterns of tools, one a line; what follows `#` at the beginning of a line is a note.
fn read_unasked(path: &Path, projects: &[PathBuf]) -> Result<Vec<ToolGlob>, Refused> {
    let text = read_own(path, 0o022, projects)?.unwrap_or_default();
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, it)| !it.is_empty() && !it.starts_with('#'));
    let read = |(at, line): (usize, &str)| {
        let at = at + 1;
        ToolGlob::parse_new(line).map_err(|must| Refused(format!("line {at} of {} {must}", path.display())))
    };
    lines.map(read).collect()
}

/// The text of a file of the user's own, `None` where there is none. Nobody else may have what `open` names, and it does not
/// lie in a project.
fn read_own(path: &Path, open: u32, projects: &[PathBuf]) -> Result<Option<String>, Refused> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| Refused(format!("{shown} cannot be read: {error}"));
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if !about.is_file() || about.len() > FILE_BYTES_MAX {
        return Err(Refused(format!("{shown} is no file of at most {FILE_BYTES_MAX} bytes")));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & open != 0 {
        return Err(Refused(format!("{shown} is open to others; run `chmod 600 {shown}`")));
    }
    let whole = fs::canonicalize(path).map_err(unreadable)?;
    if let Some(project) = projects.iter().find_map(|it| holds(it, &whole)) {
        return Err(Refused(format!("{shown} lies in {}, which is the project's", project.display())));
    }
    fs::read_to_string(path).map(Some).map_err(unreadable)
}

/// Whether a project's directory holds the file. One in which the user's whole home lies is no project.
fn holds(project: &Path, file: &Path) -> Option<PathBuf> {
    let project = fs::canonicalize(project).ok()?;
    let home = home().and_then(|it| fs::canonicalize(it).ok());
    let is_above_home = home.is_some_and(|it| it.starts_with(&project));
    (file.starts_with(&project) && !is_above_home).then_some(project)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A pattern without a server is about the client's own tools, and about those of a server by their whole names.
    #[test]
    fn a_tool_of_a_server_is_meant_by_its_server_too() {
        let covers = |glob: &str, server: Option<&str>, tool: &str| {
            let origin = server.map_or(Origin::Name, |it| Origin::Server(it.to_owned()));
            ToolGlob::parse(glob).is_ok_and(|it| covered(&[it], &origin, tool))
        };
        assert!(covers("Read", None, "Read") && covers("mcp__docs__*", None, "mcp__docs__search"));
        assert!(!covers("Read", Some("evil"), "Read") && !covers("R*", Some("evil"), "Read"));
        assert!(covers("docs/*", Some("docs"), "search") && covers("mcp__docs__*", Some("docs"), "search"));
        assert!(!covers("docs/*", Some("evil"), "search") && !covers("mcp__docs__*", Some("evil"), "search"));
        for tool in ["mcp__docs__search", "mcp_docs_search"] {
            for glob in ["docs/search", "mcp__docs__*", tool] {
                assert!(covers(glob, Some("docs"), tool) && !covers(glob, Some("evil"), tool), "{glob} {tool}");
            }
        }
        let everything = ToolGlob::parse("R*").unwrap();
        assert!(!covered(&[everything], &Origin::SomeServer, "Read"), "of a server that is not known");
    }
}
