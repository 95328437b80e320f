//! Whether a hold stops an agent. The holds that stand are members of the workspace's own row, so none can appear beside a
//! decision that has read it; whom a selection names stands in rows that never change.

use crate::refusal::Refusal;
use crate::state::people::{MemberPart, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::id::{AgentId, HoldId};

/// A hold that stops an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub id: HoldId,
    /// Since when.
    pub at: Timestamp,
}

/// The hold that stops `agent`, if one does; the oldest, where several do.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that a hold names is not there.
pub fn held_by(scope: &mut Scope<'_>, workspace: &Workspace, agent: AgentId) -> Result<Option<Held>, Halt> {
    for hold in &workspace.holds {
        let stops = match &hold.over {
            None => true,
            Some(members) => match members.part_of(agent) {
                Some(part) => scope.get::<MemberPart>(part)?.ok_or_else(Refusal::internal)?.holds(agent),
                None => false,
            },
        };
        if stops {
            return Ok(Some(Held { id: hold.id, at: hold.at }));
        }
    }
    Ok(None)
}
