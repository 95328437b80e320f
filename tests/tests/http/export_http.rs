//! The export of a ledger over real sockets: everything in its order and once, signed, whatever becomes of the receiver or of the
//! server meanwhile.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::edge::deliver::find;
use svc_core::state::edge::{ConfigChange, IntegrationKind, Job, JobState};
use svc_core::state::evidence::Entry;
use svc_core::state::people::{KeyScope, Role};
use svc_core::store::Row as _;
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::id::DeliveryId;
use svc_core::value::text::UrlText;
use svc_tests::client::{Client, PATIENCE};
use svc_tests::office::Office;
use svc_tests::program::Program;
use svc_tests::receiver::{self, Call, Receiver, Reply, SECRET, tls};
use svc_tests::requests::{WIDE, payment, text};
use svc_tests::site::{Agent, Site, rows_of};
use tokio::time::timeout;

/// An owner's, where calls may go to this machine.
async fn open() -> Office {
    Office::with(|plan| plan.config.allow_private_callbacks = true).await
}

/// Makes the export with the secret of the tests; its id.
async fn create(office: &mut Office, config: Value) -> String {
    let body = json!({ "kind": "export", "secret": SECRET, "config": config });
    text(&office.post("integrations", body).await.made()["id"]).to_owned()
}

/// What a receiver has taken: the calls, and their events in the order that they came in.
#[derive(Default)]
struct Taken {
    calls: Vec<Call>,
    events: Vec<Value>,
}

impl Taken {
    /// Takes the next call.
    async fn next(&mut self, hooks: &mut Receiver) -> Call {
        let call = hooks.next().await;
        assert!(call.is_signed_with(&[SECRET]), "{call:?}");
        assert!(call.header("svc-event-id").starts_with("dlv_"));
        assert_eq!(call.header("content-type"), "application/json");
        let events = call.json().as_array().expect("an array").clone();
        assert!((1..=100).contains(&events.len()), "{} events", events.len());
        self.events.extend(events);
        self.calls.push(call.clone());
        call
    }

    /// Takes calls until the record with this place has come.
    async fn until(&mut self, hooks: &mut Receiver, seq: u64) {
        while self.events.last().is_none_or(|it| place(it) < seq) {
            self.next(hooks).await;
        }
    }
}

fn place(event: &Value) -> u64 {
    event["metadata"]["sequence"].as_u64().expect("a place")
}

/// The ledger's records from the one that made this integration on.
fn since(site: &Site, integration: &str) -> Vec<Arc<Entry>> {
    let ledger = site.ledger();
    let begins = ledger.iter().position(|it| *it.subject == *integration).expect("its record");
    assert_eq!((&*ledger[begins].kind, begins > 0), ("integration.created", true));
    ledger[begins..].to_vec()
}

fn last(records: &[Arc<Entry>]) -> u64 {
    records.last().and_then(|it| it.place.as_ref()).expect("a place").seq
}

/// Every record as evidence has it, in order, none left out and none twice.
fn assert_whole(events: &[Value], records: &[Arc<Entry>]) {
    let told: Vec<(String, Value)> =
        events.iter().map(|it| (text(&it["metadata"]["uid"]).to_owned(), it["unmapped"]["svc"].clone())).collect();
    let read = |it: &Arc<Entry>| serde_json::from_str(&it.record_text().expect("a place")).expect("JSON");
    let written: Vec<(String, Value)> = records.iter().map(|it| (it.id.to_string(), read(it))).collect();
    assert_eq!(told, written);
}

