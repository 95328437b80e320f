//! Streams over real sockets: what holds while many run at once, hang up, break and are stopped, and what time ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svc_core::state::gateway::{BudgetUse, Call, CallEnd, CallState};
use svc_core::store::{Commit, Row as _, Store as _};
use svc_core::testing::Dice;
use svc_core::value::Span;
use svc_core::value::id::BudgetId;
use svc_tests::client::{PATIENCE, bearer, request};
use svc_tests::desk::{CHAT, Desk, Hand, MESSAGES, chat, header_of, streamed};
use svc_tests::site::{Fault, Site};
use svc_tests::witness::Witness;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

const STOP: [(&str, u64); 1] = [("stop", 100)];

fn ladder(steps: &[(&str, u64)]) -> Value {
    steps.iter().map(|(step, at)| json!({ "step": step, "at": at })).collect()
}

/// The row of a budget.
fn used(site: &Site, budget: &str) -> BudgetUse {
    let key = BudgetUse::key(BudgetId::parse(budget).unwrap());
    let found = site.memory().load(&[key]).unwrap().remove(0).record;
    BudgetUse::clone(found.as_ref().and_then(BudgetUse::peel).unwrap())
}

/// Reads until so many bytes came or the server closed; whether it closed.
async fn hear(socket: &mut TcpStream, least: usize) -> (Vec<u8>, bool) {
    let mut heard = Vec::new();
    while heard.len() < least {
        let read = timeout(PATIENCE, socket.read_buf(&mut heard)).await.expect("the server goes on in time");
        if read.unwrap_or(0) == 0 {
            return (heard, true);
        }
    }
    (heard, false)
}

/// What is no head of a request, or more of one than is read, is refused in the interface's words, and ends its connection: also
/// behind a request that was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_head_is_told_so() {
    let site = Site::start().await;
    let headers: String = (0..120).map(|it| format!("x-{it}: a\r\n")).collect();
    for (head, kind) in [
        ("GET /healthz HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), "400 invalid_request"),
        ("\u{1} / HTTP/1.1\r\n\r\n".to_owned(), "400 invalid_request"),
        (format!("GET /healthz HTTP/1.1\r\n{headers}\r\n"), "431 headers_too_large"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(65_600)), "414 uri_too_long"),
    ] {
        for before in [false, true] {
            let mut socket = TcpStream::connect(site.address).await.unwrap();
            if before {
                socket.write_all(&request("GET", "/healthz", &[], b"")).await.unwrap();
                assert!(hear(&mut socket, 12).await.0.starts_with(b"HTTP/1.1 200"));
            }
            let sent = socket.write_all(head.as_bytes()).await;
            let (heard, closed) = hear(&mut socket, usize::MAX).await;
            let text = String::from_utf8_lossy(&heard);
            let told = text.find("HTTP/1.1 4").and_then(|it| text.get(it..)).unwrap_or_default();
            let body = told.split_once("\r\n\r\n").map_or(Value::Null, |(_, it)| serde_json::from_str(it).unwrap());
            let status = told.get(9..12).unwrap_or_default();
            assert_eq!(format!("{status} {}", body["error"]["type"].as_str().unwrap()), kind, "{sent:?} {text}");
            assert_eq!(header_of(told, "x-request-id").as_deref(), body["error"]["requestId"].as_str(), "{text}");
            assert!(closed && header_of(told, "svc-version").is_some(), "{text}");
        }
    }
    site.stop().await;
}

/// The most that was ever spent and reserved together, as each commit left it.
fn highest() -> (Witness, Arc<AtomicU64>) {
    let most = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&most);
    let look = move |commit: &Commit| {
        for record in commit.writes.iter().filter_map(|it| it.record.as_ref()) {
            if let Some(row) = BudgetUse::peel(record) {
                seen.fetch_max(row.used().get(), Ordering::SeqCst);
            }
        }
    };
    (Witness::new(look), most)
}

