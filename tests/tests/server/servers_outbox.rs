//! Two servers on one store look for the same calls to the outside: each call is made by one of them, and what one leaves undone
//! the other does.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::state::edge::{Job, JobState, LEASE};
use svc_core::state::gateway::{Call, CallState};
use svc_core::state::people::Role;
use svc_core::store::Row as _;
use svc_core::value::Span;
use svc_http::upstream::Allowed;
use svc_tests::client::{PATIENCE, bearer, request};
use svc_tests::desk::{CHAT, Desk, chat};
use svc_tests::mailbox::Mailbox;
use svc_tests::receiver::{self, Receiver, Reply, SECRET};
use svc_tests::requests::{WIDE, payment, payment_to, text};
use svc_tests::site::{Plan, Site};
use svc_tests::wire::Wire;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A server of several, whose calls may go to this machine.
fn several(plan: &mut Plan) {
    plan.wire = Some(Wire::new());
    plan.config.allow_private_callbacks = true;
}

fn jobs(site: &Site) -> Vec<Arc<Job>> {
    site.memory().dump().iter().filter_map(|(.., record)| Job::peel(record).cloned()).collect()
}

/// Waits until every call of the store is as `done` says, whichever server sees to it.
async fn until(sites: [&Site; 2], done: impl Fn(&Job) -> bool) {
    let is_so = || jobs(sites[0]).iter().all(|it| done(it));
    let mut changes = sites.map(|it| it.gate.changes());
    let [first, second] = &mut changes;
    let waited = async {
        while !is_so() {
            tokio::select! {
                _ = first.recv() => {}
                _ = second.recv() => {}
            }
        }
    };
    timeout(PATIENCE, waited).await.expect("calls come to their ends in time");
}

fn is_delivered(job: &Job) -> bool {
    matches!(job.state, JobState::Delivered { .. })
}

/// Callbacks and mails are sent once each though two servers look for them; and each is claimed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_servers_look_for_is_sent_once() {
    let (mut mailbox, mut hooks) = (Mailbox::start().await, Receiver::start().await);
    let first = Site::with(|plan| {
        several(plan);
        plan.config.mail = mailbox.config();
    });
    let first = first.await;
    let second = first.beside(|plan| {
        several_beside(plan);
        plan.config.mail = mailbox.config();
    });
    let second = second.await;
    receiver::connect(&first);
    let owner = first.member(Role::Owner);
    let (mut here, mut there) = (first.client().await, second.client().await);
    let integrations = format!("/api/w/{}/integrations", first.workspace());
    owner.ask(&mut here, "POST", &integrations, Some(&json!({ "kind": "mail" }))).await.made();
    let (pays, asks) = (first.agent(&[WIDE]), first.agent(&[]));
    let mut expected = BTreeSet::new();
    for number in 0..24 {
        let client = if number % 2 == 0 { &mut here } else { &mut there };
        let body = payment_to(100, &format!("m{number}.example.org"));
        let decision = client.authorize(&pays.key, &body).await.ok();
        let path = format!("/v1/actions/{}/callback", text(&decision["id"]));
        let url = json!({ "url": hooks.url(&format!("/hook/{number}")) });
        expected.insert(text(&client.post(&path, &pays.key, &url).await.ok()["id"]).to_owned());
    }
    for number in 0..3 {
        let body = payment_to(100, &format!("a{number}.example.org"));
        assert_eq!(there.authorize(&asks.key, &body).await.ok()["decision"], "approval_required");
    }
    let mut heard = BTreeSet::new();
    for _ in 0..24 {
        heard.insert(text(&hooks.next().await.json()["id"]).to_owned());
    }
    assert_eq!(heard, expected);
    // Two owners, three questions.
    let mails = mailbox.take(6).await;
    let told: BTreeSet<(Vec<String>, String)> =
        mails.iter().map(|it| (it.to.clone(), it.header("Subject").to_owned())).collect();
    assert_eq!(told.len(), 6, "{told:?}");
    until([&first, &second], |job| {
        is_delivered(job) || matches!(job.state, JobState::Replaced { .. }) || job.is_to_spread()
    })
    .await;
    let sent: Vec<_> = jobs(&first).into_iter().filter(|it| is_delivered(it) && !it.is_to_spread()).collect();
    assert_eq!(sent.len(), 30);
    assert!(sent.iter().all(|it| (it.claims, it.attempts.len()) == (1, 1)), "{sent:?}");
    assert!(hooks.is_quiet() && mailbox.is_empty());
    drop((here, there));
    first.audit();
    second.stop().await;
    first.stop().await;
}

