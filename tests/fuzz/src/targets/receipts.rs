//! Receipts, the key sets that they are checked with, and the keys of verifications.

use std::sync::OnceLock;

use svc_core::state::gate::receipt::{PublicKeys, check_offline, jwks_json, parse};
use svc_core::state::gate::verify_key::VerifyKey;
use svc_core::testing::World;
use svc_core::testing::world::{payment, terms, tool_call};
use svc_core::value::Timestamp;

use super::line_and_rest;

/// A payment's receipt and a tool call's, the keys that they are checked with, and an instant at which both are good.
struct Issued {
    receipts: [String; 2],
    keys: PublicKeys,
    now: Timestamp,
}

fn issued() -> &'static Issued {
    static ISSUED: OnceLock<Issued> = OnceLock::new();
    ISSUED.get_or_init(|| {
        let mut world = World::new();
        let all =
            terms(r#"{"name":"All","actions":["payment","tool.call"],"limits":{"currency":"EUR","perAction":5000}}"#);
        let agent = world.agent().with_mandate(all).register();
        let asked = [payment(4_900, "EUR", "shop.example.com"), tool_call("search")];
        let receipts = asked.map(|it| world.authorize(&agent, it).receipt().expect("it is allowed").to_owned());
        Issued { receipts, keys: world.public_keys().clone(), now: world.now() }
    })
}

/// No text but the ones that were issued is a receipt of this service.
///
/// # Panics
/// Where another one passes.
pub fn receipt(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let issued = issued();
    let checked = check_offline(text, &issued.keys, issued.now);
    assert_eq!(checked.is_ok(), issued.receipts.iter().any(|it| it == text), "{text}: {checked:?}");
    if let Ok(parsed) = parse(text) {
        assert!(text.starts_with(parsed.signing_input()) && parsed.signing_input().len() < text.len());
    }
}

/// Receipts that are good, and texts that have the form of one.
#[must_use]
pub fn receipt_seeds() -> Vec<Vec<u8>> {
    let [payment, call] = &issued().receipts;
    let header = payment.split('.').next().unwrap_or_default();
    let crossed = format!("{header}.{}", call.split_once('.').map_or("", |(_, rest)| rest));
    let none = "eyJhbGciOiJub25lIiwidHlwIjoic3ZjLXJlY2VpcHQrand0Iiwia2lkIjoiIn0.e30.";
    [payment, call, &crossed, none].iter().map(|it| it.as_bytes().to_vec()).collect()
}

/// A key set that is read is published as one that reads the same.
///
/// # Panics
/// Where it is not.
pub fn key_set(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(keys) = PublicKeys::from_jwks(text) else { return };
    let published = jwks_json(&keys);
    let again = PublicKeys::from_jwks(&published).expect("what is published is a key set");
    assert_eq!(jwks_json(&again), published);
}

/// A set as it is published, one with keys of other kinds, and an empty one.
#[must_use]
pub fn key_set_seeds() -> Vec<Vec<u8>> {
    let own = jwks_json(&issued().keys);
    let mixed =
        own.replacen("[{", r#"[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"OKP","crv":"X25519","x":"AA"},{"#, 1);
    [own, mixed, r#"{"keys":[]}"#.to_owned()].into_iter().map(String::into_bytes).collect()
}

/// The first line is the key, the rest the receipt: no key that stands in the receipt is taken.
///
/// # Panics
/// Where one is.
pub fn verify_key(data: &[u8]) {
    let (key, receipt) = line_and_rest(data);
    let (Ok(key), Ok(receipt)) = (std::str::from_utf8(key), std::str::from_utf8(receipt)) else { return };
    if VerifyKey::new(key, receipt).is_ok() {
        assert!(!key.chars().any(char::is_control) && (16..=128).contains(&key.chars().count()), "{key:?}");
        assert!(!issued().receipts.iter().any(|it| it == receipt) || !receipt.contains(key), "{key:?}");
    }
}

/// Random keys, keys made from the receipt, and lengths at the limits.
#[must_use]
pub fn verify_key_seeds() -> Vec<Vec<u8>> {
    let receipt = &issued().receipts[0];
    let part = receipt.get(..32).unwrap_or_default();
    let all = ["5f1e7c1e-2f0b-4a55-9a52-8b1a1f1e0c11", part, "sixteen chars ok", &"k".repeat(128)];
    all.iter().map(|key| format!("{key}\n{receipt}").into_bytes()).collect()
}
