//! `svc dev`: what it prints, keeps and serves.

use std::fs;
use std::io::BufRead as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::register_agent::{RegisterAgent, RemoveAgent};
use svc_core::testing::people::sign_in_owner;
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::text::Label;
use svc_store::{Backend as _, Gate, SqliteStore};

use crate::server::{Server, authorize, signal, text};
use crate::{Ran, run, svc};

/// On a fresh machine the first start prints a request that is allowed when it is pasted into a shell.
#[test]
fn the_printed_request_works_when_it_is_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "");
    let request = loop {
        let line = dev.line();
        if line.trim_start().starts_with("curl ") {
            break line;
        }
    };
    let variables = loop {
        let line = dev.line();
        if line.trim_start().starts_with("export ") {
            break line;
        }
    };
    let unknown =
        format!("{}; curl -sS $SVC_URL/v1/actions/none -H \"authorization: Bearer $SVC_AGENT_KEY\"", variables.trim());
    let output = Command::new("sh").args(["-c", &unknown]).env("no_proxy", "*").output().unwrap();
    let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(refused["error"]["type"], json!("not_found"), "the variables name the server and the key: {refused}");
    let output = Command::new("sh").args(["-c", request.trim()]).env("no_proxy", "*").output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["decision"], &answer["status"]), (&json!("allow"), &json!("allowed")), "{answer}");
    assert!(answer["receipt"].is_string());
    let (code, log) = dev.stop();
    assert_eq!(code, Some(0), "{log}");
    let key = request.split("Bearer ").nth(1).unwrap().split('"').next().unwrap();
    assert!(key.starts_with("ask_") && !log.contains(key), "the key is in the log");
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "JSON off a terminal: {log}");
    let asked = log.lines().find(|line| line.contains("/v1/actions/authorize")).expect("one line a request");
    assert!(asked.contains("\"status\":200") && asked.contains("request_id"), "{asked}");
}

/// `--json` is one line with exactly the members that there are; the three keys are live and of their kinds.
#[test]
fn json_has_what_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    let mut names: Vec<&str> = home.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names.join(" "),
        "adminKey agentId agentKey baseUrl callbackSecret inferenceKey serviceToken signInLink workspaceId"
    );
    let (status, answer) = authorize(&home, text(&home, "agentKey"));
    assert_eq!((status, &answer["agentId"]), (200, &home["agentId"]));
    for other in ["inferenceKey", "adminKey"] {
        let (status, answer) = authorize(&home, text(&home, other));
        assert_eq!((status, &answer["error"]["type"]), (403, &json!("agent_key_required")));
    }
    let listening = run(folder.path(), &format!("doctor --json --config {}", settings(folder.path(), &home)));
    let report: Value = serde_json::from_str(&listening.out).unwrap();
    assert_eq!((listening.code, &report["ok"]), (0, &json!(true)), "{report}");
    assert!(listening.out.contains("a svc server answers at"), "{report}");
}

/// The doctor tells of each provider whether it could be called: its address as the settings let it be, and its key.
#[test]
fn the_doctor_looks_at_each_provider() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    let config = settings(folder.path(), &home);
    let told = |more: &[(&str, &str)]| -> Vec<String> {
        let mut command = svc(folder.path());
        command.args(["doctor", "--config", &config]).envs(more.iter().copied());
        let Ran { out, .. } = command.output().unwrap().into();
        out.lines().filter(|it| it.contains("upstream: ")).map(str::to_owned).collect()
    };
    for (line, name) in told(&[]).iter().zip(["demo", "demo-messages"]) {
        assert!(
            line.starts_with(&format!("look  upstream: `{name}` at 127.0.0.1 is not called: its address ")),
            "{line}"
        );
        assert!(line.ends_with("name the host in `outbound.allow`."), "{line}");
    }
    let allowed = told(&[("SVC_OUTBOUND_ALLOW", "127.0.0.1")]);
    assert_eq!(allowed, ["ok    upstream: `demo` is at 127.0.0.1", "ok    upstream: `demo-messages` is at 127.0.0.1"]);
    let other = "0".repeat(64);
    let sealed = told(&[("SVC_OUTBOUND_ALLOW", "127.0.0.1"), ("SVC_MASTER_KEY", &other)]);
    assert!(
        sealed.len() == 2 && sealed[0].starts_with("fail  upstream: the key of `demo` does not open. "),
        "{sealed:?}"
    );
    server.stop();
}

