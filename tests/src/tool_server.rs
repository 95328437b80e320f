//! A stand-in of MCP servers: it speaks the era that a test tells it to, says which tools it has, and answers their calls.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::client::PATIENCE;

/// How it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// Without handshake.
    Modern,
    /// With one, and with sessions where so.
    Legacy {
        /// Whether it has sessions.
        sessions: bool,
    },
    /// No MCP.
    Html,
}

/// How it answers a call of a tool.
#[derive(Clone, Debug)]
pub enum Reply {
    /// With this text as the tool's result.
    Text(String),
    /// With this result.
    Result(Value),
    /// With this JSON-RPC error.
    Error(i64, String),
    /// With this status and this JSON-RPC error.
    Broken(u16, i64, &'static str),
    /// With a stream: these messages, then this text.
    Stream(Vec<Value>, String),
    /// With a stream whose first messages come and nothing more.
    Stalled(Vec<Value>),
    /// With this status and nothing.
    Status(u16),
    /// With what is no MCP.
    Noise(&'static str, &'static str),
    /// Not at all: the connection is closed once the call is read.
    Closed,
}

/// A part of a stream that is answered in several: to the call, then to whoever asks for the stream again.
#[derive(Clone, Debug)]
pub enum Part {
    /// These lines of events, and the end.
    Ended(String),
    /// These lines, and the connection is cut.
    Cut(String),
    /// These lines, the result behind them as the event of this id, and the end.
    Result(String, &'static str),
    /// A status and nothing.
    Status(u16),
}

/// A request that it heard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The request's head.
    pub head: String,
    /// Its message.
    pub body: Value,
    /// The same to the byte.
    pub text: String,
}

impl Heard {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|it| it.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The method of its message.
    #[must_use]
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// A stand-in on a free port of loopback.
#[derive(Debug)]
pub struct ToolServer {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    heard: Mutex<Vec<Heard>>,
    /// What came to end sessions.
    ended: Mutex<Vec<Heard>>,
    cut: watch::Sender<usize>,
    /// How many requests were heard.
    count: watch::Sender<usize>,
    /// The method whose requests wait.
    waits: watch::Sender<Option<&'static str>>,
    /// Bytes of open answers that were written.
    written: AtomicUsize,
}

#[derive(Debug)]
struct Script {
    speaks: Speaks,
    tools: Vec<Value>,
    page: usize,
    reply: Reply,
    list: Option<Reply>,
    /// How it answers whoever asks what it speaks.
    discover: Option<Reply>,
    /// What is left of a stream that is answered in parts, and the call.
    parts: (VecDeque<Part>, Value),
    session: u32,
    /// What the names of its sessions begin with.
    named: String,
    /// How a session is refused that it does not know: status, type and body.
    unknown: Option<(u16, &'static str, &'static str)>,
    then: Option<Then>,
}

/// What happens once a call is heard, before it is answered.
struct Then(Box<dyn Fn() + Send>);

impl std::fmt::Debug for Then {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Then")
    }
}

/// A tool of this name and description.
#[must_use]
pub fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } } },
        "_meta": { "hidden": "not for a model" },
    })
}

