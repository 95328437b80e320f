//! The store over PostgreSQL: every promise of a store, and what goes wrong with a server and with the way to it. Each test starts a
//! server of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "../../tests/src/database.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of the whole workspace")]
mod database;
#[path = "postgres/doubt.rs"]
mod doubt;
#[path = "postgres/moving.rs"]
mod moving;
#[path = "postgres/newer.rs"]
mod newer;
#[path = "postgres/proxy.rs"]
mod proxy;
#[path = "postgres/role.rs"]
mod role;
#[path = "postgres/unread.rs"]
mod unread;

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use svc_core::store::{Clock as _, Commit, CommitError, Committed, Key, Record, Stamp, Store, Table, Write};
use svc_core::testing::{contract, sample};
use svc_core::value::Timestamp;
use svc_store::postgres::{self, PostgresSession, Terms};
use svc_store::{Backend as _, Heard, PostgresStore, StoreError};

use database::Database;
use proxy::Proxy;

fn open(address: &str) -> PostgresStore {
    PostgresStore::open(address, Terms::default()).unwrap()
}

/// A commit that inserts a row.
fn insert(record: &Record) -> Commit {
    let write = Write { key: record.key(), record: Some(record.clone()), unlink: Vec::new(), link: record.links() };
    Commit { checks: vec![(record.key(), Stamp::ABSENT)], writes: vec![write] }
}

/// A commit that writes a row over the one with this stamp.
fn update(record: &Record, seen: Stamp) -> Commit {
    let write = Write { key: record.key(), record: Some(record.clone()), unlink: Vec::new(), link: Vec::new() };
    Commit { checks: vec![(record.key(), seen)], writes: vec![write] }
}

fn applied(session: &mut PostgresSession, commit: &Commit) -> Stamp {
    match session.commit(commit) {
        Ok(Committed::Applied(stamp)) => stamp,
        other => panic!("not applied: {other:?}"),
    }
}

fn row(text: &str) -> Record {
    sample::payload(sample::id(1), text)
}

/// Every promise to one session; each on a database of its own.
#[test]
fn the_suite_passes() {
    let server = Database::start();
    let mut made = 0;
    contract::suite(|| {
        made += 1;
        open(&server.another(&format!("suite{made}"))).writer().unwrap()
    });
}

/// Every promise to sessions that share a database, also where they are of different servers.
#[test]
fn sessions_of_different_servers_see_one_another() {
    let server = Database::start();
    let stores = [open(&server.address()), open(&server.address())];
    let mut turn = 0;
    contract::sessions(|| {
        turn += 1;
        stores[turn % 2].writer().unwrap()
    });
}

/// Commits that share a row come one after the other, made at the same time by two servers.
#[test]
fn servers_race_and_none_goes_under() {
    let server = Database::start();
    let stores = [open(&server.address()), open(&server.address())];
    let mut turn = 0;
    let session = || {
        turn += 1;
        stores[turn % 2].writer().unwrap()
    };
    contract::races(session, |racers| {
        thread::scope(|threads| racers.into_iter().for_each(|racer| drop(threads.spawn(racer))));
    });
}

/// Of two that insert one row with nothing else locked, the one that waits for the other is told of a conflict, and goes on.
#[test]
fn an_insert_that_another_was_faster_with_conflicts() {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let first = applied(&mut writer, &insert(&row("theirs")));
    server.sql("CREATE TABLE kept AS SELECT * FROM svc.records; DELETE FROM svc.records; DELETE FROM svc.links");
    let mut shell = server.shell();
    let mut say = shell.stdin.take().unwrap();
    writeln!(say, "BEGIN; INSERT INTO svc.records SELECT * FROM kept; SELECT 'done';").unwrap();
    let mut heard = String::new();
    BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut heard).unwrap();
    assert_eq!(heard.trim(), "done");
    thread::scope(|threads| {
        let waits = threads.spawn(|| writer.commit(&insert(&row("ours"))));
        while server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock'") == "0" {
            assert!(!waits.is_finished(), "it waits for the other one");
        }
        writeln!(say, "COMMIT;").unwrap();
        drop(say);
        let outcome = waits.join().unwrap();
        let Ok(Committed::Conflict(moved)) = outcome else { panic!("the other one was first: {outcome:?}") };
        assert_eq!((moved[0].stamp, moved[0].record.clone()), (first, Some(row("theirs"))));
    });
    shell.wait().unwrap();
    let _ = applied(&mut writer, &update(&row("ours"), first));
}

