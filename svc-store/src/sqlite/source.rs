//! A database that its gate leaves: read whole while nobody writes it, and marked as moved.
//!
//! **Invariant:** what was read is what is there when the mark is set: both are one transaction that keeps every other writer out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use svc_core::store::{Key, Loaded, Table};

use super::errors::database;
use super::moved::{mark, refusal, set, take_off};
use super::redo::ORDINAL_BITS;
use super::schema::{self, Marks, SCHEMA, is_deferred};
use super::session::{number, read_row};
use super::statements::{BEGIN_WRITE, COMMIT, LAST_STAMP};
use super::{DATABASE, SET_UP_AGAIN, connect, exists, left, look_at, marks_of, restored};
use crate::error::StoreError;
use crate::moving::MoveFault;

pub(crate) use super::moved::Mark;

/// Rows that are read at once, and about how many bytes of them.
const BATCH: (usize, usize) = (2_048, 4 << 20);
/// How long a command that has the file open may take to end.
const PASSING: Duration = Duration::from_secs(2);

/// Finds out whether anybody has the file open: as long as they do, they share a lock in it that is asked for whole here.
const ALONE: &str = "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK;";
/// The newest image of each row that waits in `redo`. Entries of lists have no key there: they follow from the rows.
const NEWEST: &str = "CREATE TEMP TABLE newest (\"of\" TEXT NOT NULL, key BLOB NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (\"of\", key)) \
     WITHOUT ROWID; INSERT INTO temp.newest (\"of\", key, id) \
     SELECT \"of\", key, max(id) FROM main.redo WHERE length(key) > 0 GROUP BY \"of\", key;";

/// Looks at the database in `directory`: its schema, and its mark where it was left before. No row is changed.
///
/// # Errors
/// [`StoreError::NoData`], [`StoreError::NewerSchema`], [`MoveFault::InUse`], and whatever else keeps it from being opened.
pub(crate) fn look(directory: &Path) -> Result<(i64, Option<Mark>), StoreError> {
    let path = directory.join(DATABASE);
    if !exists(&path)? {
        return Err(left::absent(directory));
    }
    let found = marks_of(&path)?;
    let (schema, is_marked) = match found {
        None | Some(Marks::Empty) => return Err(StoreError::NoData { path: directory.to_owned() }),
        Some(Marks::Foreign) => return Err(StoreError::ForeignDatabase { path }),
        Some(Marks::Ours(schema)) => (schema, false),
        Some(Marks::Moved(schema)) => (schema, true),
    };
    if schema > SCHEMA {
        return Err(StoreError::NewerSchema { found: schema, known: SCHEMA });
    }
    is_alone(&path)?;
    let marked = if is_marked { Some(mark(&look_at(&path)?)?) } else { None };
    Ok((schema, marked))
}

/// That no other program has the database open.
fn is_alone(path: &Path) -> Result<(), StoreError> {
    let began = Instant::now();
    loop {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags).map_err(database)?;
        conn.busy_timeout(Duration::ZERO).map_err(database)?;
        match conn.execute_batch(ALONE) {
            Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                if began.elapsed() >= PASSING {
                    return Err(StoreError::Move(MoveFault::InUse { path: path.to_owned() }));
                }
                thread::park_timeout(SET_UP_AGAIN);
            }
            done => return done.map_err(database),
        }
    }
}

/// The database, in a transaction that keeps every other writer out until it is marked.
pub(crate) struct Source {
    conn: Connection,
    path: PathBuf,
}

