//! What a gate promises while commits become durable beside its lane: nothing of a commit is told before its sync, and after a
//! sync that failed nothing is allowed before one has succeeded.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use svc_core::engine::Failure;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::state::gate::{Request, Verb};
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{CommitError, Key, MemoryStore, Range, Store};
use svc_core::testing::fault::{Fault, Faulty, Operation};
use svc_core::testing::world::{World, key, payment, request, terms};
use svc_core::value::Id as _;
use svc_core::value::link::Index;
use svc_core::value::text::Note;
use svc_store::{Backend, Durability, Gate, LaneWriter, Settings, SqliteStore, StoreError};

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":1000000,"period":"month"}}}"#;
/// Longer than anything takes that happens.
const LONG: Duration = Duration::from_secs(30);

/// A disk, and commits before it: both are counted, wait while they are held, and fail as they are told.
#[derive(Debug, Default)]
struct Disk {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    commits: usize,
    /// How many commits there may be before one waits; none waits without it.
    commits_let: Option<usize>,
    /// The outcome of the next commit is lost, but the commit is not.
    outcome_lost: bool,
    /// The names of the threads that synced.
    syncs: Vec<String>,
    syncs_held: bool,
    failures: usize,
    panics: bool,
}

impl Disk {
    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.moved.notify_all();
    }

    fn until(&self, is: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let (_state, waited) = self.moved.wait_timeout_while(state, LONG, |state| !is(state)).unwrap();
        assert!(!waited.timed_out(), "it never came to that");
    }

    fn commit(&self) -> Option<Fault> {
        let mut number = 0;
        self.tell(|state| {
            state.commits += 1;
            number = state.commits;
        });
        self.until(|state| state.commits_let.is_none_or(|most| number <= most));
        let lost = std::mem::take(&mut self.state.lock().unwrap().outcome_lost);
        lost.then_some(Fault::UnknownApplied)
    }

    fn commits(&self) -> usize {
        self.state.lock().unwrap().commits
    }

    fn syncs(&self) -> Vec<String> {
        self.state.lock().unwrap().syncs.clone()
    }
}

/// A disk as a lane's durability.
#[derive(Debug)]
struct Syncs(Arc<Disk>);

impl Durability for Syncs {
    fn sync(&mut self) -> Result<(), StoreError> {
        let name = thread::current().name().unwrap_or_default().to_owned();
        self.0.tell(|state| state.syncs.push(name));
        self.0.until(|state| !state.syncs_held);
        let mut state = self.0.state.lock().unwrap();
        let (panics, fails) = (std::mem::take(&mut state.panics), state.failures > 0);
        state.failures = state.failures.saturating_sub(1);
        drop(state);
        assert!(!panics, "this disk panics");
        if fails { Err(StoreError::Malformed("this disk fails")) } else { Ok(()) }
    }
}

/// A store in memory behind such a disk.
#[derive(Clone)]
struct Late {
    store: MemoryStore,
    disk: Arc<Disk>,
}

impl Backend for Late {
    type Session = Faulty<MemoryStore>;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        let disk = Arc::clone(&self.disk);
        let plan = move |operation| if operation == Operation::Commit { disk.commit() } else { None };
        Ok(Faulty::new(self.store.clone(), plan))
    }

    fn reader(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        Ok(Faulty::new(self.store.clone(), |_| None))
    }

    fn lane_writer(&self) -> Result<LaneWriter<Self::Session>, <Self::Session as Store>::Error> {
        let durability: Box<dyn Durability> = Box::new(Syncs(Arc::clone(&self.disk)));
        self.writer().map(|session| LaneWriter { session, durability: Some(durability) })
    }
}

fn settings(batch_max: usize) -> Settings {
    let mut settings = Settings::default();
    (settings.timers, settings.batch_max) = (false, batch_max);
    settings
}

/// A gate before such a disk, with one agent.
fn setup(batch_max: usize) -> (Gate, Arc<Disk>, Caller) {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let disk = Arc::new(Disk::default());
    let backend = Late { store, disk: Arc::clone(&disk) };
    (Gate::over(backend, clock, signer, settings(batch_max)).unwrap(), disk, agent)
}

fn ask(caller: Caller, request: Request) -> Authorize {
    Authorize::new(caller, request, [7; 16])
}

fn note(caller: Caller) -> Authorize {
    ask(caller, request("note.write"))
}

fn once(caller: Caller) -> Authorize {
    let mut asked = payment(100, "EUR", "shop.example.com");
    asked.key = Some(key("once"));
    ask(caller, asked)
}

