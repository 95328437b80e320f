//! Refusals: what a caller is told when the answer is no.
//!
//! A [`Refusal`] is for callers; what went wrong inside is a failure of its own and is never shown. Status, type, advice
//! and default message come from the one [table](Kind); members beyond them exist through the constructors alone.
//!
//! **Invariant:** this module knows nothing of HTTP beyond a number, nor of any stored state; ids come in as text.

mod field;
mod fleet;
mod gateway;
mod people;
mod table;

use std::borrow::Cow;
use std::fmt;

pub use self::field::FieldError;
pub use self::gateway::{AttemptedModel, BudgetDetail, BudgetOwner, CallDetail, Lack, RelaxationText};
pub use self::table::{Kind, Row};

/// An answer of no, with everything that the caller is told.
///
/// Two words wide beside its message: the members that few refusals have lie behind one pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    kind: Kind,
    message: Cow<'static, str>,
    detail: Option<Box<Detail>>,
}

/// The members that only some refusals carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Detail {
    errors: Vec<FieldError>,
    did_you_mean: Option<Box<str>>,
    reason: Option<Box<str>>,
    agent_id: Option<Box<str>>,
    evidence_record: Option<Box<str>>,
    approval: Option<(Box<str>, Box<str>)>,
    hold: Option<Box<str>>,
    counts: Option<Counts>,
    retry_after_s: Option<u32>,
    call: Option<Box<CallDetail>>,
    fix: Option<&'static str>,
}

/// How many agents were counted before an order and as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// By the caller, where they said so.
    pub old: Option<i64>,
    /// Now.
    pub new: i64,
}

/// Seconds after which a server that is not ready is asked again.
const NOT_READY_RETRY_S: u32 = 1;

