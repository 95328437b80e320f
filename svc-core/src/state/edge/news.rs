//! What people are told of: an id each, and never a text. What a message says is read when it is sent, so that it tells of what
//! has changed since, and of what was erased nothing.

use serde::{Deserialize, Serialize};

use crate::value::digest::{SignInLinkId, TopicId};
use crate::value::id::{ActionId, AgentId, ApprovalId, DeliveryId, EvidenceId, PrincipalId, WorkspaceId};
use crate::value::link::{Link, Linked};

/// What people are told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// Something waits for a person. Told to whoever may decide it.
    Asked {
        /// What.
        approval: ApprovalId,
    },
    /// What somebody was asked is decided, or over: the message that asked them says so from now on.
    Ended {
        /// What.
        approval: ApprovalId,
        /// The delivery of that message.
        of: DeliveryId,
    },
    /// An agent has named a session of another. Told to whoever each of them acts for.
    Conflict {
        /// What it asked.
        action: ActionId,
        /// Whose the session is.
        owner: AgentId,
    },
    /// A tool ran although its action was not allowed. Told to whoever may decide what its agent asks.
    Ran {
        /// The action.
        action: ActionId,
    },
    /// A setting was loosened. Told to the other owners and admins.
    Loosened {
        /// The record of it, which has both values.
        record: EvidenceId,
        /// Whoever did it, where it was a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<PrincipalId>,
    },
    /// Somebody was invited. Told to them.
    Invited {
        /// Whom.
        principal: PrincipalId,
        /// The link that signs them in, where one was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<SignInLinkId>,
        /// Its token, sealed; let go of once it was sent, or will not be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Box<str>>,
    },
}

impl News {
    /// What the tokens of a workspace's invitations are sealed for, and nothing else opens.
    #[must_use]
    pub fn purpose(workspace: WorkspaceId) -> String {
        format!("invitation/{workspace}")
    }

    /// The id of what is told of.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Asked { approval } | Self::Ended { approval, .. } => approval.to_string(),
            Self::Conflict { action, .. } | Self::Ran { action } => action.to_string(),
            Self::Loosened { record, .. } => record.to_string(),
            Self::Invited { principal, .. } => principal.to_string(),
        }
    }

    /// Lets go of what is secret in it.
    pub(super) fn let_go(&mut self) {
        match self {
            Self::Invited { token, .. } => *token = None,
            Self::Asked { .. }
            | Self::Ended { .. }
            | Self::Conflict { .. }
            | Self::Ran { .. }
            | Self::Loosened { .. } => {}
        }
    }

    /// Whether it can be told no more, since what it needs was let go of.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        match self {
            Self::Invited { link, token, .. } => link.is_some() && token.is_none(),
            Self::Asked { .. }
            | Self::Ended { .. }
            | Self::Conflict { .. }
            | Self::Ran { .. }
            | Self::Loosened { .. } => false,
        }
    }
}

/// What waits of one agent that is alike: of the same type, for the same merchant or tool. People are told of the first, and the
/// others stand under it. Written only where people are told of what waits, and gone with the last of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Which.
    pub id: TopicId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// The agent's epoch that they were asked under: what an older one asked waits no more.
    #[serde(default, skip_serializing_if = "is_first")]
    pub epoch: u32,
    /// What waits, the oldest first: as many as may wait of an agent.
    pub approvals: Vec<ApprovalId>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's shape")]
const fn is_first(epoch: &u32) -> bool {
    *epoch == 0
}

impl Linked for Topic {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
