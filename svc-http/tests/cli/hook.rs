//! `svc hook` as a coding client runs it: its answer where there is a decision, and a refusal for everything else.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Server, text};
use crate::{PROGRAM, Ran, svc};

/// How long a hook gets in a test, in milliseconds, where the gate is not to answer.
const SHORT: &str = "700";

/// A user with a home and a project, in which the hook runs.
pub(crate) struct User {
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl User {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "project"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, environment: Vec::new() }
    }

    /// Whose gate is there, by the environment.
    pub(crate) fn at(url: &str) -> Self {
        Self::new().set("SVC_URL", url).set("SVC_AGENT_KEY", "ask_of_a_test")
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// A file of the user's own that nobody else may read.
    pub(crate) fn write(&self, path: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path
    }

    pub(crate) fn run(&self, arguments: &[&str], said: &str) -> Ran {
        self.run_as(Path::new(PROGRAM), arguments, said)
    }

    /// The same by another name of the program.
    pub(crate) fn run_as(&self, program: &Path, arguments: &[&str], said: &str) -> Ran {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project());
        command.arg("hook").args(arguments).env("HOME", self.home());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It may have refused before it reads.
        let _ = child.stdin.take().unwrap().write_all(said.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    pub(crate) fn said(&self, said: &Value) -> Ran {
        self.run(&[], &said.to_string())
    }
}

/// What Claude Code says before this call.
pub(crate) fn call(id: &str) -> Value {
    json!({
        "session_id": "s-1", "cwd": "/", "permission_mode": "bypassPermissions", "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": id,
    })
}

fn after(id: &str) -> Value {
    let mut said = call(id);
    said["hook_event_name"] = json!("PostToolUse");
    said["tool_response"] = json!({ "stdout": "" });
    said
}

/// Nothing was said to the client but no, and why.
pub(crate) fn refused(ran: &Ran, why: &str) {
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{why}: {ran:?}");
    assert!(ran.err.starts_with("svc refuses this call: ") && ran.err.contains(why), "{why}: {ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    assert!(!ran.err.contains("ask_of_a_test"), "{ran:?}");
}

/// A server that reads a request and does this with the connection.
fn stand_in(act: impl Fn(TcpStream, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let act = Arc::new(act);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, act) = (stream.unwrap(), Arc::clone(&act));
            std::thread::spawn(move || {
                let mut heard = Vec::new();
                let mut piece = [0; 4096];
                loop {
                    let text = String::from_utf8_lossy(&heard).into_owned();
                    let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                        let length = head.split("content-length: ").nth(1).and_then(|it| it.lines().next());
                        body.len() >= length.and_then(|it| it.parse().ok()).unwrap_or(0)
                    });
                    if whole {
                        return act(stream, text);
                    }
                    match stream.read(&mut piece) {
                        Ok(read) if read > 0 => heard.extend_from_slice(&piece[..read]),
                        _ => return,
                    }
                }
            });
        }
    });
    url
}

pub(crate) fn answering(answer: impl Into<String>) -> String {
    let answer = answer.into();
    stand_in(move |mut stream, _| drop(stream.write_all(answer.as_bytes())))
}

