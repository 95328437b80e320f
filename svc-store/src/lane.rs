//! A lane: one writing session, one cache of rows, one bounded queue, and mostly one thread.
//!
//! Batches need no timer: whatever was queued while the last commit was running is the next batch.
//!
//! **Invariant:** no answer leaves before its commit is durable, and an outcome that nobody knows is never an allow.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
use crate::lasting::{Lasting, with_causes};
use crate::newest::Newest;
use crate::queue::{Job, Queue};
use crate::seal::fresh_seed;

/// What the log calls a batch without answers.
const NOT_COMMITTED: &str = "a batch was not committed";

/// How often in a row a batch is decided anew because another server answers.
const ANEW_MAX: u32 = 3;

/// What a command comes to.
pub(crate) type Outcome = Result<Reply, Failure<StoreError>>;

/// What a lane tells of, and goes by, beside its store.
#[derive(Clone, Debug)]
pub(crate) struct Sees {
    pub(crate) feed: Arc<Feed>,
    pub(crate) newest: Arc<Newest>,
    pub(crate) health: Arc<Health>,
}

/// What runs on the lane's thread, or on that of whoever asks it.
pub(crate) struct Lane<S> {
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock + Send + Sync>,
    pub(crate) sees: Sees,
    pub(crate) batch_max: usize,
    pub(crate) rows: Rows,
    pub(crate) last: Timestamp,
    /// Whether ledger records are placed in the commits that write them: for the one lane of a store that no other process commits to.
    pub(crate) places: bool,
    /// How often in a row what the lane knew of rows was not to be believed.
    pub(crate) anew: u32,
    /// What the log was told of batches that came to nothing: where the disk is full, every batch does.
    pub(crate) troubles: Lasting,
}

/// Why a batch as a whole has no answers.
enum Stopped {
    /// For every command the same.
    All(Failure<StoreError>),
    /// One of them is at fault, and it cannot be told which: each half for itself.
    Poisoned(Failure<StoreError>),
    /// What the lane knew of rows is not to be believed any more; nothing was committed: once more, from what is read then.
    Anew(Failure<StoreError>),
    /// One of them panicked, before anything was committed: each for itself.
    Panicked,
}

/// How a turn's commit came about.
enum End {
    /// The store said so, with its stamp.
    Told(Stamp),
    /// The store did not say, and a row that only this commit can have inserted is there, at this stamp now: others may have written
    /// it, and whatever else this commit wrote, again since. So what the turn knows of rows is not known to be what they are.
    Found(Stamp),
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
            self.serve_all(batch);
        }
    }

    /// Answers every job of a batch.
    pub(crate) fn serve_all(&mut self, batch: Vec<Job>) {
        let mut waits = VecDeque::with_capacity(batch.len());
        let mut commands = Vec::with_capacity(batch.len());
        for job in batch {
            waits.push_back(job.waits);
            commands.push(job.command);
        }
        self.serve(commands, &mut waits);
    }

    /// Answers every command, in order, each once its commit is durable.
    fn serve(&mut self, mut commands: Vec<Command>, waits: &mut VecDeque<oneshot::Sender<Outcome>>) {
        while !commands.is_empty() {
            commands = match self.turn(commands) {
                Ok(Finished { answers, rest, rows, written }) => {
                    (self.rows, self.anew) = (rows, 0);
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
            Stopped::Anew(_) if self.anew < ANEW_MAX => {
                self.anew += 1;
                self.serve(commands, waits);
            }
            // A store that is another one at every look is none to decide on.
            Stopped::Anew(failure) => {
                self.anew = 0;
                self.stopped(commands, Stopped::All(failure), waits);
            }
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
            Ok(Ok(end)) => {
                let (stamp, is_certain) = match end {
                    End::Told(stamp) => (stamp, true),
                    End::Found(stamp) => (stamp, false),
                };
                let mut finished = turn.finish(stamp);
                if !is_certain {
                    finished.rows.clear();
                }
                // A commit without writes comes through on a full disk too.
                if !finished.written.is_empty() {
                    self.sees.health.well();
                    self.troubles.see_grave(NOT_COMMITTED, None);
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
                tracing::error!(error = with_causes(failure), "{NOT_COMMITTED}");
            }
            Stopped::Anew(failure) if self.anew == ANEW_MAX => self.tell(failure),
            Stopped::Anew(_) | Stopped::Panicked => {}
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
    fn tell(&mut self, failure: &Failure<StoreError>) {
        if let Failure::Load(_) | Failure::Commit(_) = failure {
            self.sees.health.failed(self.now());
        }
        match failure {
            Failure::Refused(_) => {}
            Failure::Load(_) | Failure::Contended | Failure::Commit(CommitError::Unavailable(_)) => {
                self.troubles.see_grave(NOT_COMMITTED, Some(failure));
            }
            // Of each of these somebody has to find out what became of it.
            Failure::Commit(CommitError::Rejected(_) | CommitError::Unknown(_)) => {
                tracing::error!(error = with_causes(failure), "{NOT_COMMITTED}");
            }
        }
    }

    /// Gives a turn what it asks for until its commit is durable.
    fn drive(&mut self, turn: &mut Turn<Command>) -> Result<End, Stopped> {
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
                Did::Loaded(Err(error)) if error.is_of_a_row() => {
                    return Err(Stopped::Poisoned(Failure::Load(error)));
                }
                Did::Loaded(Err(error @ StoreError::OtherServer)) => {
                    return Err(Stopped::Anew(Failure::Load(error)));
                }
                Did::Committed(Err(error @ CommitError::Unavailable(StoreError::OtherServer)), _) => {
                    return Err(Stopped::Anew(Failure::Commit(error)));
                }
                Did::Loaded(Err(error)) => return Err(Stopped::All(Failure::Load(error))),
                Did::Committed(Ok(Committed::Applied(stamp)), _) => return Ok(End::Told(stamp)),
                Did::Committed(Ok(Committed::Conflict(moved)), _) => {
                    conflicts += 1;
                    if conflicts > CONFLICTS_MAX {
                        return Err(Stopped::All(Failure::Contended));
                    }
                    turn.handle_conflict(moved);
                }
                Did::Committed(Err(CommitError::Unknown(error)), probe) => {
                    // Looking for it takes as long again where the store is silent.
                    self.sees.health.failed(self.now());
                    let unknown = Stopped::All(Failure::Commit(CommitError::Unknown(error)));
                    return self.read_back(probe).map(End::Found).ok_or(unknown);
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

    /// After an outcome that is not known: the stamp that a row has which only this commit can have inserted, if it is there. If it is
    /// not, nothing is proved.
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
