//! What members ask for that their role cannot do.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicationsOp {
    /// Lists applications.
    List,
    /// Makes one.
    Create,
    /// One application.
    Get,
    /// Takes one back.
    Withdraw,
    /// Makes the change.
    Approve,
    /// Does not.
    Deny,
}

const APPLICATION: Route =
    Route { auth: Auth::Member(Right::Everyone), content: Content::Json("Application"), ..CONSOLE };
const DECIDE: Route = Route {
    method: Method::POST,
    auth: Auth::Member(Right::ManageApplications),
    request: Some("ApplicationDecision"),
    ..APPLICATION
};

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Applications(ApplicationsOp::List),
        path: "/api/w/{wid}/applications",
        content: Content::Json("ApplicationPage"),
        query: PAGE,
        summary: "Applications, newest first: one's own, to owners and admins everybody's",
        ..APPLICATION
    },
    Route {
        op: Op::Applications(ApplicationsOp::Create),
        method: Method::POST,
        path: "/api/w/{wid}/applications",
        request: Some("NewApplication"),
        success: &[201],
        refusals: &[Kind::InvalidApplication, Kind::NotAllowed],
        summary: "Ask for what one's role cannot do",
        ..APPLICATION
    },
    Route {
        op: Op::Applications(ApplicationsOp::Get),
        path: "/api/w/{wid}/applications/{app}",
        summary: "One application",
        ..APPLICATION
    },
    Route {
        op: Op::Applications(ApplicationsOp::Withdraw),
        method: Method::DELETE,
        path: "/api/w/{wid}/applications/{app}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Take an application of one's own back",
        ..APPLICATION
    },
    Route {
        op: Op::Applications(ApplicationsOp::Approve),
        path: "/api/w/{wid}/applications/{app}/approve",
        request: Some("ApplicationApproval"),
        success: &[200, 202],
        refusals: &[
            Kind::NotAllowed,
            Kind::DutiesNever,
            Kind::SecondOwnerRequired,
            Kind::InvalidMandate,
            Kind::InvalidBudget,
            Kind::UnknownTemplate,
            Kind::ConfirmBroaden,
            Kind::PlanAgents,
        ],
        summary: "Make the change as one's own; where that is refused the application waits on",
        ..DECIDE
    },
    Route {
        op: Op::Applications(ApplicationsOp::Deny),
        path: "/api/w/{wid}/applications/{app}/deny",
        refusals: &[Kind::NotAllowed, Kind::DutiesNever],
        summary: "Do not make the change",
        ..DECIDE
    },
];
