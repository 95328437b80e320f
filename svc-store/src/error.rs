//! What can go wrong with durable storage, said so that an operator knows what to do.
//!
//! **Invariant:** none of this reaches a caller of the service. A caller reads `not_ready` or `internal`; the log reads this.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use svc_core::store::Undecodable;
use svc_core::value::Invalid;
use svc_core::value::id::{EvidenceId, WorkspaceId};

use crate::moving::MoveFault;

/// An underlying error, shared by everyone whom one failed commit concerns.
pub type Cause = Arc<dyn Error + Send + Sync + 'static>;

/// Why the store did not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory holds somebody else's files.
    #[error("`{}` holds `{found}` and no svc data: {}", path.display(), self.advice())]
    ForeignDirectory {
        /// The directory.
        path: PathBuf,
        /// One of the files found there.
        found: String,
    },
    /// The file is no database, or another program's.
    #[error("`{}` is not a database of svc: {}", path.display(), self.advice())]
    ForeignDatabase {
        /// The file.
        path: PathBuf,
    },
    /// What was given as the service's address is none.
    #[error("`{text}` is no base address: it {why}")]
    BaseAddress {
        /// What was given.
        text: Box<str>,
        /// What it must be.
        why: Invalid,
    },
    /// There is nothing to open.
    #[error("there is no svc data in `{}`: {}", path.display(), self.advice())]
    NoData {
        /// The directory.
        path: PathBuf,
    },
    /// A database was here, and is not: to begin another one would destroy what is left of it.
    #[error("`{}` is missing or empty, and `{}` is left of it: {}", path.display(), left.display(), self.advice())]
    DatabaseMissing {
        /// Where the database would be.
        path: PathBuf,
        /// What tells that one was there: its log, or the note of a server.
        left: PathBuf,
    },
    /// A backup was put beside the log of another database: written into it, that would make one of two halves.
    #[error("`{}` is a backup that was never opened, and `{}` is the log of another database: {}", path.display(), log.display(), self.advice())]
    ForeignLog {
        /// The database.
        path: PathBuf,
        /// The log beside it.
        log: PathBuf,
    },
    /// A newer release has written the database.
    #[error("the database has schema {found}, this release knows schema {known}: {}", self.advice())]
    NewerSchema {
        /// The schema found.
        found: i64,
        /// The newest schema known.
        known: i64,
    },
    /// An older release's schema, on which a server works: it would go on with what it does not know.
    #[error("the database in `{}` has the older schema {found}, and something holds a lock on the directory, as a server that works on it does: {}", path.display(), self.advice())]
    Served {
        /// The directory.
        path: PathBuf,
        /// The schema found.
        found: i64,
    },
    /// A gate is being moved to another database, was, or could not be.
    #[error(transparent)]
    Move(MoveFault),
    /// The disk, or the quota, is used up.
    #[error("the disk is full: {}", self.advice())]
    Full(#[source] Cause),
    /// Nothing may be written.
    #[error("the database cannot be written: {}", self.advice())]
    ReadOnly(#[source] Cause),
    /// The database's pages contradict each other.
    #[error("the database is damaged: {}", self.advice())]
    Corrupt(#[source] Cause),
    /// The file is gone, or another one is in its place.
    #[error("`{}` was moved, removed or replaced while it was in use: {}", path.display(), self.advice())]
    Replaced {
        /// Where the file was.
        path: PathBuf,
    },
    /// Something holds the directory as a server does, and a file is not there that a server has.
    #[error("`{}` is not there, and something holds a lock on its directory, as a server does for as long as it runs: {}", path.display(), self.advice())]
    WithoutLog {
        /// Where the file would be.
        path: PathBuf,
    },
    /// The file has a second name, a hard link.
    #[error("`{}` has a second name, a hard link to the same file: {}", path.display(), self.advice())]
    Linked {
        /// The database.
        path: PathBuf,
    },
    /// The database server broke off what it was asked for.
    #[error("the database server broke off a statement: {}", self.advice())]
    BrokenOff(#[source] Cause),
    /// Another process kept the database to itself for too long.
    #[error("another process holds the database: {}", self.advice())]
    Locked(#[source] Cause),
    /// What was given as the address of a database server is none, or secures the way too little. The text is not repeated: it may
    /// hold a password.
    #[error("the database's address {why}: {}", self.advice())]
    DatabaseAddress {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The database server does not answer, or lets nobody in, or the connection to it was lost.
    #[error("the database server cannot be reached: {}", self.advice())]
    Unreachable(#[source] Cause),
    /// The database server did not answer a moment ago, and is not asked again so soon.
    #[error("the database server could not be reached a moment ago: {}", self.advice())]
    Resting,
    /// The database server is none that this service can work on.
    #[error("the database server is not fit for use: {why}")]
    UnfitServer {
        /// Why not.
        why: &'static str,
    },
    /// The database server may lose what it has confirmed.
    #[error("the database server may lose what it has confirmed, as its `{setting}` is off: {}", self.advice())]
    Lossy {
        /// The setting that is off.
        setting: &'static str,
    },
    /// Another database server answers than before, or the same after a restart: what was read of it before is no longer what it holds.
    #[error("another database server answers than before, or it began anew")]
    OtherServer,
    /// A commit was made here before the standby had it that it should have waited for.
    #[error("the database server did not wait for its standby: {}", self.advice())]
    Unreplicated,
    /// The role that the service uses may not do what it has to.
    #[error("the database cannot be written by this role: {}", self.advice())]
    NoRight(#[source] Cause),
    /// There is a schema of the service's name that is not the service's.
    #[error("the database has a schema `svc` that is not of this service: {}", self.advice())]
    ForeignSchema,
    /// The database has no tables of this release.
    #[error("the database has no tables of this release: {}", self.advice())]
    NoTables,
    /// Other servers were faster again and again.
    #[error("other servers kept writing the same rows")]
    Overrun,
    /// A file could not be read or written.
    #[error("`{}` cannot be used: {doing}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the operating system said.
        #[source]
        cause: Cause,
    },
    /// A stored row that this release cannot read.
    #[error("a stored row cannot be read, as one of a newer release or one written by hand: {}", self.advice())]
    Undecodable(#[source] Arc<Undecodable>),
    /// A record of a ledger that this release cannot read.
    #[error("record {record} of a ledger cannot be read, as one of a newer release or one written by hand: {}", self.advice())]
    Record {
        /// The record.
        record: EvidenceId,
        /// What its row said.
        #[source]
        cause: Cause,
    },
    /// A stored row of which something else than its body is not what a row has.
    #[error("a stored row cannot be read, {why}: {}", self.advice())]
    Row {
        /// What is the matter with it.
        why: &'static str,
        /// Whose it is, where its body tells.
        whose: Option<WorkspaceId>,
    },
    /// A commit that no store can take.
    #[error("the commit is malformed: {0}")]
    Malformed(&'static str),
    /// A store of one's own that broke its promise to answer every key.
    #[error("the store left out a key that it was asked for")]
    LeftOut,
    /// The database failed in another way.
    #[error("the database failed")]
    Database(#[source] Cause),
    /// The store behind a [`Backend`](crate::Backend) of one's own failed.
    #[error("the store failed")]
    Backend(#[source] Cause),
    /// The master key is not where it was.
    #[error("`{}` is missing, and the database holds secrets sealed under it: {}", path.display(), self.advice())]
    MasterKeyMissing {
        /// Where the key is looked for.
        path: PathBuf,
    },
    /// What was given as a master key is none.
    #[error("the master key is not 32 bytes in base64url or hexadecimal: {}", self.advice())]
    MasterKeyMalformed,
    /// The master key does not open what is sealed.
    #[error(
        "the master key does not open what the database has sealed, as it is another one's or the row was altered: {}",
        self.advice()
    )]
    Sealed,
    /// The master key does not open what is sealed, and another one lies beside it: a change was not brought to its end.
    #[error("the master key does not open what the database has sealed, and `{}` is there: {}", path.display(), self.advice())]
    Resealing {
        /// Where the other key is.
        path: PathBuf,
    },
    /// The master key does not open what is sealed, and one that was in force before does: it is a copy of before.
    #[error("the master key does not open what the database has sealed, and the one in `{}` does: {}", path.display(), self.advice())]
    SealedBefore {
        /// Where that key is.
        path: PathBuf,
    },
    /// A secret was to be kept, and the gate has no key to seal it under.
    #[error("the gate has no master key to seal secrets under: give it one in its settings")]
    NoVault,
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes: {}", self.advice())]
    Entropy(#[source] Cause),
    /// No thread could be started.
    #[error("no thread could be started: {}", self.advice())]
    Thread(#[source] Cause),
    /// The store or the clock behind a gate panicked; the log has its message.
    #[error("the store or the clock panicked")]
    Panicked,
    /// The lanes have ended; nothing is decided any more. In a process that was forked off one with an open gate there are none.
    #[error("the store is closed")]
    Closed,
}

/// What to do with a backup and a log that do not belong together.
const TO_ITS_OWN: &str = "put the backup into an empty directory, or the log's own database back in its place, and keep the log: it holds what \
     was answered last";

impl StoreError {
    /// What whoever runs the service is to do, in the imperative; most messages end with it. Nothing where the fault is that of a
    /// program which embeds the gate, or of the gate.
    #[must_use]
    pub const fn fix(&self) -> Option<&'static str> {
        Some(match self {
            Self::ForeignDirectory { .. } => "name an empty or a new directory",
            Self::ForeignDatabase { .. } => "move it away or name another data directory",
            Self::BaseAddress { .. } => "give the address at which others reach this server",
            Self::NoData { .. } => "name the right data directory, or start one with `svc init`",
            Self::DatabaseMissing { .. } => {
                "put `svc.db` back, or restore a backup in an empty directory, and keep what is left: a log holds what was answered last; \
                 to begin anew, name another directory"
            }
            Self::ForeignLog { .. } => TO_ITS_OWN,
            Self::DatabaseAddress { .. } => {
                "give it as `postgres://user:password@host/database`, with `sslmode=disable` where the way needs no encryption"
            }
            Self::Unreachable(_) | Self::Resting => {
                "see that it runs and can be reached, and that database, user and password are right"
            }
            Self::UnfitServer { .. } => {
                "name a primary server of PostgreSQL 13 or newer, with a database of encoding UTF8, itself or a pooler in session mode"
            }
            Self::Lossy { .. } => "turn it on, for this database and its role",
            Self::Unreplicated => {
                "see that a standby of `synchronous_standby_names` runs, and cancel no commit that waits for it"
            }
            Self::NoRight(_) => "let it make a schema in the database and write there, on a server that is no standby",
            Self::ForeignSchema => "name a database of its own",
            Self::NoTables => "run `svc migrate`, or start a server of this release",
            Self::Served { .. } => {
                "stop that server and start this release's instead, or run the command of the release that serves; a program that locks the \
                 directory itself, such as `flock`, is to lock another file"
            }
            Self::NewerSchema { .. } => "run the newer release again, or restore a backup",
            Self::Move(fault) => fault.fix(),
            Self::Full(_) => "make room and decisions go on by themselves",
            Self::ReadOnly(_) => {
                "check that its directory and files belong to this user and the disk is not mounted read-only"
            }
            Self::Corrupt(_) => "stop, keep a copy of the files, and restore the last backup",
            Self::Replaced { .. } => "stop, see that the right file is there, and start again",
            Self::WithoutLog { .. } => {
                "if that is a server, the file was moved or removed: stop it, see that the right file is there, and start again; a program \
                 that locks the directory itself, such as `flock`, is to lock another file"
            }
            Self::Linked { .. } => {
                "take the other one away (`find … -samefile` finds it), since what is answered by one name is lost for the other; a copy of \
                 a database is made with `svc backup`"
            }
            Self::BrokenOff(_) => "see that nobody cancels what this role asks for, and that the server has time",
            Self::Locked(_) => "end it, or wait until it is done",
            Self::File { .. } => "see that it is there, and that this user may read and write it",
            Self::Undecodable(_) | Self::Record { .. } | Self::Row { .. } => ITS_RELEASE,
            Self::Database(_) => "see whether its disk is full or fails, and restore the last backup if neither",
            Self::MasterKeyMissing { .. } => "put it back, or set SVC_MASTER_KEY",
            Self::MasterKeyMalformed | Self::Sealed => ITS_KEY,
            Self::SealedBefore { .. } => KEY_OF_BEFORE,
            Self::Resealing { .. } => END_RESEALING,
            Self::Entropy(_) | Self::Thread(_) => "look at this machine's limits for the user that runs it",
            Self::Malformed(_)
            | Self::LeftOut
            | Self::Overrun
            | Self::OtherServer
            | Self::Backend(_)
            | Self::NoVault
            | Self::Panicked
            | Self::Closed => {
                return None;
            }
        })
    }

    /// The same as the end of a message.
    fn advice(&self) -> &'static str {
        self.fix().unwrap_or_default()
    }

    /// The error of any store as this one; what already is one stays as it is.
    pub fn of<E: Error + Send + Sync + 'static>(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::Backend(Arc::from(other)),
        }
    }

    /// Whether it is what one row holds that was the matter, and others can be read.
    #[must_use]
    pub const fn is_of_a_row(&self) -> bool {
        matches!(self, Self::Undecodable(_) | Self::Row { .. } | Self::Malformed(_))
    }

    /// That a row is none, of which nothing tells whose it is.
    pub(crate) const fn row(why: &'static str) -> Self {
        Self::Row { why, whose: None }
    }

    /// In whose ledger a record belongs that cannot be read, where its row tells.
    pub(crate) fn whose(&self) -> Option<WorkspaceId> {
        match self {
            Self::Undecodable(cause) => cause.whose(),
            Self::Row { whose, .. } => *whose,
            _ => None,
        }
    }

    /// The same of this record, where it is what its row holds that was the matter.
    pub(crate) fn of_record(self, record: EvidenceId) -> Self {
        match self {
            Self::Undecodable(cause) => Self::Record { record, cause },
            Self::Row { .. } | Self::Malformed(_) => Self::Record { record, cause: Arc::new(self) },
            other => other,
        }
    }

    /// A file error.
    pub(crate) fn file(path: impl Into<PathBuf>, doing: &'static str, cause: std::io::Error) -> Self {
        Self::File { path: path.into(), doing, cause: Arc::new(cause) }
    }
}

/// What to do where a row is not one that this release writes.
const ITS_RELEASE: &str = "run the newest release that ran on it, or restore a backup";
/// What to do where the master key is none, or another one's.
const ITS_KEY: &str =
    "put back the master key of this database, which for a backup is the one that was in force when it was made";
/// What to do where it is one that came after this copy.
const KEY_OF_BEFORE: &str =
    "that key was in force when this copy was made: put it in the place of the master key, beside this copy alone";
/// What to do where its change was broken off.
const END_RESEALING: &str =
    "run `svc key reseal` once more, which ends what was begun, or configure that key where the settings give one";

/// What `run` gives, or that it panicked: a store or a clock of somebody else's may. What it has left behind is its own affair.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| StoreError::Panicked)
}

impl From<Undecodable> for StoreError {
    fn from(cause: Undecodable) -> Self {
        Self::Undecodable(Arc::new(cause))
    }
}
