//! The uses of keys, as key sets tell them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::state::gate::receipt::{KeyFault, PublicKey, PublicKeys, Signer as _, jwks_json, parse, write};
use svc_core::state::people::{Purpose, SigningKey, SigningUse};
use svc_core::value::Timestamp;

use receipts::{payment, signer};

mod receipts;

/// A stored key is published with its use, and one of another use than receipts verifies none, though it has signed it.
#[test]
fn a_key_of_another_use_verifies_no_receipt() {
    let (signer, keys) = signer();
    let public = URL_SAFE_NO_PAD.encode(keys.get(signer.kid()).unwrap().as_bytes());
    for purpose in Purpose::ALL {
        let row = SigningKey {
            id: SigningUse::first(purpose),
            public: public.as_str().into(),
            sealed: "".into(),
            created_at: Timestamp::from_millis(0),
            not_before: Timestamp::from_millis(0),
            retired_at: None,
            compromised_at: None,
        };
        let json = jwks_json(&PublicKeys::from_iter([PublicKey::of(&row).unwrap()]));
        assert!(
            json.ends_with(&format!(r#","use":"sig","alg":"EdDSA","svc_use":"{}"}}]}}"#, purpose.as_str())),
            "{json}"
        );
        let read = PublicKeys::from_jwks(&json).unwrap();
        assert_eq!(read.get(signer.kid()).unwrap().purpose(), Some(purpose));
        let verified = read.verify(&parse(&write(&payment(), &signer)).unwrap());
        let expected = if purpose == Purpose::Receipt { Ok(()) } else { Err(KeyFault::Unknown) };
        assert_eq!(verified, expected, "{purpose:?}");
    }
}
