//! Durable storage and lanes for svc-core.
//!
//! [`Gate`] is what embedders meet: it queues operations, decides them in batches, and answers once they are durable.
//! The module `sqlite` keeps the rows of [`svc_core::store`] in one file; [`Backend`] is what another database has to offer to take its
//! place.
//!
//! ```no_run
//! use svc_core::{Amount, Decision, OutcomeStatus, Request};
//! use svc_store::{AgentKey, Gate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let key = "ask_the-agents-own-key";
//! # let pay = |_receipt: &str| Ok::<i64, std::io::Error>(49_00);
//! let gate = Gate::open("svc-data", "https://gate.example.com")?; // SQLite, lanes, timers, system clock, keys
//! let agent = gate.agent(AgentKey::parse(key)?)?;
//! let merchant = ("Example Tools".parse()?, "tools.example.com".parse()?);
//! let request = Request::payment("Renew the design tool", Amount::new(49_00)?, "EUR".parse()?, merchant)?;
//! match agent.authorize(request)?.decision() {
//!     Decision::Allow(allowed) => {
//!         let paid = pay(allowed.receipt())?;
//!         agent.settle(allowed.id(), OutcomeStatus::Completed, Some(paid))?;
//!     }
//!     Decision::Ask(asked) => println!("a person decides at {}", asked.url()),
//!     Decision::Deny(denied) => println!("no: {}", denied.why()),
//!     Decision::Used(used) => println!("its receipt was used {}: look what came of it, then settle", used.at()),
//!     Decision::Past(past) => println!("it is done already: {:?}", past.status()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! "CONTRACT part N" and "SPEC part N" on these pages are the specification of the interface and the contract that fills its gaps,
//! two documents beside the repository: its `docs/conformance.md` has every promise of theirs, part by part, with the test that shows it.
//!
//! **Invariant:** this crate knows no rule of the gate: it stores, batches, seals and wakes.

mod agent;
mod backend;
mod bindings;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod brought;
mod clock;
mod counting;
mod duties;
mod erasure;
mod error;
pub mod evidence;
mod feed;
mod fleet;
mod flush;
mod following;
mod gate;
mod health;
pub mod keys;
mod lane;
mod lanes;
mod lasting;
mod moving;
pub mod newest;
mod others;
mod parking;
#[cfg(feature = "postgres")]
pub mod postgres;
mod put_off;
mod queue;
#[cfg(feature = "sqlite")]
pub mod reached;
pub mod read_back;
mod reader;
mod reseal;
mod scans;
mod scorecard;
pub mod seal;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod timers;
mod verify;

pub use agent::{AgentHandle, AgentKey};
pub use backend::{Backend, Heard, Others};
pub use clock::SystemClock;
pub use counting::COUNTS_MAX;
pub use error::{Cause, StoreError};
pub use feed::{Change, Changes, Lapses, is_told_to_others};
pub use fleet::FleetRequest;
pub use gate::{Gate, Settings};
pub use lasting::{Lasting, Repeated, with_causes};
pub use moving::MoveFault;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub use moving::{Moved, MovedNow, Moving, move_to_postgres};
pub use parking::{about_to_park, runs_tasks};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use reseal::Resealed;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

/// The README's Rust is compiled, and run where it can be.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
