//! What others say of themselves at an address of theirs: read when somebody needs it, kept, and read again where it is old.
//!
//! **Invariant:** whoever asks has one place read at most once in a pause, whatever they ask it for.
//! **Invariant:** a place that a workspace needs is forgotten for none that another names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use svc_core::value::id::WorkspaceId;
use tokio::time::Instant;

use crate::bounded::Bounded;

/// Places that are kept, each counted for every workspace that asks for it.
const KEPT_MAX: usize = 4_096;
/// Of these, of one workspace.
const OF_WORKSPACE_MAX: usize = 128;

/// How long what was read counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How long it is good without a look whether it has changed.
    pub(crate) fresh: Duration,
    /// How long it is good where it cannot be read again.
    pub(crate) stale: Duration,
    /// Between two reads of one place.
    pub(crate) pause: Duration,
}

/// What is known of places.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    times: Times,
    known: Mutex<Known<T>>,
}

/// The places that are known.
#[derive(Debug)]
struct Known<T> {
    /// By whoever asks: each holds what they need, and loses it for others of their own.
    of: Bounded<WorkspaceId, (WorkspaceId, String), Arc<Place<T>>>,
    /// The same by name alone: what several ask for is one place.
    all: HashMap<String, Weak<Place<T>>>,
}

/// A place, which one reads at a time.
type Place<T> = tokio::sync::Mutex<Held<T>>;

/// What is known of a place.
#[derive(Debug)]
pub(crate) struct Held<T> {
    /// What it says, and when it was read.
    said: Option<(Instant, Arc<T>)>,
    /// When it was last asked for.
    tried: Option<Instant>,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { said: None, tried: None }
    }
}

impl<T: Send + Sync + 'static> Kept<T> {
    /// Keeps what is read for so long.
    pub(crate) fn new(times: Times) -> Self {
        let of = Bounded::new(KEPT_MAX, OF_WORKSPACE_MAX);
        Self { times, known: Mutex::new(Known { of, all: HashMap::new() }) }
    }

    /// What this place says, for this workspace, read again where it is old or does not suffice, if it may be. What does not suffice is given only where it
    /// was read for this: what was read before may have changed since, and whoever sends what it lacks is not to be refused for
    /// good. Whoever asks may go away: what was begun is read to its end for the others.
    ///
    /// # Errors
    /// How long it is until asking again is of use: it cannot be read, and was not while it would be good, or does not suffice and
    /// may not be read again yet.
    pub(crate) async fn at<F>(
        &self,
        workspace: WorkspaceId,
        place: &str,
        suffices: impl Fn(&T) -> bool + Send + 'static,
        read: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Arc<T>, Duration>
    where
        F: Future<Output = Option<T>> + Send,
    {
        let (held, times) = (self.place(workspace, place), self.times);
        let refreshed = async move { held.lock().await.refreshed(times, suffices, read).await };
        tokio::spawn(refreshed).await.unwrap_or(Err(times.pause))
    }

    fn place(&self, workspace: WorkspaceId, name: &str) -> Arc<Place<T>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { of, all } = &mut *known;
        let own = (workspace, name.to_owned());
        if let Some(place) = of.get(&own) {
            return Arc::clone(place);
        }
        let place = all.get(name).and_then(Weak::upgrade).unwrap_or_default();
        let let_go = of.keep(workspace, own, Arc::clone(&place));
        drop(let_go);
        if all.len() >= 2 * KEPT_MAX {
            all.retain(|_, place| place.strong_count() > 0);
        }
        all.insert(name.to_owned(), Arc::downgrade(&place));
        place
    }
}

impl<T> Held<T> {
    pub(crate) async fn refreshed<F: Future<Output = Option<T>>>(
        &mut self,
        times: Times,
        suffices: impl Fn(&T) -> bool,
        read: impl FnOnce() -> F,
    ) -> Result<Arc<T>, Duration> {
        let now = Instant::now();
        let is_good = self.said.as_ref().is_some_and(|(at, said)| now - *at < times.fresh && suffices(said));
        if !is_good && self.tried.is_none_or(|at| now - at >= times.pause) {
            self.tried = Some(now);
            if let Some(said) = read().await {
                let said = Arc::new(said);
                self.said = Some((now, Arc::clone(&said)));
                return Ok(said);
            }
        }
        let held = self.said.as_ref().filter(|(at, said)| now - *at < times.stale && suffices(said));
        let left = self.tried.map_or(times.pause, |at| times.pause.saturating_sub(now - at));
        held.map(|(_, said)| Arc::clone(said)).ok_or(left)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use svc_core::value::Id as _;

    use super::*;

    const TIMES: Times = Times {
        fresh: Duration::from_secs(300),
        stale: Duration::from_secs(24 * 3_600),
        pause: Duration::from_secs(60),
    };

    /// However many places a workspace names, another's stay known, also one that both ask for, and it is read for both at once;
    /// and of what the first names no more is kept than its share.
    #[tokio::test(start_paused = true)]
    async fn a_workspace_makes_nobody_elses_places_forgotten() {
        let (kept, reads) = (Kept::<String>::new(TIMES), Arc::new(AtomicUsize::new(0)));
        let at = async |workspace: u128, place: &str| {
            let (reads, said) = (Arc::clone(&reads), place.to_owned());
            let read = move || async move {
                reads.fetch_add(1, Ordering::Relaxed);
                Some(said)
            };
            kept.at(WorkspaceId::from_bits(workspace), place, |_| true, read).await.unwrap()
        };
        at(2, "both").await;
        at(1, "both").await;
        at(1, "own").await;
        assert_eq!(reads.load(Ordering::Relaxed), 2, "what both ask for is read once");
        for number in 0..2 * KEPT_MAX {
            at(2, &number.to_string()).await;
        }
        assert_eq!(reads.swap(0, Ordering::Relaxed), 2 + 2 * KEPT_MAX);
        at(1, "both").await;
        at(1, "own").await;
        assert_eq!(reads.load(Ordering::Relaxed), 0);
        let known = kept.known.lock().unwrap();
        assert_eq!(known.of.len(), OF_WORKSPACE_MAX + 2);
        assert!(known.all.len() <= 2 * KEPT_MAX);
    }
}
