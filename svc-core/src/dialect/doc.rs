//! JSON as it lies in its text: read once, strictly, with where each value begins and ends.
//!
//! A model's traffic is passed on as it was written, but for a few places. So it is not turned into values and back:
//! its text is kept, beside a flat list of what stands where.
//!
//! **Invariant:** it takes what [`Json::parse`](crate::value::json::Json::parse) takes, up to a number of values.

mod scan;

use std::borrow::Cow;
use std::fmt;

use self::scan::Scan;

/// So many characters of a caller's own text stand in a message.
const QUOTED_MAX: usize = 64;
/// The first of the code units that are second halves of surrogate pairs.
const SECOND_HALVES: u16 = 0xdc00;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, by its literal.
    Number,
    /// A string without escapes.
    Plain,
    /// A string with escapes.
    Escaped,
    /// An array.
    List,
    /// An object.
    Object,
}

/// One value: where it stands in the text, and which node follows once all within it are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    start: u32,
    end: u32,
    next: u32,
    form: Form,
}

/// The nodes of a text, outermost first; an object's names and values take turns. Kept apart from the text so that one
/// list serves the events of a whole stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tape(Vec<Node>);

/// Why a text is not JSON: one clause for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotJson(Cow<'static, str>);

impl fmt::Display for NotJson {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Tape {
    /// Reads one JSON text of a caller's, in which no name may stand twice, nor half a surrogate pair, nor more values than a
    /// conversation has: their list would be many times the text.
    pub(super) fn of(text: &str) -> Result<Self, NotJson> {
        let mut tape = Self::default();
        tape.fill(text, true)?;
        Ok(tape)
    }

    /// Reads the next text of a provider's in place of the last. Of a name that stands twice the first holds: nothing is
    /// decided by it, and looking for such names would be half the work. Half a surrogate pair may stand in it: some cut a text
    /// between the halves, and send the other one next.
    pub(super) fn read(&mut self, text: &str) -> Result<(), NotJson> {
        self.fill(text, false)
    }

    fn fill(&mut self, text: &str, strict: bool) -> Result<(), NotJson> {
        self.0.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(NotJson("is over 4 GiB".into()));
        }
        let mut scan = Scan::new(text, strict, std::mem::take(&mut self.0));
        let read = scan.whole();
        self.0 = std::mem::take(&mut scan.nodes);
        if read.is_err() {
            self.0.clear();
        }
        read
    }

    /// The outermost value of the text that was read last; `text` must be that text.
    pub(super) fn root<'a>(&'a self, text: &'a str) -> Value<'a> {
        Value { text, nodes: &self.0, at: 0 }
    }
}

/// A value in its text.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    text: &'a str,
    nodes: &'a [Node],
    at: usize,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.raw())
    }
}

