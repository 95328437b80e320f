//! Who is told that a tool ran although its action was not allowed, and how often.

use svc_core::rules::edge::deliver::ClaimDelivery;
use svc_core::rules::edge::message::About;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::ran::ReportRun;
use svc_core::state::edge::{ConfigChange, IntegrationKind, Job, News, Work};
use svc_core::state::gate::{Activity, Agent, Code, OutcomeStatus, RUNS_KEPT, RUNS_QUIET, Request, Status};
use svc_core::state::people::Role;
use svc_core::store::Record;
use svc_core::testing::world::{World, payment, request, tool_call};
use svc_core::value::Span;
use svc_core::value::id::{ActionId, PrincipalId};

use super::tell::{jobs, mailed, make, room, somebody, spread};
use super::{calm, fast};

/// Asks, and says of it that it has run.
fn ran(world: &mut World, agent: &Caller, request: Request) -> ActionId {
    let action = world.authorize(agent, request).id();
    let (caller, unasked) = (*agent, false);
    world.run(ReportRun { caller, action, unasked }).unwrap();
    action
}

fn of_run(job: &Job) -> bool {
    match &job.work {
        Work::Message { news, .. } | Work::Tell { news, .. } => matches!(news, News::Ran { .. }),
        _ => false,
    }
}

/// Who has a message of a run of this action, each as often as they have one.
fn told(world: &mut World, action: ActionId) -> Vec<Option<PrincipalId>> {
    spread(world);
    let mut found: Vec<_> = jobs(world)
        .iter()
        .filter_map(|it| match &it.work {
            Work::Message { news: News::Ran { action: of }, to, .. } if action == *of => Some(*to),
            _ => None,
        })
        .collect();
    found.sort();
    found
}

/// Whoever may decide what the agent asks is told of a run of it, in the same commit and once, however often it is reported; the
/// message says how the action stands. One who may decide no more when it is sent has no message.
#[test]
fn those_who_may_decide_are_told_of_a_run() {
    let (mut world, agent) = mailed();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let (own, sponsor) = (world.person(Role::Member), world.person(Role::Member));
    for role in [Role::Member, Role::Auditor, Role::Analyst] {
        world.person(role);
    }
    world.edit::<Agent>(agent.agent, |it| (it.principal, it.sponsor) = (own.principal, Some(sponsor.principal)));
    let action = ran(&mut world, &agent, request("crm.read"));
    assert_eq!(jobs(&mut world).iter().filter(|it| of_run(it)).count(), 1, "one job, in the commit that notes it");
    world.run(ReportRun { caller: agent, action, unasked: false }).unwrap();
    assert_eq!(told(&mut world, action), somebody(&[&owner, &admin, &own, &sponsor]));
    world.edit::<Agent>(agent.agent, |it| it.sponsor = None);
    let messages: Vec<_> = jobs(&mut world).into_iter().filter(|it| of_run(it)).collect();
    assert_eq!(messages.len(), 4, "no job stays behind");
    for job in messages {
        let claimed = world.run(ClaimDelivery { job: job.id }).unwrap().taken();
        let is_sponsor = matches!(job.work, Work::Message { to: Some(to), .. } if to == sponsor.principal);
        assert_eq!(claimed.is_none(), is_sponsor);
        let Some(message) = claimed.and_then(|it| it.message) else { continue };
        let About::Ran(view) = &message.about else { panic!("{message:?}") };
        assert_eq!((view.action.id, view.action.signals.contains(&Code::UnapprovedRun)), (action, true));
        assert_ne!(view.status(), Status::Allowed);
    }
    world.audit();
}

/// A run ends the wait for whoever could have asked at the keyboard; what takes two persons waits for them all the same.
#[test]
fn a_run_ends_no_wait_for_two_persons() {
    let (mut world, agent) = calm(&[]);
    let mut settings = fast();
    settings.second_person_above.insert("EUR".parse().unwrap(), 100);
    world.change_settings(settings);
    for (amount, status) in [(100, Status::Expired), (101, Status::Pending)] {
        let asked = payment(amount, "EUR", "shop.example");
        let action = ran(&mut world, &agent, asked);
        let read = world.read(&agent, action);
        assert_eq!(read.status(), status, "{amount}");
        assert!(read.action().signals.contains(&Code::UnapprovedRun), "{amount}");
    }
    world.audit();
}

