//! The head of a workspace's ledger: what placing a record and naming a checkpoint needs, and no more, however long the
//! ledger is.

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::merkle::{Edge, leaf_hash};
use super::tile::{TILE_WIDTH, TileId, packed};
use crate::value::digest::Digest;
use crate::value::id::WorkspaceId;
use crate::value::link::{Link, Linked};

/// From how many leaf hashes on the chain hands them to their tile at the end of a commit. The chain is written by nearly every
/// commit, so it is kept short; the tile is up to four times as long.
const TAIL_FULL: usize = 64;

/// How many records have their places, the hash of the last, and the right edge of the tree over them all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// How many records have places; the next `seq`, and the tree's size.
    pub size: u64,
    /// The hash of the last one, 32 zero bytes while there is none.
    pub head: Digest,
    /// The tree's right edge: at most 64 hashes.
    #[serde(default)]
    pub edge: Edge,
    /// The newest leaf hashes, which are in no tile yet. The last tile of leaves, while it is not full, is what its row holds
    /// and then these.
    #[serde(default, with = "packed")]
    pub tail: Vec<Digest>,
}

impl Chain {
    /// The chain without a record.
    #[must_use]
    pub fn empty(workspace: WorkspaceId) -> Self {
        Self { workspace, size: 0, head: Digest::from_bytes([0; 32]), edge: Edge::default(), tail: Vec::new() }
    }

    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.edge.root()
    }

    /// The tile of leaves that the next record belongs to.
    #[must_use]
    pub fn last_tile(&self) -> TileId {
        TileId::new(self.workspace, 0, self.size / TILE_WIDTH)
    }

    /// Gives `entry` the next place. Where that fills a tile of leaves, the hashes that its row lacks come too, and the tail is
    /// empty again.
    #[must_use]
    pub fn place(&mut self, entry: Entry) -> (Entry, Option<Vec<Digest>>) {
        let placed = entry.placed(self.size, self.head);
        let Some(place) = &placed.place else { return (placed, None) };
        let leaf = leaf_hash(place.hash.as_bytes());
        self.edge.push(self.size, leaf);
        self.tail.push(leaf);
        self.head = place.hash;
        self.size = self.size.saturating_add(1);
        let full = self.size.is_multiple_of(TILE_WIDTH).then(|| std::mem::take(&mut self.tail));
        (placed, full)
    }

    /// At the end of a commit: the hashes that go to the last tile now, if they are enough.
    #[must_use]
    pub fn hand_over(&mut self) -> Option<Vec<Digest>> {
        (self.tail.len() >= TAIL_FULL).then(|| std::mem::take(&mut self.tail))
    }

    /// Whether placing `more` records takes the row of the last tile.
    #[must_use]
    pub fn takes_tile(&self, more: usize) -> bool {
        let place = usize::try_from(self.size % TILE_WIDTH).unwrap_or(0);
        let full = usize::try_from(TILE_WIDTH).unwrap_or(usize::MAX);
        self.tail.len().saturating_add(more) >= TAIL_FULL || place.saturating_add(more) >= full
    }
}

impl Linked for Chain {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
