//! The real server is killed under load, again and again, at points that a seed chooses: what it answered before is there
//! afterwards and reads the same, what was under way happened once or not at all, and the books add up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use svc_core::state::gate::Action;
use svc_core::store::Row as _;
use svc_core::testing::Dice;
use svc_core::testing::audit::{audit, audit_approvals};
use svc_core::testing::world::BASE_URL;
use svc_tests::client::{Client, Got, bearer};
use svc_tests::program::Program;
use svc_tests::requests::{WIDE, payment_to, text};
use svc_tests::site::{Agent, Site, rows_of};
use tokio::sync::Notify;

/// How often it is killed.
const ROUNDS: usize = 5;
/// Connections under load.
const WORKERS: usize = 8;
/// What the first agent may spend in all, in minor units: reached after a dozen actions.
const LIMIT: i64 = 100_000;

/// One order: an action under a key of its own and what became of it.
struct Order {
    agent: usize,
    once: String,
    body: Value,
    /// The last that was told of the action, where anything was.
    told: Option<Value>,
    verify: Option<Step>,
    settle: Option<Step>,
}

/// Something that was sent, and the answer, where one came.
struct Step {
    body: Value,
    answer: Option<Value>,
}

impl Step {
    const fn sent(body: Value) -> Self {
        Self { body, answer: None }
    }
}

/// How many answers came, and how many it takes until the server is killed.
struct Fuse {
    answers: AtomicUsize,
    length: usize,
    burnt: Notify,
}

impl Fuse {
    fn burn(&self) {
        if self.answers.fetch_add(1, Ordering::SeqCst) + 1 == self.length {
            self.burnt.notify_one();
        }
    }
}

async fn post(client: &mut Client, path: &str, headers: &[(&str, &str)], body: &Value) -> std::io::Result<Got> {
    client.try_ask("POST", path, headers, body.to_string().as_bytes()).await
}

/// Orders until the connection ends; the last one may be unfinished.
async fn work(mut client: Client, agents: Arc<Vec<Agent>>, fuse: Arc<Fuse>, name: String, seed: u64) -> Vec<Order> {
    let mut dice = Dice::new(seed);
    let mut orders = Vec::new();
    loop {
        let agent = dice.below(agents.len());
        let place = orders.len();
        let amount = dice.between(1_000, 20_000);
        let body = payment_to(amount, &format!("shop{}.example.org", dice.below(50)));
        let once = format!("order-{name}-{place}-of-a-worker");
        orders.push(Order { agent, once, body, told: None, verify: None, settle: None });
        let Some(order) = orders.last_mut() else { return orders };
        if go(&mut client, order, &agents[agent], &fuse, &mut dice).await.is_err() {
            return orders;
        }
    }
}

/// Asks, and where it is allowed shows the receipt and settles, sometimes.
async fn go(
    client: &mut Client,
    order: &mut Order,
    agent: &Agent,
    fuse: &Fuse,
    dice: &mut Dice,
) -> std::io::Result<()> {
    let key = bearer(&agent.key);
    let headers = [("authorization", key.as_str()), ("idempotency-key", order.once.as_str())];
    let decision = post(client, "/v1/actions/authorize", &headers, &order.body).await?.ok();
    fuse.burn();
    let is_allowed = decision["status"] == json!("allowed");
    let (id, receipt) = (text(&decision["id"]).to_owned(), decision["receipt"].clone());
    order.told = Some(decision);
    if is_allowed && dice.chance(700) {
        let payment = &order.body["payment"];
        let body = json!({ "receipt": receipt, "charge": {
            "amount": payment["amount"], "currency": "EUR", "merchant": { "domain": payment["merchant"]["domain"] } } });
        let step = order.verify.insert(Step::sent(body));
        let verdict = post(client, "/v1/verify", &[("idempotency-key", &order.once)], &step.body).await?.ok();
        assert_eq!(verdict["valid"], json!(true), "{verdict}");
        step.answer = Some(verdict);
        fuse.burn();
    }
    if is_allowed && dice.chance(700) {
        let status = *dice.pick(&["completed", "failed", "cancelled"]);
        let step =
            order.settle.insert(Step::sent(json!({ "status": status, "amount": order.body["payment"]["amount"] })));
        let path = format!("/v1/actions/{id}/settle");
        step.answer = Some(post(client, &path, &headers[..1], &step.body).await?.ok());
        fuse.burn();
    }
    Ok(())
}

