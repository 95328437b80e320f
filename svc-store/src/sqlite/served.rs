//! That no server works on a database while it is brought to a newer schema.
//!
//! A server of the program holds a lock on the directory that its database really lies in for as long as it runs. What stands here
//! asks for a share in it, so that several commands may run at once and no server.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::SCHEMA;
use crate::error::StoreError;

/// That no server works on the database at `path`, whose schema is `found`, for as long as what is given is kept; `None` where nobody
/// has to be kept out: the schema is this release's, nothing is there yet, or the file system has no locks.
///
/// # Errors
/// [`StoreError::Served`].
pub(super) fn keep_out(path: &Path, found: Option<i64>) -> Result<Option<File>, StoreError> {
    let Some(found) = found.filter(|it| *it < SCHEMA) else { return Ok(None) };
    let real = path.canonicalize().ok();
    let Some(directory) = real.as_deref().and_then(Path::parent) else { return Ok(None) };
    let Ok(held) = File::open(directory) else { return Ok(None) };
    match held.try_lock_shared() {
        Ok(()) => Ok(Some(held)),
        Err(TryLockError::WouldBlock) => Err(StoreError::Served { path: directory.to_owned(), found }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}
