//! Whoever the agent named is told once its action is decided: by time, by a stop, or because it was decided already.

use std::sync::Arc;

use svc_core::rules::edge::deliver::{Claim, ClaimDelivery, Claimed, FinishDelivery};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::callback::{RegisterCallback, Registered};
use svc_core::state::edge::{Job, JobState, LEASE, Tried, Trouble, Work};
use svc_core::state::evidence::Entry;
use svc_core::state::gate::{Callback, Status, Verb};
use svc_core::store::{Range, Record};
use svc_core::testing::world::{World, payment, request};
use svc_core::value::id::{ActionId, DeliveryId};
use svc_core::value::link::{Index, shard};
use svc_core::value::text::UrlText;
use svc_core::value::{Span, Timestamp};

use super::{PAY, calm};

fn register(world: &mut World, agent: &Caller, action: ActionId, url: &str) -> Registered {
    let url = UrlText::parse(url).unwrap();
    world.run(RegisterCallback { caller: *agent, action, url }).unwrap()
}

/// An action that waits, with a callback.
fn waiting() -> (World, Caller, ActionId, Callback) {
    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, request("crm.read")).id();
    let registered = register(&mut world, &agent, action, "https://hooks.example.com/a");
    assert!(registered.job.is_none(), "nothing is decided yet");
    (world, agent, action, registered.callback)
}

/// The jobs that are listed in the outbox, by when they are due.
fn outbox(world: &mut World) -> Vec<(Timestamp, DeliveryId)> {
    let range = Range::all(Index::Outbox, shard(world.workspace()), 100);
    let found = world.engine().scan(&range).unwrap();
    let due = |order: u128| Timestamp::from_millis(i64::try_from(order).unwrap());
    let of = |record: &Record| if let Record::Job(job) = record { job.id } else { panic!("no job") };
    found.iter().map(|it| (due(it.order), of(it.row.record.as_ref().unwrap()))).collect()
}

fn claim(world: &mut World, job: DeliveryId) -> Option<Claimed> {
    world.run(ClaimDelivery { job }).unwrap().taken()
}

fn finish(world: &mut World, claimed: &Claimed, error: Option<Trouble>) -> Arc<Job> {
    let status = if error.is_some() { 503 } else { 204 };
    let tried = Tried { status: Some(status), error, ms: 3 };
    world
        .run(FinishDelivery { job: claimed.job.id, claim: claimed.job.claims, tried, wait_s: None, posted: None })
        .unwrap()
}

fn records(world: &mut World, kind: &str) -> Vec<Entry> {
    let rows = world.rows().into_iter();
    let entries = rows.filter_map(|(.., record)| if let Record::Entry(it) = record { Some(it) } else { None });
    entries.filter(|it| &*it.kind == kind).map(|it| Entry::clone(&it)).collect()
}

fn told(job: &Job) -> (Verb, Status, Timestamp) {
    let Work::Decided { verb, status, at, .. } = job.work else { panic!("{job:?}") };
    (verb, status, at)
}

/// Nobody is told while a person is asked; when the time is up the call is there, in the commit that ends the wait.
#[test]
fn an_expired_approval_is_told() {
    let (mut world, caller, action, callback) = waiting();
    assert_eq!(outbox(&mut world), []);
    let until = world.now().plus(Span::hours(24));
    world.advance(Span::hours(24));
    assert_eq!(outbox(&mut world), [(until, callback.id.into())]);
    let job: Arc<Job> = world.row(callback.id.into());
    assert_eq!(told(&job), (Verb::Deny, Status::Expired, until));
    let Work::Decided { callback: id, action: of, agent, .. } = job.work else { panic!("{job:?}") };
    assert_eq!((id, of, agent), (callback.id, action, Some(caller.agent)));
}

