//! What the log is told of a store that fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use svc_core::rules::gate::authorize::Authorize;
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{MemoryStore, Store};
use svc_core::testing::fault::{Fault, Faulty, Operation};
use svc_core::testing::world::{World, payment, terms};
use svc_store::{Backend, Gate, Settings};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":1000000,"period":"month"}}}"#;

/// A store in memory whose commits fail as this says. Whoever asks decides, so all is logged on the test's own thread.
#[derive(Clone)]
struct Failing {
    store: MemoryStore,
    fault: Arc<AtomicUsize>,
}

const FAULTS: [Option<Fault>; 3] = [None, Some(Fault::Unavailable), Some(Fault::UnknownLost)];

impl Backend for Failing {
    type Session = Faulty<MemoryStore>;

    fn lanes(&self) -> usize {
        1
    }

    fn waits(&self) -> bool {
        false
    }

    fn writer(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        let fault = Arc::clone(&self.fault);
        let of = move |operation| match operation {
            Operation::Commit => FAULTS.get(fault.load(Ordering::SeqCst)).copied().flatten(),
            Operation::Observe | Operation::Load | Operation::Scan => None,
        };
        Ok(Faulty::new(self.store.clone(), of))
    }

    fn reader(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
        Ok(Faulty::new(self.store.clone(), |_| None))
    }
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Heard {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(format!("{} {}", event.metadata().level(), message.0));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// A store that takes no commits, as on a full disk, is told of once, and once more when it takes them again; each commit of which
/// nobody knows is told of.
#[test]
fn a_trouble_that_lasts_is_told_once() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let fault = Arc::new(AtomicUsize::new(0));
    let mut settings = Settings::default();
    settings.timers = false;
    let gate = Gate::over(Failing { store, fault: Arc::clone(&fault) }, clock, signer, settings).unwrap();
    let heard = Heard::default();
    tracing::subscriber::with_default(heard.clone(), || {
        for (number, with) in [0, 1, 1, 1, 1, 0, 0, 1, 2, 2].into_iter().enumerate() {
            fault.store(with, Ordering::SeqCst);
            let request = payment(1_00, "EUR", &format!("shop-{number}.example"));
            let answer = gate.execute(Authorize::new(agent, request, [7; 16]));
            assert_eq!(answer.is_ok(), with == 0, "{answer:?}");
        }
    });
    let told = heard.0.lock().unwrap().clone();
    let (failed, over) = ("ERROR a batch was not committed", "INFO a trouble is over");
    assert_eq!(told, [failed, over, failed, failed, failed]);
}

/// A program that opens a directory under another address than its server has noted is told so, and not of the same one.
#[test]
fn another_address_than_the_servers_is_told() {
    let home = tempfile::tempdir().unwrap();
    Gate::open(home.path(), "http://127.0.0.1:8080").unwrap().close();
    std::fs::write(home.path().join("base-url"), "http://127.0.0.1:8080\n").unwrap();
    for (given, count) in [("http://127.0.0.1:8080", 0), ("https://gate.example.com", 1)] {
        let heard = Heard::default();
        tracing::subscriber::with_default(heard.clone(), || Gate::open(home.path(), given).unwrap().close());
        let told = heard.0.lock().unwrap().clone();
        let other = told.iter().filter(|it| it.starts_with("WARN the server of this directory has another address"));
        assert_eq!(other.count(), count, "{given}: {told:?}");
    }
}
