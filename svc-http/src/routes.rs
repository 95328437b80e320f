//! THE table of routes. Matching, 405 and `allow`, `didYouMean`, which credential is read, the rate class, the body
//! limit, the envelope of errors, the refusals that may be answered, the OpenAPI document and the reference page all
//! follow from these rows and are written nowhere else.
//!
//! **Invariant:** a route that is not in the table does not exist. Adding one is a row here and an arm in `dispatch.rs`.

mod access;
mod actions;
mod agents;
mod applications;
mod approvals;
mod budgets;
mod connections;
mod console;
mod drills;
mod events;
mod evidence;
mod gate;
mod gateway;
mod hooks;
mod integrations;
mod mcp;
mod mcp_servers;
mod me;
mod members;
mod oauth;
mod reports;
mod routing;
mod settings;
mod sign_in;
mod stops;

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::{Right, TokenScope};

pub use access::AccessOp;
pub use actions::ActionsOp;
pub use agents::AgentsOp;
pub use applications::ApplicationsOp;
pub use approvals::ApprovalsOp;
pub use budgets::BudgetsOp;
pub use connections::ConnectionsOp;
pub use console::ConsoleOp;
pub use drills::DrillsOp;
pub use events::EventsOp;
pub use evidence::EvidenceOp;
pub use gateway::GatewayOp;
pub use hooks::HooksOp;
pub use integrations::IntegrationsOp;
pub use mcp::McpOp;
pub use mcp_servers::McpServersOp;
pub use me::MeOp;
pub use members::MembersOp;
pub use oauth::OAuthOp;
pub use reports::ReportsOp;
pub use routing::RoutingOp;
pub use settings::SettingsOp;
pub use sign_in::SignInOp;
pub use stops::StopsOp;

/// What a route does; `dispatch.rs` has one arm for each, and for the routes of a family `ops/` has its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Asks whether an action may be done.
    Authorize,
    /// Reads an action as it stands.
    ReadAction,
    /// Registers the one URL that hears of the decision.
    RegisterCallback,
    /// Records what happened.
    Settle,
    /// Reports that a tool ran although its action was not allowed.
    ReportRun,
    /// Verifies a receipt and consumes it.
    Verify,
    /// The public keys of receipts, checkpoints and scorecards.
    Keys,
    /// Whether the process is alive.
    Health,
    /// Whether this server can decide.
    Ready,
    /// This interface as OpenAPI 3.1.
    OpenApi,
    /// This interface for people.
    Docs,
    /// The types of errors for people: what `error.docs` points to.
    DocsErrors,
    /// The page of an approval.
    ApprovalPage,
    /// The console.
    Console(ConsoleOp),
    /// Model traffic.
    Gateway(GatewayOp),
    /// Integrations and calls to the outside.
    Integrations(IntegrationsOp),
    /// What other systems send, signed.
    Hooks(HooksOp),
    /// What waits for a person, and their word on it.
    Approvals(ApprovalsOp),
    /// The ledger and its evidence.
    Evidence(EvidenceOp),
    /// Stopping agents, starting them again, holds.
    Stops(StopsOp),
    /// Drills.
    Drills(DrillsOp),
    /// Actions of a workspace.
    Actions(ActionsOp),
    /// Live events of a workspace.
    Events(EventsOp),
    /// Agents and their mandates.
    Agents(AgentsOp),
    /// Keys and service tokens.
    Access(AccessOp),
    /// Members and teams.
    Members(MembersOp),
    /// Providers, models, classes, profiles and routing.
    Routing(RoutingOp),
    /// Settings and templates.
    Settings(SettingsOp),
    /// Budgets for model calls.
    Budgets(BudgetsOp),
    /// Reports over days of model traffic, and bills beside them.
    Reports(ReportsOp),
    /// What members ask for that their role cannot do.
    Applications(ApplicationsOp),
    /// A person's own account and sessions.
    Me(MeOp),
    /// Signing in.
    SignIn(SignInOp),
    /// OAuth 2.1.
    OAuth(OAuthOp),
    /// Clients that act as agents.
    Connections(ConnectionsOp),
    /// The MCP server, and those behind it.
    Mcp(McpOp),
    /// The MCP servers behind this one.
    McpServers(McpServersOp),
}

