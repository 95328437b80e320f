//! A person decides what waits: who may, what is looked at again, two persons, and what becomes of the money.

use svc_core::answer::Decided;
use svc_core::refusal::Kind;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::asked::{MayNot, Stands, get_approval};
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::mandates::{ChangeMandate, Content, GrantMandate, RevokeMandate};
use svc_core::rules::people::members::{ChangeMember, InviteMember, RemoveMember};
use svc_core::rules::people::second_factor::FactorShown;
use svc_core::state::gate::{
    Action, Activity, Agent, Approval, Code, DecidedBy, MerchantsChange, OutcomeStatus, Set, Status, TermsChange, Verb,
};
use svc_core::state::people::{Account, Outside, Principal, Role, SecondFactor, Session, Settings};
use svc_core::testing::World;
use svc_core::testing::world::{charge, payment, request, terms, tool_call};
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;
use svc_core::value::text::{Note, SessionId};
use svc_core::value::{Id, Span};

use super::{PAY, calm, codes, fast, with};

const ASKS: &str = r#"{"name":"Asks","actions":["payment"],"limits":{"currency":"EUR","perAction":10000,"askAbove":5000,
    "perPeriod":{"amount":20000,"period":"day"},"count":{"max":3,"period":"day"},"onLimit":"ask"}}"#;

/// An action that waits, and the one who may decide it.
fn waiting(mandates: &[&str]) -> (World, Caller, Person, ActionId) {
    let (mut world, agent) = calm(mandates);
    let owner = world.owner();
    let asked = world.authorize(&agent, payment(6_000, "EUR", "shop.example")).id();
    (world, agent, owner, asked)
}

fn refused(world: &mut World, by: &Person, action: ActionId, choice: Choice) -> (Kind, Option<String>) {
    let refusal = world.decide(by, action, choice).unwrap_err();
    (refusal.kind(), refusal.reason().map(str::to_owned))
}

/// What the agent's mandate holds today: reserved, spent, excess, count.
fn today(world: &mut World, agent: &Caller) -> (i64, i64, i64, u32) {
    let activity = world.row::<Activity>(agent.agent);
    let tally = activity.tallies.first().cloned();
    tally.map_or((0, 0, 0, 0), |it| (it.reserved, it.spent, it.excess, it.count))
}

/// A yes makes an allow whose receipt lives from then on, and the agent reads it.
#[test]
fn a_yes_allows_and_the_agent_reads_its_receipt() {
    let (mut world, agent, owner, asked) = waiting(&[ASKS]);
    world.advance(Span::hours(2));
    let decided = world.approve(&owner, asked);
    assert_eq!((decided.stands, decided.may_not), (Stands::Approved, Some(MayNot::Decided)));
    assert_eq!(decided.decided, Some((world.now(), DecidedBy::Person(owner.principal))));
    let read = world.read(&agent, asked);
    assert_eq!((read.status(), read.verb()), (Status::Allowed, Verb::Allow));
    assert_eq!(read.receipt_expires_at(), Some(world.now().plus(Span::minutes(15))));
    assert_eq!(today(&mut world, &agent), (6_000, 0, 0, 1));
    let receipt = read.receipt().unwrap().to_owned();
    assert!(world.verify(&receipt, Some(charge(6_000, "EUR", "shop.example"))).is_valid());
    world.settle(&agent, asked, OutcomeStatus::Completed, Some(5_000));
    assert_eq!(today(&mut world, &agent), (0, 6_000, 0, 1), "what was charged is stronger than the agent's word");
    assert_eq!(world.row::<Activity>(agent.agent).waiting(0), 0);
    world.audit();
}

/// A no denies, and gives back what was reserved.
#[test]
fn a_no_denies_and_releases() {
    let (mut world, agent, owner, asked) = waiting(&[ASKS]);
    assert_eq!(today(&mut world, &agent), (6_000, 0, 0, 1));
    let mut decision = world.decision(&owner, asked, Choice::Deny);
    decision.note = Some(Note::parse("not from them").unwrap());
    let decided = world.run(decision).unwrap();
    assert_eq!(decided.stands, Stands::Denied);
    let read = world.read(&agent, asked);
    assert_eq!((read.status(), read.verb()), (Status::Denied, Verb::Deny));
    assert!(codes(&read).contains(&Code::PersonDenied));
    assert_eq!(read.view().decided().unwrap().1, DecidedBy::Person(owner.principal));
    assert_eq!(today(&mut world, &agent), (0, 0, 0, 0));
    assert!(!world.ledger().contains("not from them"), "a note enters the ledger as its commitment");
    world.audit();
}

