//! What card issuers and payment processors send, over real sockets: nothing is read that is not signed, and each request has
//! one effect.

use serde_json::{Value, json};
use svc_core::state::edge::{ConfigChange, Integration, IntegrationKind, IntegrationSlot, SealedSecret, signature};
use svc_core::state::people::{Plan, Role, Workspace};
use svc_core::store::{Row as _, Store as _};
use svc_core::testing::people;
use svc_core::value::Span;
use svc_core::value::secret::Secret;
use svc_tests::client::Got;
use svc_tests::hooks::Sender;
use svc_tests::receiver::{SECRET, connect_kind};
use svc_tests::requests::{OFFICE, SHOP, WIDE, charge, payment, text, with};
use svc_tests::site::Site;
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

/// Where this server can open none of an integration's secrets, a signature is not wrong, but not to be told from one: whoever sent it
/// sends it again. One of two that opens is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_cannot_be_opened_is_no_wrong_signature() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[WIDE]);
    let action = from.client.authorize(&agent.key, &payment(4_900)).await.ok();
    let mut store = from.site.memory();
    let slot = IntegrationSlot { workspace: from.site.workspace(), kind: IntegrationKind::Issuer };
    let found = store.load(&[Integration::key(slot)]).unwrap().remove(0).record.unwrap();
    let good = Integration::clone(Integration::peel(&found).unwrap());
    let lost = SealedSecret { sealed: "lost".into(), ..good.secrets[0].clone() };
    for (secrets, status) in [(vec![lost.clone()], 503), (vec![lost, good.secrets[0].clone()], 200)] {
        people::write(&mut store, vec![Integration::wrap(Integration { secrets, ..good.clone() }.into())]);
        let got = from.tell(&request("evt_1", ("actionId", &action["id"]), 4_900)).await;
        assert_eq!(got.status, status, "{}", got.text());
        assert!(status == 200 || got.kind() == "not_ready", "{}", got.text());
    }
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
        "outcome": "approved", "actionId": action["id"], "amount": 4_900, "merchantTold": true })
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
    // Another question under the same id is a question of its own.
    let more = request("evt_1", ("agentId", &json!(agent.id)), 100_000);
    assert_eq!(from.tell(&more).await.ok(), json!({ "approved": false, "reason": "no_action" }));
    from.site.audit();
    from.site.stop().await;
}

/// An event about an action.
fn about(kind: &str, id: &str, action: &Value) -> Value {
    json!({ "type": kind, "id": id, "actionId": action["id"] })
}

/// A stopped agent's action, one that expired and one that was never allowed are approved for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stopped_or_expired_is_not_approved() {
    let mut from = issuer().await;
    let (agent, other, third) = (from.site.agent(&[WIDE]), from.site.agent(&[OFFICE]), from.site.agent(&[OFFICE]));
    let stopped = from.client.authorize(&agent.key, &payment(100)).await.ok();
    let over = from.client.authorize(&agent.key, &payment(200)).await.ok();
    let asked = from.client.authorize(&other.key, &payment(20_001)).await.ok();
    let expired = from.client.authorize(&third.key, &payment(300)).await.ok();
    from.client.settle(&agent.key, text(&over["id"]), &json!({ "status": "completed", "amount": 201 })).await.ok();
    from.site.shift(Span::minutes(16));
    let strange = json!({ "id": "act_00000000000000000000000000" });
    let cases = [
        (&stopped, 100, "revoked"),
        (&asked, 20_001, "unknown_receipt"),
        (&expired, 300, "expired"),
        (&strange, 1, "no_action"),
    ];
    for (place, (action, amount, reason)) in cases.into_iter().enumerate() {
        let told = from.tell(&request(&format!("evt_{place}"), ("actionId", &action["id"]), amount)).await.ok();
        assert_eq!(told, json!({ "approved": false, "reason": reason }));
    }
    for id in [agent.id, other.id, third.id] {
        let told = from.tell(&request(&format!("evt_{id}"), ("agentId", &json!(id)), 100)).await.ok();
        assert_eq!(told, json!({ "approved": false, "reason": "no_action" }));
    }
    assert_eq!(records(&from, "receipt.consumed"), Vec::<Value>::new());
    from.site.audit();
    from.site.stop().await;
}

