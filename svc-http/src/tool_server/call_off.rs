//! Calling a tool off whose result nobody waits for any more: an agent was stopped, its client is gone, or time is up.
//!
//! Servers without handshake hear of it by the end of the connection. To those of the eras before that end says nothing, and the
//! tool would run on: they are told in a message of its own (MCP 2025-11-25, "Cancellation").

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::ToolServers;
use super::known::Known;
use super::message::{Era, Sent};
use crate::upstream::Times;

/// How long the message may take: nobody waits for what comes of it, but a server that stops waits for it to be sent.
const TIMES: Times =
    Times { first_token: Duration::from_secs(2), idle: Duration::from_secs(2), total: Duration::from_secs(2) };

/// A call under way, which is called off where this is dropped before it is over.
pub(super) struct CallOff(Option<Box<Call>>);

struct Call {
    servers: ToolServers,
    known: Arc<Known>,
    era: Era,
    id: u64,
}

impl CallOff {
    /// Of the call that goes out by this id.
    pub(super) fn new(servers: &ToolServers, known: &Arc<Known>, era: &Era, id: u64) -> Self {
        if *era == Era::Modern {
            return Self::never();
        }
        Self(Some(Box::new(Call { servers: servers.clone(), known: Arc::clone(known), era: era.clone(), id })))
    }

    /// Of what is never called off.
    pub(super) const fn never() -> Self {
        Self(None)
    }

    /// The call is over.
    pub(super) fn is_over(&mut self) {
        self.0 = None;
    }
}

impl Drop for CallOff {
    fn drop(&mut self) {
        let Some(call) = self.0.take() else { return };
        // Without a runtime there is nobody left to send it.
        let Ok(runtime) = Handle::try_current() else { return };
        let Call { servers, known, era, id } = *call;
        let told = servers.upstreams.clone().outlive(async move {
            let params = format!("{{\"requestId\":{id},\"reason\":\"nobody waits for the result any more\"}}");
            let sent = Sent::new("notifications/cancelled", &params);
            // Whether it is heard is the server's matter.
            let _ = servers.post(&known, &era, &sent, None, TIMES).await;
        });
        runtime.spawn(told);
    }
}
