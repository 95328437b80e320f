//! The stamps a writing session knows to be current.
//!
//! While no other connection has committed, what this one has loaded, checked or written is what the database holds.
//! **Invariant:** after another connection's commit nothing that was seen before it is trusted.

use std::collections::HashMap;

use svc_core::store::{Key, Stamp};

/// How many stamps are kept; then all are forgotten, which costs a look each and nothing else.
const KEPT_MAX: usize = 32_768;

/// Stamps as this session has seen them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    stamps: HashMap<Key, Stamp, foldhash::fast::RandomState>,
    version: Option<i64>,
}

impl Seen {
    /// What the database says of other connections' commits, asked inside the transaction at hand. Gives whether there may have
    /// been some since the last time.
    pub(super) fn at_version(&mut self, version: i64) -> bool {
        let others = self.version != Some(version);
        if others {
            self.stamps.clear();
            self.version = Some(version);
        }
        others
    }

    /// Whether `key` is known to be at `stamp` still.
    pub(super) fn agrees(&self, key: &Key, stamp: Stamp) -> bool {
        self.stamps.get(key) == Some(&stamp)
    }

    /// A row was read. An immutable one is never checked, so its stamp is not worth keeping.
    pub(super) fn note(&mut self, key: Key, stamp: Stamp) {
        if key.table().is_immutable() {
            return;
        }
        if self.stamps.len() >= KEPT_MAX {
            self.stamps.clear();
        }
        self.stamps.insert(key, stamp);
    }

    /// A row was written, durably. A row that was not seen before is most often one that no later decision reads.
    pub(super) fn wrote(&mut self, key: &Key, stamp: Stamp) {
        if let Some(known) = self.stamps.get_mut(key) {
            *known = stamp;
        }
    }

    /// Trusts nothing any more.
    pub(super) fn forget(&mut self) {
        self.stamps.clear();
        self.version = None;
    }
}
