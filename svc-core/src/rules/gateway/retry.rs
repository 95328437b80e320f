//! A try has failed and the next model is tried: what the failed one may have used is posted, and the worst case of the
//! next is reserved in its place, in one commit.
//!
//! A try may last for minutes, so the next model is judged by what the workspace routes by then.

use std::sync::Arc;

use super::admit::{Place, cheapest, running, target};
use super::budgeting;
use super::finish::{Tried, missed};
use super::payer::{CallKey, may_call};
use super::refuse::with_record;
use crate::dialect;
use crate::refusal::{BudgetDetail, Refusal};
use crate::state::gateway::route::{self, Ask, Health, Yields};
use crate::state::gateway::{Admission, Call, Demand, Mode, Model, Routing, Step, Upstream, strictest};
use crate::state::people::{DataLoss, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::MicroUsd;
use crate::value::id::CallId;

/// The next model is tried.
#[derive(Clone, Debug)]
pub struct RetryCall {
    /// The key the call came with.
    pub caller: CallKey,
    /// The call.
    pub call: CallId,
    /// What the request is.
    pub demand: Arc<Demand>,
    /// Tries that failed and were not told of yet, in order.
    pub failed: Vec<Tried>,
    /// How many tries the call's row had when the first of those failed.
    pub told: usize,
    /// By what the call was routed.
    pub routing: Arc<Routing>,
    /// Where the next goes.
    pub to: Place,
    /// The models that satisfy policy, as its admission told them.
    pub rivals: Arc<[Place]>,
    /// How long it may take, in milliseconds, where its provider has no time of its own.
    pub total_ms: u64,
    /// The tokens that the next model makes in a second.
    pub pace: u64,
    /// Whether the call says that a person oversees it.
    pub oversight: bool,
    /// The setting that its request was looked through under.
    pub scanned_under: DataLoss,
}

/// What becomes of a call whose try has failed.
#[derive(Clone, Debug)]
pub enum Retry {
    /// It goes on to its next model; with its provider as that is now, where it has changed.
    Moved(Arc<Call>, Option<Box<Upstream>>),
    /// It goes not there, for this reason: what the workspace routes by has changed since the call was admitted. Nothing else
    /// changes.
    Barred(&'static str),
    /// It goes nowhere: a budget waits for a person, whatever the next model costs. What the refusal leaves is kept; the call
    /// itself is as it was.
    Refused(Refusal),
}

/// Moves a call to its next model.
///
/// # Errors
/// `agent_stopped` where the agent was stopped meanwhile, `budget_exhausted` where the next model does not fit a budget:
/// nothing changes then. `not_found` where the call runs no more.
pub fn retry_call(scope: &mut Scope<'_>, asked: &RetryCall) -> Result<Retry, Halt> {
    let mut keys = asked.caller.keys();
    keys.extend([Call::key(asked.call), Routing::key(asked.caller.binding.workspace)]);
    scope.want(&keys)?;
    may_call(scope, &asked.caller)?;
    let call = scope.get::<Call>(asked.call)?.filter(|it| it.is_running()).ok_or_else(Refusal::not_found)?;
    let to = asked.routing.models.get(asked.to.model).ok_or_else(Refusal::internal)?;
    let upstream = asked.routing.upstreams.get(asked.to.upstream).ok_or_else(Refusal::internal)?;
    let now = match provider_now(scope, asked, &call, (upstream, to))? {
        Ok(now) => now,
        Err(why) => return Ok(Retry::Barred(why)),
    };
    let upstream = now.as_deref().unwrap_or(upstream);
    let missed = missed(&call, &asked.failed, asked.told)?;
    let cost = missed.iter().fold(MicroUsd::ZERO, |sum, it| sum.plus(it.cost));
    let worst = asked.to.worst;
    let reserved = worst.unwrap_or_default();
    let admissions = budgeting::ask_again(scope, &call, cost, reserved)?;
    if let Some(refusing) = strictest(&admissions).filter(|it| it.refuses) {
        if refusing.step == Some(Step::Approval) {
            return ask_a_person(scope, asked, &call, &admissions);
        }
        let scope_of = refusing.scope.header(call.workspace);
        let detail = BudgetDetail { id: refusing.budget.to_string().into(), scope: scope_of.into(), owner: None };
        return Err(Refusal::budget_exhausted(detail, refusing.lack, refusing.retry_after_s(scope.now())).into());
    }
    budgeting::again(scope, &call, cost, reserved)?;
    let mut next = Call::clone(&call);
    next.cost = next.cost.plus(cost);
    next.usage = missed.iter().fold(next.usage, |sum, it| sum.plus(it.usage));
    next.attempts.extend(missed);
    next.target = Some(target(upstream, to));
    next.token_prices = to.prices.as_ref().map(|it| it.tokens);
    next.cheapest = cheapest_left(asked, &next);
    // A try that used nothing leaves nothing without a price.
    let elsewhere = asked.demand.is_priced_elsewhere_at(upstream.dialect);
    next.unpriced = elsewhere || worst.is_none() || next.attempts.iter().any(|it| it.unpriced);
    next.reserved = reserved;
    budgeting::mark(&mut next.budgets, &admissions);
    next.state = running(scope.now(), upstream, to, &asked.demand, (asked.total_ms, asked.pace));
    scope.put(next.clone());
    Ok(Retry::Moved(Arc::new(next), now))
}

/// The next provider as it is now, by its name of before, where it is not what the call was admitted with; or why the call may not go to it any more.
fn provider_now(
    scope: &mut Scope<'_>,
    asked: &RetryCall,
    call: &Call,
    (upstream, model): (&Upstream, &Model),
) -> Result<Result<Option<Box<Upstream>>, &'static str>, Halt> {
    let workspace = scope.get::<Workspace>(call.workspace)?.ok_or_else(Refusal::internal)?;
    if !is_looked_through(workspace.settings.data_loss, asked.scanned_under, call) {
        return Ok(Err("its request is not looked through as the workspace asks by now"));
    }
    let routing = scope.get::<Routing>(call.workspace)?.ok_or_else(Refusal::internal)?;
    if *routing == *asked.routing {
        return Ok(Ok(None));
    }
    let class = call.payer.class.as_ref().and_then(|id| routing.class(id));
    let profile = asked.caller.binding.profile.and_then(|id| routing.profile(id));
    let (health, yields) = (Health::default(), Yields::default());
    let ask = Ask {
        routing: &routing,
        demand: &asked.demand,
        input_tokens: None,
        model: None,
        class,
        profile,
        mode: call.mode,
        objective: None,
        oversight: asked.oversight,
        downgrade: false,
        takes: dialect::takes,
        health: &health,
        yields: &yields,
    };
    let Some(found) = route::judged(&ask, upstream.id, &model.name) else { return Ok(Err("it is gone")) };
    let has_policy = call.payer.class.is_none() || class.is_some();
    let is_served = match call.mode {
        Mode::Shadow => found.is_on(),
        Mode::Enforce => has_policy && found.qualifies(),
    };
    Ok(if !is_served {
        Err("it does not qualify any more")
    } else if found.upstream.dialect != upstream.dialect {
        Err("its provider speaks another shape by now")
    } else {
        let now = Upstream { name: upstream.name.clone(), ..found.upstream.clone() };
        Ok((now != *upstream).then(|| Box::new(now)))
    })
}

/// Whether a request that was looked through under one setting may go out under another.
fn is_looked_through(now: DataLoss, then: DataLoss, call: &Call) -> bool {
    let is_clean = then != DataLoss::Off && call.data_loss.is_empty();
    now == then || is_clean || matches!(now, DataLoss::Off | DataLoss::Flag)
}

/// The least that the call can cost at a model that does as well as the one it goes to: those that have failed it would not have
/// done.
fn cheapest_left(asked: &RetryCall, call: &Call) -> Option<MicroUsd> {
    let has_failed = |place: &Place| {
        let model = asked.routing.models.get(place.model);
        model.is_none_or(|model| {
            call.attempts.iter().any(|it| it.upstream == Some(model.upstream) && it.model == model.name)
        })
    };
    cheapest(asked.rivals.iter().filter(|it| !has_failed(it)), asked.to.multiplier)
}

/// A budget is at its allocation: the next model is refused as a call that begins is, with the same question to a person.
fn ask_a_person(
    scope: &mut Scope<'_>,
    asked: &RetryCall,
    call: &Call,
    admissions: &[Admission],
) -> Result<Retry, Halt> {
    let workspace = scope.get::<Workspace>(call.workspace)?.ok_or_else(Refusal::internal)?;
    let mut budgets = budgeting::held_on(scope, call)?;
    let asking = budgeting::Asking { workspace: &workspace, caller: &asked.caller, payer: &call.payer, dry: false };
    let refusal = budgeting::refusal(scope, &mut budgets, &asking, admissions)?.ok_or_else(Refusal::internal)?;
    Ok(Retry::Refused(with_record(scope, &asked.caller, refusal)?))
}

/// What a call may still be charged: nothing beyond what it holds.
pub(super) fn within(cost: MicroUsd, call: &Call) -> MicroUsd {
    cost.min(call.reserved)
}
