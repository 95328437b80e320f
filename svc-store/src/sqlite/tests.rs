//! What a file has to promise beside the promises of every store: other processes, crashes, full disks, foreign files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use svc_core::state::evidence::Entry;
use svc_core::state::gate::{Payload, Replay};
use svc_core::state::people::Roster;
use svc_core::store::{Commit, CommitError, Committed, Key, Range, Record, Row, Stamp, Store as _, Write};
use svc_core::testing::contract;
use svc_core::value::digest::{Digest, ReplayId};
use svc_core::value::id::{ActionId, EvidenceId, WorkspaceId};
use svc_core::value::link::{Index, shard};
use svc_core::value::{Id as _, Timestamp};

use super::checkpoint::Limits;
use super::fold::Folding;
use super::{DATABASE, SCHEMA, SqliteSession, SqliteStore};
use crate::backend::Backend as _;
use crate::error::StoreError;

fn open() -> (tempfile::TempDir, SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    (dir, store)
}

fn workspace(n: u128) -> WorkspaceId {
    WorkspaceId::from_bits(n)
}

fn roster(n: u128, epoch: u64) -> Roster {
    Roster { workspace: workspace(n), epoch, agents: 0, mandates: 0 }
}

fn entry(n: u128) -> Entry {
    Entry {
        id: EvidenceId::from_bits(n),
        workspace: workspace(1),
        at: Timestamp::from_millis(1),
        kind: "action.allowed".into(),
        actor: "{}".into(),
        subject: "act".into(),
        data: "{}".into(),
        place: None,
    }
}

fn placed(n: u128, seq: u64) -> Entry {
    entry(n).placed(seq, Digest::from_bytes([0; 32]))
}

/// One row's new image, by what was there before it.
fn write<R: Row + Clone>(before: Option<R>, after: Option<R>) -> Write {
    let id = before.as_ref().or(after.as_ref()).unwrap().id();
    let links = |row: &Option<R>| row.as_ref().map(R::links).unwrap_or_default();
    let record = after.clone().map(|row| R::wrap(Arc::new(row)));
    Write { key: R::key(id), record, unlink: links(&before), link: links(&after) }
}

fn new<R: Row + Clone>(row: &R) -> (Stamp, Write) {
    (Stamp::ABSENT, write(None, Some(row.clone())))
}

fn commit_of(writes: Vec<(Stamp, Write)>) -> Commit {
    let mut commit = Commit::default();
    for (seen, write) in writes {
        commit.checks.push((write.key, seen));
        commit.writes.push(write);
    }
    commit.checks.sort_by_key(|(key, _)| *key);
    commit.writes.sort_by_key(|write| write.key);
    commit
}

fn apply(session: &mut SqliteSession, writes: Vec<(Stamp, Write)>) -> Stamp {
    match session.commit(&commit_of(writes)).unwrap() {
        Committed::Applied(stamp) => stamp,
        Committed::Conflict(moved) => panic!("{moved:?}"),
    }
}

fn at(session: &mut SqliteSession, key: Key) -> (Stamp, Option<Record>) {
    let mut rows = session.load(&[key]).unwrap();
    let row = rows.pop().unwrap();
    (row.stamp, row.record)
}

/// The promises of every store, on a file.
#[test]
fn a_file_keeps_the_promises_of_every_store() {
    let mut files = Vec::new();
    contract::suite(|| {
        files.push(open());
        files.last().unwrap().1.writer().unwrap()
    });
    let (_dir, store) = open();
    contract::sessions(|| store.writer().unwrap());
    let (_dir, store) = open();
    contract::races(|| store.writer().unwrap(), on_threads);
}

pub(super) fn on_threads(racers: Vec<contract::Racer<'_>>) {
    std::thread::scope(|threads| racers.into_iter().for_each(|racer| drop(threads.spawn(racer))));
}

