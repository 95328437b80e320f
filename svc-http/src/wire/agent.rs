//! Agents (CONTRACT part 2, "Agent"): blueprints of persons and of tokens, changes, and what answers show.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::gate::velocity::Used;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::show::{AgentView, Lately};
use svc_core::state::gate::{AGENT_MANDATES_MAX, Standing, Tier};
use svc_core::value::currency::Currency;
use svc_core::value::id::PrincipalId;
use svc_core::value::json::Json;
use svc_core::value::text::{Email, Label};
use svc_core::value::{Invalid, Timestamp};

use super::named::Names;
use super::{Fields, bounded, list_of, mandate, parse, parse_or_empty, stop, text};

/// A wish for an agent.
#[derive(Debug)]
pub struct Blueprint {
    /// What people call it.
    pub name: Label,
    /// Who it acts for.
    pub email: Email,
    /// How much it is trusted.
    pub tier: Tier,
    /// Who answers for it.
    pub sponsor: Option<PrincipalId>,
    /// Who may freeze it.
    pub kill_owner: Option<PrincipalId>,
    /// Its mandates.
    pub mandates: Vec<Content>,
}

/// What a person's blueprint names.
pub const IDS: &[(&str, Names)] =
    &[("principalEmail", Names::ActsFor), ("sponsor", Names::Sponsor), ("killOwner", Names::Principal)];
/// What a token's blueprint names.
pub const IDS_OF_TOKEN: &[(&str, Names)] = &[("principalEmail", Names::ActsFor)];
/// What a change of an agent names.
pub const CHANGED_IDS: &[(&str, Names)] = &[("sponsor", Names::Sponsor), ("killOwner", Names::Principal)];

/// Reads a person's blueprint.
///
/// # Errors
/// `invalid_json`; `invalid_request` with every fault, or `invalid_mandate` where all of them are the mandates'.
pub fn read(body: &[u8], now: Timestamp) -> Result<Blueprint, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let made = blueprint(&mut fields, now);
    let is_mandates = |it: &FieldError| it.field.as_deref().is_some_and(|it| super::is_within(it, "mandates"));
    let are_mandates = fields.faults.iter().all(is_mandates);
    let faults = fields.into_all_faults();
    match made {
        Some(made) if faults.is_empty() => Ok(made),
        _ if are_mandates => Err(Refusal::invalid_mandate(faults)),
        _ => Err(Refusal::invalid_request(faults)),
    }
}

/// A person's blueprint in a larger body, with everything that makes it none.
pub(super) fn blueprint(fields: &mut Fields<'_>, now: Timestamp) -> Option<Blueprint> {
    fields.only(&["name", "principalEmail", "tier", "sponsor", "killOwner", "mandates"]);
    let name = fields.required("name", |it| Label::parse(text(it)?));
    let email = fields.required("principalEmail", |it| Email::parse(text(it)?));
    let tier = fields.optional("tier", tier).unwrap_or(Tier::Standard);
    let sponsor = fields.optional("sponsor", |it| PrincipalId::parse(text(it)?));
    let kill_owner = fields.optional("killOwner", |it| PrincipalId::parse(text(it)?));
    let mandates = match fields.raw("mandates") {
        None => Some(Vec::new()),
        Some(_) => fields.each("mandates", AGENT_MANDATES_MAX, |it| mandate::content(it, now, &[])),
    };
    let (name, email, mandates) = (name?, email?, mandates?);
    Some(Blueprint { name, email, tier, sponsor, kill_owner, mandates })
}

/// Reads a token's blueprint: templates alone, and no tier, sponsor or kill owner.
///
/// # Errors
/// `invalid_json`; `invalid_request` with every fault; then `template_only`.
pub fn read_of_token(body: &[u8]) -> Result<Blueprint, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["name", "principalEmail", "mandates"]);
    let name = fields.required("name", |it| Label::parse(text(it)?));
    let email = fields.required("principalEmail", |it| Email::parse(text(it)?));
    let items = fields.optional("mandates", |it| list_of(it, 0, AGENT_MANDATES_MAX)).unwrap_or_default();
    let (mut mandates, mut templates_alone) = (Vec::new(), true);
    for (place, item) in items.iter().enumerate() {
        match item {
            Json::Object(members) => match members.as_slice() {
                [(member, Json::Text(name))] if member == "template" => {
                    mandates.push(Content::Template(name.as_str().into()));
                }
                [(member, _)] if member == "template" => {
                    fields.fault(&format!("mandates.{place}.template"), Invalid::new("must be a string"));
                }
                _ => templates_alone = false,
            },
            _ => fields.note(FieldError::new(format!("mandates.{place}"), "must be an object")),
        }
    }
    let made = name.zip(email).map(|(name, email)| Blueprint {
        name,
        email,
        tier: Tier::Standard,
        sponsor: None,
        kill_owner: None,
        mandates,
    });
    let made = fields.finish(made)?;
    if templates_alone { Ok(made) } else { Err(Refusal::template_only()) }
}

