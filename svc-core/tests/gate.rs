//! The gate end to end over the memory store: ask, settle, verify, stop, lapse.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use svc_core::answer::Decided;
use svc_core::engine::Engine;
use svc_core::refusal::Kind;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::settle::Settle;
use svc_core::rules::gate::verify::{Charge, Fault, Verdict, Verify};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::read::get_action;
use svc_core::state::gate::receipt::{DalekSigner, parse};
use svc_core::state::gate::{OutcomeStatus, Request, Status, Verb};
use svc_core::state::people::Settings;
use svc_core::store::{Clock, MemoryStore};
use svc_core::value::currency::Currency;
use svc_core::value::digest::Digest;
use svc_core::value::domain::Domain;
use svc_core::value::id::ActionId;
use svc_core::value::secret::Secret;
use svc_core::value::seed::Seed;
use svc_core::value::text::{Email, IdempotencyKey, Label};
use svc_core::value::{Amount, Span, Timestamp};

#[derive(Clone, Default)]
struct Hands(Arc<AtomicI64>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_790_847_000_000 + self.0.load(Ordering::Relaxed))
    }
}

struct Gate {
    engine: Engine<MemoryStore, Hands>,
    clock: Hands,
    caller: Caller,
    salts: u128,
}

fn gate(templates: &[&str]) -> Gate {
    let clock = Hands::default();
    let signer = Arc::new(DalekSigner::new(&Secret::new([7; 32]), "https://gate.example.com"));
    let mut engine = Engine::new(MemoryStore::new(), clock.clone(), Seed::new([1; 32]), signer);
    let name = Label::parse("Example").unwrap();
    let owner = Email::parse("owner@example.com").unwrap();
    let workspace = engine.execute(CreateWorkspace { name, owner, settings: Settings::default() }).unwrap();
    let made = engine.execute(RegisterAgent {
        mandates: templates.iter().map(|it| Content::Template((*it).into())).collect(),
        ..RegisterAgent::new(workspace.id, Label::parse("Buyer").unwrap(), NewKey::of("ask_test"))
    });
    let caller = Caller::of(&made.unwrap().binding).unwrap();
    Gate { engine, clock, caller, salts: 0 }
}

impl Gate {
    fn ask(&mut self, request: Request) -> Decided {
        self.salts += 1;
        self.engine.execute(Authorize::new(self.caller, request, self.salts.to_be_bytes())).unwrap()
    }

    fn settle(&mut self, action: ActionId, status: OutcomeStatus, amount: Option<i64>) -> Result<Decided, Kind> {
        let said = Settle { caller: self.caller, action, status, amount };
        self.engine.execute(said).map_err(|failure| match failure {
            svc_core::engine::Failure::Refused(refusal) => refusal.kind(),
            other => panic!("{other}"),
        })
    }

    fn verify(&mut self, receipt: &str, amount: i64, domain: &str) -> Verdict {
        let parsed = parse(receipt).unwrap();
        let amount = Amount::new(amount).unwrap();
        let charge = Charge { amount, currency: Currency::EUR, domain: Some(Domain::parse(domain).unwrap()) };
        let digest = Digest::parse(parsed.claims().digest.strip_prefix("sha256:").unwrap()).unwrap();
        let asked = Verify {
            receipt: parsed.claims().receipt,
            digest,
            charge: Some(charge),
            kind: None,
            key: None,
            body: Digest::of(""),
            signed_by: None,
        };
        self.engine.execute(asked).unwrap()
    }

    fn read(&mut self, id: ActionId) -> (Status, Verb) {
        let caller = self.caller;
        let view = self.engine.read(|scope| get_action(scope, &caller, id)).unwrap();
        (view.status(), view.verb())
    }

    fn advance(&mut self, span: Span) {
        self.clock.0.fetch_add(span.as_millis(), Ordering::Relaxed);
        self.engine.tick().unwrap();
    }
}

fn pay(minor: i64, domain: &str) -> Request {
    let merchant = (Label::parse("Shop").unwrap(), Domain::parse(domain).unwrap());
    Request::payment("Renew the design tool", Amount::new(minor).unwrap(), Currency::EUR, merchant).unwrap()
}

