//! Tokens and keys of issuers: a stranger's token is read before anybody knows who signed it.

use std::sync::OnceLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::value::canonical::canonical;
use svc_core::value::digest::Digest;
use svc_core::value::json::Json;
use svc_core::value::{Span, Timestamp};
use svc_http::inbound::jwks::{Algorithm, Jwks};
use svc_http::inbound::jws::{self, Jws};
use svc_http::inbound::{id_token, set};

use super::mandates::NOW;
use super::{inputs, is_the_callers, line_and_rest};

/// Another issuer's token, whole, and its key (RFC 7515, appendix A.3).
const SIGNED: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const KEY: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","kid":"one","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

const ISSUER: &str = "https://idp.example.com";
const CLIENT: &str = "svc";
const NONCE: &str = "n-0S6_WzA2Mj";

fn keys_of(set: &str) -> Jwks {
    Jwks::of(&Json::parse(set.as_bytes()).expect("JSON")).expect("a set of keys")
}

/// Somebody who signs, and their key.
fn issuer() -> &'static (EcdsaKeyPair, Jwks) {
    static ISSUER: OnceLock<(EcdsaKeyPair, Jwks)> = OnceLock::new();
    ISSUER.get_or_init(|| {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|it| URL_SAFE_NO_PAD.encode(it));
        let keys = keys_of(&format!(r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"one","x":"{x}","y":"{y}"}}]}}"#));
        (pair, keys)
    })
}

/// A token with this header and these claims, signed whatever they are.
fn signed(header: &[u8], claims: &[u8]) -> String {
    let said = [header, claims].map(|it| URL_SAFE_NO_PAD.encode(it)).join(".");
    let signature = issuer().0.sign(&SystemRandom::new(), said.as_bytes()).expect("it is signed");
    format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A token as it comes, or a line that is a header and the claims behind it, which an issuer signs: it is read as one kind of token at
/// most, believed by nobody's key but its issuer's, and what is believed of it is what it says.
///
/// # Panics
/// Where that is not so.
pub fn token(data: &[u8]) {
    let (header, claims) = line_and_rest(data);
    if header.is_empty() {
        as_it_comes(claims);
    } else {
        of_an_issuer(header, claims);
    }
}

fn as_it_comes(data: &[u8]) {
    let event = set::Unverified::read(data);
    let Ok(text) = std::str::from_utf8(data) else { return event.err().iter().for_each(is_the_callers) };
    let id = id_token::Unverified::read(text);
    assert!(event.is_err() || id.is_err(), "no token is of two kinds");
    let keys = keys_of(KEY);
    if let Ok(read) = Jws::read(text, |_| true) {
        assert!(!read.is_signed_by(&issuer().1), "nobody signs for the issuer");
        assert!(!read.is_signed_by(&keys) || text == SIGNED, "{text}");
        assert!(read.claims(&keys).is_err() || text == SIGNED);
        assert_eq!(text.split('.').count(), 3);
    } else {
        assert!(event.is_err() && id.is_err());
    }
    match event {
        Err(refusal) => is_the_callers(&refusal),
        Ok(event) => assert!(!event.is_signed_by(&keys) && event.verify(&keys, EVENTS, NOW).is_err()),
    }
    if let Ok(id) = id {
        assert_eq!(id.kid(), header_of(text).get("kid").and_then(Json::as_str).map(str::to_owned));
        assert!(id.verify(&keys, expected(), NOW).is_err());
    }
}

const EVENTS: set::Expected<'static> = set::Expected { issuer: ISSUER, audience: CLIENT };

fn expected() -> id_token::Expected<'static> {
    id_token::Expected { issuer: ISSUER, client_id: CLIENT, nonce: Digest::of(NONCE) }
}

fn header_of(token: &str) -> Json {
    let (header, _) = token.split_once('.').expect("it has parts");
    Json::parse(&URL_SAFE_NO_PAD.decode(header).expect("base64url")).expect("JSON")
}

