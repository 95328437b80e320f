//! Two servers on one store, over real sockets: whichever of them is asked, there is one answer. Each of what one process might
//! keep to itself is changed at one of them and looked for at the other, told of it or not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::signing_key::Leaked;
use svc_core::state::evidence::Entry;
use svc_core::state::people::{KeyScope, Purpose, Role, Settings};
use svc_core::testing::FakeClock;
use svc_core::value::text::Note;
use svc_core::value::{Span, Timestamp};
use svc_http::upstream::Allowed;
use svc_tests::client::{Client, Got, PATIENCE, bearer, request};
use svc_tests::desk::{CHAT, Desk, chat, streamed};
use svc_tests::people::{Person, ask};
use svc_tests::race::{CLIENTS, at_once};
use svc_tests::requests::{OFFICE, WIDE, charge, payment, payment_to, text, with};
use svc_tests::site::{Agent, Plan, Site};
use svc_tests::tool_desk::{ToolDesk, calling, text as result_text};
use svc_tests::tool_server::Speaks;
use svc_tests::watch::Watch;
use svc_tests::wire::Wire;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Two servers on one store, that hear of each other over this.
async fn pair_over(wire: &Wire, change: impl Fn(&mut Plan)) -> (Site, Site) {
    let first = Site::with(|plan| {
        plan.wire = Some(wire.clone());
        change(plan);
    });
    let first = first.await;
    let second = first.beside(change).await;
    (first, second)
}

async fn pair() -> (Site, Site) {
    pair_over(&Wire::new(), |_| {}).await
}

/// Ends both, and reads what they left behind.
async fn end(first: Site, second: Site) {
    first.audit();
    second.stop().await;
    first.stop().await;
}

fn count(heard: &[Got], is: impl Fn(&Value) -> bool) -> usize {
    heard.iter().filter(|it| is(&it.ok())).count()
}

/// What is looked for once a second comes within this, on a machine that has much else to do.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), what).await.expect("it comes soon")
}

fn freeze(site: &Site, agent: &Agent) {
    let (workspace, reason) = (site.workspace(), Note::parse("test").unwrap());
    site.gate.execute(FreezeAgent { workspace, agent: agent.id, by: By::Program, reason }).unwrap();
}

fn path(site: &Site, end: &str) -> String {
    format!("/api/w/{}/{end}", site.workspace())
}

/// What has been written of this kind.
fn records(site: &Site, kind: &str) -> usize {
    site.ledger().iter().filter(|it: &&Arc<Entry>| &*it.kind == kind).count()
}

/// What is allowed in a period by two servers together reaches its limit and never passes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_one_limit_at_both() {
    let (first, second) = pair().await;
    let limited = r#"{"name":"Day","actions":["payment"],"duplicates":"record",
        "limits":{"currency":"EUR","perAction":1000,"perPeriod":{"amount":10300,"period":"day"}}}"#;
    let agent = first.agent(&[limited]);
    let heard = at_once(&[first.address, second.address], |mut client, place| {
        let (key, body) = (agent.key.clone(), payment_to(1_000, &format!("m{place}.example.org")));
        async move { client.authorize(&key, &body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["decision"] == "allow"), 10);
    assert_eq!(count(&heard, |it| it["decision"] == "deny"), CLIENTS - 10);
    end(first, second).await;
}

/// A budget of model calls that fits ten at once is never passed by the calls of both, and nothing stays held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_is_one_budget_at_both() {
    let mut desk = Desk::with(|plan| plan.wire = Some(Wire::new())).await;
    let second = desk.site.beside(|plan| plan.config.outbound.allow = Allowed::loopback()).await;
    desk.enforce().await;
    let stop = json!([{ "at": 100, "step": "stop" }]);
    let probe = desk.budget(1_000_000_000, stop.clone()).await;
    let dry = desk.chat_with(&[("x-svc-dry-run", "true")], &chat("chat/large-1")).await.ok();
    let worst = dry["budgets"][0]["thisCallMicros"].as_u64().unwrap();
    assert_eq!(desk.api("DELETE", &format!("budgets/{probe}"), None).await.status, 204);
    let budget = desk.budget(worst * 10, stop).await;
    desk.mock.turn("head-300").unwrap();
    let key = bearer(&desk.key);
    let heard = at_once(&[desk.site.address, second.address], |mut client, _| {
        let key = key.clone();
        async move {
            let body = chat("chat/large-1").to_string();
            client.ask("POST", CHAT, &[("authorization", &key)], body.as_bytes()).await
        }
    })
    .await;
    let with = |status: u16| heard.iter().filter(|it| it.status == status).count();
    assert!(with(200) >= 10 && with(200) + with(429) == CLIENTS, "{:?}", heard.iter().map(|it| it.status));
    let at = desk.budget_at(&budget).await;
    assert!(at["spentMicros"].as_u64().unwrap() <= worst * 10, "{at}");
    assert_eq!((&at["reservedMicros"], &at["reservations"]), (&json!(0), &json!([])), "{at}");
    drop((desk.client, desk.owner));
    end(desk.site, second).await;
}

