//! Gateway keys: made once, shown once, kept as a digest, revoked for good. A key that an admin key made ends with it.

use std::sync::Arc;

use super::by::{By, entitled, reaches, unseen};
use super::named::{self, Named};
use crate::refusal::{FieldError, Refusal};
use crate::rules::gate::freeze::own_agent;
use crate::rules::gateway::routing;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{AGENT_KEYS_MAX, Agent, HeldKey};
use crate::state::gateway::BoundKey;
use crate::state::people::{Binding, Credential, KeyScope, Member, Principal, Right, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::canonical::Object;
use crate::value::digest::{CredentialId, Digest};
use crate::value::id::{AgentId, KeyId, PrincipalId, ProfileId, TeamId, WorkspaceId};
use crate::value::text::{ClassId, Label};

/// How many keys may stand above a key that was made by a key.
const MADE_UNDER_MAX: usize = 16;

/// How the text of every key begins.
pub const KEY_PREFIX: &str = "ask_";
/// Bytes of a key's text. No key is longer.
pub const KEY_BYTES_MAX: usize = 256;

/// Whether a text may be that of a key, by its form alone: visible ASCII behind `ask_`, at most [`KEY_BYTES_MAX`] with it. What is
/// none is looked for nowhere.
#[must_use]
pub fn is_key(text: &str) -> bool {
    text.strip_prefix(KEY_PREFIX).is_some_and(|rest| !rest.is_empty()) && can_be_shown(text)
}

/// Whether a header can carry a text as a credential.
fn can_be_shown(text: &str) -> bool {
    text.len() <= KEY_BYTES_MAX && text.bytes().all(|it| it.is_ascii_graphic())
}

/// A key that somebody made: the digest of its text and what may be shown of it. The text itself never gets here.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// SHA-256 of the whole text.
    pub digest: Digest,
    /// The first 12 characters of the text; none where nobody could show it.
    pub prefix: Box<str>,
}

impl NewKey {
    /// What is kept of the key with this text: `ask_` and at least 128 random bits in visible ASCII, which the caller has drawn, at
    /// most [`KEY_BYTES_MAX`] together. One that nobody could show as a key is refused where it is to be kept.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let shown = if can_be_shown(text) { text.get(..12).unwrap_or(text) } else { "" };
        Self { digest: Digest::of(text), prefix: shown.into() }
    }
}

/// Refuses a key whose text is none, and one that is in use: the text alone says whose it is.
pub(super) fn is_new(scope: &mut Scope<'_>, key: &NewKey) -> Result<(), Halt> {
    if key.prefix.strip_prefix(KEY_PREFIX).is_none_or(str::is_empty) {
        let must = format!("must be `{KEY_PREFIX}` and visible ASCII behind it, at most {KEY_BYTES_MAX} characters");
        return Err(Refusal::invalid_field("key", must).into());
    }
    if scope.get::<Credential>(Credential::id_of(&key.digest))?.is_some() {
        return Err(Refusal::invalid_field("key", "is in use: draw another one").into());
    }
    Ok(())
}

/// Makes a key.
#[derive(Clone, Debug)]
pub struct CreateKey {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who makes it.
    pub by: By,
    /// What it may do.
    pub scope: KeyScope,
    /// Who its traffic counts for; an agent's key counts for the agent's principal, any other by default for its maker.
    pub principal: Option<PrincipalId>,
    /// The team its traffic counts for.
    pub team: Option<TeamId>,
    /// What people call it.
    pub label: Option<Label>,
    /// The class of its tasks where a call names none.
    pub task_class: Option<ClassId>,
    /// What its calls must satisfy beside their class.
    pub profile: Option<ProfileId>,
    /// Whether a call may name another class.
    pub task_class_open: bool,
    /// When it ends by itself: no later than the key that makes it.
    pub expires_at: Option<Timestamp>,
    /// The key.
    pub key: NewKey,
}

impl CreateKey {
    /// A key without a label, team, class or end, for whoever makes it.
    #[must_use]
    pub const fn new(workspace: WorkspaceId, by: By, scope: KeyScope, key: NewKey) -> Self {
        Self {
            workspace,
            by,
            scope,
            principal: None,
            team: None,
            label: None,
            task_class: None,
            profile: None,
            task_class_open: false,
            expires_at: None,
            key,
        }
    }
}

