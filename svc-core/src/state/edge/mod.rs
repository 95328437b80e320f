//! The border to the outside: what may be called, what is to be called, and the secrets that such calls are signed with.

mod integration;
mod job;
pub mod outbound;
mod signature;

pub use integration::{Integration, IntegrationKind, IntegrationSlot, OVERLAP_MAX_HOURS, SealedSecret};
pub use job::{Attempt, Job, JobState, LEASE, RETRY_AFTER, Tried, Trouble, Work};
pub use signature::signature;
