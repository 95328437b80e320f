//! Applications (CONTRACT part 2): the change is the body of the route that would make it, read by that route's own reader.

use core::fmt;

use serde_json::{Map, Value, json};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::people::by::Person;
use svc_core::rules::people::mandates::Held;
use svc_core::rules::people::named::Named;
use svc_core::state::gate::MandateState;
use svc_core::state::people::{
    AgentWish, Application, ApplicationState, Change, Decision, MandateChangeWish, MandateWish, RaiseWish, RoleWish,
    Target, Wish,
};
use svc_core::value::id::{AgentId, BudgetId, MandateId, PrincipalId};
use svc_core::value::text::Note;
use svc_core::value::{Invalid, Timestamp};

use super::named::Names;
use super::{Fields, agent, budget, mandate, member, parse, parse_or_empty, stop, text, truth};

/// A wish for a change.
#[derive(Debug)]
pub struct NewApplication {
    /// What is to change.
    pub change: Change,
    /// Why.
    pub reason: Note,
}

/// An application is approved.
#[derive(Debug)]
pub struct Yes {
    /// What they say.
    pub note: Option<Note>,
    /// Whether they mean a mandate that broadens what an agent may do.
    pub confirm_broaden: bool,
}

/// What an application may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Agent,
    Mandate,
    Tier,
    Role,
    BudgetRaise,
}

/// What the reader has to look up.
pub struct Known<'a> {
    /// Who asks.
    pub asker: PrincipalId,
    /// When.
    pub now: Timestamp,
    /// A mandate in force that they may read.
    pub mandate: &'a dyn Fn(MandateId) -> Option<Held>,
}

impl fmt::Debug for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("asker", &self.asker).field("now", &self.now).finish_non_exhaustive()
    }
}

/// Reads `{ kind, target?, change, reason }`.
///
/// # Errors
/// `invalid_json`; `invalid_request` for what is no object; `invalid_application` naming every fault, those of the change under
/// `change.`.
pub fn read(body: &[u8], known: &Known<'_>) -> Result<NewApplication, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let kind = fields.required("kind", |it| kind(text(it)?));
    let reason = fields.required("reason", |it| Note::parse(text(it)?));
    let target = match kind {
        Some(Kind::Role) if fields.raw("target").is_none() => Some(Target::Member(known.asker)),
        Some(Kind::Agent) => fields.optional("target", |it| target(Kind::Agent, text(it)?)),
        Some(kind) => fields.required("target", |it| target(kind, text(it)?)),
        // Of no kind it is known what it may be about: an id it is anyway.
        None => fields.optional("target", |it| text(it).map(drop)).and(None),
    };
    if fields.raw("change").is_none() {
        fields.note(FieldError::missing(fields.path("change")));
    }
    let change = match kind {
        Some(kind) => fields.nested("change", |it| change(it, kind, target, known)),
        None => fields.nested("change", |_| None),
    };
    let faults = fields.into_all_faults();
    match (change, reason) {
        (Some(change), Some(reason)) if faults.is_empty() => Ok(NewApplication { change, reason }),
        _ => Err(Refusal::invalid_application(faults)),
    }
}

fn kind(word: &str) -> Result<Kind, Invalid> {
    match word {
        "agent" => Ok(Kind::Agent),
        "mandate" => Ok(Kind::Mandate),
        "tier" => Ok(Kind::Tier),
        "role" => Ok(Kind::Role),
        "budget_raise" => Ok(Kind::BudgetRaise),
        _ => Err(Invalid::new("must be `agent`, `mandate`, `tier`, `budget_raise` or `role`")),
    }
}

/// What a change of this kind may be about.
fn target(kind: Kind, id: &str) -> Result<Target, Invalid> {
    match kind {
        Kind::Agent => Err(Invalid::new("has no place here: the agent is not there yet")),
        Kind::Mandate => agent_or_mandate(id),
        Kind::Tier => AgentId::parse(id).map(Target::Agent),
        Kind::Role => PrincipalId::parse(id).map(Target::Member),
        Kind::BudgetRaise => BudgetId::parse(id).map(Target::Budget),
    }
}

