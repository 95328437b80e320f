//! A site with a stand-in of both model APIs behind it and an owner in front of it: where tests of model calls begin.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::state::people::{KeyScope, Role};
use svc_core::value::id::AgentId;
use svc_core::value::text::Note;
use svc_http::mock::Mock;
use svc_http::upstream::Allowed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::client::{Client, Got, PATIENCE, bearer, request};
use crate::people::Person;
use crate::site::{Plan, Site};

/// The route of the chat-completions shape.
pub const CHAT: &str = "/v1/chat/completions";
/// The route of the messages shape.
pub const MESSAGES: &str = "/anthropic/v1/messages";

/// A site with a stand-in of both APIs behind it, an owner in front of it, and a key for model traffic.
#[derive(Debug)]
pub struct Desk {
    /// The site.
    pub site: Site,
    /// The stand-in.
    pub mock: Mock,
    /// A connection.
    pub client: Client,
    /// An owner.
    pub owner: Person,
    /// The key that calls are made with.
    pub key: String,
    /// The providers' ids by name.
    pub upstreams: BTreeMap<String, String>,
}

impl Desk {
    /// Providers `chat` and `messages`, each with the models `large-1` (quality 80, 3 micros a token in and 15 out) and
    /// `small-1` (50, 1 and 2).
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The same at a site that differs from the usual one.
    pub async fn with(change: impl FnOnce(&mut Plan)) -> Self {
        let mut desk = Self::bare(change).await;
        for (kind, url) in [("chat", desk.mock.chat_url()), ("messages", desk.mock.messages_url())] {
            let id = desk.upstream(kind, kind, &url).await;
            desk.model(&id, "large-1", 80, 3, 15).await;
            desk.model(&id, "small-1", 50, 1, 2).await;
        }
        desk
    }

    /// A desk without a provider.
    pub async fn bare(change: impl FnOnce(&mut Plan)) -> Self {
        let site = Site::with(|plan| {
            plan.config.outbound.allow = Allowed::loopback();
            change(plan);
        });
        let site = site.await;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mock = Mock::remembering(listener, 100).expect("a stand-in");
        let (client, owner) = (site.client().await, site.member(Role::Owner));
        let key = site.key(KeyScope::Inference);
        Self { site, mock, client, owner, key, upstreams: BTreeMap::new() }
    }

    /// Asks a console route of the workspace as its owner.
    pub async fn api(&mut self, method: &str, path: &str, body: Option<&Value>) -> Got {
        let path = format!("/api/w/{}/{path}", self.site.workspace());
        self.owner.ask(&mut self.client, method, &path, body).await
    }

    /// `POST` on a console route.
    pub async fn post(&mut self, path: &str, body: Value) -> Got {
        self.api("POST", path, Some(&body)).await
    }

    /// `GET` of a console route that succeeds.
    pub async fn read(&mut self, path: &str) -> Value {
        self.api("GET", path, None).await.ok()
    }

    /// Makes a provider and gives its id.
    pub async fn upstream(&mut self, name: &str, kind: &str, url: &str) -> String {
        let body =
            json!({ "name": name, "kind": kind, "baseUrl": url, "apiKey": "sk-planted-abcd", "jurisdiction": "eu" });
        let id = self.post("upstreams", body).await.made()["id"].as_str().unwrap().to_owned();
        self.upstreams.insert(name.to_owned(), id.clone());
        id
    }

    /// Makes a model; `input` and `output` are micros a token.
    pub async fn model(&mut self, upstream: &str, id: &str, quality: u8, input: u64, output: u64) {
        let prices = json!({ "input": input * 1_000_000, "output": output * 1_000_000 });
        self.model_with(upstream, id, json!({ "quality": quality, "prices": prices })).await;
    }