/// What one server allows is good once, whoever of both is shown it; what it is retried with gets the same answer at the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_happen_once_happens_once_at_both() {
    let (first, second) = pair().await;
    let agent = first.agent(&[OFFICE]);
    let heard = at_once(&[first.address, second.address], |mut client, _| {
        let key = agent.key.clone();
        async move { client.authorize_once(&key, "order-1", &payment(4_900)).await }
    })
    .await;
    let decision = heard[0].ok();
    assert!(heard.iter().all(|it| it.ok() == decision));
    let replays = heard.iter().filter(|it| it.header("idempotent-replayed") == Some("true")).count();
    assert_eq!(replays, CLIENTS - 1);
    let other = second.client().await.authorize_once(&agent.key, "order-1", &payment(5_000)).await;
    assert_eq!((other.status, other.kind().as_str()), (409, "idempotency_conflict"));
    let heard = at_once(&[first.address, second.address], |mut client, _| {
        let body = charge(&decision["receipt"], 4_900);
        async move { client.verify(&body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["valid"] == json!(true)), 1);
    assert_eq!(count(&heard, |it| it["reason"] == "already_consumed"), CLIENTS - 1);
    let id = text(&decision["id"]).to_owned();
    let done = json!({ "status": "completed", "amount": 4_900 });
    second.client().await.settle(&agent.key, &id, &done).await.ok();
    assert_eq!(first.client().await.settle(&agent.key, &id, &done).await.kind(), "already_settled");
    end(first, second).await;
}

/// A stop at one server is a stop at the other from its answer on, whatever that one remembers, and cuts what runs there: at once
/// where it is told, within a moment where it is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_at_one_stops_at_the_other() {
    for wire in [Wire::new(), Wire::silent()] {
        let mut desk = Desk::bare(|plan| plan.wire = Some(wire.clone())).await;
        let upstream = desk.upstream("chat", "chat", &desk.mock.chat_url()).await;
        desk.model(&upstream, "m--stall-3", 50, 1, 2).await;
        let second = desk.site.beside(|plan| plan.config.outbound.allow = Allowed::loopback()).await;
        let (agent, bystander) = (desk.site.agent(&[WIDE]), desk.site.agent(&[WIDE]));
        let mut client = second.client().await;
        let allowed = client.authorize(&agent.key, &payment(100)).await.ok();
        assert_eq!(allowed["decision"], "allow");
        let mut streams = Vec::new();
        for key in [&agent.key, &bystander.key] {
            let mut socket = TcpStream::connect(second.address).await.unwrap();
            let body = streamed("chat/m--stall-3").to_string();
            let headers = [("authorization", &*bearer(key)), ("connection", "close")];
            socket.write_all(&request("POST", CHAT, &headers, body.as_bytes())).await.unwrap();
            let mut heard = vec![0; 400];
            timeout(PATIENCE, socket.read_exact(&mut heard)).await.unwrap().unwrap();
            assert!(heard.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&heard));
            streams.push(socket);
        }
        freeze(&desk.site, &agent);
        let refused = client.authorize(&agent.key, &payment_to(100, "other.example.org")).await.ok();
        assert_eq!((&refused["decision"], &refused["reasons"][0]["code"]), (&json!("deny"), &json!("agent_frozen")));
        let verdict = client.verify(&charge(&allowed["receipt"], 100)).await.ok();
        assert_eq!(verdict["reason"], "revoked");
        let called = client.post(CHAT, &agent.key, &chat("chat/m--stall-3")).await;
        assert_eq!((called.status, called.kind().as_str()), (403, "agent_stopped"));
        let mut rest = Vec::new();
        soon(streams[0].read_to_end(&mut rest)).await.unwrap();
        let rest = String::from_utf8_lossy(&rest).into_owned();
        assert!(rest.contains("agent_stopped"), "{rest}");
        assert_eq!(client.authorize(&bystander.key, &payment(100)).await.ok()["decision"], "allow");
        drop(streams);
        drop((desk.client, desk.owner));
        end(desk.site, second).await;
    }
}

