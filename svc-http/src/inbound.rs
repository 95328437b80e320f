//! Requests from outside that carry a signature in place of a credential.
//!
//! **Invariant:** nothing here reads a body before its signature has been found good over the body's bytes as they came.

pub mod button;
pub mod id_token;
pub mod interaction;
pub mod jwks;
pub mod jws;
pub(crate) mod kept;
pub(crate) mod key_sets;
pub mod pull_request;
pub mod set;
pub mod signature;
