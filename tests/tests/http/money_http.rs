//! What a call costs, through the socket: compared with an own calculation, rounded up once, never free.

use serde_json::{Value, json};
use svc_core::testing::Dice;
use svc_tests::desk::{CHAT, Desk, MESSAGES, answering, chat, header_of, streamed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The kinds of tokens: the knob that sets one, the price's member, and the one that holds where that is absent.
const KINDS: [(&str, &str, &str); 6] = [
    ("input", "input", "input"),
    ("cached", "cachedInput", "input"),
    ("cache-write", "cacheWrite", "input"),
    ("cache-write-long", "cacheWriteLong", "cacheWrite"),
    ("output", "output", "output"),
    ("reasoning", "reasoning", "output"),
];

/// A price of one kind, as the contract has it.
fn price(prices: &Value, kind: &str) -> u128 {
    let (_, _, instead) = KINDS.iter().find(|it| it.1 == kind).unwrap();
    prices[kind].as_u64().map_or_else(|| price(prices, instead), u128::from)
}

/// Tokens by kind times prices by kind, one division, rounded up, and the fee of the request: the contract's sentence and
/// nothing of the product's own code.
fn cost(prices: &Value, tokens: &[u64; 6]) -> u64 {
    let whole_input: u64 = tokens[..4].iter().sum();
    let tiers = prices["tiers"].as_array().cloned().unwrap_or_default();
    let tier = tiers.iter().rfind(|it| whole_input > it["aboveInputTokens"].as_u64().unwrap());
    let prices_in_force = tier.map_or(prices, |it| &it["prices"]);
    let sum: u128 =
        KINDS.iter().zip(tokens).map(|(kind, count)| price(prices_in_force, kind.1) * u128::from(*count)).sum();
    u64::try_from(sum.div_ceil(1_000_000)).unwrap() + prices["perRequest"].as_u64().unwrap_or(0)
}

fn draw_prices(dice: &mut Dice) -> Value {
    let mut prices = json!({ "input": dice.between(0, 40_000_000), "output": dice.between(1, 200_000_000) });
    for kind in ["cachedInput", "cacheWrite", "cacheWriteLong", "reasoning"] {
        if dice.chance(500) {
            prices[kind] = json!(dice.between(0, 60_000_000));
        }
    }
    prices
}

/// A thousand calls drawn at random, in both shapes, at providers of both kinds, whole and streamed, cost to the micro what
/// the prices and the counts say; the budget, the task's sum and the report add up to the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_cost_what_another_calculation_says() {
    let mut desk = Desk::new().await;
    let mut dice = Dice::new(1_000);
    for provider in ["chat", "messages"] {
        for number in 0..6 {
            let mut prices = draw_prices(&mut dice);
            if number % 2 == 0 {
                prices["perRequest"] = json!(dice.between(0, 5_000));
            }
            if number % 3 == 0 {
                let tier =
                    |dice: &mut Dice, above: u64| json!({ "aboveInputTokens": above, "prices": draw_prices(dice) });
                prices["tiers"] = json!([tier(&mut dice, 20_000), tier(&mut dice, 128_000)]);
            }
            let id = desk.upstreams[provider].clone();
            desk.model_with(&id, &format!("priced-{number}"), json!({ "prices": prices })).await;
        }
    }
    let budget = desk.budget(9_000_000_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let models = desk.read("models?limit=100").await["data"].as_array().unwrap().clone();
    let mut sum = 0;
    for number in 0..1_000 {
        let provider = *dice.pick(&["chat", "messages"]);
        let name = format!("priced-{}", dice.below(6));
        let upstream = desk.upstreams[provider].clone();
        let model = models.iter().find(|it| it["id"] == json!(name) && it["upstreamId"] == json!(upstream)).unwrap();
        let mut draw = |most: i64| u64::try_from(dice.between(0, most)).unwrap();
        let mut tokens = [1 + draw(30_000), draw(120_000), draw(20_000), draw(20_000), 1 + draw(5_000), draw(5_000)];
        if provider == "chat" {
            // That API has no word for what was written to a cache.
            (tokens[2], tokens[3]) = (0, 0);
        } else {
            // And this one none for what was thought.
            tokens[5] = 0;
        }
        let knobs: Vec<String> = KINDS.iter().zip(tokens).map(|(kind, count)| format!("{}-{count}", kind.0)).collect();
        desk.mock.turn(&knobs.join("--")).unwrap();
        let path = *dice.pick(&[CHAT, MESSAGES]);
        let headers = [("te", "trailers"), ("x-svc-task-id", "tsk_thousand")];
        let (id, told) = if dice.chance(500) {
            let heard = desk.stream(path, &headers, &streamed(&format!("{provider}/{name}"))).await;
            let told = heard.rsplit("x-svc-cost-micros: ").next().unwrap().trim().to_owned();
            (header_of(&heard, "x-svc-call-id").unwrap(), told)
        } else {
            let body = chat(&format!("{provider}/{name}")).to_string();
            let got = desk.send(path, &headers, body.as_bytes()).await;
            let header = |name: &str| got.header(name).unwrap_or_else(|| panic!("{}", got.text())).to_owned();
            (header("x-svc-call-id"), header("x-svc-cost-micros"))
        };
        let wanted = cost(&model["prices"], &tokens);
        let call = desk.call(&id).await;
        let place = format!("call {number}: {provider}/{name} {path} {tokens:?} {} {call}", model["prices"]);
        assert_eq!((&told, &call["costMicros"]), (&wanted.to_string(), &json!(wanted)), "{place}");
        let usage = &call["usage"];
        let kept = ["input", "cachedInput", "cacheWrite", "cacheWriteLong", "output", "reasoning"]
            .map(|kind| usage[kind].as_u64().unwrap());
        assert_eq!((kept, &usage["estimated"]), (tokens, &json!(false)), "{place}");
        sum += wanted;
    }
    let at = desk.budget_at(&budget).await;
    assert_eq!((&at["spentMicros"], &at["reservedMicros"]), (&json!(sum), &json!(0)), "{at}");
    let tasks = desk.read("tasks").await;
    assert_eq!((&tasks["data"][0]["spentMicros"], &tasks["data"][0]["calls"]), (&json!(sum), &json!(1_000)));
    let spend = desk.read("reports/spend?by=model").await;
    assert_eq!((&spend["totals"]["costMicros"], &spend["totals"]["calls"]), (&json!(sum), &json!(1_000)), "{spend}");
    desk.site.audit();
}

/// A call that nothing has a price for is refused where policy acts, and marked in shadow, with a line that says so; never
/// is it free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_price_is_never_free() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &url).await;
    desk.model_with(&id, "priceless", json!({})).await;
    let got = desk.chat("chat/priceless").await;
    got.ok();
    assert!(got.header("x-svc-advisory").unwrap().contains("has no price"), "{got:?}");
    let call = desk.call_of(&got).await;
    assert_eq!((&call["unpriced"], &call["costMicros"]), (&json!(true), &json!(0)), "{call}");
    let spend = desk.read("reports/spend").await;
    assert_eq!(spend["totals"]["unpricedCalls"], json!(1), "{spend}");
    desk.enforce().await;
    let got = desk.chat("chat/priceless").await;
    assert_eq!((got.status, got.kind().as_str()), (409, "policy_conflict"), "{}", got.text());
    let error = got.json()["error"].clone();
    assert_eq!(error["bindingConstraint"], json!("price"), "{error}");
    let relaxation = &error["relaxations"][0];
    let told = (&relaxation["constraint"], &relaxation["admits"]);
    assert_eq!(told, (&json!("price"), &json!(["chat/priceless"])), "{error}");
    assert!(relaxation["change"].as_str().unwrap().contains("price"), "{error}");
    let prices = json!({ "prices": { "input": 1_000_000, "output": 1_000_000 } });
    desk.api("PATCH", "models/chat/priceless", Some(&prices)).await.ok();
    desk.chat("chat/priceless").await.ok();
    // A tool that the provider runs, and a tier of service, have to have a price of their own.
    let mut body = chat("chat/priceless");
    body["web_search_options"] = json!({});
    let got = desk.chat_with(&[], &body).await;
    assert_eq!((got.status, got.json()["error"]["bindingConstraint"].as_str()), (409, Some("price")), "{}", got.text());
    let mut body = chat("chat/priceless");
    body["service_tier"] = json!("priority");
    let got = desk.chat_with(&[], &body).await;
    assert_eq!((got.status, got.json()["error"]["bindingConstraint"].as_str()), (409, Some("price")), "{}", got.text());
}

