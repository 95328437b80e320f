//! The ledger's verbs.

pub mod erase;
pub mod proof;
pub mod sequence;
pub mod sweep;
pub mod tally;
