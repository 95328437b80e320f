//! A gate that goes from SQLite to PostgreSQL: all of it or nothing, and to one place.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rusqlite::Connection;
use svc_core::rules::gate::Caller;
use svc_core::state::gate::{OutcomeStatus, Verb};
use svc_core::state::people::Settings;
use svc_core::store::{Commit, Committed, Key, Range, Record, Stamp, Store, Table, Write};
use svc_core::testing::sample;
use svc_core::testing::world::{World, key, payment, terms};
use svc_core::value::Span;
use svc_core::value::link::Index;
use svc_store::postgres::Terms;
use svc_store::sqlite::{DATABASE, SCHEMA, SqliteSession, backup, schema_of};
use svc_store::{Backend as _, MoveFault, Moved, MovedNow, Moving, SqliteStore, StoreError, move_to_postgres};

use crate::database::Database;
use crate::proxy::Proxy;
use crate::{applied, insert, open};

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":500000,"askAbove":5000,"perPeriod":{"amount":100000000,"period":"month"}}}"#;

/// The tables whose rows wait in `redo`.
const WAITING: [&str; 3] = ["activity", "payee", "replay"];

fn write(session: &mut SqliteSession, commit: &Commit) -> Stamp {
    match session.commit(commit) {
        Ok(Committed::Applied(stamp)) => stamp,
        other => panic!("not applied: {other:?}"),
    }
}

/// A gate that has decided for a while: some actions done, some denied, some that wait for a person, an agent that was stopped; a row of
/// every kind beside; and rows that wait in `redo`, over older ones in their tables and over none.
fn live(directory: &Path, turns: i64) {
    let store = SqliteStore::open(directory).unwrap();
    let mut world = World::over(store.writer().unwrap(), Settings::default());
    let agents: Vec<Caller> = (0..3).map(|_| world.agent().with_mandate(terms(OFFICE)).register()).collect();
    let mut verbs = [0_u32; 2];
    for turn in 0..turns {
        for agent in &agents {
            let (amount, shop) = if turn % 4 == 0 { (9_000, 9) } else { (100 + turn, turn % 7) };
            let asked = payment(amount, "EUR", &format!("shop{shop}.com")).keyed(key(&format!("k{turn}")));
            let decided = world.authorize(agent, asked);
            verbs[usize::from(decided.verb() == Verb::Allow)] += 1;
            if decided.verb() == Verb::Allow && turn % 3 == 0 {
                let _ = world.settle(agent, decided.id(), OutcomeStatus::Completed, Some(amount));
            }
        }
        world.advance(Span::minutes(20));
    }
    assert!(turns < 60 || verbs.iter().all(|it| *it > 20), "{verbs:?}");
    let _ = world.freeze(agents[2].agent);
    drop(world);
    let mut writer = store.writer().unwrap();
    for record in sample::rows() {
        if writer.load(&[record.key()]).unwrap()[0].record.is_none() {
            let _ = write(&mut writer, &insert(&record));
        }
    }
    drop((writer, store));
    // As folding would: the rows come to their tables. The lists of actions stay where they wait.
    let conn = Connection::open(directory.join(DATABASE)).unwrap();
    for table in WAITING {
        conn.execute_batch(&format!(
            "INSERT OR REPLACE INTO \"{table}\" (key, stamp, format, body) SELECT key, id >> 20, format, body FROM redo \
             WHERE \"of\"='{table}' AND body IS NOT NULL ORDER BY id; DELETE FROM redo WHERE \"of\"='{table}' AND id % 3 <> 0"
        ))
        .unwrap();
    }
    drop(conn);
    // And some are written again, or deleted.
    let store = SqliteStore::open(directory).unwrap();
    let mut writer = store.writer().unwrap();
    for (at, it) in keys(directory).into_iter().filter(|it| WAITING.contains(&it.table().name())).enumerate() {
        let row = writer.load(&[it]).unwrap().remove(0);
        if at % 4 < 2 && row.record.is_some() {
            let record = row.record.filter(|_| at % 4 == 0);
            let write = Write { key: it, record, unlink: Vec::new(), link: Vec::new() };
            let _ = self::write(&mut writer, &Commit { checks: vec![(it, row.stamp)], writes: vec![write] });
        }
    }
}

/// Every key that the file has a row for, or had, as SQL finds them.
fn keys(directory: &Path) -> Vec<Key> {
    let conn = Connection::open(directory.join(DATABASE)).unwrap();
    let mut all = Vec::new();
    for table in Table::ALL {
        let name = table.name();
        let sql =
            format!("SELECT key FROM \"{name}\" UNION SELECT key FROM redo WHERE \"of\"='{name}' AND length(key) > 0");
        let mut found = conn.prepare(&sql).unwrap();
        let found = found.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
        all.extend(found.map(|it| Key::decode(*table, &it.unwrap()).unwrap()));
    }
    all
}

