//! Calls as those see them who may.

use std::sync::Arc;

use super::budgeting;
use super::payer::{CallKey, may_report};
use crate::refusal::Refusal;
use crate::state::gateway::route::Yields;
use crate::state::gateway::{Call, Payer};
use crate::state::people::{KeyScope, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::id::{CallId, WorkspaceId};

/// A call, for the key that made it, the agent whose key that was, or an admin key of the workspace.
///
/// # Errors
/// `invalid_api_key`; `agent_stopped` where the agent was removed; `not_found` for anybody else.
pub fn call_of(scope: &mut Scope<'_>, caller: &CallKey, id: CallId) -> Result<Arc<Call>, Halt> {
    may_report(scope, caller)?;
    let binding = &caller.binding;
    let call = scope.get::<Call>(id)?.filter(|it| it.workspace == binding.workspace).ok_or_else(Refusal::not_found)?;
    let own = call.payer.key == binding.key || caller.agent().is_some_and(|it| call.payer.agent == Some(it));
    if own || binding.scope == KeyScope::Admin { Ok(call) } else { Err(Refusal::not_found().into()) }
}

/// What models have yielded of late, as choosing among them reads it.
///
/// # Errors
/// `not_found` where there is no such workspace.
pub fn yields_of(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<Yields, Halt> {
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::not_found)?;
    super::rollup::yields(scope, &workspace)
}

/// Whether a budget that covers this payer has reached the step at which cheaper models are preferred.
///
/// # Errors
/// `not_found` where there is no such workspace.
pub fn prefers_cheaper(scope: &mut Scope<'_>, workspace: WorkspaceId, payer: &Payer) -> Result<bool, Halt> {
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::not_found)?;
    Ok(budgeting::prefers_cheaper(&budgeting::covering(scope, &workspace, payer)?))
}
