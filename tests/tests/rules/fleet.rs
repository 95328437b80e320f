//! Many agents are stopped at once: whom a selector means, what has to be confirmed, the ceiling of a token, and the person
//! who agrees past it.

use svc_core::answer::Decided;
use svc_core::engine::select::{Selected, select};
use svc_core::refusal::{Counts, Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::fleet::{Fleet, FreezeFleet, Halted};
use svc_core::rules::gate::freeze::{FreezeAgent, Stopped};
use svc_core::rules::gate::lift::LiftHold;
use svc_core::rules::people::by::{By, Person, TokenCaller};
use svc_core::state::gate::{Agent, Approval, ApprovalSubject, FrozenBy, Status, Verb};
use svc_core::state::people::{
    FREEZES_ASKED_MAX, Hold, Role, Roster, Selector, ServiceToken, TokenScope, TokenUse, Workspace,
};
use svc_core::store::Row;
use svc_core::testing::people;
use svc_core::testing::world::{World, payment, request, terms};
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, ApprovalId, TokenId};
use svc_core::value::text::{Label, Note};
use svc_core::value::{Id as _, Span};

use super::{PAY, fast};

pub(super) fn note(text: &str) -> Note {
    Note::parse(text).unwrap()
}

/// A world with so many agents.
pub(super) fn fleet(count: usize) -> (World, Vec<Caller>) {
    let mut world = World::with(fast());
    let agents = (0..count).map(|_| world.agent().with_mandate(terms(PAY)).register()).collect();
    (world, agents)
}

/// A service token that may freeze.
pub(super) fn token(world: &mut World, number: u128) -> By {
    let digest = Digest::of(format!("ims_{number}"));
    let (row, token) = (ServiceToken::id_of(&digest), TokenId::from_bits(number));
    let (workspace, now, name) = (world.workspace(), world.now(), Label::parse("soar").unwrap());
    let made = ServiceToken {
        id: row,
        digest,
        token,
        workspace,
        name: name.clone(),
        scopes: vec![TokenScope::AgentsFreeze],
        ip_allow: Vec::new(),
        created_by: None,
        created_at: now,
        expires_at: now.plus(Span::hours(24)),
        revoked_at: None,
    };
    people::write(world.engine().store(), vec![ServiceToken::wrap(made.into())]);
    By::Token(TokenCaller { workspace, token, row, name, address: [127, 0, 0, 1].into() })
}

/// Puts so many more agents into the store: too many to be made one by one.
pub(super) fn crowd(world: &mut World, like: AgentId, count: usize) -> Vec<AgentId> {
    let row = world.row::<Agent>(like);
    let ids: Vec<AgentId> = (1..=count).map(|it| AgentId::from_bits((1 << 100) + it as u128)).collect();
    let rows = ids.iter().map(|id| Agent::wrap(Agent { id: *id, ..Agent::clone(&row) }.into())).collect();
    people::write(world.engine().store(), rows);
    let workspace = world.workspace();
    let roster = world.row::<Roster>(workspace);
    let agents = roster.agents + u32::try_from(count).unwrap();
    people::write(world.engine().store(), vec![Roster::wrap(Roster { agents, ..Roster::clone(&roster) }.into())]);
    ids
}

pub(super) fn look(world: &mut World, selector: &Selector) -> Selected {
    let (workspace, now) = (world.workspace(), world.now());
    select(world.engine().store(), workspace, selector, now).unwrap()
}

/// The command that freezes what was looked through, confirmed as it was counted.
pub(super) fn command(world: &World, by: &By, selector: &Selector, selected: &Selected) -> FreezeFleet {
    FreezeFleet {
        workspace: world.workspace(),
        by: by.clone(),
        epoch: selected.epoch,
        agents: selected.agents.clone().into(),
        frozen: selected.frozen,
        digest: selected.digest,
        all: selector.all,
        reason: note("a leak"),
        confirm: Some(i64::from(selected.count())),
        seen: None,
    }
}

pub(super) fn freeze(world: &mut World, by: &By, selector: &Selector) -> Result<Fleet, Refusal> {
    let selected = look(world, selector);
    let command = command(world, by, selector, &selected);
    world.run(command)
}

pub(super) fn halted(world: &mut World, by: &By, selector: &Selector) -> Halted {
    match freeze(world, by, selector).unwrap() {
        Fleet::Frozen(halted) => halted,
        other => panic!("{other:?}"),
    }
}