/// A store whose every connection is ended by the server while nobody uses it goes on with others.
#[test]
fn connections_that_ended_are_made_anew() {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let first = applied(&mut writer, &insert(&row("one")));
    drop(store.reader().unwrap().load(&[row("").key()]).unwrap());
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name='svc'");
    let second = applied(&mut writer, &update(&row("two"), first));
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name='svc'");
    assert_eq!(writer.load(&[row("").key()]).unwrap()[0].stamp, second);
    assert_eq!(store.reader().unwrap().load(&[row("").key()]).unwrap()[0].stamp, second);
}

/// Readers that come one after the other share a connection, each with a snapshot of its own moment, and none is left open.
#[test]
fn readers_share_connections() {
    let server = Database::with(&["log_connections=on"]);
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let mut seen = applied(&mut writer, &insert(&row("0")));
    let opened = || server.said().matches("application_name=svc").count();
    drop(store.reader().unwrap().load(&[row("").key()]).unwrap());
    let before = opened();
    for turn in 1..50 {
        seen = applied(&mut writer, &update(&row(&turn.to_string()), seen));
        assert_eq!(store.reader().unwrap().load(&[row("").key()]).unwrap()[0].stamp, seen);
    }
    assert_eq!(opened(), before);
    let until = Instant::now() + Duration::from_secs(30);
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'") != "0" {
        assert!(Instant::now() < until, "a snapshot is left open");
    }
}

/// A snapshot whose connection is lost ends: what is read later would be of another moment.
#[test]
fn a_lost_snapshot_is_not_begun_again() {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let first = applied(&mut writer, &insert(&row("one")));
    let mut reader = store.reader().unwrap();
    assert_eq!(reader.load(&[row("").key()]).unwrap()[0].stamp, first);
    let _ = applied(&mut writer, &update(&row("two"), first));
    assert_eq!(reader.load(&[row("").key()]).unwrap()[0].stamp, first, "it sees its moment");
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name='svc'");
    assert!(matches!(reader.load(&[row("").key()]), Err(StoreError::Unreachable(_))));
    assert!(reader.load(&[row("").key()]).is_err());
}

/// While the server is down nothing is decided and everybody hears so at once; when it is back it has all that it confirmed. It might be
/// another one that lacks the last of it, so whoever writes is told before anything is committed.
#[test]
fn a_server_that_lost_power_has_what_it_confirmed() {
    let mut server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let first = applied(&mut writer, &insert(&row("one")));
    server.halt();
    for _ in 0..3 {
        let refused = writer.commit(&update(&row("two"), first));
        let is_down = |error: &StoreError| matches!(error, StoreError::Unreachable(_) | StoreError::Resting);
        assert!(matches!(&refused, Err(CommitError::Unavailable(error)) if is_down(error)), "{refused:?}");
    }
    server.resume();
    let until = Instant::now() + Duration::from_secs(30);
    let mut told = 0;
    let second = loop {
        match writer.commit(&update(&row("two"), first)) {
            Ok(Committed::Applied(stamp)) => break stamp,
            Err(CommitError::Unavailable(StoreError::OtherServer)) => told += 1,
            Err(CommitError::Unavailable(_)) if Instant::now() < until => thread::yield_now(),
            other => panic!("{other:?}"),
        }
    };
    assert!(second > first && told == 1);
}

