//! How much of a mandate's limits a period is used: the very sums that decisions go by, as they stand. Nothing here decides.
//!
//! **Invariant:** it takes two rows, of however many mandates it is told and whatever their agent has done.

use super::mandates::Held;
use crate::refusal::Refusal;
use crate::state::gate::{Activity, Tally};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::{AgentId, WorkspaceId};

/// What a mandate's running periods hold. A period that has ended holds nothing: the one after it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The sum that `limits.perPeriod` is held against, where the mandate has that limit.
    pub spend: Option<Tally>,
    /// The sum that `limits.count` is held against, where the mandate has that limit.
    pub count: Option<Tally>,
}

/// What the running periods of mandates of one `agent` hold, in their order; `None` of one that was revoked, which is used no more.
///
/// # Errors
/// `internal` where a row that is always there is not.
pub fn usage(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    agent: AgentId,
    held: &[&Held],
) -> Result<Vec<Option<Usage>>, Halt> {
    scope.want(&[Activity::key(agent), Workspace::key(workspace)])?;
    let activity = scope.get::<Activity>(agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    let (now, settings) = (scope.now(), &workspace.settings);
    let used = |held: &&Held| {
        held.grant.as_ref()?;
        let (limits, id) = (held.mandate.limits(), held.mandate.id.mandate);
        let sum = |period| activity.tally(id, period, now, settings);
        Some(Usage {
            // Without a currency it holds no payment, so none fills it.
            spend: limits.per_period.as_ref().filter(|_| limits.currency.is_some()).map(|it| sum(it.period)),
            count: limits.count.as_ref().map(|it| sum(it.period)),
        })
    };
    Ok(held.iter().map(used).collect())
}