/// Makes a key and gives its row.
///
/// # Errors
/// Those of [`entitled`], `not_found` where the workspace has no such agent, `invalid_request` where it has no such principal
/// or team, the key is none or in use, or the agent has [`AGENT_KEYS_MAX`] keys in force.
pub fn create_key(scope: &mut Scope<'_>, asked: &CreateKey) -> Result<Arc<Credential>, Halt> {
    let agent = match asked.scope {
        KeyScope::Agent(agent) => {
            let reach = entitled(scope, &asked.by, asked.workspace, Right::AgentKeys)?;
            let agent = own_agent(scope, asked.workspace, agent)?;
            reaches(&asked.by, reach, &agent)?;
            let agent = Agent::clone(&agent).without_ended_keys(scope.now());
            if agent.keys.iter().filter(|it| it.via.is_none()).count() >= AGENT_KEYS_MAX {
                let full = format!("an agent has at most {AGENT_KEYS_MAX} keys: revoke one that is not used");
                return Err(Refusal::invalid_request(vec![FieldError::whole(full)]).into());
            }
            Some(agent)
        }
        KeyScope::Admin | KeyScope::Inference => {
            entitled(scope, &asked.by, asked.workspace, Right::ManageKeys)?;
            None
        }
    };
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    known(scope, asked)?;
    let principal = match (&agent, asked.principal, &asked.by) {
        (Some(agent), _, _) => agent.principal,
        (None, Some(id), _) => id,
        (None, None, By::Person(person)) => person.principal,
        (None, None, By::Key(key)) => key.principal,
        (None, None, By::Program | By::Token(_)) => workspace.owner,
    };
    is_new(scope, &asked.key)?;
    let id = Credential::id_of(&asked.key.digest);
    let binding = Binding {
        key: scope.fresh(),
        workspace: workspace.id,
        scope: asked.scope,
        principal,
        team: asked.team,
        task_class: asked.task_class.clone(),
        profile: asked.profile,
        task_class_open: asked.task_class_open,
        connection: None,
    };
    let (made_under, expires_at) = made_under(scope, asked)?;
    let bound = BoundKey {
        key: binding.key,
        credential: Some(id),
        class: asked.task_class.clone(),
        profile: asked.profile,
        team: asked.team,
        until: expires_at,
    };
    routing::bind(scope, workspace.id, bound)?;
    let credential = keep(scope, &CreateKey { expires_at, ..asked.clone() }, binding, id, made_under);
    if let Some(mut agent) = agent {
        agent.keys.push(HeldKey {
            id: credential.binding.key,
            credential: id,
            via: None,
            made_by: asked.by.principal().map(|it| (it, scope.now())),
            expires_at,
        });
        scope.put(agent);
    }
    Ok(credential)
}

/// That principal, team, class and profile are of the workspace, each fault by its field.
fn known(scope: &mut Scope<'_>, asked: &CreateKey) -> Result<(), Halt> {
    let principal = asked.principal.filter(|_| !matches!(asked.scope, KeyScope::Agent(_)));
    let named = [
        principal.map(|it| ("principalId", Named::Principal(it))),
        asked.team.map(|it| ("teamId", Named::Team(it))),
        asked.task_class.clone().map(|it| ("taskClassId", Named::TaskClass(it))),
        asked.profile.map(|it| ("policyProfileId", Named::Profile(it))),
    ];
    let named: Vec<_> = named.into_iter().flatten().map(|(field, it)| (field.to_owned(), it)).collect();
    let faults = named::faults(scope, asked.workspace, &named)?;
    if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid_request(faults).into()) }
}

/// The keys that a key ends with, and when it ends by itself at the latest.
fn made_under(scope: &mut Scope<'_>, asked: &CreateKey) -> Result<(Vec<CredentialId>, Option<Timestamp>), Halt> {
    let By::Key(key) = &asked.by else { return Ok((Vec::new(), asked.expires_at)) };
    let maker = scope.get::<Credential>(key.row)?.ok_or_else(Refusal::invalid_api_key)?;
    let mut above = maker.made_under.clone();
    if above.len() >= MADE_UNDER_MAX {
        return Err(Refusal::forbidden("too many keys stand above this one: have a person make the next").into());
    }
    above.push(key.row);
    let ends = asked.expires_at.into_iter().chain(maker.expires_at).min();
    Ok((above, ends))
}

/// Whether a key that is no agent's is in force: by its own row, and by the keys that it ends with.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn is_in_force(scope: &mut Scope<'_>, credential: &Credential) -> Result<bool, Halt> {
    Ok(credential.is_live(scope.now()) && !is_void(scope, credential)? && ended_above(scope, credential)?.is_none())
}

