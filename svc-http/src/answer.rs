//! Answers: what a handler gives back, and how it and every refusal become a response.
//!
//! Every response leaves through [`Reply::send`], so that no header of the interface can be forgotten on one of them.

mod error;

use std::time::Instant;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Either, Full};
use svc_core::rate::Standing;
use svc_core::refusal::{Kind, Refusal};

pub use self::error::error_body;
pub(crate) use self::error::message_body;
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
/// Which model call an answer is of.
pub const X_SVC_CALL_ID: HeaderName = HeaderName::from_static("x-svc-call-id");
/// Which budget spoke, as `kind:id`.
pub const X_SVC_BUDGET_SCOPE: HeaderName = HeaderName::from_static("x-svc-budget-scope");
/// Whether policy acts, and how far a budget's ladder is climbed.
pub const X_SVC_ENFORCEMENT: HeaderName = HeaderName::from_static("x-svc-enforcement");
/// What a call cost, in micros.
pub const X_SVC_COST_MICROS: HeaderName = HeaderName::from_static("x-svc-cost-micros");
/// What clients of messages-shaped APIs call the id of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
/// Milliseconds after which a client may ask again; those that know it look at it before `retry-after`.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// After so long calls that run may have given back what they hold of a budget, whose period may last for weeks.
const HELD_AGAIN_MS: u32 = 1_000;
/// Keeps clients that repeat a status on their own, as the official SDKs do, from doing so, or has them repeat one that they would not.
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Seconds that such a client waits before it repeats, at most.
const RETRY_WITHIN_S: u32 = 60;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A response's body: whole, or a stream that ends when it ends.
pub type Sent = Either<Full<Bytes>, Stream>;
/// A body that is written while it is sent: what goes wrong is told in it, or breaks it off.
pub type Stream = UnsyncBoxBody<Bytes, Broken>;

/// A body cannot be written to its end. Its last chunk is left out (on HTTP/2 its stream is reset), so that no client takes what came for
/// the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer was broken off")]
pub struct Broken;

/// What a handler answers: a status, a body and the headers that are this answer's own.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    content_type: HeaderValue,
    cache: HeaderValue,
    body: Bytes,
    stream: Option<Stream>,
    refusal: Option<Box<Refusal>>,
    /// The refusal that a page tells in its own way.
    told: Option<Kind>,
    /// The id of the JSON-RPC message that is refused.
    message: Option<serde_json::Value>,
    /// Where the rate stands that refused, where it is not the route's.
    standing: Option<Standing>,
    extra: Vec<(HeaderName, HeaderValue)>,
}

impl Answer {
    /// A refusal that has headers of its own; one without is an error of its handler.
    #[must_use]
    pub fn refused(refusal: Refusal) -> Self {
        Self { refusal: Some(Box::new(refusal)), ..Self::empty() }
    }

    /// The same as the answer to the JSON-RPC message of this id.
    #[must_use]
    pub(crate) fn with_message(self, id: serde_json::Value) -> Self {
        Self { message: Some(id), ..self }
    }

    /// The same, by a rate of the handler's own: its headers are told in place of the route's, which may have room.
    #[must_use]
    pub(crate) fn with_standing(self, standing: Standing) -> Self {
        Self { standing: Some(standing), ..self }
    }

    /// The same, told not to be asked for again by clients that do so on their own.
    #[must_use]
    pub(crate) fn without_retry(self) -> Self {
        self.with_header(X_SHOULD_RETRY, HeaderValue::from_static("false"))
    }

    /// The same page, which tells a refusal of this kind.
    #[must_use]
    pub(crate) fn telling(self, kind: Kind) -> Self {
        Self { told: Some(kind), ..self }
    }

    /// What it refuses with, where it does, also where a page tells that in its own way: for who counts.
    pub(crate) fn refuses_with(&self) -> Option<Kind> {
        self.refusal.as_ref().map(|it| it.kind()).or(self.told)
    }

    /// What it refuses with, where it does.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_deref()
    }

    /// The id of the model call that it tells, where it tells one.
    pub(crate) fn call(&self) -> Option<&HeaderValue> {
        self.extra.iter().find(|(name, _)| *name == X_SVC_CALL_ID).map(|(_, id)| id)
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
            told: None,
            message: None,
            standing: None,
            extra: Vec::new(),
        }
    }

    /// 200 with a page.
    #[must_use]
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self { content_type: HeaderValue::from_static("text/html; charset=utf-8"), ..Self::json(body) }
    }

    /// 200 with a file of this type.
    #[must_use]
    pub fn file(content_type: &'static str, body: Bytes) -> Self {
        Self { content_type: HeaderValue::from_static(content_type), ..Self::json(body) }
    }

    /// 308: it is at another address, and always was.
    #[must_use]
    pub fn moved(to: HeaderValue) -> Self {
        Self::html("").with_status(StatusCode::PERMANENT_REDIRECT).with_header(LOCATION, to)
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

    /// The same; proxies are asked not to gather what is to be told at once.
    #[must_use]
    pub fn told_at_once(self) -> Self {
        self.with_header(X_ACCEL_BUFFERING, HeaderValue::from_static("no"))
    }
}

