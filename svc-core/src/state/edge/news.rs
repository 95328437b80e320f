//! What people are told of: an id each, and never a text. What a message says is read when it is sent, so that it tells of what
//! has changed since, and of what was erased nothing.

use serde::{Deserialize, Serialize};

use crate::value::digest::TopicId;
use crate::value::id::{ApprovalId, WorkspaceId};
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
