//! Waking a lane as late as it may be: when the thread that queued work for it is about to sleep.
//!
//! A worker of a server reads several requests in one go. If the first of them woke the lane, the lane would decide it alone
//! while the others are still being read, and every decision would cost two threads a sleep and a wake. So a thread that
//! tells when it runs out of work wakes the lane then, once, for everything that it has queued; or as soon as so much waits
//! that the lane has enough to do.
//!
//! **Invariant:** a thread that never called [`about_to_park`] wakes lanes at once, and one that did owes no lane its wake
//! once it sleeps or ends.

use std::cell::RefCell;
use std::sync::Arc;

use crate::queue::Queue;

/// So many waiting commands are worth waking a lane for at once.
pub(crate) const ENOUGH: usize = 16;

thread_local! {
    static OWED: RefCell<Option<Owed>> = const { RefCell::new(None) };
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
    // A thread that is being torn down has paid already.
    let _ = OWED.try_with(|owed| {
        if let Ok(mut owed) = owed.try_borrow_mut() {
            owed.get_or_insert_default().pay();
        }
    });
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
    match tokio::runtime::Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        _ => wait(),
    }
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
