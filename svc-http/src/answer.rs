//! Answers: what a handler gives back, and how it and every refusal become a response.
//!
//! Every response leaves through [`Reply::send`], so that no header of the interface can be forgotten on one of them.

use std::convert::Infallible;
use std::time::Instant;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Either, Full};
use serde::Serialize;
use svc_core::rate::Standing;
use svc_core::refusal::{AttemptedModel, Kind, Refusal, RelaxationText};

use crate::headers::X_REQUEST_ID;
use crate::pages::refused;
use crate::routes::Shape;
use crate::trace::{TRACEPARENT, Trace};

/// The version of the interface, as every answer names it.
pub const VERSION: HeaderValue = HeaderValue::from_static("2026-10-01");

const SVC_VERSION: HeaderName = HeaderName::from_static("svc-version");
const RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATELIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const X_CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");
/// Which budget spoke, as `kind:id`.
pub const X_SVC_BUDGET_SCOPE: HeaderName = HeaderName::from_static("x-svc-budget-scope");
/// Whether policy acts, and how far a budget's ladder is climbed.
pub const X_SVC_ENFORCEMENT: HeaderName = HeaderName::from_static("x-svc-enforcement");
/// What a call cost, in micros.
pub const X_SVC_COST_MICROS: HeaderName = HeaderName::from_static("x-svc-cost-micros");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A response's body: whole, or a stream that ends when it ends.
pub type Sent = Either<Full<Bytes>, Stream>;
/// A body that is written while it is sent. It cannot fail: what goes wrong is told in it, or cuts it.
pub type Stream = UnsyncBoxBody<Bytes, Infallible>;

/// What a handler answers: a status, a body and the headers that are this answer's own.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    content_type: HeaderValue,
    cache: HeaderValue,
    body: Bytes,
    stream: Option<Stream>,
    refusal: Option<Box<Refusal>>,
    extra: Vec<(HeaderName, HeaderValue)>,
}

impl Answer {
    /// A refusal that has headers of its own; one without is an error of its handler.
    #[must_use]
    pub fn refused(refusal: Refusal) -> Self {
        Self { refusal: Some(Box::new(refusal)), ..Self::empty() }
    }

    /// What it refuses with, where it does.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_deref()
    }

    /// 200 with a JSON text that is kept by no cache.
    #[must_use]
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: JSON,
            cache: NO_STORE,
            body: body.into(),
            stream: None,
            refusal: None,
            extra: Vec::new(),
        }
    }

    /// 200 with a page.
    #[must_use]
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self { content_type: HeaderValue::from_static("text/html; charset=utf-8"), ..Self::json(body) }
    }

    /// 204 with nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self::json(Bytes::new()).with_status(StatusCode::NO_CONTENT)
    }

    /// 200 with a body that is written while it is sent.
    #[must_use]
    pub fn stream(content_type: &'static str, stream: Stream) -> Self {
        Self { content_type: HeaderValue::from_static(content_type), stream: Some(stream), ..Self::json(Bytes::new()) }
    }

    /// The same as 201.
    #[must_use]
    pub fn created(self) -> Self {
        self.with_status(StatusCode::CREATED)
    }

    /// The same with another status.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Marks an answer that repeats an earlier one.
    #[must_use]
    pub fn replayed(self) -> Self {
        self.with_header(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"))
    }

    /// Lets caches keep the answer as `policy` says, instead of not at all.
    #[must_use]
    pub fn cached(self, policy: &'static str) -> Self {
        Self { cache: HeaderValue::from_static(policy), ..self }
    }

    /// Adds a header.
    pub fn push_header(&mut self, name: HeaderName, value: HeaderValue) {
        self.extra.push((name, value));
    }

    /// The same with one header more.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.extra.push((name, value));
        self
    }
}

