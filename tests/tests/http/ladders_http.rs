//! Budgets in front of calls: each step of the ladder, several budgets at once, shadow, raises, and who is named.

use serde_json::{Value, json};
use svc_core::state::edge::{ConfigChange, IntegrationKind};
use svc_core::state::gate::Agent;
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_core::value::text::UrlText;
use svc_tests::client::{Got, until};
use svc_tests::desk::{CHAT, Desk, MESSAGES, chat, header_of, streamed};
use svc_tests::receiver::{Receiver, connect_kind};
use svc_tests::watch::Watch;

const OBSERVE: &str = "observe";

/// Each step makes itself felt as the spend passes it: told in headers, then by cheaper models, then by a question, then by the
/// ceiling; each is told once in the ledger.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_step_makes_itself_felt() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    desk.mock.turn("input-100--output-46").unwrap();
    // A call at `large-1` costs 990 micros, the least a step needs here is told in hundredths of 10,000.
    let ladder = json!([{ "at": 0, "step": "observe" }, { "at": 9, "step": "nudge" }, { "at": 19, "step": "downgrade" },
        { "at": 30, "step": "approval" }, { "at": 80, "step": "stop" }]);
    let budget = desk.budget(10_000, ladder).await;
    let quality = [("x-svc-objective", "quality")];
    let key = desk.key.clone();
    let (mut told, mut previewed) = (Vec::new(), Vec::new());
    let mut last = Value::Null;
    for _ in 0..10 {
        let preview = json!({ "objective": "quality" });
        let preview = desk.client.post("/v1/route/preview", &key, &preview).await.ok();
        previewed.push(preview["model"].as_str().unwrap().to_owned());
        let got = desk.chat_with(&quality, &chat("auto")).await;
        let scope = got.header("x-svc-budget-scope").unwrap_or_default().to_owned();
        assert_eq!(scope, format!("workspace:{}", desk.site.workspace()));
        let step = got.header("x-svc-enforcement").unwrap().to_owned();
        let model = got.header("x-svc-routed-to").unwrap_or_default().rsplit('/').next().unwrap().to_owned();
        let advised = got.header("x-svc-advisory").is_some();
        told.push((got.status, step, model, advised));
        last = got.json();
        if got.status != 200 {
            break;
        }
    }
    let at = |place: usize| (told[place].0, told[place].1.as_str(), told[place].2.as_str(), told[place].3);
    assert_eq!(at(0), (200, OBSERVE, "large-1", false), "{told:?}");
    assert_eq!(at(1), (200, "nudge", "large-1", true), "{told:?}");
    assert_eq!(at(2), (200, "downgrade", "small-1", true), "{told:?}");
    assert!(told.iter().zip(&previewed).all(|(it, model)| it.0 != 200 || it.2 == *model), "{told:?} as {previewed:?}");
    let (status, step, ..) = at(told.len() - 1);
    assert_eq!((status, step), (402, OBSERVE), "{told:?}");
    let error = &last["error"];
    assert_eq!(error["type"], json!("approval_required"));
    let spent = error["spentMicros"].as_u64().unwrap();
    assert!(
        spent >= 3_000 && error["allocationMicros"] == json!(10_000) && error["budgetId"] == json!(budget),
        "{error}"
    );
    for member in ["principalId", "email"] {
        assert!(error["owner"][member].is_string(), "{error}");
    }
    let approval = error["approval"]["id"].as_str().unwrap().to_owned();
    assert!(error["approval"]["url"].as_str().unwrap().contains(&approval), "{error}");
    let ledger = desk.site.ledger();
    let steps: Vec<&str> = ledger.iter().filter(|it| &*it.kind == "budget.step").map(|it| &*it.data).collect();
    // What holds from the start on is no step that was reached.
    let words = ["nudge", "downgrade", "approval"];
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert!(words.iter().zip(&steps).all(|(word, data)| data.contains(word)), "{steps:?}");

    // The one question is asked once, and a person's yes lets calls go on.
    let again = desk.chat("auto").await.json()["error"]["approval"]["id"].clone();
    assert_eq!(again, json!(approval));
    desk.post(&format!("approvals/{approval}/approve"), json!({})).await.ok();
    // As much again. Nobody is asked before that is used, though the step of 30 % is reached long before.
    assert_eq!(desk.budget_at(&budget).await["allocationMicros"], json!(20_000));
    desk.chat("auto").await.ok();
    let kinds: Vec<String> = desk.site.ledger().iter().map(|it| it.kind.to_string()).collect();
    for kind in ["budget.created", "budget.step", "budget.raised", "refusal"] {
        assert!(kinds.iter().any(|it| it == kind), "{kind}");
    }
    desk.site.audit();
}

