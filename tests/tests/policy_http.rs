//! What policy says of a call before it is made: stops and holds, classes, oversight, conflicts and what would resolve them,
//! and the evidence that refusals leave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

use serde_json::{Value, json};
use svc_core::state::people::{KeyScope, Role};
use svc_core::value::Span;
use svc_tests::desk::{CHAT, Desk, MESSAGES, chat, streamed};

/// Asks in both shapes, whole and as a stream; all refuse alike and nothing is sent. The chat shape's error.
async fn refused(desk: &mut Desk, headers: &[(&str, &str)], status: u16, kind: &str) -> Value {
    let before = desk.mock.counts().requests;
    let mut told = Value::Null;
    for path in [MESSAGES, CHAT] {
        for body in [streamed("chat/large-1"), chat("chat/large-1")] {
            let got = desk.send(path, headers, body.to_string().as_bytes()).await;
            assert_eq!((got.status, got.kind().as_str()), (status, kind), "{path}: {}", got.text());
            assert_eq!(got.json()["type"] == "error", path == MESSAGES, "{path}");
            told = got.json()["error"].clone();
        }
    }
    assert_eq!(desk.mock.counts().requests, before, "nothing was sent");
    told
}

/// A frozen agent, one that was removed, and every key while all agents are held: 403 before a byte is sent, in both modes and
/// shapes, with who stopped and the hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_stopped_calls_no_model() {
    for enforced in [false, true] {
        let mut desk = Desk::new().await;
        if enforced {
            desk.enforce().await;
        }
        let (frozen, removed) = (desk.site.agent(&[]), desk.site.agent(&[]));
        let unbound = desk.key.clone();
        desk.freeze(frozen.id);
        desk.key.clone_from(&frozen.key);
        let error = refused(&mut desk, &[], 403, "agent_stopped").await;
        let told = (&error["stopped"], &error["agentId"], &error["hold"]);
        assert_eq!(told, (&json!("agent"), &json!(frozen.id.to_string()), &Value::Null), "{error}");
        assert!(error["evidenceRecord"].as_str().unwrap().starts_with("evd_"), "{error}");
        let dry = desk.chat_with(&[("x-svc-dry-run", "true")], &chat("chat/large-1")).await;
        assert_eq!((dry.status, &dry.json()["error"]["evidenceRecord"]), (403, &Value::Null), "a dry run leaves none");
        let restart = format!("agents/{}/restart", frozen.id);
        desk.post(&restart, json!({ "reason": "looked at" })).await.ok();
        desk.chat("chat/large-1").await.ok();

        assert_eq!(desk.api("DELETE", &format!("agents/{}", removed.id), None).await.status, 204);
        desk.key.clone_from(&removed.key);
        let error = refused(&mut desk, &[], 403, "agent_stopped").await;
        assert_eq!((&error["stopped"], &error["agentId"]), (&json!("agent"), &json!(removed.id.to_string())));

        let all = json!({ "selector": { "all": true }, "reason": "a leak", "confirmCount": 1 });
        let hold = desk.post("freeze", all).await.ok()["hold"].as_str().unwrap().to_owned();
        for key in [unbound.clone(), desk.site.key(KeyScope::Admin)] {
            desk.key = key;
            let error = refused(&mut desk, &[], 403, "agent_stopped").await;
            let told = (&error["stopped"], &error["agentId"], &error["hold"]);
            assert_eq!(told, (&json!("all"), &Value::Null, &json!(hold)), "{error}");
        }
        let later = desk.site.agent(&[]);
        for agent in [&frozen, &later] {
            desk.key.clone_from(&agent.key);
            let error = refused(&mut desk, &[], 403, "agent_stopped").await;
            let told = (&error["stopped"], &error["agentId"], &error["hold"]);
            assert_eq!(told, (&json!("agent"), &json!(agent.id.to_string()), &json!(hold)), "{error}");
        }
        let body = chat("chat/large-1").to_string();
        let count = desk.send("/anthropic/v1/messages/count_tokens", &[], body.as_bytes()).await;
        assert_eq!(count.status, 403, "what was written does not go out to be counted either");
        // A second owner agrees to the first one's lift.
        let asked = desk.post(&format!("holds/{hold}/lift"), json!({ "reason": "over" })).await;
        let approval = asked.json()["approval"]["id"].as_str().unwrap().to_owned();
        desk.owner = desk.site.member(Role::Owner);
        desk.post(&format!("approvals/{approval}/approve"), json!({})).await.ok();
        for key in [&unbound, &later.key] {
            desk.key.clone_from(key);
            desk.chat("chat/large-1").await.ok();
        }
        desk.site.audit();
    }
}

