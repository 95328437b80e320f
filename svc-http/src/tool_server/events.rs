//! An answer of an MCP server: one message, or a stream of them whose last is the answer.

use std::sync::Arc;
use std::time::Duration;

use svc_core::dialect::sse;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::known::Known;
use super::message::Heard;
use super::trouble::Trouble;
use super::{Answered, MESSAGE_BYTES_MAX};
use crate::upstream::{Posted, Type};

/// A stream of messages, up to the answer to what was asked.
pub(crate) struct Events {
    known: Arc<Known>,
    posted: Posted,
    events: sse::Events,
    id: u64,
    /// What came first.
    first: Option<Heard>,
    /// The call's place among those under way.
    _place: Option<OwnedSemaphorePermit>,
}

impl Events {
    /// The answer, or the stream it will come in: a stream that begins with the answer is none, where that comes within
    /// `patience`.
    pub(super) async fn first(
        known: &Arc<Known>,
        posted: Posted,
        id: u64,
        patience: Duration,
    ) -> Result<Answered, Trouble> {
        match posted.kind {
            Type::Json => {
                let text = posted.read(MESSAGE_BYTES_MAX).await.map_err(Trouble::Failed)?;
                match known.hear(&text, id) {
                    Some(Heard::Result(result)) => Ok(Answered::Result(result)),
                    Some(Heard::Error(error)) => Err(Trouble::Rpc(error)),
                    Some(Heard::Note(_)) | None => Err(Trouble::NotMcp("its answer is no answer to what was asked")),
                }
            }
            Type::Events => {
                let (known, events) = (Arc::clone(known), sse::Events::default());
                let mut events = Self { known, posted, events, id, first: None, _place: None };
                let first = match timeout(patience, events.next()).await {
                    Ok(heard) => Some(heard?),
                    Err(_) => None,
                };
                match first {
                    Some(Heard::Result(result)) => Ok(Answered::Result(result)),
                    Some(Heard::Error(error)) => Err(Trouble::Rpc(error)),
                    note @ (Some(Heard::Note(_)) | None) => {
                        events.first = note;
                        Ok(Answered::Stream(Box::new(events)))
                    }
                }
            }
            Type::Other => Err(Trouble::NotMcp("its answer is neither JSON nor a stream of events")),
        }
    }

    /// The same, which holds on to its place among the calls under way.
    pub(super) fn at(self, place: OwnedSemaphorePermit) -> Self {
        Self { _place: Some(place), ..self }
    }

    /// The next message that matters.
    ///
    /// # Errors
    /// [`Trouble`]: the stream ends without the answer, or cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Heard, Trouble> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        loop {
            loop {
                let event = self.events.take_next().map_err(|_| Trouble::NotMcp("its stream cannot be read"))?;
                let Some(event) = event else { break };
                if let Some(heard) = event.data.and_then(|it| self.known.hear(&it, self.id)) {
                    return Ok(heard);
                }
            }
            match self.posted.next().await.map_err(Trouble::Failed)? {
                Some(bytes) => self.events.push(&bytes),
                None => return Err(Trouble::NotMcp("its stream ended without an answer")),
            }
        }
    }
}
