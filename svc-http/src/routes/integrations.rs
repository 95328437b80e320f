//! Integrations and the calls to the outside that were made over them.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IntegrationsOp {
    /// Lists integrations.
    List,
    /// Makes one.
    Create,
    /// Reads one.
    Get,
    /// Has one used, or not.
    Change,
    /// Ends one.
    Remove,
    /// Puts another secret in force.
    Rotate,
    /// Tries one out.
    Test,
    /// Lists calls.
    Deliveries,
    /// Reads a call.
    Delivery,
    /// Has a call tried again.
    Retry,
}

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Integrations(IntegrationsOp::List),
        path: "/api/w/{wid}/integrations",
        content: Content::Json("Integrations"),
        query: PAGE,
        summary: "The workspace's integrations, without their secrets",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Create),
        method: Method::POST,
        path: "/api/w/{wid}/integrations",
        request: Some("NewIntegration"),
        success: &[201],
        refusals: &[Kind::NotAllowed],
        summary: "Make an integration; a secret that was drawn for it is shown this once",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Get),
        path: "/api/w/{wid}/integrations/{int}",
        summary: "An integration, without its secrets",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Change),
        method: Method::PATCH,
        path: "/api/w/{wid}/integrations/{int}",
        request: Some("IntegrationChange"),
        refusals: &[Kind::NotAllowed],
        summary: "Have an integration used, or not, or configure it",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Remove),
        method: Method::DELETE,
        path: "/api/w/{wid}/integrations/{int}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "End an integration and its secrets",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Rotate),
        method: Method::POST,
        path: "/api/w/{wid}/integrations/{int}/rotate",
        request: Some("Rotation"),
        refusals: &[Kind::NotAllowed],
        summary: "Put another secret in force, shown this once where it was drawn here; the one before stays good for a while",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Test),
        method: Method::POST,
        path: "/api/w/{wid}/integrations/{int}/test",
        request: Some("IntegrationTest"),
        refusals: &[Kind::NotAllowed],
        summary: "Make one signed call, or send one message, to try an integration out, or look whether its secrets can be used",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Deliveries),
        path: "/api/w/{wid}/deliveries",
        content: Content::Json("Deliveries"),
        query: &["limit", "cursor", "state", "kind"],
        summary: "Calls to the outside, the newest first",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Delivery),
        path: "/api/w/{wid}/deliveries/{dlv}",
        content: Content::Json("Delivery"),
        summary: "A call to the outside and its tries",
        ..INTEGRATIONS
    },
    Route {
        op: Op::Integrations(IntegrationsOp::Retry),
        method: Method::POST,
        path: "/api/w/{wid}/deliveries/{dlv}/retry",
        request: Some("Nothing"),
        content: Content::Json("Delivery"),
        refusals: &[Kind::NotAllowed],
        summary: "Have a call that waits or was given up tried at once, and then on the whole schedule",
        ..INTEGRATIONS
    },
];

const INTEGRATIONS: Route =
    Route { auth: Auth::Member(Right::ManageIntegrations), content: Content::Json("Integration"), ..CONSOLE };
