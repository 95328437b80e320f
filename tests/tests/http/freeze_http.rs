//! Freezing one and many over the interface: what is asked and answered, and that the gate answers others
//! meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use serde_json::{Value, json};
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::fleet::Fleet;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::evidence::Entry;
use svc_core::state::gate::{Agent, Verb};
use svc_core::state::people::{Role, Roster, Selector, TokenScope};
use svc_core::store::{Row, Store};
use svc_core::testing::people;
use svc_core::testing::world::request;
use svc_core::value::Id as _;
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::text::{Label, Note};
use svc_store::{Backend as _, FleetRequest, SqliteStore};
use svc_tests::client::{Client, Got, PATIENCE, bearer};
use svc_tests::requests::{CRM, OFFICE, WIDE, payment, payment_to, text};
use svc_tests::site::{Agent as SiteAgent, Site};
use svc_tests::witness::Witness;

fn note() -> Note {
    Note::parse("a leak").unwrap()
}

async fn machine(client: &mut Client, token: &str, path: &str, body: &Value) -> Got {
    client.ask("POST", path, &[("authorization", &bearer(token))], body.to_string().as_bytes()).await
}

/// A machine counts, confirms what it counted, and freezes; each way to be wrong is told apart, in the contract's order, and
/// past the ceiling a person is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_counts_confirms_and_freezes() {
    let site = Site::start().await;
    let agents = [site.agent(&[WIDE]), site.agent(&[WIDE]), site.agent(&[CRM])];
    let (token, mut client) = (site.token(&[TokenScope::AgentsFreeze]), site.client().await);
    let fleet = "/v1/admin/freeze";
    let pays = json!({ "action": "payment" });
    let counted = machine(&mut client, &token, fleet, &json!({ "selector": pays, "dryRun": true })).await.ok();
    assert_eq!(
        (&counted["count"], &counted["alreadyFrozen"], &counted["truncated"]),
        (&json!(2), &json!(0), &json!(false))
    );
    let refusals = [
        (json!({}), 400, "invalid_selector", "selector"),
        (json!({ "selector": {} }), 400, "invalid_selector", "selector"),
        (
            json!({ "selector": { "all": true, "action": "payment" }, "reason": "x" }),
            400,
            "invalid_selector",
            "selector.all",
        ),
        (json!({ "selector": { "agentIds": ["agt_1"], "who": 1 } }), 400, "invalid_selector", "selector.who"),
        (json!({ "selector": pays, "reason": "x", "dryrun": true }), 400, "invalid_request", "dryrun"),
        (json!({ "selector": pays, "reason": "  " }), 400, "reason_required", ""),
        (json!({ "selector": { "namePrefix": "no such" }, "reason": "x" }), 400, "nothing_selected", ""),
        (json!({ "selector": pays, "reason": "x" }), 409, "confirm_count_required", ""),
        (json!({ "selector": pays, "reason": "x", "confirmCount": 3 }), 409, "selection_changed", ""),
    ];
    for (body, status, kind, field) in refusals {
        let got = machine(&mut client, &token, fleet, &body).await;
        assert_eq!((got.status, got.kind().as_str()), (status, kind), "{body}: {}", got.text());
        let error = got.json()["error"].clone();
        if !field.is_empty() {
            assert_eq!(error["errors"][0]["field"], field, "{body}: {error}");
        }
        if status == 409 {
            assert_eq!((&error["oldCount"], &error["newCount"]), (&body["confirmCount"], &json!(2)), "{error}");
        }
    }
    let digest = &counted["selectionDigest"];
    let body = json!({ "selector": pays, "reason": "a leak", "confirmCount": 2, "selectionDigest": digest });
    let frozen = machine(&mut client, &token, fleet, &body).await.ok();
    assert_eq!((&frozen["frozen"], &frozen["count"]), (&json!(2), &json!(2)), "{frozen}");
    let denied = client.post("/v1/actions/authorize", &agents[0].key, &payment(100)).await.ok();
    assert_eq!((&denied["decision"], &denied["signals"]), (&json!("deny"), &json!(["agent_frozen"])));
    site.change_settings(svc_core::state::people::Settings { freeze_ceiling_per_hour: 2, ..Default::default() });
    let one = format!("/v1/admin/agents/{}/freeze", agents[2].id);
    let unsaid = machine(&mut client, &token, &one, &json!({ "reason": "\t " })).await;
    assert_eq!((unsaid.status, unsaid.kind().as_str()), (400, "reason_required"));
    let past = machine(&mut client, &token, &one, &json!({ "reason": "odd" })).await;
    assert_eq!((past.status, &past.json()["pending"], &past.json()["count"]), (202, &json!(true), &json!(1)));
    let asked = format!("/api/w/{}/approvals/{}", site.workspace(), past.json()["approval"]["id"].as_str().unwrap());
    let read = site.member(Role::Admin).ask(&mut client, "GET", &asked, None).await.ok();
    assert_eq!(read["summary"], "Freeze one agent");
    let path = format!("/v1/admin/agents/{}/freeze", agents[0].id);
    let again = machine(&mut client, &token, &path, &json!({ "reason": "y" })).await.ok();
    assert_eq!(
        (&again["standing"], &again["tier"], &again["waiting"]),
        (&json!("frozen"), &json!("standard"), &json!(0))
    );
    assert!(again["frozen"]["by"].as_str().unwrap().starts_with("token:"), "{again}");
    assert!(again["frozen"]["byId"].as_str().unwrap().starts_with("stk_"), "{again}");
    site.advance(svc_core::value::Span::seconds(1));
    site.audit();
    site.stop().await;
}

