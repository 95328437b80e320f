//! Reading JSON strictly: one pass, no value made.

use std::borrow::Cow;

use super::{Form, Node, NotJson, Value, offset, quoted};
use crate::value::json::DEPTH_MAX;

/// The most values, names of members included, of a caller's text. One takes more room when it was read than in the text.
const VALUES_MAX: usize = 1 << 20;
/// Up to so many members, comparing every pair is cheaper than sorting.
const PAIRWISE_MAX: usize = 12;

/// A text that is being read.
pub(super) struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    strict: bool,
    pub(super) nodes: Vec<Node>,
}

impl<'a> Scan<'a> {
    /// From the start of a text, in which where `strict` no name may stand twice, nor half a surrogate pair; the list of nodes
    /// is empty.
    pub(super) const fn new(text: &'a str, strict: bool, nodes: Vec<Node>) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, strict, nodes }
    }

    /// Reads one value, and that nothing stands behind it.
    pub(super) fn whole(&mut self) -> Result<(), NotJson> {
        self.value(DEPTH_MAX)?;
        self.space();
        if self.at == self.bytes.len() { Ok(()) } else { self.fault("holds something behind its value") }
    }

    fn fault<T>(&self, what: &str) -> Result<T, NotJson> {
        Err(NotJson(format!("{what} at byte {}", self.at).into()))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Adds a node that begins here; its end is told by [`Self::close`].
    fn open(&mut self, form: Form) -> Result<usize, NotJson> {
        let node = self.nodes.len();
        if self.strict && node == VALUES_MAX {
            return self.fault(&format!("holds more than {VALUES_MAX} values"));
        }
        self.nodes.push(Node { start: offset(self.at), end: 0, next: 0, form });
        Ok(node)
    }

    fn close(&mut self, node: usize) {
        let next = offset(self.nodes.len());
        if let Some(it) = self.nodes.get_mut(node) {
            it.end = offset(self.at);
            it.next = next;
        }
    }

    fn value(&mut self, levels: usize) -> Result<(), NotJson> {
        self.space();
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'\x7b') => self.object(levels),
            Some(b'[') => self.list(levels),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Form::Bool(true)),
            Some(b'f') => self.word("false", Form::Bool(false)),
            Some(b'n') => self.word("null", Form::Null),
            Some(_) => self.fault("holds no value"),
            None => self.fault("ends too early"),
        }
    }

    fn word(&mut self, word: &str, form: Form) -> Result<(), NotJson> {
        if !self.bytes.get(self.at..).unwrap_or_default().starts_with(word.as_bytes()) {
            return self.fault("holds no value");
        }
        let node = self.open(form)?;
        self.at += word.len();
        self.close(node);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.fault("holds a number without digits") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), NotJson> {
        let node = self.open(Form::Number)?;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return self.fault("holds a number that begins with 0");
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.close(node);
        Ok(())
    }

    fn string(&mut self) -> Result<(), NotJson> {
        let node = self.open(Form::Plain)?;
        self.at += 1;
        loop {
            self.at += plain(self.bytes.get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    if let Some(it) = self.nodes.get_mut(node) {
                        it.form = Form::Escaped;
                    }
                    self.escape()?;
                }
                Some(_) => return self.fault("holds a control character in a string"),
                None => return self.fault("ends in a string"),
            }
        }
        self.at += 1;
        self.close(node);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), NotJson> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => match self.unit(self.at)? {
                0xD800..=0xDFFF if !self.strict => {
                    self.at += 6;
                    Ok(())
                }
                0xD800..=0xDBFF => {
                    let pair = self.bytes.get(self.at + 6..self.at + 8) == Some(b"\\u");
                    if !pair || !matches!(self.unit(self.at + 6)?, 0xDC00..=0xDFFF) {
                        return self.fault("holds half a surrogate pair");
                    }
                    self.at += 12;
                    Ok(())
                }
                0xDC00..=0xDFFF => self.fault("holds half a surrogate pair"),
                _ => {
                    self.at += 6;
                    Ok(())
                }
            },
            Some(_) | None => self.fault("holds an unknown escape"),
        }
    }

    /// The code unit of the escape `\uXXXX` that begins at `at`.
    fn unit(&self, at: usize) -> Result<u32, NotJson> {
        let digits = self.bytes.get(at + 2..at + 6).filter(|it| it.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|it| std::str::from_utf8(it).ok()).and_then(|it| u32::from_str_radix(it, 16).ok());
        unit.map_or_else(|| self.fault("holds an unknown escape"), Ok)
    }

    fn list(&mut self, levels: usize) -> Result<(), NotJson> {
        let inner = self.inner(levels)?;
        let node = self.open(Form::List)?;
        self.at += 1;
        self.space();
        if self.peek() != Some(b']') {
            loop {
                self.value(inner)?;
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    Some(_) => return self.fault("lacks a comma in a list"),
                    None => return self.fault("ends in a list"),
                }
            }
        }
        self.at += 1;
        self.close(node);
        Ok(())
    }

    fn object(&mut self, levels: usize) -> Result<(), NotJson> {
        let inner = self.inner(levels)?;
        let node = self.open(Form::Object)?;
        self.at += 1;
        self.space();
        if self.peek() != Some(b'\x7d') {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return self.fault("lacks a member's name");
                }
                self.string()?;
                self.space();
                if self.peek() != Some(b':') {
                    return self.fault("lacks a colon behind a member's name");
                }
                self.at += 1;
                self.value(inner)?;
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'\x7d') => break,
                    Some(_) => return self.fault("lacks a comma in an object"),
                    None => return self.fault("ends in an object"),
                }
            }
        }
        self.at += 1;
        self.close(node);
        if !self.strict {
            return Ok(());
        }
        match repeated(Value { text: self.text, nodes: &self.nodes, at: node }) {
            Some(name) => Err(NotJson(format!("holds the member name `{}` twice", quoted(&name)).into())),
            None => Ok(()),
        }
    }

    fn inner(&self, levels: usize) -> Result<usize, NotJson> {
        levels.checked_sub(1).ok_or_else(|| NotJson(format!("is nested deeper than {DEPTH_MAX} levels").into()))
    }
}

