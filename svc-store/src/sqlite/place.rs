//! Whether the database is still the file that was opened.
//!
//! SQLite goes on with a file that was moved away, removed or replaced, and whoever opens the path later finds nothing of what
//! was answered meanwhile.

use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// A file, by its path and by what tells it from another one at the same path.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    identity: Option<Identity>,
}

/// Device and number of a file.
pub(super) type Identity = (u64, u64);

impl Place {
    /// The file that is at `path` now.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let identity = identity(path).map_err(|cause| StoreError::file(path, "it cannot be looked at", cause))?;
        Ok(Self { path: path.to_owned(), identity })
    }

    /// That it is still there.
    ///
    /// # Errors
    /// [`StoreError::Replaced`].
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) | Err(_) => Err(StoreError::Replaced { path: self.path.clone() }),
        }
    }

    /// The log that lies beside it now.
    pub(super) fn log(&self) -> Option<Identity> {
        identity(&self.log_path()).ok().flatten()
    }

    /// That the log is still the one that was `known`: whoever opens the database later reads the one that lies there, and would find
    /// nothing of what stands in another. A log is made anew only where nobody has the database open.
    ///
    /// # Errors
    /// [`StoreError::Replaced`].
    pub(super) fn check_log(&self, known: Option<Identity>) -> Result<(), StoreError> {
        if known.is_none() || self.log() == known {
            return Ok(());
        }
        Err(StoreError::Replaced { path: self.log_path() })
    }

    fn log_path(&self) -> PathBuf {
        self.path.with_extension("db-wal")
    }
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