/// A commit that conflicts keeps its locks: on the fresh rows it goes through, and whoever came meanwhile conflicts in turn.
#[test]
fn after_a_conflict_the_second_try_goes_through() {
    let server = Database::start();
    let (store, other) = (open(&server.address()), open(&server.address()));
    let (mut one, mut two) = (store.writer().unwrap(), other.writer().unwrap());
    let first = applied(&mut one, &insert(&row("start")));
    let second = applied(&mut two, &update(&row("two"), first));
    let Ok(Committed::Conflict(moved)) = one.commit(&update(&row("one"), first)) else { panic!("it has moved") };
    assert_eq!(moved[0].stamp, second);
    thread::scope(|threads| {
        let waits = threads.spawn(|| two.commit(&update(&row("two again"), second)));
        let query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock'";
        while server.sql(query) == "0" {
            assert!(!waits.is_finished(), "it waits for the lock");
        }
        let third = applied(&mut one, &update(&row("one"), second));
        let Ok(Ok(Committed::Conflict(moved))) = waits.join() else { panic!("it has moved") };
        assert_eq!(moved[0].stamp, third);
    });
}

/// A freeze gets through though there is never a moment in which nobody reads the agent's row, and its workspace's beside it as every
/// decision does.
#[test]
fn a_freeze_is_not_passed_by_those_who_read() {
    let server = Database::start();
    let store = open(&server.address());
    let mut freezer = store.writer().unwrap();
    let agent = |at: i64| sample::agent(sample::id(3), sample::id(4), Some(Timestamp::from_millis(at)));
    let first = applied(&mut freezer, &insert(&agent(1)));
    let Record::Agent(of) = agent(1) else { panic!("it is one") };
    let workspace = Key::Workspace(of.workspace);
    let (turns, done) = ([AtomicU64::new(0), AtomicU64::new(0)], AtomicBool::new(false));
    thread::scope(|threads| {
        for own in 0..2 {
            let (mut reader, turns, done) = (store.writer().unwrap(), &turns, &done);
            threads.spawn(move || {
                // It conflicts, for there is no such payload, and has its locks until it gives them back.
                let mut checks = vec![(agent(1).key(), first), (row("").key(), first), (workspace, Stamp::ABSENT)];
                checks.sort_unstable();
                let stale = Commit { checks, writes: Vec::new() };
                while !done.load(Ordering::SeqCst) {
                    let _ = reader.commit(&stale);
                    turns[own].fetch_add(1, Ordering::SeqCst);
                    let (seen, until) =
                        (turns[1 - own].load(Ordering::SeqCst), Instant::now() + Duration::from_millis(300));
                    // Until the other one has it too.
                    while turns[1 - own].load(Ordering::SeqCst) == seen && Instant::now() < until {
                        thread::yield_now();
                    }
                    reader.release();
                }
            });
        }
        while turns.iter().any(|it| it.load(Ordering::SeqCst) < 3) {
            thread::yield_now();
        }
        let outcome = freezer.commit(&update(&agent(2), first));
        done.store(true, Ordering::SeqCst);
        assert!(matches!(outcome, Ok(Committed::Applied(_))), "{outcome:?}");
    });
}

/// Locks of a conflict are given back where the work is not tried again.
#[test]
fn a_release_gives_the_locks_back() {
    let server = Database::start();
    let store = open(&server.address());
    let (mut one, mut two) = (store.writer().unwrap(), store.writer().unwrap());
    let first = applied(&mut one, &insert(&row("start")));
    let second = applied(&mut two, &update(&row("two"), first));
    assert!(matches!(one.commit(&update(&row("one"), first)), Ok(Committed::Conflict(_))));
    one.release();
    let _ = applied(&mut two, &update(&row("two again"), second));
}

