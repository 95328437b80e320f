//! Requests from outside that carry a signature in place of a credential.
//!
//! **Invariant:** nothing here reads a body before its signature has been found good over the body's bytes as they came.

pub mod signature;
