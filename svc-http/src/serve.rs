//! Connections: accepting, serving, ending them.
//!
//! HTTP/1.1 with keep-alive and HTTP/2 by prior knowledge on one port. How long a connection may hold its place:
//!
//! | While | At most |
//! |---|---|
//! | no request was made yet, or a head is under way | `header_time`, then it is closed without an answer |
//! | a body is under way | `body_time`, then 400 `invalid_request` and it is closed |
//! | a request is worked on, or its answer is a stream | as long as that takes |
//! | nothing happens between requests, or the client does not read | `idle_time`, then it is closed |
//!
//! A client that has sent all it has to say may close its side and is answered all the same (RFC 9293, 3.6), unless what it asked for
//! ends with it ([`EndsWithClient`](crate::dispatch::EndsWithClient)): there nobody can tell whether it is still there.
//!
//! A client may read slowly, as long as it reads on. It does with 4 KiB of answers in `idle_time`, as far as the system tells what it
//! takes: Linux does so often that 128 KiB are always enough. Answers alone count ([`Written`]): no ping and no window keeps a
//! connection. So an answer holds one for as long as it has bytes to take at that pace, and no longer.
//!
//! On HTTP/2 a client that does not read one of several streams, at least a piece of 64 KiB in `idle_time`, loses that one alone, by a
//! reset (`stalled.rs`).
//!
//! Times are looked at every quarter of the shortest, so a connection may last a quarter longer; that costs a request
//! nothing.
//!
//! Past `connections_max` the connection that has waited longest for its client gives its place to a new one (`newcomers.rs`). Where
//! all are at work the new one is answered 503 `not_ready` once it has sent something, and closed.
//!
//! A head over the [limits](crate::headers::head_is_within) is refused like anything else. What is no HTTP at all (a head without
//! an end, chunks that are none), or beyond what hyper reads (over 100 headers on HTTP/1, a path of 64 KiB, a head of some
//! 400 KiB), is refused or cut by hyper, and ends its connection; what hyper says of it is said in the interface's words, counted and
//! logged ([`unread`]). hyper's number of headers is left as it is: with any other it allocates twice for the head of every request. On
//! HTTP/2 a head beyond 160 KiB is answered 431 without a word, which is counted and logged too, and the connection goes on.
//!
//! **Invariant:** no client holds a connection without making progress, and no client makes the server stop accepting by connections on
//! which it asks for nothing.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Either;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use svc_core::refusal::Refusal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};

use crate::answer::Sent;
use crate::dispatch::{Client, Service};
use crate::newcomers::Seats;
use crate::pulse::{Pulse, Verdict, Watch};
use crate::shell::Shell;
use crate::stalled::{Streams, Taking};
use crate::unread;
use crate::written::Written;

/// Streams of one HTTP/2 connection that are worked on at once.
pub(crate) const H2_STREAMS_MAX: u32 = 256;
/// Connections past the limit that are told so at once; further ones are closed without a word.
const TURNED_AWAY_MAX: usize = 64;
/// How long one that is turned away may take to say something.
const TURN_AWAY_TIME: Duration = Duration::from_secs(1);
/// Bytes of a head that are read on HTTP/2, with the protocol's own of each field: more than are taken, so that what is too
/// large is told so. Not as much as on HTTP/1, which has one head at a time: here as many as there are streams may lie ready.
const H2_HEADERS_BYTES_MAX: u32 = 160 * 1024;
/// The largest piece of a whole answer on HTTP/2: so much a client takes at a time at least.
const H2_PIECE_BYTES: usize = 64 * 1024;
/// Bytes that the system holds of what it could not send yet. What it takes is how a client's reading is seen, which with as much as
/// it likes to hold, megabytes for a client that is near, would be for minutes that of nobody.
#[cfg(target_os = "linux")]
const SEND_AHEAD_BYTES: u32 = 64 * 1024;
/// How long a connection that leaves for another may take to say so.
const LEAVE_TIME: Duration = Duration::from_millis(250);
/// How long accepting rests where the system has no more file handles.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A runtime with a fixed number of workers: as many as `workers`, or as there are processors. Commands are decided on
/// a lane's thread, so workers only carry requests; over a store in memory they decide as well.
///
/// # Errors
/// Where the system gives no threads or no event queue.
pub fn runtime(workers: Option<NonZero<usize>>) -> io::Result<Runtime> {
    let workers = workers.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get);
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("svc-http")
        .on_thread_start(svc_store::runs_tasks)
        .on_thread_park(svc_store::about_to_park)
        .enable_io()
        .enable_time()
        .build()
}