/// A name's beginning counts as it was sent, the space at its end too: that is what tells `bot a` from `bottle`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beginning_of_names_is_taken_whole() {
    let site = Site::start().await;
    for (name, key) in [("bot a", "ask_of_a"), ("bot b", "ask_of_b"), ("bottle", "ask_of_bottle")] {
        let named = RegisterAgent::new(site.workspace(), Label::parse(name).unwrap(), NewKey::of(key));
        site.gate.execute(named).unwrap();
    }
    let (token, mut client) = (site.token(&[TokenScope::AgentsFreeze]), site.client().await);
    for (prefix, count) in [("bot ", 2), ("bot", 3)] {
        let body = json!({ "selector": { "namePrefix": prefix }, "dryRun": true });
        let counted = machine(&mut client, &token, "/v1/admin/freeze", &body).await.ok();
        assert_eq!(counted["count"], json!(count), "{prefix:?}");
    }
    for prefix in ["bot  ", " bot"] {
        let body = json!({ "selector": { "namePrefix": prefix }, "reason": "x" });
        let got = machine(&mut client, &token, "/v1/admin/freeze", &body).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "nothing_selected"), "{prefix:?}");
    }
    for prefix in [" ".to_owned(), format!("bot{}", " ".repeat(98)), "bot\n".to_owned()] {
        let body = json!({ "selector": { "namePrefix": prefix }, "dryRun": true });
        let got = machine(&mut client, &token, "/v1/admin/freeze", &body).await;
        assert_eq!(got.refusal(), (400, "invalid_selector".into(), vec!["selector.namePrefix".into()]), "{prefix:?}");
    }
    site.stop().await;
}

/// An id that never was matches nothing, as one of what is not there does; one of another kind is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_never_was_selects_nothing() {
    let site = Site::start().await;
    let agent = site.agent(&[WIDE]);
    let (token, mut client) = (site.token(&[TokenScope::AgentsFreeze]), site.client().await);
    for (selector, kind) in [
        (json!({ "agentIds": ["agt_nope"] }), "nothing_selected"),
        (json!({ "teamId": "team_nope", "action": "payment" }), "nothing_selected"),
        (json!({ "principalId": "prp_" }), "nothing_selected"),
        (json!({ "principalId": "agt_1" }), "invalid_selector"),
        (json!({ "agentIds": ["nope"] }), "invalid_selector"),
    ] {
        let body = json!({ "selector": selector, "reason": "x" });
        let got = machine(&mut client, &token, "/v1/admin/freeze", &body).await;
        assert_eq!((got.status, got.kind().as_str()), (400, kind), "{body}: {}", got.text());
    }
    let beside = json!({ "selector": { "agentIds": ["agt_nope", agent.id] }, "dryRun": true });
    assert_eq!(machine(&mut client, &token, "/v1/admin/freeze", &beside).await.ok()["count"], 1);
    site.stop().await;
}

