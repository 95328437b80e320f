//! A body as it is sent: frame by frame, with its pauses, up to where it breaks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::State;
use super::knobs::{Break, Wish};

/// The frames of a stream, made when they are sent: a stream may be longer than memory is wide.
pub(super) type Frames = Box<dyn Iterator<Item = Bytes> + Send>;

/// What lies between two comments of a stream that says nothing else.
const PING_PAUSE: Duration = Duration::from_millis(20);

/// A body.
pub(super) struct Script {
    frames: Frames,
    /// The bytes of a body that is whole, and how many of them are left.
    length: Option<u64>,
    left: Option<u64>,
    sent: u64,
    breaks: Option<Break>,
    error: Bytes,
    first: Duration,
    pace: Duration,
    /// What is waited for before the next frame.
    pause: Option<Pin<Box<Sleep>>>,
    step: Step,
    running: Running,
}

/// What a body answers when it is asked for its next frame.
type Polled = Poll<Option<Result<Frame<Bytes>, Cut>>>;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Pause,
    Send,
    /// What was sent is written first, then the connection is closed.
    Flush,
    Break,
    End,
}

/// The connection is closed in the middle of the answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer breaks off")]
pub(super) struct Cut;

impl Script {
    /// A body that is sent at once.
    pub(super) fn whole(body: Bytes, wish: &Wish, running: Running) -> Self {
        let length = body.len() as u64;
        let breaks = wish.breaks.filter(|it| !matches!(it, Break::Error(_)));
        let mut parts = vec![body];
        if breaks.is_some()
            && let Some(body) = parts.pop()
        {
            let half = body.len() / 2;
            parts = vec![body.slice(..half), body.slice(half..)];
        }
        // Halves have no number of frames that a knob could mean: it breaks between them.
        let breaks = breaks.map(|it| match it {
            Break::Half(_) | Break::Cut(_) | Break::Short(_) | Break::Error(_) => Break::Cut(1),
            Break::Stall(_) | Break::Pings(_) => Break::Stall(1),
        });
        let frames = Box::new(parts.into_iter().filter(|it| !it.is_empty()));
        let waits = Wish { first: wish.first, ..Wish::default() };
        Self { breaks, length: Some(length), left: Some(length), ..Self::stream(frames, Bytes::new(), &waits, running) }
    }

    /// A body that is sent frame by frame; `error` is what tells of a fault of the API in it.
    pub(super) fn stream(frames: Frames, error: Bytes, wish: &Wish, running: Running) -> Self {
        Self {
            frames,
            length: None,
            left: None,
            sent: 0,
            breaks: wish.breaks,
            error,
            first: wish.first.unwrap_or_default(),
            pace: wish.pace.unwrap_or_default(),
            pause: None,
            step: Step::Pause,
            running,
        }
    }

    /// What stands in place of the next frame, where the body breaks here.
    fn broken(&mut self) -> Option<Polled> {
        match self.breaks? {
            Break::Cut(at) if at == self.sent => self.step = Step::Flush,
            Break::Half(at) if at == self.sent => {
                self.step = Step::Flush;
                let next = self.frames.next().unwrap_or_default();
                return Some(data(next.slice(..next.len() / 2)));
            }
            Break::Stall(at) if at == self.sent => return Some(Poll::Pending),
            Break::Pings(at) if at == self.sent => {
                (self.first, self.pace, self.step) = (PING_PAUSE, PING_PAUSE, Step::Pause);
                return Some(data(Bytes::from_static(b": ping\n\n")));
            }
            Break::Short(at) if at == self.sent => self.step = Step::End,
            Break::Error(at) if at == self.sent => {
                self.step = Step::End;
                return Some(data(self.error.clone()));
            }
            Break::Cut(_) | Break::Half(_) | Break::Stall(_) | Break::Pings(_) | Break::Short(_) | Break::Error(_) => {}
        }
        None
    }
}

fn data(bytes: Bytes) -> Polled {
    Poll::Ready(Some(Ok(Frame::data(bytes))))
}

impl Body for Script {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        loop {
            match this.step {
                Step::Pause => {
                    let pause = if this.sent == 0 { this.first } else { this.pace };
                    if !pause.is_zero() {
                        ready!(this.pause.get_or_insert_with(|| Box::pin(sleep(pause))).as_mut().poll(context));
                        this.pause = None;
                    }
                    this.step = Step::Send;
                }
                Step::Send => {
                    if let Some(instead) = this.broken() {
                        return instead;
                    }
                    if this.step != Step::Send {
                        continue;
                    }
                    let Some(frame) = this.frames.next() else {
                        this.step = Step::End;
                        continue;
                    };
                    this.sent += 1;
                    this.step = Step::Pause;
                    // Nobody asks for more of a body whose length was told.
                    this.left = this.left.map(|it| it.saturating_sub(frame.len() as u64));
                    if this.left == Some(0) {
                        this.running.ended();
                    }
                    return data(frame);
                }
                Step::Flush => {
                    // What waits is written while nothing is ready.
                    this.step = Step::Break;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Step::Break => {
                    this.running.ended();
                    return Poll::Ready(Some(Err(Cut)));
                }
                Step::End => {
                    this.running.ended();
                    return Poll::Ready(None);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.length == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// An answer that is under way, counted until it is dropped.
pub(super) struct Running {
    state: Arc<State>,
    ended: std::cell::Cell<bool>,
}

impl Running {
    /// Counted from the request on.
    pub(super) const fn of(state: Arc<State>) -> Self {
        Self { state, ended: std::cell::Cell::new(false) }
    }

    /// It was sent to its end.
    pub(super) fn ended(&self) {
        self.ended.set(true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended = self.ended.get();
        self.state.count(|it| {
            it.running -= 1;
            if ended { it.ended += 1 } else { it.hung_up += 1 }
        });
    }
}
