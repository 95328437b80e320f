//! What a bundle shows of its ledger, and what it cannot.
//!
//! **Invariant:** records that the checkpoint has and the bundle has not are named.

use super::super::Range;
use super::super::held::not_compared;
use super::super::signers::{NOT_COMPARED, retired};
use super::{Checked, Report};
use crate::state::gate::receipt::PublicKey;
use crate::state::people::Purpose;

impl Report {
    /// Whether it has every record that its checkpoint has, and that is at least one.
    #[must_use]
    pub fn shows_all(&self) -> bool {
        let all = |range: Range, size| range.complete && range.from == 0 && range.to == size && size > 0;
        self.range.zip(self.checkpoint.as_ref()).is_some_and(|(range, it)| all(range, it.size))
    }

    /// Which of the checkpoint's records it has, in words: `0 to 39 of 60`.
    #[must_use]
    pub fn stretch(&self) -> Option<String> {
        let (range, checkpoint) = self.range.zip(self.checkpoint.as_ref())?;
        let chosen = if range.complete { "" } else { ", chosen by agent" };
        if self.records == 0 {
            return Some(format!("none of {}{chosen}", checkpoint.size));
        }
        Some(format!("{} to {} of {}{chosen}", range.from, range.to.saturating_sub(1), checkpoint.size))
    }
}

/// The records behind the last that a bundle has room for, up to the checkpoint's end.
fn missing_behind(range: Range, size: u64) -> Option<String> {
    let last = size.checked_sub(1).filter(|_| range.to < size)?;
    Some(if range.to == last {
        format!("record {last}, which the checkpoint has: it is not here")
    } else {
        format!("records {} to {last}, which the checkpoint has: they are not here", range.to)
    })
}

impl Checked {
    pub(super) fn not_proven(&self) -> Vec<String> {
        let mut out = vec![NOT_COMPARED.to_owned()];
        // Times of keys are the bundle's own word as well, of which `docs/evidence.md` speaks.
        let signed = |key: &&PublicKey| self.signed_by.contains(&(Purpose::Receipt.as_str(), key.kid().to_owned()));
        out.extend(self.keys_of(Purpose::Receipt).filter(signed).filter_map(retired));
        let range = self.range.unwrap_or(Range { from: 0, to: 0, complete: true });
        if !range.complete {
            out.push("that no record was left out: they were chosen by agent".to_owned());
        }
        if range.from > 0 {
            let unseen = self.replay.unseen;
            out.push(format!("what happened before record {}, of which {unseen} actions here speak", range.from));
        }
        let size = self.checkpoint.as_ref().map_or(0, |it| it.size);
        out.extend(missing_behind(range, size));
        out.push(not_compared(self.previous.as_ref()));
        let hidden = self.committed.saturating_sub(self.disclosed);
        if hidden > 0 {
            out.push(format!("{hidden} personal texts, which were erased or are not shown"));
        }
        if self.truncated == Some(true) {
            out.push("what follows: ask for the rest with `nextCursor`".to_owned());
        }
        out
    }
}
