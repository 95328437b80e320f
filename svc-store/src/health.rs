//! Whether commits come through: what a readiness probe cannot see by reading.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use svc_core::value::{Span, Timestamp};

/// How long a store that took no commit counts as failing. Then it is worth asking again: where nothing is asked of a server,
/// nothing else would tell that the disk has room once more. While it is asked it counts as failing still: a database that is
/// silent takes longer than this over the next commit.
const RESTS: Span = Span::seconds(5);
/// How long after a failure it counts that another try is under way: a database that is silent keeps one waiting for less. A lane whose
/// turns write nothing shows neither that it fails nor that it is well.
const TRIED: Span = Span::seconds(60);

/// When a commit failed last for want of the store.
#[derive(Debug)]
pub(crate) struct Health {
    failed_ms: AtomicI64,
    /// Lanes that decide something at the moment.
    at_work: AtomicUsize,
    /// Whether a lane has ended of itself: nobody decides for its workspaces until the next start.
    ended: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self { failed_ms: AtomicI64::new(i64::MIN), at_work: AtomicUsize::new(0), ended: AtomicBool::new(false) }
    }
}

/// A lane that decides something; no longer once this is dropped.
pub(crate) struct AtWork(Arc<Health>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.at_work.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Health {
    /// A lane begins to decide something.
    pub(crate) fn begins(self: &Arc<Self>) -> AtWork {
        self.at_work.fetch_add(1, Ordering::AcqRel);
        AtWork(Arc::clone(self))
    }

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

    /// Whether one failed, none came through since, and that was a short while before `now` or another one is under way; or whether a
    /// lane is gone.
    pub(crate) fn is_failing(&self, now: Timestamp) -> bool {
        let failed_ms = self.failed_ms.load(Ordering::Acquire);
        let since = now.since(Timestamp::from_millis(failed_ms));
        let is_tried = since < TRIED && self.at_work.load(Ordering::Acquire) > 0;
        self.ended.load(Ordering::Acquire) || is_tried || since < RESTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store fails from a failed commit on, until one comes through or some time has passed.
    #[test]
    fn a_store_fails_for_a_while() {
        let (health, now) = (Arc::new(Health::default()), Timestamp::from_millis(1_000_000));
        drop(health.begins());
        assert!(!health.is_failing(now));
        health.failed(now);
        assert!(health.is_failing(now) && health.is_failing(now.plus(Span::seconds(4))));
        assert!(!health.is_failing(now.plus(RESTS)));
        let tries = health.begins();
        assert!(health.is_failing(now.plus(RESTS)), "nobody knows yet");
        assert!(!health.is_failing(now.plus(TRIED)), "what reads alone is no sign of it");
        drop(tries);
        assert!(!health.is_failing(now.plus(RESTS)));
        health.well();
        let decides = health.begins();
        assert!(!health.is_failing(now));
        drop(decides);
    }
}
