//! The bodies of calls to the outside (CONTRACT part 2, "Callback registration answer"), but for those that are made of the
//! ledger's records.

use serde::Serialize;
use svc_core::state::edge::{IntegrationKind, Job, Work};

use crate::wire::ocsf;

/// The body of a job's call: the same bytes at every try. `None` of an export, whose body is made of records.
#[must_use]
pub fn body(job: &Job) -> Option<Vec<u8>> {
    let event = match &job.work {
        // What becomes messages calls nobody, and a message has a body of its own.
        Work::Tell { .. } | Work::Message { .. } => return Some(Vec::new()),
        Work::Decided { callback, action, verb, status, at, .. } => Event {
            id: callback.to_string(),
            kind: "action.decided",
            action_id: Some(action.to_string()),
            decision: Some(verb.as_str()),
            status: Some(status.as_str()),
            occurred_at: at.to_string(),
        },
        Work::Export { .. } => return None,
        Work::Test { integration, over: IntegrationKind::Export, .. } => return Some(ocsf::test(job, *integration)),
        Work::Test { integration, .. } => Event {
            id: integration.to_string(),
            kind: "test",
            action_id: None,
            decision: None,
            status: None,
            occurred_at: job.created_at.to_string(),
        },
    };
    // Texts and nothing else: it is always written.
    Some(serde_json::to_vec(&event).unwrap_or_default())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    occurred_at: String,
}
