//! A turn: many commands decided at one instant, as one commit.
//!
//! A driver owns the store; a turn only says what it needs. Kinds of methods, in the order of calls:
//! [`Turn::new`]; then [`Turn::step`] again and again, answering each [`Step::Load`] with [`Turn::handle_loaded`] and each
//! conflict of a [`Step::Commit`] with [`Turn::handle_conflict`]; after `Applied`, [`Turn::finish`]. A turn that is not
//! finished may be dropped or taken apart with [`Turn::abandon`]: nothing has happened.
//!
//! **Invariant:** a turn reads no clock, holds no store and has no entropy of its own. No answer leaves before `finish`.

mod puts;
mod rows;
mod scope;

use crate::refusal::Refusal;
use crate::store::{Commit, Key, Loaded, Record, Stamp, Write};
use crate::value::Timestamp;
use crate::value::link::{Link, Order};
use crate::value::seed::Seed;

use rows::{At, Before};

pub use rows::Rows;
pub use scope::{Halt, Reads, Scope, read};

/// How many rounds of loading a batch may take before what is decided is committed and the rest goes back to the queue.
pub const ROUNDS_MAX: u32 = 24;

/// A command: how it is decided, and whether an answer lets anything happen.
pub trait Decide {
    /// What it is answered.
    type Reply;

    /// Decides over the rows in `scope`. May be run several times: it reads, computes and puts, nothing else.
    ///
    /// # Errors
    /// [`Halt::Load`] to have rows fetched and be run again; [`Halt::Refuse`] to refuse and leave nothing behind.
    fn decide(&self, scope: &mut Scope<'_>) -> Result<Self::Reply, Halt>;

    /// Whether this answer permits something. What a permitting decision found absent it has to write.
    fn permits(reply: &Self::Reply) -> bool;

    /// What a batch as a whole adds to its commit, where the turn was told to [close](Turn::closing) it: run after the last
    /// command, over what all of them staged.
    ///
    /// # Errors
    /// As [`decide`](Self::decide). Where it refuses, the commands are committed without it.
    fn close(_scope: &mut Scope<'_>) -> Result<(), Halt> {
        Ok(())
    }
}

/// What a turn needs next.
#[derive(Debug)]
pub enum Step<'turn> {
    /// These rows, none of which it has.
    Load(Vec<Key>),
    /// This commit applied.
    Commit(&'turn Commit),
}

/// A turn's end.
#[derive(Debug)]
pub struct Finished<D: Decide> {
    /// One answer for each decided command, in order.
    pub answers: Vec<Result<D::Reply, Refusal>>,
    /// Commands that were not reached: to be queued again, before anything newer.
    pub rest: Vec<D>,
    /// The rows, as they are after the commit.
    pub rows: Rows,
    /// The keys that the commit wrote.
    pub written: Vec<Key>,
}

/// Decides a batch; see the module.
#[derive(Debug)]
pub struct Turn<D: Decide> {
    now: Timestamp,
    seed: Seed,
    commands: Vec<D>,
    answers: Vec<Result<D::Reply, Refusal>>,
    rest: Vec<D>,
    /// As they are committed, under what the decided commands have staged.
    rows: Rows,
    /// The rows that they have staged, as they were before.
    staged: Vec<Before>,
    /// Where the rows are that they read.
    read: Vec<At>,
    rounds: u32,
    /// Whether the batch is closed, and whether that is done.
    closes: bool,
    closed: bool,
    /// What a rule did that no rule may do. Rows that are not of one moment can make it look so, and then the commit
    /// conflicts; it is a bug once the commit was applied.
    unsound: Option<&'static str>,
    commit: Commit,
}

impl<D: Decide> Turn<D> {
    /// A turn at `now` over `commands`, in their order. `seed` must never have been used before.
    #[must_use]
    pub fn new(now: Timestamp, seed: Seed, commands: Vec<D>, mut rows: Rows) -> Self {
        rows.begin(&seed);
        Self {
            now,
            seed,
            answers: Vec::with_capacity(commands.len()),
            commands,
            rest: Vec::new(),
            rows,
            staged: Vec::new(),
            read: Vec::new(),
            rounds: 0,
            closes: false,
            closed: false,
            unsound: None,
            commit: Commit::default(),
        }
    }

