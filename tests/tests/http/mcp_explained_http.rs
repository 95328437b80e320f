//! What `explain_decision` says would be allowed, and what it says to do next, asked for over a real socket.

use serde_json::{Value, json};
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_tests::client::{Client, bearer, until};
use svc_tests::oauth::HOST;
use svc_tests::play::freeze;
use svc_tests::requests::{OFFICE, charge, payment, payment_to};
use svc_tests::site::Site;
use svc_tests::tool_desk::{ToolDesk, calling, text};
use svc_tests::tool_server::{Reply, Speaks};

/// What the agent with this key is told of its own action.
async fn explained(client: &mut Client, key: &str, action: &Value) -> Value {
    let params = json!({ "name": "explain_decision", "arguments": { "actionId": action["id"] } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let headers = [("host", HOST), ("authorization", &*bearer(key))];
    client.ask("POST", "/mcp", &headers, body.as_bytes()).await.ok()["result"]["structuredContent"].clone()
}

/// What an explanation says would be allowed is: no more than nobody is asked about, with what was paid there before, and
/// at another time only what a whole period has room for.
#[tokio::test]
async fn what_would_be_allowed_is_allowed() {
    const TIGHT: &str = r#"{"name":"Tight","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,
        "askAbove":1000,"onLimit":"deny"},"duplicates":"record"}"#;
    const DAILY: &str = r#"{"name":"Daily","actions":["payment"],"limits":{"currency":"EUR",
        "perPeriod":{"amount":1000,"period":"day"},"onLimit":"deny"},"duplicates":"record"}"#;
    const WATCHED: &str = r#"{"name":"Watched","actions":["payment"],"limits":{"currency":"EUR",
        "perPeriod":{"amount":600,"period":"day"},"askAbove":300,"onLimit":"deny"},"duplicates":"record"}"#;
    let site = Site::start().await;
    let mut client = site.client().await;
    let [tight, daily, watched] = [TIGHT, DAILY, WATCHED].map(|it| site.agent(&[it]).key);
    let mut asked = async |key: &str, amount: i64| client.authorize(key, &payment(amount)).await.ok();
    let (mut other, mut third) = (site.client().await, site.client().await);
    let mut way = async |key: &str, action: &Value| {
        let told = explained(&mut other, key, action).await;
        let said = told["nextStep"].as_str().unwrap().contains("wouldBeAllowed");
        assert_eq!(said, told.get("wouldBeAllowed").is_some() && told["decision"] == "deny", "{told}");
        told["wouldBeAllowed"].clone()
    };
    let amount = |value: i64| json!({ "changed": "payment.amount", "value": value });
    for (before, most) in [(None, 1_000), (Some(400), 600)] {
        if let Some(before) = before {
            site.advance(Span::hours(25));
            assert_eq!(asked(&tight, before).await["decision"], "allow");
        }
        let denied = asked(&tight, 9_000).await;
        assert_eq!((&denied["decision"], way(&tight, &denied).await), (&json!("deny"), amount(most)));
        assert_eq!(asked(&tight, most).await["decision"], "allow");
    }
    let denied = asked(&tight, 9_000).await;
    assert_eq!(way(&tight, &denied).await, Value::Null, "nothing more goes there unasked today");
    site.advance(Span::hours(25));
    assert_eq!(asked(&daily, 1_000).await["decision"], "allow");
    let denied = asked(&daily, 2_000).await;
    assert_eq!((&denied["decision"], way(&daily, &denied).await), (&json!("deny"), Value::Null), "more than a day has");
    let denied = asked(&daily, 500).await;
    assert_eq!(way(&daily, &denied).await["changed"], "time");
    for domain in ["shop.example.net", "shop.example.org"] {
        let paid = third.authorize(&watched, &payment_to(300, domain)).await.ok();
        assert_eq!(paid["decision"], "allow");
    }
    let denied = asked(&watched, 500).await;
    assert_eq!((&denied["decision"], way(&watched, &denied).await), (&json!("deny"), Value::Null), "asked tomorrow");
    site.advance(Span::hours(24));
    assert_eq!(asked(&daily, 500).await["decision"], "allow");
}