/// Where the way breaks while a commit is on it nobody knows whether it was made: it is never told as one or the other.
#[test]
fn a_commit_whose_answer_is_lost_is_not_known() {
    let server = Database::with(&["listen_addresses=127.0.0.1"]);
    for (arrives, text) in [(true, "arrived"), (false, "lost")] {
        let proxy = Proxy::before(server.port, arrives);
        let address = format!("postgres://svc@127.0.0.1:{}/svc", proxy.port);
        let store = open(&address);
        let (mut writer, fresh) = (store.writer().unwrap(), sample::payload(sample::id(7 + u128::from(arrives)), text));
        proxy.cut();
        let outcome = writer.commit(&insert(&fresh));
        assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{text}: {outcome:?}");
        let other = open(&server.address());
        let until = Instant::now() + Duration::from_secs(30);
        let is_there = || other.reader().unwrap().load(&[fresh.key()]).unwrap()[0].record.is_some();
        while arrives && !is_there() {
            assert!(Instant::now() < until, "it has arrived");
        }
        assert_eq!(is_there(), arrives);
    }
}

/// A server that may lose what it confirmed is refused, unless that is asked for.
#[test]
fn a_server_that_may_lose_commits_is_refused() {
    for (setting, named) in [("fsync=off", "fsync"), ("full_page_writes=off", "full_page_writes")] {
        let server = Database::with(&[setting]);
        let refused = PostgresStore::open(&server.address(), Terms::default());
        assert!(matches!(refused, Err(StoreError::Lossy { setting }) if setting == named), "{refused:?}");
        let mut terms = Terms::default();
        terms.may_lose = true;
        PostgresStore::open(&server.address(), terms).unwrap();
    }
    let server = Database::start();
    let store = open(&server.address());
    server.sql("ALTER ROLE svc SET synchronous_commit=off");
    let refused = PostgresStore::open(&server.address(), Terms::default());
    assert!(matches!(refused, Err(StoreError::Lossy { setting: "synchronous_commit" })), "{refused:?}");
    // Also where it was turned off while a server ran: its next connection is refused.
    let refused = store.reader().unwrap().load(&[row("").key()]);
    assert!(matches!(refused, Err(StoreError::Lossy { .. })), "{refused:?}");
}

/// A session that is open commits nothing once its server may lose it, though no connection is made anew.
#[test]
fn a_server_that_begins_to_lose_commits_is_refused() {
    for setting in ["fsync", "full_page_writes"] {
        let server = Database::start();
        let store = open(&server.address());
        let mut writer = store.writer().unwrap();
        let mut seen = applied(&mut writer, &insert(&row("one")));
        server.sql(&format!("ALTER SYSTEM SET {setting}=off"));
        server.sql("SELECT pg_reload_conf()");
        let until = Instant::now() + Duration::from_secs(30);
        let refused = loop {
            match writer.commit(&update(&row("two"), seen)) {
                Ok(Committed::Applied(stamp)) if Instant::now() < until => seen = stamp,
                other => break other,
            }
        };
        let is_named = |error: &StoreError| matches!(error, StoreError::Lossy { setting: it } if *it == setting);
        assert!(matches!(&refused, Err(CommitError::Unavailable(error)) if is_named(error)), "{refused:?}");
        assert_eq!(server.sql("SELECT stamp FROM svc.records"), seen.0.to_string());
    }
}

/// How a commit waits for the disk is the session's own, whatever the server or the role says, and never less.
#[test]
fn a_commit_waits_for_the_disk_whatever_is_set() {
    let server = Database::start();
    drop(open(&server.address()));
    server.sql(
        "CREATE TABLE public.seen (durable text, memory text); CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO public.seen VALUES (current_setting(''synchronous_commit''), current_setting(''work_mem'')); RETURN NULL; END'; \
         CREATE TRIGGER note AFTER INSERT OR UPDATE ON svc.records FOR EACH ROW EXECUTE FUNCTION public.note()",
    );
    let mut seen = Stamp::ABSENT;
    for (set, kept) in [("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply"), ("on", "on")] {
        server.sql(&format!("ALTER ROLE svc SET synchronous_commit={set}"));
        let store = open(&server.address());
        let mut writer = store.writer().unwrap();
        let commit = if seen == Stamp::ABSENT { insert(&row(set)) } else { update(&row(set), seen) };
        seen = applied(&mut writer, &commit);
        assert_eq!(server.sql("SELECT string_agg(durable, ',') FROM public.seen"), kept, "{set}");
        server.sql("DELETE FROM public.seen; ALTER ROLE svc RESET synchronous_commit");
    }
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    seen = applied(&mut writer, &update(&row("before"), seen));
    server.sql("ALTER SYSTEM SET synchronous_commit=off");
    server.sql("ALTER SYSTEM SET work_mem='5MB'");
    server.sql("SELECT pg_reload_conf()");
    let until = Instant::now() + Duration::from_secs(30);
    while server.sql("SELECT count(*) FROM public.seen WHERE memory='5MB'") == "0" {
        assert!(Instant::now() < until, "the session has heard of the settings");
        seen = applied(&mut writer, &update(&row("after"), seen));
    }
    assert_eq!(server.sql("SELECT string_agg(DISTINCT durable, ',') FROM public.seen"), "on");
}

