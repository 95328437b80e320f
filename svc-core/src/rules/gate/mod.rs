//! The gate's verbs.

pub mod asked;
pub mod authorize;
pub mod callback;
mod caller;
mod ceiling;
pub mod decide;
mod decide_other;
pub mod drill;
pub mod evaluate;
pub mod expire;
pub mod facts;
pub mod fleet;
pub mod freeze;
pub mod hold;
pub mod lapse;
pub mod lift;
mod payee;
mod posting;
pub mod ran;
mod record;
pub mod release;
pub mod restart;
pub mod settle;
pub mod suggest;
pub mod use_up;
pub mod velocity;
pub mod verify;
pub mod would;

pub use caller::{Caller, caller_agent, holds};
pub(in crate::rules) use caller::{gives, still_connects};
