//! Bodies of the gate's routes. The first line of an input is the header `idempotency-key`, the rest the body.

use http::{HeaderMap, HeaderValue};
use svc_core::state::edge::outbound::{Outbound, Private};
use svc_core::value::Id;
use svc_core::value::canonical::canonical;
use svc_core::value::id::AgentId;
use svc_core::value::json::Json;
use svc_http::headers::IDEMPOTENCY_KEY;
use svc_http::wire::{action_request, callback as callbacks, settlement, verdict};

use super::{inputs, is_the_callers, line_and_rest};

fn parts(data: &[u8]) -> (HeaderMap, &[u8]) {
    let (line, body) = line_and_rest(data);
    let mut headers = HeaderMap::new();
    if let Some(value) = HeaderValue::from_bytes(line).ok().filter(|it| !it.is_empty()) {
        headers.insert(IDEMPOTENCY_KEY, value);
    }
    (headers, body)
}

/// The body written another way: members in another order, other spaces, other escapes.
fn rewritten(body: &[u8]) -> String {
    canonical(&Json::parse(body).expect("what was read is JSON"))
}

/// An action request is refused for the caller to mend, or means the same however it is written.
///
/// # Panics
/// Where it does not.
pub fn authorize(data: &[u8]) {
    let (headers, body) = parts(data);
    let agent = AgentId::from_bits(1);
    match action_request::read(&headers, body) {
        Err(refusal) => is_the_callers(&refusal),
        Ok(request) => {
            let again = action_request::read(&headers, rewritten(body).as_bytes()).expect("it is read again");
            assert_eq!(request.faults(), [], "the gate takes what was read");
            assert_eq!(again.fingerprint(), request.fingerprint(), "its digest does not depend on how it is written");
            assert_eq!(again.digest(agent, "salt"), request.digest(agent, "salt"));
            assert_eq!(again.key(), request.key());
        }
    }
}

/// Requests of every built-in kind that has members of its own, and one with everything.
#[must_use]
pub fn authorize_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "order-1\n{\"type\":\"payment\",\"summary\":\"Renew the domain\",\"payment\":{\"amount\":4900,\"currency\":\"EUR\",\"merchant\":{\"name\":\"Shop\",\"domain\":\"shop.example.com\"}}}",
        "\n{\"type\":\"data.share\",\"summary\":\"Send the list\",\"data\":{\"recipient\":\"ann@example.com\",\"fields\":[\"email\",\"name\"],\"purpose\":\"billing\"}}",
        "\n{\"type\":\"tool.call\",\"summary\":\"Search\",\"tool\":{\"name\":\"search\",\"server\":\"web\",\"input\":{\"q\":[1,\"two\",null]}}}",
        "\n{\"type\":\"mcp.call\",\"summary\":\"Call\",\"tool\":{\"name\":\"x\",\"inputDigest\":\"sha256:0000000000000000000000000000000000000000000000000000000000000000\",\"inputBytes\":12}}",
        "\n{\"type\":\"crm.lead.create\",\"summary\":\"Create\",\"details\":{\"a\":{\"b\":1}},\"provenance\":[{\"source\":\"email\",\"detail\":\"inbox\"},{\"source\":\"web\"}],\"session\":{\"id\":\"s-1\"},\"idempotencyKey\":\"k\"}",
        "\n{\"type\":\"pay\",\"summary\":\" \",\"payment\":{\"amount\":1.5,\"currency\":\"EU\",\"merchant\":{\"domain\":\"https://co.uk\"}},\"provenance\":[1,{\"source\":2}]}",
    ])
}

/// A question about a receipt is refused for the caller to mend, or means the same however it is written.
///
/// # Panics
/// Where it does not.
pub fn verify(data: &[u8]) {
    let (headers, body) = parts(data);
    match verdict::read(&headers, body) {
        Err(refusal) => is_the_callers(&refusal),
        Ok(asked) => {
            let again = verdict::read(&headers, rewritten(body).as_bytes()).expect("it is read again");
            assert_eq!((again.body, again.key, again.kind), (asked.body, asked.key, asked.kind));
            assert_eq!((again.receipt, again.charge), (asked.receipt, asked.charge));
        }
    }
}

/// Questions with and without a charge.
#[must_use]
pub fn verify_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "5f1e7c1e-2f0b-4a55-9a52-8b1a1f1e0c11\n{\"receipt\":\"a.b.c\",\"charge\":{\"amount\":4900,\"currency\":\"eur\",\"merchant\":{\"domain\":\"Shop.example.com.\"}},\"type\":\"payment\"}",
        "\n{\"receipt\":\"a.b.c\"}",
        "short\n{\"receipt\":1,\"charge\":{\"amount\":0},\"type\":\"\"}",
    ])
}

/// An outcome is refused for the caller to mend, or holds an amount that every reader keeps exactly.
///
/// # Panics
/// Where it does not.
pub fn settle(data: &[u8]) {
    match settlement::read(data) {
        Err(refusal) => is_the_callers(&refusal),
        Ok((_, amount)) => assert!(amount.is_none_or(|it| (0..1 << 53).contains(&it)), "{amount:?}"),
    }
}

/// Outcomes of each status.
#[must_use]
pub fn settle_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        r#"{"status":"completed","amount":4900}"#,
        r#"{"status":"failed"}"#,
        r#"{"status":"cancelled","amount":null,"extra":[]}"#,
        r#"{"status":"completed","amount":9007199254740991}"#,
    ])
}

/// A callback's address is refused for the caller to mend, or is one that may be called.
///
/// # Panics
/// Where it is neither.
pub fn callback(data: &[u8]) {
    let guard = Outbound { private: Private::Nowhere, own_host: "gate.example.com".into() };
    match callbacks::read(data, &guard) {
        Err(refusal) => is_the_callers(&refusal),
        Ok(url) => assert!(url.as_str().starts_with("https://"), "{url}"),
    }
}

/// Addresses in bodies.
#[must_use]
pub fn callback_seeds() -> Vec<Vec<u8>> {
    inputs(&[r#"{"url":"https://example.com:8443/hook?a=1"}"#, r#"{"url":"https://[2606:2800:220:1::1]/"}"#])
}
