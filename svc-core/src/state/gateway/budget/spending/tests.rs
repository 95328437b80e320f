//! What a budget says of a call, what is reserved and posted, and periods that begin and end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
use proptest::prelude::*;

use super::*;
use crate::state::gateway::{BudgetPeriod, Ladder};
use crate::value::Id;
use crate::value::id::{AgentId, KeyId, PrincipalId, WorkspaceId};
use crate::value::period::Zone;

const DAY_MS: i64 = 86_400_000;
const NOON: i64 = 1_790_856_000_000;

fn budget(number: u8, scope: BudgetScope, amount: u64, period: BudgetPeriod, ladder: Ladder) -> Budget {
    Budget {
        id: BudgetId::from_bits(number.into()),
        workspace: WorkspaceId::from_bits(1),
        scope,
        amount: MicroUsd::new(amount),
        period,
        ladder,
        owner: PrincipalId::from_bits(1),
        created_by: None,
        created_at: Timestamp::from_millis(NOON - 40 * DAY_MS),
    }
}

fn of_key(amount: u64) -> Budget {
    budget(1, BudgetScope::Key(KeyId::from_bits(4)), amount, BudgetPeriod::Day, Ladder::default())
}

fn micros(amount: u64) -> MicroUsd {
    MicroUsd::new(amount)
}

fn in_zone(name: &str) -> Settings {
    Settings { timezone: Zone::parse(name).unwrap(), ..Settings::default() }
}

fn noon() -> Timestamp {
    Timestamp::from_millis(NOON)
}

/// `stop` looks at this call too, the other steps at what was before it; in shadow nothing is refused.
#[test]
fn stop_looks_at_the_call_and_the_others_before_it() {
    let (budget, mut row) = (of_key(1_000), BudgetUse::begin(&of_key(1_000), noon(), &Settings::default()));
    let ask = |row: &BudgetUse, amount, mode| {
        let said = row.admit(&budget, micros(amount), mode);
        (said.step, said.refuses)
    };
    assert_eq!(ask(&row, 1_200, Mode::Enforce), (Some(Step::Observe), false), "up to its line a call may go");
    assert_eq!(ask(&row, 1_201, Mode::Enforce), (Some(Step::Stop), true));
    assert_eq!(ask(&row, 1_201, Mode::Shadow), (Some(Step::Stop), false));
    let held = row.reserve(micros(999));
    assert_eq!(ask(&row, 201, Mode::Enforce), (Some(Step::Downgrade), false));
    let last = row.reserve(micros(1));
    assert_eq!(ask(&row, 0, Mode::Enforce), (Some(Step::Approval), true));
    assert_eq!(ask(&row, 201, Mode::Enforce), (Some(Step::Stop), true), "stop before approval");
    assert!(row.settle(&held, micros(999), micros(10)) && row.settle(&last, micros(1), micros(0)));
    assert_eq!((row.spent, row.reserved, row.open), (micros(10), MicroUsd::ZERO, 0));
    assert_eq!(ask(&row, 5, Mode::Enforce), (Some(Step::Observe), false));
}

/// A call posts to the period that it was admitted in: one that ends later changes nothing of the next.
#[test]
fn a_call_posts_to_its_own_period() {
    let (budget, settings) = (of_key(1_000), Settings::default());
    let mut row = BudgetUse::begin(&budget, noon(), &settings);
    let held = row.reserve(micros(700));
    row.raise(micros(5_000));
    assert_eq!(row.at(&budget, noon(), &settings), row);
    let mut next = row.at(&budget, row.end.unwrap(), &settings);
    assert_eq!((next.start, next.used(), next.open, next.raised), (row.end.unwrap(), MicroUsd::ZERO, 0, None));
    assert!(!next.settle(&held, micros(700), micros(600)));
    assert_eq!(next.used(), MicroUsd::ZERO);
    assert!(row.settle(&held, micros(700), micros(600)));
    assert_eq!(row.spent, micros(600));
}

