//! One call: its headers, its connection, its times and what can be wrong with its answer.

use http::{HeaderName, HeaderValue};
use svc_core::value::Id as _;
use svc_core::value::id::{UpstreamId, WorkspaceId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net;

use super::*;

/// Everything has one address.
#[derive(Debug)]
struct Always(IpAddr);

impl Resolve for Always {
    fn resolve<'a>(&'a self, _host: &'a str, _: Asker) -> Resolving<'a> {
        let ip = self.0;
        Box::pin(async move { Ok(vec![ip]) })
    }
}

/// A provider that does as the test says.
async fn by_hand() -> (net::TcpListener, String) {
    let listener = net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, url)
}

async fn hear(stream: &mut net::TcpStream) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(b"}") {
        assert!(stream.read_buf(&mut heard).await.unwrap() > 0);
    }
    String::from_utf8(heard).unwrap()
}

/// Each API gets the key where it has it, the body as it is, and of the client's headers those that are passed on; calls
/// after each other go over one connection.
#[tokio::test]
async fn a_call_is_what_the_api_takes() {
    let (mock, upstreams) = (mock(), usual());
    let target = chat_target(&upstreams, &mock);
    let asked = call("m--words-3", false);
    let answer = whole(&upstreams, &target, &asked).await;
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["usage"]["completion_tokens"], json!(3));
    let heard = mock.heard().remove(0);
    assert_eq!((heard.path.as_str(), &heard.body), ("/v1/chat/completions", &asked.body));
    let bearer = format!("Bearer {KEY}");
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("accept-encoding", "identity"),
        ("content-type", "application/json"),
        ("x-own", "1"),
        ("host", mock.chat_url().split('/').nth(2).unwrap()),
    ] {
        assert_eq!(heard.header(name), Some(value), "{name}");
    }
    assert!(heard.header("x-api-key").is_none() && heard.header("anthropic-version").is_none());
    let target = target_at(&upstreams, &mock.messages_url(), Dialect::Messages, upstreams.times());
    whole(&upstreams, &target, &call("m", false)).await;
    let passed = [
        (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2024-01-01")),
        (HeaderName::from_static("anthropic-beta"), HeaderValue::from_static("one,two")),
        (http::header::HOST, HeaderValue::from_static("elsewhere")),
    ];
    whole(&upstreams, &target, &Call { query: Some("beta=true"), headers: &passed, ..call("m", false) }).await;
    let heard = mock.heard();
    assert_eq!((heard[1].path.as_str(), heard[1].header("anthropic-version")), ("/v1/messages", Some("2023-06-01")));
    assert_eq!((heard[1].header("x-api-key"), heard[1].header("authorization")), (Some(KEY), None));
    assert_eq!(heard[2].path, "/v1/messages?beta=true");
    assert_eq!(heard[2].header("anthropic-version"), Some("2024-01-01"));
    assert_eq!(heard[2].header("anthropic-beta"), Some("one,two"));
    assert_ne!(heard[2].header("host"), Some("elsewhere"));
    let models = Call { what: What::Models, body: Bytes::new(), ..call("", false) };
    assert!(whole(&upstreams, &target, &models).await.body.starts_with(b"{"));
    assert_eq!(mock.counts().connections, 1, "four calls, one connection");
    let long = "long ".repeat(200_000);
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": long }] }).to_string();
    let target = chat_target(&upstreams, &mock);
    whole(&upstreams, &target, &Call { body: body.clone().into(), ..call("", false) }).await;
    assert_eq!(mock.heard().last().unwrap().body, body.as_bytes());
}

