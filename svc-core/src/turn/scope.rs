//! One command's view: committed rows, under what earlier commands of the turn staged, under its own.

use std::sync::Arc;

use super::puts::Puts;
use super::rows::{At, Before, Rows};
use crate::refusal::Refusal;
use crate::state::evidence::{Disclosure, Entry, Fact, KINDS};
use crate::store::{Key, Record, Row, all_answered};
use crate::value::id::{EvidenceId, PrincipalId, WorkspaceId, ulid_bits};
use crate::value::seed::Seed;
use crate::value::verbatim::Verbatim;
use crate::value::{Id, Timestamp};

/// Why a rule stopped early. `Load` is no error: the turn fetches rows and runs the rule again from the top.
#[derive(Debug)]
pub enum Halt {
    /// Rows are missing.
    Load,
    /// The command is refused and leaves nothing behind.
    Refuse(Refusal),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refuse(refusal)
    }
}

/// What a rule sees and does; see the module.
#[derive(Debug)]
pub struct Scope<'turn> {
    now: Timestamp,
    seed: &'turn Seed,
    command: u32,
    rows: &'turn Rows,
    staged: &'turn [Before],
    run: Run,
    draws: u32,
    entries: u32,
    /// Whose words are written, where that is not who acts.
    author: Option<PrincipalId>,
}

/// What one run of a rule left.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) puts: Puts,
    /// Places of rows, in the order of reading, some more than once.
    pub(super) read: Vec<At>,
    pub(super) missing: Vec<Key>,
    /// Of what was read, what was not there then.
    pub(super) absent: Vec<Key>,
    /// Of what was read, that whose absence takes away from what is done.
    pub(super) spared: Vec<Key>,
    pub(super) broken: bool,
}

impl<'turn> Scope<'turn> {
    pub(super) fn new(
        now: Timestamp,
        seed: &'turn Seed,
        command: u32,
        rows: &'turn Rows,
        staged: &'turn [Before],
    ) -> Self {
        Self { now, seed, command, rows, staged, run: Run::default(), draws: 0, entries: 0, author: None }
    }

    pub(super) fn end(self) -> Run {
        self.run
    }

    /// The instant that this turn decides at.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What the commands of the turn have staged so far.
    pub fn staged(&self) -> impl Iterator<Item = &'turn Record> + use<'turn> {
        let rows = self.rows;
        self.staged.iter().filter_map(move |before| rows.newest(before.at))
    }

    /// Asks for several rows in one round.
    ///
    /// # Errors
    /// [`Halt::Load`] where one of them is not there yet.
    pub fn want(&mut self, keys: &[Key]) -> Result<(), Halt> {
        let before = self.run.missing.len();
        for key in keys {
            if !self.is_known(key) {
                self.run.missing.push(*key);
            }
        }
        if self.run.missing.len() == before { Ok(()) } else { Err(Halt::Load) }
    }

    /// The row with this id, or `None` where there is none. The commit will check that it has not moved.
    ///
    /// # Errors
    /// [`Halt::Load`] where it is not there yet.
    pub fn get<R: Row>(&mut self, id: R::Id) -> Result<Option<Arc<R>>, Halt> {
        let key = R::key(id);
        // What this command put over a row that it has read stands for that row.
        let record = match self.run.puts.get(&key) {
            Some(put) => put,
            None => {
                let Some(at) = self.rows.find(&key) else {
                    self.run.missing.push(key);
                    return Err(Halt::Load);
                };
                self.run.read.push(at);
                self.rows.newest(at)
            }
        };
        let row = record.and_then(R::peel).map(Arc::clone);
        if row.is_none() {
            self.run.absent.push(key);
        }
        Ok(row)
    }

