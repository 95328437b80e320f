//! Security event tokens that are pushed (RFC 8417, RFC 8935): a compact JWS, believed only by keys of who is expected to send it.
//!
//! **Invariant:** nothing in a token chooses its algorithm for a key, brings a key or points at one; what is not understood of how
//! it is signed is refused.

use svc_core::refusal::{Kind, Refusal};
use svc_core::value::json::Json;
use svc_core::value::{Span, Timestamp};

use super::jwks::Jwks;
use super::jws::{Flaw, Jws, instant};

/// The media type, of a body and of a token (RFC 8417, 2.3).
pub const MEDIA_TYPE: &str = "application/secevent+jwt";
/// How long ago a token may have been issued; as long its `jti` is kept.
pub const AGE_MAX: Span = Span::hours(7 * 24);
/// How far ahead of here its issuer's clock may be.
const AHEAD_MAX: Span = Span::minutes(5);
/// Characters of a `jti`.
const JTI_MAX: usize = 256;

/// Whom tokens are expected from, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// `iss`, exactly.
    pub issuer: &'a str,
    /// What `aud` names, alone or among others.
    pub audience: &'a str,
}

/// A token whose signature nobody has looked at yet.
#[derive(Debug)]
pub struct Unverified<'a>(Jws<'a>);

/// What a token says.
#[derive(Debug)]
pub struct Set {
    /// The number that its issuer gives no other one.
    pub jti: String,
    /// Its event: a URI.
    pub event: String,
    /// What it says of the event.
    pub about: Json,
    /// Whom it is about.
    pub subject: Option<Subject>,
}

/// Whom an event is about (RFC 9493).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Whoever has this address.
    Email(String),
    /// Whom this issuer knows by this name.
    IssSub {
        /// The issuer.
        issuer: String,
        /// The name.
        subject: String,
    },
    /// A name of the sender's own.
    Opaque(String),
    /// In a form that says nothing here.
    Other,
}

impl<'a> Unverified<'a> {
    /// Reads how a token is signed, and nothing of what it says.
    ///
    /// # Errors
    /// `invalid_request` where it is no compact JWS of a security event by ES256 or RS256.
    pub fn read(body: &'a [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(body).map_err(|_| refused(Flaw::Parts))?;
        let is_of_kind = |typ: &str| {
            let media_type = typ.to_ascii_lowercase();
            media_type.strip_prefix("application/").unwrap_or(&media_type) == "secevent+jwt"
        };
        let jws = Jws::read(text, |typ| typ.and_then(Json::as_str).is_some_and(is_of_kind));
        Ok(Self(jws.map_err(refused)?))
    }

    /// Whether one of `keys` made its signature.
    #[must_use]
    pub fn is_signed_by(&self, keys: &Jwks) -> bool {
        self.0.is_signed_by(keys)
    }

    /// What it says, once its signature is known to be the issuer's.
    ///
    /// # Errors
    /// What of it is not believed, first of all its signature.
    pub fn verify(self, keys: &Jwks, expected: Expected<'_>, now: Timestamp) -> Result<Set, Refusal> {
        if !keys.has(self.0.kid()) {
            return Err(no(Kind::InvalidKey));
        }
        believe(&self.0.claims(keys).map_err(refused)?, expected, now)
    }
}

/// What a sender is told of a token's form or signature.
fn refused(flaw: Flaw) -> Refusal {
    fault(match flaw {
        Flaw::Signature => return no(Kind::AuthenticationFailed),
        Flaw::Parts => "the body must be a compact JWS",
        Flaw::Encoding => "each part must be base64url",
        Flaw::Header => "the header must be a JSON object",
        Flaw::Critical => "no header parameter that is critical is understood",
        Flaw::Kind => "`typ` must be `secevent+jwt`",
        Flaw::Algorithm => "`alg` must be ES256 or RS256",
        Flaw::Kid => "`kid` must be a text",
        Flaw::Claims => "the claims must be a JSON object",
    })
}

/// A token that is not believed.
fn no(kind: Kind) -> Refusal {
    Refusal::disbelieved(kind)
}

/// Something that is no security event.
fn fault(why: &'static str) -> Refusal {
    Refusal::no_security_event(why)
}

