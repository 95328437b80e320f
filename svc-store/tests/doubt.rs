//! What a gate does where it cannot trust its clock, its file or its disk: it decides nothing, and says so.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::evidence::erase::Target;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::people::by::By;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::gate::{
    Action, Agent, Code, Details, Effect, Frozen, FrozenBy, OutcomeStatus, Payload, Reason, Replay, Request, Standing,
};
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{Clock, CommitError, Key, MemoryStore, Range, Row as _, Store};
use svc_core::testing::fault::{Fault, Faulty, Operation};
use svc_core::testing::world::{World, key, payment, request, terms};
use svc_core::testing::{FakeClock, people};
use svc_core::value::id::AgentId;
use svc_core::value::json::Json;
use svc_core::value::link::Index;
use svc_core::value::text::{Email, Label, Note, Summary};
use svc_core::value::{Id as _, Span, Timestamp};
use svc_store::{AgentHandle, AgentKey, Backend, Gate, Settings, SqliteStore, StoreError};

const OFFICE: &str = r#"{"name":"Office","actions":["payment","crm.*"],"limits":{"currency":"EUR","perAction":5000}}"#;

/// A text that is erased.
const ACCOUNT: &str = "account 4711 of Jane Roe";
/// Another.
const OTHER_ACCOUNT: &str = "account 4712 of John Doe";

fn manual() -> Settings {
    let mut settings = Settings::default();
    settings.timers = false;
    settings
}

/// A gate over SQLite with one agent.
fn at(directory: &Path) -> (Gate, AgentHandle) {
    let gate = Gate::open(directory, "https://gate.example.com").unwrap();
    let workspace = gate
        .execute(CreateWorkspace {
            name: Label::parse("Home").unwrap(),
            owner: Email::parse("owner@example.com").unwrap(),
            settings: WorkspaceSettings::default(),
        })
        .unwrap();
    gate.execute(RegisterAgent {
        mandates: vec![Content::Whole(Box::new(terms(OFFICE)))],
        ..RegisterAgent::new(workspace.id, Label::parse("Shopper").unwrap(), NewKey::of("ask_secret"))
    })
    .unwrap();
    let agent = gate.agent(AgentKey::parse("ask_secret").unwrap()).unwrap();
    (gate, agent)
}

