//! Calls to the outside: what a decision brings about, who makes the calls, what came of them. And what comes from outside,
//! signed.

pub mod button;
pub mod charge;
pub mod deliver;
pub mod export;
pub mod integrations;
pub mod mcp_servers;
pub mod mcp_tools;
pub mod merge;
pub mod message;
pub mod notify;
pub mod proxied;
pub mod receive;
pub mod signal;
pub mod spread;
pub mod subscribe;
pub mod tell;