/// A change is told where the gate would allow it, by all that it goes by: of a smaller amount a narrower mandate may speak, it may
/// have been paid just now, and a mandate may end before it has room again.
#[tokio::test]
async fn a_change_is_told_by_the_gates_own_word() {
    let site = Site::start().await;
    let (mut client, mut other) = (site.client().await, site.client().await);
    let [narrow, wide, plain, larger] = [
        r#""perAction":250,"askAbove":40,"onLimit":"deny""#,
        r#""perAction":1000,"askAbove":100,"onLimit":"deny""#,
        r#""perAction":250,"onLimit":"deny""#,
        r#""perAction":1000,"onLimit":"deny""#,
    ]
    .map(|it| format!(r#"{{"name":"Pay","actions":["payment"],"limits":{{"currency":"EUR",{it}}}}}"#));
    let ending = format!(
        r#"{{"name":"Ends","actions":["payment"],"limits":{{"currency":"EUR","perPeriod":{{"amount":1000,"period":"year"}}}},
            "expiresAt":"{}"}}"#,
        site.now().plus(Span::minutes(30))
    );
    let both = site.agent(&[&*narrow, &*wide]).key;
    let asked = client.authorize(&both, &payment(3_000)).await.ok();
    let told = explained(&mut other, &both, &asked).await;
    assert_eq!((&told["decision"], &told["wouldBeAllowed"]["value"]), (&json!("deny"), &json!(40)));
    for (amount, domain, verb) in [(41, "shop.example.org", "approval_required"), (40, "shop.example.net", "allow")] {
        assert_eq!(client.authorize(&both, &payment_to(amount, domain)).await.ok()["decision"], verb, "{amount}");
    }
    // One of them has to permit it, and the other one binds it to nothing.
    let either = site.agent(&[&*plain, &*larger]).key;
    let denied = client.authorize(&either, &payment(3_000)).await.ok();
    assert_eq!(explained(&mut other, &either, &denied).await["wouldBeAllowed"]["value"], 1_000);
    assert_eq!(client.authorize(&either, &payment(1_000)).await.ok()["decision"], "allow");
    for (terms, before, more) in [(&plain, 250, 300), (&ending, 1_000, 500)] {
        let key = site.agent(&[&**terms]).key;
        assert_eq!(client.authorize(&key, &payment(before)).await.ok()["decision"], "allow");
        let denied = client.authorize(&key, &payment(more)).await.ok();
        let told = explained(&mut other, &key, &denied).await;
        assert_eq!((&told["decision"], &told["wouldBeAllowed"]), (&json!("deny"), &Value::Null), "{terms}");
    }
}

/// What waits is waited for: nothing smaller is told that could be asked for beside it, as nobody takes back what waits, and both together
/// are what a person is asked about.
#[tokio::test]
async fn what_waits_is_waited_for() {
    const CAREFUL: &str = r#"{"name":"Careful","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,
        "askAbove":1000,"onLimit":"deny"},"duplicates":"record"}"#;
    let site = Site::start().await;
    let (mut client, mut other, key) = (site.client().await, site.client().await, site.agent(&[CAREFUL]).key);
    let waits = client.authorize(&key, &payment(1_500)).await.ok();
    let told = explained(&mut other, &key, &waits).await;
    assert_eq!((&told["decision"], told.get("wouldBeAllowed")), (&json!("approval_required"), None), "{told}");
    assert!(told["nextStep"].as_str().unwrap().starts_with("Wait: "), "{told}");
    assert_eq!(client.authorize(&key, &payment(1_000)).await.ok()["decision"], "approval_required");
    site.stop().await;
}