/// A settings file that says where this server listens and keeps its data.
fn settings(folder: &Path, home: &Value) -> String {
    let listen = text(home, "baseUrl").trim_start_matches("http://");
    let data = folder.join("svc-data");
    fs::write(folder.join("here.toml"), format!("listen = \"{listen}\"\ndata = \"{}\"\n", data.display())).unwrap();
    "here.toml".to_owned()
}

/// A later start keeps workspace, agent and keys and shows no secret; `--new-keys` makes new ones and ends the old.
#[test]
fn later_starts_keep_everything_until_new_keys_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let first: Value = serde_json::from_str(&dev.line()).unwrap();
    assert_eq!(dev.stop().0, Some(0));

    let mut dev = Server::start(folder.path(), "--json");
    let second: Value = serde_json::from_str(&dev.line()).unwrap();
    assert_eq!(second.as_object().unwrap().len(), 3, "{second}");
    assert_eq!((&second["workspaceId"], &second["agentId"]), (&first["workspaceId"], &first["agentId"]));
    assert_eq!(authorize(&second, text(&first, "agentKey")).0, 200);
    assert_eq!(dev.stop().0, Some(0));

    let mut dev = Server::start(folder.path(), "--json --new-keys");
    let third: Value = serde_json::from_str(&dev.line()).unwrap();
    assert_eq!(third["agentId"], first["agentId"]);
    assert_eq!(authorize(&third, text(&third, "agentKey")).0, 200);
    assert!(text(&third, "callbackSecret").starts_with("whsec_"));
    assert_ne!(third["callbackSecret"], first["callbackSecret"]);
    for old in ["agentKey", "inferenceKey", "adminKey"] {
        assert_ne!(first[old], third[old]);
        let (status, answer) = authorize(&third, text(&first, old));
        assert_eq!((status, &answer["error"]["type"]), (401, &json!("invalid_api_key")), "{old}");
    }
}

