//! Providers, models, classes, profiles and routing over real sockets: what they hold, what is wrong with them, who may do
//! what, and what the router would choose.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use svc_core::state::people::{KeyScope, Role, TokenScope};
use svc_tests::office::Office;

const KEY: &str = "sk-planted-secret-wxyz";

/// Makes a provider and gives its id.
async fn made_upstream(office: &mut Office, name: &str) -> String {
    let made = office.post("upstreams", upstream(name)).await.made();
    made["id"].as_str().unwrap().to_owned()
}

/// Makes a model with prices of a micro a token.
async fn made_model(office: &mut Office, upstream: &str, id: &str, more: Value) -> Value {
    let mut body = json!({
        "id": id, "upstreamId": upstream, "prices": { "input": 1_000_000, "output": 1_000_000 },
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    office.post("models", body).await.made()
}

fn upstream(name: &str) -> Value {
    json!({ "name": name, "kind": "chat", "baseUrl": "https://models.example.com/v1", "apiKey": KEY })
}

/// A provider's key goes in and comes out nowhere: no answer, no list, no row, no record holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_providers_key_is_never_shown() {
    let mut desk = Office::open().await;
    let body = json!({
        "name": "one", "kind": "messages", "baseUrl": "https://models.example.com", "apiKey": KEY,
        "headers": { "X-Region": "eu" }, "jurisdiction": "eu", "region": "eu-west-1",
        "timeouts": { "firstTokenMs": 1000 }, "enabled": true,
    });
    let made = desk.post("upstreams", body).await.made();
    let id = made["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("ups_"));
    assert_eq!((&made["keyHint"], &made["health"], &made["lastError"]), (&json!("wxyz"), &json!("ok"), &Value::Null));
    assert_eq!((&made["headers"], &made["timeouts"]), (&json!({ "x-region": "eu" }), &json!({ "firstTokenMs": 1000 })));
    assert_eq!((&made["createdBy"], &made["kind"]), (&json!(desk.who.principal), &json!("messages")));
    let path = format!("upstreams/{id}");
    assert_eq!(desk.read(&path).await, made);
    let changed = desk.patch(&path, json!({ "apiKey": "other-key-1234", "region": null, "enabled": false })).await.ok();
    assert_eq!((&changed["keyHint"], &changed["region"]), (&json!("1234"), &Value::Null));
    assert_eq!((&changed["enabled"], &changed["name"]), (&json!(false), &json!("one")));
    let listed = desk.read("upstreams").await;
    assert_eq!(listed["data"], json!([changed]));
    let ledger: String = desk.site.ledger().iter().map(|it| format!("{} {}\n", it.kind, it.data)).collect();
    assert!(ledger.contains("upstream.created") && ledger.contains("upstream.changed"));
    let shown = format!("{made}{changed}{listed}{ledger}");
    assert!(!shown.contains(KEY) && !shown.contains("other-key") && !shown.contains("apiKey"));
    assert_eq!(desk.ask("DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(desk.ask("GET", &path, Value::Null).await.status, 404);
    desk.site.audit();
    desk.site.stop().await;
}

/// Every fault of a provider is told at once, under its own type; private addresses and plain http are faults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_provider_are_named() {
    let mut desk = Office::open().await;
    let bad: [(Value, &[&str]); 9] = [
        (json!({}), &["apiKey", "baseUrl", "kind", "name"]),
        (
            json!({ "name": "A b", "kind": "x", "baseUrl": "http://a.example/v1", "apiKey": "", "headers": { "authorization": "x" },
                "jurisdiction": "EU", "region": 7, "timeouts": { "idleMs": 0, "idle": 1 }, "enabled": 1, "key": 1 }),
            &[
                "apiKey",
                "baseUrl",
                "enabled",
                "headers.authorization",
                "jurisdiction",
                "key",
                "kind",
                "name",
                "region",
                "timeouts.idle",
                "timeouts.idleMs",
            ],
        ),
        (json!({ "baseUrl": "https://10.0.0.5/v1", "name": "n", "kind": "chat", "apiKey": "k" }), &["baseUrl"]),
        (json!({ "baseUrl": "https://127.0.0.1/v1", "name": "n", "kind": "chat", "apiKey": "k" }), &["baseUrl"]),
        (json!({ "baseUrl": "https://[::1]/v1", "name": "n", "kind": "chat", "apiKey": "k" }), &["baseUrl"]),
        (json!({ "baseUrl": "https://169.254.169.254", "name": "n", "kind": "chat", "apiKey": "k" }), &["baseUrl"]),
        (json!({ "baseUrl": "https://gate.example.com/v1", "name": "n", "kind": "chat", "apiKey": "k" }), &["baseUrl"]),
        (json!({ "baseUrl": "https://u:p@a.example", "name": "n", "kind": "chat", "apiKey": "k" }), &["baseUrl"]),
        (
            json!({ "baseUrl": "https://a.example#x", "name": "n", "kind": "chat", "apiKey": "a key" }),
            &["apiKey", "baseUrl"],
        ),
    ];
    for (body, fields) in bad {
        let got = desk.post("upstreams", body.clone()).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_upstream"), "{}", got.text());
        assert_eq!(got.fields(), fields.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), "{body}");
    }
    let got = desk.post("upstreams", json!([])).await;
    assert_eq!((got.status, got.kind().as_str()), (400, "invalid_request"));
    let id = made_upstream(&mut desk, "one").await;
    made_upstream(&mut desk, "two").await;
    let got = desk.post("upstreams", upstream("one")).await;
    assert_eq!((got.kind().as_str(), got.fields()), ("invalid_upstream", vec!["name".to_owned()]));
    let got = desk.patch(&format!("upstreams/{id}"), json!({ "name": "two" })).await;
    assert_eq!((got.kind().as_str(), got.fields()), ("invalid_upstream", vec!["name".to_owned()]));
    // A stored key goes to no other host than it was given for.
    for (url, status) in [
        ("https://models.example.com/v2", 200),
        ("https://models.example.com:8443/v2", 400),
        ("https://models.example.com.evil.example/v2", 400),
    ] {
        let got = desk.patch(&format!("upstreams/{id}"), json!({ "baseUrl": url })).await;
        assert_eq!(got.status, status, "{url}: {}", got.text());
        if status == 400 {
            assert_eq!((got.kind().as_str(), got.fields()), ("invalid_upstream", vec!["apiKey".to_owned()]));
        }
    }
    let moved = json!({ "baseUrl": "https://other.example/v1", "apiKey": "sk-another-key" });
    desk.patch(&format!("upstreams/{id}"), moved).await.ok();
    made_model(&mut desk, &id, "m", json!({})).await;
    let got = desk.ask("DELETE", &format!("upstreams/{id}"), Value::Null).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
    assert!(got.json()["error"]["reason"].as_str().unwrap().contains("1 of its models"));
    desk.site.stop().await;
}

/// A model has the contract's members and defaults; its id may hold slashes, colons and dots, percent-encoded in paths.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_has_its_defaults() {
    let mut desk = Office::open().await;
    let id = made_upstream(&mut desk, "one").await;
    let made = desk.post("models", json!({ "id": "vendor/large:1.5", "upstreamId": id })).await.made();
    assert_eq!((&made["id"], &made["upstreamId"]), (&json!("vendor/large:1.5"), &json!(id)));
    for (member, value) in [
        ("contextWindow", json!(128_000)),
        ("maxOutput", json!(8_192)),
        ("capabilities", json!(["tools", "streaming"])),
        ("jurisdiction", json!("unknown")),
        ("retention", json!("days")),
        ("retentionDays", Value::Null),
        ("quality", json!(50)),
        ("prices", Value::Null),
        ("enabled", json!(true)),
        ("aliases", json!([])),
    ] {
        assert_eq!(made[member], value, "{member}");
    }
    let path = "models/one/vendor%2Flarge%3A1.5";
    assert_eq!(desk.read(path).await, made);
    let prices = json!({
        "input": 3, "cachedInput": 1, "cacheWrite": 4, "cacheWriteLong": 5, "output": 15, "reasoning": 16, "perImage": 7,
        "perRequest": 8, "tools": { "web_search": 10_000 }, "tiers": [{ "aboveInputTokens": 200_000, "prices": { "input": 6, "output": 22 } }],
    });
    let change = json!({
        "aliases": ["large"], "jurisdiction": "us", "contextWindow": 1_000_000, "maxOutput": 64_000, "capabilities": ["vision"],
        "retention": "none", "quality": 90, "prices": prices, "enabled": false,
    });
    let changed = desk.patch(path, change.clone()).await.ok();
    for (member, value) in change.as_object().unwrap() {
        assert_eq!(changed[member], *value, "{member}");
    }
    let nulls = json!({ "prices": null, "retention": null, "quality": null, "enabled": null });
    let back = desk.patch(path, nulls).await.ok();
    assert_eq!((&back["prices"], &back["retention"], &back["quality"]), (&Value::Null, &json!("days"), &json!(50)));
    let bad: [(Value, &[&str]); 6] = [
        (json!({}), &["id", "upstreamId"]),
        (json!({ "id": "m", "upstreamId": "ups_00000000000000000000000000" }), &["upstreamId"]),
        (json!({ "id": "vendor/large:1.5", "upstreamId": id }), &["id"]),
        (
            json!({ "id": "m", "upstreamId": id, "maxOutput": 9, "contextWindow": 8, "aliases": ["large"] }),
            &["aliases", "maxOutput"],
        ),
        (json!({ "id": "m", "upstreamId": id, "quality": { "no.such": 1 } }), &["quality.no.such"]),
        (
            json!({ "id": "m", "upstreamId": id, "prices": { "input": 1, "output": 1.5, "inptu": 1, "tiers": [{ "prices": {} }] },
                "capabilities": ["fly"], "retention": "none", "retentionDays": 3, "quality": 101, "contextWindow": 0 }),
            &[
                "capabilities.0",
                "contextWindow",
                "prices.inptu",
                "prices.output",
                "prices.tiers.0.aboveInputTokens",
                "prices.tiers.0.prices.input",
                "prices.tiers.0.prices.output",
                "quality",
                "retentionDays",
            ],
        ),
    ];
    for (body, fields) in bad {
        let got = desk.post("models", body.clone()).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_request"), "{}", got.text());
        assert_eq!(got.fields(), fields.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), "{body}");
    }
    assert_eq!(desk.ask("DELETE", path, Value::Null).await.status, 204);
    assert_eq!(desk.ask("GET", path, Value::Null).await.status, 404);
    desk.site.stop().await;
}

