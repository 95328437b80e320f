//! Live events over a real socket: what is told, to whom, in which order, from where, and until when.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::state::evidence::Chain;
use svc_core::state::gate::Agent as AgentRow;
use svc_core::state::people::{Member, Principal, Role, Session};
use svc_core::store::Row;
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::text::Note;
use svc_tests::client::{Client, PATIENCE};
use svc_tests::people::{Person, ask};
use svc_tests::requests::{CRM, OFFICE, payment, payment_to, text, update};
use svc_tests::site::{Agent, Site};
use svc_tests::watch::{Told, Watch};

fn row<R: Row + Clone>(site: &Site, id: R::Id) -> R {
    let row = site.gate.read(|scope| scope.get::<R>(id)).unwrap().unwrap();
    R::clone(&row)
}

/// The agent becomes this person's own, as their sponsor.
fn give(site: &Site, agent: &Agent, person: &Person) {
    site.plant(AgentRow { sponsor: Some(person.principal), ..row::<AgentRow>(site, agent.id) });
}

async fn act(site: &Site, agent: &Agent) -> String {
    let mut client = site.client().await;
    text(&client.authorize(&agent.key, &update()).await.ok()["id"]).to_owned()
}

/// The ledger's places are taken, as they are within a second.
fn place(site: &Site) {
    site.gate.tick().unwrap();
}

/// A site whose owner listens from now on, an agent, and a connection.
async fn listening(mandate: &str) -> (Site, Person, Agent, Watch, Client) {
    let site = Site::start().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[mandate]));
    place(&site);
    let watch = Watch::open(&site, &owner.sid, None).await;
    let client = site.client().await;
    (site, owner, agent, watch, client)
}

fn named(told: &Told) -> (&str, &str) {
    (&told.name, text(&told.data["id"]))
}

/// A watcher hears of every decision in the ledger's order, and one who comes back hears of all that happened meanwhile, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_comes_back_has_missed_nothing() {
    let (site, owner, agent, mut watch, _) = listening(CRM).await;
    assert_eq!(watch.next_of_any().await.unwrap().name, "ping");
    let (mut made, mut heard, mut last) = (Vec::new(), Vec::new(), watch.last);
    for round in 0..6 {
        for _ in 0..5 {
            made.push(act(&site, &agent).await);
        }
        place(&site);
        // Every other round goes by unheard, and in one the connection breaks in the midst of it.
        let take = [5, 0, 10, 2, 8, 5][round];
        for _ in 0..take {
            let told = watch.next().await.unwrap();
            assert!(told.id > last, "{told:?} behind {last:?}");
            last = told.id;
            heard.push(text(&told.data["id"]).to_owned());
            assert_eq!((told.name.as_str(), &told.data["status"]), ("action.decided", &"allowed".into()));
        }
        if take != 5 {
            drop(watch);
            watch = Watch::open(&site, &owner.sid, last).await;
        }
    }
    assert_eq!(heard, made);
    let places: Vec<u64> = site.ledger().iter().map(|it| it.place.as_ref().unwrap().seq).collect();
    assert!(last.unwrap() <= *places.last().unwrap());
    site.audit();
    site.stop().await;
}

/// A wait, a person's decision, a settlement, an incident and a stop are told as what they are, without private members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_thing_is_told_as_what_it_is() {
    let (site, _, agent, mut watch, mut client) = listening(OFFICE).await;
    let asked = client.authorize(&agent.key, &payment(30_000)).await.ok();
    let (waits, approval) = (text(&asked["id"]).to_owned(), text(&asked["approval"]["id"]).to_owned());
    let allowed = client.authorize(&agent.key, &payment_to(100, "pay.example.org")).await.ok();
    let pays = text(&allowed["id"]).to_owned();
    client.settle(&agent.key, &pays, &serde_json::json!({ "status": "completed", "amount": 101 })).await.ok();
    site.advance(Span::seconds(1));
    let mut told = Vec::new();
    for _ in 0..7 {
        told.push(watch.next().await.unwrap());
    }
    let names: Vec<_> = told.iter().map(named).collect();
    let id = agent.id.to_string();
    assert_eq!(
        names,
        [
            ("approval.waiting", approval.as_str()),
            ("action.decided", pays.as_str()),
            ("action.settled", pays.as_str()),
            ("incident", pays.as_str()),
            ("agent.frozen", id.as_str()),
            ("approval.decided", approval.as_str()),
            ("action.decided", waits.as_str()),
        ]
    );
    assert_eq!(told[0].data["actionId"], waits.as_str());
    assert_eq!((&told[3].data["allowedAmount"], &told[3].data["settledAmount"]), (&100.into(), &101.into()));
    let all = format!("{told:?}");
    for private in ["example.", "Pay for what", "Example Shop", "settled above"] {
        assert!(!all.contains(private), "{private} is in {all}");
    }
    site.stop().await;
}

