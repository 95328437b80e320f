//! The servers that are measured: each a process of its own, so that what its side costs is what its process used. A program
//! starts itself again as the server; the two talk over the server's standard input and output, a line each way.

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::gate::receipt::{DalekSigner, PublicKeys, Signer};
use svc_core::store::MemoryStore;
use svc_core::testing::world::terms;
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;
use svc_core::value::text::{Email, Label};
use svc_http::Server;
use svc_http::config::{BaseUrl, Config};
use svc_http::signer::AwsSigner;
use svc_store::postgres::{PostgresStore, Terms};
use svc_store::{Backend, Gate, Settings, SystemClock};

use crate::Fault;
use crate::gate::{MANDATES, mandate_json};
use crate::lane::roomy;
use crate::measure::cpu_time;

/// The argument that makes a program the server.
const SERVE: &str = "--serve";
/// The file in which the bare server finds what the gate answered.
pub const SAMPLE: &str = "sample.json";
/// Where receipts say that they are from.
const BASE_URL: &str = "http://127.0.0.1:8080";
const RATE: u32 = 1_000_000_000;

/// What stands behind the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A handler that parses a body and answers one, and nothing else.
    Bare,
    /// The gate over a store in memory.
    Memory,
    /// The gate over SQLite.
    Sqlite,
    /// The gate over PostgreSQL.
    Postgres,
}

impl Kind {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Bare, "bare"), (Self::Memory, "memory"), (Self::Sqlite, "sqlite"), (Self::Postgres, "postgres")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }
}

/// The key of the agent with this number.
#[must_use]
pub fn agent_key(number: usize) -> String {
    format!("ask_bench_{number:08}")
}

/// A server in its own process; it ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where it listens.
    pub port: u16,
}

/// What a server has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Processor time, all threads together.
    pub cpu: Duration,
    /// Memory that it holds, in bytes.
    pub memory: u64,
}

impl Process {
    /// Starts a server of this kind whose data lies in `directory`, over PostgreSQL in the database of that address, with so many
    /// agents.
    ///
    /// # Errors
    /// It does not come up.
    pub fn start(kind: Kind, directory: &Path, agents: usize) -> Result<Self, Fault> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([SERVE, kind.name(), &agents.to_string()])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut process = Self { child, input, output, port: 0 };
        process.port = u16::try_from(process.line()?.get("port").and_then(Value::as_u64).ok_or("no port")?)?;
        Ok(process)
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// It is gone.
    pub fn used(&mut self) -> Result<Used, Fault> {
        self.input.write_all(b"used\n")?;
        let line = self.line()?;
        let number = |name: &str| line.get(name).and_then(Value::as_u64).ok_or("no number");
        Ok(Used { cpu: Duration::from_nanos(number("cpu")?), memory: number("memory")? })
    }

    fn line(&mut self) -> Result<Value, Fault> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already is as good as ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Becomes the server if the arguments say so, and gives true once it has ended.
///
/// # Errors
/// It cannot serve.
pub fn serve_if_asked() -> Result<bool, Fault> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(SERVE) {
        return Ok(false);
    }
    let name = arguments.next().unwrap_or_default();
    let kind = Kind::ALL.iter().find(|it| it.1 == name).ok_or("no such server")?.0;
    let agents = arguments.next().unwrap_or_default().parse()?;
    let directory = PathBuf::from(arguments.next().unwrap_or_default());
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let runtime = svc_http::serve::runtime(None)?;
    let gate = match kind {
        Kind::Bare => None,
        Kind::Memory | Kind::Sqlite | Kind::Postgres => Some(open(kind, &directory, agents)?),
    };
    let (asks, gone) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || tell(port, asks));
    runtime.block_on(async move {
        let served = async move {
            match gate {
                None => bare(listener, &directory).await,
                Some((gate, keys)) => serve(listener, gate, keys).await,
            }
        };
        tokio::select! {
            ended = served => ended,
            _ = gone => Ok(()),
        }
    })?;
    Ok(true)
}

/// Answers each line with what was used. `asks` is dropped with the process that started this one.
fn tell(port: u16, asks: tokio::sync::oneshot::Sender<()>) {
    println!("{}", json!({ "port": port }));
    for line in std::io::stdin().lines() {
        if line.is_err() {
            break;
        }
        let cpu = u64::try_from(cpu_time().as_nanos()).unwrap_or(u64::MAX);
        println!("{}", json!({ "cpu": cpu, "memory": memory() }));
    }
    drop(asks);
}