/// Of what was allowed nothing is told to be done a second time: not once its receipt was used up or has expired, nor once it has
/// lapsed or is settled.
#[tokio::test]
async fn what_was_allowed_is_told_to_be_done_once() {
    let site = Site::start().await;
    let (mut client, mut other, key) = (site.client().await, site.client().await, site.agent(&[OFFICE]).key);
    let mut asked = Vec::new();
    for amount in [100, 200, 300, 400] {
        asked.push(client.authorize(&key, &payment(amount)).await.ok());
    }
    let mut next = async |action: &Value| {
        let told = explained(&mut other, &key, action).await;
        assert_eq!(told["decision"], "allow", "{told}");
        told["nextStep"].as_str().unwrap().to_owned()
    };
    let [used, left, done, failed] = [0, 1, 2, 3].map(|it| &asked[it]);
    assert!(next(used).await.starts_with("Do it, show the receipt"));
    assert_eq!(client.verify(&charge(&used["receipt"], 100)).await.ok()["valid"], true);
    let step = next(used).await;
    assert!(
        step.starts_with("Do not begin it again: its receipt was used up") && step.contains("settle_action"),
        "{step}"
    );
    client.settle(&key, done["id"].as_str().unwrap(), &json!({ "status": "completed" })).await.ok();
    assert_eq!(next(done).await, "Nothing is left to do.");
    let cancelled = &client.authorize(&key, &payment(500)).await.ok();
    for (action, status) in [(failed, "failed"), (cancelled, "cancelled")] {
        client.settle(&key, action["id"].as_str().unwrap(), &json!({ "status": status })).await.ok();
        let step = next(action).await;
        assert!(step.starts_with("Nothing is left to do about this action") && step.contains("ask anew"), "{step}");
    }
    site.advance(Span::minutes(16));
    let read = client.read_action(&key, left["id"].as_str().unwrap()).await.ok();
    assert_eq!((&read["status"], read.get("receipt")), (&json!("allowed"), None));
    let step = next(left).await;
    assert!(step.starts_with("Do not do it any more: its receipt has expired"), "{step}");
    assert!(step.contains("`cancelled`") && step.contains("ask anew"), "{step}");
    assert!(next(used).await.starts_with("Do not begin it again"), "it may have been done, however long ago");
    site.advance(Span::hours(24));
    for action in [left, used] {
        let read = client.read_action(&key, action["id"].as_str().unwrap()).await.ok();
        assert_eq!(read["status"], "lapsed");
        let step = next(action).await;
        assert!(step.starts_with("Do not do it any more") && step.contains("late as that is"), "{step}");
        client.settle(&key, action["id"].as_str().unwrap(), &json!({ "status": "cancelled" })).await.ok();
    }
    site.stop().await;
}

/// What is not allowed is told with what can still be done about it: nobody's no is asked anew, a person's is told with its note, and
/// what a stop revoked is reported.
#[tokio::test]
async fn a_no_is_told_with_what_is_left_to_do() {
    let site = Site::start().await;
    let (mut client, mut other, agent) = (site.client().await, site.client().await, site.agent(&[OFFICE]));
    let (owner, key) = (site.member(Role::Owner), agent.key.clone());
    let mut told = async |action: &Value| {
        let told = explained(&mut other, &key, action).await;
        (told["decision"].clone(), told["nextStep"].as_str().unwrap().to_owned(), told.get("note").cloned())
    };
    let refused = client.authorize(&key, &payment_to(100, "bad.example.net")).await.ok();
    let (decision, step, note) = told(&refused).await;
    assert_eq!((&decision, note), (&json!("deny"), None));
    assert!(step.contains("who can change the rules"), "{step}");
    let waits = client.authorize(&key, &payment(20_001)).await.ok();
    let path = format!("/api/w/{}/approvals/{}/deny", site.workspace(), waits["approval"]["id"].as_str().unwrap());
    owner.ask(&mut client, "POST", &path, Some(&json!({ "note": "use the other shop" }))).await.ok();
    let (decision, step, note) = told(&waits).await;
    assert_eq!((&decision, note), (&json!("deny"), Some(json!("use the other shop"))));
    assert!(step.contains("a person said no") && step.contains("`note`"), "{step}");
    let waits = client.authorize(&key, &payment(20_002)).await.ok();
    assert_eq!(waits["decision"], "approval_required");
    site.advance(Span::hours(24));
    let (decision, step, _) = told(&waits).await;
    assert_eq!(decision, "deny");
    assert!(step.contains("nobody decided in time") && step.contains("ask anew"), "{step}");
    let first = client.authorize(&key, &payment(100)).await.ok();
    let second = client.authorize(&key, &payment(200)).await.ok();
    site.gate.execute(freeze(site.workspace(), agent.caller)).unwrap();
    for (action, status) in [(first, "completed"), (second, "cancelled")] {
        let (decision, step, _) = told(&action).await;
        assert_eq!(decision, "deny");
        assert!(step.starts_with("Do not do it, and do not begin it again: the agent was stopped"), "{step}");
        assert!(step.contains("settle_action"), "{step}");
        client.settle(&key, action["id"].as_str().unwrap(), &json!({ "status": status })).await.ok();
        let (decision, step, _) = told(&action).await;
        assert_eq!((&decision, &*step), (&json!("deny"), "Nothing is left to do."));
    }
    let stopped = client.authorize(&key, &payment(300)).await.ok();
    let (decision, step, _) = told(&stopped).await;
    assert_eq!(decision, "deny");
    assert!(step.contains("only a person can start it again"), "{step}");
    site.stop().await;
}

