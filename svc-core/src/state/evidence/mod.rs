//! The ledger: records, each written in the commit of what it tells of, and the chain that gives them their places.

mod chain;
mod entry;

pub use chain::Chain;
pub use entry::{Actor, Entry, Fact, Place, Subject};
