//! What a code host sends of pull requests, over real sockets: the tasks that they name come to what became of them.

use serde_json::{Value, json};
use svc_core::state::edge::{ConfigChange, IntegrationKind};
use svc_tests::client::Got;
use svc_tests::desk::{Desk, chat};
use svc_tests::hooks::code_host_signature as signed;
use svc_tests::receiver::connect_kind;
use tokio::task::JoinSet;

/// A desk whose code host tells of `acme/shop` and its branch `main`.
async fn desk() -> Desk {
    let desk = Desk::new().await;
    let list = |it: &str| Some(vec![it.into()]);
    let config = ConfigChange { repositories: list("acme/shop"), branches: list("main"), ..ConfigChange::default() };
    connect_kind(&desk.site, IntegrationKind::Github, config);
    desk
}

/// A pull request that was closed; no two are the same.
fn closed(number: u32, title: &str, merged: bool) -> Value {
    json!({
        "action": "closed", "number": number,
        "pull_request": { "title": title, "body": null, "merged": merged, "base": { "ref": "main" }, "head": { "ref": "x" } },
        "repository": { "full_name": "Acme/shop" },
    })
}

async fn tell(desk: &mut Desk, event: &str, body: &Value) -> Got {
    let body = body.to_string();
    let path = format!("/hooks/github/{}", desk.site.workspace());
    let signature = signed(&body);
    let headers = [("x-hub-signature-256", &*signature), ("x-github-event", event), ("x-github-delivery", "d")];
    desk.client.ask("POST", &path, &headers, body.as_bytes()).await
}

async fn heard(desk: &mut Desk, body: &Value) -> String {
    let got = tell(desk, "pull_request", body).await.ok();
    assert_eq!(got["received"], true);
    got["outcome"].as_str().unwrap().to_owned()
}

async fn task(desk: &mut Desk, id: &str) {
    desk.chat_with(&[("x-svc-task-id", id)], &chat("large-1")).await.ok();
}

/// The outcomes in the ledger, each with the kind of who reported it.
fn outcomes(desk: &Desk) -> Vec<(Value, Value)> {
    let ledger = desk.site.ledger();
    let told = ledger.iter().filter(|it| &*it.kind == "outcome.reported");
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    told.map(|it| (json(&it.actor)["kind"].clone(), json(&it.data)["status"].clone())).collect()
}

/// A pull request that went in has its task accepted, one that did not rejected; whoever reported by a key is not contradicted, and
/// tasks that are nobody's here, other places and other events change nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_tells_what_came_of_its_tasks() {
    let mut desk = desk().await;
    for id in ["tsk_one", "tsk_two", "tsk_three"] {
        task(&mut desk, id).await;
    }
    assert_eq!(heard(&mut desk, &closed(1, "Mend it (tsk_one, tsk_two-again)", true)).await, "accepted");
    assert_eq!(heard(&mut desk, &closed(2, "Undo tsk_two", false)).await, "unchanged");
    task(&mut desk, "tsk_four").await;
    assert_eq!(heard(&mut desk, &closed(6, "Undo tsk_four", false)).await, "rejected");
    let (key, report) = (desk.key.clone(), json!({ "taskId": "tsk_three", "status": "abandoned" }));
    desk.client.post("/v1/outcomes", &key, &report).await.ok();
    assert_eq!(heard(&mut desk, &closed(3, "tsk_three and tsk_one", true)).await, "unchanged");
    assert_eq!(heard(&mut desk, &closed(4, "tsk_none", true)).await, "no_task");
    for (path, value) in [("/repository/full_name", "acme/other"), ("/pull_request/base/ref", "Main")] {
        let mut other = closed(5, "tsk_one", false);
        *other.pointer_mut(path).unwrap() = json!(value);
        assert_eq!(heard(&mut desk, &other).await, "not_listed", "{path}");
    }
    for (event, body) in
        [("ping", json!({ "zen": "x" })), ("push", json!({})), ("pull_request", json!({ "action": "opened" }))]
    {
        assert_eq!(tell(&mut desk, event, &body).await.ok()["outcome"], "ignored", "{event}");
    }
    let told =
        [("integration", "accepted"), ("integration", "accepted"), ("integration", "rejected"), ("key", "abandoned")];
    assert_eq!(outcomes(&desk), told.map(|(who, status)| (json!(who), json!(status))));
    let ledger = desk.site.ledger();
    let last = ledger.iter().rfind(|it| &*it.kind == "integration.received").unwrap();
    let data: Value = serde_json::from_str(&last.data).unwrap();
    assert_eq!(data, json!({ "kind": "github", "event": "pull_request", "outcome": "ignored" }));
}