/// The end of a wait, by a stop or by time, is in the ledger before a run of it, also where what follows is still to be done; what a
/// stop has ended is not told to wait.
#[test]
fn a_run_of_what_has_ended_comes_after_its_end() {
    for (is_stop, why, kind) in
        [(true, "it was denied", "action.denied"), (false, "it waits for a person", "action.expired")]
    {
        let (mut world, agent) = calm(&[]);
        world.owner();
        let action = world.authorize(&agent, request("crm.read")).id();
        world.clock().advance(Span::millis(1));
        if is_stop {
            world.freeze(agent.agent);
        } else {
            world.clock().advance(Span::hours(25));
        }
        world.clock().advance(Span::millis(1));
        let refused = world.try_settle(&agent, action, OutcomeStatus::Completed, None).unwrap_err();
        assert_eq!(refused.reason(), Some(why));
        world.run(ReportRun { caller: agent, action, unasked: false }).unwrap();
        let ledger = world.ledger();
        let kinds: Vec<&str> = ledger.lines().filter_map(|it| it.split(' ').next()).collect();
        let place = |kind: &str| kinds.iter().position(|it| *it == kind).unwrap_or_else(|| panic!("{kind}: {ledger}"));
        assert!(place("action.asked") < place(kind) && place(kind) < place("action.unapproved_run"), "{ledger}");
        world.advance(Span::hours(1));
        assert_eq!(world.ledger().matches(kind).count(), 1, "it ended once");
        world.audit();
    }
}

/// A mail goes to those alone whom its integration names, of those who may decide; a room has one message.
#[test]
fn a_run_is_told_as_what_waits_is() {
    let (mut world, agent) = calm(&[]);
    world.owner();
    let (admin, auditor) = (world.person(Role::Admin), world.person(Role::Auditor));
    let to = ConfigChange { to: Some(vec![admin.principal, auditor.principal]), ..ConfigChange::default() };
    make(&mut world, IntegrationKind::Mail, to);
    make(&mut world, IntegrationKind::Chat, room("https://chat.example.com/room"));
    let action = ran(&mut world, &agent, request("crm.read"));
    assert_eq!(told(&mut world, action), [None, Some(admin.principal)]);
    world.audit();
}

/// Of runs that are alike one is told in an hour, of one agent no more than so many, and of another agent by itself. Each is in
/// the ledger all the same.
#[test]
fn runs_fill_no_mailbox() {
    let (mut world, agent) = mailed();
    let owner = world.owner();
    let first = ran(&mut world, &agent, tool_call("tool-0"));
    let each = told(&mut world, first).len();
    assert!(told(&mut world, first).contains(&Some(owner.principal)));
    let alike = ran(&mut world, &agent, tool_call("tool-0"));
    assert_eq!(told(&mut world, alike), []);
    for n in 1..2 * RUNS_KEPT {
        let action = ran(&mut world, &agent, tool_call(&format!("tool-{n}")));
        let expected = if n < RUNS_KEPT { each } else { 0 };
        assert_eq!(told(&mut world, action).len(), expected, "{n}");
    }
    assert_eq!(world.row::<Activity>(agent.agent).runs.len(), RUNS_KEPT);
    let other = world.agent().register();
    let action = ran(&mut world, &other, tool_call("tool-0"));
    assert_eq!(told(&mut world, action).len(), each, "another agent is told of by itself");
    world.advance(Span::millis(RUNS_QUIET.as_millis() - 1));
    let early = ran(&mut world, &agent, tool_call("tool-0"));
    assert_eq!(told(&mut world, early), []);
    world.advance(Span::millis(1));
    let late = ran(&mut world, &agent, tool_call("tool-0"));
    assert_eq!(told(&mut world, late).len(), each);
    world.audit();
}

/// Where nobody is told of anything, a run writes nothing for it.
#[test]
fn a_run_that_nobody_is_told_of_writes_nothing() {
    let (mut world, agent) = calm(&[]);
    ran(&mut world, &agent, request("crm.read"));
    let rows = world.rows();
    let noted = rows.iter().any(|(.., it)| match it {
        Record::Activity(it) => !it.runs.is_empty(),
        Record::Job(_) => true,
        _ => false,
    });
    assert!(!noted);
}
