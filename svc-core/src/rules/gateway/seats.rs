//! What a plan allows of a month: requests, and people. Looked at only where the plan has such limits.

use super::admit::AdmitCall;
use crate::refusal::Refusal;
use crate::state::gateway::{Month, MonthId, PlanLimit, grace_advisory, until_next_month};
use crate::state::people::Workspace;
use crate::turn::{Halt, Scope};
use crate::value::id::PrincipalId;

/// Counts a call for `principal` in its month; what is told of it while the days of grace run, or the refusal.
pub(super) fn count(
    scope: &mut Scope<'_>,
    asked: &AdmitCall,
    workspace: &Workspace,
    principal: PrincipalId,
) -> Result<Result<Option<String>, Refusal>, Halt> {
    let allowance = asked.plans.of(workspace.plan);
    if !Month::is_kept(allowance) {
        return Ok(Ok(None));
    }
    let (now, zone) = (scope.now(), &workspace.settings.timezone);
    let id = MonthId::at(workspace.id, now, zone);
    let mut month = scope.get::<Month>(id)?.map_or_else(|| Month::new(id), |it| Month::clone(&it));
    let counted = month.count(principal, now, allowance);
    // A request whose tokens are only counted is none of the month's, nor is a dry run.
    if !asked.count && !asked.dry {
        scope.put(month);
    }
    Ok(match counted {
        Ok(ends) => Ok(ends.map(|it| grace_advisory(it, now, zone))),
        Err(PlanLimit::Requests) => Err(Refusal::plan_requests(until_next_month(now, zone))),
        Err(PlanLimit::Seats) => Err(Refusal::seat_limit_reached()),
    })
}