/// Every kind of table gives back what was put into it, by key and by index, and `sqlite3` can ask the bodies.
#[test]
fn rows_come_back_and_bodies_are_json() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    let replay = Replay { id: ReplayId::of(&[b"key"]), body: Some(Digest::of("body")), action: ActionId::from_bits(9) };
    let payload = Payload { action: ActionId::from_bits(9), tool_input: Some("{\"a\":1}".into()), details: None };
    let stamp = apply(&mut session, vec![new(&roster(1, 7)), new(&replay), new(&payload), new(&entry(3))]);
    for record in [
        Roster::wrap(Arc::new(roster(1, 7))),
        Replay::wrap(Arc::new(replay)),
        Payload::wrap(Arc::new(payload)),
        Entry::wrap(Arc::new(entry(3))),
    ] {
        assert_eq!(at(&mut session, record.key()), (stamp, Some(record)));
    }
    let conn = Connection::open(store.path()).unwrap();
    let epoch: i64 = conn.query_row("SELECT body ->> 'epoch' FROM roster", [], |row| row.get(0)).unwrap();
    assert_eq!(epoch, 7);
    let narrow: String =
        conn.query_row("SELECT sql FROM sqlite_schema WHERE name = 'replay'", [], |row| row.get(0)).unwrap();
    assert!(narrow.ends_with("WITHOUT ROWID"), "{narrow}");
}

/// A row that moved, came or went since it was read stops the whole commit, which says what is there now.
#[test]
fn what_moved_conflicts_and_nothing_is_written() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    let first = apply(&mut session, vec![new(&roster(1, 1)), new(&roster(2, 1))]);
    let second = apply(&mut session, vec![(first, write(Some(roster(1, 1)), Some(roster(1, 2))))]);
    let (moved, still, absent) = (Roster::key(workspace(1)), Roster::key(workspace(2)), Roster::key(workspace(3)));
    let stale: Vec<Vec<(Stamp, Write)>> = vec![
        vec![(first, write(Some(roster(1, 1)), Some(roster(1, 3))))],
        vec![(first, write(Some(roster(1, 1)), None))],
        vec![new(&roster(1, 3))],
        vec![(second, write(Some(roster(1, 2)), Some(roster(1, 3)))), new(&roster(2, 9)), new(&roster(3, 1))],
        vec![(first, write(Some(roster(3, 1)), Some(roster(3, 2))))],
    ];
    let expected = [moved, moved, moved, still, absent];
    for (writes, key) in stale.into_iter().zip(expected) {
        let Committed::Conflict(rows) = session.commit(&commit_of(writes)).unwrap() else { panic!("applied") };
        assert_eq!(rows.iter().map(|row| row.key).collect::<Vec<_>>(), [key]);
        assert_eq!((rows[0].stamp, rows[0].record.clone()), at(&mut session, key));
    }
    assert_eq!(at(&mut session, moved), (second, Some(Roster::wrap(Arc::new(roster(1, 2))))));
    assert_eq!(at(&mut session, absent), (Stamp::ABSENT, None));
}

/// A row that was deleted and made again never passes for the one before, also after a restart.
#[test]
fn a_number_is_never_given_twice() {
    let (dir, store) = open();
    let mut session = store.writer().unwrap();
    let first = apply(&mut session, vec![new(&roster(1, 1))]);
    let deleted = apply(&mut session, vec![(first, write(Some(roster(1, 1)), None))]);
    assert!(deleted > first);
    drop((session, store));
    let store = SqliteStore::existing(dir.path()).unwrap();
    let again = apply(&mut store.writer().unwrap(), vec![new(&roster(1, 1))]);
    assert!(again > deleted);
}

/// A commit that only checks is held to its checks, and its number is not the next writer's.
#[test]
fn a_commit_without_writes_is_checked() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    let first = apply(&mut session, vec![new(&roster(1, 1))]);
    let key = Roster::key(workspace(1));
    let only = |stamp| Commit { checks: vec![(key, stamp)], writes: Vec::new() };
    let Committed::Applied(checked) = session.commit(&only(first)).unwrap() else { panic!("conflict") };
    assert!(checked > first);
    let second = apply(&mut session, vec![(first, write(Some(roster(1, 1)), Some(roster(1, 2))))]);
    assert!(second > checked);
    let Committed::Conflict(rows) = session.commit(&only(first)).unwrap() else { panic!("applied") };
    assert_eq!(rows[0].stamp, second);
}

