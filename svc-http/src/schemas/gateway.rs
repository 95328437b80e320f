//! Schemas of model traffic. Requests and answers of the two public shapes are told as far as svc looks at them: members
//! that are not named here pass through.

use serde_json::{Value, json};
use svc_core::state::gateway::{CallEnd, Mode, Objective, TaskStatus};

use super::{known, with_description, words, words_or_null};

/// Every schema of this family.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("ChatRequest", chat_request()),
        ("ChatAnswer", chat_answer()),
        ("MessagesRequest", messages_request(&["model", "max_tokens", "messages"])),
        ("CountRequest", messages_request(&["model", "messages"])),
        ("MessagesAnswer", messages_answer()),
        ("TokenCount", token_count()),
        ("OutcomeReport", outcome_report()),
        ("OutcomeRecorded", outcome_recorded()),
        ("Call", call()),
        ("Calls", list("Call")),
        ("Task", task()),
        ("Tasks", list("Task")),
    ]
}

fn list(item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": { "$ref": format!("#/components/schemas/{item}") } },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn chat_request() -> Value {
    json!({
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": { "type": "string", "description": "`provider/model`, a bare id or an alias; where policy acts also `auto`." },
            "messages": { "type": "array", "minItems": 1, "items": { "type": "object" } },
            "stream": { "type": "boolean" },
            "n": { "type": "integer", "minimum": 1, "maximum": 128 },
            "max_tokens": { "type": "integer", "minimum": 1 },
            "max_completion_tokens": { "type": "integer", "minimum": 1 },
            "tools": { "type": "array", "items": { "type": "object" } },
        },
    })
}

fn chat_answer() -> Value {
    json!({
        "type": "object",
        "description": "A chat completion, or with `stream` events of chunks; with `x-svc-dry-run: true` a route preview with `budgets`.",
    })
}

fn messages_request(required: &[&str]) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": {
            "model": { "type": "string" },
            "max_tokens": { "type": "integer", "minimum": 1 },
            "messages": { "type": "array", "minItems": 1, "items": { "type": "object" } },
            "system": { "type": ["string", "array"], "items": {} },
            "stream": { "type": "boolean" },
            "tools": { "type": "array", "items": { "type": "object" } },
        },
    })
}

fn messages_answer() -> Value {
    json!({
        "type": "object",
        "description": "A message, or with `stream` its events; with `x-svc-dry-run: true` a route preview with `budgets`.",
    })
}

fn token_count() -> Value {
    json!({
        "type": "object",
        "required": ["input_tokens"],
        "properties": {
            "input_tokens": { "type": "integer", "minimum": 0 },
            "svc": { "type": "object", "properties": { "estimated": { "type": "boolean" } } },
        },
    })
}

fn status() -> Value {
    words(&TaskStatus::ALL, TaskStatus::as_str)
}

fn outcome_report() -> Value {
    json!({
        "type": "object",
        "required": ["taskId", "status"],
        "properties": { "taskId": task_id(), "status": status() },
    })
}

fn outcome_recorded() -> Value {
    json!({
        "type": "object",
        "required": ["taskId", "status", "spentMicros", "recordedAt"],
        "properties": {
            "taskId": { "type": "string" },
            "status": status(),
            "spentMicros": { "type": "integer", "minimum": 0 },
            "recordedAt": { "type": "string", "format": "date-time" },
        },
    })
}

fn usage() -> Value {
    let count = json!({ "type": "integer", "minimum": 0 });
    json!({
        "type": "object",
        "description": "Tokens by kind; no token is counted under two.",
        "required": ["input", "cachedInput", "cacheWrite", "cacheWriteLong", "output", "reasoning", "estimated"],
        "properties": {
            "input": count, "cachedInput": count, "cacheWrite": count, "cacheWriteLong": count, "output": count,
            "reasoning": count, "estimated": { "type": "boolean" },
        },
    })
}

fn call() -> Value {
    let text = json!({ "type": "string" });
    let maybe = json!({ "type": ["string", "null"] });
    let count = json!({ "type": ["integer", "null"], "minimum": 0 });
    json!({
        "type": "object",
        "required": ["id", "taskId", "session", "keyId", "principalId", "teamId", "taskClass", "requestedModel", "model",
            "provider", "jurisdiction", "mode", "objective", "stream", "attempts", "usage", "costMicros", "unpriced",
            "reservedMicros", "budgets", "dataLoss", "startedAt", "createdAt", "createdBy",
            "firstTokenMs", "durationMs", "overheadMs", "end"],
        "properties": {
            "id": text, "taskId": text, "session": text, "keyId": text, "agentId": text, "principalId": text,
            "teamId": maybe, "taskClass": maybe, "requestedModel": text, "model": maybe, "provider": maybe,
            "jurisdiction": maybe,
            "mode": words(&Mode::ALL, Mode::as_str),
            "objective": words(&Objective::ALL, Objective::as_str),
            "humanOversight": known(&["acknowledged"]),
            "stream": { "type": "boolean" },
            "attempts": { "type": "array", "items": attempt(),
                "description": "What was tried, in order: of a call that was answered the last is the one that did." },
            "usage": usage(),
            "costMicros": { "type": "integer", "minimum": 0 },
            "unpriced": { "type": "boolean", "description": "Something that it used has no price: it cost more than `costMicros`." },
            "reservedMicros": { "type": "integer", "minimum": 0 },
            "budgets": { "type": "array", "items": text },
            "pastStop": { "type": "boolean", "description": "What it held passed the `stop` of one of them, as it may in shadow alone." },
            "dataLoss": { "type": "object", "additionalProperties": { "type": "integer" } },
            "startedAt": { "type": "string", "format": "date-time" },
            "createdAt": { "type": "string", "format": "date-time" },
            "createdBy": { "type": "string", "description": "The `key_` that it came with." },
            "firstTokenMs": with_description(count.clone(), "Of a stream: until its first token. Of a whole answer: until its head came."),
            "durationMs": count, "overheadMs": count,
            "end": with_description(
                words_or_null(&CallEnd::ALL, CallEnd::as_str),
                "`null` while it runs.",
            ),
        },
    })
}

fn attempt() -> Value {
    json!({
        "type": "object",
        "required": ["model", "status", "ms"],
        "properties": {
            "model": { "type": "string", "description": "`provider/model`." },
            "status": { "type": ["integer", "null"], "description": "What the provider answered; `null` where nothing came." },
            "ms": { "type": "integer", "minimum": 0 },
            "error": { "type": "string" },
            "costMicros": { "type": "integer", "minimum": 0,
                "description": "What a try that failed is charged, within the call's own; absent where that is nothing." },
            "usage": usage(),
            "unpriced": { "type": "boolean", "description": "Something that it may have used has no price." },
        },
    })
}

/// The id of a task, as clients may give one.
pub(crate) fn task_id() -> Value {
    json!({ "type": "string", "pattern": "^tsk_[A-Za-z0-9_-]{1,64}$" })
}

fn task() -> Value {
    json!({
        "type": "object",
        "required": ["id", "taskClass", "principalId", "calls", "spentMicros", "createdAt", "createdBy"],
        "properties": {
            "id": { "type": "string" }, "taskClass": { "type": ["string", "null"] }, "principalId": { "type": "string" },
            "agentId": { "type": "string" }, "calls": { "type": "integer" }, "spentMicros": { "type": "integer" },
            "outcome": status(), "createdAt": { "type": "string", "format": "date-time" },
            "createdBy": { "type": "string", "description": "The `key_` that its first call came with." },
        },
    })
}
