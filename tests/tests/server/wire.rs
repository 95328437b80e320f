//! What goes over the wire, to the letter: each shape of a decision, each verdict and each refusal, as committed. Ids, salts,
//! digests and signatures are numbered, so that a changed member or text shows and chance does not.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use svc_core::rules::people::by::By;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::people::KeyScope;
use svc_core::value::Span;
use svc_tests::client::{Got, bearer};
use svc_tests::requests::{CRM, OFFICE, charge, payment, payment_to, text, update, with};
use svc_tests::site::{Fault, Site};

/// Answers, each under a name, as one text.
#[derive(Default)]
struct Shown {
    text: String,
    names: Vec<String>,
}

impl Shown {
    fn add(&mut self, name: &str, got: &Got) {
        self.names.clear();
        let _ = writeln!(self.text, "## {name}: {}", got.status);
        let own = ["allow", "cache-control", "idempotent-replayed", "retry-after", "www-authenticate"];
        for (header, value) in got.headers.iter().filter(|(header, _)| own.contains(&header.as_str())) {
            let _ = writeln!(self.text, "{header}: {value}");
        }
        let body = self.normal(got.json());
        let _ = writeln!(self.text, "{body:#}\n");
    }

    /// The same with whatever differs from run to run numbered.
    fn normal(&mut self, value: Value) -> Value {
        match value {
            Value::Object(members) => members.into_iter().map(|(name, it)| self.member(name, it)).collect(),
            Value::Array(items) => items.into_iter().map(|it| self.normal(it)).collect(),
            Value::String(text) => Value::String(text.split('/').map(|it| self.name(it)).collect::<Vec<_>>().join("/")),
            other => other,
        }
    }

    fn member(&mut self, name: String, value: Value) -> (String, Value) {
        let normal = match (name.as_str(), &value) {
            ("receipt", Value::String(receipt)) => self.receipt(receipt),
            // Keys are listed by their names, so their uses come in any order.
            ("actionDigest" | "digestSalt" | "requestId" | "kid" | "x" | "svc_use", Value::String(_)) => {
                json!(format!("<{name}>"))
            }
            _ => self.normal(value),
        };
        (name, normal)
    }

    /// What a receipt says, without its signature.
    fn receipt(&mut self, receipt: &str) -> Value {
        let parts: Vec<&str> = receipt.split('.').collect();
        let read = |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
        let claims = with(read(parts[1]), "dig", json!("<actionDigest>"));
        json!({ "header": read(parts[0]), "claims": self.normal(claims) })
    }

    /// The name of an id: its prefix and which one of this answer it is.
    fn name(&mut self, part: &str) -> String {
        match part.split_once('_') {
            Some((prefix, rest)) if rest.len() == 26 && prefix.len() <= 4 && !rest.contains(' ') => {
                let known = self.names.iter().position(|it| it == part);
                let place = known.unwrap_or_else(|| {
                    self.names.push(part.to_owned());
                    self.names.len() - 1
                });
                format!("<{prefix}_{place}>")
            }
            _ => part.to_owned(),
        }
    }
}

