//! What records of people and machines hold, and what their texts may be, over a real socket.

use serde_json::{Value, json};
use svc_core::state::edge::Job;
use svc_core::state::gateway::{Call, Task};
use svc_core::state::people::{Hold, TokenScope};
use svc_core::store::Record;
use svc_core::testing::sample;
use svc_core::value::Span;
use svc_tests::client::Got;
use svc_tests::oauth::{connect, public};
use svc_tests::office::Office;
use svc_tests::requests::{payment, text, update, with};

/// Asks with the owner's session and a body just as it is.
async fn raw(office: &mut Office, method: &str, path: &str, body: &[u8]) -> Got {
    let whole = format!("/api/w/{}/{path}", office.site.workspace());
    let cookie = format!("__Host-sid={}", office.who.sid);
    let headers = [
        ("host", "gate.example.com"),
        ("cookie", cookie.as_str()),
        ("x-svc-csrf", "1"),
        ("content-type", "application/json"),
    ];
    office.client.ask(method, &whole, &headers, body).await
}

fn names(record: &Value) -> Vec<&str> {
    record.as_object().unwrap().keys().map(String::as_str).collect()
}

/// An agent's record has the contract's members, what is not set is absent, and an agent is `standard` where nobody says else.
#[tokio::test]
async fn an_agents_record_is_the_contracts() {
    let mut office = Office::open().await;
    let plain = office.agent(&json!({})).await;
    assert_eq!(plain["tier"], "standard");
    let path = format!("agents/{}", text(&plain["id"]));
    let item = office.ask("GET", &path, Value::Null).await.ok();
    let least = [
        "createdAt",
        "createdBy",
        "id",
        "lastSeenAt",
        "mandates",
        "name",
        "principalEmail",
        "principalId",
        "spend",
        "standing",
        "tier",
        "velocity",
        "waiting",
        "workspaceId",
    ];
    assert_eq!(names(&item), least);
    assert_eq!((&item["standing"], &item["principalEmail"]), (&json!("active"), &json!("ann@example.com")));
    let principal = office.who.principal;
    let trust = json!({ "tier": "trusted", "sponsor": principal, "killOwner": principal });
    let full = office.agent(&trust).await;
    assert_eq!(
        (&full["tier"], &full["sponsor"], &full["killOwner"]),
        (&json!("trusted"), &json!(principal), &json!(principal))
    );
    let made = ["binding", "key"];
    assert!(made.iter().all(|it| full.get(it).is_some()) && text(&full["key"]).starts_with("ask_"));
    let frozen = format!("agents/{}/freeze", text(&full["id"]));
    let frozen = office.ask("POST", &frozen, json!({ "reason": "odd" })).await.ok();
    assert_eq!(names(&frozen["frozen"]), ["at", "by", "reason"]);
    assert_eq!((&frozen["frozen"]["by"], &frozen["frozen"]["reason"]), (&json!(principal), &json!("odd")));
}

/// A mandate's record has the contract's members: what was sent, its defaults, and what the server adds.
#[tokio::test]
async fn a_mandates_record_is_the_contracts() {
    let mut office = Office::open().await;
    let agent = office.agent(&json!({})).await;
    let mandates = format!("agents/{}/mandates", text(&agent["id"]));
    let sent = json!({
        "name": "All of it",
        "actions": ["payment", "crm.*"],
        "limits": { "currency": "EUR", "perAction": 500, "perPeriod": { "amount": 9000, "period": "month" },
            "count": { "max": 7, "period": "day" }, "askAbove": 200, "onLimit": "ask" },
        "merchants": { "allow": ["shop.example.com"], "deny": ["*.example.org"] },
        "fields": { "allow": ["email"] },
        "tools": { "allow": ["crm/*"], "deny": ["crm/delete*"] },
        "duplicates": "record",
        "expiresAt": "2030-01-01T00:00:00.000Z",
    });
    let made = office.ask("POST", &mandates, sent.clone()).await.made();
    for (name, value) in sent.as_object().unwrap() {
        assert_eq!(&made[name], value, "{name}");
    }
    assert_eq!((&made["version"], &made["state"], &made["agentId"]), (&json!(1), &json!("active"), &agent["id"]));
    assert_eq!(text(&made["createdBy"]), office.who.principal.to_string());
    assert!(text(&made["id"]).starts_with("mnd_") && made["createdAt"].is_string() && made.get("template").is_none());
    let least = office
        .ask(
            "POST",
            &mandates,
            json!({ "name": "Read", "actions": ["crm.read"], "merchants": { "allow": ["a.example.com"] } }),
        )
        .await
        .made();
    assert_eq!((&least["duplicates"], least.get("limits"), least.get("expiresAt")), (&json!("ask"), None, None));
    let template = json!({ "template": "office-supplies", "confirmBroaden": true });
    let named = office.ask("POST", &mandates, template).await.made();
    assert_eq!((&named["template"], &named["limits"]["onLimit"]), (&json!("office-supplies"), &json!("deny")));
}

