//! What providers and their models differ in, so that a call which policy sends to any of them is answered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use svc_core::state::people::{Plan, Role, Workspace};
use svc_core::store::{Row as _, Store as _};
use svc_core::value::Span;
use svc_tests::client::PATIENCE;
use svc_tests::desk::{CHAT, Desk, Hand, MESSAGES, chat, streamed};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The newest request that a provider heard.
fn heard(desk: &Desk) -> Value {
    desk.mock.heard().pop().unwrap().json()
}

/// A document that is a text or a short PDF goes to a model that it fits, in enforce too, and counts as what it is: text takes no
/// model that sees, and a PDF that is longer than its pages is no book.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_is_called_for_what_it_is() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("own", "chat", &url).await;
    let prices = json!({ "input": 1_000_000, "output": 2_000_000 });
    let window = json!({ "contextWindow": 128_000, "prices": prices });
    desk.model_with(&id, "seeing", window.clone()).await;
    let mut blind = window;
    blind["capabilities"] = json!(["streaming"]);
    desk.model_with(&id, "blind", blind).await;
    desk.enforce().await;
    let pdf = STANDARD.encode(format!("%PDF-1.4 {}{}", "<</Type/Page>>".repeat(3), "x".repeat(60_000)));
    let table = STANDARD.encode("1,2,3\n".repeat(10_000));
    for (kind, data, models) in [("application/pdf", &pdf, 1), ("text/csv", &table, 2)] {
        let file = json!([{ "role": "user", "content": [
            { "type": "file", "file": { "filename": "a", "file_data": format!("data:{kind};base64,{data}") } },
        ] }]);
        let mut body = chat("auto");
        body["messages"] = file;
        desk.chat_with(&[], &body).await.ok();
        let dry = desk.chat_with(&[("x-svc-dry-run", "true")], &body).await.ok();
        let candidates = dry["candidates"].as_array().unwrap();
        assert_eq!(candidates.iter().filter(|it| it["qualifies"] == true).count(), models, "{kind}: {dry}");
        let document =
            json!([{ "type": "document", "source": { "type": "base64", "media_type": kind, "data": data } }]);
        let count = json!({ "model": "auto", "messages": [{ "role": "user", "content": document }] }).to_string();
        let told = desk.send("/anthropic/v1/messages/count_tokens", &[], count.as_bytes()).await.ok();
        let tokens = told["input_tokens"].as_u64().unwrap();
        assert!((5_000..20_000).contains(&tokens), "{kind}: {told}");
    }
}

/// A limit on the time to the first token is held against streams alone, several of them, and no longer than they tell of it: one
/// slow answer keeps nobody from a model, and who was too slow is called again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_model_is_called_again() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("own", "chat", &url).await;
    desk.model(&id, "only", 50, 1, 2).await;
    desk.enforce().await;
    desk.api("PATCH", "task-classes/support.reply", Some(&json!({ "maxLatencyMs": 5 }))).await.ok();
    desk.mock.turn("head-20").unwrap();
    for _ in 0..4 {
        desk.chat("auto").await.ok();
        desk.site.shift(Span::seconds(1));
    }
    for _ in 0..3 {
        let told = desk.stream(CHAT, &[], &streamed("auto")).await;
        assert!(told.starts_with("HTTP/1.1 200"), "{told}");
        desk.site.shift(Span::seconds(1));
    }
    let error = desk.chat("auto").await;
    assert_eq!((error.status, error.kind().as_str()), (409, "policy_conflict"));
    assert_eq!(error.json()["error"]["bindingConstraint"], "latency");
    desk.site.shift(Span::minutes(2));
    desk.chat("auto").await.ok();
}

/// The models of a preview, each with its time to the first token.
async fn latencies(desk: &mut Desk) -> Vec<Value> {
    desk.site.shift(Span::seconds(1));
    let asked = json!({ "taskClass": "support.reply" }).to_string();
    let told = desk.send("/v1/route/preview", &[], asked.as_bytes()).await.json();
    told["candidates"].as_array().unwrap().iter().map(|it| it["latencyMs"].clone()).collect()
}

