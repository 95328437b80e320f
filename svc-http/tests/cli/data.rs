//! Data directories: newer ones, ones without their key, new ones.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::gate::{Agent, Mandate};
use svc_core::state::people::{Credential, KeyScope, Principal, Settings, Workspace};
use svc_core::store::{Range, Record, Row as _, Store as _};
use svc_core::testing::people;
use svc_core::value::Id as _;
use svc_core::value::digest::Digest;
use svc_core::value::id::MandateVersionId;
use svc_core::value::link::Index;
use svc_core::value::text::{Email, Label};
use svc_store::sqlite::SCHEMA;
use svc_store::{Backend as _, Gate, SqliteStore};

use crate::server::{Server, authorize, text};
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
    let newer = format!("the database has schema 99, this release knows schema {SCHEMA}");
    let fix = "run the newer release again, or restore a backup";
    for arguments in ["init", "key create --scope admin", "migrate"] {
        let ran = run(folder.path(), arguments);
        assert_eq!(ran, Ran { code: 1, out: String::new(), err: format!("svc: {newer}: {fix}\n") }, "{arguments}");
    }
    let Ran { code, out, .. } = run(folder.path(), "doctor");
    assert_eq!(code, 1);
    assert!(
        out.contains(&format!("fail  schema: {newer}. Run the newer release again, or restore a backup.\n")),
        "{out}"
    );

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
    assert_eq!(
        run(folder.path(), "migrate"),
        told(&format!("svc-data/svc.db was brought from schema 0 to schema {SCHEMA}\n"))
    );
    assert_eq!(run(folder.path(), "migrate"), told(&format!("svc-data/svc.db has schema {SCHEMA} already\n")));
    assert_eq!(run(folder.path(), "migrate --json"), told(&format!("{{\"from\":{SCHEMA},\"to\":{SCHEMA}}}\n")));
    // Whatever command finds one of the release before says that it was brought up to date: there is no way back.
    let file = folder.path().join("svc-data/svc.db");
    let mut bytes = fs::read(&file).unwrap();
    // The user version, a number of four bytes.
    bytes[60..64].copy_from_slice(&u32::try_from(SCHEMA - 1).unwrap().to_be_bytes());
    fs::write(&file, bytes).unwrap();
    let made = run(folder.path(), "init");
    assert!(made.code == 0 && made.err.contains(&format!("was brought from schema {} to", SCHEMA - 1)), "{}", made.err);
    assert_eq!(run(folder.path(), "init").err, "", "once");
}

/// `svc init` makes everything once: keys in the clear the first time only, stored as digests, in files of this user's.
#[test]
fn init_makes_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let Ran { code, out, err } = run(folder.path(), "init --json --owner ada@example.com");
    assert_eq!((code, err.as_str()), (0, ""));
    let made: Value = serde_json::from_str(&out).unwrap();
    let names: BTreeSet<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
    let all = "adminKey agentId agentKey baseUrl callbackSecret inferenceKey serviceToken signInLink workspaceId";
    assert_eq!(names, all.split(' ').collect());
    assert_eq!(made["baseUrl"], "http://127.0.0.1:8080");
    let data = folder.path().join("svc-data");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join("master.key")), mode(&data.join("svc.db"))), (0o700, 0o600, 0o600));
    for entry in fs::read_dir(&data).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for key in ["agentKey", "inferenceKey", "adminKey", "callbackSecret", "serviceToken"] {
            let secret = made[key].as_str().unwrap().as_bytes();
            assert!(!bytes.windows(secret.len()).any(|it| it == secret), "{key} is stored in the clear");
        }
        let link = made["signInLink"].as_str().unwrap().rsplit(['/', '=', '#']).next().unwrap().as_bytes();
        assert!(!bytes.windows(link.len()).any(|it| it == link), "the sign-in link is stored in the clear");
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
    let told = "svc: `--principal prp_00000000000000000000000000` names no principal of this workspace\n     Check the id, or leave it out: the key then counts for the workspace's owner.\n";
    assert_eq!(unknown, Ran { code: 1, out: String::new(), err: told.to_owned() });
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

