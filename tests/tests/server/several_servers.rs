//! Several real servers on one PostgreSQL: what is one for all of them stays one, whichever is asked, and one that is killed loses
//! nothing that it has told. Every test starts a database and its servers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::settings::ChangeSettings;
use svc_core::state::people::Settings;
use svc_core::store::{Clock, Key, Record, Stamp, Table};
use svc_core::testing::FakeClock;
use svc_core::testing::audit::{audit, audit_approvals};
use svc_core::testing::world::{BASE_URL, terms};
use svc_core::value::digest::Digest;
use svc_core::value::id::WorkspaceId;
use svc_core::value::text::Label;
use svc_core::value::{Span, Timestamp};
use svc_http::Server;
use svc_http::config::{BaseUrl, Config};
use svc_store::keys::{dalek, receipt_signer};
use svc_store::postgres::Terms;
use svc_store::seal::MasterKey;
use svc_store::{Backend as _, Gate, PostgresStore, SystemClock};
use svc_tests::client::{Client, PATIENCE, bearer};
use svc_tests::database::Database;
use svc_tests::people::ask;
use svc_tests::program::{Program, command};
use svc_tests::race::at_once;
use svc_tests::receiver::{Receiver, tls};
use svc_tests::requests::{OFFICE, WIDE, charge, payment, payment_to, text};
use svc_tests::watch::Watch;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::time::timeout;

/// What all servers of a test seal under.
const MASTER: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
/// A database with a workspace, and what a test needs to change in it.
struct Home {
    database: Database,
    data: TempDir,
    /// What `svc init` has told.
    said: Value,
    /// A gate of this process over the same database.
    gate: Gate,
    made: AtomicUsize,
}

impl Home {
    async fn start() -> Self {
        let database = Database::start();
        let data = tempfile::tempdir().unwrap();
        let mut init = command(data.path());
        init.args(["init", "--json"]).env("SVC_STORE_URL", database.address()).env("SVC_MASTER_KEY", MASTER);
        let done = init.env("SVC_BASE_URL", BASE_URL).output().await.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        let gate = gate_over(&database, SystemClock::new());
        let home = Self { database, data, said, gate, made: AtomicUsize::new(0) };
        let mut settings = Settings::default();
        (settings.agent_velocity.other_count, settings.agent_velocity.tool_count) = (1_000_000, 1_000_000);
        let change = ChangeSettings { workspace: home.workspace(), by: By::Program, change: settings.into() };
        home.gate.execute(change).unwrap();
        home
    }

    async fn serve(&self) -> Program {
        Program::serve_with(self.data.path(), BASE_URL, |command| {
            command.env("SVC_STORE_URL", self.database.address()).env("SVC_MASTER_KEY", MASTER);
            command.arg("--allow-private-callbacks").env("SVC_OUTBOUND_CA_FILE", tls("ca.pem"));
        })
        .await
    }

    fn workspace(&self) -> WorkspaceId {
        WorkspaceId::parse(text(&self.said["workspaceId"])).unwrap()
    }

    /// A new agent with this mandate: its id and its key.
    fn agent(&self, mandate: &str) -> (String, String) {
        let key = format!("ask_{:0>43}", self.made.fetch_add(1, Ordering::SeqCst));
        let new = NewKey { digest: Digest::of(&key), prefix: key[..12].into() };
        let mandates = vec![Content::Whole(Box::new(terms(mandate)))];
        let register =
            RegisterAgent { mandates, ..RegisterAgent::new(self.workspace(), Label::parse("Agent").unwrap(), new) };
        (self.gate.execute(register).unwrap().agent.id.to_string(), key)
    }

    /// Every row is as it has to be, and so are all of them together.
    fn audit(&self) {
        self.gate.tick().unwrap();
        let sql = "SELECT tab, encode(key, 'hex'), stamp, format, body FROM svc.records";
        let rows: Vec<(Key, Stamp, Record)> = self.database.sql(sql).lines().map(row).collect();
        let mut report = audit(&rows);
        report.faults.extend(audit_approvals(&rows));
        report.assert_clean("the audit of a database");
    }
}

/// A row as an operator reads it.
fn row(line: &str) -> (Key, Stamp, Record) {
    let parts: Vec<&str> = line.splitn(5, '|').collect();
    let table = Table::ALL.iter().find(|it| it.name() == parts[0]).copied().unwrap();
    let key = Key::decode(table, &hex::decode(parts[1]).unwrap()).unwrap();
    let record = Record::decode(table, parts[3].parse().unwrap(), parts[4].as_bytes()).unwrap();
    (key, Stamp(parts[2].parse().unwrap()), record)
}

