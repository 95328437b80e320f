//! A tool call of a stream of the chat shape, as it comes: its arguments in pieces, whole at some point, and now and then begun anew.

use super::super::doc::Seam;

/// Bytes of the longest arguments of a call without any, with space between their signs.
const NOTHING_MAX: usize = 32;

/// A tool call.
#[derive(Debug, Default)]
pub(super) struct Tool {
    /// The number that the provider gives it.
    pub(super) number: i64,
    pub(super) id: String,
    pub(super) name: String,
    /// What the provider tells beside it and is to be told again.
    pub(super) beside: String,
    /// The id that the client was told, once it was.
    pub(super) told: String,
    /// Arguments that wait to be written.
    pub(super) waiting: String,
    /// Where those that came end.
    pub(super) seam: Seam,
    pub(super) shape: Braces,
    pub(super) begun: bool,
    /// Whether the client was told what is to be told again.
    pub(super) is_kept: bool,
    /// Whether arguments have come that say something.
    pub(super) says: bool,
    /// Whether arguments that were no object were written as one.
    pub(super) is_written: bool,
}

impl Tool {
    /// Whether more of it was told than an id: that alone is no call.
    pub(super) fn is_told(&self) -> bool {
        !self.name.is_empty() || !self.waiting.is_empty()
    }

    /// Whether arguments have come whole that say something.
    pub(super) fn is_whole(&self) -> bool {
        self.shape.whole && self.says
    }

    /// Takes the next piece of the arguments. Some providers begin with those of a call without any, and send others after them.
    pub(super) fn take(&mut self, piece: &str) {
        if self.shape.whole && !self.says && piece.trim_start().starts_with('{') {
            self.waiting.clear();
            self.shape = Braces::default();
        }
        self.shape.take(piece);
        self.waiting.push_str(piece);
        self.says = self.says || !says_nothing(&self.waiting);
        self.shape.whole |= !self.says && self.waiting.trim() == "null";
    }
}

/// How far a JSON object has come, piece by piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Braces {
    depth: u32,
    text: bool,
    escaped: bool,
    pub(super) whole: bool,
    /// Whether anything but space has come.
    begun: bool,
    /// Whether it begins as no object does.
    pub(super) is_other: bool,
}

impl Braces {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if !self.begun && !byte.is_ascii_whitespace() {
                (self.begun, self.is_other) = (true, byte != b'{');
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.text => self.escaped = true,
                b'"' => {
                    self.text = !self.text;
                    self.whole |= !self.text && self.depth == 0;
                }
                _ if self.text => {}
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.whole = self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

/// Whether arguments are those of a call that has none, or may yet be.
fn says_nothing(arguments: &str) -> bool {
    if arguments.len() > NOTHING_MAX {
        return false;
    }
    let signs: String = arguments.split_ascii_whitespace().collect();
    ["{}", "[]", "\"\"", "null"].iter().any(|it| it.starts_with(&signs))
}
