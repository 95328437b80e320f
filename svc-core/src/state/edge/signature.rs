//! How calls to the outside are signed: `svc-signature: t=<unix seconds>,v1=<hex>`.
//!
//! `v1` is HMAC-SHA256 of `t`, a full stop and the body as sent, under the whole text of the secret. While a secret rotates
//! there is one `v1` for each that is in force: a receiver accepts the call where any of them fits.

use core::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::value::Timestamp;

/// The value of the header for `body`, sent at `at`, under each of `secrets`.
#[must_use]
pub fn signature<'a>(at: Timestamp, body: &[u8], secrets: impl IntoIterator<Item = &'a [u8]>) -> String {
    let seconds = at.as_seconds();
    let mut out = format!("t={seconds}");
    for secret in secrets {
        // A key of any length is one.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { continue };
        mac.update(seconds.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        let _ = write!(out, ",v1={}", hex::encode(mac.finalize().into_bytes()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published example of the scheme: the same secret, body and instant give the same signature.
    #[test]
    fn a_known_signature_comes_out() {
        let at = Timestamp::from_millis(1_614_265_330_999);
        let body = br#"{"id":"evt_1","object":"event"}"#;
        let one = signature(at, body, [&b"whsec_test_secret"[..]]);
        let known = "t=1614265330,v1=42b3d2b2181207b6b299df380bf37599bb895dc182467ba12e046b1916c4cd19";
        assert_eq!(one, known);
        let two = signature(at, body, [&b"whsec_test_secret"[..], b"whsec_other"]);
        assert!(two.starts_with(&one) && two.matches(",v1=").count() == 2, "{two}");
    }
}
