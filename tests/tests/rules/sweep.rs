//! The daily sweep: what is let go of, when, and what never is.

use std::sync::Arc;

use svc_core::command::Wake;
use svc_core::engine::Engine;
use svc_core::rules::evidence::sweep::{SweepClosed, SweepOld};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::state::edge::{Job, JobState};
use svc_core::state::evidence::Disclosure;
use svc_core::state::gate::{Action, Details, OutcomeStatus, Payload, Replay, Request, State, Sweep};
use svc_core::state::people::Settings;
use svc_core::store::{Commit, Committed, Key, Record, Row, Stamp, Store as _, Write};
use svc_core::testing::FakeClock;
use svc_core::testing::world::{World, key, payment, request};
use svc_core::value::id::{ActionId, EvidenceId};
use svc_core::value::json::Json;
use svc_core::value::seed::Seed;
use svc_core::value::text::UrlText;
use svc_core::value::{Id as _, Span};

use super::{PAY, fast, with};

const DAY: Span = Span::hours(24);

fn keeping(days: u16) -> (World, Caller) {
    with(Settings { retention_days: Some(days), ..fast() }, &[PAY])
}

fn days(world: &mut World, count: usize) {
    for _ in 0..count {
        world.advance(DAY);
    }
}

fn count<R: Row>(world: &mut World) -> usize {
    world.rows().iter().filter(|(.., record)| R::peel(record).is_some()).count()
}

fn keyed(text: &str) -> Request {
    payment(100, "EUR", "a.example").keyed(key(text))
}

fn erasures(world: &mut World) -> Vec<String> {
    let rows = world.rows();
    let entries = rows.iter().filter_map(|(.., it)| if let Record::Entry(it) = it { Some(it) } else { None });
    entries.filter(|it| &*it.kind == "erasure").map(|it| it.data.to_string()).collect()
}

/// An idempotency key answers as long as its action may be open and seven days after, and then it is used anew.
#[test]
fn an_idempotency_key_goes_once_its_action_is_long_closed() {
    let (mut world, agent) = with(fast(), &[PAY]);
    let first = world.authorize(&agent, keyed("order-1")).id();
    world.settle(&agent, first, OutcomeStatus::Completed, None);
    days(&mut world, 6);
    assert_eq!(world.authorize(&agent, keyed("order-1")).id(), first, "it is kept for seven days after at least");
    days(&mut world, 12);
    assert_eq!(count::<Replay>(&mut world), 0);
    assert_eq!(world.row::<Action>(first).replay, None);
    assert_ne!(world.authorize(&agent, keyed("order-1")).id(), first);
    world.audit().assert_clean("after keys were swept");
}