/// One client of the crowd: what it does is drawn.
struct Guest {
    address: std::net::SocketAddr,
    key: String,
    class: &'static str,
    path: &'static str,
    /// After so many bytes it goes away.
    leaves: Option<usize>,
}

impl Guest {
    /// The answer's status; 0 where the guest left before it had one.
    async fn call(&self) -> u16 {
        let bearer = bearer(&self.key);
        let headers = [
            ("authorization", &*bearer),
            ("x-svc-task-class", self.class),
            ("connection", "close"),
            ("te", "trailers"),
        ];
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let body = streamed("auto").to_string();
        socket.write_all(&request("POST", self.path, &headers, body.as_bytes())).await.unwrap();
        let (heard, _) = hear(&mut socket, self.leaves.unwrap_or(usize::MAX)).await;
        let text = String::from_utf8_lossy(&heard);
        text.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
    }
}

/// What providers of the crowd do.
const PROVIDERS: [(&str, &str); 6] = [
    ("whole", "m--pace-2--words-40"),
    ("fast", "m--words-40"),
    ("cut", "m--pace-2--words-40--cut-12"),
    ("half", "m--words-40--half-7"),
    ("mute", "m--words-40--usage-missing"),
    ("failing", "m--status-503"),
];

/// 64 streams at once on a budget that fits ten, time and again, while clients hang up, providers break and agents are
/// frozen at points that are drawn: what is spent and reserved never passes the ceiling in any commit, and at the end nothing
/// is held and every micro spent is some call's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_streams_never_passes_a_budget() {
    let (witness, most) = highest();
    let mut desk = Desk::bare(|plan| plan.witness = witness).await;
    let upstream = desk.upstream("chat", "chat", &desk.mock.chat_url()).await;
    for (class, model) in PROVIDERS {
        desk.model(&upstream, model, 50, 1, 20).await;
        desk.post("task-classes", json!({ "id": class, "models": [format!("chat/{model}")] })).await.made();
    }
    desk.routing(json!({ "mode": "enforce", "defaultTaskClass": "fast" })).await;
    let probe = desk.budget(1_000_000_000, ladder(&STOP)).await;
    let dry = desk.chat_with(&[("x-svc-dry-run", "true")], &streamed("auto")).await.ok();
    let worst = dry["budgets"][0]["thisCallMicros"].as_u64().unwrap();
    assert_eq!(desk.api("DELETE", &format!("budgets/{probe}"), None).await.status, 204);
    most.store(0, Ordering::SeqCst);
    let limit = worst * 10;
    let budget = desk.budget(limit, ladder(&STOP)).await;
    let agents: Vec<_> = (0..8).map(|_| desk.site.agent(&[])).collect();
    let mut dice = Dice::new(64);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..64_usize {
        let frozen = dice.chance(250);
        let guests: Vec<Guest> = (0..4)
            .map(|_| Guest {
                address: desk.site.address,
                key: if frozen { agents[number % 8].key.clone() } else { desk.key.clone() },
                class: dice.pick(&PROVIDERS).0,
                path: if dice.chance(500) { CHAT } else { MESSAGES },
                leaves: dice.chance(300).then(|| dice.below(4_000)),
            })
            .collect();
        running.spawn(async move {
            let mut statuses = Vec::new();
            for guest in guests {
                statuses.push(guest.call().await);
            }
            statuses
        });
    }
    let mut statuses = Vec::new();
    while let Some(done) = running.join_next().await {
        statuses.extend(done.unwrap());
        // Whenever another eighth of the crowd has gone, one more agent is stopped.
        if statuses.len() % 32 == 0 {
            desk.freeze(agents[(statuses.len() / 32 - 1) % 8].id);
        }
    }
    desk.site.until(|| used(&desk.site, &budget).open == 0).await;
    let count = |status: u16| statuses.iter().filter(|it| **it == status).count();
    assert!(count(200) > 10 && count(429) > 0, "{statuses:?}");
    let known = [0, 200, 403, 429, 502];
    assert!(statuses.iter().all(|it| known.contains(it)), "{statuses:?}");
    let most = most.load(Ordering::SeqCst);
    assert!(most <= limit && most > worst * 5, "{most} of {limit}, {worst} a call");
    let at = desk.budget_at(&budget).await;
    assert_eq!((&at["reservedMicros"], &at["reservations"]), (&json!(0), &json!([])), "{at}");
    let (mut spent, mut cursor) = (0, String::new());
    loop {
        let page = desk.read(&format!("calls?limit=100{cursor}")).await;
        for call in page["data"].as_array().unwrap() {
            assert!(call["end"].is_string(), "{call}");
            spent += call["costMicros"].as_u64().unwrap();
        }
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(at["spentMicros"], json!(spent));
    desk.site.audit();
}

