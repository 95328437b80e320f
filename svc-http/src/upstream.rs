//! Calling providers of models.
//!
//! [`Upstreams`] is this server's one caller of all of them. A call goes to a [`Target`] and comes back as a [`Reply`], whole
//! or as a stream that has begun, or as [`Failed`], which says what went wrong and whether anything was sent. A stream is
//! handed to the client by a [`Relay`]; a [`Guard`] sees to it that what came of the call is told once, whatever happens.
//!
//! The order: [`Guard::new`] when the call is admitted, [`Upstreams::send`] for each attempt, then for a whole answer
//! [`Guard::finish`], for a stream [`Relay::begin`] (up to whose end another attempt can still be made) and
//! [`Begun::into_body`]. A whole answer that is to be read even if its client goes away is awaited within
//! [`Upstreams::outlive`].
//!
//! The connections are plain HTTP/1.1 with keep-alive, driven by whoever waits for the answer (`connection.rs` says why).
//!
//! **Invariant:** no byte goes to an address that was not judged; no redirect is followed and no proxy asked.
//! **Invariant:** a key is in no error and in no log; of an address there is at most the host.

mod address;
mod connection;
mod failed;
pub mod framing;
mod guard;
mod in_place;
mod incoming;
mod pool;
mod post;
mod relay;
mod switch;
mod target;
mod translate;
mod watched;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use svc_core::dialect::Unreadable;
use svc_core::state::edge::outbound::Outbound;
use svc_core::state::gateway::ModelTimeouts;
use svc_core::value::Invalid;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

pub use self::address::Allowed;
use self::address::{Base, Origin};
use self::connection::{Broken, Connection};
pub(crate) use self::failed::Fault;
pub use self::failed::{Failed, Reason, Said};
use self::framing::{Framing, HEAD_BYTES_MAX, Head};
pub use self::framing::{Named, Type};
pub use self::guard::{Charged, Ended, Finish, Guard, How, Outlive};
use self::guard::{Counted, millis};
pub use self::incoming::Incoming;
use self::pool::Pool;
pub(crate) use self::post::Held;
pub use self::post::{Endpoint, Posted};
pub use self::relay::{Begun, COST_TRAILER, Relay, RelayBody, Stoppable, Translate};
pub use self::switch::{Stop, Switch, Switches};
pub use self::target::{Call, Credentials, Target, What, is_credential, is_own_header};
use crate::outbound::dial::{Dial, DialError, Place};
use crate::outbound::{Asker, Resolve, Trust};

/// Bytes of a whole answer that are read.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// A kept connection that ends so soon after a request was sent on it ended before: nobody worked on the request.
const CLOSED_AT_ONCE: Duration = Duration::from_secs(1);
/// How long is waited for what an upstream says of an error.
const ERROR_TIME: Duration = Duration::from_secs(5);

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Until the first bytes of a stream.
    pub first_token: Duration,
    /// Between bytes of an answer that has begun.
    pub idle: Duration,
    /// For all of it.
    pub total: Duration,
}

impl Times {
    /// These, but for what an upstream has of its own.
    #[must_use]
    pub fn with(self, own: &ModelTimeouts) -> Self {
        let or = |own: Option<u64>, else_: Duration| own.map_or(else_, Duration::from_millis);
        Self {
            first_token: or(own.first_token_ms, self.first_token),
            idle: or(own.idle_ms, self.idle),
            total: or(own.total_ms, self.total),
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            first_token: Duration::from_millis(120_000),
            idle: Duration::from_millis(60_000),
            total: Duration::from_millis(900_000),
        }
    }
}

/// Calls providers. Clones are the same caller.
#[derive(Clone, Debug)]
pub struct Upstreams(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dial: Dial,
    /// What judges addresses: hosts that the operator named may be private ones.
    guard: Outbound,
    times: Times,
    pool: Arc<Pool>,
    /// How many futures have to run to their end.
    outliving: watch::Sender<usize>,
}

/// An answer.
#[derive(Debug)]
pub enum Reply {
    /// All of it.
    Whole(Whole),
    /// A stream whose first bytes are there.
    Stream(Box<Incoming>),
}

/// A whole answer: a JSON object, as far as its first byte says so.
#[derive(Debug)]
pub struct Whole {
    /// Its status, from 200 to 299.
    pub status: u16,
    /// Its text.
    pub body: Bytes,
    /// From the call to its head, in milliseconds.
    pub first_ms: u64,
    /// From the call to its end, in milliseconds.
    pub ms: u64,
}

impl Whole {
    /// What came of the call where its text is no answer, which `why` says.
    #[must_use]
    pub fn failed(&self, target: &Target, why: &Unreadable) -> Failed {
        let failed = in_place::failed(target, &self.body, why);
        Failed { status: Some(self.status), ms: self.ms, was_sent: true, ..failed }
    }
}