/// Routing changes by the members that are named, and `null` returns one to its default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routing_changes_by_what_is_named() {
    let mut desk = Office::open().await;
    let before = desk.read("routing").await;
    assert_eq!((&before["mode"], &before["defaultObjective"]), (&json!("shadow"), &json!("balanced")));
    let table = before["toolTable"].as_array().unwrap().clone();
    assert_eq!(table.last().unwrap(), &json!({ "tool": "*", "source": "tool", "sink": false }));
    let changes = |desk: &Office| desk.site.ledger().iter().filter(|it| &*it.kind == "routing.changed").count();
    assert_eq!(desk.ask("PUT", "routing", before.clone()).await.ok(), before);
    assert_eq!(changes(&desk), 0, "what was read changes nothing");
    let got = desk.ask("PUT", "routing", json!({ "mode": "enforce", "defaultTaskClass": "a.b" })).await;
    assert_eq!(got.refusal(), (400, "invalid_request".to_owned(), vec!["defaultTaskClass".to_owned()]));
    assert_eq!(desk.read("routing").await["mode"], json!("shadow"), "a refused change changes nothing");
    desk.post("task-classes", json!({ "id": "a.b" })).await.made();
    let own = json!([{ "tool": "Wire_*", "source": "api", "sink": true }]);
    let change = json!({ "mode": "enforce", "defaultTaskClass": "a.b", "toolTable": own, "defaultObjective": "cost" });
    let changed = desk.ask("PUT", "routing", change.clone()).await.ok();
    assert_eq!(changed, change);
    let got = desk.ask("DELETE", "task-classes/a.b", Value::Null).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
    let back = json!({ "mode": null, "defaultTaskClass": null, "toolTable": null, "defaultObjective": null });
    assert_eq!(desk.ask("PUT", "routing", back).await.ok(), before);
    assert_eq!(desk.ask("DELETE", "task-classes/a.b", Value::Null).await.status, 204);
    let kinds: BTreeSet<String> = desk.site.ledger().iter().map(|it| it.kind.to_string()).collect();
    for kind in ["routing.changed", "task_class.created", "task_class.removed"] {
        assert!(kinds.contains(kind), "{kind}");
    }
    desk.site.audit();
    desk.site.stop().await;
}

