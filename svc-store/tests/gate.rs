//! What a gate promises beside its rules: one decision for each of many callers at once, and no allow out of any doubt.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod clones;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use svc_core::answer::Decided;
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::evidence::{Chain, Tile, TileId};
use svc_core::state::gate::{OutcomeStatus, Request, Status, Verb};
use svc_core::state::people::{KeyScope, Purpose, Settings as WorkspaceSettings};
use svc_core::store::{
    Clock as _, Commit, CommitError, Committed, Found, Key, Loaded, MemoryStore, Range, Record, Store,
};
use svc_core::testing::FakeClock;
use svc_core::testing::fault::{Fault, Faulty, Operation};
use svc_core::testing::world::{World, key, payment, request, terms};
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;
use svc_core::value::link::{Index, shard};
use svc_core::value::text::{Email, Label, Note};
use svc_core::value::{Id as _, Span};
use svc_store::{AgentKey, Backend, Gate, Settings, SqliteStore, StoreError};

use clones::Clones;

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":1000000,"period":"month"}}}"#;

type Plan = dyn Fn(Operation) -> Option<Fault> + Send + Sync;

/// A store in memory whose writer fails, waits or panics as its plan says.
#[derive(Clone)]
struct Planned {
    store: MemoryStore,
    plan: Arc<Plan>,
}

impl Backend for Planned {
    type Session = Faulty<MemoryStore>;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        let plan = Arc::clone(&self.plan);
        Ok(Faulty::new(self.store.clone(), move |operation| plan(operation)))
    }

    fn reader(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        Ok(Faulty::new(self.store.clone(), |_| None))
    }
}

fn manual() -> Settings {
    let mut settings = Settings::default();
    settings.timers = false;
    settings
}

/// A gate over what a world has made, its agent, and the world's clock.
struct Setup {
    gate: Gate,
    store: MemoryStore,
    agents: Vec<Caller>,
    clock: FakeClock,
}

fn setup(
    agents: usize,
    settings: Settings,
    plan: impl Fn(Operation) -> Option<Fault> + Send + Sync + 'static,
) -> Setup {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agents = (0..agents).map(|_| world.agent().with_mandate(terms(OFFICE)).register()).collect();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let backend = Planned { store: store.clone(), plan: Arc::new(plan) };
    let gate = Gate::over(backend, clock.clone(), signer, settings).unwrap();
    Setup { gate, store, agents, clock }
}

fn ask(caller: Caller, request: Request) -> Authorize {
    Authorize::new(caller, request, [7; 16])
}

/// Blocks commits until it is told to let them go, and counts them.
struct Latch {
    entered: Mutex<Receiver<()>>,
    go: SyncSender<()>,
    commits: Arc<AtomicUsize>,
}

fn latch() -> (Latch, impl Fn(Operation) -> Option<Fault> + Send + Sync + 'static) {
    let (enter, entered) = sync_channel(1_024);
    let (go, gone) = sync_channel::<()>(1_024);
    let (gone, commits) = (Mutex::new(gone), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&commits);
    let plan = move |operation| {
        if operation == Operation::Commit {
            count.fetch_add(1, Ordering::SeqCst);
            enter.send(()).unwrap();
            // Once the test has let go of its end, commits pass.
            let _ = gone.lock().unwrap().recv();
        }
        None
    };
    (Latch { entered: Mutex::new(entered), go, commits }, plan)
}

impl Latch {
    fn wait(&self) {
        self.entered.lock().unwrap().recv_timeout(Duration::from_secs(30)).expect("the lane commits");
    }
}

fn is_refused<T: std::fmt::Debug>(answer: &Result<T, Failure<StoreError>>, kind: Kind) -> bool {
    matches!(answer, Err(Failure::Refused(refusal)) if refusal.kind() == kind)
}