/// Of several hosts the one that takes writes is found, wherever it stands among them.
#[test]
fn of_several_hosts_the_one_that_takes_writes_is_found() {
    let (standby, primary) = (Database::start(), Database::start());
    standby.sql("ALTER ROLE svc SET default_transaction_read_only=on");
    let host = |server: &Database| {
        let address = server.address();
        address.trim_start_matches("postgres://svc@").trim_end_matches("/svc").to_owned()
    };
    for hosts in [[&standby, &primary], [&primary, &standby]] {
        let store = open(&format!("postgres://svc@{},{}/svc", host(hosts[0]), host(hosts[1])));
        drop(store.reader().unwrap().load(&[row("").key()]).unwrap());
    }
    assert_eq!(primary.sql("SELECT count(*) FROM svc.meta"), "1");
    assert_eq!(standby.sql("SELECT count(*) FROM pg_namespace WHERE nspname='svc'"), "0");
}

/// A commit that the server ends with an error was not made, and is not told as one of which nobody knows.
#[test]
fn a_commit_that_ends_in_an_error_was_not_made() {
    let server = Database::start();
    let store = open(&server.address());
    server.sql(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not now''; END'; \
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON svc.records DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION public.refuse()",
    );
    let mut writer = store.writer().unwrap();
    let refused = writer.commit(&insert(&row("one")));
    assert!(matches!(refused, Err(CommitError::Unavailable(StoreError::Database(_)))), "{refused:?}");
    server.sql("DROP TRIGGER refuse ON svc.records");
    let _ = applied(&mut writer, &insert(&row("one")));
}

