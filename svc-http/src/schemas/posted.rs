//! The schemas of what is posted to rooms, and of what an export sends.

use serde_json::{Value, json};
use svc_core::rules::gate::decide::Choice;
use svc_core::state::edge::EventClass;
use svc_core::state::gate::{ApprovalKind, Status};

use super::{currency, id, time, with_description, words};
use crate::export::EVENTS_MAX;

/// Every schema of the family by its name.
pub(super) fn all() -> [(&'static str, Value); 5] {
    [
        ("RoomQuestion", question()),
        ("RoomRun", run()),
        ("RoomTest", message("test", &[])),
        (
            "ExportedEvents",
            json!({ "type": "array", "minItems": 1, "maxItems": EVENTS_MAX, "items": super::reference("ExportedEvent") }),
        ),
        ("ExportedEvent", event()),
    ]
}

fn question() -> Value {
    let mut members = vec![
        ("id", id("apv_")),
        ("kind", words(&ApprovalKind::ALL, ApprovalKind::as_str)),
        ("needed", json!({ "type": "integer", "description": "How many persons have to say yes." })),
        ("expiresAt", time()),
    ];
    members.extend(of_action());
    let required = ["id", "kind", "summary", "needed", "expiresAt", "url"];
    let button = json!({
        "type": "object",
        "required": ["decision", "token"],
        "properties": { "decision": words(&Choice::ALL, Choice::as_str), "token": { "type": "string" } },
    });
    let buttons = json!({ "type": "array", "items": button, "description": "For a relay, where one is in use: what it passes on when they are pressed." });
    message("approval.requested", &[("approval", object(members, &required)), ("buttons", buttons)])
}

fn run() -> Value {
    let mut members = vec![("id", id("act_")), ("status", words(&Status::ALL, Status::as_str))];
    members.extend(of_action());
    let required = ["id", "status", "summary", "agentId", "agentName", "actionType", "url"];
    message("action.unapproved_run", &[("action", object(members, &required))])
}

/// What is told of an action and its agent, where there is one.
fn of_action() -> [(&'static str, Value); 8] {
    let text = || json!({ "type": "string" });
    [
        ("summary", text()),
        ("agentId", id("agt_")),
        ("agentName", text()),
        ("actionType", text()),
        ("amount", json!({ "type": "integer" })),
        ("currency", currency()),
        ("merchant", object(vec![("name", text()), ("domain", text())], &["name", "domain"])),
        ("url", with_description(json!({ "type": "string", "format": "uri" }), "The page on which it is looked at.")),
    ]
}

fn message(type_: &str, more: &[(&'static str, Value)]) -> Value {
    let mut members = vec![
        ("type", json!({ "type": "string", "enum": [type_] })),
        ("id", with_description(id("dlv_"), "The delivery: the same at every try.")),
        ("text", json!({ "type": "string", "description": "The whole message, as chats show it." })),
    ];
    members.extend(more.iter().cloned());
    let mut required = vec!["type", "id", "text"];
    required.extend(more.iter().map(|it| it.0).filter(|it| *it != "buttons"));
    object(members, &required)
}

fn object(members: Vec<(&'static str, Value)>, required: &[&str]) -> Value {
    let members: serde_json::Map<String, Value> = members.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
    json!({ "type": "object", "required": required, "properties": members })
}

/// What all events have; each class has further members.
fn event() -> Value {
    let number = || json!({ "type": "integer" });
    let classes: Vec<u16> = EventClass::ALL.iter().map(|it| it.uid()).collect();
    let metadata = json!({
        "type": "object",
        "required": ["version", "uid", "tenant_uid", "event_code"],
        "properties": {
            "version": { "type": "string", "enum": ["1.3.0"] },
            "uid": { "type": "string", "description": "The record's `evd_…`: keep one of two events with the same." },
            "sequence": { "type": "integer", "description": "Its place in the ledger; a test has none." },
            "tenant_uid": { "type": "string", "description": "The workspace." },
            "event_code": { "type": "string", "description": "The kind of the record." },
        },
    });
    json!({
        "type": "object",
        "description": "A record of the ledger as the Open Cybersecurity Schema Framework (OCSF) 1.3.0 has it. Each class has members of its own beside these.",
        "required": ["class_uid", "activity_id", "type_uid", "severity_id", "status_id", "time", "message", "metadata", "unmapped"],
        "properties": {
            "class_uid": { "type": "integer", "enum": classes },
            "activity_id": number(),
            "type_uid": number(),
            "severity_id": number(),
            "status_id": number(),
            "time": { "type": "integer", "description": "When it happened, in milliseconds since 1970." },
            "message": { "type": "string" },
            "metadata": metadata,
            "unmapped": { "type": "object", "required": ["svc"], "properties": { "svc": { "type": "object", "description": "The whole record, as evidence shows it." } } },
        },
    })
}
