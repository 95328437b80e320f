//! What persons and machines change of agents, mandates, keys and tokens, and what the ledger says of it.

use std::net::{IpAddr, Ipv4Addr};

use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::by::{By, TokenCaller, check_token};
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::rules::people::mandates::{ChangeMandate, Content, GrantMandate, Held, RevokeMandate};
use svc_core::rules::people::recount;
use svc_core::rules::people::register_agent::{RegisterAgent, RemoveAgent};
use svc_core::rules::people::settings::{ChangeSettings, SettingsChange};
use svc_core::rules::people::tokens::{CreateToken, RevokeToken, is_void};
use svc_core::state::evidence::Disclosure;
use svc_core::state::gate::{
    Action, ActionPattern, Activity, Agent, Code, Count, LimitsChange, OutcomeStatus, PerPeriod, Set, TermsChange,
    Tier, Verb,
};
use svc_core::state::people::{KeyScope, Member, MemberState, Plan, Plans, Principal, Role, ServiceToken, TokenScope};
use svc_core::store::{Range, Record, Row as _, Store as _};
use svc_core::testing::World;
use svc_core::testing::world::{payment, terms};
use svc_core::value::digest::Digest;
use svc_core::value::id::{MandateId, WorkspaceId};
use svc_core::value::period::Period;
use svc_core::value::text::Label;
use svc_core::value::{Span, Timestamp};

use super::{PAY, ask, calm};

fn label(text: &str) -> Label {
    Label::parse(text).unwrap()
}

fn new_key(n: u32) -> NewKey {
    NewKey::of(&format!("ask_{n:043}"))
}

fn mandate_of(world: &mut World, agent: &Caller) -> MandateId {
    world.row::<Agent>(agent.agent).mandates[0].id
}

fn change(world: &mut World, agent: &Caller, by: By, limits: LimitsChange) -> ChangeMandate {
    let mandate = mandate_of(world, agent);
    ChangeMandate {
        workspace: world.workspace(),
        by,
        agent: agent.agent,
        mandate,
        change: TermsChange { limits: Set::To(limits), ..TermsChange::default() },
        paused: None,
        confirm_broaden: false,
        counted: None,
    }
}

/// Counts the mandate's own actions as a server does, one action a scan, then changes it.
fn counted(world: &mut World, mut change: ChangeMandate) -> Result<Held, Refusal> {
    let uncounted = world.run(change.clone()).map(|it| it.mandate.id);
    assert_eq!(uncounted, Err(Refusal::not_ready()), "a changed period waits for its count");
    let planned = world.engine().read(|scope| recount::plan(scope, &change)).unwrap();
    let mut sums = planned.expect("a period changes");
    let mut after = None;
    loop {
        let range = Range { limit: 1, ..sums.range(after) };
        let found = world.engine().store().scan(&range).unwrap();
        let Some(last) = found.last() else { break };
        sums.add(last.row.record.as_ref().and_then(Action::peel).unwrap());
        after = Some((last.order, last.row.key));
    }
    change.counted = Some(sums);
    world.run(change)
}

/// The kinds and data of the records that `run` leaves, without where the ledger's checkpoints stand.
fn records(world: &mut World, run: impl FnOnce(&mut World)) -> Vec<String> {
    let before: Vec<String> = world.ledger().lines().map(str::to_owned).collect();
    run(world);
    world.ledger().lines().map(str::to_owned).filter(|it| !before.contains(it)).collect()
}