/// A person freezes every agent, sees the hold, is refused a restart meanwhile, lifts it and starts an agent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_freezes_lifts_and_restarts() {
    let site = Site::start().await;
    let agent = site.agent(&[WIDE]);
    let (admin, mut client) = (site.member(Role::Admin), site.client().await);
    let path = |rest: &str| format!("/api/w/{}/{rest}", site.workspace());
    let body = json!({ "selector": { "all": true }, "reason": "a leak", "confirmCount": 1 });
    let frozen = admin.ask(&mut client, "POST", &path("freeze"), Some(&body)).await.ok();
    let hold = frozen["hold"].as_str().unwrap().to_owned();
    let later = site.agent(&[WIDE]);
    let denied = client.post("/v1/actions/authorize", &later.key, &payment(100)).await.ok();
    assert_eq!((&denied["decision"], &denied["hold"]), (&json!("deny"), &json!(hold)));
    let restart = path(&format!("agents/{}/restart", agent.id));
    let held = admin.ask(&mut client, "POST", &restart, Some(&json!({ "reason": "mended" }))).await;
    assert_eq!((held.status, held.kind().as_str()), (409, "not_allowed"));
    assert_eq!(held.json()["error"]["hold"], json!(hold));
    let listed = admin.ask(&mut client, "GET", &path("holds"), None).await.ok();
    let record = &listed["data"][0];
    assert_eq!((&record["id"], &record["scope"], &record["agents"]), (&json!(hold), &json!("all"), &json!(1)));
    assert_eq!((&record["by"], &record["reason"]), (&json!(admin.principal), &json!("a leak")));
    let lift = path(&format!("holds/{hold}/lift"));
    let blank = admin.ask(&mut client, "POST", &lift, Some(&json!({ "reason": " " }))).await;
    assert_eq!(blank.kind(), "reason_required");
    let lifted = admin.ask(&mut client, "POST", &lift, Some(&json!({ "reason": "over" }))).await.ok();
    assert_eq!(lifted["liftedBy"], json!(admin.principal));
    let still = client.post("/v1/actions/authorize", &agent.key, &payment(100)).await.ok();
    assert_eq!(still["decision"], "deny");
    let started = admin.ask(&mut client, "POST", &restart, Some(&json!({ "reason": "mended" }))).await.ok();
    assert_eq!(started["standing"], "active");
    let allowed = client.post("/v1/actions/authorize", &agent.key, &payment(100)).await.ok();
    assert_eq!(allowed["decision"], "allow");
    site.advance(svc_core::value::Span::seconds(1));
    site.audit();
    site.stop().await;
}

/// Whoever shares an address with one who guesses tokens can stop agents all the same, also by a token that this server has never
/// seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guesser_keeps_nobody_from_stopping_agents() {
    let site = Site::with(|plan| plan.config.limits.token_per_minute = 20).await;
    let agent = site.agent(&[WIDE]);
    let token = site.token(&[TokenScope::AgentsFreeze]);
    let mut client = site.client().await;
    let counts = json!({ "selector": { "all": true }, "dryRun": true });
    let mut guesses = 0;
    loop {
        let guessed = format!("ims_{guesses:032x}{:011x}", 0);
        let got = machine(&mut client, &guessed, "/v1/admin/freeze", &counts).await;
        if got.status == 429 {
            break;
        }
        assert_eq!(got.status, 401, "{}", got.text());
        guesses += 1;
        assert!(guesses < 1_000);
    }
    let path = format!("/v1/admin/agents/{}/freeze", agent.id);
    let frozen = machine(&mut client, &token, &path, &json!({ "reason": "odd" })).await.ok();
    assert_eq!(frozen["standing"], "frozen");
    let guessed = machine(&mut client, &format!("ims_{}", "A".repeat(43)), &path, &json!({ "reason": "odd" })).await;
    assert_eq!(guessed.status, 429);
    site.stop().await;
}

