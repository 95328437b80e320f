//! The JSON schemas of every record that travels over the routes, for the OpenAPI document and the reference page.
//!
//! Records carry what CONTRACT part 2 has; members marked required are always there. Answers may gain members and words at any
//! time, so none of them forbids others; which requests do is said in one place, for all of them.

mod actions;
mod administration;
mod applications;
mod approvals;
mod budgets;
mod drills;
mod evidence;
mod gateway;
mod integrations;
mod mandates;
mod mcp_servers;
mod members;
mod oauth;
mod people;
mod posted;
mod reasons;
mod routing;
mod sent;
mod settings;
mod stops;
mod told;

use serde_json::{Map, Value, json};
use svc_core::refusal::Kind;
use svc_core::rules::gate::asked::Stands;
use svc_core::rules::gate::verify::Fault;
use svc_core::state::gate::{OutcomeStatus, Status, Verb};
use svc_core::state::people::Purpose;

use crate::wire::callback::CallbackState;

pub(crate) use gateway::task_id;
pub(crate) use routing::class_id;

/// Every schema by its name.
#[must_use]
pub(crate) fn all() -> Map<String, Value> {
    let schemas = [
        ("ActionRequest", action_request()),
        ("PaymentRequest", payment_request()),
        ("DataShare", data_share()),
        ("Tool", tool()),
        ("Session", session()),
        ("CallbackRegistration", callback_registration()),
        ("Outcome", outcome()),
        ("Run", run()),
        ("VerifyRequest", verify_request()),
        ("Decision", decision()),
        ("DecisionApproval", decision_approval()),
        ("Callback", callback()),
        ("Verdict", verdict()),
        ("Jwks", jwks()),
        ("Me", me()),
        ("Nothing", json!({ "type": "object", "description": "No member is needed." })),
        ("Health", health()),
        ("ApprovalLink", approval_link()),
        ("Error", error()),
        ("ErrorDetails", error_details()),
        ("MessagesError", messages_error()),
        ("OpenApi", open_api()),
    ];
    let schemas = schemas
        .into_iter()
        .chain(actions::all())
        .chain(administration::all())
        .chain(mandates::all())
        .chain(reasons::all())
        .chain(settings::all())
        .chain(applications::all())
        .chain(members::all())
        .chain(budgets::all())
        .chain(approvals::all())
        .chain(integrations::all())
        .chain(evidence::all())
        .chain(stops::all())
        .chain(gateway::all())
        .chain(drills::all())
        .chain(routing::all())
        .chain(oauth::all())
        .chain(mcp_servers::all())
        .chain(people::all())
        .chain(posted::all());
    let mut schemas = schemas.map(|(name, schema)| (name.to_owned(), schema)).collect();
    sent::finish(&mut schemas);
    told::finish(&mut schemas);
    schemas
}

fn action_request() -> Value {
    json!({
        "type": "object",
        "description": "What an agent is about to do.",
        "required": ["type", "summary"],
        "properties": {
            "type": reasons::action_type(),
            "summary": text(500, "One sentence on what is about to happen, for the person who may be asked."),
            "payment": with_description(reference("PaymentRequest"), "Needed for payment, refund and transfer; makes any other action a payment to every rule."),
            "data": with_description(reference("DataShare"), "Needed for data.share."),
            "tool": with_description(reference("Tool"), "Needed for tool.call and mcp.call, with its name."),
            "details": { "type": "object", "description": "Anything else, at most 16 KiB; read only by a mandate's field rules." },
            "provenance": { "type": "array", "maxItems": 50, "items": reference("Provenance"), "description": "Where the idea came from: everything that the agent acts on. Nothing declared counts as `agent`." },
            "idempotencyKey": key(1, "The same as the header of that name; both must agree."),
            "session": reference("Session"),
        },
    })
}

fn payment_request() -> Value {
    json!({
        "type": "object",
        "required": ["amount", "currency", "merchant"],
        "properties": { "amount": amount(1), "currency": currency(), "merchant": merchant() },
    })
}

fn data_share() -> Value {
    json!({
        "type": "object",
        "required": ["recipient", "fields"],
        "properties": {
            "recipient": { "type": "string", "minLength": 1, "description": "A domain or an e-mail address." },
            "fields": { "type": "array", "minItems": 1, "maxItems": 100, "items": { "type": "string", "minLength": 1, "maxLength": 100 } },
            "purpose": { "type": "string", "minLength": 1, "maxLength": 500 },
        },
    })
}

fn tool() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 100 },
            "server": { "type": "string", "minLength": 1, "maxLength": 100 },
            "input": { "type": "object", "description": "At most 64 KiB; never returned." },
            "inputDigest": digest(),
            "inputBytes": { "type": "integer", "minimum": 0 },
        },
    })
}

