//! The MCP servers behind this one: made, changed and removed by people, who also accept what they tell of their tools.

use std::sync::Arc;

use serde_json::Value;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::integrations::NewSecret;
use svc_core::rules::edge::mcp_servers::{
    Edit, EditMcpServers, Looked, McpServerView, NewCredential, Set, own_mcp_server, read_mcp_servers,
};
use svc_core::rules::edge::mcp_tools::{AcceptTools, NoteTools, Over};
use svc_core::rules::edge::proxied::Reached;
use svc_core::rules::gate::Caller as AgentCaller;
use svc_core::rules::people::by::By;
use svc_core::rules::people::named::Named;
use svc_core::rules::people::taken::NewName;
use svc_core::state::edge::{McpSecret, McpServers};
use svc_core::store::Row as _;
use svc_core::value::Id as _;
use svc_core::value::id::{AgentId, KeyId, McpServerId, WorkspaceId};
use svc_core::value::secret::Secret;

use super::own_secret::OWN_SECRET;
use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::McpServersOp;
use crate::secrets::hint;
use crate::upstream::Endpoint;
use crate::wire::mcp_server::{self as wire, Shown};
use crate::wire::page::Query;

/// How often the mandates are looked through for a server's other name, while they keep changing.
const LOOKS_MAX: u32 = 16;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: McpServersOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    let place = Place { service, by, workspace };
    match op {
        McpServersOp::List => place.list(call),
        McpServersOp::Create => place.create(call).await.map(Answer::created),
        McpServersOp::Get => {
            let id = call.param_id::<McpServerId>("mcs")?;
            shown(service, &service.read(|scope| own_mcp_server(scope, &place.by, workspace, id))?)
        }
        McpServersOp::Change => place.change(call).await,
        McpServersOp::Remove => {
            let id = call.param_id("mcs")?;
            place.edit(Edit::Remove(id)).await?;
            service.proxied.servers.forget(id);
            Ok(Answer::empty())
        }
        McpServersOp::Accept => {
            let (accepted, server) = (wire::read_accepted(&call.body)?, call.param_id("mcs")?);
            let by = place.by.clone();
            let accept = AcceptTools { by, workspace, server, tools: accepted.tools, hash: accepted.hash };
            shown(service, &service.run(accept).await?)
        }
    }
}

fn shown(service: &GateService, view: &McpServerView) -> Result<Answer, Refusal> {
    serde_json::to_vec(&written(service, view)).map(Answer::json).map_err(|_| Refusal::internal())
}

fn written(service: &GateService, view: &McpServerView) -> Value {
    wire::write(view, || service.proxied.servers.trouble(view.server.id))
}

/// Whose workspace it is about, and who asks.
struct Place<'a> {
    service: &'a GateService,
    by: By,
    workspace: WorkspaceId,
}

