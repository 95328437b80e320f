//! An HTTP/1.1 client over a bare socket: it sends whatever bytes a test asks for, keeps its connection, and looks at every
//! answer for what no answer may lack.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::interface;

/// The longest that one answer may take, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that are read at once: what is written at once is mostly heard at once.
const PIECE: usize = 4_096;

/// Reads on until this was heard; all that was.
///
/// # Panics
/// Where it ends before, or nothing more comes.
pub async fn until(socket: &mut TcpStream, what: &str) -> String {
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains(what) {
        heard.reserve(PIECE);
        let read = timeout(PATIENCE, socket.read_buf(&mut heard)).await.unwrap().unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&heard));
    }
    String::from_utf8_lossy(&heard).into_owned()
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    heard: Vec<u8>,
}

/// One answer.
#[derive(Clone)]
pub struct Got {
    /// Its status.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for Got {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { status, headers, .. } = self;
        write!(out, "{status} {headers:?} {}", self.text().chars().take(2_000).collect::<String>())
    }
}

impl Got {
    /// The value of a header that is there once.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(it, _)| it == name).map(|(_, value)| value.as_str());
        let first = values.next();
        assert_eq!(values.next(), None, "{name} came twice: {self:?}");
        first
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// That this is a page whose policy lets its own script and style run and nothing else, here or in a frame.
    ///
    /// # Panics
    /// Where it is not.
    pub fn is_closed_page(&self) {
        assert_eq!((self.status, self.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let (text, policy) = (self.text(), self.header("content-security-policy").expect("a policy"));
        for tag in ["script", "style"] {
            let (_, rest) = text.split_once(&format!("<{tag}>")).expect("one is there");
            let (own, rest) = rest.split_once(&format!("</{tag}>")).expect("it ends");
            assert!(!rest.contains(&format!("<{tag}")), "one {tag}");
            let hash = STANDARD.encode(Sha256::digest(own.as_bytes()));
            assert!(policy.contains(&format!("{tag}-src 'sha256-{hash}';")), "{policy}");
        }
        assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!text.contains("onclick") && !text.contains("style="), "nothing that the policy would stop");
        assert_eq!(self.header("cache-control"), Some("no-store"));
    }

    /// `error.type`, or nothing where the answer is no error.
    #[must_use]
    pub fn kind(&self) -> String {
        self.json()["error"]["type"].as_str().unwrap_or_default().to_owned()
    }

    /// The fields that `error.errors` names, sorted; `null` stands for the whole body.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let json = self.json();
        let errors = json["error"]["errors"].as_array().cloned().unwrap_or_default();
        let mut fields: Vec<String> =
            errors.iter().map(|it| it["field"].as_str().unwrap_or("null").to_owned()).collect();
        fields.sort();
        fields
    }

    /// Status, type and fields at once.
    #[must_use]
    pub fn refusal(&self) -> (u16, String, Vec<String>) {
        (self.status, self.kind(), self.fields())
    }

    /// The answer's JSON, which has to be a 201.
    pub fn made(&self) -> Value {
        assert_eq!(self.status, 201, "{}", self.text());
        self.json()
    }

    /// The answer's JSON, which has to be a success.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }
}