/// A changed period begins with what the running new one adds up to: what was settled, what is open, what lapsed. It is
/// counted before the change, and counted again where the agent acted in between.
#[test]
fn a_changed_period_begins_with_what_it_adds_up_to() {
    for (period, left) in [(Period::Month, 400), (Period::Day, 500)] {
        let (mut world, agent) = calm(&[PAY]);
        let owner = world.owner();
        assert_eq!(ask(&mut world, &agent, payment(100, "EUR", "a.example")).0, Verb::Allow);
        world.advance(Span::hours(25));
        world.keep_signed_in(&owner);
        let settled = world.authorize(&agent, payment(450, "EUR", "b.example"));
        world.settle(&agent, settled.id(), OutcomeStatus::Completed, Some(300));
        let cancelled = world.authorize(&agent, payment(900, "EUR", "c.example"));
        world.settle(&agent, cancelled.id(), OutcomeStatus::Cancelled, None);
        let limits = LimitsChange {
            per_period: Set::To(PerPeriod { amount: 1_000, period }),
            count: Set::To(Count { max: 5, period }),
            ..LimitsChange::default()
        };
        let change = change(&mut world, &agent, By::Person(owner), limits);
        // What was counted before the agent acted again is not taken.
        let early = world.engine().read(|scope| recount::plan(scope, &change)).unwrap();
        assert_eq!(ask(&mut world, &agent, payment(200, "EUR", "d.example")).0, Verb::Allow);
        let moved = world.run(ChangeMandate { counted: early, ..change.clone() });
        assert_eq!(moved.unwrap_err(), Refusal::not_ready());

        let held = counted(&mut world, change).unwrap();
        assert_eq!(held.mandate.id.version, 2);
        let (verb, why) = ask(&mut world, &agent, payment(left + 1, "EUR", "e.example"));
        assert_eq!((verb, why), (Verb::Deny, vec![Code::OverPeriodLimit]), "{period:?}");
        assert_eq!(ask(&mut world, &agent, payment(left - 1, "EUR", "f.example")).0, Verb::Allow, "{period:?}");
        let (verb, why) = ask(&mut world, &agent, payment(1, "EUR", "g.example"));
        match period {
            Period::Month => assert_eq!((verb, why), (Verb::Deny, vec![Code::OverCountLimit])),
            _ => assert_eq!((verb, why), (Verb::Allow, vec![])),
        }
        world.audit();
    }
}

/// What becomes of an action after a period began that counted it while it was open is in that period's sum: more, less or
/// nothing, though it holds nothing there.
#[test]
fn what_was_counted_while_open_is_set_right() {
    let asks = PAY.replace("\"perAction\":10000", "\"perAction\":10000,\"askAbove\":5000");
    let (mut world, agent) = calm(&[&asks]);
    let owner = world.owner();
    let more = world.authorize(&agent, payment(500, "EUR", "a.example")).id();
    let less = world.authorize(&agent, payment(600, "EUR", "b.example")).id();
    let none = world.authorize(&agent, payment(700, "EUR", "c.example")).id();
    let asked = world.authorize(&agent, payment(5_001, "EUR", "d.example"));
    assert_eq!(asked.verb(), Verb::Ask);
    let limits = LimitsChange {
        per_period: Set::To(PerPeriod { amount: 10_000, period: Period::Month }),
        count: Set::To(Count { max: 100, period: Period::Month }),
        ..LimitsChange::default()
    };
    let change = change(&mut world, &agent, By::Person(owner), limits);
    counted(&mut world, change).unwrap();
    let sums = |world: &mut World| {
        let row = world.row::<Activity>(agent.agent);
        (row.tallies[0].used(), row.tallies[0].count)
    };
    assert_eq!(sums(&mut world), (500 + 600 + 700 + 5_001, 4));
    world.settle(&agent, less, OutcomeStatus::Completed, Some(100));
    world.settle(&agent, none, OutcomeStatus::Cancelled, None);
    assert_eq!(sums(&mut world), (500 + 100 + 5_001, 4), "the count stays with what was allowed");
    world.advance(Span::hours(24 * 8));
    assert_eq!(sums(&mut world), (500 + 100, 3), "what nobody decided counts no more");
    world.audit();
    world.settle(&agent, more, OutcomeStatus::Completed, Some(9_000));
    assert_eq!(sums(&mut world), (9_000 + 100, 3), "more than was allowed fills the period");
    world.audit();
}

