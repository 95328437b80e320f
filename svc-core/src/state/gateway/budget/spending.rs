//! What has been spent and reserved of a budget in its running period.
//!
//! A call posts to the period that it was admitted in: one that ends after its period does changes nothing here. So the
//! period's sums are those of calls admitted in it, and a period begins with nothing spent and nothing reserved.
//!
//! **Invariant:** where budgets are enforced, no admission takes `spent + reserved` past `stop`.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Budget, BudgetScope, Rung, Step};
use crate::refusal::Lack;
use crate::state::gateway::{CallBudget, Mode};
use crate::state::people::Settings;
use crate::value::id::{ApprovalId, BudgetId};
use crate::value::link::{Link, Linked};
use crate::value::{MicroUsd, Span, Timestamp};

/// What has been used of a budget.
///
/// Single reservations are members of the calls that made them: a budget may have thousands of open calls, and this row is
/// written with each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetUse {
    /// Of which budget.
    pub budget: BudgetId,
    /// When the running period began.
    pub start: Timestamp,
    /// How often a period has begun since the budget was made: one that is begun anew, as after a clock was ahead, has the start of
    /// the one before it. 0 in rows of an older release.
    #[serde(default, skip_serializing_if = "is_first")]
    pub generation: u32,
    /// When it ends; absent where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// What calls of this period have cost.
    #[serde(default)]
    pub spent: MicroUsd,
    /// What running calls of this period may yet cost.
    #[serde(default)]
    pub reserved: MicroUsd,
    /// How many calls of this period are running.
    #[serde(default)]
    pub open: u32,
    /// What a person has set this period's allocation to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<MicroUsd>,
    /// Before so much is used nobody is asked again: what a person has agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<MicroUsd>,
    /// The steps that the ledger has of this period.
    #[serde(default, skip_serializing_if = "ToldSteps::is_empty")]
    pub told: ToldSteps,
    /// The latest approval that was asked for in this period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<ApprovalId>,
}

/// Whether a period is of the first generation.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
pub(in crate::state) const fn is_first(generation: &u32) -> bool {
    *generation == 0
}

/// Read by its budget's id alone.
impl Linked for BudgetUse {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// The steps that the ledger has of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredSteps")]
pub struct ToldSteps {
    /// Those that what was spent and reserved together has led to. A reservation may be given back, so each of them is told again
    /// once that much is spent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    used: BTreeSet<Step>,
    /// Those that what was spent has led to.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    spent: BTreeSet<Step>,
}

impl ToldSteps {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty() && self.spent.is_empty()
    }
}

/// The forms in which rows have it: earlier ones have the highest step alone, of which nobody knows whether that much was spent.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredSteps {
    Highest(Step),
    Steps {
        #[serde(default)]
        used: BTreeSet<Step>,
        #[serde(default)]
        spent: BTreeSet<Step>,
    },
}

impl From<StoredSteps> for ToldSteps {
    fn from(stored: StoredSteps) -> Self {
        match stored {
            StoredSteps::Highest(highest) => {
                let used = Step::ALL.into_iter().filter(|it| *it <= highest).collect();
                Self { used, spent: BTreeSet::new() }
            }
            StoredSteps::Steps { used, spent } => Self { used, spent },
        }
    }
}

/// What a budget says of a call before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Which budget.
    pub budget: BudgetId,
    /// What it is over.
    pub scope: BudgetScope,
    /// The step that the call meets, if any: `stop` where the call would pass it, else the highest other one that is reached.
    pub step: Option<Step>,
    /// Whether the call is refused for it. Never in shadow, where [`step`](Self::step) says what would have been.
    pub refuses: bool,
    /// Why there is no room where that step is `stop`.
    pub lack: Lack,
    /// Whether the budget ever refuses a call.
    pub may_refuse: bool,
    /// What was spent before the call.
    pub spent: MicroUsd,
    /// What was reserved before the call.
    pub reserved: MicroUsd,
    /// What may be spent in this period.
    pub allocation: MicroUsd,
    /// When the period ends; absent where it never does.
    pub end: Option<Timestamp>,
}

impl BudgetUse {
    /// How a budget that nothing was spent of yet begins the period that `now` lies in.
    #[must_use]
    pub fn begin(budget: &Budget, now: Timestamp, settings: &Settings) -> Self {
        let (start, end) = budget.period.bounds(now, budget.created_at, settings);
        Self {
            budget: budget.id,
            start,
            generation: 0,
            end,
            spent: MicroUsd::ZERO,
            reserved: MicroUsd::ZERO,
            open: 0,
            raised: None,
            agreed: None,
            told: ToldSteps::default(),
            asked: None,
        }
    }

