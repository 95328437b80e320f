//! Keyed, stamped, batched storage: what a database has to be able to do, and nothing of the domain.
//!
//! A store answers rows by key ([`Store::load`]), applies one atomic step if no row that the decisions saw has moved
//! ([`Store::commit`]), and lists an index ([`Store::scan`]).
//!
//! **Invariant:** a commit is all or nothing and durable before `Applied`. Stamps are never used twice.
//!
//! A store of one's own shows that it is one with `svc_core::testing::contract` (feature `testing`).

mod codec;
pub mod memory;
mod record;

use std::collections::BTreeSet;

use crate::value::link::{Index, Link};
use crate::value::{Span, Timestamp};

pub use codec::{Encoded, TooNew, Undecodable, whose};
pub use memory::MemoryStore;
pub use record::{Key, KeyBytes, Record, Row, Table};

/// The most rows that the gate asks one scan for. A page is never cut shorter than its limit says; see [`Range::limit`].
pub const PAGE_MAX: usize = 1_000;

/// So many rows a store takes in one commit, written or checked, and in one load.
///
/// The largest that the gate makes of what it bounds is the stop of a fleet: 10,000 agents that it freezes, and as many others whose
/// receipts become void, each with a ledger record. A few things are as large as what there is: the connections that end with the
/// agents of such a stop, and all that is sealed where a master key takes another one's place. So a store has no bound of its own;
/// where its database has one, it writes in several statements within one transaction.
pub const ROWS_AT_ONCE: usize = 32_768;

/// The number of the commit that wrote a row: given once, never again, greater than that of every commit it depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// There is no row.
    pub const ABSENT: Self = Self(0);
}

/// What a store answers for one key; an absent row is an answer too.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The key asked for.
    pub key: Key,
    /// The commit that wrote the row, or [`Stamp::ABSENT`].
    pub stamp: Stamp,
    /// The row.
    pub record: Option<Record>,
}

/// One row's new image and what changes in the indexes because of it.
#[derive(Clone, Debug)]
pub struct Write {
    /// The row's key.
    pub key: Key,
    /// Its new image; `None` deletes it.
    pub record: Option<Record>,
    /// Index entries that the row had and has no more.
    pub unlink: Vec<Link>,
    /// Index entries that it did not have.
    pub link: Vec<Link>,
}

/// One atomic step: if every check holds, every write happens; otherwise none does.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// Every row the decisions read or write, at the stamp they saw. Sorted by key, each once: as many as
    /// [`ROWS_AT_ONCE`], and rarely more.
    pub checks: Vec<(Key, Stamp)>,
    /// Sorted by key, each once, each also in `checks`: as many as [`ROWS_AT_ONCE`], and rarely more.
    pub writes: Vec<Write>,
}

/// What became of a commit that the store could judge.
#[derive(Clone, Debug)]
pub enum Committed {
    /// Durable. The number is greater than that of every commit this one depends on.
    Applied(Stamp),
    /// Nothing was written; the rows whose check failed, as they are now. Locks may be kept until the next `commit` or `release`.
    Conflict(Vec<Loaded>),
}

