//! Which commands in a client's settings are the hook's own, and which are somebody else's.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::json::{Kind, Node};
use super::{OR_REFUSE, Wanted, entries, wanted, wanted_by};
use crate::hook::place::FILE_NAME;
use crate::hook::{Client, REFUSES};

/// What the program is called where nobody has named its file anew.
const NAMES: [&str; 2] = ["svc", "svc.exe"];
/// The word by which the program is told to be the hook.
const HOOK: &str = "hook";
/// What follows a command in a shell that is heeded where the command did not go well.
pub(super) const OR: &str = "||";
/// What `install` puts behind the command that is run before a tool, and what earlier releases have put there.
const TAILS: [&str; 2] = [OR_REFUSE, "|| /bin/sh -c 'echo svc did not answer, so this call does not run >&2; exit 2'"];
/// Bytes of a program that are looked through for what svc says, and of those that are read at once.
const PROGRAM_BYTES_MAX: u64 = 1024 * 1024 * 1024;
const PIECE_BYTES: usize = 1024 * 1024;

/// The hook's own commands in the settings of a client: those that [are known by themselves](is_hook), and those that `install` has put
/// there, whatever the program's file was called then and wherever it lay.
pub(super) struct Ours(BTreeSet<String>);

impl Ours {
    /// Finds them. A command that reads as `install` and earlier releases of it write one is somebody else's all the same, unless svc's own
    /// words stand behind it or in its program, or its program is gone and it stands everywhere that `install` puts it, to the letter.
    pub(super) fn of(client: Client, root: &Node) -> Self {
        let wanted = wanted(client, "");
        let all = || wanted.iter().flat_map(|it| entries(root, it.event)).flat_map(commands);
        let lines: BTreeSet<&str> = all().map(|it| line_of(it).0).filter(|it| !is_hook(it)).collect();
        let is_told = |line: &str| all().map(line_of).any(|(it, tail)| it == line && tail.is_some());
        let is_everywhere = |line: &str| {
            let stands = |it: &Wanted| entries(root, it.event).iter().any(|at| at.value() == it.entry);
            wanted_by(client, line, line).iter().all(stands)
        };
        let is_ours = |line: &str| {
            let Some(program) = program_of(client, line) else { return false };
            is_told(line) || says_so(Path::new(&program)).unwrap_or_else(|| is_everywhere(line))
        };
        Self(lines.into_iter().filter(|it| is_ours(it)).map(str::to_owned).collect())
    }

    /// Whether an entry runs the hook: itself, or one of its hooks.
    pub(super) fn has(&self, entry: &Node) -> bool {
        commands(entry).any(|it| self.is(it))
    }

    /// Whether a hook of an entry's is this one.
    pub(super) fn has_command(&self, hook: &Node) -> bool {
        command(hook).is_some_and(|it| self.is(it))
    }

    fn is(&self, command: &str) -> bool {
        is_hook(command) || self.0.contains(line_of(command).0)
    }
}

/// The commands that an entry runs: its own, and those of its hooks.
fn commands(entry: &Node) -> impl Iterator<Item = &str> {
    let within = entry.member("hooks").map(Node::items).unwrap_or_default();
    [entry].into_iter().chain(within).filter_map(command)
}

fn command(hook: &Node) -> Option<&str> {
    match &hook.member("command")?.kind {
        Kind::Text(command) => Some(command),
        Kind::Object(_) | Kind::List(_) | Kind::Other(_) => None,
    }
}

/// A command without what `install` puts behind it, and that.
fn line_of(command: &str) -> (&str, Option<&'static str>) {
    let cut = |tail: &&'static str| Some((command.strip_suffix(tail)?.strip_suffix(' ')?, Some(*tail)));
    TAILS.iter().find_map(cut).unwrap_or((command, None))
}