/// The way of an embedder: a directory, an agent's key, ask, act, settle; all of it is there after a restart, the receipt key
/// included.
#[test]
fn an_embedder_asks_acts_and_settles() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::open(dir.path(), "https://gate.example.com").unwrap();
    let made = CreateWorkspace {
        name: Label::parse("Home").unwrap(),
        owner: Email::parse("owner@example.com").unwrap(),
        settings: WorkspaceSettings::default(),
    };
    let workspace = gate.execute(made).unwrap();
    let registered = gate
        .execute(RegisterAgent {
            mandates: vec![svc_core::rules::people::mandates::Content::Whole(Box::new(terms(OFFICE)))],
            ..RegisterAgent::new(workspace.id, Label::parse("Shopper").unwrap(), NewKey::of("ask_secret"))
        })
        .unwrap();
    assert!(is_refused(&gate.agent(AgentKey::parse("ask_other").unwrap()), Kind::InvalidApiKey));
    let agent = gate.agent(AgentKey::parse("ask_secret").unwrap()).unwrap();
    let allowed = agent.authorize(payment(4_900, "EUR", "shop.example.com")).unwrap();
    assert_eq!(allowed.verb(), Verb::Allow);
    let receipt = allowed.receipt().unwrap().to_owned();
    let settled = agent.settle(allowed.id(), OutcomeStatus::Completed, Some(4_900)).unwrap();
    assert_eq!(settled.status(), Status::Completed);
    drop((gate, agent));

    let gate = Gate::open(dir.path(), "https://gate.example.com").unwrap();
    let keys = gate.public_keys().unwrap();
    let parsed = svc_core::state::gate::receipt::parse(&receipt).unwrap();
    assert!(keys.verify(&parsed).is_ok(), "the receipt key outlives the process");
    let made = |kid: &str| gate.signer().made(kid, parsed.signing_input().as_bytes(), parsed.signature());
    assert!(made(parsed.kid()), "and knows again what it signed");
    assert!(!made(""), "a key of no such name knows nothing");
    let other = gate.signer().of(Purpose::Checkpoint, gate.now()).unwrap();
    let signature = other.sign(b"a checkpoint");
    assert!(other.made(other.kid(), b"a checkpoint", &signature));
    assert!(!gate.signer().made(other.kid(), b"a checkpoint", &signature), "a key of another use signs no receipt");
    let agent = gate.agent(AgentKey::parse("ask_secret").unwrap()).unwrap();
    assert_eq!(agent.get(allowed.id()).unwrap().status(), Status::Completed);
    assert_eq!(agent.caller().agent, registered.agent.id);
    drop((gate, agent));

    std::fs::remove_file(dir.path().join("master.key")).unwrap();
    let refused = Gate::open(dir.path(), "https://gate.example.com");
    assert!(matches!(refused, Err(StoreError::MasterKeyMissing { .. })), "no second key is made: {refused:?}");
    assert!(!dir.path().join("master.key").exists());
}

