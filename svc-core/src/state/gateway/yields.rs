//! What models have yielded of late: which part of the tasks that were reported came out well, by class and model, over
//! thirty days. One row a workspace, read with every choice of a model.

use serde::{Deserialize, Serialize};

use super::task::TaskStatus;
use crate::value::id::WorkspaceId;
use crate::value::link::{Link, Linked};
use crate::value::text::ClassId;

/// So many days count.
pub const YIELD_DAYS: i64 = 30;
/// Pairs of a class and a model that are kept; the ones that were reported longest ago go first.
pub const YIELD_LINES_MAX: usize = 500;

/// What a workspace's models have yielded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Yields {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// By class and model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<YieldLine>,
}

/// What one model has yielded at one class of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct YieldLine {
    /// The class; absent for tasks without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassId>,
    /// The model as `provider/model`.
    pub model: Box<str>,
    /// By day in the workspace's zone, ascending: the day, how many tasks were reported, and how many of them as accepted.
    pub days: Vec<(i64, u64, u64)>,
}

/// How many tasks were reported, and how many of them as accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Yield {
    /// Tasks with an outcome.
    pub reported: u64,
    /// Tasks whose result was taken.
    pub accepted: u64,
}

impl Linked for Yields {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

impl Yields {
    /// How a workspace begins.
    #[must_use]
    pub const fn new(workspace: WorkspaceId) -> Self {
        Self { workspace, lines: Vec::new() }
    }

    /// Takes back an outcome of this model that was reported on `day`: another one is reported in its place.
    pub fn take(&mut self, class: Option<&ClassId>, model: &str, day: i64, status: TaskStatus) {
        let line = self.lines.iter_mut().find(|it| it.class.as_ref() == class && *it.model == *model);
        if let Some(it) = line.and_then(|it| it.days.iter_mut().find(|it| it.0 == day)) {
            *it = (day, it.1.saturating_sub(1), it.2.saturating_sub(accepted(status)));
        }
        self.tidy(day);
    }

    /// Adds an outcome that was reported on `day`.
    pub fn add(&mut self, class: Option<&ClassId>, model: &str, day: i64, status: TaskStatus) {
        let at = match self.lines.iter().position(|it| it.class.as_ref() == class && *it.model == *model) {
            Some(at) => at,
            None => {
                self.lines.push(YieldLine { class: class.cloned(), model: model.into(), days: Vec::new() });
                self.lines.len().saturating_sub(1)
            }
        };
        if let Some(line) = self.lines.get_mut(at) {
            let place = line.days.partition_point(|it| it.0 < day);
            if line.days.get(place).is_none_or(|it| it.0 != day) {
                line.days.insert(place, (day, 0, 0));
            }
            if let Some(it) = line.days.get_mut(place) {
                *it = (day, it.1.saturating_add(1), it.2.saturating_add(accepted(status)));
            }
        }
        self.tidy(day);
        if self.lines.len() > YIELD_LINES_MAX {
            let newest = |it: &YieldLine| it.days.last().map_or(i64::MIN, |it| it.0);
            let oldest = self.lines.iter().enumerate().min_by_key(|(_, it)| newest(it)).map(|(place, _)| place);
            if let Some(place) = oldest {
                self.lines.remove(place);
            }
        }
    }

    /// The same where a provider has another name. What models of an earlier one of that name have yielded is nobody's.
    #[must_use]
    pub fn renamed(mut self, old: &str, new: &str) -> Self {
        let below = |model: &str, provider: &str| -> Option<Box<str>> {
            Some(model.strip_prefix(provider)?.strip_prefix('/')?.into())
        };
        self.lines.retain(|it| below(&it.model, new).is_none());
        for line in &mut self.lines {
            if let Some(own) = below(&line.model, old) {
                line.model = format!("{new}/{own}").into();
            }
        }
        self
    }

    /// The same without a model that is gone, as `provider/model`: one that is made under its name begins anew.
    #[must_use]
    pub fn without(mut self, model: &str) -> Self {
        self.lines.retain(|it| *it.model != *model);
        self
    }

    /// Lets go of what counts no more on `day`.
    fn tidy(&mut self, day: i64) {
        for line in &mut self.lines {
            line.days.retain(|it| it.0 > day.saturating_sub(YIELD_DAYS) && it.1 > 0);
        }
        self.lines.retain(|it| !it.days.is_empty());
    }

    /// What a model has yielded at a class in the thirty days up to and with `today`.
    #[must_use]
    pub fn of(&self, class: Option<&ClassId>, model: &str, today: i64) -> Yield {
        let line = self.lines.iter().find(|it| it.class.as_ref() == class && *it.model == *model);
        line.map_or_else(Yield::default, |it| it.of(today))
    }
}

impl YieldLine {
    /// What it says of the thirty days up to and with `today`.
    #[must_use]
    pub fn of(&self, today: i64) -> Yield {
        let counted = self.days.iter().filter(|it| it.0 > today.saturating_sub(YIELD_DAYS) && it.0 <= today);
        counted.fold(Yield::default(), |sum, it| Yield {
            reported: sum.reported.saturating_add(it.1),
            accepted: sum.accepted.saturating_add(it.2),
        })
    }
}

const fn accepted(status: TaskStatus) -> u64 {
    match status {
        TaskStatus::Accepted => 1,
        TaskStatus::Partial | TaskStatus::Rejected | TaskStatus::Abandoned => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Id;

    /// Thirty days count, by class and model; a later report takes the place of the one before.
    #[test]
    fn thirty_days_count() {
        let mut yields = Yields::new(WorkspaceId::from_bits(1));
        let class = ClassId::parse("support.reply").ok();
        let class = class.as_ref();
        yields.add(class, "one/large", 100, TaskStatus::Accepted);
        yields.add(class, "one/large", 101, TaskStatus::Partial);
        yields.add(class, "one/small", 101, TaskStatus::Rejected);
        assert_eq!(yields.of(class, "one/large", 101), Yield { reported: 2, accepted: 1 });
        assert_eq!(yields.of(class, "one/small", 101), Yield { reported: 1, accepted: 0 });
        assert_eq!(yields.of(None, "one/large", 101), Yield::default());
        assert_eq!(yields.of(class, "one/large", 130), Yield { reported: 1, accepted: 0 }, "day 100 is over");
        yields.take(class, "one/large", 101, TaskStatus::Partial);
        yields.add(class, "one/large", 102, TaskStatus::Accepted);
        assert_eq!(yields.of(class, "one/large", 102), Yield { reported: 2, accepted: 2 });
        yields.add(class, "one/large", 200, TaskStatus::Accepted);
        assert_eq!(yields.lines.len(), 1, "what counts no more is let go of");
    }

    /// However many models and classes there are, the row stays bounded.
    #[test]
    fn the_row_is_bounded() {
        let mut yields = Yields::new(WorkspaceId::from_bits(1));
        for number in 0..=YIELD_LINES_MAX {
            yields.add(None, &format!("one/{number}"), 100 + i64::from(number > 0), TaskStatus::Accepted);
        }
        assert_eq!(yields.lines.len(), YIELD_LINES_MAX);
        assert_eq!(yields.of(None, "one/0", 101), Yield::default(), "the oldest goes");
    }
}
