//! Where other systems send what they sign.

use http::Method;
use svc_core::refusal::Kind;

use super::{Auth, BodyMax, Content, FORM, JSON, Limit, OPEN, Op, Route, Shape};

/// What these routes do: which kind of integration each receives for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HooksOp {
    /// The payment processor's that bills workspaces.
    Billing,
    /// A code host's.
    Github,
    /// A card issuer's.
    Issuer,
    /// A relay's of a team chat.
    Relay,
    /// Slack's.
    Slack,
    /// An identity provider's.
    Ssf,
    /// A payment processor's.
    Stripe,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Hooks(HooksOp::Billing),
        path: "/hooks/billing",
        body_max: BodyMax::Billing,
        request: Some("StripeEvent"),
        content: Content::Json("BillingAnswer"),
        headers: &["stripe-signature"],
        summary: "The operator's Stripe account tells of subscriptions, which workspaces' plans follow",
        ..HOOKS
    },
    Route {
        op: Op::Hooks(HooksOp::Issuer),
        path: "/hooks/issuer/{wid}",
        request: Some("IssuerEvent"),
        content: Content::Json("IssuerAnswer"),
        headers: &["svc-signature"],
        summary: "A card issuer asks whether a charge is covered, or tells what was settled or reversed",
        ..HOOKS
    },
    Route {
        op: Op::Hooks(HooksOp::Stripe),
        path: "/hooks/stripe/{wid}",
        body_max: BodyMax::Billing,
        request: Some("StripeEvent"),
        content: Content::Json("StripeAnswer"),
        headers: &["stripe-signature"],
        summary: "Stripe asks whether a card that it issues may be charged, or tells of something else",
        ..HOOKS
    },
    Route {
        op: Op::Hooks(HooksOp::Github),
        path: "/hooks/github/{wid}",
        request: Some("CodeHostEvent"),
        media: &[JSON, FORM],
        content: Content::Json("EventReceived"),
        headers: &["x-github-event", "x-hub-signature-256"],
        summary: "A code host tells what became of pull requests, whose tasks are accepted or rejected with them",
        ..HOOKS
    },
    Route {
        op: Op::Hooks(HooksOp::Slack),
        path: "/hooks/slack/{wid}",
        request: Some("SlackInteraction"),
        media: &[FORM],
        content: Content::Json("SlackAnswer"),
        headers: &["x-slack-signature", "x-slack-request-timestamp"],
        summary: "Slack tells of a button that somebody has pressed, and their word on an approval is taken",
        ..HOOKS
    },
    Route {
        op: Op::Hooks(HooksOp::Relay),
        path: "/hooks/relay/{wid}",
        request: Some("RelayedPress"),
        content: Content::Json("RelayAnswer"),
        headers: &["svc-signature"],
        summary: "A relay of a team chat tells of a button that somebody has pressed, and their word on an approval is taken",
        ..HOOKS
    },
    Route {
        op: Op::Hooks(HooksOp::Ssf),
        path: "/hooks/ssf/{wid}",
        shape: Shape::SecurityEvent,
        request: Some("SecurityEventToken"),
        content: Content::Empty,
        success: &[202],
        refusals: &[
            Kind::RateLimited,
            Kind::AuthenticationFailed,
            Kind::InvalidAudience,
            Kind::InvalidIssuer,
            Kind::InvalidKey,
        ],
        summary: "An identity provider tells of a person whose sessions end, or who is shut out (RFC 8935)",
        ..HOOKS
    },
];

/// What these routes have in common. A signature that does not fit counts against its address as a wrong key does; one that fits
/// counts against its integration, in the handler: many events come from few addresses of a provider.
const HOOKS: Route =
    Route { method: Method::POST, auth: Auth::Signature, limit: Limit::Key, refusals: &[Kind::RateLimited], ..OPEN };
