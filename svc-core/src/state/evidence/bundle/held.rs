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
    /// The bundle that is held has no checkpoint.
    #[error("the bundle that you hold has no checkpoint")]
    NoneHeld,
}

impl Report {
    /// The report for a reader who holds `held`, from an earlier bundle or a note: it says that the ledger was rewritten where its root is
    /// another for the same number of records, that records are missing where it has fewer or begins behind what they have, and else that
    /// it continues that.
    ///
    /// # Errors
    /// [`NotComparable`] where the bundle does not speak of that checkpoint.
    pub fn against(self, held: &Checkpoint) -> Result<Self, NotComparable> {
        self.compared(held, held.size)
    }

    /// The same for a reader who holds the bundle `earlier`, whose records may end before its checkpoint does: it is one part of several.
    ///
    /// # Errors
    /// As [`against`](Self::against), and where that bundle has no checkpoint.
    pub fn against_bundle(self, earlier: &Self) -> Result<Self, NotComparable> {
        let held = earlier.checkpoint.as_ref().ok_or(NotComparable::NoneHeld)?;
        let report = self.compared(held, earlier.range.map_or(held.size, |it| it.to))?;
        Ok(report.behind_a_choice(earlier))
    }

    /// That what is held and what is here are all records from the first that is held on: one that was chosen by agent leaves others out.
    fn behind_a_choice(self, earlier: &Self) -> Self {
        let (Some(held), Some(own)) = (earlier.range.filter(|it| !it.complete), self.range) else { return self };
        if self.verdict != Verdict::Whole || own.from <= held.from {
            return self;
        }
        let what =
            format!("of the records before {} you hold a choice by agent alone, and the others are not here", own.from);
        self.judged(Verdict::Incomplete, what)
    }

    /// `end` is the number behind the last record that is held.
    fn compared(mut self, held: &Checkpoint, end: u64) -> Result<Self, NotComparable> {
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
            return Ok(self.adjoining(end));
        }
        let what = format!(
            "the checkpoint of {} records is not the one that you hold, whose root is {}: records of before were rewritten",
            held.size, held.root
        );
        // What else does not fit was found first, and stays.
        Ok(if self.fits() { self.judged(Verdict::Tampered, what) } else { self })
    }

    /// That no record lies between those that are held, which end before `end`, and those here.
    fn adjoining(self, end: u64) -> Self {
        let Some(range) = self.range.filter(|it| it.from > end && self.verdict == Verdict::Whole) else { return self };
        let last = range.from.saturating_sub(1);
        let which = if last == end { format!("record {end} is") } else { format!("records {end} to {last} are") };
        self.judged(Verdict::Incomplete, format!("{which} neither here nor in what you hold"))
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
