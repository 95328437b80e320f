//! What a coding client waits for before each tool: the hook from its start to its answer, beside `curl` asking the gate the same
//! question, and beside both programs doing nothing.
//!
//! The gate is `svc dev`, a process of its own. Every question is a new one. `--rounds N` sets how often each side is run;
//! `SVC_BIN` says where `svc` lies, if it is not beside this program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use svc_benches::Fault;
use svc_benches::report::Report;

const ROUNDS: usize = 200;
/// The hook may take this many times what `curl` takes, at the median.
const BAR: f64 = 1.0;
/// Bytes of the session's record that the hook reads.
const RECORD_BYTES: usize = 1 << 20;

/// A gate, and how to ask it.
struct Gate {
    child: Child,
    url: String,
    key: String,
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Gone already is as good as ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let rounds = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => ROUNDS,
        (Some("--rounds"), Some(value)) => value.parse()?,
        (Some(other), _) => return Err(format!("unknown argument `{other}`").into()),
    };
    let folder = tempfile::tempdir()?;
    let svc = binary()?;
    let gate = start(&svc, folder.path())?;
    let record = folder.path().join("transcript.jsonl");
    std::fs::write(&record, transcript())?;
    let names = ["svc --version", "curl --version", "curl", "hook", "hook, 1 MiB record"];
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for round in 0..rounds {
        let sides: [&dyn Fn() -> Result<Command, Fault>; 5] = [
            &|| Ok(with(&svc, &["--version"])),
            &|| Ok(with(Path::new("curl"), &["--version"])),
            &|| Ok(curl(&gate, round)),
            &|| Ok(hook(&svc, &gate, folder.path())),
            &|| Ok(hook(&svc, &gate, folder.path())),
        ];
        let said = [
            String::new(),
            String::new(),
            String::new(),
            call(&format!("plain-{round}"), None),
            call(&format!("record-{round}"), Some(&record)),
        ];
        for ((side, said), times) in sides.iter().zip(&said).zip(&mut times) {
            times.push(timed(side()?, said)?);
        }
    }
    report(&names, &mut times);
    Ok(())
}

fn report(names: &[&str], times: &mut [Vec<f64>]) {
    let mut table = Report::new("hook", &["ms", "p50", "p99"]);
    for (name, times) in names.iter().zip(times.iter_mut()) {
        times.sort_by(f64::total_cmp);
        table.row([(*name).to_owned(), format!("{:.2}", at(times, 50)), format!("{:.2}", at(times, 99))]);
        let name = name.replace([' ', ','], "_");
        table.figure(format!("{name}.p50_ms"), at(times, 50));
        table.figure(format!("{name}.p99_ms"), at(times, 99));
    }
    if let [.., curl, hook, _] = times {
        table.at_most("hook_by_curl.p50", at(hook, 50) / at(curl, 50), BAR);
    }
    table.print();
}

/// The value below which so many of a hundred lie.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// Milliseconds from the start of a process to its end.
fn timed(mut command: Command, said: &str) -> Result<f64, Fault> {
    let begun = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(said.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let taken = begun.elapsed();
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(taken.as_secs_f64() * 1e3)
}

fn binary() -> Result<PathBuf, Fault> {
    if let Some(path) = std::env::var_os("SVC_BIN") {
        return Ok(path.into());
    }
    let path = std::env::current_exe()?.with_file_name("svc");
    if path.exists() { Ok(path) } else { Err("build `svc` first: cargo build --release -p svc-http".into()) }
}

fn start(svc: &Path, folder: &Path) -> Result<Gate, Fault> {
    let mut child = with(svc, &["dev", "--json", "--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .env("SVC_LIMITS_GATE_PER_MINUTE", "1000000")
        .env("SVC_LOG_LEVEL", "off")
        .env_remove("SVC_BIN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no standard output")?).read_line(&mut line)?;
    let home: Value = serde_json::from_str(&line)?;
    let text = |name: &str| home.get(name).and_then(Value::as_str).map(str::to_owned).ok_or("no such member");
    Ok(Gate { url: text("baseUrl")?, key: text("agentKey")?, child })
}

fn with(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn hook(svc: &Path, gate: &Gate, folder: &Path) -> Command {
    let mut command = with(svc, &["hook", "--client", "claude-code"]);
    command.env("SVC_URL", &gate.url).env("SVC_AGENT_KEY", &gate.key).env("HOME", folder).current_dir(folder);
    command
}

fn curl(gate: &Gate, round: usize) -> Command {
    let body = json!({
        "type": "tool.call", "summary": "Bash: ls", "tool": { "name": "Bash", "input": { "command": "ls" } },
        "session": { "id": "s" }, "provenance": [{ "source": "user" }], "idempotencyKey": format!("curl-{round}"),
    });
    let mut command = with(Path::new("curl"), &["-sSf", "-o", "/dev/null", "--noproxy", "*"]);
    command.args(["-H", &format!("authorization: Bearer {}", gate.key), "-H", "content-type: application/json"]);
    command.args(["-d", &body.to_string(), &format!("{}/v1/actions/authorize", gate.url)]);
    command
}

fn call(id: &str, transcript: Option<&Path>) -> String {
    let said = json!({
        "session_id": "s", "transcript_path": transcript, "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": { "command": format!("echo {id}") }, "tool_use_id": id,
    });
    said.to_string()
}

/// A session's record, with results of tools.
fn transcript() -> String {
    let used =
        json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "id": "t", "name": "Read" }] } });
    let gave = json!({ "type": "user", "message": { "content": [
        { "type": "tool_result", "tool_use_id": "t", "content": "x".repeat(4_000) },
    ] } });
    let mut text = format!("{used}\n");
    while text.len() < RECORD_BYTES {
        text.push_str(&format!("{gave}\n"));
    }
    text
}
