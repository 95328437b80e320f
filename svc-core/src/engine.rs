//! Store, clock, entropy and keys in one hand: single-threaded, for tests and for embedders without threads.

pub mod select;

use std::sync::Arc;

use crate::command::{Command, EndApproval, Operation, RecordRevoked, Reply, Wake};
use crate::refusal::Refusal;
use crate::rules::evidence::sequence::Sequence;
use crate::rules::gate::freeze::FollowStop;
use crate::state::gate::receipt::Signer;
use crate::store::{Clock, CommitError, Committed, Found, Range, Record, Store};
use crate::turn::{Finished, Reads, Rows, Step, Turn, read};
use crate::value::id::ulid_bits;
use crate::value::link::{Index, SHARDS, instant_order};
use crate::value::seed::Seed;
use crate::value::{Id, Span, Timestamp};

/// How often a commit may find its rows moved before the caller is told to come again.
pub const CONFLICTS_MAX: u32 = 64;
/// How many due rows or waiting records one pass takes from one shard.
pub const TICK_MAX: usize = 512;
/// How long an action can be open after it was asked: the longest wait, the longest receipt, and the day to its lapse.
const OPEN_MAX: Span = Span::hours(168 + 24 + 24);
/// Rows that an engine keeps in memory.
const ROWS_KEPT: usize = 65_536;

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure<E> {
    /// The request is refused; the caller is told why.
    #[error(transparent)]
    Refused(Refusal),
    /// Rows could not be read.
    #[error("rows could not be read")]
    Load(#[source] E),
    /// The commit was not judged.
    #[error("the commit was not judged")]
    Commit(#[source] CommitError<E>),
    /// The rows kept moving.
    #[error("the rows kept moving")]
    Contended,
}

/// Runs operations, one batch after the other; see the module.
pub struct Engine<S, C> {
    store: S,
    clock: C,
    seed: Seed,
    signer: Arc<dyn Signer>,
    rows: Rows,
    last: Timestamp,
}

impl<S, C> std::fmt::Debug for Engine<S, C> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Engine").field("last", &self.last).finish_non_exhaustive()
    }
}

impl<S: Store, C: Clock> Engine<S, C> {
    /// An engine. `seed` must be fresh: each turn takes its own from it.
    pub fn new(store: S, clock: C, seed: Seed, signer: Arc<dyn Signer>) -> Self {
        Self { store, clock, seed, signer, rows: Rows::new(ROWS_KEPT), last: Timestamp::default() }
    }

    /// Runs one operation to its durable end.
    ///
    /// # Errors
    /// [`Failure`]; nothing happened unless the commit is [`CommitError::Unknown`].
    pub fn execute<O: Operation>(&mut self, operation: O) -> Result<O::Answer, Failure<S::Error>> {
        let mut replies = self.execute_batch(vec![operation.into()])?;
        let reply = replies.pop().unwrap_or_else(|| Err(Refusal::internal())).map_err(Failure::Refused)?;
        O::answer(reply, &*self.signer).ok_or_else(|| Failure::Refused(Refusal::internal()))
    }

    /// Runs commands as one batch or, where their needs chain too far, as a few, in order.
    ///
    /// # Errors
    /// [`Failure`]; batches before the failing one have happened.
    pub fn execute_batch(&mut self, commands: Vec<Command>) -> Result<Vec<Result<Reply, Refusal>>, Failure<S::Error>> {
        let (mut rest, mut answers) = (commands, Vec::new());
        while !rest.is_empty() {
            let finished = self.turn(rest)?;
            answers.extend(finished.answers);
            rest = finished.rest;
            self.rows = finished.rows;
        }
        Ok(answers)
    }

    /// Runs a rule that only reads.
    ///
    /// # Errors
    /// What the rule refuses with, or that rows could not be read.
    pub fn read<T>(&mut self, rule: impl Reads<T>) -> Result<T, Failure<S::Error>> {
        let now = self.now();
        let store = &mut self.store;
        let mut rows = Rows::new(0);
        let read = read(now, &mut rows, |keys| store.load(keys), rule).map_err(Failure::Load)?;
        read.map_err(Failure::Refused)
    }

    /// Runs what is due, ledger records that wait for their places among it, and says when to come back.
    ///
    /// # Errors
    /// [`Failure`]; what was done is done, and the rest is still due.
    pub fn tick(&mut self) -> Result<Option<Timestamp>, Failure<S::Error>> {
        let mut next = None::<Timestamp>;
        for shard in 0..SHARDS {
            while self.wake(shard)? == TICK_MAX {}
            while self.sequence(shard)? == TICK_MAX {}
            let first = self.scan(&Range { limit: 1, ..Range::all(Index::Wake, shard, 1) })?;
            let due = first.first().map(|it| Timestamp::from_millis(i64::try_from(it.order).unwrap_or(i64::MAX)));
            next = match (next, due) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(next)
    }

    /// The store.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Who signs.
    pub fn signer(&self) -> &Arc<dyn Signer> {
        &self.signer
    }

    /// Rows of one index.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Failure<S::Error>> {
        self.store.scan(range).map_err(Failure::Load)
    }

    fn now(&mut self) -> Timestamp {
        self.last = self.clock.now().max(self.last);
        self.last
    }

