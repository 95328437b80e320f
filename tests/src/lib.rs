//! What the tests of the whole workspace share.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic, and this is for tests alone"
)]

pub mod client;
pub mod database;
pub mod desk;
pub mod evidence;
pub mod explore;
pub mod hooks;
pub mod identity;
pub mod interface;
pub mod mailbox;
pub mod oauth;
pub mod office;
pub mod people;
pub mod play;
pub mod program;
pub mod race;
pub mod receiver;
pub mod requests;
pub mod shaky;
pub mod single_sign_on;
pub mod site;
pub mod slack;
pub mod source;
pub mod tool_desk;
pub mod tool_server;
pub mod watch;
pub mod wire;
pub mod witness;
