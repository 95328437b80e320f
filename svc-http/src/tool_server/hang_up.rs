//! Telling a server that a session with it is not used any more, so that it keeps nothing for it (MCP 2025-11-25, "Session
//! Management"): most forget one by no other way.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::ToolServers;
use super::known::Known;
use super::message::{Sent, headers};
use crate::upstream::Times;

/// How long each may take: nobody waits for what comes of it.
const TIMES: Times =
    Times { first_token: Duration::from_secs(2), idle: Duration::from_secs(2), total: Duration::from_secs(2) };

impl ToolServers {
    /// Ends the sessions with a server that were let go of, one after another and behind the back of whoever asks.
    pub(super) fn hang_up(&self, known: &Arc<Known>) {
        let ended = known.take_ended();
        // Without a runtime there is nobody left to send it.
        let (false, Ok(runtime)) = (ended.is_empty(), Handle::try_current()) else { return };
        let (known, upstreams) = (Arc::clone(known), self.upstreams.clone());
        runtime.spawn(async move {
            for era in ended {
                let headers = headers(&era, &Sent::new("", ""), None);
                // A server may take no such thing, and have forgotten the session by itself.
                let _ = upstreams.delete(known.endpoint(), &headers, TIMES).await;
            }
        });
    }
}
