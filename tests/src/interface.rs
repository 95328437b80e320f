//! The committed interface document, and whether an answer keeps to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::client::Got;
use crate::source;

/// The interface's version, which every answer names.
pub const VERSION: &str = "2026-10-01";

/// `docs/openapi.json`.
///
/// # Panics
/// Where it is no JSON.
#[must_use]
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let text = source::file("docs/openapi.json").expect("docs/openapi.json is committed");
        serde_json::from_str(&text).expect("docs/openapi.json is JSON")
    })
}

/// Ends the test where an answer lacks what every answer has, or is not as the document says of its route and status.
///
/// # Panics
/// With what is wrong.
pub fn check(method: &str, path: &str, got: &Got) {
    check_headers(path, got);
    if got.status >= 400 && method != "HEAD" {
        match shape(path) {
            Shape::Usual if is_page(got) => {}
            Shape::Usual => check_error(path, got),
            Shape::Flat => check_flat(got),
            Shape::Rpc => check_rpc(got),
            Shape::SecurityEvent => check_security_event(got),
        }
    }
    let Some(template) = template(path) else {
        // A page's address with a slash after it leads to the page.
        let page = path.split('?').next().and_then(|it| it.strip_suffix('/'));
        if got.status == 308 && page.is_some_and(|it| template(it).is_some()) {
            return;
        }
        let told = method == "HEAD"
            || is_page(got)
            || match shape(path) {
                Shape::Flat => got.json()["error"] == "invalid_request",
                Shape::SecurityEvent => got.json()["err"] == "route_not_found",
                Shape::Usual | Shape::Rpc => got.kind() == "route_not_found",
            };
        assert_eq!((got.status, told), (404, true), "{got:?}");
        return;
    };
    if method == "HEAD" || got.status == 405 {
        return;
    }
    let place = format!("{method} {template} {}", got.status);
    let answer = &document()["paths"][template][method.to_ascii_lowercase()]["responses"][got.status.to_string()];
    assert!(answer.is_object(), "the document has no {place}: {}", got.text());
    check_told(&place, answer, got);
    if matches!(shape(path), Shape::Usual) {
        check_type(&place, answer, got);
    }
    let content = &answer["content"]["application/json"]["schema"];
    assert!(!is_page(got) || answer["content"]["text/html"].is_object(), "the document has no page for {place}");
    if content.is_null() || is_page(got) {
        return;
    }
    let body = got.json();
    let faults: Vec<String> = validator(&place, content)
        .iter_errors(&body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{place} is not as the document says: {faults:?}\n{body:#}");
    check_members(&place, &[content], &body);
}

/// Ends the test where a body that was taken is not one that the document allows.
///
/// # Panics
/// With what is wrong.
pub fn check_taken(method: &str, path: &str, body: &[u8], got: &Got) {
    let is_taken = (200..300).contains(&got.status) && !body.is_empty();
    let Some(template) = template(path).filter(|_| is_taken) else { return };
    let place = format!("{method} {template}");
    let operation = &document()["paths"][template][method.to_ascii_lowercase()];
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    // A bill may come as CSV, and a route that takes no body looks at none.
    let Some(body) = serde_json::from_slice::<Value>(body).ok().filter(|_| schema.is_object()) else { return };
    let (validator, body) = (validator(&place, schema), trimmed(body));
    let faults: Vec<String> =
        validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{place} took what the document forbids: {faults:?}\n{body:#}");
}

/// The same with texts as they are counted: without the space around them.
fn trimmed(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.trim().to_owned()),
        Value::Array(items) => items.into_iter().map(trimmed).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, trimmed(value))).collect(),
        it @ (Value::Null | Value::Bool(_) | Value::Number(_)) => it,
    }
}

/// Every header of an answer that the document knows is told of this place.
fn check_told(place: &str, answer: &Value, got: &Got) {
    for (name, _) in &got.headers {
        let is_known = document()["components"]["headers"][name].is_object();
        assert!(!is_known || answer["headers"][name].is_object(), "the document has no `{name}` at {place}");
    }
}

/// The type of an error is one that the document lists for its status at this place.
fn check_type(place: &str, answer: &Value, got: &Got) {
    if got.status < 400 || is_page(got) || answer["content"].is_null() {
        return;
    }
    let listed = answer["description"].as_str().unwrap_or_default();
    if let Some(kind) = got.json()["error"]["type"].as_str() {
        assert!(listed.split(", ").any(|it| it == kind), "the document has no {kind} at {place}: {listed}");
    }
}

/// Every member of an answer, at any depth, is one that the document names; but where the names are nobody's in particular.
fn check_members(place: &str, schemas: &[&Value], body: &Value) {
    let schemas: Vec<&Value> = schemas.iter().flat_map(|it| parts(it)).collect();
    let of = |name: &str| schemas.iter().map(|it| &it[name]).filter(|it| it.is_object()).collect::<Vec<_>>();
    let (known, is_open) = (of("properties"), !of("additionalProperties").is_empty());
    for (name, value) in body.as_object().into_iter().flatten().filter(|_| !known.is_empty()) {
        let named: Vec<&Value> = known.iter().filter_map(|it| it.get(name)).collect();
        assert!(is_open || !named.is_empty(), "{place}: the document does not name `{name}` of {body:#}");
        check_members(place, &named, value);
    }
    body.as_array().into_iter().flatten().for_each(|it| check_members(place, &of("items"), it));
}

