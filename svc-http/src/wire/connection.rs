//! A connection as members read it.

use serde_json::{Value, json};
use svc_core::state::connect::{Connection, EndedBy};
use svc_core::value::Timestamp;

/// A connection. `seen` is when this node last saw one of its tokens.
#[must_use]
pub fn write(it: &Connection, seen: Option<Timestamp>) -> Value {
    let last_used = seen.unwrap_or(it.refreshed_at).max(it.refreshed_at);
    let mut body = json!({
        "id": it.id.to_string(),
        "clientId": it.client,
        "clientName": it.client_name.as_str(),
        "redirectHost": it.redirect_host,
        "agentId": it.agent.to_string(),
        "principalId": it.person.to_string(),
        "createdAt": it.created_at.to_string(),
        "createdBy": it.person.to_string(),
        "lastUsedAt": last_used.to_string(),
        "state": if it.ended.is_some() { "ended" } else { "active" },
    });
    if let Some(ended) = &it.ended {
        super::put(&mut body, "endedBy", json!(ended.by.as_str()));
        super::put(&mut body, "endedAt", json!(ended.at.to_string()));
        if matches!(ended.by, EndedBy::Reuse | EndedBy::CodeReuse) {
            super::put(&mut body, "note", json!("a used token was shown again: connect again"));
        }
    }
    body
}