fn gate_over<C: Clock + Send + Sync + 'static>(database: &Database, clock: C) -> Gate {
    let store = PostgresStore::open(&database.address(), Terms::default()).unwrap();
    let master = MasterKey::parse(MASTER).unwrap();
    let nowhere = std::path::Path::new("/nowhere");
    let signer =
        receipt_signer(&mut store.writer().unwrap(), nowhere, Some(master.clone()), now(), BASE_URL, &dalek).unwrap();
    let mut settings = svc_store::Settings::default();
    (settings.timers, settings.vault) = (false, Some(master));
    Gate::over(store, clock, signer, settings).unwrap()
}

fn now() -> Timestamp {
    SystemClock::new().now()
}

/// What may be spent, and what may be used once, is the same for all servers: of racing clients no more get through than with one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_allow_no_more_than_one() {
    let home = Home::start().await;
    let (one, two) = tokio::join!(home.serve(), home.serve());
    let narrow = r#"{"name":"Narrow","actions":["payment"],"limits":{"currency":"EUR","perAction":50000,
        "perPeriod":{"amount":20000,"period":"month"}},"duplicates":"record"}"#;
    let (_, key) = home.agent(narrow);
    let heard = at_once(&[one.address, two.address], |mut client, place| {
        let (key, body) = (key.clone(), payment_to(1_000, &format!("shop{place}.example.org")));
        async move { client.authorize(&key, &body).await }
    })
    .await;
    let allowed = heard.iter().filter(|it| it.ok()["decision"] == "allow").count();
    assert_eq!(allowed, 20, "a month has 200.00");

    let (_, key) = home.agent(WIDE);
    let mut client = Client::connect(one.address).await;
    let receipt = client.authorize(&key, &payment(500)).await.ok()["receipt"].clone();
    let heard = at_once(&[one.address, two.address], |mut client, _| {
        let body = charge(&receipt, 500);
        async move { client.verify(&body).await }
    })
    .await;
    assert_eq!(heard.iter().filter(|it| it.ok()["valid"] == true).count(), 1, "a receipt is good once");

    // One order under one idempotency key is one action, whichever server it reaches.
    let heard = at_once(&[one.address, two.address], |mut client, _| {
        let key = key.clone();
        async move { client.authorize_once(&key, "one-order-for-all-of-them", &payment(700)).await }
    })
    .await;
    let ids: BTreeSet<String> = heard.iter().map(|it| text(&it.ok()["id"]).to_owned()).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    one.stop().await;
    two.stop().await;
    home.audit();
}

/// What one server is told every other one goes by: a freeze from its answer on, and a person's word wakes who watches elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_is_told_counts_on_the_other() {
    let home = Home::start().await;
    let (one, two) = tokio::join!(home.serve(), home.serve());
    let (mut here, mut there) = (Client::connect(one.address).await, Client::connect(two.address).await);
    let (agent, key) = home.agent(OFFICE);

    let token = text(&home.said["signInLink"]).split_once("token=").unwrap().1;
    let came = ask(&mut here, None, "POST", "/api/sign-in/link", Some(&json!({ "token": token }))).await;
    let cookie = came.header("set-cookie").unwrap().strip_prefix("__Host-sid=").unwrap();
    let sid = cookie.split(';').next().unwrap().to_owned();
    let asked = there.authorize(&key, &payment(30_000)).await.ok();
    assert_eq!(text(&asked["status"]), "pending");
    let mut watch = Watch::at(two.address, &home.workspace().to_string(), &sid, None).await;
    let path = format!("/api/w/{}/approvals/{}/approve", home.workspace(), text(&asked["approval"]["id"]));
    let word = json!({ "actionDigest": asked["actionDigest"] });
    let approved = ask(&mut here, Some(&sid), "POST", &path, Some(&word)).await.ok();
    assert_eq!(text(&approved["state"]), "approved");
    let id = text(&asked["approval"]["id"]);
    let told = timeout(PATIENCE, async {
        loop {
            let told = watch.next().await.expect("the stream goes on");
            if told.data["id"] == *id {
                return told;
            }
        }
    });
    assert!(told.await.expect("it is told in time").name.starts_with("approval"));
    let read = there.read_action(&key, text(&asked["id"])).await.ok();
    assert_eq!(text(&read["status"]), "allowed");

    let small = payment_to(100, "books.example.org");
    assert_eq!(there.authorize(&key, &small).await.ok()["decision"], "allow");
    let bearer = bearer(text(&home.said["serviceToken"]));
    let freeze = format!("/v1/admin/agents/{agent}/freeze");
    here.ask("POST", &freeze, &[("authorization", &bearer)], br#"{"reason":"a leak"}"#).await.ok();
    let denied = there.authorize(&key, &small).await.ok();
    assert_eq!((&denied["decision"], &denied["signals"]), (&json!("deny"), &json!(["agent_frozen"])));
    one.stop().await;
    two.stop().await;
    home.audit();
}

