//! SQLite in a directory: one file that `sqlite3` can read, one writer, any number of readers.
//!
//! Write-ahead log, `synchronous=FULL`: an answer that was given survives a power cut. Readers see one snapshot each and are
//! never in the writer's way.
//!
//! Most rows lie in the table of their kind. Those that decisions write all over their tables wait in `redo` first, so the
//! newest image of an activity, a payee or an idempotency key is the one with the highest id there, if there is one.

mod backup;
mod checkpoint;
mod commit;
mod errors;
mod fold;
mod left;
mod moved;
mod others;
mod pages;
mod place;
mod pool;
mod redo;
mod restored;
mod scan;
mod schema;
mod seen;
mod served;
mod session;
#[cfg(feature = "postgres")]
pub(crate) mod source;
mod statements;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use self::checkpoint::{Checkpointer, Checkpoints, Limits};
use self::errors::database;
use self::fold::Folding;
use self::others::{Commits, Lookout};
use self::place::Place;
use self::pool::Pool;
use self::redo::Redo;
use self::schema::Marks;
use self::session::Writing;
use crate::backend::{Backend, Others};
use crate::error::StoreError;

pub use self::backup::{BreakOff, Copied, Progress, Work, backup, backup_unless};
pub use self::left::may_begin;
pub use self::pages::look_through;
pub use self::restored::{OF_A_BACKUP, is_unserved_backup, told_of_backup};
pub use self::schema::SCHEMA;
pub use self::session::SqliteSession;

/// The database's name in its directory.
pub const DATABASE: &str = "svc.db";

/// How long a connection waits for another process's commit.
const BUSY: Duration = Duration::from_secs(5);
/// How long it lets others go first where SQLite does not wait itself.
const SET_UP_AGAIN: Duration = Duration::from_millis(5);
/// More than there are statements on all tables.
const STATEMENTS_KEPT: usize = 256;
/// What every connection that writes is set to. Checkpoints have their own thread. A commit that splits a page makes SQLite
/// look through the whole page cache once, so a larger cache makes small commits dearer; what 4 MiB do not hold is in the
/// system's own cache, and reading it from there costs no more than that look. A cell that is let go is overwritten at once: what
/// is erased later may have stood in it before its row was written anew. macOS has its disks write what they hold in memory where it is
/// asked for by `fullfsync` alone, which does nothing elsewhere.
const SETTINGS: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; \
     PRAGMA checkpoint_fullfsync=ON; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-4000; \
     PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=104857600; PRAGMA secure_delete=FAST;";

/// A database in a directory. Clones share it; it closes with the last of them.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    pool: Arc<Pool>,
    checkpoints: Arc<Checkpoints>,
    commits: Arc<Commits>,
    folding: Folding,
    /// Ends before the pool: a field is dropped in the order of declaration, and a thread holds no reader.
    _checkpointer: Checkpointer,
}

impl SqliteStore {
    /// Opens the database in `directory`, or makes both. The directory is this user's alone when it is made here, and the
    /// database's files always are.
    ///
    /// # Errors
    /// [`StoreError::ForeignDirectory`], [`StoreError::ForeignDatabase`], [`StoreError::NewerSchema`], [`StoreError::Served`]
    /// where the schema is an older one and a server works on it, [`StoreError::WithoutLog`] where a server works on it and its log was
    /// removed, [`StoreError::DatabaseMissing`], [`StoreError::ForeignLog`], [`StoreError::Linked`], or whatever keeps the files from being used; nothing was changed then.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::start(place_in(directory.as_ref())?, false, Limits::default(), Folding::default())
    }

    /// As [`open`](Self::open), for the server itself, which holds the lock of the directory that the database lies in: an older
    /// schema is brought up to date here.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_to_serve(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::start(place_in(directory.as_ref())?, true, Limits::default(), Folding::default())
    }

    /// Opens the database that is in `directory`, and makes none.
    ///
    /// # Errors
    /// [`StoreError::NoData`] where there is none and none was, and as [`open`](Self::open).
    pub fn existing(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        let directory = directory.as_ref();
        let path = directory.join(DATABASE);
        if !exists(&path)? {
            return Err(left::absent(directory));
        }
        Self::start(path, false, Limits::default(), Folding::default())
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    fn start(path: PathBuf, serves: bool, limits: Limits, folding: Folding) -> Result<Self, StoreError> {
        let log_stood = !log_is_cut(&path)?;
        if !serves {
            served::is_whole(&path)?;
        }
        let found = look(&path)?;
        let _no_server = if serves { None } else { served::keep_out(&path, found)? };
        own_file(&path)?;
        let is_restored = if found.is_some_and(|it| it > 0) { restored::note(&path)? } else { false };
        let mut conn = connect(&path)?;
        schema::migrate(&mut conn)?;
        if is_restored {
            tracing::warn!(path = %path.display(), "{OF_A_BACKUP}");
        }
        // While these two are open the log is the one that they have.
        let checkpoints = Arc::new(Checkpoints::new(limits, log_stood));
        let checkpointer = Checkpointer::start(&path, Arc::clone(&checkpoints))?;
        let pool = Arc::new(Pool::new(Place::of(&path)?, &path));
        let commits = Arc::new(Commits::default());
        Ok(Self { shared: Arc::new(Shared { path, pool, checkpoints, commits, folding, _checkpointer: checkpointer }) })
    }
}

impl Backend for SqliteStore {
    type Session = SqliteSession;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<SqliteSession, StoreError> {
        let shared = &*self.shared;
        let redo = Redo::new(shared.pool.positions());
        let (checkpoints, commits) = (Arc::clone(&shared.checkpoints), Arc::clone(&shared.commits));
        let writing = Writing::new(checkpoints, commits, redo, shared.folding, Arc::clone(shared.pool.place()));
        Ok(SqliteSession::writer(connect(&shared.path)?, writing))
    }

