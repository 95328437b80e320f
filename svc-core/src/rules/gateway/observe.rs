//! What calls bring into a session's context: noted for the session and for the agent, as source and digest, never as
//! content (CONTRACT part 2, "Provenance").

use std::collections::BTreeSet;
use std::sync::Arc;

use super::payer::CallKey;
use crate::refusal::Refusal;
use crate::state::gate::{Activity, ClientSession, StandIn};
use crate::state::gateway::{Call, Context, Routing, ToolResult};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::{AgentId, CallId, WorkspaceId};
use crate::value::text::{SessionId, Source};

/// A provider has run tools of its own for an answer that is still coming.
#[derive(Clone, Debug)]
pub struct NoteOwnTools {
    /// The call.
    pub call: CallId,
    /// The tools, by their names.
    pub tools: Vec<Box<str>>,
    /// By what the call was routed.
    pub routing: Arc<Routing>,
}

/// Notes what those tools bring in, before the agent sees it: [`FinishCall`](super::finish::FinishCall) notes it again, after
/// an answer during which the agent can act, and which the server may not live to end.
///
/// # Errors
/// `not_found` where there is no such call.
pub fn note_own_tools(scope: &mut Scope<'_>, asked: &NoteOwnTools) -> Result<(), Halt> {
    let call = scope.get::<Call>(asked.call)?.ok_or_else(Refusal::not_found)?;
    note_used(scope, &call, asked.tools.iter().map(|it| &**it), &asked.routing)
}

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
    let (workspace, agent) = (caller.binding.workspace, caller.agent());
    let seen: Vec<(Source, _)> =
        results.iter().filter_map(|it| Some((source_of(&it.tool, routing)?, it.digest))).collect();
    let sources = || seen.iter().map(|(source, _)| source);
    let own = StandIn::of(session).is_none_or(|it| it.is_of(caller.binding.key, caller.binding.connection));
    if note_session(scope, workspace, agent, (session, own), sources())? {
        note_digests(scope, caller, session, &seen)?;
    }
    note_agent(scope, agent, sources())
}

/// Notes what tools that a provider ran itself brought into the session of a call, by their names alone: of an answer nothing
/// is kept. Where none was used no row is read.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn note_used<'a>(
    scope: &mut Scope<'_>,
    call: &Call,
    tools: impl Iterator<Item = &'a str>,
    routing: &Routing,
) -> Result<(), Halt> {
    let tools: Vec<&str> = tools.collect();
    // The tool of a server is known by its own name, under which the table may have it; what it is priced under is none.
    let are_named = tools.iter().any(|it| it.starts_with("mcp__"));
    let tools = tools.into_iter().filter(|it| !are_named || *it != "mcp");
    let sources: BTreeSet<Source> = tools.filter_map(|it| source_of(it, routing)).collect();
    if sources.is_empty() {
        return Ok(());
    }
    let (workspace, agent) = (call.workspace, call.payer.agent);
    let mut keys = vec![ClientSession::key(ClientSession::id_of(workspace, &call.session))];
    keys.extend(agent.map(Activity::key));
    scope.want(&keys)?;
    let own = StandIn::of(&call.session).is_none();
    note_session(scope, workspace, agent, (&call.session, own), sources.iter())?;
    note_agent(scope, agent, sources.iter())
}

fn source_of(tool: &str, routing: &Routing) -> Option<Source> {
    Source::parse(routing.meaning_of(tool).source).ok()
}

/// Notes sources for a session, which becomes the agent's where it is nobody's and `may_claim`; whether it is the agent's then, or
/// there is no agent. What stands for none, of a key or connection that is another's, is left as it is: what is noted there is
/// compared with what that one does.
fn note_session<'a>(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    agent: Option<AgentId>,
    (session, may_claim): (&SessionId, bool),
    sources: impl Iterator<Item = &'a Source>,
) -> Result<bool, Halt> {
    let (id, now) = (ClientSession::id_of(workspace, session), scope.now());
    let known = scope.get::<ClientSession>(id)?;
    let owner = known.as_ref().and_then(|it| it.owner_at(now));
    if agent.is_some() && owner != agent && (owner.is_some() || !may_claim) {
        // What this rests on is to be there: a session that comes meanwhile is seen.
        if known.is_none() {
            scope.put(ClientSession::new(id, now));
        }
        return Ok(false);
    }
    let before = known.as_deref().cloned();
    let mut row = before.clone().unwrap_or_else(|| ClientSession::new(id, now));
    if let Some(agent) = agent {
        row.name_by(agent, now);
    }
    sources.for_each(|it| row.observe(it));
    row.carried = true;
    if before.as_ref() != Some(&row) {
        scope.put(row);
    }
    Ok(true)
}

/// Notes sources for an agent; without one, or without any, nothing is read.
fn note_agent<'a>(
    scope: &mut Scope<'_>,
    agent: Option<AgentId>,
    sources: impl Iterator<Item = &'a Source>,
) -> Result<(), Halt> {
    let mut sources = sources.peekable();
    let Some(agent) = agent.filter(|_| sources.peek().is_some()) else { return Ok(()) };
    let now = scope.now();
    if let Some(activity) = scope.get::<Activity>(agent)? {
        let mut row = Activity::clone(&activity);
        if row.see(sources, now) {
            scope.put(row);
        }
    }
    Ok(())
}

fn note_digests(
    scope: &mut Scope<'_>,
    caller: &CallKey,
    session: &SessionId,
    seen: &[(Source, Digest)],
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
