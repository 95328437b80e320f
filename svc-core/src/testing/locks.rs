//! Rows in memory behind the locks of PostgreSQL at READ COMMITTED, one step at a time, so that a test can put two
//! commits into every order that a database could.
//!
//! A commit takes three statements: lock and compare every checked row; take a number and write; publish. What makes the
//! difference to the plain memory store: a locking read of an absent row locks nothing, so that another transaction may
//! insert it meanwhile; of two transactions that insert one key the second waits for the first, and loses if that one is
//! published; and numbers are taken before commits are published, so a lower one may appear later than a higher one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::{Commit, CommitError, Committed, Found, Key, Loaded, Range, Record, Stamp, Store};
use crate::value::link::Order;

/// A database with locks. Clones are sessions of it.
#[derive(Clone, Debug, Default)]
pub struct LockStore(Arc<Mutex<Inner>>);

/// The lock that a commit needs is held by a transaction that only a test can bring on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the row is locked by a transaction that is still open")]
pub struct Blocked;

/// A commit on its way. Dropped before its end it is rolled back, as by a lost connection.
#[derive(Debug)]
pub struct Transaction {
    store: LockStore,
    id: u64,
    commit: Commit,
    stage: Stage,
}

/// What a step of a [`Transaction`] did.
#[derive(Clone, Debug)]
pub enum Progress {
    /// It went on, and has steps to go.
    Moved,
    /// It waits for a lock that another transaction holds; nothing changed.
    Waits,
    /// It is at its end.
    Done(Committed),
}

#[derive(Debug)]
enum Stage {
    /// Locks rows in key order; what was absent when the statement began stays absent for it.
    Locking {
        seen: Vec<Loaded>,
    },
    /// All locks are held; the number is taken with the first write.
    Writing {
        stamp: Option<Stamp>,
        next: usize,
    },
    /// All is written and nothing visible.
    Publishing {
        stamp: Stamp,
    },
    Ended,
}

#[derive(Debug, Default)]
struct Inner {
    rows: BTreeMap<Key, (Stamp, Record)>,
    locks: BTreeMap<Key, Lock>,
    /// Rows that open transactions have inserted, by key, and by whom.
    inserting: BTreeMap<Key, u64>,
    transactions: u64,
    last: u64,
}

#[derive(Debug, Default)]
struct Lock {
    exclusive: Option<u64>,
    shared: BTreeSet<u64>,
}

impl LockStore {
    /// An empty database.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A database of its own that begins with the rows published here.
    #[must_use]
    pub fn fork(&self) -> Self {
        let inner = self.lock();
        let (rows, last) = (inner.rows.clone(), inner.last);
        Self(Arc::new(Mutex::new(Inner { rows, last, ..Inner::default() })))
    }

    /// Every published row, sorted by key.
    #[must_use]
    pub fn dump(&self) -> Vec<(Key, Stamp, Record)> {
        self.lock().rows.iter().map(|(key, (stamp, record))| (*key, *stamp, record.clone())).collect()
    }

