//! Budgets over a real socket: what they take and show, who may make and raise them, and how a person answers for one.

use serde_json::{Value, json};
use svc_core::state::gate::{Approval, ApprovalState, ApprovalSubject, AskedBudget};
use svc_core::state::gateway::{Budget, BudgetUse, Mode, Routing};
use svc_core::state::people::{KeyScope, Role};
use svc_core::store::{Record, Row, Store as _};
use svc_core::value::id::{ApprovalId, BudgetId, PrincipalId};
use svc_core::value::{Id as _, MicroUsd, Span};
use svc_tests::client::Got;
use svc_tests::site::Site;

fn path(site: &Site, rest: &str) -> String {
    format!("/api/w/{}/{rest}", site.workspace())
}

fn refused(got: &Got) -> (u16, String, Vec<String>) {
    let mut fields = got.fields();
    fields.sort();
    (got.status, got.kind(), fields)
}

/// One row of the site's store.
fn row<R: Row + Clone>(site: &Site, id: R::Id) -> R {
    let found: Option<Record> = site.memory().load(&[R::key(id)]).expect("a load succeeds").remove(0).record;
    R::clone(found.as_ref().and_then(R::peel).expect("the row is there"))
}

fn of_workspace(amount: u64) -> Value {
    json!({ "scope": { "kind": "workspace" }, "amount": amount, "period": "month" })
}

/// A budget answers with everything that was sent, its defaults, and what has been used of it.
#[tokio::test]
async fn a_budget_shows_what_has_been_used_of_it() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let got = admin.ask(&mut client, "POST", &path(&site, "budgets"), Some(&of_workspace(5_000_000))).await;
    assert_eq!(got.status, 201);
    let made = got.json();
    assert!(made["id"].as_str().is_some_and(|it| it.starts_with("bdg_")));
    assert_eq!(made["scope"], json!({ "kind": "workspace" }));
    assert_eq!((&made["amount"], &made["allocationMicros"]), (&json!(5_000_000), &json!(5_000_000)));
    assert_eq!(
        (&made["spentMicros"], &made["reservedMicros"], &made["reservations"]),
        (&json!(0), &json!(0), &json!([]))
    );
    assert_eq!((&made["refuses"], &made["enforcing"]), (&json!(true), &json!(false)));
    assert_eq!(made["ladder"][4], json!({ "at": 120, "step": "stop" }));
    assert_eq!(made["createdBy"], json!(admin.principal));
    assert!(made["periodEnd"].as_str() > made["periodStart"].as_str());
    let own = path(&site, &format!("budgets/{}", made["id"].as_str().unwrap()));
    assert_eq!(admin.ask(&mut client, "GET", &own, None).await.ok(), made);

    let mut routing = row::<Routing>(&site, site.workspace());
    routing.mode = Mode::Enforce;
    site.plant(routing);
    let ladder = json!({ "amount": 7, "ladder": [{ "at": 50, "step": "nudge" }] });
    let changed = admin.ask(&mut client, "PATCH", &own, Some(&ladder)).await.ok();
    assert_eq!(
        (&changed["amount"], &changed["refuses"], &changed["enforcing"]),
        (&json!(7), &json!(false), &json!(true))
    );
    let total = json!({ "scope": { "kind": "workspace" }, "amount": 1, "period": "total" });
    let total = admin.ask(&mut client, "POST", &path(&site, "budgets"), Some(&total)).await;
    assert_eq!(total.json()["periodEnd"], Value::Null);

    let first = admin.ask(&mut client, "GET", &path(&site, "budgets?limit=1"), None).await.ok();
    assert_eq!(first["data"][0]["id"], total.json()["id"], "newest first");
    let next = path(&site, &format!("budgets?limit=1&cursor={}", first["nextCursor"].as_str().unwrap()));
    let second = admin.ask(&mut client, "GET", &next, None).await.ok();
    assert_eq!((&second["data"][0]["id"], &second["nextCursor"]), (&made["id"], &Value::Null));
    assert_eq!(admin.ask(&mut client, "DELETE", &own, None).await.status, 204);
    assert_eq!(admin.ask(&mut client, "GET", &own, None).await.status, 404);
    site.stop().await;
}

