//! A load generator for HTTP/1.1 on keep-alive connections: little more than writing bytes and finding where the answer
//! ends, so that what it costs both sides of a comparison is small and the same.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::Fault;
use crate::measure::{count, nanos, quantile};

/// Where requests of one kind come from. Each connection asks for its next one; none left ends the slice.
pub trait Source {
    /// Writes the next request, head and body, into `into`, which is empty. False where there is none left.
    fn next(&mut self, into: &mut Vec<u8>) -> bool;

    /// Looks at the body of an answer of status 200.
    fn answered(&mut self, body: &[u8]);
}

/// A source that all connections of one thread draw from.
pub type Shared = Rc<RefCell<dyn Source>>;

/// What one slice of load came to.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// How long every request took, in nanoseconds.
    pub latencies: Vec<f64>,
    /// How long it lasted.
    pub lasted: Duration,
    /// Answers that were no 200.
    pub failed: u64,
}

impl Slice {
    /// Requests a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        count(self.latencies.len() as u64) / self.lasted.as_secs_f64().max(1e-9)
    }

    /// The latency that the part `q` of all requests stayed at or below, in nanoseconds.
    #[must_use]
    pub fn latency(&self, q: f64) -> f64 {
        quantile(self.latencies.iter().copied(), q)
    }
}

/// Keep-alive connections to one server.
#[derive(Debug)]
pub struct Load {
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Load {
    /// Opens so many connections to `port` on this machine.
    ///
    /// # Errors
    /// One of them cannot be opened.
    pub async fn open(port: u16, connections: usize) -> Result<Self, Fault> {
        let mut all = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            all.push(Connection { stream, buffer: Vec::with_capacity(8_192) });
        }
        Ok(Self { connections: all })
    }

    /// Every connection asks again as soon as it has its answer, for as long as `span` or while there are requests. Has to be
    /// awaited on a [`LocalSet`](tokio::task::LocalSet): one thread asks for all.
    ///
    /// # Errors
    /// A connection breaks, or what comes is no answer.
    pub async fn run(&mut self, source: &Shared, span: Duration) -> Result<Slice, Fault> {
        let started = Instant::now();
        #[expect(clippy::disallowed_methods, reason = "one thread that is no server: sources need no locks")]
        let ask = |it: Connection| spawn_local(it.ask(Rc::clone(source), started + span));
        let tasks: Vec<_> = self.connections.drain(..).map(ask).collect();
        let mut whole = Slice::default();
        for task in tasks {
            let (connection, one) = task.await??;
            self.connections.push(connection);
            whole.latencies.extend(one.latencies);
            whole.failed += one.failed;
        }
        whole.lasted = started.elapsed();
        Ok(whole)
    }
}

impl Connection {
    async fn ask(mut self, source: Shared, until: Instant) -> Result<(Self, Slice), Fault> {
        let (mut slice, mut request) = (Slice::default(), Vec::with_capacity(2_048));
        loop {
            request.clear();
            let asked = Instant::now();
            if asked >= until || !source.borrow_mut().next(&mut request) {
                return Ok((self, slice));
            }
            self.stream.write_all(&request).await?;
            let (status, body) = self.answer().await?;
            slice.latencies.push(nanos(asked.elapsed()));
            if status == 200 {
                source.borrow_mut().answered(self.buffer.get(body).unwrap_or_default());
            } else {
                slice.failed += 1;
            }
        }
    }

    /// Reads one whole answer: its status, and where in the buffer its body lies.
    async fn answer(&mut self) -> Result<(u16, Range<usize>), Fault> {
        self.buffer.clear();
        let mut looked = 0;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed a connection".into());
            }
            let Some(end) = end_of_head(&self.buffer, looked) else {
                looked = self.buffer.len().saturating_sub(3);
                continue;
            };
            let (status, length) = head(self.buffer.get(..end).unwrap_or_default())?;
            loop {
                let whole = match length {
                    Some(length) => end + length,
                    // One answer at a time: what ends in the last chunk is whole.
                    None if self.buffer.len() > end && self.buffer.ends_with(b"0\r\n\r\n") => self.buffer.len(),
                    None => usize::MAX,
                };
                if self.buffer.len() >= whole {
                    return Ok((status, end..whole));
                }
                if self.stream.read_buf(&mut self.buffer).await? == 0 {
                    return Err("the server closed a connection".into());
                }
            }
        }
    }
}

/// Where the body begins, if the head is whole; looks from `from` on.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(4).position(|it| it == b"\r\n\r\n").map(|at| from + at + 4)
}

/// The status and the length of the body; `None` where it comes in chunks.
fn head(bytes: &[u8]) -> Result<(u16, Option<usize>), Fault> {
    let text = std::str::from_utf8(bytes)?;
    let status = text.get(9..12).ok_or("no status")?.parse()?;
    let value = |name: &str| {
        let fields = text.split("\r\n").filter_map(|it| it.split_once(": "));
        fields.filter(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    if value("transfer-encoding").is_some_and(|it| it.eq_ignore_ascii_case("chunked")) {
        return Ok((status, None));
    }
    Ok((status, Some(value("content-length").ok_or("no length")?.parse()?)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The end of a head is found wherever the reads broke it, and what it says is read.
    #[test]
    fn an_answer_is_found_in_pieces() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nxy";
        assert_eq!(end_of_head(bytes, 0), Some(bytes.len() - 2));
        assert_eq!(end_of_head(bytes.get(..bytes.len() - 3).unwrap(), 0), None);
        assert_eq!(end_of_head(bytes, bytes.len() - 6), Some(bytes.len() - 2));
        assert_eq!(head(bytes).unwrap(), (200, Some(12)));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(head(chunked).unwrap(), (200, None));
    }
}