    /// The turn with [`Decide::close`] at its end. For a store that one turn at a time commits to: what closing writes, every
    /// batch writes, so that turns beside each other would always conflict.
    #[must_use]
    pub const fn closing(mut self, closes: bool) -> Self {
        self.closes = closes;
        self
    }

    /// Decides as far as the rows reach and says what is needed next.
    pub fn step(&mut self) -> Step<'_> {
        while self.answers.len() < self.commands.len() {
            let missing = self.decide_next();
            if missing.is_empty() {
                continue;
            }
            self.rounds = self.rounds.saturating_add(1);
            if self.rounds > ROUNDS_MAX && !self.answers.is_empty() {
                self.rest = self.commands.split_off(self.answers.len());
                break;
            }
            return Step::Load(self.look_ahead(missing));
        }
        let missing = self.close();
        if !missing.is_empty() {
            return Step::Load(missing);
        }
        self.stage_commit();
        Step::Commit(&self.commit)
    }

    /// Takes the rows that [`Step::Load`] asked for.
    pub fn handle_loaded(&mut self, rows: Vec<Loaded>) {
        for row in rows {
            self.rows.insert(row.key, row.stamp, row.record);
        }
    }

    /// Takes the rows that moved under a commit, and decides everything again.
    pub fn handle_conflict(&mut self, moved: Vec<Loaded>) {
        self.unstage();
        self.handle_loaded(moved);
        self.answers.clear();
        self.read.clear();
        self.rounds = 0;
        self.closed = false;
        self.unsound = None;
        self.commands.append(&mut self.rest);
    }

    /// Ends the turn after its commit was applied under `stamp`: now the answers may leave.
    #[must_use]
    pub fn finish(mut self, stamp: Stamp) -> Finished<D> {
        debug_assert!(self.unsound.is_none(), "{:?}; the commit checked {:?}", self.unsound, self.commit.checks);
        let written = self.commit.writes.iter().map(|write| write.key).collect();
        self.read.iter().for_each(|at| self.rows.used(*at));
        self.staged.iter().for_each(|before| self.rows.applied(before.at, stamp));
        self.rows.settle();
        Finished { answers: self.answers, rest: self.rest, rows: self.rows, written }
    }

    /// Takes the turn apart without an end: its commands, none of which has happened, and its rows.
    #[must_use]
    pub fn abandon(mut self) -> (Vec<D>, Rows) {
        self.unstage();
        self.commands.append(&mut self.rest);
        self.rows.settle();
        (self.commands, self.rows)
    }

    /// The commands that are decided by the commit that [`Turn::step`] gave.
    #[must_use]
    pub fn decided(&self) -> usize {
        self.answers.len()
    }

    /// Runs the next command. Gives what it misses; nothing where it is decided.
    fn decide_next(&mut self) -> Vec<Key> {
        let index = self.answers.len();
        let Some(command) = self.commands.get(index) else { return Vec::new() };
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let mut scope = Scope::new(self.now, &self.seed, number, &self.rows, &self.staged);
        let outcome = command.decide(&mut scope);
        let run = scope.end();
        let answer = match outcome {
            Err(Halt::Load) if !run.missing.is_empty() => return run.missing,
            // A rule that halts and misses nothing, or puts a row unseen over another, is broken: it permits nothing.
            Err(Halt::Load) => Err(Refusal::internal()),
            Err(Halt::Refuse(refusal)) => Err(refusal),
            Ok(_) if run.broken => Err(Refusal::internal()),
            Ok(reply) if D::permits(&reply) && self.found_absent(&run) => Err(Refusal::internal()),
            Ok(reply) => Ok(reply),
        };
        self.unsound =
            self.unsound.or_else(|| run.broken.then_some("a rule put a row it had not read over one that exists"));
        self.read.extend(run.read);
        if answer.is_ok() {
            self.stage(run.puts);
        }
        self.answers.push(answer);
        Vec::new()
    }

    fn stage(&mut self, puts: puts::Puts) {
        for (key, record) in puts {
            self.staged.extend(self.rows.stage(key, record));
        }
    }