fn http(status: &str, kind: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A decision on the call of these tests, as the gate would write it, with a change.
pub(crate) fn decision(change: &[(&str, Value)]) -> String {
    let digest = svc_core::value::digest::Digest::of(r#"{"command":"ls"}"#);
    let mut decision = json!({
        "id": "act_01ARZ3NDEKTSV4RRFFQ69G5FAV", "decision": "allow", "status": "allowed", "type": "tool.call",
        "tool": { "name": "Bash", "inputDigest": format!("sha256:{digest}") }, "session": { "id": "s-1" }, "reasons": [],
        "receipt": "a.b.c", "details": { "cwd": "/" },
    });
    for (name, value) in change {
        decision[name] = value.clone();
    }
    http("200 OK", "application/json", &decision.to_string())
}

/// The decisions that the wrong ones below differ from are followed: allow, deny, and an ask with its link.
#[test]
fn decisions_are_followed() {
    let allowed = User::at(&answering(decision(&[]))).said(&call("t"));
    assert_eq!((allowed.code, allowed.err.as_str()), (0, ""));
    let words = |ran: &Ran| {
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        let specific = &answer["hookSpecificOutput"];
        assert_eq!(
            (ran.code, &specific["hookEventName"], answer.as_object().unwrap().len()),
            (0, &json!("PreToolUse"), 1)
        );
        let reason = specific["permissionDecisionReason"].as_str().unwrap_or_default().to_owned();
        (specific["permissionDecision"].as_str().unwrap().to_owned(), reason)
    };
    assert_eq!(words(&allowed), ("allow".to_owned(), String::new()));
    let denied = decision(&[
        ("decision", json!("deny")),
        ("status", json!("denied")),
        ("reasons", json!([{ "code": "agent_frozen", "message": "the agent is frozen" }])),
    ]);
    let denied = words(&User::at(&answering(denied)).said(&call("t")));
    assert_eq!(denied, ("deny".to_owned(), "svc denied this call: the agent is frozen".to_owned()));
    for (may_ask, word) in [(true, "ask"), (false, "deny")] {
        let approval = json!({ "url": "https://gate.example.com/a/1", "clientMayAsk": may_ask });
        let asked = decision(&[
            ("decision", json!("approval_required")),
            ("status", json!("pending")),
            ("reasons", json!([{ "code": "probing", "message": "too many refusals" }])),
            ("approval", approval),
        ]);
        let asked = words(&User::at(&answering(asked)).said(&call("t")));
        assert_eq!(asked.0, word);
        assert!(asked.1.contains("too many refusals") && asked.1.contains("https://gate.example.com/a/1"), "{asked:?}");
    }
}

/// Cursor runs the hook that stands in Claude Code's settings as well: it says what it says to its own, and gets its own answer.
#[test]
fn cursor_is_answered_through_claude_codes_settings() {
    let said = json!({
        "conversation_id": "s-1", "generation_id": "g", "cursor_version": "3.1.0", "workspace_roots": ["/"], "cwd": "",
        "hook_event_name": "preToolUse", "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "t",
    });
    let user = User::at(&answering(decision(&[("details", json!(null))])));
    let ran = user.run(&["--client", "claude-code"], &said.to_string());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "{\"permission\":\"allow\"}\n", ""));
    refused(
        &user.run(&["--client", "claude-code"], &said.to_string().replace("preToolUse", "preCompact")),
        "no event of cursor",
    );
}

