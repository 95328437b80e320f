//! A person's own account and sessions.

use super::{CONSOLE, Content, Op, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeOp {
    /// Reads the person's data.
    Get,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[Route {
    op: Op::Me(MeOp::Get),
    path: "/api/me",
    content: Content::Json("Me"),
    summary: "The signed-in person and their workspaces",
    ..CONSOLE
}];
