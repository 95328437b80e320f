//! What the gate would say of an action asked for again with something changed, for whoever explains what it said.

use super::authorize::weigh;
use super::caller::{Caller, caller_agent};
use super::evaluate::Evaluation;
use super::hold::held_by;
use crate::refusal::Refusal;
use crate::state::gate::{Action, Agent, Details, Effect, Payload, Request};
use crate::state::people::Workspace;
use crate::turn::{Halt, Scope};
use crate::value::json::Json;

/// What would be said of the same action now, with this amount in the place of its own where one is given, beside all that counts: the
/// action too while it waits, which nobody can take back. Nothing where its agent is stopped, or where what was asked is not known any
/// more. Run it where nothing is kept.
///
/// # Errors
/// `internal` where a row that is always there is not.
pub fn would(scope: &mut Scope<'_>, action: &Action, amount: Option<i64>) -> Result<Option<Evaluation>, Halt> {
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    if action.erased || !agent.is_active() || held_by(scope, &workspace, agent.id)?.is_some() {
        return Ok(None);
    }
    let mut request = request_again(scope, action)?;
    if let (Some(payment), Some(amount)) = (&mut request.payment, amount) {
        payment.amount = amount;
    }
    Ok(Some(weigh(scope, &agent, &workspace, &request, None)?.verdict))
}

/// Whether an agent that asked for this now would be denied, or told that it is stopped. Run it where nothing is kept.
///
/// # Errors
/// `invalid_api_key`, `agent_not_found`; `internal` where a row that is always there is not.
pub fn is_denied(scope: &mut Scope<'_>, caller: &Caller, request: &Request) -> Result<bool, Halt> {
    let agent = caller_agent(scope, caller)?;
    let workspace = scope.get::<Workspace>(caller.workspace)?.ok_or_else(Refusal::internal)?;
    if !agent.is_active() || held_by(scope, &workspace, agent.id)?.is_some() {
        return Ok(true);
    }
    Ok(weigh(scope, &agent, &workspace, request, None)?.verdict.effect == Effect::Deny)
}

/// What was asked, as far as a decision rests on it.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn request_again(scope: &mut Scope<'_>, action: &Action) -> Result<Request, Halt> {
    let payload = if action.payload { scope.get::<Payload>(action.id)? } else { None };
    let details = payload.and_then(|it| Json::parse(it.details.as_ref()?.as_bytes()).ok());
    Ok(Request::again(action, details.and_then(|it| Details::of(&it).ok())))
}