/// A wait that begins at one server is decided at the other: the first reads so at once, and those who watch there hear of it, also
/// where no notice comes, and again after the connection that it came over broke.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_at_one_is_heard_at_the_other() {
    for (wire, breaks) in [(Wire::new(), false), (Wire::silent(), false), (Wire::new(), true)] {
        let (first, second) = pair_over(&wire, |_| {}).await;
        let (owner, agent) = (first.member(Role::Owner), first.agent(&[OFFICE]));
        first.gate.tick().unwrap();
        let mut watch = Watch::open(&second, &owner.sid, None).await;
        let (mut there, mut here) = (second.client().await, first.client().await);
        let asked = there.authorize(&agent.key, &payment(30_000)).await.ok();
        assert_eq!(asked["status"], "pending");
        if breaks {
            wire.cut();
        }
        let approve = path(&first, &format!("approvals/{}/approve", text(&asked["approval"]["id"])));
        owner.ask(&mut here, "POST", &approve, Some(&json!({}))).await.ok();
        let read = there.read_action(&agent.key, text(&asked["id"])).await.ok();
        assert_eq!((&read["decision"], &read["status"]), (&json!("allow"), &json!("allowed")));
        first.gate.tick().unwrap();
        let waits = soon(watch.next()).await.unwrap();
        assert_eq!(waits.name, "approval.waiting");
        let mut moved = Watch::open(&first, &owner.sid, waits.id).await;
        for name in ["approval.decided", "action.decided"] {
            let told = soon(watch.next()).await.unwrap();
            assert_eq!(told.name, name);
            assert_eq!(moved.next().await.unwrap(), told, "a stream goes on at the other where it was");
        }
        drop((watch, moved, here, there));
        end(first, second).await;
    }
}

