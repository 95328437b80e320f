//! The console: its one page, at every address that leads into it, and the files that the page is made of.

use svc_core::refusal::Kind;

use super::{Content, OPEN, Op, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConsoleOp {
    /// Leads into the workspace of whoever is signed in.
    Root,
    /// A workspace.
    Workspace,
    /// A page of a workspace.
    Page,
    /// One thing on a page of a workspace.
    Item,
    /// A file of the page.
    Asset,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Console(ConsoleOp::Root),
        path: "/",
        summary: "The console: leads into a workspace of whoever is signed in, or to signing in",
        ..OPEN
    },
    Route {
        op: Op::Console(ConsoleOp::Workspace),
        path: "/w/{wid}",
        summary: "The console of a workspace: what waits for a person",
        ..OPEN
    },
    Route {
        op: Op::Console(ConsoleOp::Page),
        path: "/w/{wid}/{page}",
        refusals: &[Kind::NotFound],
        summary: "A page of the console",
        ..OPEN
    },
    Route {
        op: Op::Console(ConsoleOp::Item),
        path: "/w/{wid}/{page}/{item}",
        refusals: &[Kind::NotFound],
        summary: "One thing on a page of the console",
        ..OPEN
    },
    Route {
        op: Op::Console(ConsoleOp::Asset),
        path: "/assets/{hash}/{file}",
        content: Content::File,
        success: &[200, 304],
        refusals: &[Kind::NotFound],
        headers: &["accept-encoding", "if-none-match"],
        summary: "A file of the console, which never changes at its address",
        ..OPEN
    },
];
