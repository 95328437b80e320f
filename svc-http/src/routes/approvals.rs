//! What waits for a person, and their word on it.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::{Right, TokenScope};

use super::{Auth, CONSOLE, Content, Limit, OPEN, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApprovalsOp {
    /// Lists what was asked, with filters.
    List,
    /// Reads one approval.
    Get,
    /// Approves.
    Approve,
    /// Denies.
    Deny,
    /// Lists what waits, for a machine.
    Waiting,
    /// Lists rules that follow from what persons decided, for a machine.
    Suggested,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Approvals(ApprovalsOp::List),
        path: "/api/w/{wid}/approvals",
        auth: Auth::Member(Right::ReadApprovals),
        content: Content::Json("ApprovalPage"),
        query: FILTERS,
        summary: "What persons were asked, newest first",
        ..CONSOLE
    },
    Route {
        op: Op::Approvals(ApprovalsOp::Get),
        path: "/api/w/{wid}/approvals/{apv}",
        auth: Auth::Member(Right::ReadApprovals),
        content: Content::Json("Approval"),
        summary: "One approval, and whether the caller may decide it",
        ..CONSOLE
    },
    Route {
        op: Op::Approvals(ApprovalsOp::Approve),
        method: Method::POST,
        path: "/api/w/{wid}/approvals/{apv}/approve",
        refusals: &[
            Kind::NotAllowed,
            Kind::DigestChanged,
            Kind::SecondPersonRequired,
            Kind::SecondOwnerRequired,
            Kind::SecondFactorAsked,
        ],
        request: Some("ApprovalYes"),
        summary: "Approve, after everything that can forbid it was looked at again",
        ..DECIDE
    },
    Route {
        op: Op::Approvals(ApprovalsOp::Deny),
        method: Method::POST,
        path: "/api/w/{wid}/approvals/{apv}/deny",
        refusals: &[Kind::NotAllowed, Kind::DigestChanged],
        summary: "Deny; one person is enough",
        ..DECIDE
    },
    Route {
        op: Op::ApprovalPage,
        path: "/w/{wid}/approvals/{apv}",
        summary: "The page that an approval's link leads to: whoever is signed in and may see it decides there",
        ..OPEN
    },
    Route {
        op: Op::Approvals(ApprovalsOp::Waiting),
        path: "/v1/admin/approvals",
        auth: Auth::Token(TokenScope::ApprovalsRead),
        limit: Limit::Token,
        content: Content::Json("ApprovalPage"),
        query: PAGE,
        summary: "What waits for persons, of every kind; no token decides any of it",
        ..OPEN
    },
    Route {
        op: Op::Approvals(ApprovalsOp::Suggested),
        path: "/v1/admin/suggested-rules",
        auth: Auth::Token(TokenScope::ApprovalsRead),
        limit: Limit::Token,
        content: Content::Json("SuggestedRulePage"),
        query: PAGE,
        summary: "Rules that follow from what persons decided, agent by agent; none is applied by itself",
        ..OPEN
    },
];

const FILTERS: &[&str] = &["limit", "cursor", "state", "kind", "agentId"];

const DECIDE: Route = Route {
    auth: Auth::Member(Right::DecideApprovals),
    request: Some("ApprovalDecision"),
    content: Content::Json("Approval"),
    ..CONSOLE
};
