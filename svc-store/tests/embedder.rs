//! What a program that embeds the gate has beside asking and settling: keys of its own drawing, verdicts on receipts, and a gate that is
//! there already.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use svc_core::engine::Failure;
use svc_core::rules::gate::verify::{Charge, Fault};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::people::{Purpose, Settings as WorkspaceSettings};
use svc_core::store::MemoryStore;
use svc_core::testing::world::{World, payment, terms};
use svc_core::value::{Amount, Timestamp};
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
    let (clock, signer) = (world.clock().clone(), std::sync::Arc::clone(world.engine().signer()));
    let gate = Gate::over(store, clock, signer, Settings::default()).unwrap();
    let refused = gate.rotate_key(Purpose::Receipt, false);
    assert!(matches!(refused, Err(Failure::Load(StoreError::NoVault))), "{refused:?}");
}
