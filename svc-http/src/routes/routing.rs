//! Providers, models, classes, profiles and routing; what the router would choose; the lists of models.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Limit, OPEN, Op, PAGE, Route, Shape};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoutingOp {
    /// Lists providers.
    Upstreams,
    /// Makes one.
    CreateUpstream,
    /// Reads one.
    Upstream,
    /// Changes one.
    ChangeUpstream,
    /// Removes one.
    RemoveUpstream,
    /// Tries one out.
    TestUpstream,
    /// Lists providers to a machine.
    AdminUpstreams,
    /// Lists models.
    Models,
    /// Makes one.
    CreateModel,
    /// Reads one.
    Model,
    /// Changes one.
    ChangeModel,
    /// Removes one.
    RemoveModel,
    /// Lists classes.
    Classes,
    /// Makes one.
    CreateClass,
    /// Reads one.
    Class,
    /// Changes one.
    ChangeClass,
    /// Removes one.
    RemoveClass,
    /// Lists profiles.
    Profiles,
    /// Makes one.
    CreateProfile,
    /// Reads one.
    Profile,
    /// Changes one.
    ChangeProfile,
    /// Removes one.
    RemoveProfile,
    /// Reads routing itself.
    Get,
    /// Changes it.
    Put,
    /// Tells a person what the router would choose.
    ConsolePreview,
    /// Tells a key's holder.
    Preview,
    /// Lists models to clients of the chat-completions API.
    ChatModels,
    /// Lists models to clients of the messages API.
    MessagesModels,
}

const UPSTREAM: Route =
    Route { auth: Auth::Member(Right::ManageRouting), content: Content::Json("Upstream"), ..CONSOLE };