/// The steps that the ledger has of a budget, from the first, each with what was spent then.
fn steps_of(desk: &Desk, budget: &str) -> Vec<(String, u64)> {
    let told = |data: &str| -> Value { serde_json::from_str(data).unwrap() };
    let ledger = desk.site.ledger();
    let of = ledger.iter().filter(|it| &*it.kind == "budget.step" && &*it.subject == budget).map(|it| told(&it.data));
    of.map(|it| (it["step"].as_str().unwrap().to_owned(), it["spentMicros"].as_u64().unwrap())).collect()
}

/// A call that is too large by itself reaches no step and takes none from those that are reached later; each of those is told when
/// that much is spent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_too_large_uses_up_no_step() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    desk.mock.turn("input-100--output-46").unwrap();
    let ladder = json!([{ "at": 80, "step": "nudge" }, { "at": 90, "step": "downgrade" },
        { "at": 100, "step": "approval" }, { "at": 120, "step": "stop" }]);
    let budget = desk.budget(10_000, ladder).await;
    let mut large = chat("auto");
    (large["n"], large["max_tokens"]) = (json!(8), json!(900));
    let got = desk.chat_with(&[], &large).await;
    assert_eq!((got.status, got.kind().as_str()), (429, "budget_exhausted"), "{}", got.text());
    assert!(got.json()["error"]["message"].as_str().unwrap().contains("more than is left"), "{}", got.text());
    assert_eq!(steps_of(&desk, &budget), []);
    let quality = [("x-svc-objective", "quality")];
    let mut last = 200;
    for _ in 0..20 {
        last = desk.chat_with(&quality, &chat("auto")).await.status;
        if last != 200 {
            break;
        }
    }
    assert_eq!(last, 402);
    let told = steps_of(&desk, &budget);
    let words: Vec<&str> = told.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(words, ["nudge", "downgrade", "approval"], "{told:?}");
    let lines = [8_000, 9_000, 10_000];
    assert!(told.iter().zip(lines).all(|(it, line)| (line..line + 990).contains(&it.1)), "{told:?}");
    desk.site.audit();
}

/// In shadow such a call is made: what it had reserved and gives back uses up no step either, and all of them are told as that
/// much is spent, the ceiling too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_back_uses_up_no_step() {
    let mut desk = Desk::new().await;
    desk.mock.turn("input-100--output-46").unwrap();
    let ladder = json!([{ "at": 80, "step": "nudge" }, { "at": 90, "step": "downgrade" },
        { "at": 100, "step": "approval" }, { "at": 120, "step": "stop" }]);
    let budget = desk.budget(10_000, ladder).await;
    let mut large = chat("chat/large-1");
    large["max_tokens"] = json!(900);
    let got = desk.chat_with(&[], &large).await;
    assert!(desk.call_of(&got).await["reservedMicros"].as_u64().unwrap() > 12_000, "{got:?}");
    assert_eq!(steps_of(&desk, &budget), []);
    for _ in 0..13 {
        desk.chat("chat/large-1").await.ok();
    }
    // The steps follow 9, 10, 11 and 13 calls of 990 micros.
    let told = [("nudge", 8_910), ("downgrade", 9_900), ("approval", 10_890), ("stop", 12_870)];
    assert_eq!(steps_of(&desk, &budget), told.map(|(step, spent)| (step.to_owned(), spent)));
    desk.site.audit();
}

