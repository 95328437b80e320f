//! Why a gate was not moved to another database, or is not served where it was.

use std::path::PathBuf;

use crate::error::Cause;

/// What is in the way.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveFault {
    /// The gate went on in another database. Served here as well, it would spend every budget twice and sign two ledgers.
    #[error("`{}` was moved to `{to}`, schema `svc`, and its gate goes on there: {}", path.display(), self.advice())]
    Moved {
        /// The file that it left.
        path: PathBuf,
        /// Where it went: host and database, and nothing that lets anybody in.
        to: Box<str>,
    },
    /// A program that embeds the gate, or a command, has the file open.
    #[error("another program has `{}` open: {}", path.display(), self.advice())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is something where the gate is to go.
    #[error("`{place}` holds rows already: {}", self.advice())]
    Taken {
        /// The database.
        place: Box<str>,
    },
    /// A server works where the gate is to go.
    #[error("a server works on `{place}`: {}", self.advice())]
    Served {
        /// The database.
        place: Box<str>,
    },
    /// What was read back is not what was read.
    #[error("the copy is not what was copied ({what}): {}", self.advice())]
    Miscopied {
        /// What differs.
        what: Box<str>,
    },
    /// The answer to the last word was lost.
    #[error("it is not known whether the database server has taken the gate: {}", self.advice())]
    Unsettled(#[source] Cause),
}

impl MoveFault {
    /// What whoever runs the service is to do, in the imperative.
    pub(crate) const fn fix(&self) -> &'static str {
        match self {
            Self::Moved { .. } => {
                "name that database in the settings (`store.url`); a move that was broken off is ended by the same `svc migrate --from`"
            }
            Self::InUse { .. } => "end it, and run the command again",
            Self::Taken { .. } => "name a database in which nothing was begun; what is in this one was left as it is",
            Self::Served { .. } => "stop it, and name a database in which nothing was begun",
            Self::Miscopied { .. } => {
                "nothing was moved; run the command again, and look at the disks of both where it stays so"
            }
            Self::Unsettled(_) => "run the same command again, which finds out and ends what was begun",
        }
    }

    /// The same as the end of a message.
    const fn advice(&self) -> &'static str {
        self.fix()
    }
}
