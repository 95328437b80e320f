//! What a gate over SQLite does whose files are taken away while it has them open: whoever opens the database later reads what lies there
//! then, so that nothing is answered that would not be found.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::Path;

use rusqlite::Connection;
use svc_core::engine::Failure;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{CommitError, Range};
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_store::sqlite::{DATABASE, backup, files, is_log_cut, schema_of};
use svc_store::{Gate, SqliteStore, StoreError};

const AT: &str = "https://gate.example.com";

fn workspace(gate: &Gate) -> Result<WorkspaceId, Failure<StoreError>> {
    let (name, owner) = ("Home".parse().unwrap(), "owner@example.com".parse().unwrap());
    gate.execute(CreateWorkspace { name, owner, settings: WorkspaceSettings::default() }).map(|it| it.id)
}

/// Removes the log, or its index, before the first commit or after it: the next one is refused, and names what is missing.
fn refused_without(data: &Path, file: usize, commits_before: usize) {
    Gate::open(data, AT).unwrap().close();
    let gate = Gate::open(data, AT).unwrap();
    for _ in 0..commits_before {
        workspace(&gate).unwrap();
    }
    let removed = files(data).into_iter().nth(file).unwrap();
    fs::remove_file(&removed).unwrap();
    for _ in 0..2 {
        match workspace(&gate) {
            Err(Failure::Commit(CommitError::Unavailable(StoreError::Replaced { path }))) => assert_eq!(path, removed),
            other => panic!("{other:?}"),
        }
    }
    // What is made in its place is another one.
    fs::write(&removed, "").unwrap();
    assert!(workspace(&gate).is_err() && gate.is_failing());
}

#[test]
#[cfg(unix)] // Windows takes no name from a file that is open.
fn nothing_is_committed_to_a_log_that_was_removed() {
    for commits_before in [0, 1] {
        for file in [1, 2] {
            refused_without(&tempfile::tempdir().unwrap().path().canonicalize().unwrap(), file, commits_before);
        }
    }
}

/// A link to the database is another name of it: its log lies where the database lies.
#[cfg(unix)]
#[test]
fn nor_to_one_that_was_removed_behind_a_link() {
    let home = tempfile::tempdir().unwrap();
    let (real, linked) = (home.path().join("real"), home.path().join("linked"));
    Gate::open(&real, AT).unwrap().close();
    fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink("../real/svc.db", linked.join(DATABASE)).unwrap();
    fs::copy(real.join("master.key"), linked.join("master.key")).unwrap();
    assert_eq!(files(&linked)[1..], files(real.canonicalize().unwrap())[1..]);
    for commits_before in [0, 1] {
        refused_without(&linked, 1, commits_before);
    }
    let gate = Gate::open(&linked, AT).unwrap();
    workspace(&gate).unwrap();
    assert!(!is_log_cut(&linked).unwrap(), "what was erased may stand there");
    gate.close();
    drop(gate);
    assert!(is_log_cut(&linked).unwrap());
}

/// What a command would commit to a new log, or read from one, where a server has the removed one: nothing. Without a server it is what a
/// crash or a copy has left, and opens.
#[test]
#[cfg(unix)] // Windows opens no directory, so none is locked there.
fn no_command_begins_another_log_beside_a_server() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path();
    let gate = Gate::open(data, AT).unwrap();
    workspace(&gate).unwrap();
    let server = File::open(data).unwrap();
    server.lock().unwrap();
    SqliteStore::existing(data).unwrap();
    for removed in files(data).into_iter().skip(1) {
        fs::rename(&removed, home.path().join("svc.away")).unwrap();
        let copy = home.path().join("svc.copy");
        for answer in [
            SqliteStore::existing(data).map(drop),
            schema_of(data).map(drop),
            backup(data, &copy, &mut |_| {}).map(drop),
        ] {
            assert!(
                matches!(&answer, Err(StoreError::WithoutLog { path }) if path.file_name() == removed.file_name()),
                "{answer:?}"
            );
        }
        assert!(!copy.exists() && !removed.exists());
        fs::rename(home.path().join("svc.away"), &removed).unwrap();
    }
    workspace(&gate).unwrap();
    server.unlock().unwrap();
    drop(gate);
    SqliteStore::existing(data).unwrap();
}

/// A database with a second name is opened by neither.
#[cfg(unix)]
#[test]
fn a_database_with_two_names_is_not_opened() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = (home.path().join("one"), home.path().join("two"));
    Gate::open(&one, AT).unwrap().close();
    fs::create_dir(&two).unwrap();
    fs::hard_link(one.join(DATABASE), two.join(DATABASE)).unwrap();
    for data in [&one, &two] {
        for answer in [SqliteStore::open_to_serve(data).map(drop), schema_of(data).map(drop)] {
            let Err(error @ StoreError::Linked { .. }) = answer else { panic!("{answer:?}") };
            assert!(error.to_string().contains("samefile"), "{error}");
        }
    }
    fs::remove_file(two.join(DATABASE)).unwrap();
    Gate::existing(&one, AT).unwrap();
}

/// What a crash leaves of a gate with something in its log: a copy of its files while it is open.
fn crashed(data: &Path) {
    let home = tempfile::tempdir().unwrap();
    Gate::open(home.path(), AT).unwrap().close();
    let gate = Gate::open(home.path(), AT).unwrap();
    workspace(&gate).unwrap();
    fs::create_dir_all(data).unwrap();
    for name in ["svc.db", "svc.db-wal", "master.key"] {
        fs::copy(home.path().join(name), data.join(name)).unwrap();
    }
}

