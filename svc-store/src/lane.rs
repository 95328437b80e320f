//! A lane: one thread, one writing session, one cache of rows, one bounded queue.
//!
//! Batches need no timer: whatever was queued while the last commit was running is the next batch.
//!
//! **Invariant:** no answer leaves before its commit is durable, and an outcome that nobody knows is never an allow.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use svc_core::command::{Command, Reply};
use svc_core::engine::{CONFLICTS_MAX, Failure};
use svc_core::refusal::Refusal;
use svc_core::store::{Clock, Commit, CommitError, Committed, Key, Loaded, Stamp, Store, all_answered};
use svc_core::turn::{Finished, Rows, Step, Turn};
use svc_core::value::Timestamp;
use svc_core::value::seed::Seed;
use tokio::sync::oneshot;

use crate::error::{StoreError, caught};
use crate::feed::Feed;
use crate::health::Health;
use crate::newest::Newest;
use crate::parking::ENOUGH;
use crate::seal::fresh_seed;

/// What a command comes to.
pub(crate) type Outcome = Result<Reply, Failure<StoreError>>;

/// A command in the queue, and who waits for it.
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) waits: oneshot::Sender<Outcome>,
}

/// What a lane does when a job is queued for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeps {
    /// It is at work, or woken already, and comes for the job by itself.
    No,
    /// It has to be woken, and more may be queued before.
    WithLittleToDo,
    /// It has to be woken now.
    WithEnoughToDo,
}

/// The queue before a lane.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    limit: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    idle: bool,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { waiting: Mutex::default(), filled: Condvar::new(), limit }
    }

    /// Puts a job behind the others. Gives whether the lane sleeps and has to be woken, once or later.
    ///
    /// # Errors
    /// The queue is full, or closed.
    pub(crate) fn push(&self, job: Job) -> Result<Sleeps, Failure<StoreError>> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(Failure::Load(StoreError::Closed));
        }
        if waiting.jobs.len() >= self.limit {
            return Err(Failure::Refused(Refusal::not_ready()));
        }
        waiting.jobs.push_back(job);
        Ok(match (waiting.idle, waiting.jobs.len() >= ENOUGH) {
            (false, _) => Sleeps::No,
            (true, false) => Sleeps::WithLittleToDo,
            (true, true) => Sleeps::WithEnoughToDo,
        })
    }

    /// Wakes the lane, if it sleeps while there is work.
    pub(crate) fn wake(&self) {
        let mut waiting = self.lock();
        let wake = !waiting.jobs.is_empty() && std::mem::take(&mut waiting.idle);
        drop(waiting);
        if wake {
            self.filled.notify_one();
        }
    }

    /// How many jobs wait.
    pub(crate) fn depth(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Takes no more jobs; those that wait are still done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// Takes no more jobs; those that wait hear that nobody does them.
    pub(crate) fn end(&self) {
        self.close();
        let left = std::mem::take(&mut self.lock().jobs);
        for job in left {
            let _ = job.waits.send(Err(Failure::Load(StoreError::Closed)));
        }
    }

    /// The next batch, in order; empty when the queue is closed and done.
    fn take(&self, most: usize) -> Vec<Job> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return Vec::new();
            }
            waiting.idle = true;
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.idle = false;
        let count = waiting.jobs.len().min(most);
        waiting.jobs.drain(..count).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue").field("waiting", &self.lock().jobs.len()).finish_non_exhaustive()
    }
}

/// What a lane tells of, and goes by, beside its store.
#[derive(Clone, Debug)]
pub(crate) struct Sees {
    pub(crate) feed: Arc<Feed>,
    pub(crate) newest: Arc<Newest>,
    pub(crate) health: Arc<Health>,
}

/// What runs on the lane's thread.
pub(crate) struct Lane<S> {
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock + Send + Sync>,
    pub(crate) sees: Sees,
    pub(crate) batch_max: usize,
    pub(crate) rows: Rows,
    pub(crate) last: Timestamp,
    /// Whether ledger records are placed in the commits that write them: for the one lane of a store that no other process commits to.
    pub(crate) places: bool,
}

/// Why a batch as a whole has no answers.
enum Stopped {
    /// For every command the same.
    All(Failure<StoreError>),
    /// One of them is at fault, and it cannot be told which: each half for itself.
    Poisoned(Failure<StoreError>),
    /// One of them panicked, before anything was committed: each for itself.
    Panicked,
}

/// A step's outcome, free of the turn that asked for it.
enum Did {
    Loaded(Result<Vec<Loaded>, StoreError>),
    Committed(Result<Committed, CommitError<StoreError>>, Option<Key>),
}

impl<S: Store> Lane<S> {
    /// Serves the queue until it is closed and empty.
    pub(crate) fn run(&mut self, queue: &Queue) {
        loop {
            let batch = queue.take(self.batch_max);
            if batch.is_empty() {
                return;
            }
            let mut waits = VecDeque::with_capacity(batch.len());
            let mut commands = Vec::with_capacity(batch.len());
            for job in batch {
                waits.push_back(job.waits);
                commands.push(job.command);
            }
            self.serve(commands, &mut waits);
        }
    }