    /// Opens a transaction for `commit`. Nothing happens before its first [`Transaction::step`].
    #[must_use]
    pub fn begin(&self, commit: &Commit) -> Transaction {
        let mut inner = self.lock();
        inner.transactions += 1;
        let id = inner.transactions;
        drop(inner);
        let stage = Stage::Locking { seen: Vec::new() };
        Transaction { store: self.clone(), id, commit: commit.clone(), stage }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction {
    /// Goes one statement on, or up to the lock it has to wait for.
    pub fn step(&mut self) -> Progress {
        let store = self.store.clone();
        let mut inner = store.lock();
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Locking { seen } => self.take_locks(&mut inner, seen),
            Stage::Writing { stamp, next } => self.write(&mut inner, stamp, next),
            Stage::Publishing { stamp } => {
                self.publish(&mut inner, stamp);
                Progress::Done(Committed::Applied(stamp))
            }
            Stage::Ended => Progress::Waits,
        }
    }

    fn take_locks(&mut self, inner: &mut Inner, mut seen: Vec<Loaded>) -> Progress {
        if seen.is_empty() {
            seen = self.commit.checks.iter().map(|(key, _)| inner.loaded(*key)).collect();
        }
        for row in seen.iter_mut().filter(|row| row.record.is_some()) {
            let exclusive = self.commit.writes.binary_search_by_key(&row.key, |write| write.key).is_ok();
            if !inner.take(row.key, self.id, exclusive) {
                self.stage = Stage::Locking { seen };
                return Progress::Waits;
            }
            // A row that another transaction changed while this one waited is seen as it is now.
            *row = inner.loaded(row.key);
        }
        let stale = |row: &&Loaded| {
            let check = self.commit.checks.binary_search_by_key(&row.key, |check| check.0);
            check.is_ok_and(|at| self.commit.checks[at].1 != row.stamp)
        };
        let moved: Vec<Loaded> = seen.iter().filter(stale).cloned().collect();
        if !moved.is_empty() {
            inner.let_go(self.id);
            return Progress::Done(Committed::Conflict(moved));
        }
        self.stage = Stage::Writing { stamp: None, next: 0 };
        Progress::Moved
    }

    fn write(&mut self, inner: &mut Inner, stamp: Option<Stamp>, from: usize) -> Progress {
        let stamp = stamp.unwrap_or_else(|| {
            inner.last += 1;
            Stamp(inner.last)
        });
        for (next, write) in self.commit.writes.iter().enumerate().skip(from) {
            let checked = self.commit.checks.binary_search(&(write.key, Stamp::ABSENT)).is_ok();
            if !checked {
                continue;
            }
            if inner.inserting.get(&write.key).is_some_and(|by| *by != self.id) {
                self.stage = Stage::Writing { stamp: Some(stamp), next };
                return Progress::Waits;
            }
            if inner.rows.contains_key(&write.key) {
                let moved = vec![inner.loaded(write.key)];
                inner.let_go(self.id);
                return Progress::Done(Committed::Conflict(moved));
            }
            inner.inserting.insert(write.key, self.id);
        }
        self.stage = Stage::Publishing { stamp };
        Progress::Moved
    }

    fn publish(&mut self, inner: &mut Inner, stamp: Stamp) {
        for write in &self.commit.writes {
            match &write.record {
                Some(record) => inner.rows.insert(write.key, (stamp, record.clone())),
                None => inner.rows.remove(&write.key),
            };
        }
        inner.let_go(self.id);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.store.lock().let_go(self.id);
    }
}

impl Inner {
    fn loaded(&self, key: Key) -> Loaded {
        let (stamp, record) = self.rows.get(&key).cloned().unzip();
        Loaded { key, stamp: stamp.unwrap_or(Stamp::ABSENT), record }
    }

    /// Locks a row for `by`, or tells that somebody else's lock is in the way.
    fn take(&mut self, key: Key, by: u64, exclusive: bool) -> bool {
        let lock = self.locks.entry(key).or_default();
        let others = lock.shared.iter().any(|it| *it != by);
        let free = lock.exclusive.is_none_or(|it| it == by) && !(exclusive && others);
        if free && exclusive {
            lock.exclusive = Some(by);
        } else if free {
            lock.shared.insert(by);
        }
        free
    }

