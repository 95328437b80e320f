//! Clients that take their time: with a body, between requests, and with what they are sent.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{interval, timeout};

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

/// Bytes of an answer that a client takes at a time, and how long it rests then: a quarter of what it may.
const SIP: (usize, Duration) = (64 * 1024, Duration::from_millis(125));

/// A client that reads slowly and does not stop has all of its answer, however long that takes; one that stops is let go.
#[tokio::test]
async fn whoever_reads_on_has_it_all() {
    let server = Server::with(|it| {
        it.idle_time = SHORT * 2;
        it.connections_max = 1;
    })
    .await;
    for reads_on in [true, false] {
        let mut stream = reads_little(&server, "connection: close\r\n", b"").await;
        let mut answer = Vec::new();
        let mut sips = interval(SIP.1);
        loop {
            let mut sip = vec![0; SIP.0];
            let length = timeout(PATIENCE, stream.read(&mut sip)).await.unwrap().unwrap_or(0);
            answer.extend_from_slice(&sip[..length]);
            if length == 0 || !reads_on {
                break;
            }
            if answer.len() % SIP.0 < length {
                sips.tick().await;
            }
        }
        // Its place is free once it is let go, and not while it reads.
        let next = async { while server.client().await.ask("GET", "/healthz", "", "").await.status != 200 {} };
        timeout(PATIENCE, next).await.unwrap();
        answer.extend(rest(&mut stream).await);
        // Elsewhere the system may have had all of it long before.
        if reads_on || cfg!(target_os = "linux") {
            assert_eq!(is_whole(&answer), reads_on, "{} bytes", answer.len());
        }
    }
}

/// The same on HTTP/2, where the connection stays: a page of which a little is taken at a time is whole.
#[tokio::test]
async fn whoever_reads_on_has_it_all_on_http2() {
    let server = Server::with(|it| it.idle_time = SHORT * 2).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = http::Request::get("http://gate.example/openapi.json").body(()).unwrap();
    let (answer, _) = requests.send_request(request, true).unwrap();
    let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
    let length: usize = answer.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let (mut whole, mut body) = (0, answer.into_body());
    let mut sips = interval(SIP.1);
    while let Some(piece) = timeout(PATIENCE, body.data()).await.unwrap() {
        let taken = piece.unwrap_or_else(|error| panic!("after {whole} of {length} bytes: {error}")).len();
        body.flow_control().release_capacity(taken).unwrap();
        whole += taken;
        if whole % SIP.0 < taken {
            sips.tick().await;
        }
    }
    assert_eq!(whole, length);
    // Nobody says that the connection ends.
    assert!(timeout(PATIENCE, requests.ready()).await.unwrap().is_ok());
    driver.abort();
}

/// What is said of a connection of HTTP/2 itself does not keep it: one that has nothing but pings and room to give is let go, although
/// it is answered for as long.
#[tokio::test]
async fn pings_keep_no_connection() {
    let server = Server::with(|it| it.idle_time = SHORT).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // Settings, and one request: `GET /` of `http` for `x`.
    let mut begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    begin.extend(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x01\x01x");
    stream.write_all(&begin).await.unwrap();
    let (mut heard, mut said) = stream.into_split();
    let mut all = Vec::new();
    let hears = async {
        let mut more = [0; 4_096];
        while let Ok(length @ 1..) = heard.read(&mut more).await {
            all.extend_from_slice(&more[..length]);
        }
    };
    let says = async {
        let mut pings = interval(SHORT / 10);
        loop {
            pings.tick().await;
            let frames = *b"\0\0\x08\x06\0\0\0\0\0ping-me!\0\0\x04\x08\0\0\0\0\0\0\0\0\x01";
            if said.write_all(&frames.repeat(400)).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    timeout(PATIENCE, async {
        tokio::select! { () = hears => {}, () = says => {} }
    })
    .await
    .expect("it is let go");
    let pings = all.windows(17).filter(|it| it.starts_with(b"\0\0\x08\x06\x01") && it.ends_with(b"ping-me!")).count();
    assert!(pings > 800, "{pings} pings were answered");
}
