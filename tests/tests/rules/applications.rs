//! Applications: a member asks, another decides, and what is approved happens as the decider's own change or not at all.

use std::sync::Arc;

use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::applications::{
    ApproveApplication, Approved, CreateApplication, DenyApplication, WithdrawApplication, plan,
};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::members::RemoveMember;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::rules::people::teams::{KeepTeam, RemoveTeam};
use svc_core::state::gate::{Agent, LimitsChange, Mandate, PerPeriod, Set, TermsChange, Tier};
use svc_core::state::people::{
    APPLICATIONS_WAITING_MAX, AgentWish, Application, ApplicationState, Change, MandateChangeWish, MandateWish, Plans,
    Principal, Role, RoleWish, Wish,
};
use svc_core::store::Record;
use svc_core::testing::world::{World, terms};
use svc_core::value::Id as _;
use svc_core::value::Span;
use svc_core::value::id::{AgentId, ApplicationId, ApprovalId, MandateId, MandateVersionId};
use svc_core::value::period::Period;
use svc_core::value::text::{Email, Label, Note};

use super::{PAY, calm};

/// A world with an agent, a member whom it acts for, and an admin.
struct Office {
    world: World,
    agent: Caller,
    member: Person,
    admin: Person,
}

fn office() -> Office {
    let (mut world, agent) = calm(&[PAY]);
    let workspace = world.workspace();
    let member = world.person(Role::Member);
    let admin = world.person(Role::Admin);
    let entrust = ChangeAgent {
        workspace,
        by: By::Program,
        agent: agent.agent,
        name: None,
        tier: None,
        sponsor: Some(Some(member.principal)),
        kill_owner: None,
    };
    world.run(entrust).unwrap();
    Office { world, agent, member, admin }
}

fn note(text: &str) -> Note {
    Note::parse(text).unwrap()
}

impl Office {
    fn ask(&mut self, by: Person, change: Change) -> Result<Arc<Application>, Refusal> {
        self.world.run(CreateApplication { by, change, reason: note("we buy more now") })
    }

    fn tier(&mut self) -> ApplicationId {
        let change = Change::Tier { agent: self.agent.agent, tier: Tier::Trusted };
        self.ask(self.member, change).unwrap().id
    }

    fn approve(&mut self, by: Person, application: ApplicationId) -> Result<Approved, Refusal> {
        self.world.run(self.yes(by, application, false))
    }

    fn yes(&self, by: Person, application: ApplicationId, confirm_broaden: bool) -> ApproveApplication {
        let key = NewKey::of("ask_of_the_new_agent");
        let (note, plans) = (Some(note("fine")), Plans::default());
        ApproveApplication { by, application, note, confirm_broaden, key, plans, counted: None }
    }

    fn role(&mut self, who: Person) -> Role {
        let row: Arc<Principal> = self.world.row(who.principal);
        row.membership().unwrap().role
    }

    fn deny(&mut self, by: Person, application: ApplicationId) -> Result<Arc<Application>, Refusal> {
        self.world.run(DenyApplication { by, application, note: None })
    }

    fn state(&mut self, id: ApplicationId) -> ApplicationState {
        self.world.row::<Application>(id).state.clone()
    }

    /// The question to a second owner that it waits for.
    fn pending(&mut self, id: ApplicationId) -> Option<ApprovalId> {
        let now = self.world.now();
        self.world.row::<Application>(id).pending(now).map(|it| it.approval)
    }

    fn answer(&mut self, by: Person, approval: ApprovalId, choice: Choice) -> Result<(), Refusal> {
        self.world.run(DecideApproval::new(by, approval, choice)).map(drop)
    }

    fn agent(&mut self) -> Arc<Agent> {
        self.world.row(self.agent.agent)
    }

    /// The actors of the ledger's records of this kind.
    fn actors(&mut self, kind: &str) -> Vec<String> {
        let rows = self.world.rows();
        let entries = rows.iter().filter_map(|(.., it)| if let Record::Entry(it) = it { Some(it) } else { None });
        entries.filter(|it| &*it.kind == kind).map(|it| it.actor.to_string()).collect()
    }
}

