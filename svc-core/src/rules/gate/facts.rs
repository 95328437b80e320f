//! Where an action came from: what it declares, what its session saw, and whose the session is.

use crate::state::gate::provenance::{effective, verdict};
use crate::state::gate::{ClientSession, Origin, Request, SESSION_NOTED};
use crate::turn::{Halt, Scope};
use crate::value::id::{AgentId, WorkspaceId};
use crate::value::text::Source;

/// The action's origin, and whether its session belongs to another agent. Naming a session that belongs to nobody makes
/// it the caller's, in the commit of the decision.
pub(super) fn origin(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    agent: AgentId,
    request: &Request,
) -> Result<(Origin, bool), Halt> {
    let mut observed: Vec<Source> = Vec::new();
    let mut conflict = false;
    if let Some(session) = &request.session {
        let id = ClientSession::id_of(workspace, session);
        let known = scope.get::<ClientSession>(id)?;
        let now = scope.now();
        let owner = known.as_ref().and_then(|it| it.owner_at(now));
        conflict = owner.is_some_and(|it| it != agent);
        observed = known.as_ref().map(|it| it.observed.clone()).unwrap_or_default();
        let stale = known.as_ref().is_none_or(|it| it.owner.is_none() || now.since(it.named_at) >= SESSION_NOTED);
        if !conflict && stale {
            scope.put(ClientSession { id, owner: Some(agent), named_at: now, observed: observed.clone() });
        }
    }
    let declared = request.provenance.clone();
    let (effective, verdict) = (effective(&declared, &observed), verdict(&declared, &observed));
    Ok((Origin { declared, observed, effective, verdict }, conflict))
}