/// What every answer to one request carries, gathered while the request is worked on.
#[derive(Clone, Debug)]
pub struct Reply {
    /// When its head was whole.
    pub started: Instant,
    /// The client's id of the request, or a new one.
    pub request_id: HeaderValue,
    /// The trace with this server's place in it.
    pub trace: Trace,
    /// The envelope of errors.
    pub shape: Shape,
    /// Whether a refusal is told in a page: a browser shows what it is answered to whoever sits before it.
    pub page: bool,
    /// What a 401 names in `www-authenticate`.
    pub scheme: &'static str,
    /// The same on routes that speak MCP, where it says where the way in is described.
    pub challenge: Option<String>,
    /// Where the caller's rate stands, on routes that have one.
    pub standing: Option<Standing>,
    /// The `allow` header of a 405.
    pub allow: Option<HeaderValue>,
    /// The template of the route that matched.
    pub route: Option<&'static str>,
    /// Whether only the headers are wanted.
    pub head: bool,
    /// Whether the connection cannot be used again, as the rest of the request was not read.
    pub close: bool,
}

impl Reply {
    /// The response for an answer.
    #[must_use]
    pub fn send(&self, answer: Answer) -> Response<Sent> {
        let Answer { status, content_type, cache, body, stream, refusal: _, extra } = answer;
        let length = if stream.is_none() { Some(body.len()) } else { None };
        let mut response = Response::new(match stream {
            Some(stream) if !self.head => Either::Right(stream),
            _ => Either::Left(Full::new(if self.head { Bytes::new() } else { body })),
        });
        *response.status_mut() = status;
        let headers = response.headers_mut();
        // What follows and two more: room for twelve is one power of two.
        headers.reserve(12);
        if status != StatusCode::NO_CONTENT {
            headers.insert(CONTENT_TYPE, content_type);
        }
        headers.insert(CACHE_CONTROL, cache);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(X_REQUEST_ID, self.request_id.clone());
        headers.insert(SVC_VERSION, VERSION);
        headers.insert(TRACEPARENT, self.trace.header());
        if let Some(length) = length.filter(|_| self.head) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(standing) = &self.standing {
            insert_standing(headers, standing);
        }
        for (name, value) in extra {
            headers.append(name, value);
        }
        response
    }

    /// What `www-authenticate` says, where it is said: where no credential is good, and, to clients of MCP, where one is good
    /// for something else (RFC 6750 part 3).
    fn challenge(&self, refusal: &Refusal) -> Option<HeaderValue> {
        let error = match refusal.kind() {
            Kind::AgentKeyRequired if self.challenge.is_some() => ", error=\"insufficient_scope\"",
            _ if refusal.status() != StatusCode::UNAUTHORIZED.as_u16() => return None,
            Kind::InvalidApiKey => ", error=\"invalid_token\"",
            _ => "",
        };
        let told = self.challenge.as_ref().and_then(|it| HeaderValue::from_str(&format!("{it}{error}")).ok());
        Some(told.unwrap_or_else(|| HeaderValue::from_static(self.scheme)))
    }

    /// The response for what a handler answers. `docs` is the address of the page of errors, up to the `#`.
    #[must_use]
    pub fn answer(&self, mut answer: Answer, docs: &str) -> Response<Sent> {
        let Some(refusal) = answer.refusal.take() else { return self.send(answer) };
        let mut response = self.refuse(&refusal, docs);
        let headers = response.headers_mut();
        for (name, value) in answer.extra {
            // What the refusal itself says stands.
            headers.entry(name).or_insert(value);
        }
        response
    }

    /// The response for a refusal. `docs` is the address of the page of errors, up to the `#`.
    #[must_use]
    pub fn refuse(&self, refusal: &Refusal, docs: &str) -> Response<Sent> {
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = self.send(if self.page {
            refused::page(refusal)
        } else {
            let body = error_body(refusal, self.shape, self.request_id.to_str().unwrap_or_default(), docs);
            Answer::json(body).with_status(status)
        });
        let headers = response.headers_mut();
        if let Some(seconds) = refusal.retry_after_s() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge(refusal) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        let scope = refusal.call().and_then(|it| it.budget.as_ref()).map(|it| HeaderValue::from_str(&it.scope));
        if let Some(Ok(scope)) = scope {
            headers.insert(X_SVC_BUDGET_SCOPE, scope);
            headers.insert(X_SVC_ENFORCEMENT, HeaderValue::from_static("observe"));
        }
        if let Some(allow) = &self.allow {
            headers.insert(ALLOW, allow.clone());
        }
        response
    }
}

