//! Promises that only show where sessions read while another one commits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::races::{LOOKS_MAX, Racer, Seen, TRIES_MAX, all, tell};
use super::{holds, put, write};
use crate::store::{Commit, Committed, Key, Loaded, Range, Record, Stamp, Store};
use crate::testing::sample;
use crate::value::Timestamp;
use crate::value::id::WorkspaceId;
use crate::value::link::{Index, instant_order, shard};

/// What the writer commits while the others read.
const COMMITS: i64 = 128;
/// How often each of the others reads at most; where all run at once the writer is done long before.
const READS_MAX: u32 = 10_000;

/// What the writer and the readers know of one another.
#[derive(Default)]
struct Progress {
    reads: AtomicU32,
    is_over: AtomicBool,
}

/// Tells the readers that the writer is done, also where it panics. A reader that sees what cannot be ends the race, too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One session writes a number into rows of two tables, which are listed by it, again and again; the others load them, and read the
/// list. Whatever they see is of one number.
pub(super) fn a_read_is_of_one_moment<S: Store + Send>(sessions: &mut [S], at_once: &impl Fn(Vec<Racer<'_>>)) {
    let promise =
        "a load or a scan answers from one moment, and shows a commit whole, its index entries too, or not at all";
    let Some((writer, readers)) = sessions.split_first_mut() else { return };
    let _ = put(writer, &numbered(0));
    let (progress, seen) = (Progress::default(), Seen::<u32>::default());
    let count = readers.len() + 1;
    let (at, answers) = (&progress, &seen);
    // The writer comes first: a reader that is run without it would wait for its end.
    let mut racers: Vec<Racer<'_>> = vec![Box::new(move || {
        let over = Over(&at.is_over);
        tell(answers, write_on(writer, at));
        drop(over);
    })];
    for reader in readers {
        racers.push(Box::new(move || {
            let read = read_on(reader, at);
            at.is_over.fetch_or(read.is_err(), Ordering::SeqCst);
            tell(answers, read);
        }));
    }
    at_once(racers);
    let done = all(promise, seen, count);
    holds("whoever reads is answered while others commit", done.iter().all(|it| *it > 0), &done);
}

/// The rows that have one number, sorted by key.
fn numbered(number: i64) -> [Record; 3] {
    let (workspace, at): (WorkspaceId, _) = (sample::id(6), Timestamp::from_millis(number));
    let agent = |bits| sample::agent(workspace, sample::id(bits), Some(at));
    let mut rows = [agent(101), agent(102), sample::approval(workspace, sample::id(103), at)];
    rows.sort_unstable_by_key(Record::key);
    rows
}

/// Their keys, sorted.
fn keys() -> [Key; 3] {
    let mut keys = [Key::Agent(sample::id(101)), Key::Agent(sample::id(102)), Key::Approval(sample::id(103))];
    keys.sort_unstable();
    keys
}

fn number_of(row: &Loaded) -> Option<i64> {
    match &row.record {
        Some(Record::Agent(agent)) => agent.following.map(Timestamp::as_millis),
        Some(Record::Approval(approval)) => Some(approval.expires_at.as_millis()),
        _ => None,
    }
}

/// Commits one number after the other; how many.
fn write_on<S: Store>(store: &mut S, progress: &Progress) -> Result<u32, String> {
    let mut rows = store.load(&keys()).map_err(|error| format!("a load failed: {error:?}"))?;
    let mut done = 0;
    for number in 1..=COMMITS {
        // A reader has seen enough.
        if progress.is_over.load(Ordering::SeqCst) {
            break;
        }
        await_reader(progress);
        let (before, after) = (numbered(number - 1), numbered(number));
        let writes = before.iter().zip(&after).map(|(before, after)| write(Some(before), after)).collect();
        let mut commit = Commit { checks: Vec::new(), writes };
        for tries in 1.. {
            commit.checks = rows.iter().map(|row| (row.key, row.stamp)).collect();
            commit.checks.sort_unstable();
            match store.commit(&commit) {
                Ok(Committed::Applied(stamp)) => {
                    rows.iter_mut().for_each(|row| row.stamp = stamp);
                    break;
                }
                // Nobody else writes, but a store may have had other reasons.
                Ok(Committed::Conflict(moved)) if tries < TRIES_MAX => {
                    rows.retain(|row| moved.iter().all(|it| it.key != row.key));
                    rows.extend(moved);
                }
                Ok(Committed::Conflict(_)) => return Err("a commit never came through".to_owned()),
                Err(error) => return Err(format!("a commit was not judged: {error:?}")),
            }
        }
        done += 1;
    }
    Ok(done)
}

/// Waits a moment for somebody to read what was committed last; in vain where nobody reads at the same time.
fn await_reader(progress: &Progress) {
    let before = progress.reads.load(Ordering::SeqCst);
    for _ in 0..LOOKS_MAX {
        if progress.reads.load(Ordering::SeqCst) != before {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Reads until the writer is done, by key and by list in turns; how often.
fn read_on<S: Store>(store: &mut S, progress: &Progress) -> Result<u32, String> {
    let mut reads = 0;
    while reads < READS_MAX {
        let is_last = progress.is_over.load(Ordering::SeqCst);
        of_one_moment("a load", &load(store)?)?;
        of_one_moment("a scan", &scan(store)?)?;
        reads += 1;
        progress.reads.fetch_add(1, Ordering::SeqCst);
        if is_last {
            break;
        }
    }
    Ok(reads)
}

/// A row, the number that it is found by, and its stamp.
type Sight = (Key, Option<i64>, Stamp);

fn load<S: Store>(store: &mut S) -> Result<Vec<Sight>, String> {
    let rows = store.load(&keys()).map_err(|error| format!("a load failed: {error:?}"))?;
    Ok(rows.iter().map(|row| (row.key, number_of(row), row.stamp)).collect())
}

/// What the list has; a row that is found by another number than it holds has none.
fn scan<S: Store>(store: &mut S) -> Result<Vec<Sight>, String> {
    let range = Range::all(Index::Wake, shard(sample::id(6)), 10);
    let found = store.scan(&range).map_err(|error| format!("a scan failed: {error:?}"))?;
    let listed = |row: &Loaded, order| number_of(row).filter(|it| instant_order(Timestamp::from_millis(*it)) == order);
    Ok(found.iter().map(|it| (it.row.key, listed(&it.row, it.order), it.row.stamp)).collect())
}

/// Whether all rows are seen, each once, as one commit wrote them.
fn of_one_moment(what: &str, seen: &[Sight]) -> Result<(), String> {
    let mut rows: Vec<Key> = seen.iter().map(|(key, ..)| *key).collect();
    rows.sort_unstable();
    let is_whole = rows == keys();
    let of_first = |(_, number, stamp): &Sight| number.is_some() && (*number, *stamp) == (seen[0].1, seen[0].2);
    if is_whole && seen.iter().all(of_first) { Ok(()) } else { Err(format!("{what} saw {seen:?}")) }
}
