//! Panics as lines of the log, in the place of the several that the standard library writes past it.

use std::panic::PanicHookInfo;
use std::thread;

/// Tells where somebody panicked, and on which thread. A text that was put together for it may hold what a client sent, so one is told
/// only where it stands in the program as it is.
pub(super) fn tell(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map(ToString::to_string).unwrap_or_default();
    let what = panic.payload().downcast_ref::<&'static str>().copied();
    let thread = thread::current();
    tracing::error!(at, what, thread = thread.name(), "a panic");
    if thread.name() == Some("main") {
        // The process ends with it.
        super::settle();
    }
}
