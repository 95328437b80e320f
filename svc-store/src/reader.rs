//! Reads that decide nothing: single objects and lists, on snapshots of their own, never through a lane.
//!
//! **Invariant:** a store that panics has failed to answer, and ends nobody who reads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use svc_core::store::{Found, Key, Listed, Loaded, Range, Store, all_answered};
use svc_core::value::Timestamp;

use crate::backend::{Backend, Others};
use crate::error::{StoreError, caught};
use crate::parking::aside;

/// How many readers look at once; more wait for their turn.
const READERS_MAX: usize = 16;
/// How long one waits for its turn: where the store answers nobody, whoever comes hears so soon and holds up nobody else.
const TURN: Duration = Duration::from_secs(2);

/// A backend's readers, whatever the backend.
pub(crate) trait Readers: Send + Sync {
    fn open(&self) -> Result<Box<dyn Snapshot + '_>, StoreError>;
    /// [`Backend::others`].
    fn others(&self) -> Result<Option<Box<dyn Others>>, StoreError>;
    /// [`Backend::time`].
    fn time(&self) -> Result<Option<Timestamp>, StoreError>;
}

/// One reader's view.
pub(crate) trait Snapshot {
    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError>;
    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError>;
    fn scan_each(&mut self, range: &Range) -> Result<Vec<Listed<StoreError>>, StoreError>;
}

/// The readers of a backend, at most [`READERS_MAX`] at once.
#[derive(Debug)]
pub(crate) struct Bounded<B> {
    backend: B,
    open: Mutex<usize>,
    left: Condvar,
}

impl<B: Backend> Bounded<B> {
    pub(crate) fn new(backend: B) -> Self {
        Self { backend, open: Mutex::new(0), left: Condvar::new() }
    }

    pub(crate) const fn backend(&self) -> &B {
        &self.backend
    }
}

impl<B> Bounded<B> {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, where one is free now.
    fn free(&self) -> Option<Place<'_, B>> {
        self.wait(Duration::ZERO)
    }

    /// A place that is free within so long.
    fn wait(&self, patience: Duration) -> Option<Place<'_, B>> {
        let full = |open: &mut usize| *open >= READERS_MAX;
        let (mut open, _) =
            self.left.wait_timeout_while(self.count(), patience, full).unwrap_or_else(PoisonError::into_inner);
        if full(&mut open) {
            return None;
        }
        *open = open.saturating_add(1);
        Some(Place(self))
    }
}

impl<B: Backend> Readers for Bounded<B> {
    fn open(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        let place = self.free().or_else(|| aside(|| self.wait(TURN))).ok_or(StoreError::Resting)?;
        let session = caught(|| self.backend.reader().map_err(StoreError::of))??;
        Ok(Box::new(Open { session, _place: place }))
    }

    fn others(&self) -> Result<Option<Box<dyn Others>>, StoreError> {
        caught(|| self.backend.others().map_err(StoreError::of))?
    }

    fn time(&self) -> Result<Option<Timestamp>, StoreError> {
        caught(|| self.backend.time().map_err(StoreError::of))?
    }
}

/// One of the places, given back when it is dropped.
struct Place<'a, B>(&'a Bounded<B>);

impl<B> Drop for Place<'_, B> {
    fn drop(&mut self) {
        let mut open = self.0.count();
        *open = open.saturating_sub(1);
        drop(open);
        self.0.left.notify_one();
    }
}

struct Open<'a, B: Backend> {
    session: B::Session,
    _place: Place<'a, B>,
}

impl<B: Backend> Snapshot for Open<'_, B> {
    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        let rows = caught(|| self.session.load(keys).map_err(StoreError::of))??;
        if all_answered(keys, &rows) { Ok(rows) } else { Err(StoreError::LeftOut) }
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        caught(|| self.session.scan(range).map_err(StoreError::of))?
    }

    fn scan_each(&mut self, range: &Range) -> Result<Vec<Listed<StoreError>>, StoreError> {
        let listed = caught(|| self.session.scan_each(range).map_err(StoreError::of))??;
        Ok(listed
            .into_iter()
            .map(|it| Listed { order: it.order, key: it.key, row: it.row.map_err(StoreError::of) })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::store::MemoryStore;

    use super::*;

    /// Who finds no place hears so before long, and one that is given back is the next one's.
    #[test]
    fn nobody_waits_for_a_place_for_ever() {
        let readers = Bounded::new(MemoryStore::new());
        let mut open: Vec<_> = (0..READERS_MAX).map(|_| readers.open().unwrap()).collect();
        assert!(matches!(readers.open().err(), Some(StoreError::Resting)));
        open.pop();
        assert!(readers.open().is_ok());
    }
}