fn session() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "properties": { "id": { "type": "string", "pattern": "^[!-~]{1,128}$", "description": "The agent's session, as model traffic names it too." } },
    })
}

fn callback_registration() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": { "url": { "type": "string", "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "minLength": 1, "maxLength": 2048, "description": "An https URL on a public address; by http on loopback alone, where the server is told so." } },
    })
}

fn outcome() -> Value {
    json!({
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": words(&OutcomeStatus::ALL, OutcomeStatus::as_str),
            "amount": with_description(amount(0), "The final amount of a payment; above the allowed one it freezes the agent."),
        },
    })
}

fn run() -> Value {
    let unasked = "Whether the tool had run before the gate was asked: an allow came too late for it.";
    json!({
        "type": "object",
        "description": "No member is needed.",
        "properties": { "unasked": with_description(json!({ "type": "boolean" }), unasked) },
    })
}

fn verify_request() -> Value {
    json!({
        "type": "object",
        "required": ["receipt"],
        "properties": {
            "receipt": { "type": "string", "description": "The compact JWS that an allow came with." },
            "charge": {
                "type": "object",
                "description": "What is charged; needed where the receipt is for a payment.",
                "required": ["amount", "currency"],
                "properties": {
                    "amount": amount(1),
                    "currency": currency(),
                    "merchant": { "type": "object", "required": ["domain"], "properties": { "domain": { "type": "string", "minLength": 1 } } },
                },
            },
            "type": { "type": "string", "description": "The action type that the receipt must be for." },
        },
    })
}

fn decision() -> Value {
    json!({
        "type": "object",
        "description": "The gate's answer as it now stands. Act only on decision allow with status allowed.",
        "required": ["id", "decision", "status", "type", "summary", "agentId", "principalId", "createdAt", "reasons", "signals", "actionDigest", "digestSalt", "provenance", "evidenceRecord"],
        "properties": {
            "id": id("act_"),
            "decision": words(&[Verb::Allow, Verb::Deny, Verb::Ask], Verb::as_str),
            "status": words(&Status::ALL, Status::as_str),
            "type": { "type": "string" },
            "summary": { "type": "string" },
            "agentId": id("agt_"),
            "principalId": id("prp_"),
            "createdAt": time(),
            "payment": reference("PaymentRequest"),
            "data": reference("DataShare"),
            "tool": reference("Tool"),
            "details": { "type": "object" },
            "session": reference("Session"),
            "decidedAt": time(),
            "decidedBy": { "type": "string", "description": "policy, expiry, freeze, or the id of the person." },
            "reasons": { "type": "array", "items": reference("Reason"), "description": "Every rule that spoke, not the first alone; empty where an action is plainly allowed." },
            "signals": reasons::signals(),
            "hold": id("hld_"),
            "mandateId": with_description(id("mnd_"), "The mandate that is charged: of those that permit the action the narrowest. Absent where none covers it."),
            "mandateVersion": { "type": "integer", "minimum": 1 },
            "actionDigest": digest(),
            "digestSalt": { "type": "string" },
            "provenance": reasons::decision_provenance(),
            "receipt": { "type": "string", "description": "A compact JWS for the party that is charged. It is for one charge; a further charge, as of a subscription or after a deposit, takes an action of its own." },
            "receiptExpiresAt": time(),
            "consumedAt": time(),
            "consumedAmount": amount(1),
            "approval": reference("DecisionApproval"),
            "evidenceRecord": id("evd_"),
            "outcome": decision_outcome(),
            "incident": decision_incident(),
        },
    })
}

fn decision_outcome() -> Value {
    json!({
        "type": "object",
        "required": ["status", "settledAt"],
        "properties": {
            "status": words(&OutcomeStatus::ALL, OutcomeStatus::as_str),
            "amount": amount(0),
            "settledAt": time(),
            "late": { "type": "boolean" },
            "released": released(),
        },
    })
}

fn released() -> Value {
    json!({
        "type": "object",
        "description": "What a person gave back of what the receipt's use kept posted.",
        "required": ["amount", "at"],
        "properties": { "amount": amount(1), "at": time(), "by": { "type": "string" } },
    })
}

fn decision_incident() -> Value {
    json!({
        "type": "object",
        "required": ["type", "allowedAmount", "settledAmount", "evidenceRecord"],
        "properties": {
            "type": known(&["over_settlement"]),
            "allowedAmount": amount(1),
            "settledAmount": amount(0),
            "evidenceRecord": id("evd_"),
        },
    })
}