impl ToolServer {
    /// One that speaks like this, with the tools `read_one` and `write_one`.
    ///
    /// # Panics
    /// Where no port is free.
    pub async fn start(speaks: Speaks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let tools = vec![tool("write_one", "Writes one."), tool("read_one", "Reads one.")];
        let script = Script {
            speaks,
            tools,
            page: 1,
            reply: Reply::Text("done".to_owned()),
            list: None,
            discover: None,
            parts: Default::default(),
            session: 0,
            named: "session".to_owned(),
            unknown: None,
            then: None,
        };
        let (cut, count, waits) = (watch::Sender::default(), watch::Sender::default(), watch::Sender::default());
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            heard: Mutex::default(),
            ended: Mutex::default(),
            cut,
            count,
            waits,
            written: AtomicUsize::new(0),
        });
        let task = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { address, shared, task }
    }

    /// Has it go away: what is connected to it is cut, and nobody listens.
    pub async fn leave(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// Has it listen where it did before it went.
    ///
    /// # Panics
    /// Where its port is taken by now.
    pub async fn come_back(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("the port of before");
        self.task = tokio::spawn(listen(listener, Arc::clone(&self.shared)));
    }

    /// Its address as an MCP server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp?profile=test", self.address)
    }

    fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.shared.script.lock().expect("no panic"));
    }

    /// Has it speak otherwise from now on; it knows no session any more.
    pub fn speak(&self, speaks: Speaks) {
        self.change(|it| (it.speaks, it.session) = (speaks, it.session + 1));
    }

    /// Has the names of its sessions begin like this.
    pub fn name_sessions(&self, named: &str) {
        self.change(|it| it.named = named.to_owned());
    }

    /// Has it forget its sessions.
    pub fn forget_sessions(&self) {
        self.change(|it| it.session += 1);
    }

    /// Has it forget its sessions, and say so like this: status, type and body.
    pub fn forget_sessions_as(&self, status: u16, kind: &'static str, body: &'static str) {
        self.change(|it| (it.session, it.unknown) = (it.session + 1, Some((status, kind, body))));
    }

    /// Has it tell of these tools.
    pub fn tell(&self, tools: Vec<Value>) {
        self.change(|it| it.tools = tools);
    }

    /// Has this happen once a call is heard, before it is answered.
    pub fn then(&self, then: impl Fn() + Send + 'static) {
        self.change(|it| it.then = Some(Then(Box::new(then))));
    }

    /// Has it answer calls like this.
    pub fn reply(&self, reply: Reply) {
        self.change(|it| it.reply = reply);
    }

    /// Has it answer the next call with a stream in these parts.
    pub fn reply_in_parts(&self, parts: impl IntoIterator<Item = Part>) {
        self.change(|it| it.parts.0 = parts.into_iter().collect());
    }

    /// Has it answer for its list of tools like this, or as it is.
    pub fn reply_to_lists(&self, reply: Option<Reply>) {
        self.change(|it| it.list = reply);
    }

    /// Has it answer whoever asks what it speaks like this.
    pub fn reply_to_discovery(&self, reply: Reply) {
        self.change(|it| it.discover = Some(reply));
    }

    /// Has requests of this method wait before they are answered, or all go on.
    pub fn hold(&self, method: Option<&'static str>) {
        self.shared.waits.send_replace(method);
    }

    /// Waits until it has heard so many requests in all.
    ///
    /// # Panics
    /// Where they do not come in time.
    pub async fn until_heard(&self, count: usize) {
        let mut heard = self.shared.count.subscribe();
        timeout(PATIENCE, heard.wait_for(|it| *it >= count)).await.expect("in time").expect("the sender is there");
    }

    /// How many bytes of open answers it has written.
    #[must_use]
    pub fn written(&self) -> usize {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// How many requests it has heard in all.
    #[must_use]
    pub fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// The requests to end a session that it has heard since it was asked last.
    #[must_use]
    pub fn ended(&self) -> Vec<Heard> {
        std::mem::take(&mut *self.shared.ended.lock().expect("no panic"))
    }

    /// What else it has heard since it was asked last: sessions are ended when nobody waits for it.
    #[must_use]
    pub fn heard(&self) -> Vec<Heard> {
        std::mem::take(&mut *self.shared.heard.lock().expect("no panic"))
    }

    /// The calls of tools that it has heard since it was asked last.
    #[must_use]
    pub fn calls(&self) -> Vec<Heard> {
        self.heard().into_iter().filter(|it| it.method() == "tools/call").collect()
    }

    /// Waits until the other side has gone while an answer was stalled.
    ///
    /// # Panics
    /// Where that does not come in time.
    pub async fn until_cut(&self) {
        self.until_all_cut(1).await;
    }

    /// Waits until the other side of so many has gone.
    ///
    /// # Panics
    /// Where that does not come in time.
    pub async fn until_all_cut(&self, count: usize) {
        let mut cut = self.shared.cut.subscribe();
        timeout(PATIENCE, cut.wait_for(|it| *it >= count)).await.expect("in time").expect("the sender is there");
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut served = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        served.spawn(async move { serve(stream, &shared).await });
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut heard = Vec::new();
    loop {
        let Some(request) = read(&mut stream, &mut heard).await else { return };
        let is_end = request.head.starts_with("DELETE ");
        let list = if is_end { &shared.ended } else { &shared.heard };
        list.lock().expect("no panic").push(request.clone());
        shared.count.send_modify(|it| *it += 1);
        let _ = shared.waits.subscribe().wait_for(|it| *it != Some(request.method())).await;
        match answer(&request, shared) {
            Answer::Whole(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Answer::Open(text) => {
                for piece in text.as_bytes().chunks(16 * 1024) {
                    if stream.write_all(piece).await.is_err() {
                        break;
                    }
                    shared.written.fetch_add(piece.len(), Ordering::Relaxed);
                }
                // Until the other side goes.
                let _ = stream.read(&mut [0; 1]).await;
                shared.cut.send_modify(|it| *it += 1);
                return;
            }
            Answer::Cut(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                return;
            }
            Answer::Closed => return,
        }
    }
}

/// One request; nothing at the end.
async fn read(stream: &mut TcpStream, heard: &mut Vec<u8>) -> Option<Heard> {
    let mut buffer = [0; 4_096];
    loop {
        if let Some(at) = heard.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&heard[..at]).into_owned();
            let request = Heard { head, body: Value::Null, text: String::new() };
            let length: usize = request.header("content-length").and_then(|it| it.parse().ok()).unwrap_or_default();
            if heard.len() >= at + 4 + length {
                let sent = &heard[at + 4..at + 4 + length];
                let body = serde_json::from_slice(sent).unwrap_or_default();
                let text = String::from_utf8_lossy(sent).into_owned();
                heard.drain(..at + 4 + length);
                return Some(Heard { body, text, ..request });
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => heard.extend_from_slice(&buffer[..count]),
        }
    }
}

enum Answer {
    Whole(String),
    Open(String),
    /// This, and the end of the connection.
    Cut(String),
    Closed,
}

fn http(status: u16, more: &str, kind: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Whole(format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\n{more}content-length: {length}\r\n\r\n{body}"
    ))
}

