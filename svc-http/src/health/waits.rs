//! How long a model lets wait, by the waits for its newest answers.

use std::collections::VecDeque;

use svc_core::value::{Span, Timestamp};

/// Waits that are remembered.
pub(super) const KEPT_MAX: usize = 9;
/// Waits of late that tell what is usual now: one slow answer is not yet a slow model.
const LATE_MIN: usize = 3;
/// After how long without another one waits are none of late any more. Whoever is called by none for being slow may be fast again:
/// the next calls show it.
const LATE: Span = Span::minutes(2);
/// For how long waits are remembered. Whoever is called by none for being slower than others is unknown again then.
const LASTS: Span = Span::minutes(60);

/// The newest waits for one model, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits(VecDeque<Wait>);

#[derive(Clone, Copy, Debug)]
struct Wait {
    ms: u64,
    /// Whether what was waited for came; else somebody gave up, and it takes at least so long.
    came: bool,
    at: Timestamp,
}

impl Waits {
    /// Something came after so many milliseconds. Where somebody gave up earlier than that, this says it better.
    pub(super) fn came(&mut self, ms: u64, now: Timestamp) {
        if let Some(place) = self.0.iter().position(|it| !it.came && it.ms <= ms) {
            self.0.remove(place);
        }
        self.push(Wait { ms, came: true, at: now });
    }

    /// Somebody gave up after so many milliseconds: nothing new where it is known to take as long.
    pub(super) fn given_up(&mut self, ms: u64, now: Timestamp) {
        if self.of_late(now).max(self.answered(now)).is_none_or(|usual| ms > usual) {
            self.push(Wait { ms, came: false, at: now });
        }
    }

    /// What is usual now, by several waits, each of which came soon after the one before: what a limit is held against.
    pub(super) fn of_late(&self, now: Timestamp) -> Option<u64> {
        let mut next = now;
        let is_late = |it: &&Wait| {
            let gap = next.since(it.at);
            next = it.at;
            gap < LATE
        };
        let late: Vec<u64> = self.0.iter().rev().take_while(is_late).map(|it| it.ms).collect();
        if late.len() < LATE_MIN { None } else { median(late) }
    }

    /// What was usual within the hour, be it by one wait: what models are ranked by. Who gave up says only that it takes longer than
    /// they waited: where nothing came, that is no speed, and nothing by which a model may pass for a fast one.
    pub(super) fn lasting(&self, now: Timestamp) -> Option<u64> {
        let answered = self.answered(now)?;
        median(self.within_the_hour(now).filter(|it| it.came || it.ms > answered).map(|it| it.ms).collect())
    }

    /// The same of what came alone.
    fn answered(&self, now: Timestamp) -> Option<u64> {
        median(self.within_the_hour(now).filter(|it| it.came).map(|it| it.ms).collect())
    }

    fn within_the_hour(&self, now: Timestamp) -> impl Iterator<Item = &Wait> {
        self.0.iter().filter(move |it| now.since(it.at) < LASTS)
    }

    fn push(&mut self, wait: Wait) {
        if self.0.len() >= KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(wait);
    }
}

/// The one in the middle, of two the lesser: what half of them pass says nothing yet.
pub(super) fn median(mut all: Vec<u64>) -> Option<u64> {
    all.sort_unstable();
    all.get(all.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Waits a second apart, from zero on, and when the last one came.
    fn after(all: &[u64]) -> (Waits, Timestamp) {
        let (mut waits, mut now) = (Waits::default(), at(0));
        for (second, ms) in (0..).zip(all) {
            now = at(second * 1_000);
            waits.came(*ms, now);
        }
        (waits, now)
    }

    /// Few waits say nothing of a limit, and of several no single one does, whichever it is: most have to be slow.
    #[test]
    fn one_slow_answer_is_not_yet_a_slow_model() {
        for (all, usual) in [
            (&[3_000, 3_000][..], None),
            (&[3_000, 0, 0], Some(0)),
            (&[0, 3_000, 0], Some(0)),
            (&[0, 0, 3_000], Some(0)),
            (&[0, 0, 3_000, 3_000], Some(0)),
            (&[3_000, 0, 3_000], Some(3_000)),
            (&[1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9], Some(1)),
            (&[1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9, 9], Some(9)),
        ] {
            let (waits, now) = after(all);
            assert_eq!(waits.of_late(now), usual, "{all:?}");
        }
    }

    /// Two minutes after the last one nothing is known of now, and what was before then weighs no more; models are ranked by it for an
    /// hour.
    #[test]
    fn what_was_waited_does_not_last() {
        let (mut waits, now) = after(&[9_000, 9_000, 9_000]);
        let later = |ms| now.plus(Span::millis(ms));
        assert_eq!((waits.of_late(later(119_999)), waits.of_late(later(120_000))), (Some(9_000), None));
        assert_eq!((waits.lasting(later(3_597_999)), waits.lasting(later(3_600_000))), (Some(9_000), None));
        for (ms, usual) in [(130_000, None), (131_000, None), (132_000, Some(100))] {
            waits.came(100, later(ms));
            assert_eq!(waits.of_late(later(ms)), usual);
        }
        assert_eq!(waits.lasting(later(132_000)), Some(100), "half of them");
    }

    /// Whoever gives up has waited for so long at least: that counts where no more is known, and until what was waited for comes.
    #[test]
    fn whoever_gives_up_has_waited() {
        let mut waits = Waits::default();
        (0..3).for_each(|it| waits.given_up(1_000, at(it)));
        assert_eq!(waits.of_late(at(3)), Some(1_000));
        (3..9).for_each(|it| waits.given_up(500, at(it)));
        assert_eq!((waits.of_late(at(9)), waits.0.len()), (Some(1_000), 3), "as long is known");
        (9..11).for_each(|it| waits.came(4_000, at(it)));
        assert_eq!((waits.of_late(at(11)), waits.0.len()), (Some(4_000), 3), "it takes longer than they waited");
        let (mut fast, now) = after(&[20, 20, 20]);
        fast.given_up(5, now);
        assert_eq!(fast.of_late(now), Some(20));
    }

    /// Whoever gives up soon makes no model a fast one, however often.
    #[test]
    fn no_impatience_makes_a_model_fast() {
        let mut slow = Waits::default();
        slow.came(3_000, at(0));
        (1..20).for_each(|it| slow.given_up(40, at(it)));
        assert_eq!((slow.lasting(at(20)), slow.of_late(at(20))), (Some(3_000), None));
        (20..23).for_each(|it| slow.given_up(9_000, at(it)));
        assert_eq!(slow.lasting(at(23)), Some(9_000), "most waited for longer");
        let mut unknown = Waits::default();
        unknown.given_up(40, at(0));
        assert_eq!(unknown.lasting(at(1)), None);
    }
}