/// What people removed stays removed: a later start, and `svc init` beside a server, make nothing again and end nothing. New keys
/// are for the first start's agent, or for another in its place, and those of an agent that a person made are theirs.
#[test]
fn later_starts_undo_no_removal() {
    let folder = tempfile::tempdir().unwrap();
    let first: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let workspace = WorkspaceId::parse(text(&first, "workspaceId")).unwrap();
    let store = SqliteStore::existing(folder.path().join("svc-data")).unwrap();
    let owner = By::Person(sign_in_owner(&mut store.writer().unwrap(), workspace, 1, svc_http::clock::now()));
    drop(store);
    let gate = Gate::open(folder.path().join("svc-data"), "http://127.0.0.1:8080").unwrap();
    let (name, mine) = (Label::parse("Mine").unwrap(), "ask_MyOwnMyOwnMyOwnMyOwnMyOwnMyOwnMyOwnMyOwnMyO");
    let register = RegisterAgent::new(workspace, name, NewKey::of(mine));
    let own = gate.execute(RegisterAgent { by: owner.clone(), ..register }).unwrap().agent.id;
    let agent = AgentId::parse(text(&first, "agentId")).unwrap();
    gate.execute(RemoveAgent { workspace, by: owner, agent }).unwrap();
    gate.close();

    let mut dev = Server::start(folder.path(), "--json");
    let second: Value = serde_json::from_str(&dev.line()).unwrap();
    let beside: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    for later in [&second, &beside] {
        assert_eq!((later.as_object().unwrap().len(), &later["workspaceId"]), (2, &first["workspaceId"]), "{later}");
    }
    let told = run(folder.path(), "init").out;
    assert!(told.contains("  agent          removed; `svc dev --new-keys"), "{told}");
    let agents = |home: &Value, token: &str| {
        let output = Command::new("curl")
            .env("no_proxy", "*")
            .args(["-sS", "-H", &format!("authorization: Bearer {token}")])
            .arg(format!("{}/v1/admin/agents", text(home, "baseUrl")))
            .output()
            .unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let active = listed["data"].as_array()?.iter().filter(|it| it["standing"] == "active");
        Some(active.map(|it| text(it, "id").to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(agents(&second, text(&first, "serviceToken")), Some(vec![own.to_string()]), "the token is in force");
    assert_eq!(dev.stop().0, Some(0));

    let mut dev = Server::start(folder.path(), "--json --new-keys");
    let third: Value = serde_json::from_str(&dev.line()).unwrap();
    assert!(text(&third, "agentId") != own.to_string() && third["agentId"] != first["agentId"], "{third}");
    assert_eq!(authorize(&third, mine).1["agentId"], own.to_string());
    assert_eq!(authorize(&third, text(&third, "agentKey")).1["agentId"], third["agentId"]);
    assert_eq!(authorize(&third, text(&first, "adminKey")).1["error"]["type"], "invalid_api_key");
    assert_eq!(agents(&third, text(&first, "serviceToken")), None, "it is revoked");
    assert_eq!(dev.stop().0, Some(0));
    let mut dev = Server::start(folder.path(), "--json --new-keys");
    let fourth: Value = serde_json::from_str(&dev.line()).unwrap();
    assert_eq!(fourth["agentId"], third["agentId"], "the agent that took the place of the first");
    assert_eq!(authorize(&fourth, mine).0, 200);
    assert_eq!(authorize(&fourth, text(&third, "agentKey")).0, 401);
    assert_eq!(dev.stop().0, Some(0));
}

/// A sign-in link leads to where the server of that data is reached, whatever its own settings are, but for an address that was
/// set; what a server noted that runs no longer does not count. A later start names both ways to sign in.
#[test]
fn a_sign_in_link_leads_to_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    let base = text(&home, "baseUrl");
    assert_ne!(base, "http://127.0.0.1:8080");
    let link = run(folder.path(), "sign-in-link owner@localhost");
    assert!(link.out.starts_with(&format!("{base}/sign-in#token=sil_")), "{link:?}");
    let init: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    assert_eq!(text(&init, "baseUrl"), base, "`init` names the same");
    let doctor = run(folder.path(), "doctor");
    assert!(doctor.out.contains(base), "{doctor:?}");
    let mut set = svc(folder.path());
    set.args(["sign-in-link", "owner@localhost"]).env("SVC_BASE_URL", "https://gate.example.com");
    let set = Ran::from(set.output().unwrap());
    assert!(set.out.starts_with("https://gate.example.com/sign-in#token=sil_"), "{set:?}");
    dev.child.kill().unwrap();
    dev.child.wait().unwrap();
    let link = run(folder.path(), "sign-in-link owner@localhost");
    assert!(link.out.starts_with("http://127.0.0.1:8080/sign-in#token=sil_"), "nobody listens there: {link:?}");
    let notes = fs::read_dir(folder.path().join("svc-data")).unwrap().map(|it| it.unwrap().file_name());
    let notes: Vec<_> = notes.filter(|it| it.to_string_lossy().starts_with("base-url")).collect();
    assert_eq!(notes, ["base-url"], "whole, under its own name");
    let noted = fs::metadata(folder.path().join("svc-data/base-url")).unwrap();
    assert_eq!(noted.permissions().mode() & 0o777, 0o600, "as the files beside it");
    let mut dev = Server::start(folder.path(), "");
    let (mut here, mut line) = (String::new(), String::new());
    while !line.trim_start().starts_with("workspace ") {
        here.push_str(&line);
        line = dev.line();
    }
    let base = here.split_whitespace().find(|it| it.starts_with("http://")).unwrap();
    assert!(
        here.contains(&format!("  sign in        {base}/sign-in, or by a link: `svc sign-in-link owner@localhost")),
        "{here}"
    );
    assert_eq!(dev.stop().0, Some(0));
}

/// One server at a time works on a database: another is refused with what to do, commands go on beside it, and one that was
/// killed is in nobody's way.
#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    symlink("svc-data", folder.path().join("other-name")).unwrap();
    // Another directory, and in it another name of the same database.
    fs::create_dir(folder.path().join("linked")).unwrap();
    symlink("../svc-data/svc.db", folder.path().join("linked/svc.db")).unwrap();
    fs::copy(folder.path().join("svc-data/master.key"), folder.path().join("linked/master.key")).unwrap();
    let all = [("dev", "svc-data"), ("serve", "svc-data"), ("serve", "other-name"), ("serve", "linked")];
    for (command, data) in all {
        let mut other = svc(folder.path());
        let mut other = Server::spawn(other.args([command, "--listen", "127.0.0.1:0", "--data", data]));
        let (mut told, mut advice) = (String::new(), String::new());
        other.log.read_line(&mut told).unwrap();
        assert_eq!(told, format!("svc: another server works on the database in `{data}`\n"));
        other.log.read_line(&mut advice).unwrap();
        assert!(advice.starts_with("     Stop it first, or name another data directory with `--data`"), "{advice}");
        assert_eq!(other.child.wait().unwrap().code(), Some(1));
    }
    for command in ["init", "key create --scope inference", "sign-in-link owner@localhost", "backup copy.db", "migrate"]
    {
        let Ran { code, err, .. } = run(folder.path(), command);
        assert_eq!(code, 0, "{command}: {err}");
    }
    assert_eq!(authorize(&home, text(&home, "agentKey")).0, 200);
    dev.child.kill().unwrap();
    dev.child.wait().unwrap();
    let mut again = Server::start(folder.path(), "--json");
    assert!(again.line().contains("baseUrl"));
    assert_eq!(again.stop().0, Some(0));
    // One that is made through a link lies where the link leads.
    fs::create_dir(folder.path().join("fresh")).unwrap();
    fs::create_dir(folder.path().join("place")).unwrap();
    symlink("../place/svc.db", folder.path().join("fresh/svc.db")).unwrap();
    let mut command = svc(folder.path());
    let mut serve = Server::spawn(command.args(["serve", "--listen", "127.0.0.1:0", "--data", "fresh"]));
    let mut log = String::new();
    while !log.contains("listening") {
        assert!(serve.log.read_line(&mut log).unwrap() > 0, "{log}");
    }
    let mut other = svc(folder.path());
    let other = Ran::from(other.args(["serve", "--listen", "127.0.0.1:0", "--data", "place"]).output().unwrap());
    assert!(other.code == 1 && other.err.starts_with("svc: another server works on the database"), "{}", other.err);
    assert_eq!(serve.stop().0, Some(0));
}

/// A database that lies in a second directory too has another log there: nothing opens it by either name, and what would have been
/// lost is said.
#[test]
fn a_database_with_two_names_is_opened_by_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    dev.line();
    fs::create_dir(folder.path().join("hard")).unwrap();
    fs::hard_link(folder.path().join("svc-data/svc.db"), folder.path().join("hard/svc.db")).unwrap();
    fs::copy(folder.path().join("svc-data/master.key"), folder.path().join("hard/master.key")).unwrap();
    let refused = |data: &str, command: &str| {
        let Ran { code, err, .. } = run(folder.path(), &format!("{command} --data {data}"));
        assert!(code == 1 && err.contains(&format!("`{data}/svc.db` has a second name")), "{command}: {err}");
        assert!(err.contains("samefile"), "{err}");
    };
    for command in
        ["key rotate --use receipt --compromised", "backup copy.db", "migrate", "key create --scope inference"]
    {
        refused("hard", command);
        refused("svc-data", command);
    }
    assert!(!folder.path().join("copy.db").exists() && !folder.path().join("hard/svc.db-wal").exists());
    assert_eq!(dev.stop().0, Some(0));
    refused("hard", "serve --listen 127.0.0.1:0");
    fs::remove_file(folder.path().join("hard/svc.db")).unwrap();
    let mut again = Server::start(folder.path(), "--json");
    assert!(again.line().contains("baseUrl"));
    assert_eq!(again.stop().0, Some(0));
}

