//! The providers that `svc dev` and `svc init` begin with.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use svc_core::rules::gateway::routing::{Edit, EditRouting};
use svc_core::rules::gateway::upstreams::{NewKey, Set};
use svc_core::rules::people::by::By;
use svc_core::state::gateway::{Routing, UpstreamKey};
use svc_core::store::{Key, Range};
use svc_core::value::link::Index;
use svc_core::value::text::UrlText;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::seal::MasterKey;
use svc_store::{Backend as _, Gate, Settings, SqliteStore, SystemClock};

use crate::server::{Server, text};
use crate::{Ran, svc};

/// Asks the server; the answer's JSON.
fn ask(home: &Value, path: &str, key: &str, body: Option<&Value>) -> Value {
    let mut curl = Command::new("curl");
    curl.env("no_proxy", "*").args(["-sS", "-H", &format!("authorization: Bearer {}", text(home, key))]);
    if let Some(body) = body {
        curl.args(["-d", &body.to_string()]);
    }
    let output = curl.arg(format!("{}{path}", text(home, "baseUrl"))).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What the first start gave, at the address of a later one.
fn own(first: &Value, later: &Value) -> Value {
    let mut home = first.clone();
    home["baseUrl"] = later["baseUrl"].clone();
    home
}

/// The upstreams that calls may go to.
fn enabled(home: &Value) -> Vec<String> {
    let listed = ask(home, "/v1/admin/upstreams", "adminKey", None);
    let on = listed["data"].as_array().unwrap().iter().filter(|it| it["enabled"] == true);
    let mut names: Vec<String> = on.map(|it| text(it, "name").to_owned()).collect();
    names.sort();
    names
}

fn names(home: &Value) -> Vec<String> {
    let listed = ask(home, "/v1/admin/upstreams", "adminKey", None);
    let mut names: Vec<String> =
        listed["data"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Without a key in the environment models are answered by a demonstration upstream; with keys they are those providers', whose
/// keys are shown nowhere.
#[test]
fn models_come_from_the_environment_or_from_a_demonstration() {
    let folder = tempfile::tempdir().unwrap();
    let start = |keys: &[(&str, &str)]| {
        let mut command = svc(folder.path());
        command.args(["dev", "--listen", "127.0.0.1:0", "--json"]);
        command.env_remove("OPENAI_API_KEY").env_remove("ANTHROPIC_API_KEY").envs(keys.iter().copied());
        let mut server = Server::spawn(&mut command);
        let home: Value = serde_json::from_str(&server.line()).unwrap();
        (server, home)
    };
    let (dev, home) = start(&[]);
    assert_eq!(names(&home), ["demo", "demo-messages"]);
    let body = json!({ "model": "demo/demo-small", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }] });
    for path in ["/v1/chat/completions", "/anthropic/v1/messages"] {
        let answer = ask(&home, path, "inferenceKey", Some(&body));
        assert!(answer["choices"].is_array() || answer["type"] == "message", "{answer}");
    }
    assert_eq!(dev.stop().0, Some(0));
    let (dev, later) = start(&[("OPENAI_API_KEY", "sk-planted-zero-wxyz")]);
    assert_eq!(names(&own(&home, &later)), ["demo", "demo-messages", "openai"]);
    assert_eq!(enabled(&own(&home, &later)), ["openai"], "nobody is answered by a stand-in where there are others");
    assert_eq!(dev.stop().0, Some(0));
    let secrets = [("OPENAI_API_KEY", "sk-planted-one-wxyz"), ("ANTHROPIC_API_KEY", "sk-planted-two-abcd")];
    let folder_of_keys = tempfile::tempdir().unwrap();
    let mut command = svc(folder_of_keys.path());
    command.args(["dev", "--listen", "127.0.0.1:0", "--json"]).envs(secrets);
    let mut dev = Server::spawn(&mut command);
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    assert_eq!(names(&home), ["anthropic", "openai"]);
    let models = ask(&home, "/v1/models", "inferenceKey", None).to_string();
    assert!(models.contains("openai/gpt-") && models.contains("anthropic/claude-"), "{models}");
    let listed = ask(&home, "/v1/admin/upstreams", "adminKey", None).to_string();
    let (code, log) = dev.stop();
    assert_eq!(code, Some(0));
    assert!(!format!("{home}{models}{listed}{log}").contains("planted"), "a key was shown");
}

/// `svc init` has the workspace know the same providers as a first start of `svc dev`, once, and says so: those of the
/// environment, else a demonstration where `svc mock-upstream` listens, which a later `svc dev` answers itself.
#[test]
fn init_begins_with_the_same_providers() {
    let init = |folder: &Path, keys: &[(&str, &str)], json: &str| -> Ran {
        let mut command = svc(folder);
        command.arg("init").args(json.split_whitespace()).envs(keys.iter().copied());
        command.output().unwrap().into()
    };
    let start = |folder: &Path, first: &Value| {
        let mut command = svc(folder);
        let mut server = Server::spawn(command.args(["dev", "--listen", "127.0.0.1:0", "--json"]));
        let later: Value = serde_json::from_str(&server.line()).unwrap();
        (server, own(first, &later))
    };
    let folder = tempfile::tempdir().unwrap();
    let keys = [("OPENAI_API_KEY", "sk-planted-one-wxyz"), ("ANTHROPIC_API_KEY", "sk-planted-two-abcd")];
    let first: Value = serde_json::from_str(&init(folder.path(), &keys, "--json").out).unwrap();
    let again = init(folder.path(), &[("OPENAI_API_KEY", "sk-planted-six-efgh")], "");
    assert!(again.out.starts_with("svc-data was ready already") && !again.out.contains("Models are"), "{again:?}");
    let (dev, home) = start(folder.path(), &first);
    assert_eq!(enabled(&home), ["anthropic", "openai"]);
    let listed = ask(&home, "/v1/admin/upstreams", "adminKey", None).to_string();
    assert!(listed.contains("wxyz") && !listed.contains("efgh") && !listed.contains("planted"), "{listed}");
    assert!(ask(&home, "/v1/models", "inferenceKey", None).to_string().contains("anthropic/claude-"));
    assert_eq!(dev.stop().0, Some(0));

    let folder = tempfile::tempdir().unwrap();
    let made = init(folder.path(), &[], "");
    assert!(made.out.contains("\nModels are answered by a demonstration upstream"), "{}", made.out);
    assert!(made.out.contains("`svc mock-upstream`") && made.err.is_empty(), "{made:?}");
    let told = |name: &str| {
        let line = made.out.lines().find_map(|it| it.trim_start().strip_prefix(name)).unwrap();
        json!(line.trim())
    };
    let first = json!({ "adminKey": told("admin key"), "inferenceKey": told("inference key") });
    let (dev, home) = start(folder.path(), &first);
    assert_eq!(enabled(&home), ["demo", "demo-messages"]);
    let body = json!({ "model": "demo/demo-small", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }] });
    let answer = ask(&home, "/v1/chat/completions", "inferenceKey", Some(&body));
    assert!(answer["choices"].is_array(), "{answer}");
    assert_eq!(dev.stop().0, Some(0));
}