    /// Takes back all that was staged.
    fn unstage(&mut self) {
        for before in self.staged.drain(..) {
            self.rows.unstage(before);
        }
    }

    /// Adds what the batch as a whole needs, once. Gives what that misses.
    fn close(&mut self) -> Vec<Key> {
        if !self.closes || std::mem::replace(&mut self.closed, true) {
            return Vec::new();
        }
        let mut scope = Scope::new(self.now, &self.seed, u32::MAX, &self.rows, &self.staged);
        let outcome = D::close(&mut scope);
        let run = scope.end();
        match outcome {
            Err(Halt::Load) if !run.missing.is_empty() => {
                self.closed = false;
                return run.missing;
            }
            Ok(()) if !run.broken => {
                self.read.extend(run.read);
                self.stage(run.puts);
            }
            Ok(()) | Err(Halt::Load) => self.unsound = self.unsound.or(Some("a batch could not be closed")),
            Err(Halt::Refuse(_)) => {}
        }
        Vec::new()
    }

    /// Whether a permitting decision rests on a row that is not there and that it does not write. A locking read of an
    /// absent row protects nothing on some databases, nor does deleting one, so what was absent could be written by another node
    /// meanwhile.
    fn found_absent(&mut self, run: &scope::Run) -> bool {
        let writes = |key| matches!(run.puts.get(key), Some(Some(_)));
        let found = run.absent.iter().any(|key| !writes(key) && !run.spared.contains(key));
        self.unsound = self.unsound.or_else(|| found.then_some("a permitting decision rests on an absent row"));
        found
    }

    /// Adds what the later commands would miss, so that one round of loading serves the whole batch.
    fn look_ahead(&self, mut missing: Vec<Key>) -> Vec<Key> {
        for (index, command) in self.commands.iter().enumerate().skip(self.answers.len() + 1) {
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            let mut scope = Scope::new(self.now, &self.seed, number, &self.rows, &self.staged);
            if matches!(command.decide(&mut scope), Err(Halt::Load)) {
                missing.extend(scope.end().missing);
            }
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn stage_commit(&mut self) {
        self.read.sort_unstable();
        self.read.dedup();
        // Each row once: where it is, and its place among what was staged, which tells what it was before.
        let mut rows: Vec<(Key, Stamp, Option<&Before>)> = Vec::with_capacity(self.read.len() + self.staged.len());
        let seen = |at: At, before| self.rows.seen(at).map(|(key, stamp)| (key, stamp, before));
        rows.extend(self.staged.iter().filter_map(|before| seen(before.at, Some(before))));
        rows.extend(self.read.iter().filter_map(|at| seen(*at, None)));
        // A row that was staged stands before itself as it was read.
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| b.2.is_some().cmp(&a.2.is_some())));
        rows.dedup_by_key(|it| it.0);
        // A row that never changes needs no check once it is there, but for the write that deletes it.
        let is_settled = |key: &Key, stamp: Stamp| key.table().is_immutable() && stamp != Stamp::ABSENT;
        let checked = rows.iter().filter(|(key, stamp, before)| before.is_some() || !is_settled(key, *stamp));
        let checks = checked.map(|(key, stamp, _)| (*key, *stamp)).collect();
        let mut writes = Vec::with_capacity(self.staged.len());
        writes.extend(rows.iter().filter_map(|(key, _, before)| Some(self.write(*key, (*before)?))));
        self.commit = Commit { checks, writes };
    }

    fn write(&self, key: Key, was: &Before) -> Write {
        let record = self.rows.newest(was.at);
        let before = was.record.as_ref().map(Record::links).unwrap_or_default();
        let after = record.map(Record::links).unwrap_or_default();
        // A link by stamp moves with every write of its row.
        let stays = |link: &Link, others: &[Link]| link.order != Order::Stamp && others.contains(link);
        let unlink = before.iter().filter(|link| !stays(link, &after)).copied().collect();
        let link = after.iter().filter(|link| !stays(link, &before)).copied().collect();
        Write { key, record: record.cloned(), unlink, link }
    }
}

#[cfg(test)]
mod tests;
