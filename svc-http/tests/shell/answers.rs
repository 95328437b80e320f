//! What every answer carries, and that a connection goes on after each of them.

use serde_json::{Value, json};

use tokio::time::timeout;

use crate::server::{AGENT, Client, Got, PATIENCE, Server};

/// What no answer may lack.
fn is_whole(got: &Got) {
    assert_eq!(got.header("svc-version"), Some("2026-10-01"), "{got:?}");
    let id = got.header("x-request-id").unwrap();
    assert!((1..=128).contains(&id.len()));
    let trace = got.header("traceparent").unwrap();
    assert!(trace.len() == 55 && trace.starts_with("00-"), "{trace}");
    assert!(got.header("date").is_some());
    if got.status >= 400 && !got.body.is_empty() {
        let error = got.json();
        let member = |name: &str| error.pointer(&format!("/error/{name}")).and_then(Value::as_str).map(str::to_owned);
        assert_eq!(member("requestId").as_deref(), Some(id));
        assert_eq!(member("docs").unwrap(), format!("https://gate.example/docs/errors#{}", got.error()));
        assert!(got.status >= 500 || member("fix").is_some(), "{error}");
    }
}

/// Every refusal of the transport and of the routes, one after the other on one connection.
#[tokio::test]
async fn a_connection_goes_on_after_every_refusal() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let bearer = |key: &str| format!("authorization: Bearer {key}\r\n");
    let gzip = format!("{AGENT}content-encoding: gzip\r\n");
    let twice = format!("{AGENT}{AGENT}");
    let differing = format!("{AGENT}x-api-key: ask_other\r\n");
    let ask = "/v1/actions/authorize";
    let cases: Vec<(&str, &str, String, &str, u16, &str)> = vec![
        ("GET", "/nowhere", String::new(), "", 404, "route_not_found"),
        ("POST", "/v1/actions/a/b/c", AGENT.to_owned(), "{}", 404, "route_not_found"),
        ("GET", ask, AGENT.to_owned(), "", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/verify", String::new(), "", 405, "method_not_allowed"),
        ("POST", ask, String::new(), "{}", 401, "unauthenticated"),
        ("POST", ask, bearer("ims_x"), "{}", 401, "unauthenticated"),
        ("POST", ask, "x-api-key: ask_agent7\r\n".to_owned(), "{}", 401, "unauthenticated"),
        ("POST", ask, bearer("ask_unknown"), "{}", 401, "invalid_api_key"),
        ("POST", ask, bearer("ask_inference"), "{}", 403, "agent_key_required"),
        ("POST", ask, bearer("ask_removed"), "{}", 403, "agent_not_found"),
        ("POST", ask, twice, "{}", 400, "invalid_request"),
        ("POST", ask, differing, "{}", 400, "invalid_request"),
        ("POST", ask, gzip, "{}", 400, "invalid_request"),
        ("POST", ask, AGENT.to_owned(), "conflict", 409, "idempotency_conflict"),
        ("POST", ask, AGENT.to_owned(), "panic", 500, "internal"),
        ("GET", "/v1/actions/act_missing", AGENT.to_owned(), "", 404, "not_found"),
        ("POST", "/v1/actions/act_1/callback", AGENT.to_owned(), "{}", 400, "invalid_request"),
        ("POST", "/v1/actions/act_1/settle", AGENT.to_owned(), "{}", 409, "already_settled"),
        ("GET", "/readyz", String::new(), "", 503, "not_ready"),
    ];
    for (method, path, headers, body, status, type_) in cases {
        let got = client.ask(method, path, &headers, body).await;
        assert_eq!((got.status, got.error().as_str()), (status, type_), "{method} {path} {headers}");
        is_whole(&got);
        assert_eq!(got.header("connection"), None, "{method} {path} {headers}");
    }
    let got = client.ask("POST", ask, AGENT, "{}").await;
    assert_eq!((got.status, got.json()), (200, json!({ "caller": "7", "bytes": 2 })));
    is_whole(&got);
}

