//! Where a call goes when its provider fails: over the ranked list, held to budgets at each attempt, and never once something
//! was passed on.

use serde_json::{Value, json};
use svc_core::value::Span;
use svc_tests::client::{Got, until};
use svc_tests::desk::{CHAT, Desk, Hand, MESSAGES, chat, header_of, streamed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A desk where `messages/good-1` comes after a model at `chat` whose name turns the stand-in's knobs.
async fn behind(knobs: &str) -> Desk {
    between("chat", "messages", knobs).await
}

/// The same with providers of these kinds.
async fn between(bad: &str, good: &str, knobs: &str) -> Desk {
    let mut desk = Desk::bare(|_| {}).await;
    let of = |kind: &str| if kind == "chat" { desk.mock.chat_url() } else { desk.mock.messages_url() };
    let (first, second) = (of(bad), of(good));
    let id = desk.upstream(bad, bad, &first).await;
    desk.model(&id, &format!("bad-1--{knobs}"), 90, 3, 15).await;
    let id = desk.upstream(good, good, &second).await;
    desk.model(&id, "good-1", 50, 2, 10).await;
    desk.enforce().await;
    desk
}

async fn best(desk: &mut Desk, path: &str, body: &Value) -> Got {
    desk.send(path, &[("x-svc-objective", "quality")], body.to_string().as_bytes()).await
}

/// Refusals of a provider that are not the client's doing, errors, broken answers and silence: the next model answers, the
/// failed try is kept with what was wrong, and is charged only where it may have used something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_provider_is_passed_over() {
    let cases = [
        ("status-401", json!(401), false),
        ("status-403", json!(403), false),
        ("status-404", json!(404), false),
        ("status-429", json!(429), false),
        ("status-500", json!(500), false),
        ("status-529", json!(529), false),
        ("body-html--type-html", json!(200), true),
        ("drop", Value::Null, true),
    ];
    for (knobs, status, charged) in cases {
        let mut desk = behind(knobs).await;
        let budget = desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
        for path in [CHAT, MESSAGES] {
            let got = best(&mut desk, path, &chat("auto")).await;
            got.ok();
            assert_eq!(got.header("x-svc-routed-to"), Some("messages/good-1"), "{knobs}");
            let call = desk.call_of(&got).await;
            let tried = call["attempts"].as_array().unwrap();
            assert_eq!(tried.len(), 2, "{knobs} {call}");
            let told = (&tried[1]["model"], &tried[1]["status"], tried[1]["ms"].is_u64(), tried[1].get("error"));
            assert_eq!(told, (&json!("messages/good-1"), &json!(200), true, None), "the one that answered: {call}");
            assert_eq!(tried[0]["model"], json!(format!("chat/bad-1--{knobs}")), "{call}");
            assert!(tried[0]["status"] == status && tried[0]["error"].is_string(), "{knobs} {call}");
            let usage = &call["usage"];
            let own = usage["input"].as_u64().unwrap() * 2 + usage["output"].as_u64().unwrap() * 10;
            let cost = call["costMicros"].as_u64().unwrap();
            assert_eq!(cost > own, charged, "{knobs} {call}");
            assert_eq!((&call["model"], &call["end"]), (&json!("good-1"), &json!("done")), "{call}");
        }
        let heard = {
            let body = streamed("auto");
            desk.stream(MESSAGES, &[("x-svc-objective", "quality")], &body).await
        };
        assert!(heard.contains("event: message_stop"), "{knobs}: {heard}");
        let at = desk.budget_at(&budget).await;
        assert_eq!(at["reservedMicros"], json!(0), "{at}");
        desk.site.audit();
    }
}

