//! Promises that only show where sessions are at work at the same time.
//!
//! **Invariant:** no thread is started here: whoever runs a race brings them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::moments::a_read_is_of_one_moment;
use super::{holds, put, same, scan, write};
use crate::store::{Commit, Committed, Key, Loaded, Range, Record, Stamp, Store};
use crate::testing::sample;
use crate::value::Timestamp;
use crate::value::id::WorkspaceId;
use crate::value::link::{Index, shard};

/// Sessions that commit at once.
const RACERS: u32 = 4;
/// What each of them commits in one race.
const TURNS: u32 = 64;
/// How often a racer looks whether another one has come as far.
pub(super) const LOOKS_MAX: u32 = 10_000;
/// How often a commit is tried: with every conflict somebody else has come further.
pub(super) const TRIES_MAX: u32 = 100_000;

/// What one session does in a race.
pub type Racer<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Shows that commits which share a row come one after the other, also where sessions make them at the same time, and that whoever
/// reads meanwhile sees each of them whole or not at all. Each call of `session` opens one more session on the same store, which is
/// empty at the first call; `at_once` does all of what it is given, each on a thread of its own, and comes back when all of it is
/// done.
///
/// A commit that another one was faster than is told as a conflict, by its first answer: a store that fails then would have a server
/// refuse whatever else it had in the same commit.
///
/// A store whose checks and writes can be told apart by a moment, or two rows of a read, is found with near certainty, not always.
///
/// # Panics
/// Where a promise is broken; the message says which, and what was seen.
pub fn races<S: Store + Send>(mut session: impl FnMut() -> S, at_once: impl Fn(Vec<Racer<'_>>)) {
    let mut sessions: Vec<S> = (0..RACERS).map(|_| session()).collect();
    no_two_count_alike(&mut sessions, &at_once);
    of_those_who_insert_one_does(&mut sessions, &at_once);
    a_read_is_of_one_moment(&mut sessions, &at_once);
}

/// What came of one turn after the other, of all racers.
pub(super) type Seen<T> = Mutex<Vec<Result<T, String>>>;

/// Each racer reads two numbers and writes one more than the greater into one of them: whether what it had read was written by
/// others meanwhile, or what it writes, it counts what was counted.
fn no_two_count_alike<S: Store + Send>(sessions: &mut [S], at_once: &impl Fn(Vec<Racer<'_>>)) {
    let promise = "commits that share a row, read or written, come one after the other";
    let _ = put(&mut sessions[0], &[number(0, 0), number(1, 0)]);
    let seen = Seen::default();
    race(sessions, at_once, &seen, |store, racer, _| count(store, racer % 2));
    let mut counted = all(promise, seen, (RACERS * TURNS) as usize);
    counted.sort_unstable();
    let gone_wrong = counted.iter().zip(1..).find(|((_, number), place)| number != place);
    holds(promise, gone_wrong.is_none(), &("stamp and number, and what the number should be", gone_wrong));
    let stamps_repeat = counted.windows(2).find(|pair| pair[0].0 == pair[1].0);
    holds("a stamp is given once, whoever commits", stamps_repeat.is_none(), &stamps_repeat);
    let last = i64::from(RACERS * TURNS);
    let listed = scan(&mut sessions[0], &Range::all(Index::Wake, shard(workspace()), 10));
    let orders: Vec<i64> = listed.iter().map(|(order, _)| i64::try_from(*order).unwrap_or(i64::MAX)).collect();
    let is_whole = orders.len() == 2 && orders.last() == Some(&last);
    holds("a row is listed once, as it was written last", is_whole, &(orders, last));
}

/// All racers insert the same keys, in the same order.
fn of_those_who_insert_one_does<S: Store + Send>(sessions: &mut [S], at_once: &impl Fn(Vec<Racer<'_>>)) {
    let promise = "of all that insert a key at once one does, and the others see its row";
    let seen = Seen::default();
    race(sessions, at_once, &seen, |store, racer, turn| insert(store, racer, turn));
    let mut by_key: BTreeMap<Key, Vec<(bool, Option<Record>)>> = BTreeMap::new();
    for (key, inserted, row) in all(promise, seen, (RACERS * TURNS) as usize) {
        by_key.entry(key).or_default().push((inserted, row));
    }
    for answers in by_key.into_values() {
        let inserted: Vec<_> = answers.iter().filter(|(inserted, _)| *inserted).collect();
        holds(promise, inserted.len() == 1, &answers);
        holds(promise, answers.iter().all(|(_, row)| *row == inserted[0].1), &answers);
    }
}

/// Has each session do `turn` as often as a race takes, all of them at once.
fn race<S: Store + Send, T: Send>(
    sessions: &mut [S],
    at_once: &impl Fn(Vec<Racer<'_>>),
    seen: &Seen<T>,
    turn: impl Fn(&mut S, u32, u32) -> Result<T, String> + Sync,
) {
    let reached: Vec<AtomicU32> = sessions.iter().map(|_| AtomicU32::new(0)).collect();
    let mut racers: Vec<Racer<'_>> = Vec::new();
    for (store, racer) in sessions.iter_mut().zip(0..) {
        let (turn, reached) = (&turn, &reached);
        racers.push(Box::new(move || {
            for at in 0..TURNS {
                meet(reached, racer, at + 1);
                let done = turn(store, racer, at);
                tell(seen, done);
            }
        }));
    }
    at_once(racers);
}

/// Waits a moment for another racer to come as far, so that both commit at once; in vain where they run one after the other.
fn meet(reached: &[AtomicU32], racer: u32, at: u32) {
    reached[racer as usize].store(at, Ordering::SeqCst);
    let others = || reached.iter().zip(0..).filter(|(_, other)| *other != racer);
    for _ in 0..LOOKS_MAX {
        if others().any(|(it, _)| it.load(Ordering::SeqCst) >= at) {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Notes what a turn came to.
pub(super) fn tell<T>(seen: &Seen<T>, done: Result<T, String>) {
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(done);
}

/// What every turn of every racer came to.
pub(super) fn all<T>(promise: &str, seen: Seen<T>, turns: usize) -> Vec<T> {
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    same("every racer has all its turns", &seen.len(), &turns);
    let told: Result<Vec<T>, String> = seen.into_iter().collect();
    told.unwrap_or_else(|failed| super::broken(promise, &failed))
}

/// Whose the numbers are.
fn workspace() -> WorkspaceId {
    sample::id(5)
}

/// A row that holds a number, and is listed by it.
fn number(which: u32, number: i64) -> Record {
    sample::agent(workspace(), sample::id(u128::from(which) + 1), Some(Timestamp::from_millis(number)))
}

/// Writes one more than the greater of both numbers into one of their rows, however often they move meanwhile; the commit's
/// stamp, and the number.
fn count<S: Store>(store: &mut S, which: u32) -> Result<(Stamp, i64), String> {
    let keys = [number(0, 0).key(), number(1, 0).key()];
    let read = |store: &mut S| store.load(&keys).map_err(|error| format!("a load failed: {error:?}"));
    let mut rows = read(store)?;
    for _ in 0..TRIES_MAX {
        let next = 1 + rows.iter().filter_map(held).max().ok_or("a number is gone")?;
        let record = number(which, next);
        let before = rows.iter().find(|row| row.key == record.key()).and_then(|row| row.record.as_ref());
        let writes = vec![write(before, &record)];
        let mut checks: Vec<(Key, Stamp)> = rows.iter().map(|row| (row.key, row.stamp)).collect();
        checks.sort_unstable();
        match store.commit(&Commit { checks, writes }) {
            Ok(Committed::Applied(stamp)) => return Ok((stamp, next)),
            Ok(Committed::Conflict(moved)) => {
                rows.retain(|row| moved.iter().all(|it| it.key != row.key));
                rows.extend(moved);
            }
            Err(error) => return Err(format!("a commit was not judged: {error:?}")),
        }
    }
    Err("a commit never came through".to_owned())
}

fn held(row: &Loaded) -> Option<i64> {
    let Some(Record::Agent(agent)) = &row.record else { return None };
    agent.following.map(Timestamp::as_millis)
}

/// Inserts the `turn`-th key; whether this was who did, and the row that there is now.
fn insert<S: Store>(store: &mut S, racer: u32, turn: u32) -> Result<(Key, bool, Option<Record>), String> {
    let record = sample::payload(sample::id(1_000 + u128::from(turn)), &format!("of racer {racer}"));
    let key = record.key();
    let commit = Commit { checks: vec![(key, Stamp::ABSENT)], writes: vec![write(None, &record)] };
    match store.commit(&commit) {
        Ok(Committed::Applied(_)) => Ok((key, true, Some(record))),
        Ok(Committed::Conflict(moved)) => {
            store.release();
            Ok((key, false, moved.into_iter().find(|row| row.key == key).and_then(|row| row.record)))
        }
        Err(error) => Err(format!("a commit was not judged: {error:?}")),
    }
}