    /// As [`get`](Self::get), of a row without which less is done: what permits may rest on its not being there, as nobody gains
    /// where it comes into being meanwhile.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_if_any<R: Row>(&mut self, id: R::Id) -> Result<Option<Arc<R>>, Halt> {
        let row = self.get::<R>(id)?;
        if row.is_none() {
            self.run.spared.push(R::key(id));
        }
        Ok(row)
    }

    /// Stages a row's new image. It has to have been read, or to have a fresh id.
    pub fn put<R: Row>(&mut self, row: R) {
        let key = R::key(row.id());
        self.stage(key, Some(R::wrap(Arc::new(row))));
    }

    /// As [`put`](Self::put), of a row that the rule goes on to show.
    pub fn put_shared<R: Row>(&mut self, row: &Arc<R>) {
        self.stage(R::key(row.id()), Some(R::wrap(Arc::clone(row))));
    }

    /// Stages a row's end.
    pub fn delete<R: Row>(&mut self, id: R::Id) {
        self.stage(R::key(id), None);
    }

    /// Runs a part of a rule whose refusal the rest outlives. What the part has put by then is taken back; what it has read counts
    /// still, since the refusal rests on it.
    ///
    /// # Errors
    /// [`Halt::Load`] where the part misses rows.
    pub fn attempt<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, Halt>) -> Result<Result<T, Refusal>, Halt> {
        let before = self.run.puts.clone();
        match part(self) {
            Ok(done) => Ok(Ok(done)),
            Err(Halt::Load) => Err(Halt::Load),
            Err(Halt::Refuse(refusal)) => {
                self.run.puts = before;
                Ok(Err(refusal))
            }
        }
    }

    /// Writes a ledger record in this very commit. Records of one commit sort in the order of their writing.
    pub fn append(&mut self, workspace: WorkspaceId, fact: Fact) -> EvidenceId {
        let id = self.next_entry();
        self.put_entry(id, workspace, fact);
        id
    }

    /// As [`append`](Self::append), with personal texts (names, e-mail, reasons, notes, summaries): each enters the record's
    /// `data` as a salted commitment under its dotted member, and the row that can show it, or be erased, is written beside.
    pub fn append_with(&mut self, workspace: WorkspaceId, fact: Fact, texts: &[(&str, &str)]) -> EvidenceId {
        let id = self.next_entry();
        let salt = self.draw();
        let (disclosure, fact) = Disclosure::of(id, workspace, fact, salt, texts);
        if !texts.is_empty() {
            let by = self.author.or(disclosure.by);
            self.put(Disclosure { by, ..disclosure });
        }
        self.put_entry(id, workspace, fact);
        id
    }

    /// Does `work` in the words of somebody else than who acts: texts that it appends go with `author` when they are erased, and
    /// not with whoever put them in force.
    pub fn in_words_of<T>(&mut self, author: PrincipalId, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.author.replace(author);
        let done = work(self);
        self.author = before;
        done
    }

    /// Whose words are written, where that is not who acts.
    #[must_use]
    pub const fn author(&self) -> Option<PrincipalId> {
        self.author
    }

    fn next_entry(&mut self) -> EvidenceId {
        let drawn = u128::from_be_bytes(self.draw());
        let place = (u128::from(self.command & 0xffff) << 64) | (u128::from(self.entries & 0xffff) << 48);
        self.entries = self.entries.saturating_add(1);
        EvidenceId::from_bits(ulid_bits(self.now, place | (drawn & ((1 << 48) - 1))))
    }

    fn put_entry(&mut self, id: EvidenceId, workspace: WorkspaceId, fact: Fact) {
        debug_assert!(KINDS.binary_search(&fact.kind).is_ok(), "a kind that the list of kinds lacks: {}", fact.kind);
        debug_assert!(fact.is_of_interface(), "a record tells what only a row says: {} {}", fact.kind, fact.data);
        self.put(Entry {
            id,
            workspace,
            at: self.now,
            kind: fact.kind.into(),
            actor: Verbatim::written(fact.actor.canonical()),
            subject: fact.subject.to_string().into(),
            data: Verbatim::written(fact.data),
            place: None,
        });
    }

    /// A new id: from the instant, the turn's seed and the command's number, so that a second run gets the same. Ids of one command sort
    /// in the order in which they were made: of two mandates that are alike the older one is charged.
    pub fn fresh<I: Id>(&mut self) -> I {
        let place = u128::from(self.draws & 0xffff) << 64;
        let drawn = u128::from_be_bytes(self.draw());
        I::from_bits(ulid_bits(self.now, place | (drawn & ((1 << 64) - 1))))
    }

    /// Sixteen random bytes, the same at every run.
    pub fn draw(&mut self) -> [u8; 16] {
        let bytes = self.seed.draw(self.command, self.draws);
        self.draws = self.draws.saturating_add(1);
        bytes
    }

    fn stage(&mut self, key: Key, record: Option<Record>) {
        if self.run.puts.replace(&key, &record) {
            return;
        }
        // What is put was mostly read last.
        let is_unseen = |at: &At| self.rows.newest(*at).is_some() && !self.run.read.iter().rev().any(|read| read == at);
        if self.rows.find(&key).as_ref().is_some_and(is_unseen) {
            self.run.broken = true;
        }
        self.run.puts.add(key, record);
    }

    /// Whether anything is known of `key`, and be it that there is no row.
    fn is_known(&self, key: &Key) -> bool {
        self.run.puts.get(key).is_some() || self.rows.find(key).is_some()
    }
}

/// A rule that only reads: what a driver runs without knowing what a scope is.
pub trait Reads<T>: Fn(&mut Scope<'_>) -> Result<T, Halt> {}

impl<T, F: Fn(&mut Scope<'_>) -> Result<T, Halt>> Reads<T> for F {}

/// Runs a rule that only reads, over `rows` and what `load` fetches. What it puts is dropped.
///
/// # Errors
/// What the rule refuses with, `internal` where `load` leaves a row out, or what `load` fails with.
pub fn read<T, E>(
    now: Timestamp,
    rows: &mut Rows,
    mut load: impl FnMut(&[Key]) -> Result<Vec<crate::store::Loaded>, E>,
    rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>,
) -> Result<Result<T, Refusal>, E> {
    let seed = Seed::new([0; 32]);
    loop {
        let mut scope = Scope::new(now, &seed, 0, rows, &[]);
        let missing = match rule(&mut scope) {
            Ok(value) => return Ok(Ok(value)),
            Err(Halt::Refuse(refusal)) => return Ok(Err(refusal)),
            Err(Halt::Load) => scope.end().missing,
        };
        if missing.is_empty() {
            return Ok(Err(Refusal::internal()));
        }
        let loaded = load(&missing)?;
        if !all_answered(&missing, &loaded) {
            return Ok(Err(Refusal::internal()));
        }
        for row in loaded {
            rows.insert(row.key, row.stamp, row.record);
        }
    }
}