/// The program of a command that reads as `install` and earlier releases of it write one for this client: by its whole path, for the client,
/// and with a file of the hook's own or without.
fn program_of(client: Client, line: &str) -> Option<String> {
    let words = words(line)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (program, file) = match words.as_slice() {
        [program, HOOK, "--client", name] if *name == client.name() => (program, None),
        [program, HOOK, "--client", name, "--config", file] if *name == client.name() => (program, Some(file)),
        _ => return None,
    };
    let is_whole = |path: &str| Path::new(path).is_absolute();
    (is_whole(program) && file.is_none_or(|it| is_whole(it))).then(|| (*program).to_owned())
}

/// Whether a program has in it what this one says where it refuses; `None` where it is not there, so that nobody can tell.
fn says_so(program: &Path) -> Option<bool> {
    let mut file = match fs::metadata(program) {
        Ok(about) if about.is_file() => File::open(program).ok().map(|it| it.take(PROGRAM_BYTES_MAX)),
        Ok(_) => None,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
        Err(_) => None,
    };
    let wanted = REFUSES.as_bytes();
    let (mut piece, mut rest) = (Vec::with_capacity(PIECE_BYTES), Vec::new());
    while let Some(file) = &mut file {
        piece.clear();
        piece.append(&mut rest);
        let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
        if piece.windows(wanted.len()).any(|it| it == wanted) {
            return Some(true);
        }
        if !read.is_ok_and(|it| it > 0) {
            break;
        }
        rest.extend_from_slice(piece.get(piece.len().saturating_sub(wanted.len())..).unwrap_or_default());
    }
    Some(false)
}

/// Whether a command is the hook for one of the clients, run by this program: others have hooks of their own, with a command `hook`
/// and an option `--client` too. Whoever installs it may have named the program's file anything, so one of another name is known by
/// being the same file or called the same, or by options that are to the letter those that `install` writes.
pub(super) fn is_hook(command: &str) -> bool {
    let words = words(command).unwrap_or_default();
    let mut words = words.iter().map(String::as_str).skip_while(|it| is_assignment(it));
    let (Some(program), Some(HOOK)) = (words.next(), words.next()) else { return false };
    let options: Vec<&str> = words.take_while(|it| *it != OR).collect();
    let are_options = options.first().is_some_and(|it| it.starts_with("--")) && names_client(&options);
    are_options && (is_this(Path::new(program)) || are_as_written(&options))
}

/// Whether this is the program that runs now, or is called as it is or was.
fn is_this(program: &Path) -> bool {
    let name = program.file_name();
    if name.is_some_and(|it| NAMES.iter().any(|own| it == *own)) {
        return true;
    }
    std::env::current_exe().is_ok_and(|here| name == here.file_name() || is_same_file(program, &here))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        one.dev() == other.dev() && one.ino() == other.ino()
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        false
    }
}

/// Whether one of these options is `--client` with a client that is known.
fn names_client(options: &[&str]) -> bool {
    let is_known = |it: &str| Client::ALL.iter().any(|client| client.name() == it);
    let apart = options.windows(2).any(|it| matches!(it, ["--client", name] if is_known(name)));
    apart || options.iter().any(|it| it.strip_prefix("--client=").is_some_and(is_known))
}

/// Whether these are the options that `install` writes where the hook's own file is called as it is by itself.
fn are_as_written(options: &[&str]) -> bool {
    let is_own = |it: &str| Path::new(it).is_absolute() && Path::new(it).file_name().is_some_and(|at| at == FILE_NAME);
    matches!(options, ["--client", _, "--config", file] if is_own(file))
}

/// Whether a word in front of a command sets a variable for it.
fn is_assignment(word: &str) -> bool {
    let is_name = |it: &str| !it.is_empty() && it.chars().all(|at| at.is_ascii_alphanumeric() || at == '_');
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// The words that a shell makes of a command; `None` where a quotation does not end.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = command.chars();
    while let Some(next) = rest.next() {
        match (quote, next) {
            (Some(open), _) if next == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(rest.next()?),
            (None, _) if next.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