/// A person's decision is two events of one record, and both name its place: who comes back to it hears both again, whichever of
/// them they had heard, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_cut_between_two_events_hears_both_again() {
    let (site, owner, agent, mut watch, mut client) = listening(OFFICE).await;
    let asked = client.authorize(&agent.key, &payment(30_000)).await.ok();
    let deny = format!("/api/w/{}/approvals/{}/deny", site.workspace(), text(&asked["approval"]["id"]));
    owner.ask(&mut client, "POST", &deny, Some(&serde_json::json!({}))).await.ok();
    place(&site);
    let waiting = watch.next().await.unwrap();
    let told = [watch.next().await.unwrap(), watch.next().await.unwrap()];
    assert_eq!(
        (&waiting.name[..], &told[0].name[..], &told[1].name[..]),
        ("approval.waiting", "approval.decided", "action.decided")
    );
    let denied =
        site.ledger().iter().find(|it| &*it.kind == "action.person_denied").unwrap().place.clone().unwrap().seq;
    assert_eq!([told[0].id, told[1].id], [Some(denied); 2]);
    client.authorize(&agent.key, &payment_to(100, "pay.example.org")).await.ok();
    place(&site);
    for last in [waiting.id, told[0].id] {
        let mut again = Watch::open(&site, &owner.sid, last).await;
        for wanted in &told {
            assert_eq!(again.next().await.as_ref(), Some(wanted));
        }
    }
    site.stop().await;
}

/// Each role hears of what it may read: members of their own agents, auditors not of integrations, analysts of actions alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_hears_what_they_may_read() {
    let site = Site::start().await;
    let (own, other) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let people: Vec<Person> = Role::ALL.into_iter().map(|role| site.member(role)).collect();
    give(&site, &own, &people[2]);
    place(&site);
    let mut watches = Vec::new();
    for person in &people {
        watches.push(Watch::open(&site, &person.sid, None).await);
    }
    let mut client = site.client().await;
    let mut ids = Vec::new();
    for agent in [&other, &own] {
        ids.push(text(&client.authorize(&agent.key, &payment_to(30_000, "a.example.com")).await.ok()["id"]).to_owned());
        ids.push(text(&client.authorize(&agent.key, &payment_to(10, "b.example.org")).await.ok()["id"]).to_owned());
    }
    place(&site);
    let all = ["approval.waiting", "action.decided", "approval.waiting", "action.decided"];
    let expected: [&[&str]; 5] = [&all, &all, &all[..2], &["action.decided", "action.decided"], &all];
    for ((watch, expected), role) in watches.iter_mut().zip(expected).zip(Role::ALL) {
        let mut heard = Vec::new();
        for _ in expected {
            let told = watch.next().await.unwrap();
            if role == Role::Member {
                assert_eq!(told.data["agentId"], own.id.to_string().as_str(), "{told:?}");
            }
            heard.push(told.name);
        }
        assert_eq!(heard, expected, "{}", role.as_str());
    }
    site.stop().await;
}