/// What the first start makes: a workspace of the owner who was named, else of `owner@localhost`, an agent of theirs with
/// its two mandates, and one key of each scope.
#[test]
fn a_first_start_makes_what_an_agent_needs() {
    for (arguments, owner) in [("init", "owner@localhost"), ("init --owner ada@example.com", "ada@example.com")] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(folder.path(), arguments).code, 0);
        let store = SqliteStore::existing(folder.path().join("svc-data")).unwrap();
        let mut reader = store.reader().unwrap();
        let mut rows = |index, prefix| -> Vec<Record> {
            let found = reader.scan(&Range::all(index, prefix, 10)).unwrap();
            found.into_iter().filter_map(|it| it.row.record).collect()
        };
        let workspaces = rows(Index::Workspaces, 0);
        let workspace = Workspace::peel(&workspaces[0]).unwrap();
        let agents = rows(Index::AgentsOf, workspace.id.bits());
        let agent = Agent::peel(&agents[0]).unwrap();
        let keys = rows(Index::KeysOf, workspace.id.bits());
        let scopes: Vec<KeyScope> = keys.iter().map(|it| Credential::peel(it).unwrap().binding.scope).collect();
        assert_eq!((workspaces.len(), agents.len(), scopes.len()), (1, 1, 3));
        for scope in [KeyScope::Agent(agent.id), KeyScope::Admin, KeyScope::Inference] {
            assert!(scopes.contains(&scope), "{scopes:?}");
        }
        assert_eq!(agent.principal, workspace.owner);
        let mut names = Vec::new();
        for grant in &agent.mandates {
            let id = MandateVersionId { mandate: grant.id, version: grant.version };
            let loaded = reader.load(&[Mandate::key(id)]).unwrap();
            names.push(Mandate::peel(loaded[0].record.as_ref().unwrap()).unwrap().name.to_string());
        }
        names.sort_unstable();
        assert_eq!(names, ["coding-agent", "saas-subscriptions"]);
        let loaded = reader.load(&[Principal::key(workspace.owner)]).unwrap();
        assert_eq!(Principal::peel(loaded[0].record.as_ref().unwrap()).unwrap().email.as_str(), owner);
    }
}

/// A first start that was cut short after the workspace, or after the agent, is finished by the next, with keys that are
/// shown; a key that nobody saw is revoked.
#[test]
fn a_first_start_that_was_cut_short_is_finished() {
    for has_agent in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let gate = Gate::open(folder.path().join("svc-data"), "http://127.0.0.1:8080").unwrap();
        let owner = Email::parse("ada@example.com").unwrap();
        let name = Label::parse("Cut short").unwrap();
        let create = CreateWorkspace { name: name.clone(), owner, settings: Settings::default() };
        let workspace = gate.execute(create).unwrap().id;
        let unseen = Digest::of("ask_unseen");
        if has_agent {
            let key = NewKey { digest: unseen, prefix: "ask_unseen".into() };
            gate.execute(RegisterAgent::new(workspace, name, key)).unwrap();
        }
        gate.close();
        let made: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
        assert_eq!(made["workspaceId"], workspace.to_string());
        let store = SqliteStore::existing(folder.path().join("svc-data")).unwrap();
        let keys = store.reader().unwrap().scan(&Range::all(Index::KeysOf, workspace.bits(), 10)).unwrap();
        let keys: Vec<_> = keys.iter().map(|it| Credential::peel(it.row.record.as_ref().unwrap()).unwrap()).collect();
        let live: BTreeSet<Digest> = keys.iter().filter(|it| it.revoked_at.is_none()).map(|it| it.digest).collect();
        let shown = ["agentKey", "inferenceKey", "adminKey"].map(|name| Digest::of(made[name].as_str().unwrap()));
        assert_eq!((live, keys.len()), (BTreeSet::from(shown), if has_agent { 4 } else { 3 }));
        assert_eq!(
            serde_json::from_str::<Value>(&run(folder.path(), "init --json").out).unwrap().as_object().unwrap().len(),
            3
        );
    }
}

/// Where a first start was cut short, whatever it had made by then is made anew: of no secret that nobody saw is said that it is
/// as it was.
#[test]
fn a_start_that_was_cut_short_shows_every_secret() {
    let folder = tempfile::tempdir().unwrap();
    let unseen: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let store = SqliteStore::existing(folder.path().join("svc-data")).unwrap();
    let id = Credential::id_of(&Digest::of(text(&unseen, "adminKey")));
    let found = store.reader().unwrap().load(&[Credential::key(id)]).unwrap().remove(0).record.unwrap();
    // Somebody else's, as it were: a start ends with its own.
    let label = Some(Label::parse("another").unwrap());
    let other = Credential { label, ..Credential::clone(Credential::peel(&found).unwrap()) };
    people::write(&mut store.writer().unwrap(), vec![Credential::wrap(other.into())]);
    drop(store);
    let shown: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    for (name, value) in unseen.as_object().unwrap() {
        let is_same = ["agentId", "baseUrl", "workspaceId"].contains(&name.as_str());
        assert!(shown[name].is_string() && (shown[name] == *value) == is_same, "{name}: {shown}");
    }
    let mut server = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    assert_eq!(authorize(&home, text(&shown, "agentKey")).0, 200);
    assert_eq!(authorize(&home, text(&unseen, "agentKey")).0, 401, "nobody saw it");
}