fn fields(refusal: &Refusal) -> Vec<&str> {
    assert_eq!(refusal.kind(), Kind::InvalidApplication);
    refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect()
}

/// What is approved is done in the same commit, in the decider's name, and once.
#[test]
fn an_approved_application_is_the_deciders_own_change() {
    let mut office = office();
    let id = office.tier();
    assert_eq!(office.agent().tier, Tier::Standard);
    let done = office.approve(office.admin, id).unwrap();
    assert!(matches!(&done.application.state, ApplicationState::Approved(it) if it.by == office.admin.principal));
    assert_eq!(office.agent().tier, Tier::Trusted);
    let decider = office.actors("application.approved");
    assert!(office.actors("agent.changed").contains(&decider[0]));
    assert!(decider[0].contains(&office.admin.principal.to_string()), "{decider:?}");
    let asker = office.actors("application.created");
    assert!(asker[0].contains(&office.member.principal.to_string()), "{asker:?}");
    for again in [office.approve(office.admin, id).unwrap_err(), office.deny(office.admin, id).unwrap_err()] {
        assert_eq!((again.kind(), again.reason()), (Kind::NotAllowed, Some("approved")));
    }
    office.world.audit().assert_clean("after an approval");
}

/// An agent that was asked for acts for the person named, has its mandates and the key that the decider made.
#[test]
fn an_agent_can_be_asked_for() {
    let mut office = office();
    let email: Email = {
        let row: Arc<Principal> = office.world.row(office.member.principal);
        row.email.clone()
    };
    let wish = AgentWish {
        name: Label::parse("Buyer").unwrap(),
        email,
        tier: Tier::Restricted,
        sponsor: None,
        kill_owner: Some(office.admin.principal),
        mandates: vec![Wish::Whole(Box::new(terms(PAY)))],
    };
    let id = office.ask(office.member, Change::Agent(Box::new(wish))).unwrap().id;
    let made = office.approve(office.admin, id).unwrap().made.unwrap();
    assert_eq!((made.agent.principal, made.agent.tier), (office.member.principal, Tier::Restricted));
    assert_eq!((made.agent.mandates.len(), made.agent.keys.len()), (1, 1));
    office.world.audit().assert_clean("after an agent was made");
}

/// Where the decider's own change would be refused, so is the approval; the application waits on and nothing else happened.
#[test]
fn a_change_that_is_refused_leaves_the_application_waiting() {
    let mut office = office();
    let narrow = r#"{"name":"One shop","actions":["payment"],"merchants":{"allow":["shop.example.com"]},
        "limits":{"currency":"EUR","perAction":1}}"#;
    let (mut world, agent) = calm(&[narrow]);
    office.member = world.person(Role::Owner);
    office.admin = world.person(Role::Admin);
    (office.world, office.agent) = (world, agent);
    let narrow = office.agent().mandates[0].id;
    let wish =
        |confirm_broaden| MandateWish { agent: agent.agent, wish: Wish::Whole(Box::new(terms(PAY))), confirm_broaden };
    let id = office.ask(office.member, Change::Mandate(wish(false))).unwrap().id;
    assert_eq!(office.approve(office.admin, id).unwrap_err().kind(), Kind::ConfirmBroaden);
    assert_eq!(office.state(id), ApplicationState::Waiting);
    assert_eq!((office.agent().mandates.len(), office.actors("application.approved").len()), (1, 0));
    // Who decides says that it is meant, or whoever asked did.
    office.world.run(office.yes(office.admin, id, true)).unwrap();
    assert_eq!(office.agent().mandates.len(), 2);
    let id = office.ask(office.member, Change::Mandate(wish(true))).unwrap().id;
    office.approve(office.admin, id).unwrap();
    assert_eq!(office.agent().mandates.len(), 3);
    let change = TermsChange { merchants: Set::Clear, ..TermsChange::default() };
    let wish = MandateChangeWish { agent: agent.agent, mandate: narrow, change, paused: None, confirm_broaden: false };
    let id = office.ask(office.member, Change::ChangedMandate(Box::new(wish))).unwrap().id;
    assert_eq!(office.approve(office.admin, id).unwrap_err().kind(), Kind::ConfirmBroaden);
    office.world.run(office.yes(office.admin, id, true)).unwrap();
    assert!(matches!(office.state(id), ApplicationState::Approved(_)));
}

