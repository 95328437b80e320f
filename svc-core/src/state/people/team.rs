//! Teams: members that are counted and selected together.

use serde::{Deserialize, Serialize};

use crate::value::id::{PrincipalId, TeamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::Label;
use crate::value::{Id, Timestamp};

/// How many members a team has at most.
pub const TEAM_MEMBERS_MAX: usize = 1_000;
/// How many teams a member is in at most.
pub const MEMBER_TEAMS_MAX: usize = 50;

/// A team. Who is in it stands here and with each member, both written in one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// Its id.
    pub id: TeamId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// What people call it.
    pub name: Label,
    /// Who answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<PrincipalId>,
    /// Who is in it, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<PrincipalId>,
    /// Who made it; absent where the operator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<PrincipalId>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Linked for Team {
    fn links(&self) -> Vec<Link> {
        vec![Link::by_id(Index::TeamsOf, self.workspace.bits(), self.id)]
    }
}