/// A period that was begun in one zone ends as it began, and the next begins where it ended at the earliest.
#[test]
fn a_running_period_ends_as_it_began() {
    let budget = of_key(1_000);
    let row = BudgetUse::begin(&budget, noon(), &Settings::default());
    let west = in_zone("America/New_York");
    assert_eq!(row.at(&budget, noon(), &west), row);
    let next = row.at(&budget, row.end.unwrap(), &west);
    assert_eq!(next.start, row.end.unwrap());
    assert_eq!(next.end.unwrap().to_string(), "2026-10-02T04:00:00.000Z");
}

/// A period that a clock that was ahead has begun does not run once the clock is right: the one of now begins, and no call waits for
/// years. What clocks may differ by is no such thing.
#[test]
fn a_period_that_is_yet_to_come_does_not_run() {
    let (budget, settings) = (of_key(1_000), Settings::default());
    let mut row = BudgetUse::begin(&budget, noon(), &settings);
    row.settle(&row.clone().reserve(micros(0)), micros(0), micros(900));
    let later = noon().plus(Span::hours(24 * 3_653));
    let mut ahead = row.at(&budget, later, &settings);
    let held = ahead.reserve(micros(1_200));
    assert!(ahead.admit(&budget, micros(1), Mode::Enforce).refuses);
    let mut running = ahead.at(&budget, noon(), &settings);
    assert_eq!(running, BudgetUse { generation: 2, ..BudgetUse::begin(&budget, noon(), &settings) });
    let said = running.admit(&budget, micros(1_000), Mode::Enforce);
    assert!(!said.refuses && said.retry_after_s(noon()).unwrap() < 86_400, "{said:?}");
    assert!(!running.settle(&held, micros(1_200), micros(1_200)), "it was no call of this period");
    let next = running.at(&budget, running.end.unwrap(), &settings);
    assert_eq!(
        next.at(&budget, next.start.minus(Span::minutes(1)), &settings),
        next,
        "by another node's clock it runs"
    );
}

/// A period that is begun anew, after a clock was ahead, starts when the one of before did: what is told of a call of that one is none
/// of its calls. Rows of an older release say nothing of it.
#[test]
fn a_period_that_is_begun_anew_is_another_one() {
    let (budget, settings) = (of_key(1_000), Settings::default());
    let mut before = BudgetUse::begin(&budget, noon(), &settings);
    let held = before.reserve(micros(400));
    let ahead = before.at(&budget, noon().plus(Span::hours(24 * 3_653)), &settings);
    let mut running = ahead.at(&budget, noon(), &settings);
    assert_eq!(running.start, before.start);
    let own = running.reserve(micros(400));
    assert!(!running.settle(&held, micros(400), micros(9)));
    assert_eq!((running.spent, running.reserved, running.open), (MicroUsd::ZERO, micros(400), 1));
    assert!(running.settle(&own, micros(400), micros(9)));
    let stored = serde_json::to_string(&(&before, &held)).unwrap();
    assert!(!stored.contains("generation"), "{stored}");
    let (mut old, held): (BudgetUse, CallBudget) = serde_json::from_str(&stored).unwrap();
    assert!(old.settle(&held, micros(400), micros(9)));
}

/// Where none of it was used, the period that runs is that of the zone before as well: no budget is there twice in it.
#[test]
fn a_running_period_of_which_nothing_was_used_ends_as_it_began() {
    let budget = of_key(1_000);
    let old = BudgetUse::begin(&budget, noon().minus(Span::hours(48)), &Settings::default());
    let mut settings = Settings::default();
    settings.change_zone(Zone::parse("Europe/Vienna").unwrap(), noon());
    let running = old.at(&budget, noon(), &settings);
    assert_eq!(running.end.unwrap().to_string(), "2026-10-02T00:00:00.000Z");
    let next = running.at(&budget, running.end.unwrap(), &settings);
    assert_eq!(
        (next.start, next.end.unwrap().to_string().as_str()),
        (running.end.unwrap(), "2026-10-02T22:00:00.000Z")
    );
}