/// A server that dies with streams on it leaves reservations, each told with its call; another charges each its estimate
/// when its time is up, with a record, and holds nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_server_held_lapses() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1_000_000_000, ladder(&STOP)).await;
    desk.mock.turn("stall-3").unwrap();
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut socket = desk.begin(CHAT, &[], &streamed("chat/large-1")).await;
        let (heard, closed) = hear(&mut socket, 400).await;
        assert!(!closed, "{}", String::from_utf8_lossy(&heard));
        streams.push((socket, header_of(&String::from_utf8_lossy(&heard), "x-svc-call-id").unwrap()));
    }
    let at = desk.budget_at(&budget).await;
    let held = at["reservations"].as_array().unwrap();
    assert_eq!(held.len(), 5, "{at}");
    let sum: u64 = held.iter().map(|it| it["micros"].as_u64().unwrap()).sum();
    assert_eq!((&at["reservedMicros"], &at["spentMicros"]), (&json!(sum), &json!(0)), "{at}");
    for (_, call) in &streams {
        assert!(held.iter().any(|it| it["callId"] == json!(call) && it["expiresAt"].is_string()), "{at}");
    }
    let calls: Vec<String> = streams.iter().map(|(_, call)| call.clone()).collect();
    desk.site.fault.set(Fault::Unavailable);
    drop(streams);
    let other = desk.site.node(Span::seconds(0)).await;
    desk.client = other.client().await;
    other.advance(Span::minutes(15));
    assert_eq!(desk.budget_at(&budget).await["reservedMicros"], json!(sum), "a call may take a quarter of an hour");
    other.advance(Span::minutes(2));
    let at = desk.budget_at(&budget).await;
    assert_eq!((&at["reservedMicros"], &at["reservations"]), (&json!(0), &json!([])), "{at}");
    let mut spent = 0;
    for id in &calls {
        let call = desk.call(id).await;
        assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("lapsed"), &json!(true)), "{call}");
        let cost = call["costMicros"].as_u64().unwrap();
        assert!(cost > 0 && cost <= call["reservedMicros"].as_u64().unwrap(), "{call}");
        spent += cost;
    }
    assert_eq!(at["spentMicros"], json!(spent));
    let ledger = desk.read("ledger?limit=100").await;
    let lapses = ledger["data"].as_array().unwrap().iter().filter(|it| it["kind"] == "budget.lapsed");
    assert_eq!(lapses.count(), 5, "{ledger}");
    desk.site.fault.set(Fault::None);
}