/// Every fault is told apart, with its status, and whether anything was sent.
#[tokio::test]
async fn faults_are_told_apart() {
    let (mock, upstreams) = (mock(), usual());
    let target = chat_target(&upstreams, &mock);
    for (model, stream, reason, status) in [
        ("m--status-500", false, Reason::Status, Some(500)),
        ("m--status-429--retry-after-7", true, Reason::Status, Some(429)),
        ("m--status-302", false, Reason::Redirect, Some(302)),
        ("m--body-html", false, Reason::ContentType, Some(200)),
        ("m--body-html", true, Reason::ContentType, Some(200)),
        ("m--type-none", false, Reason::ContentType, Some(200)),
        ("m--type-json", true, Reason::ContentType, Some(200)),
        ("m--body-empty", false, Reason::Empty, Some(200)),
        ("m--body-empty", true, Reason::Empty, Some(200)),
        ("m--body-other", false, Reason::Unreadable, Some(200)),
        ("m--gzip", false, Reason::Packed, Some(200)),
        ("m--gzip", true, Reason::Packed, Some(200)),
        ("m--drop", false, Reason::Closed, None),
        ("m--cut-0", false, Reason::Closed, Some(200)),
        ("m--cut-0", true, Reason::Closed, Some(200)),
        ("m--short-0", true, Reason::Empty, Some(200)),
    ] {
        // A fresh pool: what is under test is the answer, not the connection before.
        let failed = usual().send(&target, &call(model, stream)).await.unwrap_err();
        assert_eq!((failed.reason, failed.status, failed.was_sent), (reason, status, true), "{model} {stream}");
        assert_eq!(failed.retry_after_s, (status == Some(429)).then_some(7), "{model}");
    }
    assert_eq!(mock.until(|it| it.open == 0).await.running, 0);
    let failed = upstreams.send(&target, &call("m--status-400", false)).await.unwrap_err();
    assert!(
        failed.is_the_clients() && failed.said.message.as_deref() == Some("this status was asked for"),
        "{failed:?}"
    );
}

/// Time is kept: for the first bytes of a stream, and for a whole call. The status of an answer that had begun is told.
#[tokio::test]
async fn time_is_kept() {
    let (mock, upstreams) = (mock(), usual());
    let short = Duration::from_millis(60);
    for (model, stream, times, reason, status) in [
        ("m--hang", false, Times { total: short, ..upstreams.times() }, Reason::Total, None),
        ("m--stall-0", false, Times { idle: short, ..upstreams.times() }, Reason::Idle, Some(200)),
        ("m--hang", true, Times { first_token: short, ..upstreams.times() }, Reason::FirstToken, None),
        ("m--stall-0", true, Times { first_token: short, ..upstreams.times() }, Reason::FirstToken, Some(200)),
        ("m--stall-0", false, Times { total: short, ..upstreams.times() }, Reason::Total, Some(200)),
    ] {
        let target = target_at(&upstreams, &mock.chat_url(), Dialect::Chat, times);
        let failed = upstreams.send(&target, &call(model, stream)).await.unwrap_err();
        assert_eq!((failed.reason, failed.status, failed.was_sent), (reason, status, true), "{model}");
        assert!(failed.reason.is_timeout() && failed.ms >= 60, "{failed:?}");
    }
    assert_eq!(mock.until(|it| it.open == 0).await.hung_up, 5);
}

