//! ID tokens (OpenID Connect Core 1.0, 2 and 3.1.3.7): a compact JWS of an identity provider, believed of one issuer, for one client,
//! for one sign-in, of late.
//!
//! **Invariant:** nothing in a token chooses its algorithm for a key, brings a key or points at one; a signature that a shared
//! secret could make, or none, is none.

use svc_core::value::digest::Digest;
use svc_core::value::json::Json;
use svc_core::value::text::Email;
use svc_core::value::{Span, Timestamp};

use super::jwks::Jwks;
use super::jws::{Flaw, Jws, instant};

/// How far the issuer's clock may be from the one here.
const SKEW: Span = Span::minutes(5);
/// How long ago a token may have been issued: it is fetched right after it was.
const AGE_MAX: Span = Span::minutes(10);
/// Characters of a `sub` (Core, 2).
const SUBJECT_MAX: usize = 255;

/// Whom a token is expected from, for whom, and for which sign-in.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// `iss`, exactly.
    pub issuer: &'a str,
    /// What the issuer calls this server: what `aud` names.
    pub client_id: &'a str,
    /// The digest of the nonce that the sign-in began with.
    pub nonce: Digest,
}

/// What of a token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disbelieved {
    /// It is no signed token of a kind that is read.
    Form,
    /// No key of the issuer's made its signature.
    Signature,
    /// It is another issuer's.
    Issuer,
    /// It is for another client.
    Audience,
    /// It is over, not of late, or not yet.
    Time,
    /// It is of another sign-in.
    Nonce,
    /// It does not say whom it is about.
    Subject,
}

/// Whom an issuer vouches for.
#[derive(Debug)]
pub struct IdToken {
    /// The issuer's own name of them.
    pub subject: String,
    /// Their address, where the issuer has verified that it is theirs.
    pub email: Option<Email>,
    /// When it was said.
    pub issued_at: Timestamp,
}

/// A token whose signature nobody has looked at yet.
#[derive(Debug)]
pub struct Unverified<'a>(Jws<'a>);

impl<'a> Unverified<'a> {
    /// Reads how a token is signed, and nothing of what it says.
    ///
    /// # Errors
    /// [`Disbelieved::Form`] where it is no compact JWS by ES256 or RS256, or is a token of another kind.
    pub fn read(text: &'a str) -> Result<Self, Disbelieved> {
        // Tokens of other kinds that the same keys sign name theirs (RFC 8725, 3.11).
        let is_of_kind = |it: &Json| it.as_str().is_some_and(|it| it.eq_ignore_ascii_case("jwt"));
        Ok(Self(Jws::read(text, |typ| typ.is_none_or(is_of_kind))?))
    }

    /// The name of its key, where it gives one.
    #[must_use]
    pub fn kid(&self) -> Option<String> {
        self.0.kid().map(str::to_owned)
    }

    /// What it says, once its signature is known to be the issuer's.
    ///
    /// # Errors
    /// What of it is not believed, first of all its signature.
    pub fn verify(self, keys: &Jwks, expected: Expected<'_>, now: Timestamp) -> Result<IdToken, Disbelieved> {
        believe(&self.0.claims(keys)?, expected, now)
    }
}

impl From<Flaw> for Disbelieved {
    fn from(flaw: Flaw) -> Self {
        if flaw == Flaw::Signature { Self::Signature } else { Self::Form }
    }
}