/// Whoever comes second is told how it ended, whatever they wanted.
#[test]
fn what_is_decided_is_decided() {
    for (first, outcome) in [(Choice::Approve, "approved"), (Choice::Deny, "denied")] {
        let (mut world, _, owner, asked) = waiting(&[ASKS]);
        let admin = world.person(Role::Admin);
        world.decide(&owner, asked, first).unwrap();
        for choice in [Choice::Approve, Choice::Deny] {
            assert_eq!(refused(&mut world, &admin, asked, choice), (Kind::NotAllowed, Some(outcome.to_owned())));
        }
        world.audit();
    }
}

/// When the time is up nobody decides any more, timer or not; and a stop ends it as a deny.
#[test]
fn nobody_decides_what_expired_or_was_stopped() {
    let (mut world, agent, owner, asked) = waiting(&[ASKS]);
    world.clock().advance(Span::hours(24));
    world.keep_signed_in(&owner);
    assert_eq!(refused(&mut world, &owner, asked, Choice::Approve), (Kind::NotAllowed, Some("expired".to_owned())));
    let waits = world.authorize(&agent, request("deploy")).id();
    world.freeze(agent.agent);
    assert_eq!(refused(&mut world, &owner, waits, Choice::Approve), (Kind::NotAllowed, Some("denied".to_owned())));
    world.advance(Span::seconds(1));
    assert_eq!(refused(&mut world, &owner, waits, Choice::Approve), (Kind::NotAllowed, Some("denied".to_owned())));
    world.audit();
}

/// The agent's principal and sponsor, owners and admins decide; nobody else, and who may not read it does not find it.
#[test]
fn the_role_as_it_is_now_decides() {
    let (mut world, agent, owner, asked) = waiting(&[ASKS]);
    for role in [Role::Analyst, Role::Auditor] {
        let person = world.person(role);
        assert_eq!(refused(&mut world, &person, asked, Choice::Approve).0, Kind::Forbidden);
    }
    let member = world.person(Role::Member);
    assert_eq!(refused(&mut world, &member, asked, Choice::Deny).0, Kind::NotFound);
    world.edit::<Agent>(agent.agent, |it| it.sponsor = Some(member.principal));
    let id = world.row::<Action>(asked).approval.unwrap();
    let seen = world.engine().read(|scope| get_approval(scope, &By::Person(member), member.workspace, id)).unwrap();
    assert_eq!(seen.may_not, None);
    let auditor = world.person(Role::Auditor);
    let seen = world.engine().read(|scope| get_approval(scope, &By::Person(auditor), auditor.workspace, id)).unwrap();
    assert_eq!(seen.may_not, Some(MayNot::Role));
    world.edit::<Principal>(owner.principal, |it| it.member.as_mut().unwrap().role = Role::Analyst);
    assert_eq!(refused(&mut world, &owner, asked, Choice::Approve).0, Kind::Forbidden);
    world.edit::<Session>(member.session().unwrap(), |it| it.ended_at = Some(it.created_at));
    assert_eq!(refused(&mut world, &member, asked, Choice::Approve).0, Kind::Unauthenticated);
    let other = World::new().owner();
    assert!(world.decide(&other, asked, Choice::Approve).is_err());
    let admin = world.person(Role::Admin);
    world.approve(&admin, asked);
    world.audit();
}

/// Another digest than the one that waits is another question.
#[test]
fn a_digest_that_is_not_the_present_one_decides_nothing() {
    let (mut world, _, owner, asked) = waiting(&[ASKS]);
    let mut decision = world.decision(&owner, asked, Choice::Approve);
    decision.digest = Some(Digest::of("something else"));
    for choice in Choice::ALL {
        let word = DecideApproval { choice, ..decision.clone() };
        assert_eq!(world.run(word).unwrap_err().kind(), Kind::DigestChanged, "{choice:?}");
    }
    decision.digest = Some(world.row::<Action>(asked).digest);
    assert_eq!(world.run(decision).unwrap().stands, Stands::Approved);
}

