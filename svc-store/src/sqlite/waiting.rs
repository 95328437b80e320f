//! What waits in `redo`, beside a map that keeps everything: two programs that write and fold one file in turns, readers that
//! keep old snapshots, conflicts, restarts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use svc_core::state::gate::Replay;
use svc_core::store::{Commit, Committed, Key, Range, Record, Row, Stamp, Store as _, Write};
use svc_core::testing::dice::Dice;
use svc_core::testing::{contract, sample};
use svc_core::value::Id as _;
use svc_core::value::digest::{Digest, ReplayId};
use svc_core::value::id::{ActionId, AgentId};
use svc_core::value::link::{Index, Link};

use super::checkpoint::Limits;
use super::fold::Folding;
use super::{DATABASE, SqliteSession, SqliteStore};
use crate::backend::Backend as _;

/// So few images a generation that a few commits fill one.
const FEW: Folding = Folding::of(7, 3);
const AGENTS: [u128; 3] = [1, 2, 1 << 100];

fn open(path: &Path) -> SqliteStore {
    super::claim(path.parent().unwrap()).unwrap();
    SqliteStore::start(path.to_owned(), false, Limits::default(), FEW).unwrap()
}

fn replay(n: u128, version: u128) -> Record {
    Replay::wrap(
        Replay {
            id: ReplayId::of(&[&n.to_be_bytes()]),
            body: Some(Digest::from_bytes([0; 32])),
            action: ActionId::from_bits(version),
        }
        .into(),
    )
}

type Books = BTreeMap<Key, (Stamp, Record)>;

/// The file as it is meant to be, with two programs at work on it.
struct Run {
    dice: Dice,
    path: PathBuf,
    programs: Vec<(SqliteStore, SqliteSession)>,
    books: Books,
    /// Rows that are no more.
    gone: BTreeSet<Key>,
    readers: Vec<(SqliteSession, Books)>,
    number: u128,
}

impl Run {
    fn program(path: &Path) -> (SqliteStore, SqliteSession) {
        let store = open(path);
        let session = store.writer().unwrap();
        (store, session)
    }

    fn step(&mut self) {
        match self.dice.below(12) {
            0 if self.dice.chance(200) => {
                let at = self.dice.below(2);
                self.programs[at] = Self::program(&self.path);
            }
            1 | 2 => {
                let at = self.dice.below(2);
                self.readers.push((self.programs[at].0.reader().unwrap(), self.books.clone()));
                // The snapshot is that of the first read.
                let _ = self.readers.last_mut().unwrap().0.load(&[replay(0, 0).key()]).unwrap();
            }
            3 | 4 if !self.readers.is_empty() => {
                let at = self.dice.below(self.readers.len());
                let (mut reader, books) = self.readers.swap_remove(at);
                self.agrees(&mut reader, &books);
                if self.dice.chance(500) {
                    self.readers.push((reader, books));
                }
            }
            5 => {
                let books = self.books.clone();
                let at = self.dice.below(2);
                let mut programs = std::mem::take(&mut self.programs);
                self.agrees(&mut programs[at].1, &books);
                self.programs = programs;
            }
            _ => self.commit(),
        }
    }

    /// A few rows come, change or go, now and then at a stamp that is not theirs.
    fn commit(&mut self) {
        let mut writes: BTreeMap<Key, (Stamp, Option<Record>, Option<Record>)> = BTreeMap::new();
        for _ in 0..=self.dice.below(4) {
            self.number += 1;
            let record = if self.dice.chance(500) {
                replay(self.dice.bits() as u128 % 9, self.number)
            } else {
                let agent: AgentId = sample::id(*self.dice.pick(&AGENTS));
                let known: Vec<Key> = self.books.keys().filter(|key| matches!(key, Key::Action(_))).copied().collect();
                match (known.is_empty(), self.dice.chance(400)) {
                    // The row stays, in this list or another.
                    (false, true) => match *self.dice.pick(&known) {
                        Key::Action(id) => sample::action(agent, id),
                        _ => unreachable!(),
                    },
                    _ => sample::action(agent, sample::id(self.number * 7_919 % 65_537)),
                }
            };
            let key = record.key();
            let before = self.books.get(&key).cloned();
            let goes = before.is_some() && self.dice.chance(300);
            let (stamp, old) = before.map_or((Stamp::ABSENT, None), |(stamp, old)| (stamp, Some(old)));
            writes.insert(key, (stamp, old, (!goes).then_some(record)));
        }
        let stale = self.dice.chance(100);
        let mut commit = Commit::default();
        for (key, (stamp, old, new)) in &writes {
            // As one that never saw the row, or one that saw another.
            let seen = match (stale, *stamp == Stamp::ABSENT || self.dice.chance(500)) {
                (false, _) => *stamp,
                (true, true) => Stamp(stamp.0 + 1),
                (true, false) => Stamp::ABSENT,
            };
            commit.checks.push((*key, seen));
            let links = |row: &Option<Record>| row.as_ref().map(Record::links).unwrap_or_default();
            let (before, after) = (links(old), links(new));
            let only = |these: &[Link], others: &[Link]| -> Vec<Link> {
                these.iter().filter(|it| !others.contains(it)).copied().collect()
            };
            let (unlink, link) = (only(&before, &after), only(&after, &before));
            commit.writes.push(Write { key: *key, record: new.clone(), unlink, link });
        }
        let at = self.dice.below(2);
        match self.programs[at].1.commit(&commit).unwrap() {
            Committed::Conflict(moved) => {
                assert!(stale, "{moved:?}");
                for row in moved {
                    let known = self.books.get(&row.key);
                    assert_eq!(
                        (row.stamp, row.record),
                        known.map_or((Stamp::ABSENT, None), |it| (it.0, Some(it.1.clone())))
                    );
                }
            }
            Committed::Applied(stamp) => {
                assert!(!stale);
                for (key, (_, _, new)) in writes {
                    match new {
                        Some(record) => drop(self.books.insert(key, (stamp, record))),
                        None => {
                            self.books.remove(&key);
                            self.gone.insert(key);
                        }
                    }
                }
            }
        }
    }

