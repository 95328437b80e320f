//! Budgets: made, changed, raised, asked of persons.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use svc_core::refusal::Kind;
use svc_core::refusal::Refusal;
use svc_core::rules::gate::asked::{MayNot, Question, get_approval};
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gateway::budgets::{
    BudgetView, ChangeBudget, CreateBudget, RaiseBudget, RemoveBudget, list_budgets, read_budget,
};
use svc_core::rules::gateway::raising::{ask_for_raise, has_declined};
use svc_core::rules::people::by::By;
use svc_core::rules::people::by::Person;
use svc_core::rules::people::members::RemoveMember;
use svc_core::state::gate::{Approval, ApprovalState, ApprovalSubject};
use svc_core::state::gateway::{Budget, BudgetPeriod, BudgetScope, BudgetUse, Ladder, Mode};
use svc_core::state::gateway::{Payer, Rung, Step};
use svc_core::state::people::Role;
use svc_core::state::people::Workspace;
use svc_core::store::{Record, Row as _};
use svc_core::testing::people;
use svc_core::testing::world::World;
use svc_core::value::MicroUsd;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, ApprovalId, KeyId, TeamId};
use svc_core::value::id::{BudgetId, PrincipalId};
use svc_core::value::text::ClassId;
use svc_core::value::{Id as _, Span};

fn create(world: &World, by: By, amount: u64) -> CreateBudget {
    CreateBudget {
        workspace: world.workspace(),
        by,
        scope: BudgetScope::Workspace,
        key: None,
        amount: MicroUsd::new(amount),
        period: BudgetPeriod::Day,
        ladder: Ladder::default(),
        owner: None,
    }
}

fn made(world: &mut World, amount: u64) -> BudgetView {
    let create = create(world, By::Program, amount);
    world.run(create).unwrap()
}

fn fields(refusal: &Refusal) -> Vec<String> {
    refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("-").to_owned()).collect()
}

fn raise(world: &World, by: By, budget: BudgetId, allocation: u64) -> RaiseBudget {
    let allocation = MicroUsd::new(allocation);
    RaiseBudget { workspace: world.workspace(), by, budget, allocation, note: None }
}

/// A call is refused at the budget's allocation, and a person is asked: what that wrote is kept.
fn asked(world: &mut World, id: BudgetId) -> ApprovalId {
    let workspace = world.workspace();
    let (key, principal) = (KeyId::from_bits(7), PrincipalId::from_bits(7));
    let payer = Payer { key, agent: None, principal, team: None, class: None };
    let (used, approval) = world
        .engine()
        .read(|scope| {
            let row = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
            let budget = scope.get::<Budget>(id)?.ok_or_else(Refusal::internal)?;
            let used = scope.get::<BudgetUse>(id)?.ok_or_else(Refusal::internal)?;
            let mut used = used.at(&budget, scope.now(), &row.settings);
            assert!(used.admit(&budget, MicroUsd::new(1), Mode::Enforce).refuses, "the budget is full");
            let asked = ask_for_raise(scope, &row, &budget, &mut used, &payer)?;
            Ok((used, scope.get::<Approval>(asked)?.ok_or_else(Refusal::internal)?))
        })
        .unwrap();
    people::write(world.engine().store(), vec![BudgetUse::wrap(used.into()), Approval::wrap(approval.clone())]);
    approval.id
}

fn full(world: &mut World) -> BudgetId {
    let id = made(world, 1_000).budget.id;
    world.edit::<BudgetUse>(id, |it| it.spent = MicroUsd::new(1_000));
    id
}

fn decide(world: &mut World, by: &Person, approval: ApprovalId, choice: Choice) -> Result<Question, Refusal> {
    world.run(DecideApproval::new(*by, approval, choice))
}

fn kinds(world: &mut World) -> Vec<String> {
    world.advance(Span::millis(1));
    let ledger = world.ledger();
    let kinds =
        ["budget.created", "budget.changed", "budget.removed", "budget.raised", "approval.approved", "approval.denied"];
    kinds.into_iter().filter(|it| ledger.contains(it)).map(str::to_owned).collect()
}

