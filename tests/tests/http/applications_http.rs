//! Applications over a real socket: who asks, who decides, who sees what, and what is told of a malformed one.

use serde_json::{Value, json};
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_tests::office::Office;
use svc_tests::people::Person;
use svc_tests::requests::text;

/// An admin's, with a member who has an agent: both persons and its id.
async fn open() -> (Office, Person, Person, String) {
    let mut office = Office::of(Role::Admin).await;
    let (admin, member) = (office.who.clone(), office.site.member(Role::Member));
    let made = office.agent(&json!({ "principalEmail": member.email })).await;
    (office, admin, member, text(&made["id"]).to_owned())
}

/// The member's application for another tier.
async fn tier(office: &mut Office, member: &Person, agent: &str) -> Value {
    let body = json!({ "kind": "tier", "target": agent, "change": { "tier": "trusted" }, "reason": "more" });
    office.ask_as(member, "POST", "applications", body).await.made()
}

async fn end(office: Office) {
    office.site.audit();
    office.site.stop().await;
}

fn path(application: &Value, end: &str) -> String {
    format!("applications/{}{end}", text(&application["id"]))
}

/// A member asks for more of a budget; an admin's yes raises its running period in the same commit, as the admin's own raise.
/// What is no raise is told, at first and when its time has passed; another budget is none of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_of_a_budget_can_be_asked_for() {
    let (mut office, admin, member, _) = open().await;
    let budget = json!({ "scope": { "kind": "workspace" }, "amount": 100, "period": "day" });
    let budget = office.ask("POST", "budgets", budget).await.made();
    let id = text(&budget["id"]).to_owned();
    let wish = |to: u64| json!({ "kind": "budget_raise", "target": id, "change": { "amountMicros": to, "note": "a sale" }, "reason": "busy" });
    let asked = office.ask_as(&member, "POST", "applications", wish(250)).await.made();
    assert_eq!((text(&asked["kind"]), text(&asked["target"])), ("budget_raise", id.as_str()));
    assert_eq!(asked["change"], json!({ "amountMicros": 250, "note": "a sale" }));
    let late = office.ask_as(&member, "POST", "applications", wish(200)).await.made();
    let own = format!("budgets/{id}");
    assert_eq!(office.ask("GET", &own, Value::Null).await.ok()["allocationMicros"], json!(100));
    let refused = office.ask_as(&member, "POST", &path(&asked, "/approve"), Value::Null).await;
    assert_eq!((refused.status, refused.kind().as_str()), (403, "separation_of_duties"));
    let decided = office.ask("POST", &path(&asked, "/approve"), Value::Null).await.ok();
    assert_eq!(text(&decided["state"]), "approved");
    let raised = office.ask("GET", &own, Value::Null).await.ok();
    assert_eq!((&raised["allocationMicros"], &raised["amount"]), (&json!(250), &json!(100)));
    let ledger = office.site.ledger();
    let kinds: Vec<&str> = ledger.iter().map(|it| &*it.kind).collect();
    let last = &kinds[kinds.len() - 2..];
    assert!(last.contains(&"budget.raised") && last.contains(&"application.approved"), "{kinds:?}");
    let record = ledger.iter().find(|it| &*it.kind == "budget.raised").unwrap();
    assert!(record.actor.contains(&admin.principal.to_string()) && !record.data.contains("a sale"), "{record:?}");

    let stale = office.ask("POST", &path(&late, "/approve"), Value::Null).await;
    assert_eq!((stale.status, stale.kind().as_str()), (400, "invalid_budget"), "{}", stale.text());
    let waits = office.ask_as(&member, "GET", &path(&late, ""), Value::Null).await.ok();
    assert_eq!(text(&waits["state"]), "waiting", "what is refused waits on");
    let none = format!("bdg_{}", "0".repeat(26));
    for (body, fields) in [
        (wish(250), vec!["change.amountMicros"]),
        (wish(0), vec!["change.amountMicros"]),
        (
            json!({ "kind": "budget_raise", "target": none, "change": { "amountMicros": 999 }, "reason": "x" }),
            vec!["target"],
        ),
        (
            json!({ "kind": "budget_raise", "target": "x", "change": { "amount": 9 }, "reason": "x" }),
            vec!["change.amount", "change.amountMicros", "target"],
        ),
        (json!({ "kind": "budget_raise", "change": { "amountMicros": 999 }, "reason": "x" }), vec!["target"]),
    ] {
        let got = office.ask_as(&member, "POST", "applications", body.clone()).await;
        let fields = fields.into_iter().map(str::to_owned).collect();
        assert_eq!(got.refusal(), (400, "invalid_application".to_owned(), fields), "{body}");
    }
    // How much a budget allots is told to those alone who may read it.
    let analyst = office.site.member(Role::Analyst);
    for (who, knows) in [(&member, false), (&analyst, true)] {
        let got = office.ask_as(who, "POST", "applications", wish(250)).await;
        assert_eq!(got.text().contains("allocation of 250"), knows, "{}", got.text());
    }
    end(office).await;
}

