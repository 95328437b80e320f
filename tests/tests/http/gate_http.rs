//! The gate over a real socket: ask, follow the answer, record the outcome, verify the receipt. Every answer is held to the
//! committed interface document on its way to the test.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::people::KeyScope;
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::text::Note;
use svc_tests::client::{Client, bearer};
use svc_tests::requests::{CRM, OFFICE, SHOP, WIDE, charge, payment, payment_to, text, update, with};
use svc_tests::site::{Agent, Site};

fn freeze(site: &Site, agent: &Agent) {
    let reason = Note::parse("a test stops it").unwrap();
    site.gate.execute(FreezeAgent { workspace: site.workspace(), agent: agent.id, by: By::Program, reason }).unwrap();
}

fn codes(decision: &Value) -> Vec<&str> {
    decision["reasons"].as_array().unwrap().iter().map(|it| text(&it["code"])).collect()
}

async fn allowed(client: &mut Client, agent: &Agent, amount: i64) -> Value {
    let decision = client.authorize(&agent.key, &payment(amount)).await.ok();
    assert_eq!((text(&decision["decision"]), text(&decision["status"])), ("allow", "allowed"), "{decision}");
    decision
}

/// An allowed payment comes with its receipt and says what was asked, as normalised; reading it gives the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allow_says_what_was_asked_and_carries_a_receipt() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let asked = with(payment_to(4_900, "SHOP.Example.com."), "payment.currency", json!("eur"));
    let got = client.authorize(&agent.key, &asked).await;
    assert_eq!(got.header("idempotent-replayed"), None);
    let decision = got.ok();
    assert_eq!((text(&decision["decision"]), text(&decision["status"])), ("allow", "allowed"));
    assert_eq!(decision["reasons"], json!([]));
    assert_eq!(text(&decision["decidedBy"]), "policy");
    assert_eq!(decision["createdAt"], json!("2026-10-01T09:30:00.000Z"));
    assert_eq!(decision["receiptExpiresAt"], json!("2026-10-01T09:45:00.000Z"));
    assert_eq!(decision["agentId"], json!(agent.id.to_string()));
    assert_eq!(decision["mandateVersion"], json!(1));
    let normal = json!({ "amount": 4_900, "currency": "EUR", "merchant": { "name": "Example Shop", "domain": SHOP } });
    assert_eq!(decision["payment"], normal);
    let said = json!({ "declared": ["user"], "observed": [], "effective": "user", "verdict": "unobserved" });
    assert_eq!(decision["provenance"], said);
    assert_eq!(text(&decision["receipt"]).split('.').count(), 3);
    // `serde_json` sorts members, and everything here is ASCII: this is the form of RFC 8785.
    let digested = json!({
        "agentId": decision["agentId"], "type": "payment", "summary": decision["summary"], "payment": normal,
        "salt": decision["digestSalt"],
    });
    let digest = format!("sha256:{}", hex::encode(Sha256::digest(digested.to_string())));
    assert_eq!(text(&decision["actionDigest"]), digest);
    let read = client.read_action(&agent.key, text(&decision["id"])).await.ok();
    assert_eq!(read, decision);
    site.audit();
    site.stop().await;
}

/// What a digest leaves out of its text it names by a digest of its own: tool and details as sent. The input of a tool is
/// kept from the answer, and the salt from the receipt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_digest_covers_tool_and_details_as_sent() {
    let site = Site::start().await;
    let agent = site.agent(&[CRM]);
    let mut client = site.client().await;
    let tool = json!({ "input": { "path": "." }, "name": "ls", "zone": 1 });
    let details = json!({ "a": 1, "b": "x" });
    let asked = json!({ "type": "tool.call", "summary": " List files ", "tool": tool, "details": details });
    let decision = client.authorize(&agent.key, &asked).await.ok();
    let hash = |value: &Value| format!("sha256:{}", hex::encode(Sha256::digest(value.to_string())));
    let digested = json!({
        "agentId": decision["agentId"], "type": "tool.call", "summary": "List files", "toolDigest": hash(&tool),
        "detailsDigest": hash(&details), "salt": decision["digestSalt"],
    });
    assert_eq!(text(&decision["actionDigest"]), hash(&digested));
    assert_eq!((&decision["tool"], &decision["details"]), (&json!({ "name": "ls" }), &details));
    assert_eq!(decision["signals"], json!(["provenance_undeclared"]));
    assert!(!text(&decision["receipt"]).contains(text(&decision["digestSalt"])));
    site.stop().await;
}

