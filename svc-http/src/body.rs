//! Reading a request's body within its limits of size and time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// Why a body could not be had. `ended` says whether the rest of it was read past, so that the connection can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// It is over the limit.
    TooLarge {
        /// Whether it was read to its end all the same.
        ended: bool,
    },
    /// It did not arrive in time.
    TooSlow,
    /// The client broke off, or framed it wrongly.
    Broken,
}

/// Bytes read past, beyond the limit, to keep a connection of HTTP/1 that another request may follow on.
pub(crate) const DRAIN_MAX: usize = 4 * 1024 * 1024;

/// The whole body, of at most `max` bytes, within `time`. Nothing is copied where it arrives in one piece.
///
/// # Errors
/// [`BodyFault`]. What is too large is read past up to [`DRAIN_MAX`], within the same time.
pub(crate) async fn read<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    max: usize,
    time: Duration,
) -> Result<Bytes, BodyFault> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut passed = false;
    let read = {
        let mut reading = pin!(read_within(body, max, &mut passed));
        // Most bodies came with their head: those cost no look at a clock.
        if let Poll::Ready(read) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            return read;
        }
        tokio::time::timeout(time, reading).await
    };
    match read {
        Ok(read) => read,
        Err(_elapsed) if passed => Err(BodyFault::TooLarge { ended: false }),
        Err(_elapsed) => Err(BodyFault::TooSlow),
    }
}

/// Reads past a body that nobody wants; whether its end was reached within `time` and `max` bytes.
pub(crate) async fn drain<B: Body<Data = Bytes> + Unpin>(body: &mut B, max: usize, time: Duration) -> bool {
    body.is_end_stream() || tokio::time::timeout(time, drain_within(body, max)).await.unwrap_or(false)
}

/// `passed` says from when on it is over the limit, whether or not its end comes.
async fn read_within<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    max: usize,
    passed: &mut bool,
) -> Result<Bytes, BodyFault> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    loop {
        // The announced length is looked at with every piece: it is known before the first and never trusted alone.
        let length = if whole.is_empty() { first.len() } else { whole.len() };
        if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > max.saturating_sub(length) {
            *passed = true;
            return Err(BodyFault::TooLarge { ended: drain_within(body, DRAIN_MAX).await });
        }
        let piece = match body.frame().await {
            None => break,
            Some(Err(_)) => return Err(BodyFault::Broken),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        if piece.len() > max.saturating_sub(length) {
            *passed = true;
            return Err(BodyFault::TooLarge { ended: drain_within(body, DRAIN_MAX).await });
        }
        if length == 0 {
            first = piece;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&piece);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

async fn drain_within<B: Body<Data = Bytes> + Unpin>(body: &mut B, max: usize) -> bool {
    let mut left = max;
    loop {
        if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > left {
            return false;
        }
        match Pin::new(&mut *body).frame().await {
            None => return true,
            Some(Err(_)) => return false,
            Some(Ok(frame)) => match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(rest) => left = rest,
                None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::Context;

    use http_body::Frame;

    use super::*;

    /// A body in pieces of an unannounced length; it never ends where `ends` is false.
    struct Pieces {
        pieces: VecDeque<Bytes>,
        ends: bool,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.pieces.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn pieces(sizes: &[usize], ends: bool) -> Pieces {
        Pieces { pieces: sizes.iter().map(|it| Bytes::from(vec![b'x'; *it])).collect(), ends }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    const TIME: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(1);

    /// The limit is exact, however the body is cut; what is over it is read past.
    #[test]
    fn the_limit_is_exact() {
        for (sizes, length) in
            [(&[10][..], Ok(10)), (&[4, 6], Ok(10)), (&[1, 1, 8], Ok(10)), (&[], Ok(0)), (&[0, 3], Ok(3))]
        {
            assert_eq!(run(read(&mut pieces(sizes, true), 10, TIME)).map(|it| it.len()), length, "{sizes:?}");
        }
        for sizes in [&[11][..], &[5, 6], &[10, 1], &[10, 0, 1, 99]] {
            assert_eq!(
                run(read(&mut pieces(sizes, true), 10, TIME)),
                Err(BodyFault::TooLarge { ended: true }),
                "{sizes:?}"
            );
        }
        assert_eq!(
            run(read(&mut pieces(&[11, DRAIN_MAX + 1], true), 10, TIME)),
            Err(BodyFault::TooLarge { ended: false })
        );
    }

    /// A body that does not end is given up after its time, also while it is read past.
    #[test]
    fn a_body_that_does_not_end_is_given_up() {
        assert_eq!(run(read(&mut pieces(&[1], false), 10, SHORT)), Err(BodyFault::TooSlow));
        let over = BodyFault::TooLarge { ended: false };
        assert_eq!(run(read(&mut pieces(&[11], false), 10, SHORT)), Err(over), "what it is over is told");
        assert!(!run(drain(&mut pieces(&[1], false), 1, SHORT)));
        assert!(run(drain(&mut pieces(&[1], true), 1, TIME)));
        assert!(!run(drain(&mut pieces(&[1, 1], true), 1, TIME)));
    }
}
