//! The agent names who is called once its action is decided: one address an action, the newest one.

use std::sync::Arc;

use super::caller::{Caller, caller_agent};
use super::hold::held_by;
use crate::refusal::Refusal;
use crate::rules::edge::notify;
use crate::rules::read::own_action;
use crate::state::edge::Job;
use crate::state::gate::{Action, Callback, Status};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::ActionId;
use crate::value::text::UrlText;

/// Names an address for an action.
#[derive(Clone, Debug)]
pub struct RegisterCallback {
    /// Whose action.
    pub caller: Caller,
    /// Which action.
    pub action: ActionId,
    /// The address, checked by the outbound guard.
    pub url: UrlText,
}

/// A callback as it stands.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The callback.
    pub callback: Callback,
    /// The call, once the action is decided.
    pub job: Option<Arc<Job>>,
}

/// Registers a callback in place of the one before, which is called no more. An action that is decided already is told at
/// once.
///
/// # Errors
/// `not_found`, and those of the caller.
pub fn register_callback(scope: &mut Scope<'_>, asked: &RegisterCallback) -> Result<Registered, Halt> {
    let action = own_action(scope, &asked.caller, asked.action)?;
    let mut keys = vec![Workspace::key(action.workspace)];
    keys.extend(action.callback.iter().map(|it| Job::key(it.id.into())));
    scope.want(&keys)?;
    let agent = caller_agent(scope, &asked.caller)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    if let Some(before) = &action.callback {
        notify::replaced(scope, before)?;
    }
    let callback = Callback { id: scope.fresh(), url: asked.url.clone(), created_at: scope.now() };
    scope.put(Action { callback: Some(Box::new(callback.clone())), ..Action::clone(&action) });
    let held = held_by(scope, &workspace, agent.id)?;
    let status = action.status(&agent, held.map(|it| it.at), scope.now());
    let job = (status != Status::Pending).then(|| notify::tell(scope, &action, &callback, status));
    Ok(Registered { callback, job })
}
