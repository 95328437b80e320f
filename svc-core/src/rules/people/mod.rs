//! Workspaces, agents, keys, mandates and settings: who may ask, and under which rules.

pub mod accounts;
pub mod agents;
pub mod applications;
pub mod by;
pub mod create_workspace;
pub mod keys;
pub mod leave;
pub mod links;
pub mod mandates;
pub mod members;
pub mod owners;
pub mod password;
pub mod recount;
pub mod register_agent;
pub mod reseal;
pub mod sealed;
pub mod second_factor;
pub mod sessions;
pub mod settings;
pub mod show;
pub mod sign_in;
pub mod signing_key;
pub mod single_sign_on;
pub mod teams;
pub mod templates;
pub mod tokens;
