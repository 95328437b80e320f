use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;

use serde_json::Value;

use crate::{Ran, run, svc};

/// A database that a newer release wrote is left alone, by every command that opens one and by the doctor; a directory
/// that cannot be made is named.
#[test]
fn a_newer_schema_and_an_impossible_directory_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    // A SQLite file's `user_version` is the four bytes from its 60th on.
    let file = fs::OpenOptions::new().write(true).open(folder.path().join("svc-data/svc.db")).unwrap();
    file.write_all_at(&99_u32.to_be_bytes(), 60).unwrap();
    let newer =
        "the database has schema 99, this release knows schema 1: run the newer release again, or restore a backup";
    for arguments in ["init", "key create --scope admin", "migrate"] {
        let ran = run(folder.path(), arguments);
        assert_eq!(ran, Ran { code: 1, out: String::new(), err: format!("svc: {newer}\n") }, "{arguments}");
    }
    let Ran { code, out, .. } = run(folder.path(), "doctor");
    assert_eq!(code, 1);
    assert!(out.contains(&format!("fail  schema: {newer}")), "{out}");

    let Ran { code, out, err } = run(folder.path(), "init --data /proc/svc");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("svc: `/proc/svc` cannot be used: it cannot be made ("), "{err}");
}

/// A database without its master key is not opened, and the doctor finds it; another key does not fit.
#[test]
fn a_lost_master_key_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let key = folder.path().join("svc-data/master.key");
    let text = fs::read_to_string(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let Ran { code, err, .. } = run(folder.path(), "init");
    assert_eq!(code, 1);
    assert!(
        err.starts_with("svc: `svc-data/master.key` is missing, and the database holds secrets sealed under it"),
        "{err}"
    );
    let doctor = run(folder.path(), "doctor");
    assert!(
        doctor.code == 1 && doctor.out.contains("\nfail  keys: `svc-data/master.key` is missing"),
        "{}",
        doctor.out
    );
    assert!(!key.exists(), "the doctor makes no key");

    let with = |text: &str| Ran::from(svc(folder.path()).arg("init").env("SVC_MASTER_KEY", text).output().unwrap());
    assert_eq!(with(text.trim()).code, 0);
    let other = with("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert!(
        other.code == 1 && other.err.starts_with("svc: the master key does not open what the database has sealed"),
        "{}",
        other.err
    );
}

/// `svc migrate` brings an empty database to the present schema, says so, and makes none where there is none.
#[test]
fn migrate_tells_from_which_schema_to_which() {
    let folder = tempfile::tempdir().unwrap();
    let none = run(folder.path(), "migrate");
    assert!(none.code == 1 && none.err.starts_with("svc: there is no svc data in `svc-data`"), "{}", none.err);
    fs::create_dir(folder.path().join("svc-data")).unwrap();
    fs::write(folder.path().join("svc-data/svc.db"), "").unwrap();
    let told = |out: &str| Ran { code: 0, out: out.to_owned(), err: String::new() };
    assert_eq!(run(folder.path(), "migrate"), told("svc-data/svc.db was brought from schema 0 to schema 1\n"));
    assert_eq!(run(folder.path(), "migrate"), told("svc-data/svc.db has schema 1 already\n"));
    assert_eq!(run(folder.path(), "migrate --json"), told("{\"from\":1,\"to\":1}\n"));
}

/// `svc init` makes everything once: keys in the clear the first time only, stored as digests, in files of this user's.
#[test]
fn init_makes_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let Ran { code, out, err } = run(folder.path(), "init --json --owner ada@example.com");
    assert_eq!((code, err.as_str()), (0, ""));
    let made: Value = serde_json::from_str(&out).unwrap();
    let names: BTreeSet<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
    let all = ["adminKey", "agentId", "agentKey", "baseUrl", "inferenceKey", "workspaceId"];
    assert_eq!(names, BTreeSet::from(all));
    assert_eq!(made["baseUrl"], "http://127.0.0.1:8080");
    let data = folder.path().join("svc-data");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join("master.key")), mode(&data.join("svc.db"))), (0o700, 0o600, 0o600));
    for entry in fs::read_dir(&data).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for key in ["agentKey", "inferenceKey", "adminKey"] {
            let secret = made[key].as_str().unwrap().as_bytes();
            assert!(!bytes.windows(secret.len()).any(|it| it == secret), "{key} is stored in the clear");
        }
    }
    let again = run(folder.path(), "init");
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    assert!(again.out.starts_with("svc-data was ready already; nothing was changed\n"), "{}", again.out);
    assert!(again.out.contains(made["agentId"].as_str().unwrap()) && !again.out.contains("ask_"), "{}", again.out);
    let doctor = run(folder.path(), "doctor --data svc-data");
    assert!(doctor.out.contains("\nok    schema: ") && doctor.out.contains("\nok    keys: "), "{}", doctor.out);
    assert_eq!(run(folder.path(), "init --owner nobody").code, 2);
}

/// `svc key create` prints a key once, alone on standard output; what it cannot make it says.
#[test]
fn key_create_prints_a_key_once() {
    let folder = tempfile::tempdir().unwrap();
    let home: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let agent = home["agentId"].as_str().unwrap();
    let Ran { code, out, err } = run(folder.path(), &format!("key create --agent {agent} --label laptop"));
    assert_eq!(code, 0, "{err}");
    assert_eq!((out.len(), out.starts_with("ask_"), out.ends_with('\n')), (48, true, true));
    assert!(err.contains("is shown this once"), "{err}");

    let made: Value = serde_json::from_str(&run(folder.path(), "key create --scope admin --json").out).unwrap();
    let binding = made["binding"].as_object().unwrap();
    let names: Vec<&str> = binding.keys().map(String::as_str).collect();
    assert_eq!(names, ["id", "prefix", "principalId", "scope", "taskClassId", "teamId"]);
    assert_eq!(binding["scope"], "admin");
    assert_eq!(made["key"].as_str().unwrap().get(..12), binding["prefix"].as_str());

    let unknown = run(folder.path(), "key create --agent agt_00000000000000000000000000");
    let told = "svc: this workspace has no agent agt_00000000000000000000000000\n     Check the id: `svc init` prints the first agent's.\n";
    assert_eq!(unknown, Ran { code: 1, out: String::new(), err: told.to_owned() });
    let unknown = run(folder.path(), "key create --scope admin --principal prp_00000000000000000000000000");
    assert!(unknown.code == 1 && unknown.err.contains("names no principal of this workspace"), "{}", unknown.err);
    for usage in [
        "key create",
        "key create --scope owner",
        &format!("key create --scope admin --agent {agent}"),
        "key create --agent laptop",
    ] {
        assert_eq!(run(folder.path(), usage).code, 2, "{usage}");
    }
    let nowhere = run(folder.path(), "key create --scope admin --data nowhere");
    let told = "svc: there is no svc data in `nowhere`: name the right data directory, or start one with `svc init`\n";
    assert_eq!(nowhere, Ran { code: 1, out: String::new(), err: told.to_owned() });
    assert!(!folder.path().join("nowhere").exists());
}
