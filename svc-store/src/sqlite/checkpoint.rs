//! Moves committed pages from the log into the database, on a thread of its own, and keeps the log short.
//!
//! A passive checkpoint never stops the writer, but under load the writer stays ahead of it and the log grows without end.
//! So past a size the writer is asked to wait before its next commit, and one more passive checkpoint, with little left to
//! do, empties the log: the writer's next commit begins it again at its start. A reader that keeps an old snapshot holds the
//! log back until it is done, and nobody waits for it.
//!
//! After an erasure the log is cut off as soon as nobody reads from it: what was erased stands in it until then. Whether a log that was
//! there before, or that another process wrote to, holds such texts is not known, so it is cut off as well.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::errors::database;
use super::session::number;
use super::statements::LAST_STAMP;
use crate::error::StoreError;
use crate::lasting::Lasting;

/// When pages are moved, and from when on the writer waits for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// After how many written rows the pages are moved.
    pub(super) rows_between: usize,
    /// How many rows may be written before the writer waits for a checkpoint that has not even come about.
    pub(super) rows_ahead_max: usize,
    /// From how many pages in the log on the writer waits while the last of them are moved.
    pub(super) log_pages_max: i64,
}

impl Default for Limits {
    /// 96 MiB of log at pages of 4 KiB. Each checkpoint's sync holds up the log's for some 10 ms: three times as many of them, and
    /// of a third of the size, took 3 % less processor time and had a 99th percentile twice as long.
    fn default() -> Self {
        Self { rows_between: 12_288, rows_ahead_max: 65_536, log_pages_max: 24_576 }
    }
}

/// With at most so many pages left, the writer's wait is short.
const REST_PAGES_MAX: i64 = 512;
/// How often the rest is brought down before the writer waits for what is left.
const ROUNDS_MAX: usize = 4;
/// How long the writer waits at most, should the checkpoint take longer than it should.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// How soon is tried again to cut the log off while somebody reads from it.
const AGAIN: Duration = Duration::from_secs(1);

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// With its first column 1 where somebody still reads from the log.
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// What the writer and the thread tell each other.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    limits: Limits,
    /// Written since the last checkpoint began.
    rows: AtomicUsize,
    held: AtomicBool,
    /// Held over a commit, and over the checkpoint that empties the log. By these two alone: nobody else waits for either.
    writing: Mutex<()>,
    state: Mutex<State>,
    due: Condvar,
    free: Condvar,
}

#[derive(Debug, Default)]
struct State {
    due: bool,
    stop: bool,
    /// The log may hold what was erased.
    tainted: bool,
    /// It holds what was erased through this store, which cuts it off before it ends.
    erased: bool,
}

impl Checkpoints {
    /// `log_stood` says that a log was there before anything was opened: whoever wrote it may have been killed before it was cut off.
    pub(super) fn new(limits: Limits, log_stood: bool) -> Self {
        let state = Mutex::new(State { tainted: log_stood, ..State::default() });
        Self { limits, state, ..Self::default() }
    }

    /// The writer, before a commit: its turn, once a checkpoint is done that would never catch up otherwise.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        if self.is_held() {
            drop(self.free.wait_timeout_while(self.lock(), WAIT_MAX, |_| self.is_held()));
        }
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, after a commit.
    pub(super) fn wrote(&self, rows: usize) {
        let before = self.rows.fetch_add(rows, Ordering::AcqRel);
        if before < self.limits.rows_between && before.saturating_add(rows) >= self.limits.rows_between {
            self.lock().due = true;
            self.due.notify_one();
        }
    }

    /// The writer, after a commit that erased.
    pub(super) fn erased(&self) {
        let mut state = self.lock();
        (state.due, state.tainted, state.erased) = (true, true, true);
        drop(state);
        self.due.notify_one();
    }

    /// The writer, where another connection has committed: it may have erased and ended.
    pub(super) fn others_wrote(&self) {
        let was_tainted = std::mem::replace(&mut self.lock().tainted, true);
        if !was_tainted {
            self.due.notify_one();
        }
    }

    /// Whether the log is to be cut off.
    #[cfg(test)]
    pub(super) fn is_tainted(&self) -> bool {
        self.lock().tainted
    }

    fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) || self.rows.load(Ordering::Acquire) >= self.limits.rows_ahead_max
    }

    fn stop(&self) {
        self.lock().stop = true;
        self.due.notify_one();
    }

    /// Waits until pages are to be moved; false when it is over.
    fn next(&self) -> bool {
        let idle = |state: &mut State| !state.due && !state.stop;
        let clean = |state: &mut State| idle(state) && !state.tainted;
        let state = self.due.wait_while(self.lock(), clean).unwrap_or_else(PoisonError::into_inner);
        let mut state = self.due.wait_timeout_while(state, AGAIN, idle).unwrap_or_else(PoisonError::into_inner).0;
        state.due = false;
        !state.stop
    }

    /// A checkpoint begins: the rows written from here on are the next one's.
    fn begin(&self) {
        self.rows.store(0, Ordering::Release);
        self.hold(false);
    }

    fn hold(&self, held: bool) {
        // Under the lock, so that a writer about to wait does not miss the change.
        let state = self.lock();
        self.held.store(held, Ordering::Release);
        drop(state);
        self.free.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread; ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    shared: Arc<Checkpoints>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(database: &Path, shared: Arc<Checkpoints>) -> Result<Self, StoreError> {
        let conn = super::connect(database)?;
        // Commits wait for what this connection does: it does not wait for readers.
        conn.busy_timeout(Duration::ZERO).map_err(super::errors::database)?;
        // A first read opens the log, and keeps it while the thread runs.
        number(&conn, LAST_STAMP).map_err(super::errors::database)?;
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("svc-checkpoint".to_owned())
            .spawn(move || run(&conn, &own))
            .map_err(|cause| StoreError::Thread(Arc::new(cause)))?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to tell: the log is whole without it.
            let _ = thread.join();
        }
    }
}

