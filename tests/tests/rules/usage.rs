//! What is told to be used of a mandate's limits is what decisions go by.

use svc_core::rules::gate::Caller;
use svc_core::rules::people::mandates::Held;
use svc_core::rules::people::usage::{Usage, usage};
use svc_core::state::gate::{Agent, Code, Mandate, OutcomeStatus, Tally, Verb};
use svc_core::state::people::Settings;
use svc_core::store::Store as _;
use svc_core::testing::world::{World, payment, request};
use svc_core::turn::{Rows, read};
use svc_core::value::Timestamp;
use svc_core::value::id::MandateVersionId;
use svc_core::value::period::{Period, Zone};

use super::{ask, calm, fast, only, with};

const BOTH: &str = r#"{"name":"Both","actions":["payment","crm.*"],"limits":{"currency":"EUR","askAbove":5000,"onLimit":"ask",
    "perPeriod":{"amount":10000,"period":"day"},"count":{"max":5,"period":"month"}}}"#;
/// More actions than one page of any list has.
const MANY: usize = 600;

/// An agent's mandates as they stand.
fn held(world: &mut World, agent: &Caller) -> Vec<Held> {
    let grants = world.row::<Agent>(agent.agent).mandates.clone();
    let of = |world: &mut World, id| world.row::<Mandate>(id);
    let version = |it: &svc_core::state::gate::Grant| MandateVersionId { mandate: it.id, version: it.version };
    grants.into_iter().map(|it| Held { mandate: of(world, version(&it)), grant: Some(it) }).collect()
}

/// What is told of an agent's only mandate.
fn told(world: &mut World, agent: &Caller) -> Usage {
    let held = held(world, agent);
    let of: Vec<&Held> = held.iter().collect();
    let (workspace, agent) = (agent.workspace, agent.agent);
    world.engine().read(|scope| usage(scope, workspace, agent, &of)).unwrap().remove(0).unwrap()
}

fn sums(tally: &Tally) -> (i64, i64, i64) {
    (tally.reserved, tally.spent, tally.excess)
}

/// Reserved, posted, given back and let pass beyond: whatever becomes of actions, what is told is what the next decision goes by.
#[test]
fn what_is_told_is_what_the_gate_goes_by() {
    let (mut world, agent) = calm(&[BOTH]);
    let told_now = |world: &mut World| {
        let usage = told(world, &agent);
        (sums(&usage.spend.unwrap()), usage.count.unwrap().count)
    };
    assert_eq!(told_now(&mut world), ((0, 0, 0), 0));
    let paid = world.authorize(&agent, payment(4_000, "EUR", "a.example")).id();
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
    assert_eq!(told_now(&mut world), ((4_000, 0, 0), 2));
    world.settle(&agent, paid, OutcomeStatus::Completed, Some(3_000));
    assert_eq!(told_now(&mut world), ((0, 3_000, 0), 2));
    let waits = world.authorize(&agent, payment(6_000, "EUR", "b.example"));
    assert_eq!((waits.verb(), only(&waits).code), (Verb::Ask, Code::AboveAskThreshold));
    assert_eq!(told_now(&mut world), ((6_000, 3_000, 0), 3), "what waits is reserved");
    let beyond = world.authorize(&agent, payment(1_001, "EUR", "c.example"));
    let spend = told(&mut world, &agent).spend.unwrap();
    let reason = only(&beyond);
    assert_eq!(
        (reason.code, reason.used, reason.clears_at),
        (Code::OverPeriodLimit, Some(spend.used()), Some(spend.until))
    );
    assert_eq!(ask(&mut world, &agent, payment(1_000, "EUR", "d.example")).0, Verb::Allow, "so much is left");
    let owner = world.owner();
    world.approve(&owner, beyond.id());
    world.deny(&owner, waits.id());
    assert_eq!(
        told_now(&mut world),
        ((1_000, 3_000, 1_001), 3),
        "beyond the limit it stands beside, and counts as none"
    );
}

/// A period that has ended holds nothing, and the one that runs is the workspace's own: that of the zone in which it began.
#[test]
fn a_period_that_has_ended_holds_nothing() {
    let zone = |name: &str| Settings { timezone: Zone::parse(name).unwrap(), ..fast() };
    let (mut world, agent) = with(zone("Asia/Kathmandu"), &[BOTH]);
    let to = |world: &mut World, at: &str| {
        let rest = Timestamp::parse(at).unwrap().since(world.now());
        world.advance(rest);
    };
    to(&mut world, "2027-01-31T12:00:00Z");
    assert_eq!(ask(&mut world, &agent, payment(4_000, "EUR", "a.example")).0, Verb::Allow);
    let ends = |usage: &Usage| [&usage.spend, &usage.count].map(|it| it.as_ref().unwrap().until.to_string());
    let turn = "2027-01-31T18:15:00.000Z";
    assert_eq!(ends(&told(&mut world, &agent)), [turn, turn]);
    world.change_settings(zone("UTC"));
    let running = told(&mut world, &agent);
    assert_eq!((ends(&running), running.spend.unwrap().reserved), ([turn, turn].map(str::to_owned), 4_000));
    to(&mut world, turn);
    let next = told(&mut world, &agent);
    let (spend, count) = (next.spend.clone().unwrap(), next.count.clone().unwrap());
    assert_eq!((sums(&spend), count.count, spend.from.to_string()), ((0, 0, 0), 0, turn.to_owned()));
    assert_eq!(ends(&next), ["2027-02-01T00:00:00.000Z", "2027-02-01T00:00:00.000Z"], "what is left of the day in UTC");
    assert_eq!((spend.period, count.period), (Period::Day, Period::Month));
    let over = world.authorize(&agent, payment(10_001, "EUR", "b.example"));
    assert!(over.reasons().iter().any(|it| it.clears_at == Some(spend.until)), "{:?}", over.reasons());
}

/// However many mandates an agent has and whatever it has done, two rows tell what is used of them; a revoked one tells nothing.
#[test]
fn two_rows_tell_it_of_all_mandates() {
    let mandates: Vec<String> = (0..100).map(|n| BOTH.replace("Both", &format!("M{n}"))).collect();
    let many: Vec<&str> = mandates.iter().map(String::as_str).collect();
    let (mut world, agent) = calm(&many);
    let loads = |world: &mut World| {
        let mut held = held(world, &agent);
        held[7].grant = None;
        let of: Vec<&Held> = held.iter().collect();
        let (now, mut keys) = (world.now(), 0);
        let store = world.engine().store();
        let load = |wanted: &[svc_core::store::Key]| {
            keys += wanted.len();
            store.load(wanted)
        };
        let told = read(now, &mut Rows::new(0), load, |scope| usage(scope, agent.workspace, agent.agent, &of));
        let told = told.unwrap().unwrap();
        assert_eq!((told.len(), told.iter().filter(|it| it.is_none()).count(), told[7].is_none()), (100, 1, true));
        keys
    };
    assert_eq!(loads(&mut world), 2);
    for n in 0..MANY {
        let _ = world.authorize(&agent, payment(1, "EUR", &format!("h{n}.example")));
    }
    assert_eq!(loads(&mut world), 2, "nothing grows with the past");
}

/// A limit that is not there has no sum.
#[test]
fn what_has_no_limit_a_period_has_no_sum() {
    let (mut world, agent) = calm(&[super::PAY]);
    assert_eq!(told(&mut world, &agent), Usage::default());
}
