//! Who is told that an agent names another's session, and how often.

use std::sync::Arc;

use svc_core::state::edge::{Job, News, Work};
use svc_core::state::gate::{Activity, Agent, CONFLICT_QUIET, Request};
use svc_core::state::people::{Principal, Role};
use svc_core::store::Record;
use svc_core::testing::world::{World, request};
use svc_core::value::Span;
use svc_core::value::id::PrincipalId;
use svc_core::value::text::SessionId;

use super::calm;
use super::tell::{jobs, mailed, somebody, spread};

fn in_session(name: &str) -> Request {
    request("crm.read").in_session(SessionId::parse(name).unwrap())
}

/// Who has a message of a conflict, each as often as they have one.
fn conflicts(world: &mut World) -> Vec<Option<PrincipalId>> {
    let of = |it: Arc<Job>| match &it.work {
        Work::Message { news: News::Conflict { .. }, to, .. } => Some(*to),
        _ => None,
    };
    let mut found: Vec<_> = jobs(world).into_iter().filter_map(of).collect();
    found.sort();
    found
}

/// A conflict about a session is told once for each agent that names it, to the person each of both agents acts for or, where that
/// one has no sign-in, to its sponsor. Whoever owns the session next is told of anew.
#[test]
fn a_conflict_is_told_to_both_sides_once() {
    let (mut world, first) = mailed();
    let second = world.agent().register();
    let (own, sponsor) = (world.person(Role::Member), world.person(Role::Member));
    world.person(Role::Admin);
    world.edit::<Agent>(first.agent, |it| it.principal = own.principal);
    let nobody = world.person(Role::Member);
    world.edit::<Principal>(nobody.principal, |it| it.member = None);
    world.edit::<Agent>(second.agent, |it| {
        (it.principal, it.sponsor) = (nobody.principal, Some(sponsor.principal));
    });
    let named = || in_session("shared");
    world.authorize(&first, named());
    world.authorize(&second, named());
    world.authorize(&second, named());
    spread(&mut world);
    assert_eq!(conflicts(&mut world), somebody(&[&own, &sponsor]));
    world.advance(Span::hours(24));
    world.authorize(&second, named());
    world.authorize(&first, named());
    spread(&mut world);
    assert_eq!(conflicts(&mut world).len(), 4, "the session is the second one's now");
    world.audit();
}

/// Where whom an agent acts for decides nothing, its sponsor is told too.
#[test]
fn a_conflict_of_who_decides_nothing_is_told_to_the_sponsor_too() {
    let (mut world, first) = mailed();
    let second = world.agent().register();
    let (own, analyst, sponsor) = (world.person(Role::Member), world.person(Role::Analyst), world.person(Role::Member));
    world.edit::<Agent>(first.agent, |it| it.principal = own.principal);
    world.edit::<Agent>(second.agent, |it| {
        (it.principal, it.sponsor) = (analyst.principal, Some(sponsor.principal));
    });
    world.authorize(&first, in_session("shared"));
    world.authorize(&second, in_session("shared"));
    spread(&mut world);
    assert_eq!(conflicts(&mut world), somebody(&[&own, &analyst, &sponsor]));
}

/// Where nobody is mailed, a conflict writes nothing for it.
#[test]
fn a_conflict_that_nobody_is_told_of_writes_nothing() {
    let (mut world, first) = calm(&[]);
    let second = world.agent().register();
    for agent in [&first, &second] {
        world.authorize(agent, in_session("shared"));
    }
    let rows = world.rows();
    let told = rows.iter().any(|(.., it)| matches!(it, Record::ClientSession(it) if !it.told.is_empty()));
    assert!(!told && !rows.iter().any(|(.., it)| matches!(it, Record::Job(_))));
}

/// Two agents that make up names of sessions are told of once an hour, whichever of them names whose: the next is told when an
/// hour is over, and what was not told is told then if it goes on. Another agent is told of by itself, up to so many.
#[test]
fn two_agents_are_told_of_once_an_hour() {
    let (mut world, first) = mailed();
    let second = world.agent().register();
    let mut told = 0;
    let mut both_name = |world: &mut World, name: &str, expected: usize| {
        world.authorize(&first, in_session(name));
        world.authorize(&second, in_session(name));
        world.authorize(&second, in_session(&format!("{name}-back")));
        world.authorize(&first, in_session(&format!("{name}-back")));
        spread(world);
        told += expected;
        assert_eq!(conflicts(world).len(), told, "{name}");
    };
    both_name(&mut world, "one", 1);
    both_name(&mut world, "two", 0);
    world.advance(Span::millis(CONFLICT_QUIET.as_millis() - 1));
    both_name(&mut world, "three", 0);
    world.advance(Span::millis(1));
    both_name(&mut world, "three", 1);
    for n in 0..20 {
        let other = world.agent().register();
        world.authorize(&other, in_session(&format!("of-{n}")));
        world.authorize(&first, in_session(&format!("of-{n}")));
        assert!(world.row::<Activity>(first.agent).conflicts.len() <= 16, "{n}");
    }
    spread(&mut world);
    assert_eq!(conflicts(&mut world).len(), told + 16, "no name fills a mailbox");
    world.audit();
}