/// A budget begins with nothing used, the default ladder and the first owner, and is in the workspace's list.
#[test]
fn a_budget_begins_empty_and_is_listed() {
    let mut world = World::new();
    let view = made(&mut world, 5);
    let row = world.row::<Workspace>(world.workspace());
    assert_eq!(row.budgets, [view.budget.listed()]);
    assert_eq!((view.budget.owner, view.used.used(), view.enforcing), (row.owner, MicroUsd::ZERO, false));
    assert_eq!(view.used.allocation(&view.budget), MicroUsd::new(5));
    let (all, more) = world.engine().read(|scope| list_budgets(scope, &By::Program, row.id, None, 10)).unwrap();
    assert_eq!((all, more), (vec![view], false));
    assert_eq!(kinds(&mut world), ["budget.created"]);
}

/// Every fault of a new budget is named at once, unknown ids among them.
#[test]
fn every_fault_of_a_budget_is_named() {
    let mut world = World::new();
    let stranger = PrincipalId::from_bits(99);
    let bad = CreateBudget {
        scope: BudgetScope::Team(TeamId::from_bits(1)),
        owner: Some(stranger),
        ..create(&world, By::Program, 0)
    };
    let refusal = world.run(bad.clone()).unwrap_err();
    assert_eq!(
        (refusal.kind(), fields(&refusal)),
        (Kind::InvalidBudget, ["amount", "scope.id", "owner"].map(String::from).to_vec())
    );
    for scope in [
        BudgetScope::Agent(AgentId::from_bits(1)),
        BudgetScope::Principal(stranger),
        BudgetScope::Key(KeyId::from_bits(1)),
        BudgetScope::TaskClass(ClassId::parse("none").unwrap()),
    ] {
        let refusal = world.run(CreateBudget { scope, ..create(&world, By::Program, 1) }).unwrap_err();
        assert_eq!(fields(&refusal), ["scope.id"]);
    }
    assert!(kinds(&mut world).is_empty());
}

/// A budget over an agent is that of an agent of the workspace that is there.
#[test]
fn a_budget_is_over_something_of_the_workspace() {
    let mut world = World::new();
    let agent = world.agent().register().agent;
    let scope = BudgetScope::Agent(agent);
    let asked = CreateBudget { scope: scope.clone(), ..create(&world, By::Program, 1) };
    assert_eq!(world.run(asked).unwrap().budget.scope, scope);
}

/// The newest budget is listed first; a page goes on with those that were made before, also where the last one of the page before was
/// removed meanwhile.
#[test]
fn budgets_are_listed_from_the_newest() {
    let mut world = World::new();
    let workspace = world.workspace();
    let mut ids = Vec::new();
    for amount in 1..=4 {
        world.advance(Span::millis(1));
        ids.insert(0, made(&mut world, amount).budget.id);
    }
    let page = |world: &mut World, after: Option<BudgetId>, limit: usize| {
        let read = world.engine().read(|scope| list_budgets(scope, &By::Program, workspace, after, limit)).unwrap();
        (read.0.iter().map(|it| it.budget.id).collect::<Vec<_>>(), read.1)
    };
    assert_eq!(page(&mut world, None, 2), (ids[..2].to_vec(), true));
    assert_eq!(page(&mut world, Some(ids[1]), 2), (ids[2..].to_vec(), false));
    world.run(RemoveBudget { workspace, by: By::Program, budget: ids[1] }).unwrap();
    assert_eq!(page(&mut world, Some(ids[1]), 1), (ids[2..3].to_vec(), true));
}

/// Of a budget whose owner was removed the workspace's first owner can approve more; none is made over somebody who was removed.
#[test]
fn the_first_owner_stands_in_for_a_budgets_owner_who_left() {
    let mut world = World::new();
    let (owner, leaver) = (world.owner(), world.person(Role::Member));
    let workspace = world.workspace();
    let asked = CreateBudget { owner: Some(leaver.principal), ..create(&world, By::Program, 5) };
    let id = world.run(asked).unwrap().budget.id;
    let shown =
        |world: &mut World| world.engine().read(|scope| read_budget(scope, &By::Program, workspace, id)).unwrap().owner;
    assert_eq!(shown(&mut world), leaver.principal);
    world.run(RemoveMember { workspace, by: By::Person(owner), principal: leaver.principal }).unwrap();
    assert_eq!(shown(&mut world), owner.principal);
    let over = CreateBudget { scope: BudgetScope::Principal(leaver.principal), ..create(&world, By::Program, 5) };
    assert_eq!(fields(&world.run(over).unwrap_err()), ["scope.id"]);
}

