//! A provider changes while calls are on their way to it: a key goes nowhere but where it was stored for, and a prompt to nobody
//! to whom it may not go by then.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use svc_http::mock::Mock;
use svc_tests::client::bearer;
use svc_tests::desk::{CHAT, Desk, chat};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// A stand-in beside the desk's own.
fn stand_in() -> Mock {
    Mock::remembering(TcpListener::bind("127.0.0.1:0").unwrap(), 10_000).unwrap()
}

/// The keys that a stand-in was shown.
fn shown(mock: &Mock) -> Vec<String> {
    let keys = mock.heard().into_iter().filter_map(|it| it.header("authorization").map(str::to_owned));
    keys.map(|it| it.trim_start_matches("Bearer ").to_owned()).collect()
}

/// The status and the text that come back for what was sent there.
async fn came(mut socket: TcpStream) -> (String, String) {
    let mut heard = Vec::new();
    socket.read_to_end(&mut heard).await.unwrap();
    let text = String::from_utf8_lossy(&heard).into_owned();
    (text.split(' ').nth(1).unwrap_or_default().to_owned(), text)
}

const SLOW: &str = "bad-1--head-500--status-500";
const MODEL: &str = "models/second/good-1";
const CLASS: &str = "task-classes/support.reply";

/// The second provider of a call changes while the first is still waited for: it gets the prompt only where it would get it by then,
/// and where it is elsewhere, with its new key at its new address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_provider_is_the_one_of_then() {
    let only_first = json!({ "models": [format!("first/{SLOW}")] });
    let of_elsewhere = json!({ "jurisdictions": ["us"] });
    for (method, path, change, answers) in [
        ("PATCH", "moved", json!({ "apiKey": "key-three" }), true),
        ("PATCH", "upstreams", json!({ "apiKey": "key-three", "timeouts": { "idleMs": 9_000 } }), true),
        ("PATCH", "upstreams", json!({ "enabled": false }), false),
        ("PATCH", MODEL, json!({ "enabled": false }), false),
        ("PATCH", MODEL, json!({ "prices": null }), false),
        ("DELETE", MODEL, Value::Null, false),
        ("PATCH", CLASS, only_first, false),
        ("PATCH", CLASS, of_elsewhere, false),
        ("PUT", "settings", json!({ "dataLoss": "block" }), false),
        ("PUT", "settings", json!({ "dataLoss": "flag" }), true),
    ] {
        let mut desk = Desk::bare(|_| {}).await;
        let (second, third) = (stand_in(), stand_in());
        let url = desk.mock.chat_url();
        let id = desk.upstream("first", "chat", &url).await;
        desk.model(&id, SLOW, 90, 3, 15).await;
        let id = desk.upstream("second", "chat", &second.chat_url()).await;
        desk.model(&id, "good-1", 50, 2, 10).await;
        desk.enforce().await;
        let mut body = chat("auto");
        body["messages"][0]["content"] = json!("My card is 4111 1111 1111 1111");
        let socket = desk.begin(CHAT, &[("x-svc-objective", "quality")], &body).await;
        while desk.mock.counts().requests == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        let (own, mut change) = (format!("upstreams/{id}"), change);
        if path == "moved" {
            change["baseUrl"] = json!(third.chat_url());
        }
        let place = if matches!(path, "moved" | "upstreams") { &own } else { path };
        let body = Some(&change).filter(|it| !it.is_null());
        let got = desk.api(method, place, body).await;
        assert!(matches!(got.status, 200 | 204), "{path} {change}: {}", got.text());
        let (status, text) = came(socket).await;
        assert_eq!(status, if answers { "200" } else { "502" }, "{path} {change}: {text}");
        let (there, other) = if path == "moved" { (&third, &second) } else { (&second, &third) };
        assert_eq!((shown(there).len(), shown(other).len()), (usize::from(answers), 0), "{path} {change}");
        if change["apiKey"].is_string() {
            assert_eq!(shown(there), ["key-three"], "{change}");
        }
        if !answers {
            assert!(
                text.contains("attemptedModels") && text.contains("\"model\":\"good-1\""),
                "{path} {change}: {text}"
            );
        }
        desk.site.audit();
    }
}

/// A provider moves to and fro between two hosts, each with a key of its own, while calls go to it: neither host is ever shown the
/// other's key, and no call fails of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_host_is_shown_its_own_key_alone() {
    let mut desk = Desk::bare(|_| {}).await;
    let hosts = [(stand_in(), "key-of-one"), (stand_in(), "key-of-two")];
    let id = desk.upstream("moving", "chat", &hosts[0].0.chat_url()).await;
    desk.model(&id, "good-1", 50, 2, 10).await;
    let path = format!("upstreams/{id}");
    let change = |at: usize| json!({ "baseUrl": hosts[at].0.chat_url(), "apiKey": hosts[at].1 });
    desk.api("PATCH", &path, Some(&change(0))).await.ok();
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..6 {
        let (mut client, key, over) = (desk.site.client().await, bearer(&desk.key), Arc::clone(&over));
        callers.push(tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let body = chat("moving/good-1").to_string();
                client.ask("POST", CHAT, &[("authorization", &key)], body.as_bytes()).await.ok();
            }
        }));
    }
    for number in 0..150 {
        desk.api("PATCH", &path, Some(&change(number % 2))).await.ok();
    }
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    for (mock, key) in &hosts {
        let keys = shown(mock);
        assert!(!keys.is_empty() && keys.iter().all(|it| it == key), "{key}: {keys:?}");
    }
    desk.site.audit();
}

/// A provider that was refused for its key is called again as soon as it has another: its circuit is closed, and nothing is told of
/// what is put right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_put_right_is_called_at_once() {
    let mut desk = Desk::bare(|_| {}).await;
    let (broken, mended) = (stand_in(), stand_in());
    broken.turn("status-401").unwrap();
    let id = desk.upstream("first", "chat", &broken.chat_url()).await;
    desk.model(&id, "best-1", 90, 3, 15).await;
    let url = desk.mock.chat_url();
    let other = desk.upstream("second", "chat", &url).await;
    desk.model(&other, "good-1", 50, 2, 10).await;
    desk.enforce().await;
    let path = format!("upstreams/{id}");
    for _ in 0..6 {
        let got = desk.chat_with(&[("x-svc-objective", "quality")], &chat("auto")).await;
        assert_eq!(got.header("x-svc-routed-to"), Some("second/good-1"), "{}", got.text());
    }
    let at = desk.read(&path).await;
    assert!(at["health"] == "open" && at["lastError"].is_string(), "{at}");
    let at = desk.api("PATCH", &path, Some(&json!({ "region": "west" }))).await.ok();
    assert_eq!(at["health"], "open", "that mends nothing: {at}");
    let change = json!({ "baseUrl": mended.chat_url(), "apiKey": "key-of-now" });
    let at = desk.api("PATCH", &path, Some(&change)).await.ok();
    assert_eq!((&at["health"], at.get("lastError").filter(|it| !it.is_null())), (&json!("ok"), None), "{at}");
    let got = desk.chat_with(&[("x-svc-objective", "quality")], &chat("auto")).await;
    assert_eq!(got.header("x-svc-routed-to"), Some("first/best-1"), "{}", got.text());
    assert_eq!(shown(&mended), ["key-of-now"]);
}
