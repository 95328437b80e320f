//! svc-http: the gate as an HTTP API.

pub mod clock;
pub mod config;
pub mod log;
pub mod signer;