/// A schema, and those that it is put together of.
fn parts(schema: &Value) -> Vec<&Value> {
    let named = schema["$ref"].as_str().and_then(|it| document().pointer(it.trim_start_matches('#')));
    let several = ["allOf", "anyOf", "oneOf"].map(|it| schema[it].as_array());
    let within = named.into_iter().chain(several.into_iter().flatten().flatten());
    std::iter::once(schema).chain(within.flat_map(parts)).collect()
}

/// How the errors of a path look.
enum Shape {
    Usual,
    Flat,
    Rpc,
    SecurityEvent,
}

fn shape(path: &str) -> Shape {
    match path.split('?').next().unwrap_or_default() {
        "/mcp" => Shape::Rpc,
        it if it.starts_with("/mcp/") => Shape::Rpc,
        _ if path.starts_with("/oauth/") => Shape::Flat,
        _ if path.starts_with("/hooks/ssf/") => Shape::SecurityEvent,
        _ => Shape::Usual,
    }
}

fn is_page(got: &Got) -> bool {
    got.header("content-type").is_some_and(|it| it.starts_with("text/html"))
}

/// An error as RFC 6749 has it; where a page was asked for, a page.
fn check_flat(got: &Got) {
    if got.status == 405 || is_page(got) {
        return;
    }
    let body = got.json();
    let kind = body["error"].as_str().expect("a word");
    assert_eq!(body["requestId"].as_str(), got.header("x-request-id"), "{body}");
    let described = body["error_description"].as_str().expect("a description");
    let plain = |it: u8| matches!(it, b' '..=b'~') && it != b'"' && it != b'\\';
    assert!(!described.is_empty() && described.bytes().all(plain), "{body}");
    assert!(body["docs"].as_str().is_some_and(|it| it.contains("/docs/errors#")), "{body}");
    assert!(got.status >= 500 || body["fix"].as_str().is_some_and(|it| it.ends_with('.')), "{body}");
    assert_eq!(got.header("www-authenticate"), (got.status == 401).then_some("Basic realm=\"svc\""), "{kind}: {got:?}");
    assert_eq!(got.header("retry-after").is_some(), matches!(got.status, 429 | 503), "{got:?}");
}

/// An error as RFC 8935 has it.
fn check_security_event(got: &Got) {
    let body = got.json();
    assert!(body["err"].is_string() && body["description"].is_string(), "{body}");
    assert_eq!(body["requestId"].as_str(), got.header("x-request-id"), "{body}");
    assert!(body["docs"].as_str().is_some_and(|it| it.contains("/docs/errors#")), "{body}");
    assert!(got.status >= 500 || body["fix"].as_str().is_some_and(|it| it.ends_with('.')), "{body}");
}

/// An error as JSON-RPC 2.0 has it.
fn check_rpc(got: &Got) {
    if got.status == 405 {
        return;
    }
    let body = got.json();
    assert_eq!((body["jsonrpc"].as_str(), body.get("id").is_some()), (Some("2.0"), true), "{body}");
    let (error, data) = (&body["error"], &body["error"]["data"]);
    assert!(error["code"].is_i64() && data["type"].is_string(), "{body}");
    for member in data.as_object().into_iter().flat_map(|it| it.keys()) {
        assert_eq!(error[member], data[member], "as every other error of the service: {body}");
    }
    assert_eq!(data["requestId"].as_str(), got.header("x-request-id"), "{body}");
    assert!(data["docs"].as_str().is_some_and(|it| it.contains("/docs/errors#")), "{body}");
    assert!(got.status >= 500 || data["fix"].as_str().is_some_and(|it| it.ends_with('.')), "{body}");
    let challenge = got.header("www-authenticate");
    let is_told = got.status == 401 || data["type"] == "agent_key_required";
    assert_eq!(challenge.is_some_and(|it| it.starts_with("Bearer resource_metadata=")), is_told, "{got:?}");
}

fn check_headers(path: &str, got: &Got) {
    assert_eq!(got.header("svc-version"), Some(VERSION), "{got:?}");
    let id = got.header("x-request-id").expect("an id of the request");
    assert!((1..=128).contains(&id.len()), "{id}");
    let trace: Vec<&str> = got.header("traceparent").expect("a trace").split('-').collect();
    let lengths: Vec<usize> = trace.iter().map(|it| it.len()).collect();
    assert_eq!(lengths, [2, 32, 16, 2], "{got:?}");
    assert!(got.status == 204 || got.header("content-type").is_some(), "{got:?}");
    assert!(got.header("cache-control").is_some(), "{got:?}");
    if path.starts_with("/v1/actions/") || path == "/v1/verify" {
        for name in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] {
            let value = got.header(name).unwrap_or_else(|| panic!("{name} on every answer of the gate: {got:?}"));
            assert!(value.parse::<u64>().is_ok(), "{name}: {value}");
        }
    }
}