    fn turn(&mut self, commands: Vec<Command>) -> Result<Finished<Command>, Failure<S::Error>> {
        self.seed = self.seed.next();
        let (now, rows) = (self.now(), std::mem::take(&mut self.rows));
        let mut turn = Turn::new(now, self.seed.next_of(b"turn"), commands, rows);
        let mut conflicts = 0;
        loop {
            let failure = match turn.step() {
                Step::Load(keys) => match self.store.load(&keys) {
                    Ok(rows) => {
                        turn.handle_loaded(rows);
                        continue;
                    }
                    Err(error) => Failure::Load(error),
                },
                Step::Commit(commit) => match self.store.commit(commit) {
                    Ok(Committed::Applied(stamp)) => return Ok(turn.finish(stamp)),
                    Ok(Committed::Conflict(moved)) if conflicts < CONFLICTS_MAX => {
                        conflicts += 1;
                        turn.handle_conflict(moved);
                        continue;
                    }
                    Ok(Committed::Conflict(_)) => Failure::Contended,
                    Err(error) => Failure::Commit(error),
                },
            };
            self.store.release();
            self.rows = turn.abandon().1;
            self.rows.clear();
            return Err(failure);
        }
    }

    /// Runs timers of a shard that are due, and gives how many there were.
    fn wake(&mut self, shard: u128) -> Result<usize, Failure<S::Error>> {
        let until = instant_order(self.now()).saturating_add(1);
        let due = self.scan(&Range { until, ..Range::all(Index::Wake, shard, TICK_MAX) })?;
        let count = due.len();
        for found in due {
            for command in self.due(&found)? {
                self.execute_batch(vec![command])?;
            }
        }
        Ok(count)
    }

    /// What a due row needs. An agent that was stopped is followed: what waits is ended, what was allowed is recorded as
    /// revoked, and only then is the agent itself done with.
    fn due(&mut self, found: &Found) -> Result<Vec<Command>, Failure<S::Error>> {
        let mut commands = Vec::new();
        for mut range in followed_by(found) {
            loop {
                let page = self.scan(&range)?;
                commands.extend(following(&page));
                let Some(last) = page.last().filter(|_| page.len() == range.limit) else { break };
                range.after = Some((last.order, last.row.key));
            }
        }
        commands.push(done_with(found));
        Ok(commands)
    }

    /// Places ledger records of a shard, and gives how many waited.
    fn sequence(&mut self, shard: u128) -> Result<usize, Failure<S::Error>> {
        let waiting = self.scan(&Range::all(Index::Unplaced, shard, TICK_MAX))?;
        let count = waiting.len();
        self.execute_batch(sequences(&waiting).into_iter().map(Command::from).collect())?;
        Ok(count)
    }
}

/// What ends a due row's business, after [`following`] was done: for a stop, that stop and no later one.
#[must_use]
pub fn done_with(found: &Found) -> Command {
    match &found.row.record {
        Some(Record::Agent(agent)) => FollowStop { agent: agent.id, epoch: agent.epoch }.into(),
        _ => Wake(found.row.key).into(),
    }
}

/// How often [`done_with`] is to be run for a due row until nothing is left to do: a hold is written a step at a time.
#[must_use]
pub fn steps_of(found: &Found) -> u32 {
    match &found.row.record {
        Some(Record::Hold(hold)) => hold.steps_left(),
        _ => 1,
    }
}

/// What may have to follow a due row: nothing, or where an agent was stopped its approvals that wait and its actions of as
/// far back as one could still be open.
#[must_use]
pub fn followed_by(found: &Found) -> Vec<Range> {
    let Some(Record::Agent(agent)) = &found.row.record else { return Vec::new() };
    let Some(stopped) = agent.following else { return Vec::new() };
    let actions = Range::all(Index::ActionsOf, agent.id.bits(), TICK_MAX);
    vec![
        Range::all(Index::WaitingOf, agent.id.bits(), TICK_MAX),
        Range { from: ulid_bits(stopped.minus(OPEN_MAX), 0), ..actions },
    ]
}

/// What follows a stop for the rows that [`followed_by`] led to.
#[must_use]
pub fn following(page: &[Found]) -> Vec<Command> {
    let command = |found: &Found| match &found.row.record {
        Some(Record::Approval(approval)) => Some(EndApproval(approval.id).into()),
        Some(Record::Action(action)) => {
            let open = action.allowed().filter(|it| it.consumed.is_none() && it.outcome.is_none());
            let unsaid = open.filter(|it| it.lapsed.is_none() && it.revoked.is_none());
            unsaid.map(|_| RecordRevoked(action.id).into())
        }
        _ => None,
    };
    page.iter().filter_map(command).collect()
}

/// The sequencing of records that a scan found waiting: one command a workspace, each in the order of the index.
#[must_use]
pub fn sequences(waiting: &[Found]) -> Vec<Sequence> {
    let mut by_workspace: Vec<Sequence> = Vec::new();
    for found in waiting {
        let Some(Record::Entry(entry)) = &found.row.record else { continue };
        match by_workspace.iter_mut().find(|it| it.workspace == entry.workspace) {
            Some(sequence) => sequence.entries.push(entry.id),
            None => by_workspace.push(Sequence { workspace: entry.workspace, entries: vec![entry.id] }),
        }
    }
    by_workspace
}
