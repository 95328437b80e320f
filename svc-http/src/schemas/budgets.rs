//! The schemas of budgets, reports and bills.

use serde_json::{Value, json};

use super::{id, reference, time};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Budget", budget()),
        ("Budgets", list("Budget")),
        ("NewBudget", new_budget()),
        (
            "BudgetChange",
            json!({
                "type": "object",
                "additionalProperties": false,
                "properties": { "amount": micros(1), "ladder": ladder(), "owner": id("prp_") },
            }),
        ),
        (
            "BudgetRaise",
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["amountMicros"],
                "properties": {
                    "amountMicros": micros(1),
                    "note": { "type": "string", "minLength": 1, "maxLength": 500 },
                },
            }),
        ),
        ("SpendReport", report(&["from", "to", "by", "rows", "totals"])),
        ("YieldReport", report(&["from", "to", "by", "rows"])),
        ("WasteReport", report(&["from", "to", "rows"])),
        ("BillingImport", bill()),
        ("BillingImports", list("BillingImport")),
        ("NewBillingImport", new_bill()),
    ]
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

/// Whole micros from `least` on.
fn micros(least: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": 9_007_199_254_740_991_i64, "description": "Millionths of a US dollar." })
}

fn date() -> Value {
    json!({ "type": "string", "format": "date" })
}

fn scope() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["kind"],
        "properties": {
            "kind": { "type": "string", "enum": ["workspace", "team", "principal", "agent", "key", "taskClass"] },
            "id": { "type": "string", "description": "Of what it is over; absent for the workspace." },
        },
    })
}

fn ladder() -> Value {
    json!({
        "type": "array",
        "maxItems": 5,
        "description": "Strictly ascending, each step at most once and in this order. Without it: observe 0, nudge 80, downgrade 90, approval 100, stop 120.",
        "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["at", "step"],
            "properties": {
                "at": { "type": "integer", "minimum": 0, "maximum": 1000, "description": "Percent of the allocation." },
                "step": { "type": "string", "enum": ["observe", "nudge", "downgrade", "approval", "stop"] },
            },
        },
    })
}

fn period() -> Value {
    json!({ "type": "string", "enum": ["day", "week", "month", "quarter", "total"] })
}

fn new_budget() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["scope", "amount", "period"],
        "properties": {
            "scope": scope(),
            "amount": micros(1),
            "period": period(),
            "ladder": ladder(),
            "owner": id("prp_"),
        },
    })
}

fn budget() -> Value {
    json!({
        "type": "object",
        "required": ["id", "scope", "amount", "period", "ladder", "owner", "allocationMicros", "spentMicros", "reservedMicros",
            "reservations", "periodStart", "periodEnd", "refuses", "enforcing", "createdAt", "createdBy"],
        "properties": {
            "id": id("bdg_"),
            "scope": scope(),
            "amount": micros(1),
            "period": period(),
            "ladder": ladder(),
            "owner": id("prp_"),
            "allocationMicros": micros(1),
            "spentMicros": micros(0),
            "reservedMicros": micros(0),
            "reservations": {
                "type": "array",
                "description": "Calls of this period that run, at most 100.",
                "items": {
                    "type": "object",
                    "required": ["callId", "micros", "expiresAt"],
                    "properties": {
                        "callId": id("cal_"),
                        "micros": micros(0),
                        "expiresAt": time(),
                        "pastStop": { "type": "boolean", "description": "It passes `stop`, as it may in shadow alone." },
                    },
                },
            },
            "periodStart": time(),
            "periodEnd": { "type": ["string", "null"], "format": "date-time" },
            "refuses": { "type": "boolean" },
            "enforcing": { "type": "boolean", "description": "False where the workspace is in shadow." },
            "createdAt": time(),
            "createdBy": { "type": ["string", "null"] },
        },
    })
}

fn report(required: &[&str]) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": {
            "from": time(),
            "to": time(),
            "by": { "type": "string", "enum": ["day", "team", "principal", "agent", "model", "taskClass", "key"] },
            "rows": { "type": "array", "items": { "type": "object" } },
            "totals": { "type": "object" },
        },
    })
}

fn bill() -> Value {
    json!({
        "type": "object",
        "required": ["id", "upstreamId", "from", "to", "billedMicros", "meteredMicros", "differences", "createdAt", "createdBy"],
        "properties": {
            "id": id("bil_"),
            "upstreamId": id("ups_"),
            "from": date(),
            "to": date(),
            "billedMicros": micros(0),
            "meteredMicros": micros(0),
            "differences": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["model", "day", "billedMicros", "meteredMicros"],
                    "properties": {
                        "model": { "type": "string" },
                        "day": date(),
                        "billedMicros": micros(0),
                        "meteredMicros": micros(0),
                    },
                },
            },
            "createdAt": time(),
            "createdBy": { "type": ["string", "null"] },
        },
    })
}

fn new_bill() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["upstreamId", "from", "to", "lines"],
        "properties": {
            "upstreamId": id("ups_"),
            "from": date(),
            "to": date(),
            "lines": {
                "type": "array",
                "maxItems": 10_000,
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["model", "day", "micros"],
                    "properties": {
                        "model": { "type": "string" },
                        "day": date(),
                        "micros": micros(0),
                        "usage": { "type": "object" },
                    },
                },
            },
        },
    })
}