/// A head over a limit is refused like anything else, in both versions of HTTP; one within it is read, to the byte.
#[tokio::test]
async fn a_head_over_a_limit_is_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let path = |length: usize| format!("/nowhere?{}", "q".repeat(length - "/nowhere?".len()));
    // Beside those of the client itself.
    let headers = |length: usize| format!("x-long: {}\r\n", "h".repeat(length - "x-longhostgate.example".len()));
    let (uri_max, headers_max) = (16 * 1024, 64 * 1024);
    for (path, headers, status, type_) in [
        (path(uri_max), String::new(), 404, "route_not_found"),
        (path(uri_max + 1), String::new(), 414, "uri_too_long"),
        (path(60_000), String::new(), 414, "uri_too_long"),
        ("/nowhere".to_owned(), headers(headers_max), 404, "route_not_found"),
        ("/nowhere".to_owned(), headers(headers_max + 1), 431, "headers_too_large"),
        ("/v1/actions/authorize".to_owned(), headers(300_000), 431, "headers_too_large"),
    ] {
        let got = client.ask("POST", &path, &headers, "").await;
        assert_eq!((got.status, got.error().as_str()), (status, type_), "{} {}", path.len(), headers.len());
        is_whole(&got);
        assert_eq!(got.header("connection"), None, "the connection goes on");
    }
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    for (length, status, type_) in [
        (20_000, 200, "alive"),
        (headers_max, 431, "headers_too_large"),
        (2 * headers_max, 431, "headers_too_large"),
        // So large a head is not read on HTTP/2, and nothing is said of it to its client.
        (3 * headers_max, 431, ""),
        (3 * headers_max, 431, ""),
        (20_000, 200, "alive"),
    ] {
        let request = http::Request::get("http://gate.example/healthz").header("x-long", "h".repeat(length));
        let (answer, _) = requests.send_request(request.body(()).unwrap(), true).unwrap();
        let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
        assert_eq!(answer.status(), status, "{length}");
        let mut body = answer.into_body();
        let told = timeout(PATIENCE, body.data()).await.unwrap().transpose().unwrap();
        assert_eq!(told.is_none(), type_.is_empty(), "{length}");
        assert!(String::from_utf8_lossy(&told.unwrap_or_default()).contains(type_), "{length}");
        requests = timeout(PATIENCE, requests.ready()).await.unwrap().unwrap();
    }
    driver.abort();
    let told: Vec<_> = server.told.lock().unwrap().iter().rev().take(6).rev().copied().collect();
    let (alive, large) = ((Some("/healthz"), 200), (None, 431));
    assert_eq!(told, [alive, large, large, large, large, alive], "each is counted");
}

/// A request that names no host, two of them or what is none is refused on every route, on HTTP/1 and HTTP/2 (RFC 9112, 3.2; RFC 9113,
/// 8.3.1); HTTP/1.0 may leave it out.
#[tokio::test]
async fn a_request_names_one_host() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let one = "host: gate.example\r\n";
    for (line, hosts, status) in [
        ("GET /healthz HTTP/1.1", "", 400),
        ("GET /healthz HTTP/1.1", "host: a b\r\n", 400),
        ("GET /healthz HTTP/1.1", "host: a@gate.example\r\n", 400),
        ("GET /healthz HTTP/1.1", &one.repeat(2), 400),
        ("GET /healthz HTTP/1.1", one, 200),
        ("GET http://gate.example/healthz HTTP/1.1", "", 400),
        ("GET http://gate.example/healthz HTTP/1.1", one, 200),
        ("GET /nowhere HTTP/1.1", "", 400),
        ("POST /v1/actions/authorize HTTP/1.1", "", 400),
        ("POST /v1/verify HTTP/1.1", "", 400),
        ("GET /api/me HTTP/1.1", &one.repeat(2), 400),
    ] {
        client.send(&format!("{line}\r\n{hosts}\r\n")).await;
        let got = client.answer().await;
        assert_eq!(got.status, status, "{line} {hosts:?}");
        is_whole(&got);
        if status == 400 {
            assert_eq!((got.error().as_str(), got.field().as_str()), ("invalid_request", "host"), "{line} {hosts:?}");
        }
    }
    for (hosts, status) in [("", 200), (one, 200), (&*one.repeat(2), 400)] {
        let mut client = server.client().await;
        client.send(&format!("GET /healthz HTTP/1.0\r\n{hosts}\r\n")).await;
        assert_eq!(client.answer().await.status, status, "{hosts:?}");
    }
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    for (hosts, status) in [
        (&[][..], 200),
        (&["gate.example"], 200),
        (&["GATE.example"], 200),
        (&["gate.example", "gate.example"], 400),
        (&["other.example"], 400),
        (&["gate.example:81"], 400),
    ] {
        let mut request = http::Request::get("http://gate.example/healthz").body(()).unwrap();
        for host in hosts {
            request.headers_mut().append("host", http::HeaderValue::from_static(host));
        }
        let (answer, _) = requests.send_request(request, true).unwrap();
        let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
        assert_eq!(answer.status(), status, "{hosts:?}");
        let told = timeout(PATIENCE, answer.into_body().data()).await.unwrap().unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&told).contains(r#""field":"host""#), status == 400, "{hosts:?}");
        requests = timeout(PATIENCE, requests.ready()).await.unwrap().unwrap();
    }
    driver.abort();
}