/// Whoever has pointed a client at svc has its own key under the name of a provider's: it is passed over with a word of why, and
/// goes to no provider.
#[test]
fn a_secret_of_its_own_is_no_providers_key() {
    for own in ["ask_planted-seven", "aat_planted-seven", "ims_planted-seven"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = svc(folder.path());
        command.env("OPENAI_API_KEY", own).env("ANTHROPIC_API_KEY", "sk-planted-two-abcd");
        let made: Ran = command.args(["init", "--json"]).output().unwrap().into();
        assert_eq!(made.code, 0, "{made:?}");
        assert!(made.err.contains("OPENAI_API_KEY is passed over") && !made.err.contains("planted"), "{}", made.err);
        let first: Value = serde_json::from_str(&made.out).unwrap();
        let mut server = svc(folder.path());
        server.env_remove("OPENAI_API_KEY").env_remove("ANTHROPIC_API_KEY");
        let mut server = Server::spawn(server.args(["dev", "--listen", "127.0.0.1:0", "--json"]));
        let home: Value = serde_json::from_str(&server.line()).unwrap();
        assert_eq!(names(&self::own(&first, &home)), ["anthropic"], "{own}");
        assert_eq!(server.stop().0, Some(0));
    }
}

/// The demonstration upstream answers also where the settings allow other hosts alone: it is said to answer.
#[test]
fn the_demonstration_answers_beside_other_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = svc(folder.path());
    command.args(["dev", "--listen", "127.0.0.1:0", "--json"]).env("SVC_OUTBOUND_ALLOW", "models.internal");
    let mut dev = Server::spawn(&mut command);
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    let body = json!({ "model": "demo/demo-small", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }] });
    let answer = ask(&home, "/v1/chat/completions", "inferenceKey", Some(&body));
    assert!(answer["choices"].is_array(), "{answer}");
    assert_eq!(dev.stop().0, Some(0));
}