impl Source {
    /// Begins: brings the database to this release's schema, and looks through its pages. `marked` is what [`look`] has found.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`MoveFault::Moved`] where another move has marked it meanwhile, or whatever keeps it from being opened.
    pub(crate) fn begin(directory: &Path, marked: Option<&Mark>) -> Result<Self, StoreError> {
        let path = directory.join(DATABASE);
        restored::note(&path)?;
        let mut conn = connect(&path)?;
        schema::bring(&mut conn, true)?;
        conn.execute_batch(BEGIN_WRITE).map_err(database)?;
        if let Marks::Moved(_) = schema::marks(&conn)?
            && marked != Some(&mark(&conn)?)
        {
            return Err(refusal(&conn, &path));
        }
        let told: String = conn.query_row("PRAGMA main.quick_check(1)", [], |row| row.get(0)).map_err(database)?;
        if told != "ok" {
            return Err(StoreError::Corrupt(Arc::new(std::io::Error::other(told))));
        }
        conn.execute_batch(NEWEST).map_err(database)?;
        Ok(Self { conn, path })
    }

    /// How many rows a table has, those that wait in `redo` included.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn count(&self, table: Table) -> Result<u64, StoreError> {
        let count = number(&self.conn, &format!("SELECT count(*) FROM ({})", rows_of(table, "key")))?;
        Ok(count.unsigned_abs())
    }

    /// Reads a table, some rows at a time.
    ///
    /// # Errors
    /// A row cannot be read, or `take` fails.
    pub(crate) fn read(
        &self,
        table: Table,
        take: &mut dyn FnMut(Vec<Loaded>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.conn.prepare(&rows_of(table, "key, stamp, format, body"))?;
        let mut rows = statement.query([])?;
        let (mut batch, mut bytes) = (Vec::new(), 0_usize);
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_blob().ok().and_then(|bytes| Key::decode(table, bytes));
            let key = key.ok_or(StoreError::Malformed("a row's key is none of its table"))?;
            let (stamp, record) = read_row(table, row, 1)?;
            if let ValueRef::Text(body) | ValueRef::Blob(body) = row.get_ref(3)? {
                bytes = bytes.saturating_add(body.len());
            }
            batch.push(Loaded { key, stamp, record: Some(record) });
            if batch.len() >= BATCH.0 || bytes >= BATCH.1 {
                bytes = 0;
                take(std::mem::take(&mut batch))?;
            }
        }
        if batch.is_empty() { Ok(()) } else { take(batch) }
    }

    /// The number of the newest commit.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn stamp(&self) -> Result<u64, StoreError> {
        Ok(number(&self.conn, LAST_STAMP)?.unsigned_abs())
    }

    /// Marks the file, durably, and lets others open it, who find the mark.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn leave(&mut self, mark: &Mark) -> Result<(), StoreError> {
        set(&self.conn, mark)?;
        self.end()
    }

    /// Takes the mark off again: the gate is known to be nowhere else.
    ///
    /// # Errors
    /// It cannot be written. The file stays marked then.
    pub(crate) fn stay(&mut self) -> Result<(), StoreError> {
        self.conn.execute_batch(BEGIN_WRITE).map_err(database)?;
        take_off(&self.conn)?;
        self.end()
    }

    fn end(&self) -> Result<(), StoreError> {
        self.conn.execute_batch(COMMIT).map_err(database)?;
        // It is in the log, flushed. Whoever copies the file alone finds it there too where the log can be written back now.
        drop(self.conn.query_row("PRAGMA main.wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        Ok(())
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Source").field(&self.path).finish()
    }
}

/// The rows of a table as a reader finds them: of those that wait in `redo`, the newest image; one that says so deletes its row.
fn rows_of(table: Table, columns: &str) -> String {
    let name = table.name();
    if !is_deferred(table) {
        return format!("SELECT {columns} FROM main.\"{name}\"");
    }
    format!(
        "SELECT {columns} FROM (SELECT it.key, it.stamp, it.format, it.body FROM main.\"{name}\" AS it \
         WHERE NOT EXISTS (SELECT 1 FROM temp.newest AS n WHERE n.\"of\"='{name}' AND n.key=it.key) \
         UNION ALL SELECT r.key, r.id >> {ORDINAL_BITS}, r.format, r.body FROM temp.newest AS n JOIN main.redo AS r ON r.id=n.id \
         WHERE n.\"of\"='{name}' AND r.body IS NOT NULL)"
    )
}
