//! Callbacks over real sockets: what is sent, how it is signed, when it is sent again, and where nothing is ever sent.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::edge::deliver::find;
use svc_core::rules::edge::integrations::{NewSecret, RotateIntegration};
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::people::by::By;
use svc_core::state::edge::{Integration, Job, JobState, Trouble};
use svc_core::state::gate::Via;
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_core::value::id::{ApprovalId, CallbackId, DeliveryId};
use svc_http::Server;
use svc_http::config::{BaseUrl, Config};
use svc_tests::client::{Client, Got, PATIENCE};
use svc_tests::receiver::{self, Names, Receiver, Reply, SECRET, tls};
use svc_tests::requests::{WIDE, payment};
use svc_tests::site::{Agent, Site};
use tokio::time::timeout;

/// A site that may call loopback, and resolves names as it is told.
async fn site(ca: Option<PathBuf>) -> (Site, Arc<Names>) {
    let names = Names::new();
    let own = Arc::clone(&names);
    let site = Site::with(|plan| {
        plan.config.allow_private_callbacks = true;
        plan.config.outbound.ca_file = ca;
        plan.names = Some(own);
    })
    .await;
    receiver::connect(&site);
    (site, names)
}

/// A program's server that others reach is not begun where callbacks may go to private addresses, whatever its settings say of where it
/// listens; one on loopback is.
#[tokio::test]
async fn a_socket_that_others_reach_goes_with_no_private_callbacks() {
    let site = Site::start().await;
    let base_url = BaseUrl::parse("http://127.0.0.1:8080").unwrap();
    for (address, private, is_begun) in
        [("0.0.0.0:0", true, false), ("0.0.0.0:0", false, true), ("127.0.0.1:0", true, true)]
    {
        let listener = std::net::TcpListener::bind(address).unwrap();
        let config = Config { allow_private_callbacks: private, ..Config::default() };
        let begun = Server::new(listener, &config, &base_url, site.gate.clone());
        assert_eq!(begun.is_ok(), is_begun, "{address}, {private}");
        let told = begun.err().map(|it| it.to_string()).unwrap_or_default();
        assert!(is_begun || told.contains("loopback"), "{told}");
    }
}

/// An agent, and an action of it that is allowed.
async fn allowed(site: &Site, client: &mut Client) -> (Agent, String) {
    let agent = site.agent(&[WIDE]);
    let decision = client.authorize(&agent.key, &payment(100)).await.ok();
    (agent, decision["id"].as_str().unwrap().to_owned())
}

async fn register(client: &mut Client, agent: &Agent, action: &str, url: &str) -> Got {
    client.post(&format!("/v1/actions/{action}/callback"), &agent.key, &json!({ "url": url })).await
}

/// Registers, and gives the delivery's id.
async fn registered(client: &mut Client, agent: &Agent, action: &str, url: &str) -> DeliveryId {
    let answer = register(client, agent, action, url).await.ok();
    CallbackId::parse(answer["id"].as_str().unwrap()).unwrap().into()
}