/// Read by nginx and others, which gather the answers of what is behind them by default.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

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
    /// Bytes of a body that it takes; 0 where none matched.
    pub body_max: usize,
    /// Whether only the headers are wanted.
    pub head: bool,
    /// Whether the connection cannot be used again, as the rest of the request was not read.
    pub close: bool,
}

impl Reply {
    /// The response for an answer.
    #[must_use]
    pub fn send(&self, answer: Answer) -> Response<Sent> {
        let Answer { status, content_type, cache, body, stream, refusal: _, told: _, message: _, standing: _, extra } =
            answer;
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
        if self.shape == Shape::Messages {
            headers.insert(REQUEST_ID, self.request_id.clone());
        }
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

    /// Whether it says that there is no such page: beyond the console's own, or at an address that no route has.
    fn is_nowhere(&self, refusal: &Refusal) -> bool {
        let is_console = self.route.is_none_or(|it| it.starts_with("/w/"));
        matches!(refusal.kind(), Kind::NotFound | Kind::RouteNotFound) && is_console
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
        let mut response = self.refuse_message(&refusal, answer.message.take(), docs);
        let headers = response.headers_mut();
        if let Some(standing) = &answer.standing {
            insert_standing(headers, standing);
        }
        for (name, value) in answer.extra {
            // What the refusal itself says stands.
            headers.entry(name).or_insert(value);
        }
        response
    }

    /// The response for a refusal. `docs` is the address of the page of errors, up to the `#`.
    #[must_use]
    pub fn refuse(&self, refusal: &Refusal, docs: &str) -> Response<Sent> {
        self.refuse_message(refusal, None, docs)
    }

    /// The same, of the JSON-RPC message of this id where it is of one.
    fn refuse_message(&self, refusal: &Refusal, message: Option<serde_json::Value>, docs: &str) -> Response<Sent> {
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = self.send(if self.page && self.is_nowhere(refusal) {
            refused::nowhere(refusal, docs)
        } else if self.page {
            refused::page(refusal)
        } else {
            let id = self.request_id.to_str().unwrap_or_default();
            let body = match message {
                Some(message) => message_body(refusal, message, id, docs),
                None => error_body(refusal, self.shape, id, docs),
            };
            Answer::json(body).with_status(status)
        });
        let headers = response.headers_mut();
        if self.shape == Shape::SecurityEvent {
            // What stands in `description` is to say which language it is in (RFC 8935, 2.3).
            headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static("en"));
        }
        if let Some(seconds) = refusal.retry_after_s() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if is_repeated_in_vain(refusal) {
            headers.insert(X_SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if matches!(refusal.kind(), Kind::BudgetHeld | Kind::ApprovalHeld) {
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(HELD_AGAIN_MS));
            headers.insert(X_SHOULD_RETRY, HeaderValue::from_static("true"));
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

/// Whether a client that repeats statuses on their own would repeat this one for nothing, or do twice what may be done already.
fn is_repeated_in_vain(refusal: &Refusal) -> bool {
    match StatusCode::from_u16(refusal.status()) {
        // Some clients ask again with a key that was refused, for minutes.
        Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => true,
        Ok(StatusCode::BAD_GATEWAY) => refusal.kind() == Kind::UpstreamDenied,
        Ok(StatusCode::CONFLICT | StatusCode::INTERNAL_SERVER_ERROR) => true,
        // What calls that run hold of a budget may be free again long before its period ends.
        Ok(StatusCode::TOO_MANY_REQUESTS) if refusal.kind() == Kind::BudgetHeld => false,
        Ok(StatusCode::TOO_MANY_REQUESTS) => refusal.retry_after_s().is_none_or(|it| it > RETRY_WITHIN_S),
        _ => false,
    }
}

fn insert_standing(headers: &mut HeaderMap, standing: &Standing) {
    headers.insert(RATELIMIT_LIMIT, HeaderValue::from(standing.limit));
    headers.insert(RATELIMIT_REMAINING, HeaderValue::from(standing.remaining));
    headers.insert(RATELIMIT_RESET, HeaderValue::from(standing.reset_s));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that is refused, by this server or by the providers, is refused to whoever asks again; what passes is asked again.
    #[test]
    fn a_refused_key_is_not_tried_again() {
        for refusal in [
            Refusal::invalid_api_key(),
            Refusal::unauthenticated(),
            Refusal::forbidden("no"),
            Refusal::agent_stopped("agt_1", None::<&str>),
            Refusal::upstreams_denied(Vec::new()),
            Refusal::internal(),
        ] {
            assert!(is_repeated_in_vain(&refusal), "{refusal:?}");
        }
        for refusal in [Refusal::upstream_failure(Vec::new()), Refusal::not_ready(), Refusal::rate_limited(1)] {
            assert!(!is_repeated_in_vain(&refusal), "{refusal:?}");
        }
    }
}
