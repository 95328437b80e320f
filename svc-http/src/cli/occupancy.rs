//! One server at a time works on a database: two would each count rates, cut streams and tell of events for their own clients
//! alone. And one process at a time makes what a first start makes.
//!
//! The locks are the system's: they end with the process that holds them, however that ends, and nothing is left behind that
//! could keep out the next one. Those of a server are on the directory itself and on the database in it, which may lie in a second
//! directory too, as a link or a mount of its own: each directory has a log of its own then. Commands that run beside a server do not
//! ask for them.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use svc_store::sqlite::DATABASE;

use super::output::Problem;

/// Longer than a command looks whether a server is there.
const A_LOOK: Duration = Duration::from_millis(50);

/// That this process alone serves the database of a directory, for as long as it is kept.
#[derive(Debug)]
#[must_use]
pub(crate) struct Occupancy {
    /// None where the directory's file system has no locks.
    held: Option<File>,
    /// The directory that was taken.
    place: PathBuf,
    /// Whether the database in it was there to be taken.
    has_file: bool,
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
        let locked = opened.map_err(TryLockError::Error).and_then(|file| {
            match file.try_lock() {
                // A command that looks whether a server is there has it for a moment.
                Err(TryLockError::WouldBlock) => thread::park_timeout(A_LOOK),
                taken => return taken.map(|()| file),
            }
            file.try_lock().map(|()| file)
        });
        match locked {
            Ok(file) => Self { held: Some(file), place, has_file: false }.with_file(directory).map(Some),
            Err(TryLockError::WouldBlock) => Err(taken(directory)),
            // What else keeps the directory from being used, opening the database tells.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(
                    %error,
                    directory = %directory.display(),
                    "the directory of the database cannot be locked: see to it that no second server is started on it"
                );
                Ok(Some(Self { held: None, place, has_file: false }))
            }
        }
    }

    /// Takes the database too, once it is there.
    ///
    /// # Errors
    /// [`Problem`] where another server holds it, by another directory.
    pub(crate) fn with_file(self, directory: &Path) -> Result<Self, Problem> {
        let database = directory.join(DATABASE);
        if self.has_file || self.held.is_none() || !database.exists() {
            return Ok(self);
        }
        if hold(&database) { Ok(Self { has_file: true, ..self }) } else { Err(taken(directory)) }
    }

    /// Whether it is the one over the database of `directory`, which may have been made elsewhere since.
    pub(crate) fn is_over(&self, directory: &Path) -> bool {
        self.place == place_of(directory)
    }
}

fn taken(directory: &Path) -> Problem {
    Problem::new(
        format!("another server works on the database in `{}`", directory.display()),
        "Stop it first, or name another data directory with `--data`: one server at a time serves a database, whatever directories its \
         file is in.",
    )
}

/// Locks a database file until this process ends; false where another one holds it. A file system without locks keeps nobody out.
///
/// The file is never closed: with any descriptor of it a process closes, it gives up the locks that SQLite has there.
#[cfg(target_os = "linux")]
fn hold(database: &Path) -> bool {
    let Ok(file) = File::open(database) else { return true };
    let locked = file.try_lock();
    std::mem::forget(file);
    !matches!(locked, Err(TryLockError::WouldBlock))
}

/// On other systems these locks and SQLite's may be of one kind, and would keep each other out.
#[cfg(not(target_os = "linux"))]
const fn hold(_: &Path) -> bool {
    true
}

/// The directory that the database of `directory` really lies in: a link to it is another name and no second database.
fn place_of(directory: &Path) -> PathBuf {
    let database = directory.join(DATABASE).canonicalize().ok();
    let place = database.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    place.or_else(|| directory.canonicalize().ok()).unwrap_or_else(|| directory.to_path_buf())
}

/// That this process alone makes what a first start makes: of two, the second finds all that the first has made.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn {
    /// None where the directory's file system has no locks.
    _held: Option<File>,
}

impl Turn {
    /// Waits until no other process has it. The database is there already.
    ///
    /// A file system without locks keeps nobody out, as with servers.
    pub(crate) fn wait(directory: &Path) -> Self {
        let take = || -> io::Result<File> {
            let mut options = fs::OpenOptions::new();
            let file = options.write(true).create(true).truncate(false).mode(0o600);
            let file = file.open(place_of(directory).join(TURN))?;
            file.lock()?;
            Ok(file)
        };
        Self { _held: take().ok() }
    }
}

/// The file that is locked while a first start is made. It stays: whoever removed it would let two others in at once.
const TURN: &str = "svc.init.lock";

/// That secrets were made which nobody has been shown yet: for as long as it is kept no other process makes or tells any, and what
/// is left of it by a process that ended before has the next start make them anew.
///
/// It holds no secret: what nobody saw is of no use to anybody, and need not be kept to be shown.
#[derive(Debug)]
#[must_use]
pub(crate) struct Unseen {
    _turn: Turn,
    place: PathBuf,
}

impl Unseen {
    /// Whether a process before has made secrets, and ended before it had shown them.
    ///
    /// # Errors
    /// [`Problem`] where that cannot be found out: nothing is made or revoked then.
    pub(crate) fn is_left(directory: &Path) -> Result<bool, Problem> {
        let place = place_of(directory).join(UNSEEN);
        place.try_exists().map_err(|error| Self::problem(&place, &error))
    }

    /// Notes it, so that it outlasts this process and a loss of power.
    ///
    /// # Errors
    /// [`Problem`] where it cannot be written: then nothing was made.
    pub(crate) fn note(turn: Turn, directory: &Path) -> Result<Self, Problem> {
        let parent = place_of(directory);
        let place = parent.join(UNSEEN);
        let mut options = fs::OpenOptions::new();
        let written = options.write(true).create(true).truncate(false).mode(0o600).open(&place);
        written.and_then(|_| File::open(&parent)?.sync_all()).map_err(|error| Self::problem(&place, &error))?;
        Ok(Self { _turn: turn, place })
    }

    /// They have been shown: the next start leaves them as they are.
    pub(crate) fn seen(self) {
        let removed = fs::remove_file(&self.place);
        let kept = removed.and_then(|()| self.place.parent().map_or(Ok(()), |it| File::open(it)?.sync_all()));
        if let Err(error) = kept {
            tracing::warn!(%error, file = %self.place.display(), "remove this file: while it is there, the next start makes new keys");
        }
    }

    fn problem(place: &Path, error: &io::Error) -> Problem {
        Problem::new(
            format!("`{}` cannot be used: {error}", place.display()),
            "Nothing was made: see to it that this user may write in the directory of the database.",
        )
    }
}

/// The file that is there while secrets were made and not shown.
const UNSEEN: &str = "svc.init.unseen";
