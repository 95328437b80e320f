//! How far a workspace's daily sweep has come: idempotency keys that are no longer kept, what refused requests of stopped
//! agents carried, calls that came to their end, and, where a setting says so, what is personal in old actions.

use serde::{Deserialize, Serialize};

use crate::value::id::{ActionId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// How often a workspace is swept.
pub const SWEEP_EVERY: Span = Span::hours(24);
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