fn of_an_issuer(header: &[u8], claims: &[u8]) {
    let (text, keys) = (signed(header, claims), &issuer().1);
    let said = Json::parse(claims).ok();
    let member = |name: &str| said.as_ref().and_then(|it| it.get(name));
    let is = |name: &str, value: &str| member(name).and_then(Json::as_str) == Some(value);
    let is_for = || {
        let names = |it: &Json| it.as_str() == Some(CLIENT);
        member("aud").is_some_and(|it| names(it) || it.as_list().is_some_and(|it| it.iter().any(names)))
    };
    if let Ok(read) = Jws::read(&text, |_| true) {
        let header = Json::parse(header).expect("a header is JSON");
        assert!(header.get("crit").is_none());
        let by_it = header.get("alg").and_then(Json::as_str) == Some("ES256");
        let named = header.get("kid").is_none_or(|it| it.as_str() == Some("one"));
        assert_eq!(read.is_signed_by(keys), by_it && named, "{header:?}");
        assert!(!read.is_signed_by(&keys_of(KEY)), "it is signed by another key");
        assert!(read.claims(keys).is_ok_and(|it| Some(&it) == said.as_ref()) || said.is_none() || !(by_it && named));
    }
    match set::Unverified::read(text.as_bytes()).and_then(|it| it.verify(keys, EVENTS, NOW)) {
        Err(refusal) => is_the_callers(&refusal),
        Ok(set) => {
            assert!(is("iss", ISSUER) && is_for() && is("jti", &set.jti), "{set:?}");
            assert!((1..=256).contains(&set.jti.chars().count()) && member("exp").is_none());
            let event = member("events").and_then(|it| it.get(&set.event));
            assert_eq!(event, Some(&set.about));
            assert!(at("iat", &said).is_some_and(|it| it <= NOW.plus(Span::minutes(5)) && it.plus(set::AGE_MAX) > NOW));
        }
    }
    if let Ok(token) = id_token::Unverified::read(&text).and_then(|it| it.verify(keys, expected(), NOW)) {
        assert!(is("iss", ISSUER) && is_for() && is("nonce", NONCE) && is("sub", &token.subject), "{token:?}");
        let is_verified = member("email_verified").and_then(Json::as_bool) == Some(true);
        assert!(token.email.is_none() || is_verified, "{token:?}");
        assert_eq!(at("iat", &said), Some(token.issued_at));
        assert!(at("exp", &said).is_some_and(|it| it.plus(Span::minutes(5)) > NOW));
    }
}

fn at(name: &str, said: &Option<Json>) -> Option<Timestamp> {
    said.as_ref()?.get(name).and_then(jws::instant)
}

/// Tokens of each kind, of an issuer and of a stranger.
#[must_use]
pub fn token_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        &format!("\n{SIGNED}"),
        "\neyJhbGciOiJFUzI1NiIsInR5cCI6InNlY2V2ZW50K2p3dCIsImtpZCI6Im9uZSJ9.e30.AAAA",
        "\neyJhbGciOiJub25lIn0.e30.",
        "{\"alg\":\"ES256\",\"typ\":\"secevent+jwt\",\"kid\":\"one\"}\n{\"iss\":\"https://idp.example.com\",\"aud\":[\"svc\"],\"jti\":\"1\",\"iat\":1790846990,\"sub_id\":{\"format\":\"email\",\"email\":\"ann@example.com\"},\"events\":{\"https://schemas.openid.net/secevent/caep/event-type/session-revoked\":{\"subject\":{\"user\":{\"format\":\"opaque\",\"id\":\"x\"}}}}}",
        "{\"alg\":\"ES256\"}\n{\"iss\":\"https://idp.example.com\",\"aud\":\"svc\",\"azp\":\"svc\",\"nonce\":\"n-0S6_WzA2Mj\",\"sub\":\"u1\",\"iat\":1790846990.5,\"exp\":1790847300,\"nbf\":1.790846e9,\"email\":\"ann@example.com\",\"email_verified\":true}",
        "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"crit\":[\"b64\"],\"jwk\":{}}\n{\"iat\":1e300}",
    ])
}

/// A set of keys is refused in words, or holds one that is of use, and none that signs what nobody signed; it means the same however it is
/// written.
///
/// # Panics
/// Where that is not so.
pub fn keys(data: &[u8]) {
    let Ok(json) = Json::parse(data) else { return };
    match Jwks::of(&json) {
        Err(why) => assert!(!why.to_string().is_empty()),
        Ok(keys) => {
            assert!(keys.has(None));
            for (algorithm, signature) in [(Algorithm::Es256, &[0_u8; 64][..]), (Algorithm::Rs256, &[0; 256])] {
                assert!(!keys.verifies(algorithm, None, b"", signature), "a signature of nothing but zeros is none");
            }
            let again = Jwks::of(&Json::parse(canonical(&json).as_bytes()).expect("JSON")).expect("it is read again");
            assert_eq!(format!("{again:?}"), format!("{keys:?}"));
            let listed = json.get("keys").and_then(Json::as_list).unwrap_or_default();
            let is_private = |it: &Json| it.get("d").is_some_and(|it| !it.is_null());
            assert!(!listed.iter().any(is_private), "a private key has no place in it");
        }
    }
}

/// Sets of keys of both kinds, and of some that are of no use.
#[must_use]
pub fn key_seeds() -> Vec<Vec<u8>> {
    let rsa =
        format!(r#"{{"keys":[{{"kty":"RSA","e":"AQAB","alg":"RS256","use":"sig","n":"{}"}}]}}"#, "_".repeat(342) + "8");
    inputs(&[
        KEY,
        &rsa,
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"},{"kty":"EC","crv":"P-256","key_ops":["verify"],"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
        r#"{"keys":[{"kty":"RSA","e":"AQAB","n":"AA"},{"kty":"oct","k":"AA"},7]}"#,
    ])
}