/// A row that never changes is deleted like any other: what was erased is gone, and the gate goes on.
#[test]
fn what_is_erased_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let (gate, agent) = at(directory.path());
    let details = Details::of(&Json::parse(format!(r#"{{"account":"{ACCOUNT}"}}"#).as_bytes()).unwrap()).unwrap();
    let asked = agent.authorize(request("crm.read").with_details(details)).unwrap();
    let has_payload = || gate.read(|scope| scope.get::<Payload>(asked.id())).unwrap().is_some();
    assert!(has_payload());
    let workspace = agent.caller().workspace;
    assert!(gate.erase(workspace, &By::Program, Target::Action(asked.id())).unwrap() > 0);
    assert!(!has_payload());
    agent.authorize(payment(100, "EUR", "shop.example")).unwrap();
    // Nor can it be read in the file, once the log is moved into it, or in a copy of it.
    gate.close();
    drop((agent, gate));
    let holds = |name: &str| {
        let bytes = fs::read(directory.path().join(name)).unwrap_or_default();
        bytes.windows(ACCOUNT.len()).any(|it| it == ACCOUNT.as_bytes())
    };
    assert!(!holds("svc.db") && !holds("svc.db-wal"));
}

/// A text that is erased has left nothing behind where its row was written anew before, nor have the pages of a long one.
#[test]
fn what_was_rewritten_and_erased_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let (gate, agent) = at(directory.path());
    let workspace = agent.caller().workspace;
    let mut asked = Vec::new();
    let behind = format!("{}{OTHER_ACCOUNT}", "\u{1f4b6}".repeat(470));
    for text in [ACCOUNT, &behind] {
        let asking = Request::new("crm.update".parse().unwrap(), Summary::parse(text).unwrap());
        asked.push(agent.authorize(asking).unwrap().id());
    }
    for amount in 0..40 {
        agent.authorize(payment(200 + amount, "EUR", "shop.example")).unwrap();
    }
    agent.settle(asked[0], OutcomeStatus::Completed, None).unwrap();
    gate.close();
    drop((agent, gate));
    // So many reasons have it to pages of its own, which it leaves when more come. How much of a row stays in the table itself
    // changes with its length: sooner or later the text is in such a page.
    let mut session = SqliteStore::open(directory.path()).unwrap().writer().unwrap();
    for _ in 0..16 {
        let row = session.load(&[Action::key(asked[1])]).unwrap().remove(0).record.unwrap();
        let mut long = Action::clone(Action::peel(&row).unwrap());
        long.reasons.extend(vec![Reason::new(Code::SplitPayments, Effect::Ask); 11]);
        people::write(&mut session, vec![Action::wrap(long.into())]);
    }
    drop(session);
    let gate = Gate::open(directory.path(), "https://gate.example.com").unwrap();
    for id in asked {
        assert!(gate.erase(workspace, &By::Program, Target::Action(id)).unwrap() > 0);
    }
    // The log goes a moment later, while the gate goes on.
    let log = directory.path().join("svc.db-wal");
    let began = Instant::now();
    while fs::metadata(&log).is_ok_and(|it| it.len() > 0) {
        assert!(began.elapsed() < Duration::from_secs(30), "the log was not cut off");
        std::thread::yield_now();
    }
    gate.close();
    drop(gate);
    let bytes = fs::read(directory.path().join("svc.db")).unwrap();
    for text in [ACCOUNT, OTHER_ACCOUNT] {
        assert!(!bytes.windows(text.len()).any(|it| it == text.as_bytes()), "{text}");
    }
}

/// What a request could be guessed by goes with its action, where it waits for its table too, and its idempotency key makes no other
/// action all the same.
#[test]
fn a_digest_of_what_is_erased_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let (gate, agent) = at(directory.path());
    let asking = || request("crm.read").keyed(key("first"));
    let asked = agent.authorize(asking()).unwrap().id();
    let id = Replay::id_of(agent.caller().agent, &key("first"));
    let row = |gate: &Gate| gate.read(|scope| scope.get::<Replay>(id)).unwrap().unwrap();
    let digest = serde_json::to_string(&row(&gate).body.unwrap()).unwrap();
    let holds = || {
        let files = ["svc.db", "svc.db-wal"].map(|name| fs::read(directory.path().join(name)).unwrap_or_default());
        files.iter().any(|bytes| bytes.windows(digest.len()).any(|it| it == digest.as_bytes()))
    };
    assert!(holds());
    assert_eq!(agent.authorize(asking()).unwrap().id(), asked);
    assert!(gate.erase(agent.caller().workspace, &By::Program, Target::Action(asked)).unwrap() > 0);
    assert_eq!((row(&gate).body, row(&gate).action), (None, asked));
    for asking in [asking(), request("crm.update").keyed(key("first"))] {
        let refused = agent.authorize(asking).unwrap_err();
        assert!(matches!(refused, Failure::Refused(it) if it.kind() == Kind::IdempotencyConflict));
    }
    gate.close();
    drop((agent, gate));
    assert!(!holds());
}

