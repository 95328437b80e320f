//! The schemas of what persons decide.

use serde_json::{Value, json};
use svc_core::rules::gate::asked::{MayNot, Stands};
use svc_core::rules::gate::suggest::SuggestionKind;
use svc_core::state::gate::{ApprovalKind, Via};

use super::{digest, id, reference, time, words};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Approval", approval()),
        ("ApprovalPage", page("Approval")),
        ("ApprovalDecision", approval_decision()),
        ("ApprovalYes", approval_yes()),
        ("SuggestedRule", suggested_rule()),
        ("SuggestedRulePage", page("SuggestedRule")),
    ]
}

/// A list of records of this schema.
fn page(item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": reference(item) },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn approval() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "state", "subject", "summary", "reasons", "requestedBy", "createdAt", "createdBy",
            "expiresAt", "needed", "approvals", "clientMayAsk", "mayDecide", "url"],
        "properties": {
            "id": id("apv_"),
            "kind": words(&ApprovalKind::ALL, ApprovalKind::as_str),
            "state": words(&Stands::ALL, Stands::as_str),
            "subject": subject(),
            "summary": { "type": "string" },
            "reasons": { "type": "array", "items": reference("Reason") },
            "exceptions": { "type": "array", "items": reference("Reason"), "description": "Limits that an approval exceeds." },
            "actionDigest": digest(),
            "agentId": id("agt_"),
            "requestedBy": { "type": "string" },
            "createdBy": { "type": "string" },
            "createdAt": time(),
            "expiresAt": time(),
            "needed": { "type": "integer", "minimum": 1, "maximum": 2 },
            "approvals": consents(),
            "clientMayAsk": { "type": "boolean" },
            "mayDecide": { "type": "boolean" },
            "mayNot": words(&MayNot::ALL, MayNot::as_str),
            "decidedBy": { "type": "string" },
            "decidedAt": time(),
            "note": { "type": "string" },
            "people": people(),
            "url": { "type": "string", "format": "uri" },
        },
    })
}

fn people() -> Value {
    json!({
        "type": "array",
        "description": "What the people that it names are called, by name or else by address; to people alone.",
        "items": {
            "type": "object",
            "required": ["id", "name"],
            "properties": { "id": id("prp_"), "name": { "type": "string" } },
        },
    })
}

fn subject() -> Value {
    json!({
        "type": "object",
        "description": "What it is about: an action; agents to freeze, or a hold to lift, both with the reason that was given; a member; or a budget.",
        "properties": {
            "actionId": id("act_"),
            "members": { "type": "array", "maxItems": 100, "items": id("agt_"), "description": "The first of the agents." },
            "count": { "type": "integer", "minimum": 0, "description": "How many agents." },
            "all": { "type": "boolean", "description": "Whether every agent is meant." },
            "hold": id("hld_"),
            "restart": { "type": "boolean", "description": "Whether the agents are started again." },
            "reason": { "type": "string" },
            "principalId": id("prp_"),
            "email": { "type": ["string", "null"] },
            "budgetId": id("bdg_"),
            "moreMicros": { "type": "integer", "minimum": 0 },
        },
    })
}

/// Who agreed so far.
pub(super) fn consents() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["by", "at", "via"],
            "properties": {
                "by": id("prp_"),
                "at": time(),
                "note": { "type": "string" },
                "via": words(&Via::ALL, Via::as_str),
            },
        },
    })
}

fn approval_decision() -> Value {
    json!({
        "type": "object",
        "properties": {
            "note": { "type": "string", "minLength": 1, "maxLength": 500 },
            "actionDigest": digest(),
            "principalId": decider(),
        },
    })
}

/// Whom a word is meant as: what a browser sends may be another's by then.
fn decider() -> Value {
    super::with_description(id("prp_"), "Who decides. Where the session is another's, nothing is decided (400).")
}

fn approval_yes() -> Value {
    json!({
        "type": "object",
        "properties": {
            "note": { "type": "string", "minLength": 1, "maxLength": 500 },
            "actionDigest": digest(),
            "principalId": decider(),
            "code": { "type": "string", "writeOnly": true, "description": "The second factor's code, asked for above `stepUpAbove` of the settings." },
            "recoveryCode": { "type": "string", "writeOnly": true, "description": "In place of `code`." },
        },
    })
}

fn suggested_rule() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "agentId", "mandate", "because", "window", "wouldHaveSaved", "wouldHaveAllowed",
            "confirmBroaden"],
        "properties": {
            "id": id("sug_"),
            "kind": words(&SuggestionKind::ALL, SuggestionKind::as_str),
            "agentId": id("agt_"),
            "mandate": super::with_description(reference("NewMandate"), "A body for the route that grants mandates, or changes the one it replaces."),
            "replaces": id("mnd_"),
            "because": { "type": "string" },
            "window": { "type": "object", "required": ["from", "to"], "properties": { "from": time(), "to": time() } },
            "wouldHaveSaved": { "type": "array", "items": id("apv_") },
            "wouldHaveAllowed": { "type": "integer", "minimum": 0 },
            "confirmBroaden": { "type": "boolean" },
        },
    })
}