    /// Answers every command, in order, each once its commit is durable.
    fn serve(&mut self, mut commands: Vec<Command>, waits: &mut VecDeque<oneshot::Sender<Outcome>>) {
        while !commands.is_empty() {
            commands = match self.turn(commands) {
                Ok(Finished { answers, rest, rows, written }) => {
                    self.rows = rows;
                    if !written.is_empty() {
                        self.sees.newest.see(self.last);
                    }
                    self.sees.feed.tell(&written);
                    for answer in answers {
                        reply(waits, answer.map_err(Failure::Refused));
                    }
                    rest
                }
                Err((rest, stopped)) => {
                    self.stopped(rest, stopped, waits);
                    return;
                }
            };
        }
    }

    /// What becomes of commands whose turn came to nothing.
    fn stopped(
        &mut self,
        mut commands: Vec<Command>,
        stopped: Stopped,
        waits: &mut VecDeque<oneshot::Sender<Outcome>>,
    ) {
        match stopped {
            Stopped::All(failure) => {
                for _ in commands {
                    reply(waits, Err(failure.clone()));
                }
            }
            Stopped::Poisoned(_) if commands.len() > 1 => {
                let second = commands.split_off(commands.len() / 2);
                self.serve(commands, waits);
                self.serve(second, waits);
            }
            Stopped::Poisoned(failure) => reply(waits, Err(failure)),
            Stopped::Panicked if commands.len() > 1 => {
                for command in commands {
                    self.serve(vec![command], waits);
                }
            }
            Stopped::Panicked => reply(waits, Err(Failure::Refused(Refusal::internal()))),
        }
    }

    /// Decides commands and makes the decisions durable; or gives the commands back, and why nothing came of them.
    fn turn(&mut self, commands: Vec<Command>) -> Result<Finished<Command>, (Vec<Command>, Stopped)> {
        let _at_work = self.sees.health.begins();
        let seed = match caught(|| self.begin()).unwrap_or_else(|panicked| Err(Failure::Load(panicked))) {
            Ok(seed) => seed,
            Err(failure) => {
                self.tell(&failure);
                return Err((commands, Stopped::All(failure)));
            }
        };
        let mut turn = Turn::new(self.last, seed, commands, std::mem::take(&mut self.rows)).closing(self.places);
        // A panic leaves the turn's commands as they were, and its rows are dropped below: nothing else is shared.
        let driven = catch_unwind(AssertUnwindSafe(|| self.drive(&mut turn)));
        let stopped = match driven {
            Ok(Ok(stamp)) => {
                let finished = turn.finish(stamp);
                // A commit without writes comes through on a full disk too.
                if !finished.written.is_empty() {
                    self.sees.health.well();
                }
                return Ok(finished);
            }
            Ok(Err(stopped)) => stopped,
            Err(_) => {
                tracing::error!(
                    "a rule panicked, or the store while it was read; the batch is run again, command by command"
                );
                Stopped::Panicked
            }
        };
        if caught(|| self.store.release()).is_err() {
            self.sees.health.failed(self.now());
        }
        match &stopped {
            Stopped::All(failure) => self.tell(failure),
            Stopped::Poisoned(failure) => {
                tracing::error!(error = failure as &dyn std::error::Error, "a batch was not committed");
            }
            Stopped::Panicked => {}
        }
        let (commands, mut rows) = turn.abandon();
        rows.clear();
        self.rows = rows;
        Err((commands, stopped))
    }

    /// The instant that the next turn decides at, in `last`, and its seed.
    fn begin(&mut self) -> Result<Seed, Failure<StoreError>> {
        // Whatever is asked: a record of a time that is over would stand behind newer ones.
        if self.sees.newest.is_ahead_of(&*self.clock) {
            return Err(Failure::Refused(Refusal::not_ready()));
        }
        let seed = fresh_seed().map_err(Failure::Load)?;
        self.last = self.clock.now().max(self.last);
        Ok(seed)
    }

    /// The time at which something has failed: a store may take longer to fail than what it says of itself is believed for.
    fn now(&self) -> Timestamp {
        caught(|| self.clock.now()).map_or(self.last, |it| it.max(self.last))
    }

    /// Notes why a whole batch has no answers.
    fn tell(&self, failure: &Failure<StoreError>) {
        if let Failure::Load(_) | Failure::Commit(_) = failure {
            self.sees.health.failed(self.now());
        }
        if !matches!(failure, Failure::Refused(_)) {
            tracing::error!(error = failure as &dyn std::error::Error, "a batch was not committed");
        }
    }

