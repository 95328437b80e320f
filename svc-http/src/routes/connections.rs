//! Connections of a workspace.

use http::Method;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionsOp {
    /// Lists connections.
    List,
    /// Reads one.
    Get,
    /// Ends one.
    End,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Connections(ConnectionsOp::List),
        path: "/api/w/{wid}/connections",
        auth: Auth::Member(Right::AgentKeys),
        content: Content::Json("Connections"),
        query: PAGE,
        summary: "Clients that act as agents, newest first",
        ..CONSOLE
    },
    Route {
        op: Op::Connections(ConnectionsOp::Get),
        path: "/api/w/{wid}/connections/{con}",
        auth: Auth::Member(Right::AgentKeys),
        content: Content::Json("Connection"),
        summary: "One connection",
        ..CONSOLE
    },
    Route {
        op: Op::Connections(ConnectionsOp::End),
        method: Method::DELETE,
        path: "/api/w/{wid}/connections/{con}",
        auth: Auth::Member(Right::AgentKeys),
        content: Content::Empty,
        success: &[204],
        summary: "End a connection and every token of it",
        ..CONSOLE
    },
];
