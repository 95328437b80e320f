//! Whether a key was taken from whoever has it, so that what it began is to end: not by what only renews it, nor by its own time.

use std::collections::BTreeSet;
use std::sync::Arc;

use svc_core::rules::gateway::payer::{CallKey, hangs_on, was_taken};
use svc_core::rules::people::by::{By, KeyCaller};
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey};
use svc_core::rules::people::members::RemoveMember;
use svc_core::state::gate::Agent;
use svc_core::state::people::{Binding, Credential, KeyScope, Role};
use svc_core::store::{Key, Store as _};
use svc_core::testing::people;
use svc_core::testing::world::World;
use svc_core::turn::{self, Rows};
use svc_core::value::digest::Digest;
use svc_core::value::{Span, Timestamp};

use super::connect::Scene;

fn key_of(world: &mut World, text: &str) -> CallKey {
    let row = Credential::id_of(&Digest::of(text));
    CallKey { row, binding: Arc::new(world.row::<Credential>(row).binding.clone()) }
}

fn is_taken(world: &mut World, key: &CallKey) -> bool {
    world.engine().read(|scope| was_taken(scope, key)).unwrap()
}

/// A renewal takes an access token's place and ends nothing that it began; the end of the connection does, and so does the leaving of
/// whoever connected it.
#[test]
fn a_renewal_takes_nothing() {
    for leaves in [false, true] {
        let mut scene = Scene::new();
        let (workspace, now) = (scene.world.workspace(), scene.world.now());
        let admin = people::sign_in(scene.world.engine().store(), workspace, Role::Admin, 9, now);
        let code = scene.code_of(admin, scene.agent.agent).unwrap();
        let first = scene.exchange(&code, |_| {}).unwrap();
        let key = key_of(&mut scene.world, &first.access);
        let second = scene.refresh(&first.refresh).unwrap();
        assert!(scene.works(&first.access).is_err() && !is_taken(&mut scene.world, &key), "it was renewed");
        scene.world.advance(Span::hours(2));
        assert!(scene.works(&second.access).is_err() && !is_taken(&mut scene.world, &key), "its time is up");
        if leaves {
            let by = By::Person(scene.owner);
            scene.world.run(RemoveMember { workspace, by, principal: admin.principal }).unwrap();
        } else {
            let _ = scene.refresh(&first.refresh);
        }
        assert!(is_taken(&mut scene.world, &key), "{leaves}");
    }
}

/// A key whose time is up was not taken, also once its agent has let go of it; one that was revoked was, whenever.
#[test]
fn what_comes_to_its_time_is_not_taken() {
    let (mut world, agent) = super::calm(&[super::PAY]);
    let owner = world.owner();
    let until = |at: Timestamp| Some(at.plus(Span::hours(1)));
    let make = |scope, text: &str, expires_at| CreateKey {
        expires_at,
        ..CreateKey::new(owner.workspace, By::Person(owner), scope, NewKey::of(text))
    };
    let ends = until(world.now());
    for (scope, text) in [(KeyScope::Agent(agent.agent), "ask_agents"), (KeyScope::Inference, "ask_traffic")] {
        world.run(make(scope, text, ends)).unwrap();
    }
    let keys = ["ask_agents", "ask_traffic"].map(|text| key_of(&mut world, text));
    world.advance(Span::hours(2));
    // Another one has the agent let go of what ended.
    world.run(make(KeyScope::Agent(agent.agent), "ask_next", None)).unwrap();
    assert!(world.row::<Agent>(agent.agent).keys.iter().all(|it| it.id != keys[0].binding.key));
    for key in &keys {
        assert!(!is_taken(&mut world, key), "its time is up");
        let revoke = RevokeKey { workspace: owner.workspace, by: By::Person(owner), credential: key.row };
        world.run(revoke).unwrap();
        assert!(is_taken(&mut world, key));
    }
}

/// The rows of keys and of people that are read for whether a key was taken.
fn read_for(world: &mut World, key: &CallKey) -> BTreeSet<Key> {
    let (now, store, mut seen) = (world.now(), world.engine().store(), BTreeSet::new());
    let load = |keys: &[Key]| {
        seen.extend(keys.iter().filter(|it| matches!(it, Key::Credential(_) | Key::Principal(_))).copied());
        store.load(keys)
    };
    assert!(!turn::read(now, &mut Rows::new(0), load, |scope| was_taken(scope, key)).unwrap().unwrap());
    seen
}

/// A key hangs on every row of a key or a person by which it may be taken, whoever made it, under whichever key, and whoever it counts
/// for; and on no other.
#[test]
fn a_key_hangs_on_what_it_is_taken_by() {
    let mut scene = Scene::new();
    let (workspace, now, owner, agent) = (scene.world.workspace(), scene.world.now(), scene.owner, scene.agent.agent);
    let admin = people::sign_in(scene.world.engine().store(), workspace, Role::Admin, 9, now);
    let member = people::sign_in(scene.world.engine().store(), workspace, Role::Member, 10, now);
    let code = scene.code_of(admin, agent).unwrap();
    let connected = scene.exchange(&code, |_| {}).unwrap().access;
    let world = &mut scene.world;
    let make = |by, scope, text: &str| CreateKey::new(workspace, by, scope, NewKey::of(text));
    world.run(make(By::Person(admin), KeyScope::Agent(agent), "ask_agents")).unwrap();
    let counts =
        CreateKey { principal: Some(member.principal), ..make(By::Person(owner), KeyScope::Inference, "ask_members") };
    world.run(counts).unwrap();
    world.run(make(By::Person(admin), KeyScope::Admin, "ask_above")).unwrap();
    let above = key_of(world, "ask_above");
    let Binding { workspace, key, principal, .. } = *above.binding;
    let by = By::Key(KeyCaller { workspace, key, row: above.row, principal });
    let below = CreateKey { principal: Some(member.principal), ..make(by, KeyScope::Inference, "ask_below") };
    world.run(below).unwrap();
    let (keys, person) = (|it: &CallKey| Key::Credential(it.row), |it| Key::Principal(it));
    for (text, by) in [
        (&*connected, vec![person(admin.principal)]),
        ("ask_agents", vec![person(admin.principal)]),
        ("ask_members", vec![person(member.principal)]),
        ("ask_above", vec![person(admin.principal)]),
        ("ask_below", vec![keys(&above), person(admin.principal), person(member.principal)]),
    ] {
        let key = key_of(world, text);
        let found: BTreeSet<Key> = world.engine().read(|scope| hangs_on(scope, &key)).unwrap().into_iter().collect();
        let read = read_for(world, &key);
        assert!(read.is_subset(&found), "{text}: {read:?} {found:?}");
        assert!(by.iter().all(|it| read.contains(it)), "{text}: {read:?}");
        let is_members = by.contains(&person(member.principal));
        assert_eq!(found.contains(&person(member.principal)), is_members, "{text}: {found:?}");
    }
}
