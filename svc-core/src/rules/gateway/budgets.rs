//! Budgets: made, changed, removed, raised. Every change is recorded with who made it.

use std::sync::Arc;

use serde::Serialize;

use super::raising::{self, Raise};
use super::routing::as_json;
use crate::refusal::{FieldError, Refusal};
use crate::rules::changed::changed;
use crate::rules::people::by::{By, Person, entitled, member, unseen};
use crate::rules::people::keys;
use crate::rules::people::named::{self, Named};
use crate::state::evidence::{Fact, Subject};
use crate::state::gate::Agent;
use crate::state::gateway::{
    BUDGETS_MAX, Budget, BudgetPeriod, BudgetScope, BudgetUse, Ladder, Mode, Routing, ToldSteps,
};
use crate::state::people::{Credential, Principal, Reach, Right, Role, Team, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::{Object, canonical};
use crate::value::digest::CredentialId;
use crate::value::id::{BudgetId, PrincipalId, WorkspaceId};
use crate::value::json::Json;
use crate::value::text::Note;
use crate::value::{MicroUsd, SAFE_MAX};

/// A budget with what has been used of it, as it stands at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetView {
    /// The budget.
    pub budget: Arc<Budget>,
    /// What has been used of it in the period that runs now.
    pub used: BudgetUse,
    /// Who can approve more now: the budget's owner, or the workspace's first one where that is a member no more.
    pub owner: PrincipalId,
    /// Whether the workspace enforces budgets where a key's own profile says nothing else.
    pub enforcing: bool,
}

/// A budget of which more is asked.
#[derive(Clone, Debug)]
pub struct AskedOf {
    /// The budget.
    pub budget: Arc<Budget>,
    /// What has been used of it in the period that runs now.
    pub used: BudgetUse,
    /// What people call what it is over, where that has a name.
    pub name: Option<String>,
}

/// Makes a budget.
#[derive(Clone, Debug)]
pub struct CreateBudget {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who makes it.
    pub by: By,
    /// What it is over.
    pub scope: BudgetScope,
    /// The row of the key that the scope names, where it names one that there is.
    pub key: Option<CredentialId>,
    /// What may be spent in a period: 1 to 2^53 − 1.
    pub amount: MicroUsd,
    /// Its period.
    pub period: BudgetPeriod,
    /// Its steps.
    pub ladder: Ladder,
    /// Who can approve more; the workspace's first owner where nobody is named.
    pub owner: Option<PrincipalId>,
}

/// Makes a budget, with nothing spent of it: what was spent before it was made does not count.
///
/// # Errors
/// Those of [`entitled`], `not_found`, `invalid_budget` naming every fault.
pub fn create_budget(scope: &mut Scope<'_>, asked: &CreateBudget) -> Result<BudgetView, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageBudgets)?;
    scope.want(&[Workspace::key(asked.workspace), Routing::key(asked.workspace)])?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let mut faults = amount_faults(asked.amount, "amount");
    faults.extend(scope_fault(scope, asked.workspace, &asked.scope, asked.key)?);
    faults.extend(owner_fault(scope, asked.workspace, asked.owner)?);
    if workspace.budgets.len() >= BUDGETS_MAX {
        faults.push(FieldError::whole(format!("a workspace has at most {BUDGETS_MAX} budgets")));
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_budget(faults).into());
    }
    let budget = Budget {
        id: scope.fresh(),
        workspace: workspace.id,
        scope: asked.scope.clone(),
        amount: asked.amount,
        period: asked.period,
        ladder: asked.ladder.clone(),
        owner: asked.owner.unwrap_or(workspace.owner),
        created_by: asked.by.maker(),
        created_at: scope.now(),
    };
    let used = BudgetUse::begin(&budget, scope.now(), &workspace.settings);
    let mut listing = Workspace::clone(&workspace);
    listing.budgets.push(budget.listed());
    scope.put(listing);
    scope.put(budget.clone());
    scope.put(used.clone());
    record(scope, &asked.by, "budget.created", &budget, canonical(&told(&budget)?));
    shown(scope, Arc::new(budget), used)
}