/// A body that is broken is told of, whatever the event, and is neither recorded nor used up: sent again it is told of again, and
/// mended it counts. Of a closed pull request every missing member is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_body_is_told_of_and_leaves_nothing() {
    let mut desk = desk().await;
    task(&mut desk, "tsk_one").await;
    let before = desk.site.ledger().len();
    let path = format!("/hooks/github/{}", desk.site.workspace());
    let mut tell = async |event: &str, body: &str| {
        let signature = signed(body);
        let headers = [("x-hub-signature-256", &*signature), ("x-github-event", event)];
        desk.client.ask("POST", &path, &headers, body.as_bytes()).await
    };
    let mut broken = closed(1, "tsk_one", true);
    broken["pull_request"] = Value::Null;
    let broken = broken.to_string();
    for _ in 0..2 {
        for event in ["pull_request", "push", "ping"] {
            assert_eq!(tell(event, "{").await.refusal(), (400, "invalid_json".into(), vec![]), "{event}");
            assert_eq!(tell(event, "").await.refusal(), (400, "invalid_json".into(), vec![]), "{event}");
            assert_eq!(tell(event, "[]").await.refusal(), (400, "invalid_request".into(), vec!["null".into()]));
        }
        let all = ["action", "pull_request", "repository"].map(str::to_owned).to_vec();
        assert_eq!(tell("pull_request", "{}").await.refusal(), (400, "invalid_request".into(), all));
        let one = vec!["pull_request".to_owned()];
        assert_eq!(tell("pull_request", &broken).await.refusal(), (400, "invalid_request".into(), one));
    }
    let whole = closed(1, "tsk_one", true).to_string();
    assert_eq!(tell("pull_request", &whole).await.ok()["outcome"], "accepted");
    let ledger = desk.site.ledger();
    let kinds: Vec<&str> = ledger[before..].iter().map(|it| &*it.kind).collect();
    assert_eq!((kinds.len(), outcomes(&desk).len()), (2, 1), "{kinds:?}");
}

/// What is not signed with the secret, or was received before, is nobody's, whatever else is wrong with it, and reports nothing;
/// of one request sent sixty-four times at once one is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_signed_is_nobodys() {
    let mut desk = desk().await;
    task(&mut desk, "tsk_one").await;
    let body = closed(1, "tsk_one", true).to_string();
    let path = format!("/hooks/github/{}", desk.site.workspace());
    let good = signed(&body);
    let event = ("x-github-event", "pull_request");
    let elsewhere = path.replace(&desk.site.workspace().to_string(), "wsp_00000000000000000000000001");
    let mut refusals = Vec::new();
    for (path, headers, body) in [
        (&path, vec![event], &body),
        (&path, vec![event, ("x-hub-signature-256", &good[7..])], &body),
        (&path, vec![event, ("x-hub-signature-256", &good), ("x-hub-signature-256", &good)], &body),
        (&path, vec![event, ("x-hub-signature-256", &good)], &format!("{body} ")),
        (&path, vec![("x-hub-signature-256", &*signed("{")), event], &body),
        (&elsewhere, vec![event, ("x-hub-signature-256", &good)], &body),
    ] {
        let got = desk.client.ask("POST", path, &headers, body.as_bytes()).await;
        assert_eq!((got.status, got.kind()), (401, "unauthenticated".to_owned()), "{headers:?}");
        refusals.push(got.json()["error"]["message"].clone());
    }
    refusals.dedup();
    assert_eq!((refusals.len(), outcomes(&desk).len()), (1, 0));
    let mut asking = JoinSet::new();
    for _ in 0..64 {
        let (mut client, path, good, body) = (desk.site.client().await, path.clone(), good.clone(), body.clone());
        asking.spawn(async move {
            let headers = [("x-github-event", "pull_request"), ("x-hub-signature-256", &*good)];
            client.ask("POST", &path, &headers, body.as_bytes()).await.status
        });
    }
    let mut statuses = asking.join_all().await;
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (200, &[401; 63][..]));
    assert_eq!(outcomes(&desk).len(), 1);
}

