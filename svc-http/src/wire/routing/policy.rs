//! Classes of tasks and policy profiles: constraints, and what they are called.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::gateway::classes::{self, Limit};
use svc_core::rules::gateway::profiles;
use svc_core::state::gateway::{Constraints, Mode, Profile, TaskClass};
use svc_core::value::json::Json;
use svc_core::value::text::{ClassId, Label, ModelName, UpstreamName};
use svc_core::value::{Invalid, MicroUsd, SAFE_MAX};

use super::super::named::Names;
use super::super::{Fields, parse, parse_or_empty, text, truth};
use super::{CAPABILITIES_MAX, capability, law, mode, objective, put, put_texts, within};

/// Models, providers or laws of one list.
const LIST_MAX: usize = 200;
/// The longest latency that may be asked for, in milliseconds.
const LATENCY_MAX_MS: i64 = 3_600_000;

const LIMITS: [&str; 10] = [
    "models",
    "providers",
    "jurisdictions",
    "retention",
    "capabilities",
    "minQuality",
    "maxCostMicros",
    "maxLatencyMs",
    "humanOversight",
    "objective",
];

/// What a class that is changed names.
pub const IDS: &[(&str, Names)] = &[MODELS, PROVIDERS];
/// What a class that is made names.
pub const CLASS_IDS: &[(&str, Names)] = &[("id", Names::NewClass), MODELS, PROVIDERS];
/// What a profile names.
pub const PROFILE_IDS: &[(&str, Names)] = &[("name", Names::NewProfile), MODELS, PROVIDERS];

const MODELS: (&str, Names) = ("models.[]", Names::Model);
const PROVIDERS: (&str, Names) = ("providers.[]", Names::Provider);

/// Reads a class that is to be made: its id and what is set.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_new_class(body: &[u8]) -> Result<(ClassId, Vec<classes::Set>), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["id", "name"].into_iter().chain(LIMITS).collect::<Vec<_>>());
    let id = fields.required("id", |it| ClassId::parse(text(it)?));
    let set = class(&mut fields);
    fields.finish(id.map(|id| (id, set)))
}

/// Reads what changes of a class; `null` takes a member away.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_class(body: &[u8]) -> Result<Vec<classes::Set>, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["name"].into_iter().chain(LIMITS).collect::<Vec<_>>());
    let set = class(&mut fields);
    fields.finish(Some(set))
}

fn class(fields: &mut Fields<'_>) -> Vec<classes::Set> {
    let mut set = Vec::new();
    put(fields, "name", &mut set, |it| Label::parse(text(it)?), classes::Set::Name);
    set.extend(limits(fields).into_iter().map(classes::Set::Limit));
    set
}

/// Reads a profile that is to be made (`is_new`) or changed; `null` takes a member away.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_profile(body: &[u8], is_new: bool) -> Result<Vec<profiles::Set>, Refusal> {
    let json = if is_new { parse(body)? } else { parse_or_empty(body)? };
    let mut fields = Fields::of(&json)?;
    fields.only(&["name", "mode"].into_iter().chain(LIMITS).collect::<Vec<_>>());
    let name = |it: &Json| Label::parse(text(it)?);
    let name = if is_new { fields.required("name", name) } else { fields.optional("name", name) };
    let mut set: Vec<profiles::Set> = name.map(profiles::Set::Name).into_iter().collect();
    put(&mut fields, "mode", &mut set, mode, profiles::Set::Mode);
    set.extend(limits(&mut fields).into_iter().map(profiles::Set::Limit));
    fields.finish(Some(set))
}

