//! Receipts: their bytes, their faults one by one, key sets, and the check without a server.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use svc_core::state::gate::receipt::{
    Claims, DalekSigner, ISSUER_BYTES_MAX, KeyFault, Offline, PaymentClaims, PublicKey, PublicKeys, RECEIPT_BYTES_MAX,
    Signer, check_offline, jwks_json, parse, write,
};
use svc_core::state::gate::{Action, ActionKind, Allowed, Class, DecidedBy, Origin, Payment, State, Verdict};
use svc_core::state::people::{SigningKey, SigningUse};
use svc_core::value::digest::Digest;
use svc_core::value::domain::Domain;
use svc_core::value::id::{ActionId, AgentId, EvidenceId, PrincipalId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_core::value::text::{Label, Summary};
use svc_core::value::{Currency, Id as _, Timestamp};

use receipts::{ISSUED_S, parts, payment, signer, tool_call};

mod receipts;

/// A receipt over a header and a payload of one's choice, truly signed: what a signer of ours would never write.
fn signed(signer: &dyn Signer, header: &str, payload: &str) -> String {
    let input = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = URL_SAFE_NO_PAD.encode(signer.sign(input.as_bytes()));
    format!("{input}.{signature}")
}

fn decoded(part: &str) -> String {
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Whether anything at all could take the text for a genuine receipt.
fn accepted(text: &str, keys: &PublicKeys) -> bool {
    parse(text).is_ok_and(|parsed| keys.verify(&parsed).is_ok())
}

/// The bytes of a receipt, once and for all: a change here is a change of the format.
#[test]
fn the_text_is_a_function_of_claims_and_key() {
    let (signer, _) = signer();
    let text = write(&payment(), &signer);
    assert_eq!(text, write(&payment(), &signer));
    let [header, payload, signature] = parts(&text);
    assert_eq!(
        decoded(&header),
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"--6IM5l0OosLj9yWskISYhUA3n_3CURQkmrYMSha_ck"}"#
    );
    let common = |kind: &str| {
        format!(
            r#"{{"iss":"https://gate.example","sub":"agt_00000000000000000000000003","jti":"rcp_00000000000000000000000001","act":"act_00000000000000000000000001","wid":"wsp_00000000000000000000000005","type":"{kind}","dig":"sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a","iat":1790847000,"nbf":1790846940,"exp":1790847900"#
        )
    };
    let money =
        r#","amount":4200,"currency":"EUR","merchant":{"name":"Straße & \"Söhne\" 東京","domain":"shop.example"}}"#;
    assert_eq!(decoded(&payload), common("payment") + money);
    // Made by Python's `cryptography` over the same seed and the same two parts.
    assert_eq!(signature, "ahp-iraJhq3oB4eXkzKiCNkT7k-FLg-Pp5Z1MEaP44Z9Mz9efBEpae-NFy-wiy1NnaSxpktb5UIMl4PbaCsCCg");
    assert_eq!(decoded(&parts(&write(&tool_call(), &signer))[1]), common("tool.call") + "}");
}

/// What was written is read back, and the key says it is genuine.
#[test]
fn a_receipt_is_read_back() {
    let (signer, keys) = signer();
    for claims in [payment(), tool_call()] {
        let text = write(&claims, &signer);
        let parsed = parse(&text).unwrap();
        assert_eq!((parsed.kid(), parsed.claims()), (signer.kid(), &claims));
        assert_eq!(keys.verify(&parsed), Ok(()));
    }
}

/// A receipt is made from the action's row alone: whole seconds rounded down, so that the text never outlives the row.
#[test]
fn claims_come_from_the_row() {
    let allowed = Allowed {
        at: Timestamp::from_millis(ISSUED_S * 1_000 + 999),
        by: DecidedBy::Policy,
        receipt_expires_at: Timestamp::from_millis((ISSUED_S + 900) * 1_000 + 999),
        consumed: None,
        lapsed: None,
        revoked: None,
        outcome: None,
        released: None,
    };
    let mut action = action(allowed.clone());
    assert_eq!(Claims::of(&action, &allowed, "https://gate.example"), payment());
    assert!(!payment().is_over(Timestamp::from_millis((ISSUED_S + 900) * 1_000 - 1)));
    assert!(payment().is_over(Timestamp::from_millis((ISSUED_S + 900) * 1_000)));

    action.payment = None;
    action.kind = ActionKind::parse("tool.call").unwrap();
    assert_eq!(Claims::of(&action, &allowed, "https://gate.example"), tool_call());
}

/// The row behind [`payment`].
fn action(allowed: Allowed) -> Action {
    let said = payment().payment.unwrap();
    Action {
        id: ActionId::from_bits(1),
        agent: AgentId::from_bits(3),
        workspace: WorkspaceId::from_bits(5),
        principal: PrincipalId::from_bits(6),
        kind: ActionKind::parse("payment").unwrap(),
        summary: Summary::parse("Renew the design tool").unwrap(),
        payment: Some(Payment {
            amount: said.amount,
            currency: Currency::parse(&said.currency).unwrap(),
            name: Label::parse(&said.merchant_name).unwrap(),
            domain: Domain::parse(&said.domain).unwrap(),
        }),
        data: None,
        tool: None,
        payload: false,
        replay: None,
        session: None,
        provenance: Origin { effective: Class::User, verdict: Verdict::Undeclared, ..Origin::default() },
        salt: [0; 16],
        digest: Digest::from_bytes([0x0a; 32]),
        epoch: 0,
        mandate: None,
        reservation: None,
        payee: None,
        reasons: Vec::new(),
        signals: Vec::new(),
        hold: None,
        state: State::Allowed(allowed),
        approval: None,
        callback: None,
        evidence: EvidenceId::from_bits(7),
        incident: None,
        erased: false,
    }
}

/// The longest claims there can be still make a text that `parse` looks at.
#[test]
fn the_largest_receipt_fits() {
    let issuer = "i".repeat(ISSUER_BYTES_MAX);
    let signer = DalekSigner::new(&Secret::new([7; 32]), issuer.clone());
    let claims = Claims {
        issuer: issuer.into(),
        kind: "k".repeat(200).into(),
        issued_at_s: (1 << 53) - 1,
        payment: Some(PaymentClaims {
            amount: (1 << 53) - 1,
            currency: "EUR".into(),
            merchant_name: "😀".repeat(100).into(),
            domain: "d".repeat(253).into(),
        }),
        ..payment()
    };
    let text = write(&claims, &signer);
    assert!(text.len() <= RECEIPT_BYTES_MAX, "{}", text.len());
    assert_eq!(parse(&text).unwrap().claims(), &claims);
}

/// Every single bit of header, claims and signature counts, in the decoded bytes and in the text.
#[test]
fn no_flipped_bit_survives() {
    let (signer, keys) = signer();
    let text = write(&payment(), &signer);
    assert!(accepted(&text, &keys));
    let whole = parts(&text);
    for place in 0..3 {
        let bytes = URL_SAFE_NO_PAD.decode(&whole[place]).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut altered = whole.clone();
            altered[place] = URL_SAFE_NO_PAD.encode(bytes);
            assert!(!accepted(&altered.join("."), &keys), "part {place}, bit {bit}");
        }
    }
    for bit in 0..text.len() * 8 {
        let mut bytes = text.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(altered) = String::from_utf8(bytes) {
            assert!(!accepted(&altered, &keys), "bit {bit} of the text");
        }
    }
}

