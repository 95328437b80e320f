//! Sixty-four clients at once on one thing that may happen once: over real sockets, over SQLite, and the books afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::testing::audit::{Report, audit, audit_approvals};
use svc_tests::client::{Client, Got};
use svc_tests::requests::{OFFICE, WIDE, charge, payment, payment_to, text, with};
use svc_tests::site::{Plan, Site, rows_of};
use tempfile::TempDir;
use tokio::sync::Barrier;

/// How many at once.
const CLIENTS: usize = 64;

async fn durable(change: impl FnOnce(&mut Plan)) -> (Site, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let site = Site::with(|plan| {
        plan.directory = Some(directory.path().to_owned());
        change(plan);
    })
    .await;
    (site, directory)
}

/// Has every client do the same at once, each on a connection of its own, and gives what each heard.
async fn at_once<F, Fut>(site: &Site, what: F) -> Vec<Got>
where
    F: Fn(Client, usize) -> Fut,
    Fut: Future<Output = Got> + Send + 'static,
{
    let start = Arc::new(Barrier::new(CLIENTS));
    let mut running = Vec::new();
    for place in 0..CLIENTS {
        let (start, asking) = (Arc::clone(&start), what(site.client().await, place));
        running.push(tokio::spawn(async move {
            start.wait().await;
            asking.await
        }));
    }
    let mut heard = Vec::new();
    for one in running {
        heard.push(one.await.unwrap());
    }
    heard
}

/// Stops the server and reads what it left behind.
async fn books(site: Site, directory: &TempDir) -> Report {
    site.gate.tick().unwrap();
    site.stop().await;
    let rows = rows_of(directory.path());
    let mut report = audit(&rows);
    report.faults.extend(audit_approvals(&rows));
    report.assert_clean("the audit of a file");
    report
}

fn count(heard: &[Got], is: impl Fn(&Value) -> bool) -> usize {
    heard.iter().filter(|it| it.status == 200 && is(&it.json())).count()
}

/// One key of idempotency makes one action, whoever comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_of_idempotency_makes_one_action() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let heard = at_once(&site, |mut client, _| {
        let key = agent.key.clone();
        async move { client.authorize_once(&key, "order-1", &payment(4_900)).await }
    })
    .await;
    let ids: BTreeSet<String> = heard.iter().map(|it| text(&it.ok()["id"]).to_owned()).collect();
    assert_eq!(ids.len(), 1);
    let replays = heard.iter().filter(|it| it.header("idempotent-replayed") == Some("true")).count();
    assert_eq!(replays, CLIENTS - 1);
    let first = heard[0].json();
    assert!(heard.iter().all(|it| it.json() == first));
    assert_eq!(books(site, &directory).await.actions, 1);
}

/// One key of idempotency with as many bodies: one is decided, all others conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_with_many_bodies_decides_one() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let heard = at_once(&site, |mut client, place| {
        let (key, body) = (agent.key.clone(), payment(100 + i64::try_from(place).unwrap()));
        async move { client.authorize_once(&key, "order-1", &body).await }
    })
    .await;
    assert_eq!(count(&heard, |_| true), 1);
    let conflicts = heard.iter().filter(|it| it.status == 409 && it.kind() == "idempotency_conflict").count();
    assert_eq!(conflicts, CLIENTS - 1);
    assert_eq!(books(site, &directory).await.actions, 1);
}