/// Every fault of a budget is named at once, as `invalid_budget`, misspelt members among them.
#[tokio::test]
async fn every_fault_of_a_budget_is_named() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let owner = site.member(Role::Owner);
    let budgets = path(&site, "budgets");
    let cases = [
        (json!({}), vec!["amount", "period", "scope"]),
        (
            json!({ "scope": { "kind": "galaxy" }, "amount": 0, "period": "year", "owner": "me", "limit": 5 }),
            vec!["amount", "limit", "owner", "period", "scope.kind"],
        ),
        (
            json!({ "scope": { "kind": "team" }, "amount": 1.5, "period": "day", "ladder": [
                { "at": 90, "step": "nudge" }, { "at": 80, "step": "observe" }, { "at": 2_000, "step": "stop", "x": 1 },
            ] }),
            vec!["amount", "ladder.1.at", "ladder.1.step", "ladder.2.at", "ladder.2.x", "scope.id"],
        ),
        (
            json!({ "scope": { "kind": "workspace", "id": "x" }, "amount": 1, "period": "day", "ladder": [
                { "at": 90, "step": "nudge" }, { "at": 80, "step": "observe" }, { "at": 1_001, "step": "stop" },
            ] }),
            vec!["ladder.1.at", "ladder.1.step", "ladder.2.at", "scope.id"],
        ),
        (
            json!({ "scope": { "kind": "agent", "id": format!("agt_{}", "0".repeat(26)) }, "amount": 1, "period": "day" }),
            vec!["scope.id"],
        ),
        (
            json!({ "scope": { "kind": "taskClass", "id": "none.such" }, "amount": 1, "period": "day" }),
            vec!["scope.id"],
        ),
    ];
    for (body, fields) in cases {
        let got = owner.ask(&mut client, "POST", &budgets, Some(&body)).await;
        let fields = fields.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(refused(&got), (400, "invalid_budget".to_owned(), fields), "{body}");
    }
    let made = owner.ask(&mut client, "POST", &budgets, Some(&of_workspace(5))).await.json();
    let own = format!("{budgets}/{}", made["id"].as_str().unwrap());
    let fixed = json!({ "scope": { "kind": "workspace" }, "period": "day", "amount": -1 });
    let got = owner.ask(&mut client, "PATCH", &own, Some(&fixed)).await;
    let fields = ["amount", "period", "scope"].map(str::to_owned).to_vec();
    assert_eq!(refused(&got), (400, "invalid_budget".to_owned(), fields));
    site.stop().await;
}

/// An admin key makes and lists budgets, also over keys; no other key does.
#[tokio::test]
async fn an_admin_key_makes_budgets() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (admin, inference) = (site.key(KeyScope::Admin), site.key(KeyScope::Inference));
    let got = client.post("/v1/admin/budgets", &admin, &of_workspace(5)).await;
    assert_eq!(got.status, 201);
    assert!(got.json()["createdBy"].as_str().is_some_and(|it| it.starts_with("key_")));
    let owner = site.member(Role::Owner);
    let keys = owner.ask(&mut client, "GET", &path(&site, "keys"), None).await.ok();
    let key = keys["data"][0]["id"].as_str().unwrap().to_owned();
    let of_key = json!({ "scope": { "kind": "key", "id": key }, "amount": 5, "period": "day" });
    assert_eq!(client.post("/v1/admin/budgets", &admin, &of_key).await.json()["scope"]["id"], json!(key));
    let unknown =
        json!({ "scope": { "kind": "key", "id": format!("key_{}", "0".repeat(26)) }, "amount": 5, "period": "day" });
    let got = client.post("/v1/admin/budgets", &admin, &unknown).await;
    assert_eq!(refused(&got), (400, "invalid_budget".to_owned(), vec!["scope.id".to_owned()]));
    assert_eq!(client.get("/v1/admin/budgets", &admin).await.ok()["data"].as_array().unwrap().len(), 2);
    let got = client.post("/v1/admin/budgets", &inference, &of_workspace(5)).await;
    assert_eq!((got.status, got.kind()), (403, "missing_scope".to_owned()));
    site.stop().await;
}

