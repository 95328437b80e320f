//! Panics that end no more than they have to: of one request, or of a task that the server cannot do without.
//!
//! **Invariant:** a supervised task ends only where it says that it is done, or is aborted.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

/// How long a task rests that has panicked, so that one that does so at once does not take a processor for itself.
const REST: Duration = Duration::from_secs(1);

/// Runs what `start` begins, and begins it again where it panics; `what` says which task that is. What is begun again has missed
/// whatever was told meanwhile: `start` is told whether it is the first.
pub(crate) fn supervise<F>(what: &'static str, mut start: impl FnMut(bool) -> F + Send + 'static) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        let mut is_first = true;
        // Each is boxed, so that what one was is gone before the next begins.
        while contain_panic(Box::pin(start(is_first))).await.is_none() {
            tracing::error!(task = what, "a task of the server panicked: it is started again");
            is_first = false;
            sleep(REST).await;
        }
    })
}

/// The future's output, or `None` where it panicked: a bug ends one request, never its connection or the server.
pub(crate) async fn contain_panic<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    // After a panic the future is not polled again and what it borrowed is only read for the answer.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_payload) => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::watch;

    use super::*;

    /// A task that panics is begun again, and told that it is not the first; one that is done is not, and aborting ends it for good.
    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_begun_again() {
        let begun = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&begun);
        let task = supervise("a test", move |is_first| {
            let times = own.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::task::yield_now().await;
                assert_eq!(is_first, times == 0);
                assert!(times >= 2, "it panics twice");
            }
        });
        task.await.unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 3);

        let (alive, mut ended) = watch::channel(());
        let mut held = Some(alive);
        let task = supervise("a test", move |_| {
            let held = held.take();
            async move {
                let _held = held;
                std::future::pending().await
            }
        });
        tokio::task::yield_now().await;
        task.abort();
        assert!(ended.changed().await.is_err());
    }
}
