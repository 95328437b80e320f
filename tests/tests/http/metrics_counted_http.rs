//! Metrics of what goes wrong: what is told before it happens, what others do behind the gate, and what a store that does not answer leaves
//! of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_cmp,
    reason = "a test may panic, and what is compared here was counted"
)]

use std::time::Duration;

use serde_json::json;
use svc_core::rules::edge::deliver::find;
use svc_core::rules::people::by::By;
use svc_core::rules::people::members::{InviteMember, MemberDone};
use svc_core::state::edge::{IntegrationKind, Job, JobState, LEASE, News, Work};
use svc_core::state::people::{Role, SignInLink};
use svc_core::value::digest::Digest;
use svc_core::value::id::{CallbackId, DeliveryId};
use svc_core::value::link::Index;
use svc_core::value::text::Email;
use svc_core::value::{Id as _, Span};
use svc_tests::client::{PATIENCE, bearer, request, until};
use svc_tests::desk::{CHAT, Desk, Hand, MESSAGES, chat, header_of, streamed};
use svc_tests::oauth::HOST;
use svc_tests::receiver::{self, Receiver};
use svc_tests::requests::{WIDE, payment};
use svc_tests::site::{Fault, Plan, Site};
use svc_tests::tool_desk::{TOOLS, ToolDesk, calling, told_on_the_way};
use svc_tests::tool_server::{Reply, Speaks};
use svc_tests::witness::Witness;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::metrics_http::{documented, read, sample};

fn counted(plan: &mut Plan) {
    plan.config.metrics = Some("127.0.0.1:0".parse().unwrap());
}

/// Reads the metrics until this sample is so many; the last of what was read.
async fn until_counted(site: &Site, name: &str, labels: &[&str], count: f64) -> String {
    let reading = async {
        loop {
            let text = read(site).await;
            if sample(&text, name, labels) == count {
                return text;
            }
        }
    };
    timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("{name} {labels:?} is not {count} in time"))
}

