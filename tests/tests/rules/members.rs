//! Members: who may make whom what, and that a workspace always has an owner.

use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::evidence::erase::{Erase, Target};
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gateway::budgets::{CreateBudget, RemoveBudget};
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey, own_key};
use svc_core::rules::people::leave::PassAgent;
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::members::{ChangeMember, InviteMember, MailedLink, MemberDone, RemoveMember};
use svc_core::rules::people::sign_in::{Shown, StartSession};
use svc_core::rules::people::teams::{KeepTeam, RemoveTeam};
use svc_core::rules::read::check_key;
use svc_core::state::edge::{IntegrationKind, Job, News, Work};
use svc_core::state::gate::{Agent, Approval, ApprovalState, ApprovalSubject};
use svc_core::state::gateway::{BudgetPeriod, BudgetScope, Ladder};
use svc_core::state::people::{
    Account, Credential, KeyScope, LINK_LIFE, MemberState, Principal, Role, SignInLink, Team, Workspace,
};
use svc_core::store::Record;
use svc_core::testing::people;
use svc_core::testing::world::World;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, ApprovalId, PrincipalId};
use svc_core::value::text::{Email, Label};
use svc_core::value::{MicroUsd, Span};

/// A world with its first owner and another one, both signed in.
fn owners() -> (World, Person, Person) {
    let mut world = World::new();
    let (workspace, now) = (world.workspace(), world.now());
    let first = people::sign_in_owner(world.engine().store(), workspace, 1, now);
    let second = people::sign_in(world.engine().store(), workspace, Role::Owner, 2, now);
    (world, first, second)
}

fn remove(world: &mut World, by: Person, principal: PrincipalId) -> Result<MemberDone, Refusal> {
    world.run(RemoveMember { workspace: by.workspace, by: By::Person(by), principal })
}

fn asked(done: Result<MemberDone, Refusal>) -> ApprovalId {
    if let MemberDone::Asked(approval) = done.unwrap() { approval.id } else { panic!("it was done at once") }
}

fn approve(by: Person, approval: ApprovalId) -> DecideApproval {
    DecideApproval::new(by, approval, Choice::Approve)
}

/// Two owners who remove each other at once: the second agreement finds that who asked for it is an owner no more.
#[test]
fn two_owners_who_remove_each_other_leave_one() {
    let (mut world, first, second) = owners();
    let of_second = asked(remove(&mut world, first, second.principal));
    let of_first = asked(remove(&mut world, second, first.principal));
    let workspace = world.workspace();
    world.run(approve(second, of_second)).unwrap();
    assert_eq!(world.row::<Workspace>(workspace).owners, [first.principal]);
    assert_eq!(world.run(approve(first, of_first)).unwrap_err().kind(), Kind::NotAllowed);
    let alone = remove(&mut world, first, first.principal).unwrap_err();
    assert_eq!((alone.kind(), alone.message()), (Kind::SecondOwnerRequired, "the last owner cannot leave"));
    let role = Some(Role::Admin);
    let (by, principal) = (By::Person(first), first.principal);
    let demoted = world.run(ChangeMember { workspace, by, principal, role, teams: None });
    assert_eq!(demoted.unwrap_err().kind(), Kind::SecondOwnerRequired);
    assert_eq!(world.row::<Workspace>(workspace).owners, [first.principal]);
    assert!(world.ledger().contains("member.removed"));
    world.audit();
}

/// An invited owner counts from the first sign-in on: until then the last owner cannot leave.
#[test]
fn an_invited_owner_lets_nobody_leave_yet() {
    let mut world = World::new();
    let (workspace, now) = (world.workspace(), world.now());
    let owner = people::sign_in_owner(world.engine().store(), workspace, 1, now);
    let invite = InviteMember {
        workspace,
        by: By::Person(owner),
        email: Email::parse("next@example.com").unwrap(),
        name: None,
        role: Role::Owner,
        teams: None,
        token: Digest::of("link"),
        mailed: None,
    };
    let MemberDone::Done { linked, .. } = world.run(invite).unwrap() else { panic!("one owner asks nobody") };
    assert!(linked);
    assert_eq!(world.row::<Workspace>(workspace).owners, [owner.principal]);
    assert_eq!(remove(&mut world, owner, owner.principal).unwrap_err().kind(), Kind::SecondOwnerRequired);
    world.audit();
}