/// What somebody asked for is asked no more once they are removed; of what is about an agent that was removed, or was asked by
/// somebody who is no member, nothing is made, and it can be denied still.
#[test]
fn an_application_ends_with_who_asked() {
    let mut office = office();
    let (workspace, member, admin) = (office.world.workspace(), office.member, office.admin);
    let (first, decided) = (office.tier(), office.tier());
    office.deny(admin, decided).unwrap();
    let remove = RemoveMember { workspace, by: By::Person(admin), principal: member.principal };
    office.world.run(remove).unwrap();
    assert!(matches!(office.state(first), ApplicationState::Withdrawn { .. }), "{:?}", office.state(first));
    assert!(matches!(office.state(decided), ApplicationState::Denied(_)));
    assert_eq!(office.actors("application.withdrawn"), office.actors("member.removed"));
    assert!(office.world.row::<Principal>(member.principal).applications.is_empty());
    assert_eq!(office.approve(admin, first).unwrap_err().reason(), Some("withdrawn"));
    // As one of an earlier release stands, which ended nothing.
    office.world.edit::<Application>(first, |it| it.state = ApplicationState::Waiting);
    let refused = office.approve(admin, first).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.reason()),
        (Kind::NotAllowed, Some("whoever asked is a member no more: deny it"))
    );
    office.deny(admin, first).unwrap();
    let owner = office.world.owner();
    let change = Change::Tier { agent: office.agent.agent, tier: Tier::Trusted };
    let of_agent = office.ask(owner, change).unwrap().id;
    let agent = office.agent.agent;
    office.world.run(RemoveAgent { workspace, by: By::Program, agent }).unwrap();
    let refused = office.approve(admin, of_agent).unwrap_err();
    assert_eq!((refused.kind(), refused.reason()), (Kind::NotAllowed, Some("the agent was removed: deny it")));
    office.deny(admin, of_agent).unwrap();
    office.world.audit().assert_clean("after who asked was removed");
}

/// A tier that the agent has already is nothing to decide; whoever may not read the agent does not learn its tier by asking.
#[test]
fn a_tier_that_is_there_is_not_asked_for() {
    let mut office = office();
    let (member, agent) = (office.member, office.agent.agent);
    let named = |refused: Refusal| -> Vec<Option<String>> {
        refused.errors().iter().map(|it| it.field.as_deref().map(str::to_owned)).collect()
    };
    let refused = office.ask(member, Change::Tier { agent, tier: Tier::Standard }).unwrap_err();
    assert_eq!((refused.kind(), named(refused)), (Kind::InvalidApplication, vec![Some("change.tier".to_owned())]));
    let other = office.world.person(Role::Member);
    for tier in [Tier::Standard, Tier::Trusted] {
        let refused = office.ask(other, Change::Tier { agent, tier }).unwrap_err();
        assert_eq!(named(refused), [Some("target".to_owned())], "{tier:?}");
    }
    assert!(office.ask(member, Change::Tier { agent, tier: Tier::Trusted }).is_ok());
}

