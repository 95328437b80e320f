//! What a mail server says, as signs that may stand in an answer.
//!
//! SMTP's answers are ASCII (RFC 5321, 4.2) and what counts in one is its three digits, but servers that speak their country's
//! language put bytes of other encodings behind those. Whoever reads such a line as UTF-8 fails and loses the digits with it: a
//! message that was taken would be sent again.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::outbound::dial::Io;

/// A connection of which each byte that is read and is not ASCII is a question mark. What is written goes out as it is.
pub(super) struct Ascii {
    stream: Io,
    /// What is read before anything that the other side says.
    ahead: &'static [u8],
}

impl Ascii {
    /// A connection whose other side greets first.
    pub(super) const fn new(stream: Io) -> Self {
        Self { stream, ahead: b"" }
    }

    /// A connection that was secured halfway, where the other side has greeted already and does not greet again (RFC 3207, 4.2).
    pub(super) const fn greeted(stream: Io) -> Self {
        Self { stream, ahead: b"220 secured\r\n" }
    }
}

impl fmt::Debug for Ascii {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ascii").finish_non_exhaustive()
    }
}

impl AsyncTokioStream for Ascii {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.stream {
            Io::Plain(it) => it.peer_addr(),
            Io::Tls(it) => it.get_ref().0.peer_addr(),
        }
    }
}

impl AsyncRead for Ascii {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.ahead.is_empty() {
            let (now, later) = this.ahead.split_at(this.ahead.len().min(into.remaining()));
            into.put_slice(now);
            this.ahead = later;
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, into);
        for byte in into.filled_mut().iter_mut().skip(before).filter(|it| !it.is_ascii()) {
            *byte = b'?';
        }
        read
    }
}

impl AsyncWrite for Ascii {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, from)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