/// A token asks for every agent past its ceiling, another agent comes, and a person says yes: those that were counted are frozen,
/// that one is active and refused, and what it was allowed before stays void after the lift.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_agrees_to_stop_every_agent() {
    let site = Site::start().await;
    site.change_settings(svc_core::state::people::Settings { freeze_ceiling_per_hour: 1, ..Default::default() });
    let agents = [site.agent(&[WIDE]), site.agent(&[WIDE])];
    let (admin, token) = (site.member(Role::Admin), site.token(&[TokenScope::AgentsFreeze]));
    let mut client = site.client().await;
    let path = |rest: &str| format!("/api/w/{}/{rest}", site.workspace());
    let body = json!({ "selector": { "all": true }, "reason": "a leak", "confirmCount": 2 });
    let asked = machine(&mut client, &token, "/v1/admin/freeze", &body).await;
    assert_eq!((asked.status, &asked.json()["pending"]), (202, &json!(true)), "{}", asked.text());
    let approval = asked.json()["approval"]["id"].as_str().unwrap().to_owned();
    let read = admin.ask(&mut client, "GET", &path(&format!("approvals/{approval}")), None).await.ok();
    let mut members: Vec<String> = agents.iter().map(|it| it.id.to_string()).collect();
    members.sort();
    assert_eq!(read["subject"], json!({ "members": members, "count": 2, "all": true, "reason": "a leak" }));
    let later = site.agent(&[WIDE]);
    let allowed = client.post("/v1/actions/authorize", &later.key, &payment(100)).await.ok();
    let yes = path(&format!("approvals/{approval}/approve"));
    let approved = admin.ask(&mut client, "POST", &yes, Some(&json!({}))).await.ok();
    assert_eq!(approved["state"], "approved");
    let holds = admin.ask(&mut client, "GET", &path("holds"), None).await.ok();
    assert_eq!((&holds["data"][0]["scope"], &holds["data"][0]["agents"]), (&json!("all"), &json!(2)), "{holds}");
    let held = client.post("/v1/actions/authorize", &later.key, &payment(200)).await.ok();
    assert_eq!((&held["decision"], &held["signals"]), (&json!("deny"), &json!(["agent_frozen"])), "{held}");
    let lift = path(&format!("holds/{}/lift", holds["data"][0]["id"].as_str().unwrap()));
    admin.ask(&mut client, "POST", &lift, Some(&json!({ "reason": "over", "restart": true }))).await.ok();
    let denied = client.post("/v1/actions/authorize", &agents[0].key, &payment(100)).await.ok();
    assert_eq!(denied["decision"], "allow", "restarted: {denied}");
    site.advance(svc_core::value::Span::seconds(1));
    let read = format!("/v1/actions/{}", allowed["id"].as_str().unwrap());
    let void = client.get(&read, &later.key).await.ok();
    assert_eq!((&void["status"], &void["receipt"]), (&json!("revoked"), &Value::Null), "{void}");
    site.audit();
    site.stop().await;
}

/// How many agents a fleet has.
const FLEET: u128 = 10_000;

/// Puts a fleet of copies of an agent into a store.
fn crowd<S: Store>(store: &mut S, workspace: WorkspaceId, like: AgentId) -> Vec<AgentId> {
    let mut row = |key| store.load(&[key]).ok().unwrap().remove(0).record.unwrap();
    let (agent, roster) = (row(Agent::key(like)), row(Roster::key(workspace)));
    let (agent, roster) = (Agent::peel(&agent).unwrap(), Roster::peel(&roster).unwrap());
    let ids: Vec<AgentId> = (1..=FLEET).map(|it| AgentId::from_bits((1 << 100) + it)).collect();
    let rows = ids.iter().map(|id| Agent::wrap(Agent { id: *id, ..Agent::clone(agent) }.into()));
    let agents = roster.agents + u32::try_from(FLEET).unwrap();
    let guard = Roster::wrap(Roster { agents, ..Roster::clone(roster) }.into());
    people::write(store, rows.chain([guard]).collect());
    ids
}

/// Freezes a fleet in one call.
fn freeze_them(site: &Site, ids: &[AgentId]) {
    let selector = Selector { agents: Some(ids.iter().copied().collect()), ..Selector::default() };
    let (workspace, by, reason) = (site.workspace(), By::Program, note());
    let request = FleetRequest { workspace, by, selector, reason, confirm: i64::try_from(FLEET).ok(), seen: None };
    let Fleet::Frozen(done) = site.gate.freeze_fleet(&request).unwrap() else { panic!("frozen") };
    assert_eq!((u128::from(done.count), u128::from(done.frozen), done.hold), (FLEET, FLEET, None));
}