/// Each of the five refusals of policy leaves one record a minute for a key and a type, whose id every repeat carries; how many
/// there were is told when the minute is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_leave_a_record_a_minute() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    desk.post("task-classes", json!({ "id": "strict", "minQuality": 100 })).await.made();
    desk.post("task-classes", json!({ "id": "stop" })).await.made();
    desk.post("task-classes", json!({ "id": "ask" })).await.made();
    let over = |class: &str| json!({ "kind": "taskClass", "id": class });
    desk.budget_over(over("stop"), 1, json!([{ "at": 100, "step": "stop" }])).await;
    desk.budget_over(over("ask"), 1, json!([{ "at": 0, "step": "approval" }])).await;
    desk.api("PUT", "settings", Some(&json!({ "dataLoss": "block" }))).await.ok();
    let agent = desk.site.agent(&[]);
    let (own, other) = (desk.key.clone(), desk.site.key(KeyScope::Inference));
    let mut card = chat("auto");
    card["messages"][0]["content"] = json!("My card is 4242 4242 4242 4242.");
    desk.freeze(agent.id);
    let cases = [
        ("agent_stopped", 403, &agent.key, "stop", chat("auto")),
        ("policy_conflict", 409, &own, "strict", chat("auto")),
        ("budget_exhausted", 429, &own, "stop", chat("auto")),
        ("approval_required", 402, &own, "ask", chat("auto")),
        ("sensitive_data_blocked", 400, &own, "strict", card),
    ];
    for (kind, status, key, class, body) in &cases {
        let mut records = Vec::new();
        for minute in 0..2 {
            for _ in 0..3 {
                desk.key.clone_from(key);
                let got = desk.chat_with(&[("x-svc-task-class", class)], body).await;
                assert_eq!((got.status, got.kind().as_str()), (*status, *kind), "{}", got.text());
                records.push(got.json()["error"]["evidenceRecord"].as_str().unwrap().to_owned());
            }
            if minute == 0 && *kind != "agent_stopped" {
                desk.key.clone_from(&other);
                let got = desk.chat_with(&[("x-svc-task-class", class)], body).await;
                let own = json!(records.last());
                assert_ne!(got.json()["error"]["evidenceRecord"], own, "another key has its own: {kind}");
            }
            desk.site.advance(Span::seconds(61));
        }
        assert!(records[..3].iter().all(|it| *it == records[0]), "{kind} {records:?}");
        assert!(records[3..].iter().all(|it| *it == records[3] && *it != records[0]), "{kind} {records:?}");
        let ledger = desk.site.ledger();
        let of_kind: Vec<_> = ledger.iter().filter(|it| &*it.kind == "refusal" && it.data.contains(kind)).collect();
        for record in [&records[0], &records[3]] {
            assert!(of_kind.iter().any(|it| it.id.to_string() == *record), "{kind}");
            let told =
                of_kind.iter().filter(|it| it.data.contains(record.as_str()) && it.data.contains("\"repeats\":2"));
            assert_eq!(told.count(), 1, "{kind}: {of_kind:?}");
        }
        assert!(of_kind.iter().all(|it| !it.data.contains("4242")), "{kind}");
    }
    desk.site.audit();
}

