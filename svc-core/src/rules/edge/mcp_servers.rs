//! MCP servers that agents reach through this one: made, changed, removed. All of a workspace's are one row.

use std::sync::Arc;

use serde::Serialize;

use super::integrations::NewSecret;
use crate::refusal::{FieldError, Refusal};
use crate::rules::gateway::routing::as_json;
use crate::rules::gateway::upstreams::SENT_AGAIN;
use crate::rules::people::by::{By, entitled};
use crate::rules::people::settings::differing;
use crate::rules::people::taken;
use crate::state::edge::{
    MCP_SERVERS_MAX, McpCredential, McpSecret, McpServer, McpServers, McpTools, TOOL_GLOBS_MAX, ToolFilter,
};
use crate::state::evidence::{Fact, Subject};
use crate::state::gateway::Routing;
use crate::state::gateway::route::name_of_mcp_tool;
use crate::state::people::{Right, Roster, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::{Object, canonical};
use crate::value::id::{ApplicationId, MandateId, McpServerId, WorkspaceId};
use crate::value::text::{Label, ServerName, UrlText};

/// Changes a workspace's MCP servers.
#[derive(Clone, Debug)]
pub struct EditMcpServers {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// The change.
    pub edit: Edit,
    /// What a look through mandates, templates and applications has found of a server's other name, where the change gives it one.
    pub looked: Option<Looked>,
}

/// Whether anything means other tools where a server has another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The guard row's epoch before the look: what was found of mandates holds as long as it stands.
    pub epoch: u64,
    /// What does.
    pub by: Option<GoesBy>,
}

/// What goes by a server's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoesBy {
    /// A mandate.
    Mandate(MandateId),
    /// A template of the workspace.
    Template(Label),
    /// An application that waits.
    Application(ApplicationId),
}

/// One change. What is named twice in a list of settings has the last value.
#[derive(Clone, Debug)]
pub enum Edit {
    /// A server is made.
    Create(Vec<Set>),
    /// A server changes.
    Change(McpServerId, Vec<Set>),
    /// A server goes.
    Remove(McpServerId),
}

/// One setting of a server.
#[derive(Clone, Debug)]
pub enum Set {
    /// Its name.
    Name(ServerName),
    /// Its address, checked by the outbound guard.
    Url(UrlText),
    /// How it is shown who calls.
    Credential(NewCredential),
    /// Which of its tools agents see.
    Tools(ToolFilter),
    /// Whether it is used.
    Enabled(bool),
}

/// What a server is shown from now on, sealed for [`McpSecret::purpose`].
#[derive(Clone, Debug)]
pub enum NewCredential {
    /// Nothing.
    None,
    /// A bearer token.
    Bearer(NewSecret),
    /// A text in the header of this name, in lower case.
    Header(Box<str>, NewSecret),
}

/// A server and what is known of its tools.
#[derive(Clone, Debug)]
pub struct McpServerView {
    /// The server.
    pub server: McpServer,
    /// Its tools, once it was asked.
    pub tools: Option<Arc<McpTools>>,
}

/// Changes a workspace's MCP servers, and gives the one that was made, changed or removed.
///
/// # Errors
/// Those of [`entitled`]; `not_found` for what is not there; `invalid_request` with every fault; `not_allowed` for another name where
/// a mandate, a template, an application that waits or the tool table goes by the one it has; `not_ready` where these were not looked
/// through, or mandates have changed since.
pub fn edit_mcp_servers(scope: &mut Scope<'_>, asked: &EditMcpServers) -> Result<McpServerView, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageIntegrations)?;
    scope.want(&[Workspace::key(asked.workspace), McpServers::key(asked.workspace)])?;
    scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let before = servers_of(scope, asked.workspace)?;
    let mut all = before.clone();
    let server = match &asked.edit {
        Edit::Create(set) => create(scope, asked, &mut all, set)?,
        Edit::Change(id, set) => change(scope, asked, &mut all, *id, set)?,
        Edit::Remove(id) => remove(scope, asked, &mut all, *id)?,
    };
    if all != before {
        scope.put(all);
    }
    let tools = scope.get::<McpTools>(server.id)?;
    Ok(McpServerView { server, tools })
}

