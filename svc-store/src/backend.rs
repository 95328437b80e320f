//! What a database has to be to stand behind a [`Gate`](crate::Gate): a maker of sessions.

use std::fmt;

use svc_core::store::{Stamp, Store};

use crate::error::StoreError;

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

    /// A session for a lane. Where the database can make what was committed durable beside the next commit, that is a session
    /// that answers `Applied` once readers see the commit, with what makes it durable. By itself it is a
    /// [`writer`](Self::writer), with nothing left to be done.
    ///
    /// # Errors
    /// As [`writer`](Self::writer).
    fn lane_writer(&self) -> Result<LaneWriter<Self::Session>, <Self::Session as Store>::Error> {
        self.writer().map(|session| LaneWriter { session, durability: None })
    }

    /// The number of the newest commit that `reader` has seen, or a greater one: what it read is not told before that commit is
    /// durable. Asked after a read, and only where a lane's commits are durable later than they are seen.
    ///
    /// # Errors
    /// The database does not answer.
    fn newest_seen(&self, _reader: &mut Self::Session) -> Result<Stamp, <Self::Session as Store>::Error> {
        Ok(Stamp(u64::MAX))
    }
}

/// A session that commits for a lane.
#[derive(Debug)]
pub struct LaneWriter<S> {
    /// The session.
    pub session: S,
    /// What makes its commits durable; none where `Applied` says that they are.
    pub durability: Option<Box<dyn Durability>>,
}

/// Makes the commits of one session durable, on whichever thread, while the session goes on committing.
pub trait Durability: fmt::Debug + Send {
    /// Makes durable what the session had answered `Applied` to when this was called.
    ///
    /// # Errors
    /// Nobody knows what of it is durable. A later call that succeeds says of all of it that it is, by whatever means that takes:
    /// asking the operating system a second time is none, since it tells of lost writes once.
    fn sync(&mut self) -> Result<(), StoreError>;
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