/// A first start that is killed with every key made and none shown is finished by the next: what nobody saw is made anew and shown, and
/// nothing of it is kept anywhere in the clear or sealed until then.
#[test]
fn a_start_that_is_killed_before_it_tells_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("svc-data");
    // A pipe that takes nothing more: the command stands still where it tells what it made.
    let (_reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while rustix::io::write(&writer, &[b'x'; 4_096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let mut first = svc(folder.path()).args(["init", "--json"]).stdout(writer).spawn().unwrap();
    let began = std::time::Instant::now();
    while live_keys(&data).len() < 3 {
        assert!(began.elapsed().as_secs() < 120 && first.try_wait().unwrap().is_none(), "it makes keys");
        std::thread::yield_now();
    }
    let unseen = live_keys(&data);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(fs::read(data.join("svc.init.unseen")).unwrap(), b"", "what is kept is that there was something");
    let shown: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let told = ["agentKey", "inferenceKey", "adminKey"].map(|name| Digest::of(text(&shown, name)));
    assert_eq!(live_keys(&data), BTreeSet::from(told));
    assert!(live_keys(&data).is_disjoint(&unseen), "nobody saw those before");
    assert!(["serviceToken", "callbackSecret", "signInLink"].iter().all(|name| shown[name].is_string()), "{shown}");
    assert!(!data.join("svc.init.unseen").exists());
    let third: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    assert_eq!((third.as_object().unwrap().len(), live_keys(&data)), (3, BTreeSet::from(told)), "these were seen");
}

/// The digests of the keys in force in the first workspace of a data directory; none while there is none.
fn live_keys(data: &Path) -> BTreeSet<Digest> {
    let Ok(store) = SqliteStore::existing(data) else { return BTreeSet::new() };
    let mut reader = store.reader().unwrap();
    let Ok(workspaces) = reader.scan(&Range::all(Index::Workspaces, 0, 1)) else { return BTreeSet::new() };
    let Some(workspace) = workspaces.iter().find_map(|it| Workspace::peel(it.row.record.as_ref()?)) else {
        return BTreeSet::new();
    };
    let keys = reader.scan(&Range::all(Index::KeysOf, workspace.id.bits(), 100)).unwrap();
    let keys = keys.iter().map(|it| Credential::peel(it.row.record.as_ref().unwrap()).unwrap());
    keys.filter(|it| it.revoked_at.is_none()).map(|it| it.digest).collect()
}

/// Of several first starts at once one makes everything and shows it, and the others find it made.
#[test]
fn first_starts_at_once_make_one_workspace() {
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let start = || svc(folder.path()).args(["init", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let running: Vec<_> = (0..4).map(|_| start()).collect();
        let ran: Vec<Ran> = running.into_iter().map(|it| it.wait_with_output().unwrap().into()).collect();
        let homes: Vec<Value> = ran.iter().map(|it| serde_json::from_str(&it.out).unwrap()).collect();
        let mut members: Vec<usize> = homes.iter().map(|it| it.as_object().unwrap().len()).collect();
        members.sort_unstable();
        assert_eq!(members, [3, 3, 3, 9], "{ran:?}");
        assert!(homes.iter().all(|it| it["workspaceId"] == homes[0]["workspaceId"]), "{ran:?}");
        assert!(ran.iter().all(|it| it.code == 0));
    }
}

/// What a start that was killed left of its own before there was a database stands in nobody's way. A whole note of a server tells of
/// a database that is gone.
#[test]
fn a_note_of_our_own_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("svc-data");
    fs::create_dir(&data).unwrap();
    for name in ["base-url", "base-url.new", "svc.init.lock"] {
        fs::write(data.join(name), "").unwrap();
    }
    let served = run(folder.path(), "init");
    assert!(served.code == 1 && served.err.contains("`svc-data/base-url` is left of it"), "{}", served.err);
    fs::remove_file(data.join("base-url")).unwrap();
    let ran = run(folder.path(), "init");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

/// `svc key rotate` has another key follow, told with its turn; one that waits already is the last, and a compromised one is
/// followed at once.
#[test]
fn key_rotate_has_another_key_follow() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "key rotate --use receipt").code, 1, "there is no database yet");
    assert_eq!(run(folder.path(), "init").code, 0);
    let rotated = run(folder.path(), "key rotate --use checkpoint --json");
    let told: Value = serde_json::from_str(&rotated.out).unwrap();
    assert_eq!((told["use"].as_str(), told["generation"].as_i64()), (Some("checkpoint"), Some(1)));
    assert_eq!((told["compromised"].as_bool(), told["kid"].as_str().unwrap().len()), (Some(false), 43));
    let again = run(folder.path(), "key rotate --use checkpoint");
    let told = format!(
        "svc: a checkpoint key waits for its turn already: it signs from {} on\n     Wait until then; where the key in force is in other hands, `--compromised` replaces it at once.\n",
        told["notBefore"].as_str().unwrap()
    );
    assert_eq!(again, Ran { code: 1, out: String::new(), err: told });
    let scorecard = run(folder.path(), "key rotate --use scorecard").err;
    assert!(scorecard.ends_with(" on; the one before it stays published.\n"), "{scorecard}");
    let Ran { code, out, err } = run(folder.path(), "key rotate --use receipt --compromised");
    assert_eq!((code, out.len()), (0, 44), "{err}");
    let ended = " on; the one before it is published no longer, and all that it signed is refused.\n";
    assert!(err.starts_with("It signs from ") && err.ends_with(ended), "{err}");
    let all = run(folder.path(), "key rotate --use checkpoint --compromised --all");
    assert!(
        all.code == 0
            && all.err.ends_with(" on; none before it is published any longer, and all that they signed is refused.\n"),
        "{all:?}"
    );
    for usage in ["key rotate", "key rotate --use everything", "key rotate --use receipt --all"] {
        assert_eq!(run(folder.path(), usage).code, 2, "{usage}");
    }
}