/// Changes a budget: what is absent stays. What it is over and its period never change: for another there is a new budget.
#[derive(Clone, Debug)]
pub struct ChangeBudget {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who changes it.
    pub by: By,
    /// Which one.
    pub budget: BudgetId,
    /// What may be spent in a period from now on, the running one included, whatever that was raised to.
    pub amount: Option<MicroUsd>,
    /// Its steps.
    pub ladder: Option<Ladder>,
    /// Who can approve more.
    pub owner: Option<PrincipalId>,
}

/// Changes a budget.
///
/// # Errors
/// Those of [`entitled`], `not_found`, `invalid_budget` naming every fault.
pub fn change_budget(scope: &mut Scope<'_>, asked: &ChangeBudget) -> Result<BudgetView, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageBudgets)?;
    let (before, used) = standing(scope, asked.workspace, asked.budget)?;
    let mut faults = asked.amount.map_or_else(Vec::new, |it| amount_faults(it, "amount"));
    faults.extend(owner_fault(scope, asked.workspace, asked.owner)?);
    if !faults.is_empty() {
        return Err(Refusal::invalid_budget(faults).into());
    }
    let after = Budget {
        amount: asked.amount.unwrap_or(before.amount),
        ladder: asked.ladder.clone().unwrap_or_else(|| before.ladder.clone()),
        owner: asked.owner.unwrap_or(before.owner),
        ..Budget::clone(&before)
    };
    let raised = used.raised.filter(|_| asked.amount.is_some()).map(|_| used.allocation(&before));
    if after == *before && raised.is_none() {
        return shown(scope, before, used);
    }
    let data = changed(&told_at(&before, raised)?, &told_at(&after, raised.map(|_| after.amount))?);
    record(scope, &asked.by, "budget.changed", &after, data);
    if asked.amount.is_some() {
        raising::lower_asked(scope, &used, after.amount)?;
    }
    // Where its steps stand elsewhere now, each may be told again.
    let is_moved = raised.is_some() || after.amount != before.amount || after.ladder != before.ladder;
    let told = if is_moved { ToldSteps::default() } else { used.told };
    let stays = |it: Option<MicroUsd>| it.filter(|_| asked.amount.is_none());
    let used = BudgetUse { told, raised: stays(used.raised), agreed: stays(used.agreed), ..used };
    scope.put(after.clone());
    scope.put(used.clone());
    shown(scope, Arc::new(after), used)
}

/// Removes a budget.
#[derive(Clone, Debug)]
pub struct RemoveBudget {
    /// From which workspace.
    pub workspace: WorkspaceId,
    /// Who removes it.
    pub by: By,
    /// Which one.
    pub budget: BudgetId,
}

/// Removes a budget. Calls that run go on, and what they reserved on it is gone with it; a question about it ends.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn remove_budget(scope: &mut Scope<'_>, asked: &RemoveBudget) -> Result<(), Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageBudgets)?;
    let (budget, used) = standing(scope, asked.workspace, asked.budget)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    raising::end_asked(scope, &used, &asked.by.actor())?;
    let data = Object::new()
        .json("old", &told(&budget)?)
        .int("reservedMicros", amount(used.reserved))
        .int("spentMicros", amount(used.spent))
        .finish();
    record(scope, &asked.by, "budget.removed", &budget, data);
    let mut listing = Workspace::clone(&workspace);
    listing.budgets.retain(|it| it.id != budget.id);
    scope.put(listing);
    scope.delete::<Budget>(budget.id);
    scope.delete::<BudgetUse>(budget.id);
    Ok(())
}

/// Raises what may be spent of a budget in the running period.
#[derive(Clone, Debug)]
pub struct RaiseBudget {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who raises it.
    pub by: By,
    /// Which one.
    pub budget: BudgetId,
    /// The period's new allocation: above the present one.
    pub allocation: MicroUsd,
    /// Why, where they say so.
    pub note: Option<Note>,
}

