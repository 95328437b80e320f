//! What is told of calls and tasks, to whom, and what came of the work: outcomes, yield, counts of tokens, headers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use svc_core::state::people::{KeyScope, Role};
use svc_core::value::Span;
use svc_tests::desk::{CHAT, Desk, MESSAGES, answering, chat};

/// The members of a call of an agent.
const MEMBERS: &[&str] = &[
    "id",
    "taskId",
    "session",
    "keyId",
    "agentId",
    "principalId",
    "teamId",
    "taskClass",
    "requestedModel",
    "model",
    "provider",
    "jurisdiction",
    "mode",
    "objective",
    "stream",
    "attempts",
    "usage",
    "costMicros",
    "unpriced",
    "reservedMicros",
    "budgets",
    "dataLoss",
    "startedAt",
    "createdAt",
    "createdBy",
    "firstTokenMs",
    "durationMs",
    "overheadMs",
    "end",
];

/// A call has every member of the contract, and is told to its key, its agent and the workspace's admin keys alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_told_to_its_own() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1_000_000, json!([{ "at": 100, "step": "stop" }])).await;
    let agent = desk.site.agent(&[]);
    let own = desk.key.clone();
    desk.key.clone_from(&agent.key);
    let headers = [("x-svc-task-id", "tsk_mine"), ("x-svc-client-session", "s-1"), ("x-svc-objective", "latency")];
    let got = desk.chat_with(&headers, &chat("large-1")).await;
    got.ok();
    let call = desk.call_of(&got).await;
    let found: Vec<&String> = call.as_object().unwrap().keys().collect();
    assert!(MEMBERS.iter().all(|it| found.iter().any(|found| found == it)), "{found:?}");
    assert_eq!(found.len(), MEMBERS.len(), "{found:?}");
    for (member, value) in [
        ("taskId", json!("tsk_mine")),
        ("session", json!("s-1")),
        ("agentId", json!(agent.id.to_string())),
        ("requestedModel", json!("large-1")),
        ("objective", json!("latency")),
        ("stream", json!(false)),
        ("attempts", json!([{ "model": "chat/large-1", "status": 200, "ms": call["attempts"][0]["ms"] }])),
        ("budgets", json!([budget])),
        ("dataLoss", json!({})),
        ("end", json!("done")),
        ("jurisdiction", json!("eu")),
    ] {
        assert_eq!(call[member], value, "{member}");
    }
    assert!(call["attempts"][0]["ms"].as_u64() <= call["durationMs"].as_u64(), "{call}");
    assert!(call["durationMs"].as_u64().unwrap() >= call["overheadMs"].as_u64().unwrap());
    let id = call["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("cal_"));
    let path = format!("agents/{}/keys", agent.id);
    let sibling = desk.post(&path, json!({ "label": "second" })).await.made()["key"].as_str().unwrap().to_owned();
    let stranger = desk.site.agent(&[]).key;
    for (key, status) in [
        (&sibling, 200),
        (&desk.site.key(KeyScope::Admin), 200),
        (&own, 404),
        (&stranger, 404),
        (&desk.site.key(KeyScope::Inference), 404),
    ] {
        assert_eq!(desk.client.get(&format!("/v1/calls/{id}"), key).await.status, status);
    }
    for id in ["cal_00000000000000000000000000", "cal_x"] {
        let got = desk.client.get(&format!("/v1/calls/{id}"), &own).await;
        assert_eq!((got.status, got.kind().as_str()), (404, "not_found"));
    }
}

