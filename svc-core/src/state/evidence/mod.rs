//! The ledger: records, each written in the commit of what it tells of, and the chain that gives them their places.

mod chain;
mod disclosure;
mod entry;

pub use chain::Chain;
pub use disclosure::Disclosure;
pub use entry::{Actor, Entry, Fact, Place, Subject};
