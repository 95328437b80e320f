//! Which commands in a client's settings are the hook's own, and which are somebody else's.

use std::fs;
use std::path::Path;

use crate::hook::Client;
use crate::hook::place::FILE_NAME;

/// What the program is called where nobody has named its file anew.
const NAMES: [&str; 2] = ["svc", "svc.exe"];
/// The word by which the program is told to be the hook.
const HOOK: &str = "hook";
/// What follows a command in a shell that is heeded where the command did not go well.
pub(super) const OR: &str = "||";

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