/// A client's own well-formed id makes a task, and what is spent on it adds up; a server's own is given where none came. A task
/// of another principal is none of a key's business.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_add_up() {
    let mut desk = Desk::new().await;
    let mut spent = 0;
    for path in [CHAT, MESSAGES] {
        let got = desk.send(path, &[("x-svc-task-id", "tsk_mine")], chat("chat/large-1").to_string().as_bytes()).await;
        assert_eq!(got.header("x-svc-task-id"), Some("tsk_mine"));
        spent += desk.call_of(&got).await["costMicros"].as_u64().unwrap();
    }
    let got = desk.chat("chat/large-1").await;
    let minted = got.header("x-svc-task-id").unwrap().to_owned();
    assert!(minted.starts_with("tsk_") && minted.len() == 30, "{minted}");
    let tasks = desk.read("tasks").await;
    let tasks = tasks["data"].as_array().unwrap();
    assert!(tasks.len() == 2 && tasks.iter().any(|it| it["id"] == json!(minted)), "{tasks:?}");
    let mine = tasks.iter().find(|it| it["id"] == "tsk_mine").unwrap();
    assert_eq!((&mine["id"], &mine["calls"], &mine["spentMicros"]), (&json!("tsk_mine"), &json!(2), &json!(spent)));
    let found: Vec<&String> = mine.as_object().unwrap().keys().collect();
    assert_eq!(found, ["calls", "createdAt", "createdBy", "id", "principalId", "spentMicros", "taskClass"]);
    let other = desk.site.member(Role::Member).principal.to_string();
    desk.key = desk.key_with(json!({ "principalId": other })).await.0;
    let got = desk.chat_with(&[("x-svc-task-id", "tsk_mine")], &chat("chat/large-1")).await;
    assert_eq!((got.status, got.kind().as_str()), (403, "forbidden"));
    desk.key = desk.site.key(KeyScope::Admin);
    desk.chat_with(&[("x-svc-task-id", "tsk_mine")], &chat("chat/large-1")).await.ok();
    for id in ["mine", "tsk_", "tsk_a b", "tsk_é", "TSK_a"] {
        let got = desk.chat_with(&[("x-svc-task-id", id)], &chat("chat/large-1")).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["x-svc-task-id".into()]), "{id}");
    }
}

/// An outcome is recorded, a later one takes its place and both stay in the ledger; spend becomes yield.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_turn_spend_into_yield() {
    let mut desk = Desk::new().await;
    desk.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let mut spent = Vec::new();
    for task in ["tsk_1", "tsk_2", "tsk_3"] {
        let headers = [("x-svc-task-id", task), ("x-svc-task-class", "support.reply")];
        let got = desk.chat_with(&headers, &chat("chat/large-1")).await;
        spent.push(desk.call_of(&got).await["costMicros"].as_u64().unwrap());
    }
    let (key, admin) = (desk.key.clone(), desk.site.key(KeyScope::Admin));
    let reports = [(&key, "tsk_1", "accepted"), (&key, "tsk_2", "accepted"), (&admin, "tsk_2", "rejected")];
    for (key, task, status) in reports {
        let told = desk.client.post("/v1/outcomes", key, &json!({ "taskId": task, "status": status })).await.ok();
        let at = desk.site.now().to_string();
        let wanted = json!({ "taskId": task, "status": status, "spentMicros": spent[0], "recordedAt": at });
        assert_eq!(told, wanted);
        desk.site.shift(Span::seconds(1));
    }
    let ledger = desk.site.ledger();
    let kept: Vec<&str> = ledger.iter().filter(|it| &*it.kind == "outcome.reported").map(|it| &*it.data).collect();
    assert_eq!(kept.len(), 3);
    assert!(kept[2].contains("\"before\":\"accepted\"") && kept[2].contains("rejected"), "{kept:?}");
    let tasks = desk.read("tasks").await;
    for (task, outcome) in [("tsk_1", json!("accepted")), ("tsk_2", json!("rejected")), ("tsk_3", Value::Null)] {
        let told = tasks["data"].as_array().unwrap().iter().find(|it| it["id"] == task).unwrap();
        assert_eq!(told["outcome"], outcome, "{task}");
    }
    for by in ["model", "taskClass", "principal", "key"] {
        let row = desk.read(&format!("reports/yield?by={by}")).await["rows"][0].clone();
        let told =
            ["tasks", "reported", "accepted", "rejected", "partial", "abandoned"].map(|it| row[it].as_u64().unwrap());
        assert_eq!(told, [3, 2, 1, 1, 0, 0], "{by}: {row}");
        assert_eq!(row["name"] == row["key"], matches!(by, "model" | "taskClass"), "{by}: {row}");
        let sum: u64 = spent.iter().sum();
        assert_eq!(row["costMicros"], json!(sum), "{by}: {row}");
    }
    for (body, status, kind, fields) in [
        (json!({ "taskId": "tsk_9", "status": "accepted" }), 404, "unknown_task", vec![]),
        (json!({ "taskId": "9", "status": "fine" }), 400, "invalid_status", vec![]),
        (json!({ "taskId": "tsk_1" }), 400, "invalid_status", vec![]),
        (json!({ "taskId": "9", "status": "partial" }), 400, "invalid_request", vec!["taskId"]),
        (json!({ "status": "partial", "task": 1 }), 400, "invalid_request", vec!["taskId"]),
    ] {
        let got = desk.client.post("/v1/outcomes", &key, &body).await;
        let fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
        assert_eq!(got.refusal(), (status, kind.to_owned(), fields), "{body}");
    }
}

