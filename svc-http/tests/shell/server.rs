//! A server on a free port over a stand-in for the gate, and a client that sees every byte.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use serde_json::{Value, json};
use svc_core::refusal::{Kind, Refusal};
use svc_http::answer::{self, Answer};
use svc_http::dispatch::{Call, Remembered, Service, Shown};
use svc_http::routes::Op;
use svc_http::serve::serve;
use svc_http::shell::{Settings, Shell};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// The longest that anything in a test may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Routes and statuses of answers, in their order.
pub(crate) type Told = Vec<(Option<&'static str>, u16)>;

/// Stands in for the gate: keys are known by their texts, bodies say what to do.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Counts requests that wait, and lets them go on.
    pub(crate) waiting: Arc<Turnstile>,
    /// Counts what is looked for.
    pub(crate) looks: Arc<Looks>,
    /// The status of each answer that whoever counts has heard of, with its route.
    pub(crate) told: Arc<Mutex<Told>>,
}

/// Credentials that memory did not know.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Those that begin with `ask_slow`, where they were shown first.
    shown: Turnstile,
    /// The same, where they are looked for.
    pub(crate) slow: Turnstile,
    all: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Looks {
    /// Waits until one more of the slow ones was shown, which is before it is looked for.
    pub(crate) async fn shown(&self) {
        self.shown.arrived().await;
    }

    /// How many have been looked for, and how many at once at most.
    pub(crate) fn counted(&self) -> (usize, usize) {
        (self.all.load(Ordering::SeqCst), self.most.load(Ordering::SeqCst))
    }

    async fn look(&self, credential: &str) {
        self.all.fetch_add(1, Ordering::SeqCst);
        self.most.fetch_max(self.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        if credential.starts_with("ask_slow") {
            self.slow.pass().await;
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Where requests wait until a test lets them go on.
#[derive(Debug)]
pub(crate) struct Turnstile {
    arrived: Semaphore,
    open: Semaphore,
}

impl Default for Turnstile {
    fn default() -> Self {
        Self { arrived: Semaphore::new(0), open: Semaphore::new(0) }
    }
}

impl Turnstile {
    async fn pass(&self) {
        self.arrived.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }

    /// Waits until one more request has arrived.
    pub(crate) async fn arrived(&self) {
        timeout(PATIENCE, self.arrived.acquire()).await.unwrap().unwrap().forget();
    }

    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }
}

/// A stream that gives so many pieces and never ends.
struct Endless {
    left: usize,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = answer::Broken;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, answer::Broken>>> {
        if self.left == 0 {
            return Poll::Pending;
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1_000])))))
    }
}

