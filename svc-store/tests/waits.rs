//! What waits for a person as its time runs out: whoever reads it hears nothing that a decision on its way takes back.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::gate::asked::Stands;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::gate::{Status, Verb};
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{Clock as _, MemoryStore, Store};
use svc_core::testing::fault::{Faulty, Operation};
use svc_core::testing::people::sign_in_owner;
use svc_core::testing::world::{World, payment, request, terms};
use svc_core::value::text::Label;
use svc_core::value::{Span, Timestamp};
use svc_store::{AgentKey, Backend, Gate, Settings};

const ASKS: &str =
    r#"{"name":"Asks","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,"askAbove":100}}"#;

/// A store in memory that does this before each commit.
#[derive(Clone)]
struct Before {
    store: MemoryStore,
    commit: Arc<dyn Fn() + Send + Sync>,
}

impl Backend for Before {
    type Session = Faulty<MemoryStore>;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        let before = Arc::clone(&self.commit);
        Ok(Faulty::new(self.store.clone(), move |operation| {
            if operation == Operation::Commit {
                before();
            }
            None
        }))
    }

    fn reader(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        Ok(Faulty::new(self.store.clone(), |_| None))
    }
}

/// A person who decides in time is not outrun by the clock: while their word is being written, nobody reads that time has ended the
/// wait.
#[test]
fn a_word_in_time_comes_before_the_clock() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let (enter, entered) = sync_channel::<()>(1);
    let (go, gone) = sync_channel::<()>(1);
    let (gone, holds) = (Mutex::new(gone), Arc::new(AtomicBool::new(false)));
    let holding = Arc::clone(&holds);
    let commit = Arc::new(move || {
        if holding.swap(false, Ordering::SeqCst) {
            enter.send(()).unwrap();
            let _ = gone.lock().unwrap().recv();
        }
    });
    let mut settings = Settings::default();
    settings.timers = false;
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let gate = Gate::over(Before { store: store.clone(), commit }, clock.clone(), signer, settings).unwrap();
    let new = RegisterAgent::new(world.workspace(), Label::parse("Shopper").unwrap(), NewKey::of("ask_secret"));
    let mandates = vec![Content::Whole(Box::new(terms(ASKS)))];
    gate.execute(RegisterAgent { mandates, ..new }).unwrap();
    let agent = gate.agent(AgentKey::parse("ask_secret").unwrap()).unwrap();
    let asked = agent.authorize(payment(1_000, "EUR", "shop.example")).unwrap();
    assert_eq!(asked.verb(), Verb::Ask);
    let life = WorkspaceSettings::default().approval_life();
    let now = clock.advance(Span::millis(life.as_millis() - 1));
    let owner = sign_in_owner(&mut store.clone(), world.workspace(), 1, now);

    holds.store(true, Ordering::SeqCst);
    let approval = asked.action().approval.unwrap();
    let word = gate.submit(DecideApproval::new(owner, approval, Choice::Approve));
    entered.recv_timeout(Duration::from_secs(30)).expect("the word is being written");
    clock.advance(Span::millis(1));
    let read = thread::scope(|threads| {
        let reading = threads.spawn(|| agent.get(asked.id()));
        while !reading.is_finished() && gate.queue_depths() == [0] {
            thread::yield_now();
        }
        drop(go);
        reading.join().unwrap().unwrap()
    });
    assert_eq!(read.status(), Status::Allowed);
    assert_eq!(pollster::block_on(word).unwrap().stands, Stands::Approved);
}

/// A store of several servers, whose clock is this.
struct Shared<F> {
    store: MemoryStore,
    time: F,
}

impl<F: Fn() -> Option<Timestamp> + Send + Sync + 'static> Backend for Shared<F> {
    type Session = MemoryStore;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<MemoryStore, <MemoryStore as Store>::Error> {
        Ok(self.store.clone())
    }

    fn reader(&self) -> Result<MemoryStore, <MemoryStore as Store>::Error> {
        Ok(self.store.clone())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn time(&self) -> Result<Option<Timestamp>, <MemoryStore as Store>::Error> {
        Ok((self.time)())
    }
}

/// Everybody is told to look once a second, also while the database answers nothing.
#[test]
fn a_silent_database_keeps_nobody_from_looking() {
    let (is_silent, (end, over)) = (Arc::new(AtomicBool::new(false)), sync_channel::<()>(1));
    let (asked, over) = (Arc::clone(&is_silent), Mutex::new(over));
    // Once it does not answer any more it is waited for until this test has ended.
    let time = move || {
        if asked.load(Ordering::SeqCst) {
            let _ = over.lock().unwrap().recv();
        }
        None
    };
    let store = Shared { store: MemoryStore::new(), time };
    let mut world = World::over(store.store.clone(), WorkspaceSettings::default());
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let gate = Gate::over(store, clock, signer, Settings::default()).unwrap();
    let mut changes = gate.changes();
    is_silent.store(true, Ordering::SeqCst);
    let (tell, told) = sync_channel(5);
    thread::spawn(move || {
        for _ in 0..5 {
            let is_any = changes.blocking_recv().unwrap().any;
            let _ = tell.send(is_any);
        }
    });
    let looks: Vec<_> = (0..5).map(|_| told.recv_timeout(Duration::from_secs(20))).collect();
    // Before anything can fail: the gate ends when its threads do.
    drop(end);
    assert_eq!(looks, [Ok(true); 5]);
}

/// A server that has never held its clock against the database's decides nothing, and goes on by itself once it has.
#[test]
fn nobody_decides_by_a_clock_that_was_never_compared() {
    let is_away = Arc::new(AtomicBool::new(true));
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().register();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let (asked, own) = (Arc::clone(&is_away), clock.clone());
    let time = move || {
        assert!(!asked.load(Ordering::SeqCst), "it does not answer");
        Some(own.now())
    };
    let store = Shared { store, time };
    let gate = Gate::over(store, clock, signer, Settings::default()).unwrap();
    let ask = || gate.execute(Authorize::new(agent, request("crm.read"), [7; 16]));
    assert!(gate.is_behind());
    assert!(matches!(ask(), Err(Failure::Refused(refusal)) if refusal.kind() == Kind::NotReady));
    is_away.store(false, Ordering::SeqCst);
    let began = std::time::Instant::now();
    while gate.is_behind() {
        assert!(began.elapsed() < Duration::from_secs(30), "it compares once a second");
        thread::yield_now();
    }
    assert!(ask().is_ok());
}