/// A call that was taken for lost and ends after all is told as it ended, and what was charged too little is added.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_end_corrects_a_lapse() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1_000_000_000, ladder(&STOP)).await;
    desk.mock.turn("stall-3").unwrap();
    let mut socket = desk.begin(CHAT, &[], &streamed("chat/large-1")).await;
    let (heard, _) = hear(&mut socket, 400).await;
    let id = header_of(&String::from_utf8_lossy(&heard), "x-svc-call-id").unwrap();
    assert_eq!(desk.call(&id).await["end"], Value::Null, "it runs");
    desk.site.advance(Span::minutes(17));
    let lapsed = desk.call(&id).await;
    assert_eq!(lapsed["end"], json!("lapsed"), "{lapsed}");
    let seen = desk.mock.counts().hung_up;
    drop(socket);
    desk.mock.until(|it| it.hung_up > seen).await;
    let site = &desk.site;
    site.until(|| site.memory().dump().iter().any(|(.., it)| format!("{it:?}").contains("HungUp"))).await;
    let call = desk.call(&id).await;
    assert_eq!(call["end"], json!("hung_up"), "{call}");
    let at = desk.budget_at(&budget).await;
    assert_eq!(at["reservedMicros"], json!(0));
    assert!(at["spentMicros"].as_u64() >= lapsed["costMicros"].as_u64(), "{at} {lapsed}");
    assert!(at["spentMicros"].as_u64() >= call["costMicros"].as_u64(), "{at} {call}");
}

/// A client that hangs up ends a streamed call at its provider and pays for what came; a whole answer is read to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_pays() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1_000_000_000, ladder(&STOP)).await;
    desk.mock.turn("pace-5--words-100000").unwrap();
    let mut endless = streamed("chat/large-1");
    endless.as_object_mut().unwrap().remove("max_tokens");
    let mut socket = desk.begin(CHAT, &[], &endless).await;
    let (heard, _) = hear(&mut socket, 1_500).await;
    let id = header_of(&String::from_utf8_lossy(&heard), "x-svc-call-id").unwrap();
    drop(socket);
    desk.mock.until(|it| it.hung_up == 1 && it.running == 0).await;
    desk.site.until(|| used(&desk.site, &budget).open == 0).await;
    let call = desk.call(&id).await;
    assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("hung_up"), &json!(true)), "{call}");
    let cost = call["costMicros"].as_u64().unwrap();
    assert!(cost > 0 && cost <= call["reservedMicros"].as_u64().unwrap(), "{call}");

    desk.site.shift(Span::millis(1));
    desk.mock.turn("head-300").unwrap();
    let socket = desk.begin(CHAT, &[], &chat("chat/large-1")).await;
    let before = desk.mock.counts().requests;
    desk.mock.until(|it| it.requests > before || it.running == 1).await;
    drop(socket);
    desk.site.until(|| used(&desk.site, &budget).open == 0).await;
    let whole = desk.read("calls?limit=1").await["data"][0].clone();
    assert_eq!((&whole["end"], &whole["usage"]["estimated"]), (&json!("done"), &json!(false)), "{whole}");
    assert_eq!(desk.mock.counts().hung_up, 1, "the provider was heard to its end");
    let sum = cost + whole["costMicros"].as_u64().unwrap();
    assert_eq!(desk.budget_at(&budget).await["spentMicros"], json!(sum));
}

/// A server that stops has one time for all that runs. At its end a stream has an error event in its own API and a whole call an
/// answer, and what came of each is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_tells_what_it_cuts() {
    let drain = Duration::from_secs(2);
    let mut desk = Desk::bare(|plan| plan.config.timeouts.drain = drain).await;
    let upstream = desk.upstream("chat", "chat", &desk.mock.chat_url()).await;
    for model in ["m--stall-3", "m--hang"] {
        desk.model(&upstream, model, 50, 1, 2).await;
    }
    let mut streams = Vec::new();
    for (path, error) in [(CHAT, "data: {\"error\":"), (MESSAGES, "event: error\ndata: ")] {
        let mut socket = desk.begin(path, &[], &streamed("chat/m--stall-3")).await;
        let (heard, closed) = hear(&mut socket, 400).await;
        assert!(!closed, "{}", String::from_utf8_lossy(&heard));
        streams.push((socket, error));
    }
    let mut whole = desk.begin(CHAT, &[], &chat("chat/m--hang")).await;
    desk.mock.until(|it| it.requests == 3).await;
    let memory = desk.site.memory();
    drop((desk.client, desk.owner));
    let began = Instant::now();
    desk.site.stop().await;
    assert!(began.elapsed() < drain * 3 / 2, "{:?}", began.elapsed());
    for (mut socket, error) in streams {
        let (heard, _) = hear(&mut socket, usize::MAX).await;
        let heard = String::from_utf8_lossy(&heard).into_owned();
        assert!(heard.contains(error) && heard.contains("not_ready") && heard.ends_with("\r\n0\r\n\r\n"), "{heard}");
    }
    let (heard, _) = hear(&mut whole, usize::MAX).await;
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(heard.starts_with("HTTP/1.1 503 ") && heard.contains("not_ready"), "{heard}");
    let rows = memory.dump();
    let calls: Vec<_> = rows.iter().filter_map(|(.., it)| Call::peel(it)).collect();
    let is_cut = |it: &CallState| matches!(it, CallState::Ended { end: CallEnd::Cut, .. });
    assert!(calls.len() == 3 && calls.iter().all(|it| is_cut(&it.state) && it.cost.get() > 0), "{calls:?}");
}

