//! The calls under way, so that a client's `notifications/cancelled` finds the one that it means (MCP 2025-11-25, "Cancellation").
//!
//! There are no sessions: a call is known by the connection or the key that it came with, the client's session where it names one,
//! the server and the id of its message. Clients that share all of those may mean different calls by one id.
//!
//! **Invariant:** a call is called off only where it alone can be meant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use serde_json::Value;
use svc_core::state::people::Binding;
use svc_core::value::digest::Digest;
use svc_core::value::id::{ConnectionId, KeyId, McpServerId};
use tokio::sync::Notify;

use super::SESSION;

/// Whose a call is. A connection has another token after each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Client {
    Connection(ConnectionId),
    Key(KeyId),
}

/// By what a call is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    client: Client,
    session: Option<Digest>,
    server: McpServerId,
    id: Digest,
}

impl Name {
    /// That of the message of this id, which came with these headers and a credential that stands for this, for a server.
    pub(super) fn new(binding: &Binding, headers: &HeaderMap, server: McpServerId, id: &Value) -> Self {
        let client = binding.connection.map_or(Client::Key(binding.key), Client::Connection);
        let session = headers.get(SESSION).map(|it| Digest::of(it.as_bytes()));
        Self { client, session, server, id: Digest::of(id.to_string()) }
    }
}

/// The calls under way, by their names.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<HashMap<Name, Vec<Arc<Notify>>>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Named {
    calls: Arc<UnderWay>,
    name: Name,
    off: Arc<Notify>,
}

impl UnderWay {
    /// A call that begins.
    pub(super) fn begin(self: &Arc<Self>, name: Name) -> Named {
        let off = Arc::new(Notify::new());
        self.held().entry(name.clone()).or_default().push(Arc::clone(&off));
        Named { calls: Arc::clone(self), name, off }
    }

    /// Calls off the call of this name, where there is one and no other.
    pub(super) fn call_off(&self, name: &Name) {
        if let Some([off]) = self.held().get(name).map(Vec::as_slice) {
            off.notify_one();
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Name, Vec<Arc<Notify>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Named {
    /// Waits until it is called off.
    pub(super) async fn called_off(&self) {
        self.off.notified().await;
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let mut held = self.calls.held();
        let Some(all) = held.get_mut(&self.name) else { return };
        all.retain(|it| !Arc::ptr_eq(it, &self.off));
        if all.is_empty() {
            held.remove(&self.name);
        }
    }
}
