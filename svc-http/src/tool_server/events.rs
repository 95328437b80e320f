//! An answer of an MCP server: one message, or a stream of them whose last is the answer.

use std::sync::Arc;
use std::time::Duration;

use svc_core::dialect::sse;
use svc_core::value::json::Json;
use tokio::time::timeout;

use super::call_off::CallOff;
use super::known::Known;
use super::message::{Heard, progress};
use super::places::Place;
use super::questions::Questions;
use super::resume::{Resume, Resuming};
use super::trouble::Trouble;
use super::{Answered, MESSAGE_BYTES_MAX};
use crate::upstream::{Posted, Reason, Type};

/// A stream of messages, up to the answer to what was asked.
pub(crate) struct Events {
    known: Arc<Known>,
    source: Source,
    resume: Resume,
    events: sse::Events,
    id: u64,
    /// By what the client is told of the progress of what was asked.
    progress: Option<Json>,
    call_off: CallOff,
    questions: Questions,
    /// What came first.
    first: Option<Heard>,
    /// The call's place among those under way.
    _place: Option<Place>,
}

/// Where what comes next comes from.
enum Source {
    Stream(Box<Posted>),
    /// The stream ended, for this reason, and is asked for again.
    Again(Resuming, Trouble),
}

/// What was asked, and what of it is still to be done.
pub(super) struct Asked {
    pub(super) id: u64,
    /// By what its client is to be told of its progress.
    pub(super) progress: Option<Json>,
    pub(super) resume: Resume,
    pub(super) call_off: CallOff,
    pub(super) questions: Questions,
}

impl Events {
    /// The answer, or the stream it will come in: a stream that begins with the answer is none, where that comes within
    /// `patience`.
    pub(super) async fn first(
        known: &Arc<Known>,
        posted: Posted,
        asked: Asked,
        patience: Duration,
    ) -> Result<Answered, Trouble> {
        let Asked { id, progress, resume, mut call_off, questions } = asked;
        match posted.kind {
            Type::Json => {
                let text = posted.read(MESSAGE_BYTES_MAX).await.map_err(Trouble::Failed)?;
                call_off.is_over();
                match known.hear(&text, id) {
                    Some(Heard::Result(result)) => Ok(Answered::Result(result)),
                    Some(Heard::Error(error)) => Err(Trouble::Rpc(error)),
                    Some(Heard::Note(_)) | None => Err(Trouble::NotMcp("its answer is no answer to what was asked")),
                }
            }
            Type::Events => {
                let mut events = Self {
                    known: Arc::clone(known),
                    source: Source::Stream(Box::new(posted)),
                    resume,
                    events: sse::Events::default(),
                    id,
                    progress,
                    call_off,
                    questions,
                    first: None,
                    _place: None,
                };
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
    pub(super) fn at(self, place: Place) -> Self {
        Self { _place: Some(place), ..self }
    }

    /// The next message that matters. Of a server's own only what tells of the progress of this call does: nothing else is
    /// agreed on with it. What it asks is answered on the way.
    ///
    /// # Errors
    /// [`Trouble`]: the stream ends without the answer, or cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Heard, Trouble> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        loop {
            if let Some(heard) = self.heard()? {
                return Ok(heard);
            }
            let ended = match &mut self.source {
                Source::Stream(posted) => match posted.next().await {
                    Ok(Some(bytes)) => {
                        self.events.push(&bytes);
                        continue;
                    }
                    Ok(None) => {
                        // A line may have ended in one byte where it could have been two.
                        self.events.end();
                        if let Some(heard) = self.heard()? {
                            return Ok(heard);
                        }
                        Trouble::NotMcp("its stream ended without an answer")
                    }
                    Err(failed) if failed.reason == Reason::Closed => Trouble::Failed(failed),
                    Err(failed) => return Err(Trouble::Failed(failed)),
                },
                Source::Again(again, why) => {
                    let Some(posted) = again.await else { return Err(why.clone()) };
                    self.source = Source::Stream(Box::new(posted));
                    continue;
                }
            };
            // What is half there comes again, whole.
            self.events = sse::Events::default();
            match self.resume.ask(&self.known) {
                Some(again) => self.source = Source::Again(again, ended),
                None => return Err(ended),
            }
        }
    }

    /// The next message that matters of what has come; what the server asks in between is answered.
    fn heard(&mut self) -> Result<Option<Heard>, Trouble> {
        loop {
            let event = self.events.take_next().map_err(|_| Trouble::NotMcp("its stream cannot be read"))?;
            let Some(event) = event else { return Ok(None) };
            self.resume.note(&event);
            let Some(data) = event.data else { continue };
            match self.known.hear(&data, self.id) {
                Some(Heard::Note(note)) => {
                    if let Some(told) = progress(&note, self.id, self.progress.as_ref()) {
                        return Ok(Some(Heard::Note(told)));
                    }
                }
                Some(last @ (Heard::Result(_) | Heard::Error(_))) => {
                    self.call_off.is_over();
                    return Ok(Some(last));
                }
                None => self.questions.answer(&self.known, &data),
            }
        }
    }
}
