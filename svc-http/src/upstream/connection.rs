//! One connection to a provider: a request is written and the head of its answer read, then its body as it comes.
//!
//! It is driven by whoever waits for the answer, without a task of its own: what an upstream has sent is read in one go and
//! handed on in one go. A client library that hands over chunk by chunk costs a wake-up and a write for each of them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use svc_core::value::secret::Secret;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use super::failed::Reason;
use super::framing::{self, Head};
use super::pool::Lent;
use crate::outbound::dial::Io;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of a request that are put behind its head, so that both are written at once.
const TOGETHER_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// What is read goes through here, so that a connection that waits holds no buffer.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A connection, and its place among those that may be open.
pub(super) struct Connection {
    io: Io,
    /// What was read behind the head of an answer.
    rest: Vec<u8>,
    /// Whether it was asked before.
    pub(super) was_used: bool,
    /// The place of the call that it is used for.
    pub(super) lent: Option<Lent>,
    _place: OwnedSemaphorePermit,
}

/// Why there is no head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) reason: Reason,
    /// Whether a byte of the answer came.
    pub(super) was_answered: bool,
}

impl Broken {
    /// Whether the connection was closed before a byte of the answer.
    pub(super) fn is_unheard(&self) -> bool {
        !self.was_answered && self.reason == Reason::Closed
    }
}

impl Connection {
    pub(super) const fn new(io: Io, place: OwnedSemaphorePermit) -> Self {
        Self { io, rest: Vec::new(), was_used: false, lent: None, _place: place }
    }

    /// Whether it is open and silent, as one that waits for a request has to be.
    pub(super) fn is_idle(&mut self) -> bool {
        let mut byte = [0; 1];
        let mut into = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(Waker::noop());
        self.rest.is_empty() && Pin::new(&mut self.io).poll_read(&mut context, &mut into).is_pending()
    }

    /// Writes a request and reads the head of the answer, which may come before the request is written. `sent` is set once
    /// a byte has left.
    ///
    /// # Errors
    /// [`Broken`] where the connection ended, or what came is no HTTP.
    pub(super) async fn exchange(&mut self, head: &[u8], body: &[u8], sent: &AtomicBool) -> Result<Head, Broken> {
        let joined;
        let (first, second) = if body.len() <= TOGETHER_BYTES_MAX {
            joined = Secret::new([head, body].concat());
            (joined.expose().as_slice(), &[][..])
        } else {
            (head, body)
        };
        let mut writing = Writing { parts: [first, second], at: 0, is_done: false };
        let mut heard = Vec::new();
        let head = poll_fn(|context| {
            let broken = |reason, heard: &[u8]| Broken { reason, was_answered: !heard.is_empty() };
            let written = writing.poll(&mut self.io, context, sent);
            loop {
                match self.poll_read(context, &mut |bytes| heard.extend_from_slice(bytes)) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(broken(Reason::Closed, &heard))),
                    Poll::Ready(Ok(_)) => match framing::head(&heard) {
                        Ok(Some((head, length))) => {
                            self.rest = heard.split_off(length);
                            return Poll::Ready(Ok(head));
                        }
                        Ok(None) => {}
                        Err(reason) => return Poll::Ready(Err(broken(reason, &heard))),
                    },
                    // What could not be written will not be answered.
                    Poll::Pending if matches!(written, Poll::Ready(Err(_))) => {
                        return Poll::Ready(Err(broken(Reason::Closed, &heard)));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await?;
        self.was_used = true;
        // Whoever answers before the question is heard does not hear the rest of it as such.
        let keep = head.keep && writing.is_done;
        Ok(Head { keep, ..head })
    }

    /// Reads what is there and hands it to `sink`; how much it was, nothing at the end.
    pub(super) fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        sink: &mut impl FnMut(&[u8]),
    ) -> Poll<io::Result<usize>> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            sink(&rest);
            return Poll::Ready(Ok(rest.len()));
        }
        self.poll_read(context, sink)
    }

    fn poll_read(&mut self, context: &mut Context<'_>, sink: &mut impl FnMut(&[u8])) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut into = ReadBuf::new(scratch);
            ready!(Pin::new(&mut self.io).poll_read(context, &mut into))?;
            sink(into.filled());
            Poll::Ready(Ok(into.filled().len()))
        })
    }
}

/// A request that is being written.
struct Writing<'a> {
    parts: [&'a [u8]; 2],
    at: usize,
    is_done: bool,
}

impl Writing<'_> {
    fn poll(&mut self, io: &mut Io, context: &mut Context<'_>, sent: &AtomicBool) -> Poll<io::Result<()>> {
        if self.is_done {
            return Poll::Ready(Ok(()));
        }
        while let Some(part) = self.parts.get_mut(self.at) {
            if part.is_empty() {
                self.at += 1;
                continue;
            }
            let written = ready!(Pin::new(&mut *io).poll_write(context, part))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            sent.store(true, Ordering::Relaxed);
            *part = part.get(written..).unwrap_or_default();
        }
        ready!(Pin::new(io).poll_flush(context))?;
        self.is_done = true;
        Poll::Ready(Ok(()))
    }
}
