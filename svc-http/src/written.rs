//! How much of what a client was written it asked for, and what it was answered that no service knows of.
//!
//! On HTTP/1 all of it are answers. On HTTP/2 both sides speak of the connection itself too, so that whoever sends pings is
//! written to for as long as they like: there the data of streams count (RFC 9113, 6.1), and nothing else.
//!
//! A request of HTTP/2 whose headers are more than h2 reads is answered by h2 itself, with a status alone, and nobody is told. That
//! answer is known by its looks: its one frame of headers is the first of its stream, ends it, and holds a status and nothing else.
//!
//! **Invariant:** what a client can have written without an answer being on its way does not count.
//! **Invariant:** what a service has answered is never taken for h2's own answer: that has no `x-request-id`, which alone is longer, and
//! nothing was written before it on its stream, as there was before trailers.

use std::collections::BTreeSet;

/// Reads along what is written on one connection.
#[derive(Debug, Default)]
pub(crate) struct Written {
    protocol: Protocol,
    /// Bytes that are known of the head of the frame under way; none within its payload.
    head: u8,
    /// Bytes of its payload that are left.
    left: usize,
    kind: u8,
    flags: u8,
    stream: u32,
    /// Streams whose answers have begun and not ended.
    begun: BTreeSet<u32>,
    /// Answers of h2's own that were written and not told of yet.
    bare: usize,
}

/// What a connection speaks, told by its first byte.
#[derive(Clone, Copy, Debug, Default)]
enum Protocol {
    #[default]
    Unknown,
    Http1,
    Http2,
}

impl Written {
    /// These bytes were written: how many of them are of answers.
    pub(crate) fn add(&mut self, written: &[u8]) -> usize {
        if let (Protocol::Unknown, [first, ..]) = (self.protocol, written) {
            // HTTP/2 begins with settings (RFC 9113, 3.4), whose frame is not so long that its length begins like that.
            self.protocol = if *first == b'H' { Protocol::Http1 } else { Protocol::Http2 };
        }
        match self.protocol {
            Protocol::Unknown | Protocol::Http1 => written.len(),
            Protocol::Http2 => self.data(written),
        }
    }

    /// How many answers of h2's own were written since this was asked last.
    pub(crate) fn take_bare(&mut self) -> usize {
        std::mem::take(&mut self.bare)
    }

    fn data(&mut self, written: &[u8]) -> usize {
        let (mut rest, mut data) = (written, 0_usize);
        while let [byte, after @ ..] = rest {
            if self.left > 0 && self.head == 0 {
                let (payload, after) = rest.split_at(self.left.min(rest.len()));
                self.left = self.left.saturating_sub(payload.len());
                data = data.saturating_add(if self.kind == DATA { payload.len() } else { 0 });
                rest = after;
                continue;
            }
            match self.head {
                0 => self.left = usize::from(*byte),
                1 | 2 => self.left = (self.left << 8) | usize::from(*byte),
                3 => self.kind = *byte,
                4 => self.flags = *byte,
                _ => self.stream = (self.stream << 8) | u32::from(*byte),
            }
            self.head = self.head.saturating_add(1);
            if self.head == HEAD_BYTES {
                self.head = 0;
                self.framed();
            }
            rest = after;
        }
        data
    }

    /// The head of a frame was written.
    fn framed(&mut self) {
        let ends = self.flags & END_STREAM != 0;
        match self.kind {
            HEADERS if !ends => {
                self.begun.insert(self.stream);
                // A client may end streams without a word from here. Those are the oldest before long, as no more than a part of so
                // many can be answered at once.
                if self.begun.len() > BEGUN_MAX {
                    self.begun.pop_first();
                }
            }
            HEADERS if !self.begun.remove(&self.stream) => {
                let is_bare = self.left <= BARE_BYTES_MAX && self.flags & END_HEADERS != 0;
                self.bare = self.bare.saturating_add(is_bare.into());
            }
            DATA if ends => drop(self.begun.remove(&self.stream)),
            RST_STREAM => drop(self.begun.remove(&self.stream)),
            _ => {}
        }
    }
}

