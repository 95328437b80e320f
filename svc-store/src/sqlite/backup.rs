//! A copy of the database, made while it is written.
//!
//! One read transaction is held from the first page to the last, so the copy is the database of one moment, whatever is
//! committed meanwhile, and nobody waits for it. The copy is made beside its name, checked as a database of its own, flushed to
//! the disk, and only then given its name.
//!
//! **Invariant:** no file that was there before is changed, and no file with the backup's name is half a backup.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::errors::database;
use super::schema::{Marks, marks};
use super::{BUSY, DATABASE, exists, left, look, served};
use crate::error::StoreError;

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
}

/// How far a backup is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Copied.
    pub done: u64,
    /// To be copied in all.
    pub total: u64,
}

/// Copies the database in `directory` to the new file `to`, while others read and write it, and checks the copy. `told` hears
/// how far it is.
///
/// # Errors
/// [`StoreError::NoData`]; [`StoreError::DatabaseMissing`]; [`StoreError::WithoutLog`] where a server works on it and its log was removed; [`StoreError::File`] where `to` is there already or cannot be made; [`StoreError::Corrupt`] where
/// the copy does not check, which says that the database itself is damaged. No file is left then.
pub fn backup(directory: &Path, to: &Path, told: &mut dyn FnMut(Progress)) -> Result<Copied, StoreError> {
    let path = directory.join(DATABASE);
    served::is_whole(&path)?;
    if look(&path)?.is_none() {
        return Err(left::absent(directory));
    }
    if exists(to)? {
        return Err(taken(to));
    }
    let part = Partial::make(to)?;
    let copied = copy(&path, &part.0, told).map_err(|error| match error {
        // Of the copy: what the gate itself writes is elsewhere, or it tells of that itself.
        StoreError::Full(_) => {
            let what =
                "the disk under it is full, while the gate goes on as before: make room there, or name another place";
            StoreError::file(to, what, ErrorKind::StorageFull.into())
        }
        error => error,
    })?;
    part.keep_as(to)?;
    Ok(copied)
}

fn taken(to: &Path) -> StoreError {
    let cause = std::io::Error::from(ErrorKind::AlreadyExists);
    StoreError::file(to, "a backup overwrites nothing: name a new file, or move this one away", cause)
}

fn copy(from: &Path, to: &Path, told: &mut dyn FnMut(Progress)) -> Result<Copied, StoreError> {
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
            told(Progress { done: bytes(at.pagecount.saturating_sub(at.remaining)), total: bytes(at.pagecount) });
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                // SQLite has waited already: whoever is in the way is not done in a moment.
                _ => {
                    let cause = std::io::Error::other("the backup could not read on");
                    return Err(StoreError::Locked(std::sync::Arc::new(cause)));
                }
            }
        }
    }
    drop(source);
    check(&target)
}

/// Whether the copy is whole and a database of this service.
fn check(target: &Connection) -> Result<Copied, StoreError> {
    // A file of its own: no log beside it is needed to read it.
    target.execute_batch("PRAGMA journal_mode=DELETE").map_err(database)?;
    let told: String = target.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(database)?;
    let damaged = |what: String| StoreError::Corrupt(std::sync::Arc::new(std::io::Error::other(what)));
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
    Ok(Copied { bytes: bytes.unsigned_abs(), schema, stamp: stamp.unsigned_abs() })
}

/// A backup under way, beside the name that it gets; gone with this value unless it is kept.
struct Partial(PathBuf);

impl Partial {
    fn make(to: &Path) -> Result<Self, StoreError> {
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let path = to.with_file_name(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path).map_err(|cause| StoreError::file(to, "it cannot be made", cause))?;
        Ok(Self(path))
    }

    /// Flushes the file, gives it its name, and flushes that.
    fn keep_as(self, to: &Path) -> Result<(), StoreError> {
        let failed = |doing| move |cause| StoreError::file(to, doing, cause);
        fs::File::open(&self.0).and_then(|it| it.sync_all()).map_err(failed("it cannot be flushed to the disk"))?;
        // A second name is given only where there is none, and where the disk gives no second names, a moment after a look.
        match fs::hard_link(&self.0, to) {
            Ok(()) => {}
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => return Err(taken(to)),
            Err(_) if exists(to)? => return Err(taken(to)),
            Err(_) => fs::rename(&self.0, to).map_err(failed("it cannot be given its name"))?,
        }
        drop(self);
        let parent = to.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        fs::File::open(parent).and_then(|it| it.sync_all()).map_err(failed("its directory cannot be flushed"))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // What cannot be taken away is left: its name says that it is partial.
        let _ = fs::remove_file(&self.0);
    }
}
