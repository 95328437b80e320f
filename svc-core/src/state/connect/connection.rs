//! A client that acts as an agent, by leave of a person: one pair of tokens at a time.
//!
//! **Invariant:** the connection's row names the one refresh token in force, so that of two refreshes one is the second.

use serde::{Deserialize, Serialize};

use crate::value::digest::{CredentialId, Digest, RefreshId};
use crate::value::id::{AgentId, ConnectionId, PrincipalId, WorkspaceId};
use crate::value::link::{Index, Link, Linked, Order};
use crate::value::text::Label;
use crate::value::words::words;
use crate::value::{Id, Span, Timestamp};

/// How long an access token lives.
pub const ACCESS_LIFE: Span = Span::seconds(3_600);
/// How long the tokens of a connection are known after its end, so that whoever shows one is told of it.
pub const TOKENS_KEPT: Span = Span::hours(30 * 24);
/// Connections of one agent at a time.
pub const CONNECTIONS_MAX: usize = 64;
/// How long a connection's tokens must not have been renewed for it to make room for another, where there is none left:
/// its client may have forgotten it, and nobody tells that.
pub const UNUSED_AFTER: Span = Span::hours(24);
/// How long a connection lasts whose tokens nobody renews (RFC 9700, 4.14.2): a refresh token that lies about somewhere is no way
/// in for ever.
pub const CONNECTION_IDLE: Span = Span::hours(90 * 24);

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its id.
    pub id: ConnectionId,
    /// The agent's workspace.
    pub workspace: WorkspaceId,
    /// The client's `client_id`.
    pub client: Box<str>,
    /// What the client calls itself.
    pub client_name: Label,
    /// The host that the client was sent back to.
    pub redirect_host: Box<str>,
    /// As which agent it acts.
    pub agent: AgentId,
    /// Who connected it.
    pub person: PrincipalId,
    /// The credential of the access token in force.
    pub access: CredentialId,
    /// The digest of the refresh token in force.
    pub refresh: Digest,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its tokens were last renewed, or made.
    pub refreshed_at: Timestamp,
    /// When and why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Whether its tokens were let go of, long after its end.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub swept: bool,
}

impl Connection {
    /// When it ends if its tokens are not renewed.
    #[must_use]
    pub fn idle_at(&self) -> Timestamp {
        self.refreshed_at.plus(CONNECTION_IDLE)
    }

    /// Whether it has not ended, and nobody has renewed its tokens for so long that it is to.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.ended.is_none() && now >= self.idle_at()
    }

    /// When its tokens are let go of; never while it lasts, nor a second time.
    #[must_use]
    pub fn swept_at(&self) -> Option<Timestamp> {
        self.ended.filter(|_| !self.swept).map(|it| it.at.plus(TOKENS_KEPT))
    }
}

impl Linked for Connection {
    fn links(&self) -> Vec<Link> {
        let mut links = vec![Link::by_id(Index::ConnectionsOf, self.workspace.bits(), self.id)];
        if self.ended.is_none() {
            links.push(Link::by_id(Index::ConnectionsBy, self.person.bits(), self.id));
            links.push(Link::wake(self.workspace, self.idle_at()));
        }
        links.extend(self.swept_at().map(|at| Link::wake(self.workspace, at)));
        links
    }
}

/// When and why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub by: EndedBy,
}

/// Why a connection ended (CONTRACT part 2, "Connection").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The client or a person ended it.
    Revoked,
    /// A used refresh token was shown.
    Reuse,
    /// A used code was shown, with the right verifier.
    CodeReuse,
    /// Its agent was frozen.
    Frozen,
    /// Its agent was removed.
    Removed,
    /// Whoever connected it left the workspace, or came into a role in which they may connect the agent no more.
    Left,
    /// Nobody had renewed its tokens for [`CONNECTION_IDLE`], or for [`UNUSED_AFTER`] where another was made and its agent had as many
    /// as it may have.
    Unused,
}

words! { EndedBy;
    Revoked "revoked";
    Reuse "reuse";
    CodeReuse "code_reuse";
    Frozen "frozen";
    Removed "removed";
    Left "left";
    Unused "unused";
}

/// A refresh token that was ever given: which connection it is of. Whether it is in force, the connection says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshToken {
    /// The first half of the digest.
    pub id: RefreshId,
    /// The whole digest.
    pub digest: Digest,
    /// The connection.
    pub connection: ConnectionId,
}

impl RefreshToken {
    /// The row of the token with this digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> RefreshId {
        RefreshId::of(&[digest.as_bytes()])
    }
}

impl Linked for RefreshToken {
    fn links(&self) -> Vec<Link> {
        let order = Order::At(self.id.bits());
        vec![Link { index: Index::RefreshOf, prefix: self.connection.bits(), order }]
    }
}
