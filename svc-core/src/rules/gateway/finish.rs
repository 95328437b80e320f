//! A call has come to its end: what it used is priced and posted, what it held is given back, in one commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admit::Place;
use super::budgeting;
use super::observe;
use super::retry::within;
use crate::refusal::Refusal;
use crate::state::gateway::{
    Attempt, Call, CallEnd, CallState, Demand, Fees, LastTry, Prices, Received, Routing, Service, Task, Usage, estimate,
};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::CallId;
use crate::value::{MicroUsd, Timestamp};

/// A call has ended.
#[derive(Clone, Debug)]
pub struct FinishCall {
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub end: CallEnd,
    /// Where it went last, and what came of that; `None` where nothing was sent.
    pub served: Option<Served>,
    /// Tries that failed and were not told of yet, in order.
    pub failed: Vec<Tried>,
    /// How many tries the call's row had when the first of those failed.
    pub told: usize,
    /// Until the first token, in milliseconds.
    pub first_token_ms: Option<u64>,
    /// From the request to the end of the answer, in milliseconds.
    pub duration_ms: u64,
    /// Of that, what the gate itself took.
    pub overhead_ms: u64,
}

/// A try that failed.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What is kept of it; what it is charged is worked out where it is kept.
    pub attempt: Attempt,
    /// What came of it, where it was sent and its provider has not said no: then it may have used something, and is charged
    /// what a call without its final usage is.
    pub used: Option<Served>,
}

/// What came of a try that ended a call, or that was sent and failed.
#[derive(Clone, Debug)]
pub struct Served {
    /// What the request is.
    pub demand: Arc<Demand>,
    /// By what the call was routed.
    pub routing: Arc<Routing>,
    /// Where it went.
    pub place: Place,
    /// What the provider says it used; `None` where it said nothing, or nothing believable.
    pub usage: Option<Usage>,
    /// The status of the provider's answer, where there was one.
    pub status: Option<u16>,
    /// What came back, for an estimate.
    pub received: Received,
    /// Uses of tools that the provider ran itself.
    pub tools: BTreeMap<Box<str>, u64>,
    /// Further tools that it ran, without a price of their own.
    pub brought: BTreeSet<Box<str>>,
    /// How its provider says that it has served.
    pub service: Service,
}

impl Served {
    /// The tools that the provider ran itself, by name.
    fn ran(&self) -> impl Iterator<Item = &str> {
        let began = self.usage.is_some() || self.received.tokens > 0;
        let untold = self.demand.untold_tools().filter(move |_| began);
        untold.chain(self.tools.keys().chain(&self.brought).map(|it| &**it))
    }

    /// The uses of such tools that are charged: what the request enabled and the answer has results of was used once at the least.
    fn uses(&self) -> BTreeMap<Box<str>, u64> {
        let mut uses = self.tools.clone();
        for name in self.brought.iter().filter(|it| self.demand.server_tools.contains_key(*it)) {
            uses.entry(name.clone()).or_insert(1);
        }
        uses
    }
}

/// A call whose end is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// As it has ended.
    pub call: Arc<Call>,
    /// As it had lapsed before, where it had: what that has charged is part of what the call came to, and was told of already.
    pub lapsed: Option<Arc<Call>>,
}

