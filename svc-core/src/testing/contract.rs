//! The suite that every store passes: each promise of [`Store`] as a check that names it.
//!
//! A store of one's own runs [`suite`] over new stores, [`sessions`] over one that several sessions share, and [`races`] over
//! another, whose sessions are driven by threads:
//!
//! ```
//! use std::thread;
//!
//! use svc_core::store::MemoryStore;
//! use svc_core::testing::contract;
//!
//! contract::suite(MemoryStore::new);
//! let store = MemoryStore::new();
//! contract::sessions(|| store.clone());
//! let store = MemoryStore::new();
//! contract::races(|| store.clone(), |racers| {
//!     thread::scope(|threads| racers.into_iter().for_each(|racer| drop(threads.spawn(racer))));
//! });
//! ```
//!
//! It shows the sizes that the gate works with, up to [`ROWS_AT_ONCE`](crate::store::ROWS_AT_ONCE) rows in one commit, so it takes a
//! moment. What a suite cannot see is left to the store's own tests: that `Applied` survives a loss of power, and that a commit
//! whose connection broke answers [`CommitError::Unknown`](crate::store::CommitError::Unknown).

mod moments;
mod races;
mod sizes;

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::sample;
use crate::store::{Commit, Committed, Key, Loaded, Range, Record, Stamp, Store, Table, Write};
use crate::value::id::{ActionId, AgentId, EvidenceId, WorkspaceId};
use crate::value::link::{Index, Link, Order, shard};
use crate::value::{Id, Timestamp};

pub use races::{Racer, races};

/// Commits of one store whose stamps are compared: more than ten bits count. On a disk each of them waits for it.
const STAMPS: usize = 1_100;

/// Shows that a store keeps its promises to one session. Each call of `open` gives a new, empty store.
///
/// # Panics
/// Where a promise is broken; the message says which, and what was seen.
pub fn suite<S: Store>(mut open: impl FnMut() -> S) {
    let promises: &[fn(&mut S)] = &[
        absence_is_an_answer,
        every_table_keeps_its_rows,
        a_thousand_rows_fit_one_commit,
        a_remade_row_is_another,
        a_stale_check_conflicts,
        absence_is_checked,
        a_conflict_writes_nothing,
        a_commit_without_writes_checks,
        deleting_what_is_absent_is_no_fault,
        links_come_and_go_with_their_row,
        a_link_by_stamp_moves_with_each_write,
        an_index_sorts_by_order_then_key,
        prefixes_are_lists_of_their_own,
        pages_are_stretches_of_the_list,
        stamps_grow_and_never_return,
        sizes::a_page_is_short_at_the_end_alone,
        sizes::a_fleet_fits_one_commit,
    ];
    for promise in promises {
        promise(&mut open());
    }
}

/// Shows that the sessions of one store see one another. Each call of `session` opens one more session on the same
/// store, which is empty at the first call; the sessions before it may have been dropped.
///
/// # Panics
/// Where a promise is broken; the message says which, and what was seen.
pub fn sessions<S: Store>(mut session: impl FnMut() -> S) {
    what_one_session_commits_the_others_see(&mut session(), &mut session());
    the_slower_of_two_writers_conflicts(&mut session(), &mut session());
    the_second_of_two_inserts_conflicts(&mut session(), &mut session());
    what_is_committed_outlives_its_session(session);
}

// What follows is one function a promise.

fn absence_is_an_answer<S: Store>(store: &mut S) {
    let promise = "an absent row is an answer: stamp `ABSENT`, no record, every key answered exactly once";
    let keys: Vec<Key> = sample::rows().iter().map(Record::key).collect();
    let mut answers = load(store, &keys);
    answers.sort_unstable_by_key(|row| row.key);
    let mut asked = keys;
    asked.sort_unstable();
    same(promise, &answers.iter().map(|row| row.key).collect::<Vec<_>>(), &asked);
    holds(promise, answers.iter().all(|row| row.stamp == Stamp::ABSENT && row.record.is_none()), &answers);
    holds(promise, load(store, &[]).is_empty(), &"an answer to no question");
    for &index in Index::ALL {
        same(promise, &scan(store, &Range::all(index, 0, 10)), &Vec::new());
    }
}