/// Reads until a token was heard.
async fn hear_token(socket: &mut TcpStream) {
    let (mut heard, mut piece) = (String::new(), [0; 4_096]);
    let is_token = |it: &str| !it.is_empty() && !it.starts_with('"');
    while !heard.split(r#""content":""#).skip(1).any(is_token) {
        let count = timeout(PATIENCE, socket.read(&mut piece)).await.unwrap().unwrap();
        assert_ne!(count, 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
}

/// How long a first token was waited for is known as it comes, while its stream runs on; and where it never came, it was waited for at
/// least until its client hung up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_model_is_known_by_its_first_tokens() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("own", "chat", &url).await;
    desk.model(&id, "only", 50, 1, 2).await;
    desk.enforce().await;
    desk.api("PATCH", "task-classes/support.reply", Some(&json!({ "maxLatencyMs": 5 }))).await.ok();
    desk.mock.turn("head-20--stall-3").unwrap();
    let mut open = Vec::new();
    for _ in 0..3 {
        assert_eq!(latencies(&mut desk).await, [Value::Null]);
        let mut socket = desk.begin(CHAT, &[], &streamed("auto")).await;
        hear_token(&mut socket).await;
        open.push(socket);
    }
    assert!(latencies(&mut desk).await[0].as_u64().unwrap() >= 20);
    let error = desk.chat("auto").await;
    assert_eq!((error.status, &error.json()["error"]["bindingConstraint"]), (409, &json!("latency")));
    assert_eq!(desk.mock.counts().running, 3, "they run");

    let mut desk = Desk::bare(|_| {}).await;
    let provider = Hand::new();
    let id = desk.upstream("hand", "messages", &provider.url()).await;
    desk.model(&id, "only", 50, 1, 2).await;
    desk.enforce().await;
    for number in 1..=3 {
        assert_eq!(latencies(&mut desk).await, [Value::Null]);
        let client = desk.begin(CHAT, &[], &streamed("auto")).await;
        let mut asked = provider.asked().await;
        if number == 3 {
            // Who speaks is known, and no token has come.
            asked.tell_input(70).await;
        }
        drop(client);
        asked.let_go().await;
        let hung_up =
            || desk.site.memory().dump().iter().filter(|(.., it)| format!("{it:?}").contains("HungUp")).count();
        desk.site.until(|| hung_up() >= number).await;
    }
    assert!(latencies(&mut desk).await[0].is_u64(), "three have given up");
}

/// Where latency is favoured the faster model is called for whole answers too: each is asked once, the faster one from then on, be it
/// that no stream has told of it or that what streams told is long ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_faster_model_is_called_for_whole_answers() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("own", "chat", &url).await;
    desk.model(&id, "slow--head-400", 50, 1, 2).await;
    desk.model(&id, "fast", 50, 1, 2).await;
    desk.enforce().await;
    let models = json!({ "models": ["own/slow--head-400", "own/fast"] });
    desk.api("PATCH", "task-classes/support.reply", Some(&models)).await.ok();
    let mut routed = Vec::new();
    for minutes in [0, 1, 1, 1, 10] {
        desk.site.shift(Span::minutes(minutes));
        let got = desk.chat_with(&[("x-svc-objective", "latency")], &chat("auto")).await;
        assert_eq!(got.status, 200, "{}", got.text());
        routed.push(got.header("x-svc-routed-to").unwrap().to_owned());
    }
    assert_eq!(routed, ["own/slow--head-400", "own/fast", "own/fast", "own/fast", "own/fast"]);
}

/// A model that refuses what it is asked is asked once to learn its speed, and not for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_refuses_is_not_asked_for_its_speed_again() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("own", "chat", &url).await;
    desk.model(&id, "good", 50, 1, 2).await;
    desk.model(&id, "bad--status-400", 50, 1, 2).await;
    desk.enforce().await;
    let models = json!({ "models": ["own/good", "own/bad--status-400"] });
    desk.api("PATCH", "task-classes/support.reply", Some(&models)).await.ok();
    let mut told = Vec::new();
    for minutes in [0, 1, 1, 1] {
        desk.site.shift(Span::minutes(minutes));
        told.push(desk.chat_with(&[("x-svc-objective", "latency")], &chat("auto")).await.status);
    }
    assert_eq!(told, [200, 400, 200, 200]);
}

/// What a request was told otherwise is told after what a plan and budgets have to say, however much that is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_days_of_grace_are_told_before_all_else() {
    let mut desk = Desk::bare(|plan| (plan.config.plans.free.people, plan.config.plans.free.requests) = (1, 0)).await;
    let found = desk.site.memory().load(&[Workspace::key(desk.site.workspace())]).unwrap().remove(0).record;
    let row = Workspace::clone(found.as_ref().and_then(Workspace::peel).unwrap());
    desk.site.plant(Workspace { plan: Plan::Free, ..row });
    let url = desk.mock.messages_url();
    let id = desk.upstream("maker", "messages", &url).await;
    let long = format!("claude-opus-4-7-{}", "x".repeat(60));
    desk.model(&id, &long, 50, 1, 2).await;
    desk.enforce().await;
    let mut body = chat("auto");
    (body["temperature"], body["top_p"]) = (json!(0.5), json!(0.5));
    let got = desk.chat_with(&[], &body).await;
    let line = format!("left out, as {long} refuses it: temperature, top_p");
    assert_eq!(got.header("x-svc-advisory"), Some(&*line), "{}", got.text());
    let person = desk.site.member(Role::Member).principal.to_string();
    (desk.key, _) = desk.key_with(json!({ "principalId": person })).await;
    let got = desk.chat_with(&[], &body).await;
    assert!(got.header("x-svc-advisory").unwrap().starts_with("the plan's people of this month are used"), "{got:?}");
}

