//! A person gives back what the use of a receipt kept posted: a consumed receipt is stronger than the agent's word, and
//! only a person or the issuer is stronger than it (CONTRACT part 3).

use std::sync::Arc;

use super::record::ActionRecord;
use super::{payee, posting};
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled};
use crate::rules::read::{View, view};
use crate::state::evidence::Actor;
use crate::state::gate::{Action, Activity, Agent, OutcomeStatus};
use crate::state::people::{Right, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::{ActionId, PrincipalId, WorkspaceId};
use crate::value::text::Note;

/// Releases what the use of an action's receipt kept posted.
#[derive(Clone, Debug)]
pub struct ReleaseAction {
    /// Who does.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which action.
    pub action: ActionId,
    /// Why.
    pub reason: Note,
}

/// Posts what the agent said in place of what was charged, and nothing where it has lapsed without a word. The one of the
/// count stays.
///
/// # Errors
/// `not_found`, `not_allowed` where nothing is kept, and those of the caller.
pub fn release_action(scope: &mut Scope<'_>, asked: &ReleaseAction) -> Result<View, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ReleaseActions)?;
    let before = scope.get::<Action>(asked.action)?.filter(|it| it.workspace == asked.workspace);
    let before = before.ok_or_else(Refusal::not_found)?;
    release_as(scope, &before, (asked.by.actor(), asked.by.principal()), Some(&asked.reason))
}

/// Releases the same in the name of `by`, who may: a person, or the issuer, whose reversal has no reason.
///
/// # Errors
/// `not_allowed` where nothing is kept; nothing is put then.
pub(crate) fn release_as(
    scope: &mut Scope<'_>,
    before: &Action,
    (actor, person): (Actor, Option<PrincipalId>),
    reason: Option<&Note>,
) -> Result<View, Halt> {
    scope.want(&[Agent::key(before.agent), Activity::key(before.agent), Workspace::key(before.workspace)])?;
    let agent = scope.get::<Agent>(before.agent)?.ok_or_else(Refusal::internal)?;
    let (mut action, released) = Action::clone(before).release(scope.now(), person)?;
    let allowed = action.allowed().ok_or_else(Refusal::internal)?;
    let done = allowed.outcome.as_ref().is_some_and(|it| it.status == OutcomeStatus::Completed);
    let posted = allowed.posted().unwrap_or(0);
    posting::repost(scope, before, posted.saturating_add(released), posted)?;
    // What was never done and is charged no more was no payment to its payee.
    if let Some(slot) = action.payee {
        let asked = action.payment.as_ref().map_or(0, |it| it.amount);
        if done { payee::restate(scope, slot, asked, posted)? } else { payee::void(scope, slot)? }
    }
    let seen = view(scope, Arc::new(action.clone()))?;
    let more = [
        ("outcome", format!("\"{}\"", seen.status().as_str())),
        ("posted", posted.to_string()),
        ("released", released.to_string()),
    ];
    let record = ActionRecord {
        kind: "action.released",
        actor,
        action: &action,
        agent: &agent,
        verb: seen.verb(),
        status: seen.status(),
    };
    // What is personal in the action is gone, and no sweep comes by here again: the reason is not kept either.
    let texts: Vec<(&str, &str)> =
        reason.filter(|_| !before.erased).map(|it| ("reason", it.as_str())).into_iter().collect();
    action.evidence = scope.append_with(before.workspace, record.fact(&more), &texts);
    scope.put(action.clone());
    Ok(View { action: Arc::new(action), ..seen })
}
