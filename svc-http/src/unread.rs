//! What a connection is told whose request was never read: it has no place here, or what it sent is no head.
//!
//! hyper refuses what it cannot read by itself, with a status and nothing else. Its answer is known by its looks as it is written,
//! and the interface's own goes out in its place: so a request that can be read costs nothing more.
//!
//! **Invariant:** what a service has answered is never taken for hyper's own answer: that has other headers, and a body or none.

use http::{HeaderMap, StatusCode};
use svc_core::refusal::{FieldError, Refusal};

use crate::answer::{self, error_body};
use crate::dispatch::Service;
use crate::entropy;
use crate::headers::URI_BYTES_MAX;
use crate::routes::Shape;
use crate::shell::Shell;
use crate::trace::{Trace, push_hex};

/// Bytes that hyper's own answer has at most: a line and three headers. Every answer of the interface has more in its head.
const BARE_BYTES_MAX: usize = 160;

/// Answers and ends a connection whose request was never read; who counts hears of it, and the log.
pub(crate) fn close<S: Service>(shell: &Shell<S>, refusal: &Refusal) -> Vec<u8> {
    closing(refusal, &note(shell, refusal), shell.docs())
}

/// Has a request that was never read, and its answer, counted and logged; the id that it has there.
pub(crate) fn note<S: Service>(shell: &Shell<S>, refusal: &Refusal) -> String {
    let mut id = b"req_".to_vec();
    push_hex(&mut id, &entropy::bytes::<16>());
    let id = String::from_utf8_lossy(&id).into_owned();
    shell.unread(refusal, &id);
    id
}

/// An answer that ends its connection, whole, with the headers of the interface.
fn closing(refusal: &Refusal, id: &str, docs: &str) -> Vec<u8> {
    let body = error_body(refusal, Shape::Plain, id, docs);
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let retry = refusal.retry_after_s().map(|it| format!("retry-after: {it}\r\n")).unwrap_or_default();
    let mut text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{retry}x-request-id: {id}\r\nsvc-version: {}\r\ntraceparent: {}\r\n\r\n",
        body.len(),
        answer::VERSION.to_str().unwrap_or_default(),
        Trace::of(&HeaderMap::new()).header().to_str().unwrap_or_default(),
    )
    .into_bytes();
    text.extend_from_slice(&body);
    text
}

/// What is told in the place of hyper's own answer; nothing where `written` is none.
pub(crate) fn in_place_of(written: &[u8]) -> Option<Refusal> {
    match bare_status(written)? {
        b"400" => {
            Some(Refusal::invalid_request(vec![FieldError::whole("what was sent is no head of an HTTP request")]))
        }
        b"414" => Some(Refusal::uri_too_long(URI_BYTES_MAX)),
        b"431" => Some(Refusal::headers_too_large(None)),
        _ => None,
    }
}

/// The status of hyper's own answer, where this is one.
fn bare_status(written: &[u8]) -> Option<&[u8]> {
    if written.len() > BARE_BYTES_MAX || !written.ends_with(b"\r\n\r\n") {
        return None;
    }
    let rest = written.strip_prefix(b"HTTP/1.1 ").or_else(|| written.strip_prefix(b"HTTP/1.0 "))?;
    let is_empty = written.windows(EMPTY.len()).any(|it| it.eq_ignore_ascii_case(EMPTY));
    let is_ours = written.windows(OURS.len()).any(|it| it.eq_ignore_ascii_case(OURS));
    rest.get(..3).filter(|_| is_empty && !is_ours)
}

/// A header that hyper's own answer has, and one that it has not.
const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";
const OURS: &[u8] = b"\r\nx-request-id: ";

#[cfg(test)]
mod tests {
    use super::*;

    /// hyper's own answers are known, and nothing else is taken for one.
    #[test]
    fn only_bare_answers_are_replaced() {
        let bare = |status: &str| {
            format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\ndate: Sat, 21 Nov 2026 10:00:00 GMT\r\n\r\n"
            )
        };
        for (status, kind) in [
            ("400 Bad Request", "\"invalid_request\""),
            ("414 URI Too Long", "\"uri_too_long\""),
            ("431 Request Header Fields Too Large", "\"headers_too_large\""),
        ] {
            let told = in_place_of(bare(status).as_bytes()).map(|it| closing(&it, "req_1", "https://docs.example.com"));
            let told = String::from_utf8(told.unwrap_or_default()).unwrap_or_default();
            assert!(told.starts_with(&format!("HTTP/1.1 {status}\r\n")) && told.contains(kind), "{told}");
        }
        let own = bare("400 Bad Request").replace("connection: close", "x-request-id: a");
        let full = bare("400 Bad Request").replace("content-length: 0", "content-length: 2") + "{}";
        for other in [&*bare("204 No Content"), &*bare("503 Service Unavailable"), &own, &full, "", "HTTP/1.1 400"] {
            assert!(in_place_of(other.as_bytes()).is_none(), "{other}");
        }
    }
}
