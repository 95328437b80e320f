//! A job that a clock that was ahead has put off: it was tried then, and waits for a time that is long to come.

use super::job::{Job, JobState, LEASE};
use crate::value::{Span, Timestamp};

/// The longest that a job waits for its next try: twelve hours and a fifth (CONTRACT part 2).
const WAIT_MAX: Span = Span::minutes(12 * 60 * 6 / 5);

impl Job {
    /// Whether it is listed for a time that is further ahead of `now` than any job is: a clock that was ahead has put it there.
    #[must_use]
    pub const fn is_put_off(&self, now: Timestamp) -> bool {
        match self.state {
            JobState::Waiting { due } => due.is_ahead_of(now.plus(WAIT_MAX)),
            JobState::Sending { until, .. } => until.is_ahead_of(now.plus(LEASE)),
            JobState::Delivered { .. } | JobState::Failed { .. } | JobState::Replaced { .. } => false,
        }
    }

    /// The job due now, where it was put off. What was being tried then is no more: a clock is set back under no running server.
    #[must_use]
    pub fn brought_forward(mut self, now: Timestamp) -> Option<Self> {
        if !self.is_put_off(now) {
            return None;
        }
        self.state = match self.state {
            JobState::Waiting { .. } => JobState::Waiting { due: now },
            JobState::Sending { since, .. } => JobState::Sending { since: since.min(now), until: now },
            ended @ (JobState::Delivered { .. } | JobState::Failed { .. } | JobState::Replaced { .. }) => ended,
        };
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use super::*;
    use crate::state::edge::{RETRY_AFTER, Tried, Trouble, Work};
    use crate::state::gate::{Status, Verb};
    use crate::value::Id as _;
    use crate::value::id::{ActionId, CallbackId, DeliveryId, WorkspaceId};

    const NO: Tried = Tried { status: Some(503), error: Some(Trouble::Answer), ms: 7 };

    fn job(now: Timestamp) -> Job {
        let work = Work::Decided {
            callback: CallbackId::from_bits(1),
            action: ActionId::from_bits(2),
            verb: Verb::Allow,
            status: Status::Allowed,
            at: now,
            agent: None,
        };
        Job::without_url(DeliveryId::from_bits(1), WorkspaceId::from_bits(3), work, now)
    }

    /// What was tried by a clock that was ten years ahead is tried again as soon as the clock is right; the try that was running then is
    /// remembered as lost.
    #[test]
    fn a_job_that_was_put_off_is_due_at_once() {
        let now = Timestamp::from_millis(1_790_856_000_000);
        let later = now.plus(Span::hours(24 * 3_653));
        let sending = job(now).claimed(later).unwrap();
        let waiting = sending.clone().tried(NO, 0, later);
        for job in [sending, waiting] {
            assert!(job.clone().claimed(now).is_none() && job.is_put_off(now));
            let due = job.brought_forward(now).unwrap();
            assert_eq!((due.due(), due.tries, due.attempts.len()), (Some(now), 1, due.attempts.len()));
            let again = due.claimed(now).unwrap();
            assert_eq!((again.tries, again.attempts.len()), (2, 1));
            assert!(again.attempts[0].tried.ms < 10);
        }
    }

    /// No step of the schedule, no wait that was asked for and no lease is taken for put off, by any node's clock.
    #[test]
    fn a_job_on_its_schedule_was_not_put_off() {
        let now = Timestamp::from_millis(1_790_856_000_000);
        let behind = now.minus(Span::seconds(5));
        let mut job = job(now);
        for _ in RETRY_AFTER {
            assert!(job.clone().brought_forward(behind).is_none(), "{job:?}");
            job = job.claimed(now).unwrap();
            assert!(job.clone().brought_forward(behind).is_none(), "{job:?}");
            job = job.tried(NO, u16::MAX, now);
            assert!(job.clone().brought_forward(behind).is_none(), "{job:?}");
            if let JobState::Waiting { due } = &mut job.state {
                *due = now;
            }
        }
        assert!(matches!(job.state, JobState::Failed { .. }));
    }
}