fn several_beside(plan: &mut Plan) {
    plan.config.allow_private_callbacks = true;
}

/// An export that two servers follow comes whole, in its order and once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_two_servers_follow_comes_once() {
    let mut hooks = Receiver::start().await;
    let first = Site::with(several).await;
    let second = first.beside(several_beside).await;
    let (owner, agent) = (first.member(Role::Owner), first.agent(&[WIDE]));
    let (mut here, mut there) = (first.client().await, second.client().await);
    let body = json!({ "kind": "export", "secret": SECRET, "config": { "url": hooks.url("/in") } });
    let integrations = format!("/api/w/{}/integrations", first.workspace());
    owner.ask(&mut here, "POST", &integrations, Some(&body)).await.made();
    for number in 0..150 {
        let client = if number % 2 == 0 { &mut here } else { &mut there };
        client.authorize(&agent.key, &payment_to(100, &format!("m{number}.example.org"))).await.ok();
    }
    first.gate.tick().unwrap();
    let written = first.ledger();
    let begins = written.iter().position(|it| &*it.kind == "integration.created").unwrap();
    let wanted: Vec<String> = written[begins..].iter().map(|it| it.id.to_string()).collect();
    let mut came: Vec<String> = Vec::new();
    while came.len() < wanted.len() {
        let events: Vec<Value> = hooks.next().await.json().as_array().unwrap().clone();
        came.extend(events.iter().map(|it| text(&it["metadata"]["uid"]).to_owned()));
    }
    assert_eq!(came, wanted);
    until([&first, &second], is_delivered).await;
    assert!(jobs(&first).iter().all(|it| it.claims == 1));
    drop((here, there));
    second.stop().await;
    first.stop().await;
}

/// A server that is gone in the middle of its work holds none of it for longer than a lease: the other makes the calls that it had
/// claimed, the same event with the same body, and ends the model call that nobody tells the end of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_leaves_undone_the_other_does() {
    let mut hooks = Receiver::start().await;
    hooks.answer((0..2).map(|_| Reply::Silence));
    let mut desk = Desk::bare(several).await;
    receiver::connect(&desk.site);
    let upstream = desk.upstream("chat", "chat", &desk.mock.chat_url()).await;
    desk.model(&upstream, "m--hang", 50, 1, 2).await;
    let agent = desk.site.agent(&[WIDE]);
    for number in 0..2 {
        let body = payment_to(100, &format!("m{number}.example.org"));
        let decision = desk.client.authorize(&agent.key, &body).await.ok();
        let path = format!("/v1/actions/{}/callback", text(&decision["id"]));
        desk.client.post(&path, &agent.key, &json!({ "url": hooks.url("/hook") })).await.ok();
    }
    let begun = [hooks.next().await, hooks.next().await];
    let mut socket = TcpStream::connect(desk.site.address).await.unwrap();
    let key = bearer(&desk.key);
    let headers = [("authorization", &*key), ("connection", "close")];
    let body = chat("chat/m--hang").to_string();
    socket.write_all(&request("POST", CHAT, &headers, body.as_bytes())).await.unwrap();
    desk.mock.until(|it| it.requests == 1).await;
    let second = desk.site.beside(|plan| {
        several_beside(plan);
        plan.config.outbound.allow = Allowed::loopback();
    });
    let second = second.await;
    let workspace = desk.site.workspace();
    desk.site.kill().await;
    assert!(hooks.is_quiet(), "they are claimed still");
    second.shift(LEASE);
    let mut again = [hooks.next().await, hooks.next().await];
    again.sort_by_key(|it| it.header("svc-event-id") != begun[0].header("svc-event-id"));
    for (before, after) in begun.iter().zip(&again) {
        assert_eq!((before.header("svc-event-id"), &before.body), (after.header("svc-event-id"), &after.body));
    }
    until([&second, &second], is_delivered).await;
    assert!(jobs(&second).iter().all(|it| it.claims == 2));
    second.advance(Span::hours(24));
    let calls: Vec<Arc<Call>> = second.memory().dump().iter().filter_map(|(.., it)| Call::peel(it).cloned()).collect();
    assert!(calls.len() == 1 && !matches!(calls[0].state, CallState::Running { .. }), "{calls:?}");
    assert_eq!(second.workspace(), workspace);
    assert_eq!(second.client().await.authorize(&agent.key, &payment(300)).await.ok()["decision"], "allow");
    second.audit();
    second.stop().await;
}
