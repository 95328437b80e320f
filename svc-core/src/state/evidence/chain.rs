//! The head of a workspace's ledger: what placing a record and naming a checkpoint needs, and no more, however long the
//! ledger is.

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::merkle::{Edge, leaf_hash};
use super::tile::{TILE_WIDTH, packed};
use crate::value::digest::Digest;
use crate::value::id::WorkspaceId;
use crate::value::link::{Link, Linked};

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
    /// The leaf hashes of the last tile while it is not full: fewer than [`TILE_WIDTH`].
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

    /// Gives `entry` the next place. Where that fills a tile of leaves, its hashes come too, and the tail is empty again.
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
}

impl Linked for Chain {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
