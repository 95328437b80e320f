//! Server-sent events out of bytes that are cut anywhere.

use std::borrow::Cow;
use std::ops::Range;

/// The longest event that is read, in bytes.
pub const EVENT_MAX: usize = 8 << 20;

/// Why a provider's stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An event is longer than [`EVENT_MAX`].
    #[error("it sent an event of more than 8 MiB")]
    TooLong,
    /// What it sent is no event of its shape.
    #[error("it sent what is no event of a stream of answers")]
    NotEvents,
    /// It sent more out of its turn, or more kinds of things, than is kept of a stream.
    #[error("it sent more than can be kept until its turn comes")]
    TooMuch,
}

/// What came in and was not yet taken as events.
#[derive(Default)]
pub struct Events {
    buffer: Vec<u8>,
    /// Where the current event begins.
    start: usize,
    /// Where its current line begins, from its own beginning.
    line: usize,
    /// Up to where lines were looked for, from its own beginning.
    seen: usize,
    data: Option<Range<usize>>,
    more: Vec<Range<usize>>,
    begun: bool,
    ended: bool,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its bytes, the blank line included.
    pub raw: &'a [u8],
    /// Its data, lines joined by line feeds; `None` for comments, blank lines and the like.
    pub data: Option<Cow<'a, [u8]>>,
    /// Where the data stands within the raw bytes, where it is one line.
    pub at: Option<usize>,
}

impl Event<'_> {
    /// The value of one of its fields beside its data, such as `id`: the last of that name, without the space before it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let raw = self.raw.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(self.raw);
        let lines = raw.split(|it| matches!(it, b'\n' | b'\r'));
        lines.filter_map(|line| value_of(line, name)).next_back()
    }

    /// Whether it is a comment and no more.
    #[must_use]
    pub fn is_comment(&self) -> bool {
        self.data.is_none() && self.raw.starts_with(b":")
    }
}

/// Nothing of what came.
impl std::fmt::Debug for Events {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Events").field("bytes", &self.buffer.len()).finish_non_exhaustive()
    }
}

impl Events {
    /// Takes what came in next.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Ends the event that is left, where one is, as its blank line would have.
    ///
    /// # Errors
    /// [`Broken`] where what is left has no data: it is thrown away.
    pub fn close(&mut self) -> Result<(), Broken> {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let line = rest.get(self.line..).unwrap_or_default();
        let missing: &[u8] = match rest.last() {
            None => return Ok(()),
            Some(b'\r') => b"\r",
            Some(b'\n') => b"\n",
            Some(_) => b"\n\n",
        };
        if self.data.is_none() && data_of(line).is_none() {
            self.buffer.truncate(self.start);
            return Err(Broken::NotEvents);
        }
        self.buffer.extend_from_slice(missing);
        Ok(())
    }

    /// The next whole event.
    ///
    /// # Errors
    /// [`Broken`] where it is too long.
    pub fn take_next(&mut self) -> Result<Option<Event<'_>>, Broken> {
        loop {
            let pending = self.buffer.get(self.start..).unwrap_or_default();
            let rest = pending.get(self.seen..).unwrap_or_default();
            let Some(offset) = rest.iter().position(|it| matches!(it, b'\n' | b'\r')) else {
                self.seen = pending.len();
                return if pending.len() > EVENT_MAX { Err(Broken::TooLong) } else { Ok(None) };
            };
            let end = self.seen + offset;
            let behind = match (pending.get(end), pending.get(end + 1)) {
                (Some(b'\r'), Some(b'\n')) => end + 2,
                // Whether this line ends in one byte or two is told by the next byte.
                (Some(b'\r'), None) if !self.ended => {
                    self.seen = end;
                    return Ok(None);
                }
                _ => end + 1,
            };
            let line = self.line;
            let content = pending.get(line..end).unwrap_or_default();
            let bom = if self.begun { 0 } else { content.strip_prefix(b"\xEF\xBB\xBF").map_or(0, |_| 3) };
            self.begun = true;
            let content = content.get(bom..).unwrap_or_default();
            let blank = content.is_empty();
            if let Some(value) = data_of(content) {
                let from = end - value;
                if self.data.is_none() { self.data = Some(from..end) } else { self.more.push(from..end) }
            }
            (self.line, self.seen) = (behind, behind);
            if behind > EVENT_MAX {
                return Err(Broken::TooLong);
            }
            if blank {
                return Ok(self.take(behind));
            }
        }
    }

    /// The event of so many bytes.
    fn take(&mut self, length: usize) -> Option<Event<'_>> {
        let start = self.start;
        self.start += length;
        (self.line, self.seen) = (0, 0);
        let (first, more) = (self.data.take(), std::mem::take(&mut self.more));
        let raw = self.buffer.get(start..self.start)?;
        let at = first.as_ref().filter(|_| more.is_empty()).map(|it| it.start);
        let data = first.map(|first| {
            let line = |it: Range<usize>| raw.get(it).unwrap_or_default();
            if more.is_empty() {
                return Cow::Borrowed(line(first));
            }
            let mut joined = line(first).to_vec();
            for it in more {
                joined.push(b'\n');
                joined.extend_from_slice(line(it));
            }
            Cow::Owned(joined)
        });
        Some(Event { raw, data, at })
    }
}