/// A stop denies what waits, and that is told; an action that reads denied by the stop already is told at once, and once.
#[test]
fn a_stop_is_told_once() {
    let (mut world, agent, action, callback) = waiting();
    let stopped = world.now();
    world.freeze(agent.agent);
    let second = register(&mut world, &agent, action, "https://hooks.example.com/b");
    assert_eq!(told(second.job.as_ref().unwrap()).1, Status::Denied);
    world.advance(Span::seconds(1));
    let job: Arc<Job> = world.row(second.callback.id.into());
    assert_eq!((told(&job).0, told(&job).1, job.created_at), (Verb::Deny, Status::Denied, stopped));
    assert_eq!(outbox(&mut world).len(), 1, "the first was replaced before it was written");
    assert_ne!(callback.id, second.callback.id);

    let (mut world, agent, _, callback) = waiting();
    world.freeze(agent.agent);
    world.advance(Span::seconds(1));
    let job: Arc<Job> = world.row(callback.id.into());
    assert_eq!((told(&job).0, told(&job).1), (Verb::Deny, Status::Denied));
}

/// A person's yes and a person's no are told, each in the commit that decides; the first of two persons' yes decides nothing.
#[test]
fn what_a_person_decides_is_told() {
    for (approve, wanted) in [(true, (Verb::Allow, Status::Allowed)), (false, (Verb::Deny, Status::Denied))] {
        let (mut world, _, action, callback) = waiting();
        let owner = world.owner();
        world.advance(Span::minutes(5));
        if approve {
            world.approve(&owner, action)
        } else {
            world.deny(&owner, action)
        };
        assert_eq!(outbox(&mut world), [(world.now(), callback.id.into())]);
        let job: Arc<Job> = world.row(callback.id.into());
        assert_eq!(told(&job), (wanted.0, wanted.1, world.now()));
    }
    let mut settings = super::fast();
    settings.second_person_above.insert("EUR".parse().unwrap(), 100);
    let (mut world, agent) = super::with(settings, &[]);
    let action = world.authorize(&agent, payment(5_000, "EUR", "a.example")).id();
    let callback = register(&mut world, &agent, action, "https://hooks.example.com/a").callback;
    let (owner, admin) = (world.owner(), world.person(svc_core::state::people::Role::Admin));
    world.approve(&owner, action);
    assert_eq!(outbox(&mut world), [], "one of two");
    world.approve(&admin, action);
    assert_eq!(outbox(&mut world), [(world.now(), callback.id.into())]);
}

/// What is decided already is told in the commit of the registration, as it now reads.
#[test]
fn what_is_decided_already_is_told_at_once() {
    let (mut world, agent) = calm(&[PAY]);
    let asked = world.now();
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.advance(Span::minutes(1));
    let first = register(&mut world, &agent, action, "https://hooks.example.com/a");
    assert_eq!(told(first.job.as_ref().unwrap()), (Verb::Allow, Status::Allowed, asked));
    world.settle(&agent, action, svc_core::state::gate::OutcomeStatus::Completed, None);
    let second = register(&mut world, &agent, action, "https://hooks.example.com/a");
    assert_eq!(told(second.job.as_ref().unwrap()).1, Status::Completed);
    assert_eq!(outbox(&mut world), [(world.now(), second.callback.id.into())], "the first is called no more");
    let first: Arc<Job> = world.row(first.callback.id.into());
    assert!(matches!(first.state, JobState::Replaced { .. }));
}

/// One has a call at a time; a call that was replaced while it was made stays replaced, with the try that was made and what came of
/// it, and what was delivered stays so.
#[test]
fn a_call_has_one_caller_and_one_end() {
    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    let first = register(&mut world, &agent, action, "https://hooks.example.com/a").callback.id.into();
    let claimed = claim(&mut world, first).unwrap();
    assert!(claim(&mut world, first).is_none());
    let second = register(&mut world, &agent, action, "https://hooks.example.com/b").callback.id.into();
    let lost: Arc<Job> = world.row(first);
    let tries = |job: &Job| job.attempts.iter().map(|it| (it.tried.status, it.tried.error)).collect::<Vec<_>>();
    assert_eq!(tries(&lost), [(None, Some(Trouble::Interrupted))], "it is under way, or was lost");
    for error in [None, Some(Trouble::Answer)] {
        let told = finish(&mut world, &claimed, error);
        assert!(matches!(told.state, JobState::Replaced { .. }));
        assert_eq!(tries(&told), [(Some(204), None)], "it came back, once");
    }
    let claimed = claim(&mut world, second).unwrap();
    assert!(matches!(finish(&mut world, &claimed, None).state, JobState::Delivered { .. }));
    register(&mut world, &agent, action, "https://hooks.example.com/c");
    let row: Arc<Job> = world.row(second);
    assert!(matches!(row.state, JobState::Delivered { .. }));
}