/// Raises the running period's allocation: by the budget's owner, an owner or an admin. A question that waits for it is
/// answered by it.
///
/// # Errors
/// Those of [`entitled`], `not_found`, also where the budget is another's and the caller may read none, `forbidden` where they may
/// read it, `invalid_budget` where the allocation is not above the present one.
pub fn raise_budget(scope: &mut Scope<'_>, asked: &RaiseBudget) -> Result<BudgetView, Halt> {
    let reach = entitled(scope, &asked.by, asked.workspace, Right::RaiseBudgets)?;
    let (budget, used) = standing(scope, asked.workspace, asked.budget)?;
    if reach != Reach::All && asked.by.principal() != Some(budget.owner) {
        entitled(scope, &asked.by, asked.workspace, Right::ReadReports).map_err(unseen)?;
        return Err(Refusal::forbidden("the budget's owner, an owner or an admin raises it").into());
    }
    let faults = faults_of_raise(&budget, &used, asked.allocation, true);
    if !faults.is_empty() {
        return Err(Refusal::invalid_budget(faults).into());
    }
    raising::answer_asked(scope, &used, &asked.by, asked.note.as_ref())?;
    let note = asked.note.as_ref();
    let raise = Raise { to: asked.allocation, agreed: None, actor: asked.by.actor(), approval: None, note };
    let used = raising::raise(scope, &budget, used, &raise);
    shown(scope, budget, used)
}

/// What is wrong with a raise of a budget to `allocation`, as it stands now. How much that is, only those are told who may read
/// budgets, or raise this one.
///
/// # Errors
/// `not_found`.
pub(in crate::rules) fn raise_faults(
    scope: &mut Scope<'_>,
    by: &Person,
    budget: BudgetId,
    allocation: MicroUsd,
) -> Result<Vec<FieldError>, Halt> {
    let (budget, used) = standing(scope, by.workspace, budget)?;
    let (_, role) = member(scope, by)?;
    let may_know = role.reach(Right::ReadReports) != Reach::No || may_raise(role, by.principal, &budget);
    Ok(faults_of_raise(&budget, &used, allocation, may_know))
}

fn faults_of_raise(budget: &Budget, used: &BudgetUse, allocation: MicroUsd, may_know: bool) -> Vec<FieldError> {
    let mut faults = amount_faults(allocation, "amountMicros");
    let present = used.allocation(budget);
    if faults.is_empty() && allocation <= present {
        let of = if may_know { format!(" of {present}") } else { String::new() };
        faults.push(FieldError::new("amountMicros", format!("must be above the present allocation{of}")));
    }
    faults
}

/// A budget as `by` may read it: also whoever owns it, whom it is decided by.
///
/// # Errors
/// Those of [`entitled`], and `not_found`, also where it is another's and the caller may read none.
pub fn read_budget(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: BudgetId) -> Result<BudgetView, Halt> {
    let reach = entitled(scope, by, workspace, Right::RaiseBudgets)?;
    let (budget, used) = standing(scope, workspace, id)?;
    if reach != Reach::All && by.principal() != Some(budget.owner) {
        entitled(scope, by, workspace, Right::ReadReports).map_err(unseen)?;
    }
    shown(scope, budget, used)
}

/// What a budget is over, as people call it; nothing for the workspace, or where it is gone or has no name. `key`: the row of the key
/// that it is over, where it is over one.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn scope_name(scope: &mut Scope<'_>, budget: &Budget, key: Option<CredentialId>) -> Result<Option<String>, Halt> {
    Ok(match &budget.scope {
        BudgetScope::Workspace => None,
        BudgetScope::Team(id) => scope.get::<Team>(*id)?.map(|it| it.name.to_string()),
        BudgetScope::Agent(id) => scope.get::<Agent>(*id)?.map(|it| it.name.to_string()),
        BudgetScope::Principal(id) => scope.get::<Principal>(*id)?.and_then(|it| it.called().map(str::to_owned)),
        BudgetScope::Key(_) => {
            let row = match key {
                Some(row) => scope.get::<Credential>(row)?,
                None => None,
            };
            row.map(|it| it.label.as_ref().map_or_else(|| format!("{}…", it.prefix), ToString::to_string))
        }
        BudgetScope::TaskClass(id) => {
            let routing = scope.get::<Routing>(budget.workspace)?.ok_or_else(Refusal::internal)?;
            routing.classes.iter().find(|it| it.id == *id).and_then(|it| Some(it.name.as_ref()?.to_string()))
        }
    })
}

