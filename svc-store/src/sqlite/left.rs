//! What lies where a database is begun or opened: a log holds what was answered last, and SQLite removes one that it finds beside an
//! empty file, and writes one that it finds beside another database into that.
//!
//! **Invariant:** it is looked at before SQLite has opened the file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{DATABASE, exists, log_is_cut, place};
use crate::error::StoreError;
use crate::reached::BASE_URL;

/// What may lie in its directory before a database, beside files called `svc.`: a mount point's own folder, our key and the note of where
/// a server is reached, whole or not, and what keeps an empty directory in a repository.
const BESIDE: [&str; 6] = ["lost+found", "master.key", BASE_URL, "base-url.new", ".gitignore", ".gitkeep"];
/// What SQLite calls its own beside the database. Others that begin like it are databases that somebody put aside.
const OF_DATABASE: [&str; 3] = ["svc.db-wal", "svc.db-shm", "svc.db-journal"];

/// Whether a database could be begun in `directory`, as far as what lies there tells: it is free of other programs' files and of
/// what is left of a database, or not made yet. Nothing is changed.
///
/// # Errors
/// [`StoreError::ForeignDirectory`], [`StoreError::DatabaseMissing`], or the directory cannot be listed.
pub fn may_begin(directory: impl AsRef<Path>) -> Result<(), StoreError> {
    let directory = directory.as_ref();
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(StoreError::file(directory, "it cannot be listed", cause)),
    };
    for entry in listed {
        let entry = entry.map_err(|cause| StoreError::file(directory, "it cannot be listed", cause))?;
        let found = entry.file_name().to_string_lossy().into_owned();
        let is_aside = found.starts_with(DATABASE) && found != DATABASE && !OF_DATABASE.contains(&&*found);
        if is_aside || (!found.starts_with("svc.") && !BESIDE.contains(&&*found)) {
            return Err(StoreError::ForeignDirectory { path: directory.to_owned(), found });
        }
    }
    is_not_lost(&directory.join(DATABASE))
}

/// That the database at `path` has something in it if anything is left of one: its log, or the note of a server that served it.
///
/// # Errors
/// [`StoreError::DatabaseMissing`], or a file cannot be looked at.
pub(super) fn is_not_lost(path: &Path) -> Result<(), StoreError> {
    // Whoever begins one has written to it before the log grows or the note is there: what is looked at later has no less in it.
    let Some(left) = left_of(path)? else { return Ok(()) };
    let is_empty = match fs::metadata(path) {
        Ok(about) => about.len() == 0,
        Err(cause) if cause.kind() == ErrorKind::NotFound => true,
        Err(cause) => return Err(StoreError::file(path, "it cannot be looked at", cause)),
    };
    if is_empty { Err(StoreError::DatabaseMissing { path: path.to_owned(), left }) } else { Ok(()) }
}

/// Why nothing is opened in a directory without a database: none was there, or it is not there any more.
pub(super) fn absent(directory: &Path) -> StoreError {
    match is_not_lost(&directory.join(DATABASE)) {
        Ok(()) => StoreError::NoData { path: directory.to_owned() },
        Err(lost) => lost,
    }
}

/// What tells that a database was there, whatever has become of it.
fn left_of(database: &Path) -> Result<Option<PathBuf>, StoreError> {
    if !log_is_cut(database)? {
        return Ok(Some(place::log_of(database)));
    }
    let note = database.with_file_name(BASE_URL);
    Ok(if exists(&note)? { Some(note) } else { None })
}

/// That the log beside the database at `path` is not another one's, as far as the file tells: a backup says of itself that it never had
/// one, until it is opened.
///
/// # Errors
/// [`StoreError::ForeignLog`], or a file cannot be looked at.
pub(super) fn is_own_log(path: &Path) -> Result<(), StoreError> {
    if log_is_cut(path)? {
        return Ok(());
    }
    // The file says that it has a log before that has anything in it: what is looked at later says no less.
    if is_unopened(path)? {
        return Err(StoreError::ForeignLog { path: path.to_owned(), log: place::log_of(path) });
    }
    Ok(())
}

/// Whether the file at `path` is a backup that was never opened, as far as it tells itself: a database has a log from its first opening on.
pub(super) fn is_unopened(path: &Path) -> Result<bool, StoreError> {
    let head = match place::head_of(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(false),
        head => head.map_err(|cause| StoreError::file(path, "it cannot be looked at", cause))?,
    };
    Ok(head.starts_with(MAGIC) && head.get(WRITTEN).is_some_and(|it| *it == WITHOUT_LOG))
}

/// How every database of SQLite begins.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The byte that says how it is written.
const WRITTEN: usize = 18;
/// What it says where there is no log.
const WITHOUT_LOG: u8 = 1;