type Rows = Vec<(Key, Stamp, Option<Record>)>;
type Lists = Vec<(Index, u128, Vec<(u128, Key, Stamp)>)>;

/// Whatever the gate can read: each of these rows, and each list that one of them is in, in both directions and from the middle on.
fn reads<S: Store<Error = StoreError>>(session: &mut S, keys: &[Key]) -> (Rows, Lists) {
    let load = |chunk: &[Key]| {
        let mut loaded = session.load(chunk).unwrap();
        loaded.sort_by_key(|it| it.key);
        loaded.into_iter().map(|it| (it.key, it.stamp, it.record)).collect::<Vec<_>>()
    };
    let rows: Rows = keys.chunks(500).flat_map(load).collect();
    let links = rows.iter().filter_map(|(.., record)| record.as_ref()).flat_map(Record::links);
    let mut of: Vec<(Index, u128)> = links.map(|it| (it.index, it.prefix)).collect();
    of.sort_unstable();
    of.dedup();
    let mut lists = Vec::new();
    for (index, prefix) in of {
        let mut range = Range::all(index, prefix, 10_000);
        for _ in 0..3 {
            let found = session.scan(&range).unwrap();
            let middle = found.get(found.len() / 2).map(|it| (it.order, it.row.key));
            assert!(found.iter().all(|it| it.row.record.is_some()));
            lists.push((index, prefix, found.iter().map(|it| (it.order, it.row.key, it.row.stamp)).collect()));
            range.after = if range.newest_first { middle } else { None };
            range.newest_first = true;
        }
    }
    (rows, lists)
}

fn moved(directory: &Path, address: &str) -> Result<Moved, StoreError> {
    move_to_postgres(directory, address, Terms::default(), &mut |_| {})
}

fn now(moved: Result<Moved, StoreError>) -> MovedNow {
    match moved {
        Ok(Moved::Now(it)) => it,
        other => panic!("not moved: {other:?}"),
    }
}

fn rows_there(server: &Database) -> String {
    server.sql("SELECT (SELECT count(*) FROM svc.records) + (SELECT count(*) FROM svc.links)")
}

fn is_moved<T: std::fmt::Debug>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Move(MoveFault::Moved { .. })))
}