/// Who is removed keeps no key, and a key that was made for them stays void when they are invited anew.
#[test]
fn keys_end_with_the_membership() {
    let (mut world, first, _) = owners();
    let (workspace, now) = (world.workspace(), world.now());
    let member = people::sign_in(world.engine().store(), workspace, Role::Member, 3, now);
    let key = NewKey::of("ask_members_own_key");
    let make = CreateKey::new(workspace, By::Person(first), KeyScope::Inference, key);
    world.run(CreateKey { principal: Some(member.principal), ..make }).unwrap();
    let digest = Digest::of("ask_members_own_key");
    assert!(world.engine().read(|scope| check_key(scope, &digest).map(drop)).is_ok());
    assert!(matches!(remove(&mut world, first, member.principal).unwrap(), MemberDone::Done { .. }));
    assert!(world.engine().read(|scope| check_key(scope, &digest).map(drop)).is_err());
    let email = world.row::<Principal>(member.principal).email.clone();
    let (by, role, token) = (By::Person(first), Role::Member, Digest::of("link"));
    let teams = None;
    world.run(InviteMember { workspace, by, email, name: None, role, teams, token, mailed: None }).unwrap();
    assert!(world.engine().read(|scope| check_key(scope, &digest).map(drop)).is_err());
    world.audit();
}

fn entrusted(world: &mut World, principal: PrincipalId, sponsor: Option<PrincipalId>) -> AgentId {
    let agent = world.agent().register().agent;
    world.edit::<Agent>(agent, |it| (it.principal, it.sponsor) = (principal, sponsor));
    agent
}

