//! Mandates and templates (CONTRACT part 2, "Mandate"): every fault of a body at once, and what answers show.

use serde_json::{Map, Value, json};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::people::mandates::{Content, Held};
use svc_core::rules::people::usage::Usage;
use svc_core::state::gate::{
    ActionPattern, CATALOGUE, Count, Duplicates, Fields as Allowed, Limits, LimitsChange, MandateState,
    MerchantsChange, OnLimit, PerPeriod, Set, Tally, Template, Terms, TermsChange, ToolsChange, WorkspaceTemplate,
};
use svc_core::value::currency::Currency;
use svc_core::value::domain::DomainPattern;
use svc_core::value::glob::ToolGlob;
use svc_core::value::json::Json;
use svc_core::value::period::Period;
use svc_core::value::text::Label;
use svc_core::value::{Invalid, Timestamp};

use super::named::Names;
use super::{Fields, bounded, integer, parse, parse_or_empty, put, text, truth};

/// Entries of one list of a mandate.
const LIST_MAX: usize = 1_000;
/// The members of a mandate that a person sets.
const SETTABLE: [&str; 8] = ["name", "actions", "limits", "merchants", "fields", "tools", "duplicates", "expiresAt"];

/// A wish for a mandate.
#[derive(Debug)]
pub struct NewMandate {
    /// What it says.
    pub content: Content,
    /// `confirmBroaden`.
    pub confirm_broaden: bool,
}

/// Reads a wish for a mandate.
///
/// # Errors
/// `invalid_json`, or `invalid_mandate` naming every fault.
pub fn read_new(body: &[u8], now: Timestamp) -> Result<NewMandate, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let confirm = fields.optional("confirmBroaden", truth);
    let content = content(&mut fields, now, &["confirmBroaden"]);
    let faults = fields.into_all_faults();
    match content {
        Some(content) if faults.is_empty() => Ok(NewMandate { content, confirm_broaden: confirm.unwrap_or_default() }),
        _ => Err(Refusal::invalid_mandate(faults)),
    }
}

/// A mandate by template, or whole. `more` are members of the body beside the mandate's own.
pub(super) fn content(fields: &mut Fields<'_>, now: Timestamp, more: &[&str]) -> Option<Content> {
    if fields.raw("template").is_some() {
        fields.only(&[&["template"], more].concat());
        let name = fields.required("template", |it| Label::parse(text(it)?));
        return name.map(|it| Content::Template(it.as_str().into()));
    }
    // A template that is `null` counts as not sent.
    fields.only(&[&SETTABLE[..], &["template"], more].concat());
    whole(fields, now).map(|it| Content::Whole(Box::new(it)))
}

/// A whole mandate, with everything that makes it none.
fn whole(fields: &mut Fields<'_>, now: Timestamp) -> Option<Terms> {
    ["name", "actions"].into_iter().for_each(|name| fields.demand(name));
    let change = change(fields);
    let completed = |change: &TermsChange| TermsChange {
        name: change.name.clone().or_else(|| Label::parse("mandate").ok()),
        actions: change.actions.clone().or_else(|| Some(vec![ActionPattern::parse("custom.none").ok()?])),
        ..change.clone()
    };
    if let Some(terms) = completed(&change).to_terms() {
        fields.note_beside(terms.faults(now));
    }
    change.to_terms()
}

/// A change of a mandate.
#[derive(Debug)]
pub struct MandateChange {
    /// What it says.
    pub change: TermsChange,
    /// Whether it is paused from now on.
    pub paused: Option<bool>,
    /// `confirmBroaden`.
    pub confirm_broaden: bool,
}

/// Reads a change of a mandate that says `old` now, or judges it by itself where there is none: members that are not named stay,
/// `null` takes one away.
///
/// # Errors
/// `invalid_json`, or `invalid_mandate` naming every fault.
pub fn read_change(body: &[u8], old: Option<&Terms>, now: Timestamp) -> Result<MandateChange, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let change = change_within(&mut fields, old, now);
    let faults = fields.into_all_faults();
    if faults.is_empty() { Ok(change) } else { Err(Refusal::invalid_mandate(faults)) }
}