/// A provider that sends the head of a whole answer at once, and the answer when it is made, is waited for as long as the whole
/// call may take: there are no tokens yet between which time could go by.
#[tokio::test]
async fn an_early_head_begins_no_idle_time() {
    let upstreams = usual();
    let (listener, url) = by_hand().await;
    let times = Times { idle: Duration::from_millis(20), ..upstreams.times() };
    let target = target_at(&upstreams, &url, Dialect::Chat, times);
    let provider = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        hear(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // Whoever gives up hangs up.
        let gone = timeout(Duration::from_millis(200), stream.read_u8()).await;
        assert!(gone.is_err(), "{gone:?}");
        stream.write_all(br#"{"a":"made"}"#).await.unwrap();
    };
    let asked = call("m", false);
    let (answer, ()) = tokio::join!(whole(&upstreams, &target, &asked), provider);
    assert_eq!(&*answer.body, br#"{"a":"made"}"#);
}

/// No byte goes where none may go: private addresses that nobody named, also behind a name, and this server itself.
#[tokio::test]
async fn only_judged_addresses_are_called() {
    let mock = mock();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let inside = upstreams(None, Always([10, 0, 0, 1].into()));
    let own = upstreams(Some(mock.address()), SystemResolver);
    for (upstreams, url, reason) in [
        (&inside, "https://api.example.com/v1".to_owned(), Reason::Refused),
        (&own, mock.chat_url(), Reason::Refused),
        (&usual(), format!("http://{closed}/v1"), Reason::Connect),
    ] {
        let target = target_at(upstreams, &url, Dialect::Chat, upstreams.times());
        let failed = upstreams.send(&target, &call("m", false)).await.unwrap_err();
        assert_eq!((failed.reason, failed.was_sent), (reason, false), "{url}");
    }
    let strict = Upstreams::new(
        &Allowed::default(),
        Times::default(),
        "gate.example.com",
        None,
        Arc::new(SystemResolver),
        Trust::default(),
    );
    assert!(strict.judge(&mock.chat_url()).is_err() && strict.judge("https://127.0.0.1/v1").is_err());
    assert!(strict.judge("https://api.example.com/v1").is_ok());
    assert_eq!(mock.counts().connections, 0);
}

/// A header or a key that would write further lines is refused, and so are headers that are svc's own.
#[tokio::test]
async fn no_header_writes_another() {
    let upstreams = usual();
    for (name, value, key) in [
        ("x-own", "1\r\nx-other: 2", "key"),
        ("content-length", "5", "key"),
        ("transfer-encoding", "chunked", "key"),
        ("bad name", "1", "key"),
        ("x-own", "1", "key\r\nx: 1"),
    ] {
        let key = Secret::new(key.to_owned());
        let url = "https://api.example.com/v1";
        let made = Target::new(&upstreams, url, Dialect::Chat, key, &[(name, value)], upstreams.times());
        assert!(made.is_err(), "{name}: {value}");
    }
}

/// A key that a provider quotes in its answer is passed on to nobody.
#[tokio::test]
async fn a_quoted_key_goes_no_further() {
    let (mock, upstreams) = (mock(), usual());
    let key = "invalid-hunter2-hunter2";
    let url = mock.chat_url();
    let target =
        Target::new(&upstreams, &url, Dialect::Chat, Secret::new(key.to_owned()), &[], upstreams.times()).unwrap();
    let failed = upstreams.send(&target, &call("m", false)).await.unwrap_err();
    assert_eq!((failed.status, failed.said.message.as_deref()), (Some(401), Some("Incorrect API key provided: …")));
    assert!(!format!("{failed:?} {failed} {target:?}").contains("hunter2"));
}

/// The same of a key that is configured as a header of the upstream's own, whatever that header is called and however the
/// provider quotes it; what is no secret is told as it is.
#[tokio::test]
async fn a_quoted_header_goes_no_further() {
    let said = "no such key: Bearer hunter2-hunter2, hunter2-hunter2, or c00k; team-a at 2023-06-01, planted9";
    for (name, value, told) in [
        ("authorization", "Bearer hunter2-hunter2", "no such key: …, …, or c00k; team-a at 2023-06-01, planted9"),
        ("Api-Key", "hunter2-hunter2", "no such key: Bearer …, …, or c00k; team-a at 2023-06-01, planted9"),
        (
            "cookie",
            "sid=c00k",
            "no such key: Bearer hunter2-hunter2, hunter2-hunter2, or …; team-a at 2023-06-01, planted9",
        ),
        (
            "cookie",
            "c00k; region=eu",
            "no such key: Bearer hunter2-hunter2, hunter2-hunter2, or …; team-a at 2023-06-01, planted9",
        ),
        ("x-own", "planted9", "no such key: Bearer hunter2-hunter2, hunter2-hunter2, or c00k; team-a at 2023-06-01, …"),
        ("x-team", "team-a", said),
        ("anthropic-version", "2023-06-01", said),
    ] {
        let (listener, url) = by_hand().await;
        let provider = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            hear(&mut socket).await;
            let body = json!({ "error": { "message": said } }).to_string();
            let head =
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
            socket.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        });
        let upstreams = usual();
        let key = Secret::new(String::new());
        let target = Target::new(&upstreams, &url, Dialect::Chat, key, &[(name, value)], upstreams.times()).unwrap();
        let failed = upstreams.send(&target, &call("m", false)).await.unwrap_err();
        assert_eq!((failed.status, failed.said.message.as_deref()), (Some(401), Some(told)), "{name}");
        assert!(told == said || !format!("{failed:?} {target:?}").contains(value), "{name}");
        provider.await.unwrap();
    }
}