fn asked(fleet: Fleet) -> ApprovalId {
    if let Fleet::Asked(approval) = fleet { approval.id } else { panic!("{fleet:?}") }
}

pub(super) fn decision(by: &Person, approval: ApprovalId, choice: Choice) -> DecideApproval {
    DecideApproval::new(*by, approval, choice)
}

fn standing(world: &mut World, agents: &[Caller]) -> Vec<bool> {
    agents.iter().map(|it| world.row::<Agent>(it.agent).is_active()).collect()
}

fn of(agents: &[Caller]) -> Selector {
    Selector { agents: Some(agents.iter().map(|it| it.agent).collect()), ..Selector::default() }
}

/// The members are frozen by the one commit, with one record of the fleet; each agent's own follows, and restarts of its
/// neighbours are none of its business.
#[test]
fn a_selection_is_frozen_in_one_commit() {
    let (mut world, agents) = fleet(4);
    let allowed = world.authorize(&agents[0], payment(100, "EUR", "a.example"));
    let by = token(&mut world, 7);
    let done = halted(&mut world, &by, &of(&agents[..3]));
    assert_eq!((done.count, done.frozen, done.hold), (3, 3, None));
    assert_eq!(standing(&mut world, &agents), [false, false, false, true]);
    let frozen = world.row::<Agent>(agents[0].agent).frozen().cloned().unwrap();
    assert!(frozen.unrecorded && matches!(&frozen.by, FrozenBy::Token { id, .. } if id.bits() == 7), "{frozen:?}");
    assert_eq!(world.read(&agents[0], allowed.id()).receipt(), None);
    world.advance(Span::seconds(1));
    assert!(!world.row::<Agent>(agents[0].agent).frozen().unwrap().unrecorded);
    let again = halted(&mut world, &by, &of(&agents[..3]));
    assert_eq!((again.count, again.frozen), (3, 0));
    world.audit();
}

