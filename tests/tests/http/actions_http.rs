//! A workspace's actions over a real socket: lists and their filters, who sees what of them, and the release of what a
//! receipt's use kept posted.

use serde_json::{Value, json};
use svc_core::state::gate::Agent as AgentRow;
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_tests::client::Client;
use svc_tests::people::Person;
use svc_tests::requests::{CRM, OFFICE, WIDE, charge, payment, payment_to, text, update, with};
use svc_tests::site::{Agent, Site};

fn path(site: &Site, rest: &str) -> String {
    format!("/api/w/{}/actions{rest}", site.workspace())
}

/// Every item of a list, page by page, and how many pages that took.
async fn all(site: &Site, person: &Person, query: &str) -> (Vec<Value>, usize) {
    let (mut items, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    let mut client = site.client().await;
    loop {
        let got = person.ask(&mut client, "GET", &path(site, &format!("?{query}{cursor}")), None).await.ok();
        items.extend(got["data"].as_array().unwrap().clone());
        pages += 1;
        match got["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (items, pages),
        }
    }
}

async fn ids(site: &Site, person: &Person, query: &str) -> Vec<String> {
    all(site, person, query).await.0.iter().map(|it| text(&it["id"]).to_owned()).collect()
}

fn give(site: &Site, agent: &Agent, person: &Person) {
    let row = site.gate.read(|scope| scope.get::<AgentRow>(agent.id)).unwrap().unwrap();
    site.plant(AgentRow { sponsor: Some(person.principal), ..AgentRow::clone(&row) });
}

async fn authorize(client: &mut Client, agent: &Agent, body: &Value) -> String {
    text(&client.authorize(&agent.key, body).await.ok()["id"]).to_owned()
}

/// Lists are newest first, whole whatever the size of their pages, and each filter finds what reads so now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_whole_and_filtered_by_how_an_action_reads() {
    let site = Site::start().await;
    let owner = site.member(Role::Owner);
    let (one, two) = (site.agent(&[OFFICE]), site.agent(&[CRM]));
    let mut client = site.client().await;
    let mut made = Vec::new();
    for n in 0..9 {
        site.shift(Span::seconds(1));
        made.push(match n % 3 {
            0 => authorize(&mut client, &one, &payment_to(100 + n, "a.example.com")).await,
            1 => authorize(&mut client, &two, &update()).await,
            _ => authorize(&mut client, &one, &payment_to(60_000, "a.example.com")).await,
        });
    }
    made.reverse();
    for limit in [1, 2, 4, 9, 500] {
        assert_eq!(ids(&site, &owner, &format!("limit={limit}")).await, made, "{limit}");
    }
    let items = all(&site, &owner, "").await.0;
    assert!(items.iter().all(|it| text(&it["createdBy"]).starts_with("agt_") && it["createdBy"] == it["agentId"]));
    let every = |start: usize| made.iter().skip(start).step_by(3).cloned().collect::<Vec<_>>();
    assert_eq!(ids(&site, &owner, &format!("agentId={}&limit=2", two.id)).await, every(1));
    assert_eq!(ids(&site, &owner, "type=crm.update&limit=1").await, every(1));
    assert_eq!(ids(&site, &owner, "status=denied").await, every(0));
    let second = all(&site, &owner, "status=allowed&type=payment").await.0;
    assert_eq!(second.iter().map(|it| text(&it["id"])).collect::<Vec<_>>(), every(2));
    let (from, to) = (text(&second[2]["createdAt"]), text(&second[0]["createdAt"]));
    assert_eq!(ids(&site, &owner, &format!("from={from}&to={to}")).await, made[3..9]);
    assert_eq!(ids(&site, &owner, &format!("agentId=agt_{}", "0".repeat(26))).await, Vec::<String>::new());
    // No row of an action is written by a stop, and yet they read so from its commit on.
    site.gate.execute(svc_tests::play::freeze(site.workspace(), one.caller)).unwrap();
    assert_eq!(ids(&site, &owner, "status=revoked").await, every(2));
    assert_eq!(ids(&site, &owner, "status=allowed").await, every(1));
    site.audit();
    site.stop().await;
}

/// A filter that finds little looks at a bounded number of actions and gives a cursor to go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_looks_at_a_bounded_number_of_actions() {
    let site = Site::start().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE, CRM]));
    let mut client = site.client().await;
    let denied = authorize(&mut client, &agent, &payment(60_000)).await;
    site.shift(Span::seconds(1));
    for _ in 0..2_300 {
        client.authorize(&agent.key, &update()).await.ok();
    }
    let first = owner.ask(&mut client, "GET", &path(&site, "?status=denied"), None).await.ok();
    assert_eq!(first["data"], json!([]));
    let next = format!("?status=denied&cursor={}", text(&first["nextCursor"]));
    let second = owner.ask(&mut client, "GET", &path(&site, &next), None).await.ok();
    assert_eq!((&second["data"][0]["id"], &second["nextCursor"]), (&denied.into(), &Value::Null));
    site.stop().await;
}