/// An error in the place of a stream, with status 200 and as a whole answer, is told and may have used nothing, as where no stream
/// was asked for; what is no error, or does not come, is not.
#[tokio::test]
async fn an_error_in_the_place_of_a_stream_is_told() {
    for (body, reason, told) in [
        (r#"{"error":{"message":"out of credit"}}"#.to_owned(), Reason::Told, Some("out of credit")),
        (
            r#"{"error":{"message":"out"},"usage":{"prompt_tokens":1,"completion_tokens":2}}"#.to_owned(),
            Reason::Told,
            Some("out"),
        ),
        (r#"{"choices":[{"message":{"content":"a"}}]}"#.to_owned(), Reason::ContentType, None),
        (format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(HEAD_BYTES_MAX)), Reason::ContentType, None),
    ] {
        let (listener, url) = by_hand().await;
        let sent = body.clone();
        let provider = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            hear(&mut socket).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
            socket.write_all(format!("{head}{}\r\n\r\n{sent}", sent.len()).as_bytes()).await.unwrap();
        });
        let upstreams = usual();
        let target = target_at(&upstreams, &url, Dialect::Chat, upstreams.times());
        let failed = upstreams.send(&target, &call("m", true)).await.unwrap_err();
        let body = body.get(..80).unwrap_or(&body);
        assert_eq!((failed.reason, failed.status, failed.said.message.as_deref()), (reason, Some(200), told), "{body}");
        let used = reason != Reason::Told || body.contains("usage");
        assert_eq!(failed.may_have_used(), used, "{body}");
        provider.await.unwrap();
    }
}

/// An answer that holds an empty object.
const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// A connection on which one request was answered and another has been heard.
async fn asked_again(listener: &net::TcpListener) -> net::TcpStream {
    let (mut kept, _) = listener.accept().await.unwrap();
    hear(&mut kept).await;
    kept.write_all(EMPTY).await.unwrap();
    hear(&mut kept).await;
    kept
}

