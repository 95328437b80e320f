//! Receipts over a real socket: what a stranger who was shown one is told, reason by reason in their order, once.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256, Sha512};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::gate::receipt::{DalekSigner, Signer as _};
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::secret::Secret;
use svc_core::value::text::Note;
use svc_tests::client::{Client, Got};
use svc_tests::requests::{CRM, OFFICE, SHOP, charge, payment, text, update, with};
use svc_tests::site::{Agent, Site};

/// An allowed payment of 49.00 and its receipt.
async fn allowed(client: &mut Client, agent: &Agent) -> Value {
    let decision = client.authorize(&agent.key, &payment(4_900)).await.ok();
    assert_eq!(text(&decision["status"]), "allowed", "{decision}");
    decision
}

/// A no for this reason; whether it tells of the action.
fn no(got: &Got, reason: &str) -> Value {
    let verdict = got.ok();
    let told = (&verdict["valid"], &verdict["consumed"], &verdict["reason"]);
    assert_eq!(told, (&json!(false), &json!(false), &json!(reason)), "{verdict}");
    assert_eq!(got.header("idempotent-replayed"), None);
    verdict
}

fn yes(got: &Got) -> Value {
    let verdict = got.ok();
    assert_eq!((&verdict["valid"], &verdict["consumed"]), (&json!(true), &json!(true)), "{verdict}");
    assert!(verdict["reason"].is_null());
    verdict
}

fn part(receipt: &str, place: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(receipt.split('.').nth(place).unwrap()).unwrap()).unwrap()
}

/// A receipt with this header and these claims, signed as `signer` would.
fn signed(signer: &DalekSigner, header: &Value, claims: &Value) -> String {
    let encoded = |it: &Value| URL_SAFE_NO_PAD.encode(it.to_string());
    let message = format!("{}.{}", encoded(header), encoded(claims));
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signer.sign(message.as_bytes())))
}

/// Asking for a payment and showing its receipt tells what was allowed; showing it again tells that it was used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_is_good_once() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let decision = allowed(&mut client, &agent).await;
    let bill = charge(&decision["receipt"], 4_900);
    let verdict = yes(&client.verify(&bill).await);
    let expected = json!({
        "valid": true, "consumed": true, "receiptId": text(&decision["id"]).replace("act_", "rcp_"),
        "actionId": decision["id"], "agentId": decision["agentId"], "type": "payment", "amount": 4_900, "currency": "EUR",
        "merchant": { "name": "Example Shop", "domain": SHOP }, "expiresAt": "2026-10-01T09:45:00.000Z",
        "consumedAt": "2026-10-01T09:30:00.000Z",
    });
    // A receipt's id is its own: only its form is known here.
    let named = with(expected, "receiptId", verdict["receiptId"].clone());
    assert_eq!(verdict, named);
    let again = no(&client.verify(&bill).await, "already_consumed");
    assert_eq!(again["consumedAt"], json!("2026-10-01T09:30:00.000Z"));
    let read = client.read_action(&agent.key, text(&decision["id"])).await.ok();
    assert_eq!((&read["consumedAt"], &read["consumedAmount"]), (&verdict["consumedAt"], &json!(4_900)));
    assert_eq!(text(&read["status"]), "allowed");
    assert_eq!(site.audit().consumed, 1);
    site.stop().await;
}

