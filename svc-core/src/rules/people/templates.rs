//! Templates that a workspace adds to the catalogue. Mandates copy what a template says, so a changed one changes none of
//! them.

use std::sync::Arc;

use super::by::{By, entitled};
use crate::refusal::{FieldError, Refusal};
use crate::state::evidence::{Fact, Subject};
use crate::state::gate::{Template, Terms, WorkspaceTemplate};
use crate::state::people::{Right, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::WorkspaceId;
use crate::value::text::Label;

/// Adds a template, or changes what one says.
#[derive(Clone, Debug)]
pub struct KeepTemplate {
    /// To which workspace.
    pub workspace: WorkspaceId,
    /// Who.
    pub by: By,
    /// What mandates name it by.
    pub name: Label,
    /// What it says. Amounts without a currency are in the workspace's.
    pub terms: Terms,
    /// Whether it is there already.
    pub is_there: bool,
}

/// Adds or changes a template.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where one that is to be changed is not there; `invalid_request` where the name is taken;
/// `invalid_mandate` naming every fault, under `mandate`.
pub fn keep_template(scope: &mut Scope<'_>, asked: &KeepTemplate) -> Result<Arc<WorkspaceTemplate>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageTemplates)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let id = WorkspaceTemplate::id_of(asked.workspace, &asked.name);
    let before = scope.get::<WorkspaceTemplate>(id)?;
    if asked.is_there && before.is_none() {
        return Err(Refusal::not_found().into());
    }
    if !asked.is_there && (before.is_some() || Template::find(asked.name.as_str()).is_some()) {
        return Err(Refusal::invalid_field("name", "is the name of another template").into());
    }
    let terms = in_currency(&asked.terms, &workspace);
    let faults: Vec<FieldError> = terms.faults(scope.now()).into_iter().map(|it| it.within("mandate")).collect();
    if !faults.is_empty() {
        return Err(Refusal::invalid_mandate(faults).into());
    }
    let template = match before {
        Some(before) => WorkspaceTemplate { terms, ..WorkspaceTemplate::clone(&before) },
        None => WorkspaceTemplate {
            id,
            workspace: asked.workspace,
            name: asked.name.clone(),
            terms,
            created_by: asked.by.maker(),
            created_at: scope.now(),
        },
    };
    record(scope, asked.workspace, &asked.by, &asked.name, if asked.is_there { "changed" } else { "created" });
    scope.put(template.clone());
    Ok(Arc::new(template))
}

/// Amounts of a template are in the workspace's currency where it names none.
fn in_currency(terms: &Terms, workspace: &Workspace) -> Terms {
    let mut terms = terms.clone();
    if let Some(limits) = &mut terms.limits {
        let speaks = limits.per_action.is_some() || limits.per_period.is_some() || limits.ask_above.is_some();
        if limits.currency.is_none() && speaks {
            limits.currency = Some(workspace.settings.currency);
        }
    }
    terms
}

/// A template is a setting of its workspace: so the ledger names it.
fn record(scope: &mut Scope<'_>, workspace: WorkspaceId, by: &By, name: &Label, what: &str) {
    let data = Object::new().text("member", "templates").text("template", name.as_str()).text("what", what).finish();
    let subject = Subject::Workspace(workspace);
    scope.append(workspace, Fact { kind: "settings.changed", actor: by.actor(), subject, data });
}

/// Removes a template. Mandates that were made from it stay as they are.
#[derive(Clone, Debug)]
pub struct RemoveTemplate {
    /// From which workspace.
    pub workspace: WorkspaceId,
    /// Who.
    pub by: By,
    /// Which.
    pub name: Label,
}

/// Removes a template.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where the workspace has no such template of its own.
pub fn remove_template(scope: &mut Scope<'_>, asked: &RemoveTemplate) -> Result<(), Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageTemplates)?;
    let id = WorkspaceTemplate::id_of(asked.workspace, &asked.name);
    scope.get::<WorkspaceTemplate>(id)?.ok_or_else(Refusal::not_found)?;
    record(scope, asked.workspace, &asked.by, &asked.name, "removed");
    scope.delete::<WorkspaceTemplate>(id);
    Ok(())
}
