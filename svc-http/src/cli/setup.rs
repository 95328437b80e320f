//! What a first start makes: a workspace with its owner, an agent with two mandates, three keys and a service token.
//!
//! It is made step by step, by one process at a time. A start that was cut short, also between the last key and its output, is
//! finished by the next, which makes every secret anew: nobody saw those before. Once a start has come to its end nothing is
//! made again unless new keys are asked for: what people have removed since stays removed.

use std::cell::Cell;
use std::sync::Arc;

use svc_core::refusal::Refusal;
use svc_core::rules::edge::integrations::{self, CreateIntegration, RotateIntegration};
use svc_core::rules::people::accounts::find_account;
use svc_core::rules::people::by::By;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey};
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::tokens::{CreateToken, RevokeToken};
use svc_core::state::edge::{ConfigChange, IntegrationKind, IntegrationSlot};
use svc_core::state::gate::{Agent, Standing};
use svc_core::state::people::{
    Credential, KeyScope, Principal, Settings, TOKEN_DAYS_MAX, TokenName, TokenScope, Workspace,
};
use svc_core::store::{Range, Row};
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::secret::Secret;
use svc_core::value::text::{Email, Label};
use svc_core::value::{Id as _, Invalid};
use svc_http::callback_secret;
use svc_http::config::Config;
use svc_http::secrets::{KEY_PREFIX, LINK_PREFIX, NewSecret, TOKEN_PREFIX, draw};
use svc_store::Gate;

use super::occupancy::{Turn, Unseen};
use super::output::{Problem, named_data};
use super::welcome::{Again, Home, Keys};

/// The owner where nobody is named.
pub(crate) const OWNER: &str = "owner@localhost";
/// What the workspace and the agent are called.
const WORKSPACE_NAME: &str = "First workspace";
const AGENT_NAME: &str = "First agent";
/// What the keys are called that are made here; by it they are found again.
const KEY_LABEL: &str = "first start";
/// What the service token is called; there is one in force.
const TOKEN_NAME: &str = "first start";
/// The agent's mandates.
const TEMPLATES: [&str; 2] = ["saas-subscriptions", "coding-agent"];
/// Rows read at once.
const PAGE: usize = 500;

/// Whether there is no workspace yet.
///
/// # Errors
/// [`Problem`] where the store does not answer.
pub(crate) fn is_empty(gate: &Gate) -> Result<bool, Problem> {
    Ok(workspace(gate)?.is_none())
}

/// The oldest workspace.
///
/// # Errors
/// [`Problem`] where the store does not answer.
pub(crate) fn workspace(gate: &Gate) -> Result<Option<Arc<Workspace>>, Problem> {
    let found = gate.scan(&Range::all(Index::Workspaces, 0, 1))?;
    Ok(found.iter().find_map(|it| Workspace::peel(it.row.record.as_ref()?)).cloned())
}

/// The same, where there has to be one.
///
/// # Errors
/// [`Problem`] where there is none yet, or the store does not answer.
pub(crate) fn made(config: &Config, gate: &Gate) -> Result<Arc<Workspace>, Problem> {
    let missing =
        || Problem::new("there is no workspace yet", format!("Make one with `svc init{}`.", named_data(config)));
    workspace(gate)?.ok_or_else(missing)
}

/// What an earlier start has made.
struct Found {
    /// The agent, unless it was removed.
    agent: Option<Arc<Agent>>,
    /// The keys that this agent and its workspace were given, revoked ones too.
    keys: Vec<Arc<Credential>>,
}

impl Found {
    /// Whether that start came to its end: the admin key is made last.
    fn is_whole(&self) -> bool {
        self.keys.iter().any(|it| it.binding.scope == KeyScope::Admin)
    }
}