/// Who may call a route. Exactly one kind of credential is read; any other is treated as not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Anybody; no credential is read.
    Open,
    /// An agent's key, `ask_…` or `aat_…`, as `authorization: Bearer`.
    Agent,
    /// The same where MCP is spoken: a removed agent is told that it is stopped, as where models are called.
    McpAgent,
    /// Any key of a workspace, as `authorization: Bearer` or `x-api-key`.
    Workspace,
    /// Any key of a workspace, sent in the same ways, for model traffic: whether it is in force, and its agent may go on, is
    /// looked up in the commit that admits the call.
    Payer,
    /// A workspace key with admin scope, sent in the same ways.
    WorkspaceAdmin,
    /// A service token, `ims_…`, with this scope, as `authorization: Bearer`.
    Token(TokenScope),
    /// Whoever has a secret of an integration, by a signature over the body: no credential, cookie or mark of a page is read.
    Signature,
    /// A signed-in person, by the session's cookie, in no workspace.
    Session,
    /// A signed-in person who has this right in the workspace that `{wid}` names.
    Member(Right),
}

/// Which rate a route counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// None.
    Unlimited,
    /// `limits.gatePerMinute`, per agent; what fails before an agent is known counts per address.
    Gate,
    /// `limits.verifyPerMinute`, per address.
    Verify,
    /// `limits.gatewayPerMinute`, per key; what fails before a key is known counts per address.
    Key,
    /// `limits.tokenPerMinute`, per token; what fails before a token is known counts per address.
    Token,
    /// `limits.gatewayPerMinute`, per address, of cookies that name no session, on routes that count nothing else: no row has it.
    Session,
    /// `limits.signInPerMinute`, per address.
    SignIn,
    /// `limits.oauthPerMinute`, per address.
    OAuth,
    /// A fifth of `limits.oauthPerMinute`, per client.
    OAuthClient,
}

/// The envelope of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `{ "error": { … } }`
    Plain,
    /// `{ "type": "error", "error": { … } }`, as messages-shaped clients expect.
    Messages,
    /// `{ "error": "…", "error_description": "…" }`, as RFC 6749 and 7591 have it.
    Flat,
    /// A JSON-RPC 2.0 answer.
    Rpc,
    /// `{ "err": "…", "description": "…" }`, as RFC 8935 has it.
    SecurityEvent,
}

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMax {
    /// `limits.bodyBytes`.
    Plain,
    /// `limits.modelBodyBytes`.
    Model,
    /// `limits.billingBodyBytes`.
    Billing,
}

/// The success answer's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// JSON whose schema has this name in the OpenAPI document.
    Json(&'static str),
    /// A page.
    Html,
    /// A file of the console.
    File,
    /// Server-sent events.
    Events,
    /// Nothing: 204.
    Empty,
}

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";
/// The media type of a form.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
/// The media type of a table of values.
pub(crate) const CSV: &str = "text/csv";

/// One route.
#[derive(Clone, Debug)]
pub struct Route {
    /// What it does.
    pub op: Op,
    /// Its method; HEAD is answered wherever it is GET.
    pub method: Method,
    /// Its path, with names in braces where ids stand.
    pub path: &'static str,
    /// Whose credential is read.
    pub auth: Auth,
    /// Which rate it counts against.
    pub limit: Limit,
    /// The envelope of its errors.
    pub shape: Shape,
    /// The largest body.
    pub body_max: BodyMax,
    /// The name of its body's schema in the OpenAPI document, where it takes a body.
    pub request: Option<&'static str>,
    /// The media types that its body may have, where they are others than those of its shape.
    pub media: &'static [&'static str],
    /// What a success answers.
    pub content: Content,
    /// The statuses of successes.
    pub success: &'static [u16],
    /// What it may refuse with, beyond [`EVERYWHERE`] and what its [`Auth`], [`Limit`] and body bring along.
    pub refusals: &'static [Kind],
    /// The request headers that mean something here beyond those of every route.
    pub headers: &'static [&'static str],
    /// The query parameters that mean something here.
    pub query: &'static [&'static str],
    /// One line for people.
    pub summary: &'static str,
}

/// What every route may refuse with.
pub const EVERYWHERE: &[Kind] = &[Kind::InvalidRequest, Kind::BodyTooLarge, Kind::Internal, Kind::NotReady];
/// What an answer may be that no route gives: the head is over a limit, or there is no route.
pub const NOWHERE: &[Kind] = &[Kind::HeadersTooLarge, Kind::MethodNotAllowed, Kind::RouteNotFound, Kind::UriTooLong];

impl Route {
    /// Whether it belongs to the console's interface: answered to the deployment's own host alone, and writes need to come
    /// from its own pages (SPEC part 5).
    #[must_use]
    pub fn is_console(&self) -> bool {
        self.path.starts_with("/api/")
    }

    /// What fails to be its caller counts against. The console's reads and writes have no rate (CONTRACT part 8 names none), but a
    /// cookie that names no session costs a look like any other guess.
    #[must_use]
    pub fn limit_of_strangers(&self) -> Limit {
        match (self.limit, self.auth) {
            (Limit::Unlimited, Auth::Session | Auth::Member(_)) => Limit::Session,
            (limit, _) => limit,
        }
    }

