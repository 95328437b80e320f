//! Commits of which nobody knows whether a standby has them.

use std::thread;
use std::time::{Duration, Instant};

use svc_core::store::{CommitError, Store as _};
use svc_core::testing::sample;
use svc_store::Backend as _;

use super::database::Database;
use super::{applied, insert, open, row, update};

/// A commit whose wait for a standby was broken off can be seen and may be lost with this server: a lane builds on nothing of it before a
/// later commit has been confirmed.
#[test]
fn what_no_standby_has_is_not_built_upon() {
    broken_off("pg_terminate_backend");
}

/// The same where the wait was cancelled, which the server confirms with a warning.
#[test]
fn what_is_confirmed_without_its_standby_is_not_built_upon() {
    broken_off("pg_cancel_backend");
}

fn broken_off(how: &str) {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let _ = applied(&mut writer, &insert(&sample::payload(sample::id(9), "before")));
    let set = |names: &str| {
        server.sql(&format!("ALTER SYSTEM SET synchronous_standby_names='{names}'"));
        server.sql("SELECT pg_reload_conf()");
        while server.sql("SHOW synchronous_standby_names") != names {
            thread::yield_now();
        }
    };
    let waiting = format!("SELECT {how}(pid) FROM pg_stat_activity WHERE wait_event='SyncRep' LIMIT 1");
    let break_off = || {
        let until = Instant::now() + Duration::from_secs(30);
        while server.sql(&waiting) != "t" {
            assert!(Instant::now() < until, "it waits for a standby");
        }
    };
    set("nobody");
    let outcome = thread::scope(|threads| {
        let lost = threads.spawn(|| writer.commit(&insert(&row("lost"))));
        break_off();
        lost.join().unwrap()
    });
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert_eq!(server.sql("SELECT count(*) FROM svc.records"), "2", "it can be seen");
    let read = thread::scope(|threads| {
        let read = threads.spawn(|| writer.load(&[row("").key()]));
        break_off();
        read.join().unwrap()
    });
    assert!(read.is_err(), "{read:?}");
    set("");
    let until = Instant::now() + Duration::from_secs(30);
    let rows = loop {
        match writer.load(&[row("").key()]) {
            Ok(rows) => break rows,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    assert_eq!(rows[0].record, Some(row("lost")));
    let _ = applied(&mut writer, &update(&row("after"), rows[0].stamp));
}

/// Other warnings beside a commit, as of ids that run out, say nothing of it.
#[test]
fn what_is_warned_of_otherwise_is_kept() {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let _ = applied(&mut writer, &insert(&sample::payload(sample::id(9), "before")));
    let warn = "BEGIN RAISE WARNING 'ids run out'; RETURN NULL; END";
    server.sql(&format!("CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $body${warn}$body$"));
    server.sql("CREATE TRIGGER warns AFTER INSERT ON svc.records FOR EACH ROW EXECUTE FUNCTION warn()");
    let _ = applied(&mut writer, &insert(&row("kept")));
    assert_eq!(writer.load(&[row("").key()]).unwrap()[0].record, Some(row("kept")));
    assert!(server.said().contains("ids run out"), "it is warned");
}
