//! The gate's routes, receipts, and what needs nobody.

use http::Method;
use svc_core::refusal::Kind;

use super::{Auth, Content, Limit, OPEN, Op, Route};

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Authorize,
        method: Method::POST,
        path: "/v1/actions/authorize",
        request: Some("ActionRequest"),
        content: Content::Json("Decision"),
        refusals: &[Kind::IdempotencyConflict],
        headers: &["idempotency-key"],
        summary: "Ask before an action; the answer is allow, deny or approval_required",
        ..GATE
    },
    Route {
        op: Op::ReadAction,
        method: Method::GET,
        path: "/v1/actions/{id}",
        content: Content::Json("Decision"),
        refusals: &[Kind::NotFound],
        summary: "Read an action as it now stands",
        ..GATE
    },
    Route {
        op: Op::RegisterCallback,
        method: Method::POST,
        path: "/v1/actions/{id}/callback",
        request: Some("CallbackRegistration"),
        content: Content::Json("Callback"),
        refusals: &[Kind::NotFound],
        summary: "Register the one https URL that is called once the action is decided",
        ..GATE
    },
    Route {
        op: Op::Settle,
        method: Method::POST,
        path: "/v1/actions/{id}/settle",
        request: Some("Outcome"),
        content: Content::Json("Decision"),
        refusals: &[Kind::NotFound, Kind::InvalidStatus, Kind::InvalidAmount, Kind::NotAllowed, Kind::AlreadySettled],
        summary: "Record what happened after an allowed action",
        ..GATE
    },
    Route {
        op: Op::ReportRun,
        method: Method::POST,
        path: "/v1/actions/{id}/ran",
        request: Some("Run"),
        content: Content::Json("Decision"),
        refusals: &[Kind::NotFound],
        summary: "Report that a tool ran although its action was not allowed",
        ..GATE
    },
    Route {
        op: Op::Verify,
        method: Method::POST,
        path: "/v1/verify",
        limit: Limit::Verify,
        request: Some("VerifyRequest"),
        content: Content::Json("Verdict"),
        refusals: &[Kind::VerifyUnknown],
        headers: &["idempotency-key"],
        summary: "Verify a receipt without a key; verifying a genuine one consumes it",
        ..OPEN
    },
    Route {
        op: Op::Keys,
        path: "/.well-known/jwks.json",
        content: Content::Json("Jwks"),
        summary: "The public keys of receipts, checkpoints and scorecards",
        ..OPEN
    },
    Route {
        op: Op::Health,
        path: "/healthz",
        content: Content::Json("Health"),
        summary: "Whether the process is alive",
        ..OPEN
    },
    Route {
        op: Op::Ready,
        path: "/readyz",
        content: Content::Json("Health"),
        summary: "Whether this server can decide",
        ..OPEN
    },
    Route {
        op: Op::OpenApi,
        path: "/openapi.json",
        content: Content::Json("OpenApi"),
        summary: "This interface as OpenAPI 3.1",
        ..OPEN
    },
    Route { op: Op::Docs, path: "/docs", content: Content::Html, summary: "This interface for people", ..OPEN },
    Route {
        op: Op::DocsErrors,
        path: "/docs/errors",
        content: Content::Html,
        summary: "Every type of error and what to do about it",
        ..OPEN
    },
];

/// What the gate's routes have in common.
const GATE: Route = Route { auth: Auth::Agent, limit: Limit::Gate, ..OPEN };