/// A member asks, an admin approves, and the agent has changed; whoever asked reads who decided and what they said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_asks_and_an_admin_decides() {
    let (mut office, admin, member, agent) = open().await;
    let asked = tier(&mut office, &member, &agent).await;
    assert_eq!((text(&asked["state"]), text(&asked["kind"])), ("waiting", "tier"));
    assert_eq!((text(&asked["target"]), text(&asked["reason"])), (agent.as_str(), "more"));
    assert_eq!(asked["change"], json!({ "tier": "trusted" }));
    assert_eq!(text(&asked["createdBy"]), member.principal.to_string());
    for end in ["/approve", "/deny"] {
        let own = office.ask_as(&member, "POST", &path(&asked, end), Value::Null).await;
        assert_eq!((own.status, own.kind().as_str()), (403, "separation_of_duties"));
    }
    let other = office.site.member(Role::Member);
    let denied = office.ask_as(&other, "POST", &path(&asked, "/approve"), Value::Null).await;
    assert_eq!((denied.status, denied.kind().as_str()), (403, "forbidden"));
    let decided = office.ask("POST", &path(&asked, "/approve"), json!({ "note": "until May" })).await.ok();
    assert_eq!((text(&decided["state"]), text(&decided["note"])), ("approved", "until May"));
    let read = office.ask_as(&member, "GET", &path(&asked, ""), Value::Null).await.ok();
    assert_eq!(read, decided);
    assert_eq!(text(&read["decidedBy"]), admin.principal.to_string());
    let agent = format!("agents/{}", agent);
    let agent = office.ask_as(&member, "GET", &agent, Value::Null).await.ok();
    assert_eq!(text(&agent["tier"]), "trusted");
    for (who, method, end) in [(&admin, "POST", "/deny"), (&admin, "POST", "/approve"), (&member, "DELETE", "")] {
        let again = office.ask_as(who, method, &path(&asked, end), Value::Null).await;
        assert_eq!((again.status, again.kind().as_str()), (409, "not_allowed"));
        assert_eq!(text(&again.json()["error"]["reason"]), "approved");
    }
    end(office).await;
}

/// An agent that was asked for is shown to the decider with its first key, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_agent_comes_with_its_key() {
    let (mut office, _, member, _) = open().await;
    let change = json!({ "name": "Second", "principalEmail": member.email, "tier": "standard",
        "mandates": [{ "template": "office-supplies" }, { "name": "CRM", "actions": ["crm.*"] }] });
    let body = json!({ "kind": "agent", "change": change, "reason": "one is not enough" });
    let asked = office.ask_as(&member, "POST", "applications", body).await.made();
    assert_eq!(text(&asked["change"]["mandates"][0]["template"]), "office-supplies");
    let done = office.ask("POST", &path(&asked, "/approve"), Value::Null).await.ok();
    let made = &done["made"];
    assert_eq!((text(&made["name"]), made["mandates"].as_array().unwrap().len()), ("Second", 2));
    let me = office.client.authorize(text(&made["key"]), &json!({ "type": "crm.read", "summary": "Read" })).await.ok();
    assert_eq!(text(&me["status"]), "allowed");
    let read = office.ask("GET", &path(&asked, ""), Value::Null).await.ok();
    assert_eq!(read.get("made"), None);
    end(office).await;
}

