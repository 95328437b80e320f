//! `svc backup`, and what a backup that is opened says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::Value;

use crate::server::{Server, signal};
use crate::{Ran, run, svc};

/// A backup is one file of this user's, checked, which says what else has to be kept; with it and the key a directory is whole.
#[test]
fn a_backup_is_a_database_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let Ran { code, out, err } = run(folder.path(), "backup copy.db");
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("copy.db holds the database, "), "{out}");
    assert!(err.starts_with("Keep `svc-data/master.key` too, at another place"), "{err}");
    assert!(err.contains("receipts that were used are good again, stops and revocations since are\nundone"), "{err}");
    // The key may be given otherwise: what is named is where this one stands.
    let key = fs::read_to_string(folder.path().join("svc-data/master.key")).unwrap();
    let given =
        Ran::from(svc(folder.path()).args(["backup", "env.db"]).env("SVC_MASTER_KEY", key.trim()).output().unwrap());
    assert!(given.err.starts_with("Keep `SVC_MASTER_KEY` too"), "{}", given.err);
    fs::write(folder.path().join("svc-data/svc.toml"), format!("masterKey = \"{}\"\n", key.trim())).unwrap();
    let named = run(folder.path(), "backup file.db");
    assert!(named.err.starts_with("Keep `svc-data/svc.toml` too"), "{}", named.err);
    fs::remove_file(folder.path().join("svc-data/svc.toml")).unwrap();
    let made = fs::metadata(folder.path().join("copy.db")).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    fs::create_dir(folder.path().join("again")).unwrap();
    fs::rename(folder.path().join("copy.db"), folder.path().join("again/svc.db")).unwrap();
    let without = run(folder.path(), "key create --scope admin --data again");
    assert!(without.code == 1 && without.err.contains("master.key` is missing"), "{}", without.err);
    fs::copy(folder.path().join("svc-data/master.key"), folder.path().join("again/master.key")).unwrap();
    let with = run(folder.path(), "key create --scope admin --data again");
    assert_eq!(with.code, 0, "{}", with.err);
}

/// A record that was changed in the database, beside the gate, is found: by the doctor, and by a backup, which is not made then.
#[test]
fn a_changed_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let doctor = run(folder.path(), "doctor").out;
    let records = doctor.split("\nok    ledger: all of its ").nth(1).unwrap_or_else(|| panic!("{doctor}"));
    let (records, rest) = records.split_once(' ').unwrap();
    assert!(rest.starts_with("records are as they were written\n"), "{doctor}");
    let made = run(folder.path(), "backup good.db --json");
    let told: Value = serde_json::from_str(&made.out).unwrap();
    assert_eq!(told["records"].as_u64(), records.parse().ok(), "{made:?}");
    let file = folder.path().join("svc-data/svc.db");
    let mut bytes = fs::read(&file).unwrap();
    let (was, is) = (br#""kind":"integration.created""#, br#""kind":"integration.removed""#);
    let at = bytes.windows(was.len()).position(|it| it == was).unwrap();
    bytes[at..at + was.len()].copy_from_slice(is);
    fs::write(&file, bytes).unwrap();
    let doctor = run(folder.path(), "doctor");
    let fault = "fail  ledger: the database is damaged (record 1 of the ledger of wsp_";
    assert!(doctor.code == 1 && doctor.out.contains(fault), "{doctor:?}");
    assert!(doctor.out.contains("\nok    database: its pages fit together\n"), "{doctor:?}");
    let made = run(folder.path(), "backup copy.db");
    assert!(made.code == 1 && made.err.contains("(record 1 of the ledger of wsp_"), "{made:?}");
    let left = fs::read_dir(folder.path()).unwrap().filter(|it| it.as_ref().unwrap().file_name() != "svc-data").count();
    assert_eq!(left, 1, "nothing but the good backup is left");
}