/// Nobody decides their own application, not even an owner; nobody without the right decides any. Of their own that is told
/// whatever their role, as no other role would let them; of others', and of none, the role is.
#[test]
fn nobody_decides_their_own() {
    let mut office = office();
    let owner = office.world.person(Role::Owner);
    let change = Change::Tier { agent: office.agent.agent, tier: Tier::Trusted };
    let own = office.ask(owner, change).unwrap().id;
    for refused in [office.approve(owner, own).unwrap_err(), office.deny(owner, own).unwrap_err()] {
        assert_eq!(refused.kind(), Kind::DutiesNever);
    }
    for refused in [office.approve(office.member, own).unwrap_err(), office.deny(office.member, own).unwrap_err()] {
        assert_eq!(refused.kind(), Kind::Forbidden);
    }
    let members = office.tier();
    for refused in
        [office.approve(office.member, members).unwrap_err(), office.deny(office.member, members).unwrap_err()]
    {
        assert_eq!(refused.kind(), Kind::DutiesNever);
    }
    assert_eq!(office.state(members), ApplicationState::Waiting);
    let none = ApplicationId::from_bits(7);
    assert_eq!(office.deny(office.member, none).unwrap_err().kind(), Kind::Forbidden);
    assert_eq!(office.deny(office.admin, none).unwrap_err().kind(), Kind::NotFound);
    assert_eq!((office.state(own), office.agent().tier), (ApplicationState::Waiting, Tier::Standard));
    let denied = office.deny(office.admin, own).unwrap();
    assert!(matches!(denied.state, ApplicationState::Denied(_)));
    assert_eq!((office.agent().tier, office.actors("application.denied").len()), (Tier::Standard, 1));
}