/// A stream ends with its session: by time, by another role, by the end of the membership or the server; what happens after
/// that is not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_session() {
    let site = Site::start().await;
    let agent = site.agent(&[CRM]);
    let ends: [fn(&Site, &Person); 3] = [
        |site, person| {
            let id = Session::id_of(&Digest::of(&person.sid));
            site.plant(Session { ended_at: Some(site.now()), ..row::<Session>(site, id) });
        },
        |site, person| {
            let mut principal = row::<Principal>(site, person.principal);
            principal.member = principal.member.map(|it| Member { role: Role::Auditor, ..it });
            site.plant(principal);
        },
        |site, _| site.shift(Span::hours(12)),
    ];
    for end in ends {
        let person = site.member(Role::Admin);
        place(&site);
        let mut watch = Watch::open(&site, &person.sid, None).await;
        let first = act(&site, &agent).await;
        place(&site);
        assert_eq!(watch.next().await.map(|it| it.data["id"].clone()), Some(first.into()));
        end(&site, &person);
        act(&site, &agent).await;
        place(&site);
        assert_eq!(watch.next().await, None);
    }
    let person = site.member(Role::Owner);
    let mut watch = Watch::open(&site, &person.sid, None).await;
    assert_eq!(watch.next_of_any().await.unwrap().name, "ping");
    site.stop().await;
    assert_eq!(watch.next().await, None);
}

/// One who is too far behind, or names a place that is not there yet, is told to begin again, and then hears on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_too_far_behind_begins_again() {
    let site = Site::start().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[CRM]));
    place(&site);
    let mut ahead = Watch::open(&site, &owner.sid, Some(500)).await;
    assert_eq!(ahead.next().await.unwrap().name, "reset");
    act(&site, &agent).await;
    place(&site);
    assert_eq!(ahead.next().await.unwrap().name, "action.decided");
    let chain = row::<Chain>(&site, site.workspace());
    site.plant(Chain { size: 10_501, ..chain });
    for (last, reset) in [(Some(499), true), (Some(500), false)] {
        let mut watch = Watch::open(&site, &owner.sid, last).await;
        let first = watch.next_of_any().await.unwrap();
        assert_eq!((first.name == "reset", first.id), (reset, Some(if reset { 10_500 } else { 500 })), "{first:?}");
    }
    site.stop().await;
}

/// A place that is none is a fault of its header, nobody watches without a session, and an account has a bounded number of
/// streams, each of which is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_places_and_too_many_streams_are_refused() {
    let site = Site::start().await;
    let person = site.member(Role::Member);
    let path = format!("/api/w/{}/events", site.workspace());
    let mut client = site.client().await;
    let cookie = format!("__Host-sid={}", person.sid);
    for bad in ["-1", "+1", "x", "1.0", "18446744073709551616", "1 2"] {
        let headers = [("host", "gate.example.com"), ("cookie", cookie.as_str()), ("last-event-id", bad)];
        let got = client.ask("GET", &path, &headers, b"").await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["last-event-id".into()]), "{bad}");
    }
    assert_eq!(ask(&mut client, None, "GET", &path, None).await.status, 401);
    let mut open = Vec::new();
    for _ in 0..100 {
        open.push(Watch::open(&site, &person.sid, None).await);
    }
    let refused = person.ask(&mut client, "GET", &path, None).await;
    assert_eq!((refused.status, refused.kind().as_str()), (429, "rate_limited"));
    assert!(refused.header("retry-after").is_some());
    let other = site.member(Role::Member);
    let mut others = Watch::open(&site, &other.sid, None).await;
    assert_eq!(others.next_of_any().await.unwrap().name, "ping");
    drop(open);
    // The server notices that they are gone in its own time.
    let mut again = person.ask(&mut client, "HEAD", &path, None).await.status;
    while again == 429 {
        tokio::task::yield_now().await;
        again = person.ask(&mut client, "HEAD", &path, None).await.status;
    }
    assert_eq!(again, 200);
    site.stop().await;
}

