//! What a first start makes: a workspace with its owner, an agent with two mandates, three keys and a service token.
//!
//! It is made step by step, and each step looks for what is there already: a start that was cut short is finished by
//! the next.

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
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_core::value::secret::Secret;
use svc_core::value::text::{Email, Label};
use svc_core::value::{Id as _, Invalid};
use svc_http::callback_secret;
use svc_http::secrets::{KEY_PREFIX, LINK_PREFIX, NewSecret, TOKEN_PREFIX, draw};
use svc_store::Gate;

use super::output::Problem;
use super::welcome::{Home, Keys};

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

/// Makes whatever of it is missing, and new keys for the old ones where `new_keys` is asked.
///
/// # Errors
/// [`Problem`] where the store does not answer or takes no more.
pub(crate) fn ensure(gate: &Gate, owner: &Email, new_keys: bool) -> Result<Home, Problem> {
    let workspace = match workspace(gate)? {
        Some(workspace) => workspace,
        None => gate.execute(CreateWorkspace {
            name: own(Label::parse(WORKSPACE_NAME))?,
            owner: owner.clone(),
            settings: Settings::default(),
        })?,
    };
    let callback_secret = sign_callbacks(gate, workspace.id, new_keys)?;
    let home = with_agent(gate, &workspace, new_keys)?;
    let sign_in_token = sign_in_token(gate, &workspace, new_keys)?;
    Ok(Home { callback_secret, sign_in_token, ..home })
}

/// A one-time token for the first owner, which lives until it is used: where they have never signed in and hold none, or
/// where `renew` is asked, which voids the one before.
fn sign_in_token(gate: &Gate, workspace: &Workspace, renew: bool) -> Result<Option<Secret<String>>, Problem> {
    let owner = gate.read(|scope| {
        let owner = scope.get::<Principal>(workspace.owner)?.ok_or_else(Refusal::internal)?;
        let account = find_account(scope, &owner.email)?;
        Ok(account.filter(|it| renew || (it.signed_in_at.is_none() && it.link.is_none())))
    })?;
    let Some(owner) = owner else { return Ok(None) };
    let token = draw(LINK_PREFIX)?;
    gate.execute(MakeLink { email: owner.email.clone(), token: token.digest, life: None })?;
    Ok(Some(token.text))
}

/// Has callbacks signed, with a new secret where `renew` is asked; the secret, where it is new.
fn sign_callbacks(gate: &Gate, workspace: WorkspaceId, renew: bool) -> Result<Option<Secret<String>>, Problem> {
    let (by, slot) = (By::Program, IntegrationSlot { workspace, kind: IntegrationKind::Callbacks });
    let all = gate.read(|scope| integrations::all(scope, &by, workspace))?;
    let found = all.iter().find(|it| it.slot == slot);
    if found.is_some() && !renew {
        return Ok(None);
    }
    let secret = callback_secret::draw()?;
    let kept = callback_secret::seal(gate, slot, &secret)?;
    match found {
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
    Ok(Some(secret))
}

/// Makes whatever is missing of the first agent and of the keys.
fn with_agent(gate: &Gate, workspace: &Workspace, new_keys: bool) -> Result<Home, Problem> {
    let Some(agent) = first_agent(gate, workspace.id)? else {
        let agent_key = draw(KEY_PREFIX)?;
        let agent = register(gate, workspace.id, &agent_key)?;
        return with_keys(gate, workspace, &agent, agent_key);
    };
    let old = own_keys(gate, &agent)?;
    let is_whole = [KeyScope::Agent(agent.id), KeyScope::Inference, KeyScope::Admin]
        .iter()
        .all(|scope| old.iter().any(|key| key.binding.scope == *scope));
    if is_whole && !new_keys {
        return Ok(Home {
            workspace: workspace.id,
            agent: agent.id,
            keys: None,
            callback_secret: None,
            sign_in_token: None,
        });
    }
    let agent_key = draw(KEY_PREFIX)?;
    create(gate, workspace.id, KeyScope::Agent(agent.id), &agent_key)?;
    let home = with_keys(gate, workspace, &agent, agent_key)?;
    // The old ones end last: a start that is cut short leaves no one without a key.
    for key in old.iter().filter(|key| key.revoked_at.is_none()) {
        gate.execute(RevokeKey { workspace: workspace.id, by: By::Program, credential: key.id })?;
    }
    Ok(home)
}

/// Makes the keys that are no agent's.
fn with_keys(gate: &Gate, workspace: &Workspace, agent: &Agent, agent_key: NewSecret) -> Result<Home, Problem> {
    let (inference, admin) = (draw(KEY_PREFIX)?, draw(KEY_PREFIX)?);
    create(gate, workspace.id, KeyScope::Inference, &inference)?;
    create(gate, workspace.id, KeyScope::Admin, &admin)?;
    let token = service_token(gate, workspace.id)?;
    let keys = Keys { agent: agent_key.text, inference: inference.text, admin: admin.text, token };
    Ok(Home { workspace: workspace.id, agent: agent.id, keys: Some(keys), callback_secret: None, sign_in_token: None })
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

/// The oldest agent that was not removed.
fn first_agent(gate: &Gate, workspace: WorkspaceId) -> Result<Option<Arc<Agent>>, Problem> {
    let mut range = Range::all(Index::AgentsOf, workspace.bits(), PAGE);
    loop {
        let page = gate.scan(&range)?;
        let mut agents = page.iter().filter_map(|it| Agent::peel(it.row.record.as_ref()?));
        if let Some(agent) = agents.find(|it| !matches!(it.standing, Standing::Removed { .. })) {
            return Ok(Some(Arc::clone(agent)));
        }
        match page.last() {
            Some(last) if page.len() == PAGE => range.after = Some((last.order, last.row.key)),
            _ => return Ok(None),
        }
    }
}

/// The keys that were made here for `agent` and beside it, revoked ones too: they carry the label, or are the one that
/// the agent was registered with.
fn own_keys(gate: &Gate, agent: &Agent) -> Result<Vec<Arc<Credential>>, Problem> {
    let is_own = |key: &Credential| match &key.label {
        Some(label) => label.as_str() == KEY_LABEL,
        None => key.binding.scope == KeyScope::Agent(agent.id) && key.created_at == agent.created_at,
    };
    let mut own = Vec::new();
    let mut range = Range::all(Index::KeysOf, agent.workspace.bits(), PAGE);
    loop {
        let page = gate.scan(&range)?;
        let keys = page.iter().filter_map(|it| Credential::peel(it.row.record.as_ref()?));
        own.extend(keys.filter(|it| is_own(it)).cloned());
        match page.last() {
            Some(last) if page.len() == PAGE => range.after = Some((last.order, last.row.key)),
            _ => return Ok(own),
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