fn every_table_keeps_its_rows<S: Store>(store: &mut S) {
    let promise = "a row is given back as it was written, under the stamp of its commit";
    for record in sample::rows() {
        let stamp = put(store, std::slice::from_ref(&record));
        let found = load_one(store, record.key());
        same(promise, &found.record, &Some(record));
        same(promise, &found.stamp, &stamp);
    }
    for record in sample::rows() {
        same("a row is untouched by the writes of others", &load_one(store, record.key()).record, &Some(record));
    }
    for table in Table::ALL {
        let some = sample::rows().into_iter().find(|it| it.key().table() == *table);
        holds("every table is shown", some.is_some(), table);
    }
}

fn a_thousand_rows_fit_one_commit<S: Store>(store: &mut S) {
    let promise = "a commit may hold a thousand rows and a row a megabyte";
    let long = "ä\"\\".repeat(1 << 18);
    let mut rows: Vec<Record> = (1..1_000_u128).map(|bits| sample::payload(sample::id(bits << 64), "x")).collect();
    rows.push(sample::payload(sample::id(1_000 << 64), &long));
    let stamp = put(store, &rows);
    let keys: Vec<Key> = rows.iter().map(Record::key).collect();
    let mut found = load(store, &keys);
    found.sort_unstable_by_key(|row| row.key);
    holds(promise, found.iter().all(|row| row.stamp == stamp), &found.iter().map(|row| row.stamp).max());
    let found: Vec<Record> = found.into_iter().filter_map(|row| row.record).collect();
    holds(promise, found == rows, &found.len());
}

fn stamps_grow_and_never_return<S: Store>(store: &mut S) {
    let promise = "a stamp is given once, never again, and is greater than those of the commits it depends on";
    let row = sample::payload(sample::id(1), "x");
    let mut last = Stamp::ABSENT;
    for turn in 0..STAMPS {
        let stamp = if turn % 4 == 2 { delete(store, row.key()) } else { put(store, std::slice::from_ref(&row)) };
        holds(promise, stamp > last, &(last, stamp));
        last = stamp;
    }
    let other = put(store, &[sample::payload(sample::id(2), "x")]);
    holds(promise, other != last, &(last, other));
}

fn a_remade_row_is_another<S: Store>(store: &mut S) {
    let promise = "a row that was deleted and made again never passes for the old one";
    let row = sample::payload(sample::id(1), "x");
    let old = put(store, std::slice::from_ref(&row));
    let _ = delete(store, row.key());
    let gone = load_one(store, row.key());
    same(promise, &(gone.stamp, gone.record), &(Stamp::ABSENT, None));
    let moved = conflict(promise, store, &[(row.key(), old)], &[]);
    same(promise, &(moved[0].stamp, moved[0].record.is_none()), &(Stamp::ABSENT, true));
    let new = put(store, std::slice::from_ref(&row));
    let moved = conflict(promise, store, &[(row.key(), old)], &[]);
    same(promise, &moved[0].stamp, &new);
}

fn a_stale_check_conflicts<S: Store>(store: &mut S) {
    let promise = "a conflict names exactly the rows whose check failed, as they are now";
    let row = |bits, text| sample::payload(sample::id(bits), text);
    let old = put(store, &[row(1, "one"), row(2, "two"), row(3, "three")]);
    let new = put(store, &[row(2, "changed"), row(3, "changed")]);
    let keys = [row(1, "").key(), row(2, "").key(), row(3, "").key()];
    let checks = [(keys[0], old), (keys[1], old), (keys[2], new)];
    let moved = conflict(promise, store, &checks, &[row(3, "lost")]);
    same(promise, &moved.len(), &1);
    same(promise, &(moved[0].key, moved[0].stamp), &(keys[1], new));
    same(promise, &moved[0].record, &Some(row(2, "changed")));
    let promise = "after a conflict the same work on the fresh rows is applied";
    let checks = [(keys[0], old), (keys[1], new), (keys[2], new)];
    let again = applied(promise, store, &checks, &[row(3, "kept")]);
    same(promise, &load_one(store, keys[2]).record, &Some(row(3, "kept")));
    holds(promise, again > new, &(new, again));
    let promise = "a conflict names every row whose check failed";
    let gone: Key = row(4, "").key();
    let checks = [(keys[0], old), (keys[1], old), (keys[2], new), (gone, old)];
    let moved = conflict(promise, store, &checks, &[row(1, "lost")]);
    let named: Vec<(Key, Stamp)> = moved.iter().map(|row| (row.key, row.stamp)).collect();
    same(promise, &named, &vec![(keys[1], new), (keys[2], again), (gone, Stamp::ABSENT)]);
}