/// Whoever asked may take it back while it waits, and nobody else may; members read their own alone.
#[test]
fn one_takes_back_ones_own() {
    let mut office = office();
    let other = office.world.person(Role::Member);
    let application = office.tier();
    let (member, admin) = (office.member, office.admin);
    let withdraw = |office: &mut Office, by| office.world.run(WithdrawApplication { by, application });
    assert_eq!(withdraw(&mut office, other).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(withdraw(&mut office, admin).unwrap_err().kind(), Kind::Forbidden);
    withdraw(&mut office, member).unwrap();
    assert!(matches!(office.state(application), ApplicationState::Withdrawn { .. }));
    assert_eq!(office.actors("application.withdrawn").len(), 1);
    withdraw(&mut office, member).unwrap();
    assert_eq!(office.actors("application.withdrawn").len(), 1, "once");
    assert_eq!(office.approve(office.admin, application).unwrap_err().reason(), Some("withdrawn"));
}

/// After fourteen days without a decision it has expired, by the clock at once and by the timer in the ledger.
#[test]
fn an_application_expires_after_fourteen_days() {
    let mut office = office();
    let id = office.tier();
    office.world.advance(Span::millis(14 * 24 * 3_600_000 - 1));
    assert_eq!(office.state(id), ApplicationState::Waiting);
    office.world.advance(Span::millis(1));
    assert!(matches!(office.state(id), ApplicationState::Expired { .. }));
    assert_eq!(office.actors("application.expired"), [r#"{"kind":"policy"}"#]);
    assert_eq!(office.agent().tier, Tier::Standard);
}

/// Every fault is named under the path of the change's own body; agents that one may not read are not there.
#[test]
fn faults_are_named_under_the_change() {
    let mut office = office();
    let analyst = office.world.person(Role::Analyst);
    let other = office.world.person(Role::Member);
    let own = office.agent.agent;
    for (by, agent) in [(analyst, own), (other, own), (office.member, AgentId::from_bits(7))] {
        let refused = office.ask(by, Change::Tier { agent, tier: Tier::Trusted }).unwrap_err();
        assert_eq!(fields(&refused), ["target"]);
    }
    let nobody = svc_core::value::id::PrincipalId::from_bits(9);
    let late = terms(r#"{"name":"Late","actions":["payment"],"expiresAt":0}"#);
    let wish = AgentWish {
        name: Label::parse("Buyer").unwrap(),
        email: Email::parse("new@example.com").unwrap(),
        tier: Tier::Standard,
        sponsor: Some(nobody),
        kill_owner: Some(nobody),
        mandates: vec![Wish::Template("nothing".into()), Wish::Whole(Box::new(late))],
    };
    let refused = office.ask(office.member, Change::Agent(Box::new(wish))).unwrap_err();
    let named = fields(&refused);
    assert_eq!(named[..3], ["change.sponsor", "change.killOwner", "change.mandates.0.template"], "{named:?}");
    assert!(named[3..].iter().all(|it| it.starts_with("change.mandates.1.")) && named.len() > 3, "{named:?}");
    assert!(office.actors("application.created").is_empty());
}

fn to(person: Person, role: Role) -> Change {
    Change::Role(RoleWish { member: person.principal, role: Some(role), teams: None })
}

/// Another role is the decider's own change: an admin gives all but an owner's, and nobody gives themselves one.
#[test]
fn a_role_can_be_asked_for() {
    let mut office = office();
    let (member, admin) = (office.member, office.admin);
    let owner = office.world.person(Role::Owner);
    let id = office.ask(member, to(member, Role::Analyst)).unwrap().id;
    assert_eq!(office.role(member), Role::Member);
    office.approve(admin, id).unwrap();
    assert_eq!(office.role(member), Role::Analyst);
    let decider = office.actors("application.approved");
    assert_eq!(office.actors("member.changed"), decider);
    let id = office.ask(member, to(member, Role::Owner)).unwrap().id;
    assert_eq!(office.approve(admin, id).unwrap_err().kind(), Kind::Forbidden);
    assert_eq!((office.state(id), office.role(member)), (ApplicationState::Waiting, Role::Analyst));
    let asked = office.approve(owner, id).unwrap().asked.unwrap();
    assert_eq!((asked.is_waiting(), office.role(member)), (true, Role::Analyst), "a second owner is asked first");
    assert_eq!((office.state(id), office.pending(id)), (ApplicationState::Waiting, Some(asked.id)));
    office.world.audit().assert_clean("after roles were asked for");
}

/// Where the change takes a second owner's word, the application waits for it: their yes makes the change and ends it as approved by
/// the first, their no as denied by them. Meanwhile it is neither denied nor taken back.
#[test]
fn a_second_owners_word_decides_the_application() {
    let mut office = office();
    let (first, second) = (office.world.person(Role::Owner), office.world.person(Role::Owner));
    let (member, admin) = (office.member, office.admin);
    for (choice, role) in [(Choice::Deny, Role::Member), (Choice::Approve, Role::Owner)] {
        let id = office.ask(member, to(member, Role::Owner)).unwrap().id;
        let asked = office.approve(first, id).unwrap().asked.unwrap().id;
        assert_eq!(office.approve(first, id).unwrap_err().kind(), Kind::SecondOwnerRequired);
        let denied = office.deny(admin, id).unwrap_err();
        let withdrawn = office.world.run(WithdrawApplication { by: member, application: id }).unwrap_err();
        for refused in [denied, withdrawn] {
            assert_eq!(refused.kind(), Kind::NotAllowed);
            assert!(refused.reason().unwrap().contains("second owner"), "{refused:?}");
        }
        assert_eq!(office.pending(id), Some(asked));
        let before = office.actors("application.approved").len() + office.actors("application.denied").len();
        office.answer(second, asked, choice).unwrap();
        assert_eq!((office.role(member), office.pending(id)), (role, None));
        let (by, kind) = match office.state(id) {
            ApplicationState::Approved(it) => (it.by, "application.approved"),
            ApplicationState::Denied(it) => (it.by, "application.denied"),
            other => panic!("{other:?}"),
        };
        assert_eq!(by, if choice == Choice::Approve { first.principal } else { second.principal });
        assert!(office.actors(kind)[0].contains(&second.principal.to_string()));
        let after = office.actors("application.approved").len() + office.actors("application.denied").len();
        assert_eq!(after, before + 1);
    }
    office.world.audit().assert_clean("after a second owner's word");
}

/// Where no second owner answers, the application waits for anybody's decision again; one whose time would have been up meanwhile has
/// expired by then and not before.
#[test]
fn an_unanswered_second_owner_leaves_the_application_open() {
    let mut office = office();
    office.world.person(Role::Owner);
    let member = office.member;
    let ask = |office: &mut Office| office.ask(member, to(member, Role::Owner)).unwrap().id;
    let (id, late) = (ask(&mut office), ask(&mut office));
    // Sessions end with a day: whoever decides has come anew.
    let approve = |office: &mut Office, id| {
        let owner = office.world.person(Role::Owner);
        office.approve(owner, id).unwrap().asked.unwrap().id
    };
    let asked = approve(&mut office, id);
    office.world.advance(Span::hours(24));
    assert_eq!((office.state(id), office.pending(id)), (ApplicationState::Waiting, None));
    assert_ne!(approve(&mut office, id), asked, "it is asked anew");
    office.world.advance(Span::hours(24));
    let admin = office.world.person(Role::Admin);
    assert!(matches!(office.deny(admin, id).unwrap().state, ApplicationState::Denied(_)));
    office.world.advance(Span::hours(12 * 24 - 1));
    let asked = approve(&mut office, late);
    office.world.advance(Span::hours(23));
    assert_eq!((office.state(late), office.pending(late)), (ApplicationState::Waiting, Some(asked)));
    office.world.advance(Span::hours(1));
    assert!(matches!(office.state(late), ApplicationState::Expired { .. }));
    assert_eq!((office.role(member), office.actors("application.expired").len()), (Role::Member, 1));
    office.world.audit().assert_clean("after nobody answered");
}

/// Two applications for one change wait for one answer, and both end with it.
#[test]
fn one_answer_ends_every_application_that_waits_for_it() {
    let mut office = office();
    let (first, second) = (office.world.person(Role::Owner), office.world.person(Role::Owner));
    let (member, admin) = (office.member, office.admin);
    let own = office.ask(member, to(member, Role::Owner)).unwrap().id;
    let others = office.ask(admin, to(member, Role::Owner)).unwrap().id;
    let asked = office.approve(first, own).unwrap().asked.unwrap().id;
    assert_eq!(office.approve(second, others).unwrap().asked.unwrap().id, asked);
    office.answer(second, asked, Choice::Approve).unwrap();
    for (id, by) in [(own, first), (others, second)] {
        assert!(matches!(office.state(id), ApplicationState::Approved(it) if it.by == by.principal));
    }
    office.world.audit().assert_clean("after one answer to two");
}

/// The teams that were asked for with an owner's role come with the second owner's yes, but for one that was removed meanwhile.
#[test]
fn teams_come_with_the_second_owners_yes() {
    let mut office = office();
    let (first, second) = (office.world.person(Role::Owner), office.world.person(Role::Owner));
    let (workspace, member) = (office.world.workspace(), office.member);
    let mut team = |name: &str| {
        let name = Some(Label::parse(name).unwrap());
        let keep = KeepTeam { workspace, by: By::Program, team: None, name, owner: None, members: None };
        office.world.run(keep).unwrap().id
    };
    let (stays, goes) = (team("Accounts"), team("Sales"));
    let wish = RoleWish { member: member.principal, role: Some(Role::Owner), teams: Some(vec![stays, goes]) };
    let id = office.ask(member, Change::Role(wish)).unwrap().id;
    let asked = office.approve(first, id).unwrap().asked.unwrap().id;
    office.world.run(RemoveTeam { workspace, by: By::Program, team: goes }).unwrap();
    office.answer(second, asked, Choice::Approve).unwrap();
    let row: Arc<Principal> = office.world.row(member.principal);
    let membership = row.membership().unwrap();
    assert_eq!((membership.role, &membership.teams[..]), (Role::Owner, &[stays][..]));
    office.world.audit().assert_clean("after teams came with a role");
}

/// One asks for oneself, and for another where one may read who there is.
#[test]
fn a_role_is_asked_for_whom_one_may_read() {
    let mut office = office();
    let (member, admin) = (office.member, office.admin);
    let auditor = office.world.person(Role::Auditor);
    let refused = office.ask(member, to(admin, Role::Member)).unwrap_err();
    assert_eq!(fields(&refused), ["target"]);
    office.ask(auditor, to(member, Role::Analyst)).unwrap();
    let refused = office.ask(member, to(member, Role::Member)).unwrap_err();
    assert_eq!(fields(&refused), ["change.role"]);
    let nothing = RoleWish { member: member.principal, role: None, teams: None };
    assert_eq!(fields(&office.ask(member, Change::Role(nothing.clone())).unwrap_err()), ["change"]);
    let teams = Some(vec![svc_core::value::id::TeamId::from_bits(5)]);
    let refused = office.ask(member, Change::Role(RoleWish { teams, ..nothing })).unwrap_err();
    assert_eq!(fields(&refused), ["change.teamIds.0"]);
}

fn change_of(office: &mut Office, change: TermsChange) -> (MandateId, Change) {
    let agent = office.agent();
    let mandate = agent.mandates[0].id;
    let wish = MandateChangeWish { agent: agent.id, mandate, change, paused: None, confirm_broaden: false };
    (mandate, Change::ChangedMandate(Box::new(wish)))
}

/// A changed mandate is the decider's next version; where a period changes, what was done in it is counted first.
#[test]
fn a_change_of_a_mandate_can_be_asked_for() {
    let mut office = office();
    let (member, admin) = (office.member, office.admin);
    let per_period = PerPeriod { amount: 90_000, period: Period::Month };
    let limits = Set::To(LimitsChange { per_period: Set::To(per_period), ..LimitsChange::default() });
    let (mandate, change) = change_of(&mut office, TermsChange { limits, ..TermsChange::default() });
    let application = office.ask(member, change).unwrap().id;
    let mut approve = ApproveApplication {
        by: admin,
        application,
        note: None,
        confirm_broaden: false,
        key: NewKey::of("unused"),
        plans: Plans::default(),
        counted: None,
    };
    let uncounted = office.world.run(approve.clone()).unwrap_err();
    assert_eq!(uncounted, Refusal::not_ready(), "its actions are not counted yet");
    assert_eq!(office.state(application), ApplicationState::Waiting);
    approve.counted = office.world.engine().read(|scope| plan(scope, &approve)).unwrap();
    assert!(approve.counted.is_some());
    office.world.run(approve).unwrap();
    let second: Arc<Mandate> = office.world.row(MandateVersionId { mandate, version: 2 });
    assert_eq!(second.limits().per_period.as_ref().map(|it| it.amount), Some(90_000));
    assert!(format!("{:?}", second.created_by).contains(&format!("{:?}", admin.principal)));
    assert_eq!(office.actors("mandate.changed"), office.actors("application.approved"));
    let (_, nothing) = change_of(&mut office, TermsChange::default());
    assert_eq!(fields(&office.ask(member, nothing).unwrap_err()), ["change"]);
    let other = office.world.person(Role::Analyst);
    let name = Some(Label::parse("Else").unwrap());
    let (_, hidden) = change_of(&mut office, TermsChange { name, ..TermsChange::default() });
    assert_eq!(fields(&office.ask(other, hidden).unwrap_err()), ["target"]);
    office.world.audit().assert_clean("after a mandate changed");
}

/// One person has so many applications waiting and no more; one that was taken back or decided makes room, and so does time.
#[test]
fn one_person_has_so_many_applications_waiting() {
    let mut office = office();
    let mut made: Vec<_> = (0..APPLICATIONS_WAITING_MAX).map(|_| office.tier()).collect();
    let agent = office.agent.agent;
    let change = || Change::Tier { agent, tier: Tier::Trusted };
    let (member, admin) = (office.member, office.admin);
    for room in 0..2 {
        let refused = office.ask(member, change()).unwrap_err();
        assert_eq!((refused.kind(), refused.errors().len()), (Kind::NotAllowed, 0));
        let first = made.remove(0);
        if room == 0 {
            office.world.run(WithdrawApplication { by: member, application: first }).unwrap();
        } else {
            office.deny(admin, first).unwrap();
        }
        made.push(office.tier());
    }
    assert_eq!(office.ask(member, change()).unwrap_err().kind(), Kind::NotAllowed);
    office.ask(admin, change()).unwrap();
    let now = office.world.now();
    office.world.edit::<Application>(made[7], |it| it.expires_at = now);
    office.tier();
    let applications = office.world.row::<Principal>(member.principal).applications.clone();
    assert_eq!((applications.len(), applications.contains(&made[7])), (APPLICATIONS_WAITING_MAX, false));
    office.world.audit();
}