/// In enforce a call needs a class: its own, its key's or the workspace's. A key that is bound to one is used for no other,
/// unless it is open; an unknown one is told with what was probably meant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_has_the_class_that_its_key_allows() {
    let mut desk = Desk::new().await;
    for class in ["support.reply", "support.triage"] {
        desk.post("task-classes", json!({ "id": class })).await.made();
    }
    desk.chat("chat/large-1").await.ok();
    let call = desk.read("calls?limit=1").await["data"][0].clone();
    assert_eq!((&call["taskClass"], &call["mode"]), (&Value::Null, &json!("shadow")), "shadow needs none");
    desk.routing(json!({ "mode": "enforce" })).await;
    let error = refused(&mut desk, &[], 400, "unclassified_request").await;
    assert!(error["fix"].is_string());
    let got = desk.chat_with(&[("x-svc-task-class", "support.reply")], &chat("auto")).await;
    assert_eq!(desk.call_of(&got).await["taskClass"], json!("support.reply"));
    let error = refused(&mut desk, &[("x-svc-task-class", "support.repyl")], 400, "unknown_task_class").await;
    assert_eq!(error["didYouMean"], json!("support.reply"));
    let (bound, binding) = desk.key_with(json!({ "taskClassId": "support.reply" })).await;
    assert_eq!((&binding["taskClassId"], &binding["taskClassOpen"]), (&json!("support.reply"), &json!(false)));
    desk.key = bound;
    let got = desk.chat("auto").await;
    let call = desk.call_of(&got).await;
    let told = (&call["taskClass"], &call["keyId"], &call["principalId"]);
    assert_eq!(told, (&json!("support.reply"), &binding["id"], &binding["principalId"]));
    let got = desk.chat_with(&[("x-svc-task-class", "support.reply")], &chat("auto")).await;
    got.ok();
    refused(&mut desk, &[("x-svc-task-class", "support.triage")], 403, "forbidden").await;
    let (open, _) = desk.key_with(json!({ "taskClassId": "support.reply", "taskClassOpen": true })).await;
    desk.key = open;
    let got = desk.chat_with(&[("x-svc-task-class", "support.triage")], &chat("auto")).await;
    assert_eq!(desk.call_of(&got).await["taskClass"], json!("support.triage"));
    desk.routing(json!({ "defaultTaskClass": "support.triage" })).await;
    desk.key = desk.site.agent(&[]).key;
    let got = desk.chat("auto").await;
    assert_eq!(desk.call_of(&got).await["taskClass"], json!("support.triage"));
}

/// A key binds its traffic to a principal, a team and a policy profile, whose mode goes before the workspace's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_binds_its_traffic() {
    let mut desk = Desk::new().await;
    desk.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let person = desk.site.member(Role::Member).principal.to_string();
    let team = desk.post("teams", json!({ "name": "Desk" })).await.made()["id"].clone();
    let profile = json!({ "name": "Small", "mode": "enforce", "models": ["chat/small-1"] });
    let profile = desk.post("policy-profiles", profile).await.made()["id"].clone();
    let wish = json!({ "principalId": person, "teamId": team, "taskClassId": "support.reply", "policyProfileId": profile,
        "label": "bound" });
    let (key, binding) = desk.key_with(wish.clone()).await;
    for (member, value) in wish.as_object().unwrap() {
        assert_eq!(&binding[member], value, "{member}");
    }
    assert_eq!(binding["scope"], json!("inference"));
    desk.key = key;
    let got = desk.chat("chat/large-1").await;
    got.ok();
    assert_eq!(got.header("x-svc-routed-to"), Some("chat/small-1"));
    let call = desk.call_of(&got).await;
    for (member, value) in [
        ("principalId", json!(person)),
        ("teamId", team),
        ("taskClass", json!("support.reply")),
        ("mode", json!("enforce")),
        ("requestedModel", json!("chat/large-1")),
        ("model", json!("small-1")),
        ("provider", json!("chat")),
        ("keyId", binding["id"].clone()),
    ] {
        assert_eq!(call[member], value, "{member}");
    }
    desk.routing(json!({ "mode": "enforce", "defaultTaskClass": "support.reply" })).await;
    let profile = desk.post("policy-profiles", json!({ "name": "Watch", "mode": "shadow" })).await.made()["id"].clone();
    desk.key = desk.key_with(json!({ "policyProfileId": profile })).await.0;
    let got = desk.chat("chat/large-1").await;
    assert_eq!(got.header("x-svc-enforcement"), Some("shadow"));
    for (member, value) in [("policyProfileId", "pol_nothing"), ("taskClassId", "no.such"), ("teamId", "team_x")] {
        let got = desk.post("keys", json!({ member: value })).await;
        assert_eq!((got.status, got.fields()), (400, vec![member.to_owned()]), "{}", got.text());
    }
}

