//! `svc receipt verify`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use svc_core::state::gate::receipt::{Claims, DalekSigner, PaymentClaims, PublicKeys, jwks_json, write};
use svc_core::value::id::{ActionId, AgentId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_core::value::{Id as _, Timestamp};

use crate::{Ran, run, svc};

const NOT_SHOWN: &str =
    "Whether it was consumed or revoked is not shown: only `POST /v1/verify` of its issuer tells that.\n";

/// A receipt that expires at this second, its key set beside it, both in files.
fn lay_out(folder: &Path, expires_at_s: i64) -> String {
    lay_out_for(folder, expires_at_s, "Design Tools")
}

/// The same for this payee.
fn lay_out_for(folder: &Path, expires_at_s: i64, payee: &str) -> String {
    lay_out_of(folder, payee, 1_790_847_000, expires_at_s)
}

/// The same, issued at this second.
fn lay_out_of(folder: &Path, payee: &str, issued_at_s: i64, expires_at_s: i64) -> String {
    let signer = DalekSigner::new(&Secret::new([7; 32]), "https://gate.example.com");
    let action = ActionId::from_bits(9);
    let claims = Claims {
        issuer: "https://gate.example.com".into(),
        agent: AgentId::from_bits(8),
        receipt: action.into(),
        action,
        workspace: WorkspaceId::from_bits(7),
        kind: "payment".into(),
        digest: format!("sha256:{}", "ab".repeat(32)).into(),
        issued_at_s,
        expires_at_s,
        payment: Some(PaymentClaims {
            amount: 4_900,
            currency: "EUR".into(),
            merchant_name: payee.into(),
            domain: "tools.example.com".into(),
        }),
    };
    let mut keys = PublicKeys::default();
    keys.insert(signer.public_key(Timestamp::from_millis(0)));
    let text = write(&claims, &signer);
    fs::write(folder.join("r.jws"), format!("{text}\n")).unwrap();
    fs::write(folder.join("keys.json"), jwks_json(&keys)).unwrap();
    text
}

const VERIFY: &str = "receipt verify r.jws --jwks keys.json";
const FAR: i64 = 4_000_000_000;

/// A genuine and unexpired receipt is exit 0, with what it says and that consumption is not shown.
#[test]
fn a_genuine_receipt_is_exit_0() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path(), FAR);
    let out = format!(
        "genuine and unexpired
  issuer   https://gate.example.com
  receipt  rcp_00000000000000000000000009
  action   act_00000000000000000000000009 (payment)
  agent    agt_00000000000000000000000008
  payment  4900 EUR (minor units)
  merchant Design Tools (tools.example.com)
  issued   2026-10-01T09:30:00.000Z
  expires  2096-10-02T07:06:40.000Z
{NOT_SHOWN}"
    );
    assert_eq!(run(folder.path(), VERIFY), Ran { code: 0, out, err: String::new() });
    let ran = run(folder.path(), &format!("{VERIFY} --json"));
    assert_eq!(
        serde_json::from_str::<Value>(&ran.out).unwrap(),
        json!({
            "valid": true, "consumption": "not shown", "issuer": "https://gate.example.com",
            "receiptId": "rcp_00000000000000000000000009", "actionId": "act_00000000000000000000000009",
            "agentId": "agt_00000000000000000000000008", "type": "payment", "amount": 4900, "currency": "EUR",
            "merchant": { "name": "Design Tools", "domain": "tools.example.com" },
            "issuedAt": "2026-10-01T09:30:00.000Z", "expiresAt": "2096-10-02T07:06:40.000Z",
        })
    );
}

/// A name turns nothing around on the terminal that shows it, and hides nothing in it.
#[test]
fn a_payees_name_is_shown_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    lay_out_for(folder.path(), FAR, "Bank\u{202e}\u{200b}\n\u{1b}[2J");
    let ran = run(folder.path(), VERIFY);
    let line =
        "\n  merchant Bank\u{2039}U+202E\u{203a}\u{2039}U+200B\u{203a} \u{2039}U+001B\u{203a}[2J (tools.example.com)\n";
    assert!(ran.code == 0 && ran.out.contains(line), "{ran:?}");
}