/// Everything that can be read of what an application of `by` names, where the whole cannot.
#[must_use]
pub fn named(body: &[u8], by: Person) -> Vec<(String, Named)> {
    let Ok(json) = parse(body) else { return Vec::new() };
    let Some(kind) = json.get("kind").and_then(|it| kind(text(it).ok()?).ok()) else { return Vec::new() };
    let ids: &[(&str, Names)] = match kind {
        Kind::Agent => &[
            ("change.sponsor", Names::Sponsor),
            ("change.killOwner", Names::Principal),
            ("change.mandates.[].template", Names::Template),
        ],
        Kind::Mandate => &[("change.template", Names::Template)],
        Kind::Role => &[("change.teamIds.[]", Names::Team)],
        Kind::Tier | Kind::BudgetRaise => &[],
    };
    let target = json.get("target").and_then(|it| target(kind, text(it).ok()?).ok());
    let target = target.map(|it| ("target".to_owned(), Named::Target(by, it)));
    target.into_iter().chain(super::named::named(&json, ids)).collect()
}

/// A new mandate is for an agent, a change is of a mandate.
fn agent_or_mandate(id: &str) -> Result<Target, Invalid> {
    let why = |_| Invalid::new("must be the `agt_` of an agent, or the `mnd_` of a mandate that is to change");
    AgentId::parse(id).map(Target::Agent).or_else(|_| MandateId::parse(id).map(Target::Mandate)).map_err(why)
}

/// The change; `None` where it is none, which is noted, or where its target is none, which was.
fn change(fields: &mut Fields<'_>, kind: Kind, target: Option<Target>, known: &Known<'_>) -> Option<Change> {
    let now = known.now;
    match kind {
        Kind::Agent => {
            let agent::Blueprint { name, email, tier, sponsor, kill_owner, mandates } = agent::blueprint(fields, now)?;
            let mandates = mandates.into_iter().map(Wish::from).collect();
            Some(Change::Agent(Box::new(AgentWish { name, email, tier, sponsor, kill_owner, mandates })))
        }
        Kind::Mandate => {
            if let Some(Target::Mandate(id)) = target {
                return changed_mandate(fields, id, known);
            }
            let confirm_broaden = fields.optional("confirmBroaden", truth).unwrap_or_default();
            let wish = mandate::content(fields, now, &["confirmBroaden"]).map(Wish::from);
            let Some(Target::Agent(agent)) = target else { return None };
            wish.map(|wish| Change::Mandate(MandateWish { agent, wish, confirm_broaden }))
        }
        Kind::Tier => {
            fields.only(&["tier"]);
            let tier = fields.required("tier", agent::tier);
            let Some(Target::Agent(agent)) = target else { return None };
            tier.map(|tier| Change::Tier { agent, tier })
        }
        Kind::Role => {
            let member::MemberChange { role, teams } = member::change(fields);
            let Some(Target::Member(member)) = target else { return None };
            Some(Change::Role(RoleWish { member, role, teams }))
        }
        Kind::BudgetRaise => {
            let raise = budget::raise(fields);
            let Some(Target::Budget(budget)) = target else { return None };
            raise.map(|(allocation, note)| Change::BudgetRaise(RaiseWish { budget, allocation, note }))
        }
    }
}

/// A change of a mandate, judged by what it says now; one that the asker may not read is noted by whoever keeps the wish.
fn changed_mandate(fields: &mut Fields<'_>, id: MandateId, known: &Known<'_>) -> Option<Change> {
    let held = (known.mandate)(id);
    let asked = mandate::change_within(fields, held.as_ref().map(|it| it.mandate.terms()), known.now);
    let Some(held) = held else {
        fields.note(FieldError::new("target", "names no mandate in force that you may read"));
        return None;
    };
    Some(Change::ChangedMandate(Box::new(MandateChangeWish {
        agent: held.mandate.agent,
        mandate: id,
        change: asked.change,
        paused: asked.paused,
        confirm_broaden: asked.confirm_broaden,
    })))
}

