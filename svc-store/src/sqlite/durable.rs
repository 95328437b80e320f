//! The log made durable beside the lane that writes it.
//!
//! The lane's own connection runs under `synchronous=NORMAL`, and this syncs the log before anything is told. What SQLite 3.54
//! does, by its `wal.c`, `pager.c` and `os_unix.c`:
//!
//! - When `COMMIT` returns, every frame of the commit has been written to the file `svc.db-wal` (`walFrames`, by `pwrite`, nothing
//!   is held back) and only then entered in the index that readers and checkpoints look into. A sync of that file by another
//!   descriptor makes them durable.
//! - `FULL` differs from `NORMAL` in the log by the sync at the end of each commit alone (`WAL_SYNC_FLAGS`; padding to a sector goes
//!   with it, and is off where overwriting is safe, as SQLite takes it to be everywhere). What checkpoints sync, and the header of
//!   a log that begins again, is asked of `CKPT_SYNC_FLAGS`, which both settings have.
//! - A checkpoint syncs the log before it moves the first page and the database after the last, and the log begins again only
//!   after that: what is overwritten is durable in the database, be it synced here or not.
//! - The file stays the same while a connection is open: it is deleted under an exclusive lock of the database, and every
//!   connection shares that lock from its first look at the log to its end.
//! - The directory is synced with the first sync of each connection's log, of which the one that wrote the header is one. Here it
//!   is synced once more when the file is opened, so as not to rest on that.
//!
//! After a failed sync the operating system takes the pages for written, and a second sync would succeed over nothing. So the
//! log is given up then: everything in it goes into the database, which is synced, and the log is cut to nothing, durably.
//!
//! **Invariant:** after a sync that failed, none succeeds before the whole log is in the database.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::errors::database;
use crate::backend::Durability;
use crate::error::StoreError;

/// What a lane's connection is set to beside what every connection is.
const SETTING: &str = "PRAGMA synchronous=NORMAL";
/// Moves every page, waits for readers and other writers to let it, and leaves no log.
const EMPTY: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// The log of a database, while a connection to it is open.
#[derive(Debug)]
pub(super) struct Log {
    database: PathBuf,
    file: File,
    /// Whether something in it may be lost.
    broken: bool,
}

impl Log {
    /// Leaves the syncs of `conn`'s commits to what this gives.
    pub(super) fn of(conn: &Connection, path: &Path) -> Result<Self, StoreError> {
        conn.execute_batch(SETTING).map_err(database)?;
        let file = open(path)?;
        sync_directory(path);
        Ok(Self { database: path.to_owned(), file, broken: false })
    }

    /// Has the database hold what the log holds, over a connection of its own.
    fn give_up(&mut self, conn: &Connection) -> Result<(), StoreError> {
        let busy: i64 = conn.query_row(EMPTY, [], |row| row.get(0)).map_err(database)?;
        if busy != 0 {
            let cause = std::io::Error::other("the log could not be emptied");
            return Err(StoreError::Locked(Arc::new(cause)));
        }
        // Were the old length still there after a crash, a log with holes would lie over the database.
        let file = open(&self.database)?;
        file.sync_all().map_err(|cause| failed(&self.database, cause))?;
        self.file = file;
        Ok(())
    }
}

impl Durability for Log {
    fn sync(&mut self) -> Result<(), StoreError> {
        if self.broken {
            self.give_up(&super::connect(&self.database)?)?;
            self.broken = false;
            return Ok(());
        }
        self.file.sync_data().map_err(|cause| {
            self.broken = true;
            failed(&self.database, cause)
        })
    }
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push("-wal");
    database.with_file_name(name)
}

/// Opening and closing it drops none of SQLite's locks: those lie on the database and on its index.
fn open(database: &Path) -> Result<File, StoreError> {
    let path = log_of(database);
    let opened = OpenOptions::new().write(true).open(&path);
    opened.map_err(|cause| StoreError::file(path, "the database's log cannot be opened", cause))
}

fn failed(database: &Path, cause: std::io::Error) -> StoreError {
    StoreError::file(log_of(database), "what was committed could not be made durable", cause)
}

