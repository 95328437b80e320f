//! The schemas of agents, mandates, templates, keys, service tokens and settings.

use serde_json::{Value, json};

use super::{id, reference, time};

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
        ("Mandate", mandate()),
        ("Mandates", list("Mandate")),
        ("NewMandate", new_mandate()),
        ("MandateChange", mandate_change()),
        ("Template", template()),
        ("Templates", list("Template")),
        ("NewTemplate", object(&[("name", name()), ("mandate", mandate_terms())], &["name", "mandate"])),
        ("TemplateChange", object(&[("mandate", mandate_terms())], &["mandate"])),
    ];
    all.extend(access());
    all.extend([("Settings", settings()), ("SettingsChange", settings())]);
    all
}

fn access() -> [(&'static str, Value); 9] {
    [
        ("Key", key()),
        ("Keys", list("Key")),
        ("NewKey", new_key()),
        ("NewAgentKey", object(&[("label", name())], &[])),
        ("IssuedKey", object(&[("key", text()), ("binding", reference("Key"))], &["key", "binding"])),
        ("ServiceToken", service_token(&[])),
        ("ServiceTokens", list("ServiceToken")),
        ("NewServiceToken", new_service_token()),
        ("IssuedToken", service_token(&["token"])),
    ]
}

fn object(members: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    if required.is_empty() {
        json!({ "type": "object", "properties": properties })
    } else {
        json!({ "type": "object", "required": required, "properties": properties })
    }
}

/// A list of records of this schema.
fn list(item: &str) -> Value {
    let data = json!({ "type": "array", "items": reference(item) });
    object(&[("data", data), ("nextCursor", json!({ "type": ["string", "null"] }))], &["data", "nextCursor"])
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn name() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 100 })
}

fn word(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn tier() -> Value {
    word(&["restricted", "standard", "trusted"])
}

fn principal() -> Value {
    json!({ "type": ["string", "null"], "description": "A `prp_` of the workspace; `null` is nobody." })
}

fn maker() -> Value {
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
        ("standing", word(&["active", "frozen", "removed"])),
        ("frozen", json!({ "type": "object", "description": "`{ at, by, byId?, reason, incident? }`" })),
        ("mandates", json!({ "type": "array", "items": reference("Mandate") })),
        (
            "spend",
            json!({ "type": "array", "description": "Of the running month, by currency: `{ currency, reserved, settled }`; where one agent is read." }),
        ),
        (
            "velocity",
            json!({ "type": "object", "description": "`{ tool, other }`, each `{ used, limit, clearsAt? }`; where one agent is read, changed, frozen or started again." }),
        ),
        ("waiting", json!({ "type": "integer", "minimum": 0 })),
        ("lastSeenAt", json!({ "type": ["string", "null"] })),
        ("createdBy", maker()),
        ("createdAt", time()),
    ];
    if !more.is_empty() {
        members.extend([("key", text()), ("binding", reference("Key"))]);
    }
    let mut required = vec!["id", "name", "workspaceId", "principalId", "tier", "standing", "mandates", "createdAt"];
    required.extend(more);
    object(&members, &required)
}