/// Expired, signed by another key and altered receipts are exit 1, each with its reason.
#[test]
fn a_receipt_that_proves_nothing_is_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    let verdict = || {
        let Ran { code, out, err } = run(folder.path(), &format!("{VERIFY} --json"));
        assert_eq!((code, err.as_str()), (1, ""));
        serde_json::from_str::<Value>(&out).unwrap()
    };
    lay_out(folder.path(), 1_790_847_001);
    assert_eq!(verdict(), json!({ "valid": false, "reason": "expired", "consumption": "not shown" }));
    assert_eq!(run(folder.path(), VERIFY).out, format!("not valid: the receipt has expired\n{NOT_SHOWN}"));

    lay_out_of(folder.path(), "Design Tools", FAR - 60, FAR);
    assert_eq!(verdict()["reason"], "not_yet_valid");

    let good = lay_out(folder.path(), FAR);
    fs::write(folder.path().join("keys.json"), "{\"keys\":[]}").unwrap();
    assert_eq!(verdict()["reason"], "unknown_key");

    // Each use has keys of its own, and a set says which: what a key of scorecards signed is no receipt.
    lay_out(folder.path(), FAR);
    let set = fs::read_to_string(folder.path().join("keys.json")).unwrap();
    for (of, code) in [("receipt", 0), ("scorecard", 1), ("checkpoint", 1), ("something newer", 1)] {
        let said = set.replace(r#""alg":"EdDSA""#, &format!(r#""alg":"EdDSA","svc_use":"{of}""#));
        fs::write(folder.path().join("keys.json"), said).unwrap();
        let ran = run(folder.path(), &format!("{VERIFY} --json"));
        assert!(ran.code == code && (code == 0 || ran.out.contains("unknown_key")), "{of}: {ran:?}");
    }

    lay_out(folder.path(), FAR);
    let (rest, signature) = good.rsplit_once('.').unwrap();
    let first = if signature.starts_with('A') { "B" } else { "A" };
    fs::write(folder.path().join("r.jws"), format!("{rest}.{first}{}", &signature[1..])).unwrap();
    assert_eq!(verdict()["reason"], "bad_signature");
}

/// What is no receipt is exit 3: nothing, words, bytes that are no text, one that is too long, one with something far behind it.
#[test]
fn a_file_without_a_receipt_is_exit_3() {
    let folder = tempfile::tempdir().unwrap();
    let good = lay_out(folder.path(), FAR);
    for bytes in [
        &b""[..],
        b"hello",
        b"\xff\xfe",
        format!("{good}{}", "A".repeat(8_000)).as_bytes(),
        format!("{good} {good}").as_bytes(),
        format!("{good}{}garbage", " ".repeat(4_096)).as_bytes(),
        format!("{good}{}garbage", " ".repeat(1 << 20)).as_bytes(),
    ] {
        fs::write(folder.path().join("r.jws"), bytes).unwrap();
        let out = "malformed: the text is not a receipt\n".to_owned();
        assert_eq!(run(folder.path(), VERIFY), Ran { code: 3, out, err: String::new() });
    }
}

/// Files that cannot be read and key sets that are none are failures with advice, and their exit code is none of a verdict.
#[test]
fn what_cannot_be_read_is_exit_4() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path(), FAR);
    let Ran { code, out, err } = run(folder.path(), "receipt verify none.jws --jwks keys.json");
    assert_eq!((code, out.as_str()), (4, ""));
    assert_eq!(
        err,
        "svc: none.jws cannot be read: No such file or directory (os error 2)\n     Check the path and its permissions.\n"
    );
    fs::write(folder.path().join("keys.json"), "[]").unwrap();
    let Ran { code, out, err } = run(folder.path(), VERIFY);
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(err.starts_with("svc: keys.json is not a key set: "), "{err}");
    assert!(err.ends_with("\n     Fetch it anew from the issuer's `/.well-known/jwks.json`.\n"), "{err}");
}

/// `-` reads the receipt from standard input.
#[test]
fn a_receipt_may_come_by_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path(), FAR);
    let mut command = svc(folder.path());
    command.args(["receipt", "verify", "-", "--jwks", "keys.json"]);
    command.stdin(fs::File::open(folder.path().join("r.jws")).unwrap());
    assert_eq!(Ran::from(command.output().unwrap()).code, 0);
}