/// What is said behind marks of the order of its bytes, as on Windows, is heard.
#[test]
fn marks_in_front_are_passed_over() {
    let user = User::at(&answering(decision(&[])));
    for marks in ["\u{feff}", "\u{feff}\u{feff}"] {
        let ran = user.run(&[], &format!("{marks}{}", call("t")));
        assert!(ran.code == 0 && ran.out.contains(r#""permissionDecision":"allow""#), "{ran:?}");
    }
}

/// An answer that nobody can hear is none: clients let a tool run where a hook says nothing and ends well. What has no words,
/// and what comes after the tool, needs nobody.
#[test]
fn an_answer_that_nobody_hears_is_a_refusal() {
    let denied = decision(&[
        ("decision", json!("deny")),
        ("status", json!("denied")),
        ("reasons", json!([{ "code": "agent_frozen", "message": "the agent is frozen" }])),
    ]);
    let user = User::at(&answering(denied));
    let heard = |user: &User, out: &str, client: &str, said: &Value| {
        let mut command = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_svc");
        command.args(["-c", &format!("exec \"$0\" hook --client {client} {out}"), program]).current_dir(user.project());
        command.env_clear().env("HOME", user.home()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(user.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(said.to_string().as_bytes());
        Ran::from(child.wait_with_output().unwrap())
    };
    for out in [">&-", ">/dev/null"] {
        refused(&heard(&user, out, "claude-code", &call("t")), "nobody hears the answer");
        let ran = heard(&User::at(&answering(decision(&[]))), out, "codex", &call("t"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "an allow of Codex is no words: {ran:?}");
    }
    assert_eq!(heard(&user, "", "claude-code", &call("t")).code, 0);
}

/// A server that answers anything but a decision on this very call is as good as none, whatever it answers.
#[test]
fn an_answer_that_is_no_decision_is_a_refusal() {
    let whole = decision(&[]);
    let half = whole[..whole.len() / 2].to_owned();
    let error = r#"{"error":{"type":"invalid_api_key","message":"the key is unknown","fix":"Check it."}}"#;
    let body = whole.split_once("\r\n\r\n").unwrap().1;
    let twice = body.replace("\"decision\":\"allow\"", "\"decision\":\"deny\",\"decision\":\"allow\"");
    let cases: Vec<(String, &str)> = vec![
        (half, "broke off"),
        (String::new(), "broke off"),
        (whole.replace("content-length: ", "x-length: "), "ends"),
        (http("200 OK", "text/html", "<!doctype html><h1>Welcome</h1>"), "no JSON"),
        (http("500 Internal Server Error", "text/plain", "oops"), "500"),
        (http("500 Internal Server Error", "application/json", "{}"), "500"),
        (whole.replace("200 OK", "500 Internal Server Error"), "500"),
        (whole.replace("200 OK", "302 Found"), "302"),
        (whole.replace("200 OK", "201 Created"), "201"),
        (http("401 Unauthorized", "application/json", error), "the key is unknown"),
        (http("200 OK", "application/json", "{}"), "no decision"),
        (http("200 OK", "application/json", "[]"), "no decision"),
        (http("200 OK", "application/json", r#"{"decision":"allow","status":"allowed"}"#), "no decision"),
        (http("200 OK", "application/json", &twice), "no JSON"),
        (decision(&[("decision", json!("Allow"))]), "no decision"),
        (decision(&[("decision", json!("permit"))]), "no decision"),
        (decision(&[("status", json!("pending"))]), "no decision"),
        (decision(&[("status", json!("completed"))]), "made before"),
        (decision(&[("receipt", json!(null))]), "made before"),
        (decision(&[("consumedAt", json!("2026-10-01T09:30:00.000Z"))]), "made before"),
        // A person has allowed it, and nobody says that the receipt of it was good.
        (decision(&[("approval", json!({ "url": "https://gate.example.com/a/1" }))]), "made before"),
        (decision(&[("decision", json!("approval_required")), ("status", json!("pending"))]), "no decision"),
        (decision(&[("tool", json!({ "name": "Read" }))]), "another call"),
        (decision(&[("session", json!({ "id": "s-2" }))]), "another call"),
        (decision(&[("details", json!({ "cwd": "/elsewhere" }))]), "another call"),
        (decision(&[("details", json!(null))]), "another call"),
        (decision(&[("type", json!("payment"))]), "another call"),
        ("SSH-2.0-OpenSSH_9.9\r\n".to_owned(), "HTTP/1.1"),
    ];
    for (answer, why) in cases {
        refused(&User::at(&answering(answer)).said(&call("t")), why);
    }
}

/// A server that is not there, takes no connection, says nothing, or drips, is refused within the deadline.
#[test]
fn a_server_that_is_down_or_hangs_is_a_refusal_in_time() {
    let down = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", down.local_addr().unwrap());
    drop(down);
    refused(&User::at(&gone).said(&call("t")), "cannot be reached");
    let silent = stand_in(|stream, _| {
        let mut stream = stream;
        let _ = stream.read(&mut [0; 1]);
    });
    let dripping = stand_in(|mut stream, _| {
        let waits = std::sync::mpsc::sync_channel::<()>(1);
        for byte in decision(&[]).bytes() {
            let _ = waits.1.recv_timeout(Duration::from_millis(20));
            if stream.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let unanswered = format!("http://{}", full.local_addr().unwrap());
    for url in [silent, dripping, unanswered] {
        let begun = Instant::now();
        refused(&User::at(&url).set("SVC_HOOK_TIMEOUT_MS", SHORT).said(&call("t")), "no answer within 700 ms");
        assert!(begun.elapsed() < Duration::from_secs(20), "{url}");
    }
}

/// A client that never ends what it says is refused in time, and what it says has to be one call of a tool.
#[test]
fn bad_input_is_a_refusal() {
    let user = User::at(&answering(decision(&[])));
    for (said, why) in [
        ("", "not JSON"),
        ("{not json", "not JSON"),
        ("{}{}", "not JSON"),
        ("\u{feff}\u{feff}{}", "no client"),
        ("{\u{feff}}", "not JSON"),
        (r#"{"hook_event_name":"PreToolUse","hook_event_name":"PreToolUse"}"#, "not JSON"),
        ("[]", "no object"),
        ("{}", "no client"),
        (r#"{"hook_event_name":"SessionStart","session_id":"s"}"#, "no client"),
        (r#"{"hook_event_name":"PreToolUse","session_id":"s"}"#, "tool_name"),
        (r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#, "session_id"),
    ] {
        refused(&user.run(&[], said), why);
    }
    refused(&user.run(&[], &format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000))), "not JSON");
    refused(&user.run(&["--client", "gemini"], &call("t").to_string()), "no event of gemini");
    let usage = user.run(&["--client", "vim"], "");
    assert_eq!((usage.code, usage.out.as_str()), (2, ""));
    let mut child = svc(&user.project());
    child.arg("hook").env("SVC_HOOK_TIMEOUT_MS", SHORT).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take();
    refused(&child.wait_with_output().unwrap().into(), "no answer within 700 ms");
    drop(held);
}

/// After a tool there is nothing to refuse: what cannot be told then is said so, whatever is wrong with it, and stops nothing.
#[test]
fn what_cannot_be_told_after_a_tool_is_no_refusal() {
    let user = User::at(&answering(decision(&[])));
    for (said, why) in [
        (r#"{"hook_event_name":"PostToolUse","session_id":"s"}"#, "tool_name"),
        (r#"{"hook_event_name":"PostToolUse","tool_name":"Bash"}"#, "session_id"),
        (r#"{"hook_event_name":"afterShellExecution","conversation_id":"s"}"#, "command"),
        (r#"{"hook_event_name":"PostToolBatch","session_id":"s"}"#, "no client"),
        (r#"{"hook_event_name":"PostToolUse","session_id":"s","tool_response":[1e999999,"\ud83d"]}"#, "tool_name"),
    ] {
        let ran = user.run(&[], said);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.starts_with("svc was not told what came of this call: ") && ran.err.contains(why), "{ran:?}");
    }
    refused(&user.run(&[], r#"{"hook_event_name":"BeforeTools","session_id":"s"}"#), "no client");
}

/// Without an address or a key, or with ones that are none, nothing is asked; plain http goes to this machine alone.
#[test]
fn without_address_or_key_every_call_is_refused() {
    let allowing = answering(decision(&[]));
    refused(&User::new().said(&call("t")), "`SVC_URL` is neither");
    refused(&User::new().set("SVC_URL", &allowing).said(&call("t")), "`SVC_AGENT_KEY` is neither");
    for (url, why) in [
        ("http://gate.example.com", "https://"),
        ("ftp://127.0.0.1", "https://"),
        ("http://user@127.0.0.1", "no user"),
        ("nonsense", "must be an address"),
    ] {
        refused(&User::at(url).said(&call("t")), why);
    }
    let user = User::new().set("SVC_URL", &allowing).set("SVC_AGENT_KEY", "ask_a\r\nx: y");
    refused(&user.said(&call("t")), "`SVC_AGENT_KEY` is no key");
    for span in ["", "0", "1e3", "60000", "-1"] {
        let ran = User::at(&allowing).set("SVC_HOOK_TIMEOUT_MS", span).said(&call("t"));
        refused(&ran, "`SVC_HOOK_TIMEOUT_MS` must be milliseconds");
    }
}

/// A misspelt name in the environment is no setting in silence: before a tool it is a refusal, after it it is told, and both say what it
/// may have been. What platforms set beside a service of such a name is none.
#[test]
fn a_misspelt_name_in_the_environment_is_a_refusal() {
    let user = || User::at(&answering(decision(&[])));
    for name in ["SVC_HOOK_TIMEOUT", "SVC_HOOK_TIMEOUTMS", "SVC_HOOK_", "SVC_HOOK_PORTS"] {
        let user = user().set(name, "9000");
        refused(&user.said(&call("t")), &format!("`{name}` in the environment is no setting of the hook"));
        refused(&user.said(&call("t")), "`SVC_HOOK_TIMEOUT_MS`");
        let told = user.said(&after("t"));
        assert!(told.code == 1 && told.err.contains("was not told") && told.err.contains(name), "{told:?}");
    }
    let platform =
        ["SVC_HOOK_PORT", "SVC_HOOK_PORT_80_TCP", "SVC_HOOK_SERVICE_HOST", "SVC_HOOK_TIMEOUT_MS", "SVC_DATA"];
    let user = platform.into_iter().fold(user(), |user, name| user.set(name, "5000"));
    assert_eq!(user.said(&call("t")).code, 0);
}

/// Nothing that lies in the project's directory names the gate; the user's own file does, where it is theirs alone.
#[test]
fn the_project_names_no_gate() {
    let allowing = answering(decision(&[]));
    let own = format!("url = \"{allowing}\"\nagentKey = \"ask_of_a_test\"\n");
    let user = User::new();
    for name in [".env", ".envrc", "svc.toml", "hook.toml", ".svc/hook.toml", ".config/svc/hook.toml"] {
        user.write(&format!("project/{name}"), &own);
    }
    user.write("project/svc-data/svc.toml", &own);
    refused(&user.said(&call("t")), "`SVC_URL` is neither");
    let path = user.write("project/.config/svc/hook.toml", &own);
    let mut said = call("t");
    said["cwd"] = json!(user.project());
    let named = user.run(&["--config", path.to_str().unwrap()], &said.to_string());
    refused(&named, "which is the project's");
    refused(&user.run(&["--config", "hook.toml"], &said.to_string()), "absolute");
    refused(&user.run(&["--config", "/nowhere/hook.toml"], &said.to_string()), "is not there");

    let path = user.write("home/.config/svc/hook.toml", &own);
    let mut said = call("t");
    said["workspace_roots"] = json!([user.project()]);
    assert_eq!(user.said(&said).code, 0);
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    refused(&user.said(&said), "open to others");
    user.write("home/.config/svc/hook.toml", "adress = \"x\"\n");
    refused(&user.said(&said), "`adress`");
    user.write("home/.config/svc/hook.toml", "agentKey = ask_of_a_test\n");
    refused(&user.said(&said), "is not TOML");
}

/// Nothing that lies in the project's directory says by whose word the gate is known.
#[test]
fn a_project_says_whom_to_trust_in_nothing() {
    let gate = || User::at("https://127.0.0.1:1");
    for (name, value, is_refused) in
        [("SSL_CERT_FILE", "ca.pem", true), ("SSL_CERT_DIR", "/etc:.", true), ("SSL_CERT_DIR", "/etc:/nowhere", false)]
    {
        let user = gate().set(name, value);
        user.write("project/ca.pem", "");
        refused(&user.said(&call("t")), if is_refused { "which is the project's" } else { "cannot be reached" });
    }
}

/// Where environment and file name different gates or keys, neither is asked: a project may have set the variables.
#[test]
fn a_second_gate_is_a_refusal() {
    let allowing = answering(decision(&[]));
    for (url, key) in [("https://gate.example.com", "ask_of_a_test"), (allowing.as_str(), "ask_of_another")] {
        let user = User::at(&allowing);
        user.write("home/.config/svc/hook.toml", &format!("url = \"{url}\"\nagentKey = \"{key}\"\n"));
        refused(&user.said(&call("t")), "in the environment is not what");
    }
    let user = User::at(&allowing);
    user.write("home/.config/svc/hook.toml", &format!("url = \"{allowing}/\"\n"));
    assert_eq!(user.said(&call("t")).code, 0);
}

/// What the hook sends is the question of the contract, over one connection that it closes.
#[test]
fn the_question_is_that_of_the_contract() {
    let (tell, told) = std::sync::mpsc::sync_channel(4);
    let url = stand_in(move |mut stream, request| {
        tell.send(request).unwrap();
        let _ = stream.write_all(decision(&[]).as_bytes());
    });
    let mut said = call("toolu_1");
    said["tool_input"]["long"] = json!("é".repeat(3_000));
    refused(&User::at(&url).said(&said), "another call");
    let request = told.recv().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/actions/authorize HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("\r\nauthorization: Bearer ask_of_a_test\r\n") && head.contains("connection: close"),
        "{head}"
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["type"], &body["session"]["id"]), (&json!("tool.call"), &json!("s-1")));
    assert_eq!((&body["idempotencyKey"], &body["tool"]["name"]), (&json!("toolu_1"), &json!("Bash")));
    let long = &body["tool"]["input"]["long"];
    assert_eq!((&long["bytes"], long["head"].as_str().unwrap().chars().count()), (&json!(6_000), 512));
    assert_eq!(long["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(body.get("provenance"), None, "the client spoke of no transcript");
}

/// Over a real server: an allowed call carries on and is settled after it; one that the server was not asked about is
/// reported afterwards; a frozen agent is refused, and what ran all the same is reported.
#[test]
fn a_real_server_is_asked_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    let user = User::new().set("SVC_URL", text(&home, "baseUrl")).set("SVC_AGENT_KEY", text(&home, "agentKey"));
    let remembered = || {
        let folder = fs::read_dir(user.home().join(".local/state/svc/hook"));
        let texts = folder.into_iter().flatten().map(|it| fs::read_to_string(it.unwrap().path()).unwrap());
        texts.filter(|it| !it.contains("\"over\":true")).collect::<Vec<_>>()
    };
    let action = || serde_json::from_str::<Value>(&remembered()[0]).unwrap()["action"].as_str().unwrap().to_owned();
    let status = |id: &str| ask(&home, "GET", &format!("/v1/actions/{id}"), text(&home, "agentKey"));

    let ran = user.said(&call("toolu_1"));
    assert!(ran.code == 0 && ran.out.contains(r#""permissionDecision":"allow""#), "{ran:?}");
    let id = action();
    assert_eq!(status(&id)["status"], "allowed");
    let quiet = Ran { code: 0, out: String::new(), err: String::new() };
    assert_eq!(user.said(&after("toolu_1")), quiet);
    assert_eq!((status(&id)["status"].as_str(), remembered().len()), (Some("completed"), 0));
    let again = user.said(&call("toolu_1"));
    assert!(again.code == 0 && action() != id, "a call that is made once more is a new question: {again:?}");
    assert_eq!(user.said(&after("toolu_1")), quiet);
    let deep = |mut said: Value| {
        said["cwd"] = json!("/deep".repeat(2_000));
        user.said(&said)
    };
    let ran = deep(call("toolu_deep"));
    assert!(ran.out.contains(r#""permissionDecision":"allow""#), "in whatever directory: {ran:?}");
    assert_eq!(deep(after("toolu_deep")), quiet);

    user.said(&call("toolu_2"));
    let id = action();
    let mut failed = after("toolu_2");
    failed["hook_event_name"] = json!("PostToolUseFailure");
    assert_eq!(user.said(&failed), quiet);
    assert_eq!(status(&id)["status"], "failed");
    let told = user.said(&after("never-asked"));
    assert!(told.code == 0 && told.err.contains("before the gate was asked"), "{told:?}");

    ask(&home, "POST", &format!("/v1/admin/agents/{}/freeze", text(&home, "agentId")), text(&home, "serviceToken"));
    let denied = user.said(&call("toolu_3"));
    assert!(denied.code == 0 && denied.out.contains(r#""permissionDecision":"deny""#), "{denied:?}");
    let id = action();
    let told = user.said(&after("toolu_3"));
    assert!(told.code == 0 && told.err.contains("was not allowed") && told.err.contains(&id), "{told:?}");
    assert!(status(&id)["signals"].as_array().unwrap().contains(&json!("unapproved_run")));
    assert_eq!(dev.stop().0, Some(0));
    let late = user.said(&after("toolu_4"));
    assert_eq!((late.code, late.out.as_str()), (1, ""), "after the run there is nothing to refuse: {late:?}");
    assert!(late.err.starts_with("svc was not told what came of this call: "), "{late:?}");
}

/// The example that a person can run says what its documentation shows.
#[test]
fn the_example_shows_a_page_that_was_not_declared() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/coding_client");
    let done = Command::new("python3")
        .arg(format!("{example}/undeclared_page.py"))
        .current_dir(format!("{example}/project"))
        .env("HOME", folder.path())
        .env("SVC_BIN", env!("CARGO_BIN_EXE_svc"))
        .env("SVC_URL", text(&home, "baseUrl"))
        .env("SVC_AGENT_KEY", text(&home, "agentKey"))
        .env("SVC_HOOK_TIMEOUT_MS", "50000")
        .output()
        .unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{printed}{}", String::from_utf8_lossy(&done.stderr));
    let readme = fs::read_to_string(format!("{example}/README.md")).unwrap();
    assert_eq!(printed.lines().count(), 3, "{printed}");
    assert!(readme.contains(&format!("```text\n{printed}```")), "{printed}");
}

fn ask(home: &Value, method: &str, path: &str, key: &str) -> Value {
    let mut command = Command::new("curl");
    command.env("no_proxy", "*").args(["-sS", "-X", method, "-H", &format!("authorization: Bearer {key}")]);
    if method == "POST" {
        command.args(["-d", r#"{"reason":"a test"}"#]);
    }
    let output = command.arg(format!("{}{path}", text(home, "baseUrl"))).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}
