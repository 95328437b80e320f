//! The idempotency key of a verification.
//!
//! A consuming verdict is given again to the one who asked, and to nobody else. So the key must be something that only
//! that caller knows: whoever saw the receipt must not be able to make it from the receipt.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::receipt::RECEIPT_BYTES_MAX;
use crate::value::Invalid;

/// The fewest characters a key may have.
pub const KEY_CHARS_MIN: usize = 16;
/// The most characters a key may have.
pub const KEY_CHARS_MAX: usize = 128;

/// The SHA-256 of an `idempotency-key` sent with `POST /v1/verify`; the key itself is kept nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerifyKey([u8; 32]);

impl VerifyKey {
    /// Takes the key that came with `receipt`. A receipt past [`RECEIPT_BYTES_MAX`] is neither searched nor hashed: its
    /// verdict is `malformed`, whatever the key.
    ///
    /// # Errors
    /// [`Invalid`] where the key has not 16 to 128 characters, holds a control character, or can be made from the receipt:
    /// it is part of it, or holds its MD5, SHA-1, SHA-256 or SHA-512 in hexadecimal, base64 or base64url.
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
        Ok(Self(Sha256::digest(key).into()))
    }

    /// The digest that the consumption's row keeps.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.0
    }
}

fn is_made_from(key: &str, receipt: &str) -> bool {
    if receipt.contains(key) {
        return true;
    }
    let lower = key.to_ascii_lowercase();
    let digests: [&[u8]; 4] =
        [&Md5::digest(receipt), &Sha1::digest(receipt), &Sha256::digest(receipt), &Sha512::digest(receipt)];
    // Holding a digest is enough, so that padding or a prefix such as `sha256:` hides none.
    digests.iter().any(|digest| {
        lower.contains(&hex::encode(digest))
            || key.contains(&STANDARD_NO_PAD.encode(digest))
            || key.contains(&URL_SAFE_NO_PAD.encode(digest))
    })
}
