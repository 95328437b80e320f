//! Holds: while one stands, nobody whom it names acts, whatever their own row still says.

use std::collections::BTreeMap;

use svc_core::command::Wake;
use svc_core::refusal::Kind;
use svc_core::rules::gate::asked::{MayNot, Stands, get_approval};
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::gate::fleet::{FREEZE_MAX, Fleet, FreezeFleet, Halted};
use svc_core::rules::gate::lift::{Lift, LiftHold};
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::show;
use svc_core::rules::read::View;
use svc_core::state::gate::{Agent, Approval, Code, DecidedBy, FrozenBy, OutcomeStatus, Status, Verb};
use svc_core::state::people::{Hold, HoldScope, Principal, Role, Roster, Selector, Workspace};
use svc_core::store::Key;
use svc_core::testing::world::{World, charge, payment, request, terms};
use svc_core::value::Span;
use svc_core::value::id::{AgentId, ApprovalId, HoldId};

use super::fleet::{approve_everyone, command, crowd, decision, fleet, freeze, halted, look, note, token};
use super::{PAY, ask, codes, fast};

fn lift(world: &World, hold: HoldId, by: By, restart: bool) -> LiftHold {
    LiftHold { workspace: world.workspace(), hold, by, reason: note("over"), restart }
}

fn restart(world: &World, agent: AgentId, by: By) -> RestartAgent {
    RestartAgent { workspace: world.workspace(), agent, by, reason: note("mended"), admin: None }
}

fn asked(lift: Lift) -> ApprovalId {
    if let Lift::Asked(approval) = lift { approval.id } else { panic!("{lift:?}") }
}

/// Every agent is frozen, those made later are refused, and nobody is restarted until the hold is lifted.
#[test]
fn a_hold_over_all_stops_who_comes_later() {
    let (mut world, agents) = fleet(2);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let later = world.agent().register();
    assert!(world.row::<Agent>(later.agent).is_active());
    let denied = world.authorize(&later, payment(1, "EUR", "a.example"));
    assert_eq!((denied.verb(), codes(&denied)), (Verb::Deny, vec![Code::AgentFrozen]));
    assert_eq!(denied.action().hold, Some(hold));
    for agent in [agents[0].agent, later.agent] {
        let refused = world.run(restart(&world, agent, By::Program)).unwrap_err();
        assert_eq!((refused.kind(), refused.hold()), (Kind::NotAllowed, Some(hold.to_string().as_str())));
    }
    let again = halted(&mut world, &By::Program, &Selector::everyone());
    assert_eq!(
        (again.count, again.frozen, again.hold),
        (3, 1, Some(hold)),
        "one hold stands, and the new one is frozen"
    );
    let Lift::Lifted(lifted) = world.run(lift(&world, hold, By::Program, false)).unwrap() else { panic!() };
    assert!(lifted.lifted.is_some());
    assert!(!world.row::<Agent>(agents[0].agent).is_active(), "lifted without restart, agents stay frozen");
    world.advance(Span::seconds(1));
    world.run(restart(&world, agents[0].agent, By::Program)).unwrap();
    assert_eq!(ask(&mut world, &agents[0], payment(1, "EUR", "b.example")).0, Verb::Allow);
    world.advance(Span::seconds(1));
    world.audit();
}

/// Lifting with restart starts those that this freeze froze; an incident, and whoever something else would have frozen since,
/// stay frozen, and so does who was frozen before.
#[test]
fn a_lift_restarts_what_its_freeze_froze() {
    let (mut world, agents) = fleet(4);
    world.freeze(agents[0].agent);
    let paid = world.authorize(&agents[1], payment(100, "EUR", "a.example"));
    let receipt = paid.receipt().unwrap().to_owned();
    assert!(world.verify(&receipt, Some(charge(100, "EUR", "a.example"))).is_valid());
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    world.settle(&agents[1], paid.id(), OutcomeStatus::Completed, Some(101));
    world.freeze(agents[2].agent);
    world.advance(Span::seconds(1));
    world.run(lift(&world, hold, By::Program, true)).unwrap();
    let active: Vec<bool> = agents.iter().map(|it| world.row::<Agent>(it.agent).is_active()).collect();
    assert_eq!(active, [false, false, false, true]);
    assert!(world.row::<Agent>(agents[1].agent).frozen().unwrap().incident.is_some());
    let twice = world.run(lift(&world, hold, By::Program, true)).unwrap_err();
    assert_eq!((twice.kind(), twice.reason()), (Kind::NotAllowed, Some("the hold is lifted")));
    world.advance(Span::seconds(1));
    world.audit();
}