/// A session that ended, a role that was lowered and a key that was revoked at one server count at the other, which has just used
/// them; whoever watches there hears nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_away_at_one_is_gone_at_the_other() {
    for wire in [Wire::new(), Wire::silent()] {
        let (first, second) = pair_over(&wire, |_| {}).await;
        let (owner, admin, agent) = (first.member(Role::Owner), first.member(Role::Admin), first.agent(&[WIDE]));
        let (mut here, mut there) = (first.client().await, second.client().await);
        let key = first.key(KeyScope::Inference);
        let settings = path(&second, "settings");
        assert_eq!(there.authorize(&agent.key, &payment(100)).await.ok()["decision"], "allow");
        assert_eq!(there.get("/v1/models", &key).await.status, 200);
        admin.ask(&mut there, "GET", &settings, None).await.ok();
        owner.ask(&mut there, "GET", &settings, None).await.ok();
        let mut watch = Watch::open(&second, &admin.sid, None).await;

        let member = path(&first, &format!("members/{}", admin.principal));
        owner.ask(&mut here, "PATCH", &member, Some(&json!({ "role": "member" }))).await.ok();
        let lowered = admin.ask(&mut there, "PUT", &settings, Some(&json!({}))).await;
        assert_eq!((lowered.status, lowered.kind().as_str()), (403, "forbidden"), "{lowered:?}");
        first.revoke(&key);
        assert_eq!(there.get("/v1/models", &key).await.kind(), "invalid_api_key");
        first.revoke(&agent.key);
        let refused = there.authorize(&agent.key, &payment(200)).await;
        assert_eq!((refused.status, refused.kind().as_str()), (401, "invalid_api_key"));
        assert_eq!(sign_out(&mut here, &owner).await, 200);
        assert_eq!(owner.ask(&mut there, "GET", &settings, None).await.status, 401);

        first.gate.tick().unwrap();
        assert_eq!(soon(watch.next()).await, None, "nothing is told to a role that it had no more");
        drop((here, there));
        end(first, second).await;
    }
}

async fn sign_out(client: &mut Client, person: &Person) -> u16 {
    ask(client, Some(&person.sid), "POST", "/api/sign-out", Some(&json!({}))).await.status
}

/// Settings, prices and providers that are changed at one server count at the other with the next request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_changed_at_one_counts_at_the_other() {
    let mut desk = Desk::with(|plan| plan.wire = Some(Wire::silent())).await;
    let second = desk.site.beside(|plan| plan.config.outbound.allow = Allowed::loopback()).await;
    let agent = desk.site.agent(&[WIDE]);
    let mut there = second.client().await;
    let key = desk.key.clone();
    assert_eq!(there.authorize(&agent.key, &payment(100)).await.ok()["decision"], "allow");
    let mut costs = Vec::new();
    for input in [3, 300] {
        let prices = json!({ "input": input * 1_000_000, "output": 15_000_000 });
        desk.api("PATCH", "models/chat/large-1", Some(&json!({ "prices": prices }))).await.ok();
        let got = there.post(CHAT, &key, &chat("chat/large-1")).await;
        got.ok();
        costs.push(desk.call_of(&got).await["costMicros"].as_u64().unwrap());
    }
    assert!(costs[1] > costs[0], "{costs:?}");
    let id = desk.upstreams["chat"].clone();
    desk.mock.forget();
    desk.api("PATCH", &format!("upstreams/{id}"), Some(&json!({ "apiKey": "sk-another-key" }))).await.ok();
    there.post(CHAT, &key, &chat("chat/large-1")).await.ok();
    assert_eq!(desk.mock.heard()[0].header("authorization"), Some("Bearer sk-another-key"));
    desk.api("PATCH", &format!("upstreams/{id}"), Some(&json!({ "enabled": false }))).await.ok();
    assert_ne!(there.post(CHAT, &key, &chat("chat/large-1")).await.status, 200);
    let mut settings = Settings::default();
    settings.agent_velocity.other_count = 1;
    desk.site.change_settings(settings);
    let body = with(payment(300), "summary", json!("Another order"));
    assert_ne!(there.authorize(&agent.key, &body).await.ok()["decision"], "allow");
    drop((desk.client, desk.owner, there));
    end(desk.site, second).await;
}

/// A key that follows another at one server, which is in other hands, is known to the other at once, and what the old one signed is
/// good at neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signing_key_of_one_is_known_to_the_other() {
    let (first, second) = pair_over(&Wire::silent(), |_| {}).await;
    let agent = first.agent(&[WIDE]);
    let (mut here, mut there) = (first.client().await, second.client().await);
    let before = here.authorize(&agent.key, &payment(100)).await.ok();
    assert!(there.verify(&charge(&json!("x.y.z"), 100)).await.ok()["reason"] == "malformed");
    first.gate.rotate_key(Purpose::Receipt, Leaked::Current).unwrap();
    let after = here.authorize(&agent.key, &payment_to(200, "after.example.org")).await.ok();
    let mut body = charge(&after["receipt"], 200);
    body["charge"]["merchant"]["domain"] = json!("after.example.org");
    let verdict = there.verify(&body).await.ok();
    assert_eq!(verdict["valid"], json!(true), "{verdict}");
    assert_eq!(there.verify(&charge(&before["receipt"], 100)).await.ok()["reason"], "unknown_key");
    drop((here, there));
    end(first, second).await;
}