    fn reader(&self) -> Result<SqliteSession, StoreError> {
        self.shared.pool.reader()
    }

    fn others(&self) -> Result<Option<Box<dyn Others>>, StoreError> {
        Ok(Some(Box::new(Lookout::new(&self.shared.path, Arc::clone(&self.shared.commits))?)))
    }
}

/// The schema of the database in `directory`, [`SCHEMA`] or an older one; 0 where nothing was written yet. Nothing is
/// changed.
///
/// # Errors
/// [`StoreError::NoData`], [`StoreError::DatabaseMissing`], [`StoreError::ForeignDatabase`], [`StoreError::NewerSchema`],
/// [`StoreError::ForeignLog`], [`StoreError::Linked`], [`StoreError::WithoutLog`] where a server works on it and its log was removed, or whatever keeps the file from being read.
pub fn schema_of(directory: impl AsRef<Path>) -> Result<i64, StoreError> {
    let directory = directory.as_ref();
    let path = directory.join(DATABASE);
    if !exists(&path)? {
        return Err(left::absent(directory));
    }
    served::is_whole(&path)?;
    Ok(look(&path)?.unwrap_or(0))
}

/// Whether nothing that was erased stands in the log of the database in `directory`, because nothing stands there at all.
///
/// # Errors
/// The log cannot be looked at.
pub fn is_log_cut(directory: impl AsRef<Path>) -> Result<bool, StoreError> {
    log_is_cut(&directory.as_ref().join(DATABASE))
}

/// The files of the database in `directory`, there or not: itself, and what lies beside it while it is open, its log and the log's index.
#[must_use]
pub fn files(directory: impl AsRef<Path>) -> [PathBuf; 3] {
    let database = directory.as_ref().join(DATABASE);
    let [log, index] = [place::log_of(&database), place::index_of(&database)];
    [database, log, index]
}

fn log_is_cut(database: &Path) -> Result<bool, StoreError> {
    let log = place::log_of(database);
    match fs::metadata(&log) {
        Ok(about) => Ok(about.len() == 0),
        Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(true),
        Err(cause) => Err(StoreError::file(&log, "it cannot be looked at", cause)),
    }
}

/// A connection that may write.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(database)?;
    conn.busy_timeout(BUSY).map_err(database)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    plan_once(&conn)?;
    set_up(&conn)?;
    Ok(conn)
}

/// Sets a connection up. Of several that turn the log on in a new file at once, SQLite tells some that it is locked without waiting
/// as it was told to: they ask again, for as long as it would have waited.
fn set_up(conn: &Connection) -> Result<(), StoreError> {
    let began = Instant::now();
    loop {
        match conn.execute_batch(SETTINGS) {
            Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && began.elapsed() < BUSY => {
                // Nothing tells of the moment when the other one is done.
                thread::park_timeout(SET_UP_AGAIN);
            }
            done => return done.map_err(database),
        }
    }
}

/// Keeps SQLite from planning a statement again because other values are bound to it: what is run here has one good plan, and
/// looking for another cost more than the statement.
fn plan_once(conn: &Connection) -> Result<(), StoreError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop).map_err(database)
}

/// Whether what is there is this service's, before anything is changed: its schema, if anything was written.
fn look(path: &Path) -> Result<Option<i64>, StoreError> {
    match marks_of(path)? {
        None | Some(Marks::Empty) => Ok(None),
        Some(Marks::Ours(found)) if found > SCHEMA => Err(StoreError::NewerSchema { found, known: SCHEMA }),
        Some(Marks::Ours(found)) => Ok(Some(found)),
        Some(Marks::Moved(_)) => Err(moved::refusal(&look_at(path)?, path)),
        Some(Marks::Foreign) => Err(StoreError::ForeignDatabase { path: path.to_owned() }),
    }
}

/// What the file at `path` says that it is, before anything is changed; `None` where there is none.
fn marks_of(path: &Path) -> Result<Option<Marks>, StoreError> {
    if !exists(path)? {
        return Ok(None);
    }
    place::has_one_name(path)?;
    left::is_not_lost(path)?;
    left::is_own_log(path)?;
    match schema::marks(&look_at(path)?) {
        Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Ok(Some(Marks::Foreign)),
        found => found.map(Some).map_err(database),
    }
}

/// A connection for a look. One that may not write could not read a log that nobody has open.
fn look_at(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(database)?;
    conn.busy_timeout(BUSY).map_err(database)?;
    Ok(conn)
}

fn exists(path: &Path) -> Result<bool, StoreError> {
    path.try_exists().map_err(|cause| StoreError::file(path, "whether it exists cannot be told", cause))
}

/// Where the database is in `directory`, which is made where it is not there, or found free of other programs' files.
fn place_in(directory: &Path) -> Result<PathBuf, StoreError> {
    let path = directory.join(DATABASE);
    if !exists(&path)? {
        claim(directory)?;
    }
    Ok(path)
}

/// Makes `directory`, or finds it free of other programs' files.
fn claim(directory: &Path) -> Result<(), StoreError> {
    may_begin(directory)?;
    if exists(directory)? { Ok(()) } else { make_directory(directory) }
}

fn make_directory(directory: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|cause| StoreError::file(directory, "it cannot be made", cause))
}

/// The file is there and this user's alone; SQLite gives the log the same mode.
fn own_file(path: &Path) -> Result<(), StoreError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|cause| StoreError::file(path, "it cannot be opened for writing", cause))
}