/// Where policy sends a call to a model that refuses what its client said to another, that is left out and told; to the very model
/// that a client names in its shape it goes as it was said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_refuses_is_left_out_and_told() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.messages_url();
    let id = desk.upstream("maker", "messages", &url).await;
    desk.model(&id, "claude-sonnet-5", 50, 1, 2).await;
    let aliases = json!({ "aliases": ["sonnet", "auto"] });
    desk.api("PATCH", "models/maker/claude-sonnet-5", Some(&aliases)).await.ok();
    desk.enforce().await;
    let with_chance = |model: &str| {
        let mut body = chat(model);
        body["temperature"] = json!(0.5);
        body
    };
    let line = "left out, as claude-sonnet-5 refuses it: temperature";
    for (path, model, is_kept) in [
        (CHAT, "auto", false),
        (CHAT, "claude-sonnet-5", false),
        (MESSAGES, "auto", false),
        (MESSAGES, "claude-sonnet-5", true),
        (MESSAGES, "maker/claude-sonnet-5", true),
        (MESSAGES, "sonnet", true),
        (MESSAGES, "maker/sonnet", true),
    ] {
        let got = desk.send(path, &[], with_chance(model).to_string().as_bytes()).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(got.header("x-svc-advisory"), (!is_kept).then_some(line), "{path} {model}");
        assert_eq!(heard(&desk).get("temperature").is_some(), is_kept, "{path} {model}");
    }
    desk.routing(json!({ "mode": "shadow" })).await;
    for model in ["sonnet", "auto"] {
        let got = desk.send(MESSAGES, &[], with_chance(model).to_string().as_bytes()).await;
        assert_eq!((got.status, heard(&desk).get("temperature").is_some()), (200, true), "{model}: {}", got.text());
    }
}

/// What budgets hold for a call is the most that it can cost: where policy is enforced, a budget could refuse the call and its client
/// set no bound, the one that was reserved goes out, and that is told, also beside a provider's refusal. Elsewhere nothing is added.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_reserved_is_what_goes_out() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("own", "chat", &url).await;
    desk.model(&id, "only", 50, 1, 2).await;
    let mut open = chat("only");
    open.as_object_mut().unwrap().remove("max_tokens");
    desk.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let line = "without a bound of its own, it was sent with one of 1000 tokens, which a budget holds";
    for (mode, step, bound) in [
        ("enforce", None, None),
        ("enforce", Some("observe"), None),
        ("enforce", Some("downgrade"), None),
        ("shadow", Some("stop"), None),
        ("enforce", None, Some(json!(1_000))),
    ] {
        desk.routing(json!({ "mode": mode, "defaultTaskClass": "support.reply" })).await;
        if let Some(step) = step {
            desk.budget(1_000_000, json!([{ "at": 100, "step": step }])).await;
        }
        let got = desk.chat_with(&[], &open).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(heard(&desk).get("max_tokens").cloned(), bound, "{mode} {step:?}");
        let told = got.header("x-svc-advisory");
        assert_eq!(told, bound.map(|_| line), "{mode} {step:?}");
        let got = desk.chat("only").await;
        assert_eq!((got.status, got.header("x-svc-advisory")), (200, None));
        assert_eq!(heard(&desk)["max_tokens"], json!(100), "its client's own stays");
    }
    desk.mock.turn("status-400").unwrap();
    let got = desk.chat_with(&[], &open).await;
    assert_eq!((got.kind().as_str(), got.header("x-svc-advisory")), ("upstream_rejected", Some(line)));
}

