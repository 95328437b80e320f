//! Workspaces, the people and machines in them, and what they show to be let in.

mod credential;
mod signing;
mod workspace;

pub use credential::{Binding, Credential, KeyScope, Prefix};
pub use signing::{Purpose, SigningKey, SigningUse};
pub use workspace::{
    Hold, OnMismatch, OnUndeclared, Outside, Principal, Provenance, Roster, Settings, Velocity, Workspace,
};
