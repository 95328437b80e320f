//! The schemas of OAuth and of connections.

use serde_json::{Value, json};
use svc_core::state::connect::{ClientAuth, EndedBy};

use super::{faults, id, known, reference, time, words};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    [oauth(), answers(), mcp()].concat()
}

fn oauth() -> Vec<(&'static str, Value)> {
    vec![
        ("AuthorizationServer", server()),
        (
            "ProtectedResource",
            object(&["resource", "authorization_servers", "scopes_supported", "bearer_methods_supported"]),
        ),
        ("ClientRegistration", registration()),
        ("RegisteredClient", registered()),
        ("ConsentForm", form(&["request", "choice"], &["agentId", "next"])),
        ("SignInForm", form(&["request", "next"], &["email", "password", "pending", "code"])),
        (
            "TokenForm",
            form(
                &["grant_type"],
                &[
                    "client_id",
                    "client_secret",
                    "code",
                    "code_verifier",
                    "redirect_uri",
                    "refresh_token",
                    "scope",
                    "resource",
                ],
            ),
        ),
        ("RevocationForm", form(&["token"], &["client_id", "client_secret", "token_type_hint"])),
    ]
}

fn answers() -> Vec<(&'static str, Value)> {
    vec![
        (
            "Tokens",
            json!({
                "type": "object",
                "required": ["access_token", "token_type", "expires_in", "refresh_token", "scope"],
                "properties": {
                    "access_token": { "type": "string", "pattern": "^aat_" },
                    "token_type": { "type": "string", "enum": ["Bearer"] },
                    "expires_in": { "type": "integer", "minimum": 1, "description": "Seconds." },
                    "refresh_token": { "type": "string", "pattern": "^art_" },
                    "scope": known(&["svc:agent"]),
                },
            }),
        ),
        (
            "OAuthError",
            json!({
                "type": "object",
                "required": ["error", "error_description", "requestId"],
                "properties": {
                    "error": { "type": "string" },
                    "error_description": { "type": "string" },
                    "requestId": { "type": "string" },
                    "fix": { "type": "string" },
                    "docs": { "type": "string" },
                    "errors": faults(),
                    "didYouMean": { "type": "string" },
                },
            }),
        ),
        ("Connection", connection()),
        (
            "Connections",
            json!({
                "type": "object",
                "required": ["data", "nextCursor"],
                "properties": {
                    "data": { "type": "array", "items": reference("Connection") },
                    "nextCursor": { "type": ["string", "null"] },
                },
            }),
        ),
    ]
}

fn mcp() -> Vec<(&'static str, Value)> {
    vec![
        (
            "McpMessage",
            json!({
                "type": "object",
                "description": "A request or a notification; an answer is taken as well, and not looked at.",
                "required": ["jsonrpc"],
                "anyOf": [{ "required": ["method"] }, { "required": ["result"] }, { "required": ["error"] }],
                "properties": {
                    "jsonrpc": { "type": "string", "pattern": "^2[.]0$" },
                    "id": { "type": ["string", "integer"] },
                    "method": { "type": "string" },
                    "params": { "type": "object" },
                },
            }),
        ),
        (
            "McpAnswer",
            json!({
                "type": "object",
                "required": ["jsonrpc", "id"],
                "properties": {
                    "jsonrpc": { "type": "string", "enum": ["2.0"] },
                    "id": { "type": ["string", "integer", "null"] },
                    "result": { "type": "object" },
                    "error": { "type": "object" },
                },
            }),
        ),
        ("McpErrorData", error_data()),
        (
            "McpError",
            json!({
                "type": "object",
                "required": ["jsonrpc", "id", "error"],
                "properties": {
                    "jsonrpc": { "type": "string", "enum": ["2.0"] },
                    "id": { "type": ["string", "integer", "null"] },
                    "error": {
                        "description": "As every other error, and as JSON-RPC has it: its members stand in `data` too.",
                        "allOf": [reference("McpErrorData")],
                        "required": ["code", "message", "data"],
                        "properties": { "code": { "type": "integer" }, "data": reference("McpErrorData") },
                    },
                },
            }),
        ),
    ]
}