/// An agent whose stop is still being followed when the hold over it is lifted starts once that is done: what the stop denied
/// fills no limit of an agent that runs.
#[test]
fn a_lift_restarts_whom_the_stop_leaves_nothing_to_end() {
    let asks = r#"{"name":"Asks","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":1000,"period":"month"},"askAbove":500}}"#;
    let mut world = World::with(fast());
    let agent = world.agent().with_mandate(terms(asks)).register();
    assert_eq!(world.authorize(&agent, payment(1_000, "EUR", "a.example")).verb(), Verb::Ask);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    world.run(lift(&world, hold, By::Program, true)).unwrap();
    assert!(!world.row::<Agent>(agent.agent).is_active());
    world.advance(Span::seconds(1));
    assert_eq!(ask(&mut world, &agent, payment(450, "EUR", "b.example")), (Verb::Allow, Vec::new()));
    assert!(world.row::<Hold>(hold).work.is_none());
    world.audit();
}

/// One whose stop is still being followed keeps nobody else stopped, neither of its own step nor of those behind it; while it is
/// waited for, whoever selects agents sees nothing change.
#[test]
fn a_lift_goes_on_behind_whose_stop_is_still_followed() {
    let (mut world, agents) = fleet(1);
    let mut others = crowd(&mut world, agents[0].agent, FREEZE_MAX);
    others.push(agents[0].agent);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    world.advance(Span::seconds(1));
    let (workspace, now) = (world.workspace(), world.now());
    world.edit::<Agent>(others[0], |it| it.following = Some(now));
    world.run(lift(&world, hold, By::Program, true)).unwrap();
    world.run(Wake(Key::Hold(hold))).unwrap();
    let active = |world: &mut World| [0, 1, FREEZE_MAX].map(|it| world.row::<Agent>(others[it]).is_active());
    assert_eq!(active(&mut world), [false, true, true]);
    let epoch = world.row::<Roster>(workspace).epoch;
    world.clock().advance(Span::minutes(1));
    for _ in 0..3 {
        world.run(Wake(Key::Hold(hold))).unwrap();
    }
    assert_eq!(world.row::<Roster>(workspace).epoch, epoch);
    let row = world.row::<Hold>(hold);
    assert!(row.work.as_ref().unwrap().since > world.now() && row.then.is_empty(), "it rests");
    world.edit::<Agent>(others[0], |it| it.following = None);
    world.advance(Span::seconds(2));
    assert_eq!(active(&mut world), [true; 3]);
    assert!(world.row::<Roster>(workspace).epoch > epoch && world.row::<Hold>(hold).work.is_none());
}

/// Every agent is frozen once more while the hold stands: those made since join it, nobody counts as frozen by something else,
/// and its lift restarts them all.
#[test]
fn a_second_freeze_of_all_joins_the_hold() {
    let (mut world, mut agents) = fleet(2);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    agents.push(world.agent().register());
    for frozen in [1, 0] {
        let again = halted(&mut world, &By::Program, &Selector::everyone());
        assert_eq!((again.count, again.frozen, again.hold), (3, frozen, Some(hold)));
    }
    assert_eq!(world.row::<Hold>(hold).members.count, 3);
    world.advance(Span::seconds(1));
    world.run(lift(&world, hold, By::Program, true)).unwrap();
    assert!(agents.iter().all(|it| world.row::<Agent>(it.agent).is_active()));
    world.advance(Span::seconds(1));
    world.audit();
}

