//! The schemas of agents, keys and service tokens.

use serde_json::{Value, json};
use svc_core::rules::people::show::KeyState;
use svc_core::state::gate::{Standing, Tier};
use svc_core::state::people::{KeyScope, TokenScope};

use super::{id, reference, time, words};
use crate::wire::key::SCOPES;

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("Agent", agent(&[])),
        ("Agents", list("Agent")),
        ("NewAgent", agent(&["key", "binding"])),
        ("Blueprint", blueprint()),
        ("TokenBlueprint", token_blueprint()),
        (
            "AgentChange",
            object(&[("name", name()), ("tier", tier()), ("sponsor", principal()), ("killOwner", principal())], &[]),
        ),
    ];
    all.extend(access());
    all
}

fn access() -> [(&'static str, Value); 9] {
    [
        ("Key", key()),
        ("Keys", list("Key")),
        ("NewKey", new_key()),
        ("NewAgentKey", object(&[("label", name()), ("expiresInDays", key_days())], &[])),
        ("IssuedKey", object(&[("key", text()), ("binding", reference("Key"))], &["key", "binding"])),
        ("ServiceToken", service_token(&[])),
        ("ServiceTokens", list("ServiceToken")),
        ("NewServiceToken", new_service_token()),
        ("IssuedToken", service_token(&["token"])),
    ]
}

/// An object of these members.
pub(super) fn object(members: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    if required.is_empty() {
        json!({ "type": "object", "properties": properties })
    } else {
        json!({ "type": "object", "required": required, "properties": properties })
    }
}

/// A list of records of this schema.
pub(super) fn list(item: &str) -> Value {
    let data = json!({ "type": "array", "items": reference(item) });
    object(&[("data", data), ("nextCursor", json!({ "type": ["string", "null"] }))], &["data", "nextCursor"])
}

/// Any text.
pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

/// What people call something.
pub(super) fn name() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 100 })
}

/// One of these words.
pub(super) fn word(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn email() -> Value {
    json!({ "type": "string", "minLength": 3, "maxLength": 254 })
}

/// How much an agent is trusted.
pub(super) fn tier() -> Value {
    let told = "`restricted`: a person is asked about everything. `standard`: by the rules alone. `trusted`: `untrusted_provenance`, `possible_duplicate` and `session_conflict` are noted and neither ask nor deny.";
    super::with_description(words(&Tier::ALL, Tier::as_str), told)
}

fn principal() -> Value {
    json!({ "type": ["string", "null"], "description": "A `prp_` of the workspace; `null` is nobody." })
}

/// Who made something.
pub(super) fn maker() -> Value {
    json!({ "type": ["string", "null"], "description": "A `prp_` or `key_` id or `token:<name>`; `null` is the program." })
}

fn agent(more: &[&str]) -> Value {
    let mut members = vec![
        ("id", id("agt_")),
        ("name", name()),
        ("workspaceId", id("wsp_")),
        ("principalId", id("prp_")),
        ("principalEmail", json!({ "type": ["string", "null"] })),
        ("tier", tier()),
        ("sponsor", id("prp_")),
        ("killOwner", id("prp_")),
        ("standing", word(&Standing::WORDS)),
        ("frozen", frozen()),
        ("mandates", json!({ "type": "array", "items": reference("Mandate") })),
        ("spend", spend()),
        ("velocity", velocity()),
        ("waiting", json!({ "type": "integer", "minimum": 0 })),
        ("lastSeenAt", json!({ "type": ["string", "null"] })),
        ("createdBy", maker()),
        ("createdAt", time()),
    ];
    if !more.is_empty() {
        members.extend([("key", text()), ("binding", reference("Key"))]);
    }
    let mut required = vec!["id", "name", "workspaceId", "standing", "createdAt"];
    if !more.is_empty() {
        required.extend(["principalId", "tier", "mandates"]);
    }
    required.extend(more);
    let mut schema = object(&members, &required);
    if more.is_empty() {
        let told = "To a kill owner whose role reads no more of it: `id`, `name`, `workspaceId`, `killOwner`, `standing`, `frozen`, `createdBy` and `createdAt` alone.";
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), json!(told));
        }
    }
    schema
}

fn frozen() -> Value {
    let by =
        json!({ "type": "string", "description": "A `prp_` id, `token:<name>`, `integration`, `policy` or `drill`." });
    let reason = super::text(500, "Why, in words for people.");
    let members = [
        ("at", time()),
        ("by", by),
        ("byId", json!({ "anyOf": [id("stk_"), id("int_")] })),
        ("reason", reason),
        ("incident", id("evd_")),
    ];
    object(&members, &["at", "by", "reason"])
}

