//! The schemas of what members ask for that their role cannot do.

use serde_json::{Value, json};

use super::{id, reference, time};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Application", application()),
        ("ApplicationPage", page()),
        ("NewApplication", new_application()),
        ("ApplicationDecision", json!({ "type": "object", "properties": { "note": note() } })),
    ]
}

fn page() -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": reference("Application") },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn note() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 500 })
}

fn kind() -> Value {
    json!({ "type": "string", "enum": ["agent", "mandate", "tier", "budget_raise", "role"] })
}

fn change() -> Value {
    let about = "The body of the route that makes the change: a blueprint; a mandate or a template's name; a mandate's changed \
         members; `{ tier }`; `{ amountMicros, note? }`; or `{ role?, teamIds? }`.";
    json!({ "type": "object", "description": about })
}

fn new_application() -> Value {
    let about = "The `agt_` that a mandate or tier is for, the `mnd_` that changes, the `bdg_` to raise, or the `prp_` whose \
                 role changes (default one's own); not with `agent`.";
    json!({
        "type": "object",
        "required": ["kind", "change", "reason"],
        "properties": {
            "kind": kind(),
            "target": { "type": "string", "description": about },
            "change": change(),
            "reason": note(),
        },
    })
}

fn application() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "change", "reason", "state", "createdBy", "createdAt", "expiresAt"],
        "properties": {
            "id": id("app_"),
            "kind": kind(),
            "target": { "type": "string" },
            "change": change(),
            "reason": note(),
            "state": { "type": "string", "enum": ["waiting", "approved", "denied", "withdrawn", "expired"] },
            "createdBy": id("prp_"),
            "createdAt": time(),
            "expiresAt": time(),
            "decidedBy": id("prp_"),
            "decidedAt": time(),
            "note": note(),
            "made": reference("NewAgent"),
            "pending": { "type": "boolean" },
            "approval": super::asked(),
        },
    })
}