/// How many bytes go by before a quote, a backslash or a control character. Eight at a time: prompts are long.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & TOPS
    }
    let (words, _) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = zeros(word ^ u64::from_ne_bytes([b'"'; 8]));
        let slash = zeros(word ^ u64::from_ne_bytes([b'\\'; 8]));
        let control = word.wrapping_sub(u64::from_ne_bytes([0x20; 8])) & !word & TOPS;
        if (quote | slash | control) != 0 {
            break;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|it| matches!(it, b'"' | b'\\' | 0..=0x1F)).unwrap_or(rest.len())
}

/// A name that stands twice. Sorting, not hashing: no choice of names makes it slow, and it needs no random seed.
fn repeated(object: Value<'_>) -> Option<Cow<'_, str>> {
    let mut seen: [&str; PAIRWISE_MAX] = [""; PAIRWISE_MAX];
    for (at, (name, _)) in object.members().enumerate() {
        let raw = name.raw();
        // A name that is written with escapes may be one that is written without.
        if at >= PAIRWISE_MAX || name.form() == Form::Escaped {
            return repeated_of_many(object);
        }
        if seen.iter().take(at).any(|it| *it == raw) {
            return name.text();
        }
        if let Some(slot) = seen.get_mut(at) {
            *slot = raw;
        }
    }
    None
}

fn repeated_of_many(object: Value<'_>) -> Option<Cow<'_, str>> {
    let mut names: Vec<Cow<'_, str>> = object.members().filter_map(|(name, _)| name.text()).collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(a.clone()),
        _ => None,
    })
}
