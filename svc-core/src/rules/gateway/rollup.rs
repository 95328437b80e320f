//! What ended calls and reported tasks add to the day's sums, in the commit that ends or reports them.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::gateway::route;
use crate::state::gateway::{
    Call, CallEnd, CallFacts, CallState, Cell, CellAt, Credit, Demand, Payer, Task, TaskOutcome, TokenPrices, Usage,
    WasteKind, Yields,
};
use crate::state::people::Workspace;
use crate::turn::{Halt, Scope};
use crate::value::id::UpstreamId;
use crate::value::{MicroUsd, Timestamp};

/// Below so many tokens of input a provider keeps nothing in its cache.
const CACHED_MIN: u64 = 1_024;

/// What is known of a call beside its row.
#[derive(Clone, Copy)]
struct Beside {
    /// Whether what its last try used is an estimate.
    estimated: bool,
    /// What it is charged beyond what it came to, because its lapse was.
    left_over: MicroUsd,
    /// Whether the same was answered before.
    repeated: bool,
    /// Whether it is the first of its task.
    first: bool,
}

/// Adds a call that has ended to its day, and notes in it whether it is the first of its task. `estimated` is whether what its last
/// try used is an estimate.
///
/// # Errors
/// [`Halt::Load`], or `internal` where the workspace is not there.
pub(super) fn add(
    scope: &mut Scope<'_>,
    call: &mut Call,
    demand: Option<&Demand>,
    estimated: bool,
) -> Result<(), Halt> {
    if matches!(call.state, CallState::Ended { end: CallEnd::Refused, .. }) && call.cost == MicroUsd::ZERO {
        return Ok(());
    }
    add_attempts(scope, call, 0)?;
    let mut cell = cell_of(scope, call)?;
    let task = scope.get::<Task>(Task::key_of(call.workspace, &call.task))?;
    let repeated = demand.is_some_and(|it| cell.repeats(&it.digest, is_whole(call)));
    // Not by how many calls the task has: others of them may run, and one that was refused counts nowhere.
    let first = task.as_ref().is_none_or(|it| it.uncounted);
    call.follows = !first;
    let beside = Beside { estimated, left_over: MicroUsd::ZERO, repeated, first };
    cell.add_call(&facts(call, beside));
    scope.put(cell);
    if let Some(task) = task.filter(|it| it.uncounted) {
        scope.put(Task { uncounted: false, ..Task::clone(&task) });
    }
    Ok(())
}

/// Corrects the sums of a day in which a call was counted as `lapsed`, and which ended after all: it stays one call. `more` is
/// what it is charged beyond what its lapse was; what that was charged too much stays in the sums, as it does in budgets, and is an
/// estimate there.
///
/// # Errors
/// As [`add`].
pub(super) fn correct(
    scope: &mut Scope<'_>,
    lapsed: &Call,
    call: &Call,
    more: MicroUsd,
    demand: Option<&Demand>,
    estimated: bool,
) -> Result<(), Halt> {
    // Those that the lapsed call had are counted already.
    add_attempts(scope, call, lapsed.attempts.len())?;
    let mut cell = cell_of(scope, lapsed)?;
    let repeated = demand.is_some_and(|it| cell.repeats(&it.digest, is_whole(call)));
    // As it was counted: others of its task may have come since.
    let first = !lapsed.follows;
    let charged = Call { cost: lapsed.cost.plus(more), ..call.clone() };
    let before = Beside { estimated: true, left_over: MicroUsd::ZERO, repeated: false, first };
    let beside = Beside { estimated, left_over: charged.cost.less(call.cost), repeated, first };
    cell.correct_call(&facts(lapsed, before), &facts(&charged, beside));
    scope.put(cell);
    Ok(())
}

