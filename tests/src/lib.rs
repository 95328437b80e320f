//! What the tests of the whole workspace share.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic, and this is for tests alone"
)]

pub mod explore;
pub mod play;
pub mod source;
