//! A person's own account and sessions.

use http::Method;
use svc_core::refusal::Kind;

use super::{CONSOLE, Content, Limit, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeOp {
    /// Reads the person's data.
    Get,
    /// Sets the password.
    Password,
    /// Begins to set up the second factor.
    AddFactor,
    /// Confirms it.
    ConfirmFactor,
    /// Removes it.
    RemoveFactor,
    /// Lists sessions.
    Sessions,
    /// Ends a session.
    EndSession,
    /// Ends this session.
    SignOut,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Me(MeOp::Get),
        path: "/api/me",
        content: Content::Json("Me"),
        summary: "The signed-in person and their workspaces",
        ..CONSOLE
    },
    Route {
        op: Op::Me(MeOp::Password),
        method: Method::POST,
        path: "/api/me/password",
        limit: Limit::SignIn,
        request: Some("PasswordChange"),
        content: Content::Json("Me"),
        summary: "Set the password; other sessions end",
        ..CONSOLE
    },
    Route {
        op: Op::Me(MeOp::AddFactor),
        method: Method::POST,
        path: "/api/me/totp",
        request: Some("OwnProof"),
        content: Content::Json("NewSecondFactor"),
        refusals: &[Kind::NotAllowed],
        summary: "Begin to set up a second factor",
        ..CONSOLE
    },
    Route {
        op: Op::Me(MeOp::ConfirmFactor),
        method: Method::POST,
        path: "/api/me/totp/confirm",
        limit: Limit::SignIn,
        request: Some("NewSecondFactorCode"),
        content: Content::Json("RecoveryCodes"),
        refusals: &[Kind::NotAllowed],
        summary: "Confirm the second factor; recovery codes are shown this once, other sessions end",
        ..CONSOLE
    },
    Route {
        op: Op::Me(MeOp::RemoveFactor),
        method: Method::DELETE,
        path: "/api/me/totp",
        limit: Limit::SignIn,
        request: Some("SecondFactorCode"),
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Remove the second factor",
        ..CONSOLE
    },
    Route {
        op: Op::Me(MeOp::Sessions),
        path: "/api/me/sessions",
        content: Content::Json("SessionPage"),
        query: PAGE,
        summary: "The person's sessions, newest first: at most 64, as another one ends the oldest",
        ..CONSOLE
    },
    Route {
        op: Op::Me(MeOp::EndSession),
        method: Method::DELETE,
        path: "/api/me/sessions/{ses}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotFound],
        summary: "End a session",
        ..CONSOLE
    },
    Route {
        op: Op::Me(MeOp::SignOut),
        method: Method::POST,
        path: "/api/sign-out",
        request: Some("Nothing"),
        content: Content::Json("SignedOut"),
        summary: "Sign out: this session ends",
        ..CONSOLE
    },
];