/// A client that hangs up before the first token pays for the input that the provider has told, not for a guess at it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_before_the_first_token_pays_what_was_told() {
    let mut desk = Desk::bare(|_| {}).await;
    let provider = Hand::new();
    let id = desk.upstream("hand", "messages", &provider.url()).await;
    desk.model(&id, "large-1", 80, 3, 15).await;
    let budget = desk.budget(1_000_000_000, ladder(&STOP)).await;
    let mut body = streamed("hand/large-1");
    body["max_tokens"] = json!(8_000);
    let socket = desk.begin(CHAT, &[], &body).await;
    let mut asked = provider.asked().await;
    asked.tell_input(70).await;
    drop(socket);
    asked.let_go().await;
    desk.site.until(|| used(&desk.site, &budget).open == 0).await;
    let call = desk.read("calls?limit=1").await["data"][0].clone();
    assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("hung_up"), &json!(true)), "{call}");
    assert_eq!(call["usage"]["input"], json!(70), "{call}");
    let cost = 70 * 3 + call["usage"]["output"].as_u64().unwrap() * 15;
    assert_eq!((&call["costMicros"], &desk.budget_at(&budget).await["spentMicros"]), (&json!(cost), &json!(cost)));
}

/// A client that goes away while the connection to the provider is being made pays nothing: no byte of its request has left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_before_a_byte_has_left_pays_nothing() {
    let mut desk = Desk::bare(|_| {}).await;
    // It takes connections and never shakes hands.
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let id = desk.upstream("deaf", "chat", &format!("https://{}", deaf.local_addr().unwrap())).await;
    desk.model(&id, "large-1", 80, 3, 15).await;
    let budget = desk.budget(1_000_000_000, ladder(&STOP)).await;
    let socket = desk.begin(CHAT, &[], &streamed("deaf/large-1")).await;
    let _open = timeout(PATIENCE, deaf.accept()).await.unwrap().unwrap();
    drop(socket);
    desk.site.until(|| used(&desk.site, &budget).open == 0).await;
    let call = desk.read("calls?limit=1").await["data"][0].clone();
    assert_eq!((&call["end"], &call["costMicros"]), (&json!("hung_up"), &json!(0)), "{call}");
    let at = desk.budget_at(&budget).await;
    assert_eq!((&at["reservedMicros"], &at["spentMicros"]), (&json!(0), &json!(0)), "{at}");
}