/// A session is the agent's who named it first; another agent that names it is denied, and that one alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_belongs_to_who_named_it_first() {
    let site = Site::start().await;
    let (first, second) = (site.agent(&[CRM]), site.agent(&[CRM]));
    let mut client = site.client().await;
    let asked = with(update(), "session", json!({ "id": "session-1" }));
    for (agent, expected) in [(&first, "allow"), (&second, "deny"), (&first, "allow")] {
        let decision = client.authorize(&agent.key, &asked).await.ok();
        assert_eq!(text(&decision["decision"]), expected, "{decision}");
        assert_eq!(codes(&decision).contains(&"session_conflict"), expected == "deny");
        assert_eq!(decision["session"], json!({ "id": "session-1" }));
    }
    site.advance(Span::hours(25));
    assert_eq!(text(&client.authorize(&second.key, &asked).await.ok()["decision"]), "allow");
    site.audit();
    site.stop().await;
}

/// A deny gives every reason with its numbers and no receipt; an ask gives the approval that a person is to decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deny_gives_reasons_and_an_ask_its_approval() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let denied = client.authorize(&agent.key, &payment_to(50_001, "bad.example.net")).await.ok();
    assert_eq!((text(&denied["decision"]), text(&denied["status"])), ("deny", "denied"));
    let mut found = codes(&denied);
    found.sort_unstable();
    assert_eq!(found, ["merchant_denied", "over_limit"], "{denied}");
    let over = denied["reasons"].as_array().unwrap().iter().find(|it| it["code"] == "over_limit").unwrap();
    assert_eq!((&over["effect"], &over["limit"], &over["requested"]), (&json!("deny"), &json!(50_000), &json!(50_001)));
    assert!(!text(&over["message"]).is_empty());
    assert!(denied["receipt"].is_null() && denied["approval"].is_null() && denied["evidenceRecord"].is_string());
    let asked = client.authorize(&agent.key, &payment(20_001)).await.ok();
    assert_eq!((text(&asked["decision"]), text(&asked["status"])), ("approval_required", "pending"));
    assert_eq!(codes(&asked), ["above_ask_threshold"]);
    assert!(asked["receipt"].is_null() && asked["decidedAt"].is_null());
    let approval = &asked["approval"];
    assert_eq!((&approval["state"], &approval["needed"]), (&json!("waiting"), &json!(1)));
    assert_eq!(approval["expiresAt"], json!("2026-10-02T09:30:00.000Z"));
    let link = format!("{BASE_URL}/w/{}/approvals/{}", site.workspace(), text(&approval["id"]));
    assert_eq!(text(&approval["url"]), link);
    let outside = client.authorize(&agent.key, &update()).await.ok();
    assert_eq!((codes(&outside), &outside["mandateId"]), (vec!["outside_mandate"], &Value::Null));
    for decision in [&denied, &asked, &outside] {
        assert_eq!(client.read_action(&agent.key, text(&decision["id"])).await.ok(), *decision);
    }
    site.audit();
    site.stop().await;
}

/// What nobody decides in time is denied as expired, and never said to be a person's no.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_that_nobody_decides_expires_into_a_deny() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let asked = client.authorize(&agent.key, &payment(20_001)).await.ok();
    site.advance(Span::hours(24));
    let read = client.read_action(&agent.key, text(&asked["id"])).await.ok();
    assert_eq!((text(&read["decision"]), text(&read["status"])), ("deny", "expired"));
    assert_eq!((text(&read["decidedBy"]), text(&read["approval"]["state"])), ("expiry", "expired"));
    assert!(codes(&read).contains(&"approval_expired"), "{read}");
    let late = client.settle(&agent.key, text(&asked["id"]), &json!({ "status": "completed" })).await;
    assert_eq!((late.status, late.kind().as_str()), (409, "not_allowed"));
    site.audit();
    site.stop().await;
}