/// Each step is told once a period where that much is spent, those that were leapt over too; a raised allocation lets them be
/// told again.
#[test]
fn a_step_is_news_once_a_period() {
    let (budget, settings) = (of_key(1_000), Settings::default());
    let mut row = BudgetUse::begin(&budget, noon(), &settings);
    let steps = |row: &mut BudgetUse, refused| -> Vec<Step> {
        let used = row.used();
        row.news(&budget, used, refused).into_iter().map(|it| it.step).collect()
    };
    assert!(steps(&mut row, None).is_empty());
    row.spent = micros(900);
    assert_eq!(steps(&mut row, None), [Step::Nudge, Step::Downgrade]);
    assert!(steps(&mut row, None).is_empty());
    assert_eq!(steps(&mut row, Some(Step::Stop)), [Step::Stop], "a refusal is news, though the line was not reached");
    assert!(steps(&mut row, Some(Step::Stop)).is_empty());
    row.spent = micros(1_000);
    assert_eq!(steps(&mut row, None), [Step::Approval], "a higher step takes nothing from the lower ones");
    row.raise(micros(1_200));
    assert_eq!(steps(&mut row, None), [Step::Nudge]);
}

/// A yes lets as much come through as it was asked for, wherever the line stands at which a person is asked, and however much was used
/// beyond it.
#[test]
fn a_yes_is_for_what_was_asked() {
    for at in [0, 1, 10, 50, 99, 100, 101, 200, 1_000] {
        for (amount, beyond) in [(10_000, 28), (1_000, 0), (50, 5_000)] {
            let rungs = vec![Rung { at, step: Step::Approval }];
            let ladder = Ladder::of(rungs).unwrap();
            let budget = budget(1, BudgetScope::Key(KeyId::from_bits(4)), amount, BudgetPeriod::Day, ladder);
            let mut row = BudgetUse::begin(&budget, noon(), &Settings::default());
            let asks = |row: &BudgetUse| row.admit(&budget, micros(1), Mode::Enforce).step == Some(Step::Approval);
            let line = amount * u64::from(at) / 100;
            row.spent = micros(line + beyond);
            for _ in 0..3 {
                assert!(asks(&row), "{at} of {amount}, {beyond} beyond");
                let agreed = row.asks_from(&budget, budget.amount);
                row.raise(row.allocation_with(&budget, budget.amount));
                row.agreed = Some(agreed);
                let through = (0..2 * amount)
                    .find(|more| asks(&BudgetUse { spent: row.spent.plus(micros(*more)), ..row.clone() }));
                // A line is a percentage of whole micros.
                assert!(
                    through.is_some_and(|it| it.abs_diff(amount) <= 10),
                    "{at} of {amount}, {beyond} beyond: {through:?}"
                );
                row.spent = row.spent.plus(micros(through.unwrap()));
            }
        }
    }
}

/// What was reserved leads to every step but `stop`. It may be given back: a step that it has led to is told once more when that
/// much is spent.
#[test]
fn what_was_reserved_uses_up_no_news() {
    let (budget, settings) = (of_key(1_000), Settings::default());
    let mut row = BudgetUse::begin(&budget, noon(), &settings);
    let steps = |row: &mut BudgetUse, used| -> Vec<Step> {
        row.news(&budget, used, None).into_iter().map(|it| it.step).collect()
    };
    let held = row.reserve(micros(30_000));
    let used = row.used();
    assert_eq!(steps(&mut row, used), [Step::Nudge, Step::Downgrade, Step::Approval]);
    assert!(steps(&mut row, used).is_empty());
    row.settle(&held, micros(30_000), micros(20));
    assert!(steps(&mut row, micros(20)).is_empty());
    row.spent = micros(850);
    assert_eq!(steps(&mut row, micros(850)), [Step::Nudge]);
    row.spent = micros(1_200);
    assert_eq!(steps(&mut row, micros(1_200)), [Step::Downgrade, Step::Approval, Step::Stop]);
    assert!(steps(&mut row, micros(99_999)).is_empty());
}

