//! Bodies: too large by word or by deed, too slow, broken off, waiting to be asked for.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body::{Body, Frame};
use svc_http::dispatch::Client;
use svc_http::shell::{Settings, Shell};

use crate::server::{AGENT, Gate, Server};

const MAX: usize = 1_000;

async fn small() -> Server {
    Server::with(|it| it.body_bytes_max = MAX).await
}

fn chunked(sizes: &[usize]) -> String {
    let chunks: String = sizes.iter().map(|it| format!("{it:x}\r\n{}\r\n", "x".repeat(*it))).collect();
    format!(
        "POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}transfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"
    )
}

/// The limit is exact by length and by chunk, and the connection goes on.
#[tokio::test]
async fn the_limit_is_exact_and_the_connection_goes_on() {
    let server = small().await;
    let mut client = server.client().await;
    for _ in 0..3 {
        let got = client.ask("POST", "/v1/actions/authorize", AGENT, &"x".repeat(MAX)).await;
        assert_eq!((got.status, got.json()["bytes"].as_u64()), (200, Some(1_000)));
        let got = client.ask("POST", "/v1/actions/authorize", AGENT, &"x".repeat(MAX + 1)).await;
        assert_eq!((got.status, got.error().as_str(), got.header("connection")), (413, "body_too_large", None));
        client.send(&chunked(&[400, 600])).await;
        assert_eq!(client.answer().await.json()["bytes"].as_u64(), Some(1_000));
        client.send(&chunked(&[400, 601])).await;
        let got = client.answer().await;
        assert_eq!((got.status, got.error().as_str(), got.header("connection")), (413, "body_too_large", None));
    }
}

/// A body in another transfer coding than chunks alone is not carried out, and ends the connection.
#[tokio::test]
async fn other_transfer_codings_are_refused() {
    let server = small().await;
    for coding in ["gzip, chunked", "foo, chunked", "chunked, chunked", "chunked\r\ntransfer-encoding: chunked"] {
        let mut client = server.client().await;
        let sent = chunked(&[4]).replace("transfer-encoding: chunked", &format!("transfer-encoding: {coding}"));
        client.send(&sent).await;
        let got = client.answer().await;
        assert_eq!((got.status, got.error().as_str()), (400, "invalid_request"), "{coding}");
        assert_eq!(got.json()["error"]["errors"][0]["field"], "transfer-encoding", "{coding}");
        assert_eq!(got.header("connection"), Some("close"), "{coding}");
    }
    let mut client = server.client().await;
    client.send(&chunked(&[4]).replace("chunked", "Chunked")).await;
    assert_eq!(client.answer().await.status, 200);
}

/// The usual limit holds too: a megabyte and one byte.
#[tokio::test]
async fn a_megabyte_and_one_byte_is_too_large() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let got = client.ask("POST", "/v1/actions/authorize", AGENT, &"x".repeat(1024 * 1024 + 1)).await;
    assert_eq!((got.status, got.header("connection")), (413, None));
    let got = client.ask("POST", "/v1/actions/authorize", AGENT, &"x".repeat(1024 * 1024)).await;
    assert_eq!(got.status, 200);
}

/// A caller's long requests to models have so much room and no more while they are under way, which leaves some to others; what is done
/// gives it back.
#[tokio::test]
async fn model_bodies_have_so_much_room() {
    const LONG: usize = 32 * 1024 * 1024;
    let server = Server::start().await;
    let asks = |agent: u32, body: &str| {
        let length = body.len();
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ask_agent{agent}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let long = format!("wait{}", "x".repeat(LONG - 4));
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut client = server.client().await;
        client.send(&asks(7, &long)).await;
        server.waiting.arrived().await;
        held.push(client);
    }
    let mut next = server.client().await;
    next.send(&asks(7, "short")).await;
    let got = next.answer().await;
    assert_eq!((got.status, got.error().as_str(), got.header("retry-after")), (503, "not_ready", Some("1")));
    next.send(&asks(8, "short")).await;
    assert_eq!(next.answer().await.status, 200, "another has room");
    server.waiting.open();
    let served = async {
        loop {
            next.send(&asks(7, "short")).await;
            if next.answer().await.status == 200 {
                break;
            }
        }
    };
    tokio::time::timeout(crate::server::PATIENCE, served).await.unwrap();
}