/// What only the answer shows to have no price, such as another tier of service, is marked and told like what was known before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_answer_shows_to_have_no_price_is_told() {
    let mut desk = Desk::bare(|_| {}).await;
    let answer = |tier: &str| {
        json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m", "service_tier": tier,
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hi" }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 } })
    };
    for (tier, unpriced) in [("default", false), ("priority", true)] {
        let url = answering(answer(tier).to_string()).await;
        let id = desk.upstream(tier, "chat", &format!("{url}/v1")).await;
        desk.model(&id, "m", 50, 1, 2).await;
        let got = desk.chat(&format!("{tier}/m")).await;
        got.ok();
        let told = got.header("x-svc-advisory").is_some_and(|it| it.contains("has no price, which budgets cannot see"));
        assert_eq!(told, unpriced, "{got:?}");
        assert_eq!(desk.call_of(&got).await["unpriced"], json!(unpriced));
    }
}

/// An answer with status 200 that is an error is one, and costs nothing: neither the call nor its budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_with_a_good_status_costs_nothing() {
    let mut desk = Desk::bare(|_| {}).await;
    let budget = desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let failed = json!({ "index": 0, "message": { "role": "assistant", "content": "" }, "finish_reason": "error",
        "error": { "code": 502, "message": "the model broke down" } });
    for (name, dialect, said) in [
        ("plain", "chat", json!({ "error": { "message": "no such luck", "code": 500 } })),
        (
            "chosen",
            "chat",
            json!({ "id": "c", "choices": [failed], "usage": { "prompt_tokens": 5, "completion_tokens": 0 } }),
        ),
        ("typed", "messages", json!({ "type": "error", "error": { "type": "api_error", "message": "no such luck" } })),
    ] {
        let url = answering(said.to_string()).await;
        let id = desk.upstream(name, dialect, &format!("{url}/v1")).await;
        desk.model(&id, "m", 50, 1_000_000, 1_000_000).await;
        let got = desk.chat(&format!("{name}/m")).await;
        assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{name}: {}", got.text());
        let call = desk.call_of(&got).await;
        assert_eq!((&call["costMicros"], &call["end"]), (&json!(0), &json!("failed")), "{name}: {call}");
        assert!(call["reservedMicros"].as_u64().unwrap() > 0, "{name}: {call}");
        let left = desk.budget_at(&budget).await;
        assert_eq!((&left["spentMicros"], &left["reservedMicros"]), (&json!(0), &json!(0)), "{name}: {left}");
    }
}