/// The scores of a preview by model.
async fn scores(desk: &mut Desk) -> BTreeMap<String, u64> {
    let key = desk.key.clone();
    let told = desk.client.post("/v1/route/preview", &key, &json!({ "taskClass": "support.reply" })).await.ok();
    let name = |it: &Value| format!("{}/{}", it["provider"].as_str().unwrap(), it["model"].as_str().unwrap());
    told["candidates"].as_array().unwrap().iter().map(|it| (name(it), it["score"].as_u64().unwrap())).collect()
}

/// What models yield relative to their class is told with three places once twenty tasks were reported, and bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn yield_is_relative_to_the_class() {
    let mut desk = Desk::new().await;
    desk.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let key = desk.key.clone();
    let before = scores(&mut desk).await;
    for (model, accepted) in [("chat/large-1", 20), ("chat/small-1", 10)] {
        for number in 0..20 {
            let task = format!("tsk_{}{number}", if model == "chat/large-1" { "l" } else { "s" });
            let headers = [("x-svc-task-id", &*task), ("x-svc-task-class", "support.reply")];
            let got = desk.chat_with(&headers, &chat(model)).await;
            assert_eq!(got.header("x-svc-yield-multiplier"), Some("1.000"), "under twenty reports");
            let status = if number < accepted { "accepted" } else { "rejected" };
            let report = json!({ "taskId": task, "status": status });
            desk.client.post("/v1/outcomes", &key, &report).await.ok();
        }
    }
    // 30 of 40 in the class: 1 ÷ 0.75 and 0.5 ÷ 0.75.
    for (model, multiplier) in [("chat/large-1", "1.333"), ("chat/small-1", "0.667"), ("messages/large-1", "1.000")] {
        let got = desk.chat_with(&[("x-svc-task-class", "support.reply")], &chat(model)).await;
        assert_eq!(got.header("x-svc-yield-multiplier"), Some(multiplier), "{model}");
    }
    // The first that has the name cannot be reached: the yield is that of the one that answered.
    let (chat_id, url) = (desk.upstreams["chat"].clone(), desk.mock.chat_url());
    let mut moved = async |url: &str| {
        let change = json!({ "baseUrl": url, "apiKey": "sk-planted-abcd" });
        desk.api("PATCH", &format!("upstreams/{chat_id}"), Some(&change)).await.ok();
        desk.chat_with(&[("x-svc-task-class", "support.reply")], &chat("large-1")).await
    };
    let failed_over = moved("http://127.0.0.1:1/v1").await;
    assert_eq!(failed_over.header("x-svc-yield-multiplier"), Some("1.000"), "messages/large-1 answered");
    assert_eq!(moved(&url).await.status, 200);
    let after = scores(&mut desk).await;
    assert!(
        after["chat/large-1"] > before["chat/large-1"] && after["chat/small-1"] < before["chat/small-1"],
        "{after:?}"
    );
    let got = desk.chat("chat/large-1").await;
    assert_eq!(got.header("x-svc-yield-multiplier"), Some("1.000"), "a call of no class has no mean");
    desk.site.advance(Span::hours(24 * 31));
    let got = desk.chat_with(&[("x-svc-task-class", "support.reply")], &chat("chat/large-1")).await;
    assert_eq!(got.header("x-svc-yield-multiplier"), Some("1.000"), "thirty days count");
}

