//! What a database has to be to stand behind a [`Gate`](crate::Gate): a maker of sessions.

use svc_core::store::Store;

/// A database that gives out sessions: some that write, any number that read.
pub trait Backend: Send + Sync + 'static {
    /// One session; it lives on one thread.
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
}
