//! What keeps commands from a database that a server works on: it is brought to a newer schema without them, and without its log
//! nothing is read from it or committed to it.
//!
//! A server of the program holds a lock on the directory that its database really lies in for as long as it runs. What stands here
//! asks for a share in it, so that several commands may run at once and no server.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{SCHEMA, SET_UP_AGAIN, place};
use crate::error::StoreError;

/// How long a server that begins or ends may hold its lock at most without these files.
const PASSING: Duration = Duration::from_secs(1);

/// That no server works on the database at `path`, whose schema is `found`, for as long as what is given is kept; `None` where nobody
/// has to be kept out: the schema is this release's, nothing is there yet, or the file system has no locks.
///
/// # Errors
/// [`StoreError::Served`].
pub(super) fn keep_out(path: &Path, found: Option<i64>) -> Result<Option<File>, StoreError> {
    let Some(found) = found.filter(|it| *it < SCHEMA) else { return Ok(None) };
    let Some((held, directory)) = directory_of(path) else { return Ok(None) };
    match held.try_lock_shared() {
        Ok(()) => Ok(Some(held)),
        Err(TryLockError::WouldBlock) => Err(StoreError::Served { path: directory, found }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// That the log and its index lie beside the database at `path` if a server works on it, or whatever else holds the directory as one
/// does. They are made anew by the first read that does not find them: what the server has committed is not in those, and what is
/// committed to them it never sees.
///
/// # Errors
/// [`StoreError::WithoutLog`].
pub(super) fn is_whole(path: &Path) -> Result<(), StoreError> {
    let began = Instant::now();
    while let Some(missing) = place::missing(path) {
        let Some((directory, _)) = directory_of(path) else { return Ok(()) };
        if !matches!(directory.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return Ok(());
        }
        if began.elapsed() >= PASSING {
            return Err(StoreError::WithoutLog { path: missing });
        }
        // One that begins or ends has the lock, and these files not yet or no more.
        thread::park_timeout(SET_UP_AGAIN);
    }
    Ok(())
}

/// The directory that the database really lies in.
fn directory_of(path: &Path) -> Option<(File, PathBuf)> {
    let directory = path.canonicalize().ok()?.parent()?.to_path_buf();
    Some((File::open(&directory).ok()?, directory))
}