/// What claims say whose signature is good.
fn believe(claims: &Json, expected: Expected<'_>, now: Timestamp) -> Result<Set, Refusal> {
    let text = |name: &str| claims.get(name).and_then(Json::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(no(Kind::InvalidIssuer));
    }
    let is_meant = |it: &Json| it.as_str() == Some(expected.audience);
    if !claims.get("aud").is_some_and(|it| is_meant(it) || it.as_list().is_some_and(|list| list.iter().any(is_meant))) {
        return Err(no(Kind::InvalidAudience));
    }
    if ["sub", "exp"].iter().any(|it| claims.get(it).is_some()) {
        return Err(fault("`sub` and `exp` are not of security events"));
    }
    let jti = text("jti").filter(|it| (1..=JTI_MAX).contains(&it.chars().count()));
    let jti = jti.ok_or_else(|| fault("`jti` must be a text of at most 256 characters"))?;
    let issued = claims.get("iat").and_then(instant).ok_or_else(|| fault("`iat` must be seconds since 1970"))?;
    if issued > now.plus(AHEAD_MAX) || issued.plus(AGE_MAX) <= now {
        return Err(fault("`iat` must be within the last seven days"));
    }
    let events = claims.get("events").and_then(Json::as_object).unwrap_or_default();
    let [(event, about)] = events else { return Err(fault("`events` must be an object of one event")) };
    if about.as_object().is_none() {
        return Err(fault("the event must be an object"));
    }
    // Events of before subjects had a claim of their own say theirs within.
    let subject = claims.get("sub_id").or_else(|| about.get("subject")).map(Subject::of);
    Ok(Set { jti: jti.to_owned(), event: event.clone(), about: about.clone(), subject })
}

impl Subject {
    fn of(subject: &Json) -> Self {
        let text = |name: &str| subject.get(name).and_then(Json::as_str).map(str::to_owned);
        let format = text("format").or_else(|| text("subject_type"));
        // Some name a person within the event by a member alone, and say no format of it.
        let is_bare = format.is_none() && subject.get("user").is_some();
        let format = if is_bare { "complex".to_owned() } else { format.unwrap_or_default() };
        let read = match format.as_str() {
            "email" => text("email").map(Self::Email),
            "iss_sub" | "iss-sub" => {
                text("iss").zip(text("sub")).map(|(issuer, subject)| Self::IssSub { issuer, subject })
            }
            "opaque" => text("id").map(Self::Opaque),
            // Of several ways to say who it is about, that of the person.
            "complex" => {
                subject.get("user").map(|it| if it.get("user").is_some() { Self::Other } else { Self::of(it) })
            }
            _ => None,
        };
        read.unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::{KeyPair as RsaPair, KeySize};
    use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::super::jwks::Algorithm;
    use super::super::jws::testing::Issuer;
    use super::*;

    const EXPECTED: Expected<'static> = Expected { issuer: "https://idp.example.com", audience: "client_app_12345" };

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../tests/data/rfc8417_set.json")).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(1_702_448_560_000)
    }

    fn json(value: &Value) -> Json {
        Json::parse(value.to_string().as_bytes()).unwrap()
    }

    fn hear(issuer: &Issuer, token: &str) -> Result<Set, Refusal> {
        Unverified::read(token.as_bytes())?.verify(&issuer.keys, EXPECTED, now())
    }

    fn header() -> Value {
        json!({ "alg": "ES256", "typ": "secevent+jwt", "kid": "one" })
    }

    fn claims() -> Value {
        vectors()["valid"][1].clone()
    }

    fn with(mut object: Value, name: &str, value: Value) -> Value {
        object.as_object_mut().unwrap().insert(name.to_owned(), value);
        object
    }

