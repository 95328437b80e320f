//! The providers that `svc dev` begins with.

use std::process::Command;

use serde_json::{Value, json};

use crate::server::{Server, text};
use crate::svc;

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
    let answer = ask(&own(&home, &later), "/v1/chat/completions", "inferenceKey", Some(&body));
    assert!(answer["choices"].is_array(), "the demonstration answers at each start, beside others too: {answer}");
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
