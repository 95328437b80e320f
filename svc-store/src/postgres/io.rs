//! The threads that talk with the database, apart from those that wait for it: a session is used from lanes, from tasks of a server
//! and from plain threads alike.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::error::StoreError;
use crate::parking::aside;

/// How long one host may take to answer a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection may take in all, several hosts and the settings of the session included.
pub(super) const CONNECT_ALL: Duration = Duration::from_secs(15);
/// How long the database works on one statement at most, before it gives up.
pub(super) const STATEMENT: Duration = Duration::from_secs(10);
/// How long a statement waits for a row that another server has locked.
pub(super) const LOCK: Duration = Duration::from_secs(5);
/// After how long a commit, a read or a scan counts as lost: longer than the database takes to give up by itself.
pub(super) const LOST: Duration = Duration::from_secs(25);
/// How long the commit may take that is to show what became of one in doubt: whoever waits for it has waited for that one already.
pub(super) const CONFIRMED: Duration = Duration::from_secs(5);
/// Threads that move bytes. They wait for nothing but the network.
const THREADS: usize = 2;

/// The runtime of a store's connections.
#[derive(Debug)]
pub(super) struct Io {
    /// Taken out on drop alone.
    runtime: Option<Runtime>,
}

impl Io {
    pub(super) fn start() -> Result<Self, StoreError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("svc-postgres")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|cause| StoreError::Thread(Arc::new(cause)))?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Has `work` done and waits for it on this thread, at most for as long as said; `None` where that was not enough.
    ///
    /// # Errors
    /// The threads have ended, or the work panicked.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let runtime = self.runtime.as_ref().ok_or(StoreError::Closed)?;
        let (done, outcome) = sync_channel(1);
        runtime.spawn(async move {
            // Whoever waits is there until it has come.
            let _ = done.send(timeout(within, work).await.ok());
        });
        aside(move || outcome.recv()).map_err(|_| StoreError::Panicked)
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last clone of a store may be dropped by a task of another runtime, where nothing may be waited for.
            runtime.shutdown_background();
        }
    }
}
