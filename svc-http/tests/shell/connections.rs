//! Connections: slow ones, idle ones, too many, HTTP/2, and the end of the server.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::server::{AGENT, PATIENCE, Server};

/// Short for a person, long for a busy machine.
const SHORT: Duration = Duration::from_millis(250);

/// A head that does not come, comes in part, or stops within the preface of HTTP/2 does not hold its connection.
#[tokio::test]
async fn a_slow_head_ends_the_connection() {
    let server = Server::with(|it| it.header_time = SHORT).await;
    let mut clients = Vec::new();
    for part in [
        "",
        "G",
        "PRI * HTTP/2.0\r\n",
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: ",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = server.client().await;
        client.send(part).await;
        clients.push(client);
    }
    for mut client in clients {
        while client.hear().await {}
    }
    // After an answer the next head has its own time.
    let mut client = server.client().await;
    assert_eq!(client.ask("GET", "/healthz", "", "").await.status, 200);
    client.send("GET /healthz HTTP/1.1\r\nhos").await;
    assert!(client.is_closed().await);
}

/// A connection that is silent between requests is kept longer than one within a head, and not for ever.
#[tokio::test]
async fn an_idle_connection_is_kept_longer_and_not_for_ever() {
    let server = Server::with(|it| {
        it.header_time = SHORT;
        it.idle_time = SHORT * 8;
    })
    .await;
    let mut client = server.client().await;
    assert_eq!(client.ask("GET", "/healthz", "", "").await.status, 200);
    // Longer than the time of a head: it is kept.
    assert!(timeout(SHORT * 2, client.hear()).await.is_err());
    assert_eq!(client.ask("GET", "/healthz", "", "").await.status, 200);
    assert!(client.is_closed().await);
}

/// A request that is worked on for longer than any client's time is let finish.
#[tokio::test]
async fn work_is_not_cut_short() {
    let server = Server::with(|it| {
        it.header_time = SHORT;
        it.idle_time = SHORT;
        it.body_time = SHORT;
    })
    .await;
    let mut client = server.client().await;
    client
        .send(&format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}content-length: 4\r\n\r\nwait"))
        .await;
    server.waiting.arrived().await;
    assert!(timeout(SHORT * 2, client.hear()).await.is_err());
    server.waiting.open();
    assert_eq!(client.answer().await.status, 200);
}

/// A client that has closed its side reads every answer that it has asked for, be it closed with the request or while that is worked
/// on. What would go on for as long as somebody listens ends, also before its answer has begun, and nothing after it on the connection
/// does.
#[tokio::test]
async fn a_closed_side_is_answered() {
    let server = Server::start().await;
    let asks = |body: &str| {
        let length = body.len();
        format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}content-length: {length}\r\n\r\n{body}")
    };
    for told in ["a", "wait", "again"] {
        let mut client = server.client().await;
        client.send(&format!("{}{}", asks("b"), asks(told))).await;
        client.stream.shutdown().await.unwrap();
        assert_eq!(client.answer().await.status, 200, "{told}");
        if told == "wait" {
            server.waiting.arrived().await;
            server.waiting.open();
        }
        assert_eq!(client.answer().await.status, 200, "{told}");
        assert!(client.is_closed().await);
    }
    let mut client = server.client().await;
    client.send(&asks("theirs")).await;
    server.waiting.arrived().await;
    client.stream.shutdown().await.unwrap();
    assert!(client.is_closed().await, "nobody lets it go on");
    let mut client = server.client().await;
    client.send(&asks("quiet")).await;
    assert!(client.hear().await);
    client.stream.shutdown().await.unwrap();
    timeout(PATIENCE, async { while client.hear().await {} }).await.unwrap();
    let mut client = server.client().await;
    client.send(&asks("theirs")).await;
    server.waiting.arrived().await;
    server.waiting.open();
    assert_eq!(client.answer().await.status, 200);
    client.send(&asks("wait")).await;
    server.waiting.arrived().await;
    client.stream.shutdown().await.unwrap();
    server.waiting.open();
    assert_eq!(client.answer().await.status, 200);
}

