//! svc-core: the gate an AI agent asks before it acts, as a library without I/O.
//!
//! **Invariant:** nothing here reads a clock, a file, a socket, the environment or a random source, and nothing spawns.
//! Time, entropy and storage come in through [`store`] and [`value::seed`].
//!
//! An agent asks, follows the answer, and tells what became of it. [`engine::Engine`] does that on one thread over any
//! [`store::Store`]; `svc_store::Gate` adds threads and SQLite. In a test, `svc_core::testing::World` (feature `testing`)
//! has everything in one hand:
//!
//! ```
//! use svc_core::testing::World;
//! use svc_core::{Amount, Decision, OutcomeStatus, Request};
//!
//! # fn main() -> Result<(), svc_core::Invalid> {
//! let mut world = World::new();
//! let agent = world.agent().with_template("saas-subscriptions").register();
//!
//! let merchant = ("Example Tools".parse()?, "tools.example.com".parse()?);
//! let request = Request::payment("Renew the design tool", Amount::new(49_00)?, "EUR".parse()?, merchant)?;
//! match world.authorize(&agent, request).decision() {
//!     Decision::Allow(allowed) => {
//!         assert!(allowed.receipt().starts_with("ey"));
//!         world.settle(&agent, allowed.id(), OutcomeStatus::Completed, Some(49_00));
//!     }
//!     Decision::Ask(asked) => println!("a person decides at {}", asked.url()),
//!     Decision::Deny(denied) => println!("no: {}", denied.why()),
//!     Decision::Used(used) => println!("its receipt was used {}: look what came of it, then settle", used.at()),
//!     Decision::Past(past) => println!("nothing is left to do: {:?}", past.status()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! "CONTRACT part N" and "SPEC part N" on these pages are the specification of the interface and the contract that fills its gaps,
//! two documents beside the repository: its `docs/conformance.md` has every promise of theirs, part by part, with the test that shows it.

pub mod answer;
pub mod command;
pub mod dialect;
pub mod dlp;
pub mod engine;
pub mod rate;
pub mod refusal;
pub mod rules;
pub mod state;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod turn;
pub mod value;

pub use answer::{Decided, Decision};
pub use state::gate::{OutcomeStatus, Request};
pub use value::{Amount, Currency, Invalid};
