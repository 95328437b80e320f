//! A job that another has taken the place of. The try that was running is among its tries, as one that never came back until it is
//! told what came of it.

use super::job::{Job, JobState, Tried, Trouble};
use crate::value::Timestamp;

impl Job {
    /// The job with another address in its place, unless it has come to its end.
    #[must_use]
    pub fn replaced(self, now: Timestamp) -> Self {
        if self.due().is_some() { self.broken_off(now) } else { self }
    }

    /// The job with another in its place, also where it was given up already.
    #[must_use]
    pub fn given_way(self, now: Timestamp) -> Self {
        match self.state {
            JobState::Waiting { .. } | JobState::Sending { .. } | JobState::Failed { .. } => self.broken_off(now),
            JobState::Delivered { .. } | JobState::Replaced { .. } => self,
        }
    }

    /// A replaced job whose running try has come back: what came of it stands with that try, and nothing else changes.
    #[must_use]
    pub fn came_back(mut self, tried: Tried) -> Self {
        if let (JobState::Replaced { .. }, Some(last)) = (&self.state, self.attempts.last_mut())
            && last.tried.error == Some(Trouble::Interrupted)
        {
            last.tried = tried;
        }
        self
    }

    fn broken_off(mut self, now: Timestamp) -> Self {
        if let JobState::Sending { since, .. } = self.state {
            let ms = u32::try_from(now.since(since).as_millis()).unwrap_or(u32::MAX);
            self.remember(since, Tried { status: None, error: Some(Trouble::Interrupted), ms });
        }
        self.ended(JobState::Replaced { at: now })
    }
}
