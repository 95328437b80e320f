//! The real server is killed between a decision and its delivery: the one that starts after it delivers. The receiver is
//! reached over TLS and trusted by a root that the settings name.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::state::edge::{Job, JobState};
use svc_core::store::Row as _;
use svc_core::testing::world::BASE_URL;
use svc_core::value::id::ActionId;
use svc_core::value::text::UrlText;
use svc_tests::client::Client;
use svc_tests::program::Program;
use svc_tests::receiver::{self, Receiver, Reply, SECRET, tls};
use svc_tests::requests::{WIDE, payment};
use svc_tests::site::{Agent, Site, rows_of};

async fn serve(data: &Path) -> Program {
    Program::serve_with(data, BASE_URL, |command| {
        command.arg("--allow-private-callbacks").env("SVC_OUTBOUND_CA_FILE", tls("ca.pem"));
    })
    .await
}

/// A data directory with an agent, whose workspace signs callbacks.
async fn prepared(data: &Path) -> Agent {
    let site = Site::with(|plan| plan.directory = Some(data.to_owned())).await;
    receiver::connect(&site);
    let agent = site.agent(&[WIDE]);
    site.stop().await;
    agent
}

async fn allowed(client: &mut Client, agent: &Agent) -> ActionId {
    let id = client.authorize(&agent.key, &payment(100)).await.ok()["id"].as_str().unwrap().to_owned();
    ActionId::parse(&id).unwrap()
}

/// Killed while receivers have not answered yet: every call comes again from the server that is started next, the same event
/// with the same body, signed anew; and each is written down as delivered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_decided_is_told_after_a_crash() {
    let data = tempfile::tempdir().unwrap();
    let agent = prepared(data.path()).await;
    let mut hooks = Receiver::start_tls().await;
    hooks.answer((0..4).map(|_| Reply::Silence));
    let first = serve(data.path()).await;
    let mut client = Client::connect(first.address).await;
    let mut expected = BTreeSet::new();
    for number in 0..10 {
        let action = allowed(&mut client, &agent).await;
        let url = format!("https://localhost:{}/hook/{number}", hooks.address.port());
        let path = format!("/v1/actions/{action}/callback");
        let answer = client.post(&path, &agent.key, &json!({ "url": url })).await.ok();
        expected.insert(answer["id"].as_str().unwrap().to_owned());
    }
    // No host has more than four calls at once: six were never begun, and four will never be answered.
    let mut begun = Vec::new();
    for _ in 0..4 {
        begun.push(hooks.next().await);
    }
    first.kill().await;
    assert!(hooks.is_quiet());
    let second = serve(data.path()).await;
    let mut heard = BTreeSet::new();
    for _ in 0..10 {
        let call = hooks.next().await;
        assert!(call.is_signed_with(&[SECRET]));
        let id = call.json()["id"].as_str().unwrap().to_owned();
        for before in begun.iter().filter(|it| it.json()["id"] == *id) {
            assert_eq!((before.header("svc-event-id"), &before.body), (call.header("svc-event-id"), &call.body));
        }
        heard.insert(id);
    }
    assert_eq!(heard, expected);
    second.stop().await;
    let rows = rows_of(data.path());
    let jobs: Vec<_> = rows.iter().filter_map(|(.., record)| Job::peel(record)).collect();
    assert_eq!(jobs.len(), 10);
    assert!(jobs.iter().all(|it| matches!(it.state, JobState::Delivered { .. })), "{jobs:?}");
}

/// A gate that is embedded without a server keeps its calls until there is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_without_a_server_keeps_its_calls() {
    let data = tempfile::tempdir().unwrap();
    let agent = prepared(data.path()).await;
    let mut hooks = Receiver::start_tls().await;
    let gate = svc_store::Gate::open(data.path(), BASE_URL).unwrap();
    let handle = gate.agent(svc_store::AgentKey::parse(&agent.key).unwrap()).unwrap();
    let shop = ("Shop".parse().unwrap(), "shop.example.com".parse().unwrap());
    let amount = svc_core::Amount::new(100).unwrap();
    let request = svc_core::Request::payment("Pay", amount, "EUR".parse().unwrap(), shop).unwrap();
    let action = handle.authorize(request).unwrap().id();
    let url = UrlText::parse(&format!("https://localhost:{}/hook", hooks.address.port())).unwrap();
    let registered = gate.execute(RegisterCallback { caller: agent.caller, action, url }).unwrap();
    assert!(registered.job.is_some());
    gate.close();
    drop((handle, gate));
    assert!(hooks.is_quiet());
    let server = serve(data.path()).await;
    assert_eq!(hooks.next().await.json()["actionId"], json!(action));
    server.stop().await;
}
