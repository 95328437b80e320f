//! svc-core: the gate an AI agent asks before it acts, as a library without I/O.
//!
//! **Invariant:** nothing here reads a clock, a file, a socket, the environment or a random source, and nothing spawns.
//! Time, entropy and storage come in through [`store`] and [`value::seed`].

pub mod answer;
pub mod command;
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
