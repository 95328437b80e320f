//! The ledger behind the interface: each thing that an agent brings about is one record, in its place, with the members that
//! readers go by and without a word that a person wrote.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::state::people::{KeyScope, Settings};
use svc_core::value::Span;
use svc_core::value::text::Note;
use svc_tests::requests::{CRM, OFFICE, charge, payment, payment_to, text, update, with};
use svc_tests::site::Site;

/// The same with ids, digests and commitments named by what they are.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.contains_key("commit") => {
            assert_eq!((members.len(), text(&members["commit"]).len()), (1, 64), "{value}");
            json!("<commitment>")
        }
        Value::Object(members) => members.iter().map(|(name, it)| (name.clone(), normal(it))).collect(),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::String(it) if it.starts_with("sha256:") => json!("<digest>"),
        Value::String(it) if it.starts_with("ask_") => json!(format!("<{} characters>", it.len())),
        Value::String(it) if it.len() > 27 && it.as_bytes()[it.len() - 27] == b'_' => {
            json!(format!("<{}>", &it[..it.len() - 27]))
        }
        other => other.clone(),
    }
}

/// Every kind of record that the gate writes, to the letter, and their chain made again from its text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_is_recorded() {
    let site = Site::start().await;
    let (agent, idle) = (site.agent(&[OFFICE, CRM]), site.agent(&[OFFICE]));
    let mut client = site.client().await;
    let second = site.key(KeyScope::Inference);
    site.revoke(&second);
    let used = client.authorize(&agent.key, &payment(4_900)).await.ok();
    client.verify(&charge(&used["receipt"], 4_900)).await.ok();
    client.settle(&agent.key, text(&used["id"]), &json!({ "status": "failed", "amount": 100 })).await.ok();
    let secret = with(update(), "details", json!({ "secret": "a word that a person wrote" }));
    client.authorize(&agent.key, &secret).await.ok();
    let denied = client.authorize(&agent.key, &payment_to(50_001, "bad.example.net")).await.ok();
    client.authorize(&idle.key, &payment(20_001)).await.ok();
    let lapsing = client.authorize(&idle.key, &payment_to(700, "elsewhere.example.org")).await.ok();
    site.advance(Span::hours(25));
    client.settle(&idle.key, text(&lapsing["id"]), &json!({ "status": "completed" })).await.ok();
    client.authorize(&agent.key, &payment(20_002)).await.ok();
    let over = client.authorize(&agent.key, &payment_to(800, "elsewhere.example.org")).await.ok();
    client.authorize(&agent.key, &payment_to(900, "else.example.net")).await.ok();
    let settled =
        client.settle(&agent.key, text(&over["id"]), &json!({ "status": "completed", "amount": 801 })).await.ok();
    client.authorize(&agent.key, &payment(1)).await.ok();
    let reason = Note::parse("a word that a person wrote").unwrap();
    site.gate.execute(FreezeAgent { workspace: site.workspace(), agent: idle.id, by: By::Program, reason }).unwrap();
    site.advance(Span::seconds(1));
    let (mut lines, mut before) = (Vec::new(), "0".repeat(64));
    let ledger = site.ledger();
    for (seq, entry) in ledger.iter().enumerate() {
        let place = entry.place.as_ref().expect("a place");
        let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let (actor, data) = (read(&entry.actor), read(&entry.data));
        // Members are sorted and everything is ASCII: this is the form of RFC 8785.
        let hashed = json!({
            "actor": actor, "at": entry.at.to_string(), "data": data, "id": entry.id.to_string(), "kind": entry.kind,
            "prevHash": before, "seq": seq, "subject": entry.subject,
        });
        before = hex::encode(Sha256::digest(hashed.to_string()));
        assert_eq!(place.hash.to_string(), before, "{hashed}");
        let line = normal(&json!({ "actor": actor, "subject": entry.subject, "data": data }));
        lines.push(format!("{} {} {line}\n", entry.at, entry.kind));
    }
    // What falls due at one instant has no order among itself.
    lines.sort();
    let shown = lines.concat();
    for told in [&denied["evidenceRecord"], &settled["evidenceRecord"], &settled["incident"]["evidenceRecord"]] {
        assert!(ledger.iter().any(|it| it.id.to_string() == text(told)), "{told}");
    }
    for word in ["a word that a person wrote", "Pay for what", "owner@", "the order"] {
        assert!(!shown.contains(word), "{word}");
    }
    insta::assert_snapshot!("ledger", shown);
    site.audit();
    site.stop().await;
}

/// What is in force where nobody set anything: the lines, what is outside every mandate, how long things wait and live, and
/// how many may wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_begin_as_documented() {
    let site = Site::with(|plan| plan.settings = Settings::default()).await;
    let (busy, asking) = (site.agent(&[OFFICE, CRM]), site.agent(&[OFFICE]));
    let mut client = site.client().await;
    let tool = json!({ "type": "tool.call", "summary": "List files", "tool": { "name": "ls" } });
    for (body, allowed) in [(update(), 10), (tool, 200)] {
        for _ in 0..allowed {
            assert_eq!(text(&client.authorize(&busy.key, &body).await.ok()["decision"]), "allow");
        }
        let full = client.authorize(&busy.key, &body).await.ok();
        assert_eq!(full["signals"].as_array().unwrap().iter().filter(|it| **it == "velocity_exceeded").count(), 1);
        assert_eq!(full["reasons"][0]["clearsAt"], json!("2026-10-01T09:40:00.000Z"), "{full}");
    }
    for waiting in 0..100 {
        let asked = client.authorize(&asking.key, &update()).await.ok();
        assert_eq!(text(&asked["decision"]), "approval_required", "{waiting}");
        assert_eq!(asked["approval"]["expiresAt"], json!("2026-10-02T09:30:00.000Z"));
    }
    let full = client.authorize(&asking.key, &update()).await.ok();
    assert_eq!(text(&full["decision"]), "deny");
    assert!(full["signals"].as_array().unwrap().contains(&json!("approval_backlog")), "{full}");
    assert!(full["approval"].is_null());
    site.audit();
    site.stop().await;
}
