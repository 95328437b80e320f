//! A workspace's settings and its templates.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingsOp {
    /// Reads settings.
    Get,
    /// Puts some in force.
    Put,
    /// Lists templates.
    Templates,
    /// Adds one.
    AddTemplate,
    /// Reads one.
    Template,
    /// Changes one.
    ChangeTemplate,
    /// Removes one.
    RemoveTemplate,
}

const SETTINGS: Route = Route { auth: Auth::Member(Right::Everyone), content: Content::Json("Settings"), ..CONSOLE };
const TEMPLATE: Route =
    Route { auth: Auth::Member(Right::ManageTemplates), content: Content::Json("Template"), ..CONSOLE };

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Settings(SettingsOp::Get),
        path: "/api/w/{wid}/settings",
        summary: "Settings in force",
        ..SETTINGS
    },
    Route {
        op: Op::Settings(SettingsOp::Put),
        method: Method::PUT,
        path: "/api/w/{wid}/settings",
        auth: Auth::Member(Right::ManageSettings),
        request: Some("SettingsChange"),
        summary: "Change the settings that are named; `null` returns one to its default",
        ..SETTINGS
    },
    Route {
        op: Op::Settings(SettingsOp::Templates),
        path: "/api/w/{wid}/templates",
        auth: Auth::Member(Right::ReadTemplates),
        content: Content::Json("Templates"),
        query: PAGE,
        summary: "The workspace's own templates, the newest first, then the catalogue's",
        ..TEMPLATE
    },
    Route {
        op: Op::Settings(SettingsOp::AddTemplate),
        method: Method::POST,
        path: "/api/w/{wid}/templates",
        request: Some("NewTemplate"),
        success: &[201],
        refusals: &[Kind::InvalidMandate],
        summary: "Add a template",
        ..TEMPLATE
    },
    Route {
        op: Op::Settings(SettingsOp::Template),
        path: "/api/w/{wid}/templates/{template}",
        auth: Auth::Member(Right::ReadTemplates),
        summary: "One template, by its name",
        ..TEMPLATE
    },
    Route {
        op: Op::Settings(SettingsOp::ChangeTemplate),
        method: Method::PATCH,
        path: "/api/w/{wid}/templates/{template}",
        request: Some("TemplateChange"),
        refusals: &[Kind::InvalidMandate, Kind::NotAllowed],
        summary: "Change what a template of the workspace says; mandates made from it stay",
        ..TEMPLATE
    },
    Route {
        op: Op::Settings(SettingsOp::RemoveTemplate),
        method: Method::DELETE,
        path: "/api/w/{wid}/templates/{template}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Remove a template of the workspace",
        ..TEMPLATE
    },
];