fn blueprint() -> Value {
    let mandates = json!({ "type": "array", "maxItems": 100, "items": reference("NewMandate") });
    let members = [
        ("name", name()),
        ("principalEmail", json!({ "type": "string", "maxLength": 254 })),
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
    let members =
        [("name", name()), ("principalEmail", json!({ "type": "string", "maxLength": 254 })), ("mandates", mandates)];
    object(&members, &["name", "principalEmail"])
}

fn terms() -> Vec<(&'static str, Value)> {
    vec![
        ("name", name()),
        ("actions", json!({ "type": "array", "minItems": 1, "items": text() })),
        (
            "limits",
            json!({ "type": ["object", "null"], "description": "`{ currency?, perAction?, perPeriod?: { amount, period }, count?: { max, period }, askAbove?, onLimit }`" }),
        ),
        ("merchants", json!({ "type": ["object", "null"], "description": "`{ allow?, deny? }`" })),
        ("fields", json!({ "type": ["object", "null"], "description": "`{ allow }`" })),
        ("tools", json!({ "type": ["object", "null"], "description": "`{ allow?, deny? }`" })),
        ("duplicates", word(&["ask", "record"])),
        ("expiresAt", json!({ "type": ["string", "null"], "format": "date-time" })),
    ]
}

fn mandate_terms() -> Value {
    object(&terms(), &["actions"])
}

fn new_mandate() -> Value {
    let mut members = terms();
    members.extend([("template", name()), ("confirmBroaden", json!({ "type": "boolean" }))]);
    object(&members, &[])
}

fn mandate_change() -> Value {
    let mut members = terms();
    members.extend([("state", word(&["active", "paused"])), ("confirmBroaden", json!({ "type": "boolean" }))]);
    object(&members, &[])
}

fn mandate() -> Value {
    let mut members = terms();
    members.extend([
        ("id", id("mnd_")),
        ("agentId", id("agt_")),
        ("template", name()),
        ("version", json!({ "type": "integer", "minimum": 1 })),
        ("state", word(&["active", "paused", "revoked", "expired"])),
        ("createdBy", maker()),
        ("createdAt", time()),
    ]);
    object(&members, &["id", "agentId", "name", "actions", "duplicates", "version", "state", "createdBy", "createdAt"])
}

fn template() -> Value {
    let members = [
        ("id", name()),
        ("name", name()),
        ("builtIn", json!({ "type": "boolean" })),
        ("mandate", mandate_terms()),
        ("createdBy", maker()),
        ("createdAt", time()),
    ];
    object(&members, &["id", "name", "builtIn", "mandate", "createdBy", "createdAt"])
}

fn key() -> Value {
    let nullable = |what: &str| json!({ "type": ["string", "null"], "description": what });
    let members = [
        ("id", id("key_")),
        ("prefix", text()),
        ("label", nullable("What people call it.")),
        ("scope", word(&["agent", "admin", "inference"])),
        ("principalId", id("prp_")),
        ("teamId", nullable("A `team_` id.")),
        ("taskClassId", nullable("The class of its tasks where a call names none.")),
        ("policyProfileId", nullable("A `pol_` id.")),
        ("taskClassOpen", json!({ "type": "boolean" })),
        ("agentId", id("agt_")),
        ("state", word(&["active", "revoked", "expired"])),
        ("lastUsedAt", nullable("When it was last shown to this server since its start.")),
        ("expiresAt", nullable("When it ends by itself.")),
        ("createdBy", maker()),
        ("createdAt", time()),
    ];
    object(&members, &["id", "prefix", "label", "scope", "principalId", "state", "createdBy", "createdAt"])
}

fn new_key() -> Value {
    let members = [
        ("scope", word(&["inference", "admin"])),
        ("principalId", id("prp_")),
        ("teamId", id("team_")),
        ("label", name()),
        ("taskClassId", json!({ "type": "string", "maxLength": 64 })),
        ("policyProfileId", id("pol_")),
        ("taskClassOpen", json!({ "type": "boolean" })),
        ("expiresInDays", json!({ "type": "integer", "minimum": 1, "maximum": 3650 })),
    ];
    object(&members, &[])
}

fn scopes() -> Value {
    let words = ["agents:read", "agents:write", "agents:freeze", "approvals:read", "evidence:read"];
    json!({ "type": "array", "minItems": 1, "items": word(&words) })
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
        ("state", word(&["active", "revoked", "expired"])),
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

fn settings() -> Value {
    let number = |min: i64, max: i64| json!({ "type": ["integer", "null"], "minimum": min, "maximum": max });
    let lines = || json!({ "type": ["object", "null"], "description": "`{ currency: minor units }`" });
    let inner = |what: &str| json!({ "type": ["object", "null"], "description": what });
    let members = [
        ("name", name()),
        ("timezone", json!({ "type": ["string", "null"], "description": "An IANA name." })),
        ("currency", json!({ "type": ["string", "null"], "description": "ISO 4217." })),
        ("agentVelocity", inner("`{ toolVelocityCount, velocityCount, velocityMinutes }`")),
        ("outsideMandate", json!({ "type": ["string", "null"], "enum": ["ask", "deny", null] })),
        ("provenance", inner("`{ mismatch, undeclared, windowMinutes }`")),
        ("approvalHours", number(1, 168)),
        ("secondPersonAbove", lines()),
        ("secondPersonAgeDays", number(0, 90)),
        ("receiptMinutes", number(1, 1_440)),
        ("maxWaiting", number(1, 1_000)),
        ("freezeCeilingPerHour", number(1, 1_000_000)),
        ("dataLoss", json!({ "type": ["string", "null"], "enum": ["off", "flag", "redact", "block", null] })),
        ("signIn", inner("`{ requireTwoFactor, requireSso, ssoDomains }`")),
        ("stepUpAbove", lines()),
        ("retentionDays", number(30, 3_650)),
    ];
    object(&members, &[])
}
