//! How the servers of a test that share one store in memory hear of each other's commits: as by a database that tells them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_core::store::{Commit, Key};
use svc_core::testing::FakeClock;
use svc_store::{Heard, Others, StoreError, is_told_to_others};

/// Commits that a listener may be behind.
const BEHIND_MAX: usize = 10_000;

/// What servers share beside the store; clones are one wire.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    listeners: Arc<Mutex<Vec<SyncSender<Vec<Key>>>>>,
    is_silent: Arc<AtomicBool>,
    pub(crate) clock: Option<FakeClock>,
}

impl Wire {
    /// One that tells.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that tells nothing, as where no notice ever comes.
    #[must_use]
    pub fn silent() -> Self {
        let wire = Self::default();
        wire.is_silent.store(true, Ordering::SeqCst);
        wire
    }

    /// The same at a database that has this clock.
    #[must_use]
    pub fn timed_by(self, clock: FakeClock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Lets everybody's connection break.
    ///
    /// # Panics
    /// Never, unless a listener did.
    pub fn cut(&self) {
        self.listeners.lock().unwrap().clear();
    }

    pub(crate) fn listen(&self) -> Option<Box<dyn Others>> {
        if self.is_silent.load(Ordering::SeqCst) {
            return None;
        }
        let (tell, told) = sync_channel(BEHIND_MAX);
        self.listeners.lock().unwrap().push(tell);
        Some(Box::new(Listener(told)))
    }

    pub(crate) fn tell(&self, commit: &Commit) {
        if self.is_silent.load(Ordering::SeqCst) {
            return;
        }
        let written = commit.writes.iter().map(|it| it.key);
        let keys: Vec<Key> = written.filter(|key| is_told_to_others(key.table())).collect();
        if !keys.is_empty() {
            // One that ended, or that cannot keep up, is told nothing any more and hears so.
            self.listeners.lock().unwrap().retain(|it| it.try_send(keys.clone()).is_ok());
        }
    }
}

struct Listener(Receiver<Vec<Key>>);

impl Others for Listener {
    fn hear(&mut self, patience: Duration) -> Result<Heard, StoreError> {
        match self.0.recv_timeout(patience) {
            Ok(keys) => Ok(Heard::Rows(keys)),
            Err(RecvTimeoutError::Timeout) => Ok(Heard::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::Closed),
        }
    }
}