/// Two servers look for what is to be delivered, and each call is made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_deliver_once() {
    let home = Home::start().await;
    let (one, two) = tokio::join!(home.serve(), home.serve());
    let mut hooks = Receiver::start_tls().await;
    let (_, key) = home.agent(WIDE);
    let mut clients = [Client::connect(one.address).await, Client::connect(two.address).await];
    let mut expected = BTreeSet::new();
    for number in 0..30 {
        let client = &mut clients[number % 2];
        let action = client.authorize(&key, &payment(100)).await.ok()["id"].clone();
        let url = format!("https://localhost:{}/hook/{number}", hooks.address.port());
        let path = format!("/v1/actions/{}/callback", text(&action));
        let registered = client.post(&path, &key, &json!({ "url": url })).await.ok();
        expected.insert(text(&registered["id"]).to_owned());
    }
    let mut heard = BTreeSet::new();
    for _ in 0..30 {
        let call = hooks.next().await;
        assert!(call.is_signed_with(&[text(&home.said["callbackSecret"])]));
        assert!(heard.insert(text(&call.json()["id"]).to_owned()), "twice: {:?}", call.line);
    }
    assert_eq!(heard, expected);
    one.stop().await;
    two.stop().await;
    assert!(hooks.is_quiet(), "nothing is delivered again");
    let open = "SELECT count(*) FROM svc.links WHERE idx = 'outbox'";
    assert_eq!(home.database.sql(open), "0");
    home.audit();
}

/// Asks one server for actions until it is gone; what was sent last may have no answer.
async fn work(
    mut client: Client,
    key: String,
    name: String,
    answers: Arc<AtomicUsize>,
    enough: Arc<Notify>,
) -> Vec<(String, Option<Value>)> {
    let mut orders = Vec::new();
    loop {
        let once = format!("order-{name}-{}-of-a-worker", orders.len());
        let (bearer, body) = (bearer(&key), payment(100).to_string());
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", once.as_str())];
        let got = client.try_ask("POST", "/v1/actions/authorize", &headers, body.as_bytes()).await;
        let Ok(got) = got else {
            orders.push((once, None));
            return orders;
        };
        orders.push((once, Some(got.ok())));
        if answers.fetch_add(1, Ordering::SeqCst) == 300 {
            enough.notify_one();
        }
        if answers.load(Ordering::SeqCst) > 900 {
            return orders;
        }
    }
}

/// A server is killed under load: the other goes on as if nothing had happened, and knows everything that the first has told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_takes_nothing_with_it() {
    let home = Home::start().await;
    let (one, two) = tokio::join!(home.serve(), home.serve());
    let keys: Vec<String> = (0..4).map(|_| home.agent(WIDE).1).collect();
    let (answers, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let mut running = Vec::new();
    for place in 0..12 {
        let client = Client::connect(if place % 2 == 0 { one.address } else { two.address }).await;
        let (answers, enough) = (Arc::clone(&answers), Arc::clone(&enough));
        let worker = work(client, keys[place % 4].clone(), place.to_string(), answers, enough);
        running.push((place, tokio::spawn(worker)));
    }
    timeout(PATIENCE, enough.notified()).await.unwrap();
    one.kill().await;
    let mut client = Client::connect(two.address).await;
    let (mut told, mut cut) = (0, 0);
    for (place, worker) in running {
        for (once, answer) in worker.await.unwrap() {
            let again = client.authorize_once(&keys[place % 4], &once, &payment(100)).await;
            let Some(answer) = answer else {
                assert_eq!(place % 2, 0, "the other server has answered everybody");
                cut += 1;
                continue;
            };
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "forgotten: {answer}");
            assert_eq!((&again.ok()["id"], &again.ok()["decision"]), (&answer["id"], &answer["decision"]));
            told += 1;
        }
    }
    assert!(told > 300 && cut > 0, "{told} told, {cut} cut off");
    two.stop().await;
    home.audit();
}

