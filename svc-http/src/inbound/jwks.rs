//! The public keys of whoever signs what comes in (RFC 7517), for ES256 and RS256 (RFC 7518, 3.3 and 3.4) and nothing else.
//!
//! **Invariant:** a key verifies by the one algorithm that its own kind has, whatever a header says.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::value::Invalid;
use svc_core::value::json::Json;

/// Keys that one set may hold.
pub const KEYS_MAX: usize = 100;
/// Bytes of a coordinate on P-256.
const COORDINATE: usize = 32;
/// Bits of an RSA modulus that are enough, and those that are more than anybody needs.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// An algorithm that what comes in may be signed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
}

impl Algorithm {
    /// Reads the word of a header or a key.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "ES256" => Some(Self::Es256),
            "RS256" => Some(Self::Rs256),
            _ => None,
        }
    }
}

/// A set of public keys.
#[derive(Clone, Debug)]
pub struct Jwks(Vec<Jwk>);

#[derive(Clone, Debug)]
struct Jwk {
    kid: Option<Box<str>>,
    key: Key,
}

#[derive(Clone, Debug)]
enum Key {
    /// A point, uncompressed.
    P256(Box<[u8]>),
    Rsa {
        modulus: Box<[u8]>,
        exponent: Box<[u8]>,
    },
}

impl Jwks {
    /// Reads a set. Keys of other kinds, for other uses or of other algorithms are passed over, as RFC 7517 (section 5) has it.
    ///
    /// # Errors
    /// [`Invalid`] where it is no set, has more than [`KEYS_MAX`] keys, or none that is of use here; or where it holds a private
    /// or a shared key, which has no business in what others read.
    pub fn of(set: &Json) -> Result<Self, Invalid> {
        let keys = set.get("keys").and_then(Json::as_list);
        let keys = keys.ok_or_else(|| Invalid::new("must be a JSON Web Key Set: an object with a list of `keys`"))?;
        if keys.len() > KEYS_MAX {
            return Err(Invalid::new(format!("must hold at most {KEYS_MAX} keys")));
        }
        if keys.iter().any(|key| ["d", "k", "p", "q"].iter().any(|it| key.get(it).is_some_and(|it| !it.is_null()))) {
            return Err(Invalid::new("must hold public keys alone"));
        }
        let read: Vec<Jwk> = keys.iter().filter_map(Jwk::of).collect();
        if read.is_empty() {
            return Err(Invalid::new("holds no key for ES256 or RS256 (RSA of 2048 to 8192 bits)"));
        }
        Ok(Self(read))
    }

    /// Whether a key of the set made the signature by this algorithm. One that is named has to be the one; without a name every
    /// key of the kind is tried.
    #[must_use]
    pub fn verifies(&self, algorithm: Algorithm, kid: Option<&str>, message: &[u8], signature: &[u8]) -> bool {
        self.named(kid).any(|it| it.key.verifies(algorithm, message, signature))
    }

    /// Whether a key of the set has this name, or there is no name to be had.
    #[must_use]
    pub fn has(&self, kid: Option<&str>) -> bool {
        self.named(kid).next().is_some()
    }

    fn named<'a>(&'a self, kid: Option<&'a str>) -> impl Iterator<Item = &'a Jwk> {
        self.0.iter().filter(move |it| kid.is_none() || it.kid.as_deref() == kid)
    }
}

impl Jwk {
    fn of(key: &Json) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Json::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        if text("use").is_some_and(|it| it != "sig") {
            return None;
        }
        let operations = key.get("key_ops").and_then(Json::as_list);
        if operations.is_some_and(|it| !it.iter().any(|it| it.as_str() == Some("verify"))) {
            return None;
        }
        let read = match text("kty")? {
            "EC" if text("crv") == Some("P-256") => Key::point(&bytes("x")?, &bytes("y")?)?,
            "RSA" => Key::rsa(&bytes("n")?, &bytes("e")?)?,
            _ => return None,
        };
        let is_of_it = text("alg").is_none_or(|it| Algorithm::parse(it) == Some(read.algorithm()));
        is_of_it.then(|| Self { kid: text("kid").map(Into::into), key: read })
    }
}

impl Key {
    fn point(x: &[u8], y: &[u8]) -> Option<Self> {
        let is_whole = x.len() == COORDINATE && y.len() == COORDINATE;
        is_whole.then(|| Self::P256([&[4], x, y].concat().into()))
    }

