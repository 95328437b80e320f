//! Store, clock, entropy and keys in one hand: single-threaded, for tests and for embedders without threads.

pub mod naming;
pub mod select;

use std::sync::Arc;

use crate::command::{Command, Operation, Reply, Wake};
use crate::refusal::Refusal;
use crate::rules::connect::end::EndLeft;
use crate::rules::connect::sweep::SweepTokens;
use crate::rules::evidence::sequence::Sequence;
use crate::rules::evidence::sweep::{SweepClosed, SweepJobs, SweepOld};
use crate::rules::gate::freeze::{EndApproval, FollowStop, RecordRevoked};
use crate::rules::people::leave::{EndKey, FollowLeave, PassAgent};
use crate::rules::people::teams::DisownTeam;
use crate::state::evidence::Disclosure;
use crate::state::gate::receipt::Signer;
use crate::state::gate::{Agent, JOB_KEPT, OPEN_MAX, REPLAY_KEPT, Sweep};
use crate::store::{Clock, CommitError, Committed, Found, Key, Range, Record, Store, all_answered};
use crate::turn::{Finished, Reads, Rows, Step, Turn, read};
use crate::value::digest::RefreshId;
use crate::value::id::{ActionId, ConnectionId, DeliveryId, EvidenceId, PrincipalId, WorkspaceId, ulid_bits};
use crate::value::link::{Index, SHARDS, instant_order};
use crate::value::seed::Seed;
use crate::value::{Id, Span, Timestamp};

/// How often a commit may find its rows moved before the caller is told to come again.
pub const CONFLICTS_MAX: u32 = 64;
/// How many due rows or waiting records one pass takes from one shard.
const TICK_MAX: usize = 512;
/// Rows that one step of a sweep looks at.
const SWEPT_MAX: usize = 128;
/// Rows that an engine keeps in memory.
const ROWS_KEPT: usize = 65_536;

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure<E> {
    /// The request is refused; the caller is told why.
    #[error(transparent)]
    Refused(Refusal),
    /// Rows could not be read, or something else is missing that it takes: the source says what.
    #[error("the gate could not do it")]
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
    places: bool,
}

impl<S, C> std::fmt::Debug for Engine<S, C> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Engine").field("last", &self.last).finish_non_exhaustive()
    }
}

impl<S: Store, C: Clock> Engine<S, C> {
    /// An engine. `seed` must be fresh: each turn takes its own from it. It takes the clock's word for what time it is: whether that is
    /// behind what the store holds already, as after the clock was set back, is for its owner to see to, as `svc_store::Gate` does,
    /// which decides nothing then.
    pub fn new(store: S, clock: C, seed: Seed, signer: Arc<dyn Signer>) -> Self {
        Self { store, clock, seed, signer, rows: Rows::new(ROWS_KEPT), last: Timestamp::default(), places: false }
    }

