//! The schemas of the MCP servers behind this one.

use serde_json::{Value, json};
use svc_core::state::edge::{McpCredential, McpState};

use super::administration::word;
use super::{id, reference, time, with_description, words};

/// Every schema of the family by its name.
pub(super) fn all() -> [(&'static str, Value); 5] {
    [
        ("McpServer", server()),
        (
            "McpServers",
            json!({
                "type": "object",
                "required": ["data", "nextCursor"],
                "properties": {
                    "data": { "type": "array", "items": reference("McpServer") },
                    "nextCursor": { "type": ["string", "null"] },
                },
            }),
        ),
        ("NewMcpServer", settings(&["name", "url"])),
        ("McpServerChange", settings(&[])),
        (
            "AcceptTools",
            json!({
                "type": "object",
                "required": ["tools", "toolsHash"],
                "properties": {
                    "tools": { "type": "array", "minItems": 1, "maxItems": 256, "items": { "type": "string" } },
                    "toolsHash": hash("`toolsHash` as it was when the tools were looked at."),
                },
            }),
        ),
    ]
}

fn hash(description: &str) -> Value {
    json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$", "description": description })
}

fn name() -> Value {
    json!({ "type": "string", "pattern": "^[a-z0-9-]{1,40}$", "description": "Its place in `/mcp/proxy/{server}`." })
}

fn globs() -> Value {
    json!({ "type": "array", "maxItems": 200, "items": { "type": "string", "minLength": 1, "maxLength": 128 } })
}

fn filter() -> Value {
    json!({
        "type": "object",
        "description": "Globs over the names of tools. With `allow` only those it covers are there, `deny` takes away.",
        "properties": { "allow": globs(), "deny": globs() },
    })
}

fn settings(required: &[&str]) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": {
            "name": name(),
            "url": { "type": "string", "format": "uri", "maxLength": 2048 },
            "credential": {
                "type": ["object", "null"],
                "required": ["type"],
                "properties": {
                    "type": word(&McpCredential::WORDS),
                    "header": { "type": "string", "description": "The header's name; for `header` alone." },
                    "secret": { "type": "string", "minLength": 1, "maxLength": 4096, "description": "Sealed, and shown never again." },
                },
            },
            "tools": { "oneOf": [filter(), { "type": "null" }] },
            "enabled": { "type": "boolean", "default": true },
        },
    })
}

fn server() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "url", "credential", "tools", "enabled", "state", "toolsHash", "held", "createdAt", "createdBy"],
        "properties": {
            "id": id("mcs_"),
            "name": name(),
            "url": { "type": "string" },
            "credential": {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": word(&McpCredential::WORDS),
                    "header": { "type": "string" },
                    "secretHint": { "type": "string", "description": "The last four characters." },
                },
            },
            "tools": filter(),
            "enabled": { "type": "boolean" },
            "state": with_description(words(&McpState::ALL, McpState::as_str), "`held`: a tool is not as a person accepted it."),
            "toolsHash": { "oneOf": [hash("SHA-256 of the JSON array (RFC 8785) of all definitions as they were last seen, by name."), { "type": "null" }] },
            "held": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "before", "after", "diff"],
                    "properties": {
                        "name": { "type": "string" },
                        "before": { "type": ["object", "null"], "description": "As it was accepted; none where it is new." },
                        "after": { "type": "object", "description": "As the server tells of it now." },
                        "diff": { "type": "string", "description": "What differs, line by line." },
                        "reason": { "type": "string", "description": "Why it cannot be accepted, where that is so." },
                    },
                },
            },
            "trouble": { "type": "string", "description": "Why it is `unreachable`, where this server has asked it since it started." },
            "createdAt": time(),
            "createdBy": { "type": ["string", "null"] },
        },
    })
}