/// The stand-in answers at each start for as long as it is alone. What somebody made of it since is theirs, whatever it is called,
/// and is let be.
#[test]
fn what_somebody_made_of_the_demonstration_is_let_be() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut server = Server::start(folder.path(), "--json");
        let home: Value = serde_json::from_str(&server.line()).unwrap();
        (server, home)
    };
    let (dev, home) = start();
    assert_eq!(dev.stop().0, Some(0));
    let (dev, later) = start();
    let body = json!({ "model": "demo/demo-small", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }] });
    let answer = ask(&own(&home, &later), "/v1/chat/completions", "inferenceKey", Some(&body));
    assert!(answer["choices"].is_array(), "{answer}");
    assert_eq!(dev.stop().0, Some(0));

    change(folder.path(), "demo", |_| vec![Set::Enabled(false)]);
    change(folder.path(), "demo-messages", |_| vec![Set::Enabled(false)]);
    let mut dev = Server::start(folder.path(), "");
    let mut told = String::new();
    while !told.contains("Ctrl-C") {
        told.push_str(&dev.line());
    }
    assert!(told.contains("the demonstration upstream is disabled"), "{told}");
    assert_eq!(dev.stop().0, Some(0));

    let theirs = "http://127.0.0.1:9/v1";
    change(folder.path(), "demo", |sealed| {
        let key = NewKey { sealed, hint: "own".into() };
        vec![Set::BaseUrl(UrlText::parse(theirs).unwrap()), Set::Key(key), Set::Enabled(true)]
    });
    change(folder.path(), "demo-messages", |_| vec![Set::Enabled(true)]);
    let (dev, later) = start();
    let listed = ask(&own(&home, &later), "/v1/admin/upstreams", "adminKey", None);
    let demo = listed["data"].as_array().unwrap().iter().find(|it| it["name"] == "demo").unwrap();
    assert_eq!((&demo["enabled"], &demo["baseUrl"]), (&json!(true), &json!(theirs)), "{demo}");
    assert_eq!(enabled(&own(&home, &later)), ["demo"], "the other one is the stand-in's");
    assert_eq!(dev.stop().0, Some(0));
}

/// Changes an upstream while no server runs; `of` is given a key that somebody chose, sealed.
fn change(folder: &Path, name: &str, of: impl FnOnce(Box<str>) -> Vec<Set>) {
    let place = folder.join("svc-data");
    let store = SqliteStore::existing(&place).unwrap();
    let now = svc_http::clock::now();
    let signer = receipt_signer(&mut store.writer().unwrap(), &place, None, now, "https://x.example", &dalek).unwrap();
    let mut settings = Settings::default();
    settings.vault = MasterKey::read(&place).unwrap();
    settings.timers = false;
    let gate = Gate::over(store, SystemClock::new(), signer, settings).unwrap();
    let found = gate.scan(&Range::all(Index::Workspaces, 0, 1)).unwrap();
    let Key::Workspace(workspace) = found[0].row.key else { panic!("a workspace") };
    let routing = gate.read(|scope| Ok(scope.get::<Routing>(workspace)?.unwrap())).unwrap();
    let id = routing.upstreams.iter().find(|it| it.name.as_str() == name).unwrap().id;
    let sealed = gate.seal(&UpstreamKey::purpose(workspace), b"a key of their own").unwrap();
    let edit = Edit::ChangeUpstream(id, of(sealed.into()));
    gate.execute(EditRouting { by: By::Program, workspace, edit }).unwrap();
}
