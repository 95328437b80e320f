//! One connection as a [`Store`].
//!
//! **Invariant:** `Applied` is answered after `COMMIT` returned under `synchronous=FULL`, and never otherwise.

use std::fmt;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use svc_core::store::{
    Commit, CommitError, Committed, Found, Key, Listed, Loaded, Range, Record, Stamp, Store, Table, whose,
};
use svc_core::value::id::WorkspaceId;

use super::checkpoint::Checkpoints;
use super::errors::database;
use super::fold::Folding;
use super::others::Commits;
use super::place::Place;
use super::pool::Pool;
use super::redo::{LOAD as LOAD_WAITING, Redo, stamp_at};
use super::schema::{is_deferred, is_known};
use super::seen::Seen;
use super::statements::{BEGIN_READ, COMMIT, DATA_VERSION, LAST_STAMP, ROLLBACK, Statements};
use crate::error::StoreError;

/// A connection: the one that writes, or one that reads a snapshot.
pub struct SqliteSession {
    /// Taken out on drop alone.
    conn: Option<Connection>,
    pub(super) role: Role,
}

pub(super) enum Role {
    /// Commits, and knows which stamps it has seen.
    Writer(Box<Writing>),
    /// Reads one snapshot, inside one transaction that ends when the session is dropped.
    Reader { pool: Arc<Pool>, redo: Redo },
}

/// What a writing session keeps beside its connection.
pub(super) struct Writing {
    pub(super) seen: Seen,
    /// The number of the last commit that is known of: this one's, or that of another connection.
    pub(super) last: Option<i64>,
    /// The highest number given to a commit that wrote nothing.
    pub(super) given: u64,
    pub(super) redo: Redo,
    pub(super) folding: Folding,
    pub(super) checkpoints: Arc<Checkpoints>,
    pub(super) commits: Arc<Commits>,
    pub(super) place: Arc<Place>,
}

impl Writing {
    pub(super) fn new(
        checkpoints: Arc<Checkpoints>,
        commits: Arc<Commits>,
        redo: Redo,
        folding: Folding,
        place: Arc<Place>,
    ) -> Self {
        Self { seen: Seen::default(), last: None, given: 0, redo, folding, checkpoints, commits, place }
    }

    /// Inside a transaction: forgets what was seen if another connection has committed since the last time.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`] where another program has brought the database to a schema that this one does not know: it is
    /// asked about again each time, and nothing is read or written until it is not so.
    pub(super) fn look_around(&mut self, conn: &Connection) -> Result<(), StoreError> {
        if self.seen.at_version(number(conn, DATA_VERSION)?) {
            self.redo.look_again();
            if let Err(newer) = is_known(conn) {
                self.seen.forget();
                return Err(newer);
            }
            // The version changes with a log that is cut off, too: only a number that is new tells of a commit.
            let last = number(conn, LAST_STAMP)?;
            if self.last.replace(last).is_some_and(|known| known != last) {
                self.checkpoints.others_wrote();
                self.commits.others_wrote();
            }
        }
        Ok(())
    }

    /// Trusts nothing any more that was seen.
    pub(super) fn forget(&mut self) {
        self.seen.forget();
        self.redo.look_again();
    }
}

impl SqliteSession {
    pub(super) fn writer(conn: Connection, writing: Writing) -> Self {
        Self { conn: Some(conn), role: Role::Writer(Box::new(writing)) }
    }

