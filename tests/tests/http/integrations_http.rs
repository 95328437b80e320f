//! Integrations and deliveries through the console's interface: secrets are shown once, calls are listed without what their
//! URLs hold, and what was given up can be tried again.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::rules::edge::deliver::find;
use svc_core::rules::edge::integrations::{CreateIntegration, NewSecret};
use svc_core::rules::people::by::By;
use svc_core::state::edge::{ConfigChange, IntegrationKind};
use svc_core::state::people::Role;
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::id::DeliveryId;
use svc_tests::client::PATIENCE;
use svc_tests::office::Office;
use svc_tests::receiver::{Receiver, Reply};
use svc_tests::requests::{WIDE, payment, text};
use tokio::time::timeout;

/// An owner's, where calls may go to this machine.
async fn open() -> Office {
    Office::with(|plan| plan.config.allow_private_callbacks = true).await
}

/// Makes the integration of callbacks and gives it as it was answered.
async fn create(office: &mut Office) -> Value {
    let got = office.post("integrations", json!({ "kind": "callbacks" })).await;
    assert_eq!(got.status, 201, "{}", got.text());
    got.json()
}

/// An allowed action whose callback is `url`; the delivery's id.
async fn call(office: &mut Office, url: &str) -> String {
    let agent = office.site.agent(&[WIDE]);
    let action = office.client.authorize(&agent.key, &payment(100)).await.ok();
    let path = format!("/v1/actions/{}/callback", action["id"].as_str().unwrap());
    let callback = office.client.post(&path, &agent.key, &json!({ "url": url })).await.ok();
    callback["id"].as_str().unwrap().replace("cbk_", "dlv_")
}