/// What is no receipt of this service's form is `malformed` and says nothing, and costs nobody anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_receipt_is_malformed() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let decision = allowed(&mut client, &agent).await;
    let receipt = text(&decision["receipt"]);
    let (header, claims) = (part(receipt, 0), part(receipt, 1));
    let signer = Site::forger(BASE_URL);
    assert_eq!(header["kid"], json!(signer.kid()));
    let [head, body, signature] = receipt.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    let mut bad: Vec<String> = ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "not a receipt", "null", "\u{0}", "é.é.é"]
        .map(str::to_owned)
        .to_vec();
    bad.extend([
        format!("{receipt}."),
        format!(".{receipt}"),
        format!("{receipt}.{signature}"),
        format!("{head}.{body}."),
    ]);
    bad.extend([format!("{receipt}="), format!("{receipt}=="), format!("{receipt}\n"), format!(" {receipt}")]);
    bad.extend([format!("{head}=.{body}.{signature}"), receipt.replace('.', "~"), "x".repeat(4_097)]);
    bad.push(format!("{head}.{body}.{}", STANDARD.encode(URL_SAFE_NO_PAD.decode(signature).unwrap())));
    // The last character of 64 bytes holds two bits that mean nothing: other ones are another spelling of the same bytes.
    let mut spelling = receipt.to_owned();
    let last = spelling.pop().unwrap();
    spelling.push(char::from(u32::from(last) as u8 + 1));
    bad.push(spelling);
    for (name, value) in [("alg", "none"), ("alg", "ES256"), ("alg", "HS256"), ("alg", "RS256"), ("typ", "JWT")] {
        bad.push(signed(&signer, &with(header.clone(), name, json!(value)), &claims));
    }
    bad.push(format!("{}.{body}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#)));
    for name in ["crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64", "cty", "zip", "nonce"] {
        bad.push(signed(&signer, &with(header.clone(), name, json!("x")), &claims));
    }
    for name in ["alg", "typ", "kid"] {
        let mut short = header.clone();
        short.as_object_mut().unwrap().remove(name);
        bad.push(signed(&signer, &short, &claims));
    }
    let doubled = format!(r#"{{"alg":"EdDSA","alg":"EdDSA","typ":"svc-receipt+jwt","kid":"{}"}}"#, signer.kid());
    bad.push(format!("{}.{body}.{signature}", URL_SAFE_NO_PAD.encode(doubled)));
    for sent in &bad {
        let verdict = no(&client.verify(&charge(&json!(sent), 4_900)).await, "malformed");
        assert_eq!(verdict.as_object().unwrap().len(), 3, "{sent}: {verdict}");
    }
    yes(&client.verify(&charge(&decision["receipt"], 4_900)).await);
    assert_eq!(site.audit().consumed, 1);
    site.stop().await;
}

/// A corpus of receipts that every verifier has to refuse, sent as text and as one of our three parts: each is `malformed`, says
/// nothing and uses nothing up. As a JSON object it is no text, and a fault of the body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_receipts_of_another_maker_are_refused() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let decision = allowed(&mut client, &agent).await;
    let receipt = text(&decision["receipt"]);
    let [head, body, _] = receipt.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    let file: Value =
        serde_json::from_str(include_str!("../../../svc-core/tests/data/obsigna_malformed_receipts.json")).unwrap();
    let single = file["receipts"].as_array().unwrap().iter().map(|it| &it["receipt"]);
    let chained = file["chains"].as_array().unwrap().iter().flat_map(|it| it["receipts"].as_array().unwrap());
    let (header, signer) = (part(receipt, 0), Site::forger(BASE_URL));
    for foreign in single.chain(chained) {
        for sent in [
            foreign.to_string(),
            signed(&signer, &header, foreign),
            format!("{head}.{body}.{}", text(&foreign["proof"]["proofValue"])),
        ] {
            let verdict = no(&client.verify(&charge(&json!(sent), 4_900)).await, "malformed");
            assert_eq!(verdict.as_object().unwrap().len(), 3, "{sent}: {verdict}");
        }
        let got = client.verify(&charge(foreign, 4_900)).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["receipt".into()]), "{foreign}");
    }
    assert_eq!(site.audit().consumed, 0);
    yes(&client.verify(&charge(&decision["receipt"], 4_900)).await);
    site.stop().await;
}