/// A coding client's wish for thinking reaches whatever model policy chooses in the form that this one takes, also where its tokens
/// are only counted; the one that the client names, where nothing else is chosen, gets it as it came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wish_for_thinking_is_told_in_the_form_of_the_model() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.messages_url();
    let id = desk.upstream("maker", "messages", &url).await;
    let of = |quality: u8, micros: u64| {
        let prices = json!({ "input": micros, "output": micros });
        json!({ "quality": quality, "prices": prices, "maxOutput": 64_000 })
    };
    desk.model_with(&id, "claude-opus-4-7", of(90, 5_000_000)).await;
    desk.model_with(&id, "claude-haiku-4-5", of(60, 1_000_000)).await;
    desk.enforce().await;
    let mut body = chat("claude-opus-4-7");
    body["max_tokens"] = json!(32_000);
    let mut adaptive = body.clone();
    adaptive["thinking"] = json!({ "type": "adaptive" });
    adaptive["output_config"] = json!({ "effort": "medium" });
    let mut budget = body.clone();
    budget["model"] = json!("claude-haiku-4-5");
    budget["thinking"] = json!({ "type": "enabled", "budget_tokens": 2_000 });
    let (medium, low) = (json!({ "effort": "medium" }), json!({ "effort": "low" }));
    let (enabled, itself) = (json!({ "type": "enabled", "budget_tokens": 8_192 }), json!({ "type": "adaptive" }));
    for (objective, sent, thinking, config, told) in [
        ("cost", &adaptive, &enabled, None, Some("claude-haiku-4-5 thinks by a budget alone: it was told one")),
        ("cost", &budget, &budget["thinking"], None, None),
        ("quality", &adaptive, &itself, Some(&medium), None),
        ("quality", &budget, &itself, Some(&low), Some("it was told an effort of low")),
    ] {
        for path in [MESSAGES, "/anthropic/v1/messages/count_tokens"] {
            let got = desk.send(path, &[("x-svc-objective", objective)], sent.to_string().as_bytes()).await;
            assert_eq!(got.status, 200, "{objective} {}", got.text());
            let out = heard(&desk);
            assert_eq!((&out["thinking"], out.get("output_config")), (thinking, config), "{objective} {path}");
            let line = got.header("x-svc-advisory").unwrap_or_default();
            assert_eq!(line.is_empty(), told.is_none() || path != MESSAGES, "{line}");
            assert!(path != MESSAGES || line.contains(told.unwrap_or_default()), "{line}");
        }
    }
    desk.routing(json!({ "mode": "shadow" })).await;
    let got = desk.send(MESSAGES, &[], adaptive.to_string().as_bytes()).await;
    assert_eq!((got.status, heard(&desk)["thinking"].clone()), (200, itself), "{}", got.text());
}

/// Thinking that a provider has signed in its own way goes back to it as it signed it, and to no other, whole and streamed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thinking_goes_back_to_the_provider_that_signed_it() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.messages_url();
    for (name, model) in [("one", "glm-5"), ("two", "claude-sonnet-4-5")] {
        let id = desk.upstream(name, "messages", &url).await;
        desk.model(&id, model, 50, 1, 2).await;
    }
    desk.mock.turn("thinking-4").unwrap();
    let heard_of = |desk: &Desk| heard(desk)["messages"][1]["content"][0].clone();
    for (name, model, mark) in [("one", "glm-5", "svc_unsigned_of@one:"), ("two", "claude-sonnet-4-5", "")] {
        let got = desk.send(MESSAGES, &[], chat(&format!("{name}/{model}")).to_string().as_bytes()).await;
        let content = got.json()["content"].clone();
        let signature = content[0]["signature"].as_str().unwrap().strip_prefix(mark).unwrap().to_owned();
        let said = format!("\"{mark}{signature}\"");
        for path in [MESSAGES, CHAT] {
            let stream = desk.stream(path, &[], &streamed(&format!("{name}/{model}"))).await;
            assert!(stream.contains(&said), "{path} {stream}");
        }
        let got = desk.send(CHAT, &[], chat(&format!("{name}/{model}")).to_string().as_bytes()).await;
        assert!(got.text().contains(&said), "{}", got.text());
        for to in ["one/glm-5", "two/claude-sonnet-4-5"] {
            let mut body = chat(to);
            let turn = json!({ "role": "assistant", "content": content });
            let messages = body["messages"].as_array_mut().unwrap();
            messages.extend([turn, json!({ "role": "user", "content": "on" })]);
            desk.send(MESSAGES, &[], body.to_string().as_bytes()).await.ok();
            let is_kept = mark.is_empty() || to.starts_with(name);
            let back = heard_of(&desk);
            assert_eq!(back["signature"] == json!(signature), is_kept, "{name} {to}: {back}");
            assert_eq!(back["type"] == json!("thinking"), is_kept, "{name} {to}: {back}");
        }
    }
}