/// A row of an earlier release has the highest step alone: what leads to it or a lower one is told once more when it is spent.
#[test]
fn a_row_with_its_highest_step_is_read() {
    let old = r#"{"budget":"bdg_01K6FN0001000000000000000A","start":1790805600000,"end":1798754400000,"told":"stop"}"#;
    let budget = of_key(1_000);
    let mut row: BudgetUse = serde_json::from_str(old).unwrap();
    let steps = |row: &mut BudgetUse| -> Vec<Step> {
        let used = row.used();
        row.news(&budget, used, None).into_iter().map(|it| it.step).collect()
    };
    row.reserved = micros(950);
    assert!(steps(&mut row).is_empty());
    row.spent = micros(850);
    assert_eq!(steps(&mut row), [Step::Nudge]);
    let again: BudgetUse = serde_json::from_str(&serde_json::to_string(&row).unwrap()).unwrap();
    assert_eq!(again, row);
}

/// Where a call finds no room it is told apart whether all is spent, others hold it, or it is too large by itself.
#[test]
fn what_a_budget_lacks_is_told_apart() {
    let ladder = Ladder::of(vec![Rung { at: 100, step: Step::Stop }]).unwrap();
    let budget = budget(1, BudgetScope::Workspace, 1_000, BudgetPeriod::Day, ladder);
    let mut row = BudgetUse::begin(&budget, noon(), &Settings::default());
    let lack = |row: &BudgetUse, cost| {
        let said = row.admit(&budget, micros(cost), Mode::Enforce);
        said.refuses.then_some(said.lack)
    };
    let call = row.reserve(micros(600));
    assert_eq!(
        [400, 401, 1_000, 1_001].map(|it| lack(&row, it)),
        [None, Some(Lack::Held), Some(Lack::Held), Some(Lack::TooSmall)]
    );
    row.settle(&call, micros(600), micros(600));
    assert_eq!([400, 401].map(|it| lack(&row, it)), [None, Some(Lack::TooSmall)]);
    row.spent = micros(1_000);
    assert_eq!(lack(&row, 1), Some(Lack::Spent));
}

/// Over several budgets the refusal by `stop` speaks before that by `approval`, and within it the narrowest scope.
#[test]
fn the_gravest_and_then_the_narrowest_speaks() {
    let scopes = [
        BudgetScope::Workspace,
        BudgetScope::Agent(AgentId::from_bits(3)),
        BudgetScope::Key(KeyId::from_bits(4)),
        BudgetScope::Principal(PrincipalId::from_bits(2)),
    ];
    let said = |step: Option<Step>, refuses| {
        move |(at, scope): (usize, &BudgetScope)| {
            let number = u8::try_from(at).unwrap();
            let budget = budget(number, scope.clone(), 1_000, BudgetPeriod::Day, Ladder::default());
            let row = BudgetUse::begin(&budget, noon(), &Settings::default());
            Admission { step, refuses, ..row.admit(&budget, MicroUsd::ZERO, Mode::Enforce) }
        }
    };
    let named = |all: &[Admission]| strictest(all).map(|it| it.scope.kind());
    let mut all: Vec<Admission> = scopes.iter().enumerate().map(said(Some(Step::Approval), true)).collect();
    assert_eq!(named(&all), Some("key"));
    all[0].step = Some(Step::Stop);
    assert_eq!(named(&all), Some("workspace"), "stop wins though it is wider");
    all[3].step = Some(Step::Stop);
    assert_eq!(named(&all), Some("principal"));
    assert_eq!(named(&[]), None);
}