/// A log without its database is what was answered last: nothing begins another database over it, whether the file is gone or empty, and
/// with the file put back all of it is there.
#[test]
fn no_database_is_begun_over_what_is_left_of_one() {
    let home = tempfile::tempdir().unwrap();
    let data = &home.path().join("data");
    crashed(data);
    let [database, log, _] = files(data);
    let left = fs::read(&log).unwrap();
    fs::rename(&database, home.path().join("aside")).unwrap();
    for is_empty in [false, true] {
        if is_empty {
            fs::write(&database, "").unwrap();
        }
        for answer in [
            Gate::open(data, AT).map(drop),
            Gate::existing(data, AT).map(drop),
            SqliteStore::open_to_serve(data).map(drop),
            schema_of(data).map(drop),
            backup(data, &home.path().join("copy"), &mut |_| {}).map(drop),
        ] {
            let Err(error @ StoreError::DatabaseMissing { .. }) = answer else { panic!("{answer:?}") };
            assert!(error.to_string().contains("put `svc.db` back"), "{error}");
        }
        assert!(fs::read(&log).unwrap() == left && database.exists() == is_empty);
    }
    fs::rename(home.path().join("aside"), &database).unwrap();
    let gate = Gate::existing(data, AT).unwrap();
    assert_eq!(gate.scan(&Range::all(Index::Workspaces, 0, 9)).unwrap().len(), 1);
}

/// The note of a server tells of a database too, and so does one that somebody has put aside under a name like it.
#[test]
fn nor_beside_the_note_of_a_server_or_a_database_put_aside() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("base-url"), "https://gate.example.com\n").unwrap();
    let noted = |answer: Result<(), StoreError>| {
        assert!(
            matches!(&answer, Err(StoreError::DatabaseMissing { left, .. }) if left.ends_with("base-url")),
            "{answer:?}"
        );
    };
    noted(Gate::open(home.path(), AT).map(drop));
    noted(Gate::existing(home.path(), AT).map(drop));
    fs::rename(home.path().join("base-url"), home.path().join("svc.db.bad")).unwrap();
    let aside = Gate::open(home.path(), AT).map(drop);
    assert!(matches!(&aside, Err(StoreError::ForeignDirectory { found, .. }) if found == "svc.db.bad"), "{aside:?}");
    assert!(!home.path().join(DATABASE).exists());
}

/// A first start that was ended anywhere before its first commit is begun again: the file is empty or has its first page, and the log is
/// not there, empty, or holds what was never committed.
#[test]
fn a_first_start_that_was_ended_begins_again() {
    let home = tempfile::tempdir().unwrap();
    let made = home.path().join("made");
    fs::create_dir(&made).unwrap();
    let [database, log, _] = files(&made);
    let stage = |name: &str| {
        let data = home.path().join(name);
        fs::create_dir(&data).unwrap();
        for file in [&database, &log].into_iter().filter(|it| it.exists()) {
            fs::copy(file, data.join(file.file_name().unwrap())).unwrap();
        }
        let sizes = files(&data).map(|it| fs::metadata(it).map_or(0, |it| it.len()));
        Gate::open(&data, AT).unwrap().close();
        (sizes[0], sizes[1])
    };
    fs::write(&database, "").unwrap();
    assert_eq!(stage("empty"), (0, 0));
    let conn = Connection::open(&database).unwrap();
    conn.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;").unwrap();
    let (page, nothing) = stage("logged");
    assert!(page > 0 && nothing == 0);
    conn.execute_batch(
        "PRAGMA cache_size=1; BEGIN IMMEDIATE; CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID; \
         CREATE TABLE b (a); INSERT INTO b SELECT randomblob(9000) FROM (VALUES (1), (2), (3));",
    )
    .unwrap();
    let (page, uncommitted) = stage("spilled");
    assert!(page > 0 && uncommitted > 0);
}

/// A backup is put beside no log but its own: the log of a crashed gate stays as it is, and the backup opens where there is none, also
/// after a crash of its own.
#[test]
fn a_backup_is_put_beside_no_other_log() {
    let home = tempfile::tempdir().unwrap();
    let (data, copy) = (&home.path().join("data"), &home.path().join("copy.db"));
    crashed(data);
    backup(data, copy, &mut |_| {}).unwrap();
    let again = &home.path().join("again");
    crashed(again);
    let [database, log, _] = files(again);
    let left = fs::read(&log).unwrap();
    fs::copy(copy, &database).unwrap();
    for answer in [
        Gate::open(again, AT).map(drop),
        SqliteStore::open_to_serve(again).map(drop),
        schema_of(again).map(drop),
        backup(again, &home.path().join("other.db"), &mut |_| {}).map(drop),
    ] {
        let Err(error @ StoreError::ForeignLog { .. }) = answer else { panic!("{answer:?}") };
        assert!(error.to_string().contains("put the backup into an empty directory"), "{error}");
    }
    assert!(fs::read(&log).unwrap() == left && fs::read(&database).unwrap() == fs::read(copy).unwrap());

    let (empty, after) = (&home.path().join("empty"), &home.path().join("after"));
    for place in [empty, after] {
        fs::create_dir(place).unwrap();
        fs::copy(data.join("master.key"), place.join("master.key")).unwrap();
    }
    fs::copy(copy, empty.join(DATABASE)).unwrap();
    let gate = Gate::existing(empty, AT).unwrap();
    workspace(&gate).unwrap();
    for name in [DATABASE, "svc.db-wal"] {
        fs::copy(empty.join(name), after.join(name)).unwrap();
    }
    assert!(!is_log_cut(after).unwrap());
    let gate = Gate::existing(after, AT).unwrap();
    assert_eq!(gate.scan(&Range::all(Index::Workspaces, 0, 9)).unwrap().len(), 2);
}