/// A change of a mandate in a larger body, with everything that makes it none; without `old` it is judged by itself.
pub(super) fn change_within(fields: &mut Fields<'_>, old: Option<&Terms>, now: Timestamp) -> MandateChange {
    fields.only(&[&SETTABLE[..], &["state", "confirmBroaden"]].concat());
    let confirm = fields.optional("confirmBroaden", truth);
    let paused = fields.optional("state", |it| {
        let word = text(it)?;
        let state = MandateState::SET.into_iter().find(|it| it.as_str() == word);
        state.map(|it| it == MandateState::Paused).ok_or_else(|| Invalid::new("must be `active` or `paused`"))
    });
    for name in ["name", "actions", "state"] {
        if fields.is_null(name) {
            fields.fault(name, Invalid::new("cannot be taken away"));
        }
    }
    let change = change(fields);
    if let Some(old) = old {
        let terms = change.onto(old);
        if terms != *old {
            // An end that has passed is no fault of a body that does not name it: the mandate has expired, and that is said.
            let kept = terms.expires_at == old.expires_at;
            let is_own = |it: &FieldError| !kept || it.field.as_deref() != Some("expiresAt");
            fields.note_beside(terms.faults(now).into_iter().filter(is_own).collect());
            fields.note_beside(terms.faults_after(old));
        }
    }
    MandateChange { change, paused, confirm_broaden: confirm.unwrap_or_default() }
}

fn change(fields: &mut Fields<'_>) -> TermsChange {
    TermsChange {
        name: fields.optional("name", |it| Label::parse(text(it)?)),
        actions: fields.texts("actions", (0, LIST_MAX), ActionPattern::parse),
        limits: object(fields, "limits", limits),
        merchants: object(fields, "merchants", |it| {
            it.only(&["allow", "deny"]);
            MerchantsChange {
                allow: set_list(it, "allow", DomainPattern::parse),
                deny: set_list(it, "deny", DomainPattern::parse),
            }
        }),
        fields: match object(fields, "fields", |it| {
            it.only(&["allow"]);
            it.demand("allow");
            it.texts("allow", (0, LIST_MAX), Label::parse)
        }) {
            Set::Keep | Set::To(None) => Set::Keep,
            Set::Clear => Set::Clear,
            Set::To(Some(allow)) => Set::To(Allowed { allow }),
        },
        tools: object(fields, "tools", |it| {
            it.only(&["allow", "deny"]);
            ToolsChange {
                allow: set_list(it, "allow", ToolGlob::parse_new),
                deny: set_list(it, "deny", ToolGlob::parse_new),
            }
        }),
        duplicates: or_default(fields, "duplicates", |it| {
            Duplicates::parse(text(it)?).ok_or_else(|| Invalid::new("must be `ask` or `record`"))
        }),
        expires_at: set(fields, "expiresAt", |it| Timestamp::parse(text(it)?)),
    }
}

fn limits(fields: &mut Fields<'_>) -> LimitsChange {
    fields.only(&["currency", "perAction", "perPeriod", "count", "askAbove", "onLimit"]);
    LimitsChange {
        currency: set(fields, "currency", |it| Currency::parse(text(it)?)),
        per_action: set(fields, "perAction", integer),
        per_period: both(object(fields, "perPeriod", |it| {
            it.only(&["amount", "period"]);
            let (amount, period) = (it.required("amount", above_zero), it.required("period", period));
            Some(PerPeriod { amount: amount?, period: period? })
        })),
        count: both(object(fields, "count", |it| {
            it.only(&["max", "period"]);
            let max = it.required("max", |it| {
                let max = u32::try_from(integer(it)?).ok().filter(|it| *it > 0);
                max.ok_or_else(|| Invalid::new("must be between 1 and 4294967295"))
            });
            let period = it.required("period", period);
            Some(Count { max: max?, period: period? })
        })),
        ask_above: set(fields, "askAbove", integer),
        on_limit: or_default(fields, "onLimit", |it| {
            OnLimit::parse(text(it)?).ok_or_else(|| Invalid::new("must be `deny` or `ask`"))
        }),
    }
}