/// Classes and profiles hold the contract's constraints; a misspelt one is refused; what a key is bound to stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn classes_and_profiles_hold_constraints() {
    let mut desk = Office::open().await;
    let one = made_upstream(&mut desk, "one").await;
    made_model(&mut desk, &one, "large", json!({ "aliases": ["grand"] })).await;
    made_model(&mut desk, &one, "small", json!({})).await;
    let limits = json!({
        "models": ["one/large", "small", "grand", "one/grand"], "providers": ["one"], "jurisdictions": ["eu"], "retention": "none",
        "capabilities": ["tools"], "minQuality": 60, "maxCostMicros": 5_000, "maxLatencyMs": 900, "humanOversight": true,
        "objective": "quality",
    });
    let with = |more: Value| {
        let mut body = limits.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let class = desk.post("task-classes", with(json!({ "id": "support.reply", "name": "Replies" }))).await.made();
    let profile = desk.post("policy-profiles", with(json!({ "name": "Strict", "mode": "enforce" }))).await.made();
    for (member, value) in limits.as_object().unwrap() {
        assert_eq!((&class[member], &profile[member]), (value, value), "{member}");
    }
    let id = profile["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("pol_"));
    for path in ["task-classes", "policy-profiles"] {
        let got = desk
            .post(path, json!({ "id": "x.y", "name": "N", "minQualty": 1, "maxCostMicros": -1, "models": ["a", "a"] }))
            .await;
        let known: &[&str] = if path == "task-classes" { &[] } else { &["id"] };
        let fields: BTreeSet<String> = got.fields().into_iter().collect();
        let wanted = ["minQualty", "maxCostMicros", "models.0", "models.1"]
            .iter()
            .chain(known)
            .map(|it| (*it).to_owned())
            .collect();
        assert_eq!((got.status, fields), (400, wanted), "{path}");
    }
    let changed = desk.patch("task-classes/support.reply", json!({ "models": null, "minQuality": null })).await.ok();
    assert_eq!(
        (&changed["models"], &changed["minQuality"], &changed["providers"]),
        (&Value::Null, &Value::Null, &json!(["one"]))
    );
    assert_eq!(desk.post("task-classes", json!({ "id": "support.reply" })).await.fields(), ["id"]);
    assert_eq!(desk.post("policy-profiles", json!({ "name": "Strict" })).await.fields(), ["name"]);
    let got = desk
        .post("keys", json!({ "taskClassId": "no.such", "policyProfileId": "pol_00000000000000000000000000" }))
        .await;
    assert_eq!(got.fields(), ["policyProfileId", "taskClassId"]);
    let key = desk.post("keys", json!({ "taskClassId": "support.reply", "policyProfileId": id })).await.made();
    assert_eq!(key["binding"]["policyProfileId"], json!(id));
    for path in ["task-classes/support.reply".to_owned(), format!("policy-profiles/{id}")] {
        let got = desk.ask("DELETE", &path, Value::Null).await;
        assert_eq!((got.status, &got.json()["error"]["reason"]), (409, &json!("a key is bound to it")), "{path}");
    }
    let binding = key["binding"]["id"].as_str().unwrap();
    assert_eq!(desk.ask("DELETE", &format!("keys/{binding}"), Value::Null).await.status, 204);
    for path in ["task-classes/support.reply".to_owned(), format!("policy-profiles/{id}")] {
        assert_eq!(desk.ask("DELETE", &path, Value::Null).await.status, 204, "{path}");
    }
    desk.site.audit();
    desk.site.stop().await;
}

/// What a limit names has to be there when it is set, and an emptied list, which would admit everything, is none; what a
/// list names stays until that names it no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_names_what_is_there() {
    let mut desk = Office::open().await;
    let one = made_upstream(&mut desk, "one").await;
    made_model(&mut desk, &one, "small", json!({})).await;
    desk.post("task-classes", json!({ "id": "last", "models": ["one/small"] })).await.made();
    let id = desk.post("policy-profiles", json!({ "name": "Strict" })).await.made()["id"].as_str().unwrap().to_owned();
    let odd = json!({ "models": ["small", "smal", "two/large"], "providers": ["one", "two"] });
    let empty = json!({ "models": [], "providers": [], "jurisdictions": [] });
    let wanted = ["models.1", "models.2", "providers.1"].map(str::to_owned).to_vec();
    for (path, own, made) in [("task-classes", "id", "last"), ("policy-profiles", "name", &*id)] {
        let mut new = odd.clone();
        new[own] = json!("other");
        let made = format!("{path}/{made}");
        for got in [desk.post(path, new).await, desk.patch(&made, odd.clone()).await] {
            assert_eq!((got.status, got.fields()), (400, wanted.clone()), "{made}");
        }
        let fields: BTreeSet<String> = desk.patch(&made, empty.clone()).await.fields().into_iter().collect();
        assert_eq!(fields, empty.as_object().unwrap().keys().cloned().collect(), "{made}");
    }
    let got = desk.ask("DELETE", "models/one/small", Value::Null).await;
    let why = "task class `last` names it, as `one/small`";
    assert_eq!((got.status, got.kind().as_str(), &got.json()["error"]["reason"]), (409, "not_allowed", &json!(why)));
    desk.patch("task-classes/last", json!({ "models": null })).await.ok();
    assert_eq!(desk.ask("DELETE", "models/one/small", Value::Null).await.status, 204);
}