/// What is told beside an answer names budget, share and step; in shadow it says what would have been.
#[test]
fn an_advisory_says_how_far_a_budget_is() {
    let (budget, settings) = (of_key(1_000), Settings::default());
    let mut row = BudgetUse::begin(&budget, noon(), &settings);
    let told = |row: &BudgetUse, mode| row.admit(&budget, MicroUsd::ZERO, mode).advisory(mode);
    assert_eq!(told(&row, Mode::Shadow), None);
    row.reserve(micros(855));
    let text = told(&row, Mode::Enforce).unwrap();
    assert!(text.ends_with("is at 85% of its allocation, step nudge"), "{text}");
    row.reserve(micros(200));
    let text = told(&row, Mode::Shadow).unwrap();
    assert!(text.contains("105%") && text.ends_with(", this call would be refused if enforced"), "{text}");
    // A call that finds no room before `stop` is reached is told why it finds none.
    let would = |row: &BudgetUse, sum| row.admit(&budget, micros(sum), Mode::Shadow).advisory(Mode::Shadow).unwrap();
    let fresh = BudgetUse::begin(&budget, noon(), &settings);
    let text = would(&fresh, 1_300);
    let why = "is at 0% of its allocation, this call may cost more than is left of it and would be refused if enforced";
    assert!(text.ends_with(why) && text.len() <= 200, "{text}");
    let text = would(&row, 1_000);
    let why =
        "is at 105% of its allocation, running calls hold what is left of it, this call would be refused if enforced";
    assert!(text.ends_with(why) && text.len() <= 200, "{text}");
    let spent = BudgetUse { spent: micros(1_200), ..fresh };
    assert!(
        would(&spent, 1).ends_with("is at 120% of its allocation, step stop, this call would be refused if enforced")
    );
    let said = row.admit(&budget, MicroUsd::ZERO, Mode::Enforce);
    assert_eq!(said.retry_after_s(Timestamp::from_millis(row.end.unwrap().as_millis() - 1_001)), Some(2));
    assert_eq!(said.retry_after_s(row.end.unwrap()), Some(1));
    assert_eq!(Admission { end: None, ..said }.retry_after_s(noon()), None);
}

/// A further attempt takes the place of the one before: one call, and the first is charged what it used.
#[test]
fn a_further_attempt_takes_the_place_of_the_one_before() {
    let budget = of_key(1_000);
    let mut row = BudgetUse::begin(&budget, noon(), &Settings::default());
    let held = row.reserve(micros(300));
    assert!(row.again(&held, micros(300), micros(20), micros(500)));
    assert_eq!((row.spent, row.reserved, row.open), (micros(20), micros(500), 1));
    let mut next = row.at(&budget, row.end.unwrap(), &Settings::default());
    assert!(!next.again(&held, micros(500), micros(20), micros(500)) && next.open == 0);
}

#[derive(Clone, Debug)]
enum Event {
    Admit { micros: u64, enforced: bool },
    End { which: usize, cost: u64, over: bool },
    Raise { which: usize, by: u64 },
    Pass { ms: i64 },
}

/// One call as the naive model keeps it: what it reserved by budget, and what it cost once it ended.
#[derive(Debug)]
struct ModelCall {
    held: Vec<CallBudget>,
    micros: u64,
    cost: Option<u64>,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0_u64..400, any::<bool>()).prop_map(|(micros, enforced)| Event::Admit { micros, enforced }),
        5 => (0_usize..64, 0_u64..400, prop::bool::weighted(0.1))
            .prop_map(|(which, cost, over)| Event::End { which, cost, over }),
        1 => (0_usize..3, 1_u64..500).prop_map(|(which, by)| Event::Raise { which, by }),
        1 => (1_i64..2 * DAY_MS).prop_map(|ms| Event::Pass { ms }),
    ];
    prop::collection::vec(event, 0..120)
}

fn ladder() -> impl Strategy<Value = Ladder> {
    prop::sample::subsequence(Step::ALL.to_vec(), 0..=5).prop_flat_map(|steps| {
        let shares = prop::collection::btree_set(0_u16..=200, steps.len());
        shares.prop_map(move |shares| {
            let rungs = steps.iter().zip(shares).map(|(step, at)| Rung { at, step: *step }).collect();
            Ladder::of(rungs).unwrap()
        })
    })
}

