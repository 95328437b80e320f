//! What card issuers and payment processors send, over real sockets: nothing is read that is not signed, and each request has
//! one effect.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

use serde_json::{Value, json};
use svc_core::state::edge::IntegrationKind;
use svc_core::value::Span;
use svc_tests::client::Got;
use svc_tests::hooks::Sender;
use svc_tests::requests::{SHOP, WIDE, charge, payment, text};
use tokio::task::JoinSet;

const HEADER: &str = "svc-signature";

async fn issuer() -> Sender {
    Sender::new(IntegrationKind::Issuer, HEADER).await
}

/// A charge that an issuer asks about, in euro at [`SHOP`].
fn request(id: &str, (name, of): (&str, &Value), amount: i64) -> Value {
    json!({
        "type": "authorization.request", "id": id, name: of, "amount": amount, "currency": "EUR",
        "merchant": { "domain": SHOP },
    })
}

/// The ledger's records of a kind, each as its data.
fn records(sender: &Sender, kind: &str) -> Vec<Value> {
    let ledger = sender.site.ledger();
    ledger.iter().filter(|it| &*it.kind == kind).map(|it| serde_json::from_str(&it.data).unwrap()).collect()
}

/// A charge is approved once, by the action that covers it, whose receipt is used up by that; the ledger tells so as the
/// integration's doing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_uses_up_the_receipt_of_the_action_that_covers_it() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[WIDE]);
    let action = from.client.authorize(&agent.key, &payment(4_900)).await.ok();
    let by_action = ("actionId", &action["id"]);
    let more = from.tell(&request("evt_1", by_action, 4_901)).await;
    assert_eq!(more.ok(), json!({ "approved": false, "reason": "amount_exceeds" }));
    assert_eq!(from.tell(&request("evt_2", by_action, 4_900)).await.ok(), json!({ "approved": true }));
    let again = from.tell(&request("evt_3", by_action, 4_900)).await;
    assert_eq!(again.ok(), json!({ "approved": false, "reason": "already_consumed" }));
    let verdict = from.client.verify(&charge(&action["receipt"], 4_900)).await.ok();
    assert_eq!((&verdict["valid"], &verdict["reason"]), (&json!(false), &json!("already_consumed")));
    let consumed = records(&from, "receipt.consumed");
    assert_eq!((consumed.len(), &consumed[0]["amount"]), (1, &json!(4_900)));
    let told: Vec<Value> = records(&from, "integration.received");
    assert_eq!(
        told[1],
        json!({ "kind": "issuer", "event": "authorization.request", "approved": true,
        "outcome": "approved", "actionId": action["id"] })
    );
    let ledger = from.site.ledger();
    let by: Vec<&str> = ledger.iter().filter(|it| &*it.kind == "receipt.consumed").map(|it| &*it.actor).collect();
    assert!(by[0].contains(r#""kind":"integration""#) && by[0].contains("int_"), "{by:?}");
    from.site.audit();
    from.site.stop().await;
}

/// Whatever is wrong with a request, it is refused in one text, and nothing is done of what it asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_signed_is_refused_alike() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[WIDE]);
    let action = from.client.authorize(&agent.key, &payment(100)).await.ok();
    let body = request("evt_1", ("actionId", &action["id"]), 100).to_string();
    let (now, bytes) = (from.site.now(), body.as_bytes());
    let good = from.signed(now, bytes);
    let late = from.signed(now.minus(Span::millis(301_000)), bytes);
    let early = from.signed(now.plus(Span::millis(301_000)), bytes);
    let other = from.signed(now, b"{}");
    let path = from.path.clone();
    let paths = ["/hooks/issuer/wsp_00000000000000000000000000", "/hooks/issuer/none", "/hooks/issuer/x%20y"];
    let mut told: Vec<Got> = Vec::new();
    for headers in [
        vec![],
        vec![(HEADER, "t=1")],
        vec![(HEADER, &*late)],
        vec![(HEADER, &*early)],
        vec![(HEADER, &*other)],
        vec![(HEADER, &*good), (HEADER, &*good)],
        vec![("stripe-signature", &*good)],
        vec![("authorization", "Bearer ims_1"), ("cookie", "sid=1"), ("x-svc-csrf", "1")],
    ] {
        told.push(from.send(&headers, bytes).await);
    }
    for path in paths {
        from.path = path.to_owned();
        told.push(from.send(&[(HEADER, &good)], bytes).await);
    }
    from.path = path;
    told.push(from.send(&[(HEADER, &good)], &bytes[..bytes.len() - 1]).await);
    let texts: Vec<(u16, Value)> = told.iter().map(|it| (it.status, it.json()["error"]["message"].clone())).collect();
    assert!(texts.iter().all(|it| it.0 == 401 && *it == texts[0]), "{texts:?}");
    assert!(told.iter().all(|it| it.kind() == "unauthenticated"));
    assert_eq!(records(&from, "receipt.consumed"), Vec::<Value>::new());
    assert_eq!(from.send(&[(HEADER, &good)], bytes).await.ok(), json!({ "approved": true }));
    let replayed = from.send(&[(HEADER, &good)], bytes).await;
    assert_eq!((replayed.status, &replayed.json()["error"]["message"]), (401, &texts[0].1), "a replay is one of them");
    from.site.audit();
    from.site.stop().await;
}