/// A client that goes away while its call is being admitted leaves nothing: the call is sent nowhere, and what it held is given
/// back without a charge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_leaves_before_it_is_admitted_pays_nothing() {
    for body in [streamed("chat/large-1"), chat("chat/large-1")] {
        let (admitting, mut admits) = watch::channel(false);
        let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
        let held = std::sync::Mutex::new(held);
        let witness = Witness::new(move |commit| {
            let mut calls = commit.writes.iter().filter_map(|it| it.record.as_ref()).filter_map(Call::peel);
            if calls.any(|it| it.is_running()) {
                admitting.send_replace(true);
                let _ = held.lock().unwrap().recv_timeout(PATIENCE);
            }
        });
        let mut desk = Desk::with(|plan| plan.witness = witness).await;
        let budget = desk.budget(1_000_000, ladder(&STOP)).await;
        let mut socket = desk.begin(CHAT, &[], &body).await;
        timeout(PATIENCE, admits.wait_for(|it| *it)).await.unwrap().unwrap();
        // The server ends the connection once it has seen that the client is gone.
        socket.shutdown().await.unwrap();
        let _ = timeout(PATIENCE, socket.read_to_end(&mut Vec::new())).await.unwrap();
        release.send(()).unwrap();
        desk.site.until(|| used(&desk.site, &budget).open == 0).await;
        let call = desk.read("calls?limit=1").await["data"][0].clone();
        assert_eq!((&call["end"], &call["costMicros"]), (&json!("hung_up"), &json!(0)), "{call}");
        let at = desk.budget_at(&budget).await;
        assert_eq!((&at["reservedMicros"], &at["spentMicros"]), (&json!(0), &json!(0)), "{at}");
        assert_eq!(desk.mock.counts().requests, 0, "nothing was sent");
        desk.site.advance(Span::minutes(17));
        assert!(desk.site.ledger().iter().all(|it| &*it.kind != "budget.lapsed"));
        desk.site.audit();
    }
}

/// What a provider has sent is passed on although nothing more ever comes, and a further request on a kept connection is
/// answered like the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_pass_as_they_come() {
    let desk = Desk::new().await;
    desk.mock.turn("words-20--stall-4").unwrap();
    for path in [CHAT, MESSAGES] {
        for provider in ["chat", "messages"] {
            let mut socket = desk.begin(path, &[], &streamed(&format!("{provider}/large-1"))).await;
            let mut heard = Vec::new();
            while !String::from_utf8_lossy(&heard).contains("\"content\":\"") && heard.len() < 10_000 {
                let (more, closed) = hear(&mut socket, 1).await;
                assert!(!closed, "{}", String::from_utf8_lossy(&heard));
                heard.extend(more);
                if String::from_utf8_lossy(&heard).contains("text_delta") {
                    break;
                }
            }
        }
    }
    desk.mock.until(|it| it.hung_up + it.running == 4).await;
    desk.mock.turn("").unwrap();
    let bearer = bearer(&desk.key);
    let mut socket = TcpStream::connect(desk.site.address).await.unwrap();
    let body = streamed("chat/large-1").to_string();
    let mut fastest = PATIENCE;
    for number in 0..20 {
        let begun = Instant::now();
        socket.write_all(&request("POST", CHAT, &[("authorization", &*bearer)], body.as_bytes())).await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"0\r\n\r\n") {
            heard.extend(hear(&mut socket, 1).await.0);
        }
        if number > 0 {
            fastest = fastest.min(begun.elapsed());
        }
    }
    // Where a socket held small writes back, each of them would wait for an acknowledgement that is 40 ms late.
    assert!(fastest < Duration::from_millis(40), "{fastest:?}");
}

/// The cost of a stream comes in its trailer to whoever reads trailers, and to nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cost_comes_in_a_trailer() {
    let mut desk = Desk::new().await;
    for (path, te) in [(CHAT, "trailers"), (MESSAGES, "gzip;q=0.5, Trailers"), (CHAT, "gzip"), (CHAT, "")] {
        let heard = desk.stream(path, &[("te", te)], &streamed("messages/large-1")).await;
        let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
        let told = te.to_ascii_lowercase().contains("trailers");
        let (head, rest) = heard.split_once("\r\n\r\n").unwrap();
        let wanted = format!("\r\n0\r\nx-svc-cost-micros: {}\r\n\r\n", call["costMicros"]);
        assert_eq!(
            (head.contains("trailer: x-svc-cost-micros"), rest.ends_with(&wanted)),
            (told, told),
            "{te}: {heard}"
        );
        assert!(!head.contains("\r\nx-svc-cost-micros"), "{heard}");
        assert!(told || rest.ends_with("\r\n0\r\n\r\n"), "{heard}");
    }
}

