//! The MCP servers behind this one.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpServersOp {
    /// Lists servers.
    List,
    /// Makes one.
    Create,
    /// Reads one.
    Get,
    /// Changes one.
    Change,
    /// Removes one.
    Remove,
    /// Accepts what one tells of its tools.
    Accept,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::McpServers(McpServersOp::List),
        path: "/api/w/{wid}/mcp-servers",
        content: Content::Json("McpServers"),
        query: PAGE,
        summary: "The MCP servers that agents reach through this one, without their credentials",
        ..SERVERS
    },
    Route {
        op: Op::McpServers(McpServersOp::Create),
        method: Method::POST,
        path: "/api/w/{wid}/mcp-servers",
        request: Some("NewMcpServer"),
        success: &[201],
        summary: "Make an MCP server; its credential is sealed, and the tools that it has now are accepted",
        ..SERVERS
    },
    Route {
        op: Op::McpServers(McpServersOp::Get),
        path: "/api/w/{wid}/mcp-servers/{mcs}",
        summary: "An MCP server, with the tools that wait for a person",
        ..SERVERS
    },
    Route {
        op: Op::McpServers(McpServersOp::Change),
        method: Method::PATCH,
        path: "/api/w/{wid}/mcp-servers/{mcs}",
        request: Some("McpServerChange"),
        refusals: &[Kind::NotAllowed],
        summary: "Change what is named of an MCP server; `null` returns a member to its default",
        ..SERVERS
    },
    Route {
        op: Op::McpServers(McpServersOp::Remove),
        method: Method::DELETE,
        path: "/api/w/{wid}/mcp-servers/{mcs}",
        content: Content::Empty,
        success: &[204],
        summary: "Remove an MCP server and its credential",
        ..SERVERS
    },
    Route {
        op: Op::McpServers(McpServersOp::Accept),
        method: Method::POST,
        path: "/api/w/{wid}/mcp-servers/{mcs}/accept",
        request: Some("AcceptTools"),
        refusals: &[Kind::NotAllowed],
        summary: "Accept tools as the server tells of them now, as long as that is what was looked at",
        ..SERVERS
    },
];

const SERVERS: Route =
    Route { auth: Auth::Member(Right::ManageIntegrations), content: Content::Json("McpServer"), ..CONSOLE };
