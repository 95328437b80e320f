//! Drills, which machines run.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::TokenScope;

use super::{Auth, Content, Limit, OPEN, Op, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DrillsOp {
    /// Starts a drill.
    Start,
    /// Reads its report.
    Read,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Drills(DrillsOp::Start),
        method: Method::POST,
        path: "/v1/admin/drills",
        request: Some("StartDrill"),
        content: Content::Json("DrillStarted"),
        success: &[202],
        refusals: &[Kind::NotAllowed, Kind::NotFound, Kind::DrillCooldown],
        summary: "Freeze a canary in place of others and try every place that could let it act",
        ..MACHINE
    },
    Route {
        op: Op::Drills(DrillsOp::Read),
        path: "/v1/admin/drills/{drl}",
        content: Content::Json("Drill"),
        refusals: &[Kind::NotFound],
        summary: "A drill's report: what was tried, what came of it and how long it took",
        ..MACHINE
    },
];

const MACHINE: Route = Route { auth: Auth::Token(TokenScope::AgentsFreeze), limit: Limit::Token, ..OPEN };