/// Serves connections of `listener` until `stop` is done, then drains: no new connections, and whatever is left of the others
/// at the instant that `stop` gives is closed.
pub async fn serve<S: Service>(listener: TcpListener, shell: Arc<Shell<S>>, stop: impl Future<Output = Instant>) {
    let places = shell.settings().connections_max.min(Semaphore::MAX_PERMITS);
    let slots = Arc::new(Semaphore::new(places));
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let (phase, phases) = watch::channel(Phase::Serve);
    let builder = Arc::new(builder(shell.settings().idle_time));
    let serving = Serving { shell, builder, phases, seats: Seats::new() };
    let mut stop = pin!(stop);
    let until = loop {
        let accepted = tokio::select! {
            biased;
            until = &mut stop => break until,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                rest_after(&error).await;
                continue;
            }
        };
        match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => drop(tokio::spawn(connection(stream, peer, serving.clone(), slot))),
            Err(_full) => {
                if let Ok(place) = Arc::clone(&turned_away).try_acquire_owned() {
                    let slots = serving.seats.make_room(Instant::now()).then(|| Arc::clone(&slots));
                    tokio::spawn(newcomer(stream, peer, serving.clone(), slots, place));
                }
            }
        }
    };
    drop(listener);
    drop(serving);
    phase.send_replace(Phase::Drain);
    // Every connection holds a receiver: when the last is gone, all are.
    if timeout_at(until, phase.closed()).await.is_err() {
        phase.send_replace(Phase::Close);
        phase.closed().await;
    }
}

/// What connections are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serve,
    Drain,
    Close,
}

/// What every connection is served with.
struct Serving<S> {
    shell: Arc<Shell<S>>,
    builder: Arc<auto::Builder<Streams>>,
    phases: watch::Receiver<Phase>,
    seats: Arc<Seats>,
}

impl<S> Clone for Serving<S> {
    fn clone(&self) -> Self {
        Self {
            shell: Arc::clone(&self.shell),
            builder: Arc::clone(&self.builder),
            phases: self.phases.clone(),
            seats: Arc::clone(&self.seats),
        }
    }
}

fn builder(patience: Duration) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams { patience });
    // Heads are timed by `Watch`, which needs no timer for each request.
    // Flushing only between pipelined requests would take all of a body at once, however slowly its client reads.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).pipeline_flush(false).half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(H2_HEADERS_BYTES_MAX);
    builder
}

/// Waits a little where accepting failed for want of something; a client that went away costs nothing.
pub(crate) async fn rest_after(error: &io::Error) {
    if matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    ) {
        return;
    }
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_REST).await;
}

/// One connection, from its first byte to its end.
async fn connection<S: Service>(stream: TcpStream, peer: SocketAddr, serving: Serving<S>, slot: OwnedSemaphorePermit) {
    let _slot = slot;
    let Serving { shell, builder, mut phases, seats } = serving;
    let pulse = Arc::new(Pulse::default());
    let seat = seats.enter(Arc::clone(&pulse));
    let mut watch = Watch::new(shell.settings().header_time, shell.settings().idle_time);
    let tick = watch.header_time.min(watch.idle_time) / 4;
    // Each request counts itself on what its own connection owns: on a count that all share, workers would meet.
    let owned = Arc::new(Owned { shell, pulse: Arc::clone(&pulse), peer: peer.ip() });
    let io = TokioIo::new(Metered::new(stream, &pulse, Arc::<Owned<S>>::clone(&owned)));
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let at_work = AtWork::begin(Arc::clone(&owned), request.version() >= http::Version::HTTP_2);
        async move {
            let client = Client { address: at_work.0.peer, ends: at_work.0.pulse.ends.clone() };
            let response = at_work.0.shell.answer(client, request).await;
            Ok::<_, Infallible>(response.map(|body| Working::of(body, at_work)))
        }
    });
    let mut served = pin!(builder.serve_connection(io, service));
    let mut ticks = interval(tick.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draining = false;
    loop {
        tokio::select! {
            biased;
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error = %error, "a connection ended early");
                }
                return;
            }
            _ = phases.changed() => {
                if *phases.borrow_and_update() != Phase::Drain {
                    return;
                }
                draining = true;
                served.as_mut().graceful_shutdown();
            }
            () = seat.asked_to_leave() => {
                // Whoever has asked for something meanwhile stays.
                if watch.waits_since(&pulse).is_some() {
                    draining = true;
                    served.as_mut().graceful_shutdown();
                    if timeout(LEAVE_TIME, served.as_mut()).await.is_ok() || pulse.waits() {
                        return;
                    }
                }
            }
            now = ticks.tick() => {
                match watch.look(&pulse, now) {
                    Verdict::Keep => {}
                    Verdict::Wind if !draining => {
                        draining = true;
                        served.as_mut().graceful_shutdown();
                    }
                    Verdict::Wind | Verdict::Close => return,
                }
                seat.note(watch.waits_since(&pulse));
            }
        }
    }
}

