//! What plans and rates allow of model traffic: requests and people of a month, requests of a minute; the same in both modes.

use serde_json::{Value, json};
use svc_core::state::people::{Plan, Role, Workspace};
use svc_core::store::{Row as _, Store as _};
use svc_core::value::period::{Period, Zone};
use svc_core::value::{Span, Timestamp};
use svc_http::config::Config;
use svc_tests::desk::{CHAT, Desk, MESSAGES, chat};

/// Puts the workspace under a plan.
fn put_under(desk: &Desk, plan: Plan) {
    let found = desk.site.memory().load(&[Workspace::key(desk.site.workspace())]).unwrap().remove(0).record;
    let row = Workspace::clone(found.as_ref().and_then(Workspace::peel).unwrap());
    desk.site.plant(Workspace { plan, ..row });
}

fn next_month(now: Timestamp) -> Timestamp {
    Period::Month.bounds(now, &Zone::utc()).1
}

/// The month's requests are used when they are: 429 until the month ends, in shadow as in enforce, for every key and in both
/// shapes, with nothing sent; a dry run and a refused call count for none; the next month begins anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_months_requests_are_counted() {
    for enforced in [false, true] {
        let mut desk = Desk::with(|plan| plan.config.plans.free.requests = 3).await;
        put_under(&desk, Plan::Free);
        if enforced {
            desk.enforce().await;
        }
        desk.chat("chat/large-1").await.ok();
        desk.messages("messages/large-1").await.ok();
        desk.chat_with(&[("x-svc-dry-run", "true")], &chat("chat/large-1")).await.ok();
        assert_eq!(desk.chat("chat/none-1").await.status, 400);
        desk.chat("chat/large-1").await.ok();
        let before = desk.mock.counts().requests;
        let other = desk.site.agent(&[]).key;
        for key in [desk.key.clone(), other] {
            desk.key = key;
            for path in [CHAT, MESSAGES] {
                let got = desk.send(path, &[], chat("chat/large-1").to_string().as_bytes()).await;
                assert_eq!((got.status, got.kind().as_str()), (429, "plan_limit_reached"), "{}", got.text());
                let left = next_month(desk.site.now()).since(desk.site.now()).as_millis().div_euclid(1_000);
                let told: i64 = got.header("retry-after").unwrap().parse().unwrap();
                assert!((left..=left + 1).contains(&told), "{told} of {left}");
            }
        }
        let dry = desk.chat_with(&[("x-svc-dry-run", "true")], &chat("chat/large-1")).await;
        assert_eq!((dry.status, dry.kind().as_str()), (429, "plan_limit_reached"));
        assert_eq!(desk.mock.counts().requests, before, "nothing was sent");
        desk.site.shift(next_month(desk.site.now()).since(desk.site.now()));
        desk.chat("chat/large-1").await.ok();
    }
}

/// People count with their first call of a month. Whoever is past the plan's has seven days, of which every answer tells, then
/// gets a 402; who came in time goes on, and the next month begins anew. The same in both modes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_past_the_plan_have_seven_days() {
    for enforced in [false, true] {
        let mut desk =
            Desk::with(|plan| (plan.config.plans.free.people, plan.config.plans.free.requests) = (1, 0)).await;
        put_under(&desk, Plan::Free);
        if enforced {
            desk.enforce().await;
        }
        let first = desk.key.clone();
        let person = desk.site.member(Role::Member).principal.to_string();
        let (second, _) = desk.key_with(json!({ "principalId": person })).await;
        let got = desk.chat("chat/large-1").await;
        got.ok();
        assert_eq!(got.header("x-svc-advisory"), None);
        desk.key.clone_from(&second);
        let ends = desk.site.now().plus(Span::hours(7 * 24)).to_string();
        for key in [&second, &first] {
            desk.key.clone_from(key);
            let got = desk.chat("chat/large-1").await;
            got.ok();
            let told = got.header("x-svc-advisory").expect("the days are told");
            assert!(told.contains(&ends), "{told}");
        }
        desk.site.shift(Span::hours(7 * 24));
        let before = desk.mock.counts().requests;
        desk.key.clone_from(&second);
        for path in [CHAT, MESSAGES] {
            let got = desk.send(path, &[], chat("chat/large-1").to_string().as_bytes()).await;
            assert_eq!((got.status, got.kind().as_str()), (402, "seat_limit_reached"), "{}", got.text());
        }
        assert_eq!(desk.mock.counts().requests, before, "nothing was sent");
        desk.key.clone_from(&first);
        desk.chat("chat/large-1").await.ok();
        desk.site.shift(next_month(desk.site.now()).since(desk.site.now()));
        desk.key.clone_from(&second);
        let got = desk.chat("chat/large-1").await;
        got.ok();
        assert_eq!(got.header("x-svc-advisory"), None, "the first of the month has the seat");
    }
}

/// A key has 1,200 requests a minute on the routes of model traffic together, and no other key's share; both envelopes tell
/// of it, in both modes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_has_its_own_rate() {
    assert_eq!(Config::default().limits.gateway_per_minute, 1_200);
    let mut desk = Desk::with(|plan| plan.config.limits.gateway_per_minute = 4).await;
    desk.chat("chat/large-1").await.ok();
    desk.messages("chat/large-1").await.ok();
    let key = desk.key.clone();
    desk.client.get("/v1/models", &key).await.ok();
    let got = desk.client.post("/v1/route/preview", &key, &json!({})).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let before = desk.mock.counts().requests;
    for (path, body) in [
        (CHAT, chat("chat/large-1")),
        (MESSAGES, chat("chat/large-1")),
        ("/v1/outcomes", json!({})),
        ("/v1/route/preview", json!({})),
    ] {
        let got = desk.send(path, &[], body.to_string().as_bytes()).await;
        assert_eq!((got.status, got.kind().as_str()), (429, "rate_limited"), "{path}");
        assert!(got.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
        assert_eq!(got.json()["type"] == "error", path == MESSAGES, "{path}");
        assert_eq!(got.json()["error"]["attemptedModels"], Value::Null);
    }
    assert_eq!(desk.mock.counts().requests, before);
    desk.key = desk.site.agent(&[]).key;
    desk.chat("chat/large-1").await.ok();
}