/// What an issuer settles is settled as its agent would: above the allowed amount is an incident that stops the agent. What cannot
/// be done is an answer, and an event that is sent again settles nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issuer_settles_what_it_charged() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[WIDE]);
    let action = from.client.authorize(&agent.key, &payment(4_900)).await.ok();
    from.tell(&request("evt_1", ("actionId", &action["id"]), 4_900)).await.ok();
    let settled = with(about("authorization.settled", "evt_2", &action), "amount", json!(4_800));
    for _ in 0..2 {
        assert_eq!(from.tell(&settled).await.ok(), json!({ "received": true, "outcome": "settled" }));
    }
    let read = from.client.read_action(&agent.key, text(&action["id"])).await.ok();
    assert_eq!((&read["status"], &read["outcome"]["amount"]), (&json!("completed"), &json!(4_800)));
    let other = with(about("authorization.settled", "evt_3", &action), "amount", json!(4_800));
    assert_eq!(from.tell(&other).await.ok()["outcome"], "already_settled");
    let strange = json!({ "id": "act_00000000000000000000000000" });
    let strange = with(about("authorization.settled", "evt_4", &strange), "amount", json!(1));
    assert_eq!(from.tell(&strange).await.ok()["outcome"], "not_found");
    let over = from.client.authorize(&agent.key, &payment(100)).await.ok();
    let told = with(about("authorization.settled", "evt_5", &over), "amount", json!(101));
    assert_eq!(from.tell(&told).await.ok()["outcome"], "over_settlement");
    let denied = from.client.authorize(&agent.key, &payment(100)).await.ok();
    assert_eq!(denied["reasons"][0]["code"], "agent_frozen");
    let kinds = ["action.settled", "incident.over_settlement", "agent.frozen"].map(|it| records(&from, it).len());
    assert_eq!(kinds, [2, 1, 1]);
    let ledger = from.site.ledger();
    let settled = ledger.iter().filter(|it| &*it.kind == "action.settled");
    assert!(settled.into_iter().all(|it| it.actor.contains(r#""kind":"integration""#)));
    from.site.audit();
    from.site.stop().await;
}

/// What an issuer takes back keeps nothing posted: what its agent settles later counts as if the receipt had not been used, and
/// what it has settled already is released.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issuers_reversal_gives_back_what_was_kept() {
    let mut from = issuer().await;
    let agent = from.site.agent(&[OFFICE]);
    let mut made = Vec::new();
    for place in 0..3 {
        let action = from.client.authorize(&agent.key, &payment(100 + place)).await.ok();
        from.tell(&request(&format!("evt_{place}"), ("actionId", &action["id"]), 100)).await.ok();
        made.push(action);
    }
    let cancelled = json!({ "status": "cancelled" });
    let reversed = about("authorization.reversed", "evt_r0", &made[0]);
    for _ in 0..2 {
        assert_eq!(from.tell(&reversed).await.ok(), json!({ "received": true, "outcome": "reversed" }));
    }
    assert_eq!(from.tell(&about("authorization.reversed", "evt_r1", &made[0])).await.ok()["outcome"], "not_allowed");
    let verdict = from.client.verify(&charge(&made[0]["receipt"], 100)).await.ok();
    assert_eq!(verdict["reason"], "already_consumed", "a receipt that was used is never good again");
    for action in &made {
        from.client.settle(&agent.key, text(&action["id"]), &cancelled).await.ok();
    }
    let posted: Vec<Value> = records(&from, "action.settled").iter().map(|it| it["posted"].clone()).collect();
    assert_eq!(posted, [json!(0), json!(100), json!(100)]);
    assert_eq!(from.tell(&about("authorization.reversed", "evt_r2", &made[1])).await.ok()["outcome"], "released");
    let released = records(&from, "action.released");
    assert_eq!((released.len(), &released[0]["released"], &released[0]["posted"]), (1, &json!(100), &json!(0)));
    assert_eq!(from.tell(&about("authorization.reversed", "evt_r3", &made[1])).await.ok()["outcome"], "not_allowed");
    from.site.audit();
    from.site.stop().await;
}

/// Every fault of a signed event is named, and what is no event of an issuer's is received and nothing is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_event_is_read_to_the_letter() {
    let mut from = issuer().await;
    let action = json!("act_00000000000000000000000000");
    let agent = json!("agt_00000000000000000000000000");
    let good = request("evt_1", ("actionId", &action), 1);
    let cases: [(Value, &[&str]); 8] = [
        (json!({}), &["id", "type"]),
        (with(good.clone(), "agentId", agent), &["agentId"]),
        (with(good.clone(), "actionId", Value::Null), &["actionId"]),
        (with(good.clone(), "actionId", json!("x")), &["actionId"]),
        (with(good.clone(), "amount", json!(0)), &["amount"]),
        (with(good.clone(), "currency", json!("euro")), &["currency"]),
        (with(good.clone(), "merchant", json!({})), &["merchant.domain"]),
        (with(about("authorization.settled", "e", &json!({ "id": action })), "amount", json!(-1)), &["amount"]),
    ];
    for (body, fields) in cases {
        let got = from.tell(&body).await;
        assert_eq!((got.status, got.fields()), (400, fields.iter().map(|it| (*it).to_owned()).collect()), "{body}");
    }
    let other = from.tell(&json!({ "type": "card.lost", "id": "evt_9", "more": [1] })).await.ok();
    assert_eq!(other, json!({ "received": true, "outcome": "ignored" }));
    let told = records(&from, "integration.received");
    assert_eq!((told.len(), &told[0]["event"]), (1, &json!("other")));
    let ledger = from.site.ledger();
    assert!(!ledger.iter().any(|it| it.data.contains("card.lost")), "a stranger's text is a commitment");
    from.site.audit();
    from.site.stop().await;
}

