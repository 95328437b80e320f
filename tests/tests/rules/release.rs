//! What a person gives back of what the use of a receipt kept posted, and what is refused.

use svc_core::answer::Decided;
use svc_core::refusal::Kind;
use svc_core::rules::gate::Caller;
use svc_core::rules::people::by::By;
use svc_core::state::evidence::{Disclosure, Entry};
use svc_core::state::gate::{Activity, OutcomeStatus, Status};
use svc_core::state::people::Role;
use svc_core::testing::World;
use svc_core::testing::world::{charge, payment, request};
use svc_core::value::id::ActionId;
use svc_core::value::{Id as _, Span};

use super::calm;

/// A mandate that sums up a day and has people asked about the same payment twice.
const DAY: &str = r#"{"name":"Day","actions":["payment"],"limits":{"currency":"EUR","askAbove":150,
    "perPeriod":{"amount":1000,"period":"day"},"count":{"max":9,"period":"day"}}}"#;

/// An action of 100 whose receipt was used for 90 and that was settled so.
fn charged(world: &mut World, agent: &Caller, said: OutcomeStatus, amount: Option<i64>) -> ActionId {
    let allowed = world.authorize(agent, payment(100, "EUR", "shop.example.com"));
    assert!(world.verify(allowed.receipt().unwrap(), Some(charge(90, "EUR", "shop.example.com"))).is_valid());
    world.settle(agent, allowed.id(), said, amount).id()
}

fn tally(world: &mut World, agent: &Caller) -> (i64, i64, u32) {
    let activity = world.row::<Activity>(agent.agent);
    activity.tallies.first().map(|it| (it.reserved, it.spent, it.count)).unwrap()
}

fn refused(world: &mut World, action: ActionId, why: &str) {
    let refusal = world.release(By::Program, action).unwrap_err();
    assert_eq!((refusal.kind(), refusal.reason()), (Kind::NotAllowed, Some(why)));
}

fn outcome(answer: &Decided) -> (Option<i64>, Option<i64>) {
    let outcome = answer.action().allowed().unwrap().outcome.as_ref().unwrap();
    (outcome.posted, outcome.released.as_ref().map(|it| it.amount))
}

