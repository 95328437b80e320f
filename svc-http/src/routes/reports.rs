//! Reports over days of model traffic, and bills beside them.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, BodyMax, CONSOLE, CSV, Content, JSON, Limit, OPEN, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportsOp {
    /// What was spent.
    Spend,
    /// What came of it.
    Yield,
    /// What was wasted.
    Waste,
    /// What was spent, for an admin key.
    AdminSpend,
    /// What came of it, for an admin key.
    AdminYield,
    /// What was wasted, for an admin key.
    AdminWaste,
    /// Lists comparisons with bills.
    Bills,
    /// Compares a bill.
    ImportBill,
}

const REPORT: Route = Route { auth: Auth::Member(Right::ReadReports), ..CONSOLE };
const ADMIN: Route = Route { auth: Auth::WorkspaceAdmin, limit: Limit::Key, refusals: &[Kind::NotFound], ..OPEN };
const SPEND: &[&str] = &["from", "to", "by", "currency"];
const GROUPED: &[&str] = &["from", "to", "by"];
const RANGE: &[&str] = &["from", "to"];

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Reports(ReportsOp::Spend),
        path: "/api/w/{wid}/reports/spend",
        auth: Auth::Member(Right::ReadSpend),
        content: Content::Json("SpendReport"),
        query: SPEND,
        summary: "What was spent on models, by day, team, principal, agent, model, task class or key",
        ..REPORT
    },
    Route {
        op: Op::Reports(ReportsOp::Yield),
        path: "/api/w/{wid}/reports/yield",
        content: Content::Json("YieldReport"),
        query: GROUPED,
        summary: "What came of what was spent",
        ..REPORT
    },
    Route {
        op: Op::Reports(ReportsOp::Waste),
        path: "/api/w/{wid}/reports/waste",
        content: Content::Json("WasteReport"),
        query: RANGE,
        summary: "What could have been saved",
        ..REPORT
    },
    Route {
        op: Op::Reports(ReportsOp::AdminSpend),
        path: "/v1/admin/reports/spend",
        content: Content::Json("SpendReport"),
        query: SPEND,
        summary: "What was spent on models, by day, team, principal, agent, model, task class or key",
        ..ADMIN
    },
    Route {
        op: Op::Reports(ReportsOp::AdminYield),
        path: "/v1/admin/reports/yield",
        content: Content::Json("YieldReport"),
        query: GROUPED,
        summary: "What came of what was spent",
        ..ADMIN
    },
    Route {
        op: Op::Reports(ReportsOp::AdminWaste),
        path: "/v1/admin/reports/waste",
        content: Content::Json("WasteReport"),
        query: RANGE,
        summary: "What could have been saved",
        ..ADMIN
    },
    Route {
        op: Op::Reports(ReportsOp::Bills),
        path: "/api/w/{wid}/billing-imports",
        content: Content::Json("BillingImports"),
        query: PAGE,
        summary: "Comparisons of bills with what was metered, newest first",
        ..REPORT
    },
    Route {
        op: Op::Reports(ReportsOp::ImportBill),
        method: Method::POST,
        path: "/api/w/{wid}/billing-imports",
        auth: Auth::Member(Right::ManageBudgets),
        body_max: BodyMax::Billing,
        query: &["upstreamId", "from", "to"],
        request: Some("NewBillingImport"),
        media: &[JSON, CSV],
        content: Content::Json("BillingImport"),
        success: &[201],
        summary: "Compare a provider's bill, JSON or CSV with the parameters beside it, with what was metered; changes no record",
        ..REPORT
    },
];