fn absence_is_checked<S: Store>(store: &mut S) {
    let row = sample::payload(sample::id(1), "first");
    let stamp = put(store, std::slice::from_ref(&row));
    let promise = "an absent row that a commit writes is inserted or conflicts, never overwritten";
    let moved = conflict(promise, store, &[(row.key(), Stamp::ABSENT)], &[sample::payload(sample::id(1), "second")]);
    same(promise, &(moved[0].stamp, moved[0].record.clone()), &(stamp, Some(row.clone())));
    same(promise, &load_one(store, row.key()).record, &Some(row.clone()));
    let promise = "a check that a row is absent fails where there is one";
    let moved = conflict(promise, store, &[(row.key(), Stamp::ABSENT)], &[]);
    same(promise, &moved[0].record, &Some(row));
    let promise = "a check of a stamp fails where there is no row";
    let nothing: Key = sample::payload(sample::id(2), "").key();
    let moved = conflict(promise, store, &[(nothing, stamp)], &[]);
    same(promise, &(moved[0].key, moved[0].stamp, moved[0].record.is_none()), &(nothing, Stamp::ABSENT, true));
    let promise = "a check that a row is absent holds where there is none";
    let _ = applied(promise, store, &[(nothing, Stamp::ABSENT)], &[]);
    same(promise, &load_one(store, nothing).stamp, &Stamp::ABSENT);
}

fn a_conflict_writes_nothing<S: Store>(store: &mut S) {
    let promise = "a commit is all or nothing: one failed check, and no row and no index entry of it is written";
    let agent: AgentId = sample::id(7);
    let (old, new): (ActionId, ActionId) = (sample::id(1), sample::id(2));
    let stamp = put(store, &[sample::action(agent, old), sample::payload(old, "kept")]);
    let stale = (sample::payload(sample::id(9), "").key(), stamp);
    let rows = [sample::action(agent, new), sample::payload(old, "lost"), sample::payload(new, "lost")];
    let checks = [(rows[0].key(), Stamp::ABSENT), (rows[1].key(), stamp), (rows[2].key(), Stamp::ABSENT), stale];
    let _ = conflict(promise, store, &checks, &rows);
    same(promise, &load_one(store, rows[0].key()).stamp, &Stamp::ABSENT);
    same(promise, &load_one(store, rows[1].key()).record, &Some(sample::payload(old, "kept")));
    same(promise, &load_one(store, rows[2].key()).stamp, &Stamp::ABSENT);
    let listed = scan(store, &Range::all(Index::ActionsOf, agent.bits(), 10));
    same(promise, &listed, &vec![(old.bits(), sample::action(agent, old).key())]);
}

fn a_commit_without_writes_checks<S: Store>(store: &mut S) {
    let promise = "a commit without writes is judged by its checks";
    let row = sample::payload(sample::id(1), "x");
    let stamp = put(store, std::slice::from_ref(&row));
    let _ = applied(promise, store, &[(row.key(), stamp)], &[]);
    same(promise, &load_one(store, row.key()).stamp, &stamp);
    let newer = put(store, std::slice::from_ref(&row));
    let moved = conflict(promise, store, &[(row.key(), stamp)], &[]);
    same(promise, &moved[0].stamp, &newer);
    let _ = applied("an empty commit is applied", store, &[], &[]);
}

fn deleting_what_is_absent_is_no_fault<S: Store>(store: &mut S) {
    let promise = "what one command of a turn makes and a later one deletes was never there";
    let key = sample::payload(sample::id(1), "").key();
    let write = Write { key, record: None, unlink: Vec::new(), link: Vec::new() };
    let commit = Commit { checks: vec![(key, Stamp::ABSENT)], writes: vec![write] };
    let answer = store.commit(&commit);
    holds(promise, matches!(answer, Ok(Committed::Applied(_))), &answer);
    same(promise, &load_one(store, key).stamp, &Stamp::ABSENT);
}

