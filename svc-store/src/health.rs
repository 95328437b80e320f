//! Whether commits come through: what a readiness probe cannot see by reading.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use svc_core::value::{Span, Timestamp};

/// How long a store that took no commit counts as failing. Then it is worth asking again: where nothing is asked of a server,
/// nothing else would tell that the disk has room once more.
const RESTS: Span = Span::seconds(5);

/// When a commit failed last for want of the store.
#[derive(Debug)]
pub(crate) struct Health {
    failed_ms: AtomicI64,
    /// Whether a lane has ended of itself: nobody decides for its workspaces until the next start.
    ended: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self { failed_ms: AtomicI64::new(i64::MIN), ended: AtomicBool::new(false) }
    }
}

impl Health {
    /// A commit came through.
    pub(crate) fn well(&self) {
        // Every commit says so: the line is only written where it says something new.
        if self.failed_ms.load(Ordering::Acquire) != i64::MIN {
            self.failed_ms.store(i64::MIN, Ordering::Release);
        }
    }

    /// A commit, or what it had to read, failed at `now`.
    pub(crate) fn failed(&self, now: Timestamp) {
        self.failed_ms.store(now.as_millis(), Ordering::Release);
    }

    /// A lane has ended of itself.
    pub(crate) fn ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether one failed a short while before `now`, and none came through since; or whether a lane is gone.
    pub(crate) fn is_failing(&self, now: Timestamp) -> bool {
        self.ended.load(Ordering::Acquire)
            || now.since(Timestamp::from_millis(self.failed_ms.load(Ordering::Acquire))) < RESTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store fails from a failed commit on, until one comes through or some time has passed.
    #[test]
    fn a_store_fails_for_a_while() {
        let (health, now) = (Health::default(), Timestamp::from_millis(1_000_000));
        assert!(!health.is_failing(now));
        health.failed(now);
        assert!(health.is_failing(now) && health.is_failing(now.plus(Span::seconds(4))));
        assert!(!health.is_failing(now.plus(RESTS)));
        health.well();
        assert!(!health.is_failing(now));
    }
}