/// Ten thousand agents in one call, by one commit. While they are looked through, the gate decides for another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_are_frozen_in_one_call() {
    let (began, begun) = mpsc::sync_channel(1);
    let (release, held) = mpsc::sync_channel::<()>(1);
    let (holds, hold) = (Mutex::new(held), Arc::new(AtomicBool::new(false)));
    let holding = Arc::clone(&hold);
    let witness = Witness::of_scans(move |range| {
        if range.index == Index::AgentsOf && holding.swap(false, Ordering::SeqCst) {
            began.send(()).unwrap();
            // Given up after a time, so that a gate that waits for it is told from one that does not.
            let _ = holds.lock().unwrap().recv_timeout(PATIENCE / 4);
        }
    });
    let site = Site::with(|plan| plan.witness = witness).await;
    let (like, other) = (site.agent(&[CRM]), site.agent(&[CRM]));
    let ids = crowd(&mut site.memory(), site.workspace(), like.id);
    hold.store(true, Ordering::SeqCst);
    std::thread::scope(|threads| {
        let freezing = threads.spawn(|| freeze_them(&site, &ids));
        begun.recv_timeout(PATIENCE).unwrap();
        let asking = Authorize::new(other.caller, request("crm.update"), site.gate.fresh_salt().unwrap());
        assert_eq!(site.gate.execute(asking).unwrap().verb(), Verb::Allow);
        assert!(!freezing.is_finished(), "they are still looked through");
        release.send(()).unwrap();
        freezing.join().unwrap();
    });
    site.stop().await;
}

/// The same in SQLite, where the one commit is one transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_are_frozen_in_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::with(|plan| plan.directory = Some(folder.path().to_owned())).await;
    let like = site.agent(&[CRM]);
    let mut beside = SqliteStore::open(folder.path()).unwrap().writer().unwrap();
    let ids = crowd(&mut beside, site.workspace(), like.id);
    drop(beside);
    freeze_them(&site, &ids);
    site.stop().await;
}

/// Ends the askers of a trial, also where it panics.
struct Over<'a>(&'a AtomicUsize);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(usize::MAX, Ordering::SeqCst);
    }
}

/// In each of a thousand trials an agent is frozen while four askers ask as it without a pause. Whatever was asked after the
/// freeze was answered is refused; and some was allowed before, so that each trial is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_asked_after_a_freezes_answer_is_allowed() {
    const TRIALS: usize = 1_000;
    const ASKERS: usize = 4;
    let site = Site::start().await;
    let agents: Vec<SiteAgent> = (0..TRIALS).map(|_| site.agent(&[CRM])).collect();
    let (gate, workspace, began) = (&site.gate, site.workspace(), Instant::now());
    // Which trial runs, and in how many the freeze has been answered.
    let (current, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (tell, told) = mpsc::sync_channel::<(usize, bool, Verb)>(256);
    let asked = std::thread::scope(|threads| {
        for _ in 0..ASKERS {
            let (tell, agents, current, answered) = (tell.clone(), &agents, &current, &answered);
            threads.spawn(move || {
                while let Some((trial, agent)) = agents.iter().enumerate().nth(current.load(Ordering::SeqCst)) {
                    let after = answered.load(Ordering::SeqCst) > trial;
                    let asking = Authorize::new(agent.caller, request("crm.update"), gate.fresh_salt().unwrap());
                    if tell.send((trial, after, gate.execute(asking).unwrap().verb())).is_err() {
                        return;
                    }
                }
            });
        }
        // Askers that wait with an answer are let go once nobody listens.
        let (_over, told) = (Over(&current), told);
        let mut asked = 0_u32;
        let mut next = |trial: usize, after: bool| loop {
            let (of, was_after, verb) = told.recv().unwrap();
            asked += 1;
            assert!(!was_after || verb == Verb::Deny, "trial {of}: {verb:?} after the freeze's answer");
            if (of, was_after) == (trial, after) {
                return verb;
            }
        };
        for (trial, agent) in agents.iter().enumerate() {
            assert_eq!(next(trial, false), Verb::Allow, "nothing stops it yet");
            let freeze = FreezeAgent { workspace, agent: agent.id, by: By::Program, reason: note() };
            gate.execute(freeze).unwrap();
            answered.store(trial + 1, Ordering::SeqCst);
            for _ in 0..ASKERS {
                assert_eq!(next(trial, true), Verb::Deny);
            }
            current.store(trial + 1, Ordering::SeqCst);
        }
        asked
    });
    println!("{TRIALS} trials, {asked} answers in {:?}", began.elapsed());
    site.stop().await;
}