impl Upstreams {
    /// A caller that never calls this server, which listens on `own` and is called `own_host`.
    #[must_use]
    pub fn new(
        allowed: &Allowed,
        times: Times,
        own_host: &str,
        own: Option<SocketAddr>,
        resolver: Arc<dyn Resolve>,
        trust: Trust,
    ) -> Self {
        let dial = Dial::new(own, resolver, trust);
        let (pool, outliving) = (Pool::new(), watch::Sender::default());
        Self(Arc::new(Inner { dial, guard: allowed.guard(own_host), times, pool, outliving }))
    }

    /// Asks another resolver from now on.
    pub fn resolve_with(&self, resolver: Arc<dyn Resolve>) {
        self.0.dial.resolve_with(resolver);
    }

    /// The times of calls to upstreams that have none of their own.
    #[must_use]
    pub fn times(&self) -> Times {
        self.0.times
    }

    /// Judges the base address of an upstream as far as its text goes; the addresses of its host are judged at every
    /// connection.
    ///
    /// # Errors
    /// [`Invalid`] says what is wrong with it.
    pub fn judge(&self, base_url: &str) -> Result<(), Invalid> {
        self.base(base_url).map(drop)
    }

    /// Whether a call to this base address may go to `address`, which its host has: asked of every one at every connection.
    #[must_use]
    pub fn may_reach(&self, base_url: &str, address: IpAddr) -> bool {
        self.base(base_url).is_ok_and(|it| {
            let place = SocketAddr::new(address, it.origin.port);
            self.0.guard.is_allowed(&it.origin.host, address) && !self.0.dial.is_own(place)
        })
    }

    fn base(&self, base_url: &str) -> Result<Base, Invalid> {
        Base::parse(base_url, &self.0.guard)
    }

    /// Runs `future` to its end, even if what is given is dropped before.
    pub fn outlive<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Outlive<T> {
        Outlive::new(future, Counted::of(&self.0.outliving))
    }

    /// Waits until all that has to run to its end has done so.
    pub async fn settled(&self) {
        // The sender is this one's own, so it is there.
        let _ = self.0.outliving.subscribe().wait_for(|it| *it == 0).await;
    }

    /// Makes one call. Where a kept connection is closed at once, before a byte of the answer, it was most likely closed while
    /// the request was on its way, which nobody looked at: it is sent once more, on a new connection, and the call's times hold
    /// for both together. Dropped, it ends the call.
    ///
    /// # Errors
    /// [`Failed`]: no answer, none in time, or one that is none.
    pub async fn send(&self, target: &Target, call: &Call<'_>) -> Result<Reply, Failed> {
        self.send_telling(target, call, &AtomicBool::new(false)).await
    }

