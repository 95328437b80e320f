//! `svc key reseal`: another master key takes the place of the one in force, whatever breaks it off.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::Value;

use super::server::Server;
use super::{Ran, run, svc};

fn key(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("svc-data").join(name)).unwrap()
}

fn put(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join("svc-data").join(name), text).unwrap();
}

/// The names of the keys in the data directory, sorted.
fn keys(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder.join("svc-data")).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|it| it.starts_with("master.key")).collect();
    names.sort();
    names
}

/// Whether the key in force opens the database.
fn opens(folder: &Path) -> bool {
    run(folder, "key create --scope inference").code == 0
}

fn reseal(folder: &Path) -> Value {
    let ran = run(folder, "key reseal --json");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    serde_json::from_str(&ran.out).unwrap()
}

/// The next key opens the database, the one before it does not and is kept for backups; nobody but this user reads either. While a
/// server runs nothing is done.
#[test]
fn another_master_key_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let none = run(folder.path(), "key reseal");
    assert!(none.code == 1 && none.err.contains("svc init"), "{none:?}");
    let mut server = Server::start(folder.path(), "--json");
    server.line();
    let refused = run(folder.path(), "key reseal");
    assert!(refused.code == 1 && refused.err.contains("another server works on the database"), "{refused:?}");
    drop(server);
    let before = key(folder.path(), "master.key");
    assert_eq!(keys(folder.path()), ["master.key"]);

    let told = reseal(folder.path());
    let after = key(folder.path(), "master.key");
    let kept = folder.path().join(told["keptFile"].as_str().unwrap());
    assert_ne!(before, after);
    assert_eq!(fs::read_to_string(&kept).unwrap(), before);
    assert!(told["masterKeyFile"].as_str().unwrap().ends_with("svc-data/master.key"), "{told}");
    // Three keys that sign, the secret of callbacks, and the key of the demonstration's provider where it has one.
    assert!(told["rows"].as_u64().unwrap() >= 4, "{told}");
    for name in keys(folder.path()) {
        let mode = fs::metadata(folder.path().join("svc-data").join(&name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(opens(folder.path()) && keys(folder.path()).len() == 2);
    put(folder.path(), "master.key", &before);
    assert!(!opens(folder.path()));
    put(folder.path(), "master.key", &after);
    assert!(!Server::start(folder.path(), "--json").line().is_empty());
    let Ran { code, out, err } = run(folder.path(), "key reseal");
    assert!(code == 0 && out.contains("rows are sealed anew") && err.contains("Backups of before"), "{out}{err}");
    assert_eq!(keys(folder.path()).len(), 3);
}

/// Broken off before the commit, another key is drawn the next time: the one that lies there may be known to whoever had the one in
/// force. Broken off behind it, what is left is done, and until then every command names the way on; but where neither key opens the
/// database, the right one is asked for.
#[test]
fn what_was_broken_off_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let before = key(folder.path(), "master.key");
    let drawn = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n";
    put(folder.path(), "master.key.next", drawn);
    assert!(opens(folder.path()), "nothing is sealed under the next key yet");
    reseal(folder.path());
    let after = key(folder.path(), "master.key");
    assert!(after != drawn && after != before && opens(folder.path()));

    put(folder.path(), "master.key.next", &after);
    put(folder.path(), "master.key", &before);
    let refused = run(folder.path(), "key create --scope inference");
    assert!(refused.code == 1 && refused.err.contains("`svc key reseal`"), "{refused:?}");
    let told = reseal(folder.path());
    assert_eq!((&told["rows"], key(folder.path(), "master.key")), (&Value::Null, after));
    assert!(opens(folder.path()) && !folder.path().join("svc-data/master.key.next").exists());

    put(folder.path(), "master.key", &before);
    put(folder.path(), "master.key.next", drawn);
    for command in ["key reseal", "key create --scope inference"] {
        let neither = run(folder.path(), command);
        assert!(neither.code == 1 && neither.err.contains("put back the master key"), "{command}: {neither:?}");
    }
}

/// A key that is a link to where others put it is not replaced.
#[test]
fn a_link_is_left() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let (link, real) = (folder.path().join("svc-data/master.key"), folder.path().join("mounted"));
    fs::rename(&link, &real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let refused = run(folder.path(), "key reseal");
    assert!(refused.code == 1 && refused.err.contains("is a link"), "{refused:?}");
    assert!(opens(folder.path()));
}

/// Whoever gives the settings their key gives the next one too, before anything is sealed under it.
#[test]
fn a_key_of_the_settings_is_followed_by_one_that_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let with = |key: &str, arguments: &str| -> Ran {
        let mut command = svc(folder.path());
        command.args(arguments.split(' ')).env("SVC_MASTER_KEY", key).output().unwrap().into()
    };
    let (first, next) = ("11".repeat(32), "22".repeat(32));
    assert_eq!(with(&first, "init").code, 0);
    let refused = with(&first, "key reseal");
    assert!(refused.code == 1 && refused.err.contains("`--next`"), "{refused:?}");
    fs::write(folder.path().join("next.key"), format!("{next}\n")).unwrap();
    fs::write(folder.path().join("none.key"), "no key").unwrap();
    for none in ["none.key", "nowhere"] {
        let refused = with(&first, &format!("key reseal --next {none}"));
        assert!(refused.code == 1 && refused.err.contains(none), "{refused:?}");
    }
    assert_eq!(with(&first, "key create --scope inference").code, 0);
    let Ran { code, out, err } = with(&first, "key reseal --next next.key");
    assert!(code == 0 && out.contains("next.key") && err.contains("SVC_MASTER_KEY"), "{out}{err}");
    assert_eq!(with(&first, "key create --scope inference").code, 1);
    assert!(with(&first, "key reseal --next next.key").out.starts_with("All was sealed anew the last time."));
    assert_eq!(with(&next, "key create --scope inference").code, 0);
    let same = with(&next, "key reseal --next next.key");
    assert!(same.code == 1 && same.err.contains("is the one in force"), "{same:?}");
    assert!(keys(folder.path()).is_empty(), "nothing of it lies in the data directory");
}