/// Bytes of a frame's head.
const HEAD_BYTES: u8 = 9;
/// The type of frames that carry what streams say.
const DATA: u8 = 0;
/// The type of frames that carry headers.
const HEADERS: u8 = 1;
/// The type of frames that end a stream before its end.
const RST_STREAM: u8 = 3;
/// That nothing follows a frame on its stream (RFC 9113, 6.1 and 6.2).
const END_STREAM: u8 = 0x1;
/// That a frame of headers has all of them (RFC 9113, 6.2).
const END_HEADERS: u8 = 0x4;
/// Streams that are known to have begun: more than [`H2_STREAMS_MAX`](crate::serve::H2_STREAMS_MAX), which are answered at once.
const BEGUN_MAX: usize = 1_024;
/// Bytes of a status that is told in no header before, as HPACK writes it: its name's number, a length and three letters.
const BARE_BYTES_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(type_: u8, length: usize) -> Vec<u8> {
        framed(type_, length, 0, 1)
    }

    fn framed(type_: u8, length: usize, flags: u8, stream: u32) -> Vec<u8> {
        let length = u32::try_from(length).unwrap_or_default().to_be_bytes();
        let mut frame = length.get(1..).unwrap_or_default().to_vec();
        frame.extend([type_, flags]);
        frame.extend(stream.to_be_bytes());
        frame.resize(frame.len() + usize::try_from(u32::from_be_bytes(length)).unwrap_or_default(), 0);
        frame
    }

    /// An answer of a status alone is h2's own, whether or not the connection has had one before; what has more is a service's.
    #[test]
    fn an_answer_without_a_header_is_known() {
        let headers = |length, flags, stream| framed(1, length, flags, stream);
        let all = [
            frame(4, 18),
            headers(5, 5, 1),
            headers(1, 5, 3),
            headers(60, 5, 5),
            headers(5, 4, 7),
            framed(0, 5, 1, 7),
            headers(6, 5, 9),
            headers(40, 4, 0x1_0001),
            headers(40, 4, 0x1_0003),
            framed(0, 5, 0, 0x1_0003),
            // Trailers of one short header, as the second of a connection is.
            headers(1, 5, 0x1_0003),
            headers(2, 5, 0x1_0001),
        ];
        for size in [1, 2, 9, 4_096] {
            let mut http2 = Written::default();
            for part in all.concat().chunks(size) {
                let _ = http2.add(part);
            }
            assert_eq!((http2.take_bare(), http2.take_bare()), (2, 0), "{size}");
        }
    }

    /// Of HTTP/1 every byte counts; of HTTP/2 the data alone, however the frames are cut.
    #[test]
    fn data_alone_is_of_answers() {
        let mut http1 = Written::default();
        assert_eq!((http1.add(b""), http1.add(b"HTTP/1.1 200 OK\r\n\r\n"), http1.add(b"\0\0\x01{}")), (0, 19, 5));
        let frames = [
            (4, 18, 0), // settings
            (4, 0, 0),  // that the other side's are in force
            (1, 70_000, 0),
            (0, 16_384, 16_384),
            (6, 8, 0), // a ping's answer
            (0, 0, 0),
            (8, 4, 0), // room for more
            (0, 300, 300),
            (7, 20, 0), // that nothing more is taken
            (0, 1, 1),
        ];
        let all: Vec<u8> = frames.iter().flat_map(|(type_, length, _)| frame(*type_, *length)).collect();
        for size in [1, 2, 7, 9, 10, 4_096, all.len()] {
            let mut http2 = Written::default();
            let data: usize = all.chunks(size).map(|it| http2.add(it)).sum();
            assert_eq!(data, frames.iter().map(|it| it.2).sum::<usize>(), "{size}");
        }
        let mut http2 = Written::default();
        for (type_, length, data) in frames {
            assert_eq!(http2.add(&frame(type_, length)), data, "{type_} {length}");
        }
    }
}
