//! Streams of MCP servers that end before the answer is in them, and calls whose answer nobody waits for any more.

use serde_json::{Value, json};
use svc_tests::client::{Client, PATIENCE, bearer, until};
use svc_tests::oauth::HOST;
use svc_tests::tool_desk::{ToolDesk as Desk, calling, message, text, told_on_the_way};
use svc_tests::tool_server::{Heard, Part, Reply, Speaks};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

const LEGACY: Speaks = Speaks::Legacy { sessions: true };
/// Messages by whose answers a server has begun to answer another.
const A_WHILE: usize = 200;
/// What a server says that is about to close a stream.
const PLACE: &str = "id: 0\nretry: 100\ndata:\n\n";

/// The requests for streams among these.
fn gets(heard: &[Heard]) -> Vec<&Heard> {
    heard.iter().filter(|it| it.head.starts_with("GET ")).collect()
}

fn told(count: u64) -> String {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": "p", "progress": count } });
    format!("id: place-{count}\ndata: {note}\n\n")
}

/// A server that closes its stream once it has named a place in it is asked for what comes behind that, by its session and with
/// its credential, after the wait that it asked for; also where a connection breaks, and where it is not there for a moment. The
/// call itself is made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_closes_its_stream_is_polled() {
    let mut desk = Desk::new(LEGACY).await;
    desk.server(json!({ "credential": { "type": "bearer", "secret": "of-the-server" } })).await;
    desk.call("read_one", json!({})).await;
    let _ = desk.server.heard();
    let half = format!("{}id: never\ndata: {{\"jsonrpc\"", told(1));
    desk.server.reply_in_parts([
        Part::Ended(PLACE.to_owned()),
        Part::Cut(half),
        Part::Status(503),
        Part::Ended(told(2)),
        Part::Result("id: place-3\ndata:\n\n".to_owned(), "place-4"),
    ]);
    let heard = desk.stream(&calling("read_one", json!({}))).await;
    let events: Vec<Value> =
        heard.lines().filter_map(|it| it.strip_prefix("data: ")).map(|it| serde_json::from_str(it).unwrap()).collect();
    let counts: Vec<_> = events.iter().map(|it| it["params"]["progress"].as_u64()).collect();
    assert_eq!(counts, [Some(1), Some(2), None], "{heard}");
    assert_eq!(text(&events[2]["result"]), "late", "{heard}");
    assert!(desk.actions().await.iter().all(|it| it["status"] == "completed"));
    let heard = desk.server.heard();
    let calls: Vec<&Heard> = heard.iter().filter(|it| it.method() == "tools/call").collect();
    assert_eq!((calls.len(), heard.len()), (1, 5), "{heard:?}");
    let places: Vec<_> = gets(&heard).iter().map(|it| it.header("last-event-id").unwrap()).collect();
    assert_eq!(places, ["0", "place-1", "place-1", "place-2"]);
    for get in gets(&heard) {
        assert!(get.head.starts_with("GET /mcp?profile=test HTTP/1.1"), "{}", get.head);
        for name in ["mcp-session-id", "mcp-protocol-version", "authorization"] {
            assert_eq!(get.header(name), calls[0].header(name), "{name}");
            assert!(get.header(name).is_some(), "{name}");
        }
        assert_eq!((get.header("accept"), get.header("content-type")), (Some("text/event-stream"), None));
    }
}

/// A stream that names no place, of a server that has none to go on from, or of the era that knows no such thing, ends the call
/// where it ends: nobody knows whether the tool has run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_cannot_go_on_ends_the_call() {
    let place = || Part::Ended(PLACE.to_owned());
    for (speaks, parts, count) in [
        (LEGACY, vec![Part::Ended(": nothing\n\n".to_owned())], 0),
        (LEGACY, vec![Part::Ended(format!("{PLACE}id:\ndata:\n\n"))], 0),
        (LEGACY, vec![place()], 1),
        (LEGACY, vec![place(), Part::Status(404)], 1),
        (Speaks::Legacy { sessions: false }, vec![place(), Part::Status(503), Part::Status(400)], 2),
        (Speaks::Modern, vec![place()], 0),
    ] {
        let mut desk = Desk::new(speaks).await;
        desk.server(json!({})).await;
        desk.call("read_one", json!({})).await;
        let _ = desk.server.heard();
        let case = format!("{speaks:?} {parts:?}");
        desk.server.reply_in_parts(parts);
        let got = desk.call("read_one", json!({})).await;
        assert_eq!(got["isError"], true, "{case}: {got}");
        assert!(text(&got).contains("its stream ended without an answer"), "{case}: {got}");
        let heard = desk.server.heard();
        assert_eq!(gets(&heard).len(), count, "{case}");
        assert_eq!(heard.iter().filter(|it| it.method() == "tools/call").count(), 1, "{case}");
        let actions = desk.actions().await;
        let open = actions.iter().filter(|it| it["status"] == "allowed").count();
        assert_eq!((actions.len(), open), (2, 1), "{case}");
    }
}