/// What is too large even to be read past is told at once, and ends the connection.
#[tokio::test]
async fn an_enormous_length_is_refused_at_once() {
    let server = small().await;
    for key in [AGENT, ""] {
        let mut client = server.client().await;
        client
            .send(&format!(
                "POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{key}content-length: 99999999999\r\n\r\nx"
            ))
            .await;
        let got = client.answer().await;
        assert_eq!((got.status, got.header("connection")), (if key.is_empty() { 401 } else { 413 }, Some("close")));
        assert!(client.is_closed().await);
    }
}

/// A client that waits to be asked for its body is asked, or told at once that it is not wanted.
#[tokio::test]
async fn a_client_that_waits_is_asked_or_refused() {
    let server = small().await;
    let head = |key: &str, length: usize| {
        format!(
            "POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{key}expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let mut client = server.client().await;
    client.send(&head(AGENT, 2)).await;
    assert_eq!(client.answer().await.status, 100);
    client.send("{}").await;
    assert_eq!(client.answer().await.status, 200);
    for (key, length, status) in [(AGENT, MAX + 1, 413), ("", 2, 401)] {
        let mut client = server.client().await;
        client.send(&head(key, length)).await;
        let got = client.answer().await;
        assert_eq!((got.status, got.header("connection")), (status, Some("close")));
        assert!(client.is_closed().await);
    }
}

/// A body that does not come, or comes in drops, ends the connection after its time, whoever sends it.
#[tokio::test]
async fn a_slow_body_ends_the_connection() {
    let server = Server::with(|it| it.body_time = Duration::from_millis(50)).await;
    for (key, status) in [(AGENT, 400), ("", 401)] {
        for drops in ["", "x"] {
            let mut client = server.client().await;
            client
                .send(&format!(
                    "POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{key}content-length: 10\r\n\r\n{drops}"
                ))
                .await;
            let got = client.answer().await;
            assert_eq!((got.status, got.header("connection")), (status, Some("close")));
            let fix = got.json()["error"]["fix"].as_str().unwrap_or_default().to_owned();
            assert_eq!(fix.contains("the whole of its body"), status == 400, "{fix}");
            assert!(client.is_closed().await);
        }
    }
}

/// A body whose framing is wrong ends its connection, as nothing after it can be told apart; neither that nor a sender
/// that goes away harms anybody else.
#[tokio::test]
async fn a_broken_body_harms_nobody() {
    let server = small().await;
    let mut client = server.client().await;
    client
        .send(&format!(
            "POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}transfer-encoding: chunked\r\n\r\nzz\r\n"
        ))
        .await;
    assert_eq!(client.answer().await.status, 400);
    assert!(client.is_closed().await);
    let mut gone = server.client().await;
    gone.send(&format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}content-length: 10\r\n\r\nxx")).await;
    drop(gone);
    assert_eq!(server.client().await.ask("POST", "/v1/actions/authorize", AGENT, "{}").await.status, 200);
}

/// A body of which something has come, and its end only where `ends`.
struct Come {
    piece: Option<Bytes>,
    ends: bool,
}

impl Body for Come {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.piece.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Of bodies that a signature is to vouch for there is room for so many at once from one address, and no more is kept: whoever sends
/// more is told to come again, others are heard, and so is the same address once one of its bodies is done with.
#[tokio::test]
async fn bodies_of_strangers_have_so_much_room() {
    let settings = Settings {
        base_url: "https://gate.example".to_owned(),
        body_bytes_max: MAX,
        billing_body_bytes_max: MAX,
        ..Settings::default()
    };
    let shell = Shell::new(Gate::default(), settings).unwrap();
    let send = |address: &str, ends: bool| {
        let client = Client::from(address.parse::<IpAddr>().unwrap());
        let request = Request::builder().method(Method::POST).uri("/hooks/billing").header("host", "gate.example");
        shell.answer(client, request.body(Come { piece: Some(Bytes::from_static(b"x")), ends }).unwrap())
    };
    let mut first = Box::pin(send("192.0.2.1", false));
    let mut second = pin!(send("192.0.2.1", false));
    for held in [first.as_mut() as Pin<&mut dyn Future<Output = _>>, second.as_mut()] {
        let mut held = held;
        assert!(poll_fn(|context| Poll::Ready(held.as_mut().poll(context).is_pending())).await, "it waits for more");
    }
    let refused = send("192.0.2.1", true).await;
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key("retry-after")), (503, true));
    assert_eq!(send("192.0.2.2", true).await.status().as_u16(), 200);
    drop(first);
    assert_eq!(send("192.0.2.1", true).await.status().as_u16(), 200);
}
