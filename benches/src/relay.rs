//! What a gateway stands between in a comparison: a provider that answers at once, and a relay that does nothing but relay.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Fault;

/// Frames of a stream, the two at its ends among them.
pub const FRAMES: usize = 24;

/// A provider of chat completions: it finds where a request ends and answers it, whole or as a stream whose frames are written
/// one by one.
///
/// # Errors
/// The port cannot be listened on.
pub async fn provider(port: u16) -> Result<(), Fault> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // Whoever goes away has what they wanted.
            let _ = answer_all(stream).await;
        });
    }
}

async fn answer_all(mut stream: TcpStream) -> Result<(), Fault> {
    let (whole, frames) = (whole(), frames());
    let mut buffer = Vec::with_capacity(16_384);
    loop {
        let end = loop {
            if let Some(end) = request_end(&buffer) {
                break end;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let request: Vec<u8> = buffer.drain(..end).collect();
        if !contains(&request, b"\"stream\":true") && !contains(&request, b"\"stream\": true") {
            stream.write_all(whole.as_bytes()).await?;
            continue;
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            .await?;
        for frame in &frames {
            stream.write_all(frame.as_bytes()).await?;
            tokio::task::yield_now().await;
        }
        stream.write_all(b"0\r\n\r\n").await?;
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|it| it == part)
}

/// Where the first request in `bytes` ends, once it is whole; its body has a length or comes in chunks.
fn request_end(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(bytes.get(..head)?).to_ascii_lowercase();
    if text.contains("transfer-encoding: chunked") {
        let end = bytes.get(head..)?.windows(5).position(|it| it == b"0\r\n\r\n")?;
        return Some(head + end + 5);
    }
    let length =
        text.split("\r\n").find_map(|it| it.strip_prefix("content-length: ")).map_or(Some(0), |it| it.parse().ok())?;
    (bytes.len() >= head + length).then_some(head + length)
}

fn whole() -> String {
    let words = "word ".repeat(40);
    let body = format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1760000000,\"model\":\"large-1\",\"choices\":[{{\
         \"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{words}\"}},\"finish_reason\":\"stop\"}}],\
         \"usage\":{{\"prompt_tokens\":220,\"completion_tokens\":40,\"total_tokens\":260}}}}"
    );
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn frames() -> Vec<String> {
    let frame = |rest: &str| {
        let text = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"large-1\",{rest}}}\n\n"
        );
        format!("{:x}\r\n{text}\r\n", text.len())
    };
    let delta = |delta: &str, end: &str| {
        frame(&format!("\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{end}}}]"))
    };
    let mut frames = vec![delta("{\"role\":\"assistant\",\"content\":\"\"}", "null")];
    frames.extend((0..FRAMES - 4).map(|at| delta(&format!("{{\"content\":\"word {at} \"}}"), "null")));
    frames.push(delta("{}", "\"stop\""));
    let usage = "\"choices\":[],\"usage\":{\"prompt_tokens\":220,\"completion_tokens\":40,\"total_tokens\":260}";
    frames.push(frame(usage));
    frames.push("e\r\ndata: [DONE]\n\n\r\n".to_owned());
    frames
}

type Relayed = BoxBody<Bytes, hyper::Error>;

/// hyper before and behind: each request goes on as it is, on a kept connection, and so does its answer.
///
/// # Errors
/// The port cannot be listened on.
pub async fn relay(port: u16, upstream: u16) -> Result<(), Fault> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<HttpConnector, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let client = client.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| pass_on(&client, request, upstream));
            let served =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            drop(served);
        });
    }
}

async fn pass_on(
    client: &Client<HttpConnector, Incoming>,
    mut request: Request<Incoming>,
    upstream: u16,
) -> Result<Response<Relayed>, Infallible> {
    let path = request.uri().path();
    let there = format!("http://127.0.0.1:{upstream}{path}").parse::<Uri>();
    let answered = match there {
        Ok(there) => {
            *request.uri_mut() = there;
            client.request(request).await.ok()
        }
        Err(_) => None,
    };
    Ok(answered.map_or_else(
        || {
            let mut failed = Response::new(Empty::new().map_err(|never| match never {}).boxed());
            *failed.status_mut() = StatusCode::BAD_GATEWAY;
            failed
        },
        |answer| answer.map(|body| body.boxed()),
    ))
}