/// The ten templates are the contract's, in the workspace's currency.
#[tokio::test]
async fn the_templates_are_the_contracts() {
    let mut office = Office::open().await;
    let list = office.ask("GET", "templates", Value::Null).await.ok();
    let pays = |each: i64, amount: i64, period: &str, above: i64, on_limit: &str| {
        json!({ "currency": "EUR", "perAction": each, "perPeriod": { "amount": amount, "period": period },
            "askAbove": above, "onLimit": on_limit })
    };
    let count = json!({ "count": { "max": 500, "period": "day" }, "onLimit": "deny" });
    let table = [
        ("saas-subscriptions", json!(["payment"]), pays(50_000, 200_000, "month", 20_000, "deny")),
        ("office-supplies", json!(["payment"]), pays(25_000, 100_000, "month", 10_000, "deny")),
        ("travel-booking", json!(["payment"]), pays(150_000, 500_000, "month", 50_000, "ask")),
        ("ad-spend", json!(["payment"]), pays(100_000, 1_000_000, "month", 50_000, "deny")),
        ("marketplace-checkout", json!(["payment"]), pays(20_000, 50_000, "day", 10_000, "deny")),
        ("crm-read", json!(["crm.read"]), Value::Null),
        ("crm-update", json!(["crm.read", "crm.update"]), count),
        ("customer-support", json!(["crm.read", "message.send", "refund"]), pays(5_000, 50_000, "day", 2_500, "deny")),
        ("coding-agent", json!(["tool.call", "mcp.call", "file.write", "code.execute"]), Value::Null),
        ("data-export-none", json!(["data.share"]), Value::Null),
    ];
    let shown = list["data"].as_array().unwrap();
    assert_eq!(shown.len(), table.len());
    for (name, actions, limits) in table {
        let found = shown.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}"));
        let mandate = &found["mandate"];
        assert_eq!((&mandate["actions"], &found["builtIn"]), (&actions, &json!(true)), "{name}");
        assert_eq!(mandate.get("limits").unwrap_or(&Value::Null), &limits, "{name}");
        let fields = if name == "data-export-none" { json!({ "allow": ["none"] }) } else { Value::Null };
        assert_eq!(mandate.get("fields").unwrap_or(&Value::Null), &fields, "{name}");
    }
}