/// Finds an order after a crash as it was told before, and learns what became of what was under way.
async fn find_again(client: &mut Client, order: &mut Order, agent: &Agent) {
    let replay = client.authorize_once(&agent.key, &order.once, &order.body).await;
    let now = replay.ok();
    if let Some(told) = &order.told {
        assert_eq!(replay.header("idempotent-replayed"), Some("true"), "forgotten: {told}");
        for member in ["id", "decision", "createdAt", "actionDigest", "digestSalt", "mandateId", "reasons", "payment"] {
            assert_eq!(now[member], told[member], "{member} of {told}");
        }
        if order.verify.is_none() && order.settle.is_none() {
            assert_eq!(now, *told);
        }
    }
    let id = text(&now["id"]).to_owned();
    if let Some(step) = &mut order.verify {
        let again = client.verify_once(&order.once, &step.body).await;
        let verdict = again.ok();
        assert_eq!(verdict["valid"], json!(true), "{verdict}");
        if let Some(told) = &step.answer {
            assert_eq!((again.header("idempotent-replayed"), &verdict), (Some("true"), told));
            assert_eq!(now["consumedAt"], told["consumedAt"]);
        }
        let other = client.verify(&step.body).await.ok();
        assert_eq!((&other["valid"], &other["reason"]), (&json!(false), &json!("already_consumed")));
        assert_eq!(other["consumedAt"], verdict["consumedAt"]);
        step.answer = Some(verdict);
    }
    if let Some(step) = &mut order.settle {
        if let Some(told) = &step.answer {
            assert_eq!((&now["status"], &now["outcome"]), (&told["status"], &told["outcome"]));
            assert_eq!(now["evidenceRecord"], told["evidenceRecord"]);
        }
        let again = client.settle(&agent.key, &id, &step.body).await;
        let is_first = again.status == 200 && step.answer.is_none();
        assert!(is_first || (again.status, again.kind().as_str()) == (409, "already_settled"), "{}", again.text());
        step.answer = Some(json!("settled"));
    }
    order.told = Some(client.read_action(&agent.key, &id).await.ok());
}

/// Load until the fuse has burnt, then the end; what everybody remembers of it.
async fn round(data: &std::path::Path, agents: &Arc<Vec<Agent>>, dice: &mut Dice, name: usize) -> Vec<Order> {
    let program = Program::serve(data, BASE_URL).await;
    let length = 40 + dice.below(260);
    let fuse = Arc::new(Fuse { answers: AtomicUsize::new(0), length, burnt: Notify::new() });
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        let client = Client::connect(program.address).await;
        let (agents, fuse, name) = (Arc::clone(agents), Arc::clone(&fuse), format!("{name}-{worker}"));
        workers.push(tokio::spawn(work(client, agents, fuse, name, dice.bits())));
    }
    fuse.burnt.notified().await;
    program.kill().await;
    let mut orders = Vec::new();
    for worker in workers {
        orders.extend(worker.await.unwrap());
    }
    orders
}

/// Killed under load, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlives_the_process() {
    let seed = std::env::var("TEST_SEED").ok().and_then(|it| it.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(UNIX_EPOCH.elapsed().unwrap().subsec_nanos()));
    println!("TEST_SEED={seed}");
    let directory = tempfile::tempdir().unwrap();
    let site = Site::with(|plan| plan.directory = Some(directory.path().to_owned())).await;
    let limited = format!(
        r#"{{"name":"Year","actions":["payment"],"duplicates":"record",
            "limits":{{"currency":"EUR","perPeriod":{{"amount":{LIMIT},"period":"year"}}}}}}"#
    );
    let agents = Arc::new(vec![site.agent(&[&limited]), site.agent(&[WIDE]), site.agent(&[WIDE])]);
    site.stop().await;
    let mut dice = Dice::new(seed);
    let mut orders: Vec<Order> = Vec::new();
    for name in 0..ROUNDS {
        let mut new = round(directory.path(), &agents, &mut dice, name).await;
        let program = Program::serve(directory.path(), BASE_URL).await;
        let mut client = Client::connect(program.address).await;
        for order in &mut new {
            find_again(&mut client, order, &agents[order.agent]).await;
        }
        // What was found after the crashes before is still so.
        for order in &orders {
            let told = order.told.as_ref().unwrap();
            assert_eq!(client.read_action(&agents[order.agent].key, text(&told["id"])).await.ok(), *told);
        }
        orders.extend(new);
        drop(client);
        if name + 1 == ROUNDS { program.stop().await } else { program.kill().await }
    }
    add_up(directory.path(), &orders, &agents);
}

/// Reads the file that is left behind, and finds in it what was told and nothing else.
fn add_up(directory: &std::path::Path, orders: &[Order], agents: &[Agent]) {
    let rows = rows_of(directory);
    let mut report = audit(&rows);
    report.faults.extend(audit_approvals(&rows));
    report.assert_clean("the audit of what is left after the crashes");
    let consumed = orders.iter().filter(|it| it.verify.is_some()).count();
    let settled = orders.iter().filter(|it| it.settle.is_some()).count();
    assert_eq!((report.actions, report.consumed, report.settled), (orders.len(), consumed, settled));
    assert!(consumed > 0 && settled > 0);
    let actions = rows.iter().filter_map(|(_, _, record)| Action::peel(record));
    let allowed: i64 = actions
        .filter(|it| it.agent == agents[0].id && it.allowed().is_some())
        .filter_map(|it| it.payment.as_ref().map(|payment| payment.amount))
        .sum();
    // What was settled as not done posts the amount that was sent with it: nothing is given back.
    assert!(allowed <= LIMIT, "{allowed} of {LIMIT}");
    let is_over =
        |it: &Order| it.told.as_ref().is_some_and(|told| told["signals"].to_string().contains("over_period_limit"));
    assert!(orders.iter().any(is_over), "the limit was never reached: {allowed} of {LIMIT}");
}
