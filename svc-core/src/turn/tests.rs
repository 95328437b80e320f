//! Turns over commands made of closures: what a batch loads, commits, answers and gives back.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::refusal::Kind;
use crate::state::evidence::{Actor, Entry, Fact, Subject};
use crate::state::gate::Payload;
use crate::state::people::Roster;
use crate::store::{Committed, MemoryStore, Row, Store};
use crate::value::Id;
use crate::value::id::{ActionId, WorkspaceId};

type Rule = Box<dyn Fn(&mut Scope<'_>) -> Result<Said, Halt>>;

/// A command that is a closure.
struct Toy(Rule);

/// What a toy answers: whether that lets something happen, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    permits: bool,
    number: u128,
}

/// Counts batches that were closed; a batch that wrote the row of this number refuses to be closed.
const CLOSED: u128 = 900;
const NEVER_CLOSED: u128 = 901;

impl Decide for Toy {
    type Reply = Said;
    fn decide(&self, scope: &mut Scope<'_>) -> Result<Said, Halt> {
        (self.0)(scope)
    }
    fn close(scope: &mut Scope<'_>) -> Result<(), Halt> {
        let wrote: Vec<Key> = scope.staged().map(Record::key).collect();
        let epoch = scope.get::<Roster>(at(CLOSED))?.map_or(0, |it| it.epoch);
        if wrote.contains(&Roster::key(at(NEVER_CLOSED))) {
            return Err(Refusal::internal().into());
        }
        scope.put(counter(CLOSED, epoch + 1));
        Ok(())
    }
    fn permits(reply: &Said) -> bool {
        reply.permits
    }
}

impl std::fmt::Debug for Toy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Toy")
    }
}