/// One key of idempotency, by header or by body, is one action; another body under it is a conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_idempotency_names_one_action() {
    let site = Site::start().await;
    let (agent, other) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let mut client = site.client().await;
    let first = client.authorize_once(&agent.key, "order-1", &payment(4_900)).await.ok();
    let in_body = with(payment(4_900), "idempotencyKey", json!("order-1"));
    let mut replays = vec![client.authorize_once(&agent.key, "order-1", &payment(4_900)).await];
    replays.push(client.authorize(&agent.key, &in_body).await);
    replays.push(client.authorize_once(&agent.key, "order-1", &in_body).await);
    for replay in replays {
        assert_eq!(replay.header("idempotent-replayed"), Some("true"), "{replay:?}");
        assert_eq!(replay.ok(), first);
    }
    let conflict = client.authorize_once(&agent.key, "order-1", &payment(4_901)).await;
    assert_eq!(conflict.refusal(), (409, "idempotency_conflict".into(), vec![]));
    let differs = client.authorize_once(&agent.key, "order-2", &in_body).await;
    assert_eq!(differs.refusal(), (400, "invalid_request".into(), vec!["idempotencyKey".into()]));
    // The key is the agent's own, and a refusal does not use it up.
    let others = client.authorize_once(&other.key, "order-1", &payment(4_901)).await;
    assert_eq!((others.header("idempotent-replayed"), others.status), (None, 200));
    let fresh = client.authorize_once(&agent.key, "order-2", &payment(100)).await;
    assert_eq!((fresh.header("idempotent-replayed"), fresh.status), (None, 200));
    // What is replayed is the action as it now stands.
    client.settle(&agent.key, text(&first["id"]), &json!({ "status": "completed", "amount": 4_900 })).await.ok();
    let now = client.authorize_once(&agent.key, "order-1", &payment(4_900)).await.ok();
    assert_eq!((&now["id"], &now["status"]), (&first["id"], &json!("completed")));
    assert_eq!(site.audit().actions, 3);
    site.stop().await;
}

/// Each outcome is recorded once, with its amount, and only for an action that was allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_recorded_once() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE, CRM]);
    let mut client = site.client().await;
    for (place, status) in ["completed", "failed", "cancelled"].into_iter().enumerate() {
        let action = allowed(&mut client, &agent, 1_000 + i64::try_from(place).unwrap()).await;
        let id = text(&action["id"]);
        let settled = client.settle(&agent.key, id, &json!({ "status": status, "amount": 900 })).await.ok();
        assert_eq!((text(&settled["status"]), text(&settled["decision"])), (status, "allow"));
        let outcome = json!({ "status": status, "amount": 900, "settledAt": "2026-10-01T09:30:00.000Z" });
        assert_eq!(settled["outcome"], outcome);
        assert_ne!(settled["evidenceRecord"], action["evidenceRecord"]);
        assert_eq!(client.read_action(&agent.key, id).await.ok(), settled);
        for again in [json!({ "status": status, "amount": 900 }), json!({ "status": "completed" })] {
            let got = client.settle(&agent.key, id, &again).await;
            assert_eq!((got.status, got.kind().as_str()), (409, "already_settled"));
        }
    }
    let asked = client.authorize(&agent.key, &payment(20_001)).await.ok();
    let denied = client.authorize(&agent.key, &payment(50_001)).await.ok();
    for never in [&asked, &denied] {
        let got = client.settle(&agent.key, text(&never["id"]), &json!({ "status": "completed" })).await;
        assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
    }
    // An outcome without an amount, of a payment and of what is none.
    let action = client.authorize(&agent.key, &payment_to(700, "elsewhere.example.org")).await.ok();
    let settled = client.settle(&agent.key, text(&action["id"]), &json!({ "status": "completed" })).await.ok();
    assert!(settled["outcome"]["amount"].is_null());
    let plain = client.authorize(&agent.key, &update()).await.ok();
    let got = client.settle(&agent.key, text(&plain["id"]), &json!({ "status": "completed", "amount": 1 })).await;
    assert_eq!((got.status, got.kind().as_str()), (400, "invalid_amount"));
    client.settle(&agent.key, text(&plain["id"]), &json!({ "status": "completed" })).await.ok();
    site.audit();
    site.stop().await;
}

