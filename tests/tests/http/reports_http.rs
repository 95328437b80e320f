//! Reports over a real socket: sums of days by every group, their range, and bills beside them.

use serde_json::{Value, json};
use svc_core::state::gate::Agent;
use svc_core::state::gateway::{
    CallFacts, CellAt, Dialect, ModelTimeouts, Payer, Routing, TaskStatus, Upstream, Usage, WasteKind,
};
use svc_core::state::people::{KeyScope, Role};
use svc_core::store::{Row as _, Store as _};
use svc_core::value::id::{CallId, KeyId, PrincipalId, TeamId, UpstreamId};
use svc_core::value::link::Index;
use svc_core::value::period::{Zone, date_of};
use svc_core::value::text::{ClassId, UpstreamName, UrlText};
use svc_core::value::{Id as _, MicroUsd};
use svc_tests::client::Got;
use svc_tests::people::Person;
use svc_tests::requests::{OFFICE, payment};
use svc_tests::site::Site;
use svc_tests::witness::Witness;

fn path(site: &Site, rest: &str) -> String {
    format!("/api/w/{}/{rest}", site.workspace())
}

/// A cell of the site's traffic, so many days before today.
fn cell(site: &Site, days_ago: i64, model: &str, key: u128, cost: u64) {
    let payer = Payer {
        key: KeyId::from_bits(key),
        agent: None,
        principal: PrincipalId::from_bits(7),
        team: Some(TeamId::from_bits(8)),
        class: ClassId::parse("support.reply").ok(),
    };
    let at = CellAt::new(site.workspace(), site.now(), &Zone::utc(), &payer, Some(model));
    let at = CellAt { day: at.day - days_ago, upstream: Some(UpstreamId::from_bits(5)), ..at };
    let mut cell = at.empty();
    cell.add_call(&CallFacts {
        call: CallId::from_bits(key),
        usage: Usage { input: 10, output: 2, estimated: key == 2, ..Usage::default() },
        cost: MicroUsd::new(cost),
        estimated: MicroUsd::new(if key == 2 { cost } else { 0 }),
        whole: MicroUsd::new(cost),
        unpriced: key == 2,
        opens_task: true,
        waste: vec![(WasteKind::Repeat, MicroUsd::new(cost))],
    });
    cell.add_outcome(if key == 2 { TaskStatus::Abandoned } else { TaskStatus::Accepted }, MicroUsd::new(cost));
    site.plant(cell);
}

async fn report(site: &Site, person: &Person, rest: &str) -> Value {
    let mut client = site.client().await;
    person.ask(&mut client, "GET", &path(site, &format!("reports/{rest}")), None).await.ok()
}

fn days(site: &Site) -> (String, String, String) {
    let today = Zone::utc().day(site.now());
    (date_of(today - 40), date_of(today), date_of(today + 1))
}

/// A report reads its cells on a thread of its own: while it does, the one thread that serves decides all the same.
#[tokio::test]
async fn no_decision_waits_behind_a_report() {
    let (witness, mut held) = Witness::holding(Index::CellsOf);
    let site = Site::with(|plan| plan.witness = witness).await;
    let (agent, analyst) = (site.agent(&[OFFICE]), site.member(Role::Analyst));
    let (from, _, to) = days(&site);
    let (mut reader, path) = (site.client().await, path(&site, &format!("reports/spend?from={from}&to={to}&by=model")));
    let reading = tokio::spawn(async move { analyst.ask(&mut reader, "GET", &path, None).await.status });
    held.begun().await;
    let mut client = site.client().await;
    assert_eq!(client.authorize(&agent.key, &payment(100)).await.ok()["decision"], json!("allow"));
    assert!(!reading.is_finished(), "the report is still read");
    held.release();
    assert_eq!(reading.await.unwrap(), 200);
}