/// A query that is none names each fault, and a cursor is good for its own list alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_queries_name_their_faults() {
    let site = Site::start().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[CRM]));
    let mut client = site.client().await;
    for _ in 0..2 {
        client.authorize(&agent.key, &update()).await.ok();
    }
    let query = "?agentId=act_1&status=open&type=pay&from=yesterday&to=1&limit=0&cursor=x";
    let got = owner.ask(&mut client, "GET", &path(&site, query), None).await;
    let fields = ["agentId", "cursor", "from", "limit", "status", "to", "type"].map(str::to_owned).to_vec();
    assert_eq!(got.refusal(), (400, "invalid_request".into(), fields));
    let got =
        owner.ask(&mut client, "GET", &path(&site, "?from=2026-10-02T00:00:00Z&to=2026-10-01T00:00:00Z"), None).await;
    assert_eq!(got.fields(), ["to"]);
    let page = owner.ask(&mut client, "GET", &path(&site, "?limit=1"), None).await.ok();
    let other = format!("?limit=1&status=allowed&cursor={}", text(&page["nextCursor"]));
    assert_eq!(owner.ask(&mut client, "GET", &path(&site, &other), None).await.fields(), ["cursor"]);
    site.stop().await;
}

/// Members see their own agents' actions, analysts neither merchant nor summary nor what a tool is given, and nobody but the agent a
/// receipt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_sees_what_they_may() {
    let site = Site::start().await;
    let (own, other) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let member = site.member(Role::Member);
    let mut client = site.client().await;
    let theirs = authorize(&mut client, &own, &payment(100)).await;
    let denied = authorize(&mut client, &other, &payment_to(100, "bad.example.net")).await;
    for _ in 0..2 {
        authorize(&mut client, &other, &payment(100)).await;
    }
    assert!(ids(&site, &member, "").await.is_empty());
    give(&site, &own, &member);
    assert_eq!(ids(&site, &member, "").await, std::slice::from_ref(&theirs));
    assert_eq!(ids(&site, &member, &format!("agentId={}", other.id)).await, Vec::<String>::new());
    assert_eq!(member.ask(&mut client, "GET", &path(&site, &format!("/{theirs}")), None).await.status, 200);
    assert_eq!(member.ask(&mut client, "GET", &path(&site, &format!("/{denied}")), None).await.status, 404);
    for role in [Role::Owner, Role::Admin, Role::Analyst, Role::Auditor] {
        let person = site.member(role);
        let items = all(&site, &person, "limit=1").await.0;
        assert_eq!(items.len(), 4);
        assert!(items.iter().any(|it| it["signals"] == json!(["possible_duplicate"])), "{items:?}");
        for listed in &items {
            let single = format!("/{}", text(&listed["id"]));
            assert_eq!(person.ask(&mut client, "GET", &path(&site, &single), None).await.ok(), *listed);
            let outline = role == Role::Analyst;
            for hidden in ["/summary", "/payment/merchant", "/digestSalt"] {
                assert_eq!(listed.pointer(hidden).is_none(), outline, "{hidden} to {role:?}: {listed}");
            }
            assert_eq!(listed.to_string().contains("example."), !outline, "{listed}");
            assert!(listed["receipt"].is_null() && listed["receiptExpiresAt"].is_null());
        }
    }
    let given = json!({ "name": "read_file", "inputDigest": format!("sha256:{}", "0a".repeat(32)) });
    let whole = json!({ "name": "read_file", "input": { "path": "/etc/hosts" } });
    let agent = site.agent(&[CRM]);
    for (given, member) in [(&given, "inputDigest"), (&whole, "input")] {
        let called = json!({ "type": "tool.call", "summary": "Read a file", "tool": given });
        let called = authorize(&mut client, &agent, &called).await;
        for (role, shown) in [(Role::Auditor, &given[member]), (Role::Analyst, &Value::Null)] {
            let got = site.member(role).ask(&mut client, "GET", &path(&site, &format!("/{called}")), None).await.ok();
            assert_eq!((&got["tool"]["name"], &got["tool"][member]), (&given["name"], shown), "{role:?}");
        }
    }
    let asked = client.authorize(&own.key, &payment(30_000)).await.ok();
    let deny = format!("/api/w/{}/approvals/{}/deny", site.workspace(), text(&asked["approval"]["id"]));
    let note = json!({ "note": "nothing to shop.example.com" });
    site.member(Role::Owner).ask(&mut client, "POST", &deny, Some(&note)).await.ok();
    for (role, told) in [(Role::Auditor, &note["note"]), (Role::Analyst, &Value::Null)] {
        let single = format!("/{}", text(&asked["id"]));
        let got = site.member(role).ask(&mut client, "GET", &path(&site, &single), None).await.ok();
        assert_eq!((&got["status"], &got["approval"]["note"]), (&json!("denied"), told), "{role:?}");
    }
    let stranger = Site::start().await;
    let elsewhere = stranger.member(Role::Owner);
    assert_eq!(
        elsewhere.ask(&mut stranger.client().await, "GET", &path(&stranger, &format!("/{theirs}")), None).await.status,
        404
    );
    stranger.stop().await;
    site.stop().await;
}

