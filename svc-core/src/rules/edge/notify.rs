//! A decided action is told to whoever the agent named: a job in the deciding commit.

use std::sync::Arc;

use crate::state::edge::{Job, Work};
use crate::state::gate::{Action, Callback, State, Status};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::id::DeliveryId;

/// Has the agent called back, if it asked for that, now that `action` is decided. Called in the commit that decides it, with
/// the action as it then stands; what still waits is not told, and what was told already is not told again.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn decided(scope: &mut Scope<'_>, action: &Action) -> Result<(), Halt> {
    let status = match &action.state {
        State::Pending { .. } => return Ok(()),
        State::Allowed(_) => Status::Allowed,
        State::Denied { .. } => Status::Denied,
        State::Expired { .. } => Status::Expired,
    };
    let Some(callback) = &action.callback else { return Ok(()) };
    if scope.get::<Job>(callback.id.into())?.is_none() {
        tell(scope, action, callback, status);
    }
    Ok(())
}

/// Has `callback` called for an action that reads `status`, which is not pending.
pub fn tell(scope: &mut Scope<'_>, action: &Action, callback: &Callback, status: Status) -> Arc<Job> {
    let now = scope.now();
    let work = Work::Decided {
        callback: callback.id,
        action: action.id,
        verb: action.verb(status),
        status,
        at: decided_at(action).unwrap_or(now),
        agent: Some(action.agent),
    };
    let job = Job::new(DeliveryId::from(callback.id), action.workspace, work, callback.url.clone(), now);
    scope.put(job.clone());
    Arc::new(job)
}

/// Calls a callback no more: another has taken its place. What was delivered or given up stays so.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn replaced(scope: &mut Scope<'_>, callback: &Callback) -> Result<(), Halt> {
    if let Some(job) = scope.get::<Job>(callback.id.into())?.filter(|it| it.due().is_some()) {
        scope.put(Job::clone(&job).replaced(scope.now()));
    }
    Ok(())
}

/// When an action was decided, as far as its own row tells.
fn decided_at(action: &Action) -> Option<Timestamp> {
    match &action.state {
        State::Pending { .. } => None,
        State::Allowed(allowed) => Some(allowed.at),
        State::Denied { at, .. } | State::Expired { at } => Some(*at),
    }
}