    /// A session has every row and every list as the books have them, whichever way it is asked.
    fn agrees(&mut self, session: &mut SqliteSession, books: &Books) {
        let keys: Vec<Key> = books.keys().chain(&self.gone).copied().collect();
        for row in session.load(&keys).unwrap() {
            let known = books.get(&row.key).map(|(stamp, record)| (*stamp, Some(record.clone())));
            assert_eq!((row.stamp, row.record), known.unwrap_or((Stamp::ABSENT, None)), "{:?}", row.key);
        }
        let agent = *self.dice.pick(&AGENTS);
        let mut known: Vec<Key> = books
            .iter()
            .filter(|(_, (_, it))| it.links().iter().any(|link| (link.index, link.prefix) == (Index::ActionsOf, agent)))
            .map(|(key, _)| *key)
            .collect();
        for newest_first in [false, true] {
            let limit = 1 + self.dice.below(9);
            let mut page = Range { newest_first, ..Range::all(Index::ActionsOf, agent, limit) };
            let mut listed = Vec::new();
            loop {
                let found = session.scan(&page).unwrap();
                listed.extend(found.iter().map(|it| it.row.key));
                page.after = found.last().map(|it| (it.order, it.row.key));
                if found.len() < limit {
                    break;
                }
            }
            assert_eq!(listed, known);
            known.reverse();
        }
    }
}

/// Whatever was committed by either of two programs is what every session sees, at its moment.
#[test]
fn what_waits_is_seen_as_if_it_were_in_its_table() {
    let mut folded = 0;
    for seed in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(DATABASE);
        let programs = vec![Run::program(&path), Run::program(&path)];
        let (books, gone, readers) = (Books::new(), BTreeSet::new(), Vec::new());
        let mut run = Run { dice: Dice::new(seed), path, programs, books, gone, readers, number: 0 };
        for _ in 0..400 {
            run.step();
        }
        let conn = Connection::open(&run.path).unwrap();
        let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let waiting = count("SELECT count(*) FROM redo");
        assert!(waiting < 100, "{waiting} wait, of {} commits", count("SELECT value FROM meta"));
        folded += count("SELECT count(*) FROM replay") + count("SELECT count(*) FROM actions_of");
    }
    assert!(folded > 50, "{folded} rows were folded");
}

/// Entries of lists are folded at the pace at which they come, also where all that a commit appends is one row that tells of very many.
#[test]
fn what_one_agent_lists_does_not_gather() {
    const A_COMMIT: u128 = 32;
    let directory = tempfile::tempdir().unwrap();
    super::claim(directory.path()).unwrap();
    let path = directory.path().join(DATABASE);
    let store = SqliteStore::start(path.clone(), false, Limits::default(), Folding::of(32, 8)).unwrap();
    let mut session = store.writer().unwrap();
    for number in 0..80 {
        let mut commit = Commit::default();
        for place in 0..A_COMMIT {
            let record = sample::action(sample::id(1), sample::id(1 + number * A_COMMIT + place));
            let (key, link) = (record.key(), record.links());
            commit.checks.push((key, Stamp::ABSENT));
            commit.writes.push(Write { key, record: Some(record), unlink: Vec::new(), link });
        }
        assert!(matches!(session.commit(&commit).unwrap(), Committed::Applied(_)));
    }
    let conn = Connection::open(&path).unwrap();
    let waiting = conn.query_row("SELECT count(*) FROM redo", [], |row| row.get::<_, i64>(0)).unwrap();
    assert!((1..=6).contains(&waiting), "{waiting} commits wait");
}

/// The promises of every store, where every few commits fold something.
#[test]
fn a_file_that_folds_all_the_time_keeps_the_promises() {
    let mut files = Vec::new();
    contract::suite(|| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory.path().join(DATABASE));
        let session = store.writer().unwrap();
        files.push((directory, store));
        session
    });
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join(DATABASE));
    contract::sessions(|| store.writer().unwrap());
    // Two programs on one file.
    let directory = tempfile::tempdir().unwrap();
    let programs = [0, 1].map(|_| open(&directory.path().join(DATABASE)));
    let mut sessions = programs.iter().cycle().map(|program| program.writer().unwrap());
    contract::races(|| sessions.next().unwrap(), super::tests::on_threads);
}