/// Why a commit was not judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError<E> {
    /// Nothing was written, whatever the commit held: disk full, read-only, no connection.
    #[error("the store is unavailable")]
    Unavailable(#[source] E),
    /// Nothing was written, because of what this commit holds.
    #[error("the store rejected the commit")]
    Rejected(#[source] E),
    /// It cannot be known whether anything was written.
    #[error("it is not known whether the commit was applied")]
    Unknown(#[source] E),
}

/// A stretch of one index.
#[derive(Clone, Debug)]
pub struct Range {
    /// The index.
    pub index: Index,
    /// Whose list.
    pub prefix: u128,
    /// The first order that is in.
    pub from: u128,
    /// The first order that is out.
    pub until: u128,
    /// Only what comes after this entry, in the direction of reading.
    pub after: Option<(u128, Key)>,
    /// Read from the end.
    pub newest_first: bool,
    /// At most so many rows, and fewer only where the stretch has no more: the gate takes a page that is shorter for the last one, and
    /// the stop of a fleet would pass over whoever is behind it. It asks for up to [`PAGE_MAX`].
    pub limit: usize,
}

impl Range {
    /// Everything an index lists for `prefix`, oldest first, up to `limit` rows.
    #[must_use]
    pub const fn all(index: Index, prefix: u128, limit: usize) -> Self {
        Self { index, prefix, from: 0, until: u128::MAX, after: None, newest_first: false, limit }
    }

    /// Goes on behind a page that was read of it: whether there may be more. A page with fewer rows than the limit is the last, and the
    /// range stays where it is.
    #[must_use]
    pub fn turn_page(&mut self, page: &[Found]) -> bool {
        let last = page.last().filter(|_| page.len() == self.limit);
        self.after = last.map(|it| (it.order, it.row.key)).or(self.after);
        last.is_some()
    }
}

/// One row that a scan found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its order in the index.
    pub order: u128,
    /// The row.
    pub row: Loaded,
}

/// One entry of an index, and its row where that can be understood.
#[derive(Clone, Debug)]
pub struct Listed<E> {
    /// Its order in the index.
    pub order: u128,
    /// The row's key.
    pub key: Key,
    /// The row.
    pub row: Result<Loaded, E>,
}

impl<E> From<Found> for Listed<E> {
    fn from(found: Found) -> Self {
        Self { order: found.order, key: found.row.key, row: Ok(found.row) }
    }
}

impl<E> Listed<E> {
    /// The entry as a scan gives it.
    ///
    /// # Errors
    /// Why its row could not be understood.
    pub fn found(self) -> Result<Found, E> {
        self.row.map(|row| Found { order: self.order, row })
    }
}

/// Keyed, stamped, batched storage. One value is one session, hence `&mut self`.
pub trait Store {
    /// What can go wrong, for the log.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Answers every key exactly once, in any order, from committed rows of one moment: no commit of another session comes between two
    /// of them, and none is seen in part. They are up to [`ROWS_AT_ONCE`], and rarely more.
    ///
    /// # Errors
    /// Nothing could be read, or a row could not be understood.
    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Self::Error>;

    /// Applies `commit` atomically and durably before answering `Applied`: all of its rows and index entries are there for everybody
    /// who reads, or none is. It has up to [`ROWS_AT_ONCE`] rows, and rarely more.
    ///
    /// # Errors
    /// See [`CommitError`].
    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Self::Error>>;

    /// The rows an index has in `range`, in order, from one moment: each row is the one that its entry was made for. They are as many
    /// as the limit has room for. No decision rests on it alone.
    ///
    /// # Errors
    /// Nothing could be read, or a row could not be understood.
    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Self::Error>;

    /// As [`scan`](Self::scan), but that a row that cannot be understood is told in its place, so that nothing behind it waits for it. A
    /// store of which each row can be understood, or none, has nothing to add.
    ///
    /// # Errors
    /// Nothing could be read.
    fn scan_each(&mut self, range: &Range) -> Result<Vec<Listed<Self::Error>>, Self::Error> {
        Ok(self.scan(range)?.into_iter().map(Listed::from).collect())
    }

    /// Gives back what a `Conflict` kept: called when the same work will not be tried again.
    fn release(&mut self) {}
}

/// Whether `rows` answer each of `keys`, as [`Store::load`] has to: a driver that goes on without one of them asks for ever.
#[must_use]
pub fn all_answered(keys: &[Key], rows: &[Loaded]) -> bool {
    // Most stores answer in the order of the keys.
    let in_order = keys.len() == rows.len() && keys.iter().zip(rows).all(|(key, row)| *key == row.key);
    in_order || {
        let answered: BTreeSet<Key> = rows.iter().map(|row| row.key).collect();
        keys.iter().all(|key| answered.contains(key))
    }
}

/// Wall time, read once per turn by the driver and by nothing else.
pub trait Clock {
    /// The present instant.
    fn now(&self) -> Timestamp;

    /// How far what this clock goes by is behind [`now`](Self::now), where that was set back and `now` does not go back.
    fn lag(&self) -> Span {
        Span::default()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn lag(&self) -> Span {
        (**self).lag()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Id as _;
    use crate::value::id::WorkspaceId;

    /// A page as long as the limit has more behind it, perhaps, and reading goes on behind its last row; one that is shorter is the last.
    #[test]
    fn a_page_that_is_full_is_turned() {
        let found = |bits: u128| {
            let key = Key::Workspace(WorkspaceId::from_bits(bits));
            Found { order: bits + 10, row: Loaded { key, stamp: Stamp(1), record: None } }
        };
        let mut range = Range::all(Index::Workspaces, 0, 2);
        assert!(range.turn_page(&[found(1), found(2)]));
        let behind = Some((12, found(2).row.key));
        assert_eq!(range.after, behind);
        for last in [&[found(3)][..], &[]] {
            assert!(!range.turn_page(last));
            assert_eq!(range.after, behind);
        }
    }
}