/// Waits until a delivery is as `done` says.
async fn until(site: &Site, id: &str, done: impl Fn(&Job) -> bool) -> Arc<Job> {
    let mut changes = site.gate.changes();
    let id = DeliveryId::parse(id).unwrap();
    let wait = async {
        loop {
            if let Some(job) = site.gate.read(|scope| find(scope, id)).unwrap().filter(|it| done(it)) {
                return job;
            }
            let _ = changes.recv().await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{id} in time"))
}

fn event_id(call: &Call) -> String {
    call.header("svc-event-id").to_owned()
}

/// Everything that happens after an export was made comes to its receiver once, in the ledger's order and as evidence shows it,
/// and nothing of what the ledger only commits to; then there is quiet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_sent_in_order() {
    let mut desk = open().await;
    let mut hooks = Receiver::start().await;
    let agent = desk.site.agent(&[WIDE]);
    desk.client.authorize(&agent.key, &payment(100)).await.ok();
    let id = create(&mut desk, json!({ "url": hooks.url("/in?token=hidden") })).await;
    let action = desk.client.authorize(&agent.key, &payment(200)).await.ok();
    desk.client.settle(&agent.key, text(&action["id"]), &json!({ "status": "completed" })).await.ok();
    desk.client.authorize(&agent.key, &payment(100_000_000)).await.ok();
    desk.post("keys", json!({ "scope": "inference", "label": "of the tests" })).await.made();
    desk.post(&format!("agents/{}/freeze", agent.id), json!({ "reason": "a drill of ours" })).await.ok();
    let mut taken = Taken::default();
    let records = since(&desk.site, &id);
    taken.until(&mut hooks, last(&records)).await;
    assert_whole(&taken.events, &records);
    assert_eq!(taken.calls[0].line, "POST /in?token=hidden HTTP/1.1");
    let classes: Vec<u64> = taken.events.iter().map(|it| it["class_uid"].as_u64().unwrap()).collect();
    assert!([2004, 3001, 3004].iter().all(|it| classes.contains(it)), "{classes:?}");
    let sent: String = taken.calls.iter().map(|it| String::from_utf8_lossy(&it.body).into_owned()).collect();
    for hidden in ["Pay for what was ordered", "Example Shop", "a drill of ours", "of the tests", "hidden", SECRET] {
        assert!(!sent.contains(hidden), "{hidden}");
    }
    let delivery = desk.read(&format!("deliveries/{}", event_id(taken.calls.last().unwrap()))).await;
    assert_eq!((&delivery["kind"], &delivery["subject"]), (&json!("export"), &json!(id)));
    let shown = desk.read(&format!("integrations/{id}")).await;
    assert_eq!((&shown["config"]["classes"], &shown["state"]), (&Value::Null, &json!("ok")));
    assert_eq!(since(&desk.site, &id).len(), records.len(), "what is sent records nothing");
    assert!(hooks.is_quiet());
    desk.site.audit();
    desk.site.stop().await;
}

/// While the receiver is down a delivery comes again as it was, and what happens meanwhile after it: nothing is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_was_down_misses_nothing() {
    let mut desk = open().await;
    let mut hooks = Receiver::start().await;
    hooks.answer([Reply::Status(503), Reply::Noise, Reply::Redirect(hooks.url("/else"))]);
    let id = create(&mut desk, json!({ "url": hooks.url("/in") })).await;
    let mut tries: Vec<Call> = Vec::new();
    for tried in 1..=3 {
        let call = hooks.next().await;
        desk.site.key(KeyScope::Inference);
        until(&desk.site, &event_id(&call), |it| it.attempts.len() == tried).await;
        desk.site.shift(Span::minutes(10));
        tries.push(call);
    }
    let mut taken = Taken::default();
    let call = taken.next(&mut hooks).await;
    assert!(tries.iter().all(|it| it.body == call.body && event_id(it) == event_id(&call)));
    assert_eq!(taken.events.len(), 1, "the first record went alone");
    let records = since(&desk.site, &id);
    assert_eq!(records.len(), 4);
    taken.until(&mut hooks, last(&records)).await;
    assert_whole(&taken.events, &records);
    assert_eq!(taken.calls.len(), 2, "what came meanwhile goes together");
    desk.site.stop().await;
}

/// An export whose first delivery was given up, which its receiver has never taken; the integration's id and the delivery's.
async fn given_up(desk: &mut Office, hooks: &mut Receiver) -> (String, String) {
    hooks.answer((0..8).map(|_| Reply::Status(500)));
    let integration = create(desk, json!({ "url": hooks.url("/in") })).await;
    let mut id = String::new();
    for tried in 1..=8 {
        id = event_id(&hooks.next().await);
        until(&desk.site, &id, |it| it.attempts.len() == tried).await;
        desk.site.shift(Span::hours(15));
    }
    until(&desk.site, &id, |it| matches!(it.state, JobState::Failed { .. })).await;
    // The owner's session has ended by then.
    desk.who = desk.site.member(Role::Owner);
    (integration, id)
}

