//! Where the gate is, whose key is shown there, and what need not be asked: from the environment and the user's own files.
//!
//! **Invariant:** nothing is read from the project's directory. Where environment and file both name an address or a key,
//! they agree, so that a project that sets variables cannot send the user's calls elsewhere.
//!
//! **Invariant:** what need not be asked stands beside a file that the command line names, and nowhere else: by a variable, which a
//! project may set, nothing is found that lets calls pass.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::unistd::{User, getuid};
use svc_core::rules::people::keys::KEY_BYTES_MAX;
use svc_core::value::glob::ToolGlob;
use svc_core::value::secret::Secret;
use svc_http::config::BaseUrl;
use svc_http::outbound::Trust;

use super::event::{Event, Origin, is_name_of_mcp};
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
/// The names by which the environment has other root certificates trusted than the system's: one file, and directories.
const ROOTS_NAMES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
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
        let unasked = config.map(|it| it.with_file_name(UNASKED_NAME));
        let unasked = unasked.map(|it| read_unasked(&it, projects)).transpose()?.unwrap_or_default();
        let shown = path.as_deref().unwrap_or_else(|| Path::new(FILE_NAME)).display();
        let url = agreed(URL_NAME, variable(URL_NAME)?, own.url, &shown)?;
        let url = BaseUrl::parse(&url).map_err(|must| Refused(format!("`{URL_NAME}` {must}")))?;
        if url.as_str().starts_with("https:") {
            roots_lie_apart(projects)?;
        }
        let own_key = own.key.map(|it| it.expose().clone());
        let key = agreed(KEY_NAME, variable(KEY_NAME)?, own_key, &shown)?;
        if key.len() > KEY_BYTES_MAX || !key.bytes().all(|it| it.is_ascii_graphic()) {
            return Err(Refused(format!("`{KEY_NAME}` is no key")));
        }
        Ok(Self { url, key: Secret::new(key), ca_file: own.ca_file, state: state(), unasked })
    }

    /// Whether the user has said that calls of this tool need not be asked.
    pub(crate) fn is_unasked(&self, event: &Event) -> bool {
        self.unasked.iter().any(|it| covers(it, &event.origin, &event.shown))
    }
}

/// Whether a tool is meant by a pattern. One of an MCP server is meant by `server/tool` and by its whole name, `mcp__server__tool`, alone,
/// so that no server's tool passes for one of the client's own by its name, nor for another server's: where names of servers and tools
/// hold what stands between them as well, every way to read the tool's name has to be meant. One of a server that the client does
/// not name at all is meant by none.
fn covers(glob: &ToolGlob, origin: &Origin, shown: &str) -> bool {
    let text = glob.as_str();
    let has_no_server = is_name_of_mcp(text) && parted(text, FULL).next().is_none();
    match origin {
        Origin::SomeServer => false,
        Origin::Name if !is_name_of_mcp(shown) => glob.covers(None, shown),
        Origin::Name => {
            let mut ways = parted(shown, FULL).peekable();
            let is_meant = ways.peek().is_some() && ways.all(|(server, tool)| is_of(glob, server, tool));
            is_meant || (has_no_server && glob.covers(None, shown))
        }
        Origin::Server(server) => {
            // A client that shows the whole name may do so in a form of its own.
            let [full, other] = [FULL, OTHER].map(|(front, between)| {
                shown.strip_prefix(front).and_then(|it| it.strip_prefix(server.as_str())?.strip_prefix(between))
            });
            let tool = full.or(other).unwrap_or(shown);
            let is_shown = full.is_none() && other.is_some() && !text.starts_with(FULL.0);
            let by_name = match is_shown {
                true => match parted(text, OTHER).next() {
                    Some(_) => parted(text, OTHER).any(|it| is_pair(it, server, tool)),
                    None => is_name_of_mcp(text) && glob.covers(None, shown),
                },
                false => has_no_server && glob.covers(None, &[FULL.0, server, FULL.1, tool].concat()),
            };
            is_of(glob, server, tool) || by_name
        }
    }
}

/// What stands before a server's name and between that and its tool's in a whole name, and in the form of a client of its own.
const FULL: (&str, &str) = ("mcp__", "__");
const OTHER: (&str, &str) = ("mcp_", "_");

