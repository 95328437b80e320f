//! Published vectors: RFC 8032, RFC 8037, Wycheproof's Ed25519 and JSON Web Signature files, receipts of another maker that no
//! verifier may take; and the faults that receipts of other makers are known for.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use svc_core::state::gate::receipt::{
    DalekSigner, KeyFault, PublicKey, PublicKeys, Signer as _, parse, thumbprint, write,
};
use svc_core::value::Timestamp;
use svc_core::value::secret::Secret;

mod receipts;

macro_rules! vectors {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("data/", $name, ".json"))).unwrap()
    };
}

fn hex_of(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap()
}

/// RFC 8032, 7.1: from the seed come the public key and the signature, byte for byte, and the key verifies it.
#[test]
fn rfc_8032_signs_and_verifies() {
    let file = vectors!("rfc8032_ed25519");
    let tests = file["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 3);
    for test in tests {
        let signer = DalekSigner::new(&Secret::new(array(&hex_of(&test["secretKey"]))), "https://gate.example");
        let key = signer.public_key(Timestamp::from_millis(0));
        assert_eq!(key.as_bytes().to_vec(), hex_of(&test["publicKey"]), "{}", test["name"]);
        let message = hex_of(&test["message"]);
        let signature = signer.sign(&message);
        assert_eq!(signature.to_vec(), hex_of(&test["signature"]), "{}", test["name"]);
        assert!(key.signed(&message, &signature));
        assert!(!key.signed(&[&message[..], b"x"].concat(), &signature));
    }
}

/// RFC 8037, A.2 to A.5: the thumbprint, the signature over the signing input, and its validation. The compact text itself
/// names no type and no key, so it is no receipt.
#[test]
fn rfc_8037_signs_names_and_verifies() {
    let file = vectors!("rfc8037_eddsa_jws");
    let text = |name: &str| file[name].as_str().unwrap();
    let part = |value: &Value| URL_SAFE_NO_PAD.decode(value.as_str().unwrap()).unwrap();
    let public: [u8; 32] = array(&part(&file["publicJwk"]["x"]));
    assert_eq!(thumbprint(&public), text("rfc7638_thumbprint"));

    let signer = DalekSigner::new(&Secret::new(array(&part(&file["privateJwk"]["d"]))), "https://gate.example");
    assert_eq!(signer.kid(), text("rfc7638_thumbprint"));
    let input = text("signingInput").as_bytes();
    assert_eq!(URL_SAFE_NO_PAD.encode(signer.sign(input)), text("signature"));
    assert!(PublicKey::new(&public).unwrap().signed(input, &array(&part(&file["signature"]))));
    assert!(parse(text("compact")).is_err());

    let set = format!(r#"{{"keys":[{}]}}"#, file["publicJwk"]);
    assert!(PublicKeys::from_jwks(&set).unwrap().get(signer.kid()).is_some());
}

/// Wycheproof's Ed25519 file: every valid signature verifies and every other is refused, malleable and truncated ones among
/// them.
#[test]
fn wycheproof_ed25519_agrees() {
    let file = vectors!("wycheproof_ed25519");
    let mut seen = 0;
    for group in file["testGroups"].as_array().unwrap() {
        let key = PublicKey::new(&array(&hex_of(&group["publicKey"]["pk"]))).unwrap();
        for test in group["tests"].as_array().unwrap() {
            // A signature of another length is none: `parse` refuses it before a key is looked at.
            let signature = <[u8; 64]>::try_from(&hex_of(&test["sig"])[..]);
            let holds = signature.is_ok_and(|it| key.signed(&hex_of(&test["msg"]), &it));
            assert_eq!(holds, test["result"] == "valid", "{test}");
            seen += 1;
        }
    }
    assert_eq!(seen, file["numberOfTests"]);
}

/// Wycheproof's signatures by ES256, RS256 and HS256, valid and invalid: none has the form of a receipt. An algorithm is
/// never taken from the text.
#[test]
fn wycheproof_signatures_by_other_algorithms_are_no_receipts() {
    let file = vectors!("wycheproof_jws_es256_rs256_hs256");
    let mut seen = 0;
    for test in file["testGroups"].as_array().unwrap().iter().flat_map(|group| group["tests"].as_array().unwrap()) {
        assert!(parse(test["jws"].as_str().unwrap()).is_err(), "{test}");
        seen += 1;
    }
    assert_eq!(seen, file["numberOfTests"]);
}

/// Faults that other verifiers of signed receipts were caught accepting, each made on one of ours: another proof type, a
/// changed action or person, a signature cut away, prefixed or with one bit flipped.
#[test]
fn known_faults_of_receipts_are_refused() {
    let (signer, keys) = receipts::signer();
    let good = write(&receipts::payment(), &signer);
    assert_eq!(keys.verify(&parse(&good).unwrap()), Ok(()));
    let [header, payload, signature] = receipts::parts(&good);
    let changed = |part: &str, from: &str, to: &str| {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert!(text.contains(from), "{from}");
        URL_SAFE_NO_PAD.encode(text.replacen(from, to, 1))
    };
    for text in [
        format!("{}.{payload}.{signature}", changed(&header, "EdDSA", "RS256")),
        format!("{header}.{payload}."),
        format!("{header}.{payload}.z{signature}"),
    ] {
        assert!(parse(&text).is_err(), "{text}");
    }
    let mut flipped = URL_SAFE_NO_PAD.decode(&signature).unwrap();
    flipped[40] ^= 0x10;
    for text in [
        format!("{header}.{}.{signature}", changed(&payload, r#""type":"payment""#, r#""type":"refund""#)),
        format!(
            "{header}.{}.{signature}",
            changed(&payload, "agt_00000000000000000000000003", "agt_00000000000000000000000004")
        ),
        format!("{header}.{}.{signature}", changed(&payload, r#""amount":4200"#, r#""amount":9900"#)),
        format!("{header}.{payload}.{}", URL_SAFE_NO_PAD.encode(flipped)),
    ] {
        assert_eq!(keys.verify(&parse(&text).unwrap()), Err(KeyFault::BadSignature), "{text}");
    }
}

/// Every receipt of the corpus that any verifier has to refuse, as it stands and in each part of a text of ours, signed by a key
/// that is trusted here even: none has the form of a receipt.
#[test]
fn malformed_receipts_of_another_maker_are_none() {
    let file = vectors!("obsigna_malformed_receipts");
    let (signer, _) = receipts::signer();
    let [header, payload, signature] = receipts::parts(&write(&receipts::payment(), &signer));
    let single = file["receipts"].as_array().unwrap().iter().map(|it| &it["receipt"]);
    let chained = file["chains"].as_array().unwrap().iter().flat_map(|it| it["receipts"].as_array().unwrap());
    let all: Vec<&Value> = single.chain(chained).collect();
    assert_eq!(all.len(), 9);
    for receipt in all {
        let (text, proof) = (receipt.to_string(), receipt["proof"]["proofValue"].as_str().unwrap());
        let part = URL_SAFE_NO_PAD.encode(&text);
        let own = URL_SAFE_NO_PAD.encode(signer.sign(format!("{header}.{part}").as_bytes()));
        for sent in [
            text,
            part.clone(),
            proof.to_owned(),
            format!("{header}.{part}.{own}"),
            format!("{part}.{payload}.{signature}"),
            format!("{header}.{payload}.{proof}"),
        ] {
            assert!(parse(&sent).is_err(), "{sent}");
        }
    }
}
