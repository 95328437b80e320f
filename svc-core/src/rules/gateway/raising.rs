//! More than a budget allots: the one question that waits for whoever can approve it, and what their yes does.
//!
//! **Invariant:** of a budget's period at most one question waits; and who has said no in a period is not asked again in it.

use std::sync::Arc;

use super::budgets::{amount, standing};
use crate::refusal::Refusal;
use crate::rules::edge::tell;
use crate::rules::gate::decide::consent;
use crate::rules::people::by::By;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Approval, ApprovalState, ApprovalSubject, AskedBudget, Via};
use crate::state::gateway::{Budget, BudgetPeriod, BudgetUse, Payer};
use crate::state::people::Workspace;
use crate::turn::{Halt, Scope};
use crate::value::MicroUsd;
use crate::value::canonical::Object;
use crate::value::id::{ApprovalId, PrincipalId, WorkspaceId};
use crate::value::text::Note;

/// Whether the question of this period was answered with no.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn has_declined(scope: &mut Scope<'_>, used: &BudgetUse) -> Result<bool, Halt> {
    let Some(id) = used.asked else { return Ok(false) };
    let last = scope.get::<Approval>(id)?;
    Ok(last.is_some_and(|it| matches!(it.state, ApprovalState::Denied { .. })))
}

/// The question whether more may be spent in this period: the one of this period, as long as it waits or was answered with no;
/// else a new one, which is noted in `used`. It waits as long as the workspace's approvals do, and never beyond the period.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn ask_for_raise(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    budget: &Budget,
    used: &mut BudgetUse,
    payer: &Payer,
) -> Result<ApprovalId, Halt> {
    let now = scope.now();
    if let Some(id) = used.asked
        && let Some(last) = scope.get::<Approval>(id)?
        && match last.state {
            ApprovalState::Waiting => now < last.expires_at,
            ApprovalState::Denied { .. } => true,
            ApprovalState::Approved { .. } | ApprovalState::Expired { .. } => false,
        }
    {
        return Ok(id);
    }
    let longest = now.plus(workspace.settings.approval_life());
    let (agent, principal) = (payer.agent, payer.principal);
    let (period, generation, for_good) = (used.start, used.generation, budget.period == BudgetPeriod::Total);
    let subject =
        AskedBudget { budget: budget.id, period, generation, more: budget.amount, for_good, agent, principal };
    let approval = Approval {
        id: scope.fresh(),
        workspace: workspace.id,
        subject: ApprovalSubject::Budget(subject),
        created_at: now,
        expires_at: used.end.map_or(longest, |end| longest.min(end)),
        needed: 1,
        approvals: Vec::new(),
        state: ApprovalState::Waiting,
        posted: Vec::new(),
    };
    let data = Object::new()
        .int("allocationMicros", amount(used.allocation(budget)))
        .text("budgetId", &budget.id.to_string())
        .text("kind", approval.kind().as_str())
        .text("periodStart", &used.start.to_string())
        .int("spentMicros", amount(used.spent))
        .finish();
    let actor = agent.map_or(Actor::Key(payer.key), Actor::Agent);
    scope.append(workspace.id, Fact { kind: "approval.asked", actor, subject: Subject::Approval(approval.id), data });
    tell::asked(scope, workspace, &approval);
    used.asked = Some(approval.id);
    let id = approval.id;
    scope.put(used.clone());
    scope.put(approval);
    Ok(id)
}

/// A raise on its way into rows.
pub(super) struct Raise<'a> {
    /// The period's new allocation.
    pub(super) to: MicroUsd,
    /// What has to be used before a person is asked again, where they were asked.
    pub(super) agreed: Option<MicroUsd>,
    /// Who raises it.
    pub(super) actor: Actor,
    /// The question that was answered with it.
    pub(super) approval: Option<ApprovalId>,
    /// What they said.
    pub(super) note: Option<&'a Note>,
}