/// Where every provider refuses its key or does not know the model, that is said, and clients are told not to repeat the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_that_refuse_their_key_are_told_of() {
    for (first, vain) in [301, 308, 401, 402, 403, 404, 500].map(|it| (format!("status-{it}"), it < 500)) {
        let mut desk = between("chat", "messages", &first).await;
        desk.api("PATCH", "models/messages/good-1", Some(&json!({ "enabled": false }))).await.ok();
        for path in [CHAT, MESSAGES] {
            let got = best(&mut desk, path, &chat("auto")).await;
            assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{}", got.text());
            assert_eq!(got.header("x-should-retry"), vain.then_some("false"), "{first}");
            assert_eq!(got.text().contains("refused its key or account"), vain, "{}", got.text());
        }
    }
    // One that was not asked this time may answer the next.
    let mut desk = between("chat", "messages", "status-401").await;
    desk.api("PATCH", "models/messages/good-1", Some(&json!({ "enabled": false }))).await.ok();
    let id = desk.upstream("dear", "chat", "https://dear.example/v1").await;
    desk.model(&id, "good-2", 40, 3_000_000, 15_000_000).await;
    desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let got = best(&mut desk, CHAT, &chat("auto")).await;
    let is_denied = got.text().contains("refused its key or account");
    assert_eq!((got.status, got.header("x-should-retry"), is_denied), (502, None, false), "{}", got.text());
}

/// A no in the place of a stream's first token is as free as the same no as a status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_before_the_first_token_costs_nothing() {
    let mut desk = behind("error-0").await;
    let heard = desk.stream(CHAT, &[("x-svc-objective", "quality")], &streamed("auto")).await;
    assert!(heard.contains("[DONE]"), "{heard}");
    let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
    assert_eq!(call["attempts"].as_array().map(Vec::len), Some(2), "{call}");
    let usage = &call["usage"];
    let own = usage["input"].as_u64().unwrap() * 2 + usage["output"].as_u64().unwrap() * 10;
    assert_eq!(call["costMicros"], json!(own), "{call}");
}

/// A provider that quotes its key in a stream's error tells it to nobody, whatever the key looks like, in both shapes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_quoted_in_a_stream_goes_no_further() {
    for path in [CHAT, MESSAGES] {
        let mut desk = Desk::bare(|_| {}).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let made =
            json!({ "name": "hand", "kind": "chat", "baseUrl": url, "apiKey": "plain-words", "jurisdiction": "eu" });
        let id = desk.post("upstreams", made).await.made()["id"].as_str().unwrap().to_owned();
        desk.model(&id, "large-1", 80, 3, 15).await;
        let provider = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            assert_ne!(socket.read(&mut [0; 4_096]).await.unwrap(), 0);
            let token = json!({ "choices": [{ "index": 0, "delta": { "content": "Hi" } }] });
            let error = json!({ "error": { "message": "no credit left for plain-words", "type": "plain-words" } });
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            socket.write_all(format!("{head}data: {token}\n\ndata: {error}\n\n").as_bytes()).await.unwrap();
        });
        let heard = desk.stream(path, &[], &streamed("hand/large-1")).await;
        assert!(heard.contains("no credit left for [left out]") && !heard.contains("plain-words"), "{heard}");
        provider.await.unwrap();
    }
}

/// What an answer tells of its model is that of the one that answered: its yield, and whether it has a price.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_tells_of_the_model_that_answered() {
    for priced_first in [true, false] {
        let mut desk = Desk::bare(|_| {}).await;
        let (chat_url, messages_url) = (desk.mock.chat_url(), desk.mock.messages_url());
        let (prices, none) =
            (json!({ "aliases": ["twin"], "prices": { "input": 1, "output": 1 } }), json!({ "aliases": ["twin"] }));
        let (first, second) = if priced_first { (prices, none) } else { (none, prices) };
        let id = desk.upstream("chat", "chat", &chat_url).await;
        desk.model_with(&id, "bad-1--status-503", first).await;
        let id = desk.upstream("messages", "messages", &messages_url).await;
        desk.model_with(&id, "good-1", second).await;
        let got = desk.chat("twin").await;
        got.ok();
        let told = got.header("x-svc-advisory").unwrap_or_default();
        let wanted = if priced_first { "messages/good-1 has no price" } else { "" };
        assert!(told.starts_with(wanted) && told.is_empty() != priced_first, "{told}");
    }
}

