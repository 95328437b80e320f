//! Gateways that are measured beside svc, each a process of its own on a processor of its own, with what each has used read
//! from the system.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Fault;

/// The processor that gateways run on; the load and the provider have the first.
pub const PROCESSOR: &str = "1";
/// How long a gateway may take to come up: those of Python import for many seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the system counts processor time in: hundredths of a second on every Linux.
const TICKS: u64 = 100;

/// A gateway.
#[derive(Debug)]
pub struct Peer {
    /// How it is called in the table.
    pub name: &'static str,
    /// Where it listens.
    pub port: u16,
    /// Headers that a request to it takes, each with its end of line.
    pub headers: String,
    /// The model as a request to it names it.
    pub model: String,
    child: Child,
}

/// What a process and those that it started have used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Processor time.
    pub cpu: Duration,
    /// Memory that they hold now, in bytes.
    pub memory: u64,
}

impl Drop for Peer {
    fn drop(&mut self) {
        for id in tree(self.child.id()).into_iter().rev() {
            // One that is gone already is as good as ended.
            let _ = Command::new("kill").args(["-9", &id.to_string()]).stderr(Stdio::null()).status();
        }
        let _ = self.child.wait();
    }
}

impl Peer {
    /// Files and sockets that it has open.
    #[must_use]
    pub fn open_files(&self) -> usize {
        let of = |id: u32| std::fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count);
        tree(self.child.id()).into_iter().map(of).sum()
    }

    /// What it has used until now.
    #[must_use]
    pub fn used(&self) -> Used {
        let mut used = Used::default();
        for id in tree(self.child.id()) {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
            // utime, stime, and those of children that have ended.
            used.cpu += Duration::from_millis((11..=14).map(ticks).sum::<u64>() * 1_000 / TICKS);
            used.memory += resident(id);
        }
        used
    }

    fn start(name: &'static str, port: u16, command: &mut Command) -> Result<Self, Fault> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let peer = Self { name, port, headers: String::new(), model: "large-1".to_owned(), child };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > PATIENCE {
                return Err(format!("{name} did not come up").into());
            }
            #[expect(clippy::disallowed_methods, reason = "another program comes up; nobody tells when")]
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(peer)
    }
}

/// A process and those below it.
fn tree(id: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let below = children.split_whitespace().filter_map(|it| it.parse().ok()).flat_map(tree);
    std::iter::once(id).chain(below).collect()
}

fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    line.and_then(|it| it.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1_024
}

/// A program on the gateways' processor.
fn pinned(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", PROCESSOR]).arg(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SVC_") {
            command.env_remove(name);
        }
    }
    command
}

/// A port that nobody listens on.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16, Fault> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// This very program as `kind`, which listens on the port that it is given.
///
/// # Errors
/// It does not come up.
pub fn itself(name: &'static str, kind: &str, upstream: u16) -> Result<Peer, Fault> {
    let port = free_port()?;
    let mut command = pinned(std::env::current_exe()?);
    Peer::start(name, port, command.args(["--as", kind, &port.to_string(), &upstream.to_string()]))
}

/// The provider that all gateways call, on the processor of the load.
///
/// # Errors
/// It does not come up.
pub fn provider(port: u16) -> Result<Peer, Fault> {
    let mut command = Command::new(std::env::current_exe()?);
    Peer::start("provider", port, command.args(["--as", "provider", &port.to_string(), "0"]))
}

/// The stand-in of model APIs that svc brings along, which breaks as a model's name says, on the processor of the load.
///
/// # Errors
/// It does not come up.
pub fn mock(program: &Path) -> Result<Peer, Fault> {
    let port = free_port()?;
    let mut command = Command::new(program);
    Peer::start("mock", port, command.args(["mock-upstream", "--listen", &format!("127.0.0.1:{port}")]))
}

/// nginx as a reverse proxy with kept connections, where it is installed.
///
/// # Errors
/// It does not come up.
pub fn nginx(directory: &Path, upstream: u16) -> Result<Option<Peer>, Fault> {
    let Some(program) = ["/usr/sbin/nginx", "/usr/bin/nginx"].map(PathBuf::from).into_iter().find(|it| it.exists())
    else {
        return Ok(None);
    };
    let port = free_port()?;
    let folder = directory.join("nginx");
    std::fs::create_dir_all(&folder)?;
    let at = folder.display();
    std::fs::write(
        folder.join("nginx.conf"),
        format!(
            "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f;\n\
             uwsgi_temp_path {at}/u; scgi_temp_path {at}/s; keepalive_requests 100000000;\n\
             upstream provider {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 100000000; }}\n\
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://provider; proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\"; proxy_buffering off; }} }} }}\n"
        ),
    )?;
    let mut command = pinned(program);
    command.arg("-p").arg(&folder).arg("-c").arg(folder.join("nginx.conf"));
    Ok(Some(Peer::start("nginx", port, &mut command)?))
}

