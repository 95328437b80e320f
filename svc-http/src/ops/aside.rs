//! What reads very many rows: on threads of its own, a few at a time, so that no other request waits for it. Whoever asks for it
//! without end is refused, so that others of its kind do not wait for long either.

use std::sync::Arc;

use svc_core::refusal::Refusal;
use svc_core::rules::people::by::By;
use svc_core::value::Id as _;
use tokio::sync::Semaphore;

use crate::shares::Shares;

/// How many of it run at once; others wait for their turn.
const ASIDE_MAX: usize = 2;
/// How many of one asker run or wait.
const OF_ONE_MAX: usize = 8;

/// Places for it.
#[derive(Debug)]
pub(crate) struct Aside {
    places: Arc<Semaphore>,
    asked: Shares<u128>,
}

impl Default for Aside {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(ASIDE_MAX)), asked: Shares::new(usize::MAX, OF_ONE_MAX) }
    }
}

impl Aside {
    /// Has `work` done for the asker with these bits. Whoever goes away meanwhile gives no place free before it is done.
    ///
    /// # Errors
    /// Those of `work`; `not_ready` where the asker has asked for too much already; `internal` where it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        asker: u128,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let asked = self.asked.take(asker).ok_or_else(Refusal::not_ready)?;
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| Refusal::internal())?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((place, asked));
            done
        });
        done.await.map_err(|_| Refusal::internal())?
    }
}

/// Whose turn it is: a person's, a token's or a key's, whichever workspace it is about.
pub(super) fn asker(by: &By) -> u128 {
    match by {
        By::Program => 0,
        By::Person(person) => person.principal.bits(),
        By::Token(token) => token.token.bits(),
        By::Key(key) => key.key.bits(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use svc_core::refusal::Kind;

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
                aside.run(number as u128, work).await
            }));
        }
        for (number, it) in asked.into_iter().enumerate() {
            assert_eq!(it.await.unwrap().ok(), Some(number));
        }
        assert_eq!(most.load(Ordering::SeqCst), ASIDE_MAX);
        for _ in 0..2 * ASIDE_MAX {
            assert!(aside.run::<()>(1, || panic!("as it may")).await.is_err());
        }
        assert!(aside.run(1, || Ok(())).await.is_ok());
        let all: Vec<_> = (0..OF_ONE_MAX).map(|_| aside.asked.take(1).unwrap()).collect();
        assert_eq!(aside.run(1, || Ok(())).await.map_err(|it| it.kind()), Err(Kind::NotReady));
        assert!(aside.run(2, || Ok(())).await.is_ok(), "another is not kept waiting for it");
        drop(all);
        assert!(aside.run(1, || Ok(())).await.is_ok());
    }
}