/// Every shape that a decision takes without a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions() {
    let site = Site::start().await;
    let (agent, idle) = (site.agent(&[OFFICE, CRM]), site.agent(&[OFFICE]));
    let mut client = site.client().await;
    let mut shown = Shown::default();
    let allowed = client.authorize_once(&agent.key, "order-1", &payment(4_900)).await;
    shown.add("allow, payment", &allowed);
    shown.add("allow, replayed", &client.authorize_once(&agent.key, "order-1", &payment(4_900)).await);
    let tool = json!({
        "type": "tool.call", "summary": "List files", "session": { "id": "session-1" },
        "tool": { "name": "ls", "server": "files", "input": { "path": "." }, "inputBytes": 12,
                  "inputDigest": format!("sha256:{}", "0".repeat(64)) },
    });
    shown.add("allow, tool, undeclared provenance", &client.authorize(&agent.key, &tool).await);
    let share = json!({
        "type": "data.share", "summary": "Share an address", "provenance": [{ "source": "web" }, { "source": "user" }],
        "data": { "recipient": "crm.example.com", "fields": ["name", "address"], "purpose": "Delivery" },
    });
    shown.add("ask, data, untrusted", &client.authorize(&agent.key, &share).await);
    let detailed = with(update(), "details", json!({ "b": [1, true, null], "a": "x" }));
    shown.add("allow, details", &client.authorize(&agent.key, &detailed).await);
    let asked = client.authorize(&agent.key, &payment(20_001)).await;
    shown.add("ask, payment", &asked);
    shown.add("ask, outside every mandate", &client.authorize(&idle.key, &update()).await);
    shown.add("deny, several reasons", &client.authorize(&agent.key, &payment_to(50_001, "bad.example.net")).await);
    let receipt = allowed.ok()["receipt"].clone();
    client.verify(&charge(&receipt, 4_900)).await.ok();
    let id = text(&allowed.ok()["id"]).to_owned();
    shown.add("allow, consumed", &client.read_action(&agent.key, &id).await);
    let outcome = json!({ "status": "failed", "amount": 0 });
    shown.add("failed after consumption", &client.settle(&agent.key, &id, &outcome).await);
    let lapsing = text(&client.authorize(&idle.key, &payment(700)).await.ok()["id"]).to_owned();
    let over =
        text(&client.authorize(&agent.key, &payment_to(800, "elsewhere.example.org")).await.ok()["id"]).to_owned();
    let revoked = text(&client.authorize(&agent.key, &payment_to(900, "else.example.net")).await.ok()["id"]).to_owned();
    let done = json!({ "status": "completed", "amount": 801 });
    shown.add("completed, over-settled", &client.settle(&agent.key, &over, &done).await);
    shown.add("revoked", &client.read_action(&agent.key, &revoked).await);
    shown.add("pending, ended by the freeze", &client.read_action(&agent.key, text(&asked.ok()["id"])).await);
    shown.add("deny, frozen", &client.authorize(&agent.key, &payment(1)).await);
    let expiring = text(&client.authorize(&idle.key, &payment(20_002)).await.ok()["id"]).to_owned();
    site.advance(Span::hours(25));
    shown.add("expired", &client.read_action(&idle.key, &expiring).await);
    shown.add("lapsed", &client.read_action(&idle.key, &lapsing).await);
    shown.add("completed, late", &client.settle(&idle.key, &lapsing, &json!({ "status": "completed" })).await);
    let callback = json!({ "url": "https://hooks.example.com/cb" });
    let path = format!("/v1/actions/{expiring}/callback");
    shown.add("callback", &client.post(&path, &idle.key, &callback).await);
    insta::assert_snapshot!("decisions", shown.text);
    site.stop().await;
}

/// Every shape of a verdict: a no has one, whatever its reason (`receipts_http.rs` has them all).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verdicts() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE, CRM]);
    let mut client = site.client().await;
    let mut shown = Shown::default();
    let decision = client.authorize(&agent.key, &payment(4_900)).await.ok();
    let good = charge(&decision["receipt"], 4_900);
    shown.add("malformed", &client.verify(&json!({ "receipt": "x" })).await);
    shown.add("amount_exceeds", &client.verify(&charge(&decision["receipt"], 4_901)).await);
    shown.add("valid", &client.verify_once("sixteen-characters", &good).await);
    shown.add("valid, replayed", &client.verify_once("sixteen-characters", &good).await);
    shown.add("already_consumed", &client.verify(&good).await);
    let plain = client.authorize(&agent.key, &update()).await.ok();
    shown.add("valid, no payment", &client.verify(&json!({ "receipt": plain["receipt"] })).await);
    shown.add("keys", &client.ask("GET", "/.well-known/jwks.json", &[], b"").await);
    insta::assert_snapshot!("verdicts", shown.text);
    site.stop().await;
}