/// The sums of a budget's running period by looking through every call there was.
fn sums(calls: &[ModelCall], row: &BudgetUse) -> (u64, u64) {
    let mut sums = (0, 0);
    for call in calls {
        for _ in call.held.iter().filter(|it| it.id == row.budget && it.period == row.start) {
            match call.cost {
                Some(cost) => sums.0 += cost,
                None => sums.1 += call.micros,
            }
        }
    }
    sums
}

proptest! {
    /// Whatever is admitted, settled, lapsed, raised, and whichever periods pass: a budget's sums are those of its period's
    /// calls; and where every call was enforced and none cost more than it reserved, they never pass `stop`.
    #[test]
    fn sums_are_those_of_the_periods_calls_and_never_pass_stop(
        ladders in prop::collection::vec(ladder(), 3),
        amounts in prop::collection::vec(1_u64..2_000, 3),
        periods in prop::collection::vec(prop::sample::select(BudgetPeriod::ALL.to_vec()), 3),
        events in events(),
    ) {
        let scopes = [BudgetScope::Key(KeyId::from_bits(4)), BudgetScope::Agent(AgentId::from_bits(3)), BudgetScope::Workspace];
        let parts = scopes.into_iter().zip(ladders).zip(amounts).zip(periods).enumerate();
        let budgets: Vec<Budget> = parts
            .map(|(at, (((scope, ladder), amount), period))| budget(u8::try_from(at).unwrap(), scope, amount, period, ladder))
            .collect();
        let settings = in_zone("Europe/Vienna");
        let mut now = noon();
        let mut rows: Vec<BudgetUse> = budgets.iter().map(|it| BudgetUse::begin(it, now, &settings)).collect();
        let mut calls: Vec<ModelCall> = Vec::new();
        let mut strict = true;
        for event in events {
            for (row, budget) in rows.iter_mut().zip(&budgets) {
                *row = row.at(budget, now, &settings);
            }
            match event {
                Event::Pass { ms } => now = now.plus(Span::millis(ms)),
                Event::Raise { which, by } => {
                    let allocation = rows[which].allocation(&budgets[which]).plus(MicroUsd::new(by));
                    rows[which].raise(allocation);
                }
                Event::Admit { micros, enforced } => {
                    let mode = if enforced { Mode::Enforce } else { Mode::Shadow };
                    let (asked, pairs) = (MicroUsd::new(micros), rows.iter().zip(&budgets));
                    let said: Vec<_> = pairs.map(|(row, budget)| row.admit(budget, asked, mode)).collect();
                    let refused = strictest(&said).is_some_and(|it| it.refuses);
                    prop_assert_eq!(refused, said.iter().any(|it| it.refuses));
                    strict &= enforced;
                    if !refused {
                        let held = rows.iter_mut().map(|it| it.reserve(asked)).collect();
                        calls.push(ModelCall { held, micros, cost: None });
                    }
                }
                Event::End { which, cost, over } => {
                    let Some(call) = calls.iter_mut().filter(|it| it.cost.is_none()).nth(which % 8) else { continue };
                    let most = call.micros;
                    let cost = if over { most + cost } else { cost.min(most) };
                    strict &= cost <= most;
                    for (row, held) in rows.iter_mut().zip(&call.held) {
                        let counted = row.settle(held, MicroUsd::new(most), MicroUsd::new(cost));
                        prop_assert_eq!(counted, held.period == row.start);
                    }
                    call.cost = Some(cost);
                }
            }
            for (row, budget) in rows.iter().zip(&budgets) {
                prop_assert_eq!((row.spent.get(), row.reserved.get()), sums(&calls, row));
                if strict {
                    prop_assert!(!budget.ladder.stops(row.used(), row.allocation(budget)), "{:?} of {:?}", row, budget);
                }
            }
        }
    }
}
