//! The mark of a database whose gate went on in another one.
//!
//! It is a schema that no release knows, so that those which do not know the mark refuse the file too, also where they have it open; and
//! beside it two rows of `meta`, where the gate went and what tells this move from others.

use std::path::Path;

use rusqlite::Connection;

use super::errors::database;
#[cfg(feature = "postgres")]
use super::schema::SCHEMA;
use crate::error::StoreError;
use crate::moving::MoveFault;

/// What is added to the schema of a file that was moved. A release of before the mark takes it for a newer one's.
pub(super) const MOVED: i64 = 1 << 24;

/// Where a gate went on, as the file that it left says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Host and database.
    pub(crate) to: String,
    /// Drawn for this move; the other database has it too.
    pub(crate) number: i64,
}

const READ: &str =
    "SELECT (SELECT value FROM main.meta WHERE name='moved'), (SELECT value FROM main.meta WHERE name='moved_by')";
#[cfg(feature = "postgres")]
const WRITE: &str = "INSERT OR REPLACE INTO main.meta (name, value) VALUES ('moved', ?1), ('moved_by', ?2)";
#[cfg(feature = "postgres")]
const REMOVE: &str = "DELETE FROM main.meta WHERE name IN ('moved', 'moved_by')";

/// The mark of a file that has one.
pub(super) fn mark(conn: &Connection) -> Result<Mark, StoreError> {
    conn.query_row(READ, [], |row| Ok(Mark { to: row.get(0)?, number: row.get(1)? })).map_err(database)
}

/// Why the file at `path`, which has the mark, is not opened.
pub(super) fn refusal(conn: &Connection, path: &Path) -> StoreError {
    match mark(conn) {
        Ok(mark) => StoreError::Move(MoveFault::Moved { path: path.to_owned(), to: mark.to.into() }),
        Err(error) => error,
    }
}

/// Inside a transaction of a file of this schema: marks it.
#[cfg(feature = "postgres")]
pub(super) fn set(conn: &Connection, mark: &Mark) -> Result<(), StoreError> {
    conn.execute(WRITE, (&mark.to, mark.number)).map_err(database)?;
    conn.execute_batch(&format!("PRAGMA main.user_version={}", SCHEMA + MOVED)).map_err(database)
}

/// Inside a transaction of a file of this schema: takes the mark off.
#[cfg(feature = "postgres")]
pub(super) fn take_off(conn: &Connection) -> Result<(), StoreError> {
    conn.execute(REMOVE, []).map_err(database)?;
    conn.execute_batch(&format!("PRAGMA main.user_version={SCHEMA}")).map_err(database)
}
