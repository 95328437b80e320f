//! What calls bring into a session's context: noted for the session and for the agent, as source and digest, never as
//! content (CONTRACT part 2, "Provenance").

use super::payer::CallKey;
use crate::state::gate::{Activity, ClientSession};
use crate::state::gateway::{Context, Routing, ToolResult};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::text::{SessionId, Source};

/// The rows that noting reads.
pub(in crate::rules) fn keys(caller: &CallKey, session: &SessionId, results: &[ToolResult]) -> Vec<Key> {
    let workspace = caller.binding.workspace;
    let mut keys = vec![ClientSession::key(ClientSession::id_of(workspace, session))];
    if !results.is_empty() {
        keys.push(Context::key(Context::id_of(workspace, session)));
        keys.extend(caller.agent().map(Activity::key));
    }
    keys
}

/// Notes what the results of tools in this call bring in. The session becomes the agent's where it is nobody's; a session of
/// another agent is left as it is, and what the call brings in counts for its own agent alone.
pub(in crate::rules) fn note(
    scope: &mut Scope<'_>,
    caller: &CallKey,
    session: &SessionId,
    results: &[ToolResult],
    routing: &Routing,
) -> Result<(), Halt> {
    let (workspace, now) = (caller.binding.workspace, scope.now());
    let seen: Vec<(Source, _)> = results
        .iter()
        .filter_map(|it| Source::parse(routing.meaning_of(&it.tool).source).ok().map(|source| (source, it.digest)))
        .collect();
    let id = ClientSession::id_of(workspace, session);
    let known = scope.get::<ClientSession>(id)?;
    let owner = known.as_ref().and_then(|it| it.owner_at(now));
    let foreign = owner.is_some_and(|it| Some(it) != caller.agent());
    if !(foreign && caller.agent().is_some()) {
        let before = known.as_deref().cloned();
        let mut row = before.clone().unwrap_or_else(|| ClientSession::new(id, now));
        if let Some(agent) = caller.agent() {
            row.name_by(agent, now);
        }
        for (source, _) in &seen {
            row.observe(source);
        }
        row.carried = true;
        if before.as_ref() != Some(&row) {
            scope.put(row);
        }
        note_digests(scope, caller, session, &seen)?;
    }
    if let Some(agent) = caller.agent().filter(|_| !seen.is_empty()) {
        let activity = scope.get::<Activity>(agent)?;
        if let Some(activity) = activity {
            let mut row = Activity::clone(&activity);
            if row.see(seen.iter().map(|(source, _)| source), now) {
                scope.put(row);
            }
        }
    }
    Ok(())
}

fn note_digests(
    scope: &mut Scope<'_>,
    caller: &CallKey,
    session: &SessionId,
    seen: &[(Source, crate::value::digest::Digest)],
) -> Result<(), Halt> {
    if seen.is_empty() {
        return Ok(());
    }
    let id = Context::id_of(caller.binding.workspace, session);
    let now = scope.now();
    let before = scope.get::<Context>(id)?;
    let mut row = before.as_deref().cloned().unwrap_or(Context { id, seen: Vec::new() });
    let mut fresh = false;
    for (source, digest) in seen {
        fresh |= row.note(source, *digest, now);
    }
    if fresh {
        scope.put(row);
    }
    Ok(())
}
