//! What a database has to be to stand behind a [`Gate`](crate::Gate): a maker of sessions, and where several processes share it,
//! whoever tells each of them what the others commit.

use std::time::Duration;

use svc_core::store::{Key, Store};
use svc_core::value::Timestamp;

use crate::error::StoreError;

/// A database that gives out sessions: some that write, any number that read.
pub trait Backend: Send + Sync + 'static {
    /// One session: one thread at a time uses it, and where it waits for nothing not always the same.
    type Session: Store + Send;

    /// How many writers may commit side by side. SQLite: 1.
    fn lanes(&self) -> usize;

    /// A session that commits.
    ///
    /// # Errors
    /// The database does not answer, or is not this service's.
    fn writer(&self) -> Result<Self::Session, <Self::Session as Store>::Error>;

    /// A session that sees one snapshot from its first read until it is dropped, where the database can. It commits nothing.
    ///
    /// # Errors
    /// The database does not answer.
    fn reader(&self) -> Result<Self::Session, <Self::Session as Store>::Error>;

    /// Whether its sessions wait for something, such as a disk or a network. Where they do not, a lane needs no thread of its own: whoever
    /// asks it decides, and for those who ask meanwhile.
    fn waits(&self) -> bool {
        true
    }

    /// Whether other servers commit to this database while this one does. Then ledger records are given their places by timers, never
    /// in the commits that write them, and whoever waits for a change looks for it once a second, told or not. All that serve one
    /// database have to answer the same.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whoever tells what other processes commit; `None` where nobody does, and looking has to do. Asked for once the gate starts,
    /// and again after each failure.
    ///
    /// # Errors
    /// The database does not answer.
    fn others(&self) -> Result<Option<Box<dyn Others>>, <Self::Session as Store>::Error> {
        Ok(None)
    }

    /// What the database's own clock shows: a server whose clock is more than 2.5 s apart from it decides nothing. `None` where it has
    /// none but this machine's.
    ///
    /// # Errors
    /// The database does not answer.
    fn time(&self) -> Result<Option<Timestamp>, <Self::Session as Store>::Error> {
        Ok(None)
    }
}

/// Hears of the rows that other processes have changed, on a thread of its own. Nothing is decided by what it tells: it wakes those
/// who wait, and they read what there is.
pub trait Others: Send {
    /// Waits for at most `patience` for something to be told of.
    ///
    /// # Errors
    /// It hears nothing any more, such as after a lost connection: it is dropped, and [`Backend::others`] asked for another.
    fn hear(&mut self, patience: Duration) -> Result<Heard, StoreError>;
}

/// What was heard of other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing, for as long as was waited.
    Nothing,
    /// These rows were changed by commits that are durable. Those of this process may be among them, and rows of other tables than
    /// [those that are told of](crate::is_told_to_others): neither does harm.
    Rows(Vec<Key>),
    /// Something may have been missed: everybody looks for themselves.
    Missed,
}

impl Backend for svc_core::store::MemoryStore {
    type Session = Self;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<Self, <Self as Store>::Error> {
        Ok(self.clone())
    }

    fn reader(&self) -> Result<Self, <Self as Store>::Error> {
        Ok(self.clone())
    }

    fn waits(&self) -> bool {
        false
    }
}
