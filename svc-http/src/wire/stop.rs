//! Freezing one and many, holds, and starting again (CONTRACT part 2, "Fleet freeze and holds").

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::answer::approval_page;
use svc_core::engine::select::Selected;
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::gate::fleet::Halted;
use svc_core::state::gate::{ActionKind, Approval, ApprovalSubject, FrozenBy};
use svc_core::state::people::{Hold, Selector};
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, ApprovalId, PrincipalId, TeamId, WorkspaceId};
use svc_core::value::json::Json;
use svc_core::value::text::{Label, Note};
use svc_core::value::{Id, Invalid};

use super::{Fields, integer, parse, text};

/// Agents that a selector may name.
const NAMED_MAX: usize = 1_000;
/// Characters that a name's beginning may have: as many as a name.
const PREFIX_MAX: usize = 100;
/// The bits of an id that nothing has.
const OF_NOTHING: u128 = 0;
/// Conditions that a selector may have.
const CONDITIONS: &[&str] = &["all", "agentIds", "principalId", "teamId", "template", "action", "namePrefix"];

/// Reads `{ reason }`, which people are told.
///
/// # Errors
/// `invalid_json`, `invalid_request` naming every fault, `reason_required` where there is none but spaces.
pub fn read_reason(body: &[u8]) -> Result<Note, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let reason = reason(&mut fields);
    fields.finish(Some(()))?;
    reason.ok_or_else(Refusal::reason_required)
}

/// Reads `{ reason, restart? }`.
///
/// # Errors
/// As [`read_reason`].
pub fn read_lift(body: &[u8]) -> Result<(Note, bool), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let reason = reason(&mut fields);
    let restart = fields.optional("restart", truth).unwrap_or(false);
    fields.finish(Some(()))?;
    Ok((reason.ok_or_else(Refusal::reason_required)?, restart))
}

/// The reason, where there is one that is more than spaces.
fn reason(fields: &mut Fields<'_>) -> Option<Note> {
    let blank = fields.raw("reason").and_then(Json::as_str).is_some_and(|it| it.trim().is_empty());
    if blank {
        return None;
    }
    fields.optional("reason", |it| Note::parse(text(it)?))
}

fn truth(value: &Json) -> Result<bool, Invalid> {
    if let Json::Bool(it) = value { Ok(*it) } else { Err(Invalid::new("must be true or false")) }
}

/// A request to freeze many agents.
#[derive(Debug)]
pub struct FleetFreeze {
    /// Whom.
    pub selector: Selector,
    /// Why; absent where nobody said so, which only a dry run may.
    pub reason: Option<Note>,
    /// Whether they are only counted.
    pub dry_run: bool,
    /// How many the caller counted.
    pub confirm: Option<i64>,
    /// Which selection the caller saw.
    pub seen: Option<Digest>,
}

/// Reads a request to freeze many agents.
///
/// # Errors
/// `invalid_json`, `invalid_selector` naming every fault of the selector, `invalid_request` naming every other.
pub fn read_fleet(body: &[u8]) -> Result<FleetFreeze, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let selector = read_selector(&mut fields);
    if !fields.is_sound() {
        return Err(Refusal::invalid_selector(fields.into_faults()));
    }
    fields.only(&["selector", "reason", "dryRun", "confirmCount", "selectionDigest"]);
    let reason = reason(&mut fields);
    let dry_run = fields.optional("dryRun", truth).unwrap_or(false);
    let confirm = fields.optional("confirmCount", |it| match integer(it)? {
        count if count >= 0 => Ok(count),
        _ => Err(Invalid::new("must be 0 or more")),
    });
    let seen = fields.optional("selectionDigest", |it| {
        let digest = text(it)?.strip_prefix("sha256:").and_then(|it| Digest::parse(it).ok());
        digest.ok_or_else(|| Invalid::new("must be `sha256:` and 64 hexadecimal digits"))
    });
    let request = selector.map(|selector| FleetFreeze { selector, reason, dry_run, confirm, seen });
    let request = fields.finish(request)?;
    if request.reason.is_none() && !request.dry_run {
        return Err(Refusal::reason_required());
    }
    Ok(request)
}

fn read_selector(fields: &mut Fields<'_>) -> Option<Selector> {
    if fields.raw("selector").is_none() {
        fields.note(FieldError::missing("selector"));
        return None;
    }
    fields.nested("selector", |fields| {
        fields.only(CONDITIONS);
        let sent = CONDITIONS.iter().filter(|it| fields.raw(it).is_some()).count();
        let all = fields.optional("all", |it| match truth(it)? {
            true if sent == 1 => Ok(true),
            true => Err(Invalid::new("must stand alone")),
            false => Err(Invalid::new("must be true, or not sent")),
        });
        let selector = Selector {
            all: all.unwrap_or(false),
            agents: fields.texts("agentIds", (1, NAMED_MAX), |it| named(it, AgentId::parse)).map(known),
            principal: fields.optional("principalId", |it| named(text(it)?, PrincipalId::parse)),
            team: fields.optional("teamId", |it| named(text(it)?, TeamId::parse)),
            template: fields.optional("template", |it| Ok(Label::parse(text(it)?)?.as_str().into())),
            action: fields.optional("action", |it| ActionKind::parse(text(it)?).map_err(Into::into)),
            name_prefix: fields.optional("namePrefix", |it| prefix(text(it)?)),
        };
        if sent == 0 && fields.is_sound() {
            fields.note(FieldError::new("selector", "must have at least one condition"));
        }
        Some(selector)
    })
}

