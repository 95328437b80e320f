//! What the measuring programs share: rounds that alternate between rivals, medians of them, the processor's time beside
//! the wall's, and two ways of printing the outcome, one for people and one for machines.
//!
//! A machine that others use too is never twice as fast as it was. So no figure is taken alone: each round runs every
//! rival once, one after the other, ratios are taken within a round, and the median of the rounds is what is said.
//!
//! **Invariant:** nothing here is a test, and no test asks how long something took.

pub mod asks;
pub mod bare;
pub mod gate;
pub mod lane;
pub mod load;
pub mod measure;
pub mod peers;
pub mod relay;
pub mod report;
pub mod server;

/// The `svc` command's, on every side of a comparison.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a program ends with where its set-up fails.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
