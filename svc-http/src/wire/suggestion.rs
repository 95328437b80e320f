//! Suggested rules (CONTRACT part 2, "Drill, suggested rule, scorecard").

use serde_json::{Value, json};
use svc_core::rules::gate::suggest::Suggestion;

use super::mandate;

/// A suggestion as an item of a list; `mandate` is a body for `POST mandates`.
#[must_use]
pub fn item(it: &Suggestion) -> Value {
    let mut item = json!({
        "id": it.id,
        "kind": it.kind.as_str(),
        "agentId": it.agent,
        "mandate": mandate::members(&it.terms),
        "because": it.because,
        "window": { "from": it.window.0.to_string(), "to": it.window.1.to_string() },
        "wouldHaveSaved": it.would_have_saved,
        "wouldHaveAllowed": it.would_have_allowed,
        "confirmBroaden": it.confirm_broaden,
    });
    if let (Some(replaces), Some(members)) = (it.replaces, item.as_object_mut()) {
        members.insert("replaces".to_owned(), json!(replaces));
    }
    item
}
