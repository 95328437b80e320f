//! What a program that embeds the gate has beside asking and settling: keys of its own drawing, verdicts on receipts, and a gate that is
//! there already.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use svc_core::answer::Decided;
use svc_core::engine::Failure;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::gate::verify::{Charge, Fault};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::gate::{Action, Code, OutcomeStatus, State, Status, Verb};
use svc_core::state::people::{Purpose, Settings as WorkspaceSettings};
use svc_core::store::{Clock as _, MemoryStore};
use svc_core::testing::FakeClock;
use svc_core::testing::people::sign_in_owner;
use svc_core::testing::world::{World, payment, terms};
use svc_core::value::text::Note;
use svc_core::value::{Amount, Span, Timestamp};
use svc_store::keys::{dalek, fresh_key, receipt_signer};
use svc_store::{AgentHandle, AgentKey, Backend as _, Gate, Settings, SqliteStore, StoreError};

const AT: &str = "https://gate.example.com";
const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":1000000,"period":"month"}}}"#;

/// An agent of a new workspace that may pay, by a key that was drawn for it.
fn shopper(gate: &Gate) -> AgentHandle {
    let (name, owner) = ("Home".parse().unwrap(), "owner@example.com".parse().unwrap());
    let workspace = gate.execute(CreateWorkspace { name, owner, settings: WorkspaceSettings::default() }).unwrap();
    let key = fresh_key().unwrap();
    let new = RegisterAgent::new(workspace.id, "Shopper".parse().unwrap(), NewKey::of(key.expose()));
    gate.execute(RegisterAgent { mandates: vec![Content::Whole(Box::new(terms(OFFICE)))], ..new }).unwrap();
    gate.agent(AgentKey::parse(key.expose()).unwrap()).unwrap()
}

/// A key that is drawn has the form of one and is no other's.
#[test]
fn keys_are_drawn() {
    let (one, other) = (fresh_key().unwrap(), fresh_key().unwrap());
    assert!(AgentKey::parse(one.expose()).is_ok() && one.expose().len() == 47);
    assert_ne!(one.expose(), other.expose());
}

/// Whoever makes the signers by hand is refused an issuer that is none as [`Gate::open`] refuses it, before a key is made; what can
/// be written in two ways stands in receipts in one.
#[test]
fn signers_have_an_issuer_that_is_an_address() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(home.path()).unwrap();
    let signer =
        |issuer| receipt_signer(&mut store.writer().unwrap(), home.path(), None, Timestamp::default(), issuer, &dalek);
    for none in ["", "not a url", "http://gate.example.com"] {
        let refused = signer(none).map(|_| ());
        assert!(matches!(refused, Err(StoreError::BaseAddress { .. })), "{none}: {refused:?}");
    }
    assert!(!home.path().join("master.key").exists());
    assert_eq!(signer("https://Gate.example.com/").unwrap().issuer(), "https://gate.example.com");
}

/// A receipt is judged by its text: one that is none, of another key or altered is no good before anything is looked up; a good one is
/// good once.
#[test]
fn a_receipt_is_verified_by_its_text() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (gate, other) = (Gate::open(here.path(), AT).unwrap(), Gate::open(there.path(), AT).unwrap());
    let receipt = |gate: &Gate| {
        let allowed = shopper(gate).authorize(payment(4_900, "EUR", "shop.example.com")).unwrap();
        allowed.receipt().unwrap().to_owned()
    };
    let (good, strange) = (receipt(&gate), receipt(&other));
    let fault = |text: &str, minor: i64| {
        let charge = Charge {
            amount: Amount::new(minor).unwrap(),
            currency: "EUR".parse().unwrap(),
            domain: Some("shop.example.com".parse().unwrap()),
        };
        gate.verify(text, Some(charge), None).unwrap().fault
    };
    let (head, _) = good.rsplit_once('.').unwrap();
    let (_, foreign) = strange.rsplit_once('.').unwrap();
    assert_eq!(fault("no receipt", 4_900), Some(Fault::Malformed));
    assert_eq!(fault(&strange, 4_900), Some(Fault::UnknownKey));
    assert_eq!(fault(&format!("{head}.{foreign}"), 4_900), Some(Fault::BadSignature));
    assert_eq!(gate.verify(&good, None, None).unwrap().fault, Some(Fault::ChargeRequired));
    assert_eq!(fault(&good, 4_900), None);
    assert_eq!(fault(&good, 4_900), Some(Fault::AlreadyConsumed));
}

/// A gate that has to be there already is not made where it is not.
#[test]
fn a_gate_that_is_there_is_opened_and_none_is_made() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let none = Gate::existing(&data, AT);
    assert!(matches!(none, Err(StoreError::NoData { .. })), "{none:?}");
    assert!(!data.exists());
    drop(Gate::open(&data, AT).unwrap());
    assert!(Gate::existing(&data, AT).is_ok());
}

/// A gate that has no key to seal secrets under says so where another signing key is to follow.
#[test]
fn no_key_follows_without_a_vault() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let gate = Gate::over(store, clock, signer, Settings::default()).unwrap();
    let refused = gate.rotate_key(Purpose::Receipt, false);
    assert!(matches!(refused, Err(Failure::Load(StoreError::NoVault))), "{refused:?}");
}

