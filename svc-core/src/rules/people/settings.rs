//! A workspace's settings, changed as a whole by the program that embeds the gate.

use std::sync::Arc;

use crate::refusal::{FieldError, Refusal};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::{Settings, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::canonical::canonical;
use crate::value::id::WorkspaceId;
use crate::value::json::Json;

/// Puts settings in force.
#[derive(Clone, Debug)]
pub struct ChangeSettings {
    /// Of which workspace.
    pub workspace: WorkspaceId,
    /// All of them.
    pub settings: Settings,
}

/// Puts settings in force and records the old and the new ones.
///
/// # Errors
/// `not_found` where there is no such workspace, `invalid_request` naming every setting out of its bounds.
pub fn change_settings(scope: &mut Scope<'_>, asked: &ChangeSettings) -> Result<Arc<Workspace>, Halt> {
    let before = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let faults: Vec<FieldError> =
        asked.settings.faults().into_iter().map(|(field, why)| FieldError::invalid(field, why)).collect();
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let after = Workspace { settings: asked.settings.clone(), ..Workspace::clone(&before) };
    let (old, new) = (as_json(&before.settings)?, as_json(&after.settings)?);
    let (old, new) = differing(&old, &new);
    let data = format!("{{\"new\":{new},\"old\":{old}}}");
    let subject = Subject::Workspace(asked.workspace);
    scope.append(asked.workspace, Fact { kind: "settings.changed", actor: Actor::Policy, subject, data });
    scope.put(after.clone());
    Ok(Arc::new(after))
}

fn as_json(settings: &Settings) -> Result<Json, Halt> {
    let text = serde_json::to_vec(settings).map_err(|_| Refusal::internal())?;
    Json::parse(&text).map_err(|_| Refusal::internal().into())
}

/// The members that differ, as two canonical objects.
fn differing(old: &Json, new: &Json) -> (String, String) {
    let changed = |from: &Json, to: &Json| {
        let members = from.as_object().unwrap_or_default().iter();
        let changed = members.filter(|(name, value)| to.get(name).is_none_or(|it| it != value)).cloned();
        canonical(&Json::Object(changed.collect()))
    };
    (changed(old, new), changed(new, old))
}
