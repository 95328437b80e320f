//! The export of a ledger: one delivery after the other in the ledger's order, and nothing passed over whatever happens to one.

use std::sync::Arc;

use svc_core::refusal::Refusal;
use svc_core::rules::edge::deliver::{ClaimDelivery, Claimed, FinishDelivery, RetryDelivery};
use svc_core::rules::edge::export::{AdvanceExport, EXPORT_SPAN_MAX, slot};
use svc_core::rules::edge::integrations::{
    ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration, RotateIntegration, TestIntegration,
};
use svc_core::rules::evidence::sweep::SweepJobs;
use svc_core::rules::people::by::By;
use svc_core::state::edge::{
    ConfigChange, EventClass, Export, Integration, IntegrationKind, Job, JobState, LEASE, Tried, Trouble, Work,
};
use svc_core::state::evidence::Entry;
use svc_core::store::{Range, Record, Row as _};
use svc_core::testing::world::{World, payment};
use svc_core::value::Span;
use svc_core::value::id::{DeliveryId, IntegrationId};
use svc_core::value::link::{Index, shard};
use svc_core::value::text::UrlText;

use super::{PAY, calm};

const ALL: &[EventClass] = &[];

fn url(text: &str) -> Option<UrlText> {
    Some(UrlText::parse(text).unwrap())
}

fn config(text: &str) -> ConfigChange {
    ConfigChange { url: Some(url(text)), ..ConfigChange::default() }
}

fn create(world: &mut World, config: ConfigChange) -> Result<Arc<Integration>, Refusal> {
    let secret = NewSecret { sealed: "sealed".into(), hint: "aled".into() };
    let (workspace, kind) = (world.workspace(), IntegrationKind::Export);
    world.run(CreateIntegration { by: By::Program, workspace, kind, secret, config })
}

fn change(world: &mut World, enabled: Option<bool>, config: ConfigChange) -> Result<Arc<Integration>, Refusal> {
    let (workspace, id) = (world.workspace(), integration(world).id);
    world.run(ChangeIntegration { by: By::Program, workspace, id, enabled, config })
}

fn rotate(world: &mut World) {
    let secret = NewSecret { sealed: "other".into(), hint: "ther".into() };
    let (workspace, id) = (world.workspace(), integration(world).id);
    world.run(RotateIntegration { by: By::Program, workspace, id, secret, overlap_hours: 1 }).unwrap();
}

fn integration(world: &mut World) -> Arc<Integration> {
    let slot = slot(world.workspace());
    world.row(slot)
}

fn export(world: &mut World) -> Arc<Export> {
    let workspace = world.workspace();
    world.row(workspace)
}

/// The ledger's records in their order.
fn ledger(world: &mut World) -> Vec<Arc<Entry>> {
    world.advance(Span::millis(0));
    let rows = world.rows();
    let mut found: Vec<Arc<Entry>> = rows.iter().filter_map(|(.., it)| Entry::peel(it)).cloned().collect();
    found.sort_by_key(|it| it.place.as_ref().map(|it| it.seq));
    found
}

/// Has the export go on with the records from `from` to behind the one before `to`.
fn advance(world: &mut World, from: usize, to: usize, classes: &[EventClass], sends: bool) {
    let (workspace, last) = (world.workspace(), ledger(world)[to - 1].id);
    let from = u64::try_from(from).unwrap();
    world.run(AdvanceExport { workspace, from, last, classes: classes.to_vec(), sends }).unwrap();
}

/// The delivery that is under way or was given up, and the places that it is of.
fn under_way(world: &mut World) -> Option<(DeliveryId, (u64, u64))> {
    let id = export(world).job?;
    let job: Arc<Job> = world.row(id);
    let Work::Export { from, to, .. } = job.work else { panic!("{job:?}") };
    Some((id, (from, to)))
}

fn claim(world: &mut World, job: DeliveryId) -> Option<Claimed> {
    world.run(ClaimDelivery { job }).unwrap().taken()
}

fn finish(world: &mut World, claimed: &Claimed, error: Option<Trouble>) -> Arc<Job> {
    let tried = Tried { status: Some(if error.is_some() { 503 } else { 204 }), error, ms: 1 };
    world
        .run(FinishDelivery { job: claimed.job.id, claim: claimed.job.claims, tried, wait_s: None, posted: None })
        .unwrap()
}

/// Tries a delivery until it is given up.
fn give_up(world: &mut World, job: DeliveryId) {
    loop {
        let claimed = claim(world, job).expect("it is due");
        match finish(world, &claimed, Some(Trouble::Answer)).state {
            JobState::Waiting { due } => world.advance(due.since(world.now())),
            state => return assert!(matches!(state, JobState::Failed { .. })),
        }
    }
}

