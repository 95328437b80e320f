//! What a person is asked: durable, with an id and a link of its own, bound to the action's digest, waiting until
//! somebody decides, the time is up, or the agent is stopped.

use serde::{Deserialize, Serialize};

use super::reason::Reason;
use crate::value::digest::Digest;
use crate::value::id::{ActionId, AgentId, ApprovalId, PrincipalId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::Note;
use crate::value::{Id, Timestamp};

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Whose action.
    pub agent: AgentId,
    /// Which action.
    pub action: ActionId,
    /// What exactly is approved.
    pub action_digest: Digest,
    /// Limits that a person would exceed by approving.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<Reason>,
    /// The agent's epoch it was asked under.
    pub epoch: u32,
    /// When it was asked.
    pub created_at: Timestamp,
    /// Until when it waits.
    pub expires_at: Timestamp,
    /// How many persons have to agree: 1 or 2.
    pub needed: u8,
    /// Who has agreed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Consent>,
    /// Where it stands.
    pub state: ApprovalState,
}

/// One person's yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// Whose.
    pub by: PrincipalId,
    /// When.
    pub at: Timestamp,
    /// What they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// Where a question stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has decided.
    Waiting,
    /// Enough persons agreed.
    Approved {
        /// When the last of them did.
        at: Timestamp,
    },
    /// It was refused.
    Denied {
        /// When.
        at: Timestamp,
        /// By whom; absent where a freeze did it.
        by: Option<PrincipalId>,
        /// What they said.
        note: Option<Note>,
    },
    /// Nobody decided in time.
    Expired {
        /// When the time was up.
        at: Timestamp,
    },
}

impl Approval {
    /// Whether somebody may still decide it, as far as this row tells.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.state == ApprovalState::Waiting
    }

    /// The same, ended without a person's decision.
    #[must_use]
    pub fn ended(mut self, state: ApprovalState) -> Self {
        self.state = state;
        self
    }
}

impl Linked for Approval {
    fn links(&self) -> Vec<Link> {
        if !self.is_waiting() {
            return Vec::new();
        }
        vec![Link::by_id(Index::WaitingOf, self.agent.bits(), self.id), Link::wake(self.workspace, self.expires_at)]
    }
}
