//! One connection as a [`Store`].
//!
//! **Invariant:** `Applied` is answered after `COMMIT` returned under `synchronous=FULL`, and never otherwise.

use std::fmt;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use svc_core::store::{Commit, CommitError, Committed, Found, Key, Loaded, Range, Record, Stamp, Store, Table};

use super::checkpoint::Checkpoints;
use super::errors::database;
use super::pool::Pool;
use super::seen::Seen;
use super::statements::{BEGIN_READ, COMMIT, DATA_VERSION, ROLLBACK, Statements};
use crate::error::StoreError;

/// A connection: the one that writes, or one that reads a snapshot.
pub struct SqliteSession {
    /// Taken out on drop alone.
    conn: Option<Connection>,
    pub(super) role: Role,
}

pub(super) enum Role {
    /// Commits, and knows which stamps it has seen.
    Writer {
        seen: Seen,
        /// The highest number given to a commit that wrote nothing.
        given: u64,
        checkpoints: Arc<Checkpoints>,
    },
    /// Reads one snapshot, inside one transaction that ends when the session is dropped.
    Reader { pool: Arc<Pool> },
}

impl SqliteSession {
    pub(super) fn writer(conn: Connection, checkpoints: Arc<Checkpoints>) -> Self {
        Self { conn: Some(conn), role: Role::Writer { seen: Seen::default(), given: 0, checkpoints } }
    }

    pub(super) fn reader(conn: Connection, pool: Arc<Pool>) -> Result<Self, StoreError> {
        run(&conn, BEGIN_READ).map_err(database)?;
        Ok(Self { conn: Some(conn), role: Role::Reader { pool } })
    }

    /// The connection, and what this session keeps beside it.
    pub(super) fn parts(&mut self) -> Result<(&Connection, &mut Role), StoreError> {
        match &self.conn {
            Some(conn) => Ok((conn, &mut self.role)),
            None => Err(StoreError::Closed),
        }
    }

    /// Reads from one moment: a reader's snapshot, or a transaction around `read` on the writer.
    pub(super) fn at_one_moment<T>(
        &mut self,
        read: impl FnOnce(&Connection, Option<&mut Seen>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (conn, role) = self.parts()?;
        let Role::Writer { seen, .. } = role else { return read(conn, None) };
        run(conn, BEGIN_READ).map_err(database)?;
        let found = look_around(conn, seen).map_err(database).and_then(|()| read(conn, Some(seen)));
        // Nothing was written: the outcome of the read is the outcome.
        let ended = run(conn, if found.is_ok() { COMMIT } else { ROLLBACK }).map_err(database);
        found.and_then(|found| ended.map(|()| found))
    }
}

impl Store for SqliteSession {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        self.at_one_moment(|conn, mut seen| {
            keys.iter()
                .map(|key| {
                    let loaded = load_row(conn, *key)?;
                    if let Some(seen) = &mut seen {
                        seen.note(loaded.key, loaded.stamp);
                    }
                    Ok(loaded)
                })
                .collect()
        })
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<StoreError>> {
        super::commit::apply(self, commit)
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        self.at_one_moment(|conn, _| super::scan::list(conn, range))
    }

    /// A conflict keeps nothing here. What a panic in the middle of a commit left open is undone.
    fn release(&mut self) {
        if let Ok((conn, Role::Writer { seen, .. })) = self.parts()
            && !conn.is_autocommit()
        {
            seen.forget();
            // If it fails, so does the next `BEGIN`, and nothing is committed.
            let _ = run(conn, ROLLBACK);
        }
    }
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        if let Role::Reader { pool } = &self.role
            && run(&conn, COMMIT).is_ok()
        {
            pool.give_back(conn);
        }
    }
}

impl fmt::Debug for SqliteSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Writer { .. } => "writer",
            Role::Reader { .. } => "reader",
        };
        out.debug_tuple("SqliteSession").field(&role).finish()
    }
}

/// Runs a statement that has no parameters and answers nothing.
pub(super) fn run(conn: &Connection, sql: &str) -> Result<(), rusqlite::Error> {
    conn.prepare_cached(sql)?.raw_execute().map(|_| ())
}

/// One number that a statement without parameters answers.
pub(super) fn number(conn: &Connection, sql: &str) -> Result<i64, rusqlite::Error> {
    conn.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// Inside a transaction: forgets every stamp if another connection has committed since the last time.
pub(super) fn look_around(conn: &Connection, seen: &mut Seen) -> Result<(), rusqlite::Error> {
    seen.at_version(number(conn, DATA_VERSION)?);
    Ok(())
}

/// One row as it is.
pub(super) fn load_row(conn: &Connection, key: Key) -> Result<Loaded, StoreError> {
    let table = key.table();
    let Some(statements) = Statements::on(table) else { return Err(StoreError::Malformed("no such table")) };
    let mut statement = conn.prepare_cached(&statements.load).map_err(database)?;
    statement.raw_bind_parameter(1, key.encode().as_ref()).map_err(database)?;
    let mut rows = statement.raw_query();
    let Some(row) = rows.next().map_err(database)? else {
        return Ok(Loaded { key, stamp: Stamp::ABSENT, record: None });
    };
    let (stamp, record) = read_row(table, row, 0)?;
    Ok(Loaded { key, stamp, record: Some(record) })
}

/// stamp, format and body, in the columns from `first` on.
pub(super) fn read_row(table: Table, row: &rusqlite::Row<'_>, first: usize) -> Result<(Stamp, Record), StoreError> {
    let stamp = read_stamp(row, first).map_err(database)?;
    let format: u16 = row.get(first + 1).map_err(database)?;
    let (ValueRef::Text(body) | ValueRef::Blob(body)) = row.get_ref(first + 2).map_err(database)? else {
        return Err(StoreError::Malformed("a row's body is not text"));
    };
    Ok((stamp, Record::decode(table, format, body)?))
}

/// A stamp; the counter begins at 1 and is never negative.
pub(super) fn read_stamp(row: &rusqlite::Row<'_>, column: usize) -> Result<Stamp, rusqlite::Error> {
    let stamp: i64 = row.get(column)?;
    u64::try_from(stamp).map(Stamp).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stamp))
}