/// Of several things that are wrong the first in the contract's order is told: here each is mended in turn, from a receipt
/// of a foreign key to one that is good. Nothing invalid uses a receipt up, and nothing is told before the signature is
/// good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reasons_come_in_their_order() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    // Nodes whose clocks are behind and ahead of the one that allows, none of which has seen a newer record than its clock when it
    // starts.
    site.shift(Span::minutes(2));
    let mut nodes = Vec::new();
    for (seconds, reason) in [(-61, "not_yet_valid"), (-60, "type_mismatch"), (899, "type_mismatch"), (900, "expired")]
    {
        nodes.push((site.node(Span::seconds(seconds)).await, reason));
    }
    let decision = allowed(&mut client, &agent).await;
    let receipt = text(&decision["receipt"]).to_owned();
    let (header, claims) = (part(&receipt, 0), part(&receipt, 1));
    // Everything about the charge is wrong until it is mended below.
    let worst = |receipt: &str| {
        json!({ "receipt": receipt, "type": "refund",
                "charge": { "amount": 4_901, "currency": "USD", "merchant": { "domain": "other.example.org" } } })
    };
    let foreign = DalekSigner::new(&Secret::new([9; 32]), "https://other.example.com");
    let unknown = with(claims.clone(), "jti", json!(format!("rcp_{}", "0".repeat(26))));
    let elsewhere = with(unknown.clone(), "iss", json!("https://other.example.com"));
    let own = Site::forger(BASE_URL);
    let foreign_header = with(header.clone(), "kid", json!(foreign.kid()));
    let mut nothing_told = vec![
        ("unknown_key", signed(&foreign, &foreign_header, &elsewhere)),
        ("bad_signature", signed(&foreign, &header, &elsewhere)),
        ("wrong_issuer", signed(&own, &header, &elsewhere)),
        ("unknown_receipt", signed(&own, &header, &unknown)),
    ];
    let other_digest = with(claims.clone(), "dig", json!(format!("sha256:{}", "0".repeat(64))));
    nothing_told.push(("unknown_receipt", signed(&own, &header, &other_digest)));
    for (reason, sent) in &nothing_told {
        let verdict = no(&client.verify(&worst(sent)).await, reason);
        assert_eq!(verdict.as_object().unwrap().len(), 3, "{verdict}");
    }
    // What follows speaks of the real one, first to the other nodes.
    for (node, reason) in nodes {
        no(&node.client().await.verify(&worst(&receipt)).await, reason);
        node.stop().await;
    }
    let verdict = no(&client.verify(&worst(&receipt)).await, "type_mismatch");
    assert_eq!((&verdict["actionId"], &verdict["amount"]), (&decision["id"], &json!(4_900)));
    let mut body = with(worst(&receipt), "type", json!("payment"));
    let mut bare = body.clone();
    bare.as_object_mut().unwrap().remove("charge");
    no(&client.verify(&bare).await, "charge_required");
    no(&client.verify(&with(body.clone(), "charge.merchant", json!(null))).await, "charge_required");
    for (reason, name, mended) in [
        ("currency_mismatch", "charge.currency", json!("eur")),
        ("amount_exceeds", "charge.amount", json!(4_900)),
        ("merchant_mismatch", "charge.merchant.domain", json!("example.com")),
        ("merchant_mismatch", "charge.merchant.domain", json!(format!("evil{SHOP}"))),
        ("merchant_mismatch", "charge.merchant.domain", json!(format!("Pay.{SHOP}."))),
    ] {
        no(&client.verify(&body).await, reason);
        body = with(body, name, mended);
    }
    yes(&client.verify(&body).await);
    no(&client.verify(&worst(&receipt)).await, "already_consumed");
    site.shift(Span::hours(1));
    no(&client.verify(&worst(&receipt)).await, "already_consumed");
    let revoked = allowed_after(&site, &mut client).await;
    no(&client.verify(&worst(&revoked)).await, "revoked");
    assert_eq!(site.audit().consumed, 1);
    site.stop().await;
}

/// The receipt of an agent that was stopped before it was used.
async fn allowed_after(site: &Site, client: &mut Client) -> String {
    let agent = site.agent(&[OFFICE]);
    let decision = allowed(client, &agent).await;
    let reason = Note::parse("a test stops it").unwrap();
    site.gate.execute(FreezeAgent { workspace: site.workspace(), agent: agent.id, by: By::Program, reason }).unwrap();
    text(&decision["receipt"]).to_owned()
}

/// Bits that were altered anywhere are told, whichever they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_receipts_are_refused() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let decision = allowed(&mut client, &agent).await;
    let receipt = text(&decision["receipt"]);
    for place in (0..receipt.len()).step_by(7) {
        let mut altered = receipt.as_bytes().to_vec();
        altered[place] = if altered[place] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        let verdict = client.verify(&charge(&json!(altered), 4_900)).await.ok();
        assert_eq!(verdict["valid"], json!(false), "{place}: {verdict}");
        let reason = text(&verdict["reason"]);
        assert!(["malformed", "unknown_key", "bad_signature"].contains(&reason), "{place}: {reason}");
        assert!(verdict["actionId"].is_null());
    }
    yes(&client.verify(&charge(&decision["receipt"], 4_900)).await);
    site.stop().await;
}

