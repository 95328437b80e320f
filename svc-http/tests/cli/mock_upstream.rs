//! `svc mock-upstream`.

use std::process::Command;

use serde_json::{Value, json};

use crate::server::{Server, text};
use crate::svc;

/// The stand-in says where it listens, needs no data directory, answers, and ends at a signal.
#[test]
fn the_stand_in_answers_and_ends_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = Server::spawn(svc(folder.path()).args(["mock-upstream", "--listen", "127.0.0.1:0", "--json"]));
    let places: Value = serde_json::from_str(&mock.line()).unwrap();
    let body = json!({ "model": "mock-small--words-3", "messages": [{ "role": "user", "content": "Hello" }] });
    let output = Command::new("curl")
        .env("no_proxy", "*")
        .args(["-sS", "-H", "authorization: Bearer any", "-d", &body.to_string()])
        .arg(format!("{}/chat/completions", text(&places, "chatUrl")))
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["usage"]["completion_tokens"], json!(3), "{answer}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is written");
    let (code, log) = mock.stop();
    assert_eq!((code, log.as_str()), (Some(0), ""));
}