/// The constructors: one for each refusal of the interface, so that no member is forgotten and none invented.
impl Refusal {
    /// 400: the body is not JSON that this service reads; `why` says at what it stopped.
    pub fn invalid_json(why: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::InvalidJson, message: why.into(), detail: None }
    }

    /// 400 with every fault that was found. The message is their messages joined by `; `.
    #[must_use]
    pub fn invalid_request(errors: Vec<FieldError>) -> Self {
        Self::faults(Kind::InvalidRequest, errors)
    }

    /// 400 with one fault; `clause` stands behind the field's name.
    pub fn invalid_field(field: impl Into<Box<str>>, clause: impl AsRef<str>) -> Self {
        Self::invalid_request(vec![FieldError::new(field, clause)])
    }

    /// 400: a mandate with every fault that was found.
    #[must_use]
    pub fn invalid_mandate(errors: Vec<FieldError>) -> Self {
        Self::faults(Kind::InvalidMandate, errors)
    }

    /// 400: a budget with every fault that was found.
    #[must_use]
    pub fn invalid_budget(errors: Vec<FieldError>) -> Self {
        Self::faults(Kind::InvalidBudget, errors)
    }

    /// 400: an application with every fault that was found.
    #[must_use]
    pub fn invalid_application(errors: Vec<FieldError>) -> Self {
        Self::faults(Kind::InvalidApplication, errors)
    }

    /// 400: a provider with every fault that was found.
    #[must_use]
    pub fn invalid_upstream(errors: Vec<FieldError>) -> Self {
        Self::faults(Kind::InvalidUpstream, errors)
    }

    /// 400: no template has this name.
    #[must_use]
    pub fn unknown_template(name: &str) -> Self {
        Self { message: format!("there is no template `{name}`").into(), ..Self::plain(Kind::UnknownTemplate) }
    }

    /// 400: a token attaches mandates from templates alone.
    #[must_use]
    pub fn template_only() -> Self {
        Self::plain(Kind::TemplateOnly)
    }

    /// 409: the mandate would allow anywhere beside the narrower one with this id.
    pub fn confirm_broaden(narrower: impl fmt::Display) -> Self {
        Self::plain(Kind::ConfirmBroaden).with(|it| it.reason = Some(narrower.to_string().into()))
    }

    /// 401: nothing that this route reads was sent.
    #[must_use]
    pub fn unauthenticated() -> Self {
        Self::plain(Kind::Unauthenticated)
    }

    /// 401: nothing that this route reads was sent; `read` is what it reads, in words.
    #[must_use]
    pub fn no_credential(read: &str) -> Self {
        let plain = Self::plain(Kind::Unauthenticated);
        Self { message: format!("{}: it reads {read}", plain.message).into(), ..plain }
    }

    /// 401: a credential was sent of another kind than the route reads; both are kinds in words, and nothing of what was sent.
    #[must_use]
    pub fn unread_credential(sent: &str, read: &str) -> Self {
        let message = format!("{sent} was sent, which this route does not read; it reads {read}");
        Self { message: message.into(), ..Self::plain(Kind::Unauthenticated) }
    }

    /// 401: a signed request that does not verify; whatever of it is wrong, in one text.
    #[must_use]
    pub fn wrong_signature() -> Self {
        Self::plain(Kind::WrongSignature)
    }

    /// 400: a pushed security event is not believed.
    pub fn disbelieved(kind: Kind) -> Self {
        Self::plain(kind)
    }

    /// 400: what was pushed is no security event; `why` says what is wrong.
    pub fn no_security_event(why: &'static str) -> Self {
        Self { kind: Kind::InvalidRequest, message: why.into(), detail: None }
    }

    /// 401: what somebody signs in by is wrong; whatever it is, in one text.
    #[must_use]
    pub fn wrong_sign_in() -> Self {
        Self::plain(Kind::WrongSignIn)
    }

    /// 401: the key is unknown, expired or revoked.
    #[must_use]
    pub fn invalid_api_key() -> Self {
        Self::plain(Kind::InvalidApiKey)
    }

    /// 403: the key is not an agent's.
    #[must_use]
    pub fn agent_key_required() -> Self {
        Self::plain(Kind::AgentKeyRequired)
    }

    /// 403: the agent of this key has been removed.
    pub fn agent_not_found(agent_id: impl fmt::Display) -> Self {
        Self::plain(Kind::AgentNotFound).with(|it| it.agent_id = Some(agent_id.to_string().into()))
    }

    /// A refusal of the OAuth endpoints; `why` says what is wrong.
    pub fn oauth(kind: Kind, why: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: why.into(), detail: None }
    }

    /// What an MCP server behind this one did not do; `why` says what.
    pub fn tool_server(kind: Kind, why: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: why.into(), detail: None }
    }

    /// 403: a page of another origin speaks MCP.
    #[must_use]
    pub fn foreign_origin() -> Self {
        Self::plain(Kind::ForeignOrigin)
    }

    /// 403: this caller may not do that; `why` says what.
    pub fn forbidden(why: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Forbidden, message: why.into(), detail: None }
    }

    /// 403: the request named another host than the deployment's own.
    #[must_use]
    pub fn foreign_host() -> Self {
        Self::plain(Kind::ForeignHost)
    }

    /// 404: no such object for this caller.
    #[must_use]
    pub fn not_found() -> Self {
        Self::plain(Kind::NotFound)
    }

    /// 404: no route; `nearest` is `METHOD /path` of the route that was probably meant.
    #[must_use]
    pub fn route_not_found(nearest: Option<&str>) -> Self {
        Self::plain(Kind::RouteNotFound).maybe_nearest(nearest)
    }

    /// 404: no route, as the client speaks an API of models that this service does not; `nearest` is the route of one that it does.
    #[must_use]
    pub fn no_responses(nearest: &str) -> Self {
        Self::route_not_found(Some(nearest)).with(|it| it.fix = Some(table::FIX_RESPONSES))
    }

    /// 405: the path is served with other methods, which the `allow` header lists.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::plain(Kind::MethodNotAllowed)
    }

    /// The same of a path that has a word where an id belongs; `nearest` is the route with this method that was probably meant.
    #[must_use]
    pub fn method_not_allowed_there(nearest: &str) -> Self {
        Self::method_not_allowed().maybe_nearest(Some(nearest)).with(|it| it.fix = Some(table::FIX_MISSPELT))
    }

    /// 413: the body is over `limit_bytes`.
    #[must_use]
    pub fn body_too_large(limit_bytes: usize) -> Self {
        Self {
            kind: Kind::BodyTooLarge,
            message: Cow::Owned(format!("the body is over {limit_bytes} bytes")),
            detail: None,
        }
    }

    /// 400: the body did not come to its end, as `message` says.
    #[must_use]
    pub fn body_unfinished(message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid_request(vec![FieldError::whole(message)]).with(|it| it.fix = Some(table::FIX_UNFINISHED))
    }

    /// 414: the path and query are over `limit_bytes`.
    #[must_use]
    pub fn uri_too_long(limit_bytes: usize) -> Self {
        let message = Cow::Owned(format!("the path and query are over {limit_bytes} bytes"));
        Self { kind: Kind::UriTooLong, message, detail: None }
    }

    /// 431: names and values of the headers together are over `limit_bytes`; without it they are more than are read at all.
    #[must_use]
    pub fn headers_too_large(limit_bytes: Option<usize>) -> Self {
        let plain = Self::plain(Kind::HeadersTooLarge);
        let told = limit_bytes.map(|it| Cow::Owned(format!("the headers are over {it} bytes")));
        Self { message: told.unwrap_or(plain.message), ..plain }
    }

    /// 429: ask again in `retry_after_s` seconds.
    #[must_use]
    pub fn rate_limited(retry_after_s: u32) -> Self {
        Self::plain(Kind::RateLimited).with(|it| it.retry_after_s = Some(retry_after_s))
    }

    /// 500: something is wrong on this side; the cause is in the log, never here.
    #[must_use]
    pub fn internal() -> Self {
        Self::plain(Kind::Internal)
    }

    /// 500 of a verification whose commit may or may not have happened; the advice says how to find out.
    #[must_use]
    pub fn verify_unknown() -> Self {
        Self::plain(Kind::VerifyUnknown)
    }

    /// 503: the store does not answer, the queue is full or this node's clock is off. Ask again in a second.
    #[must_use]
    pub fn not_ready() -> Self {
        Self::not_ready_for(NOT_READY_RETRY_S)
    }

    /// The same where it is known how long that lasts.
    #[must_use]
    pub fn not_ready_for(retry_after_s: u32) -> Self {
        Self::plain(Kind::NotReady).with(|it| it.retry_after_s = Some(retry_after_s))
    }

    /// 409: a hold stands in the way; `hold` is its id.
    #[must_use]
    pub fn not_allowed_under(hold: impl fmt::Display, reason: impl AsRef<str>) -> Self {
        Self::not_allowed(reason).with(|it| it.hold = Some(hold.to_string().into()))
    }

    /// 400: the settlement's status is none of the three.
    #[must_use]
    pub fn invalid_status() -> Self {
        Self::plain(Kind::InvalidStatus)
    }

    /// 400: what is said to have come of a task is none of the four.
    #[must_use]
    pub fn invalid_task_status() -> Self {
        Self::plain(Kind::InvalidTaskStatus)
    }

    /// 400: the settlement's amount is no whole number of minor units, or there is no payment to settle.
    #[must_use]
    pub fn invalid_amount() -> Self {
        Self::plain(Kind::InvalidAmount)
    }

    /// 402: the plan's agents or mandates are used; `what` says which, and `most` how many there may be.
    #[must_use]
    pub fn plan_agents(what: &str, most: u32) -> Self {
        let message = format!("the plan's allowance of {most} {what} is used");
        Self { message: message.into(), ..Self::plain(Kind::PlanAgents) }
    }

    /// 409: the idempotency key belongs to another request.
    #[must_use]
    pub fn idempotency_conflict() -> Self {
        Self::plain(Kind::IdempotencyConflict)
    }

    /// 409: the object's state forbids it; `reason` is a word or clause for the member `reason`.
    pub fn not_allowed(reason: impl AsRef<str>) -> Self {
        Self::plain(Kind::NotAllowed).with(|it| it.reason = Some(reason.as_ref().into()))
    }

    /// 409: the action has its outcome already.
    #[must_use]
    pub fn already_settled() -> Self {
        Self::plain(Kind::AlreadySettled)
    }

    /// Adds what was probably meant, such as the nearest action type.
    #[must_use]
    pub fn did_you_mean(self, nearest: impl AsRef<str>) -> Self {
        self.maybe_nearest(Some(nearest.as_ref()))
    }

    /// Adds the id (`evd_…`) of the record that this refusal left.
    #[must_use]
    pub fn with_evidence(self, evidence_record: impl fmt::Display) -> Self {
        self.with(|it| it.evidence_record = Some(evidence_record.to_string().into()))
    }
}