/// What names begin with, as it was sent: without the space at its end, `bot ` would be the beginning of `bottle` too.
fn prefix(text: &str) -> Result<Box<str>, Invalid> {
    Label::parse(text)?;
    if text.chars().count() > PREFIX_MAX || text.chars().any(char::is_control) {
        return Err(Invalid::new(
            "must be at most 100 characters, spaces at its ends included, without control characters",
        ));
    }
    Ok(text.into())
}

/// The id that a text is. One that has its prefix and is none is that of nothing, as one that was never given out is: in a selector
/// either matches nothing.
fn named<I: Id>(text: &str, parse: impl Fn(&str) -> Result<I, Invalid>) -> Result<I, Invalid> {
    parse(text).or_else(|why| if text.starts_with(I::PREFIX) { Ok(I::from_bits(OF_NOTHING)) } else { Err(why) })
}

/// Without that of nothing, unless it is the only one: what selects something is kept, with ids as they were sent.
fn known(agents: Vec<AgentId>) -> BTreeSet<AgentId> {
    let mut agents = BTreeSet::from_iter(agents);
    if agents.len() > 1 {
        agents.remove(&AgentId::from_bits(OF_NOTHING));
    }
    agents
}

/// What a dry run tells.
#[must_use]
pub fn write_dry_run(selected: &Selected) -> Value {
    let agents: Vec<Value> =
        selected.shown.iter().map(|it| json!({ "id": it.id, "name": it.name, "standing": it.standing })).collect();
    json!({
        "dryRun": true,
        "count": selected.count(),
        "alreadyFrozen": selected.frozen,
        "selectionDigest": format!("sha256:{}", selected.digest),
        "agents": agents,
        "truncated": selected.agents.len() > selected.shown.len(),
    })
}

/// Agents that are frozen.
#[must_use]
pub fn write_halted(halted: &Halted) -> Value {
    let mut out = json!({
        "frozen": halted.frozen,
        "alreadyFrozen": halted.count.saturating_sub(halted.frozen),
        "count": halted.count,
        "evidenceRecord": halted.evidence,
    });
    if let (Some(hold), Some(members)) = (halted.hold, out.as_object_mut()) {
        members.insert("hold".to_owned(), json!(hold));
    }
    out
}

/// What waits for a person: nothing is done yet.
#[must_use]
pub fn write_asked(approval: &Approval, base_url: &str) -> Value {
    let question = write_question(approval.workspace, approval.id, base_url);
    let mut out = json!({ "pending": true, "approval": question });
    if let (ApprovalSubject::Freeze(asked), Some(members)) = (&approval.subject, out.as_object_mut()) {
        members.insert("count".to_owned(), json!(asked.members.count));
    }
    out
}

/// A question to a person, and the page that it is answered on.
pub(super) fn write_question(workspace: WorkspaceId, approval: ApprovalId, base_url: &str) -> Value {
    json!({ "id": approval, "url": approval_page(base_url, workspace, approval) })
}

/// Who froze: a person's id, a token by its name, with its id, an integration with its id, the gate's own rules, or a drill.
pub(super) fn by(by: &FrozenBy) -> (String, Option<String>) {
    match by {
        FrozenBy::Person(id) => (id.to_string(), None),
        FrozenBy::Policy => ("policy".to_owned(), None),
        FrozenBy::Drill(_) => ("drill".to_owned(), None),
        FrozenBy::Integration(id) => ("integration".to_owned(), Some(id.to_string())),
        FrozenBy::Token { id, name } => (format!("token:{name}"), Some(id.to_string())),
    }
}

/// A hold.
#[must_use]
pub fn write_hold(hold: &Hold) -> Value {
    let (by, by_id) = by(&hold.by);
    let mut out = json!({
        "id": hold.id,
        "scope": hold.scope.as_str(),
        "agents": hold.members.count,
        "reason": hold.reason,
        "by": by,
        "at": hold.at.to_string(),
        "createdAt": hold.at.to_string(),
        "createdBy": by,
    });
    if let Some(members) = out.as_object_mut() {
        members.extend(by_id.map(|it| ("byId".to_owned(), json!(it))));
        if let Some(lifted) = &hold.lifted {
            members.insert("liftedAt".to_owned(), json!(lifted.at.to_string()));
            members.extend(lifted.by.map(|it| ("liftedBy".to_owned(), json!(it))));
        }
    }
    out
}