/// A status that is none is told before an amount that is none, and before the state; neither settles anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_status_is_told_before_a_wrong_amount() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let action = allowed(&mut client, &agent, 1_000).await;
    let id = text(&action["id"]);
    let statuses = [json!("done"), json!("Completed"), json!(""), json!(1), json!(null), json!(["completed"])];
    for status in statuses {
        for amount in [json!(10), json!(-1), json!("x")] {
            let got = client.settle(&agent.key, id, &json!({ "status": status, "amount": amount })).await;
            assert_eq!((got.status, got.kind().as_str()), (400, "invalid_status"), "{status} {amount}");
        }
    }
    let missing = client.settle(&agent.key, id, &json!({})).await;
    assert_eq!(missing.kind(), "invalid_status");
    for amount in ["-1", "1.0", "1e3", "\"100\"", "true", "9007199254740992", "9223372036854775808", "[]", "1.5"] {
        let body = format!(r#"{{"status":"completed","amount":{amount}}}"#);
        let path = format!("/v1/actions/{id}/settle");
        let got = client.ask("POST", &path, &[("authorization", &bearer(&agent.key))], body.as_bytes()).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_amount"), "{amount}");
    }
    let settled = client.settle(&agent.key, id, &json!({ "status": "completed", "amount": 0 })).await.ok();
    assert_eq!(settled["outcome"]["amount"], json!(0));
    site.stop().await;
}

/// Settling above what was allowed is an incident: it posts in full, freezes the agent and revokes what it held, in one
/// step. A frozen agent reads and settles; asking again is a fresh deny, also under an old key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_settlement_freezes_the_agent() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let first = client.authorize_once(&agent.key, "order-1", &payment(4_900)).await.ok();
    let (unused, used) = (allowed(&mut client, &agent, 1_000).await, allowed(&mut client, &agent, 1_100).await);
    let waiting = client.authorize(&agent.key, &payment(20_001)).await.ok();
    client.verify(&charge(&used["receipt"], 1_100)).await.ok();
    let over = json!({ "status": "completed", "amount": 4_901 });
    let settled = client.settle(&agent.key, text(&first["id"]), &over).await.ok();
    assert_eq!(text(&settled["status"]), "completed");
    let incident = &settled["incident"];
    assert_eq!((&incident["allowedAmount"], &incident["settledAmount"]), (&json!(4_900), &json!(4_901)));
    assert_eq!(text(&incident["type"]), "over_settlement");
    assert!(text(&incident["evidenceRecord"]).starts_with("evd_"));
    let revoked = client.read_action(&agent.key, text(&unused["id"])).await.ok();
    assert_eq!((text(&revoked["decision"]), text(&revoked["status"])), ("deny", "revoked"));
    assert!(codes(&revoked).contains(&"agent_frozen") && revoked["receipt"].is_null(), "{revoked}");
    let kept = client.read_action(&agent.key, text(&used["id"])).await.ok();
    assert_eq!((text(&kept["decision"]), text(&kept["status"])), ("allow", "allowed"));
    assert!(kept["receipt"].is_null());
    let ended = client.read_action(&agent.key, text(&waiting["id"])).await.ok();
    assert_eq!((text(&ended["status"]), text(&ended["decidedBy"])), ("denied", "freeze"));
    let verdict = client.verify(&charge(&unused["receipt"], 1_000)).await.ok();
    assert_eq!((&verdict["valid"], &verdict["reason"]), (&json!(false), &json!("revoked")));
    for body in [payment(4_900), payment(4_901), payment(1)] {
        let replay = client.authorize_once(&agent.key, "order-1", &body).await;
        assert_eq!(replay.header("idempotent-replayed"), None);
        let denied = replay.ok();
        assert_eq!((text(&denied["decision"]), codes(&denied)), ("deny", vec!["agent_frozen"]));
        assert_eq!(denied["signals"], json!(["agent_frozen"]));
        assert_ne!(denied["id"], first["id"]);
    }
    // It may have happened, so it can be told.
    let told = client.settle(&agent.key, text(&unused["id"]), &json!({ "status": "cancelled" })).await.ok();
    assert_eq!((text(&told["status"]), text(&told["decision"])), ("cancelled", "deny"));
    site.audit();
    site.stop().await;
}

