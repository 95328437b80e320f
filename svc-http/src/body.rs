//! Reading a request's body within its limits of size and time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::TRANSFER_ENCODING;
use http_body::Body;
use http_body_util::BodyExt;
use svc_core::refusal::FieldError;

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
    /// There is no room for it. `ended` as above.
    NoRoom {
        /// Whether it was read to its end all the same.
        ended: bool,
    },
}

/// What becomes of a piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is kept.
    Keep,
    /// It is read past: nobody will look at it.
    Pass,
    /// It is not kept, and the whole body is refused.
    Refuse,
}

/// Bytes read past, beyond the limit, so that a client that writes on hears the refusal, and on HTTP/1 another request may follow
/// on its connection: one that is cut off while it writes loses what it was told.
pub(crate) const DRAIN_MAX: usize = 4 * 1024 * 1024;

/// Checks that a body of HTTP/1.1 is transferred as this server reads it: as it is, or in chunks (RFC 9112, 6.1). What came in
/// another coding before the chunks would be taken for what was meant.
///
/// # Errors
/// The fault, with the header as field.
pub(crate) fn is_transferred_plainly(headers: &HeaderMap) -> Result<(), FieldError> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter().map(|it| it.as_bytes().trim_ascii());
    let is_plain = codings.next().is_none_or(|it| it.eq_ignore_ascii_case(b"chunked")) && codings.next().is_none();
    let clause = "must be `chunked` alone, or absent";
    if is_plain { Ok(()) } else { Err(FieldError::new(TRANSFER_ENCODING.as_str(), clause)) }
}

/// The whole body, of at most `max` bytes, within `time`, of which `fate` says what is kept. Nothing is copied where it arrives in one
/// piece.
///
/// # Errors
/// [`BodyFault`]. What is too large, or has no room, is read past up to [`DRAIN_MAX`] beyond `max`, within the same time; where it is
/// announced to be larger than that, nothing of it is read.
pub(crate) async fn read<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    max: usize,
    time: Duration,
    fate: impl FnMut(&[u8]) -> Fate,
) -> Result<Bytes, BodyFault> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut passed = None;
    let read = {
        let mut reading = pin!(read_within(body, max, fate, &mut passed));
        // Most bodies came with their head: those cost no look at a clock.
        if let Poll::Ready(read) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            return read;
        }
        tokio::time::timeout(time, reading).await
    };
    match read {
        Ok(read) => read,
        Err(_elapsed) => Err(passed.unwrap_or(BodyFault::TooSlow)),
    }
}

/// Reads past a body that nobody wants; whether its end was reached within `time` and `max` bytes.
pub(crate) async fn drain<B: Body<Data = Bytes> + Unpin>(body: &mut B, max: usize, time: Duration) -> bool {
    body.is_end_stream() || tokio::time::timeout(time, drain_within(body, max)).await.unwrap_or(false)
}