/// An allowed payment has a receipt that is good once, for what was allowed, to whom it was allowed.
#[test]
fn a_receipt_is_good_once() {
    let mut gate = gate(&["saas-subscriptions"]);
    let allowed = gate.ask(pay(49_00, "example.com"));
    assert_eq!((allowed.verb(), allowed.status()), (Verb::Allow, Status::Allowed), "{:?}", allowed.reasons());
    let receipt = allowed.receipt().unwrap().to_owned();
    assert_eq!(gate.verify(&receipt, 49_01, "example.com").fault, Some(Fault::AmountExceeds));
    assert_eq!(gate.verify(&receipt, 49_00, "example.org").fault, Some(Fault::MerchantMismatch));
    assert!(gate.verify(&receipt, 49_00, "pay.example.com").is_valid());
    assert_eq!(gate.verify(&receipt, 49_00, "example.com").fault, Some(Fault::AlreadyConsumed));
}

/// The period limit of the template holds, and above the asking threshold a person is asked.
#[test]
fn limits_deny_and_thresholds_ask() {
    let mut gate = gate(&["saas-subscriptions"]);
    assert_eq!(gate.ask(pay(500_01, "example.com")).verb(), Verb::Deny);
    let asked = gate.ask(pay(200_01, "example.com"));
    assert_eq!((asked.verb(), asked.status()), (Verb::Ask, Status::Pending));
    assert!(asked.url().unwrap().contains("/approvals/apv_"));
    gate.advance(Span::hours(24));
    assert_eq!(gate.read(asked.id()), (Status::Expired, Verb::Deny));
}

/// Settling above what was allowed posts the truth, stops the agent, and voids what it could still act on.
#[test]
fn over_settlement_stops_the_agent() {
    let mut gate = gate(&["saas-subscriptions"]);
    let (first, second) = (gate.ask(pay(10_00, "example.com")), gate.ask(pay(11_00, "example.org")));
    let settled = gate.settle(first.id(), OutcomeStatus::Completed, Some(10_01)).unwrap();
    assert_eq!(settled.action().incident.as_ref().unwrap().settled, 10_01);
    assert_eq!((settled.status(), settled.verb()), (Status::Completed, Verb::Allow));
    assert_eq!(gate.read(second.id()), (Status::Revoked, Verb::Deny));
    assert_eq!(gate.verify(second.receipt().unwrap(), 11_00, "example.org").fault, Some(Fault::Revoked));
    let refused = gate.ask(pay(1_00, "example.net"));
    assert_eq!(refused.reasons().first().unwrap().code.as_str(), "agent_frozen");
    assert_eq!(gate.settle(first.id(), OutcomeStatus::Completed, None).unwrap_err(), Kind::AlreadySettled);
    assert_eq!(gate.settle(refused.id(), OutcomeStatus::Completed, None).unwrap_err(), Kind::NotAllowed);
}

/// One key makes one action; another body under it is a conflict; a week after its end it is free again.
#[test]
fn an_idempotency_key_makes_one_action() {
    let mut gate = gate(&["saas-subscriptions"]);
    let key = || IdempotencyKey::parse("order-17").unwrap();
    let first = gate.ask(pay(10_00, "example.com").keyed(key()));
    let again = gate.ask(pay(10_00, "example.com").keyed(key()));
    assert_eq!((again.id(), again.is_replay(), again.receipt()), (first.id(), true, first.receipt()));
    let other = Authorize::new(gate.caller, pay(10_01, "example.com").keyed(key()), [9; 16]);
    assert!(gate.engine.execute(other).is_err());
    let _ = gate.settle(first.id(), OutcomeStatus::Completed, None).unwrap();
    gate.advance(Span::hours(7 * 24));
    assert_eq!(gate.ask(pay(10_00, "example.com").keyed(key())).id(), first.id());
    gate.advance(Span::millis(1));
    assert_ne!(gate.ask(pay(10_00, "example.com").keyed(key())).id(), first.id());
}

/// What nobody settles is posted after a day and can still be settled, late.
#[test]
fn an_unsettled_action_lapses() {
    let mut gate = gate(&["saas-subscriptions"]);
    let allowed = gate.ask(pay(10_00, "example.com"));
    gate.advance(Span::minutes(15));
    gate.advance(Span::hours(24));
    assert_eq!(gate.read(allowed.id()), (Status::Lapsed, Verb::Allow));
    let settled = gate.settle(allowed.id(), OutcomeStatus::Failed, None).unwrap();
    assert!(settled.action().allowed().unwrap().outcome.as_ref().unwrap().late);
}
