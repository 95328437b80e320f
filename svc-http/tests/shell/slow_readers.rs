//! Clients that take their time: with a body, between requests, and with what they are sent.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::server::{AGENT, PATIENCE, Server};

/// Short for a person, long for a busy machine.
const SHORT: Duration = Duration::from_millis(250);
/// More than a server reads at once, and less than it takes.
const BODY_BYTES: usize = 50_000;

/// After a body that did not come with its head, or not at once, a connection is between requests like any other: kept until
/// `idle_time`, and until `header_time` once the next head is under way.
#[tokio::test]
async fn a_body_is_no_head_under_way() {
    let server = Server::with(|it| {
        it.header_time = SHORT;
        it.idle_time = SHORT * 6;
    })
    .await;
    let slow = "authorization: Bearer ask_slow7\r\n";
    for (key, body, after) in
        [(slow, "{}".to_owned(), ""), (AGENT, "x".repeat(BODY_BYTES), ""), (slow, "{}".to_owned(), "\r\n")]
    {
        let mut client = server.client().await;
        let length = body.len();
        client
            .send(&format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{key}content-length: {length}\r\n\r\n"))
            .await;
        if key == slow {
            // Its head was read, and nothing else.
            server.looks.shown().await;
        }
        client.send(&body).await;
        if key == slow {
            server.looks.slow.open();
        }
        assert_eq!(client.answer().await.status, 200);
        client.send(after).await;
        assert!(timeout(SHORT * 3, client.hear()).await.is_err(), "{length} bytes: it is kept");
        assert_eq!(client.ask("GET", "/healthz", "", "").await.status, 200);
    }
    let server = Server::with(|it| it.header_time = SHORT).await;
    let mut client = server.client().await;
    assert_eq!(client.ask("POST", "/v1/actions/authorize", AGENT, &"x".repeat(BODY_BYTES)).await.status, 200);
    client.send("POST /v1/actions/authorize HTTP/1.1\r\nhos").await;
    assert!(client.is_closed().await);
}

/// A connection whose client has room for little, and which has asked for the largest page.
async fn reads_little(server: &Server, head: &str, body: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    stream.write_all(format!("GET /openapi.json HTTP/1.1\r\nhost: x\r\n{head}\r\n").as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream
}

/// What comes until the connection ends, which it does after a whole answer where that is asked for.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    // How it ended is seen by what came.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("an end");
    all
}

/// Whether an answer with this head is whole.
fn is_whole(answer: &[u8]) -> bool {
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
    answer.len() == end + length.parse::<usize>().unwrap()
}

/// An answer is written for longer than a head may take, also where its request had a body that came in pieces.
#[tokio::test]
async fn an_answer_outlasts_the_time_of_a_head() {
    let server = Server::with(|it| it.header_time = SHORT).await;
    let head = format!("connection: close\r\ncontent-length: {BODY_BYTES}\r\n");
    let mut stream = reads_little(&server, &head, &[b'x'; BODY_BYTES]).await;
    let mut first = [0; 1];
    timeout(PATIENCE, stream.read_exact(&mut first)).await.unwrap().unwrap();
    // Nothing of it is taken while others say nothing for as long as a head may take.
    for _ in 0..3 {
        assert!(server.client().await.is_closed().await);
    }
    let mut answer = first.to_vec();
    answer.extend(rest(&mut stream).await);
    assert!(is_whole(&answer), "{} bytes", answer.len());
}
