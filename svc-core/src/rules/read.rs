//! Single objects as they stand: what an answer shows of an action beside the action's own row.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::gate::asked::as_it_counts;
use crate::rules::gate::hold::{Held, held_by};
use crate::rules::gate::{Caller, caller_agent};
use crate::rules::people::by::{By, entitled, reaches};
use crate::rules::people::keys;
use crate::state::gate::{Action, Agent, Approval, Code, DecidedBy, Effect, Payload, Reason, State, Status, Verb};
use crate::state::people::{Account, Binding, Credential, KeyScope, Member, MemberState, Principal, Right, Workspace};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::Digest;
use crate::value::id::{ActionId, ApprovalId, PrincipalId, WorkspaceId};

/// An action with the rows that say how it reads.
#[derive(Clone, Debug)]
pub struct View {
    /// The action.
    pub action: Arc<Action>,
    /// Its agent.
    pub agent: Arc<Agent>,
    /// The hold over its agent, while one stands.
    pub hold: Option<Held>,
    /// What a person was asked.
    pub approval: Option<Arc<Approval>>,
    /// How many persons have to agree where one was asked: while it waits by the settings as they are now.
    pub needed: u8,
    /// Whether the person at the keyboard is the one to ask.
    pub client_may_ask: bool,
    /// Its tool input and details.
    pub payload: Option<Arc<Payload>>,
    /// When this was read.
    pub now: Timestamp,
    /// Whether it answers a request that was made before.
    pub replayed: bool,
}

impl View {
    /// How the action reads.
    #[must_use]
    pub fn status(&self) -> Status {
        self.action.status(&self.agent, self.hold.map(|it| it.at), self.now)
    }

    /// What the agent is to do.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.action.verb(self.status())
    }

    /// Every rule that spoke, and what has happened to the decision since.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        let mut reasons = self.action.reasons.clone();
        let status = self.status();
        let has = |code| reasons.iter().any(|it: &Reason| it.code == code);
        let later = match (&self.action.state, status) {
            (State::Pending { .. }, Status::Denied) | (State::Allowed(_), Status::Revoked) => Some(Code::AgentFrozen),
            (State::Pending { .. }, Status::Expired) => Some(Code::ApprovalExpired),
            (State::Allowed(_), _) if self.verb() == Verb::Deny => Some(Code::AgentFrozen),
            _ => None,
        };
        let later = later.filter(|code| !has(*code));
        reasons.extend(later.map(|code| Reason::new(code, Effect::Deny)));
        reasons
    }

    /// Who decided, and when, once somebody has.
    #[must_use]
    pub fn decided(&self) -> Option<(Timestamp, DecidedBy)> {
        // A hold stops its members before their rows say so.
        let held = self.hold.map(|it| it.at);
        let stopped = || self.agent.stopped_since(self.action.epoch).or(held);
        match (&self.action.state, self.status()) {
            (State::Pending { .. }, Status::Pending) => None,
            (State::Pending { expires_at }, Status::Expired) => Some((*expires_at, DecidedBy::Expiry)),
            (State::Pending { .. }, _) => Some((stopped().unwrap_or(self.now), DecidedBy::Freeze)),
            (State::Denied { at, by }, _) => Some((*at, *by)),
            (State::Expired { at }, _) => Some((*at, DecidedBy::Expiry)),
            (State::Allowed(allowed), _) => Some((allowed.at, allowed.by)),
        }
    }

    /// What is to be recorded before anybody is told of it: every decision leaves a record, which its answer names.
    #[must_use]
    pub fn untold(&self) -> Option<Untold> {
        match (&self.action.state, self.status()) {
            (State::Pending { .. }, Status::Denied) => self.action.approval.map(Untold::Denied),
            (State::Pending { .. }, Status::Expired) => self.action.approval.map(Untold::Expired),
            (State::Allowed(allowed), Status::Revoked) if allowed.lapsed.is_none() && allowed.revoked.is_none() => {
                Some(Untold::Revoked(self.action.id))
            }
            _ => None,
        }
    }

    /// Whether a receipt goes with the answer: allowed, the agent active, the receipt not expired.
    #[must_use]
    pub fn has_receipt(&self) -> bool {
        let ahead = self.action.allowed().is_some_and(|it| self.now < it.receipt_expires_at);
        ahead && self.status() == Status::Allowed && self.agent.is_active() && self.hold.is_none()
    }
}