/// Past the limit a client is told so; once there is place again the next is served.
#[tokio::test]
async fn connections_past_the_limit_are_told_so() {
    let server = Server::with(|it| it.connections_max = 2).await;
    let mut first = server.client().await;
    let mut second = server.client().await;
    for client in [&mut first, &mut second] {
        let body = format!("{AGENT}content-length: 4\r\n\r\nwait");
        client.send(&format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{body}")).await;
        server.waiting.arrived().await;
    }
    let mut third = server.client().await;
    let got = third.ask("GET", "/healthz", "", "").await;
    assert_eq!((got.status, got.error().as_str()), (503, "not_ready"));
    assert_eq!((got.header("retry-after"), got.header("svc-version")), (Some("1"), Some("2026-10-01")));
    assert_eq!(got.json().pointer("/error/requestId").and_then(|it| it.as_str()), got.header("x-request-id"));
    assert!(got.header("traceparent").is_some());
    assert!(third.is_closed().await);
    // Those that are in go on, and a place that is given up is given to the next.
    for client in [&mut first, &mut second] {
        server.waiting.open();
        assert_eq!(client.answer().await.status, 200);
    }
    assert_eq!(first.ask("GET", "/healthz", "", "").await.status, 200);
    drop(second);
    let served = async { while server.client().await.ask("GET", "/healthz", "", "").await.status != 200 {} };
    timeout(PATIENCE, served).await.unwrap();
}

/// Where all places are taken, the connection that has waited longest for its client gives its own to a new one; those at work stay.
#[tokio::test]
async fn whoever_waits_longest_makes_room() {
    let server = Server::with(|it| {
        it.connections_max = 3;
        it.header_time = SHORT;
    })
    .await;
    let mut busy = server.client().await;
    busy.send(&format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}content-length: 4\r\n\r\nwait")).await;
    server.waiting.arrived().await;
    let mut idle = Vec::new();
    for _ in 0..2 {
        let mut client = server.client().await;
        assert_eq!(client.ask("GET", "/healthz", "", "").await.status, 200);
        idle.push(client);
        sleep(SHORT).await;
    }
    let mut new = server.client().await;
    assert_eq!(new.ask("GET", "/healthz", "", "").await.status, 200);
    let mut young = idle.pop().unwrap();
    assert!(idle.pop().unwrap().is_closed().await);
    assert_eq!(young.ask("GET", "/healthz", "", "").await.status, 200);
    server.waiting.open();
    assert_eq!(busy.answer().await.status, 200);
}

/// At the end running requests are answered, idle connections end, and nobody new is let in.
#[tokio::test]
async fn the_end_drains() {
    let mut server = Server::start().await;
    let mut idle = server.client().await;
    assert_eq!(idle.ask("GET", "/healthz", "", "").await.status, 200);
    let mut silent = server.client().await;
    let mut busy = server.client().await;
    busy.send(&format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}content-length: 4\r\n\r\nwait")).await;
    server.waiting.arrived().await;
    server.begin_stop();
    assert!(idle.is_closed().await);
    assert!(silent.is_closed().await);
    assert!(TcpStream::connect(server.address).await.is_err());
    server.waiting.open();
    let got = busy.answer().await;
    assert_eq!((got.status, got.header("connection")), (200, Some("close")));
    assert!(busy.is_closed().await);
    server.stopped().await;
}

/// A request that does not end in the time of the drain is cut, so that the server does end.
#[tokio::test]
async fn the_drain_has_an_end() {
    let mut server = Server::with(|it| it.drain_time = SHORT).await;
    let mut busy = server.client().await;
    busy.send(&format!("POST /v1/actions/authorize HTTP/1.1\r\nhost: x\r\n{AGENT}content-length: 4\r\n\r\nwait")).await;
    server.waiting.arrived().await;
    server.begin_stop();
    assert!(busy.is_closed().await);
    server.stopped().await;
}

/// HTTP/2 by prior knowledge: many requests at once on one connection, refusals among them, with the same headers.
#[tokio::test]
async fn http2_by_prior_knowledge() {
    let server = Server::with(|it| it.body_bytes_max = 1_000).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut answers = Vec::new();
    for (path, key, length, status) in [
        ("/v1/actions/authorize", "Bearer ask_agent7", 1_000, 200),
        ("/v1/actions/authorize", "Bearer ask_agent7", 1_001, 413),
        ("/v1/actions/authorize", "Bearer ask_unknown", 10, 401),
        ("/v1/actions/authorize", "Bearer ask_agent7", 999, 200),
        ("/nowhere", "x", 0, 404),
    ] {
        let request =
            http::Request::post(format!("http://gate.example{path}")).header("authorization", key).body(()).unwrap();
        requests = timeout(PATIENCE, requests.ready()).await.unwrap().unwrap();
        let (answer, mut body) = requests.send_request(request, length == 0).unwrap();
        if length > 0 {
            body.send_data(Bytes::from(vec![b'x'; length]), true).unwrap();
        }
        answers.push((answer, status));
    }
    for (answer, status) in answers {
        let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
        assert_eq!(answer.status().as_u16(), status);
        for name in ["x-request-id", "svc-version", "traceparent"] {
            assert!(answer.headers().contains_key(name), "{name}");
        }
        assert!(!answer.headers().contains_key("connection"));
        let mut body = answer.into_body();
        let mut bytes = Vec::new();
        while let Some(piece) = timeout(PATIENCE, body.data()).await.unwrap() {
            bytes.extend_from_slice(&piece.unwrap());
        }
        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
    }
    drop(requests);
    timeout(PATIENCE, driver).await.unwrap().unwrap().unwrap();
}

/// A request of HTTP/2 that is refused unread is answered once its body has come, so that a client that is still sending does
/// not lose the answer; one whose body does not come is answered after its time.
#[tokio::test]
async fn http2_reads_past_a_body_before_it_refuses() {
    for comes in [true, false] {
        let time = if comes { PATIENCE } else { SHORT };
        let server = Server::with(|it| it.body_time = time).await;
        let stream = TcpStream::connect(server.address).await.unwrap();
        let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
        let driver = tokio::spawn(connection);
        let request = http::Request::post("http://gate.example/v1/actions/authorize").body(()).unwrap();
        let (mut answer, mut body) = requests.send_request(request, false).unwrap();
        if comes {
            // What came later and needs no body is answered meanwhile.
            for _ in 0..3 {
                requests = timeout(PATIENCE, requests.ready()).await.unwrap().unwrap();
                let other = http::Request::get("http://gate.example/healthz").body(()).unwrap();
                let (other, _) = requests.send_request(other, true).unwrap();
                assert_eq!(timeout(PATIENCE, other).await.unwrap().unwrap().status(), 200);
            }
            let waits = std::future::poll_fn(|context| {
                std::task::Poll::Ready(std::pin::Pin::new(&mut answer).poll(context).is_pending())
            });
            assert!(waits.await, "it was answered before its body was read");
            body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        }
        assert_eq!(timeout(PATIENCE, answer).await.unwrap().unwrap().status(), 401);
        drop((requests, body));
        driver.abort();
    }
}

/// On HTTP/2 a client that does not take an answer loses that one alone, whether it is a stream or whole: it is reset after its
/// time, while others on the connection are answered; one that waits for the server, or has nothing to say, stays.
#[tokio::test]
async fn a_stalled_stream_is_reset_alone() {
    let server = Server::with(|it| it.idle_time = SHORT).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    // Windows of their own: none of the others waits for those that are not read.
    let mut builder = h2::client::Builder::new();
    builder.initial_connection_window_size(1 << 20);
    let (mut requests, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut ask = |path: &str, body: &'static str| {
        let method = if body.is_empty() { http::Method::GET } else { http::Method::POST };
        let request = http::Request::builder().method(method).uri(format!("http://gate.example{path}"));
        let request = request.header("authorization", "Bearer ask_agent7").body(()).unwrap();
        let (answer, mut sent) = requests.send_request(request, body.is_empty()).unwrap();
        if !body.is_empty() {
            sent.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
        }
        async move { timeout(PATIENCE, answer).await.unwrap().unwrap() }
    };
    let waits = tokio::spawn(ask("/v1/actions/authorize", "wait"));
    server.waiting.arrived().await;
    let mut quiet = ask("/v1/actions/authorize", "quiet").await.into_body();
    assert_eq!(timeout(PATIENCE, quiet.data()).await.unwrap().unwrap().unwrap().len(), 1_000);
    for (path, body) in [("/v1/actions/authorize", "flood"), ("/openapi.json", "")] {
        // Its data is looked at, and no room is made for more.
        let mut stalled = ask(path, body).await.into_body();
        let mut end = Box::pin(async move {
            loop {
                if let Err(error) = stalled.data().await.expect("it does not end as if it were whole") {
                    return error.reason();
                }
            }
        });
        let busy = async {
            loop {
                // The connection is never idle.
                let other = ask("/healthz", "").await;
                assert_eq!(other.status(), 200);
                let mut other = other.into_body();
                tokio::select! {
                    biased;
                    reason = &mut end => break reason,
                    data = other.data() => assert!(data.unwrap().is_ok()),
                }
            }
        };
        let reason = timeout(PATIENCE, busy).await.expect("it is reset");
        assert_eq!(reason, Some(h2::Reason::CANCEL), "{path}");
    }
    // Whoever takes a large answer has it whole.
    let answer = ask("/openapi.json", "").await;
    let length: usize = answer.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let (mut whole, mut body) = (0, answer.into_body());
    while let Some(piece) = timeout(PATIENCE, body.data()).await.unwrap() {
        let taken = piece.unwrap().len();
        whole += taken;
        body.flow_control().release_capacity(taken).unwrap();
    }
    assert!(whole == length && length > 1 << 20, "{whole} of {length}");
    assert!(timeout(SHORT * 2, quiet.data()).await.is_err(), "what has nothing to say goes on");
    server.waiting.open();
    assert_eq!(timeout(PATIENCE, waits).await.unwrap().unwrap().status(), 200);
    assert!(!driver.is_finished());
    driver.abort();
}
