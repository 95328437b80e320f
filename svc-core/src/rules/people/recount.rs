//! What a mandate's own actions add up to in a period that its limits did not speak of until now (CONTRACT part 2,
//! "Mandate"). Actions are found by a scan, so the agent's activity guards it: it is read before the scan, and every decision
//! and every settlement that could change the sum changes it. What becomes of an action that was counted is set right in
//! [`posting`](crate::rules::gate), as it holds nothing in this sum.

use super::mandates::{ChangeMandate, held};
use crate::refusal::Refusal;
use crate::rules::gate::freeze::own_agent;
use crate::state::gate::{Action, Activity, Mandate, State, Tally, Term, Terms};
use crate::state::people::Workspace;
use crate::store::{PAGE_MAX, Range};
use crate::turn::{Halt, Scope};
use crate::value::Id;
use crate::value::digest::Digest;
use crate::value::id::{AgentId, MandateId, ulid_bits};
use crate::value::link::Index;
use crate::value::period::Period;

/// Actions that one scan gives.
const SCANNED: usize = PAGE_MAX;

/// Sums of a mandate's own actions in the periods that its next version begins to speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    agent: AgentId,
    mandate: MandateId,
    activity: Digest,
    amount: Option<Sum>,
    count: Option<Sum>,
}

/// One period's sum.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sum {
    term: Term,
    reserved: i64,
    spent: i64,
    count: u32,
}

impl Sum {
    fn of(tally: &Tally) -> Self {
        Self { term: tally.term(), reserved: 0, spent: 0, count: 0 }
    }
}

/// What has to be counted before a change: `None` where no period changes.
///
/// # Errors
/// `not_found` where the agent never had such a mandate, `not_allowed` where it was revoked.
pub fn plan(scope: &mut Scope<'_>, asked: &ChangeMandate) -> Result<Option<Recount>, Halt> {
    let agent = own_agent(scope, asked.workspace, asked.agent)?;
    let (old, _) = held(scope, &agent, asked.mandate)?;
    let terms = asked.change.onto(old.terms());
    let (amount, count) = changed(old.terms(), &terms);
    if amount.is_none() && count.is_none() {
        return Ok(None);
    }
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let activity = scope.get::<Activity>(agent.id)?.ok_or_else(Refusal::internal)?;
    let (now, settings) = (scope.now(), &workspace.settings);
    let sum = |period: Period| Sum::of(&activity.tally(asked.mandate, period, now, settings));
    Ok(Some(Recount {
        agent: agent.id,
        mandate: asked.mandate,
        activity: digest(&activity)?,
        amount: amount.map(sum),
        count: count.map(sum),
    }))
}

impl Recount {
    /// The agent's actions that may count, the next part behind `after`.
    #[must_use]
    pub fn range(&self, after: Option<(u128, crate::store::Key)>) -> Range {
        let from = [&self.amount, &self.count].into_iter().flatten().map(|it| it.term.from).min();
        let from = ulid_bits(from.unwrap_or_default(), 0);
        Range { from, after, ..Range::all(Index::ActionsOf, self.agent.bits(), SCANNED) }
    }

    /// Adds an action of the agent; one of another mandate, or of a period before, adds nothing.
    pub fn add(&mut self, action: &Action) {
        if action.mandate.is_none_or(|it| it.mandate != self.mandate) || action.is_beyond() {
            return;
        }
        let (fills, open) = match &action.state {
            State::Denied { .. } | State::Expired { .. } => return,
            State::Pending { .. } => (None, true),
            State::Allowed(allowed) => (allowed.posted(), allowed.outcome.is_none() && allowed.lapsed.is_none()),
        };
        let asked = action.payment.as_ref().map_or(0, |it| it.amount);
        if let Some(sum) = self.amount.as_mut().filter(|it| action.created_at() >= it.term.from) {
            let held = action.reservation.as_ref().and_then(|it| it.amount);
            let is_here = held.is_some_and(|(_, term)| term == sum.term);
            let slot = if open && is_here { &mut sum.reserved } else { &mut sum.spent };
            *slot = slot.saturating_add(fills.unwrap_or(asked));
        }
        if let Some(sum) = self.count.as_mut().filter(|it| action.created_at() >= it.term.from) {
            sum.count = sum.count.saturating_add(1);
        }
    }
}

/// The periods that `new` speaks of and `old` does not: of amounts and of counts.
fn changed(old: &Terms, new: &Terms) -> (Option<Period>, Option<Period>) {
    let amount = |it: &Terms| it.limits().per_period.as_ref().map(|it| it.period);
    let count = |it: &Terms| it.limits().count.as_ref().map(|it| it.period);
    (amount(new).filter(|it| amount(old) != Some(*it)), count(new).filter(|it| count(old) != Some(*it)))
}

/// Puts what was counted into the mandate's sums; false where it was not, or the agent has moved since.
pub(super) fn settle(
    scope: &mut Scope<'_>,
    old: &Mandate,
    terms: &Terms,
    counted: Option<&Recount>,
) -> Result<bool, Halt> {
    let (amount, count) = changed(old.terms(), terms);
    if amount.is_none() && count.is_none() {
        return Ok(true);
    }
    let Some(counted) = counted.filter(|it| it.mandate == old.id.mandate) else { return Ok(false) };
    let agent = old.agent;
    let stored = scope.get::<Activity>(agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<crate::state::gate::Agent>(agent)?.ok_or_else(Refusal::internal)?.workspace;
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    if digest(&stored)? != counted.activity {
        return Ok(false);
    }
    let mut activity = Activity::clone(&stored);
    let (now, settings) = (scope.now(), &workspace.settings);
    for (period, sum, is_amount) in [(amount, &counted.amount, true), (count, &counted.count, false)] {
        let Some(period) = period else { continue };
        let mut tally = activity.tally(old.id.mandate, period, now, settings);
        let Some(sum) = sum.as_ref().filter(|it| it.term == tally.term()) else { return Ok(false) };
        let version = old.id.version.saturating_add(1);
        if is_amount {
            // What was let pass beyond the limit stands in no action's sum, so what is kept of it stays.
            (tally.reserved, tally.spent) = (sum.reserved, sum.spent);
            tally.summed_for = version;
        } else {
            (tally.count, tally.counted_for) = (sum.count, version);
        }
        activity.keep(tally, now);
    }
    scope.put(activity);
    Ok(true)
}

/// What the agent has seen is in no sum, and it may be reading all the while.
fn digest(activity: &Activity) -> Result<Digest, Halt> {
    let mut summed = activity.clone();
    summed.seen.clear();
    Ok(Digest::of(serde_json::to_vec(&summed).map_err(|_| Refusal::internal())?))
}
