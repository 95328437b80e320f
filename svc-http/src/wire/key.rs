//! Keys (CONTRACT part 2, "People, keys, tokens").

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::people::show::KeyView;
use svc_core::state::people::KeyScope;
use svc_core::value::id::{PrincipalId, ProfileId, TeamId};
use svc_core::value::json::Json;
use svc_core::value::text::{ClassId, Label};
use svc_core::value::{Invalid, Timestamp};

use super::named::Names;
use super::{Fields, integer, parse_or_empty, text, truth};

/// The longest life of a key that has an end, in days.
const DAYS_MAX: i64 = 3_650;

/// A wish for a key.
#[derive(Debug)]
pub struct NewKey {
    /// What it may do.
    pub scope: KeyScope,
    /// Who its traffic counts for.
    pub principal: Option<PrincipalId>,
    /// The team its traffic counts for.
    pub team: Option<TeamId>,
    /// What people call it.
    pub label: Option<Label>,
    /// The class of its tasks.
    pub task_class: Option<ClassId>,
    /// What its calls must satisfy beside their class.
    pub profile: Option<ProfileId>,
    /// Whether a call may name another class.
    pub task_class_open: bool,
    /// In how many days it ends by itself.
    pub days: Option<i64>,
}

/// What a wish for a key names.
pub const IDS: &[(&str, Names)] = &[
    ("principalId", Names::Principal),
    ("teamId", Names::Team),
    ("taskClassId", Names::TaskClass),
    ("policyProfileId", Names::Profile),
];

/// What a key that is no agent's may do.
pub const SCOPES: [KeyScope; 2] = [KeyScope::Inference, KeyScope::Admin];

/// Reads a wish for a key that is no agent's.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<NewKey, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let scope = fields.optional("scope", |it| {
        let word = text(it)?;
        SCOPES.into_iter().find(|it| it.as_str() == word).ok_or_else(|| {
            let of_agent = if word == "agent" { ": an agent's key is made at the agent" } else { "" };
            Invalid::new(format!("must be `inference` or `admin`{of_agent}"))
        })
    });
    let made = NewKey {
        scope: scope.unwrap_or(KeyScope::Inference),
        principal: fields.optional("principalId", |it| PrincipalId::parse(text(it)?)),
        team: fields.optional("teamId", |it| TeamId::parse(text(it)?)),
        label: fields.optional("label", |it| Label::parse(text(it)?)),
        task_class: fields.optional("taskClassId", |it| ClassId::parse(text(it)?)),
        profile: fields.optional("policyProfileId", |it| ProfileId::parse(text(it)?)),
        task_class_open: fields.optional("taskClassOpen", truth).unwrap_or_default(),
        days: fields.optional("expiresInDays", days),
    };
    fields.finish(Some(made))
}

/// Reads the label of an agent's own key, and in how many days it ends by itself.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_of_agent(body: &[u8]) -> Result<(Option<Label>, Option<i64>), Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let label = fields.optional("label", |it| Label::parse(text(it)?));
    let days = fields.optional("expiresInDays", days);
    fields.finish(Some((label, days)))
}

/// In how many days a key ends.
fn days(value: &Json) -> Result<i64, Invalid> {
    let days = integer(value)?;
    let is_within = (1..=DAYS_MAX).contains(&days);
    is_within.then_some(days).ok_or_else(|| Invalid::new(format!("must be between 1 and {DAYS_MAX}")))
}

/// A key's binding. `used_at` is when it was last shown to this server.
#[must_use]
pub fn write(view: &KeyView, used_at: Option<Timestamp>) -> Value {
    let row = &view.row;
    let mut shown = json!({
        "id": row.binding.key,
        "prefix": row.prefix,
        "label": row.label,
        "scope": row.binding.scope.as_str(),
        "principalId": view.principal,
        "teamId": row.binding.team,
        "taskClassId": row.binding.task_class,
        "policyProfileId": row.binding.profile,
        "taskClassOpen": row.binding.task_class_open,
        "state": view.state.as_str(),
        "lastUsedAt": used_at.map(|it| it.to_string()),
        "expiresAt": row.expires_at.map(|it| it.to_string()),
        "createdBy": row.created_by.as_ref().map(ToString::to_string),
        "createdAt": row.created_at.to_string(),
    });
    if let (Some(members), KeyScope::Agent(agent)) = (shown.as_object_mut(), row.binding.scope) {
        members.insert("agentId".to_owned(), json!(agent));
    }
    shown
}
