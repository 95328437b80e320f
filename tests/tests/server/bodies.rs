//! What the interface document says of bodies of requests is what readers take: walked from the table of routes and the schemas.

use serde_json::{Map, Value, json};
use svc_core::state::edge::{ConfigChange, IntegrationKind, signature};
use svc_core::state::people::{KeyScope, Role, TokenScope};
use svc_core::value::secret::Secret;
use svc_http::routes::{self, Auth, Route, Shape};
use svc_tests::client::Got;
use svc_tests::hooks::code_host_signature;
use svc_tests::interface::document;
use svc_tests::people::Person;
use svc_tests::receiver::{SECRET, connect_kind};
use svc_tests::requests::OFFICE;
use svc_tests::site::Site;
use svc_tests::slack::slack_signature;

/// A member that no reader knows.
const UNKNOWN: &str = "nobodyKnowsThis";

/// A body with one member of interest.
struct Probe {
    /// Where that is.
    path: String,
    /// The body.
    body: Value,
    /// Whether the document forbids it.
    forbidden: bool,
}

/// What a schema points to, or allows beside `null`.
fn resolved(schema: &'static Value) -> &'static Value {
    if let Some(to) = schema["$ref"].as_str() {
        return resolved(document().pointer(to.trim_start_matches('#')).unwrap());
    }
    let either = schema["oneOf"].as_array().and_then(|it| it.iter().find(|it| it["type"] != "null"));
    either.map_or(schema, resolved)
}

fn admits_null(schema: &Value) -> bool {
    let null = |it: &Value| it["type"] == "null";
    schema["type"].as_array().is_some_and(|it| it.contains(&json!("null")))
        || schema["oneOf"].as_array().is_some_and(|it| it.iter().any(null))
}

/// A member that is unknown in every object of a body, and `null` for each that need not be there. `wrap` puts an object in its place.
fn probes(schema: &'static Value, path: &str, wrap: &dyn Fn(Value) -> Value, out: &mut Vec<Probe>) {
    let schema = resolved(schema);
    if schema["type"].to_string().contains("array") {
        let place = format!("{path}0.");
        return probes(&schema["items"], &place, &|it| wrap(json!([it])), out);
    }
    let Some(members) = schema["properties"].as_object() else { return };
    let kinds: Vec<&Value> =
        schema["anyOf"].as_array().into_iter().flatten().filter(|it| it["properties"].is_object()).collect();
    let of_kinds = |name: &str| kinds.iter().any(|it| !it["properties"][name].is_null());
    let one = |name: &str, value: Value| wrap(Value::Object(Map::from_iter([(name.to_owned(), value)])));
    let unknown = (UNKNOWN, json!(1), schema["additionalProperties"] == false);
    let required = |name: &str| schema["required"].as_array().is_some_and(|it| it.iter().any(|it| it == name));
    let optional = members.iter().filter(|(name, _)| !required(name));
    let nulls = optional.map(|(name, schema)| (name.as_str(), Value::Null, !admits_null(schema)));
    for (name, value, forbidden) in std::iter::once(unknown).chain(nulls) {
        out.push(Probe { path: format!("{path}{name}"), body: one(name, value), forbidden });
    }
    for (name, inner) in members.iter().filter(|(name, _)| !of_kinds(name)) {
        probes(inner, &format!("{path}{name}."), &|it| one(name, it), out);
    }
    for kind in kinds {
        let members = kind["properties"].as_object().unwrap();
        let told = Map::from_iter(members.iter().filter_map(|(name, schema)| Some((name.clone(), telling(schema)?))));
        let wrap = |name: &str, it: Value| wrap(with(json!({ name: it }), &Value::Object(told.clone())));
        for (name, inner) in members {
            probes(inner, &format!("{path}{name}."), &|it| wrap(name, it), out);
        }
    }
}

/// What a member holds by which one kind of a body is told from the others: a word, or an id that nothing has.
fn telling(schema: &Value) -> Option<Value> {
    let id = schema["pattern"].as_str().and_then(|it| it.strip_prefix('^')?.split_once("_[0-7]"));
    let id = id.map(|(prefix, _)| json!(format!("{prefix}_{}", "0".repeat(26))));
    let word = schema["enum"].as_array().and_then(|it| it.first()).filter(|_| schema["properties"].is_null());
    word.cloned().or(id)
}

/// Members without which the rest of a body is not looked at.
fn beside(name: &str) -> Value {
    match name {
        "TokenBlueprint" => json!({ "name": "bot", "principalEmail": "ada@example.com" }),
        "FleetFreeze" => json!({ "selector": { "all": true }, "dryRun": true }),
        "StripeEvent" => json!({ "type": "issuing_authorization.request", "id": "evt_1", "data": {} }),
        "IssuerEvent" => json!({ "type": "authorization.request", "id": "evt_1" }),
        "Outcome" | "OutcomeReport" => json!({ "status": "completed" }),
        _ => json!({}),
    }
}

/// The same with the members of `more` that it lacks.
fn with(mut body: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body.as_object_mut().unwrap().entry(name).or_insert_with(|| value.clone());
    }
    body
}

