//! That a database is a backup which nobody has served yet. A backup that was never opened says so itself; from its first opening on a row
//! of `meta` does, until whoever serves it was told.
//!
//! **Invariant:** the row is there before the file ceases to say so.

use std::path::Path;

use rusqlite::Connection;

use super::errors::database;
use super::session::number;
use super::{DATABASE, connect, left, look, look_at};
use crate::error::StoreError;

/// What is said of a backup as long as nobody has served it, and is to be done before anybody is let in.
pub const OF_A_BACKUP: &str = "this is a backup that nobody has served yet: receipts that were used since it was made are good again, \
     stops and revocations since are undone; before anybody is let in, run `svc key rotate --use receipt --compromised` and freeze all agents \
     (README, \"Restoring a backup\")";

const NOTE: &str = "INSERT OR REPLACE INTO main.meta (name, value) VALUES ('restored', 1)";
const NOTED: &str = "SELECT count(*) FROM main.meta WHERE name='restored'";
const TOLD: &str = "DELETE FROM main.meta WHERE name='restored'";

/// Whether the database in `directory` is a backup that nobody has served yet. Nothing is changed.
///
/// # Errors
/// The file cannot be looked at, or is none of this service's.
pub fn is_unserved_backup(directory: impl AsRef<Path>) -> Result<bool, StoreError> {
    let path = directory.as_ref().join(DATABASE);
    if look(&path)?.is_none_or(|schema| schema == 0) {
        return Ok(false);
    }
    Ok(left::is_unopened(&path)? || is_noted(&look_at(&path)?)?)
}

/// Takes the note off that the database in `directory` is a backup: somebody serves it, and was told.
///
/// # Errors
/// The file cannot be written.
pub fn told_of_backup(directory: impl AsRef<Path>) -> Result<(), StoreError> {
    let conn = connect(&directory.as_ref().join(DATABASE))?;
    if is_noted(&conn)? {
        conn.execute(TOLD, []).map_err(database)?;
    }
    Ok(())
}

/// Whether the database at `path`, which is this service's, is a backup that nobody has served yet; noted in it where only the file itself
/// says so, and is about to be opened.
///
/// # Errors
/// The file cannot be read or written.
pub(super) fn note(path: &Path) -> Result<bool, StoreError> {
    let conn = look_at(path)?;
    if !left::is_unopened(path)? {
        return is_noted(&conn);
    }
    conn.execute(NOTE, []).map_err(database)?;
    Ok(true)
}

fn is_noted(conn: &Connection) -> Result<bool, StoreError> {
    Ok(number(conn, NOTED)? > 0)
}
