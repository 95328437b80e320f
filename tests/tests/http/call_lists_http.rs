//! Model calls and tasks found by whom they were for, what they went to, how they ended, and when.

use serde_json::{Value, json};
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_tests::desk::{CHAT, Desk, Hand, chat};

/// The ids of a list by whatever tells its items apart, over all its pages.
async fn found(desk: &mut Desk, list: &str, query: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = desk.read(&format!("{list}?{query}{cursor}")).await;
        ids.extend(page["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// A call as members see it, after a second in which nothing else happens.
async fn called(desk: &mut Desk, headers: &[(&str, &str)], model: &str) -> Value {
    desk.site.shift(Span::seconds(1));
    let got = desk.chat_with(headers, &chat(model)).await;
    match got.header("x-svc-call-id") {
        Some(id) => {
            let id = id.to_owned();
            desk.call(&id).await
        }
        None => desk.read("calls?limit=1").await["data"][0].clone(),
    }
}

fn id(of: &Value) -> String {
    of["id"].as_str().unwrap().to_owned()
}

/// Each filter finds what it names and nothing else, several find what all of them name, and small pages the same as large ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_found_by_what_they_were() {
    let mut desk = Desk::new().await;
    desk.post("task-classes", json!({ "id": "review" })).await.made();
    let team = desk.post("teams", json!({ "name": "Books" })).await.made()["id"].as_str().unwrap().to_owned();
    let (agent, member) = (desk.site.agent(&[]), desk.site.member(Role::Member).principal.to_string());
    let plain = desk.key.clone();

    let class = [("x-svc-task-class", "review"), ("x-svc-task-id", "tsk_one")];
    let first = called(&mut desk, &class, "chat/large-1").await;
    desk.key.clone_from(&agent.key);
    let second = called(&mut desk, &[("x-svc-task-id", "tsk_two")], "messages/large-1").await;
    desk.key = desk.key_with(json!({ "label": "books", "teamId": team, "principalId": member })).await.0;
    let third = called(&mut desk, &[], "chat/small-1").await;
    let refused = desk.upstreams["chat"].clone();
    desk.model(&refused, "no-1--status-400", 10, 1, 1).await;
    let fourth = called(&mut desk, &[], "chat/no-1--status-400").await;
    assert_ne!(fourth["end"], "done", "{fourth}");
    let hand = Hand::new();
    let slow = desk.upstream("slow", "messages", &hand.url()).await;
    desk.model(&slow, "slow-1", 10, 1, 1).await;
    desk.site.shift(Span::seconds(1));
    desk.key = plain;
    let waiting = desk.begin(CHAT, &[], &chat("slow/slow-1")).await;
    let asked = hand.asked().await;
    let fifth = desk.read("calls?limit=1").await["data"][0].clone();
    assert_eq!(fifth["end"], Value::Null, "{fifth}");

    let all = [&fifth, &fourth, &third, &second, &first].map(id);
    let [five, four, three, two, one] = all.clone();
    let text = |of: &Value, name: &str| of[name].as_str().unwrap().to_owned();
    for (query, wanted) in [
        (String::new(), all.to_vec()),
        (format!("agentId={}", agent.id), vec![two.clone()]),
        (format!("keyId={}", text(&first, "keyId")), vec![five.clone(), one.clone()]),
        (format!("teamId={team}"), vec![four.clone(), three.clone()]),
        (format!("principalId={member}"), vec![four.clone(), three.clone()]),
        ("taskClass=review".to_owned(), vec![one.clone()]),
        ("taskId=tsk_two".to_owned(), vec![two.clone()]),
        ("model=large-1".to_owned(), vec![two.clone(), one.clone()]),
        ("model=chat/large-1".to_owned(), vec![one.clone()]),
        ("model=large".to_owned(), vec![]),
        ("model=chat/".to_owned(), vec![]),
        ("end=done".to_owned(), vec![three.clone(), two.clone(), one.clone()]),
        (format!("end={}", text(&fourth, "end")), vec![four.clone()]),
        ("end=running".to_owned(), vec![five.clone()]),
        ("end=lapsed".to_owned(), vec![]),
        (format!("from={}", text(&third, "startedAt")), vec![five.clone(), four.clone(), three.clone()]),
        (format!("to={}", text(&third, "startedAt")), vec![two.clone(), one.clone()]),
        (format!("end=done&teamId={team}"), vec![three.clone()]),
        (format!("end=running&agentId={}", agent.id), vec![]),
        (format!("agentId=agt_{}", "0".repeat(26)), vec![]),
    ] {
        for limit in [1, 2, 500] {
            assert_eq!(found(&mut desk, "calls", &format!("{query}&limit={limit}")).await, wanted, "{query} {limit}");
        }
    }
    drop((waiting, asked));
    desk.site.audit();
}

/// The same of tasks: by whom, by what came of them, and by when they began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_found_by_what_came_of_them() {
    let mut desk = Desk::new().await;
    desk.post("task-classes", json!({ "id": "review" })).await.made();
    let agent = desk.site.agent(&[]);
    let plain = desk.key.clone();
    called(&mut desk, &[("x-svc-task-id", "tsk_one"), ("x-svc-task-class", "review")], "chat/large-1").await;
    called(&mut desk, &[("x-svc-task-id", "tsk_two")], "chat/large-1").await;
    desk.key.clone_from(&agent.key);
    let third = called(&mut desk, &[("x-svc-task-id", "tsk_three")], "chat/large-1").await;
    let report = json!({ "taskId": "tsk_two", "status": "partial" });
    desk.client.post("/v1/outcomes", &plain, &report).await.ok();
    let begun = third["startedAt"].as_str().unwrap();
    for (query, wanted) in [
        (String::new(), vec!["tsk_three", "tsk_two", "tsk_one"]),
        (format!("agentId={}", agent.id), vec!["tsk_three"]),
        (format!("keyId={}", third["keyId"].as_str().unwrap()), vec!["tsk_three"]),
        (format!("principalId={}", third["principalId"].as_str().unwrap()), vec!["tsk_three", "tsk_two", "tsk_one"]),
        (format!("principalId=prp_{}", "0".repeat(26)), vec![]),
        ("taskClass=review".to_owned(), vec!["tsk_one"]),
        ("outcome=partial".to_owned(), vec!["tsk_two"]),
        ("outcome=accepted".to_owned(), vec![]),
        ("outcome=unreported".to_owned(), vec!["tsk_three", "tsk_one"]),
        (format!("from={begun}"), vec!["tsk_three"]),
        (format!("to={begun}&outcome=unreported"), vec!["tsk_one"]),
    ] {
        for limit in [1, 500] {
            assert_eq!(found(&mut desk, "tasks", &format!("{query}&limit={limit}")).await, wanted, "{query} {limit}");
        }
    }
    desk.site.audit();
}

/// What is found seldom is looked for in a bounded number of calls, and from the cursor on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_looks_at_a_bounded_number_of_calls() {
    let mut desk = Desk::new().await;
    let rare = called(&mut desk, &[("x-svc-task-id", "tsk_rare")], "chat/small-1").await;
    desk.site.shift(Span::seconds(1));
    // One more than a page looks at.
    for _ in 0..2_001 {
        desk.chat("chat/large-1").await.ok();
    }
    let first = desk.read("calls?taskId=tsk_rare").await;
    assert_eq!(first["data"], json!([]));
    let next = first["nextCursor"].as_str().unwrap();
    let second = desk.read(&format!("calls?taskId=tsk_rare&cursor={next}")).await;
    assert_eq!((&second["data"][0]["id"], &second["nextCursor"]), (&rare["id"], &Value::Null));
}

