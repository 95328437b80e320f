//! The calls that wait for a person, so that the same call finds the action that was approved for it.
//!
//! They are in memory. What waited when the process began is found in the store, once for each agent, by what was asked: an approval
//! is for the same call after a restart as before it. So is what was let go of for want of room, which is all of one agent's: of the one
//! that comes, or of whoever has the most. What is over does not come back. Where other servers serve the same store, what an agent was asked about since the
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
use svc_store::Gate;

use crate::bounded::Bounded;
use crate::ops::{GateService, refusal};

/// Calls that are remembered.
const WAITING_MAX: usize = 10_000;
/// Of these, of one agent: more than may wait, as some are over that were not called again.
const OF_AGENT_MAX: usize = 2 * ASKED_MAX;
/// Actions that one call is remembered to wait for: calls that are the same and came at once are asked about each, and whichever
/// of them a person approves has to be found. As many as may wait.
const SAME_MAX: usize = ASKED_MAX;
/// For how long: longer than any approval waits.
const LIFE: Span = Span::hours(24 * 8);

/// Approvals of an agent that are taken in, the newest: as many as may wait, and more than are used in their receipts' time.
const ASKED_MAX: usize = 1_000;
/// Pages of that many that are looked at for them: those that are over stand between the others.
const PAGES_MAX: usize = 4;
/// Agents whose earlier calls are remembered; of others they are looked up again.
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
    calls: Mutex<HashMap<AgentId, Calls>>,
    earlier: Mutex<AllEarlier>,
}

/// What each of an agent's calls waits for, and since when.
type Calls = HashMap<Digest, (Vec<ActionId>, Timestamp)>;

/// By agent, what its calls waited for before this process began, or at another server, or was let go of, and was not called here since.
#[derive(Debug)]
struct AllEarlier {
    of: Bounded<(), AgentId, Earlier>,
    /// How often an agent's was let go of: what was looked for before is not all that there is.
    let_go: u64,
}

impl Default for AllEarlier {
    fn default() -> Self {
        Self { of: Bounded::new(AGENTS_MAX, AGENTS_MAX), let_go: 0 }
    }
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
    pub(super) async fn recall(
        &self,
        service: &GateService,
        call: &Digest,
        sought: &Sought<'_>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let (looked, let_go) = {
            let earlier = self.earlier();
            (earlier.of.peek(&sought.agent).map(|it| it.looked), earlier.let_go)
        };
        let found = match looked {
            Some(_) if !service.gate.is_shared() => None,
            Some(at) => Some(asked_before(&service.gate, sought.agent, Some(at.minus(OVERLAP)), now)?),
            None => {
                // For the first look thousands of rows may be read, so it does not happen on a thread that serves others.
                let (gate, agent) = (service.gate.clone(), sought.agent);
                let asked = crate::at_hand::spawn_blocking(move || asked_before(&gate, agent, None, now)).await;
                Some(asked.map_err(|_| Refusal::internal())??)
            }
        };
        let mut earlier = self.earlier();
        let same = match (found, earlier.of.get(&sought.agent)) {
            (Some(found), Some(of_agent)) => of_agent.take(found, now, sought),
            (Some(found), None) => {
                let mut of_agent = Earlier::default();
                let same = of_agent.take(found, now, sought);
                // What was let go of meanwhile is looked for by the next call.
                if looked.is_none() && earlier.let_go == let_go {
                    earlier.of.keep((), sought.agent, of_agent);
                }
                same
            }
            (None, Some(of_agent)) if !of_agent.actions.is_empty() => of_agent.same(sought),
            (None, _) => return Ok(()),
        };
        drop(earlier);
        same.iter().for_each(|it| self.put(sought.agent, *call, it.id, now));
        Ok(())
    }

    fn earlier(&self) -> MutexGuard<'_, AllEarlier> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<AgentId, Calls>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The actions that the call waits for, the oldest first. They stay: whoever finds one over forgets it.
    pub(super) fn of(&self, agent: AgentId, call: &Digest, now: Timestamp) -> Vec<ActionId> {
        let waiting = self.calls();
        let found = waiting.get(&agent).and_then(|it| it.get(call)).filter(|(_, since)| now.since(*since) < LIFE);
        found.map(|(actions, _)| actions.clone()).unwrap_or_default()
    }

    /// Remembers what the agent's call waits for.
    pub(super) fn put(&self, agent: AgentId, call: Digest, action: ActionId, now: Timestamp) {
        let mut waiting = self.calls();
        let full = full(&waiting, agent, &call);
        let let_go = full.and_then(|it| waiting.remove(&it));
        let (actions, since) = waiting.entry(agent).or_default().entry(call).or_insert_with(|| (Vec::new(), now));
        if !actions.contains(&action) {
            if actions.len() >= SAME_MAX {
                actions.remove(0);
            }
            actions.push(action);
            *since = now;
        }
        if let Some(full) = full {
            let mut earlier = self.earlier();
            earlier.of.remove(&full);
            earlier.let_go = earlier.let_go.wrapping_add(1);
        }
        drop(waiting);
        drop(let_go);
    }

    /// Forgets that the agent's call waits for this action, and nothing else that it waits for.
    pub(super) fn forget(&self, agent: AgentId, call: &Digest, action: ActionId) {
        let mut waiting = self.calls();
        let Some(own) = waiting.get_mut(&agent) else { return };
        let Some((actions, _)) = own.get_mut(call) else { return };
        actions.retain(|it| *it != action);
        if actions.is_empty() {
            own.remove(call);
        }
        if own.is_empty() {
            waiting.remove(&agent);
        }
    }
}