/// A letter that is sent encoded is that letter (RFC 3986, 6.2.2.2), for whatever looks at the path: route, credential, rate,
/// envelope, host and the page's own mark. What is no letter stays as it was sent: `%2F` is no slash.
#[tokio::test]
async fn an_encoded_letter_is_the_same_path() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for (method, path, headers, status, type_) in [
        ("POST", "/v1/act%69ons/authorize", AGENT, 200, ""),
        ("POST", "/%761/actions/%61uthorize", "", 401, "unauthenticated"),
        ("GET", "/v1/actions/%61uthorize", AGENT, 405, "method_not_allowed"),
        ("GET", "/v1/%61ctions/a/b", "", 404, "route_not_found"),
    ] {
        let got = client.ask(method, path, headers, "{}").await;
        assert_eq!((got.status, got.error().as_str()), (status, type_), "{path}");
        assert_eq!(got.header("ratelimit-limit"), Some("600"), "{path}");
    }
    for (sent, id) in [("act%5F1", "act_1"), ("act%2f1", "act%2f1"), ("%2561", "%2561")] {
        let got = client.ask("GET", &format!("/v1/actions/{sent}"), AGENT, "").await;
        assert_eq!((got.status, got.json()), (200, json!({ "id": id })), "{sent}");
    }
    for path in ["/v1%2Factions/act_1", "/v1/%2e%2e/v1/actions/act_1", "/v1/actions%2Fact_1"] {
        assert_eq!(client.ask("GET", path, AGENT, "").await.error(), "route_not_found", "{path}");
    }
    assert_eq!(client.ask("POST", "/%61pi/sign-%6Fut", "", "").await.error(), "csrf");
    client.send("GET /%61pi/me HTTP/1.1\r\nhost: other.example\r\n\r\n").await;
    assert_eq!(client.answer().await.error(), "forbidden");
    let got = client.ask("POST", "/%61nthropic/v1/nowhere", "", "").await;
    assert_eq!((got.status, &got.json()["type"]), (404, &json!("error")));
}

/// A credential of another kind is told by its kind; type and status are those of one that was not sent.
#[tokio::test]
async fn a_credential_of_another_kind_is_told_as_such() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for (path, headers, told) in [
        ("/v1/actions/authorize", "authorization: Bearer ims_1\r\n", "a service token was sent, which"),
        ("/v1/admin/freeze", "authorization: Bearer ask_1\r\n", "it reads a service token, as"),
    ] {
        let got = client.ask("POST", path, headers, "{}").await;
        let message = got.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!((got.status, got.error().as_str()), (401, "unauthenticated"), "{path}");
        assert!(message.contains(told), "{message}");
    }
}

/// The members and headers that only some refusals have.
#[tokio::test]
async fn refusals_have_their_own_members_and_headers() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let got = client.ask("POST", "/v1/action/authorize", "", "").await;
    assert_eq!(got.json().pointer("/error/didYouMean"), Some(&json!("POST /v1/actions/authorize")));
    let got = client.ask("DELETE", "/v1/actions/act_1", "", "").await;
    assert_eq!(got.header("allow"), Some("GET, HEAD"));
    let got = client.ask("GET", "/v1/actions/act_1", "", "").await;
    assert_eq!(got.header("www-authenticate"), Some("Bearer"));
    let got = client.ask("GET", "/v1/actions/act_1", "authorization: Bearer ask_removed\r\n", "").await;
    assert_eq!((got.json().pointer("/error/agentId"), got.header("www-authenticate")), (Some(&json!("agt_1")), None));
    let got = client.ask("GET", "/readyz", "", "").await;
    assert_eq!(got.header("retry-after"), Some("1"));
    for (headers, field) in [
        (format!("{AGENT}{AGENT}"), "authorization"),
        (format!("{AGENT}x-api-key: a\r\n"), "x-api-key"),
        (format!("{AGENT}content-encoding: br\r\n"), "content-encoding"),
    ] {
        assert_eq!(client.ask("POST", "/v1/actions/authorize", &headers, "{}").await.field(), field);
    }
}

