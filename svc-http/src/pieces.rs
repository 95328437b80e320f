//! A body that is sent piece by piece, as the pieces come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

use crate::answer::Stream;

/// A body of what comes over `pieces`; it ends when nobody can send any more.
pub(crate) fn body(pieces: mpsc::Receiver<Bytes>) -> Stream {
    Stream::new(Pieces(pieces))
}

struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|it| Ok(Frame::data(it))))
    }
}