fn links_come_and_go_with_their_row<S: Store>(store: &mut S) {
    let (home, away): (WorkspaceId, WorkspaceId) = (sample::id(16), sample::id(33));
    let id: AgentId = sample::id(5);
    let at = Timestamp::from_millis;
    let key = sample::agent(home, id, None).key();
    let lists = |store: &mut S, of: WorkspaceId| {
        let all = |index, prefix| Range::all(index, prefix, 10);
        (scan(store, &all(Index::AgentsOf, of.bits())), scan(store, &all(Index::Wake, shard(of))))
    };
    let by_id = vec![(id.bits(), key)];
    let none = (Vec::new(), Vec::new());

    let promise = "a row is listed in each index it declares, from the commit that wrote it";
    let _ = put(store, &[sample::agent(home, id, Some(at(50)))]);
    same(promise, &lists(store, home), &(by_id.clone(), vec![(50, key)]));
    let promise = "a row stays listed where its link did not change, and moves where it did";
    let _ = put(store, &[sample::agent(home, id, Some(at(20)))]);
    same(promise, &lists(store, home), &(by_id.clone(), vec![(20, key)]));
    let promise = "a row leaves an index that it declares no more";
    let _ = put(store, &[sample::agent(home, id, None)]);
    same(promise, &lists(store, home), &(by_id.clone(), Vec::new()));
    let promise = "a row moves to another list";
    let _ = put(store, &[sample::agent(away, id, Some(at(10)))]);
    same(promise, &lists(store, home), &none);
    same(promise, &lists(store, away), &(by_id, vec![(10, key)]));
    let promise = "a deleted row is listed nowhere";
    let _ = delete(store, key);
    same(promise, &lists(store, away), &none);
}

fn a_link_by_stamp_moves_with_each_write<S: Store>(store: &mut S) {
    let workspace: WorkspaceId = sample::id(3);
    let waiting = Range::all(Index::Unplaced, shard(workspace), 10);
    let placed = Range::all(Index::LedgerOf, workspace.bits(), 10);
    let (first, second): (EvidenceId, EvidenceId) = (sample::id(9), sample::id(1));
    let entry = |id, seq| sample::entry(workspace, id, seq);
    let key = |id| entry(id, None).key();

    let promise = "an order of `Stamp` is the stamp of the commit that wrote the row";
    let one = put(store, &[entry(first, None)]);
    let two = put(store, &[entry(second, None)]);
    let at = |stamp: Stamp| u128::from(stamp.0);
    same(promise, &scan(store, &waiting), &vec![(at(one), key(first)), (at(two), key(second))]);
    let promise = "an order of `Stamp` moves with every write of its row";
    let three = put(store, &[entry(first, None)]);
    same(promise, &scan(store, &waiting), &vec![(at(two), key(second)), (at(three), key(first))]);
    let promise = "an entry by stamp goes with the link, and with the row";
    let _ = put(store, &[entry(second, Some(u64::MAX - 1))]);
    same(promise, &scan(store, &waiting), &vec![(at(three), key(first))]);
    same(promise, &scan(store, &placed), &vec![(u128::from(u64::MAX - 1), key(second))]);
    let _ = delete(store, key(first));
    same(promise, &scan(store, &waiting), &Vec::new());
}

fn an_index_sorts_by_order_then_key<S: Store>(store: &mut S) {
    let promise = "an index sorts by order as a number of 128 bits, then by key";
    let agent: AgentId = sample::id(1);
    let mut bits = vec![1, 255, 256, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 1 << 127, u128::MAX - 1];
    for id in [4, 8, 0, 3, 7, 1, 6, 2, 5] {
        let _ = put(store, &[sample::action(agent, sample::id(bits[id]))]);
    }
    let listed = |store: &mut S, range: &Range| scan(store, range).into_iter().map(|it| it.0).collect::<Vec<_>>();
    let mut range = Range::all(Index::ActionsOf, agent.bits(), 100);
    same(promise, &listed(store, &range), &bits);
    range.newest_first = true;
    bits.reverse();
    same(promise, &listed(store, &range), &bits);

    let promise = "rows of one order sort by key: by table as the tables are declared, then by id";
    let workspace: WorkspaceId = sample::id(2);
    let at = Timestamp::from_millis(7);
    let mut rows = vec![sample::approval(workspace, sample::id(2), at), sample::approval(workspace, sample::id(1), at)];
    rows.extend([1 << 100, 3, 1 << 127].map(|bits| sample::agent(workspace, sample::id(bits), Some(at))));
    let _ = put(store, &rows);
    let mut keys: Vec<Key> = rows.iter().map(Record::key).collect();
    keys.sort_unstable();
    let mut range = Range::all(Index::Wake, shard(workspace), 100);
    let found = |store: &mut S, range: &Range| scan(store, range).into_iter().map(|it| it.1).collect::<Vec<_>>();
    same(promise, &found(store, &range), &keys);
    range.newest_first = true;
    keys.reverse();
    same(promise, &found(store, &range), &keys);
}