/// Whether one of these keys keeps what it is bound to: it is in force, or an agent's that is still there. However many they are,
/// what tells it of all of them is loaded in a few rounds.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn any_stands(scope: &mut Scope<'_>, ids: &[CredentialId]) -> Result<bool, Halt> {
    scope.want(&ids.iter().map(|it| Credential::key(*it)).collect::<Vec<_>>())?;
    let mut live = Vec::new();
    for id in ids {
        live.extend(scope.get::<Credential>(*id)?.filter(|it| it.is_live(scope.now())));
    }
    want_around(scope, &live)?;
    for key in &live {
        let stands = match key.binding.scope {
            KeyScope::Agent(agent) => scope.get::<Agent>(agent)?.is_some_and(|it| !it.is_removed()),
            KeyScope::Admin | KeyScope::Inference => is_in_force(scope, key)?,
        };
        if stands {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Asks at once for what keys end with: their agents, whom they count for and who administers by them, the keys above them, and the
/// same of these.
fn want_around(scope: &mut Scope<'_>, keys: &[Arc<Credential>]) -> Result<(), Halt> {
    let people = |it: &Credential| {
        let whom = [Some(it.binding.principal), it.administers_for()];
        whom.into_iter().flatten().map(Principal::key)
    };
    let (mut first, mut above) = (Vec::new(), Vec::new());
    for key in keys {
        match key.binding.scope {
            KeyScope::Agent(agent) => first.push(Agent::key(agent)),
            KeyScope::Admin | KeyScope::Inference => {
                first.extend(people(key));
                above.extend(&key.made_under);
            }
        }
    }
    first.extend(above.iter().map(|it| Credential::key(*it)));
    scope.want(&first)?;
    let mut second = Vec::new();
    for id in above {
        if let Some(it) = scope.get::<Credential>(id)? {
            second.extend(people(&it));
        }
    }
    scope.want(&second)
}

/// Whether a key that is no agent's ended though its own row does not say so yet: its principal is a member no more or, where it is an
/// admin key, the person who made it is none, may make none any more or could not at some time since, whomever it counts for. One
/// for traffic alone outlives its maker: whoever it counts for goes on with it.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn is_void(scope: &mut Scope<'_>, credential: &Credential) -> Result<bool, Halt> {
    let (principal, maker) = (credential.binding.principal, credential.administers_for());
    let keys = maker.into_iter().chain([principal]).map(Principal::key);
    scope.want(&keys.collect::<Vec<_>>())?;
    let (made, now) = (credential.created_at, scope.get::<Principal>(principal)?);
    if now.is_none_or(|it| it.has_ended_since(made)) {
        return Ok(true);
    }
    let Some(maker) = maker else { return Ok(false) };
    let gives_keys = |it: &Member| it.role.gives_keys() && !it.was_demoted_since(made);
    let maker = scope.get::<Principal>(maker)?;
    Ok(!maker.is_some_and(|it| !it.has_ended_since(made) && it.membership().is_some_and(gives_keys)))
}

/// How a key ended that another one ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedAbove {
    /// Its time was up.
    Expired,
    /// It was revoked before the other's own time was up, or ended with whoever it was of.
    Revoked,
}

/// How a key has ended that this one ends with, where one has: that it was revoked goes before that it expired.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn ended_above(scope: &mut Scope<'_>, credential: &Credential) -> Result<Option<EndedAbove>, Halt> {
    let keys: Vec<_> = credential.made_under.iter().map(|it| Credential::key(*it)).collect();
    scope.want(&keys)?;
    let mut ended = None;
    for above in &credential.made_under {
        let Some(above) = scope.get::<Credential>(*above)? else { return Ok(Some(EndedAbove::Revoked)) };
        let was_revoked = above.revoked_at.is_some_and(|at| credential.expires_at.is_none_or(|end| at < end));
        if was_revoked || is_void(scope, &above)? {
            return Ok(Some(EndedAbove::Revoked));
        }
        if !above.is_live(scope.now()) {
            ended = Some(EndedAbove::Expired);
        }
    }
    Ok(ended)
}

/// Writes the credential's row and its record.
pub(super) fn keep(
    scope: &mut Scope<'_>,
    asked: &CreateKey,
    binding: Binding,
    id: CredentialId,
    made_under: Vec<CredentialId>,
) -> Arc<Credential> {
    let credential = Credential {
        id,
        digest: asked.key.digest,
        binding,
        prefix: asked.key.prefix.clone(),
        label: asked.label.clone(),
        created_by: asked.by.maker(),
        made_under,
        created_at: scope.now(),
        expires_at: asked.expires_at,
        revoked_at: None,
    };
    record(scope, &credential, "key.created", asked.by.actor());
    scope.put(credential.clone());
    Arc::new(credential)
}

