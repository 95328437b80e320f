//! Drills (CONTRACT part 2, "Drill, suggested rule, scorecard").

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::state::gate::{Drill, DrillStep};
use svc_core::value::id::AgentId;
use svc_core::value::text::Note;

use super::named::Names;
use super::{Fields, parse_or_empty, text};

/// Agents that a drill may name.
const TARGETS_MAX: usize = 10;

/// What a drill names.
pub const IDS: &[(&str, Names)] = &[("agentIds.[]", Names::Agent)];

/// Reads `{ agentIds?, reason? }`; nothing at all asks for a plain canary.
///
/// # Errors
/// `invalid_json`, `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<(Vec<AgentId>, Option<Note>), Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let targets = fields.texts("agentIds", (1, TARGETS_MAX), AgentId::parse).unwrap_or_default();
    let reason = fields.optional("reason", |it| Note::parse(text(it)?));
    fields.finish(Some((targets, reason)))
}

/// A drill that has started.
///
/// # Errors
/// `internal` where it cannot be written.
pub fn write_started(drill: &Drill) -> Result<Vec<u8>, Refusal> {
    bytes(&json!({ "id": drill.id, "state": drill.state.as_str() }))
}

/// A drill's report.
///
/// # Errors
/// `internal` where it cannot be written.
pub fn write(drill: &Drill) -> Result<Vec<u8>, Refusal> {
    let step = |it: &DrillStep| json!({ "point": it.point.as_str(), "expected": it.expected, "got": it.got, "ms": it.ms, "ok": it.ok });
    bytes(&json!({
        "id": drill.id,
        "state": drill.state.as_str(),
        "canaryId": drill.canary,
        "startedAt": drill.started_at.to_string(),
        "endedAt": drill.ended_at.map(|it| it.to_string()),
        "containedMs": drill.contained_ms,
        "steps": drill.steps.iter().map(step).collect::<Vec<_>>(),
        "evidenceRecord": drill.evidence,
    }))
}

fn bytes(body: &Value) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(body).map_err(|_| Refusal::internal())
}
