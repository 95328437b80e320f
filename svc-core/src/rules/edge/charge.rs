//! A card's issuer asks whether a charge is covered: by an action that is allowed, whose receipt it then uses up.
//!
//! **Invariant:** whether an action covers a charge is what `POST /v1/verify` finds; nothing is approved by another rule.

use super::receive::Done;
use crate::rules::gate::verify::{Charge, Verify, verify_as};
use crate::state::edge::Heard;
use crate::state::evidence::Actor;
use crate::state::gate::Action;
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::Amount;
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::Domain;
use crate::value::id::{ActionId, AgentId, WorkspaceId};

/// What is told where no action of an agent covers a charge.
const NO_ACTION: &str = "no_action";

/// A charge that is to be approved or not.
#[derive(Clone, Debug)]
pub struct ChargeAsked {
    /// Which actions could cover it.
    pub by: Cover,
    /// How much, in minor units.
    pub amount: Amount,
    /// Of which currency.
    pub currency: Currency,
    /// Who charges, where the issuer tells; else any merchant of the action does.
    pub merchant: Option<Domain>,
}

/// What could cover a charge.
#[derive(Clone, Debug)]
pub enum Cover {
    /// This action.
    Action(ActionId),
    /// One of an agent's.
    Agent {
        /// The agent.
        agent: AgentId,
        /// Those that a scan found fit, the newest first.
        found: Vec<ActionId>,
    },
    /// The issuer named nothing that could.
    Nothing,
}

/// Approves a charge and uses up the receipt of the action that covers it.
pub(super) fn charge(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    asked: &ChargeAsked,
    by: &Actor,
) -> Result<Done, Halt> {
    let (found, of) = match &asked.by {
        Cover::Action(id) => (std::slice::from_ref(id), None),
        Cover::Agent { agent, found } => (&**found, Some(*agent)),
        Cover::Nothing => (&[][..], None),
    };
    scope.want(&found.iter().map(|id| Action::key(*id)).collect::<Vec<_>>())?;
    let mut why = NO_ACTION;
    for id in found {
        let action = scope.get_if_any::<Action>(*id)?.filter(|it| it.workspace == workspace);
        let Some(action) = action.filter(|it| of.is_none_or(|agent| it.agent == agent)) else { continue };
        match fault(scope, &action, asked, by)? {
            None => {
                let heard = Heard { approved: Some(true), outcome: "approved".into() };
                return Ok(Done { heard, action: Some(action.id) });
            }
            Some(fault) if of.is_none() => why = fault,
            Some(_) => {}
        }
    }
    let about = if let Cover::Action(id) = asked.by { Some(id) } else { None };
    Ok(Done { heard: Heard { approved: Some(false), outcome: why.into() }, action: about.filter(|_| why != NO_ACTION) })
}

/// Why `action` does not cover the charge; `None` where it does, and its receipt is used up.
fn fault(
    scope: &mut Scope<'_>,
    action: &Action,
    asked: &ChargeAsked,
    by: &Actor,
) -> Result<Option<&'static str>, Halt> {
    let domain = asked.merchant.clone().or_else(|| action.payment.as_ref().map(|it| it.domain.clone()));
    let verify = Verify {
        receipt: action.receipt(),
        digest: action.digest,
        charge: Some(Charge { amount: asked.amount, currency: asked.currency, domain }),
        kind: None,
        key: None,
        body: Digest::of(""),
        signed_by: None,
    };
    Ok(verify_as(scope, &verify, by.clone())?.fault.map(|it| it.as_str()))
}
