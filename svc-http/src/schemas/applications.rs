//! The schemas of what members ask for that their role cannot do.

use serde_json::{Value, json};
use svc_core::state::people::{ApplicationState, Change};

use super::administration::{object, tier, word};
use super::{id, reference, time, with_description};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Application", application(&[])),
        ("PendingApplication", application(&["pending", "approval"])),
        ("ApplicationPage", page()),
        ("NewApplication", new_application()),
        ("ApplicationDecision", json!({ "type": "object", "properties": { "note": note() } })),
        ("ApplicationApproval", approval()),
        ("TierChange", object(&[("tier", tier())], &["tier"])),
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

fn approval() -> Value {
    let confirm = "That a mandate is meant which lets the agent go anywhere beside a narrower one; what whoever asked said of it counts too.";
    let confirm = with_description(json!({ "type": "boolean" }), confirm);
    json!({ "type": "object", "properties": { "note": note(), "confirmBroaden": confirm } })
}

fn note() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 500 })
}

/// What may be asked for: its word, whose target has which kind of id, and the body of the route that makes the change.
const CHANGES: [(&str, Option<&str>, &str); 6] = [
    ("agent", None, "Blueprint"),
    ("mandate", Some("agt_"), "NewMandate"),
    ("mandate", Some("mnd_"), "MandateChange"),
    ("tier", Some("agt_"), "TierChange"),
    ("budget_raise", Some("bdg_"), "BudgetRaise"),
    ("role", Some("prp_"), "MemberChange"),
];

fn kind() -> Value {
    word(&Change::WORDS)
}

/// What each kind asks for, beside the members that all have.
fn by_kind() -> Value {
    CHANGES
        .iter()
        .map(|(kind, target, change)| {
            let mut members = vec![("kind", word(&[kind])), ("change", reference(change))];
            members.extend(target.map(|prefix| ("target", id(prefix))));
            // A role is the asker's own where nobody is named.
            let is_named = target.is_some() && *kind != "role";
            object(&members, if is_named { &["kind", "change", "target"] } else { &["kind", "change"] })
        })
        .collect()
}

fn change() -> Value {
    let bodies: Vec<Value> = CHANGES.iter().map(|(.., schema)| reference(schema)).collect();
    json!({ "anyOf": bodies, "description": "The body of the route that makes the change." })
}

/// The same where it is told: a kind that is added has a body of its own.
fn told_change() -> Value {
    let mut change = change();
    let bodies = change.get_mut("anyOf").and_then(Value::as_array_mut);
    bodies.into_iter().for_each(|it| it.push(json!({ "type": "object" })));
    change
}

fn new_application() -> Value {
    let about = "The `agt_` that a mandate or tier is for, the `mnd_` that changes, the `bdg_` to raise, or the `prp_` whose \
                 role changes (default one's own); not with `agent`.";
    json!({
        "type": "object",
        "required": ["kind", "change", "reason"],
        "properties": {
            "kind": kind(),
            "target": with_description(json!({ "type": "string" }), about),
            "change": change(),
            "reason": note(),
        },
        "anyOf": by_kind(),
    })
}

fn application(more: &[&str]) -> Value {
    let required = ["id", "kind", "change", "reason", "state", "createdBy", "createdAt", "expiresAt"];
    json!({
        "type": "object",
        "required": required.iter().chain(more).collect::<Vec<_>>(),
        "properties": {
            "id": id("app_"),
            "kind": kind(),
            "target": { "type": "string" },
            "change": told_change(),
            "reason": note(),
            "state": word(&ApplicationState::WORDS),
            "createdBy": id("prp_"),
            "createdAt": time(),
            "expiresAt": time(),
            "decidedBy": id("prp_"),
            "decidedAt": time(),
            "note": note(),
            "made": reference("NewAgent"),
            "pending": super::stops::pending(),
            "approval": super::asked(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of change has its line here, and no line is of another.
    #[test]
    fn each_kind_of_change_has_a_body() {
        let mut kinds = CHANGES.map(|it| it.0).to_vec();
        kinds.dedup();
        assert_eq!(kinds, Change::WORDS);
    }
}
