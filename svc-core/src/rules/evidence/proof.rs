//! What shows that a record stands in the ledger, and that one size of the ledger continues another: read from tiles, so that
//! a proof of the oldest record of a long ledger costs what one of a young record does.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::evidence::merkle::{Node, Span, consistency, inclusion};
use crate::state::evidence::{Chain, Entry, Tile, TileId, root_over};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::{EvidenceId, WorkspaceId};

/// A record with its path in the tree.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The record.
    pub entry: Arc<Entry>,
    /// Where it stands; `None` while it waits for its place.
    pub placed: Option<Path>,
}

/// A record's path to the root of the ledger as it stood when this was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The tree's size.
    pub size: u64,
    /// Its root.
    pub root: Digest,
    /// The hashes beside the way up, nearest the leaf first.
    pub hashes: Vec<Digest>,
}

/// The record with this id, and its path if it has a place.
///
/// # Errors
/// `not_found` where this workspace has no such record.
pub fn prove(scope: &mut Scope<'_>, workspace: WorkspaceId, id: EvidenceId) -> Result<Proof, Halt> {
    scope.want(&[Entry::key(id), Chain::key(workspace)])?;
    let entry = scope.get::<Entry>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    let chain = chain(scope, workspace)?;
    let placed = match &entry.place {
        Some(place) => Some(path(scope, &chain, place.seq)?),
        None => None,
    };
    Ok(Proof { entry, placed })
}

/// The ledger's head.
///
/// # Errors
/// `not_found` where there is no such workspace.
pub fn chain(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<Arc<Chain>, Halt> {
    Ok(scope.get::<Chain>(workspace)?.ok_or_else(Refusal::not_found)?)
}

/// The path of the record at `seq`.
///
/// # Errors
/// `not_found` where no record stands there.
pub fn path(scope: &mut Scope<'_>, chain: &Chain, seq: u64) -> Result<Path, Halt> {
    let spans = inclusion(seq, chain.size).ok_or_else(Refusal::not_found)?;
    let hashes = hashes(scope, chain, &spans)?;
    Ok(Path { size: chain.size, root: chain.root(), hashes })
}

/// What shows that the ledger continues the one of its first `old` records, and that one's root.
///
/// # Errors
/// `invalid_request` on `since` for a size of 0, and for more records than there are, which are told: whoever holds a checkpoint of
/// so many then knows that the ledger has been put back.
pub fn continues(scope: &mut Scope<'_>, chain: &Chain, old: u64) -> Result<(Digest, Vec<Digest>), Halt> {
    let why = || match chain.size {
        has if has < old => format!(
            "is more than the {has} records that the ledger has: the checkpoint is another ledger's, or this one was put back to what it was \
             before"
        ),
        _ => "must be the size of a checkpoint, from 1".to_owned(),
    };
    let proof = consistency(old, chain.size).ok_or_else(|| Refusal::invalid_field("since", why()))?;
    let mut spans = vec![Span::whole(old)];
    spans.extend(proof);
    let mut hashes = hashes(scope, chain, &spans)?;
    let root = if hashes.is_empty() { return Err(Refusal::internal().into()) } else { hashes.remove(0) };
    Ok((root, hashes))
}

/// The hashes of these stretches, each tile asked for once and all in one round.
fn hashes(scope: &mut Scope<'_>, chain: &Chain, spans: &[Span]) -> Result<Vec<Digest>, Halt> {
    let last = chain.last_tile();
    let nodes = spans.iter().flat_map(|it| it.nodes());
    let mut ids: Vec<TileId> = nodes.map(|node| TileId::of(chain.workspace, node).0).collect();
    ids.sort_unstable();
    ids.dedup();
    scope.want(&ids.into_iter().map(Tile::key).collect::<Vec<_>>())?;
    let mut hash = |node: Node| {
        let (id, place) = TileId::of(chain.workspace, node);
        let tile = scope.get::<Tile>(id)?;
        let found = if id == last {
            let leaves = tile.iter().flat_map(|it| &it.hashes).chain(&chain.tail).copied().collect::<Vec<_>>();
            leaves.get(place).filter(|it| !it.is_empty()).map(root_over)
        } else {
            tile.and_then(|it| it.node(place))
        };
        Ok::<Digest, Halt>(found.ok_or_else(Refusal::internal)?)
    };
    spans.iter().map(|span| span.hash(&mut hash)).collect()
}
