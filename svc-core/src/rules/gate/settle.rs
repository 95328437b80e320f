//! The agent records what happened. Above the allowed amount is an incident and freezes the agent, in the same commit.

use std::sync::Arc;

use super::caller::Caller;
use super::hold::held_by;
use super::posting::Comes;
use super::record::ActionRecord;
use super::{freeze, payee, posting};
use crate::refusal::Refusal;
use crate::rules::read::{View, own_action, view};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{
    Action, Activity, Agent, Allowed, Code, Consumed, Frozen, FrozenBy, Incident, Outcome, OutcomeStatus, Status,
};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::ActionId;
use crate::value::text::Note;
use crate::value::{SAFE_MAX, Timestamp};

/// What became of an action.
#[derive(Clone, Copy, Debug)]
pub struct Settle {
    /// Who says so.
    pub caller: Caller,
    /// Which action.
    pub action: ActionId,
    /// Done or not.
    pub status: OutcomeStatus,
    /// The final amount in minor units, 0 to 2^53 − 1; for payments alone.
    pub amount: Option<i64>,
}

/// Settles an action.
///
/// # Errors
/// `invalid_amount` for an amount out of range or where nothing is paid, `not_found`, `not_allowed`, also for what the gate itself does in
/// the agent's place, `already_settled`, and those of the caller.
pub fn settle(scope: &mut Scope<'_>, said: &Settle) -> Result<View, Halt> {
    let told = Told { status: said.status, amount: said.amount };
    told.within_range()?;
    let caller = &said.caller;
    let (agent_key, activity_key) = (Agent::key(caller.agent), Activity::key(caller.agent));
    scope.want(&[Action::key(said.action), agent_key, activity_key, Workspace::key(caller.workspace)])?;
    let before = own_action(scope, caller, said.action)?;
    if is_settled_by_gate(&before) {
        return Err(Refusal::not_allowed("the gate itself made this call, and settles it").into());
    }
    settle_as(scope, &before, told, Actor::Agent(caller.agent))
}

/// Whether it is the gate that knows what becomes of an action, and has not told it yet.
fn is_settled_by_gate(action: &Action) -> bool {
    let allowed = action.allowed().filter(|it| it.outcome.is_none());
    allowed.and_then(|it| it.consumed.as_ref()).is_some_and(Consumed::is_by_gate)
}

/// What somebody who may settle an action says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Done or not.
    pub(crate) status: OutcomeStatus,
    /// The final amount in minor units.
    pub(crate) amount: Option<i64>,
}

impl Told {
    fn within_range(&self) -> Result<(), Refusal> {
        let is_within = self.amount.is_none_or(|it| (0..=SAFE_MAX).contains(&it));
        if is_within { Ok(()) } else { Err(Refusal::invalid_amount()) }
    }
}

