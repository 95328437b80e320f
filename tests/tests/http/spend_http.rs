//! What the answer about an agent tells of its month's payments, over a real socket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use svc_core::state::gate::Action;
use svc_core::state::people::Role;
use svc_core::value::id::{ActionId, ulid_bits};
use svc_core::value::period::{Period, Zone, date_of};
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

/// What lapsed is settled alike in an agent's item, in a report and in a scorecard: also where it had reserved nothing, so that no
/// record tells of it, and where a stop had revoked it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lapsed_is_told_alike_everywhere() {
    let site = Site::start().await;
    let limited = WIDE.replacen("\"limits\":{", "\"limits\":{\"perPeriod\":{\"amount\":90000,\"period\":\"year\"},", 1);
    let owner = site.member(Role::Owner);
    let mut client = site.client().await;
    for mandate in [WIDE, &limited] {
        let agent = site.agent(&[mandate]);
        let kept = client.authorize(&agent.key, &payment(300)).await.ok();
        assert_eq!(kept["decision"], "allow");
        client.authorize(&agent.key, &payment(200)).await.ok();
        client.settle(&agent.key, text(&kept["id"]), &json!({ "status": "completed", "amount": 250 })).await.ok();
        let freeze = format!("/api/w/{}/agents/{}/freeze", site.workspace(), agent.id);
        owner.ask(&mut client, "POST", &freeze, Some(&json!({ "reason": "a test" }))).await.ok();
    }
    let (from, day) = (Zone::utc().day(site.now()), date_of(Zone::utc().day(site.now())));
    for (passed, reserved, settled) in [(0, 200, 250), (25, 0, 450), (24 * 10, 0, 450)] {
        site.advance(Span::hours(passed));
        site.ledger();
        let owner = site.member(Role::Owner);
        let to = date_of(Zone::utc().day(site.now()) + 1);
        let report = format!("/api/w/{}/reports/spend?by=agent&from={day}&to={to}", site.workspace());
        let report = owner.ask(&mut client, "GET", &report, None).await.ok();
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{report}");
        for row in rows {
            let id = text(&row["key"]);
            let sums = json!([{ "currency": "EUR", "settled": settled, "reserved": reserved }]);
            assert_eq!(row["payments"], sums, "after {passed} hours: {report}");
            let item = format!("/api/w/{}/agents/{id}", site.workspace());
            assert_eq!(owner.ask(&mut client, "GET", &item, None).await.ok()["spend"], sums);
            let card = format!("/api/w/{}/scorecard?agentId={id}&from={}", site.workspace(), Zone::utc().start(from));
            let card = owner.ask(&mut client, "GET", &card, None).await.ok();
            let claims = text(&card["scorecard"]).split('.').nth(1).unwrap().to_owned();
            let claims: serde_json::Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
            assert_eq!(claims["amounts"], json!([{ "currency": "EUR", "allowed": 500, "settled": settled }]));
            assert_eq!(claims["counts"]["lapsed"], u64::from(settled == 450), "after {passed} hours: {claims}");
        }
    }
    site.stop().await;
}

/// A payment that was asked for in one month and settled in the next is of the first, in an agent's item as in a report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_settled_later_belongs_to_the_month_it_was_asked_in() {
    let site = Site::start().await;
    let (from, until) = Period::Month.bounds(site.now(), &Zone::utc());
    site.advance(until.since(site.now().plus(Span::minutes(10))));
    let (agent, owner, mut client) = (site.agent(&[WIDE]), site.member(Role::Owner), site.client().await);
    let asked = client.authorize(&agent.key, &payment(100)).await.ok();
    site.advance(Span::minutes(15));
    client.settle(&agent.key, text(&asked["id"]), &json!({ "status": "completed", "amount": 80 })).await.ok();
    site.ledger();
    let mut told = async |path: &str| {
        owner.ask(&mut client, "GET", &format!("/api/w/{}/{path}", site.workspace()), None).await.ok()
    };
    let none = json!([]);
    assert_eq!(told(&format!("agents/{}", agent.id)).await["spend"], none, "nothing of the running month");
    assert_eq!(told("reports/spend?by=agent").await["totals"]["payments"], none);
    let [from, to] = [from, until].map(|it| date_of(Zone::utc().day(it)));
    let before = told(&format!("reports/spend?by=agent&from={from}&to={to}")).await;
    assert_eq!(before["totals"]["payments"], json!([{ "currency": "EUR", "settled": 80, "reserved": 0 }]));
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
