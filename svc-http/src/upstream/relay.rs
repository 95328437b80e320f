//! A stream on its way from an upstream to a client.
//!
//! What the upstream has ready is read and translated in one go and handed to the client in one go; nothing waits for more
//! to come. While nothing comes a relay holds no buffer.
//!
//! **Invariant:** no more than one read of the upstream is in memory, however slow the client.
//! **Invariant:** a stream that breaks off ends with an error event of the client's API, never as if it were whole.
//! **Invariant:** what came of it is told once: at its end, or when it is dropped.
//! **Invariant:** the last word goes out after what came of the call was kept: whoever has heard it finds the record.
//! **Invariant:** whoever is stopped before the last word went out hears that they were stopped, not that word.
//! **Invariant:** a stop and the time for the whole call end it also where its client asks for no more (`watched.rs`).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use svc_core::dialect::ProviderError;
use svc_core::state::gateway::Usage;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::failed::{Failed, Reason, Said};
use super::guard::{Charged, Finish, Guard, How, Outlive, millis};
use super::incoming::Incoming;
use super::switch::Switch;
use super::watched::{Finished, Found, Instead, LastWord, Running, Watched};
use crate::answer::Broken;

/// The trailer that says what a streamed call cost; the answer's head has to announce it in `trailer`.
pub const COST_TRAILER: HeaderName = HeaderName::from_static("x-svc-cost-micros");
/// Bytes for the client past which nothing more is read before they are written.
const OUT_BYTES_MAX: usize = 64 * 1024;

/// Makes the client's stream of the upstream's.
pub trait Translate: Send + Unpin + 'static {
    /// Takes bytes of the upstream, cut wherever they were cut on their way, and appends what the client gets to `out`.
    ///
    /// # Errors
    /// They are no stream of this API: it is to be cut.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Reason>;

    /// Whether the last word was said, be it an error.
    fn is_done(&self) -> bool;

    /// Whether the answer has begun: what a provider sends before that, of itself and to keep the connection open, is no answer.
    fn has_begun(&self) -> bool;

    /// Whether a token has come: before that the time for the first one runs, not the time between tokens.
    fn has_token(&self) -> bool;

    /// The error that the upstream has told, where the stream ended so.
    fn error(&self) -> Option<&ProviderError> {
        None
    }

    /// What the upstream has told of its use.
    fn reported(&self) -> Option<Usage>;

    /// How many pieces of the answer have come: the time between tokens begins anew when this grows, and not with what a
    /// provider sends to keep a connection open.
    fn pieces(&self) -> u64;

    /// The last word was said, or nothing more comes: appends what is still to be said, an error event of the client's API
    /// where the answer is not whole. How it ended: [`How::Done`] or [`How::Cut`]. Asked again it appends nothing.
    fn end(&mut self, out: &mut Vec<u8>) -> How;

    /// The stream breaks off here: appends an error event of the client's API, unless the last word was said.
    fn cut(&mut self, how: How, out: &mut Vec<u8>);

    /// Appends the same error event whether or not the last word was said: the client hears it in the place of that.
    fn write_error(&self, how: How, out: &mut Vec<u8>);

    /// How many bytes the last word has, which stands at the end of what was appended; none before it was said.
    fn last_bytes(&self) -> usize;
}

/// What turns a reply into a body.
#[derive(Clone, Copy, Debug)]
pub struct Relay;

/// A stream of which the client can be given something: no other attempt is made from here on.
pub struct Begun<T> {
    incoming: Incoming,
    translator: T,
    out: Vec<u8>,
    is_ended: bool,
    first_ms: Option<u64>,
}

impl<T> std::fmt::Debug for Begun<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Begun").finish_non_exhaustive()
    }
}

