//! One request to the gate over a connection of its own, and its whole answer or none.
//!
//! It is a plain blocking exchange: a runtime would take longer to start than the gate to answer. No redirect is followed and
//! no proxy asked.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use svc_core::value::json::Json;
use svc_http::outbound::Trust;
use url::{Host, Url};

use super::place::Place;
use super::{Deadline, Refused, plain};

/// Addresses of the gate that are tried.
const ADDRESSES_MAX: usize = 4;
/// Headers of an answer that are read.
const HEADERS_MAX: usize = 64;
/// Bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The header of an answer that repeats an earlier one.
const REPLAYED: &str = "idempotent-replayed";
/// Characters of the gate's own words on why it refuses.
const WORDS_CHARS: usize = 600;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Its status.
    pub(crate) status: u16,
    /// Whether it repeats an earlier answer to the same question.
    pub(crate) replayed: bool,
    /// Its body.
    pub(crate) json: Json,
}

impl Reply {
    /// The type of the error that it is.
    pub(crate) fn error(&self) -> Option<&str> {
        self.json.get("error")?.get("type")?.as_str()
    }

    /// What it says, where it is good.
    ///
    /// # Errors
    /// [`Refused`] with the gate's own words.
    pub(crate) fn good(&self) -> Result<&Json, Refused> {
        if self.status == 200 {
            return Ok(&self.json);
        }
        let word = |name: &str| self.json.get("error").and_then(|it| it.get(name)).and_then(Json::as_str);
        let words: Vec<&str> = ["type", "message", "fix"].into_iter().filter_map(word).collect();
        let words = plain(&words.join("; "), WORDS_CHARS);
        Err(Refused(format!("the gate answered {}: {words}", self.status)))
    }
}

/// Reads from the gate.
pub(crate) fn get(place: &Place, path: &str, deadline: Deadline) -> Result<Reply, Refused> {
    exchange(place, "GET", path, "", deadline)
}

/// Sends something to the gate.
pub(crate) fn post(place: &Place, path: &str, body: &str, deadline: Deadline) -> Result<Reply, Refused> {
    exchange(place, "POST", path, body, deadline)
}

fn exchange(place: &Place, method: &str, path: &str, body: &str, deadline: Deadline) -> Result<Reply, Refused> {
    let request = format!(
        "{method} {base}{path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\naccept: application/json\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\nuser-agent: svc-hook/{version}\r\n\r\n{body}",
        base = base_path(place),
        host = place.url.authority(),
        key = place.key.expose(),
        length = body.len(),
        version = env!("CARGO_PKG_VERSION"),
    );
    let mut stream = connect(place, deadline)?;
    let sent = stream.write_all(request.as_bytes()).and_then(|()| stream.flush());
    sent.map_err(|error| broken("the question cannot be sent", &error, deadline))?;
    let heard = hear(stream.as_mut(), deadline)?;
    let json = Json::parse(&heard.body)
        .map_err(|_| Refused(format!("the gate answered {} and no JSON; is `SVC_URL` its address?", heard.status)))?;
    Ok(Reply { status: heard.status, replayed: heard.replayed, json })
}

fn base_path(place: &Place) -> String {
    let rest = place.url.as_str().split_once("://").map_or("", |it| it.1);
    rest.split_once('/').map_or_else(String::new, |(_, path)| format!("/{path}"))
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A connection whose every wait ends with the deadline.
struct Timed {
    stream: TcpStream,
    deadline: Deadline,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        self.deadline.left().map_err(|_| io::ErrorKind::TimedOut.into())
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn connect(place: &Place, deadline: Deadline) -> Result<Box<dyn Stream>, Refused> {
    let url = Url::parse(place.url.as_str()).map_err(|_| Refused::new("`SVC_URL` is no address"))?;
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(Refused::new("`SVC_URL` is no address"));
    };
    let unreachable = |error: io::Error| broken(&format!("{} cannot be reached", place.url), &error, deadline);
    let addresses: Vec<_> = match &host {
        Host::Domain(name) => (*name, port).to_socket_addrs().map_err(unreachable)?.take(ADDRESSES_MAX).collect(),
        Host::Ipv4(ip) => vec![(*ip, port).into()],
        Host::Ipv6(ip) => vec![(*ip, port).into()],
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&address, deadline.left()?) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                let timed = Timed { stream, deadline };
                return if url.scheme() == "https" { secured(place, &host, timed) } else { Ok(Box::new(timed)) };
            }
            Err(error) => last = error,
        }
    }
    Err(unreachable(last))
}

fn secured(place: &Place, host: &Host<&str>, timed: Timed) -> Result<Box<dyn Stream>, Refused> {
    let name = match host {
        Host::Domain(name) => {
            ServerName::try_from((*name).to_owned()).map_err(|_| Refused::new("`SVC_URL` has no name for TLS"))?
        }
        Host::Ipv4(ip) => ServerName::from(std::net::IpAddr::V4(*ip)),
        Host::Ipv6(ip) => ServerName::from(std::net::IpAddr::V6(*ip)),
    };
    let trust = Trust::with(place.ca_file.as_deref()).map_err(|error| Refused(error.to_string()))?;
    let connection = ClientConnection::new(Arc::clone(&trust.client()), name)
        .map_err(|_| Refused::new("a secure connection cannot be begun"))?;
    Ok(Box::new(StreamOwned::new(connection, timed)))
}

/// What went wrong on the way; what comes too late is told as that.
fn broken(what: &str, error: &io::Error, deadline: Deadline) -> Refused {
    if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) {
        return deadline.missed();
    }
    Refused(format!("{what}: {error}"))
}

/// Status and body of an answer, and whether it repeats another.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    status: u16,
    replayed: bool,
    body: Vec<u8>,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Length(usize),
    Chunked,
}

