//! Agents, mandates, templates, keys, service tokens and settings over a real socket.

use serde_json::{Value, json};
use svc_core::rules::gate::drill::StartDrill;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::settings::{ChangeSettings, SettingsChange};
use svc_core::state::people::{Plan, Role, TokenScope};
use svc_core::value::Span;
use svc_tests::client::Got;
use svc_tests::office::Office;
use svc_tests::people::Person;
use svc_tests::requests::{OFFICE, text};

fn fields(got: &Got) -> Vec<String> {
    let errors = got.json()["error"]["errors"].as_array().cloned().unwrap_or_default();
    errors.iter().map(|it| it["field"].as_str().unwrap_or("-").to_owned()).collect()
}

fn kind(got: &Got) -> (u16, String) {
    (got.status, got.json()["error"]["type"].as_str().unwrap_or_default().to_owned())
}

/// An agent is made whole, renamed, shown with what it did lately, and removed; another role reads it or does not.
#[tokio::test]
async fn an_agent_is_made_changed_and_removed() {
    let mut desk = Office::of(Role::Admin).await;
    let blueprint = json!({ "name": "Buyer", "principalEmail": "Ann@example.com", "tier": "trusted",
        "mandates": [{ "template": "office-supplies" }, { "name": "CRM", "actions": ["crm.*"] }] });
    let made = desk.ask("POST", "agents", blueprint).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    assert!(made["key"].as_str().unwrap().starts_with("ask_"));
    assert_eq!(made["binding"]["agentId"], made["id"]);
    assert_eq!((&made["tier"], &made["standing"]), (&json!("trusted"), &json!("active")));
    let id = made["id"].as_str().unwrap();
    let renamed = desk.ask("PATCH", &format!("agents/{id}"), json!({ "name": "Shopper" })).await.json();
    assert_eq!((&renamed["name"], &renamed["id"]), (&json!("Shopper"), &made["id"]));
    assert_eq!(renamed["velocity"]["other"]["used"], 0);
    assert_eq!((&renamed["waiting"], &renamed["lastSeenAt"]), (&json!(0), &Value::Null));
    let item = desk.ask("GET", &format!("agents/{id}"), Value::Null).await.json();
    assert_eq!((&renamed["spend"], &item["spend"]), (&Value::Null, &json!([])), "the item alone has it");
    let bad = desk.ask("PATCH", &format!("agents/{id}"), json!({ "name": "a\u{7}b", "id": "x", "tier": "high" })).await;
    assert_eq!(
        (kind(&bad).1.as_str(), fields(&bad)),
        ("invalid_request", vec!["id".into(), "name".into(), "tier".into()])
    );
    let gone = desk.ask("DELETE", &format!("agents/{id}"), Value::Null).await;
    assert_eq!(gone.status, 204);
    let removed = desk.ask("GET", &format!("agents/{id}"), Value::Null).await.json();
    let mandates = desk.ask("GET", &format!("agents/{id}/mandates"), Value::Null).await.json();
    let keys = desk.ask("GET", &format!("agents/{id}/keys"), Value::Null).await.json();
    assert_eq!(removed["standing"], "removed");
    for ended in [&removed["mandates"], &mandates["data"], &keys["data"]] {
        let ended = ended.as_array().unwrap();
        assert!(!ended.is_empty() && ended.iter().all(|it| it["state"] == "revoked"), "{ended:?}");
    }
    assert_eq!(desk.ask("PATCH", &format!("agents/{id}"), json!({ "name": "x" })).await.status, 404);
}

/// An agent was last seen when it last showed a key, whatever for: to ask, to follow an answer, to list models, or while it is stopped.
#[tokio::test]
async fn an_agent_is_seen_whatever_it_does() {
    let mut desk = Office::of(Role::Admin).await;
    let made = desk.agent(&json!({ "mandates": [{ "name": "CRM", "actions": ["crm.*"] }] })).await;
    let (path, key) = (format!("agents/{}", text(&made["id"])), text(&made["key"]).to_owned());
    let mut client = desk.site.client().await;
    assert_eq!(desk.read(&path).await["lastSeenAt"], Value::Null);
    let freeze = format!("{path}/freeze");
    for act in ["list", "ask", "follow", "stopped"] {
        desk.site.shift(Span::seconds(90));
        match act {
            "list" => assert_eq!(client.get("/v1/models", &key).await.status, 200),
            "ask" => {
                drop(client.authorize(&key, &json!({ "type": "crm.read", "summary": "Read", "provenance": [] })).await)
            }
            "follow" => drop(client.get("/v1/actions/act_00000000000000000000000000", &key).await),
            _ => {
                desk.ask("POST", &freeze, json!({ "reason": "odd" })).await.ok();
                desk.site.shift(Span::seconds(90));
                drop(client.get("/v1/models", &key).await);
            }
        }
        assert_eq!(desk.read(&path).await["lastSeenAt"], json!(desk.site.now().to_string()), "{act}");
    }
}