/// What a provider says is wrong with the request is the client's to mend: the status stays, nobody else is asked, in both
/// shapes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_request_goes_no_further() {
    for status in [400, 413, 422] {
        let mut desk = behind(&format!("status-{status}")).await;
        for path in [CHAT, MESSAGES] {
            let before = desk.mock.counts().requests;
            let got = best(&mut desk, path, &chat("auto")).await;
            assert_eq!((got.status, got.kind().as_str()), (status, "upstream_rejected"), "{}", got.text());
            let error = got.json()["error"].clone();
            let tried = error["attemptedModels"].as_array().unwrap();
            let told = (tried.len(), &tried[0]["status"], &tried[0]["provider"]);
            assert_eq!(told, (1, &json!(status), &json!("chat")), "{error}");
            assert_eq!(desk.mock.counts().requests, before + 1);
            assert_eq!(got.json()["type"] == "error", path == MESSAGES);
            assert_eq!(desk.call_of(&got).await["end"], "refused", "an admitted call is named");
            let told = ["x-svc-enforcement", "x-svc-cost-micros"].map(|it| got.header(it).map(str::to_owned));
            assert_eq!(told, ["observe", "0"].map(|it| Some(it.to_owned())), "{got:?}");
        }
        let call = desk.read("calls?limit=1").await["data"][0].clone();
        assert_eq!((&call["end"], &call["costMicros"]), (&json!("refused"), &json!(0)), "{call}");
    }
}

/// Where every attempt was limited it is a 429 with the soonest time, else a 502; each names all that was tried, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_was_tried_is_named() {
    let mut desk = behind("status-429--retry-after-30").await;
    let id = desk.upstreams["messages"].clone();
    assert_eq!(desk.api("DELETE", "models/messages/good-1", None).await.status, 204);
    desk.model(&id, "good-2--status-429--retry-after-7", 50, 2, 10).await;
    for path in [CHAT, MESSAGES] {
        let got = best(&mut desk, path, &chat("auto")).await;
        assert_eq!((got.status, got.kind().as_str()), (429, "rate_limited"), "{}", got.text());
        assert_eq!(got.header("retry-after"), Some("7"));
        let told = ["x-svc-call-id", "x-svc-task-id", "x-svc-enforcement"].map(|it| got.header(it).is_some());
        assert_eq!(told, [true; 3], "{got:?}");
        let error = got.json()["error"].clone();
        let tried: Vec<_> = error["attemptedModels"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
        assert_eq!(tried, [&json!(429), &json!(429)], "{error}");
    }
    desk.model(&id, "good-3--status-503", 40, 2, 10).await;
    let got = best(&mut desk, CHAT, &chat("auto")).await;
    assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{}", got.text());
    let error = got.json()["error"].clone();
    let tried = error["attemptedModels"].as_array().unwrap();
    assert!(tried.len() == 3 && tried.iter().all(|it| it["error"].is_string()), "{error}");
    assert!(tried.iter().any(|it| it["status"] == json!(503)), "{error}");
}

/// A provider at which nobody answers has failed, however soon: beside one that is limited it is no limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_could_not_be_reached_was_not_limited() {
    let mut desk = Desk::bare(|_| {}).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let id = desk.upstream("gone", "chat", &format!("http://{gone}/v1")).await;
    desk.model(&id, "gone-1", 90, 2, 10).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &url).await;
    desk.model(&id, "bad-1--status-429--retry-after-7", 50, 2, 10).await;
    desk.enforce().await;
    for path in [CHAT, MESSAGES] {
        let got = best(&mut desk, path, &chat("auto")).await;
        assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{}", got.text());
        let error = got.json()["error"].clone();
        let tried: Vec<_> = error["attemptedModels"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
        assert_eq!(tried, [&Value::Null, &json!(429)], "{error}");
    }
}