/// A template that limits no amount has no currency, and covers no payment; what it said and says is in the ledger.
#[tokio::test]
async fn a_template_without_amounts_covers_no_payment() {
    let mut office = Office::open().await;
    let counted =
        |max: u32| json!({ "actions": ["crm.update"], "limits": { "count": { "max": max, "period": "day" } } });
    let made = office.ask("POST", "templates", json!({ "name": "counted", "mandate": counted(500) })).await.made();
    assert_eq!(made["mandate"]["limits"].get("currency"), None, "{made}");
    for (name, limits) in [("empty", json!({})), ("asks", json!({ "onLimit": "ask" }))] {
        let mandate = json!({ "actions": ["crm.update"], "limits": limits });
        let made = office.ask("POST", "templates", json!({ "name": name, "mandate": mandate })).await.made();
        assert_eq!(made["mandate"]["limits"].get("currency"), None, "{made}");
    }
    let mut client = office.site.client().await;
    let token = office.site.token(&[TokenScope::AgentsWrite]);
    let bot = json!({ "name": "Bot", "principalEmail": "bot@example.com", "mandates": [{ "template": "counted" }] });
    let key = text(&client.post("/v1/admin/agents", &token, &bot).await.made()["key"]).to_owned();
    let pays = with(update(), "payment", payment(10_000_000_000)["payment"].clone());
    let refused = client.authorize(&key, &pays).await.ok();
    assert_eq!(
        (text(&refused["decision"]), text(&refused["reasons"][0]["code"])),
        ("approval_required", "currency_not_covered"),
        "{refused}"
    );
    assert_eq!(client.authorize(&key, &update()).await.ok()["decision"], "allow");

    office.ask("PATCH", "templates/counted", json!({ "mandate": counted(9) })).await.ok();
    assert_eq!(office.ask("DELETE", "templates/counted", Value::Null).await.status, 204);
    let told = office.site.ledger().into_iter().filter(|it| &*it.kind == "settings.changed");
    let told: Vec<Value> = told.map(|it| serde_json::from_str(&it.data).unwrap()).collect();
    let told: Vec<_> = told.iter().filter(|it| it["template"] == "counted").collect();
    let max = |side: &Value| side.pointer("/limits/count/max").cloned().unwrap_or_default();
    let sides: Vec<_> = told.iter().map(|it| (text(&it["what"]), max(&it["old"]), max(&it["new"]))).collect();
    let expected =
        [("created", json!(null), json!(500)), ("changed", json!(500), json!(9)), ("removed", json!(9), json!(null))];
    assert_eq!(sides, expected);
}

/// A key's binding has the contract's members, and no key in it.
#[tokio::test]
async fn a_binding_is_the_contracts() {
    let mut office = Office::open().await;
    office.ask("POST", "task-classes", json!({ "id": "support.reply" })).await.made();
    let wish = json!({ "scope": "inference", "label": "batch", "taskClassId": "support.reply", "expiresInDays": 2 });
    let made = office.ask("POST", "keys", wish).await.made();
    assert!(text(&made["key"]).starts_with("ask_"), "{made}");
    let listed = office.ask("GET", "keys", Value::Null).await.ok();
    let binding = &listed["data"][0];
    for name in ["id", "prefix", "label", "scope", "principalId", "teamId", "taskClassId", "policyProfileId"] {
        assert!(binding.get(name).is_some(), "{name}: {binding}");
    }
    for name in ["taskClassOpen", "state", "lastUsedAt", "createdBy", "createdAt"] {
        assert!(binding.get(name).is_some(), "{name}: {binding}");
    }
    assert_eq!(
        (&binding["label"], &binding["scope"], &binding["state"]),
        (&json!("batch"), &json!("inference"), &json!("active"))
    );
    assert_eq!((&binding["taskClassId"], &binding["taskClassOpen"]), (&json!("support.reply"), &json!(false)));
    assert_eq!(binding.get("agentId"), None);
    assert!(!listed.to_string().contains(text(&made["key"])), "a key is shown once");
    let agent = office.agent(&json!({})).await;
    let of_agent = format!("agents/{}/keys", text(&agent["id"]));
    let own = office.ask("POST", &of_agent, json!({ "label": "laptop" })).await.made();
    assert_eq!((&own["binding"]["agentId"], &own["binding"]["scope"]), (&agent["id"], &json!("agent")));
}

