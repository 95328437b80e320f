//! Agents and their mandates, for persons and for machines.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::{Right, TokenScope};

use super::{Auth, CONSOLE, Content, Limit, OPEN, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentsOp {
    /// Lists agents.
    List,
    /// Makes one.
    Create,
    /// Reads one.
    Get,
    /// Changes one.
    Change,
    /// Removes one.
    Remove,
    /// Lists an agent's mandates.
    Mandates,
    /// Grants one.
    Grant,
    /// Reads a mandate.
    Mandate,
    /// Changes one.
    ChangeMandate,
    /// Revokes one.
    Revoke,
    /// Lists its versions.
    Versions,
    /// Lists agents, for a machine.
    AdminList,
    /// Registers one, for a machine.
    AdminCreate,
}

const AGENT: Route = Route { auth: Auth::Member(Right::ReadAgents), content: Content::Json("Agent"), ..CONSOLE };
const MANDATE: Route =
    Route { auth: Auth::Member(Right::ManageMandates), content: Content::Json("Mandate"), ..CONSOLE };

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Agents(AgentsOp::List),
        path: "/api/w/{wid}/agents",
        // A kill owner sees which agents they may stop, whatever their role; the rule looks.
        auth: Auth::Member(Right::Everyone),
        content: Content::Json("Agents"),
        refusals: &[Kind::Forbidden],
        query: PAGE,
        summary: "Agents, newest first; a member's own alone, and those that one may freeze as kill owner",
        ..AGENT
    },
    Route {
        op: Op::Agents(AgentsOp::Create),
        method: Method::POST,
        path: "/api/w/{wid}/agents",
        auth: Auth::Member(Right::ManageAgents),
        request: Some("Blueprint"),
        content: Content::Json("NewAgent"),
        success: &[201],
        refusals: &[Kind::InvalidMandate, Kind::UnknownTemplate, Kind::PlanAgents],
        summary: "Make an agent with its mandates and its first key, all or nothing",
        ..AGENT
    },
    Route {
        op: Op::Agents(AgentsOp::Get),
        path: "/api/w/{wid}/agents/{aid}",
        auth: Auth::Member(Right::Everyone),
        summary: "One agent, with what it did lately; to a kill owner who may read no more, its name and standing",
        ..AGENT
    },
    Route {
        op: Op::Agents(AgentsOp::Change),
        method: Method::PATCH,
        path: "/api/w/{wid}/agents/{aid}",
        auth: Auth::Member(Right::RunAgents),
        request: Some("AgentChange"),
        summary: "Rename an agent; owners and admins also change its tier, sponsor and kill owner",
        ..AGENT
    },
    Route {
        op: Op::Agents(AgentsOp::Remove),
        method: Method::DELETE,
        path: "/api/w/{wid}/agents/{aid}",
        auth: Auth::Member(Right::ManageAgents),
        content: Content::Empty,
        success: &[204],
        summary: "Remove an agent for good",
        ..AGENT
    },
    Route {
        op: Op::Agents(AgentsOp::Mandates),
        path: "/api/w/{wid}/agents/{aid}/mandates",
        content: Content::Json("Mandates"),
        query: PAGE,
        summary: "An agent's mandates that were not revoked, newest first, with what is used of their limits a period",
        ..AGENT
    },
    Route {
        op: Op::Agents(AgentsOp::Grant),
        method: Method::POST,
        path: "/api/w/{wid}/agents/{aid}/mandates",
        request: Some("NewMandate"),
        success: &[201],
        refusals: &[
            Kind::InvalidMandate,
            Kind::UnknownTemplate,
            Kind::PlanAgents,
            Kind::ConfirmBroaden,
            Kind::NotAllowed,
        ],
        summary: "Grant a mandate, by template or whole",
        ..MANDATE
    },
    Route {
        op: Op::Agents(AgentsOp::Mandate),
        path: "/api/w/{wid}/mandates/{mnd}",
        auth: Auth::Member(Right::ReadAgents),
        summary: "One mandate in the version in force, with what is used of its limits a period; of a revoked one the last version",
        ..MANDATE
    },
    Route {
        op: Op::Agents(AgentsOp::ChangeMandate),
        method: Method::PATCH,
        path: "/api/w/{wid}/mandates/{mnd}",
        request: Some("MandateChange"),
        refusals: &[Kind::InvalidMandate, Kind::ConfirmBroaden, Kind::NotAllowed],
        summary: "Change a mandate by a new version, pause it or let it go on",
        ..MANDATE
    },
    Route {
        op: Op::Agents(AgentsOp::Revoke),
        method: Method::DELETE,
        path: "/api/w/{wid}/mandates/{mnd}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Revoke a mandate for good",
        ..MANDATE
    },
    Route {
        op: Op::Agents(AgentsOp::Versions),
        path: "/api/w/{wid}/mandates/{mnd}/versions",
        content: Content::Json("Mandates"),
        query: PAGE,
        summary: "Every version of a mandate, newest first",
        ..AGENT
    },
    Route {
        op: Op::Agents(AgentsOp::AdminList),
        path: "/v1/admin/agents",
        auth: Auth::Token(TokenScope::AgentsRead),
        limit: Limit::Token,
        content: Content::Json("Agents"),
        query: PAGE,
        summary: "Agents with their standing, oldest first",
        ..OPEN
    },
    Route {
        op: Op::Agents(AgentsOp::AdminCreate),
        method: Method::POST,
        path: "/v1/admin/agents",
        auth: Auth::Token(TokenScope::AgentsWrite),
        limit: Limit::Token,
        request: Some("TokenBlueprint"),
        content: Content::Json("NewAgent"),
        success: &[201],
        refusals: &[Kind::TemplateOnly, Kind::UnknownTemplate, Kind::PlanAgents],
        summary: "Register an agent from templates, all or nothing",
        ..OPEN
    },
];
