//! The system's clock.

use std::time::UNIX_EPOCH;

use svc_core::store::Clock as _;
use svc_core::value::Timestamp;
use svc_store::SystemClock;

/// The system's wall time, in whole milliseconds.
#[must_use]
pub fn now() -> Timestamp {
    SystemClock::new().now()
}

/// The same in whole seconds since 1970.
pub(crate) fn now_s() -> u64 {
    u64::try_from(now().as_millis() / 1_000).unwrap_or(0)
}

/// A date of HTTP, in seconds since 1970.
pub(crate) fn http_date_s(text: &str) -> Option<u64> {
    Some(httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs())
}
