//! Budgets: what is reserved and spent of each running period is added up again from the calls.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Books;
use crate::state::gateway::{Budget, BudgetUse, Call, Mode, Step};
use crate::store::{Key, Record, Row, Stamp};
use crate::value::MicroUsd;

/// What is reserved is what the running calls of the period hold, what is spent is what all of them have come to, and where every
/// one of them was held to it they never came to more than the budget admits.
pub(super) fn check_budgets(rows: &[(Key, Stamp, Record)], books: &Books<'_>, faults: &mut Vec<String>) {
    let calls: Vec<&Call> = rows.iter().filter_map(|(.., it)| Call::peel(it)).map(AsRef::as_ref).collect();
    let budgets: Vec<&Budget> = rows.iter().filter_map(|(.., it)| Budget::peel(it)).map(AsRef::as_ref).collect();
    let lapsed = lapsed(books);
    for spending in rows.iter().filter_map(|(.., it)| BudgetUse::peel(it)) {
        let of = |it: &&&Call| it.budgets.iter().any(|on| spending.is_of(on));
        let calls: Vec<&Call> = calls.iter().filter(of).copied().collect();
        let running = || calls.iter().filter(|it| it.is_running());
        let reserved = running().fold(MicroUsd::ZERO, |sum, it| sum.plus(it.reserved));
        let spent = calls.iter().fold(MicroUsd::ZERO, |sum, it| sum.plus(posted(it, &lapsed)));
        let open = running().count();
        if (spending.reserved, spending.spent) != (reserved, spent) || usize::try_from(spending.open).ok() != Some(open)
        {
            let kept = (spending.open, spending.reserved, spending.spent);
            faults.push(format!(
                "{}: its row has {kept:?} of the period from {}, its calls {:?}",
                spending.budget,
                spending.start,
                (open, reserved, spent)
            ));
        }
        match budgets.iter().find(|it| it.id == spending.budget) {
            Some(budget) => check_stop(books, budget, spending, &calls, &lapsed, faults),
            None => faults.push(format!("{} is used and is not there", spending.budget)),
        }
    }
}

/// No call was admitted that took the budget past its stop. What calls fill now is at most what they filled when the last one was
/// admitted, once what they came to beyond what they held is left out.
fn check_stop(
    books: &Books<'_>,
    budget: &Budget,
    spending: &BudgetUse,
    calls: &[&Call],
    lapsed: &BTreeMap<String, MicroUsd>,
    faults: &mut Vec<String>,
) {
    let held_to_it = |it: &&&Call| {
        it.mode == Mode::Enforce && it.budgets.iter().all(|on| on.id != budget.id || !on.past_stop) && !it.unpriced
    };
    // What may be spent was another sum once, or other steps stood there.
    let moved = books.on(budget.id).iter().any(|(_, it)| matches!(&*it.kind, "budget.changed" | "budget.raised"));
    if moved || budget.ladder.at(Step::Stop).is_none() || calls.iter().filter(held_to_it).count() < calls.len() {
        return;
    }
    let filled = calls.iter().fold(MicroUsd::ZERO, |sum, call| {
        let after = lapsed.get(&call.id.to_string()).copied().unwrap_or_else(|| posted(call, lapsed));
        sum.plus(if call.is_running() { call.reserved } else { after.min(call.reserved) })
    });
    if budget.ladder.stops(filled, spending.allocation(budget)) {
        faults.push(format!("{}: its calls fill {filled:?} of {:?}", budget.id, spending.allocation(budget)));
    }
}

/// What a call has posted: what it came to, or what it was charged when it was taken for lost, where that is more.
fn posted(call: &Call, lapsed: &BTreeMap<String, MicroUsd>) -> MicroUsd {
    lapsed.get(&call.id.to_string()).map_or(call.cost, |charged| call.cost.max(*charged))
}

/// What calls were charged when they were taken for lost, as the ledger has it.
fn lapsed(books: &Books<'_>) -> BTreeMap<String, MicroUsd> {
    let entries = books.ledger.values().flatten().filter(|it| &*it.kind == "budget.lapsed");
    let charged = entries.filter_map(|it| {
        let data = serde_json::from_str::<Value>(&it.data).ok()?;
        let cost = data.get("costMicros")?.as_u64()?;
        Some((data.get("callId")?.as_str()?.to_owned(), MicroUsd::new(cost)))
    });
    charged.collect()
}
