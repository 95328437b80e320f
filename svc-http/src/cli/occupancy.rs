//! One server at a time works on a database: two would each count rates, cut streams and tell of events for their own clients
//! alone.
//!
//! The lock is the system's, on the directory itself: it ends with the process that holds it, however that ends, and leaves
//! nothing behind that could keep out the next one. Commands that run beside a server do not ask for it.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use svc_store::sqlite::DATABASE;

use super::output::Problem;

/// That this process alone serves the database of a directory, for as long as it is kept.
#[derive(Debug)]
#[must_use]
pub(crate) struct Occupancy {
    /// None where the directory's file system has no locks.
    _held: Option<File>,
    /// The directory that was taken.
    place: PathBuf,
}

impl Occupancy {
    /// Takes the directory that the database really lies in, by whatever name it is called here; `None` where there is none yet.
    ///
    /// A file system without locks, as some of networks are, keeps nobody out: the server starts all the same and says so.
    ///
    /// # Errors
    /// [`Problem`] where another server holds it.
    pub(crate) fn take(directory: &Path) -> Result<Option<Self>, Problem> {
        let place = place_of(directory);
        let opened = match File::open(&place) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            opened => opened,
        };
        let locked = opened.map_err(TryLockError::Error).and_then(|file| file.try_lock().map(|()| file));
        match locked {
            Ok(file) => Ok(Some(Self { _held: Some(file), place })),
            Err(TryLockError::WouldBlock) => Err(Problem::new(
                format!("another server works on the database in `{}`", directory.display()),
                "Stop it first, or name another data directory with `--data`: one server at a time serves a database.",
            )),
            // What else keeps the directory from being used, opening the database tells.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(
                    %error,
                    directory = %directory.display(),
                    "the directory of the database cannot be locked: see to it that no second server is started on it"
                );
                Ok(Some(Self { _held: None, place }))
            }
        }
    }

    /// Whether it is the one over the database of `directory`, which may have been made elsewhere since.
    pub(crate) fn is_over(&self, directory: &Path) -> bool {
        self.place == place_of(directory)
    }
}

/// The directory that the database of `directory` really lies in: a link to it is another name and no second database.
fn place_of(directory: &Path) -> PathBuf {
    let database = directory.join(DATABASE).canonicalize().ok();
    let place = database.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    place.or_else(|| directory.canonicalize().ok()).unwrap_or_else(|| directory.to_path_buf())
}
