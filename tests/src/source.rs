//! The workspace read as text, for the tests that check how it is written.

use std::fs;
use std::path::{Path, PathBuf};

/// One text file of the workspace.
#[derive(Debug)]
pub struct Source {
    /// Its path below the workspace, with `/` between the parts.
    pub path: String,
    /// What it holds.
    pub text: String,
}

/// Folders that hold nothing written here.
const SKIPPED: &[&str] = &["target", ".git", ".venv", "node_modules", "svc-data", "corpus", "artifacts"];

/// The workspace's own folder.
#[must_use]
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_path_buf()
}

/// Every file whose name ends in one of `endings`, sorted by path. What is no UTF-8 text is left out.
#[must_use]
pub fn files(endings: &[&str]) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, &mut |path| {
        let Ok(below) = path.strip_prefix(&root) else { return };
        let below = below.to_string_lossy().replace('\\', "/");
        if endings.iter().any(|ending| below.ends_with(ending))
            && let Ok(text) = fs::read_to_string(path)
        {
            found.push(Source { path: below, text });
        }
    });
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// One file by its path below the workspace, if it is there.
#[must_use]
pub fn file(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let skipped = entry.file_name().to_str().is_none_or(|name| SKIPPED.contains(&name));
        if path.is_dir() && !skipped {
            walk(&path, visit);
        } else if path.is_file() {
            visit(&path);
        }
    }
}

/// Rust source with each byte sorted into what it belongs to; all three keep the line breaks and the length of the
/// source, and hold blanks where a byte is not theirs.
#[derive(Debug)]
pub struct Parts {
    /// What the compiler compiles, without comments and without what stands inside quotes.
    pub code: String,
    /// Comments and documentation.
    pub comments: String,
    /// What stands inside quotes.
    pub quoted: String,
}

/// What the lexer stands in.
#[derive(Clone, Copy)]
enum State {
    Code,
    Line,
    Block(usize),
    Text,
    /// A raw string, ended by a quote and this many `#`.
    Raw(usize),
}

/// Sorts Rust source into code, comments and quoted text.
#[must_use]
pub fn parts(text: &str) -> Parts {
    let bytes = text.as_bytes();
    let mut out = Lexed::default();
    let mut state = State::Code;
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let (next, length) = match state {
            State::Code => from_code(rest, bytes.get(at.wrapping_sub(1)).copied()),
            State::Line if rest.first() == Some(&b'\n') => (State::Code, 1),
            State::Line => (State::Line, 1),
            State::Block(depth) if rest.starts_with(b"/*") => (State::Block(depth + 1), 2),
            State::Block(1) if rest.starts_with(b"*/") => (State::Code, 2),
            State::Block(depth) if rest.starts_with(b"*/") => (State::Block(depth - 1), 2),
            State::Block(depth) => (State::Block(depth), 1),
            State::Text if rest.first() == Some(&b'\\') => (State::Text, 2),
            State::Text if rest.first() == Some(&b'"') => (State::Code, 1),
            State::Text => (State::Text, 1),
            State::Raw(marks) if ends_raw(rest, marks) => (State::Code, 1 + marks),
            State::Raw(marks) => (State::Raw(marks), 1),
        };
        for byte in rest.iter().take(length) {
            out.push(*byte, if matches!(state, State::Code) { next } else { state });
        }
        state = next;
        at += length;
    }
    out.parts()
}

/// What begins here in code, and how many bytes its beginning has.
fn from_code(rest: &[u8], before: Option<u8>) -> (State, usize) {
    let in_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match rest {
        [b'/', b'/', ..] => (State::Line, 2),
        [b'/', b'*', ..] => (State::Block(1), 2),
        [b'"', ..] => (State::Text, 1),
        [b'r', ..] | [b'b', b'r', ..] if !in_word => {
            let prefix = if rest.first() == Some(&b'b') { 2 } else { 1 };
            let marks = rest.iter().skip(prefix).take_while(|byte| **byte == b'#').count();
            match rest.get(prefix + marks) {
                Some(b'"') => (State::Raw(marks), prefix + marks + 1),
                _ => (State::Code, 1),
            }
        }
        // A character, which may be a quote; a lifetime has no second mark.
        [b'\'', b'\\', ..] => (State::Code, 2 + rest.iter().skip(3).take_while(|byte| **byte != b'\'').count() + 2),
        [b'\'', _, b'\'', ..] => (State::Code, 3),
        [b'\'', 0x80..=0xff, ..] => (State::Code, 2 + rest.iter().skip(1).take_while(|byte| **byte != b'\'').count()),
        _ => (State::Code, 1),
    }
}

