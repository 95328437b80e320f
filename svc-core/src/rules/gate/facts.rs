//! Where an action came from: what it declares, what its session saw, and whose the session is.

use crate::refusal::Refusal;
use crate::state::gate::provenance::{effective, verdict};
use crate::state::gate::{Account, Activity, Agent, ClientSession, Declared, Origin, Request, StandIn};
use crate::state::people::Workspace;
use crate::turn::{Halt, Scope};
use crate::value::Span;
use crate::value::text::Source;

/// The action's origin, and whether its session belongs to another agent. Naming a session that belongs to nobody makes
/// it the caller's, in the commit of the decision. Observed is what the gateway saw enter the session's context, or,
/// where the action names no session that the gateway saw, the agent's in the last `provenance.windowMinutes`. Where a
/// session only stands for none, or is another's or was so last, both: it tells nothing of what the agent has read under other names, or
/// in it. A name that stands for none becomes nobody's but whose key or connection it is: keys' ids are no secrets, and who has none in its
/// calls could not give way.
pub(super) fn origin(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    agent: &Agent,
    activity: &Activity,
    request: &Request,
) -> Result<(Origin, bool), Halt> {
    let now = scope.now();
    let (mut conflict, mut is_anothers) = (false, false);
    let mut of_session: Option<Vec<Source>> = None;
    let stand_in = request.session.as_ref().and_then(StandIn::of);
    let may_claim = stand_in.is_none_or(|it| agent.keys.iter().any(|key| it.is_of(key.id, key.connection())));
    if let Some(session) = &request.session {
        let id = ClientSession::id_of(workspace.id, session);
        let known = scope.get::<ClientSession>(id)?;
        conflict = known.as_ref().and_then(|it| it.owner_at(now)).is_some_and(|it| it != activity.agent);
        if !conflict {
            let mut named = known.as_deref().cloned().unwrap_or_else(|| ClientSession::new(id, now));
            if may_claim {
                named.name_by(activity.agent, now);
            }
            if known.as_deref() != Some(&named) {
                scope.put(named);
            }
        }
        // What the agent read in it while it was another's was noted for the agent alone.
        is_anothers = known.as_ref().is_some_and(|it| it.owner.is_some_and(|it| it != activity.agent));
        of_session = known.filter(|it| it.carried).map(|it| it.observed.clone());
    }
    // A session that no model traffic named says nothing of what the agent has read: then all of it counts.
    let window = Span::minutes(i64::from(workspace.settings.provenance.window_minutes));
    let observed = match of_session {
        Some(set) if stand_in.is_none() && !is_anothers => set,
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

/// The account of whoever has seen what there is to see.
fn as_seen(observed: &[Source]) -> Result<Vec<Declared>, Halt> {
    if observed.is_empty() {
        let source = Source::parse("agent").map_err(|_| Refusal::internal())?;
        return Ok(vec![Declared { source, detail: None }]);
    }
    Ok(observed.iter().map(|source| Declared { source: source.clone(), detail: None }).collect())
}
