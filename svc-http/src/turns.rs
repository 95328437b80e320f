//! Turns at what only a few may do at once: each waits for theirs behind those of their own, so that whoever asks without end keeps
//! nobody else waiting for long.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use svc_core::refusal::Refusal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Those who take turns of whom is remembered before it is looked who of them is gone.
const KNOWN_MAX: usize = 1_000;

/// Places, and the line of each who takes turns at them.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    places: Arc<Semaphore>,
    of_one: usize,
    lines: Mutex<HashMap<K, Weak<Semaphore>>>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn {
    _place: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl<K: Eq + Hash> Turns<K> {
    /// So many at once, of one at most `of_one`.
    pub(crate) fn new(of_all: usize, of_one: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(of_all)), of_one, lines: Mutex::default() }
    }

    /// As many at once as wait for them, of one at most `of_one`: for those who take turns at something else afterwards.
    pub(crate) fn apart(of_one: usize) -> Self {
        Self::new(Semaphore::MAX_PERMITS, of_one)
    }

    /// Waits for a turn. Whoever gives up waiting loses their place in the line.
    ///
    /// # Errors
    /// `internal`, as none is ever closed.
    pub(crate) async fn take(&self, whose: K) -> Result<Turn, Refusal> {
        let line = self.line(whose);
        let own = line.acquire_owned().await.map_err(|_| Refusal::internal())?;
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| Refusal::internal())?;
        Ok(Turn { _place: place, _own: own })
    }

    /// Places that nobody has.
    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.places.available_permits()
    }

    fn line(&self, whose: K) -> Arc<Semaphore> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&whose).and_then(Weak::upgrade) {
            return line;
        }
        if lines.len() >= KNOWN_MAX {
            lines.retain(|_, line| line.strong_count() > 0);
        }
        let line = Arc::new(Semaphore::new(self.of_one));
        lines.insert(whose, Arc::downgrade(&line));
        line
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Whoever has many waiting takes one turn for one of another's, and who has none waiting is forgotten.
    #[test]
    fn nobody_waits_for_all_of_anothers() {
        let turns = Turns::new(2, 1);
        let mut context = Context::from_waker(Waker::noop());
        let mut ask = |whose| {
            let mut asked = Box::pin(turns.take(whose));
            match asked.as_mut().poll(&mut context) {
                Poll::Ready(turn) => Ok(turn.unwrap()),
                Poll::Pending => Err(asked),
            }
        };
        let first = ask(1).ok().unwrap();
        let waiting: Vec<_> = (0..8).map(|_| ask(1).unwrap_err()).collect();
        let other = ask(2).ok().unwrap();
        let mut third = ask(3).unwrap_err();
        drop(first);
        // The next of the first one's stands behind the third in the line of all.
        let mut context = Context::from_waker(Waker::noop());
        assert!(third.as_mut().poll(&mut context).is_ready());
        drop((other, waiting, third));
        assert!(turns.lines.lock().unwrap().values().all(|it| it.strong_count() == 0));
        assert!(pin!(turns.take(1)).poll(&mut context).is_ready());
    }
}
