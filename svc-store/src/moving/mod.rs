//! Moving a gate from SQLite to PostgreSQL: every row, once, and never to two places.
//!
//! The file is read in one transaction, in which nobody else writes it, and written in one of the other database, which takes all or
//! nothing. Before the last word there the file is marked as moved, in the transaction that has read it, so that no commit comes between
//! what was read and the mark.
//!
//! **Invariant:** a gate that may be in another database is served from its file no more; where the other one is known to have nothing,
//! the same move begins again.

mod fault;

pub use self::fault::MoveFault;

#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod run;

#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub use self::run::{Moved, MovedNow, Moving, move_to_postgres};
