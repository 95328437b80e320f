//! Actions of a workspace, as its members see them.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionsOp {
    /// Lists actions, newest first.
    List,
    /// Reads one.
    Get,
    /// Releases what a receipt's use kept posted.
    Release,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Actions(ActionsOp::List),
        path: "/api/w/{wid}/actions",
        content: Content::Json("ActionPage"),
        query: &["limit", "cursor", "agentId", "status", "type", "from", "to"],
        summary: "Actions, newest first; a filtered page may hold few items and still have a next one",
        ..ACTIONS
    },
    Route {
        op: Op::Actions(ActionsOp::Get),
        path: "/api/w/{wid}/actions/{act}",
        summary: "One action as it stands; its receipt is shown to its agent alone",
        ..ACTIONS
    },
    Route {
        op: Op::Actions(ActionsOp::Release),
        method: Method::POST,
        path: "/api/w/{wid}/actions/{act}/release",
        auth: Auth::Member(Right::ReleaseActions),
        request: Some("Because"),
        refusals: &[Kind::ReasonRequired, Kind::NotAllowed],
        summary: "Release what the use of a receipt kept posted beyond what the agent settled",
        ..ACTIONS
    },
];

/// What these routes have in common.
const ACTIONS: Route =
    Route { auth: Auth::Member(Right::ReadActions), content: Content::Json("ActionItem"), ..CONSOLE };
