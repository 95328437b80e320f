//! Workspaces, the people and machines in them, and what they show to be let in.

mod account;
mod credential;
mod principal;
mod role;
mod signing;
mod token;
mod workspace;

pub use account::{Account, Membership, Proof, SESSION_IDLE, SESSION_LIFE, SecondFactor, Session};
pub use credential::{Binding, Credential, KeyScope, Prefix};
pub use principal::{EmailUse, Member, MemberState, Principal};
pub use role::{Reach, Right, Role};
pub use signing::{PUBLISHED_BEFORE, Purpose, SigningKey, SigningUse};
pub use token::{ServiceToken, TokenScope};
pub use workspace::{Hold, OnMismatch, OnUndeclared, Outside, Provenance, Roster, Settings, Velocity, Workspace};