/// Sets the period's allocation, in the ledger too.
pub(super) fn raise(scope: &mut Scope<'_>, budget: &Budget, mut used: BudgetUse, raise: &Raise<'_>) -> BudgetUse {
    let mut data = Object::new().int("allocationMicros", amount(raise.to));
    let approval = raise.approval.map(|it| it.to_string());
    if let Some(approval) = &approval {
        data = data.text("approvalId", approval);
    }
    let data = data
        .int("oldAllocationMicros", amount(used.allocation(budget)))
        .text("periodStart", &used.start.to_string())
        .finish();
    let subject = Subject::Budget(budget.id);
    let fact = Fact { kind: "budget.raised", actor: raise.actor.clone(), subject, data };
    let note = raise.note.map(|it| ("note", it.as_str()));
    scope.append_with(budget.workspace, fact, note.as_slice());
    used.raise(raise.to);
    used.agreed = raise.agreed.or(used.agreed);
    scope.put(used.clone());
    used
}

/// Does what a person has agreed to: the period may spend the budget's amount once more, beyond what is spent and reserved.
///
/// # Errors
/// `not_allowed` where the budget is gone or its period has ended.
pub(in crate::rules) fn raise_asked(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    asked: &AskedBudget,
    approval: ApprovalId,
    by: PrincipalId,
) -> Result<(), Halt> {
    if scope.get::<Budget>(asked.budget)?.is_none() {
        return Err(Refusal::not_allowed("the budget is gone").into());
    }
    let (budget, used) = standing(scope, workspace, asked.budget)?;
    if (used.start, used.generation) != (asked.period, asked.generation) {
        return Err(Refusal::not_allowed("expired").into());
    }
    let to = used.allocation_with(&budget, asked.more);
    let agreed = Some(used.asks_from(&budget, asked.more));
    let actor = Actor::Person(by);
    raise(scope, &budget, used, &Raise { to, agreed, actor, approval: Some(approval), note: None });
    Ok(())
}

/// What waits asks for the budget's amount once more: of an amount that was lowered meanwhile, for no more than that.
pub(super) fn lower_asked(scope: &mut Scope<'_>, used: &BudgetUse, most: MicroUsd) -> Result<(), Halt> {
    let Some(approval) = waiting(scope, used)? else { return Ok(()) };
    if let ApprovalSubject::Budget(asked) = &approval.subject
        && asked.more > most
    {
        let subject = ApprovalSubject::Budget(AskedBudget { more: most, ..*asked });
        scope.put(Approval { subject, ..Approval::clone(&approval) });
    }
    Ok(())
}

/// Ends the question of a budget that is removed.
pub(super) fn end_asked(scope: &mut Scope<'_>, used: &BudgetUse, actor: &Actor) -> Result<(), Halt> {
    let Some(approval) = waiting(scope, used)? else { return Ok(()) };
    record(scope, &approval, "approval.denied", actor.clone(), None);
    let state = ApprovalState::Denied { at: scope.now(), by: None, note: None };
    scope.put(Approval::clone(&approval).ended(state));
    Ok(())
}

/// A person who raises a budget answers what waits for it.
pub(super) fn answer_asked(scope: &mut Scope<'_>, used: &BudgetUse, by: &By, note: Option<&Note>) -> Result<(), Halt> {
    let By::Person(person) = by else { return Ok(()) };
    let Some(approval) = waiting(scope, used)? else { return Ok(()) };
    // What an applicant said of it is not the word of who agrees.
    let own = note.filter(|_| scope.author().is_none_or(|it| it == person.principal));
    let (consent, at) = (consent(scope, person, Via::Console, own)?, scope.now());
    record(scope, &approval, "approval.approved", Actor::Person(person.principal), note);
    let mut agreed = Approval::clone(&approval);
    agreed.approvals.push(consent);
    scope.put(agreed.ended(ApprovalState::Approved { at }));
    Ok(())
}

fn waiting(scope: &mut Scope<'_>, used: &BudgetUse) -> Result<Option<Arc<Approval>>, Halt> {
    let Some(id) = used.asked else { return Ok(None) };
    let now = scope.now();
    Ok(scope.get::<Approval>(id)?.filter(|it| it.is_waiting() && now < it.expires_at))
}

fn record(scope: &mut Scope<'_>, approval: &Approval, kind: &'static str, actor: Actor, note: Option<&Note>) {
    let data = Object::new().text("kind", approval.kind().as_str()).text("via", Via::Console.as_str()).finish();
    let fact = Fact { kind, actor, subject: Subject::Approval(approval.id), data };
    let note = note.map(|it| ("note", it.as_str()));
    scope.append_with(approval.workspace, fact, note.as_slice());
}
