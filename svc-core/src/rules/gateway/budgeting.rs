//! A call on its budgets: asked of all of them, reserved on all of them, posted to all of them, in one commit each.

use std::sync::Arc;

use super::budgets::owner_now;
use super::payer::CallKey;
use super::raising::{ask_for_raise, has_declined};
use crate::refusal::{BudgetDetail, BudgetOwner, Lack, Refusal};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gateway::{Admission, Budget, BudgetUse, Call, CallBudget, Mode, Payer, Step, strictest};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::MicroUsd;
use crate::value::canonical::Object;

/// A budget that a call counts on, as its running period stands.
pub(super) struct OnBudget {
    budget: Arc<Budget>,
    spending: BudgetUse,
}

/// The budgets that cover a payer, the oldest first.
pub(super) fn covering(scope: &mut Scope<'_>, workspace: &Workspace, payer: &Payer) -> Result<Vec<OnBudget>, Halt> {
    let ids: Vec<_> = workspace.budgets.iter().filter(|it| it.scope.covers(payer)).map(|it| it.id).collect();
    let keys: Vec<_> = ids.iter().flat_map(|id| [Budget::key(*id), BudgetUse::key(*id)]).collect();
    scope.want(&keys)?;
    let (now, settings) = (scope.now(), &workspace.settings);
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let budget = scope.get::<Budget>(id)?.ok_or_else(Refusal::internal)?;
        let spending = scope.get::<BudgetUse>(id)?.ok_or_else(Refusal::internal)?.at(&budget, now, settings);
        found.push(OnBudget { budget, spending });
    }
    Ok(found)
}

/// Whether one of them has reached the step at which cheaper models are preferred.
pub(super) fn prefers_cheaper(budgets: &[OnBudget]) -> bool {
    budgets.iter().any(|it| it.spending.admit(&it.budget, MicroUsd::ZERO, Mode::Shadow).step >= Some(Step::Downgrade))
}

/// What all of them say of a call that costs at most `micros`.
pub(super) fn ask(budgets: &[OnBudget], micros: MicroUsd, mode: Mode) -> Vec<Admission> {
    budgets.iter().map(|it| it.spending.admit(&it.budget, micros, mode)).collect()
}

/// Whether one of them would stop a call that costs at most `micros`: one that costs less may have room.
pub(super) fn stops(budgets: &[OnBudget], micros: MicroUsd, mode: Mode) -> bool {
    ask(budgets, micros, mode).iter().any(|it| it.refuses && it.step == Some(Step::Stop))
}

/// What is told where one of them refuses; the ask that a person can raise it by is made where there is none. In a dry run
/// nothing is made.
pub(super) fn refusal(
    scope: &mut Scope<'_>,
    budgets: &mut [OnBudget],
    asking: &Asking<'_>,
    admissions: &[Admission],
) -> Result<Option<Refusal>, Halt> {
    let Some(refusing) = strictest(admissions).filter(|it| it.refuses) else { return Ok(None) };
    let Asking { workspace: row, caller, payer, dry } = *asking;
    let workspace = row.id;
    let Some(on) = budgets.iter_mut().find(|it| it.budget.id == refusing.budget) else { return Ok(None) };
    let detail = BudgetDetail {
        id: refusing.budget.to_string().into(),
        scope: refusing.scope.header(workspace).into(),
        owner: None,
    };
    if refusing.step != Some(Step::Approval) {
        // A call that is too large by itself, or that others leave no room, has not brought the budget to its ceiling.
        if !dry && refusing.lack == Lack::Spent {
            tell_steps(scope, &on.budget, &mut on.spending, caller.actor(), (refusing.used(), refusing.step));
            scope.put(on.spending.clone());
        }
        return Ok(Some(Refusal::budget_exhausted(detail, refusing.lack, refusing.retry_after_s(scope.now()))));
    }
    let owner = owner_now(scope, &on.budget)?;
    let owner = BudgetOwner {
        principal: owner.id.to_string().into(),
        name: owner.name.as_ref().map(|it| it.as_str().into()),
        email: owner.email.as_str().into(),
        spent: refusing.spent.get(),
        reserved: refusing.reserved.get(),
        allocation: refusing.allocation.get(),
        has_declined: has_declined(scope, &on.spending)?,
    };
    let detail = BudgetDetail { owner: Some(owner), ..detail };
    if dry {
        return Ok(Some(Refusal::budget_approval(detail, refusing.lack, workspace, on.spending.asked)));
    }
    tell_steps(scope, &on.budget, &mut on.spending, caller.actor(), (refusing.used(), refusing.step));
    let approval = ask_for_raise(scope, row, &on.budget, &mut on.spending, payer)?;
    scope.put(on.spending.clone());
    Ok(Some(Refusal::budget_approval(detail, refusing.lack, workspace, Some(approval))))
}

/// Reserves a call's worst case on all of them. Of steps that are reached, what was there before the call is told.
pub(super) fn reserve(
    scope: &mut Scope<'_>,
    budgets: Vec<OnBudget>,
    caller: &CallKey,
    micros: MicroUsd,
) -> Vec<CallBudget> {
    let mut held = Vec::with_capacity(budgets.len());
    for mut on in budgets {
        let used = on.spending.used();
        tell_steps(scope, &on.budget, &mut on.spending, caller.actor(), (used, None));
        held.push(on.spending.reserve(micros));
        scope.put(on.spending);
    }
    held
}

