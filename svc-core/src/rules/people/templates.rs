//! Templates that a workspace adds to the catalogue. Mandates copy what a template says, so a changed one changes none of
//! them.

use std::sync::Arc;

use super::by::{By, entitled};
use super::mandates::told;
use super::settings::differing;
use super::taken::{self, is_template};
use crate::refusal::{FieldError, Refusal};
use crate::state::evidence::{Fact, Subject};
use crate::state::gate::{Terms, WorkspaceTemplate};
use crate::state::people::{Right, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::WorkspaceId;
use crate::value::json::Json;
use crate::value::text::{Label, NO_DOTS, is_dots};

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

/// Adds or changes a template. One that says the same already stays as it is, and nothing is recorded.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where one that is to be changed is not there; `invalid_request` where the name is taken, or no path would lead to it;
/// `invalid_mandate` naming every fault, under `mandate`.
pub fn keep_template(scope: &mut Scope<'_>, asked: &KeepTemplate) -> Result<Arc<WorkspaceTemplate>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageTemplates)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let before = own_template(scope, asked.workspace, &asked.name)?;
    if asked.is_there && before.is_none() {
        return Err(Refusal::not_found().into());
    }
    let terms = asked.terms.clone().in_currency(workspace.settings.currency);
    let misnamed = match (asked.is_there, is_template(scope, asked.workspace, &asked.name)?) {
        (true, _) => None,
        (false, true) => Some(taken::TEMPLATE),
        (false, false) => is_dots(asked.name.as_str()).then_some(NO_DOTS),
    };
    if let Some(clause) = misnamed {
        let faults = terms.faults(scope.now()).into_iter().map(|it| it.within("mandate"));
        return Err(
            Refusal::invalid_request([FieldError::new("name", clause)].into_iter().chain(faults).collect()).into()
        );
    }
    // What changes nothing is no fault, though it could not be said anew: its time may be up.
    if let Some(same) = before.as_ref().filter(|it| it.terms == terms) {
        return Ok(Arc::clone(same));
    }
    let faults: Vec<FieldError> = terms.faults(scope.now()).into_iter().map(|it| it.within("mandate")).collect();
    if !faults.is_empty() {
        return Err(Refusal::invalid_mandate(faults).into());
    }
    let said = before.as_ref().map(|it| &it.terms);
    let name = before.as_ref().map_or(&asked.name, |it| &it.name);
    record(scope, asked.workspace, &asked.by, name, (said, Some(&terms)))?;
    let template = match before {
        Some(before) => WorkspaceTemplate { terms, ..WorkspaceTemplate::clone(&before) },
        None => WorkspaceTemplate {
            id: WorkspaceTemplate::id_of(asked.workspace, &asked.name),
            workspace: asked.workspace,
            name: asked.name.clone(),
            terms,
            created_by: asked.by.maker(),
            created_at: scope.now(),
        },
    };
    scope.put(template.clone());
    Ok(Arc::new(template))
}

/// The workspace's own template of this name. Names that look alike are one.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn own_template(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    name: &Label,
) -> Result<Option<Arc<WorkspaceTemplate>>, Halt> {
    for id in WorkspaceTemplate::ids_of(workspace, name) {
        if let Some(found) = scope.get::<WorkspaceTemplate>(id)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What a change does to a template: what it said, and what it says from now on.
type Sides<'a> = (Option<&'a Terms>, Option<&'a Terms>);

/// A template is a setting of its workspace: so the ledger names it, with what it said and says as mandates have it.
fn record(scope: &mut Scope<'_>, workspace: WorkspaceId, by: &By, name: &Label, sides: Sides<'_>) -> Result<(), Halt> {
    let what = match sides {
        (None, _) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    };
    let side = |terms: Option<&Terms>| Ok::<_, Halt>(Json::Object(terms.map(told).transpose()?.unwrap_or_default()));
    let (old, new) = differing(&side(sides.0)?, &side(sides.1)?);
    let data = Object::new().text("member", "templates").raw("new", &new).raw("old", &old);
    let data = data.text("template", name.as_str()).text("what", what).finish();
    let names = [("new.name", sides.1), ("old.name", sides.0)].map(|(path, terms)| Some((path, terms?.name.as_str())));
    let renamed = sides.0.map(|it| &it.name) != sides.1.map(|it| &it.name);
    let texts: Vec<_> = names.into_iter().flatten().filter(|_| renamed).collect();
    let subject = Subject::Workspace(workspace);
    let fact = Fact { kind: "settings.changed", actor: by.actor(), subject, data };
    scope.append_with(workspace, fact, &texts);
    Ok(())
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
    let template = own_template(scope, asked.workspace, &asked.name)?.ok_or_else(Refusal::not_found)?;
    record(scope, asked.workspace, &asked.by, &template.name, (Some(&template.terms), None))?;
    scope.delete::<WorkspaceTemplate>(template.id);
    Ok(())
}