/// What a server of the eras with handshake asks while a tool runs is answered at once, in the call's session and beside its stream:
/// that somebody is there, and that nothing else is offered. Its client hears nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_asks_is_answered() {
    let questions = || {
        let asked = ["ping", "elicitation/create", "roots/list", "sampling/createMessage"].into_iter().enumerate();
        asked.map(|(id, method)| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })).collect()
    };
    for speaks in [LEGACY, Speaks::Legacy { sessions: false }] {
        let mut desk = Desk::new(speaks).await;
        desk.server(json!({ "credential": { "type": "bearer", "secret": "of-the-server" } })).await;
        assert_eq!(text(&desk.call("read_one", json!({})).await), "done");
        desk.server.reply(Reply::Stalled(questions()));
        let (_, count) = (desk.server.heard(), desk.server.count());
        let socket = begun(&desk).await;
        desk.server.until_heard(count + 5).await;
        let mut heard = desk.server.heard();
        let call = heard.remove(0);
        heard.sort_by_key(|it| it.body["id"].as_i64());
        let told: Vec<_> =
            heard.iter().map(|it| (it.body.get("result").cloned(), it.body["error"]["code"].clone())).collect();
        let refused = (None, json!(-32_601));
        let pong = (Some(json!({})), Value::Null);
        assert_eq!(told, [pong, refused.clone(), refused.clone(), refused], "{heard:?}");
        for answer in &heard {
            assert_eq!(answer.body["jsonrpc"], "2.0");
            assert_eq!(answer.header("mcp-session-id").is_some(), speaks == LEGACY);
            for name in ["mcp-session-id", "mcp-protocol-version", "authorization", "accept", "content-type"] {
                assert_eq!(answer.header(name), call.header(name), "{name}");
            }
        }
        drop(socket);
        desk.server.until_cut().await;
    }
    let mut desk = Desk::new(Speaks::Modern).await;
    desk.server(json!({})).await;
    desk.server.reply(Reply::Stream(questions(), "done".to_owned()));
    let _ = desk.server.heard();
    assert_eq!(text(&desk.call("read_one", json!({})).await), "done");
    desk.call("read_one", json!({})).await;
    assert!(desk.server.heard().iter().all(|it| it.method() == "tools/call"), "it may ask nothing");
}

/// A call on a connection of its own, once its answer has begun.
async fn begun(desk: &Desk) -> TcpStream {
    let mut socket = desk.begin(&desk.agent.key, &calling("read_one", json!({}))).await;
    until(&mut socket, "\r\n\r\n").await;
    socket
}

/// A tool whose result nobody waits for any more is called off: servers without handshake hear of it by the end of the
/// connection, those with one in a message of its own, in the call's session. A call that is over is not called off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_called_off_in_its_servers_own_way() {
    for (speaks, frozen) in [(Speaks::Modern, false), (LEGACY, false), (LEGACY, true)] {
        let mut desk = Desk::new(speaks).await;
        desk.server(json!({})).await;
        assert_eq!(text(&desk.call("read_one", json!({})).await), "done");
        desk.server.reply(Reply::Stalled(Vec::new()));
        let socket = begun(&desk).await;
        let count = desk.server.count();
        if frozen {
            desk.freeze();
        } else {
            drop(socket);
        }
        desk.server.until_cut().await;
        if speaks == Speaks::Modern {
            desk.server.reply(Reply::Text("done".to_owned()));
            desk.call("read_one", json!({})).await;
        } else {
            desk.server.until_heard(count + 1).await;
        }
        let heard = desk.server.heard();
        let call = heard.iter().filter(|it| it.method() == "tools/call").nth(1).unwrap();
        let off: Vec<&Heard> = heard.iter().filter(|it| it.method() == "notifications/cancelled").collect();
        assert_eq!(off.len(), usize::from(speaks == LEGACY), "{heard:?}");
        for off in off {
            assert_eq!(off.body["params"]["requestId"], call.body["id"]);
            assert_eq!(off.body.get("id"), None);
            assert_eq!(off.header("mcp-session-id"), call.header("mcp-session-id"));
        }
    }
}

