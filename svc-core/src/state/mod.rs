//! The nouns: a state, its transitions as consuming methods, its links.
//!
//! **Invariant:** nothing in this layer names a scope, a turn or a rule.

pub mod gate;
