//! Metrics: read at a listener of their own, counting what happened and telling what stands, without a text of anybody.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_cmp,
    reason = "a test may panic, and what is compared here was written by the same formula"
)]

use serde_json::{Value, json};
use svc_core::state::people::{KeyScope, Role};
use svc_core::value::Span;
use svc_http::mock::Mock;
use svc_http::upstream::Allowed;
use svc_tests::client::Client;
use svc_tests::desk::{Desk, streamed};
use svc_tests::oauth::{code, connect, exchange, public, refresh};
use svc_tests::people::Person;
use svc_tests::requests::{OFFICE, payment_to};
use svc_tests::site::Site;

async fn site() -> Site {
    Site::with(|plan| {
        plan.config.outbound.allow = Allowed::loopback();
        plan.config.metrics = Some("127.0.0.1:0".parse().unwrap());
    })
    .await
}

pub(crate) async fn read(site: &Site) -> String {
    let mut client = Client::connect(site.metrics.unwrap()).await;
    let got = client.try_ask("GET", "/metrics", &[], b"").await.unwrap();
    assert_eq!(got.status, 200);
    let kind = got.header("content-type").unwrap().to_owned();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    got.text()
}

/// The sample of that name whose labels, in braces behind it, have all of these.
pub(crate) fn sample(text: &str, name: &str, labels: &[&str]) -> f64 {
    let is_it = |line: &&str| {
        let (of, _) = line.rsplit_once(' ').unwrap_or_default();
        of.split('\x7b').next() == Some(name) && labels.iter().all(|it| of.contains(it))
    };
    let line = text.lines().find(is_it).unwrap_or_else(|| panic!("no {name} {labels:?} in\n{text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

async fn model(site: &Site, mock: &Mock, owner: &Person, client: &mut Client) {
    let path = |rest: &str| format!("/api/w/{}/{rest}", site.workspace());
    let upstream = json!({ "name": "chat", "kind": "chat", "baseUrl": mock.chat_url(), "apiKey": "sk-planted-abcd", "jurisdiction": "eu" });
    let upstream = owner.ask(client, "POST", &path("upstreams"), Some(&upstream)).await.made()["id"].clone();
    let model = json!({
        "id": "large-1", "upstreamId": upstream, "quality": 80, "contextWindow": 200_000, "maxOutput": 1_000,
        "capabilities": ["tools", "streaming"], "prices": { "input": 3_000_000, "output": 15_000_000 },
    });
    owner.ask(client, "POST", &path("models"), Some(&model)).await.made();
    let budget = json!({ "scope": { "kind": "workspace" }, "amount": 1_000_000, "period": "day", "ladder": [{ "at": 100, "step": "stop" }] });
    owner.ask(client, "POST", &path("budgets"), Some(&budget)).await.made();
}

/// Decisions, refusals, calls with tokens, cost and time, and where a budget stands: each is there, and is what happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_is_counted() {
    let site = site().await;
    let mock = Mock::remembering(std::net::TcpListener::bind("127.0.0.1:0").unwrap(), 10).unwrap();
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let (mut client, key) = (site.client().await, site.key(KeyScope::Inference));
    model(&site, &mock, &owner, &mut client).await;

    let text = read(&site).await;
    for decision in ["allow", "deny", "approval_required"] {
        assert_eq!(sample(&text, "svc_decisions_total", &[&format!(r#"decision="{decision}""#)]), 0.0);
    }
    for by in [r#"by="reuse""#, r#"by="code_reuse""#] {
        assert_eq!(sample(&text, "svc_connections_reused_total", &[by]), 0.0);
    }

    let asked = client.authorize(&agent.key, &payment_to(100, "shop.example")).await;
    assert_eq!(asked.ok()["decision"], "allow");
    assert_eq!(client.authorize(&agent.key, &json!({})).await.status, 400);

    let body =
        json!({ "model": "large-1", "messages": [{ "role": "user", "content": "planted-prompt" }], "max_tokens": 50 });
    let got = client.post("/v1/chat/completions", &key, &body).await;
    let cost: f64 = got.header("x-svc-cost-micros").unwrap().parse().unwrap();
    let used: Value = got.ok()["usage"].clone();

    let text = read(&site).await;
    is_what_happened(&text, cost, &used);
    documented(&text);
    // Types of errors have `task_` in them.
    for secret in ["planted", "Shop", "shop.example", "sk-", &key[..12], &agent.key[..12], "owner@"] {
        assert!(!text.contains(secret), "{secret} in\n{text}");
    }
    site.stop().await;
}

/// One decision that allows, one bad request, one call of `cost` micros that used `used`.
fn is_what_happened(text: &str, cost: f64, used: &Value) {
    assert_eq!(sample(text, "svc_decisions_total", &[r#"decision="allow""#]), 1.0);
    assert_eq!(sample(text, "svc_refusals_total", &[r#"type="invalid_request""#]), 1.0);
    let route = r#"route="/v1/actions/authorize""#;
    assert_eq!(sample(text, "svc_requests_total", &[route, r#"status="200""#]), 1.0);
    assert_eq!(sample(text, "svc_requests_total", &[route, r#"status="400""#]), 1.0);
    let of = [r#"provider="chat""#, r#"model="large-1""#];
    assert_eq!(sample(text, "svc_model_calls_total", &[of[0], of[1], r#"end="done""#]), 1.0);
    assert_eq!(sample(text, "svc_model_cost_micro_usd_total", &of), cost);
    let input = sample(text, "svc_model_tokens_total", &[of[0], of[1], r#"kind="input""#]);
    assert_eq!(Some(input), used["prompt_tokens"].as_f64());
    assert_eq!(sample(text, "svc_model_overhead_seconds_count", &[]), 1.0);
    let overhead = sample(text, "svc_model_overhead_seconds_sum", &[]);
    let took = sample(text, "svc_request_time_seconds_sum", &[r#"route="/v1/chat/completions""#]);
    assert!(overhead > 0.0 && overhead <= took, "{overhead} of {took}");
    assert!(!text.contains("svc_model_first_token_seconds_count"), "a whole answer tells of no first token: {text}");
    assert_eq!(sample(text, "svc_budget_used_ratio", &[r#"scope="workspace""#]), cost / 1e6);
    assert_eq!(sample(text, "svc_queue_depth", &[r#"lane="0""#]), 0.0);
    assert_eq!(sample(text, "svc_model_calls_running", &[]), 0.0);
    assert_eq!(sample(text, "svc_deliveries_waiting", &[]), 0.0);
    assert!(text.ends_with("# EOF\n"));
}

/// Of first tokens streams alone tell: what a whole answer has is when its head came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_alone_tells_of_its_first_token() {
    let mut desk = Desk::with(|plan| plan.config.metrics = Some("127.0.0.1:0".parse().unwrap())).await;
    let whole = desk.chat("chat/large-1").await;
    whole.ok();
    let call = desk.call(whole.header("x-svc-call-id").unwrap()).await;
    assert!(call["firstTokenMs"].is_u64() && call["stream"] == json!(false), "{call}");
    assert!(!read(&desk.site).await.contains("svc_model_first_token_seconds_count"));
    let heard = desk.stream("/v1/chat/completions", &[], &streamed("chat/large-1")).await;
    assert!(heard.contains("data: [DONE]"), "{heard}");
    let text = read(&desk.site).await;
    assert_eq!(sample(&text, "svc_model_first_token_seconds_count", &[r#"provider="chat""#]), 1.0);
    documented(&text);
    desk.site.stop().await;
}

/// A connection that ends because something of it was shown twice is counted once, by what that was; its record says to
/// connect again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_end_by_reuse_are_counted() {
    let site = site().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let (mut client, agent) = (site.client().await, agent.id.to_string());
    let id = public(&mut client).await;
    let pair = connect(&mut client, &owner, &id, &agent).await;
    assert_eq!(refresh(&mut client, &id, &pair.refresh).await.status, 200);
    for _ in 0..3 {
        assert_eq!(refresh(&mut client, &id, &pair.refresh).await.status, 400);
    }
    // Ids of one instant have no order.
    site.shift(Span::millis(1));
    let code = code(&mut client, &owner, &id, &agent).await;
    assert_eq!(exchange(&mut client, &id, &code, &[]).await.status, 200);
    for _ in 0..2 {
        assert_eq!(exchange(&mut client, &id, &code, &[]).await.status, 400);
    }
    assert_eq!(refresh(&mut client, &id, "art_unknown").await.status, 400);
    let text = read(&site).await;
    for by in [r#"by="reuse""#, r#"by="code_reuse""#] {
        assert_eq!(sample(&text, "svc_connections_reused_total", &[by]), 1.0, "{text}");
    }
    documented(&text);
    let path = format!("/api/w/{}/connections", site.workspace());
    let listed = owner.ask(&mut client, "GET", &path, None).await.ok()["data"].clone();
    for (place, by) in ["code_reuse", "reuse"].into_iter().enumerate() {
        let shown = &listed[place];
        assert_eq!((&shown["state"], &shown["endedBy"]), (&json!("ended"), &json!(by)));
        assert!(shown["note"].as_str().unwrap().contains("connect again"), "{shown}");
    }
    site.stop().await;
}

/// What a failed try is charged counts with the provider and the model that it went to, as it does in reports, and so does that it used
/// something without a price: not with whoever answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_try_counts_with_its_own_model() {
    let mut desk = Desk::bare(|plan| plan.config.metrics = Some("127.0.0.1:0".parse().unwrap())).await;
    let url = desk.mock.chat_url();
    // Each answer of the first model of an alias is paid for and cannot be passed on.
    let prices = json!({ "input": 3_000_000, "output": 15_000_000 });
    for (provider, alias, prices) in [
        ("paid", "both", &prices),
        ("second", "both", &prices),
        ("free", "odd", &Value::Null),
        ("fourth", "odd", &prices),
    ] {
        let id = desk.upstream(provider, "chat", &url).await;
        let model = if matches!(provider, "paid" | "free") { "bad-1--body-html--type-html" } else { "good-1" };
        desk.model_with(&id, model, json!({ "aliases": [alias], "prices": prices })).await;
    }
    let mut costs = 0;
    for alias in ["both", "odd"] {
        let got = desk.chat(alias).await;
        costs += got.header("x-svc-cost-micros").unwrap().parse::<u64>().unwrap();
        got.ok();
    }
    let (text, report) = (read(&desk.site).await, desk.read("reports/spend?by=model").await);
    for row in report["rows"].as_array().unwrap() {
        let (provider, model) = row["key"].as_str().unwrap().split_once('/').unwrap();
        let of = [format!(r#"provider="{provider}""#), format!(r#"model="{model}""#)];
        let told = |name: &str, more: &str| sample(&text, name, &[&of[0], &of[1], more]);
        assert_eq!(Some(told("svc_model_cost_micro_usd_total", "")), row["costMicros"].as_f64(), "{row}");
        let input = told("svc_model_tokens_total", r#"kind="input""#);
        assert!(input > 0.0 && Some(input) == row["usage"]["input"].as_f64(), "{row} {text}");
        let is_tried = matches!(provider, "paid" | "free");
        assert_eq!(row["calls"], json!(u64::from(!is_tried)), "{row}");
        assert_eq!(
            row["costMicros"] == json!(row["estimatedMicros"]),
            is_tried,
            "the tries alone are estimates: {row}"
        );
        let unpriced = text.contains(&format!("svc_model_calls_unpriced_total{{{},{}}} 1", of[0], of[1]));
        assert_eq!((unpriced, &row["unpricedCalls"]), (provider == "free", &json!(u64::from(unpriced))), "{row}");
    }
    assert_eq!((report["rows"].as_array().map(Vec::len), &report["totals"]["costMicros"]), (Some(4), &json!(costs)));
    desk.site.stop().await;
}

/// A budget that was raised is used up by what it may spend now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raised_budget_is_told_by_what_it_may_spend() {
    let mut desk = Desk::with(|plan| plan.config.metrics = Some("127.0.0.1:0".parse().unwrap())).await;
    let budget = desk.budget(1_000, json!([{ "at": 1_000, "step": "stop" }])).await;
    let cost: f64 = desk.chat("chat/large-1").await.header("x-svc-cost-micros").unwrap().parse().unwrap();
    assert_eq!(sample(&read(&desk.site).await, "svc_budget_used_ratio", &[&budget]), cost / 1e3);
    desk.post(&format!("budgets/{budget}/raise"), json!({ "amountMicros": 10_000 })).await.ok();
    assert_eq!(sample(&read(&desk.site).await, "svc_budget_used_ratio", &[&budget]), cost / 1e4);
    desk.site.stop().await;
}

/// Every metric that is told is documented.
pub(crate) fn documented(text: &str) {
    let documented = include_str!("../../../docs/metrics.md");
    for (name, kind) in text.lines().filter_map(|it| it.strip_prefix("# TYPE ")?.split_once(' ')) {
        let name = if kind == "counter" { format!("`{name}_total`") } else { format!("`{name}`") };
        assert!(documented.contains(&name), "docs/metrics.md has no {name}");
    }
}

/// Nothing else is served there, nothing of it at the server's own address, and nothing at all where nobody asked for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_a_listener_of_their_own() {
    let site = site().await;
    let mut there = Client::connect(site.metrics.unwrap()).await;
    assert_eq!(there.try_ask("GET", "/", &[], b"").await.unwrap().status, 404);
    assert_eq!(there.try_ask("GET", "/v1/actions/authorize", &[], b"").await.unwrap().status, 404);
    let posted = there.try_ask("POST", "/metrics", &[], b"").await.unwrap();
    assert_eq!((posted.status, posted.header("allow").unwrap()), (405, "GET, HEAD"));
    let mut client = site.client().await;
    assert_eq!(client.ask("GET", "/metrics", &[], b"").await.status, 404);
    site.stop().await;
    let without = Site::start().await;
    assert_eq!(without.metrics, None);
    without.stop().await;
}
