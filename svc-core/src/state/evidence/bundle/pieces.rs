//! Takes a bundle apart while it comes in: each member, and of lists each item, as it stands in the text. What is held at any
//! time is one piece. White space around tokens is passed over and escapes are taken in svc's own writing, as nothing is meant by
//! either: programs that read JSON and write it again choose their own.

use sha2::{Digest as _, Sha256};

use super::escapes::Escape;
use crate::value::digest::Digest;

/// No piece of a bundle is longer. The longest that the gate writes is the record of a changed mandate: its lists as they were and as
/// they are, each of a thousand entries of at most a kilobyte, come to no more than 6.3 MB.
pub(super) const PIECE_BYTES_MAX: usize = 8 << 20;
/// Bytes that are hashed at once.
const HASHED_AT_ONCE: usize = 1 << 16;

/// The text is no bundle, or ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotABundle(pub(super) &'static str);

/// What a bundle is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A member begins.
    Member(&'a str),
    /// Its value, or one item of the list that it is.
    Value(&'a str, &'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Name,
    Value,
    First,
    Item,
    AfterItems,
    End,
}

/// The reader; see the module.
#[derive(Debug)]
pub(super) struct Pieces {
    at: At,
    name: String,
    piece: Vec<u8>,
    depth: u32,
    text: bool,
    escaped: bool,
    escape: Escape,
    last: u8,
    gap: bool,
    hash: Sha256,
    held: Vec<u8>,
}

/// The member that signs all before it.
const SEAL: &str = "seal";

impl Pieces {
    /// A reader at the beginning of a bundle.
    pub(super) fn new() -> Self {
        Self {
            at: At::Start,
            name: String::new(),
            piece: Vec::new(),
            depth: 0,
            text: false,
            escaped: false,
            escape: Escape::default(),
            last: b' ',
            gap: false,
            hash: Sha256::new(),
            held: Vec::new(),
        }
    }

    /// The digest of everything before the seal.
    pub(super) fn digest(&self) -> Digest {
        Digest::from_bytes(self.hash.clone().finalize().into())
    }

    /// Reads on, and gives `take` every piece that is whole.
    ///
    /// # Errors
    /// What `take` stops with, or that the text is no bundle.
    pub(super) fn feed<E: From<NotABundle>>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&Self, Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for byte in bytes {
            if self.escape.is_open() || (*byte == b'\\' && self.is_in_text()) {
                for byte in self.escape.take(*byte)?.unwrap_or_default().bytes() {
                    self.byte(byte, &mut take)?;
                }
                continue;
            }
            if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') && !self.is_in_text() {
                self.gap = true;
                continue;
            }
            // A number or a word that is parted is no longer one.
            if self.gap && is_literal(self.last) && is_literal(*byte) && !self.is_in_text() {
                return Err(NotABundle("has white space inside a value").into());
            }
            (self.last, self.gap) = (*byte, false);
            self.byte(*byte, &mut take)?;
        }
        Ok(())
    }

    /// Whether what comes next stands between quotes. No name of a member has one within.
    fn is_in_text(&self) -> bool {
        match self.at {
            At::Name => !self.piece.is_empty() && (self.piece.len() == 1 || self.piece.last() != Some(&b'"')),
            At::Start | At::Value | At::First | At::Item | At::AfterItems | At::End => self.text,
        }
    }

    /// Whether the bundle has ended.
    pub(super) fn is_done(&self) -> bool {
        self.at == At::End
    }

    fn byte<E: From<NotABundle>>(
        &mut self,
        byte: u8,
        take: &mut impl FnMut(&Self, Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stray = |what| Err(E::from(NotABundle(what)));
        match self.at {
            At::Start if byte == b'{' => self.at = At::Name,
            At::Start => return stray("does not begin as one"),
            At::Name if byte == b':' => {
                self.begin()?;
                take(self, Piece::Member(&self.name))?;
            }
            At::Name if self.piece.len() < 64 => self.piece.push(byte),
            At::Name => return stray("has a member of no known name"),
            At::Value if byte == b'[' && self.piece.is_empty() => self.at = At::First,
            At::Value if self.is_over(byte, b'}') => {
                self.give(take)?;
                self.next(byte);
            }
            At::First if byte == b']' => self.at = At::AfterItems,
            At::First => {
                self.at = At::Item;
                self.grow(byte)?;
            }
            At::Item if self.is_over(byte, b']') => {
                self.give(take)?;
                self.at = if byte == b']' { At::AfterItems } else { At::Item };
            }
            At::Value | At::Item => self.grow(byte)?,
            At::AfterItems if byte == b',' || byte == b'}' => self.next(byte),
            At::AfterItems => return stray("has something between its members"),
            At::End => return stray("goes on behind its end"),
        }
        self.hold(byte);
        Ok(())
    }

    /// Whether the piece ends before `byte`, which closes it or the list around it.
    fn is_over(&self, byte: u8, close: u8) -> bool {
        self.depth == 0 && !self.text && !self.piece.is_empty() && (byte == b',' || byte == close)
    }

    /// A member's name is whole: all before it is hashed, unless it is the seal's.
    fn begin<E: From<NotABundle>>(&mut self) -> Result<(), E> {
        let name = std::str::from_utf8(&self.piece).ok().and_then(|it| it.strip_prefix('"')?.strip_suffix('"'));
        self.name = name.ok_or_else(|| E::from(NotABundle("has a member of no known name")))?.to_owned();
        self.piece.clear();
        self.at = At::Value;
        if self.name != SEAL {
            self.flush();
        }
        Ok(())
    }

    fn grow<E: From<NotABundle>>(&mut self, byte: u8) -> Result<(), E> {
        if self.piece.len() >= PIECE_BYTES_MAX {
            return Err(NotABundle("has a part that is too long").into());
        }
        if self.text {
            (self.text, self.escaped) = (self.escaped || byte != b'"', !self.escaped && byte == b'\\');
        } else {
            match byte {
                b'"' => self.text = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.piece.push(byte);
        Ok(())
    }

    fn give<E>(&mut self, take: &mut impl FnMut(&Self, Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let piece = std::mem::take(&mut self.piece);
        take(self, Piece::Value(&self.name, &piece))?;
        self.piece = piece;
        self.piece.clear();
        Ok(())
    }

    /// Behind a member: another, or the end. The comma belongs to the member behind it, which may be the seal.
    fn next(&mut self, byte: u8) {
        if self.name != SEAL {
            self.flush();
        }
        self.at = if byte == b'}' { At::End } else { At::Name };
    }

    fn hold(&mut self, byte: u8) {
        self.held.push(byte);
        let inside = matches!(self.at, At::Value | At::First | At::Item | At::AfterItems) && self.name != SEAL;
        if inside && self.held.len() >= HASHED_AT_ONCE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.hash.update(&self.held);
        self.held.clear();
    }
}

/// Whether a byte belongs to a number or to one of the words of JSON.
const fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn taken(text: &str, at_once: usize) -> Result<Vec<String>, NotABundle> {
        let (mut pieces, mut out) = (Pieces::new(), Vec::new());
        for chunk in text.as_bytes().chunks(at_once) {
            pieces.feed(chunk, |_, piece| {
                out.push(match piece {
                    Piece::Member(name) => format!("{name}:"),
                    Piece::Value(_, raw) => String::from_utf8(raw.to_vec()).unwrap(),
                });
                Ok::<(), NotABundle>(())
            })?;
        }
        if pieces.is_done() { Ok(out) } else { Err(NotABundle("ends early")) }
    }

    /// However the bytes come, the pieces are the same; lists come item by item.
    #[test]
    fn a_text_falls_into_its_pieces() {
        let text = r#"{"a":"x,]}\"","b":[{"c":[1,2]},"]"],"d":[],"e":{"f":[]}}"#;
        let pieces = [r"a:", r#""x,]}\"""#, "b:", r#"{"c":[1,2]}"#, r#""]""#, "d:", "e:", r#"{"f":[]}"#];
        for at_once in [1, 3, 1_000] {
            assert_eq!(taken(text, at_once).unwrap(), pieces);
        }
        for broken in ["", "{", "[]", r#"{"a":1"#, r#"{"a":[1}"#, r#"{"a":[]x}"#, r#"{"a":1}x"#, r#"{a:1}"#] {
            assert!(taken(broken, 1_000).is_err(), "{broken}");
        }
    }

    /// White space around tokens changes neither the pieces nor the digest; within texts it stays, and nothing is parted by it.
    #[test]
    fn white_space_around_tokens_is_passed_over() {
        let tight = r#"{"a":"x ,\" y","b":[{"c":[1,-2]},true],"d":[],"seal":{}}"#;
        let loose = "\n{ \"a\" : \"x ,\\\" y\" ,\r\n\t\"b\" : [ { \"c\" : [ 1 , -2 ] } , true ] , \"d\" : [ ] , \"seal\" : { } }\n ";
        let read = |text: &str| {
            let (mut pieces, mut out) = (Pieces::new(), Vec::new());
            let fed = pieces.feed(text.as_bytes(), |_, piece| {
                out.push(format!("{piece:?}"));
                Ok::<(), NotABundle>(())
            });
            fed.map(|()| (out, pieces.digest(), pieces.is_done()))
        };
        assert_eq!(read(loose).unwrap(), read(tight).unwrap());
        for parted in [r#"{"a":1 2}"#, r#"{"a":tr ue}"#, r#"{"a":[1, - 2]}"#, "{\"a\":1}\nx"] {
            assert!(read(parted).is_err(), "{parted}");
        }
        assert_ne!(read(r#"{"a b":1}"#), read(r#"{"ab":1}"#));
    }

    /// Whichever escapes a text is written with, the pieces and the digest are the same; what stands for no character is refused.
    #[test]
    fn escapes_of_another_writing_are_the_same_text() {
        let read = |text: &str, at_once: usize| {
            let (mut pieces, mut out) = (Pieces::new(), Vec::new());
            for chunk in text.as_bytes().chunks(at_once) {
                pieces.feed(chunk, |_, piece| {
                    out.push(format!("{piece:?}"));
                    Ok::<(), NotABundle>(())
                })?;
            }
            Ok::<_, NotABundle>((out, pieces.digest(), pieces.is_done()))
        };
        let own = "{\"ab\":\"A/\\n\\\"\\\\\\u001f\u{2014}\u{1f600}\",\"c\":[\"\\t,\",1],\"seal\":{\"k\":\"x\"}}";
        let other = r#"{"\u0061b":"\u0041\/\u000a\u0022\u005C\u001F\u2014\uD83d\uDe00","c":["\u0009,",1],"seal":{"\u006b":"\u0078"}}"#;
        for at_once in [1, 5, 1_000] {
            assert_eq!(read(other, at_once).unwrap(), read(own, at_once).unwrap());
        }
        for broken in
            [r#"{"a":"\ud83d"}"#, r#"{"a":"\ud83d\u0041"}"#, r#"{"a":"\ude00"}"#, r#"{"a":"\x"}"#, r#"{"a":"\u00g0"}"#]
        {
            assert!(!read(broken, 1_000).is_ok_and(|it| it.2), "{broken}");
        }
    }

    /// The digest is over all that stands before the seal's comma, and over nothing else.
    #[test]
    fn everything_before_the_seal_is_hashed() {
        let before = r#"{"a":[1,2],"b":"c""#;
        for at_once in [1, 7, 1_000] {
            let mut pieces = Pieces::new();
            let text = format!("{before},\"seal\":{{\"x\":1}}}}");
            for chunk in text.as_bytes().chunks(at_once) {
                pieces.feed(chunk, |_, _| Ok::<(), NotABundle>(())).unwrap();
            }
            assert_eq!(pieces.digest(), Digest::of(before));
        }
    }
}
