//! A card's issuer asks whether a charge is covered: by an action that is allowed, whose receipt it then uses up. Later it tells
//! what the charge came to, or that it was taken back.
//!
//! **Invariant:** whether an action covers a charge is what `POST /v1/verify` finds; nothing is approved by another rule.

use std::sync::Arc;

use super::receive::Done;
use crate::refusal::{Kind, Refusal};
use crate::rules::gate::release::release_as;
use crate::rules::gate::settle::{Told, overrule, settle_as};
use crate::rules::gate::verify::{Charge, Unnamed, Verify, verify_as};
use crate::state::edge::Heard;
use crate::state::evidence::Actor;
use crate::state::gate::{Action, OutcomeStatus};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::Amount;
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::Domain;
use crate::value::id::{ActionId, AgentId, WorkspaceId};

/// What is told where no action of an agent covers a charge.
const NO_ACTION: &str = "no_action";
/// What is told where there is no such action.
const NOT_FOUND: &str = "not_found";

/// What an action's state has against what is said of it.
const STATES: [Kind; 3] = [Kind::AlreadySettled, Kind::InvalidAmount, Kind::NotAllowed];

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

impl ChargeAsked {
    /// What the record says of it beside what came of it.
    fn done(&self, heard: Heard) -> Done {
        Done { amount: Some(self.amount.minor()), merchant: Some(self.merchant.is_some()), ..Done::told(heard) }
    }
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
    };
    scope.want(&found.iter().map(|id| Action::key(*id)).collect::<Vec<_>>())?;
    let mut why = NO_ACTION;
    for id in found {
        let action = scope.get_if_any::<Action>(*id)?.filter(|it| it.workspace == workspace);
        let Some(action) = action.filter(|it| of.is_none_or(|agent| it.agent == agent)) else { continue };
        match fault(scope, &action, asked, by)? {
            None => {
                let heard = Heard { approved: Some(true), ..Heard::of("approved") };
                return Ok(Done { action: Some(action.id), ..asked.done(heard) });
            }
            Some(fault) if of.is_none() => why = fault,
            Some(_) => {}
        }
    }
    let about = if let Cover::Action(id) = asked.by { Some(id) } else { None };
    let heard = Heard { approved: Some(false), ..Heard::of(why) };
    Ok(Done { action: about.filter(|_| why != NO_ACTION), ..asked.done(heard) })
}

/// A charge that no action could cover.
pub(super) fn uncovered() -> Done {
    Done::told(Heard { approved: Some(false), ..Heard::of(NO_ACTION) })
}

/// Why `action` does not cover the charge; `None` where it does, and its receipt is used up.
fn fault(
    scope: &mut Scope<'_>,
    action: &Action,
    asked: &ChargeAsked,
    by: &Actor,
) -> Result<Option<&'static str>, Halt> {
    let verify = Verify {
        receipt: action.receipt(),
        digest: action.digest,
        charge: Some(Charge { amount: asked.amount, currency: asked.currency, domain: asked.merchant.clone() }),
        kind: None,
        key: None,
        body: Digest::of(""),
        signed_by: None,
    };
    Ok(verify_as(scope, &verify, by.clone(), Unnamed::Anyone)?.fault.map(|it| it.as_str()))
}

/// Settles the action that covered a charge, as its agent would: above the allowed amount is an incident and stops the agent. What
/// is settled already stays so, but for what was charged beyond it.
pub(super) fn settle(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    (id, amount): (ActionId, i64),
    by: Actor,
) -> Result<Done, Halt> {
    let Some(action) = owned(scope, workspace, id)? else { return Ok(Done::of(NOT_FOUND, None)) };
    let told = Told { status: OutcomeStatus::Completed, amount: Some(amount) };
    let outcome = match scope.attempt(|scope| settle_as(scope, &action, told, by))? {
        Ok(view) if view.action.incident.is_some() => "over_settlement",
        Ok(_) => "settled",
        Err(why) if why.kind() == Kind::AlreadySettled => {
            if overrule(scope, &action, amount)?.is_some() {
                "over_settlement"
            } else {
                Kind::AlreadySettled.row().type_
            }
        }
        Err(why) => refused(why)?,
    };
    Ok(Done { amount: Some(amount), ..Done::of(outcome, Some(id)) })
}

/// Takes a charge back: what the use of the receipt kept posted is released, or, where nobody has said yet what became of the
/// action, it keeps nothing.
pub(super) fn reverse(scope: &mut Scope<'_>, workspace: WorkspaceId, id: ActionId, by: Actor) -> Result<Done, Halt> {
    let Some(action) = owned(scope, workspace, id)? else { return Ok(Done::of(NOT_FOUND, None)) };
    let outcome = match Action::clone(&action).reverse(scope.now()) {
        Ok(Some(reversed)) => {
            scope.put(reversed);
            "reversed"
        }
        Ok(None) => match scope.attempt(|scope| release_as(scope, &action, (by, None), None))? {
            Ok(_) => "released",
            Err(why) => refused(why)?,
        },
        Err(why) => refused(why)?,
    };
    Ok(Done::of(outcome, Some(id)))
}

fn owned(scope: &mut Scope<'_>, workspace: WorkspaceId, id: ActionId) -> Result<Option<Arc<Action>>, Halt> {
    Ok(scope.get::<Action>(id)?.filter(|it| it.workspace == workspace))
}

/// What is told where the action's state does not allow what the issuer says of it: its sender cannot do anything about it, and a
/// refusal would have it sent again. All else stops the command.
fn refused(why: Refusal) -> Result<&'static str, Halt> {
    if STATES.contains(&why.kind()) { Ok(why.kind().row().type_) } else { Err(why.into()) }
}