fn rpc(request: &Heard, member: &str, value: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request.body["id"], member: value })
}

fn result(request: &Heard, value: Value) -> Answer {
    http(200, "", "application/json", &rpc(request, "result", value).to_string())
}

fn error(request: &Heard, status: u16, code: i64, message: &str) -> Answer {
    let body = rpc(request, "error", json!({ "code": code, "message": message })).to_string();
    http(status, "", "application/json", &body)
}

fn answer(request: &Heard, shared: &Shared) -> Answer {
    let mut script = shared.script.lock().expect("no panic");
    if request.head.starts_with("GET ") {
        let Some(part) = script.parts.0.pop_front() else { return http(405, "", "text/plain", "") };
        return part_of(part, &script.parts.1);
    }
    // What it asked is answered, or a session of its is ended.
    let is_answer = request.body.get("result").or_else(|| request.body.get("error")).is_some();
    if request.head.starts_with("DELETE ") || is_answer {
        return http(202, "", "text/plain", "");
    }
    let session = format!("{}-{}", script.named, script.session);
    if let Some(reply) = script.discover.as_ref().filter(|_| request.method() == "server/discover") {
        return called(request, reply);
    }
    match (script.speaks, request.method()) {
        (Speaks::Html, _) => return http(200, "", "text/html", "<html>"),
        (Speaks::Modern, "server/discover") => {
            return result(request, json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }));
        }
        (Speaks::Modern, _) => {
            let meta = &request.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            let is_same = request.header("mcp-protocol-version") == Some("2026-07-28") && meta == "2026-07-28";
            let named = request.body["params"]["name"].as_str();
            if !is_same || request.header("mcp-method") != Some(request.method()) || request.header("mcp-name") != named
            {
                return error(request, 400, -32_020, "the headers differ");
            }
        }
        (Speaks::Legacy { sessions }, "initialize") => {
            let begun = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "stand-in", "version": "1" } });
            let more = if sessions { format!("mcp-session-id: {session}\r\n") } else { String::new() };
            return http(200, &more, "application/json", &rpc(request, "result", begun).to_string());
        }
        (Speaks::Legacy { sessions: true }, _) => match request.header("mcp-session-id") {
            None => return error(request, 400, -32_600, "no session"),
            Some(known) if known != session => {
                let Some((status, kind, body)) = script.unknown else {
                    return error(request, 404, -32_001, "no such session");
                };
                return http(status, "", kind, body);
            }
            Some(_) => {}
        },
        (Speaks::Legacy { sessions: false }, _) => {}
    }
    match request.method() {
        "notifications/initialized" | "notifications/cancelled" => http(202, "", "text/plain", ""),
        "tools/list" if script.list.is_some() => called(request, script.list.as_ref().unwrap_or(&script.reply)),
        "tools/list" => {
            let at: usize = request.body["params"]["cursor"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
            let mut page = json!({ "tools": script.tools.iter().skip(at).take(script.page).collect::<Vec<_>>() });
            if at + script.page < script.tools.len() {
                page["nextCursor"] = json!((at + script.page).to_string());
            }
            result(request, page)
        }
        "tools/call" => {
            script.then.iter().for_each(|it| it.0());
            if let Some(part) = script.parts.0.pop_front() {
                script.parts.1 = request.body.clone();
                return part_of(part, &script.parts.1);
            }
            called(request, &script.reply)
        }
        method => error(request, 200, -32_601, &format!("no {method}")),
    }
}