/// A lift that waits for another owner was asked before the second freeze: it ends, so that nobody's yes to it lifts more than they
/// were asked about.
#[test]
fn a_second_freeze_ends_the_question_of_a_lift() {
    let (mut world, agents) = fleet(1);
    let (first, second) = (world.owner(), world.person(Role::Owner));
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(first), true)).unwrap());
    halted(&mut world, &By::Program, &Selector::everyone());
    assert!(world.row::<Approval>(question).is_waiting(), "one that stops nobody else changes nothing");
    world.agent().register();
    halted(&mut world, &By::Program, &Selector::everyone());
    assert!(!world.row::<Approval>(question).is_waiting());
    assert_eq!(world.run(decision(&second, question, Choice::Approve)).unwrap_err().kind(), Kind::NotAllowed);
    let anew = asked(world.run(lift(&world, hold, By::Person(first), true)).unwrap());
    world.run(decision(&second, anew, Choice::Approve)).unwrap();
    world.advance(Span::seconds(1));
    assert!(world.row::<Agent>(agents[0].agent).is_active());
    world.audit();
}

/// Every agent is frozen once more by somebody, with their own words.
fn freeze_again(world: &mut World, by: &By) -> Halted {
    let selected = look(world, &Selector::everyone());
    let again = FreezeFleet { reason: note("again"), ..command(world, by, &Selector::everyone(), &selected) };
    if let Fleet::Frozen(halted) = world.run(again).unwrap() { halted } else { panic!("nobody is asked") }
}

/// Under which hold, by whom and why an agent is frozen.
fn frozen(world: &mut World, agent: AgentId) -> (Option<HoldId>, FrozenBy, String) {
    let row = world.row::<Agent>(agent);
    let frozen = row.frozen().unwrap();
    (frozen.hold, frozen.by.clone(), frozen.reason.as_str().to_owned())
}

/// The same where they are too many for one commit and the first stop is still being written: no second hold is set, each row
/// names the stop that froze it, and the hold is lifted once all are written.
#[test]
fn a_second_freeze_of_very_many_joins_the_hold() {
    let (mut world, agents) = fleet(1);
    let owner = world.owner();
    crowd(&mut world, agents[0].agent, FREEZE_MAX);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let later = world.agent().register();
    let again = freeze_again(&mut world, &By::Person(owner));
    assert_eq!((again.frozen, again.hold), (1, Some(hold)));
    assert_eq!(world.row::<Workspace>(world.workspace()).holds.len(), 1);
    assert_eq!(world.run(lift(&world, hold, By::Program, true)).unwrap_err().kind(), Kind::NotAllowed);
    world.advance(Span::seconds(1));
    let first = (Some(hold), FrozenBy::Policy, "a leak".to_owned());
    assert_eq!(frozen(&mut world, agents[0].agent), first);
    let second = (Some(hold), FrozenBy::Person(owner.principal), "again".to_owned());
    assert_eq!(frozen(&mut world, later.agent), second);
    world.run(lift(&world, hold, By::Program, true)).unwrap();
    world.advance(Span::seconds(1));
    assert!(agents.iter().chain([&later]).all(|it| world.row::<Agent>(it.agent).is_active()));
}

/// Those who are new are too many for one commit: the hold has their rows written in the words of the stop that froze them, and
/// what it does by then keeps it from being lifted.
#[test]
fn very_many_new_agents_join_the_hold() {
    let (mut world, agents) = fleet(1);
    let owner = world.owner();
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let newest = world.agent().register().agent;
    let new = crowd(&mut world, newest, FREEZE_MAX);
    let again = freeze_again(&mut world, &By::Person(owner));
    let count = u32::try_from(FREEZE_MAX).unwrap() + 1;
    assert_eq!((again.count, again.frozen, again.hold), (count + 1, count, Some(hold)));
    assert!(world.row::<Agent>(newest).is_active(), "its own row is still to be written");
    assert_eq!(world.run(lift(&world, hold, By::Program, true)).unwrap_err().kind(), Kind::NotAllowed);
    world.advance(Span::seconds(1));
    for agent in [new[0], newest] {
        let second = (Some(hold), FrozenBy::Person(owner.principal), "again".to_owned());
        assert_eq!(frozen(&mut world, agent), second);
    }
    assert_eq!(frozen(&mut world, agents[0].agent).2, "a leak");
    world.run(lift(&world, hold, By::Program, true)).unwrap();
    world.advance(Span::seconds(1));
    assert!([agents[0].agent, new[0], newest].iter().all(|it| world.row::<Agent>(*it).is_active()));
    world.audit();
}