/// Blueprints of persons name every fault, and one bad mandate leaves nothing behind.
#[tokio::test]
async fn one_bad_mandate_leaves_no_agent() {
    let mut desk = Office::open().await;
    let blueprint = json!({ "name": "Buyer", "principalEmail": "new@example.com", "mandates": [{ "template": "crm-read" },
        { "name": "x", "actions": ["payment"], "limits": { "perAction": 0, "perMonth": 5 } }] });
    let refused = desk.ask("POST", "agents", blueprint).await;
    assert_eq!(kind(&refused), (400, "invalid_mandate".to_owned()));
    for field in ["mandates.1.limits.perMonth", "mandates.1.limits.perAction", "mandates.1.limits.currency"] {
        assert!(fields(&refused).contains(&field.to_owned()), "{field}: {:?}", fields(&refused));
    }
    let unknown = json!({ "name": "Buyer", "principalEmail": "new@example.com", "mandates": [{ "template": "none" }] });
    assert_eq!(kind(&desk.ask("POST", "agents", unknown).await), (400, "unknown_template".to_owned()));
    let listed = desk.ask("GET", "agents", Value::Null).await.json();
    assert_eq!(listed, json!({ "data": [], "nextCursor": null }));
}

/// A token registers from templates alone; its faults come in their order, and it sets no tier, sponsor or kill owner.
#[tokio::test]
async fn a_token_registers_from_templates_alone() {
    let mut desk = Office::open().await;
    let token = desk.site.token(&[TokenScope::AgentsRead, TokenScope::AgentsWrite]);
    let base = json!({ "name": "Bot", "principalEmail": "bot@example.com" });
    let with = |more: Value| {
        let mut body = base.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (more, expected, at) in [
        (
            json!({ "tier": "trusted", "mandates": ["x", { "actions": ["payment"] }] }),
            "invalid_request",
            vec!["tier", "mandates.0"],
        ),
        (json!({ "sponsor": "prp_1", "killOwner": "prp_1" }), "invalid_request", vec!["killOwner", "sponsor"]),
        (
            json!({ "mandates": [{ "template": "none" }, { "template": "crm-read", "limits": {} }] }),
            "template_only",
            vec![],
        ),
        (json!({ "mandates": [{}] }), "template_only", vec![]),
        (json!({ "mandates": [{ "template": "none" }] }), "unknown_template", vec![]),
    ] {
        let refused = desk.machine(&token, "POST", "/v1/admin/agents", &with(more)).await;
        assert_eq!(
            (kind(&refused), fields(&refused)),
            ((400, expected.to_owned()), at.iter().map(|it| (*it).to_owned()).collect())
        );
    }
    let made = desk
        .machine(&token, "POST", "/v1/admin/agents", &with(json!({ "mandates": [{ "template": "crm-read" }] })))
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert!(made.json()["createdBy"].as_str().unwrap().starts_with("token:"));
    // Ids of one instant are in no order.
    desk.site.advance(Span::hours(1));
    let second = desk.machine(&token, "POST", "/v1/admin/agents", &base).await.json();
    assert_eq!(second["principalId"], made.json()["principalId"], "a known address is a known principal");
    let page = desk.machine(&token, "GET", "/v1/admin/agents?limit=1", &json!({})).await.json();
    assert_eq!(page["data"][0]["id"], made.json()["id"], "oldest first");
    let cursor = page["nextCursor"].as_str().unwrap().to_owned();
    let next =
        desk.machine(&token, "GET", &format!("/v1/admin/agents?limit=1&cursor={cursor}"), &json!({})).await.json();
    assert_eq!((&next["data"][0]["id"], &next["nextCursor"]), (&second["id"], &Value::Null));
    for bad in ["limit=0", "limit=501", "cursor=invented", &format!("cursor={cursor}x")] {
        let refused = desk.machine(&token, "GET", &format!("/v1/admin/agents?{bad}"), &json!({})).await;
        assert_eq!(kind(&refused), (400, "invalid_request".to_owned()), "{bad}");
    }
    let other = desk.ask("GET", &format!("agents?cursor={cursor}"), Value::Null).await;
    assert_eq!(fields(&other), ["cursor"], "a cursor of another list");
    // What is wrong with the request is told before what it names is looked for.
    for path in ["agents/nope/keys?limit=0", "agents/nope/mandates?limit=0", "mandates/nope/versions?limit=0"] {
        assert_eq!(fields(&desk.ask("GET", path, Value::Null).await), ["limit"], "{path}");
        let named = path.trim_end_matches("?limit=0");
        assert_eq!(kind(&desk.ask("GET", named, Value::Null).await), (404, "not_found".to_owned()), "{named}");
    }
}

/// A mandate's versions are immutable; what broadens asks for confirmation; a revoked one stays readable.
#[tokio::test]
async fn a_mandate_changes_by_versions() {
    let mut desk = Office::open().await;
    let agent = text(&desk.agent(&json!({})).await["id"]).to_owned();
    let mandates = format!("agents/{agent}/mandates");
    let narrow = json!({ "name": "One shop", "actions": ["payment"], "limits": { "currency": "eur", "perAction": 5000 },
        "merchants": { "allow": ["shop.example.com"] } });
    let made = desk.ask("POST", &mandates, narrow).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    assert_eq!(
        (&made["version"], &made["state"], &made["limits"]["currency"]),
        (&json!(1), &json!("active"), &json!("EUR"))
    );
    let id = made["id"].as_str().unwrap().to_owned();
    let refused = desk.ask("POST", &mandates, json!({ "template": "saas-subscriptions" })).await;
    assert_eq!(kind(&refused), (409, "confirm_broaden".to_owned()));
    assert_eq!(refused.json()["error"]["reason"], json!(id));
    let meant = json!({ "template": "saas-subscriptions", "confirmBroaden": true });
    assert_eq!(desk.ask("POST", &mandates, meant).await.status, 201);
    let path = format!("mandates/{id}");
    assert_eq!(
        kind(&desk.ask("PATCH", &path, json!({ "merchants": null })).await),
        (409, "confirm_broaden".to_owned())
    );
    let refused = desk.ask("PATCH", &path, json!({ "limits": { "currency": "USD" } })).await;
    assert_eq!((kind(&refused).1.as_str(), fields(&refused)), ("invalid_mandate", vec!["limits.currency".to_owned()]));
    let changed = desk
        .ask(
            "PATCH",
            &path,
            json!({ "limits": { "perAction": 6000, "perPeriod": { "amount": 9000, "period": "day" } } }),
        )
        .await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let changed = changed.json();
    assert_eq!(
        (&changed["version"], &changed["limits"]["perAction"], &changed["merchants"]),
        (&json!(2), &json!(6000), &made["merchants"])
    );
    assert_eq!(desk.ask("PATCH", &path, json!({ "state": "paused" })).await.json()["state"], "paused");
    assert_eq!(desk.ask("PATCH", &path, json!({ "state": "active" })).await.json()["version"], 2);
    assert_eq!(desk.ask("PATCH", &path, json!({ "state": "paused" })).await.json()["version"], 2);
    assert_eq!(desk.ask("DELETE", &path, Value::Null).await.status, 204);
    let last = desk.ask("GET", &path, Value::Null).await.json();
    assert_eq!((&last["state"], &last["version"]), (&json!("revoked"), &json!(2)));
    let versions = desk.ask("GET", &format!("{path}/versions"), Value::Null).await.json();
    let numbers: Vec<_> = versions["data"].as_array().unwrap().iter().map(|it| it["version"].clone()).collect();
    assert_eq!(numbers, [json!(2), json!(1)]);
    let no = (409, "not_allowed".to_owned());
    assert_eq!(
        kind(&desk.ask("PATCH", &path, json!({ "name": "x" })).await),
        no,
        "it can be read, and changes no more"
    );
    assert_eq!(desk.ask("DELETE", &path, Value::Null).await.status, 204, "it stays revoked");
    let none = format!("mandates/mnd_{}1", "0".repeat(25));
    assert_eq!(desk.ask("DELETE", &none, Value::Null).await.status, 404);
}

/// A pause and an expiry show in the mandate's state, and the gate heeds them at once; a pause changes no version.
#[tokio::test]
async fn a_paused_and_an_expired_mandate_permit_nothing() {
    let mut desk = Office::of(Role::Admin).await;
    let agent = text(&desk.agent(&json!({})).await["id"]).to_owned();
    let ends = desk.site.now().plus(Span::hours(1)).to_string();
    let body = json!({ "name": "CRM", "actions": ["crm.*"], "expiresAt": ends });
    let made = desk.ask("POST", &format!("agents/{agent}/mandates"), body).await.json();
    let (path, key) = (format!("mandates/{}", made["id"].as_str().unwrap()), format!("agents/{agent}/keys"));
    let key = desk.ask("POST", &key, json!({})).await.json()["key"].as_str().unwrap().to_owned();
    let action = json!({ "type": "crm.update", "summary": "Change a contact" });
    for (state, answer) in [("paused", "approval_required"), ("active", "allow")] {
        let shown = desk.ask("PATCH", &path, json!({ "state": state })).await.json();
        assert_eq!((&shown["state"], &shown["version"], &shown["expiresAt"]), (&json!(state), &json!(1), &json!(ends)));
        let got = desk.machine(&key, "POST", "/v1/actions/authorize", &action).await;
        assert_eq!(got.json()["decision"], answer, "{state}: {}", got.text());
    }
    desk.site.advance(Span::hours(1));
    assert_eq!(desk.ask("GET", &path, Value::Null).await.json()["state"], "expired");
    let got = desk.machine(&key, "POST", "/v1/actions/authorize", &action).await;
    assert_eq!(got.json()["decision"], "approval_required", "{}", got.text());
    let bad = desk.ask("PATCH", &path, json!({ "state": "revoked" })).await;
    assert_eq!((kind(&bad).0, fields(&bad)), (400, vec!["state".to_owned()]));
    let later = desk.site.now().plus(Span::hours(1)).to_string();
    let back = desk.ask("PATCH", &path, json!({ "expiresAt": later })).await;
    assert_eq!(kind(&back), (409, "not_allowed".to_owned()), "there is no way back");
}

/// The settings say what a plan allows: past it a person and a token get 402 for agents and for mandates alike. Which plan a
/// workspace is on is the operator's to say, and everybody in it reads it.
#[tokio::test]
async fn a_plan_bounds_agents_and_mandates() {
    let few = Office::with(|plan| (plan.config.plans.team.agents, plan.config.plans.team.mandates) = (2, 3));
    let mut desk = few.await;
    let me = |got: Got| got.json()["workspaces"][0]["plan"].clone();
    assert_eq!(me(desk.who.ask(&mut desk.client, "GET", "/api/me", None).await), "self-hosted");
    let refused = desk.ask("PUT", "settings", json!({ "plan": "enterprise" })).await;
    assert_eq!((kind(&refused).0, fields(&refused)), (400, vec!["plan".to_owned()]));
    let change = SettingsChange { plan: Some(Plan::Team), ..SettingsChange::default() };
    let operator = ChangeSettings { workspace: desk.site.workspace(), by: By::Program, change };
    desk.site.gate.execute(operator).unwrap();
    assert_eq!(me(desk.who.ask(&mut desk.client, "GET", "/api/me", None).await), "team");

    let token = desk.site.token(&[TokenScope::AgentsWrite]);
    let blueprint = |mandates: usize| {
        let mandates = vec![json!({ "template": "crm-read" }); mandates];
        json!({ "name": "Bot", "principalEmail": "bot@example.com", "mandates": mandates })
    };
    let limit = (402, "plan_limit_reached".to_owned());
    assert_eq!(kind(&desk.machine(&token, "POST", "/v1/admin/agents", &blueprint(4)).await), limit);
    assert_eq!(kind(&desk.ask("POST", "agents", blueprint(4)).await), limit);
    assert_eq!(desk.machine(&token, "POST", "/v1/admin/agents", &blueprint(2)).await.status, 201);
    let own = text(&desk.agent(&json!({})).await["id"]).to_owned();
    assert_eq!(kind(&desk.machine(&token, "POST", "/v1/admin/agents", &blueprint(0)).await), limit);
    assert_eq!(kind(&desk.ask("POST", "agents", blueprint(0)).await), limit);
    let mandates = format!("agents/{own}/mandates");
    let made = desk.ask("POST", &mandates, json!({ "template": "crm-read" })).await.json();
    assert_eq!(kind(&desk.ask("POST", &mandates, json!({ "template": "crm-read" })).await), limit);
    let made = made["id"].as_str().unwrap();
    assert_eq!(desk.ask("DELETE", &format!("mandates/{made}"), Value::Null).await.status, 204);
    assert_eq!(desk.ask("POST", &mandates, json!({ "template": "crm-read" })).await.status, 201);
}

/// Every way in which a mandate is none is named by its path, all at once.
#[tokio::test]
async fn a_mandate_names_every_fault() {
    let mut desk = Office::open().await;
    let agent = text(&desk.agent(&json!({})).await["id"]).to_owned();
    let past = desk.site.now().minus(Span::hours(1)).to_string();
    let body = json!({ "name": "\u{1}", "actions": ["payment", "*"], "limits": { "currency": "XXX", "perAction": 10, "askAbove": 20,
        "perPeriod": { "amount": -1, "period": "fortnight" }, "count": { "max": 0, "period": "decade" }, "onLimit": "maybe", "daily": 1 },
        "merchants": { "allow": ["*.com"], "deny": [] }, "fields": { "allow": [] }, "tools": { "allow": [""], "only": [] },
        "duplicates": "never", "expiresAt": past, "state": "active", "id": "mnd_1" });
    let refused = desk.ask("POST", &format!("agents/{agent}/mandates"), body).await;
    assert_eq!(kind(&refused), (400, "invalid_mandate".to_owned()));
    let named = fields(&refused);
    for field in [
        "name",
        "actions.1",
        "limits.currency",
        "limits.askAbove",
        "limits.perPeriod.amount",
        "limits.perPeriod.period",
        "limits.count.max",
        "limits.count.period",
        "limits.onLimit",
        "limits.daily",
        "merchants.allow.0",
        "merchants.deny",
        "fields.allow",
        "tools.allow.0",
        "tools.only",
        "duplicates",
        "expiresAt",
        "state",
        "id",
    ] {
        assert!(named.contains(&field.to_owned()), "{field} is not in {named:?}");
    }
}

/// A workspace's own templates stand beside the catalogue, in pages of any size.
#[tokio::test]
async fn templates_of_a_workspace_stand_beside_the_catalogue() {
    let mut desk = Office::of(Role::Admin).await;
    let own = json!({ "name": "Büro & mehr", "mandate": { "actions": ["payment"], "limits": { "perAction": 700 } } });
    let made = desk.ask("POST", "templates", own.clone()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json()["mandate"]["limits"]["currency"], "EUR");
    let none = desk.ask("POST", "templates", json!({})).await;
    assert_eq!((kind(&none), fields(&none).len()), ((400, "invalid_mandate".to_owned()), 2), "{}", none.text());
    for taken in ["Büro & mehr", "ad-spend", ".", " .. "] {
        let refused =
            desk.ask("POST", "templates", json!({ "name": taken, "mandate": { "actions": ["crm.read"] } })).await;
        assert_eq!(
            (kind(&refused), fields(&refused)),
            ((400, "invalid_request".to_owned()), vec!["name".to_owned()]),
            "{taken}"
        );
    }
    let bad =
        desk.ask("POST", "templates", json!({ "name": "x", "mandate": { "actions": ["payment"], "limit": {} } })).await;
    assert_eq!(kind(&bad), (400, "invalid_mandate".to_owned()));
    assert!(fields(&bad).contains(&"mandate.limit".to_owned()));
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = desk.ask("GET", &format!("templates?limit=3{cursor}"), Value::Null).await.json();
        names.extend(page["data"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!((names.len(), names[0].as_str(), names[10].as_str()), (11, "Büro & mehr", "data-export-none"));
    let second = json!({ "name": "second", "mandate": { "actions": ["crm.read"] } });
    assert_eq!(desk.ask("POST", "templates", second).await.status, 201);
    let list = desk.ask("GET", "templates?limit=2", Value::Null).await.json();
    assert_eq!((text(&list["data"][0]["name"]), text(&list["data"][1]["name"])), ("second", "Büro & mehr"));
    let path = "templates/B%C3%BCro%20%26%20mehr";
    let changed = desk.ask("PATCH", path, json!({ "mandate": { "actions": ["crm.read"] } })).await.json();
    assert_eq!(changed["mandate"]["actions"], json!(["crm.read"]));
    assert_eq!(desk.patch(path, json!({})).await.ok(), changed, "nothing is to change");
    assert_eq!(desk.ask("DELETE", path, Value::Null).await.status, 204);
    assert_eq!(desk.ask("GET", path, Value::Null).await.status, 404);
    assert_eq!(desk.ask("DELETE", "templates/ad-spend", Value::Null).await.status, 409);
}

/// A template whose time is up stands for nothing: who names it, a person or a machine, is told that there is none.
#[tokio::test]
async fn a_template_whose_time_is_up_is_none() {
    let mut desk = Office::open().await;
    let ends = desk.site.now().plus(Span::hours(1)).to_string();
    let brief = json!({ "name": "brief", "mandate": { "actions": ["crm.read"], "expiresAt": ends } });
    assert_eq!(desk.ask("POST", "templates", brief).await.status, 201);
    let agent = text(&desk.agent(&json!({})).await["id"]).to_owned();
    let token = desk.site.token(&[TokenScope::AgentsWrite]);
    let bot = json!({ "name": "Bot", "principalEmail": "bot@example.com", "mandates": [{ "template": "brief" }] });
    assert_eq!(desk.machine(&token, "POST", "/v1/admin/agents", &bot).await.status, 201);
    desk.site.advance(Span::hours(1));
    // What changes nothing is no fault, though it could not be made any more.
    let read = desk.read("templates").await;
    let same = read["data"].as_array().unwrap().iter().find(|it| it["name"] == "brief").unwrap()["mandate"].clone();
    desk.patch("templates/brief", json!({ "mandate": same })).await.ok();
    let other = json!({ "mandate": { "actions": ["crm.write"], "expiresAt": ends } });
    assert_eq!(kind(&desk.patch("templates/brief", other).await), (400, "invalid_mandate".to_owned()));
    let unknown = (400, "unknown_template".to_owned());
    assert_eq!(kind(&desk.machine(&token, "POST", "/v1/admin/agents", &bot).await), unknown);
    let path = format!("agents/{agent}/mandates");
    assert_eq!(kind(&desk.ask("POST", &path, json!({ "template": "brief" })).await), unknown);
}

/// A drill's canary keeps the mandates that it was made with.
#[tokio::test]
async fn a_canarys_mandates_stay() {
    let mut desk = Office::open().await;
    let target = desk.site.agent(&[OFFICE]);
    let (workspace, key) = (desk.site.workspace(), NewKey::of("ask_canary"));
    let start = StartDrill { workspace, by: By::Program, targets: vec![target.id], reason: None, key };
    let canary = desk.site.gate.execute(start).unwrap().drill.canary;
    let mandates = format!("agents/{canary}/mandates");
    let id = desk.ask("GET", &mandates, Value::Null).await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let no = (409, "not_allowed".to_owned());
    assert_eq!(kind(&desk.ask("POST", &mandates, json!({ "template": "crm-read" })).await), no);
    assert_eq!(kind(&desk.ask("PATCH", &format!("mandates/{id}"), json!({ "state": "paused" })).await), no);
    assert_eq!(kind(&desk.ask("DELETE", &format!("mandates/{id}"), Value::Null).await), no);
}

/// Keys are shown once; one that an admin key made names it as its maker and ends with it.
#[tokio::test]
async fn a_key_made_by_an_admin_key_ends_with_it() {
    let mut desk = Office::of(Role::Admin).await;
    let issued = desk.ask("POST", "keys", json!({ "scope": "admin", "label": "CI", "expiresInDays": 30 })).await;
    assert_eq!(issued.status, 201, "{}", issued.text());
    let issued = issued.json();
    let (admin, id) =
        (issued["key"].as_str().unwrap().to_owned(), issued["binding"]["id"].as_str().unwrap().to_owned());
    let made = desk.machine(&admin, "POST", "/v1/admin/keys", &json!({ "scope": "admin" })).await;
    assert_eq!((made.status, &made.json()["binding"]["createdBy"]), (200, &json!(id)), "{}", made.text());
    let second = made.json()["key"].as_str().unwrap().to_owned();
    let third = desk.machine(&second, "POST", "/v1/admin/keys", &json!({})).await;
    assert_eq!(third.json()["binding"]["scope"], "inference");
    let inference = third.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(
        kind(&desk.machine(&inference, "POST", "/v1/admin/keys", &json!({})).await),
        (403, "missing_scope".to_owned())
    );
    let bad = json!({ "scope": "agent", "principalId": "x", "expiresInDays": 0, "policyProfileId": "pol_1" });
    let refused = desk.machine(&admin, "POST", "/v1/admin/keys", &bad).await;
    assert_eq!(fields(&refused), ["scope", "principalId", "policyProfileId", "expiresInDays"]);
    let nobody =
        json!({ "teamId": "team_00000000000000000000000001", "principalId": "prp_00000000000000000000000001" });
    assert_eq!(
        fields(&desk.machine(&admin, "POST", "/v1/admin/keys", &nobody).await),
        ["principalId", "teamId"],
        "what is none of this workspace's"
    );
    assert_eq!(desk.ask("DELETE", &format!("keys/{id}"), Value::Null).await.status, 204);
    assert_eq!(
        kind(&desk.machine(&second, "POST", "/v1/admin/keys", &json!({})).await),
        (401, "invalid_api_key".to_owned())
    );
    let listed = desk.ask("GET", "keys", Value::Null).await.json();
    let states: Vec<_> = listed["data"].as_array().unwrap().iter().map(|it| it["state"].clone()).collect();
    assert_eq!(states, ["revoked", "revoked", "revoked"]);
    assert!(!listed.to_string().contains(&admin));
}

/// A key that has ended by itself with the key that made it has expired; one whose maker was revoked before was revoked, also once its
/// own time is up.
#[tokio::test]
async fn a_key_that_expired_with_its_maker_was_not_revoked() {
    let mut desk = Office::open().await;
    let pair = async |desk: &mut Office| {
        let above = desk.ask("POST", "keys", json!({ "scope": "admin", "expiresInDays": 1 })).await.made();
        let admin = text(&above["key"]).to_owned();
        let wish = json!({ "scope": "inference", "expiresInDays": 90 });
        let below = desk.machine(&admin, "POST", "/v1/admin/keys", &wish).await.ok();
        assert_eq!(below["binding"]["expiresAt"], above["binding"]["expiresAt"]);
        [above, below].map(|it| text(&it["binding"]["id"]).to_owned())
    };
    let (expired, revoked) = (pair(&mut desk).await, pair(&mut desk).await);
    assert_eq!(desk.ask("DELETE", &format!("keys/{}", revoked[0]), Value::Null).await.status, 204);
    for states in [["active", "active", "revoked", "revoked"], ["expired", "expired", "revoked", "revoked"]] {
        let listed = desk.read("keys").await;
        let state = |id: &String| {
            listed["data"].as_array().unwrap().iter().find(|it| it["id"] == **id).map(|it| text(&it["state"]))
        };
        assert_eq!([&expired[0], &expired[1], &revoked[0], &revoked[1]].map(state), states.map(Some), "{listed}");
        desk.site.advance(Span::hours(24));
        desk.who = Person { sid: desk.site.sign_in(desk.who.account), ..desk.who.clone() };
    }
}

/// An owner makes service tokens, shown once; every fault of a wish is named; a name is free again once its token ended.
#[tokio::test]
async fn service_tokens_are_an_owners_and_name_every_fault() {
    let mut desk = Office::open().await;
    let bad = json!({ "name": "a\nb", "scopes": [], "expiresInDays": 91, "ipAllow": ["10.0.0.1/8", "10.0.0.0", "::ffff:10.0.0.0/104"], "admin": true });
    let refused = desk.ask("POST", "service-tokens", bad).await;
    assert_eq!(kind(&refused), (400, "invalid_request".to_owned()));
    for field in ["admin", "name", "scopes", "expiresInDays", "ipAllow.0", "ipAllow.1", "ipAllow.2"] {
        assert!(fields(&refused).contains(&field.to_owned()), "{field}: {:?}", fields(&refused));
    }
    let wish = json!({ "name": "soar", "scopes": ["agents:read"], "ipAllow": ["192.0.2.0/24"] });
    let made = desk.ask("POST", "service-tokens", wish.clone()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let token = made.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(fields(&desk.ask("POST", "service-tokens", wish.clone()).await), ["name"]);
    // It is shown from this machine, which is not in its range, whatever a header claims.
    let bearer = format!("Bearer {token}");
    for forged in ["192.0.2.1", "::ffff:192.0.2.1"] {
        let headers = [("authorization", bearer.as_str()), ("x-forwarded-for", forged)];
        let refused = desk.client.ask("GET", "/v1/admin/agents", &headers, b"").await;
        assert_eq!(kind(&refused), (401, "invalid_token".to_owned()), "{forged}");
    }
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(desk.ask("DELETE", &format!("service-tokens/{id}"), Value::Null).await.status, 204);
    assert_eq!(desk.ask("GET", &format!("service-tokens/{id}"), Value::Null).await.json()["state"], "revoked");
    assert_eq!(desk.ask("POST", "service-tokens", wish).await.status, 201);
    let listed = desk.ask("GET", "service-tokens", Value::Null).await;
    assert!(!listed.text().contains(&token) && listed.json()["data"].as_array().unwrap().len() == 2);
    desk.who = desk.site.member(Role::Admin);
    assert_eq!(desk.ask("GET", "service-tokens", Value::Null).await.status, 403);
}

/// Settings change member by member; `null` is the default; what is unknown or out of bounds is named.
#[tokio::test]
async fn settings_change_member_by_member() {
    let mut desk = Office::of(Role::Admin).await;
    desk.ask("PUT", "settings", json!({ "agentVelocity": null })).await;
    let change = json!({ "name": "Home", "timezone": "Europe/Vienna", "agentVelocity": { "velocityCount": 7 }, "maxWaiting": 3,
        "secondPersonAbove": { "eur": 100000 }, "signIn": { "ssoDomains": ["Example.com"] }, "retentionDays": 30, "dataLoss": "flag" });
    let put = desk.ask("PUT", "settings", change).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let now = put.json();
    assert_eq!(now["agentVelocity"], json!({ "toolVelocityCount": 200, "velocityCount": 7, "velocityMinutes": 10 }));
    assert_eq!(
        (&now["secondPersonAbove"], &now["signIn"]["ssoDomains"]),
        (&json!({ "EUR": 100_000 }), &json!(["example.com"]))
    );
    let back = desk
        .ask("PUT", "settings", json!({ "agentVelocity": null, "retentionDays": null, "maxWaiting": null }))
        .await
        .json();
    assert_eq!(
        (&back["agentVelocity"]["velocityCount"], &back["retentionDays"], &back["maxWaiting"]),
        (&json!(10), &Value::Null, &json!(100))
    );
    assert_eq!(back["name"], "Home");
    let bad = json!({ "approvalHours": 0, "provenance": { "windowMinutes": 4, "mode": "x" }, "outsideMandat": "deny", "currency": "XXX",
        "stepUpAbove": { "EUR": -1, "usd": "1", "XXX": 1, "eur": 2 }, "secondPersonAbove": [], "name": null, "receiptMinutes": 1.5,
        "signIn": { "ssoDomains": ["example.com", "no domain", 7] } });
    let refused = desk.ask("PUT", "settings", bad).await;
    for field in [
        "approvalHours",
        "provenance.windowMinutes",
        "provenance.mode",
        "outsideMandat",
        "currency",
        "stepUpAbove.EUR",
        "stepUpAbove.usd",
        "stepUpAbove.XXX",
        "stepUpAbove.eur",
        "secondPersonAbove",
        "signIn.ssoDomains.1",
        "signIn.ssoDomains.2",
        "name",
        "receiptMinutes",
    ] {
        assert!(fields(&refused).contains(&field.to_owned()), "{field}: {:?}", fields(&refused));
    }
    assert_eq!(desk.ask("GET", "settings", Value::Null).await.json(), back, "a refused change changes nothing");
    desk.who = desk.site.member(Role::Member);
    assert_eq!(desk.ask("GET", "settings", Value::Null).await.status, 200);
    assert_eq!(kind(&desk.ask("PUT", "settings", json!({ "maxWaiting": 5 })).await), (403, "forbidden".to_owned()));
}

/// A member sees and renames the agents that act for them, makes keys for them, and touches no other.
#[tokio::test]
async fn a_member_reaches_only_their_own_agents() {
    let mut desk = Office::open().await;
    let other = text(&desk.agent(&json!({})).await["id"]).to_owned();
    let member = desk.site.member(Role::Member);
    let own = json!({ "name": "Mine", "principalEmail": member.email });
    let own = desk.ask("POST", "agents", own).await.json()["id"].as_str().unwrap().to_owned();
    desk.who = member;
    let listed = desk.ask("GET", "agents", Value::Null).await.json();
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["id"]), (1, &json!(own)));
    assert_eq!(desk.ask("PATCH", &format!("agents/{own}"), json!({ "name": "Still mine" })).await.status, 200);
    assert_eq!(desk.ask("PATCH", &format!("agents/{own}"), json!({ "tier": "trusted" })).await.status, 403);
    let issued = desk.ask("POST", &format!("agents/{own}/keys"), json!({ "label": "laptop" })).await;
    assert_eq!((issued.status, &issued.json()["binding"]["agentId"]), (201, &json!(own)));
    assert_eq!(
        desk.ask("GET", &format!("agents/{own}/keys"), Value::Null).await.json()["data"].as_array().unwrap().len(),
        2
    );
    for (method, path, body) in [
        ("GET", format!("agents/{other}"), Value::Null),
        ("PATCH", format!("agents/{other}"), json!({ "name": "x" })),
        ("GET", format!("agents/{other}/keys"), Value::Null),
        ("POST", format!("agents/{other}/keys"), json!({})),
        ("GET", format!("agents/{other}/mandates"), Value::Null),
    ] {
        assert_eq!(desk.ask(method, &path, body).await.status, 404, "{method} {path}");
    }
    assert_eq!(
        desk.ask("POST", &format!("agents/{own}/mandates"), json!({ "template": "crm-read" })).await.status,
        403
    );
}
