//! What a gate does where the store or the clock that it was given breaks: whoever asked is answered, nothing happens twice, and
//! the gate goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod clones;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pollster::block_on;
use svc_core::OutcomeStatus;
use svc_core::engine::{Engine, Failure};
use svc_core::refusal::Kind;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::settle::Settle;
use svc_core::state::gate::receipt::Signer;
use svc_core::state::gate::{Activity, Status};
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{
    Clock, Commit, CommitError, Committed, Found, Key, Loaded, MemoryStore, Range, Store, all_answered,
};
use svc_core::testing::FakeClock;
use svc_core::testing::world::{World, key, payment, terms};
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;
use svc_core::value::seed::Seed;
use svc_core::value::{Id as _, Timestamp};
use svc_store::{Gate, Settings, StoreError};

use clones::Clones;

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000}}"#;
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a store may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Load,
    /// Before a commit that writes is applied.
    Commit,
    /// After it was applied.
    Committed,
    Scan,
    Release,
}

/// Panics, waits, or says that the store is to fail.
type Breaks = dyn Fn(At) -> bool + Send + Sync;

/// A store in memory that breaks as it is told to.
#[derive(Clone)]
struct Breaking {
    store: MemoryStore,
    breaks: Arc<Breaks>,
}

impl Store for Breaking {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        let leaves_out = (self.breaks)(At::Load);
        let mut rows = self.store.load(keys).unwrap();
        rows.retain(|row| !leaves_out || row.record.is_some());
        Ok(rows)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<StoreError>> {
        let writes = !commit.writes.is_empty();
        if writes && (self.breaks)(At::Commit) {
            return Err(CommitError::Unavailable(StoreError::Malformed("made to fail")));
        }
        let committed = self.store.commit(commit).unwrap();
        if writes {
            (self.breaks)(At::Committed);
        }
        Ok(committed)
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        (self.breaks)(At::Scan);
        Ok(self.store.scan(range).unwrap())
    }

    fn release(&mut self) {
        (self.breaks)(At::Release);
    }
}

/// A clock that panics while it is told to.
#[derive(Clone)]
struct Cracked {
    clock: FakeClock,
    panics: Arc<AtomicBool>,
}

impl Clock for Cracked {
    fn now(&self) -> Timestamp {
        assert!(!self.panics.load(Ordering::SeqCst), "this clock panics");
        self.clock.now()
    }
}

fn manual() -> Settings {
    let mut settings = Settings::default();
    settings.timers = false;
    settings
}

struct Setup {
    store: MemoryStore,
    agent: Caller,
    clock: FakeClock,
    signer: Arc<dyn Signer>,
}

/// What a world has made: an agent that may pay.
fn setup() -> Setup {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    Setup { agent, clock: world.clock().clone(), signer: Arc::clone(world.engine().signer()), store }
}

impl Setup {
    fn gate(&self, settings: Settings, breaks: impl Fn(At) -> bool + Send + Sync + 'static) -> Gate {
        let backend = Clones(Breaking { store: self.store.clone(), breaks: Arc::new(breaks) });
        Gate::over(backend, self.clock.clone(), Arc::clone(&self.signer), settings).unwrap()
    }

    fn pay(&self, amount: i64) -> Authorize {
        Authorize::new(self.agent, payment(amount, "EUR", "shop.example"), [7; 16])
    }

    fn actions(&self) -> usize {
        self.store.dump().iter().filter(|(key, ..)| matches!(key, Key::Action(_))).count()
    }
}

/// Something that happens once, when it is armed.
#[derive(Clone, Default)]
struct Once(Arc<AtomicBool>);

