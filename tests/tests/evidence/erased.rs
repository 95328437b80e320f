//! What is erased with a person or an action, wherever somebody else's doing has put it.

use svc_core::refusal::Refusal;
use svc_core::rules::edge::deliver::{ClaimDelivery, FinishDelivery};
use svc_core::rules::evidence::erase::Target;
use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::fleet::{Fleet, FreezeFleet, Halted};
use svc_core::rules::gate::lift::{Lift, LiftHold};
use svc_core::rules::gateway::budgets::CreateBudget;
use svc_core::rules::people::applications::{ApproveApplication, Approved, CreateApplication, DenyApplication};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::members::RemoveMember;
use svc_core::state::edge::Tried;
use svc_core::state::gate::{Action, Tier, Tool};
use svc_core::state::gateway::{BudgetPeriod, BudgetScope, Ladder};
use svc_core::state::people::{AgentWish, Application, Change, Hold, Plans, Principal, RaiseWish, Role, Roster};
use svc_core::testing::world::{terms, tool_call};
use svc_core::value::digest::Digest;
use svc_core::value::id::{ApplicationId, HoldId, PrincipalId};
use svc_core::value::text::{Email, Label, Note, UrlText};
use svc_core::value::{MicroUsd, Span};
use svc_tests::evidence::Ledger;

fn note(text: &str) -> Note {
    Note::parse(text).unwrap()
}

fn erase(ledger: &Ledger, person: PrincipalId) -> u64 {
    ledger.gate.erase(ledger.agent.workspace, &By::Program, Target::Principal(person)).unwrap()
}

fn bundle(ledger: &mut Ledger) -> String {
    ledger.world.advance(Span::seconds(1));
    String::from_utf8(ledger.bundle(&ledger.all())).unwrap()
}

/// The hold of a freeze of everybody.
fn halt(ledger: &mut Ledger) -> HoldId {
    let workspace = ledger.agent.workspace;
    let freeze = FreezeFleet {
        workspace,
        by: By::Program,
        epoch: ledger.world.row::<Roster>(workspace).epoch,
        agents: vec![ledger.agent.agent].into(),
        frozen: 0,
        digest: Digest::of("all"),
        all: true,
        reason: note("a leak"),
        confirm: Some(1),
        seen: None,
    };
    let Fleet::Frozen(Halted { hold: Some(hold), .. }) = ledger.world.run(freeze).unwrap() else { panic!("no hold") };
    ledger.world.advance(Span::seconds(1));
    hold
}

/// What somebody applied for and another approved is erased with whoever wrote it, and not with whoever approved.
#[test]
fn an_applicants_words_are_erased_with_them() {
    let mut ledger = Ledger::new();
    let workspace = ledger.agent.workspace;
    let (writer, decider) = (ledger.world.person(Role::Member), ledger.world.person(Role::Owner));
    let budget = CreateBudget {
        workspace,
        by: By::Program,
        scope: BudgetScope::Workspace,
        key: None,
        amount: MicroUsd::new(1_000),
        period: BudgetPeriod::Day,
        ladder: Ladder::default(),
        owner: Some(writer.principal),
    };
    let budget = ledger.world.run(budget).unwrap().budget.id;
    let said = Some(note("the writer's words"));
    let change = Change::BudgetRaise(RaiseWish { budget, allocation: MicroUsd::new(2_000), note: said });
    let made = ledger.world.run(CreateApplication { by: writer, change, reason: note("the writer's reason") }).unwrap();
    approve(&mut ledger, decider, made.id, "the decider's words").unwrap();
    erase(&ledger, decider.principal);
    let shown = bundle(&mut ledger);
    assert!(shown.contains("the writer's words") && !shown.contains("the decider's"), "{shown}");
    erase(&ledger, writer.principal);
    let shown = bundle(&mut ledger);
    assert!(!shown.contains("the writer's") && !ledger.world.dump().contains("the writer's"), "{shown}");
}

fn approve(ledger: &mut Ledger, by: Person, application: ApplicationId, said: &str) -> Result<Approved, Refusal> {
    let (note, key, plans) = (Some(note(said)), NewKey::of("ask_new"), Plans::default());
    ledger.world.run(ApproveApplication { by, application, note, confirm_broaden: false, key, plans, counted: None })
}

/// The reason to lift a hold is erased with the owner who gave it, and not with the other one who agreed; a hold that an older
/// release lifted, which knew of nobody else, with whoever lifted it.
#[test]
fn why_a_hold_was_lifted_is_erased_with_who_said_it() {
    let mut ledger = Ledger::new();
    let workspace = ledger.agent.workspace;
    let (writer, other) = (ledger.world.person(Role::Owner), ledger.world.person(Role::Owner));
    let hold = halt(&mut ledger);
    let by = By::Person(writer);
    let lift = LiftHold { workspace, hold, by, reason: note("the writer's words"), restart: false };
    let Lift::Asked(asked) = ledger.world.run(lift).unwrap() else { panic!("it was lifted at once") };
    let yes = DecideApproval::new(other, asked.id, Choice::Approve);
    ledger.world.run(DecideApproval { note: Some(note("the other's words")), ..yes }).unwrap();
    erase(&ledger, other.principal);
    let shown = bundle(&mut ledger);
    assert!(shown.contains("the writer's words") && !shown.contains("the other's words"), "{shown}");
    let reason = |ledger: &mut Ledger| ledger.world.row::<Hold>(hold).lifted.clone().unwrap().reason.unwrap();
    assert_eq!(reason(&mut ledger), note("the writer's words"));
    erase(&ledger, writer.principal);
    let shown = bundle(&mut ledger);
    assert!(!shown.contains("the writer's") && !ledger.world.dump().contains("the writer's"), "{shown}");
    assert_eq!(reason(&mut ledger), note("[erased]"));
    ledger.world.edit::<Hold>(hold, |it| {
        let lifted = it.lifted.as_mut().unwrap();
        (lifted.author, lifted.reason) = (None, Some(note("of before")));
    });
    erase(&ledger, other.principal);
    assert_eq!(reason(&mut ledger), note("[erased]"));
}

