//! A server as a process, and what the tests ask of it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::svc;

/// A running server, on a port of its own, that ends with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) log: BufReader<ChildStderr>,
}

impl Server {
    pub(crate) fn start(folder: &Path, arguments: &str) -> Self {
        let mut command = svc(folder);
        command.args(["dev", "--listen", "127.0.0.1:0"]).args(arguments.split_whitespace());
        Self::spawn(&mut command)
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, log) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, out: BufReader::new(out), log: BufReader::new(log) }
    }

    /// What a server says in its log until it listens; it is stopped then.
    pub(crate) fn first_words(command: &mut Command) -> String {
        let mut server = Self::spawn(command);
        let mut log = String::new();
        while !log.contains("listening") {
            assert!(server.log.read_line(&mut log).unwrap() > 0, "{log}");
        }
        log
    }

    /// The next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.out.read_line(&mut line).unwrap() > 0, "ended: {}", self.errors());
        line
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        self.log.read_to_string(&mut text).unwrap();
        text
    }

    /// Sends SIGTERM; the exit code, and everything that was logged.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        signal(&self.child, "TERM");
        let code = self.child.wait().unwrap().code();
        (code, self.errors())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

/// Asks the server for an action with this key; the status and the answer.
pub(crate) fn authorize(home: &Value, key: &str) -> (u16, Value) {
    let body = json!({ "type": "tool.call", "summary": "Read a file", "tool": { "name": "read" }, "provenance": [{ "source": "user" }] });
    let output = Command::new("curl")
        .env("no_proxy", "*")
        .args(["-sS", "-w", "\n%{http_code}", "-H", &format!("authorization: Bearer {key}"), "-d", &body.to_string()])
        .arg(format!("{}/v1/actions/authorize", home["baseUrl"].as_str().unwrap()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (answer, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), serde_json::from_str(answer).unwrap())
}

pub(crate) fn text<'a>(home: &'a Value, name: &str) -> &'a str {
    home[name].as_str().unwrap()
}