/// After the eighth try the export stands still and says so; tried again it goes on from there, and what it has recorded of itself
/// is sent as everything else, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_up_is_gone_on_from() {
    let mut desk = open().await;
    let mut hooks = Receiver::start().await;
    let (id, given_up) = given_up(&mut desk, &mut hooks).await;
    desk.site.key(KeyScope::Inference);
    let shown = desk.read(&format!("integrations/{id}")).await;
    assert_eq!((&shown["state"], shown["lastError"].is_string()), (&json!("failing"), true));
    assert!(hooks.is_quiet(), "nothing overtakes it");
    let retried = desk.ask("POST", &format!("deliveries/{given_up}/retry"), Value::Null).await.ok();
    assert_eq!(retried["state"], json!("waiting"));
    let mut taken = Taken::default();
    assert_eq!(event_id(&taken.next(&mut hooks).await), given_up);
    let records = since(&desk.site, &id);
    taken.until(&mut hooks, last(&records)).await;
    assert_whole(&taken.events, &records);
    // Sessions have ended by then.
    let kinds: Vec<&str> = records.iter().map(|it| &*it.kind).filter(|it| *it != "session.ended").collect();
    assert_eq!(kinds, ["integration.created", "delivery.failed", "key.created", "integration.retried"]);
    until(&desk.site, &event_id(taken.calls.last().unwrap()), |it| it.due().is_none()).await;
    assert_eq!(desk.read(&format!("integrations/{id}")).await["state"], json!("ok"));
    let more = since(&desk.site, &id).len() - records.len();
    assert_eq!((more, hooks.is_quiet()), (0, true), "it does not tell of itself for ever");
    desk.site.stop().await;
}

/// Another address takes over what was given up; off and on again an export goes on with the first record that nobody took.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_address_takes_over() {
    let mut desk = open().await;
    let (mut first, mut second) = (Receiver::start().await, Receiver::start().await);
    let (id, given_up) = given_up(&mut desk, &mut first).await;
    let place = format!("integrations/{id}");
    desk.patch(&place, json!({ "config": { "url": second.url("/in") } })).await.ok();
    let mut taken = Taken::default();
    assert_ne!(event_id(&taken.next(&mut second).await), given_up);
    assert_eq!(desk.read(&format!("deliveries/{given_up}")).await["state"], json!("replaced"));
    taken.until(&mut second, last(&since(&desk.site, &id))).await;
    until(&desk.site, &event_id(taken.calls.last().unwrap()), |it| it.due().is_none()).await;
    assert_eq!(desk.patch(&place, json!({ "enabled": false })).await.ok()["state"], json!("off"));
    desk.site.key(KeyScope::Inference);
    desk.patch(&place, json!({ "enabled": true })).await.ok();
    let records = since(&desk.site, &id);
    taken.until(&mut second, last(&records)).await;
    assert_whole(&taken.events, &records);
    assert!(first.is_quiet());
    let told: String = records.iter().map(|it| it.data.to_string()).collect();
    assert!(told.contains(&format!("http://{}", second.address)) && !told.contains("/in"), "{told}");
    desk.site.stop().await;
}

/// Records of classes that are not asked for are not sent, and nothing in their place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_classes_that_are_asked_for_are_sent() {
    let mut desk = open().await;
    let mut hooks = Receiver::start().await;
    let config = json!({ "url": hooks.url("/in"), "classes": [3001, 3002] });
    let id = create(&mut desk, config.clone()).await;
    assert_eq!(desk.read(&format!("integrations/{id}")).await["config"], config);
    let agent = desk.site.agent(&[WIDE]);
    // More than are passed over at once, on both sides of what is asked for.
    for _ in 0..600 {
        desk.client.authorize(&agent.key, &payment(1)).await.ok();
    }
    desk.site.key(KeyScope::Inference);
    let records = since(&desk.site, &id);
    let mut taken = Taken::default();
    taken.until(&mut hooks, last(&records)).await;
    let kinds: Vec<&str> = taken.events.iter().map(|it| text(&it["metadata"]["event_code"])).collect();
    assert_eq!(kinds, ["key.created", "key.created"], "the agent's, and the other one");
    assert!(taken.events.iter().all(|it| it["class_uid"] == json!(3001)));
    assert!(records.len() > 600 && hooks.is_quiet());
    desk.patch(&format!("integrations/{id}"), json!({ "config": { "classes": null } })).await.ok();
    let records = since(&desk.site, &id);
    let from = taken.events.len();
    taken.until(&mut hooks, last(&records)).await;
    assert_eq!(text(&taken.events[from]["metadata"]["event_code"]), "integration.changed");
    desk.site.stop().await;
}

/// While its secret rotates a call is signed with both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_secrets_sign_while_one_rotates() {
    let mut desk = open().await;
    let mut hooks = Receiver::start().await;
    let id = create(&mut desk, json!({ "url": hooks.url("/in") })).await;
    let call = hooks.next().await;
    assert!(call.is_signed_with(&[SECRET]));
    until(&desk.site, &event_id(&call), |it| it.due().is_none()).await;
    let rotated = desk.post(&format!("integrations/{id}/rotate"), json!({ "overlapHours": 2 })).await.ok();
    let next = text(&rotated["secret"]).to_owned();
    let call = hooks.next().await;
    assert_eq!(text(&call.json()[0]["metadata"]["event_code"]), "integration.rotated");
    assert!(call.is_signed_with(&[&next, SECRET]), "{call:?}");
    until(&desk.site, &event_id(&call), |it| it.due().is_none()).await;
    desk.site.shift(Span::hours(2));
    desk.site.key(KeyScope::Inference);
    assert!(hooks.next().await.is_signed_with(&[&next]));
    desk.site.stop().await;
}