    fn rsa(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let trim = |number: &[u8]| -> Box<[u8]> { number.iter().copied().skip_while(|it| *it == 0).collect() };
        let (modulus, exponent) = (trim(modulus), trim(exponent));
        let top = modulus.first()?;
        let bits = modulus.len().saturating_mul(8).saturating_sub(top.leading_zeros() as usize);
        let is_odd = exponent.last()? & 1 == 1 && *exponent != [1];
        (RSA_BITS.contains(&bits) && is_odd).then_some(Self::Rsa { modulus, exponent })
    }

    const fn algorithm(&self) -> Algorithm {
        match self {
            Self::P256(_) => Algorithm::Es256,
            Self::Rsa { .. } => Algorithm::Rs256,
        }
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if algorithm != self.algorithm() {
            return false;
        }
        match self {
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            Self::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use super::*;

    const POINT: &str = r#""kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0""#;

    fn read(keys: &str) -> Result<Jwks, Invalid> {
        Jwks::of(&Json::parse(format!(r#"{{"keys":[{keys}]}}"#).as_bytes()).unwrap())
    }

    fn rsa(bits: usize) -> String {
        let mut modulus = vec![0xff; bits / 8];
        modulus.insert(0, 0);
        format!(r#"{{"kty":"RSA","e":"AQAB","n":"{}"}}"#, URL_SAFE_NO_PAD.encode(modulus))
    }

    /// Keys of other kinds, uses, algorithms and strengths are passed over; a set of such alone is none, nor is one with secrets.
    #[test]
    fn keys_of_no_use_are_passed_over() {
        let point = format!("{{{POINT}}}");
        for good in [&point, &rsa(2048), &rsa(8192), &format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"AA"}},{point}"#)] {
            assert!(read(good).is_ok(), "{good}");
        }
        let of = |more: &str| format!("{{{POINT},{more}}}");
        for bad in [
            "".to_owned(),
            "7".to_owned(),
            rsa(2040),
            rsa(8200),
            of(r#""use":"enc""#),
            of(r#""alg":"RS256""#),
            of(r#""alg":"ES384""#),
            of(r#""key_ops":["sign"]"#),
            of(r#""d":"AA""#),
            format!(r#"{point},{{"kty":"oct","k":"AAAA"}}"#),
            point.replace("P-256", "P-384"),
            point.replace(r#""x":"f8"#, r#""x":"AAf8"#),
            rsa(2048).replace("AQAB", "AQ"),
            rsa(2048).replace("AQAB", "Ag"),
            vec![point.clone(); KEYS_MAX + 1].join(","),
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
        assert!(Jwks::of(&Json::parse(b"{}").unwrap()).is_err());
    }

    /// The example of RFC 7515, appendix A.3, is signed by its key, by that algorithm, under that name.
    #[test]
    fn a_key_verifies_by_its_own_algorithm_alone() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/data/rfc7515_a3_es256.json")).unwrap();
        let (message, signature) = file["compact"].as_str().unwrap().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let keys = read(&format!(r#"{{{POINT},"kid":"a"}}"#)).unwrap();
        let verifies = |algorithm, kid, message: &str| keys.verifies(algorithm, kid, message.as_bytes(), &signature);
        assert!(verifies(Algorithm::Es256, Some("a"), message) && verifies(Algorithm::Es256, None, message));
        assert!(!verifies(Algorithm::Es256, Some("b"), message) && !verifies(Algorithm::Rs256, Some("a"), message));
        assert!(!verifies(Algorithm::Es256, Some("a"), &message[1..]));
        assert!(keys.has(Some("a")) && keys.has(None) && !keys.has(Some("b")));
    }
    /// Wycheproof's signatures of P-256 as both numbers of one length, which is how ES256 has them: the valid ones hold by their key,
    /// and none that is altered, too long, too short or in DER, whatever its key is.
    #[test]
    fn wycheproof_p1363_agrees() {
        let text = include_str!("../../tests/data/wycheproof_ecdsa_p256_sha256_p1363.json");
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        let bytes = |it: &serde_json::Value| hex::decode(it.as_str().unwrap()).unwrap();
        let mut seen = 0;
        for group in file["testGroups"].as_array().unwrap() {
            let [4, point @ ..] = &bytes(&group["publicKey"]["uncompressed"])[..] else { panic!("{group}") };
            let [x, y] = [&point[..COORDINATE], &point[COORDINATE..]].map(|it| URL_SAFE_NO_PAD.encode(it));
            let keys = read(&format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"}}"#)).unwrap();
            for test in group["tests"].as_array().unwrap() {
                let holds = keys.verifies(Algorithm::Es256, None, &bytes(&test["msg"]), &bytes(&test["sig"]));
                assert_eq!(holds, test["result"] == "valid", "{test}");
                seen += 1;
            }
        }
        assert_eq!(seen, file["numberOfTests"]);
    }
}
