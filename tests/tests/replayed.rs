//! The state machine that a bundle's verifier replays, against every record that decisions, stops, holds and restarts write.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeSet;

use svc_core::engine::select::select;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::fleet::{Fleet, FreezeFleet};
use svc_core::rules::gate::lift::LiftHold;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::state::evidence::bundle::Verdict;
use svc_core::state::gate::{OutcomeStatus, Verb};
use svc_core::state::people::{Role, Selector};
use svc_core::testing::world::{charge, payment, terms};
use svc_core::value::Span;
use svc_core::value::id::{AgentId, HoldId};
use svc_core::value::text::Note;
use svc_tests::evidence::{Ledger, check};

/// A mandate that keeps sums, so that what nobody settles is posted, and that asks above 50.00 EUR.
const SUMS: &str = r#"{"name":"Sums","actions":["payment"],"limits":{"currency":"EUR","perAction":10000,
    "askAbove":5000,"perPeriod":{"amount":1000000,"period":"day"}}}"#;

fn note(text: &str) -> Note {
    Note::parse(text).unwrap()
}

fn freeze(ledger: &mut Ledger, selector: &Selector) -> Option<HoldId> {
    let world = &mut ledger.world;
    let (workspace, now) = (world.workspace(), world.now());
    let selected = select(world.engine().store(), workspace, selector, now).unwrap();
    let frozen = world.run(FreezeFleet {
        workspace,
        by: By::Program,
        epoch: selected.epoch,
        agents: selected.agents.clone().into(),
        frozen: selected.frozen,
        digest: selected.digest,
        all: selector.all,
        reason: note("a leak"),
        confirm: Some(i64::from(selected.count())),
        seen: None,
    });
    if let Ok(Fleet::Frozen(halted)) = &frozen { halted.hold } else { panic!("{frozen:?}") }
}

fn restart(ledger: &mut Ledger, agent: AgentId) {
    // A restart waits for what the stop leaves behind.
    ledger.world.engine().tick().unwrap();
    let workspace = ledger.world.workspace();
    let restart = RestartAgent { workspace, agent, by: By::Program, reason: note("mended"), admin: None };
    ledger.world.run(restart).unwrap();
}

/// A yes and a no of persons, two persons' yes, a wait that nobody ended.
fn persons_decide(ledger: &mut Ledger, agent: &Caller) {
    let world = &mut ledger.world;
    let (owner, second) = (world.owner(), world.person(Role::Owner));
    let asked = |world: &mut svc_core::testing::World<_>, amount| {
        let asked = world.authorize(agent, payment(amount, "EUR", "asked.example"));
        assert_eq!(asked.verb(), Verb::Ask);
        asked.id()
    };
    let yes = asked(world, 6_000);
    world.approve(&owner, yes);
    world.settle(agent, yes, OutcomeStatus::Completed, Some(6_000));
    let no = asked(world, 6_001);
    let refused: DecideApproval =
        DecideApproval { note: Some(note("not now")), ..world.decision(&owner, no, Choice::Deny) };
    world.run(refused).unwrap();
    let both = asked(world, 9_000);
    world.approve(&owner, both);
    world.approve(&second, both);
    asked(world, 6_002);
    world.advance(Span::hours(25));
}

/// A receipt that was used and then settled as not done, what a person gives back of it, and one that nobody settled.
fn used_and_released(ledger: &mut Ledger, agent: &Caller) {
    let world = &mut ledger.world;
    let paid = world.authorize(agent, payment(100, "EUR", "a.example"));
    assert!(world.verify(paid.receipt().unwrap(), Some(charge(90, "EUR", "a.example"))).is_valid());
    world.settle(agent, paid.id(), OutcomeStatus::Cancelled, None);
    world.release(By::Program, paid.id()).unwrap();
    world.authorize(agent, payment(101, "EUR", "b.example"));
    world.advance(Span::hours(26));
}

/// Freezes of one, of a few and of all, each with what was allowed and what waited, and how each ends.
fn stops(ledger: &mut Ledger, agent: &Caller, other: &Caller) {
    for stop in 0..4 {
        ledger.world.authorize(agent, payment(200 + stop, "EUR", "c.example"));
        ledger.world.authorize(agent, payment(6_100 + stop, "EUR", "d.example"));
        ledger.world.authorize(other, payment(300 + stop, "EUR", "e.example"));
        let few =
            Selector { agents: Some(vec![agent.agent, other.agent].into_iter().collect()), ..Selector::default() };
        match stop {
            0 => drop(ledger.world.freeze(agent.agent)),
            1 => drop(freeze(ledger, &few)),
            _ => {
                let hold = freeze(ledger, &Selector::everyone()).unwrap();
                let late = ledger.world.agent().with_mandate(terms(SUMS)).register();
                assert_eq!(ledger.world.authorize(&late, payment(1, "EUR", "a.example")).verb(), Verb::Deny);
                let (workspace, owner) = (ledger.world.workspace(), By::Program);
                ledger.world.advance(Span::seconds(1));
                let lift = LiftHold { workspace, hold, by: owner, reason: note("over"), restart: stop == 3 };
                ledger.world.run(lift).unwrap();
                assert_eq!(ledger.world.authorize(&late, payment(1, "EUR", "a.example")).verb(), Verb::Allow);
            }
        }
        if stop % 2 == 0 {
            ledger.world.advance(Span::seconds(1));
        }
        for agent in [agent.agent, other.agent] {
            restart(ledger, agent);
        }
        assert_eq!(ledger.world.authorize(agent, payment(400 + stop, "EUR", "f.example")).verb(), Verb::Allow);
    }
    ledger.world.advance(Span::seconds(1));
}

/// Whatever decides, stops, holds, lifts and restarts, the bundle of it all is whole, read in one and in two pieces.
#[test]
fn what_every_rule_writes_is_replayed() {
    let mut ledger = Ledger::new();
    let mut settings =
        ledger.world.row::<svc_core::state::people::Workspace>(ledger.world.workspace()).settings.clone();
    settings.second_person_above.insert("EUR".parse().unwrap(), 8_000);
    settings.second_person_age_days = 0;
    ledger.world.change_settings(settings);
    let agent = ledger.world.agent().with_mandate(terms(SUMS)).register();
    let other = ledger.world.agent().with_mandate(terms(SUMS)).register();
    used_and_released(&mut ledger, &agent);
    stops(&mut ledger, &agent, &other);
    persons_decide(&mut ledger, &agent);

    let bundle = ledger.bundle(&ledger.all());
    let report = check(&bundle);
    assert_eq!((report.verdict, &report.fault), (Verdict::Whole, &None));
    let json: serde_json::Value = serde_json::from_slice(&bundle).unwrap();
    let records = json["records"].as_array().unwrap();
    let kinds: BTreeSet<&str> = records.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    for kind in [
        "action.allowed",
        "action.approved",
        "action.asked",
        "action.consented",
        "action.denied",
        "action.expired",
        "action.lapsed",
        "action.person_denied",
        "action.released",
        "action.revoked",
        "action.settled",
        "agent.frozen",
        "agent.restarted",
        "fleet.frozen",
        "hold.lifted",
        "hold.set",
        "receipt.consumed",
    ] {
        assert!(kinds.contains(kind), "{kind} is missing of {kinds:?}");
    }
    for from in (1..report.records).step_by(7) {
        let rest = ledger.bundle(&svc_store::evidence::Wanted { start: Some(from), ..ledger.all() });
        assert_eq!(check(&rest).fault, None, "from {from}");
    }
}