/// A long row that gets short leaves nothing behind either, whatever part of it had pages of its own.
#[test]
fn what_was_long_and_gets_short_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let (gate, agent) = at(directory.path());
    let row = gate.read(|scope| scope.get::<Agent>(agent.caller().agent)).unwrap().unwrap();
    gate.close();
    drop((agent, gate));
    let mut session = SqliteStore::open(directory.path()).unwrap().writer().unwrap();
    let reason = Note::parse(&format!("{}{ACCOUNT}", "\u{1f4b6}".repeat(470))).unwrap();
    let frozen = Frozen::new(row.created_at, FrozenBy::Policy, reason);
    let all = |grants: usize, standing: &Standing| {
        let of = |n: usize| Agent {
            id: AgentId::from_bits((1 << 100) + n as u128),
            mandates: row.mandates.iter().cloned().cycle().take(grants * n).collect(),
            standing: standing.clone(),
            ..Agent::clone(&row)
        };
        (1..=32).map(|n| Agent::wrap(of(n).into())).collect()
    };
    people::write(&mut session, all(1, &Standing::Frozen(frozen)));
    people::write(&mut session, all(0, &Standing::Active));
    drop(session);
    let bytes = fs::read(directory.path().join("svc.db")).unwrap();
    assert!(!bytes.windows(ACCOUNT.len()).any(|it| it == ACCOUNT.as_bytes()));
}

/// A clock that a test sets, and sets back.
#[derive(Clone)]
struct Hands {
    now: Arc<AtomicI64>,
    lag: Arc<AtomicI64>,
}

