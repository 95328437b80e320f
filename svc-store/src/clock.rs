//! The system's clock.
//!
//! **Invariant:** this is the one place of the crate where wall time is read.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::UNIX_EPOCH;

use svc_core::store::Clock;
use svc_core::value::{Span, Timestamp};

/// The system's wall time in whole milliseconds. It never shows less than it has shown before: when the system's time is set
/// back, this one stands still until the other has caught up.
#[derive(Debug, Default)]
pub struct SystemClock {
    last_ms: AtomicI64,
}

impl SystemClock {
    /// The clock.
    #[must_use]
    pub const fn new() -> Self {
        Self { last_ms: AtomicI64::new(0) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let ms = wall_ms();
        Timestamp::from_millis(self.last_ms.fetch_max(ms, Ordering::AcqRel).max(ms))
    }

    fn lag(&self) -> Span {
        let ms = wall_ms();
        Span::millis(self.last_ms.load(Ordering::Acquire).saturating_sub(ms).max(0))
    }
}

fn wall_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "this is the one reading of wall time")]
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that was ahead once does not go back, and tells that it stands still.
    #[test]
    fn time_does_not_go_back() {
        let clock = SystemClock::new();
        let first = clock.now();
        assert!(first > Timestamp::from_millis(1_700_000_000_000), "{first:?}");
        let ahead = first.as_millis() + 3_600_000;
        clock.last_ms.store(ahead, Ordering::Release);
        assert_eq!(clock.now(), Timestamp::from_millis(ahead));
        assert!(clock.lag() > Span::minutes(59), "{:?}", clock.lag());
        assert_eq!(SystemClock::new().lag(), Span::default());
    }
}
