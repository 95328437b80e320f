//! Signatures of thinking in a stream that goes on as it came: those that no provider knows but the one that made them are marked as
//! its own.

use super::super::doc::Value;
use super::super::marks::marked;
use super::super::request::Splice;

/// What marks the signatures of one stream.
#[derive(Debug, Default)]
pub(super) struct Signing {
    mark: Option<String>,
    /// The block whose signature has its mark: it may come in pieces.
    done: Option<i64>,
}

impl Signing {
    /// Puts this mark before signatures from here on.
    pub(super) fn by(&mut self, mark: String) {
        self.mark = Some(mark);
    }

    /// What puts the mark into an event, where a signature begins in it.
    pub(super) fn splice(&mut self, root: Value<'_>) -> Option<Splice> {
        let mark = self.mark.as_deref()?;
        let index = root.get("index")?.integer()?;
        let signature = if root.has("type", "content_block_start") {
            self.done = None;
            root.get("content_block").filter(|it| it.has("type", "thinking"))?.get("signature")?
        } else if root.has("type", "content_block_delta") {
            root.get("delta").filter(|it| it.has("type", "signature_delta"))?.get("signature")?
        } else {
            return None;
        };
        let splice = marked(signature, mark).filter(|_| self.done != Some(index))?;
        self.done = Some(index);
        Some(splice)
    }
}
