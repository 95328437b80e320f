//! Erases what is personal: the texts behind commitments, and the salts they rest on. Records stay as they are, so the tree
//! and every proof stay whole; what was erased can be shown by nobody.

use crate::refusal::Refusal;
use crate::rules::people::by::{self, By};
use crate::state::evidence::{Disclosure, Fact, Subject};
use crate::state::gate::{Action, Payload};
use crate::state::people::Right;
use crate::store::{Key, Row as _};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{ActionId, EvidenceId, PrincipalId, WorkspaceId};

/// Whose or what personal texts are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Of one action: its words, whom data went to, the payee's name.
    Action(ActionId),
    /// Of one person: texts about them, and those that they wrote.
    Principal(PrincipalId),
}

/// Erases.
#[derive(Clone, Debug)]
pub struct Erase {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who asks.
    pub by: By,
    /// What.
    pub target: Target,
    /// The disclosures that a scan found of the target; each is looked at again.
    pub disclosures: Vec<EvidenceId>,
}

/// Erases, records that it was done, and gives how many rows lost their texts.
///
/// # Errors
/// `forbidden` or `missing_scope` where the caller may not, `not_found` where the workspace has no such action.
pub fn erase(scope: &mut Scope<'_>, asked: &Erase) -> Result<u64, Halt> {
    by::entitled(scope, &asked.by, asked.workspace, Right::Erase)?;
    let keys: Vec<Key> = asked.disclosures.iter().map(|id| Disclosure::key(*id)).collect();
    scope.want(&keys)?;
    let mut erased: u64 = 0;
    for id in &asked.disclosures {
        let own = |row: &std::sync::Arc<Disclosure>| row.workspace == asked.workspace && concerns(row, asked.target);
        if scope.get::<Disclosure>(*id)?.filter(own).is_some() {
            scope.delete::<Disclosure>(*id);
            erased = erased.saturating_add(1);
        }
    }
    let subject = match asked.target {
        Target::Action(id) => {
            erased = erased.saturating_add(erase_action(scope, asked.workspace, id)?);
            Subject::Action(id)
        }
        Target::Principal(id) => Subject::Principal(id),
    };
    let data = Object::new().raw("erased", &erased.to_string()).finish();
    scope.append(asked.workspace, Fact { kind: "erasure", actor: asked.by.actor(), subject, data });
    Ok(erased)
}

fn concerns(row: &Disclosure, target: Target) -> bool {
    match target {
        Target::Action(id) => *row.subject == *id.to_string(),
        Target::Principal(id) => row.by == Some(id) || *row.subject == *id.to_string(),
    }
}

fn erase_action(scope: &mut Scope<'_>, workspace: WorkspaceId, id: ActionId) -> Result<u64, Halt> {
    scope.want(&[Action::key(id), Payload::key(id)])?;
    let action = scope.get::<Action>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    if action.erased {
        return Ok(0);
    }
    if scope.get::<Payload>(id)?.is_some() {
        scope.delete::<Payload>(id);
    }
    scope.put(Action::clone(&action).erase());
    Ok(1)
}