/// Adds what failed attempts of a call are charged, the first `known` left out, to the sums of the models that they went to: each
/// provider bills its own.
fn add_attempts(scope: &mut Scope<'_>, call: &Call, known: usize) -> Result<(), Halt> {
    let unpriced = call.unpriced_try();
    for (at, attempt) in call.attempts.iter().enumerate().skip(known) {
        let is_unpriced = unpriced == Some(at);
        if !attempt.is_charged() && !is_unpriced {
            continue;
        }
        let model = format!("{}/{}", attempt.provider, attempt.model);
        // In a row of an older release a name alone tells which provider it was.
        let same = call.target.as_ref().filter(|it| it.provider == attempt.provider);
        let upstream = attempt.upstream.or_else(|| same.map(|it| it.upstream));
        let mut cell = cell_at(scope, call, Some(&model), upstream)?;
        cell.add_attempt(attempt.usage, attempt.cost, is_unpriced);
        scope.put(cell);
    }
    Ok(())
}

/// The sums of the day, key, principal, model and class of a call.
fn cell_of(scope: &mut Scope<'_>, call: &Call) -> Result<Cell, Halt> {
    let model = call.target.as_ref().map(|it| format!("{}/{}", it.provider, it.model));
    cell_at(scope, call, model.as_deref(), call.target.as_ref().map(|it| it.upstream))
}

/// The same of another model.
fn cell_at(
    scope: &mut Scope<'_>,
    call: &Call,
    model: Option<&str>,
    upstream: Option<UpstreamId>,
) -> Result<Cell, Halt> {
    let workspace = scope.get::<Workspace>(call.workspace)?.ok_or_else(Refusal::internal)?;
    let at = CellAt {
        upstream,
        ..CellAt::new(call.workspace, call.started_at, &workspace.settings.timezone, &call.payer, model)
    };
    found(scope, &at)
}

/// The sums of a place, those of another provider apart that bore the same name on the same day.
fn found(scope: &mut Scope<'_>, at: &CellAt<'_>) -> Result<Cell, Halt> {
    let Some(known) = scope.get::<Cell>(at.id())? else { return Ok(at.empty()) };
    if known.upstream == at.upstream || known.upstream.is_none() || at.upstream.is_none() {
        return Ok(Cell::clone(&known));
    }
    let beside = scope.get::<Cell>(at.id_beside())?;
    Ok(beside.map_or_else(|| Cell { id: at.id_beside(), ..at.empty() }, |it| Cell::clone(&it)))
}

/// What a call that has ended adds to its day.
fn facts(call: &Call, beside: Beside) -> CallFacts {
    let cost = call.own_cost();
    CallFacts {
        call: call.id,
        usage: Usage { estimated: beside.estimated, ..call.own_usage() },
        cost,
        estimated: if beside.estimated { cost } else { beside.left_over.min(cost) },
        whole: call.cost,
        unpriced: call.unpriced && call.unpriced_try().is_none(),
        opens_task: beside.first,
        waste: waste(call, beside),
    }
}

/// Whether a call had its whole answer: one that broke off is asked again, as SDKs do, because there is none to keep.
const fn is_whole(call: &Call) -> bool {
    matches!(call.state, CallState::Ended { end: CallEnd::Done, .. })
}

/// How a call wasted money, and what of its cost could have been saved. What tries before its last were charged is saved by their
/// not failing alone.
fn waste(call: &Call, beside: Beside) -> Vec<(WasteKind, MicroUsd)> {
    let mut found = Vec::new();
    let (usage, cost) = (call.own_usage(), call.own_cost());
    let failed = call.cost.less(cost);
    if failed > MicroUsd::ZERO {
        found.push((WasteKind::Retry, failed));
    }
    if beside.repeated {
        found.push((WasteKind::Repeat, call.cost));
    }
    if let Some(cheapest) = call.cheapest.filter(|it| *it < call.reserved) {
        // As much less as the worst cases differ.
        let share = u128::from(cost.get()).saturating_mul(u128::from(cheapest.get()));
        let there = share.checked_div(u128::from(call.reserved.get())).unwrap_or(0);
        let saved = cost.less(MicroUsd::new(u64::try_from(there).unwrap_or(u64::MAX)));
        if saved > MicroUsd::ZERO {
            found.push((WasteKind::Oversized, saved));
        }
    }
    // What is written to a cache once more was not read from it either.
    let uncached = usage.input.saturating_add(usage.cache_write).saturating_add(usage.cache_write_long);
    let missed = !beside.first && usage.cached_input == 0 && uncached >= CACHED_MIN;
    if let Some(prices) = call.token_prices.filter(|_| missed && !beside.estimated) {
        // Another tier of service, or what a lapse was charged, may leave less than that.
        let saved = cached_saving(&prices, &usage).min(cost);
        if saved > MicroUsd::ZERO {
            found.push((WasteKind::CacheMiss, saved));
        }
    }
    found
}

