//! What others say of themselves at an address of theirs: read when somebody needs it, kept, and read again where it is old.
//!
//! **Invariant:** whoever asks has one place read at most once in a pause, whatever they ask it for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Places that are kept; then all are forgotten, which costs one read each.
const KEPT_MAX: usize = 1_024;

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
    known: Mutex<HashMap<String, Arc<Place<T>>>>,
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
        Self { times, known: Mutex::default() }
    }

    /// What this place says, read again where it is old or does not suffice, if it may be. What does not suffice is given only where it
    /// was read for this: what was read before may have changed since, and whoever sends what it lacks is not to be refused for
    /// good. Whoever asks may go away: what was begun is read to its end for the others.
    ///
    /// # Errors
    /// How long it is until asking again is of use: it cannot be read, and was not while it would be good, or does not suffice and
    /// may not be read again yet.
    pub(crate) async fn at<F>(
        &self,
        place: &str,
        suffices: impl Fn(&T) -> bool + Send + 'static,
        read: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Arc<T>, Duration>
    where
        F: Future<Output = Option<T>> + Send,
    {
        let (held, times) = (self.place(place), self.times);
        let refreshed = async move { held.lock().await.refreshed(times, suffices, read).await };
        tokio::spawn(refreshed).await.unwrap_or(Err(times.pause))
    }

    fn place(&self, name: &str) -> Arc<Place<T>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT_MAX && !known.contains_key(name) {
            known.clear();
        }
        Arc::clone(known.entry(name.to_owned()).or_default())
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