/// A preview that says nothing of the answer's length goes by a usual one, or the longest that a model gives where that is shorter:
/// a call that sets no bound is bounded by that, and is refused by no model for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_asks_for_no_longer_answer_than_a_model_gives() {
    let mut desk = Office::open().await;
    let one = made_upstream(&mut desk, "one").await;
    for (id, most) in [("short", 200), ("long", 4_000)] {
        made_model(&mut desk, &one, id, json!({ "maxOutput": most })).await;
    }
    desk.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let asked = json!({ "taskClass": "support.reply", "objective": "cost" });
    let said = desk.post("route/preview", asked.clone()).await.ok();
    let costs: Vec<_> = said["candidates"].as_array().unwrap().iter().map(|it| (&it["model"], &it["cost"])).collect();
    assert_eq!(costs, [(&json!("short"), &json!(1_200)), (&json!("long"), &json!(2_000))], "{said}");
    let mut longer = asked;
    longer["maxOutput"] = json!(201);
    let said = desk.post("route/preview", longer).await.ok();
    assert_eq!((&said["model"], &said["estimatedCostMicros"]), (&json!("long"), &json!(1_201)), "{said}");
    desk.site.stop().await;
}

/// A preview says which model, why, and what the others break; without one it is a 409 with the error beside, whose
/// relaxations admit what they say once they are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_says_which_model_and_why() {
    let mut desk = Office::open().await;
    let one = made_upstream(&mut desk, "one").await;
    made_model(&mut desk, &one, "cheap", json!({ "quality": 40, "jurisdiction": "us" })).await;
    let dear = json!({ "quality": 90, "jurisdiction": "de", "prices": { "input": 9_000_000, "output": 9_000_000 } });
    made_model(&mut desk, &one, "good", dear).await;
    desk.post("task-classes", json!({ "id": "support.reply", "minQuality": 30 })).await.made();
    let asked = json!({ "taskClass": "support.reply", "objective": "cost", "inputTokens": 100, "maxOutput": 10 });
    let said = desk.post("route/preview", asked.clone()).await.ok();
    assert_eq!((&said["ok"], &said["model"], &said["provider"]), (&json!(true), &json!("cheap"), &json!("one")));
    assert_eq!((&said["estimatedCostMicros"], &said["jurisdiction"]), (&json!(110), &json!("us")));
    assert_eq!((&said["taskClass"], &said["objective"]), (&json!("support.reply"), &json!("cost")));
    let why = said["why"].to_string();
    assert!(why.contains("a call of 100 tokens in and 10 out costs at most 110 micros there"), "{why}");
    let candidates = said["candidates"].as_array().unwrap();
    assert_eq!((candidates.len(), &candidates[1]["model"], &candidates[1]["cost"]), (2, &json!("good"), &json!(990)));
    assert_eq!((&candidates[1]["qualifies"], &candidates[1]["rejectedBy"]), (&json!(true), &json!([])));
    let key = desk.site.key(KeyScope::Inference);
    assert_eq!(desk.client.post("/v1/route/preview", &key, &asked).await.ok(), said);
    desk.patch("task-classes/support.reply", json!({ "minQuality": 80, "jurisdictions": ["us"] })).await.ok();
    let got = desk.client.post("/v1/route/preview", &key, &asked).await;
    let said = got.json();
    assert_eq!((got.status, &said["ok"], &said["error"]["type"]), (409, &json!(false), &json!("policy_conflict")));
    assert_eq!(said["error"]["relaxations"], said["relaxations"]);
    assert_eq!(said["error"]["bindingConstraint"], said["bindingConstraint"]);
    assert!(said["error"]["requestId"].is_string() && said["error"]["fix"].is_string());
    let told: Vec<(&Value, &Value)> =
        said["relaxations"].as_array().unwrap().iter().map(|it| (&it["constraint"], &it["admits"])).collect();
    assert_eq!(told, [(&json!("jurisdiction"), &json!(["one/good"])), (&json!("quality"), &json!(["one/cheap"]))]);
    desk.patch("task-classes/support.reply", json!({ "jurisdictions": ["us", "de"] })).await.ok();
    assert_eq!(desk.post("route/preview", asked).await.ok()["model"], json!("good"));
    let got = desk.post("route/preview", json!({ "taskClass": "support.repyl" })).await;
    assert_eq!((got.status, got.kind().as_str()), (400, "unknown_task_class"));
    assert_eq!(got.json()["error"]["didYouMean"], json!("support.reply"));
    let got = desk.post("route/preview", json!({ "model": "chaep" })).await;
    assert_eq!(
        (got.status, got.fields(), &got.json()["error"]["didYouMean"]),
        (400, vec!["model".to_owned()], &json!("cheap"))
    );
    let got = desk.post("route/preview", json!({ "objective": "best", "inputTokens": -1, "needs": "tools" })).await;
    assert_eq!(got.fields(), ["inputTokens", "needs", "objective"]);
    desk.site.stop().await;
}

