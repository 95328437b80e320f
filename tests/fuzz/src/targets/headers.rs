//! Headers and request lines.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use svc_http::address::{RateAddress, client};
use svc_http::headers::Site;
use svc_http::headers::{body_is_plain, credential, request_id};
use svc_http::router::Router;
use svc_http::routes;
use svc_http::trace::{TRACEPARENT, Trace};

use super::inputs;

/// One line is one value of the header; what is answered is a valid header of the same trace, whatever was sent.
///
/// # Panics
/// Where it is not.
pub fn traceparent(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|it| *it == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(TRACEPARENT, value);
        }
    }
    let trace = Trace::of(&headers);
    let answered = trace.header();
    assert_eq!(answered.len(), 55, "{answered:?}");
    let next = Trace::of(&HeaderMap::from_iter([(TRACEPARENT, answered)]));
    assert_eq!((next.trace_id, next.sampled), (trace.trace_id, trace.sampled));
}

/// Headers that are continued and some that are not.
#[must_use]
pub fn traceparent_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "00-12345678901234567890123456789012-1234567890123456-01",
        "cc-12345678901234567890123456789012-1234567890123456-01-what-the-future-holds",
        "00-00000000000000000000000000000000-1234567890123456-01",
        "ff-12345678901234567890123456789012-1234567890123456-01\n00-12345678901234567890123456789012-1234567890123456-00",
    ])
}

/// `name: value` lines: a request id is plain, a credential is of the kind that its route takes, an address is one.
///
/// # Panics
/// Where it is not.
pub fn headers(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|it| *it == b'\n') {
        let at = line.iter().position(|it| *it == b':').unwrap_or(line.len());
        let value = HeaderValue::from_bytes(line.get(at + 1..).unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..at]), value) {
            headers.append(name, value);
        }
    }
    let id = request_id(&headers);
    assert!((1..=128).contains(&id.len()) && id.to_str().is_ok(), "{id:?}");
    let site = Site::of("http://127.0.0.1:8080");
    let _ = (site.is_own_host(&headers, None), site.is_own_write(&headers));
    for route in routes::all() {
        let is_session = route.is_console();
        match credential(route.auth, &headers, &site) {
            Ok(found) => {
                assert!(found.is_none_or(|it| is_session || it.len() > 3 && it.as_bytes()[3] == b'_'), "{found:?}")
            }
            Err(refusal) => assert!(matches!(refusal.status(), 400 | 401), "{refusal:?}"),
        }
    }
    let _ = body_is_plain(&headers);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let trusted = ["127.0.0.0/8", "10.0.0.0/8", "fd00::/8"].map(|it| it.parse().expect("a network"));
    let _ = RateAddress::from(client(peer, &headers, &trusted));
    assert_eq!(client(peer, &headers, &[]), peer, "nobody is believed where nobody is trusted");
}

/// Headers that mean something.
#[must_use]
pub fn header_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "authorization: Bearer ask_0123456789012345678901234567890123456789012\nx-request-id: req-1\ncontent-encoding: identity",
        "x-api-key: ask_x\nauthorization: bearer  ask_x \nx-forwarded-for: 203.0.113.7, 10.0.0.1\nx-forwarded-for: [fd00::1]:80",
        "authorization: Basic YTpi\nx-request-id: a\nx-request-id: b\ncontent-encoding: gzip, identity",
    ])
}

/// `METHOD /path`: every request finds its route, or is told which methods or which route there is.
///
/// # Panics
/// Where it does not.
pub fn route(data: &[u8]) {
    static ROUTER: OnceLock<Router> = OnceLock::new();
    let router = ROUTER.get_or_init(|| Router::new().expect("the table is unambiguous"));
    let Some((method, path)) = std::str::from_utf8(data).ok().and_then(|it| it.split_once(' ')) else { return };
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return };
    match router.find(&method, path) {
        Ok(found) => {
            assert!(found.params.into_iter().all(|it| path.get(it).is_some_and(|id| !id.is_empty())), "{path}")
        }
        Err(unmatched) => {
            let (status, allow) = (unmatched.refusal.status(), unmatched.allow.is_some());
            assert!(matches!((status, allow), (404, false) | (405, true)), "{method} {path}");
        }
    }
}

/// The routes and their near misses.
#[must_use]
pub fn route_seeds() -> Vec<Vec<u8>> {
    let routes =
        routes::all().map(|it| format!("{} {}", it.method, it.path.replace("{id}", "act_01K6FN0001000000000000000A")));
    let misses = ["GET /v1/action/x", "DELETE /v1/verify", "POST /v1/actions//settle", "GET /", "OPTIONS *"];
    routes.chain(misses.map(str::to_owned)).map(String::into_bytes).collect()
}