    /// Whether ledger records are placed in the commits that write them, from here on, and not by [`tick`](Self::tick): by all
    /// that commit to the store, or by none, else a record that waits comes behind one that was written later. Commits of several
    /// that place at once conflict with each other, as all of them write the chain.
    pub const fn place_at_once(&mut self, places: bool) {
        self.places = places;
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
        // Where the store or a rule panics, the rows are gone with the turn, and others are kept from there on.
        let (now, rows) = (self.now(), std::mem::replace(&mut self.rows, Rows::new(ROWS_KEPT)));
        let mut turn = Turn::new(now, self.seed.next_of(b"turn"), commands, rows).closing(self.places);
        let mut conflicts = 0;
        loop {
            let failure = match turn.step() {
                Step::Load(keys) => match self.store.load(&keys) {
                    Ok(rows) if all_answered(&keys, &rows) => {
                        turn.handle_loaded(rows);
                        continue;
                    }
                    // A store that breaks its promise permits nothing.
                    Ok(_) => Failure::Refused(Refusal::internal()),
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
        for mut follow in followed_by(found, self.now()) {
            loop {
                let page = self.scan(&follow.range)?;
                commands.extend(follow.commands(&page, &mut |range| self.scan(range))?);
                if !follow.turn_page(&page) {
                    break;
                }
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

/// What ends a due row's business, after what [`followed_by`] led to was done: for a stop, that stop and no later one.
#[must_use]
pub fn done_with(found: &Found) -> Command {
    match &found.row.record {
        Some(Record::Agent(agent)) => FollowStop { agent: agent.id, epoch: agent.epoch }.into(),
        Some(Record::Principal(left)) => {
            FollowLeave { left: left.id, since: left.following.unwrap_or_default() }.into()
        }
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

/// Rows that something due has to be followed for, a page at a time.
#[derive(Clone, Debug)]
pub struct Follow {
    /// The next page of them.
    pub range: Range,
    what: What,
}

/// What is followed.
#[derive(Clone, Copy, Debug)]
enum What {
    /// An agent's stop.
    Stop,
    /// Somebody's leaving.
    Leave(PrincipalId),
    /// Actions whose idempotency key is no longer kept.
    Closed(WorkspaceId),
    /// Actions that are older than a workspace keeps what is personal in them.
    Old(WorkspaceId),
    /// Calls that are older than they are kept.
    Jobs(WorkspaceId),
    /// Tokens of a connection that ended long ago.
    Tokens(ConnectionId),
}

/// What may have to follow a due row: mostly nothing. Where an agent was stopped, its approvals that wait and its actions of as
/// far back as one could still be open; where somebody left, their agents, keys and teams; where a workspace is swept, what is old
/// at `now`, and nothing yet where that is [late](Sweep::is_late); where a connection is long over, its tokens.
#[must_use]
pub fn followed_by(found: &Found, now: Timestamp) -> Vec<Follow> {
    match &found.row.record {
        Some(Record::Agent(agent)) => stop_followed_by(agent),
        Some(Record::Principal(left)) => {
            let ranges = [
                Range::all(Index::ConnectionsBy, left.id.bits(), TICK_MAX),
                Range::all(Index::AgentsFor, left.id.bits(), TICK_MAX),
                Range::all(Index::AgentsUnder, left.id.bits(), TICK_MAX),
                Range::all(Index::KeysOf, left.workspace.bits(), TICK_MAX),
                Range::all(Index::TeamsOf, left.workspace.bits(), TICK_MAX),
                // Of which agents somebody is the kill owner no index says.
                Range::all(Index::AgentsOf, left.workspace.bits(), TICK_MAX),
            ];
            ranges.into_iter().map(|range| Follow { range, what: What::Leave(left.id) }).collect()
        }
        Some(Record::Sweep(sweep)) if !sweep.is_late(now) => swept_by(sweep, now),
        Some(Record::Connection(it)) if it.ended.is_some() => {
            let range = Range::all(Index::RefreshOf, it.id.bits(), SWEPT_MAX);
            vec![Follow { range, what: What::Tokens(it.id) }]
        }
        _ => Vec::new(),
    }
}

/// What may have to follow an agent's stop; nothing where that is done.
#[must_use]
pub fn stop_followed_by(agent: &Agent) -> Vec<Follow> {
    let Some(stopped) = agent.following else { return Vec::new() };
    let actions = Range::all(Index::ActionsOf, agent.id.bits(), TICK_MAX);
    let ranges = [
        Range::all(Index::WaitingOf, agent.id.bits(), TICK_MAX),
        Range { from: ulid_bits(stopped.minus(OPEN_MAX), 0), ..actions },
    ];
    ranges.into_iter().map(|range| Follow { range, what: What::Stop }).collect()
}

fn swept_by(sweep: &Sweep, now: Timestamp) -> Vec<Follow> {
    let id = sweep.workspace;
    let actions = |last, kept: Span| {
        let until = ulid_bits(now.minus(kept), 0);
        Range { from: Sweep::behind(last), until, ..Range::all(Index::ActionsIn, id.bits(), SWEPT_MAX) }
    };
    let closed = actions(sweep.closed_to, Span::millis(OPEN_MAX.as_millis().saturating_add(REPLAY_KEPT.as_millis())));
    let old = sweep.retention_days.map(|days| actions(sweep.erased_to, Span::hours(24 * i64::from(days))));
    let until = instant_order(now.minus(JOB_KEPT));
    let jobs = Range { until, ..Range::all(Index::DeliveriesOf, id.bits(), SWEPT_MAX) };
    let all = [Some((closed, What::Closed(id))), old.map(|it| (it, What::Old(id))), Some((jobs, What::Jobs(id)))];
    all.into_iter().flatten().map(|(range, what)| Follow { range, what }).collect()
}

impl Follow {
    /// What is to be done for a page of [`Self::range`]; `scan` looks for more where a row alone does not tell.
    ///
    /// # Errors
    /// Those of `scan`.
    pub fn commands<E>(
        &self,
        page: &[Found],
        scan: &mut impl FnMut(&Range) -> Result<Vec<Found>, E>,
    ) -> Result<Vec<Command>, E> {
        let behind = self.range.after.map_or(self.range.from, |(order, _)| order.saturating_add(1));
        Ok(match self.what {
            What::Stop => page.iter().filter_map(after_stop).collect(),
            What::Leave(left) => page.iter().filter_map(|found| after_leave(found, left)).collect(),
            What::Closed(workspace) => {
                let actions = actions_of(page);
                if actions.is_empty() { vec![] } else { vec![SweepClosed { workspace, behind, actions }.into()] }
            }
            What::Old(workspace) => {
                let actions = actions_of(page);
                let mut disclosures = Vec::new();
                for action in &actions {
                    disclosures.extend(disclosed_of(*action, scan)?);
                }
                if actions.is_empty() {
                    vec![]
                } else {
                    vec![SweepOld { workspace, behind, actions, disclosures }.into()]
                }
            }
            What::Jobs(workspace) => {
                let ended = |found: &Found| match &found.row.record {
                    Some(Record::Job(job)) if job.due().is_none() => Some(job.id),
                    _ => None,
                };
                let jobs: Vec<DeliveryId> = page.iter().filter_map(ended).collect();
                if jobs.is_empty() { vec![] } else { vec![SweepJobs { workspace, jobs }.into()] }
            }
            What::Tokens(connection) => {
                let tokens: Vec<RefreshId> = page.iter().filter_map(token_of).collect();
                if tokens.is_empty() { vec![] } else { vec![SweepTokens { connection, tokens }.into()] }
            }
        })
    }

    /// Goes on behind `page`; whether there may be more.
    pub fn turn_page(&mut self, page: &[Found]) -> bool {
        self.range.turn_page(page)
    }
}

fn actions_of(page: &[Found]) -> Vec<ActionId> {
    page.iter().filter_map(|it| if let Key::Action(id) = it.row.key { Some(id) } else { None }).collect()
}

/// All disclosures of an action: nobody looks at it again once it was swept.
fn disclosed_of<E>(
    action: ActionId,
    scan: &mut impl FnMut(&Range) -> Result<Vec<Found>, E>,
) -> Result<Vec<EvidenceId>, E> {
    let mut range = Range::all(Index::PersonalOf, Disclosure::about(&action.to_string()), SWEPT_MAX);
    let mut disclosed = Vec::new();
    loop {
        let page = scan(&range)?;
        disclosed
            .extend(page.iter().filter_map(|it| if let Key::Disclosure(id) = it.row.key { Some(id) } else { None }));
        if !range.turn_page(&page) {
            return Ok(disclosed);
        }
    }
}

fn token_of(found: &Found) -> Option<RefreshId> {
    if let Key::RefreshToken(id) = found.row.key { Some(id) } else { None }
}

fn after_stop(found: &Found) -> Option<Command> {
    match &found.row.record {
        Some(Record::Approval(approval)) => Some(EndApproval(approval.id).into()),
        Some(Record::Action(action)) => {
            let open = action.allowed().filter(|it| it.consumed.is_none() && it.outcome.is_none());
            let unsaid = open.filter(|it| it.lapsed.is_none() && it.revoked.is_none());
            unsaid.map(|_| RecordRevoked(action.id).into())
        }
        _ => None,
    }
}

fn after_leave(found: &Found, left: PrincipalId) -> Option<Command> {
    match &found.row.record {
        Some(Record::Connection(it)) => Some(EndLeft { connection: it.id, left }.into()),
        Some(Record::Agent(agent)) => {
            let named = [Some(agent.principal), agent.sponsor, agent.kill_owner];
            named.contains(&Some(left)).then(|| PassAgent { agent: agent.id, left }.into())
        }
        Some(Record::Credential(key)) if key.ends_with(left) && key.revoked_at.is_none() => {
            Some(EndKey { credential: key.id, left }.into())
        }
        Some(Record::Team(team)) if team.owner == Some(left) => Some(DisownTeam { team: team.id, left }.into()),
        _ => None,
    }
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