/// LiteLLM's proxy with one worker and a master key, where `SVC_BENCH_LITELLM` names its program.
///
/// # Errors
/// It does not come up.
pub fn litellm(directory: &Path, upstream: u16) -> Result<Option<Peer>, Fault> {
    let Some(program) = std::env::var_os("SVC_BENCH_LITELLM") else { return Ok(None) };
    let (port, file) = (free_port()?, directory.join("litellm.yaml"));
    std::fs::write(
        &file,
        format!(
            "model_list:\n  - model_name: large-1\n    litellm_params:\n      model: openai/large-1\n      \
             api_base: http://127.0.0.1:{upstream}/v1\n      api_key: sk-bench\n\
             general_settings:\n  master_key: sk-bench-master\nlitellm_settings:\n  telemetry: false\n"
        ),
    )?;
    let mut command = pinned(program);
    command.arg("--config").arg(&file).args(["--host", "127.0.0.1", "--port", &port.to_string(), "--num_workers", "1"]);
    let mut peer = Peer::start("LiteLLM", port, &mut command)?;
    peer.headers = "authorization: Bearer sk-bench-master\r\n".to_owned();
    Ok(Some(peer))
}

/// Portkey's gateway on Node, where `SVC_BENCH_PORTKEY` names its `start-server.js`.
///
/// # Errors
/// It does not come up.
pub fn portkey(upstream: u16) -> Result<Option<Peer>, Fault> {
    let Some(program) = std::env::var_os("SVC_BENCH_PORTKEY") else { return Ok(None) };
    let port = free_port()?;
    let mut command = pinned("node");
    command
        .arg(program)
        .arg(format!("--port={port}"))
        .arg("--headless")
        .env("TRUSTED_CUSTOM_HOSTS", "127.0.0.1,localhost");
    let mut peer = Peer::start("Portkey", port, &mut command)?;
    peer.headers = format!(
        "authorization: Bearer sk-bench\r\nx-portkey-provider: openai\r\n\
         x-portkey-custom-host: http://127.0.0.1:{upstream}/v1\r\n"
    );
    Ok(Some(peer))
}

/// An owner's session at a server, for what is set up and looked at beside the load.
#[derive(Debug)]
pub struct Console {
    port: u16,
    cookie: String,
    workspace: String,
}

impl Console {
    /// Signs in by a one-time link.
    fn enter(port: u16, link: &str, workspace: &str) -> Result<Self, Fault> {
        let signed = ask(port, "POST", "/api/sign-in/link", "", Some(&json!({ "token": link })))?;
        let cookie = signed.lines().find_map(|it| it.strip_prefix("set-cookie: ")).ok_or("no session")?;
        let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap_or_default());
        Ok(Self { port, cookie, workspace: workspace.to_owned() })
    }

    /// Asks for a path of the workspace.
    ///
    /// # Errors
    /// The answer is an error, or no JSON.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Fault> {
        let path = format!("/api/w/{}/{path}", self.workspace);
        let answer = ask(self.port, method, &path, &self.cookie, body)?;
        Ok(serde_json::from_str(answer.split_once("\r\n\r\n").ok_or("no body")?.1)?)
    }

    /// A provider of chat completions with these models, each with prices.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn provide(&self, name: &str, base_url: &str, models: &[&str]) -> Result<(), Fault> {
        let wish =
            json!({ "name": name, "kind": "chat", "baseUrl": base_url, "apiKey": "sk-bench", "jurisdiction": "eu" });
        let made = self.ask("POST", "upstreams", Some(&wish))?;
        for model in models {
            let wish = json!({
                "id": model, "upstreamId": made.get("id"), "contextWindow": 200_000, "maxOutput": 1_000,
                "capabilities": ["tools", "streaming"], "prices": { "input": 3_000_000, "output": 15_000_000 },
            });
            self.ask("POST", "models", Some(&wish))?;
        }
        let budget = json!({
            "scope": { "kind": "workspace" }, "amount": 9_000_000_000_000_u64, "period": "day",
            "ladder": [{ "at": 100, "step": "stop" }],
        });
        self.ask("POST", "budgets", Some(&budget))?;
        Ok(())
    }
}

/// svc as it is installed, over SQLite on the disk that `directory` lies on, with its first key for model traffic; providers,
/// prices and a budget come by its console.
///
/// # Errors
/// It does not come up, or refuses what it is told.
pub fn svc(program: &Path, directory: &Path) -> Result<(Peer, Console), Fault> {
    let (port, data) = (free_port()?, directory.join("svc-data"));
    let mut command = pinned(program);
    command.args(["dev", "--json", "--listen", &format!("127.0.0.1:{port}")]).arg("--data").arg(&data);
    command.env("SVC_LIMITS_GATEWAY_PER_MINUTE", "1000000").env("SVC_LOG_LEVEL", "error");
    command.env("SVC_TIMEOUTS_IDLE_MS", "1000");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    let mut peer = Peer { name: "svc", port, headers: String::new(), model: "bench/large-1".to_owned(), child };
    let printed = peer.child.stdout.take().ok_or("no standard output")?;
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(printed), &mut line)?;
    let made: Value = serde_json::from_str(&line)?;
    let text = |name: &str| made.get(name).and_then(Value::as_str).ok_or("a member is missing");
    let link = text("signInLink")?.split_once("token=").ok_or("no token")?.1;
    let console = Console::enter(port, link, text("workspaceId")?)?;
    peer.headers = format!("authorization: Bearer {}\r\n", text("inferenceKey")?);
    Ok((peer, console))
}

/// Asks once, on a connection of its own; the whole answer as text.
fn ask(port: u16, method: &str, path: &str, headers: &str, body: Option<&Value>) -> Result<String, Fault> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-svc-csrf: 1\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.get(9..10) {
        Some("2") => Ok(answer),
        _ => Err(format!("{path}: {answer}").into()),
    }
}