impl Relay {
    /// Reads until the answer has begun. What came before that waits: a provider that says who speaks, and then fails, has not
    /// answered. What it tells of its use meanwhile is put into `told` at once, so that it is known also where this is dropped.
    ///
    /// # Errors
    /// The stream broke off, or was too slow, before it had: the client has heard nothing, another upstream can be asked.
    pub async fn begin<T: Translate>(
        mut incoming: Incoming,
        mut translator: T,
        told: &mut Option<Usage>,
    ) -> Result<Begun<T>, Failed> {
        let (started, status, mut out) = (incoming.started, incoming.status, Vec::new());
        match Self::read(&mut incoming, &mut translator, &mut out, told).await {
            Ok(is_ended) => {
                let first_ms = translator.has_token().then(|| millis(started));
                Ok(Begun { incoming, translator, out, is_ended, first_ms })
            }
            Err(reason) => {
                *told = translator.reported();
                let made_tokens = told.is_some_and(|it| it.all_output() > 0);
                let said = translator.error().map(Said::of).unwrap_or_default();
                Err(Failed { status: Some(status), said, ms: millis(started), made_tokens, ..Failed::sent(reason) })
            }
        }
    }

    /// Reads until the answer has begun. Whether it has ended as well.
    async fn read<T: Translate>(
        incoming: &mut Incoming,
        translator: &mut T,
        out: &mut Vec<u8>,
        told: &mut Option<Usage>,
    ) -> Result<bool, Reason> {
        let first = incoming.started + incoming.times.total.min(incoming.times.first_token);
        loop {
            let mut read = Ok(());
            let take = poll_fn(|context| {
                incoming.poll_take(context, &mut |bytes| read = read.and_then(|()| translator.push(bytes, out)))
            });
            let more = timeout_at(first, take).await.map_err(|_| Reason::FirstToken)??;
            *told = translator.reported();
            read?;
            let is_ended = !more;
            if (is_ended || translator.is_done()) && !translator.has_token() {
                // An error, or nothing: the client need not hear of it.
                return match translator.end(out) {
                    How::Done => Ok(true),
                    How::Cut(Reason::Closed) if is_ended => Err(Reason::Empty),
                    How::Cut(reason) => Err(reason),
                    How::HungUp | How::Stopped(_) => Err(Reason::Closed),
                };
            }
            if (translator.has_begun() && !out.is_empty()) || out.len() >= OUT_BYTES_MAX {
                return Ok(is_ended);
            }
            // Whoever talks without a pause and says nothing is not waited for by the timer.
            if Instant::now() >= first {
                return Err(Reason::FirstToken);
            }
        }
    }
}

impl<T: Translate> Begun<T> {
    /// The status of the answer.
    pub const fn status(&self) -> u16 {
        self.incoming.status
    }

    /// What was heard until now.
    pub const fn translator(&self) -> &T {
        &self.translator
    }

    /// The body for the client. `guard` is told what came of it; `switch` cuts it; with `wants_cost` the cost follows as
    /// [`COST_TRAILER`].
    pub fn into_body<F: Finish<Heard = T>>(
        self,
        guard: Guard<F>,
        switch: Arc<Switch>,
        wants_cost: bool,
    ) -> RelayBody<T, F> {
        let Self { incoming, translator, out, is_ended, first_ms } = self;
        let mut guard = guard;
        if let (Some(ms), Some(sink)) = (first_ms, guard.sink()) {
            sink.first_token(ms);
        }
        let (times, started) = (incoming.times, incoming.started);
        let running = Running {
            first_ms,
            heard_at: Instant::now(),
            pieces: translator.pieces(),
            first_until: started + times.first_token,
            total_until: started + times.total,
            incoming,
            translator,
            guard,
            is_ended,
        };
        let watched = Watched::new(running, Arc::clone(&switch));
        RelayBody { step: Step::Running(watched), out, timer: None, switch, wants_cost }
    }
}

/// A stream on its way to a client.
pub struct RelayBody<T: Translate, F: Finish<Heard = T>> {
    step: Step<T, F>,
    out: Vec<u8>,
    timer: Option<Pin<Box<Sleep>>>,
    switch: Arc<Switch>,
    wants_cost: bool,
}

