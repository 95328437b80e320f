//! The body and the answer of `POST /v1/outcomes`.

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::state::gateway::{Task, TaskStatus};
use svc_core::value::json::Json;
use svc_core::value::text::TaskId;

use super::{Fields, parse, put, text};

/// What came of a task.
#[derive(Clone, Debug)]
pub struct Report {
    /// The task.
    pub task: TaskId,
    /// How it ended.
    pub status: TaskStatus,
}

/// Reads a report.
///
/// # Errors
/// `invalid_json`; `invalid_status` where that is wrong, told first; `invalid_request` naming `taskId`.
pub fn read(body: &[u8]) -> Result<Report, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let status = fields.raw("status").and_then(Json::as_str).and_then(TaskStatus::parse);
    let status = status.ok_or_else(Refusal::invalid_task_status)?;
    let task = fields.required("taskId", |it| TaskId::parse(text(it)?));
    fields.finish(task.map(|task| Report { task, status }))
}

/// What was recorded.
#[must_use]
pub fn write(task: &Task) -> String {
    json!({
        "taskId": task.id.as_str(),
        "status": task.outcome.map(|it| it.status.as_str()),
        "spentMicros": task.spent.get(),
        "recordedAt": task.outcome.map(|it| it.at.to_string()),
    })
    .to_string()
}

/// A task as members see it (CONTRACT part 2, "Model calls").
#[must_use]
pub fn item(task: &Task) -> Value {
    let mut item = json!({
        "id": task.id.as_str(),
        "taskClass": task.class.as_ref().map(|it| it.as_str()),
        "principalId": task.principal.to_string(),
        "calls": task.calls,
        "spentMicros": task.spent.get(),
        "createdAt": task.created_at.to_string(),
        "createdBy": task.opened_by.to_string(),
    });
    if let Some(agent) = task.agent {
        put(&mut item, "agentId", json!(agent.to_string()));
    }
    if let Some(outcome) = task.outcome {
        put(&mut item, "outcome", json!(outcome.status.as_str()));
    }
    item
}
