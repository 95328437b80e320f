//! The ledger's verbs.

pub mod proof;
pub mod sequence;
pub mod tally;
