//! Keys: what one may be, whom it counts for, and how many an agent has.

use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, KEY_BYTES_MAX, NewKey, RevokeKey};
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::gate::{AGENT_KEYS_MAX, Agent};
use svc_core::state::people::{KeyScope, Role, Team};
use svc_core::store::Row as _;
use svc_core::testing::{World, people};
use svc_core::value::Id as _;
use svc_core::value::id::{TeamId, WorkspaceId};
use svc_core::value::text::Label;
use svc_core::value::{Span, Timestamp};

fn label(text: &str) -> Label {
    Label::parse(text).unwrap()
}

fn new_key(n: u32) -> NewKey {
    NewKey::of(&format!("ask_{n:043}"))
}

/// A key that nobody could show, or that is in use, is refused with what is wrong with it, and nothing is made.
#[test]
fn a_key_is_one_and_a_new_one() {
    let mut world = World::new();
    let workspace = world.workspace();
    let register = |text: &str| RegisterAgent::new(workspace, label("Robot"), NewKey::of(text));
    let agent = world.run(register("ask_robot")).unwrap().agent.id;
    let long = format!("ask_{}", "x".repeat(KEY_BYTES_MAX - 4));
    for text in ["", "hello", "ask_", "aat_robot", "ask_robot", "ask_a robot", "ask_r\u{f6}bot", &format!("{long}x")] {
        let create = CreateKey::new(workspace, By::Program, KeyScope::Agent(agent), NewKey::of(text));
        for refused in [world.run(register(text)).unwrap_err(), world.run(create).unwrap_err()] {
            let fields: Vec<_> = refused.errors().iter().filter_map(|it| it.field.as_deref()).collect();
            assert_eq!((refused.kind(), fields), (Kind::InvalidRequest, vec!["key"]), "{text}");
        }
    }
    world.run(CreateKey::new(workspace, By::Program, KeyScope::Agent(agent), NewKey::of(&long))).unwrap();
    let agents = world.rows().iter().filter(|(.., record)| Agent::peel(record).is_some()).count();
    assert_eq!(agents, 1);
}

/// A key counts for a principal and a team of its workspace, and every field that names none is told.
#[test]
fn a_key_names_a_team_of_its_workspace() {
    let mut world = World::new();
    let workspace = world.workspace();
    let team = |workspace, n: u128| Team {
        id: TeamId::from_bits(n),
        workspace,
        name: label("Team"),
        owner: None,
        members: Vec::new(),
        created_by: None,
        created_at: Timestamp::default(),
    };
    let rows = vec![Team::wrap(team(workspace, 1).into()), Team::wrap(team(WorkspaceId::from_bits(7), 2).into())];
    people::write(world.engine().store(), rows);
    let key = |n: u32| CreateKey::new(workspace, By::Program, KeyScope::Inference, new_key(n));
    let made = world.run(CreateKey { team: Some(TeamId::from_bits(1)), ..key(1) }).unwrap();
    assert_eq!(made.binding.team, Some(TeamId::from_bits(1)));
    for unknown in [2, 3] {
        let principal = Some(svc_core::value::id::PrincipalId::from_bits(unknown));
        let wish = CreateKey { team: Some(TeamId::from_bits(unknown)), principal, ..key(2) };
        let refusal = world.run(wish).unwrap_err();
        let fields: Vec<String> =
            refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or_default().to_owned()).collect();
        assert_eq!(
            (refusal.kind(), fields),
            (Kind::InvalidRequest, vec!["principalId".to_owned(), "teamId".to_owned()])
        );
    }
    world.audit();
}

/// An agent has so many keys and no more: one that was revoked makes room, and so does one whose time is up.
#[test]
fn an_agent_has_so_many_keys() {
    let mut world = World::new();
    let member = world.person(Role::Member);
    let agent = world.agent().register();
    world.edit::<Agent>(agent.agent, |it| it.principal = member.principal);
    let expires_at = Some(world.now().plus(Span::hours(1)));
    let make = |n: u32| CreateKey::new(agent.workspace, By::Person(member), KeyScope::Agent(agent.agent), new_key(n));
    world.run(CreateKey { expires_at, ..make(0) }).unwrap();
    let max = u32::try_from(AGENT_KEYS_MAX).unwrap();
    let made: Vec<_> = (1..max - 1).map(|n| world.run(make(n)).unwrap()).collect();
    let refused = world.run(make(max)).unwrap_err();
    assert_eq!((refused.kind(), refused.errors().len()), (Kind::InvalidRequest, 1));
    let (workspace, credential) = (agent.workspace, made[0].id);
    world.run(RevokeKey { workspace, by: By::Person(member), credential }).unwrap();
    world.run(make(max)).unwrap();
    assert_eq!(world.run(make(max + 1)).unwrap_err().kind(), Kind::InvalidRequest);
    world.advance(Span::hours(1));
    world.run(make(max + 1)).unwrap();
    assert_eq!(world.row::<Agent>(agent.agent).keys.len(), AGENT_KEYS_MAX);
    world.audit();
}