/// Reasons and notes are 1 to 500 characters and may hold tabs and newlines, and no other control character.
#[tokio::test]
async fn reasons_and_notes_are_short_texts() {
    let mut office = Office::open().await;
    let agent = office.agent(&json!({})).await;
    let freeze = format!("agents/{}/freeze", text(&agent["id"]));
    for (reason, status, kind) in [
        ("", 400, "reason_required"),
        (" \n", 400, "reason_required"),
        (&*"x".repeat(501), 400, "invalid_request"),
        ("a\u{0}b", 400, "invalid_request"),
        ("a\u{1b}[2Jb", 400, "invalid_request"),
    ] {
        let got = office.ask("POST", &freeze, json!({ "reason": reason })).await;
        assert_eq!((got.status, got.kind().as_str()), (status, kind), "{reason:?}");
    }
    let longest = format!("line one\n\t{}", "ä".repeat(490));
    let frozen = office.ask("POST", &freeze, json!({ "reason": longest })).await.ok();
    assert_eq!(text(&frozen["frozen"]["reason"]), longest);

    let asker = office.site.agent(&[]);
    for (note, status) in [("x".repeat(501), 400), ("a\u{7}b".to_owned(), 400), ("one\n\ttwo".to_owned(), 200)] {
        let asked = office.client.authorize(&asker.key, &update()).await.ok();
        let deny = format!("approvals/{}/deny", text(&asked["approval"]["id"]));
        let got = office.ask("POST", &deny, json!({ "note": note })).await;
        assert_eq!(got.status, status, "{note:?}: {}", got.text());
        if status == 200 {
            assert_eq!(text(&got.json()["note"]), note);
        }
    }
}

/// What is wrong with a body comes before whether there is what it is about, however its id is written.
#[tokio::test]
async fn a_body_is_looked_at_before_what_it_is_about() {
    let mut office = Office::open().await;
    let paths = [
        ("PATCH", "mandates/mnd_00000000000000000000000000"),
        ("PATCH", "mandates/none"),
        ("PATCH", "templates/travel-booking"),
        ("PATCH", "templates/none"),
        ("POST", "applications/none/approve"),
        ("POST", "applications/none/deny"),
        ("POST", "mcp-servers/none/accept"),
        ("PATCH", "mcp-servers/none"),
        ("POST", "agents/none/keys"),
        ("PATCH", "upstreams/none"),
        ("PATCH", "teams/none"),
        ("PATCH", "models/none/none"),
        ("PATCH", "task-classes/-"),
        ("PATCH", "policy-profiles/none"),
    ];
    for (method, path) in paths {
        let got = raw(&mut office, method, path, b"{").await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_json"), "{path}: {}", got.text());
        // No body is an empty object where every member is optional, and no JSON where one is needed.
        let got = raw(&mut office, method, path, b"").await;
        let needed = path.ends_with("accept");
        assert_eq!(got.kind() == "invalid_json", needed, "{path}: {}", got.text());
    }
    for path in [
        "agents/none/freeze",
        "agents/none/restart",
        "holds/none/lift",
        "actions/none/release",
        "deliveries/none/retry",
    ] {
        let body: &[u8] = if path.ends_with("retry") { b"{" } else { b"" };
        let got = raw(&mut office, "POST", path, body).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_json"), "{path}: {}", got.text());
    }
    let bad = json!({ "mandate": { "actions": ["crm.read"], "unknown": 1 } });
    let sound = json!({ "mandate": { "actions": ["crm.read"] } });
    for (path, body, status, kind) in [
        ("templates/travel-booking", &bad, 400, "invalid_mandate"),
        ("templates/travel-booking", &sound, 409, "not_allowed"),
        ("templates/none", &bad, 400, "invalid_mandate"),
        ("templates/none", &sound, 404, "not_found"),
        ("mandates/none", &json!({ "state": "gone" }), 400, "invalid_mandate"),
        ("mandates/none", &json!({ "state": "paused" }), 404, "not_found"),
    ] {
        let got = office.ask("PATCH", path, body.clone()).await;
        assert_eq!((got.status, got.kind().as_str()), (status, kind), "{path} {body}: {}", got.text());
    }
}