/// Every fault of a query is named, and a cursor is good for the list and the filters that it came with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_filter_of_calls_is_named() {
    let mut desk = Desk::new().await;
    for _ in 0..2 {
        desk.chat("chat/large-1").await.ok();
    }
    for (path, fields) in [
        (
            "calls?agentId=key_1&principalId=x&teamId=&keyId=agt_1&taskClass=A&taskId=one&model=a%20b&end=over&from=1&limit=0&cursor=x",
            [
                "agentId",
                "cursor",
                "end",
                "from",
                "keyId",
                "limit",
                "model",
                "principalId",
                "taskClass",
                "taskId",
                "teamId",
            ]
            .as_slice(),
        ),
        ("tasks?outcome=done&model=large-1&end=done&taskId=tsk_1", &["end", "model", "outcome", "taskId"]),
        ("calls?from=2026-10-02&to=2026-10-01", &["to"]),
        ("calls?outcome=accepted", &["outcome"]),
    ] {
        let got = desk.api("GET", path, None).await;
        let fields = fields.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(got.refusal(), (400, "invalid_request".into(), fields), "{path}");
    }
    let told = desk.api("GET", "calls?end=over", None).await.text();
    assert!(told.contains("must be one of done, hung_up, cut, refused, failed, lapsed, running"), "{told}");
    let next = desk.read("calls?limit=1&end=done").await["nextCursor"].as_str().unwrap().to_owned();
    for path in [format!("calls?limit=1&cursor={next}"), format!("tasks?limit=1&end=done&cursor={next}")] {
        assert!(desk.api("GET", &path, None).await.fields().contains(&"cursor".to_owned()), "{path}");
    }
    desk.api("GET", &format!("calls?limit=9&end=done&cursor={next}"), None).await.ok();
}