/// The budgets of a workspace after one of them, the newest first: at most `limit`, and whether more follow.
///
/// # Errors
/// Those of [`entitled`].
pub fn list_budgets(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    after: Option<BudgetId>,
    limit: usize,
) -> Result<(Vec<BudgetView>, bool), Halt> {
    entitled(scope, by, workspace, Right::ReadReports)?;
    let row = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::not_found)?;
    let mut rest: Vec<BudgetId> = row.budgets.iter().rev().map(|it| it.id).collect();
    match after.map(|id| (id, rest.iter().position(|it| *it == id))) {
        Some((_, Some(at))) => drop(rest.drain(..=at)),
        // A cursor whose budget was removed goes on with those that were made before it.
        Some((id, None)) => rest.retain(|it| *it < id),
        None => {}
    }
    let page = rest.get(..limit.min(rest.len())).unwrap_or_default();
    scope.want(&page.iter().flat_map(|id| [Budget::key(*id), BudgetUse::key(*id)]).collect::<Vec<_>>())?;
    let mut owners = Vec::with_capacity(page.len());
    for id in page {
        owners.extend(scope.get::<Budget>(*id)?.map(|it| Principal::key(it.owner)));
    }
    scope.want(&owners)?;
    let mut views = Vec::with_capacity(page.len());
    for id in page {
        let (budget, used) = standing(scope, workspace, *id)?;
        views.push(shown(scope, budget, used)?);
    }
    Ok((views, rest.len() > limit))
}

/// A budget of the workspace and its use as it is now.
///
/// # Errors
/// `not_found`.
pub(super) fn standing(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    id: BudgetId,
) -> Result<(Arc<Budget>, BudgetUse), Halt> {
    scope.want(&[Workspace::key(workspace), Budget::key(id), BudgetUse::key(id)])?;
    let row = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::not_found)?;
    let budget = scope.get::<Budget>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    let used = scope.get::<BudgetUse>(id)?.ok_or_else(Refusal::internal)?;
    let used = used.at(&budget, scope.now(), &row.settings);
    Ok((budget, used))
}

/// A budget that somebody is asked about, with its use as it is now and what people call what it is over; nothing where it is gone.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub(in crate::rules) fn asked_about(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    id: BudgetId,
) -> Result<Option<AskedOf>, Halt> {
    scope.want(&[Workspace::key(workspace), Budget::key(id), BudgetUse::key(id)])?;
    if scope.get::<Budget>(id)?.is_none() {
        return Ok(None);
    }
    let (budget, used) = standing(scope, workspace, id)?;
    // Where a key's row is found is not known here: its id stands for it.
    let name = scope_name(scope, &budget, None)?;
    Ok(Some(AskedOf { budget, used, name }))
}

/// Whether somebody may raise a budget: its owner, an owner, an admin.
pub(in crate::rules) fn may_raise(role: Role, principal: PrincipalId, budget: &Budget) -> bool {
    match role.reach(Right::RaiseBudgets) {
        Reach::All => true,
        Reach::Own => budget.owner == principal,
        Reach::No => false,
    }
}

/// Whether a person may raise the budget with this id; one that is gone nobody may.
///
/// # Errors
/// Those of [`member`].
pub(in crate::rules) fn raises(scope: &mut Scope<'_>, person: &Person, budget: BudgetId) -> Result<bool, Halt> {
    let (_, role) = member(scope, person)?;
    let budget = scope.get::<Budget>(budget)?.filter(|it| it.workspace == person.workspace);
    Ok(budget.is_some_and(|it| may_raise(role, person.principal, &it)))
}

fn shown(scope: &mut Scope<'_>, budget: Arc<Budget>, used: BudgetUse) -> Result<BudgetView, Halt> {
    let routing = scope.get::<Routing>(budget.workspace)?.ok_or_else(Refusal::internal)?;
    let owner = owner_now(scope, &budget)?.id;
    Ok(BudgetView { budget, used, owner, enforcing: routing.mode == Mode::Enforce })
}

/// Who can approve more of a budget now: its owner, or the workspace's first owner where that is a member no more.
pub(super) fn owner_now(scope: &mut Scope<'_>, budget: &Budget) -> Result<Arc<Principal>, Halt> {
    let named = scope.get::<Principal>(budget.owner)?.filter(|it| it.signs_in());
    if let Some(named) = named {
        return Ok(named);
    }
    let workspace = scope.get::<Workspace>(budget.workspace)?.ok_or_else(Refusal::internal)?;
    Ok(scope.get::<Principal>(workspace.owner)?.ok_or_else(Refusal::internal)?)
}

