//! A streamed answer on its way to its client, of which nothing goes on before what entered the context with it is noted: an
//! agent can act while its answer still comes, and the server may not live to its end (CONTRACT part 2, "Provenance").
//!
//! **Invariant:** what is not noted is not handed on, nor is what was held when its agent was stopped.

use std::collections::BTreeSet;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use svc_core::dialect::{Stream, StreamOptions};
use svc_core::rules::gateway::observe::NoteOwnTools;
use svc_core::state::gateway::{Demand, Routing};
use svc_core::value::id::CallId;
use svc_store::Gate;

use super::running::Seat;
use crate::answer::Broken;
use crate::upstream::Stoppable;

/// The tools that a stream's provider ran itself: told by whoever reads the stream, taken by whoever hands it on.
#[derive(Debug, Default)]
pub(super) struct OwnTools(Mutex<BTreeSet<Box<str>>>);

impl OwnTools {
    /// Reads on in a stream, and tells the tools that were heard of with that.
    pub(super) fn hear<T>(&self, stream: &mut Stream, read: impl FnOnce(&mut Stream) -> T) -> T {
        let known = stream.own_tools();
        let answer = read(stream);
        if stream.own_tools() > known {
            let received = stream.received();
            self.tell(received.server_tools.into_keys().chain(received.brought));
        }
        answer
    }

    /// Tells these.
    pub(super) fn tell(&self, tools: impl Iterator<Item = Box<str>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(tools);
    }

    /// Takes what was told since.
    fn take(&self) -> BTreeSet<Box<str>> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where it is noted.
pub(super) struct Notebook {
    gate: Gate,
    call: CallId,
    demand: Arc<Demand>,
    routing: Arc<Routing>,
    tools: Arc<OwnTools>,
    /// A freeze finds the call as long as something of it may wait here, also where its end is kept.
    _seat: Option<Seat>,
    /// What the tools that were noted count as: one of another name that counts as the same brings in nothing new.
    noted: BTreeSet<Box<str>>,
}

impl Notebook {
    /// For a call whose stream tells its tools there.
    pub(super) fn new(
        gate: &Gate,
        call: CallId,
        demand: &Arc<Demand>,
        routing: &Arc<Routing>,
        tools: Arc<OwnTools>,
        seat: Option<Seat>,
    ) -> Self {
        tools.tell(demand.untold_tools().map(Into::into));
        let (gate, demand, routing) = (gate.clone(), Arc::clone(demand), Arc::clone(routing));
        Self { gate, call, demand, routing, tools, _seat: seat, noted: BTreeSet::new() }
    }

    /// What is to be noted before anything goes on.
    fn due(&mut self) -> Option<NoteOwnTools> {
        let mut tools: Vec<Box<str>> = self.tools.take().into_iter().collect();
        tools.retain(|it| self.noted.insert(self.routing.meaning_of(it).source.into()));
        let due = NoteOwnTools { call: self.call, tools, routing: Arc::clone(&self.routing) };
        Some(due).filter(|it| !it.tools.is_empty())
    }
}

/// A note on its way: whether it was taken.
type Noting = Pin<Box<dyn Future<Output = bool> + Send>>;

/// What notes, before a frame goes on, what came with it.
pub(super) trait Notes {
    /// The note that is due, where there is one.
    fn begin(&mut self) -> Option<Noting>;

    /// What the client hears where it could not be taken.
    fn broken_off(&self) -> Bytes;
}

impl Notes for Notebook {
    fn begin(&mut self) -> Option<Noting> {
        let due = self.due()?;
        let noting = self.gate.submit(due);
        Some(Box::pin(async move {
            let noted = noting.await;
            if let Err(failure) = &noted {
                tracing::error!(error = ?failure, "what a provider's tools brought in could not be noted");
            }
            noted.is_ok()
        }))
    }

    fn broken_off(&self) -> Bytes {
        let (dialect, mut out) = (self.demand.dialect, Vec::new());
        Stream::new(dialect, dialect, StreamOptions::default()).cut(&mut out, "internal", UNNOTED);
        out.into()
    }
}

/// The body for the client.
pub(super) struct Noted<B, N> {
    /// Nothing once it was cut.
    body: Option<B>,
    notebook: N,
    held: Option<Held>,
}

/// A frame that waits until what came with it is noted.
struct Held {
    frame: Frame<Bytes>,
    noting: Noting,
}

impl<B, N> Noted<B, N> {
    pub(super) const fn new(body: B, notebook: N) -> Self {
        Self { body: Some(body), notebook, held: None }
    }
}

impl<B: Stoppable<Data = Bytes, Error = Broken> + Unpin, N: Notes + Unpin> Body for Noted<B, N> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        loop {
            if let Some(held) = &mut this.held {
                let is_noted = ready!(held.noting.as_mut().poll(context));
                let held = this.held.take();
                if is_noted && this.body.as_mut().is_some_and(Stoppable::takes_back) {
                    // The body says so next, in place of what waited.
                    continue;
                }
                if is_noted {
                    return Poll::Ready(held.map(|it| Ok(it.frame)));
                }
                this.body = None;
                return Poll::Ready(Some(Ok(Frame::data(this.notebook.broken_off()))));
            }
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            let frame = match ready!(Pin::new(body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                over => return Poll::Ready(over),
            };
            let Some(noting) = this.notebook.begin() else { return Poll::Ready(Some(Ok(frame))) };
            this.held = Some(Held { frame, noting });
        }
    }
}

/// What a stream says that ends because what it brings in could not be noted.
const UNNOTED: &str = "what the provider's tools brought in could not be noted";

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use http_body_util::BodyExt as _;
    use tokio::sync::oneshot;

    use super::*;

    /// Frames, of which the last says that it was stopped, once it was.
    struct Frames(VecDeque<&'static str>, bool);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Broken;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
            Poll::Ready(self.0.pop_front().map(|it| Ok(Frame::data(Bytes::from_static(it.as_bytes())))))
        }
    }

    impl Stoppable for Frames {
        fn takes_back(&mut self) -> bool {
            self.1
        }
    }

    /// Every frame but the last brings something in, which is noted when and as somebody says.
    struct Said(VecDeque<oneshot::Receiver<bool>>);

    impl Notes for Said {
        fn begin(&mut self) -> Option<Noting> {
            let said = self.0.pop_front()?;
            Some(Box::pin(async move { said.await.unwrap_or(false) }))
        }

        fn broken_off(&self) -> Bytes {
            Bytes::from_static(b"broken off")
        }
    }

    /// What was held when the agent was stopped is not handed on; what is noted is, and what is not ends the stream.
    #[tokio::test]
    async fn what_waited_when_it_was_stopped_is_not_handed_on() {
        for (noted, stopped, expected) in [
            (true, false, "tool call, end"),
            (true, true, "end"),
            (false, false, "broken off"),
            (false, true, "broken off"),
        ] {
            let (say, said) = oneshot::channel();
            let mut body =
                Noted::new(Frames(VecDeque::from(["tool call, ", "end"]), false), Said(VecDeque::from([said])));
            let first = poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context).is_pending())).await;
            assert!(first, "it waits for the note");
            body.body.as_mut().unwrap().1 = stopped;
            say.send(noted).unwrap();
            let heard = body.collect().await.unwrap().to_bytes();
            assert_eq!(heard, expected, "noted: {noted}, stopped: {stopped}");
        }
    }
}
