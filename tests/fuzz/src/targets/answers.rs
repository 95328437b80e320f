//! What others answer when this server calls: heads and bodies of providers, documents of clients, and what issuers say of themselves.

use svc_core::state::connect::{REDIRECTS_MAX, Redirect};
use svc_core::state::edge::outbound::{Outbound, Private};
use svc_core::value::json::Json;
use svc_http::identity::Description;
use svc_http::upstream::framing::{Framing, Head, head};
use svc_http::wire::oauth;

use super::{inputs, tokens};

/// An answer that is whole so far: what its body was, whether it ended, and how much was taken.
type Taken = Option<(Vec<u8>, bool, usize)>;

fn body(head: &Head, rest: &[u8], step: usize) -> Taken {
    let mut framing = head.framing.clone();
    let (mut out, mut taken) = (Vec::new(), 0);
    for piece in rest.chunks(step) {
        taken += framing.take(piece, &mut |bytes| out.extend_from_slice(bytes)).ok()?;
    }
    Some((out, framing.has_ended(), taken))
}

/// An answer of HTTP: its body is the same however it is cut on its way, no longer than what came, and a connection is used again only
/// where the body's end is known.
///
/// # Panics
/// Where that is not so.
pub fn answer(data: &[u8]) {
    let Ok(Some((read, at))) = head(data) else { return };
    assert!(at <= data.len() && (200..1_000).contains(&read.status), "{read:?}");
    assert!(!read.keep || read.framing != Framing::UntilClosed, "{read:?}");
    assert_eq!(head(&data[..at]), Ok(Some((read.clone(), at))), "it ends where it does");
    let rest = &data[at..];
    let whole = body(&read, rest, rest.len().max(1));
    for step in [1, 2, 7] {
        assert_eq!(body(&read, rest, step), whole, "cut after {step}");
    }
    if let Some((out, has_ended, taken)) = whole {
        assert!(out.len() <= taken && taken <= rest.len());
        assert!(has_ended || taken == rest.len(), "all of it is taken until it ends");
    }
}

/// Answers whose bodies end in each way.
#[must_use]
pub fn answer_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: 4\r\n\r\n{}\n\nrest",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n4;a=b\r\nWiki\r\nA \r\npedia in c\r\n0\r\nX-T: 1\r\n\r\nrest",
        "HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-encoding: gzip\r\n\r\nabc",
        "HTTP/1.1 429 Slow\r\nretry-after: 1.5\r\nretry-after-ms: 1500\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\nmcp-session-id: s-1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFF\r\n",
        "HTTP/1.1 204 None\r\ncontent-length: 18446744073709551616\r\n\r\n",
    ])
}

const ID: &str = "https://app.example/client.json";
const ISSUER: &str = "https://idp.example.com";

/// A document of a client, or of an issuer, whose keys are another: of the one only redirects are kept that may be sent to, of the other only addresses that may be
/// called; and either names itself.
///
/// # Panics
/// Where that is not so.
pub fn document(data: &[u8]) {
    tokens::keys(data);
    if let Ok(client) = oauth::metadata(ID, data, &[]) {
        assert!((1..=REDIRECTS_MAX).contains(&client.redirects.len()), "{client:?}");
        assert!(client.redirects.iter().all(|it| Redirect::parse(it.as_str(), &[]).as_ref() == Ok(it)));
        assert!(oauth::metadata("https://other.example/client.json", data, &[]).is_err());
    }
    let Ok(json) = Json::parse(data) else { return };
    let guard = Outbound { private: Private::Nowhere, own_host: "gate.example.com".into() };
    if let Some(description) = Description::read(&json, ISSUER, &guard) {
        assert!(description.keys.as_str().starts_with("https://"), "{description:?}");
        assert!(!format!("{description:?}").contains("gate.example.com/"), "it leads back here: {description:?}");
        assert!(Description::read(&json, "https://idp.example.com/", &guard).is_none());
    }
}

/// Documents of both.
#[must_use]
pub fn document_seeds() -> Vec<Vec<u8>> {
    let mut seeds = inputs(&[
        r#"{"client_id":"https://app.example/client.json","client_name":"App","redirect_uris":["http://localhost/cb","cursor://x","https://app.example/cb?a=b"],"token_endpoint_auth_method":"none"}"#,
        r#"{"issuer":"https://idp.example.com","authorization_endpoint":"https://idp.example.com/authorize","token_endpoint":"https://idp.example.com/token","jwks_uri":"https://idp.example.com/keys","token_endpoint_auth_methods_supported":["client_secret_post"],"authorization_response_iss_parameter_supported":true}"#,
        r#"{"issuer":"https://idp.example.com","authorization_endpoint":"http://169.254.169.254/","token_endpoint":"https://gate.example.com/token","jwks_uri":"https://[::1]/keys"}"#,
    ]);
    seeds.extend(tokens::key_seeds());
    seeds
}
