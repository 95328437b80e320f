//! The system's clock.
//!
//! **Invariant:** this is the one place of the crate where wall time is read.

use std::time::UNIX_EPOCH;

use svc_core::value::Timestamp;

/// The system's wall time, in whole milliseconds.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this is the one reading of wall time")]
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    // Before 1970 no certificate, key or receipt is in force: the epoch itself refuses as well.
    let ms = since.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX));
    Timestamp::from_millis(ms)
}
