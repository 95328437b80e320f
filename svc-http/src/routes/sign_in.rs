//! Signing in. What is wrong is told in one way, whatever it was.

use http::Method;
use svc_core::refusal::Kind;

use super::{Content, Limit, OPEN, Op, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignInOp {
    /// By e-mail and password.
    Password,
    /// By a one-time link.
    Link,
    /// By the second factor, after either.
    Totp,
    /// By a workspace's identity provider.
    Sso,
    /// Back from there.
    SsoCallback,
    /// What the provider says is linked to an account that exists already.
    SsoLink,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::SignIn(SignInOp::Password),
        path: "/api/sign-in",
        request: Some("SignIn"),
        summary: "Sign in by e-mail and password",
        ..SIGN_IN
    },
    Route {
        op: Op::SignIn(SignInOp::Link),
        path: "/api/sign-in/link",
        request: Some("SignInByLink"),
        summary: "Sign in by a one-time link",
        ..SIGN_IN
    },
    Route {
        op: Op::SignIn(SignInOp::Totp),
        path: "/api/sign-in/totp",
        request: Some("SignInTotp"),
        summary: "Show the second factor of a sign-in that waits for it",
        ..SIGN_IN
    },
    Route {
        op: Op::SignIn(SignInOp::Sso),
        method: Method::GET,
        path: "/api/sign-in/sso/{wid}",
        query: &["next"],
        success: &[200, 303],
        summary: "Go to the workspace's identity provider to sign in; whoever another site leads here is asked first",
        ..SSO
    },
    Route {
        op: Op::SignIn(SignInOp::SsoCallback),
        method: Method::GET,
        path: "/api/sign-in/sso/{wid}/callback",
        query: &["code", "state", "iss", "error"],
        summary: "Come back from the workspace's identity provider",
        ..SSO
    },
    Route {
        op: Op::SignIn(SignInOp::SsoLink),
        path: "/api/sign-in/sso/{wid}",
        request: Some("SsoLink"),
        refusals: &[Kind::WrongSignIn, Kind::NotAllowed],
        summary: "Link what the identity provider says to an account that exists already, by the account's own session or the `pending` of its sign-in",
        ..SIGN_IN
    },
];

const SSO: Route = Route {
    limit: Limit::SignIn,
    content: Content::Html,
    success: &[303],
    refusals: &[Kind::WrongSignIn, Kind::NotFound],
    ..OPEN
};

const SIGN_IN: Route = Route {
    method: Method::POST,
    limit: Limit::SignIn,
    content: Content::Json("SignInStep"),
    refusals: &[Kind::WrongSignIn],
    ..OPEN
};