/// Makes all of it where no start before has come to its end, and new keys for the old ones where `new_keys` is asked.
///
/// # Errors
/// [`Problem`] where the store does not answer or takes no more.
pub(crate) fn ensure(gate: &Gate, config: &Config, owner: &Email, new_keys: bool) -> Result<Home, Problem> {
    let directory = &config.database_directory();
    let turn = Turn::wait(directory);
    let workspace = match workspace(gate)? {
        Some(workspace) => workspace,
        None => gate.execute(CreateWorkspace {
            name: own(Label::parse(WORKSPACE_NAME))?,
            owner: owner.clone(),
            settings: Settings::default(),
        })?,
    };
    let again = Again::of(config, &owner_of(gate, &workspace)?);
    let found = look(gate, workspace.id)?;
    if found.is_whole() && !new_keys && !Unseen::is_left(directory)? {
        return Ok(Home {
            workspace: workspace.id,
            agent: found.agent.map(|it| it.id),
            keys: None,
            callback_secret: None,
            sign_in_token: sign_in_token(gate, &workspace, false)?,
            unseen: Cell::new(None),
            again,
        });
    }
    let unseen = Unseen::note(turn, directory)?;
    let callback_secret = sign_callbacks(gate, workspace.id)?;
    let sign_in_token = sign_in_token(gate, &workspace, true)?;
    let (agent, keys) = make_keys(gate, workspace.id, found.agent.as_deref())?;
    // The old ones end last: a start that is cut short leaves no one without a key.
    for key in found.keys.iter().filter(|key| key.revoked_at.is_none()) {
        gate.execute(RevokeKey { workspace: workspace.id, by: By::Program, credential: key.id })?;
    }
    Ok(Home {
        workspace: workspace.id,
        agent: Some(agent),
        keys: Some(keys),
        callback_secret: Some(callback_secret),
        sign_in_token,
        unseen: Cell::new(Some(unseen)),
        again,
    })
}

/// The address of the first owner.
fn owner_of(gate: &Gate, workspace: &Workspace) -> Result<Email, Problem> {
    let owner = gate.read(|scope| Ok(scope.get::<Principal>(workspace.owner)?.ok_or_else(Refusal::internal)?))?;
    Ok(owner.email.clone())
}

/// A one-time token for the first owner, as long as they are a member, which lives until it is used: where they have never
/// signed in and hold none, or where `renew` is asked, which voids the one before.
fn sign_in_token(gate: &Gate, workspace: &Workspace, renew: bool) -> Result<Option<Secret<String>>, Problem> {
    let owner = gate.read(|scope| {
        let owner = scope.get::<Principal>(workspace.owner)?.ok_or_else(Refusal::internal)?;
        let account = find_account(scope, &owner.email)?.filter(|it| it.principal_in(workspace.id).is_some());
        Ok(account.filter(|it| renew || (it.signed_in_at.is_none() && it.link.is_none())))
    })?;
    let Some(owner) = owner else { return Ok(None) };
    let token = draw(LINK_PREFIX)?;
    gate.execute(MakeLink { email: owner.email.clone(), token: token.digest, life: None })?;
    Ok(Some(token.text))
}

/// Has callbacks signed with a new secret.
fn sign_callbacks(gate: &Gate, workspace: WorkspaceId) -> Result<Secret<String>, Problem> {
    let (by, slot) = (By::Program, IntegrationSlot { workspace, kind: IntegrationKind::Callbacks });
    let all = gate.read(|scope| integrations::all(scope, &by, workspace))?;
    let secret = callback_secret::draw()?;
    let kept = callback_secret::seal(gate, slot, &secret)?;
    match all.iter().find(|it| it.slot == slot) {
        // As with keys, the one before ends at once.
        Some(it) => gate.execute(RotateIntegration { by, workspace, id: it.id, secret: kept, overlap_hours: 0 })?,
        None => gate.execute(CreateIntegration {
            by,
            workspace,
            kind: slot.kind,
            secret: kept,
            config: ConfigChange::default(),
        })?,
    };
    Ok(secret)
}

/// Makes the keys, and the agent that has one of them where there is none.
fn make_keys(gate: &Gate, workspace: WorkspaceId, agent: Option<&Agent>) -> Result<(AgentId, Keys), Problem> {
    let (agent_key, inference, admin) = (draw(KEY_PREFIX)?, draw(KEY_PREFIX)?, draw(KEY_PREFIX)?);
    let agent = match agent {
        Some(agent) => {
            create(gate, workspace, KeyScope::Agent(agent.id), &agent_key)?;
            agent.id
        }
        None => register(gate, workspace, &agent_key)?.id,
    };
    let token = service_token(gate, workspace)?;
    create(gate, workspace, KeyScope::Inference, &inference)?;
    // Last of all: by it the next start knows that this one has come to its end.
    create(gate, workspace, KeyScope::Admin, &admin)?;
    Ok((agent, Keys { agent: agent_key.text, inference: inference.text, admin: admin.text, token }))
}