/// Says that the message of this id is called off, with this key.
async fn call_off(desk: &mut Desk, key: &str, id: Value) {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    assert_eq!(desk.send_as(key, &note, &[]).await.status, 202);
}

/// A client calls a call off by a message, where it is known which one it means: the one under way with its key, its session, its
/// server and that id. The server is told in its own way, and nobody knows whether the tool has run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_calls_off_by_a_message() {
    for speaks in [LEGACY, Speaks::Modern] {
        let mut desk = Desk::new(speaks).await;
        desk.server(json!({})).await;
        let (key, other) = (desk.agent.key.clone(), desk.site.agent(&[]).key);
        assert_eq!(text(&desk.call("read_one", json!({})).await), "done");
        desk.server.reply(Reply::Stalled(Vec::new()));
        let (mut one, two) = (begun(&desk).await, begun(&desk).await);
        let (_, count) = (desk.server.heard(), desk.server.count());
        for (key, id) in [(&other, json!(7)), (&key, json!(8)), (&key, json!("7")), (&key, Value::Null)] {
            call_off(&mut desk, key, id).await;
        }
        call_off(&mut desk, &key, json!(7)).await;
        assert!(desk.server.heard().is_empty(), "either may be meant");
        drop(two);
        desk.server.until_cut().await;
        call_off(&mut desk, &key, json!(7)).await;
        desk.server.until_all_cut(2).await;
        // Both are told of where the end of a connection says nothing.
        desk.server.until_heard(count + if speaks == LEGACY { 2 } else { 0 }).await;
        let mut rest = Vec::new();
        let read = async {
            let mut piece = [0; 4_096];
            // The last piece of a body that ends.
            while !rest.ends_with(b"0\r\n\r\n") {
                let count = one.read(&mut piece).await.unwrap();
                rest.extend_from_slice(&piece[..count]);
            }
        };
        timeout(PATIENCE, read).await.unwrap();
        assert!(!String::from_utf8_lossy(&rest).contains("jsonrpc"), "it waits for no answer");
        let actions = desk.actions().await;
        let open = actions.iter().filter(|it| it["status"] == "allowed").count();
        assert_eq!((open, actions.len()), (2, 3), "nobody knows whether they have run: {actions:?}");
        // One that takes no stream is answered.
        let body = calling("write_one", json!({})).to_string();
        let (address, credential) = (desk.site.address, bearer(&key));
        let count = desk.server.count();
        let call = tokio::spawn(async move {
            let headers = [("host", HOST), ("authorization", &*credential), ("accept", "application/json")];
            Client::connect(address).await.ask("POST", "/mcp/proxy/crm", &headers, body.as_bytes()).await.ok()
        });
        desk.server.until_heard(count + 1).await;
        call_off(&mut desk, &key, json!(7)).await;
        let told = text(&timeout(PATIENCE, call).await.unwrap().unwrap()["result"]);
        assert!(told.contains("called it off") && told.contains("may have run"), "{told}");
    }
}

/// A client that takes no stream, at a server that has begun to answer by one, is told at once that it has called its call off, or that its
/// agent was stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_within_the_stream_of_its_server() {
    for is_frozen in [false, true] {
        let mut desk = Desk::new(Speaks::Modern).await;
        desk.server(json!({})).await;
        assert_eq!(text(&desk.call("read_one", json!({})).await), "done");
        desk.server.reply(Reply::Stalled(vec![told_on_the_way("begun")]));
        let (address, key) = (desk.site.address, desk.agent.key.clone());
        let (body, credential) = (calling("write_one", json!({})).to_string(), bearer(&key));
        let count = desk.server.count();
        let call = tokio::spawn(async move {
            let headers = [("host", HOST), ("authorization", &*credential), ("accept", "application/json")];
            Client::connect(address).await.ask("POST", "/mcp/proxy/crm", &headers, body.as_bytes()).await
        });
        desk.server.until_heard(count + 1).await;
        // By when the answer has begun here.
        for _ in 0..A_WHILE {
            desk.send(&message("ping", json!({})), &[]).await.ok();
        }
        if is_frozen {
            desk.freeze();
        } else {
            call_off(&mut desk, &key, json!(7)).await;
        }
        let got = timeout(PATIENCE, call).await.unwrap().unwrap().json();
        if is_frozen {
            assert_eq!(got["error"]["data"]["type"], "agent_stopped", "{got}");
        } else {
            let told = text(&got["result"]);
            assert!(told.contains("called it off") && told.contains("may have run"), "{told}");
        }
        desk.server.until_cut().await;
    }
}
