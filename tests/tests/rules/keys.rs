//! Keys: what one may be, whom it counts for, and how many an agent has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, KEY_BYTES_MAX, NewKey, RevokeKey};
use svc_core::rules::people::register_agent::{RegisterAgent, RemoveAgent};
use svc_core::rules::people::signing_key::{KeepSigningKey, Leaked, RotateSigningKey};
use svc_core::rules::people::teams::RemoveTeam;
use svc_core::state::gate::{AGENT_KEYS_MAX, Agent};
use svc_core::state::gateway::{BoundKey, BoundKeys};
use svc_core::state::people::{Binding, Credential, KeyScope, Purpose, Role, Settings, SigningKey, SigningUse, Team};
use svc_core::store::{MemoryStore, Record, Row as _};
use svc_core::testing::fault::{Faulty, Operation};
use svc_core::testing::{World, people};
use svc_core::value::Id as _;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, KeyId, PrincipalId, TeamId, WorkspaceId};
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

fn a_team(workspace: WorkspaceId, n: u128) -> Team {
    Team {
        id: TeamId::from_bits(n),
        workspace,
        name: label("Team"),
        owner: None,
        members: Vec::new(),
        created_by: None,
        created_at: Timestamp::default(),
    }
}

/// A key counts for a principal and a team of its workspace, and every field that names none is told.
#[test]
fn a_key_names_a_team_of_its_workspace() {
    let mut world = World::new();
    let workspace = world.workspace();
    let rows = vec![Team::wrap(a_team(workspace, 1).into()), Team::wrap(a_team(WorkspaceId::from_bits(7), 2).into())];
    people::write(world.engine().store(), rows);
    let key = |n: u32| CreateKey::new(workspace, By::Program, KeyScope::Inference, new_key(n));
    let made = world.run(CreateKey { team: Some(TeamId::from_bits(1)), ..key(1) }).unwrap();
    assert_eq!(made.binding.team, Some(TeamId::from_bits(1)));
    for unknown in [2, 3] {
        let principal = Some(PrincipalId::from_bits(unknown));
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

/// The keys of an agent that was removed keep nothing that they were bound to, and nothing is kept of what that was.
#[test]
fn a_removed_agents_keys_keep_nothing() {
    let mut world = World::new();
    let (workspace, agent) = (world.workspace(), world.agent().register().agent);
    people::write(world.engine().store(), vec![Team::wrap(a_team(workspace, 1).into())]);
    let team = TeamId::from_bits(1);
    let make = |scope, n| CreateKey { team: Some(team), ..CreateKey::new(workspace, By::Program, scope, new_key(n)) };
    let other = world.run(make(KeyScope::Inference, 1)).unwrap();
    for n in 2..5 {
        world.run(make(KeyScope::Agent(agent), n)).unwrap();
    }
    world.run(RemoveAgent { workspace, by: By::Program, agent }).unwrap();
    let bound: Vec<_> = world.row::<BoundKeys>(workspace).keys.iter().map(|it| it.key).collect();
    assert_eq!(bound, [other.binding.key]);
}

/// However many keys are noted that ended with an agent, with whom they counted for or with a key above them: what they were bound
/// to goes, and what tells that they ended is loaded in a few rounds. One in force among them keeps it.
#[test]
fn what_many_ended_keys_were_bound_to_goes() {
    let loads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&loads);
    let count = move |operation| {
        counted.fetch_add(usize::from(operation == Operation::Load), Ordering::SeqCst);
        None
    };
    let mut world = World::over(Faulty::new(MemoryStore::new(), count), Settings::default());
    let (workspace, team) = (world.workspace(), TeamId::from_bits(1));
    people::write(world.engine().store(), vec![Team::wrap(a_team(workspace, 1).into())]);
    let make = CreateKey::new(workspace, By::Program, KeyScope::Inference, new_key(1));
    let made = world.run(CreateKey { team: Some(team), ..make }).unwrap();
    // A third each counts for an agent that is gone, for a principal that is gone, and ends with a key that did.
    let key = |n: u128| {
        let digest = Digest::of(n.to_string());
        let key = Credential { id: Credential::id_of(&digest), digest, ..Credential::clone(&made) };
        let own = Binding { key: KeyId::from_bits(n), ..key.binding.clone() };
        let (gone, above) = (PrincipalId::from_bits(n), Credential::id_of(&Digest::of((n + 10_000).to_string())));
        match n % 3 {
            0 => Credential { binding: Binding { scope: KeyScope::Agent(AgentId::from_bits(n)), ..own }, ..key },
            1 => Credential { binding: Binding { principal: gone, ..own }, ..key },
            _ if n < 10_000 => Credential { binding: own, made_under: vec![above], ..key },
            _ => Credential { binding: own, ..key },
        }
    };
    let ended: Vec<Credential> = (100..1_700).map(key).collect();
    let above = ended.iter().filter(|it| !it.made_under.is_empty()).map(|it| it.binding.key.bits() + 10_000).map(key);
    let gone = |it: Credential| {
        let principal = PrincipalId::from_bits(it.binding.key.bits());
        Credential { binding: Binding { principal, scope: KeyScope::Admin, ..it.binding.clone() }, ..it }
    };
    let mut rows: Vec<Record> = above.map(|it| Credential::wrap(gone(it).into())).collect();
    rows.extend(ended.iter().map(|it| Credential::wrap(it.clone().into())));
    let mut bound = BoundKeys::clone(&world.row::<BoundKeys>(workspace));
    let noted = bound.keys.remove(0);
    bound.keys.extend(ended.iter().map(|it| BoundKey {
        key: it.binding.key,
        credential: Some(it.id),
        ..noted.clone()
    }));
    bound.keys.push(noted);
    rows.push(BoundKeys::wrap(bound.into()));
    people::write(world.engine().store(), rows);
    let gone = || RemoveTeam { workspace, by: By::Program, team };
    let before = loads.load(Ordering::SeqCst);
    assert_eq!(world.run(gone()).unwrap_err().reason(), Some("a key is bound to it"));
    world.run(RevokeKey { workspace, by: By::Program, credential: made.id }).unwrap();
    world.run(gone()).unwrap();
    let rounds = loads.load(Ordering::SeqCst) - before;
    assert!(rounds < 20, "{rounds} rounds");
    assert!(world.row::<BoundKeys>(workspace).keys.is_empty());
}

/// A key that is found in other hands ends every key that signs just now by anybody's clock: one that another clock has put in force,
/// and one whose turn has just ended. What lies where it lay ends with it: a key that waits for its turn, after which another may
/// follow at once, and one of receipts that may still be good.
#[test]
fn a_compromise_ends_what_may_be_believed() {
    let mut world = World::new();
    let now = world.now();
    let id = |purpose, generation| SigningUse { purpose, generation };
    let key = |id, not_before| {
        let (public, sealed) = ("public".into(), "sealed".into());
        SigningKey { id, public, sealed, created_at: now, not_before, retired_at: None, compromised_at: None }
    };
    let rotate = |id, not_before, leaked| RotateSigningKey {
        key: key(id, not_before),
        kid: "kid".into(),
        beside: "sealed".into(),
        leaked,
        workspaces: vec![],
    };
    let second = Span::seconds(1);
    for purpose in Purpose::ALL {
        let id = |generation| id(purpose, generation);
        let now = world.now();
        world.run(KeepSigningKey(key(id(0), now.minus(Span::hours(1))))).unwrap();
        // By a clock that is a second ahead.
        world.run(rotate(id(1), now.plus(second), Leaked::Current)).unwrap();
        world.run(rotate(id(2), now, Leaked::Current)).unwrap();
        let sound = |world: &mut World, generations: &[u32]| -> Vec<u32> {
            let is_sound = |it: &u32| world.row::<SigningKey>(id(*it)).compromised_at.is_none();
            generations.iter().copied().filter(is_sound).collect()
        };
        assert_eq!(sound(&mut world, &[0, 1, 2]), [2]);
        world.advance(Span::minutes(1));
        let turn = world.now().plus(Span::hours(24));
        world.run(rotate(id(3), turn, Leaked::None)).unwrap();
        world.advance(Span::hours(24));
        world.advance(second);
        let then = world.now();
        world.run(rotate(id(4), then, Leaked::Current)).unwrap();
        assert_eq!(sound(&mut world, &[2, 3, 4]), [4], "its turn ended a second ago");
        world.advance(Span::minutes(1));
        let (waiting, then) = (world.now().plus(Span::hours(24)), world.now());
        world.run(rotate(id(5), waiting, Leaked::None)).unwrap();
        world.run(rotate(id(6), then, Leaked::Current)).unwrap();
        assert_eq!(sound(&mut world, &[4, 5, 6]), [6], "it has waited where the other lay");
        // Nothing waits any more.
        let turn = then.plus(Span::hours(24));
        world.run(rotate(id(7), turn, Leaked::None)).unwrap();
        world.advance(Span::hours(40));
        let then = world.now();
        world.run(rotate(id(8), then, Leaked::Current)).unwrap();
        // Its last receipt expires after a day; what it signed of other things is kept for good.
        let left = if purpose == Purpose::Receipt { vec![8] } else { vec![6, 8] };
        assert_eq!(sound(&mut world, &[6, 7, 8]), left);
        world.advance(Span::minutes(1));
        let then = world.now();
        world.run(rotate(id(9), then, Leaked::All)).unwrap();
        assert_eq!(sound(&mut world, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), [9]);
        world.advance(Span::hours(100));
    }
}

/// A key of receipts whose last receipt has expired is left as it was: there is nothing of it to refuse.
#[test]
fn a_compromise_leaves_what_is_over() {
    let mut world = World::new();
    let (first, now) = (SigningUse::first(Purpose::Receipt), world.now());
    let key = |generation, not_before| SigningKey {
        id: SigningUse { generation, ..first },
        public: "public".into(),
        sealed: "sealed".into(),
        created_at: now,
        not_before,
        retired_at: None,
        compromised_at: None,
    };
    let rotate =
        |key, leaked| RotateSigningKey { key, kid: "kid".into(), beside: "sealed".into(), leaked, workspaces: vec![] };
    world.run(KeepSigningKey(key(0, now))).unwrap();
    world.run(rotate(key(1, now.plus(Span::hours(24))), Leaked::None)).unwrap();
    world.advance(Span::hours(49));
    let then = world.now();
    // Sealed by somebody who has read the key before it as it was under another master key.
    let late = RotateSigningKey { beside: "sealed before".into(), ..rotate(key(2, then), Leaked::Current) };
    assert_eq!(world.run(late).unwrap_err().kind(), Kind::NotAllowed);
    world.run(rotate(key(2, then), Leaked::Current)).unwrap();
    let ended = [0, 1, 2].map(|it| world.row::<SigningKey>(SigningUse { generation: it, ..first }).compromised_at);
    assert_eq!(ended, [None, Some(then), None]);
}