    /// Whether it is answered to the deployment's own host alone (CONTRACT part 10).
    #[must_use]
    pub fn is_own_host(&self) -> bool {
        let own = ["/api/", "/oauth/", "/mcp/", "/w/", "/assets/"];
        own.iter().any(|it| self.path.starts_with(it)) || matches!(self.path, "/" | "/mcp" | "/sign-in")
    }

    /// Whether it speaks MCP: a page of another origin may not.
    #[must_use]
    pub fn is_mcp(&self) -> bool {
        self.shape == Shape::Rpc
    }

    /// Whether its body is a form.
    #[must_use]
    pub fn takes_form(&self) -> bool {
        self.shape == Shape::Flat && self.path != "/oauth/register"
    }

    /// The media types of its body.
    #[must_use]
    pub fn takes(&self) -> &'static [&'static str] {
        match self.shape {
            _ if !self.media.is_empty() => self.media,
            Shape::SecurityEvent => &["application/secevent+jwt"],
            _ if self.takes_form() => &[FORM],
            Shape::Plain | Shape::Messages | Shape::Flat | Shape::Rpc => &[JSON],
        }
    }

    /// How it tells what is wrong before its handler does: a page outside OAuth's own paths is no client library's.
    #[must_use]
    pub fn told_in(&self) -> Shape {
        if self.content == Content::Html && !self.path.starts_with("/oauth/") { Shape::Plain } else { self.shape }
    }

    /// Whether it changes something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// The names in braces, in order.
    pub fn params(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('/').filter_map(|it| it.strip_prefix("{")?.strip_suffix("}"))
    }

    /// The path as it is matched: the id of a model may have slashes, so it is all that is left of a path (CONTRACT part 4).
    #[must_use]
    pub fn pattern(&self) -> String {
        match self.path.strip_suffix("{model}") {
            Some(before) => format!("{before}{{*model}}"),
            None => self.path.to_owned(),
        }
    }

    /// Everything that this route may refuse with, in the table's order and without repetition.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(|kind| self.may_refuse(*kind))
    }

    /// Whether this route may refuse with `kind`. Undeclared refusals are bugs.
    #[must_use]
    pub fn may_refuse(&self, kind: Kind) -> bool {
        EVERYWHERE.contains(&kind)
            || (self.is_own_host() && matches!(kind, Kind::Forbidden | Kind::ForeignHost))
            || (self.is_mcp() && kind == Kind::ForeignOrigin)
            || (self.is_console() && self.is_write() && kind == Kind::Csrf)
            || self.refusals.contains(&kind)
            || (self.request.is_some() && kind == Kind::InvalidJson)
            || (self.limit != Limit::Unlimited && kind == Kind::RateLimited)
            || self.auth.kinds().contains(&kind)
    }
}

impl Auth {
    /// What asking for this credential may be refused with.
    #[must_use]
    pub const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Open => &[],
            Self::Agent => &[Kind::Unauthenticated, Kind::InvalidApiKey, Kind::AgentKeyRequired, Kind::AgentNotFound],
            Self::McpAgent => &[Kind::Unauthenticated, Kind::InvalidApiKey, Kind::AgentKeyRequired, Kind::AgentStopped],
            Self::Workspace | Self::Payer => &[Kind::Unauthenticated, Kind::InvalidApiKey, Kind::AgentStopped],
            Self::WorkspaceAdmin => &[Kind::Unauthenticated, Kind::InvalidApiKey, Kind::MissingScope],
            Self::Token(_) => &[Kind::Unauthenticated, Kind::InvalidToken, Kind::TokenExpired, Kind::MissingScope],
            Self::Signature => &[Kind::WrongSignature],
            Self::Session => &[Kind::Unauthenticated, Kind::RateLimited],
            Self::Member(_) => &[Kind::Unauthenticated, Kind::Forbidden, Kind::NotFound, Kind::RateLimited],
        }
    }

    /// How it is sent, for the reference page; `None` where nothing is.
    #[must_use]
    pub const fn sent(self) -> Option<&'static str> {
        Some(match self {
            Self::Open => return None,
            Self::Agent | Self::McpAgent => "`authorization: Bearer ask_…`, or a token of OAuth, `aat_…`, in its place",
            Self::Workspace | Self::Payer | Self::WorkspaceAdmin => {
                "`authorization: Bearer ask_…` or `x-api-key: ask_…`, as SDKs of models send it; or a token of OAuth, `aat_…`, in its place"
            }
            Self::Token(_) => "`authorization: Bearer ims_…`",
            Self::Signature => "a signature over the body, in the headers of whoever sends (see the integration)",
            Self::Session | Self::Member(_) => {
                "the cookie of signing in; what changes something has `x-svc-csrf: 1` too"
            }
        })
    }

    /// In words, for the reference page.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Open => "none",
            Self::Agent | Self::McpAgent => "agent key",
            Self::Workspace | Self::Payer => "workspace key",
            Self::WorkspaceAdmin => "workspace key with admin scope",
            Self::Token(TokenScope::AgentsRead) => "service token, `agents:read`",
            Self::Token(TokenScope::AgentsWrite) => "service token, `agents:write`",
            Self::Token(TokenScope::AgentsFreeze) => "service token, `agents:freeze`",
            Self::Token(TokenScope::ApprovalsRead) => "service token, `approvals:read`",
            Self::Token(TokenScope::EvidenceRead) => "service token, `evidence:read`",
            Self::Signature => "signature",
            Self::Session => "session",
            Self::Member(_) => "session of a member",
        }
    }
}

