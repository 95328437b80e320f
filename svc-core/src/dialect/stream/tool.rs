//! A tool call of a stream of the chat shape, as it comes: its arguments in pieces, whole at some point, and now and then begun anew.

use sha2::{Digest as _, Sha256};

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
    /// The arguments that came, by their digest.
    sum: Sha256,
    /// What came behind them.
    behind: Option<Behind>,
}

/// An object that came behind whole arguments.
#[derive(Debug, Default)]
struct Behind {
    shape: Braces,
    /// Its beginning, as far as it may say nothing.
    head: String,
    sum: Sha256,
}

impl Tool {
    /// A call of this number.
    pub(super) fn new(number: i64) -> Self {
        Self { number, ..Self::default() }
    }

    /// Whether more of it was told than an id: that alone is no call.
    pub(super) fn is_told(&self) -> bool {
        !self.name.is_empty() || !self.waiting.is_empty()
    }

    /// Whether arguments have come whole that say something.
    pub(super) fn is_whole(&self) -> bool {
        self.shape.whole && self.says
    }

    /// Whether a name beside these arguments, told without an id or with this call's, begins another call. What is told again word by
    /// word begins none.
    pub(super) fn is_followed_by(&self, name: &str, arguments: &str) -> bool {
        if self.name.is_empty() || name.is_empty() || arguments.trim().is_empty() || !self.shape.whole {
            return false;
        }
        self.name != name || self.says && begins_object(arguments) && !says_nothing(arguments) && !self.was(arguments)
    }

    /// Takes the next piece of the arguments. Some providers begin with those of a call without any, and send others after them.
    pub(super) fn take(&mut self, piece: &str) {
        if self.shape.whole && !self.says {
            if begins_object(piece) {
                self.waiting.clear();
                (self.shape, self.sum) = (Braces::default(), Sha256::new());
            } else if says_nothing(piece) {
                return;
            }
        }
        self.shape.take(piece);
        self.waiting.push_str(piece);
        self.sum.update(piece);
        self.says = self.says || !says_nothing(&self.waiting);
        self.shape.whole |= !self.says && self.waiting.trim() == "null";
    }

    /// Takes a piece that comes behind arguments which were told as whole. Some providers send an empty object at the end, the arguments
    /// again, or what is left of their own marks: that is no more than noise. Whether it is something that would be lost.
    pub(super) fn take_behind(&mut self, piece: &str) -> bool {
        if self.behind.is_none() && !begins_object(piece) {
            return false;
        }
        let behind = self.behind.get_or_insert_default();
        if behind.head.len() <= NOTHING_MAX {
            behind.head.extend(piece.chars().take(NOTHING_MAX + 1));
        }
        behind.shape.take(piece);
        behind.sum.update(piece);
        let is_nothing = says_nothing(&behind.head);
        if !is_nothing && !self.says {
            return true;
        }
        if !behind.shape.whole {
            return false;
        }
        let is_again = behind.sum.clone().finalize() == self.sum.clone().finalize();
        self.behind = None;
        !is_nothing && !is_again
    }

    fn was(&self, arguments: &str) -> bool {
        Sha256::digest(arguments) == self.sum.clone().finalize()
    }
}

fn begins_object(piece: &str) -> bool {
    piece.trim_start().starts_with('{')
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
    /// Whether more came behind what is no object: it is no one value then, but a text as it stands.
    is_spoiled: bool,
}

impl Braces {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if !self.begun && !byte.is_ascii_whitespace() {
                (self.begun, self.is_other) = (true, byte != b'{');
            }
            let begins_value = self.depth > 0 || self.text || matches!(byte, b'"' | b'[');
            self.is_spoiled |= self.is_other && !byte.is_ascii_whitespace() && (self.whole || !begins_value);
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
        self.whole &= !self.is_spoiled;
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
