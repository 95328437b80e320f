//! What is used of a mandate's limits a period, where the mandate is read.

use serde_json::{Value, json};
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_tests::client::Got;
use svc_tests::office::Office;
use svc_tests::requests::{payment_to, text, update, with};

/// An agent with one mandate of these limits: its key and the mandate's path.
async fn holding(desk: &mut Office, limits: Value) -> (String, String) {
    let mandate = json!({ "name": "M", "actions": ["payment", "crm.*"], "limits": limits });
    let made = desk.agent(&json!({ "mandates": [mandate] })).await;
    (text(&made["key"]).to_owned(), format!("mandates/{}", text(&made["mandates"][0]["id"])))
}

async fn pay(desk: &mut Office, key: &str, amount: i64, currency: &str, domain: &str) -> Value {
    desk.client.authorize(key, &with(payment_to(amount, domain), "payment.currency", json!(currency))).await.ok()
}

/// What an owner decides by: the limit, what of it is reserved and settled, what is left and when it clears, of amounts and of counts;
/// what persons let pass beyond it stands beside. The item tells it and the list of the agent's mandates, and a period that has ended
/// is empty.
#[tokio::test]
async fn a_mandate_tells_what_is_used_of_it() {
    let mut desk = Office::open().await;
    let limits = json!({ "currency": "EUR", "perPeriod": { "amount": 10_000, "period": "day" }, "count": { "max": 3, "period": "hour" },
        "onLimit": "ask" });
    let (key, path) = holding(&mut desk, limits).await;
    let none = desk.read(&path).await["usage"].clone();
    assert_eq!(
        (&none["spend"]["used"], &none["count"]["used"], &none["count"]["remaining"]),
        (&json!(0), &json!(0), &json!(3))
    );
    let paid = pay(&mut desk, &key, 6_000, "EUR", "a.example").await;
    desk.client.settle(&key, text(&paid["id"]), &json!({ "status": "completed", "amount": 5_500 })).await.ok();
    pay(&mut desk, &key, 1_000, "EUR", "b.example").await;
    let beyond = pay(&mut desk, &key, 4_000, "EUR", "c.example").await;
    assert_eq!(beyond["reasons"][0]["code"], "over_period_limit", "{beyond}");
    desk.post(&format!("approvals/{}/approve", text(&beyond["approval"]["id"])), json!({})).await.ok();
    let read = desk.read(&path).await;
    let spend = &read["usage"]["spend"];
    let (from, until) = (text(&spend["periodStart"]), text(&spend["periodEnd"]));
    assert!(from <= text(&paid["createdAt"]) && text(&paid["createdAt"]) < until, "{spend}");
    assert_eq!(
        spend,
        &json!({ "period": "day", "periodStart": from, "periodEnd": until, "currency": "EUR", "limit": 10_000, "used": 6_500,
            "reserved": 1_000, "settled": 5_500, "excess": 4_000, "remaining": 3_500 })
    );
    assert_eq!(beyond["reasons"][0]["clearsAt"], spend["periodEnd"], "as the decision says it");
    let listed = desk.read(&format!("agents/{}/mandates", text(&read["agentId"]))).await;
    assert_eq!(listed["data"][0], read, "the list tells the same");
    let full = desk.client.authorize(&key, &update()).await.ok();
    assert_eq!(full["decision"], "allow", "{full}");
    let count = desk.read(&path).await["usage"]["count"].clone();
    assert_eq!((&count["used"], &count["remaining"], &count["clearsAt"]), (&json!(3), &json!(0), &count["periodEnd"]));
    desk.site.advance(Span::hours(24));
    desk.who = desk.site.member(Role::Owner);
    let next = desk.read(&path).await["usage"].clone();
    assert_eq!(
        (&next["spend"]["used"], &next["spend"]["excess"], &next["count"]["used"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!((text(&next["spend"]["periodStart"]), next["count"].get("clearsAt")), (until, None), "{next}");
}

/// Amounts are minor units of the mandate's currency, as many digits as it has, and periods are the workspace's; a limit that is not
/// there is told as nothing, and one that is raised holds what was used before.
#[tokio::test]
async fn amounts_are_of_the_mandates_currency() {
    let mut desk = Office::open().await;
    desk.ask("PUT", "settings", json!({ "timezone": "Asia/Kathmandu" })).await.ok();
    // The day that runs ends as it began.
    desk.site.advance(Span::hours(48));
    desk.who = desk.site.member(Role::Owner);
    for (currency, used) in [("JPY", 900), ("KWD", 1_234)] {
        let limits = json!({ "currency": currency, "perPeriod": { "amount": used, "period": "day" } });
        let (key, path) = holding(&mut desk, limits).await;
        pay(&mut desk, &key, used, currency, "a.example").await;
        let usage = desk.read(&path).await["usage"].clone();
        let spend = &usage["spend"];
        assert_eq!(
            (&spend["currency"], &spend["reserved"], &spend["clearsAt"]),
            (&json!(currency), &json!(used), &spend["periodEnd"])
        );
        assert!(text(&spend["periodEnd"]).ends_with("T18:15:00.000Z"), "{spend}");
        assert_eq!(usage.get("count"), None, "{usage}");
        let raised = json!({ "limits": { "perPeriod": { "amount": 2 * used, "period": "day" } } });
        desk.patch(&path, raised).await.ok();
        let spend = desk.read(&path).await["usage"]["spend"].clone();
        assert_eq!(
            (&spend["limit"], &spend["remaining"], spend.get("clearsAt")),
            (&json!(2 * used), &json!(used), None)
        );
    }
}

/// Who may read the mandate reads what is used of it: the agent's own member and an auditor. To another member there is no such
/// mandate; versions tell what was said, and of a revoked one nothing is used any more.
#[tokio::test]
async fn whoever_reads_the_mandate_reads_it() {
    let mut desk = Office::open().await;
    let (key, path) =
        holding(&mut desk, json!({ "currency": "EUR", "perAction": 100, "count": { "max": 9, "period": "month" } }))
            .await;
    desk.client.authorize(&key, &update()).await.ok();
    let used = |got: Got| got.json()["usage"]["count"]["used"].clone();
    let auditor = desk.site.member(Role::Auditor);
    assert_eq!(used(desk.ask_as(&auditor, "GET", &path, Value::Null).await), 1);
    let stranger = desk.site.member(Role::Member);
    assert_eq!(desk.ask_as(&stranger, "GET", &path, Value::Null).await.status, 404);
    let analyst = desk.site.member(Role::Analyst);
    assert_eq!(desk.ask_as(&analyst, "GET", &path, Value::Null).await.status, 403);
    assert_eq!(desk.read(&format!("{path}/versions")).await["data"][0].get("usage"), None);
    assert_eq!(desk.ask("DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(desk.read(&path).await.get("usage"), None);
}