/// A payment processor is answered in its own shape and version, by the action or the agent that its metadata names; all other
/// events are received and nothing is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_processor_is_answered_in_its_own_shape() {
    let mut from = Sender::new(IntegrationKind::Stripe, "stripe-signature").await;
    let agent = from.site.agent(&[WIDE]);
    let action = from.client.authorize(&agent.key, &payment(4_900)).await.ok();
    let event = |id: &str, metadata: Value, amount: i64, url: Value| {
        json!({
            "id": id, "object": "event", "api_version": "2025-06-30.basil", "type": "issuing_authorization.request",
            "created": 18_446_744_073_709_551_615_u64,
            "data": { "object": {
                "object": "issuing.authorization", "amount": 0, "currency": "eur",
                "pending_request": { "amount": amount, "currency": "eur", "is_amount_controllable": false },
                "card": { "metadata": metadata }, "merchant_data": { "name": "SHOP", "url": url },
            } },
        })
    };
    let by_action = json!({ "svc_action": action["id"] });
    let by_agent = json!({ "svc_agent": agent.id });
    let shop = json!(format!("https://{SHOP}/checkout"));
    let cases = [
        ("evt_1", by_action.clone(), 4_901, shop.clone(), false),
        ("evt_2", by_action.clone(), 4_900, json!("https://other.example.net"), false),
        ("evt_3", by_action.clone(), 4_900, json!("https://"), false),
        ("evt_4", json!({}), 4_900, shop.clone(), false),
        ("evt_0", by_agent.clone(), 4_900, Value::Null, false),
        ("evt_5", by_agent.clone(), 4_900, shop.clone(), true),
        ("evt_6", by_action, 4_900, shop, false),
        ("evt_7", by_agent, 4_900, Value::Null, false),
    ];
    for (id, metadata, amount, url, approved) in cases {
        let got = from.tell(&event(id, metadata, amount, url)).await;
        assert_eq!(got.ok(), json!({ "approved": approved }), "{id}");
        assert_eq!(got.header("stripe-version"), Some("2025-06-30.basil"));
    }
    let second = from.client.authorize(&agent.key, &payment(10)).await.ok();
    let anywhere = event("evt_8", json!({ "svc_action": second["id"] }), 10, Value::Null);
    assert_eq!(from.tell(&anywhere).await.ok(), json!({ "approved": true }), "any merchant of the action");
    let other = json!({ "id": "evt_9", "type": "issuing_card.created", "data": { "object": {} } });
    let got = from.tell(&other).await;
    assert_eq!((got.ok(), got.header("stripe-version")), (json!({ "received": true }), None));
    assert_eq!((records(&from, "receipt.consumed").len(), records(&from, "integration.received").len()), (2, 10));
    let large = json!({ "id": "evt_10", "type": "x", "data": {}, "more": "x".repeat(2 << 20) });
    assert_eq!(from.tell(&large).await.ok(), json!({ "received": true }));
    let bad = from.tell(&json!({ "id": "", "type": 1 })).await;
    assert_eq!((bad.status, bad.fields()), (400, vec!["data".to_owned(), "id".to_owned(), "type".to_owned()]));
    from.site.audit();
    from.site.stop().await;
}