/// Where calls that run hold the rest no step is reached, and a client may send the call again before the period ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_hold_may_be_asked_for_again() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &url).await;
    desk.model(&id, "slow-1--stall-3", 80, 3, 15).await;
    desk.enforce().await;
    // One call holds 100 tokens at 15 micros and a few for its input.
    let budget = desk.budget(2_500, json!([{ "at": 100, "step": "stop" }])).await;
    let mut socket = desk.begin(CHAT, &[], &streamed("auto")).await;
    until(&mut socket, "HTTP/1.1 200").await;
    let got = desk.chat("auto").await;
    assert_eq!((got.status, got.kind().as_str()), (429, "budget_exhausted"), "{}", got.text());
    assert!(got.json()["error"]["message"].as_str().unwrap().starts_with("calls that run hold"), "{}", got.text());
    // The period may end in weeks; what is held is free again far sooner, and clients look at the milliseconds first.
    let retries = ["x-should-retry", "retry-after-ms"].map(|it| got.header(it));
    assert_eq!((retries, got.header("retry-after").is_some()), ([Some("true"), Some("1000")], true), "{got:?}");
    assert_eq!(steps_of(&desk, &budget), []);
}

/// Where what is held has brought a budget to its allocation, the refusal says that it is held, how much, and that asking again soon may
/// do; where it is spent, asking again is no use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_hold_of_an_allocation_is_told_from_what_is_spent() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &url).await;
    desk.model(&id, "slow-1--stall-3", 80, 3, 15).await;
    desk.enforce().await;
    let ladder = json!([{ "at": 100, "step": "approval" }]);
    desk.budget(1_000, ladder.clone()).await;
    let mut socket = desk.begin(CHAT, &[], &streamed("auto")).await;
    until(&mut socket, "HTTP/1.1 200").await;
    let held = desk.chat("auto").await;
    let error = held.json()["error"].clone();
    assert_eq!((held.status, held.kind().as_str()), (402, "approval_required"), "{}", held.text());
    assert!(error["message"].as_str().unwrap().contains("calls that run hold"), "{error}");
    assert!(error["spentMicros"] == json!(0) && error["reservedMicros"].as_u64() > Some(1_000), "{error}");
    assert!(error["approval"]["id"].is_string(), "{error}");
    let retries = |got: &Got| ["x-should-retry", "retry-after-ms"].map(|it| got.header(it).map(str::to_owned));
    assert_eq!(retries(&held), [Some("true".to_owned()), Some("1000".to_owned())], "{held:?}");
    let mut desk = Desk::new().await;
    desk.enforce().await;
    desk.budget(1, ladder).await;
    desk.chat("auto").await.ok();
    let spent = desk.chat("auto").await;
    assert_eq!((spent.status, retries(&spent)), (402, [None, None]), "{spent:?}");
    assert!(
        spent.json()["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("the budget has reached the step from which more takes a yes (`"),
        "{spent:?}"
    );
    // Where a person has said no, nobody is sent to what they answered.
    let error = spent.json()["error"].clone();
    let (approval, url) = (error["approval"]["id"].as_str().unwrap(), error["approval"]["url"].as_str().unwrap());
    assert!(error["message"].as_str().unwrap().ends_with(url), "{error}");
    desk.post(&format!("approvals/{approval}/deny"), json!({})).await.ok();
    let declined = desk.chat("auto").await.json()["error"].clone();
    let said = declined["message"].as_str().unwrap();
    assert!(said.contains("was asked for in this period and declined") && !said.contains(url), "{said}");
    assert_eq!(declined["approval"]["id"], json!(approval));
}

/// The ceiling is a 429 until the period ends, with the budget's id and a record; one over all time never comes free, so it
/// names no time. The next period begins anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ceiling_lasts_until_the_period_ends() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    let stop = json!([{ "at": 100, "step": "stop" }]);
    let budget = desk.budget(2_000, stop.clone()).await;
    desk.mock.turn("input-100--output-46").unwrap();
    let auto = json!({ "model": "auto", "max_tokens": 20, "messages": [{ "role": "user", "content": "x" }] });
    let quality = [("x-svc-objective", "quality")];
    let mut answered = 0;
    let got = loop {
        let got = desk.chat_with(&quality, &auto).await;
        if got.status != 200 {
            break got;
        }
        answered += 1;
    };
    assert!(answered > 0);
    for path in [CHAT, MESSAGES] {
        let got = desk.send(path, &quality, auto.to_string().as_bytes()).await;
        assert_eq!((got.status, got.kind().as_str()), (429, "budget_exhausted"), "{}", got.text());
        assert_eq!(got.json()["error"]["budgetId"], json!(budget));
        assert_eq!(got.header("x-svc-enforcement"), Some(OBSERVE));
    }
    let at = desk.budget_at(&budget).await;
    let now = desk.site.now();
    let left: u64 = got.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&left), "{left}");
    let end = now.plus(Span::seconds(i64::try_from(left).unwrap())).to_string();
    assert!(end.as_str() >= at["periodEnd"].as_str().unwrap(), "{end} {at}");
    assert!(at["spentMicros"].as_u64().unwrap() <= 2_000, "{at}");
    desk.site.advance(Span::seconds(i64::try_from(left).unwrap()));
    desk.chat_with(&quality, &auto).await.ok();
    desk.owner = desk.site.member(Role::Owner);
    let body = json!({ "scope": { "kind": "workspace" }, "amount": 1, "period": "total", "ladder": stop });
    desk.post("budgets", body).await.made();
    let got = desk.chat("auto").await;
    assert_eq!((got.status, got.kind().as_str(), got.header("retry-after")), (429, "budget_exhausted", None));
}

/// A model that a budget has no room for is passed over where another that serves has a place in it, as the dry run says too; where
/// none has, the ceiling is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fits_no_budget_is_passed_over() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    let budget = desk.budget(1_000, json!([{ "at": 100, "step": "stop" }])).await;
    let quality = |dry| [("x-svc-objective", "quality"), ("x-svc-dry-run", dry)];
    for dry in ["true", "false"] {
        let got = desk.chat_with(&quality(dry), &chat("auto")).await;
        let to = got.header("x-svc-routed-to").unwrap_or_default();
        assert!(got.status == 200 && to.ends_with("/small-1"), "{dry} {to} {}", got.text());
        let told = got.header("x-svc-advisory").unwrap_or_default();
        assert!(told.contains("a budget has no room for a call of"), "{told}");
    }
    let at = desk.budget_at(&budget).await;
    assert!(at["spentMicros"].as_u64().is_some_and(|it| (1..1_000).contains(&it)) && at["reservedMicros"] == 0, "{at}");
    let mut dear = chat("auto");
    dear["max_tokens"] = json!(900);
    for dry in ["true", "false"] {
        let got = desk.chat_with(&quality(dry), &dear).await;
        assert_eq!((got.status, got.kind().as_str()), (429, "budget_exhausted"), "{}", got.text());
        let error = &got.json()["error"];
        let (what, fix) = (error["message"].as_str().unwrap(), error["fix"].as_str().unwrap());
        assert!(what.contains("more than is left") && fix.starts_with("Bound the answer lower"), "{error}");
    }
    // In shadow nothing is passed over.
    desk.routing(json!({ "mode": "shadow" })).await;
    let got = desk.chat("chat/large-1").await;
    assert_eq!((got.status, got.header("x-svc-would-route-to").is_some()), (200, true), "{}", got.text());
    desk.site.audit();
}

/// Of several budgets the gravest refusal is told, and of those the narrowest; every one of them reserves and posts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_budgets_the_narrowest_is_named() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    let team = desk.post("teams", json!({ "name": "Desk" })).await.made()["id"].as_str().unwrap().to_owned();
    let (key, binding) = desk.key_with(json!({ "teamId": team, "taskClassId": "support.reply" })).await;
    let principal = binding["principalId"].as_str().unwrap().to_owned();
    let id = binding["id"].as_str().unwrap().to_owned();
    desk.key = key;
    let scopes = [
        ("workspace", desk.site.workspace().to_string()),
        ("team", team),
        ("principal", principal),
        ("taskClass", "support.reply".to_owned()),
        ("key", id),
    ];
    let over = |kind: &str, id: &str| {
        if kind == "workspace" { json!({ "kind": kind }) } else { json!({ "kind": kind, "id": id }) }
    };
    let mut budgets = Vec::new();
    for (kind, id) in &scopes {
        budgets.push(desk.budget_over(over(kind, id), 1_000_000, json!([{ "at": 100, "step": "stop" }])).await);
    }
    let got = desk.chat("auto").await;
    let call = desk.call_of(&got).await;
    assert_eq!(call["budgets"].as_array().unwrap().len(), 5, "{call}");
    for budget in &budgets {
        assert_eq!(desk.budget_at(budget).await["spentMicros"], call["costMicros"]);
    }
    let dry = desk.chat_with(&[("x-svc-dry-run", "true")], &chat("auto")).await.ok();
    assert_eq!(dry["budgets"].as_array().unwrap().len(), 5, "{dry}");
    for (place, (kind, id)) in scopes.iter().enumerate() {
        // From the widest to the narrowest each is used up in turn and speaks for all.
        desk.api("PATCH", &format!("budgets/{}", budgets[place]), Some(&json!({ "amount": 1 }))).await.ok();
        let got = desk.chat("auto").await;
        assert_eq!((got.status, got.kind().as_str()), (429, "budget_exhausted"), "{kind}: {}", got.text());
        assert_eq!(got.header("x-svc-budget-scope"), Some(format!("{kind}:{id}").as_str()));
        assert_eq!(got.json()["error"]["budgetId"], json!(budgets[place]), "{kind}");
    }
    // A narrower question is not as grave as a wider ceiling.
    let ask = json!({ "ladder": [{ "at": 0, "step": "approval" }] });
    desk.api("PATCH", &format!("budgets/{}", budgets[4]), Some(&ask)).await.ok();
    let got = desk.chat("auto").await;
    assert_eq!((got.status, &got.json()["error"]["budgetId"]), (429, &json!(budgets[3])), "{}", got.text());
    desk.site.audit();
}

/// Who is asked for more is told what was spent, as of the budget itself: what calls under way hold is reserved, not spent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_reserved_is_not_told_as_spent() {
    let mut desk = Desk::bare(|_| {}).await;
    let url = desk.mock.chat_url();
    let id = desk.upstream("chat", "chat", &url).await;
    desk.model(&id, "slow-1--stall-3", 80, 3, 15).await;
    desk.enforce().await;
    let mut socket = desk.begin(CHAT, &[], &streamed("auto")).await;
    let id = header_of(&until(&mut socket, "data: ").await, "x-svc-call-id").unwrap();
    let held = desk.call(&id).await["reservedMicros"].as_u64().unwrap();
    drop(socket);
    assert!(held > 0);
    let budget = desk.budget(held, json!([{ "at": 100, "step": "approval" }])).await;
    let mut socket = desk.begin(CHAT, &[], &streamed("auto")).await;
    until(&mut socket, "HTTP/1.1 200").await;
    let got = desk.chat("auto").await;
    assert_eq!((got.status, got.kind().as_str()), (402, "approval_required"), "{}", got.text());
    let at = desk.budget_at(&budget).await;
    assert_eq!((&at["spentMicros"], &at["reservedMicros"]), (&json!(0), &json!(held)), "{at}");
    assert_eq!(got.json()["error"]["spentMicros"], json!(0), "{}", got.text());
}

/// In shadow a budget refuses nothing: it reserves, posts and says what it would have done; the reservation may pass the
/// ceiling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_shadow_a_budget_only_tells() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1, json!([{ "at": 0, "step": "observe" }, { "at": 100, "step": "stop" }])).await;
    assert_eq!(desk.budget_at(&budget).await["enforcing"], json!(false));
    for _ in 0..2 {
        let got = desk.chat("chat/large-1").await;
        got.ok();
        assert_eq!(got.header("x-svc-enforcement"), Some("shadow"));
        assert!(got.header("x-svc-advisory").unwrap().contains("would be refused"), "{got:?}");
        assert!(got.header("x-svc-budget-scope").unwrap().starts_with("workspace:"), "{got:?}");
        let call = desk.call_of(&got).await;
        assert_eq!((&call["mode"], &call["budgets"]), (&json!("shadow"), &json!([budget])));
        assert!(call["reservedMicros"].as_u64().unwrap() > 1, "{call}");
    }
    let at = desk.budget_at(&budget).await;
    assert!(at["spentMicros"].as_u64().unwrap() > 1 && at["reservedMicros"] == json!(0), "{at}");
}

/// What shadow says that policy would have chosen is what it would choose: the cheapest, once a budget prefers that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shadow_names_what_a_budget_would_prefer() {
    let mut desk = Desk::new().await;
    desk.budget(10_000, json!([{ "at": 0, "step": "observe" }, { "at": 1, "step": "downgrade" }])).await;
    desk.mock.turn("input-100--output-46").unwrap();
    let quality = [("x-svc-objective", "quality")];
    let mut would = Vec::new();
    for _ in 0..2 {
        let got = desk.chat_with(&quality, &chat("chat/large-1")).await;
        assert_eq!(got.status, 200, "{}", got.text());
        would.push(got.header("x-svc-would-route-to").unwrap().to_owned());
    }
    assert_eq!(would, ["chat/large-1", "chat/small-1"]);
}

/// The question whether a budget may spend more is told at once to the member who may decide it, and what came of it; to no
/// other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_raise_a_budget_hears_of_the_question() {
    let mut desk = Desk::with(|plan| plan.config.allow_private_callbacks = true).await;
    desk.enforce().await;
    let (own, other) = (desk.site.member(Role::Member), desk.site.member(Role::Member));
    desk.key = desk.key_with(json!({ "principalId": own.principal })).await.0;
    desk.budget(10_000, json!([{ "at": 1, "step": "approval" }])).await;
    let mut room = Receiver::start().await;
    let url = UrlText::parse(&room.url("/room")).unwrap();
    connect_kind(&desk.site, IntegrationKind::Chat, ConfigChange { url: Some(Some(url)), ..ConfigChange::default() });
    desk.site.gate.tick().unwrap();
    let mut watch = Watch::open(&desk.site, &own.sid, None).await;
    let mut others = Watch::open(&desk.site, &other.sid, None).await;
    let approval = loop {
        let got = desk.chat("auto").await;
        if got.status == 402 {
            break got.json()["error"]["approval"]["id"].clone();
        }
        got.ok();
    };
    let said = room.next().await.json()["text"].as_str().unwrap().to_owned();
    for it in
        ["Budget of: the whole workspace", "Period: day", "Allotted: USD 0.01\n", "Spent: USD 0.00", "Budget: bdg_"]
    {
        assert!(said.contains(it), "{it}: {said}");
    }
    desk.post(&format!("approvals/{}/approve", approval.as_str().unwrap()), json!({})).await.ok();
    desk.site.gate.tick().unwrap();
    for name in ["approval.waiting", "approval.decided"] {
        let told = watch.next().await.unwrap();
        assert_eq!((told.name.as_str(), &told.data["id"]), (name, &approval), "{told:?}");
    }
    // Something that everybody hears comes next for the other one: nothing of the question came before.
    let agent = desk.site.agent(&[]);
    let row = desk.site.gate.read(|scope| scope.get::<Agent>(agent.id)).unwrap().unwrap();
    desk.site.plant(Agent { kill_owner: Some(other.principal), ..Agent::clone(&row) });
    let freeze = format!("agents/{}/freeze", agent.id);
    desk.post(&freeze, json!({ "reason": "enough" })).await.ok();
    desk.site.gate.tick().unwrap();
    assert_eq!(others.next().await.unwrap().name, "agent.frozen");
    desk.site.audit();
}

/// What a call holds past a ceiling, as it may in shadow, is marked on the budget and on the call; what fits another is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_passes_the_ceiling_in_shadow_is_marked() {
    let mut desk = Desk::new().await;
    let stop = json!([{ "at": 100, "step": "stop" }]);
    let (small, large) = (desk.budget(20, stop.clone()).await, desk.budget(1_000_000_000, stop).await);
    desk.mock.turn("words-20--stall-5").unwrap();
    let mut socket = desk.begin(CHAT, &[], &streamed("chat/large-1")).await;
    let id = header_of(&until(&mut socket, "data: ").await, "x-svc-call-id").unwrap();
    for (budget, marked) in [(&small, Some(&json!(true))), (&large, None)] {
        let held = desk.budget_at(budget).await["reservations"][0].clone();
        assert_eq!((&held["callId"], held.get("pastStop")), (&json!(id), marked), "{held}");
    }
    assert_eq!(desk.call(&id).await["pastStop"], json!(true));
    assert_eq!(desk.api("DELETE", &format!("budgets/{small}"), None).await.status, 204);
    desk.mock.turn("").unwrap();
    let got = desk.chat("chat/large-1").await;
    assert_eq!(desk.call_of(&got).await.get("pastStop"), None);
}