/// The job once it is as `done` says.
async fn until(site: &Site, id: DeliveryId, done: impl Fn(&Job) -> bool) -> Arc<Job> {
    let mut changes = site.gate.changes();
    let wait = async {
        loop {
            if let Some(job) = site.gate.read(|scope| find(scope, id)).unwrap().filter(|it| done(it)) {
                return job;
            }
            let _ = changes.recv().await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{id} in time"))
}

/// What the first try came to.
async fn first_try(site: &Site, id: DeliveryId) -> Option<Trouble> {
    until(site, id, |job| !job.attempts.is_empty()).await.attempts[0].tried.error
}

fn is_delivered(job: &Job) -> bool {
    matches!(job.state, JobState::Delivered { .. })
}

/// A decided action is told at once: a POST of exactly these members, signed with the workspace's secret, and nothing of the
/// receipt in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decided_action_is_told_at_once() {
    let (site, _) = site(None).await;
    let (mut client, mut hooks) = (site.client().await, Receiver::start().await);
    let (agent, action) = allowed(&site, &mut client).await;
    let answer = register(&mut client, &agent, &action, &hooks.url("/hook?a=b")).await.ok();
    assert_eq!((&answer["state"], &answer["attempts"]), (&json!("waiting"), &json!(0)));
    let call = hooks.next().await;
    assert_eq!(call.line, "POST /hook?a=b HTTP/1.1");
    assert_eq!(call.header("host"), hooks.address.to_string());
    assert_eq!(call.header("content-type"), "application/json");
    assert!(call.is_signed_with(&[SECRET]), "{call:?}");
    let decision = client.read_action(&agent.key, &action).await.ok();
    let mut wanted = json!({ "id": answer["id"], "type": "action.decided", "actionId": action, "decision": "allow",
        "status": "allowed", "occurredAt": decision["decidedAt"] });
    if wanted["occurredAt"] == Value::Null {
        wanted["occurredAt"] = decision["createdAt"].clone();
    }
    assert_eq!(call.json(), wanted);
    let id = CallbackId::parse(answer["id"].as_str().unwrap()).unwrap().into();
    until(&site, id, is_delivered).await;
    assert!(call.header("svc-event-id").starts_with("dlv_"));
    site.stop().await;
}

/// Nobody is called while a person is asked; the person's word is what is told then, and the receipt is read by the agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_persons_decision_is_told() {
    let (site, _) = site(None).await;
    let (mut client, mut hooks) = (site.client().await, Receiver::start().await);
    let (agent, owner) = (site.agent(&[]), site.member(Role::Owner));
    for (choice, decision, status) in [(Choice::Approve, "allow", "allowed"), (Choice::Deny, "deny", "denied")] {
        let asked = client.authorize(&agent.key, &payment(100)).await.ok();
        let action = asked["id"].as_str().unwrap();
        let answer = register(&mut client, &agent, action, &hooks.url("/hook")).await.ok();
        assert_eq!(answer["state"], json!("waiting"));
        assert!(hooks.is_quiet());
        let approval = ApprovalId::parse(asked["approval"]["id"].as_str().unwrap()).unwrap();
        let (by, via) = (owner.signed, Via::Console);
        site.gate.execute(DecideApproval { via, ..DecideApproval::new(by, approval, choice) }).unwrap();
        let call = hooks.next().await;
        let told = call.json();
        assert_eq!((&told["actionId"], &told["id"]), (&asked["id"], &answer["id"]));
        assert_eq!((&told["decision"], &told["status"]), (&json!(decision), &json!(status)));
        let read = client.read_action(&agent.key, action).await.ok();
        assert_eq!((&told["occurredAt"], &told["status"]), (&read["approval"]["decidedAt"], &read["status"]));
        if let Some(receipt) = read["receipt"].as_str() {
            assert!(!String::from_utf8_lossy(&call.body).contains(receipt));
        }
        assert_eq!(read["receipt"].is_string(), choice == Choice::Approve);
    }
    site.audit();
    site.stop().await;
}

/// What is not answered with 2xx is sent again after a while: the same event, the same body, a new signature.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_again_until_somebody_takes_it() {
    let (site, _) = site(None).await;
    let (mut client, mut hooks) = (site.client().await, Receiver::start().await);
    hooks.answer([Reply::Status(500), Reply::Noise, Reply::Status(201)]);
    let (agent, action) = allowed(&site, &mut client).await;
    let id = registered(&mut client, &agent, &action, &hooks.url("/hook")).await;
    let first = hooks.next().await;
    assert_eq!(
        until(&site, id, |job| job.tries == 1 && job.attempts.len() == 1).await.attempts[0].tried.status,
        Some(500)
    );
    site.shift(Span::seconds(6));
    let second = hooks.next().await;
    until(&site, id, |job| job.attempts.len() == 2).await;
    site.shift(Span::seconds(36));
    let third = hooks.next().await;
    let job = until(&site, id, is_delivered).await;
    let errors: Vec<_> = job.attempts.iter().map(|it| it.tried.error).collect();
    assert_eq!(errors, [Some(Trouble::Answer), Some(Trouble::Protocol), None]);
    for call in [&second, &third] {
        assert_eq!((call.header("svc-event-id"), &call.body), (first.header("svc-event-id"), &first.body));
        assert!(call.is_signed_with(&[SECRET]) && call.signed_at() > first.signed_at());
    }
    site.stop().await;
}

/// A redirect is an answer like any other that is not 2xx: nobody follows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_not_followed() {
    let (site, _) = site(None).await;
    let (mut client, mut hooks, mut other) = (site.client().await, Receiver::start().await, Receiver::start().await);
    hooks.answer([Reply::Redirect(other.url("/there"))]);
    let (agent, action) = allowed(&site, &mut client).await;
    let id = registered(&mut client, &agent, &action, &hooks.url("/hook")).await;
    hooks.next().await;
    assert_eq!(first_try(&site, id).await, Some(Trouble::Redirect));
    assert!(other.is_quiet());
    site.stop().await;
}