/// A mandate that broadens what an agent may do is meant where whoever decides says so, whatever was asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_decides_confirms_that_a_mandate_broadens() {
    let (mut office, _, member, agent) = open().await;
    let narrow = json!({ "name": "One shop", "actions": ["crm.*"], "merchants": { "allow": ["shop.example.com"] } });
    office.ask("POST", &format!("agents/{agent}/mandates"), narrow).await.made();
    let change = json!({ "name": "Anywhere", "actions": ["crm.*"] });
    let body = json!({ "kind": "mandate", "target": agent, "change": change, "reason": "we buy elsewhere" });
    let asked = office.ask_as(&member, "POST", "applications", body).await.made();
    for unsaid in [Value::Null, json!({ "confirmBroaden": false })] {
        let refused = office.ask("POST", &path(&asked, "/approve"), unsaid).await;
        assert_eq!((refused.status, refused.kind().as_str()), (409, "confirm_broaden"), "{}", refused.text());
    }
    let wrong = office.ask("POST", &path(&asked, "/approve"), json!({ "confirmBroaden": "yes" })).await;
    assert_eq!(wrong.refusal(), (400, "invalid_request".to_owned(), vec!["confirmBroaden".to_owned()]));
    let done = office.ask("POST", &path(&asked, "/approve"), json!({ "confirmBroaden": true })).await.ok();
    assert_eq!(text(&done["state"]), "approved");
    end(office).await;
}

/// Everybody sees their own applications, owners and admins all of them; nobody decides their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_sees_ones_own_and_decides_those_of_others() {
    let (mut office, _, member, agent) = open().await;
    let analyst = office.site.member(Role::Analyst);
    let of_member = tier(&mut office, &member, &agent).await;
    office.site.shift(Span::millis(1));
    let change = json!({ "name": "Third", "principalEmail": "new@example.com" });
    let body = json!({ "kind": "agent", "change": change, "reason": "reports" });
    let of_analyst = office.ask_as(&analyst, "POST", "applications", body.clone()).await.made();
    office.site.shift(Span::millis(1));
    let of_admin = office.ask("POST", "applications", body).await.made();
    for (who, own) in [(&member, vec![&of_member]), (&analyst, vec![&of_analyst])] {
        let seen = office.ask_as(who, "GET", "applications", Value::Null).await.ok();
        assert_eq!(seen["data"].as_array().unwrap().iter().collect::<Vec<_>>(), own);
    }
    let first = office.ask("GET", "applications?limit=2", Value::Null).await.ok();
    assert_eq!(first["data"], json!([of_admin, of_analyst]));
    let rest = format!("applications?limit=2&cursor={}", text(&first["nextCursor"]));
    let rest = office.ask("GET", &rest, Value::Null).await.ok();
    assert_eq!((&rest["data"], &rest["nextCursor"]), (&json!([of_member]), &Value::Null));
    let hidden = office.ask_as(&analyst, "GET", &path(&of_member, ""), Value::Null).await;
    assert_eq!((hidden.status, hidden.kind().as_str()), (404, "not_found"));
    for end in ["/approve", "/deny"] {
        let own = office.ask("POST", &path(&of_admin, end), Value::Null).await;
        assert_eq!((own.status, own.kind().as_str()), (403, "separation_of_duties"));
    }
    assert_eq!(office.ask("DELETE", &path(&of_admin, ""), Value::Null).await.status, 204);
    let gone = office.ask("GET", &path(&of_admin, ""), Value::Null).await.ok();
    assert_eq!(text(&gone["state"]), "withdrawn");
    let denied = office.ask("POST", &path(&of_analyst, "/deny"), json!({ "note": "not now" })).await.ok();
    assert_eq!((text(&denied["state"]), text(&denied["note"])), ("denied", "not now"));
    end(office).await;
}