/// Making, changing and removing is for owners and admins; an analyst reads.
#[test]
fn who_may_make_change_and_read_budgets() {
    let mut world = World::new();
    let view = made(&mut world, 5);
    let (id, workspace) = (view.budget.id, world.workspace());
    for role in Role::ALL {
        let by = By::Person(world.person(role));
        let makes = matches!(role, Role::Owner | Role::Admin);
        let asked = create(&world, by.clone(), 1);
        assert_eq!(world.run(asked).is_ok(), makes, "{role:?}");
        let change = ChangeBudget { workspace, by: by.clone(), budget: id, amount: None, ladder: None, owner: None };
        assert_eq!(world.run(change).is_ok(), makes, "{role:?}");
        let reads = world.engine().read(|scope| read_budget(scope, &by, workspace, id)).is_ok();
        assert_eq!(reads, makes || role == Role::Analyst, "{role:?}");
    }
}

/// A changed amount holds at once, also in a period that was raised to more, and where it says what the budget said before; what was
/// spent stays.
#[test]
fn a_change_holds_in_the_running_period() {
    let mut world = World::new();
    let id = full(&mut world);
    let workspace = world.workspace();
    let change = |amount: u64, ladder: Option<Ladder>| ChangeBudget {
        workspace,
        by: By::Program,
        budget: id,
        amount: Some(MicroUsd::new(amount)),
        ladder,
        owner: None,
    };
    let view = world.run(change(2_000, None)).unwrap();
    assert_eq!((view.used.spent.get(), view.used.allocation(&view.budget).get()), (1_000, 2_000));
    let more = raise(&world, By::Program, id, 3_000);
    world.run(more).unwrap();
    let view = world.run(change(500, Ladder::of(vec![Rung { at: 50, step: Step::Observe }]).ok())).unwrap();
    assert_eq!((view.used.spent.get(), view.used.allocation(&view.budget).get()), (1_000, 500));
    assert!(!view.budget.ladder.refuses());
    let more = raise(&world, By::Program, id, 3_000);
    world.run(more).unwrap();
    let none = ChangeBudget { amount: None, ..change(0, Some(Ladder::default())) };
    let view = world.run(none).unwrap();
    assert_eq!(view.used.allocation(&view.budget).get(), 3_000, "nothing was said of the amount");
    let view = world.run(change(500, None)).unwrap();
    assert_eq!(view.used.allocation(&view.budget).get(), 500);
    let lowered = changes(&mut world).pop();
    assert_eq!(lowered.as_deref(), Some(r#"{"new":{"allocationMicros":500},"old":{"allocationMicros":3000}}"#));
    world.advance(Span::hours(24));
    let view = world.engine().read(|scope| read_budget(scope, &By::Program, workspace, id)).unwrap();
    assert_eq!((view.used.spent.get(), view.used.allocation(&view.budget).get()), (0, 500), "a new period");
    assert_eq!(kinds(&mut world), ["budget.created", "budget.changed", "budget.raised"]);
}

/// A period is raised by the budget's owner, an owner or an admin, and only above what it has.
#[test]
fn who_may_raise_a_budget() {
    let mut world = World::new();
    let (id, mut next) = (made(&mut world, 1_000).budget.id, 1_000);
    for role in Role::ALL {
        let person = world.person(role);
        let asked = raise(&world, By::Person(person), id, next + 1);
        let outcome = world.run(asked);
        if matches!(role, Role::Owner | Role::Admin) {
            next += 1;
            assert_eq!(outcome.unwrap().used.raised, Some(MicroUsd::new(next)));
        } else {
            // An analyst reads every budget; to the others one of somebody else's is not there.
            let told = if role == Role::Analyst { Kind::Forbidden } else { Kind::NotFound };
            assert_eq!(outcome.unwrap_err().kind(), told, "{role:?}");
            world.edit::<Budget>(id, |it| it.owner = person.principal);
            next += 1;
            let own = raise(&world, By::Person(person), id, next);
            assert!(world.run(own).is_ok(), "{role:?} as its owner");
        }
    }
    let same = raise(&world, By::Program, id, next);
    let refusal = world.run(same).unwrap_err();
    assert_eq!((refusal.kind(), fields(&refusal)), (Kind::InvalidBudget, vec!["amountMicros".to_owned()]));
}

/// One question waits a budget and period, and a yes lets the period spend the amount again.
#[test]
fn one_question_waits_a_budget_and_period() {
    let mut world = World::new();
    let id = full(&mut world);
    let approval = asked(&mut world, id);
    assert_eq!(asked(&mut world, id), approval, "the question that waits is the answer");
    let row = world.row::<Approval>(approval);
    assert!(row.expires_at <= world.row::<BudgetUse>(id).end.unwrap(), "never beyond the period");
    let admin = world.person(Role::Admin);
    let decided = decide(&mut world, &admin, approval, Choice::Approve).unwrap();
    assert_eq!(decided.may_not, Some(MayNot::Decided));
    assert_eq!(world.row::<BudgetUse>(id).raised, Some(MicroUsd::new(2_000)));
    assert_eq!(decide(&mut world, &admin, approval, Choice::Approve).unwrap_err().kind(), Kind::NotAllowed);
    assert_eq!(kinds(&mut world), ["budget.created", "budget.raised", "approval.approved"]);
}

/// What a person refused is not asked again in that period: whoever is refused next is told of the same question.
#[test]
fn a_refused_raise_is_not_asked_again() {
    let mut world = World::new();
    let id = full(&mut world);
    let approval = asked(&mut world, id);
    let admin = world.person(Role::Admin);
    decide(&mut world, &admin, approval, Choice::Deny).unwrap();
    world.advance(Span::seconds(1));
    assert_eq!(asked(&mut world, id), approval);
    assert!(matches!(world.row::<Approval>(approval).state, ApprovalState::Denied { .. }));
    let used = world.row::<BudgetUse>(id);
    assert!(world.engine().read(|scope| has_declined(scope, &used)).unwrap(), "whoever is refused is told so");
    assert_eq!(world.row::<BudgetUse>(id).raised, None);
}

/// What is asked for is said as it is: a budget that has no end is raised for good.
#[test]
fn a_question_says_for_how_long_more_may_be_spent() {
    for (period, said) in [
        (BudgetPeriod::Day, "spend USD 0.001 more in this period"),
        (BudgetPeriod::Total, "spend USD 0.001 more, for good"),
    ] {
        let mut world = World::new();
        let id = world.run(CreateBudget { period, ..create(&world, By::Program, 1_000) }).unwrap().budget.id;
        world.edit::<BudgetUse>(id, |it| it.spent = MicroUsd::new(1_000));
        let (approval, workspace) = (asked(&mut world, id), world.workspace());
        let question = world.engine().read(|scope| get_approval(scope, &By::Program, workspace, approval)).unwrap();
        assert!(question.summary().ends_with(said), "{}", question.summary());
    }
}

/// Whoever may not raise a budget does not decide about it; its owner reads and decides, whatever their role.
#[test]
fn the_budgets_owner_decides() {
    for role in [Role::Member, Role::Analyst, Role::Auditor] {
        let mut world = World::new();
        let id = full(&mut world);
        let approval = asked(&mut world, id);
        let person = world.person(role);
        let workspace = world.workspace();
        let sees = |world: &mut World| {
            let read = world.engine().read(|scope| get_approval(scope, &By::Person(person), workspace, approval));
            read.map(|it| it.may_not)
        };
        // An auditor reads what anybody is asked.
        let told = if role == Role::Auditor { Some(MayNot::Role) } else { None };
        assert_eq!(sees(&mut world).ok().flatten(), told, "{role:?}");
        assert!(sees(&mut world).is_ok() == told.is_some(), "another's budget is not there");
        assert!(decide(&mut world, &person, approval, Choice::Approve).is_err());
        world.edit::<Budget>(id, |it| it.owner = person.principal);
        assert_eq!(sees(&mut world).unwrap(), None);
        assert!(decide(&mut world, &person, approval, Choice::Approve).is_ok(), "{role:?}");
    }
}

/// Whom a call was for may read what is asked of its budget, and decides nothing of it.
#[test]
fn whom_a_call_was_for_raises_nothing() {
    let mut world = World::new();
    let id = full(&mut world);
    let approval = asked(&mut world, id);
    let (member, workspace) = (world.person(Role::Member), world.workspace());
    world.edit::<Approval>(approval, |it| {
        let ApprovalSubject::Budget(of) = &mut it.subject else { panic!("{it:?}") };
        of.principal = member.principal;
    });
    let read = world.engine().read(|scope| get_approval(scope, &By::Person(member), workspace, approval)).unwrap();
    assert_eq!(read.may_not, Some(MayNot::Role));
    for choice in Choice::ALL {
        assert_eq!(decide(&mut world, &member, approval, choice).unwrap_err().kind(), Kind::Forbidden, "{choice:?}");
    }
    let admin = world.person(Role::Admin);
    assert!(decide(&mut world, &admin, approval, Choice::Approve).is_ok());
}

/// The ledger is told of a change what differs, and nothing else.
#[test]
fn the_ledger_says_what_changed_of_a_budget() {
    let mut world = World::new();
    let id = made(&mut world, 5).budget.id;
    let (workspace, by, amount) = (world.workspace(), By::Program, Some(MicroUsd::new(6)));
    world.run(ChangeBudget { workspace, by, budget: id, amount, ladder: None, owner: None }).unwrap();
    assert_eq!(changes(&mut world), [r#"{"new":{"amount":6},"old":{"amount":5}}"#]);
}

/// A step is told again where it stands elsewhere: by another amount or ladder, or an amount that takes a raise back; a change of the
/// owner alone, or one to what was there, tells none.
#[test]
fn steps_are_told_again_where_they_have_moved() {
    let mut world = World::new();
    let id = made(&mut world, 100).budget.id;
    let owner = Some(world.person(Role::Admin).principal);
    let (workspace, by) = (world.workspace(), By::Program);
    let amount = |it| Some(MicroUsd::new(it));
    let none = ChangeBudget { workspace, by, budget: id, amount: None, ladder: None, owner: None };
    let changes = [
        (ChangeBudget { owner, ..none.clone() }, false),
        (ChangeBudget { amount: amount(100), ladder: Some(Ladder::default()), ..none.clone() }, false),
        (ChangeBudget { amount: amount(101), ..none.clone() }, true),
        (
            ChangeBudget {
                ladder: Some(Ladder::of(vec![Rung { at: 70, step: Step::Nudge }]).unwrap()),
                ..none.clone()
            },
            true,
        ),
    ];
    for (number, (change, again)) in changes.into_iter().enumerate() {
        world.edit::<BudgetUse>(id, |it| it.spent = MicroUsd::new(85));
        let budget = world.row::<Budget>(id);
        world.edit::<BudgetUse>(id, |it| drop(it.news(&budget, it.spent, None)));
        assert!(!world.row::<BudgetUse>(id).told.is_empty());
        world.run(change).unwrap();
        assert_eq!(world.row::<BudgetUse>(id).told.is_empty(), again, "{number}");
    }
}

/// What the ledger was told of changes, by the commits that wrote it.
fn changes(world: &mut World) -> Vec<String> {
    let rows = world.rows();
    let mut told: Vec<_> = rows
        .iter()
        .filter_map(|(_, at, it)| match it {
            Record::Entry(it) if &*it.kind == "budget.changed" => Some((*at, it.data.to_string())),
            _ => None,
        })
        .collect();
    told.sort();
    told.into_iter().map(|it| it.1).collect()
}

/// A question that waits asks for no more than the amount that the budget was changed to, and a yes brings that.
#[test]
fn a_question_follows_an_amount_that_is_lowered() {
    let mut world = World::new();
    let id = full(&mut world);
    let approval = asked(&mut world, id);
    let workspace = world.workspace();
    let change = |amount: u64| ChangeBudget {
        workspace,
        by: By::Program,
        budget: id,
        amount: Some(MicroUsd::new(amount)),
        ladder: None,
        owner: None,
    };
    let more = |world: &mut World| match &world.row::<Approval>(approval).subject {
        ApprovalSubject::Budget(it) => it.more.get(),
        other => panic!("another subject: {other:?}"),
    };
    for (amount, asks) in [(5_000, 1_000), (100, 100), (300, 100)] {
        world.run(change(amount)).unwrap();
        assert_eq!(more(&mut world), asks, "{amount}");
    }
    let admin = world.person(Role::Admin);
    decide(&mut world, &admin, approval, Choice::Approve).unwrap();
    assert_eq!(world.row::<BudgetUse>(id).raised, Some(MicroUsd::new(1_100)));
}

/// However far beyond its allocation a period is, spent in shadow or by calls that began below the line: one yes lets the next call
/// through, wherever the ladder asks, and lets as much be spent as it says before the next question.
#[test]
fn one_yes_lets_the_next_call_through() {
    let more = 1_000;
    for (at, spent, reserved) in [(100, 5_490, 0), (100, 400, 5_000), (50, 5_490, 0), (150, 5_490, 0), (0, 40, 0)] {
        let mut world = World::new();
        let id = made(&mut world, 1_000).budget.id;
        let ladder = Ladder::of(vec![Rung { at, step: Step::Approval }]).unwrap();
        world.edit::<Budget>(id, |it| it.ladder = ladder.clone());
        world.edit::<BudgetUse>(id, |it| {
            (it.spent, it.reserved) = (MicroUsd::new(spent), MicroUsd::new(reserved));
        });
        let approval = asked(&mut world, id);
        let admin = world.person(Role::Admin);
        decide(&mut world, &admin, approval, Choice::Approve).unwrap();
        let (budget, mut used) = (world.row::<Budget>(id), BudgetUse::clone(&world.row::<BudgetUse>(id)));
        let refuses = |used: &BudgetUse| used.admit(&budget, MicroUsd::new(10), Mode::Enforce).refuses;
        assert!(!refuses(&used), "{at}");
        used.spent = MicroUsd::new(spent + more - 1);
        assert!(!refuses(&used), "{at}");
        used.spent = MicroUsd::new(spent + more);
        assert!(refuses(&used), "{at}");
    }
}

/// A no stands for the rest of the period; a question that nobody answered may be asked again.
#[test]
fn a_no_stands_for_the_period() {
    let mut world = World::new();
    let id = full(&mut world);
    let first = asked(&mut world, id);
    let admin = world.person(Role::Admin);
    // Whoever names the digest of an action means another question.
    let other =
        DecideApproval { digest: Some(Digest::of("another")), ..DecideApproval::new(admin, first, Choice::Approve) };
    let refused = world.run(other).unwrap_err();
    assert_eq!((refused.kind().row().type_, world.row::<BudgetUse>(id).raised), ("selection_changed", None));
    decide(&mut world, &admin, first, Choice::Deny).unwrap();
    assert_eq!(asked(&mut world, id), first);
    assert_eq!(world.row::<BudgetUse>(id).raised, None);
    world.edit::<Approval>(first, |it| it.state = ApprovalState::Expired { at: it.created_at });
    world.advance(Span::millis(1));
    assert_ne!(asked(&mut world, id), first);
}

/// Who raises a budget answers the question that waits for it, and a budget that is removed ends it.
#[test]
fn raising_answers_what_waits_and_removing_ends_it() {
    let mut world = World::new();
    let id = full(&mut world);
    let approval = asked(&mut world, id);
    let owner = world.owner();
    let more = raise(&world, By::Person(owner), id, 9_000);
    world.run(more).unwrap();
    assert!(matches!(world.row::<Approval>(approval).state, ApprovalState::Approved { .. }));
    world.edit::<BudgetUse>(id, |it| it.spent = MicroUsd::new(9_000));
    let second = asked(&mut world, id);
    let workspace = world.workspace();
    world.run(RemoveBudget { workspace, by: By::Program, budget: id }).unwrap();
    assert!(matches!(world.row::<Approval>(second).state, ApprovalState::Denied { by: None, .. }));
    assert!(world.row::<Workspace>(workspace).budgets.is_empty());
    let refusal = decide(&mut world, &owner, second, Choice::Approve).unwrap_err();
    assert_eq!(refusal.kind(), Kind::NotAllowed);
    let gone = world.run(RemoveBudget { workspace, by: By::Program, budget: id }).unwrap_err();
    assert_eq!(gone.kind(), Kind::NotFound);
}

/// A question is over with its period: a yes after it raises nothing.
#[test]
fn a_question_is_over_with_its_period() {
    let mut world = World::new();
    let id = full(&mut world);
    let approval = asked(&mut world, id);
    let admin = world.person(Role::Admin);
    world.advance(Span::hours(24));
    world.keep_signed_in(&admin);
    let refusal = decide(&mut world, &admin, approval, Choice::Approve).unwrap_err();
    assert_eq!((refusal.kind(), refusal.reason()), (Kind::NotAllowed, Some("expired")));
}