fn prefixes_are_lists_of_their_own<S: Store>(store: &mut S) {
    let promise = "each prefix of an index is a list of its own";
    let agents = [0, 1, 255, 1 << 64, (1 << 127) - 1, 1 << 127, u128::MAX].map(sample::id::<AgentId>);
    for (agent, bits) in agents.iter().zip(1_u128..) {
        let _ = put(store, &[sample::action(*agent, sample::id(bits))]);
    }
    for (agent, bits) in agents.iter().zip(1_u128..) {
        let key = sample::action(*agent, sample::id(bits)).key();
        same(promise, &scan(store, &Range::all(Index::ActionsOf, agent.bits(), 10)), &vec![(bits, key)]);
    }
    same(promise, &scan(store, &Range::all(Index::ActionsOf, 2, 10)), &Vec::new());
}

fn pages_are_stretches_of_the_list<S: Store>(store: &mut S) {
    let promise =
        "a page is the stretch `from..until` behind `after`, in the direction of reading, at most `limit` long";
    let workspace: WorkspaceId = sample::id(2);
    let orders = [0, 5, 5, 5, 9, 1 << 40, i64::MAX];
    let due =
        |(order, bits): (i64, u128)| sample::agent(workspace, sample::id(bits), Some(Timestamp::from_millis(order)));
    let rows: Vec<Record> = orders.into_iter().zip([9_u128, 4, 1, 7, 3, 2, 8]).map(due).collect();
    let _ = put(store, &rows);
    let mut list: Vec<Entry> = rows.iter().flat_map(|row| wakes(row).map(|order| (order, row.key()))).collect();
    list.sort_unstable();
    // A place where no entry is: what was listed there may have moved since the page before.
    let between = (5, sample::agent(workspace, sample::id(5), None).key());
    let afters = list.iter().copied().chain([between]).map(Some).chain([None]);
    for after in afters {
        for (from, until) in [(0, u128::MAX), (5, 6), (6, 5), (1, 9), (9, 1 << 63), (1 << 63, 1 << 64)] {
            for (newest_first, limit) in [(false, 1), (true, 1), (false, 3), (true, 3), (false, 100), (true, 100)] {
                let range =
                    Range { index: Index::Wake, prefix: shard(workspace), from, until, after, newest_first, limit };
                let seen = scan(store, &range);
                holds(promise, seen == page(&list, &range), &(&range, &seen));
            }
        }
    }
    let walk = |store: &mut S, newest_first| {
        let mut range = Range { newest_first, ..Range::all(Index::Wake, shard(workspace), 2) };
        let mut seen: Vec<Entry> = Vec::new();
        loop {
            let next = scan(store, &range);
            if next.is_empty() {
                return seen;
            }
            range.after = next.last().copied();
            seen.extend(next);
        }
    };
    let promise = "pages joined give the whole list, each row once";
    same(promise, &walk(store, false), &list);
    list.reverse();
    same(promise, &walk(store, true), &list);
}

fn wakes(row: &Record) -> Option<u128> {
    let wake = row.links().into_iter().find(|link| link.index == Index::Wake)?;
    if let Order::At(order) = wake.order { Some(order) } else { None }
}

/// What a scan has to find, the slow way.
fn page(list: &[Entry], range: &Range) -> Vec<Entry> {
    let behind = |entry: &Entry| match range.after {
        None => true,
        Some(after) if range.newest_first => *entry < after,
        Some(after) => *entry > after,
    };
    let mut stretch: Vec<Entry> = list.to_vec();
    stretch.retain(|entry| (range.from..range.until).contains(&entry.0) && behind(entry));
    if range.newest_first {
        stretch.reverse();
    }
    stretch.truncate(range.limit);
    stretch
}

fn what_one_session_commits_the_others_see<S: Store>(one: &mut S, two: &mut S) {
    let promise = "what one session committed every other one reads and lists";
    let (agent, id): (AgentId, ActionId) = (sample::id(1), sample::id(2));
    let row = sample::action(agent, id);
    same(promise, &load_one(two, row.key()).stamp, &Stamp::ABSENT);
    let stamp = put(one, std::slice::from_ref(&row));
    let found = load_one(two, row.key());
    same(promise, &(found.stamp, found.record), &(stamp, Some(row.clone())));
    let listed = scan(two, &Range::all(Index::ActionsOf, agent.bits(), 10));
    same(promise, &listed, &vec![(id.bits(), row.key())]);
    let promise = "stamps grow from session to session";
    let next = put(two, std::slice::from_ref(&row));
    holds(promise, next > stamp, &(stamp, next));
    let last = put(one, std::slice::from_ref(&row));
    holds(promise, last > next, &(next, last));
}

