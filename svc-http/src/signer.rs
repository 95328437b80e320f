//! The server's receipt signer, over aws-lc-rs: twice as fast as the one that the core brings, byte for byte the same.

use std::fmt;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use svc_core::state::gate::receipt::{Signer, WeakKey, is_same, thumbprint};
use svc_core::value::secret::Secret;

/// Signs receipts with aws-lc-rs, which is in the server anyway.
pub struct AwsSigner {
    key: Ed25519KeyPair,
    kid: String,
    issuer: String,
}

impl AwsSigner {
    /// The signer over an Ed25519 seed (RFC 8032, 5.1.5), for receipts of the service at `issuer`, its base address.
    ///
    /// # Errors
    /// [`WeakKey`] where the library takes no key from the seed; none of 32 bytes is known for which it would not.
    pub fn new(seed: &Secret<[u8; 32]>, issuer: impl Into<String>) -> Result<Self, WeakKey> {
        let key = Ed25519KeyPair::from_seed_unchecked(seed.expose()).map_err(|_| WeakKey)?;
        let public: [u8; 32] = key.public_key().as_ref().try_into().map_err(|_| WeakKey)?;
        Ok(Self { key, kid: thumbprint(&public), issuer: issuer.into() })
    }

    fn try_sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        self.key.try_sign(message).ok().and_then(|it| it.as_ref().try_into().ok())
    }
}

impl Signer for AwsSigner {
    fn issuer(&self) -> &str {
        &self.issuer
    }

    fn kid(&self) -> &str {
        &self.kid
    }

    /// The signature. Should the library fail, which needs it to run out of memory, the receipt carries zeroes and so
    /// verifies nowhere: an agent that cannot prove its allow is better than a server that stops.
    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.try_sign(message).unwrap_or_else(|| {
            tracing::error!(kid = %self.kid, "a receipt could not be signed");
            [0; 64]
        })
    }

    /// Zeroes that stand for no signature are known again by nobody.
    fn made(&self, kid: &str, message: &[u8], signature: &[u8; 64]) -> bool {
        kid == self.kid && self.try_sign(message).is_some_and(|made| is_same(&made, signature))
    }
}

impl fmt::Debug for AwsSigner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AwsSigner").field("kid", &self.kid).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use sha2::{Digest as _, Sha256};
    use svc_core::state::gate::receipt::DalekSigner;
    use svc_core::value::Timestamp;

    use super::*;

    fn shared<T: Send + Sync>(_: &T) {}

    /// Both signers give the same name and the same bytes, over many seeds and over messages of every length up to a
    /// receipt's.
    #[test]
    fn both_signers_give_the_same_bytes() {
        for seed in 0..8_u8 {
            let bytes: [u8; 32] = Sha256::digest([seed]).into();
            let aws = AwsSigner::new(&Secret::new(bytes), "https://gate.example").unwrap();
            let dalek = DalekSigner::new(&Secret::new(bytes), "https://gate.example");
            shared(&aws);
            assert_eq!((aws.kid(), aws.issuer()), (dalek.kid(), dalek.issuer()));
            let public = dalek.public_key(Timestamp::from_millis(0));
            assert_eq!(aws.key.public_key().as_ref(), public.as_bytes());
            for length in (0..600).step_by(7).chain([4_095, 4_096]) {
                let message: Vec<u8> = (0..length).map(|at: usize| at.to_le_bytes()[0] ^ seed).collect();
                let signature = aws.sign(&message);
                assert_eq!(signature, dalek.sign(&message), "seed {seed}, {length} bytes");
                assert!(public.signed(&message, &signature));
                for signer in [&aws as &dyn Signer, &dalek] {
                    assert!(signer.made(public.kid(), &message, &signature));
                    assert!(!signer.made("another", &message, &signature));
                    let mut altered = signature;
                    altered[length % 64] ^= 1 << (length % 8);
                    assert!(!signer.made(public.kid(), &message, &altered), "seed {seed}, {length} bytes");
                    assert!(!signer.made(public.kid(), &message, &[0; 64]));
                }
            }
        }
    }

    /// Nothing secret is printed.
    #[test]
    fn a_signer_does_not_print_its_seed() {
        let aws = AwsSigner::new(&Secret::new([7; 32]), "https://gate.example").unwrap();
        let printed = format!("{aws:?}");
        assert!(printed.contains(aws.kid()) && !printed.contains("7, 7, 7") && !printed.contains("0707"), "{printed}");
    }
}