fn actions(gate: &Gate, caller: Caller) -> Result<usize, Failure<StoreError>> {
    gate.scan(&Range::all(Index::ActionsOf, caller.agent.bits(), 100)).map(|found| found.len())
}

fn is_ready(answer: impl Future) -> bool {
    matches!(pin!(answer).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

fn is_unknown<T>(answer: &Result<T, Failure<StoreError>>) -> bool {
    matches!(answer, Err(Failure::Commit(CommitError::Unknown(_))))
}

fn is_unavailable<T>(answer: &Result<T, Failure<StoreError>>) -> bool {
    matches!(answer, Err(Failure::Commit(CommitError::Unavailable(_))))
}

/// While the disk works on a commit, its caller has no answer, listeners hear of no change, and a reader that would see it waits.
/// Each has it once the disk is done.
#[test]
fn nothing_is_told_before_its_sync() {
    let (gate, disk, agent) = setup(256);
    let mut changes = gate.changes();
    disk.tell(|state| state.syncs_held = true);
    let reason = Note::parse("a test stops it").unwrap();
    let freeze = FreezeAgent { workspace: agent.workspace, agent: agent.agent, by: By::Program, reason };
    let mut frozen = Box::pin(gate.submit(freeze));
    let mut asked = Box::pin(gate.submit(note(agent)));
    disk.until(|state| state.syncs.len() == 1);
    let (tell, told) = sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(|| tell.send(gate.read(|scope| scope.get::<svc_core::state::gate::Agent>(agent.agent))));
        let early = told.recv_timeout(Duration::from_millis(100));
        assert!(matches!(early, Err(RecvTimeoutError::Timeout)), "a reader told of it: {early:?}");
        assert!(!is_ready(&mut frozen) && !is_ready(&mut asked));
        assert!(changes.try_recv().is_err(), "listeners were told");
        disk.tell(|state| state.syncs_held = false);
        let read = told.recv_timeout(LONG).unwrap().unwrap().unwrap();
        assert!(read.following.is_some(), "the reader saw the stop");
    });
    assert!(pollster::block_on(frozen).is_ok());
    assert_eq!(pollster::block_on(asked).unwrap().verb(), Verb::Deny);
    assert!(changes.try_recv().unwrap().keys.contains(&Key::Agent(agent.agent)));
}

/// One caller at a time is answered by the lane itself. While others wait, the lane commits for them beside the sync, and the next
/// sync serves all that was committed meanwhile.
#[test]
fn a_sync_serves_many_commits_and_one_caller_needs_no_second_thread() {
    let (gate, disk, agent) = setup(1);
    for _ in 0..3 {
        gate.execute(note(agent)).unwrap();
    }
    assert_eq!(disk.syncs(), ["svc-lane-0"; 3]);

    disk.tell(|state| (state.commits_let, state.syncs_held) = (Some(3), true));
    let mut asked: Vec<_> = (0..3).map(|_| gate.submit(note(agent))).collect();
    disk.until(|state| state.commits == 4);
    disk.tell(|state| state.commits_let = Some(4));
    // The second begins beside the sync of the first. The third would be alone where two are being made durable.
    disk.until(|state| state.commits == 5 && state.syncs.len() == 4);
    disk.tell(|state| state.commits_let = None);
    asked.push(gate.submit(note(agent)));
    disk.until(|state| state.commits == 6);
    // The fourth begins after the third was handed over, once as many wait as the three that are being made durable.
    asked.extend((0..2).map(|_| gate.submit(note(agent))));
    disk.until(|state| state.commits == 7);
    assert_eq!(disk.syncs().len(), 4, "the disk is at the first of them still");
    disk.tell(|state| state.syncs_held = false);
    for answer in asked {
        assert!(pollster::block_on(answer).is_ok());
    }
    assert!(disk.syncs().len() < disk.commits(), "the second and the third commit shared one");
    assert_eq!(disk.syncs()[3..5], ["svc-sync-0"; 2]);
}

/// A commit whose sync failed is no allow and no reader tells of it; the same idempotency key tells later what is true. While syncs
/// fail, nothing more is even committed.
#[test]
fn a_failed_sync_is_never_an_allow() {
    let (gate, disk, agent) = setup(256);
    let before = actions(&gate, agent).unwrap();
    disk.tell(|state| state.failures = usize::MAX);
    let first = gate.execute(once(agent));
    assert!(is_unknown(&first), "{first:?}");
    let commits = disk.commits();
    let again = gate.execute(once(agent));
    assert!(is_unavailable(&again), "{again:?}");
    assert_eq!(disk.commits(), commits);
    assert!(matches!(actions(&gate, agent), Err(Failure::Load(_))));
    disk.tell(|state| state.failures = 0);
    let third = gate.execute(once(agent)).unwrap();
    assert!(third.verb() == Verb::Allow && third.is_replay());
    assert_eq!(actions(&gate, agent).unwrap(), before + 1);
}