impl Remembered<Gate> for u128 {
    async fn in_force(&self, _: &Gate, _: &Shown<'_>, _: Op) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Service for Gate {
    type Caller = u128;

    fn known(&self, shown: &Shown<'_>) -> Option<u128> {
        if shown.credential.starts_with("ask_slow") {
            self.looks.shown.arrived.add_permits(1);
        }
        shown.credential.strip_prefix("ask_known").and_then(|it| it.parse().ok())
    }

    async fn resolve(&self, shown: &Shown<'_>) -> Result<u128, Refusal> {
        self.looks.look(shown.credential).await;
        match shown.credential {
            "ask_inference" => Err(Refusal::agent_key_required()),
            "ask_removed" => Err(Refusal::agent_not_found("agt_1")),
            other => {
                let number = other.strip_prefix("ask_agent").or_else(|| other.strip_prefix("ask_slow"));
                number.and_then(|it| it.parse().ok()).ok_or_else(Refusal::invalid_api_key)
            }
        }
    }

    fn rate_bits(caller: &u128) -> u128 {
        *caller
    }

    fn answered(&self, route: Option<&'static str>, status: u16, _: Option<Kind>, _: Duration) {
        self.told.lock().unwrap().push((route, status));
    }

    async fn is_ready(&self) -> bool {
        false
    }

    async fn authorize(&self, caller: u128, call: Call) -> Result<Answer, Refusal> {
        match call.body.as_ref() {
            b"panic" => panic!("a rule with a bug"),
            b"wait" => self.waiting.pass().await,
            b"theirs" => {
                call.ends.set(true);
                self.waiting.pass().await;
            }
            b"conflict" => return Err(Refusal::idempotency_conflict()),
            b"again" => return Ok(Answer::json("{}").replayed()),
            b"flood" => {
                return Ok(Answer::stream("text/event-stream", answer::Stream::new(Endless { left: usize::MAX })));
            }
            b"quiet" => return Ok(Answer::stream("text/event-stream", answer::Stream::new(Endless { left: 1 }))),
            _ => {}
        }
        Ok(Answer::json(json!({ "caller": caller.to_string(), "bytes": call.body.len() }).to_string()))
    }

    async fn read_action(&self, _caller: u128, call: Call) -> Result<Answer, Refusal> {
        match call.id() {
            "act_missing" => Err(Refusal::not_found()),
            id => Ok(Answer::json(json!({ "id": id }).to_string())),
        }
    }

    async fn register_callback(&self, _caller: u128, _call: Call) -> Result<Answer, Refusal> {
        Err(Refusal::invalid_field("url", "must be an https URL"))
    }

    async fn settle(&self, _caller: u128, _call: Call) -> Result<Answer, Refusal> {
        Err(Refusal::already_settled())
    }

    async fn report_run(&self, _caller: u128, _call: Call) -> Result<Answer, Refusal> {
        Err(Refusal::not_found())
    }

    async fn verify(&self, call: Call) -> Result<Answer, Refusal> {
        Ok(Answer::json(json!({ "address": call.address.to_string() }).to_string()))
    }

    async fn keys(&self, _call: Call) -> Result<Answer, Refusal> {
        Ok(Answer::json(r#"{"keys":[]}"#).cached("max-age=300"))
    }

    async fn family(&self, caller: Option<u128>, call: Call) -> Result<Answer, Refusal> {
        if call.body.starts_with(b"wait") {
            self.waiting.pass().await;
        }
        Ok(Answer::json(json!({ "caller": caller.map(|it| it.to_string()), "path": call.route.path }).to_string()))
    }
}

/// A server that runs until it is dropped or stopped.
pub(crate) struct Server {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) waiting: Arc<Turnstile>,
    pub(crate) looks: Arc<Looks>,
    pub(crate) told: Arc<Mutex<Told>>,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts one with other settings than the usual.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut settings = Settings { base_url: "https://gate.example".to_owned(), ..Settings::default() };
        change(&mut settings);
        let gate = Gate::default();
        let (waiting, looks, told) = (Arc::clone(&gate.waiting), Arc::clone(&gate.looks), Arc::clone(&gate.told));
        let shell = Arc::new(Shell::new(gate, settings).unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let drain_time = shell.settings().drain_time;
        let done = tokio::spawn(serve(listener, shell, async move {
            let _ = stopped.await;
            Instant::now() + drain_time
        }));
        Self { address, waiting, looks, told, stop: Some(stop), done }
    }

    pub(crate) async fn client(&self) -> Client {
        Client { stream: TcpStream::connect(self.address).await.unwrap(), heard: Vec::new(), heads: VecDeque::new() }
    }

    /// Tells the server to stop, without waiting for it.
    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has stopped.
    pub(crate) async fn stopped(self) {
        timeout(PATIENCE, self.done).await.expect("the server stops").unwrap();
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    heard: Vec<u8>,
    /// Whether each request that waits for its answer was a HEAD.
    heads: VecDeque<bool>,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    /// Sends text as it is.
    pub(crate) async fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        timeout(PATIENCE, self.stream.write_all(bytes)).await.unwrap().unwrap();
    }

    /// Sends a request with a length and gives its answer.
    pub(crate) async fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Got {
        self.heads.push_back(method == "HEAD");
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        self.send(&format!("{method} {path} HTTP/1.1\r\nhost: gate.example\r\n{length}{headers}\r\n{body}")).await;
        self.answer().await
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> Got {
        let end = loop {
            if let Some(at) = self.heard.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.hear().await, "closed before an answer: {}", String::from_utf8_lossy(&self.heard));
        };
        let head = String::from_utf8(self.heard.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|it| it.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut got = Got { status, headers, body: Vec::new() };
        let length: usize = got.header("content-length").map_or(0, |it| it.parse().unwrap());
        if !self.heads.pop_front().unwrap_or(false) {
            while self.heard.len() < length {
                assert!(self.hear().await, "closed within a body");
            }
            got.body = self.heard.drain(..length).collect();
        }
        got
    }

    /// Whether the server ends the connection without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        !self.hear().await && self.heard.is_empty()
    }

    /// Waits for more bytes; false at the end of the connection.
    pub(crate) async fn hear(&mut self) -> bool {
        let mut more = [0; 65_536];
        match timeout(PATIENCE, self.stream.read(&mut more)).await.expect("an answer or an end") {
            Ok(0) | Err(_) => false,
            Ok(length) => {
                self.heard.extend_from_slice(&more[..length]);
                true
            }
        }
    }
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(it, _)| it == name);
        let first = values.next();
        assert!(values.next().is_none(), "{name} twice");
        first.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The type of the error.
    pub(crate) fn error(&self) -> String {
        self.json().pointer("/error/type").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The field of the first fault.
    pub(crate) fn field(&self) -> String {
        self.json().pointer("/error/errors/0/field").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

/// The header of an agent's key.
pub(crate) const AGENT: &str = "authorization: Bearer ask_agent7\r\n";