/// A model in whose API the request has no form has not failed: where the only one that was asked is limited, that is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_form_has_not_failed() {
    let mut desk = Desk::bare(|_| {}).await;
    let (messages, busy) = (desk.mock.messages_url(), "pair-1--status-429--retry-after-7");
    for (kind, url, name) in [("messages", messages, "pair-1"), ("chat", desk.mock.chat_url(), busy)] {
        let id = desk.upstream(kind, kind, &url).await;
        desk.model_with(&id, name, json!({ "aliases": ["pair"] })).await;
    }
    // In shadow a call goes to whatever has the name.
    let mut body = chat("pair");
    body["n"] = json!(2);
    let got = best(&mut desk, CHAT, &body).await;
    assert_eq!((got.status, got.kind().as_str()), (429, "rate_limited"), "{}", got.text());
    let tried = got.json()["error"]["attemptedModels"].clone();
    assert_eq!([&tried[0]["provider"], &tried[1]["status"]], [&json!("messages"), &json!(429)], "{tried}");
}

/// Once something was passed on no other model is asked: the stream ends with an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_tried_after_the_first_byte() {
    let mut desk = behind("words-20--cut-6").await;
    for path in [CHAT, MESSAGES] {
        let before = desk.mock.counts().requests;
        let heard = desk.stream(path, &[("x-svc-objective", "quality")], &streamed("auto")).await;
        assert!(heard.contains("upstream_failure"), "{heard}");
        assert!(!heard.contains("[DONE]") && !heard.contains("message_stop"), "{heard}");
        assert_eq!(desk.mock.counts().requests, before + 1);
        let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
        let tried: Vec<_> = call["attempts"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
        assert_eq!((tried, &call["end"]), (vec![&json!(200)], &json!("cut")), "{call}");
    }
    // Comments are nothing of the answer.
    for knobs in ["words-20--cut-0", "lines-3--words-20--cut-0", "lines-3--error-0", "pings-0"] {
        let mut desk = behind(knobs).await;
        let path = format!("upstreams/{}", desk.upstreams["chat"]);
        desk.api("PATCH", &path, Some(&json!({ "timeouts": { "firstTokenMs": 500 } }))).await.ok();
        let heard = desk.stream(CHAT, &[("x-svc-objective", "quality")], &streamed("auto")).await;
        assert!(heard.contains("[DONE]"), "before it another is: {knobs} {heard}");
        let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
        assert_eq!(call["attempts"].as_array().unwrap().len(), 2, "{knobs} {call}");
    }
}

/// Who says who speaks, and then fails before the first token, has not answered: the next model does, in both shapes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preamble_is_no_answer() {
    for (bad, good) in [("chat", "messages"), ("messages", "chat")] {
        for knobs in ["cut-1--pace-20", "error-1--pace-20", "stall-1", "pings-1"] {
            let mut desk = between(bad, good, knobs).await;
            let path = format!("upstreams/{}", desk.upstreams[bad]);
            desk.api("PATCH", &path, Some(&json!({ "timeouts": { "firstTokenMs": 300 } }))).await.ok();
            for path in [CHAT, MESSAGES] {
                let heard = desk.stream(path, &[("x-svc-objective", "quality")], &streamed("auto")).await;
                assert!(heard.contains(if path == CHAT { "[DONE]" } else { "message_stop" }), "{bad} {knobs} {heard}");
                assert_eq!(header_of(&heard, "x-svc-routed-to"), Some(format!("{good}/good-1")), "{knobs} {heard}");
                let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
                assert_eq!(call["attempts"].as_array().unwrap().len(), 2, "{bad} {knobs} {call}");
            }
        }
    }
    // What the provider told of its input until then is what its try is charged.
    let mut desk = between("messages", "chat", "cut-1--pace-20--input-7000").await;
    let heard = desk.stream(MESSAGES, &[("x-svc-objective", "quality")], &streamed("auto")).await;
    let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
    assert!((7_000..8_000).contains(&call["usage"]["input"].as_u64().unwrap()), "{call}");
}

/// A provider whose streams begin and break keeps failing: its circuit opens, and its health says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_break_open_a_circuit() {
    let mut desk = behind("words-20--cut-6").await;
    for number in 0..7 {
        let heard = desk.stream(CHAT, &[("x-svc-objective", "quality")], &streamed("auto")).await;
        assert_eq!(heard.contains("[DONE]"), number >= 5, "{number} {heard}");
    }
    let list = desk.read("upstreams").await;
    let failing = list["data"].as_array().unwrap().iter().find(|it| it["health"] == "open").unwrap();
    assert_eq!(failing["lastError"], json!("the connection was closed before the answer was whole"), "{list}");
}

