//! Who sees what a store in memory does, and may hold it meanwhile.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use svc_core::store::{Commit, Range};
use svc_core::value::link::Index;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::PATIENCE;

/// What a witness does with each commit.
type Look = dyn Fn(&Commit) + Send + Sync;

/// What a witness does before each scan.
type Wait = dyn Fn(&Range) + Send + Sync;

/// Who sees each commit to a store in memory that was taken, and each scan of it before it begins.
#[derive(Clone, Default)]
pub struct Witness {
    look: Option<Arc<Look>>,
    wait: Option<Arc<Wait>>,
    commits: watch::Sender<u64>,
}

impl Witness {
    /// One that does this.
    pub fn new(look: impl Fn(&Commit) + Send + Sync + 'static) -> Self {
        Self { look: Some(Arc::new(look)), ..Self::default() }
    }

    /// One that does this before each scan, on the thread that scans.
    pub fn of_scans(wait: impl Fn(&Range) + Send + Sync + 'static) -> Self {
        Self { wait: Some(Arc::new(wait)), ..Self::default() }
    }

    /// One that holds each scan of this index until it is let go, and whoever lets it go. It is given up after a time, so that
    /// a server that waits for the scan is told from one that does not.
    ///
    /// # Panics
    /// Where a scan panicked before.
    #[must_use]
    pub fn holding(index: Index) -> (Self, HeldScan) {
        let (began, begun) = watch::channel(false);
        let (release, held) = sync_channel::<()>(1);
        let held = Mutex::new(held);
        let witness = Self::of_scans(move |range| {
            if range.index == index {
                began.send_replace(true);
                let _ = held.lock().unwrap().recv_timeout(PATIENCE / 4);
            }
        });
        (witness, HeldScan { begun, release })
    }

    pub(crate) fn hold(&self, range: &Range) {
        if let Some(wait) = &self.wait {
            wait(range);
        }
    }

    /// How many commits there were, now and from here on.
    pub(crate) fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    pub(crate) fn see(&self, commit: &Commit) {
        if let Some(look) = &self.look {
            look(commit);
        }
        self.commits.send_modify(|it| *it += 1);
    }
}

/// A scan that is held.
#[derive(Debug)]
pub struct HeldScan {
    begun: watch::Receiver<bool>,
    release: SyncSender<()>,
}

impl HeldScan {
    /// Waits until it has begun.
    ///
    /// # Panics
    /// Where it does not begin in time.
    pub async fn begun(&mut self) {
        timeout(PATIENCE, self.begun.wait_for(|it| *it)).await.unwrap().unwrap();
    }

    /// Lets it go.
    ///
    /// # Panics
    /// Where nobody is held any more.
    pub fn release(self) {
        self.release.send(()).unwrap();
    }
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Witness").finish_non_exhaustive()
    }
}
