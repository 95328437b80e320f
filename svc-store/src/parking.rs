//! Waking a lane as late as it may be: when the thread that queued work for it is about to sleep.
//!
//! A worker of a server reads several requests in one go. If the first of them woke the lane, the lane would decide it alone
//! while the others are still being read, and every decision would cost two threads a sleep and a wake. So a thread that
//! tells when it runs out of work wakes the lane then, once, for everything that it has queued; or as soon as so much waits
//! that the lane has enough to do.
//!
//! **Invariant:** a thread that never called [`about_to_park`] wakes lanes at once, and one that did owes no lane its wake
//! once it sleeps or ends.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::queue::Queue;

/// So many waiting commands are worth waking a lane for at once.
pub(crate) const ENOUGH: usize = 16;

thread_local! {
    static OWED: RefCell<Option<Owed>> = const { RefCell::new(None) };
    /// Whether this is a thread that a runtime of several runs tasks on.
    static RUNS_TASKS: Cell<bool> = const { Cell::new(false) };
}

/// The lanes that a thread has queued work for and has not woken.
#[derive(Debug, Default)]
struct Owed(Vec<Arc<Queue>>);

impl Owed {
    fn pay(&mut self) {
        self.0.drain(..).for_each(|queue| queue.wake());
    }
}

/// A thread that ends never parks again.
impl Drop for Owed {
    fn drop(&mut self) {
        self.pay();
    }
}

/// To be called by a thread each time before it sleeps for want of work: a runtime's hook, such as
/// `tokio::runtime::Builder::on_thread_park`. From the first call on,
/// [`Gate::submit_before_park`](crate::Gate::submit_before_park) on this thread leaves the waking of lanes to this function.
pub fn about_to_park() {
    runs_tasks();
    // A thread that is being torn down has paid already.
    let _ = OWED.try_with(|owed| {
        if let Ok(mut owed) = owed.try_borrow_mut() {
            owed.get_or_insert_default().pay();
        }
    });
}

/// To be called by each thread of a runtime of several threads as it starts, as by `tokio::runtime::Builder::on_thread_start`: where
/// it waits for a database server, the tasks behind that one go on on another thread. Any other thread just waits. A task of a
/// `LocalSet`, which cannot be told from others and may not give its thread away, never runs on a thread that starts so.
pub fn runs_tasks() {
    let _ = RUNS_TASKS.try_with(|it| it.set(true));
}

/// To be called by a thread before it waits for something of its own: the lanes are woken, and as a runtime may have given its place to
/// another thread meanwhile, what is queued afterwards wakes its lane at once, until the thread tells again that it sleeps.
#[cfg(feature = "postgres")]
fn about_to_wait() {
    let owed = OWED.try_with(|owed| owed.try_borrow_mut().ok().and_then(|mut owed| owed.take()));
    // It pays where it ends.
    drop(owed);
}

/// Waits so that the tasks behind this one on the same thread go on elsewhere, where this is a thread of a server.
#[cfg(feature = "postgres")]
#[expect(
    clippy::disallowed_methods,
    reason = "the lanes are woken before, and at once by whatever this thread queues after"
)]
pub(crate) fn aside<T>(wait: impl FnOnce() -> T) -> T {
    about_to_wait();
    let is_multi = || {
        let flavor = tokio::runtime::Handle::try_current().map(|it| it.runtime_flavor());
        matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::MultiThread))
    };
    // Whether it is allowed depends on what the thread is, which nothing tells but the runtime's own hooks.
    if RUNS_TASKS.try_with(Cell::get).unwrap_or(false) && is_multi() {
        return tokio::task::block_in_place(wait);
    }
    wait()
}

/// The same where every store is on this machine and nothing is waited for but it.
#[cfg(not(feature = "postgres"))]
pub(crate) fn aside<T>(wait: impl FnOnce() -> T) -> T {
    wait()
}

/// Remembers that this thread has to wake the lane of `queue` before it sleeps; false where it does not tell when it does.
pub(crate) fn owe(queue: &Arc<Queue>) -> bool {
    let noted = OWED.try_with(|owed| {
        let Ok(mut owed) = owed.try_borrow_mut() else { return false };
        let Some(Owed(queues)) = owed.as_mut() else { return false };
        if !queues.iter().any(|it| Arc::ptr_eq(it, queue)) {
            queues.push(Arc::clone(queue));
        }
        true
    });
    noted.unwrap_or(false)
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// What waits does so also within a task that may not give its thread away, and where there is no runtime; on a thread that runs
    /// tasks the others go on meanwhile.
    #[test]
    fn whoever_waits_may_be_any_task() {
        assert_eq!(aside(|| 1), 1);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).on_thread_start(runs_tasks).build().unwrap();
        let local = tokio::task::LocalSet::new();
        assert_eq!(local.block_on(&runtime, async { aside(|| 2) }), 2);
        // The one worker waits for what only another task on it tells.
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let waits = runtime.spawn(async move {
            tokio::spawn(async move { tell.send(3) });
            aside(|| told.recv_timeout(std::time::Duration::from_secs(60)))
        });
        assert_eq!(runtime.block_on(waits).unwrap(), Ok(3));
    }
}
