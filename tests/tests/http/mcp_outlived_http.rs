//! Calls of tools that outlive the credential that they came with: a key that ends, or a connection's token that is renewed while
//! they run.

use std::net::SocketAddr;

use serde_json::{Value, json};
use svc_core::value::Span;
use svc_tests::client::{Client, bearer, until};
use svc_tests::oauth::{HOST, connect, public, refresh, tokens};
use svc_tests::tool_desk::{ToolDesk as Desk, calling, text};
use svc_tests::tool_server::{Reply, Speaks};
use tokio::task::JoinHandle;

/// Calls a tool with this credential, beside what else is done.
fn call(address: SocketAddr, key: &str) -> JoinHandle<Value> {
    let credential = bearer(key);
    tokio::spawn(async move {
        let headers = [("host", HOST), ("authorization", &*credential), ("accept", "application/json")];
        let body = calling("read_one", json!({})).to_string();
        Client::connect(address).await.ask("POST", "/mcp/proxy/crm", &headers, body.as_bytes()).await.ok()
    })
}

/// What became of a call is settled though its token ended by itself or was renewed while it ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_a_call_is_settled_without_its_key() {
    for how in ["ended", "renewed"] {
        for (reply, status) in
            [(Reply::Text("done".to_owned()), "completed"), (Reply::Error(-32_602, "no".to_owned()), "failed")]
        {
            let mut desk = Desk::new(Speaks::Modern).await;
            desk.server(json!({})).await;
            let client = public(&mut desk.client).await;
            let token = connect(&mut desk.client, &desk.owner, &client, &desk.agent.id.to_string()).await;
            desk.server.reply(reply);
            desk.server.hold(Some("tools/call"));
            let (count, running) = (desk.server.count(), call(desk.site.address, &token.access));
            desk.server.until_heard(count + 1).await;
            match how {
                "ended" => desk.site.shift(Span::hours(1)),
                _ => drop(tokens(&refresh(&mut desk.client, &client, &token.refresh).await)),
            }
            desk.server.hold(None);
            let told = running.await.unwrap();
            assert_eq!(text(&told["result"]) == "done", status == "completed", "{how} {told}");
            let got = desk.send_as(&token.access, &calling("read_one", json!({})), &[]).await;
            assert_eq!(got.status, 401, "{how}");
            let actions = desk.actions().await;
            assert_eq!(actions.last().unwrap()["status"], status, "{how} {actions:?}");
            desk.site.audit();
        }
    }
}

/// A client calls a call off by the token that it has by now; another of the same agent's connections does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_called_off_with_a_renewed_token() {
    let mut desk = Desk::new(Speaks::Legacy { sessions: true }).await;
    desk.server(json!({})).await;
    let client = public(&mut desk.client).await;
    let agent = desk.agent.id.to_string();
    let token = connect(&mut desk.client, &desk.owner, &client, &agent).await;
    let other = connect(&mut desk.client, &desk.owner, &client, &agent).await;
    desk.server.reply(Reply::Stalled(Vec::new()));
    let mut socket = desk.begin(&token.access, &calling("read_one", json!({}))).await;
    until(&mut socket, "\r\n\r\n").await;
    let newer = tokens(&refresh(&mut desk.client, &client, &token.refresh).await);
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    let (_, count) = (desk.server.heard(), desk.server.count());
    for key in [&other.access, &desk.agent.key.clone()] {
        assert_eq!(desk.send_as(key, &note, &[]).await.status, 202);
    }
    assert!(desk.server.heard().is_empty(), "it is none of theirs");
    assert_eq!(desk.send_as(&newer.access, &note, &[]).await.status, 202);
    desk.server.until_cut().await;
    desk.server.until_heard(count + 1).await;
    assert_eq!(desk.server.heard()[0].method(), "notifications/cancelled");
}