/// Whoever reads an action right after a stop is shown the record of what the stop did to it, and not the one from before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stop_did_is_on_record_once_it_is_told() {
    let site = Site::start().await;
    let (agent, owner) = (site.agent(&[OFFICE]), site.member(Role::Owner));
    let mut client = site.client().await;
    let path = |end: &str| format!("/api/w/{}/{end}", site.workspace());
    let mut ids = Vec::new();
    for (amount, domain) in
        [(30_000, "a.example.com"), (30_001, "b.example.com"), (100, "c.example.org"), (200, "d.example.net")]
    {
        ids.push(text(&client.authorize(&agent.key, &payment_to(amount, domain)).await.ok()["id"]).to_owned());
    }
    let once = client.authorize_once(&agent.key, "once", &payment_to(300, "e.example.org")).await.ok();
    let freeze = path(&format!("agents/{}/freeze", agent.id));
    owner.ask(&mut client, "POST", &freeze, Some(&json!({ "reason": "a test" }))).await.ok();
    for (n, (id, status)) in ids.iter().zip(["denied", "denied", "revoked", "revoked"]).enumerate() {
        let read = if n % 2 == 0 {
            client.read_action(&agent.key, id).await.ok()
        } else {
            owner.ask(&mut client, "GET", &path(&format!("actions/{id}")), None).await.ok()
        };
        assert_eq!(read["status"], status);
        let entries = site.memory().dump();
        let entries: Vec<_> = entries.iter().filter_map(|(.., record)| Entry::peel(record)).collect();
        let named = entries.iter().find(|it| it.id.to_string() == text(&read["evidenceRecord"])).unwrap();
        assert_eq!((&*named.kind, &*named.subject), (&*format!("action.{status}"), id.as_str()));
    }
    let restart = path(&format!("agents/{}/restart", agent.id));
    owner.ask(&mut client, "POST", &restart, Some(&json!({ "reason": "looked at" }))).await.ok();
    let again = client.authorize_once(&agent.key, "once", &payment_to(300, "e.example.org")).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let again = again.ok();
    assert_eq!((&again["id"], &again["status"]), (&once["id"], &json!("revoked")));
    assert_ne!(again["evidenceRecord"], once["evidenceRecord"], "a repeated request is told alike");
    site.stop().await;
}

/// A kill owner freezes their agent whatever their role, and no other; the answer is the agent as its item is, but for `spend`.
/// Starting it again is not theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_owner_freezes_whatever_their_role() {
    let site = Site::start().await;
    let (agent, other) = (site.agent(&[WIDE]), site.agent(&[WIDE]));
    let (admin, killer, mut client) = (site.member(Role::Admin), site.member(Role::Auditor), site.client().await);
    let path = |id: AgentId, rest: &str| format!("/api/w/{}/agents/{id}{rest}", site.workspace());
    let entrust = json!({ "killOwner": killer.principal });
    admin.ask(&mut client, "PATCH", &path(agent.id, ""), Some(&entrust)).await.ok();
    let why = json!({ "reason": "it buys at night" });
    let refused = killer.ask(&mut client, "POST", &path(other.id, "/freeze"), Some(&why)).await;
    assert_eq!((refused.status, refused.kind().as_str()), (403, "forbidden"));
    let frozen = killer.ask(&mut client, "POST", &path(agent.id, "/freeze"), Some(&why)).await.ok();
    let mut item = admin.ask(&mut client, "GET", &path(agent.id, ""), None).await.ok();
    assert_eq!(item.as_object_mut().unwrap().remove("spend"), Some(json!([])));
    assert_eq!((&frozen, &frozen["standing"]), (&item, &json!("frozen")));
    assert_eq!(frozen["frozen"]["by"], killer.principal.to_string());
    let refused = killer.ask(&mut client, "POST", &path(agent.id, "/restart"), Some(&why)).await;
    assert_eq!((refused.status, refused.kind().as_str()), (403, "forbidden"));
    let started = admin.ask(&mut client, "POST", &path(agent.id, "/restart"), Some(&why)).await.ok();
    let mut item = admin.ask(&mut client, "GET", &path(agent.id, ""), None).await.ok();
    assert_eq!(item.as_object_mut().unwrap().remove("spend"), Some(json!([])));
    assert_eq!((&started, &started["standing"]), (&item, &json!("active")));
    site.audit();
    site.stop().await;
}

