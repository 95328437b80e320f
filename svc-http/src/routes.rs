//! THE table of routes. Matching, 405 and `allow`, `didYouMean`, which credential is read, the rate class, the body
//! limit, the envelope of errors, the refusals that may be answered, the OpenAPI document and the reference page all
//! follow from these rows and are written nowhere else.
//!
//! **Invariant:** a route that is not in the table does not exist. Adding one is a row here and an arm in `dispatch.rs`.

use http::Method;
use svc_core::refusal::Kind;

/// What a route does; `dispatch.rs` has one arm for each.
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
    /// Verifies a receipt and consumes it.
    Verify,
    /// The public keys that receipts are signed with.
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
}

/// Who may call a route. Exactly one kind of credential is read; any other is treated as not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Anybody; no credential is read.
    Open,
    /// An agent's key, `ask_…` or `aat_…`, as `authorization: Bearer`.
    Agent,
    /// Any key of a workspace, as `authorization: Bearer` or `x-api-key`.
    Workspace,
    /// A workspace key with admin scope, sent in the same ways.
    WorkspaceAdmin,
    /// A service token, `ims_…`, as `authorization: Bearer`.
    Token,
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
}

/// The envelope of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `{ "error": { … } }`
    Plain,
    /// `{ "type": "error", "error": { … } }`, as messages-shaped clients expect.
    Messages,
}

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMax {
    /// `limits.bodyBytes`.
    Plain,
}

/// The success answer's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// JSON whose schema has this name in the OpenAPI document.
    Json(&'static str),
    /// A page.
    Html,
}

/// One route.
#[derive(Clone, Debug)]
pub struct Route {
    /// What it does.
    pub op: Op,
    /// Its method; HEAD is answered wherever it is GET.
    pub method: Method,
    /// Its path, with `{id}` where an id stands.
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
    /// What a success answers.
    pub content: Content,
    /// The statuses of successes.
    pub success: &'static [u16],
    /// What it may refuse with, beyond [`EVERYWHERE`] and what its [`Auth`], [`Limit`] and body bring along.
    pub refusals: &'static [Kind],
    /// The request headers that mean something here beyond those of every route.
    pub headers: &'static [&'static str],
    /// One line for people.
    pub summary: &'static str,
}

/// What every route may refuse with.
pub const EVERYWHERE: &[Kind] = &[Kind::InvalidRequest, Kind::BodyTooLarge, Kind::Internal, Kind::NotReady];
/// What an answer to no route may be.
pub const NOWHERE: &[Kind] = &[Kind::RouteNotFound, Kind::MethodNotAllowed];

impl Route {
    /// Everything that this route may refuse with, in the table's order and without repetition.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(|kind| self.may_refuse(*kind))
    }

    /// Whether this route may refuse with `kind`. Undeclared refusals are bugs.
    #[must_use]
    pub fn may_refuse(&self, kind: Kind) -> bool {
        EVERYWHERE.contains(&kind)
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
            Self::Workspace => &[Kind::Unauthenticated, Kind::InvalidApiKey],
            Self::WorkspaceAdmin => &[Kind::Unauthenticated, Kind::InvalidApiKey, Kind::MissingScope],
            Self::Token => &[Kind::Unauthenticated, Kind::InvalidToken, Kind::TokenExpired, Kind::MissingScope],
        }
    }

    /// In words, for the reference page.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Open => "none",
            Self::Agent => "agent key",
            Self::Workspace => "workspace key",
            Self::WorkspaceAdmin => "workspace key with admin scope",
            Self::Token => "service token",
        }
    }
}

/// Every route of this server.
pub const ROUTES: &[Route] = &[
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
        summary: "The public keys that receipts are signed with",
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

/// What most routes have in common.
const OPEN: Route = Route {
    op: Op::Health,
    method: Method::GET,
    path: "/",
    auth: Auth::Open,
    limit: Limit::Unlimited,
    shape: Shape::Plain,
    body_max: BodyMax::Plain,
    request: None,
    content: Content::Html,
    success: &[200],
    refusals: &[],
    headers: &[],
    summary: "",
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// No two rows answer the same method and path or do the same thing, and each says what it is for.
    #[test]
    fn rows_are_unambiguous_and_complete() {
        let pairs: BTreeSet<_> = ROUTES.iter().map(|it| (it.method.as_str(), it.path)).collect();
        let ops: BTreeSet<_> = ROUTES.iter().map(|it| it.op).collect();
        assert_eq!((pairs.len(), ops.len()), (ROUTES.len(), ROUTES.len()));
        for route in ROUTES {
            assert!(route.path.starts_with('/') && !route.summary.is_empty() && !route.success.is_empty(), "{route:?}");
            assert_eq!(route.request.is_some(), route.method == Method::POST, "{route:?}");
        }
    }

    /// A route answers what its caller, its rate and its body bring along, and nothing of another kind.
    #[test]
    fn refusals_follow_from_the_row() {
        let settle = ROUTES.iter().find(|it| it.op == Op::Settle);
        let kinds: Vec<Kind> = settle.map(|it| it.kinds().collect()).unwrap_or_default();
        for kind in
            [Kind::InvalidJson, Kind::RateLimited, Kind::AgentKeyRequired, Kind::AlreadySettled, Kind::BodyTooLarge]
        {
            assert!(kinds.contains(&kind), "{kind:?}");
        }
        for kind in [Kind::IdempotencyConflict, Kind::InvalidToken, Kind::RouteNotFound] {
            assert!(!kinds.contains(&kind), "{kind:?}");
        }
        let health = ROUTES.iter().find(|it| it.op == Op::Health);
        assert!(health.is_some_and(|it| !it.may_refuse(Kind::RateLimited) && !it.may_refuse(Kind::Unauthenticated)));
    }
}
