//! Connecting agents through OAuth: clients register, a person consents, codes become tokens, tokens are renewed and end.
//!
//! **Invariant:** whatever ends a connection takes its access token from the agent's row in the same commit.

pub mod authenticate;
pub mod consent;
pub mod end;
pub mod exchange;
pub mod refresh;
pub mod register;
pub mod revoke;
pub mod sweep;
mod tokens;

pub use tokens::{Grant, NewTokens, check_willing};
