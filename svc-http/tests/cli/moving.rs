//! `svc migrate --from`: a gate goes from its data directory to PostgreSQL.

use std::fs;
use std::io::BufRead as _;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::database::Database;
use crate::server::{Server, authorize};
use crate::{Ran, run, svc};

/// A gate goes from its data directory to PostgreSQL by one command, with its keys and its master key, and is served there and no more
/// here; whatever opens the file says so.
#[test]
fn a_gate_is_moved_to_postgresql_and_goes_on_there() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::start());
    let mut server = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    let key = home["agentKey"].as_str().unwrap().to_owned();
    assert_eq!(authorize(&home, &key).0, 200);
    let there = |arguments: &str| -> Ran {
        let mut command = svc(folder.path());
        command.args(arguments.split_whitespace()).env("SVC_STORE_URL", database.address());
        command.output().unwrap().into()
    };
    let refused =
        |ran: Ran, told: &str| assert!(ran.code == 1 && ran.out.is_empty() && ran.err.contains(told), "{ran:?}");
    refused(there("migrate --from svc-data"), "svc: a server works on the database in `svc-data`");
    let _ = server.stop();
    refused(run(folder.path(), "migrate --from svc-data"), "svc: the settings name no PostgreSQL to move to");
    refused(there("migrate --from elsewhere"), "svc: there is no svc data in `elsewhere`");

    let Ran { code, out, err } = there("migrate --from svc-data");
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("svc-data was moved to postgres:///") && out.contains(" rows of "), "{out}");
    assert!(err.contains("Keep the master key") && err.contains("`svc-data/svc.db` is served no more"), "{err}");
    let again = there("migrate --from svc-data --json");
    let told: Value = serde_json::from_str(&again.out).unwrap();
    assert!(again.code == 0 && told["already"] == true && told["keepToo"] == "svc-data/master.key", "{again:?}");

    for command in ["init", "serve --listen 127.0.0.1:0", "migrate", "backup copy.db", "key create --scope inference"] {
        refused(run(folder.path(), command), "svc: `svc-data/svc.db` was moved to `postgres:///");
    }
    let doctor = run(folder.path(), "doctor");
    assert!(
        doctor.code == 1 && doctor.out.contains("\nfail  schema: `svc-data/svc.db` was moved to "),
        "{}",
        doctor.out
    );

    let mut command = svc(folder.path());
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("SVC_STORE_URL", database.address());
    let mut server = Server::spawn(&mut command);
    let mut log = String::new();
    while !log.contains("listening") {
        assert!(server.log.read_line(&mut log).unwrap() > 0, "{log}");
    }
    let (_, rest) = log.split_once("http://127.0.0.1:").unwrap();
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let home = json!({ "baseUrl": format!("http://127.0.0.1:{port}") });
    assert_eq!(authorize(&home, &key).0, 200, "by the key that it had");
    let until = Instant::now() + Duration::from_secs(30);
    let sizes = "SELECT count(*), max((body->>'size')::int) FROM svc.records WHERE tab IN ('entry', 'chain')";
    while database.sql("SELECT count(*) FROM svc.links WHERE idx='unplaced'") != "0" {
        assert!(Instant::now() < until, "the ledger goes on: {}", database.sql(sizes));
        thread::yield_now();
    }
    let _ = server.stop();
    assert_eq!(there("doctor").code, 0);
}

/// A backup that nobody has served yet is told as one by the move, as nothing says it afterwards; whatever has opened it before.
#[test]
fn a_backup_that_is_moved_is_told() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::start());
    assert_eq!(run(folder.path(), "init").code, 0);
    assert_eq!(run(folder.path(), "backup copy.db").code, 0);
    fs::create_dir(folder.path().join("old")).unwrap();
    fs::rename(folder.path().join("copy.db"), folder.path().join("old/svc.db")).unwrap();
    fs::copy(folder.path().join("svc-data/master.key"), folder.path().join("old/master.key")).unwrap();
    assert_eq!(run(folder.path(), "key create --scope admin --data old").code, 0);
    let mut command = svc(folder.path());
    command.args(["migrate", "--from", "old", "--json"]).env("SVC_STORE_URL", database.address());
    let Ran { code, out, err } = command.output().unwrap().into();
    assert_eq!(code, 0, "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["backup"], &told["already"]), (&json!(true), &json!(false)), "{told}");
    let steps = "run `svc key rotate --use receipt --compromised` and freeze all agents";
    assert!(err.contains("svc: old: this is a backup that nobody has served yet") && err.contains(steps), "{err}");
}