/// Records what becomes of a key, with all that may be told of it: whoever reads of its end need not look for its beginning.
pub(super) fn record(scope: &mut Scope<'_>, key: &Credential, kind: &'static str, actor: Actor) {
    let it = &key.binding;
    let agent = if let KeyScope::Agent(agent) = it.scope { Some(agent.to_string()) } else { None };
    let data = Object::new().text("scope", it.scope.as_str()).text("prefix", &key.prefix);
    let mut data = data.text("principalId", &it.principal.to_string());
    let members = [
        ("agentId", agent),
        ("expiresAt", key.expires_at.map(|it| it.to_string())),
        ("policyProfileId", it.profile.map(|it| it.to_string())),
        ("taskClassId", it.task_class.as_ref().map(|it| it.as_str().to_owned())),
        ("teamId", it.team.map(|it| it.to_string())),
    ];
    for (name, text) in &members {
        if let Some(text) = text {
            data = data.text(name, text);
        }
    }
    if it.task_class_open {
        data = data.bool("taskClassOpen", true);
    }
    let fact = Fact { kind, actor, subject: Subject::Key(it.key), data: data.finish() };
    let texts: Vec<_> = key.label.iter().map(|it| ("label", it.as_str())).collect();
    scope.append_with(it.workspace, fact, &texts);
}

/// Ends a key for good.
#[derive(Clone, Debug)]
pub struct RevokeKey {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who ends it.
    pub by: By,
    /// The key's credential row.
    pub credential: CredentialId,
}

/// Ends a key; ending an ended one changes nothing, but what it still keeps from being removed is let go of.
///
/// # Errors
/// Those of [`entitled`], `not_found` where the workspace has no such key.
pub fn revoke_key(scope: &mut Scope<'_>, asked: &RevokeKey) -> Result<KeyId, Halt> {
    let found = own_key(scope, &asked.by, asked.workspace, asked.credential);
    let credential = found?;
    let key = credential.binding.key;
    free(scope, &credential)?;
    if credential.revoked_at.is_some() {
        return Ok(key);
    }
    if let KeyScope::Agent(agent) = credential.binding.scope {
        drop_from(scope, agent, key)?;
    }
    record(scope, &credential, "key.revoked", asked.by.actor());
    scope.put(Credential { revoked_at: Some(scope.now()), ..Credential::clone(&credential) });
    Ok(key)
}

/// Lets go of the class, the profile and the team that a key was bound to, which nothing else keeps from being removed once it
/// has ended.
pub(super) fn free(scope: &mut Scope<'_>, credential: &Credential) -> Result<(), Halt> {
    let Binding { key, workspace, task_class, profile, team, .. } = &credential.binding;
    let is_bound = task_class.is_some() || profile.is_some() || team.is_some();
    if is_bound { routing::unbind(scope, *workspace, |it| it == *key) } else { Ok(()) }
}

/// A key of the workspace that `by` may read and end: an agent's by the right to that agent's keys, any other by the right to
/// keys. An access token is none of them: it is its connection that is ended, or its client would ask for another.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn own_key(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    id: CredentialId,
) -> Result<Arc<Credential>, Halt> {
    let is_one = |it: &Arc<Credential>| it.binding.workspace == workspace && it.binding.connection.is_none();
    let found = scope.get::<Credential>(id)?.filter(is_one);
    let Some(credential) = found else {
        entitled(scope, by, workspace, Right::AgentKeys)?;
        return Err(Refusal::not_found().into());
    };
    if let KeyScope::Agent(agent) = credential.binding.scope {
        let reach = entitled(scope, by, workspace, Right::AgentKeys)?;
        let agent = scope.get::<Agent>(agent)?.ok_or_else(Refusal::not_found)?;
        reaches(by, reach, &agent)?;
    } else {
        entitled(scope, by, workspace, Right::ManageKeys).map_err(unseen)?;
    }
    Ok(credential)
}

pub(super) fn drop_from(scope: &mut Scope<'_>, agent: AgentId, key: KeyId) -> Result<(), Halt> {
    if let Some(agent) = scope.get::<Agent>(agent)? {
        let mut agent = Agent::clone(&agent);
        agent.keys.retain(|it| it.id != key);
        scope.put(agent);
    }
    Ok(())
}
