//! Places that are lent out: no more than there are, and to nobody more than a share, so that whoever asks without end keeps nobody
//! else waiting.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Places, by who holds them.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    of_all: usize,
    of_one: usize,
    held: Arc<Mutex<Held<K>>>,
}

#[derive(Debug)]
struct Held<K> {
    all: usize,
    by: HashMap<K, usize>,
}

/// A place, or several, given back when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Share<K: Eq + Hash> {
    held: Arc<Mutex<Held<K>>>,
    asker: K,
    count: usize,
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// So many places, of which one asker holds at most `of_one`.
    pub(crate) fn new(of_all: usize, of_one: usize) -> Self {
        Self { of_all, of_one, held: Arc::new(Mutex::new(Held { all: 0, by: HashMap::new() })) }
    }

    /// A place for this asker, where one is free and they hold less than their share.
    pub(crate) fn take(&self, asker: K) -> Option<Share<K>> {
        self.lend(asker, self.of_one, 1)
    }

    /// So many places at once for this asker.
    pub(crate) fn take_many(&self, asker: K, count: usize) -> Option<Share<K>> {
        self.lend(asker, self.of_one, count)
    }

    /// The same where this asker may hold at most `of_one`, if that is less than anybody's share.
    pub(crate) fn take_within(&self, asker: K, of_one: usize) -> Option<Share<K>> {
        self.lend(asker, of_one, 1)
    }

    fn lend(&self, asker: K, of_one: usize, count: usize) -> Option<Share<K>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.by.get(&asker).copied().unwrap_or(0).saturating_add(count);
        let all = held.all.saturating_add(count);
        if own > of_one.min(self.of_one) || all > self.of_all {
            return None;
        }
        held.by.insert(asker, own);
        held.all = all;
        Some(Share { held: Arc::clone(&self.held), asker, count })
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.all = held.all.saturating_sub(self.count);
        match held.by.get_mut(&self.asker) {
            Some(own) if *own > self.count => *own = own.saturating_sub(self.count),
            _ => drop(held.by.remove(&self.asker)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// One asker has a share and leaves the others places; all have no more than there are; nothing is kept of who holds none.
    #[test]
    fn nobody_has_more_than_a_share() {
        let places = Shares::new(8, 3);
        let mut held: Vec<_> = (0..3).map(|_| places.take(1).unwrap()).collect();
        assert!(places.take(1).is_none());
        held.extend((2..7).map(|asker| places.take(asker).unwrap()));
        assert!(places.take(100).is_none());
        drop(held.remove(0));
        held.push(places.take(1).unwrap());
        assert!(places.take(1).is_none() && places.take(100).is_none());
        held.clear();
        held.push(places.take_many(1, 2).unwrap());
        assert!(places.take_many(1, 2).is_none() && places.take_many(2, 4).is_none());
        held.push(places.take_many(1, 1).unwrap());
        drop(held.remove(0));
        held.push(places.take_many(1, 2).unwrap());
        assert!(places.take(1).is_none());
        held.clear();
        let left = places.held.lock().unwrap();
        assert!(left.all == 0 && left.by.is_empty());
    }
}