/// How many bytes of this line are data, at its end.
fn data_of(line: &[u8]) -> Option<usize> {
    value_of(line, "data").map(<[u8]>::len)
}

/// The value of this field, where the line is one of it.
fn value_of<'a>(line: &'a [u8], field: &str) -> Option<&'a [u8]> {
    match line.strip_prefix(field.as_bytes())? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The data of every event, and all raw bytes, for a text cut into pieces of so many bytes.
    fn split(text: &[u8], piece: usize) -> (Vec<Option<String>>, Vec<u8>) {
        let mut events = Events::default();
        let (mut data, mut raw) = (Vec::new(), Vec::new());
        let mut take = |events: &mut Events| {
            while let Some(event) = events.take_next().unwrap() {
                raw.extend_from_slice(event.raw);
                if let Some(at) = event.at {
                    let it = event.data.as_deref().unwrap();
                    assert_eq!(&event.raw[at..at + it.len()], it);
                }
                data.push(event.data.map(|it| String::from_utf8(it.into_owned()).unwrap()));
            }
        };
        for chunk in text.chunks(piece) {
            events.push(chunk);
            take(&mut events);
        }
        events.end();
        take(&mut events);
        (data, raw)
    }

    /// Fields are read by their whole names, the last of each.
    #[test]
    fn fields_are_read_by_name() {
        for (text, id, retry) in [
            ("\u{feff}id: 1\nretry:50\ndata:\n\n", Some("1"), Some("50")),
            ("id:1\r\nid:  2\r\n\r\n", Some(" 2"), None),
            ("id\rdata: id: 7\r\r", Some(""), None),
            ("ids: 1\n: id: 1\nretry : 5\n\n", None, None),
        ] {
            let mut events = Events::default();
            events.push(text.as_bytes());
            events.end();
            let event = events.take_next().unwrap().unwrap();
            let read = |name| event.field(name).map(|it| std::str::from_utf8(it).unwrap());
            assert_eq!((read("id"), read("retry")), (id, retry), "{text:?}");
        }
    }

    /// Wherever the bytes are cut, and however lines end, the same events come out, and their bytes are all there.
    #[test]
    fn events_do_not_depend_on_where_bytes_are_cut() {
        for (text, expected) in [
            ("data: a\n\ndata:b\n\n", vec![Some("a"), Some("b")]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", vec![Some("a"), Some("b")]),
            ("data: a\r\rdata: b\r\r", vec![Some("a"), Some("b")]),
            ("\u{feff}data: a\n\n: comment\n\n\n", vec![Some("a"), None, None]),
            ("event: x\nid: 1\nretry: 5\ndata: {\ndata: }\ndatas: no\n\n", vec![Some("{\n}")]),
            ("data\n\ndata:\n\ndata:  two\n\n", vec![Some(""), Some(""), Some(" two")]),
            (": ping\ndata: é€😂\n\n", vec![Some("é€😂")]),
            ("data: no end\n", vec![]),
        ] {
            for piece in 1..=text.len() {
                let (data, raw) = split(text.as_bytes(), piece);
                assert_eq!(data.iter().map(Option::as_deref).collect::<Vec<_>>(), expected, "{text:?} by {piece}");
                assert!(text.as_bytes().starts_with(&raw), "{text:?} by {piece}");
            }
        }
    }

    /// An event that never ends is not kept for ever, and it does not matter in what pieces it came.
    #[test]
    fn an_event_has_a_longest_length() {
        let long = [b"data: ".to_vec(), vec![b'x'; EVENT_MAX], b"\n\n".to_vec()].concat();
        let mut whole = Events::default();
        whole.push(&long);
        assert_eq!(whole.take_next(), Err(Broken::TooLong));
        let mut pieces = Events::default();
        let broken = long.chunks(1 << 20).any(|chunk| {
            pieces.push(chunk);
            pieces.take_next() == Err(Broken::TooLong)
        });
        assert!(broken);
    }
}