/// The JSON text of a refusal.
#[must_use]
pub fn error_body(refusal: &Refusal, shape: Shape, request_id: &str, docs: &str) -> Vec<u8> {
    let type_ = refusal.type_();
    let call = refusal.call();
    let budget = call.and_then(|it| it.budget.as_ref());
    let owner = budget.and_then(|it| it.owner.as_ref());
    let error = ErrorObject {
        type_,
        message: refusal.message(),
        request_id,
        fix: refusal.fix(),
        docs: format!("{docs}#{type_}"),
        errors: refusal.errors().iter().map(|it| Fault { field: it.field.as_deref(), message: &it.message }).collect(),
        did_you_mean: refusal.nearest(),
        reason: refusal.reason(),
        agent_id: refusal.agent_id(),
        evidence_record: refusal.evidence_record(),
        hold: refusal.hold(),
        old_count: refusal.counts().map(|it| it.0),
        new_count: refusal.counts().map(|it| it.1),
        approval: refusal.approval().map(|(workspace, id)| AskedLink {
            id,
            url: format!("{}/w/{workspace}/approvals/{id}", docs.trim_end_matches("/docs/errors")),
        }),
        stopped: call.and_then(|it| it.stopped),
        budget_id: budget.map(|it| &*it.id),
        owner: owner.map(|it| Owner { principal_id: &it.principal, name: it.name.as_deref(), email: &it.email }),
        spent_micros: owner.map(|it| it.spent),
        allocation_micros: owner.map(|it| it.allocation),
        binding_constraint: call.and_then(|it| it.binding.as_deref()),
        relaxations: call.and_then(|it| it.relaxations.as_ref()).map(|them| them.iter().map(Change::of).collect()),
        attempted_models: call
            .and_then(|it| it.attempted.as_ref())
            .map(|them| them.iter().map(Attempted::of).collect()),
        details: call.is_some_and(|it| it.is_threaded).then_some(THREADED),
    };
    let envelope = match shape {
        Shape::Flat => return flat_body(refusal, &error),
        Shape::Rpc => return rpc_body(refusal, &error),
        Shape::SecurityEvent => return security_event_body(&error),
        Shape::Plain => Envelope { type_: None, error },
        Shape::Messages => Envelope { type_: Some("error"), error },
    };
    // Nothing in it can fail to be written: all of it is text.
    serde_json::to_vec(&envelope).unwrap_or_default()
}

/// An error as RFC 6749 part 5.2 has it, whose description has few characters to be written in.
fn flat_body(refusal: &Refusal, error: &ErrorObject<'_>) -> Vec<u8> {
    let plain = |it: char| if matches!(it, ' '..='~') && it != '"' && it != '\\' { it } else { '\'' };
    let told = Flat {
        error: flat_type(refusal.kind()),
        error_description: error.message.chars().map(plain).collect(),
        request_id: error.request_id,
        fix: error.fix,
        docs: &error.docs,
        errors: &error.errors,
        did_you_mean: error.did_you_mean,
    };
    serde_json::to_vec(&told).unwrap_or_default()
}

/// An error as RFC 8935, 2.4, has it.
fn security_event_body(error: &ErrorObject<'_>) -> Vec<u8> {
    let told = SecurityEventError {
        err: error.type_,
        description: error.message,
        request_id: error.request_id,
        fix: error.fix,
        docs: &error.docs,
    };
    serde_json::to_vec(&told).unwrap_or_default()
}