/// The lists of models have the shapes of their APIs, to any key of the workspace, and leave out what is switched off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_are_listed_in_the_shapes_of_both_apis() {
    let mut desk = Office::open().await;
    let one = made_upstream(&mut desk, "one").await;
    for name in ["a", "b", "c"] {
        made_model(&mut desk, &one, name, json!({})).await;
    }
    made_model(&mut desk, &one, "off", json!({ "enabled": false })).await;
    let agent = desk.site.agent(&[]).key;
    let listed = desk.client.get("/v1/models", &agent).await.ok();
    let ids: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(
        (listed["object"].as_str(), ids),
        (Some("list"), vec![&json!("one/a"), &json!("one/b"), &json!("one/c")])
    );
    let first = &listed["data"][0];
    assert_eq!((&first["object"], &first["owned_by"]), (&json!("model"), &json!("one")));
    assert!(first["created"].is_i64());
    for (member, value) in
        [("shapes", json!(["chat", "messages"])), ("contextWindow", json!(128_000)), ("jurisdiction", json!("unknown"))]
    {
        assert_eq!(first["svc"][member], value);
    }
    let part = desk.client.get("/anthropic/v1/models?limit=2", &agent).await.ok();
    assert_eq!(
        (&part["has_more"], &part["first_id"], &part["last_id"]),
        (&json!(true), &json!("one/a"), &json!("one/b"))
    );
    assert_eq!((&part["data"][0]["type"], &part["data"][0]["display_name"]), (&json!("model"), &json!("a")));
    let rest = desk.client.get("/anthropic/v1/models?limit=2&after_id=one/b", &agent).await.ok();
    assert_eq!(
        (&rest["has_more"], &rest["first_id"], &rest["last_id"]),
        (&json!(false), &json!("one/c"), &json!("one/c"))
    );
    let before = desk.client.get("/anthropic/v1/models?limit=1&before_id=one/c", &agent).await.ok();
    assert_eq!((&before["has_more"], &before["first_id"]), (&json!(true), &json!("one/b")));
    let got = desk.client.get("/anthropic/v1/models?limit=0&after_id=x", &agent).await;
    assert_eq!((got.status, got.json()["type"].as_str()), (400, Some("error")));
    made_model(&mut desk, &one, "d", json!({ "aliases": ["fast"] })).await;
    let listed = desk.client.get("/anthropic/v1/models?after_id=one/c", &agent).await.ok();
    let names = listed["data"].as_array().unwrap().iter().map(|it| (&it["id"], &it["display_name"]));
    let aliased = [(json!("one/d"), json!("d")), (json!("one/fast"), json!("fast"))];
    assert_eq!(names.collect::<Vec<_>>(), aliased.iter().map(|(id, name)| (id, name)).collect::<Vec<_>>());
    let admin = desk.site.key(KeyScope::Admin);
    let got = desk.client.get("/v1/admin/upstreams", &admin).await.ok();
    assert_eq!(got["data"][0]["name"], json!("one"));
    let got = desk.client.get("/v1/admin/upstreams", &agent).await;
    assert_eq!((got.status, got.kind().as_str()), (403, "missing_scope"));
    desk.site.stop().await;
}