/// What has been forbidden since ends the wait as a deny, however the person decides.
#[test]
fn what_was_forbidden_since_ends_the_wait() {
    let deny = r#"{"name":"No","actions":["crm.read"],"merchants":{"deny":["shop.example"]},"tools":{"deny":["rm"]}}"#;
    let listed: fn(&mut World, &Caller, &str) = |world, agent, deny| {
        let content = Content::Whole(Box::new(terms(deny)));
        world.run(GrantMandate::new(agent.workspace, agent.agent, content)).unwrap();
    };
    let revoked: fn(&mut World, &Caller, &str) = |world, agent, _| {
        let mandate = world.row::<Agent>(agent.agent).mandates[0].id;
        world.run(RevokeMandate { workspace: agent.workspace, by: By::Program, agent: agent.agent, mandate }).unwrap();
    };
    for (change, why) in [(listed, "the rules have changed"), (revoked, "was revoked")] {
        let (mut world, agent, owner, asked) = waiting(&[ASKS]);
        change(&mut world, &agent, deny);
        let ended = world.approve(&owner, asked);
        assert_eq!((ended.stands, ended.decided.unwrap().1), (Stands::Denied, DecidedBy::Policy));
        let read = world.read(&agent, asked);
        assert!(read.status() == Status::Denied && changed(&read).contains(why), "{}", changed(&read));
        assert_eq!(today(&mut world, &agent), (0, 0, 0, 0));
        world.audit();
    }
    let (mut world, agent) = with(fast(), &[]);
    let owner = world.owner();
    let tool = world.authorize(&agent, tool_call("rm")).id();
    listed(&mut world, &agent, deny);
    assert_eq!(world.approve(&owner, tool).stands, Stands::Denied, "a tool is listed as a merchant is");
    assert!(codes(&world.read(&agent, tool)).contains(&Code::ToolDenied));
    world.audit();
    let (mut world, agent) = with(fast(), &[]);
    let owner = world.owner();
    let outside = world.authorize(&agent, tool_call("rm")).id();
    let settings = Settings { outside_mandate: Outside::Deny, ..fast() };
    world.change_settings(settings);
    assert_eq!(world.approve(&owner, outside).stands, Stands::Denied);
    assert!(changed(&world.read(&agent, outside)).contains("`outsideMandate`"));
    world.audit();
}

/// What is said of the change that ended the wait.
fn changed(answer: &Decided) -> String {
    answer.reasons().iter().find(|it| it.code == Code::PolicyChanged).unwrap().message()
}

/// A mandate that was paused, or has ended by its time, or whose limit was used up meanwhile, stands in nobody's way: a
/// person decided.
#[test]
fn limits_and_pauses_stand_in_no_persons_way() {
    let (mut world, agent, owner, asked) = waiting(&[ASKS]);
    world.edit::<Agent>(agent.agent, |it| it.mandates[0].paused = true);
    assert_eq!(world.approve(&owner, asked).stands, Stands::Approved);
}

/// Where nothing outside of a mandate is done, a mandate that was paused or narrowed meanwhile covers nothing that waits; one that
/// stands does, be its limits used up or not.
#[test]
fn what_no_mandate_covers_any_more_is_denied_where_that_is_said() {
    let paused: fn(&mut World, &Caller) =
        |world, agent| world.edit::<Agent>(agent.agent, |it| it.mandates[0].paused = true);
    let narrowed: fn(&mut World, &Caller) = |world, agent| {
        let mandate = world.row::<Agent>(agent.agent).mandates[0].id;
        let merchants = MerchantsChange { allow: Set::To(vec!["other.example".parse().unwrap()]), deny: Set::Keep };
        let change = TermsChange { merchants: Set::To(merchants), ..TermsChange::default() };
        let (workspace, agent, by) = (agent.workspace, agent.agent, By::Program);
        let change =
            ChangeMandate { workspace, by, agent, mandate, change, paused: None, confirm_broaden: true, counted: None };
        world.run(change).unwrap();
    };
    let stands: fn(&mut World, &Caller) = |_, _| {};
    for (change, expected) in [(paused, Stands::Denied), (narrowed, Stands::Denied), (stands, Stands::Approved)] {
        let (mut world, agent, owner, asked) = waiting(&[ASKS]);
        change(&mut world, &agent);
        world.change_settings(Settings { outside_mandate: Outside::Deny, ..fast() });
        assert_eq!(world.approve(&owner, asked).stands, expected);
        let is_told = codes(&world.read(&agent, asked)).contains(&Code::PolicyChanged);
        assert_eq!(is_told, expected == Stands::Denied);
        world.audit();
    }
}

