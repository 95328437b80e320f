//! Calls to the outside: what a decision brings about, who makes the calls, what came of them.

pub mod deliver;
pub mod integrations;
pub mod mcp_servers;
pub mod mcp_tools;
pub mod notify;
pub mod proxied;
