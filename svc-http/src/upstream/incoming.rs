//! The body of an answer as it comes.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::address::Origin;
use super::connection::Connection;
use super::failed::Reason;
use super::framing::{Framing, Head};
use super::pool::Pool;
use super::{Times, Upstreams};

/// How long is waited for the end of a body whose last word was heard already.
const LAST_TIME: Duration = Duration::from_secs(1);
/// Bytes of it that are read.
const LAST_BYTES_MAX: usize = 64 * 1024;

/// A body that is being read. Dropped before its end, it closes the connection.
pub struct Incoming {
    /// Until the body has ended.
    connection: Option<Connection>,
    framing: Framing,
    keep: bool,
    origin: Arc<Origin>,
    pool: Arc<Pool>,
    /// Bytes of the body that were read ahead.
    ahead: Vec<u8>,
    pub(super) times: Times,
    pub(super) started: Instant,
    pub(super) status: u16,
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Incoming").field("framing", &self.framing).finish_non_exhaustive()
    }
}

impl Incoming {
    pub(super) fn new(
        connection: Connection,
        head: &Head,
        upstreams: &Upstreams,
        origin: &Arc<Origin>,
        times: Times,
        started: Instant,
    ) -> Self {
        let mut incoming = Self {
            connection: Some(connection),
            framing: head.framing.clone(),
            keep: head.keep,
            origin: Arc::clone(origin),
            pool: Arc::clone(&upstreams.0.pool),
            ahead: Vec::new(),
            times,
            started,
            status: head.status,
        };
        incoming.keep_if_ended();
        incoming
    }

    /// Waits for the first bytes.
    ///
    /// # Errors
    /// There are none.
    pub(super) async fn begin(&mut self) -> Result<(), Reason> {
        let mut ahead = Vec::new();
        while ahead.is_empty() {
            if !poll_fn(|context| self.poll_take(context, &mut |bytes| ahead.extend_from_slice(bytes))).await? {
                return Err(Reason::Empty);
            }
        }
        self.ahead = ahead;
        Ok(())
    }

    /// Reads all of it, `bytes_max` at most, with no pause longer than `idle` once it has begun: how long its first byte is waited
    /// for is the caller's to say, as a head may come long before the answer is made.
    ///
    /// # Errors
    /// It breaks off, is too long, or comes to a halt.
    pub(super) async fn read(&mut self, bytes_max: usize, idle: Duration) -> Result<Vec<u8>, Reason> {
        self.read_counting(bytes_max, idle, &AtomicU64::new(0)).await
    }

    /// The same, which raises `received` to the bytes that have come: for whoever is left with a part of it.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub(super) async fn read_counting(
        &mut self,
        bytes_max: usize,
        idle: Duration,
        received: &AtomicU64,
    ) -> Result<Vec<u8>, Reason> {
        let room = match self.framing {
            Framing::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Framing::Chunked(_) | Framing::UntilClosed | Framing::Ended => 0,
        };
        if room > bytes_max {
            return Err(Reason::TooLarge);
        }
        // What is promised is not given before it is there.
        let mut all = Vec::with_capacity(room.min(LAST_BYTES_MAX));
        let mut last = None;
        loop {
            let mut sink = |bytes: &[u8]| {
                all.extend_from_slice(bytes);
                received.fetch_max(all.len().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
            };
            let more = poll_fn(|context| self.poll_take(context, &mut sink));
            let more = match last {
                Some(last) => timeout_at(last + idle, more).await.map_err(|_| Reason::Idle)??,
                None => more.await?,
            };
            if !more {
                return Ok(all);
            }
            if all.len() > bytes_max {
                return Err(Reason::TooLarge);
            }
            last = (!all.is_empty()).then(Instant::now);
        }
    }

    /// Hands what is there to `sink`; whether there may be more.
    pub(super) fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut impl FnMut(&[u8]),
    ) -> Poll<Result<bool, Reason>> {
        if !self.ahead.is_empty() {
            sink(&std::mem::take(&mut self.ahead));
            return Poll::Ready(Ok(true));
        }
        let Some(connection) = &mut self.connection else { return Poll::Ready(Ok(false)) };
        let (framing, mut fault, mut keep) = (&mut self.framing, None, self.keep);
        let read = ready!(connection.poll_take(context, &mut |bytes| match framing.take(bytes, sink) {
            // Whoever says more than they said they would is not asked again.
            Ok(taken) => keep &= taken == bytes.len(),
            Err(reason) => fault = Some(reason),
        }));
        self.keep = keep;
        if let Some(reason) = fault {
            self.connection = None;
            return Poll::Ready(Err(reason));
        }
        if matches!(read, Ok(0) | Err(_)) {
            self.connection = None;
            let is_whole = matches!(read, Ok(0)) && self.framing == Framing::UntilClosed;
            return Poll::Ready(if is_whole { Ok(false) } else { Err(Reason::Closed) });
        }
        self.keep_if_ended();
        Poll::Ready(Ok(true))
    }

    /// Once the body has ended its connection is free.
    fn keep_if_ended(&mut self) {
        if self.framing.has_ended()
            && let Some(connection) = self.connection.take()
            && self.keep
        {
            self.pool.put(&self.origin, connection);
        }
    }

    /// The last word was heard: what is left is read aside, so that the connection can be used again.
    pub(super) fn finish(mut self) {
        if self.connection.is_none() || !self.keep {
            return;
        }
        tokio::spawn(async move {
            let mut left = LAST_BYTES_MAX;
            let rest = async {
                let mut count = |bytes: &[u8]| left = left.saturating_sub(bytes.len());
                while let Ok(true) = poll_fn(|context| self.poll_take(context, &mut count)).await {}
            };
            // Time is the limit here: what is read is thrown away.
            let _ = timeout(LAST_TIME, rest).await;
        });
    }
}
