//! The head of an answer and where its body ends (RFC 9112).
//!
//! **Invariant:** a body whose end is in doubt is no whole answer, and its connection is not used again.

use svc_core::value::secret::Secret;

use super::failed::Reason;
use crate::clock::{http_date_s, now_s};

/// Headers of an answer that are read.
const HEADERS_MAX: usize = 128;
/// Bytes of the head of an answer, and of what may follow its last chunk.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the longest name of a session that is sent back: some hold all that their server knows of it.
const SESSION_BYTES_MAX: usize = 8 * 1024;
/// Digits of the size of a chunk.
const SIZE_DIGITS_MAX: u8 = 15;

/// What of an answer's head matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// How it went.
    pub status: u16,
    /// What the body is.
    pub content_type: Type,
    /// Whether the body is packed in a way that nobody asked for.
    pub packed: bool,
    /// How long the sender asks to be left alone.
    pub retry_after_s: Option<u64>,
    /// The session of an MCP server.
    pub session: Named,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the connection may be used again once the body is read.
    pub keep: bool,
}

/// What an answer says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// One JSON text.
    Json,
    /// Server-sent events.
    Events,
    /// Anything else.
    Other,
}

/// The session of an MCP server that an answer names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// None.
    Nothing,
    /// This one.
    Session(Box<str>),
    /// One whose name cannot be sent back.
    Unsendable,
}

/// Where a body ends, and how far it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes more.
    Length(u64),
    /// After the last chunk.
    Chunked(Chunk),
    /// With the connection.
    UntilClosed,
    /// It has.
    Ended,
}

/// Where within chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// In the size: what it is as yet, and of how many digits.
    Size(u64, u8),
    /// Behind the size, up to the end of the line.
    Extension(u64, usize),
    /// In the data, so many bytes to come.
    Data(u64),
    /// In the line end after the data.
    DataEnd,
    /// In what follows the last chunk: bytes seen, and whether the line is empty as yet.
    Trailer(usize, bool),
}

/// Heads that only announce an answer, before it.
const INTERIM_MAX: usize = 8;

/// Reads the head of an answer; nothing where it is not whole. Gives how long it is as well. What only announces an answer
/// (1xx) is skipped.
///
/// # Errors
/// It is none that can be read, or too long.
pub fn head(mut bytes: &[u8]) -> Result<Option<(Head, usize)>, Reason> {
    let whole = bytes.len();
    for _ in 0..=INTERIM_MAX {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if whole < HEAD_BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) | Err(_) => return Err(Reason::Protocol),
        };
        let status = response.code.ok_or(Reason::Protocol)?;
        bytes = bytes.get(length..).unwrap_or_default();
        match status {
            0..=99 | 101 => return Err(Reason::Protocol),
            100..=199 => continue,
            _ => {}
        }
        let head = read(status, response.version == Some(1), response.headers)?;
        return Ok(Some((head, whole - bytes.len())));
    }
    Err(Reason::Protocol)
}

