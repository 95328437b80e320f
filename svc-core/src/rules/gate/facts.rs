//! Where an action came from: what it declares, what its session saw, and whose the session is.

use crate::refusal::Refusal;
use crate::state::gate::provenance::{effective, verdict};
use crate::state::gate::{Account, Activity, ClientSession, Declared, Origin, Request};
use crate::state::people::Workspace;
use crate::turn::{Halt, Scope};
use crate::value::Span;
use crate::value::id::{ConnectionId, KeyId};
use crate::value::text::{SessionId, Source};

/// The action's origin, and whether its session belongs to another agent. Naming a session that belongs to nobody makes
/// it the caller's, in the commit of the decision. Observed is what the gateway saw enter the session's context, or,
/// where the action names no session that the gateway saw, the agent's in the last `provenance.windowMinutes`. Where a
/// session only stands for none, both: it tells nothing of what the agent has read under other names.
pub(super) fn origin(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    activity: &Activity,
    request: &Request,
) -> Result<(Origin, bool), Halt> {
    let now = scope.now();
    let mut conflict = false;
    let mut of_session: Option<Vec<Source>> = None;
    if let Some(session) = &request.session {
        let id = ClientSession::id_of(workspace.id, session);
        let known = scope.get::<ClientSession>(id)?;
        conflict = known.as_ref().and_then(|it| it.owner_at(now)).is_some_and(|it| it != activity.agent);
        if !conflict {
            let mut named = known.as_deref().cloned().unwrap_or_else(|| ClientSession::new(id, now));
            named.name_by(activity.agent, now);
            if known.as_deref() != Some(&named) {
                scope.put(named);
            }
        }
        of_session = known.filter(|it| it.carried).map(|it| it.observed.clone());
    }
    // A session that no model traffic named says nothing of what the agent has read: then all of it counts.
    let window = Span::minutes(i64::from(workspace.settings.provenance.window_minutes));
    let is_context = request.session.as_ref().is_some_and(|it| !stands_for_none(it));
    let observed = match of_session {
        Some(set) if is_context => set,
        set => {
            let mut all = set.unwrap_or_default();
            for source in activity.seen_within(window, now) {
                if !all.contains(source) {
                    all.push(source.clone());
                }
            }
            all
        }
    };
    let declared = match request.account {
        Account::Agent => request.provenance.clone(),
        Account::Gate => as_seen(&observed)?,
    };
    let (effective, verdict) = (effective(&declared, &observed), verdict(&declared, &observed));
    Ok((Origin { declared, observed, effective, verdict, account: request.account }, conflict))
}

/// Whether a session is what the gate itself puts where a client names none: the id of its connection or key.
fn stands_for_none(session: &SessionId) -> bool {
    ConnectionId::parse(session.as_str()).is_ok() || KeyId::parse(session.as_str()).is_ok()
}

/// The account of whoever has seen what there is to see.
fn as_seen(observed: &[Source]) -> Result<Vec<Declared>, Halt> {
    if observed.is_empty() {
        let source = Source::parse("agent").map_err(|_| Refusal::internal())?;
        return Ok(vec![Declared { source, detail: None }]);
    }
    Ok(observed.iter().map(|source| Declared { source: source.clone(), detail: None }).collect())
}