/// Waits until a delivery has come to this state.
async fn until(office: &mut Office, id: &str, state: &str) -> Value {
    let mut changes = office.site.gate.changes();
    let job = DeliveryId::parse(id).unwrap();
    let wait = async {
        loop {
            let found = office.site.gate.read(|scope| find(scope, job)).unwrap().unwrap();
            if found.state.as_str() == state && (state != "waiting" || !found.attempts.is_empty()) {
                return;
            }
            let _ = changes.recv().await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{id} is {state} in time"));
    office.read(&format!("deliveries/{id}")).await
}

/// A secret is shown to whoever makes it and to nobody after that; its last four characters are what people see. The ledger
/// knows of each step and of no secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_shown_once() {
    let mut desk = open().await;
    let made = create(&mut desk).await;
    let (id, secret) = (made["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned());
    assert!(id.starts_with("int_") && secret.starts_with("whsec_") && secret.len() == 49);
    assert_eq!(made["secretHint"], json!(&secret[45..]));
    assert_eq!((&made["state"], &made["createdBy"]), (&json!("ok"), &json!(desk.who.principal)));
    let read = desk.read(&format!("integrations/{id}")).await;
    let listed = desk.read("integrations").await;
    assert_eq!((&listed["data"], &listed["nextCursor"]), (&json!([read]), &Value::Null));
    assert!(read.get("secret").is_none() && !read.to_string().contains(&secret));
    let rotated = desk.post(&format!("integrations/{id}/rotate"), json!({ "overlapHours": 2 })).await.ok();
    let next = rotated["secret"].as_str().unwrap().to_owned();
    assert_ne!(next, secret);
    let hints: Vec<&Value> = rotated["secrets"].as_array().unwrap().iter().map(|it| &it["hint"]).collect();
    assert_eq!(hints, [&json!(&next[45..]), &json!(&secret[45..])]);
    assert!(rotated["secrets"][1]["endsAt"].is_string() && rotated["secrets"][0].get("endsAt").is_none());
    desk.site.shift(Span::hours(2));
    let after = desk.read(&format!("integrations/{id}")).await;
    assert_eq!(after["secrets"].as_array().unwrap().len(), 1, "what has ended is not shown");
    let own = format!("whsec_{}", "x".repeat(43));
    let rotated =
        desk.post(&format!("integrations/{id}/rotate"), json!({ "secret": own, "overlapHours": 0 })).await.ok();
    assert_eq!((rotated.get("secret"), &rotated["secretHint"]), (None, &json!("xxxx")), "they have it already");
    assert!(!rotated.to_string().contains(&own));
    assert_eq!(desk.ask("DELETE", &format!("integrations/{id}"), Value::Null).await.status, 204);
    assert_eq!(desk.ask("GET", &format!("integrations/{id}"), Value::Null).await.status, 404);
    let ledger = desk.site.ledger();
    let kinds: Vec<&str> = ledger.iter().map(|it| &*it.kind).filter(|it| it.starts_with("integration.")).collect();
    let rotated = "integration.rotated";
    assert_eq!(kinds, ["integration.created", rotated, rotated, "integration.removed"]);
    let again = desk.post("integrations", json!({ "kind": "stripe", "secret": own })).await.made();
    assert_eq!((again.get("secret"), &again["secretHint"]), (None, &json!("xxxx")));
    let texts: String = ledger.iter().map(|it| format!("{}{}", it.data, it.actor)).collect();
    assert!(![&secret, &next, &own].iter().any(|it| texts.contains(it.as_str())));
    assert!(texts.contains(&desk.who.principal.to_string()));
    desk.site.audit();
    desk.site.stop().await;
}

/// What is received names where it is sent to and what it is configured with: members that a change names change, `null` empties
/// one, and the ledger has both. Nothing is called over it, so there is no call to try it out with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_received_is_configured() {
    let mut desk = open().await;
    let wid = desk.site.workspace();
    let config = json!({ "repositories": ["acme/desk"], "branches": ["main", "release/1"] });
    let made = desk.post("integrations", json!({ "kind": "github", "config": config })).await.made();
    assert_eq!((&made["config"], text(&made["receiveUrl"])), (&config, &*format!("{BASE_URL}/hooks/github/{wid}")));
    let created = desk.site.ledger().last().map(|it| serde_json::from_str::<Value>(&it.data).unwrap()).unwrap();
    assert_eq!((&created["kind"], &created["new"]["branches"]), (&json!("github"), &config["branches"]));
    let place = format!("integrations/{}", text(&made["id"]));
    let changed = desk.ask("PATCH", &place, json!({ "config": { "branches": null } })).await.ok();
    assert_eq!(changed["config"], json!({ "repositories": ["acme/desk"], "branches": [] }));
    let told = desk.site.ledger().last().map(|it| serde_json::from_str::<Value>(&it.data).unwrap()).unwrap();
    assert_eq!((&told["old"]["branches"], &told["new"]["branches"]), (&config["branches"], &json!([])));
    for body in [json!({ "url": "https://a.example/x" }), json!({}), Value::Null] {
        let tested = desk.ask("POST", &format!("{place}/test"), body).await;
        assert_eq!((tested.status, tested.kind().as_str()), (409, "not_allowed"), "{}", tested.text());
    }
    let keys = json!({ "keys": [{
        "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }] });
    let config = json!({ "issuer": "https://idp.example", "audience": "svc", "jwks": keys });
    let made = desk.post("integrations", json!({ "kind": "ssf", "config": config })).await.made();
    assert_eq!((&made["config"]["jwks"], &made["config"]["jwksUrl"]), (&keys, &Value::Null));
    let place = format!("integrations/{}", text(&made["id"]));
    let change = json!({ "config": { "jwksUrl": "https://idp.example/keys" } });
    let changed = desk.ask("PATCH", &place, change.clone()).await.ok();
    assert_eq!(
        (&changed["config"]["jwks"], &changed["config"]["jwksUrl"]),
        (&Value::Null, &change["config"]["jwksUrl"])
    );
    assert_eq!(desk.ask("PATCH", &place, json!({ "config": { "branches": [] } })).await.fields(), ["config.branches"]);
    let emptied = desk.ask("PATCH", &place, json!({ "config": null })).await.ok();
    assert!(emptied["config"].as_object().unwrap().values().all(Value::is_null), "{emptied}");
    for kind in ["issuer", "stripe"] {
        let made = desk.post("integrations", json!({ "kind": kind })).await.made();
        assert_eq!(text(&made["receiveUrl"]), format!("{BASE_URL}/hooks/{kind}/{wid}"));
    }
    desk.site.audit();
    desk.site.stop().await;
}

/// Every fault of a body is named by its path, and a kind that there is not is told those that there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_named() {
    let mut desk = open().await;
    let code = json!({ "repositories": ["acme/desk", "desk"], "branches": "main", "more": 1 });
    let signals = json!({ "jwks": {}, "jwksUrl": "ftp://a.example/keys", "issuer": "a b" });
    let keys = json!({ "keys": [{ "kty": "EC" }] });
    let bad: [(Value, &[&str]); 14] = [
        (json!({ "kind": "github", "config": code }), &["config.branches", "config.more", "config.repositories.1"]),
        (
            json!({ "kind": "github", "config": { "branches": ["main", "release/*", "refs/heads/main", "a..b"] } }),
            &["config.branches.1", "config.branches.2", "config.branches.3"],
        ),
        (json!({ "kind": "ssf", "config": signals }), &["config.issuer", "config.jwks", "config.jwksUrl"]),
        (json!({ "kind": "ssf", "config": { "jwks": keys, "jwksUrl": "https://a.example" } }), &["config.jwks"]),
        (json!({ "kind": "ssf", "config": { "branches": [] } }), &["config.branches"]),
        (json!({ "kind": "issuer", "config": { "issuer": "a" } }), &["config.issuer"]),
        (json!({}), &["kind"]),
        (json!({ "kind": "pager" }), &["kind"]),
        (json!({ "kind": "callbacks", "secret": "short" }), &["secret"]),
        (json!({ "kind": "callbacks", "secret": "a secret of two\nlines in it, long enough" }), &["secret"]),
        (json!({ "kind": "callbacks", "config": { "url": "https://a.example" } }), &["config.url"]),
        (json!({ "kind": "callbacks", "config": [] }), &["config"]),
        (json!({ "kind": "callbacks", "state": "ok", "id": "int_1" }), &["id", "state"]),
        (json!({ "kind": 7, "secret": 7, "config": 7, "more": 7 }), &["config", "kind", "more", "secret"]),
    ];
    for (body, fields) in bad {
        let got = desk.post("integrations", body.clone()).await;
        assert_eq!((got.status, got.fields()), (400, fields.iter().map(|it| (*it).to_owned()).collect()), "{body}");
    }
    let got = desk.post("integrations", json!({ "kind": "pager" })).await;
    assert!(got.json()["error"]["message"].as_str().unwrap().contains("`callbacks`"), "{}", got.text());
    let id = create(&mut desk).await["id"].as_str().unwrap().to_owned();
    assert_eq!(desk.post("integrations", json!({ "kind": "callbacks" })).await.refusal().2, ["kind"]);
    for (path, body, field) in [
        ("rotate", json!({ "overlapHours": 169 }), "overlapHours"),
        ("rotate", json!({ "overlapHours": -1 }), "overlapHours"),
        ("rotate", json!({ "overlapHours": 1.5 }), "overlapHours"),
        ("rotate", json!({ "overlap": 1 }), "overlap"),
        ("test", json!({ "adress": "https://a.example" }), "adress"),
        ("test", json!({ "url": "https://169.254.169.254/latest" }), "url"),
        ("test", json!({ "url": "ftp://a.example" }), "url"),
    ] {
        let got = desk.post(&format!("integrations/{id}/{path}"), body.clone()).await;
        assert_eq!((got.status, got.fields()), (400, vec![field.to_owned()]), "{path} {body}");
    }
    let got = desk.ask("PATCH", &format!("integrations/{id}"), json!({ "state": "off", "enabled": "no" })).await;
    assert_eq!(got.fields(), ["enabled", "state"]);
    for (method, path) in [
        ("GET", "integrations/int_0"),
        ("GET", "integrations/int_00000000000000000000000000"),
        ("DELETE", "integrations/int_00000000000000000000000000"),
        ("POST", "integrations/int_00000000000000000000000000/rotate"),
        ("GET", "deliveries/dlv_00000000000000000000000000"),
        ("POST", "deliveries/dlv_00000000000000000000000000/retry"),
    ] {
        assert_eq!(desk.ask(method, path, Value::Null).await.status, 404, "{method} {path}");
    }
    for query in ["state=done", "kind=github", "cursor=x", "limit=0", "state=failed&state=failed"] {
        let got = desk.ask("GET", &format!("deliveries?{query}"), Value::Null).await;
        assert_eq!((got.status, got.fields().len()), (400, 1), "{query}");
    }
    desk.site.stop().await;
}

/// A call is listed with its host and its tries; what was given up shows on the integration and is tried again on request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_seen_and_tried_again() {
    let mut desk = open().await;
    let id = create(&mut desk).await["id"].as_str().unwrap().to_owned();
    let mut hooks = Receiver::start().await;
    hooks.answer([Reply::Status(500)]);
    let delivery = call(&mut desk, &hooks.url("/hook?token=hidden")).await;
    hooks.next().await;
    let waiting = until(&mut desk, &delivery, "waiting").await;
    assert_eq!((&waiting["host"], &waiting["kind"]), (&json!("127.0.0.1"), &json!("callbacks")));
    assert_eq!(waiting["attempts"][0]["status"], json!(500));
    assert!(waiting["nextAt"].is_string() && waiting["subject"].as_str().unwrap().starts_with("act_"));
    assert!(!waiting.to_string().contains("hidden"));
    let retried = desk.ask("POST", &format!("deliveries/{delivery}/retry"), Value::Null).await.ok();
    assert_eq!((&retried["id"], &retried["state"]), (&json!(delivery), &json!("waiting")));
    hooks.next().await;
    let done = until(&mut desk, &delivery, "delivered").await;
    assert_eq!((done["attempts"].as_array().unwrap().len(), &done["nextAt"]), (2, &Value::Null));
    let got = desk.ask("POST", &format!("deliveries/{delivery}/retry"), Value::Null).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));

    hooks.answer([Reply::Status(404)]);
    let tested = desk.post(&format!("integrations/{id}/test"), json!({ "url": hooks.url("/try") })).await.ok();
    let call = hooks.next().await;
    assert_eq!((&call.json()["type"], call.json()["id"].as_str()), (&json!("test"), Some(id.as_str())));
    let failed = until(&mut desk, tested["deliveryId"].as_str().unwrap(), "failed").await;
    assert_eq!((failed["attempts"].as_array().unwrap().len(), &failed["subject"]), (1, &json!(id)));
    let shown = desk.read(&format!("integrations/{id}")).await;
    assert_eq!((&shown["state"], shown["lastError"].is_string()), (&json!("failing"), true));
    let kinds = desk.site.ledger();
    assert!(
        kinds.iter().any(|it| &*it.kind == "delivery.failed" && it.subject == failed["id"].as_str().unwrap().into())
    );
    let path = format!("integrations/{id}");
    assert_eq!(desk.ask("PATCH", &path, json!({ "enabled": false })).await.ok()["state"], json!("off"));
    desk.site.stop().await;
}

/// Where nobody is to be called, what can be looked at is looked at: an integration whose secret opens is answered as it stands,
/// without a call or a record; one whose secret does not open says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_without_an_address_looks_at_the_secret() {
    let mut desk = open().await;
    let made = create(&mut desk).await;
    let place = format!("integrations/{}", text(&made["id"]));
    let before = desk.site.ledger().len();
    for body in [json!({}), Value::Null, json!({ "url": null })] {
        let tested = desk.ask("POST", &format!("{place}/test"), body).await.ok();
        assert_eq!(tested, desk.read(&place).await);
    }
    assert_eq!((desk.site.ledger().len(), desk.read("deliveries").await["data"].clone()), (before, json!([])));
    let none = format!("integrations/int_{}/test", "0".repeat(26));
    assert_eq!(desk.ask("POST", &none, Value::Null).await.status, 404);
    assert_eq!(desk.ask("DELETE", &place, Value::Null).await.status, 204);
    let (workspace, secret) = (desk.site.workspace(), NewSecret { sealed: "lost".into(), hint: "lost".into() });
    let (by, kind, config) = (By::Program, IntegrationKind::Callbacks, ConfigChange::default());
    let made = desk.site.gate.execute(CreateIntegration { by, workspace, kind, secret, config }).unwrap();
    let tested = desk.ask("POST", &format!("integrations/{}/test", made.id), Value::Null).await;
    assert_eq!((tested.status, tested.kind().as_str()), (409, "not_allowed"), "{}", tested.text());
    assert!(tested.text().contains("rotate it"), "{}", tested.text());
    desk.site.stop().await;
}

/// Pages of deliveries hold each of them once, the newest first, filtered where that is asked; a cursor of another list or
/// another filter is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_come_in_pages() {
    let mut desk = open().await;
    create(&mut desk).await;
    let mut hooks = Receiver::start().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        let id = call(&mut desk, &hooks.url("/hook")).await;
        hooks.next().await;
        until(&mut desk, &id, "delivered").await;
        desk.site.shift(Span::seconds(1));
        made.insert(0, id);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = desk.read(&format!("deliveries?limit=2{cursor}")).await;
        seen.extend(page["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, made);
    let delivered = desk.read("deliveries?state=delivered&kind=callbacks").await;
    assert_eq!(delivered["data"].as_array().unwrap().len(), 5);
    assert_eq!(desk.read("deliveries?state=failed").await["data"], json!([]));
    for other in ["deliveries?state=delivered", "integrations?"] {
        let got = desk.ask("GET", &format!("{other}{cursor}"), Value::Null).await;
        assert_eq!((got.status, got.fields()), (400, vec!["cursor".to_owned()]), "{other}");
    }
    let unique: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(unique.len(), 5);
    desk.site.stop().await;
}

/// Another workspace's integrations and deliveries are not found, and a member or an auditor sees none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_the_workspaces_own() {
    let mut desk = open().await;
    let id = create(&mut desk).await["id"].as_str().unwrap().to_owned();
    let other = desk.site.node(Span::seconds(0)).await;
    let stranger = other.member(Role::Owner);
    let mut client = other.client().await;
    let path = format!("/api/w/{}/integrations/{id}", other.workspace());
    assert_eq!(stranger.ask(&mut client, "GET", &path, None).await.status, 404);
    let path = format!("/api/w/{}/integrations/{id}", desk.site.workspace());
    assert_eq!(stranger.ask(&mut client, "GET", &path, None).await.status, 404);
    for role in [Role::Member, Role::Analyst, Role::Auditor] {
        let person = desk.site.member(role);
        assert_eq!(person.ask(&mut desk.client, "GET", &path, None).await.status, 403, "{role:?}");
    }
    let admin = desk.site.member(Role::Admin);
    assert_eq!(admin.ask(&mut desk.client, "GET", &path, None).await.status, 200);
    other.stop().await;
    desk.site.stop().await;
}

/// Who is linked, and what messages are sent with: that is never shown again, and either changes alone; a name that Slack does not
/// have, a member who decides nothing and a token that is none are told by their place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bot_token_is_never_shown() {
    let mut desk = open().await;
    let (admin, analyst) = (desk.site.member(Role::Admin).principal, desk.site.member(Role::Analyst).principal);
    let config = json!({ "botToken": "xoxb-planted-0123456789", "members": { "U2CERLKJA": admin } });
    let secret = "8f742231b10e8888abcd99yyyzzz85a5";
    let made = desk.post("integrations", json!({ "kind": "slack", "secret": secret, "config": config })).await.made();
    let shown = json!({ "botTokenHint": "6789", "members": { "U2CERLKJA": admin } });
    assert_eq!((&made["config"], &made["secret"]), (&shown, &Value::Null), "what was sent is not given back");
    let wid = desk.site.workspace();
    assert_eq!(text(&made["receiveUrl"]), format!("{BASE_URL}/hooks/slack/{wid}"));
    let place = format!("integrations/{}", text(&made["id"]));
    assert_eq!(desk.read(&place).await["config"], shown);
    let members = json!({ "U2CERLKJA": admin, "W012A3CDE": desk.who.principal });
    let changed = desk.ask("PATCH", &place, json!({ "config": { "members": members } })).await.ok();
    assert_eq!(changed["config"], json!({ "botTokenHint": "6789", "members": members }));
    let changed = desk.ask("PATCH", &place, json!({ "config": { "botToken": "xoxb-another-abcdefwxyz" } })).await.ok();
    assert_eq!(changed["config"], json!({ "botTokenHint": "wxyz", "members": members }));
    let changed = desk.ask("PATCH", &place, json!({ "config": { "botToken": null } })).await.ok();
    assert_eq!(changed["config"], json!({ "botTokenHint": null, "members": members }));
    for (config, path) in [
        (json!({ "members": { "U2CERLKJA": analyst } }), "config.members.U2CERLKJA"),
        (json!({ "members": { "ann": admin } }), "config.members.ann"),
        (json!({ "members": { "U2CERLKJA": "prp_1" } }), "config.members.U2CERLKJA"),
        (json!({ "botToken": "bearer" }), "config.botToken"),
        (json!({ "repositories": [] }), "config.repositories"),
    ] {
        let got = desk.ask("PATCH", &place, json!({ "config": config })).await;
        let errors = got.json()["error"]["errors"].clone();
        assert_eq!((got.status, text(&errors[0]["field"])), (400, path), "{}", got.text());
    }
    let relay = desk.post("integrations", json!({ "kind": "relay", "config": { "members": { "ann": admin } } })).await;
    assert_eq!(relay.made()["config"], json!({ "members": { "ann": admin } }));
    let ledger: String = desk.site.ledger().iter().map(|it| format!("{}{}", it.data, it.actor)).collect();
    assert!(!["planted", "another", "U2CERLKJA"].iter().any(|it| ledger.contains(it)), "{ledger}");
    assert!(ledger.contains(&admin.to_string()));
    desk.site.audit();
    desk.site.stop().await;
}