/// A stream that may be stopped before its end.
pub trait Stoppable: Body {
    /// Whether its agent or its key was stopped, and it has not said so yet: what it gave last and whoever asks has not handed on goes no
    /// further, and it says so next.
    fn takes_back(&mut self) -> bool;
}

impl<T: Translate, F: Finish<Heard = T>> Stoppable for RelayBody<T, F> {
    fn takes_back(&mut self) -> bool {
        let Some(stop) = self.switch.stopped().filter(|it| it.takes_back()) else { return false };
        match &mut self.step {
            Step::Running(_) | Step::Ending(_) | Step::Telling(..) => true,
            Step::Told(_, instead) => {
                // The last word has not gone out: it is said in its place.
                self.out = std::mem::take(instead).of(stop);
                !self.out.is_empty()
            }
            Step::Ended => false,
        }
    }
}

/// Nothing in it is pinned in place.
impl<T: Translate, F: Finish<Heard = T>> Unpin for RelayBody<T, F> {}

enum Step<T: Translate, F: Finish<Heard = T>> {
    Running(Watched<T, F>),
    /// It is ended from outside, which is told here once what came of it was kept.
    Ending(oneshot::Receiver<Finished>),
    /// What came of it is being told, and the last word waits for that.
    Telling(Telling, LastWord),
    /// The last word was said, and what is said in its place where it is taken back; what the call came to may follow.
    Told(Option<Charged>, Instead),
    Ended,
}

/// What came of a call: as it is being kept, here or aside, or as it was.
enum Telling {
    Here(Outlive<Option<Charged>>),
    Aside(JoinHandle<Option<Charged>>),
    Known(Option<Charged>),
}

impl Telling {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Charged>> {
        match self {
            Self::Here(told) => Pin::new(told).poll(context),
            Self::Aside(told) => Pin::new(told).poll(context).map(Result::unwrap_or_default),
            Self::Known(charged) => Poll::Ready(charged.take()),
        }
    }
}