fn decision_approval() -> Value {
    json!({
        "type": "object",
        "required": ["id", "url", "state", "expiresAt", "needed", "approvals", "clientMayAsk"],
        "properties": {
            "id": id("apv_"),
            "url": { "type": "string", "format": "uri", "description": "Where the person decides." },
            "state": words(&Stands::ALL, Stands::as_str),
            "expiresAt": time(),
            "needed": { "type": "integer", "minimum": 1, "maximum": 2 },
            "approvals": approvals::consents(),
            "clientMayAsk": { "type": "boolean" },
            "decidedBy": { "type": "string" },
            "decidedAt": time(),
            "note": { "type": "string" },
        },
    })
}

fn callback() -> Value {
    json!({
        "type": "object",
        "required": ["id", "actionId", "url", "state", "createdAt", "attempts"],
        "properties": {
            "id": id("cbk_"),
            "actionId": id("act_"),
            "url": { "type": "string", "format": "uri" },
            "state": words(&CallbackState::ALL, CallbackState::as_str),
            "createdAt": time(),
            "attempts": { "type": "integer", "minimum": 0 },
        },
    })
}

fn verdict() -> Value {
    json!({
        "type": "object",
        "description": "What a receipt is worth. Facts about the action are there only once the signature verified.",
        "required": ["valid", "consumed"],
        "properties": {
            "valid": { "type": "boolean" },
            "consumed": { "type": "boolean", "description": "Whether this verification, or the one that it repeats, consumed the receipt." },
            "reason": words(&Fault::ALL, Fault::as_str),
            "receiptId": id("rcp_"),
            "actionId": id("act_"),
            "agentId": id("agt_"),
            "type": { "type": "string" },
            "amount": amount(1),
            "currency": currency(),
            "merchant": merchant(),
            "expiresAt": time(),
            "consumedAt": time(),
        },
    })
}

fn me() -> Value {
    json!({
        "type": "object",
        "required": ["id", "email", "twoFactor", "session", "workspaces"],
        "properties": {
            "id": id("usr_"),
            "principalId": { "type": ["string", "null"] },
            "name": { "type": ["string", "null"] },
            "email": { "type": "string" },
            "twoFactor": { "type": "boolean" },
            "recoveryCodesLeft": { "type": "integer", "minimum": 0, "maximum": 10, "description": "Recovery codes that were not used yet, where there is a second factor." },
            "session": {
                "type": "object",
                "required": ["id", "expiresAt", "proof"],
                "properties": { "id": id("ses_"), "expiresAt": time(), "proof": people::proof() },
            },
            "workspaces": { "type": "array", "items": reference("OwnWorkspace") },
        },
    })
}

fn jwks() -> Value {
    json!({
        "type": "object",
        "description": "RFC 7517; Ed25519 keys as RFC 8037 has them.",
        "required": ["keys"],
        "properties": {
            "keys": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["kty", "crv", "kid", "x"],
                    "properties": {
                        "kty": known(&["OKP"]),
                        "crv": known(&["Ed25519"]),
                        "kid": { "type": "string", "description": "The RFC 7638 thumbprint." },
                        "svc_use": with_description(
                            words(&Purpose::ALL, Purpose::as_str),
                            "What the key signs, and nothing else: receipts, checkpoints and seals of evidence, or scorecards. Servers before this member publish keys without it.",
                        ),
                        "x": { "type": "string" },
                        "alg": { "type": "string" },
                        "use": { "type": "string" },
                    },
                },
            },
        },
    })
}

fn health() -> Value {
    json!({
        "type": "object",
        "required": ["status"],
        "properties": { "status": { "type": "string", "enum": ["alive", "ready"] } },
    })
}

/// The faults that an error names.
fn faults() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["field", "message"],
            "properties": {
                "field": { "type": ["string", "null"], "description": "A dotted path into the body, a header's or a parameter's name; null for the whole body." },
                "message": { "type": "string" },
            },
        },
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": reference("ErrorDetails") },
    })
}