/// Spend is added up by every group, with totals, over half-open days; what lies outside them is left out.
#[tokio::test]
async fn spend_is_added_up_by_every_group() {
    let site = Site::start().await;
    let analyst = site.member(Role::Analyst);
    cell(&site, 0, "one/large", 1, 100);
    cell(&site, 0, "one/small", 2, 30);
    cell(&site, 40, "one/large", 1, 7);
    let (from, today, to) = days(&site);
    let range = format!("from={from}&to={to}");
    let by_model = report(&site, &analyst, &format!("spend?{range}&by=model")).await;
    let rows = by_model["rows"].as_array().unwrap();
    let told: Vec<_> =
        rows.iter().map(|it| (it["key"].as_str().unwrap(), it["costMicros"].as_u64().unwrap())).collect();
    assert_eq!(told, [("one/large", 107), ("one/small", 30)], "the dearest first");
    assert_eq!((&rows[1]["estimatedMicros"], &rows[1]["unpricedCalls"]), (&json!(30), &json!(1)));
    assert_eq!(rows[0]["usage"]["input"], 20);
    let totals = &by_model["totals"];
    assert_eq!(
        (&totals["costMicros"], &totals["calls"], &totals["unpricedCalls"]),
        (&json!(137), &json!(3), &json!(1))
    );
    let by_day = report(&site, &analyst, &format!("spend?{range}")).await;
    let days: Vec<_> = by_day["rows"].as_array().unwrap().iter().map(|it| it["key"].clone()).collect();
    assert_eq!(days, [json!(from), json!(today)], "days as they follow each other");
    for by in ["team", "principal", "agent", "taskClass", "key"] {
        let rows = report(&site, &analyst, &format!("spend?{range}&by={by}")).await;
        let groups = if by == "key" { 2 } else { 1 };
        assert_eq!(rows["rows"].as_array().unwrap().len(), groups, "{by}");
    }
    let half_open = report(&site, &analyst, &format!("spend?from={from}&to={today}")).await;
    assert_eq!(half_open["totals"]["costMicros"], 7);
    site.stop().await;
}

/// A member reads what counts for them and what their agents spend, and nothing of anybody else's; no other report is theirs.
#[tokio::test]
async fn a_member_reads_their_own_spend() {
    let site = Site::start().await;
    let (own, other) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let member = site.member(Role::Member);
    let mut agent = site.gate.read(|scope| scope.get::<Agent>(own.id)).unwrap().map(|it| Agent::clone(&it)).unwrap();
    agent.sponsor = Some(member.principal);
    site.plant(agent);
    cell(&site, 0, "one/large", 1, 100);
    for (principal, agent, cost) in [(member.principal, None, 30), (PrincipalId::from_bits(7), Some(own.id), 5)] {
        let payer = Payer { key: KeyId::from_bits(cost), agent, principal, team: None, class: None };
        let at = CellAt::new(site.workspace(), site.now(), &Zone::utc(), &payer, Some("one/large"));
        let mut cell = at.empty();
        cell.sums.cost = MicroUsd::new(u64::try_from(cost).unwrap());
        site.plant(cell);
    }
    let mut client = site.client().await;
    for agent in [&own, &other] {
        assert_eq!(client.authorize(&agent.key, &payment(1_000)).await.ok()["decision"], "allow");
    }
    site.ledger();
    let mine = report(&site, &member, "spend").await;
    assert_eq!(mine["totals"]["costMicros"], 35);
    assert_eq!(mine["totals"]["payments"][0]["reserved"], 1_000);
    let all = report(&site, &site.member(Role::Analyst), "spend").await;
    assert_eq!((&all["totals"]["costMicros"], &all["totals"]["payments"][0]["reserved"]), (&json!(135), &json!(2_000)));
    for rest in ["reports/yield", "reports/waste", "calls", "tasks"] {
        assert_eq!(member.ask(&mut client, "GET", &path(&site, rest), None).await.kind(), "forbidden", "{rest}");
    }
    site.stop().await;
}

