//! Signed tokens of other systems in their compact form (RFC 7515, 3.1 and 7.1): what ID tokens and security events come in.
//!
//! **Invariant:** nothing in a token chooses its algorithm for a key, brings a key or points at one; what is not understood of how
//! it is signed is refused, and nothing of what it says is given out before its signature is known to be good.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::value::Timestamp;
use svc_core::value::json::{Json, Number};

use super::jwks::{Algorithm, Jwks};

/// What is wrong with how a token is made or signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It has not the three parts.
    Parts,
    /// A part is no base64url.
    Encoding,
    /// Its header is no JSON object.
    Header,
    /// Its header names a parameter as critical; none is understood (RFC 7515, 4.1.11).
    Critical,
    /// It is a token of another kind (`typ`).
    Kind,
    /// Its algorithm is neither ES256 nor RS256.
    Algorithm,
    /// The name of its key is no text.
    Kid,
    /// No key of the issuer's made its signature.
    Signature,
    /// What it says is no JSON object.
    Claims,
}

/// A token whose signature nobody has looked at yet.
#[derive(Debug)]
pub struct Jws<'a> {
    algorithm: Algorithm,
    kid: Option<String>,
    signed: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
}

impl<'a> Jws<'a> {
    /// Reads how a token is signed, and nothing of what it says. `is_of_kind` is asked of `typ` (RFC 8725, 3.11).
    ///
    /// # Errors
    /// The first flaw, in the order in which the header is read.
    pub fn read(text: &'a str, is_of_kind: impl FnOnce(Option<&Json>) -> bool) -> Result<Self, Flaw> {
        let (signed, signature) = text.rsplit_once('.').ok_or(Flaw::Parts)?;
        let (header, payload) = signed.split_once('.').filter(|(_, it)| !it.contains('.')).ok_or(Flaw::Parts)?;
        let header = Json::parse(&decoded(header)?).map_err(|_| Flaw::Header)?;
        if header.get("crit").is_some() {
            return Err(Flaw::Critical);
        }
        if !is_of_kind(header.get("typ")) {
            return Err(Flaw::Kind);
        }
        let algorithm = header.get("alg").and_then(Json::as_str).and_then(Algorithm::parse).ok_or(Flaw::Algorithm)?;
        let kid = match header.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str().ok_or(Flaw::Kid)?.to_owned()),
        };
        Ok(Self { algorithm, kid, signed, payload, signature: decoded(signature)? })
    }

    /// The name of its key, where it gives one.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Whether one of `keys` made its signature.
    #[must_use]
    pub fn is_signed_by(&self, keys: &Jwks) -> bool {
        keys.verifies(self.algorithm, self.kid(), self.signed.as_bytes(), &self.signature)
    }

    /// What it says, once its signature is known to be of one of `keys`.
    ///
    /// # Errors
    /// [`Flaw::Signature`] before anything else; then what of the payload cannot be read.
    pub fn claims(&self, keys: &Jwks) -> Result<Json, Flaw> {
        if !self.is_signed_by(keys) {
            return Err(Flaw::Signature);
        }
        Json::parse(&decoded(self.payload)?).map_err(|_| Flaw::Claims)
    }
}

/// An instant as a token tells it (RFC 7519, 2): seconds since 1970, which may have a fraction. The second that it is in.
pub fn instant(told: &Json) -> Option<Timestamp> {
    let seconds = match told {
        Json::Number(number @ Number::Float(value)) if number.is_safe() => {
            format!("{:.0}", value.get().floor()).parse().ok()
        }
        other => other.as_int(),
    };
    seconds.map(|it: i64| Timestamp::from_millis(it.saturating_mul(1_000)))
}

fn decoded(part: &str) -> Result<Vec<u8>, Flaw> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Flaw::Encoding)
}

/// Somebody who signs, for the tests of what comes in such tokens.
#[cfg(test)]
pub(super) mod testing {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::{Value, json};

    use super::*;

    /// An issuer with one key, called `one`.
    pub(in crate::inbound) struct Issuer {
        pair: EcdsaKeyPair,
        pub(in crate::inbound) keys: Jwks,
    }

    impl Issuer {
        pub(in crate::inbound) fn new() -> Self {
            let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
            let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
            let [x, y] = [x, y].map(|it| URL_SAFE_NO_PAD.encode(it));
            let set = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "one", "x": x, "y": y }] });
            let keys = Jwks::of(&Json::parse(set.to_string().as_bytes()).unwrap()).unwrap();
            Self { pair, keys }
        }

        /// A token that says `claims`, signed by the issuer's key whatever its header says.
        pub(in crate::inbound) fn token(&self, header: &Value, claims: &Value) -> String {
            let signed = [header, claims].map(|it| URL_SAFE_NO_PAD.encode(it.to_string())).join(".");
            let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }
}
