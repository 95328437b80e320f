//! The schemas of members and teams.

use serde_json::{Value, json};
use svc_core::state::people::{MemberState, Role};

use super::{id, reference, time, words};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Member", member()),
        ("Members", list("Member")),
        ("PendingMember", super::stops::waiting(&[])),
        ("NewMember", new_member()),
        ("MemberChange", json!({ "type": "object", "properties": { "role": role(), "teamIds": ids("team_", 50) } })),
        ("Team", team()),
        ("Teams", list("Team")),
        ("NewTeam", team_wish(&["name"])),
        ("TeamChange", team_wish(&[])),
    ]
}

/// What a member may do.
pub(super) fn role() -> Value {
    words(&Role::ALL, Role::as_str)
}

fn ids(prefix: &str, max: usize) -> Value {
    json!({ "type": "array", "maxItems": max, "items": id(prefix) })
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

fn member() -> Value {
    json!({
        "type": "object",
        "required": ["id", "principalId", "email", "name", "role", "state", "teamIds", "invitedBy", "createdAt", "createdBy"],
        "properties": {
            "id": id("prp_"),
            "principalId": id("prp_"),
            "email": { "type": "string" },
            "name": { "type": ["string", "null"] },
            "role": role(),
            "state": words(&MemberState::ALL, MemberState::as_str),
            "teamIds": ids("team_", 50),
            "invitedBy": { "type": ["string", "null"] },
            "signInLink": { "type": "string", "description": "Signs in once: shown to whom invites somebody who has never signed in and is a member nowhere else." },
            "createdAt": time(),
            "createdBy": { "type": ["string", "null"] },
        },
    })
}

fn new_member() -> Value {
    json!({
        "type": "object",
        "required": ["email", "role"],
        "properties": {
            "email": { "type": "string", "minLength": 3, "maxLength": 254 },
            "name": { "type": "string", "minLength": 1, "maxLength": 100 },
            "role": role(),
            "teamIds": ids("team_", 50),
        },
    })
}

fn team() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "memberIds", "createdAt", "createdBy"],
        "properties": {
            "id": id("team_"),
            "name": { "type": "string" },
            "owner": id("prp_"),
            "memberIds": ids("prp_", 1000),
            "createdAt": time(),
            "createdBy": { "type": ["string", "null"] },
        },
    })
}

fn team_wish(required: &[&str]) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 100 },
            "owner": id("prp_"),
            "memberIds": ids("prp_", 1000),
        },
    });
    if let Some(members) = schema.as_object_mut().filter(|_| !required.is_empty()) {
        members.insert("required".to_owned(), json!(required));
    }
    schema
}