/// What is personal in an action goes once it is older than the setting says; sums, decision and record stay.
#[test]
fn old_actions_lose_what_is_personal() {
    let (mut world, agent) = keeping(30);
    let old = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.settle(&agent, old, OutcomeStatus::Completed, None);
    days(&mut world, 20);
    let young = world.authorize(&agent, payment(200, "EUR", "b.example")).id();
    let ledger = world.ledger();
    days(&mut world, 9);
    assert!(!world.row::<Action>(old).erased, "it is not thirty days old yet");
    days(&mut world, 3);
    let row = world.row::<Action>(old);
    assert!(row.erased && row.summary.as_str() == "[erased]", "{row:?}");
    assert!(matches!(&row.state, State::Allowed(it) if it.outcome.is_some()));
    assert_eq!(row.payment.as_ref().map(|it| it.amount), Some(100));
    assert!(!world.row::<Action>(young).erased);
    let told = erasures(&mut world);
    assert!(told.len() == 1 && told[0].contains(r#""erased":1,"reason":"retention""#), "{told:?}");
    assert!(world.ledger().starts_with(&ledger), "no record is touched");
    days(&mut world, 20);
    assert!(world.row::<Action>(young).erased);
    world.audit().assert_clean("after actions were swept");
}

/// Of an action all texts go, however many there are: nobody looks at it again.
#[test]
fn an_old_action_loses_all_its_texts() {
    let (mut world, agent) = keeping(30);
    let old = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.settle(&agent, old, OutcomeStatus::Completed, None);
    let about = |world: &mut World| {
        let rows = world.rows();
        let of = |it: &Record| matches!(it, Record::Disclosure(it) if *it.subject == *old.to_string());
        rows.iter().filter(|(.., it)| of(it)).count()
    };
    for bits in 1..=300 {
        let entry = EvidenceId::from_bits(bits);
        let (workspace, subject, salt) = (agent.workspace, old.to_string().into(), [7; 16]);
        let texts = vec![("note".into(), "about a person".into())];
        let record = Disclosure::wrap(Arc::new(Disclosure { entry, workspace, subject, by: None, salt, texts }));
        let (key, link) = (record.key(), record.links());
        let write = Write { key, record: Some(record), unlink: Vec::new(), link };
        let done = world.engine().store().commit(&Commit { checks: vec![(key, Stamp::ABSENT)], writes: vec![write] });
        assert!(matches!(done, Ok(Committed::Applied(_))));
    }
    assert!(about(&mut world) >= 300);
    days(&mut world, 32);
    assert!(world.row::<Action>(old).erased);
    assert_eq!(about(&mut world), 0);
}

/// What has become old while no server ran goes with the first sweep after, which is an hour later and not a day.
#[test]
fn the_first_sweep_after_a_stop_is_of_all_that_is_old() {
    let (mut world, agent) = keeping(30);
    let old = world.authorize(&agent, keyed("order-1")).id();
    world.settle(&agent, old, OutcomeStatus::Completed, None);
    days(&mut world, 9);
    world.clock().advance(Span::hours(24 * 22));
    world.advance(Span::millis(1));
    assert!(!world.row::<Action>(old).erased && count::<Replay>(&mut world) == 1, "the clock may be ahead");
    world.advance(Span::hours(1));
    assert!(world.row::<Action>(old).erased && count::<Replay>(&mut world) == 0);
    assert_eq!(world.row::<Sweep>(agent.workspace).erased_to, Some(old));
}

/// A clock that is ahead for a moment lets go of nothing, neither keys nor texts; and once it is right and a server starts, the sweep
/// that it has put off comes as if nothing had been.
#[test]
fn a_clock_that_is_ahead_for_a_moment_lets_go_of_nothing() {
    let (mut world, agent) = keeping(30);
    let first = world.authorize(&agent, keyed("order-1")).id();
    world.settle(&agent, first, OutcomeStatus::Completed, None);
    let (workspace, there) = (agent.workspace, FakeClock::new(world.now().plus(Span::hours(24 * 3_653))));
    let signer = Arc::clone(world.engine().signer());
    let mut ahead = Engine::new(world.engine().store().clone(), there.clone(), Seed::new([9; 32]), signer);
    for _ in 0..3 {
        ahead.tick().unwrap();
        there.advance(Span::minutes(1));
    }
    assert!(!world.row::<Action>(first).erased && count::<Replay>(&mut world) == 1);
    assert_eq!(world.authorize(&agent, keyed("order-1")).id(), first, "it is the same order still");
    world.run(Wake(Key::Sweep(workspace))).unwrap();
    assert_eq!(world.row::<Sweep>(workspace).due, world.now());
    days(&mut world, 18);
    assert_eq!(count::<Replay>(&mut world), 0);
    days(&mut world, 14);
    assert!(world.row::<Action>(first).erased);
    world.audit().assert_clean("after the clock was right again");
}

/// Who says for how long texts are kept has it kept to, also where a clock that was ahead has put the sweep off.
#[test]
fn a_setting_brings_forward_what_was_put_off() {
    let (mut world, agent) = keeping(60);
    let old = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.settle(&agent, old, OutcomeStatus::Completed, None);
    let ahead = world.now().plus(Span::hours(24 * 3_653));
    world.edit::<Sweep>(agent.workspace, |it| it.due = ahead);
    world.change_settings(Settings { retention_days: Some(30), ..fast() });
    days(&mut world, 32);
    assert!(world.row::<Action>(old).erased);
}

/// Without the setting nothing is erased, however old; and the setting works on what was there before it.
#[test]
fn without_the_setting_actions_are_kept() {
    let (mut world, agent) = with(fast(), &[PAY]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.settle(&agent, action, OutcomeStatus::Completed, None);
    days(&mut world, 100);
    assert!(!world.row::<Action>(action).erased && erasures(&mut world).is_empty());
    world.change_settings(Settings { retention_days: Some(30), ..fast() });
    days(&mut world, 1);
    assert!(world.row::<Action>(action).erased);
}

/// Money that is held and what waits for a person stays, and the sweep comes back to it; what is closed behind it goes.
#[test]
fn what_is_open_is_never_swept() {
    let office = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":1000,"period":"month"}}}"#;
    let (mut world, agent) = with(Settings { retention_days: Some(30), ..fast() }, &[office]);
    let paying = |text: &str, amount| payment(amount, "EUR", "a.example").keyed(key(text));
    let held = world.authorize(&agent, paying("held", 100)).id();
    let waiting = world.authorize(&agent, request("crm.read").keyed(key("asked"))).id();
    let closed = world.authorize(&agent, paying("closed", 200)).id();
    world.settle(&agent, closed, OutcomeStatus::Completed, None);
    // Time goes by, and nothing that is due comes about meanwhile.
    world.clock().advance(Span::hours(24 * 40));
    let (workspace, actions) = (agent.workspace, vec![held, waiting, closed]);
    world.run(SweepOld { workspace, behind: 0, actions: actions.clone(), disclosures: Vec::new() }).unwrap();
    world.run(SweepClosed { workspace, behind: 0, actions }).unwrap();
    let erased: Vec<bool> = [held, waiting, closed].map(|it| world.row::<Action>(it).erased).into();
    assert_eq!(erased, [false, false, true]);
    assert_eq!(count::<Replay>(&mut world), 2, "a key is kept while its action is open");
    let sweep = world.row::<Sweep>(workspace);
    assert_eq!((sweep.erased_to, sweep.closed_to), (None, None), "it goes on from what is open");
}

/// Of many actions a bounded number is swept in one commit, and all of them in one day.
#[test]
fn many_actions_are_swept_step_by_step() {
    let (mut world, agent) = keeping(30);
    let all: Vec<ActionId> = (0..300).map(|n| world.authorize(&agent, keyed(&format!("key-{n}"))).id()).collect();
    days(&mut world, 40);
    assert_eq!(count::<Replay>(&mut world), 0);
    assert!(all.iter().all(|it| world.row::<Action>(*it).erased));
    assert_eq!(erasures(&mut world).len(), 3, "steps of 128");
    let sweep = world.row::<Sweep>(agent.workspace);
    let last = all.iter().max().copied();
    assert_eq!((sweep.erased_to, sweep.closed_to), (last, last));
    world.audit().assert_clean("after many were swept");
}

/// What a stopped agent's refused requests carried is not kept for long.
#[test]
fn refused_payloads_of_stopped_agents_go() {
    let (mut world, agent) = with(fast(), &[r#"{"name":"Read","actions":["crm.read"]}"#]);
    let asked = || request("crm.read").with_details(details());
    let before = world.authorize(&agent, asked()).id();
    world.freeze(agent.agent);
    let refused = world.authorize(&agent, asked()).id();
    assert_eq!(count::<Payload>(&mut world), 2);
    days(&mut world, 18);
    assert_eq!(count::<Payload>(&mut world), 1);
    assert!(world.row::<Action>(before).payload && !world.row::<Action>(refused).payload);
    world.audit().assert_clean("after payloads were swept");
}

fn details() -> Details {
    Details::of(&Json::parse(br#"{"why":"odd"}"#).unwrap()).unwrap()
}

/// Calls that came to their end are kept for thirty days; what is still to be made stays.
#[test]
fn ended_calls_go_after_thirty_days() {
    let (mut world, agent) = with(fast(), &[PAY]);
    let told = |world: &mut World, amount| {
        let action = world.authorize(&agent, payment(amount, "EUR", "a.example")).id();
        let url = UrlText::parse("https://hooks.example.com/a").unwrap();
        world.run(RegisterCallback { caller: agent, action, url }).unwrap().job.unwrap().id
    };
    let (delivered, waits) = (told(&mut world, 100), told(&mut world, 200));
    let at = world.now();
    world.edit::<Job>(delivered, |it| it.state = JobState::Delivered { at });
    days(&mut world, 29);
    assert_eq!(count::<Job>(&mut world), 2);
    days(&mut world, 3);
    assert_eq!(count::<Job>(&mut world), 1);
    assert!(world.row::<Job>(waits).due().is_some());
    world.audit().assert_clean("after calls were swept");
}