/// A budget's period is raised by its owner, an owner or an admin, above what it has.
#[tokio::test]
async fn a_budget_is_raised_by_those_who_may() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (admin, member, other) = (site.member(Role::Admin), site.member(Role::Member), site.member(Role::Member));
    let mut wish = of_workspace(100);
    wish["owner"] = json!(member.principal);
    let made = admin.ask(&mut client, "POST", &path(&site, "budgets"), Some(&wish)).await.json();
    let raise = path(&site, &format!("budgets/{}/raise", made["id"].as_str().unwrap()));
    let to = |amount: u64| json!({ "amountMicros": amount, "note": "a busy month" });
    let unknown = path(&site, &format!("budgets/bdg_{}/raise", "0".repeat(26)));
    for raise in [&raise, &unknown] {
        let got = other.ask(&mut client, "POST", raise, Some(&to(200))).await;
        assert_eq!((got.status, got.kind()), (404, "not_found".to_owned()), "who may not read it sees no budget there");
    }
    let raised = member.ask(&mut client, "POST", &raise, Some(&to(200))).await.ok();
    assert_eq!((&raised["amount"], &raised["allocationMicros"]), (&json!(100), &json!(200)));
    assert_eq!(admin.ask(&mut client, "POST", &raise, Some(&to(201))).await.ok()["allocationMicros"], 201);
    let got = admin.ask(&mut client, "POST", &raise, Some(&to(201))).await;
    assert_eq!(refused(&got), (400, "invalid_budget".to_owned(), vec!["amountMicros".to_owned()]));
    let records = site.ledger();
    let record = records.iter().find(|it| &*it.kind == "budget.raised").expect("a record");
    assert!(record.actor.contains(&member.principal.to_string()) && !record.data.contains("a busy month"));
    site.stop().await;
}

/// Whoever owns a budget reads it, whatever their role, with what it is over by name: they decide on it. To others who read none it is
/// not there.
#[tokio::test]
async fn whoever_owns_a_budget_reads_it() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let team = admin.ask(&mut client, "POST", &path(&site, "teams"), Some(&json!({ "name": "Desk" }))).await.json();
    let wish = json!({ "scope": "inference", "label": "Nightly" });
    let key = admin.ask(&mut client, "POST", &path(&site, "keys"), Some(&wish)).await.json();
    let agent = site.agent(&[]);
    let scopes = [
        (json!({ "kind": "team", "id": team["id"] }), Some("Desk")),
        (json!({ "kind": "key", "id": key["binding"]["id"] }), Some("Nightly")),
        (json!({ "kind": "agent", "id": agent.id }), Some("Agent")),
        (json!({ "kind": "principal", "id": admin.principal }), None),
        (json!({ "kind": "workspace" }), None),
    ];
    for role in [Role::Member, Role::Auditor] {
        let (owner, other) = (site.member(role), site.member(role));
        for (scope, name) in &scopes {
            let wish = json!({ "scope": scope, "amount": 100, "period": "month", "owner": owner.principal });
            let made = admin.ask(&mut client, "POST", &path(&site, "budgets"), Some(&wish)).await.json();
            let own = path(&site, &format!("budgets/{}", made["id"].as_str().unwrap()));
            let read = owner.ask(&mut client, "GET", &own, None).await.ok();
            assert_eq!((&read["amount"], &read["spentMicros"]), (&json!(100), &json!(0)));
            match name {
                Some(name) => assert_eq!(read["scopeName"], json!(name), "{scope}"),
                None => assert_eq!(read["scopeName"].is_string(), scope["kind"] == "principal", "{read}"),
            }
            let got = other.ask(&mut client, "GET", &own, None).await;
            assert_eq!((got.status, got.kind()), (404, "not_found".to_owned()));
        }
        let got = owner.ask(&mut client, "GET", &path(&site, "budgets"), None).await;
        assert_eq!(
            (got.status, got.kind()),
            (403, "forbidden".to_owned()),
            "the list stays with those who read budgets"
        );
    }
    site.audit();
    site.stop().await;
}