/// A release says why, once, and gives back what the charge kept beyond the agent's word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_charge_kept_is_released() {
    let site = Site::start().await;
    let (admin, member, agent) = (site.member(Role::Admin), site.member(Role::Member), site.agent(&[WIDE]));
    give(&site, &agent, &member);
    let mut client = site.client().await;
    let allowed = client.authorize(&agent.key, &payment(900)).await.ok();
    assert_eq!(client.verify(&charge(&allowed["receipt"], 800)).await.ok()["valid"], true);
    let action = text(&allowed["id"]).to_owned();
    let release = path(&site, &format!("/{action}/release"));
    let reason = json!({ "reason": "the merchant reversed the charge" });
    let early = admin.ask(&mut client, "POST", &release, Some(&reason)).await;
    assert_eq!((early.status, early.kind().as_str()), (409, "not_allowed"));
    client.settle(&agent.key, &action, &json!({ "status": "failed" })).await.ok();
    for (body, kind) in [
        (json!({}), "reason_required"),
        (with(reason.clone(), "reason", " \t ".into()), "reason_required"),
        (with(reason.clone(), "reason", Value::Null), "reason_required"),
        (with(reason.clone(), "reason", 7.into()), "invalid_request"),
        (with(reason.clone(), "reason", "x".repeat(501).into()), "invalid_request"),
    ] {
        let got = admin.ask(&mut client, "POST", &release, Some(&body)).await;
        assert_eq!((got.status, got.kind().as_str()), (400, kind), "{body}");
    }
    assert_eq!(member.ask(&mut client, "POST", &release, Some(&reason)).await.status, 403);
    let kept = admin.ask(&mut client, "GET", &path(&site, &format!("/{action}")), None).await.ok();
    assert_eq!((&kept["keptAmount"], &kept["released"]), (&json!(800), &Value::Null));
    let none = path(&site, &format!("/act_{}/release", "0".repeat(26)));
    assert_eq!(admin.ask(&mut client, "POST", &none, Some(&reason)).await.status, 404);
    let released = admin.ask(&mut client, "POST", &release, Some(&reason)).await.ok();
    assert_eq!(released["outcome"]["released"]["amount"], 800);
    assert_eq!(released["outcome"]["released"]["by"], admin.principal.to_string().as_str());
    assert_eq!(
        (&released["status"], &released["keptAmount"]),
        (&json!("failed"), &Value::Null),
        "nothing more is offered"
    );
    assert_eq!(released["released"], released["outcome"]["released"]);
    let again = admin.ask(&mut client, "POST", &release, Some(&reason)).await;
    assert_eq!(again.json()["error"]["reason"], "what was kept is released already");
    let read = admin.ask(&mut client, "GET", &path(&site, &format!("/{action}")), None).await.ok();
    assert_eq!(read, released);

    // What lapsed has no outcome that could tell of it.
    let lapsed = client.authorize(&agent.key, &payment(700)).await.ok();
    assert_eq!(client.verify(&charge(&lapsed["receipt"], 700)).await.ok()["valid"], true);
    let one = path(&site, &format!("/{}", text(&lapsed["id"])));
    site.shift(Span::hours(26));
    let admin = site.member(Role::Admin);
    let kept = admin.ask(&mut client, "GET", &one, None).await.ok();
    assert_eq!((&kept["status"], &kept["keptAmount"]), (&json!("lapsed"), &json!(700)), "{kept}");
    admin.ask(&mut client, "POST", &format!("{one}/release"), Some(&reason)).await.ok();
    let read = admin.ask(&mut client, "GET", &one, None).await.ok();
    assert_eq!((&read["keptAmount"], &read["released"]["amount"]), (&Value::Null, &json!(700)), "{read}");
    assert!(read["released"]["at"].is_string() && read["outcome"].is_null(), "{read}");
    site.audit();
    site.stop().await;
}