fn read(status: u16, is_1_1: bool, headers: &[httparse::Header<'_>]) -> Result<Head, Reason> {
    let (mut length, mut chunked, mut close, mut keep_alive) = (None, None, false, false);
    let (mut retry_after, mut retry_after_ms, mut date) = ("", "", "");
    let mut head = Head {
        status,
        content_type: Type::Other,
        packed: false,
        retry_after_s: None,
        session: Named::Nothing,
        framing: Framing::UntilClosed,
        keep: false,
    };
    for header in headers {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let given = value.bytes().all(|it| it.is_ascii_digit()).then(|| value.parse::<u64>().ok()).flatten();
            let given = given.ok_or(Reason::Protocol)?;
            if length.is_some_and(|it| it != given) {
                return Err(Reason::Protocol);
            }
            length = Some(given);
        } else if is("transfer-encoding") {
            // Only chunks are understood, and only once.
            if chunked.is_some() || !value.eq_ignore_ascii_case("chunked") {
                return Err(Reason::Protocol);
            }
            chunked = Some(());
        } else if is("connection") {
            let mut words = value.split(',').map(str::trim);
            close |= words.clone().any(|it| it.eq_ignore_ascii_case("close"));
            keep_alive |= words.any(|it| it.eq_ignore_ascii_case("keep-alive"));
        } else if is("content-type") {
            head.content_type = content_type(value);
        } else if is("content-encoding") {
            head.packed |= !value.is_empty() && !value.eq_ignore_ascii_case("identity");
        } else if is("mcp-session-id") {
            head.session = named(header.value);
        } else if is("retry-after") {
            retry_after = value;
        } else if is("retry-after-ms") {
            retry_after_ms = value;
        } else if is("date") {
            date = value;
        }
    }
    // Some providers tell a wait in milliseconds alone; it counts as whole seconds here.
    let in_ms = || Some(whole(retry_after_ms)?.div_ceil(1_000));
    head.retry_after_s = retry_after_s(retry_after, date).or_else(in_ms);
    let keeps = !close && (is_1_1 || keep_alive);
    head.framing = match (chunked, length) {
        _ if status == 204 || status == 304 => Framing::Ended,
        (Some(()), None) => Framing::Chunked(Chunk::Size(0, 0)),
        // Both at once is how requests are smuggled: the chunks count, and nothing more is asked on this connection.
        (Some(()), Some(_)) => {
            close = true;
            Framing::Chunked(Chunk::Size(0, 0))
        }
        (None, Some(0)) => Framing::Ended,
        (None, Some(length)) => Framing::Length(length),
        (None, None) => Framing::UntilClosed,
    };
    head.keep = keeps && !close && head.framing != Framing::UntilClosed;
    Ok(head)
}

/// The session of this name (MCP, "Session Management": visible ASCII).
fn named(name: &[u8]) -> Named {
    let name = name.trim_ascii();
    let is_sound = name.len() <= SESSION_BYTES_MAX && name.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(name) {
        Ok("") => Named::Nothing,
        Ok(name) if is_sound => Named::Session(name.into()),
        _ => Named::Unsendable,
    }
}

/// The seconds that a `retry-after` names, a fraction counted as a whole one, or those to the time that it names: from the
/// answer's own `date` where it has one, as the provider's clock need not be this one (RFC 9110 section 10.2.3).
fn retry_after_s(value: &str, date: &str) -> Option<u64> {
    if let Some(seconds) = whole(value) {
        return Some(seconds);
    }
    Some(http_date_s(value)?.saturating_sub(http_date_s(date).unwrap_or_else(now_s)))
}

/// A number of no sign, a fraction counted as a whole one.
fn whole(value: &str) -> Option<u64> {
    let (number, fraction) = value.split_once('.').unwrap_or((value, ""));
    let number = number.parse::<u64>().ok().filter(|_| fraction.bytes().all(|it| it.is_ascii_digit()))?;
    Some(number.saturating_add(u64::from(fraction.bytes().any(|it| it != b'0'))))
}

fn content_type(value: &str) -> Type {
    let kind = value.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Type::Json
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        Type::Events
    } else {
        Type::Other
    }
}

impl Framing {
    /// Whether the body is whole.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        *self == Self::Ended
    }

    /// Takes bytes of the connection, hands those of the body to `sink`, and gives how many were taken: all of them, unless
    /// the body ends before.
    ///
    /// # Errors
    /// The chunks are none.
    pub fn take(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) -> Result<usize, Reason> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self {
                Self::Ended => break,
                Self::UntilClosed => {
                    sink(rest);
                    rest = &[];
                }
                Self::Length(left) => {
                    let taken = split(&mut rest, *left);
                    sink(taken);
                    *left -= taken.len() as u64;
                    if *left == 0 {
                        *self = Self::Ended;
                    }
                }
                Self::Chunked(chunk) => {
                    if chunk.take(&mut rest, sink)? {
                        *self = Self::Ended;
                    }
                }
            }
        }
        Ok(bytes.len() - rest.len())
    }
}

/// The first `most` bytes of what is left, or all of it.
fn split<'a>(rest: &mut &'a [u8], most: u64) -> &'a [u8] {
    let at = usize::try_from(most).unwrap_or(usize::MAX).min(rest.len());
    let (taken, left) = rest.split_at(at);
    *rest = left;
    taken
}