/// What changes of an agent; the inner `None` is nobody.
#[derive(Debug)]
pub struct AgentChange {
    /// Its name.
    pub name: Option<Label>,
    /// Its tier.
    pub tier: Option<Tier>,
    /// Its sponsor.
    pub sponsor: Option<Option<PrincipalId>>,
    /// Its kill owner.
    pub kill_owner: Option<Option<PrincipalId>>,
}

/// Reads a change of an agent.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_change(body: &[u8]) -> Result<AgentChange, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["name", "tier", "sponsor", "killOwner"]);
    for name in ["name", "tier"] {
        if fields.is_null(name) {
            fields.fault(name, Invalid::new("cannot be taken away"));
        }
    }
    let change = AgentChange {
        name: fields.optional("name", |it| Label::parse(text(it)?)),
        tier: fields.optional("tier", tier),
        sponsor: principal(&mut fields, "sponsor"),
        kill_owner: principal(&mut fields, "killOwner"),
    };
    fields.finish(Some(change))
}

pub(super) fn tier(value: &Json) -> Result<Tier, Invalid> {
    Tier::parse(text(value)?).ok_or_else(|| Invalid::new("must be `restricted`, `standard` or `trusted`"))
}

fn principal(fields: &mut Fields<'_>, name: &str) -> Option<Option<PrincipalId>> {
    if fields.is_null(name) {
        return Some(None);
    }
    fields.optional(name, |it| PrincipalId::parse(text(it)?)).map(Some)
}

/// An agent's record; for a kill owner who may read no more of it, which it is and how it stands.
#[must_use]
pub fn write(view: &AgentView, now: Timestamp) -> Map<String, Value> {
    let agent = &view.agent;
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("id", json!(agent.id));
    put("name", json!(agent.name));
    put("workspaceId", json!(agent.workspace));
    if let Some(kill_owner) = agent.kill_owner {
        put("killOwner", json!(kill_owner));
    }
    put("standing", json!(agent.standing.as_str()));
    if let Standing::Frozen(frozen) = &agent.standing {
        let (by, by_id) = stop::by(&frozen.by);
        let mut shown = json!({ "at": frozen.at.to_string(), "by": by, "reason": frozen.reason });
        if let Some(members) = shown.as_object_mut() {
            members.extend(by_id.map(|it| ("byId".to_owned(), json!(it))));
            members.extend(frozen.incident.map(|it| ("incident".to_owned(), json!(it))));
        }
        put("frozen", shown);
    }
    put("createdBy", json!(agent.created_by.as_ref().map(ToString::to_string)));
    put("createdAt", json!(agent.created_at.to_string()));
    if !view.whole {
        return out;
    }
    put("principalId", json!(agent.principal));
    put("principalEmail", json!(view.email.as_ref().map(Email::as_str)));
    put("tier", json!(agent.tier.as_str()));
    if let Some(sponsor) = agent.sponsor {
        put("sponsor", json!(sponsor));
    }
    put("mandates", view.mandates.iter().map(|it| mandate::write(it, now)).collect());
    out
}

/// What one currency saw in a month, in minor units.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Allowed or asked, and not settled.
    pub reserved: i64,
    /// Settled or lapsed.
    pub settled: i64,
}

/// Adds what an agent's payments of the running month add up to to its record.
pub fn write_spend(out: &mut Map<String, Value>, spend: &BTreeMap<Currency, Spent>) {
    let row = |(currency, sum): (&Currency, &Spent)| json!({ "currency": currency.as_str(), "reserved": bounded(sum.reserved), "settled": bounded(sum.settled) });
    out.insert("spend".to_owned(), spend.iter().map(row).collect());
}

/// Adds what an agent did lately to its record.
pub fn write_lately(out: &mut Map<String, Value>, lately: &Lately) {
    let line = |it: &Used| {
        let mut shown = json!({ "used": it.used, "limit": it.limit });
        if let (Some(members), Some(at)) = (shown.as_object_mut(), it.clears_at) {
            members.insert("clearsAt".to_owned(), json!(at.to_string()));
        }
        shown
    };
    out.insert("velocity".to_owned(), json!({ "tool": line(&lately.tool), "other": line(&lately.other) }));
    out.insert("waiting".to_owned(), json!(lately.waiting));
    out.insert("lastSeenAt".to_owned(), json!(lately.seen_at.map(|it| it.to_string())));
}