/// Databases that are not this release's are refused and left as they are; of servers that start at once one makes the tables.
#[test]
fn databases_of_others_are_left_alone() {
    let server = Database::start();
    let newer = server.another("newer");
    drop(open(&newer));
    server.sql_in("newer", "UPDATE svc.meta SET value=value+1");
    let refused = PostgresStore::open(&newer, Terms::default());
    let found = postgres::SCHEMA + 1;
    assert!(matches!(refused, Err(StoreError::NewerSchema { found: it, .. }) if it == found), "{refused:?}");
    let told = postgres::schema_of(&newer, Terms::default());
    assert!(matches!(told, Err(StoreError::NewerSchema { found: it, .. }) if it == found), "{told:?}");
    let foreign = server.another("others");
    server.sql_in("others", "CREATE SCHEMA svc; CREATE TABLE svc.theirs (id int)");
    assert!(matches!(PostgresStore::open(&foreign, Terms::default()), Err(StoreError::ForeignSchema)));
    let empty = server.another("nothing");
    assert!(matches!(PostgresStore::existing(&empty, Terms::default()), Err(StoreError::NoTables)));
    assert_eq!(postgres::schema_of(&empty, Terms::default()).unwrap(), 0);
    server.sql("CREATE ROLE weak LOGIN");
    let weak = |address: &str| postgres::schema_of(&address.replace("svc@", "weak@"), Terms::default());
    let told = weak(&empty);
    assert!(matches!(told, Err(StoreError::NoRight(_))), "{told:?}");
    server.sql_in("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
    let refused = PostgresStore::open(&server.address_of("latin"), Terms::default());
    assert!(matches!(refused, Err(StoreError::UnfitServer { .. })), "{refused:?}");
    let missing = PostgresStore::open(&server.address_of("missing"), Terms::default());
    assert!(matches!(missing, Err(StoreError::Unreachable(_))), "{missing:?}");
    let fresh = server.another("fresh");
    thread::scope(|threads| (0..6).for_each(|_| drop(threads.spawn(|| drop(open(&fresh))))));
    assert_eq!(postgres::schema_of(&fresh, Terms::default()).unwrap(), postgres::SCHEMA);
    server.sql_in("fresh", "GRANT USAGE ON SCHEMA svc TO weak; GRANT SELECT ON ALL TABLES IN SCHEMA svc TO weak");
    let told = weak(&fresh);
    assert!(matches!(told, Err(StoreError::NoRight(_))), "{told:?}");
    server.sql_in("fresh", "GRANT ALL ON ALL TABLES IN SCHEMA svc TO weak; GRANT USAGE ON SEQUENCE svc.stamp TO weak");
    assert_eq!(weak(&fresh).unwrap(), postgres::SCHEMA);
    // What it takes differs from release to release.
    let name = "SELECT oid::regprocedure FROM pg_proc WHERE proname='pg_logical_emit_message' AND proargtypes[2]='text'::regtype";
    let revoke = format!("BEGIN EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', ({name})); END");
    server.sql_in("fresh", &format!("DO $body${revoke}$body$"));
    let told = weak(&fresh);
    assert!(matches!(told, Err(StoreError::NoRight(_))), "{told:?}");
}

/// A release that has brought the database up to date ends the commits of the one before, though that runs on.
#[test]
fn an_older_server_commits_nothing_into_a_newer_schema() {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let first = applied(&mut writer, &insert(&row("one")));
    assert!(store.time().unwrap().is_some());
    server.sql("UPDATE svc.meta SET value=value+1");
    let refused = writer.commit(&update(&row("two"), first));
    assert!(matches!(refused, Err(CommitError::Unavailable(StoreError::NewerSchema { .. }))), "{refused:?}");
    // A server of which nothing is asked finds it out by looking at the clock.
    assert!(matches!(store.time(), Err(StoreError::NewerSchema { .. })));
    assert_eq!(server.sql("SELECT stamp FROM svc.records"), first.0.to_string());
}

/// Others are told of rows that people and streams wait for, once they are durable, and of no others; and what they are told wakes
/// a server whose own clock the database keeps.
#[test]
fn others_are_told_of_what_is_durable() {
    let server = Database::start();
    let (store, other) = (open(&server.address()), open(&server.address()));
    let mut ear = other.others().unwrap().unwrap();
    let mut writer = store.writer().unwrap();
    let agent = sample::agent(sample::id(3), sample::id(4), Some(Timestamp::from_millis(5)));
    let _ = applied(&mut writer, &insert(&row("nobody waits for it")));
    let is_chain = |record: &Record| record.key().table() == Table::Chain;
    let _ = applied(&mut writer, &insert(&sample::rows().into_iter().find(is_chain).unwrap()));
    let _ = applied(&mut writer, &insert(&agent));
    let heard = loop {
        match ear.hear(Duration::from_secs(5)).unwrap() {
            Heard::Nothing => {}
            heard => break heard,
        }
    };
    assert_eq!(heard, Heard::Rows(vec![agent.key()]));
    server.sql("NOTIFY svc, 'what no release says'");
    assert_eq!(ear.hear(Duration::from_secs(5)).unwrap(), Heard::Missed);
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
    assert!(ear.hear(Duration::from_secs(5)).is_err(), "whoever hears nothing any more says so");
    let apart = store.time().unwrap().unwrap().since(now()).as_millis().abs();
    assert!(apart < 5_000, "{apart}");
}

/// Whoever may not come in is told so, and the password that was tried stands nowhere.
#[test]
fn a_wrong_password_is_not_repeated() {
    let server = Database::with(&["listen_addresses=127.0.0.1"]);
    server.sql("ALTER ROLE svc PASSWORD 'right'");
    let rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
    server.sql("SELECT pg_reload_conf()");
    let address = |password| format!("postgres://svc:{password}@127.0.0.1:{}/svc", server.port);
    let error = loop {
        // The server takes a moment to read its rules.
        if let Err(error) = PostgresStore::open(&address("hunter2"), Terms::default()) {
            break error;
        }
    };
    let text = format!("{error} {error:?} {}", std::error::Error::source(&error).unwrap());
    assert!(matches!(error, StoreError::Unreachable(_)) && text.contains("28P01"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let store = open(&address("right"));
    assert!(!format!("{store:?}").contains("right"));
}

/// Where the way is to be secured it is, and the server is one that is trusted; otherwise there is no way.
#[test]
fn a_way_that_is_to_be_secured_is_never_plain() {
    let plain = Database::with(&["listen_addresses=127.0.0.1"]);
    let at = |port: u16, more: &str| format!("postgres://svc@localhost:{port}/svc?{more}");
    let refused = PostgresStore::open(&at(plain.port, "sslmode=require"), Terms::default());
    assert!(matches!(refused, Err(StoreError::Unreachable(_))), "{refused:?}");
    let secured = Database::secured();
    let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/tls/ca.pem");
    let trusted = at(secured.port, &format!("sslmode=verify-full&sslrootcert={ca}"));
    let store = open(&trusted);
    let mut writer = store.writer().unwrap();
    let _ = applied(&mut writer, &insert(&row("one")));
    let seen = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name='svc'";
    assert_eq!(secured.sql(seen), "t");
    let refused = PostgresStore::open(&at(secured.port, "sslmode=verify-full"), Terms::default());
    assert!(matches!(refused, Err(StoreError::Unreachable(_))), "nobody known has signed it: {refused:?}");
    let named = trusted.replace("@localhost", "@other.example.com").replace('?', "?hostaddr=127.0.0.1&");
    let refused = PostgresStore::open(&named, Terms::default());
    assert!(matches!(refused, Err(StoreError::Unreachable(_))), "it is not who was asked for: {refused:?}");
    let refused = PostgresStore::open(&at(secured.port, "sslmode=require&sslrootcert=/nowhere.pem"), Terms::default());
    assert!(matches!(refused, Err(StoreError::File { .. })), "{refused:?}");
}

/// What an operator asks with SQL is there: a row's body is JSON under its table's name.
#[test]
fn rows_can_be_asked_with_sql() {
    let server = Database::start();
    let store = open(&server.address());
    let _ = applied(&mut store.writer().unwrap(), &insert(&sample::agent(sample::id(3), sample::id(4), None)));
    let keys = server.sql("SELECT count(*) FROM svc.records r, json_object_keys(r.body) WHERE tab = 'agent'");
    assert_ne!(keys, "0");
}

/// Every statement finds its rows by an index, however few they are.
#[test]
fn statements_go_by_indexes() {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    for record in sample::rows() {
        let _ = applied(&mut writer, &insert(&record));
    }
    let keys: Vec<Key> = sample::rows().iter().map(Record::key).collect();
    let scans = |kind: &str| -> u32 {
        server
            .sql(&format!("SELECT {kind} FROM pg_stat_user_tables WHERE relname IN ('records', 'links')"))
            .parse()
            .unwrap()
    };
    let _ = writer.load(&keys).unwrap();
    let _ = writer.scan(&svc_core::store::Range::all(svc_core::value::link::Index::Wake, 3, 10)).unwrap();
    drop(writer);
    // What a session did is counted a moment after it has ended.
    while scans("min(idx_scan)") == 0 {
        thread::yield_now();
    }
    assert!(scans("max(seq_scan)") <= 1, "each was read as a whole once, while it was made and empty");
}

fn now() -> Timestamp {
    svc_store::SystemClock::new().now()
}
