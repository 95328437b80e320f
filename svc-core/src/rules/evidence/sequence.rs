//! Gives ledger records their places: `seq`, the hash of the record before, and their own.

use crate::refusal::Refusal;
use crate::state::evidence::{Chain, Entry, TILE_WIDTH, Tile, TileId, filled};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::id::{EvidenceId, WorkspaceId};

/// The tiles above the leaves that placing up to `more` records can change: those that a full tile of leaves adds to.
fn above(chain: &Chain, more: usize) -> Vec<Key> {
    let more = u64::try_from(more).unwrap_or(u64::MAX);
    let (mut from, mut to) = (chain.size / TILE_WIDTH, chain.size.saturating_add(more) / TILE_WIDTH);
    let (mut level, mut out) = (1, Vec::new());
    while from < to {
        let indexes = from / TILE_WIDTH..=to.saturating_sub(1) / TILE_WIDTH;
        out.extend(indexes.map(|index| Tile::key(TileId { workspace: chain.workspace, level, index })));
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
    scope.want(&above(&head, asked.entries.len()))?;
    let mut chain = Chain::clone(&head);
    for id in &asked.entries {
        let waits = |it: &std::sync::Arc<Entry>| it.place.is_none() && it.workspace == asked.workspace;
        if let Some(entry) = scope.get::<Entry>(*id)?.filter(waits) {
            let index = chain.size / TILE_WIDTH;
            let (placed, leaves) = chain.place(Entry::clone(&entry));
            scope.put(placed);
            if let Some(leaves) = leaves {
                let tile = TileId { workspace: asked.workspace, level: 0, index };
                let changed = filled::<Halt>(tile, leaves, |id| Ok(scope.get::<Tile>(id)?.map(|it| Tile::clone(&it))))?;
                for tile in changed {
                    scope.put(tile);
                }
            }
        }
    }
    let size = chain.size;
    if chain != *head {
        scope.put(chain);
    }
    Ok(size)
}