/// Tokens are counted by the provider where it counts, else estimated, and that is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_counted_or_estimated() {
    let mut desk = Desk::new().await;
    let path = "/anthropic/v1/messages/count_tokens";
    let mut body = chat("messages/large-1");
    body.as_object_mut().unwrap().remove("max_tokens");
    let got = desk.send(path, &[], body.to_string().as_bytes()).await;
    assert!(got.ok()["input_tokens"].as_u64().unwrap() > 0 && got.header("x-svc-advisory").is_none(), "{got:?}");
    assert_eq!(desk.mock.heard().last().unwrap().path, "/v1/messages/count_tokens");
    let wrong = desk.send(path, &[("x-svc-objective", "odd")], br#"{"model":5,"messages":5}"#).await;
    assert_eq!(
        (wrong.status, wrong.fields()),
        (400, ["messages", "model", "x-svc-objective"].map(str::to_owned).to_vec())
    );
    body["model"] = json!("chat/large-1");
    let before = desk.mock.counts().requests;
    let got = desk.send(path, &[], body.to_string().as_bytes()).await;
    let told = got.ok();
    assert!(told["input_tokens"].as_u64().unwrap() > 0 && told["svc"]["estimated"] == json!(true), "{told}");
    assert!(got.header("x-svc-advisory").unwrap().contains("estimate"), "{got:?}");
    assert_eq!(desk.mock.counts().requests, before);
    assert_eq!(desk.read("calls").await["data"], json!([]), "counting is no call");
    let got = desk.send(path, &[], json!({ "model": "messages/large-1", "messages": [] }).to_string().as_bytes()).await;
    assert_eq!((got.status, &got.json()["type"]), (400, &json!("error")));
    // What is no count is estimated, and what is said beside one goes no further.
    for (at, (said, count)) in [
        (json!({ "x": 1 }), None),
        (json!({ "input_tokens": "many" }), None),
        (json!({ "input_tokens": 1.5, "key": "sk-planted-abcd" }), None),
        (json!({ "error": { "message": "wrong key sk-planted-abcd" } }), None),
        (json!({ "input_tokens": 7, "key": "sk-planted-abcd" }), Some(7)),
    ]
    .into_iter()
    .enumerate()
    {
        let url = answering(said.to_string()).await;
        let id = desk.upstream(&format!("odd-{at}"), "messages", &url).await;
        desk.model(&id, "m", 50, 1, 2).await;
        body["model"] = json!(format!("odd-{at}/m"));
        let told = desk.send(path, &[], body.to_string().as_bytes()).await.ok();
        match count {
            Some(count) => assert_eq!(told, json!({ "input_tokens": count })),
            None => assert!(told["svc"]["estimated"] == json!(true) && told["input_tokens"].is_u64(), "{said} {told}"),
        }
        assert!(!told.to_string().contains("sk-planted"), "{told}");
    }
}

/// What a provider says is wrong with a request that is to be counted is the client's to mend, as with the call; a provider that
/// fails has told no count now, which is said, and what is estimated in its place counts pictures and pages too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_fails_to_count_is_no_provider_that_cannot() {
    let mut desk = Desk::new().await;
    let path = "/anthropic/v1/messages/count_tokens";
    let url = desk.mock.messages_url();
    let id = desk.upstream("failing", "messages", &url).await;
    let picture = json!([{ "role": "user", "content": [
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } },
        { "type": "document", "source": { "type": "base64", "media_type": "application/pdf", "data": "aGk=" } },
    ] }]);
    for status in [400, 413, 422, 401, 403, 404, 429, 500] {
        let model = format!("m--status-{status}");
        desk.model(&id, &model, 50, 1, 2).await;
        let body = json!({ "model": format!("failing/{model}"), "messages": picture }).to_string();
        let got = desk.send(path, &[], body.as_bytes()).await;
        if matches!(status, 400 | 413 | 422) {
            assert_eq!((got.status, got.kind().as_str()), (status, "upstream_rejected"), "{}", got.text());
            assert!(got.text().contains("this status was asked for"), "{}", got.text());
            assert_eq!(got.json()["error"]["attemptedModels"][0]["provider"], "failing");
            continue;
        }
        let told = got.ok();
        assert!(told["input_tokens"].as_u64().unwrap() > 1_000 && told["svc"]["estimated"] == true, "{status} {told}");
        assert_eq!(got.header("x-svc-advisory"), Some("the provider has told no count now: this is an estimate"));
    }
}

