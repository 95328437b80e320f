//! Budgets for model calls.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Limit, OPEN, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetsOp {
    /// Lists them.
    List,
    /// Makes one.
    Create,
    /// Reads one.
    Get,
    /// Changes one.
    Change,
    /// Removes one.
    Remove,
    /// Raises what one allots in its period.
    Raise,
    /// Lists them for an admin key.
    AdminList,
    /// Makes one for an admin key.
    AdminCreate,
}

const BUDGET: Route = Route { auth: Auth::Member(Right::ManageBudgets), content: Content::Json("Budget"), ..CONSOLE };
const ADMIN: Route = Route { auth: Auth::WorkspaceAdmin, limit: Limit::Key, content: Content::Json("Budget"), ..OPEN };

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Budgets(BudgetsOp::AdminList),
        path: "/v1/admin/budgets",
        content: Content::Json("Budgets"),
        query: PAGE,
        refusals: &[Kind::NotFound],
        summary: "Budgets of the workspace, the newest first",
        ..ADMIN
    },
    Route {
        op: Op::Budgets(BudgetsOp::AdminCreate),
        method: Method::POST,
        path: "/v1/admin/budgets",
        request: Some("NewBudget"),
        success: &[201],
        refusals: &[Kind::InvalidBudget, Kind::NotFound],
        summary: "Make a budget",
        ..ADMIN
    },
    Route {
        op: Op::Budgets(BudgetsOp::List),
        path: "/api/w/{wid}/budgets",
        auth: Auth::Member(Right::ReadReports),
        content: Content::Json("Budgets"),
        query: PAGE,
        summary: "Budgets of the workspace, the newest first",
        ..BUDGET
    },
    Route {
        op: Op::Budgets(BudgetsOp::Create),
        method: Method::POST,
        path: "/api/w/{wid}/budgets",
        request: Some("NewBudget"),
        success: &[201],
        refusals: &[Kind::InvalidBudget],
        summary: "Make a budget",
        ..BUDGET
    },
    Route {
        op: Op::Budgets(BudgetsOp::Get),
        path: "/api/w/{wid}/budgets/{bdg}",
        // Whoever owns a budget decides on it, and reads it whatever their role; the rule looks.
        auth: Auth::Member(Right::RaiseBudgets),
        summary: "One budget, what it is over by name, and what has been used of it; its owner reads it too",
        ..BUDGET
    },
    Route {
        op: Op::Budgets(BudgetsOp::Change),
        method: Method::PATCH,
        path: "/api/w/{wid}/budgets/{bdg}",
        request: Some("BudgetChange"),
        refusals: &[Kind::InvalidBudget],
        summary: "Change a budget's amount, ladder or owner",
        ..BUDGET
    },
    Route {
        op: Op::Budgets(BudgetsOp::Remove),
        method: Method::DELETE,
        path: "/api/w/{wid}/budgets/{bdg}",
        content: Content::Empty,
        success: &[204],
        summary: "Remove a budget",
        ..BUDGET
    },
    Route {
        op: Op::Budgets(BudgetsOp::Raise),
        method: Method::POST,
        path: "/api/w/{wid}/budgets/{bdg}/raise",
        auth: Auth::Member(Right::RaiseBudgets),
        request: Some("BudgetRaise"),
        refusals: &[Kind::InvalidBudget],
        summary: "Raise what a budget allots in its running period: by its owner, an owner or an admin",
        ..BUDGET
    },
];
