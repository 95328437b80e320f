//! A program with a gate of its own and the HTTP interface beside it, on one store: what it does in process, a client sees
//! over a socket. It asks itself one question and stops.
//!
//! Run it with `cargo run -p svc-examples --bin server`.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::people::Settings;
use svc_http::Server;
use svc_http::config::{BaseUrl, Config};
use svc_store::{AgentKey, Gate};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// A real one is 256 random bits; see the example `in_process`.
const KEY: &str = "ask_the-key-of-an-example";
const QUESTION: &str = r#"{"type":"payment","summary":"Renew the design tool","payment":{"amount":4900,
    "currency":"EUR","merchant":{"name":"Example Tools","domain":"tools.example.com"}},
    "idempotencyKey":"invoice-7"}"#;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    // Port 0 is any that is free. The base address names it, and with it every receipt and link.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = BaseUrl::parse(&format!("http://{}", listener.local_addr()?))?;
    let gate = Gate::open(home.path(), base_url.as_str())?;
    register(&gate)?;

    let server = Server::new(listener, &Config::default(), &base_url, gate.clone())?;
    let address = server.address()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    println!("listens on a free port: {}", address.port() > 0);

    let answer = spawn_blocking(move || ask(address)).await??;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    println!("over HTTP: {}", head.lines().next().unwrap_or_default());
    let decision = serde_json::from_str::<serde_json::Value>(body)?;
    let told = |name| decision.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    println!("over HTTP: {} is {}", told("type"), told("decision"));

    // The same store, without a socket between.
    let agent = gate.agent(AgentKey::parse(KEY)?)?;
    let id = told("id").parse()?;
    let same = spawn_blocking(move || agent.get(id)).await??;
    println!("in process: {}, the same receipt: {}", same.status().as_str(), same.receipt() == Some(told("receipt")));

    let _ = stop.send(());
    serving.await?;
    println!("stopped");
    Ok(())
}

/// One request over a plain socket, to need no client.
fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST /v1/actions/authorize HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{QUESTION}",
        QUESTION.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A workspace and an agent that may renew subscriptions.
fn register(gate: &Gate) -> Result<(), Box<dyn Error>> {
    let workspace = gate.execute(CreateWorkspace {
        name: "Home".parse()?,
        owner: "owner@example.com".parse()?,
        settings: Settings::default(),
    })?;
    gate.execute(RegisterAgent {
        mandates: vec![Content::Template("saas-subscriptions".into())],
        ..RegisterAgent::new(workspace.id, "Bookkeeper".parse()?, NewKey::of(KEY))
    })?;
    Ok(())
}