fn ends_raw(rest: &[u8], marks: usize) -> bool {
    rest.first() == Some(&b'"') && rest.iter().skip(1).take_while(|byte| **byte == b'#').count() >= marks
}

#[derive(Default)]
struct Lexed {
    code: Vec<u8>,
    comments: Vec<u8>,
    quoted: Vec<u8>,
}

impl Lexed {
    fn push(&mut self, byte: u8, of: State) {
        let blank = if byte == b'\n' { b'\n' } else { b' ' };
        let (code, comment, quoted) = match of {
            State::Code => (byte, blank, blank),
            State::Line | State::Block(_) => (blank, byte, blank),
            State::Text | State::Raw(_) => (blank, blank, byte),
        };
        self.code.push(code);
        self.comments.push(comment);
        self.quoted.push(quoted);
    }

    fn parts(self) -> Parts {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Parts { code: text(self.code), comments: text(self.comments), quoted: text(self.quoted) }
    }
}

/// Code without the items marked `#[cfg(test)]`: what ships. Line breaks stay.
#[must_use]
pub fn shipped(code: &str) -> String {
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(at) = out.get(from..).and_then(|rest| rest.find("#[cfg(test)]")) {
        let begin = from + at;
        let rest = out.get(begin..).unwrap_or_default();
        let end = begin + item_end(rest);
        let blanked: String =
            out.get(begin..end).unwrap_or_default().chars().map(|it| if it == '\n' { '\n' } else { ' ' }).collect();
        from = begin + blanked.len();
        out = format!("{}{blanked}{}", out.get(..begin).unwrap_or_default(), out.get(end..).unwrap_or_default());
    }
    out
}

/// Where the item at the beginning of `code` ends: at its closing brace, or at the semicolon before any brace.
#[must_use]
pub fn item_end(code: &str) -> usize {
    let mut depth = 0_usize;
    let mut round = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round = round.saturating_sub(1),
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 && round == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Where `word` stands in `code` as a whole word.
#[must_use]
pub fn words(code: &str, word: &str) -> Vec<usize> {
    let part = |byte: Option<u8>| byte.is_some_and(|it| it.is_ascii_alphanumeric() || it == b'_');
    let bytes = code.as_bytes();
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| !part(at.checked_sub(1).and_then(|it| bytes.get(it).copied())))
        .filter(|at| !part(bytes.get(at + word.len()).copied()))
        .collect()
}

/// The number of the line that holds byte `at`, from 1.
#[must_use]
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::{item_end, line_of, parts, shipped, words};

    /// Comments, quotes, characters and lifetimes end up where they belong.
    #[test]
    fn source_is_sorted_into_code_comments_and_quotes() {
        let text =
            "let a = \"x // y\"; // no \"code\"\nlet b = '\"'; let c: &'a str = r#\"q\"r\"#; /* /* in */ out */ d()";
        let parts = parts(text);
        assert_eq!(parts.code.len(), text.len());
        assert!(parts.code.contains("let b = '\"'; let c: &'a str ="), "{}", parts.code);
        assert!(parts.code.ends_with("d()") && !parts.code.contains("out"), "{}", parts.code);
        assert!(parts.comments.contains("no \"code\"") && parts.comments.contains("in */ out"), "{}", parts.comments);
        assert!(parts.quoted.contains("x // y") && parts.quoted.contains("q\"r"), "{}", parts.quoted);
    }

    /// Escaped quotes do not end a text, escaped characters are one character.
    #[test]
    fn escapes_do_not_end_what_they_stand_in() {
        let parts = parts("a(\"\\\"b\", '\\'', '\\u{7f}', b'\\\\', 'ß','\"'); c(\"d\")");
        assert!(parts.code.contains("; c("), "{}", parts.code);
        assert!(!parts.code.contains('d'), "{}", parts.code);
    }

    /// Test modules are no part of what ships; what follows them is.
    #[test]
    fn test_modules_do_not_ship() {
        let code = shipped("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { c(); }\n}\nfn d() {}\n");
        assert!(code.contains("fn a") && code.contains("fn d") && !code.contains("fn b"), "{code}");
        assert_eq!(line_of(&code, code.find("fn d").unwrap_or_default()), 6);
        assert!(!shipped("#[cfg(test)]\nmod tests;\nfn d() {}").contains("mod"));
    }

    /// Words are whole words, items end where they end.
    #[test]
    fn words_and_items_have_their_bounds() {
        assert_eq!(words("Scope TokenScope Scopes (Scope)", "Scope").len(), 2);
        assert_eq!(item_end("fn a(b: [u8; 2]) { if c { d } } fn e"), "fn a(b: [u8; 2]) { if c { d } }".len());
    }
}