/// What was committed while a sync failed is answered by the sync after it.
#[test]
fn what_is_committed_beside_a_failing_sync_waits_for_the_next() {
    let (gate, disk, agent) = setup(1);
    disk.tell(|state| (state.commits_let, state.syncs_held, state.failures) = (Some(0), true, 1));
    let asked: Vec<_> = (0..2).map(|_| gate.submit(note(agent))).collect();
    disk.until(|state| state.commits == 1);
    disk.tell(|state| state.commits_let = Some(1));
    disk.until(|state| state.commits == 2 && state.syncs.len() == 1);
    disk.tell(|state| (state.commits_let, state.syncs_held) = (None, false));
    let answers: Vec<_> = asked.into_iter().map(pollster::block_on).collect();
    assert!(is_unknown(&answers[0]) && answers[1].is_ok(), "{answers:?}");
}

/// Readers are served again without anybody asking for a decision: the failed sync is tried again.
#[test]
fn readers_recover_by_themselves() {
    let (gate, disk, agent) = setup(256);
    disk.tell(|state| state.failures = 2);
    assert!(is_unknown(&gate.execute(note(agent))));
    disk.until(|state| state.syncs.len() == 3);
    while actions(&gate, agent).is_err() {
        thread::yield_now();
    }
}

/// A disk that panics answers like one that fails, and its lane goes on.
#[test]
fn a_panicking_sync_leaves_nobody_waiting() {
    let (gate, disk, agent) = setup(1);
    disk.tell(|state| state.panics = true);
    assert!(is_unknown(&gate.execute(note(agent))));
    assert!(gate.execute(note(agent)).is_ok());
    let commits = disk.commits();
    disk.tell(|state| (state.commits_let, state.panics) = (Some(commits), true));
    let asked: Vec<_> = (0..3).map(|_| gate.submit(note(agent))).collect();
    disk.until(|state| state.commits > commits);
    disk.tell(|state| state.commits_let = None);
    assert!(asked.into_iter().map(pollster::block_on).any(|answer| is_unknown(&answer)));
    assert!(gate.execute(note(agent)).is_ok());
}

/// A commit that is found after its outcome was lost is answered after a sync, as any other.
#[test]
fn a_commit_that_was_read_back_is_synced_first() {
    let (gate, disk, agent) = setup(256);
    disk.tell(|state| state.outcome_lost = true);
    assert_eq!(gate.execute(once(agent)).unwrap().verb(), Verb::Allow);
    assert_eq!(disk.syncs().len(), 1);
    disk.tell(|state| (state.outcome_lost, state.failures) = (true, 1));
    assert!(is_unknown(&gate.execute(note(agent))));
}

/// Closing a gate answers what is queued and what is being made durable.
#[test]
fn closing_waits_for_the_disk() {
    let (gate, disk, agent) = setup(1);
    disk.tell(|state| (state.commits_let, state.syncs_held) = (Some(0), true));
    let asked: Vec<_> = (0..4).map(|_| gate.submit(note(agent))).collect();
    disk.until(|state| state.commits == 1);
    disk.tell(|state| state.commits_let = None);
    disk.until(|state| state.syncs.len() == 1);
    let closing = gate.clone();
    let closer = thread::spawn(move || closing.close());
    // A lane that closes waits for nothing before it does the rest.
    disk.until(|state| state.commits == 4);
    assert!(!closer.is_finished());
    disk.tell(|state| state.syncs_held = false);
    closer.join().unwrap();
    for answer in asked {
        assert!(is_ready(answer), "the gate was closed before it had answered");
    }
}

/// On a file: many callers at once, all answered, all there after a restart.
#[test]
fn what_was_answered_is_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let mut world = World::over(store.writer().unwrap(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    drop(world);
    let gate = Gate::over(store, clock.clone(), Arc::clone(&signer), settings(4)).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let id = gate.execute(note(agent)).unwrap().id();
                    assert!(gate.read(|scope| svc_core::rules::read::get_action(scope, &agent, id)).is_ok());
                }
            });
        }
    });
    drop(gate);
    let gate = Gate::over(SqliteStore::existing(dir.path()).unwrap(), clock, signer, settings(4)).unwrap();
    assert_eq!(actions(&gate, agent).unwrap(), 80);
}
