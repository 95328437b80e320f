//! The real server as a process of its own, to be killed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::PATIENCE;

/// A running `svc serve`; it ends with the test.
#[derive(Debug)]
pub struct Program {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it logged until then, where it is `svc serve`.
    pub said: String,
    child: Child,
    log: JoinHandle<()>,
}

impl Program {
    /// Starts a server over `data` for the service at `base_url`, on a free port, and waits until it listens.
    ///
    /// # Panics
    /// Where it ends before that.
    pub async fn serve(data: &Path, base_url: &str) -> Self {
        Self::serve_with(data, base_url, |_| {}).await
    }

    /// The same with further arguments and settings.
    ///
    /// # Panics
    /// Where it ends before that.
    pub async fn serve_with(data: &Path, base_url: &str, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = command(data);
        command.arg("serve").env("SVC_LISTEN", "127.0.0.1:0").env("SVC_BASE_URL", base_url);
        command.env("SVC_LIMITS_GATE_PER_MINUTE", "1000000").env("SVC_LIMITS_VERIFY_PER_MINUTE", "1000000");
        change(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its log"));
        let (address, said) = timeout(PATIENCE, listening(&mut lines)).await.expect("it listens in time");
        // Nobody reads the rest, but somebody has to take it, or the program would wait.
        let log = tokio::spawn(async move {
            let _ = tokio::io::copy(&mut lines, &mut tokio::io::sink()).await;
        });
        Self { address, said, child, log }
    }

    /// Starts `svc dev` over `data` on a free port, and waits until it has said what there is: its JSON.
    ///
    /// # Panics
    /// Where it ends before that.
    pub async fn dev(data: &Path) -> (Self, Value) {
        Self::dev_logging(data, Stdio::null()).await
    }

    /// The same, with its log there.
    ///
    /// # Panics
    /// Where it ends before that.
    pub async fn dev_logging(data: &Path, to: impl Into<Stdio>) -> (Self, Value) {
        let mut command = command(data);
        command.args(["dev", "--json", "--listen"]).arg(free_address().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(to).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its answer"));
        let mut line = String::new();
        timeout(PATIENCE, lines.read_line(&mut line)).await.expect("it begins in time").expect("its answer is text");
        let said: Value = serde_json::from_str(&line).expect("its answer is JSON");
        let base = said["baseUrl"].as_str().and_then(|it| it.strip_prefix("http://")).expect("an address");
        let address = base.parse().expect("an address");
        let log = tokio::spawn(async move {
            let _ = tokio::io::copy(&mut lines, &mut tokio::io::sink()).await;
        });
        (Self { address, said: String::new(), child, log }, said)
    }

    /// Kills it as a loss of power would, and waits until it is gone.
    ///
    /// # Panics
    /// Where it cannot be killed.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it is killed");
        self.log.await.expect("its log ends");
    }

    /// Asks it to stop and waits until it has.
    ///
    /// # Panics
    /// Where it does not end well.
    pub async fn stop(mut self) {
        let id = self.child.id().expect("it runs").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await.expect("a signal is sent");
        assert!(asked.success());
        let ended = timeout(PATIENCE, self.child.wait()).await.expect("it stops in time").expect("it is waited for");
        assert!(ended.success(), "{ended}");
        self.log.await.expect("its log ends");
    }
}

/// The program with this data directory, without what the surroundings say.
#[must_use]
pub fn command(data: &Path) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SVC_") {
            command.env_remove(name);
        }
    }
    command.arg("--data").arg(data);
    command
}

/// An address that nobody listens at.
fn free_address() -> SocketAddr {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    probe.local_addr().expect("an address")
}

/// The address in the line that says that it listens, and all that was said until then.
async fn listening(lines: &mut BufReader<ChildStderr>) -> (SocketAddr, String) {
    let mut heard = String::new();
    loop {
        let from = heard.len();
        let read = lines.read_line(&mut heard).await.expect("its log is text");
        assert!(read > 0, "it ended: {heard}");
        let line: Value = serde_json::from_str(&heard[from..]).unwrap_or_default();
        if line["message"] == "listening" {
            return (line["address"].as_str().and_then(|it| it.parse().ok()).expect("an address"), heard);
        }
    }
}

/// The program that this test run built.
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("SVC_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a test is a program");
    let path = test.parent().and_then(Path::parent).expect("tests lie in `deps`").join("svc");
    assert!(path.exists(), "{} is not built: cargo build -p svc-http --bin svc", path.display());
    path
}