    pub(super) fn reader(conn: Connection, pool: Arc<Pool>) -> Result<Self, StoreError> {
        run(&conn, BEGIN_READ).map_err(database)?;
        let redo = Redo::new(pool.positions());
        Ok(Self { conn: Some(conn), role: Role::Reader { pool, redo } })
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
        read: impl FnOnce(&Connection, &mut Redo, Option<&mut Seen>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (conn, role) = self.parts()?;
        let writing = match role {
            Role::Reader { redo, .. } => return read(conn, redo, None),
            Role::Writer(writing) => writing,
        };
        run(conn, BEGIN_READ).map_err(database)?;
        let found = writing.look_around(conn).and_then(|()| read(conn, &mut writing.redo, Some(&mut writing.seen)));
        // Nothing was written: the outcome of the read is the outcome.
        let ended = run(conn, if found.is_ok() { COMMIT } else { ROLLBACK }).map_err(database);
        found.and_then(|found| ended.map(|()| found))
    }
}

impl Store for SqliteSession {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        self.at_one_moment(|conn, redo, mut seen| {
            keys.iter()
                .map(|key| {
                    let loaded = load_row(conn, redo, *key)?;
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
        self.scan_each(range)?.into_iter().map(Listed::found).collect()
    }

    fn scan_each(&mut self, range: &Range) -> Result<Vec<Listed<StoreError>>, StoreError> {
        self.at_one_moment(|conn, redo, _| super::scan::list(conn, redo, range))
    }

    /// A conflict keeps nothing here. What a panic in the middle of a commit left open is undone.
    fn release(&mut self) {
        if let Ok((conn, Role::Writer(writing))) = self.parts()
            && !conn.is_autocommit()
        {
            writing.forget();
            // If it fails, so does the next `BEGIN`, and nothing is committed.
            let _ = run(conn, ROLLBACK);
        }
    }
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        if let Role::Reader { pool, .. } = &self.role
            && run(&conn, COMMIT).is_ok()
        {
            pool.give_back(conn);
        }
    }
}

impl fmt::Debug for SqliteSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Writer(_) => "writer",
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

/// One row as it is: its image that waits, or else the one in its table.
pub(super) fn load_row(conn: &Connection, redo: &mut Redo, key: Key) -> Result<Loaded, StoreError> {
    let table = key.table();
    let Some(statements) = Statements::on(table) else { return Err(StoreError::Malformed("no such table")) };
    if is_deferred(table)
        && let Some(loaded) = load_waiting(conn, redo, key)?
    {
        return Ok(loaded);
    }
    let mut statement = conn.prepare_cached(&statements.load).map_err(database)?;
    statement.raw_bind_parameter(1, key.encode().as_ref()).map_err(database)?;
    let mut rows = statement.raw_query();
    let Some(row) = rows.next().map_err(database)? else {
        return Ok(Loaded { key, stamp: Stamp::ABSENT, record: None });
    };
    let (stamp, record) = read_row(table, row, 0)?;
    Ok(Loaded { key, stamp, record: Some(record) })
}

/// The image of a row that waits to be moved to its table, if one does.
fn load_waiting(conn: &Connection, redo: &mut Redo, key: Key) -> Result<Option<Loaded>, StoreError> {
    let Some(id) = redo.find(conn, &key)? else { return Ok(None) };
    let mut statement = conn.prepare_cached(LOAD_WAITING)?;
    let mut rows = statement.query([id])?;
    // One that is not there any more was moved.
    let Some(row) = rows.next()? else { return Ok(None) };
    if row.get_ref(2)? == ValueRef::Null {
        return Ok(Some(Loaded { key, stamp: Stamp::ABSENT, record: None }));
    }
    let (_, record) = read_row(key.table(), row, 0)?;
    Ok(Some(Loaded { key, stamp: stamp_at(id), record: Some(record) }))
}

/// stamp, format and body, in the columns from `first` on.
pub(super) fn read_row(table: Table, row: &rusqlite::Row<'_>, first: usize) -> Result<(Stamp, Record), StoreError> {
    let (ValueRef::Text(body) | ValueRef::Blob(body)) = row.get_ref(first + 2).map_err(database)? else {
        return Err(StoreError::row("as its body is not text"));
    };
    let of_a_row = |error| of_a_row(error, whose(table, body));
    let stamp = read_stamp(row, first).map_err(of_a_row)?;
    let format: u16 = row.get(first + 1).map_err(of_a_row)?;
    Ok((stamp, Record::decode(table, format, body)?))
}

/// Why a number of a row could not be had: where it is what stands there, that is the row's own trouble.
fn of_a_row(error: rusqlite::Error, whose: Option<WorkspaceId>) -> StoreError {
    match error {
        rusqlite::Error::IntegralValueOutOfRange(..) | rusqlite::Error::InvalidColumnType(..) => {
            StoreError::Row { why: NO_NUMBER, whose }
        }
        error => database(error),
    }
}

const NO_NUMBER: &str = "as its stamp or its format is no number that it can be";

/// A stamp; the counter begins at 1 and is never negative.
pub(super) fn read_stamp(row: &rusqlite::Row<'_>, column: usize) -> Result<Stamp, rusqlite::Error> {
    let stamp: i64 = row.get(column)?;
    u64::try_from(stamp).map(Stamp).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stamp))
}
