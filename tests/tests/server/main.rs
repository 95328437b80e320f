//! The program and the server as a whole, a module a subject: many at once, killed, wrongly asked, several on one store, and every row
//! of the tables.
//!
//! One program, since each program of tests compiles anew what all of them share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod apart;
mod backup;
mod bad_input;
mod bodies;
mod callbacks_crash;
mod callbacks_example;
mod calls_crash;
mod coverage;
mod crash;
mod ledger;
mod log;
mod machine_never;
mod promises;
mod race;
mod roles;
mod servers;
mod servers_outbox;
mod several_servers;
mod wire;