/// A connection that the provider closed while it waited is not used; what was sent on one that it closes on a request is sent
/// once more on a new one.
#[tokio::test]
async fn a_kept_connection_may_be_gone() {
    let (listener, url) = by_hand().await;
    let upstreams = usual();
    let target = target_at(&upstreams, &url, Dialect::Chat, upstreams.times());
    let provider = tokio::spawn(async move {
        let first = asked_again(&listener).await;
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        hear(&mut second).await;
        second.write_all(&[EMPTY, b"and more"].concat()).await.unwrap();
        let (mut fresh, _) = listener.accept().await.unwrap();
        hear(&mut fresh).await;
        drop(fresh);
        let (mut third, _) = listener.accept().await.unwrap();
        hear(&mut third).await;
        third
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 67108865\r\n\r\n{")
            .await
            .unwrap();
        listener
    });
    whole(&upstreams, &target, &call("m", false)).await;
    assert_eq!(upstreams.0.pool.waiting(), 1);
    whole(&upstreams, &target, &call("m", false)).await;
    let closed = upstreams.send(&target, &call("m", false)).await.unwrap_err();
    assert_eq!((closed.reason, closed.was_sent), (Reason::Closed, true), "a new connection is no reason to ask again");
    let long = upstreams.send(&target, &call("m", false)).await.unwrap_err();
    assert_eq!(long.reason, Reason::TooLarge, "and its length is all that was waited for");
    provider.await.unwrap();
}

/// A request that is sent once more has no more time for it: what passed before is not given again, and the call says how long
/// it took in all.
#[tokio::test]
async fn what_is_sent_once_more_has_the_same_time() {
    for stream in [false, true] {
        let (listener, url) = by_hand().await;
        let upstreams = usual();
        let times = Times { first_token: secs(40), ..upstreams.times() };
        let target = target_at(&upstreams, &url, Dialect::Chat, times);
        let provider = tokio::spawn(async move {
            let first = asked_again(&listener).await;
            tokio::time::pause();
            tokio::time::advance(Duration::from_millis(900)).await;
            drop(first);
            let (mut second, _) = listener.accept().await.unwrap();
            hear(&mut second).await;
            // Nothing comes any more until the other side gives up.
            assert_eq!(second.read_u8().await.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
        });
        whole(&upstreams, &target, &call("m", false)).await;
        let late = upstreams.send(&target, &call("m", stream)).await.unwrap_err();
        assert!(late.reason.is_timeout() && late.was_sent, "{late:?}");
        assert!((40_000..40_500).contains(&late.ms), "{late:?}");
        provider.await.unwrap();
        tokio::time::resume();
    }
}

/// What was sent on a kept connection that is closed only after a while may have been worked on, and is not sent again. Nor is
/// what was sent on one that was closed at once taken for unsent where the provider cannot be reached any more.
#[tokio::test]
async fn what_may_have_been_worked_on_is_sent_once() {
    for worked in [true, false] {
        let (listener, url) = by_hand().await;
        let upstreams = usual();
        let target = target_at(&upstreams, &url, Dialect::Chat, upstreams.times());
        let provider = tokio::spawn(async move {
            let first = asked_again(&listener).await;
            let left = if worked {
                tokio::time::pause();
                tokio::time::advance(secs(30)).await;
                Some(listener)
            } else {
                drop(listener);
                None
            };
            drop(first);
            left
        });
        whole(&upstreams, &target, &call("m", false)).await;
        let failed = upstreams.send(&target, &call("m", false)).await.unwrap_err();
        let reason = if worked { Reason::Closed } else { Reason::Connect };
        assert_eq!((failed.reason, failed.was_sent), (reason, true), "{failed:?}");
        if let Some(listener) = provider.await.unwrap() {
            assert!(timeout(secs(1), listener.accept()).await.is_err(), "it was sent again");
            tokio::time::resume();
        }
    }
}

/// Connections that nobody uses are closed after a while.
#[tokio::test]
async fn idle_connections_are_closed() {
    let (mock, upstreams) = (mock(), usual());
    whole(&upstreams, &chat_target(&upstreams, &mock), &call("m", false)).await;
    assert_eq!((mock.counts().open, upstreams.0.pool.waiting()), (1, 1));
    tokio::time::pause();
    assert_eq!(mock.until(|it| it.open == 0).await.connections, 1);
    assert_eq!(upstreams.0.pool.waiting(), 0);
}

/// What has to run to its end does so when nobody waits for it any more, and is waited for when the server stops.
#[tokio::test]
async fn a_whole_answer_is_read_to_its_end() {
    let (mock, upstreams) = (mock(), usual());
    let (told, mut hears) = watch::channel(None);
    let caller = upstreams.clone();
    let target = chat_target(&upstreams, &mock);
    let mut running = Box::pin(upstreams.outlive(async move {
        let answer = whole(&caller, &target, &call("m--head-50", false)).await;
        told.send_replace(Some(answer.status));
    }));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(running.as_mut().poll(&mut context).is_pending());
    drop(running);
    assert_eq!(*hears.borrow_and_update(), None);
    upstreams.settled().await;
    assert_eq!(*hears.borrow(), Some(200));
    assert_eq!(mock.until(|it| it.running == 0).await.ended, 1);
}

/// A provider that has as many calls of a workspace under way as it may is sent no more, which says nothing of it; another one is, and it
/// is again once one of them is over, whether its connection is kept or not.
#[tokio::test]
async fn a_provider_has_a_share_of_the_calls() {
    let (mock, upstreams) = (mock(), usual());
    let (workspace, one, other) = (WorkspaceId::from_bits(1), UpstreamId::from_bits(1), UpstreamId::from_bits(2));
    let target = |upstream| chat_target(&upstreams, &mock).leaving_room(workspace, upstream);
    let mut held = Vec::new();
    while let Some(lent) = upstreams.0.pool.lend((workspace, one)) {
        held.push(lent);
    }
    let busy = upstreams.send(&target(one), &call("m", false)).await.unwrap_err();
    assert_eq!((busy.reason, busy.was_sent), (Reason::Busy, false));
    assert!(busy.is_nothing_of_the_models() && !Failed::new(Reason::Connect).is_nothing_of_the_models());
    whole(&upstreams, &target(other), &call("m", false)).await;
    drop(held.pop());
    for _ in 0..2 {
        whole(&upstreams, &target(one), &call("m", false)).await;
    }
    let streaming = stream(&upstreams, &target(one), &call("m--words-20--stall-4", true)).await;
    let busy = upstreams.send(&target(one), &call("m", false)).await.unwrap_err();
    assert_eq!(busy.reason, Reason::Busy);
    drop(streaming);
    whole(&upstreams, &target(one), &call("m", false)).await;
}
