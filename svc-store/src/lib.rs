//! Durable storage and lanes for svc-core.
//!
//! [`Gate`] is what embedders meet: it queues operations, decides them in batches, and answers once they are durable.
//! [`sqlite`] keeps the rows of [`svc_core::store`] in one file; [`Backend`] is what another database has to offer to take its
//! place.
//!
//! **Invariant:** this crate knows no rule of the gate: it stores, batches, seals and wakes.

mod backend;
mod bindings;
mod clock;
mod error;
mod feed;
mod gate;
pub mod keys;
mod lane;
mod lanes;
mod reader;
pub mod seal;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod timers;

pub use backend::Backend;
pub use clock::SystemClock;
pub use error::{Cause, StoreError};
pub use feed::{Change, Changes};
pub use gate::{AgentHandle, AgentKey, Gate, Settings};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
