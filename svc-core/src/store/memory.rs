//! The reference store: rows and index entries in two ordered maps. Tests and embedders without a disk use it;
//! what it does is what every store has to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Commit, CommitError, Committed, Found, Key, Loaded, Range, Record, Stamp, Store};
use crate::value::link::{Index, Link, Order};

#[derive(Clone, Debug, Default)]
struct Inner {
    rows: BTreeMap<Key, (Stamp, Record)>,
    links: BTreeMap<(Index, u128), BTreeSet<(u128, Key)>>,
    last: u64,
}

/// A store in memory. Clones share the same rows: each clone is one more session of it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Inner>>);

/// The memory store cannot fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Never {}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held cannot leave half a commit: writes below cannot panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A store of its own that begins with what this one holds.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().rows.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().rows.is_empty()
    }

    /// Every row, sorted by key: what an auditor reads.
    #[must_use]
    pub fn dump(&self) -> Vec<(Key, Stamp, Record)> {
        self.lock().rows.iter().map(|(key, (stamp, record))| (*key, *stamp, record.clone())).collect()
    }
}

impl Inner {
    fn loaded(&self, key: Key) -> Loaded {
        match self.rows.get(&key) {
            Some((stamp, record)) => Loaded { key, stamp: *stamp, record: Some(record.clone()) },
            None => Loaded { key, stamp: Stamp::ABSENT, record: None },
        }
    }

    fn place(link: Link, written: Stamp) -> u128 {
        match link.order {
            Order::At(order) => order,
            Order::Stamp => u128::from(written.0),
        }
    }
}

impl Store for MemoryStore {
    type Error = Never;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Never> {
        let inner = self.lock();
        Ok(keys.iter().map(|key| inner.loaded(*key)).collect())
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Never>> {
        let mut inner = self.lock();
        let present = commit.checks.iter().map(|(key, stamp)| (inner.loaded(*key), *stamp));
        let moved: Vec<Loaded> = present.filter(|(row, stamp)| row.stamp != *stamp).map(|(row, _)| row).collect();
        if !moved.is_empty() {
            return Ok(Committed::Conflict(moved));
        }
        inner.last += 1;
        let stamp = Stamp(inner.last);
        for write in &commit.writes {
            let before = inner.loaded(write.key).stamp;
            for link in &write.unlink {
                if let Some(list) = inner.links.get_mut(&(link.index, link.prefix)) {
                    list.remove(&(Inner::place(*link, before), write.key));
                }
            }
            for link in &write.link {
                inner
                    .links
                    .entry((link.index, link.prefix))
                    .or_default()
                    .insert((Inner::place(*link, stamp), write.key));
            }
            match &write.record {
                Some(record) => inner.rows.insert(write.key, (stamp, record.clone())),
                None => inner.rows.remove(&write.key),
            };
        }
        Ok(Committed::Applied(stamp))
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Never> {
        let inner = self.lock();
        let Some(list) = inner.links.get(&(range.index, range.prefix)) else { return Ok(Vec::new()) };
        let inside = |entry: &&(u128, Key)| {
            let after = match range.after {
                None => true,
                Some(after) if range.newest_first => **entry < after,
                Some(after) => **entry > after,
            };
            after && entry.0 >= range.from && entry.0 < range.until
        };
        let found = |entry: &(u128, Key)| Found { order: entry.0, row: inner.loaded(entry.1) };
        let listed = list.iter().filter(inside);
        Ok(if range.newest_first {
            listed.rev().take(range.limit).map(found).collect()
        } else {
            listed.take(range.limit).map(found).collect()
        })
    }
}
