//! The ledger's verbs.

pub mod sequence;