/// A kill owner hears that their agent was frozen, whatever their role, and nothing else of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_owner_is_told_of_freezes() {
    let site = Site::start().await;
    let (own, other) = (site.agent(&[CRM]), site.agent(&[CRM]));
    let killer = site.member(Role::Analyst);
    site.plant(AgentRow { kill_owner: Some(killer.principal), ..row::<AgentRow>(&site, own.id) });
    place(&site);
    let mut watch = Watch::open(&site, &killer.sid, None).await;
    for agent in [&other, &own] {
        let (workspace, reason) = (site.workspace(), Note::parse("odd").unwrap());
        site.gate.execute(FreezeAgent { workspace, agent: agent.id, by: By::Program, reason }).unwrap();
    }
    act(&site, &other).await;
    place(&site);
    let told = watch.next().await.unwrap();
    assert_eq!(named(&told), ("agent.frozen", own.id.to_string().as_str()));
    assert_eq!(watch.next().await.unwrap().name, "action.decided", "an analyst hears of actions");
    site.stop().await;
}

/// Where many agents are stopped at once a member hears of each of theirs, once, at its record's place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hears_once_that_an_agent_was_stopped_among_many() {
    let site = Site::start().await;
    let (own, other) = (site.agent(&[CRM]), site.agent(&[CRM]));
    let (owner, member) = (site.member(Role::Owner), site.member(Role::Member));
    give(&site, &own, &member);
    place(&site);
    let mut watch = Watch::open(&site, &member.sid, None).await;
    let mut client = site.client().await;
    let selector = serde_json::json!({ "agentIds": [own.id, other.id] });
    let stop = serde_json::json!({ "selector": selector, "reason": "odd", "confirmCount": 2 });
    let base = format!("/api/w/{}", site.workspace());
    owner.ask(&mut client, "POST", &format!("{base}/freeze"), Some(&stop)).await.ok();
    site.advance(Span::seconds(1));
    let restart = serde_json::json!({ "reason": "mended" });
    owner.ask(&mut client, "POST", &format!("{base}/agents/{}/restart", own.id), Some(&restart)).await.ok();
    place(&site);
    let id = own.id.to_string();
    for name in ["agent.frozen", "agent.restarted"] {
        let told = watch.next().await.unwrap();
        assert_eq!((named(&told), told.id.is_some()), ((name, id.as_str()), true));
    }
    site.stop().await;
}

/// A stream over HTTP/2 and what has come of it.
struct Stream {
    body: hyper::body::Incoming,
    text: String,
}

impl Stream {
    /// Reads on until `id` was told.
    async fn hear(&mut self, id: &str) {
        while !self.text.contains(id) {
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("in time");
            let frame = frame.expect("it goes on").expect("a frame");
            self.text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).unwrap());
        }
    }
}

/// Over HTTP/2 streams and other requests share one connection: each watcher hears of all, one that hangs up ends alone, and
/// one who comes back goes on from where they were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_share_an_http_2_connection() {
    let site = Site::start().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[CRM]));
    place(&site);
    let socket = TokioIo::new(tokio::net::TcpStream::connect(site.address).await.unwrap());
    let (send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    let driver = tokio::spawn(connection);
    let get = |path: &str, last: Option<u64>| {
        let uri = format!("http://gate.example.com/api/w/{}/{path}", site.workspace());
        let mut request = hyper::Request::builder().uri(uri).header("cookie", format!("__Host-sid={}", owner.sid));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let mut send = send.clone();
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        async move { send.send_request(request).await.unwrap() }
    };
    let open = async |last| {
        let got = get("events", last).await;
        assert_eq!((got.status(), got.version()), (hyper::StatusCode::OK, hyper::Version::HTTP_2));
        assert_eq!(got.headers()["content-type"], "text/event-stream");
        Stream { body: got.into_body(), text: String::new() }
    };
    let (mut one, mut other) = (open(None).await, open(None).await);
    let first = act(&site, &agent).await;
    place(&site);
    one.hear(&first).await;
    other.hear(&first).await;
    drop(one);
    let second = act(&site, &agent).await;
    place(&site);
    other.hear(&second).await;
    assert_eq!(get("agents", None).await.status(), hyper::StatusCode::OK);
    let last = site.ledger().iter().filter_map(|it| it.place.as_ref().map(|it| it.seq)).max();
    let third = act(&site, &agent).await;
    place(&site);
    let mut back = open(last).await;
    back.hear(&third).await;
    assert!(!back.text.contains(&first) && !back.text.contains(&second), "{}", back.text);
    driver.abort();
    site.audit();
    site.stop().await;
}