    /// The published token is heard, by either algorithm, and says what it says.
    #[test]
    fn a_token_is_heard() {
        let issuer = Issuer::new();
        let set = hear(&issuer, &issuer.token(&header(), &claims())).unwrap();
        assert_eq!(set.jti, "756E69717565-206964656E746966696572");
        assert_eq!(set.event, "https://schemas.openid.net/secevent/caep/event-type/session-revoked");
        let subject = Subject::IssSub { issuer: EXPECTED.issuer.to_owned(), subject: "user_12345".to_owned() };
        assert_eq!(set.subject, Some(subject));
        let spelt = with(header(), "typ", json!("application/SecEvent+JWT"));
        assert!(hear(&issuer, &issuer.token(&spelt, &claims())).is_ok());

        let pair = RsaPair::generate(KeySize::Rsa2048).unwrap();
        let of = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        // In the public half's DER the modulus of 2048 bits stands behind nine bytes.
        let key = json!({ "kty": "RSA", "n": of(&pair.public_key().as_ref()[9..265]), "e": "AQAB" });
        let keys = Jwks::of(&json(&json!({ "keys": [key] }))).unwrap();
        let signed = [json!({ "alg": "RS256", "typ": "secevent+jwt" }), claims()];
        let signed = signed.map(|it| of(it.to_string().as_bytes())).join(".");
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
        let token = format!("{signed}.{}", of(&signature));
        assert!(Unverified::read(token.as_bytes()).unwrap().verify(&keys, EXPECTED, now()).is_ok());
    }

