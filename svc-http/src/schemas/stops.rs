//! The schemas of freezes and holds.

use serde_json::{Value, json};
use svc_core::state::gate::Standing;
use svc_core::state::people::HoldScope;

use super::administration::{object, word};
use super::{asked, digest, id, reference, time, with_description, words};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("GivenReason", reason()),
        (
            "PendingFreeze",
            waiting(&[("count", json!({ "type": "integer", "minimum": 0, "description": "How many agents." }))]),
        ),
        ("FleetFreeze", fleet_freeze()),
        ("Fleet", fleet()),
        ("Hold", hold()),
        ("PendingLift", waiting(&[])),
        ("HoldPage", page()),
        ("Lift", lift()),
    ]
}

fn note() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 500, "description": "Why, in words for people; not blank." })
}

fn reason() -> Value {
    json!({ "type": "object", "required": ["reason"], "properties": { "reason": note() } })
}

/// Whether it waits.
pub(super) fn pending() -> Value {
    json!({ "type": "boolean", "description": "True where nothing is done yet and a person decides (202)." })
}

/// What is answered in place of a record whose change waits for a person, with these members besides.
pub(super) fn waiting(more: &[(&str, Value)]) -> Value {
    let is_pending =
        json!({ "type": "boolean", "enum": [true], "description": "Nothing is done yet: a person decides." });
    let own = [("pending", is_pending), ("approval", asked())];
    let members: Vec<(&str, Value)> = own.into_iter().chain(more.iter().cloned()).collect();
    object(&members, &members.iter().map(|it| it.0).collect::<Vec<_>>())
}

fn fleet_freeze() -> Value {
    let text = || json!({ "type": "string", "minLength": 1, "maxLength": 100 });
    json!({
        "type": "object",
        "required": ["selector"],
        "properties": {
            "selector": {
                "type": "object",
                "description": "At least one condition; an agent has to meet all of them. `all` stands alone.",
                "minProperties": 1,
                "properties": {
                    "all": { "type": "boolean", "enum": [true] },
                    "agentIds": { "type": "array", "minItems": 1, "maxItems": 1000, "items": selected("agt_") },
                    "principalId": selected("prp_"),
                    "teamId": selected("team_"),
                    "template": text(),
                    "action": text(),
                    "namePrefix": text(),
                },
            },
            "reason": note(),
            "dryRun": { "type": "boolean", "description": "Counts and changes nothing; needs no reason." },
            "confirmCount": { "type": "integer", "minimum": 0, "description": "How many agents are meant." },
            "selectionDigest": with_description(digest(), "Which selection is meant, as a dry run named it."),
        },
    })
}

/// An id in a selector: of what is not there, or was never one, it matches nothing.
fn selected(prefix: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{prefix}") })
}

fn fleet() -> Value {
    let count = || json!({ "type": "integer", "minimum": 0 });
    json!({
        "type": "object",
        "required": ["count"],
        "properties": {
            "frozen": count(),
            "alreadyFrozen": count(),
            "count": count(),
            "hold": id("hld_"),
            "evidenceRecord": id("evd_"),
            "dryRun": { "type": "boolean" },
            "selectionDigest": { "type": "string" },
            "agents": {
                "type": "array",
                "maxItems": 100,
                "items": {
                    "type": "object",
                    "required": ["id", "name", "standing"],
                    "properties": {
                        "id": id("agt_"),
                        "name": { "type": "string" },
                        "standing": word(&Standing::WORDS),
                    },
                },
            },
            "truncated": { "type": "boolean" },
        },
    })
}

fn hold() -> Value {
    json!({
        "type": "object",
        "required": ["id", "scope", "agents", "reason", "by", "at", "createdAt", "createdBy"],
        "properties": {
            "id": id("hld_"),
            "scope": words(&HoldScope::ALL, HoldScope::as_str),
            "agents": { "type": "integer" },
            "reason": { "type": "string" },
            "by": { "type": "string" },
            "byId": { "anyOf": [id("stk_"), id("int_")] },
            "at": time(),
            "liftedAt": time(),
            "liftedBy": id("prp_"),
            "createdAt": time(),
            "createdBy": { "type": "string" },
        },
    })
}

fn page() -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": reference("Hold") },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn lift() -> Value {
    json!({
        "type": "object",
        "required": ["reason"],
        "properties": {
            "reason": note(),
            "restart": { "type": "boolean", "description": "Restarts the agents that this freeze froze and nothing else since." },
        },
    })
}