    /// The use as it is at `now`: this one while its period runs, else a new period's. A running period ends as it began,
    /// whatever zone the workspace has meanwhile; the next begins where it ended at the earliest. One that is yet to begin was begun by
    /// a clock that was ahead: it would gather all that is spent until its time has come, so it does not run.
    #[must_use]
    pub fn at(&self, budget: &Budget, now: Timestamp, settings: &Settings) -> Self {
        match self.end {
            Some(_) if self.start.is_ahead_of(now) => self.anew(budget, now, settings),
            Some(end) if now >= end => {
                let begun = self.anew(budget, now, settings);
                Self { start: begun.start.max(end), ..begun }
            }
            Some(_) | None => self.clone(),
        }
    }

    /// The period that `now` lies in, of another generation than this one.
    fn anew(&self, budget: &Budget, now: Timestamp, settings: &Settings) -> Self {
        Self { generation: self.generation.saturating_add(1), ..Self::begin(budget, now, settings) }
    }

    /// What may be spent in this period: the budget's amount, or what a person has raised it to where that is more.
    #[must_use]
    pub fn allocation(&self, budget: &Budget) -> MicroUsd {
        self.raised.map_or(budget.amount, |it| it.max(budget.amount))
    }

    /// This period's allocation where `more` may be spent than until now. In shadow, and by a call that began below the line, more is
    /// used than was allotted: that takes nothing of it, or a person would say yes and the next call would be refused again. Where
    /// the line is above the allocation, it rises by no more than was agreed to.
    #[must_use]
    pub fn allocation_with(&self, budget: &Budget, more: MicroUsd) -> MicroUsd {
        let of_line = |it: MicroUsd| it.min(budget.ladder.asks_at(it));
        self.allocation(budget).max(of_line(self.used())).plus(of_line(more))
    }

    /// What has to be used before a person is asked anew, where they agree to `more` now: it counts from the line at which they were asked,
    /// or from what is used where that is beyond it. A line below the allocation rises by less than the allocation does.
    #[must_use]
    pub fn asks_from(&self, budget: &Budget, more: MicroUsd) -> MicroUsd {
        budget.ladder.asks_of(self.allocation(budget)).max(self.used()).plus(more)
    }

    /// What is spent and reserved together.
    #[must_use]
    pub const fn used(&self) -> MicroUsd {
        self.spent.plus(self.reserved)
    }

    /// What the budget says of a call that costs at most `micros`. Nothing changes.
    #[must_use]
    pub fn admit(&self, budget: &Budget, micros: MicroUsd, mode: Mode) -> Admission {
        let (used, allocation) = (self.used(), self.allocation(budget));
        let step = if budget.ladder.stops(used.plus(micros), allocation) {
            Some(Step::Stop)
        } else {
            budget.ladder.reached(used, allocation, used >= self.agreed.unwrap_or_default())
        };
        let asks = |sum: MicroUsd| {
            budget.ladder.reached(sum, allocation, sum >= self.agreed.unwrap_or_default()) >= Some(Step::Approval)
        };
        let lack = if step == Some(Step::Approval) {
            if asks(self.spent) { Lack::Spent } else { Lack::Held }
        } else if budget.ladder.stops(self.spent.plus(MicroUsd::new(1)), allocation) {
            Lack::Spent
        } else if budget.ladder.stops(self.spent.plus(micros), allocation) {
            Lack::TooSmall
        } else {
            Lack::Held
        };
        Admission {
            budget: budget.id,
            scope: budget.scope.clone(),
            step,
            lack,
            refuses: mode == Mode::Enforce && step.is_some_and(Step::refuses),
            may_refuse: budget.ladder.refuses(),
            spent: self.spent,
            reserved: self.reserved,
            allocation,
            end: self.end,
        }
    }

    /// Reserves a call's worst case. What is given back is the call's to keep: the period that it posts to.
    pub fn reserve(&mut self, micros: MicroUsd) -> CallBudget {
        self.reserved = self.reserved.plus(micros);
        self.open = self.open.saturating_add(1);
        CallBudget { id: self.budget, period: self.start, generation: self.generation, past_stop: false }
    }

    /// A call has come to its end, or lapsed and is charged its estimate: its cost replaces what it reserved. Whether it was
    /// a call of this period; one of another changes nothing.
    pub fn settle(&mut self, call: &CallBudget, reserved: MicroUsd, cost: MicroUsd) -> bool {
        if !self.is_of(call) {
            return false;
        }
        self.reserved = self.reserved.less(reserved);
        self.open = self.open.saturating_sub(1);
        self.spent = self.spent.plus(cost);
        true
    }