/// Each attempt is reserved before it is sent: a dearer one that no longer fits its budget is not sent, and says why. What has failed
/// is told, and beside it which budget kept the call from the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_attempt_is_reserved() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &url).await;
    desk.model(&id, "cheap-1--status-500", 90, 1, 2).await;
    desk.model(&id, "dear-1", 50, 100, 500).await;
    desk.enforce().await;
    let budget = desk.budget(2_000, json!([{ "at": 100, "step": "stop" }])).await;
    for (path, body) in [(CHAT, chat("auto")), (CHAT, streamed("auto")), (MESSAGES, chat("auto"))] {
        let before = desk.mock.counts().requests;
        let got = best(&mut desk, path, &body).await;
        assert_eq!((got.status, got.kind().as_str()), (502, "upstream_failure"), "{}", got.text());
        let tried = &got.json()["error"]["attemptedModels"];
        assert_eq!((&tried[0]["status"], &tried[1]["error"]), (&json!(500), &json!("budget_exhausted")), "{tried}");
        assert!(got.header("x-svc-budget-scope").is_some_and(|it| it.starts_with("workspace:wsp_")), "{got:?}");
        assert_eq!(got.header("x-svc-advisory"), Some("a budget has no room for a call of chat/dear-1"));
        assert_eq!(desk.mock.counts().requests, before + 1, "the dear one was not asked");
    }
    let at = desk.budget_at(&budget).await;
    assert_eq!((&at["reservedMicros"], &at["spentMicros"]), (&json!(0), &json!(0)), "{at}");
}

/// A budget that the failed try brought to its allocation refuses the next as it refuses a call: with the question to a person,
/// on the record; what the failed try is charged is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_at_its_allocation_asks_a_person_between_two_tries() {
    for (path, body) in [(CHAT, chat("auto")), (MESSAGES, streamed("auto"))] {
        let mut desk = behind("drop").await;
        let budget = desk.budget(1, json!([{ "at": 100, "step": "approval" }])).await;
        let before = desk.mock.counts().requests;
        let got = best(&mut desk, path, &body).await;
        assert_eq!((got.status, got.kind().as_str()), (402, "approval_required"), "{}", got.text());
        assert_eq!(desk.mock.counts().requests, before + 1, "the next was not asked");
        let error = got.json()["error"].clone();
        assert!(error["owner"]["principalId"].is_string() && error["evidenceRecord"].is_string(), "{error}");
        assert_eq!((&error["budgetId"], &error["allocationMicros"]), (&json!(budget), &json!(1)), "{error}");
        let asked = desk.read("approvals?kind=budget&state=waiting").await;
        assert_eq!(asked["data"][0]["id"], error["approval"]["id"], "{asked}");
        assert!(got.header("x-svc-budget-scope").unwrap_or_default().starts_with("workspace:"), "{got:?}");
        let call = desk.read("calls?limit=1").await["data"][0].clone();
        assert_eq!((&call["end"], call["attempts"].as_array().map(Vec::len)), (&json!("failed"), Some(1)), "{call}");
        let at = desk.budget_at(&budget).await;
        assert_eq!((&at["reservedMicros"], &at["spentMicros"]), (&json!(0), &error["spentMicros"]), "{at}");
        desk.site.audit();
        let raise = format!("budgets/{budget}/raise");
        desk.api("POST", &raise, Some(&json!({ "amountMicros": 1_000_000 }))).await.ok();
        best(&mut desk, path, &chat("auto")).await.ok();
    }
}