/// A workspace's plan follows its subscription, told with the operator's secret and with no workspace's: once for an event, and for
/// prices and workspaces that are known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_follows_its_subscription() {
    const OPERATORS: &str = "whsec_the_secret_of_whoever_runs_it";
    let site = Site::with(|plan| {
        plan.config.billing.secret = Some(Secret::new(OPERATORS.to_owned()));
        plan.config.billing.plans = [("price_1".into(), Plan::Team), ("price_2".into(), Plan::Enterprise)].into();
    })
    .await;
    connect_kind(&site, IntegrationKind::Stripe, ConfigChange::default());
    let mut client = site.client().await;
    let workspace = site.workspace();
    let plan = || site.gate.read(|scope| Ok(scope.get::<Workspace>(workspace)?.unwrap().plan)).unwrap();
    let began = site.now().as_seconds() - 1_000;
    let event_of = |id: &str, kind: &str, wid: &str, price: &str, status: Value| {
        let number: i64 = id.trim_start_matches("evt_").parse().unwrap();
        let items = json!({ "data": [{ "price": { "id": price } }, { "price": { "id": "price_1" } }] });
        let object = json!({ "metadata": { "wid": wid }, "items": items, "status": status });
        json!({ "id": id, "type": kind, "created": began + number, "data": { "object": object } }).to_string()
    };
    let event = |id: &str, kind: &str, wid: &str, price: &str| event_of(id, kind, wid, price, json!("active"));
    let (updated, deleted, wid) =
        ("customer.subscription.updated", "customer.subscription.deleted", workspace.to_string());
    let mut at = site.now();
    let mut send = async |secret: &str, body: &str| {
        at = at.minus(Span::millis(1_000));
        let signed = signature(at, body.as_bytes(), [secret.as_bytes()]);
        client.ask("POST", "/hooks/billing", &[("stripe-signature", &signed)], body.as_bytes()).await
    };
    let team = event("evt_1", updated, &wid, "price_1");
    assert_eq!(send(SECRET, &team).await.status, 401, "a workspace's own secret is none here");
    assert_eq!(plan(), Plan::SelfHosted);
    let received = json!({ "received": true });
    assert_eq!((send(OPERATORS, &team).await.ok(), plan()), (received.clone(), Plan::Team));
    for (id, kind, wid, price, becomes) in [
        ("evt_2", updated, &*wid, "price_9", Plan::Team),
        ("evt_3", updated, "wsp_00000000000000000000000000", "price_2", Plan::Team),
        ("evt_4", updated, "x", "price_2", Plan::Team),
        ("evt_5", "customer.created", &wid, "price_2", Plan::Team),
        ("evt_6", updated, &wid, "price_2", Plan::Enterprise),
        ("evt_1", updated, &wid, "price_1", Plan::Enterprise),
        ("evt_7", deleted, &wid, "price_9", Plan::Free),
    ] {
        let got = send(OPERATORS, &event(id, kind, wid, price)).await;
        assert_eq!((got.ok(), plan()), (received.clone(), becomes), "{id} {price}");
    }
    for (id, status, becomes) in [
        ("evt_8", "incomplete", Plan::Free),
        ("evt_9", "past_due", Plan::Team),
        ("evt_10", "incomplete", Plan::Team),
        ("evt_11", "unpaid", Plan::Free),
    ] {
        send(OPERATORS, &event_of(id, updated, &wid, "price_1", json!(status))).await.ok();
        assert_eq!(plan(), becomes, "{status}");
    }
    let trial = event_of("evt_12", "customer.subscription.created", &wid, "price_1", json!("trialing"));
    assert_eq!((send(OPERATORS, &trial).await.ok(), plan()), (received, Plan::Team));
    let changed: Vec<_> = site.ledger().into_iter().filter(|it| &*it.kind == "settings.changed").collect();
    let told: Vec<Value> = changed.iter().map(|it| serde_json::from_str(&it.data).unwrap()).collect();
    assert_eq!(told[0], json!({ "old": { "plan": "self-hosted" }, "new": { "plan": "team" } }));
    assert_eq!(told.len(), 6);
    site.audit();
    site.stop().await;
    let site = Site::start().await;
    let mut client = site.client().await;
    let signed = signature(site.now(), team.as_bytes(), [OPERATORS.as_bytes()]);
    let got = client.ask("POST", "/hooks/billing", &[("stripe-signature", &signed)], team.as_bytes()).await;
    assert_eq!(got.status, 401, "without a secret nothing is good");
    site.stop().await;
}

