//! The steps by which a budget makes itself felt, and at which parts of its allocation.

use serde::{Deserialize, Serialize};

use crate::refusal::FieldError;
use crate::value::MicroUsd;
use crate::value::words::words;

/// What a budget does, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is only told in the answer.
    Observe,
    /// The answer advises to spend less.
    Nudge,
    /// A cheaper model is chosen.
    Downgrade,
    /// Calls are refused until a person approves more.
    Approval,
    /// Calls are refused until the period ends.
    Stop,
}

words! {
    /// In the order in which they may stand on a ladder.
    Step;
    Observe "observe";
    Nudge "nudge";
    Downgrade "downgrade";
    Approval "approval";
    Stop "stop";
}

impl Step {
    /// Whether it refuses calls where budgets are enforced.
    #[must_use]
    pub const fn refuses(self) -> bool {
        matches!(self, Self::Approval | Self::Stop)
    }
}

/// One step and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rung {
    /// At so many percent of the allocation: 0 to 1,000.
    pub at: u16,
    /// What happens there.
    pub step: Step,
}

/// The steps of a budget, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ladder(Vec<Rung>);

/// `observe` at 0, `nudge` at 80, `downgrade` at 90, `approval` at 100, `stop` at 120.
impl Default for Ladder {
    fn default() -> Self {
        let rungs = Step::ALL.into_iter().zip([0, 80, 90, 100, 120]);
        Self(rungs.map(|(step, at)| Rung { at, step }).collect())
    }
}

impl Ladder {
    /// The highest percentage at which a step may stand.
    pub const AT_MAX: u16 = 1_000;

    /// A ladder of these steps: `at` from 0 to 1,000 and strictly ascending, each step at most once and in their order.
    ///
    /// # Errors
    /// Every fault, with its path under `ladder`.
    pub fn of(rungs: Vec<Rung>) -> Result<Self, Vec<FieldError>> {
        let placed: Vec<(usize, Rung)> = rungs.iter().copied().enumerate().collect();
        let faults = Self::faults(&placed);
        if faults.is_empty() { Ok(Self(rungs)) } else { Err(faults) }
    }

    /// What is wrong with steps, each with its place: how they follow each other is looked at of those that could be read.
    #[must_use]
    pub fn faults(rungs: &[(usize, Rung)]) -> Vec<FieldError> {
        let mut faults = Vec::new();
        let mut before: Option<Rung> = None;
        for (place, rung) in rungs {
            if rung.at > Self::AT_MAX {
                faults.push(FieldError::new(format!("ladder.{place}.at"), "must be between 0 and 1000"));
            }
            if before.is_some_and(|it| it.at >= rung.at) {
                faults.push(FieldError::new(format!("ladder.{place}.at"), "must be above the one before"));
            }
            if rungs.iter().take_while(|it| it.0 < *place).any(|it| it.1.step == rung.step) {
                faults.push(FieldError::new(format!("ladder.{place}.step"), "must not be there twice"));
            } else if before.is_some_and(|it| it.step > rung.step) {
                let clause = "must come in the order observe, nudge, downgrade, approval, stop";
                faults.push(FieldError::new(format!("ladder.{place}.step"), clause));
            }
            before = Some(*rung);
        }
        faults
    }

    /// The steps, ascending.
    #[must_use]
    pub fn rungs(&self) -> &[Rung] {
        &self.0
    }

    /// Whether it ever refuses a call.
    #[must_use]
    pub fn refuses(&self) -> bool {
        self.0.iter().any(|it| it.step.refuses())
    }

    /// Where a step stands.
    #[must_use]
    pub fn at(&self, step: Step) -> Option<u16> {
        self.0.iter().find(|it| it.step == step).map(|it| it.at)
    }

    /// The highest step but `stop` that `used` of an allocation has come to; `approval` is none where nobody `asks`.
    #[must_use]
    pub fn reached(&self, used: MicroUsd, allocation: MicroUsd, asks: bool) -> Option<Step> {
        let below = self.0.iter().filter(|it| it.step != Step::Stop && (asks || it.step != Step::Approval));
        below.take_while(|it| hundredfold(used) >= share(allocation, it.at)).last().map(|it| it.step)
    }

    /// The largest allocation of which `used` has come to the step `approval`; `used` itself where no such step is above 0.
    #[must_use]
    pub fn asks_at(&self, used: MicroUsd) -> MicroUsd {
        let at = self.at(Step::Approval).filter(|at| *at > 0).unwrap_or(100);
        let most = hundredfold(used).checked_div(at.into()).unwrap_or(u128::MAX);
        MicroUsd::new(u64::try_from(most).unwrap_or(u64::MAX))
    }

    /// The amount at which an allocation has come to the step `approval`; nothing where there is no such step.
    #[must_use]
    pub fn asks_of(&self, allocation: MicroUsd) -> MicroUsd {
        let line = self.at(Step::Approval).map_or(0, |at| share(allocation, at).div_ceil(100));
        MicroUsd::new(u64::try_from(line).unwrap_or(u64::MAX))
    }

