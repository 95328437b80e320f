//! The head of a workspace's ledger.

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use crate::value::digest::Digest;
use crate::value::id::WorkspaceId;
use crate::value::link::{Link, Linked};

/// How many records have their places, and the hash of the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// How many records have places; the next `seq`.
    pub size: u64,
    /// The hash of the last one, 32 zero bytes while there is none.
    pub head: Digest,
}

impl Chain {
    /// The chain without a record.
    #[must_use]
    pub const fn empty(workspace: WorkspaceId) -> Self {
        Self { workspace, size: 0, head: Digest::from_bytes([0; 32]) }
    }

    /// Gives `entry` the next place.
    #[must_use]
    pub fn place(&mut self, entry: Entry) -> Entry {
        let placed = entry.placed(self.size, self.head);
        if let Some(place) = &placed.place {
            self.head = place.hash;
            self.size = self.size.saturating_add(1);
        }
        placed
    }
}

impl Linked for Chain {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
