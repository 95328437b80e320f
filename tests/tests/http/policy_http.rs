//! What policy says of a call before it is made: stops and holds, classes, oversight, conflicts and what would resolve them,
//! and the evidence that refusals leave.

use serde_json::{Value, json};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::state::people::{KeyScope, Role};
use svc_core::value::Span;
use svc_tests::client::{PATIENCE, bearer};
use svc_tests::desk::{CHAT, Desk, MESSAGES, chat, streamed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

const COUNT: &str = "/anthropic/v1/messages/count_tokens";
const OUTCOMES: &str = "/v1/outcomes";
const PREVIEW: &str = "/v1/route/preview";
/// A body that is sent as a packed one.
const PACKED: &str = "packed";

/// Asks with the desk's key; what is told, where it is a refusal.
async fn told(desk: &mut Desk, method: &str, path: &str, body: &str) -> (u16, String, bool) {
    let key = bearer(&desk.key);
    // What is packed is refused before anybody looks at it.
    let packed = if body == PACKED { "gzip" } else { "identity" };
    let headers = [("authorization", &*key), ("content-encoding", packed)];
    let got = desk.client.ask(method, path, &headers, body.as_bytes()).await;
    if got.status < 300 {
        return (got.status, String::new(), false);
    }
    let evidence = got.json()["error"]["evidenceRecord"].as_str().is_some_and(|it| it.starts_with("evd_"));
    (got.status, got.kind(), evidence)
}

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
        assert_eq!((dry.status, &dry.json()["error"]["evidenceRecord"]), (403, &error["evidenceRecord"]), "a dry run");
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
            assert!(error["fix"].as_str().unwrap().contains("lift the hold"), "starting agents is no use: {error}");
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

/// A removed agent's keys read and report nothing any more: each route says so in its own words, on the record where the agent
/// is stopped. One that was revoked or has ended by itself is told that, before and after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_agents_keys_do_nothing() {
    let mut desk = Desk::new().await;
    let agent = desk.site.agent(&[]);
    let revoked = desk.site.key(KeyScope::Agent(agent.id));
    let brief = format!("ask_{}", "b".repeat(43));
    let until = Some(desk.site.now().plus(Span::hours(1)));
    let scope = KeyScope::Agent(agent.id);
    let made = CreateKey::new(desk.site.workspace(), By::Program, scope, NewKey::of(&brief));
    desk.site.gate.execute(CreateKey { expires_at: until, ..made }).unwrap();
    desk.key.clone_from(&agent.key);
    let got = desk.chat_with(&[("x-svc-task-id", "tsk_own")], &chat("chat/large-1")).await;
    let call = format!("/v1/calls/{}", got.header("x-svc-call-id").unwrap());
    let report = json!({ "taskId": "tsk_own", "status": "accepted" }).to_string();
    let (asked, listed) = (chat("chat/large-1").to_string(), "/anthropic/v1/models");
    let routes = [
        ("POST", OUTCOMES, &*report, (403, "agent_stopped")),
        ("GET", &*call, "", (403, "agent_stopped")),
        ("POST", CHAT, &*asked, (403, "agent_stopped")),
        ("POST", COUNT, &*asked, (403, "agent_stopped")),
        ("GET", "/v1/models", "", (403, "agent_stopped")),
        ("GET", listed, "", (403, "agent_stopped")),
        ("POST", PREVIEW, "{}", (403, "agent_stopped")),
        ("GET", "/v1/admin/upstreams", "", (403, "missing_scope")),
        ("GET", "/v1/evidence", "", (403, "missing_scope")),
        ("GET", "/v1/actions/x", "", (403, "agent_not_found")),
    ];
    for key in [&revoked, &brief] {
        desk.key.clone_from(key);
        assert_eq!(told(&mut desk, "POST", OUTCOMES, &report).await.0, 200, "while it is in force");
    }
    desk.site.revoke(&revoked);
    let delete = format!("agents/{}", agent.id);
    assert_eq!(desk.api("DELETE", &delete, None).await.status, 204);
    for (method, path, body, refused) in &routes {
        desk.key.clone_from(&agent.key);
        let (status, kind, evidence) = told(&mut desk, method, path, body).await;
        assert_eq!((status, kind.as_str()), *refused, "{path}");
        assert_eq!(evidence, kind == "agent_stopped", "{path}");
        desk.key.clone_from(&revoked);
        let (status, kind, _) = told(&mut desk, method, path, body).await;
        assert_eq!((status, kind.as_str()), (401, "invalid_api_key"), "{path}");
    }
    desk.site.advance(Span::hours(1));
    desk.key.clone_from(&brief);
    for (method, path, body, _) in &routes {
        let (status, kind, _) = told(&mut desk, method, path, body).await;
        assert_eq!((status, kind.as_str()), (401, "invalid_api_key"), "{path}");
    }
}

