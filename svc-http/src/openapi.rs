//! The OpenAPI 3.1 document, made from the route table, the refusal table and the schemas.

pub(crate) mod parameters;
pub(crate) mod webhooks;

use serde_json::{Map, Value, json};
use svc_core::refusal::Kind;

use crate::routes::{
    self, Auth, CSV, Content, GatewayOp, HooksOp, Limit, McpOp, MeOp, NOWHERE, OAuthOp, Op, Route, Shape,
};
use crate::schemas::{self, reference};

/// The document, as [`served`] begins with it: what [`text`] writes, kept in the repository, where a test keeps it equal. Writing it anew takes
/// twenty times its size in memory, at every start.
pub const SERVED: &str = include_str!("../../docs/openapi.json");

/// The document, made of the tables of routes, refusals and schemas.
#[must_use]
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(route.method.as_str().to_ascii_lowercase(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "svc",
            "version": "2026-10-01",
            "description": "The gate that an AI agent asks before it acts. Every answer carries x-request-id, svc-version and traceparent. A path that no route has answers 404 route_not_found, another method 405 method_not_allowed. Words of answers are listed as x-extensible-enum: a later version may have further ones, which a client takes for no failure. A response's description lists the types of its error.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "webhooks": webhooks::all(),
        "components": {
            "schemas": schemas::all(),
            "parameters": parameters::all(),
            "headers": headers(),
            "securitySchemes": security_schemes(),
        },
    })
}

/// The document as it is served and committed: indented, with a line end.
#[must_use]
pub fn text() -> String {
    // Nothing in a `Value` can fail to be written.
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

/// The document of a server whose addresses begin with `base_url`, which need not be where the host's own begin.
#[must_use]
pub fn served(base_url: &str) -> String {
    SERVED.replacen(r#""url": "/""#, &format!(r#""url": {}"#, json!(base_url.trim_end_matches('/'))), 1)
}

fn operation(route: &Route) -> Value {
    let mut operation = Map::new();
    operation.insert("operationId".to_owned(), json!(operation_id(route)));
    operation.insert("summary".to_owned(), json!(route.summary));
    if let Some(told) = webhooks::of(route) {
        operation.insert("description".to_owned(), json!(told));
    }
    operation.insert("security".to_owned(), security(route.auth));
    let parameters = parameters::pointers(route);
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), Value::Array(parameters));
    }
    if let Some(schema) = route.request {
        operation.insert("requestBody".to_owned(), {
            let schema_of = |kind: &str| if kind == CSV { json!({ "type": "string" }) } else { reference(schema) };
            let content: Map<String, Value> =
                route.takes().iter().map(|it| ((*it).to_owned(), json!({ "schema": schema_of(it) }))).collect();
            json!({ "required": needs_body(route, schema), "content": content })
        });
    }
    operation.insert("responses".to_owned(), Value::Object(responses(route)));
    Value::Object(operation)
}

/// Whether there has to be a body: where all members are optional, none at all is as good.
fn needs_body(route: &Route, schema: &str) -> bool {
    let schema = schemas::all().remove(schema).unwrap_or_default();
    let asks = |it: &Value| it["required"].as_array().is_some_and(|it| !it.is_empty());
    let asks_either = |it: &Value| it["anyOf"].as_array().is_some_and(|it| it.iter().all(asks));
    let is_object = schema.get("type").is_some_and(|it| it == "object");
    route.auth == Auth::Signature || !is_object || asks(&schema) || asks_either(&schema)
}