/// Whoever opens a backup is told what it has forgotten, and what to do before anybody is let in, until a server that serves it has said so
/// in its log: not where it comes to nothing, nor where nothing of it is logged.
#[test]
fn a_backup_that_nobody_has_served_is_told() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    assert!(!run(folder.path(), "doctor").out.contains(" backup"), "it is none");
    assert_eq!(run(folder.path(), "backup copy.db").code, 0);
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::copy(folder.path().join("copy.db"), folder.path().join("a/svc.db")).unwrap();
    let (told, steps) =
        ("this is a backup that nobody has served yet", "run `svc key rotate --use receipt --compromised`");
    let first = run(folder.path(), "key create --scope admin --data a");
    assert!(first.code == 1 && first.err.contains(told), "it has no key: {first:?}");
    fs::copy(folder.path().join("svc-data/master.key"), folder.path().join("a/master.key")).unwrap();
    let doctor = run(folder.path(), "doctor --data a");
    assert!(doctor.out.contains("\nlook  backup: the database is a backup that nobody has served yet"), "{doctor:?}");
    assert!(doctor.out.contains(steps) && doctor.err.matches(told).count() == 1, "{doctor:?}");
    let second = run(folder.path(), "key create --scope admin --data a").err;
    assert!(second.contains(told) && second.contains(steps), "{second}");
    let noted = folder.path().join("a/base-url");
    for (level, said) in [("error", false), ("warn", true)] {
        let _ = fs::remove_file(&noted);
        let mut command = svc(folder.path());
        command.args(["serve", "--data", "a", "--listen", "127.0.0.1:0"]).env("SVC_LOG_LEVEL", level);
        let mut server = Server::spawn(&mut command);
        // It notes where it is reached once it serves.
        while !noted.exists() {
            assert!(server.child.try_wait().unwrap().is_none(), "{}", server.stop().1);
        }
        let (code, log) = server.stop();
        assert_eq!((code, log.contains(told) && log.contains(steps)), (Some(0), said), "{log}");
        let after = run(folder.path(), "key create --scope admin --data a").err;
        assert_eq!(after.contains(told), !said, "{level}: {after}");
    }
    assert!(!run(folder.path(), "doctor --data a").out.contains(" backup"), "it was told");
}

/// Nothing is overwritten, nothing half is left behind, and what cannot be done says why.
#[test]
fn a_backup_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let none = run(folder.path(), "backup copy.db");
    assert!(none.code == 1 && none.err.starts_with("svc: there is no svc data in `svc-data`"), "{}", none.err);
    assert_eq!(run(folder.path(), "init").code, 0);
    fs::write(folder.path().join("copy.db"), "mine").unwrap();
    for taken in ["copy.db", "svc-data/svc.db", "svc-data"] {
        let Ran { code, out, err } = run(folder.path(), &format!("backup {taken}"));
        assert_eq!((code, out.as_str()), (1, ""), "{taken}");
        assert!(err.contains("a backup overwrites nothing: name a new file, or move this one away"), "{err}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("copy.db")).unwrap(), "mine");
    let nowhere = run(folder.path(), "backup nowhere/copy.db");
    assert!(nowhere.code == 1 && nowhere.err.contains("it cannot be made"), "{}", nowhere.err);
    for command in ["backup untold.db", "backup untold.db --json"] {
        let untold = crate::output::redirected(folder.path(), command, ">/dev/full");
        assert!(untold.code == 1 && untold.err.contains("The backup was made and checked, and is good"), "{untold:?}");
        fs::remove_file(folder.path().join("untold.db")).unwrap();
    }
    let told = run(folder.path(), "backup second.db --json");
    let json: Value = serde_json::from_str(&told.out).unwrap();
    let size = fs::metadata(folder.path().join("second.db")).unwrap().len();
    assert_eq!((json["file"].as_str(), json["bytes"].as_u64()), (Some("second.db"), Some(size)));
    assert_eq!(json["keepToo"], "svc-data/master.key");
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["copy.db", "second.db", "svc-data"]);
}

/// A signal breaks a backup off and nothing is left of it; nor is what one left before whose process is gone, while that of one that
/// runs stays.
#[test]
fn a_backup_that_is_broken_off_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let copy = folder.path().join("copy.db");
    // Who is done before the signal comes has made a backup, and another one is begun.
    let broken_off = (0..200).find_map(|_| {
        let _ = fs::remove_file(&copy);
        let mut child = svc(folder.path())
            .args(["backup", "copy.db"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let part = folder.path().join(format!("copy.db.{}.partial", child.id()));
        while !part.exists() && child.try_wait().unwrap().is_none() {}
        if child.try_wait().unwrap().is_none() {
            signal(&child, "TERM");
        }
        let ended = child.wait_with_output().unwrap();
        (!ended.status.success()).then_some(ended)
    });
    let ended = broken_off.expect("one that is not done before the signal comes");
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).starts_with("svc: a signal broke the backup off"), "{ended:?}");
    assert_eq!(listed(), ["svc-data"]);

    // Beyond the highest number that a process has.
    for left in ["copy.db.4194305.partial", "copy.db.4194305.partial-journal", "copy.db.1.partial", "copy.db.mine"] {
        fs::write(folder.path().join(left), "").unwrap();
    }
    assert_eq!(run(folder.path(), "backup copy.db").code, 0);
    assert_eq!(listed(), ["copy.db", "copy.db.1.partial", "copy.db.mine", "svc-data"]);
}
