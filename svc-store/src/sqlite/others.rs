//! What other processes commit to the same file: nobody tells of it, so it is looked for.
//!
//! SQLite tells a connection that any other has committed, and this process's own writer is one of those. The numbers of commits
//! tell which of them were others'.
//!
//! **Invariant:** nothing is decided by what is found here: it wakes those who wait, and they read what there is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use svc_core::store::Stamp;

use super::schema::is_known;
use super::session::number;
use super::statements::{DATA_VERSION, LAST_STAMP};
use crate::backend::{Heard, Others};
use crate::error::StoreError;

/// Whose the commits are that the file has.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// The number of the newest one that is known of.
    known: AtomicI64,
    /// Whether the writer has met one of another process since it was last looked for: its own next one has a higher number.
    others: AtomicBool,
}

impl Commits {
    /// This process's own commit.
    pub(super) fn wrote(&self, stamp: Stamp) {
        self.known.fetch_max(i64::try_from(stamp.0).unwrap_or(i64::MAX), Ordering::AcqRel);
    }

    /// The writer has met another's.
    pub(super) fn others_wrote(&self) {
        self.others.store(true, Ordering::Release);
    }

    /// Whether there were others' up to `last` since this was asked last. One of this process may be taken for another's while it is
    /// being told of: then somebody looks who need not have.
    fn are_others(&self, last: i64) -> bool {
        let newer = self.known.fetch_max(last, Ordering::AcqRel) < last;
        self.others.swap(false, Ordering::AcqRel) || newer
    }
}

/// A connection that looks.
pub(super) struct Lookout {
    conn: Connection,
    /// What SQLite says of others' commits; none before the first look, and where the last one failed.
    version: Option<i64>,
    commits: Arc<Commits>,
}

impl Lookout {
    /// Looks over `database` from now on.
    pub(super) fn new(database: &Path, commits: Arc<Commits>) -> Result<Self, StoreError> {
        let mut all = Self { conn: super::pool::connect(database)?, version: None, commits };
        // What this look fails by, such as a newer schema, whoever looks next is told.
        drop(all.look());
        Ok(all)
    }

    fn look(&mut self) -> Result<Heard, StoreError> {
        let version = number(&self.conn, DATA_VERSION)?;
        if self.version == Some(version) {
            return Ok(Heard::Nothing);
        }
        self.version = None;
        is_known(&self.conn)?;
        let are_others = self.commits.are_others(number(&self.conn, LAST_STAMP)?);
        self.version = Some(version);
        Ok(if are_others { Heard::Missed } else { Heard::Nothing })
    }
}

impl Others for Lookout {
    fn hear(&mut self, patience: Duration) -> Result<Heard, StoreError> {
        if !patience.is_zero() {
            // Nothing tells of the moment when somebody commits.
            thread::park_timeout(patience);
        }
        self.look()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::super::{DATABASE, SCHEMA, SqliteStore};
    use super::*;

    /// A newer release may be quicker than the first look: then the look after it tells of that.
    #[test]
    fn a_schema_that_was_newer_before_the_first_look_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let _store = SqliteStore::open(directory.path()).unwrap();
        let file = directory.path().join(DATABASE);
        let other = Connection::open(&file).unwrap();
        other.execute_batch(&format!("PRAGMA user_version={}", SCHEMA + 1)).unwrap();
        let mut lookout = Lookout::new(&file, Arc::default()).unwrap();
        for _ in 0..2 {
            assert!(matches!(lookout.hear(Duration::ZERO), Err(StoreError::NewerSchema { .. })));
        }
    }
}
