//! Things that are kept, each for somebody: no more than there is room for, and for nobody more than a share.
//!
//! **Invariant:** one is let go of at a time. Of whoever has their share it is one of theirs, and where all room is taken one of whoever
//! has the most; of these the one that was unused for longest. Whoever brings more and more takes nothing from who has less.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// What is kept, by key and by whom it is for.
#[derive(Debug)]
pub(crate) struct Bounded<O, K, V> {
    of_all: usize,
    of_one: usize,
    kept: HashMap<K, Kept<O, V>>,
    /// The keys of each, those that were unused for longest first.
    uses: HashMap<O, BTreeMap<u64, K>>,
    /// Counts uses: the clock by which one was unused for longer than another.
    used: u64,
}

#[derive(Debug)]
struct Kept<O, V> {
    owner: O,
    used: u64,
    value: V,
}

impl<O: Clone + Eq + Hash, K: Clone + Eq + Hash, V> Bounded<O, K, V> {
    /// Room for so many, of one owner's at most `of_one`.
    pub(crate) fn new(of_all: usize, of_one: usize) -> Self {
        Self { of_all, of_one, kept: HashMap::new(), uses: HashMap::new(), used: 0 }
    }

    /// What is kept under this key, which counts as a use.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.used += 1;
        let kept = self.kept.get_mut(key)?;
        let before = std::mem::replace(&mut kept.used, self.used);
        if let Some(uses) = self.uses.get_mut(&kept.owner)
            && let Some(key) = uses.remove(&before)
        {
            uses.insert(self.used, key);
        }
        Some(&mut kept.value)
    }

    /// The same, which counts as none.
    pub(crate) fn peek<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.kept.get(key).map(|it| &it.value)
    }

    /// Keeps this for `owner`, in the place of what was kept under the key. Gives what is let go of for it, whole as it was.
    pub(crate) fn keep(&mut self, owner: O, key: K, value: V) -> Option<V> {
        let replaced = self.remove(&key);
        let let_go = self.make_room(&owner);
        self.used += 1;
        self.uses.entry(owner.clone()).or_default().insert(self.used, key.clone());
        self.kept.insert(key, Kept { owner, used: self.used, value });
        replaced.or(let_go)
    }

    /// Lets go of what is kept under this key.
    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let kept = self.kept.remove(key)?;
        if let Some(uses) = self.uses.get_mut(&kept.owner) {
            uses.remove(&kept.used);
            if uses.is_empty() {
                self.uses.remove(&kept.owner);
            }
        }
        Some(kept.value)
    }

    /// Lets go of all that `keeps` does not hold.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&V) -> bool) {
        let uses = &mut self.uses;
        self.kept.retain(|_, it| {
            let is_kept = keeps(&it.value);
            if !is_kept && let Some(of_owner) = uses.get_mut(&it.owner) {
                of_owner.remove(&it.used);
                if of_owner.is_empty() {
                    uses.remove(&it.owner);
                }
            }
            is_kept
        });
    }

    /// Lets go of all of it, and gives it.
    pub(crate) fn take(&mut self) -> Vec<V> {
        self.uses.clear();
        self.kept.drain().map(|(_, it)| it.value).collect()
    }

    /// How much is kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    fn make_room(&mut self, asker: &O) -> Option<V> {
        let own = self.uses.get(asker).map_or(0, BTreeMap::len);
        let whose = if own >= self.of_one {
            self.uses.get(asker)
        } else if self.kept.len() >= self.of_all {
            let first = |uses: &BTreeMap<u64, K>| Reverse(uses.keys().next().copied());
            // Where several have as much it is one of the asker's own, if they are among them.
            let most = self.uses.iter().max_by_key(|(owner, uses)| (uses.len(), *owner == asker, first(uses)));
            most.map(|(_, uses)| uses)
        } else {
            None
        };
        let oldest = whose.and_then(|uses| uses.values().next()).cloned()?;
        self.remove(&oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was unused for longest is let go of, one at a time, and of whoever has their share one of theirs.
    #[test]
    fn what_was_unused_for_longest_is_let_go_of() {
        let mut kept = Bounded::new(4, 3);
        for key in 0..3 {
            assert_eq!(kept.keep('a', key, key), None);
        }
        assert_eq!(kept.get(&0), Some(&mut 0));
        assert_eq!(kept.keep('a', 3, 3), Some(1), "its owner has its share");
        assert_eq!(kept.keep('a', 3, 33), Some(3), "in its place");
        assert_eq!(kept.keep('b', 4, 4), None);
        assert_eq!((kept.peek(&0), kept.peek(&2), kept.peek(&3)), (Some(&0), Some(&2), Some(&33)));
        assert_eq!(kept.keep('b', 5, 5), Some(2));
        assert_eq!((kept.len(), kept.remove(&5), kept.remove(&5)), (4, Some(5), None));
        kept.retain(|it| *it != 4);
        assert_eq!((kept.len(), kept.uses.len()), (2, 1));
        assert_eq!(kept.take().len(), 2);
        assert!(kept.kept.is_empty() && kept.uses.is_empty());
    }

    /// Where all room is taken, whoever has the most gives, however many that are; who has less keeps what they have, and who has the
    /// same as others gives of their own.
    #[test]
    fn whoever_has_the_most_gives() {
        let mut kept = Bounded::new(100, 100);
        kept.keep(0, 0, 0);
        for key in 1..1_000 {
            kept.keep(1 + key % 3, key, key);
            assert!(kept.len() <= 100);
        }
        assert_eq!(kept.peek(&0), Some(&0));
        let most = kept.uses.values().map(BTreeMap::len).max();
        assert_eq!(most, Some(33), "who bring more hold as much as each other");
        let mut kept = Bounded::new(2, 2);
        kept.keep(1, 1, 1);
        kept.keep(2, 2, 2);
        assert_eq!(kept.keep(2, 3, 3), Some(2), "its own");
        assert_eq!(kept.keep(3, 4, 4), Some(1), "the one that was unused for longest");
        let mut kept = Bounded::new(20, 20);
        for key in 0..20 {
            kept.keep(key, key, key);
        }
        for key in 20..40 {
            assert_eq!(kept.keep(key, key, key), Some(key - 20), "of many who have as much, too");
        }
    }
}