/// Who may not ask at all is told that before anything that is wrong with what they ask: a key that was revoked, an agent that
/// is stopped. A frozen agent may report and read what was, and is told those faults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_comes_before_the_request() {
    let mut desk = Desk::new().await;
    let agent = desk.site.agent(&[]);
    let revoked = desk.site.key(KeyScope::Agent(agent.id));
    let routes = [
        (CHAT, "{}", Some(400)),
        (CHAT, "{", Some(400)),
        (CHAT, PACKED, Some(400)),
        (MESSAGES, "{}", Some(400)),
        (COUNT, "[]", Some(400)),
        (OUTCOMES, "{}", None),
        (OUTCOMES, PACKED, None),
        ("/v1/calls/x", "", None),
    ];
    let method = |path: &str| if path.starts_with("/v1/calls") { "GET" } else { "POST" };
    desk.key.clone_from(&revoked);
    for (path, body, status) in &routes {
        let fault = told(&mut desk, method(path), path, body).await.0;
        assert!(status.is_none_or(|it| it == fault) && matches!(fault, 400 | 404), "{path} {fault}");
    }
    desk.site.revoke(&revoked);
    for (path, body, _) in &routes {
        let (status, kind, _) = told(&mut desk, method(path), path, body).await;
        assert_eq!((status, kind.as_str()), (401, "invalid_api_key"), "{path}");
    }
    desk.freeze(agent.id);
    desk.key.clone_from(&agent.key);
    for (path, body, called) in &routes {
        let (status, kind, evidence) = told(&mut desk, method(path), path, body).await;
        match called {
            Some(_) => assert_eq!((status, kind.as_str(), evidence), (403, "agent_stopped", true), "{path}"),
            None => assert!(matches!(status, 400 | 404), "{path} {kind}"),
        }
    }
}

/// Counting a request's tokens is refused as the call would be, and on the record, by all but what a call may cost: it costs
/// nothing, reserves nothing and counts as no call. A dry run of it ends alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_counting_is_refused_with_is_kept() {
    let mut desk = Desk::new().await;
    // Of a thousand tokens that are not made the longest answer would cost fifteen thousand.
    let class = json!({ "id": "frugal", "models": ["messages/large-1"], "maxCostMicros": 10_000 });
    desk.post("task-classes", class).await.made();
    desk.routing(json!({ "mode": "enforce", "defaultTaskClass": "frugal" })).await;
    let agent = desk.site.agent(&[]);
    let mut asked = chat("messages/large-1");
    asked.as_object_mut().unwrap().remove("max_tokens");
    let asked = asked.to_string();
    let call = told(&mut desk, "POST", CHAT, &asked).await;
    assert_eq!((call.0, call.1.as_str()), (409, "policy_conflict"), "the call itself is too dear");
    for ladder in [json!([{ "at": 100, "step": "stop" }]), json!([{ "at": 0, "step": "approval" }])] {
        let budget = desk.budget(1, ladder).await;
        assert_eq!(told(&mut desk, "POST", COUNT, &asked).await.0, 200);
        let at = desk.budget_at(&budget).await;
        assert_eq!((&at["spentMicros"], &at["reservedMicros"]), (&json!(0), &json!(0)), "{at}");
        let call = told(&mut desk, "POST", CHAT, &chat("messages/large-1").to_string()).await;
        assert!(matches!(call.0, 402 | 429), "the call itself is refused: {call:?}");
        assert_eq!(desk.api("DELETE", &format!("budgets/{budget}"), None).await.status, 204);
    }
    assert_eq!(desk.read("approvals?kind=budget").await["data"].as_array().unwrap().len(), 1, "the call's own");
    assert_eq!(desk.read("calls").await["data"], json!([]), "it is no call");
    desk.freeze(agent.id);
    desk.key.clone_from(&agent.key);
    let dry = desk.send(COUNT, &[("x-svc-dry-run", "true")], asked.as_bytes()).await;
    assert!(dry.status == 403 && dry.json()["error"]["evidenceRecord"].is_string(), "{}", dry.text());
    let (status, kind, evidence) = told(&mut desk, "POST", COUNT, &asked).await;
    assert_eq!((status, kind.as_str(), evidence), (403, "agent_stopped", true));
    let ledger = desk.site.ledger();
    let kept = ledger.iter().filter(|it| &*it.kind == "refusal" && it.data.contains("agent_stopped")).count();
    assert_eq!(kept, 1);
    desk.site.audit();
}

