//! What a refusal says in a body, in the envelope of each interface.

use std::borrow::Cow;

use serde::Serialize;
use svc_core::answer::approval_page;
use svc_core::refusal::{AttemptedModel, BudgetDetail, BudgetOwner, Kind, Refusal, RelaxationText};

use crate::routes::Shape;

/// The JSON text of a refusal.
#[must_use]
pub fn error_body(refusal: &Refusal, shape: Shape, request_id: &str, docs: &str) -> Vec<u8> {
    let type_ = refusal.type_();
    let call = refusal.call();
    let budget = call.and_then(|it| it.budget.as_ref());
    let owner = budget.and_then(|it| it.owner.as_ref());
    let approval = refusal.approval().map(|(workspace, id)| AskedLink {
        id,
        url: approval_page(docs.trim_end_matches("/docs/errors"), workspace, id),
    });
    let message = message(refusal, budget, approval.as_ref());
    let error = ErrorObject {
        type_,
        message: &message,
        request_id,
        fix: refusal.fix(),
        docs: format!("{docs}#{type_}"),
        errors: refusal.errors().iter().map(|it| Fault { field: it.field.as_deref(), message: &it.message }).collect(),
        did_you_mean: refusal.nearest(),
        reason: refusal.reason(),
        agent_id: refusal.agent_id(),
        evidence_record: refusal.evidence_record(),
        hold: refusal.hold(),
        old_count: refusal.counts().map(|it| it.old),
        new_count: refusal.counts().map(|it| it.new),
        approval,
        code: call.and_then(|it| it.code.as_deref()),
        param: call.and_then(|it| it.param.as_deref()),
        stopped: call.and_then(|it| it.stopped),
        budget_id: budget.map(|it| &*it.id),
        owner: owner.map(|it| Owner { principal_id: &it.principal, name: it.name.as_deref(), email: &it.email }),
        spent_micros: owner.map(|it| it.spent),
        reserved_micros: owner.map(|it| it.reserved),
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

/// What is said to people. Of a budget most clients show this alone, and whoever reads it is to know which budget it is, who can raise
/// it, and where.
fn message<'a>(refusal: &'a Refusal, budget: Option<&BudgetDetail>, approval: Option<&AskedLink<'_>>) -> Cow<'a, str> {
    let Some(budget) = budget else { return Cow::Borrowed(refusal.message()) };
    let mut message = format!("{} (`{}`)", refusal.message(), budget.scope);
    if let Some(BudgetOwner { name, email, has_declined, .. }) = &budget.owner {
        let who = name.as_ref().map_or_else(|| email.to_string(), |name| format!("{name} ({email})"));
        message.push_str("; ");
        // What was answered with no is open to nobody any more: only the budget itself is.
        if *has_declined {
            message.push_str("more was asked for in this period and declined; ");
        }
        message.push_str(&who);
        message.push_str(" can raise it");
        if let Some(AskedLink { url, .. }) = approval.filter(|_| !has_declined) {
            message.push_str(" at ");
            message.push_str(url);
        }
    }
    message.into()
}

/// An error as the answer to the JSON-RPC message of this id, which is null where none could be read (JSON-RPC 2.0, part 5).
pub(crate) fn message_body(refusal: &Refusal, id: serde_json::Value, request_id: &str, docs: &str) -> Vec<u8> {
    let body = error_body(refusal, Shape::Rpc, request_id, docs);
    let mut body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    crate::wire::put(&mut body, "id", id);
    body.to_string().into_bytes()
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
        errors: &error.errors,
        did_you_mean: error.did_you_mean,
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
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Fault<'a>],
    #[serde(rename = "didYouMean", skip_serializing_if = "Option::is_none")]
    did_you_mean: Option<&'a str>,
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
    /// What the chat API's clients branch on.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Owner<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved_micros: Option<u64>,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use serde_json::{Value, json};
    use svc_core::refusal::{FieldError, Lack};

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

    /// Most clients show the message alone: of a budget it says which one it is, who can raise it, and where.
    #[test]
    fn the_message_of_a_budget_says_who_can_raise_it() {
        let owner = |name: Option<&str>| BudgetOwner {
            principal: "prn_1".into(),
            name: name.map(Into::into),
            email: "ana@example.com".into(),
            spent: 9,
            reserved: 0,
            allocation: 9,
            has_declined: false,
        };
        let detail = |owner| BudgetDetail { id: "bud_1".into(), scope: "team:tm_1".into(), owner };
        let message =
            |refusal: &Refusal| body(refusal, Shape::Messages)["error"]["message"].as_str().unwrap().to_owned();
        let asked = Refusal::budget_approval(detail(Some(owner(Some("Ana")))), Lack::Spent, "wsp_1", Some("apv_1"));
        assert_eq!(
            message(&asked),
            "the budget has reached the step from which more takes a yes (`team:tm_1`); Ana (ana@example.com) can raise it at https://gate.example/w/wsp_1/approvals/apv_1"
        );
        let declined = BudgetOwner { has_declined: true, ..owner(Some("Ana")) };
        let declined = Refusal::budget_approval(detail(Some(declined)), Lack::Spent, "wsp_1", Some("apv_1"));
        assert_eq!(
            message(&declined),
            "the budget has reached the step from which more takes a yes (`team:tm_1`); more was asked for in this period and declined; Ana (ana@example.com) can raise it"
        );
        let dry = Refusal::budget_approval(detail(Some(owner(None))), Lack::Spent, "wsp_1", None::<&str>);
        assert_eq!(
            message(&dry),
            "the budget has reached the step from which more takes a yes (`team:tm_1`); ana@example.com can raise it"
        );
        let over = Refusal::budget_exhausted(detail(None), Lack::Spent, Some(9));
        assert_eq!(message(&over), "the budget is exhausted (`team:tm_1`)");
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

    /// A fix that speaks of `errors` comes with them, also where OAuth or security events have the shape.
    #[test]
    fn flat_errors_name_what_their_fix_speaks_of() {
        let refusal = Refusal::invalid_request(vec![FieldError::missing("code")]).did_you_mean("codes");
        for (shape, type_) in [(Shape::Flat, "error"), (Shape::SecurityEvent, "err")] {
            let told = body(&refusal, shape);
            assert_eq!(told.get("errors"), Some(&json!([{ "field": "code", "message": "`code` is required" }])));
            assert_eq!(
                (told.get(type_), told.get("didYouMean")),
                (Some(&json!("invalid_request")), Some(&json!("codes")))
            );
            assert_eq!(body(&Refusal::not_found(), shape).get("errors"), None);
        }
    }

    /// Messages-shaped routes wrap the same object once more.
    #[test]
    fn messages_shaped_errors_are_wrapped() {
        let wrapped = body(&Refusal::not_found(), Shape::Messages);
        assert_eq!(wrapped.get("type"), Some(&json!("error")));
        assert_eq!(wrapped.get("error"), body(&Refusal::not_found(), Shape::Plain).get("error"));
    }
}
