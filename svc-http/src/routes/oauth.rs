//! OAuth 2.1: what clients find, registration, consent, tokens.

use http::Method;
use svc_core::refusal::Kind;

use super::{Content, Limit, OPEN, Op, Route, Shape};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OAuthOp {
    /// Metadata of the authorization server.
    Metadata,
    /// The same where clients look for it beside `/mcp`.
    McpMetadata,
    /// The same where clients of OpenID look for it.
    OpenId,
    /// Metadata of the protected resource.
    Resource,
    /// The same where clients look for it by the resource's path.
    McpResource,
    /// That of a proxied server.
    ProxyResource,
    /// Registers a client.
    Register,
    /// Asks a person.
    Authorize,
    /// The person's answer.
    Decide,
    /// Where a sign-in link leads.
    SignInPage,
    /// Signs in, on the way to being asked.
    SignIn,
    /// Gives tokens.
    Token,
    /// Takes tokens back.
    Revoke,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::OAuth(OAuthOp::Metadata),
        path: "/.well-known/oauth-authorization-server",
        summary: "The authorization server's metadata (RFC 8414)",
        ..METADATA
    },
    Route {
        op: Op::OAuth(OAuthOp::McpMetadata),
        path: "/.well-known/oauth-authorization-server/mcp",
        summary: "The same, where some clients look for it",
        ..METADATA
    },
    Route {
        op: Op::OAuth(OAuthOp::OpenId),
        path: "/.well-known/openid-configuration",
        summary: "The same, where clients of OpenID look for it",
        ..METADATA
    },
    Route {
        op: Op::OAuth(OAuthOp::Resource),
        path: "/.well-known/oauth-protected-resource",
        summary: "The MCP server's metadata (RFC 9728)",
        ..RESOURCE
    },
    Route {
        op: Op::OAuth(OAuthOp::McpResource),
        path: "/.well-known/oauth-protected-resource/mcp",
        summary: "The same, by the path of the resource",
        ..RESOURCE
    },
    Route {
        op: Op::OAuth(OAuthOp::ProxyResource),
        path: "/.well-known/oauth-protected-resource/mcp/proxy/{server}",
        refusals: &[Kind::NotFound],
        summary: "A proxied server's metadata (RFC 9728)",
        ..RESOURCE
    },
    Route {
        op: Op::OAuth(OAuthOp::Register),
        method: Method::POST,
        path: "/oauth/register",
        limit: Limit::SignIn,
        request: Some("ClientRegistration"),
        content: Content::Json("RegisteredClient"),
        success: &[201],
        refusals: &[Kind::InvalidClientMetadata, Kind::InvalidRedirectUri],
        summary: "Register a client (RFC 7591)",
        ..FLAT
    },
    Route {
        op: Op::OAuth(OAuthOp::Authorize),
        path: "/oauth/authorize",
        query: &[
            "response_type",
            "client_id",
            "redirect_uri",
            "code_challenge",
            "code_challenge_method",
            "state",
            "scope",
            "resource",
            "question",
        ],
        content: Content::Html,
        success: &[200, 303],
        refusals: &[Kind::InvalidRedirectUri],
        summary: "Ask the signed-in person which agent the client may act as",
        ..FLAT
    },
    Route {
        op: Op::OAuth(OAuthOp::Decide),
        method: Method::POST,
        path: "/oauth/authorize",
        request: Some("ConsentForm"),
        content: Content::Html,
        success: &[303],
        refusals: &[Kind::Unauthenticated, Kind::Csrf, Kind::NotAllowed, Kind::NotFound],
        summary: "The person's answer, from that page alone",
        ..FLAT
    },
    Route {
        op: Op::OAuth(OAuthOp::SignInPage),
        path: "/sign-in",
        query: &["next"],
        content: Content::Html,
        summary: "Sign in by a link, or by e-mail and password",
        ..FLAT
    },
    Route {
        op: Op::OAuth(OAuthOp::SignIn),
        method: Method::POST,
        path: "/sign-in",
        limit: Limit::SignIn,
        request: Some("SignInForm"),
        content: Content::Html,
        success: &[200, 303],
        refusals: &[Kind::WrongSignIn, Kind::Csrf],
        summary: "Sign in from a page of this server, on the way to being asked",
        ..FLAT
    },
    Route {
        op: Op::OAuth(OAuthOp::Token),
        method: Method::POST,
        path: "/oauth/token",
        request: Some("TokenForm"),
        content: Content::Json("Tokens"),
        refusals: &[
            Kind::InvalidClient,
            Kind::InvalidGrant,
            Kind::InvalidScope,
            Kind::InvalidTarget,
            Kind::UnsupportedGrantType,
        ],
        summary: "Turn a code or a refresh token into tokens",
        ..FLAT
    },
    Route {
        op: Op::OAuth(OAuthOp::Revoke),
        method: Method::POST,
        path: "/oauth/revoke",
        request: Some("RevocationForm"),
        content: Content::Json("Nothing"),
        refusals: &[Kind::InvalidClient],
        summary: "End the connection that a token is of (RFC 7009)",
        ..FLAT
    },
];

const METADATA: Route = Route { content: Content::Json("AuthorizationServer"), ..OPEN };
const RESOURCE: Route = Route { content: Content::Json("ProtectedResource"), ..OPEN };
const FLAT: Route = Route { limit: Limit::OAuth, shape: Shape::Flat, ..OPEN };