    /// Each way to say who it is about; what cannot be read says nothing.
    #[test]
    fn subjects_are_read_in_every_form() {
        for (text, expected) in [
            (r#"{"format":"email","email":"a@b.example"}"#, Subject::Email("a@b.example".to_owned())),
            (r#"{"subject_type":"email","email":"a@b.example"}"#, Subject::Email("a@b.example".to_owned())),
            (r#"{"format":"opaque","id":"x"}"#, Subject::Opaque("x".to_owned())),
            (
                r#"{"format":"complex","user":{"format":"opaque","id":"x"},"tenant":{}}"#,
                Subject::Opaque("x".to_owned()),
            ),
            (r#"{"format":"complex","user":{"format":"complex","user":{}}}"#, Subject::Other),
            (r#"{"user":{"format":"opaque","id":"x"}}"#, Subject::Opaque("x".to_owned())),
            (r#"{"user":{"user":{"format":"opaque","id":"x"}}}"#, Subject::Other),
            (r#"{"format":"aliases","user":{"format":"opaque","id":"x"}}"#, Subject::Other),
            (r#"{"format":"email"}"#, Subject::Other),
            ("7", Subject::Other),
        ] {
            assert_eq!(Subject::of(&Json::parse(text.as_bytes()).unwrap()), expected, "{text}");
        }
    }

    /// How a token is signed leaves its sender no choice.
    #[test]
    fn a_token_that_is_signed_otherwise_is_refused() {
        let issuer = Issuer::new();
        let good = issuer.token(&header(), &claims());
        let request = |refusal: Refusal| refusal.kind() == Kind::InvalidRequest;
        for (name, value) in [
            ("alg", json!("none")),
            ("alg", json!("HS256")),
            ("alg", json!("EdDSA")),
            ("alg", json!(["ES256"])),
            ("typ", json!("JWT")),
            ("typ", Value::Null),
            ("crit", json!(["b64"])),
            ("kid", json!(7)),
        ] {
            let token = issuer.token(&with(header(), name, value.clone()), &claims());
            assert!(hear(&issuer, &token).is_err_and(request), "{name}: {value}");
        }
        let rs256 = issuer.token(&with(header(), "alg", json!("RS256")), &claims());
        assert_eq!(hear(&issuer, &rs256).unwrap_err().kind(), Kind::AuthenticationFailed);
        let other = issuer.token(&with(header(), "kid", json!("two")), &claims());
        assert_eq!(hear(&issuer, &other).unwrap_err().kind(), Kind::InvalidKey);
        // A key that the token brings along, or leads to, is not looked at.
        let stranger = Issuer::new();
        for name in ["jwk", "jku", "x5u", "x5c"] {
            let token = stranger.token(&with(header(), name, json!("https://idp.example.com/keys")), &claims());
            assert_eq!(hear(&issuer, &token).unwrap_err().kind(), Kind::AuthenticationFailed, "{name}");
        }
        let (signed, _) = good.rsplit_once('.').unwrap();
        for bad in
            [signed.to_owned(), format!("{signed}."), format!("{good}."), format!("{good}="), format!("{good}.{good}")]
        {
            assert!(hear(&issuer, &bad).is_err(), "{bad}");
        }
        let (head, rest) = good.split_once('.').unwrap();
        assert!(Unverified::read(format!("{head}.e30.{rest}").as_bytes()).is_err(), "it has four parts");
        assert!(hear(&issuer, "\u{0}").is_err() && Unverified::read(&[0xff, b'.', b'.']).is_err());
    }

    /// What a token says that is signed as it should be is believed only of the one issuer, for the one audience, of late, once.
    #[test]
    fn a_token_that_says_otherwise_is_refused() {
        let issuer = Issuer::new();
        let about = |name: &str, value: Value| hear(&issuer, &issuer.token(&header(), &with(claims(), name, value)));
        assert_eq!(about("iss", json!("https://idp.example.com/")).unwrap_err().kind(), Kind::InvalidIssuer);
        assert_eq!(about("aud", json!("client_app")).unwrap_err().kind(), Kind::InvalidAudience);
        assert_eq!(about("aud", json!([])).unwrap_err().kind(), Kind::InvalidAudience);
        assert!(about("aud", json!(["x", "client_app_12345"])).is_ok());
        let seconds = now().as_seconds();
        for good in
            [json!(seconds + 300), json!(seconds - 7 * 86_400 + 1), json!(1_702_448_559.75), json!(1.702_448_55e9)]
        {
            assert!(about("iat", good.clone()).is_ok(), "{good}");
        }
        for (name, value) in [
            ("sub", json!("user_12345")),
            ("exp", json!(seconds + 60)),
            ("jti", json!("")),
            ("jti", json!("x".repeat(257))),
            ("jti", json!(7)),
            ("iat", json!(seconds + 301)),
            ("iat", json!(seconds - 7 * 86_400)),
            ("iat", json!("now")),
            ("iat", json!(i64::MAX)),
            ("iat", json!(1e300)),
            ("iat", json!(-1e300)),
            ("events", json!({})),
            ("events", json!({ "a": {}, "b": {} })),
            ("events", json!({ "a": 7 })),
            ("events", json!([])),
        ] {
            let fault = about(name, value.clone()).unwrap_err();
            assert_eq!(fault.kind(), Kind::InvalidRequest, "{name}: {value}");
        }
    }

    /// Every published set of claims is read where it is meant for here.
    #[test]
    fn the_published_claims_are_read() {
        let issuer = Issuer::new();
        for claims in vectors()["valid"].as_array().unwrap() {
            let text = |it: &Value| it.as_str().unwrap().to_owned();
            let audience = claims["aud"].as_array().map_or_else(|| text(&claims["aud"]), |it| text(&it[0]));
            let expected = Expected { issuer: &text(&claims["iss"]), audience: &audience };
            let now = Timestamp::from_millis(claims["iat"].as_i64().unwrap() * 1_000);
            let token = issuer.token(&header(), claims);
            let set = Unverified::read(token.as_bytes()).unwrap().verify(&issuer.keys, expected, now).unwrap();
            assert!(claims["events"].get(&set.event).is_some());
        }
    }

    /// Wycheproof's signatures by ES256, RS256 and HS256: what holds holds by its key, and nothing else does; none is a token.
    #[test]
    fn wycheproof_signatures_agree() {
        let text = include_str!("../../../svc-core/tests/data/wycheproof_jws_es256_rs256_hs256.json");
        let file: Value = serde_json::from_str(text).unwrap();
        let mut held = 0;
        for group in file["testGroups"].as_array().unwrap() {
            let public = json!({ "keys": [group.get("public").unwrap_or(&Value::Null)] });
            let keys = Jwks::of(&json(&public));
            for test in group["tests"].as_array().unwrap() {
                let Some(jws) = test["jws"].as_str() else { continue };
                assert!(Unverified::read(jws.as_bytes()).is_err(), "{test}");
                let Ok(keys) = &keys else { continue };
                let Some((signed, signature)) = jws.rsplit_once('.') else { continue };
                let Some(header) = signed.split_once('.').and_then(|it| URL_SAFE_NO_PAD.decode(it.0).ok()) else {
                    continue;
                };
                let header = Json::parse(&header).ok();
                let said = |name| header.as_ref().and_then(|it| it.get(name)).and_then(Json::as_str);
                let (algorithm, signature) =
                    (said("alg").and_then(Algorithm::parse), URL_SAFE_NO_PAD.decode(signature));
                let holds = algorithm.zip(signature.ok());
                let holds = holds.is_some_and(|(by, it)| keys.verifies(by, said("kid"), signed.as_bytes(), &it));
                assert_eq!(holds, test["result"] == "valid", "{test}");
                held += usize::from(holds);
            }
        }
        assert!(held > 0, "some hold");
    }
}