/// A second registration takes the place of the first: whatever was still to be sent there is not sent any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_address_takes_the_place_of_the_first() {
    let (site, _) = site(None).await;
    let (mut client, mut first, mut second) = (site.client().await, Receiver::start().await, Receiver::start().await);
    first.answer([Reply::Status(503)]);
    let (agent, action) = allowed(&site, &mut client).await;
    let old = registered(&mut client, &agent, &action, &first.url("/hook")).await;
    first.next().await;
    until(&site, old, |job| matches!(job.state, JobState::Waiting { .. }) && job.tries == 1).await;
    let new = registered(&mut client, &agent, &action, &second.url("/hook")).await;
    site.shift(Span::hours(24));
    let call = second.next().await;
    assert_eq!(call.json()["id"].as_str().map(|it| it.replace("cbk_", "dlv_")), Some(new.to_string()));
    until(&site, new, is_delivered).await;
    assert!(matches!(until(&site, old, |_| true).await.state, JobState::Replaced { .. }) && first.is_quiet());
    site.stop().await;
}

/// While the secret rotates a call carries a signature by each, so a receiver may move at its leisure; after that by the new
/// one alone. Without an integration nothing is sent unsigned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotating_secret_signs_twice() {
    let (site, _) = site(None).await;
    let (mut client, mut hooks) = (site.client().await, Receiver::start().await);
    let integration: Arc<Integration> = site
        .gate
        .read(|scope| svc_core::rules::edge::integrations::all(scope, &By::Program, site.workspace()))
        .unwrap()[0]
        .clone();
    let next = "whsec_bmV4dG5leHRuZXh0bmV4dG5leHRuZXh0bmV4dG5leHQ";
    let sealed = site.gate.seal(&Integration::purpose(integration.slot), next.as_bytes()).unwrap();
    site.gate
        .execute(RotateIntegration {
            by: By::Program,
            workspace: site.workspace(),
            id: integration.id,
            secret: NewSecret { sealed: sealed.into(), hint: "leHQ".into() },
            overlap_hours: 1,
        })
        .unwrap();
    let (agent, action) = allowed(&site, &mut client).await;
    registered(&mut client, &agent, &action, &hooks.url("/hook")).await;
    assert!(hooks.next().await.is_signed_with(&[next, SECRET]));
    site.shift(Span::hours(1));
    registered(&mut client, &agent, &action, &hooks.url("/hook")).await;
    assert!(hooks.next().await.is_signed_with(&[next]));
    site.stop().await;

    let bare = Site::with(|plan| plan.config.allow_private_callbacks = true).await;
    let mut client = bare.client().await;
    let (agent, action) = allowed(&bare, &mut client).await;
    let id = registered(&mut client, &agent, &action, &hooks.url("/hook")).await;
    assert_eq!(first_try(&bare, id).await, Some(Trouble::Secret));
    assert!(hooks.is_quiet());
    bare.stop().await;
}

/// Over TLS a receiver is trusted whose certificate a root of `outbound.caFile` vouches for, and whose name it carries; the
/// name goes out as SNI and Host. Without that root, or under another name, no byte of the call is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_trusts_the_named_roots_alone() {
    let (site, names) = site(Some(tls("ca.pem"))).await;
    let (mut client, mut hooks) = (site.client().await, Receiver::start_tls().await);
    let port = hooks.address.port();
    names.set("hooks.example.com", &[&["127.0.0.1"]]);
    names.set("other.example.com", &[&["127.0.0.1"]]);
    let (agent, action) = allowed(&site, &mut client).await;
    let url = format!("https://hooks.example.com:{port}/hook");
    let id = registered(&mut client, &agent, &action, &url).await;
    let call = hooks.next().await;
    assert_eq!(call.header("host"), format!("hooks.example.com:{port}"));
    assert!(call.is_signed_with(&[SECRET]));
    until(&site, id, is_delivered).await;
    let id = registered(&mut client, &agent, &action, &format!("https://127.0.0.1:{port}/hook")).await;
    hooks.next().await;
    until(&site, id, is_delivered).await;
    let id = registered(&mut client, &agent, &action, &format!("https://other.example.com:{port}/hook")).await;
    assert_eq!(first_try(&site, id).await, Some(Trouble::Tls), "another name");
    site.stop().await;

    let (strict, names) = self::site(None).await;
    names.set("hooks.example.com", &[&["127.0.0.1"]]);
    let mut client = strict.client().await;
    let (agent, action) = allowed(&strict, &mut client).await;
    let id = registered(&mut client, &agent, &action, &url).await;
    assert_eq!(first_try(&strict, id).await, Some(Trouble::Tls), "nobody vouches for it");
    assert!(hooks.is_quiet());
    strict.stop().await;
}