/// Every refusal's envelope.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals() {
    let site = Site::start().await;
    let (agent, gone) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let mut client = site.client().await;
    let mut shown = Shown::default();
    let first = client.authorize_once(&agent.key, "order-1", &payment(4_900)).await.ok();
    let denied = client.authorize(&agent.key, &payment(50_001)).await.ok();
    let (id, denied) = (text(&first["id"]).to_owned(), text(&denied["id"]).to_owned());
    site.gate.execute(RemoveAgent { workspace: site.workspace(), by: By::Program, agent: gone.id }).unwrap();
    let inference = site.key(KeyScope::Inference);
    let key = [("authorization", &*bearer(&agent.key))];
    let authorize = "/v1/actions/authorize";
    shown.add("invalid_json", &client.ask("POST", authorize, &key, b"{").await);
    let wrong = json!({ "type": "pay", "summary": "", "provenance": [{}] });
    shown.add("invalid_request, a word that is no type", &client.authorize(&agent.key, &wrong).await);
    let wrong = with(with(payment(0), "payment.currency", json!("EURO")), "payment.merchant.domain", json!("co.uk"));
    shown.add("invalid_request, many faults", &client.authorize(&agent.key, &wrong).await);
    shown.add("invalid_request, no object", &client.authorize(&agent.key, &json!([])).await);
    shown.add("unauthenticated", &client.ask("POST", authorize, &[], b"").await);
    shown.add("invalid_api_key", &client.authorize("ask_x", &payment(1)).await);
    shown.add("agent_key_required", &client.authorize(&inference, &payment(1)).await);
    shown.add("agent_not_found", &client.authorize(&gone.key, &payment(1)).await);
    shown.add("not_found", &client.read_action(&agent.key, "act_x").await);
    shown.add("route_not_found", &client.ask("POST", "/v1/action/authorise", &key, b"").await);
    shown.add("method_not_allowed", &client.ask("GET", authorize, &key, b"").await);
    shown.add("body_too_large", &client.ask("POST", authorize, &key, &vec![b' '; 1024 * 1024 + 1]).await);
    shown.add("idempotency_conflict", &client.authorize_once(&agent.key, "order-1", &payment(1)).await);
    shown.add("invalid_status", &client.settle(&agent.key, &id, &json!({ "status": "done" })).await);
    shown.add("invalid_amount", &client.settle(&agent.key, &id, &json!({ "status": "failed", "amount": 0.5 })).await);
    shown.add("not_allowed", &client.settle(&agent.key, &denied, &json!({ "status": "failed" })).await);
    client.settle(&agent.key, &id, &json!({ "status": "completed" })).await.ok();
    shown.add("already_settled", &client.settle(&agent.key, &id, &json!({ "status": "failed" })).await);
    site.fault.set(Fault::Unavailable);
    shown.add("not_ready", &client.authorize(&agent.key, &payment(2)).await);
    site.fault.set(Fault::UnknownLost);
    shown.add("internal", &client.authorize(&agent.key, &payment(3)).await);
    let plain = client.verify(&charge(&first["receipt"], 4_900)).await;
    shown.add("internal, of a verification", &plain);
    site.stop().await;
    let site = Site::with(|plan| plan.config.limits.verify_per_minute = 1).await;
    let mut client = site.client().await;
    client.verify(&json!({ "receipt": "x" })).await.ok();
    let limited = client.verify(&json!({ "receipt": "x" })).await;
    assert!((1..=60).contains(&limited.header("retry-after").unwrap().parse::<u32>().unwrap()));
    let told = limited.headers.into_iter().filter(|(name, _)| name != "retry-after").collect();
    shown.add("rate_limited", &Got { headers: told, ..limited });
    insta::assert_snapshot!("refusals", shown.text);
    site.stop().await;
}
