//! The system's clock.

use svc_core::store::Clock as _;
use svc_core::value::Timestamp;
use svc_store::SystemClock;

/// The system's wall time, in whole milliseconds.
#[must_use]
pub fn now() -> Timestamp {
    SystemClock::new().now()
}
