//! Calls of tools of MCP servers that go through this one: who may reach which server, what a result brings into a
//! session's context, and what became of the call. Whether the call itself is allowed, the gate decides like any other action.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::gate::Caller;
use crate::rules::gate::settle::{Told, settle_as};
use crate::rules::gateway::observe;
use crate::rules::gateway::payer::{CallKey, may_call};
use crate::state::edge::{McpSecret, McpServer, McpServers, McpTools};
use crate::state::evidence::Actor;
use crate::state::gate::{Action, Activity, Agent, OutcomeStatus};
use crate::state::gateway::{Routing, ToolResult};
use crate::state::people::Workspace;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::ActionId;
use crate::value::text::SessionId;

/// A server that the caller may reach.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The server.
    pub server: McpServer,
    /// What is known of its tools.
    pub tools: Option<Arc<McpTools>>,
    /// What it is shown, sealed.
    pub secret: Option<Arc<McpSecret>>,
    /// The caller, as the gate knows it.
    pub caller: Caller,
}

/// The server of this name in the caller's workspace, for an agent that is not stopped.
///
/// # Errors
/// `agent_key_required` for a key that is no agent's; `invalid_api_key`; `agent_stopped`; `not_found` where there is no such
/// server, or it is not used.
pub fn reach(scope: &mut Scope<'_>, caller: &CallKey, name: &str) -> Result<Reached, Halt> {
    let own = Caller::of(&caller.binding)?;
    let id = caller.binding.workspace;
    scope.want(&[Workspace::key(id), McpServers::key(id)])?;
    may_call(scope, caller)?;
    let all = scope.get::<McpServers>(id)?.ok_or_else(Refusal::not_found)?;
    let server = all.named(name).filter(|it| it.enabled).cloned().ok_or_else(Refusal::not_found)?;
    scope.want(&[McpTools::key(server.id), McpSecret::key(server.id)])?;
    let tools = scope.get::<McpTools>(server.id)?;
    let secret = scope.get::<McpSecret>(server.id)?;
    Ok(Reached { server, tools, secret, caller: own })
}

/// Notes what a tool's result brings in.
#[derive(Clone, Debug)]
pub struct NoteResult {
    /// Who called it.
    pub caller: CallKey,
    /// In which session.
    pub session: SessionId,
    /// The tool, as the table of tools names it.
    pub tool: Box<str>,
    /// The digest of its result.
    pub digest: Digest,
}

/// Notes what a tool's result brings into the session's context and to the agent, as the results of tools in model calls are.
///
/// # Errors
/// `not_found` where the workspace is not there any more.
pub fn note_result(scope: &mut Scope<'_>, asked: &NoteResult) -> Result<(), Halt> {
    let workspace = asked.caller.binding.workspace;
    let results = [ToolResult { tool: asked.tool.clone(), digest: asked.digest }];
    let mut keys = observe::keys(&asked.caller, &asked.session, &results);
    keys.push(Routing::key(workspace));
    scope.want(&keys)?;
    let routing = scope.get::<Routing>(workspace)?.ok_or_else(Refusal::not_found)?;
    observe::note(scope, &asked.caller, &asked.session, &results, &routing)
}

/// What became of a call that went on.
#[derive(Clone, Copy, Debug)]
pub struct SettleCall {
    /// Who made it.
    pub caller: Caller,
    /// Its action.
    pub action: ActionId,
    /// Done or not.
    pub status: OutcomeStatus,
}

/// Settles the action of a call in the name of its agent. Nobody but this server has seen what became of it, so it needs no key that
/// is in force: the one that the call came with may have ended while it ran, as those of a connection do with every renewal.
///
/// # Errors
/// `not_found` where it is no action of this agent's, `not_allowed`, `already_settled`.
pub fn settle_call(scope: &mut Scope<'_>, asked: &SettleCall) -> Result<(), Halt> {
    let Caller { workspace, agent, .. } = asked.caller;
    scope.want(&[Action::key(asked.action), Agent::key(agent), Activity::key(agent), Workspace::key(workspace)])?;
    let before = scope.get::<Action>(asked.action)?.filter(|it| it.agent == agent).ok_or_else(Refusal::not_found)?;
    settle_as(scope, &before, Told { status: asked.status, amount: None }, Actor::Agent(agent)).map(drop)
}
