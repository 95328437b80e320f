//! A store that fails, by a seed or at a chosen operation: what a network, a disk and a crash do to a real one.

use std::fmt;

use super::dice::Dice;
use crate::store::{Commit, CommitError, Committed, Found, Key, Listed, Loaded, Range, Store};

/// What is made to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A load or scan answers an error.
    Lost,
    /// A commit is not tried, and the caller is told so.
    Unavailable,
    /// A commit is refused for what it holds.
    Rejected,
    /// A commit is applied and the answer lost.
    UnknownApplied,
    /// A commit is lost, and so is the answer.
    UnknownLost,
    /// A commit conflicts although nothing has moved, as a deadlock or a failed serialisation does.
    Conflict,
    /// Whatever is asked panics before anything is done.
    Panic,
    /// A commit is applied, and then panics.
    PanicApplied,
}

impl Fault {
    /// Every fault of a commit that is answered.
    pub const OF_COMMITS: [Self; 5] =
        [Self::Unavailable, Self::Rejected, Self::UnknownApplied, Self::UnknownLost, Self::Conflict];
}

/// An operation that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A commit that writes.
    Commit,
    /// A commit without writes, which takes no room.
    Observe,
    /// A load.
    Load,
    /// A scan.
    Scan,
}

/// How often each fault happens, in a thousand operations that it can happen to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Odds {
    /// Of loads and scans.
    pub lost: u32,
    /// Of commits.
    pub unavailable: u32,
    /// Of commits.
    pub rejected: u32,
    /// Of commits.
    pub unknown_applied: u32,
    /// Of commits.
    pub unknown_lost: u32,
    /// Of commits.
    pub conflict: u32,
    /// Of loads, scans and commits.
    pub panic: u32,
    /// Of commits.
    pub panic_applied: u32,
}

/// What a [`Faulty`] store panics with. No hook hears of it, so that nothing of it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeToPanic;

/// One session of a store that fails as its plan says.
pub struct Faulty<S> {
    inner: S,
    plan: Box<dyn FnMut(Operation) -> Option<Fault> + Send>,
}

/// What a [`Faulty`] store answers when it fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError<E: std::error::Error + 'static> {
    /// It was made to.
    #[error("made to fail: {0:?}")]
    Made(Fault),
    /// The store beneath failed by itself.
    #[error(transparent)]
    Store(E),
}

impl<S: Store> Faulty<S> {
    /// A store that fails as `plan` says: it is asked before every operation. A fault that an operation cannot have is
    /// not had.
    pub fn new(inner: S, plan: impl FnMut(Operation) -> Option<Fault> + Send + 'static) -> Self {
        Self { inner, plan: Box::new(plan) }
    }

    /// A store that fails by chance: the same seed, the same failures.
    #[must_use]
    pub fn seeded(inner: S, seed: u64, odds: Odds) -> Self {
        let mut dice = Dice::new(seed);
        Self::new(inner, move |operation| odds.draw(operation, &mut dice))
    }

    /// A store whose `n`-th operation of a kind, counted from 0, fails and no other.
    #[must_use]
    pub fn at(inner: S, operation: Operation, n: usize, fault: Fault) -> Self {
        let mut seen = 0;
        Self::new(inner, move |asked| {
            let hit = asked == operation && seen == n;
            seen += usize::from(asked == operation);
            hit.then_some(fault)
        })
    }

    /// The store beneath, which does not fail.
    pub fn inner(&mut self) -> &mut S {
        &mut self.inner
    }
}

impl Odds {
    fn draw(&self, operation: Operation, dice: &mut Dice) -> Option<Fault> {
        let odds: &[(u32, Fault)] = match operation {
            Operation::Load | Operation::Scan => &[(self.lost, Fault::Lost), (self.panic, Fault::Panic)],
            Operation::Commit | Operation::Observe => &[
                (self.unavailable, Fault::Unavailable),
                (self.rejected, Fault::Rejected),
                (self.unknown_applied, Fault::UnknownApplied),
                (self.unknown_lost, Fault::UnknownLost),
                (self.conflict, Fault::Conflict),
                (self.panic, Fault::Panic),
                (self.panic_applied, Fault::PanicApplied),
            ],
        };
        odds.iter().find(|(per_mille, _)| dice.chance(*per_mille)).map(|(_, fault)| *fault)
    }
}

fn panics() -> ! {
    std::panic::resume_unwind(Box::new(MadeToPanic))
}