/// The servers and tools of which a whole name may be made.
fn parted<'a>(name: &'a str, (front, between): (&str, &'a str)) -> impl Iterator<Item = (&'a str, &'a str)> {
    let rest = name.strip_prefix(front).unwrap_or_default();
    rest.char_indices().filter(|it| it.0 > 0).filter_map(move |(at, _)| {
        let (server, behind) = rest.split_at_checked(at)?;
        Some((server, behind.strip_prefix(between)?))
    })
}

/// Whether a pattern means this tool of this server.
fn is_of(glob: &ToolGlob, server: &str, tool: &str) -> bool {
    glob.covers(Some(server), tool) || parted(glob.as_str(), FULL).any(|it| is_pair(it, server, tool))
}

/// Whether the patterns of a server and of a tool mean these.
fn is_pair((servers, tools): (&str, &str), server: &str, tool: &str) -> bool {
    ToolGlob::parse(&format!("{servers}/{tools}")).is_ok_and(|it| it.covers(Some(server), tool))
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

/// Looks whether the hook can be run with a file of its own and what lies beside it: with one that it cannot read it refuses every call.
///
/// # Errors
/// [`Refused`] where it is not there, is no such file or lies open to others, and where what it names or lies beside it is so.
pub(crate) fn check(path: &Path) -> Result<(), Refused> {
    let own = Own::read(path, true, &[])?;
    let shown = path.display();
    if let Some(url) = &own.url {
        BaseUrl::parse(url).map_err(|must| Refused(format!("`url` in {shown} {must}")))?;
    }
    if let Some(file) = &own.ca_file {
        Trust::with(Some(file)).map_err(|error| Refused(format!("`caFile` in {shown}: {error}")))?;
    }
    read_unasked(&path.with_file_name(UNASKED_NAME), &[]).map(drop)
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

/// Refuses root certificates of the project's: whoever is trusted could speak for the gate, and its settings may set variables.
fn roots_lie_apart(projects: &[PathBuf]) -> Result<(), Refused> {
    for name in ROOTS_NAMES {
        let set = env::var_os(name).filter(|it| !it.is_empty()).unwrap_or_default();
        let paths = env::split_paths(&set).chain([PathBuf::from(&set)]).filter_map(|it| fs::canonicalize(it).ok());
        if let Some(project) = paths.flat_map(|it| projects.iter().filter_map(move |at| holds(at, &it))).next() {
            return Err(Refused(format!(
                "`{name}` in the environment leads into {}, which is the project's; name what the gate is known by as `caFile`",
                project.display()
            )));
        }
    }
    Ok(())
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

/// Whether a project's directory holds the file.
fn holds(project: &Path, file: &Path) -> Option<PathBuf> {
    holds_beside(project, file, home_of_account)
}

/// The same for a user with this home: a directory in which the whole of it lies is no project.
fn holds_beside(project: &Path, file: &Path, home: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    let project = fs::canonicalize(project).ok().filter(|it| file.starts_with(it))?;
    let home = home().and_then(|it| fs::canonicalize(it).ok());
    let is_above_home = home.is_some_and(|it| it.starts_with(&project));
    (!is_above_home).then_some(project)
}

/// The home of this process's account, whatever `HOME` says: a project's settings may set variables, and `HOME` with them. Where the
/// system knows of no account there is none.
fn home_of_account() -> Option<PathBuf> {
    User::from_uid(getuid()).ok().flatten().map(|it| it.dir).filter(|it| it.is_absolute() && it.parent().is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A file lies in a project that is above it, but in none where that is above the user's home as well.
    #[test]
    fn a_home_is_no_project() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::canonicalize(path).unwrap()
        };
        let (home, project, file) = (at("home"), at("home/project"), at("home/project/.config"));
        let holds = |project: &Path, home: &Path| holds_beside(project, &file, || Some(home.to_owned()));
        assert_eq!(holds(&project, &home), Some(project.clone()));
        assert_eq!(holds(&home, &home), None);
        assert_eq!(holds(folder.path(), &home), None);
        assert_eq!(holds(&home, &at("home/other/deep")), None);
        assert_eq!(holds_beside(&home, &file, || None), Some(home.clone()), "nobody knows of a home");
        assert_eq!(holds(&at("elsewhere"), &home), None);
    }

    fn meant(glob: &str, origin: &Origin, tool: &str) -> bool {
        ToolGlob::parse(glob).is_ok_and(|it| covers(&it, origin, tool))
    }

    fn of(server: &str) -> Origin {
        Origin::Server(server.to_owned())
    }

    /// A pattern without a server is about the client's own tools, and about those of a server by their whole names.
    #[test]
    fn a_tool_of_a_server_is_meant_by_its_server_too() {
        let covers = |glob: &str, server: Option<&str>, tool: &str| meant(glob, &server.map_or(Origin::Name, of), tool);
        assert!(covers("Read", None, "Read") && covers("mcp__docs__*", None, "mcp__docs__search"));
        assert!(!covers("Read", Some("evil"), "Read") && !covers("R*", Some("evil"), "Read"));
        assert!(covers("docs/*", Some("docs"), "search") && covers("mcp__docs__*", Some("docs"), "search"));
        assert!(!covers("docs/*", Some("evil"), "search") && !covers("mcp__docs__*", Some("evil"), "search"));
        for tool in ["mcp__docs__search", "mcp_docs_search"] {
            for glob in ["docs/search", "mcp__docs__*", tool] {
                assert!(covers(glob, Some("docs"), tool) && !covers(glob, Some("evil"), tool), "{glob} {tool}");
            }
        }
        assert!(!meant("R*", &Origin::SomeServer, "Read"), "of a server that is not known");
    }

    /// A pattern for the tools of one server means none of another whose name begins with it, whether the client names that or not.
    #[test]
    fn a_server_is_not_meant_by_the_beginning_of_its_name() {
        for (glob, server, tool, is_meant) in [
            ("mcp__docs__*", "docs__evil", "mcp__docs__evil__pay", false),
            ("mcp_docs_*", "docs_evil", "mcp_docs_evil_pay", false),
            ("mcp_docs_*", "docs", "mcp_docs_evil_pay", true),
            ("mcp__docs__*", "_docs_", "mcp__docs__pay", false),
            ("mcp__docs__evil__*", "docs__evil", "mcp__docs__evil__pay", true),
            ("docs__evil/*", "docs__evil", "mcp__docs__evil__pay", true),
            ("mcp__docs__evil__pay", "docs__evil", "mcp__docs__evil__pay", true),
            ("mcp__*__pay", "docs__evil", "mcp__docs__evil__pay", true),
            ("mcp__*", "docs__evil", "mcp__docs__evil__pay", true),
            ("mcp_*", "docs_evil", "mcp_docs_evil_pay", true),
        ] {
            assert_eq!(meant(glob, &of(server), tool), is_meant, "{glob} {server} {tool}");
        }
        for (glob, tool, is_meant) in [
            ("mcp__docs__*", "mcp__docs__evil__pay", false),
            ("mcp__*__pay", "mcp__docs__evil__pay", false),
            ("mcp__docs__evil__*", "mcp__docs__evil__pay", true),
            ("mcp__docs__evil__pay", "mcp__docs__evil__pay", true),
            ("docs/*", "mcp__docs__search", true),
            ("docs/*", "mcp__docs__evil__pay", false),
            ("mcp__*", "mcp__docs__evil__pay", true),
            ("mcp__docs__*", "mcp__docs____", false),
            ("mcp_docs_*", "mcp_docs_search", true),
        ] {
            assert_eq!(meant(glob, &Origin::Name, tool), is_meant, "{glob} {tool}");
        }
    }

    /// A pattern that says nothing of a server means no tool of one, however that is shown.
    #[test]
    fn a_pattern_without_a_server_means_no_tool_of_one() {
        for glob in ["*_search", "*search", "m*", "MCP:*", "Read", "x_search"] {
            for (origin, tool) in [
                (Origin::Name, "mcp__evil__x_search"),
                (Origin::Name, "mcp_evil_x_search"),
                (of("evil"), "mcp__evil__x_search"),
                (of("evil"), "mcp_evil_x_search"),
                (of("evil"), "x_search"),
                (Origin::SomeServer, "MCP:x_search"),
            ] {
                assert!(!meant(glob, &origin, tool), "{glob} {origin:?} {tool}");
            }
        }
        assert!(meant("*_search", &Origin::Name, "grep_search"));
    }
}