/// An amount that is judged by itself: what stands beside it may be at fault as well.
fn above_zero(value: &Json) -> Result<i64, Invalid> {
    match integer(value)? {
        amount @ 1.. => Ok(amount),
        _ => Err(Invalid::new("must be a whole number of minor units above zero")),
    }
}

fn period(value: &Json) -> Result<Period, Invalid> {
    Period::parse(text(value)?)
}

/// An object whose reader gave nothing has noted why.
fn both<T>(read: Set<Option<T>>) -> Set<T> {
    match read {
        Set::Keep | Set::To(None) => Set::Keep,
        Set::Clear => Set::Clear,
        Set::To(Some(it)) => Set::To(it),
    }
}

fn set<'a, T>(fields: &mut Fields<'a>, name: &str, read: impl FnOnce(&'a Json) -> Result<T, Invalid>) -> Set<T> {
    if fields.is_null(name) {
        return Set::Clear;
    }
    fields.optional(name, read).map_or(Set::Keep, Set::To)
}

fn or_default<'a, T: Default>(
    fields: &mut Fields<'a>,
    name: &str,
    read: impl FnOnce(&'a Json) -> Result<T, Invalid>,
) -> Option<T> {
    if fields.is_null(name) { Some(T::default()) } else { fields.optional(name, read) }
}

fn object<'a, T>(fields: &mut Fields<'a>, name: &str, read: impl FnOnce(&mut Fields<'a>) -> T) -> Set<T> {
    if fields.is_null(name) {
        return Set::Clear;
    }
    // What is sound of it is looked at also where something else in it is not: every fault is to be named.
    let mut found = None;
    fields.nested(name, |it| {
        found = Some(read(it));
        Some(())
    });
    found.map_or(Set::Keep, Set::To)
}

fn set_list<T>(fields: &mut Fields<'_>, name: &str, read: fn(&str) -> Result<T, Invalid>) -> Set<Vec<T>> {
    if fields.is_null(name) {
        return Set::Clear;
    }
    fields.texts(name, (0, LIST_MAX), read).map_or(Set::Keep, Set::To)
}

/// A mandate's record.
#[must_use]
pub fn write(held: &Held, now: Timestamp) -> Value {
    let mandate = &held.mandate;
    let mut out = members(mandate.terms());
    let expired = mandate.expires_at.is_some_and(|end| end <= now);
    let state = match &held.grant {
        None => MandateState::Revoked,
        Some(_) if expired => MandateState::Expired,
        Some(grant) => MandateState::set(grant.paused),
    };
    out.insert("id".to_owned(), json!(mandate.id.mandate));
    out.insert("agentId".to_owned(), json!(mandate.agent));
    out.insert("version".to_owned(), json!(mandate.id.version));
    out.insert("state".to_owned(), json!(state.as_str()));
    if let Some(template) = &mandate.template {
        out.insert("template".to_owned(), json!(template));
    }
    out.insert("createdBy".to_owned(), json!(mandate.created_by.as_ref().map(ToString::to_string)));
    out.insert("createdAt".to_owned(), json!(mandate.created_at.to_string()));
    Value::Object(out)
}

/// The same where it is read, with what its running periods hold; that of a revoked one is nobody's any more.
#[must_use]
pub fn write_used(held: &Held, usage: Option<&Usage>, now: Timestamp) -> Value {
    let mut out = write(held, now);
    if let Some(usage) = usage {
        put(&mut out, "usage", used(held.mandate.limits(), usage));
    }
    out
}