fn toy(rule: impl Fn(&mut Scope<'_>) -> Result<Said, Halt> + 'static) -> Toy {
    Toy(Box::new(rule))
}

const fn said(number: u128) -> Said {
    Said { permits: false, number }
}

fn at(bits: u128) -> WorkspaceId {
    WorkspaceId::from_bits(bits)
}

fn counter(bits: u128, epoch: u64) -> Roster {
    Roster { workspace: at(bits), epoch, agents: 0, mandates: 0 }
}

/// Adds one to a counter, which may be absent, and answers the sum.
fn add_one(bits: u128) -> Toy {
    toy(move |scope| {
        let count = scope.get::<Roster>(at(bits))?.map_or(0, |it| it.epoch) + 1;
        scope.put(counter(bits, count));
        Ok(Said { permits: true, number: count.into() })
    })
}

/// Reads counter after counter, each only once the one before is known.
fn chain(first: u128, len: u128) -> Toy {
    toy(move |scope| {
        for bits in first..first + len {
            let _ = scope.get::<Roster>(at(bits))?;
        }
        Ok(said(len))
    })
}

fn refuse_after_put(bits: u128) -> Toy {
    toy(move |scope| {
        let _ = scope.get::<Roster>(at(bits))?;
        scope.put(counter(bits, 99));
        Err(Refusal::not_found().into())
    })
}

fn turn(commands: Vec<Toy>, rows: Rows) -> Turn<Toy> {
    Turn::new(Timestamp::from_millis(1_000), Seed::new([7; 32]), commands, rows)
}

/// What driving a turn to its end showed.
struct Run {
    finished: Finished<Toy>,
    loads: Vec<Vec<Key>>,
    commit: Commit,
}

fn drive(store: &mut MemoryStore, mut turn: Turn<Toy>) -> Run {
    let mut loads = Vec::new();
    loop {
        match turn.step() {
            Step::Load(keys) => {
                turn.handle_loaded(store.load(&keys).unwrap());
                loads.push(keys);
            }
            Step::Commit(commit) => {
                let commit = commit.clone();
                match store.commit(&commit).unwrap() {
                    Committed::Applied(stamp) => return Run { finished: turn.finish(stamp), loads, commit },
                    Committed::Conflict(moved) => turn.handle_conflict(moved),
                }
            }
        }
    }
}

fn numbers(run: &Run) -> Vec<u128> {
    run.finished.answers.iter().map(|it| it.as_ref().unwrap().number).collect()
}

fn count(store: &mut MemoryStore, bits: u128) -> Option<u64> {
    let row = store.load(&[Roster::key(at(bits))]).unwrap().remove(0);
    row.record.as_ref().and_then(Roster::peel).map(|it| it.epoch)
}

/// Needs that chain are met round by round, and the command is decided.
#[test]
fn a_turn_goes_on_as_long_as_it_gets_on() {
    let mut store = MemoryStore::new();
    let run = drive(&mut store, turn(vec![chain(1, 60)], Rows::default()));
    assert_eq!(run.loads.len(), 60);
    assert_eq!(numbers(&run), [60]);
    assert!(run.finished.rest.is_empty());
    assert_eq!(run.commit.checks.len(), 60, "all that was read is checked");
}

/// Rows that one `want` names come in one round; those of all commands of a batch do, too.
#[test]
fn a_batch_loads_in_one_round_what_all_its_commands_name() {
    let mut store = MemoryStore::new();
    let wide = toy(|scope| {
        scope.want(&[Roster::key(at(501)), Roster::key(at(502)), Roster::key(at(503))])?;
        Ok(said(0))
    });
    let commands = (1..=64).map(add_one).chain([wide]).collect();
    let run = drive(&mut store, turn(commands, Rows::default()));
    assert_eq!(run.loads.iter().map(Vec::len).collect::<Vec<_>>(), [67]);
    assert_eq!(run.commit.writes.len(), 64);
}

/// The batch goes no further than its rounds: what is decided is committed, and the rest comes back in its order.
#[test]
fn a_batch_that_takes_too_many_rounds_commits_what_is_decided() {
    let mut store = MemoryStore::new();
    let long = u128::from(ROUNDS_MAX) + 10;
    let run = drive(&mut store, turn(vec![add_one(1), chain(100, long), add_one(2)], Rows::default()));
    assert_eq!(numbers(&run), [1]);
    assert_eq!(run.finished.rest.len(), 2);
    assert_eq!((count(&mut store, 1), count(&mut store, 2)), (Some(1), None));
    assert!(run.loads.len() <= ROUNDS_MAX as usize);
    // The first command of a turn is decided however long it takes, so the rest gets on.
    let run = drive(&mut store, turn(run.finished.rest, Rows::default()));
    assert_eq!(numbers(&run), [long, 1]);
    assert_eq!(count(&mut store, 2), Some(1));
}

/// A conflict after the batch was cut decides everything again, in the first order.
#[test]
fn a_cut_batch_is_whole_again_after_a_conflict() {
    let mut store = MemoryStore::new();
    let mut turn = turn(vec![add_one(1), chain(100, 40), add_one(1)], Rows::default());
    let mut other = Some(());
    loop {
        match turn.step() {
            Step::Load(keys) => turn.handle_loaded(store.load(&keys).unwrap()),
            Step::Commit(commit) => {
                let commit = commit.clone();
                if other.take().is_some() {
                    let _ = drive(&mut store, self::turn(vec![add_one(1)], Rows::default()));
                }
                match store.commit(&commit).unwrap() {
                    Committed::Conflict(moved) => turn.handle_conflict(moved),
                    Committed::Applied(stamp) => {
                        let finished = turn.finish(stamp);
                        let said: Vec<u128> = finished.answers.iter().map(|it| it.as_ref().unwrap().number).collect();
                        assert_eq!((said, finished.rest.len()), (vec![2, 40, 3], 0));
                        return assert_eq!(count(&mut store, 1), Some(3));
                    }
                }
            }
        }
    }
}

/// Each command sees what those before it staged, and its own.
#[test]
fn commands_see_those_before_them() {
    let mut store = MemoryStore::new();
    let twice = toy(|scope| {
        let before = scope.get::<Roster>(at(1))?.map_or(0, |it| it.epoch);
        scope.put(counter(1, before * 10));
        let own = scope.get::<Roster>(at(1))?.map_or(0, |it| it.epoch);
        Ok(Said { permits: true, number: own.into() })
    });
    let run = drive(&mut store, turn(vec![add_one(1), add_one(1), twice, add_one(1)], Rows::default()));
    assert_eq!(numbers(&run), [1, 2, 20, 21]);
    assert_eq!(run.commit.writes.len(), 1, "one row is written once");
    assert_eq!(count(&mut store, 1), Some(21));
}

/// After a conflict the commands are decided on the rows as they are now, and nothing is lost.
#[test]
fn a_conflict_is_decided_again_on_fresh_rows() {
    let mut store = MemoryStore::new();
    let stale = drive(&mut store, turn(vec![add_one(1), add_one(2)], Rows::new(100))).finished.rows;
    let _ = drive(&mut store, turn(vec![add_one(1)], Rows::default()));
    let run = drive(&mut store, turn(vec![add_one(1), add_one(2)], stale));
    assert_eq!(numbers(&run), [3, 2]);
    assert!(run.loads.is_empty(), "the conflict brought the fresh row: {:?}", run.loads);
}

/// A batch is closed once, in its own commit, over what its commands wrote; after a conflict again. One that refuses to be
/// closed is committed all the same.
#[test]
fn a_batch_is_closed_in_its_own_commit() {
    let mut store = MemoryStore::new();
    let run = drive(&mut store, turn(vec![add_one(1), add_one(2)], Rows::default()).closing(true));
    assert_eq!(count(&mut store, CLOSED), Some(1));
    assert_eq!(run.commit.writes.len(), 3);
    let stale = run.finished.rows;
    let _ = drive(&mut store, turn(vec![add_one(1)], Rows::default()).closing(true));
    let run = drive(&mut store, turn(vec![add_one(2)], stale).closing(true));
    assert_eq!(numbers(&run), [2], "only closing met the other's commit");
    assert_eq!(count(&mut store, CLOSED), Some(3));
    let _ = drive(&mut store, turn(vec![add_one(1)], Rows::default()));
    let _ = drive(&mut store, turn(vec![add_one(NEVER_CLOSED)], Rows::default()).closing(true));
    assert_eq!((count(&mut store, CLOSED), count(&mut store, NEVER_CLOSED)), (Some(3), Some(1)));
}

/// What a refused command put is dropped; what it read is checked, for a refusal on stale rows is no answer either.
#[test]
fn a_refused_command_leaves_nothing_and_is_checked() {
    let mut store = MemoryStore::new();
    let run = drive(&mut store, turn(vec![refuse_after_put(1), add_one(2)], Rows::default()));
    assert_eq!(run.finished.answers[0].as_ref().unwrap_err().kind(), Kind::NotFound);
    assert_eq!((count(&mut store, 1), count(&mut store, 2)), (None, Some(1)));
    assert_eq!(run.commit.checks.len(), 2);

    let _ = drive(&mut store, turn(vec![add_one(1)], Rows::default()));
    let only_absent = toy(|scope| match scope.get::<Roster>(at(1))? {
        Some(_) => Ok(said(1)),
        None => Err(Refusal::not_found().into()),
    });
    let mut rows = Rows::default();
    rows.insert(Roster::key(at(1)), Stamp::ABSENT, None);
    let run = drive(&mut store, turn(vec![only_absent], rows));
    assert_eq!(numbers(&run), [1], "the refusal rested on a row that has been there since");
}

/// What a rule that is broken is answered: a panic where assertions are compiled in, and a refusal that says nothing
/// where they are not. Nothing is written either way.
fn is_stopped(rule: Toy) {
    let mut store = MemoryStore::new();
    let _ = drive(&mut store, turn(vec![add_one(9)], Rows::default()));
    let mut rows = Rows::default();
    for row in store.load(&[Roster::key(at(9))]).unwrap() {
        rows.insert(row.key, row.stamp, row.record);
    }
    match catch_unwind(AssertUnwindSafe(|| drive(&mut store, turn(vec![rule], rows)))) {
        Err(panic) if !cfg!(debug_assertions) => std::panic::resume_unwind(panic),
        Err(_) => {}
        Ok(run) => {
            assert_eq!(run.finished.answers[0].as_ref().unwrap_err().kind(), Kind::Internal);
            assert!(run.commit.writes.is_empty());
        }
    }
    assert_eq!((count(&mut store, 9), count(&mut store, 1)), (Some(1), None));
}

/// Absence never permits: a yes that rests on a row that is not there has to write it.
#[test]
fn a_permission_on_an_absent_row_is_stopped() {
    is_stopped(toy(|scope| {
        let _ = scope.get::<Roster>(at(1))?;
        Ok(Said { permits: true, number: 0 })
    }));
    // Deleting what is not there holds nobody off who writes it.
    is_stopped(toy(|scope| {
        let _ = scope.get::<Roster>(at(1))?;
        scope.delete::<Roster>(at(1));
        Ok(Said { permits: true, number: 0 })
    }));
    let mut store = MemoryStore::new();
    let no = toy(|scope| scope.get::<Roster>(at(1)).map(|_| said(5)));
    let run = drive(&mut store, turn(vec![no, add_one(1)], Rows::default()));
    assert_eq!(numbers(&run), [5, 1], "a no may rest on absence, and a yes that writes what it missed");
}

/// A row that nobody has read is not overwritten.
#[test]
fn a_put_over_an_unseen_row_is_stopped() {
    is_stopped(toy(|scope| {
        scope.put(counter(9, 99));
        Ok(said(0))
    }));
}

/// A row that is known to be absent from an older moment makes no bug of a rule: the commit conflicts, and on the rows as
/// they are now the rule permits.
#[test]
fn rows_of_two_moments_conflict_and_are_decided_again() {
    let mut store = MemoryStore::new();
    let _ = drive(&mut store, turn(vec![add_one(1)], Rows::default()));
    let mut rows = Rows::default();
    rows.insert(Roster::key(at(1)), Stamp::ABSENT, None);
    let yes = toy(|scope| Ok(Said { permits: true, number: u128::from(scope.get::<Roster>(at(1))?.is_some()) }));
    let run = drive(&mut store, turn(vec![yes], rows));
    assert_eq!(numbers(&run), [1]);
}

/// A rule that halts for rows and names none is told that it is broken, and its neighbours do not notice.
#[test]
fn a_rule_that_asks_for_nothing_is_refused() {
    let mut store = MemoryStore::new();
    let run = drive(&mut store, turn(vec![toy(|_| Err(Halt::Load)), add_one(1)], Rows::default()));
    assert_eq!(run.finished.answers[0].as_ref().unwrap_err().kind(), Kind::Internal);
    assert_eq!(run.finished.answers[1].as_ref().unwrap().number, 1);
}

/// Ids come from the turn's seed and the command's place alone: a second run gets the same ones, no other command does.
#[test]
fn fresh_ids_are_the_same_at_every_run() {
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let drawing = |bits: u128| {
        let seen = std::rc::Rc::clone(&seen);
        toy(move |scope| {
            let ids = [scope.fresh::<ActionId>(), scope.fresh::<ActionId>()];
            seen.borrow_mut().push((bits, ids));
            let count = scope.get::<Roster>(at(bits))?.map_or(0, |it| it.epoch) + 1;
            scope.put(counter(bits, count));
            assert_eq!(ids[0].time(), scope.now());
            Ok(Said { permits: true, number: ids[1].bits() })
        })
    };
    let mut store = MemoryStore::new();
    let mut stale = Rows::default();
    stale.insert(Roster::key(at(1)), Stamp(77), Some(Roster::wrap(counter(1, 5).into())));
    let run = drive(&mut store, turn(vec![drawing(1), drawing(2)], stale));
    assert_ne!(numbers(&run)[0], numbers(&run)[1]);
    let runs = seen.take();
    assert!(runs.len() >= 4, "loaded and decided again");
    for (bits, ids) in &runs {
        let first = runs.iter().find(|it| it.0 == *bits).unwrap();
        assert_eq!(ids, &first.1);
        assert_ne!(ids[0], ids[1]);
    }
    let mut other = Turn::new(Timestamp::from_millis(1_000), Seed::new([8; 32]), vec![drawing(1)], Rows::default());
    other.handle_loaded(store.load(&[Roster::key(at(1))]).unwrap());
    assert!(matches!(other.step(), Step::Commit(_)));
    assert_ne!(seen.take()[0].1, runs[0].1, "another seed, other ids");
}

/// Ledger records of one commit sort in the order of their writing, whatever was drawn.
#[test]
fn records_of_one_commit_sort_as_they_were_written() {
    let noting = || {
        toy(|scope| {
            let fact = |n: i64| Fact {
                kind: "settings.changed",
                actor: Actor::Policy,
                subject: Subject::Workspace(at(1)),
                data: n.to_string(),
            };
            let _ = (scope.append(at(1), fact(0)), scope.append(at(1), fact(1)));
            Ok(said(scope.append(at(1), fact(2)).bits()))
        })
    };
    let mut store = MemoryStore::new();
    let run = drive(&mut store, turn((0..300).map(|_| noting()).collect(), Rows::default()));
    let dump = store.dump();
    let written: Vec<&Entry> = dump.iter().filter_map(|(_, _, row)| Entry::peel(row)).map(AsRef::as_ref).collect();
    assert_eq!(written.len(), 900);
    assert!(written.iter().zip(0..).all(|(entry, n)| *entry.data == *(n % 3).to_string()), "sorted by id");
    assert!(numbers(&run).is_sorted());
}

/// What a turn knows at its end is what the store holds: the next turn loads nothing, a deleted row among it.
#[test]
fn the_rows_after_a_commit_are_as_the_store_has_them() {
    let mut store = MemoryStore::new();
    let delete = toy(|scope| {
        let _ = scope.get::<Roster>(at(2))?;
        scope.delete::<Roster>(at(2));
        Ok(said(0))
    });
    let rows = drive(&mut store, turn(vec![add_one(1), add_one(2)], Rows::new(100))).finished.rows;
    let run = drive(&mut store, turn(vec![add_one(1), delete], rows));
    assert!(run.loads.is_empty());
    let mut written = run.finished.written.clone();
    written.sort_unstable();
    assert_eq!(written, [Roster::key(at(1)), Roster::key(at(2))]);
    for (key, stamp, record) in store.dump() {
        assert_eq!(run.finished.rows.get(&key), Some((stamp, Some(&record))));
    }
    let run = drive(&mut store, turn(vec![add_one(1), add_one(2)], run.finished.rows));
    assert_eq!(numbers(&run), [3, 1]);
}

/// Checks and writes are sorted, each key once, every write checked; a row that never changes is checked only while it
/// is absent, and when it is deleted.
#[test]
fn a_commit_is_in_order_and_checks_no_immutable_row() {
    let id = ActionId::from_bits(5);
    let make = toy(move |scope| {
        if scope.get::<Payload>(id)?.is_none() {
            scope.put(Payload { action: id, tool_input: None, details: None });
        }
        let _ = (scope.get::<Roster>(at(3))?, scope.get::<Roster>(at(1))?);
        Ok(said(0))
    });
    let again = toy(move |scope| scope.get::<Payload>(id).map(|it| said(u128::from(it.is_some()))));
    let mut store = MemoryStore::new();
    let run = drive(&mut store, turn(vec![make, add_one(2), add_one(1)], Rows::new(100)));
    let keys: Vec<Key> = run.commit.checks.iter().map(|(key, _)| *key).collect();
    assert!(keys.is_sorted_by(|a, b| a < b) && keys.contains(&Payload::key(id)), "{keys:?}");
    assert!(run.commit.writes.iter().map(|it| it.key).is_sorted_by(|a, b| a < b));
    assert!(run.commit.writes.iter().all(|it| keys.binary_search(&it.key).is_ok()));
    let run = drive(&mut store, turn(vec![again], run.finished.rows));
    assert_eq!(numbers(&run), [1]);
    assert!(run.commit.checks.is_empty());
    let stamp = run.finished.rows.get(&Payload::key(id)).map(|(stamp, _)| stamp).unwrap();
    let away = toy(move |scope| {
        scope.get::<Payload>(id)?;
        scope.delete::<Payload>(id);
        Ok(said(0))
    });
    let run = drive(&mut store, turn(vec![away], run.finished.rows));
    assert_eq!(run.commit.checks, [(Payload::key(id), stamp)], "a deletion is checked");
    assert_eq!(run.commit.writes.len(), 1);
}

/// A turn that is given up hands back every command in its order, and nothing has happened.
#[test]
fn an_abandoned_turn_gives_its_commands_back() {
    let mut store = MemoryStore::new();
    let mut first = turn(vec![add_one(1), chain(100, 40), add_one(2)], Rows::default());
    while let Step::Load(keys) = first.step() {
        first.handle_loaded(store.load(&keys).unwrap());
    }
    assert_eq!(first.decided(), 1, "the batch was cut");
    let (commands, rows) = first.abandon();
    assert!(store.is_empty());
    let run = drive(&mut store, turn(commands, rows));
    assert_eq!(numbers(&run)[0], 1);
    assert_eq!(run.finished.answers.len() + run.finished.rest.len(), 3);
}

/// A part that is refused leaves nothing of what it put, and the rest goes on from what was put before.
#[test]
fn a_part_that_is_refused_leaves_nothing() {
    let mut store = MemoryStore::new();
    let rule = toy(|scope| {
        for id in 1..=2 {
            let _ = scope.get::<Roster>(at(id))?;
        }
        scope.put(counter(1, 1));
        let refused = scope.attempt(|scope| {
            scope.put(counter(1, 9));
            scope.put(counter(2, 9));
            Err::<(), _>(Refusal::not_found().into())
        })?;
        let taken = scope.attempt(|scope| {
            let _ = scope.get::<Roster>(at(3))?;
            scope.put(counter(3, 3));
            Ok(())
        })?;
        Ok(said(u128::from(refused.is_err() && taken.is_ok())))
    });
    let run = drive(&mut store, turn(vec![rule], Rows::default()));
    assert_eq!(numbers(&run), [1]);
    assert_eq!((count(&mut store, 1), count(&mut store, 2), count(&mut store, 3)), (Some(1), None, Some(3)));
}