impl Place<'_> {
    fn list(&self, call: &Call) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("mcp-servers", self.workspace);
        query.finish()?;
        let all = self.service.read(|scope| read_mcp_servers(scope, &self.by, self.workspace))?;
        let place = |it: &McpServerView| (it.server.id.bits(), McpServers::key(self.workspace));
        page.of_all(&all, place, |it| written(self.service, it)).map(Answer::json)
    }

    async fn create(&self, call: &Call) -> Result<Answer, Refusal> {
        let set = self.settings(call, true);
        let set = set.map_err(|it| self.service.and_named(self.workspace, &call.body, wire::IDS, it))?;
        let made = self.edit(Edit::Create(set)).await?;
        let looked = self.look(&made, Some(self.by.clone())).await?;
        shown(self.service, &looked)
    }

    async fn change(&self, call: &Call) -> Result<Answer, Refusal> {
        let (set, id) = (self.settings(call, false), call.param_id("mcs"));
        let set = set.map_err(|it| self.and_but_own(call, id.as_ref().ok(), it))?;
        let id: McpServerId = id?;
        let is_elsewhere = set.iter().any(|it| matches!(it, Set::Url(_) | Set::Credential(_)));
        let changed = self.renamed(id, set).await?;
        let changed = if is_elsewhere { self.look(&changed, None).await? } else { changed };
        if !changed.server.enabled {
            self.service.proxied.servers.forget(id);
        }
        shown(self.service, &changed)
    }

    async fn edit(&self, edit: Edit) -> Result<McpServerView, Refusal> {
        self.edit_by(edit, None).await
    }

    async fn edit_by(&self, edit: Edit, looked: Option<Looked>) -> Result<McpServerView, Refusal> {
        let (by, workspace) = (self.by.clone(), self.workspace);
        self.service.run(EditMcpServers { by, workspace, edit, looked }).await
    }

    /// Changes a server; where it is to have another name, mandates, templates and applications are looked through for what goes by the
    /// one it has, again where the mandates have changed meanwhile.
    async fn renamed(&self, id: McpServerId, set: Vec<Set>) -> Result<McpServerView, Refusal> {
        let new = set.iter().rev().find_map(|it| if let Set::Name(name) = it { Some(name.clone()) } else { None });
        let Some(new) = new else { return self.edit(Edit::Change(id, set)).await };
        for _ in 0..LOOKS_MAX {
            let old = self.service.read(|scope| own_mcp_server(scope, &self.by, self.workspace, id))?.server.name;
            if old == new {
                break;
            }
            let (gate, workspace, to) = (self.service.gate.clone(), self.workspace, new.clone());
            let look = move || gate.told_apart(workspace, old.as_str(), to.as_str());
            let looked =
                crate::at_hand::spawn_blocking(look).await.map_err(|_| Refusal::internal())?.map_err(refusal)?;
            match self.edit_by(Edit::Change(id, set.clone()), Some(looked)).await {
                Err(moved) if moved.kind() == Kind::NotReady => {}
                done => return done,
            }
        }
        // As it was named already, or the mandates change faster than they can be looked through, which is told.
        self.edit(Edit::Change(id, set)).await
    }

    /// Asks a server for its tools and notes what it tells. Whoever makes a server accepts what it begins with.
    async fn look(&self, view: &McpServerView, accepted_by: Option<By>) -> Result<McpServerView, Refusal> {
        let id = view.server.id;
        let secret = self.service.read(|scope| scope.get::<McpSecret>(id))?;
        // This server asks for itself: nobody's agent is meant.
        let caller = AgentCaller { workspace: self.workspace, agent: AgentId::from_bits(0), key: KeyId::from_bits(0) };
        let reached = Reached { server: view.server.clone(), tools: None, secret, caller };
        let listed = self.service.proxied.servers.list_now(&self.service.gate, &reached).await;
        if let Err(trouble) = &listed {
            tracing::info!(server = %id, why = trouble.clause(), "an MCP server gave no list of its tools");
        }
        let found = listed.ok().map(|it| Arc::as_ref(&it).texts());
        self.service
            .run(NoteTools { workspace: self.workspace, server: id, found, over: Over::Whatever, accepted_by })
            .await
    }

    /// The refusal of a malformed change of a server, which may name again what the server is called.
    fn and_but_own(&self, call: &Call, id: Option<&McpServerId>, refusal: Refusal) -> Refusal {
        let found =
            id.and_then(|it| self.service.read(|scope| own_mcp_server(scope, &self.by, self.workspace, *it)).ok());
        let own = found.map(|it| ("name".to_owned(), Named::New(NewName::Server(it.server.name))));
        self.service.and_named_anew(self.workspace, &call.body, wire::IDS, own.as_slice(), refusal)
    }

    /// What is set of a server, its credential sealed.
    fn settings(&self, call: &Call, is_new: bool) -> Result<Vec<Set>, Refusal> {
        let upstreams = &self.service.upstreams;
        let sent = wire::read(&call.body, is_new, |url| Endpoint::new(upstreams, url, None).map(drop))?;
        let mut set = sent.set;
        let credential = match sent.credential {
            None => return Ok(set),
            Some(Shown::None) => NewCredential::None,
            Some(Shown::Bearer(secret) | Shown::Header(_, secret))
                if self.service.holds_own_secret(secret.expose())? =>
            {
                return Err(Refusal::invalid_field("credential.secret", OWN_SECRET));
            }
            Some(Shown::Bearer(secret)) => NewCredential::Bearer(self.sealed(&secret)?),
            Some(Shown::Header(name, secret)) => NewCredential::Header(name, self.sealed(&secret)?),
        };
        set.push(Set::Credential(credential));
        Ok(set)
    }

    fn sealed(&self, secret: &Secret<String>) -> Result<NewSecret, Refusal> {
        let text = secret.expose();
        let sealed = self.service.gate.seal(&McpSecret::purpose(self.workspace), text.as_bytes()).map_err(refusal)?;
        Ok(NewSecret { sealed: sealed.into(), hint: hint(text) })
    }
}