/// The secret that signs people in goes to nobody but whom it was given for: another issuer, be it another tenant's of the same host, needs its own, which takes the place
/// of all before at once, and no detour by an empty issuer leads past that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_provider_gets_no_stored_secret() {
    let mut desk = open().await;
    let owner = desk.site.member(Role::Owner);
    let path = format!("/api/w/{}/integrations", desk.site.workspace());
    let config = json!({ "issuer": "https://idp.example.com/realms/acme", "clientId": "svc" });
    let new = json!({ "kind": "oidc", "secret": "idp-secret-0123", "config": config });
    let made = owner.ask(&mut desk.client, "POST", &path, Some(&new)).await.made();
    let place = format!("{path}/{}", text(&made["id"]));
    let kept = json!({ "secret": "another-secret-4567", "overlapHours": 24 });
    owner.ask(&mut desk.client, "POST", &format!("{place}/rotate"), Some(&kept)).await.ok();
    let mut change = async |body: Value| owner.ask(&mut desk.client, "PATCH", &place, Some(&body)).await;
    let issuer = |url: Value| json!({ "config": { "issuer": url } });
    for elsewhere in
        ["https://evil.example", "https://idp.example.com:8443/realms/acme", "https://idp.example.com/realms/other"]
    {
        let got = change(issuer(json!(elsewhere))).await;
        assert_eq!(got.refusal(), (400, "invalid_request".to_owned(), vec!["secret".to_owned()]), "{elsewhere}");
    }
    let same = change(issuer(json!("https://idp.example.com/realms/acme"))).await.ok();
    assert_eq!(same["secrets"].as_array().unwrap().len(), 2);
    change(issuer(Value::Null)).await.ok();
    assert_eq!(change(issuer(json!("https://evil.example"))).await.fields(), ["secret"]);
    let mut whole = issuer(json!("https://login.example.org"));
    whole["secret"] = json!("short");
    assert_eq!(change(whole.clone()).await.fields(), ["secret"]);
    whole["secret"] = json!("theirs-89ab");
    let moved = change(whole).await.ok();
    let hints: Vec<&Value> = moved["secrets"].as_array().unwrap().iter().map(|it| &it["hint"]).collect();
    assert_eq!((hints, moved.get("secret")), (vec![&json!("89ab")], None), "none of before is left");
    let told: Vec<String> = desk.site.ledger().iter().map(|it| it.kind.to_string()).collect();
    assert_eq!(told.iter().filter(|it| *it == "integration.rotated").count(), 2);
    desk.site.stop().await;
}
