//! Writing JSON text, piece by piece, so that what was read can be passed on as it was written.

/// A JSON text in the making. Commas follow from what stands before.
#[derive(Debug, Default)]
pub(super) struct Out {
    bytes: Vec<u8>,
    /// Whether nothing is kept but that something was written.
    is_trial: bool,
}

impl Out {
    /// Goes on behind what `bytes` holds.
    pub(super) const fn onto(bytes: Vec<u8>) -> Self {
        Self { bytes, is_trial: false }
    }

    /// Where nothing is kept but that something was written: what it cannot be written for is told all the same.
    pub(super) const fn trial() -> Self {
        Self { bytes: Vec::new(), is_trial: true }
    }

    /// Whether nothing is kept: then no text has to be made for it.
    pub(super) const fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Another, which keeps no more than this one.
    pub(super) const fn like(&self) -> Self {
        Self { bytes: Vec::new(), is_trial: self.is_trial }
    }

    /// What was written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// A comma, unless nothing stands before in this list or object.
    fn comma(&mut self) {
        if !matches!(self.bytes.last(), None | Some(b'\x7b' | b'[' | b':' | b' ' | b'\n')) {
            self.put(b",");
        }
    }

    /// Bytes as they are, such as what surrounds an event.
    pub(super) fn bytes(&mut self, bytes: &str) {
        self.put(bytes.as_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        if !self.is_trial {
            self.bytes.extend_from_slice(bytes);
        } else if self.bytes.is_empty() {
            self.bytes.push(b' ');
        }
    }

    /// An object with what `members` writes.
    pub(super) fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.comma();
        self.put(b"\x7b");
        members(self);
        self.put(b"\x7d");
    }

    /// A list of what `items` writes.
    pub(super) fn list(&mut self, items: impl FnOnce(&mut Self)) {
        self.comma();
        self.put(b"[");
        items(self);
        self.put(b"]");
    }

    /// A member's name; its value follows.
    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        self.comma();
        self.string(name);
        self.put(b":");
        self
    }

    /// A text.
    pub(super) fn text(&mut self, text: &str) {
        self.comma();
        self.string(text);
    }

    /// A JSON value as it was written elsewhere.
    pub(super) fn raw(&mut self, raw: &str) {
        self.comma();
        self.bytes(raw);
    }

    /// A number.
    pub(super) fn number(&mut self, number: u64) {
        self.comma();
        let mut digits = [0_u8; 20];
        let mut left = number;
        let mut from = digits.len();
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(left % 10).unwrap_or_default();
            left /= 10;
            from -= 1;
            if left == 0 {
                break;
            }
        }
        self.put(digits.get(from..).unwrap_or_default());
    }

    /// A truth value.
    pub(super) fn bool(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    /// `null`
    pub(super) fn null(&mut self) {
        self.raw("null");
    }

    fn string(&mut self, text: &str) {
        if self.is_trial {
            return self.put(b" ");
        }
        // Writing a text into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.bytes, text);
    }
}

/// A text as JSON, quotes and all.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Commas stand where they must and nowhere else.
    #[test]
    fn what_is_written_is_json() {
        let mut out = Out::default();
        out.object(|it| {
            it.name("a").text("\"x\n");
            it.name("b").list(|it| {
                it.number(0);
                it.number(u64::MAX);
                it.object(|_| {});
                it.list(|_| {});
                it.raw("1e3");
                it.bool(true);
            });
            it.name("c").null();
        });
        let text = String::from_utf8(out.into_bytes()).unwrap();
        assert_eq!(text, r#"{"a":"\"x\n","b":[0,18446744073709551615,{},[],1e3,true],"c":null}"#);
        assert_eq!(quoted("a\"b"), "\"a\\\"b\"");
    }
}