/// A connection past the limit: served where a place is given up for it, which is then one of these slots, else turned away.
async fn newcomer<S: Service>(
    stream: TcpStream,
    peer: SocketAddr,
    serving: Serving<S>,
    slots: Option<Arc<Semaphore>>,
    place: OwnedSemaphorePermit,
) {
    let slot = match slots {
        Some(slots) => timeout(TURN_AWAY_TIME, slots.acquire_owned()).await.ok().and_then(Result::ok),
        None => None,
    };
    match slot {
        Some(slot) => {
            drop(place);
            connection(stream, peer, serving, slot).await;
        }
        None => {
            let shell = Arc::clone(&serving.shell);
            // It is none that the end of the server waits for.
            drop(serving);
            turn_away(stream, shell, place).await;
        }
    }
}

/// Tells a client that there is no place, as soon as it has said something: an answer to a client that is still
/// sending could be lost with the connection.
async fn turn_away<S: Service>(mut stream: TcpStream, shell: Arc<Shell<S>>, place: OwnedSemaphorePermit) {
    let _place = place;
    let told = async {
        let mut said = [0; 4096];
        if stream.read(&mut said).await? == 0 {
            return Ok(());
        }
        stream.write_all(&unread::close(&shell, &Refusal::not_ready())).await?;
        stream.shutdown().await
    };
    // Whether it heard is its own affair.
    let _ = timeout(TURN_AWAY_TIME, told).await;
}

/// What the requests of one connection share.
struct Owned<S> {
    shell: Arc<Shell<S>>,
    pulse: Arc<Pulse>,
    peer: IpAddr,
}

/// Answers what hyper could not read, and has it counted.
trait Unread: Send + Sync {
    /// The whole answer, which ends the connection.
    fn close(&self, refusal: &Refusal) -> Vec<u8>;

    /// That a request of HTTP/2 was answered with a status alone, since its headers were too large.
    fn answered_bare(&self);
}

impl<S: Service> Unread for Owned<S> {
    fn close(&self, refusal: &Refusal) -> Vec<u8> {
        unread::close(&self.shell, refusal)
    }

    fn answered_bare(&self) {
        drop(unread::note(&self.shell, &Refusal::headers_too_large(None)));
    }
}

/// A request that is worked on, until it is dropped.
struct AtWork<S>(Arc<Owned<S>>);

impl<S> AtWork<S> {
    fn begin(owned: Arc<Owned<S>>, h2: bool) -> Self {
        owned.pulse.begun.fetch_add(1, Ordering::Relaxed);
        owned.pulse.heard.store(false, Ordering::Relaxed);
        if h2 {
            owned.pulse.h2.store(true, Ordering::Relaxed);
        }
        owned.pulse.ends.set(false);
        Self(owned)
    }
}

