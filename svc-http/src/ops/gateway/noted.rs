//! A streamed answer on its way to its client, of which nothing goes on before what entered the context with it is noted: an
//! agent can act while its answer still comes, and the server may not live to its end (CONTRACT part 2, "Provenance").
//!
//! **Invariant:** what is not noted is not handed on.

use std::collections::BTreeSet;
use std::convert::Infallible;
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
    fn tell(&self, tools: impl Iterator<Item = Box<str>>) {
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
    ) -> Self {
        tools.tell(demand.untold_tools().map(Into::into));
        let (gate, demand, routing) = (gate.clone(), Arc::clone(demand), Arc::clone(routing));
        Self { gate, call, demand, routing, tools, noted: BTreeSet::new() }
    }

    /// What is to be noted before anything goes on.
    fn due(&mut self) -> Option<NoteOwnTools> {
        let mut tools: Vec<Box<str>> = self.tools.take().into_iter().collect();
        tools.retain(|it| self.noted.insert(self.routing.meaning_of(it).source.into()));
        let due = NoteOwnTools { call: self.call, tools, routing: Arc::clone(&self.routing) };
        Some(due).filter(|it| !it.tools.is_empty())
    }

    /// What the client hears where it could not be noted.
    fn broken_off(&self) -> Bytes {
        let (dialect, mut out) = (self.demand.dialect, Vec::new());
        Stream::new(dialect, dialect, StreamOptions::default()).cut(&mut out, "internal", UNNOTED);
        out.into()
    }
}

/// The body for the client.
pub(super) struct Noted<B> {
    /// Nothing once it was cut.
    body: Option<B>,
    notebook: Notebook,
    held: Option<Held>,
}

/// A frame that waits until what came with it is noted.
struct Held {
    frame: Frame<Bytes>,
    noting: Pin<Box<dyn Future<Output = bool> + Send>>,
}

impl<B> Noted<B> {
    pub(super) const fn new(body: B, notebook: Notebook) -> Self {
        Self { body: Some(body), notebook, held: None }
    }
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for Noted<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        loop {
            if let Some(held) = &mut this.held {
                let is_noted = ready!(held.noting.as_mut().poll(context));
                let held = this.held.take();
                if is_noted {
                    return Poll::Ready(held.map(|it| Ok(it.frame)));
                }
                this.body = None;
                return Poll::Ready(Some(Ok(Frame::data(this.notebook.broken_off()))));
            }
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            let Some(Ok(frame)) = ready!(Pin::new(body).poll_frame(context)) else { return Poll::Ready(None) };
            let Some(due) = this.notebook.due() else { return Poll::Ready(Some(Ok(frame))) };
            let noting = this.notebook.gate.submit(due);
            let noting = Box::pin(async move {
                let noted = noting.await;
                if let Err(failure) = &noted {
                    tracing::error!(error = ?failure, "what a provider's tools brought in could not be noted");
                }
                noted.is_ok()
            });
            this.held = Some(Held { frame, noting });
        }
    }
}

/// What a stream says that ends because what it brings in could not be noted.
const UNNOTED: &str = "what the provider's tools brought in could not be noted";