/// Whoever has heard the last word finds the call's record and the budget as they are, though the stream has not ended yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_is_there_with_the_last_word() {
    let mut desk = Desk::new().await;
    let budget = desk.budget(1_000_000_000, ladder(&STOP)).await;
    let mut spent = 0;
    for _ in 0..10 {
        for (path, last) in [(CHAT, "[DONE]"), (MESSAGES, "event: message_stop")] {
            let mut socket = desk.begin(path, &[("te", "trailers")], &streamed("messages/large-1")).await;
            let mut text = String::new();
            while !text.contains(last) {
                let (heard, is_over) = hear(&mut socket, 1).await;
                text.push_str(std::str::from_utf8(&heard).unwrap());
                assert!(!is_over, "{text}");
            }
            let call = desk.call(&header_of(&text, "x-svc-call-id").unwrap()).await;
            assert_eq!(call["end"], json!("done"), "{call}");
            spent += call["costMicros"].as_u64().unwrap();
            let at = desk.budget_at(&budget).await;
            assert_eq!((&at["spentMicros"], &at["reservedMicros"]), (&json!(spent), &json!(0)), "{at}");
        }
    }
}

/// The time for the first token, between tokens and for the whole call: each ends a call in its own way, and it is charged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_ends_a_call() {
    let mut desk = Desk::new().await;
    for name in ["chat", "messages"] {
        let path = format!("upstreams/{}", desk.upstreams[name]);
        let times = json!({ "timeouts": { "firstTokenMs": 300, "idleMs": 300, "totalMs": 900 } });
        desk.api("PATCH", &path, Some(&times)).await.ok();
    }
    let before = [
        ("first-60000", true, "no first token in time"),
        ("head-60000", true, "no first token in time"),
        ("hang", true, "no first token in time"),
        ("stall-1", true, "no first token in time"),
        ("head-60000", false, "no whole answer in time"),
        ("stall-1", false, "nothing more in time"),
    ];
    for (knob, is_stream, said) in before {
        desk.mock.turn(knob).unwrap();
        for provider in ["chat", "messages"] {
            let model = format!("{provider}/large-1");
            let body = if is_stream { streamed(&model) } else { chat(&model) };
            let got = desk.chat_with(&[], &body).await;
            let tried = got.json()["error"]["attemptedModels"][0].clone();
            assert_eq!(got.status, 502, "{knob}: {}", got.text());
            assert_eq!(tried["error"], json!(said), "{knob} {provider}");
            let call = desk.read("calls?limit=1").await["data"][0].clone();
            assert_eq!(call["end"], json!("failed"), "{knob} {call}");
            assert!(call["attempts"][0]["ms"].as_u64().unwrap() >= 300, "{knob} {call}");
            assert!(call["firstTokenMs"].is_null(), "{knob} {call}");
        }
    }
    for (knob, least) in [("words-50--stall-5", 300), ("words-50--pings-5", 300), ("words-100000--pace-20", 900)] {
        desk.mock.turn(knob).unwrap();
        for path in [CHAT, MESSAGES] {
            let mut body = streamed("chat/large-1");
            body["max_tokens"] = json!(1_000);
            let heard = desk.stream(path, &[], &body).await;
            assert!(heard.contains("upstream_failure") && !heard.contains("[DONE]"), "{knob}: {heard}");
            let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
            assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("cut"), &json!(true)), "{knob} {call}");
            assert!(call["durationMs"].as_u64().unwrap() >= least && call["costMicros"] != json!(0), "{knob} {call}");
        }
    }
}