fn the_slower_of_two_writers_conflicts<S: Store>(one: &mut S, two: &mut S) {
    let promise = "a session that decided on a row which another one has changed since conflicts";
    let key = sample::payload(sample::id(50), "").key();
    let text = |text| sample::payload(sample::id(50), text);
    let stamp = put(one, &[text("start")]);
    same(promise, &load_one(two, key).stamp, &stamp);
    let newer = applied(promise, one, &[(key, stamp)], &[text("one")]);
    let moved = conflict(promise, two, &[(key, stamp)], &[text("two")]);
    same(promise, &(moved[0].stamp, moved[0].record.clone()), &(newer, Some(text("one"))));
    let moved = conflict("a check alone conflicts as a write does", two, &[(key, stamp)], &[]);
    same(promise, &moved[0].stamp, &newer);
    let promise = "what a conflict keeps is given back by `release`";
    let newest = applied(promise, one, &[(key, newer)], &[text("one again")]);
    same(promise, &load_one(two, key).stamp, &newest);
    let _ = delete(one, key);
    let promise = "a session does not trust what it saw before another one's commit";
    let moved = conflict(promise, two, &[(key, newest)], &[text("two")]);
    same(promise, &moved[0].record, &None);
}

fn the_second_of_two_inserts_conflicts<S: Store>(one: &mut S, two: &mut S) {
    let promise = "of two sessions that insert one key the second conflicts and sees the first one's row";
    let text = |text| sample::payload(sample::id(60), text);
    let key = text("").key();
    same(promise, &(load_one(one, key).stamp, load_one(two, key).stamp), &(Stamp::ABSENT, Stamp::ABSENT));
    let stamp = applied(promise, one, &[(key, Stamp::ABSENT)], &[text("one")]);
    let moved = conflict(promise, two, &[(key, Stamp::ABSENT)], &[text("two")]);
    same(promise, &(moved[0].stamp, moved[0].record.clone()), &(stamp, Some(text("one"))));
    same(promise, &load_one(one, key).record, &Some(text("one")));
}

fn what_is_committed_outlives_its_session<S: Store>(mut session: impl FnMut() -> S) {
    let promise = "rows, lists and stamps outlive the session that made them";
    let (agent, id): (AgentId, ActionId) = (sample::id(70), sample::id(71));
    let row = sample::action(agent, id);
    let mut first = session();
    let stamp = put(&mut first, std::slice::from_ref(&row));
    let other = put(&mut first, &[sample::payload(id, "x")]);
    let last = delete(&mut first, sample::payload(id, "").key());
    drop(first);
    let mut second = session();
    let found = load_one(&mut second, row.key());
    same(promise, &(found.stamp, found.record), &(stamp, Some(row.clone())));
    let listed = scan(&mut second, &Range::all(Index::ActionsOf, agent.bits(), 10));
    same(promise, &listed, &vec![(id.bits(), row.key())]);
    let next = put(&mut second, &[row]);
    holds("a stamp is not given again after a restart", next > last && next > other, &(other, last, next));
}

// What follows drives a store as a turn does.

/// Where an index lists a row, and which.
type Entry = (u128, Key);

fn load<S: Store>(store: &mut S, keys: &[Key]) -> Vec<Loaded> {
    store.load(keys).unwrap_or_else(|error| panic!("a load of {} keys failed: {error:?}", keys.len()))
}

fn load_one<S: Store>(store: &mut S, key: Key) -> Loaded {
    let mut answers = load(store, &[key]);
    holds("every key is answered exactly once", answers.len() == 1 && answers[0].key == key, &answers);
    answers.remove(0)
}

