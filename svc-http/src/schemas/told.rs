//! What answers have in common: words that may become more.
//!
//! Within a version of the interface answers gain values, and a client passes over those that it does not know (SPEC 9.2). A client that
//! is generated from a closed list throws instead, so a list in an answer is told as `x-extensible-enum`, which generators pass over. A
//! list of one word names the record itself, or is another standard's, and stays closed; where it is neither, `known` says so.
//!
//! **Invariant:** what a request points to is not touched: there a word that is none of the list is refused.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::routes;

/// Opens every list of words that answers alone hold.
pub(super) fn finish(schemas: &mut Map<String, Value>) {
    let sent = sent(schemas);
    schemas.iter_mut().filter(|(name, _)| !sent.contains(*name)).for_each(|(_, schema)| open(schema));
}

/// The names of all schemas that a request holds.
fn sent(schemas: &Map<String, Value>) -> BTreeSet<String> {
    let mut waiting: Vec<String> = routes::all().filter_map(|it| it.request).map(str::to_owned).collect();
    let mut done = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if let Some(schema) = schemas.get(&name).filter(|_| !done.contains(&name)) {
            point(schema, &mut waiting);
            done.insert(name);
        }
    }
    done
}

/// `named` takes the schemas that this one points to, at any depth.
fn point(schema: &Value, named: &mut Vec<String>) {
    match schema {
        Value::Object(parts) => {
            named.extend(
                parts.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()).map(str::to_owned),
            );
            parts.values().for_each(|it| point(it, named));
        }
        Value::Array(items) => items.iter().for_each(|it| point(it, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn open(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            let is_list = |it: &Value| it.as_array().is_some_and(|words| words.len() > 1);
            if parts.get("enum").is_some_and(is_list)
                && let Some(words) = parts.remove("enum")
            {
                parts.insert("x-extensible-enum".to_owned(), words);
            }
            parts.values_mut().for_each(open);
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemas;

    /// A word that a later version adds is read by clients of this one: lists in answers are open, those that are sent are not.
    #[test]
    fn words_of_answers_may_become_more() {
        fn closed(schema: &Value) -> bool {
            let words = schema["enum"].as_array().is_some_and(|it| it.len() > 1);
            let within = |it: &Value| match it {
                Value::Array(items) => items.iter().any(closed),
                it => closed(it),
            };
            words || schema.as_object().is_some_and(|it| it.values().any(within))
        }
        let all = schemas::all();
        let sent = sent(&all);
        for (name, schema) in all.iter().filter(|(name, _)| !sent.contains(*name)) {
            assert!(!closed(schema), "{name} is closed");
        }
        for (name, member) in [("Decision", "status"), ("Verdict", "reason"), ("ErrorDetails", "type")] {
            let words = &all[name]["properties"][member];
            assert!(words["type"] == "string" && words["enum"].is_null(), "{name}.{member}");
            assert!(words["x-extensible-enum"].as_array().is_some_and(|it| it.len() > 5), "{name}.{member}");
        }
        assert!(all["ReasonCode"]["x-extensible-enum"].is_array());
        for (name, member) in [("Outcome", "status"), ("NewServiceToken", "scopes")] {
            assert!(closed(&all[name]["properties"][member]), "{name}.{member}");
        }
    }
}
