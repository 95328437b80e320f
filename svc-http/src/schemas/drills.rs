//! Schemas of drills.

use serde_json::{Value, json};

/// Every schema of this family.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![("StartDrill", start()), ("DrillStarted", started()), ("Drill", report())]
}

fn start() -> Value {
    json!({
        "type": "object",
        "properties": {
            "agentIds": {
                "type": "array", "minItems": 1, "maxItems": 10, "items": super::id("agt_"),
                "description": "Whom the drill is about: the canary has the mandates of the first, every limit at zero.",
            },
            "reason": { "type": "string", "minLength": 1, "maxLength": 500 },
        },
    })
}

fn state() -> Value {
    json!({ "type": "string", "enum": ["running", "passed", "failed"] })
}

fn started() -> Value {
    json!({
        "type": "object",
        "required": ["id", "state"],
        "properties": { "id": { "type": "string" }, "state": state() },
    })
}

fn report() -> Value {
    json!({
        "type": "object",
        "required": ["id", "state", "canaryId", "startedAt", "endedAt", "containedMs", "steps", "evidenceRecord"],
        "properties": {
            "id": { "type": "string" },
            "state": state(),
            "canaryId": { "type": "string" },
            "startedAt": { "type": "string", "format": "date-time" },
            "endedAt": { "type": ["string", "null"], "format": "date-time" },
            "containedMs": { "type": ["integer", "null"], "description": "From the freeze to the last refusal." },
            "steps": { "type": "array", "items": step(), "description": "The first is asked before the freeze. A canary has neither a receipt nor a callback, so those are not among them." },
            "evidenceRecord": { "type": "string" },
        },
    })
}

fn step() -> Value {
    json!({
        "type": "object",
        "required": ["point", "expected", "got", "ms", "ok"],
        "properties": {
            "point": { "type": "string", "enum": ["authorize", "approve", "verify", "callback", "chat", "messages", "mcp", "mcp_proxy", "oauth_refresh"] },
            "expected": { "type": "string" },
            "got": { "type": "string" },
            "ms": { "type": "integer" },
            "ok": { "type": "boolean" },
        },
    })
}