/// An address that is taken, one that others can reach and a directory of somebody else's are refused, each with what to
/// do, and nothing is left behind.
#[test]
fn what_stands_in_the_way_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = |arguments: &str| {
        let Ran { code, out, err } = run(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments}: {err}");
        err
    };
    assert_eq!(
        refused(&format!("dev --listen {address}")),
        format!(
            "svc: another program listens on {address}\n     Stop it, or choose another address by `listen`; port 0 takes any free one.\n"
        )
    );
    assert_eq!(
        refused("dev --listen 0.0.0.0:0"),
        "svc: `svc dev` listens on loopback only, and 0.0.0.0:0 is not\n     Leave the address out, or serve others with `svc serve`.\n"
    );
    let mut command = svc(folder.path());
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("SVC_METRICS_LISTEN", address.to_string());
    let told = format!(
        "svc: another program listens on {address}\n     Stop it, or choose another address by `metrics.listen`; port 0 takes any free one.\n"
    );
    assert_eq!(Ran::from(command.output().unwrap()), Ran { code: 1, out: String::new(), err: told });
    assert!(!folder.path().join("svc-data").exists());
    fs::create_dir(folder.path().join("photos")).unwrap();
    fs::write(folder.path().join("photos/cat.png"), "").unwrap();
    assert_eq!(
        refused("dev --listen 127.0.0.1:0 --data photos"),
        "svc: `photos` holds `cat.png` and no svc data: name an empty or a new directory\n"
    );
    assert!(refused("dev --listen 127.0.0.1:0 --data photos/cat.png").starts_with("svc: `photos/cat.png"));
    assert_eq!(fs::read_dir(folder.path().join("photos")).unwrap().count(), 1);
}