/// Reads one whole answer. A body that ends before it should, or whose end nobody told, is none.
fn hear(stream: &mut dyn Read, deadline: Deadline) -> Result<Heard, Refused> {
    let mut bytes = Vec::with_capacity(8 * 1024);
    let mut piece = [0_u8; 8 * 1024];
    loop {
        if let Some(heard) = whole(&bytes)? {
            return Ok(heard);
        }
        if bytes.len() > HEAD_BYTES_MAX + ANSWER_BYTES_MAX {
            return Err(Refused(format!("the gate's answer has more than {ANSWER_BYTES_MAX} bytes")));
        }
        match stream.read(&mut piece) {
            Ok(0) => return Err(Refused::new("the gate's answer broke off")),
            Ok(read) => bytes.extend_from_slice(piece.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(broken("the gate's answer broke off", &error, deadline)),
        }
    }
}

/// The answer in these bytes, where all of it is there.
fn whole(bytes: &[u8]) -> Result<Option<Heard>, Refused> {
    let no_http = || Refused::new("what answers at `SVC_URL` does not speak HTTP/1.1");
    let mut rest = bytes;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let length = match head.parse(rest).map_err(|_| no_http())? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial if rest.len() > HEAD_BYTES_MAX => return Err(no_http()),
            httparse::Status::Partial => return Ok(None),
        };
        let status = head.code.ok_or_else(no_http)?;
        let replayed = head.headers.iter().any(|it| it.name.eq_ignore_ascii_case(REPLAYED) && it.value == b"true");
        let end = end(head.headers);
        rest = rest.get(length..).unwrap_or_default();
        // What is on its way is announced before the answer itself.
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let body = match end? {
            End::Length(length) if length > ANSWER_BYTES_MAX => {
                return Err(Refused(format!("the gate's answer has more than {ANSWER_BYTES_MAX} bytes")));
            }
            End::Length(length) => rest.get(..length).map(<[u8]>::to_vec),
            End::Chunked => unchunked(rest)?,
        };
        return Ok(body.map(|body| Heard { status, replayed, body }));
    }
}

fn end(headers: &[httparse::Header<'_>]) -> Result<End, Refused> {
    let all =
        |name: &'static str| headers.iter().filter(move |it| it.name.eq_ignore_ascii_case(name)).map(|it| it.value);
    let packed = || all("content-encoding").any(|it| !it.eq_ignore_ascii_case(b"identity"));
    let doubt = || Refused::new("it cannot be told where the gate's answer ends");
    let (lengths, codings): (Vec<_>, Vec<_>) = (all("content-length").collect(), all("transfer-encoding").collect());
    if packed() {
        return Err(Refused::new("the gate's answer is packed, which nobody asked for"));
    }
    match (lengths.as_slice(), codings.as_slice()) {
        ([length], []) => {
            let digits = std::str::from_utf8(length).ok().filter(|it| it.bytes().all(|digit| digit.is_ascii_digit()));
            digits.and_then(|it| it.parse().ok()).map(End::Length).ok_or_else(doubt)
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(End::Chunked),
        _ => Err(doubt()),
    }
}

/// The chunks as one body; `None` where the last of them is yet to come.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, Refused> {
    let broken = || Refused::new("the gate's answer has broken chunks");
    let mut body = Vec::new();
    loop {
        let (line, size) = match httparse::parse_chunk_size(rest).map_err(|_| broken())? {
            httparse::Status::Complete(it) => it,
            httparse::Status::Partial => return Ok(None),
        };
        rest = rest.get(line..).unwrap_or_default();
        if size == 0 {
            // Trailers say nothing that is read; that the end is there is what counts.
            return Ok((rest.starts_with(b"\r\n") || rest.windows(4).any(|it| it == b"\r\n\r\n")).then_some(body));
        }
        let size = usize::try_from(size).ok().filter(|it| body.len() + it <= ANSWER_BYTES_MAX).ok_or_else(broken)?;
        let Some(data) = rest.get(..size) else { return Ok(None) };
        body.extend_from_slice(data);
        match rest.get(size..size + 2) {
            Some(b"\r\n") => rest = rest.get(size + 2..).unwrap_or_default(),
            Some(_) => return Err(broken()),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(answer: &str) -> Result<(u16, String), String> {
        let deadline = Deadline::from_now(Duration::from_secs(60));
        let heard = hear(&mut answer.as_bytes(), deadline).map_err(|it| it.0)?;
        Ok((heard.status, String::from_utf8_lossy(&heard.body).into_owned()))
    }

    /// A whole answer is read by its length or its chunks, behind what was announced, and cut at every byte it is none.
    #[test]
    fn an_answer_is_read_whole_or_not_at_all() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nsum: 1\r\n\r\n",
        ] {
            assert_eq!(heard(answer), Ok((200, "hello".to_owned())), "{answer}");
            for cut in 0..answer.len() {
                let part = answer.get(..cut).unwrap_or_default();
                assert_eq!(heard(part), Err("the gate's answer broke off".to_owned()), "{part}");
            }
        }
    }

    /// An answer whose end is in doubt, that is packed, too large, or no HTTP, is none.
    #[test]
    fn an_answer_in_doubt_is_none() {
        for (answer, why) in [
            ("HTTP/1.1 200 OK\r\n\r\n{}", "where the gate's answer ends"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n{}", "ends"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", "ends"),
            ("HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\n{}", "ends"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n", "more than"),
            ("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", "packed"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello", "broken chunks"),
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "ends"),
            ("<!doctype html><p>Hello", "HTTP/1.1"),
        ] {
            assert!(heard(answer).is_err_and(|it| it.contains(why)), "{answer}: {:?}", heard(answer));
        }
    }
}