/// A receipt covers what was settled, and nothing once it was settled as not done or its agent is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_covers_what_was_settled() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE, CRM]);
    let mut client = site.client().await;
    let settled = allowed(&mut client, &agent).await;
    let outcome = json!({ "status": "completed", "amount": 4_000 });
    client.settle(&agent.key, text(&settled["id"]), &outcome).await.ok();
    no(&client.verify(&charge(&settled["receipt"], 4_001)).await, "amount_exceeds");
    yes(&client.verify(&charge(&settled["receipt"], 4_000)).await);
    for status in ["failed", "cancelled"] {
        let undone = allowed(&mut client, &agent).await;
        client.settle(&agent.key, text(&undone["id"]), &json!({ "status": status })).await.ok();
        no(&client.verify(&charge(&undone["receipt"], 4_900)).await, "revoked");
    }
    // Used first, then said to have failed: the receipt is the stronger of the two.
    let used = allowed(&mut client, &agent).await;
    yes(&client.verify(&charge(&used["receipt"], 4_900)).await);
    let told = client.settle(&agent.key, text(&used["id"]), &json!({ "status": "failed" })).await.ok();
    assert!(told["signals"].as_array().unwrap().contains(&json!("settled_after_consumption")), "{told}");
    // An action without a payment has a receipt without a charge.
    let plain = client.authorize(&agent.key, &update()).await.ok();
    no(&client.verify(&charge(&plain["receipt"], 1)).await, "type_mismatch");
    let good = json!({ "receipt": plain["receipt"], "type": "crm.update" });
    yes(&client.verify(&good).await);
    let gone = site.agent(&[OFFICE]);
    let held = allowed(&mut client, &gone).await;
    site.gate.execute(RemoveAgent { workspace: site.workspace(), by: By::Program, agent: gone.id }).unwrap();
    no(&client.verify(&charge(&held["receipt"], 4_900)).await, "revoked");
    site.audit();
    site.stop().await;
}

/// A consuming verdict is given again for ten minutes, to the same key with the same body and to nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verdict_is_repeated_to_its_asker_for_ten_minutes() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let decision = allowed(&mut client, &agent).await;
    let body = charge(&decision["receipt"], 4_900);
    let once = "8f14e45f-ceea-467a";
    // A no is not remembered under the key.
    no(&client.verify_once(once, &charge(&decision["receipt"], 4_901)).await, "amount_exceeds");
    let first = client.verify_once(once, &body).await;
    assert_eq!(first.header("idempotent-replayed"), None);
    let verdict = yes(&first);
    no(&client.verify(&body).await, "already_consumed");
    no(&client.verify_once("another-key-16ch", &body).await, "already_consumed");
    no(&client.verify_once(once, &charge(&decision["receipt"], 4_899)).await, "already_consumed");
    site.shift(Span::millis(10 * 60 * 1_000 - 1));
    // The order of members and the space between them are not the body.
    let spelled = format!(
        r#" {{ "charge": {{ "merchant": {{ "domain": "{SHOP}" }}, "currency": "EUR", "amount": 4900 }}, "receipt": {} }} "#,
        decision["receipt"]
    );
    let replay = client.ask("POST", "/v1/verify", &[("idempotency-key", once)], spelled.as_bytes()).await;
    assert_eq!((replay.header("idempotent-replayed"), replay.ok()), (Some("true"), verdict));
    site.shift(Span::millis(1));
    no(&client.verify_once(once, &body).await, "already_consumed");
    site.audit();
    site.stop().await;
}

/// A key of idempotency that whoever saw the receipt could make is refused, and so is one that is too short to be random.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_made_from_the_receipt_is_refused() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let decision = allowed(&mut client, &agent).await;
    let receipt = text(&decision["receipt"]);
    let (short, long) = (&Sha256::digest(receipt)[..], &Sha512::digest(receipt)[..]);
    let keys = [
        "k".repeat(15),
        "k".repeat(129),
        String::new(),
        receipt[40..60].to_owned(),
        receipt.rsplit('.').next().unwrap().to_owned(),
        hex::encode(short),
        hex::encode_upper(short),
        hex::encode(long),
        STANDARD.encode(short),
        STANDARD_NO_PAD.encode(long),
        URL_SAFE_NO_PAD.encode(short),
        format!("sha256:{}", hex::encode(short)),
    ];
    let body = charge(&decision["receipt"], 4_900);
    for key in &keys {
        let got = client.verify_once(key, &body).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["idempotency-key".into()]), "{key}");
    }
    yes(&client.verify_once(&"k".repeat(16), &body).await);
    assert_eq!(site.audit().consumed, 1);
    site.stop().await;
}