/// A malformed application is told every fault at once, those of the change under its path, and is not kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_change_are_named_under_its_path() {
    let (mut office, _, member, agent) = open().await;
    let cases = [
        (json!({}), vec!["kind", "reason", "change"]),
        (
            json!({ "kind": "role", "target": "x", "change": { "role": "boss" }, "reason": "r" }),
            vec!["target", "change.role"],
        ),
        (json!({ "kind": "budget", "change": {}, "reason": "r" }), vec!["kind"]),
        (json!({ "kind": "budget", "change": 5, "target": 5, "reason": "r" }), vec!["kind", "target", "change"]),
        (
            json!({ "kind": "agent", "target": agent, "change": { "name": "", "more": 1 }, "reason": "r" }),
            vec!["target", "change.more", "change.name", "change.principalEmail"],
        ),
        (
            json!({ "kind": "mandate", "target": agent, "reason": "r", "change": {
                "actions": ["payment", "*"], "limits": { "currency": "EUR", "perAction": -1 } } }),
            vec!["change.name", "change.actions.1", "change.limits.perAction"],
        ),
        (
            json!({ "kind": "mandate", "target": agent, "reason": "r", "change": { "template": "no-such" } }),
            vec!["change.template"],
        ),
        (
            json!({ "kind": "tier", "change": { "tier": "best" }, "reason": "" }),
            vec!["reason", "target", "change.tier"],
        ),
        (
            json!({ "kind": "tier", "target": "agt_00000000000000000000000000", "change": { "tier": "trusted" },
                "reason": "r" }),
            vec!["target"],
        ),
    ];
    for (body, mut fields) in cases {
        let got = office.ask_as(&member, "POST", "applications", body.clone()).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_application"), "{body}");
        let mut named = got.fields();
        named.sort();
        fields.sort_unstable();
        assert_eq!(named, fields, "{body}");
    }
    let kept = office.ask_as(&member, "GET", "applications", Value::Null).await.ok();
    assert_eq!(kept["data"], json!([]));
    end(office).await;
}

/// What a malformed application names that is not there for whoever asks is told with the rest: what it is about, people, teams and
/// templates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_form_and_of_what_is_asked_for_are_told_at_once() {
    let (mut office, _, member, own) = open().await;
    let none = |prefix: &str| format!("{prefix}_{:026}", 1);
    let others = office.agent(&json!({})).await["id"].clone();
    let mandates = json!([{ "template": "no-such" }, { "name": "M" }]);
    let agent = json!({ "name": "", "principalEmail": "a@example.com", "sponsor": none("prp"), "killOwner": none("prp"), "mandates": mandates });
    let raise = json!({ "amountMicros": 0 });
    let cases = [
        (
            "agent",
            Value::Null,
            agent,
            vec![
                "change.killOwner",
                "change.mandates.0.template",
                "change.mandates.1.actions",
                "change.name",
                "change.sponsor",
                "reason",
            ],
        ),
        ("mandate", json!(none("agt")), json!({ "template": "no-such" }), vec!["change.template", "reason", "target"]),
        ("mandate", json!(none("mnd")), json!({ "state": "odd" }), vec!["change.state", "reason", "target"]),
        ("tier", json!(none("agt")), json!({ "tier": "best" }), vec!["change.tier", "reason", "target"]),
        ("tier", others, json!({ "tier": "trusted" }), vec!["reason", "target"]),
        ("tier", json!(own), json!({ "tier": "trusted" }), vec!["reason"]),
        (
            "role",
            json!(none("prp")),
            json!({ "role": "boss", "teamIds": [none("team")] }),
            vec!["change.role", "change.teamIds.0", "reason", "target"],
        ),
        ("role", Value::Null, json!({ "teamIds": [none("team")] }), vec!["change.teamIds.0", "reason"]),
        ("budget_raise", json!(none("bud")), raise, vec!["change.amountMicros", "reason", "target"]),
    ];
    for (kind, target, change, fields) in cases {
        let body = json!({ "kind": kind, "target": target, "change": change, "reason": "" });
        let got = office.ask_as(&member, "POST", "applications", body.clone()).await;
        let mut told = got.fields();
        told.sort();
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_application"), "{body}");
        assert_eq!(told, fields, "{body}");
    }
    end(office).await;
}

