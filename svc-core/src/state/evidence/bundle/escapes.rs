//! The escapes of JSON texts, each in the one writing that svc has for it: programs that read JSON and write it again choose others.

use super::pieces::NotABundle;
use crate::value::canonical::text;
use crate::value::json::Json;

/// Bytes of an escape by number, and of the two that stand for one character.
const ONE: usize = 6;
const PAIR: usize = 2 * ONE;

/// An escape that comes in.
#[derive(Debug, Default)]
pub(super) struct Escape(Vec<u8>);

impl Escape {
    /// Whether one has begun.
    pub(super) const fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Takes the next byte of an escape; gives what stands in its place once it is whole.
    ///
    /// # Errors
    /// It stands for no character.
    pub(super) fn take(&mut self, byte: u8) -> Result<Option<String>, NotABundle> {
        self.0.push(byte);
        let whole = match self.0.as_slice() {
            [] | [_] => false,
            // The first half of a pair.
            [_, b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _] => false,
            [_, b'u', ..] => matches!(self.0.len(), ONE | PAIR),
            [_, ..] => true,
        };
        if !whole {
            return Ok(None);
        }
        let quoted = [b"\"", self.0.as_slice(), b"\""].concat();
        self.0.clear();
        let json = Json::parse(&quoted).map_err(|_| NotABundle("has an escape that stands for nothing"))?;
        let written = text(json.as_str().unwrap_or_default());
        Ok(written.strip_prefix('"').and_then(|it| it.strip_suffix('"')).map(str::to_owned))
    }
}