/// The question that a full budget asks is read and answered like any other, and a yes raises the period.
#[tokio::test]
async fn a_person_approves_more_of_a_budget() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let made = admin.ask(&mut client, "POST", &path(&site, "budgets"), Some(&of_workspace(2_500_000))).await.json();
    let budget = BudgetId::parse(made["id"].as_str().unwrap()).unwrap();
    let id = ApprovalId::from_bits(site.fresh_bits());
    let used = row::<BudgetUse>(&site, budget);
    let more = MicroUsd::new(2_500_000);
    let (period, principal) = (used.start, PrincipalId::from_bits(7));
    let subject = AskedBudget { budget, period, generation: 0, more, for_good: false, agent: None, principal };
    site.plant(Approval {
        id,
        workspace: site.workspace(),
        subject: ApprovalSubject::Budget(subject),
        created_at: site.now(),
        expires_at: site.now().plus(Span::hours(1)),
        needed: 1,
        approvals: Vec::new(),
        state: ApprovalState::Waiting,
        posted: Vec::new(),
    });
    site.plant(BudgetUse { asked: Some(id), ..used });
    let own = path(&site, &format!("approvals/{id}"));
    let seen = admin.ask(&mut client, "GET", &own, None).await.ok();
    assert_eq!(
        (&seen["kind"], &seen["state"], &seen["mayDecide"]),
        (&json!("budget"), &json!("waiting"), &json!(true))
    );
    assert_eq!(seen["subject"]["budgetId"], made["id"]);
    assert_eq!(seen["summary"], "Let a budget spend USD 2.50 more in this period");
    let listed = admin.ask(&mut client, "GET", &path(&site, "approvals?kind=budget"), None).await.ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let decided = admin.ask(&mut client, "POST", &format!("{own}/approve"), Some(&json!({}))).await.ok();
    assert_eq!(decided["state"], "approved");
    // Whoever owns it reads and decides, whatever their role; to others of that role it is as before.
    for (role, word) in [(Role::Analyst, "approve"), (Role::Auditor, "deny")] {
        let (owner, other) = (site.member(role), site.member(role));
        site.plant(Approval { state: ApprovalState::Waiting, approvals: Vec::new(), ..row::<Approval>(&site, id) });
        site.plant(Budget { owner: owner.principal, ..row::<Budget>(&site, budget) });
        site.plant(BudgetUse { raised: None, ..row::<BudgetUse>(&site, budget) });
        let got = other.ask(&mut client, "POST", &format!("{own}/{word}"), Some(&json!({}))).await;
        assert_eq!((got.status, got.kind()), (403, "forbidden".to_owned()), "{role:?}");
        assert_eq!(owner.ask(&mut client, "GET", &own, None).await.ok()["mayDecide"], true, "{role:?}");
        let decided = owner.ask(&mut client, "POST", &format!("{own}/{word}"), Some(&json!({}))).await.ok();
        assert_eq!(decided["decidedBy"], json!(owner.principal), "{role:?}");
    }
    site.plant(BudgetUse { raised: Some(MicroUsd::new(5_000_000)), ..row::<BudgetUse>(&site, budget) });
    let budget = admin.ask(&mut client, "GET", &path(&site, &format!("budgets/{budget}")), None).await.ok();
    assert_eq!(budget["allocationMicros"], 5_000_000);
    site.stop().await;
}