fn limits(fields: &mut Fields<'_>) -> Vec<Limit> {
    let mut set = Vec::new();
    // A list that admits nothing is no limit to be met: `null` takes one away, and the last item does not.
    let mut seen = BTreeSet::new();
    let model = |it: &str| {
        let name = ModelName::parse(it)?;
        let is_new = seen.insert(name.clone());
        if is_new { Ok(name.as_str().into()) } else { Err(Invalid::new(format!("is `{name}` again"))) }
    };
    put_texts(fields, ("models", 1, LIST_MAX), &mut set, model, |it| Limit::Models(it.unwrap_or_default()));
    let provider = |it: &str| UpstreamName::parse(it).map(|it| it.as_str().into());
    put_texts(fields, ("providers", 1, LIST_MAX), &mut set, provider, |it| Limit::Providers(it.unwrap_or_default()));
    put_texts(fields, ("jurisdictions", 1, LIST_MAX), &mut set, law, |it| Limit::Jurisdictions(it.unwrap_or_default()));
    let retention = |it: &Json| if text(it)? == "none" { Ok(true) } else { Err(Invalid::new("must be `none`")) };
    put(fields, "retention", &mut set, retention, |it| Limit::NoRetention(it.unwrap_or_default()));
    put_texts(fields, ("capabilities", 0, CAPABILITIES_MAX), &mut set, capability, |it| {
        Limit::Capabilities(it.unwrap_or_default())
    });
    let quality = |it: &Json| u8::try_from(within(it, 0, 100)?).map_err(|_| Invalid::new("must be between 0 and 100"));
    put(fields, "minQuality", &mut set, quality, Limit::MinQuality);
    let cost = |it: &Json| within(it, 0, SAFE_MAX).map(MicroUsd::new);
    put(fields, "maxCostMicros", &mut set, cost, Limit::MaxCost);
    let latency = |it: &Json| within(it, 1, LATENCY_MAX_MS);
    put(fields, "maxLatencyMs", &mut set, latency, Limit::MaxLatencyMs);
    put(fields, "humanOversight", &mut set, truth, |it| Limit::HumanOversight(it.unwrap_or_default()));
    put(fields, "objective", &mut set, objective, Limit::Objective);
    set
}

/// A class as it stands.
#[must_use]
pub fn write_class(class: &TaskClass) -> Value {
    let mut out = write_limits(&class.constraints);
    out.insert("id".to_owned(), json!(class.id));
    out.insert("name".to_owned(), json!(class.name));
    out.insert("createdAt".to_owned(), json!(class.created_at.to_string()));
    out.insert("createdBy".to_owned(), json!(class.created_by.as_ref().map(ToString::to_string)));
    Value::Object(out)
}

/// A profile as it stands.
#[must_use]
pub fn write_profile(profile: &Profile) -> Value {
    let mut out = write_limits(&profile.constraints);
    out.insert("id".to_owned(), json!(profile.id));
    out.insert("name".to_owned(), json!(profile.name));
    out.insert("mode".to_owned(), json!(profile.mode.map(Mode::as_str)));
    out.insert("createdAt".to_owned(), json!(profile.created_at.to_string()));
    out.insert("createdBy".to_owned(), json!(profile.created_by.as_ref().map(ToString::to_string)));
    Value::Object(out)
}

/// A list that holds something.
fn some(list: Value) -> Value {
    if list.as_array().is_some_and(Vec::is_empty) { Value::Null } else { list }
}

/// Every member as it may be sent: where nothing is asked of a list, it is absent and not empty.
fn write_limits(limits: &Constraints) -> Map<String, Value> {
    let members = [
        ("models", some(json!(limits.models))),
        ("providers", some(json!(limits.providers))),
        ("jurisdictions", some(json!(limits.jurisdictions))),
        ("retention", json!(limits.no_retention.then_some("none"))),
        ("capabilities", json!(limits.capabilities)),
        ("minQuality", json!(limits.min_quality)),
        ("maxCostMicros", json!(limits.max_cost)),
        ("maxLatencyMs", json!(limits.max_latency_ms)),
        ("humanOversight", json!(limits.human_oversight)),
        ("objective", json!(limits.objective.map(|it| it.as_str()))),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Every wrong item of a constraint's list is named by its place, one that stands there twice among them.
    #[test]
    fn items_of_constraints_are_named_by_their_places() {
        let body = r#"{"models":["a/b","a/b",1],"providers":["ok","not one"],"jurisdictions":["de","DE"],
            "capabilities":["tools","magic","vision",null]}"#;
        let refusal = read_class(body.as_bytes()).unwrap_err();
        let fields: Vec<_> = refusal.errors().iter().map(|it| it.field.as_deref().unwrap()).collect();
        let expected = ["models.1", "models.2", "providers.1", "jurisdictions.1", "capabilities.1", "capabilities.3"];
        assert_eq!(fields, expected);
        let sound = r#"{"models":["b","a"],"providers":null,"jurisdictions":["eu"],"capabilities":["tools"]}"#;
        assert_eq!(read_class(sound.as_bytes()).unwrap().len(), 4);
        let empty = br#"{"models":[],"providers":[],"jurisdictions":[],"capabilities":[]}"#;
        let refusal = read_class(empty).unwrap_err();
        let fields: Vec<_> = refusal.errors().iter().map(|it| it.field.as_deref().unwrap()).collect();
        assert_eq!(fields, ["models", "providers", "jurisdictions"], "an emptied list is no open one");
    }
}
