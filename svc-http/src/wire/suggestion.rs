//! Suggested rules (CONTRACT part 2, "Drill, suggested rule, scorecard").

use serde_json::{Map, Value, json};
use svc_core::rules::gate::suggest::Suggestion;
use svc_core::state::gate::{Limits, Terms};

/// A suggestion as an item of a list; `mandate` is a body for `POST mandates`.
#[must_use]
pub fn item(it: &Suggestion) -> Value {
    let mut item = json!({
        "id": it.id,
        "kind": it.kind.as_str(),
        "agentId": it.agent,
        "mandate": mandate(&it.terms),
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

fn mandate(terms: &Terms) -> Value {
    let mut out = Map::new();
    let texts = |list: &mut dyn Iterator<Item = String>| json!(list.collect::<Vec<_>>());
    out.insert("name".into(), json!(terms.name.as_str()));
    out.insert("actions".into(), texts(&mut terms.actions.iter().map(ToString::to_string)));
    if let Some(it) = &terms.limits {
        out.insert("limits".into(), limits(it));
    }
    let mut lists = |name: &str, allow: Option<Vec<String>>, deny: Option<Vec<String>>| {
        let mut inner = Map::new();
        inner.extend(allow.map(|it| ("allow".to_owned(), json!(it))));
        inner.extend(deny.map(|it| ("deny".to_owned(), json!(it))));
        out.insert(name.to_owned(), Value::Object(inner));
    };
    let domains =
        |list: &Vec<_>| list.iter().map(|it: &svc_core::value::domain::DomainPattern| it.to_string()).collect();
    let globs =
        |list: &Vec<_>| list.iter().map(|it: &svc_core::value::glob::ToolGlob| it.as_str().to_owned()).collect();
    if let Some(it) = &terms.merchants {
        lists("merchants", it.allow.as_ref().map(domains), it.deny.as_ref().map(domains));
    }
    if let Some(it) = &terms.tools {
        lists("tools", it.allow.as_ref().map(globs), it.deny.as_ref().map(globs));
    }
    if let Some(it) = &terms.fields {
        let names: Vec<&str> = it.allow.iter().map(|it| it.as_str()).collect();
        out.insert("fields".into(), json!({ "allow": names }));
    }
    out.insert("duplicates".into(), json!(terms.duplicates.as_str()));
    if let Some(at) = terms.expires_at {
        out.insert("expiresAt".into(), json!(at.to_string()));
    }
    Value::Object(out)
}

fn limits(limits: &Limits) -> Value {
    let mut out = Map::new();
    let mut set = |name: &str, value: Option<Value>| out.extend(value.map(|it| (name.to_owned(), it)));
    set("currency", limits.currency.map(|it| json!(it.as_str())));
    set("perAction", limits.per_action.map(|it| json!(it)));
    let per = limits.per_period.as_ref();
    set("perPeriod", per.map(|it| json!({ "amount": it.amount, "period": it.period.as_str() })));
    set("count", limits.count.as_ref().map(|it| json!({ "max": it.max, "period": it.period.as_str() })));
    set("askAbove", limits.ask_above.map(|it| json!(it)));
    set("onLimit", Some(json!(limits.on_limit.as_str())));
    Value::Object(out)
}