fn error_details() -> Value {
    let micros = || json!({ "type": "integer", "minimum": 0 });
    let count = "How many agents the caller counted; null where it counted none.";
    json!({
        "type": "object",
        "required": ["type", "message", "requestId", "docs"],
        "properties": {
            "type": { "type": "string", "enum": error_types(), "description": "Stable; safe to branch on." },
            "message": { "type": "string", "description": "For people." },
            "requestId": { "type": "string", "description": "The same as the header x-request-id." },
            "fix": { "type": "string", "description": "What to send differently; on every 4xx." },
            "docs": { "type": "string", "format": "uri" },
            "errors": faults(),
            "didYouMean": { "type": "string" },
            "reason": { "type": "string" },
            "agentId": id("agt_"),
            "hold": id("hld_"),
            "stopped": { "type": "string", "enum": ["agent", "all"] },
            "oldCount": { "type": ["integer", "null"], "description": count },
            "newCount": { "type": "integer", "minimum": 0, "description": "How many there are." },
            "approval": asked(),
            "bindingConstraint": { "type": "string" },
            "relaxations": { "type": "array", "items": reference("Relaxation") },
            "attemptedModels": { "type": "array", "items": attempted_model() },
            "code": { "type": ["string", "integer"], "description": "The provider's own code of what it refuses, such as `context_length_exceeded`; a number where JSON-RPC has it." },
            "param": { "type": "string", "description": "The field of the request that the provider blames." },
            "evidenceRecord": id("evd_"),
            "details": {
                "type": "object",
                "description": "What the messages API says in its own words: its clients branch on it.",
                "required": ["error_code", "unsupported"],
                "properties": {
                    "error_code": known(&["thread_unsupported_request"]),
                    "unsupported": { "type": "array", "items": { "type": "string" } },
                },
            },
            "budgetId": id("bdg_"),
            "spentMicros": micros(),
            "reservedMicros": micros(),
            "allocationMicros": micros(),
            "owner": {
                "type": "object",
                "description": "Who can approve more of the budget.",
                "required": ["principalId", "name", "email"],
                "properties": { "principalId": id("prp_"), "name": { "type": ["string", "null"] }, "email": { "type": "string" } },
            },
        },
    })
}

fn attempted_model() -> Value {
    json!({
        "type": "object",
        "required": ["model", "provider", "status", "error"],
        "properties": {
            "model": { "type": "string" },
            "provider": { "type": "string" },
            "status": { "type": ["integer", "null"] },
            "error": { "type": "string" },
        },
    })
}

/// An error as clients of messages-shaped APIs look for it.
fn messages_error() -> Value {
    json!({
        "type": "object",
        "required": ["type", "error"],
        "properties": { "type": { "type": "string", "enum": ["error"] }, "error": reference("ErrorDetails") },
    })
}

/// Where a person is asked.
fn asked() -> Value {
    reference("ApprovalLink")
}

fn approval_link() -> Value {
    json!({ "type": "object", "required": ["id", "url"], "properties": { "id": id("apv_"), "url": { "type": "string", "format": "uri" } } })
}

fn open_api() -> Value {
    json!({ "type": "object", "description": "An OpenAPI 3.1 document." })
}

/// Every type of error, each once, in the order of the table.
fn error_types() -> Vec<&'static str> {
    let mut types: Vec<&str> = Vec::new();
    for kind in Kind::ALL {
        if !types.contains(&kind.row().type_) {
            types.push(kind.row().type_);
        }
    }
    types
}

/// A pointer to a named schema.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// One of the words of an enumeration, as its own list has them: written here once more, they would drift from it.
pub(crate) fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> Value {
    json!({ "type": "string", "enum": all.iter().map(|it| word(*it)).collect::<Vec<_>>() })
}

/// The same, or `null`.
fn words_or_null<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> Value {
    json!({ "oneOf": [words(all, word), { "type": "null" }] })
}

/// A word of an answer that others may follow, also where there is but one so far.
fn known(words: &[&str]) -> Value {
    json!({ "type": "string", "x-extensible-enum": words })
}

/// One of these words, or `null`: in two parts, because generators of clients name no type after a list with `null` in it.
fn word_or_null(words: &[&str]) -> Value {
    json!({ "oneOf": [{ "type": "string", "enum": words }, { "type": "null" }] })
}

pub(crate) fn with_description(mut schema: Value, description: &str) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".to_owned(), json!(description));
    }
    schema
}

fn merchant() -> Value {
    json!({
        "type": "object",
        "required": ["name", "domain"],
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 100 },
            "domain": { "type": "string", "minLength": 1, "description": "A host name; returned as an A-label in lower case." },
        },
    })
}

/// Whole minor units from `least` on.
fn amount(least: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": 9_007_199_254_740_991_i64, "description": "Whole minor units." })
}

pub(crate) fn currency() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z]{3}$", "description": "A current ISO 4217 code, in any case; returned in upper case." })
}

fn text(max: u32, description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": max, "description": description })
}

pub(crate) fn key(least: usize, description: &str) -> Value {
    json!({ "type": "string", "minLength": least, "maxLength": 128, "description": description })
}

fn digest() -> Value {
    json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
}

pub(crate) fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

pub(crate) fn id(prefix: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{prefix}[0-7][0-9A-HJKMNP-TV-Z]{{25}}$") })
}