/// Marks on which of its budgets a call holds more than `stop` admits, as these said of it before.
pub(super) fn mark(held: &mut [CallBudget], admissions: &[Admission]) {
    for on in held {
        on.past_stop = admissions.iter().any(|it| it.budget == on.id && it.step == Some(Step::Stop));
    }
}

/// Who asks, for what a refusal leaves.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    /// The workspace.
    pub(super) workspace: &'a Workspace,
    /// The key.
    pub(super) caller: &'a CallKey,
    /// Who pays.
    pub(super) payer: &'a Payer,
    /// Whether nothing is to be kept.
    pub(super) dry: bool,
}

/// Posts what a call came to in the place of what it held. A period that has ended meanwhile keeps what it was.
pub(super) fn settle(scope: &mut Scope<'_>, call: &Call, cost: MicroUsd) -> Result<(), Halt> {
    on_each(scope, call, |spending, on| spending.settle(on, call.reserved, cost))
}

/// Posts what a call that was charged an estimate came to beyond it.
pub(super) fn post(scope: &mut Scope<'_>, call: &Call, more: MicroUsd) -> Result<(), Halt> {
    on_each(scope, call, |spending, on| {
        let runs = spending.is_of(on);
        if runs {
            spending.spent = spending.spent.plus(more);
        }
        runs
    })
}

/// Puts another attempt of a running call in the place of the one before: what that cost is posted, what this may cost is
/// reserved. A budget that was made meanwhile does not cover the call.
pub(super) fn again(scope: &mut Scope<'_>, call: &Call, cost: MicroUsd, micros: MicroUsd) -> Result<(), Halt> {
    on_each(scope, call, |spending, on| spending.again(on, call.reserved, cost, micros))
}

/// The budgets that a running call holds something on, each as the period stands that the call counts in.
pub(super) fn held_on(scope: &mut Scope<'_>, call: &Call) -> Result<Vec<OnBudget>, Halt> {
    scope.want(&call.budgets.iter().flat_map(|it| [Budget::key(it.id), BudgetUse::key(it.id)]).collect::<Vec<_>>())?;
    let mut found = Vec::with_capacity(call.budgets.len());
    for on in &call.budgets {
        let (budget, spending) = (scope.get_if_any::<Budget>(on.id)?, scope.get_if_any::<BudgetUse>(on.id)?);
        // A budget may be gone while a call on it runs, and its period over. One that is gone never comes back: its id was its own.
        if let (Some(budget), Some(spending)) = (budget, spending.filter(|it| it.is_of(on))) {
            found.push(OnBudget { budget, spending: BudgetUse::clone(&spending) });
        }
    }
    Ok(found)
}

/// What the budgets of a running call say of another attempt, once what the one before held is given back.
pub(super) fn ask_again(
    scope: &mut Scope<'_>,
    call: &Call,
    cost: MicroUsd,
    micros: MicroUsd,
) -> Result<Vec<Admission>, Halt> {
    let without = |mut it: OnBudget| {
        let on = call.budgets.iter().find(|on| on.id == it.budget.id)?;
        it.spending.settle(on, call.reserved, cost).then(|| it.spending.admit(&it.budget, micros, call.mode))
    };
    Ok(held_on(scope, call)?.into_iter().filter_map(without).collect())
}

/// Changes what is used of each budget of a call, and tells the steps to which what is spent of it has come so: what other calls
/// have reserved they may give back.
fn on_each(
    scope: &mut Scope<'_>,
    call: &Call,
    mut change: impl FnMut(&mut BudgetUse, &CallBudget) -> bool,
) -> Result<(), Halt> {
    scope.want(&call.budgets.iter().flat_map(|it| [Budget::key(it.id), BudgetUse::key(it.id)]).collect::<Vec<_>>())?;
    let actor = || call.payer.agent.map_or(Actor::Key(call.payer.key), Actor::Agent);
    for on in &call.budgets {
        // A budget may be gone while a call on it runs, and then for good.
        let Some(spending) = scope.get_if_any::<BudgetUse>(on.id)? else { continue };
        let Some(budget) = scope.get_if_any::<Budget>(on.id)? else { continue };
        let mut spending = BudgetUse::clone(&spending);
        if change(&mut spending, on) {
            let spent = spending.spent;
            tell_steps(scope, &budget, &mut spending, actor(), (spent, None));
            scope.put(spending);
        }
    }
    Ok(())
}

/// Records steps of the ladder that `used` has come to, or that refuse a call, and that the ledger has not of this period.
fn tell_steps(
    scope: &mut Scope<'_>,
    budget: &Budget,
    spending: &mut BudgetUse,
    actor: Actor,
    (used, refused): (MicroUsd, Option<Step>),
) {
    for rung in spending.news(budget, used, refused) {
        let data = Object::new()
            .text("step", rung.step.as_str())
            .int("at", rung.at.into())
            .int("spentMicros", i64::try_from(spending.spent.get()).unwrap_or(i64::MAX))
            .int("reservedMicros", i64::try_from(spending.reserved.get()).unwrap_or(i64::MAX))
            .finish();
        let subject = Subject::Budget(budget.id);
        scope.append(budget.workspace, Fact { kind: "budget.step", actor: actor.clone(), subject, data });
    }
}