impl Hands {
    fn at(now: Timestamp) -> Self {
        Self { now: Arc::new(AtomicI64::new(now.as_millis())), lag: Arc::default() }
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn lag(&self) -> Span {
        Span::millis(self.lag.load(Ordering::SeqCst))
    }
}

/// A store in memory with an agent, and the instant at which it stands.
fn world() -> (MemoryStore, Caller, World<MemoryStore>) {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    (store, agent, world)
}

fn is_not_ready<T: std::fmt::Debug>(answer: &Result<T, Failure<StoreError>>) -> bool {
    matches!(answer, Err(Failure::Refused(refusal)) if refusal.kind() == Kind::NotReady)
}

/// A clock that was set back by more than nodes may differ decides nothing, although its gate's own time stands still; nor does
/// another process whose clock is behind what was recorded, whatever it is asked.
#[test]
fn a_clock_that_was_set_back_decides_nothing() {
    let (store, agent, mut world) = world();
    let signer = Arc::clone(world.engine().signer());
    let clock = Hands::at(world.now());
    let gate = Gate::over(store.clone(), clock.clone(), Arc::clone(&signer), manual()).unwrap();
    let ask =
        |gate: &Gate, amount| gate.execute(Authorize::new(agent, payment(amount, "EUR", "shop.example"), [7; 16]));
    ask(&gate, 100).unwrap();
    clock.lag.store(5_000, Ordering::SeqCst);
    ask(&gate, 101).unwrap();
    assert!(!gate.is_behind());
    clock.lag.store(5_001, Ordering::SeqCst);
    assert!(is_not_ready(&ask(&gate, 102)) && gate.is_behind());
    clock.lag.store(0, Ordering::SeqCst);
    ask(&gate, 103).unwrap();

    let hour_ago = Hands::at(clock.now().minus(Span::hours(1)));
    let other = Gate::over(store, hour_ago.clone(), signer, manual()).unwrap();
    assert!(is_not_ready(&ask(&other, 104)) && other.is_behind());
    let home = CreateWorkspace {
        name: Label::parse("Home").unwrap(),
        owner: Email::parse("owner@example.com").unwrap(),
        settings: WorkspaceSettings::default(),
    };
    assert!(is_not_ready(&other.execute(home)), "no record of a time that is over hides the newest one");
    hour_ago.now.store(clock.now().as_millis(), Ordering::SeqCst);
    ask(&other, 105).unwrap();
}

/// A clock that leapt ahead and was set back before anything was decided writes no record of that other time.
#[test]
fn a_clock_that_leapt_ahead_and_back_decides_nothing() {
    let (store, agent, mut world) = world();
    let signer = Arc::clone(world.engine().signer());
    let clock = Hands::at(world.now());
    let gate = Gate::over(store.clone(), clock.clone(), Arc::clone(&signer), manual()).unwrap();
    let day = Span::hours(24).as_millis();
    clock.now.fetch_add(day, Ordering::SeqCst);
    clock.lag.store(day, Ordering::SeqCst);
    let ask = |gate: &Gate| gate.execute(Authorize::new(agent, payment(100, "EUR", "shop.example"), [7; 16]));
    assert!(is_not_ready(&ask(&gate)) && gate.is_behind());
    let restarted = Gate::over(store, Hands::at(world.now()), signer, manual()).unwrap();
    ask(&restarted).unwrap();
}

/// A clock of a year that has no date in HTTP decides nothing, so that no record of that time stands in a ledger; nor does one of before
/// 1970 where there is no record yet that it is behind.
#[test]
fn a_clock_of_no_year_decides_nothing() {
    let (store, agent, mut world) = world();
    let signer = Arc::clone(world.engine().signer());
    let clock = Hands::at(world.now());
    let gate = Gate::over(store, clock.clone(), Arc::clone(&signer), manual()).unwrap();
    let ask = |gate: &Gate| gate.execute(Authorize::new(agent, payment(100, "EUR", "shop.example"), [7; 16]));
    let year_9999 = Timestamp::parse("9999-01-01T00:00:00Z").unwrap();
    clock.now.store(year_9999.as_millis(), Ordering::SeqCst);
    assert!(is_not_ready(&ask(&gate)) && gate.is_behind());
    clock.now.store(world.now().as_millis(), Ordering::SeqCst);
    ask(&gate).unwrap();

    let empty = Gate::over(MemoryStore::default(), Hands::at(Timestamp::from_millis(0)), signer, manual()).unwrap();
    assert!(empty.is_behind());
}

/// The newest record counts in whichever of many workspaces it is: when a gate begins, and when it looks round later.
#[test]
fn a_clock_is_held_against_every_workspace() {
    let (store, _, mut world) = world();
    let home = |n: usize| CreateWorkspace {
        name: Label::parse(&format!("Home {n}")).unwrap(),
        owner: Email::parse("owner@example.com").unwrap(),
        settings: WorkspaceSettings::default(),
    };
    let signer = Arc::clone(world.engine().signer());
    let gate = |now| Gate::over(store.clone(), Hands::at(now), Arc::clone(&signer), manual()).unwrap();
    let now = world.now();
    let early = gate(now);
    for n in 0..130 {
        early.execute(home(n)).unwrap();
    }
    let running = gate(now);
    // As all of them were made in one millisecond, this may be any of them in the list; the last one is the hardest to come by.
    let last = world.engine().scan(&Range { newest_first: true, ..Range::all(Index::Workspaces, 0, 1) }).unwrap();
    let Key::Workspace(workspace) = last[0].row.key else { panic!("{last:?}") };
    gate(now.plus(Span::hours(1)))
        .execute(RegisterAgent::new(workspace, Label::parse("Late").unwrap(), NewKey::of("ask_late")))
        .unwrap();
    let again = gate(now);
    assert!(again.is_behind() && is_not_ready(&again.execute(home(131))));
    assert!(!running.is_behind());
    assert!((0..3).any(|_| running.look_back().unwrap()) && is_not_ready(&running.execute(home(132))));
}

/// A store that takes no commit makes a gate fail, and one that does again makes it well.
#[test]
fn a_gate_fails_with_its_disk() {
    struct Full(MemoryStore, Arc<AtomicBool>, FakeClock);
    impl Backend for Full {
        type Session = Faulty<MemoryStore>;
        fn lanes(&self) -> usize {
            1
        }
        fn writer(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
            let (full, clock) = (Arc::clone(&self.1), self.2.clone());
            // A database that does not answer is given up on after a while.
            let fails = move |it| {
                (it == Operation::Commit && full.load(Ordering::SeqCst)).then(|| {
                    clock.advance(Span::seconds(30));
                    Fault::Unavailable
                })
            };
            Ok(Faulty::new(self.0.clone(), fails))
        }
        fn reader(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
            Ok(Faulty::new(self.0.clone(), |_| None))
        }
    }
    let (store, agent, mut world) = world();
    let (clock, full) = (world.clock().clone(), Arc::new(AtomicBool::new(false)));
    let backend = Full(store, Arc::clone(&full), clock.clone());
    let gate = Gate::over(backend, clock.clone(), Arc::clone(world.engine().signer()), manual()).unwrap();
    let ask = |amount| gate.execute(Authorize::new(agent, payment(amount, "EUR", "shop.example"), [7; 16]));
    let keyed = |amount| {
        let request = payment(amount, "EUR", "shop.example").keyed(key("again"));
        gate.execute(Authorize::new(agent, request, [7; 16]))
    };
    let kept = keyed(104).unwrap().id();
    assert!(!gate.is_failing());
    full.store(true, Ordering::SeqCst);
    assert!(matches!(ask(101), Err(Failure::Commit(CommitError::Unavailable(_)))));
    assert!(gate.is_failing());
    assert_eq!(keyed(104).unwrap().id(), kept, "what needs no room is answered");
    assert!(gate.is_failing(), "which says nothing of the disk");
    full.store(false, Ordering::SeqCst);
    ask(102).unwrap();
    assert!(!gate.is_failing());
    full.store(true, Ordering::SeqCst);
    assert!(ask(103).is_err() && gate.is_failing());
    clock.advance(Span::seconds(5));
    assert!(!gate.is_failing(), "it is worth another try");
}

/// A log that was removed while its database is in use answers nothing any more: whoever opens the database later would find nothing of
/// what stands in it. All of it is there once the gate has stopped by itself.
#[test]
#[cfg(unix)] // Windows takes no name from a file that is open.
fn a_log_that_was_removed_answers_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (gate, agent) = at(directory.path());
    let allowed = agent.authorize(payment(100, "EUR", "shop.example")).unwrap();
    fs::remove_file(directory.path().join("svc.db-wal")).unwrap();
    match agent.authorize(payment(101, "EUR", "shop.example")) {
        Err(Failure::Commit(CommitError::Unavailable(error @ StoreError::Replaced { .. }))) => {
            assert!(error.to_string().contains("svc.db-wal"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(gate.is_failing());
    gate.close();
    drop((agent, gate));
    let gate = Gate::open(directory.path(), "https://gate.example.com").unwrap();
    let agent = gate.agent(AgentKey::parse("ask_secret").unwrap()).unwrap();
    assert_eq!(agent.get(allowed.id()).unwrap().id(), allowed.id());
}

/// A database that was moved away, or replaced by a copy of itself, answers nothing any more: whoever opens the path later
/// would find nothing of it.
#[test]
#[cfg(unix)] // Windows takes no name from a file that is open.
fn a_database_that_was_replaced_answers_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (gate, agent) = at(directory.path());
    let allowed = agent.authorize(payment(100, "EUR", "shop.example")).unwrap();
    let keyed = || payment(104, "EUR", "shop.example").keyed(key("again"));
    agent.authorize(keyed()).unwrap();
    let (file, away) = (directory.path().join("svc.db"), directory.path().join("away.db"));
    fs::rename(&file, &away).unwrap();
    let replaced = |answer: Result<_, Failure<StoreError>>| match answer {
        Err(Failure::Commit(CommitError::Unavailable(error)) | Failure::Load(error)) => {
            assert!(matches!(error, StoreError::Replaced { .. }), "{error}");
        }
        other => panic!("{other:?}"),
    };
    replaced(agent.authorize(payment(101, "EUR", "shop.example")));
    // What writes nothing is no exception.
    replaced(agent.authorize(keyed()));
    replaced(agent.get(allowed.id()));
    fs::copy(&away, &file).unwrap();
    replaced(agent.authorize(payment(102, "EUR", "shop.example")));
    assert!(gate.is_failing());
    fs::rename(&away, &file).unwrap();
    agent.authorize(payment(103, "EUR", "shop.example")).unwrap();
    let reader = SqliteStore::existing(directory.path()).unwrap();
    assert!(reader.reader().is_ok());
}
