//! The calls that wait for a person, so that the same call finds the action that was approved for it.
//!
//! They are in memory. What waited when the process began is found in the store, once for each agent, by what was asked: an approval
//! is for the same call after a restart as before it. Where other servers serve the same store, what an agent was asked about since the
//! last look is looked for at each of its calls: whichever server a call comes to finds what another was told.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_core::refusal::Refusal;
use svc_core::state::gate::{Action, ActionKind, Approval, ApprovalState, Request, State, salt_text};
use svc_core::store::{Range, Row as _};
use svc_core::value::digest::Digest;
use svc_core::value::id::{ActionId, AgentId, McpServerId, ulid_bits};
use svc_core::value::link::Index;
use svc_core::value::text::SessionId;
use svc_core::value::{Id as _, Span, Timestamp};

use crate::ops::GateService;

/// Calls that are remembered; the oldest half is let go when there are more.
const WAITING_MAX: usize = 10_000;
/// Actions that one call is remembered to wait for: calls that are the same and came at once are asked about each, and whichever
/// of them a person approves has to be found. As many as may wait.
const SAME_MAX: usize = ASKED_MAX;
/// For how long: longer than any approval waits.
const LIFE: Span = Span::hours(24 * 8);

/// Approvals of an agent that are looked at, the newest: as many as may wait, and more than are used in their receipts' time.
const ASKED_MAX: usize = 1_000;
/// Agents whose earlier calls are remembered; beyond, all are looked up again.
const AGENTS_MAX: usize = 10_000;
/// How far back each further look goes behind the one before: servers' clocks differ, and an approval is committed a while after the
/// instant in its id.
const OVERLAP: Span = Span::minutes(1);
/// For how long a denial that another server may have told of is told here too, once.
const DENIED_LIFE: Span = Span::hours(1);
/// The longest that a receipt is good.
const RECEIPT_LIFE: Span = Span::hours(24);

/// The calls that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    calls: Mutex<HashMap<Digest, (Vec<ActionId>, Timestamp)>>,
    /// By agent, what its calls waited for before this process began, or at another server, and was not called here since.
    earlier: Mutex<HashMap<AgentId, Earlier>>,
}

/// What an agent's calls waited for elsewhere.
#[derive(Debug, Default)]
struct Earlier {
    actions: Vec<Arc<Action>>,
    /// When it was looked for last.
    looked: Timestamp,
    /// Of what was found then, all that the next look finds again.
    seen: BTreeSet<ActionId>,
}

impl Earlier {
    /// Takes in what a look at `now` found, and gives what is the same call.
    fn take(&mut self, found: Vec<Arc<Action>>, now: Timestamp, sought: &Sought<'_>) -> Vec<Arc<Action>> {
        let again = now.minus(OVERLAP);
        let seen = found.iter().map(|it| it.id).filter(|it| it.time() >= again).collect();
        let known = std::mem::replace(&mut self.seen, seen);
        self.looked = now;
        self.actions.extend(found.into_iter().filter(|it| !known.contains(&it.id)));
        let same = self.same(sought);
        if let Some(over) = self.actions.len().checked_sub(ASKED_MAX) {
            self.actions.drain(..over);
        }
        same
    }

    /// Gives what is the same call, and keeps the others.
    fn same(&mut self, sought: &Sought<'_>) -> Vec<Arc<Action>> {
        let (same, others) = std::mem::take(&mut self.actions).into_iter().partition(|it| sought.is_asked_by(it));
        self.actions = others;
        same
    }
}

/// A call as it is looked for among those of before.
pub(super) struct Sought<'a> {
    pub(super) agent: AgentId,
    pub(super) session: &'a SessionId,
    pub(super) server: McpServerId,
    /// What the gate would be asked.
    pub(super) request: &'a Request,
}

impl Sought<'_> {
    /// Whether this is what was asked. A server that was put in the place of one of the same name is another.
    fn is_asked_by(&self, action: &Action) -> bool {
        action.session.as_ref() == Some(self.session)
            && action.id.time() >= self.server.time()
            && self.request.digest(self.agent, &salt_text(&action.salt)) == action.digest
    }
}