fn spend() -> Value {
    let sum = || json!({ "type": "integer", "description": "Minor units." });
    let members = [("currency", super::currency()), ("reserved", sum()), ("settled", sum())];
    let row = object(&members, &["currency", "reserved", "settled"]);
    json!({ "type": "array", "items": row, "description": "Payments of the running month; where one agent is read." })
}

fn velocity() -> Value {
    let count = || json!({ "type": "integer", "minimum": 0 });
    let line = || object(&[("used", count()), ("limit", count()), ("clearsAt", time())], &["used", "limit"]);
    let told = "How full the two lines are; where one agent is read, changed, frozen or started again.";
    super::with_description(object(&[("tool", line()), ("other", line())], &["tool", "other"]), told)
}

fn blueprint() -> Value {
    let mandates = json!({ "type": "array", "maxItems": 100, "items": reference("BlueprintMandate") });
    let members = [
        ("name", name()),
        ("principalEmail", email()),
        ("tier", tier()),
        ("sponsor", id("prp_")),
        ("killOwner", id("prp_")),
        ("mandates", mandates),
    ];
    object(&members, &["name", "principalEmail"])
}

fn token_blueprint() -> Value {
    let mandate = object(&[("template", name())], &["template"]);
    let mandates = json!({ "type": "array", "maxItems": 100, "items": mandate });
    let members = [("name", name()), ("principalEmail", email()), ("mandates", mandates)];
    object(&members, &["name", "principalEmail"])
}

fn key() -> Value {
    let nullable = |what: &str| json!({ "type": ["string", "null"], "description": what });
    let members = [
        ("id", id("key_")),
        ("prefix", text()),
        ("label", nullable("What people call it.")),
        ("scope", word(&KeyScope::WORDS)),
        ("principalId", id("prp_")),
        ("teamId", nullable("A `team_` id.")),
        ("taskClassId", nullable("The class of its tasks where a call names none.")),
        ("policyProfileId", nullable("A `pol_` id.")),
        ("taskClassOpen", json!({ "type": "boolean" })),
        ("agentId", id("agt_")),
        ("state", words(&KeyState::ALL, KeyState::as_str)),
        ("lastUsedAt", nullable("When it was last shown to this server since its start.")),
        ("expiresAt", nullable("When it ends by itself.")),
        ("createdBy", maker()),
        ("createdAt", time()),
    ];
    object(&members, &["id", "prefix", "label", "scope", "principalId", "state", "createdBy", "createdAt"])
}

/// In how many days a key ends by itself.
fn key_days() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 3650 })
}

fn new_key() -> Value {
    let members = [
        ("scope", words(&SCOPES, |it| it.as_str())),
        ("principalId", id("prp_")),
        ("teamId", id("team_")),
        ("label", name()),
        ("taskClassId", json!({ "type": "string", "maxLength": 64 })),
        ("policyProfileId", id("pol_")),
        ("taskClassOpen", json!({ "type": "boolean" })),
        ("expiresInDays", key_days()),
    ];
    object(&members, &[])
}

fn scopes() -> Value {
    json!({ "type": "array", "minItems": 1, "items": words(&TokenScope::ALL, TokenScope::as_str) })
}

fn ranges() -> Value {
    json!({ "type": "array", "maxItems": 100, "items": { "type": "string", "description": "CIDR without host bits." } })
}

fn service_token(more: &[&str]) -> Value {
    let mut members = vec![
        ("id", id("stk_")),
        ("name", name()),
        ("scopes", scopes()),
        ("ipAllow", ranges()),
        ("state", words(&KeyState::ALL, KeyState::as_str)),
        ("expiresAt", time()),
        ("lastUsedAt", json!({ "type": ["string", "null"] })),
        ("createdBy", maker()),
        ("createdAt", time()),
    ];
    if !more.is_empty() {
        members.push(("token", json!({ "type": "string", "description": "The whole text, this once." })));
    }
    let mut required = vec!["id", "name", "scopes", "ipAllow", "state", "expiresAt", "lastUsedAt", "createdAt"];
    required.extend(more);
    object(&members, &required)
}

fn new_service_token() -> Value {
    let days = json!({ "type": "integer", "minimum": 1, "maximum": 90, "default": 90 });
    let members = [("name", name()), ("scopes", scopes()), ("expiresInDays", days), ("ipAllow", ranges())];
    object(&members, &["name", "scopes"])
}