/// Some file systems cannot do it and need not; SQLite passes over that as well.
fn sync_directory(database: &Path) {
    if cfg!(unix)
        && let Some(directory) = database.parent()
    {
        let _ = File::open(directory).and_then(|it| it.sync_all());
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use std::os::unix::fs::MetadataExt as _;
    use std::sync::Arc;

    use svc_core::state::people::Roster;
    use svc_core::store::{Commit, Committed, Row as _, Stamp, Store as _, Write};
    use svc_core::value::Id as _;
    use svc_core::value::id::WorkspaceId;
    use svc_core::value::link::Linked as _;

    use super::super::{SqliteSession, SqliteStore};
    use super::*;
    use crate::backend::Backend as _;

    fn setup() -> (tempfile::TempDir, SqliteStore, SqliteSession, Log) {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        let conn = super::super::connect(store.path()).unwrap();
        let log = Log::of(&conn, store.path()).unwrap();
        let session = store.session(conn);
        (dir, store, session, log)
    }

    fn insert(session: &mut SqliteSession, n: u128) {
        let roster = Roster { workspace: WorkspaceId::from_bits(n), epoch: 1, agents: 0, mandates: 0 };
        let (key, link) = (Roster::key(roster.id()), roster.links());
        let write = Write { key, record: Some(Roster::wrap(Arc::new(roster))), unlink: Vec::new(), link };
        let commit = Commit { checks: vec![(key, Stamp::ABSENT)], writes: vec![write] };
        assert!(matches!(session.commit(&commit), Ok(Committed::Applied(_))));
    }

    fn length(log: &Log) -> u64 {
        std::fs::metadata(log_of(&log.database)).unwrap().len()
    }

    /// A lane's connection alone is left without the sync, and what is synced instead is the file that SQLite writes.
    #[test]
    fn a_lanes_connection_alone_is_normal() {
        let (_dir, store, mut session, mut log) = setup();
        let level = |session: &mut SqliteSession| -> i64 {
            session.parts().unwrap().0.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap()
        };
        let mut lane = store.lane_writer().unwrap();
        assert_eq!((level(&mut session), level(&mut lane.session), level(&mut store.writer().unwrap())), (1, 1, 2));
        assert!(lane.durability.is_some());
        let (inode, before) = (log.file.metadata().unwrap().ino(), length(&log));
        insert(&mut session, 1);
        assert!(length(&log) > before, "every frame is in the file when the commit has returned");
        assert_eq!(std::fs::metadata(log_of(store.path())).unwrap().ino(), inode);
        assert!(log.sync().is_ok());
        let seen = store.newest_seen(&mut store.reader().unwrap()).unwrap();
        assert!(seen > Stamp::ABSENT && store.newest_seen(&mut session).unwrap() == seen);
    }

    /// After a failed sync the log is emptied into the database before a sync succeeds, and not while a reader holds it.
    #[test]
    fn a_log_that_may_have_holes_is_given_up() {
        let (_dir, store, mut session, mut log) = setup();
        insert(&mut session, 1);
        let mut reader = store.reader().unwrap();
        assert!(reader.load(&[]).is_ok() && reader.last_stamp().is_ok());
        insert(&mut session, 2);
        // Nothing there can be made durable, as on a disk that is gone.
        log.file = File::open("/dev/null").unwrap();
        let failed = log.sync();
        assert!(matches!(failed, Err(StoreError::File { .. })), "{failed:?}");
        let conn = super::super::connect(store.path()).unwrap();
        conn.busy_timeout(std::time::Duration::ZERO).unwrap();
        let held = log.give_up(&conn);
        assert!(matches!(held, Err(StoreError::Locked(_))), "{held:?}");
        assert!(log.broken && length(&log) > 0);
        drop(reader);
        assert!(log.sync().is_ok());
        assert_eq!(length(&log), 0);
        insert(&mut session, 3);
        assert!(length(&log) > 0 && log.sync().is_ok());
        assert!(length(&log) > 0, "the log is as good as before");
        assert_eq!(log.file.metadata().unwrap().ino(), std::fs::metadata(log_of(store.path())).unwrap().ino());
    }
}
