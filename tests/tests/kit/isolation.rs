//! Stores that pass while one session is at work after the other, and are found where several are at the same time.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use svc_core::store::memory::Never;
use svc_core::store::{Commit, CommitError, Committed, Found, Key, Loaded, MemoryStore, Range, Store};
use svc_core::testing::contract;

use super::{Flaw, Flawed};

/// A store without isolation: it checks, and writes a moment later over whatever is there then.
#[derive(Clone)]
struct Unguarded(MemoryStore);

impl Store for Unguarded {
    type Error = Never;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Never> {
        self.0.load(keys)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Never>> {
        let (mut checks, writes) = (commit.checks.clone(), commit.writes.clone());
        let checked = self.0.commit(&Commit { checks: checks.clone(), writes: Vec::new() })?;
        if writes.is_empty() || matches!(checked, Committed::Conflict(_)) {
            return Ok(checked);
        }
        thread::yield_now();
        loop {
            match self.0.commit(&Commit { checks, writes: writes.clone() })? {
                Committed::Conflict(_) => checks = Vec::new(),
                applied => return Ok(applied),
            }
        }
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Never> {
        self.0.scan(range)
    }
}

fn on_threads(racers: Vec<contract::Racer<'_>>) {
    thread::scope(|threads| racers.into_iter().for_each(|racer| drop(threads.spawn(racer))));
}

/// By which promise races find a store. On a machine that is busy with other things one may pass.
fn told(races: impl Fn()) -> String {
    let told = (0..10).find_map(|_| catch_unwind(AssertUnwindSafe(&races)).err()).expect("it passes the races");
    told.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// A store that passes as long as one session commits after the other, and lets two of them write over each other at once, is
/// found where they race; one that checks what it writes and not what it has only read, too.
#[test]
fn the_suite_finds_a_store_without_isolation() {
    contract::suite(|| Unguarded(MemoryStore::new()));
    let store = Unguarded(MemoryStore::new());
    contract::sessions(|| store.clone());
    for told in [
        told(|| {
            let store = Unguarded(MemoryStore::new());
            contract::races(|| store.clone(), on_threads);
        }),
        told(|| {
            let store = MemoryStore::new();
            contract::races(|| Flawed(store.clone(), Flaw::ReadsUnchecked), on_threads);
        }),
    ] {
        assert!(told.starts_with("broken promise: "), "{told}");
    }
}

/// Which moments a store mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    /// It loads one row after the other.
    LoadsApart,
    /// It writes one row after the other.
    WritesApart,
    /// It loads the rows of a list after the list.
    RowsAfterList,
    /// It makes the entries of an index after the rows.
    EntriesAfterRows,
}

/// A store whose commits come one after the other, and whose readers see two moments. It waits between them for somebody to see it,
/// where it is about as many rows as the races read.
#[derive(Clone)]
struct Mixed(MemoryStore, Mix, Arc<Shared>);

/// Rows that the writer of a race changes together, and the others read.
const SEEN: usize = 3;

/// What its sessions share.
#[derive(Default)]
struct Shared {
    writing: Mutex<()>,
    /// What was there before the commit that is being made, and which of its rows nobody sees yet.
    half: Mutex<Option<(MemoryStore, BTreeSet<Key>)>>,
    commits: AtomicU32,
    reads: AtomicU32,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits a moment for something to happen; in vain where nobody else is at work.
fn await_next(happened: &AtomicU32) {
    let before = happened.load(Ordering::SeqCst);
    (0..200).find(|_| {
        thread::yield_now();
        happened.load(Ordering::SeqCst) != before
    });
}

impl Store for Mixed {
    type Error = Never;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Never> {
        self.2.reads.fetch_add(1, Ordering::SeqCst);
        if self.1 != Mix::LoadsApart || keys.len() < SEEN {
            let half = lock(&self.2.half);
            let mut rows = self.0.load(keys)?;
            for row in &mut rows {
                if let Some((before, _)) = half.as_ref().filter(|(_, unseen)| unseen.contains(&row.key)) {
                    *row = before.clone().load(&[row.key])?.remove(0);
                }
            }
            return Ok(rows);
        }
        let mut rows = Vec::new();
        for key in keys {
            if !rows.is_empty() {
                await_next(&self.2.commits);
            }
            rows.extend(self.0.load(&[*key])?);
        }
        Ok(rows)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Never>> {
        let _one = lock(&self.2.writing);
        let mut half = lock(&self.2.half);
        let before = self.0.fork();
        let done = self.0.commit(commit)?;
        self.2.commits.fetch_add(1, Ordering::SeqCst);
        let written = commit.writes.iter().map(|write| write.key);
        match self.1 {
            Mix::WritesApart => *half = Some((before, written.collect())),
            Mix::EntriesAfterRows => *half = Some((before, BTreeSet::new())),
            Mix::LoadsApart | Mix::RowsAfterList => {}
        }
        if commit.writes.len() < SEEN {
            *half = None;
        }
        drop(half);
        for write in commit.writes.iter().filter(|_| lock(&self.2.half).is_some()) {
            await_next(&self.2.reads);
            if let Some((_, unseen)) = lock(&self.2.half).as_mut() {
                unseen.remove(&write.key);
            }
        }
        *lock(&self.2.half) = None;
        Ok(done)
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Never> {
        self.2.reads.fetch_add(1, Ordering::SeqCst);
        let half = lock(&self.2.half);
        let mut found = match &*half {
            Some((before, _)) if self.1 == Mix::EntriesAfterRows => before.clone().scan(range)?,
            _ => self.0.scan(range)?,
        };
        if self.1 == Mix::RowsAfterList {
            drop(half);
            await_next(&self.2.commits);
        }
        if matches!(self.1, Mix::RowsAfterList | Mix::EntriesAfterRows) {
            let keys: Vec<Key> = found.iter().map(|it| it.row.key).collect();
            for (it, row) in found.iter_mut().zip(self.0.load(&keys)?) {
                it.row = row;
            }
        }
        Ok(found)
    }
}

/// A store that shows rows of two moments, or a commit in part, is found although its commits come one after the other.
#[test]
fn the_races_find_reads_of_two_moments() {
    for mix in [Mix::LoadsApart, Mix::WritesApart, Mix::RowsAfterList, Mix::EntriesAfterRows] {
        let told = told(|| {
            let store = Mixed(MemoryStore::new(), mix, Arc::default());
            contract::races(|| store.clone(), on_threads);
        });
        assert!(told.contains("answers from one moment"), "{mix:?}: {told}");
    }
}