/// The word of RFC 6749 and 7591 for a refusal.
const fn flat_type(kind: Kind) -> &'static str {
    match kind {
        Kind::InvalidJson
        | Kind::BodyTooLarge
        | Kind::HeadersTooLarge
        | Kind::MethodNotAllowed
        | Kind::RouteNotFound
        | Kind::UriTooLong => "invalid_request",
        Kind::RateLimited | Kind::NotReady => "temporarily_unavailable",
        Kind::Internal => "server_error",
        Kind::Forbidden | Kind::ForeignHost | Kind::Csrf | Kind::Unauthenticated | Kind::WrongSignIn => "access_denied",
        _ => kind.row().type_,
    }
}

#[derive(Serialize)]
struct Flat<'a> {
    error: &'static str,
    error_description: String,
    #[serde(rename = "requestId")]
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'static str>,
    docs: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Fault<'a>],
    #[serde(rename = "didYouMean", skip_serializing_if = "Option::is_none")]
    did_you_mean: Option<&'a str>,
}

#[derive(Serialize)]
struct SecurityEventError<'a> {
    err: &'static str,
    description: &'a str,
    #[serde(rename = "requestId")]
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'static str>,
    docs: &'a str,
}

/// An error as JSON-RPC 2.0 has it, to a request whose id is not known. Its members stand twice: in `data`, where JSON-RPC has
/// them, and where every other error of this service has them.
fn rpc_body(refusal: &Refusal, error: &ErrorObject<'_>) -> Vec<u8> {
    let code = match refusal.kind() {
        Kind::InvalidJson => -32_700,
        Kind::InvalidRequest | Kind::BodyTooLarge | Kind::HeadersTooLarge | Kind::UriTooLong => -32_600,
        // Codes of one's own stand outside what the protocol keeps for itself.
        _ => i32::from(refusal.status()),
    };
    let body = Rpc { jsonrpc: "2.0", id: (), error: RpcError { code, error, data: error } };
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Serialize)]
struct Rpc<'a> {
    jsonrpc: &'static str,
    id: (),
    error: RpcError<'a>,
}

#[derive(Serialize)]
struct RpcError<'a> {
    code: i32,
    #[serde(flatten)]
    error: &'a ErrorObject<'a>,
    data: &'a ErrorObject<'a>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_: Option<&'static str>,
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorObject<'a> {
    #[serde(rename = "type")]
    type_: &'static str,
    message: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'static str>,
    docs: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    did_you_mean: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence_record: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<&'a str>,
    /// `null` where the caller counted nothing; absent where nothing is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_count: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<AskedLink<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Owner<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binding_constraint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relaxations: Option<Vec<Change<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempted_models: Option<Vec<Attempted<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<InItsWords>,
}

/// A refusal in the words of the messages API, by which its clients know what to send in place of what is refused.
#[derive(Serialize)]
struct InItsWords {
    error_code: &'static str,
    unsupported: [&'static str; 1],
}

/// The refusal of a conversation that the provider is to keep.
const THREADED: InItsWords = InItsWords { error_code: "thread_unsupported_request", unsupported: ["thread"] };

/// Who can approve more of a budget.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    principal_id: &'a str,
    name: Option<&'a str>,
    email: &'a str,
}

/// A single change that would admit models.
#[derive(Serialize)]
struct Change<'a> {
    constraint: &'a str,
    change: &'a str,
    admits: &'a [Box<str>],
}

impl<'a> Change<'a> {
    fn of(text: &'a RelaxationText) -> Self {
        Self { constraint: &text.constraint, change: &text.change, admits: &text.admits }
    }
}

/// A model that was tried.
#[derive(Serialize)]
struct Attempted<'a> {
    model: &'a str,
    provider: &'a str,
    status: Option<u16>,
    error: &'a str,
}

impl<'a> Attempted<'a> {
    fn of(tried: &'a AttemptedModel) -> Self {
        Self { model: &tried.model, provider: &tried.provider, status: tried.status, error: &tried.error }
    }
}

/// Where a person finds an approval.
#[derive(Serialize)]
struct AskedLink<'a> {
    id: &'a str,
    url: String,
}