/// `passed` says from when on it is refused, and why, whether or not its end comes.
async fn read_within<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    max: usize,
    mut fate: impl FnMut(&[u8]) -> Fate,
    passed: &mut Option<BodyFault>,
) -> Result<Bytes, BodyFault> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    let mut came: usize = 0;
    loop {
        // The announced length is looked at with every piece: it is known before the first and never trusted alone.
        if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > max.saturating_sub(came) {
            *passed = Some(BodyFault::TooLarge { ended: false });
            return Err(BodyFault::TooLarge { ended: drain_within(body, past(max, came)).await });
        }
        let piece = match body.frame().await {
            None => break,
            Some(Err(_)) => return Err(BodyFault::Broken),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        came = came.saturating_add(piece.len());
        if came > max {
            *passed = Some(BodyFault::TooLarge { ended: false });
            // Nobody wants what came before either.
            drop((first, whole, piece));
            return Err(BodyFault::TooLarge { ended: drain_within(body, past(max, came)).await });
        }
        match fate(&piece) {
            Fate::Pass => continue,
            Fate::Refuse => {
                *passed = Some(BodyFault::NoRoom { ended: false });
                drop((first, whole, piece));
                return Err(BodyFault::NoRoom { ended: drain_within(body, past(max, came)).await });
            }
            Fate::Keep => {}
        }
        if first.is_empty() && whole.is_empty() {
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

/// How many bytes may still be read past where `read` of a body of at most `max` have come.
const fn past(max: usize, read: usize) -> usize {
    max.saturating_add(DRAIN_MAX).saturating_sub(read)
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
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::Context;

    use http_body::{Frame, SizeHint};

    use super::*;

    /// A body in pieces, of an announced length where `announced` is; it never ends where `ends` is false.
    struct Pieces {
        pieces: VecDeque<Bytes>,
        ends: bool,
        announced: bool,
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

        fn size_hint(&self) -> SizeHint {
            let left = self.pieces.iter().map(|it| u64::try_from(it.len()).unwrap()).sum();
            if self.announced { SizeHint::with_exact(left) } else { SizeHint::default() }
        }
    }

    fn pieces(sizes: &[usize], ends: bool) -> Pieces {
        Pieces { pieces: sizes.iter().map(|it| Bytes::from(vec![b'x'; *it])).collect(), ends, announced: false }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    fn keep(_: &[u8]) -> Fate {
        Fate::Keep
    }

    const TIME: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(1);

    /// The limit is exact, however the body is cut; what is over it is read past.
    #[test]
    fn the_limit_is_exact() {
        for (sizes, length) in
            [(&[10][..], Ok(10)), (&[4, 6], Ok(10)), (&[1, 1, 8], Ok(10)), (&[], Ok(0)), (&[0, 3], Ok(3))]
        {
            assert_eq!(run(read(&mut pieces(sizes, true), 10, TIME, keep)).map(|it| it.len()), length, "{sizes:?}");
        }
        for sizes in [&[11][..], &[5, 6], &[10, 1], &[10, 0, 1, 99]] {
            assert_eq!(
                run(read(&mut pieces(sizes, true), 10, TIME, keep)),
                Err(BodyFault::TooLarge { ended: true }),
                "{sizes:?}"
            );
        }
    }

    /// What is over the limit is read past up to four mebibytes beyond it, whatever the limit and whether or not the length was
    /// announced; of what is announced to be larger nothing is.
    #[test]
    fn as_much_is_read_past_beyond_every_limit() {
        const MIB: usize = 1024 * 1024;
        for max in [10, 8 * MIB, 32 * MIB] {
            for announced in [true, false] {
                let told = |sizes: &[usize]| {
                    let mut body = Pieces { announced, ..pieces(sizes, true) };
                    let Err(BodyFault::TooLarge { ended }) = run(read(&mut body, max, TIME, keep)) else {
                        panic!("{sizes:?} are over {max}")
                    };
                    (ended, body.pieces.len())
                };
                assert_eq!(told(&[max, 1]), (true, 0), "{max} {announced}");
                assert_eq!(told(&[max, 1, DRAIN_MAX - 1]), (true, 0), "{max} {announced}");
                let (ended, left) = told(&[max, 1, DRAIN_MAX, 7]);
                assert_eq!((ended, left), (false, if announced { 4 } else { 1 }), "{max} {announced}");
            }
        }
    }

    /// A body that does not end is given up after its time, also while it is read past.
    #[test]
    fn a_body_that_does_not_end_is_given_up() {
        assert_eq!(run(read(&mut pieces(&[1], false), 10, SHORT, keep)), Err(BodyFault::TooSlow));
        let over = BodyFault::TooLarge { ended: false };
        assert_eq!(run(read(&mut pieces(&[11], false), 10, SHORT, keep)), Err(over), "what it is over is told");
        assert!(!run(drain(&mut pieces(&[1], false), 1, SHORT)));
        assert!(run(drain(&mut pieces(&[1], true), 1, TIME)));
        assert!(!run(drain(&mut pieces(&[1, 1], true), 1, TIME)));
    }

    /// What nobody will look at is read to its end and not kept, within the same limit; what has no room is read past as what is too
    /// large is.
    #[test]
    fn what_is_not_to_be_kept_is_not() {
        let mut seen = 0;
        let pass = |piece: &[u8]| {
            seen += piece.len();
            Fate::Pass
        };
        let mut body = pieces(&[4, 6], true);
        assert_eq!(run(read(&mut body, 10, TIME, pass)), Ok(Bytes::new()));
        assert_eq!((seen, body.pieces.len()), (10, 0));
        let over = run(read(&mut pieces(&[4, 7], true), 10, TIME, |_| Fate::Pass));
        assert_eq!(over, Err(BodyFault::TooLarge { ended: true }));
        let room = |piece: &[u8]| if piece.len() < 5 { Fate::Keep } else { Fate::Refuse };
        let mut body = pieces(&[4, 5, 1], true);
        assert_eq!(run(read(&mut body, 10, TIME, room)), Err(BodyFault::NoRoom { ended: true }));
        assert!(body.pieces.is_empty());
        assert_eq!(run(read(&mut pieces(&[5], false), 10, SHORT, room)), Err(BodyFault::NoRoom { ended: false }));
    }
}
