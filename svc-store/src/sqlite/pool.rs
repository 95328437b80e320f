//! Read-only connections that wait for the next reader.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

use super::errors::database;
use super::place::Place;
use super::redo::Shared;
use super::session::SqliteSession;
use crate::error::StoreError;

/// How many connections wait at most; more are closed when they come back.
const IDLE_MAX: usize = 8;
/// The page cache of a reader, in KiB (SQLite counts those as negative).
const CACHE: &str = "PRAGMA cache_size=-2048; PRAGMA query_only=ON;";

#[derive(Debug)]
pub(super) struct Pool {
    path: PathBuf,
    place: Arc<Place>,
    positions: Arc<Shared>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(place: Place, path: &Path) -> Self {
        Self { path: path.to_owned(), place: Arc::new(place), positions: Arc::default(), idle: Mutex::default() }
    }

    /// Where the rows are that wait, for all sessions.
    pub(super) const fn positions(&self) -> &Arc<Shared> {
        &self.positions
    }

    /// The file that was opened.
    pub(super) const fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// A reader at a snapshot that its first read fixes.
    pub(super) fn reader(self: &Arc<Self>) -> Result<SqliteSession, StoreError> {
        self.place.check()?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => connect(&self.path)?,
        };
        SqliteSession::reader(conn, Arc::clone(self))
    }

    pub(super) fn give_back(&self, conn: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(conn);
        }
    }
}

/// A connection that reads.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(database)?;
    conn.busy_timeout(super::BUSY).map_err(database)?;
    conn.set_prepared_statement_cache_capacity(super::STATEMENTS_KEPT);
    super::plan_once(&conn)?;
    conn.execute_batch(CACHE).map_err(database)?;
    Ok(conn)
}