/// What is wrong with an amount. One beyond the largest was made the largest where it was given: the lower limit, so nothing passes by it.
fn amount_faults(amount: MicroUsd, field: &str) -> Vec<FieldError> {
    let within = (1..=SAFE_MAX).contains(&i64::try_from(amount.get()).unwrap_or(i64::MAX));
    if within { Vec::new() } else { vec![FieldError::new(field, format!("must be between 1 and {SAFE_MAX} micros"))] }
}

/// The fault of a scope that names nothing of this workspace; `row` is that of the key that it is over.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there that every workspace has.
pub fn scope_fault(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    over: &BudgetScope,
    row: Option<CredentialId>,
) -> Result<Option<FieldError>, Halt> {
    let known = match over {
        BudgetScope::Workspace => true,
        BudgetScope::Team(id) => scope.get::<Team>(*id)?.is_some_and(|it| it.workspace == workspace),
        BudgetScope::Principal(id) => {
            scope.get::<Principal>(*id)?.is_some_and(|it| it.workspace == workspace && !it.was_removed())
        }
        BudgetScope::Agent(id) => {
            scope.get::<Agent>(*id)?.is_some_and(|it| it.workspace == workspace && !it.is_removed())
        }
        BudgetScope::Key(id) => match row {
            Some(row) => {
                let of = |it: &Arc<Credential>| it.binding.workspace == workspace && it.binding.key == *id;
                scope.get::<Credential>(row)?.is_some_and(|it| of(&it)) && keys::any_stands(scope, &[row])?
            }
            None => false,
        },
        BudgetScope::TaskClass(id) => {
            let routing = scope.get::<Routing>(workspace)?.ok_or_else(Refusal::internal)?;
            routing.classes.iter().any(|it| it.id == *id)
        }
    };
    Ok((!known).then(|| FieldError::new("scope.id", format!("names no {} of this workspace", noun(over)))))
}

const fn noun(scope: &BudgetScope) -> &'static str {
    match scope {
        BudgetScope::TaskClass(_) => "task class",
        other => other.kind(),
    }
}

/// That whoever is named as owner is a member here.
fn owner_fault(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    owner: Option<PrincipalId>,
) -> Result<Option<FieldError>, Halt> {
    match owner {
        Some(id) => named::fault(scope, workspace, "owner", &Named::Member(id)),
        None => Ok(None),
    }
}

fn record(scope: &mut Scope<'_>, by: &By, kind: &'static str, budget: &Budget, data: String) {
    let fact = Fact { kind, actor: by.actor(), subject: Subject::Budget(budget.id), data };
    scope.append(budget.workspace, fact);
}

/// An amount for the ledger.
pub(super) fn amount(micros: MicroUsd) -> i64 {
    i64::try_from(micros.get()).unwrap_or(i64::MAX)
}

/// What a budget says, for the ledger.
fn told(budget: &Budget) -> Result<Json, Halt> {
    told_at(budget, None)
}

/// The same with the running period's own allocation, where it has one.
fn told_at(budget: &Budget, allocation: Option<MicroUsd>) -> Result<Json, Halt> {
    let rungs = budget.ladder.rungs().iter().map(|it| ToldRung { at: it.at.into(), step: it.step.as_str() });
    as_json(&Told {
        id: budget.id,
        allocation_micros: allocation.map(amount),
        amount: amount(budget.amount),
        ladder: rungs.collect(),
        owner: budget.owner,
        period: budget.period.as_str(),
        scope: ToldScope { kind: budget.scope.kind(), id: budget.scope.target().map(|it| it.to_string()) },
        created_at: budget.created_at.to_string(),
        created_by: budget.created_by.as_ref().map(ToString::to_string),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    id: BudgetId,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation_micros: Option<i64>,
    amount: i64,
    ladder: Vec<ToldRung>,
    owner: PrincipalId,
    period: &'a str,
    scope: ToldScope<'a>,
    created_at: String,
    created_by: Option<String>,
}

#[derive(Serialize)]
struct ToldRung {
    at: u64,
    step: &'static str,
}

#[derive(Serialize)]
struct ToldScope<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}