/// Events of subscriptions count by when they came about and not by when they come: an older `updated` behind a `deleted` or a newer
/// one changes nothing, at the same second the end stays one, and a workspace's other subscription goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_are_followed_in_their_own_order() {
    const OPERATORS: &str = "whsec_the_secret_of_whoever_runs_it";
    let site = Site::with(|plan| {
        plan.config.billing.secret = Some(Secret::new(OPERATORS.to_owned()));
        plan.config.billing.plans = [("price_1".into(), Plan::Team), ("price_2".into(), Plan::Enterprise)].into();
    })
    .await;
    let mut client = site.client().await;
    let workspace = site.workspace();
    let began = site.now().as_seconds() - 1_000;
    for (number, (subscription, kind, price, at, becomes)) in [
        // One that begins paid, or on trial, is told of as that alone.
        ("sub_9", "created", "price_1", 2, Plan::Team),
        ("sub_9", "updated", "price_2", 3, Plan::Enterprise),
        ("sub_9", "created", "price_1", 2, Plan::Enterprise),
        ("sub_9", "deleted", "price_2", 4, Plan::Free),
        // Whatever was told of it at the second in which it was made came about after that.
        ("sub_8", "updated", "price_2", 6, Plan::Enterprise),
        ("sub_8", "created", "price_1", 6, Plan::Enterprise),
        ("sub_8", "deleted", "price_2", 7, Plan::Free),
        // By a clock that is ahead of this one.
        ("sub_0", "updated", "price_2", 1_010, Plan::Enterprise),
        ("sub_0", "updated", "price_1", 1_005, Plan::Enterprise),
        ("sub_0", "deleted", "price_1", 1_011, Plan::Free),
        ("sub_0", "updated", "price_2", 1_010, Plan::Free),
        ("sub_1", "updated", "price_2", 20, Plan::Enterprise),
        ("sub_1", "updated", "price_1", 10, Plan::Enterprise),
        ("sub_1", "deleted", "price_2", 30, Plan::Free),
        ("sub_1", "updated", "price_2", 29, Plan::Free),
        ("sub_1", "updated", "price_2", 30, Plan::Free),
        ("sub_2", "updated", "price_1", 5, Plan::Team),
        ("sub_3", "updated", "price_2", 4, Plan::Team),
        ("sub_2", "deleted", "price_1", 40, Plan::Enterprise),
        ("sub_3", "updated", "price_1", 2_000_000, Plan::Team),
        ("sub_3", "updated", "price_2", 1_500_000, Plan::Enterprise),
    ]
    .into_iter()
    .enumerate()
    {
        let items = json!({ "data": [{ "price": { "id": price } }] });
        let object = json!({ "id": subscription, "metadata": { "wid": workspace.to_string() }, "items": items, "status": "active" });
        let kind = format!("customer.subscription.{kind}");
        let event =
            json!({ "id": format!("evt_{number}"), "type": kind, "created": began + at, "data": { "object": object } });
        let event = event.to_string();
        let signed = signature(site.now(), event.as_bytes(), [OPERATORS.as_bytes()]);
        let got = client.ask("POST", "/hooks/billing", &[("stripe-signature", &signed)], event.as_bytes()).await;
        assert_eq!(got.ok(), json!({ "received": true }));
        let plan = site.gate.read(|scope| Ok(scope.get::<Workspace>(workspace)?.unwrap().plan)).unwrap();
        assert_eq!(plan, becomes, "{number}");
    }
    site.audit();
    site.stop().await;
}

