//! The test kit: what shows that a store keeps its promises, and that the gate keeps its own over it.
//!
//! Nothing here belongs in a server. What fails says so by panicking, with the promise that was broken.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test kit tells what is wrong by panicking"
)]

pub mod audit;
pub mod clock;
pub mod contract;
pub mod dice;
pub mod fault;
pub mod locks;
pub mod model;
pub mod people;
pub mod sample;
pub mod world;

pub use clock::FakeClock;
pub use dice::Dice;
pub use world::World;
