//! Schemas of drills.

use serde_json::{Value, json};
use svc_core::state::gate::{DrillPoint, DrillState};

use super::words;

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
    words(&DrillState::ALL, DrillState::as_str)
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
            "steps": { "type": "array", "items": step(), "description": "The first is asked before the freeze. `verify` tries the receipt of what was allowed then; `callback` is what a callback would be told, though a canary has none." },
            "evidenceRecord": { "type": "string" },
        },
    })
}

fn step() -> Value {
    json!({
        "type": "object",
        "required": ["point", "expected", "got", "ms", "ok"],
        "properties": {
            "point": words(&DrillPoint::ALL, DrillPoint::as_str),
            "expected": { "type": "string" },
            "got": { "type": "string" },
            "ms": { "type": "integer" },
            "ok": { "type": "boolean" },
        },
    })
}
