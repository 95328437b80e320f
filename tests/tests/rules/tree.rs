//! The ledger's tree: every record is proved by it, whatever its age, and every size continues those before.

use svc_core::engine::Failure;
use svc_core::rules::evidence::proof::{chain, continues, prove};
use svc_core::rules::gate::Caller;
use svc_core::state::evidence::merkle::{leaf_hash, verify_consistency, verify_inclusion};
use svc_core::state::evidence::{Chain, TILE_WIDTH, Tile, TileId};
use svc_core::testing::world::{World, request};
use svc_core::turn::{Halt, Scope};
use svc_core::value::digest::Digest;
use svc_core::value::id::{EvidenceId, WorkspaceId};
use svc_core::value::{Id as _, Span};

use super::{PAY, calm};

/// Every record's id and hash, in the order of their places.
fn placed(world: &mut World) -> Vec<(EvidenceId, Digest)> {
    let mut entries = super::ledger::entries(world);
    entries.retain(|it| it.place.is_some());
    entries.iter().map(|it| (it.id, it.place.as_ref().unwrap().hash)).collect()
}

fn look<T>(world: &mut World, rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>) -> T {
    look_for(world, rule).unwrap()
}

fn look_for<T>(world: &mut World, rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>) -> Result<T, &'static str> {
    world.engine().read(rule).map_err(|failure| match failure {
        Failure::Refused(refusal) => refusal.type_(),
        other => panic!("{other}"),
    })
}

fn grow(world: &mut World, agent: &Caller, times: usize) {
    for _ in 0..times {
        world.authorize(agent, request("crm.read"));
    }
    world.advance(Span::seconds(1));
}

/// Across two full tiles every record is proved, the oldest and the youngest, and every smaller size is continued.
#[test]
fn every_record_is_proved_and_every_size_continues() {
    let (mut world, agent) = calm(&[PAY]);
    let workspace: WorkspaceId = agent.workspace;
    let mut roots = Vec::new();
    for times in [3, 250, 1, 1, 270, 110, 5] {
        grow(&mut world, &agent, times);
        let head = look(&mut world, |scope| chain(scope, workspace));
        roots.push((head.size, head.root()));
    }
    let records = placed(&mut world);
    let size = records.len() as u64;
    assert!(size > 2 * TILE_WIDTH);
    for (seq, (id, hash)) in records.iter().enumerate().step_by(7) {
        let proof = look(&mut world, |scope| prove(scope, workspace, *id));
        let path = proof.placed.unwrap();
        let hashes: Vec<_> = path.hashes.iter().map(|it| *it.as_bytes()).collect();
        let leaf = leaf_hash(hash.as_bytes());
        let checked = verify_inclusion(leaf.as_bytes(), seq as u64, size, &hashes, path.root.as_bytes());
        assert_eq!(checked, Ok(()), "{seq} of {size}");
    }
    let (newest, root) = *roots.last().unwrap();
    for (old, before) in roots {
        let (again, proof) = look(&mut world, |scope| {
            let head = chain(scope, workspace)?;
            continues(scope, &head, old)
        });
        assert_eq!(again, before, "{old}");
        let proof: Vec<_> = proof.iter().map(|it| *it.as_bytes()).collect();
        assert_eq!(verify_consistency(old, before.as_bytes(), newest, root.as_bytes(), &proof), Ok(()), "{old}");
    }
    let tile: std::sync::Arc<Tile> = world.row(TileId { workspace, level: 0, index: 1 });
    let head: std::sync::Arc<Chain> = world.row(workspace);
    assert!(tile.is_full());
    let last: std::sync::Arc<Tile> = world.row(head.last_tile());
    assert!(!last.is_full() && !last.hashes.is_empty() && !head.tail.is_empty());
    assert_eq!((last.hashes.len() + head.tail.len()) as u64, size % TILE_WIDTH);
}

/// A record that waits for its place has no proof yet; another workspace's has none at all.
#[test]
fn a_record_without_a_place_is_not_proved() {
    let (mut world, agent) = calm(&[PAY]);
    let evidence = world.authorize(&agent, request("crm.read")).action().evidence;
    assert!(look(&mut world, |scope| prove(scope, agent.workspace, evidence)).placed.is_none());
    world.advance(Span::seconds(1));
    assert!(look(&mut world, |scope| prove(scope, agent.workspace, evidence)).placed.is_some());
    let elsewhere = WorkspaceId::from_bits(77);
    assert_eq!(look_for(&mut world, |scope| prove(scope, elsewhere, evidence)).err(), Some("not_found"));
}