/// The memory that this process holds, in bytes; 0 where the system does not tell.
#[must_use]
pub fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    line.and_then(|it| it.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1_024
}

fn open(kind: Kind, directory: &Path, agents: usize) -> Result<(Gate, Option<PublicKeys>), Fault> {
    let (gate, keys) = match kind {
        Kind::Sqlite => (Gate::open_with(directory, BASE_URL, None, &aws_or_dalek, Settings::default())?, None),
        Kind::Postgres => {
            let address = directory.to_str().ok_or("no address of a database")?;
            over(PostgresStore::open(address, Terms::default())?)?
        }
        Kind::Memory | Kind::Bare => over(MemoryStore::new())?,
    };
    register(&gate, agents)?;
    Ok((gate, keys))
}

/// A gate over a store that holds no key to sign with.
fn over<B: Backend>(store: B) -> Result<(Gate, Option<PublicKeys>), Fault> {
    let dalek = DalekSigner::new(&Secret::new([7; 32]), BASE_URL);
    let clock = SystemClock::new();
    let mut keys = PublicKeys::default();
    keys.insert(dalek.public_key(svc_core::store::Clock::now(&clock)));
    let signer: Arc<dyn Signer> = Arc::new(AwsSigner::new(&Secret::new([7; 32]), BASE_URL)?);
    Ok((Gate::over(store, clock, signer, Settings::default())?, Some(keys)))
}

/// The server's signer, or the core's where that one takes no such seed.
fn aws_or_dalek(seed: &Secret<[u8; 32]>, issuer: &str) -> Arc<dyn Signer> {
    match AwsSigner::new(seed, issuer) {
        Ok(signer) => Arc::new(signer),
        Err(_) => Arc::new(DalekSigner::new(seed, issuer)),
    }
}

/// Registers agents whose keys are [`agent_key`]'s, many in each commit.
fn register(gate: &Gate, agents: usize) -> Result<(), Fault> {
    if agents == 0 {
        return Ok(());
    }
    let label = |text: &str| Label::parse(text).map_err(|it| format!("{it:?}"));
    let owner = Email::parse("owner@example.com").map_err(|it| format!("{it:?}"))?;
    let workspace = gate.execute(CreateWorkspace { name: label("Bench")?, owner, settings: roomy() })?.id;
    let mandates: Vec<Content> =
        (0..MANDATES).map(|it| Content::Whole(Box::new(terms(&mandate_json(it, None))))).collect();
    let mut waiting = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for number in 0..agents {
        let key = NewKey { digest: Digest::of(agent_key(number)), prefix: "ask_bench".into() };
        let made = RegisterAgent { mandates: mandates.clone(), ..RegisterAgent::new(workspace, label("Agent")?, key) };
        waiting.push(gate.submit(made));
        if waiting.len() == 64 || number + 1 == agents {
            for one in waiting.drain(..) {
                runtime.block_on(one)?;
            }
        }
    }
    Ok(())
}

async fn serve(listener: TcpListener, gate: Gate, keys: Option<PublicKeys>) -> Result<(), Fault> {
    let mut config = Config::default();
    config.limits.gate_per_minute = RATE;
    config.limits.verify_per_minute = RATE;
    let base = BaseUrl::parse(BASE_URL).map_err(|it| format!("{it:?}"))?;
    let server = match keys {
        Some(keys) => Server::with_keys(listener, &config, &base, gate, keys)?,
        None => Server::new(listener, &config, &base, gate)?,
    };
    server.run(std::future::pending()).await;
    Ok(())
}

/// hyper and nothing else: a body is read whole and parsed, and what the gate answered to such a request is written.
async fn bare(listener: TcpListener, directory: &Path) -> Result<(), Fault> {
    let sample: Value = serde_json::from_slice(&std::fs::read(directory.join(SAMPLE))?)?;
    let sample = Arc::new(sample);
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let sample = Arc::clone(&sample);
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, &sample));
            let served =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            drop(served);
        });
    }
}

async fn answer(request: Request<Incoming>, sample: &Value) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    let parsed = serde_json::from_slice::<Value>(&body);
    let written = serde_json::to_vec(if parsed.is_ok() { sample } else { &Value::Null }).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(written)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