/// Reads `{ note? }`; nothing at all is that too.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_note(body: &[u8]) -> Result<Option<Note>, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let note = fields.optional("note", |it| Note::parse(text(it)?));
    fields.finish(Some(note))
}

/// Reads `{ note?, confirmBroaden? }`; nothing at all is that too.
///
/// # Errors
/// As [`read_note`].
pub fn read_yes(body: &[u8]) -> Result<Yes, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let note = fields.optional("note", |it| Note::parse(text(it)?));
    let confirm_broaden = fields.optional("confirmBroaden", truth).unwrap_or_default();
    fields.finish(Some(Yes { note, confirm_broaden }))
}

/// An application as it stands at `now`; one that waits for a second owner names the question to them.
#[must_use]
pub fn write(application: &Application, now: Timestamp, base_url: &str) -> Value {
    let stands = application.stands(now);
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("id", json!(application.id));
    put("kind", json!(application.change.kind()));
    if let Some(target) = application.change.target() {
        put("target", json!(target.to_string()));
    }
    put("change", write_change(&application.change));
    put("reason", json!(application.reason.as_str()));
    put("state", json!(stands.as_str()));
    put("createdBy", json!(application.by));
    put("createdAt", json!(application.created_at.to_string()));
    put("expiresAt", json!(application.expires_at.to_string()));
    match &stands {
        ApplicationState::Approved(decision) | ApplicationState::Denied(decision) => {
            let Decision { at, by, note } = decision;
            put("decidedAt", json!(at.to_string()));
            put("decidedBy", json!(by));
            if let Some(note) = note {
                put("note", json!(note.as_str()));
            }
        }
        ApplicationState::Waiting | ApplicationState::Withdrawn { .. } | ApplicationState::Expired { .. } => {}
    }
    if let Some(second) = application.pending(now) {
        put("pending", json!(true));
        put("approval", stop::write_question(application.workspace, second.approval, base_url));
    }
    Value::Object(out)
}

/// The change as the body that would make it.
fn write_change(change: &Change) -> Value {
    match change {
        Change::Agent(wish) => {
            let mut shown = json!({
                "name": wish.name,
                "principalEmail": wish.email.as_str(),
                "tier": wish.tier.as_str(),
                "mandates": wish.mandates.iter().map(|it| Value::Object(write_wish(it))).collect::<Vec<_>>(),
            });
            if let Some(members) = shown.as_object_mut() {
                members.extend(wish.sponsor.map(|it| ("sponsor".to_owned(), json!(it))));
                members.extend(wish.kill_owner.map(|it| ("killOwner".to_owned(), json!(it))));
            }
            shown
        }
        Change::Mandate(wish) => {
            let mut shown = write_wish(&wish.wish);
            if wish.confirm_broaden {
                shown.insert("confirmBroaden".to_owned(), json!(true));
            }
            Value::Object(shown)
        }
        Change::ChangedMandate(wish) => {
            let mut shown = mandate::change_members(&wish.change);
            if let Some(paused) = wish.paused {
                shown.insert("state".to_owned(), json!(MandateState::set(paused).as_str()));
            }
            if wish.confirm_broaden {
                shown.insert("confirmBroaden".to_owned(), json!(true));
            }
            Value::Object(shown)
        }
        Change::Tier { tier, .. } => json!({ "tier": tier.as_str() }),
        Change::Role(wish) => {
            let role = wish.role.map(|it| ("role".to_owned(), json!(it.as_str())));
            let teams = wish.teams.as_ref().map(|it| ("teamIds".to_owned(), json!(it)));
            Value::Object(role.into_iter().chain(teams).collect())
        }
        Change::BudgetRaise(wish) => {
            let note = wish.note.as_ref().map(|it| ("note".to_owned(), json!(it.as_str())));
            let amount = ("amountMicros".to_owned(), json!(wish.allocation.get()));
            Value::Object([amount].into_iter().chain(note).collect())
        }
    }
}

fn write_wish(wish: &Wish) -> Map<String, Value> {
    match wish {
        Wish::Template(name) => Map::from_iter([("template".to_owned(), json!(name))]),
        Wish::Whole(terms) => mandate::members(terms),
    }
}