/// What the input of a call would have cost less from a cache.
fn cached_saving(prices: &TokenPrices, usage: &Usage) -> MicroUsd {
    let paid = [
        (usage.input, prices.input),
        (usage.cache_write, prices.cache_write()),
        (usage.cache_write_long, prices.cache_write_long()),
    ];
    let less = paid
        .map(|(tokens, price)| u128::from(price.less(prices.cached_input()).get()).saturating_mul(u128::from(tokens)));
    let micros = less.into_iter().fold(0, u128::saturating_add) / 1_000_000;
    MicroUsd::new(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// Adds a task's outcome to the sums of the day the task was opened on and to what its model has yielded of late, and takes
/// the one before back from where that was counted: the task may have gone to another model meanwhile. The task with it.
///
/// # Errors
/// [`Halt::Load`], or `internal` where the workspace is not there.
pub(super) fn report(scope: &mut Scope<'_>, task: &Task, outcome: TaskOutcome) -> Result<Task, Halt> {
    let workspace = scope.get::<Workspace>(task.workspace)?.ok_or_else(Refusal::internal)?;
    let zone = &workspace.settings.timezone;
    let credit = |at: Timestamp| Credit {
        model: task.model.clone(),
        upstream: task.upstream,
        spent: task.spent,
        // The day the task was opened on: the sums of a day then say what became of that day's tasks.
        day: zone.day(task.created_at),
        reported_on: zone.day(at),
    };
    let before = task.outcome.map(|it| (it.status, task.credit.clone().unwrap_or_else(|| credit(it.at))));
    let next = (outcome.status, credit(outcome.at));
    let yields = scope.get::<Yields>(task.workspace)?;
    let mut yields = yields.map_or_else(|| Yields::new(task.workspace), |it| Yields::clone(&it));
    if let Some((status, credit)) = &before {
        let mut cell = credited(scope, task, credit)?;
        cell.take_outcome(*status, credit.spent);
        scope.put(cell);
        if let Some(model) = credit.model.as_deref() {
            yields.take(task.class.as_ref(), model, credit.reported_on, *status);
        }
    }
    let (status, credit) = next;
    let mut cell = credited(scope, task, &credit)?;
    cell.add_outcome(status, credit.spent);
    scope.put(cell);
    if let Some(model) = credit.model.as_deref() {
        yields.add(task.class.as_ref(), model, credit.reported_on, status);
    }
    if before.is_some() || credit.model.is_some() {
        scope.put(yields);
    }
    Ok(Task { outcome: Some(outcome), credit: Some(credit), ..task.clone() })
}

/// The sums in which an outcome of a task is counted.
fn credited(scope: &mut Scope<'_>, task: &Task, credit: &Credit) -> Result<Cell, Halt> {
    let payer = Payer {
        key: task.opened_by,
        agent: task.agent,
        principal: task.principal,
        team: task.team,
        class: task.class.clone(),
    };
    let (workspace, day, upstream) = (task.workspace, credit.day, credit.upstream);
    let at = CellAt { workspace, day, payer: &payer, model: credit.model.as_deref(), upstream };
    found(scope, &at)
}

/// What models have yielded of late, as choosing among them reads it.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn yields(scope: &mut Scope<'_>, workspace: &Workspace) -> Result<route::Yields, Halt> {
    // Every workspace has one from the start.
    let row: Arc<Yields> = scope.get::<Yields>(workspace.id)?.ok_or_else(Refusal::internal)?;
    let today = workspace.settings.timezone.day(scope.now());
    let mut yields = route::Yields::default();
    for line in &row.lines {
        let Some(class) = &line.class else { continue };
        let (provider, model) = line.model.split_once('/').unwrap_or(("", &line.model));
        let sums = line.of(today);
        yields.add(class, provider, model, sums.accepted, sums.reported);
    }
    Ok(yields)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use super::*;
    use crate::store::Row as _;
    use crate::testing::sample;
    use crate::testing::world::World;

    /// What is written to a cache again and again, as a prefix that changes is, was paid in full and read from none.
    #[test]
    fn a_prefix_that_is_written_again_was_missed() {
        let call = sample::rows().iter().find_map(|it| Call::peel(it).cloned()).unwrap();
        let prices =
            r#"{"input":3000000,"cachedInput":300000,"cacheWrite":3750000,"cacheWriteLong":6000000,"output":15000000}"#;
        let token_prices: Option<TokenPrices> = Some(serde_json::from_str(prices).unwrap());
        let of = |usage: Usage| {
            let cost = MicroUsd::new(1_000_000);
            let call = Call { attempts: Vec::new(), usage, cost, cheapest: None, token_prices, ..Call::clone(&call) };
            waste(&call, Beside { estimated: false, left_over: MicroUsd::ZERO, repeated: false, first: false })
        };
        let missed = |micros| vec![(WasteKind::CacheMiss, MicroUsd::new(micros))];
        let written = Usage { input: 3, cache_write: 50_000, ..Usage::default() };
        assert_eq!(of(written), missed(172_508));
        assert_eq!(of(Usage { cache_write_long: 50_000, ..Usage::default() }), missed(285_000));
        assert_eq!(of(Usage { input: 2_000, ..Usage::default() }), missed(5_400));
        assert!(
            of(Usage { cached_input: 1, ..written }).is_empty()
                && of(Usage { input: 1_000, ..Usage::default() }).is_empty()
        );
    }

    /// The first call of a task stays the first of it in the day's sums when it ends after its lapse, whatever came meanwhile: what it
    /// read nobody had put into a cache. A later call has missed one.
    #[test]
    fn a_late_end_of_the_first_call_misses_no_cache() {
        let mut world = World::new();
        let workspace = world.agent().register().workspace;
        let call = sample::rows().iter().find_map(|it| Call::peel(it).cloned()).unwrap();
        let task = sample::rows().iter().find_map(|it| Task::peel(it).cloned()).unwrap();
        let ended = |end| CallState::Ended { end, first_token_ms: None, duration_ms: 0, overhead_ms: 0, last: None };
        let usage = Usage { input: 9_000, ..Usage::default() };
        let cost = MicroUsd::new(27_000);
        let micros = serde_json::json!({ "input": 3_000_000, "cachedInput": 300_000, "output": 15_000_000 });
        let token_prices: Option<TokenPrices> = Some(serde_json::from_value(micros).unwrap());
        let call = Call {
            workspace,
            attempts: Vec::new(),
            usage,
            cost,
            reserved: cost,
            cheapest: None,
            token_prices,
            ..Call::clone(&call)
        };
        for uncounted in [true, false] {
            let sums = world.engine().read(|scope| {
                let key = Task::key_of(workspace, &call.task);
                let _ = scope.get::<Task>(key)?;
                scope.put(Task { key, workspace, uncounted, calls: 1, ..Task::clone(&task) });
                let mut lapsed = Call { state: ended(CallEnd::Lapsed), ..call.clone() };
                add(scope, &mut lapsed, None, true)?;
                let counted = Task::clone(&*scope.get::<Task>(key)?.unwrap());
                scope.put(Task { calls: 2, ..counted });
                let late = Call { state: ended(CallEnd::Done), follows: lapsed.follows, ..call.clone() };
                correct(scope, &lapsed, &late, MicroUsd::ZERO, None, false)?;
                Ok(cell_of(scope, &late)?.sums)
            });
            let sums = sums.unwrap_or_else(|why| panic!("{why}"));
            let missed = sums.waste.iter().map(|it| it.count).sum::<u64>();
            assert_eq!((sums.calls, sums.tasks, missed), (1, u64::from(uncounted), u64::from(!uncounted)));
        }
    }
}