/// One receipt is good for exactly one of all who show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_receipt_is_good_for_one() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let decision = site.client().await.authorize(&agent.key, &payment(4_900)).await.ok();
    let body = charge(&decision["receipt"], 4_900);
    let heard = at_once(&site, |mut client, _| {
        let body = body.clone();
        async move { client.verify(&body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["valid"] == json!(true) && it["consumed"] == json!(true)), 1);
    assert_eq!(count(&heard, |it| it["reason"] == json!("already_consumed")), CLIENTS - 1);
    assert_eq!(books(site, &directory).await.consumed, 1);
}

/// One action is settled by exactly one of all who try, and reads as that one said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_action_is_settled_by_one() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let mut reader = site.client().await;
    let decision = reader.authorize(&agent.key, &payment(4_900)).await.ok();
    let id = text(&decision["id"]).to_owned();
    let heard = at_once(&site, |mut client, place| {
        let (key, id) = (agent.key.clone(), id.clone());
        let outcome = json!({ "status": "completed", "amount": 4_000 + place });
        async move { client.settle(&key, &id, &outcome).await }
    })
    .await;
    assert_eq!(count(&heard, |_| true), 1);
    let late = heard.iter().filter(|it| it.status == 409 && it.kind() == "already_settled").count();
    assert_eq!(late, CLIENTS - 1);
    let settled = heard.iter().find(|it| it.status == 200).unwrap().json();
    assert_eq!(reader.read_action(&agent.key, &id).await.ok(), settled);
    drop(reader);
    assert_eq!(books(site, &directory).await.settled, 1);
}

/// What is allowed in a period never passes its limit, and reaches it: no order of arrivals lets one through too many or
/// one too few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_period_limit_is_reached_and_never_passed() {
    let (site, directory) = durable(|_| {}).await;
    let limited = r#"{"name":"Day","actions":["payment"],"duplicates":"record",
        "limits":{"currency":"EUR","perAction":1000,"perPeriod":{"amount":10300,"period":"day"}}}"#;
    let agent = site.agent(&[limited]);
    let heard = at_once(&site, |mut client, place| {
        let (key, body) = (agent.key.clone(), payment_to(1_000, &format!("m{place}.example.org")));
        async move { client.authorize(&key, &body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["decision"] == json!("allow")), 10);
    let refused = |it: &Value| {
        it["decision"] == json!("deny") && it["signals"].as_array().unwrap().contains(&json!("over_period_limit"))
    };
    assert_eq!(count(&heard, refused), CLIENTS - 10);
    let report = books(site, &directory).await;
    assert_eq!((report.actions, report.allowed), (CLIENTS, 10));
}

/// A velocity line lets exactly as many through as it says, and asks about all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_velocity_line_lets_exactly_so_many_through() {
    let (site, directory) = durable(|plan| plan.settings.agent_velocity.other_count = 10).await;
    let agent = site.agent(&[WIDE]);
    let heard = at_once(&site, |mut client, place| {
        let key = agent.key.clone();
        let body = with(payment(100 + i64::try_from(place).unwrap()), "summary", json!(format!("Order {place}")));
        async move { client.authorize(&key, &body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["decision"] == json!("allow")), 10);
    let asked =
        |it: &Value| it["decision"] == json!("approval_required") && it["signals"] == json!(["velocity_exceeded"]);
    assert_eq!(count(&heard, asked), CLIENTS - 10);
    assert_eq!(books(site, &directory).await.allowed, 10);
}

/// A freeze that comes while all ask: after it nobody is allowed, and nothing that was allowed before still is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_allowed_after_an_incident() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[WIDE]);
    let mut reader = site.client().await;
    let first = reader.authorize(&agent.key, &payment(4_900)).await.ok();
    let id = text(&first["id"]).to_owned();
    let heard = at_once(&site, |mut client, place| {
        let (key, id) = (agent.key.clone(), id.clone());
        async move {
            match place {
                0 => client.settle(&key, &id, &json!({ "status": "completed", "amount": 4_901 })).await,
                _ => client.authorize(&key, &payment(100 + i64::try_from(place).unwrap())).await,
            }
        }
    })
    .await;
    assert!(heard[0].ok()["incident"].is_object());
    for one in &heard[1..] {
        let now = reader.read_action(&agent.key, text(&one.ok()["id"])).await.ok();
        assert_eq!((&now["decision"], &now["signals"]), (&json!("deny"), &json!(["agent_frozen"])), "{now}");
    }
    drop(reader);
    books(site, &directory).await;
}
