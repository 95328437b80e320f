//! The schemas of settings: those in force, and those that change.

use serde_json::{Value, json};
use svc_core::state::people::{DataLoss, OnMismatch, OnUndeclared, Outside};

use super::administration::{name, object, text};
use super::{amount, currency, words};

/// The schemas of this family, each with its name.
pub(super) fn all() -> [(&'static str, Value); 2] {
    let members = members();
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    [("Settings", object(&members, &names)), ("SettingsChange", object(&members, &[]))]
}

fn members() -> Vec<(&'static str, Value)> {
    let mut members: Vec<_> = of_decisions().into_iter().chain(of_people()).collect();
    let defaults = crate::wire::settings::defaults();
    for (name, schema) in &mut members {
        default(schema, defaults.get(*name));
    }
    members
}

/// What the gate decides by.
fn of_decisions() -> [(&'static str, Value); 7] {
    [
        ("name", told("What people call the workspace.", name())),
        (
            "timezone",
            told(
                "An IANA name: where the calendar periods of limits and budgets begin. A period that runs ends as it began.",
                text(),
            ),
        ),
        (
            "currency",
            told("In which the amounts of the built-in templates are read. A current ISO 4217 code.", currency()),
        ),
        ("agentVelocity", velocity()),
        (
            "outsideMandate",
            told(
                "What becomes of an action that no mandate covers: a person is asked, or it is denied.",
                words(&Outside::ALL, Outside::as_str),
            ),
        ),
        ("provenance", provenance()),
        (
            "approvalHours",
            told(
                "How long an action waits for a person, after which it is denied (`approval_expired`).",
                number(1, 168),
            ),
        ),
    ]
}

/// What people decide, how they sign in, and what is kept.
fn of_people() -> [(&'static str, Value); 9] {
    [
        (
            "secondPersonAbove",
            lines(
                "Payments above the line of their currency take the yes of two persons; where there is any line, so does every payment in a currency without one.",
            ),
        ),
        (
            "secondPersonAgeDays",
            told(
                "For how many days two persons count as one after one of them invited the other, gave them a sign-in link or changed their role.",
                number(0, 90),
            ),
        ),
        (
            "receiptMinutes",
            told("How long a receipt is good, from the moment at which its action was allowed.", number(1, 1_440)),
        ),
        (
            "maxWaiting",
            told(
                "How many approvals of one agent may wait; what would ask beyond that is denied (`approval_backlog`).",
                number(1, 1_000),
            ),
        ),
        (
            "freezeCeilingPerHour",
            told(
                "How many agents a service token may freeze within 60 minutes; beyond that a person is asked.",
                number(1, 1_000_000),
            ),
        ),
        ("dataLoss", data_loss()),
        ("signIn", sign_in()),
        (
            "stepUpAbove",
            lines(
                "Whoever says yes to a payment above the line of its currency shows their second factor again; where there is any line, every payment in a currency without one counts as above.",
            ),
        ),
        ("retentionDays", retention()),
    ]
}

/// Says what holds where nothing was set: of an object, member by member. Not as `default`, which clients would send for what they
/// leave unchanged.
fn default(schema: &mut Value, value: Option<&Value>) {
    let Some(value) = value else { return };
    if let (Some(members), Some(values)) =
        (schema.get_mut("properties").and_then(Value::as_object_mut), value.as_object())
    {
        members.iter_mut().for_each(|(name, it)| default(it, values.get(name)));
        return;
    }
    let word = match value {
        Value::String(word) => word.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Null | Value::Object(_) => return,
    };
    let described = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = format!("{described} `{word}` where nothing was set.");
    crate::wire::put(schema, "description", described.into());
}

fn told(what: &str, schema: Value) -> Value {
    super::with_description(schema, what)
}

fn number(min: i64, max: i64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

fn velocity() -> Value {
    let members = [
        ("toolVelocityCount", told("How many actions below `tool.` and `mcp.`.", number(1, 1_000_000))),
        ("velocityCount", told("How many other actions.", number(1, 1_000_000))),
        ("velocityMinutes", told("Within how many minutes, at any time.", number(1, 1_440))),
    ];
    told(
        "How many actions of one agent are allowed or asked about before a person is asked about each further one (`velocity_exceeded`). Tool calls and all else are counted apart.",
        object(&members, &[]),
    )
}

fn provenance() -> Value {
    let mismatch = "Where content was seen that is less trusted than all that the agent declared (`provenance_mismatch`): `deny` denies sinks and asks about all else, `ask` asks, `record` notes it.";
    let undeclared = "Where a sink's origin was not declared (`provenance_undeclared`): it is noted, asked about or denied. Of other actions it is noted.";
    let window =
        "How far back what an agent has read counts for an action that names no session which the gateway saw.";
    let members = [
        ("mismatch", told(mismatch, words(&OnMismatch::ALL, OnMismatch::as_str))),
        ("undeclared", told(undeclared, words(&OnUndeclared::ALL, OnUndeclared::as_str))),
        ("windowMinutes", told(window, number(5, 1_440))),
    ];
    told("What follows from where an action came from.", object(&members, &[]))
}

fn data_loss() -> Value {
    let what = "What becomes of card, account and identity numbers, addresses, telephone numbers and secrets on their way to a model: nobody looks, they are noted, replaced, or the call is refused (`sensitive_data_blocked`).";
    told(what, words(&DataLoss::ALL, DataLoss::as_str))
}

fn retention() -> Value {
    let what = "After how many days the texts of actions that have come to their end are let go of; `null` keeps them. The ledger stays whole.";
    told(what, json!({ "type": ["integer", "null"], "minimum": 30, "maximum": 3_650 }))
}

/// How members have to sign in.
pub(super) fn sign_in() -> Value {
    let flag = |what| told(what, json!({ "type": "boolean" }));
    let domains = json!({ "type": "array", "maxItems": 100, "items": { "type": "string", "minLength": 1 } });
    let members = [
        ("requireTwoFactor", flag("Whether a member without a second factor may do nothing here.")),
        ("requireSso", flag("Whether the workspace's own identity provider alone signs in.")),
        ("ssoDomains", told("Domains of e-mail addresses whose holders the identity provider may bring in.", domains)),
    ];
    told("How people sign in to the workspace.", object(&members, &[]))
}

/// Amounts by currency.
fn lines(what: &str) -> Value {
    let lines = json!({ "type": "object", "propertyNames": currency(), "additionalProperties": amount(0) });
    told(what, lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Each setting has its row on the page of decisions, with its bounds or words and what holds where nothing was set, and its
    /// description in the interface.
    #[test]
    fn every_setting_is_explained() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/decisions.md")).unwrap();
        let defaults = crate::wire::settings::defaults();
        let rows: Vec<&str> =
            page.split("\n## Settings").nth(1).unwrap().split("\n## ").next().unwrap().lines().collect();
        let mut told = 0;
        let mut row = |name: &str, schema: &Value, default: Option<&Value>| {
            assert!(schema["description"].as_str().is_some_and(|it| it.len() > 20), "{name}");
            let row =
                rows.iter().find(|it| it.starts_with(&format!("| `{name}` |"))).unwrap_or_else(|| panic!("{name}"));
            told += 1;
            if let (Some(min), Some(max)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
                assert!(row.contains(&format!("| {min} to {max}")), "{row}");
            }
            let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            assert!({ words }.all(|it| row.contains(&format!("`{it}`"))), "{row}");
            match default {
                Some(Value::Number(number)) => assert!(row.contains(&format!("| {number} |")), "{row}"),
                Some(Value::String(word)) => assert!(row.contains(&format!("| `{word}` |")), "{row}"),
                _ => {}
            }
        };
        for (name, schema) in members() {
            let default = defaults.get(name);
            match schema.get("properties").and_then(Value::as_object) {
                Some(inner) => {
                    for (member, schema) in inner {
                        row(&format!("{name}.{member}"), schema, default.and_then(|it| it.get(member)));
                    }
                }
                None => row(name, &schema, default),
            }
        }
        assert_eq!(told, rows.iter().filter(|it| it.starts_with("| `")).count());
    }
}