/// What is settled between the counting and the change is seen by the change: it counts anew.
#[test]
fn a_settlement_between_makes_a_period_count_anew() {
    let (mut world, agent) = calm(&[PAY]);
    let owner = world.owner();
    let open = world.authorize(&agent, payment(500, "EUR", "a.example")).id();
    let per_period = Set::To(PerPeriod { amount: 10_000, period: Period::Month });
    let change = change(&mut world, &agent, By::Person(owner), LimitsChange { per_period, ..LimitsChange::default() });
    let early = world.engine().read(|scope| recount::plan(scope, &change)).unwrap();
    world.settle(&agent, open, OutcomeStatus::Completed, Some(200));
    let moved = world.run(ChangeMandate { counted: early, ..change.clone() });
    assert_eq!(moved.unwrap_err(), Refusal::not_ready());
    counted(&mut world, change).unwrap();
    assert_eq!(world.row::<Activity>(agent.agent).tallies[0].used(), 200);
    world.audit();
}

/// Pausing, resuming and changing what is no period keep the sums as they are.
#[test]
fn a_pause_and_a_new_version_keep_the_sums() {
    let day = r#"{"name":"Day","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":1000,"period":"day"}}}"#;
    let (mut world, agent) = calm(&[day]);
    assert_eq!(ask(&mut world, &agent, payment(900, "EUR", "a.example")).0, Verb::Allow);
    let base = change(&mut world, &agent, By::Program, LimitsChange::default());
    for paused in [true, false] {
        let change = TermsChange::default();
        world.run(ChangeMandate { paused: Some(paused), change, ..base.clone() }).unwrap();
        let wanted = if paused { Code::OutsideMandate } else { Code::OverPeriodLimit };
        let shop = format!("{paused}.example");
        assert_eq!(ask(&mut world, &agent, payment(101, "EUR", &shop)).1, [wanted]);
    }
    let limits = LimitsChange {
        per_period: Set::To(PerPeriod { amount: 1_100, period: Period::Day }),
        ..LimitsChange::default()
    };
    let change = change(&mut world, &agent, By::Program, limits);
    assert_eq!(world.run(change).unwrap().mandate.id.version, 2);
    assert_eq!(ask(&mut world, &agent, payment(201, "EUR", "c.example")).1, [Code::OverPeriodLimit]);
    assert_eq!(ask(&mut world, &agent, payment(200, "EUR", "d.example")).0, Verb::Allow);
    world.audit();
}