/// Whatever a frozen agent asks is denied and nothing else is looked at; no action that it could act on reads `allow`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_agent_is_denied() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let action = allowed(&mut client, &agent, 1_000).await;
    let settled = allowed(&mut client, &agent, 1_100).await;
    client.settle(&agent.key, text(&settled["id"]), &json!({ "status": "completed" })).await.ok();
    freeze(&site, &agent);
    for body in [payment(1), payment(50_001), payment_to(20_001, "bad.example.net"), update()] {
        let denied = client.authorize(&agent.key, &body).await.ok();
        assert_eq!((text(&denied["status"]), codes(&denied)), ("denied", vec!["agent_frozen"]));
    }
    assert_eq!(text(&client.read_action(&agent.key, text(&action["id"])).await.ok()["status"]), "revoked");
    let kept = client.read_action(&agent.key, text(&settled["id"])).await.ok();
    assert_eq!((text(&kept["decision"]), text(&kept["status"])), ("allow", "completed"));
    site.audit();
    site.stop().await;
}

/// A receipt is told while it can be used. A day after it ran out, an action that was never settled lapses; it can still be
/// settled, and that is marked as late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_never_settled_lapses() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let action = allowed(&mut client, &agent, 1_000).await;
    let id = text(&action["id"]);
    site.advance(Span::minutes(15));
    let read = client.read_action(&agent.key, id).await.ok();
    assert_eq!(
        (text(&read["status"]), &read["receipt"], &read["receiptExpiresAt"]),
        ("allowed", &Value::Null, &Value::Null)
    );
    site.advance(Span::hours(24));
    let lapsed = client.read_action(&agent.key, id).await.ok();
    assert_eq!((text(&lapsed["decision"]), text(&lapsed["status"])), ("allow", "lapsed"));
    let late = client.settle(&agent.key, id, &json!({ "status": "completed", "amount": 1_000 })).await.ok();
    assert_eq!((text(&late["status"]), &late["outcome"]["late"]), ("completed", &json!(true)));
    site.audit();
    site.stop().await;
}

/// A callback is registered for an action of one's own, the newest in place of the one before, and only at an address that
/// may be called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callbacks_are_registered_at_addresses_that_may_be_called() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let asked = client.authorize(&agent.key, &payment(20_001)).await.ok();
    let path = format!("/v1/actions/{}/callback", text(&asked["id"]));
    let first = client.post(&path, &agent.key, &json!({ "url": "https://hooks.example.com/decided?x=1" })).await.ok();
    assert_eq!((text(&first["state"]), &first["attempts"]), ("waiting", &json!(0)));
    assert_eq!((&first["actionId"], text(&first["url"])), (&asked["id"], "https://hooks.example.com/decided?x=1"));
    let second = client.post(&path, &agent.key, &json!({ "url": "https://8.8.8.8:8443/cb" })).await.ok();
    assert_ne!(first["id"], second["id"]);
    let bad = [
        "",
        "hooks.example.com/cb",
        "/cb",
        "http://hooks.example.com/cb",
        "ftp://hooks.example.com/",
        "https://",
        "javascript:alert(1)",
        "https://user@hooks.example.com/",
        "https://user:pw@hooks.example.com/",
        "https://@hooks.example.com/",
        "https://hooks.example.com/#part",
        "https://hooks.example.com:0/",
        "https://hooks.example.com/a b",
        "https://hooks.example.com\\cb",
        "https://hooks.example.com/\tcb",
        "https://localhost/cb",
        "https://a.localhost/cb",
        "https://127.0.0.1/cb",
        "https://127.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://0.0.0.0/",
        "https://10.1.2.3/",
        "https://100.64.0.1/",
        "https://169.254.169.254/",
        "https://172.16.0.1/",
        "https://192.0.0.1/",
        "https://192.168.0.1/",
        "https://198.18.0.1/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://[::]/",
        "https://[::1]/",
        "https://[fc00::1]/",
        "https://[fe80::1]/",
        "https://[ff02::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "http://127.0.0.1:9/cb",
        "https://gate.example.com/v1/verify",
        "https://GATE.example.com./",
    ];
    let long = format!("https://hooks.example.com/{}", "x".repeat(2_048));
    for url in bad.into_iter().chain([long.as_str()]) {
        let got = client.post(&path, &agent.key, &json!({ "url": url })).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["url".into()]), "{url}");
    }
    for body in [json!({}), json!({ "url": null }), json!({ "url": 1 }), json!({ "url": ["https://a.example.com"] })] {
        let got = client.post(&path, &agent.key, &body).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["url".into()]), "{body}");
    }
    site.audit();
    site.stop().await;
}