impl<S> Drop for AtWork<S> {
    fn drop(&mut self) {
        self.0.pulse.ends.set(false);
        self.0.pulse.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// An answer's body. A request whose answer is a stream is worked on until the stream has ended.
struct Working<S> {
    body: Sent,
    /// What is left of a whole answer that is given in pieces.
    left: Bytes,
    /// What the client takes of it, on HTTP/2.
    taking: Option<Arc<Taking>>,
    at_work: Option<AtWork<S>>,
    owned: Arc<Owned<S>>,
    /// Whether the last piece was given and nothing was asked for since: the client has to take what it was sent.
    full: bool,
}

impl<S> Working<S> {
    fn of(body: Sent, at_work: AtWork<S>) -> Self {
        let is_stream = matches!(body, Either::Right(_));
        at_work.0.pulse.ends.set(is_stream);
        at_work.0.pulse.bodies.fetch_add(1, Ordering::Relaxed);
        let owned = Arc::clone(&at_work.0);
        let at_work = is_stream.then_some(at_work);
        Self { body, left: Bytes::new(), taking: Taking::of_this_task(), at_work, owned, full: false }
    }

    /// The next piece. On HTTP/2 a whole answer comes in pieces, as what was given at once would be out of reach while it waits
    /// for its client; of a large one the last byte comes by itself, so that nothing of note is left to wait behind it.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, <Sent as Body>::Error>>> {
        if self.left.is_empty() {
            let mut frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            let whole = frame.data_mut().filter(|_| self.taking.is_some() && matches!(self.body, Either::Left(_)));
            match whole {
                Some(whole) if whole.len() > H2_PIECE_BYTES => self.left = std::mem::take(whole),
                Some(_) | None => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let length = H2_PIECE_BYTES.min(self.left.len().saturating_sub(1)).max(1);
        Poll::Ready(Some(Ok(Frame::data(self.left.split_to(length)))))
    }

    fn set_full(&mut self, full: bool) {
        if let Some(AtWork(owned)) = self.at_work.as_ref().filter(|_| self.full != full) {
            self.full = full;
            if full {
                owned.pulse.full.fetch_add(1, Ordering::Relaxed);
            } else {
                owned.pulse.full.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl<S> Body for Working<S> {
    type Data = Bytes;
    type Error = <Sent as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = self.poll_piece(context);
        if let Some(taking) = &self.taking {
            if polled.is_ready() { taking.give() } else { taking.rest() }
        }
        if let Some(AtWork(owned)) = &self.at_work {
            match &polled {
                Poll::Pending => self.set_full(false),
                Poll::Ready(_) => {
                    owned.pulse.given.fetch_add(1, Ordering::Relaxed);
                    self.set_full(true);
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.left.is_empty() { self.body.size_hint() } else { SizeHint::with_exact(self.left.len() as u64) }
    }
}

impl<S> Drop for Working<S> {
    fn drop(&mut self) {
        self.set_full(false);
        self.owned.pulse.bodies.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A socket that tells its [`Pulse`] when it hears something and what it has sent, and says in the interface's words what hyper
/// says by itself.
struct Metered {
    stream: TcpStream,
    pulse: Arc<Pulse>,
    unread: Arc<dyn Unread>,
    written: Written,
    /// What is left to be written in the place of what hyper wrote: its last word.
    instead: Vec<u8>,
}

impl Metered {
    fn new(stream: TcpStream, pulse: &Arc<Pulse>, unread: Arc<dyn Unread>) -> Self {
        // Answers are whole when they are written, so there is nothing to gather.
        let _ = stream.set_nodelay(true);
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(SEND_AHEAD_BYTES);
        Self { stream, pulse: Arc::clone(pulse), unread, written: Written::default(), instead: Vec::new() }
    }

    /// Whether what is written is hyper's own answer to what is no head, and something else is written in its place. Where a
    /// request is worked on, it is that one's answer.
    fn takes_over(&mut self, written: &[u8]) -> bool {
        let Some(refusal) = unread::in_place_of(written) else { return false };
        let pulse = &self.pulse;
        let is_answer = pulse.begun.load(Ordering::Relaxed) != pulse.ended.load(Ordering::Relaxed);
        if is_answer || pulse.h2.load(Ordering::Relaxed) {
            return false;
        }
        self.instead = self.unread.close(&refusal);
        true
    }

    /// Writes what is left of that.
    fn poll_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.instead))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.instead.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// So many bytes of these were written.
    fn count<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>, length: usize) {
        let (mut left, mut of_answers) = (length, 0_usize);
        for piece in pieces {
            let (written, _) = piece.split_at(left.min(piece.len()));
            left = left.saturating_sub(written.len());
            of_answers = of_answers.saturating_add(self.written.add(written));
        }
        self.pulse.written.fetch_add(of_answers as u64, Ordering::Relaxed);
        for _ in 0..self.written.take_bare() {
            self.unread.answered_bare();
        }
    }

    /// Fails once the client has closed its side while what it asked for ends with it. hyper reads nothing meanwhile; what has come
    /// already of the next request hides the end, which the next write finds.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.pulse.ends.get() || self.pulse.h2.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.stream.poll_peek(context, &mut ReadBuf::new(&mut [0])) {
            Poll::Ready(Ok(0)) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(_)) | Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        self.pulse.hear(into.filled().get(before..).unwrap_or_default());
        read
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        if self.takes_over(from) {
            return Poll::Ready(Ok(from.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.pulse.stuck.store(written.is_pending(), Ordering::Relaxed);
        let length = ready!(written)?;
        self.count([from], length);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(context))?;
        self.poll_gone(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [first, rest @ ..] = from
            && rest.iter().all(|it| it.is_empty())
            && self.takes_over(first)
        {
            return Poll::Ready(Ok(first.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.pulse.stuck.store(written.is_pending(), Ordering::Relaxed);
        let length = ready!(written)?;
        self.count(from.iter().map(|it| &**it), length);
        Poll::Ready(Ok(length))
    }
}
