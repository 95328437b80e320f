//! What a process that serves says in its log of the requests that it answers, and of what went wrong within them.

use serde_json::{Value, json};
use svc_tests::client::{Client, Got, bearer, request};
use svc_tests::program::Program;
use svc_tests::requests::text;

/// The line of a request tells what it came to, and so does whatever else is told while it is worked on: whoever has the id that the
/// answer carries finds all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_tell_which_request_they_are_of() {
    let folder = tempfile::tempdir().unwrap();
    let (data, path) = (folder.path().join("data"), folder.path().join("log"));
    let (program, home) = Program::dev_logging(&data, std::fs::File::create(&path).unwrap()).await;
    let mut client = Client::connect(program.address).await;
    let (agent, key) = (bearer(text(&home["agentKey"])), bearer(text(&home["inferenceKey"])));
    let host = program.address.to_string();
    let mut ask = async |method: &str, path: &str, key: &str, body: Value| -> Got {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("host", &*host), ("authorization", key)];
        client.send(&request(method, path, &headers, body.as_bytes())).await;
        client.hear(false).await.unwrap()
    };
    let body = json!({ "model": "demo/demo-large", "messages": [{ "role": "user", "content": "x" }] });
    let called = ask("POST", "/v1/chat/completions", &key, body).await;
    let nowhere = ask("GET", "/v1/nowhere", &agent, Value::Null).await;
    let call = json!({ "type": "tool.call", "summary": "Read a file", "tool": { "name": "read" } });
    let action = ask("POST", "/v1/actions/authorize", &agent, call).await.ok();
    let sql = rusqlite::Connection::open(data.join("svc.db")).unwrap();
    assert!(sql.execute("UPDATE action SET format = 999", ()).unwrap() > 0);
    let broken = ask("GET", &format!("/v1/actions/{}", text(&action["id"])), &agent, Value::Null).await;
    assert_eq!((called.status, nowhere.status, broken.status), (200, 404, 503), "{called:?}");
    let mut unread = Client::connect(program.address).await;
    unread.send(b"GET / HTTP/9.9\r\n\r\n").await;
    let unread = unread.hear(false).await.unwrap();
    program.stop().await;

    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = log.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let of = |got: &Got| -> Vec<&Value> {
        let id = got.header("x-request-id").unwrap();
        lines.iter().filter(|it| it["request_id"] == id).collect()
    };
    let told = |got: &Got| {
        let found = of(got);
        let line = found.iter().find(|it| it["message"] == "request").unwrap_or_else(|| panic!("{got:?}: {log}"));
        ["level", "method", "route", "refused", "call"].map(|name| line[name].clone())
    };
    let id = json!(called.header("x-svc-call-id").unwrap());
    assert_eq!(told(&called), [json!("INFO"), json!("POST"), json!("/v1/chat/completions"), Value::Null, id]);
    assert_eq!(told(&nowhere), [json!("INFO"), json!("GET"), json!("-"), json!("route_not_found"), Value::Null]);
    let route = json!("/v1/actions/{id}");
    assert_eq!(told(&broken), [json!("WARN"), json!("GET"), route.clone(), json!("not_ready"), Value::Null]);
    assert_eq!(told(&unread), [json!("INFO"), json!("-"), json!("-"), json!("invalid_request"), Value::Null]);
    let causes: Vec<_> = of(&broken).into_iter().filter(|it| it["message"] != "request").collect();
    assert!(!causes.is_empty() && causes.iter().all(|it| it["level"] == "ERROR" && it["route"] == route), "{log}");
}