    /// Whether `used` of an allocation would pass `stop`; what comes to it exactly does not.
    #[must_use]
    pub fn stops(&self, used: MicroUsd, allocation: MicroUsd) -> bool {
        self.at(Step::Stop).is_some_and(|at| hundredfold(used) > share(allocation, at))
    }

    /// Every step that stands between `low` of an allocation, left out, and `high`, taken in; a step at 0 is no news.
    pub fn passed(&self, low: MicroUsd, high: MicroUsd, allocation: MicroUsd) -> impl Iterator<Item = Rung> {
        self.0.iter().copied().filter(move |it| {
            let line = share(allocation, it.at);
            it.at > 0 && hundredfold(low) < line && line <= hundredfold(high)
        })
    }
}

/// The largest amount stands for every sum beyond it, so it is past every line.
fn hundredfold(amount: MicroUsd) -> u128 {
    if amount == MicroUsd::MAX { u128::MAX } else { u128::from(amount.get()).saturating_mul(100) }
}

fn share(allocation: MicroUsd, at: u16) -> u128 {
    u128::from(allocation.get()).saturating_mul(at.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(rungs: &[(u16, Step)]) -> Vec<String> {
        let rungs = rungs.iter().map(|(at, step)| Rung { at: *at, step: *step }).collect();
        let faults = Ladder::of(rungs).err().unwrap_or_default();
        faults.into_iter().filter_map(|it| it.field.map(String::from)).collect()
    }

    /// The default ladder is the agreed one and in order.
    #[test]
    fn the_default_ladder_is_the_agreed_one() {
        let ladder = Ladder::default();
        let told: Vec<_> = ladder.rungs().iter().map(|it| (it.at, it.step.as_str())).collect();
        assert_eq!(told, [(0, "observe"), (80, "nudge"), (90, "downgrade"), (100, "approval"), (120, "stop")]);
        assert_eq!(Ladder::of(ladder.rungs().to_vec()), Ok(ladder));
    }

    /// Every fault of a ladder is named: a share out of bounds, one that does not ascend, a step twice, a step out of order.
    #[test]
    fn every_fault_of_a_ladder_is_named() {
        assert!(fields(&[]).is_empty() && fields(&[(0, Step::Observe), (1_000, Step::Stop)]).is_empty());
        assert_eq!(fields(&[(1_001, Step::Stop)]), ["ladder.0.at"]);
        assert_eq!(fields(&[(50, Step::Nudge), (50, Step::Stop)]), ["ladder.1.at"]);
        assert_eq!(fields(&[(50, Step::Nudge), (60, Step::Nudge)]), ["ladder.1.step"]);
        assert_eq!(fields(&[(50, Step::Stop), (60, Step::Nudge)]), ["ladder.1.step"]);
        let many = fields(&[(90, Step::Stop), (80, Step::Nudge), (2_000, Step::Stop)]);
        assert_eq!(many, ["ladder.1.at", "ladder.1.step", "ladder.2.at", "ladder.2.step"]);
    }

    /// Without `approval` and `stop` nothing is ever refused.
    #[test]
    fn a_ladder_without_its_last_steps_refuses_nothing() {
        let of = |rungs: &[Rung]| Ladder::of(rungs.to_vec()).is_ok_and(|it| it.refuses());
        let [observe, nudge, downgrade, approval, stop] = Step::ALL.map(|step| Rung { at: step as u16 * 10, step });
        assert!(!of(&[]) && !of(&[observe, nudge, downgrade]));
        assert!(of(&[observe, approval]) && of(&[stop]));
    }

    /// A step is reached at its share, and `stop` is passed above its own.
    #[test]
    fn steps_are_reached_at_their_share() {
        let (ladder, of) = (Ladder::default(), MicroUsd::new(1_000));
        let reached = |used| ladder.reached(MicroUsd::new(used), of, true);
        assert_eq!(
            [0, 799, 800, 900, 999, 1_000, 5_000].map(reached),
            [
                Some(Step::Observe),
                Some(Step::Observe),
                Some(Step::Nudge),
                Some(Step::Downgrade),
                Some(Step::Downgrade),
                Some(Step::Approval),
                Some(Step::Approval),
            ]
        );
        assert!(!ladder.stops(MicroUsd::new(1_200), of) && ladder.stops(MicroUsd::new(1_201), of));
        assert!(ladder.stops(MicroUsd::MAX, MicroUsd::new(1)), "it is far beyond");
        assert!(
            ladder.stops(MicroUsd::MAX, MicroUsd::MAX),
            "a sum that can be counted no further is beyond any budget"
        );
        let passed =
            |low, high| ladder.passed(MicroUsd::new(low), MicroUsd::new(high), of).map(|it| it.at).collect::<Vec<_>>();
        assert_eq!(passed(0, 1_200), [80, 90, 100, 120]);
        assert_eq!(passed(800, 900), [90]);
        assert!(passed(900, 999).is_empty());
    }
}
