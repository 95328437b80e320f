//! The rows that a driver keeps between turns: a bounded cache of two generations. Stale rows make commits conflict; they
//! never make a wrong decision.

use std::collections::HashMap;

use crate::store::{Key, Record, Stamp};

type Map = HashMap<Key, (Stamp, Option<Record>), foldhash::fast::FixedState>;

/// Rows by key, each at the stamp it was seen at; an absent row is kept for the length of a turn.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    young: Map,
    old: Map,
    generation: usize,
}

impl Rows {
    /// A cache that keeps between `capacity / 2` and `capacity` rows once there are so many.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { young: Map::default(), old: Map::default(), generation: capacity / 2 }
    }

    /// The row under `key`, if it is known: its stamp, and its image or `None` where there is no row.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<(Stamp, Option<&Record>)> {
        self.young.get(key).or_else(|| self.old.get(key)).map(|(stamp, record)| (*stamp, record.as_ref()))
    }

    /// Keeps what is known of `key` now.
    pub fn insert(&mut self, key: Key, stamp: Stamp, record: Option<Record>) {
        self.young.insert(key, (stamp, record));
    }

    /// Forgets one row.
    pub fn forget(&mut self, key: &Key) {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Forgets everything: after an outcome that nobody knows.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// How many rows are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len().saturating_add(self.old.len())
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Between turns: lets go of what was not touched for a generation.
    pub(super) fn settle(&mut self) {
        if self.young.len() <= self.generation {
            return;
        }
        self.young.retain(|_, (_, record)| record.is_some());
        self.old = std::mem::take(&mut self.young);
    }

    /// Notes that rows were used, so that they outlive the next generation.
    pub(super) fn touch(&mut self, keys: &[Key]) {
        if self.old.is_empty() {
            return;
        }
        for key in keys {
            if let Some(row) = self.old.remove(key) {
                self.young.entry(*key).or_insert(row);
            }
        }
    }
}