/// Whose calls are let go of for one more of this agent's, where somebody's are.
fn full(waiting: &HashMap<AgentId, Calls>, agent: AgentId, call: &Digest) -> Option<AgentId> {
    let own = waiting.get(&agent);
    if own.is_some_and(|it| it.contains_key(call)) {
        return None;
    }
    if own.is_some_and(|it| it.len() >= OF_AGENT_MAX) {
        return Some(agent);
    }
    if waiting.values().map(HashMap::len).sum::<usize>() < WAITING_MAX {
        return None;
    }
    waiting.iter().max_by_key(|(whose, calls)| (calls.len(), **whose == agent)).map(|(whose, _)| *whose)
}

/// The calls of an agent that a person was asked about and that are not over, the oldest first; where `since` is named, those asked
/// about from then on. Where other servers may have been asked, what was denied lately is among them.
fn asked_before(
    gate: &Gate,
    agent: AgentId,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Result<Vec<Arc<Action>>, Refusal> {
    let from = ulid_bits(since.unwrap_or_else(|| now.minus(LIFE)), 0);
    let mut range = Range { from, newest_first: true, ..Range::all(Index::AskedOf, agent.bits(), ASKED_MAX) };
    let is_shared = gate.is_shared();
    let may_go_on = |it: &&Arc<Approval>| match it.state {
        ApprovalState::Waiting => true,
        ApprovalState::Approved { at } => now.since(at) < RECEIPT_LIFE,
        ApprovalState::Denied { at, .. } => is_shared && now.since(at) < DENIED_LIFE,
        ApprovalState::Expired { .. } => false,
    };
    let mut ids: Vec<ActionId> = Vec::new();
    for _ in 0..PAGES_MAX {
        let asked = gate.scan(&range).map_err(refusal)?;
        let open = asked.iter().filter_map(|it| Approval::peel(it.row.record.as_ref()?)).filter(may_go_on);
        ids.extend(open.filter_map(|it| Some(it.asked_action()?.action)).take(ASKED_MAX.saturating_sub(ids.len())));
        if ids.len() >= ASKED_MAX || !range.turn_page(&asked) {
            break;
        }
    }
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let read = gate.read(|scope| {
        scope.want(&ids.iter().map(|it| Action::key(*it)).collect::<Vec<_>>())?;
        ids.iter().rev().map(|it| scope.get::<Action>(*it)).collect::<Result<Vec<_>, _>>()
    });
    let actions = read.map_err(refusal)?;
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

    fn call(number: usize) -> Digest {
        Digest::of(number.to_be_bytes())
    }

    fn agent(number: usize) -> AgentId {
        AgentId::from_bits(number as u128)
    }

    fn action(number: usize) -> ActionId {
        ActionId::from_bits(number as u128)
    }

    fn count(waiting: &Waiting) -> usize {
        waiting.calls().values().map(HashMap::len).sum()
    }

    /// What waits is found until it is over, for as long as it can wait, and not more of it is kept than there is room for.
    #[test]
    fn a_call_finds_what_it_waits_for() {
        let (waiting, now, own) = (Waiting::default(), Timestamp::from_millis(1_000), agent(1));
        waiting.put(own, call(1), action(1), now);
        waiting.put(own, call(1), action(2), now);
        assert_eq!(waiting.of(own, &call(2), now), []);
        assert_eq!(waiting.of(agent(2), &call(1), now), []);
        assert_eq!(waiting.of(own, &call(1), now), [action(1), action(2)], "of calls that came at once none is lost");
        waiting.forget(own, &call(1), action(1));
        waiting.forget(own, &call(1), action(1));
        assert_eq!(waiting.of(own, &call(1), now), [action(2)]);
        assert_eq!(waiting.of(own, &call(1), now.plus(LIFE)), []);
        waiting.forget(own, &call(1), action(2));
        assert!(waiting.calls().is_empty());
        for number in 0..=SAME_MAX {
            waiting.put(own, call(1), action(number), now);
        }
        assert_eq!(waiting.of(own, &call(1), now).len(), SAME_MAX);
    }

    /// However many calls others have waiting, what an agent's waits for is found here; of whose calls are let go of, they are looked
    /// for again in the store.
    #[test]
    fn what_waits_is_let_go_of_for_none_of_anothers() {
        let (waiting, now) = (Waiting::default(), Timestamp::from_millis(1_000));
        for number in 0..20 {
            waiting.earlier().of.keep((), agent(number), Earlier::default());
        }
        let is_looked_for = |number| waiting.earlier().of.peek(&agent(number)).is_none();
        waiting.put(agent(0), call(0), action(0), now);
        for number in 0..=OF_AGENT_MAX {
            assert!(!is_looked_for(1));
            waiting.put(agent(1), call(number), action(number), now);
        }
        assert!(is_looked_for(1) && !waiting.of(agent(1), &call(OF_AGENT_MAX), now).is_empty());
        for number in 0..3 * WAITING_MAX {
            waiting.put(agent(2 + number % 10), call(number), action(number), now);
            assert!(number % 1_000 != 0 || count(&waiting) <= WAITING_MAX);
        }
        assert_eq!(waiting.of(agent(0), &call(0), now), [action(0)]);
        assert!(!is_looked_for(0) && (2..12).any(is_looked_for));
        assert!((2..12).all(|it| is_looked_for(it) || waiting.calls().contains_key(&agent(it))));
    }
}