/// Makes a service token with all scopes, in the place of the one that a start before made.
fn service_token(gate: &Gate, workspace: WorkspaceId) -> Result<Secret<String>, Problem> {
    let name = own(Label::parse(TOKEN_NAME))?;
    let id = TokenName::id_of(workspace, &name);
    if let Some(before) = gate.read(|scope| scope.get::<TokenName>(id))? {
        gate.execute(RevokeToken { workspace, by: By::Program, token: before.token })?;
    }
    let token = draw(TOKEN_PREFIX)?;
    gate.execute(CreateToken {
        workspace,
        by: By::Program,
        name,
        scopes: TokenScope::ALL.to_vec(),
        days: TOKEN_DAYS_MAX,
        ip_allow: Vec::new(),
        digest: token.digest,
    })?;
    Ok(token.text)
}

fn register(gate: &Gate, workspace: WorkspaceId, key: &NewSecret) -> Result<Arc<Agent>, Problem> {
    let registered = gate.execute(RegisterAgent {
        mandates: TEMPLATES.iter().map(|name| Content::Template((*name).into())).collect(),
        ..RegisterAgent::new(workspace, own(Label::parse(AGENT_NAME))?, NewKey::of(key.text.expose()))
    })?;
    Ok(registered.agent)
}

fn create(gate: &Gate, workspace: WorkspaceId, scope: KeyScope, key: &NewSecret) -> Result<(), Problem> {
    gate.execute(CreateKey {
        label: Some(own(Label::parse(KEY_LABEL))?),
        ..CreateKey::new(workspace, By::Program, scope, NewKey::of(key.text.expose()))
    })?;
    Ok(())
}

/// What there is of a first start. Its agent is the oldest of those that the program made and nobody removed: whatever
/// person or machine made an agent, its keys are theirs. Keys made here carry the label, but for the one that the agent was
/// registered with.
fn look(gate: &Gate, workspace: WorkspaceId) -> Result<Found, Problem> {
    let agents = scan(gate, Index::AgentsOf, workspace, |it: &Agent| {
        it.created_by.is_none() && it.canary.is_none() && !matches!(it.standing, Standing::Removed { .. })
    })?;
    let agent = agents.into_iter().next();
    let is_first = |key: &Credential| match (&agent, key.binding.scope) {
        (Some(agent), KeyScope::Agent(of)) => of == agent.id && key.created_at == agent.created_at,
        (None, _) | (_, KeyScope::Admin | KeyScope::Inference) => false,
    };
    let is_own = |key: &Credential| key.label.as_ref().map_or_else(|| is_first(key), |it| it.as_str() == KEY_LABEL);
    let keys = scan(gate, Index::KeysOf, workspace, |it: &Credential| it.created_by.is_none() && is_own(it))?;
    Ok(Found { agent, keys })
}

/// The rows of a workspace's index that are wanted, the oldest first.
fn scan<T: Row>(
    gate: &Gate,
    index: Index,
    workspace: WorkspaceId,
    is_wanted: impl Fn(&T) -> bool,
) -> Result<Vec<Arc<T>>, Problem> {
    let mut wanted = Vec::new();
    let mut range = Range::all(index, workspace.bits(), PAGE);
    loop {
        let page = gate.scan(&range)?;
        let rows = page.iter().filter_map(|it| T::peel(it.row.record.as_ref()?));
        wanted.extend(rows.filter(|it| is_wanted(it)).cloned());
        if !range.turn_page(&page) {
            return Ok(wanted);
        }
    }
}

/// The owner where nobody is named.
///
/// # Errors
/// None that a test does not rule out.
pub(crate) fn default_owner() -> Result<Email, Problem> {
    own(Email::parse(OWNER))
}

/// A text of this program's own, which its tests show to be one.
fn own<T>(parsed: Result<T, Invalid>) -> Result<T, Problem> {
    parsed.map_err(|why| Problem::plain(format!("this program's own text {why}")))
}
