//! Whether the pages of a database fit together: a disk, a copy or another's log may have damaged some that nothing has read since.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::errors::database;
use super::{BUSY, DATABASE, exists, left, look, served};
use crate::error::StoreError;

/// Looks through the pages of the database in `directory`, beside whoever uses it, for as long as `patience` allows; gives whether it
/// was brought to its end. Nothing is changed.
///
/// # Errors
/// [`StoreError::Corrupt`] where two pages contradict each other; and as [`schema_of`](super::schema_of).
pub fn look_through(directory: impl AsRef<Path>, patience: Duration) -> Result<bool, StoreError> {
    let directory = directory.as_ref();
    let path = directory.join(DATABASE);
    if !exists(&path)? {
        return Err(left::absent(directory));
    }
    served::is_whole(&path)?;
    look(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&path, flags).map_err(database)?;
    conn.busy_timeout(BUSY).map_err(database)?;
    conn.execute_batch("PRAGMA query_only=ON").map_err(database)?;
    let told = within(&conn, patience, || conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)))?;
    match told {
        Ok(told) if told == "ok" => Ok(true),
        Ok(told) => {
            // Behind a line that names the database, which is told already.
            let what = told.lines().filter(|it| !it.starts_with("***")).collect::<Vec<_>>().join("; ");
            Err(StoreError::Corrupt(Arc::new(std::io::Error::other(what))))
        }
        Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(false),
        Err(cause) => Err(database(cause)),
    }
}

/// Runs a statement that is broken off once `patience` is over.
fn within<T>(conn: &Connection, patience: Duration, run: impl FnOnce() -> T) -> Result<T, StoreError> {
    let handle = conn.get_interrupt_handle();
    let (done, is_done) = sync_channel::<()>(0);
    let watch = move || {
        // What comes before the statement has begun breaks nothing off: it is said until the statement has ended.
        let mut wait = patience;
        while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            handle.interrupt();
            wait = AGAIN;
        }
    };
    let watching = thread::Builder::new().name("svc-patience".into()).spawn(watch);
    let watching = watching.map_err(|cause| StoreError::Thread(Arc::new(cause)))?;
    let answer = run();
    drop(done);
    // It ends by itself, and has nothing to say.
    drop(watching.join());
    Ok(answer)
}

/// How soon it is said again.
const AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// What takes too long is broken off; what ends in time is not.
    #[test]
    fn patience_ends() {
        const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let conn = Connection::open_in_memory().unwrap();
        let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        let endless = within(&conn, Duration::from_millis(1), || count(ENDLESS)).unwrap();
        assert_eq!(endless.unwrap_err().sqlite_error_code(), Some(ErrorCode::OperationInterrupted));
        assert_eq!(within(&conn, Duration::from_mins(1), || count("SELECT 7")).unwrap(), Ok(7));
    }
}