impl Client {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).await.expect("the server accepts")
    }

    /// Connects, where somebody listens.
    ///
    /// # Errors
    /// Nobody does.
    pub async fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, heard: Vec::new() })
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server reads");
    }

    /// Sends bytes as they are, as far as the server reads them.
    pub async fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Reads one answer as it is.
    ///
    /// # Errors
    /// The connection ended before the answer was whole.
    pub async fn hear(&mut self, head_only: bool) -> std::io::Result<Got> {
        let end = loop {
            match find(&self.heard, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.read().await?,
            }
        };
        let head = String::from_utf8_lossy(&self.heard[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|it| it.split(' ').nth(1)).and_then(|it| it.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value.as_str());
        let length = if head_only { 0 } else { length.parse().unwrap_or(0) };
        while self.heard.len() < end + length {
            self.read().await?;
        }
        let body = self.heard[end..end + length].to_vec();
        self.heard.drain(..end + length);
        let got = Got { status: status.unwrap_or_else(|| panic!("no status line: {head}")), headers, body };
        // A stream of events is read by whoever waits for them; a JSON text that comes in chunks is read whole.
        let chunked = got.header("transfer-encoding") == Some("chunked") && !head_only;
        if chunked && got.header("content-type") == Some("application/json") { self.chunks(got).await } else { Ok(got) }
    }

    async fn chunks(&mut self, mut got: Got) -> std::io::Result<Got> {
        loop {
            let line = loop {
                match find(&self.heard, b"\r\n") {
                    Some(end) => break end,
                    None => self.read().await?,
                }
            };
            let size = String::from_utf8_lossy(&self.heard[..line]).into_owned();
            let size = usize::from_str_radix(&size, 16).expect("the length of a chunk");
            while self.heard.len() < line + 2 + size + 2 {
                self.read().await?;
            }
            got.body.extend_from_slice(&self.heard[line + 2..line + 2 + size]);
            self.heard.drain(..line + 2 + size + 2);
            if size == 0 {
                return Ok(got);
            }
        }
    }

    async fn read(&mut self) -> std::io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        let read = timeout(PATIENCE, self.stream.read(&mut chunk)).await.expect("the server answers in time")?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.heard.extend_from_slice(&chunk[..read]);
        Ok(())
    }

    /// Sends a request as it is and reads the answer, wherever the connection holds.
    ///
    /// # Errors
    /// The connection ended before the answer was whole.
    pub async fn try_ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Got> {
        self.stream.write_all(&request(method, path, headers, body)).await?;
        self.hear(method == "HEAD").await
    }

    /// Sends a request and gives the answer, which has everything that an answer must have.
    pub async fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let got = self.try_ask(method, path, headers, body).await.expect("an answer");
        interface::check(method, path, &got);
        interface::check_taken(method, path, body, &got);
        got
    }

    /// `GET` with a key.
    pub async fn get(&mut self, path: &str, key: &str) -> Got {
        self.ask("GET", path, &[("authorization", &bearer(key))], b"").await
    }

    /// `POST` of JSON with a key.
    pub async fn post(&mut self, path: &str, key: &str, body: &Value) -> Got {
        self.ask("POST", path, &[("authorization", &bearer(key))], body.to_string().as_bytes()).await
    }

    /// Asks the gate.
    pub async fn authorize(&mut self, key: &str, body: &Value) -> Got {
        self.post("/v1/actions/authorize", key, body).await
    }

    /// Asks the gate with a key of idempotency in the header.
    pub async fn authorize_once(&mut self, key: &str, once: &str, body: &Value) -> Got {
        let headers = [("authorization", &*bearer(key)), ("idempotency-key", once)];
        self.ask("POST", "/v1/actions/authorize", &headers, body.to_string().as_bytes()).await
    }

    /// Settles an action.
    pub async fn settle(&mut self, key: &str, action: &str, body: &Value) -> Got {
        self.post(&format!("/v1/actions/{action}/settle"), key, body).await
    }

    /// Reads an action.
    pub async fn read_action(&mut self, key: &str, action: &str) -> Got {
        self.get(&format!("/v1/actions/{action}"), key).await
    }

    /// Shows a receipt.
    pub async fn verify(&mut self, body: &Value) -> Got {
        self.ask("POST", "/v1/verify", &[], body.to_string().as_bytes()).await
    }

    /// Shows a receipt under a key of idempotency.
    pub async fn verify_once(&mut self, once: &str, body: &Value) -> Got {
        self.ask("POST", "/v1/verify", &[("idempotency-key", once)], body.to_string().as_bytes()).await
    }
}

/// The header's value for a key.
#[must_use]
pub fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

/// A request's bytes, with its length unless the headers say how the body comes.
#[must_use]
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        head.push_str("host: test\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !headers.iter().any(|(name, _)| *name == "transfer-encoding") {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// A body in chunks of these sizes, over and over.
#[must_use]
pub fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 64);
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|it| it == part)
}