/// Timers run at both: what is due is done once, records get their places once, in one order, and what both prove of them is the
/// same to the byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_is_one_ledger_at_both() {
    let (first, second) = pair_over(&Wire::new(), |plan| plan.timers = true).await;
    let agents: Vec<Agent> = (0..4).map(|_| first.agent(&[OFFICE])).collect();
    let key = first.key(KeyScope::Admin);
    let heard = at_once(&[first.address, second.address], |mut client, place| {
        let agent = agents[place % 4].key.clone();
        // Every other asks a person.
        let amount = if place % 8 < 4 { 30_000 } else { 100 };
        let body = payment_to(amount, &format!("m{place}.example.org"));
        async move { client.authorize(&agent, &body).await }
    })
    .await;
    let asked = count(&heard, |it| it["decision"] == "approval_required");
    assert!(asked > 0 && asked < CLIENTS, "{asked}");
    first.shift(Span::hours(24 * 8));
    let threads: Vec<_> = [&first, &second, &first, &second]
        .map(|site| {
            let gate = site.gate.clone();
            std::thread::spawn(move || {
                gate.tick().unwrap();
            })
        })
        .into();
    threads.into_iter().for_each(|it| it.join().unwrap());
    let mut reader = second.client().await;
    for (place, decision) in heard.iter().map(Got::ok).enumerate() {
        let read = reader.read_action(&agents[place % 4].key, text(&decision["id"])).await.ok();
        assert_eq!(read["status"] == "expired", decision["decision"] == "approval_required", "{read}");
    }
    assert_eq!(records(&first, "action.expired"), asked, "each ended once");
    let decided = heard.iter().map(|it| text(&it.ok()["evidenceRecord"]).to_owned());
    for record in decided.step_by(9) {
        let mut proofs = Vec::new();
        for site in [&first, &second] {
            let got = site.client().await.get(&format!("/v1/evidence/{record}/proof"), &key).await.ok();
            proofs.push(got);
        }
        assert_eq!(proofs[0], proofs[1]);
        assert_eq!(proofs[0]["record"]["id"], json!(record));
    }
    let ledger = first.ledger();
    let places: Vec<u64> = ledger.iter().map(|it| it.place.as_ref().unwrap().seq).collect();
    assert!(places.iter().enumerate().all(|(at, seq)| *seq == at as u64), "without gaps");
    drop(reader);
    end(first, second).await;
}

