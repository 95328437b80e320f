//! What reads very many rows: on threads of its own, a few at a time, so that no other request waits for it.

use std::sync::Arc;

use svc_core::refusal::Refusal;
use tokio::sync::Semaphore;

/// How many of it run at once; others wait for their turn.
const ASIDE_MAX: usize = 2;

/// Places for it.
#[derive(Debug)]
pub(crate) struct Aside(Arc<Semaphore>);

impl Default for Aside {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ASIDE_MAX)))
    }
}

impl Aside {
    /// Has `work` done. Whoever goes away meanwhile gives no place free before it is done.
    ///
    /// # Errors
    /// Those of `work`; `internal` where it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = Arc::clone(&self.0).acquire_owned().await.map_err(|_| Refusal::internal())?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        done.await.map_err(|_| Refusal::internal())?
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// As many run at once as there are places and no more, also where those who asked are gone; what panics gives its place free.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_few_run_at_once() {
        let (aside, running, most) =
            (Arc::new(Aside::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let together = Arc::new(Barrier::new(ASIDE_MAX));
        let mut asked = Vec::new();
        for number in 0..8 * ASIDE_MAX {
            let (aside, running) = (Arc::clone(&aside), Arc::clone(&running));
            let (most, together) = (Arc::clone(&most), Arc::clone(&together));
            asked.push(tokio::spawn(async move {
                let work = move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    together.wait();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(number)
                };
                aside.run(work).await
            }));
        }
        for (number, it) in asked.into_iter().enumerate() {
            assert_eq!(it.await.unwrap().ok(), Some(number));
        }
        assert_eq!(most.load(Ordering::SeqCst), ASIDE_MAX);
        for _ in 0..2 * ASIDE_MAX {
            assert!(aside.run::<()>(|| panic!("as it may")).await.is_err());
        }
        assert!(aside.run(|| Ok(())).await.is_ok());
    }
}