    /// Makes a model of 200,000 tokens of context and 1,000 of output that differs from the usual one by `more`.
    pub async fn model_with(&mut self, upstream: &str, id: &str, more: Value) {
        let mut body = json!({
            "id": id, "upstreamId": upstream, "contextWindow": 200_000, "maxOutput": 1_000,
            "capabilities": ["tools", "streaming", "vision", "json", "reasoning"],
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("models", body).await.made();
    }

    /// Puts enforce in force, with the class `support.reply` for calls that name none.
    pub async fn enforce(&mut self) {
        self.post("task-classes", json!({ "id": "support.reply" })).await.made();
        self.routing(json!({ "mode": "enforce", "defaultTaskClass": "support.reply" })).await;
    }

    /// Changes the workspace's routing.
    pub async fn routing(&mut self, change: Value) {
        self.api("PUT", "routing", Some(&change)).await.ok();
    }

    /// Makes a budget of the workspace's day and gives its id.
    pub async fn budget(&mut self, amount: u64, ladder: Value) -> String {
        self.budget_over(json!({ "kind": "workspace" }), amount, ladder).await
    }

    /// Makes a budget of a day over `scope` and gives its id.
    pub async fn budget_over(&mut self, scope: Value, amount: u64, ladder: Value) -> String {
        let body = json!({ "scope": scope, "amount": amount, "period": "day", "ladder": ladder });
        self.post("budgets", body).await.made()["id"].as_str().unwrap().to_owned()
    }

    /// Makes a key with these members and gives it with its binding.
    pub async fn key_with(&mut self, members: Value) -> (String, Value) {
        let made = self.post("keys", members).await.made();
        (made["key"].as_str().unwrap().to_owned(), made["binding"].clone())
    }

    /// A call in the chat-completions shape with these headers.
    pub async fn chat_with(&mut self, headers: &[(&str, &str)], body: &Value) -> Got {
        self.send(CHAT, headers, body.to_string().as_bytes()).await
    }

    /// The usual call.
    pub async fn chat(&mut self, model: &str) -> Got {
        self.chat_with(&[], &chat(model)).await
    }

    /// The usual call in the messages shape.
    pub async fn messages(&mut self, model: &str) -> Got {
        let key = self.key.clone();
        self.client.ask("POST", MESSAGES, &[("x-api-key", &key)], chat(model).to_string().as_bytes()).await
    }

    /// `POST` with the key and these headers.
    pub async fn send(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let bearer = bearer(&self.key);
        let headers: Vec<_> = [("authorization", &*bearer)].into_iter().chain(headers.iter().copied()).collect();
        self.client.ask("POST", path, &headers, body).await
    }

    /// A call's record, asked for by its key.
    pub async fn call(&mut self, id: &str) -> Value {
        let key = self.key.clone();
        self.client.get(&format!("/v1/calls/{id}"), &key).await.ok()
    }

    /// The record of the call that an answer is of.
    pub async fn call_of(&mut self, got: &Got) -> Value {
        let id = got.header("x-svc-call-id").unwrap_or_else(|| panic!("no call: {}", got.text())).to_owned();
        self.call(&id).await
    }

    /// Sends one request on a connection of its own and reads until the server closes it.
    pub async fn stream(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> String {
        let mut socket = self.begin(path, headers, body).await;
        let mut heard = Vec::new();
        timeout(PATIENCE, socket.read_to_end(&mut heard)).await.unwrap().unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Sends one request on a connection of its own, which the server closes after it.
    pub async fn begin(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> TcpStream {
        let bearer = bearer(&self.key);
        let all: Vec<_> =
            [("authorization", &*bearer), ("connection", "close")].into_iter().chain(headers.iter().copied()).collect();
        let mut socket = TcpStream::connect(self.site.address).await.unwrap();
        socket.write_all(&request("POST", path, &all, body.to_string().as_bytes())).await.unwrap();
        socket
    }

    /// Freezes an agent.
    pub fn freeze(&self, agent: AgentId) {
        let (workspace, reason) = (self.site.workspace(), Note::parse("test").unwrap());
        self.site.gate.execute(FreezeAgent { workspace, agent, by: By::Program, reason }).unwrap();
    }

    /// A budget as it stands.
    pub async fn budget_at(&mut self, id: &str) -> Value {
        self.read(&format!("budgets/{id}")).await
    }
}

/// A provider of the messages shape that is driven by hand.
#[derive(Debug)]
pub struct Hand(TcpListener);

/// One call to it, whose request was read.
#[derive(Debug)]
pub struct HandCall(TcpStream);

impl Hand {
    /// One that listens. Little of what it sends waits on its side, so that what it has sent was heard.
    #[must_use]
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(4_096).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Self(socket.listen(8).unwrap())
    }

    /// Its address, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    /// The next call.
    pub async fn asked(&self) -> HandCall {
        let (mut socket, _) = timeout(PATIENCE, self.0.accept()).await.unwrap().unwrap();
        assert_ne!(socket.read(&mut [0; 4_096]).await.unwrap(), 0);
        HandCall(socket)
    }
}

impl Default for Hand {
    fn default() -> Self {
        Self::new()
    }
}

impl HandCall {
    /// Begins a stream, tells of so many tokens of input, and comes back once that was heard: more is sent behind it than waits
    /// anywhere, all of which says nothing.
    pub async fn tell_input(&mut self, tokens: u64) {
        let message =
            json!({ "id": "msg_hand", "model": "m", "usage": { "input_tokens": tokens, "output_tokens": 1 } });
        let start = json!({ "type": "message_start", "message": message });
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let mut text = format!("{head}event: message_start\ndata: {start}\n\n");
        text.push_str(&": still there\n\n".repeat(1 << 17));
        timeout(PATIENCE, self.0.write_all(text.as_bytes())).await.unwrap().unwrap();
    }

    /// Waits until whoever called has let go.
    pub async fn let_go(mut self) {
        let gone = async { while self.0.read(&mut [0; 4_096]).await.is_ok_and(|it| it > 0) {} };
        timeout(PATIENCE, gone).await.unwrap();
    }
}

/// A provider that answers every request with this JSON, each on a connection of its own; its address, without a path.
pub async fn answering(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut heard = [0; 65_536];
            // What is asked makes no difference, and is short.
            if socket.read(&mut heard).await.is_ok_and(|it| it > 0) {
                let _ = socket.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).await;
                let _ = socket.read(&mut heard).await;
            }
        }
    });
    url
}

/// A body that both shapes take.
#[must_use]
pub fn chat(model: &str) -> Value {
    json!({ "model": model, "max_tokens": 100, "messages": [{ "role": "user", "content": "Hello there" }] })
}

/// The same as a stream.
#[must_use]
pub fn streamed(model: &str) -> Value {
    let mut body = chat(model);
    body["stream"] = json!(true);
    body
}

/// The value of a header in the text of an answer.
#[must_use]
pub fn header_of(text: &str, name: &str) -> Option<String> {
    let head = text.split("\r\n\r\n").next()?;
    let mut lines = head.lines().filter_map(|it| it.split_once(": "));
    lines.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}