/// Every row and every list reads as before, the gate goes on there, and nothing opens the file any more; the same command says that it
/// was moved, also when the gate has gone on.
#[test]
fn a_gate_that_was_moved_reads_as_before() {
    let server = Database::start();
    let (home, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    live(home.path(), 60);
    let keys = keys(home.path());
    let before = {
        let store = SqliteStore::open(home.path()).unwrap();
        reads(&mut store.reader().unwrap(), &keys)
    };
    let there = before.0.iter().filter(|(.., record)| record.is_some()).count();
    let waiting = |table: &str| before.0.iter().filter(|(it, ..)| it.table().name() == table).count();
    assert!(there < keys.len() && WAITING.iter().all(|it| waiting(it) > 2), "some were deleted, and some wait");
    assert!(before.0.iter().filter(|(it, ..)| it.table() == Table::Entry).count() > 200, "the ledger is long");

    let mut told = Vec::new();
    let done = move_to_postgres(home.path(), &server.address(), Terms::default(), &mut |it| told.push(it));
    let done = now(done);
    assert_eq!((done.rows, done.schema), (u64::try_from(there).unwrap(), SCHEMA));
    assert_eq!(
        told[told.len() - 3..],
        [Moving::Copied { rows: done.rows, of: done.rows }, Moving::Checked, Moving::Marked]
    );
    let store = open(&server.address());
    let after = reads(&mut store.reader().unwrap(), &keys);
    assert_eq!(after.0, before.0);
    assert_eq!(after.1, before.1);
    assert_eq!(rows_there(&server), (done.rows + done.entries).to_string());
    let newest = before.0.iter().map(|(_, stamp, _)| *stamp).max().unwrap();
    assert!(done.stamp >= newest.0);
    assert_eq!(
        applied(&mut store.writer().unwrap(), &insert(&sample::payload(sample::id(99), "on"))).0,
        done.stamp + 1
    );

    assert!(is_moved(&SqliteStore::open(home.path())) && is_moved(&SqliteStore::open_to_serve(home.path())));
    assert!(is_moved(&SqliteStore::existing(home.path())) && is_moved(&schema_of(home.path())));
    assert!(is_moved(&backup(home.path(), &copies.path().join("copy.db"), &mut |_| {})));
    let told = schema_of(home.path()).unwrap_err().to_string();
    assert!(told.contains(&done.to) && told.contains("store.url"), "{told}");
    let again = moved(home.path(), &server.address());
    assert!(matches!(&again, Ok(Moved::Before { to }) if *to == done.to), "{again:?}");
    // Where it did not go it cannot have come to: the first move may have come through.
    assert!(is_moved(&moved(home.path(), &server.another("other"))));
}

/// A move that ends in the middle leaves nothing there, and the next one makes it; where the file was marked before, it is not served
/// meanwhile.
#[test]
fn a_move_that_breaks_off_leaves_nothing_and_is_made_again() {
    let server = Database::start();
    let home = tempfile::tempdir().unwrap();
    live(home.path(), 4);
    let broken = |at: fn(Moving) -> bool| {
        let mut tell = |it| assert!(!at(it), "broken off");
        let ended = catch_unwind(AssertUnwindSafe(|| {
            move_to_postgres(home.path(), &server.address(), Terms::default(), &mut tell)
        }));
        assert!(ended.is_err(), "{ended:?}");
        assert_eq!(rows_there(&server), "0");
    };
    broken(|it| matches!(it, Moving::Copied { rows, of } if rows * 2 > of));
    broken(|it| it == Moving::Checked);
    drop(SqliteStore::open(home.path()).expect("it goes on here"));
    broken(|it| it == Moving::Marked);
    assert!(is_moved(&SqliteStore::open(home.path())));
    let keys = keys(home.path());
    let done = now(moved(home.path(), &server.address()));
    let after = reads(&mut open(&server.address()).reader().unwrap(), &keys);
    assert_eq!(after.0.iter().filter(|(.., record)| record.is_some()).count(), usize::try_from(done.rows).unwrap());
}

/// Where the last word is lost nobody serves the file, whichever way it went; the same command finds out. Where the server says that it
/// has kept nothing, the file is served as before.
#[test]
fn a_last_word_that_is_lost_is_found_out() {
    for arrives in [true, false] {
        let server = Database::with(&["listen_addresses=127.0.0.1"]);
        let home = tempfile::tempdir().unwrap();
        live(home.path(), 4);
        let proxy = Proxy::before(server.port, arrives);
        let address = format!("postgres://svc@127.0.0.1:{}/svc", proxy.port);
        let mut tell = |it| {
            if it == Moving::Marked {
                proxy.cut();
            }
        };
        let lost = move_to_postgres(home.path(), &address, Terms::default(), &mut tell);
        assert!(matches!(lost, Err(StoreError::Move(MoveFault::Unsettled(_)))), "{lost:?}");
        assert!(is_moved(&SqliteStore::open(home.path())));
        proxy.mend();
        let found = moved(home.path(), &address);
        assert_eq!(matches!(found, Ok(Moved::Before { .. })), arrives, "{found:?}");
        assert!(found.is_ok() && rows_there(&server) != "0");
    }
    let server = Database::start();
    let home = tempfile::tempdir().unwrap();
    live(home.path(), 4);
    drop(open(&server.address()));
    server.sql(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not now''; END'; \
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON svc.records DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION public.refuse()",
    );
    let refused = moved(home.path(), &server.address());
    assert!(matches!(refused, Err(StoreError::Database(_))), "{refused:?}");
    drop(SqliteStore::open(home.path()).expect("it goes on here"));
    server.sql("DROP TRIGGER refuse ON svc.records");
    let _ = now(moved(home.path(), &server.address()));
}

/// What is in the way is told before anything is written, and nothing is moved.
#[test]
fn what_is_in_the_way_of_a_move_is_told() {
    let server = Database::start();
    let (home, none) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    live(home.path(), 4);
    let file = home.path().join(DATABASE);
    let refused = moved(none.path(), &server.address());
    assert!(matches!(refused, Err(StoreError::NoData { .. })), "{refused:?}");
    // A program that embeds the gate takes no lock of a server.
    let embeds = SqliteStore::open(home.path()).unwrap();
    let refused = moved(home.path(), &server.address());
    assert!(matches!(refused, Err(StoreError::Move(MoveFault::InUse { .. }))), "{refused:?}");
    drop(embeds);
    // Another gate is there, or a server that serves one.
    let taken = server.another("taken");
    let _ = applied(&mut open(&taken).writer().unwrap(), &insert(&sample::payload(sample::id(1), "theirs")));
    let refused = moved(home.path(), &taken);
    assert!(matches!(refused, Err(StoreError::Move(MoveFault::Taken { .. }))), "{refused:?}");
    let serves = open(&server.another("served"));
    let listens = serves.others().unwrap();
    let refused = moved(home.path(), &server.address_of("served"));
    assert!(matches!(refused, Err(StoreError::Move(MoveFault::Served { .. }))), "{refused:?}");
    drop(listens);
    // Of a newer release.
    let set = |schema: i64| {
        Connection::open(&file).unwrap().execute_batch(&format!("PRAGMA user_version={schema}")).unwrap();
    };
    set(SCHEMA + 1);
    let refused = moved(home.path(), &server.address());
    assert!(matches!(refused, Err(StoreError::NewerSchema { .. })), "{refused:?}");
    // One of an older release is brought up to date first.
    set(SCHEMA - 1);
    let other = tempfile::tempdir().unwrap();
    fs::copy(&file, other.path().join(DATABASE)).unwrap();
    assert_eq!(now(moved(other.path(), &server.another("older"))).schema, SCHEMA - 1);
    // A page that a disk has lost.
    let mut damaged = fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
    let size = damaged.seek(SeekFrom::End(0)).unwrap();
    damaged.seek(SeekFrom::Start(size / 2 / 4096 * 4096)).unwrap();
    damaged.write_all(&[0x5a; 8192]).unwrap();
    drop(damaged);
    let refused = moved(home.path(), &server.address());
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    assert_eq!(rows_there(&server), "0");
}

/// A server that does not keep what it is given is found out before the last word, and nothing of it is kept.
#[test]
fn a_copy_that_is_not_what_was_read_is_given_up() {
    let server = Database::start();
    let home = tempfile::tempdir().unwrap();
    live(home.path(), 2);
    drop(open(&server.address()));
    let on = |table: &str, does: &str| {
        server.sql(&format!(
            "CREATE OR REPLACE FUNCTION public.alter() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {does} END'; \
             CREATE TRIGGER alter BEFORE INSERT ON svc.{table} FOR EACH ROW EXECUTE FUNCTION public.alter()"
        ));
        let refused = moved(home.path(), &server.address());
        let told = format!("{:?}", refused.as_ref().err());
        assert!(matches!(refused, Err(StoreError::Move(MoveFault::Miscopied { .. }))), "{does}: {told}");
        server.sql(&format!("DROP TRIGGER alter ON svc.{table}"));
        assert_eq!(rows_there(&server), "0");
        told
    };
    let told = on("records", "IF NEW.tab = ''payload'' THEN RETURN NULL; END IF; RETURN NEW;");
    assert!(told.contains("payload"), "{told}");
    let told = on("records", "IF NEW.tab = ''chain'' THEN NEW.stamp := NEW.stamp + 1; END IF; RETURN NEW;");
    assert!(told.contains("ledger"), "{told}");
    drop(SqliteStore::open(home.path()).expect("it goes on here"));
}

/// A program that has the file open all the same, as one that came in the moment after the look, decides nothing once it is marked.
#[test]
fn a_program_that_has_a_moved_file_open_commits_nothing() {
    let server = Database::start();
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for directory in [home.path(), other.path()] {
        let store = SqliteStore::open(directory).unwrap();
        let _ = write(&mut store.writer().unwrap(), &insert(&sample::payload(sample::id(1), "one")));
    }
    let _ = now(moved(home.path(), &server.address()));
    // The mark as the move has set it.
    let mut version = [0; 4];
    let mut file = fs::File::open(home.path().join(DATABASE)).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.read_exact(&mut version).unwrap();
    let store = SqliteStore::open(other.path()).unwrap();
    let mut writer = store.writer().unwrap();
    let _ = write(&mut writer, &insert(&sample::payload(sample::id(2), "two")));
    let conn = Connection::open(other.path().join(DATABASE)).unwrap();
    let mark = format!(
        "BEGIN; PRAGMA user_version={}; INSERT INTO meta VALUES ('moved', 'postgres://db:5432/svc'), ('moved_by', 7); COMMIT",
        u32::from_be_bytes(version)
    );
    conn.execute_batch(&mark).unwrap();
    let refused = writer.commit(&insert(&sample::payload(sample::id(3), "three")));
    let told = format!("{refused:?}");
    assert!(refused.is_err() && told.contains("Moved") && told.contains("postgres://db:5432/svc"), "{told}");
    assert!(is_moved(&writer.load(&[sample::payload(sample::id(1), "").key()])));
    // A release that knows no mark finds a schema that it does not know.
    assert!(i64::from(u32::from_be_bytes(version)) > SCHEMA + 1_000);
}
