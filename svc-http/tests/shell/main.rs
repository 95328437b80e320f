//! The transport over real sockets, with a stand-in for the gate behind the routes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test may panic"
)]

mod answers;
mod bodies;
mod connections;
mod rates;
mod server;
mod slow_readers;