/// Payments of agents stand beside what their models cost, from the ledger's own tallies.
#[tokio::test]
async fn spend_shows_payments_of_agents() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let asked = client.authorize(&agent.key, &payment(1_000)).await.ok();
    assert_eq!(asked["decision"], "allow");
    site.ledger();
    let analyst = site.member(Role::Analyst);
    let by_agent = report(&site, &analyst, "spend?by=agent").await;
    let row = &by_agent["rows"][0];
    assert_eq!(row["payments"], json!([{ "currency": "EUR", "settled": 0, "reserved": 1_000 }]));
    assert!(row["name"].is_string() && row["key"].as_str().is_some_and(|it| it.starts_with("agt_")));
    assert_eq!(report(&site, &analyst, "spend?currency=USD").await["totals"]["payments"], json!([]));
    let failed = client.authorize(&agent.key, &payment(2_000)).await.ok();
    client.authorize(&agent.key, &payment(300)).await.ok();
    for (action, body) in
        [(&asked, json!({ "status": "completed", "amount": 900 })), (&failed, json!({ "status": "failed" }))]
    {
        client.settle(&agent.key, action["id"].as_str().unwrap(), &body).await.ok();
    }
    site.ledger();
    let left = json!([{ "currency": "EUR", "settled": 900, "reserved": 300 }]);
    for by in ["agent", "principal", "day"] {
        let told = report(&site, &analyst, &format!("spend?by={by}")).await;
        assert_eq!((&told["rows"][0]["payments"], &told["totals"]["payments"]), (&left, &left), "{by}");
    }
    // What pays has no team, model, class or key of its own: it stands in the group without one.
    cell(&site, 0, "one/large", 1, 100);
    for by in ["team", "model", "taskClass", "key"] {
        let told = report(&site, &analyst, &format!("spend?by={by}")).await;
        let rows = told["rows"].as_array().unwrap();
        let paid: Vec<_> = rows.iter().filter(|it| it["payments"] == left).map(|it| &it["key"]).collect();
        assert_eq!((paid, &told["totals"]["payments"]), (vec![&Value::Null], &left), "{by}");
    }
    site.stop().await;
}

/// A payment belongs to the day that its workspace's clocks show, as a call does.
#[tokio::test]
async fn payments_belong_to_the_days_of_the_workspace() {
    let site = Site::start().await;
    let (agent, owner) = (site.agent(&[OFFICE]), site.member(Role::Owner));
    let mut client = site.client().await;
    client.authorize(&agent.key, &payment(1_000)).await.ok();
    let paid = site.now();
    for zone in ["Etc/GMT+12", "UTC", "Pacific/Kiritimati"] {
        owner.ask(&mut client, "PUT", &path(&site, "settings"), Some(&json!({ "timezone": zone }))).await.ok();
        site.ledger();
        let today = Zone::parse(zone).unwrap().day(paid);
        let (from, to) = (date_of(today), date_of(today + 1));
        let told = report(&site, &owner, &format!("spend?from={from}&to={to}")).await;
        assert_eq!(told["rows"][0]["key"], json!(from), "{zone}: {told}");
        assert_eq!(told["rows"][0]["payments"][0]["reserved"], 1_000, "{zone}");
    }
    site.stop().await;
}