/// A kill owner finds the agents that they may freeze, in the list and by themselves, whatever their role: which they are and how
/// they stand, and no more than their role reads. Whoever may freeze none is told as ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_owner_sees_what_they_may_freeze() {
    let site = Site::start().await;
    let (agent, other) = (site.agent(&[WIDE]), site.agent(&[WIDE]));
    let (admin, mut client) = (site.member(Role::Admin), site.client().await);
    let agents = format!("/api/w/{}/agents", site.workspace());
    let at = |id: AgentId, rest: &str| format!("{agents}/{id}{rest}");
    for role in [Role::Member, Role::Analyst] {
        let killer = site.member(role);
        let none = killer.ask(&mut client, "GET", &agents, None).await;
        if role == Role::Member {
            assert_eq!(none.ok()["data"], json!([]));
        } else {
            assert_eq!((none.status, none.kind().as_str()), (403, "forbidden"));
        }
        let entrust = json!({ "killOwner": killer.principal });
        let whole = admin.ask(&mut client, "PATCH", &at(agent.id, ""), Some(&entrust)).await.ok();
        let mut brief = json!({});
        for name in ["id", "name", "workspaceId", "killOwner", "standing", "createdBy", "createdAt"] {
            brief[name] = whole[name].clone();
        }
        assert_eq!(killer.ask(&mut client, "GET", &agents, None).await.ok()["data"], json!([brief]));
        assert_eq!(killer.ask(&mut client, "GET", &at(agent.id, ""), None).await.ok(), brief);
        for path in [at(other.id, ""), at(agent.id, "/mandates"), at(agent.id, "/keys")] {
            let got = killer.ask(&mut client, "GET", &path, None).await;
            assert!([403, 404].contains(&got.status), "{path}: {}", got.text());
        }
        let got = killer.ask(&mut client, "GET", &at(other.id, ""), None).await;
        assert_eq!((got.status, got.kind().as_str()), (404, "not_found"));
        let why = json!({ "reason": "it buys at night" });
        let frozen = killer.ask(&mut client, "POST", &at(agent.id, "/freeze"), Some(&why)).await.ok();
        assert_eq!(frozen, killer.ask(&mut client, "GET", &at(agent.id, ""), None).await.ok());
        assert_eq!((&frozen["standing"], frozen.get("mandates")), (&json!("frozen"), None));
        assert_eq!(frozen["frozen"]["by"], killer.principal.to_string());
        admin.ask(&mut client, "POST", &at(agent.id, "/restart"), Some(&why)).await.ok();
    }
    site.audit();
    site.stop().await;
}

/// A freeze and a change are answered, by whomever they were asked, without a look through the agent's actions. Only a restart looks,
/// before it is committed, for what the stop still has to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freeze_is_answered_without_a_look_through_what_the_agent_did() {
    let looked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looked);
    let witness = Witness::of_scans(move |range| {
        counted.fetch_add(usize::from(range.index == Index::ActionsOf), Ordering::SeqCst);
    });
    let site = Site::with(|plan| plan.witness = witness).await;
    let (agent, admin, mut client) = (site.agent(&[WIDE]), site.member(Role::Admin), site.client().await);
    let (token, why) = (site.token(&[TokenScope::AgentsFreeze]), json!({ "reason": "it buys at night" }));
    let item = format!("/api/w/{}/agents/{}", site.workspace(), agent.id);
    let by_machine = format!("/v1/admin/agents/{}/freeze", agent.id);
    assert_eq!(machine(&mut client, &token, &by_machine, &why).await.ok()["standing"], "frozen");
    let mut by_person = async |method: &str, rest: &str, body: &Value| {
        admin.ask(&mut client, method, &format!("{item}{rest}"), Some(body)).await.ok()
    };
    assert_eq!(looked.load(Ordering::SeqCst), 0, "its actions were not looked through");
    assert_eq!(by_person("POST", "/restart", &why).await["standing"], "active");
    assert_eq!(looked.swap(0, Ordering::SeqCst), 1);
    assert_eq!(by_person("POST", "/freeze", &why).await["standing"], "frozen");
    assert_eq!(by_person("PATCH", "", &json!({ "name": "Shopper" })).await["name"], "Shopper");
    assert_eq!(looked.load(Ordering::SeqCst), 0, "its actions were not looked through");
    site.stop().await;
}