    /// Gives a turn what it asks for until its commit is durable.
    fn drive(&mut self, turn: &mut Turn<Command>) -> Result<Stamp, Stopped> {
        let mut conflicts = 0;
        loop {
            let did = match turn.step() {
                Step::Load(keys) => Did::Loaded(self.load(&keys)),
                Step::Commit(commit) => {
                    let outcome = self.commit(commit);
                    let unknown = matches!(outcome, Err(CommitError::Unknown(_)));
                    Did::Committed(outcome, if unknown { fresh_key(commit) } else { None })
                }
            };
            match did {
                Did::Loaded(Ok(rows)) => turn.handle_loaded(rows),
                Did::Loaded(Err(error @ StoreError::Undecodable(_))) => {
                    return Err(Stopped::Poisoned(Failure::Load(error)));
                }
                Did::Loaded(Err(error)) => return Err(Stopped::All(Failure::Load(error))),
                Did::Committed(Ok(Committed::Applied(stamp)), _) => return Ok(stamp),
                Did::Committed(Ok(Committed::Conflict(moved)), _) => {
                    conflicts += 1;
                    if conflicts > CONFLICTS_MAX {
                        return Err(Stopped::All(Failure::Contended));
                    }
                    turn.handle_conflict(moved);
                }
                Did::Committed(Err(CommitError::Unknown(error)), probe) => {
                    let unknown = Stopped::All(Failure::Commit(CommitError::Unknown(error)));
                    return self.read_back(probe).ok_or(unknown);
                }
                Did::Committed(Err(error @ CommitError::Rejected(_)), _) => {
                    return Err(Stopped::Poisoned(Failure::Commit(error)));
                }
                Did::Committed(Err(error @ CommitError::Unavailable(_)), _) => {
                    return Err(Stopped::All(Failure::Commit(error)));
                }
            }
        }
    }

    /// The rows that a turn asks for. Without one of them it would ask again for ever.
    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        let rows = self.store.load(keys).map_err(StoreError::of)?;
        if all_answered(keys, &rows) { Ok(rows) } else { Err(StoreError::LeftOut) }
    }

    /// Commits. A store that panics may have applied it: run again, everything would happen twice.
    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<StoreError>> {
        let done = caught(|| self.store.commit(commit).map_err(own_error));
        done.unwrap_or_else(|panicked| Err(CommitError::Unknown(panicked)))
    }

    /// After an outcome that is not known: the stamp of a row that only this commit can have inserted, if it is there. If it
    /// is not, nothing is proved.
    fn read_back(&mut self, probe: Option<Key>) -> Option<Stamp> {
        let rows = caught(|| {
            self.store.release();
            self.store.load(&[probe?]).ok()
        });
        rows.ok()??.into_iter().find(|row| row.record.is_some()).map(|row| row.stamp)
    }
}

/// A ledger record that this commit inserts: its id is fresh, so nobody else can have written it.
fn fresh_key(commit: &Commit) -> Option<Key> {
    let is_new = |key: &Key| {
        let at = commit.checks.binary_search_by_key(key, |(checked, _)| *checked).ok();
        at.and_then(|at| commit.checks.get(at)).is_some_and(|(_, seen)| *seen == Stamp::ABSENT)
    };
    let inserts = commit.writes.iter().filter(|write| write.record.is_some()).map(|write| write.key);
    inserts.filter(|key| matches!(key, Key::Entry(_))).find(is_new)
}

fn own_error<E: std::error::Error + Send + Sync + 'static>(error: CommitError<E>) -> CommitError<StoreError> {
    match error {
        CommitError::Unavailable(error) => CommitError::Unavailable(StoreError::of(error)),
        CommitError::Rejected(error) => CommitError::Rejected(StoreError::of(error)),
        CommitError::Unknown(error) => CommitError::Unknown(StoreError::of(error)),
    }
}

/// Answers whoever waits next. One that has stopped waiting still has its command done.
fn reply(waits: &mut VecDeque<oneshot::Sender<Outcome>>, outcome: Outcome) {
    if let Some(first) = waits.pop_front() {
        let _ = first.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use svc_core::value::Id as _;
    use svc_core::value::id::WorkspaceId;

    use super::*;

    /// A lane that sleeps is worth waking at once when so much waits for it; one that is at work comes by itself.
    #[test]
    fn a_lane_is_woken_at_once_for_enough() {
        let queue = Arc::new(Queue::new(1_000));
        let push = || {
            let (waits, _) = oneshot::channel();
            let command = Command::Wake(svc_core::command::Wake(Key::Workspace(WorkspaceId::from_bits(1))));
            queue.push(Job { command, waits }).ok()
        };
        assert_eq!(push(), Some(Sleeps::No), "nobody has slept yet");
        assert_eq!(queue.take(256).len(), 1);
        let taking = Arc::clone(&queue);
        let lane = std::thread::spawn(move || taking.take(256).len());
        while !queue.lock().idle {
            std::thread::yield_now();
        }
        for _ in 1..ENOUGH {
            assert_eq!(push(), Some(Sleeps::WithLittleToDo));
        }
        assert_eq!(push(), Some(Sleeps::WithEnoughToDo));
        queue.wake();
        assert_eq!(lane.join().ok(), Some(ENOUGH));
    }
}