/// A session does not trust what it has seen once another process has committed.
#[test]
fn another_process_is_noticed() {
    let (_dir, store) = open();
    let (mut here, mut there) = (store.writer().unwrap(), store.writer().unwrap());
    let first = apply(&mut here, vec![new(&roster(1, 1)), new(&roster(2, 1))]);
    let key = Roster::key(workspace(1));
    assert_eq!(at(&mut here, key).0, first);
    let second = apply(&mut there, vec![(first, write(Some(roster(1, 1)), Some(roster(1, 2))))]);
    // Here the row is only read, at the stamp that this session has loaded itself.
    let mut commit = commit_of(vec![(first, write(Some(roster(2, 1)), Some(roster(2, 2))))]);
    commit.checks.insert(0, (key, first));
    let Committed::Conflict(rows) = here.commit(&commit).unwrap() else { panic!("trusted an old stamp") };
    assert_eq!((rows[0].key, rows[0].stamp), (key, second));
}

/// An index is listed by prefix, order and key across its tables, in both directions, page by page; a link that follows
/// the stamp gets the commit's.
#[test]
fn indexes_list_in_order() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    let one = apply(&mut session, vec![new(&entry(30)), new(&entry(10))]);
    let two = apply(&mut session, vec![new(&entry(20))]);
    let range = Range::all(Index::Unplaced, shard(workspace(1)), 10);
    let listed = |session: &mut SqliteSession, range: &Range| -> Vec<(u128, Key)> {
        session.scan(range).unwrap().iter().map(|found| (found.order, found.row.key)).collect()
    };
    let key = |n| Entry::key(EvidenceId::from_bits(n));
    let (first, second) = (u128::from(one.0), u128::from(two.0));
    let all = vec![(first, key(10)), (first, key(30)), (second, key(20))];
    assert_eq!(listed(&mut session, &range), all);
    let backward = Range { newest_first: true, ..range.clone() };
    assert_eq!(listed(&mut session, &backward), all.iter().rev().copied().collect::<Vec<_>>());
    for newest_first in [false, true] {
        let mut page = Range { limit: 1, newest_first, ..range.clone() };
        let mut seen = Vec::new();
        while let Some(last) = listed(&mut session, &page).pop() {
            seen.push(last);
            page.after = Some(last);
        }
        assert_eq!(seen.len(), 3, "{seen:?}");
        let other = Range { after: Some((first, Roster::key(workspace(1)))), ..range.clone() };
        assert_eq!(listed(&mut session, &other).len(), 3, "another table's entry came before these");
    }
    assert_eq!(listed(&mut session, &Range { until: second, ..range.clone() }).len(), 2);

    // A row that leaves one index for another; the prefix is wider than 63 bits.
    let wide = Entry { workspace: workspace(u128::MAX - 4), ..placed(20, 5) };
    apply(&mut session, vec![(two, write(Some(entry(20)), Some(wide.clone())))]);
    assert_eq!(listed(&mut session, &range), all[..2]);
    let ledger = Range::all(Index::LedgerOf, wide.workspace.bits(), 10);
    assert_eq!(listed(&mut session, &ledger), [(5, key(20))]);
}

/// A reader sees one moment until it is dropped, and the next one sees the present.
#[test]
fn a_reader_sees_one_moment() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    let first = apply(&mut session, vec![new(&roster(1, 1))]);
    let key = Roster::key(workspace(1));
    let mut reader = store.reader().unwrap();
    assert_eq!(at(&mut reader, key).0, first);
    let second = apply(&mut session, vec![(first, write(Some(roster(1, 1)), Some(roster(1, 2))))]);
    assert_eq!(at(&mut reader, key).0, first);
    assert!(reader.commit(&commit_of(vec![new(&roster(2, 1))])).is_err(), "a reader commits nothing");
    drop(reader);
    assert_eq!(at(&mut store.reader().unwrap(), key).0, second);
}

