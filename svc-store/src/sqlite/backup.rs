//! A copy of the database, made while it is written.
//!
//! One read transaction is held from the first page to the last, so the copy is the database of one moment, whatever is
//! committed meanwhile, and nobody waits for it. The copy is made beside its name, checked as a database of its own, flushed to
//! the disk, and only then given its name.
//!
//! **Invariant:** no file that was there before is changed but the parts of backups whose process is gone, and no file with the backup's
//! name is half a backup.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, InterruptHandle, OpenFlags};
use svc_core::store::{Commit, CommitError, Committed, Found, Key, Listed, Loaded, Range, Store};

use super::errors::database;
use super::redo::Redo;
use super::schema::{Marks, marks};
use super::session::load_row;
use super::{BUSY, DATABASE, SCHEMA, exists, left, look, scan, served};
use crate::error::StoreError;
use crate::flush::flush_names;
use crate::read_back;

/// Pages that are copied between two tellings of how far it is.
const STEP: i32 = 2_048;

/// A backup that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Its size in bytes.
    pub bytes: u64,
    /// The schema of what was copied.
    pub schema: i64,
    /// The number of the newest commit that is in it.
    pub stamp: u64,
    /// How many records of ledgers are in it, each of which is the one that was written; `None` of an older schema, whose ledgers a server
    /// of this release reads.
    pub records: Option<u64>,
}

/// How far a backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is at.
    pub work: Work,
    /// Copied, or read back.
    pub done: u64,
    /// To be copied, or read back, in all.
    pub total: u64,
}

/// What a backup does, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Bytes are copied.
    Copy,
    /// The copy's ledgers are read back, record by record.
    ReadBack,
}

/// Breaks a backup off, from another thread than the one that makes it.
#[derive(Clone, Default)]
pub struct BreakOff {
    asked: Arc<Mutex<Asked>>,
}

/// Whether it was asked for, and what breaks a statement off that runs on the copy.
#[derive(Default)]
struct Asked {
    is_asked: bool,
    copy: Option<InterruptHandle>,
}

impl BreakOff {
    /// Has the backup end soon; nothing is left of it then.
    pub fn now(&self) {
        let mut asked = self.asked();
        asked.is_asked = true;
        if let Some(copy) = &asked.copy {
            copy.interrupt();
        }
    }

    /// Whether it was asked for; from here on a statement on `copy` is broken off where it is asked for later.
    fn watches(&self, copy: &Connection) -> bool {
        let mut asked = self.asked();
        asked.copy = Some(copy.get_interrupt_handle());
        asked.is_asked
    }

    fn is_asked(&self) -> bool {
        self.asked().is_asked
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for BreakOff {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BreakOff").field("is_asked", &self.is_asked()).finish()
    }
}

/// Copies the database in `directory` to the new file `to`, while others read and write it, and checks the copy. `told` hears
/// how far it is.
///
/// # Errors
/// [`StoreError::NoData`]; [`StoreError::DatabaseMissing`]; [`StoreError::WithoutLog`] where a server works on it and its log was removed; [`StoreError::File`] where `to` is there already or cannot be made; [`StoreError::Corrupt`] where
/// the copy does not check, which says that the database itself is damaged, or a record of a ledger was changed beside the gate. No file is left then.
pub fn backup(directory: &Path, to: &Path, told: &mut dyn FnMut(Progress)) -> Result<Copied, StoreError> {
    let made = backup_unless(&BreakOff::default(), directory, to, told)?;
    made.ok_or(StoreError::Malformed("a backup was broken off that nobody can break off"))
}

/// The same, unless it is broken off: `None` then, and no file is left.
///
/// # Errors
/// As [`backup`].
pub fn backup_unless(
    off: &BreakOff,
    directory: &Path,
    to: &Path,
    told: &mut dyn FnMut(Progress),
) -> Result<Option<Copied>, StoreError> {
    let path = directory.join(DATABASE);
    served::is_whole(&path)?;
    if look(&path)?.is_none() {
        return Err(left::absent(directory));
    }
    if exists(to)? {
        return Err(taken(to));
    }
    let part = Partial::make(to)?;
    let copied = match copy(&path, &part.0, off, told) {
        Err(_) if off.is_asked() => return Ok(None),
        copied => copied,
    };
    let copied = copied.map_err(|error| match error {
        // Of the copy: what the gate itself writes is elsewhere, or it tells of that itself.
        StoreError::Full(_) => {
            let what =
                "the disk under it is full, while the gate goes on as before: make room there, or name another place";
            StoreError::file(to, what, ErrorKind::StorageFull.into())
        }
        error => error,
    })?;
    if off.is_asked() {
        return Ok(None);
    }
    part.keep_as(to)?;
    Ok(Some(copied))
}

fn taken(to: &Path) -> StoreError {
    let cause = std::io::Error::from(ErrorKind::AlreadyExists);
    StoreError::file(to, "a backup overwrites nothing: name a new file, or move this one away", cause)
}

fn copy(from: &Path, to: &Path, off: &BreakOff, told: &mut dyn FnMut(Progress)) -> Result<Copied, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags).map_err(database)?;
    source.busy_timeout(BUSY).map_err(database)?;
    // Without a transaction of its own, every commit of others would have the copy begin again.
    source.execute_batch("PRAGMA query_only=ON; BEGIN; SELECT count(*) FROM sqlite_schema;").map_err(database)?;
    let mut target = Connection::open_with_flags(to, flags).map_err(database)?;
    let page: i64 = source.query_row("PRAGMA page_size", [], |row| row.get(0)).map_err(database)?;
    let bytes = |pages: i32| u64::try_from(i64::from(pages).saturating_mul(page)).unwrap_or(0);
    {
        let backup = Backup::new(&source, &mut target).map_err(database)?;
        loop {
            let step = backup.step(STEP).map_err(database)?;
            let at = backup.progress();
            let (done, total) = (bytes(at.pagecount.saturating_sub(at.remaining)), bytes(at.pagecount));
            told(Progress { work: Work::Copy, done, total });
            match step {
                _ if off.is_asked() => return Err(broken_off()),
                StepResult::Done => break,
                StepResult::More => {}
                // SQLite has waited already: whoever is in the way is not done in a moment.
                _ => {
                    let cause = std::io::Error::other("the backup could not read on");
                    return Err(StoreError::Locked(Arc::new(cause)));
                }
            }
        }
    }
    drop(source);
    if off.watches(&target) {
        return Err(broken_off());
    }
    let copied = check(&target)?;
    let records = if copied.schema == SCHEMA { Some(read_back(&target, off, told)?) } else { None };
    Ok(Copied { records, ..copied })
}

