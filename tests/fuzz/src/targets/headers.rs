//! Headers and request lines.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use svc_http::address::{RateAddress, client};
use svc_http::headers::Site;
use svc_http::headers::{
    HEADERS_BYTES_MAX, accepts_pages, body_is_json, body_is_plain, credential, head_is_within, is_csv, request_id,
};
use svc_http::router::Router;
use svc_http::routes;
use svc_http::trace::{TRACEPARENT, TRACESTATE, Trace};

use super::inputs;

/// One line is one value of the header, or of its companion where it begins with `state `; what is answered is a valid header of the same
/// trace, whatever was sent, and what goes along is what was sent.
///
/// # Panics
/// Where it is not.
pub fn traceparent(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|it| *it == b'\n') {
        let (name, line) = line.strip_prefix(b"state ").map_or((TRACEPARENT, line), |it| (TRACESTATE, it));
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    let trace = Trace::of(&headers);
    let answered = trace.header();
    assert_eq!(answered.len(), 55, "{answered:?}");
    let state = trace.state.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
    let state = HeaderValue::from_str(&state).expect("what was taken can be sent on");
    let next = Trace::of(&HeaderMap::from_iter([(TRACEPARENT, answered), (TRACESTATE, state)]));
    assert_eq!((next.trace_id, next.sampled, &next.state), (trace.trace_id, trace.sampled, &trace.state));
    assert!(trace.state.len() <= 32 && (trace.caller.is_some() || trace.state.is_empty()), "{trace:?}");
}

/// Headers that are continued and some that are not.
#[must_use]
pub fn traceparent_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "00-12345678901234567890123456789012-1234567890123456-01",
        "cc-12345678901234567890123456789012-1234567890123456-01-what-the-future-holds",
        "00-12345678901234567890123456789012-1234567890123456-00\nstate a=1,b@c=2 , \nstate 0a@vendor=x y",
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
    if let Err(refusal) = head_is_within(&Method::GET, &Uri::from_static("/"), &headers) {
        assert!(
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() > HEADERS_BYTES_MAX,
            "{refusal:?}"
        );
        assert_eq!(refusal.status(), 431, "{refusal:?}");
    }
    let _ = (body_is_plain(&headers), accepts_pages(&headers));
    let is_json = body_is_json(&headers, false).is_ok();
    assert_eq!(body_is_json(&headers, true).is_ok(), is_json || is_csv(&headers), "a body is of one kind");
    let sessions: Vec<_> = headers.get_all("cookie").iter().map(|it| it.as_bytes().to_vec()).collect();
    let within = |it: &str| sessions.iter().any(|line| line.windows(it.len()).any(|part| part == it.as_bytes()));
    assert!(site.session(&headers).is_none_or(|it| !it.is_empty() && within(it)), "a session is one that was sent");
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
        "cookie: a=b; sid=s1\ncookie: sid=s1; __Host-sid=s1\ncontent-type: text/csv; charset=utf-8\naccept: a, text/html;q=0.1\norigin: http://localhost:8080\nx-svc-csrf: 1",
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