/// Posts a call's end: what its last try used, what tries that failed and were not told of yet may have used, and what those
/// before were charged. One that has lapsed meanwhile is corrected to what it really came to. What tools of the provider's brought in
/// is noted for the call's session.
///
/// # Errors
/// `not_found` where there is no such call. A call that was ended before is left as it is.
pub fn finish_call(scope: &mut Scope<'_>, asked: &FinishCall) -> Result<Finished, Halt> {
    let call = scope.get::<Call>(asked.call)?.ok_or_else(Refusal::not_found)?;
    let charged = match &call.state {
        CallState::Running { .. } => None,
        CallState::Ended { end: CallEnd::Lapsed, .. } => Some(call.cost),
        CallState::Ended { .. } => return Ok(Finished { call, lapsed: None }),
    };
    let task_key = Task::key_of(call.workspace, &call.task);
    scope.want(&[Task::key(task_key)])?;
    if let Some(served) = &asked.served {
        observe::note_used(scope, &call, served.ran(), &served.routing)?;
    }
    let missed = missed(&call, &asked.failed, asked.told)?;
    let last = asked.served.as_ref().map(|it| charge_of(it, &call)).transpose()?.unwrap_or_default();
    let estimated = last.usage.estimated;
    let new = missed.iter().fold(last, |sum, it| sum.plus(Charge::of(it)));
    let ended = CallState::Ended {
        end: asked.end,
        first_token_ms: asked.first_token_ms,
        duration_ms: asked.duration_ms,
        overhead_ms: asked.overhead_ms,
        last: asked.served.as_ref().map(|it| LastTry { status: it.status, ms: it.received.elapsed_ms }),
    };
    let mut next = Call::clone(&call);
    next.unpriced = new.unpriced || call.attempts.iter().any(|it| it.unpriced);
    next.attempts.extend(missed);
    next.state = ended;
    let demand = asked.served.as_ref().map(|it| &*it.demand);
    if let Some(charged) = charged {
        // What the lapse has charged is in the sums already; only what it missed is posted.
        let whole = call.attempts.iter().fold(new, |sum, it| sum.plus(Charge::of(it)));
        next.usage = whole.usage;
        next.cost = whole.cost;
        let more = whole.cost.less(charged);
        budgeting::post(scope, &call, more)?;
        add_to_task(scope, &next, more, asked.end)?;
        super::rollup::correct(scope, &call, &next, more, demand, estimated)?;
    } else {
        next.usage = call.usage.plus(new.usage);
        next.cost = call.cost.plus(new.cost);
        budgeting::settle(scope, &call, new.cost)?;
        add_to_task(scope, &next, next.cost, asked.end)?;
        super::rollup::add(scope, &mut next, demand, estimated)?;
    }
    scope.put(next.clone());
    Ok(Finished { call: Arc::new(next), lapsed: charged.map(|_| call) })
}

/// Charges a call that nobody ended its estimate, and gives it as it has lapsed; `None` where it has not.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn lapse_call(scope: &mut Scope<'_>, id: CallId) -> Result<Option<Arc<Call>>, Halt> {
    let Some(call) = scope.get::<Call>(id)? else { return Ok(None) };
    let CallState::Running { lapses_at, estimate, prices, fees } = &call.state else { return Ok(None) };
    if scope.now() < *lapses_at {
        return Ok(None);
    }
    scope.want(&[Task::key(Task::key_of(call.workspace, &call.task))])?;
    let (cost, unpriced) = known_cost(prices.as_deref(), estimate, fees);
    // Nothing was reserved for a call of which something has no price, so nothing bounds what the rest of it comes to.
    let is_bound = !call.unpriced || call.reserved > MicroUsd::ZERO;
    let cost = if is_bound { within(cost, &call) } else { cost };
    let duration = lapses_at.since(call.started_at).as_millis();
    let mut next = Call::clone(&call);
    next.usage = call.usage.plus(*estimate);
    next.cost = call.cost.plus(cost);
    next.unpriced |= unpriced;
    next.state = CallState::Ended {
        end: CallEnd::Lapsed,
        first_token_ms: None,
        duration_ms: u64::try_from(duration).unwrap_or(0),
        overhead_ms: 0,
        last: None,
    };
    budgeting::settle(scope, &call, cost)?;
    add_to_task(scope, &next, next.cost, CallEnd::Lapsed)?;
    super::rollup::add(scope, &mut next, None, true)?;
    tell_lapse(scope, &next, *lapses_at);
    scope.put(next.clone());
    Ok(Some(Arc::new(next)))
}

/// What a try is charged.
#[derive(Clone, Copy, Default)]
struct Charge {
    usage: Usage,
    cost: MicroUsd,
    unpriced: bool,
}