    /// Whether a call was admitted in this very period.
    #[must_use]
    pub fn is_of(&self, call: &CallBudget) -> bool {
        (call.id, call.period, call.generation) == (self.budget, self.start, self.generation)
    }

    /// Another attempt of a running call takes the place of the one before, which is charged `cost`: the same call, so it is
    /// counted once. Whether it was a call of this period.
    pub fn again(&mut self, call: &CallBudget, reserved: MicroUsd, cost: MicroUsd, micros: MicroUsd) -> bool {
        let counted = self.settle(call, reserved, cost);
        if counted {
            self.reserve(micros);
        }
        counted
    }

    /// Sets this period's allocation.
    pub fn raise(&mut self, allocation: MicroUsd) {
        self.raised = Some(allocation);
        self.told = ToldSteps::default();
    }

    /// The steps that are reached now and that the ledger has not of this period; from here on it has them. `stop` is reached by
    /// what is spent, any other step by `used` too, which is what is spent and reserved where a call is looked at; `refused` is the
    /// step that refuses it. What a reservation has led to is told once more when that much is spent.
    pub fn news(&mut self, budget: &Budget, used: MicroUsd, refused: Option<Step>) -> Vec<Rung> {
        let allocation = self.allocation(budget);
        let asks = |sum: MicroUsd| sum >= self.agreed.unwrap_or_default();
        let passed = |sum| budget.ladder.passed(MicroUsd::ZERO, sum, allocation);
        let of = |sum| passed(sum).filter(|it| it.step != Step::Approval || asks(sum)).collect::<Vec<_>>();
        let (spent, used) = (of(self.spent), of(used));
        let mut news = Vec::new();
        for rung in budget.ladder.rungs() {
            let step = rung.step;
            let is_used = refused == Some(step) || (step != Step::Stop && used.contains(rung));
            // What both lead to is told once.
            let is_new = if spent.contains(rung) {
                self.told.used.insert(step);
                self.told.spent.insert(step)
            } else {
                is_used && self.told.used.insert(step)
            };
            if is_new {
                news.push(*rung);
            }
        }
        news
    }
}

impl Admission {
    /// What was spent and reserved together before the call.
    #[must_use]
    pub const fn used(&self) -> MicroUsd {
        self.spent.plus(self.reserved)
    }

    /// What a caller is told beside the answer, where another header names the scope: nothing while no more than `observe` is
    /// reached.
    #[must_use]
    pub fn advisory(&self, mode: Mode) -> Option<String> {
        let step = self.step.filter(|it| *it > Step::Observe)?;
        let used = self.used();
        let share = u128::from(used.get()).saturating_mul(100).checked_div(self.allocation.get().into()).unwrap_or(0);
        // `stop` is what the call meets; the budget itself has come to it where all is spent alone.
        let what = match (step, self.lack) {
            (Step::Stop, Lack::Held) => ", running calls hold what is left of it".to_owned(),
            (Step::Stop, Lack::TooSmall) => ", this call may cost more than is left of it".to_owned(),
            _ => format!(", step {}", step.as_str()),
        };
        let would = match (step, mode) {
            (Step::Stop, Mode::Shadow) if self.lack == Lack::TooSmall => " and would be refused if enforced",
            (Step::Approval | Step::Stop, Mode::Shadow) => ", this call would be refused if enforced",
            (Step::Downgrade, Mode::Shadow) => ", a cheaper model would be chosen if enforced",
            (Step::Downgrade, Mode::Enforce) => ", cheaper models are preferred",
            _ => "",
        };
        Some(format!("budget {} is at {share}% of its allocation{what}{would}", self.budget))
    }

    /// Whole seconds until the period ends, at least 1; `None` where it never does.
    #[must_use]
    pub fn retry_after_s(&self, now: Timestamp) -> Option<u32> {
        let left: Span = self.end?.since(now);
        let seconds = left.as_millis().saturating_add(999).div_euclid(1_000);
        Some(u32::try_from(seconds.max(1)).unwrap_or(u32::MAX))
    }
}

/// The one of several budgets that speaks for all: the gravest step, refusals first, and within it the narrowest scope; of
/// two as narrow the older budget.
#[must_use]
pub fn strictest(admissions: &[Admission]) -> Option<&Admission> {
    admissions.iter().max_by_key(|it| (it.refuses, it.step, Reverse((it.scope.width(), it.budget))))
}

#[cfg(test)]
mod tests;