/// Work that a person has to oversee is done where the header says that one does, and that is kept with the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversight_is_acknowledged() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    desk.post("task-classes", json!({ "id": "medical", "humanOversight": true })).await.made();
    let class = ("x-svc-task-class", "medical");
    let error = refused(&mut desk, &[class], 409, "policy_conflict").await;
    assert_eq!(error["bindingConstraint"], json!("human_oversight"), "{error}");
    let relaxation = &error["relaxations"][0];
    assert_eq!(relaxation["constraint"], json!("human_oversight"), "{error}");
    assert!(relaxation["change"].as_str().unwrap().contains("x-svc-human-oversight"), "{error}");
    assert!(!relaxation["admits"].as_array().unwrap().is_empty(), "{error}");
    assert!(error["evidenceRecord"].is_string());
    let header = ("x-svc-human-oversight", "acknowledged");
    let got = desk.chat_with(&[class, header], &chat("auto")).await;
    got.ok();
    assert_eq!(desk.call_of(&got).await["humanOversight"], json!("acknowledged"));
    let got = desk.chat("auto").await;
    assert_eq!(desk.call_of(&got).await["humanOversight"], Value::Null);
    for value in ["yes", "", "Acknowledged"] {
        let got = desk.chat_with(&[class, ("x-svc-human-oversight", value)], &chat("auto")).await;
        assert_eq!(got.fields(), ["x-svc-human-oversight"], "{value}: {}", got.text());
    }
}

/// A conflict names what binds and single changes, each of which admits what it says once it is made; shadow carries the call
/// all the same and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_names_what_would_resolve_it() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    let strict = json!({ "id": "strict", "minQuality": 70, "maxCostMicros": 600, "jurisdictions": ["eu"] });
    desk.post("task-classes", strict).await.made();
    let class = ("x-svc-task-class", "strict");
    let error = refused(&mut desk, &[class], 409, "policy_conflict").await;
    assert!(["quality", "cost"].contains(&error["bindingConstraint"].as_str().unwrap()), "{error}");
    let told: Vec<&str> =
        error["relaxations"].as_array().unwrap().iter().map(|it| it["constraint"].as_str().unwrap()).collect();
    assert_eq!(told, ["quality", "cost"], "{error}");
    for (change, back) in [
        (json!({ "minQuality": 50 }), json!({ "minQuality": 70 })),
        (json!({ "maxCostMicros": 5_000 }), json!({ "maxCostMicros": 600 })),
    ] {
        desk.api("PATCH", "task-classes/strict", Some(&change)).await.ok();
        let got = desk.chat_with(&[class], &chat("auto")).await;
        got.ok();
        let routed = got.header("x-svc-routed-to").unwrap().to_owned();
        let admits: Vec<&Value> = error["relaxations"].as_array().unwrap().iter().map(|it| &it["admits"]).collect();
        assert!(admits.iter().any(|it| it.as_array().unwrap().contains(&json!(routed))), "{routed} {error}");
        desk.api("PATCH", "task-classes/strict", Some(&back)).await.ok();
    }
    desk.routing(json!({ "mode": "shadow" })).await;
    let got = desk.chat_with(&[class], &chat("chat/large-1")).await;
    got.ok();
    assert!(got.header("x-svc-advisory").unwrap().contains("no model would qualify"), "{got:?}");
    assert_eq!((got.header("x-svc-would-route-to"), got.header("x-svc-routed-to")), (None, None));
}

/// Two credentials that differ are no credential; the same one twice is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_differ_are_refused() {
    let mut desk = Desk::new().await;
    let (own, other) = (desk.key.clone(), desk.site.key(KeyScope::Inference));
    let got = desk.chat_with(&[("x-api-key", &other)], &chat("chat/large-1")).await;
    assert_eq!((got.status, got.kind().as_str()), (400, "invalid_request"), "{}", got.text());
    let got = desk.chat_with(&[("x-api-key", &own)], &chat("chat/large-1")).await;
    got.ok();
    let body = chat("chat/large-1").to_string();
    for (path, key) in [(CHAT, "ask_nothing"), (MESSAGES, "ask_nothing"), (CHAT, "")] {
        let got = desk.client.ask("POST", path, &[("x-api-key", key)], body.as_bytes()).await;
        assert_eq!(got.status, 401, "{}", got.text());
    }
}