/// Each workspace's ledger goes to its own receiver, also where two servers run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workspaces_do_not_mix() {
    let mut desk = open().await;
    let (mut own, mut others) = (Receiver::start().await, Receiver::start().await);
    let other = desk.site.anew(|plan| plan.config.allow_private_callbacks = true).await;
    assert_ne!(other.workspace(), desk.site.workspace());
    let id = create(&mut desk, json!({ "url": own.url("/in") })).await;
    let url = ConfigChange { url: Some(UrlText::parse(&others.url("/in")).ok()), ..ConfigChange::default() };
    let second = receiver::connect_kind(&other, IntegrationKind::Export, url).id.to_string();
    for site in [&desk.site, &other, &desk.site] {
        site.key(KeyScope::Inference);
    }
    for (site, hooks, id) in [(&desk.site, &mut own, &id), (&other, &mut others, &second)] {
        let records = since(site, id);
        let mut taken = Taken::default();
        taken.until(hooks, last(&records)).await;
        assert_whole(&taken.events, &records);
        let tenant = json!(site.workspace());
        assert!(taken.events.iter().all(|it| it["metadata"]["tenant_uid"] == tenant));
        assert!(hooks.is_quiet());
    }
    other.stop().await;
    desk.site.stop().await;
}

/// A thousand records that wait go a hundred at a time, one call after the other, without waiting for the next look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_records_go_in_batches() {
    let mut desk = open().await;
    let mut hooks = Receiver::start().await;
    hooks.answer([Reply::Status(503)]);
    let id = create(&mut desk, json!({ "url": hooks.url("/in") })).await;
    let first = hooks.next().await;
    until(&desk.site, &event_id(&first), |it| it.attempts.len() == 1).await;
    for _ in 0..1_000 {
        desk.site.key(KeyScope::Inference);
    }
    desk.site.shift(Span::seconds(7));
    let records = since(&desk.site, &id);
    let mut taken = Taken::default();
    taken.until(&mut hooks, last(&records)).await;
    assert_whole(&taken.events, &records);
    let sizes: Vec<usize> = taken.calls.iter().map(|it| it.json().as_array().unwrap().len()).collect();
    assert_eq!((records.len(), sizes), (1_001, [vec![1], vec![100; 10]].concat()));
    desk.site.stop().await;
}

/// A call to try an export out is one event, signed as all of them, to its own address or to one that is named; what came of it is
/// told as of every delivery, and no record is passed over for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_tried_out() {
    let mut desk = open().await;
    let (mut hooks, mut elsewhere) = (Receiver::start().await, Receiver::start().await);
    let config = json!({ "url": hooks.url("/in"), "classes": [3002] });
    let id = create(&mut desk, config).await;
    let path = format!("integrations/{id}/test");
    let tested = desk.ask("POST", &path, Value::Null).await.ok();
    let call = hooks.next().await;
    assert!(call.is_signed_with(&[SECRET]));
    assert_eq!(event_id(&call), text(&tested["deliveryId"]));
    let event = &call.json()[0];
    assert_eq!((&event["unmapped"]["svc"]["type"], &event["class_uid"]), (&json!("test"), &json!(6003)));
    assert_eq!(text(&event["metadata"]["uid"]), event_id(&call));
    until(&desk.site, &event_id(&call), |it| matches!(it.state, JobState::Delivered { .. })).await;
    elsewhere.answer([Reply::Status(404)]);
    let tested = desk.post(&path, json!({ "url": elsewhere.url("/try") })).await.ok();
    elsewhere.next().await;
    let failed = until(&desk.site, text(&tested["deliveryId"]), |it| it.due().is_none()).await;
    assert_eq!((failed.state.as_str(), failed.attempts[0].tried.status), ("failed", Some(404)));
    let listed = desk.read("deliveries?kind=export").await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "{listed}");
    assert!(hooks.is_quiet());
    desk.site.stop().await;
}

