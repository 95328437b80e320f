//! The host that a request is for, as its head names it.
//!
//! **Invariant:** no request is answered whose head names no host, or of which it is a guess which one it names (RFC 9112, 3.2;
//! RFC 9113, 8.3.1).

use http::header::HOST;
use http::request::Parts;
use http::{HeaderValue, Version};
use svc_core::refusal::Refusal;

use crate::headers::single;

/// That the head names one host: in `host`, which only HTTP/1.0 may leave out, or on HTTP/2 in `:authority`, or there in both alike.
///
/// # Errors
/// 400 with `host` as field.
pub(crate) fn is_named(parts: &Parts) -> Result<(), Refusal> {
    let fault = |why: &'static str| Err(Refusal::invalid_field(HOST.as_str(), why));
    let authority = parts.uri.authority().filter(|_| parts.version >= Version::HTTP_2);
    match single(&parts.headers, &HOST)? {
        // On HTTP/1 what the request line names stands in its place (RFC 9112, 3.2.2).
        Some(host) if authority.is_some_and(|it| !it.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes())) => {
            fault("differs from `:authority`")
        }
        Some(host) if is_host(host) => Ok(()),
        Some(_) => fault("must be the server's name or address, with its port where that is not the scheme's own"),
        None if parts.version < Version::HTTP_11 => Ok(()),
        None if authority.is_some() => Ok(()),
        None => fault("is required"),
    }
}

/// Whether it is `uri-host [ ":" port ]` of RFC 3986. That a name is empty, the grammar admits; it is no deployment's own.
fn is_host(value: &HeaderValue) -> bool {
    let sent = value.as_bytes();
    let end = match sent.first() {
        Some(b'[') => sent.iter().position(|it| *it == b']').map(|it| it.saturating_add(1)),
        _ => Some(sent.iter().position(|it| *it == b':').unwrap_or(sent.len())),
    };
    let Some((host, port)) = end.and_then(|it| sent.split_at_checked(it)) else { return false };
    let is_host = match host {
        [b'[', address @ .., b']'] => !address.is_empty() && address.iter().all(|it| is_plain(*it) || *it == b':'),
        name => is_name(name),
    };
    is_host && (port.is_empty() || port.strip_prefix(b":").is_some_and(|it| it.iter().all(u8::is_ascii_digit)))
}

/// `reg-name`
fn is_name(name: &[u8]) -> bool {
    let mut rest = name;
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'%', [a, b, after @ ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => after,
            (first, after) if is_plain(*first) => after,
            _ => return false,
        };
    }
    true
}

/// `unreserved` and `sub-delims`
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Hosts are told from what is none by the grammar of RFC 3986 alone.
    #[test]
    fn what_is_no_host_is_told() {
        let of = |text: &str| is_host(&HeaderValue::from_bytes(text.as_bytes()).unwrap());
        for good in ["a", "gate.example", "my_gate:8080", "127.0.0.1:", "[::1]:8080", "[::1]", "a%c3%a9", "", ":80"] {
            assert!(of(good), "{good}");
        }
        for bad in [
            "a b", "a, b", "a/b", "http://a", "x@a", "a:b", "a:80:80", "[::1", "[]", "[::1]a", "a%c", "a%zz", "é", "a?",
        ] {
            assert!(!of(bad), "{bad}");
        }
    }
}