/// Both secrets are good while they take turns, the one before no longer than it is told; what is off hears nothing, and an
/// integration shows when it was last heard over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_take_turns() {
    let mut from = issuer().await;
    let owner = from.site.member(Role::Owner);
    let base = format!("/api/w/{}/integrations", from.site.workspace());
    let listed = owner.ask(&mut from.client, "GET", &base, None).await.ok();
    let place = format!("{base}/{}", text(&listed["data"][0]["id"]));
    assert_eq!(listed["data"][0]["lastEventAt"], Value::Null);
    let body = json!({ "overlapHours": 2 });
    let next = owner.ask(&mut from.client, "POST", &format!("{place}/rotate"), Some(&body)).await.ok();
    let next = text(&next["secret"]).to_owned();
    let mut sent = 0;
    let mut send = async |from: &mut Sender, secret: &str| {
        sent += 1;
        let body = json!({ "type": "ping", "id": format!("evt_{sent}") }).to_string();
        let signed = signature(from.site.now(), body.as_bytes(), [secret.as_bytes()]);
        from.send(&[(HEADER, &signed)], body.as_bytes()).await.status
    };
    assert_eq!((send(&mut from, SECRET).await, send(&mut from, &next).await), (200, 200));
    let shown = owner.ask(&mut from.client, "GET", &place, None).await.ok();
    assert_eq!(text(&shown["lastEventAt"]), from.site.now().to_string());
    from.site.shift(Span::hours(2));
    assert_eq!((send(&mut from, SECRET).await, send(&mut from, &next).await), (401, 200));
    let change = |enabled: bool| json!({ "enabled": enabled });
    owner.ask(&mut from.client, "PATCH", &place, Some(&change(false))).await.ok();
    assert_eq!(send(&mut from, &next).await, 401);
    owner.ask(&mut from.client, "PATCH", &place, Some(&change(true))).await.ok();
    assert_eq!(send(&mut from, &next).await, 200);
    assert_eq!(owner.ask(&mut from.client, "DELETE", &place, None).await.status, 204);
    assert_eq!(send(&mut from, &next).await, 401);
    from.site.audit();
    from.site.stop().await;
}

/// Signatures that do not fit count against their address and stop nobody whose fit; those that fit count against the workspace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_signatures_count_against_their_address() {
    let site = Site::with(|plan| plan.config.limits.gateway_per_minute = 3).await;
    connect_kind(&site, IntegrationKind::Issuer, ConfigChange::default());
    let (mut client, path) = (site.client().await, format!("/hooks/issuer/{}", site.workspace()));
    let mut sent = 0;
    let mut send = async |secret: &str| {
        sent += 1;
        let body = json!({ "type": "ping", "id": format!("evt_{sent}") }).to_string();
        let signed = signature(site.now(), body.as_bytes(), [secret.as_bytes()]);
        let got = client.ask("POST", &path, &[(HEADER, &signed)], body.as_bytes()).await;
        (got.status, got.header("retry-after").is_some())
    };
    for _ in 0..3 {
        assert_eq!(send("whsec_wrong").await, (401, false));
    }
    assert_eq!(send("whsec_wrong").await, (429, true));
    for _ in 0..3 {
        assert_eq!(send(SECRET).await, (200, false));
    }
    assert_eq!((send(SECRET).await, send("whsec_wrong").await), ((429, true), (429, true)));
    site.audit();
    site.stop().await;
}
