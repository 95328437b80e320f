//! Connections that are open and wait for the next request, and places for calls.
//!
//! **Invariant:** their number has a limit, for one upstream and for all, and none waits longer than [`IDLE_TIME`].
//! **Invariant:** calls to one upstream leave places to the others, and those of one workspace to the other workspaces, however long
//! they wait for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use svc_core::value::id::{UpstreamId, WorkspaceId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::address::Origin;
use super::connection::Connection;
use crate::shares::{Share, Shares};

/// Connections that are open at once, those under way included.
const OPEN_MAX: usize = 10_000;
/// Calls of one workspace that are under way at once.
const OF_WORKSPACE_MAX: usize = OPEN_MAX / 2;
/// And of one upstream of its.
const OF_UPSTREAM_MAX: usize = OPEN_MAX / 4;
/// Connections that wait, for one upstream.
const IDLE_OF_ONE_MAX: usize = 256;
/// Connections that wait.
const IDLE_MAX: usize = 1_024;
/// How long one waits: less than servers keep theirs, so that a request seldom meets one that is being closed.
const IDLE_TIME: Duration = Duration::from_secs(15);
/// How often those that have waited too long are looked for.
const SWEEP_PERIOD: Duration = Duration::from_secs(5);

/// The place of a call, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    _of_upstream: Share<UpstreamId>,
    _of_workspace: Share<WorkspaceId>,
}

/// Connections.
#[derive(Debug)]
pub(super) struct Pool {
    places: Arc<Semaphore>,
    of_workspaces: Shares<WorkspaceId>,
    of_upstreams: Shares<UpstreamId>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    by_origin: HashMap<Arc<Origin>, Vec<(Connection, Instant)>>,
    count: usize,
    is_swept: bool,
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Idle").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(OPEN_MAX)),
            of_workspaces: Shares::new(OPEN_MAX, OF_WORKSPACE_MAX),
            of_upstreams: Shares::new(OPEN_MAX, OF_UPSTREAM_MAX),
            idle: Mutex::default(),
        })
    }

    /// A place for a call to this upstream of this workspace; nothing where either has as many under way as it may.
    pub(super) fn lend(&self, (workspace, upstream): (WorkspaceId, UpstreamId)) -> Option<Lent> {
        Some(Lent {
            _of_upstream: self.of_upstreams.take(upstream)?,
            _of_workspace: self.of_workspaces.take(workspace)?,
        })
    }

    /// A place for one connection more; nothing where there are too many.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        // Those that wait make room.
        let dropped = std::mem::take(&mut *self.idle());
        drop(dropped);
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// The connection to `origin` that was used last and is still good.
    pub(super) fn take(&self, origin: &Origin) -> Option<Connection> {
        loop {
            let (mut connection, since) = {
                let mut idle = self.idle();
                let waiting = idle.by_origin.get_mut(origin)?;
                let found = waiting.pop()?;
                idle.count -= 1;
                found
            };
            if since.elapsed() < IDLE_TIME && connection.is_idle() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub(super) fn put(self: &Arc<Self>, origin: &Arc<Origin>, mut connection: Connection) {
        connection.lent = None;
        let mut idle = self.idle();
        if idle.count >= IDLE_MAX {
            return;
        }
        let waiting = idle.by_origin.entry(Arc::clone(origin)).or_default();
        if waiting.len() >= IDLE_OF_ONE_MAX {
            return;
        }
        waiting.push((connection, Instant::now()));
        idle.count += 1;
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.idle().count
    }

    /// What was held when somebody panicked is whole: a connection is in it or not.
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what has waited too long; whether anything still waits.
    fn close_old(&self) -> bool {
        let mut idle = self.idle();
        idle.by_origin.retain(|_, waiting| {
            waiting.retain(|(_, since)| since.elapsed() < IDLE_TIME);
            !waiting.is_empty()
        });
        idle.count = idle.by_origin.values().map(Vec::len).sum();
        idle.is_swept = idle.count > 0;
        idle.is_swept
    }
}

/// Looks after the pool until nothing waits in it.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP_PERIOD).await;
        if !pool.upgrade().is_some_and(|it| it.close_old()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_core::value::Id as _;

    use super::*;

    /// Calls to one upstream leave places to the others of its workspace, and those of a workspace to the others; a place is given back.
    #[test]
    fn a_provider_that_hangs_leaves_places() {
        let pool = Pool::new();
        let lend =
            |workspace, upstream| pool.lend((WorkspaceId::from_bits(workspace), UpstreamId::from_bits(upstream)));
        let mut held: Vec<Lent> = (0..OF_UPSTREAM_MAX).filter_map(|_| lend(1, 1)).collect();
        assert!(held.len() == OF_UPSTREAM_MAX && lend(1, 1).is_none());
        held.extend((0..OF_UPSTREAM_MAX).filter_map(|_| lend(1, 2)));
        assert!(held.len() == OF_WORKSPACE_MAX && lend(1, 3).is_none() && lend(2, 4).is_some());
        drop(held.pop());
        assert!(lend(1, 3).is_some() && lend(1, 1).is_none());
    }
}