fn check_error(path: &str, got: &Got) {
    let body = got.json();
    let error = &body["error"];
    let kind = error["type"].as_str().expect("a type");
    assert_eq!(error["requestId"].as_str(), got.header("x-request-id"), "{body}");
    assert!(error["message"].as_str().is_some_and(|it| !it.is_empty()), "{body}");
    assert!(error["docs"].as_str().is_some_and(|it| it.ends_with(&format!("/docs/errors#{kind}"))), "{body}");
    if got.status < 500 {
        assert!(error["fix"].as_str().is_some_and(|it| it.ends_with('.')), "{body}");
    }
    if let Some(errors) = error["errors"].as_array() {
        let messages: Vec<&str> = errors.iter().filter_map(|it| it["message"].as_str()).collect();
        assert_eq!(error["message"].as_str(), Some(messages.join("; ").as_str()), "{body}");
    }
    let lists = [
        "invalid_request",
        "invalid_mandate",
        "invalid_selector",
        "invalid_application",
        "invalid_budget",
        "invalid_upstream",
    ];
    // What is not validation lists a member alone where sending it would help: a second factor that is asked for.
    let asks_for_code = kind == "forbidden" && error["errors"][0]["field"] == "code";
    assert_eq!(lists.contains(&kind) || asks_for_code, error["errors"].is_array(), "{body}");
    let own = [("/api/", "Session"), ("/hooks/", "Signature")];
    let scheme = own.iter().find(|it| path.starts_with(it.0)).map_or("Bearer", |it| it.1);
    assert_eq!(got.header("www-authenticate"), (got.status == 401).then_some(scheme), "{got:?}");
    // A budget over all time never comes free by itself.
    let comes_free = matches!(got.status, 429 | 503) && kind != "budget_exhausted";
    assert!(got.header("retry-after").is_some() == comes_free || kind == "budget_exhausted", "{got:?}");
    assert_eq!(got.header("allow").is_some(), got.status == 405, "{got:?}");
}

/// The document's path that a request's path belongs to.
#[must_use]
pub fn template(path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or_default();
    let paths = document()["paths"].as_object().expect("paths");
    let mut found = paths.keys().filter(|it| matches(it, path)).map(String::as_str).collect::<Vec<_>>();
    // A literal one before one with an id in it.
    found.sort_by_key(|it| it.contains('{'));
    found.first().copied()
}

fn matches(template: &str, path: &str) -> bool {
    let (mut wanted, mut sent) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), sent.next()) {
            (None, None) => return true,
            (Some(name), Some(id)) if name.starts_with("{") && !id.is_empty() => {}
            (Some(wanted), Some(sent)) if wanted == sent => {}
            _ => return false,
        }
    }
}

/// The same with every list of words closed: a client takes a word that a later version adds, but this version says none that its document
/// does not list. What stands in a list of several for bodies that are still to come goes as well.
fn closed(schema: Value) -> Value {
    let open = json!({ "type": "object" });
    match schema {
        Value::Object(members) => {
            let member = |(name, it)| match name {
                it_is if it_is == "x-extensible-enum" => ("enum".to_owned(), it),
                name => (name, closed(it)),
            };
            Value::Object(members.into_iter().map(member).collect())
        }
        Value::Array(items) => items.into_iter().filter(|it| *it != open).map(closed).collect(),
        it => it,
    }
}

/// The validator of one place in the document; made once.
fn validator(place: &str, schema: &Value) -> Arc<Validator> {
    static MADE: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    if let Some(known) = MADE.lock().expect("no test died here").get(place) {
        return Arc::clone(known);
    }
    let whole = closed(json!({ "allOf": [schema], "components": document()["components"] }));
    let made = jsonschema::options().should_validate_formats(true).build(&whole);
    let made = Arc::new(made.unwrap_or_else(|error| panic!("{place} has no schema: {error}")));
    MADE.lock().expect("no test died here").insert(place.to_owned(), Arc::clone(&made));
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word that this version says and its document does not list ends a test, though clients take it.
    #[test]
    fn a_word_that_is_not_listed_is_found() {
        let schema = json!({ "$ref": "#/components/schemas/Reason" });
        let validator = validator("a reason", &schema);
        let reason = |code: &str| json!({ "code": code, "effect": "deny", "message": "why" });
        assert!(validator.is_valid(&reason("over_limit")));
        assert!(!validator.is_valid(&reason("nobody_says_this")));
        let whole = json!({ "allOf": [schema], "components": document()["components"] });
        let told = jsonschema::options().build(&whole).expect("a schema");
        assert!(told.is_valid(&reason("nobody_says_this")), "a client takes it");
    }
}