/// What a person lets pass beyond a limit is kept apart: it neither fills nor frees the limit, to the end.
#[test]
fn exceptions_are_kept_apart() {
    let (mut world, agent) = calm(&[ASKS]);
    let owner = world.owner();
    let over = world.authorize(&agent, payment(30_000, "EUR", "shop.example")).id();
    assert_eq!(today(&mut world, &agent), (0, 0, 0, 0), "beyond its limits nothing is reserved");
    let id = world.row::<Action>(over).approval.unwrap();
    let asked = world.row::<Approval>(id);
    let exceptions = &asked.asked_action().unwrap().exceptions;
    assert_eq!(exceptions.iter().map(|it| it.code).collect::<Vec<_>>(), [Code::OverLimit, Code::OverPeriodLimit]);
    world.approve(&owner, over);
    assert_eq!(today(&mut world, &agent), (0, 0, 30_000, 0));
    let within = world.authorize(&agent, payment(5_000, "EUR", "other.example"));
    assert_eq!(within.verb(), Verb::Allow, "the exception fills no limit");
    world.settle(&agent, over, OutcomeStatus::Completed, Some(29_000));
    assert_eq!(today(&mut world, &agent), (5_000, 0, 29_000, 1));
    world.audit();

    let lapses = world.authorize(&agent, payment(25_000, "EUR", "third.example")).id();
    world.approve(&owner, lapses);
    let fails = world.authorize(&agent, payment(26_000, "EUR", "fourth.example")).id();
    world.approve(&owner, fails);
    world.settle(&agent, fails, OutcomeStatus::Failed, None);
    assert_eq!(today(&mut world, &agent), (5_000, 0, 54_000, 1));
    world.audit();
    world.advance(Span::hours(25));
    assert_eq!(world.read(&agent, lapses).status(), Status::Lapsed);
    let late = world.settle(&agent, lapses, OutcomeStatus::Completed, Some(25_000));
    assert!(late.action().allowed().unwrap().outcome.as_ref().unwrap().late);
    world.audit();
}

/// An exception that is approved when its period is over belongs to no running sum.
#[test]
fn an_exception_belongs_to_the_period_it_was_asked_in() {
    let (mut world, agent) = calm(&[ASKS]);
    let owner = world.owner();
    world.authorize(&agent, payment(1_000, "EUR", "before.example"));
    let over = world.authorize(&agent, payment(30_000, "EUR", "shop.example")).id();
    let other = world.authorize(&agent, payment(31_000, "EUR", "shop.example")).id();
    world.advance(Span::hours(20));
    world.keep_signed_in(&owner);
    world.approve(&owner, other);
    assert_eq!(today(&mut world, &agent), (1_000, 0, 31_000, 1), "the day before is still told of");
    world.audit();
    world.authorize(&agent, payment(1_000, "EUR", "next.example"));
    world.keep_signed_in(&owner);
    world.approve(&owner, over);
    assert_eq!(today(&mut world, &agent), (1_000, 0, 0, 1));
    world.settle(&agent, over, OutcomeStatus::Completed, None);
    world.audit();
}

fn two_persons(age_days: u16) -> (World, Caller, Person, ActionId) {
    let mut settings = Settings { second_person_age_days: age_days, ..fast() };
    settings.second_person_above.insert("EUR".parse().unwrap(), 5_000);
    let (mut world, agent) = with(settings, &[ASKS]);
    let owner = world.owner();
    let asked = world.authorize(&agent, payment(6_000, "EUR", "shop.example")).id();
    (world, agent, owner, asked)
}