/// Settles `before` in the word of `by`, who may.
///
/// # Errors
/// Those of [`settle`] less the caller's; nothing is put where it refuses.
pub(crate) fn settle_as(scope: &mut Scope<'_>, before: &Action, said: Told, by: Actor) -> Result<View, Halt> {
    said.within_range()?;
    if said.amount.is_some() && before.payment.is_none() {
        return Err(Refusal::invalid_amount().into());
    }
    scope.want(&[Agent::key(before.agent), Activity::key(before.agent), Workspace::key(before.workspace)])?;
    let agent = scope.get::<Agent>(before.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(before.workspace)?.ok_or_else(Refusal::internal)?;
    let now = scope.now();
    let held = held_by(scope, &workspace, agent.id)?.map(|it| it.at);
    let was = before.status(&agent, held, now);
    let late = before.allowed().is_some_and(|it| now >= it.lapse_at());
    let posted = before.allowed().and_then(|it| posted(said, before, it));
    let outcome = Outcome {
        status: said.status,
        amount: said.amount,
        posted,
        at: now,
        late,
        revoked: was == Status::Revoked,
        released: None,
    };
    let mut action = Action::clone(before).settle(outcome, was)?;
    account(scope, &action, before, posted.unwrap_or(0))?;
    let undone = said.status != OutcomeStatus::Completed;
    let consumed = before.allowed().is_some_and(|it| it.consumed.is_some());
    if undone && consumed {
        action.signals.push(Code::SettledAfterConsumption);
    }
    action.evidence = scope.append(agent.workspace, settled_fact(by, &action, &agent, held, now));
    let over = said.amount.zip(before.payment.as_ref()).filter(|(amount, payment)| *amount > payment.amount);
    if let Some((settled, payment)) = over {
        incident(scope, &mut action, &agent, Over { allowed: payment.amount, settled, stood: None })?;
    }
    scope.put(action.clone());
    view(scope, Arc::new(action))
}

/// Posts what the issuer says that the charge of a settled action came to, where that is more than was posted: nobody may settle
/// for less than was charged and keep the rest. A settlement leaves a charge no more room than it says (CONTRACT part 2,
/// "Receipts"), so it is an over-settlement also below the amount that was once allowed. `None` where it is no more than was
/// posted: then nothing is put.
///
/// # Errors
/// `internal` where a row that the action names is not there.
pub(crate) fn overrule(scope: &mut Scope<'_>, before: &Action, charged: i64) -> Result<Option<Arc<Action>>, Halt> {
    let settled = before.allowed().and_then(|it| it.outcome.as_ref());
    let Some((payment, outcome)) = before.payment.as_ref().zip(settled) else { return Ok(None) };
    let stood = outcome.posted.unwrap_or(0);
    if charged <= stood {
        return Ok(None);
    }
    scope.want(&[Agent::key(before.agent), Activity::key(before.agent)])?;
    let agent = scope.get::<Agent>(before.agent)?.ok_or_else(Refusal::internal)?;
    let mut action = Action::clone(before).overruled(charged);
    posting::repost(scope, before, stood, charged)?;
    if let Some(slot) = before.payee {
        payee::restate(scope, slot, payment.amount, charged)?;
    }
    let room = before.incident.as_ref().map_or(stood, |it| it.allowed);
    let over = Over { allowed: payment.amount.min(room), settled: charged, stood: Some(stood) };
    incident(scope, &mut action, &agent, over)?;
    let action = Arc::new(action);
    scope.put_shared(&action);
    Ok(Some(action))
}

/// A settlement above what was allowed, in minor units.
#[derive(Clone, Copy)]
struct Over {
    allowed: i64,
    settled: i64,
    /// What was posted for the action before, where this takes its place.
    stood: Option<i64>,
}

/// Records an over-settlement and stops the agent for it.
fn incident(scope: &mut Scope<'_>, action: &mut Action, agent: &Agent, over: Over) -> Result<(), Halt> {
    let evidence = scope.append(agent.workspace, incident_fact(action, over));
    action.evidence = evidence;
    action.incident = Some(Incident { allowed: over.allowed, settled: over.settled, evidence });
    let reason = Note::parse("settled above the allowed amount").map_err(|_| Refusal::internal())?;
    let frozen = Frozen::new(scope.now(), FrozenBy::Policy, reason).after(evidence);
    freeze::freeze(scope, agent, frozen, Actor::Policy)?;
    Ok(())
}

/// What a settlement comes to, in minor units: `None` where nothing is paid. A consumed receipt is stronger than the
/// agent's word.
fn posted(said: Told, action: &Action, allowed: &Allowed) -> Option<i64> {
    let payment = action.payment.as_ref()?;
    let consumed = allowed.consumed_amount();
    Some(match said.status {
        OutcomeStatus::Completed => said.amount.unwrap_or(payment.amount).max(consumed),
        OutcomeStatus::Cancelled | OutcomeStatus::Failed => said.amount.unwrap_or(0).max(consumed),
    })
}

/// Moves the reserved amount to what was spent, and tells the payee's sum what it came to: what was never paid is not in it.
fn account(scope: &mut Scope<'_>, action: &Action, before: &Action, posted: i64) -> Result<(), Halt> {
    let Some(allowed) = before.allowed() else { return Ok(()) };
    let asked = before.payment.as_ref().map_or(0, |it| it.amount);
    // What a person released after the lapse stands at nothing, all else at what was asked.
    let stood = allowed.posted().unwrap_or(asked);
    if let Some(held) = before.held().filter(|_| allowed.lapsed.is_none()) {
        let stored = scope.get::<Activity>(action.agent)?.ok_or_else(Refusal::internal)?;
        let mut activity = Activity::clone(&stored);
        posting::post(&mut activity, held, posted);
        posting::recount(&mut activity, before, Comes { from: stood, to: Some(posted) });
        if posted != stood && activity == *stored {
            activity.unsummed = activity.unsummed.wrapping_add(1);
        }
        scope.put(activity);
    } else {
        posting::repost(scope, before, stood, posted)?;
    }
    let done =
        action.allowed().and_then(|it| it.outcome.as_ref()).is_some_and(|it| it.status == OutcomeStatus::Completed);
    match before.payee {
        Some(slot) if !done && !allowed.is_kept() => payee::void(scope, slot),
        // One that a stop revoked was taken out of the sum.
        Some(slot) if posted != asked || allowed.revoked.is_some() => payee::restate(scope, slot, asked, posted),
        Some(_) | None => Ok(()),
    }
}

fn settled_fact(actor: Actor, action: &Action, agent: &Agent, hold: Option<Timestamp>, now: Timestamp) -> Fact {
    let status = action.status(agent, hold, now);
    let outcome = action.allowed().and_then(|it| it.outcome.as_ref());
    let mut more = vec![("outcome", format!("\"{}\"", status.as_str()))];
    if let (Some(payment), Some(posted)) = (&action.payment, outcome.and_then(|it| it.posted)) {
        more.push(("posted", posted.to_string()));
        more.push(("released", payment.amount.saturating_sub(posted).max(0).to_string()));
    }
    if outcome.is_some_and(|it| it.late) {
        more.push(("late", "true".into()));
        // What the lapse had posted, which this takes the place of.
        if let (Some(payment), Some(allowed)) = (&action.payment, action.allowed()) {
            more.push(("corrected", payment.amount.to_string()));
            if allowed.released.is_some() {
                more.push(("stood", "0".into()));
            }
        }
    }
    let verb = action.verb(status);
    ActionRecord { kind: "action.settled", actor, action, agent, verb, status }.fact(&more)
}

fn incident_fact(action: &Action, over: Over) -> Fact {
    let mut data = Object::new().text("agentId", &action.agent.to_string());
    data = data.int("allowedAmount", over.allowed).int("settledAmount", over.settled);
    if let Some(payment) = &action.payment {
        data = data.text("currency", payment.currency.as_str());
    }
    if let Some(stood) = over.stood {
        data = data.int("posted", over.settled).int("stood", stood);
    }
    Fact {
        kind: "incident.over_settlement",
        actor: Actor::Policy,
        subject: Subject::Action(action.id),
        data: data.finish(),
    }
}