/// A try that was sent and never answered is charged its estimate also where nobody takes over: as no model is left, or as none
/// that is left fits the budget. Each try is kept once, and charged once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_answered_is_charged_though_nobody_takes_over() {
    // What is left beside the first, and how the call ends.
    let cases = [("", 502, 1), ("dear-1", 502, 2), ("dear-1 cheap-1", 200, 3)];
    for (left, status, attempts) in cases {
        let mut desk = Desk::bare(|_| {}).await;
        let url = desk.mock.chat_url();
        let id = desk.upstream("chat", "chat", &url).await;
        desk.model(&id, "silent-1--drop", 90, 1, 2).await;
        for name in left.split_whitespace() {
            let (quality, input, output) = if name == "dear-1" { (50, 100, 500) } else { (20, 1, 2) };
            desk.model(&id, name, quality, input, output).await;
        }
        desk.enforce().await;
        let budget = desk.budget(2_000, json!([{ "at": 100, "step": "stop" }])).await;
        let mut silent = 0;
        for path in [CHAT, MESSAGES] {
            let before = desk.budget_at(&budget).await["spentMicros"].as_u64().unwrap();
            let got = best(&mut desk, path, &chat("auto")).await;
            assert_eq!(got.status, status, "{left}: {}", got.text());
            let id = desk.read("calls?limit=1").await["data"][0]["id"].as_str().unwrap().to_owned();
            desk.site.shift(Span::millis(1));
            let call = desk.call(&id).await;
            let tried: Vec<_> = call["attempts"].as_array().unwrap().iter().map(|it| it["error"].clone()).collect();
            assert_eq!(tried.len(), attempts, "{left}: {call}");
            assert_eq!(tried.get(1), left.contains("dear").then_some(&json!("budget_exhausted")), "{call}");
            let (usage, cost) = (&call["usage"], call["costMicros"].as_u64().unwrap());
            assert_eq!(usage["estimated"], json!(true), "{left}: {call}");
            let failed = &call["attempts"][0];
            assert!(failed["costMicros"].as_u64().is_some_and(|it| it > 0 && it <= cost), "{left}: {call}");
            assert_eq!(failed["usage"]["estimated"], json!(true), "{left}: {call}");
            silent += failed["costMicros"].as_u64().unwrap();
            assert_eq!(cost, usage["input"].as_u64().unwrap() + usage["output"].as_u64().unwrap() * 2, "{call}");
            assert!(cost > 0, "{call}");
            let at = desk.budget_at(&budget).await;
            assert_eq!((&at["reservedMicros"], &at["spentMicros"]), (&json!(0), &json!(before + cost)), "{left}: {at}");
        }
        // Each model has what its provider bills, whoever answered in the end; and every call is counted once.
        let rows = desk.read("reports/spend?by=model").await["rows"].as_array().unwrap().clone();
        let row = |name: &str| rows.iter().find(|it| it["key"] == json!(name)).cloned().unwrap_or_default();
        assert_eq!(row("chat/silent-1--drop")["costMicros"], json!(silent), "{left}: {rows:?}");
        assert_eq!(rows.iter().map(|it| it["calls"].as_u64().unwrap()).sum::<u64>(), 2, "{left}: {rows:?}");
        let (tasks, spend) = (desk.read("tasks").await, desk.read("reports/spend").await);
        let sum: u64 = tasks["data"].as_array().unwrap().iter().map(|it| it["spentMicros"].as_u64().unwrap()).sum();
        let at = desk.budget_at(&budget).await;
        assert_eq!((&at["spentMicros"], &spend["totals"]["costMicros"]), (&json!(sum), &json!(sum)), "{left}: {spend}");
        desk.site.audit();
    }
}

/// A provider that keeps failing is ranked last until its time is up, and its health says so; then one call tries it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_circuit_opens_and_is_probed() {
    let mut desk = behind("status-500").await;
    let health =
        |desk: &Value| desk["data"].as_array().unwrap().iter().map(|it| it["health"].clone()).collect::<Vec<_>>();
    let mut opened = false;
    for _ in 0..10 {
        let got = best(&mut desk, CHAT, &chat("auto")).await;
        let tried = desk.call_of(&got).await["attempts"].as_array().unwrap().len();
        opened |= tried == 1;
        assert!(!opened || tried == 1, "an open circuit is not tried");
    }
    assert!(opened);
    let list = desk.read("upstreams").await;
    assert!(health(&list).contains(&json!("open")) && health(&list).contains(&json!("ok")), "{list}");
    let failing = list["data"].as_array().unwrap().iter().find(|it| it["health"] == "open").unwrap();
    assert!(failing["lastError"].is_string(), "{list}");
    desk.site.shift(Span::minutes(10));
    let mut probes = 0;
    for _ in 0..5 {
        let got = best(&mut desk, CHAT, &chat("auto")).await;
        probes += desk.call_of(&got).await["attempts"].as_array().unwrap().len() - 1;
    }
    assert_eq!(probes, 1, "one call probes");
}

