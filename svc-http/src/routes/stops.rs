//! Stopping agents, one and many, starting them again, and what holds them.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::{Right, TokenScope};

use super::{Auth, CONSOLE, Content, Limit, OPEN, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopsOp {
    /// A machine freezes one agent.
    TokenFreeze,
    /// A machine freezes many.
    TokenFleet,
    /// A person freezes one agent.
    Freeze,
    /// A person starts one again.
    Restart,
    /// A person freezes many.
    Fleet,
    /// Lists holds.
    Holds,
    /// Lifts a hold.
    Lift,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Stops(StopsOp::TokenFreeze),
        path: "/v1/admin/agents/{aid}/freeze",
        request: Some("GivenReason"),
        content: Content::Json("Agent"),
        refusals: &[Kind::ReasonRequired, Kind::NotFound],
        summary: "Freeze one agent; past the token's hourly ceiling a person is asked (202)",
        ..MACHINE
    },
    Route {
        op: Op::Stops(StopsOp::TokenFleet),
        path: "/v1/admin/freeze",
        request: Some("FleetFreeze"),
        content: Content::Json("Fleet"),
        refusals: FLEET,
        summary: "Freeze the agents that a selector means; `dryRun` counts them first",
        ..MACHINE
    },
    Route {
        op: Op::Stops(StopsOp::Freeze),
        path: "/api/w/{wid}/agents/{aid}/freeze",
        // A kill owner may freeze their agent whatever their role; the rule looks.
        auth: Auth::Member(Right::Everyone),
        request: Some("GivenReason"),
        content: Content::Json("Agent"),
        refusals: &[Kind::ReasonRequired, Kind::Forbidden],
        summary: "Freeze one agent: its principal, sponsor or kill owner, an owner or an admin",
        ..WRITE
    },
    Route {
        op: Op::Stops(StopsOp::Restart),
        path: "/api/w/{wid}/agents/{aid}/restart",
        auth: Auth::Member(Right::RunAgents),
        request: Some("GivenReason"),
        content: Content::Json("Agent"),
        refusals: &[Kind::ReasonRequired, Kind::NotAllowed, Kind::DutiesNow],
        summary: "Start a frozen agent again; nothing that its stop voided comes back",
        ..WRITE
    },
    Route {
        op: Op::Stops(StopsOp::Fleet),
        path: "/api/w/{wid}/freeze",
        auth: Auth::Member(Right::FreezeFleet),
        request: Some("FleetFreeze"),
        content: Content::Json("Fleet"),
        refusals: FLEET,
        summary: "Freeze the agents that a selector means, without a ceiling",
        ..WRITE
    },
    Route {
        op: Op::Stops(StopsOp::Holds),
        path: "/api/w/{wid}/holds",
        auth: Auth::Member(Right::ReadHolds),
        content: Content::Json("HoldPage"),
        query: PAGE,
        summary: "Holds, newest first, those that were lifted among them",
        ..CONSOLE
    },
    Route {
        op: Op::Stops(StopsOp::Lift),
        path: "/api/w/{wid}/holds/{hld}/lift",
        auth: Auth::Member(Right::LiftHolds),
        request: Some("Lift"),
        content: Content::Json("Hold"),
        success: &[200, 202],
        refusals: &[Kind::ReasonRequired, Kind::NotAllowed, Kind::SecondOwnerRequired],
        summary: "Lift a hold; where there are two owners a second one has to agree (202)",
        ..WRITE
    },
];

const FLEET: &[Kind] = &[
    Kind::InvalidSelector,
    Kind::ReasonRequired,
    Kind::NothingSelected,
    Kind::ConfirmCountRequired,
    Kind::SelectionChanged,
];

const MACHINE: Route = Route {
    method: Method::POST,
    auth: Auth::Token(TokenScope::AgentsFreeze),
    limit: Limit::Token,
    success: &[200, 202],
    ..OPEN
};

const WRITE: Route = Route { method: Method::POST, ..CONSOLE };
