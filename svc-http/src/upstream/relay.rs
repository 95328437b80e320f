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

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use svc_core::state::gateway::Usage;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::failed::{Failed, Reason};
use super::guard::{Charged, Finish, Guard, How, Outlive, millis};
use super::incoming::Incoming;
use super::switch::{Stop, Switch};

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
        let (started, mut out) = (incoming.started, Vec::new());
        match Self::read(&mut incoming, &mut translator, &mut out, told).await {
            Ok(is_ended) => {
                let first_ms = translator.has_token().then(|| millis(started));
                Ok(Begun { incoming, translator, out, is_ended, first_ms })
            }
            Err(reason) => {
                *told = translator.reported();
                let made_tokens = told.is_some_and(|it| it.all_output() > 0);
                Err(Failed { ms: millis(started), made_tokens, ..Failed::sent(reason) })
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
    /// From the call to its first token, in milliseconds, where one has come.
    pub const fn first_ms(&self) -> Option<u64> {
        self.first_ms
    }

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
        RelayBody { step: Step::Running(running), out, timer: None, switch, wants_cost }
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
    /// Whether its agent was stopped, and it has not said so yet: what it gave last and whoever asks has not handed on goes no
    /// further, and it says so next.
    fn takes_back(&mut self) -> bool;
}

impl<T: Translate, F: Finish<Heard = T>> Stoppable for RelayBody<T, F> {
    fn takes_back(&mut self) -> bool {
        if self.switch.stopped() != Some(Stop::Agent) {
            return false;
        }
        match &mut self.step {
            Step::Running(_) | Step::Telling(..) => true,
            Step::Told(_, said) => {
                // The last word has not gone out: it is said in its place.
                self.out = std::mem::take(said);
                !self.out.is_empty()
            }
            Step::Ended => false,
        }
    }
}

/// Nothing in it is pinned in place.
impl<T: Translate, F: Finish<Heard = T>> Unpin for RelayBody<T, F> {}

#[expect(clippy::large_enum_variant, reason = "there is one for each stream, and nearly all its life it is running")]
enum Step<T: Translate, F: Finish<Heard = T>> {
    Running(Running<T, F>),
    /// What came of it is being told, and the last word waits for that.
    Telling(Outlive<Option<Charged>>, LastWord),
    /// The last word was said, and what is said in its place where it is taken back; what the call came to may follow.
    Told(Option<Charged>, Vec<u8>),
    Ended,
}

/// What a client hears last.
#[derive(Default)]
struct LastWord {
    said: Vec<u8>,
    /// What it hears in its place where its agent is stopped before that.
    stopped: Vec<u8>,
}

struct Running<T: Translate, F: Finish<Heard = T>> {
    incoming: Incoming,
    translator: T,
    guard: Guard<F>,
    is_ended: bool,
    /// From the call to its first token, in milliseconds, once one has come.
    first_ms: Option<u64>,
    /// When the last piece of the answer came, and how many there were then.
    heard_at: Instant,
    pieces: u64,
    first_until: Instant,
    total_until: Instant,
}

impl<T: Translate, F: Finish<Heard = T>> Running<T, F> {
    /// Until when something has to come, and what it is if nothing does.
    fn until(&self) -> (Instant, Reason) {
        let (next, reason) = if self.first_ms.is_some() {
            (self.heard_at + self.incoming.times.idle, Reason::Idle)
        } else {
            (self.first_until, Reason::FirstToken)
        };
        if self.total_until <= next { (self.total_until, Reason::Total) } else { (next, reason) }
    }

    /// The same while there is more to read.
    fn while_talking(&self) -> (Instant, Reason) {
        if self.first_ms.is_some() { (self.total_until, Reason::Total) } else { self.until() }
    }
}

impl<T: Translate, F: Finish<Heard = T>> RelayBody<T, F> {
    /// Reads what is there; how it ended, where it did.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<How> {
        let Step::Running(running) = &mut self.step else { return Poll::Pending };
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
                        running.first_ms = Some(millis(incoming.started));
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
                Poll::Pending => {
                    self.switch.wakes(context.waker());
                    if self.switch.stopped().is_some() {
                        continue;
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Whether time has run out.
    fn late(&mut self, context: &mut Context<'_>) -> Option<Reason> {
        let Step::Running(running) = &self.step else { return None };
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

    /// Ends it: whoever keeps what came of it is told, then the client.
    fn end(&mut self, how: How) {
        let Step::Running(running) = std::mem::replace(&mut self.step, Step::Ended) else { return };
        let Running { incoming, mut translator, guard, first_ms, is_ended, .. } = running;
        let mut stopped = Vec::new();
        translator.write_error(How::Stopped(Stop::Agent), &mut stopped);
        match how {
            How::Done => incoming.finish(),
            // The translator has said so itself where the stream ended without its last word.
            How::Cut(_) if is_ended => {}
            How::Cut(_) | How::HungUp | How::Stopped(Stop::Server) => translator.cut(how, &mut self.out),
            How::Stopped(Stop::Agent) => {
                // What waits came before it was stopped, or after: the client gets none of it, nor an end that was read already.
                translator.cut(how, &mut self.out);
                self.out.clear();
            }
        }
        self.timer = None;
        let said = self.out.split_off(self.out.len().saturating_sub(translator.last_bytes()));
        self.step = Step::Telling(guard.finish(Some(translator), how, first_ms), LastWord { said, stopped });
    }
}

impl<T: Translate, F: Finish<Heard = T>> Body for RelayBody<T, F> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        loop {
            match &mut this.step {
                Step::Running(_) => {
                    if let Poll::Ready(how) = this.read(context) {
                        this.end(how);
                    } else if this.out.is_empty() {
                        match this.late(context) {
                            Some(reason) => this.end(How::Cut(reason)),
                            None => return Poll::Pending,
                        }
                    }
                    if !this.out.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.out).into()))));
                    }
                }
                Step::Telling(told, last) => {
                    let charged = std::task::ready!(Pin::new(told).poll(context));
                    let LastWord { said, stopped } = std::mem::take(last);
                    let was_stopped = this.switch.stopped() == Some(Stop::Agent);
                    let (last, instead) = if was_stopped { (stopped, Vec::new()) } else { (said, stopped) };
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

impl<T: Translate, F: Finish<Heard = T>> Drop for RelayBody<T, F> {
    fn drop(&mut self) {
        if let Step::Running(running) = std::mem::replace(&mut self.step, Step::Ended) {
            let Running { translator, guard, first_ms, .. } = running;
            drop(guard.finish(Some(translator), How::HungUp, first_ms));
        }
    }
}

impl<T: Translate, F: Finish<Heard = T>> std::fmt::Debug for RelayBody<T, F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RelayBody").finish_non_exhaustive()
    }
}