impl<'a> Value<'a> {
    fn node(&self) -> Option<&'a Node> {
        self.nodes.get(self.at)
    }

    /// What it is.
    pub(super) fn form(&self) -> Form {
        self.node().map_or(Form::Null, |it| it.form)
    }

    /// Where it stands in the text.
    pub(super) fn span(&self) -> (usize, usize) {
        self.node().map_or((0, 0), |it| (index(it.start), index(it.end)))
    }

    /// As it was written.
    pub(super) fn raw(&self) -> &'a str {
        let (start, end) = self.span();
        self.text.get(start..end).unwrap_or_default()
    }

    /// The text, where this is one; U+FFFD stands in it for half a surrogate pair.
    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        match self.form() {
            Form::Plain => Some(Cow::Borrowed(unquoted(self.raw()))),
            Form::Escaped => Some(Cow::Owned(unescaped(unquoted(self.raw())))),
            Form::Null | Form::Bool(_) | Form::Number | Form::List | Form::Object => None,
        }
    }

    /// The text as it was written, between its quotes, where this is one: such pieces, one behind the other, are one text also
    /// where they were cut between the halves of a surrogate pair.
    pub(super) fn written(&self) -> Option<&'a str> {
        self.is_text().then(|| unquoted(self.raw()))
    }

    /// Whether this is exactly this text.
    pub(super) fn is(&self, text: &str) -> bool {
        let Some(node) = self.node() else { return false };
        match node.form {
            Form::Plain => {
                let (start, end) = (index(node.start) + 1, index(node.end).saturating_sub(1));
                // Most names differ in their length; that is told without looking at them.
                end.saturating_sub(start) == text.len() && self.text.as_bytes().get(start..end) == Some(text.as_bytes())
            }
            Form::Escaped => self.text().is_some_and(|it| it == text),
            Form::Null | Form::Bool(_) | Form::Number | Form::List | Form::Object => false,
        }
    }

    /// Whether this is a text.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.form(), Form::Plain | Form::Escaped)
    }

    /// Whether this is a text of no characters.
    pub(super) fn is_empty_text(&self) -> bool {
        self.is_text() && self.raw().len() == 2
    }

    /// Whether this is `null`.
    pub(super) fn is_null(&self) -> bool {
        self.form() == Form::Null
    }

    /// The truth value, where this is one.
    pub(super) fn bool(&self) -> Option<bool> {
        match self.form() {
            Form::Bool(it) => Some(it),
            Form::Null | Form::Number | Form::Plain | Form::Escaped | Form::List | Form::Object => None,
        }
    }

    /// The whole number, where this was written as one that fits.
    pub(super) fn integer(&self) -> Option<i64> {
        if self.form() == Form::Number { self.raw().parse().ok() } else { None }
    }

    /// The members in the order sent, where this is an object; else none.
    pub(super) fn members(&self) -> impl Iterator<Item = (Self, Self)> + use<'a> {
        let mut children = self.children(Form::Object);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// The items, where this is a list; else none.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        self.children(Form::List)
    }

    fn children(&self, form: Form) -> Children<'a> {
        let (at, end) = match self.node() {
            Some(node) if node.form == form => (self.at + 1, index(node.next)),
            Some(_) | None => (0, 0),
        };
        Children { text: self.text, nodes: self.nodes, at, end }
    }

    /// The member of this name, where this is an object that has one.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        self.members().find(|(it, _)| it.is(name)).map(|(_, value)| value)
    }

    /// The member of this name unless it is `null`.
    pub(super) fn given(&self, name: &str) -> Option<Self> {
        self.get(name).filter(|it| !it.is_null())
    }

    /// The text of the member of this name.
    pub(super) fn text_of(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.text()
    }

    /// Whether the member of this name is exactly this text.
    pub(super) fn has(&self, name: &str, text: &str) -> bool {
        self.get(name).is_some_and(|it| it.is(text))
    }

    /// UTF-8 bytes of the text; 0 where this is none.
    pub(super) fn text_len(&self) -> u64 {
        match self.form() {
            Form::Plain => length(unquoted(self.raw())),
            Form::Escaped => unescaped_len(unquoted(self.raw())),
            Form::Null | Form::Bool(_) | Form::Number | Form::List | Form::Object => 0,
        }
    }
}

/// Where a text ends that comes in pieces, which may be cut between the halves of a surrogate pair: the first half waits there for
/// the other.
#[derive(Debug, Default)]
pub(super) struct Seam(String);

impl Seam {
    /// Whether the text that has come ends within a sign.
    pub(super) fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// What the next piece means, given as it was written, behind the half that waits; nothing where half a pair is alone: no
    /// sign is made up for it.
    pub(super) fn join<'a>(&mut self, written: &'a str) -> Option<Cow<'a, str>> {
        if written.is_empty() || !(self.is_open() || written.contains('\\')) {
            return Some(Cow::Borrowed(written));
        }
        let all = std::mem::take(&mut self.0) + written;
        let mut text = String::with_capacity(all.len());
        let mut rest = all.as_str();
        while let Some((plain, escape)) = rest.split_once('\\') {
            let (taken, meant) = meant(escape);
            text.push_str(plain);
            match meant {
                Some(sign) => text.push(sign),
                None if escape.len() == taken && unit(escape).is_some_and(|it| it < SECOND_HALVES) => {
                    self.0 = format!("\\{escape}");
                }
                None => return None,
            }
            rest = escape.get(taken..).unwrap_or_default();
        }
        text.push_str(rest);
        Some(Cow::Owned(text))
    }
}

/// What a text means that is written with escapes.
fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        let (taken, meant) = meant(escape);
        text.push_str(plain);
        text.push(meant.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = escape.get(taken..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// UTF-8 bytes of a text that is written with escapes.
fn unescaped_len(raw: &str) -> u64 {
    let mut bytes = 0;
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        let (taken, meant) = meant(escape);
        bytes += length(plain) + length(meant.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]));
        rest = escape.get(taken..).unwrap_or_default();
    }
    bytes + length(rest)
}

/// How many bytes behind its backslash an escape has, and what it means. The halves of a surrogate pair are one; half of one
/// alone means nothing.
fn meant(escape: &str) -> (usize, Option<char>) {
    let Some(first) = unit(escape) else {
        return match escape.as_bytes().first() {
            Some(b'b') => (1, Some('\u{8}')),
            Some(b'f') => (1, Some('\u{c}')),
            Some(b'n') => (1, Some('\n')),
            Some(b'r') => (1, Some('\r')),
            Some(b't') => (1, Some('\t')),
            other => (1, other.copied().map(char::from)),
        };
    };
    if let Some(Ok(it)) = char::decode_utf16([first]).next() {
        return (5, Some(it));
    }
    let second = escape.get(5..).and_then(|it| unit(it.strip_prefix('\\')?));
    match second.and_then(|second| char::decode_utf16([first, second]).next()?.ok()) {
        Some(pair) => (11, Some(pair)),
        None => (5, None),
    }
}