/// What an export is configured with is looked at when it is sent, and every fault named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_named() {
    let mut desk = Office::open().await;
    let good = "https://siem.example.com/in";
    let bad: [(Value, &[&str]); 9] = [
        (json!({ "url": "http://siem.example.com/in" }), &["config.url"]),
        (json!({ "url": "https://169.254.169.254/in" }), &["config.url"]),
        (json!({ "url": "https://10.0.0.1/in" }), &["config.url"]),
        (json!({ "url": good, "classes": [] }), &["config.classes"]),
        (json!({ "url": good, "classes": "2004" }), &["config.classes"]),
        (json!({ "url": good, "classes": [2004, 3003, "3001"] }), &["config.classes.1", "config.classes.2"]),
        (json!({ "url": good, "classes": [2004, 2004] }), &["config.classes.1"]),
        (json!({ "url": good, "classes": [2004, 3001, 3002, 3004, 6003, 2004] }), &["config.classes"]),
        (json!({ "url": good, "branches": [], "classes": 7 }), &["config.branches", "config.classes"]),
    ];
    for (config, fields) in bad {
        let got = desk.post("integrations", json!({ "kind": "export", "config": config })).await;
        let wanted: Vec<String> = fields.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!((got.status, got.fields()), (400, wanted), "{config}: {}", got.text());
    }
    let made = desk.post("integrations", json!({ "kind": "export" })).await.made();
    assert!(text(&made["secret"]).starts_with("whsec_") && made.get("receiveUrl").is_none());
    assert_eq!((&made["enabled"], &made["state"]), (&json!(true), &json!("off")), "it waits for an address");
    let place = format!("integrations/{}", text(&made["id"]));
    let named = desk.patch(&place, json!({ "config": { "url": good } })).await.ok();
    assert_eq!(named["state"], json!("ok"));
    let off = desk.patch(&place, json!({ "enabled": false, "config": null })).await.ok();
    assert_eq!((&off["state"], &off["config"]), (&json!("off"), &json!({ "url": null, "classes": null })));
    assert_eq!(desk.patch(&place, json!({ "enabled": true })).await.ok()["state"], json!("off"));
    assert_eq!(desk.ask("POST", &format!("{place}/test"), Value::Null).await.fields(), ["url"]);
    let got = desk.ask("GET", "deliveries?kind=github", Value::Null).await;
    assert!(got.text().contains("`export`"), "{}", got.text());
    desk.site.stop().await;
}

async fn serve(data: &Path) -> Program {
    Program::serve_with(data, BASE_URL, |command| {
        command.arg("--allow-private-callbacks").env("SVC_OUTBOUND_CA_FILE", tls("ca.pem"));
    })
    .await
}

/// A data directory with an agent and an export.
async fn prepared(data: &Path, url: &str) -> Agent {
    let site = Site::with(|plan| plan.directory = Some(data.to_owned())).await;
    let agent = site.agent(&[WIDE]);
    let config = ConfigChange { url: Some(UrlText::parse(url).ok()), ..ConfigChange::default() };
    receiver::connect_kind(&site, IntegrationKind::Export, config);
    site.stop().await;
    agent
}

/// Killed while a delivery is under way: the server that is started next makes it again, the same event with the same body, and
/// goes on behind it. Nothing is left out and nothing overtakes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_goes_on_where_it_was() {
    let data = tempfile::tempdir().unwrap();
    let mut hooks = Receiver::start_tls().await;
    let url = format!("https://localhost:{}/in", hooks.address.port());
    let agent = prepared(data.path(), &url).await;
    hooks.answer([Reply::Status(204), Reply::Silence]);
    let first = serve(data.path()).await;
    let mut taken = Taken::default();
    taken.next(&mut hooks).await;
    let mut client = Client::connect(first.address).await;
    for _ in 0..5 {
        client.authorize(&agent.key, &payment(100)).await.ok();
    }
    // Taken by nobody: it is heard and never answered.
    let lost = hooks.next().await;
    client.authorize(&agent.key, &payment(100)).await.ok();
    first.kill().await;
    let second = serve(data.path()).await;
    let mut client = Client::connect(second.address).await;
    let action = client.authorize(&agent.key, &payment(100)).await.ok();
    let again = taken.next(&mut hooks).await;
    assert_eq!((event_id(&again), &again.body), (event_id(&lost), &lost.body));
    while taken.events.last().is_none_or(|it| it["unmapped"]["svc"]["subject"] != action["id"]) {
        taken.next(&mut hooks).await;
    }
    second.stop().await;
    let rows = rows_of(data.path());
    let mut ledger: Vec<Arc<Entry>> = rows.iter().filter_map(|(.., it)| Entry::peel(it)).cloned().collect();
    ledger.sort_by_key(|it| it.place.as_ref().map(|it| it.seq));
    let begins = ledger.iter().position(|it| &*it.kind == "integration.created").unwrap();
    assert_whole(&taken.events, &ledger[begins..]);
}