/// An address goes with its person out of everybody's applications, once they are no member any more, and nobody is made an agent
/// for whom it is gone.
#[test]
fn an_address_is_erased_in_applications() {
    let mut ledger = Ledger::new();
    let workspace = ledger.agent.workspace;
    let (person, other, owner) =
        (ledger.world.person(Role::Member), ledger.world.person(Role::Member), ledger.world.person(Role::Owner));
    let address = ledger.world.row::<Principal>(person.principal).email.clone();
    let kept = Email::parse("somebody@example.com").unwrap();
    let apply = |ledger: &mut Ledger, by: Person, email: &Email| {
        let change = Change::Agent(Box::new(AgentWish {
            name: Label::parse("Shopper").unwrap(),
            email: email.clone(),
            tier: Tier::Standard,
            sponsor: None,
            kill_owner: None,
            mandates: Vec::new(),
        }));
        ledger.world.run(CreateApplication { by, change, reason: note("it shops") }).unwrap().id
    };
    let upper = Email::parse(&address.as_str().to_uppercase()).unwrap();
    let own = apply(&mut ledger, person, &address);
    let denied = apply(&mut ledger, other, &upper);
    let waits = apply(&mut ledger, other, &address);
    let anothers = apply(&mut ledger, other, &kept);
    ledger.world.run(DenyApplication { by: owner, application: denied, note: None }).unwrap();
    erase(&ledger, person.principal);
    let email = |ledger: &mut Ledger, id| match &ledger.world.row::<Application>(id).change {
        Change::Agent(wish) => wish.email.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(email(&mut ledger, own), address.as_str(), "a member is reached there");
    ledger.world.run(RemoveMember { workspace, by: By::Person(owner), principal: person.principal }).unwrap();
    ledger.world.advance(Span::seconds(1));
    assert!(erase(&ledger, person.principal) > 0);
    let nobody = format!("{}@erased.invalid", person.principal);
    for id in [own, denied, waits] {
        assert_eq!(email(&mut ledger, id), nobody);
    }
    assert_eq!(email(&mut ledger, anothers), kept.as_str());
    assert!(!ledger.world.dump().to_lowercase().contains(address.folded()));
    let late = approve(&mut ledger, owner, waits, "fine").unwrap_err();
    assert_eq!(late.reason(), Some("whoever the agent is to act for was erased: deny it"));
    assert_eq!(erase(&ledger, person.principal), 0, "once");
}

/// With an action goes the digest of what its tool was given, and who was called once it was decided: at once where nobody is to be
/// called any more, and else with the next erasure.
#[test]
fn an_action_keeps_no_digest_and_no_address() {
    let mut ledger = Ledger::new();
    let agent = ledger.world.agent().with_mandate(terms(r#"{"name":"Tools","actions":["tool.call"]}"#)).register();
    let tool = Tool {
        name: Some(Label::parse("read_file").unwrap()),
        input_digest: Some(Digest::of("a guess")),
        ..Tool::default()
    };
    let action = ledger.world.authorize(&agent, tool_call("read_file").calling(tool)).id();
    let url = UrlText::parse("https://hooks.example.com/jane?roe").unwrap();
    let callback = ledger.world.run(RegisterCallback { caller: agent, action, url }).unwrap().callback;
    let erase = |ledger: &Ledger| ledger.gate.erase(agent.workspace, &By::Program, Target::Action(action)).unwrap();
    assert!(ledger.world.row::<Action>(action).tool.as_ref().unwrap().input_digest.is_some());
    assert!(erase(&ledger) > 0);
    let row = ledger.world.row::<Action>(action);
    assert_eq!(row.tool.as_ref().unwrap().input_digest, None);
    assert_eq!(row.callback.as_deref(), Some(&callback), "it is still to be called");
    let claimed = ledger.world.run(ClaimDelivery { job: callback.id.into() }).unwrap().taken().unwrap();
    let (job, claim) = (claimed.job.id, claimed.job.claims);
    let tried = Tried { status: Some(204), error: None, ms: 3 };
    ledger.world.run(FinishDelivery { job, claim, tried, wait_s: None, posted: None }).unwrap();
    assert!(erase(&ledger) > 0);
    assert_eq!(ledger.world.row::<Action>(action).callback, None);
    assert_eq!(erase(&ledger), 0, "once");
}