/// The rows, one table a family of routes.
pub const TABLES: &[&[Route]] = &[
    gate::ROUTES,
    gateway::ROUTES,
    approvals::ROUTES,
    evidence::ROUTES,
    me::ROUTES,
    integrations::ROUTES,
    hooks::ROUTES,
    actions::ROUTES,
    events::ROUTES,
    agents::ROUTES,
    access::ROUTES,
    members::ROUTES,
    settings::ROUTES,
    routing::ROUTES,
    budgets::ROUTES,
    reports::ROUTES,
    applications::ROUTES,
    stops::ROUTES,
    drills::ROUTES,
    sign_in::ROUTES,
    oauth::ROUTES,
    connections::ROUTES,
    mcp::ROUTES,
    mcp_servers::ROUTES,
    console::ROUTES,
];

/// Every route of this server, in the order of documentation.
pub fn all() -> impl Iterator<Item = &'static Route> + Clone {
    TABLES.iter().copied().flatten()
}

/// The routes of the gate and those that need nobody.
pub const GATE: &[Route] = gate::ROUTES;

/// What most routes have in common.
pub const OPEN: Route = Route {
    op: Op::Health,
    method: Method::GET,
    path: "/",
    auth: Auth::Open,
    limit: Limit::Unlimited,
    shape: Shape::Plain,
    body_max: BodyMax::Plain,
    request: None,
    media: &[],
    content: Content::Html,
    success: &[200],
    refusals: &[],
    headers: &[],
    query: &[],
    summary: "",
};

/// What the parts of a list are asked for with.
pub const PAGE: &[&str] = &["limit", "cursor"];

/// What the console's reads have in common.
pub const CONSOLE: Route = Route { auth: Auth::Session, ..OPEN };

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// No two rows answer the same method and path or do the same thing, and each says what it is for.
    #[test]
    fn rows_are_unambiguous_and_complete() {
        let pairs: BTreeSet<_> = all().map(|it| (it.method.as_str(), it.path)).collect();
        let ops: BTreeSet<_> = all().map(|it| it.op).collect();
        assert_eq!((pairs.len(), ops.len()), (all().count(), all().count()));
        for route in all() {
            assert!(route.path.starts_with('/') && !route.summary.is_empty() && !route.success.is_empty(), "{route:?}");
            assert!(route.request.is_none() || route.is_write(), "{route:?}");
            let member = matches!(route.auth, Auth::Member(_));
            assert_eq!(member, route.path.starts_with("/api/w/{wid}"), "{route:?}");
            assert_eq!(
                member || route.auth == Auth::Session || route.path.starts_with("/api/sign-in"),
                route.is_console()
            );
        }
    }

    /// A route answers what its caller, its rate and its body bring along, and nothing of another kind.
    #[test]
    fn refusals_follow_from_the_row() {
        let settle = all().find(|it| it.op == Op::Settle);
        let kinds: Vec<Kind> = settle.map(|it| it.kinds().collect()).unwrap_or_default();
        for kind in
            [Kind::InvalidJson, Kind::RateLimited, Kind::AgentKeyRequired, Kind::AlreadySettled, Kind::BodyTooLarge]
        {
            assert!(kinds.contains(&kind), "{kind:?}");
        }
        for kind in [Kind::IdempotencyConflict, Kind::InvalidToken, Kind::RouteNotFound] {
            assert!(!kinds.contains(&kind), "{kind:?}");
        }
        let health = all().find(|it| it.op == Op::Health);
        assert!(health.is_some_and(|it| !it.may_refuse(Kind::RateLimited) && !it.may_refuse(Kind::Unauthenticated)));
    }
}
