//! The gate itself does what a person has approved, such as the call of a tool of an MCP server behind it: it shows the receipt to
//! itself, and asks its rules once more, as it is the one that would do what they forbid by now.

use std::sync::Arc;

use super::decide::forbidden;
use super::verify::{Fault, Verdict, Verify, verify};
use crate::refusal::Refusal;
use crate::state::gate::{Action, Agent, Allowed, State};
use crate::state::people::Workspace;
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::ActionId;

/// Uses up the receipt of an action that a person approved.
#[derive(Clone, Debug)]
pub struct UseUp {
    /// The action.
    pub action: ActionId,
    /// Its digest, as it was looked at.
    pub digest: Digest,
    /// What its receipt is used for, as one digest.
    pub body: Digest,
}

/// Uses it up, unless the receipt is no good, the agent has settled the action or a deny list, a revoked mandate or the workspace's settings forbid the action by
/// now: then it stays as it is, [`Fault::Revoked`] for whoever asked, and the same asked for again is told why.
///
/// # Errors
/// `internal` where a row that the action names is not there.
pub fn use_up(scope: &mut Scope<'_>, asked: &UseUp) -> Result<Verdict, Halt> {
    let Some(action) = scope.get::<Action>(asked.action)? else { return Ok(Verdict::no(Fault::UnknownReceipt)) };
    scope.want(&[Agent::key(action.agent), Workspace::key(action.workspace)])?;
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    // What somebody has told the outcome of is over.
    let is_told = action.allowed().is_some_and(|it| it.outcome.is_some());
    if is_told || !forbidden(scope, &workspace, &agent, &action)?.is_empty() {
        return Ok(Verdict { fault: Some(Fault::Revoked), action: Some(action), replayed: false });
    }
    let shown = Verify {
        receipt: asked.action.into(),
        digest: asked.digest,
        charge: None,
        kind: Some(action.kind.as_str().into()),
        key: None,
        body: asked.body,
        signed_by: None,
    };
    let verdict = verify(scope, &shown)?;
    let Some(used) = verdict.action.as_ref().filter(|_| verdict.is_valid()) else { return Ok(verdict) };
    let mut used = Action::clone(used);
    if let State::Allowed(Allowed { consumed: Some(consumed), .. }) = &mut used.state {
        consumed.body = Some(asked.body);
    }
    let used = Arc::new(used);
    scope.put_shared(&used);
    Ok(Verdict { action: Some(used), ..verdict })
}