/// Sixty-four callers with one idempotency key get one action, durably, on a file.
#[test]
fn one_key_is_one_action_for_64_callers() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let mut world = World::over(store.writer().unwrap(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    drop(world);
    let gate = Gate::over(store, clock, signer, manual()).unwrap();
    let asked = || ask(agent, payment(100, "EUR", "shop.example.com").keyed(key("once")));
    let ids: BTreeSet<_> = thread::scope(|threads| {
        let callers: Vec<_> = (0..64).map(|_| threads.spawn(|| gate.execute(asked()).unwrap().id())).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    let listed = gate.scan(&Range::all(Index::ActionsOf, agent.agent.bits(), 100)).unwrap();
    assert_eq!(listed.len(), 1);
}

/// Sixty-four callers at a line of ten get ten allows.
#[test]
fn a_line_holds_against_64_callers() {
    let Setup { gate, agents, .. } = setup(1, manual(), |_| None);
    let verbs: Vec<Verb> = thread::scope(|threads| {
        let each = |n: i64| {
            let (gate, agent) = (&gate, agents[0]);
            threads.spawn(move || {
                let asked = payment(100, "EUR", &format!("shop{n}.com"));
                gate.execute(ask(agent, asked)).unwrap().verb()
            })
        };
        let callers: Vec<_> = (0..64).map(each).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(verbs.iter().filter(|verb| **verb == Verb::Allow).count(), 10);
}

/// What is queued while a commit runs is the next batch, answered in order; a full queue sends further callers away at once.
#[test]
fn a_batch_is_what_was_queued_and_a_full_queue_refuses() {
    let (latch, plan) = latch();
    let mut settings = manual();
    settings.queue_max = 8;
    let Setup { gate, agents, .. } = setup(1, settings, plan);
    let ask = || ask(agents[0], request("note.write"));
    let first = gate.submit(ask());
    latch.wait();
    let queued: Vec<_> = (0..8).map(|_| gate.submit(ask())).collect();
    assert!(is_refused(&gate.execute(ask()), Kind::NotReady), "the ninth does not wait");
    let (commits, go) = (latch.commits, latch.go);
    drop(go);
    let mut ids = vec![pollster::block_on(first).unwrap().id()];
    ids.extend(queued.into_iter().map(|answer| pollster::block_on(answer).unwrap().id()));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 9);
    assert_eq!(commits.load(Ordering::SeqCst), 2, "eight commands, one commit");
}

/// Closing a gate does what is queued, and takes nothing more.
#[test]
fn closing_drains_the_queue() {
    let (latch, plan) = latch();
    let Setup { gate, agents, .. } = setup(1, manual(), plan);
    let ask = || ask(agents[0], request("note.write"));
    let mut queued = vec![gate.submit(ask())];
    latch.wait();
    queued.extend((0..3).map(|_| gate.submit(ask())));
    let closing = gate.clone();
    let closer = thread::spawn(move || closing.close());
    drop(latch.go);
    closer.join().unwrap();
    for answer in queued {
        assert!(pollster::block_on(answer).is_ok());
    }
    assert!(matches!(gate.execute(ask()), Err(Failure::Load(StoreError::Closed))));
}

/// A store that cannot take one command's rows.
#[derive(Clone)]
struct Picky {
    store: MemoryStore,
    poison: Key,
    panics: bool,
}

impl Store for Picky {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        assert!(!(self.panics && keys.contains(&self.poison)), "this store panics");
        self.store.load(keys).map_err(StoreError::of)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<StoreError>> {
        if commit.writes.iter().any(|write| write.key == self.poison) {
            return Err(CommitError::Rejected(StoreError::Malformed("poison")));
        }
        self.store.commit(commit).map_err(|error| CommitError::Unavailable(StoreError::of(error)))
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        self.store.scan(range).map_err(StoreError::of)
    }
}

/// A command that panics as it is decided, or that the store rejects, answers a failure; its neighbours in the batch do not notice.
#[test]
fn neighbours_of_a_poisonous_command_are_answered() {
    for panics in [true, false] {
        let Setup { store, agents, clock, gate } = setup(5, manual(), |_| None);
        let signer = Arc::clone(gate.signer());
        let poison = Key::Activity(agents[2].agent);
        let gate = Gate::over(Clones(Picky { store, poison, panics }), clock, signer, manual()).unwrap();
        for _ in 0..2 {
            let asked: Vec<_> = agents.iter().map(|agent| gate.submit(ask(*agent, request("note.write")))).collect();
            for (n, answer) in asked.into_iter().enumerate() {
                let answer = pollster::block_on(answer);
                match (n, panics) {
                    (2, true) => assert!(is_refused(&answer, Kind::Internal), "{answer:?}"),
                    (2, false) => assert!(matches!(answer, Err(Failure::Commit(CommitError::Rejected(_))))),
                    _ => assert!(answer.is_ok(), "{n}: {answer:?}"),
                }
            }
        }
    }
}

/// A commit whose outcome got lost is looked for: found, it is answered; not found, nothing is allowed, and the same
/// idempotency key tells later what is true.
#[test]
fn a_lost_outcome_is_never_an_allow() {
    for (fault, applied) in [(Fault::UnknownApplied, true), (Fault::UnknownLost, false)] {
        let armed = Arc::new(Mutex::new(Some(fault)));
        let plan = move |operation| if operation == Operation::Commit { armed.lock().unwrap().take() } else { None };
        let Setup { gate, agents, .. } = setup(1, manual(), plan);
        let asked = || ask(agents[0], payment(100, "EUR", "shop.example.com").keyed(key("once")));
        let first = gate.execute(asked());
        let again = gate.execute(asked()).unwrap();
        assert_eq!(again.verb(), Verb::Allow);
        assert_eq!(again.is_replay(), applied);
        match first {
            Ok(first) => assert!(applied && first.id() == again.id()),
            Err(failure) => {
                assert!(!applied && matches!(failure, Failure::Commit(CommitError::Unknown(_))), "{failure:?}");
            }
        }
    }
}

/// A store that is away refuses everyone, and is asked again for the next.
#[test]
fn a_store_that_is_away_refuses_and_comes_back() {
    let armed = Arc::new(Mutex::new(vec![Fault::Lost, Fault::Unavailable]));
    let plan = move |operation| {
        let mut faults = armed.lock().unwrap();
        let fits = match faults.last()? {
            Fault::Lost => operation == Operation::Load,
            _ => operation == Operation::Commit,
        };
        if fits { faults.pop() } else { None }
    };
    let Setup { gate, agents, .. } = setup(1, manual(), plan);
    let ask = || gate.execute(ask(agents[0], request("note.write")));
    assert!(matches!(ask(), Err(Failure::Commit(CommitError::Unavailable(_)))));
    assert!(matches!(ask(), Err(Failure::Load(_))));
    assert!(ask().is_ok());
}

/// Another program that writes to the same file, as `svc key create` does beside a server, gets its turn while the server is
/// busy, though both write the head of the ledger; and every record has its place.
#[test]
fn another_program_gets_its_turn_beside_a_busy_server() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Gate::open(dir.path(), "https://gate.example.com").unwrap();
    let server = open();
    let (name, owner) = (Label::parse("Home").unwrap(), Email::parse("owner@example.com").unwrap());
    let made = CreateWorkspace { name, owner, settings: WorkspaceSettings::default() };
    let workspace = server.execute(made).unwrap().id;
    let agent = RegisterAgent::new(workspace, Label::parse("Busy").unwrap(), NewKey::of("ask_busy"));
    let agent_id = server.execute(agent).unwrap().agent.id;
    let agent = server.agent(AgentKey::parse("ask_busy").unwrap()).unwrap();
    let (asked, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                while done.load(Ordering::SeqCst) == 0 {
                    agent.authorize(request("note.write")).unwrap();
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while asked.load(Ordering::SeqCst) < 64 {
            thread::yield_now();
        }
        let other = open();
        for number in 0..20 {
            let key = NewKey::of(&format!("ask_another_{number}"));
            let made = CreateKey::new(workspace, By::Program, KeyScope::Agent(agent_id), key);
            // Panicking in the scope would wait for threads that are never told to end.
            let outcome = other.execute(made);
            if number == 19 || outcome.is_err() {
                done.store(1, Ordering::SeqCst);
            }
            assert!(outcome.is_ok(), "{number}: {outcome:?}");
        }
    });
    assert!(server.scan(&Range::all(Index::Unplaced, shard(workspace), 1)).unwrap().is_empty());
    let size = server.read(|scope| Ok(scope.get::<Chain>(workspace)?.map(|it| it.size))).unwrap().unwrap();
    let newest = Range { newest_first: true, ..Range::all(Index::LedgerOf, workspace.bits(), 1) };
    assert_eq!(server.scan(&newest).unwrap()[0].order + 1, u128::from(size));
    assert!(size >= 20 + 64, "{size}");
}

/// What is due is done by a pass, through the lane: ledger records get places, a reservation lapses.
#[test]
fn a_pass_does_what_is_due() {
    let Setup { gate, agents, clock, .. } = setup(1, manual(), |_| None);
    let allowed = gate.execute(ask(agents[0], payment(100, "EUR", "shop.example.com"))).unwrap();
    let waiting = Range::all(Index::Unplaced, shard(agents[0].workspace), 100);
    assert!(!gate.scan(&waiting).unwrap().is_empty());
    let swept = gate.tick().unwrap().expect("the workspace is swept daily");
    assert!(gate.scan(&waiting).unwrap().is_empty());
    let placed = gate.scan(&Range::all(Index::LedgerOf, agents[0].workspace.bits(), 100)).unwrap();
    let orders: Vec<u128> = placed.iter().map(|found| found.order).collect();
    assert_eq!(orders, (0..placed.len() as u128).collect::<Vec<_>>());
    clock.advance(swept.since(clock.now()));
    let next = gate.tick().unwrap().expect("the reservation has a timer");
    clock.advance(next.since(clock.now()));
    let swept = gate.tick().unwrap().expect("the next day's sweep");
    assert!(swept > next);
    let action = gate.read(|scope| svc_core::rules::read::get_action(scope, &agents[0], allowed.id())).unwrap();
    assert_eq!(action.status(), Status::Lapsed);
    clock.advance(Span::hours(1));
    assert_eq!(gate.tick().unwrap(), Some(swept));
}

/// On a store with one lane a record has its place when its answer comes, in the order of what was asked, full tiles included:
/// nothing waits for a pass.
#[test]
fn a_record_has_its_place_when_the_answer_comes() {
    let Setup { gate, agents, .. } = setup(2, manual(), |_| None);
    let workspace = agents[0].workspace;
    gate.place(workspace).unwrap();
    let chain = || gate.read(|scope| Ok(scope.get::<Chain>(workspace)?.map(|it| Chain::clone(&it)))).unwrap().unwrap();
    let before = chain().size;
    let asked: Vec<_> = (0..300).map(|it| gate.submit(ask(agents[it % 2], request("note.write")))).collect();
    let ids: Vec<String> = asked.into_iter().map(|it| pollster::block_on(it).unwrap().id().to_string()).collect();
    assert!(gate.scan(&Range::all(Index::Unplaced, shard(workspace), 1)).unwrap().is_empty());
    let range = Range { from: before.into(), ..Range::all(Index::LedgerOf, workspace.bits(), 1_000) };
    let placed: Vec<_> = gate.scan(&range).unwrap();
    let subjects: Vec<String> = placed
        .iter()
        .map(|found| match &found.row.record {
            Some(Record::Entry(entry)) => entry.subject.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(subjects, ids);
    assert_eq!(chain().size, before + 300);
    let tile = TileId { workspace, level: 0, index: 0 };
    let tile = gate.read(move |scope| scope.get::<Tile>(tile)).unwrap();
    assert_eq!(tile.map(|it| it.hashes.len()), Some(256));
}

/// The gate's own thread follows up on a stopped agent without being called, and listeners hear of both commits.
#[test]
fn the_gates_own_thread_does_what_is_due() {
    let Setup { gate, agents, .. } = setup(1, Settings::default(), |_| None);
    let mut changes = gate.changes();
    let reason = Note::parse("a test stops it").unwrap();
    let agent = agents[0];
    gate.execute(FreezeAgent { workspace: agent.workspace, agent: agent.agent, by: By::Program, reason }).unwrap();
    let (heard, hear) = sync_channel(64);
    thread::spawn(move || {
        while let Ok(change) = changes.blocking_recv() {
            if heard.send(change.keys).is_err() {
                break;
            }
        }
    });
    for what in ["the freeze", "what follows it"] {
        // The ledger's records find their places in between.
        while !hear.recv_timeout(Duration::from_secs(30)).expect(what).contains(&Key::Agent(agent.agent)) {}
    }
}

/// An unknown key is not remembered as unknown: it works from the commit on that makes it.
#[test]
fn a_key_works_as_soon_as_it_is_made() {
    let Setup { gate, agents, .. } = setup(1, manual(), |_| None);
    let digest = Digest::of("ask_second");
    assert_eq!(gate.binding(&digest).unwrap(), None);
    let key = NewKey { digest, prefix: "ask_second".into() };
    let made = CreateKey::new(agents[0].workspace, By::Program, KeyScope::Agent(agents[0].agent), key);
    let credential = gate.execute(made).unwrap();
    assert_eq!(gate.binding(&digest).unwrap().as_deref(), Some(&credential.binding));
    assert!(gate.agent(AgentKey::parse("ask_second").unwrap()).is_ok());
    assert!(is_refused(&AgentKey::parse("sk_second"), Kind::InvalidApiKey));
}

/// A gate has the one address of its service: what is none is said before anything is made, and what can be written in two ways
/// stands in receipts in one.
#[test]
fn a_gate_has_one_base_address() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    for none in ["", "not a url", "ftp://gate.example.com", "http://gate.example.com", "https://me@gate.example.com"] {
        let refused = Gate::open(&data, none);
        assert!(matches!(refused, Err(StoreError::BaseAddress { .. })), "{none}: {refused:?}");
    }
    assert!(!data.exists());
    let gate = Gate::open(&data, "https://Gate.example.com/").unwrap();
    assert_eq!(gate.signer().issuer(), "https://gate.example.com");
}

/// An embedder may block on the gate within a task of tokio as often as it likes, though such a task may poll only so often.
#[test]
fn a_task_may_block_on_the_gate_without_end() {
    let Setup { gate, agents, .. } = setup(1, manual(), |_| None);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (tell, told) = sync_channel(1);
    thread::spawn(move || {
        let asked = runtime
            .block_on(async { (0..300).filter(|_| gate.execute(ask(agents[0], request("crm.read"))).is_ok()).count() });
        tell.send(asked).unwrap();
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(300));
}

/// The handle goes anywhere.
#[test]
fn a_gate_is_send_and_sync() {
    fn anywhere<T: Clone + Send + Sync + 'static>() {}
    fn sendable<T: Send>(_: &T) {}
    anywhere::<Gate>();
    anywhere::<svc_store::AgentHandle>();
    let Setup { gate, agents, .. } = setup(1, manual(), |_| None);
    let future = gate.submit(ask(agents[0], request("note.write")));
    sendable(&future);
    sendable(&gate.verify_async("no receipt", None, None));
    let everything = |agent: &svc_store::AgentHandle, action: ActionId| {
        sendable(&agent.authorize_async(request("note.write")));
        sendable(&agent.settle_async(action, OutcomeStatus::Completed, None));
        sendable(&agent.get_async(action));
        sendable(&agent.report_run_async(action, true));
        sendable(&agent.until_decided(action));
    };
    // Compiling is the test: no agent has to ask.
    let _ = everything;
    drop(gate);
    assert!(pollster::block_on(future).is_ok(), "an answer outlives the handle that asked");
}

/// What a gate has sealed opens for the same purpose, after a restart too, and for no other; a gate without a master key
/// keeps no secret.
#[test]
fn a_secret_is_sealed_for_one_purpose() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::open(directory.path(), "https://gate.example.com").unwrap();
    let sealed = gate.seal("integration/int_1", b"whsec_a").unwrap();
    assert!(!sealed.contains("whsec_a"));
    drop(gate);
    let gate = Gate::open(directory.path(), "https://gate.example.com").unwrap();
    assert_eq!(gate.open_sealed("integration/int_1", &sealed).unwrap().expose(), b"whsec_a");
    assert!(matches!(gate.open_sealed("integration/int_2", &sealed), Err(Failure::Load(StoreError::Sealed))));
    let keyless = setup(0, manual(), |_| None).gate;
    assert!(matches!(keyless.seal("integration/int_1", b"it"), Err(Failure::Load(StoreError::NoVault))));
    assert!(matches!(keyless.open_sealed("integration/int_1", &sealed), Err(Failure::Load(StoreError::NoVault))));
}

fn all_answered(answers: Vec<impl Future<Output = Result<Decided, Failure<StoreError>>>>) {
    answers.into_iter().for_each(|it| drop(pollster::block_on(it).unwrap()));
}

/// What a thread queues before it sleeps is one commit, once it says so or ends; a thread that never says so waits for
/// nobody.
#[test]
fn a_thread_that_tells_when_it_sleeps_wakes_the_lane_once() {
    let commits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&commits);
    let setup = setup(1, manual(), move |operation| {
        count.fetch_add(usize::from(operation == Operation::Commit), Ordering::SeqCst);
        None
    });
    let (gate, caller) = (&setup.gate, setup.agents[0]);
    let submit = || gate.submit_before_park(ask(caller, payment(100, "EUR", "shop.com")));
    let commits = || commits.load(Ordering::SeqCst);
    thread::scope(|scope| {
        // One by one, as nobody else wakes the lane.
        scope.spawn(|| all_answered(vec![submit()])).join().unwrap();
        assert_eq!(commits(), 1);
        let told = || {
            svc_store::about_to_park();
            // The lane answers before it sleeps.
            (0..10_000).for_each(|_| thread::yield_now());
            let answers: Vec<_> = (0..5).map(|_| submit()).collect();
            svc_store::about_to_park();
            all_answered(answers);
        };
        scope.spawn(told).join().unwrap();
        assert_eq!(commits(), 2, "five commands, one commit");
        let ends = || {
            svc_store::about_to_park();
            vec![submit(), submit()]
        };
        all_answered(scope.spawn(ends).join().unwrap());
    });
}
