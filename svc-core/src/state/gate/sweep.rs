//! How far a workspace's daily sweep has come: idempotency keys that are no longer kept, what refused requests of stopped
//! agents carried, calls that came to their end, and, where a setting says so, what is personal in old actions.

use serde::{Deserialize, Serialize};

use crate::value::id::{ActionId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// How often a workspace is swept.
pub const SWEEP_EVERY: Span = Span::hours(24);
/// How long after its time a sweep may begin. One that is later comes after a stop, behind many others, from a host that looks
/// seldom, or the clock has leapt.
const LATE: Span = Span::minutes(5);
/// How long a late sweep waits, once: a clock that is ahead for a moment lets go of nothing, and after a stop nothing hurries.
const LATE_WAITS: Span = Span::hours(1);
/// How long a call to the outside is kept after it was written, once it has come to its end.
pub const JOB_KEPT: Span = Span::hours(30 * 24);

/// A workspace's sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// When it is swept next.
    pub due: Timestamp,
    /// Whether it came late and has waited for that: however late it comes again, it waits no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_waited: bool,
    /// The setting `retentionDays`, as it was put in force last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u16>,
    /// The last action whose idempotency key and refused payload were seen to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_to: Option<ActionId>,
    /// The last action that is without what is personal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_to: Option<ActionId>,
}

impl Sweep {
    /// The sweep of a workspace that is made at `now`.
    #[must_use]
    pub const fn new(workspace: WorkspaceId, retention_days: Option<u16>, now: Timestamp) -> Self {
        let due = now.plus(SWEEP_EVERY);
        Self { workspace, due, has_waited: false, retention_days, closed_to: None, erased_to: None }
    }

    /// Whether `now` is so long after it was due that nobody knows whether a server was off until now or the clock is ahead. What a sweep
    /// lets go of is gone, so it waits a little.
    #[must_use]
    pub fn is_late(&self, now: Timestamp) -> bool {
        !self.has_waited && now.since(self.due) > LATE
    }

    /// Whether a clock that was ahead has put it off.
    #[must_use]
    pub const fn is_put_off(&self, now: Timestamp) -> bool {
        self.due.is_ahead_of(now.plus(SWEEP_EVERY))
    }

    /// It with the time at which it is due next, as of `now`; `None` where it is only to wait.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Option<Self> {
        let (due, has_waited) = if self.is_put_off(now) {
            (now, false)
        } else if self.is_late(now) {
            (now.plus(LATE_WAITS), true)
        } else if self.due <= now {
            // What was late for days is swept once for all of them.
            let next = self.due.plus(SWEEP_EVERY);
            (if next > now { next } else { now.plus(SWEEP_EVERY) }, false)
        } else {
            return None;
        };
        Some(Self { due, has_waited, ..self.clone() })
    }

    /// The first place in a list of actions behind `last`.
    #[must_use]
    pub fn behind(last: Option<ActionId>) -> u128 {
        last.map_or(0, |it| it.bits().saturating_add(1))
    }
}

impl Linked for Sweep {
    fn links(&self) -> Vec<Link> {
        vec![Link::wake(self.workspace, self.due)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sweep that is late waits once: a host that looks seldom, or has many workspaces to see to, sweeps all the same.
    #[test]
    fn a_late_sweep_waits_once() {
        let begun = Timestamp::from_millis(1_790_856_000_000);
        let minutes = |count| begun.plus(SWEEP_EVERY).plus(Span::minutes(count));
        let sweep = Sweep::new(WorkspaceId::from_bits(1), Some(30), begun);
        let on_time = sweep.next(minutes(5)).map(|it| (it.due, it.has_waited));
        assert_eq!((sweep.is_late(minutes(5)), on_time), (false, Some((minutes(24 * 60), false))));
        assert!(sweep.is_late(minutes(10)));
        let waits = sweep.next(minutes(10)).unwrap_or_else(|| sweep.clone());
        assert_eq!((waits.due, waits.has_waited), (minutes(70), true));
        assert!(waits.next(minutes(69)).is_none() && !waits.is_late(minutes(90)));
        let swept = waits.next(minutes(90)).map(|it| (it.due, it.has_waited));
        assert_eq!(swept, Some((minutes(70 + 24 * 60), false)));
        let for_days = waits.next(minutes(90 * 60)).map(|it| (it.due, it.has_waited));
        assert_eq!(for_days, Some((minutes(114 * 60), false)));
        let ahead = Sweep { due: minutes(60 * 24 * 365), has_waited: true, ..sweep };
        let forward = ahead.next(minutes(0)).map(|it| (it.due, it.has_waited));
        assert_eq!(forward, Some((minutes(0), false)), "a clock that was ahead has put it off");
    }
}
