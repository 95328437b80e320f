//! A workspace with its first owner.

use std::sync::Arc;

use super::accounts::{account_for, join, principal_for};
use crate::refusal::{FieldError, Refusal};
use crate::state::evidence::{Actor, Chain, Fact, Subject};
use crate::state::gate::Sweep;
use crate::state::gateway::{Routing, Yields};
use crate::state::people::{Member, MemberState, Plan, Role, Roster, Settings, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::WorkspaceId;
use crate::value::text::{Email, Label};

/// Makes a workspace.
#[derive(Clone, Debug)]
pub struct CreateWorkspace {
    /// What people call it.
    pub name: Label,
    /// Where its first owner is reached.
    pub owner: Email,
    /// Its settings.
    pub settings: Settings,
}

/// Makes a workspace, its first owner, and the rows that are always there.
///
/// # Errors
/// `invalid_request` naming every setting that is out of its bounds.
pub fn create_workspace(scope: &mut Scope<'_>, asked: &CreateWorkspace) -> Result<Arc<Workspace>, Halt> {
    let faults: Vec<FieldError> =
        asked.settings.faults().into_iter().map(|(field, why)| FieldError::invalid(field, why)).collect();
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let id: WorkspaceId = scope.fresh();
    let now = scope.now();
    let account = account_for(scope, &asked.owner)?;
    let principal = principal_for(scope, id, &asked.owner, None)?;
    let member = Member::new(Role::Owner, MemberState::Active, account.id);
    let owner = join(scope, &account, &principal, member);
    let workspace = Workspace {
        id,
        name: asked.name.clone(),
        settings: asked.settings.clone(),
        plan: Plan::SelfHosted,
        subscriptions: Vec::new(),
        holds: Vec::new(),
        budgets: Vec::new(),
        told_over: Vec::new(),
        owner: owner.id,
        owners: vec![owner.id],
        created_at: now,
    };
    scope.put(workspace.clone());
    scope.put(Roster { workspace: id, epoch: 0, agents: 0, mandates: 0 });
    scope.put(Routing::new(id));
    scope.put(Yields::new(id));
    scope.put(Sweep::new(id, asked.settings.retention_days, now));
    scope.put(Chain::empty(id));
    let data = Object::new().text("principalId", &owner.id.to_string()).text("role", "owner").finish();
    scope
        .append(id, Fact { kind: "member.created", actor: Actor::Policy, subject: Subject::Principal(owner.id), data });
    Ok(Arc::new(workspace))
}
