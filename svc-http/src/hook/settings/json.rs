//! JSON with the place of everything in it, so that it can be changed without being written anew.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::hook::plain;

/// Lists and objects in one another.
const DEPTH_MAX: usize = 64;
/// Characters of a name that are shown of it.
const NAME_SHOWN_MAX: usize = 64;

/// Whether comments, and a comma behind the last of a list, may stand in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comments {
    Allowed,
    Refused,
}

/// A value and the bytes that it takes.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Object(Vec<Member>),
    List(Vec<Node>),
    Text(String),
    Other(Value),
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// From the name's quote to the end of the value.
    pub(super) span: Range<usize>,
    pub(super) key: String,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(_))
    }

    pub(super) fn members(&self) -> &[Member] {
        if let Kind::Object(members) = &self.kind { members } else { &[] }
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Kind::List(items) = &self.kind { items } else { &[] }
    }

    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        self.members().iter().find(|it| it.key == key).map(|it| &it.value)
    }

    /// Where its members or items stand.
    pub(super) fn children(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|it| it.span.clone()).collect(),
            Kind::List(items) => items.iter().map(|it| it.span.clone()).collect(),
            Kind::Text(_) | Kind::Other(_) => Vec::new(),
        }
    }

    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|it| (it.key.clone(), it.value.value())).collect(),
            Kind::List(items) => items.iter().map(Self::value).collect(),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::Other(value) => value.clone(),
        }
    }
}

/// Reads a text in which every name stands once in its object: of two, clients read the last, and what is put into the other
/// would never run.
///
/// # Errors
/// What is wrong with it, as a clause, and in which line.
pub(super) fn parse(text: &str, comments: Comments) -> Result<Node, String> {
    let mut reader = Reader { text, at: 0, comments };
    let read = reader.value(0).and_then(|node| {
        reader.skip()?;
        if reader.peek().is_some() { Err("something stands behind the end".into()) } else { Ok(node) }
    });
    read.map_err(|fault| {
        let line = text.get(..reader.at).unwrap_or(text).matches('\n').count() + 1;
        match fault {
            Fault::Broken(why) => format!("is not JSON: {why} in line {line}"),
            Fault::Twice(name) => format!("has `{name}` twice in one object, again in line {line}"),
        }
    })
}

/// Why a text cannot be worked on.
enum Fault {
    /// It is not JSON.
    Broken(&'static str),
    /// Its object has this name already.
    Twice(String),
}

impl From<&'static str> for Fault {
    fn from(why: &'static str) -> Self {
        Self::Broken(why)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    comments: Comments,
}

type Read<T> = Result<T, Fault>;

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over blanks and comments.
    fn skip(&mut self) -> Read<()> {
        loop {
            let blanks = self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blanks;
            if self.comments == Comments::Refused || !self.rest().starts_with('/') {
                return Ok(());
            }
            let end = if self.rest().starts_with("//") {
                self.rest().find('\n').unwrap_or_else(|| self.rest().len())
            } else if self.rest().starts_with("/*") {
                self.rest().find("*/").ok_or("a comment does not end")? + 2
            } else {
                return Err("a `/` begins no comment".into());
            };
            self.at += end;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn value(&mut self, depth: usize) -> Read<Node> {
        self.skip()?;
        if depth > DEPTH_MAX {
            return Err("too much stands in one another".into());
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.object(depth)?),
            Some(b'[') => Kind::List(self.each(b']', |it| it.value(depth + 1))?),
            Some(b'"') => Kind::Text(self.string()?),
            Some(_) => Kind::Other(self.word()?),
            None => return Err("the text breaks off".into()),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Read<Vec<Member>> {
        let mut names = BTreeSet::new();
        self.each(b'}', |reader| {
            let member = reader.member(depth)?;
            if names.insert(member.key.clone()) {
                return Ok(member);
            }
            reader.at = member.span.start;
            Err(Fault::Twice(plain(&member.key, NAME_SHOWN_MAX)))
        })
    }

    fn each<T>(&mut self, close: u8, mut one: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            self.skip()?;
            let may_end = out.is_empty() || self.comments == Comments::Allowed;
            if may_end && self.take(close) {
                return Ok(out);
            }
            out.push(one(self)?);
            self.skip()?;
            if !self.take(b',') {
                return if self.take(close) { Ok(out) } else { Err("a comma or an end is missing".into()) };
            }
        }
    }

    fn member(&mut self, depth: usize) -> Read<Member> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err("a member has no name in quotes".into());
        }
        let key = self.string()?;
        self.skip()?;
        if !self.take(b':') {
            return Err("a colon is missing".into());
        }
        let value = self.value(depth + 1)?;
        Ok(Member { span: start..self.at, key, value })
    }

    fn string(&mut self) -> Read<String> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err("a text does not end".into()),
            }
        }
        let quoted = self.text.get(self.at..=end).ok_or("a text does not end")?;
        let read = serde_json::from_str(quoted).map_err(|_| "a text is broken")?;
        self.at = end + 1;
        Ok(read)
    }

    fn word(&mut self) -> Read<Value> {
        let is_part = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
        let length = self.rest().len() - self.rest().trim_start_matches(is_part).len();
        let word = self.rest().get(..length).unwrap_or_default();
        let read = serde_json::from_str(word).map_err(|_| "a value is broken")?;
        self.at += length;
        Ok(read)
    }
}