fn create(scope: &mut Scope<'_>, asked: &EditMcpServers, all: &mut McpServers, set: &[Set]) -> Result<McpServer, Halt> {
    let name = set.iter().rev().find_map(|it| if let Set::Name(name) = it { Some(name) } else { None });
    let url = set.iter().rev().find_map(|it| if let Set::Url(url) = it { Some(url) } else { None });
    let mut faults = Vec::new();
    if name.is_none() {
        faults.push(FieldError::missing("name"));
    }
    if url.is_none() {
        faults.push(FieldError::missing("url"));
    }
    if all.servers.len() >= MCP_SERVERS_MAX {
        faults.push(FieldError::whole(format!("a workspace has at most {MCP_SERVERS_MAX} MCP servers")));
    }
    faults.extend(check(all, set, None));
    let (Some(name), Some(url), true) = (name, url, faults.is_empty()) else {
        return Err(Refusal::invalid_request(faults).into());
    };
    let mut made = McpServer {
        id: scope.fresh(),
        name: name.clone(),
        url: url.clone(),
        credential: McpCredential::None,
        tools: ToolFilter::default(),
        enabled: true,
        created_by: asked.by.maker(),
        created_at: scope.now(),
        moved_at: None,
    };
    apply(scope, asked.workspace, &mut made, set)?;
    scope.put(McpTools::new(made.id, asked.workspace));
    let data = canonical(&as_json(&Told::of(&made))?);
    record(scope, asked, "mcp_server.created", made.id, data);
    all.servers.push(made.clone());
    Ok(made)
}

fn change(
    scope: &mut Scope<'_>,
    asked: &EditMcpServers,
    all: &mut McpServers,
    id: McpServerId,
    set: &[Set],
) -> Result<McpServer, Halt> {
    let before = all.by_id(id).cloned().ok_or_else(Refusal::not_found)?;
    let mut faults = check(all, set, Some(id));
    let address = set.iter().rev().find_map(|it| if let Set::Url(url) = it { Some(url) } else { None });
    let shows = set.iter().any(|it| matches!(it, Set::Credential(_)));
    let moves = address.is_some_and(|it| it.origin() != before.url.origin());
    if moves && before.credential != McpCredential::None && !shows {
        faults.push(FieldError::new("credential", SENT_AGAIN));
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let mut after = before.clone();
    apply(scope, asked.workspace, &mut after, set)?;
    if after.name != before.name {
        is_free(scope, asked, id, (before.name.as_str(), after.name.as_str()))?;
    }
    if after == before {
        return Ok(after);
    }
    if (&after.name, &after.url) != (&before.name, &before.url) {
        after.moved_at = Some(scope.now());
    }
    let (old, new) = differing(&as_json(&Told::of(&before))?, &as_json(&Told::of(&after))?);
    let data = Object::new().raw("new", &new).raw("old", &old).finish();
    record(scope, asked, "mcp_server.changed", id, data);
    for it in &mut all.servers {
        if it.id == id {
            it.clone_from(&after);
        }
    }
    Ok(after)
}

/// That nothing goes by a server's name: whoever denied its tools, or let them alone be called, did so by that.
fn is_free(
    scope: &mut Scope<'_>,
    asked: &EditMcpServers,
    id: McpServerId,
    (old, new): (&str, &str),
) -> Result<(), Halt> {
    scope.want(&[Roster::key(asked.workspace), Routing::key(asked.workspace), McpTools::key(id)])?;
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    let looked = asked.looked.as_ref().filter(|it| it.epoch == roster.epoch).ok_or_else(Refusal::not_ready)?;
    if let Some(by) = &looked.by {
        let (what, mend) = match by {
            GoesBy::Mandate(id) => (format!("mandate {id}"), "change it first"),
            GoesBy::Template(name) => (format!("template `{name}`"), "change it first"),
            GoesBy::Application(id) => (format!("application {id}"), "decide it first"),
        };
        let why = format!("{what} tells the two names apart: {mend}, or make another server");
        return Err(Refusal::not_allowed(why).into());
    }
    let (routing, known) = (scope.get::<Routing>(asked.workspace)?, scope.get::<McpTools>(id)?);
    if let (Some(routing), Some(known)) = (routing, known) {
        let meaning = |server, tool: &str| {
            let name = name_of_mcp_tool(server, tool);
            let meant = routing.meaning_of(&name);
            (meant.source.to_owned(), meant.sink)
        };
        if let Some(tool) = known.tools.keys().find(|it| meaning(old, it) != meaning(new, it)) {
            let why = format!("the tool table tells the two names of `{tool}` apart: change it first");
            return Err(Refusal::not_allowed(why).into());
        }
    }
    Ok(())
}

fn remove(
    scope: &mut Scope<'_>,
    asked: &EditMcpServers,
    all: &mut McpServers,
    id: McpServerId,
) -> Result<McpServer, Halt> {
    let removed = all.by_id(id).cloned().ok_or_else(Refusal::not_found)?;
    scope.want(&[McpSecret::key(id), McpTools::key(id)])?;
    if scope.get::<McpSecret>(id)?.is_some() {
        scope.delete::<McpSecret>(id);
    }
    if scope.get::<McpTools>(id)?.is_some() {
        scope.delete::<McpTools>(id);
    }
    let data = Object::new().text("id", &id.to_string()).text("name", removed.name.as_str()).finish();
    record(scope, asked, "mcp_server.removed", id, data);
    all.servers.retain(|it| it.id != id);
    Ok(removed)
}

fn check(all: &McpServers, set: &[Set], own: Option<McpServerId>) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for one in set {
        match one {
            Set::Name(name) if all.servers.iter().any(|it| it.name == *name && Some(it.id) != own) => {
                faults.push(FieldError::new("name", taken::SERVER));
            }
            Set::Tools(filter) => {
                for (globs, field) in [(&filter.allow, "tools.allow"), (&filter.deny, "tools.deny")] {
                    if globs.len() > TOOL_GLOBS_MAX {
                        faults.push(FieldError::new(field, format!("must have at most {TOOL_GLOBS_MAX} entries")));
                    }
                }
            }
            Set::Name(_) | Set::Url(_) | Set::Credential(_) | Set::Enabled(_) => {}
        }
    }
    faults
}

