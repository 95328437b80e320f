//! Model traffic: calls in both shapes, what is told of them, and what came of the work.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, BodyMax, CONSOLE, Content, Limit, OPEN, Op, Route, Shape};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GatewayOp {
    /// Calls a model in the chat-completions shape.
    Chat,
    /// Calls a model in the messages shape.
    Messages,
    /// Counts the tokens of a request in the messages shape.
    CountTokens,
    /// Reports what came of a task.
    Outcome,
    /// Reads one call.
    Call,
    /// Lists the calls of a workspace.
    Calls,
    /// Lists its tasks.
    Tasks,
}

/// What a call of a model may be refused with.
const CALL_KINDS: &[Kind] = &[
    Kind::Forbidden,
    Kind::UnclassifiedRequest,
    Kind::UnknownTaskClass,
    Kind::SensitiveDataBlocked,
    Kind::ApprovalRequired,
    Kind::ApprovalHeld,
    Kind::SeatLimitReached,
    Kind::PlanRequests,
    Kind::PolicyConflict,
    Kind::BudgetExhausted,
    Kind::BudgetHeld,
    Kind::BudgetTooSmall,
    Kind::UpstreamFailure,
    Kind::UpstreamDenied,
    Kind::UpstreamRejected,
    Kind::UpstreamTooLarge,
    Kind::UpstreamUnprocessable,
    Kind::NotFound,
];

/// The headers that a call of a model is steered by.
const CALL_HEADERS: &[&str] = &[
    "x-svc-task-class",
    "x-svc-task-id",
    "x-svc-objective",
    "x-svc-client-session",
    "x-svc-human-oversight",
    "x-svc-dry-run",
    "te",
];

/// What model calls are asked for by.
const CALLS: &[&str] = &[
    "limit",
    "cursor",
    "agentId",
    "principalId",
    "teamId",
    "keyId",
    "taskClass",
    "taskId",
    "model",
    "end",
    "from",
    "to",
];

/// What tasks are asked for by.
const TASKS: &[&str] =
    &["limit", "cursor", "agentId", "principalId", "teamId", "keyId", "taskClass", "outcome", "from", "to"];

const MODEL: Route = Route {
    method: Method::POST,
    auth: Auth::Payer,
    limit: Limit::Key,
    body_max: BodyMax::Model,
    refusals: CALL_KINDS,
    headers: CALL_HEADERS,
    ..OPEN
};

const READ: Route = Route { auth: Auth::Member(Right::ReadReports), ..CONSOLE };

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Gateway(GatewayOp::Chat),
        path: "/v1/chat/completions",
        request: Some("ChatRequest"),
        content: Content::Json("ChatAnswer"),
        summary: "Call a model in the chat-completions shape, whole or as a stream",
        ..MODEL
    },
    Route {
        op: Op::Gateway(GatewayOp::Messages),
        path: "/anthropic/v1/messages",
        shape: Shape::Messages,
        request: Some("MessagesRequest"),
        content: Content::Json("MessagesAnswer"),
        query: &["beta"],
        summary: "Call a model in the messages shape, whole or as a stream",
        ..MODEL
    },
    Route {
        op: Op::Gateway(GatewayOp::CountTokens),
        path: "/anthropic/v1/messages/count_tokens",
        shape: Shape::Messages,
        request: Some("CountRequest"),
        content: Content::Json("TokenCount"),
        query: &["beta"],
        summary: "Count the tokens of a request in the messages shape; estimated where its provider does not count",
        ..MODEL
    },
    Route {
        op: Op::Gateway(GatewayOp::Outcome),
        method: Method::POST,
        path: "/v1/outcomes",
        auth: Auth::Payer,
        limit: Limit::Key,
        request: Some("OutcomeReport"),
        content: Content::Json("OutcomeRecorded"),
        refusals: &[Kind::InvalidTaskStatus, Kind::Forbidden, Kind::UnknownTask],
        summary: "Report what came of a task",
        ..OPEN
    },
    Route {
        op: Op::Gateway(GatewayOp::Call),
        path: "/v1/calls/{cal}",
        auth: Auth::Payer,
        limit: Limit::Key,
        content: Content::Json("Call"),
        refusals: &[Kind::NotFound],
        summary: "One call: what it used, what it cost, what was tried",
        ..OPEN
    },
    Route {
        op: Op::Gateway(GatewayOp::Calls),
        path: "/api/w/{wid}/calls",
        content: Content::Json("Calls"),
        query: CALLS,
        summary: "Model calls of the workspace, newest first; a filtered page may hold few items and still have a next one",
        ..READ
    },
    Route {
        op: Op::Gateway(GatewayOp::Tasks),
        path: "/api/w/{wid}/tasks",
        content: Content::Json("Tasks"),
        query: TASKS,
        summary: "Tasks that model calls served, newest first; a filtered page may hold few items and still have a next one",
        ..READ
    },
];
