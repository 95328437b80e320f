//! Passwords: hashed with Argon2id off the request threads, a bounded number at once.
//!
//! **Invariant:** where there is nothing to compare with, a comparison takes as long: what it costs tells nothing of who
//! exists.

use std::sync::Arc;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use icu_normalizer::ComposingNormalizerBorrowed;
use svc_core::refusal::Refusal;
use svc_core::value::secret::Secret;
use tokio::sync::Semaphore;

/// OWASP's parameters for Argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// How many are computed at once: together 76 MiB.
const AT_ONCE: usize = 4;
/// How many may wait for their turn; more are told to come again.
const WAITING_MAX: usize = 256;

/// Hashes passwords and compares them.
#[derive(Debug)]
pub struct Passwords {
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE)), places: Arc::new(Semaphore::new(AT_ONCE + WAITING_MAX)) }
    }
}

impl Passwords {
    /// The hash of a new password, in PHC form.
    ///
    /// # Errors
    /// `not_ready` where too many wait, `internal` where the system gives no random bytes.
    pub async fn hash(&self, password: Secret<String>) -> Result<Box<str>, Refusal> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(|_| Refusal::internal())?;
        self.work(move || {
            let hash = derive(password.expose(), &salt)?;
            let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
            Some(format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${hash}").into())
        })
        .await?
        .ok_or_else(Refusal::internal)
    }

    /// Whether a password agrees with a hash. Without a hash the answer is no, and takes as long.
    ///
    /// # Errors
    /// `not_ready` where too many wait.
    pub async fn agrees(&self, password: Secret<String>, hash: Option<Box<str>>) -> Result<bool, Refusal> {
        self.work(move || {
            let known = hash.as_deref().and_then(parse);
            let (salt, wanted) = known.unwrap_or(([0; SALT_BYTES], [0; HASH_BYTES]));
            let derived = derive(password.expose(), &salt);
            let same =
                derived.is_some_and(|it| aws_lc_rs::constant_time::verify_slices_are_equal(&it, &wanted).is_ok());
            same && known.is_some()
        })
        .await
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Refusal::not_ready())?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Refusal::internal())?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((turn, place));
            done
        });
        done.await.map_err(|_| Refusal::internal())
    }
}

/// Of a password as RFC 8265 (section 4.2) compares it, in normal form C: keyboards write a letter with an accent as one character or
/// as two.
fn derive(password: &str, salt: &[u8; SALT_BYTES]) -> Option<[u8; HASH_BYTES]> {
    let password = Secret::new(ComposingNormalizerBorrowed::new_nfc().normalize(password).into_owned());
    let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(HASH_BYTES)).ok()?;
    let mut out = [0; HASH_BYTES];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password.expose().as_bytes(), salt, &mut out)
        .ok()?;
    Some(out)
}

/// The salt and the hash of a text that [`Passwords::hash`] wrote.
fn parse(phc: &str) -> Option<([u8; SALT_BYTES], [u8; HASH_BYTES])> {
    let rest = phc.strip_prefix("$argon2id$v=19$")?;
    let rest = rest.strip_prefix(&format!("m={MEMORY_KIB},t={PASSES},p={LANES}$"))?;
    let (salt, hash) = rest.split_once('$')?;
    let bytes = |text: &str| STANDARD_NO_PAD.decode(text).ok();
    Some((bytes(salt)?.try_into().ok()?, bytes(hash)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn secret(text: &str) -> Secret<String> {
        Secret::new(text.to_owned())
    }

    /// A letter with an accent is one character to one keyboard and two to another.
    #[tokio::test]
    async fn a_password_is_the_same_on_every_keyboard() {
        let passwords = Passwords::default();
        let (one, two) = ("Caf\u{e9} am Eck, zw\u{f6}lf", "Cafe\u{301} am Eck, zwo\u{308}lf");
        for (set, typed) in [(one, two), (two, one)] {
            let hash = passwords.hash(secret(set)).await.unwrap();
            assert!(passwords.agrees(secret(typed), Some(hash.clone())).await.unwrap());
            assert!(!passwords.agrees(secret("Cafe am Eck, zwolf"), Some(hash)).await.unwrap());
        }
    }

    /// A password agrees with its own hash alone, two hashes of one password differ, and no hash agrees with nothing.
    #[tokio::test]
    async fn a_password_agrees_with_its_own_hash() {
        let passwords = Passwords::default();
        let hash = passwords.hash(secret("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(hash, passwords.hash(secret("correct horse")).await.unwrap());
        assert!(passwords.agrees(secret("correct horse"), Some(hash.clone())).await.unwrap());
        assert!(!passwords.agrees(secret("correct horsf"), Some(hash)).await.unwrap());
        for none in [None, Some("".into()), Some("$argon2id$v=19$m=1,t=1,p=1$AAAA$AAAA".into())] {
            assert!(!passwords.agrees(secret(""), none).await.unwrap());
        }
    }
}
