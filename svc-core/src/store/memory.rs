//! The reference store: rows in a map, and the lists of each index in order. Tests and embedders without a disk use it;
//! what it does is what every store has to do.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Commit, CommitError, Committed, Found, Key, Loaded, Range, Record, Stamp, Store};
use crate::value::link::{Index, Link, Order};

/// A row's place in a list. Every place of an order lies behind `(order, None)`, which none has.
type Place = (u128, Option<Key>);

#[derive(Clone, Debug, Default)]
struct Inner {
    rows: HashMap<Key, (Stamp, Record), foldhash::fast::FixedState>,
    links: BTreeMap<(Index, u128), BTreeSet<Place>>,
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
        let mut rows: Vec<_> =
            self.lock().rows.iter().map(|(key, (stamp, record))| (*key, *stamp, record.clone())).collect();
        rows.sort_unstable_by_key(|(key, ..)| *key);
        rows
    }
}

impl Inner {
    fn stamp(&self, key: &Key) -> Stamp {
        self.rows.get(key).map_or(Stamp::ABSENT, |(stamp, _)| *stamp)
    }

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
        let moved = commit.checks.iter().filter(|(key, stamp)| inner.stamp(key) != *stamp);
        let moved: Vec<Loaded> = moved.map(|(key, _)| inner.loaded(*key)).collect();
        if !moved.is_empty() {
            return Ok(Committed::Conflict(moved));
        }
        inner.last += 1;
        let stamp = Stamp(inner.last);
        for write in &commit.writes {
            let before = if write.unlink.is_empty() { Stamp::ABSENT } else { inner.stamp(&write.key) };
            for link in &write.unlink {
                if let Entry::Occupied(mut list) = inner.links.entry((link.index, link.prefix)) {
                    list.get_mut().remove(&(Inner::place(*link, before), Some(write.key)));
                    // Most lists are of a thing that comes to its end, and there is no end to them.
                    if list.get().is_empty() {
                        list.remove();
                    }
                }
            }
            for link in &write.link {
                inner
                    .links
                    .entry((link.index, link.prefix))
                    .or_default()
                    .insert((Inner::place(*link, stamp), Some(write.key)));
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
        let after: Option<Place> = range.after.map(|(order, key)| (order, Some(key)));
        let (mut first, mut end) = (Bound::Included((range.from, None)), (range.until, None));
        match after {
            Some(after) if range.newest_first => end = end.min(after),
            Some(after) if after >= (range.from, None) => first = Bound::Excluded(after),
            Some(_) | None => {}
        }
        let (Bound::Included(lowest) | Bound::Excluded(lowest)) = first else { return Ok(Vec::new()) };
        if lowest >= end {
            return Ok(Vec::new());
        }
        let listed = list.range((first, Bound::Excluded(end)));
        let found = |(order, key): &Place| key.map(|key| Found { order: *order, row: inner.loaded(key) });
        Ok(if range.newest_first {
            listed.rev().filter_map(found).take(range.limit).collect()
        } else {
            listed.filter_map(found).take(range.limit).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::store::Write;
    use crate::testing::sample;

    /// A list that nothing is on any more takes no place.
    #[test]
    fn a_list_goes_with_its_last_entry() {
        let mut store = MemoryStore::new();
        let mut write = |stamp, record: Option<Record>, row: &Record| {
            let (key, links) = (row.key(), row.links());
            let (unlink, link) = if record.is_some() { (vec![], links) } else { (links, vec![]) };
            let commit = Commit { checks: vec![(key, stamp)], writes: vec![Write { key, record, unlink, link }] };
            let Committed::Applied(stamp) = store.commit(&commit).unwrap() else { return Stamp::ABSENT };
            stamp
        };
        let rows = sample::rows();
        for row in &rows {
            let stamp = write(Stamp::ABSENT, Some(row.clone()), row);
            assert_ne!(stamp, Stamp::ABSENT);
            assert_ne!(write(stamp, None, row), Stamp::ABSENT);
        }
        assert!(rows.iter().any(|it| !it.links().is_empty()));
        assert!(store.is_empty() && store.lock().links.is_empty());
    }
}