/// What claims say whose signature is good.
fn believe(claims: &Json, expected: Expected<'_>, now: Timestamp) -> Result<IdToken, Disbelieved> {
    let text = |name: &str| claims.get(name).and_then(Json::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(Disbelieved::Issuer);
    }
    is_meant(claims, expected.client_id)?;
    if text("nonce").map(Digest::of) != Some(expected.nonce) {
        return Err(Disbelieved::Nonce);
    }
    let instant = |name: &str| claims.get(name).and_then(instant);
    let (ends, issued) = instant("exp").zip(instant("iat")).ok_or(Disbelieved::Time)?;
    let is_now = now < ends.plus(SKEW) && issued <= now.plus(SKEW) && now < issued.plus(AGE_MAX);
    if !is_now || claims.get("nbf").is_some_and(|_| instant("nbf").is_none_or(|it| it > now.plus(SKEW))) {
        return Err(Disbelieved::Time);
    }
    let subject = text("sub").filter(|it| (1..=SUBJECT_MAX).contains(&it.chars().count()));
    let subject = subject.ok_or(Disbelieved::Subject)?.to_owned();
    let is_verified = claims.get("email_verified").and_then(Json::as_bool) == Some(true);
    let email = text("email").filter(|_| is_verified).and_then(|it| Email::parse(it).ok());
    Ok(IdToken { subject, email, issued_at: issued })
}

