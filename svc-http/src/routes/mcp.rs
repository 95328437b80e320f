//! The MCP server.

use http::Method;
use svc_core::refusal::Kind;

use super::{Auth, Content, Limit, OPEN, Op, Route, Shape};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpOp {
    /// One JSON-RPC message.
    Message,
    /// One JSON-RPC message to a server behind this one.
    Proxied,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[MESSAGE, PROXIED];

const MESSAGE: Route = Route {
    op: Op::Mcp(McpOp::Message),
    method: Method::POST,
    path: "/mcp",
    auth: Auth::McpAgent,
    limit: Limit::Gate,
    shape: Shape::Rpc,
    request: Some("McpMessage"),
    content: Content::Json("McpAnswer"),
    success: &[200, 202],
    refusals: &[Kind::NotFound],
    summary: "Speak MCP: one JSON-RPC 2.0 message, in the era with or without handshake",
    ..OPEN
};

const PROXIED: Route = Route {
    op: Op::Mcp(McpOp::Proxied),
    path: "/mcp/proxy/{server}",
    headers: &["x-svc-client-session"],
    refusals: &[Kind::NotFound, Kind::ToolServerFailure],
    summary: "Speak MCP to a server behind this one: every call of a tool is asked about first",
    ..MESSAGE
};
