//! A bundle beside the checkpoint that its reader holds: whether the ledger is still the one that they have seen.

use super::verify::{Report, Verdict};
use crate::state::evidence::note::Checkpoint;

/// Why a bundle tells nothing of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// It is another ledger's.
    #[error("it is of another ledger, `{0}`")]
    OtherLedger(Box<str>),
    /// The bundle has no checkpoint of its size.
    #[error("the bundle has no checkpoint of its {0} records: ask for one with `since={0}`")]
    OtherSize(u64),
}

impl Report {
    /// The report for a reader who holds `held`, from an earlier bundle or a note: it says that the ledger was rewritten where its root is
    /// another for the same number of records, that records are missing where it has fewer, and else that it continues what they have.
    ///
    /// # Errors
    /// [`NotComparable`] where the bundle does not speak of that checkpoint.
    pub fn against(mut self, held: &Checkpoint) -> Result<Self, NotComparable> {
        let ends = [self.previous.as_ref(), self.checkpoint.as_ref()];
        if let Some(other) = ends.iter().flatten().find(|it| it.origin != held.origin) {
            return Err(NotComparable::OtherLedger(other.origin.clone()));
        }
        if let Some(newest) = self.checkpoint.as_ref().filter(|it| it.size < held.size) {
            let what = format!(
                "the ledger has {} records here, and you hold a checkpoint of {}: this is older than what you hold, or the ledger was put \
                 back to what it was before, and what it had since is gone",
                newest.size, held.size
            );
            return Ok(if self.fits() { self.judged(Verdict::Incomplete, what) } else { self });
        }
        let same = ends.into_iter().flatten().find(|it| it.size == held.size);
        let same = same.ok_or(NotComparable::OtherSize(held.size))?;
        if same.root == held.root {
            let unproven = not_compared(self.previous.as_ref());
            self.not_proven.retain(|it| *it != unproven);
            return Ok(self);
        }
        let what = format!(
            "the checkpoint of {} records is not the one that you hold, whose root is {}: records of before were rewritten",
            held.size, held.root
        );
        // What else does not fit was found first, and stays.
        Ok(if self.fits() { self.judged(Verdict::Tampered, what) } else { self })
    }
}

/// What a bundle does not show by itself of what its reader holds.
pub(super) fn not_compared(previous: Option<&Checkpoint>) -> String {
    match previous {
        None => "that this ledger continues one that you hold: ask with `since`".to_owned(),
        Some(it) => format!(
            "that the checkpoint of {} records, root {}, which it continues, is the one that you hold: compare them, or name yours with `--held`",
            it.size, it.root
        ),
    }
}