/// Of a call that came through the proxy nobody is told to make it beside svc, which made it: not while it is under way, nor once nobody
/// knows what became of it, nor once it failed. What a person has approved is called again, and then made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxied_call_is_told_to_be_done_by_nobody_else() {
    const THREE: &str =
        r#"{"name":"Three","actions":["mcp.call"],"limits":{"count":{"max":3,"period":"day"},"onLimit":"ask"}}"#;
    let mut desk = ToolDesk::with(Speaks::Modern, THREE).await;
    desk.server(json!({})).await;
    let (mut other, key) = (desk.site.client().await, desk.agent.key.clone());
    let mut step = async |desk: &mut ToolDesk| {
        desk.site.shift(Span::millis(1));
        let newest = desk.actions().await.remove(0);
        let told = explained(&mut other, &key, &newest).await;
        (newest["status"].as_str().unwrap().to_owned(), told["nextStep"].as_str().unwrap().to_owned(), newest)
    };
    desk.server.reply(Reply::Stalled(vec![]));
    let mut under_way = desk.begin(&desk.agent.key.clone(), &calling("read_one", json!({ "id": "1" }))).await;
    until(&mut under_way, "\r\n\r\n").await;
    let (status, said, _) = step(&mut desk).await;
    assert!(status == "allowed" && said.starts_with("Do not do it yourself: svc makes this call"), "{status} {said}");
    desk.server.reply(Reply::Closed);
    assert_eq!(desk.call("read_one", json!({ "id": "2" })).await["isError"], true);
    let (status, said, _) = step(&mut desk).await;
    assert!(status == "allowed" && said.starts_with("Do not do it yourself: svc makes this call"), "{status} {said}");
    desk.server.reply(Reply::Result(json!({ "content": [], "isError": true })));
    desk.call("read_one", json!({ "id": "3" })).await;
    let (status, said, _) = step(&mut desk).await;
    assert!(status == "failed" && said.ends_with("if it is still to be done, call the tool anew."), "{status} {said}");

    desk.server.reply(Reply::Text("done".to_owned()));
    assert!(text(&desk.call("read_one", json!({ "id": "4" })).await).contains("approval_required"));
    let (status, said, asked) = step(&mut desk).await;
    assert!(status == "pending" && said.starts_with("Wait: "), "{status} {said}");
    let path = format!("approvals/{}/approve", asked["approval"]["id"].as_str().unwrap());
    desk.api("POST", &path, Some(&json!({}))).await.ok();
    let (status, said, _) = step(&mut desk).await;
    assert!(status == "allowed" && said.starts_with("Call the tool again with the same arguments"), "{status} {said}");
    assert_eq!(text(&desk.call("read_one", json!({ "id": "4" })).await), "done");
    assert_eq!(step(&mut desk).await.1, "Nothing is left to do.");
}