/// What few words are known of is told as zero before anything has happened, and of a model before its first call has ended: of a
/// counter that is not there before nobody sees the first event as an increase.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_come_is_told_before_it_comes() {
    let mut desk = Desk::bare(counted).await;
    let text = read(&desk.site).await;
    for kind in ["not_ready", "internal", "upstream_failure", "rate_limited", "budget_exhausted"] {
        assert_eq!(sample(&text, "svc_refusals_total", &[&format!(r#"type="{kind}""#)]), 0.0);
    }
    for kind in ["callbacks", "chat", "export", "mail", "slack"] {
        let kind = format!(r#"kind="{kind}""#);
        assert_eq!(sample(&text, "svc_deliveries_total", &[&kind, r#"end="failed""#]), 0.0);
    }
    assert_eq!(sample(&text, "svc_scrapes_incomplete_total", &[]), 0.0);
    let provider = Hand::new();
    let id = desk.upstream("hand", "messages", &provider.url()).await;
    desk.model(&id, "large-1", 80, 3, 15).await;
    let client = desk.begin(CHAT, &[], &streamed("hand/large-1")).await;
    let asked = provider.asked().await;
    let text = read(&desk.site).await;
    let of = [r#"provider="hand""#, r#"model="large-1""#];
    for end in ["done", "hung_up", "cut", "refused", "failed", "lapsed"] {
        assert_eq!(sample(&text, "svc_model_calls_total", &[of[0], of[1], &format!(r#"end="{end}""#)]), 0.0);
    }
    for error in ["unreachable", "timeout", "rate_limited", "status"] {
        assert_eq!(sample(&text, "svc_model_tries_failed_total", &[of[0], of[1], &format!(r#"error="{error}""#)]), 0.0);
    }
    drop(client);
    asked.let_go().await;
    documented(&text);
}

/// A call that nobody ends is counted as it lapses, with what it is charged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_lapses_is_counted() {
    let mut desk = Desk::bare(counted).await;
    let chat = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &chat).await;
    desk.model(&id, "good-1--stall-3", 80, 3, 15).await;
    let mut socket = desk.begin(CHAT, &[], &streamed("chat/good-1--stall-3")).await;
    let id = header_of(&until(&mut socket, "data: ").await, "x-svc-call-id").unwrap();
    desk.site.advance(Span::minutes(17));
    let call = desk.call(&id).await;
    assert_eq!(call["end"], json!("lapsed"), "{call}");
    let text = until_counted(&desk.site, "svc_model_calls_total", &[r#"end="lapsed""#], 1.0).await;
    let cost = sample(&text, "svc_model_cost_micro_usd_total", &[r#"provider="chat""#]);
    assert!(cost > 0.0 && call["costMicros"].as_f64() == Some(cost), "{call} {text}");

    // Its end comes after all: it stays one call, which is charged no second time.
    drop(socket);
    let text = until_counted(&desk.site, "svc_model_overhead_seconds_count", &[], 1.0).await;
    let call = desk.call(&id).await;
    assert_eq!(call["end"], json!("hung_up"), "{call}");
    let ended = |end: &str| sample(&text, "svc_model_calls_total", &[&format!(r#"end="{end}""#)]);
    assert_eq!((ended("lapsed"), ended("hung_up")), (1.0, 0.0), "{text}");
    let told = sample(&text, "svc_model_cost_micro_usd_total", &[r#"provider="chat""#]);
    assert_eq!(told, call["costMicros"].as_f64().unwrap().max(cost), "{call}");
}

/// Where a call went on from a try that was charged, lapses, and ends after all, neither that try nor what has no price is counted a
/// second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_end_counts_nothing_twice() {
    let mut desk = Desk::bare(counted).await;
    let url = desk.mock.chat_url();
    let prices = json!({ "input": 3_000_000, "output": 15_000_000 });
    for (provider, model, more) in [
        ("bad", "bad-1--body-html--type-html", json!({ "aliases": ["late"], "prices": prices })),
        ("good", "good-1--stall-3", json!({ "aliases": ["late"] })),
    ] {
        let id = desk.upstream(provider, "chat", &url).await;
        desk.model_with(&id, model, more).await;
    }
    let mut socket = desk.begin(CHAT, &[], &streamed("late")).await;
    until(&mut socket, "data: ").await;
    desk.site.advance(Span::minutes(17));
    let text =
        until_counted(&desk.site, "svc_model_calls_total", &[r#"provider="good""#, r#"end="lapsed""#], 1.0).await;
    let told = |text: &str| {
        let cost = sample(text, "svc_model_cost_micro_usd_total", &[r#"provider="bad""#]);
        (cost, sum(text, "svc_model_calls_unpriced_total"), sum(text, "svc_model_calls_total"))
    };
    let lapsed = told(&text);
    assert!(lapsed.0 > 0.0 && (lapsed.1, lapsed.2) == (1.0, 1.0), "{text}");
    drop(socket);
    let text = until_counted(&desk.site, "svc_model_overhead_seconds_count", &[], 1.0).await;
    assert_eq!(told(&text), lapsed, "{text}");
}

/// Where the store does not take a call's end, its client has the answer all the same, and the end is kept and counted once the
/// store is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_is_kept_once_the_store_is_back() {
    let mut desk = Desk::with(counted).await;
    desk.mock.turn("head-1000").unwrap();
    let mut socket = desk.begin(CHAT, &[], &chat("chat/large-1")).await;
    desk.mock.until(|it| it.requests == 1).await;
    desk.site.fault.set(Fault::Unavailable);
    let heard = until(&mut socket, "usage").await;
    assert!(heard.starts_with("HTTP/1.1 200") && header_of(&heard, "x-svc-cost-micros").is_none(), "{heard}");
    assert_eq!(sample(&read(&desk.site).await, "svc_model_calls_total", &[r#"model="large-1""#, r#"end="done""#]), 0.0);
    desk.site.fault.set(Fault::None);
    let text = until_counted(&desk.site, "svc_model_calls_total", &[r#"model="large-1""#, r#"end="done""#], 1.0).await;
    let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
    let cost = sample(&text, "svc_model_cost_micro_usd_total", &[r#"provider="chat""#]);
    assert_eq!((&call["end"], call["costMicros"].as_f64()), (&json!("done"), Some(cost)), "{call}");
}

/// What a client takes to send its body is no time of the gate's: it is in how long the call took, and in nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_an_upload_is_not_the_gates() {
    const WAIT: Duration = Duration::from_secs(1);
    let mut desk = Desk::with(counted).await;
    let body = chat("chat/large-1").to_string();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: svc\r\nauthorization: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        bearer(&desk.key),
        body.len()
    );
    let mut socket = TcpStream::connect(desk.site.address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let early = timeout(WAIT, socket.read_u8()).await;
    assert!(early.is_err(), "nothing is answered before the body is there: {early:?}");
    socket.write_all(body.as_bytes()).await.unwrap();
    let mut heard = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut heard)).await.unwrap().unwrap();
    let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
    let (took, own) = (call["durationMs"].as_u64().unwrap(), call["overheadMs"].as_u64().unwrap());
    assert!(took >= own + 900, "{call}");
    let overhead = sample(&read(&desk.site).await, "svc_model_overhead_seconds_sum", &[]);
    assert!(overhead * 1e3 + 900.0 <= call["durationMs"].as_f64().unwrap() + 100.0, "{overhead} {call}");
}

/// A store that does not read leaves what it would have told out, and is counted; what was counted is told all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_left_out() {
    let mut desk = Desk::with(counted).await;
    desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    desk.chat("chat/large-1").await.ok();
    let told = |text: &str| ["svc_deliveries_waiting ", "svc_budget_used_ratio{"].map(|it| text.contains(it));
    assert_eq!(told(&read(&desk.site).await), [true, true]);
    desk.site.fault.set(Fault::Load);
    let text = read(&desk.site).await;
    assert_eq!(told(&text), [false, false], "{text}");
    assert_eq!(sample(&text, "svc_scrapes_incomplete_total", &[]), 1.0);
    assert_eq!(sample(&text, "svc_model_calls_total", &[r#"end="done""#]), 1.0);
    desk.site.fault.set(Fault::None);
    let text = read(&desk.site).await;
    assert_eq!((told(&text), sample(&text, "svc_scrapes_incomplete_total", &[])), ([true, true], 1.0));
    documented(&text);
}

/// A store that hangs holds up no reader of metrics for longer than a moment, and one thread, however often is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_hangs_holds_up_no_reader() {
    let (witness, mut held) = Witness::holding(Index::Workspaces);
    let site = Site::with(|plan| {
        counted(plan);
        plan.witness = witness;
    })
    .await;
    for count in [1.0, 2.0] {
        let text = read(&site).await;
        held.begun().await;
        assert!(!text.contains("svc_deliveries_waiting ") && text.ends_with("# EOF\n"), "{text}");
        assert_eq!(sample(&text, "svc_scrapes_incomplete_total", &[]), count);
        assert_eq!(sample(&text, "svc_queue_depth", &[r#"lane="0""#]), 0.0);
    }
    // It was held for as long.
    held.release();
    until_counted(&site, "svc_deliveries_waiting", &[], 0.0).await;
    site.stop().await;
}

/// A try that fails is counted with the model that it went to, by what went wrong, whoever answers then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tries_that_fail_are_counted_by_what_went_wrong() {
    let mut desk = Desk::bare(counted).await;
    let url = desk.mock.chat_url();
    let cases = [
        ("status-503", "status"),
        ("status-429", "rate_limited"),
        ("status-401", "credential"),
        ("body-html--type-html", "unreadable"),
    ];
    let mut count = 0.0;
    for (knob, error) in cases {
        let bad = format!("bad-1--{knob}");
        for (provider, model) in [("bad", &*bad), ("good", "good-1")] {
            let id = desk.upstream(&format!("{provider}-{error}").replace('_', "-"), "chat", &url).await;
            desk.model_with(&id, model, json!({ "aliases": [error] })).await;
        }
        desk.chat(error).await.ok();
        count += 1.0;
        let text = read(&desk.site).await;
        let labels = [format!(r#"model="{bad}""#), format!(r#"error="{error}""#)];
        assert_eq!(sample(&text, "svc_model_tries_failed_total", &[&labels[0], &labels[1]]), 1.0, "{text}");
        assert_eq!(sum(&text, "svc_model_tries_failed_total"), count, "{text}");
    }
    // So is an answer that breaks off.
    let id = desk.upstream("short", "chat", &url).await;
    desk.model(&id, "short-1--cut-3", 80, 3, 15).await;
    desk.stream(CHAT, &[], &streamed("short/short-1--cut-3")).await;
    let labels = [r#"provider="short""#, r#"error="closed""#];
    until_counted(&desk.site, "svc_model_tries_failed_total", &labels, 1.0).await;
}

/// A model in whose API the request has no form was not tried: it is counted as none that failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_form_is_no_try() {
    let mut desk = Desk::with(counted).await;
    // In shadow a call goes to whatever has the name.
    let mut body = chat("large-1");
    body["top_k"] = json!(5);
    let got = desk.send(MESSAGES, &[], body.to_string().as_bytes()).await;
    assert_eq!(desk.call_of(&got).await["attempts"].as_array().map(Vec::len), Some(2), "both are told of");
    got.ok();
    let text = read(&desk.site).await;
    assert_eq!(sum(&text, "svc_model_tries_failed_total"), 0.0, "{text}");
}

/// All samples of that name together.
fn sum(text: &str, name: &str) -> f64 {
    let lines = text.lines().filter(|it| it.starts_with(name));
    lines.map(|it| it.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Calls to the outside are counted by what came of each try: put off, given up with the last, delivered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_are_counted_by_what_came_of_them() {
    let site = Site::with(|plan| {
        counted(plan);
        plan.config.allow_private_callbacks = true;
    })
    .await;
    receiver::connect(&site);
    let (mut client, hooks, agent) = (site.client().await, Receiver::start().await, site.agent(&[WIDE]));
    hooks.answer((0..100).map(|_| receiver::Reply::Status(500)));
    let mut register = async |url: String| {
        let action = client.authorize(&agent.key, &payment(100)).await.ok()["id"].as_str().unwrap().to_owned();
        client.post(&format!("/v1/actions/{action}/callback"), &agent.key, &json!({ "url": url })).await.ok();
    };
    let of = |end: &'static str| [r#"kind="callbacks""#, end];
    register(hooks.url("/hook")).await;
    let (mut tries, failed) = (0.0, of(r#"end="failed""#));
    loop {
        tries += 1.0;
        let tried = async {
            loop {
                let text = read(&site).await;
                let [off, gone] = [of(r#"end="put_off""#), failed].map(|it| sample(&text, "svc_deliveries_total", &it));
                if off + gone == tries {
                    return gone;
                }
            }
        };
        if timeout(PATIENCE, tried).await.unwrap() == 1.0 {
            break;
        }
        site.shift(Span::hours(48));
    }
    assert!(tries > 2.0, "it was tried {tries} times");
    let good = Receiver::start().await;
    register(good.url("/hook")).await;
    let text = until_counted(&site, "svc_deliveries_total", &of(r#"end="delivered""#), 1.0).await;
    assert_eq!(sample(&text, "svc_deliveries_total", &failed), 1.0);
    documented(&text);
}

/// A call to the outside whose last try never came back is counted as given up; what comes of a try that is another's by then is none of
/// its call's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_that_was_lost_is_counted_once() {
    let site = Site::with(|plan| {
        counted(plan);
        plan.config.allow_private_callbacks = true;
    })
    .await;
    receiver::connect(&site);
    let (mut client, agent, listener) =
        (site.client().await, site.agent(&[WIDE]), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let mut register = async |url: String| -> DeliveryId {
        let action = client.authorize(&agent.key, &payment(100)).await.ok()["id"].as_str().unwrap().to_owned();
        let made =
            client.post(&format!("/v1/actions/{action}/callback"), &agent.key, &json!({ "url": url })).await.ok();
        CallbackId::parse(made["id"].as_str().unwrap()).unwrap().into()
    };
    let id = register(format!("http://{}/hook", listener.local_addr().unwrap())).await;
    let (mut stream, _) = listener.accept().await.unwrap();
    let tried = site.gate.read(|scope| find(scope, id)).unwrap().unwrap();
    site.plant(Job { claims: tried.claims + 1, state: JobState::Failed { at: site.now() }, ..Job::clone(&tried) });
    stream.write_all(b"HTTP/1.1 204 It\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    let good = Receiver::start().await;
    register(good.url("/hook")).await;
    let of = |end: &'static str| [r#"kind="callbacks""#, end];
    let text = until_counted(&site, "svc_deliveries_total", &of(r#"end="delivered""#), 1.0).await;
    assert_eq!(sample(&text, "svc_deliveries_total", &of(r#"end="failed""#)), 0.0);
    let state = JobState::Sending { since: site.now(), until: site.now().plus(LEASE) };
    site.plant(Job { id: DeliveryId::from_bits(9), tries: u8::MAX, state, ..Job::clone(&tried) });
    site.shift(LEASE);
    until_counted(&site, "svc_deliveries_total", &of(r#"end="failed""#), 1.0).await;
}

/// A message that lapsed before it was sent is counted as given up, as the ledger tells of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_lapsed_is_counted_as_given_up() {
    let site = Site::with(counted).await;
    let (workspace, token) = (site.workspace(), Digest::of("link"));
    let (by, email, role) = (By::Program, Email::parse("next@example.com").unwrap(), Role::Member);
    let invite = InviteMember { workspace, by, email, name: None, role, teams: None, token, mailed: None };
    let MemberDone::Done { principal, .. } = site.gate.submit(invite).await.unwrap() else { panic!("it asks nobody") };
    let news = News::Invited { principal: principal.id, link: Some(SignInLink::id_of(&token)), token: None };
    let work = Work::Message { news, over: IntegrationKind::Mail, to: Some(principal.id) };
    site.plant(Job::without_url(DeliveryId::from_bits(9), workspace, work, site.now()));
    let of = [r#"kind="mail""#, r#"end="failed""#];
    until_counted(&site, "svc_deliveries_total", &of, 1.0).await;
    assert_eq!(site.ledger().iter().filter(|it| &*it.kind == "delivery.failed").count(), 1);
}

/// Calls of tools of an MCP server are counted by what came of them, and those under way apart from calls of models.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_tools_are_counted_apart() {
    let mut desk = ToolDesk::over(Speaks::Modern, TOOLS, counted).await;
    desk.server(json!({})).await;
    let server = r#"server="crm""#;
    desk.server.reply(Reply::Stalled(vec![told_on_the_way("begun")]));
    let mut socket = desk.begin(&desk.agent.key, &calling("read_one", json!({}))).await;
    until(&mut socket, "notifications/progress").await;
    let text = read(&desk.site).await;
    assert_eq!(sample(&text, "svc_mcp_calls_running", &[]), 1.0);
    assert_eq!(sample(&text, "svc_model_calls_running", &[]), 0.0, "{text}");
    for end in ["done", "tool_error", "rejected", "failed", "busy", "cut", "hung_up"] {
        assert_eq!(sample(&text, "svc_mcp_calls_total", &[server, &format!(r#"end="{end}""#)]), 0.0, "{end}");
    }
    drop(socket);
    until_counted(&desk.site, "svc_mcp_calls_total", &[server, r#"end="hung_up""#], 1.0).await;
    for (reply, end) in [
        (Reply::Text("well".to_owned()), "done"),
        (Reply::Result(json!({ "content": [], "isError": true })), "tool_error"),
        (Reply::Error(-32_602, "no".to_owned()), "rejected"),
        (Reply::Status(500), "failed"),
    ] {
        desk.server.reply(reply);
        desk.call("read_one", json!({})).await;
        let end = format!(r#"end="{end}""#);
        assert_eq!(sample(&read(&desk.site).await, "svc_mcp_calls_total", &[server, &end]), 1.0, "{end}");
    }
    // One that tells not even its tools gives no result either.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = json!({ "name": "gone", "url": format!("http://{closed}/mcp") });
    desk.api("POST", "mcp-servers", Some(&gone)).await.made();
    let key = desk.agent.key.clone();
    desk.send_to("gone", &key, &calling("read_one", json!({})), &[]).await.ok();
    let lost = [r#"server="gone""#, r#"end="failed""#];
    assert_eq!(sample(&read(&desk.site).await, "svc_mcp_calls_total", &lost), 1.0);
    desk.server.reply(Reply::Stalled(vec![told_on_the_way("begun")]));
    let mut socket = desk.begin(&desk.agent.key, &calling("read_one", json!({}))).await;
    until(&mut socket, "notifications/progress").await;
    desk.freeze();
    let text = until_counted(&desk.site, "svc_mcp_calls_total", &[server, r#"end="cut""#], 1.0).await;
    documented(&text);
}

/// A call that a person has approved, and that cannot be sent, is counted as one that failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_call_that_is_not_sent_is_counted() {
    const ASKING: &str =
        r#"{"name":"Ask","actions":["mcp.call"],"limits":{"count":{"max":1,"period":"day"},"onLimit":"ask"}}"#;
    let mut desk = ToolDesk::over(Speaks::Modern, ASKING, counted).await;
    desk.server(json!({})).await;
    desk.call("read_one", json!({ "id": "0" })).await;
    desk.call("read_one", json!({ "id": "1" })).await;
    let waiting = desk.api("GET", "approvals?state=waiting", None).await.ok();
    let approve = format!("approvals/{}/approve", waiting["data"][0]["id"].as_str().unwrap());
    desk.api("POST", &approve, Some(&json!({}))).await.ok();
    desk.server.leave().await;
    desk.call("read_one", json!({ "id": "1" })).await;
    let text = read(&desk.site).await;
    assert_eq!(sample(&text, "svc_mcp_calls_total", &[r#"server="crm""#, r#"end="failed""#]), 1.0, "{text}");
}

/// What a page refuses is counted by its type like any other refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_of_pages_are_counted() {
    let site = Site::with(counted).await;
    let mut client = site.client().await;
    let sso = format!("/api/sign-in/sso/{}", site.workspace());
    let mut count = 0.0;
    for path in ["/oauth/authorize?client_id=nobody", &sso, &format!("{sso}/callback?code=a&state=b")] {
        let got = client.ask("GET", path, &[("host", HOST), ("accept", "text/html")], b"").await;
        assert!(got.status >= 400 && got.header("content-type").unwrap().starts_with("text/html"), "{path} {got:?}");
        count += 1.0;
        let text = read(&site).await;
        assert_eq!(sum(&text, "svc_refusals_total"), count, "{path} {text}");
    }
    site.stop().await;
}

/// What is no request that can be read is answered, and counted, beside those that no route has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_read_is_counted() {
    let site = Site::with(counted).await;
    let headers: String = (0..120).map(|it| format!("x-{it}: a\r\n")).collect();
    for (head, status, kind) in [
        (format!("GET /healthz HTTP/1.1\r\n{headers}\r\n"), 431, "headers_too_large"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400, "invalid_request"),
    ] {
        let mut socket = TcpStream::connect(site.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        let heard = until(&mut socket, "\r\n\r\n").await;
        assert!(heard.starts_with(&format!("HTTP/1.1 {status}")), "{heard}");
        let text = read(&site).await;
        let route = [r#"route="none""#.to_owned(), format!(r#"status="{status}""#)];
        assert_eq!(sample(&text, "svc_requests_total", &[&route[0], &route[1]]), 1.0, "{text}");
        assert_eq!(sample(&text, "svc_refusals_total", &[&format!(r#"type="{kind}""#)]), 1.0);
    }
    site.stop().await;
}

/// Whoever finds no place for a connection is counted as refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_turned_away_is_counted() {
    let mut desk = Desk::bare(|plan| {
        counted(plan);
        plan.config.limits.connections = 1;
    })
    .await;
    let provider = Hand::new();
    let id = desk.upstream("hand", "messages", &provider.url()).await;
    desk.model(&id, "large-1", 80, 3, 15).await;
    let (key, body) = (bearer(&desk.key), streamed("hand/large-1").to_string());
    let headers = [("host", HOST), ("authorization", &*key)];
    desk.client.send(&request("POST", CHAT, &headers, body.as_bytes())).await;
    let asked = provider.asked().await;
    let mut has_none = desk.begin(CHAT, &[], &streamed("hand/large-1")).await;
    let heard = until(&mut has_none, "\r\n\r\n").await;
    assert!(heard.starts_with("HTTP/1.1 503"), "{heard}");
    let text = read(&desk.site).await;
    assert_eq!(sample(&text, "svc_refusals_total", &[r#"type="not_ready""#]), 1.0);
    drop(desk);
    asked.let_go().await;
}
