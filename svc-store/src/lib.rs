//! Durable storage and lanes for svc-core.
//!
//! [`sqlite`] keeps the rows of [`svc_core::store`] in one file, durable before an answer leaves. [`Backend`] is what another
//! database has to offer to take its place.
//!
//! **Invariant:** this crate knows no rule of the gate: it stores, batches, seals and wakes.

mod backend;
mod error;
pub mod keys;
pub mod seal;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use backend::Backend;
pub use error::{Cause, StoreError};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