/// A name that resolves to what may not be called, or to one such address among others, is not called; one that changes its
/// mind between registration and call, or from try to try, is judged by what is connected to, and asked once a try.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_judged_by_what_it_resolves_to() {
    let (site, names) = site(Some(tls("ca.pem"))).await;
    let (mut client, mut hooks) = (site.client().await, Receiver::start_tls().await);
    let (agent, action) = allowed(&site, &mut client).await;
    let port = hooks.address.port();
    let metadata: [&[&str]; 7] = [
        &["169.254.169.254"],
        &["::ffff:169.254.169.254"],
        &["64:ff9b::a9fe:a9fe"],
        &["2002:a9fe:a9fe::1"],
        &["fe80::1"],
        &["0.0.0.0"],
        &["127.0.0.1", "169.254.169.254"],
    ];
    for addresses in metadata {
        names.set("name.example.com", &[addresses]);
        let id = registered(&mut client, &agent, &action, &format!("https://name.example.com:{port}/")).await;
        assert_eq!(first_try(&site, id).await, Some(Trouble::Address), "{addresses:?}");
    }
    names.set("nobody.example.com", &[&[]]);
    for host in ["nobody.example.com", "unknown.example.com"] {
        let id = registered(&mut client, &agent, &action, &format!("https://{host}:{port}/")).await;
        assert_eq!(first_try(&site, id).await, Some(Trouble::Resolve), "{host}");
    }
    // First good, then not: had the second answer been connected to, it would have been the metadata address.
    hooks.answer([Reply::Status(500)]);
    names.set("hooks.example.com", &[&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.1"]]);
    let id = registered(&mut client, &agent, &action, &format!("https://hooks.example.com:{port}/")).await;
    assert_eq!(hooks.next().await.header("host"), format!("hooks.example.com:{port}"));
    assert_eq!(first_try(&site, id).await, Some(Trouble::Answer));
    site.shift(Span::seconds(6));
    let second = until(&site, id, |job| job.attempts.len() == 2).await;
    assert_eq!(second.attempts[1].tried.error, Some(Trouble::Address));
    assert_eq!(names.asked("hooks.example.com"), 2, "once a try");
    assert!(hooks.is_quiet());
    site.stop().await;
}

/// Without leave for private addresses, no name leads to them, nor to this machine by an address of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_leads_inside() {
    let names = Names::new();
    let own = Arc::clone(&names);
    let site = Site::with(|plan| plan.names = Some(own)).await;
    receiver::connect(&site);
    let (mut client, mut hooks) = (site.client().await, Receiver::start().await);
    let (agent, action) = allowed(&site, &mut client).await;
    for address in
        ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "::1", "fd00::1", "::ffff:127.0.0.1"]
    {
        names.set("name.example.com", &[&[address]]);
        let url = format!("https://name.example.com:{}/", hooks.address.port());
        let id = registered(&mut client, &agent, &action, &url).await;
        assert_eq!(first_try(&site, id).await, Some(Trouble::Address), "{address}");
    }
    assert!(hooks.is_quiet());
    site.stop().await;
}

/// A server never calls itself, whatever name it goes by.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_call_itself() {
    let (site, names) = site(None).await;
    let mut client = site.client().await;
    let (agent, action) = allowed(&site, &mut client).await;
    names.set("alias.example.com", &[&["127.0.0.1"]]);
    let port = site.address.port();
    for url in [format!("https://alias.example.com:{port}/"), format!("http://127.0.0.1:{port}/v1/verify")] {
        let id = registered(&mut client, &agent, &action, &url).await;
        assert_eq!(first_try(&site, id).await, Some(Trouble::Address), "{url}");
    }
    site.stop().await;
}

/// A receiver that never answers keeps no other waiting, and a server that stops does not wait for it longer than for anything
/// else; the call is still due when one starts again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_receiver_keeps_nobody_waiting() {
    let names = Names::new();
    let own = Arc::clone(&names);
    let site = Site::with(|plan| {
        plan.config.allow_private_callbacks = true;
        plan.config.timeouts.drain = std::time::Duration::from_millis(100);
        plan.names = Some(own);
    })
    .await;
    receiver::connect(&site);
    let (mut client, mut silent, mut quick) = (site.client().await, Receiver::start().await, Receiver::start().await);
    silent.answer((0..100).map(|_| Reply::Silence));
    let agent = site.agent(&[WIDE]);
    let mut held = Vec::new();
    for _ in 0..10 {
        let action = client.authorize(&agent.key, &payment(100)).await.ok()["id"].as_str().unwrap().to_owned();
        held.push(registered(&mut client, &agent, &action, &silent.url("/hook")).await);
    }
    silent.next().await;
    let action = client.authorize(&agent.key, &payment(100)).await.ok()["id"].as_str().unwrap().to_owned();
    let url = format!("http://[::ffff:127.0.0.1]:{}/hook", quick.address.port());
    let id = registered(&mut client, &agent, &action, &url).await;
    quick.next().await;
    until(&site, id, is_delivered).await;
    let gate = site.gate.clone();
    drop(client);
    site.stop().await;
    let due = |id: &DeliveryId| gate.read(|scope| find(scope, *id)).unwrap().unwrap().due().is_some();
    assert!(held.iter().all(due), "nothing was given up");
}
