//! The schemas of integrations and of the calls made over them.

use serde_json::{Value, json};

use super::{id, reference, time};

/// Every schema of the family by its name.
pub(super) fn all() -> [(&'static str, Value); 8] {
    [
        ("Integration", integration()),
        ("Integrations", list("Integration")),
        ("NewIntegration", new()),
        (
            "IntegrationChange",
            json!({ "type": "object", "properties": { "enabled": { "type": "boolean" }, "config": config() } }),
        ),
        ("Rotation", rotation()),
        ("IntegrationTest", test()),
        ("Delivery", delivery()),
        ("Deliveries", list("Delivery")),
    ]
}

fn kind() -> Value {
    json!({ "type": "string", "enum": ["callbacks"] })
}

fn config() -> Value {
    json!({ "type": "object", "description": "What the kind needs besides a secret; `callbacks` needs nothing.", "properties": {} })
}

fn secret() -> Value {
    json!({ "type": "string", "minLength": 24, "maxLength": 256, "pattern": "^[!-~]+$", "description": "Made where none is sent." })
}

fn new() -> Value {
    json!({
        "type": "object",
        "required": ["kind"],
        "properties": { "kind": kind(), "secret": secret(), "config": config() },
    })
}

fn rotation() -> Value {
    json!({
        "type": "object",
        "properties": {
            "overlapHours": { "type": "integer", "minimum": 0, "maximum": 168, "default": 24, "description": "How long the secret before stays good." },
            "secret": secret(),
        },
    })
}

fn test() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": { "url": { "type": "string", "format": "uri", "description": "Who is called, once." } },
    })
}

fn integration() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "config", "enabled", "state", "secretHint", "secrets", "lastEventAt", "lastError", "createdAt", "createdBy"],
        "properties": {
            "id": id("int_"),
            "kind": kind(),
            "config": config(),
            "enabled": { "type": "boolean" },
            "state": { "type": "string", "enum": ["ok", "failing", "off"] },
            "secret": { "type": "string", "description": "In the answers that made it, and in no other." },
            "secretHint": { "type": "string", "description": "The last four characters of the secret in force." },
            "secrets": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["hint", "createdAt"],
                    "properties": { "hint": { "type": "string" }, "createdAt": time(), "endsAt": time() },
                },
            },
            "lastEventAt": nullable(time()),
            "lastError": nullable(json!({ "type": "string" })),
            "deliveryId": { "type": "string", "description": "The call of a test, in the answer that asked for it." },
            "createdAt": time(),
            "createdBy": nullable(id("prp_")),
        },
    })
}

fn delivery() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "subject", "host", "state", "attempts", "nextAt", "createdAt", "createdBy"],
        "properties": {
            "id": id("dlv_"),
            "kind": kind(),
            "subject": { "type": "string", "description": "The id of what is told of." },
            "host": { "type": "string", "description": "Who is called, without the rest of the URL." },
            "state": { "type": "string", "enum": ["waiting", "sending", "delivered", "failed", "replaced"] },
            "attempts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["at", "ms"],
                    "properties": {
                        "at": time(),
                        "status": { "type": "integer" },
                        "error": { "type": "string" },
                        "ms": { "type": "integer", "minimum": 0 },
                    },
                },
            },
            "nextAt": nullable(time()),
            "createdAt": time(),
            "createdBy": { "type": "null", "description": "Nobody makes a delivery: what is told of happens by itself." },
        },
    })
}

fn list(item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": reference(item) },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn nullable(schema: Value) -> Value {
    json!({ "oneOf": [schema, { "type": "null" }] })
}