/// The key set has the public half alone, may be kept for five minutes, and names the key that receipts name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_set_is_public_and_names_the_receipts_key() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ed25519_dalek::{Signature, VerifyingKey};

    let directory = tempfile::tempdir().unwrap();
    let site = Site::with(|plan| plan.directory = Some(directory.path().to_owned())).await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let got = client.ask("GET", "/.well-known/jwks.json", &[], b"").await;
    assert!(got.header("cache-control").unwrap().contains("max-age=300"));
    let set = got.ok();
    let keys = set["keys"].as_array().unwrap();
    let mut names: Vec<&str> = keys.iter().map(|key| text(&key["kid"])).collect();
    names.dedup();
    assert_eq!(names.len(), 3, "one for receipts, one for checkpoints, one for scorecards: {set}");
    assert!(keys.iter().all(|key| key["d"].is_null() && key["alg"] == json!("EdDSA")), "{set}");
    let decision = allowed(&mut client, &agent, 1_000).await;
    let receipt = text(&decision["receipt"]);
    let parts: Vec<Vec<u8>> = receipt.split('.').map(|it| URL_SAFE_NO_PAD.decode(it).unwrap()).collect();
    let header: Value = serde_json::from_slice(&parts[0]).unwrap();
    assert_eq!(header, json!({ "alg": "EdDSA", "typ": "svc-receipt+jwt", "kid": header["kid"] }));
    let key = keys.iter().find(|key| key["kid"] == header["kid"]).expect("the key that the receipt names");
    let bytes: [u8; 32] = URL_SAFE_NO_PAD.decode(text(&key["x"])).unwrap().try_into().unwrap();
    let signed = receipt.rsplit_once('.').unwrap().0;
    let signature = Signature::from_slice(&parts[2]).unwrap();
    VerifyingKey::from_bytes(&bytes).unwrap().verify_strict(signed.as_bytes(), &signature).unwrap();
    site.stop().await;
}