/// Two persons: the first yes waits on, the same person is not two, another account is; one no is enough.
#[test]
fn two_persons_are_two_accounts_in_two_sessions() {
    let (mut world, agent, owner, asked) = two_persons(0);
    let first = world.approve(&owner, asked);
    assert_eq!((first.stands, first.needed, first.approval.approvals.len()), (Stands::Waiting, 2, 1));
    assert_eq!(first.may_not, Some(MayNot::SecondPerson));
    assert_eq!(world.read(&agent, asked).status(), Status::Pending);
    let again = world.owner();
    for same in [owner, again] {
        assert_eq!(refused(&mut world, &same, asked, Choice::Approve).0, Kind::SecondPersonRequired);
    }
    let admin = world.person(Role::Admin);
    world.edit::<Principal>(admin.principal, |it| {
        let others = (Id::from_bits(7), it.created_at);
        it.member.as_mut().unwrap().raised = vec![(owner.principal, it.created_at), others];
    });
    assert_eq!(world.approve(&admin, asked).stands, Stands::Approved);
    let said = format!(r#""secondInvitedBy":"{}""#, owner.principal);
    assert!(world.ledger().contains(&said), "who made the second what they are is always told");
    world.audit();

    let (mut world, _, owner, asked) = two_persons(0);
    world.approve(&owner, asked);
    let admin = world.person(Role::Admin);
    assert_eq!(world.deny(&admin, asked).stands, Stands::Denied);
    world.audit();
}

/// Each of two persons shows the second factor again where the amount is above that line too; a yes without it is none.
#[test]
fn each_of_two_persons_shows_the_second_factor() {
    let mut settings = Settings { second_person_age_days: 0, ..fast() };
    for lines in [&mut settings.second_person_above, &mut settings.step_up_above] {
        lines.insert("EUR".parse().unwrap(), 5_000);
    }
    let (mut world, agent) = with(settings, &[ASKS]);
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let asked = world.authorize(&agent, payment(6_000, "EUR", "shop.example")).id();
    for (person, stands) in [(owner, Stands::Waiting), (admin, Stands::Approved)] {
        let recovery = vec![Digest::of("spare")];
        let factor = SecondFactor { sealed: "sealed".into(), last_step: 0, recovery };
        world.edit::<Account>(person.account, |it| it.second_factor = Some(factor));
        assert_eq!(refused(&mut world, &person, asked, Choice::Approve).0, Kind::SecondFactorAsked);
        let mut word = world.decision(&person, asked, Choice::Approve);
        word.factor = Some(FactorShown::Recovery(Digest::of("spare")));
        assert_eq!(world.run(word).unwrap().stands, stands);
    }
    world.audit();
}

/// At the line of the second person one is enough; a minor unit above it takes two.
#[test]
fn up_to_the_line_one_person_is_enough() {
    let mut settings = fast();
    settings.second_person_above.insert("EUR".parse().unwrap(), 6_000);
    let (mut world, agent) = with(settings, &[ASKS]);
    let owner = world.owner();
    for (amount, stands) in [(6_000, Stands::Approved), (6_001, Stands::Waiting)] {
        let asked = world.authorize(&agent, payment(amount, "EUR", "shop.example")).id();
        assert_eq!(world.approve(&owner, asked).stands, stands, "{amount}");
    }
    world.audit();
}

/// Of two of whom one has lately made the other what they are, whoever agrees second is no second person; a third is, and so is
/// each of the two once the days are over. The record says who raised either.
#[test]
fn whom_the_first_raised_lately_is_no_second_person() {
    for turned in [false, true] {
        let (mut world, _, owner, asked) = two_persons(1);
        let admin = world.person(Role::Admin);
        world.edit::<Principal>(admin.principal, |it| {
            it.member.as_mut().unwrap().raised = vec![(owner.principal, it.created_at)];
        });
        let (first, second) = if turned { (admin, owner) } else { (owner, admin) };
        world.approve(&first, asked);
        world.advance(Span::hours(23));
        world.keep_signed_in(&second);
        let id = world.row::<Action>(asked).approval.unwrap();
        let seen = world.engine().read(|scope| get_approval(scope, &By::Person(second), second.workspace, id)).unwrap();
        assert_eq!(seen.may_not, Some(MayNot::SecondPerson));
        assert_eq!(refused(&mut world, &second, asked, Choice::Approve).0, Kind::SecondPersonRequired, "{turned}");
        let third = world.person(Role::Admin);
        assert_eq!(world.approve(&third, asked).stands, Stands::Approved);
        world.audit();
    }
    let (mut world, agent, owner, _) = two_persons(1);
    let admin = world.person(Role::Admin);
    world.edit::<Principal>(admin.principal, |it| {
        it.member.as_mut().unwrap().raised = vec![(owner.principal, it.created_at)];
    });
    world.advance(Span::hours(24));
    let asked = world.authorize(&agent, payment(6_000, "EUR", "late.example")).id();
    for person in [admin, owner] {
        world.keep_signed_in(&person);
        world.approve(&person, asked);
    }
    let said = format!(r#""firstInvitedBy":"{}""#, owner.principal);
    assert!(world.ledger().contains(&said) && world.ledger().contains(r#""secondInvitedBy":null"#));
    world.audit();
}

/// Nor is anybody whom the first raised by the hands of others, also of one who has left since; whom somebody else brought in is.
#[test]
fn a_chain_of_invitations_makes_no_second_person() {
    for turned in [false, true] {
        let (mut world, _, owner, asked) = two_persons(1);
        let [between, last, other] = [0; 3].map(|_| world.person(Role::Admin));
        for (whom, by) in [(last, between), (between, owner), (owner, owner)] {
            world.edit::<Principal>(whom.principal, |it| {
                it.member.as_mut().unwrap().raised = vec![(by.principal, it.created_at)];
            });
        }
        let left = RemoveMember { workspace: owner.workspace, by: By::Person(owner), principal: between.principal };
        world.run(left).unwrap();
        let (first, second) = if turned { (last, owner) } else { (owner, last) };
        world.approve(&first, asked);
        assert_eq!(refused(&mut world, &second, asked, Choice::Approve).0, Kind::SecondPersonRequired, "{turned}");
        assert_eq!(world.approve(&other, asked).stands, Stands::Approved);
        world.audit();
    }
}

/// However many have brought each other in, none of whom the first raised or was raised by, they are told apart from the first.
#[test]
fn many_who_raised_each_other_are_told_from_one() {
    let (mut world, _, owner, asked) = two_persons(1);
    let [first, second] = [0; 2].map(|_| [0; 9].map(|_| world.person(Role::Admin)));
    let [above, last] = [0; 2].map(|_| world.person(Role::Admin));
    let raised = |world: &mut World, whom: &Person, by: &[Person]| {
        world.edit::<Principal>(whom.principal, |it| {
            it.member.as_mut().unwrap().raised = by.iter().map(|by| (by.principal, it.created_at)).collect();
        });
    };
    raised(&mut world, &last, &first);
    first.iter().for_each(|it| raised(&mut world, it, &second));
    second.iter().for_each(|it| raised(&mut world, it, &[above]));
    world.approve(&owner, asked);
    assert_eq!(world.approve(&last, asked).stands, Stands::Approved);
    world.audit();
}

/// What makes somebody no second person is not undone by what others, or they themselves, do to their role later.
#[test]
fn nobody_hides_who_raised_them() {
    let (mut world, _, owner, asked) = two_persons(1);
    let (admin, other) = (world.person(Role::Admin), world.person(Role::Admin));
    let change = |world: &mut World, by: Person, role| {
        let (workspace, principal) = (world.workspace(), admin.principal);
        world.run(ChangeMember { workspace, by: By::Person(by), principal, role: Some(role), teams: None }).unwrap();
    };
    change(&mut world, owner, Role::Member);
    change(&mut world, other, Role::Admin);
    change(&mut world, admin, Role::Member);
    change(&mut world, other, Role::Admin);
    let raised = world.row::<Principal>(admin.principal).membership().unwrap().raised.clone();
    assert_eq!(raised.iter().map(|it| it.0).collect::<Vec<_>>(), [owner.principal, other.principal]);
    world.approve(&owner, asked);
    assert_eq!(refused(&mut world, &admin, asked, Choice::Approve).0, Kind::SecondPersonRequired);
    world.audit();
}

/// A first yes counts no more once its giver may decide no longer.
#[test]
fn a_yes_of_one_who_left_counts_no_more() {
    let (mut world, _, owner, asked) = two_persons(0);
    let admin = world.person(Role::Admin);
    world.approve(&admin, asked);
    let given = |world: &mut World| {
        let (workspace, by, approval) = (world.workspace(), By::Program, world.row::<Action>(asked).approval.unwrap());
        let question = world.engine().read(|scope| get_approval(scope, &by, workspace, approval)).unwrap();
        let shown = question.action.unwrap().approval.unwrap();
        assert_eq!(shown.approvals, question.approval.approvals, "the agent is told of the same");
        question.approval.approvals.len()
    };
    assert_eq!(given(&mut world), 1);
    world.edit::<Principal>(admin.principal, |it| it.member.as_mut().unwrap().role = Role::Auditor);
    assert_eq!(given(&mut world), 0, "nobody is told of a yes that is none");
    let first = world.approve(&owner, asked);
    assert_eq!((first.stands, first.approval.approvals.len()), (Stands::Waiting, 1));
    assert_eq!(given(&mut world), 1);
    world.audit();
}

/// A yes ends with what it was given in: it is none any more once its giver was shut out where they sign in, was removed, or lost the
/// role, also where they have come back since. They may be asked again.
#[test]
fn a_yes_does_not_come_back_with_its_giver() {
    let ends: [fn(&mut World, Person, Person); 3] = [
        |world, _, admin| {
            let now = world.now();
            world.edit::<Principal>(admin.principal, |it| it.member.as_mut().unwrap().shut_out_at = Some(now));
        },
        |world, owner, admin| {
            let (workspace, by, principal) = (owner.workspace, By::Person(owner), admin.principal);
            let row = Principal::clone(&world.row::<Principal>(principal));
            world.run(RemoveMember { workspace, by: by.clone(), principal }).unwrap();
            let (token, mailed) = (Digest::of(b"link"), None);
            let (email, name, role, teams) = (row.email, None, Role::Admin, None);
            world.run(InviteMember { workspace, by, email, name, role, teams, token, mailed }).unwrap();
            assert!(world.row::<Principal>(principal).membership().is_some());
        },
        |world, owner, admin| {
            for role in [Role::Member, Role::Admin] {
                let (workspace, principal, role) = (owner.workspace, admin.principal, Some(role));
                world.run(ChangeMember { workspace, by: By::Person(owner), principal, role, teams: None }).unwrap();
            }
        },
    ];
    for (case, end) in ends.into_iter().enumerate() {
        let (mut world, _, owner, asked) = two_persons(0);
        let admin = world.person(Role::Admin);
        world.approve(&admin, asked);
        world.advance(Span::seconds(1));
        end(&mut world, owner, admin);
        world.advance(Span::seconds(1));
        let first = world.approve(&owner, asked);
        assert_eq!((first.stands, first.approval.approvals.len()), (Stands::Waiting, 1), "{case}");
        if case != 1 {
            assert_eq!(world.approve(&admin, asked).stands, Stands::Approved, "{case}");
        }
        world.audit();
    }
}

/// The second person's line as it is now decides how many are needed.
#[test]
fn the_second_persons_line_is_the_one_of_now() {
    let (mut world, _, owner, asked) = waiting(&[ASKS]);
    let mut settings = fast();
    settings.second_person_above.insert("EUR".parse().unwrap(), 100);
    world.change_settings(settings);
    assert_eq!(world.approve(&owner, asked).stands, Stands::Waiting);
    world.change_settings(fast());
    let admin = world.person(Role::Admin);
    assert_eq!(world.approve(&admin, asked).stands, Stands::Approved);
    world.audit();
}

/// What a stop voids it voids after a person's yes as well.
#[test]
fn a_stop_voids_a_persons_yes() {
    let (mut world, agent, owner, asked) = waiting(&[ASKS]);
    world.approve(&owner, asked);
    let receipt = world.read(&agent, asked).receipt().unwrap().to_owned();
    world.freeze(agent.agent);
    assert!(!world.verify(&receipt, Some(charge(6_000, "EUR", "shop.example"))).is_valid());
    world.advance(Span::seconds(1));
    assert_eq!(world.read(&agent, asked).status(), Status::Revoked);
    world.audit();
}

/// An account whose sessions were ended decides nothing.
#[test]
fn an_ended_session_decides_nothing() {
    let (mut world, _, owner, asked) = waiting(&[ASKS]);
    world.edit::<Account>(owner.account, |it| it.epoch += 1);
    assert_eq!(refused(&mut world, &owner, asked, Choice::Approve).0, Kind::Unauthenticated);
}

/// A yes is to one action: the next one like it, of the same session, is asked about again.
#[test]
fn a_yes_endorses_the_action_alone() {
    let (mut world, agent) = calm(&[PAY]);
    let owner = world.owner();
    let asking = || request("crm.update").in_session(SessionId::parse("ses-1").unwrap());
    let first = world.authorize(&agent, asking());
    assert_eq!(first.verb(), Verb::Ask);
    world.approve(&owner, first.id());
    assert_eq!(world.read(&agent, first.id()).verb(), Verb::Allow);
    let second = world.authorize(&agent, asking());
    assert_eq!(second.verb(), Verb::Ask);
    assert_ne!(second.id(), first.id());
}