impl Chunk {
    /// Takes a byte, or data; whether that was the last.
    fn take(&mut self, rest: &mut &[u8], sink: &mut impl FnMut(&[u8])) -> Result<bool, Reason> {
        if let Self::Data(left) = self {
            let taken = split(rest, *left);
            sink(taken);
            *left -= taken.len() as u64;
            if *left == 0 {
                *self = Self::DataEnd;
            }
            return Ok(false);
        }
        let Some((byte, left)) = rest.split_first() else { return Ok(false) };
        *rest = left;
        *self = match (&*self, byte) {
            (Self::Size(size, digits), byte) if byte.is_ascii_hexdigit() => {
                if *digits >= SIZE_DIGITS_MAX {
                    return Err(Reason::Protocol);
                }
                let digit = char::from(*byte).to_digit(16).unwrap_or_default();
                Self::Size(size * 16 + u64::from(digit), digits + 1)
            }
            (Self::Size(_, 0), _) => return Err(Reason::Protocol),
            (Self::Size(size, _), b';' | b' ' | b'\t' | b'\r') => Self::Extension(*size, 0),
            (Self::Extension(0, _), b'\n') => Self::Trailer(0, true),
            (Self::Extension(size, _), b'\n') => Self::Data(*size),
            (Self::Extension(size, seen), _) if *seen < HEAD_BYTES_MAX => Self::Extension(*size, seen + 1),
            (Self::DataEnd, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size(0, 0),
            (Self::Trailer(_, true), b'\n') => return Ok(true),
            (Self::Trailer(seen, _), b'\n') => Self::Trailer(seen + 1, true),
            (Self::Trailer(seen, empty), b'\r') => Self::Trailer(seen + 1, *empty),
            (Self::Trailer(seen, _), _) if *seen < HEAD_BYTES_MAX => Self::Trailer(seen + 1, false),
            _ => return Err(Reason::Protocol),
        };
        Ok(false)
    }
}

/// The head of a request: what it says to everybody, then what it says this time.
pub(super) fn request(line: &str, fixed: &Secret<Vec<u8>>, more: &[(&str, &[u8])], length: usize) -> Secret<Vec<u8>> {
    let fixed = fixed.expose();
    let room = more.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
    // Whoever holds a key does not leave copies of it behind by growing.
    let mut out = Vec::with_capacity(line.len() + fixed.len() + room + 64);
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(fixed);
    for (name, value) in more {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("content-length: {length}\r\n\r\n").as_bytes());
    Secret::new(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The body of an answer that comes in pieces of `step` bytes; whether it ended, and what was left.
    fn body(answer: &[u8], step: usize) -> Result<(Vec<u8>, bool, usize), Reason> {
        let (mut head, at) = head(answer)?.unwrap();
        let (mut out, mut taken) = (Vec::new(), at);
        for piece in answer.get(at..).unwrap().chunks(step) {
            taken += head.framing.take(piece, &mut |bytes| out.extend_from_slice(bytes))?;
        }
        Ok((out, head.framing.has_ended(), answer.len() - taken))
    }

    /// However chunks are cut on their way, the body is the same, and what follows it is none of it.
    #[test]
    fn chunks_are_put_together_wherever_they_are_cut() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nWiki\r\nA \r\npedia in c\r\n0\r\nX-T: 1\r\n\r\nrest";
        for step in 1..=answer.len() {
            assert_eq!(body(answer, step), Ok((b"Wikipedia in c".to_vec(), true, 4)), "{step}");
        }
        let cut = answer.len() - 10;
        assert_eq!(body(answer.get(..cut).unwrap(), 3).map(|it| it.1), Ok(false), "no end, no whole answer");
    }

    /// A `retry-after` is a number of seconds, rounded up, or a date, which counts from the answer's own.
    #[test]
    fn a_retry_after_is_seconds_or_a_date() {
        let date = "Sun, 06 Nov 1994 08:49:07 GMT";
        for (value, date, seconds) in [
            ("7", date, Some(7)),
            ("12.4", date, Some(13)),
            ("0.001", date, Some(1)),
            ("3.0", date, Some(3)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", date, Some(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", date, Some(60)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", date, Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", "", Some(0)),
            ("-3", date, None),
            ("soon", date, None),
            ("", date, None),
        ] {
            let text = format!("HTTP/1.1 429 No\r\nretry-after: {value}\r\ndate: {date}\r\n\r\n");
            assert_eq!(head(text.as_bytes()).unwrap().unwrap().0.retry_after_s, seconds, "{value}");
        }
        for (headers, seconds) in [
            ("retry-after-ms: 1200", Some(2)),
            ("retry-after-ms: 1000\r\nretry-after: 7", Some(7)),
            ("retry-after: soon\r\nretry-after-ms: 1000", Some(1)),
            ("retry-after-ms: 1.5", Some(1)),
            ("retry-after-ms: 1000.25", Some(2)),
            ("retry-after-ms: 1e3", None),
            ("retry-after-ms: -1", None),
        ] {
            let text = format!("HTTP/1.1 429 No\r\n{headers}\r\n\r\n");
            assert_eq!(head(text.as_bytes()).unwrap().unwrap().0.retry_after_s, seconds, "{headers}");
        }
        let far = head(b"HTTP/1.1 429 No\r\nretry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n\r\n").unwrap().unwrap().0;
        assert!(far.retry_after_s.is_some_and(|it| it > 1_000_000_000), "without a date it counts from now");
    }

    /// A session has a name of visible characters, as long as one that holds what its server knows of it; another is none that could be
    /// sent back.
    #[test]
    fn a_session_has_a_name_that_can_be_sent_back() {
        let long = "s".repeat(SESSION_BYTES_MAX);
        for (name, named) in [
            ("", Named::Nothing),
            (" a!~1 ", Named::Session("a!~1".into())),
            (&long, Named::Session((*long).into())),
            (&format!("{long}s"), Named::Unsendable),
            ("a b", Named::Unsendable),
            ("é", Named::Unsendable),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\nMcp-Session-Id: {name}\r\n\r\n");
            assert_eq!(head(text.as_bytes()).unwrap().unwrap().0.session, named, "{name}");
        }
        assert_eq!(head(b"HTTP/1.1 200 OK\r\n\r\n").unwrap().unwrap().0.session, Named::Nothing);
    }

    /// What cannot be told apart from an attack or from noise is no answer.
    #[test]
    fn odd_framing_is_refused() {
        for answer in [
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n",
            "HTTP/1.1 101 Switching\r\n\r\n",
            "HTTP/1.1 003 Nothing\r\n\r\n",
            "<html>",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1111111111111111\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
        ] {
            assert_eq!(body(answer.as_bytes(), 7).map(|it| it.1), Err(Reason::Protocol), "{answer:?}");
        }
    }

    /// A connection is used again only where the end of the body was certain.
    #[test]
    fn a_connection_is_kept_where_the_end_is_certain() {
        let keep =
            |headers: &str| head(format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes()).unwrap().unwrap().0.keep;
        assert!(keep("content-length: 5\r\n") && keep("transfer-encoding: chunked\r\n"));
        assert!(!keep("") && !keep("content-length: 5\r\nconnection: Close\r\n"));
        assert!(!keep("content-length: 5\r\ntransfer-encoding: chunked\r\n"));
        let old = head(b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\n").unwrap().unwrap().0;
        assert!(!old.keep);
        let (head, at) = head(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 No\r\nretry-after: 7\r\ncontent-type: Application/JSON; charset=utf-8\r\n\r\n").unwrap().unwrap();
        assert_eq!((head.status, head.retry_after_s, head.content_type, at), (429, Some(7), Type::Json, 107));
    }

    /// What only announces an answer is announced a few times, and is part of what a head may be long.
    #[test]
    fn announcements_come_to_an_end() {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let after = |times: usize| head(format!("{}{answer}", interim.repeat(times)).as_bytes()).map(|it| it.is_some());
        assert!(matches!(after(INTERIM_MAX), Ok(true)));
        assert!(matches!(after(INTERIM_MAX + 1), Err(Reason::Protocol)));
        let hint = format!("HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX / 4));
        let endless = |times: usize| head(hint.repeat(times).as_bytes());
        assert!(matches!(endless(2), Ok(None)) && matches!(endless(5), Err(Reason::Protocol)));
    }
}
