//! Promises that only show at the sizes that the gate works with.

use std::sync::Arc;

use super::{Entry, broken, holds, load, same, scan, write};
use crate::rules::gate::fleet::FREEZE_MAX;
use crate::state::gate::Agent;
use crate::store::{Commit, Committed, Key, Loaded, PAGE_MAX, ROWS_AT_ONCE, Range, Record, Stamp, Store, Write};
use crate::testing::sample;
use crate::value::id::{AgentId, WorkspaceId};
use crate::value::link::Index;
use crate::value::{Id, Timestamp};

/// Rows of a list that is read in pages: the last page is not full.
const LISTED: usize = 2 * PAGE_MAX + 100;

/// A list of more rows than one page has, read as the gate reads it: until a page comes that is not full.
pub(super) fn a_page_is_short_at_the_end_alone<S: Store>(store: &mut S) {
    let promise = "a page with fewer rows than its limit is the last: all that the stretch has fit it";
    let agents = fleet(LISTED, None);
    for some in agents.chunks(PAGE_MAX) {
        let _ = commit(promise, store, &[], some);
    }
    let mut list: Vec<Entry> = agents.iter().zip(1..).map(|(row, order)| (order, row.key())).collect();
    for newest_first in [false, true] {
        for limit in [PAGE_MAX, LISTED - 1, LISTED, LISTED + 1] {
            let mut range = Range { newest_first, ..Range::all(Index::AgentsOf, workspace().bits(), limit) };
            let mut seen: Vec<Entry> = Vec::new();
            loop {
                let page = scan(store, &range);
                seen.extend(&page);
                if page.len() < limit {
                    break;
                }
                range.after = page.last().copied();
            }
            holds(promise, seen == list, &(limit, "rows of a page, and of the list", list.len(), "found", seen.len()));
        }
        list.reverse();
    }
}

/// The stop of a fleet: all rows are looked at, and those of its agents change.
pub(super) fn a_fleet_fits_one_commit<S: Store>(store: &mut S) {
    let promise = "a commit writes and checks so many rows as the stop of a fleet does, and a load answers so many";
    let active = fleet(FREEZE_MAX, None);
    let others = (0..ROWS_AT_ONCE - FREEZE_MAX).zip(1_u128..).map(|(_, bits)| sample::payload(sample::id(bits), "x"));
    let others: Vec<Record> = others.collect();
    let all: Vec<Record> = active.iter().chain(&others).cloned().collect();
    let first = commit(promise, store, &[], &all);
    let keys: Vec<Key> = all.iter().map(Record::key).collect();
    let seen = loaded(store, &keys);
    let is_whole = |seen: &[Loaded], stamp, rows: &[Record]| {
        seen.len() == rows.len()
            && seen.iter().zip(rows).all(|(it, row)| it.stamp == stamp && it.record.as_ref() == Some(row))
    };
    let told = |seen: &[Loaded]| (seen.len(), seen.iter().filter(|it| it.record.is_some()).count());
    holds(promise, is_whole(&seen, first, &all), &("answers, and rows in them", told(&seen)));

    let frozen = fleet(FREEZE_MAX, Some(Timestamp::from_millis(7)));
    let second = commit(promise, store, &seen, &frozen);
    holds(promise, second > first, &(first, second));
    let seen = loaded(store, &keys);
    let (agents, rest) = seen.split_at(frozen.len().min(seen.len()));
    holds(promise, is_whole(agents, second, &frozen), &("answers, and rows in them", told(agents)));
    holds(promise, is_whole(rest, first, &others), &("answers, and rows in them", told(rest)));
}

fn workspace() -> WorkspaceId {
    sample::id(2)
}

/// So many agents, sorted by key.
fn fleet(count: usize, following: Option<Timestamp>) -> Vec<Record> {
    let Record::Agent(like) = sample::agent(workspace(), sample::id(1), following) else { unreachable!() };
    let ids = (0..count).zip(1..).map(|(_, bits)| sample::id::<AgentId>(bits));
    ids.map(|id| Record::Agent(Arc::new(Agent { id, ..Agent::clone(&like) }))).collect()
}

/// The answers to `keys`, in their order, which is sorted.
fn loaded<S: Store>(store: &mut S, keys: &[Key]) -> Vec<Loaded> {
    let mut rows = load(store, keys);
    rows.sort_unstable_by_key(|row| row.key);
    same("every key is answered exactly once", &rows.len(), &keys.len());
    rows
}

/// Writes rows, sorted by key, over those that were `seen`, all of which are checked; without any, over nothing.
fn commit<S: Store>(promise: &str, store: &mut S, seen: &[Loaded], rows: &[Record]) -> Stamp {
    let checks: Vec<(Key, Stamp)> = match seen {
        [] => rows.iter().map(|row| (row.key(), Stamp::ABSENT)).collect(),
        seen => seen.iter().map(|row| (row.key, row.stamp)).collect(),
    };
    let before = |key: Key| {
        let at = seen.binary_search_by_key(&key, |it| it.key).ok()?;
        seen[at].record.as_ref()
    };
    let writes: Vec<Write> = rows.iter().map(|row| write(before(row.key()), row)).collect();
    let (checked, written) = (checks.len(), writes.len());
    match store.commit(&Commit { checks, writes }) {
        Ok(Committed::Applied(stamp)) => stamp,
        Ok(Committed::Conflict(moved)) => {
            broken(promise, &(checked, "checks", written, "writes", moved.len(), "moved"))
        }
        Err(error) => broken(promise, &(checked, "checks", written, "writes", error)),
    }
}
