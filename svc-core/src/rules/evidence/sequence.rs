//! Gives ledger records their places: `seq`, the hash of the record before, and their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::evidence::{Chain, Entry, TILE_WIDTH, Tile, TileId, filled};
use crate::store::{Key, Record, Row};
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::{EvidenceId, WorkspaceId};

/// The tiles above the leaves that placing up to `more` records can change: those that a full tile of leaves adds to.
fn above(chain: &Chain, more: usize) -> Vec<Key> {
    let more = u64::try_from(more).unwrap_or(u64::MAX);
    let (mut from, mut to) = (chain.size / TILE_WIDTH, chain.size.saturating_add(more) / TILE_WIDTH);
    let (mut level, mut out) = (1, Vec::new());
    while from < to {
        let indexes = from / TILE_WIDTH..=to.saturating_sub(1) / TILE_WIDTH;
        out.extend(indexes.map(|index| Tile::key(TileId::new(chain.workspace, level, index))));
        (from, to, level) = (from / TILE_WIDTH, to / TILE_WIDTH, level.saturating_add(1));
    }
    out
}

/// Places records of one workspace, in the order in which they are named: that of the index of waiting records, which
/// is the order of their commits and within a commit that of their writing.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Whose ledger.
    pub workspace: WorkspaceId,
    /// The records that wait.
    pub entries: Vec<EvidenceId>,
}

/// Places what still waits, and gives how many records have places now. What another sequencer placed is passed over.
///
/// # Errors
/// `internal` where the chain is not there.
pub fn sequence(scope: &mut Scope<'_>, asked: &Sequence) -> Result<u64, Halt> {
    let mut keys: Vec<Key> = asked.entries.iter().map(|id| Entry::key(*id)).collect();
    keys.push(Chain::key(asked.workspace));
    scope.want(&keys)?;
    let head = scope.get::<Chain>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    place(scope, &head, &asked.entries)
}

/// Places every record that the commands of a batch have written, in the order in which they wrote them: what
/// [`Decide::close`](crate::turn::Decide::close) is for commands of a store with one writer. Nothing waits there, so nothing is
/// read and written a second time.
///
/// # Errors
/// [`Halt::Load`] alone. Records of a workspace that has no chain wait for one.
pub fn place_staged(scope: &mut Scope<'_>) -> Result<(), Halt> {
    let mut waiting: BTreeMap<WorkspaceId, Vec<EvidenceId>> = BTreeMap::new();
    for record in scope.staged() {
        if let Record::Entry(entry) = record
            && entry.place.is_none()
        {
            waiting.entry(entry.workspace).or_default().push(entry.id);
        }
    }
    // Ids of one turn are in the order of writing.
    waiting.values_mut().for_each(|ids| ids.sort_unstable());
    scope.want(&waiting.keys().map(|it| Chain::key(*it)).collect::<Vec<_>>())?;
    for (workspace, entries) in waiting {
        if let Some(head) = scope.get::<Chain>(workspace)? {
            place(scope, &head, &entries)?;
        }
    }
    Ok(())
}

/// Places those of `entries` that wait behind `head`; how many records have places then.
fn place(scope: &mut Scope<'_>, head: &Chain, entries: &[EvidenceId]) -> Result<u64, Halt> {
    let mut keys = above(head, entries.len());
    keys.extend(head.takes_tile(entries.len()).then(|| Tile::key(head.last_tile())));
    scope.want(&keys)?;
    let mut chain = Chain::clone(head);
    for id in entries {
        let waits = |it: &Arc<Entry>| it.place.is_none() && it.workspace == head.workspace;
        if let Some(entry) = scope.get::<Entry>(*id)?.filter(waits) {
            let tile = chain.last_tile();
            let (placed, newest) = chain.place(Entry::clone(&entry));
            scope.put(placed);
            if let Some(newest) = newest {
                let leaves = leaves(scope, tile, newest)?;
                let changed = filled::<Halt>(tile, leaves, |id| Ok(scope.get::<Tile>(id)?.map(|it| Tile::clone(&it))))?;
                for tile in changed {
                    scope.put(tile);
                }
            }
        }
    }
    let size = chain.size;
    if size > head.size {
        if let Some(newest) = chain.hand_over() {
            let tile = chain.last_tile();
            let leaves = leaves(scope, tile, newest)?;
            scope.put(Tile::partial(tile, leaves));
        }
        scope.put(chain);
    }
    Ok(size)
}

/// The leaf hashes that the row of a tile has, and then the newest.
fn leaves(scope: &mut Scope<'_>, tile: TileId, newest: Vec<Digest>) -> Result<Vec<Digest>, Halt> {
    let mut leaves = scope.get::<Tile>(tile)?.map(|it| it.hashes.clone()).unwrap_or_default();
    leaves.extend(newest);
    Ok(leaves)
}