/// A copy of the files as they are.
fn as_a_crash_leaves(dir: &Path) -> tempfile::TempDir {
    let after = tempfile::tempdir().unwrap();
    for file in [DATABASE, "svc.db-wal"] {
        std::fs::copy(dir.join(file), after.path().join(file)).unwrap();
    }
    after
}

/// Whatever was answered is in the files at that moment: a copy of them, as a crash leaves them, has it.
#[test]
fn an_answer_survives_a_crash() {
    let (dir, store) = open();
    let mut session = store.writer().unwrap();
    let stamp = apply(&mut session, vec![new(&roster(1, 1))]);
    // A loss of power cannot be had here; that the disk is asked for it can.
    let set = "SELECT (SELECT synchronous FROM pragma_synchronous), (SELECT fullfsync FROM pragma_fullfsync), \
               (SELECT checkpoint_fullfsync FROM pragma_checkpoint_fullfsync)";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let told: (i64, i64, i64) = session.parts().unwrap().0.query_row(set, [], read).unwrap();
    assert_eq!(told, (2, 1, 1), "synchronous=FULL, and what macOS needs besides");
    let after = as_a_crash_leaves(dir.path());
    let reopened = SqliteStore::existing(after.path()).unwrap();
    assert_eq!(at(&mut reopened.writer().unwrap(), Roster::key(workspace(1))).0, stamp);
}

/// A full disk is said to be one, nothing of the commit stays, and decisions go on once there is room.
#[test]
fn a_full_disk_refuses_and_recovers() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    let bound = |session: &mut SqliteSession, pages: i64| {
        let (conn, _) = session.parts().unwrap();
        conn.query_row(&format!("PRAGMA max_page_count={pages}"), [], |_| Ok(())).unwrap();
    };
    let first = apply(&mut session, vec![new(&roster(1, 1))]);
    bound(&mut session, 1);
    let big = Payload {
        action: ActionId::from_bits(1),
        tool_input: Some(format!("\"{}\"", "x".repeat(100_000)).into()),
        details: None,
    };
    let commit = commit_of(vec![(first, write(Some(roster(1, 1)), Some(roster(1, 2)))), new(&big)]);
    let refused = session.commit(&commit);
    assert!(matches!(refused, Err(CommitError::Unavailable(StoreError::Full(_)))), "{refused:?}");
    assert_eq!(at(&mut session, Roster::key(workspace(1))), (first, Some(Roster::wrap(Arc::new(roster(1, 1))))));
    bound(&mut session, 1_000_000);
    assert!(matches!(session.commit(&commit), Ok(Committed::Applied(_))));
}

/// A database that may not be written says so; nothing is answered as if it had been.
#[test]
fn a_read_only_database_refuses() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    session.parts().unwrap().0.execute_batch("PRAGMA query_only=ON").unwrap();
    let refused = session.commit(&commit_of(vec![new(&roster(1, 1))]));
    assert!(matches!(refused, Err(CommitError::Unavailable(StoreError::ReadOnly(_)))), "{refused:?}");
}

/// A row that cannot be understood is an error, never an absent row.
#[test]
fn a_row_of_a_newer_release_is_an_error() {
    let (_dir, store) = open();
    let mut session = store.writer().unwrap();
    apply(&mut session, vec![new(&roster(1, 1))]);
    let conn = Connection::open(store.path()).unwrap();
    for change in ["UPDATE roster SET format = 99", "UPDATE roster SET format = 1, body = '{'"] {
        conn.execute(change, []).unwrap();
        let read = session.load(&[Roster::key(workspace(1))]);
        assert!(matches!(read, Err(StoreError::Undecodable(_))), "{read:?}");
    }
}

