//! How far a workspace's daily sweep has come: idempotency keys that are no longer kept, what refused requests of stopped
//! agents carried, calls that came to their end, and, where a setting says so, what is personal in old actions.

use serde::{Deserialize, Serialize};

use crate::value::id::{ActionId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// How often a workspace is swept.
pub const SWEEP_EVERY: Span = Span::hours(24);
/// How long after its time a sweep may begin. One that is later comes after a stop, or the clock has leapt.
const LATE: Span = Span::minutes(5);
/// How long a late sweep waits: a clock that is ahead for a moment lets go of nothing, and after a stop nothing hurries.
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
        Self { workspace, due: now.plus(SWEEP_EVERY), retention_days, closed_to: None, erased_to: None }
    }

    /// Whether `now` is so long after it was due that nobody knows whether a server was off until now or the clock is ahead. What a sweep
    /// lets go of is gone, so it waits a little.
    #[must_use]
    pub fn is_late(&self, now: Timestamp) -> bool {
        now.since(self.due) > LATE
    }

    /// Whether a clock that was ahead has put it off.
    #[must_use]
    pub const fn is_put_off(&self, now: Timestamp) -> bool {
        self.due.is_ahead_of(now.plus(SWEEP_EVERY))
    }

    /// When it is due next, as of `now`; `None` where it is only to wait.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        if self.is_put_off(now) {
            Some(now)
        } else if self.is_late(now) {
            Some(now.plus(LATE_WAITS))
        } else if self.due <= now {
            Some(self.due.plus(SWEEP_EVERY))
        } else {
            None
        }
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