/// An agent that is stopped while a model is tried gets no other, and that refusal is on the record too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_stopped_between_two_tries_is_refused_on_the_record() {
    let mut desk = Desk::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let id = desk.upstream("hand", "chat", &url).await;
    desk.model(&id, "best-1", 99, 3, 15).await;
    desk.enforce().await;
    let agent = desk.site.agent(&[]);
    desk.key.clone_from(&agent.key);
    let mut client = desk.begin(CHAT, &[("x-svc-objective", "quality")], &chat("auto")).await;
    let (mut provider, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    assert_ne!(provider.read(&mut [0; 4_096]).await.unwrap(), 0);
    desk.freeze(agent.id);
    let no = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    // The call may be cut off before it comes.
    let _ = provider.write_all(no).await;
    let mut heard = String::new();
    timeout(PATIENCE, client.read_to_string(&mut heard)).await.unwrap().unwrap();
    assert!(heard.contains("403 Forbidden") && heard.contains("agent_stopped"), "{heard}");
    assert!(heard.contains("\"evidenceRecord\":\"evd_"), "{heard}");
    assert_eq!(desk.mock.counts().requests, 0, "nobody else was asked");
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
        assert!(of_kind.iter().all(|it| !it.data.contains(" 4242")), "{kind}");
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

/// Where a prompt is too long for every model, it is told in the words that clients of either API know, and `context` is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_too_long_for_every_model_is_told_as_one() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    let mut body = chat("auto");
    body["messages"][0]["content"] = json!("word ".repeat(400_000));
    for path in [CHAT, MESSAGES] {
        let got = desk.send(path, &[], body.to_string().as_bytes()).await;
        let error = got.json()["error"].clone();
        assert_eq!((got.status, &error["type"]), (409, &json!("policy_conflict")), "{error}");
        assert_eq!(
            (&error["bindingConstraint"], &error["code"]),
            (&json!("context"), &json!("context_length_exceeded"))
        );
        assert!(error["message"].as_str().unwrap().starts_with("prompt is too long: "), "{error}");
    }
    // Where it is the answer that would be, no shorter prompt helps.
    let mut body = chat("auto");
    body["max_tokens"] = json!(100_000_000);
    let got = desk.send(CHAT, &[], body.to_string().as_bytes()).await;
    let error = got.json()["error"].clone();
    assert_eq!((got.status, &error["bindingConstraint"]), (409, &json!("context")), "{error}");
    assert!(error["code"].is_null() && !error["message"].as_str().unwrap().contains("too long"), "{error}");
}