/// A try that fails is put off by the schedule; after the eighth the call is given up and the ledger says so, with the host
/// and nothing else of the address.
#[test]
fn a_call_that_nobody_takes_is_given_up_and_recorded() {
    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    let url = "https://hooks.example.com/a?token=hidden";
    let id: DeliveryId = register(&mut world, &agent, action, url).callback.id.into();
    let mut waits = Vec::new();
    while let Some((due, _)) = outbox(&mut world).first().copied() {
        waits.push(due.since(world.now()).as_millis());
        world.clock().set(due);
        let claimed = claim(&mut world, id).unwrap();
        finish(&mut world, &claimed, Some(Trouble::Answer));
    }
    for (wait, about) in waits.iter().zip([0, 5, 30, 300, 1_800, 7_200, 21_600, 43_200]) {
        assert!((about * 800..=about * 1_200).contains(wait), "{wait} where {about} s is the middle");
    }
    assert_eq!(waits.len(), 8);
    let failed = records(&mut world, "delivery.failed");
    assert_eq!(failed.len(), 1);
    assert_eq!(&*failed[0].subject, id.to_string());
    let data = failed[0].data.to_string();
    assert!(data.contains("hooks.example.com") && !data.contains("hidden"), "{data}");
    assert!(data.contains(&action.to_string()) && data.contains(r#""tries":8"#), "{data}");
    world.audit();
}

/// Whoever had a call and never came back loses it after a while; what it tells later changes nothing.
#[test]
fn a_lost_try_is_made_again() {
    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    let id: DeliveryId = register(&mut world, &agent, action, "https://hooks.example.com/a").callback.id.into();
    let lost = claim(&mut world, id).unwrap();
    assert_eq!(outbox(&mut world), [(world.now().plus(LEASE), id)]);
    // A call that lasts as long as any may, seen by a server whose clock is ten seconds ahead.
    let lasting = Span::seconds(13 + 10);
    world.clock().advance(lasting);
    assert!(claim(&mut world, id).is_none(), "it is under way still");
    world.clock().advance(Span::millis(LEASE.as_millis() - lasting.as_millis()));
    let again = claim(&mut world, id).unwrap();
    assert_eq!((again.job.tries, again.job.attempts[0].tried.error), (2, Some(Trouble::Interrupted)));
    assert!(matches!(finish(&mut world, &lost, None).state, JobState::Sending { .. }), "it lost the call");
    assert!(matches!(finish(&mut world, &again, None).state, JobState::Delivered { .. }));
    assert_eq!(outbox(&mut world), []);
}

/// Of two who claim a call whose last try never came back, one gives it up and hears so, and the other hears nothing: whoever counts
/// what became of calls counts it once.
#[test]
fn one_claim_gives_a_call_up() {
    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    let id: DeliveryId = register(&mut world, &agent, action, "https://hooks.example.com/a").callback.id.into();
    world.edit::<Job>(id, |it| it.tries = u8::MAX);
    claim(&mut world, id).unwrap();
    world.clock().advance(LEASE);
    let Claim::GivenUp(given_up) = world.run(ClaimDelivery { job: id }).unwrap() else { panic!("it is used up") };
    assert!(matches!(given_up.job.state, JobState::Failed { .. }));
    assert_eq!(given_up.why, Trouble::Interrupted);
    assert!(matches!(world.run(ClaimDelivery { job: id }).unwrap(), Claim::Nothing));
    assert_eq!(records(&mut world, "delivery.failed").len(), 1);
    world.audit();
}