/// A rename records both names, as commitments; other changes record the old and the new value of what differs.
#[test]
fn the_ledger_says_what_changed_of_an_agent() {
    let (mut world, agent) = calm(&[]);
    let owner = world.owner();
    let base = ChangeAgent {
        workspace: world.workspace(),
        by: By::Person(owner),
        agent: agent.agent,
        name: Some(label("Shopper of Ann")),
        tier: None,
        sponsor: None,
        kill_owner: None,
    };
    let renamed = records(&mut world, |world| drop(world.run(base.clone()).unwrap()));
    let [line] = renamed.as_slice() else { panic!("{renamed:?}") };
    assert!(line.starts_with("agent.renamed ") && line.contains(&owner.principal.to_string()), "{line}");
    assert!(line.contains(r#""new":{"commit":""#) && line.contains(r#""old":{"commit":""#), "{line}");
    let commits: Vec<&str> = line.split(r#"{"commit":""#).skip(1).map(|it| &it[..64]).collect();
    assert!(commits.len() == 2 && commits[0] != commits[1] && !line.contains("Shopper"), "{line}");
    let rows = world.rows();
    let texts = rows.iter().filter_map(|(.., it)| Disclosure::peel(it)).find(|it| it.texts.len() == 2).unwrap();
    let told: Vec<(&str, &str)> = texts.texts.iter().map(|(at, text)| (&**at, &**text)).collect();
    assert_eq!(told, [("old", "Agent"), ("new", "Shopper of Ann")]);
    let same = records(&mut world, |world| drop(world.run(base.clone()).unwrap()));
    assert!(same.is_empty(), "what is as it was is no change: {same:?}");

    let wish =
        ChangeAgent { name: None, tier: Some(Tier::Trusted), sponsor: Some(Some(owner.principal)), ..base.clone() };
    let changed = records(&mut world, |world| drop(world.run(wish).unwrap()));
    let [line] = changed.as_slice() else { panic!("{changed:?}") };
    let sponsor = owner.principal;
    let data = format!(
        r#"{{"agentId":"{}","new":{{"sponsor":"{sponsor}","tier":"trusted"}},"old":{{"sponsor":null,"tier":"standard"}}}}"#,
        agent.agent
    );
    assert!(line.starts_with("agent.changed ") && line.ends_with(&data), "{line}");
    let removal = RemoveAgent { workspace: world.workspace(), by: By::Person(owner), agent: agent.agent };
    let removed = records(&mut world, |world| drop(world.run(removal).unwrap()));
    assert!(removed.len() == 1 && removed[0].starts_with("agent.removed "), "{removed:?}");
    world.audit();
}

/// A mandate's making, each change and its end leave a record each, with who and which version.
#[test]
fn the_ledger_says_what_became_of_a_mandate() {
    let (mut world, agent) = calm(&[PAY]);
    let owner = world.owner();
    let (workspace, by) = (world.workspace(), By::Person(owner));
    let content = Content::Whole(Box::new(terms(PAY)));
    let grant = GrantMandate { by: by.clone(), ..GrantMandate::new(workspace, agent.agent, content) };
    let mut id = None;
    let made = records(&mut world, |world| id = Some(world.run(grant).unwrap().id.mandate));
    let mandate = id.unwrap();
    let limits = LimitsChange { per_action: Set::To(5), ..LimitsChange::default() };
    let mut wish = ChangeMandate { mandate, ..change(&mut world, &agent, by.clone(), limits) };
    let changed = records(&mut world, |world| drop(world.run(wish.clone()).unwrap()));
    let expires_at = Set::To(Timestamp::parse("2027-01-02T03:04:05Z").unwrap());
    wish.change = TermsChange { name: Some(label("Jane Roe")), expires_at, ..TermsChange::default() };
    let renamed = records(&mut world, |world| drop(world.run(wish.clone()).unwrap()));
    let pause = ChangeMandate { paused: Some(true), change: TermsChange::default(), ..wish };
    let paused = records(&mut world, |world| drop(world.run(pause.clone()).unwrap()));
    let resume = ChangeMandate { paused: Some(false), ..pause };
    let resumed = records(&mut world, |world| drop(world.run(resume).unwrap()));
    let end = RevokeMandate { workspace, by, agent: agent.agent, mandate };
    let ended = records(&mut world, |world| assert!(world.run(end.clone()).is_ok()));
    for (lines, kind, data) in [
        (made, "mandate.created ", r#""mandateVersion":1,"new":{"actions":["#),
        (changed, "mandate.changed ", r#""mandateVersion":2,"new":{"limits":{"#),
        (renamed, "mandate.changed ", r#""new":{"expiresAt":"2027-01-02T03:04:05.000Z","name":{"commit":"#),
        (paused, "mandate.changed ", r#""new":{"state":"paused"},"old":{"state":"active"}}"#),
        (resumed, "mandate.changed ", r#""new":{"state":"active"},"old":{"state":"paused"}}"#),
        (ended, "mandate.revoked ", "\"}"),
    ] {
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(line.starts_with(kind) && line.contains(data), "{line}");
        assert!(line.contains(&owner.principal.to_string()) && line.contains(&agent.agent.to_string()), "{line}");
        assert!(!line.contains("Jane Roe") && !line.contains(r#""name":""#), "a name is a commitment: {line}");
    }
    let told = |it: &Disclosure| it.texts.iter().map(|(path, text)| format!("{path}={text}")).collect::<Vec<_>>();
    let rows = world.rows().into_iter();
    let shown = rows.filter_map(|(.., row)| if let Record::Disclosure(it) = row { Some(told(&it)) } else { None });
    let names = ["new.name=Jane Roe".to_owned(), format!("old.name={}", terms(PAY).name)];
    assert!(shown.into_iter().any(|it| it == names), "what shows it stands beside");
    assert!(records(&mut world, |world| assert!(world.run(end).is_ok())).is_empty(), "it has ended");
    world.audit();
}

fn wish(workspace: WorkspaceId, by: By, name: &str) -> CreateToken {
    let (scopes, ip_allow) = (TokenScope::ALL.to_vec(), vec!["192.0.2.0/24".parse().unwrap()]);
    CreateToken {
        workspace,
        by,
        name: label(name),
        scopes,
        days: 2,
        ip_allow,
        digest: Digest::of(format!("ims_{name}")),
    }
}

/// A token ends with the owner who made it: in another role, and where they left. One that the program made is nobody's.
#[test]
fn a_token_ends_with_the_owner_who_made_it() {
    let mut world = World::new();
    let (workspace, first, second) = (world.workspace(), world.owner(), world.person(Role::Owner));
    let [own, theirs] = [(By::Program, "own"), (By::Person(second), "theirs")]
        .map(|(by, name)| world.run(wish(workspace, by, name)).unwrap());
    let shown = |world: &mut World, token: &ServiceToken| {
        let address = "192.0.2.7".parse().unwrap();
        let found = world.engine().read(|scope| check_token(scope, &token.digest, address));
        let is_void = world.engine().read(|scope| is_void(scope, token)).unwrap();
        assert_eq!(found.is_err(), is_void, "{}", token.name);
        found.is_ok()
    };
    assert!(shown(&mut world, &own) && shown(&mut world, &theirs));
    let become_ = |world: &mut World, role: Role| {
        let now = world.now();
        world.edit::<Principal>(second.principal, |it| it.member = it.member.clone().map(|it| it.in_role(role, now)));
    };
    world.advance(Span::seconds(1));
    become_(&mut world, Role::Admin);
    assert!(shown(&mut world, &own) && !shown(&mut world, &theirs));
    let again = world.run(wish(workspace, By::Person(first), "theirs2")).unwrap();
    assert!(shown(&mut world, &again));
    world.advance(Span::seconds(1));
    become_(&mut world, Role::Owner);
    assert!(!shown(&mut world, &theirs), "a role that comes back brings none back");
    let named = CreateToken { name: label("theirs"), ..wish(workspace, By::Person(second), "anew") };
    let anew = world.run(named).unwrap();
    assert!(shown(&mut world, &anew), "its name is free");
    world.edit::<Principal>(second.principal, |it| {
        it.member = it.member.clone().map(|it| Member { state: MemberState::Disabled, ..it });
    });
    assert!(!shown(&mut world, &anew) && shown(&mut world, &own));
}

/// A token's making and end are recorded; it is in force from its addresses alone, an IPv4 one inside IPv6 too, until its end.
#[test]
fn a_token_is_pinned_recorded_and_ends() {
    let mut world = World::new();
    let owner = world.owner();
    let (workspace, by) = (world.workspace(), By::Person(owner));
    let made = records(&mut world, |world| drop(world.run(wish(workspace, by.clone(), "soar")).unwrap()));
    assert!(made.len() == 1 && made[0].starts_with("token.created "), "{made:?}");
    assert!(made[0].contains(r#""ipAllow":["192.0.2.0/24"],"name":"soar","scopes":["#), "{made:?}");
    let shown = |world: &mut World, from: &str| {
        let (digest, from): (_, IpAddr) = (Digest::of("ims_soar"), from.parse().unwrap());
        match world.engine().read(|scope| check_token(scope, &digest, from)) {
            Ok(_) => None,
            Err(Failure::Refused(refusal)) => Some(refusal.kind()),
            Err(failure) => panic!("{failure:?}"),
        }
    };
    for from in ["192.0.2.9", "::ffff:192.0.2.9"] {
        assert_eq!(shown(&mut world, from), None, "{from}");
    }
    for from in ["192.0.3.9", "::ffff:192.0.3.9", "2001:db8::1", "::192.0.2.9"] {
        assert_eq!(shown(&mut world, from), Some(Kind::InvalidToken), "{from}");
    }
    world.advance(Span::hours(48));
    assert_eq!(shown(&mut world, "192.0.2.9"), Some(Kind::TokenExpired));
    world.keep_signed_in(&owner);
    let second = CreateToken { digest: Digest::of("ims_again"), ..wish(workspace, by.clone(), "soar") };
    let token = world.run(second).unwrap().id;
    let end = RevokeToken { workspace, by, token };
    let ended = records(&mut world, |world| assert!(world.run(end.clone()).is_ok()));
    assert!(ended.len() == 1 && ended[0].starts_with("token.revoked "), "{ended:?}");
    assert!(records(&mut world, |world| assert!(world.run(end).is_ok())).is_empty(), "an end is recorded once");
    world.audit();
}

/// A plan bounds agents and mandates, whoever asks; only the operator says which plan it is, and what ends makes room.
#[test]
fn a_plan_bounds_agents_and_mandates() {
    let mut world = World::new();
    let owner = world.owner();
    let workspace = world.workspace();
    let change = SettingsChange { plan: Some(Plan::Free), ..SettingsChange::default() };
    let by_owner = ChangeSettings { workspace, by: By::Person(owner), change: change.clone() };
    assert_eq!(world.run(by_owner).unwrap_err().kind(), Kind::Forbidden);
    let set = ChangeSettings { workspace, by: By::Program, change };
    let told = records(&mut world, |world| drop(world.run(set).unwrap()));
    assert!(
        told.len() == 1 && told[0].ends_with(r#"{"new":{"plan":"free"},"old":{"plan":"self-hosted"}}"#),
        "{told:?}"
    );

    let token = world.run(wish(workspace, By::Program, "soar")).unwrap();
    let machine = By::Token(TokenCaller {
        workspace,
        token: token.token,
        row: token.id,
        name: token.name.clone(),
        address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    });
    let person = By::Person(owner);
    let mut next = 0;
    let mut register = |world: &mut World, by: &By, mandates: usize| {
        next += 1;
        let mandates = vec![Content::Template("crm-read".into()); mandates];
        let new = RegisterAgent::new(workspace, label("Agent"), new_key(next));
        world.run(RegisterAgent { by: by.clone(), mandates, ..new }).map(|it| it.agent.id).map_err(|it| it.kind())
    };
    let first = register(&mut world, &person, 2).unwrap();
    assert_eq!(register(&mut world, &machine, 9), Err(Kind::PlanAgents), "eleven mandates");
    let second = register(&mut world, &machine, 8).unwrap();
    let ledger = world.ledger();
    let line = ledger.lines().find(|it| it.starts_with("agent.created ") && it.contains(&second.to_string())).unwrap();
    assert!(line.contains("token:soar") && line.contains(&token.token.to_string()), "{line}");
    register(&mut world, &person, 0).unwrap();
    for by in [&person, &machine, &By::Program] {
        assert_eq!(register(&mut world, by, 0), Err(Kind::PlanAgents), "a fourth agent");
    }
    let grant = GrantMandate {
        by: person.clone(),
        ..GrantMandate::new(workspace, first, Content::Template("crm-read".into()))
    };
    let refused = world.run(grant.clone()).unwrap_err();
    assert_eq!((refused.kind(), refused.message()), (Kind::PlanAgents, "the plan's allowance of 10 mandates is used"));
    let mut raised = Plans::default();
    raised.free.mandates = 0;
    world.run(GrantMandate { plans: raised, ..grant.clone() }).unwrap();
    world.run(RemoveAgent { workspace, by: person.clone(), agent: second }).unwrap();
    register(&mut world, &machine, 1).unwrap();
    world.run(grant).unwrap();
    world.audit();
}

/// Each role may do what the table of rights says, checked in the very commit: owners all, admins all but tokens, others
/// nothing with agents that are not theirs.
#[test]
fn roles_are_checked_in_the_commit() {
    for (role, wanted) in [
        (Role::Owner, [None; 6]),
        (Role::Admin, [None, None, None, None, None, Some(Kind::Forbidden)]),
        (
            Role::Member,
            [
                Some(Kind::NotFound),
                Some(Kind::Forbidden),
                Some(Kind::Forbidden),
                Some(Kind::Forbidden),
                Some(Kind::Forbidden),
                Some(Kind::Forbidden),
            ],
        ),
        (Role::Analyst, [Some(Kind::Forbidden); 6]),
        (Role::Auditor, [Some(Kind::Forbidden); 6]),
    ] {
        let (mut world, agent) = calm(&[PAY]);
        let by = By::Person(world.person(role));
        let (workspace, id, mandate) = (world.workspace(), agent.agent, mandate_of(&mut world, &agent));
        let rename = ChangeAgent {
            workspace,
            by: by.clone(),
            agent: id,
            name: Some(label("New")),
            tier: None,
            sponsor: None,
            kill_owner: None,
        };
        let grant =
            GrantMandate { by: by.clone(), ..GrantMandate::new(workspace, id, Content::Template("crm-read".into())) };
        let register = RegisterAgent { by: by.clone(), ..RegisterAgent::new(workspace, label("B"), new_key(1)) };
        let got = [
            world.run(rename).err(),
            world.run(grant).err(),
            world.run(RevokeMandate { workspace, by: by.clone(), agent: id, mandate }).err(),
            world.run(register).err(),
            world.run(CreateKey::new(workspace, by.clone(), KeyScope::Admin, new_key(2))).err(),
            world.run(wish(workspace, by, "soar")).err(),
        ];
        assert_eq!(got.map(|it| it.map(|it| it.kind())), wanted, "{role:?}");
        let tokens = world.rows().iter().filter(|(_, _, row)| ServiceToken::peel(row).is_some()).count();
        assert_eq!(tokens, usize::from(role == Role::Owner));
        world.audit();
    }
}

/// A mandate that lets its agent go anywhere is confirmed where it is resumed beside a narrower one, whether that was granted
/// while it was paused or is only in force again; what is resumed beside none is not.
#[test]
fn a_mandate_that_is_resumed_is_confirmed_beside_a_narrower_one() {
    let wide = r#"{"name":"Wide","actions":["payment"],"limits":{"currency":"EUR","perAction":10000}}"#;
    let narrow = r#"{"name":"Shop","actions":["payment"],"limits":{"currency":"EUR","perAction":10000},"merchants":{"allow":["shop.example"]}}"#;
    let mut world = World::new();
    let agent = world.agent().with_mandate(terms(wide)).register();
    let mandate = mandate_of(&mut world, &agent);
    let turn = |world: &mut World, paused: bool, confirm_broaden: bool| {
        world.run(ChangeMandate {
            workspace: agent.workspace,
            by: By::Program,
            agent: agent.agent,
            mandate,
            change: TermsChange::default(),
            paused: Some(paused),
            confirm_broaden,
            counted: None,
        })
    };
    for paused in [true, false, true] {
        turn(&mut world, paused, false).unwrap();
    }
    let content = Content::Whole(Box::new(terms(narrow)));
    let narrower = world.run(GrantMandate::new(agent.workspace, agent.agent, content)).unwrap().id.mandate;
    let refused = turn(&mut world, false, false).unwrap_err();
    assert_eq!((refused.kind(), refused.reason()), (Kind::ConfirmBroaden, Some(narrower.to_string().as_str())));
    assert!(world.row::<Agent>(agent.agent).mandates.iter().any(|it| it.id == mandate && it.paused));
    turn(&mut world, false, true).unwrap();
    world.advance(Span::seconds(1));
    turn(&mut world, true, false).unwrap();
    let again = turn(&mut world, false, false).unwrap_err();
    assert_eq!(again.kind(), Kind::ConfirmBroaden, "granted before the pause, and in force");
    world.audit();
}

/// A mandate that was confirmed to let its agent go anywhere is confirmed again where it covers more, and not for what leaves it
/// where it is or narrows it.
#[test]
fn a_change_is_confirmed_where_it_covers_more() {
    let narrow = r#"{"name":"Shop","actions":["payment","refund"],"limits":{"currency":"EUR","perAction":10000},"merchants":{"allow":["shop.example"]}}"#;
    let (mut world, agent) = calm(&[PAY]);
    let mandate = mandate_of(&mut world, &agent);
    let content = Content::Whole(Box::new(terms(narrow)));
    world.run(GrantMandate::new(agent.workspace, agent.agent, content)).unwrap();
    let turn = |world: &mut World, change: TermsChange| {
        let (workspace, by, agent) = (agent.workspace, By::Program, agent.agent);
        let (paused, confirm_broaden, counted) = (None, false, None);
        world.run(ChangeMandate { workspace, by, agent, mandate, change, paused, confirm_broaden, counted })
    };
    let actions = |kinds: &[&str]| TermsChange {
        actions: Some(kinds.iter().map(|it| ActionPattern::parse(it).unwrap()).collect()),
        ..TermsChange::default()
    };
    let named = TermsChange { name: Some(Label::parse("Pays").unwrap()), ..TermsChange::default() };
    let limits = LimitsChange { per_action: Set::To(500), ..LimitsChange::default() };
    let limited = TermsChange { limits: Set::To(limits), ..TermsChange::default() };
    for change in [named, limited, actions(&["payment", "crm.read"])] {
        turn(&mut world, change).unwrap();
    }
    let refused = turn(&mut world, actions(&["payment", "refund"])).unwrap_err();
    assert_eq!(refused.kind(), Kind::ConfirmBroaden);
    turn(&mut world, actions(&["payment"])).unwrap();
    world.audit();
}

/// There is no way back from an expiry: neither a later end nor anything else changes a mandate that has expired.
#[test]
fn an_expired_mandate_stays_expired() {
    let (mut world, agent) = calm(&[PAY]);
    let mandate = mandate_of(&mut world, &agent);
    let later = |world: &World, span: Span| Set::To(world.now().plus(span));
    let wish = |change: TermsChange| ChangeMandate {
        workspace: agent.workspace,
        by: By::Program,
        agent: agent.agent,
        mandate,
        change,
        paused: None,
        confirm_broaden: false,
        counted: None,
    };
    let expires_at = later(&world, Span::hours(1));
    world.run(wish(TermsChange { expires_at, ..TermsChange::default() })).unwrap();
    world.advance(Span::hours(1));
    let expires_at = later(&world, Span::hours(1));
    for change in [
        TermsChange { expires_at, ..TermsChange::default() },
        TermsChange { expires_at: Set::Clear, ..TermsChange::default() },
        TermsChange { name: Some(label("Other")), ..TermsChange::default() },
    ] {
        let refused = world.run(wish(change)).unwrap_err();
        let reason = Some("the mandate has expired: grant a new one");
        assert_eq!((refused.kind(), refused.reason()), (Kind::NotAllowed, reason));
    }
    assert_eq!(ask(&mut world, &agent, payment(100, "EUR", "a.example")).1, [Code::OutsideMandate]);
    world.run(RevokeMandate { workspace: agent.workspace, by: By::Program, agent: agent.agent, mandate }).unwrap();
    world.audit();
}