/// A client's id of its request is given back where it is plain, and a trace is continued where it is valid.
#[tokio::test]
async fn ids_and_traces_are_given_back() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let got = client.ask("GET", "/healthz", "x-request-id: my.id_1-A\r\n", "").await;
    assert_eq!(got.header("x-request-id"), Some("my.id_1-A"));
    let got = client.ask("GET", "/healthz", "x-request-id: my id\r\n", "").await;
    assert!(got.header("x-request-id").unwrap().starts_with("req_"));
    let vectors: Value = serde_json::from_str(include_str!("../data/w3c_trace_context.json")).unwrap();
    for (name, continued) in [("traceparentContinue", true), ("traceparentRestart", false)] {
        for values in vectors[name].as_array().unwrap() {
            let mut headers = String::new();
            for value in values.as_array().unwrap() {
                // The name of a header is read in any case.
                headers.push_str(&format!("TraceParent: {}\r\n", value.as_str().unwrap()));
            }
            let got = client.ask("GET", "/nowhere", &headers, "").await;
            let trace = got.header("traceparent").unwrap();
            assert_eq!(&trace[3..35] == "12345678901234567890123456789012", continued, "{values}");
            assert_ne!(&trace[36..52], "1234567890123456");
            is_whole(&got);
        }
    }
}

/// A method that is longer than any that HTTP knows is refused as such; a shorter one that no route has is told those that it has.
#[tokio::test]
async fn a_method_without_an_end_is_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let got = client.ask(&"M".repeat(32), "/v1/verify", "", "").await;
    assert_eq!((got.status, got.error().as_str()), (405, "method_not_allowed"));
    let got = client.ask(&"M".repeat(33), "/v1/verify", "", "").await;
    assert_eq!((got.status, got.error().as_str()), (400, "invalid_request"));
    is_whole(&got);
}

/// HEAD is answered wherever GET is, with the same headers and no body; nowhere else.
#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for path in [
        "/healthz",
        "/openapi.json",
        "/docs",
        "/docs/errors",
        "/.well-known/jwks.json",
        "/v1/actions/act_1",
        "/nowhere",
    ] {
        let whole = client.ask("GET", path, AGENT, "").await;
        let head = client.ask("HEAD", path, AGENT, "").await;
        assert_eq!((head.status, head.body.len()), (whole.status, 0), "{path}");
        for name in ["content-type", "cache-control", "content-security-policy", "ratelimit-limit"] {
            assert_eq!(head.header(name), whole.header(name), "{path}");
        }
        assert!(
            head.header("content-length").is_some_and(|it| path == "/nowhere" || it == whole.body.len().to_string()),
            "{path}"
        );
    }
    assert_eq!(client.ask("HEAD", "/v1/verify", "", "").await.header("allow"), Some("POST"));
}

/// The document and the pages are there, typed and behind a strict policy.
#[tokio::test]
async fn the_interface_describes_itself() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let document = client.ask("GET", "/openapi.json", "", "").await;
    assert_eq!(
        (document.header("content-type"), &document.json()["openapi"]),
        (Some("application/json"), &json!("3.1.0"))
    );
    for path in ["/docs", "/docs/errors"] {
        let page = client.ask("GET", path, "", "").await;
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'; style-src 'sha256-"));
        assert!(String::from_utf8(page.body).unwrap().contains("invalid_request"));
    }
    let keys = client.ask("GET", "/.well-known/jwks.json", "", "").await;
    assert_eq!(keys.header("cache-control"), Some("max-age=300"));
    let health = client.ask("GET", "/healthz?x=y", "", "").await;
    assert_eq!((health.status, health.header("cache-control")), (200, Some("no-store")));
}

/// A repeated answer says so.
#[tokio::test]
async fn a_replay_says_so() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let replay = client.ask("POST", "/v1/actions/authorize", AGENT, "again").await;
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(client.ask("POST", "/v1/actions/authorize", AGENT, "{}").await.header("idempotent-replayed"), None);
}

/// Requests that come in one piece are answered in order, each with its own id.
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let mut client: Client = server.client().await;
    let mut text = String::new();
    for n in 0..20 {
        text.push_str(&format!("GET /v1/actions/act_{n} HTTP/1.1\r\nhost: x\r\nx-request-id: n{n}\r\n{AGENT}\r\n"));
    }
    text.push_str(
        "POST /v1/verify HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n",
    );
    client.send(&text).await;
    for n in 0..20 {
        let got = client.answer().await;
        assert_eq!(
            (got.header("x-request-id").unwrap(), got.json()),
            (format!("n{n}").as_str(), json!({ "id": format!("act_{n}") }))
        );
    }
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(client.answer().await.status, 404);
}