/// Whether this member is told to be wrong, and not merely to be missing.
fn is_fault(got: &Got, path: &str) -> bool {
    let json = got.json();
    let mut errors = json["error"]["errors"].as_array().into_iter().flatten();
    errors.any(|it| it["field"] == path && !it["message"].to_string().contains("is required"))
}

struct Stage {
    site: Site,
    agent: String,
    admin: String,
    token: String,
}

impl Stage {
    async fn start() -> Self {
        let site = Site::with(|plan| plan.config.billing.secret = Some(Secret::new(SECRET.to_owned()))).await;
        for kind in IntegrationKind::ALL.iter().filter(|it| it.is_received()) {
            connect_kind(&site, *kind, ConfigChange::default());
        }
        let agent = site.agent(&[OFFICE]).key;
        let (admin, token) = (site.key(KeyScope::Admin), site.token(&TokenScope::ALL));
        Self { site, agent, admin, token }
    }

    async fn send(&self, route: &Route, person: &Person, body: &Value) -> Got {
        let mut path = route.path.replace("{wid}", &self.site.workspace().to_string());
        for name in route.params().filter(|it| *it != "wid") {
            let prefix = if name == "id" { "act" } else { name };
            path = path.replace(&format!("{{{name}}}"), &format!("{prefix}_{}", "0".repeat(26)));
        }
        let mut client = self.site.client().await;
        match route.auth {
            Auth::Member(_) | Auth::Session | Auth::Open => {
                person.ask(&mut client, route.method.as_str(), &path, Some(body)).await
            }
            Auth::Agent | Auth::McpAgent => client.post(&path, &self.agent, body).await,
            Auth::Workspace | Auth::Payer | Auth::WorkspaceAdmin => client.post(&path, &self.admin, body).await,
            Auth::Token(_) => client.post(&path, &self.token, body).await,
            Auth::Signature => {
                let body = body.to_string();
                if route.path.starts_with("/hooks/github/") {
                    let headers = [("x-github-event", "ping"), ("x-hub-signature-256", &*code_host_signature(&body))];
                    return client.ask("POST", &path, &headers, body.as_bytes()).await;
                }
                if route.path.starts_with("/hooks/slack/") {
                    let at = self.site.now().as_seconds();
                    let (signed, at) = (slack_signature(at, body.as_bytes()), at.to_string());
                    let headers = [
                        ("x-slack-signature", &*signed),
                        ("x-slack-request-timestamp", &*at),
                        ("content-type", "application/json"),
                    ];
                    return client.ask("POST", &path, &headers, body.as_bytes()).await;
                }
                let signed = signature(self.site.now(), body.as_bytes(), [SECRET.as_bytes()]);
                client.ask("POST", &path, &[(route.headers[0], &signed)], body.as_bytes()).await
            }
        }
    }
}

/// A member that is unknown is refused by its path exactly where the document closes an object, and `null` counts as not sent exactly
/// where the document lets it stand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_take_what_the_document_says() {
    let stage = Stage::start().await;
    let (mut compared, mut differing) = (0, Vec::new());
    // Neither forms nor what is read as another protocol has it.
    for route in routes::all().filter(|it| matches!(it.shape, Shape::Plain | Shape::Messages)) {
        let Some(name) = route.request else { continue };
        let person = stage.site.member(Role::Owner);
        let mut all = Vec::new();
        probes(&document()["components"]["schemas"][name], "", &|it| it, &mut all);
        for Probe { path, body, forbidden } in all {
            let body = with(body, &beside(name));
            let got = stage.send(route, &person, &body).await;
            let place = format!("{} {}: {path}: {body}: {}", route.method, route.path, got.text());
            let is_read = ![401, 403, 405, 500].contains(&got.status) && got.kind() != "rate_limited";
            assert!(is_read, "{place}");
            // A token's blueprint refuses whatever a mandate has beside its template under a type of its own.
            // An amount of a settlement that is none has a type of its own too.
            let has_own = got.kind() == "template_only" || (path == "amount" && got.kind() == "invalid_amount");
            let is_named = got.status == 400 && (is_fault(&got, &path) || has_own);
            differing.extend((is_named != forbidden).then_some(place));
            compared += 1;
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(compared > 400, "{compared}");
    stage.site.stop().await;
}
