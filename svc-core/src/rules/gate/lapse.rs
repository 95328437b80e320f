//! An action that nobody settled: what it held is posted in full. Time releases nothing.

use super::hold::held_by;
use super::posting;
use super::record::ActionRecord;
use crate::refusal::Refusal;
use crate::state::evidence::Actor;
use crate::state::gate::{Action, Activity, Agent, Lapse, State, Status};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::ActionId;

/// Posts an unsettled action a day after its receipt expired.
///
/// # Errors
/// [`Halt::Load`] alone; what is settled, posted or not due is left as it is.
pub fn lapse(scope: &mut Scope<'_>, id: ActionId) -> Result<(), Halt> {
    let now = scope.now();
    let Some(action) = scope.get::<Action>(id)? else { return Ok(()) };
    let open = action.allowed().filter(|it| it.outcome.is_none() && it.lapsed.is_none());
    let (Some(_), Some(held)) = (open.filter(|it| now >= it.lapse_at()), action.held()) else { return Ok(()) };
    scope.want(&[Agent::key(action.agent), Activity::key(action.agent), Workspace::key(action.workspace)])?;
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    let stored = scope.get::<Activity>(action.agent)?.ok_or_else(Refusal::internal)?;
    let stopped = held_by(scope, &workspace, agent.id)?.map(|it| it.at);
    let read_as = action.status(&agent, stopped, now);
    let mut lapsed = Action::clone(&action);
    if let State::Allowed(allowed) = &mut lapsed.state {
        allowed.lapsed = Some(if read_as == Status::Revoked { Lapse::Revoked } else { Lapse::Lapsed });
    }
    let spent = held.1.amount.map_or(0, |(amount, _)| amount);
    let mut activity = Activity::clone(&stored);
    posting::post(&mut activity, held, spent);
    let status = lapsed.status(&agent, stopped, now);
    let mut more = vec![("outcome", "\"lapsed\"".to_owned())];
    if let Some(payment) = &lapsed.payment {
        // The ledger tells what was posted, also where the mandate has no sum that it was posted to.
        more.push(("posted", payment.amount.to_string()));
        more.push(("released", "0".to_owned()));
    }
    let verb = lapsed.verb(status);
    let record =
        ActionRecord { kind: "action.lapsed", actor: Actor::Timer, action: &lapsed, agent: &agent, verb, status };
    lapsed.evidence = scope.append(agent.workspace, record.fact(&more));
    scope.put(activity);
    scope.put(lapsed);
    Ok(())
}
