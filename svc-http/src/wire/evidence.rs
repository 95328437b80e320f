//! What evidence is asked for with.

use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::{Span, Timestamp};
use svc_store::evidence::{Card, Wanted};

use super::page::Query;

/// How far back evidence goes where nothing is said.
const DEFAULT_SPAN: Span = Span::hours(24);

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|_| "must be a time such as 2026-10-01T09:30:00.000Z".to_owned())
}

fn agent(text: &str) -> Result<AgentId, String> {
    AgentId::parse(text).map_err(|_| "must be an agent's id".to_owned())
}

/// The bundle that a query asks for.
///
/// # Errors
/// `invalid_request` with every fault.
pub fn wanted(uri: &http::Uri, workspace: WorkspaceId, now: Timestamp) -> Result<Wanted, Refusal> {
    let mut query = Query::of(uri);
    let (from, to) = (query.take("from", instant), query.take("to", instant));
    let since = query.take("since", |text| match text.parse::<u64>() {
        Ok(size) if size > 0 && size.to_string() == text => Ok(size),
        _ => Err("must be the size of a checkpoint, from 1".to_owned()),
    });
    let agent = query.take("agentId", agent);
    let redact = query.take("redact", |text| text.parse::<bool>().map_err(|_| "must be true or false".to_owned()));
    if from.zip(to).is_some_and(|(from, to)| to < from) {
        query.fault("to", "must not be before `from`");
    }
    let cursor = query.raw("cursor").map(str::to_owned);
    query.finish()?;
    if let Some(cursor) = cursor {
        // A cursor carries the whole question: what is said beside it must not seem to count.
        return Wanted::next(workspace, &cursor);
    }
    let from = from.unwrap_or_else(|| to.unwrap_or(now).minus(DEFAULT_SPAN));
    Ok(Wanted { workspace, from, to, since, start: None, agent, redact: redact.unwrap_or(false) })
}

/// The scorecard that a query asks for.
///
/// # Errors
/// `invalid_request` with every fault.
pub fn card(uri: &http::Uri, workspace: WorkspaceId) -> Result<Card, Refusal> {
    let mut query = Query::of(uri);
    let (from, to, agent) = (query.take("from", instant), query.take("to", instant), query.take("agentId", agent));
    if from.zip(to).is_some_and(|(from, to)| to <= from) {
        query.fault("to", "must be after `from`");
    }
    query.finish()?;
    Ok(Card { workspace, agent, from, to })
}

/// A scorecard's answer.
///
/// # Errors
/// None that a test does not rule out.
pub fn write_card(jws: &str) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(&json!({ "scorecard": jws })).map_err(|_| Refusal::internal())
}