/// A server whose clock is apart from the database's is not ready, and decides nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_wrong_clock_is_not_ready() {
    let home = Home::start().await;
    let (_, key) = home.agent(WIDE);
    let base_url = BaseUrl::parse(BASE_URL).unwrap();
    for (ahead, ready) in [(Span::seconds(0), true), (Span::seconds(60), false)] {
        let gate = gate_over(&home.database, FakeClock::new(now().plus(ahead)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::new(listener, &Config::default(), &base_url, gate).unwrap();
        let address = server.address().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let done = tokio::spawn(server.run(async { drop(stopped.await) }));
        let mut client = Client::connect(address).await;
        let got = client.ask("GET", "/readyz", &[], b"").await;
        assert_eq!(got.status == 200, ready, "{}", got.text());
        let got = client.authorize(&key, &payment(100)).await;
        assert_eq!(got.status, if ready { 200 } else { 503 }, "{}", got.text());
        drop(stop);
        done.await.unwrap();
    }
}

/// What cannot be is refused at the start, in words that hold no password, and `svc doctor` says the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_says_what_is_wrong_with_the_database() {
    let home = Home::start().await;
    let run = async |arguments: &[&str], url: &str| {
        let mut command = command(home.data.path());
        command
            .args(arguments)
            .env("SVC_STORE_URL", url)
            .env("SVC_MASTER_KEY", MASTER)
            .env("SVC_LISTEN", "127.0.0.1:0");
        let done = command.env("SVC_BASE_URL", BASE_URL).output().await.unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(!said.contains("hunter2"), "{said}");
        (done.status.success(), said)
    };
    let (well, said) = run(&["doctor"], &home.database.address()).await;
    assert!(well && said.contains("keeps what it confirms"), "{said}");
    let (well, said) = run(&["serve"], "postgres://svc:hunter2@127.0.0.1:1/svc").await;
    assert!(!well && said.contains("svc: postgres://127.0.0.1:1/svc: the database server cannot be reached"), "{said}");
    let (well, said) = run(&["init"], &home.database.address()).await;
    assert!(well && said.starts_with("postgres:///") && said.contains("/svc was ready already"), "{said}");
    let (well, said) = run(&["serve"], "postgres://svc:hunter2@db.example.com/svc?sslmode=prefer").await;
    assert!(!well && said.contains("sslmode"), "{said}");
    let (well, said) = run(&["dev"], &home.database.address()).await;
    assert!(!well && said.contains("svc init"), "{said}");
    let copy = home.data.path().join("copy.db").display().to_string();
    let (well, said) = run(&["backup", &copy], &home.database.address()).await;
    assert!(!well && said.contains("pg_dump"), "{said}");
    let (well, said) = run(&["migrate"], &home.database.address()).await;
    let present = format!("has schema {} already", svc_store::sqlite::SCHEMA);
    assert!(well && said.contains(&present), "{said}");
    home.database.sql("ALTER ROLE svc SET synchronous_commit=off");
    for arguments in [["serve"], ["doctor"]] {
        let (well, said) = run(&arguments, &home.database.address()).await;
        assert!(!well && said.contains("synchronous_commit"), "{said}");
    }
}

/// A server that starts while another on the same database has another base address says so and names both, and so does `svc doctor`;
/// it serves all the same, and nothing is said once the other is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_two_addresses_are_told_of() {
    const OTHER: &str = "https://old.example.com";
    let home = Home::start().await;
    let serve = async |base: &str| {
        Program::serve_with(home.data.path(), base, |command| {
            command.env("SVC_STORE_URL", home.database.address()).env("SVC_MASTER_KEY", MASTER);
        })
        .await
    };
    let doctor = async || {
        let mut command = command(home.data.path());
        command.args(["doctor"]).env("SVC_STORE_URL", home.database.address()).env("SVC_MASTER_KEY", MASTER);
        let told = command.env("SVC_BASE_URL", BASE_URL).output().await.unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        told.lines().find(|it| it.contains(" other servers: ")).unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    let names_both = |told: &str| {
        told.contains(&format!("servers on the same database are reached at {OTHER}, and this one at {BASE_URL}"))
    };
    let old = serve(OTHER).await;
    assert!(!old.said.contains("on the same database"), "{}", old.said);
    let new = serve(BASE_URL).await;
    assert!(names_both(&new.said), "{}", new.said);
    assert_eq!(Client::connect(new.address).await.ask("GET", "/readyz", &[], b"").await.status, 200);
    let told = doctor().await;
    assert!(told.starts_with("look ") && names_both(&told), "{told}");
    old.stop().await;
    let told = doctor().await;
    assert!(told.starts_with("ok ") && told.contains(BASE_URL), "{told}");
    let same = serve(BASE_URL).await;
    assert!(!same.said.contains("on the same database"), "{}", same.said);
    same.stop().await;
    new.stop().await;
}