/// The variant's name, as clients of generated code expect it: `readAction`, of a family `agentsList`.
fn operation_id(route: &Route) -> String {
    let name: String = format!("{:?}", route.op).chars().filter(|it| it.is_ascii_alphanumeric()).collect();
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// What every call of a model is told by in headers.
const CALL_HEADERS: [&str; 11] = [
    "x-svc-advisory",
    "x-svc-budget-scope",
    "x-svc-call-id",
    "x-svc-cost-micros",
    "x-svc-enforcement",
    "x-svc-jurisdiction",
    "x-svc-routed-to",
    "x-svc-session",
    "x-svc-task-id",
    "x-svc-would-route-to",
    "x-svc-yield-multiplier",
];

/// Whether it calls a model, whole or as a stream.
fn calls_model(route: &Route) -> bool {
    matches!(route.op, Op::Gateway(GatewayOp::Chat | GatewayOp::Messages))
}

/// What it answers by where that comes as events.
fn streams(route: &Route) -> Option<&'static str> {
    match route.op {
        _ if calls_model(route) => Some("The same in pieces, where `stream` is true."),
        Op::Mcp(McpOp::Proxied) => Some("The same behind what the server says on the way."),
        _ => None,
    }
}

/// Whether it asks a model for nothing but a count, under the same budgets.
fn counts_tokens(route: &Route) -> bool {
    route.op == Op::Gateway(GatewayOp::CountTokens)
}

/// Whether an answer of it may begin or end a session, or bind a form to its browser.
fn sets_cookie(route: &Route) -> bool {
    matches!(
        route.op,
        Op::SignIn(_)
            | Op::Me(MeOp::EndSession | MeOp::SignOut)
            | Op::OAuth(OAuthOp::Authorize | OAuthOp::SignIn | OAuthOp::SignInPage)
    )
}

/// The headers of an answer that is no refusal.
fn answer_headers(route: &Route, status: u16) -> Map<String, Value> {
    let mut headers = every_header(route);
    let further: &[&str] = if calls_model(route) {
        &CALL_HEADERS
    } else if counts_tokens(route) {
        &["x-svc-advisory"]
    } else if route.headers.contains(&"idempotency-key") {
        &["idempotent-replayed"]
    } else if route.op == Op::Hooks(HooksOp::Stripe) {
        &["stripe-version"]
    } else if route.content == Content::File {
        &["etag", "vary"]
    } else if status == 303 {
        &["location"]
    } else {
        &[]
    };
    let cookie: &[&str] = if sets_cookie(route) { &["set-cookie"] } else { &[] };
    headers.extend(further.iter().chain(cookie).map(|name| ((*name).to_owned(), header(name))));
    headers
}