/// Where such an answer says what was made of it before it failed, that is charged, as it is where it came as a stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_halfway_costs_what_it_says() {
    let mut desk = Desk::bare(|_| {}).await;
    let budget = desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let half = json!({ "index": 0, "message": { "role": "assistant", "content": "Hi" }, "finish_reason": "error" });
    let details = json!({ "reasoning_tokens": 2 });
    for (name, usage, spent) in [
        ("half", json!({ "prompt_tokens": 5, "completion_tokens": 2 }), 11),
        ("thought", json!({ "prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": details }), 22),
    ] {
        let said = json!({ "id": "c", "choices": [half], "usage": usage });
        let url = answering(said.to_string()).await;
        let id = desk.upstream(name, "chat", &format!("{url}/v1")).await;
        desk.model(&id, "m", 50, 1, 3).await;
        let got = desk.chat(&format!("{name}/m")).await;
        assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{}", got.text());
        let call = desk.call_of(&got).await;
        assert_eq!((&call["costMicros"], &call["end"]), (&json!(5 + 2 * 3), &json!("failed")), "{call}");
        let left = desk.budget_at(&budget).await;
        assert_eq!((&left["spentMicros"], &left["reservedMicros"]), (&json!(spent), &json!(0)), "{left}");
    }
}

/// A provider that answers every request with these bytes and closes the connection; its address, without a path.
async fn sending(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            if socket.read(&mut [0; 65_536]).await.is_ok_and(|it| it > 0) {
                let _ = socket.write_all(&answer).await;
                let _ = socket.shutdown().await;
            }
        }
    });
    url
}

