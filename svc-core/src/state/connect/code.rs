//! Authorization codes: a person's yes, to be turned into tokens once.

use serde::{Deserialize, Serialize};

use super::consent::Wish;
use crate::value::digest::{CodeId, Digest};
use crate::value::id::{AgentId, ConnectionId, PrincipalId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// How long a code can be used.
pub const CODE_LIFE: Span = Span::minutes(5);
/// How long a code is remembered after that, so that its second use is known for one.
pub const CODE_KEPT: Span = Span::hours(24);

/// A code, bound to the client, the redirect and the challenge that it was asked for with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthCode {
    /// The first half of the digest.
    pub id: CodeId,
    /// The whole digest.
    pub digest: Digest,
    /// What the client wanted.
    pub wish: Wish,
    /// The agent's workspace.
    pub workspace: WorkspaceId,
    /// As which agent it acts.
    pub agent: AgentId,
    /// The agent's epoch when the person said yes.
    pub epoch: u32,
    /// Who said yes.
    pub person: PrincipalId,
    /// Where it stands.
    pub state: CodeState,
    /// When the person said yes.
    pub created_at: Timestamp,
}

impl AuthCode {
    /// The row of the code with this digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> CodeId {
        CodeId::of(&[digest.as_bytes()])
    }

    /// When it can be used no more.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.plus(CODE_LIFE)
    }

    /// The same, used up without anything given for it.
    #[must_use]
    pub fn spoiled(&self) -> Self {
        Self { state: CodeState::Void, ..self.clone() }
    }
}

impl Linked for AuthCode {
    fn links(&self) -> Vec<Link> {
        vec![Link::wake_of(self.workspace.bits(), self.expires_at().plus(CODE_KEPT))]
    }
}

/// Where a code stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeState {
    /// Nobody has shown it.
    Open,
    /// It was turned into this connection.
    Used(ConnectionId),
    /// A wrong attempt has used it up.
    Void,
}
