//! Live events of a workspace.

use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventsOp {
    /// Tells what happens as it happens.
    Watch,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[Route {
    op: Op::Events(EventsOp::Watch),
    path: "/api/w/{wid}/events",
    auth: Auth::Member(Right::Everyone),
    content: Content::Events,
    refusals: &[Kind::RateLimited],
    headers: &["last-event-id"],
    summary: "What happens, as server-sent events in the ledger's order, resumable with last-event-id",
    ..CONSOLE
}];