/// Nobody can tell from here whether servers elsewhere have the same database open.
#[cfg(feature = "postgres")]
#[test]
fn servers_elsewhere_are_stopped_by_whoever_runs_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = svc(folder.path());
    command.args(["key", "reseal"]).env("SVC_STORE_URL", "postgres://svc:hunter2@127.0.0.1:1/gate?sslmode=disable");
    let Ran { code, err, .. } = command.output().unwrap().into();
    assert!(code == 1 && err.contains("--servers-stopped") && !err.contains("hunter2"), "{err}");
}

/// A backup of before the change is opened by the key that was in force when it was made, and where that lies beside it, every command and
/// the doctor name it; no other is asked for.
#[test]
fn the_key_of_a_backup_of_before_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    assert_eq!(run(folder.path(), "backup copy.db").code, 0);
    let kept: Vec<String> = (0..2).map(|_| reseal(folder.path())["keptFile"].as_str().unwrap().to_owned()).collect();
    fs::rename(folder.path().join("copy.db"), folder.path().join("svc-data/svc.db")).unwrap();
    let named = format!("and the one in `{}` does: ", kept[0]);
    let Ran { code, err, .. } = run(folder.path(), "key create --scope inference");
    assert!(code == 1 && err.contains(&named) && err.contains("in force when this copy was made"), "{err}");
    let Ran { code, out, .. } = run(folder.path(), "doctor");
    let keys = out.lines().find(|it| it.starts_with("fail  keys:")).unwrap();
    assert!(code == 1 && keys.contains(named.trim_end_matches([':', ' '])), "{out}");
    assert!(keys.contains("That key was in force when this copy was made: put it in the place"), "{out}");
    fs::copy(folder.path().join(&kept[0]), folder.path().join("svc-data/master.key")).unwrap();
    assert!(opens(folder.path()));
}
