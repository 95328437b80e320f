//! A session with a server. It lasts as long as anything is asked in it; once nobody uses it any more the server is told, so that it
//! keeps nothing for it (MCP 2025-11-25, "Session Management"): most forget one by no other way.
//!
//! **Invariant:** no server is told that a session has ended while a call runs in it: servers end their calls with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::upstream::{Endpoint, Times, Upstreams};

/// How long each end may take to be told: nobody waits for what comes of it.
const TIMES: Times =
    Times { first_token: Duration::from_secs(2), idle: Duration::from_secs(2), total: Duration::from_secs(2) };
/// Ends that are told at once, to each server.
const AT_ONCE: usize = 16;

/// How a server is told that sessions with it have ended.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    upstreams: Upstreams,
    endpoint: Arc<Endpoint>,
    places: Arc<Semaphore>,
}

/// A session. Clones are the same one, and it ends with the last of them.
#[derive(Clone, Debug)]
pub(super) struct Session(Arc<Open>);

#[derive(Debug)]
struct Open {
    ends: Ends,
    id: Box<str>,
    /// The version that its handshake agreed on, once it has.
    version: OnceLock<&'static str>,
    /// Whether its server knows nothing of it any more.
    is_forgotten: AtomicBool,
}

impl Ends {
    /// Of the sessions with the server at `endpoint`.
    pub(super) fn new(upstreams: Upstreams, endpoint: Arc<Endpoint>) -> Self {
        Self { upstreams, endpoint, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Tells of one, behind the back of whoever used it last. A server that stops waits for it, as long as it waits for anything.
    fn tell(&self, id: Box<str>, version: Option<&'static str>) {
        // Without a runtime there is nobody left to send it.
        let Ok(runtime) = Handle::try_current() else { return };
        let Self { upstreams, endpoint, places } = self.clone();
        runtime.spawn(self.upstreams.outlive(async move {
            // It is never closed.
            let _place = places.acquire().await;
            let mut headers = vec![("mcp-session-id", &*id)];
            headers.extend(version.map(|it| ("mcp-protocol-version", it)));
            // A server may take no such thing, and have forgotten the session by itself.
            let _ = upstreams.delete(&endpoint, &headers, TIMES).await;
        }));
    }
}

impl Session {
    /// The one that a server has named like this.
    pub(super) fn new(ends: &Ends, id: &str) -> Self {
        let ends = ends.clone();
        Self(Arc::new(Open { ends, id: id.into(), version: OnceLock::new(), is_forgotten: AtomicBool::new(false) }))
    }

    /// How its server names it.
    pub(super) fn id(&self) -> &str {
        &self.0.id
    }

    /// Notes the version that its handshake agreed on.
    pub(super) fn agree_on(&self, version: &'static str) {
        self.0.version.get_or_init(|| version);
    }

    /// Notes that its server knows nothing of it any more, and need not be told.
    pub(super) fn forget(&self) {
        self.0.is_forgotten.store(true, Ordering::Relaxed);
    }
}

/// Two that a server names alike are two all the same, where each was begun by itself.
impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Session {}

impl Drop for Open {
    fn drop(&mut self) {
        if !*self.is_forgotten.get_mut() {
            self.ends.tell(std::mem::take(&mut self.id), self.version.take());
        }
    }
}

#[cfg(test)]
impl Session {
    /// One with a server that is told of nothing.
    pub(super) fn with_nobody(id: &str) -> Self {
        use crate::outbound::{SystemResolver, Trust};
        use crate::upstream::Allowed;

        let (allowed, resolver) = (Allowed::loopback(), Arc::new(SystemResolver));
        let upstreams =
            Upstreams::new(&allowed, Times::default(), "gate.example.com", None, resolver, Trust::default());
        let endpoint = Endpoint::new(&upstreams, "http://127.0.0.1:9/mcp", None).unwrap();
        let session = Self::new(&Ends::new(upstreams, Arc::new(endpoint)), id);
        session.forget();
        session
    }

    /// Whether nobody else uses it.
    pub(super) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