/// What went in stays accepted, whichever pull request names its task later or is told of again; the newer of two ends of one pull
/// request counts. One of somebody outside that did not go in says nothing of anybody's task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_went_in_is_not_undone_by_others() {
    let mut desk = desk().await;
    for id in ["tsk_one", "tsk_two", "tsk_three"] {
        task(&mut desk, id).await;
    }
    let at = |number: u32, title: &str, merged: bool, closed_at: &str| {
        let mut event = closed(number, title, merged);
        event["pull_request"]["number"] = json!(number);
        event["pull_request"]["closed_at"] = json!(closed_at);
        event
    };
    let from = |mut event: Value, repository: Value, association: &str| {
        event["pull_request"]["head"]["repo"] = repository;
        event["pull_request"]["author_association"] = json!(association);
        event
    };
    let fork = || json!({ "full_name": "stranger/shop" });
    assert_eq!(heard(&mut desk, &at(1, "Closes tsk_one", true, "2026-11-02T10:00:00Z")).await, "accepted");
    for (event, told) in [
        // Another, of later; the same, of before it was opened again.
        (at(2, "About tsk_one", false, "2026-11-03T10:00:00Z"), "unchanged"),
        (at(1, "Closes tsk_one, again", false, "2026-11-01T10:00:00Z"), "unchanged"),
        (from(at(3, "tsk_two", false, "2026-11-03T10:00:00Z"), fork(), "NONE"), "outsider"),
        (from(at(4, "tsk_two", false, "2026-11-03T10:00:00Z"), fork(), "CONTRIBUTOR"), "outsider"),
        (from(at(5, "tsk_two", false, "2026-11-03T10:00:00Z"), Value::Null, "NONE"), "outsider"),
        (from(at(6, "tsk_two", false, "2026-11-03T10:00:00Z"), fork(), "COLLABORATOR"), "rejected"),
        (
            from(at(7, "tsk_three", false, "2026-11-03T10:00:00Z"), json!({ "full_name": "acme/SHOP" }), "NONE"),
            "rejected",
        ),
        // What somebody outside has made goes in by the word of somebody inside.
        (from(at(8, "tsk_two", true, "2026-11-04T10:00:00Z"), fork(), "NONE"), "accepted"),
        // The same one, opened again and thrown away later.
        (at(1, "Closes tsk_one, not", false, "2026-11-05T10:00:00Z"), "rejected"),
        (at(1, "Closes tsk_one", true, "2026-11-02T10:00:00.000Z"), "unchanged"),
        (at(1, "Closes tsk_one", true, "2026-11-06T10:00:00Z"), "accepted"),
    ] {
        assert_eq!(heard(&mut desk, &event).await, told, "{event}");
    }
    let (key, report) = (desk.key.clone(), json!({ "taskId": "tsk_one", "status": "abandoned" }));
    desk.client.post("/v1/outcomes", &key, &report).await.ok();
    assert_eq!(heard(&mut desk, &at(9, "Closes tsk_one", true, "2026-11-07T10:00:00Z")).await, "unchanged");
    let mut broken = at(10, "tsk_one", true, "soon");
    broken["pull_request"]["number"] = json!("1");
    let got = tell(&mut desk, "pull_request", &broken).await.refusal();
    let fields = ["pull_request.closed_at", "pull_request.number"].map(str::to_owned).to_vec();
    assert_eq!(got, (400, "invalid_request".into(), fields));
}