/// What running periods hold against their limits. Room is told as `velocity` of an agent tells it: `clearsAt` where there is none.
fn used(limits: &Limits, usage: &Usage) -> Value {
    let mut out = Map::new();
    if let (Some(per), Some(sum), Some(currency)) = (&limits.per_period, &usage.spend, limits.currency) {
        let mut row = running(sum, per.amount, sum.used());
        row.insert("currency".to_owned(), json!(currency));
        row.insert("reserved".to_owned(), json!(bounded(sum.reserved)));
        row.insert("settled".to_owned(), json!(bounded(sum.spent)));
        row.insert("excess".to_owned(), json!(bounded(sum.excess)));
        out.insert("spend".to_owned(), Value::Object(row));
    }
    if let (Some(count), Some(sum)) = (&limits.count, &usage.count) {
        out.insert("count".to_owned(), Value::Object(running(sum, count.max.into(), sum.count.into())));
    }
    Value::Object(out)
}

fn running(sum: &Tally, limit: i64, used: i64) -> Map<String, Value> {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("period", json!(sum.period.as_str()));
    put("periodStart", json!(sum.from.to_string()));
    put("periodEnd", json!(sum.until.to_string()));
    put("limit", json!(bounded(limit)));
    put("used", json!(bounded(used)));
    put("remaining", json!(bounded(limit.saturating_sub(used).max(0))));
    // A limit of nothing, which a canary has, has no room in the next period either.
    if used >= limit && limit > 0 {
        put("clearsAt", json!(sum.until.to_string()));
    }
    out
}

/// The members that a person sets.
pub(super) fn members(terms: &Terms) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(terms.name));
    out.insert("actions".to_owned(), json!(terms.actions));
    if let Some(limits) = &terms.limits {
        out.insert("limits".to_owned(), json!(limits));
    }
    if let Some(merchants) = &terms.merchants {
        out.insert("merchants".to_owned(), json!(merchants));
    }
    if let Some(fields) = &terms.fields {
        out.insert("fields".to_owned(), json!(fields));
    }
    if let Some(tools) = &terms.tools {
        out.insert("tools".to_owned(), json!(tools));
    }
    out.insert("duplicates".to_owned(), json!(terms.duplicates));
    if let Some(end) = terms.expires_at {
        out.insert("expiresAt".to_owned(), json!(end.to_string()));
    }
    out
}

/// A change as the body that makes it: what stays is absent, what goes is `null`.
pub(super) fn change_members(change: &TermsChange) -> Map<String, Value> {
    let mut out = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(name.to_owned(), value);
        }
    };
    put("name", change.name.as_ref().map(|it| json!(it)));
    put("actions", change.actions.as_ref().map(|it| json!(it)));
    put("limits", patch(&change.limits, limits_members));
    put(
        "merchants",
        patch(&change.merchants, |it| {
            object_of([("allow", patch(&it.allow, |it| json!(it))), ("deny", patch(&it.deny, |it| json!(it)))])
        }),
    );
    put("fields", patch(&change.fields, |it| json!(it)));
    put(
        "tools",
        patch(&change.tools, |it| {
            object_of([("allow", patch(&it.allow, |it| json!(it))), ("deny", patch(&it.deny, |it| json!(it)))])
        }),
    );
    put("duplicates", change.duplicates.map(|it| json!(it)));
    put("expiresAt", patch(&change.expires_at, |it| json!(it.to_string())));
    out
}

fn limits_members(change: &LimitsChange) -> Value {
    // Whoever approves a change reads it from here: none of it is left out.
    let LimitsChange { currency, per_action, per_period, count, ask_above, on_limit } = change;
    object_of([
        ("currency", patch(currency, |it| json!(it))),
        ("perAction", patch(per_action, |it| json!(it))),
        ("perPeriod", patch(per_period, |it| json!(it))),
        ("count", patch(count, |it| json!(it))),
        ("askAbove", patch(ask_above, |it| json!(it))),
        ("onLimit", on_limit.map(|it| json!(it))),
    ])
}