/// A person agrees to a freeze of every agent, and those who came since it was asked are too many for one commit: what each of
/// them holds is void all the same before the hold is lifted.
#[test]
fn what_very_many_later_agents_hold_is_void() {
    let (mut world, agents) = fleet(51);
    let (owner, by) = (world.owner(), token(&mut world, 7));
    let Fleet::Asked(question) = freeze(&mut world, &by, &Selector::everyone()).unwrap() else { panic!() };
    crowd(&mut world, agents[0].agent, FREEZE_MAX);
    let late = world.agent().with_mandate(terms(PAY)).register();
    let allowed = world.authorize(&late, payment(100, "EUR", "a.example"));
    let waits = world.authorize(&late, request("crm.read"));
    assert_eq!((allowed.verb(), waits.verb()), (Verb::Allow, Verb::Ask));
    approve_everyone(&mut world, &owner, question.id).unwrap();
    let hold = world.row::<Workspace>(world.workspace()).all_held().unwrap().id;
    assert_eq!(world.run(lift(&world, hold, By::Program, false)).unwrap_err().kind(), Kind::NotAllowed);
    world.advance(Span::seconds(1));
    world.run(lift(&world, hold, By::Program, false)).unwrap();
    assert!(world.row::<Agent>(late.agent).is_active(), "it was none of those counted");
    let stands = [&allowed, &waits].map(|it| world.read(&late, it.id()).status());
    assert_eq!(stands, [Status::Revoked, Status::Denied]);
    world.audit();
}

/// What time has ended before a hold was set reads so, although nobody has written it down and the row of its agent does not tell
/// of the hold yet: one end is told one way.
#[test]
fn a_hold_ends_nothing_that_time_had_ended() {
    let (mut world, agents) = fleet(1);
    let agent = world.agent().with_mandate(terms(r#"{"name":"Crm","actions":["crm.read"]}"#)).register();
    let allowed = world.authorize(&agent, request("crm.read")).id();
    let waits = world.authorize(&agent, request("crm.update")).id();
    crowd(&mut world, agents[0].agent, FREEZE_MAX);
    // Every timer is late.
    let late = world.now().plus(Span::hours(48));
    world.clock().set(late);
    halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    assert!(world.row::<Agent>(agent.agent).is_active(), "its own row is still to be written");
    let stands = |world: &mut World| [allowed, waits].map(|it| world.read(&agent, it).status());
    assert_eq!(stands(&mut world), [Status::Lapsed, Status::Expired]);
    world.advance(Span::seconds(1));
    assert!(!world.row::<Agent>(agent.agent).is_active());
    assert_eq!(stands(&mut world), [Status::Lapsed, Status::Expired]);
    world.audit();
}

/// Where there are two owners both have to agree: the first is told to wait, told again that another is needed, and only
/// another owner's yes lifts it.
#[test]
fn two_owners_lift_a_hold() {
    let (mut world, agents) = fleet(1);
    let (first, second, admin) = (world.owner(), world.person(Role::Owner), world.person(Role::Admin));
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(first), true)).unwrap());
    let again = world.run(lift(&world, hold, By::Person(first), true)).unwrap_err();
    assert_eq!(again.kind(), Kind::SecondOwnerRequired);
    assert_eq!(again.approval().unwrap().1, question.to_string());
    assert_eq!(asked(world.run(lift(&world, hold, By::Person(second), true)).unwrap()), question);
    let other = world.run(lift(&world, hold, By::Person(second), false)).unwrap_err();
    let why = format!("{question} asks already whether it is lifted with a restart: decide that first");
    assert_eq!((other.kind(), other.reason()), (Kind::NotAllowed, Some(why.as_str())));
    let own = world.run(decision(&first, question, Choice::Approve)).unwrap_err();
    assert_eq!(own.kind(), Kind::SecondOwnerRequired);
    assert_eq!(world.run(decision(&admin, question, Choice::Approve)).unwrap_err().kind(), Kind::Forbidden);
    assert!(world.row::<Hold>(hold).lifted.is_none());
    world.run(decision(&second, question, Choice::Approve)).unwrap();
    assert!(world.row::<Workspace>(world.workspace()).holds.is_empty());
    world.advance(Span::hours(25));
    assert!(world.row::<Agent>(agents[0].agent).is_active());
    world.audit();
}

