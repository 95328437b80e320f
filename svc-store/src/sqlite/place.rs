//! Whether the database is still the file that was opened.
//!
//! SQLite goes on with a file that was moved away, removed or replaced, and whoever opens the path later finds nothing of what
//! was answered meanwhile.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::StoreError;

/// A database, by its path, by what tells its file from another one at the same path, and with what SQLite keeps beside it.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    identity: Option<Identity>,
    beside: [(PathBuf, Option<Identity>); 2],
}

/// Device and number of a file.
type Identity = (u64, u64);

impl Place {
    /// The file that is at `path` now, and the log and the log's index that lie beside it while a connection has read from it. As long as
    /// one has the database open, nobody makes others.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] where one of them is not there any more, or it cannot be looked at.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let beside = |place: PathBuf| match identity(&place) {
            Ok(found) => Ok((place, found)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Err(StoreError::Replaced { path: place }),
            Err(cause) => Err(unseen(&place, cause)),
        };
        let identity = identity(path).map_err(|cause| unseen(path, cause))?;
        Ok(Self { path: path.to_owned(), identity, beside: [beside(log_of(path))?, beside(index_of(path))?] })
    }

    /// That all of it is still there: whoever opens the database later reads the log that lies there then, and would find nothing of what
    /// stands in another; and whoever has another index knows nothing of what is committed here.
    ///
    /// # Errors
    /// [`StoreError::Replaced`].
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let beside = self.beside.iter().map(|(path, known)| (path, *known));
        for (path, known) in std::iter::once((&self.path, self.identity)).chain(beside) {
            if identity(path).ok() != Some(known) {
                return Err(StoreError::Replaced { path: path.clone() });
            }
        }
        Ok(())
    }
}

fn unseen(path: &Path, cause: std::io::Error) -> StoreError {
    StoreError::file(path, "it cannot be looked at", cause)
}

/// The first bytes of a database, however many there are up to [`HEAD`].
///
/// The file stays open, once for each database: with any descriptor of it that a process closes, it gives up the locks that SQLite has
/// there.
pub(super) fn head_of(database: &Path) -> std::io::Result<Vec<u8>> {
    static OPENED: Mutex<Vec<(Identity, File)>> = Mutex::new(Vec::new());
    let found = identity(database)?;
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, file)) = opened.iter().find(|(known, _)| Some(*known) == found) {
        return read_head(file);
    }
    let file = File::open(database)?;
    let head = read_head(&file);
    opened.extend(found.map(|found| (found, file)));
    head
}

fn read_head(mut file: &File) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// What of a database says what it is.
const HEAD: u64 = 100;

/// The log of a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
    beside(database, "-wal")
}

/// What the processes that have the database open tell each other of its log.
pub(super) fn index_of(database: &Path) -> PathBuf {
    beside(database, "-shm")
}

/// Which of the two is not there: a database that anybody has open has both.
pub(super) fn missing(database: &Path) -> Option<PathBuf> {
    [log_of(database), index_of(database)].into_iter().find(|it| matches!(it.try_exists(), Ok(false)))
}

/// That the database has no second name. Whoever opens it by that one has another log beside it, and what is answered by the one is not
/// there for the other.
///
/// # Errors
/// [`StoreError::Linked`].
#[cfg(unix)]
pub(super) fn has_one_name(database: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;
    match std::fs::metadata(database) {
        Ok(file) if file.nlink() > 1 => Err(StoreError::Linked { path: database.to_owned() }),
        Ok(_) => Ok(()),
        Err(cause) => Err(unseen(database, cause)),
    }
}

/// Where a file does not say how many names it has.
#[cfg(not(unix))]
pub(super) const fn has_one_name(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// SQLite keeps these beside the file itself, whatever links lead to it, and calls them after that. Where a link leads to a file that is
/// not there, they lie where it would be.
fn beside(database: &Path, ending: &str) -> PathBuf {
    let linked = || std::fs::read_link(database).map(|it| database.with_file_name(it));
    let file = database.canonicalize().or_else(|_| linked()).unwrap_or_else(|_| database.to_owned());
    let mut name = file.into_os_string();
    name.push(ending);
    name.into()
}

/// That of the file at a path, where the system numbers files.
#[cfg(unix)]
fn identity(path: &Path) -> std::io::Result<Option<Identity>> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).map(|it| Some((it.dev(), it.ino())))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> std::io::Result<Option<Identity>> {
    std::fs::metadata(path).map(|_| None)
}