    /// The same, which sets `left` once a byte of the request has: for whoever may give it up.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn send_telling(&self, target: &Target, call: &Call<'_>, left: &AtomicBool) -> Result<Reply, Failed> {
        let started = Instant::now();
        let attempt = Attempt::new(started, left);
        let total = started + target.times.total;
        let (until, late) = if call.stream {
            (total.min(started + target.times.first_token), Reason::FirstToken)
        } else {
            (total, Reason::Total)
        };
        let replied = timeout_at(until, self.attempts(target, call, &attempt)).await;
        replied.unwrap_or_else(|_| Err(Failed::new(late))).map_err(|failed| attempt.failed(failed))
    }

    /// Sends a request until the head of an answer is there: once more where a kept connection was closed before. Whoever held
    /// it open for longer may have worked on the request, and would do so twice.
    async fn headed(
        &self,
        target: &Target,
        call: &Call<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(Connection, Head), Failed> {
        let request = target.request(call).ok_or(Failed::new(Reason::Address))?;
        let asker = target.whose.map_or(Asker::Server, |(workspace, _)| Asker::Workspace(workspace));
        let lent = match target.whose {
            Some(whose) => Some(self.0.pool.lend(whose).ok_or(Failed::new(Reason::Busy))?),
            None => None,
        };
        let mut connection = self.connect(&target.origin, asker).await.map_err(Failed::new)?;
        let asked = Instant::now();
        let mut exchanged = connection.exchange(request.expose(), &call.body, attempt.left).await;
        let at_once = asked.elapsed() < CLOSED_AT_ONCE;
        if connection.was_used && at_once && exchanged.as_ref().is_err_and(Broken::is_unheard) {
            // It holds a place that the new one may need.
            drop(connection);
            connection = self.dial(&target.origin, asker).await.map_err(Failed::new)?;
            exchanged = connection.exchange(request.expose(), &call.body, attempt.left).await;
        }
        connection.lent = lent;
        exchanged.map(|head| (connection, head)).map_err(|broken| Failed::new(broken.reason))
    }

    async fn attempts(&self, target: &Target, call: &Call<'_>, attempt: &Attempt<'_>) -> Result<Reply, Failed> {
        let (connection, head) = self.headed(target, call, attempt).await?;
        attempt.status.store(head.status, Ordering::Relaxed);
        let mut incoming = Incoming::new(connection, &head, self, &target.origin, target.times, attempt.started);
        match head.status {
            200..=299 => {}
            300..=399 => return Err(status(Reason::Redirect, &head)),
            _ => {
                let mut failed = status(Reason::Status, &head);
                if !head.packed {
                    // What is said of the error is told where it can be read.
                    let body = timeout(ERROR_TIME, incoming.read(HEAD_BYTES_MAX, ERROR_TIME)).await;
                    failed.said = body.ok().and_then(Result::ok).map(|it| target.said(&it)).unwrap_or_default();
                }
                return Err(failed);
            }
        }
        let wanted = if call.stream { Type::Events } else { Type::Json };
        if head.framing == Framing::Ended {
            return Err(status(Reason::Empty, &head));
        }
        attempt.promised(&head);
        if head.packed || head.content_type != wanted {
            return Err(in_place::read(&mut incoming, &head, target, &attempt.received).await);
        }
        if call.stream {
            incoming.begin().await.map_err(|reason| status(reason, &head))?;
            return Ok(Reply::Stream(Box::new(incoming)));
        }
        let first_ms = millis(attempt.started);
        let read = incoming.read_counting(ANSWER_BYTES_MAX, target.times.idle, &attempt.received).await;
        let body = read.map_err(|reason| status(reason, &head))?;
        if in_place::is_page(&body) {
            attempt.received.store(0, Ordering::Relaxed);
        }
        match body.iter().find(|it| !it.is_ascii_whitespace()) {
            Some(b'{') => {}
            Some(_) => return Err(status(Reason::Unreadable, &head)),
            None => return Err(status(Reason::Empty, &head)),
        }
        Ok(Reply::Whole(Whole { status: head.status, body: body.into(), first_ms, ms: millis(attempt.started) }))
    }

    /// A connection that waits, or a new one.
    async fn connect(&self, origin: &Origin, asker: Asker) -> Result<Connection, Reason> {
        if let Some(waiting) = self.0.pool.take(origin) {
            return Ok(waiting);
        }
        self.dial(origin, asker).await
    }

    /// A new connection.
    async fn dial(&self, origin: &Origin, asker: Asker) -> Result<Connection, Reason> {
        let guard = &self.0.guard;
        let may = |ip| guard.is_allowed(&origin.host, ip);
        let here = guard.may_be_private(&origin.host);
        let place = Place { host: &origin.host, asker, port: origin.port, tls: origin.tls, may: &may, here };
        let slot = self.0.pool.place().ok_or(Reason::Busy)?;
        let io = self.0.dial.dial(&place).await.map_err(|error| match error {
            DialError::Resolve => Reason::Resolve,
            DialError::Address => Reason::Refused,
            DialError::Connect => Reason::Connect,
            DialError::Tls => Reason::Tls,
        })?;
        Ok(Connection::new(io, slot))
    }
}

/// What is known of a call while it runs, also to whoever gives it up.
struct Attempt<'a> {
    started: Instant,
    /// Whether a byte of the request has left.
    left: &'a AtomicBool,
    /// The status of the answer, 0 before its head has come.
    status: AtomicU16,
    /// About how many bytes the answer has, as far as its head tells or it has come.
    received: AtomicU64,
}

impl<'a> Attempt<'a> {
    const fn new(started: Instant, left: &'a AtomicBool) -> Self {
        Self { started, left, status: AtomicU16::new(0), received: AtomicU64::new(0) }
    }

    /// The head of an answer is there: a whole one was made before its length was told. Of a stream the most is no text.
    fn promised(&self, head: &Head) {
        if let (Framing::Length(length), Type::Json | Type::Other) = (&head.framing, head.content_type) {
            self.received.store(*length, Ordering::Relaxed);
        }
    }

    fn failed(&self, failed: Failed) -> Failed {
        let answered = Some(self.status.load(Ordering::Relaxed)).filter(|it| *it > 0);
        let (status, was_sent) = (failed.status.or(answered), self.left.load(Ordering::Relaxed));
        // Who says no has made nothing, or says what.
        let is_none = failed.status.is_some_and(|it| it >= 300) || failed.reason == Reason::Told;
        let received = if is_none { 0 } else { failed.received.max(self.received.load(Ordering::Relaxed)) };
        Failed { status, was_sent, received, ms: millis(self.started), ..failed }
    }
}

fn status(reason: Reason, head: &Head) -> Failed {
    Failed { status: Some(head.status), retry_after_s: head.retry_after_s, ..Failed::new(reason) }
}

#[cfg(test)]
mod tests;