/// What was charged and never done is posted no more: in the sum, in the row and in the ledger; the count keeps its one.
#[test]
fn a_release_posts_what_the_agent_said() {
    for (said, amount, left) in [
        (OutcomeStatus::Cancelled, None, 0),
        (OutcomeStatus::Failed, Some(30), 30),
        (OutcomeStatus::Completed, Some(60), 60),
    ] {
        let (mut world, agent) = calm(&[DAY]);
        let action = charged(&mut world, &agent, said, amount);
        assert_eq!(tally(&mut world, &agent), (0, 90, 1));
        let released = world.release(By::Program, action).unwrap();
        assert_eq!(tally(&mut world, &agent), (0, left, 1));
        assert_eq!(outcome(&released), (Some(left), Some(90 - left)));
        let entry = world.row::<Entry>(released.action().evidence);
        assert_eq!((&*entry.kind, entry.subject.to_string()), ("action.released", action.to_string()));
        let status = released.status().as_str();
        let kept = 90 - left;
        for told in
            [format!(r#""outcome":"{status}""#), format!(r#""posted":{left},"#), format!(r#""released":{kept},"#)]
        {
            assert!(entry.data.contains(&told), "{told} is not in {}", &*entry.data);
        }
        assert!(!entry.data.contains("reversed"), "a person's reason is told as a commitment");
        assert!(format!("{:?}", world.row::<Disclosure>(entry.id)).contains("the charge was reversed"));
        refused(&mut world, action, "what was kept is released already");
        world.audit();
    }
}

/// Only what consumption keeps can be released, and each other case says why not.
#[test]
fn nothing_kept_is_nothing_to_release() {
    let (mut world, agent) = calm(&[DAY]);
    let denied = world.authorize(&agent, payment(1_001, "EUR", "a.example")).id();
    refused(&mut world, denied, "it was never allowed");
    let open = world.authorize(&agent, payment(10, "EUR", "b.example"));
    refused(&mut world, open.id(), "its receipt was not used, so nothing is kept");
    assert!(world.verify(open.receipt().unwrap(), Some(charge(10, "EUR", "b.example"))).is_valid());
    refused(&mut world, open.id(), "the agent has not settled it");
    world.settle(&agent, open.id(), OutcomeStatus::Completed, None);
    refused(&mut world, open.id(), "what is posted is what the agent settled");
    assert_eq!(world.release(By::Program, ActionId::from_bits(7)).unwrap_err().kind(), Kind::NotFound);
    world.audit();
}

/// What lapsed with its receipt used is released whole, since nobody has said that anything was paid; from then on the agent's
/// word alone counts, and the used receipt keeps nothing.
#[test]
fn what_lapsed_is_released() {
    let (mut world, agent) = calm(&[&DAY.replace("day", "month")]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "shop.example.com"));
    assert!(world.verify(allowed.receipt().unwrap(), Some(charge(90, "EUR", "shop.example.com"))).is_valid());
    world.advance(Span::hours(25));
    assert_eq!(tally(&mut world, &agent), (0, 100, 1));
    let released = world.release(By::Program, allowed.id()).unwrap();
    assert_eq!((released.status(), tally(&mut world, &agent)), (Status::Lapsed, (0, 0, 1)));
    assert_eq!(released.action().allowed().unwrap().released.as_ref().unwrap().amount, 100);
    let entry = world.row::<Entry>(released.action().evidence);
    for told in [r#""outcome":"lapsed""#, r#""posted":0,"#, r#""released":100,"#] {
        assert!(entry.data.contains(told), "{told} is not in {}", &*entry.data);
    }
    refused(&mut world, allowed.id(), "what was kept is released already");
    world.audit();
    let late = world.settle(&agent, allowed.id(), OutcomeStatus::Completed, Some(60));
    assert_eq!((outcome(&late), tally(&mut world, &agent)), ((Some(60), None), (0, 60, 1)));
    refused(&mut world, allowed.id(), "what was kept is released already");
    world.audit();
}

/// The same of what held nothing of a limit, from the moment that it reads as lapsed; before that the agent is waited for.
#[test]
fn what_lapsed_without_a_timer_is_released() {
    let (mut world, agent) = calm(&[super::PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "shop.example.com"));
    assert!(world.verify(allowed.receipt().unwrap(), Some(charge(100, "EUR", "shop.example.com"))).is_valid());
    world.advance(Span::hours(24));
    refused(&mut world, allowed.id(), "the agent has not settled it");
    world.advance(Span::minutes(15));
    assert_eq!(world.release(By::Program, allowed.id()).unwrap().status(), Status::Lapsed);
    let late = world.settle(&agent, allowed.id(), OutcomeStatus::Failed, None);
    assert_eq!(outcome(&late), (Some(0), None));
    world.audit();
}

/// An action without money keeps nothing posted, whatever became of its receipt.
#[test]
fn nothing_is_released_where_nothing_is_paid() {
    let (mut world, agent) = calm(&[r#"{"name":"Ship","actions":["crm.update"]}"#]);
    let allowed = world.authorize(&agent, request("crm.update"));
    assert!(world.verify(allowed.receipt().unwrap(), None).is_valid());
    world.settle(&agent, allowed.id(), OutcomeStatus::Failed, None);
    refused(&mut world, allowed.id(), "what is posted is what the agent settled");
}

/// A released payment that never was is no payment to its payee: it neither repeats nor adds up; a done one still does.
#[test]
fn a_released_payment_leaves_its_payee() {
    for (said, amount, asked) in [(OutcomeStatus::Failed, None, false), (OutcomeStatus::Completed, Some(1), true)] {
        let (mut world, agent) = calm(&[DAY]);
        let action = charged(&mut world, &agent, said, amount);
        world.release(By::Program, action).unwrap();
        let again = world.authorize(&agent, payment(100, "EUR", "shop.example.com"));
        assert_eq!(again.status() == Status::Pending, asked, "{said:?}: {:?}", again.reasons());
        world.audit();
    }
}

/// Of a period that has ended only the ledger tells: the running one's sum is left alone.
#[test]
fn a_release_leaves_the_running_period_alone() {
    let (mut world, agent) = calm(&[DAY]);
    let action = charged(&mut world, &agent, OutcomeStatus::Failed, None);
    world.advance(Span::hours(24));
    let next = world.authorize(&agent, payment(50, "EUR", "b.example")).id();
    world.settle(&agent, next, OutcomeStatus::Completed, None);
    assert_eq!(tally(&mut world, &agent), (0, 50, 1));
    assert_eq!(outcome(&world.release(By::Program, action).unwrap()), (Some(0), Some(90)));
    assert_eq!(tally(&mut world, &agent), (0, 50, 1));
    world.audit();
}

/// A stopped agent's action can be released too, and keeps reading as it did.
#[test]
fn a_stop_keeps_nothing_from_being_released() {
    let (mut world, agent) = calm(&[DAY]);
    let action = charged(&mut world, &agent, OutcomeStatus::Cancelled, None);
    world.freeze(agent.agent);
    let released = world.release(By::Program, action).unwrap();
    assert_eq!((released.status(), released.receipt()), (Status::Cancelled, None));
    world.audit();
}

/// Owners and admins release, and the record names the person; nobody else's role gives the right.
#[test]
fn owners_and_admins_release() {
    for role in Role::ALL {
        let (mut world, agent) = calm(&[DAY]);
        let action = charged(&mut world, &agent, OutcomeStatus::Failed, None);
        let person = world.person(role);
        let answer = world.release(By::Person(person), action);
        if matches!(role, Role::Owner | Role::Admin) {
            let released = answer.unwrap();
            let outcome = released.action().allowed().unwrap().outcome.clone().unwrap();
            assert_eq!(outcome.released.unwrap().by, Some(person.principal));
            let entry = world.row::<Entry>(released.action().evidence);
            assert!(entry.actor.contains(&person.principal.to_string()), "{}", &*entry.actor);
        } else {
            assert_eq!(answer.unwrap_err().kind(), Kind::Forbidden, "{role:?}");
        }
    }
}