/// A file of root certificates that is none, or that is not there, is named with what to do; nothing is called with fewer
/// roots than were asked for, and nothing is made of which nobody would see the keys.
#[test]
fn roots_that_are_none_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("roots.pem"), "no certificate").unwrap();
    let none = "`roots.pem` holds no root certificates in PEM that can be read";
    let absent = "`nowhere.pem`, which is to hold root certificates, cannot be read: No such file or directory";
    for (name, told) in [("roots.pem", none), ("nowhere.pem", absent)] {
        fs::write(folder.path().join("svc.toml"), format!("[outbound]\ncaFile = \"{name}\"\n")).unwrap();
        for command in ["dev", "serve"] {
            let arguments = format!("{command} --listen 127.0.0.1:0 --config svc.toml");
            let Ran { code, out, err } = run(folder.path(), &arguments);
            assert_eq!((code, out.as_str()), (1, ""), "{err}");
            let last = err.lines().rev().take(2).collect::<Vec<_>>();
            assert!(last[1].contains(told), "{err}");
            assert!(last[0].contains("outbound.caFile"), "{err}");
            assert!(!folder.path().join("svc-data").exists(), "{command}");
        }
    }
}

/// `svc init` makes the same without serving, once; the keys it printed work at the server that is started later.
#[test]
fn init_makes_the_same_without_serving() {
    let folder = tempfile::tempdir().unwrap();
    let Ran { code, out, err } = run(folder.path(), "init --json --owner ada@example.com");
    assert_eq!((code, err.as_str()), (0, ""));
    let made: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(made["baseUrl"], "http://127.0.0.1:8080");
    let again = run(folder.path(), "init");
    assert_eq!(again.code, 0);
    assert!(again.out.starts_with("svc-data was ready already; nothing was changed\n"), "{}", again.out);
    assert!(!again.out.contains("ask_"));
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    assert_eq!(home["workspaceId"], made["workspaceId"]);
    assert_eq!(authorize(&home, text(&made, "agentKey")).0, 200);
    assert_eq!(run(folder.path(), "init --owner nobody").code, 2);
}

/// `svc key create` prints a key once, alone on standard output, and it works at the server that runs beside it.
#[test]
fn a_key_made_beside_a_running_server_works_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    let agent = text(&home, "agentId");
    let Ran { code, out, err } = run(folder.path(), &format!("key create --agent {agent} --label laptop"));
    assert_eq!(code, 0, "{err}");
    assert_eq!((out.len(), out.starts_with("ask_"), out.ends_with('\n')), (48, true, true));
    assert!(err.contains("is shown this once"), "{err}");
    assert_eq!(authorize(&home, out.trim()).1["agentId"], home["agentId"]);

    let made: Value = serde_json::from_str(&run(folder.path(), "key create --scope admin --json").out).unwrap();
    assert_eq!(made["binding"]["scope"], "admin");
    assert_eq!(text(&made, "key").get(..12), made["binding"]["prefix"].as_str());
    assert_eq!(authorize(&home, text(&made, "key")).1["error"]["type"], "agent_key_required");
}

/// `svc serve` serves what `svc init` made, and ends with exit 0 on SIGINT.
#[test]
fn serve_serves_what_init_made() {
    let folder = tempfile::tempdir().unwrap();
    let made: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let mut command = svc(folder.path());
    command.args(["serve", "--allow-private-callbacks", "--listen", "127.0.0.1:0"]);
    command.env("SVC_LISTEN", "192.0.2.1:1").env("SVC_LOG_FORMAT", "json");
    let mut serve = Server::spawn(&mut command);
    let mut line = String::new();
    serve.log.read_line(&mut line).unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    let home = json!({ "baseUrl": started["base_url"] });
    assert_eq!(authorize(&home, text(&made, "agentKey")).0, 200, "{line}");
    signal(&serve.child, "INT");
    assert_eq!(serve.child.wait().unwrap().code(), Some(0));
}

