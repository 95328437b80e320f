//! What bodies of requests have in common: which of them are closed, and where `null` may stand.
//!
//! A record that answers share with requests is described as it may be sent.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::routes::{self, Route, Shape};

/// Bodies that carry policy: a member of theirs that is not known is refused, at any depth (CONTRACT part 1, "Unknown members").
const CLOSED: [&str; 33] = [
    "AcceptTools",
    "AgentChange",
    "Blueprint",
    "BlueprintMandate",
    "BudgetChange",
    "BudgetRaise",
    "FleetFreeze",
    "IntegrationChange",
    "IntegrationTest",
    "MandateChange",
    "McpServerChange",
    "ModelChange",
    "NewBudget",
    "NewIntegration",
    "NewMandate",
    "NewMcpServer",
    "NewModel",
    "NewPolicyProfile",
    "NewPrices",
    "NewServiceToken",
    "NewTaskClass",
    "NewTemplate",
    "NewUpstream",
    "PolicyProfileChange",
    "Rotation",
    "RoutingChange",
    "SettingsChange",
    "TaskClassChange",
    "TemplateChange",
    "TemplateTerms",
    "TierChange",
    "TokenBlueprint",
    "UpstreamChange",
];

/// Members of changes that `null` does not take away, and that of an outcome, where it says that somebody's sum was lost.
const KEPT: [(&str, &[&str]); 5] = [
    ("AgentChange", &["name", "tier"]),
    ("BudgetChange", &["amount", "ladder", "owner"]),
    ("MandateChange", &["actions", "name", "state"]),
    ("Outcome", &["amount"]),
    ("SettingsChange", &["name"]),
];

/// Closes the bodies that are closed, and lets `null` stand for every member that need not be sent.
pub(super) fn finish(schemas: &mut Map<String, Value>) {
    let bodies = routes::all().filter(|it| reads_null(it)).filter_map(|it| it.request);
    let mut waiting: Vec<String> = bodies.map(str::to_owned).collect();
    let mut done: BTreeSet<String> = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let Some(schema) = schemas.get_mut(&name).filter(|_| !done.contains(&name)) else { continue };
        let kept = KEPT.iter().find(|(it, _)| *it == name).map_or(&[][..], |(_, members)| members);
        look(schema, CLOSED.contains(&name.as_str()), kept, &mut waiting);
        done.insert(name);
    }
}

/// A form has no `null`, and a message of MCP is read as JSON-RPC has it.
fn reads_null(route: &Route) -> bool {
    !route.takes_form() && route.shape != Shape::Rpc
}

/// `named` takes the schemas that this one points to.
fn look(schema: &mut Value, is_closed: bool, kept: &[&str], named: &mut Vec<String>) {
    let Some(parts) = schema.as_object_mut() else { return };
    named.extend(parts.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()).map(str::to_owned));
    if is_closed && parts.contains_key("properties") {
        parts.entry("additionalProperties").or_insert(json!(false));
    }
    let required = parts.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, member) in parts.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        look(member, is_closed, &[], named);
        if !kept.contains(&name.as_str()) && !required.iter().any(|it| it == name) {
            *member = nullable(member.take());
        }
    }
    for inner in ["items", "additionalProperties"] {
        parts.get_mut(inner).into_iter().for_each(|it| look(it, is_closed, &[], named));
    }
    for several in ["anyOf", "oneOf"] {
        let them = parts.get_mut(several).and_then(Value::as_array_mut);
        them.into_iter().flatten().for_each(|it| look(it, is_closed, &[], named));
    }
}

/// The same, or `null`.
fn nullable(mut schema: Value) -> Value {
    let nothing = json!({ "type": "null" });
    let Some(parts) = schema.as_object_mut() else { return schema };
    if parts.get("oneOf").and_then(Value::as_array).is_some_and(|it| it.contains(&nothing)) {
        return schema;
    }
    let is_listed = parts.contains_key("enum");
    match parts.get_mut("type").filter(|_| !is_listed) {
        Some(Value::Array(several)) => {
            if !several.iter().any(|it| it == "null") {
                several.push(json!("null"));
            }
            return schema;
        }
        Some(one) => {
            *one = json!([one.take(), "null"]);
            return schema;
        }
        None => {}
    }
    let outer = ["description", "default"].map(|name| (name, parts.remove(name)));
    let mut either = json!({ "oneOf": [schema, nothing] });
    for (name, value) in outer {
        value.into_iter().for_each(|it| crate::wire::put(&mut either, name, it));
    }
    either
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemas;

    /// Each name here is that of a schema, and of a body or of what one points to.
    #[test]
    fn every_name_is_that_of_a_schema() {
        let all = schemas::all();
        for name in CLOSED {
            assert_eq!(all[name]["additionalProperties"], false, "{name}");
        }
        for (name, members) in KEPT {
            for member in members {
                assert!(all[name]["properties"][member].is_object(), "{member} of {name}");
            }
        }
    }

    /// `null` is added to whatever a schema says, once.
    #[test]
    fn null_is_added_once() {
        let text = json!({ "type": ["string", "null"] });
        assert_eq!(nullable(json!({ "type": "string" })), text);
        assert_eq!(nullable(text.clone()), text);
        let several = json!({ "type": ["string", "array"] });
        assert_eq!(nullable(several)["type"], json!(["string", "array", "null"]));
        let words = json!({ "oneOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] });
        assert_eq!(nullable(json!({ "type": "string", "enum": ["a"] })), words);
        assert_eq!(nullable(words.clone()), words);
        let either = json!({ "oneOf": [{ "$ref": "#/x" }, { "type": "null" }], "description": "why" });
        assert_eq!(nullable(json!({ "$ref": "#/x", "description": "why" })), either);
        assert_eq!(nullable(either.clone()), either);
    }

    /// Closed at any depth, but not where the names are the sender's.
    #[test]
    fn closed_bodies_are_closed_within() {
        let all = schemas::all();
        let limits = &all["NewMandate"]["properties"]["limits"];
        assert_eq!(limits["properties"]["perPeriod"]["additionalProperties"], false);
        assert!(all["Mandate"]["properties"]["limits"]["additionalProperties"].is_null(), "answers may gain members");
        assert_eq!(all["NewUpstream"]["properties"]["headers"]["additionalProperties"]["type"], "string");
        assert!(all["NewMember"]["additionalProperties"].is_null());
    }
}