/// Whether the export is listed among those that may go on.
fn is_listed(world: &mut World) -> bool {
    let range = Range::all(Index::Exports, shard(world.workspace()), 9);
    !world.engine().scan(&range).unwrap().is_empty()
}

fn count(world: &mut World, kind: &str) -> usize {
    ledger(world).iter().filter(|it| &*it.kind == kind).count()
}

/// A world with some records, its export, and the place of the record that made it.
fn exported() -> (World, usize) {
    let (mut world, agent) = calm(&[PAY]);
    world.authorize(&agent, payment(100, "EUR", "a.example"));
    let made = create(&mut world, config("https://siem.example.com/in?token=hidden")).unwrap();
    let records = ledger(&mut world);
    let begins = records.iter().position(|it| *it.subject == *made.id.to_string()).unwrap();
    assert_eq!(&*records[begins].kind, "integration.created");
    assert!(begins > 0, "there was something before");
    for _ in 0..3 {
        world.authorize(&agent, payment(100, "EUR", "a.example"));
    }
    (world, begins)
}

/// An export begins with the record that it was made by, and with none before or behind; one delivery is made at a time, and the
/// next begins where the one before ended.
#[test]
fn it_begins_with_its_own_record_and_goes_on_in_order() {
    let (mut world, begins) = exported();
    for wrong in [0, begins - 1, begins + 1] {
        advance(&mut world, wrong, begins + 2, ALL, true);
        assert_eq!(under_way(&mut world), None, "from {wrong}");
    }
    assert!(is_listed(&mut world));
    advance(&mut world, begins, begins + 2, ALL, true);
    let first = (u64::try_from(begins).unwrap(), u64::try_from(begins + 2).unwrap());
    let (id, places) = under_way(&mut world).unwrap();
    assert_eq!((places, is_listed(&mut world)), (first, false));
    advance(&mut world, begins, begins + 3, ALL, true);
    advance(&mut world, begins + 2, begins + 3, ALL, true);
    assert_eq!(under_way(&mut world), Some((id, first)), "one at a time");
    let claimed = claim(&mut world, id).unwrap();
    assert_eq!(claimed.job.url.as_ref().unwrap().as_str(), "https://siem.example.com/in?token=hidden");
    assert!(matches!(finish(&mut world, &claimed, None).state, JobState::Delivered { .. }));
    assert_eq!((export(&mut world).next, is_listed(&mut world)), (Some(first.1), true));
    advance(&mut world, begins, begins + 3, ALL, true);
    assert_eq!(under_way(&mut world), None, "what was taken is not sent again");
    advance(&mut world, begins + 2, begins + 3, ALL, true);
    assert_eq!(under_way(&mut world).unwrap().1, (first.1, first.1 + 1));
    world.audit();
}

/// What is of no class that is asked for is passed over without a delivery; records that were looked through for other classes
/// than those in force are not.
#[test]
fn what_is_not_asked_for_is_passed_over() {
    let (mut world, begins) = exported();
    let classes = [EventClass::Authentication];
    let config = ConfigChange { classes: Some(classes.to_vec()), ..ConfigChange::default() };
    change(&mut world, None, config).unwrap();
    advance(&mut world, begins, begins + 2, ALL, false);
    assert_eq!(export(&mut world).next, None, "these are the classes of before");
    advance(&mut world, begins, begins + 2, &classes, false);
    assert_eq!((export(&mut world).next, under_way(&mut world)), (Some(u64::try_from(begins).unwrap() + 2), None));
    let jobs = world.rows().iter().filter(|(.., it)| matches!(it, Record::Job(_))).count();
    assert_eq!(jobs, 0);
    let (workspace, mut export) = (world.workspace(), Export::clone(&export(&mut world)));
    export.next = Some(0);
    world.overwrite(export);
    let mut last = Entry::clone(&ledger(&mut world)[0]);
    last.place.as_mut().unwrap().seq = EXPORT_SPAN_MAX;
    let id = last.id;
    world.overwrite(last);
    world.run(AdvanceExport { workspace, from: 0, last: id, classes: classes.to_vec(), sends: true }).unwrap();
    assert_eq!(under_way(&mut world), None, "a delivery spans so many records and no more");
}