impl<S: Store> Store for Faulty<S> {
    type Error = FaultError<S::Error>;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Self::Error> {
        match (self.plan)(Operation::Load) {
            Some(Fault::Lost) => Err(FaultError::Made(Fault::Lost)),
            Some(Fault::Panic) => panics(),
            _ => self.inner.load(keys).map_err(FaultError::Store),
        }
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Self::Error>> {
        let made = FaultError::Made;
        let operation = if commit.writes.is_empty() { Operation::Observe } else { Operation::Commit };
        match (self.plan)(operation) {
            Some(fault @ Fault::Unavailable) => Err(CommitError::Unavailable(made(fault))),
            Some(fault @ Fault::Rejected) => Err(CommitError::Rejected(made(fault))),
            Some(fault @ Fault::UnknownLost) => Err(CommitError::Unknown(made(fault))),
            Some(fault @ Fault::UnknownApplied) => {
                // Whatever came of it, nobody hears: a conflict too is an answer that was lost.
                let _ = self.inner.commit(commit);
                self.inner.release();
                Err(CommitError::Unknown(made(fault)))
            }
            Some(Fault::Panic) => panics(),
            Some(Fault::PanicApplied) => {
                let _ = self.inner.commit(commit);
                self.inner.release();
                panics()
            }
            Some(Fault::Conflict) => {
                let keys: Vec<Key> = commit.checks.iter().map(|(key, _)| *key).collect();
                let moved = self.inner.load(&keys).map_err(|error| CommitError::Unavailable(FaultError::Store(error)));
                moved.map(Committed::Conflict)
            }
            Some(Fault::Lost) | None => self.inner.commit(commit).map_err(|error| match error {
                CommitError::Unavailable(error) => CommitError::Unavailable(FaultError::Store(error)),
                CommitError::Rejected(error) => CommitError::Rejected(FaultError::Store(error)),
                CommitError::Unknown(error) => CommitError::Unknown(FaultError::Store(error)),
            }),
        }
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Self::Error> {
        match (self.plan)(Operation::Scan) {
            Some(Fault::Lost) => Err(FaultError::Made(Fault::Lost)),
            Some(Fault::Panic) => panics(),
            _ => self.inner.scan(range).map_err(FaultError::Store),
        }
    }

    fn scan_each(&mut self, range: &Range) -> Result<Vec<Listed<Self::Error>>, Self::Error> {
        match (self.plan)(Operation::Scan) {
            Some(Fault::Lost) => return Err(FaultError::Made(Fault::Lost)),
            Some(Fault::Panic) => panics(),
            _ => {}
        }
        let listed = self.inner.scan_each(range).map_err(FaultError::Store)?;
        let of = |it: Listed<S::Error>| Listed { order: it.order, key: it.key, row: it.row.map_err(FaultError::Store) };
        Ok(listed.into_iter().map(of).collect())
    }

    fn release(&mut self) {
        self.inner.release();
    }
}

impl<S: fmt::Debug> fmt::Debug for Faulty<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Faulty").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::{contract, sample};
    use super::*;
    use crate::store::{MemoryStore, Record, Stamp, Write};

    fn insert(row: &Record) -> Commit {
        let write = Write { key: row.key(), record: Some(row.clone()), unlink: Vec::new(), link: row.links() };
        Commit { checks: vec![(row.key(), Stamp::ABSENT)], writes: vec![write] }
    }

    /// A store that is not made to fail keeps every promise of the one beneath.
    #[test]
    fn without_faults_it_is_the_store_beneath() {
        contract::suite(|| Faulty::seeded(MemoryStore::new(), 1, Odds::default()));
    }

    /// Each fault answers what it stands for, and only an applied commit is there afterwards.
    #[test]
    fn each_fault_does_what_it_says() {
        let row = sample::payload(sample::id(1), "x");
        for fault in Fault::OF_COMMITS {
            let memory = MemoryStore::new();
            let mut store = Faulty::at(memory.clone(), Operation::Commit, 0, fault);
            let answer = store.commit(&insert(&row));
            let as_said = match fault {
                Fault::Unavailable => matches!(answer, Err(CommitError::Unavailable(_))),
                Fault::Rejected => matches!(answer, Err(CommitError::Rejected(_))),
                Fault::UnknownApplied | Fault::UnknownLost => matches!(answer, Err(CommitError::Unknown(_))),
                Fault::Conflict => matches!(answer, Ok(Committed::Conflict(_))),
                Fault::Lost | Fault::Panic | Fault::PanicApplied => false,
            };
            assert!(as_said, "{fault:?}: {answer:?}");
            assert_eq!(memory.len(), usize::from(fault == Fault::UnknownApplied), "{fault:?}");
        }
        let mut store = Faulty::at(MemoryStore::new(), Operation::Load, 1, Fault::Lost);
        assert!(store.load(&[]).is_ok() && store.load(&[]).is_err() && store.load(&[]).is_ok());
    }

    /// A panic before a commit leaves nothing of it, one behind it all of it, and the store goes on.
    #[test]
    fn a_panic_comes_before_a_commit_or_behind_it() {
        let row = sample::payload(sample::id(1), "x");
        for (fault, rows) in [(Fault::Panic, 0), (Fault::PanicApplied, 1)] {
            let memory = MemoryStore::new();
            let mut store = Faulty::at(memory.clone(), Operation::Commit, 0, fault);
            let run = catch_unwind(AssertUnwindSafe(|| store.commit(&insert(&row))));
            assert_eq!(run.unwrap_err().downcast_ref(), Some(&MadeToPanic), "{fault:?}");
            assert_eq!(memory.len(), rows, "{fault:?}");
            assert!(store.commit(&insert(&sample::payload(sample::id(2), "x"))).is_ok());
        }
        let mut store = Faulty::at(MemoryStore::new(), Operation::Load, 0, Fault::Panic);
        assert!(catch_unwind(AssertUnwindSafe(|| store.load(&[]))).is_err());
        assert!(store.load(&[]).is_ok());
    }

    /// The same seed fails at the same operations, another one at others, and about as often as was asked.
    #[test]
    fn a_seed_can_be_had_again() {
        let failures = |seed| {
            let odds = Odds { lost: 250, ..Odds::default() };
            let mut store = Faulty::seeded(MemoryStore::new(), seed, odds);
            (0..400).map(|_| store.load(&[]).is_err()).collect::<Vec<_>>()
        };
        assert_eq!(failures(7), failures(7));
        assert_ne!(failures(7), failures(8));
        let count = failures(7).into_iter().filter(|it| *it).count();
        assert!((60..140).contains(&count), "{count}");
    }
}