impl Charge {
    /// Of a try that a row has.
    const fn of(attempt: &Attempt) -> Self {
        Self { usage: attempt.usage, cost: attempt.cost, unpriced: attempt.unpriced }
    }

    /// Both together.
    const fn plus(self, other: Self) -> Self {
        Self {
            usage: self.usage.plus(other.usage),
            cost: self.cost.plus(other.cost),
            unpriced: self.unpriced || other.unpriced,
        }
    }
}

/// What a try that was sent is charged: what its provider says that it used, else an estimate, at most what the call holds.
/// Where something of it has no price nothing was reserved; what has one is charged all the same.
fn charge_of(served: &Served, call: &Call) -> Result<Charge, Refusal> {
    let model = served.routing.models.get(served.place.model).ok_or_else(Refusal::internal)?;
    let usage = served.usage.unwrap_or_else(|| estimate(model, &served.demand, &served.received));
    let upstream = served.routing.upstreams.get(served.place.upstream).ok_or_else(Refusal::internal)?;
    let fees = Fees::served(&served.demand, upstream.dialect, &served.service, served.uses());
    let (cost, unpriced) = known_cost(model.prices.as_ref(), &usage, &fees);
    let is_bound = served.usage.is_none() && served.place.worst.is_some();
    let cost = if is_bound { within(cost, call) } else { cost };
    let elsewhere = served.demand.is_priced_elsewhere_at(upstream.dialect);
    Ok(Charge { usage, cost, unpriced: unpriced || elsewhere || served.place.worst.is_none() })
}

/// The tries that a call's row has not yet, each with what it is charged. `told` is how many it had when the first of them
/// failed: where it has more, a commit whose answer nobody heard has put them there, and nothing is charged twice.
///
/// # Errors
/// `internal` where one went to no model of its routing.
pub(super) fn missed(call: &Call, failed: &[Tried], told: usize) -> Result<Vec<Attempt>, Refusal> {
    let there = call.attempts.len().saturating_sub(told);
    let missed = failed.iter().skip(there).map(|tried| {
        let charge = tried.used.as_ref().map(|it| charge_of(it, call)).transpose()?.unwrap_or_default();
        let Charge { usage, cost, unpriced } = charge;
        Ok(Attempt { cost, usage, unpriced, ..tried.attempt.clone() })
    });
    missed.collect()
}

/// What of a call's use has a price, and whether something of it has none: that is told, never taken for free.
fn known_cost(prices: Option<&Prices>, usage: &Usage, fees: &Fees) -> (MicroUsd, bool) {
    let Some(prices) = prices else { return (MicroUsd::ZERO, true) };
    let (cost, missing) = prices.known_cost(usage, fees);
    (cost, missing.is_some())
}

fn add_to_task(scope: &mut Scope<'_>, call: &Call, cost: MicroUsd, end: CallEnd) -> Result<(), Halt> {
    let Some(task) = scope.get::<Task>(Task::key_of(call.workspace, &call.task))? else { return Ok(()) };
    let mut task = Task::clone(&task);
    task.spent = task.spent.plus(cost);
    if let (CallEnd::Done, Some(target)) = (end, &call.target) {
        task.upstream = Some(target.upstream);
        task.model = Some(format!("{}/{}", target.provider, target.model).into());
    }
    scope.put(task);
    Ok(())
}

/// A reservation that nobody reported on is charged and told of.
fn tell_lapse(scope: &mut Scope<'_>, call: &Call, at: Timestamp) {
    use crate::state::evidence::{Actor, Fact, Subject};
    use crate::value::canonical::Object;
    let data = Object::new()
        .text("callId", &call.id.to_string())
        .text("at", &at.to_string())
        .int("costMicros", i64::try_from(call.cost.get()).unwrap_or(i64::MAX))
        .int("reservedMicros", i64::try_from(call.reserved.get()).unwrap_or(i64::MAX))
        .finish();
    let subject = Subject::Key(call.payer.key);
    scope.append(call.workspace, Fact { kind: "budget.lapsed", actor: Actor::Timer, subject, data });
}