/// The members of every other error, and what a version that is not spoken is answered with. The message stands beside them.
fn error_data() -> Value {
    let mut data = super::error_details();
    crate::wire::put(&mut data, "required", json!(["type", "requestId", "docs"]));
    if let Some(members) = data.get_mut("properties") {
        crate::wire::put(members, "supported", json!({ "type": "array", "items": { "type": "string" } }));
        crate::wire::put(members, "requested", json!({ "type": "string" }));
    }
    data
}

fn object(required: &[&str]) -> Value {
    json!({ "type": "object", "required": required })
}

fn form(required: &[&str], optional: &[&str]) -> Value {
    let text = |name: &&str| ((*name).to_owned(), json!({ "type": "string" }));
    let members: serde_json::Map<String, Value> = required.iter().chain(optional).map(text).collect();
    json!({ "type": "object", "required": required, "properties": members })
}

fn server() -> Value {
    object(&[
        "issuer",
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "revocation_endpoint",
        "response_types_supported",
        "grant_types_supported",
        "code_challenge_methods_supported",
        "token_endpoint_auth_methods_supported",
        "scopes_supported",
    ])
}

fn registration() -> Value {
    json!({
        "type": "object",
        "required": ["redirect_uris"],
        "properties": {
            "client_name": { "type": "string", "minLength": 1, "maxLength": 100 },
            "redirect_uris": {
                "type": "array", "minItems": 1, "maxItems": 20,
                "items": { "type": "string", "description": "https, or http on a loopback address." },
            },
            "token_endpoint_auth_method": auth(),
            "grant_types": { "type": "array", "items": { "type": "string" } },
            "response_types": { "type": "array", "items": { "type": "string" } },
        },
    })
}

fn auth() -> Value {
    let mut ways = words(&ClientAuth::ALL, ClientAuth::as_str);
    crate::wire::put(&mut ways, "default", json!(ClientAuth::None.as_str()));
    ways
}

fn registered() -> Value {
    json!({
        "type": "object",
        "required": ["client_id", "client_id_issued_at", "client_name", "redirect_uris", "grant_types", "response_types", "token_endpoint_auth_method"],
        "properties": {
            "client_id": id("mcp_"),
            "client_id_issued_at": { "type": "integer" },
            "client_name": { "type": "string" },
            "redirect_uris": { "type": "array", "items": { "type": "string" } },
            "grant_types": { "type": "array", "items": { "type": "string" } },
            "response_types": { "type": "array", "items": { "type": "string" } },
            "scope": known(&["svc:agent"]),
            "application_type": { "type": "string" },
            "client_uri": { "type": "string" },
            "logo_uri": { "type": "string" },
            "tos_uri": { "type": "string" },
            "policy_uri": { "type": "string" },
            "software_id": { "type": "string" },
            "software_version": { "type": "string" },
            "contacts": { "type": "array", "items": { "type": "string" } },
            "jwks_uri": { "type": "string" },
            "token_endpoint_auth_method": auth(),
            "client_secret": { "type": "string" },
            "client_secret_expires_at": { "type": "integer", "minimum": 0, "description": "0: never." },
        },
    })
}

fn connection() -> Value {
    json!({
        "type": "object",
        "required": ["id", "clientId", "clientName", "redirectHost", "agentId", "principalId", "createdAt", "createdBy", "lastUsedAt", "state"],
        "properties": {
            "id": id("con_"),
            "clientId": { "type": "string" },
            "clientName": { "type": "string" },
            "redirectHost": { "type": "string" },
            "agentId": id("agt_"),
            "principalId": id("prp_"),
            "createdAt": time(),
            "createdBy": id("prp_"),
            "lastUsedAt": time(),
            "state": { "type": "string", "enum": ["active", "ended"] },
            "endedBy": words(&EndedBy::ALL, EndedBy::as_str),
            "endedAt": time(),
            "note": { "type": "string" },
        },
    })
}
