//! Keys and service tokens.

use http::Method;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Limit, OPEN, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessOp {
    /// Lists keys.
    Keys,
    /// Makes one that is no agent's.
    CreateKey,
    /// Reads one.
    Key,
    /// Revokes one.
    RevokeKey,
    /// Lists an agent's keys.
    AgentKeys,
    /// Makes one for an agent.
    CreateAgentKey,
    /// Makes one that is no agent's, for an admin key.
    AdminCreateKey,
    /// Lists service tokens.
    Tokens,
    /// Makes one.
    CreateToken,
    /// Reads one.
    Token,
    /// Revokes one.
    RevokeToken,
}

const KEY: Route = Route { auth: Auth::Member(Right::ManageKeys), content: Content::Json("Key"), ..CONSOLE };
const OWN_KEY: Route = Route { auth: Auth::Member(Right::AgentKeys), ..KEY };
const TOKEN: Route =
    Route { auth: Auth::Member(Right::ManageTokens), content: Content::Json("ServiceToken"), ..CONSOLE };

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Access(AccessOp::Keys),
        path: "/api/w/{wid}/keys",
        content: Content::Json("Keys"),
        query: PAGE,
        summary: "Keys of the workspace, newest first",
        ..KEY
    },
    Route {
        op: Op::Access(AccessOp::CreateKey),
        method: Method::POST,
        path: "/api/w/{wid}/keys",
        request: Some("NewKey"),
        content: Content::Json("IssuedKey"),
        success: &[201],
        summary: "Make a key for model traffic or administration, shown this once",
        ..KEY
    },
    Route { op: Op::Access(AccessOp::Key), path: "/api/w/{wid}/keys/{key}", summary: "One key", ..OWN_KEY },
    Route {
        op: Op::Access(AccessOp::RevokeKey),
        method: Method::DELETE,
        path: "/api/w/{wid}/keys/{key}",
        content: Content::Empty,
        success: &[204],
        summary: "Revoke a key for good, and every key that it made",
        ..OWN_KEY
    },
    Route {
        op: Op::Access(AccessOp::AgentKeys),
        path: "/api/w/{wid}/agents/{aid}/keys",
        content: Content::Json("Keys"),
        query: PAGE,
        summary: "An agent's keys, newest first",
        ..OWN_KEY
    },
    Route {
        op: Op::Access(AccessOp::CreateAgentKey),
        method: Method::POST,
        path: "/api/w/{wid}/agents/{aid}/keys",
        request: Some("NewAgentKey"),
        content: Content::Json("IssuedKey"),
        success: &[201],
        summary: "Make one more key for an agent, shown this once; it ends with its maker's membership",
        ..OWN_KEY
    },
    Route {
        op: Op::Access(AccessOp::AdminCreateKey),
        method: Method::POST,
        path: "/v1/admin/keys",
        auth: Auth::WorkspaceAdmin,
        limit: Limit::Key,
        request: Some("NewKey"),
        content: Content::Json("IssuedKey"),
        refusals: &[svc_core::refusal::Kind::Forbidden],
        summary: "Make a key, shown this once; it ends with the key that made it",
        ..OPEN
    },
    Route {
        op: Op::Access(AccessOp::Tokens),
        path: "/api/w/{wid}/service-tokens",
        content: Content::Json("ServiceTokens"),
        query: PAGE,
        summary: "Service tokens, newest first",
        ..TOKEN
    },
    Route {
        op: Op::Access(AccessOp::CreateToken),
        method: Method::POST,
        path: "/api/w/{wid}/service-tokens",
        request: Some("NewServiceToken"),
        content: Content::Json("IssuedToken"),
        success: &[201],
        summary: "Make a service token, shown this once; at most 90 days",
        ..TOKEN
    },
    Route {
        op: Op::Access(AccessOp::Token),
        path: "/api/w/{wid}/service-tokens/{stk}",
        summary: "One service token",
        ..TOKEN
    },
    Route {
        op: Op::Access(AccessOp::RevokeToken),
        method: Method::DELETE,
        path: "/api/w/{wid}/service-tokens/{stk}",
        content: Content::Empty,
        success: &[204],
        summary: "Revoke a service token for good",
        ..TOKEN
    },
];
