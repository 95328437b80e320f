//! The schemas of mandates and templates.

use serde_json::{Value, json};
use svc_core::state::gate::{Duplicates, MandateState, OnLimit};
use svc_core::value::period::Period;

use super::administration::{list, maker, name, object, text};
use super::{amount, currency, id, reference, time, words};

/// The schemas of this family, each with its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    let confirm = || ("confirmBroaden", json!({ "type": "boolean" }));
    let with = |more: &[(&'static str, Value)]| [&terms(1), more].concat();
    vec![
        ("Mandate", mandate()),
        ("Mandates", list("Mandate")),
        ("NewMandate", whole_or_template(with(&[("template", name()), confirm()]))),
        ("BlueprintMandate", whole_or_template(with(&[("template", name())]))),
        ("MandateChange", object(&with(&[("state", words(&MandateState::SET, MandateState::as_str)), confirm()]), &[])),
        ("Template", template()),
        ("Templates", list("Template")),
        ("TemplateTerms", template_terms(1)),
        ("NewTemplate", object(&[("name", name()), ("mandate", reference("TemplateTerms"))], &["name", "mandate"])),
        ("Duplicates", duplicates()),
        ("TemplateChange", object(&[("mandate", reference("TemplateTerms"))], &[])),
    ]
}

/// What a person sets. `least` is the smallest limit: 1, but 0 in records, since a canary's are none.
fn terms(least: u32) -> Vec<(&'static str, Value)> {
    let told = |schema, what: &str| super::with_description(schema, what);
    let lists = |of: &Value| object(&[("allow", of.clone()), ("deny", of.clone())], &[]);
    let domains = texts("A domain, or `*.` before one for those under it.");
    let globs = texts("A glob over `server/name`, or `name` where there is no server.");
    let allowed = object(&[("allow", texts("A name of `data.fields`, or of a member of `details`."))], &["allow"]);
    // By name in bodies, which `anyOf` puts together: a generator names no type after a list of words within such a one.
    let same = if least == 0 { duplicates() } else { reference("Duplicates") };
    vec![
        ("name", name()),
        ("actions", texts("A type of actions, or `prefix.*` for every type that begins so.")),
        ("limits", limits(least)),
        ("merchants", told(lists(&domains), "Who may be paid; what is denied is denied by every mandate.")),
        ("fields", told(allowed, "What may be shared.")),
        ("tools", told(lists(&globs), "What may be called; what is denied is denied by every mandate.")),
        ("duplicates", told(same, "What the same payment again within ten minutes brings about.")),
        ("expiresAt", time()),
    ]
}

fn duplicates() -> Value {
    words(&Duplicates::ALL, Duplicates::as_str)
}

fn texts(what: &str) -> Value {
    json!({ "type": "array", "minItems": 1, "maxItems": 1000, "items": { "type": "string", "minLength": 1, "description": what } })
}

fn period() -> Value {
    words(&Period::COUNTED, Period::as_str)
}

fn limits(least: u32) -> Value {
    let count = json!({ "type": "integer", "minimum": least, "maximum": u32::MAX });
    let members = [
        ("currency", currency()),
        ("perAction", amount(least)),
        ("perPeriod", object(&[("amount", amount(least)), ("period", period())], &["amount", "period"])),
        ("count", object(&[("max", count), ("period", period())], &["max", "period"])),
        ("askAbove", super::with_description(amount(least), "Above it a person is asked; in minor units.")),
        ("onLimit", words(&OnLimit::ALL, OnLimit::as_str)),
    ];
    let told =
        "Amounts in minor units of `currency`, which a mandate for payments needs, with `perAction` or `perPeriod`.";
    super::with_description(object(&members, &[]), told)
}

/// A mandate by its template, which says all of it, or whole.
fn whole_or_template(members: Vec<(&'static str, Value)>) -> Value {
    let mut schema = object(&members, &[]);
    let either = json!([{ "required": ["template"] }, { "required": ["actions", "name"] }]);
    crate::wire::put(&mut schema, "anyOf", either);
    schema
}

fn template_terms(least: u32) -> Value {
    object(&terms(least), &["actions"])
}

fn mandate() -> Value {
    let mut members = terms(0);
    members.extend([
        ("usage", usage()),
        ("id", id("mnd_")),
        ("agentId", id("agt_")),
        ("template", name()),
        ("version", json!({ "type": "integer", "minimum": 1 })),
        ("state", words(&MandateState::ALL, MandateState::as_str)),
        (
            "createdBy",
            super::with_description(
                maker(),
                "Who made this version: a `prp_` or `key_` id or `token:<name>`; `null` is the program.",
            ),
        ),
        ("createdAt", super::with_description(time(), "When this version was made. A change makes a new one.")),
    ]);
    object(&members, &["id", "agentId", "name", "actions", "duplicates", "version", "state", "createdBy", "createdAt"])
}

/// What running periods hold, each with whether there is room.
fn usage() -> Value {
    let told = super::with_description;
    let whole = |what: &str| told(amount(0), what);
    let running = |of: &str| {
        [
            ("period", period()),
            ("periodStart", time()),
            ("periodEnd", told(time(), "From then on the next period runs, of which nothing is used.")),
            ("limit", whole("What the limit is now.")),
            ("used", whole(of)),
            ("remaining", whole("What is left of the limit; 0 also where more than the limit is used.")),
            ("clearsAt", told(time(), "When there is room again, where there is none: the end of the period.")),
        ]
    };
    let always = ["period", "periodStart", "periodEnd", "limit", "used", "remaining"];
    let spend = [
        ("currency", currency()),
        ("reserved", whole("Of actions that are allowed or wait for a person, and are not settled.")),
        (
            "settled",
            whole(
                "Of actions that were settled or lapsed; where a change of the mandate began to count this kind of period, also of those that were open then.",
            ),
        ),
        (
            "excess",
            whole("What persons let pass beyond the limit. It is not in `used`: it neither fills nor frees the limit."),
        ),
    ];
    let spend = object(
        &[&running("`reserved` and `settled` together.")[..], &spend].concat(),
        &[&always[..], &["currency", "reserved", "settled", "excess"]].concat(),
    );
    let count =
        object(&running("Actions, but for those that were denied, expired or let pass beyond the limit."), &always);
    let members = [
        ("spend", told(spend, "Against `limits.perPeriod`, where the mandate has it; in minor units.")),
        ("count", told(count, "Against `limits.count`, where the mandate has it.")),
    ];
    told(
        object(&members, &[]),
        "What the running periods hold, by the sums that decisions go by, whatever the version; where one mandate or an agent's are read, and not of a revoked one.",
    )
}

fn template() -> Value {
    let members = [
        ("id", text()),
        ("name", name()),
        ("builtIn", json!({ "type": "boolean" })),
        ("mandate", template_terms(0)),
        ("createdBy", maker()),
        ("createdAt", time()),
    ];
    object(&members, &["id", "name", "builtIn", "mandate", "createdBy", "createdAt"])
}
