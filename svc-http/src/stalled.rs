//! Streams of an HTTP/2 connection, each with its own patience.
//!
//! A client that does not take what it is sent holds up that stream alone: the others of its connection have windows of their
//! own. So the stream alone ends, by a reset, once it has given nothing for as long as its client may take. A stream that has
//! nothing to give waits for nobody, and one that is worked on does not wait for its client.
//!
//! **Invariant:** a stream costs no timer while its client takes what comes.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::{Instant, Sleep, sleep};

tokio::task_local! {
    static TAKING: Arc<Taking>;
}

/// What the client of one stream takes, told by the stream's body.
#[derive(Debug, Default)]
pub(crate) struct Taking {
    /// Whether a piece is for the client to take.
    waits: AtomicBool,
    /// Pieces that were given.
    given: AtomicU64,
}

impl Taking {
    /// That of the stream whose task this is; none on HTTP/1.
    pub(crate) fn of_this_task() -> Option<Arc<Self>> {
        TAKING.try_with(Arc::clone).ok()
    }

    /// A piece was given.
    pub(crate) fn give(&self) {
        self.given.fetch_add(1, Ordering::Relaxed);
        self.waits.store(true, Ordering::Relaxed);
    }

    /// All that was given is on its way.
    pub(crate) fn rest(&self) {
        self.waits.store(false, Ordering::Relaxed);
    }

    /// How much was given, where the last of it waits for the client.
    fn waiting(&self) -> Option<u64> {
        self.waits.load(Ordering::Relaxed).then(|| self.given.load(Ordering::Relaxed))
    }
}

/// Runs streams, and resets those whose clients take nothing for so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    pub(crate) patience: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let (taking, patience) = (Arc::<Taking>::default(), self.patience);
        tokio::spawn(TAKING.scope(Arc::clone(&taking), async move {
            let mut stream = pin!(stream);
            let mut wait = Wait { patience, at: None };
            poll_fn(|context| match stream.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(()),
                // What is dropped unfinished is reset.
                Poll::Pending => wait.poll(&taking, context),
            })
            .await;
        }));
    }
}

/// How long a client has taken nothing.
struct Wait {
    patience: Duration,
    /// How much was given, and when that is to be taken.
    at: Option<(u64, Pin<Box<Sleep>>)>,
}

impl Wait {
    /// Ready once nothing was taken for too long.
    fn poll(&mut self, taking: &Taking, context: &mut Context<'_>) -> Poll<()> {
        let Some(given) = taking.waiting() else { return Poll::Pending };
        let (seen, end) = self.at.get_or_insert_with(|| (given, Box::pin(sleep(self.patience))));
        if std::mem::replace(seen, given) != given {
            end.as_mut().reset(Instant::now() + self.patience);
        }
        if end.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        tracing::debug!("a client did not take what it was sent on a stream");
        Poll::Ready(())
    }
}
