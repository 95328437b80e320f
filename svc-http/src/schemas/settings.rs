//! The schemas of settings: those in force, and those that change.

use serde_json::{Value, json};

use super::administration::{name, object, word};
use super::{amount, currency};

/// The schemas of this family, each with its name.
pub(super) fn all() -> [(&'static str, Value); 2] {
    let members = members();
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    [("Settings", object(&members, &names)), ("SettingsChange", object(&members, &[]))]
}

fn members() -> [(&'static str, Value); 16] {
    let number = |min: i64, max: i64| json!({ "type": "integer", "minimum": min, "maximum": max });
    let velocity = [
        ("toolVelocityCount", number(1, 1_000_000)),
        ("velocityCount", number(1, 1_000_000)),
        ("velocityMinutes", number(1, 1_440)),
    ];
    let provenance = [
        ("mismatch", word(&["deny", "ask", "record"])),
        ("undeclared", word(&["record", "ask", "deny"])),
        ("windowMinutes", number(5, 1_440)),
    ];
    [
        ("name", name()),
        ("timezone", json!({ "type": "string", "description": "An IANA name." })),
        ("currency", currency()),
        ("agentVelocity", object(&velocity, &[])),
        ("outsideMandate", word(&["ask", "deny"])),
        ("provenance", object(&provenance, &[])),
        ("approvalHours", number(1, 168)),
        ("secondPersonAbove", lines()),
        ("secondPersonAgeDays", number(0, 90)),
        ("receiptMinutes", number(1, 1_440)),
        ("maxWaiting", number(1, 1_000)),
        ("freezeCeilingPerHour", number(1, 1_000_000)),
        ("dataLoss", word(&["off", "flag", "redact", "block"])),
        ("signIn", sign_in()),
        ("stepUpAbove", lines()),
        ("retentionDays", json!({ "type": ["integer", "null"], "minimum": 30, "maximum": 3_650 })),
    ]
}

/// How members have to sign in.
pub(super) fn sign_in() -> Value {
    let flag = || json!({ "type": "boolean" });
    let domains = json!({ "type": "array", "maxItems": 100, "items": { "type": "string", "minLength": 1 } });
    object(&[("requireTwoFactor", flag()), ("requireSso", flag()), ("ssoDomains", domains)], &[])
}

/// Amounts by currency.
fn lines() -> Value {
    json!({ "type": "object", "propertyNames": currency(), "additionalProperties": amount(0) })
}