/// What an index lists; each row found has to be the one that its key gives.
fn scan<S: Store>(store: &mut S, range: &Range) -> Vec<Entry> {
    let found = store.scan(range).unwrap_or_else(|error| panic!("a scan of {range:?} failed: {error:?}"));
    let each = store.scan_each(range).unwrap_or_else(|error| panic!("a scan of {range:?} failed: {error:?}"));
    let each: Vec<_> = each.into_iter().map(|it| (it.order, it.key, it.row.is_ok())).collect();
    same(
        "a scan that tells each row for itself finds the same",
        &each,
        &found.iter().map(|it| (it.order, it.row.key, true)).collect(),
    );
    let keys: Vec<Key> = found.iter().map(|it| it.row.key).collect();
    let loaded: BTreeMap<Key, Loaded> = load(store, &keys).into_iter().map(|row| (row.key, row)).collect();
    for it in &found {
        let promise = "a scan finds rows as a load gives them";
        let row = loaded.get(&it.row.key).map(|row| (row.stamp, &row.record));
        same(promise, &Some((it.row.stamp, &it.row.record)), &row);
    }
    found.into_iter().map(|it| (it.order, it.row.key)).collect()
}

/// Writes rows over whatever is there.
fn put<S: Store>(store: &mut S, rows: &[Record]) -> Stamp {
    let keys: Vec<Key> = rows.iter().map(Record::key).collect();
    let checks: Vec<(Key, Stamp)> = load(store, &keys).into_iter().map(|row| (row.key, row.stamp)).collect();
    applied("a commit whose checks hold is applied", store, &checks, rows)
}

fn delete<S: Store>(store: &mut S, key: Key) -> Stamp {
    let row = load_one(store, key);
    let unlink = row.record.as_ref().map(Record::links).unwrap_or_default();
    let write = Write { key, record: None, unlink, link: Vec::new() };
    let answer = store.commit(&Commit { checks: vec![(key, row.stamp)], writes: vec![write] });
    let Ok(Committed::Applied(stamp)) = answer else { broken("a delete whose check holds is applied", &answer) };
    stamp
}

fn applied<S: Store>(promise: &str, store: &mut S, checks: &[(Key, Stamp)], rows: &[Record]) -> Stamp {
    let commit = commit(store, checks, rows);
    let answer = store.commit(&commit);
    let Ok(Committed::Applied(stamp)) = answer else { broken(promise, &answer) };
    stamp
}

fn conflict<S: Store>(promise: &str, store: &mut S, checks: &[(Key, Stamp)], rows: &[Record]) -> Vec<Loaded> {
    let commit = commit(store, checks, rows);
    let answer = store.commit(&commit);
    let Ok(Committed::Conflict(mut moved)) = answer else { broken(promise, &answer) };
    store.release();
    holds(promise, !moved.is_empty(), &"no row moved");
    moved.sort_unstable_by_key(|row| row.key);
    moved
}

/// A commit as a turn makes it: sorted, and with only those links that differ from what is stored.
fn commit<S: Store>(store: &mut S, checks: &[(Key, Stamp)], rows: &[Record]) -> Commit {
    let mut checks = checks.to_vec();
    checks.sort_unstable();
    let mut writes: Vec<Write> =
        rows.iter().map(|row| write(load_one(store, row.key()).record.as_ref(), row)).collect();
    writes.sort_unstable_by_key(|it| it.key);
    Commit { checks, writes }
}

/// A row's new image over what is stored.
fn write(before: Option<&Record>, record: &Record) -> Write {
    let (before, after) = (before.map(Record::links).unwrap_or_default(), record.links());
    let stays = |link: &Link, others: &[Link]| link.order != Order::Stamp && others.contains(link);
    let unlink = before.iter().filter(|it| !stays(it, &after)).copied().collect();
    let link = after.iter().filter(|it| !stays(it, &before)).copied().collect();
    Write { key: record.key(), record: Some(record.clone()), unlink, link }
}

fn holds(promise: &str, kept: bool, seen: &dyn Debug) {
    if !kept {
        broken(promise, seen)
    }
}

fn same<T: Debug + PartialEq>(promise: &str, seen: &T, expected: &T) {
    assert!(seen == expected, "broken promise: {promise}\n  expected: {expected:?}\n  seen: {seen:?}");
}

fn broken(promise: &str, seen: &dyn Debug) -> ! {
    panic!("broken promise: {promise}\n  seen: {seen:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    /// The reference store keeps every promise.
    #[test]
    fn the_memory_store_passes_the_suite() {
        suite(MemoryStore::new);
        let store = MemoryStore::new();
        sessions(|| store.clone());
        // Without threads, one racer after the other.
        let store = MemoryStore::new();
        races(|| store.clone(), |racers| racers.into_iter().for_each(|racer| racer()));
    }
}