/// The same request sent 64 times at once has one effect, and so have 64 that name the same action.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_at_once_has_one_effect() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[WIDE]);
    let action = from.client.authorize(&agent.key, &payment(100)).await.ok();
    let body = request("evt_1", ("actionId", &action["id"]), 100).to_string();
    let signed = from.signed(from.site.now(), body.as_bytes());
    let mut all = JoinSet::new();
    for _ in 0..64 {
        let (mut client, path) = (from.site.client().await, from.path.clone());
        let (body, signed) = (body.clone(), signed.clone());
        all.spawn(async move { client.ask("POST", &path, &[(HEADER, &signed)], body.as_bytes()).await });
    }
    let statuses: Vec<u16> = all.join_all().await.iter().map(|it| it.status).collect();
    let count = |status| statuses.iter().filter(|it| **it == status).count();
    assert_eq!((count(200), count(401)), (1, 63));
    assert_eq!((records(&from, "receipt.consumed").len(), records(&from, "integration.received").len()), (1, 1));
    from.site.audit();
    from.site.stop().await;
}

/// An agent's newest action that covers a charge is the one that is used; where none does, nothing is approved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_newest_action_that_covers_a_charge_is_used() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[WIDE]);
    let mut made = Vec::new();
    for amount in [500, 300, 400, 100] {
        made.push(from.client.authorize(&agent.key, &payment(amount)).await.ok()["id"].clone());
        from.site.shift(Span::millis(1_000));
    }
    let id = json!(agent.id);
    for (place, expected) in [("evt_1", Some(2)), ("evt_2", Some(1)), ("evt_3", Some(0)), ("evt_4", None)] {
        let told = from.tell(&request(place, ("agentId", &id), 300)).await.ok();
        let covered = records(&from, "integration.received").pop().unwrap();
        match expected {
            Some(at) => assert_eq!((&told["approved"], &covered["actionId"]), (&json!(true), &made[at]), "{place}"),
            None => assert_eq!(told, json!({ "approved": false, "reason": "no_action" })),
        }
    }
    let stranger = json!("agt_00000000000000000000000000");
    let told = from.tell(&request("evt_5", ("agentId", &stranger), 1)).await.ok();
    assert_eq!(text(&told["reason"]), "no_action");
    from.site.audit();
    from.site.stop().await;
}

/// An event that its issuer signs anew is answered as before and uses nothing up again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_sent_again_is_answered_as_before() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[WIDE]);
    for _ in 0..2 {
        from.client.authorize(&agent.key, &payment(100)).await.ok();
    }
    let event = request("evt_1", ("agentId", &json!(agent.id)), 100);
    for _ in 0..3 {
        assert_eq!(from.tell(&event).await.ok(), json!({ "approved": true }));
    }
    assert_eq!(records(&from, "receipt.consumed").len(), 1);
    let repeated: Vec<Value> = records(&from, "integration.received").iter().map(|it| it["repeated"].clone()).collect();
    assert_eq!(repeated, [Value::Null, json!(true), json!(true)]);
    from.site.audit();
    from.site.stop().await;
}