/// A member asks for another role; an admin gives it, and another owner has to agree where it is an owner's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_is_asked_for_and_given() {
    let (mut office, _, member, _) = open().await;
    let (owner, other) = (office.site.member(Role::Owner), office.site.member(Role::Owner));
    let body = json!({ "kind": "role", "change": { "role": "analyst" }, "reason": "I write reports now" });
    let asked = office.ask_as(&member, "POST", "applications", body).await.made();
    assert_eq!(text(&asked["target"]), member.principal.to_string());
    assert_eq!(asked["change"], json!({ "role": "analyst" }));
    let done = office.ask("POST", &path(&asked, "/approve"), Value::Null).await.ok();
    assert_eq!(text(&done["state"]), "approved");
    let theirs = format!("members/{}", member.principal);
    let theirs = office.ask("GET", &theirs, Value::Null).await.ok();
    assert_eq!(text(&theirs["role"]), "analyst");
    let body = json!({ "kind": "role", "change": { "role": "owner" }, "reason": "while you are away" });
    let asked = office.ask_as(&member, "POST", "applications", body).await.made();
    let refused = office.ask("POST", &path(&asked, "/approve"), Value::Null).await;
    assert_eq!((refused.status, refused.kind().as_str()), (403, "forbidden"));
    let second = office.ask_as(&owner, "POST", &path(&asked, "/approve"), Value::Null).await;
    assert_eq!((second.status, &second.json()["pending"]), (202, &json!(true)));
    let approval = text(&second.json()["approval"]["id"]).to_owned();
    assert!(approval.starts_with("apv_"));
    // Whoever asked reads that it waits for another owner, in the list too, and at last what that one said.
    let read = office.ask_as(&member, "GET", &path(&asked, ""), Value::Null).await.ok();
    assert_eq!(read, second.json());
    assert_eq!((text(&read["state"]), text(&read["approval"]["id"])), ("waiting", approval.as_str()));
    let listed = office.ask_as(&member, "GET", "applications", Value::Null).await.ok();
    assert!(listed["data"].as_array().unwrap().contains(&read), "{listed}");
    let denied = office.ask("POST", &path(&asked, "/deny"), Value::Null).await;
    assert_eq!((denied.status, denied.kind().as_str()), (409, "not_allowed"));
    let no = json!({ "note": "two are enough" });
    office.ask_as(&other, "POST", &format!("approvals/{approval}/deny"), no).await.ok();
    let read = office.ask_as(&member, "GET", &path(&asked, ""), Value::Null).await.ok();
    assert_eq!((text(&read["state"]), text(&read["note"])), ("denied", "two are enough"));
    assert_eq!((read["decidedBy"] == json!(other.principal), read.get("pending")), (true, None));
    end(office).await;
}

/// A member asks that a mandate change: its faults are judged by what it says now, and an approval counts what was done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mandates_change_is_asked_for_and_made() {
    let (mut office, _, member, agent) = open().await;
    let mandate = json!({ "name": "Buy", "actions": ["payment"], "limits": { "currency": "EUR", "perAction": 500 } });
    let granted = office.ask("POST", &format!("agents/{}/mandates", agent), mandate).await.made();
    let target = text(&granted["id"]).to_owned();
    let wish = |change: Value| json!({ "kind": "mandate", "target": target, "change": change, "reason": "we grew" });
    let wrong = wish(json!({ "limits": { "currency": "USD" }, "state": "gone", "more": 1 }));
    let refused = office.ask_as(&member, "POST", "applications", wrong).await;
    let mut named = refused.fields();
    named.sort();
    assert_eq!(named, ["change.limits.currency", "change.more", "change.state"]);
    let change = json!({ "name": "Buy more", "limits": { "perAction": null, "perPeriod": { "amount": 9000, "period": "month" } } });
    let asked = office.ask_as(&member, "POST", "applications", wish(change.clone())).await.made();
    assert_eq!((&asked["change"], text(&asked["target"])), (&change, target.as_str()));
    office.ask("POST", &path(&asked, "/approve"), Value::Null).await.ok();
    let now = office.ask_as(&member, "GET", &format!("mandates/{target}"), Value::Null).await.ok();
    assert_eq!((text(&now["name"]), &now["version"]), ("Buy more", &json!(2)));
    assert_eq!(now["limits"]["perPeriod"]["amount"], 9000);
    assert_eq!(now["limits"].get("perAction").filter(|it| !it.is_null()), None);
    let nowhere = json!({ "kind": "mandate", "target": "mnd_00000000000000000000000000", "change": { "name": "x" },
        "reason": "r" });
    let refused = office.ask_as(&member, "POST", "applications", nowhere).await;
    assert_eq!(refused.fields(), ["target"]);
    end(office).await;
}
