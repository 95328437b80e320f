//! How much an action may pay without anybody being asked, for whoever explains what was decided about it.

use super::{authorize, payee};
use crate::refusal::Refusal;
use crate::state::gate::{Action, Agent};
use crate::turn::{Halt, Scope};

/// The most that the action's payment may be without a person being asked, by the mandates in force that spoke of it and what was
/// paid to the same payee beside it: what the action itself still counts with there is not in its own way. Nothing where no mandate sets such a line; less than one where nobody would go unasked.
///
/// # Errors
/// `internal` where a row that is always there is not.
pub fn unasked(scope: &mut Scope<'_>, action: &Action) -> Result<Option<i64>, Halt> {
    let Some(payment) = &action.payment else { return Ok(None) };
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let (mandates, _) = authorize::mandates(scope, &agent)?;
    let spoke = |id| action.reasons.iter().any(|it| it.mandate == Some(id));
    let lines = mandates.iter().filter(|it| spoke(it.id.mandate)).filter_map(|it| it.limits().ask_above);
    let Some(line) = lines.min() else { return Ok(None) };
    let (row, paid) = payee::read(scope, payee::id(agent.id, payment), payment.amount)?;
    let own = match action.payee {
        Some(slot) => payee::counted(scope, &row, slot)?,
        None => 0,
    };
    Ok(Some(line.saturating_sub(paid.sum.saturating_sub(own).max(0))))
}