/// A key that is no agent's, one that was revoked, and one whose agent is gone are each told so, whatever the body; the
/// agent's other keys go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_told_what_they_are() {
    let site = Site::start().await;
    let (agent, gone) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let mut client = site.client().await;
    let action = allowed(&mut client, &agent, 1_000).await;
    let id = text(&action["id"]);
    let (authorize, read) = ("/v1/actions/authorize", format!("/v1/actions/{id}"));
    let (callback, settle) = (format!("{read}/callback"), format!("{read}/settle"));
    let routes = [("POST", authorize), ("GET", &read), ("POST", &callback), ("POST", &settle)];
    let second = site.key(KeyScope::Agent(agent.id));
    let (inference, admin) = (site.key(KeyScope::Inference), site.key(KeyScope::Admin));
    client.read_action(&second, id).await.ok();
    client.authorize(&gone.key, &payment(1)).await.ok();
    site.revoke(&second);
    site.gate.execute(RemoveAgent { workspace: site.workspace(), by: By::Program, agent: gone.id }).unwrap();
    let unknown = format!("ask_{}", "A".repeat(43));
    let cases = [
        (&inference, 403, "agent_key_required"),
        (&admin, 403, "agent_key_required"),
        (&second, 401, "invalid_api_key"),
        (&unknown, 401, "invalid_api_key"),
        (&gone.key, 403, "agent_not_found"),
    ];
    for (key, status, kind) in cases {
        for (method, path) in routes {
            for body in ["{}", "{", "", r#"{"status":"completed","type":"payment"}"#] {
                let got = client.ask(method, path, &[("authorization", &bearer(key))], body.as_bytes()).await;
                assert_eq!((got.status, got.kind().as_str()), (status, kind), "{method} {path} {body}");
                let named = (kind == "agent_not_found").then(|| json!(gone.id.to_string()));
                assert_eq!(got.json()["error"]["agentId"], named.unwrap_or_default());
            }
        }
    }
    client.read_action(&agent.key, id).await.ok();
    site.audit();
    site.stop().await;
}

/// Another agent's action is not there, nor is one that never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_actions_of_others_are_not_found() {
    let site = Site::start().await;
    let (agent, other) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let mut client = site.client().await;
    let mine = allowed(&mut client, &agent, 1_000).await;
    // A workspace of its own over the same rows.
    let elsewhere = site.node(Span::seconds(0)).await;
    let stranger = elsewhere.agent(&[OFFICE]);
    let theirs = allowed(&mut client, &stranger, 1_000).await;
    let never = format!("act_{}", "0".repeat(26));
    let wrong = text(&mine["id"]).replace("act_", "agt_");
    let long = format!("act_{}", "7".repeat(300));
    for (key, id) in [
        (&other.key, text(&mine["id"])),
        (&stranger.key, text(&mine["id"])),
        (&agent.key, text(&theirs["id"])),
        (&agent.key, &never),
        (&agent.key, &wrong),
        (&agent.key, &long),
        (&agent.key, "act_"),
        (&agent.key, "%00"),
        (&agent.key, "act_%C3%A9"),
    ] {
        let read = client.read_action(key, id).await;
        let callback = json!({ "url": "https://hooks.example.com/cb" });
        let callback = client.post(&format!("/v1/actions/{id}/callback"), key, &callback).await;
        let settle = client.settle(key, id, &json!({ "status": "completed" })).await;
        for got in [read, callback, settle] {
            assert_eq!((got.status, got.kind().as_str()), (404, "not_found"), "{id}");
        }
    }
    assert_eq!(text(&client.read_action(&agent.key, text(&mine["id"])).await.ok()["status"]), "allowed");
    elsewhere.stop().await;
    site.audit();
    site.stop().await;
}

/// The velocity line asks when it is full, says when it clears, and lets through again after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_velocity_line_asks_until_it_clears() {
    let site = Site::with(|plan| {
        plan.settings.agent_velocity.other_count = 3;
        plan.settings.agent_velocity.tool_count = 2;
    })
    .await;
    let agent = site.agent(&[WIDE, CRM]);
    let mut client = site.client().await;
    for amount in [1, 2, 3] {
        allowed(&mut client, &agent, amount).await;
        site.advance(Span::minutes(1));
    }
    let full = client.authorize(&agent.key, &payment(4)).await.ok();
    assert_eq!((text(&full["decision"]), codes(&full)), ("approval_required", vec!["velocity_exceeded"]));
    assert_eq!(full["reasons"][0]["clearsAt"], json!("2026-10-01T09:41:00.000Z"));
    // The other line is not touched by it.
    let tool = json!({ "type": "tool.call", "summary": "List files", "tool": { "name": "ls" } });
    for expected in ["allow", "allow", "approval_required"] {
        assert_eq!(text(&client.authorize(&agent.key, &tool).await.ok()["decision"]), expected);
    }
    site.advance(Span::minutes(10));
    allowed(&mut client, &agent, 5).await;
    site.audit();
    site.stop().await;
}
