//! What MCP servers tell of their tools: noted, held where it is not what a person accepted, accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::mcp_servers::{McpServerView, servers_of};
use crate::refusal::{FieldError, Refusal};
use crate::rules::people::by::{By, entitled};
use crate::state::edge::{McpServers, McpTool, McpTools};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::Right;
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::{Object, canonical};
use crate::value::digest::Digest;
use crate::value::id::{McpServerId, WorkspaceId};
use crate::value::json::Json;

/// What was known of a server's tools when somebody began to ask it for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// [`McpTools::hash`] of what was known, if anything was. Where something else is known by now, somebody else has asked meanwhile:
    /// theirs may be the newer list, and nothing is changed.
    Known(Option<Digest>),
    /// Whatever it is: whoever asked has just made the server, or told it anew where it is.
    Whatever,
}

/// Notes what a server told of its tools.
#[derive(Clone, Debug)]
pub struct NoteTools {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which server.
    pub server: McpServerId,
    /// Its tools by name, each as canonical JSON; none where it did not answer.
    pub found: Option<BTreeMap<Box<str>, Box<str>>>,
    /// What it is noted over.
    pub over: Over,
    /// Who has just made the server, and so accepts what it begins with.
    pub accepted_by: Option<By>,
}

/// Notes what a server told of its tools, and gives the server as it stands then. What differs from what was accepted is held. A list
/// that may be older than what is known changes nothing: it would end a hold, or an acceptance, that came of a newer one.
///
/// What a server tells when it is made is accepted by whoever makes it; where nothing was accepted yet and nobody makes it, as
/// where it did not answer then, all of it is held.
///
/// # Errors
/// `not_found` where there is no such server; those of [`entitled`] where somebody accepts.
pub fn note_tools(scope: &mut Scope<'_>, asked: &NoteTools) -> Result<McpServerView, Halt> {
    if let Some(by) = &asked.accepted_by {
        entitled(scope, by, asked.workspace, Right::ManageIntegrations)?;
    }
    scope.want(&[McpServers::key(asked.workspace), McpTools::key(asked.server)])?;
    let all = servers_of(scope, asked.workspace)?;
    let server = all.by_id(asked.server).cloned().ok_or_else(Refusal::not_found)?;
    let known = scope.get::<McpTools>(asked.server)?;
    if let Over::Known(hash) = asked.over
        && known.as_ref().map(|it| it.hash()) != hash
    {
        return Ok(McpServerView { server, tools: known });
    }
    let before = known.map_or_else(|| McpTools::new(asked.server, asked.workspace), |it| McpTools::clone(&it));
    let mut after = match &asked.found {
        Some(found) => before.told(found),
        None => McpTools { reached: false, ..before.clone() },
    };
    let is_new = before.tools.values().all(|it| it.accepted.is_none());
    if let (Some(by), true) = (&asked.accepted_by, is_new) {
        let names: Vec<Box<str>> = after.tools.keys().cloned().collect();
        names.iter().for_each(|it| after.accept(it));
        let (told, hash) = (texts(names.iter().map(|it| &**it)), format!("sha256:{}", after.hash()));
        let data = Object::new().text("id", &asked.server.to_string()).text("toolsHash", &hash);
        let data = data.raw("tools", &told).finish();
        record(scope, asked.workspace, asked.server, "mcp_server.accepted", by.actor(), data);
    }
    let was_held = |name: &str| before.tools.get(name).map(|it| &it.seen);
    let held: Vec<&str> = after
        .held(&server.tools)
        .filter(|(name, tool)| was_held(name) != Some(&tool.seen))
        .map(|(name, _)| name)
        .collect();
    if !held.is_empty() {
        let data = Object::new().text("id", &asked.server.to_string()).raw("tools", &texts(held.into_iter())).finish();
        record(scope, asked.workspace, asked.server, "mcp_server.held", Actor::Policy, data);
    }
    if after != before {
        scope.put(after.clone());
    }
    Ok(McpServerView { server, tools: Some(Arc::new(after)) })
}

/// Accepts tools as they were last seen.
#[derive(Clone, Debug)]
pub struct AcceptTools {
    /// Who accepts.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Of which server.
    pub server: McpServerId,
    /// Which tools.
    pub tools: Vec<Box<str>>,
    /// What they have looked at: [`McpTools::hash`].
    pub hash: Digest,
}

/// Accepts tools as they were last seen.
///
/// # Errors
/// Those of [`entitled`]; `not_found`; `invalid_request` for a name that is not held or that no action can have, with its place; `not_allowed` where the
/// server tells something else by now than what was looked at.
pub fn accept_tools(scope: &mut Scope<'_>, asked: &AcceptTools) -> Result<McpServerView, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageIntegrations)?;
    scope.want(&[McpServers::key(asked.workspace), McpTools::key(asked.server)])?;
    let all = servers_of(scope, asked.workspace)?;
    let server = all.by_id(asked.server).cloned().ok_or_else(Refusal::not_found)?;
    let known = scope.get::<McpTools>(asked.server)?.ok_or_else(Refusal::not_found)?;
    let mut after = McpTools::clone(&known);
    let fault = |name: &str| match after.tools.get(name).is_some_and(McpTool::is_held) {
        false => Some("names no tool of this server that is held"),
        true if !McpTool::is_callable(name) => Some("names a tool that no action can name, as its name is too long"),
        true => None,
    };
    let faults: Vec<FieldError> = asked
        .tools
        .iter()
        .enumerate()
        .filter_map(|(place, name)| Some(FieldError::new(format!("tools.{place}"), fault(name)?)))
        .collect();
    if after.hash() != asked.hash {
        return Err(Refusal::not_allowed("the server's tools have changed since they were looked at").into());
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    asked.tools.iter().for_each(|it| after.accept(it));
    let data = Object::new().text("id", &asked.server.to_string());
    let data = data.text("toolsHash", &format!("sha256:{}", asked.hash));
    let data = data.raw("tools", &texts(asked.tools.iter().map(|it| &**it))).finish();
    record(scope, asked.workspace, asked.server, "mcp_server.accepted", asked.by.actor(), data);
    scope.put(after.clone());
    Ok(McpServerView { server, tools: Some(Arc::new(after)) })
}

fn record(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    server: McpServerId,
    kind: &'static str,
    actor: Actor,
    data: String,
) {
    scope.append(workspace, Fact { kind, actor, subject: Subject::McpServer(server), data });
}

fn texts<'a>(names: impl Iterator<Item = &'a str>) -> String {
    canonical(&Json::List(names.map(|it| Json::Text(it.to_owned())).collect()))
}