fn patch<T>(set: &Set<T>, shown: impl FnOnce(&T) -> Value) -> Option<Value> {
    match set {
        Set::Keep => None,
        Set::Clear => Some(Value::Null),
        Set::To(new) => Some(shown(new)),
    }
}

fn object_of<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    Value::Object(members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// What a new template names.
pub const TEMPLATE_IDS: &[(&str, Names)] = &[("name", Names::NewTemplate)];

/// Reads a new template: its name and what it says. Amounts without a currency are in `currency`.
///
/// # Errors
/// `invalid_json`, or `invalid_mandate` naming every fault.
pub fn read_template(body: &[u8], currency: Currency, now: Timestamp) -> Result<(Label, Terms), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["name", "mandate"]);
    let name = fields.required("name", |it| Label::parse(text(it)?));
    let terms = template_terms(&mut fields, (name.as_ref(), None), currency, now);
    let faults = fields.into_all_faults();
    match (name, terms) {
        (Some(name), Some(terms)) if faults.is_empty() => Ok((name, terms)),
        _ => Err(Refusal::invalid_mandate(faults)),
    }
}

/// Reads what a template is to say from now on: all of it, for there is no version of a template; `None` where nothing is to change. Its mandate has its `name` where it
/// says none itself, and any where there is no such template (`before`). What it says already is no fault, though its time may be up.
///
/// # Errors
/// `invalid_json`, or `invalid_mandate` naming every fault.
pub fn read_template_change(
    body: &[u8],
    before: Option<&WorkspaceTemplate>,
    currency: Currency,
    now: Timestamp,
) -> Result<Option<Terms>, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["mandate"]);
    let is_sent = fields.raw("mandate").is_some();
    let unnamed = Label::parse("mandate").ok();
    let name = before.map(|it| &it.name).or(unnamed.as_ref());
    let read = |fields: &mut Fields<'_>| template_terms(fields, (name, before.map(|it| &it.terms)), currency, now);
    let terms = if is_sent { read(&mut fields) } else { None };
    let faults = fields.into_all_faults();
    if faults.is_empty() { Ok(terms) } else { Err(Refusal::invalid_mandate(faults)) }
}

/// The terms of a template with this name, which says `before` already where it is there.
fn template_terms(
    fields: &mut Fields<'_>,
    (name, before): (Option<&Label>, Option<&Terms>),
    currency: Currency,
    now: Timestamp,
) -> Option<Terms> {
    if fields.raw("mandate").is_none() {
        fields.note(FieldError::missing("mandate"));
        return None;
    }
    fields.nested("mandate", |it| {
        it.only(&SETTABLE);
        if it.raw("actions").is_none() {
            it.note(FieldError::missing(it.path("actions")));
        }
        let mut read = change(it);
        read.name = read.name.or_else(|| name.cloned());
        let terms = read.to_terms()?.in_currency(currency);
        if before != Some(&terms) {
            it.note_beside(terms.faults(now));
        }
        Some(terms)
    })
}

/// A template that a workspace added.
#[must_use]
pub fn write_template(template: &WorkspaceTemplate) -> Value {
    json!({
        "id": template.name,
        "name": template.name,
        "builtIn": false,
        "mandate": members(&template.terms),
        "createdBy": template.created_by.as_ref().map(ToString::to_string),
        "createdAt": template.created_at.to_string(),
    })
}

/// A template of the catalogue, in `currency`. It was there before the workspace and has no maker.
///
/// # Errors
/// None that the catalogue's own test does not rule out.
pub fn write_built_in(template: &Template, currency: Currency, since: Timestamp) -> Result<Value, Refusal> {
    let terms = template.terms(currency).map_err(|_| Refusal::internal())?;
    Ok(json!({
        "id": template.name,
        "name": template.name,
        "builtIn": true,
        "mandate": members(&terms),
        "createdBy": null,
        "createdAt": since.to_string(),
    }))
}

/// The catalogue's templates.
#[must_use]
pub const fn catalogue() -> &'static [Template] {
    const ALL: &[Template] = &CATALOGUE;
    ALL
}
