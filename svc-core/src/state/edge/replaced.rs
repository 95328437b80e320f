//! A job that another has taken the place of.

use super::job::{Job, JobState};
use crate::value::Timestamp;

impl Job {
    /// The job with another address in its place, unless it has come to its end.
    #[must_use]
    pub fn replaced(self, now: Timestamp) -> Self {
        if self.due().is_some() { self.ended(JobState::Replaced { at: now }) } else { self }
    }

    /// The job with another in its place, also where it was given up already.
    #[must_use]
    pub fn given_way(self, now: Timestamp) -> Self {
        match self.state {
            JobState::Waiting { .. } | JobState::Sending { .. } | JobState::Failed { .. } => {
                self.ended(JobState::Replaced { at: now })
            }
            JobState::Delivered { .. } | JobState::Replaced { .. } => self,
        }
    }
}
