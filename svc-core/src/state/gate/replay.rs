//! Idempotency keys, sessions of clients, and what an action carries that nothing rewrites.

use serde::{Deserialize, Serialize};

use crate::value::digest::{Digest, ReplayId, SessionKey};
use crate::value::id::{ActionId, AgentId, ConnectionId, KeyId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::text::{IdempotencyKey, SessionId, Source};
use crate::value::{Id, Span, Timestamp};

/// How long an idempotency key outlives its action.
pub const REPLAY_KEPT: Span = Span::hours(7 * 24);

/// Which action an agent's idempotency key made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// Agent and key, as one digest.
    pub id: ReplayId,
    /// The digest of the request as sent, without the key; absent where the action was erased, as it would let its words be guessed.
    /// Nothing is the same request then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Digest>,
    /// The action.
    pub action: ActionId,
}

impl Replay {
    /// The row for these two.
    #[must_use]
    pub fn id_of(agent: AgentId, key: &IdempotencyKey) -> ReplayId {
        ReplayId::of(&[&agent.bits().to_be_bytes(), key.as_str().as_bytes()])
    }
}

impl Linked for Replay {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// How long a session belongs to an agent that no longer names it.
pub const SESSION_KEPT: Span = Span::hours(24);
/// How old an owner's last naming may be before the next one is noted: by so much its owner may lose it before the day is over, and a
/// session that is asked in a hundred times a second is not written as often.
pub const SESSION_NOTED: Span = Span::seconds(1);

/// What the gate puts as session where a client names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    /// The id of its connection.
    Connection(ConnectionId),
    /// The id of its key.
    Key(KeyId),
}

impl StandIn {
    /// What a session is the stand-in of; `None` where it is a session of its own.
    #[must_use]
    pub fn of(session: &SessionId) -> Option<Self> {
        let text = session.as_str();
        let connection = ConnectionId::parse(text).map(Self::Connection);
        connection.or_else(|_| KeyId::parse(text).map(Self::Key)).ok()
    }

    /// Whether it stands for traffic of this key, or of the connection that the key came through.
    #[must_use]
    pub fn is_of(self, key: KeyId, connection: Option<ConnectionId>) -> bool {
        match self {
            Self::Connection(id) => connection == Some(id),
            Self::Key(id) => key == id,
        }
    }
}

/// Which agent a client's session id belongs to, and what entered its context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientSession {
    /// Workspace and session id, as one digest.
    pub id: SessionKey,
    /// Who named it first; absent where only keys without an agent have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentId>,
    /// When the owner named it, to within [`SESSION_NOTED`].
    pub named_at: Timestamp,
    /// Sources that were seen entering its context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<Source>,
    /// Whether model traffic has named it: then an action is compared with what this session saw.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub carried: bool,
    /// Agents whose naming it, while it is another's, people were told of: `CONFLICTS_TOLD_MAX` at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<AgentId>,
}

/// How many agents that name another's session people are told of, once each.
pub(super) const CONFLICTS_TOLD_MAX: usize = 16;

impl ClientSession {
    /// Nobody's session, in which nothing was seen.
    #[must_use]
    pub const fn new(id: SessionKey, now: Timestamp) -> Self {
        Self { id, owner: None, named_at: now, observed: Vec::new(), carried: false, told: Vec::new() }
    }

    /// An agent names the session: it is the agent's where it is nobody's, and that is noted anew from time to time.
    pub fn name_by(&mut self, agent: AgentId, now: Timestamp) {
        match self.owner_at(now) {
            Some(owner) if owner != agent => {}
            Some(_) if now.since(self.named_at) < SESSION_NOTED => {}
            Some(_) => self.named_at = now,
            None => {
                // What the agent read in it while it was another's is not noted here.
                self.carried &= self.owner.is_none_or(|it| it == agent);
                (self.owner, self.named_at) = (Some(agent), now);
                self.told.clear();
            }
        }
    }

    /// Notes that people are told of an agent's naming it while it is another's; whether they were not told of that before.
    pub fn tell_of(&mut self, agent: AgentId) -> bool {
        let is_new = self.told.len() < CONFLICTS_TOLD_MAX && !self.told.contains(&agent);
        if is_new {
            self.told.push(agent);
        }
        is_new
    }

    /// Notes a source that entered its context; it stays noted.
    pub fn observe(&mut self, source: &Source) {
        if !self.observed.contains(source) {
            self.observed.push(source.clone());
        }
    }

    /// The row for these two.
    #[must_use]
    pub fn id_of(workspace: WorkspaceId, session: &SessionId) -> SessionKey {
        SessionKey::of(&[&workspace.bits().to_be_bytes(), session.as_str().as_bytes()])
    }

    /// Whose the session is at `now`.
    #[must_use]
    pub fn owner_at(&self, now: Timestamp) -> Option<AgentId> {
        self.owner.filter(|_| now.since(self.named_at) < SESSION_KEPT)
    }
}

impl Linked for ClientSession {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// What an action carried that no later change rewrites: kept apart, so that settling an action does not write its
/// tool's input again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// The action.
    pub action: ActionId,
    /// The tool's input, canonical JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<Box<str>>,
    /// The action's details, canonical JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<str>>,
}

impl Linked for Payload {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