/// Pages that were overwritten are found to be damaged, not read as something.
#[test]
fn a_damaged_file_is_said_to_be_damaged() {
    let (dir, store) = open();
    apply(&mut store.writer().unwrap(), vec![new(&roster(1, 1))]);
    drop(store);
    let path = dir.path().join(DATABASE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let opened = SqliteStore::existing(dir.path()).and_then(|store| store.writer()?.load(&[Roster::key(workspace(1))]));
    assert!(matches!(opened, Err(StoreError::Corrupt(_))), "{opened:?}");
}

fn refused(dir: &Path) -> StoreError {
    SqliteStore::open(dir).expect_err("opened")
}

/// Nobody else's files are touched: neither a directory, nor a database, nor anything else of that name.
#[test]
fn foreign_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
    assert!(matches!(refused(dir.path()), StoreError::ForeignDirectory { found, .. } if found == "thesis.txt"));
    assert!(!dir.path().join(DATABASE).exists());

    let dir = tempfile::tempdir().unwrap();
    Connection::open(dir.path().join(DATABASE)).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let before = std::fs::read(dir.path().join(DATABASE)).unwrap();
    assert!(matches!(refused(dir.path()), StoreError::ForeignDatabase { .. }));
    assert_eq!(std::fs::read(dir.path().join(DATABASE)).unwrap(), before);

    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(DATABASE), "not a database at all").unwrap();
    assert!(matches!(refused(dir.path()), StoreError::ForeignDatabase { .. }));

    let file = dir.path().join(DATABASE);
    assert!(matches!(refused(&file), StoreError::File { .. }), "a file is no directory");
}

/// A database of a newer release is refused as it is; where there is none, none is made unless it was asked for.
#[test]
fn a_newer_schema_is_refused() {
    let (dir, store) = open();
    drop(store);
    assert!(matches!(super::schema_of(dir.path()), Ok(SCHEMA)));
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch(&format!("PRAGMA user_version={}", SCHEMA + 1)).unwrap();
    let error = refused(dir.path());
    assert!(matches!(error, StoreError::NewerSchema { found, known } if found == SCHEMA + 1 && known == SCHEMA));
    assert!(error.to_string().contains("newer release"), "{error}");
    assert!(matches!(super::schema_of(dir.path()), Err(StoreError::NewerSchema { .. })));

    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(super::schema_of(empty.path()), Err(StoreError::NoData { .. })));
    assert!(matches!(SqliteStore::existing(empty.path()), Err(StoreError::NoData { .. })));
    assert!(!empty.path().join(DATABASE).exists());
}

/// A database of the first schema is brought up to date as it is opened: its rows stay, and what it has no table for gets one.
#[test]
fn a_database_of_the_first_schema_is_brought_up_to_date() {
    let (dir, store) = open();
    apply(&mut store.writer().unwrap(), vec![new(&roster(1, 7))]);
    drop(store);
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    let named = |conn: &Connection| -> Vec<String> {
        let mut names = conn.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
        names.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let before = named(&conn);
    conn.execute_batch(
        "DROP TABLE received; DROP TABLE sso_link; DROP TABLE topic; DROP TABLE export; PRAGMA user_version=1;",
    )
    .unwrap();
    assert!(named(&conn).len() < before.len());
    let store = SqliteStore::open(dir.path()).unwrap();
    assert!(matches!(super::schema_of(dir.path()), Ok(SCHEMA)));
    assert_eq!(named(&conn), before);
    let (_, found) = at(&mut store.writer().unwrap(), Roster::key(workspace(1)));
    assert_eq!(found, Some(Roster::wrap(Arc::new(roster(1, 7)))));
}

/// The directory that is made, the database and its log are this user's alone.
#[cfg(unix)]
#[test]
fn files_are_this_users_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("new/data");
    let store = SqliteStore::open(&data).unwrap();
    apply(&mut store.writer().unwrap(), vec![new(&roster(1, 1))]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in [DATABASE, "svc.db-wal"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
}

/// A database that somebody keeps reading as it was before it had a log is told of after the wait for another process, and not after
/// as many waits as tries.
#[test]
fn a_database_that_cannot_be_set_up_is_told_of() {
    let (dir, store) = open();
    drop(store);
    let path = dir.path().join(DATABASE);
    let reading = Connection::open(&path).unwrap();
    reading.execute_batch("PRAGMA journal_mode=DELETE; BEGIN; SELECT count(*) FROM sqlite_schema").unwrap();
    let began = std::time::Instant::now();
    let told = SqliteStore::existing(dir.path());
    assert!(matches!(told, Err(StoreError::Locked(_))), "{told:?}");
    assert!(began.elapsed() < 4 * super::BUSY, "{:?}", began.elapsed());
    reading.execute_batch("COMMIT").unwrap();
    drop(SqliteStore::existing(dir.path()).unwrap());
}

/// Waits for the log in `dir` to be cut off, which happens on a thread of its own.
fn wait_for_cut(dir: &Path) {
    let began = std::time::Instant::now();
    while !super::is_log_cut(dir).unwrap() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "the log was not cut off");
        std::thread::yield_now();
    }
}

