//! Gateway keys: made once, shown once, kept as a digest, revoked for good.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::gate::freeze::own_agent;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Agent, AgentKey};
use crate::state::people::{Binding, Credential, KeyScope, Principal, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::canonical::Object;
use crate::value::digest::{CredentialId, Digest};
use crate::value::id::{AgentId, KeyId, PrincipalId, WorkspaceId};
use crate::value::text::Label;

/// A key that somebody made: the digest of its text and what may be shown of it. The text itself never gets here.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// SHA-256 of the whole text.
    pub digest: Digest,
    /// The first 12 characters of the text.
    pub prefix: Box<str>,
}

impl NewKey {
    /// What is kept of the key with this text: `ask_` and at least 128 random bits, which the caller has drawn.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { digest: Digest::of(text), prefix: text.chars().take(12).collect::<String>().into() }
    }
}

/// Makes a key.
#[derive(Clone, Debug)]
pub struct CreateKey {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// What it may do.
    pub scope: KeyScope,
    /// Who its traffic counts for; an agent's key counts for the agent's principal, any other by default for the owner.
    pub principal: Option<PrincipalId>,
    /// What people call it.
    pub label: Option<Label>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// The key.
    pub key: NewKey,
}

/// Makes a key and gives its binding.
///
/// # Errors
/// `not_found` where the workspace has no such agent, `invalid_request` where it has no such principal.
pub fn create_key(scope: &mut Scope<'_>, asked: &CreateKey) -> Result<Binding, Halt> {
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let principal = match (asked.scope, asked.principal) {
        (KeyScope::Agent(agent), _) => own_agent(scope, workspace.id, agent)?.principal,
        (KeyScope::Admin | KeyScope::Inference, None) => workspace.owner,
        (KeyScope::Admin | KeyScope::Inference, Some(id)) => {
            let known = scope.get::<Principal>(id)?.filter(|it| it.workspace == workspace.id);
            known.ok_or_else(|| Refusal::invalid_field("principalId", "names no principal of this workspace"))?.id
        }
    };
    let id = Credential::id_of(&asked.key.digest);
    if scope.get::<Credential>(id)?.is_some() {
        // 256 random bits came twice: whoever drew them has no entropy, and gets no key.
        return Err(Refusal::internal().into());
    }
    let binding = Binding { key: scope.fresh(), workspace: workspace.id, scope: asked.scope, principal, team: None };
    keep(scope, asked, &binding, id);
    if let KeyScope::Agent(agent) = asked.scope {
        let agent = own_agent(scope, workspace.id, agent)?;
        let mut agent = Agent::clone(&agent);
        agent.keys.push(AgentKey { id: binding.key, credential: id, expires_at: asked.expires_at });
        scope.put(agent);
    }
    Ok(binding)
}

/// Writes the credential's row and its record.
pub(super) fn keep(scope: &mut Scope<'_>, asked: &CreateKey, binding: &Binding, id: CredentialId) {
    let scope_name = match binding.scope {
        KeyScope::Agent(_) => "agent",
        KeyScope::Admin => "admin",
        KeyScope::Inference => "inference",
    };
    let mut data = Object::new().text("scope", scope_name).text("prefix", &asked.key.prefix);
    data = data.text("principalId", &binding.principal.to_string());
    let agent = if let KeyScope::Agent(agent) = binding.scope { Some(agent.to_string()) } else { None };
    if let Some(agent) = &agent {
        data = data.text("agentId", agent);
    }
    let fact =
        Fact { kind: "key.created", actor: Actor::Policy, subject: Subject::Key(binding.key), data: data.finish() };
    scope.append(binding.workspace, fact);
    scope.put(Credential {
        id,
        digest: asked.key.digest,
        binding: binding.clone(),
        prefix: asked.key.prefix.clone(),
        label: asked.label.clone(),
        created_at: scope.now(),
        expires_at: asked.expires_at,
        revoked_at: None,
    });
}

/// Ends a key for good.
#[derive(Clone, Debug)]
pub struct RevokeKey {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// The key's credential row.
    pub credential: CredentialId,
}

/// Ends a key; ending an ended one changes nothing.
///
/// # Errors
/// `not_found` where the workspace has no such key.
pub fn revoke_key(scope: &mut Scope<'_>, asked: &RevokeKey) -> Result<KeyId, Halt> {
    let found = scope.get::<Credential>(asked.credential)?.filter(|it| it.binding.workspace == asked.workspace);
    let credential: Arc<Credential> = found.ok_or_else(Refusal::not_found)?;
    let key = credential.binding.key;
    if credential.revoked_at.is_some() {
        return Ok(key);
    }
    if let KeyScope::Agent(agent) = credential.binding.scope {
        drop_from(scope, agent, key)?;
    }
    let data = Object::new().text("prefix", &credential.prefix).finish();
    scope.append(asked.workspace, Fact { kind: "key.revoked", actor: Actor::Policy, subject: Subject::Key(key), data });
    scope.put(Credential { revoked_at: Some(scope.now()), ..Credential::clone(&credential) });
    Ok(key)
}

fn drop_from(scope: &mut Scope<'_>, agent: AgentId, key: KeyId) -> Result<(), Halt> {
    if let Some(agent) = scope.get::<Agent>(agent)? {
        let mut agent = Agent::clone(&agent);
        agent.keys.retain(|it| it.id != key);
        scope.put(agent);
    }
    Ok(())
}