/// Lists come in parts, the newest first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_come_in_parts() {
    let mut desk = Office::open().await;
    for number in 0..5 {
        desk.post("task-classes", json!({ "id": format!("c{number}") })).await.made();
    }
    let mut seen = Vec::new();
    let mut path = "task-classes?limit=2".to_owned();
    loop {
        let part = desk.read(&path).await;
        seen.extend(part["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = part["nextCursor"].as_str() else { break };
        path = format!("task-classes?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["c4", "c3", "c2", "c1", "c0"]);
    let got = desk.ask("GET", &path.replace("task-classes", "models"), Value::Null).await;
    assert_eq!((got.status, got.fields()), (400, vec!["cursor".to_owned()]));
    desk.site.stop().await;
}

/// A member reads models, in the list and each alone, and neither changes them nor reads how calls are routed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_reads_models_and_no_more_of_routing() {
    let mut desk = Office::open().await;
    let one = made_upstream(&mut desk, "one").await;
    let made = made_model(&mut desk, &one, "small", json!({})).await;
    for role in [Role::Member, Role::Analyst, Role::Admin] {
        desk.who = desk.site.member(role);
        assert_eq!(desk.read("models").await["data"], json!([made]), "{}", role.as_str());
        assert_eq!(desk.read("models/one/small").await, made, "{}", role.as_str());
    }
    desk.who = desk.site.member(Role::Auditor);
    assert_eq!(desk.ask("GET", "models", Value::Null).await.status, 403);
    desk.who = desk.site.member(Role::Member);
    for path in ["upstreams", "task-classes", "policy-profiles", "routing"] {
        assert_eq!(desk.ask("GET", path, Value::Null).await.status, 403, "{path}");
    }
    assert_eq!(desk.patch("models/one/small", json!({ "enabled": false })).await.status, 403);
    assert_eq!(desk.ask("DELETE", "models/one/small", Value::Null).await.status, 403);
    desk.site.stop().await;
}

/// What is removed between two parts of a list has no item shown twice and none left out: neither an older one nor the very one
/// that the first part ended with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_goes_on_where_it_was() {
    let mut desk = Office::open().await;
    let one = made_upstream(&mut desk, "one").await;
    for number in 0..6 {
        desk.post("task-classes", json!({ "id": format!("c{number}") })).await.made();
        made_model(&mut desk, &one, &format!("m{number}"), json!({})).await;
    }
    let of = |part: &Value| -> Vec<String> {
        part["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    for (list, item, names) in [("task-classes", "task-classes/c", "c"), ("models", "models/one/m", "m")] {
        let first = desk.read(&format!("{list}?limit=2")).await;
        assert_eq!(of(&first), [format!("{names}5"), format!("{names}4")]);
        assert_eq!(desk.ask("DELETE", &format!("{item}0"), Value::Null).await.status, 204);
        let path = |part: &Value| format!("{list}?limit=2&cursor={}", part["nextCursor"].as_str().unwrap());
        let second = desk.read(&path(&first)).await;
        assert_eq!(of(&second), [format!("{names}3"), format!("{names}2")], "after an older one was removed");
        assert_eq!(desk.ask("DELETE", &format!("{item}2"), Value::Null).await.status, 204);
        let last = desk.read(&path(&second)).await;
        assert_eq!((of(&last), &last["nextCursor"]), (vec![format!("{names}1")], &Value::Null));
    }
    desk.site.stop().await;
}

/// A key of this server's own is sent to no provider of models and to no MCP server, made or changed, in a key or in any header, alone
/// or behind a scheme; one of another svc, which may stand behind this one, is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_this_server_goes_to_nobody() {
    let mut desk = Office::open().await;
    let own = desk.site.agent(&[]).key;
    let admin = desk.post("keys", json!({ "scope": "admin" })).await.made()["key"].as_str().unwrap().to_owned();
    let other = format!("{}0", &own[..own.len() - 1]);
    let wish = |name: &str, key: &str| json!({ "name": name, "kind": "chat", "baseUrl": "https://models.example.com/v1", "apiKey": key });
    for key in [&own, &admin] {
        let got = desk.post("upstreams", wish("one", key)).await;
        assert_eq!(got.refusal(), (400, "invalid_upstream".into(), vec!["apiKey".into()]));
        assert!(!got.text().contains(&**key));
    }
    let token = desk.site.token(&[TokenScope::AgentsRead]);
    let basic = format!("Basic {}", STANDARD.encode(format!("{own}:")));
    for (header, value) in [
        ("x-token", own.clone()),
        ("helicone-auth", format!("Bearer {own}")),
        ("x-auth", format!("Token {token}")),
        ("x-auth", basic),
        ("x-upstream", own.clone()),
        ("x-tags", format!("a={token};b")),
    ] {
        let mut headed = wish("one", "sk-1");
        headed["headers"] = json!({ header: value });
        let got = desk.post("upstreams", headed).await;
        assert_eq!(got.refusal(), (400, "invalid_upstream".into(), vec![format!("headers.{header}")]), "{value}");
    }
    let made = desk.post("upstreams", wish("two", &other)).await.made();
    let place = format!("upstreams/{}", made["id"].as_str().unwrap());
    let got = desk.patch(&place, json!({ "apiKey": own })).await;
    assert_eq!(got.refusal(), (400, "invalid_upstream".into(), vec!["apiKey".into()]));
    let server = |key: &str| json!({ "name": "crm", "url": "https://mcp.example.com/mcp", "credential": { "type": "bearer", "secret": key } });
    let got = desk.post("mcp-servers", server(&own)).await;
    assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["credential.secret".into()]));
    let schemed = json!({ "type": "header", "header": "x-api-key", "secret": format!("Bearer {own}") });
    let got =
        desk.post("mcp-servers", json!({ "name": "crm", "url": "https://mcp.example.com/mcp", "credential": schemed }));
    assert_eq!(got.await.refusal(), (400, "invalid_request".into(), vec!["credential.secret".into()]));
    let made = desk.post("mcp-servers", server(&other)).await.made();
    let place = format!("mcp-servers/{}", made["id"].as_str().unwrap());
    let got = desk.patch(&place, json!({ "credential": { "type": "bearer", "secret": admin } })).await;
    assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["credential.secret".into()]));
    desk.site.audit();
    desk.site.stop().await;
}
