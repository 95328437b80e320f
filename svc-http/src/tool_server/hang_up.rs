//! Telling a server that a session with it is not used any more, so that it keeps nothing for it (MCP 2025-11-25, "Session
//! Management"): most forget one by no other way.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::ToolServers;
use super::known::Known;
use super::message::{Era, Sent, headers};
use crate::upstream::{Endpoint, Times, Upstreams};

/// How long each may take: nobody waits for what comes of it.
const TIMES: Times =
    Times { first_token: Duration::from_secs(2), idle: Duration::from_secs(2), total: Duration::from_secs(2) };

/// Sessions that are ended at once, of each server.
const AT_ONCE: usize = 16;

impl ToolServers {
    /// Ends the sessions with a server that were let go of, behind the back of whoever asks.
    pub(super) fn hang_up(&self, known: &Arc<Known>) {
        told(&self.upstreams, known.endpoint(), known.take_ended());
    }
}

/// Tells a server that these have ended, a few at a time. A server that stops waits for it, as long as it waits for anything.
pub(super) fn told(upstreams: &Upstreams, endpoint: &Arc<Endpoint>, ended: Vec<Era>) {
    // Without a runtime there is nobody left to send it.
    let (false, Ok(runtime)) = (ended.is_empty(), Handle::try_current()) else { return };
    let share = ended.len().div_ceil(AT_ONCE);
    for share in ended.chunks(share) {
        let (caller, endpoint, share) = (upstreams.clone(), Arc::clone(endpoint), share.to_vec());
        runtime.spawn(upstreams.outlive(async move {
            for era in share {
                let headers = headers(&era, &Sent::new("", ""), None);
                // A server may take no such thing, and have forgotten the session by itself.
                let _ = caller.delete(&endpoint, &headers, TIMES).await;
            }
        }));
    }
}