/// A delivery that nobody took stays where it is: the export is failing, says so in the ledger once, and sends nothing until
/// somebody has it tried again.
#[test]
fn a_delivery_that_is_given_up_is_gone_on_from() {
    let (mut world, begins) = exported();
    advance(&mut world, begins, begins + 2, ALL, true);
    let (id, places) = under_way(&mut world).unwrap();
    give_up(&mut world, id);
    assert_eq!((integration(&mut world).state().as_str(), under_way(&mut world)), ("failing", Some((id, places))));
    let told = ledger(&mut world).last().unwrap().clone();
    assert_eq!((&*told.kind, &*told.subject), ("delivery.failed", &*id.to_string()));
    let said: serde_json::Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!((said["fromSeq"].as_u64(), said["toSeq"].as_u64()), (Some(places.0), Some(places.1)));
    assert!(!told.data.contains("hidden") && said["host"] == "siem.example.com", "{said}");
    world.advance(Span::hours(24 * 400));
    let all = ledger(&mut world).len();
    advance(&mut world, begins, all, ALL, true);
    assert_eq!((under_way(&mut world), is_listed(&mut world)), (Some((id, places)), false), "it stays there");
    let workspace = world.workspace();
    world.run(SweepJobs { workspace, jobs: vec![id] }).unwrap();
    world.run(RetryDelivery { by: By::Program, workspace, id }).unwrap();
    let claimed = claim(&mut world, id).unwrap();
    finish(&mut world, &claimed, None);
    assert_eq!((integration(&mut world).state().as_str(), export(&mut world).next), ("ok", Some(places.1)));
    assert_eq!(count(&mut world, "delivery.failed"), 1);
    world.run(SweepJobs { workspace, jobs: vec![id] }).unwrap();
    let is_there = world.rows().iter().any(|(key, ..)| *key == Job::key(id));
    assert!(!is_there, "what was taken long ago is swept");
}

/// Another secret and a word that it is used have an export that was given up go on with the same delivery; another address with
/// another one of the same records.
#[test]
fn a_change_has_it_go_on() {
    let (mut world, begins) = exported();
    advance(&mut world, begins, begins + 2, ALL, true);
    let (id, places) = under_way(&mut world).unwrap();
    let is_due = |world: &mut World| {
        let job: Arc<Job> = world.row(id);
        matches!(job.state, JobState::Waiting { due } if due == world.now())
    };
    give_up(&mut world, id);
    rotate(&mut world);
    assert!(is_due(&mut world) && count(&mut world, "integration.retried") == 0);
    give_up(&mut world, id);
    change(&mut world, Some(true), ConfigChange::default()).unwrap();
    assert!(is_due(&mut world) && count(&mut world, "integration.retried") == 1);
    change(&mut world, Some(true), ConfigChange::default()).unwrap();
    assert_eq!(count(&mut world, "integration.retried"), 1, "nothing was given up");
    give_up(&mut world, id);
    change(&mut world, None, config("https://other.example.com/in")).unwrap();
    let before: Arc<Job> = world.row(id);
    assert!(matches!(before.state, JobState::Replaced { .. }) && is_listed(&mut world));
    assert_eq!(under_way(&mut world), None);
    advance(&mut world, begins, begins + 2, ALL, true);
    let (next, again) = under_way(&mut world).unwrap();
    assert_eq!((again, next == id), (places, false));
    assert_eq!(claim(&mut world, next).unwrap().job.url.as_ref().unwrap().as_str(), "https://other.example.com/in");
}

/// An export that is off sends nothing, nor what was under way; used again it begins with the first record that nobody took, and
/// what comes of a try from before changes nothing. One that is removed leaves nothing behind.
#[test]
fn one_that_is_off_rests_and_one_that_is_removed_ends() {
    let (mut world, begins) = exported();
    advance(&mut world, begins, begins + 2, ALL, true);
    let (id, places) = under_way(&mut world).unwrap();
    let claimed = claim(&mut world, id).unwrap();
    change(&mut world, Some(false), ConfigChange::default()).unwrap();
    assert!(matches!(finish(&mut world, &claimed, None).state, JobState::Replaced { .. }));
    assert!(!is_listed(&mut world));
    advance(&mut world, begins, begins + 2, ALL, true);
    assert_eq!(under_way(&mut world), None);
    change(&mut world, Some(true), ConfigChange::default()).unwrap();
    advance(&mut world, begins, begins + 2, ALL, true);
    let (second, again) = under_way(&mut world).unwrap();
    assert_eq!(again, places);
    let (workspace, removed) = (world.workspace(), integration(&mut world).id);
    world.run(RemoveIntegration { by: By::Program, workspace, id: removed }).unwrap();
    let job: Arc<Job> = world.row(second);
    assert!(matches!(job.state, JobState::Replaced { .. }) && claim(&mut world, second).is_none());
    assert!(!world.rows().iter().any(|(key, ..)| *key == Export::key(workspace)));
    let made = create(&mut world, config("https://siem.example.com/in")).unwrap();
    let begins = ledger(&mut world).iter().position(|it| *it.subject == *made.id.to_string()).unwrap();
    advance(&mut world, begins, begins + 1, ALL, true);
    assert_eq!(under_way(&mut world).unwrap().1.0, u64::try_from(begins).unwrap(), "it begins anew");
    world.audit();
}