/// An answer that was made and cannot be passed on is billed all the same: as what it says of its use, wherever that can be read,
/// else by its length, as far as it came or was promised. What no model made costs as little as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_passed_on_costs_what_it_was_made_for() {
    let mut desk = Desk::bare(|_| {}).await;
    let budget = desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let text = "word ".repeat(800);
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 800, "total_tokens": 810 });
    let choice = json!({ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
    let whole = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage });
    let whole = whole.to_string();
    let bare = json!({ "id": "c", "usage": usage }).to_string();
    let none = json!({ "id": "c", "choices": null, "usage": usage }).to_string();
    let head =
        |kind: &str, length: usize| format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n");
    let sent = |kind: &str, body: &str| format!("{}\r\n{body}", head(kind, body.len()));
    let kind = "application/json";
    let page = format!("<html>{text}</html>");
    let chunked = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    // By its length it has more than a thousand tokens, so what the request bounds it by is charged.
    let (told, bound) = (10 + 800 * 3, 900 * 3);
    for (name, stream, answer, wanted) in [
        ("cut", false, format!("{}\r\n{}", head(kind, whole.len()), &whole[..whole.len() - 100]), bound..bound + 60),
        ("early", false, format!("{}\r\n{}", head(kind, whole.len()), &whole[..50]), bound..bound + 60),
        ("chunk", false, format!("{chunked}{:x}\r\n{whole}\r\n", whole.len()), bound..bound + 60),
        (
            "packed",
            false,
            format!("{}content-encoding: gzip\r\n\r\n{}", head(kind, 900), "z".repeat(900)),
            bound..bound + 60,
        ),
        ("more", false, sent(kind, &format!("{whole}}}")), bound..bound + 60),
        ("plain", false, sent("text/plain", &whole), told..told + 1),
        ("whole", true, sent(kind, &whole), told..told + 1),
        ("bare", false, sent(kind, &bare), told..told + 1),
        ("none", false, sent(kind, &none), told..told + 1),
        ("page", false, sent("text/html", &page), 0..60),
        ("page-of-json", false, sent(kind, &page), 0..60),
        ("error", false, sent("text/plain", &format!(r#"{{"error":{{"message":"{text}"}}}}"#)), 0..60),
    ] {
        let url = sending(answer.into_bytes()).await;
        let id = desk.upstream(name, "chat", &format!("{url}/v1")).await;
        desk.model(&id, "m", 50, 1, 3).await;
        let mut body = if stream { streamed(&format!("{name}/m")) } else { chat(&format!("{name}/m")) };
        body["max_tokens"] = json!(900);
        let before = desk.budget_at(&budget).await["spentMicros"].as_u64().unwrap();
        let got = desk.chat_with(&[], &body).await;
        assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{name}: {}", got.text());
        let call = desk.call_of(&got).await;
        let cost = call["costMicros"].as_u64().unwrap();
        assert!(wanted.contains(&cost) && call["usage"]["estimated"] == json!(true), "{name}: {wanted:?} {call}");
        let left = desk.budget_at(&budget).await;
        assert_eq!(
            (&left["spentMicros"], &left["reservedMicros"]),
            (&json!(before + cost), &json!(0)),
            "{name}: {left}"
        );
    }
}

/// What is reserved is the contract's worst case, in the admitting commit; what goes beyond it is posted in full and seen
/// beside what was reserved; where no counts come, an estimate within it is charged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_case_is_reserved_and_more_is_posted_in_full() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let mut body = json!({ "model": "chat/large-1", "n": 3, "max_tokens": 40,
        "messages": [{ "role": "user", "content": "0123456789" }] });
    let got = desk.chat_with(&[], &body).await;
    let call = desk.call_of(&got).await;
    // Ten bytes of text and the role's four at most are tokens of input at 3 micros, three answers of 40 at 15.
    let reserved = call["reservedMicros"].as_u64().unwrap();
    assert!((3 * 40 * 15 + 10 * 3..=3 * 40 * 15 + 40 * 3).contains(&reserved), "{call}");
    body["n"] = json!(1);
    body["max_completion_tokens"] = json!(10);
    let got = desk.chat_with(&[], &body).await;
    let narrow = desk.call_of(&got).await;
    // What a member says in figures may count as text too.
    let more = narrow["reservedMicros"].as_u64().unwrap() + (3 * 40 - 10) * 15 - reserved;
    assert!(more <= 3 * 3, "{narrow}");
    for member in ["max_tokens", "max_completion_tokens"] {
        body.as_object_mut().unwrap().remove(member);
    }
    let got = desk.chat_with(&[], &body).await;
    let bare = desk.call_of(&got).await;
    let bound = bare["reservedMicros"].as_u64().unwrap();
    let whole = reserved + (1_000 - 3 * 40) * 15;
    assert!(bound.abs_diff(whole) <= 3 * 3, "the model's own limit holds: {bare}");

    desk.mock.turn("output-9000").unwrap();
    let before = desk.budget_at(&budget).await["spentMicros"].as_u64().unwrap();
    let got = desk.chat("chat/large-1").await;
    let call = desk.call_of(&got).await;
    let (cost, held) = (call["costMicros"].as_u64().unwrap(), call["reservedMicros"].as_u64().unwrap());
    assert!(cost > 9_000 * 15 && held < cost && call["usage"]["output"] == json!(9_000), "{call}");
    assert_eq!(desk.budget_at(&budget).await["spentMicros"], json!(before + cost));
    for knob in ["usage-zero", "usage-missing"] {
        desk.mock.turn(knob).unwrap();
        for stream in [false, true] {
            let call = if stream {
                let heard = desk.stream(CHAT, &[], &streamed("chat/large-1")).await;
                desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await
            } else {
                let got = desk.chat("chat/large-1").await;
                desk.call_of(&got).await
            };
            let (cost, held) = (call["costMicros"].as_u64().unwrap(), call["reservedMicros"].as_u64().unwrap());
            assert!(call["usage"]["estimated"] == json!(true) && cost > 0 && cost <= held, "{knob} {stream} {call}");
        }
    }
    desk.mock.turn("").unwrap();
    let spend = desk.read("reports/spend").await;
    assert!(spend["totals"]["estimatedMicros"].as_u64().unwrap() > 0, "{spend}");
}