/// That a token is for this client: alone, or among others as the party that asked for it.
fn is_meant(claims: &Json, client_id: &str) -> Result<(), Disbelieved> {
    let names = |it: &Json| it.as_str() == Some(client_id);
    let (is_named, is_alone) = match claims.get("aud") {
        Some(Json::Text(_)) => (claims.get("aud").is_some_and(names), true),
        Some(Json::List(list)) => (list.iter().any(names), list.len() == 1),
        _ => (false, false),
    };
    let party = claims.get("azp");
    let is_party = party.map_or(is_alone, names);
    if is_named && is_party { Ok(()) } else { Err(Disbelieved::Audience) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::{Value, json};

    use super::super::jws::testing::Issuer;
    use super::*;

    const NOW: i64 = 1_790_847_000;

    fn hear(issuer: &Issuer, token: &str) -> Result<IdToken, Disbelieved> {
        let expected = Expected { issuer: "https://idp.example", client_id: "svc", nonce: Digest::of("n-0S6_WzA2Mj") };
        let now = Timestamp::from_millis(NOW * 1_000);
        Unverified::read(token)?.verify(&issuer.keys, expected, now)
    }

    fn with(issuer: &Issuer, name: &str, value: Value) -> Result<IdToken, Disbelieved> {
        let mut claims = claims();
        claims.as_object_mut().unwrap().insert(name.to_owned(), value);
        hear(issuer, &issuer.token(&header(), &claims))
    }

    fn header() -> Value {
        json!({ "alg": "ES256", "kid": "one" })
    }

    fn claims() -> Value {
        json!({ "iss": "https://idp.example", "sub": "248289761001", "aud": "svc", "nonce": "n-0S6_WzA2Mj", "iat": NOW,
            "exp": NOW + 300, "email": "Ann@example.com", "email_verified": true })
    }

    /// A token is believed as it should be; an address counts where the issuer says in so many words that it has verified it.
    #[test]
    fn a_token_is_believed() {
        let issuer = Issuer::new();
        let said = hear(&issuer, &issuer.token(&header(), &claims())).unwrap();
        assert_eq!((said.subject.as_str(), said.issued_at.as_seconds()), ("248289761001", NOW));
        assert_eq!(said.email.unwrap().folded(), "ann@example.com");
        assert!(hear(&issuer, &issuer.token(&json!({ "alg": "ES256", "typ": "JWT" }), &claims())).is_ok());
        for unverified in [json!(false), json!("true"), json!(1), Value::Null] {
            assert!(with(&issuer, "email_verified", unverified).unwrap().email.is_none());
        }
        assert!(with(&issuer, "email", json!("no address")).unwrap().email.is_none());
    }

    /// How a token is signed leaves its sender no choice.
    #[test]
    fn a_token_that_is_signed_otherwise_is_none() {
        let issuer = Issuer::new();
        for (name, value, told) in [
            ("alg", json!("none"), Disbelieved::Form),
            ("alg", json!("HS256"), Disbelieved::Form),
            ("alg", json!("PS256"), Disbelieved::Form),
            ("alg", json!("RS256"), Disbelieved::Signature),
            ("typ", json!("at+jwt"), Disbelieved::Form),
            ("typ", json!("logout+jwt"), Disbelieved::Form),
            ("typ", json!(7), Disbelieved::Form),
            ("crit", json!(["b64"]), Disbelieved::Form),
            ("kid", json!("two"), Disbelieved::Signature),
            ("kid", json!(7), Disbelieved::Form),
        ] {
            let mut header = header();
            header.as_object_mut().unwrap().insert(name.to_owned(), value.clone());
            assert_eq!(hear(&issuer, &issuer.token(&header, &claims())).unwrap_err(), told, "{name}: {value}");
        }
        let stranger = Issuer::new();
        for name in ["jwk", "jku", "x5u", "x5c"] {
            let header = json!({ "alg": "ES256", name: "https://idp.example/keys" });
            assert_eq!(
                hear(&issuer, &stranger.token(&header, &claims())).unwrap_err(),
                Disbelieved::Signature,
                "{name}"
            );
        }
        let good = issuer.token(&header(), &claims());
        let (signed, _) = good.rsplit_once('.').unwrap();
        for bad in [signed.to_owned(), format!("{signed}."), format!("{good}."), format!("{good}="), String::new()] {
            assert!(hear(&issuer, &bad).is_err(), "{bad}");
        }
    }

    /// What a token says that is signed as it should be is believed of the one issuer, for the one client and sign-in, of late.
    #[test]
    fn a_token_that_says_otherwise_is_not_believed() {
        let issuer = Issuer::new();
        for (name, value, told) in [
            ("iss", json!("https://idp.example/"), Disbelieved::Issuer),
            ("aud", json!("other"), Disbelieved::Audience),
            ("aud", json!([]), Disbelieved::Audience),
            ("aud", json!(["svc", "other"]), Disbelieved::Audience),
            ("aud", json!({ "svc": 1 }), Disbelieved::Audience),
            ("azp", json!("other"), Disbelieved::Audience),
            ("azp", json!(["svc"]), Disbelieved::Audience),
            ("nonce", json!("other"), Disbelieved::Nonce),
            ("nonce", Value::Null, Disbelieved::Nonce),
            ("exp", json!(NOW - 300), Disbelieved::Time),
            ("exp", json!("never"), Disbelieved::Time),
            ("iat", json!(NOW - 600), Disbelieved::Time),
            ("iat", json!(NOW + 301), Disbelieved::Time),
            ("iat", json!(9_007_199_254_740_991_i64), Disbelieved::Time),
            ("nbf", json!(NOW + 301), Disbelieved::Time),
            ("nbf", json!("now"), Disbelieved::Time),
            ("exp", json!(1e300), Disbelieved::Time),
            ("iat", json!(-1e300), Disbelieved::Time),
            ("sub", json!(""), Disbelieved::Subject),
            ("sub", json!("x".repeat(256)), Disbelieved::Subject),
            ("sub", json!(7), Disbelieved::Subject),
        ] {
            assert_eq!(with(&issuer, name, value.clone()).unwrap_err(), told, "{name}: {value}");
        }
        for (name, value) in [
            ("aud", json!(["svc"])),
            ("azp", json!("svc")),
            ("nbf", json!(NOW + 300)),
            ("iat", json!(NOW - 599)),
            ("exp", json!(NOW - 299)),
            // Instants may have a fraction (RFC 7519, 2): the second that it is in counts.
            ("iat", json!(1_790_847_000.999)),
            ("exp", json!(1_790_846_701.5)),
            ("nbf", json!(1_790_847_300.25)),
            ("iat", json!(1.790_847e9)),
            ("sub", json!("x".repeat(255))),
        ] {
            assert!(with(&issuer, name, value.clone()).is_ok(), "{name}: {value}");
        }
    }
}
