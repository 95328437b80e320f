//! What came of a task is reported.

use super::payer::{CallKey, may_report, principal_of};
use crate::refusal::Refusal;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gateway::{PullEnd, Task, TaskOutcome, TaskStatus};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{IntegrationId, WorkspaceId};
use crate::value::text::TaskId;
use std::sync::Arc;

/// A task's outcome is reported by a key.
#[derive(Clone, Debug)]
pub struct ReportOutcome {
    /// The key.
    pub caller: CallKey,
    /// The task.
    pub task: TaskId,
    /// What came of it.
    pub status: TaskStatus,
}

/// Records an outcome; a later report replaces it, and both stay in the ledger.
///
/// # Errors
/// `invalid_api_key`; `agent_stopped` where the agent was removed; `unknown_task` where there is none; `forbidden` where it is another principal's, neither begun by
/// the key's own agent, and the key is not an admin's.
pub fn report_outcome(scope: &mut Scope<'_>, asked: &ReportOutcome) -> Result<Arc<Task>, Halt> {
    let key = Task::key_of(asked.caller.binding.workspace, &asked.task);
    let mut keys = asked.caller.keys();
    keys.push(Task::key(key));
    scope.want(&keys)?;
    may_report(scope, &asked.caller)?;
    let task = scope.get::<Task>(key)?.ok_or_else(Refusal::unknown_task)?;
    let principal = principal_of(scope, &asked.caller)?;
    if !asked.caller.carries_on(principal, &task) {
        return Err(Refusal::forbidden("this task is another principal's").into());
    }
    let outcome = TaskOutcome { status: asked.status, at: scope.now(), by_integration: false, pull: None };
    replace(scope, &task, outcome, asked.caller.actor())
}

/// Records what an integration says came of the tasks that its event names: of each mention the first id of a task that there is, unless
/// what was reported before [stays](TaskOutcome::gives_way_to). Returns how many were reported, and how many named a task.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn report_for(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    integration: IntegrationId,
    mentions: &[Vec<TaskId>],
    (status, pull): (TaskStatus, Option<PullEnd>),
) -> Result<(u32, u32), Halt> {
    let keys: Vec<_> = mentions.iter().flatten().map(|id| Task::key(Task::key_of(workspace, id))).collect();
    scope.want(&keys)?;
    let (mut reported, mut named) = (0, 0);
    for meant in mentions {
        let mut found = None;
        for id in meant {
            if found.is_none() {
                found = scope.get::<Task>(Task::key_of(workspace, id))?;
            }
        }
        let Some(task) = found else { continue };
        named += 1;
        if task.outcome.is_none_or(|it| it.gives_way_to(status, pull.as_ref())) {
            let outcome = TaskOutcome { status, at: scope.now(), by_integration: true, pull };
            replace(scope, &task, outcome, Actor::Integration(integration))?;
            reported += 1;
        }
    }
    Ok((reported, named))
}

/// Puts an outcome in the place of the one before, and records it.
fn replace(scope: &mut Scope<'_>, task: &Task, outcome: TaskOutcome, actor: Actor) -> Result<Arc<Task>, Halt> {
    let next = super::rollup::report(scope, task, outcome)?;
    let mut data = Object::new().text("taskId", task.id.as_str()).text("status", outcome.status.as_str());
    data = data.int("spentMicros", i64::try_from(task.spent.get()).unwrap_or(i64::MAX));
    if let Some(before) = task.outcome {
        data = data.text("before", before.status.as_str());
    }
    let subject = Subject::Task(task.id.clone());
    scope.append(task.workspace, Fact { kind: "outcome.reported", actor, subject, data: data.finish() });
    scope.put(next.clone());
    Ok(Arc::new(next))
}