/// The code unit of the escape `uXXXX`.
fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok()
}

/// UTF-8 bytes of a text.
pub(super) fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// What stands between the quotes of a string.
fn unquoted(raw: &str) -> &str {
    raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default()
}

/// The values directly within another.
#[derive(Clone, Copy)]
struct Children<'a> {
    text: &'a str,
    nodes: &'a [Node],
    at: usize,
    end: usize,
}

impl<'a> Iterator for Children<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.at >= self.end {
            return None;
        }
        let value = Value { text: self.text, nodes: self.nodes, at: self.at };
        self.at = index(value.node()?.next);
        Some(value)
    }
}

/// A caller's text, cut to what a message can bear, with what does not show written as escapes.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default().escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::*;
    use crate::value::json::{DEPTH_MAX, Json};

    fn agrees(text: &str) {
        let (own, strict) = (Tape::of(text), Json::parse(text.as_bytes()));
        match (&own, &strict) {
            (Ok(tape), Ok(json)) => {
                assert_eq!(Json::parse(tape.root(text).raw().as_bytes()).as_ref(), Ok(json));
                same(tape.root(text), json);
            }
            (Err(_), Err(_)) => {}
            _ => panic!("{text:?}: {own:?} beside {strict:?}"),
        }
    }

    fn same(value: Value<'_>, json: &Json) {
        match json {
            Json::Null => assert!(value.is_null()),
            Json::Bool(it) => assert_eq!(value.bool(), Some(*it)),
            Json::Number(_) => assert_eq!(value.form(), Form::Number),
            Json::Text(it) => {
                assert_eq!(value.text().as_deref(), Some(&**it));
                assert_eq!(value.text_len(), it.len() as u64);
            }
            Json::List(items) => {
                assert_eq!(value.items().count(), items.len());
                value.items().zip(items).for_each(|(a, b)| same(a, b));
            }
            Json::Object(members) => {
                assert_eq!(value.members().count(), members.len());
                for ((name, value), (other, json)) in value.members().zip(members) {
                    assert!(name.is(other));
                    same(value, json);
                }
            }
        }
    }

    /// Two readers of one body must not disagree: what the gate's own reader takes and refuses, this one does.
    #[test]
    fn it_reads_what_the_other_reader_reads() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "nul",
            "{\"a\"}",
            "[1,]",
            "{\"a\":1,}",
            "[1]x",
            "{} {}",
            "01",
            "+1",
            ".5",
            "1.",
            "1e",
            "-",
            "NaN",
            "\"\n\"",
            "\"\0\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\u{feff}{}",
            "{\"a\":1,\"a\":1}",
            "{\"a\":1,\"\\u0061\":2}",
            "[{\"a\":{\"b\":1,\"b\":1}}]",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800x\"",
            "\"\\ud83d\\ud83d\"",
            "\"\\u+123\"",
            "\"\\ud83d\\ude00\"",
            "{\"a\":[1,2,{\"b\":\"\\n\"}],\"c\":-0.5e+3}",
            " [ 1 , \"€\" ] ",
            "\"abcdefgh\\tijklmnop\"",
            "\"1234567\x7f\u{80}\"",
            "{\"a\" : {} , \"b\" : [ ] }",
            "-",
            "--1",
            "1-",
            "[1 2]",
            "{\"a\":1 \"b\":2}",
            "truex",
            "[1e400,-1E+999]",
            "01e400",
        ] {
            agrees(text);
        }
        let many: String = (0..40).map(|it| format!("\"n{it}\":{it},")).collect();
        agrees(&format!("{{{many}\"x\":1}}"));
        agrees(&format!("{{{many}\"n7\":1}}"));
        for deep in [DEPTH_MAX, DEPTH_MAX + 1] {
            agrees(&format!("{}{}", "[".repeat(deep), "]".repeat(deep)));
        }
    }

    /// A caller's text of very many small values is refused before their list takes more room than any text may; a provider's
    /// answer may have them, as probabilities of tokens are.
    #[test]
    fn the_values_of_a_callers_text_are_bounded() {
        let most = format!("[{}0]", "0,".repeat((1 << 20) - 2));
        Tape::of(&most).unwrap();
        let more = most.replacen('0', "0,0", 1);
        let refused = Tape::of(&more).unwrap_err().to_string();
        assert!(refused.starts_with("holds more than 1048576 values at byte "), "{refused}");
        Tape::default().read(&more).unwrap();
    }

    proptest! {
        #[test]
        fn any_text_is_read_alike(text in "[\\[\\]{}:, \"a\\\\u0-9eEdD.tnrflse+-]{0,24}") {
            agrees(&text);
        }
    }
}