impl Once {
    fn arm(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn fires(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// Holds back the first commit, so that a test can queue a batch behind it: what the store calls, a sign that it waits, and
/// what lets it go.
fn held() -> (impl Fn() + Send + Sync, Receiver<()>, SyncSender<()>) {
    let ((enter, entered), (go, gone)) = (sync_channel(1_024), sync_channel(1_024));
    let (enter, gone) = (Mutex::new(enter), Mutex::new(gone));
    let hold = move || {
        let _ = enter.lock().unwrap().send(());
        let _ = gone.lock().unwrap().recv();
    };
    (hold, entered, go)
}

/// A store that panics after it has applied a commit: the lane looks and finds it applied; nothing of the batch is done again.
#[test]
fn what_was_applied_before_a_panic_is_not_done_again() {
    let it = setup();
    let ((hold, entered, go), after) = (held(), Once::default());
    let fires = after.clone();
    let gate = it.gate(manual(), move |at| {
        if at == At::Commit {
            hold();
        }
        assert!(!(at == At::Committed && fires.fires()), "this store panics");
        false
    });
    go.send(()).unwrap();
    let opened = gate.execute(it.pay(100)).unwrap();
    entered.recv_timeout(PATIENCE).unwrap();
    let first = gate.submit(it.pay(101));
    entered.recv_timeout(PATIENCE).unwrap();
    let asked: Vec<_> = (0..6).map(|n| gate.submit(it.pay(200 + n))).collect();
    let settled =
        gate.submit(Settle { caller: it.agent, action: opened.id(), status: OutcomeStatus::Completed, amount: None });
    go.send(()).unwrap();
    assert!(block_on(first).is_ok());
    entered.recv_timeout(PATIENCE).unwrap();
    after.arm();
    drop(go);
    for answer in asked {
        assert_eq!(block_on(answer).unwrap().status(), Status::Allowed);
    }
    assert_eq!(block_on(settled).unwrap().status(), Status::Completed);
    assert_eq!(it.actions(), 8);
    // Alone as well.
    after.arm();
    assert_eq!(gate.execute(it.pay(300)).unwrap().status(), Status::Allowed);
    assert_eq!(it.actions(), 9);
}

/// A store that panics in a commit of which nothing is found afterwards, or that panics as it is looked for: nobody knows, which
/// is never an allow, and the same idempotency key tells later what is true.
#[test]
fn a_commit_that_panicked_and_is_not_found_is_unknown() {
    for (place, applied) in [(At::Commit, false), (At::Committed, true)] {
        let it = setup();
        let (commit, look) = (Once::default(), Once::default());
        let (in_commit, in_load) = (commit.clone(), look.clone());
        let gate = it.gate(manual(), move |at| {
            if at == place && in_commit.fires() {
                in_load.arm();
                panic!("this store panics");
            }
            assert!(!(at == At::Load && look.fires()), "and again");
            false
        });
        commit.arm();
        let keyed = || Authorize::new(it.agent, payment(100, "EUR", "shop.example").keyed(key("once")), [7; 16]);
        let answer = gate.execute(keyed());
        assert!(matches!(&answer, Err(Failure::Commit(CommitError::Unknown(StoreError::Panicked)))), "{answer:?}");
        assert!(gate.is_failing());
        assert_eq!(it.actions(), usize::from(applied));
        assert_eq!(gate.execute(keyed()).unwrap().is_replay(), applied);
        assert_eq!(it.actions(), 1);
    }
}

/// A clock that panics refuses everybody who waits, and no one for longer than it does.
#[test]
fn a_clock_that_panics_leaves_nobody_waiting() {
    let it = setup();
    let ((hold, entered, go), panics) = (held(), Arc::new(AtomicBool::new(false)));
    let clock = Cracked { clock: it.clock.clone(), panics: Arc::clone(&panics) };
    let breaks = move |at| {
        if at == At::Commit {
            hold();
        }
        false
    };
    let mut settings = manual();
    settings.batch_max = 4;
    let backend = Clones(Breaking { store: it.store.clone(), breaks: Arc::new(breaks) });
    let gate = Gate::over(backend, clock, Arc::clone(&it.signer), settings).unwrap();
    let first = gate.submit(it.pay(100));
    entered.recv_timeout(PATIENCE).unwrap();
    let queued: Vec<_> = (0..9).map(|n| gate.submit(it.pay(200 + n))).collect();
    panics.store(true, Ordering::SeqCst);
    drop(go);
    assert!(block_on(first).is_ok());
    for answer in queued {
        let answer = block_on(answer);
        assert!(matches!(answer, Err(Failure::Load(StoreError::Panicked))), "{answer:?}");
    }
    panics.store(false, Ordering::SeqCst);
    assert!(gate.is_failing());
    assert!(gate.execute(it.pay(300)).is_ok() && !gate.is_failing());
    gate.close();
}

/// A store that panics as it gives back its locks is asked again for the next.
#[test]
fn a_store_that_panics_in_release_is_asked_again() {
    let it = setup();
    let (away, locks) = (Once::default(), Once::default());
    let (is_away, in_release) = (away.clone(), locks.clone());
    let gate = it.gate(manual(), move |at| {
        assert!(!(at == At::Release && in_release.fires()), "this store panics");
        at == At::Commit && is_away.fires()
    });
    away.arm();
    locks.arm();
    assert!(matches!(gate.execute(it.pay(100)), Err(Failure::Commit(CommitError::Unavailable(_)))));
    assert!(!locks.0.load(Ordering::SeqCst) && gate.is_failing());
    assert!(gate.execute(it.pay(101)).is_ok() && !gate.is_failing());
}

/// A store that panics as it is read has not answered, and the next read is answered.
#[test]
fn a_store_that_panics_as_it_is_read_has_not_answered() {
    let it = setup();
    let once = Once::default();
    let fires = once.clone();
    let gate = it.gate(manual(), move |at| {
        assert!(!(matches!(at, At::Scan | At::Load) && fires.fires()), "this store panics");
        false
    });
    let panicked = |failed: Failure<StoreError>| matches!(failed, Failure::Load(StoreError::Panicked));
    once.arm();
    assert!(gate.tick().is_err_and(panicked));
    assert!(gate.tick().is_ok());
    once.arm();
    let read = || gate.read(|scope| scope.get::<Activity>(it.agent.agent));
    assert!(read().is_err_and(panicked) && read().is_ok());
}

/// The gate's own thread goes on after a pass in which its store or its clock panicked.
#[test]
fn the_gates_own_thread_outlives_a_panic() {
    let on_timers = || thread::current().name() == Some("svc-timers");
    struct Timed<F>(FakeClock, F);
    impl<F: Fn()> Clock for Timed<F> {
        fn now(&self) -> Timestamp {
            (self.1)();
            self.0.now()
        }
    }
    for store_panics in [true, false] {
        let it = setup();
        let (tell, told) = sync_channel(1_024);
        let (tell, calls) = (Mutex::new(tell), AtomicUsize::new(0));
        let breaks = move || {
            if on_timers() {
                let _ = tell.lock().unwrap().try_send(());
                assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "the first call panics");
            }
        };
        let breaks: Arc<dyn Fn() + Send + Sync> = Arc::new(breaks);
        let (scans, reads) = (Arc::clone(&breaks), breaks);
        let in_scan = move |at| {
            if store_panics && at == At::Scan {
                scans();
            }
            false
        };
        let clock = Timed(it.clock.clone(), move || {
            if !store_panics {
                reads();
            }
        });
        let backend = Clones(Breaking { store: it.store.clone(), breaks: Arc::new(in_scan) });
        let gate = Gate::over(backend, clock, Arc::clone(&it.signer), Settings::default()).unwrap();
        for call in ["the first", "one of a later pass"] {
            assert!(told.recv_timeout(PATIENCE).is_ok(), "{call}, of the store: {store_panics}");
        }
        gate.close();
    }
}

/// A store that leaves a key out of its answer is not asked for it for ever: whoever asked is refused.
#[test]
fn a_store_that_leaves_a_key_out_refuses() {
    let it = setup();
    let broken = Arc::new(AtomicBool::new(true));
    let leaves_out = Arc::clone(&broken);
    let breaks = move |at| at == At::Load && leaves_out.load(Ordering::SeqCst);
    let gate = it.gate(manual(), breaks.clone());
    let left_out = |failed: &Failure<StoreError>| matches!(failed, Failure::Load(StoreError::LeftOut));
    assert!(gate.execute(it.pay(100)).is_err_and(|it| left_out(&it)));
    assert!(gate.binding(&Digest::of("nobody's key")).is_err_and(|it| left_out(&it)));
    assert!(gate.is_failing());

    let store = Breaking { store: it.store.clone(), breaks: Arc::new(breaks) };
    let mut engine = Engine::new(store, it.clock.clone(), Seed::new([1; 32]), Arc::clone(&it.signer));
    let internal = |failed: Failure<StoreError>| matches!(failed, Failure::Refused(it) if it.kind() == Kind::Internal);
    assert!(engine.execute(it.pay(101)).is_err_and(internal));
    let absent = ActionId::from_bits(1);
    assert!(engine.read(|scope| scope.get::<svc_core::state::gate::Action>(absent)).is_err_and(internal));
    assert_eq!(it.actions(), 0);

    broken.store(false, Ordering::SeqCst);
    assert!(gate.execute(it.pay(102)).is_ok() && engine.execute(it.pay(103)).is_ok());
}

/// Every key has to be answered, in whatever order and how often.
#[test]
fn an_answer_is_whole_where_no_key_is_missing() {
    let keys = [1, 2, 3].map(|bits| Key::Action(ActionId::from_bits(bits)));
    let mut rows = MemoryStore::new().load(&keys).unwrap();
    assert!(all_answered(&keys, &rows) && all_answered(&[], &[]));
    rows.reverse();
    assert!(all_answered(&keys, &rows));
    let last = rows.pop().unwrap();
    assert!(!all_answered(&keys, &rows));
    rows.push(rows.first().unwrap().clone());
    assert!(!all_answered(&keys, &rows), "one of them twice is not all of them");
    rows.push(last);
    assert!(all_answered(&keys, &rows));
}

/// A store in memory whose server is another one where it is told so: then it does not judge a commit.
#[derive(Clone)]
struct Moved {
    store: MemoryStore,
    moved: Arc<dyn Fn() -> bool + Send + Sync>,
    /// How often rows were read, and how many of them the last time.
    loads: Arc<AtomicUsize>,
}

impl Store for Moved {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        self.loads.fetch_add(keys.len(), Ordering::SeqCst);
        Ok(self.store.load(keys).unwrap())
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<StoreError>> {
        if (self.moved)() {
            return Err(CommitError::Unavailable(StoreError::OtherServer));
        }
        Ok(self.store.commit(commit).unwrap())
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        Ok(self.store.scan(range).unwrap())
    }

    fn release(&mut self) {}
}

/// Where another database server has taken over, what the lane knew of rows is read again before anything is decided: the other one may
/// lack the last commits and have given their numbers to others. Nobody is refused for it.
#[test]
fn rows_are_read_again_from_another_server() {
    let it = setup();
    let (moved, loads) = (Once::default(), Arc::new(AtomicUsize::new(0)));
    let fires = moved.clone();
    let backend =
        Clones(Moved { store: it.store.clone(), moved: Arc::new(move || fires.fires()), loads: Arc::clone(&loads) });
    let gate = Gate::over(backend, it.clock.clone(), Arc::clone(&it.signer), manual()).unwrap();
    let read = |gate: &Gate, amount| {
        let before = loads.load(Ordering::SeqCst);
        assert_eq!(gate.execute(it.pay(amount)).unwrap().status(), Status::Allowed);
        loads.load(Ordering::SeqCst) - before
    };
    let first = read(&gate, 100);
    let known = read(&gate, 200);
    assert!(known < first, "{known} of {first} rows are read although they are known");
    moved.arm();
    let again = read(&gate, 300);
    assert!(again >= first, "{again} of {first} rows are read again");
    assert_eq!(it.actions(), 3);
}

/// A store that is another one at every look is none to decide on: everybody is answered, none with an allow, and the gate goes on once
/// it is one again.
#[test]
fn a_store_that_is_never_the_same_is_refused() {
    let it = setup();
    let (moves, looks) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (moving, looked) = (Arc::clone(&moves), Arc::clone(&looks));
    let moved = move || {
        looked.fetch_add(1, Ordering::SeqCst);
        moving.load(Ordering::SeqCst)
    };
    let backend = Clones(Moved { store: it.store.clone(), moved: Arc::new(moved), loads: Arc::default() });
    let gate = Gate::over(backend, it.clock.clone(), Arc::clone(&it.signer), manual()).unwrap();
    for _ in 0..2 {
        let before = looks.load(Ordering::SeqCst);
        let refused = gate.execute(it.pay(100)).map(|it| it.status());
        assert!(
            matches!(refused, Err(Failure::Commit(CommitError::Unavailable(StoreError::OtherServer)))),
            "{refused:?}"
        );
        assert_eq!(looks.load(Ordering::SeqCst) - before, 4);
        assert!(gate.is_failing());
    }
    moves.store(false, Ordering::SeqCst);
    assert_eq!(gate.execute(it.pay(100)).unwrap().status(), Status::Allowed);
    assert_eq!(it.actions(), 1);
}