#[derive(Serialize)]
struct Fault<'a> {
    field: Option<&'a str>,
    message: &'a str,
}

fn insert_standing(headers: &mut HeaderMap, standing: &Standing) {
    headers.insert(RATELIMIT_LIMIT, HeaderValue::from(standing.limit));
    headers.insert(RATELIMIT_REMAINING, HeaderValue::from(standing.remaining));
    headers.insert(RATELIMIT_RESET, HeaderValue::from(standing.reset_s));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::{Value, json};
    use svc_core::refusal::FieldError;

    use super::*;

    fn body(refusal: &Refusal, shape: Shape) -> Value {
        serde_json::from_slice(&error_body(refusal, shape, "req_1", "https://gate.example/docs/errors")).unwrap()
    }

    /// The error object has the members of the interface, and only those that this refusal has.
    #[test]
    fn the_error_object_is_that_of_the_interface() {
        let refusal = Refusal::invalid_request(vec![FieldError::missing("type"), FieldError::whole("the body is odd")]);
        assert_eq!(
            body(&refusal, Shape::Plain),
            json!({ "error": {
                "type": "invalid_request",
                "message": "`type` is required; the body is odd",
                "requestId": "req_1",
                "fix": "Correct the fields that `errors` names and send the request again.",
                "docs": "https://gate.example/docs/errors#invalid_request",
                "errors": [{ "field": "type", "message": "`type` is required" }, { "field": null, "message": "the body is odd" }],
            }})
        );
        let members = |refusal: &Refusal| {
            body(refusal, Shape::Plain)
                .get("error")
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(members(&Refusal::internal()), "docs message requestId type");
        assert_eq!(members(&Refusal::not_allowed("denied")), "docs fix message reason requestId type");
        assert_eq!(members(&Refusal::agent_not_found("agt_1")), "agentId docs fix message requestId type");
        assert_eq!(members(&Refusal::route_not_found(Some("GET /docs"))), "didYouMean docs fix message requestId type");
        assert_eq!(
            members(&Refusal::idempotency_conflict().with_evidence("evd_1")),
            "docs evidenceRecord fix message requestId type"
        );
    }

    /// What speaks JSON-RPC has the members of the error object where JSON-RPC has them, and where all others have them.
    #[test]
    fn errors_of_json_rpc_are_those_of_the_interface_too() {
        let refusal = Refusal::agent_not_found("agt_1").with_evidence("evd_1");
        let plain = body(&refusal, Shape::Plain).get("error").unwrap().clone();
        let told = body(&refusal, Shape::Rpc);
        assert_eq!((told.get("jsonrpc"), told.get("id")), (Some(&json!("2.0")), Some(&Value::Null)));
        let mut expected = plain.clone();
        crate::wire::put(&mut expected, "code", json!(403));
        crate::wire::put(&mut expected, "data", plain);
        assert_eq!(told.get("error"), Some(&expected));
    }

    /// A fix that speaks of `errors` comes with them, also where OAuth has the shape.
    #[test]
    fn flat_errors_name_what_their_fix_speaks_of() {
        let refusal = Refusal::invalid_request(vec![FieldError::missing("code")]).did_you_mean("codes");
        let told = body(&refusal, Shape::Flat);
        assert_eq!(told.get("errors"), Some(&json!([{ "field": "code", "message": "`code` is required" }])));
        assert_eq!(
            (told.get("error"), told.get("didYouMean")),
            (Some(&json!("invalid_request")), Some(&json!("codes")))
        );
        assert_eq!(body(&Refusal::not_found(), Shape::Flat).get("errors"), None);
    }

    /// Messages-shaped routes wrap the same object once more.
    #[test]
    fn messages_shaped_errors_are_wrapped() {
        let wrapped = body(&Refusal::not_found(), Shape::Messages);
        assert_eq!(wrapped.get("type"), Some(&json!("error")));
        assert_eq!(wrapped.get("error"), body(&Refusal::not_found(), Shape::Plain).get("error"));
    }
}
