//! The schemas of budgets, reports and bills.

use serde_json::{Value, json};
use svc_core::state::gateway::{BudgetPeriod, BudgetScope, Step, WasteKind};

use super::administration::word;
use super::{id, reference, time, with_description, words};
use crate::wire::report::ReportBy;

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
                "properties": { "amount": micros(1), "ladder": ladder(), "owner": id("prp_") },
            }),
        ),
        (
            "BudgetRaise",
            json!({
                "type": "object",
                "required": ["amountMicros"],
                "properties": {
                    "amountMicros": micros(1),
                    "note": { "type": "string", "minLength": 1, "maxLength": 500 },
                },
            }),
        ),
        ("SpendReport", report(spent(&[("key", group()), ("name", group())]), &[by(), ("totals", spent(&[]))])),
        ("YieldReport", report(yielded(), &[by()])),
        ("WasteReport", report(wasted(), &[])),
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
        "required": ["kind"],
        "properties": {
            "kind": word(&BudgetScope::WORDS),
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
            "required": ["at", "step"],
            "properties": {
                "at": { "type": "integer", "minimum": 0, "maximum": 1000, "description": "Percent of the allocation." },
                "step": words(&Step::ALL, Step::as_str),
            },
        },
    })
}

fn period() -> Value {
    words(&BudgetPeriod::ALL, BudgetPeriod::as_str)
}

fn new_budget() -> Value {
    json!({
        "type": "object",
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
    let name = json!({
        "type": "string",
        "description": "What people call what it is over; where one budget is read, unless that is the workspace or is gone.",
    });
    json!({
        "type": "object",
        "required": ["id", "scope", "amount", "period", "ladder", "owner", "allocationMicros", "spentMicros", "reservedMicros",
            "reservations", "periodStart", "periodEnd", "refuses", "enforcing", "createdAt", "createdBy"],
        "properties": {
            "id": id("bdg_"),
            "scope": scope(),
            "scopeName": name,
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

/// A report with these members, whose rows are such.
fn report(row: Value, more: &[(&str, Value)]) -> Value {
    let own = [("from", time()), ("to", time()), ("rows", json!({ "type": "array", "items": row }))];
    object(&own.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>())
}

/// Whose what was spent is: model traffic is told as it was counted, payments follow from the ledger and who acts for whom now.
const BY: &str =
    "By `principal`, model traffic counts for whom it was for then, payments for whom their agents act for now.";

/// By what a report is grouped.
fn by() -> (&'static str, Value) {
    let enumerated = json!({ "type": "string", "enum": ReportBy::words().collect::<Vec<_>>() });
    ("by", with_description(enumerated, BY))
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// What a group is found by.
fn group() -> Value {
    json!({ "type": ["string", "null"], "description": "An id, a model, a class or a day; `null` is what has none." })
}

/// On which day a payment counts: one that is long past stays as it is (`svc_core::state::gate::OPEN_MAX`).
const SETTLED: &str = "Minor units, on the day on which a payment was asked for. What corrects it more than nine days after that day counts on its own day, where the sum may be below zero.";

/// What was spent: of a group, or in all.
fn spent(more: &[(&str, Value)]) -> Value {
    let kinds = ["input", "cachedInput", "cacheWrite", "cacheWriteLong", "output", "reasoning"];
    let usage = object(&kinds.map(|it| (it, count())));
    let minor = || json!({ "type": "integer", "description": "Minor units." });
    let settled = json!({ "type": "integer", "description": SETTLED });
    let payment = object(&[("currency", super::currency()), ("settled", settled), ("reserved", minor())]);
    let own = [
        ("calls", count()),
        ("usage", usage),
        ("costMicros", micros(0)),
        ("estimatedMicros", micros(0)),
        ("unpricedCalls", count()),
        ("payments", json!({ "type": "array", "items": payment })),
    ];
    object(&more.iter().cloned().chain(own).collect::<Vec<_>>())
}

fn yielded() -> Value {
    let counts = ["tasks", "reported", "accepted", "partial", "rejected", "abandoned"].map(|it| (it, count()));
    let each =
        json!({ "type": ["integer", "null"], "minimum": 0, "description": "`null` where nothing was accepted." });
    let rest = [("key", group()), ("name", group()), ("costMicros", micros(0)), ("costPerAcceptedMicros", each)];
    object(&counts.into_iter().chain(rest).collect::<Vec<_>>())
}

fn wasted() -> Value {
    let example = json!({ "type": ["string", "null"], "description": "A `cal_` of them; `null` where there is none." });
    object(&[
        ("kind", words(&WasteKind::ALL, WasteKind::as_str)),
        ("count", count()),
        ("costMicros", micros(0)),
        ("savableMicros", micros(0)),
        ("example", example),
    ])
}

/// An object that has all of these members.
fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    super::administration::object(members, &names)
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
