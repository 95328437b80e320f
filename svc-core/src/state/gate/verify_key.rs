//! The idempotency key of a verification.
//!
//! A consuming verdict is given again to the one who asked, and to nobody else. So the key must be something that only
//! that caller knows: whoever saw the receipt must not be able to make it from the receipt.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use super::receipt::RECEIPT_BYTES_MAX;
use crate::value::Invalid;
use crate::value::digest::Digest;

/// The fewest characters a key may have.
pub const KEY_CHARS_MIN: usize = 16;
/// The most characters a key may have.
pub const KEY_CHARS_MAX: usize = 128;

/// The SHA-256 of an `idempotency-key` sent with `POST /v1/verify`; the key itself is kept nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerifyKey(Digest);

impl VerifyKey {
    /// Takes the key that came with `receipt`. A receipt past [`RECEIPT_BYTES_MAX`] is neither searched nor hashed: its
    /// verdict is `malformed`, whatever the key.
    ///
    /// # Errors
    /// [`Invalid`] where the key has not 16 to 128 characters, holds a control character, or can be made from the receipt:
    /// it is part of it or of what it says, or holds its MD5, SHA-1, SHA-256 or SHA-512 in hexadecimal, base64 or base64url.
    pub fn new(key: &str, receipt: &str) -> Result<Self, Invalid> {
        let chars = key.chars().count();
        if !(KEY_CHARS_MIN..=KEY_CHARS_MAX).contains(&chars) {
            return Err(Invalid::new("must have 16 to 128 characters"));
        }
        if key.chars().any(char::is_control) {
            return Err(Invalid::new("must hold no control character"));
        }
        if receipt.len() <= RECEIPT_BYTES_MAX && is_made_from(key, receipt) {
            return Err(Invalid::new("must be random, not made from the receipt"));
        }
        Ok(Self(Digest::of(key)))
    }

    /// The digest that the consumption's row keeps.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.0
    }
}

fn is_made_from(key: &str, receipt: &str) -> bool {
    if receipt.contains(key) {
        return true;
    }
    let lower = key.to_ascii_lowercase();
    // What it says is its header and its claims. Ids and digests are known to whoever reads them in either case.
    let parts = receipt.split('.').take(2).filter_map(|part| URL_SAFE_NO_PAD.decode(part).ok());
    if { parts }.any(|said| String::from_utf8_lossy(&said).to_ascii_lowercase().contains(&lower)) {
        return true;
    }
    let digests: [&[u8]; 4] =
        [&Md5::digest(receipt), &Sha1::digest(receipt), &Sha256::digest(receipt), &Sha512::digest(receipt)];
    // Holding a digest is enough, so that padding or a prefix such as `sha256:` hides none.
    digests.iter().any(|digest| {
        lower.contains(&hex::encode(digest))
            || key.contains(&STANDARD_NO_PAD.encode(digest))
            || key.contains(&URL_SAFE_NO_PAD.encode(digest))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    use super::*;

    const RECEIPT: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7";

    /// A random key of 16 to 128 characters is taken, whatever the characters, and only its SHA-256 is kept.
    #[test]
    fn a_random_key_is_kept_as_its_digest() {
        for key in ["8f14e45fceea167a", &"k".repeat(128), &"é".repeat(16), "3d6f4a1e-6f0c-4f0f-9a53-0c7f7b0c5a2e"] {
            let kept = VerifyKey::new(key, RECEIPT).unwrap();
            assert_eq!(kept.digest().as_bytes()[..], Sha256::digest(key)[..], "{key}");
        }
        assert_ne!(VerifyKey::new("8f14e45fceea167a", RECEIPT), VerifyKey::new("8f14e45fceea167b", RECEIPT));
    }

    /// Short, long and unprintable keys are refused, counted in characters.
    #[test]
    fn a_key_has_16_to_128_characters() {
        for key in ["", "8f14e45fceea167", &"é".repeat(15), &"k".repeat(129), "8f14e45f\tceea167a"] {
            assert!(VerifyKey::new(key, RECEIPT).is_err(), "{key}");
        }
    }

    /// A piece of the receipt is no secret.
    #[test]
    fn a_key_that_the_receipt_contains_is_refused() {
        for key in [RECEIPT, &RECEIPT[..16], &RECEIPT[30..60], "il_MGCjP0JzlnLWG1PPOt7"] {
            assert!(VerifyKey::new(key, RECEIPT).is_err(), "{key}");
        }
    }

    /// Nor is anything that it says: its number, its action, its agent, the digest of what was asked, with or without the name of
    /// the algorithm.
    #[test]
    fn a_key_that_the_receipt_says_is_refused() {
        let (jti, act) = ("rcp_01k6f8e8000000000000000003", "act_01k6f8e8000000000000000004");
        let dig = format!("sha256:{}", "5e".repeat(32));
        let header = r#"{"alg":"EdDSA","kid":"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k","typ":"svc-receipt+jwt"}"#;
        let claims = format!(r#"{{"act":"{act}","dig":"{dig}","iss":"https://gate.example","jti":"{jti}"}}"#);
        let receipt = format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let said = [jti, act, &dig, &dig[7..], "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "https://gate.example"];
        for key in said {
            for key in [key, &key.to_uppercase()] {
                assert!(VerifyKey::new(key, &receipt).is_err(), "{key}");
                assert!(VerifyKey::new(key, "another receipt").is_ok(), "{key}");
            }
        }
    }

    /// Nor is any usual digest of it, in any usual writing.
    #[test]
    fn a_key_that_is_a_digest_of_the_receipt_is_refused() {
        let digests: [Vec<u8>; 4] = [
            Md5::digest(RECEIPT).to_vec(),
            Sha1::digest(RECEIPT).to_vec(),
            Sha256::digest(RECEIPT).to_vec(),
            Sha512::digest(RECEIPT).to_vec(),
        ];
        for digest in digests {
            let hex = hex::encode(&digest);
            let mixed: String =
                hex.char_indices().map(|(at, it)| if at % 2 == 0 { it.to_ascii_uppercase() } else { it }).collect();
            for key in [
                hex.clone(),
                hex.to_uppercase(),
                mixed,
                STANDARD.encode(&digest),
                STANDARD_NO_PAD.encode(&digest),
                URL_SAFE.encode(&digest),
                URL_SAFE_NO_PAD.encode(&digest),
                format!("digest-{}", URL_SAFE.encode(&digest)),
            ] {
                assert!(VerifyKey::new(&key, RECEIPT).is_err(), "{key}");
                assert!(VerifyKey::new(&key, "another receipt").is_ok(), "{key}");
            }
        }
    }

    /// A text too long to be a receipt is not hashed: its verdict stands already.
    #[test]
    fn a_text_past_the_limit_is_not_hashed() {
        let text = "r".repeat(RECEIPT_BYTES_MAX + 1);
        assert!(VerifyKey::new(&hex::encode(Sha256::digest(&text)), &text).is_ok());
        let text = "r".repeat(RECEIPT_BYTES_MAX);
        assert!(VerifyKey::new(&hex::encode(Sha256::digest(&text)), &text).is_err());
    }
}
