//! Budgets for model calls.

use std::sync::Arc;

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::gateway::budgets::{
    BudgetView, ChangeBudget, CreateBudget, RaiseBudget, RemoveBudget, list_budgets, read_budget, scope_name,
};
use svc_core::rules::people::by::By;
use svc_core::state::gateway::{Budget, BudgetScope, Call as ModelCall};
use svc_core::store::{Key, Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::digest::CredentialId;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;

use super::{Caller, GateService};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::BudgetsOp;
use crate::wire::budget;
use crate::wire::page::Query;

/// Running calls of a workspace that are looked through for those of a budget.
const OPEN_MAX: usize = 1_000;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: BudgetsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    match op {
        BudgetsOp::List | BudgetsOp::AdminList => list(service, &by, workspace, call),
        BudgetsOp::Create | BudgetsOp::AdminCreate => {
            let read = budget::read(&call.body);
            let asked = read.map_err(|it| service.and_named(workspace, &call.body, budget::IDS, it))?;
            let key = key_of(service, workspace, &asked.scope)?;
            let create = CreateBudget {
                workspace,
                by,
                scope: asked.scope,
                key,
                amount: asked.amount,
                period: asked.period,
                ladder: asked.ladder,
                owner: asked.owner,
            };
            let made = service.run(create).await?;
            shown(service, &made).map(Answer::created)
        }
        BudgetsOp::Get => {
            let id = call.param_id("bdg")?;
            let found = service.read(|scope| read_budget(scope, &by, workspace, id))?;
            let key = key_of(service, workspace, &found.budget.scope)?;
            let name = service.read(|scope| scope_name(scope, &found.budget, key))?;
            let mut written = written(service, &found)?;
            budget::write_name(&mut written, name);
            answered(&written)
        }
        BudgetsOp::Change => {
            let read = budget::read_change(&call.body);
            let asked = read.map_err(|it| service.and_named(workspace, &call.body, budget::CHANGED_IDS, it))?;
            let budget = call.param_id("bdg")?;
            let (amount, ladder, owner) = (asked.amount, asked.ladder, asked.owner);
            let changed = service.run(ChangeBudget { workspace, by, budget, amount, ladder, owner }).await?;
            shown(service, &changed)
        }
        BudgetsOp::Remove => {
            service.run(RemoveBudget { workspace, by, budget: call.param_id("bdg")? }).await?;
            Ok(Answer::empty())
        }
        BudgetsOp::Raise => {
            let (allocation, note) = budget::read_raise(&call.body)?;
            let budget = call.param_id("bdg")?;
            let raised = service.run(RaiseBudget { workspace, by, budget, allocation, note }).await?;
            shown(service, &raised)
        }
    }
}

fn list(service: &GateService, by: &By, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let mut query = Query::among(&call.uri, call.route.query);
    let page = query.page("budgets", workspace);
    query.finish()?;
    let after = budget::after(page.after);
    let (views, more) = service.read(|scope| list_budgets(scope, by, workspace, after, page.limit))?;
    let open = open_calls(service, workspace)?;
    let data: Vec<Value> = views.iter().map(|it| budget::write(it, &open)).collect();
    let last = views.last().filter(|_| more).map(|it| it.budget.id);
    let next = last.map(|id| page.cursor(id.bits(), Budget::key(id)));
    page.list(data, next).map(Answer::json)
}

fn shown(service: &GateService, view: &BudgetView) -> Result<Answer, Refusal> {
    answered(&written(service, view)?)
}

fn written(service: &GateService, view: &BudgetView) -> Result<Value, Refusal> {
    let open = if view.used.open == 0 { Vec::new() } else { open_calls(service, view.budget.workspace)? };
    Ok(budget::write(view, &open))
}

fn answered(written: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(written).map(Answer::json).map_err(|_| Refusal::internal())
}

/// Calls of the workspace that run, the oldest first.
fn open_calls(service: &GateService, workspace: WorkspaceId) -> Result<Vec<Arc<ModelCall>>, Refusal> {
    let found = service.scan(&Range::all(Index::CallsOpen, workspace.bits(), OPEN_MAX))?;
    Ok(found.iter().filter_map(|it| ModelCall::peel(it.row.record.as_ref()?).cloned()).collect())
}

/// The row of the key that a scope names, where there is one.
pub(super) fn key_of(
    service: &GateService,
    workspace: WorkspaceId,
    scope: &BudgetScope,
) -> Result<Option<CredentialId>, Refusal> {
    let BudgetScope::Key(id) = scope else { return Ok(None) };
    let all = Range::all(Index::KeysOf, workspace.bits(), 1);
    let found = service.scan(&Range { from: id.bits(), until: id.bits().saturating_add(1), ..all })?;
    Ok(found.first().and_then(|it| if let Key::Credential(row) = it.row.key { Some(row) } else { None }))
}