/// What came of the spend, and what of it could have been saved.
#[tokio::test]
async fn yield_and_waste_are_told() {
    let site = Site::start().await;
    let analyst = site.member(Role::Analyst);
    cell(&site, 0, "one/large", 1, 100);
    cell(&site, 0, "one/small", 2, 30);
    let (from, _, to) = days(&site);
    let told = report(&site, &analyst, &format!("yield?from={from}&to={to}&by=model")).await;
    let large = &told["rows"][0];
    assert_eq!((&large["tasks"], &large["reported"], &large["accepted"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!((&large["costMicros"], &large["costPerAcceptedMicros"]), (&json!(100), &json!(100)));
    let small = &told["rows"][1];
    assert_eq!((&small["abandoned"], &small["costPerAcceptedMicros"]), (&json!(1), &Value::Null));
    let told = report(&site, &analyst, &format!("waste?from={from}&to={to}")).await;
    let kinds: Vec<_> = told["rows"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["repeat", "abandoned", "oversized", "retry", "cache_miss"]);
    assert_eq!((&told["rows"][0]["count"], &told["rows"][0]["savableMicros"]), (&json!(2), &json!(130)));
    assert!(told["rows"][0]["example"].as_str().is_some_and(|it| it.starts_with("cal_")));
    assert_eq!((&told["rows"][1]["costMicros"], &told["rows"][3]["example"]), (&json!(30), &Value::Null));
    site.stop().await;
}

/// The running month where nothing is said, 400 days at most, and the same for an admin key.
#[tokio::test]
async fn a_report_has_a_range() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let analyst = site.member(Role::Analyst);
    let month = report(&site, &analyst, "spend").await;
    assert!(month["from"].as_str().unwrap().contains("-01T00:00:00.000Z"));
    for (query, field) in
        [("from=2026-01-01&to=2027-03-01", "from"), ("from=2026-01-02&to=2026-01-02", "to"), ("by=moon", "by")]
    {
        let got = analyst.ask(&mut client, "GET", &path(&site, &format!("reports/spend?{query}")), None).await;
        assert_eq!((got.status, got.kind(), got.fields()), (400, "invalid_request".to_owned(), vec![field.to_owned()]));
    }
    let key = site.key(KeyScope::Admin);
    for kind in ["spend", "yield", "waste"] {
        client.get(&format!("/v1/admin/reports/{kind}"), &key).await.ok();
    }
    let got = client.get("/v1/admin/reports/spend", &site.key(KeyScope::Inference)).await;
    assert_eq!((got.status, got.kind()), (403, "missing_scope".to_owned()));
    site.stop().await;
}

/// A bill in JSON or CSV is compared with what was metered of its provider, and nothing else changes.
#[tokio::test]
async fn a_bill_is_compared_and_changes_nothing() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let found = site.memory().load(&[Routing::key(site.workspace())]).unwrap().remove(0).record;
    let mut routing = Routing::clone(found.as_ref().and_then(Routing::peel).unwrap());
    let upstream = UpstreamId::from_bits(5);
    routing.upstreams.push(Upstream {
        id: upstream,
        name: UpstreamName::parse("one").unwrap(),
        dialect: Dialect::Chat,
        base_url: UrlText::parse("https://models.example.com/v1").unwrap(),
        headers: std::collections::BTreeMap::new(),
        header_hints: std::collections::BTreeMap::new(),
        jurisdiction: None,
        region: None,
        timeouts: ModelTimeouts::default(),
        enabled: true,
        key_hint: "abcd".into(),
        created_by: None,
        created_at: site.now(),
    });
    site.plant(routing);
    cell(&site, 0, "one/large", 1, 100);
    let (_, today, to) = days(&site);
    let imports = path(&site, "billing-imports");
    let bill = json!({ "upstreamId": upstream, "from": today, "to": to, "lines": [
        { "model": "large", "day": today, "micros": 130 },
    ] });
    let got = admin.ask(&mut client, "POST", &imports, Some(&bill)).await;
    assert_eq!(got.status, 201);
    let made = got.json();
    assert_eq!((&made["billedMicros"], &made["meteredMicros"]), (&json!(130), &json!(100)));
    let difference = json!({ "model": "large", "day": today, "billedMicros": 130, "meteredMicros": 100 });
    assert_eq!(made["differences"], json!([difference]));

    let csv = format!("date,model,cost_usd\n{today},large,0.0001\n");
    let place = format!("{imports}?upstreamId={upstream}&from={today}&to={to}");
    let headers = [
        ("host", "gate.example.com"),
        ("cookie", &format!("__Host-sid={}", admin.sid)),
        ("x-svc-csrf", "1"),
        ("content-type", "text/csv"),
    ];
    let got = client.ask("POST", &place, &headers, csv.as_bytes()).await;
    assert_eq!((got.status, &got.json()["differences"]), (201, &json!([])));
    let listed = admin.ask(&mut client, "GET", &imports, None).await.ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    let spend = report(&site, &admin, "spend?by=model").await;
    assert_eq!(spend["totals"]["costMicros"], 100);

    let stranger = json!({ "upstreamId": UpstreamId::from_bits(6), "from": today, "to": to, "lines": [] });
    let got = admin.ask(&mut client, "POST", &imports, Some(&stranger)).await;
    assert_eq!((got.status, got.fields()), (400, vec!["upstreamId".to_owned()]));
    // A client that waits to be asked for its body is told before it sends it.
    let waits: Vec<_> = headers.iter().copied().chain([("expect", "100-continue")]).collect();
    let head = String::from_utf8(svc_tests::client::request("POST", &imports, &waits, b"")).unwrap();
    let large = 8 * 1024 * 1024 + 1;
    client.send(head.replace("content-length: 0", &format!("content-length: {large}")).as_bytes()).await;
    let got = client.hear(false).await.unwrap();
    assert_eq!((got.status, got.kind()), (413, "body_too_large".to_owned()));
    hears_of_it_all_the_same(&site, &imports, &headers).await;
    site.stop().await;
}

/// What is wrong with a bill and whose it is are told at once, also where the days and the provider stand in the query.
#[tokio::test]
async fn every_fault_of_a_bill_is_told() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let (_, today, to) = days(&site);
    let imports = path(&site, "billing-imports");
    let none = UpstreamId::from_bits(6);
    let told = |got: &Got| {
        let mut fields = got.fields();
        fields.sort();
        (got.status, got.kind(), fields)
    };
    let wanted =
        |fields: &[&str]| (400, "invalid_request".to_owned(), fields.iter().map(|it| (*it).to_owned()).collect());
    let lines = json!([{ "model": "", "day": "x" }]);
    let bad = json!({ "upstreamId": "x", "from": to, "to": today, "lines": lines, "extra": 1 });
    let got = admin.ask(&mut client, "POST", &imports, Some(&bad)).await;
    assert_eq!(told(&got), wanted(&["lines.0.day", "lines.0.micros", "lines.0.model", "to", "upstreamId"]));
    let bad = json!({ "upstreamId": none, "from": today, "to": to, "lines": lines });
    let got = admin.ask(&mut client, "POST", &imports, Some(&bad)).await;
    assert_eq!(told(&got), wanted(&["lines.0.day", "lines.0.micros", "lines.0.model", "upstreamId"]));
    let place = format!("{imports}?upstreamId={none}&from={to}&to={today}&more=1");
    let headers = [
        ("host", "gate.example.com"),
        ("cookie", &*format!("__Host-sid={}", admin.sid)),
        ("x-svc-csrf", "1"),
        ("content-type", "text/csv"),
    ];
    let got = client.ask("POST", &place, &headers, b"date,model,cost_usd\nx,large,1\n").await;
    assert_eq!(told(&got), wanted(&["lines.0.day", "more", "to", "upstreamId"]));
    site.stop().await;
}

/// A client that sends a byte too many before it listens hears of it too, and its connection goes on.
async fn hears_of_it_all_the_same(site: &Site, imports: &str, headers: &[(&str, &str)]) {
    let mut client = site.client().await;
    let large = vec![b' '; 8 * 1024 * 1024 + 1];
    client.send(&svc_tests::client::request("POST", imports, headers, &large)).await;
    let got = client.hear(false).await.unwrap();
    assert_eq!((got.status, got.kind(), got.header("connection")), (413, "body_too_large".to_owned(), None));
}