/// A call of a tool that waits for a person is one question, whichever server it is sent to; what the person said is found by the
/// other, a yes for one call and a no told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_call_that_waits_at_one_waits_at_the_other() {
    const ASKING: &str =
        r#"{"name":"Ask","actions":["mcp.call"],"limits":{"count":{"max":1,"period":"day"},"onLimit":"ask"}}"#;
    let mut desk = ToolDesk::over(Speaks::Modern, ASKING, |plan| plan.wire = Some(Wire::silent())).await;
    desk.server(json!({})).await;
    let second = desk.site.beside(|plan| plan.config.outbound.allow = Allowed::loopback()).await;
    let mut clients = [desk.site.client().await, second.client().await];
    let mut turn = 0;
    let mut call = async |desk: &mut ToolDesk, id: &str| {
        turn += 1;
        std::mem::swap(&mut desk.client, &mut clients[turn % 2]);
        let got = desk.send(&calling("read_one", json!({ "id": id })), &[]).await.ok();
        std::mem::swap(&mut desk.client, &mut clients[turn % 2]);
        result_text(&got["result"])
    };
    assert_eq!(call(&mut desk, "0").await, "done");
    assert!(call(&mut desk, "0").await.contains("approval_required"), "both have looked at this agent by now");
    for word in ["approve", "deny"] {
        desk.site.shift(Span::millis(1));
        let asked = call(&mut desk, word).await;
        assert!(asked.contains("approval_required"), "{asked}");
        assert_eq!(call(&mut desk, word).await, asked, "one question");
        assert_eq!(call(&mut desk, word).await, asked);
        let found = desk.api("GET", "approvals?state=waiting", None).await.ok();
        let id = text(&found["data"][0]["id"]).to_owned();
        assert!(asked.contains(&id), "{asked} {found}");
        desk.api("POST", &format!("approvals/{id}/{word}"), Some(&json!({ "note": "so" }))).await.ok();
        let told = call(&mut desk, word).await;
        assert!(if word == "approve" { told == "done" } else { told.contains("denied") }, "{told}");
    }
    let again = call(&mut desk, "approve").await;
    assert!(again.contains("approval_required"), "once at both: {again}");
    // A no that comes an hour after the question is told by whoever has not been asked since.
    let asked = call(&mut desk, "late").await;
    let waiting = desk.api("GET", "approvals?state=waiting", None).await.ok();
    let mut ids = waiting["data"].as_array().unwrap().iter().map(|it| text(&it["id"]));
    let id = ids.find(|it| asked.contains(it)).unwrap().to_owned();
    desk.site.shift(Span::minutes(65));
    desk.api("POST", &format!("approvals/{id}/deny"), Some(&json!({ "note": "so" }))).await.ok();
    let told = call(&mut desk, "late").await;
    assert!(told.contains("denied"), "{told}");
    desk.site.audit();
}

/// A server whose clock is apart from the database's decides nothing and is not ready, whichever of them is ahead, until it is not
/// any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_wrong_clock_decides_nothing() {
    for apart in [Span::seconds(20), Span::seconds(-20), Span::seconds(4), Span::seconds(-4)] {
        let truth = FakeClock::default();
        let wire = Wire::silent().timed_by(truth.clone());
        let site = Site::with(|plan| plan.wire = Some(wire.clone())).await;
        let agent = site.agent(&[WIDE]);
        let beside = site.beside(|plan| plan.clock = FakeClock::new(truth_and(&truth, apart))).await;
        let mut client = beside.client().await;
        let got = client.authorize(&agent.key, &payment(100)).await;
        assert_eq!((got.status, got.kind().as_str()), (503, "not_ready"));
        assert_eq!(client.ask("GET", "/readyz", &[], b"").await.status, 503);
        assert_eq!(site.client().await.authorize(&agent.key, &payment(100)).await.ok()["decision"], "allow");
        drop(client);
        beside.stop().await;
        site.stop().await;
    }
}

fn truth_and(clock: &FakeClock, apart: Span) -> Timestamp {
    use svc_core::store::Clock as _;
    clock.now().plus(apart)
}

/// What people change at both at once is changed once each, on top of the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_of_one_is_lost_at_the_other() {
    let (first, second) = pair().await;
    let owner = first.member(Role::Owner);
    let key = path(&first, "agents");
    let heard = at_once(&[first.address, second.address], |mut client, place| {
        let (owner, path) = (owner.clone(), key.clone());
        async move {
            let body = json!({ "name": format!("Agent {place}"), "principalEmail": "ann@example.com" });
            owner.ask(&mut client, "POST", &path, Some(&body)).await
        }
    })
    .await;
    let ids: BTreeSet<String> = heard.iter().map(|it| text(&it.made()["id"]).to_owned()).collect();
    assert_eq!(ids.len(), CLIENTS);
    assert_eq!(records(&first, "agent.created"), CLIENTS);
    end(first, second).await;
}