/// Other classes: a delivery that waits gives way to one of them, one that is being tried ends where it is, and is not tried a
/// second time.
#[test]
fn nothing_is_tried_again_of_what_is_not_asked_for_any_more() {
    let classes = |of: &[EventClass]| ConfigChange { classes: Some(of.to_vec()), ..ConfigChange::default() };
    let (mut world, begins) = exported();
    advance(&mut world, begins, begins + 2, ALL, true);
    let (waits, _) = under_way(&mut world).unwrap();
    let only = [EventClass::EntityManagement];
    change(&mut world, None, classes(&only)).unwrap();
    let job: Arc<Job> = world.row(waits);
    assert!(matches!(job.state, JobState::Replaced { .. }) && under_way(&mut world).is_none());
    advance(&mut world, begins, begins + 2, &only, true);
    let (tried, _) = under_way(&mut world).unwrap();
    let claimed = claim(&mut world, tried).unwrap();
    change(&mut world, None, classes(&[])).unwrap();
    assert_eq!(under_way(&mut world).map(|it| it.0), Some(tried), "it may be taken yet");
    assert!(matches!(finish(&mut world, &claimed, Some(Trouble::Timeout)).state, JobState::Replaced { .. }));
    assert!(under_way(&mut world).is_none() && is_listed(&mut world));
    advance(&mut world, begins, begins + 2, ALL, true);
    let (lost, _) = under_way(&mut world).unwrap();
    claim(&mut world, lost).unwrap();
    change(&mut world, None, classes(&only)).unwrap();
    world.advance(LEASE);
    assert!(claim(&mut world, lost).is_none());
    let job: Arc<Job> = world.row(lost);
    assert!(matches!(job.state, JobState::Replaced { .. }) && is_listed(&mut world));
}

/// An export without an address waits for one: nothing is passed over meanwhile, and it reads as off.
#[test]
fn an_export_waits_for_an_address() {
    let (mut world, _) = calm(&[PAY]);
    create(&mut world, ConfigChange::default()).unwrap();
    assert_eq!(integration(&mut world).state().as_str(), "off");
    let made = export(&mut world).begins;
    let begins = ledger(&mut world).iter().position(|it| it.id == made).unwrap();
    for sends in [true, false] {
        advance(&mut world, begins, begins + 1, ALL, sends);
        assert!(under_way(&mut world).is_none() && export(&mut world).next.is_none());
    }
    change(&mut world, None, config("https://siem.example.com/in")).unwrap();
    assert_eq!(integration(&mut world).state().as_str(), "ok");
    advance(&mut world, begins, begins + 1, ALL, true);
    assert!(under_way(&mut world).is_some());
    let none = ConfigChange { url: Some(None), ..ConfigChange::default() };
    change(&mut world, None, none).unwrap();
    assert!(under_way(&mut world).is_none() && integration(&mut world).state().as_str() == "off");
    world.audit();
}

/// A test goes to the export's own address, is tried once, and moves nothing; it does not hide that records are not taken.
#[test]
fn a_test_moves_nothing() {
    let (mut world, begins) = exported();
    let (workspace, id) = (world.workspace(), integration(&mut world).id);
    let test = |world: &mut World, id: IntegrationId| {
        world.run(TestIntegration { by: By::Program, workspace, id, url: None }).unwrap().job
    };
    let job = test(&mut world, id);
    let claimed = claim(&mut world, job.id).unwrap();
    assert!(matches!(finish(&mut world, &claimed, Some(Trouble::Tls)).state, JobState::Failed { .. }));
    assert_eq!(integration(&mut world).state().as_str(), "ok", "its records are taken for all that anybody knows");
    advance(&mut world, begins, begins + 2, ALL, true);
    let (given_up, places) = under_way(&mut world).unwrap();
    give_up(&mut world, given_up);
    let job = test(&mut world, id);
    assert_eq!((job.slot().unwrap().kind, job.host().as_str()), (IntegrationKind::Export, "siem.example.com"));
    let claimed = claim(&mut world, job.id).unwrap();
    assert_eq!(claimed.secrets.len(), 1);
    assert!(matches!(finish(&mut world, &claimed, None).state, JobState::Delivered { .. }));
    assert_eq!(
        (integration(&mut world).state().as_str(), under_way(&mut world)),
        ("failing", Some((given_up, places)))
    );
    let job = test(&mut world, id);
    let claimed = claim(&mut world, job.id).unwrap();
    assert!(matches!(finish(&mut world, &claimed, Some(Trouble::Tls)).state, JobState::Failed { .. }));
}