/// An admin's question is no owner's word: two different owners agree to it, one of them alone lifts nothing, and the yes of who
/// is an owner no more does not count.
#[test]
fn an_admins_question_takes_two_owners() {
    let (mut world, _) = fleet(1);
    let (first, second, third) = (world.owner(), world.person(Role::Owner), world.person(Role::Owner));
    let admin = world.person(Role::Admin);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(admin), false)).unwrap());
    let read = |world: &mut World, by: &Person| {
        let by = By::Person(*by);
        world.engine().read(|scope| get_approval(scope, &by, first.workspace, question)).unwrap()
    };
    assert_eq!((read(&mut world, &first).needed, read(&mut world, &first).may_not), (2, None));
    let one = world.run(decision(&first, question, Choice::Approve)).unwrap();
    assert_eq!((one.stands, one.needed, one.may_not), (Stands::Waiting, 2, Some(MayNot::SecondPerson)));
    assert!(world.row::<Hold>(hold).lifted.is_none());
    let again = world.run(decision(&first, question, Choice::Approve)).unwrap_err();
    assert_eq!(again.kind(), Kind::SecondOwnerRequired);
    let again = world.run(lift(&world, hold, By::Person(first), false)).unwrap_err();
    assert_eq!(again.kind(), Kind::SecondOwnerRequired);
    let workspace = world.workspace();
    world.edit::<Workspace>(workspace, |it| it.owners.retain(|it| *it != first.principal));
    let other = world.run(decision(&third, question, Choice::Approve)).unwrap();
    assert_eq!((other.stands, other.approval.approvals.len()), (Stands::Waiting, 1), "the first is an owner no more");
    world.run(decision(&second, question, Choice::Approve)).unwrap();
    assert!(world.row::<Workspace>(workspace).holds.is_empty());
}

/// An owner who asks for what an admin has asked for is the first of the two, whoever came before: asked again they hear so, and
/// one more owner's yes lifts it. Who asks for something else agrees to nothing, and is told what waits.
#[test]
fn an_owners_asking_counts_behind_an_admins() {
    let (mut world, _) = fleet(1);
    let (first, second) = (world.owner(), world.person(Role::Owner));
    let admin = world.person(Role::Admin);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(admin), false)).unwrap());
    let given = |world: &mut World| world.row::<Approval>(question).approvals.len();
    let other = world.run(lift(&world, hold, By::Person(first), true)).unwrap_err();
    let why = format!("{question} asks already whether it is lifted without a restart: decide that first");
    assert_eq!((other.kind(), other.reason()), (Kind::NotAllowed, Some(why.as_str())));
    assert_eq!(given(&mut world), 0, "an admin asked for no restart");
    assert_eq!(asked(world.run(lift(&world, hold, By::Person(first), false)).unwrap()), question);
    assert_eq!(given(&mut world), 1);
    let again = world.run(lift(&world, hold, By::Person(first), false)).unwrap_err();
    assert_eq!(again.kind(), Kind::SecondOwnerRequired);
    assert_eq!(asked(world.run(lift(&world, hold, By::Person(second), false)).unwrap()), question);
    assert_eq!(given(&mut world), 1, "the second owner agrees to the question");
    world.run(decision(&second, question, Choice::Approve)).unwrap();
    assert!(world.row::<Workspace>(world.workspace()).holds.is_empty());
    world.audit();
}

/// A question counts as none once whoever asked it may lift holds no more: another owner asks one that can be agreed to.
#[test]
fn a_lift_is_asked_anew_where_who_asked_has_left() {
    let (mut world, _) = fleet(1);
    let (first, second, third) = (world.owner(), world.person(Role::Owner), world.person(Role::Owner));
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(first), false)).unwrap());
    world.edit::<Principal>(first.principal, |it| it.member.as_mut().unwrap().role = Role::Member);
    let workspace = world.workspace();
    world.edit::<Workspace>(workspace, |it| it.owners.retain(|it| *it != first.principal));
    assert_eq!(world.run(decision(&second, question, Choice::Approve)).unwrap().stands, Stands::Waiting);
    let stuck = world.run(decision(&third, question, Choice::Approve)).unwrap_err();
    assert_eq!(stuck.kind(), Kind::NotAllowed);
    let anew = asked(world.run(lift(&world, hold, By::Person(second), false)).unwrap());
    assert_ne!(anew, question);
    world.run(decision(&third, anew, Choice::Approve)).unwrap();
    assert!(world.row::<Workspace>(workspace).holds.is_empty());
}

