//! What the answer about an agent tells of its month's payments, over a real socket.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use serde_json::json;
use svc_core::state::gate::Action;
use svc_core::state::people::Role;
use svc_core::value::id::{ActionId, ulid_bits};
use svc_core::value::{Id as _, Span};
use svc_tests::requests::{WIDE, payment, text, with};
use svc_tests::site::Site;

/// `spend` tells as reserved what an ask or an allow reserves: nothing beyond a limit or outside every mandate before a person
/// lets it pass, and nothing any more once it has lapsed, with a timer or without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spend_tells_what_is_reserved() {
    let site = Site::start().await;
    let month = r#"{"name":"Month","actions":["payment"],"limits":{"currency":"EUR","askAbove":300,"onLimit":"ask",
        "perPeriod":{"amount":1000,"period":"month"}}}"#;
    let (agent, mut client) = (site.agent(&[month]), site.client().await);
    let path = format!("/api/w/{}/agents/{}", site.workspace(), agent.id);
    let mut spend =
        async |site: &Site| site.member(Role::Admin).ask(&mut client, "GET", &path, None).await.ok()["spend"].clone();
    let sums = |euros: [i64; 2], dollars: [i64; 2]| {
        let row = |code: &str, it: [i64; 2]| json!({ "currency": code, "reserved": it[0], "settled": it[1] });
        json!([row("EUR", euros), row("USD", dollars)])
    };
    let mut other = site.client().await;
    for (amount, currency) in [(5_000, "EUR"), (500, "USD"), (400, "EUR")] {
        let body = with(payment(amount), "payment.currency", json!(currency));
        let asked = other.authorize(&agent.key, &body).await.ok();
        assert_eq!(asked["decision"], "approval_required", "{asked}");
        if currency == "USD" {
            assert_eq!(spend(&site).await, sums([0, 0], [0, 0]));
            let approve = format!("/api/w/{}/approvals/{}/approve", site.workspace(), text(&asked["approval"]["id"]));
            site.member(Role::Owner).ask(&mut other, "POST", &approve, Some(&json!({}))).await.ok();
        }
    }
    assert_eq!(spend(&site).await, sums([400, 0], [500, 0]));
    site.advance(Span::hours(25));
    assert_eq!(spend(&site).await, sums([0, 0], [0, 500]));
    site.stop().await;
}

/// However much an agent did in a month, its `spend` is told, and adds up all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spend_adds_up_a_month_of_any_length() {
    let site = Site::start().await;
    let (admin, agent, mut client) = (site.member(Role::Admin), site.agent(&[WIDE]), site.client().await);
    let one = client.authorize(&agent.key, &payment(100)).await.ok();
    let id = ActionId::parse(text(&one["id"])).unwrap();
    let row = site.gate.read(|scope| scope.get::<Action>(id)).unwrap().unwrap();
    for n in 1..=50_500_u128 {
        site.plant(Action { id: ActionId::from_bits(ulid_bits(row.created_at(), n)), ..Action::clone(&row) });
    }
    let path = format!("/api/w/{}/agents/{}", site.workspace(), agent.id);
    let item = admin.ask(&mut client, "GET", &path, None).await.ok();
    assert_eq!(item["spend"], json!([{ "currency": "EUR", "reserved": 5_050_100, "settled": 0 }]));
    site.stop().await;
}
