//! What other programs do to the file of a gate that runs: a newer release's commands, and commits of another process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use svc_core::engine::Failure;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::CommitError;
use svc_core::value::id::WorkspaceId;
use svc_core::value::text::Note;
use svc_store::sqlite::{DATABASE, SCHEMA, backup, schema_of};
use svc_store::{Gate, SqliteStore, StoreError};

const AT: &str = "https://gate.example.com";
/// What comes within a second, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(30);

fn workspace(gate: &Gate) -> Result<WorkspaceId, Failure<StoreError>> {
    let (name, owner) = ("Home".parse().unwrap(), "owner@example.com".parse().unwrap());
    gate.execute(CreateWorkspace { name, owner, settings: WorkspaceSettings::default() }).map(|it| it.id)
}

fn set_schema(directory: &Path, schema: i64) {
    let conn = Connection::open(directory.join(DATABASE)).unwrap();
    conn.execute_batch(&format!("PRAGMA user_version={schema}")).unwrap();
}

fn is_newer(failure: &Failure<StoreError>) -> bool {
    let (Failure::Load(error) | Failure::Commit(CommitError::Unavailable(error))) = failure else { return false };
    matches!(error, StoreError::NewerSchema { found, known } if *found == SCHEMA + 1 && *known == SCHEMA)
}

/// A program whose database was brought to a newer schema while it ran decides nothing any more, at each try anew, and fails also where
/// it is asked nothing; where the newer schema is gone it goes on.
#[test]
fn a_schema_that_becomes_newer_ends_deciding() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::open(directory.path(), AT).unwrap();
    workspace(&gate).unwrap();
    assert!(!gate.is_failing());
    set_schema(directory.path(), SCHEMA + 1);
    let began = Instant::now();
    while !gate.is_failing() {
        assert!(began.elapsed() < SOON, "nobody notices");
        thread::yield_now();
    }
    for _ in 0..3 {
        let refused = workspace(&gate).unwrap_err();
        assert!(is_newer(&refused), "{refused:?}");
    }
    set_schema(directory.path(), SCHEMA);
    workspace(&gate).unwrap();
}

/// While a server holds the lock of the directory nobody else brings an older schema up to date; the server itself does, and where
/// there is none a command does.
#[test]
#[cfg(unix)] // Windows opens no directory, so none is locked there.
fn an_older_schema_is_left_to_the_server_that_runs() {
    let directory = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(directory.path()).unwrap());
    let older = || {
        let conn = Connection::open(directory.path().join(DATABASE)).unwrap();
        let without = "DROP TABLE sso_link; DROP TABLE topic; DROP TABLE export; PRAGMA user_version=2;";
        conn.execute_batch(without).unwrap();
        conn
    };
    // A server has it open.
    let its = older();
    let server = File::open(directory.path()).unwrap();
    server.try_lock().unwrap();
    for opened in [SqliteStore::open(directory.path()), SqliteStore::existing(directory.path())] {
        let told = opened.unwrap_err();
        assert!(matches!(told, StoreError::Served { found: 2, .. }), "{told:?}");
        assert!(told.to_string().contains("stop that server"), "{told}");
    }
    let refused = Gate::open(directory.path(), AT);
    assert!(matches!(refused, Err(StoreError::Served { .. })), "{refused:?}");
    assert!(matches!(schema_of(directory.path()), Ok(2)), "nothing was changed");
    drop(its);
    let served = SqliteStore::open_to_serve(directory.path()).unwrap();
    assert!(matches!(schema_of(directory.path()), Ok(SCHEMA)));
    assert!(SqliteStore::open(directory.path()).is_ok(), "commands run beside a server of their release");
    drop(served);
    drop(older());
    drop(server);
    drop(SqliteStore::existing(directory.path()).unwrap());
    assert!(matches!(schema_of(directory.path()), Ok(SCHEMA)));
}

/// A lock on the directory without a log beside the database is told as what it is: nobody says that a file was moved, which may be
/// another program's lock. Nothing is copied or read meanwhile.
#[test]
#[cfg(unix)] // Windows opens no directory, so none is locked there.
fn a_lock_without_a_log_is_told_as_that() {
    let directory = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(directory.path()).unwrap());
    assert!(!directory.path().join("svc.db-wal").exists());
    let lock = File::open(directory.path()).unwrap();
    lock.try_lock().unwrap();
    let copy = directory.path().join("copy.db");
    for told in [
        backup(directory.path(), &copy, &mut |_| ()).map(drop).unwrap_err(),
        schema_of(directory.path()).map(drop).unwrap_err(),
    ] {
        assert!(matches!(told, StoreError::WithoutLog { .. }), "{told:?}");
        let text = told.to_string();
        assert!(
            text.contains("`flock`")
                && text.contains("holds a lock")
                && !text.contains("was moved, removed or replaced"),
            "{text}"
        );
    }
    assert!(!copy.exists());
    drop(lock);
    assert!(matches!(schema_of(directory.path()), Ok(SCHEMA)));
}

/// What another process commits is told to those who wait here within a second or so, so that they look; what this gate commits itself
/// is told as what it is.
#[test]
fn another_process_is_heard() {
    let directory = tempfile::tempdir().unwrap();
    let here = Gate::open(directory.path(), AT).unwrap();
    let workspace = workspace(&here).unwrap();
    let agent = RegisterAgent::new(workspace, "Bookkeeper".parse().unwrap(), NewKey::of("ask_0123456789abcdef"));
    let agent = here.execute(agent).unwrap().agent.id;
    let there = Gate::open(directory.path(), AT).unwrap();
    let mut changes = here.changes();
    let (heard, hear) = sync_channel(64);
    thread::spawn(move || while changes.blocking_recv().is_ok_and(|change| heard.send(change).is_ok()) {});
    // Whether or not the lane of this gate meets the commit before anybody looks.
    for is_met in [false, true] {
        let (by, reason) = (By::Program, Note::parse("a test stops it").unwrap());
        there.execute(FreezeAgent { workspace, agent, by, reason }).unwrap();
        if is_met {
            let second = RegisterAgent::new(workspace, "Clerk".parse().unwrap(), NewKey::of("ask_fedcba9876543210"));
            here.execute(second).unwrap();
        }
        while !hear.recv_timeout(SOON).unwrap().any {}
    }
}