fn apply(scope: &mut Scope<'_>, workspace: WorkspaceId, to: &mut McpServer, set: &[Set]) -> Result<(), Halt> {
    for one in set {
        match one {
            Set::Name(it) => to.name = it.clone(),
            Set::Url(it) => to.url = it.clone(),
            Set::Tools(it) => to.tools = it.clone(),
            Set::Enabled(it) => to.enabled = *it,
            Set::Credential(it) => show(scope, workspace, to, it)?,
        }
    }
    Ok(())
}

/// Has a server shown something else from now on.
fn show(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    to: &mut McpServer,
    credential: &NewCredential,
) -> Result<(), Halt> {
    let since = scope.now();
    let known = scope.get::<McpSecret>(to.id)?.is_some();
    let secret = match credential {
        NewCredential::None => {
            to.credential = McpCredential::None;
            if known {
                scope.delete::<McpSecret>(to.id);
            }
            return Ok(());
        }
        NewCredential::Bearer(it) => {
            to.credential = McpCredential::Bearer { hint: it.hint.clone(), since };
            it
        }
        NewCredential::Header(name, it) => {
            to.credential = McpCredential::Header { name: name.clone(), hint: it.hint.clone(), since };
            it
        }
    };
    scope.put(McpSecret { server: to.id, workspace, sealed: secret.sealed.clone() });
    Ok(())
}

fn record(scope: &mut Scope<'_>, asked: &EditMcpServers, kind: &'static str, id: McpServerId, data: String) {
    let fact = Fact { kind, actor: asked.by.actor(), subject: Subject::McpServer(id), data };
    scope.append(asked.workspace, fact);
}

/// A server as the ledger tells it: under the names of the interface, as what is hashed there stays.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    id: McpServerId,
    name: &'a ServerName,
    url: &'a UrlText,
    credential: ToldCredential<'a>,
    tools: ToldFilter<'a>,
    enabled: bool,
    created_at: String,
    created_by: Option<String>,
}

/// What it is shown, by its last characters, and since when: that tells one from another that ends alike.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldCredential<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
}

#[derive(Serialize)]
struct ToldFilter<'a> {
    allow: &'a [Box<str>],
    deny: &'a [Box<str>],
}

impl<'a> Told<'a> {
    fn of(it: &'a McpServer) -> Self {
        let (header, hint, since) = match &it.credential {
            McpCredential::None => (None, None, None),
            McpCredential::Bearer { hint, since } => (None, Some(&**hint), Some(since)),
            McpCredential::Header { name, hint, since } => (Some(&**name), Some(&**hint), Some(since)),
        };
        let since = since.map(ToString::to_string);
        Self {
            id: it.id,
            name: &it.name,
            url: &it.url,
            credential: ToldCredential { r#type: it.credential.kind(), header, secret_hint: hint, since },
            tools: ToldFilter { allow: &it.tools.allow, deny: &it.tools.deny },
            enabled: it.enabled,
            created_at: it.created_at.to_string(),
            created_by: it.created_by.as_ref().map(ToString::to_string),
        }
    }
}

/// A workspace's MCP servers.
pub(in crate::rules) fn servers_of(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<McpServers, Halt> {
    let found = scope.get::<McpServers>(workspace)?;
    Ok(found.map_or_else(|| McpServers::new(workspace), |it| McpServers::clone(&it)))
}

/// A workspace's MCP servers and what is known of their tools, the newest first.
///
/// # Errors
/// Those of [`entitled`].
pub fn read_mcp_servers(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId) -> Result<Vec<McpServerView>, Halt> {
    entitled(scope, by, workspace, Right::ManageIntegrations)?;
    let all = servers_of(scope, workspace)?;
    scope.want(&all.servers.iter().map(|it| McpTools::key(it.id)).collect::<Vec<_>>())?;
    let mut views = Vec::with_capacity(all.servers.len());
    for server in all.servers.into_iter().rev() {
        let tools = scope.get::<McpTools>(server.id)?;
        views.push(McpServerView { server, tools });
    }
    Ok(views)
}

/// One of a workspace's MCP servers.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn own_mcp_server(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    id: McpServerId,
) -> Result<McpServerView, Halt> {
    let found = read_mcp_servers(scope, by, workspace)?.into_iter().find(|it| it.server.id == id);
    found.ok_or_else(|| Refusal::not_found().into())
}