/// Where a provider counts nothing, a client of the other API is told to the token what its call is charged, so that it knows when its
/// conversation grows long; one of the provider's own gets what it sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_is_charged_is_what_its_client_is_told() {
    let mut desk = Desk::new().await;
    for knob in ["usage-missing", "usage-zero"] {
        desk.mock.turn(knob).unwrap();
        for (provider, path, [input, output]) in [
            ("chat", MESSAGES, ["input_tokens", "output_tokens"]),
            ("messages", CHAT, ["prompt_tokens", "completion_tokens"]),
        ] {
            let mut body = chat(&format!("{provider}/large-1"));
            body["messages"][0]["content"] = json!("x".repeat(4_000));
            let got = desk.send(path, &[], body.to_string().as_bytes()).await;
            let whole = (got.ok()["usage"].clone(), desk.call_of(&got).await);
            body["stream"] = json!(true);
            if path == CHAT {
                body["stream_options"] = json!({ "include_usage": true });
            }
            let heard = desk.stream(path, &[], &body).await;
            let frames = heard.lines().filter_map(|it| serde_json::from_str::<Value>(it.strip_prefix("data: ")?).ok());
            let mut told = frames.filter_map(|it| it.get("usage").filter(|it| it.is_object()).cloned());
            let told = told.next_back().unwrap_or_else(|| panic!("no usage is told: {heard}"));
            let streamed = (told, desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await);
            for (told, call) in [whole, streamed] {
                let place = format!("{knob} {provider} {path} {told} {call}");
                let usage = &call["usage"];
                assert_eq!((&told[input], &told[output]), (&usage["input"], &usage["output"]), "{place}");
                assert!(usage["input"].as_u64().unwrap() > 1_000 && usage["output"].as_u64().unwrap() > 0, "{place}");
                let cost = usage["input"].as_u64().unwrap() * 3 + usage["output"].as_u64().unwrap() * 15;
                assert_eq!((&usage["estimated"], &call["costMicros"]), (&json!(true), &json!(cost)), "{place}");
            }
        }
        let got = desk.chat("chat/large-1").await;
        let untouched = &got.ok()["usage"];
        assert!(untouched.is_null() || untouched["prompt_tokens"] == json!(0), "{knob} {untouched}");
    }
}