/// A gate over a store in memory, whose time is told, and an agent of it that may pay and is asked about from 20.00 on.
fn told_time() -> (Gate, FakeClock, AgentHandle, Person) {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let mut settings = Settings::default();
    settings.timers = false;
    let gate = Gate::over(store.clone(), clock.clone(), signer, settings).unwrap();
    let new = RegisterAgent::new(world.workspace(), "Shopper".parse().unwrap(), NewKey::of("ask_secret"));
    let mandates =
        vec![Content::Whole(Box::new(terms(&OFFICE.replace("\"perAction\"", "\"askAbove\":2000,\"perAction\""))))];
    gate.execute(RegisterAgent { mandates, ..new }).unwrap();
    let owner = sign_in_owner(&mut store.clone(), world.workspace(), 1, clock.now());
    let agent = gate.agent(AgentKey::parse("ask_secret").unwrap()).unwrap();
    (gate, clock, agent, owner)
}

/// Polls `future` once.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// What an agent asks, tells and reads can be awaited on any executor, and is the same as what is waited for.
#[test]
fn an_agent_awaits_what_it_asks() {
    let (_gate, _clock, agent, _) = told_time();
    let (settled, read) = pollster::block_on(async {
        let allowed = agent.authorize_async(payment(1_900, "EUR", "shop.example.com")).await.unwrap();
        assert_eq!((allowed.verb(), allowed.receipt().is_some()), (Verb::Allow, true));
        let settled = agent.settle_async(allowed.id(), OutcomeStatus::Completed, Some(1_900)).await.unwrap();
        (settled, agent.get_async(allowed.id()).await.unwrap())
    });
    assert_eq!((settled.status(), read.status()), (Status::Completed, Status::Completed));
    let denied = agent.authorize(payment(5_001, "EUR", "shop.example.com")).unwrap();
    assert_eq!(denied.verb(), Verb::Deny);
    let ran = pollster::block_on(agent.report_run_async(denied.id(), false)).unwrap();
    assert!(ran.action().signals.contains(&Code::UnapprovedRun));
    assert_eq!(agent.report_run(denied.id(), false).unwrap().action().evidence, ran.action().evidence);
}

/// Whoever waits for a decision goes on when a person has decided, when time has, when a stop has, and when the gate is closed; changes
/// of anything else do not end the wait.
#[test]
fn a_decision_is_awaited() {
    let (gate, clock, agent, owner) = told_time();
    let ask = || agent.authorize(payment(2_100, "EUR", "shop.example.com")).unwrap();
    let (one, other) = (ask(), ask());
    let mut waits = pin!(agent.until_decided(one.id()));
    assert!(poll(waits.as_mut()).is_pending());
    let approve = |asked: &Decided| {
        let id = asked.action().approval.unwrap();
        gate.execute(DecideApproval::new(owner, id, Choice::Approve)).unwrap();
    };
    approve(&other);
    assert!(poll(waits.as_mut()).is_pending());
    approve(&one);
    let Poll::Ready(Ok(decided)) = poll(waits.as_mut()) else { panic!("it is decided") };
    assert_eq!((decided.status(), decided.receipt().is_some()), (Status::Allowed, true));
    let again = pollster::block_on(agent.until_decided(one.id())).unwrap();
    assert_eq!(again.status(), Status::Allowed);

    let late = ask();
    let mut waits = pin!(agent.until_decided(late.id()));
    assert!(poll(waits.as_mut()).is_pending());
    clock.advance(Span::hours(24));
    gate.tick().unwrap();
    assert!(matches!(poll(waits.as_mut()), Poll::Ready(Ok(decided)) if decided.status() == Status::Expired));

    let stopped = ask();
    let mut waits = pin!(agent.until_decided(stopped.id()));
    assert!(poll(waits.as_mut()).is_pending());
    let (caller, by, reason) = (agent.caller(), By::Program, Note::parse("Stop").unwrap());
    gate.execute(FreezeAgent { workspace: caller.workspace, agent: caller.agent, by, reason }).unwrap();
    assert!(matches!(poll(waits.as_mut()), Poll::Ready(Ok(decided)) if decided.status() == Status::Denied));
}

/// Nobody decides at a gate that is closed: whoever waits for it is told.
#[test]
fn nothing_is_awaited_of_a_gate_that_is_closed() {
    let (gate, _clock, agent, _) = told_time();
    let asked = agent.authorize(payment(2_100, "EUR", "shop.example.com")).unwrap();
    let mut waits = pin!(agent.until_decided(asked.id()));
    assert!(poll(waits.as_mut()).is_pending());
    gate.close();
    let ended = poll(waits.as_mut());
    assert!(matches!(ended, Poll::Ready(Err(Failure::Load(StoreError::Closed)))), "{ended:?}");
    let ended = pollster::block_on(agent.until_decided(asked.id()));
    assert!(matches!(ended, Err(Failure::Load(StoreError::Closed))), "{ended:?}");
}

/// The same question again, of a wait that time has ended and no timer has seen to, is answered once that end is on record.
#[test]
fn a_question_asked_again_tells_what_is_recorded() {
    let (gate, clock, agent, _) = told_time();
    let question = || payment(2_100, "EUR", "shop.example.com").keyed("one".parse().unwrap());
    let asked = agent.authorize(question()).unwrap();
    clock.advance(Span::hours(24));
    let again = agent.authorize(question()).unwrap();
    assert_eq!((again.id(), again.status(), again.is_replay()), (asked.id(), Status::Expired, true));
    let stored = gate.read(|scope| scope.get::<Action>(asked.id())).unwrap().unwrap();
    assert!(matches!(stored.state, State::Expired { .. }), "{:?}", stored.state);
    assert_eq!(again.action().evidence, stored.evidence);
}
