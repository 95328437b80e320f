//! The real server is killed while calls of models run: what they hold is held by the one that starts after it, lapses when their time
//! is up, and passes no ceiling on the way; what was answered before stands.

use std::path::Path;

use serde_json::{Value, json};
use svc_core::state::evidence::bundle::Verdict;
use svc_core::store::Clock as _;
use svc_core::testing::FakeClock;
use svc_core::testing::audit::{audit, audit_approvals};
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_http::Server;
use svc_http::config::{BaseUrl, Config};
use svc_http::mock::Mock;
use svc_http::upstream::Allowed;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::seal::MasterKey;
use svc_store::{Backend as _, Gate, SqliteStore, SystemClock};
use svc_tests::client::{Client, Got, bearer, request, until};
use svc_tests::desk::{CHAT, MESSAGES, chat, header_of, streamed};
use svc_tests::evidence::check;
use svc_tests::people::ask;
use svc_tests::program::{Program, command};
use svc_tests::requests::text;
use svc_tests::site::rows_of;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What all calls may cost in all, in micros: a few that run hold it.
const CEILING: u64 = 12_000;

/// A workspace on a disk, as `svc init` made it.
struct Home {
    data: tempfile::TempDir,
    said: Value,
}

impl Home {
    async fn made() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut init = command(data.path());
        let done = init.args(["init", "--json"]).env("SVC_BASE_URL", BASE_URL).output().await.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Self { said: serde_json::from_slice(&done.stdout).unwrap(), data }
    }

    async fn serve(&self) -> Program {
        Program::serve_with(self.data.path(), BASE_URL, |command| {
            command.env("SVC_OUTBOUND_ALLOW", "127.0.0.1");
        })
        .await
    }

    fn said(&self, what: &str) -> &str {
        text(&self.said[what])
    }

    /// Models behind this stand-in, each in a class of its own name, under one budget, in force.
    async fn furnish(&self, client: &mut Client, mock: &Mock) {
        let token = self.said("signInLink").split_once("token=").unwrap().1;
        let came = ask(client, None, "POST", "/api/sign-in/link", Some(&json!({ "token": token }))).await;
        let cookie = came.header("set-cookie").unwrap().strip_prefix("__Host-sid=").unwrap();
        let sid = cookie.split(';').next().unwrap().to_owned();
        let base = format!("/api/w/{}", self.said("workspaceId"));
        let mut put = async |method: &str, path: &str, body: Value| {
            ask(client, Some(&sid), method, &format!("{base}/{path}"), Some(&body)).await
        };
        let upstream =
            json!({ "name": "slow", "kind": "chat", "baseUrl": mock.chat_url(), "apiKey": "k", "jurisdiction": "eu" });
        let id = put("POST", "upstreams", upstream).await.made()["id"].clone();
        let prices = json!({ "input": 1_000_000, "output": 10_000_000 });
        for (name, quality) in [("plain", 50), ("slow--stall-3", 50), ("still--hang", 50), ("bad--status-500", 90)] {
            let model = json!({ "id": name, "upstreamId": id, "quality": quality, "prices": prices });
            put("POST", "models", model).await.made();
        }
        for (class, models) in [
            ("plain", json!(["slow/plain"])),
            ("slow", json!(["slow/slow--stall-3"])),
            ("still", json!(["slow/still--hang"])),
            ("second", json!(["slow/bad--status-500", "slow/slow--stall-3"])),
        ] {
            let class = json!({ "id": class, "models": models, "objective": "quality" });
            put("POST", "task-classes", class).await.made();
        }
        put("PUT", "routing", json!({ "mode": "enforce" })).await.ok();
        let stop = json!([{ "at": 100, "step": "stop" }]);
        let scope = json!({ "kind": "workspace" });
        let budget = json!({ "scope": scope, "amount": CEILING, "period": "total", "ladder": stop });
        put("POST", "budgets", budget).await.made();
    }

    async fn call(&self, client: &mut Client, path: &str, class: &str, body: &Value) -> Got {
        let key = bearer(self.said("inferenceKey"));
        let headers = [("authorization", key.as_str()), ("x-svc-task-class", class)];
        client.ask("POST", path, &headers, body.to_string().as_bytes()).await
    }

    /// Begins a call on a connection of its own.
    async fn begin(&self, program: &Program, class: &str, body: &Value) -> TcpStream {
        let key = bearer(self.said("inferenceKey"));
        let headers = [("authorization", key.as_str()), ("x-svc-task-class", class), ("connection", "close")];
        let mut socket = TcpStream::connect(program.address).await.unwrap();
        socket.write_all(&request("POST", CHAT, &headers, body.to_string().as_bytes())).await.unwrap();
        socket
    }

    /// The record of a call.
    async fn record(&self, client: &mut Client, id: &str) -> Value {
        client.get(&format!("/v1/calls/{id}"), self.said("inferenceKey")).await.ok()
    }

    /// The budget as it stands, of which no more than the ceiling is spent and held together.
    async fn budget(&self, client: &mut Client) -> Value {
        let list = client.get("/v1/admin/budgets", self.said("adminKey")).await.ok();
        let at = list["data"][0].clone();
        let (spent, reserved) = (at["spentMicros"].as_u64().unwrap(), at["reservedMicros"].as_u64().unwrap());
        assert!(spent + reserved <= CEILING, "{at}");
        let held = at["reservations"].as_array().unwrap().iter().map(|it| it["micros"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(held, reserved, "{at}");
        at
    }
}

/// A gate over what is left, by a clock that shows so much more than the time.
fn later(data: &Path, ahead: Span) -> (Gate, FakeClock) {
    let clock = FakeClock::new(SystemClock::new().now().plus(ahead));
    let store = SqliteStore::open(data).unwrap();
    let signer = receipt_signer(&mut store.writer().unwrap(), data, None, clock.now(), BASE_URL, &dalek).unwrap();
    let mut settings = svc_store::Settings::default();
    (settings.timers, settings.vault) = (false, MasterKey::read(data).unwrap());
    (Gate::over(store, clock.clone(), signer, settings).unwrap(), clock)
}

/// Killed while streams have begun, an answer is waited for, and a call is at its second model; all of the budget is spent or held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_calls_held_when_the_server_was_killed_lapses() {
    let home = Home::made().await;
    let mock = Mock::start(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let first = home.serve().await;
    let mut client = Client::connect(first.address).await;
    home.furnish(&mut client, &mock).await;
    let mut answered = Vec::new();
    for (path, body) in [(CHAT, chat("auto")), (MESSAGES, chat("auto")), (CHAT, chat("auto"))] {
        let got = home.call(&mut client, path, "plain", &body).await;
        got.ok();
        let id = got.header("x-svc-call-id").unwrap().to_owned();
        let call = home.record(&mut client, &id).await;
        assert_eq!(got.header("x-svc-cost-micros").map(str::to_owned), Some(call["costMicros"].to_string()), "{call}");
        answered.push((id, call));
    }
    let asked = mock.counts().requests;
    let mut sockets = vec![home.begin(&first, "still", &chat("auto")).await];
    mock.until(|it| it.requests > asked).await;
    let mut streams = Vec::new();
    let told = loop {
        let class = if streams.is_empty() { "second" } else { "slow" };
        let mut socket = home.begin(&first, class, &streamed("auto")).await;
        let heard = until(&mut socket, "\r\n\r\n").await;
        if !heard.starts_with("HTTP/1.1 200 ") {
            let mut rest = String::new();
            socket.read_to_string(&mut rest).await.unwrap();
            break heard + &rest;
        }
        let heard = if heard.contains("data: ") { heard } else { heard + &until(&mut socket, "data: ").await };
        streams.push(header_of(&heard, "x-svc-call-id").unwrap());
        sockets.push(socket);
        assert!(streams.len() < 50, "the ceiling is there");
    };
    assert!(told.starts_with("HTTP/1.1 429 ") && told.contains("budget_exhausted"), "{told}");
    let refused: Value = serde_json::from_str(told.split_once("\r\n\r\n").unwrap().1).unwrap();
    let before = home.budget(&mut client).await;
    assert_eq!(before["reservations"].as_array().map(Vec::len), Some(streams.len() + 1), "{before}");
    assert!(streams.len() > 2 && before["spentMicros"].as_u64() > Some(0), "{before}");
    first.kill().await;
    for mut socket in sockets {
        let mut rest = String::new();
        let _ = socket.read_to_string(&mut rest).await;
        assert!(!rest.contains("[DONE]"), "none is told as if it were whole: {rest}");
    }

    let second = home.serve().await;
    let mut client = Client::connect(second.address).await;
    assert_eq!(home.budget(&mut client).await, before, "what was spent and held still is");
    for (id, call) in &answered {
        assert_eq!(home.record(&mut client, id).await, *call);
    }
    let running = before["reservations"].as_array().unwrap().iter().map(|it| text(&it["callId"]).to_owned());
    let running: Vec<String> = running.collect();
    assert!(streams.iter().all(|it| running.contains(it)), "{running:?}");
    for id in &running {
        let call = home.record(&mut client, id).await;
        assert_eq!(call["end"], Value::Null, "{call}");
        assert_eq!(call["attempts"].as_array().map_or(0, Vec::len), usize::from(*id == streams[0]), "{call}");
    }
    let got = home.call(&mut client, CHAT, "plain", &chat("auto")).await;
    assert_eq!((got.status, got.kind().as_str()), (429, "budget_exhausted"), "nothing is free yet: {}", got.text());
    assert_eq!(home.budget(&mut client).await, before);
    second.stop().await;
    lapsed(&home, (&answered, &running), &refused["error"]["evidenceRecord"]).await;
}

/// Once their time is up nothing is held for them: each is charged what it may have cost, and that is on record.
async fn lapsed(home: &Home, (answered, running): (&[(String, Value)], &[String]), refused: &Value) {
    let data = home.data.path();
    let (gate, clock) = later(data, Span::minutes(15));
    let until = clock.now().plus(Span::minutes(2));
    while let Some(due) = gate.tick().unwrap().filter(|due| *due <= until) {
        clock.set(due.max(clock.now()));
    }
    clock.set(until.max(clock.now()));
    gate.tick().unwrap();
    let mut config = Config::default();
    config.outbound.allow = Allowed::loopback();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::new(listener, &config, &BaseUrl::parse(BASE_URL).unwrap(), gate.clone()).unwrap();
    let mut client = Client::connect(server.address().unwrap()).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let done = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let at = home.budget(&mut client).await;
    assert_eq!((&at["reservedMicros"], &at["reservations"]), (&json!(0), &json!([])), "{at}");
    let mut spent: u64 = answered.iter().map(|(_, call)| call["costMicros"].as_u64().unwrap()).sum();
    for id in running {
        let call = home.record(&mut client, id).await;
        assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("lapsed"), &json!(true)), "{call}");
        let cost = call["costMicros"].as_u64().unwrap();
        assert!(cost > 0 && cost <= call["reservedMicros"].as_u64().unwrap(), "{call}");
        spent += cost;
    }
    assert_eq!(at["spentMicros"], json!(spent), "{at}");
    for (id, call) in answered {
        assert_eq!(home.record(&mut client, id).await, *call);
    }
    let bundle = client.get("/v1/evidence", home.said("adminKey")).await;
    let report = check(bundle.text().as_bytes());
    assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
    let records = bundle.json()["records"].as_array().unwrap().clone();
    let lapses = records.iter().filter(|it| it["kind"] == "budget.lapsed");
    assert_eq!(lapses.count(), running.len(), "{records:?}");
    assert!(records.iter().any(|it| it["id"] == *refused && it["kind"] == "refusal"), "{refused} {records:?}");
    drop(client);
    stop.send(()).unwrap();
    done.await.unwrap();
    drop(gate);
    let rows = rows_of(data);
    let mut report = audit(&rows);
    report.faults.extend(audit_approvals(&rows));
    report.assert_clean("the audit of what is left");
}