/// An owner's word on a lift ends where they are shut out: their question can be agreed to no more, their yes to an admin's does not
/// count, and either is asked anew, also where they have come back.
#[test]
fn an_owner_who_was_shut_out_is_none_of_two() {
    let shut_out = |world: &mut World, whom: &Person| {
        world.advance(Span::seconds(1));
        let now = world.now();
        world.edit::<Principal>(whom.principal, |it| it.member.as_mut().unwrap().shut_out_at = Some(now));
        world.advance(Span::seconds(1));
    };
    let (mut world, _) = fleet(1);
    let (first, second) = (world.owner(), world.person(Role::Owner));
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(second), false)).unwrap());
    shut_out(&mut world, &second);
    assert_eq!(world.run(decision(&first, question, Choice::Approve)).unwrap().stands, Stands::Waiting);
    assert!(world.row::<Hold>(hold).lifted.is_none(), "one genuine owner lifts nothing");
    let anew = asked(world.run(lift(&world, hold, By::Person(second), false)).unwrap());
    assert_ne!(anew, question);
    world.run(decision(&first, anew, Choice::Approve)).unwrap();
    assert!(world.row::<Workspace>(world.workspace()).holds.is_empty());

    let admin = world.person(Role::Admin);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(admin), false)).unwrap());
    world.run(decision(&second, question, Choice::Approve)).unwrap();
    shut_out(&mut world, &second);
    let seen = world.run(decision(&first, question, Choice::Approve)).unwrap();
    assert_eq!((seen.stands, seen.approval.approvals.len()), (Stands::Waiting, 1));
    let by = By::Person(second);
    let seen = world.engine().read(|scope| get_approval(scope, &by, first.workspace, question)).unwrap();
    assert_eq!(seen.may_not, None, "their yes of before stands in the way of none");
    world.run(decision(&second, question, Choice::Approve)).unwrap();
    assert!(world.row::<Workspace>(world.workspace()).holds.is_empty());
    world.audit();
}

/// A question that no second owner answered in a day can be asked again.
#[test]
fn a_lift_that_nobody_agreed_to_is_asked_anew() {
    let (mut world, _) = fleet(1);
    let (first, _) = (world.owner(), world.person(Role::Owner));
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let question = asked(world.run(lift(&world, hold, By::Person(first), false)).unwrap());
    world.advance(Span::hours(24));
    let first = world.owner();
    assert_ne!(asked(world.run(lift(&world, hold, By::Person(first), false)).unwrap()), question);
}

