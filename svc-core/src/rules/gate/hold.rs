//! Whether a hold stops an agent. The holds that stand are members of the workspace's own row, so none can appear beside a
//! decision that has read it; whom a selection names stands in rows that never change.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::gate::{Agent, Frozen, Standing};
use crate::state::people::{Hold, MemberPart, Workspace};
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

/// The agent as its own row is about to say it, where a freeze stands that the row has not followed yet: whoever was stopped is shown as
/// frozen from the first commit on.
///
/// # Errors
/// As [`held_by`].
pub fn as_frozen(scope: &mut Scope<'_>, agent: Arc<Agent>) -> Result<Arc<Agent>, Halt> {
    if !agent.is_active() {
        return Ok(agent);
    }
    let workspace = scope.get::<Workspace>(agent.workspace)?.ok_or_else(Refusal::internal)?;
    for standing in &workspace.holds {
        let hold = scope.get::<Hold>(standing.id)?.ok_or_else(Refusal::internal)?;
        for freeze in hold.freezing() {
            let Some(part) = freeze.members.part_of(agent.id) else { continue };
            if scope.get::<MemberPart>(part)?.ok_or_else(Refusal::internal)?.holds(agent.id) {
                let frozen = Frozen::new(freeze.at, freeze.by.clone(), freeze.reason.clone());
                let standing = Standing::Frozen(Frozen { hold: Some(hold.id), ..frozen });
                return Ok(Arc::new(Agent { standing, ..Agent::clone(&agent) }));
            }
        }
    }
    Ok(agent)
}