/// Which model answers, under which law and with which tools of the provider's is policy's where it acts, wherever a request
/// says otherwise: it is refused, and told what to leave out or to price. A provider of the other shape gets none of it; in
/// shadow it goes on as it came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_to_the_provider_is_policys() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    for kind in ["chat", "messages"] {
        let class = json!({ "id": kind, "models": [format!("{kind}/large-1")], "jurisdictions": ["eu"] });
        desk.post("task-classes", class).await.made();
    }
    let prices = json!({ "input": 3_000_000, "output": 15_000_000, "inferenceGeos": { "us": 110 } });
    desk.api("PATCH", "models/messages/large-1", Some(&json!({ "prices": prices }))).await.ok();
    let search = json!({ "type": "web_search_20250305", "name": "web_search" });
    let added = json!({ "type": "tool_addition", "tool": { "type": "tool_definition", "definition": search } });
    let system = json!([{ "role": "user", "content": "x" }, { "role": "system", "content": [added] }]);
    let server = json!([{ "type": "url", "url": "https://tools.example/mcp", "name": "tools" }]);
    let cases = [
        ("fallbacks", json!([{ "model": "dear" }]), "messages", ("models", "leave out `fallbacks`")),
        ("models", json!(["a/b"]), "chat", ("models", "leave out `models`")),
        ("inference_geo", json!("us"), "messages", ("jurisdiction", "leave out `inference_geo`")),
        ("provider", json!({ "order": ["a"] }), "chat", ("jurisdiction", "leave out `provider`")),
        ("plugins", json!([{ "id": "web" }]), "chat", ("price", "set a price for `chat/large-1`")),
        ("messages", system, "messages", ("price", "set a price for `messages/large-1`")),
        ("mcp_servers", server.clone(), "messages", ("price", "set a price for `messages/large-1`")),
    ];
    let ask = |kind: &str, member: &str, value: &Value| {
        let mut body = chat(&format!("{kind}/large-1"));
        body[member] = value.clone();
        (if kind == "chat" { CHAT } else { MESSAGES }, body.to_string())
    };
    for (member, value, kind, (constraint, change)) in &cases {
        let (path, body) = ask(kind, member, value);
        let before = desk.mock.counts().requests;
        let got = desk.send(path, &[("x-svc-task-class", kind)], body.as_bytes()).await;
        assert_eq!((got.status, got.kind().as_str()), (409, "policy_conflict"), "{member}: {}", got.text());
        let relaxations = got.json()["error"]["relaxations"].as_array().unwrap().clone();
        let told = |it: &Value| it["constraint"] == *constraint && it["change"].as_str().unwrap().starts_with(change);
        assert!(relaxations.iter().any(told), "{member}: {}", got.text());
        assert_eq!(desk.mock.counts().requests, before, "{member}: nothing was sent");
    }
    let (path, body) = ask("messages", "fallbacks", &json!("default"));
    let got = desk.send(path, &[("x-svc-task-class", "chat")], body.as_bytes()).await;
    got.ok();
    assert_eq!(got.header("x-svc-routed-to"), Some("chat/large-1"), "{got:?}");
    desk.routing(json!({ "mode": "shadow" })).await;
    // The stand-in knows no message of the system's.
    for (member, value, kind, _) in cases.iter().filter(|it| it.0 != "messages") {
        let (path, body) = ask(kind, member, value);
        let got = desk.send(path, &[("x-svc-task-class", kind)], body.as_bytes()).await;
        got.ok();
        let advisory = got.header("x-svc-advisory").unwrap();
        assert!(advisory.contains("no model would qualify"), "{member}: {got:?}");
        let unpriced = *member != "inference_geo";
        assert_eq!(advisory.contains("no price"), unpriced, "{member}: {got:?}");
        assert_eq!(desk.call_of(&got).await["unpriced"], json!(unpriced), "{member}");
    }
}

/// Where policy asks that nothing be kept, what would have a provider keep it is refused and told what to leave out; where it does
/// not, and at a provider of the other shape, it is no matter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_provider_is_to_keep_is_policys() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    for kind in ["chat", "messages"] {
        let kept_not = json!({ "retention": "none" });
        desk.api("PATCH", &format!("models/{kind}/large-1"), Some(&kept_not)).await.ok();
        let class = json!({ "id": kind, "models": [format!("{kind}/large-1")], "retention": "none" });
        desk.post("task-classes", class).await.made();
    }
    for (member, value, told) in [
        ("store", json!(true), "store"),
        ("prompt_cache_retention", json!("24h"), "prompt_cache_retention"),
        ("provider", json!({ "data_collection": "allow" }), "provider.data_collection"),
    ] {
        let mut body = chat("chat/large-1");
        body[member] = value.clone();
        let got = desk.chat_with(&[("x-svc-task-class", "chat")], &body).await;
        let error = got.json()["error"].clone();
        assert_eq!((got.status, &error["type"]), (409, &json!("policy_conflict")), "{member}: {error}");
        let change = json!(format!("leave out `{told}`"));
        let is_told = |it: &Value| it["constraint"] == "retention" && it["change"] == change;
        assert!(error["relaxations"].as_array().unwrap().iter().any(is_told), "{error}");
        desk.chat_with(&[("x-svc-task-class", "messages")], &body).await.ok();
        desk.chat_with(&[], &body).await.ok();
        let sent: Value = serde_json::from_slice(&desk.mock.heard().pop().unwrap().body).unwrap();
        assert_eq!(sent[member], value, "what policy does not speak of goes on");
    }
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
