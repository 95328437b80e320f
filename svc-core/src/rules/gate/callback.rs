//! The agent names who is called once its action is decided: one address an action, the newest one.

use super::caller::Caller;
use crate::rules::read::own_action;
use crate::state::gate::{Action, Callback};
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

/// Registers a callback in place of the one before.
///
/// # Errors
/// `not_found`, and those of the caller.
pub fn register_callback(scope: &mut Scope<'_>, asked: &RegisterCallback) -> Result<Callback, Halt> {
    let action = own_action(scope, &asked.caller, asked.action)?;
    let callback = Callback { id: scope.fresh(), url: asked.url.clone(), created_at: scope.now() };
    scope.put(Action { callback: Some(Box::new(callback.clone())), ..Action::clone(&action) });
    Ok(callback)
}
