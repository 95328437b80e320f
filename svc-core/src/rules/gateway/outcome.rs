//! What came of a task is reported.

use super::payer::{CallKey, may_report, principal_of};
use crate::refusal::Refusal;
use crate::state::evidence::{Fact, Subject};
use crate::state::gateway::{Task, TaskOutcome, TaskStatus};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
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
    let binding = &asked.caller.binding;
    let key = Task::key_of(binding.workspace, &asked.task);
    let mut keys = asked.caller.keys();
    keys.push(Task::key(key));
    scope.want(&keys)?;
    may_report(scope, &asked.caller)?;
    let task = scope.get::<Task>(key)?.ok_or_else(Refusal::unknown_task)?;
    let principal = principal_of(scope, &asked.caller)?;
    if !asked.caller.carries_on(principal, &task) {
        return Err(Refusal::forbidden("this task is another principal's").into());
    }
    let outcome = TaskOutcome { status: asked.status, at: scope.now(), by_integration: false };
    let next = super::rollup::report(scope, &task, outcome)?;
    let mut data = Object::new().text("taskId", asked.task.as_str()).text("status", asked.status.as_str());
    data = data.int("spentMicros", i64::try_from(task.spent.get()).unwrap_or(i64::MAX));
    if let Some(before) = task.outcome {
        data = data.text("before", before.status.as_str());
    }
    let subject = Subject::Task(asked.task.clone());
    let fact = Fact { kind: "outcome.reported", actor: asked.caller.actor(), subject, data: data.finish() };
    scope.append(binding.workspace, fact);
    scope.put(next.clone());
    Ok(Arc::new(next))
}