/// More than one commit freezes: the first sets a hold that names them, every point of enforcement goes by it at once, and it
/// ends by itself when the last row is written. Who is not selected does not notice.
#[test]
fn a_selection_too_large_for_a_commit_is_held_first() {
    let (mut world, agents) = fleet(2);
    let (held, free) = (agents[0], agents[1]);
    let mut ids = crowd(&mut world, held.agent, FREEZE_MAX + 1);
    ids.push(held.agent);
    let receipt = world.authorize(&held, payment(100, "EUR", "a.example"));
    let waiting = world.authorize(&held, payment(1, "USD", "a.example"));
    assert_eq!(waiting.verb(), Verb::Ask);
    let selector = Selector { agents: Some(ids.iter().copied().collect()), ..Selector::default() };
    let done = halted(&mut world, &By::Program, &selector);
    let count = u32::try_from(ids.len()).unwrap();
    assert_eq!((done.count, done.frozen), (count, count));
    let hold = done.hold.unwrap();
    assert!(world.row::<Agent>(held.agent).is_active(), "its own row is still to be written");
    let denied = world.authorize(&held, payment(1, "EUR", "b.example"));
    assert_eq!((denied.verb(), denied.action().hold), (Verb::Deny, Some(hold)));
    assert_eq!(ask(&mut world, &free, payment(1, "EUR", "b.example")).0, Verb::Allow);
    let text = receipt.receipt().unwrap().to_owned();
    assert!(!world.verify(&text, Some(charge(100, "EUR", "a.example"))).is_valid());
    assert_eq!(world.read(&held, receipt.id()).status(), Status::Revoked);
    assert_eq!(world.read(&held, waiting.id()).status(), Status::Denied);
    let at = world.row::<Hold>(hold).at;
    let later = View { now: at.plus(Span::minutes(1)), ..world.read(&held, waiting.id()).view().clone() };
    assert_eq!(later.decided(), Some((at, DecidedBy::Freeze)), "it does not move with the time of reading");
    let refused = world.run(restart(&world, held.agent, By::Program)).unwrap_err();
    assert_eq!((refused.kind(), refused.hold()), (Kind::NotAllowed, Some(hold.to_string().as_str())));
    assert_eq!(world.run(lift(&world, hold, By::Program, true)).unwrap_err().kind(), Kind::NotAllowed);
    world.advance(Span::seconds(1));
    let over = world.row::<Hold>(hold);
    assert!(over.scope == HoldScope::Selection && over.lifted.is_some() && over.work.is_none(), "{over:?}");
    assert!(world.row::<Workspace>(world.workspace()).holds.is_empty());
    let mut by_standing: BTreeMap<bool, u32> = BTreeMap::new();
    for id in &ids {
        *by_standing.entry(world.row::<Agent>(*id).is_active()).or_default() += 1;
    }
    assert_eq!(by_standing, BTreeMap::from([(false, count)]));
    assert_eq!(world.read(&held, receipt.id()).status(), Status::Revoked);
    assert_eq!(world.read(&held, waiting.id()).view().decided().unwrap().0, over.at);
    world.audit();
}

/// Whom a freeze has stopped whose own row does not say it yet counts and is shown as frozen, in the words of that freeze: whoever freezes
/// them again freezes nobody, and a person who reads them is told no active agent.
#[test]
fn whom_a_hold_has_stopped_reads_as_frozen() {
    for all in [false, true] {
        let (mut world, agents) = fleet(1);
        let ids = crowd(&mut world, agents[0].agent, FREEZE_MAX + 1);
        let selection = Selector { agents: Some(ids.iter().copied().collect()), ..Selector::default() };
        let selector = if all { Selector::everyone() } else { selection.clone() };
        let hold = halted(&mut world, &By::Program, &selector).hold.unwrap();
        let later = world.agent().register();
        assert!(world.row::<Agent>(ids[0]).is_active(), "its own row is still to be written");
        let counted = |world: &mut World, selector: &Selector| {
            let found = look(world, selector);
            (found.count() - found.frozen, found.shown.iter().all(|it| it.standing == "frozen"))
        };
        assert_eq!(counted(&mut world, &selection), (0, true));
        assert_eq!(counted(&mut world, &Selector::everyone()).0, if all { 1 } else { 2 }, "who came later is not");
        let shown = |world: &mut World, id: AgentId| {
            let (workspace, by) = (world.workspace(), By::Program);
            let view = world.engine().read(|scope| show::seen(scope, &by, workspace, id)).unwrap();
            view.agent.frozen().map(|it| (it.hold, it.by.clone(), it.reason.as_str().to_owned()))
        };
        let words = Some((Some(hold), FrozenBy::Policy, "a leak".to_owned()));
        assert_eq!((shown(&mut world, ids[FREEZE_MAX]), shown(&mut world, later.agent)), (words.clone(), None));
        if !all {
            let few = Selector { agents: Some(ids[..10].iter().copied().collect()), ..Selector::default() };
            let again = halted(&mut world, &By::Program, &few);
            assert_eq!((again.count, again.frozen), (10, 0), "they were stopped before");
        }
        world.advance(Span::seconds(1));
        assert!(!world.row::<Agent>(ids[FREEZE_MAX]).is_active());
        assert_eq!((shown(&mut world, ids[FREEZE_MAX]), shown(&mut world, later.agent)), (words, None));
        world.audit();
    }
}