/// Every header that a call may bring is read, and each that is malformed, too long or sent twice is named, in both shapes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_read() {
    let mut desk = Desk::new().await;
    desk.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let headers = [
        ("x-svc-task-class", "support.reply"),
        ("x-svc-task-id", "tsk_mine"),
        ("x-svc-objective", "sovereign"),
        ("x-svc-human-oversight", "acknowledged"),
        ("x-svc-client-session", "a/session:of~signs"),
    ];
    let got = desk.chat_with(&headers, &chat("chat/large-1")).await;
    let call = desk.call_of(&got).await;
    for (member, value) in [
        ("taskClass", "support.reply"),
        ("taskId", "tsk_mine"),
        ("objective", "sovereign"),
        ("humanOversight", "acknowledged"),
        ("session", "a/session:of~signs"),
    ] {
        assert_eq!(call[member], json!(value), "{member}");
    }
    assert_eq!(got.header("x-svc-session"), None);
    let most = "s".repeat(128);
    desk.chat_with(&[("x-svc-client-session", &most)], &chat("chat/large-1")).await.ok();
    let (longer, class) = ("s".repeat(129), "c".repeat(65));
    for path in [CHAT, MESSAGES] {
        for header in [
            ("x-svc-client-session", &*longer),
            ("x-svc-client-session", "é"),
            ("x-svc-client-session", "two words"),
            ("x-svc-client-session", ""),
            ("x-svc-task-class", "Support Reply"),
            ("x-svc-task-class", &*class),
            ("x-svc-objective", "Cost"),
            ("x-svc-dry-run", "1"),
            ("x-svc-human-oversight", "no"),
        ] {
            let got = desk.send(path, &[header], chat("chat/large-1").to_string().as_bytes()).await;
            assert_eq!(got.refusal(), (400, "invalid_request".into(), vec![header.0.to_owned()]), "{header:?}");
        }
        let twice = [("x-svc-task-id", "tsk_a"), ("x-svc-task-id", "tsk_b")];
        let got = desk.send(path, &twice, chat("chat/large-1").to_string().as_bytes()).await;
        assert_eq!(got.fields(), ["x-svc-task-id"]);
    }
    // The coding client's own header is a session where it can be one; the server's own is given where none came.
    for (value, session) in [("coding-1", Some("coding-1")), (&*longer, None)] {
        let got = desk.chat_with(&[("x-claude-code-session-id", value)], &chat("chat/large-1")).await;
        let call = desk.call_of(&got).await;
        match session {
            Some(session) => assert_eq!((&call["session"], got.header("x-svc-session")), (&json!(session), None)),
            None => assert_eq!(got.header("x-svc-session"), call["session"].as_str()),
        }
    }
    let both = [("x-claude-code-session-id", "coding-1"), ("x-svc-client-session", "mine")];
    let got = desk.chat_with(&both, &chat("chat/large-1")).await;
    assert_eq!(desk.call_of(&got).await["session"], json!("mine"));
}

/// Bad bodies are told with every fault, in both shapes, and nothing of them is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_bodies_are_told() {
    let mut desk = Desk::new().await;
    let before = desk.mock.counts().requests;
    for path in [CHAT, MESSAGES] {
        for body in ["", "{", "<html>", "[1,", "{\"model\":\"chat/large-1\",}"] {
            let got = desk.send(path, &[], body.as_bytes()).await;
            assert_eq!((got.status, got.kind().as_str()), (400, "invalid_json"), "{path} {body}: {}", got.text());
        }
        let result = if path == CHAT {
            json!({ "role": "tool", "tool_call_id": "none", "content": "x" })
        } else {
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "none", "content": "x" }] })
        };
        let user = json!({ "role": "user", "content": "x" });
        let of = |messages: Value| json!({ "model": "chat/large-1", "max_tokens": 9, "messages": messages });
        for (body, field) in [
            (json!([]), "null"),
            (json!({ "max_tokens": 9, "messages": [user] }), "model"),
            (json!({ "model": 7, "max_tokens": 9, "messages": [user] }), "model"),
            (of(json!([])), "messages"),
            (of(json!("x")), "messages"),
            (of(json!([{ "role": "wizard", "content": "x" }])), "messages.0.role"),
            (of(json!([user, result])), "messages.1"),
            (json!({ "model": "chat/large-1", "max_tokens": -1, "messages": [user] }), "max_tokens"),
        ] {
            let got = desk.send(path, &[], body.to_string().as_bytes()).await;
            assert_eq!((got.status, got.kind().as_str()), (400, "invalid_request"), "{path} {body}: {}", got.text());
            assert!(got.fields().iter().any(|it| it.starts_with(field)), "{path} {body}: {}", got.text());
        }
        for model in ["nowhere/large-1", "chat/none", "none"] {
            let got = desk.send(path, &[], chat(model).to_string().as_bytes()).await;
            assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["model".into()]), "{path} {model}");
        }
    }
    assert_eq!(desk.mock.counts().requests, before, "nothing was sent");
}