    fn let_go(&mut self, by: u64) {
        self.inserting.retain(|_, it| *it != by);
        self.locks.retain(|_, lock| {
            lock.shared.remove(&by);
            lock.exclusive = lock.exclusive.filter(|it| *it != by);
            lock.exclusive.is_some() || !lock.shared.is_empty()
        });
    }
}

impl Store for LockStore {
    type Error = Blocked;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Blocked> {
        let inner = self.lock();
        Ok(keys.iter().map(|key| inner.loaded(*key)).collect())
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Blocked>> {
        let mut transaction = self.begin(commit);
        loop {
            match transaction.step() {
                Progress::Moved => {}
                Progress::Waits => return Err(CommitError::Unavailable(Blocked)),
                Progress::Done(committed) => return Ok(committed),
            }
        }
    }

    /// Lists by the rows' own links, not by what commits said to link: a second way to the same lists.
    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Blocked> {
        let inner = self.lock();
        let mut found = Vec::new();
        for (key, (stamp, record)) in &inner.rows {
            for link in record.links().iter().filter(|it| (it.index, it.prefix) == (range.index, range.prefix)) {
                let order = match link.order {
                    Order::At(order) => order,
                    Order::Stamp => u128::from(stamp.0),
                };
                found.push(Found { order, row: Loaded { key: *key, stamp: *stamp, record: Some(record.clone()) } });
            }
        }
        found.sort_by_key(|it| (it.order, it.row.key));
        if range.newest_first {
            found.reverse();
        }
        found.retain(|it| {
            let at = (it.order, it.row.key);
            let behind = range.after.is_none_or(|after| if range.newest_first { at < after } else { at > after });
            behind && (range.from..range.until).contains(&it.order)
        });
        found.truncate(range.limit);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{contract, sample};
    use super::*;
    use crate::store::Write;

    fn put(row: &Record, stamp: Stamp) -> Commit {
        let write = Write { key: row.key(), record: Some(row.clone()), unlink: Vec::new(), link: row.links() };
        Commit { checks: vec![(row.key(), stamp)], writes: vec![write] }
    }

    fn end(transaction: &mut Transaction) -> Committed {
        loop {
            match transaction.step() {
                Progress::Done(committed) => return committed,
                Progress::Moved => {}
                Progress::Waits => panic!("{transaction:?} waits"),
            }
        }
    }

    fn row(text: &str) -> Record {
        sample::payload(sample::id(1), text)
    }

    /// With locks as without, every promise of a store is kept.
    #[test]
    fn it_passes_the_suite() {
        contract::suite(LockStore::new);
        let store = LockStore::new();
        contract::sessions(|| store.clone());
    }

    /// Two writers of one row: the second waits at its lock, then sees the first one's row and conflicts.
    #[test]
    fn the_second_writer_waits_and_conflicts() {
        let mut store = LockStore::new();
        let Ok(Committed::Applied(stamp)) = store.commit(&put(&row("start"), Stamp::ABSENT)) else { panic!() };
        let (mut one, mut two) = (store.begin(&put(&row("one"), stamp)), store.begin(&put(&row("two"), stamp)));
        assert!(matches!(one.step(), Progress::Moved));
        assert!(matches!(two.step(), Progress::Waits));
        assert!(matches!(end(&mut one), Committed::Applied(_)));
        assert!(matches!(end(&mut two), Committed::Conflict(_)));
        assert_eq!(store.dump()[0].2, row("one"));
    }

    /// Two inserts of one key: neither lock sees the other, the second insert waits, and loses once the first is there.
    #[test]
    fn the_second_insert_waits_and_loses() {
        let store = LockStore::new();
        let (mut one, mut two) =
            (store.begin(&put(&row("one"), Stamp::ABSENT)), store.begin(&put(&row("two"), Stamp::ABSENT)));
        assert!(matches!((one.step(), two.step()), (Progress::Moved, Progress::Moved)));
        assert!(matches!((one.step(), two.step()), (Progress::Moved, Progress::Waits)));
        assert!(matches!(end(&mut one), Committed::Applied(_)));
        assert!(matches!(end(&mut two), Committed::Conflict(_)));
    }

    /// An absent row that is only read is not protected: it may appear before the commit that saw it absent.
    #[test]
    fn a_read_of_an_absent_row_locks_nothing() {
        let mut store = LockStore::new();
        let other = sample::payload(sample::id(2), "");
        let mut reads = put(&row("one"), Stamp::ABSENT);
        reads.checks.push((other.key(), Stamp::ABSENT));
        let mut one = store.begin(&reads);
        assert!(matches!(one.step(), Progress::Moved));
        assert!(matches!(store.commit(&put(&other, Stamp::ABSENT)), Ok(Committed::Applied(_))));
        assert!(matches!(end(&mut one), Committed::Applied(_)));
        let mut late = store.begin(&reads);
        assert!(matches!(end(&mut late), Committed::Conflict(_)));
    }

    /// A transaction that is dropped leaves nothing behind, and whoever waited for it goes on.
    #[test]
    fn a_lost_transaction_is_rolled_back() {
        let store = LockStore::new();
        let (mut one, mut two) =
            (store.begin(&put(&row("one"), Stamp::ABSENT)), store.begin(&put(&row("two"), Stamp::ABSENT)));
        let _ = (one.step(), two.step(), one.step(), two.step());
        drop(one);
        assert!(matches!(end(&mut two), Committed::Applied(_)));
        assert_eq!(store.dump()[0].2, row("two"));
    }
}
