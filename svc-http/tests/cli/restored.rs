//! What an operator meets whose database was moved away, emptied, damaged or replaced.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::server::{Server, authorize, signal, text};
use crate::{Ran, run};

/// A gate whose server was killed with decisions in its log, in `svc-data`; the action that was decided last.
fn killed(folder: &Path) -> String {
    let mut server = Server::start(folder, "--json");
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    let (status, answer) = authorize(&home, text(&home, "agentKey"));
    assert!(status < 300, "{answer}");
    signal(&server.child, "KILL");
    server.child.wait().unwrap();
    assert!(fs::metadata(folder.join("svc-data/svc.db-wal")).unwrap().len() > 0);
    text(&answer, "id").to_owned()
}

/// The line of the doctor's that begins with this.
fn told(folder: &Path, begin: &str) -> String {
    let Ran { code, out, .. } = run(folder, "doctor");
    assert_eq!(code, 1, "{out}");
    out.lines().find(|it| it.starts_with(begin)).unwrap_or_else(|| panic!("no `{begin}`: {out}")).to_owned()
}

/// Where the log is all that is left of a database, no command and no server makes another one, and the doctor says what to do.
#[test]
fn a_lost_database_is_put_back_and_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let id = killed(folder.path());
    let file = |name: &str| folder.path().join("svc-data").join(name);
    let log = fs::read(file("svc.db-wal")).unwrap();
    fs::rename(file("svc.db"), file("svc.away")).unwrap();
    for is_empty in [false, true] {
        if is_empty {
            fs::write(file("svc.db"), "").unwrap();
        }
        for command in
            ["init", "serve --listen 127.0.0.1:0", "key create --scope inference", "migrate", "backup copy.db"]
        {
            let Ran { code, err, .. } = run(folder.path(), command);
            assert!(code == 1 && err.contains("`svc-data/svc.db` is missing or empty, and `"), "{command}: {err}");
            assert!(err.contains("svc.db-wal` is left of it: put `svc.db` back"), "{command}: {err}");
        }
        let schema = told(folder.path(), "fail  schema:");
        assert!(schema.contains("is left of it. Put `svc.db` back") && !schema.contains("svc init"), "{schema}");
        assert!(fs::read(file("svc.db-wal")).unwrap() == log);
    }
    fs::rename(file("svc.away"), file("svc.db")).unwrap();
    let Ran { code, err, .. } = run(folder.path(), &format!("erase --action {id}"));
    assert_eq!(code, 0, "what was answered last is there: {err}");
}

/// A page that was overwritten is found by the doctor, and a whole database is told so.
#[test]
fn a_damaged_page_is_found() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    assert!(run(folder.path(), "doctor").out.contains("\nok    database: its pages fit together\n"));
    let file = folder.path().join("svc-data/svc.db");
    let mut bytes = fs::read(&file).unwrap();
    // The second page is the root of the first table.
    bytes[4096..8192].fill(0);
    fs::write(&file, bytes).unwrap();
    let database = told(folder.path(), "fail  database:");
    let advice = "Stop, keep a copy of the files, and restore the last backup.";
    assert!(database.contains("the database is damaged") && database.ends_with(advice), "{database}");
}

/// A backup that is put beside the log of a killed server is opened by nothing, and the doctor says why; in an empty directory it is.
#[test]
fn a_backup_is_not_opened_over_the_log_of_another() {
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path());
    let file = |name: &str| folder.path().join("svc-data").join(name);
    let left = fs::read(file("svc.db-wal")).unwrap();
    let aside = folder.path().join("aside");
    fs::create_dir(&aside).unwrap();
    for name in ["svc.db", "svc.db-wal", "master.key"] {
        fs::copy(file(name), aside.join(name)).unwrap();
    }
    assert_eq!(run(folder.path(), "backup copy.db --data aside").code, 0);
    fs::copy(folder.path().join("copy.db"), file("svc.db")).unwrap();
    for command in ["init", "serve --listen 127.0.0.1:0", "key create --scope inference", "migrate", "backup other.db"]
    {
        let Ran { code, err, .. } = run(folder.path(), command);
        assert!(code == 1 && err.contains("`svc-data/svc.db` is a backup that was never opened"), "{command}: {err}");
    }
    let schema = told(folder.path(), "fail  schema:");
    assert!(schema.contains("is the log of another database. Put the backup into an empty directory"), "{schema}");
    assert!(fs::read(file("svc.db-wal")).unwrap() == left);
    fs::remove_file(file("svc.db-wal")).unwrap();
    assert_eq!(run(folder.path(), "key create --scope inference").code, 0);
}

/// Another program's database is told as no backup of this one's, though it has no log either.
#[test]
fn a_foreign_database_is_told_as_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    assert_eq!(run(folder.path(), "backup copy.db").code, 0);
    let mut bytes = fs::read(folder.path().join("copy.db")).unwrap();
    // Whose it is.
    bytes[68..72].fill(7);
    fs::write(folder.path().join("svc-data/svc.db"), bytes).unwrap();
    let schema = told(folder.path(), "fail  schema:");
    assert!(schema.contains("is not a database of svc"), "{schema}");
    let doctor = run(folder.path(), "doctor");
    assert!(!format!("{}{}", doctor.out, doctor.err).contains("backup"), "{doctor:?}");
}
