//! svc-http: the gate as an HTTP API.
//!
//! "CONTRACT part N" and "SPEC part N" on these pages are the specification of the interface and the contract that fills its gaps,
//! two documents beside the repository: its `docs/conformance.md` has every promise of theirs, part by part, with the test that shows it.

// The schemas are large JSON literals.
#![recursion_limit = "512"]
#![allow(rustdoc::private_intra_doc_links, reason = "they are for those who read the code of the server")]

pub mod address;
pub mod answer;
mod at_hand;
mod body;
mod bounded;
pub mod callback_secret;
pub mod clock;
pub mod config;
mod console;
pub mod deliver;
pub mod difference;
pub mod dispatch;
pub mod docs;
mod drill;
mod entropy;
mod export;
pub mod headers;
pub mod health;
mod host;
pub mod identity;
pub mod inbound;
mod keys;
mod live;
pub mod log;
pub mod mail;
pub mod metrics;
pub mod mock;
mod model_bodies;
mod newcomers;
pub mod openapi;
pub mod ops;
mod other_kind;
pub mod outbound;
pub mod pages;
pub mod passwords;
mod path;
mod pieces;
mod pulse;
pub mod rate_limit;
pub mod router;
pub mod routes;
mod schemas;
pub mod secrets;
mod seen;
pub mod serve;
pub mod server;
mod shards;
mod shares;
pub mod shell;
mod signed;
pub mod signer;
pub mod slack;
mod stalled;
mod supervised;
pub mod telemetry;
pub mod tool_server;
pub mod totp;
pub mod trace;
mod turns;
mod unread;
pub mod upstream;
pub mod wire;
mod written;
pub mod wrong_sign_ins;

pub use server::Server;