/// A log that whoever wrote it could not cut off any more is cut off by whoever opens the database next: what was erased may
/// stand in it.
#[test]
fn the_log_of_a_crash_is_cut_off() {
    let (dir, store) = open();
    let mut session = store.writer().unwrap();
    let stamp = apply(&mut session, vec![new(&roster(1, 1))]);
    let after = as_a_crash_leaves(dir.path());
    assert!(!super::is_log_cut(after.path()).unwrap());
    let reopened = SqliteStore::existing(after.path()).unwrap();
    wait_for_cut(after.path());
    assert_eq!(at(&mut reopened.writer().unwrap(), Roster::key(workspace(1))).0, stamp);
}

/// A log is cut off once: that this changes what SQLite says of other connections' commits makes no second reason of it.
#[test]
fn a_log_is_cut_off_once() {
    let (dir, store) = open();
    let mut session = store.writer().unwrap();
    apply(&mut session, vec![new(&roster(1, 1))]);
    let beside = SqliteStore::existing(dir.path()).unwrap();
    apply(&mut beside.writer().unwrap(), vec![new(&roster(2, 1))]);
    drop(beside);
    at(&mut session, Roster::key(workspace(1)));
    wait_for_cut(dir.path());
    for n in 3..6 {
        apply(&mut session, vec![new(&roster(n, 1))]);
        at(&mut session, Roster::key(workspace(n)));
    }
    assert!(!store.shared.checkpoints.is_tainted(), "nobody else has committed since");
}

/// Where another process has committed, and perhaps erased and ended, whoever stays cuts the log off.
#[test]
fn the_log_of_others_is_cut_off() {
    let (dir, store) = open();
    let mut session = store.writer().unwrap();
    let key = Roster::key(workspace(1));
    assert_eq!(at(&mut session, key).0, Stamp::ABSENT);
    let beside = SqliteStore::existing(dir.path()).unwrap();
    let stamp = apply(&mut beside.writer().unwrap(), vec![new(&roster(1, 1))]);
    drop(beside);
    assert!(!super::is_log_cut(dir.path()).unwrap());
    assert_eq!(at(&mut session, key).0, stamp);
    wait_for_cut(dir.path());
}

/// Under steady load the log does not grow past its bound, and readers in between do not change that.
#[test]
fn the_log_stays_short_under_load() {
    let dir = tempfile::tempdir().unwrap();
    super::claim(dir.path()).unwrap();
    let limits = Limits { rows_between: 256, rows_ahead_max: 512, log_pages_max: 256 };
    let store = SqliteStore::start(dir.path().join(DATABASE), false, limits, Folding::default()).unwrap();
    let mut session = store.writer().unwrap();
    let mut stamp = apply(&mut session, vec![new(&roster(1, 0))]);
    for n in 0..2_000_u64 {
        stamp = apply(
            &mut session,
            vec![
                (stamp, write(Some(roster(1, n)), Some(roster(1, n + 1)))),
                new(&Payload { action: ActionId::from_bits(n.into()), tool_input: None, details: None }),
            ],
        );
        if n % 100 == 0 {
            assert_eq!(at(&mut store.reader().unwrap(), Roster::key(workspace(1))).0, stamp);
        }
    }
    let log = std::fs::metadata(dir.path().join("svc.db-wal")).unwrap().len();
    // 2,000 commits of five pages are 40 MB; what the limits allow is some 6 MB.
    assert!(log < 10_000_000, "{log} bytes of log");
}