/// What the shells read.
impl Refusal {
    /// Which row of the table this is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.kind.row().status
    }

    /// The stable word that callers branch on.
    #[must_use]
    pub const fn type_(&self) -> &'static str {
        self.kind.row().type_
    }

    /// What is said to people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// One sentence on what to send differently; on every 4xx. It names the fields of `errors` only where there are any.
    #[must_use]
    pub fn fix(&self) -> Option<&'static str> {
        if let Some(fix) = self.detail.as_deref().and_then(|it| it.fix) {
            return Some(fix);
        }
        let fix = self.kind.row().fix?;
        let names_fields = self.errors().iter().any(|it| it.field.is_some());
        Some(if fix.contains("`errors`") && !names_fields { table::FIX_UNNAMED } else { fix })
    }

    /// The faults, on the types that list them; else empty.
    #[must_use]
    pub fn errors(&self) -> &[FieldError] {
        self.detail.as_deref().map_or(&[], |it| &it.errors)
    }

    /// What was probably meant.
    #[must_use]
    pub fn nearest(&self) -> Option<&str> {
        self.detail.as_deref()?.did_you_mean.as_deref()
    }

    /// Why the state forbids it.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.detail.as_deref()?.reason.as_deref()
    }

    /// The agent it is about.
    #[must_use]
    pub fn agent_id(&self) -> Option<&str> {
        self.detail.as_deref()?.agent_id.as_deref()
    }

    /// The record that this refusal left.
    #[must_use]
    pub fn evidence_record(&self) -> Option<&str> {
        self.detail.as_deref()?.evidence_record.as_deref()
    }

    /// The approval that another person is to decide: the ids of its workspace and its own.
    #[must_use]
    pub fn approval(&self) -> Option<(&str, &str)> {
        self.detail.as_deref()?.approval.as_ref().map(|(workspace, approval)| (&**workspace, &**approval))
    }

    /// The id of the hold in the way.
    #[must_use]
    pub fn hold(&self) -> Option<&str> {
        self.detail.as_deref()?.hold.as_deref()
    }

    /// How many agents were counted: by the caller, where they said so, and now.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        self.detail.as_deref()?.counts
    }

    /// Seconds for the header `retry-after`.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u32> {
        self.detail.as_deref()?.retry_after_s
    }

    fn about_approval(self, workspace: impl fmt::Display, approval: impl fmt::Display) -> Self {
        self.with(|it| it.approval = Some((workspace.to_string().into(), approval.to_string().into())))
    }

    /// A refusal of `kind` with the table's own message and nothing beside it.
    const fn plain(kind: Kind) -> Self {
        Self { kind, message: Cow::Borrowed(kind.row().message), detail: None }
    }

    fn faults(kind: Kind, errors: Vec<FieldError>) -> Self {
        let mut message = String::new();
        for error in &errors {
            if !message.is_empty() {
                message.push_str("; ");
            }
            message.push_str(&error.message);
        }
        if message.is_empty() {
            return Self::plain(kind);
        }
        Self { kind, message: Cow::Owned(message), detail: None }.with(|it| it.errors = errors)
    }

    /// The same with further faults of its body behind those that it names.
    #[must_use]
    pub fn and(self, more: Vec<FieldError>) -> Self {
        if more.is_empty() { self } else { Self::faults(self.kind, [self.errors(), &more].concat()) }
    }

    fn maybe_nearest(self, nearest: Option<&str>) -> Self {
        match nearest {
            Some(nearest) => self.with(|it| it.did_you_mean = Some(nearest.into())),
            None => self,
        }
    }

    fn with(mut self, set: impl FnOnce(&mut Detail)) -> Self {
        set(self.detail.get_or_insert_default());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        match self.reason() {
            Some(reason) => write!(out, ": {reason}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fault is kept and the message is their messages, joined.
    #[test]
    fn a_refusal_of_a_request_carries_every_fault() {
        let refusal = Refusal::invalid_request(vec![
            FieldError::missing("type"),
            FieldError::new("payment.amount", "must be above zero"),
        ]);
        assert_eq!(refusal.message(), "`type` is required; `payment.amount` must be above zero");
        assert_eq!(refusal.errors().len(), 2);
        assert_eq!((refusal.status(), refusal.type_()), (400, "invalid_request"));
    }

    /// Members are there where their constructor sets them and nowhere else.
    #[test]
    fn members_come_from_their_constructors() {
        assert_eq!(Refusal::not_allowed("denied").reason(), Some("denied"));
        assert_eq!(Refusal::agent_not_found("agt_1").agent_id(), Some("agt_1"));
        assert_eq!(Refusal::rate_limited(7).retry_after_s(), Some(7));
        assert_eq!(Refusal::not_ready().retry_after_s(), Some(1));
        assert_eq!(Refusal::route_not_found(Some("GET /docs")).nearest(), Some("GET /docs"));
        assert_eq!(Refusal::route_not_found(None).nearest(), None);
        assert_eq!(Refusal::invalid_field("type", "is unknown").did_you_mean("payment").nearest(), Some("payment"));
        assert_eq!(Refusal::idempotency_conflict().with_evidence("evd_1").evidence_record(), Some("evd_1"));
        let bare = Refusal::not_found();
        assert!(
            bare.errors().is_empty()
                && bare.reason().is_none()
                && bare.retry_after_s().is_none()
                && bare.agent_id().is_none()
        );
    }

    /// A verification in doubt says how to find out; any other internal error says nothing.
    #[test]
    fn a_verification_in_doubt_has_advice() {
        assert_eq!((Refusal::internal().status(), Refusal::internal().fix()), (500, None));
        let doubt = Refusal::verify_unknown();
        assert_eq!((doubt.status(), doubt.type_()), (500, "internal"));
        assert!(doubt.fix().is_some_and(|it| it.contains("idempotency-key")));
    }

    /// A fix points at the fields that `errors` names, and at what is told where it names none: a fault of the whole body has no field.
    #[test]
    fn a_fix_names_errors_only_where_there_are_some() {
        let named = Refusal::invalid_field("type", "is unknown");
        assert!(named.fix().is_some_and(|it| it.contains("`errors`")), "{named:?}");
        let whole = || vec![FieldError::whole("an agent has at most 100 mandates in force")];
        for bare in [
            Refusal::oauth(Kind::InvalidRequest, "no code"),
            Refusal::no_security_event("no token"),
            Refusal::invalid_request(whole()),
            Refusal::invalid_mandate(whole()),
        ] {
            assert!(bare.fix().is_some_and(|it| !it.contains("`errors`")), "{bare:?}");
        }
    }

    /// A refusal stays small: it is the error half of every rule's result.
    #[test]
    fn a_refusal_is_small() {
        assert!(size_of::<Refusal>() <= 40, "{}", size_of::<Refusal>());
    }
}
