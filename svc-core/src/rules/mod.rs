//! The verbs: one rule a file. A rule reads rows by key through its scope, computes, and puts; the turn makes a commit
//! of it.
//!
//! **Invariant:** a rule takes time from its scope and ids from `fresh`, decides on nothing it has not read by key, and
//! writes whatever a permitting decision found absent.

mod changed;
pub mod connect;
pub mod edge;
pub mod evidence;
pub mod gate;
pub mod gateway;
pub mod people;
pub mod read;