/// A header with other members or other values is no receipt, though truly signed.
#[test]
fn a_header_is_exactly_three_members() {
    let (signer, keys) = signer();
    let kid = signer.kid().to_owned();
    let payload = decoded(&parts(&write(&payment(), &signer))[1]);
    let with = |header: &str| signed(&signer, &header.replace("KID", &kid), &payload);
    assert!(accepted(&with(r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID"}"#), &keys));
    for header in [
        r#"{"alg":"none","typ":"svc-receipt+jwt","kid":"KID"}"#,
        r#"{"alg":"HS256","typ":"svc-receipt+jwt","kid":"KID"}"#,
        r#"{"alg":"RS256","typ":"svc-receipt+jwt","kid":"KID"}"#,
        r#"{"alg":"ES256","typ":"svc-receipt+jwt","kid":"KID"}"#,
        r#"{"alg":"eddsa","typ":"svc-receipt+jwt","kid":"KID"}"#,
        r#"{"alg":["EdDSA"],"typ":"svc-receipt+jwt","kid":"KID"}"#,
        r#"{"alg":"EdDSA","typ":"JWT","kid":"KID"}"#,
        r#"{"alg":"EdDSA","typ":"svc-checkpoint+jwt","kid":"KID"}"#,
        r#"{"alg":"EdDSA","kid":"KID"}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt"}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":null}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":7}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","crit":["exp"]}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","jku":"https://evil.example/jwks.json"}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","jwk":{"kty":"OKP"}}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","x5u":"https://evil.example"}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","x5c":[]}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","x5t":"a"}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","x5t#S256":"a"}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","b64":false}"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID","cty":"JWT"}"#,
        r#"{"alg":"EdDSA","alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID"}"#,
        r#"["EdDSA","svc-receipt+jwt","KID"]"#,
        r#"{"alg":"EdDSA","typ":"svc-receipt+jwt","kid":"KID"}{}"#,
        r#""EdDSA""#,
        "null",
        "",
    ] {
        assert!(parse(&with(header)).is_err(), "{header}");
    }
}

/// Claims that are missing, unknown, doubled, null or of another type make no receipt, though truly signed.
#[test]
fn claims_are_strict() {
    let (signer, keys) = signer();
    let [header, payload, _] =
        parts(&write(&payment(), &signer)).map(|part| URL_SAFE_NO_PAD.decode(part).unwrap_or_default());
    let (header, payload) = (String::from_utf8(header).unwrap(), String::from_utf8(payload).unwrap());
    assert!(accepted(&signed(&signer, &header, &payload), &keys));
    for (from, to) in [
        (r#""iss":"https://gate.example","#, ""),
        (r#""iss":"https://gate.example""#, r#""iss":null"#),
        (r#""sub":"agt_"#, r#""sub":"act_"#),
        (r#""jti":"rcp_"#, r#""jti":"act_"#),
        (r#""act":"act_0"#, r#""act":"act_8"#),
        (r#""wid":"wsp_0"#, r#""wid":"wsp_o"#),
        (r#""type":"payment""#, r#""type":"""#),
        (r#""dig":"sha256:0a"#, r#""dig":"sha256:0A"#),
        (r#""dig":"sha256:0a"#, r#""dig":"sha256:"#),
        (r#""dig":"sha256:"#, r#""dig":"md5:"#),
        (r#""iat":1790847000"#, r#""iat":1790847000.0"#),
        (r#""iat":1790847000"#, r#""iat":"1790847000""#),
        (r#""iat":1790847000"#, r#""iat":1790847001"#),
        (r#""nbf":1790846940,"#, ""),
        (r#""exp":1790847900"#, r#""exp":1.79e9"#),
        (r#""exp":1790847900"#, r#""exp":true"#),
        (r#""exp":1790847900"#, r#""exp":9007199254740992"#),
        (r#""exp":1790847900"#, r#""exp":99999999999999999999"#),
        (r#""exp":1790847900"#, r#""exp":1790847900,"exp":1990847900"#),
        (r#""amount":4200"#, r#""amount":0"#),
        (r#""amount":4200"#, r#""amount":-1"#),
        (r#""amount":4200"#, r#""amount":42.5"#),
        (r#""amount":4200"#, r#""amount":"4200""#),
        (r#""amount":4200"#, r#""amount":null"#),
        (r#""amount":4200"#, r#""amount":9007199254740992"#),
        (r#""amount":4200,"#, ""),
        (r#""currency":"EUR","#, ""),
        (r#""currency":"EUR""#, r#""currency":"eur""#),
        (r#""currency":"EUR""#, r#""currency":"EURO""#),
        (r#""domain":"shop.example""#, r#""domain":"""#),
        (r#","domain":"shop.example""#, ""),
        (r#","domain":"shop.example""#, r#","domain":"shop.example","domain":"shop.example""#),
        (r#","domain":"shop.example""#, r#","domain":"shop.example","country":"DE""#),
        (
            r#""merchant":{"name":"Straße & \"Söhne\" 東京","domain":"shop.example"}"#,
            r#""merchant":["a","shop.example"]"#,
        ),
        (r#""merchant":{"name":"Straße & \"Söhne\" 東京","domain":"shop.example"}"#, r#""merchant":null"#),
        (r#"{"iss""#, r#"{"aud":"x","iss""#),
        (r#"{"iss""#, r#"{"summary":"x","iss""#),
    ] {
        assert!(payload.contains(from), "{from}");
        let text = signed(&signer, &header, &payload.replacen(from, to, 1));
        assert!(parse(&text).is_err(), "{from} as {to}");
    }
    for payload in ["", "{}", "[]", "null", "\u{feff}{}", "{\"iss\":\"\\ud800\"}"] {
        assert!(parse(&signed(&signer, &header, payload)).is_err(), "{payload}");
    }
    let not_utf8 = format!(
        "{}.{}.{}",
        URL_SAFE_NO_PAD.encode(&header),
        URL_SAFE_NO_PAD.encode(b"{\"iss\":\"\xff\"}"),
        "A".repeat(86)
    );
    assert!(parse(&not_utf8).is_err());
}

/// There is one base64url text for the same bytes: padding, the other alphabet, stray bits, blanks and other numbers of
/// parts are refused.
#[test]
fn only_canonical_base64url_in_three_parts_is_read() {
    let (signer, keys) = signer();
    let text = write(&payment(), &signer);
    let [header, payload, signature] = parts(&text);
    let raw = URL_SAFE_NO_PAD.decode(&signature).unwrap();
    let bad = [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        format!("{header}.{payload}"),
        format!("{header}.{payload}."),
        format!(".{payload}.{signature}"),
        format!("{header}..{signature}"),
        format!("{text}."),
        format!(".{text}"),
        format!("{text}.{signature}"),
        format!("{header}.{payload}.{}", URL_SAFE.encode(&raw)),
        format!("{header}.{payload}.{}", URL_SAFE_NO_PAD.encode(&raw[..63])),
        format!("{header}.{payload}.{}", URL_SAFE_NO_PAD.encode([&raw[..], &[0]].concat())),
        format!("{text} "),
        format!(" {text}"),
        format!("{text}\n"),
        format!("{header}.\n{payload}.{signature}"),
        format!("{header}%2E{payload}.{signature}"),
    ];
    for text in &bad {
        assert!(parse(text).is_err(), "{text}");
    }
    // 64 bytes leave four bits over in the last character: fifteen other characters decode to the same signature.
    let last = signature.as_bytes()[85];
    let others: Vec<char> = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['-', '_'])
        .filter(|it| *it as u32 != u32::from(last))
        .collect();
    for other in others {
        let altered = format!("{header}.{payload}.{}{other}", &signature[..85]);
        assert!(!accepted(&altered, &keys), "{other}");
    }
    let standard = STANDARD_NO_PAD.encode(&raw);
    assert_ne!(standard, signature, "the sample's signature has `-` or `_`");
    assert!(parse(&format!("{header}.{payload}.{standard}")).is_err());
}

/// 4,096 bytes are looked at, 4,097 are not, however good.
#[test]
fn a_text_past_the_limit_is_not_read() {
    let (signer, keys) = signer();
    let mut sizes = Vec::new();
    for name in 2_400..2_800 {
        let mut claims = payment();
        if let Some(payment) = &mut claims.payment {
            payment.merchant_name = "n".repeat(name).into();
        }
        let text = write(&claims, &signer);
        assert_eq!(accepted(&text, &keys), text.len() <= RECEIPT_BYTES_MAX, "{}", text.len());
        sizes.push(text.len());
    }
    assert!(sizes.contains(&RECEIPT_BYTES_MAX) && sizes.contains(&(RECEIPT_BYTES_MAX + 1)), "{sizes:?}");
}

/// Only the named key is tried, and only while it is trusted.
#[test]
fn another_key_proves_nothing() {
    let (signer, keys) = signer();
    let other = DalekSigner::new(&Secret::new([8; 32]), "https://gate.example");
    let text = write(&payment(), &other);
    let parsed = parse(&text).unwrap();
    assert_eq!(keys.verify(&parsed), Err(KeyFault::Unknown));

    // Signed by the other key under the name of ours.
    let [header, payload, _] = parts(&write(&payment(), &signer));
    let forged = signed(&other, &decoded(&header), &decoded(&payload));
    assert_eq!(keys.verify(&parse(&forged).unwrap()), Err(KeyFault::BadSignature));

    let at = |ms| Some(Timestamp::from_millis(ms));
    let key = other.public_key(Timestamp::from_millis(0));
    let mut retired = key.clone();
    retired.retired_at = at(5);
    let retired = PublicKeys::from_iter([retired]);
    assert_eq!(retired.verify(&parsed), Ok(()));
    let mut compromised = key;
    compromised.compromised_at = at(5);
    let compromised = PublicKeys::from_iter([compromised]);
    assert_eq!(compromised.verify(&parsed), Err(KeyFault::Unknown));
    assert_eq!(jwks_json(&compromised), r#"{"keys":[]}"#);
}

/// A signer that says of every signature by a name it is asked for whether it made it.
struct Claiming<'a> {
    signer: &'a DalekSigner,
    says: bool,
    asked: AtomicUsize,
}

impl Signer for Claiming<'_> {
    fn issuer(&self) -> &str {
        self.signer.issuer()
    }

    fn kid(&self) -> &str {
        self.signer.kid()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.signer.sign(message)
    }

    fn made(&self, kid: &str, _: &[u8], _: &[u8; 64]) -> bool {
        assert_eq!(kid, self.kid());
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.says
    }
}

/// The service that signed looks whether it would sign the same again before it verifies, gives every text the answer that
/// everybody else gives, and asks a key that is not trusted nothing.
#[test]
fn a_signer_knows_its_own_again() {
    let (signer, keys) = signer();
    let text = write(&payment(), &signer);
    let [header, payload, _] = parts(&text);
    let other = DalekSigner::new(&Secret::new([8; 32]), "https://gate.example");
    let forged = signed(&other, &decoded(&header), &decoded(&payload));
    let foreign = write(&payment(), &other);
    for text in [&text, &forged, &foreign] {
        let parsed = parse(text).unwrap();
        assert_eq!(keys.verify_own(&parsed, &signer).map(drop), keys.verify(&parsed));
        assert_eq!(
            keys.verify_own(&parsed, &other).map(drop),
            keys.verify(&parsed),
            "another's private half proves nothing"
        );
    }
    let claiming = |says| Claiming { signer: &signer, says, asked: AtomicUsize::new(0) };
    let (yes, no) = (claiming(true), claiming(false));
    let (good, bad) = (parse(&text).unwrap(), parse(&forged).unwrap());
    assert_eq!(keys.verify_own(&good, &no).map(drop), Ok(()), "the public half has the last word");
    assert_eq!(keys.verify_own(&bad, &no), Err(KeyFault::BadSignature));
    assert_eq!(keys.verify_own(&bad, &yes).map(drop), Ok(()), "its word is taken");
    let mut compromised = keys.get(signer.kid()).unwrap().clone();
    compromised.compromised_at = Some(Timestamp::from_millis(5));
    let compromised = PublicKeys::from_iter([compromised]);
    assert_eq!(compromised.verify_own(&good, &yes), Err(KeyFault::Unknown));
    assert_eq!(keys.verify_own(&parse(&foreign).unwrap(), &yes), Err(KeyFault::Unknown));
    assert_eq!((yes.asked.into_inner(), no.asked.into_inner()), (1, 2));
}

/// A stored signing key gives its public half and its standing; one whose bytes are none is refused.
#[test]
fn a_stored_key_verifies() {
    let (signer, keys) = signer();
    let mut row = SigningKey {
        id: SigningUse::RECEIPT,
        public: URL_SAFE_NO_PAD.encode(keys.get(signer.kid()).unwrap().as_bytes()).into(),
        sealed: "".into(),
        created_at: Timestamp::from_millis(0),
        not_before: Timestamp::from_millis(0),
        retired_at: None,
        compromised_at: None,
    };
    let (stored, text) = (PublicKeys::from_iter([PublicKey::of(&row).unwrap()]), write(&payment(), &signer));
    assert_eq!(stored.verify_own(&parse(&text).unwrap(), &signer), Ok(Some(SigningUse::RECEIPT)));
    row.compromised_at = Some(Timestamp::from_millis(5));
    assert_eq!(PublicKey::of(&row).unwrap().compromised_at, row.compromised_at);
    row.public = "AAAA".into();
    assert!(PublicKey::of(&row).is_err());
}

/// What is published is read back and verifies; the text is one a JOSE library knows.
#[test]
fn a_published_key_set_verifies() {
    let (signer, keys) = signer();
    let json = jwks_json(&keys);
    assert_eq!(
        json,
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw","kid":"--6IM5l0OosLj9yWskISYhUA3n_3CURQkmrYMSha_ck","use":"sig","alg":"EdDSA"}]}"#
    );
    let read = PublicKeys::from_jwks(&json).unwrap();
    assert_eq!(read.verify(&parse(&write(&payment(), &signer)).unwrap()), Ok(()));

    let next = DalekSigner::new(&Secret::new([8; 32]), "https://gate.example");
    let both: PublicKeys = keys.iter().cloned().chain([next.public_key(Timestamp::from_millis(1))]).collect();
    let read = PublicKeys::from_jwks(&jwks_json(&both)).unwrap();
    assert!(read.get(signer.kid()).is_some() && read.get(next.kid()).is_some());
}

/// Keys of other kinds and uses are passed over; a set with a broken or misnamed key is refused whole.
#[test]
fn a_key_set_is_read_with_care() {
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    let kid = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
    let count =
        |json: &str| PublicKeys::from_jwks(&json.replace("XX", x).replace("KID", kid)).map(|keys| keys.iter().count());
    for (json, keys) in [
        (r#"{"keys":[]}"#, 0),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"XX"}]}"#, 1),
        (
            r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"XX","kid":"KID","use":"sig","alg":"EdDSA","key_ops":["verify"],"more":1}],"more":2}"#,
            1,
        ),
        (r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"OKP","crv":"X25519","x":"XX"}]}"#, 0),
        (
            r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"XX","use":"enc"},{"kty":"OKP","crv":"Ed25519","x":"XX","alg":"ES256"}]}"#,
            0,
        ),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"XX","key_ops":["sign"]}]}"#, 0),
    ] {
        assert_eq!(count(json), Ok(keys), "{json}");
    }
    for json in [
        "",
        "[]",
        "{}",
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519"}]}"#,
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"XX="}]}"#,
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA"}]}"#,
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"XX","kid":"other"}]}"#,
        // The neutral point, of order 1: anything would verify under it.
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#,
    ] {
        assert!(count(json).is_err(), "{json}");
    }
}

/// Without a server: form, key, signature, then time, to the second and without grace.
#[test]
fn the_offline_check_names_the_first_fault() {
    let (signer, keys) = signer();
    let text = write(&payment(), &signer);
    let at = |s: i64, ms: i64| check_offline(&text, &keys, Timestamp::from_millis(s * 1_000 + ms));
    assert_eq!(at(ISSUED_S, 0), Ok(payment()));
    assert_eq!(at(ISSUED_S - 60, 0), Ok(payment()));
    assert_eq!(at(ISSUED_S - 61, 999), Err(Offline::NotYetValid));
    assert_eq!(at(ISSUED_S + 899, 999), Ok(payment()));
    assert_eq!(at(ISSUED_S + 900, 0), Err(Offline::Expired));

    let late = Timestamp::from_millis((ISSUED_S + 9_000) * 1_000);
    assert_eq!(check_offline(&text, &PublicKeys::default(), late), Err(Offline::UnknownKey));
    assert_eq!(check_offline("", &keys, late), Err(Offline::Malformed));
    let [header, payload, _] = parts(&text);
    let forged = format!("{header}.{payload}.{}", "A".repeat(86));
    assert_eq!(check_offline(&forged, &keys, late), Err(Offline::BadSignature));
}

/// Nothing secret is printed.
#[test]
fn a_signer_does_not_print_its_seed() {
    let (signer, _) = signer();
    let printed = format!("{signer:?}");
    assert!(printed.contains(signer.kid()) && !printed.contains("7, 7, 7") && !printed.contains("0707"), "{printed}");
}

proptest! {
    /// No text makes the reader panic, and none that nobody signed is genuine.
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        prop_assert!(!accepted(&text, &signer().1));
    }

    /// Nor do any bytes behind three parts of base64url.
    #[test]
    fn any_parts_are_read_or_refused(header in any::<Vec<u8>>(), payload in any::<Vec<u8>>(), signature in any::<Vec<u8>>()) {
        let text = [header, payload, signature].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        prop_assert!(!accepted(&text, &signer().1));
    }

    /// Nor a real receipt with a piece of it replaced.
    #[test]
    fn a_receipt_with_a_changed_piece_is_refused(at in 0usize..700, length in 0usize..40, piece in "[A-Za-z0-9_.=-]{0,40}") {
        let (signer, keys) = signer();
        let text = write(&payment(), &signer);
        let from = at.min(text.len());
        let until = (from + length).min(text.len());
        let altered = format!("{}{piece}{}", &text[..from], &text[until..]);
        prop_assert_eq!(accepted(&altered, &keys), altered == text);
    }

    /// Any names survive the writing and the reading, quotes, controls and all planes of Unicode among them.
    #[test]
    fn any_claims_are_read_back(issuer in any::<String>(), name in any::<String>(), domain in ".{1,60}", amount in 1..1i64 << 53, issued in 0..4_000_000_000i64) {
        let (signer, keys) = signer();
        let claims = Claims {
            issuer: issuer.into(),
            issued_at_s: issued,
            payment: Some(PaymentClaims { amount, currency: "JPY".into(), merchant_name: name.into(), domain: domain.into() }),
            ..payment()
        };
        let text = write(&claims, &signer);
        prop_assume!(text.len() <= RECEIPT_BYTES_MAX);
        let parsed = parse(&text).unwrap();
        prop_assert_eq!(keys.verify(&parsed), Ok(()));
        prop_assert_eq!(parsed.into_claims(), claims);
    }
}