/// Agents of somebody who is removed stay active: one passes to its sponsor, who then reads and runs it; one without a sponsor
/// waits for an owner, and passes to whom the owner makes its sponsor. What was theirs is theirs no more.
#[test]
fn agents_of_who_leaves_pass_to_the_sponsor_or_wait_for_an_owner() {
    let (mut world, first, _) = owners();
    let (workspace, now) = (world.workspace(), world.now());
    let leaver = people::sign_in(world.engine().store(), workspace, Role::Member, 3, now);
    let sponsor = people::sign_in(world.engine().store(), workspace, Role::Member, 4, now);
    let passed = entrusted(&mut world, leaver.principal, Some(sponsor.principal));
    let orphan = entrusted(&mut world, leaver.principal, None);
    let own = entrusted(&mut world, leaver.principal, Some(leaver.principal));
    let too_soon = PassAgent { agent: passed, left: leaver.principal };
    world.run(too_soon).unwrap();
    assert_eq!(world.row::<Agent>(passed).principal, leaver.principal, "they are still there");
    remove(&mut world, first, leaver.principal).unwrap();
    world.advance(Span::seconds(1));
    assert_eq!(world.row::<Principal>(leaver.principal).following, None);
    let of = |world: &mut World, id: AgentId| world.row::<Agent>(id).principal;
    assert_eq!(of(&mut world, passed), sponsor.principal);
    assert_eq!((of(&mut world, orphan), of(&mut world, own)), (leaver.principal, leaver.principal));
    assert!([passed, orphan, own].iter().all(|it| world.row::<Agent>(*it).is_active()));
    let changed = format!(r#""new":{{"principalId":"{}"}}"#, sponsor.principal);
    assert!(world.ledger().contains(&changed), "{}", world.ledger());
    let entrust = |by: Person, agent: AgentId| ChangeAgent {
        workspace,
        by: By::Person(by),
        agent,
        name: None,
        tier: None,
        sponsor: Some(Some(sponsor.principal)),
        kill_owner: None,
    };
    assert_eq!(world.run(entrust(sponsor, orphan)).unwrap_err().kind(), Kind::Forbidden, "an owner names the sponsor");
    world.run(entrust(first, orphan)).unwrap();
    assert_eq!(of(&mut world, orphan), sponsor.principal);
    world.audit().assert_clean("after agents were passed on");
}

/// A sponsor of an agent whose principal is still there takes nobody's place; a key of who left says that it ended.
#[test]
fn keys_of_who_leaves_are_revoked() {
    let (mut world, first, _) = owners();
    let (workspace, now) = (world.workspace(), world.now());
    let leaver = people::sign_in(world.engine().store(), workspace, Role::Member, 3, now);
    let make = CreateKey::new(workspace, By::Person(first), KeyScope::Inference, NewKey::of("ask_theirs"));
    let theirs = world.run(CreateKey { principal: Some(leaver.principal), ..make }).unwrap().id;
    let make = CreateKey::new(workspace, By::Person(first), KeyScope::Inference, NewKey::of("ask_another"));
    let another = world.run(make).unwrap().id;
    let agent = entrusted(&mut world, first.principal, Some(leaver.principal));
    remove(&mut world, first, leaver.principal).unwrap();
    world.advance(Span::seconds(1));
    assert!(world.row::<Credential>(theirs).revoked_at.is_some());
    assert!(world.row::<Credential>(another).revoked_at.is_none());
    assert_eq!(world.row::<Agent>(agent).principal, first.principal);
    world.audit().assert_clean("after a key ended");
}

fn invite(world: &mut World, by: Person, email: &str) -> Result<MemberDone, Refusal> {
    let (email, token) = (Email::parse(email).unwrap(), Digest::of("link"));
    let (workspace, by, role, teams) = (by.workspace, By::Person(by), Role::Owner, None);
    world.run(InviteMember { workspace, by, email, name: None, role, teams, token, mailed: None })
}

/// An invitation's link lives an hour, as any does; inviting anew gives another while nobody has signed in by one.
#[test]
fn an_invitation_gives_a_link_of_an_hour_and_another() {
    let (mut world, first, _) = owners();
    let workspace = world.workspace();
    let invite = |world: &mut World, token: &str| {
        world.run(InviteMember {
            workspace,
            by: By::Person(first),
            email: Email::parse("new@example.com").unwrap(),
            name: None,
            role: Role::Member,
            teams: None,
            token: Digest::of(token),
            mailed: None,
        })
    };
    let mut links = Vec::new();
    for token in ["one", "two"] {
        let MemberDone::Done { principal, linked } = invite(&mut world, token).unwrap() else { panic!("no owner") };
        assert!(linked);
        let link = world.row::<Account>(principal.membership().unwrap().account).link.unwrap();
        assert_eq!(link, SignInLink::id_of(&Digest::of(token)));
        assert_eq!(world.row::<SignInLink>(link).expires_at, Some(world.now().plus(LINK_LIFE)));
        links.push(link);
        world.advance(Span::minutes(61));
        world.keep_signed_in(&first);
    }
    assert_ne!(links[0], links[1]);
    world.audit();
}

/// Nobody gets a link who is a member of nothing any more.
#[test]
fn who_was_removed_gets_no_link() {
    let (mut world, first, second) = owners();
    let email = world.row::<Account>(second.account).email.clone();
    let link = |world: &mut World, n: &str| {
        world.run(MakeLink { email: email.clone(), token: Digest::of(n), life: Some(LINK_LIFE) })
    };
    assert!(link(&mut world, "one").is_ok());
    let approval = asked(remove(&mut world, first, second.principal));
    world.run(approve(second, approval)).unwrap();
    assert_eq!(link(&mut world, "two").unwrap_err().kind(), Kind::NotFound);
    world.audit();
}

/// A question counts as none once whoever asked it is an owner no more: another owner asks one that can be agreed to.
#[test]
fn a_change_among_owners_is_asked_anew_where_who_asked_is_none() {
    let (mut world, first, second) = owners();
    let (workspace, now) = (world.workspace(), world.now());
    let third = people::sign_in(world.engine().store(), workspace, Role::Owner, 3, now);
    let fourth = people::sign_in(world.engine().store(), workspace, Role::Owner, 4, now);
    let stale = asked(remove(&mut world, first, fourth.principal));
    let demoted = asked(remove(&mut world, second, first.principal));
    world.run(approve(third, demoted)).unwrap();
    assert_eq!(world.run(approve(third, stale)).unwrap_err().kind(), Kind::NotAllowed);
    let anew = asked(remove(&mut world, second, fourth.principal));
    assert_ne!(anew, stale);
    world.run(approve(third, anew)).unwrap();
    assert_eq!(world.row::<Workspace>(workspace).owners, [second.principal, third.principal]);
}

/// So it does once whoever asked it was shut out where they sign in, also where they have come back.
#[test]
fn a_change_among_owners_is_asked_anew_where_who_asked_was_shut_out() {
    let (mut world, first, second) = owners();
    let (workspace, now) = (world.workspace(), world.now());
    let third = people::sign_in(world.engine().store(), workspace, Role::Owner, 3, now);
    let stale = asked(remove(&mut world, second, third.principal));
    world.advance(Span::seconds(1));
    let now = world.now();
    world.edit::<Principal>(second.principal, |it| it.member.as_mut().unwrap().shut_out_at = Some(now));
    world.advance(Span::seconds(1));
    assert_eq!(world.run(approve(first, stale)).unwrap_err().kind(), Kind::NotAllowed);
    let anew = asked(remove(&mut world, second, third.principal));
    assert_ne!(anew, stale);
    world.run(approve(first, anew)).unwrap();
    assert_eq!(world.row::<Workspace>(workspace).owners, [first.principal, second.principal]);
}

/// A team that was removed while an owner's invitation waited keeps nobody out.
#[test]
fn a_team_that_is_gone_keeps_no_owner_out() {
    let (mut world, first, second) = owners();
    let (workspace, by) = (first.workspace, || By::Person(first));
    let name = Some(Label::parse("Accounts").unwrap());
    let id = world.run(KeepTeam { workspace, by: by(), team: None, name, owner: None, members: None }).unwrap().id;
    let (email, token) = (Email::parse("third@example.com").unwrap(), Digest::of("link"));
    let invite = InviteMember {
        workspace,
        by: by(),
        email,
        name: None,
        role: Role::Owner,
        teams: Some(vec![id]),
        token,
        mailed: None,
    };
    let approval = asked(world.run(invite));
    world.run(RemoveTeam { workspace, by: by(), team: id }).unwrap();
    world.run(approve(second, approval)).unwrap();
    let ApprovalSubject::Owner(of) = world.row::<Approval>(approval).subject.clone() else { panic!("another kind") };
    let invited = world.row::<Principal>(of.principal);
    assert_eq!(invited.membership().unwrap().teams, []);
}

/// A team stays as long as a budget is over it or a key in force is bound to it; one that ended with whoever it counted for is in
/// force no more. The ledger says of a change what differs, and of names a commitment.
#[test]
fn a_team_that_is_in_use_stays() {
    let (mut world, first, _) = owners();
    let (workspace, by) = (first.workspace, || By::Person(first));
    let label = |text: &str| Some(Label::parse(text).unwrap());
    let keep = |team, name| KeepTeam { workspace, by: by(), team, name, owner: None, members: None };
    let team = world.run(keep(None, label("Accounts"))).unwrap().id;
    world.run(keep(Some(team), label("Accounting"))).unwrap();
    let rows = world.rows();
    let told = rows.iter().find_map(|(_, _, it)| match it {
        Record::Entry(it) if &*it.kind == "team.changed" => Some(it.data.to_string()),
        _ => None,
    });
    let told = told.unwrap();
    let commits = [r#"{"new":{"name":{"commit":""#, r#""old":{"name":{"commit":""#].map(|it| told.contains(it));
    assert_eq!(commits, [true; 2], "{told}");
    let new = |text: &str| CreateKey::new(workspace, By::Program, KeyScope::Inference, NewKey::of(text));
    let key = world.run(CreateKey { team: Some(team), ..new("ask_1") }).unwrap().id;
    let leaver = world.person(Role::Member);
    let theirs = CreateKey { team: Some(team), principal: Some(leaver.principal), ..new("ask_2") };
    world.run(theirs).unwrap();
    let gone = || RemoveTeam { workspace, by: by(), team };
    assert_eq!(world.run(gone()).unwrap_err().reason(), Some("a key is bound to it"));
    world.run(RevokeKey { workspace, by: by(), credential: key }).unwrap();
    assert_eq!(world.run(gone()).unwrap_err().reason(), Some("a key is bound to it"));
    remove(&mut world, first, leaver.principal).unwrap();
    let budget = CreateBudget {
        workspace,
        by: by(),
        scope: BudgetScope::Team(team),
        key: None,
        amount: MicroUsd::new(5),
        period: BudgetPeriod::Day,
        ladder: Ladder::default(),
        owner: None,
    };
    let budget = world.run(budget).unwrap().budget.id;
    assert_eq!(world.run(gone()).unwrap_err().reason(), Some("a budget is over it"));
    world.run(RemoveBudget { workspace, by: by(), budget }).unwrap();
    world.run(gone()).unwrap();
    assert!(!world.ledger().contains("Account"), "{}", world.ledger());
}

/// A team whose owner is removed has none until somebody names another, and the ledger says so; another's stays theirs.
#[test]
fn a_team_of_who_leaves_has_no_owner() {
    let (mut world, first, _) = owners();
    let (workspace, by) = (first.workspace, || By::Person(first));
    let leaver = world.person(Role::Member);
    let keep = |name: &str, owner: PrincipalId| KeepTeam {
        workspace,
        by: by(),
        team: None,
        name: Some(Label::parse(name).unwrap()),
        owner: Some(Some(owner)),
        members: None,
    };
    let theirs = world.run(keep("Theirs", leaver.principal)).unwrap().id;
    let other = world.run(keep("Other", first.principal)).unwrap().id;
    remove(&mut world, first, leaver.principal).unwrap();
    world.advance(Span::seconds(1));
    assert_eq!([theirs, other].map(|it| world.row::<Team>(it).owner), [None, Some(first.principal)]);
    let changed = format!(r#""new":{{"owner":null}},"old":{{"owner":"{}"}}"#, leaver.principal);
    assert!(world.ledger().contains(&changed), "{}", world.ledger());
}

/// To a member, whose right is to their own agents' keys, any other key is not there: read or revoked, known or not.
#[test]
fn a_key_that_one_may_not_read_is_not_there() {
    let (mut world, first, _) = owners();
    let (workspace, member) = (first.workspace, world.person(Role::Member));
    let new = CreateKey::new(workspace, By::Program, KeyScope::Inference, NewKey::of("ask_1"));
    let known = world.run(new).unwrap().id;
    for credential in [known, Credential::id_of(&Digest::of("ask_2"))] {
        let by = By::Person(member);
        let read = world.engine().read(|scope| own_key(scope, &by, workspace, credential));
        assert!(matches!(read, Err(Failure::Refused(it)) if it.kind() == Kind::NotFound));
        assert_eq!(world.run(RevokeKey { workspace, by, credential }).unwrap_err().kind(), Kind::NotFound);
    }
}

/// An owner has one question about somebody: another one that they ask ends the first, though not what another owner asks; and whoever is
/// removed is asked about no more.
#[test]
fn questions_about_one_owner_do_not_pile_up() {
    let (mut world, first, second) = owners();
    let (workspace, now) = (world.workspace(), world.now());
    let third = people::sign_in(world.engine().store(), workspace, Role::Owner, 3, now).principal;
    let demote = |world: &mut World, by| {
        let (by, role) = (By::Person(by), Some(Role::Member));
        asked(world.run(ChangeMember { workspace, by, principal: third, role, teams: None }))
    };
    let mut last = asked(remove(&mut world, first, third));
    for number in 0..4 {
        let next = if number % 2 == 0 { demote(&mut world, first) } else { asked(remove(&mut world, first, third)) };
        let state = world.row::<Approval>(last).state.clone();
        assert!(matches!(state, ApprovalState::Denied { by: None, .. }), "{number}: {state:?}");
        assert!(world.row::<Approval>(next).is_waiting());
        last = next;
    }
    let others = demote(&mut world, second);
    assert!(world.row::<Approval>(last).is_waiting(), "it is not theirs to end");
    world.run(approve(second, last)).unwrap();
    assert!(world.row::<Principal>(third).membership().is_none());
    assert!(matches!(world.row::<Approval>(last).state, ApprovalState::Approved { .. }));
    assert!(matches!(world.row::<Approval>(others).state, ApprovalState::Denied { by: None, .. }));
    world.audit().assert_clean("after questions were ended");
}

/// Where there are two owners, one who invites another asks the second; nobody is invited before they agree.
#[test]
fn an_owner_is_invited_with_a_second_owners_word() {
    let (mut world, first, second) = owners();
    let approval = asked(invite(&mut world, first, "third@example.com"));
    let ApprovalSubject::Owner(of) = world.row::<Approval>(approval).subject.clone() else { panic!("another kind") };
    assert!(world.row::<Principal>(of.principal).membership().is_none());
    assert_eq!(invite(&mut world, first, "third@example.com").unwrap_err().kind(), Kind::SecondOwnerRequired);
    assert_eq!(asked(invite(&mut world, second, "third@example.com")), approval, "the question that waits is the one");
    assert_eq!(world.run(approve(first, approval)).unwrap_err().kind(), Kind::SecondOwnerRequired);
    world.run(approve(second, approval)).unwrap();
    let invited = world.row::<Principal>(of.principal);
    let member = invited.membership().unwrap();
    assert_eq!((member.role, member.state), (Role::Owner, MemberState::Invited));
    assert_eq!((member.invited_by, invited.owner_invite), (Some(first.principal), None));
    assert_eq!(world.row::<Workspace>(first.workspace).owners.len(), 2, "an owner counts from the first sign-in on");
    let again = invite(&mut world, first, "third@example.com").unwrap();
    assert!(matches!(again, MemberDone::Done { linked: true, .. }), "a link is handed out without another word");
    world.audit().assert_clean("after an owner was invited");
}

/// Whoever is invited as an owner is mailed with the second owner's yes, with a link where they have never signed in; and not without
/// a server that mails, nor of a no. Who was invited before and is made an owner is mailed anew.
#[test]
fn an_owner_is_mailed_with_the_second_owners_word() {
    let (mut world, first, second) = owners();
    let link = |token: &str| Some(MailedLink { token: Digest::of(token), sealed: token.into() });
    let mails = |world: &mut World| -> Vec<(Option<PrincipalId>, Option<Box<str>>)> {
        let rows = world.rows();
        let jobs = rows.iter().filter_map(|(.., it)| if let Record::Job(it) = it { Some(it) } else { None });
        let of = |it: &std::sync::Arc<Job>| match &it.work {
            Work::Message { news: News::Invited { token, .. }, over: IntegrationKind::Mail, to } => {
                Some((*to, token.clone()))
            }
            _ => None,
        };
        jobs.filter_map(of).collect()
    };
    let third = asked(invite(&mut world, first, "third@example.com"));
    world.run(DecideApproval { mailed: link("one"), ..approve(second, third) }).unwrap();
    let ApprovalSubject::Owner(of) = world.row::<Approval>(third).subject.clone() else { panic!("another kind") };
    let mailed = mails(&mut world);
    assert_eq!(mailed, [(Some(of.principal), Some("one".into()))]);
    let account = world.row::<Principal>(of.principal).membership().unwrap().account;
    let in_force = world.row::<Account>(account).link.unwrap();
    assert_eq!(in_force, SignInLink::id_of(&Digest::of("one")), "the link signs them in");

    let fourth = asked(invite(&mut world, first, "fourth@example.com"));
    world.run(approve(second, fourth)).unwrap();
    let fifth = asked(invite(&mut world, first, "fifth@example.com"));
    let no = DecideApproval::new(second, fifth, Choice::Deny);
    world.run(DecideApproval { mailed: link("two"), ..no }).unwrap();
    assert_eq!(mails(&mut world), mailed);

    let (workspace, email) = (first.workspace, Email::parse("sixth@example.com").unwrap());
    let (by, role, token, teams) = (By::Person(first), Role::Member, Digest::of("three"), None);
    let sixth = InviteMember { workspace, by, email, name: None, role, teams, token, mailed: None };
    let MemberDone::Done { principal, .. } = world.run(sixth).unwrap() else { panic!("a member takes nobody's word") };
    let (by, role) = (By::Person(first), Some(Role::Owner));
    let change = ChangeMember { workspace, by, principal: principal.id, role, teams: None };
    let made = asked(world.run(change));
    world.run(DecideApproval { mailed: link("four"), ..approve(second, made) }).unwrap();
    assert!(mails(&mut world).contains(&(Some(principal.id), Some("four".into()))));
    world.audit().assert_clean("after owners were mailed");
}

/// Whoever is erased before a second owner agreed is not invited any more: the question ends with the erasure, and one that was
/// left over by an older release is refused.
#[test]
fn an_erased_person_is_not_invited() {
    let (mut world, first, second) = owners();
    let approval = asked(invite(&mut world, first, "third@example.com"));
    let ApprovalSubject::Owner(of) = world.row::<Approval>(approval).subject.clone() else { panic!("another kind") };
    let workspace = world.workspace();
    let erase = Erase::new(workspace, By::Program, Target::Principal(of.principal));
    world.run(erase).unwrap();
    let late = world.run(approve(second, approval)).unwrap_err();
    assert_eq!((late.kind(), late.reason()), (Kind::NotAllowed, Some("denied")));
    world.edit::<Approval>(approval, |it| it.state = ApprovalState::Waiting);
    let left_over = world.run(approve(second, approval)).unwrap_err();
    assert_eq!(left_over.kind(), Kind::NotAllowed);
    let erased = world.row::<Principal>(of.principal);
    assert_eq!((erased.owner_invite, erased.membership().is_none()), (None, true));
    assert_ne!(
        asked(invite(&mut world, first, "third@example.com")),
        approval,
        "the address is free for a new question"
    );
}

/// An invitation into this role and no team, by a link.
pub(super) fn invitation(by: Person, email: &str, role: Role, token: &str) -> InviteMember {
    InviteMember {
        workspace: by.workspace,
        by: By::Person(by),
        email: Email::parse(email).unwrap(),
        name: None,
        role,
        teams: None,
        token: Digest::of(token),
        mailed: None,
    }
}

/// Whoever invited somebody as less holds their link, and does not come in by it as the owner whom others have made of them: they are
/// invited once more, by an owner.
#[test]
fn a_link_of_before_lets_no_owner_in() {
    let mut world = World::new();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let workspace = world.workspace();
    let invite = |by, role, token: &str| invitation(by, "next@example.com", role, token);
    let come = |world: &mut World, token: &str| {
        let (cookie, pending) = (Digest::of("cookie"), Digest::of("pending"));
        world.run(StartSession { shown: Shown::Link(Digest::of(token)), cookie, pending }).map_err(|it| it.kind())
    };
    for (turn, again) in [false, true].into_iter().enumerate() {
        let first = format!("admin {turn}");
        let MemberDone::Done { principal, .. } = world.run(invite(admin, Role::Member, &first)).unwrap() else {
            panic!("nobody is asked")
        };
        if again {
            world.run(invite(owner, Role::Owner, "owner")).unwrap();
        } else {
            let (by, principal) = (By::Person(owner), principal.id);
            let role = Some(Role::Owner);
            world.run(ChangeMember { workspace, by, principal, role, teams: None }).unwrap();
        }
        assert_eq!(come(&mut world, &first).map(drop), Err(Kind::Unauthenticated));
        assert!(world.run(invite(admin, Role::Owner, "no")).is_err());
        if !again {
            world.run(RemoveMember { workspace, by: By::Program, principal: principal.id }).unwrap();
        }
    }
    assert!(come(&mut world, "owner").is_ok());
    world.audit();
}