fn run(conn: &Connection, shared: &Checkpoints) {
    let mut trouble = Lasting::default();
    while shared.next() {
        step(conn, shared, &mut trouble);
    }
    // A command erases and ends: it waits a moment for those who read.
    if shared.lock().erased && conn.busy_timeout(AGAIN).is_ok() {
        step(conn, shared, &mut trouble);
    }
}

fn step(conn: &Connection, shared: &Checkpoints, trouble: &mut Lasting) {
    shared.begin();
    let mut state = shared.lock();
    let (tainted, erased) = (std::mem::take(&mut state.tainted), std::mem::take(&mut state.erased));
    drop(state);
    let done = shorten(conn, shared).and_then(|rest| if tainted { cut(conn, shared, rest) } else { Ok(true) });
    if !matches!(done, Ok(true)) {
        let mut state = shared.lock();
        state.tainted |= tainted;
        state.erased |= erased;
    }
    // The log grows meanwhile; the next commits bring the next try.
    trouble.see("the database's log could not be shortened", done.as_ref().err().map(|it| it as &dyn Error));
}

/// Moves pages, and empties the log where it is long; how many pages are left to move.
fn shorten(conn: &Connection, shared: &Checkpoints) -> Result<i64, StoreError> {
    let mut rest = 0;
    for _ in 0..ROUNDS_MAX {
        let (log, moved) = passive(conn)?;
        rest = log.saturating_sub(moved);
        if log < shared.limits.log_pages_max {
            return Ok(rest);
        }
        if rest < REST_PAGES_MAX {
            break;
        }
    }
    shared.hold(true);
    let turn = shared.writing.lock().unwrap_or_else(PoisonError::into_inner);
    let done = passive(conn);
    drop(turn);
    shared.hold(false);
    done.map(|_| rest)
}

/// Cuts the log off, whose last `rest` pages are left to move; whether it could be done.
fn cut(conn: &Connection, shared: &Checkpoints, rest: i64) -> Result<bool, StoreError> {
    if rest >= REST_PAGES_MAX {
        return Ok(false);
    }
    let turn = shared.writing.lock().unwrap_or_else(PoisonError::into_inner);
    let busy: Result<i64, _> = conn.query_row(TRUNCATE, [], |row| row.get(0));
    drop(turn);
    Ok(busy.map_err(database)? == 0)
}

/// Pages in the log, and how many of them have been moved.
fn passive(conn: &Connection) -> Result<(i64, i64), StoreError> {
    let mut statement = conn.prepare_cached(PASSIVE).map_err(database)?;
    statement.query_row([], |row| Ok((row.get(1)?, row.get(2)?))).map_err(database)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A log that cannot be shortened, as on a full disk, is told of once and not at every try; and anew once it could be meanwhile.
    #[test]
    fn what_lasts_is_told_once() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("other");
        std::fs::write(&file, "no database".repeat(500)).unwrap();
        let (broken, whole) = (Connection::open(&file).unwrap(), Connection::open_in_memory().unwrap());
        let (shared, mut trouble) = (Checkpoints::new(Limits::default(), false), Lasting::default());
        let mut told = |conn| {
            step(conn, &shared, &mut trouble);
            trouble.told()
        };
        assert_eq!([&broken, &broken, &whole, &broken].map(&mut told), [1, 1, 0, 1]);
    }
}