/// A server without a workspace serves and says in its log what to run, since no key can be known.
#[test]
fn a_server_without_a_workspace_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = svc(folder.path());
    command.arg("serve").env("SVC_LISTEN", "127.0.0.1:0").env("SVC_SERVICE_HOST", "10.0.0.1");
    let mut serve = Server::spawn(&mut command);
    let mut log = String::new();
    while !log.contains("listening") {
        assert!(serve.log.read_line(&mut log).unwrap() > 0, "{log}");
    }
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let warned: Vec<&str> = lines.iter().filter(|it| it["level"] == "WARN").map(|it| text(it, "message")).collect();
    assert_eq!(
        warned,
        [
            "`SVC_SERVICE_HOST` in the environment is passed over: container platforms set names like it",
            "made a new, empty gate in svc-data/svc.db, where there was none: if there should have been one, stop the server and see that this is the right place",
            "there is no workspace yet, so no key is known: stop the server, run `svc init`, start it again",
        ]
    );
    let home = json!({ "baseUrl": lines.last().unwrap()["base_url"] });
    let (status, answer) = authorize(&home, "ask_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!((status, &answer["error"]["type"]), (401, &json!("invalid_api_key")));
    assert_eq!(serve.stop().0, Some(0));
}

/// A server says at its start which providers it would not call, such as the demonstration that `svc dev` has on loopback.
#[test]
fn a_start_tells_of_providers_that_are_not_called() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    dev.line();
    dev.stop();
    let warned = |allow: Option<&str>| -> Vec<String> {
        let mut command = svc(folder.path());
        let mut serve = Server::spawn(
            command.args(["serve", "--listen", "127.0.0.1:0"]).envs(allow.map(|it| ("SVC_OUTBOUND_ALLOW", it))),
        );
        let mut log = String::new();
        while !log.contains("listening") {
            assert!(serve.log.read_line(&mut log).unwrap() > 0, "{log}");
        }
        let (code, rest) = serve.stop();
        assert_eq!(code, Some(0));
        log.push_str(&rest);
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let warned = lines.filter(|it| it["level"] == "WARN").map(|it| text(&it, "message").to_owned());
        warned.filter(|it| it.contains("is not called")).collect()
    };
    let told = warned(None);
    assert_eq!(told.len(), 2, "{told:?}");
    let (one, advice) =
        ("the provider `demo` at 127.0.0.1 is not called: its address ", "name the host in `outbound.allow`");
    assert!(told.iter().any(|it| it.starts_with(one) && it.ends_with(advice)), "{told:?}");
    assert_eq!(warned(Some("127.0.0.1")), [""; 0]);
}

/// A start says that others can read the master key, and nothing of one that is its user's alone.
#[test]
fn a_start_warns_of_a_key_that_others_can_read() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    for (mode, told) in [(0o600, None), (0o640, Some("640"))] {
        fs::set_permissions(folder.path().join("svc-data/master.key"), fs::Permissions::from_mode(mode)).unwrap();
        let log = Server::first_words(svc(folder.path()).args(["serve", "--listen", "127.0.0.1:0"]));
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let warned = lines.into_iter().find(|it| it["level"] == "WARN" && it["path"] == "svc-data/master.key");
        assert_eq!(warned.as_ref().and_then(|it| it["mode"].as_str()), told, "{log}");
    }
}

/// A start says that nothing is sent to the collector that the environment names, where the program is built without sending.
#[test]
fn a_start_warns_of_a_collector_that_it_does_not_send_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = svc(folder.path());
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let log = Server::first_words(&mut command);
    let told = "`OTEL_EXPORTER_OTLP_ENDPOINT` is set and nothing is sent there";
    assert_eq!(log.contains(told), !cfg!(feature = "otel"), "{log}");
}

/// Callbacks to a loopback address by plain http are refused, unless the server was told to allow them.
#[test]
fn private_callbacks_are_for_servers_that_were_told_so() {
    for (flag, wanted) in [("--json", 400), ("--json --allow-private-callbacks", 200)] {
        let folder = tempfile::tempdir().unwrap();
        let mut dev = Server::start(folder.path(), flag);
        let home: Value = serde_json::from_str(&dev.line()).unwrap();
        let key = text(&home, "agentKey");
        let action = authorize(&home, key).1;
        let (base, id) = (text(&home, "baseUrl"), text(&action, "id"));
        let output = Command::new("curl")
            .env("no_proxy", "*")
            .args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", &format!("authorization: Bearer {key}")])
            .args(["-d", r#"{"url":"http://127.0.0.1:9/decided"}"#, &format!("{base}/v1/actions/{id}/callback")])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted.to_string(), "{flag}");
    }
}