/// `svc erase` takes an action's words out of the database, says how much, and leaves a record; it erases once, and nothing of
/// what there is not.
#[test]
fn erase_takes_the_texts_and_keeps_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&server.line()).unwrap();
    let (status, action) = authorize(&home, text(&home, "agentKey"));
    assert_eq!(status, 200, "{action}");
    let id = action["id"].as_str().unwrap();
    let Ran { code, out, err } = run(folder.path(), &format!("erase --action {id} --json"));
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{code}: {err}"));
    // The server's own commits come and go: whether the log was cut at that moment is told, and not the same every time.
    let log_cut = &told["logCut"];
    assert!(log_cut.is_boolean(), "{told}");
    assert_eq!(told, serde_json::json!({ "subject": id, "erased": 1, "ledgerWhole": true, "logCut": log_cut }));
    let again = run(folder.path(), &format!("erase --action {id}"));
    assert_eq!((again.code, again.out.as_str()), (0, "0\n"));
    assert!(again.err.contains("every proof holds") && again.err.starts_with("0 rows of "), "{}", again.err);
    let (_, other) = authorize(&home, text(&home, "agentKey"));
    let one = run(folder.path(), &format!("erase --action {}", text(&other, "id")));
    assert!(one.out == "1\n" && one.err.starts_with("1 row of ") && one.err.contains("lost its personal"), "{one:?}");
    let unknown = run(folder.path(), "erase --action act_00000000000000000000000000");
    assert!(unknown.code == 1 && unknown.err.contains("nothing was erased"), "{}", unknown.err);
    let unknown = run(folder.path(), "erase --principal prp_00000000000000000000000000");
    assert!(unknown.code == 1 && unknown.err.contains("nothing was erased"), "{}", unknown.err);
    let key: Value = serde_json::from_str(&run(folder.path(), "key create --scope admin --json").out).unwrap();
    let owner = key.pointer("/binding/principalId").or_else(|| key.get("principalId")).and_then(Value::as_str);
    let owner = owner.unwrap().to_owned();
    let Ran { out, err, .. } = run(folder.path(), &format!("erase --principal {owner} --json"));
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    assert_eq!((&told["subject"], &told["ledgerWhole"]), (&Value::from(&*owner), &Value::from(true)));
    assert_eq!(told["stillMember"], true, "{told}");
    let member = run(folder.path(), &format!("erase --principal {owner}"));
    let stays = format!("{owner} is still a member: name and address stay. Remove them first, then erase again.\n");
    assert!(member.code == 0 && member.err.ends_with(&stays), "{}", member.err);
    for usage in
        ["erase", "erase --action x", &format!("erase --action {id} --principal prp_00000000000000000000000000")]
    {
        assert_eq!(run(folder.path(), usage).code, 2, "{usage}");
    }
    server.stop();
    let Ran { code, out, err } = run(folder.path(), &format!("erase --action {id} --json"));
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{code}: {err}"));
    assert_eq!(told["logCut"], true, "nobody else has the database open");
}