/// What a stop has done to an action, or time to a wait, and no record tells yet. As an operation it is written, and its answer
/// tells that it is, or that something else came of it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// A stop ended this wait.
    Denied(ApprovalId),
    /// Nobody decided in time, as far as is written: a decision that was made in time may be on its way.
    Expired(ApprovalId),
    /// A stop voided what was allowed.
    Revoked(ActionId),
}

impl Untold {
    /// Whether something else may yet come of it: then nobody is told before it is written.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Expired(_))
    }
}

/// The view of an action.
///
/// # Errors
/// `internal` where a row that the action names is not there.
pub fn view(scope: &mut Scope<'_>, action: Arc<Action>) -> Result<View, Halt> {
    scope.want(&view_keys(&action))?;
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    view_of(scope, action, agent, &workspace)
}

/// The same where its agent and its workspace are at hand.
///
/// # Errors
/// As [`view`].
pub(in crate::rules) fn view_of(
    scope: &mut Scope<'_>,
    action: Arc<Action>,
    agent: Arc<Agent>,
    workspace: &Workspace,
) -> Result<View, Halt> {
    let approval = match action.approval {
        Some(id) => {
            let stored = scope.get::<Approval>(id)?.ok_or_else(Refusal::internal)?;
            Some(as_it_counts(scope, stored)?)
        }
        None => None,
    };
    let payment = action.payment.as_ref().map(|it| (it.currency, it.amount));
    let needed = match &approval {
        Some(approval) if approval.is_waiting() => workspace.settings.persons_needed(payment),
        Some(approval) => approval.needed,
        None => 1,
    };
    // A client at the keyboard has nowhere to show a second factor again.
    let one_word_is_enough = needed == 1 && !workspace.settings.needs_second_factor(payment);
    let client_may_ask = approval.is_some() && one_word_is_enough && may_answer(scope, workspace, action.principal)?;
    let payload = if action.payload { scope.get::<Payload>(action.id)? } else { None };
    let hold = held_by(scope, workspace, agent.id)?;
    Ok(View { action, agent, hold, approval, needed, client_may_ask, payload, now: scope.now(), replayed: false })
}

/// Whether the person whom an agent acts for could decide now what it asks: then whoever sits at the keyboard is the one to ask.
/// Somebody who was invited and has never come is nobody yet.
fn may_answer(scope: &mut Scope<'_>, workspace: &Workspace, id: PrincipalId) -> Result<bool, Halt> {
    let principal = scope.get::<Principal>(id)?.filter(|it| it.decides_own());
    let come = |it: &&Member| it.state == MemberState::Active;
    let Some(member) = principal.as_ref().and_then(|it| it.membership()).filter(come) else { return Ok(false) };
    if !workspace.settings.sign_in.require_two_factor {
        return Ok(true);
    }
    Ok(scope.get::<Account>(member.account)?.is_some_and(|it| it.second_factor.is_some()))
}

fn view_keys(action: &Action) -> Vec<Key> {
    let mut keys = vec![Agent::key(action.agent), Workspace::key(action.workspace)];
    keys.extend(action.approval.map(Approval::key));
    keys.extend(action.approval.map(|_| Principal::key(action.principal)));
    keys.extend(action.payload.then(|| Payload::key(action.id)));
    keys
}

/// The views of many actions, of one moment.
///
/// # Errors
/// As [`view`].
pub fn views(scope: &mut Scope<'_>, actions: &[Arc<Action>]) -> Result<Vec<View>, Halt> {
    // All at once: one after the other they would be looked for as many times as there are actions.
    let keys: Vec<Key> = actions.iter().flat_map(|it| view_keys(it)).collect();
    scope.want(&keys)?;
    want_accounts(scope, actions)?;
    actions.iter().map(|it| view(scope, Arc::clone(it))).collect()
}

