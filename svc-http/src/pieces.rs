//! A body that is sent piece by piece, as the pieces come.
//!
//! **Invariant:** what has an end of its own and did not come to it is broken off before its client, never ended as if it were whole.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

use crate::answer::{Broken, Stream};

/// A body of what comes over `pieces`; it ends when nobody can send any more, as streams of events do, which have no end to miss.
pub(crate) fn body(pieces: mpsc::Receiver<Bytes>) -> Stream {
    Stream::new(Pieces(pieces))
}

/// A body that ends with [`Piece::End`] alone: where its writer is gone without it, whatever the reason, it is broken off.
pub(crate) fn whole(pieces: mpsc::Receiver<Piece>) -> Stream {
    Stream::new(Whole { pieces, is_over: false })
}

/// What the writer of a body that has an end sends.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The next bytes.
    Bytes(Bytes),
    /// There are no more, and all went well.
    End,
}

struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|it| Ok(Frame::data(it))))
    }
}

struct Whole {
    pieces: mpsc::Receiver<Piece>,
    is_over: bool,
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        self.pieces.poll_recv(context).map(|piece| {
            if let Some(Piece::Bytes(bytes)) = piece {
                return Some(Ok(Frame::data(bytes)));
            }
            self.is_over = true;
            // Nothing instead of the end: the writer failed, fell over, or waited too long for its client.
            if piece.is_none() { Some(Err(Broken)) } else { None }
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    /// A body whose writer went before its end is broken off behind what it had sent, and one that ended is not.
    #[tokio::test]
    async fn what_did_not_come_to_its_end_is_broken_off() {
        for ends in [true, false] {
            let (to, from) = mpsc::channel(2);
            to.send(Piece::Bytes(Bytes::from_static(b"half"))).await.unwrap();
            if ends {
                to.send(Piece::End).await.unwrap();
            }
            drop(to);
            let mut body = whole(from);
            let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(first, "half");
            let last = body.frame().await;
            assert_eq!(last.is_none(), ends, "{last:?}");
            assert!(ends || last.unwrap().is_err() && body.frame().await.is_none());
        }
    }
}