/// What tells of progress by the client's own token told by the one that came, as a server does, and an answer by the call's id.
fn told_by_token(lines: &str, call: &Value) -> String {
    let (id, token) = (&call["id"], &call["params"]["_meta"]["progressToken"]);
    let lines = lines.replace(r#""progressToken":"p""#, &format!("\"progressToken\":{token}"));
    lines.replace(r#""id":"p""#, &format!("\"id\":{id}"))
}

fn part_of(part: Part, call: &Value) -> Answer {
    let (kind, id) = ("text/event-stream", &call["id"]);
    match part {
        Part::Ended(lines) => http(200, "", kind, &told_by_token(&lines, call)),
        Part::Cut(lines) => {
            let lines = told_by_token(&lines, call);
            Answer::Cut(format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 999999\r\n\r\n{lines}"))
        }
        Part::Result(lines, event) => {
            let result = json!({ "jsonrpc": "2.0", "id": id, "result": text_result("late") });
            let lines = told_by_token(&lines, call);
            http(200, "", kind, &format!("{lines}id: {event}\ndata: {result}\n\n"))
        }
        Part::Status(status) => http(status, "", "text/plain", ""),
    }
}

fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn called(request: &Heard, reply: &Reply) -> Answer {
    let events = |messages: &[Value]| {
        let lines: String = messages.iter().map(|it| format!(": a comment\n\ndata: {it}\n\n")).collect();
        told_by_token(&lines, &request.body)
    };
    match reply {
        Reply::Text(text) => result(request, text_result(text)),
        Reply::Result(value) => result(request, value.clone()),
        Reply::Error(code, message) => error(request, 200, *code, message),
        Reply::Broken(status, code, message) => error(request, *status, *code, message),
        Reply::Stream(messages, text) => {
            let last = rpc(request, "result", text_result(text));
            http(200, "", "text/event-stream", &format!("{}data: {last}\n\n", events(messages)))
        }
        Reply::Stalled(messages) => Answer::Open(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}",
            events(messages)
        )),
        Reply::Status(status) => http(*status, "", "text/plain", ""),
        Reply::Noise(kind, body) => http(200, "", kind, body),
        Reply::Closed => Answer::Closed,
    }
}