const MODEL: Route = Route { content: Content::Json("Model"), ..UPSTREAM };
const CLASS: Route = Route { content: Content::Json("TaskClass"), ..UPSTREAM };
const PROFILE: Route = Route { content: Content::Json("PolicyProfile"), ..UPSTREAM };
const READ: Auth = Auth::Member(Right::ReadReports);
const READ_MODELS: Auth = Auth::Member(Right::ReadModels);

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Routing(RoutingOp::Upstreams),
        path: "/api/w/{wid}/upstreams",
        auth: READ,
        content: Content::Json("Upstreams"),
        query: PAGE,
        summary: "Providers of models, without their keys",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::CreateUpstream),
        method: Method::POST,
        path: "/api/w/{wid}/upstreams",
        request: Some("NewUpstream"),
        success: &[201],
        refusals: &[Kind::InvalidUpstream],
        summary: "Make a provider; its key is sealed and shown never again",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::Upstream),
        path: "/api/w/{wid}/upstreams/{ups}",
        auth: READ,
        summary: "A provider, without its key",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::ChangeUpstream),
        method: Method::PATCH,
        path: "/api/w/{wid}/upstreams/{ups}",
        request: Some("UpstreamChange"),
        refusals: &[Kind::InvalidUpstream],
        summary: "Change what is named of a provider; `null` returns a member to its default",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::RemoveUpstream),
        method: Method::DELETE,
        path: "/api/w/{wid}/upstreams/{ups}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Remove a provider that has no models any more and that no class or profile names, and its key",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::TestUpstream),
        method: Method::POST,
        path: "/api/w/{wid}/upstreams/{ups}/test",
        content: Content::Json("UpstreamTest"),
        request: Some("Nothing"),
        summary: "Ask a provider which models it has, to see whether address and key are right",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::AdminUpstreams),
        path: "/v1/admin/upstreams",
        auth: Auth::WorkspaceAdmin,
        limit: Limit::Key,
        content: Content::Json("Upstreams"),
        query: PAGE,
        summary: "Providers of models and how they fare",
        ..OPEN
    },
    Route {
        op: Op::Routing(RoutingOp::Models),
        path: "/api/w/{wid}/models",
        auth: READ_MODELS,
        content: Content::Json("Models"),
        query: PAGE,
        summary: "Models",
        ..MODEL
    },
    Route {
        op: Op::Routing(RoutingOp::CreateModel),
        method: Method::POST,
        path: "/api/w/{wid}/models",
        request: Some("NewModel"),
        success: &[201],
        summary: "Make a model of a provider; what is not sent is as the catalogue knows it",
        ..MODEL
    },
    Route {
        op: Op::Routing(RoutingOp::Model),
        path: "/api/w/{wid}/models/{provider}/{model}",
        auth: READ_MODELS,
        summary: "A model, by its provider's name and its own id",
        ..MODEL
    },
    Route {
        op: Op::Routing(RoutingOp::ChangeModel),
        method: Method::PATCH,
        path: "/api/w/{wid}/models/{provider}/{model}",
        request: Some("ModelChange"),
        summary: "Change what is named of a model; `null` returns a member to its default",
        ..MODEL
    },
    Route {
        op: Op::Routing(RoutingOp::RemoveModel),
        method: Method::DELETE,
        path: "/api/w/{wid}/models/{provider}/{model}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Remove a model that no class and no profile names",
        ..MODEL
    },
    Route {
        op: Op::Routing(RoutingOp::Classes),
        path: "/api/w/{wid}/task-classes",
        auth: READ,
        content: Content::Json("TaskClasses"),
        query: PAGE,
        summary: "Classes of tasks",
        ..CLASS
    },
    Route {
        op: Op::Routing(RoutingOp::CreateClass),
        method: Method::POST,
        path: "/api/w/{wid}/task-classes",
        request: Some("NewTaskClass"),
        success: &[201],
        summary: "Make a class of tasks",
        ..CLASS
    },
    Route {
        op: Op::Routing(RoutingOp::Class),
        path: "/api/w/{wid}/task-classes/{class}",
        auth: READ,
        summary: "A class of tasks",
        ..CLASS
    },
    Route {
        op: Op::Routing(RoutingOp::ChangeClass),
        method: Method::PATCH,
        path: "/api/w/{wid}/task-classes/{class}",
        request: Some("TaskClassChange"),
        summary: "Change what is named of a class; `null` takes a member away",
        ..CLASS
    },
    Route {
        op: Op::Routing(RoutingOp::RemoveClass),
        method: Method::DELETE,
        path: "/api/w/{wid}/task-classes/{class}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Remove a class that no key is bound to",
        ..CLASS
    },
    Route {
        op: Op::Routing(RoutingOp::Profiles),
        path: "/api/w/{wid}/policy-profiles",
        auth: READ,
        content: Content::Json("PolicyProfiles"),
        query: PAGE,
        summary: "Policy profiles",
        ..PROFILE
    },
    Route {
        op: Op::Routing(RoutingOp::CreateProfile),
        method: Method::POST,
        path: "/api/w/{wid}/policy-profiles",
        request: Some("NewPolicyProfile"),
        success: &[201],
        summary: "Make a policy profile",
        ..PROFILE
    },
    Route {
        op: Op::Routing(RoutingOp::Profile),
        path: "/api/w/{wid}/policy-profiles/{profile}",
        auth: READ,
        summary: "A policy profile",
        ..PROFILE
    },
    Route {
        op: Op::Routing(RoutingOp::ChangeProfile),
        method: Method::PATCH,
        path: "/api/w/{wid}/policy-profiles/{profile}",
        request: Some("PolicyProfileChange"),
        summary: "Change what is named of a profile; `null` takes a member away",
        ..PROFILE
    },
    Route {
        op: Op::Routing(RoutingOp::RemoveProfile),
        method: Method::DELETE,
        path: "/api/w/{wid}/policy-profiles/{profile}",
        content: Content::Empty,
        success: &[204],
        refusals: &[Kind::NotAllowed],
        summary: "Remove a profile that no key is bound to",
        ..PROFILE
    },
    Route {
        op: Op::Routing(RoutingOp::Get),
        path: "/api/w/{wid}/routing",
        auth: READ,
        content: Content::Json("Routing"),
        summary: "Routing in force, with its tool table",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::Put),
        method: Method::PUT,
        path: "/api/w/{wid}/routing",
        content: Content::Json("Routing"),
        request: Some("RoutingChange"),
        summary: "Change the members that are named; `null` returns one to its default",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::ConsolePreview),
        method: Method::POST,
        path: "/api/w/{wid}/route/preview",
        auth: READ,
        content: Content::Json("RoutePreview"),
        request: Some("RoutePreviewRequest"),
        refusals: &[Kind::UnknownTaskClass, Kind::PolicyConflict],
        headers: &["x-svc-human-oversight"],
        summary: "Which model the router would choose, and why; no model is called",
        ..UPSTREAM
    },
    Route {
        op: Op::Routing(RoutingOp::Preview),
        method: Method::POST,
        path: "/v1/route/preview",
        auth: Auth::Workspace,
        limit: Limit::Key,
        content: Content::Json("RoutePreview"),
        request: Some("RoutePreviewRequest"),
        refusals: &[Kind::UnknownTaskClass, Kind::Forbidden, Kind::PolicyConflict],
        headers: &["x-svc-human-oversight"],
        summary: "Which model the router would choose, and why; no model is called",
        ..OPEN
    },
    Route {
        op: Op::Routing(RoutingOp::ChatModels),
        path: "/v1/models",
        auth: Auth::Workspace,
        limit: Limit::Key,
        content: Content::Json("ModelList"),
        summary: "The models that calls may name, in the chat-completions API's list shape",
        ..OPEN
    },
    Route {
        op: Op::Routing(RoutingOp::MessagesModels),
        path: "/anthropic/v1/models",
        auth: Auth::Workspace,
        limit: Limit::Key,
        shape: Shape::Messages,
        content: Content::Json("MessagesModelList"),
        query: &["limit", "after_id", "before_id"],
        summary: "The models that calls may name, in the messages API's list shape",
        ..OPEN
    },
];