/// Selectors mean who meets every condition, and no removed agent.
#[test]
fn a_selector_means_who_meets_all_of_it() {
    let (mut world, agents) = fleet(3);
    let other = world.agent().with_mandate(terms(r#"{"name":"Crm","actions":["crm.*"]}"#)).register();
    let count = |world: &mut World, selector: Selector| look(world, &selector).count();
    let action = |text: &str| Selector { action: Some(text.parse().unwrap()), ..Selector::default() };
    assert_eq!(count(&mut world, Selector::everyone()), 4);
    assert_eq!(count(&mut world, action("payment")), 3);
    assert_eq!(count(&mut world, action("crm.update")), 1);
    assert_eq!(count(&mut world, Selector { agents: of(&agents).agents, ..action("crm.update") }), 0);
    let principal = world.row::<Agent>(other.agent).principal;
    assert_eq!(count(&mut world, Selector { principal: Some(principal), ..Selector::default() }), 4);
    let name = world.row::<Agent>(other.agent).name.clone();
    let prefix = |text: &str| Selector { name_prefix: Some(text.into()), ..Selector::default() };
    assert_eq!(count(&mut world, prefix(&name.as_str()[..1])), 4);
    assert_eq!(count(&mut world, prefix("no agent is called so")), 0);
    let template = |text: &str| Selector { template: Some(text.into()), ..Selector::default() };
    assert_eq!(count(&mut world, template("office-supplies")), 0);
}

/// What was counted has to be what is there: nothing selected, no count, another count and another digest are told apart, in
/// this order, and agents that changed since the scan are looked through again.
#[test]
fn a_selection_is_confirmed() {
    let (mut world, agents) = fleet(2);
    let by = By::Program;
    let selected = look(&mut world, &of(&agents));
    let base = command(&world, &by, &of(&agents), &selected);
    let refused = |world: &mut World, command: FreezeFleet| world.run(command).unwrap_err();
    let nobody = FreezeFleet { agents: Vec::new().into(), confirm: None, ..base.clone() };
    assert_eq!(refused(&mut world, nobody).kind(), Kind::NothingSelected);
    let unsaid = refused(&mut world, FreezeFleet { confirm: None, ..base.clone() });
    assert_eq!((unsaid.kind(), unsaid.counts()), (Kind::ConfirmCountRequired, Some(Counts { old: None, new: 2 })));
    let miscounted = refused(&mut world, FreezeFleet { confirm: Some(3), ..base.clone() });
    assert_eq!(
        (miscounted.kind(), miscounted.counts()),
        (Kind::SelectionChanged, Some(Counts { old: Some(3), new: 2 }))
    );
    let others = refused(&mut world, FreezeFleet { seen: Some(Digest::of("others")), ..base.clone() });
    assert_eq!((others.kind(), others.counts()), (Kind::SelectionChanged, Some(Counts { old: Some(2), new: 2 })));
    world.agent().register();
    assert!(matches!(world.run(base).unwrap(), Fleet::Moved));
    assert_eq!(standing(&mut world, &agents), [true, true]);
}

/// A token's freezes of the last hour, single and fleet together, never pass its ceiling: past it nothing is frozen and a
/// person is asked, once for the same selection.
#[test]
fn a_token_asks_past_its_ceiling() {
    let (mut world, agents) = fleet(5);
    let mut settings = world.row::<Workspace>(world.workspace()).settings.clone();
    settings.freeze_ceiling_per_hour = 3;
    world.change_settings(settings);
    let by = token(&mut world, 7);
    let one = |agent: usize| FreezeAgent {
        workspace: agents[agent].workspace,
        agent: agents[agent].agent,
        by: by.clone(),
        reason: note("odd"),
    };
    assert!(matches!(world.run(one(0)).unwrap(), Stopped::Agent(_)));
    assert!(matches!(world.run(one(0)).unwrap(), Stopped::Agent(_)), "a frozen agent counts no more");
    assert_eq!(halted(&mut world, &by, &of(&agents[..3])).frozen, 2);
    let first = freeze(&mut world, &by, &of(&agents)).map(asked).unwrap();
    assert_eq!(freeze(&mut world, &by, &of(&agents)).map(asked).unwrap(), first, "asked once");
    let single = world.run(one(4)).unwrap();
    assert!(matches!(&single, Stopped::Asked(other) if other.id != first), "{single:?}");
    assert_eq!(standing(&mut world, &agents), [false, false, false, true, true]);
    world.advance(Span::minutes(60));
    assert_eq!(halted(&mut world, &by, &of(&agents)).frozen, 2);
    let used: std::sync::Arc<TokenUse> = world.row(TokenId::from_bits(7));
    assert_eq!(used.frozen_lately(world.now()), 2);
    world.audit();
}

/// Freezes that alternate are asked once each, and a token has so many questions waiting and no more: a further agent joins the
/// newest of them, which is another question then. What was decided or has expired makes room.
#[test]
fn a_token_asks_so_much_and_no_more() {
    let (mut world, agents) = fleet(FREEZES_ASKED_MAX + 2);
    let mut settings = world.row::<Workspace>(world.workspace()).settings.clone();
    settings.freeze_ceiling_per_hour = 1;
    world.change_settings(settings);
    let (owner, by) = (world.owner(), token(&mut world, 7));
    let one = |agent: usize| FreezeAgent {
        workspace: agents[agent].workspace,
        agent: agents[agent].agent,
        by: by.clone(),
        reason: note("odd"),
    };
    let question = |world: &mut World, agent: usize| match world.run(one(agent)) {
        Ok(Stopped::Asked(approval)) => Ok(approval.id),
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => Err(refusal),
    };
    assert!(matches!(world.run(one(0)).unwrap(), Stopped::Agent(_)));
    let made: Vec<_> = (1..=FREEZES_ASKED_MAX).map(|it| question(&mut world, it).unwrap()).collect();
    for (agent, asked) in made.iter().enumerate() {
        assert_eq!(question(&mut world, agent + 1).unwrap(), *asked, "asked once");
    }
    let last = FREEZES_ASKED_MAX + 1;
    world.advance(Span::minutes(1));
    let newest = made[FREEZES_ASKED_MAX - 1];
    let wider = question(&mut world, last).unwrap();
    assert_eq!(question(&mut world, last).unwrap(), wider, "asked once");
    let stale = world.run(decision(&owner, newest, Choice::Approve)).unwrap_err();
    assert_eq!(
        (stale.kind(), stale.reason()),
        (Kind::NotAllowed, Some("denied")),
        "nobody agrees to more than they saw"
    );
    assert_eq!(world.row::<TokenUse>(TokenId::from_bits(7)).waiting.len(), FREEZES_ASKED_MAX);
    world.run(decision(&owner, made[3], Choice::Deny)).unwrap();
    question(&mut world, 4).unwrap();
    assert_eq!(world.row::<TokenUse>(TokenId::from_bits(7)).waiting.len(), FREEZES_ASKED_MAX);
    world.run(decision(&owner, wider, Choice::Approve)).unwrap();
    let active: Vec<usize> = (0..=last).filter(|it| world.row::<Agent>(agents[*it].agent).is_active()).collect();
    assert_eq!(active, (1..last - 1).collect::<Vec<_>>(), "both that it named are frozen");
    world.audit();
}

/// A fleet of two more than a token may ask about one by one, and a token past its ceiling.
fn past_ceiling() -> (World, Vec<Caller>, By) {
    let (mut world, agents) = fleet(FREEZES_ASKED_MAX + 2);
    let mut settings = world.row::<Workspace>(world.workspace()).settings.clone();
    settings.freeze_ceiling_per_hour = 1;
    world.change_settings(settings);
    let by = token(&mut world, 7);
    halted(&mut world, &by, &of(&agents[..1]));
    (world, agents, by)
}

/// The freeze that an approval asks for: how many, whether all, and why.
fn freeze_of(world: &mut World, id: ApprovalId) -> (u32, bool, String) {
    let approval = world.row::<Approval>(id);
    assert!(approval.is_waiting());
    let ApprovalSubject::Freeze(of) = &approval.subject else { panic!("{approval:?}") };
    (of.members.count, of.all, of.reason.as_str().to_owned())
}

/// A fleet joins what waits where as many questions wait as may, and the question says so: how many it is about, whether every agent
/// is meant, and both reasons. Nobody agrees to it by a yes to what waited before.
#[test]
fn a_fleet_joins_what_waits() {
    let (mut world, agents, by) = past_ceiling();
    let owner = world.owner();
    let ask = |it: usize| freeze(&mut world, &by, &of(&agents[it..=it])).map(asked).unwrap();
    let made: Vec<_> = (1..=FREEZES_ASKED_MAX).map(ask).collect();
    let [.., before, newest] = made[..] else { panic!() };
    let two = freeze(&mut world, &by, &of(&agents[FREEZES_ASKED_MAX..])).map(asked).unwrap();
    assert_eq!(freeze_of(&mut world, two), (2, false, "a leak".to_owned()));
    assert_eq!(
        freeze(&mut world, &by, &of(&agents[FREEZES_ASKED_MAX + 1..])).map(asked).unwrap(),
        two,
        "asked already"
    );
    let selected = look(&mut world, &Selector::everyone());
    let all = FreezeFleet { reason: note("run"), ..command(&world, &by, &Selector::everyone(), &selected) };
    let all = world.run(all).map(asked).unwrap();
    let count = u32::try_from(agents.len()).unwrap();
    assert_eq!(freeze_of(&mut world, all), (count, true, "a leak; run".to_owned()));
    for stale in [newest, two] {
        assert_eq!(world.run(decision(&owner, stale, Choice::Approve)).unwrap_err().kind(), Kind::NotAllowed);
    }
    assert!(world.row::<Approval>(before).is_waiting());
    assert_eq!(freeze(&mut world, &by, &Selector::everyone()).map(asked).unwrap(), all, "asked once");
    let late = world.agent().register();
    let wider = freeze(&mut world, &by, &Selector::everyone()).map(asked).unwrap();
    assert_eq!(freeze_of(&mut world, wider).0, count + 1);
    assert_eq!(world.row::<TokenUse>(TokenId::from_bits(7)).waiting.len(), FREEZES_ASKED_MAX);
    approve_everyone(&mut world, &owner, wider).unwrap();
    assert!(!world.row::<Agent>(late.agent).is_active());
    assert_eq!(standing(&mut world, &agents), vec![false; agents.len()]);
    world.audit();
}

/// A few agents find no room where every question that waits is about very many: each time such a list would be written anew. Very
/// many do, and so does every agent, whose question is about those few as well.
#[test]
fn a_few_find_no_room_among_very_many() {
    let (mut world, agents, by) = past_ceiling();
    let crowd = crowd(&mut world, agents[1].agent, 1_000 + FREEZES_ASKED_MAX);
    let named = |agents: &[AgentId]| Selector { agents: Some(agents.iter().copied().collect()), ..Selector::default() };
    for agents in crowd.windows(1_000).take(FREEZES_ASKED_MAX) {
        freeze(&mut world, &by, &named(agents)).map(asked).unwrap();
    }
    world.advance(Span::minutes(1));
    let refused = freeze(&mut world, &by, &of(&agents[1..2])).unwrap_err();
    assert_eq!((refused.kind(), refused.retry_after_s()), (Kind::RateLimited, Some(59 * 60)));
    let many = freeze(&mut world, &by, &named(&crowd)).map(asked).unwrap();
    assert_eq!(freeze_of(&mut world, many).0, 1_020);
    let all = freeze(&mut world, &by, &Selector::everyone()).map(asked).unwrap();
    assert!(freeze_of(&mut world, all).1);
    assert_eq!(freeze(&mut world, &by, &of(&agents[1..2])).map(asked).unwrap(), all);
}

/// A person's yes freezes those who were counted then, by that person; a no freezes nobody; both only while it waits.
#[test]
fn a_person_decides_a_freeze_past_the_ceiling() {
    let (mut world, agents) = fleet(3);
    let mut settings = world.row::<Workspace>(world.workspace()).settings.clone();
    settings.freeze_ceiling_per_hour = 1;
    world.change_settings(settings);
    let (owner, by) = (world.owner(), token(&mut world, 7));
    let refused = freeze(&mut world, &by, &of(&agents[..2])).map(asked).unwrap();
    world.run(decision(&owner, refused, Choice::Deny)).unwrap();
    assert_eq!(standing(&mut world, &agents), [true; 3]);
    let approved = freeze(&mut world, &by, &of(&agents[..2])).map(asked).unwrap();
    assert_ne!(approved, refused);
    world.agent().register();
    world.run(decision(&owner, approved, Choice::Approve)).unwrap();
    assert_eq!(standing(&mut world, &agents), [false, false, true]);
    let frozen = world.row::<Agent>(agents[0].agent).frozen().cloned().unwrap();
    assert_eq!((frozen.by, frozen.reason), (FrozenBy::Person(owner.principal), note("a leak")));
    let late = world.run(decision(&owner, approved, Choice::Deny)).unwrap_err();
    assert_eq!((late.kind(), late.reason()), (Kind::NotAllowed, Some("approved")));
    world.advance(Span::seconds(1));
    world.audit();
}

/// Of a selection the first hundred are shown, by id; all are counted.
#[test]
fn a_hundred_of_a_selection_are_shown() {
    let (mut world, agents) = fleet(1);
    crowd(&mut world, agents[0].agent, 100);
    let selected = look(&mut world, &Selector::everyone());
    let shown: Vec<AgentId> = selected.shown.iter().map(|it| it.id).collect();
    assert_eq!((selected.count(), shown.len()), (101, 100));
    assert_eq!(shown, selected.agents[..100]);
}

/// A word on a freeze names the selection that waits, where it names one: a yes and a no to another decide nothing.
#[test]
fn a_word_on_another_selection_decides_nothing() {
    let (mut world, agents, by) = past_ceiling();
    let owner = world.owner();
    let id = freeze(&mut world, &by, &of(&agents[1..3])).map(asked).unwrap();
    for choice in Choice::ALL {
        let word = DecideApproval { digest: Some(Digest::of("another")), ..decision(&owner, id, choice) };
        assert_eq!(world.run(word).unwrap_err().kind(), Kind::DigestChanged, "{choice:?}");
    }
    let digest = match &world.row::<Approval>(id).subject {
        ApprovalSubject::Freeze(of) => Some(of.digest),
        other => panic!("{other:?}"),
    };
    world.run(DecideApproval { digest, ..decision(&owner, id, Choice::Approve) }).unwrap();
    assert_eq!(standing(&mut world, &agents[..4]), [false, false, false, true]);
}

/// Past the ceiling no hold is set for `all` either; the person's yes sets it.
#[test]
fn every_agent_past_the_ceiling_waits_for_a_person() {
    let (mut world, agents) = fleet(60);
    let (owner, by) = (world.owner(), token(&mut world, 7));
    let id = freeze(&mut world, &by, &Selector::everyone()).map(asked).unwrap();
    assert!(world.row::<Workspace>(world.workspace()).holds.is_empty());
    let approval = world.row::<Approval>(id);
    assert!(matches!(&approval.subject, ApprovalSubject::Freeze(it) if it.all && it.members.count == 60));
    approve_everyone(&mut world, &owner, id).unwrap();
    assert!(world.row::<Workspace>(world.workspace()).all_held().is_some());
    assert_eq!(standing(&mut world, &agents), [false; 60]);
}

/// A person's yes to a freeze of every agent, with the agents as they are looked through now.
pub(super) fn approve_everyone(world: &mut World, owner: &Person, id: ApprovalId) -> Result<(), Refusal> {
    let everyone = Some(look(world, &Selector::everyone()).into());
    world.run(DecideApproval { everyone, ..decision(owner, id, Choice::Approve) }).map(drop)
}

/// A freeze of every agent that a person agrees to freezes those who were counted: who came since is active, and refused until the
/// lift. What such an agent was allowed, or waits for, is not good again then. A yes without a look at who is there now, or after an
/// outdated one, freezes nobody.
#[test]
fn a_yes_to_a_freeze_of_every_agent_freezes_those_who_were_counted() {
    let (mut world, agents) = fleet(51);
    let (owner, by) = (world.owner(), token(&mut world, 7));
    let id = freeze(&mut world, &by, &Selector::everyone()).map(asked).unwrap();
    let outdated = look(&mut world, &Selector::everyone()).into();
    let late = world.agent().with_mandate(terms(PAY)).register();
    let allowed = world.authorize(&late, payment(100, "EUR", "a.example"));
    let waits = world.authorize(&late, request("crm.read"));
    assert!(world.read(&late, allowed.id()).receipt().is_some());
    assert_eq!(world.read(&late, waits.id()).status(), Status::Pending);
    for everyone in [None, Some(outdated)] {
        let yes = DecideApproval { everyone, ..decision(&owner, id, Choice::Approve) };
        assert_eq!(world.run(yes).unwrap_err().kind(), Kind::NotReady);
    }
    assert_eq!(standing(&mut world, &agents), [true; 51]);
    approve_everyone(&mut world, &owner, id).unwrap();
    assert_eq!(standing(&mut world, &agents), [false; 51]);
    assert_eq!(standing(&mut world, &[late]), [true]);
    assert_eq!(world.authorize(&late, payment(100, "EUR", "a.example")).verb(), Verb::Deny);
    let hold = world.row::<Workspace>(world.workspace()).all_held().unwrap().id;
    assert_eq!(world.row::<Hold>(hold).members.count, 51);
    let (workspace, by) = (world.workspace(), By::Person(owner));
    world.run(LiftHold { workspace, hold, by, reason: note("over"), restart: true }).unwrap();
    world.advance(Span::seconds(1));
    assert_eq!(standing(&mut world, &[late]), [true]);
    let stands = |world: &mut World, action: &Decided| world.read(&late, action.id()).status();
    assert_eq!(world.read(&late, allowed.id()).receipt(), None);
    assert_eq!((stands(&mut world, &allowed), stands(&mut world, &waits)), (Status::Revoked, Status::Denied));
    assert_eq!(world.authorize(&late, payment(200, "EUR", "a.example")).verb(), Verb::Allow);
    world.audit();
}

/// Nobody decides in time: the question expires, and nobody is frozen.
#[test]
fn a_freeze_that_nobody_decides_expires() {
    let (mut world, agents) = fleet(60);
    let by = token(&mut world, 7);
    let id = freeze(&mut world, &by, &Selector::everyone()).map(asked).unwrap();
    world.advance(Span::hours(25));
    let owner = world.owner();
    let late = world.run(decision(&owner, id, Choice::Approve)).unwrap_err();
    assert_eq!((late.kind(), late.reason()), (Kind::NotAllowed, Some("expired")));
    assert!(standing(&mut world, &agents).iter().all(|it| *it));
    world.audit();
}

/// A member, an analyst and an auditor freeze no fleet; a member freezes their own agent alone, its kill owner any.
#[test]
fn who_may_freeze() {
    let (mut world, agents) = fleet(2);
    for role in [Role::Member, Role::Analyst, Role::Auditor] {
        let person = world.person(role);
        let refused = freeze(&mut world, &By::Person(person), &of(&agents)).unwrap_err();
        assert_eq!(refused.kind(), Kind::Forbidden, "{role:?}");
    }
    let (member, killer) = (world.person(Role::Member), world.person(Role::Analyst));
    let agent = agents[0].agent;
    let mut row = Agent::clone(&world.row::<Agent>(agent));
    row.kill_owner = Some(killer.principal);
    people::write(world.engine().store(), vec![Agent::wrap(row.into())]);
    let one = |by: Person| FreezeAgent { workspace: by.workspace, agent, by: By::Person(by), reason: note("odd") };
    assert_eq!(world.run(one(member)).unwrap_err().kind(), Kind::NotFound);
    assert!(matches!(world.run(one(killer)).unwrap(), Stopped::Agent(it) if !it.is_active()));
}
