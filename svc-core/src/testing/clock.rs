//! Time that stands still until it is told to move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::store::Clock;
use crate::value::{Span, Timestamp};

/// A clock that moves only by [`set`](Self::set) and [`advance`](Self::advance). Clones are one clock.
#[derive(Clone, Debug)]
pub struct FakeClock(Arc<AtomicI64>);

impl FakeClock {
    /// A clock that shows `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(start.as_millis())))
    }

    /// Shows `now` from here on, be it earlier or later than before.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Lets `span` go by, and tells what the clock shows then. A negative span puts the clock back.
    pub fn advance(&self, span: Span) -> Timestamp {
        let now = self.now().plus(span);
        self.set(now);
        now
    }
}

/// 2026-10-01T09:30:00Z, a Thursday.
impl Default for FakeClock {
    fn default() -> Self {
        Self::new(Timestamp::from_millis(1_790_847_000_000))
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