/// A probe that is given up before its answer begins, as its agent is stopped or its client hangs up, tells nothing of the model:
/// the next call probes, whoever's it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_that_was_given_up_leaves_the_next_call_to_probe() {
    let mut desk = Desk::bare(|_| {}).await;
    let provider = Hand::new();
    let id = desk.upstream("hand", "messages", &provider.url()).await;
    desk.model(&id, "large-1", 90, 3, 15).await;
    let (good, quality) = (desk.mock.chat_url(), [("x-svc-objective", "quality")]);
    let id = desk.upstream("good", "chat", &good).await;
    desk.model(&id, "good-1", 50, 2, 10).await;
    desk.enforce().await;
    let (agent, everybodys) = (desk.site.agent(&[]), desk.key.clone());
    for _ in 0..5 {
        tried(&desk, &provider).await;
    }
    for stops in [true, false] {
        desk.site.shift(Span::minutes(1));
        if stops {
            desk.key.clone_from(&agent.key);
        }
        let mut client = desk.begin(CHAT, &quality, &streamed("auto")).await;
        desk.key.clone_from(&everybodys);
        let probe = provider.asked().await;
        if stops {
            desk.freeze(agent.id);
            let mut heard = String::new();
            client.read_to_string(&mut heard).await.unwrap();
            assert!(heard.contains("agent_stopped"), "{heard}");
        } else {
            drop(client);
            let site = &desk.site;
            site.until(|| site.memory().dump().iter().any(|(.., it)| format!("{it:?}").contains("HungUp"))).await;
        }
        probe.let_go().await;
        tried(&desk, &provider).await;
    }
}

/// A call that goes to `provider` first, which closes the connection, and is answered elsewhere.
async fn tried(desk: &Desk, provider: &Hand) {
    let mut client = desk.begin(CHAT, &[("x-svc-objective", "quality")], &streamed("auto")).await;
    drop(provider.asked().await);
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.unwrap();
    assert!(heard.contains("[DONE]"), "{heard}");
}

/// A model that was not asked, as no budget had room for it, has not failed: beside it one that is limited is all that was tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_not_asked_has_not_failed() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &url).await;
    desk.model(&id, "cheap-1--status-429--retry-after-7", 90, 1, 2).await;
    desk.model(&id, "dear-1", 50, 100, 500).await;
    desk.enforce().await;
    desk.budget(2_000, json!([{ "at": 100, "step": "stop" }])).await;
    let got = best(&mut desk, CHAT, &chat("auto")).await;
    assert_eq!((got.status, got.kind().as_str()), (429, "rate_limited"), "{}", got.text());
    assert_eq!(got.header("retry-after"), Some("7"));
    assert!(got.header("x-svc-budget-scope").is_some_and(|it| it.starts_with("workspace:wsp_")), "{got:?}");
}

/// A provider is tested by a person: whether it answers, how soon, and what is wrong where it does not, without its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_tested() {
    let mut desk = Desk::new().await;
    for name in ["chat", "messages"] {
        let path = format!("upstreams/{}/test", desk.upstreams[name]);
        let told = desk.api("POST", &path, None).await.ok();
        assert!(told["ok"] == json!(true) && told["latencyMs"].is_u64() && told["error"].is_null(), "{told}");
        desk.mock.turn("status-500").unwrap();
        let told = desk.api("POST", &path, None).await.ok();
        assert!(told["ok"] == json!(false) && told["error"].is_string(), "{told}");
        assert!(!told.to_string().contains("sk-planted"), "{told}");
        desk.mock.turn("").unwrap();
    }
}

