//! What came of a call is told exactly once, whatever happens to whoever waited for it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Upstreams;
use super::failed::Reason;
use super::switch::Stop;
use crate::at_hand::{self, AtHand};

/// Who is told what came of a call.
pub trait Finish: Send + 'static {
    /// What was heard of the answer.
    type Heard: Send + 'static;

    /// Takes note that the first token of a stream has come, so many milliseconds after it was asked for: as it comes, as the rest may
    /// take long.
    fn first_token(&mut self, _ms: u64) {}

    /// Keeps what came of the call, and tells what it came to where that is known. `heard` is there once an answer had begun. It
    /// is called once, and what it gives runs to its end even if nobody waits for it.
    fn finish(self, heard: Option<Self::Heard>, ended: Ended)
    -> impl Future<Output = Option<Charged>> + Send + 'static;
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// Its cost in micros.
    pub cost: u64,
    /// Whether something that it used has no price.
    pub unpriced: bool,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub how: How,
    /// From the call to the first token of the answer, in milliseconds; `None` where none came.
    pub first_ms: Option<u64>,
    /// From the call to its end, in milliseconds.
    pub ms: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With the end of its answer.
    Done,
    /// The client went away.
    HungUp,
    /// The upstream broke off, or was too slow.
    Cut(Reason),
    /// It was cut from here: [`super::Switch::cut`].
    Stopped(Stop),
}

/// Holds on to who is to be told; dropped, it tells that the client hung up.
pub struct Guard<F: Finish> {
    sink: Option<F>,
    upstreams: Upstreams,
    started: Instant,
    /// The request that brought it, which may be answered by the time that it ends.
    at_hand: Option<AtHand>,
}

impl<F: Finish> Guard<F> {
    /// Holds on to `sink` from now on; times are counted from here.
    #[must_use]
    pub fn new(upstreams: &Upstreams, sink: F) -> Self {
        Self { sink: Some(sink), upstreams: upstreams.clone(), started: Instant::now(), at_hand: AtHand::now() }
    }

    /// Who is told; nothing once it was.
    pub const fn sink(&mut self) -> Option<&mut F> {
        self.sink.as_mut()
    }

    /// Tells what came of the call.
    #[must_use]
    pub fn finish(mut self, heard: Option<F::Heard>, how: How, first_ms: Option<u64>) -> Outlive<Option<Charged>> {
        let sink = self.sink.take();
        let ended = Ended { how, first_ms, ms: millis(self.started) };
        self.upstreams.outlive(at_hand::carried_by(self.at_hand.take(), async move {
            match sink {
                Some(sink) => sink.finish(heard, ended).await,
                None => None,
            }
        }))
    }

    /// Lets go of it without a word: somebody else tells.
    pub fn release(mut self) -> Option<F> {
        self.sink.take()
    }
}

impl<F: Finish> Drop for Guard<F> {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            let ended = Ended { how: How::HungUp, first_ms: None, ms: millis(self.started) };
            drop(self.upstreams.outlive(at_hand::carried_by(self.at_hand.take(), sink.finish(None, ended))));
        }
    }
}

impl<F: Finish> std::fmt::Debug for Guard<F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Guard").finish_non_exhaustive()
    }
}

/// Milliseconds since then.
pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A future that runs to its end even if it is dropped before.
pub struct Outlive<T: Send + 'static> {
    inner: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    counted: Option<Counted>,
}

impl<T: Send + 'static> Outlive<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static, counted: Counted) -> Self {
        Self { inner: Some(Box::pin(at_hand::carried(future))), counted: Some(counted) }
    }
}

impl<T: Send + 'static> Future for Outlive<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(inner) = &mut self.inner else { return Poll::Pending };
        let done = std::task::ready!(inner.as_mut().poll(context));
        self.inner = None;
        self.counted = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Outlive<T> {
    fn drop(&mut self) {
        let (Some(inner), counted) = (self.inner.take(), self.counted.take()) else { return };
        // Without a runtime the process is ending.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                inner.await;
                drop(counted);
            });
        }
    }
}

impl<T: Send + 'static> std::fmt::Debug for Outlive<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Outlive").finish_non_exhaustive()
    }
}

/// One of what has to run to its end, until it is dropped.
pub(super) struct Counted(watch::Sender<usize>);

impl Counted {
    pub(super) fn of(running: &watch::Sender<usize>) -> Self {
        running.send_modify(|it| *it += 1);
        Self(running.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|it| *it -= 1);
    }
}