impl Waiting {
    /// Remembers what the same call waited for before this process began, or waits for at another server.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn recall(
        &self,
        service: &GateService,
        call: &Digest,
        sought: &Sought<'_>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let looked = self.earlier().get(&sought.agent).map(|it| it.looked);
        let found = match looked {
            Some(_) if !service.gate.is_shared() => None,
            looked => Some(asked_before(service, sought.agent, looked.map(|it| it.minus(OVERLAP)), now)?),
        };
        let mut earlier = self.earlier();
        if earlier.len() >= AGENTS_MAX && !earlier.contains_key(&sought.agent) {
            earlier.clear();
        }
        let of_agent = earlier.entry(sought.agent).or_default();
        let same = match found {
            Some(found) => of_agent.take(found, now, sought),
            None if of_agent.actions.is_empty() => return Ok(()),
            None => of_agent.same(sought),
        };
        drop(earlier);
        same.iter().for_each(|it| self.put(*call, it.id, now));
        Ok(())
    }

    fn earlier(&self) -> MutexGuard<'_, HashMap<AgentId, Earlier>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The actions that the call waits for, the oldest first. They stay: whoever finds one over forgets it.
    pub(super) fn of(&self, call: &Digest, now: Timestamp) -> Vec<ActionId> {
        let waiting = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let found = waiting.get(call).filter(|(_, since)| now.since(*since) < LIFE);
        found.map(|(actions, _)| actions.clone()).unwrap_or_default()
    }

    /// Remembers what the call waits for.
    pub(super) fn put(&self, call: Digest, action: ActionId, now: Timestamp) {
        let mut waiting = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING_MAX && !waiting.contains_key(&call) {
            let mut times: Vec<Timestamp> = waiting.values().map(|(_, since)| *since).collect();
            times.sort_unstable();
            let middle = times.get(times.len() / 2).copied().unwrap_or(now);
            waiting.retain(|_, (_, since)| *since > middle);
        }
        let (actions, since) = waiting.entry(call).or_insert_with(|| (Vec::new(), now));
        if actions.contains(&action) {
            return;
        }
        if actions.len() >= SAME_MAX {
            actions.remove(0);
        }
        actions.push(action);
        *since = now;
    }

    /// Forgets that the call waits for this action, and nothing else that it waits for.
    pub(super) fn forget(&self, call: &Digest, action: ActionId) {
        let mut waiting = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((actions, _)) = waiting.get_mut(call) else { return };
        actions.retain(|it| *it != action);
        if actions.is_empty() {
            waiting.remove(call);
        }
    }
}

/// The calls of an agent that a person was asked about and that are not over, the oldest first; where `since` is named, those asked
/// about from then on. Where other servers may have been asked, what was denied lately is among them.
fn asked_before(
    service: &GateService,
    agent: AgentId,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Result<Vec<Arc<Action>>, Refusal> {
    let from = since.map_or(0, |it| ulid_bits(it, 0));
    let range = Range { from, newest_first: true, ..Range::all(Index::AskedOf, agent.bits(), ASKED_MAX) };
    let asked = service.scan(&range)?;
    let is_shared = service.gate.is_shared();
    let open = asked.iter().filter_map(|it| Approval::peel(it.row.record.as_ref()?)).filter(|it| match it.state {
        ApprovalState::Waiting => true,
        ApprovalState::Approved { at } => now.since(at) < RECEIPT_LIFE,
        ApprovalState::Denied { at, .. } => is_shared && now.since(at) < DENIED_LIFE,
        ApprovalState::Expired { .. } => false,
    });
    let ids: Vec<ActionId> = open.filter_map(|it| Some(it.asked_action()?.action)).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let actions = service.read(|scope| {
        scope.want(&ids.iter().map(|it| Action::key(*it)).collect::<Vec<_>>())?;
        ids.iter().rev().map(|it| scope.get::<Action>(*it)).collect::<Result<Vec<_>, _>>()
    })?;
    let is_open = |it: &Arc<Action>| {
        it.kind == ActionKind::MCP_CALL
            && matches!(
                (&it.state, is_shared),
                (State::Pending { .. } | State::Allowed(_), _) | (State::Denied { .. }, true)
            )
    };
    Ok(actions.into_iter().flatten().filter(is_open).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::value::Id as _;

    use super::*;

    /// What waits is found until it is over, for as long as it can wait, and not more of it is kept than there is room
    /// for.
    #[test]
    fn a_call_finds_what_it_waits_for() {
        let (waiting, now) = (Waiting::default(), Timestamp::from_millis(1_000));
        let call = |number: u128| Digest::of(number.to_be_bytes());
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        waiting.put(call(1), one, now);
        waiting.put(call(1), two, now);
        assert_eq!(waiting.of(&call(2), now), []);
        assert_eq!(waiting.of(&call(1), now), [one, two], "of calls that came at once none is lost");
        waiting.forget(&call(1), one);
        waiting.forget(&call(1), one);
        assert_eq!(waiting.of(&call(1), now), [two]);
        assert_eq!(waiting.of(&call(1), now.plus(LIFE)), []);
        waiting.forget(&call(1), two);
        assert!(waiting.calls.lock().unwrap().is_empty());
        for number in 0..=SAME_MAX {
            waiting.put(call(1), ActionId::from_bits(number as u128), now);
        }
        assert_eq!(waiting.of(&call(1), now).len(), SAME_MAX);
        for number in 0..=WAITING_MAX {
            let at = now.plus(Span::millis(i64::try_from(number).unwrap()));
            waiting.put(call(number as u128), ActionId::from_bits(number as u128), at);
        }
        assert!(waiting.calls.lock().unwrap().len() <= WAITING_MAX);
        assert!(!waiting.of(&call(WAITING_MAX as u128), now).is_empty());
    }
}