/// A second try that nobody ends is charged and told as a first one at the same model is: by its own time and prices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_second_try_is_charged_as_a_first() {
    let mut costs = Vec::new();
    for first in ["status-503", "stall-3"] {
        let mut desk = Desk::bare(|_| {}).await;
        let chat = desk.mock.chat_url();
        let id = desk.upstream("chat", "chat", &chat).await;
        // Where the first fails it is cheaper: what it would have been charged is not what the second is.
        let (input, output) = if first == "stall-3" { (2, 10) } else { (1, 1) };
        for (name, quality, input, output) in
            [(format!("bad-1--{first}"), 90, input, output), ("good-1--stall-3".into(), 50, 2, 10)]
        {
            let prices = json!({ "input": input * 1_000_000, "output": output * 1_000_000 });
            // So much room that the estimate is what counts, not the reservation.
            desk.model_with(&id, &name, json!({ "quality": quality, "maxOutput": 100_000, "prices": prices })).await;
        }
        desk.enforce().await;
        let budget = desk.budget(1_000_000_000, json!([{ "at": 100, "step": "stop" }])).await;
        let mut wish = streamed("auto");
        wish["max_tokens"] = json!(90_000);
        let mut socket = desk.begin(CHAT, &[("x-svc-objective", "quality")], &wish).await;
        let id = header_of(&until(&mut socket, "data: ").await, "x-svc-call-id").unwrap();
        desk.site.advance(Span::minutes(14));
        assert_eq!(desk.call(&id).await["end"], Value::Null, "a try may take a quarter of an hour");
        desk.site.advance(Span::minutes(3));
        let call = desk.call(&id).await;
        assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("lapsed"), &json!(true)), "{call}");
        let tried = call["attempts"].as_array().map_or(0, Vec::len);
        assert_eq!(tried, usize::from(first == "status-503"), "{call}");
        assert!(call["costMicros"].as_u64() < call["reservedMicros"].as_u64(), "{call}");
        assert_eq!(desk.budget_at(&budget).await["spentMicros"], call["costMicros"], "{call}");
        costs.push(call["costMicros"].as_u64().unwrap());
    }
    assert!(costs[0] > 0 && costs[0] == costs[1], "{costs:?}");
}

/// A call without its final usage is charged by the time since it was sent and how fast its model was measured to be; one that
/// was never measured is taken for a usual one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_pays_by_the_models_pace() {
    let mut desk = Desk::new().await;
    for (measured, least, most) in [(false, 50, 50), (true, 1, 10)] {
        if measured {
            // Ten words in a second at least.
            desk.mock.turn("words-10--pace-100").unwrap();
            desk.stream(CHAT, &[], &streamed("chat/large-1")).await;
        }
        desk.mock.turn("head-1000--stall-2").unwrap();
        let mut socket = desk.begin(CHAT, &[], &streamed("chat/large-1")).await;
        let id = header_of(&until(&mut socket, "data: ").await, "x-svc-call-id").unwrap();
        let seen = desk.mock.counts().hung_up;
        drop(socket);
        desk.mock.until(|it| it.hung_up > seen).await;
        let site = &desk.site;
        let ended = || site.memory().dump().iter().filter(|(.., it)| format!("{it:?}").contains("HungUp")).count();
        site.until(|| ended() == usize::from(measured) + 1).await;
        let call = desk.call(&id).await;
        let (output, ms) = (call["usage"]["output"].as_u64().unwrap(), call["durationMs"].as_u64().unwrap());
        assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("hung_up"), &json!(true)), "{call}");
        assert!(ms >= 1_000 && output >= least && output <= most * ms / 1_000 + 2, "{call}");
    }
}

/// What the gate itself took of a call has nothing of the time that a provider took to fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_try_is_no_time_of_the_gates() {
    let mut desk = behind("head-1500--status-503").await;
    let got = best(&mut desk, CHAT, &chat("auto")).await;
    assert_eq!(got.header("x-svc-routed-to"), Some("messages/good-1"));
    let call = desk.call_of(&got).await;
    let (overhead, duration) = (call["overheadMs"].as_u64().unwrap(), call["durationMs"].as_u64().unwrap());
    assert!(duration >= 1_500 && duration - overhead >= 1_500, "{call}");
}