/// The accounts by which it is known whether somebody may answer, where a workspace asks for second factors.
fn want_accounts(scope: &mut Scope<'_>, actions: &[Arc<Action>]) -> Result<(), Halt> {
    let mut keys = Vec::new();
    for action in actions.iter().filter(|it| it.approval.is_some()) {
        let workspace = scope.get::<Workspace>(action.workspace)?;
        if workspace.is_some_and(|it| it.settings.sign_in.require_two_factor) {
            let principal = scope.get::<Principal>(action.principal)?;
            keys.extend(principal.as_ref().and_then(|it| it.membership()).map(|it| Account::key(it.account)));
        }
    }
    scope.want(&keys)
}

/// The same of actions as they are now.
///
/// # Errors
/// As [`view`].
pub fn views_anew(scope: &mut Scope<'_>, actions: &[Arc<Action>]) -> Result<Vec<View>, Halt> {
    scope.want(&actions.iter().map(|it| Action::key(it.id)).collect::<Vec<_>>())?;
    let mut newer = Vec::with_capacity(actions.len());
    for action in actions {
        newer.push(scope.get::<Action>(action.id)?.unwrap_or_else(|| Arc::clone(action)));
    }
    views(scope, &newer)
}

/// An action of a workspace, as one of its members sees it.
///
/// # Errors
/// `not_found` where there is none, or it is of an agent that is not theirs.
pub fn action_of(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: ActionId) -> Result<View, Halt> {
    let reach = entitled(scope, by, workspace, Right::ReadActions)?;
    let action = scope.get::<Action>(id)?.filter(|it| it.workspace == workspace).ok_or_else(Refusal::not_found)?;
    let view = view(scope, action)?;
    reaches(by, reach, &view.agent)?;
    Ok(view)
}

/// One of the caller's own actions.
///
/// # Errors
/// `invalid_api_key`, `agent_not_found`, and `not_found` where the action is not this agent's.
pub fn own_action(scope: &mut Scope<'_>, caller: &Caller, id: ActionId) -> Result<Arc<Action>, Halt> {
    scope.want(&[Agent::key(caller.agent), Action::key(id)])?;
    caller_agent(scope, caller)?;
    let action = scope.get::<Action>(id)?.filter(|it| it.agent == caller.agent);
    action.ok_or_else(|| Refusal::not_found().into())
}

/// One of the caller's own actions as it stands.
///
/// # Errors
/// As [`own_action`].
pub fn get_action(scope: &mut Scope<'_>, caller: &Caller, id: ActionId) -> Result<View, Halt> {
    let action = own_action(scope, caller, id)?;
    view(scope, action)
}

/// What the key with this digest stands for, whether or not it is in force.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn find_binding(scope: &mut Scope<'_>, digest: &Digest) -> Result<Option<Binding>, Halt> {
    let found = scope.get::<Credential>(Credential::id_of(digest))?;
    Ok(found.filter(|it| it.digest == *digest).map(|it| it.binding.clone()))
}

/// Whether a key is in force now: by its agent for an agent's key, by its own row for any other.
///
/// # Errors
/// `invalid_api_key` where it is not, `agent_not_found` where its agent was removed.
pub fn check_key(scope: &mut Scope<'_>, digest: &Digest) -> Result<Binding, Halt> {
    let found = scope.get::<Credential>(Credential::id_of(digest))?;
    let Some(credential) = found.filter(|it| it.digest == *digest) else {
        return Err(Refusal::invalid_api_key().into());
    };
    let binding = credential.binding.clone();
    match binding.scope {
        KeyScope::Agent(agent) => {
            caller_agent(scope, &Caller { workspace: binding.workspace, agent, key: binding.key })?;
        }
        KeyScope::Admin | KeyScope::Inference if keys::is_in_force(scope, &credential)? => {}
        KeyScope::Admin | KeyScope::Inference => return Err(Refusal::invalid_api_key().into()),
    }
    Ok(binding)
}