/// Every object of the console has its id, when it was made and by whom, also those that only the gateway and the outbox make.
#[tokio::test]
async fn every_object_says_when_it_was_made_and_by_whom() {
    let mut office = Office::open().await;
    let workspace = office.site.workspace();
    for record in sample::rows() {
        match record {
            Record::Call(it) => office.site.plant(Call { workspace, ..Call::clone(&it) }),
            Record::Task(it) => office.site.plant(Task { workspace, ..Task::clone(&it) }),
            Record::Job(it) => office.site.plant(Job { workspace, ..Job::clone(&it) }),
            Record::Hold(it) => office.site.plant(Hold { workspace, ..Hold::clone(&it) }),
            _ => {}
        }
    }
    let agent = office.site.agent(&[]);
    let id = public(&mut office.client).await;
    connect(&mut office.client, &office.who, &id, &agent.id.to_string()).await;
    let upstream =
        json!({ "name": "one", "kind": "chat", "baseUrl": "https://one.example.com/v1", "apiKey": "sk-planted" });
    let upstream = office.ask("POST", "upstreams", upstream).await.made();
    for (list, body) in [
        ("models", json!({ "id": "large", "upstreamId": upstream["id"] })),
        ("task-classes", json!({ "id": "support.reply" })),
        ("policy-profiles", json!({ "name": "Strict" })),
        ("budgets", json!({ "scope": { "kind": "workspace" }, "amount": 1_000_000, "period": "month" })),
    ] {
        office.ask("POST", list, body).await.made();
    }
    for list in [
        "members",
        "templates",
        "budgets",
        "upstreams",
        "models",
        "task-classes",
        "policy-profiles",
        "holds",
        "connections",
        "deliveries",
        "calls",
        "tasks",
    ] {
        let page = office.ask("GET", list, Value::Null).await.ok();
        let items = page["data"].as_array().unwrap();
        assert!(!items.is_empty(), "{list}");
        for item in items {
            assert!(item["id"].is_string() && item["createdAt"].is_string(), "{list}: {item}");
            assert!(item.get("createdBy").is_some(), "{list}: {item}");
        }
    }
    office.site.stop().await;
}

/// Lists are newest first, each of their objects has its id, when it was made and by whom, and none a secret.
#[tokio::test]
async fn lists_are_newest_first_without_secrets() {
    let mut office = Office::open().await;
    let mut secrets = Vec::new();
    let asker = office.site.agent(&[]);
    for n in 0..3 {
        let agent = office.agent(&json!({ "name": format!("Agent {n}") })).await;
        secrets.push(text(&agent["key"]).to_owned());
        let wish = json!({ "name": format!("token {n}"), "scopes": ["agents:read"] });
        let token = office.ask("POST", "service-tokens", wish).await.made();
        secrets.push(text(&token["token"]).to_owned());
        let key = office.ask("POST", "keys", json!({ "scope": "inference" })).await.made();
        secrets.push(text(&key["key"]).to_owned());
        office.ask("POST", "teams", json!({ "name": format!("Team {n}") })).await.made();
        let change = json!({ "name": "Third", "principalEmail": "new@example.com" });
        office.ask("POST", "applications", json!({ "kind": "agent", "change": change, "reason": "more" })).await.made();
        let content = json!({ "name": format!("own-{n}"), "mandate": { "actions": ["crm.read"] } });
        office.ask("POST", "templates", content).await.made();
        office.client.authorize(&asker.key, &update()).await.ok();
        office.site.shift(Span::millis(5));
    }
    for list in ["agents", "service-tokens", "keys", "teams", "applications", "approvals", "actions"] {
        let page = office.ask("GET", list, Value::Null).await.ok();
        let items = page["data"].as_array().unwrap();
        assert!(items.len() >= 3, "{list}: {page}");
        let times: Vec<&str> = items.iter().map(|it| text(&it["createdAt"])).collect();
        assert!(times.is_sorted_by(|a, b| a >= b), "{list}: {times:?}");
        // An action is made by its agent, and says so.
        let maker = if list == "actions" { "agentId" } else { "createdBy" };
        for item in items {
            assert!(item["id"].is_string() && item.get(maker).is_some(), "{list}: {item}");
        }
        let text = page.to_string();
        assert!(secrets.iter().all(|it| !text.contains(it.as_str())), "{list}");
    }
    office.site.stop().await;
}