/// The schema of what a route whose record this is answers by a status: what waits for a person has one of its own. `None` where that is
/// nothing, as of what is removed and of a notification.
pub(crate) fn answered(record: &'static str, status: u16) -> Option<&'static str> {
    Some(match (record, status) {
        (_, 204) | ("McpAnswer", 202) => return None,
        ("Agent" | "Fleet", 202) => "PendingFreeze",
        ("Application", 202) => "PendingApplication",
        ("Hold", 202) => "PendingLift",
        ("Member", 202) => "PendingMember",
        _ => record,
    })
}

fn responses(route: &Route) -> Map<String, Value> {
    let mut responses = Map::new();
    for status in route.success {
        let content = match route.content {
            Content::Json(record) => match (answered(record, *status), streams(route)) {
                (None, _) => json!({}),
                (Some(schema), None) => json!({ "application/json": { "schema": reference(schema) } }),
                (Some(schema), Some(pieces)) => json!({
                    "application/json": { "schema": reference(schema) },
                    "text/event-stream": { "schema": { "type": "string", "description": pieces } },
                }),
            },
            // Whoever has the file is sent nothing.
            Content::File if *status == 304 => json!({}),
            Content::File => json!({ "*/*": { "schema": { "type": "string" } } }),
            Content::Html => json!({ "text/html": { "schema": { "type": "string" } } }),
            Content::Events => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
            Content::Empty => json!({}),
        };
        let headers = answer_headers(route, *status);
        responses.insert(
            status.to_string(),
            json!({ "description": route.summary, "headers": headers, "content": content }),
        );
    }
    let mut refused: std::collections::BTreeMap<u16, Vec<&str>> = std::collections::BTreeMap::new();
    for kind in route.kinds().filter(|it| !NOWHERE.contains(it)) {
        let row = kind.row();
        let types = refused.entry(row.status).or_default();
        if !types.contains(&row.type_) {
            types.push(row.type_);
        }
    }
    for (status, types) in refused {
        let mut headers = every_header(route);
        // An admitted call is named also where it is refused; what comes before admission is told of without.
        if calls_model(route) && !matches!(status, 401 | 404 | 414 | 431) {
            headers.extend(CALL_HEADERS.map(|name| (name.to_owned(), header(name))));
        } else if counts_tokens(route) && matches!(status, 402 | 429) {
            headers.extend(["x-svc-budget-scope", "x-svc-enforcement"].map(|name| (name.to_owned(), header(name))));
        }
        // A client of MCP is told also which credential would do (RFC 6750 part 3).
        let is_challenged = status == 401 || (status == 403 && route.is_mcp());
        // A page that says what is wrong is a form again.
        let is_form = sets_cookie(route) && route.content == Content::Html;
        let waits = matches!(status, 429 | 503);
        let is_held = matches!(status, 402 | 429) && calls_model(route);
        let is_repeated =
            matches!(status, 401 | 403 | 409 | 429 | 500) || is_held || (status == 502 && calls_model(route));
        for (name, is_sent) in [
            ("retry-after", waits),
            ("retry-after-ms", is_held),
            ("www-authenticate", is_challenged),
            ("set-cookie", is_form),
            ("x-should-retry", is_repeated),
        ] {
            if is_sent {
                headers.insert(name.to_owned(), header(name));
            }
        }
        responses.insert(
            status.to_string(),
            json!({ "description": types.join(", "), "headers": headers, "content": error_content(route, &types) }),
        );
    }
    responses
}

/// What is wrong is told in a page where a page was asked for: before it is looked for, as with another host or too many requests,
/// to whoever accepts pages.
fn error_content(route: &Route, types: &[&str]) -> Value {
    let mut content = json!({ "application/json": { "schema": error_schema(route, types) } });
    if route.content == Content::Html
        && let Some(kinds) = content.as_object_mut()
    {
        kinds.insert("text/html".to_owned(), json!({ "schema": { "type": "string" } }));
    }
    content
}

/// One record for all types, which the response's description lists: a client that is generated has one class of errors, and takes a
/// type that a later version adds.
fn error_schema(route: &Route, types: &[&str]) -> Value {
    match route.told_in() {
        Shape::Flat => return reference("OAuthError"),
        Shape::Rpc => return reference("McpError"),
        Shape::SecurityEvent => return reference("SecurityEventError"),
        Shape::Messages => return reference("MessagesError"),
        Shape::Plain => {}
    }
    // Where no model qualifies the preview says why, beside the error.
    if route.content == Content::Json("RoutePreview") && types.contains(&Kind::PolicyConflict.row().type_) {
        return json!({ "allOf": [reference("Error"), reference("RoutePreview")] });
    }
    reference("Error")
}

fn every_header(route: &Route) -> Map<String, Value> {
    let rate: &[&str] = if route.limit == Limit::Unlimited {
        &[]
    } else {
        &["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]
    };
    let own: &[&str] = if route.shape == Shape::Messages { &["request-id"] } else { &[] };
    ["x-request-id", "svc-version", "traceparent"]
        .iter()
        .chain(own)
        .chain(rate)
        .map(|name| ((*name).to_owned(), header(name)))
        .collect()
}

fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn headers() -> Value {
    let text = |description: &str| json!({ "description": description, "schema": { "type": "string" } });
    let number =
        |description: &str| json!({ "description": description, "schema": { "type": "integer", "minimum": 0 } });
    json!({
        "x-request-id": text("The client's id of the request where it is 1 to 128 of [A-Za-z0-9._-], else a new one."),
        "request-id": text("The same as x-request-id, under the name that clients of messages-shaped APIs look for."),
        "x-should-retry": text("`false` where clients that repeat such statuses on their own, as the official SDKs do, would do so in vain, or do twice what may be done already; `true` where calls that run hold what is left of a budget, and may soon have given it back."),
        "svc-version": text("The version of this interface, a date."),
        "traceparent": text("W3C trace context: the request's trace under a new parent id, or a new trace."),
        "ratelimit-limit": number("Requests a minute."),
        "ratelimit-remaining": number("Requests that may follow at once."),
        "ratelimit-reset": number("Seconds until the rate is unused again."),
        "retry-after": number("Seconds to wait before asking again."),
        "retry-after-ms": number("Milliseconds after which calls that run may have given back what they hold of a budget: `retry-after` says when its period ends."),
        "www-authenticate": text("The scheme of the credential that is missing."),
        "idempotent-replayed": text("`true` where the answer repeats an earlier one."),
        "etag": text("Which file it is, for `if-none-match`."),
        "vary": text("`accept-encoding`: by it the file is sent packed or not."),
        "location": text("Where to go on."),
        "stripe-version": text("The version of Stripe's interface that the event is in, where it is one that asks."),
        "set-cookie": text("Begins or ends a session, or binds a form to its browser; where nothing of that happens it is not sent."),
        "x-svc-advisory": text("What a person should look at."),
        "x-svc-budget-scope": text("The budget that spoke, as `kind:id`."),
        "x-svc-call-id": text("The call's id, `cal_`."),
        "x-svc-cost-micros": number("What the call cost, in millionths of a US dollar; of a stream a trailer, where `te: trailers` was sent."),
        "x-svc-enforcement": text("`shadow`, or how far the ladder of a budget is climbed: `observe`, `nudge`, `downgrade`."),
        "x-svc-jurisdiction": text("Under whose law the model runs."),
        "x-svc-routed-to": text("The model that was called, where routing acts."),
        "x-svc-session": text("The session that was made for a client that sent none: send it back."),
        "x-svc-task-id": text("The task that the call is part of."),
        "x-svc-would-route-to": text("The model that would have been called, where routing only tells."),
        "x-svc-yield-multiplier": text("How this model's yield compares with that of all models."),
    })
}

fn security_schemes() -> Value {
    json!({
        "agentKey": { "type": "http", "scheme": "bearer", "bearerFormat": "ask_", "description": "An agent's own key." },
        "workspaceKey": { "type": "http", "scheme": "bearer", "bearerFormat": "ask_", "description": "A key of a workspace; also as x-api-key." },
        "workspaceKeyHeader": { "type": "apiKey", "in": "header", "name": "x-api-key" },
        "session": { "type": "apiKey", "in": "cookie", "name": "__Host-sid", "description": "A signed-in person's session; `sid` on a local http server." },
        "serviceToken": { "type": "http", "scheme": "bearer", "bearerFormat": "ims_", "description": "A machine's token." },
    })
}

fn security(auth: Auth) -> Value {
    match auth {
        // A signature is no scheme of OpenAPI's; its header is among the parameters.
        Auth::Open | Auth::Signature => json!([]),
        Auth::Agent | Auth::McpAgent => json!([{ "agentKey": [] }]),
        Auth::Workspace | Auth::Payer | Auth::WorkspaceAdmin => {
            json!([{ "workspaceKey": [] }, { "workspaceKeyHeader": [] }])
        }
        Auth::Token(scope) => json!([{ "serviceToken": [scope.as_str()] }]),
        Auth::Session | Auth::Member(_) => json!([{ "session": [] }]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::routes::{FORM, JSON};

    /// What is committed is what is served. After a change that is meant: `UPDATE_EXPECTED=1 cargo test openapi`.
    #[test]
    fn the_committed_document_is_the_served_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(path, text()).unwrap();
        }
        // Compared as values: a dependency of some build may keep members in another order.
        let committed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(committed, document());
    }

    /// Every pointer in the document points to something in it, and every schema is pointed to.
    #[test]
    fn pointers_point_to_something() {
        fn collect(value: &Value, into: &mut Vec<String>) {
            match value {
                Value::Object(members) => {
                    if let Some(Value::String(to)) = members.get("$ref") {
                        into.push(to.clone());
                    }
                    members.values().for_each(|it| collect(it, into));
                }
                Value::Array(items) => items.iter().for_each(|it| collect(it, into)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let document = document();
        let mut pointers = Vec::new();
        collect(&document, &mut pointers);
        for pointer in &pointers {
            assert!(document.pointer(pointer.trim_start_matches('#')).is_some(), "{pointer}");
        }
        for name in schemas::all().keys() {
            assert!(pointers.iter().any(|it| it.ends_with(&format!("/{name}"))), "{name} is used nowhere");
        }
    }

    /// A call of a model answers whole or as a stream, with headers of its own; cookies and challenges are told where they are sent.
    #[test]
    fn headers_and_kinds_of_answers_are_told() {
        let document = document();
        let at = |pointer: &str| document.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        for path in ["~1v1~1chat~1completions", "~1anthropic~1v1~1messages"] {
            let answer = at(&format!("/paths/{path}/post/responses/200"));
            let kinds: Vec<_> = answer["content"].as_object().unwrap().keys().collect();
            assert_eq!(kinds, ["application/json", "text/event-stream"]);
            assert!(CALL_HEADERS.iter().all(|name| answer["headers"].get(name).is_some()), "{path}");
            assert!(answer["headers"].get("idempotent-replayed").is_none());
            assert!(at(&format!("/paths/{path}/post/responses/429/headers")).get("x-svc-budget-scope").is_some());
        }
        assert!(at("/paths/~1v1~1actions~1authorize/post/responses/200/headers").get("idempotent-replayed").is_some());
        assert!(at("/paths/~1oauth~1authorize/get/responses/303/headers").get("location").is_some());
        for place in ["~1api~1sign-in~1link/post/responses/200", "~1api~1sign-out/post/responses/200"] {
            assert!(at(&format!("/paths/{place}/headers")).get("set-cookie").is_some(), "{place}");
        }
        for (path, is_challenged) in
            [("~1mcp", true), ("~1mcp~1proxy~1{server}", true), ("~1v1~1actions~1authorize", false)]
        {
            let headers = at(&format!("/paths/{path}/post/responses/403/headers"));
            assert_eq!(headers.get("www-authenticate").is_some(), is_challenged, "{path}");
        }
    }

    /// Every media type that is taken or answered is told, and a body is asked for only where the server asks for one.
    #[test]
    fn kinds_of_bodies_are_told() {
        let document = document();
        let at = |pointer: &str| document.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        for (path, kinds, is_needed) in [
            ("~1hooks~1slack~1{wid}", &[FORM][..], true),
            ("~1hooks~1github~1{wid}", &[JSON, FORM], true),
            ("~1hooks~1ssf~1{wid}", &["application/secevent+jwt"], true),
            ("~1api~1w~1{wid}~1billing-imports", &[JSON, CSV], true),
            ("~1oauth~1token", &[FORM], true),
            ("~1v1~1actions~1authorize", &[JSON], true),
            ("~1v1~1actions~1{id}~1ran", &[JSON], false),
            ("~1api~1w~1{wid}~1keys", &[JSON], false),
            ("~1api~1w~1{wid}~1agents~1{aid}~1mandates", &[JSON], true),
        ] {
            let body = at(&format!("/paths/{path}/post/requestBody"));
            let told: Vec<_> = body["content"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!((told.as_slice(), &body["required"]), (kinds, &json!(is_needed)), "{path}");
        }
        let answer = at("/paths/~1mcp~1proxy~1{server}/post/responses/200/content");
        assert!(answer.get("text/event-stream").is_some() && answer.get(JSON).is_some());
    }

    /// Where no model qualifies, the answer is a preview that says so beside the error; nowhere else is it one.
    #[test]
    fn a_refused_preview_is_a_preview() {
        let document = document();
        for (path, is_preview) in [("/v1/route/preview", true), ("/v1/chat/completions", false)] {
            let refused = &document["paths"][path]["post"]["responses"]["409"]["content"]["application/json"]["schema"];
            let both = json!({ "allOf": [reference("Error"), reference("RoutePreview")] });
            assert_eq!(*refused, if is_preview { both } else { reference("Error") }, "{path}");
        }
    }

    /// The calls that this server makes are described as its routes are: body, headers, and which route brings them about.
    #[test]
    fn calls_to_others_are_described() {
        let document = document();
        let call = &document["webhooks"]["action.decided"]["post"];
        assert_eq!(call["requestBody"]["content"]["application/json"]["schema"], reference("ActionDecided"));
        let headers: Vec<&str> =
            call["parameters"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(headers, ["svc-signature", "svc-event-id"]);
        let registers = document["paths"]["/v1/actions/{id}/callback"]["post"]["description"].as_str().unwrap();
        assert!(registers.contains("`action.decided`"));
    }

    /// What generators of clients stumble over stands nowhere: a value without its type, alone or in a list (the operation or the model
    /// is left out), `null` in a list or as all that a member may be (its type has no name), and an array of nobody knows what.
    #[test]
    fn generators_of_clients_take_the_document() {
        fn look(value: &Value, place: &str) {
            let Value::Object(members) = value else {
                let items = value.as_array().into_iter().flatten().enumerate();
                return items.for_each(|(at, it)| look(it, &format!("{place}/{at}")));
            };
            let types: Vec<&str> = match &value["type"] {
                Value::String(one) => vec![one.as_str()],
                several => several.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
            };
            if !place.ends_with("/properties") {
                assert!(!members.contains_key("const"), "{place}: a list of one is read everywhere");
                for words in ["enum", "x-extensible-enum"].iter().filter_map(|it| members.get(*it)) {
                    assert_eq!(types.len(), 1, "{place}: {value}");
                    assert!(!words.as_array().unwrap().contains(&Value::Null), "{place}: {value}");
                }
                assert!(!types.contains(&"array") || members.contains_key("items"), "{place}: {value}");
                let is_either = place.ends_with("/oneOf/1") || place.ends_with("/oneOf/2");
                assert!(types != ["null"] || is_either, "{place}: {value}");
            }
            members
                .iter()
                .filter(|(name, _)| *name != "examples")
                .for_each(|(name, it)| look(it, &format!("{place}/{name}")));
        }
        look(&document(), "");
    }

    /// What is done at once and what waits for a person are told apart by their statuses and their schemas, each by its name.
    #[test]
    fn what_waits_has_a_schema_of_its_own() {
        let document = document();
        for (path, method, done, waits) in [
            ("/v1/admin/agents/{aid}/freeze", "post", "Agent", "PendingFreeze"),
            ("/v1/admin/freeze", "post", "Fleet", "PendingFreeze"),
            ("/api/w/{wid}/holds/{hld}/lift", "post", "Hold", "PendingLift"),
            ("/api/w/{wid}/applications/{app}/approve", "post", "Application", "PendingApplication"),
            ("/api/w/{wid}/members/{prp}", "patch", "Member", "PendingMember"),
        ] {
            let answers = &document["paths"][path][method]["responses"];
            let told = ["200", "202"].map(|it| answers[it]["content"]["application/json"]["schema"].clone());
            assert_eq!(told, [reference(done), reference(waits)], "{path}");
            let required = document["components"]["schemas"][waits]["required"].as_array().unwrap();
            assert!(["pending", "approval"].iter().all(|it| required.contains(&json!(it))), "{waits}");
        }
    }

    /// The document names the server's own address.
    #[test]
    fn the_document_names_its_server() {
        let served: Value = serde_json::from_str(&served("https://x.example/gate/")).unwrap();
        assert_eq!(served["servers"], json!([{ "url": "https://x.example/gate" }]));
    }

    /// Each route has its operation, with its statuses and types of errors.
    #[test]
    fn operations_follow_the_table() {
        let document = document();
        for route in routes::all() {
            let pointer =
                format!("/paths/{}/{}", route.path.replace('/', "~1"), route.method.as_str().to_ascii_lowercase());
            let responses = document.pointer(&pointer).unwrap().get("responses").unwrap().as_object().unwrap();
            for status in route.success {
                assert!(responses.contains_key(&status.to_string()));
            }
            for kind in route.kinds() {
                let described = responses
                    .get(&kind.row().status.to_string())
                    .unwrap()
                    .get("description")
                    .unwrap()
                    .as_str()
                    .unwrap();
                assert!(described.split(", ").any(|it| it == kind.row().type_), "{} {kind:?}", route.path);
            }
        }
    }
}