/// That the ledgers of the copy are those that were written; gives how many records they have.
fn read_back(target: &Connection, off: &BreakOff, told: &mut dyn FnMut(Progress)) -> Result<u64, StoreError> {
    let mut copy = Copy { conn: target, redo: Redo::new(&Arc::default()) };
    let read = read_back::all(&mut copy, &mut |done, total| {
        told(Progress { work: Work::ReadBack, done, total });
        !off.is_asked()
    })?;
    if read.is_all { Ok(read.records) } else { Err(broken_off()) }
}

/// The copy as a store that is read alone.
struct Copy<'conn> {
    conn: &'conn Connection,
    redo: Redo,
}

impl Store for Copy<'_> {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        keys.iter().map(|key| load_row(self.conn, &mut self.redo, *key)).collect()
    }

    fn commit(&mut self, _: &Commit) -> Result<Committed, CommitError<StoreError>> {
        Err(CommitError::Rejected(StoreError::Malformed("nothing is committed to a backup")))
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        scan::list(self.conn, &mut self.redo, range)?.into_iter().map(Listed::found).collect()
    }
}

/// What is given to nobody: whoever asked for it is told in another way.
const fn broken_off() -> StoreError {
    StoreError::Malformed("the backup was broken off")
}

/// Whether the copy is whole and a database of this service.
fn check(target: &Connection) -> Result<Copied, StoreError> {
    // A file of its own: no log beside it is needed to read it.
    target.execute_batch("PRAGMA journal_mode=DELETE").map_err(database)?;
    let told: String = target.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(database)?;
    let damaged = |what: String| StoreError::Corrupt(Arc::new(std::io::Error::other(what)));
    if told != "ok" {
        return Err(damaged(told));
    }
    let Marks::Ours(schema) = marks(target).map_err(database)? else {
        return Err(damaged("the copy is not a database of svc".to_owned()));
    };
    let stamp = "SELECT value FROM meta WHERE name = 'stamp'";
    let stamp: i64 = target.query_row(stamp, [], |row| row.get(0)).map_err(database)?;
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let bytes: i64 = target.query_row(size, [], |row| row.get(0)).map_err(database)?;
    Ok(Copied { bytes: bytes.unsigned_abs(), schema, stamp: stamp.unsigned_abs(), records: None })
}

/// A backup under way, beside the name that it gets; gone with this value unless it is kept.
struct Partial(PathBuf);

impl Partial {
    fn make(to: &Path) -> Result<Self, StoreError> {
        Self::clear(to);
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.{PARTIAL}", std::process::id()));
        let path = to.with_file_name(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path).map_err(|cause| StoreError::file(to, "it cannot be made", cause))?;
        Ok(Self(path))
    }

    /// Takes away what is left of backups of the same name whose process is gone, as far as the system tells and this user may.
    fn clear(to: &Path) {
        let Some(name) = to.file_name().and_then(|it| it.to_str()) else { return };
        for entry in fs::read_dir(parent_of(to)).into_iter().flatten().filter_map(Result::ok) {
            let found = entry.file_name();
            let part = found.to_str().and_then(|it| it.strip_prefix(name)?.strip_prefix('.')?.split_once('.'));
            let process = part.filter(|(_, rest)| [PARTIAL, PARTIAL_JOURNAL].contains(rest));
            if process.and_then(|(id, _)| id.parse().ok()).is_some_and(is_gone) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Flushes the file, gives it its name, and flushes that.
    fn keep_as(self, to: &Path) -> Result<(), StoreError> {
        let failed = |doing| move |cause| StoreError::file(to, doing, cause);
        // For writing: Windows flushes no file that is open for reading alone.
        let file = fs::OpenOptions::new().write(true).open(&self.0);
        file.and_then(|it| it.sync_all()).map_err(failed("it cannot be flushed to the disk"))?;
        // A second name is given only where there is none, and where the disk gives no second names, a moment after a look.
        match fs::hard_link(&self.0, to) {
            Ok(()) => {}
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => return Err(taken(to)),
            Err(_) if exists(to)? => return Err(taken(to)),
            Err(_) => fs::rename(&self.0, to).map_err(failed("it cannot be given its name"))?,
        }
        drop(self);
        flush_names(parent_of(to)).map_err(failed("its directory cannot be flushed"))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // What cannot be taken away is left: its name says that it is partial.
        let _ = fs::remove_file(&self.0);
    }
}

/// How a part ends, and the journal that SQLite keeps beside it.
const PARTIAL: &str = "partial";
const PARTIAL_JOURNAL: &str = "partial-journal";

fn parent_of(file: &Path) -> &Path {
    file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Whether no process has this number, where the system lists them.
fn is_gone(process: u32) -> bool {
    let listed = Path::new("/proc");
    listed.join("self").exists() && !listed.join(process.to_string()).exists()
}