impl<T: Translate, F: Finish<Heard = T>> RelayBody<T, F> {
    /// Reads what is there; how it ended, where it did.
    fn read(&mut self, running: &mut Running<T, F>, context: &mut Context<'_>) -> Poll<How> {
        loop {
            if let Some(stop) = self.switch.stopped() {
                return Poll::Ready(How::Stopped(stop));
            }
            let Running { incoming, translator, .. } = running;
            if running.is_ended || translator.is_done() {
                running.is_ended = true;
                return Poll::Ready(translator.end(&mut self.out));
            }
            if self.out.len() >= OUT_BYTES_MAX {
                return Poll::Pending;
            }
            let mut read = Ok(());
            let taken = incoming
                .poll_take(context, &mut |bytes| read = read.and_then(|()| translator.push(bytes, &mut self.out)));
            match taken {
                Poll::Ready(_) if read.is_err() => return Poll::Ready(How::Cut(Reason::Unreadable)),
                Poll::Ready(Ok(more)) => {
                    running.is_ended = !more;
                    if running.first_ms.is_none() && translator.has_token() {
                        let ms = millis(incoming.started);
                        running.first_ms = Some(ms);
                        if let Some(sink) = running.guard.sink() {
                            sink.first_token(ms);
                        }
                    }
                    let (now, pieces) = (Instant::now(), translator.pieces());
                    if pieces != running.pieces {
                        (running.heard_at, running.pieces) = (now, pieces);
                    }
                    // Whoever talks without a pause is not waited for by the timer. Whether it is silent is told only when all
                    // that is there was read: a slow client has let pieces wait behind what has come now.
                    let (until, reason) = running.while_talking();
                    if more && now >= until {
                        return Poll::Ready(How::Cut(reason));
                    }
                }
                Poll::Ready(Err(reason)) => return Poll::Ready(How::Cut(reason)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Whether time has run out.
    fn late(&mut self, running: &Running<T, F>, context: &mut Context<'_>) -> Option<Reason> {
        let (until, reason) = running.until();
        if Instant::now() >= until {
            return Some(reason);
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        // The timer is set anew only when it rings: most of what comes does not move it.
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= until {
                return Some(reason);
            }
            timer.as_mut().reset(until);
        }
        // A time that has become shorter, as when the first token has come, is not waited past.
        if timer.deadline() > until {
            timer.as_mut().reset(until);
            let _ = timer.as_mut().poll(context);
        }
        None
    }

    /// Reads on in a stream. Nothing where more is waited for.
    fn go_on(&mut self, mut running: Box<Running<T, F>>, context: &mut Context<'_>) -> Poll<()> {
        let how = match self.read(&mut running, context) {
            Poll::Ready(how) => Some(how),
            Poll::Pending if self.out.is_empty() => self.late(&running, context).map(How::Cut),
            Poll::Pending => None,
        };
        let Step::Running(watched) = &self.step else { return Poll::Ready(()) };
        let ended = match how {
            Some(how) => Some(running.end(how, &mut self.out)),
            None => watched.give_back(running, context.waker(), &mut self.out),
        };
        match ended {
            Some((told, last)) => {
                self.timer = None;
                // A client that does not read what comes before the last word asks for no more: it is kept all the same.
                let telling =
                    if self.out.is_empty() { Telling::Here(told) } else { Telling::Aside(tokio::spawn(told)) };
                self.step = Step::Telling(telling, last);
            }
            None if self.out.is_empty() => return Poll::Pending,
            None => {}
        }
        Poll::Ready(())
    }

    /// It was ended from outside.
    fn was_ended(&mut self, finished: Finished) {
        let Finished { charged, out, last, takes_back } = finished;
        if takes_back {
            self.out.clear();
        }
        self.out.extend_from_slice(&out);
        self.step = Step::Telling(Telling::Known(charged), last);
    }
}

impl<T: Translate, F: Finish<Heard = T>> Body for RelayBody<T, F> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        loop {
            match &mut this.step {
                Step::Running(watched) => {
                    match watched.take() {
                        Found::Running(running) => ready!(this.go_on(running, context)),
                        Found::Ending(finished) => {
                            this.timer = None;
                            this.step = Step::Ending(finished);
                        }
                        Found::Gone => this.step = Step::Ended,
                    }
                    if !this.out.is_empty() && !matches!(this.step, Step::Ending(_)) {
                        return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.out).into()))));
                    }
                }
                Step::Ending(finished) => match ready!(Pin::new(finished).poll(context)) {
                    Ok(finished) => {
                        this.was_ended(finished);
                        if !this.out.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.out).into()))));
                        }
                    }
                    // The process is ending, and nobody is left who could say how the answer ended.
                    Err(_) => {
                        this.step = Step::Ended;
                        return Poll::Ready(Some(Err(Broken)));
                    }
                },
                Step::Telling(told, last) => {
                    let charged = ready!(told.poll(context));
                    let LastWord { said, instead } = std::mem::take(last);
                    let (last, instead) = match this.switch.stopped().filter(|it| it.takes_back()) {
                        Some(stop) => (instead.of(stop), Instead::default()),
                        None => (said, instead),
                    };
                    this.step = Step::Told(charged.filter(|_| this.wants_cost), instead);
                    if !last.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(last.into()))));
                    }
                }
                Step::Told(..) if !this.out.is_empty() => {
                    return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.out).into()))));
                }
                Step::Told(charged, _) => {
                    let charged = charged.take();
                    this.step = Step::Ended;
                    if let Some(charged) = charged {
                        let trailers = HeaderMap::from_iter([(COST_TRAILER, HeaderValue::from(charged.cost))]);
                        return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                    }
                }
                Step::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl<T: Translate, F: Finish<Heard = T>> std::fmt::Debug for RelayBody<T, F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RelayBody").finish_non_exhaustive()
    }
}
